"""When sources jump, as functions of their parameters, and which numbers decide when anything jumps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bdsim.blocks.sources import Piecewise, Ramp, Step, WaveForm

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError
from cstormpy.graph.look_ups import SEARCH
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.primitives import EQUAL, SELECT, UNEQUAL
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.run_start import corners_of
from cstormpy.simulation.step_control import JUMP_WIDTH

#: A source whose output changes by a smaller part of it where it declares a jump only bends there.
_LEAP = 1e-9


def tells_when(block: Any) -> bool:
    """Tell whether the times at which a source jumps are known as functions of its parameters."""
    return isinstance(block, (Step, Ramp, Piecewise, WaveForm)) or hasattr(type(block), "edge_time")


def _jump_time(block: Any, t: float) -> Callable[[], float] | None:
    """Return what reads, from the parameters that a source has then, when the jump at a time comes; None if unknown.

    A wave jumps in cycle k at (k + corner + phase) / freq. A source of another kind tells itself, by `edge_time`.
    """
    if hasattr(type(block), "edge_time"):
        own: Callable[[], float] = block.edge_time(t)
        return own
    if isinstance(block, (Step, Ramp)):
        return lambda: float(block.T)
    if isinstance(block, Piecewise):
        entry = min(range(len(block.t)), key=lambda i: abs(block.t[i] - t))
        return lambda: float(block.t[entry])
    if not isinstance(block, WaveForm):
        return None

    def cycles(corner: Callable[[], float]) -> float:
        return t * block.freq - block.phase - corner()

    corner = min(corners_of(block), key=lambda corner: abs(cycles(corner) - round(cycles(corner))), default=None)
    if corner is None:
        return None
    k = round(cycles(corner))
    return lambda: float((k + corner() + block.phase) / block.freq)


def moved_jump(run: Any, jumping: list[Any], ticks: bool) -> Array | None:
    """Return how the time of a jump follows the parameters (k,), None where it does not, or nothing jumps.

    Parameters
    ----------
    run : _TangentRun
        Which stands just before the jump.
    jumping : list
        The sources that have declared it.
    ticks : bool
        Whether a clock ticks at the same time.

    Raises
    ------
    DiagramError
        Something else is done at the same time, so that there is no derivative.
    """
    tuned = {id(entry.block) for entry in run.parameters.entries}
    readers = {id(b): _jump_time(b, run.t) for b in jumping if id(b) in tuned}
    known = {key: reader for key, reader in readers.items() if reader is not None}
    if not known:
        return None
    slopes = run.parameters.slopes(lambda: np.array([reader() for reader in known.values()]))
    rows = dict(zip(known, slopes.T, strict=True))
    still = np.zeros(len(slopes))
    leaping = [b for b in jumping if _leaps(b, run.t)] if slopes.any() else []
    moves = [rows.get(id(b), still) for b in leaping]
    if not any(row.any() for row in moves):
        return None
    names = " and ".join(str(b.name) for b in leaping)
    if run.t in (run.start_time, run.end):
        run.notes.append(
            f"{names} jumps where the run {'begins' if run.t < run.end else 'ends'}; what it does by coming "
            "earlier or later has a derivative on one side only, and is left out"
        )
        return None
    if any(not np.array_equal(row, moves[0]) for row in moves) or ticks:
        others = "" if len(leaping) > 1 else ", where a clock ticks"
        raise DiagramError(
            f"gradient: {names} jump{'s' * (len(leaping) == 1)} at t = {run.t:.9g}{others or ', together'}, and "
            "only one of both moves with the parameters: there is no derivative; move one of them a little"
        )
    return moves[0]


def _leaps(b: Any, t: float) -> bool:
    """Tell whether the outputs of a source change where it has declared a jump, and do not only bend."""
    width = JUMP_WIDTH * float(np.spacing(t))
    given = [slot.value for slot in b._inport_slots]
    before, after = (b.output(at, given, None) for at in (t - width, t + width))
    least = _LEAP * (1.0 + max(float(np.max(np.abs(v), initial=0.0)) for v in after))
    return any(bool(np.any(np.abs(np.subtract(u, v)) > least)) for u, v in zip(before, after, strict=True))


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
