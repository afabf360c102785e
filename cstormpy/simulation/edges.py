"""Times at which sources jump or bend, of those that tell them without a run: once each, or over and over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from bdsim.blocks.sources import Piecewise, Ramp, Step, WaveForm

from cstormpy.arrays import Array
from cstormpy.errors import BlockError, shown
from cstormpy.simulation.run_start import corners_of
from cstormpy.simulation.wiring import describe


def edges_of(source: Any) -> tuple[list[float], float] | None:
    """Return when a source jumps or bends, and after which time all of these come again, 0 if never.

    One of our own tells it by its method `edges`, by the numbers of now. None of a source that does not tell.
    """
    kind = type(source)
    if callable(getattr(kind, "edges", None)):
        return _checked(source, source.edges())
    if kind in (Step, Ramp):
        return [float(source.T)], 0.0
    if kind is Piecewise:
        return [float(t) for t in source.t], 0.0
    if kind is WaveForm:
        return [(part() + source.phase) % 1.0 / source.freq for part in corners_of(source)], 1.0 / source.freq
    return None


def _checked(source: Any, told: Any) -> tuple[list[float], float]:
    """Return what a source tells of its edges, or refuse it."""
    try:
        given, period = told
        times = [float(t) for t in given]
        again = float(period)
        if np.isnan(times).any() or not 0.0 <= again < np.inf:
            raise ValueError
    except (TypeError, ValueError):
        raise BlockError(
            f"{describe(source)}: edges() returned {shown(told)}; it returns the times at which the source jumps, and "
            "after which time all of these come again, 0 if never, as in 'return [0.2, 0.5], 0.0'"
        ) from None
    return times, again


@dataclass(frozen=True)
class Edges:
    """When some sources jump, without an end.

    Attributes
    ----------
    first, every : ndarray, (m,)
        When each comes first, and after which time again and again, infinite if never. What comes again does so
        before 0 too.
    """

    first: Array
    every: Array

    @classmethod
    def of(cls, sources: Iterable[Any]) -> Edges:
        """Return those of sources that tell them."""
        told = [found for source in sources if (found := edges_of(source)) is not None]
        first = [t for times, _ in told for t in times]
        every = [period or np.inf for times, period in told for _ in times]
        return cls(np.array(first, dtype=float), np.array(every, dtype=float))

    def after(self, t: Array) -> Array:
        """Return the first edge behind times (..., 1), of the same shape; infinite if none comes.

        >>> Edges(np.array([0.5, 0.2]), np.array([np.inf, 1.0])).after(np.array([[0.0], [0.3], [2.2]])).ravel()
        array([0.2, 0.5, 3.2])
        """
        rounds = np.floor((t - self.first) / self.every) + 1.0
        again = self.first + np.where(np.isinf(self.every), np.inf, rounds * self.every)
        begins = (t < self.first) & ((t >= 0.0) | np.isinf(self.every))
        found: Array = np.where(begins, self.first, again).min(axis=-1, keepdims=True, initial=np.inf)
        return found

    def between(self, begin: float, end: float) -> Array:
        """Return the edges from a time to another, in order."""
        found = [self.first[(self.first >= begin) & (self.first <= end)]]
        for first, every in zip(self.first, self.every, strict=True):
            if np.isfinite(every):
                rounds = np.arange(np.ceil((begin - first) / every), np.floor((end - first) / every) + 1.0)
                again = first + rounds * every
                found.append(again[(rounds > 0.0) | (again < 0.0)])
        return np.unique(np.concatenate(found))
