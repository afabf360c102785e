"""Derivatives of a graph's outputs, as nodes of the same graph: along a direction, of a weighted sum, as a matrix.

Each primitive knows its partial derivatives; here is how they are put together. They are exact on the side of a choice
that is taken; where a choice itself changes they say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cstormpy.graph.look_ups import LOOKUP
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.primitives import EQUAL, MAXIMUM, MINIMUM, SELECT, apply
from cstormpy.graph.products import rate_of_table
from cstormpy.graph.routine import Routine

Number = Any  # a node or a float


def tangents(outputs: Sequence[Number], directions: Mapping[Node, Number]) -> list[Number]:
    """Return the derivatives of some outputs along a direction, which gives each input its rate (forward mode).

    The rates of a table may be given by another table; else those of its numbers among the inputs count.

    >>> from cstormpy.graph import Graph
    >>> x, y = Graph().inputs("x", 2)
    >>> tangents([x * y], {x: 1.0, y: 0.0})
    [x[1]]
    """
    rate: dict[int, Number] = {node.index: value for node, value in directions.items()}
    for node in alive(outputs):
        if node.index in rate or node.primitive.truth or node.primitive is TABLE:
            continue
        if node.primitive is LOOKUP:
            rate[node.index] = _rate_looked_up(node, directions)
            continue
        if node.primitive.choice is not None:
            condition, a, b = node.primitive.choice(*node.args)
            rate[node.index] = apply(SELECT, condition, _rate(a, rate), _rate(b, rate))
            continue
        if node.primitive.along is not None:
            rate[node.index] = node.primitive.along(
                node, lambda a: rate_of_table(a, directions) if _is_table(a) else _rate(a, rate)
            )
            continue
        moving = [(k, _rate(a, rate)) for k, a in enumerate(node.args) if isinstance(a, Node)]
        if all(_is_zero(da) for _, da in moving):
            rate[node.index] = 0.0
            continue
        partials, total = node.primitive.partials(node, *node.args), 0.0
        for k, da in moving:
            if partials[k] is not None and not _is_zero(da):
                total = total + partials[k] * da
        rate[node.index] = total
    return [_rate(x, rate) for x in outputs]


def with_tangents(routine: Routine, moving: Sequence[str]) -> Routine:
    """Return the routine ``tangent``, which computes what another does, and its derivatives along a direction.

    Behind the arguments of the other it takes the rates of those that move, as ``dx``, and fills the derivatives.
    """
    values = [x for out in routine.outputs.values() for x in out]
    directions: dict[Node, Number] = {}
    for node in alive(values):
        if node.primitive is INPUT:
            directions[node] = node.graph.input(f"d{node.data[0]}", node.data[1])
        elif node.primitive is TABLE:
            directions[node] = node.graph.make(TABLE, (), (f"d{node.data[0]}", *node.data[1:]))
    changes = iter(tangents(values, directions))
    filled = {f"d{name}": [next(changes) for _ in out] for name, out in routine.outputs.items()}
    rates = [f"d{name}" for name in moving]
    scalars = (*routine.scalars, *(f"d{name}" for name in routine.scalars))
    given = {**routine.shared, **{name: 0 for name in rates if name not in scalars}}
    order = (*routine.arguments, *rates, *filled)
    return Routine("tangent", given, {}, {**routine.outputs, **filled}, routine.status, scalars=scalars, order=order)


def gradient(outputs: Sequence[Number], weights: Sequence[Number], inputs: Sequence[Node]) -> list[Number]:
    """Return the derivatives of Σ weight · output to some inputs (reverse mode).

    >>> from cstormpy.graph import Graph
    >>> x, y = Graph().inputs("x", 2)
    >>> gradient([x * y], [1.0], [x, y])
    [x[1], x[0]]
    """
    share: dict[int, Number] = {}
    chosen: set[int] = set()
    looked_up: list[tuple[Node, Number]] = []
    for x, weight in zip(outputs, weights, strict=True):
        if isinstance(x, Node):
            share[x.index] = share.get(x.index, 0.0) + weight
    for node in reversed(alive(outputs)):
        mine = share.get(node.index, 0.0)
        if _is_zero(mine) or not node.args or node.primitive.truth:
            continue
        if node.primitive is LOOKUP:
            looked_up.append((node, mine))
            continue
        if node.primitive.choice is not None:
            condition, a, b = node.primitive.choice(*node.args)
            parts: list[tuple[Any, Number]] = [
                (a, apply(SELECT, condition, mine, 0.0)),
                (b, apply(SELECT, condition, 0.0, mine)),
            ]
        else:
            partials = node.primitive.partials(node, *node.args)
            if node.index in chosen:  # what does not count may have an infinite slope
                partials = [p if p is None else apply(SELECT, apply(EQUAL, mine, 0.0), 0.0, p) for p in partials]
            parts = [(a, p * mine) for a, p in zip(node.args, partials, strict=True) if p is not None]
        if node.primitive.choice is not None or node.index in chosen:
            chosen.update(a.index for a, _ in parts if isinstance(a, Node))
        for a, part in parts:
            if isinstance(a, Node):
                share[a.index] = share.get(a.index, 0.0) + part
    found = [share.get(x.index, 0.0) for x in inputs]
    for node, mine in looked_up:
        for k, x in enumerate(inputs):
            place = _place_in(node, x)
            if place is not None:
                found[k] = found[k] + apply(SELECT, _is_at(node, place), mine, 0.0)
    return found


def jacobian(outputs: Sequence[Number], inputs: Sequence[Node]) -> list[list[Number]]:
    """Return the derivatives of each output to each input, row by row: forward or reverse, whichever has fewer sweeps.

    >>> from cstormpy.graph import Graph
    >>> x, y = Graph().inputs("x", 2)
    >>> jacobian([x * y, x - y], [x, y])
    [[x[1], x[0]], [1.0, -1.0]]
    """
    if len(outputs) < len(inputs):
        return [gradient([x], [1.0], inputs) for x in outputs]
    columns = [tangents(outputs, {x: float(x is y) for x in inputs}) for y in inputs]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in outputs]


def _rate_looked_up(node: Node, directions: Mapping[Node, Number]) -> Number:
    """Return the rate of a number that is looked up."""
    table, index, last = node.args
    if table in directions:
        return apply(LOOKUP, directions[table], index, last)
    total: Number = 0.0
    for x, dx in directions.items():
        place = _place_in(node, x)
        if place is not None and not _is_zero(dx):
            total = total + apply(SELECT, _is_at(node, place), dx, 0.0)
    return total


def _place_in(node: Node, x: Node) -> int | None:
    """Return the index at which an input stands in the table that is looked up, or None."""
    name, first, count = node.args[0].data
    if x.primitive is not INPUT or x.data[0] != name or not first <= x.data[1] < first + count:
        return None
    return int(x.data[1]) - int(first)


def _is_at(node: Node, place: int) -> Node:
    _, index, last = node.args
    return apply(EQUAL, apply(MINIMUM, apply(MAXIMUM, index, 0.0), last), float(place))


def _is_table(x: Number) -> bool:
    return isinstance(x, Node) and x.primitive is TABLE


def _rate(x: Number, rate: Mapping[int, Number]) -> Number:
    return rate.get(x.index, 0.0) if isinstance(x, Node) else 0.0


def _is_zero(x: Number) -> bool:
    return not isinstance(x, Node) and x == 0.0
