"""Knot vectors: uniform and clamped, checked, refined, and inserted into without changing the curve.

References: Xiang et al. 2008, (40); L. Piegl, W. Tiller, The NURBS Book, 2nd ed., section 5.2 (insertion, W. Boehm
1980).
The letters are those of `cstormpy.trajectory.basis`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import one_of, positive, whole_number
from cstormpy.arrays import Array, real_number
from cstormpy.errors import InvalidValue
from cstormpy.trajectory.checks import finite_array

KINDS = ("clamped", "uniform")

MOST_DEGREE = 50
"""Highest degree; the basis of much higher ones is too ill-conditioned to be of use."""

EQUAL_LENGTHS = 1e-9
"""Segments whose lengths differ by less than this part of the longest are refined as if equal."""


def uniform_knots(count: int, degree: int, interval: tuple[float, float] = (0.0, 1.0)) -> Array:
    """Return the evenly spaced knots of Xiang et al. 2008, (40), that carry `count` control points.

    The interval has s = count − degree segments of length T/s; degree knots continue the same spacing on either side.

    >>> uniform_knots(5, 3).tolist()
    [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    """
    start, stop = _checked(count, degree, interval)
    return _at(np.arange(-degree, count + 1) / (count - degree), start, stop)


def clamped_knots(count: int, degree: int, interval: tuple[float, float] = (0.0, 1.0)) -> Array:
    """Return evenly spaced knots with degree + 1 copies of either end, that carry `count` control points.

    >>> clamped_knots(5, 3).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    """
    start, stop = _checked(count, degree, interval)
    return _at(np.clip(np.arange(-degree, count + 1) / (count - degree), 0.0, 1.0), start, stop)


def cut_evenly(breaks: Array, pieces: int) -> Array:
    """Return breaks with those between them that cut each segment into so many equal pieces.

    >>> cut_evenly(np.array([0.0, 1.0, 3.0]), 2).tolist()
    [0.0, 0.5, 1.0, 2.0, 3.0]
    """
    segments = len(breaks) - 1
    return np.interp(np.arange(pieces * segments + 1) / pieces, np.arange(segments + 1), breaks)


def _at(phase: Array, start: float, stop: float) -> Array:
    """Return times from phases; phase 1 gives `stop` to the last bit."""
    times: Array = start + (stop - start) * phase
    times[phase == 1.0] = stop
    return times


def _checked(count: int, degree: int, interval: tuple[float, float]) -> tuple[float, float]:
    check_degree(degree)
    whole_number(count, "control points", 1)
    if count <= degree:
        raise InvalidValue(
            f"control points: a spline of degree {degree} needs at least {degree + 1}, got {count}; "
            f"s segments take s + {degree}"
        )
    start, stop = finite_array(interval, "interval", (2,), "give (t0, t1)").tolist()
    if stop <= start:
        raise InvalidValue(f"interval: the end {stop:g} must be later than the start {start:g}")
    if not np.isfinite(stop - start):
        raise InvalidValue("interval: its length is beyond the range of floating point numbers")
    return start, stop


def knots_of_kind(knots: Any, count: int | None, degree: int, interval: tuple[float, float]) -> Array:
    """Return knots by the word "clamped" or "uniform" and a count of control points, or check those given."""
    if isinstance(knots, str):
        one_of(knots, "knots", KINDS)
        if count is None:
            raise InvalidValue(f"control points: knots={knots!r} needs their number")
        return (clamped_knots if knots == "clamped" else uniform_knots)(count, degree, interval)
    if count is not None:
        raise InvalidValue("control points: give their number, or the knots that imply it, not both")
    return check_knots(knots, degree)


def check_degree(degree: int) -> None:
    """Refuse a degree that no curve can have."""
    whole_number(degree, "degree", 1, MOST_DEGREE)


def check_knots(knots: ArrayLike, degree: int) -> Array:
    """Return `knots` as an array if a continuous curve of that degree can stand on them, each control point in use."""
    check_degree(degree)
    t = finite_array(knots, "knots", (None,))
    if t.size < 2 * degree + 2:
        raise InvalidValue(
            f"knots: degree {degree} needs at least {2 * degree + 2} knots ({degree + 1} control points), got {t.size}"
        )
    falls = np.flatnonzero(np.diff(t) < 0.0)
    if falls.size:
        k = int(falls[0])
        raise InvalidValue(f"knots: they must not decrease, but knots[{k + 1}] = {t[k + 1]:g} < knots[{k}] = {t[k]:g}")
    last = t.size - degree - 1  # the curve lives on [t[degree], t[last]]
    if not t[degree] < t[degree + 1] or not t[last - 1] < t[last]:
        raise InvalidValue(
            f"knots: the first and the last segment are empty or an end has more than {degree + 1} copies; expected "
            f"knots[{degree}] < knots[{degree + 1}] and knots[{last - 1}] < knots[{last}]"
        )
    crowded = np.flatnonzero(t[1 + degree : -1] <= t[1 : -1 - degree])
    if crowded.size:
        k = int(crowded[0]) + 1
        raise InvalidValue(f"knots: {t[k]:g} stands more than {degree} times inside, which breaks the curve")
    _refuse_extreme(t, degree)
    return t


def _refuse_extreme(knots: Array, degree: int) -> None:
    """Refuse knots whose spacing overflows or underflows in the divisions of the recursion."""
    gaps = np.diff(knots)
    with np.errstate(over="ignore", divide="ignore"):
        steepest = degree / gaps[gaps > 0.0].min()
    if not np.isfinite(steepest) or not np.isfinite(knots[-1] - knots[0]):
        raise InvalidValue("knots: their spacing is beyond the range of floating point numbers")


def insert_knots(knots: Array, degree: int, points: Array, new: ArrayLike) -> tuple[Array, Array]:
    """Return knots and control points with the `new` knots inserted; the curve stays as it is (Boehm)."""
    start, stop = knots[degree], knots[-degree - 1]
    for time in np.sort(finite_array(new, "new knots", (None,))):
        if not start < time < stop:
            raise InvalidValue(f"new knots: {time:g} is not inside of the interval ({start:g}, {stop:g})")
        if np.count_nonzero(knots == time) >= degree:
            raise InvalidValue(f"new knots: {time:g} would stand more than {degree} times, the degree")
        knots, points = _insert_one(knots, degree, points, float(time))
    return np.ascontiguousarray(knots), np.ascontiguousarray(points)


def _insert_one(knots: Array, degree: int, points: Array, time: float) -> tuple[Array, Array]:
    """Insert one knot: Q_i = a_i P_i + (1 − a_i) P_{i−1}, a_i = (t − t_i) / (t_{i+p} − t_i) where i changes."""
    span = int(np.searchsorted(knots, time, "right")) - 1
    i = np.arange(span - degree + 1, span + 1)
    # the copies of `time` that stand already give a_i = 0, which copies P_{i−1}
    a = ((time - knots[i]) / (knots[i + degree] - knots[i]))[:, None]
    changed = a * points[i] + (1.0 - a) * points[i - 1]
    inserted = np.concatenate([points[: span - degree + 1], changed, points[span:]])
    return np.insert(knots, span + 1, time), inserted


def refining_knots(breaks: Array, extra: int) -> Array:
    """Return `extra` new knots that split the longest segments evenly, spread over the interval where all are equal.

    >>> refining_knots(np.array([0.0, 1.0, 2.0, 3.0]), 4).tolist()
    [0.5, 1.3333333333333333, 1.6666666666666665, 2.5]
    """
    lengths = np.diff(breaks)
    splits: NDArray[np.intp] = np.zeros(lengths.size, dtype=np.intp)
    while extra > 0:
        pieces = lengths / (splits + 1)
        longest = np.flatnonzero(pieces >= pieces.max() * (1.0 - EQUAL_LENGTHS))
        if extra < longest.size:
            longest = longest[((np.arange(extra) + 0.5) * longest.size / extra).astype(np.intp)]
        splits[longest] += 1
        extra -= longest.size
    new = [
        start + length * np.arange(1, k + 1) / (k + 1)
        for start, length, k in zip(breaks[:-1], lengths, splits, strict=True)
    ]
    return np.concatenate(new)


def interval_of(start: Any, duration: Any) -> tuple[float, float]:
    """Return (t0, t0 + T) after a look at both."""
    start, duration = real_number(start, "start time t0"), positive(duration, "duration")
    return start, start + duration
