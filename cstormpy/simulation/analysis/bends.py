"""Signals that stay exactly where they bend in a run with derivatives: these are of one side then, as nobody knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.analysis.steps import Steps

#: Parameters are moved by these parts of their sizes, or of 1. Slopes on both sides that differ by more than this part
#: of them are two, if they do so by as much, within that part, for either: what rounding leaves is larger for the
#: smaller one.
_WIDE, _NARROW, _TWO, _SAME = 1e-6, 1e-9, 1e-3, 0.1
#: Small ones are moved by no more than this part of what they are, unless they are zero but for rounding.
_OWN, _ZERO = 1e-3, 1e-15
#: After so many groups of steps it is looked, and no more often than so.
_LOOKS, _MOST_LOOKS = frozenset({*range(1, 9), 16, 32}), 64


class BendWatch:
    """Looks for parameters along which rates or signals have other slopes to one side than to the other.

    That is so where a signal stays exactly where it bends, as at a limit that is the same as another one before it. At
    a bend that a run only passes there is one derivative.

    Parameters
    ----------
    steps : Steps
    parameters : Parameters
    columns : ndarray
        Places of the signals that count beside the rates.
    """

    def __init__(self, steps: Steps, parameters: Parameters, columns: NDArray[np.int64]) -> None:
        self._steps, self._names, self._columns = steps, parameters.names, columns
        sizes = np.abs(parameters.get())
        #: How far each parameter is moved at most, in parts of which one is the wide step.
        self._units = np.minimum(np.maximum(1.0, sizes), np.where(sizes > _ZERO, _OWN / _WIDE * sizes, np.inf))
        self._groups = 0
        #: Along which parameters there were two slopes at the last point, and of which it has been told.
        self._before, self._told = frozenset[int](), frozenset[int]()

    def look(self, times: Array, states: Array, tangents: Array, urgent: bool) -> list[str]:
        """Return notes, behind a group of steps.

        Parameters
        ----------
        times, states, tangents : ndarray, (N,), (N, n), (N, k, n)
            Where the steps have ended, without anything that is done between them.
        urgent : bool
            Whether there is a reason to look.
        """
        self._groups += 1
        if not len(times) or self._groups > _MOST_LOOKS or not (urgent or self._groups in _LOOKS):
            return []
        notes = []
        for k in sorted({0, len(times) - 1}):
            before, self._before = self._before, self._with_two_slopes(times[k], states[k], tangents[k])
            stays = (before & self._before) - self._told
            self._told |= stays
            if stays:
                names = " and ".join(self._names[j] for j in sorted(stays))
                notes.append(
                    f"{names}: at t = {times[k]:.6g} a signal stays exactly where it bends or switches, which a change "
                    f"of {'it' if len(stays) == 1 else 'them'} takes to one side or the other: what is told is at most "
                    "the derivative of one; let the numbers that meet there differ a little"
                )
        return notes

    def _with_two_slopes(self, t: float, x: Array, dx: Array) -> frozenset[int]:
        """Return along which parameters the slopes on both sides of a point differ."""
        s, found = self._steps, list[int]()
        arrays = s.program.p, s.z
        kept = [each.copy() for each in arrays]

        def seen(j: int, by: float) -> Array:
            for each, value, row in zip(arrays, kept, (s.dp[j], s.dz[j]), strict=True):
                each[:] = value + by * row
            return np.concatenate([s.rate_at(t, x + by * dx[j]), s.out[self._columns]])

        def gap(j: int, by: float) -> Array:
            ahead, behind = (seen(j, by) - there) / by, (there - seen(j, -by)) / by
            between = np.abs(ahead - behind)
            return np.where(between > _TWO * (np.abs(ahead) + np.abs(behind)), between, 0.0)

        try:
            with np.errstate(all="ignore"):
                there = seen(0, 0.0)
                for j, row in enumerate(s.dp):
                    # no further than the parameter itself where what follows it has died away
                    unit = self._units[j] / max([1.0, *(np.abs(d).max(initial=0.0) for d in (row, dx[j], s.dz[j]))])
                    wide = gap(j, _WIDE * unit)
                    if wide.any() and (np.abs(gap(j, _NARROW * unit) - wide) < _SAME * wide).any():
                        found.append(j)
        finally:
            for each, value in zip(arrays, kept, strict=True):
                each[:] = value
        return frozenset(found)
