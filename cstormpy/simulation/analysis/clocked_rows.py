"""Clocks of many copies of a diagram that are stepped from outside, each of which stands at a time of its own.

They tick, and steps are cut, as in those of one copy; what is said of one there is here said of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.simulation.analysis.stepped_by_others import Start, SteppedByOthers
from cstormpy.simulation.edges import Edges
from cstormpy.simulation.step_control import JUMP_WIDTH, SAME_TIME


class ClockedRows:
    """Sampled states of the rows, and when their clocks tick next.

    Parameters
    ----------
    found : SteppedByOthers
    rows : int

    Attributes
    ----------
    z : ndarray (rows, sampled states)
    due : ndarray of bool (rows,)
        Whether clocks that tick where a row stands are still to do so.
    earliest, latest : ndarray (rows, 1)
        Between which times signals are asked for in the present steps, beside what jumps.
    """

    def __init__(self, found: SteppedByOthers, rows: int) -> None:
        self._found, program = found, found.program
        self._clocks = [clock for clock, _, _ in program.clocks]
        self.z = np.zeros((rows, program.sampled_size))
        self._number, self._fresh = np.zeros((rows, len(self._clocks))), np.zeros(rows, dtype=bool)
        self.due = np.ones(rows, dtype=bool)
        self._jumps = np.full((rows, len(found.jumps)), -np.inf)
        self.earliest, self.latest = np.full((rows, 1), -np.inf), np.full((rows, 1), np.inf)
        self._flags = [program.flags[clock] for clock in self._clocks]
        #: Of each clock where in z its states stand and what its blocks hold, where among the new ones, and how many
        #: are its states.
        self._parts: list[tuple[slice, slice, int]] = []
        self.columns: list[int] = []
        for clock, part, first in program.clocks:
            count, begin = part.stop - part.start, len(self.columns)
            own = sum(p.stop - p.start for b, p in program.sampled if b._clock is clock)
            self._parts.append((part, slice(begin, begin + count), own))
            self.columns += range(first, first + count)
        #: All that changes.
        self._changing = self.z, self._number, self._fresh, self.due, self._jumps

    def kept(self) -> tuple[NDArray[Any], ...]:
        """Return all that changes, to be put back."""
        return tuple(each.copy() for each in self._changing)

    def put_back(self, kept: tuple[NDArray[Any], ...]) -> None:
        """Stand where it stood."""
        for each, before in zip(self._changing, kept, strict=True):
            each[:] = before
        self.earliest[:], self.latest[:] = -np.inf, np.inf

    def begin(self, rows: Any, start: Start) -> None:
        """Have some rows stand at a start, with the samples that the blocks have."""
        z, ticks, jumps = self._found.beginning(start)
        self._T, self._offset = (np.array([getattr(c, name) for c in self._clocks]) for name in ("T", "offset"))
        self._edges = Edges.of(self._found.sources)
        self.z[rows], self._number[rows] = z, [number for _, number in ticks]
        self._fresh[rows], self.due[rows] = z[self._flags].any(), start.due
        self._jumps[rows] = -np.inf
        self._jumps[rows, : len(jumps)] = jumps

    def fill_lanes(self, count: int) -> None:
        """Let lanes without a copy do what the first copy does."""
        for each in self._changing:
            each[count:] = each[0]

    def tick(self, t: Array, going: NDArray[np.bool_], computed: Callable[[], Array]) -> None:
        """Have clocks tick that are due, in rows that go on, all from the signals that are `computed` then."""
        due = (self._next() < t + _tolerance(t)) & going
        self.due |= going[:, 0]
        jumps = np.hstack([self._jumps, self._edges.after(t - _tolerance(t))])
        last = np.where(np.abs(jumps - t) <= _tolerance(t), np.maximum(jumps, t), -np.inf).max(axis=1, keepdims=True)
        self.earliest[:] = last + JUMP_WIDTH * _spacing(last)
        self.latest[:] = np.inf
        taken = due | (self._fresh[:, None] & going)
        if not taken.any():
            return
        self.z[:, self._flags] = taken
        after = computed()
        for k, (part, new, own) in enumerate(self._parts):
            held = slice(part.start + own, part.stop), slice(new.start + own, new.stop)
            for rows, (old, now) in ((due[:, k], (part, new)), (taken[:, k], held)):
                self.z[rows, old] = after[rows, now]
        self.z[:, self._flags] = 0.0
        self._number += due
        self._fresh &= ~going[:, 0]

    def stop(self, t: Array, end: Array) -> Array:
        """Return up to where each row may be stepped at once."""
        tolerance = _tolerance(t)
        jumps = np.where(self._jumps > t + tolerance, self._jumps, np.inf)
        edge = self._edges.after(t + tolerance)
        first = np.hstack([self._next(), jumps, edge]).min(axis=1, keepdims=True)
        until = np.maximum(np.where(first > end - tolerance, end, first), t)  # what is late is done now
        jumps = np.hstack([jumps, edge])
        first = np.where(np.abs(jumps - until) <= tolerance, np.minimum(jumps, until), np.inf).min(
            axis=1, keepdims=True
        )
        self.latest[:] = first - JUMP_WIDTH * _spacing(first)
        return until

    def _next(self) -> Array:
        return self._number * self._T + self._offset


def _tolerance(t: Array) -> Array:
    return SAME_TIME * np.maximum(1.0, np.abs(t))


def _spacing(t: Array) -> Array:
    return np.where(np.isfinite(t), np.spacing(np.abs(t)), 0.0)
