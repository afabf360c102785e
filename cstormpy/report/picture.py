"""The picture of a diagram as geometry: blocks, the boxes of subsystems and the wires, in the places that they get."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from cstormpy.report.graph import Graph, parts
from cstormpy.report.layout import Layout, arrange
from cstormpy.report.levels import Level
from cstormpy.report.routing import Routes, route
from cstormpy.report.shapes import Shape, shape_of
from cstormpy.report.svg import text_width
from cstormpy.report.wrapping import NetKey, Row, join_rows, rows_of

Point = tuple[float, float]

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
        own = [number[id(node)] for node in part.nodes]
        _add_part(picture, part, own, shapes, widest)
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
    nets = []
    for net in layout.nets:
        k, output = row.net(net.source, net.output)
        nets.append((own[k], output))
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
