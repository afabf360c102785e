"""Pieces of SVG: numbers, escaped text, and how wide a text will be."""

from __future__ import annotations

import html
import unicodedata

Point = tuple[float, float]
"""Right and down."""
_NARROW = frozenset("iljI.,:;'|!()[]{}ft/ ·")
_WIDE = frozenset("mwMW@%—…")
_CONTROL = {"Cc", "Cs", "Co", "Cn"}


def number(value: float) -> str:
    """Return a number with at most one decimal.

    >>> number(3.04), number(2.55)
    ('3', '2.5')
    """
    return f"{round(value, 1):g}"


def escape(value: object) -> str:
    """Return text that is safe between tags and in attributes; control characters are left out."""
    kept = "".join(c for c in str(value) if unicodedata.category(c) not in _CONTROL or c in "\n\t")
    return html.escape(kept, quote=True)


def text_width(value: str, size: float) -> float:
    """Return about how wide a text is in a sans serif of this size."""
    units = sum(0.33 if c in _NARROW else 0.9 if c in _WIDE else 0.68 if c.isupper() else 0.57 for c in value)
    return units * size


def shortened(value: str, size: float, width: float) -> str:
    """Return the text, cut with an ellipsis where it would be wider than this."""
    if text_width(value, size) <= width:
        return value
    kept = value[: int(width / text_width("i", size)) + 1]  # of the narrowest letters
    while kept and text_width(kept + "…", size) > width:
        kept = kept[:-1]
    return kept + "…"


def tag(name: str, content: str | None = None, **attributes: object) -> str:
    """Return an element; an underscore at the end of a name is dropped, others become hyphens."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(v) if isinstance(v, float) else escape(v)}"'
        for key, v in attributes.items()
    )
    return f"<{name}{shown}/>" if content is None else f"<{name}{shown}>{content}</{name}>"


def text(x: float, y: float, value: object, class_: str = "t", anchor: str = "middle", **more: object) -> str:
    """Return a text whose middle stands at this height."""
    return tag("text", escape(value), x=x, y=y, class_=class_, text_anchor=anchor, **more)


def polygon(points: list[tuple[float, float]], class_: str) -> str:
    """Return a closed polygon."""
    return tag("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=class_)
