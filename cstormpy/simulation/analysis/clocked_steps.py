"""Steps of a diagram with clocks whose inputs are held from outside: those of a run, which ticks on the way.

What is due where they end is left to the steps that go on from there, and is done by the inputs of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from cstormpy.arrays import Array
from cstormpy.kernels.rungekutta import CLOSED, EARLIEST, JUMP, LATEST, TIME
from cstormpy.simulation.analysis.stepped_by_others import Start, SteppedByOthers, settled_within
from cstormpy.simulation.compiled.slices import Compiled, Slices
from cstormpy.simulation.edges import Edges
from cstormpy.simulation.step_control import ATOL, JUMP_WIDTH, RTOL, SAME_TIME, shortest_step
from cstormpy.simulation.steppers import StepFailed

#: Of how many steps edges are looked up at once, where few come in each.
_AT_ONCE = 64


class _Rules:
    """The rules of steps, as slices of a run ask for them; of fixed ones the length is said later."""

    rtol, atol, max_step, fixed = RTOL, ATOL, math.inf, 0.0


class ClockedSteps:
    """Steps of fixed length from one time to another, cut where something ticks or jumps.

    Parameters
    ----------
    found : SteppedByOthers
    compiled : Compiled
        Its function, and its sampled states z.
    slices : Slices
        Steps of a fixed length of it.

    Attributes
    ----------
    fresh : bool
        Whether no step has been taken since the start: until then what blocks hold is computed.
    """

    def __init__(self, found: SteppedByOthers, compiled: Compiled, slices: Slices) -> None:
        self._found, self._compiled, self._slices = found, compiled, slices
        slices.limit(_Rules, SAME_TIME, JUMP_WIDTH, 0.0)
        self._settles_in_python = bool(found.diagram.settling) and not compiled.program.closes
        self._flags = list(compiled.program.flags.values())
        self._edges, self._of_samples = Edges.of([]), np.zeros(0)
        self._looked_up = math.inf, -math.inf  # from when to when edges are among the jumps of the slices
        self.fresh = False

    @contextmanager
    def kept(self) -> Iterator[Callable[[], None]]:
        """Let all stay as it was where what is done within fails; yield what puts it back before."""
        z, slices, fresh = self._compiled.z, self._slices, self.fresh
        arrays = z, slices.clocks, slices.how, slices.at
        before = [each.copy() for each in arrays]
        jumps, edges = slices.jumps, (self._edges, self._of_samples, self._looked_up)

        def put_back() -> None:
            for each, values in zip(arrays, before, strict=True):
                each[:] = values
            slices.jumps, self.fresh, (self._edges, self._of_samples, self._looked_up) = jumps, fresh, edges

        try:
            yield put_back
        except BaseException:
            put_back()
            raise

    def begin(self, start: Start) -> None:
        """Stand at a start, with the samples that the blocks have."""
        self._compiled.z[:], ticks, self._of_samples = self._found.beginning(start)
        self._edges, self._looked_up = Edges.of(self._found.sources), (math.inf, -math.inf)
        self._slices.schedule(start.t, True, False, ticks, self._of_samples)
        self._slices.at[EARLIEST] = -np.inf
        self.fresh = any(self._compiled.z[self._flags])

    def hold(self) -> None:
        """Have blocks hold the outputs that have just been computed."""
        c = self._compiled
        begins = {clock: first - part.start for clock, part, first in c.program.clocks}
        for b, part in c.program.held:
            first = begins[b._clock]
            c.z[part] = c.out[first + part.start : first + part.stop]

    def go(self, t: float, x: Array, end: float, h: float, put_back: Callable[[], None]) -> Array:
        """Return the state at a time, from that at another, by steps of a length; the signals of then stand in out.

        Where machine code does not close a loop, all is `put_back`, and Python settles states after each step.

        Raises
        ------
        StepFailed
            Where a block fails, or a state is not finite, in the step from `TIME`.
        BlockError
            Naming a loop that a step has opened too far.
        """
        program, how = self._compiled.program, self._slices.how
        self._look_ahead(t, end)
        try:
            return self._go(t, x, end, h, self._settles_in_python)
        except StepFailed:
            if not program.closes or program.error is not None or not np.isfinite(self.tried).all():
                raise
        put_back()
        self._look_ahead(t, end)
        how[CLOSED] = 0
        try:
            return self._go(t, x, end, h, True)
        finally:
            how[CLOSED] = program.closes

    def _look_ahead(self, t: float, end: float) -> None:
        """Have steps from a time to another end where sources jump."""
        if not self._edges.first.size:
            return
        begin, last = t - SAME_TIME * max(1.0, abs(t)), end + SAME_TIME * max(1.0, abs(end))
        if begin < self._looked_up[0] or last > self._looked_up[1]:
            until = last + (end - t) * (_AT_ONCE // (1 + self._edges.between(begin, last).size))
            of_samples = self._of_samples[(self._of_samples >= begin) & (self._of_samples <= until)]
            self._slices.jumps = np.union1d(of_samples, self._edges.between(begin, until))
            self._looked_up = begin, until
        self._slices.how[JUMP] = self._slices.jumps.searchsorted(begin)

    def _go(self, t: float, x: Array, end: float, h: float, by_python: bool) -> Array:
        h = max(h, shortest_step(end))
        if self.fresh:
            self._rate(t, x)
            self.hold()
            self._compiled.z[self._flags], self.fresh = 0.0, False
        slices = self._slices
        while True:
            self._rate(t, x)
            good = slices.go_on(t, x, self._next_stop(t, end, h) if by_python else end, h)
            self._compiled.program.raise_interrupt()
            if not good:
                raise StepFailed
            if not by_python:
                if slices.at[LATEST] < end:  # signals are asked for before a jump there, and are seen behind it
                    self._rate(end, slices.x)
                return slices.x.copy()
            t, x = slices.time, settled_within(self._found.diagram, slices.x, slices.time)
            if t >= end:
                self._rate(t, x)
                return x

    @property
    def tried(self) -> Array:
        """The state at the end of the step that failed last."""
        return self._slices.tried

    def failing(self) -> int:
        """Return the number of the block that fails where the last step failed, at ticks or beside, 0 if none does."""
        c, slices = self._compiled, self._slices
        for live in (0.0, 1.0):
            c.z[self._flags] = live
            if failed := c.rate(max(slices.time, slices.earliest), slices.x):
                return failed
        return 0

    def _next_stop(self, t: float, end: float, h: float) -> float:
        """Return up to where steps are taken where Python settles states: one at once, and none beyond a tick."""
        ticks, jumps = self._slices.pending()
        first = min([t + h, *(when for when, _ in ticks if when > t), *jumps[jumps > t]])
        return first if first < end - 1e-9 * h else end

    def _rate(self, t: float, x: Array) -> None:
        """Find the derivative at a time and a state."""
        if self._compiled.rate(max(t, self._slices.earliest), x):
            self._slices.at[TIME] = t
            raise StepFailed
