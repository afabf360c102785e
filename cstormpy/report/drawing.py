"""The diagram as SVG."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from cstormpy.report.graph import Graph, parts, read_graph
from cstormpy.report.layout import Box, Layout, arrange
from cstormpy.report.routing import Routes, route
from cstormpy.report.svg import escape, number, tag, text, text_width

__all__ = ["diagram_svg"]

Point = tuple[float, float]
_Extent = tuple[float, float, float, float]

_EDGE = 14.0
"""Free space around the diagram."""
_BETWEEN = 26.0
"""Free space between parts that no wire connects."""
_SMALLEST = 0.55
"""A wider diagram is scrolled rather than made smaller than this."""
_CORNER = 6.0
"""Radius of the wires' corners."""
_ARROW = 7.0
_FRAME = 9.0
"""Distance of the frame of a subsystem from its blocks."""
_LABEL_SIZE, _LABEL_RISE = 10.5, 5.0
"""Size of the name above a frame, and how high its middle stands."""


def diagram_svg(bd: Any) -> str:
    """Return a picture of a diagram: an SVG element whose colours come from the page.

    Parameters
    ----------
    bd : BlockDiagram
        Compiled or not.
    """
    graph = read_graph(bd)
    if not graph.nodes:
        return tag("svg", text(100, 20, "no blocks"), class_="diagram", viewBox="0 0 200 40")
    drawn, low, high, height = "", 0.0, 0.0, 0.0
    for part in parts(graph):
        layout = arrange(part)
        routes = route(layout)
        frames, (a, above, b, below) = _frames(part, layout, routes)
        body = frames + _wires(part, layout, routes)
        body += "".join(_block(part, box, routes) for box in layout.boxes)
        drawn += tag("g", body, transform=f"translate(0 {number(height - above)})") if height - above else body
        low, high, height = min(low, a), max(high, b), height + below - above + _BETWEEN
    left, top, right, bottom = low - _EDGE, -_EDGE, high + _EDGE, height - _BETWEEN + _EDGE
    narrowest = f"min-width:{round(_SMALLEST * (right - left))}px"
    size = {"style": narrowest, "width": round(right - left), "height": round(bottom - top)}
    view = " ".join(number(v) for v in (left, top, right - left, bottom - top))
    label = f"block diagram of {len(graph.nodes)} blocks"
    return tag("svg", drawn, class_="diagram", viewBox=view, role="img", aria_label=label, **size)


def _corner(box: Box, routes: Routes) -> Point:
    assert box.shape is not None
    return routes.x[box.layer] + (routes.widths[box.layer] - box.shape.width) / 2, box.y


def _block(graph: Graph, box: Box, routes: Routes) -> str:
    node, shape = graph.nodes[box.node], box.shape
    assert shape is not None
    x, y = _corner(box, routes)
    hint = tag("title", escape(f"{node.path} ({type(node.block).__name__})"))
    name = text(shape.width / 2, shape.height + 9.5, shape.name, "n")
    return tag("g", hint + shape.body + name, class_="block", transform=f"translate({number(x)} {number(y)})")


def _wires(graph: Graph, layout: Layout, routes: Routes) -> str:
    """Return the wires net by net, so that a net is highlighted as one."""
    pieces: dict[int, list[str]] = defaultdict(list)
    for wire in routes.wires:
        pieces[wire.net].append(tag("path", d=_rounded(wire.points), class_="w"))
    for wire in routes.wires:
        x, y = wire.points[-1]
        tips = f"M{number(x)} {number(y)}l-{_ARROW:g} -3.5v7z"
        pieces[wire.net].append(tag("path", d=tips, class_="arrow"))
    for branching, (x, y) in routes.dots:
        pieces[branching].append(tag("circle", cx=x, cy=y, r=2.6, class_="dot"))
    drawn = ""
    for k, net in enumerate(layout.nets):
        node = graph.nodes[net.source]
        port = node.outputs[net.output] or (str(net.output) if len(node.outputs) > 1 else "")
        hint = tag("title", escape(node.path + (f".{port}" if port else "")))
        drawn += tag("g", hint + "".join(pieces[k]), class_="net")
    return drawn


def _rounded(points: list[Point]) -> str:
    """Return the path through corners, which are rounded; its end leaves room for the arrow's tip."""
    points = [*points[:-1], (points[-1][0] - 0.6 * _ARROW, points[-1][1])]
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


def _frames(graph: Graph, layout: Layout, routes: Routes) -> tuple[str, _Extent]:
    """Return a frame around the blocks of each subsystem that no other block stands in, and the extent of it all."""
    drawn = ""
    extents: list[_Extent] = [(0.0, 0.0, routes.width, routes.height)]
    for group in sorted({node.group for node in graph.nodes if node.group}):
        inside: list[_Extent] = []
        outside: list[_Extent] = []
        for box in layout.boxes:
            mine = graph.nodes[box.node].group
            (inside if mine == group or mine.startswith(group + "/") else outside).append(_extent(box, routes))
        left, top = min(e[0] for e in inside) - _FRAME, min(e[1] for e in inside) - _FRAME
        right, bottom = max(e[2] for e in inside) + _FRAME, max(e[3] for e in inside) + _FRAME
        if any(a < right and left < c and b < bottom and top < d for a, b, c, d in outside):
            continue
        frame = tag("rect", x=left, y=top, width=right - left, height=bottom - top, rx=8, class_="group")
        drawn += frame + text(left + 8.0, top - _LABEL_RISE, group, "n", "start")
        end = left + 8.0 + text_width(group, _LABEL_SIZE)
        extents.append((left, top - _LABEL_RISE - _LABEL_SIZE / 2, max(right, end), bottom))
    lefts, tops, rights, bottoms = zip(*extents, strict=True)
    return drawn, (min(lefts), min(tops), max(rights), max(bottoms))


def _extent(box: Box, routes: Routes) -> _Extent:
    assert box.shape is not None
    middle = routes.x[box.layer] + routes.widths[box.layer] / 2
    half = box.shape.full_width / 2
    return middle - half, box.y, middle + half, box.y + box.shape.full_height
