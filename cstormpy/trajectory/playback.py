"""Motions and records played back in time: where in them a time falls, and what they say there.

A jump of a record stands in it as two samples of one time; at that time the later one holds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.graph.nodes import Node, require_zero, where
from cstormpy.trajectory.bspline import BSpline

ENDS = ("hold", "repeat", "error")
"""The choices at times before the start and after the end."""

_SNAP = 3.0 * 2.0**-52
"""A time this share of itself before the next repetition belongs to it: three to six units in the last place.

Less than the width that runs leave before a declared jump: a step that ends there still sees the end of a round.
"""

_BESIDE, _BESIDE_ZERO = 16.0 * 2.0**-52, 1e-300
"""A time beyond an end by this share of it, or of zero by so much, is that end: runs look so far beside a jump."""


def place(t: Any, start: Any, end: Any, ends: str) -> tuple[Any, Any]:
    """Return the time within [start, end] that a time stands for, and whether the motion is held there.

    Parameters
    ----------
    t : float or symbol
        Time [s].
    start, end : float or symbol
        When the motion begins and ends [s]. From the end on it is held, or begun anew.
    ends : {"hold", "repeat", "error"}

    Raises
    ------
    InvalidValue
        If the time is outside and `ends` is "error".

    Examples
    --------
    >>> place(2.5, 1.0, 2.0, "hold"), [float(place(t, 1.0, 2.0, "repeat")[0]) for t in (2.5, 0.75)]
    ((2.0, True), [1.5, 1.75])
    """
    if ends == "repeat":
        period = end - start
        first = np.mod(start, period)
        ahead = t + _SNAP * np.abs(t)
        k = np.floor((t - first) / period)
        # to the last bit a round begins where sources declare that it does, at first + k period
        k = where(ahead >= first + (k + 1.0) * period, k + 1.0, k)
        k = where(ahead < first + k * period, k - 1.0, k)
        since = np.maximum(t - (first + k * period), 0.0)
        own = (ahead >= start) & (ahead < end)
        return where(own, np.maximum(t, start), np.minimum(start + since, end)), False
    within = (t >= start) & (t < end)
    held = where(t < start, start, where(t < end, t, end))
    if ends == "hold":
        return held, ~within if isinstance(within, Node) else not within
    early, late = (_BESIDE * np.abs(edge) + _BESIDE_ZERO for edge in (start, end))
    outside = (t < start - early) | (t > end + late)
    if not isinstance(outside, Node) and outside:
        raise InvalidValue(f"t = {t:.9g} s is outside of [{start:g}, {end:g}]; ends='hold' or 'repeat' goes on there")
    require_zero(outside)
    return held, False


def at_sample(t: float, times: Array) -> int:
    """Return the index of the last sample (N,) that is not after a time; 0 before the first one.

    >>> [int(at_sample(t, np.array([0.0, 1.0, 1.0, 2.0]))) for t in (-1.0, 0.5, 1.0, 3.0)]
    [0, 0, 2, 3]
    """
    return np.maximum(times.searchsorted(t, "right") - 1, 0)


def previous(t: float, times: Array, values: Array) -> Array:
    """Return the last of the values (N, ...) that is not after a time.

    >>> float(previous(0.9, np.array([0.0, 1.0]), np.array([3.0, 5.0])))
    3.0
    """
    return values[at_sample(t, times)]


def linear(t: float, times: Array, values: Array) -> Array:
    """Return the value on the line between the samples (N, ...) around a time; outside, the nearest one.

    >>> float(linear(0.5, np.array([0.0, 1.0]), np.array([3.0, 5.0])))
    4.0
    """
    i = at_sample(t, times)
    j = np.minimum(i + 1, len(times) - 1)
    here, there = times[i], times[j]
    gap = where(there > here, there - here, 1.0)  # after the last sample, and at the first of two of one time
    share = where((t > here) & (there > here), (t - here) / gap, 0.0)
    return values[i] + share * (values[j] - values[i])


def cubics(times: Array, values: Array) -> list[BSpline]:
    """Return the splines through the samples between jumps, cubic where there are four samples or more.

    Times (N,), values (N,) or (N, width).

    >>> [curve.degree for curve in cubics(np.array([0.0, 1.0, 1.0, 2.0, 3.0, 4.0]), np.arange(6.0))]
    [1, 3]
    """
    rows = values.reshape(len(values), -1)
    bounds = [0, *(np.flatnonzero(np.diff(times) == 0.0) + 1).tolist(), len(times)]
    pieces = []
    for a, b in pairwise(bounds):
        at, some = times[a:b], rows[a:b]
        if len(at) == 1:  # it holds at one time only, or for ever after the last jump
            at, some = np.array([at[0], at[0] + max(1.0, abs(at[0]))]), np.vstack([some, some])
        pieces.append(BSpline.interpolate(at, some, degree=min(3, len(at) - 1)))
    return pieces
