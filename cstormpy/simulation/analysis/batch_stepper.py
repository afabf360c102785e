"""Many copies of a diagram that are stepped from outside side by side, eight in the lanes of one machine vector."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, real_array
from cstormpy.errors import BlockError, DiagramError, InvalidValue, ShapeError
from cstormpy.graph.arrays import symbols
from cstormpy.graph.calls import batch_caller
from cstormpy.graph.code_cache import machine_for
from cstormpy.graph.emission import LANES
from cstormpy.graph.module import text_for_rows
from cstormpy.graph.routine import Routine
from cstormpy.simulation.analysis.clocked_rows import ClockedRows
from cstormpy.simulation.analysis.external import (
    REMEDY,
    fixed_method,
    input_not_finite,
    ports_of,
    refuse_copies,
    those_of,
)
from cstormpy.simulation.analysis.model import Input
from cstormpy.simulation.analysis.stepped_by_others import AssemblySteppedByOthers, settled_within, stepped_by_others
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.step_control import shortest_step

#: Rows of which all stages are computed before those of the next: they stay in the processor's cache.
_ROWS = 1024


class BatchStepper:
    """Steps many copies of a diagram at once, each with states and inputs of its own; see `Simulation.batch_stepper`.

    Attributes
    ----------
    t : ndarray, (count,)
        The times.
    x : ndarray, (count, n)
        The states.
    count : int
    inputs, outputs, states : tuple of str
        What the columns of u, y and x are.
    sampled : tuple of str
        The names of the sampled blocks.
    """

    def __init__(
        self, sim: Any, bd: Any, inputs: Any, outputs: Any, count: int, x: Any, solver: str, substeps: int
    ) -> None:
        self.count = whole_number(count, "batch_stepper: count", 1, 10_000_000)
        self._substeps = whole_number(substeps, "batch_stepper: substeps", 1, 10_000)
        self._method = fixed_method(solver, "batch_stepper")
        found = stepped_by_others(sim, bd, inputs, outputs, x, "batch_stepper", _AssemblyOfRows)
        program, state = found.program, found.first[1][found.kept]
        _refuse_calls(program)
        self._found, self._diagram, self._u0 = found, found.diagram, found.u0
        self.inputs, self.outputs, self.states, self.sampled = found.inputs, found.outputs, found.states, found.sampled
        #: What each row has of its own, and how many of each.
        sizes = {"t": 1, "x": state.size, "z": program.sampled_size, "u": self._u0.size}
        self._derivative = _Rows(program, "xd", list(program.routine.outputs["xd"]), sizes)
        signals = program.routine.outputs["out"]
        self._signals = _Rows(program, "y", [signals[k] for k in found.seen], sizes)
        self._wired = _Rows(program, "wired", [signals[k] for k in found.wired], sizes, 0.0)
        self._closing = None
        if program.closing is not None:
            shut, status = list(program.closing.outputs["xd"]), program.closing.status
            self._closing = _Rows(program, "shut", shut, sizes, status)
        rows = max(self.count, LANES)  # of which the last are not looked at
        self._clocked = ClockedRows(found, rows) if found.stops else None
        self._z = np.zeros((rows, 0))
        if self._clocked is not None:
            self._z = self._clocked.z
            self._ticked = _Rows(program, "ticked", [signals[k] for k in self._clocked.columns], sizes)
            self._after = np.zeros((rows, len(self._clocked.columns)))
        self._t, self._x, self._u = np.zeros((rows, 1)), np.zeros((rows, state.size)), np.zeros((rows, self._u0.size))
        self._y = np.zeros((rows, len(self.outputs)))
        #: What the times of the rows have lost by rounding.
        self._late = np.zeros((rows, 1))
        self._at, self._moment = np.zeros_like(self._x), np.zeros_like(self._t)
        self._end = np.zeros_like(self._x)
        self._stages = [np.zeros_like(self._x) for _ in range(self._method.stages)]
        self._part = np.zeros((min(rows, _ROWS + LANES), state.size))
        self.reset()

    def __repr__(self) -> str:
        """Return how many copies there are, and what u and y of each are."""
        return f"<batch stepper, {self.count} {'copy' if self.count == 1 else 'copies'}: {ports_of(self)}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        refuse_copies("batch_stepper")

    @property
    def t(self) -> Array:
        """The times, in an array of their own."""
        return self._t[: self.count, 0].copy()

    @property
    def x(self) -> Array:
        """The states, in an array of their own."""
        return self._x[: self.count].copy()

    def reset(self, x: Any = None, t: float | None = None, where: Any = None, sampled: Any = None) -> Array:
        """Go back to the start, all or some, with the inputs as they are wired there; return the outputs of all.

        Numbers of blocks that have been set since are taken up here, by all copies, and not between steps.

        Parameters
        ----------
        x : array_like, dict, SavedState, result or path, optional
            States (n,) or as in `stepper`, for all that are reset, or a row for each; those of the start unless given.
        t : float, optional
        where : array of bool (count,), optional
            Which are reset; all unless given.
        sampled : dict, optional
            States of sampled blocks, by their names, (k,), or a row for each that is reset.
        """
        rows: Any = slice(self.count) if where is None else np.flatnonzero(_mask(where, self.count))
        n = self._x.shape[1]
        before = self._t, self._x, self._u, self._late
        clocked = self._clocked
        kept = None if clocked is None else clocked.kept()
        chosen = self.count if where is None else int(rows.size)
        shapes, samples = ((n,), (chosen, n)), self._found.samples_of(sampled, chosen)
        with self._found.begun(x, t, "batch_stepper", lambda x: real_array(x, "reset: x", *shapes)) as start:
            state = self._settled(np.atleast_2d(start.x)) if self._diagram.settling else start.x
            self._t, self._x, self._u, self._late = (each.copy() for each in before)
            self._x[rows], self._u[rows], self._t[rows], self._late[rows] = state, self._u0, start.t, 0.0
            try:
                if clocked is not None:
                    clocked.begin(rows, start)
                for part, values in samples:
                    self._z[rows, part] = values
                self._enter_wired(rows)
                return self.look()
            except BaseException:  # Ctrl-C too
                self._t, self._x, self._u, self._late = before
                if clocked is not None and kept is not None:
                    clocked.put_back(kept)
                raise

    def state_of(self, row: int) -> SavedState:
        """Return where a copy stands, to go back to by `reset`, or to go on from by `Simulation.run`."""
        row = whole_number(row, "state_of: row", 0, self.count - 1)
        at, clocked = (float(self._t[row, 0]), self._x[row], self._z[row]), self._clocked
        return self._found.state(*at, clocked is not None and bool(clocked.due[row]))

    def _enter_wired(self, rows: Any) -> None:
        """Let inputs of some rows be as they are wired, which may follow from one another."""
        found = np.zeros_like(self._u)
        for _ in self.inputs:
            self._fill_lanes()
            self._wired.fill((self._t, self._x, self._z, self._u), found)
            wired = found[rows]
            if (wired == self._u[rows]).all():
                break
            self._u[rows] = wired

    def step(self, u: ArrayLike, dt: float) -> Array:
        """Hold the inputs for a time, and return the outputs after it, before ticks that are due, a row for each copy.

        Parameters
        ----------
        u : array_like, (count, m)
        dt : float
            How long [s].

        Raises
        ------
        BlockError
            A block that fails, or a state that is not finite, with the row; times, states and inputs stay as they were.
        """
        given = real_array(u, "step: u", (self.count, self._u0.size), hint=those_of(self.inputs), finite=False)
        dt = positive(dt, "step: dt")
        before, kept = self._u.copy(), None if self._clocked is None else self._clocked.kept()
        self._u[: self.count] = given
        ahead = dt + self._late
        end = self._t + ahead
        try:
            found = self._stepped(dt, end)
        except BaseException as failure:  # Ctrl-C too
            self._u = before
            if self._clocked is not None and kept is not None:
                self._clocked.put_back(kept)
            bad = np.flatnonzero(~np.isfinite(given).all(axis=1))
            if bad.size and isinstance(failure, BlockError):
                raise input_not_finite(given[bad[0]], self.inputs, f" of row {bad[0]}") from None
            raise
        self._x, self._end = self._end, self._x
        self._t, self._late = end, ahead - (end - self._t)
        return found

    def rates(self, u: ArrayLike) -> Array:
        """Return the rates (count, n) of the states where the copies stand, with some inputs (count, m)."""
        given = np.zeros_like(self._u)
        given[: self.count] = real_array(u, "rates: u", (self.count, self._u0.size), hint=those_of(self.inputs))
        given[self.count :] = given[0]
        self._fill_lanes()
        found = np.zeros_like(self._x)
        self._derivative((self._t, self._x, self._z, given), found, 0, len(found), self.count)
        return found[: self.count].copy()

    def _stepped(self, dt: float, end: Array) -> Array:
        """Fill the states at the end of a step, and return the outputs there."""
        h = dt / self._substeps
        self._fill_lanes()
        self._end[:], self._moment[:] = self._x, self._t
        if self._clocked is not None:
            self._step_with_clocks(self._clocked, h, end)
        else:
            for _ in range(self._substeps):
                self._advance_all(h)
                self._moment += h
                if self._diagram.settling:
                    self._settle()
        if not np.isfinite(self._end[: self.count]).all():
            row, k = np.argwhere(~np.isfinite(self._end[: self.count]))[0]
            raise BlockError(
                f"step: state {self.states[k]!r} of row {row} is not finite at t = {self._t[row, 0] + dt:.9g}; take "
                "shorter steps, substeps="
            )
        return self._seen(end, self._end)

    def _step_with_clocks(self, clocked: ClockedRows, h: float, end: Array) -> None:
        """Take all rows to their ends by steps of a length, cut where their clocks tick on the way."""
        h = max(h, shortest_step(float(np.abs(end).max())))
        while (going := self._moment < end).any():
            clocked.tick(self._moment, going, self._computed_at_ticks)
            until = np.where(going, clocked.stop(self._moment, end), self._moment)
            to = np.minimum(self._moment + h, until)
            to = np.where(to > until - 1e-9 * h, until, to)
            self._advance_all(to - self._moment)
            self._moment[:] = to
            if self._diagram.settling:
                self._settle()

    def _computed_at_ticks(self) -> Array:
        """Return what the clocks that tick now make of each row."""
        assert self._clocked is not None
        t = np.maximum(self._moment, self._clocked.earliest)
        self._ticked((t, self._end, self._z, self._u), self._after, 0, len(t), self.count)
        return self._after

    def _settled(self, x: Array) -> Array:
        """Return the states (k, n) of starts as they are to be; loops, which may be far open there, Python closes."""
        if self._closing is not None and not self._diagram.closed and len(x) >= LANES:
            t, z, u = (np.zeros((len(x), each.shape[1])) for each in (self._t, self._z, self._u))
            found = np.empty_like(x)
            if self._closing.fill((t, x, z, u), found) == -1:
                return found
        return np.array([self._diagram.settled(row) for row in x])

    def _settle(self) -> None:
        """Have the states as they are to be after a step: loops closed, rotation vectors short."""
        if (
            self._closing is not None
            and self._closing.fill((self._moment, self._end, self._z, self._u), self._at) == -1
        ):
            self._end, self._at = self._at, self._end
            return
        for row in range(self.count):
            self._end[row] = settled_within(self._diagram, self._end[row], float(self._moment[row, 0]))
        self._end[self.count :] = self._end[0]

    def look(self) -> Array:
        """Return the outputs as they are now, a row for each copy, in an array of their own."""
        self._fill_lanes()
        return self._seen(self._t, self._x)

    def _seen(self, t: Array, x: Array) -> Array:
        self._signals((t, x, self._z, self._u), self._y, 0, len(x), self.count)
        return self._y[: self.count].copy()

    def _fill_lanes(self) -> None:
        """Let lanes without a copy do what the first copy does: nothing happens there that does nowhere else."""
        for rows in (self._t, self._x, self._u):
            rows[self.count :] = rows[0]
        if self._clocked is not None:
            self._clocked.fill_lanes(self.count)

    def _advance_all(self, h: Any) -> None:
        """Take a step of a length, or one of each row, with all rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # the row that fails is named
            for first in range(0, len(self._x), _ROWS):
                self._advance(first, min(first + _ROWS, len(self._x)), h)

    def _advance(self, first: int, stop: int, h: Any) -> None:
        """Take a step with some of the rows."""
        begin = max(0, stop - max(stop - first, LANES))
        rows = slice(begin, stop)
        m, x, at, part = self._method, self._end[rows], self._at[rows], self._part[: stop - begin]
        h = h[rows] if isinstance(h, np.ndarray) else h
        if begin < first:  # these have been advanced already, and are computed along
            x = x.copy()
        moment, before = self._moment[rows], self._moment[rows].copy()
        for s, K in enumerate(self._stages):
            _add(x, self._stages, m.A[s, :s], h, rows, at, part)
            np.add(before, m.c[s] * h, out=moment)
            if self._clocked is not None:
                np.clip(moment, self._clocked.earliest[rows], self._clocked.latest[rows], out=moment)
            self._derivative((self._moment, self._at, self._z, self._u), K, begin, stop, self.count)
        moment[:] = before
        _add(x, self._stages, m.b, h, rows, at, part)
        self._end[first:stop] = at[first - begin :]


def _add(x: Array, stages: list[Array], weights: Array, h: Any, rows: slice, out: Array, part: Array) -> None:
    """Fill a state and so much of each stage."""
    out[:] = x
    for K, weight in zip(stages, weights, strict=False):
        if weight != 0.0:
            np.multiply(K[rows], weight * h, out=part)
            np.add(out, part, out=out)


class _Rows:
    """A part of what a diagram's function finds, for rows of times, states, sampled states and inputs."""

    def __init__(
        self, program: Program, name: str, wanted: list[Any], sizes: dict[str, int], status: Any = None
    ) -> None:
        self._call: Callable[..., int] | None = None
        self._program, size = program, len(wanted)
        #: Which of what the rows have is given: not all diagrams have inputs, or are sampled.
        self._given = [k for k, (key, count) in enumerate(sizes.items()) if count or key in ("t", "x")]
        if not size:
            return
        given = {key: count for k, (key, count) in enumerate(sizes.items()) if k in self._given}
        status = program.routine.status if status is None else status
        routine = Routine(f"{name}_of", {"p": program.p.size}, given, {name: wanted}, status)
        shapes = {key: (count,) for key, count in (*given.items(), (name, size))}
        text = text_for_rows(routine, shapes)
        machine = machine_for("diagram_rows", hashlib.sha256(text.encode()).digest(), lambda: text)
        self._call = batch_caller(machine, routine.name, [program.p], list(shapes.values()))

    def __call__(self, rows: tuple[Array, ...], found: Array, start: int, stop: int, count: int) -> None:
        bad = self.fill(rows, found, start, stop)
        if bad != -1:
            self._raise(rows, found, bad, count)

    def fill(self, rows: tuple[Array, ...], found: Array, start: int = 0, stop: int | None = None) -> int:
        """Fill rows; return the first of a group of rows that is bad, or -1."""
        if self._call is None:
            return -1
        return self._call(*[rows[k] for k in self._given], found, start, len(found) if stop is None else stop)

    def _raise(self, rows: tuple[Array, ...], found: Array, first: int, count: int) -> None:
        """Say which of a group of rows is bad."""
        call, t = self._call, rows[0]
        assert call is not None
        for row in range(first, min(first + LANES, count)):
            eight = [np.repeat(a[row : row + 1], LANES, axis=0) for a in (*[rows[k] for k in self._given], found)]
            if call(*eight, 0, LANES) != -1:
                raise BlockError(f"batch_stepper: a block fails in row {row}, at t = {t[row, 0]:.9g}{REMEDY}")
        raise BlockError(f"batch_stepper: a block fails in one of the rows {first} to {first + LANES - 1}{REMEDY}")


class _AssemblyOfRows(AssemblySteppedByOthers):
    """A walk through a diagram, with inputs of which each sample has its own."""

    def _moved(self, given: Input, value: Any) -> Any:
        first = 0
        for key, other in self.inputs.items():
            if key == given.signal.key:
                break
            first += other.value.size
        nodes = [self.graph.input("u", first + k) for k in range(given.value.size)]
        return symbols(nodes).reshape(given.shape) if given.shape else nodes[0]


def _refuse_calls(program: Program) -> None:
    """Refuse what has no code for several samples side by side."""
    calling = program.calling_block()
    if calling is not None:
        raise DiagramError(
            f"batch_stepper: block {calling[0]!r} has no code for many rows, for which it must be traced: {calling[1]}"
            "; sim.stepper steps one copy, and gymnasium.vector.SyncVectorEnv several environments of one"
        )


def _mask(where: Any, count: int) -> NDArray[np.bool_]:
    found = np.asarray(where)
    if found.dtype != np.bool_:
        raise InvalidValue("reset: where: expected an array of truths")
    if found.shape != (count,):
        raise ShapeError(f"reset: where: expected shape ({count},), got {found.shape}")
    return found
