"""The diagram as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from importlib.resources import files
from itertools import product
from typing import Any

from cstormpy.linkage.picture import image
from cstormpy.report.levels import Level, read_levels
from cstormpy.report.picture import FRAME, HEAD, Picture, Placed, compose
from cstormpy.report.svg import escape, number, tag, text
from cstormpy.report.wrapping import NetKey

Point = tuple[float, float]

_EDGE = 14.0
"""Free space around the diagram."""
_SMALLEST = 0.55
"""A wider diagram is scrolled rather than made smaller than this."""
_CORNER = 6.0
"""Radius of the wires' corners."""
_ARROW = 7.0
_MOST_VIEWS = 8
"""Above so many ways of opening subsystems only those are drawn in which one, none or all are open."""
_OPEN_AT_FIRST = 24
"""Up to so many blocks a diagram is shown with its subsystems open."""


def diagram_views(bd: Any) -> list[str]:
    """Return a picture for each way of opening and closing the diagram's subsystems, the first to be seen first.

    Each is an SVG element whose colours come from the page. The subsystems of a large compiled diagram are closed at
    first, those of a small one open.

    Parameters
    ----------
    bd : BlockDiagram
        Compiled or not.
    """
    top = read_levels(bd)
    first = _first_state(top)
    return [_svg(top, state, hidden=state != first) for state in sorted(states(top), key=lambda state: state != first)]


def diagram_image(bd: Any) -> str:
    """Return an element of HTML that shows a diagram, in light colours whatever page it stands in."""
    css = files("cstormpy.report").joinpath("report.css").read_text(encoding="utf-8")
    style = "\n".join(
        [css[: css.index("}") + 1], *(line for line in css.splitlines() if ".diagram" in line.split("{")[0])]
    )
    top = read_levels(bd)
    drawn = _svg(top, _first_state(top))
    head, body = drawn[: drawn.index(">") + 1], drawn[drawn.index(">") + 1 :]
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return image(f"{head}<style>{style} svg {{ background: #fff }}</style>{body}", f"diagram {bd.name}")


def states(top: Level) -> list[frozenset[str]]:
    """Return which subsystems are open in the pictures that are drawn, by their paths.

    All ways where they are few; else those in which none, one with what it stands in, or all are open.
    """
    around: dict[str, frozenset[str]] = {"": frozenset()}
    for outer in (top, *top.subsystems()):
        around.update({level.path: around[outer.path] | {level.path} for level in outer.inside.values()})
    paths = [level.path for level in top.subsystems()]
    if 2 ** len(paths) <= 4 * _MOST_VIEWS:
        ways = [
            frozenset(p for p, on in zip(paths, way, strict=True) if on) for way in product((0, 1), repeat=len(paths))
        ]
        valid = [way for way in ways if all(around[path] <= way for path in way)]
        if len(valid) <= _MOST_VIEWS:
            return valid
    return [frozenset(), *(around[path] for path in paths), frozenset(paths)]


def _first_state(top: Level) -> frozenset[str]:
    return frozenset(level.path for level in top.subsystems()) if _count(top) <= _OPEN_AT_FIRST else frozenset()


def _count(top: Level) -> int:
    return sum(node.block is not None for level in (top, *top.subsystems()) for node in level.graph.nodes)


def _svg(top: Level, opened: Collection[str], hidden: bool = False) -> str:
    if not top.graph.nodes:
        return tag("svg", text(100, 20, "no blocks"), class_="diagram", viewBox="0 0 200 40", width=200, height=40)
    picture = compose(top, opened)
    numbers = {level.path: k for k, level in enumerate(top.subsystems())}
    width, height = picture.width + 2 * _EDGE, picture.height + 2 * _EDGE
    size = {"style": f"min-width:{round(_SMALLEST * width)}px", "width": round(width), "height": round(height)}
    view = " ".join(number(v) for v in (-_EDGE, -_EDGE, width, height))
    label = f"block diagram of {_count(top)} blocks"
    more: dict[str, Any] = {"data_open": " ".join(str(numbers[path]) for path in sorted(opened))} if numbers else {}
    if hidden:
        more["hidden"] = "hidden"
    drawn = _drawn(picture, numbers)
    return tag("svg", drawn, class_="diagram", viewBox=view, role="img", aria_label=label, **size, **more)


def _drawn(picture: Picture, numbers: dict[str, int]) -> str:
    """Return a level: open frames below, wires, and blocks on top."""
    frames = "".join(_frame(placed, numbers) for placed in picture.blocks if placed.picture)
    blocks = "".join(_block(picture, placed, numbers) for placed in picture.blocks if not placed.picture)
    return frames + _wires(picture) + blocks


def _frame(placed: Placed, numbers: dict[str, int]) -> str:
    inner, shape = placed.picture, placed.shape
    assert inner is not None
    body = tag("rect", x=0.0, y=0.0, width=shape.width, height=shape.height, rx=8, class_="group")
    head = tag("rect", x=0.0, y=0.0, width=shape.width, height=HEAD - 6.0, class_="handle")
    head += text(9.0, 12.0, "−", "t sign fold") + text(20.0, 12.0, inner.level.name, "n", "start")
    body += _switch(head, inner.level.path, numbers, "fold")
    body += tag("g", _drawn(inner, numbers), transform=f"translate({number(FRAME)} {number(HEAD)})")
    return tag("g", body, class_="subsystem", transform=f"translate({number(placed.x)} {number(placed.y)})")


def _switch(body: str, path: str, numbers: dict[str, int], does: str) -> str:
    """Return what folds or unfolds a subsystem in the page when it is clicked."""
    hint = tag("title", escape(f"{does} {path}"))
    return tag("g", hint + body, class_="switch", role="button", tabindex=0, data_subsystem=numbers[path])


def _block(picture: Picture, placed: Placed, numbers: dict[str, int]) -> str:
    node, shape = picture.level.graph.nodes[placed.node], placed.shape
    name = text(shape.width / 2, shape.height + 9.5, shape.name, "n") if shape.name else ""
    move = f"translate({number(placed.x)} {number(placed.y)})"
    if placed.level is not None:
        body = _switch(shape.body + text(9.0, 9.0, "+", "t sign fold"), placed.level.path, numbers, "unfold")
        return tag("g", body, class_="block subsystem", transform=move)
    hint = tag("title", escape(f"{node.path} ({type(node.block).__name__})"))
    return tag("g", hint + shape.body + name, class_="block", transform=move)


def _wires(picture: Picture) -> str:
    """Return the wires net by net, so that a net is highlighted as one."""
    pieces: dict[NetKey, list[str]] = defaultdict(list)
    for run in picture.wires:
        pieces[run.net].append(tag("path", d=_rounded(run.points, _ARROW if run.arrow else 0.0), class_="w"))
    for run in picture.wires:
        if run.arrow:
            x, y = run.points[-1]
            tips = f"M{number(x)} {number(y)}l-{_ARROW:g} -3.5v7z"
            pieces[run.net].append(tag("path", d=tips, class_="arrow"))
    for net, (x, y) in picture.dots:
        pieces[net].append(tag("circle", cx=x, cy=y, r=2.6, class_="dot"))
    return "".join(
        tag("g", _net_hint(picture.level, net) + "".join(drawn), class_="net") for net, drawn in pieces.items()
    )


def _net_hint(level: Level, net: NetKey) -> str:
    node = level.graph.nodes[net[0]]
    port = (node.outputs[net[1]] if node.outputs else "") or (str(net[1]) if len(node.outputs) > 1 else "")
    return tag("title", escape(node.path.rstrip("/") + (f".{port}" if port else "")))


def _rounded(points: Sequence[Point], arrow: float) -> str:
    """Return the path through corners, which are rounded; its end leaves room for an arrow's tip."""
    points = [*points[:-1], (points[-1][0] - 0.6 * arrow, points[-1][1])]
    d = f"M{number(points[0][0])} {number(points[0][1])}"
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        r = min(_CORNER, _length(before, at) / 2, _length(at, after) / 2)
        a, b = _towards(at, before, r), _towards(at, after, r)
        d += f"L{number(a[0])} {number(a[1])}Q{number(at[0])} {number(at[1])} {number(b[0])} {number(b[1])}"
    return d + f"L{number(points[-1][0])} {number(points[-1][1])}"


def _length(a: Point, b: Point) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _towards(a: Point, b: Point, distance: float) -> Point:
    length = _length(a, b) or 1.0
    return a[0] + (b[0] - a[0]) * distance / length, a[1] + (b[1] - a[1]) * distance / length
