"""Rows of a diagram that is wider than a page: which block stands in which row, and the wires between rows.

A row is a layout of its own. A wire that goes to another row leaves its row at the right, runs down (or, backwards, up)
beside the rows, then through the gap next to the other row to the left, and enters that row from there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from cstormpy.report.graph import Edge, Graph, Node
from cstormpy.report.ordering import assign_layers
from cstormpy.report.shapes import Shape
from cstormpy.report.svg import Point

_Key = TypeVar("_Key")
NetKey = tuple[int, int]
"""The node and the output that a wire comes from."""

_CHANNEL = 46.0
"""About what lies between two columns."""
_EARLIEST = 0.6
"""A row may end early, from this part of its width on, where fewer wires are cut."""
_MARGIN, _TRACK, _LANE = 16.0, 9.0, 11.0
"""Free way beside the rows, and distances between the wires there and in the gaps."""


@dataclass
class Row:
    """A part of a graph that stands in one row.

    Attributes
    ----------
    graph
        With an exit for each net that goes on in another row, and an entry for each that comes from one.
    members
        The numbers of its own nodes in the whole graph, which come first.
    exits, entries
        The nodes of these, by the net.
    """

    graph: Graph = field(default_factory=Graph)
    members: list[int] = field(default_factory=list)
    exits: dict[NetKey, int] = field(default_factory=dict)
    entries: dict[NetKey, int] = field(default_factory=dict)

    def net(self, node: int, output: int) -> NetKey:
        """Return the net in the whole graph that begins here."""
        if node < len(self.members):
            return self.members[node], output
        return next(key for key, entry in self.entries.items() if entry == node)


@dataclass
class Joint:
    """The wires between rows.

    Attributes
    ----------
    tops
        Where each row begins.
    left
        Width of the way on the left of the rows.
    wires, dots
        Corners of each wire, and where they branch, with their nets.
    width, height
        Of it all.
    """

    tops: list[float]
    left: float
    wires: list[tuple[NetKey, list[Point]]]
    dots: list[tuple[NetKey, Point]]
    width: float
    height: float


def rows_of(graph: Graph, shapes: Mapping[int, Shape], limit: float) -> list[Row]:
    """Return the rows of a graph, none of which is much wider than the limit."""
    number = _row_numbers(graph, shapes, limit)
    rows = [Row() for _ in range(max(number, default=0) + 1)]
    place = []
    for k, node in enumerate(graph.nodes):
        row = rows[number[k]]
        place.append(len(row.members))
        row.members.append(k)
        row.graph.nodes.append(node)
    for edge in graph.edges:
        key, row, other = (edge.source, edge.output), rows[number[edge.source]], rows[number[edge.target]]
        if row is other:
            row.graph.edges.append(Edge(place[edge.source], edge.output, place[edge.target], edge.input))
            continue
        if key not in row.exits:
            row.exits[key] = _edge_node(row, "exit")
            row.graph.edges.append(Edge(place[edge.source], edge.output, row.exits[key], 0))
        if key not in other.entries:
            other.entries[key] = _edge_node(other, "entry")
        other.graph.edges.append(Edge(other.entries[key], 0, place[edge.target], edge.input))
    return rows


def _edge_node(row: Row, kind: str) -> int:
    row.graph.nodes.append(Node(None, "", "", kind, [""] * (kind == "exit"), [""] * (kind == "entry"), kind))
    return len(row.graph.nodes) - 1


def _row_numbers(graph: Graph, shapes: Mapping[int, Shape], limit: float) -> list[int]:
    """Return the row of each node: columns fill a row, and a sink stands in the row of what it shows."""
    layers = assign_layers(graph)
    columns = [0.0] * (max(layers, default=-1) + 1)
    for node, layer in zip(graph.nodes, layers, strict=True):
        columns[layer] = max(columns[layer], shapes[id(node)].full_width + _CHANNEL)
    if sum(columns) <= limit:
        return [0] * len(layers)
    ends = _ends(graph, layers, columns, limit)
    number = [bisect_left(ends, layer) for layer in layers]
    feeds: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        feeds[edge.target].append(number[edge.source])
    return [max(feeds[k]) if n.role in ("sink", "exit") and feeds[k] else number[k] for k, n in enumerate(graph.nodes)]


def _ends(graph: Graph, layers: list[int], columns: list[float], limit: float) -> list[int]:
    """Return the last column of each row: of those that fill enough of it, where fewest nets are cut."""
    cut: list[set[NetKey]] = [set() for _ in columns]
    for edge in graph.edges:
        if graph.nodes[edge.target].role not in ("sink", "exit"):
            low, high = sorted((layers[edge.source], layers[edge.target]))
            for k in range(low, high):
                cut[k].add((edge.source, edge.output))
    ends, begin = [], 0
    while sum(columns[begin:]) > limit:
        fitting, width = [begin], 0.0
        for k in range(begin, len(columns)):
            width += columns[k]
            if width > limit:
                break
            if width > _EARLIEST * limit:
                fitting.append(k)
            else:
                fitting = [k]
        ends.append(min(reversed(fitting), key=lambda k: len(cut[k])))
        begin = ends[-1] + 1
    return [*ends, len(columns) - 1]


def join_rows(rows: list[Row], sizes: list[Point], heights: list[dict[int, float]]) -> Joint:
    """Return where the rows stand and the wires between them.

    Parameters
    ----------
    rows : list of Row
    sizes : list of (float, float)
        Width and height of each row.
    heights : list of dict
        The heights of the entries and exits of each row, by their nodes.
    """
    home = {key: r for r, row in enumerate(rows) for key in row.exits}
    gaps: dict[int, list[tuple[NetKey, int]]] = defaultdict(list)  # behind which row: nets and where they go
    for r, row in enumerate(rows):
        for key in row.entries:
            gaps[r - 1 if home[key] < r else r].append((key, r))
    for jumps in gaps.values():  # what leaves lowest turns first, so that few wires cross
        jumps.sort(key=lambda jump: (home[jump[0]], -heights[home[jump[0]]][rows[home[jump[0]]].exits[jump[0]]]))
    tops, lanes, y = [], {}, 0.0
    for r, (_, height) in enumerate(sizes):
        tops.append(y)
        y += height
        for k, jump in enumerate(gaps[r]):
            lanes[jump] = y + _MARGIN + _LANE * k
        y += (2 * _MARGIN + _LANE * max(0, len(gaps[r]) - 1)) if r + 1 < len(rows) or gaps[r] else 0.0
    leaves = {key: tops[r] + heights[r][rows[r].exits[key]] for key, r in home.items()}
    enters = {jump: tops[jump[1]] + heights[jump[1]][rows[jump[1]].entries[jump[0]]] for jump in lanes}
    spans = {key: [leaves[key], *(lane for jump, lane in lanes.items() if jump[0] == key)] for key in home}
    outer = _levels({key: (min(v), max(v)) for key, v in spans.items()}, sorted(home, key=lambda k: -leaves[k]))
    inner = _levels(
        {j: (min(enters[j], lanes[j]), max(enters[j], lanes[j])) for j in lanes}, sorted(lanes, key=enters.__getitem__)
    )
    left = 2 * _MARGIN + _TRACK * max(inner.values(), default=0) if lanes else 0.0
    wide = max(width for width, _ in sizes)
    wires, dots = [], []
    for (key, r), lane in lanes.items():
        out, back = left + wide + _MARGIN + _TRACK * outer[key], left - _MARGIN - _TRACK * inner[key, r]
        start, a, b = left + sizes[home[key]][0], leaves[key], enters[key, r]
        wires.append((key, [(start, a), (out, a), (out, lane), (back, lane), (back, b), (left, b)]))
        if min(spans[key]) < lane < max(spans[key]):
            dots.append((key, (out, lane)))
    for key, ys in spans.items():
        if min(ys) < leaves[key] < max(ys):
            dots.append((key, (left + wide + _MARGIN + _TRACK * outer[key], leaves[key])))
    right = 2 * _MARGIN + _TRACK * max(outer.values(), default=0) if lanes else 0.0
    return Joint(tops, left, wires, dots, left + wide + right, y)


def _levels(spans: Mapping[_Key, Point], order: list[_Key]) -> dict[_Key, int]:
    """Return the place of each vertical wire, counted from the rows, such that none lie upon each other."""
    levels: dict[_Key, int] = {}
    for key in order:
        low, high = spans[key]
        taken = {levels[k] for k in levels if spans[k][0] < high + _LANE and low < spans[k][1] + _LANE}
        levels[key] = next(k for k in range(len(order) + 1) if k not in taken)
    return levels
