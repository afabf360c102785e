"""Numbers of a diagram's graph that decide when something jumps: those that a choice compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.graph.look_ups import SEARCH
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.primitives import EQUAL, SELECT, UNEQUAL
from cstormpy.simulation.compiled.program import Program

#: So many times both sides of a choice are computed, with other numbers each time.
_TRIALS = 3


def deciding(program: Program, known: frozenset[str] = frozenset()) -> frozenset[int]:
    """Return which numbers of p decide when something jumps.

    Comparisons that only bend a value, as those of a limit or of a ramp, do not count, nor do those of blocks whose
    jumps are `known` as events.
    """
    outputs = [*program.routine.outputs["out"], *program.routine.outputs["xd"]]
    nodes = alive(outputs)
    reads: dict[int, frozenset[int]] = {}
    for node in nodes:
        reads[node.index] = frozenset().union(*(reads[a.index] for a in node.args if isinstance(a, Node)))
        if node.primitive is INPUT and node.data[0] == "p":
            reads[node.index] = frozenset({node.data[1]})
        elif node.primitive is TABLE and node.data[0] == "p":
            reads[node.index] = frozenset(range(node.data[1], node.data[1] + node.data[2]))
    choices = [(node.args[0].index, _only_bends(node)) for node in nodes if node.primitive is SELECT]
    bent, jumping = ({index for index, bends in choices if bends is wanted} for wanted in (True, False))
    found: set[int] = set()
    for node in nodes:
        if program.owner_of.get(node.index, "") in known:
            continue
        if node.primitive is SEARCH or (node.primitive.truth and (node.index in jumping or node.index not in bent)):
            found |= reads[node.index]
    return frozenset(found)


def _only_bends(choice: Node) -> bool:
    """Tell whether both sides of a choice agree where it changes: with one side of the comparison at the other."""
    condition, *sides = choice.args
    if len(condition.args) != 2 or condition.primitive in (EQUAL, UNEQUAL) or condition.args[0] is condition.args[1]:
        return False
    a, b = condition.args
    return any(
        all(_agree(sides, changed, border, trial) for trial in range(_TRIALS))
        for changed, border in ((a, b), (b, a))
        if isinstance(changed, Node) and not changed.primitive.truth
    )


def _agree(sides: Sequence[Any], changed: Node, border: Any, trial: int) -> bool:
    values: dict[int, Any] = {}
    for node in alive([border]):
        values[node.index] = _value(node, values, trial)
    values = {changed.index: values[border.index] if isinstance(border, Node) else border}
    for node in alive(sides):
        if node.index not in values:
            values[node.index] = _value(node, values, trial)
    first, second = (values[x.index] if isinstance(x, Node) else x for x in sides)
    return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)


def _value(node: Node, values: dict[int, Any], trial: int) -> Any:
    if node.primitive is INPUT:
        return _some(hash((node.data[0], node.data[1], trial)))
    if node.primitive is TABLE:
        return [_some(hash((node.data[0], node.data[1] + k, trial))) for k in range(node.data[2])]
    args = [values[a.index] if isinstance(a, Node) else a for a in node.args]
    try:
        return node.primitive.value(*args)
    except (NotImplementedError, ArithmeticError, ValueError):
        return math.nan


def _some(seed: int) -> float:
    return 0.1 + float(np.random.default_rng(abs(seed)).random())
