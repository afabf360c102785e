"""Layout of a diagram: columns of boxes, ordered so that few wires cross and placed so that most run straight.

Sugiyama's method: wires that span several columns pass through points ("dummies") in each; the columns are ordered by
the median of their neighbours, then the heights are found by isotonic regression: the places nearest to where the
wires want the boxes, in the given order and with a least distance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from cstormpy.report.graph import Edge, Graph
from cstormpy.report.ordering import assign_layers
from cstormpy.report.shapes import Shape, shape_of

_SWEEPS, _SWAPS, _PLACINGS = 12, 4, 12
"""Sweeps over the columns that find their order, mend it, and find the heights."""
_GAP, _DUMMY_GAP = 22.0, 12.0
"""Least distance between boxes of a column, and of a wire that passes between them."""
_BAND = 2.0 * _GAP
"""Tallest band across the diagram in which nothing stands."""
_CROSSINGS_WORTH_COUNTING = 3000
"""Above so many wires only the first sweeps are done: nobody reads such a diagram wire by wire."""


@dataclass
class Box:
    """A block, or a point where a wire passes a column.

    Attributes
    ----------
    layer, place
        Column, and position in it from above.
    shape
        What is drawn; None for a wire that passes.
    y
        Upper end.
    """

    layer: int
    shape: Shape | None = None
    node: int = -1
    place: int = 0
    y: float = 0.0

    @property
    def height(self) -> float:
        """Height of the shape and the name below it."""
        return self.shape.full_height if self.shape else 0.0

    @property
    def width(self) -> float:
        """Width of the column that it needs."""
        return self.shape.full_width if self.shape else 0.0

    def input_y(self, port: int) -> float:
        """Distance of an input from the upper end."""
        return self.shape.inputs[port][1] if self.shape else 0.0

    def output_y(self, port: int) -> float:
        """Distance of an output from the upper end."""
        return self.shape.outputs[port][1] if self.shape else 0.0


@dataclass
class Net:
    """All wires that leave one output.

    Attributes
    ----------
    passes
        The box through which it passes, by column.
    forward, backward
        Wires to columns on the right, and to the same column or to the left.
    """

    source: int
    output: int
    passes: dict[int, Box] = field(default_factory=dict)
    forward: list[Edge] = field(default_factory=list)
    backward: list[Edge] = field(default_factory=list)


@dataclass
class Layout:
    """Boxes in columns and the nets between them."""

    boxes: list[Box]
    columns: list[list[Box]]
    nets: list[Net]


@dataclass(frozen=True)
class _Link:
    """A piece of a net between neighbouring columns, with the heights of its ends in their boxes."""

    left: Box
    left_y: float
    right: Box
    right_y: float


_Ends = dict[int, list[_Link]]


def arrange(graph: Graph, shapes: Mapping[int, Shape] | None = None) -> Layout:
    """Return the layout of a graph: columns, order and heights.

    Parameters
    ----------
    graph : Graph
    shapes : mapping, optional
        Shapes of nodes by their `id`, where not those of their kinds.
    """
    layers = assign_layers(graph)
    known = shapes or {}
    boxes = [Box(layers[k], known.get(id(node)) or shape_of(node), k) for k, node in enumerate(graph.nodes)]
    columns: list[list[Box]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for box in boxes:
        columns[box.layer].append(box)
    nets = _nets(graph, boxes, columns)
    links = _links(nets, boxes)
    _order_columns(columns, links)
    _place(columns, links)
    _close_gaps([box for column in columns for box in column])
    for net in nets:
        _straighten(net, boxes, columns)
    top = min(box.y for column in columns for box in column)
    for column in columns:
        for box in column:
            box.y -= top
    return Layout(boxes, columns, nets)


def _nets(graph: Graph, boxes: list[Box], columns: list[list[Box]]) -> list[Net]:
    nets: dict[tuple[int, int], Net] = {}
    for edge in graph.edges:
        net = nets.setdefault((edge.source, edge.output), Net(edge.source, edge.output))
        forward = boxes[edge.target].layer > boxes[edge.source].layer
        (net.forward if forward else net.backward).append(edge)
    for net in nets.values():
        end = max((boxes[edge.target].layer for edge in net.forward), default=0)
        for layer in range(boxes[net.source].layer + 1, end):
            net.passes[layer] = Box(layer)
            columns[layer].append(net.passes[layer])
    return list(nets.values())


def _links(nets: list[Net], boxes: list[Box]) -> list[_Link]:
    links = []
    for net in nets:
        layer = boxes[net.source].layer
        chain = {layer: (boxes[net.source], boxes[net.source].output_y(net.output))}
        chain.update({k: (box, 0.0) for k, box in net.passes.items()})
        links += [_Link(*chain[k - 1], box, 0.0) for k, box in net.passes.items()]
        for edge in net.forward:
            target = boxes[edge.target]
            links.append(_Link(*chain[target.layer - 1], target, target.input_y(edge.input)))
    return links


def _by_ends(links: list[_Link]) -> tuple[_Ends, _Ends]:
    """Return the links that end in each box, and those that begin there."""
    into: _Ends = defaultdict(list)
    out_of: _Ends = defaultdict(list)
    for link in links:
        into[id(link.right)].append(link)
        out_of[id(link.left)].append(link)
    return into, out_of


def _order_columns(columns: list[list[Box]], links: list[_Link]) -> None:
    """Order the boxes of each column so that few links cross."""
    into, out_of = _by_ends(links)
    between: list[list[_Link]] = [[] for _ in columns]
    for link in links:
        between[link.left.layer].append(link)
    _renumber(columns)
    best, fewest = [list(c) for c in columns], sum(map(_crossings, between))
    for sweep in range(_SWEEPS if len(links) < _CROSSINGS_WORTH_COUNTING else 2):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            key = {}
            for box in column:
                ends = [
                    (k.left.place + k.left_y / 1e4) if forward else (k.right.place + k.right_y / 1e4)
                    for k in (into if forward else out_of)[id(box)]
                ]
                key[id(box)] = sum(ends) / len(ends) if ends else float(box.place)
            column.sort(key=lambda box: key[id(box)])
            for place, box in enumerate(column):
                box.place = place
        crossings = sum(map(_crossings, between))
        if crossings < fewest:
            best, fewest = [list(c) for c in columns], crossings
    for column, ordered in zip(columns, best, strict=True):
        column[:] = ordered
    _renumber(columns)
    if len(links) < _CROSSINGS_WORTH_COUNTING:
        _swap_neighbours(columns, into, out_of)


def _renumber(columns: list[list[Box]]) -> None:
    for column in columns:
        for place, box in enumerate(column):
            box.place = place


def _crossings(links: list[_Link]) -> int:
    """Count the pairs that cross: those whose ends are in another order on the left than on the right."""
    count = 0
    passed: list[float] = []
    for _, right in sorted((k.left.place + k.left_y / 1e4, k.right.place + k.right_y / 1e4) for k in links):
        count += len(passed) - bisect_right(passed, right)
        insort(passed, right)
    return count


def _swap_neighbours(columns: list[list[Box]], into: _Ends, out_of: _Ends) -> None:
    """Swap neighbours in a column wherever that saves crossings."""
    for _ in range(_SWAPS):
        better = False
        for column in columns:
            for k in range(len(column) - 1):
                upper, lower = column[k], column[k + 1]
                above, below = _far_ends(upper, into, out_of), _far_ends(lower, into, out_of)
                if _inversions(below, above) < _inversions(above, below):
                    column[k], column[k + 1] = lower, upper
                    upper.place, lower.place = k + 1, k
                    better = True
        if not better:
            return


def _far_ends(box: Box, into: _Ends, out_of: _Ends) -> tuple[list[float], list[float]]:
    """Return where the links of a box go, on the left and on the right."""
    left = sorted(link.left.place + link.left_y / 1e4 for link in into[id(box)])
    return left, sorted(link.right.place + link.right_y / 1e4 for link in out_of[id(box)])


def _inversions(above: tuple[list[float], list[float]], below: tuple[list[float], list[float]]) -> int:
    """Count the crossings between the links of two boxes that stand in this order."""
    return sum(bisect_left(b, end) for a, b in zip(above, below, strict=True) for end in a)


def _place(columns: list[list[Box]], links: list[_Link]) -> None:
    """Find the heights: in turns from the left and from the right, each box where its wires run straight."""
    into, out_of = _by_ends(links)
    for column in columns:
        y = 0.0
        for k, box in enumerate(column):
            y += _distance(column[k - 1], box) if k else 0.0
            box.y = y
    for sweep in range(_PLACINGS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            wanted, weights = [], []
            for box in column:
                pulls = _pulls(into[id(box)], True) if forward else _pulls(out_of[id(box)], False)
                if not pulls and sweep:
                    pulls = _pulls(out_of[id(box)], False) if forward else _pulls(into[id(box)], True)
                wanted.append(pulls[(len(pulls) - 1) // 2] if pulls else box.y)
                weight = 2.0 + len(into[id(box)]) + len(out_of[id(box)])  # the more wires, the more it counts
                weights.append(1.0 if box.shape is None else weight if pulls else 0.05)
            _fit(column, wanted, weights)


def _close_gaps(boxes: list[Box]) -> None:
    """Draw together what stands above and below a band without any box: parts that only a loop connects."""
    ordered = sorted(boxes, key=lambda box: box.y)
    bottom, shift = ordered[0].y if ordered else 0.0, 0.0
    for box in ordered:
        shift += max(0.0, box.y - bottom - _BAND)
        bottom = max(bottom, box.y + box.height)
        box.y -= shift


def _pulls(links: list[_Link], to_left: bool) -> list[float]:
    """Return where the links want a box, sorted; those between blocks count before those that only pass."""
    straight = [link for link in links if link.left.shape and link.right.shape] or links
    if to_left:
        return sorted(link.left.y + link.left_y - link.right_y for link in straight)
    return sorted(link.right.y + link.right_y - link.left_y for link in straight)


def _straighten(net: Net, boxes: list[Box], columns: list[list[Box]]) -> None:
    """Let a wire that passes several columns keep its height as long as there is room."""
    passing = [net.passes[k] for k in sorted(net.passes)]
    if not passing:
        return
    source = boxes[net.source]
    height = source.y + source.output_y(net.output)
    ends = [boxes[e.target].y + boxes[e.target].input_y(e.input) for e in net.forward]
    while passing:
        low, high = _room(passing[0], columns)
        run = 1
        for box in passing[1:]:
            a, b = _room(box, columns)
            if max(a, low) > min(b, high):
                break
            low, high, run = max(a, low), min(b, high), run + 1
        fitting = [y for y in (height, *ends) if low <= y <= high]
        height = fitting[0] if fitting else min(max(height, low), high)
        for box in passing[:run]:
            box.y = height
        passing = passing[run:]


def _room(box: Box, columns: list[list[Box]]) -> tuple[float, float]:
    """Return how high and how low a passing wire may move between its neighbours."""
    column = columns[box.layer]
    low = column[box.place - 1].y + _distance(column[box.place - 1], box) if box.place else -1e9
    high = column[box.place + 1].y - _distance(box, column[box.place + 1]) if box.place + 1 < len(column) else 1e9
    return min(low, box.y), max(high, box.y)


def _distance(upper: Box, lower: Box) -> float:
    """Least distance between the upper ends of two neighbours."""
    gap = _GAP if upper.height and lower.height else _DUMMY_GAP
    return upper.height + gap


def _fit(column: list[Box], wanted: list[float], weights: list[float]) -> None:
    """Set the heights nearest to those wanted that keep order and distance (pool adjacent violators).

    The sum of the absolute distances is least: so some wires run straight, where the sum of squares would leave a
    small step in all of them.
    """
    shifts = [0.0]
    for upper, lower in pairwise(column):
        shifts.append(shifts[-1] + _distance(upper, lower))
    pools: list[list[tuple[float, float]]] = []  # of wanted places and weights
    for want, weight, shift in zip(wanted, weights, shifts, strict=False):
        pool = [(want - shift, weight)]
        while pools and _median(pools[-1]) > _median(pool):
            pool = pools.pop() + pool
        pools.append(pool)
    values = [_median(pool) for pool in pools for _ in pool]
    for box, value, shift in zip(column, values, shifts, strict=False):
        box.y = value + shift


def _median(pool: list[tuple[float, float]]) -> float:
    """Return the weighted median, the lower one of two."""
    half, total = sum(weight for _, weight in pool) / 2, 0.0
    for value, weight in sorted(pool):
        total += weight
        if total >= half - 1e-12:
            return value
    return pool[-1][0]
