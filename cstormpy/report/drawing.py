"""The diagram as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from typing import Any

from cstormpy.linkage.picture import image
from cstormpy.report.graph import Graph, parts
from cstormpy.report.layout import Layout, arrange
from cstormpy.report.levels import Level, read_levels
from cstormpy.report.routing import Routes, route
from cstormpy.report.shapes import Shape, shape_of
from cstormpy.report.svg import Point, escape, number, tag, text, text_width
from cstormpy.report.wrapping import NetKey, Row, join_rows, rows_of

WIDEST = 1500.0
"""A wider diagram is wrapped into rows."""
_INSIDE = 0.72
"""Width of what stands in a subsystem, as a part of what it stands in."""
_BETWEEN = 26.0
"""Free space between parts that no wire connects."""
FRAME, HEAD = 16.0, 26.0
"""Free space inside of the frame of a subsystem, and above, where its name stands."""
_NAME_SIZE, _NAME_ROOM = 11.0, 8.0
"""Size of a subsystem's name, and what it and the sign beside it need more than the frame's free space."""
_EDGE_SHAPE = {
    "entry": Shape(0.0, 0.0, [], [(0.0, 0.0)], "", ""),
    "exit": Shape(0.0, 0.0, [(0.0, 0.0)], [], "", ""),
}


@dataclass
class Placed:
    """A node with its upper left corner; of an open subsystem also what is in it."""

    node: int
    shape: Shape
    x: float
    y: float
    level: Level | None = None
    picture: Picture | None = None


@dataclass
class Run:
    """A wire, or a piece of one: its corners, its net, and whether it ends at a block."""

    net: NetKey
    points: list[Point]
    arrow: bool


@dataclass
class Picture:
    """A level of a diagram, with the upper left corner of its content at the origin.

    Attributes
    ----------
    level
        Whose blocks these are.
    left, right
        Where the subsystem's own ports are, by their nodes.
    """

    level: Level
    blocks: list[Placed] = field(default_factory=list)
    wires: list[Run] = field(default_factory=list)
    dots: list[tuple[NetKey, Point]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    left: dict[int, Point] = field(default_factory=dict)
    right: dict[int, Point] = field(default_factory=dict)


def compose(level: Level, opened: Collection[str], widest: float = WIDEST) -> Picture:
    """Return the picture of a level in which the subsystems with these paths are open.

    Parameters
    ----------
    level : Level
        From `read_levels`.
    opened : collection of str
        Paths of subsystems; one that stands in a closed one is not seen.
    widest : float
        Of each row.
    """
    inside = {k: compose(sub, opened, _INSIDE * widest) for k, sub in level.inside.items() if sub.path in opened}
    shapes = {}
    for k, node in enumerate(level.graph.nodes):
        shapes[id(node)] = _opened(inside[k]) if k in inside else _EDGE_SHAPE.get(node.role) or shape_of(node)
    picture = Picture(level)
    number = {id(node): k for k, node in enumerate(level.graph.nodes)}
    for part in parts(level.graph):
        _add_part(picture, part, [number[id(node)] for node in part.nodes], shapes, widest)
        picture.height += _BETWEEN
    picture.height -= _BETWEEN if level.graph.nodes else 0.0
    picture.width = max(picture.width, text_width(level.name, _NAME_SIZE) + _NAME_ROOM)
    for placed in picture.blocks:
        placed.level, placed.picture = level.inside.get(placed.node), inside.get(placed.node)
    _lead_to_edges(picture)
    return picture


def _opened(inner: Picture) -> Shape:
    """Return the frame around an open subsystem, with the ports where its own are."""
    width, height = inner.width + 2 * FRAME, inner.height + HEAD + FRAME
    inputs = [(0.0, HEAD + inner.left[k][1]) for k in inner.level.entries]
    outputs = [(width, HEAD + inner.right[k][1]) for k in inner.level.exits]
    return Shape(width, height, inputs, outputs, "", "")


def _add_part(picture: Picture, part: Graph, own: list[int], shapes: dict[int, Shape], widest: float) -> None:
    """Add what no wire connects with the rest below it, in as many rows as it needs."""
    rows = rows_of(part, shapes, widest)
    layouts, ways = [], []
    for row in rows:
        beyond = {id(node): _EDGE_SHAPE[node.role] for node in row.graph.nodes[len(row.members) :]}
        layouts.append(arrange(row.graph, shapes | beyond))
        ways.append(route(layouts[-1]))
    heights = [{box.node: box.y for box in layout.boxes} for layout in layouts]
    joint = join_rows(rows, [(routes.width, routes.height) for routes in ways], heights)
    begin = picture.height
    for row, layout, routes, top in zip(rows, layouts, ways, joint.tops, strict=True):
        _add_row(picture, row, own, layout, routes, (joint.left, begin + top))
    for (k, output), points in joint.wires:
        picture.wires.append(Run((own[k], output), [(x, begin + y) for x, y in points], False))
    picture.dots += [((own[k], output), (x, begin + y)) for (k, output), (x, y) in joint.dots]
    picture.width = max(picture.width, joint.width)
    picture.height = begin + joint.height


def _add_row(picture: Picture, row: Row, own: list[int], layout: Layout, routes: Routes, corner: Point) -> None:
    """Add one row with its upper left corner at a point."""
    nets = [(own[k], output) for k, output in (row.net(net.source, net.output) for net in layout.nets)]
    for box, k in zip(layout.boxes, row.members, strict=False):  # what leads to other rows has no shape
        role, shape = row.graph.nodes[box.node].role, box.shape
        assert shape is not None
        x = corner[0] + routes.x[box.layer] + (routes.widths[box.layer] - shape.width) / 2
        if role in _EDGE_SHAPE:
            (picture.left if role == "entry" else picture.right)[own[k]] = x, corner[1] + box.y
        else:
            picture.blocks.append(Placed(own[k], shape, x, corner[1] + box.y))
    for wire in routes.wires:
        moved = [(corner[0] + x, corner[1] + y) for x, y in wire.points]
        picture.wires.append(Run(nets[wire.net], moved, row.graph.nodes[wire.edge.target].role != "exit"))
    picture.dots += [(nets[net], (corner[0] + x, corner[1] + y)) for net, (x, y) in routes.dots]


def _lead_to_edges(picture: Picture) -> None:
    """Lead the subsystem's own ports to its frame."""
    feeds = {edge.target: (edge.source, edge.output) for edge in picture.level.graph.edges}
    for k, (x, y) in picture.left.items():
        picture.wires.append(Run((k, 0), [(-FRAME, y), (x, y)], False))
    for k, (x, y) in picture.right.items():
        picture.wires.append(Run(feeds.get(k, (k, 0)), [(x, y), (picture.width + FRAME, y)], False))


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
