"""Extremes of signals between samples, where a peak is as of those samples alone too low, and its derivative off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

#: Samples on either side of the largest one through which a polynomial goes.
_BESIDE = 3
#: An extreme nearer to a sample than this part of the step, or a signal that moves by less of its size, needs none.
_NEAR, _STILL = 1e-6, 1e-9


def extreme_times(t: Array, columns: Array, events: Sequence[float]) -> Array:
    """Return when columns (N, k) are largest and least, where that is between two samples t (N,).

    Polynomials go through the samples around the largest one, on its side of jumps, which are two samples of one time,
    and of `events`.

    >>> t = np.linspace(0.0, 3.0, 31)
    >>> extreme_times(t, np.sin(t)[:, None], []).round(6)
    array([1.570796])
    >>> t = np.insert(t, 15, np.nextafter(t[14], 2.0))  # where two clocks tick
    >>> extreme_times(t, np.sin(t)[:, None], []).round(6)
    array([1.570796])
    """
    borders = np.searchsorted(t, events, "left")
    cut = np.unique([0, len(t), *(np.flatnonzero(np.diff(t) <= 0.0) + 1), *borders, *(borders + 1)])
    found: set[float] = set()
    for y in columns.T:
        size = float(np.abs(y).max(initial=0.0))
        if np.isfinite(y).all() and float(np.ptp(y)) > _STILL * size:
            for k in (int(y.argmax()), int(y.argmin())):
                found.update(_extremes_beside(t, y, k, cut))
    return np.sort(np.fromiter(found, dtype=float))


def _extremes_beside(t: Array, y: Array, k: int, cut: NDArray[np.int64]) -> Iterator[float]:
    """Give where the polynomial through the samples around the k-th, the largest or least, is level beside it."""
    # a sample at a border belongs to both sides
    first = max(k - _BESIDE, *(c for c in cut.tolist() if c <= k), 0)
    last = min(k + _BESIDE, *(c - 1 for c in cut.tolist() if c > k))
    at = slice(first, last + 1)
    if last - first < 2:
        return
    low, high = t[max(k - 1, first)], t[min(k + 1, last)]
    span = float(t[last] - t[first])
    apart = np.append(True, np.diff(t[at]) > _NEAR * span)  # not the ticks of two clocks, a rounding from each other
    times, degree = t[at][apart], int(apart.sum()) - 1
    if degree < 2:
        return
    level = np.polynomial.Polynomial.fit(times, y[at][apart], degree).deriv().roots()
    for root in level[np.abs(level.imag) < _NEAR * span].real if np.iscomplexobj(level) else level:
        if low < root < high and float(np.abs(root - t[at]).min()) > _NEAR * span:
            yield float(root)
