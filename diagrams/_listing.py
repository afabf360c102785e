"""The ready diagrams in words, for the command line: what each is, its options and its laws."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from cstormpy import diagrams

__all__ = ["details", "overview"]

WIDTH = 100
#: An option as numpydoc describes it: ``name, other : {"one", "two"}, optional`` and the indented lines below.
_OPTION = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<kind>.+)$")


def overview() -> str:
    """Return all diagrams, each with a line about it, its laws, and its options with their defaults."""
    paragraphs = []
    indent = " " * 4
    for name in diagrams.names():
        choices = _choices(name)
        lines = _wrapped(f"{name}: {_about(name)[0]}", "", "    ")
        if "controller" in choices:
            lines += _wrapped(f"--controller {choices['controller']}", indent, " " * 17)
        others = [_with_default(option, value) for option, value in _others(name)]
        lines += _wrapped(f"--set {', '.join(others)}", indent, " " * 10)
        paragraphs.append("\n".join(lines))
    first = diagrams.names()[0]
    hint = f"cstorm demo {first} runs one of them, cstorm list {first} says what its options mean."
    return "\n\n".join([*paragraphs, hint])


def details(name: str) -> str:
    """Return a diagram with its drawing, and what each option means."""
    lines = [f"{name}: {_about(name)[0]}", *(line.replace("`", "") for line in _about(name)[1:]), ""]
    defaults = diagrams.options(name)
    for names, kind, text in _described(name):
        if names == ["controller"]:
            lines.append(f"--controller {defaults['controller']}")
        else:
            lines.append("--set " + ", ".join(_with_default(option, defaults[option]) for option in names))
        lines += _wrapped(f"{_bars(kind)}. {text}" if "{" in kind else text, " " * 6, " " * 6)
    return "\n".join(lines)


def _others(name: str) -> Iterable[tuple[str, Any]]:
    return ((option, value) for option, value in diagrams.options(name).items() if option != "controller")


def _about(name: str) -> list[str]:
    return inspect.cleandoc(diagrams.load(name).__doc__ or "").replace("\n::\n", "").splitlines()


def _with_default(option: str, value: Any) -> str:
    """Return an option with its default, if that is short.

    >>> _with_default("blend", 0.05), _with_default("q0", None), _with_default("motion", (0.0, 1.0))
    ('blend=0.05', 'q0', 'motion')
    """
    if isinstance(value, float):
        return f"{option}={value:.6g}"
    return f"{option}={value}" if isinstance(value, (int, str)) else option


def _described(name: str) -> list[tuple[list[str], str, str]]:
    """Return for each entry of the parameters' list the names, what they may be, and what they mean."""
    doc = inspect.cleandoc(diagrams.load(name).build.__doc__ or "")
    found: list[tuple[list[str], str, str]] = []
    for line in doc.partition("Parameters\n----------\n")[2].splitlines():
        entry = _OPTION.match(line)
        if entry:
            found.append((entry["names"].split(", "), entry["kind"].removesuffix(", optional"), ""))
        elif line.startswith(" ") and found:
            names, kind, text = found[-1]
            found[-1] = names, kind, f"{text} {line.strip()}".strip()
    return [each for each in found if each[0][0] in diagrams.options(name)]


def _choices(name: str) -> dict[str, str]:
    """Return the values of the options that take one of several texts, with bars between them."""
    return {option: _bars(kind) for names, kind, _ in _described(name) for option in names if kind.startswith("{")}


def _bars(kind: str) -> str:
    return " | ".join(re.findall(r'"([^"]+)"', kind))


def _wrapped(text: str, first: str, then: str) -> list[str]:
    return textwrap.wrap(
        text.replace("`", ""), WIDTH, initial_indent=first, subsequent_indent=then, break_long_words=False
    )
