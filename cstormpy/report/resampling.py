"""Motions at other times than those recorded, as a film of even frames needs them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cstormpy.arrays import Array

_DENSE = 4
"""With so many samples a frame, straight lines between them do."""


def resampled(t: Array, q: Array, at: Array) -> Array:
    """Return q at other times: along curves through the samples, broken where two have the same time."""
    if len(t) > _DENSE * len(at) or len(t) < 3:
        return along_lines(t, q, at)
    moved = np.empty((len(at), q.shape[1]))
    breaks = np.flatnonzero(np.diff(t) <= 0.0) + 1
    for a, b in pairwise([0, *breaks.tolist(), len(t)]):
        inside = (at >= t[a]) & (at <= t[b - 1])
        along = monotone_curve if b - a > 2 else along_lines
        moved[inside] = along(t[a:b], q[a:b], at[inside])
    return moved


def along_lines(t: Array, q: Array, at: Array) -> Array:
    """Return q at other times along straight lines."""
    return np.column_stack([np.interp(at, t, column) for column in q.T]) if q.shape[1] else np.zeros((len(at), 0))


def monotone_curve(t: Array, q: Array, at: Array) -> Array:
    """Return a cubic of each column at times between the first and the last: it turns nowhere but at samples.

    The slopes are the harmonic means of Fritsch and Butland (1984), as those of SciPy's `PchipInterpolator`, whose
    import takes longer than all else that a report needs.

    >>> monotone_curve(np.arange(4.0), np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0.5, 1.5, 3.0]))[:, 0]
    array([0.6875, 1.    , 2.    ])
    """
    h = np.diff(t)[:, None]
    chord = np.diff(q, axis=0) / h
    before, after = chord[:-1], chord[1:]
    weights = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    rising = np.sign(before) * np.sign(after) > 0.0
    one = np.where(rising, before, 1.0), np.where(rising, after, 1.0)
    inner = np.where(rising, (weights[0] + weights[1]) / (weights[0] / one[0] + weights[1] / one[1]), 0.0)
    first = _slope_at_end(h[0], h[1], chord[0], chord[1])
    last = _slope_at_end(h[-1], h[-2], chord[-1], chord[-2])
    slope = np.vstack([first, inner, last])

    k = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    length = h[k]
    s = (at - t[k])[:, None] / length
    bend = slope[k] + slope[k + 1] - 2.0 * chord[k]
    return np.asarray(q[k] + length * s * (slope[k] + s * (chord[k] - slope[k] + (s - 1.0) * bend)))


def _slope_at_end(near: Array, far: Array, chord: Array, following: Array) -> Array:
    """Return the slope at an end: of the parabola through three samples, unless that overshoots."""
    slope = ((2.0 * near + far) * chord - near * following) / (near + far)
    slope = np.where(np.sign(slope) == np.sign(chord), slope, 0.0)
    steep = (np.sign(chord) != np.sign(following)) & (np.abs(slope) > 3.0 * np.abs(chord))
    return np.asarray(np.where(steep, 3.0 * chord, slope))
