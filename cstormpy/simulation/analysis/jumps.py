"""Jumps that a run with derivatives meets: of functions and tables, of sources, and what decides when they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bdsim.blocks.functions import Interpolate
from bdsim.blocks.sources import Piecewise, Ramp, Step, WaveForm
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError
from cstormpy.graph.dependence import inputs_read
from cstormpy.graph.differences import MOVED
from cstormpy.graph.look_ups import SEARCH, SEARCH_BELOW
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.primitives import DIV, EQUAL, LARGER, SELECT, UNEQUAL
from cstormpy.graph.switching_functions import SidesOfChoices, may_jump
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.repeatability import is_of_user
from cstormpy.simulation.run_start import corners_of
from cstormpy.simulation.step_control import JUMP_WIDTH

_Point = tuple[float, Array]
#: Kinds of tables whose entries follow each other with jumps.
_TABLES = ("nearest", "nearest-up", "previous", "next")
#: So often a step is halved, and this part of the change within it that is left then is a jump.
_HALVINGS, _LEFT = 30, 0.1
#: A change smaller than this part of the size is none.
_NONE = 1e-9
#: One half of a step with more than this part of the change is looked at closely.
_UNEVEN = 0.7
#: A rate that changes by more than this part of itself from one step to the next turns abruptly.
_TURN = 0.5


class _Watched:
    """A block whose function may jump, and where its inputs and outputs stand among what is looked at.

    Of one that is `traced` no slope is a difference, which would take a jump for one.
    """

    def __init__(self, block: Any, spans: list[tuple[int, tuple[int, ...]]], outputs: list[int], traced: bool) -> None:
        self.block, self.outputs, self.traced = block, outputs, traced
        sizes = [int(np.prod(shape)) for _, shape in spans]
        self.inputs = [k for (first, _), size in zip(spans, sizes, strict=True) for k in range(first, first + size)]
        self._shapes, self._cuts = [shape for _, shape in spans], np.cumsum(sizes)[:-1]

    def value(self, t: float, u: Array) -> Array:
        """Return the outputs, one behind the other; not numbers where the function, of a point between, fails."""
        parts = u.tolist()
        if any(self._shapes):
            split = zip(np.split(u, self._cuts), self._shapes, strict=True)
            parts = [part.reshape(shape) if shape else float(part[0]) for part, shape in split]
        try:
            return np.concatenate([np.ravel(y) for y in self.block.output(t, parts, None)], dtype=float)
        except Exception:  # it need not be defined there
            return np.full(len(self.outputs), np.nan)


class JumpWatch:
    """Looks for jumps of the user's functions, and of tables, between the points of a run.

    A difference does not see a jump beside it, and takes one within it for a slope; that the jump comes earlier or
    later with the parameters is in neither.

    Parameters
    ----------
    program : Program
    diagram : Diagram
    owned : dict
        The block's id and the port that a slot belongs to, by the slot's id.
    tuned : list
        The blocks that have a parameter among those differentiated to.

    Attributes
    ----------
    columns : list of int
        Places of out that it wants to see.
    """

    def __init__(self, program: Program, diagram: Diagram, owned: dict[int, tuple[int, int]], tuned: list[Any]) -> None:
        self.columns: list[int] = []
        self._tuned = {id(b) for b in tuned}
        self._left: list[_Watched] = []
        for b, _, ins, *_ in diagram.order:
            if not (b.nin and _may_jump(b)):
                continue
            nodes = _nodes_of(program, b, [owned[id(slot)] for slot in ins])
            traced = all(node.primitive.named for node in nodes)
            if not traced or any(_jumps_unlocated(program, node) for node in nodes):
                spans = [self._span(*program.columns[owned[id(slot)]]) for slot in ins]
                outs = [self._span(*program.columns[id(b), port]) for port in range(b.nout)]
                places = [k for first, shape in outs for k in range(first, first + int(np.prod(shape)))]
                self._left.append(_Watched(b, spans, places, traced))

    def _span(self, first: int, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        begin = len(self.columns)
        self.columns += range(first, first + int(np.prod(shape)))
        return begin, shape

    def look(self, t: Array, values: Array, tangents: Array) -> list[str]:
        """Return notes about jumps, one for each block in a run.

        Parameters
        ----------
        t : ndarray, (N,)
            Ends of steps, without anything scheduled between them.
        values, tangents : ndarray, (N, len(columns)), (N, k, len(columns))
            The signals there, and their derivatives to the parameters.
        """
        notes = []
        for w in list(self._left):
            with np.errstate(all="ignore"):
                when = self._first(w, t, values, tangents)
            if when is not None:
                self._left.remove(w)
                notes.append(
                    f"the function of {w.block.name} jumps at t = {when:.6g}; that the jump comes earlier or later is "
                    "not in the derivative, which can be far off: make the function smooth there"
                )
        return notes

    def _first(self, w: _Watched, t: Array, values: Array, tangents: Array) -> float | None:
        """Return when a block jumps first, of what is looked at closely."""
        u, du, y, dy = values[:, w.inputs], tangents[..., w.inputs], values[:, w.outputs], tangents[..., w.outputs]
        least = _NONE * (1.0 + np.abs(y).max(axis=0, initial=0.0))
        moves = np.any(du != 0.0, axis=(1, 2)) | (id(w.block) in self._tuned)
        for j in range(0 if w.traced else y.shape[1]):
            i, k = np.unravel_index(np.argmax(np.abs(dy[..., j])), dy.shape[:2])
            along = float(np.abs(du[i, k]).max())
            if along > 0.0:  # whether what was taken for the largest slope is one
                side = MOVED * (float(np.abs(u).max()) or 1.0) / along * du[i, k]
                if _Way(w, (t[i], u[i] - side), (t[i], u[i] + side)).jump(j, least[j]) is not None:
                    return float(t[i])
        steps, ahead = self._ways(t, u, moves)
        ways = [_Way(w, (t[i], u[i]), (t[i + 1], u[i + 1]), (y[i], y[i + 1])) for i in steps]
        ways += [_Way(w, begin, end) for begin, end in ahead]
        if not ways:
            return None
        halves = np.array([[np.abs(way.value(end) - way.value(0.5)) for end in (0.0, 1.0)] for way in ways])
        change = np.nan_to_num(halves.sum(axis=1))
        close = (halves.max(axis=1) > _UNEVEN * change) & (change > least)
        close[np.argmax(change, axis=0), np.arange(y.shape[1])] = True
        found = [ways[row].jump(int(j), least[j]) for row, j in zip(*np.nonzero(close), strict=True)]
        return min((when for when in found if when is not None), default=None)

    @staticmethod
    def _ways(t: Array, u: Array, moves: NDArray[np.bool_]) -> tuple[list[int], list[tuple[_Point, _Point]]]:
        """Return the steps of the inputs, and where they turn abruptly, as a jump makes them, the way ahead."""
        span = np.diff(t)[:, None]
        rate = np.diff(u, axis=0) / span
        steps = np.flatnonzero((moves[:-1] | moves[1:]) & rate.any(axis=1)).tolist()
        turn = np.abs(np.diff(rate, axis=0)) > _TURN * np.maximum(np.abs(rate[1:]), np.abs(rate[:-1]))
        turns = (np.flatnonzero(turn.any(axis=1) & moves[1:-1]) + 1).tolist()
        return steps, [((t[i], u[i]), (t[i + 1], u[i] + rate[i - 1] * span[i])) for i in turns]


def _may_jump(b: Any) -> bool:
    return is_of_user(b) or (isinstance(b, Interpolate) and not b.time and getattr(b.f, "_kind", "") in _TABLES)


#: What jumps elsewhere than at places that are found in the graph where rates depend on it.
_SEARCHES = frozenset({SEARCH, SEARCH_BELOW})
_UNFOUND = _SEARCHES | {EQUAL, UNEQUAL}


def _is_indifferent(node: Node) -> bool:
    """Tell whether nothing jumps where a comparison changes: it chooses a pivot, or asks if a number is one."""
    return node.primitive is LARGER or (node.primitive in (EQUAL, UNEQUAL) and node.args[0] is node.args[1])


def _nodes_of(program: Program, b: Any, given: Sequence[tuple[int, int]]) -> list[Node]:
    """Return the nodes of a block: those between its inputs and its outputs."""
    out = program.routine.outputs["out"]
    columns = [program.columns[key] for key in given]
    made = [program.columns[id(b), port] for port in range(b.nout)]
    inputs, outputs = (
        [x for first, shape in some for x in out[first : first + int(np.prod(shape))] if isinstance(x, Node)]
        for some in (columns, made)
    )
    found: list[Node] = []
    seen, stack = {node.index for node in inputs}, outputs
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen.add(node.index)
            found.append(node)
            stack += [a for a in node.args if isinstance(a, Node)]
    return found


def _jumps_unlocated(program: Program, node: Node) -> bool:
    """Tell whether a node may jump where a run with derivatives does not locate it."""
    primitive = node.primitive
    unfound = primitive in _UNFOUND and node.args[0] is not node.args[1]  # nan is not itself
    if unfound or (may_jump(primitive) and node.index not in program.switched):
        return _moves(node)
    return primitive is DIV and _moves(node.args[1])  # by what may pass zero


def _moves(x: Any) -> bool:
    """Tell whether a number may change during a run."""
    return any(node.primitive is INPUT and node.data[0] != "p" for node in alive([x]))


def _between(begin: _Point, end: _Point, s: float) -> _Point:
    return begin[0] + s * (end[0] - begin[0]), begin[1] + s * (end[1] - begin[1])


class _Way:
    """The straight way between two inputs of a block, and its outputs along it, each of which is asked once."""

    def __init__(self, w: _Watched, begin: _Point, end: _Point, known: tuple[Array, Array] | None = None) -> None:
        self._w, self._begin, self._end = w, begin, end
        self._values = {} if known is None else dict(zip((0.0, 1.0), known, strict=True))

    def value(self, s: float) -> Array:
        """Return the outputs at a part of the way."""
        if s not in self._values:
            self._values[s] = self._w.value(*_between(self._begin, self._end, s))
        return self._values[s]

    def jump(self, j: int, least: float) -> float | None:
        """Return when an output jumps, None where it does not.

        Of two halves the one with more change is followed, whose part is a half at least: on a bend or slope it is
        soon less than what a jump would leave, and stays so.
        """
        low, high, first, gap = 0.0, 1.0, 0.0, 0.0
        for k in range(_HALVINGS):
            s = 0.5 * (low + high)
            below, middle, above = (float(self.value(at)[j]) for at in (low, s, high))
            if math.isnan(middle) and 0.5**k < _LEFT:  # as 0/0 in the middle of a jump, which is all that is left
                break
            if abs(middle - below) >= abs(above - middle):
                high, gap = s, abs(middle - below)
            else:
                low, gap = s, abs(above - middle)
            first = gap if k == 0 else first
            if gap <= max(least, _LEFT * first):
                return None
        return float(_between(self._begin, self._end, high)[0]) if gap > _LEFT * first else None  # not where it fails


#: A source whose output changes by a smaller part of it where it declares a jump only bends there.
_LEAP = 1e-9


def tells_when(block: Any) -> bool:
    """Tell whether the times at which a source jumps are known as functions of its parameters."""
    return isinstance(block, (Step, Ramp, Piecewise, WaveForm)) or hasattr(type(block), "edge_time")


def jump_time(block: Any, t: float) -> Callable[[], float] | None:
    """Return what reads, from the parameters that a source has then, when the jump at a time comes; None if unknown.

    A wave jumps in cycle k at (k + corner + phase) / freq. A source of another kind tells itself, by `edge_time`.
    """
    if hasattr(type(block), "edge_time"):
        return block.edge_time(t)
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


def moved_jump(run: Any, jumping: list[Any], clocks: list[Any]) -> Array | None:
    """Return how the time of a jump follows the parameters (k,), None where it does not, or nothing jumps.

    Parameters
    ----------
    run : _TangentRun
        Which stands just before the jump.
    jumping : list
        The sources that have declared it.
    clocks : list
        Those that tick at the same time.

    Raises
    ------
    DiagramError
        Something else is done at the same time, and the jump changes it, so that there is no derivative.
    """
    tuned = {id(entry.block) for entry in run.parameters.entries}
    readers = {id(b): jump_time(b, run.t) for b in jumping if id(b) in tuned}
    known = {key: reader for key, reader in readers.items() if reader is not None}
    if not known:
        return None
    slopes = run.values @ run.parameters.slopes(lambda: np.array([reader() for reader in known.values()]))
    rows = dict(zip(known, slopes.T, strict=True))
    still = np.zeros(len(slopes))
    leaping = [b for b in jumping if _leaps(run, b)] if slopes.any() else []
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
    apart = any(not np.array_equal(row, moves[0]) for row in moves)
    sampling = [] if apart else run.changed_by_a_jump(clocks, moves[0])
    if apart or sampling:
        others = f", where a clock ticks and {' and '.join(sampling)} samples what it changes" if sampling else ""
        raise DiagramError(
            f"gradient: {names} jump{'s' * (len(leaping) == 1)} at t = {run.t:.9g}{others or ', together'}, and "
            "only one of both moves with the parameters: there is no derivative; move one of them a little"
        )
    return moves[0]


def _leaps(run: Any, b: Any) -> bool:
    """Tell whether the outputs of a source, or a delay, change where it has declared a jump, and do not only bend."""
    t, width = run.t, JUMP_WIDTH * float(np.spacing(run.t))
    given = [slot.value for slot in b._inport_slots]
    x = run.diagram.cells[b][0] if b in run.diagram.cells else None
    before, after = (b.output(at, given, x) for at in (t - width, t + width))
    least = _LEAP * (1.0 + max(float(np.max(np.abs(v), initial=0.0)) for v in after))
    return any(bool(np.any(np.abs(np.subtract(u, v)) > least)) for u, v in zip(before, after, strict=True))


def follows(number: Any, tuned: frozenset[int]) -> bool:
    """Tell whether a number is one of more than time and of numbers of p that are not tuned, as the row of a table."""
    for node in alive([number]):
        kind = node.data[0] if node.primitive in (INPUT, TABLE) else "t"
        first, count = (node.data[1], node.data[2] if node.primitive is TABLE else 1) if kind != "t" else (0, 0)
        if kind not in ("t", "p") or not tuned.isdisjoint(range(first, first + count)):
            return True
    return False


def deciding(program: Program, known: frozenset[str] = frozenset()) -> frozenset[int]:
    """Return which numbers of p decide when something jumps.

    Comparisons that only bend a value, as those of a limit or of a ramp, do not count, nor do those of blocks whose
    jumps are `known` as events, those that are located, as zero crossings are that blocks declare, and those of
    numbers of p alone, as whether a gain is zero, which do not change on the way.
    """
    located = {place for place, _, _ in [*program.switches, *(program.guards or ())]}
    signals = [x for place, x in enumerate(program.routine.outputs["out"]) if place not in located]
    nodes = alive([*signals, *program.routine.outputs["xd"]])
    reads = inputs_read(nodes, "p")
    sides = SidesOfChoices()
    choices = [
        (node.args[0].index, sides.only_bend(node))
        for node in nodes
        if node.primitive is SELECT and node.args[0].index not in program.switched
    ]
    bent, jumping = ({index for index, bends in choices if bends is wanted} for wanted in (True, False))
    found, fixed = set[int](), set[int]()
    for node in nodes:
        parts = [a.index for a in node.args if isinstance(a, Node)]
        if fixed.issuperset(parts) if parts else node.primitive in (INPUT, TABLE) and node.data[0] == "p":
            fixed.add(node.index)
            continue
        if program.owner_of.get(node.index, "") in known or node.index in program.switched or _is_indifferent(node):
            continue
        if node.primitive in _SEARCHES or (node.primitive.truth and (node.index in jumping or node.index not in bent)):
            found |= reads[node.index]
    return frozenset(found)
