"""Control points from data: interpolation, weighted least squares, and projection of another curve.

References: C. de Boor, A Practical Guide to Splines, chapters XIII and XIV; L. Piegl, W. Tiller, The NURBS Book, 2nd
ed., chapter 9. Everything is solved in the phase s = (t − t0)/T, where the equations do not depend on the unit of time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import function
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidValue, ShapeError
from cstormpy.trajectory.basis import local_basis, spans
from cstormpy.trajectory.checks import finite_array
from cstormpy.trajectory.ends import ORDERS, ControlPointMap, EndConditions
from cstormpy.trajectory.knots import check_degree

DENSE = 64
"""Up to that many unknowns the interpolation equations are solved as a full matrix, which spares importing scipy."""

FULL = 100_000
"""Entries up to which a fit is solved as a full matrix."""

_POINTS, _ROWS = 32, 128
"""So many control points and rows are eliminated at once where it is not: for so few BLAS starts no threads."""


def samples(times: ArrayLike, values: ArrayLike, *, rising: bool) -> tuple[Array, Array]:
    """Return times (N,) and values (N, n) as arrays that belong together."""
    t = finite_array(times, "times", (None,))
    q = finite_array(values, "values", (None, None), "one row per time, one column per joint")
    if len(q) != len(t):
        raise ShapeError(f"values: expected {len(t)} rows, one per time, got {len(q)}")
    if len(t) < 2:
        raise InvalidValue(f"times: expected at least 2, got {len(t)}")
    if not q.shape[1]:
        raise ShapeError("values: expected at least one column, one per joint")
    if rising:
        stuck = np.flatnonzero(np.diff(t) <= 0.0)
        if stuck.size:
            k = int(stuck[0])
            twice = "; with dt= a run has one sample of each time" if t[k + 1] == t[k] else ""
            raise InvalidValue(f"times: they must rise, but times[{k + 1}] = {t[k + 1]:g} follows {t[k]:g}{twice}")
    return t, q


def interpolate(times: Array, values: Array, degree: int, ends: EndConditions) -> tuple[Array, Array]:
    """Return clamped knots and control points of the curve through all values that meets the end conditions.

    Conditions on the rate, acceleration or jerk take the place of the "not-a-knot" conditions: a spline of odd degree
    has its knots at the data, less as many next to either end as conditions are missing there.
    """
    check_degree(degree)
    orders, targets = _extra_conditions(ends, values.shape[1], degree)
    count = len(times) + len(orders[0]) + len(orders[1])
    if count <= degree:
        raise InvalidValue(
            f"values: a curve of degree {degree} needs {degree + 1} data points and end conditions, got {count}"
        )
    duration = times[-1] - times[0]
    phase = (times - times[0]) / duration
    knots = _knots_through(phase, degree, len(orders[0]), len(orders[1]))
    sites = [phase[:1]] * (1 + len(orders[0])) + [phase[1:-1]] + [phase[-1:]] * (1 + len(orders[1]))
    kinds = [0, *orders[0], *[0] * (len(times) - 2), *orders[1], 0]
    scaled = [np.atleast_2d(v * duration**r) for v, r in zip(targets, orders[0] + orders[1], strict=True)]
    right = [values[:1], *scaled[: len(orders[0])], values[1:-1], *scaled[len(orders[0]) :], values[-1:]]
    points = _solve_collocation(knots, degree, np.concatenate(sites), np.array(kinds), np.concatenate(right))
    full = times[0] + duration * knots
    full[knots == 1.0] = times[-1]
    return full, points


def _extra_conditions(ends: EndConditions, n: int, degree: int) -> tuple[tuple[list[int], list[int]], list[Array]]:
    """Return the orders of the conditions at start and end, and their values, each (n,)."""
    orders: tuple[list[int], list[int]] = ([], [])
    targets = []
    for end in (0, 1):
        for order, row in enumerate(ends.table(end, n)):
            missing = np.isnan(row)
            if missing.all():
                continue
            name = f"q{'d' * order}{end}"
            if order == 0:
                raise InvalidValue(f"{name}: the data give the position at the ends, it cannot be prescribed as well")
            if missing.any():
                raise InvalidValue(f"{name}: interpolation needs the {ORDERS[order]} of all joints or of none")
            if order > degree:
                raise InvalidValue(f"{name}: the {ORDERS[order]} of a curve of degree {degree} is always zero")
            orders[end].append(order)
            targets.append(row)
    return orders, targets


def _knots_through(phase: Array, degree: int, start_conditions: int, stop_conditions: int) -> Array:
    """Return clamped knots on [0, 1] for which interpolation at `phase` has one solution."""
    half = (degree - 1) // 2
    skip = half - start_conditions, half - stop_conditions
    inner_count = len(phase) + start_conditions + stop_conditions - degree - 1
    if degree % 2 and min(skip) >= 0:
        inner = phase[1 + skip[0] : len(phase) - 1 - skip[1]]
    else:  # de Boor's averages of p consecutive sites
        if inner_count and max(start_conditions, stop_conditions) >= degree:
            raise InvalidValue(f"end conditions: degree {degree} takes at most {degree - 1} per end beside position")
        sites = np.concatenate([np.zeros(start_conditions), phase, np.ones(stop_conditions)])
        inner = np.array([sites[j : j + degree].mean() for j in range(1, inner_count + 1)])
    return np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])


def _solve_collocation(knots: Array, degree: int, sites: Array, orders: NDArray[np.intp], right: Array) -> Array:
    """Solve q^(orders)(sites) = right for the control points; the equations are banded."""
    span = spans(knots, (0.0, 1.0), sites)
    values = np.zeros((sites.size, degree + 1))
    for order in np.unique(orders):
        rows = np.flatnonzero(orders == order)
        values[rows] = local_basis(knots, degree, span[rows], sites[rows], int(order))
    scale = np.abs(values).max(axis=1, keepdims=True)
    values, right = values / scale, right / scale
    i, j = np.arange(sites.size)[:, None], (span - degree)[:, None] + np.arange(degree + 1)
    try:
        if sites.size <= DENSE:
            full = np.zeros((sites.size, sites.size))
            full[i, j] = values
            return np.ascontiguousarray(np.linalg.solve(full, right))
        from scipy.linalg import solve_banded

        band = np.zeros((2 * degree + 1, sites.size))
        band[degree + i - j, j] = values
        return np.ascontiguousarray(solve_banded((degree, degree), band, right))
    except np.linalg.LinAlgError as error:
        raise InvalidValue("end conditions: they do not determine the curve together with the data") from error


def fit_points(
    knots: Array, degree: int, times: Array, values: Array, weights: ArrayLike | None, ends: EndConditions
) -> Array:
    """Return the control points (m, n) with the least Σ_k w_k ‖q(t_k) − values_k‖² that meet the end conditions."""
    start, stop = float(knots[degree]), float(knots[-degree - 1])
    outside = np.flatnonzero((times < start) | (times > stop))
    if outside.size:
        raise InvalidValue(f"times: {times[outside[0]]:g} is outside of the curve's interval [{start:g}, {stop:g}]")
    w, m = _weights(weights, times.size), knots.size - degree - 1
    span = spans(knots, (start, stop), times)
    basis = local_basis(knots, degree, span, times, 0)
    ends_map = ControlPointMap(knots, degree, values.shape[1], stop - start, ends)
    if times.size * m > FULL and not any(len(group.fixed) for group in ends_map.groups):
        return _fit_banded(span - degree, basis, w, values, m)
    root = np.sqrt(w)[:, None]
    full = np.zeros((times.size, m))
    np.put_along_axis(full, (span - degree)[:, None] + np.arange(degree + 1), basis, axis=1)
    points = ends_map.offset
    for group in ends_map.groups:
        design = full[:, group.free] - full[:, group.fixed] @ group.coupling
        rest = values[:, group.joints] - full[:, group.fixed] @ points[np.ix_(group.fixed, group.joints)]
        free, _, rank, _ = np.linalg.lstsq(root * design, root * rest, rcond=None)
        if rank < len(group.free):
            raise _undetermined(int(rank), len(group.free), degree)
        points[np.ix_(group.free, group.joints)] = free
        points[np.ix_(group.fixed, group.joints)] -= group.coupling @ free
    return points


def _fit_banded(first: NDArray[np.intp], basis: Array, w: Array, values: Array, m: int) -> Array:
    """Return the control points (m, n) of least squares, by orthogonal elimination of one stretch after another.

    `first` is the first control point that each row of `basis` (N, degree + 1) weighs. C. Lawson, R. Hanson, Solving
    Least Squares Problems, chapter 27.
    """
    order, degree, root = np.argsort(first, kind="stable"), basis.shape[1] - 1, np.sqrt(w)[:, None]
    equations, first = np.hstack([root * basis, root * values])[order], first[order]
    begins = list(range(0, m - degree, _POINTS))
    triangles, left = list[Array](), np.zeros((degree, degree + values.shape[1]))
    for begin, stop in zip(begins, [*begins[1:], m - degree], strict=True):
        count = stop - begin
        wide = count + degree
        triangle = np.zeros((wide, wide + values.shape[1]))
        triangle[:degree, :degree], triangle[:degree, wide:] = left[:, :degree], left[:, degree:]
        start, end = np.searchsorted(first, (begin, stop)).tolist()
        for row in range(start, end, _ROWS):
            those = slice(row, min(row + _ROWS, end))
            rows = np.zeros((those.stop - row, triangle.shape[1]))
            columns = (first[those] - begin)[:, None] + np.arange(degree + 1)
            np.put_along_axis(rows, columns, equations[those, : degree + 1], axis=1)
            rows[:, wide:] = equations[those, degree + 1 :]
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))[:wide]
        triangles.append(triangle[:count])
        left = triangle[count:, count:]
    pivots = np.abs(np.concatenate([np.diagonal(part) for part in [*triangles, left]]))
    few = len(values) * np.finfo(float).eps * pivots.max()
    found = np.zeros((m, values.shape[1] + 1))
    found[:, -1] = np.resize([1.0, -1.0, -1.0, 1.0, 1.0], m)  # what becomes of ones tells the condition
    good = (pivots > few).all()
    for begin, triangle in zip([*begins, m - degree][::-1], [*triangles, left][::-1], strict=True) if good else ():
        count = len(triangle)
        own, behind, right = np.hsplit(triangle, [count, triangle.shape[1] - values.shape[1]])
        after, there = found[begin + count : begin + count + degree], slice(begin, begin + count)
        found[there, :-1] = right
        found[there] = np.linalg.solve(own, found[there] - behind @ after)
    if not good or np.abs(found[:, -1]).max() * few > 1.0:
        rank = min(int((pivots > few).sum()), _structural_rank(first, basis[order], w[order]), m - 1)
        raise _undetermined(rank, m, degree)
    return np.ascontiguousarray(found[:, :-1])


def _structural_rank(first: NDArray[np.intp], basis: Array, w: Array) -> int:
    """Return how many control points have a time of their own where they act (Schoenberg and Whitney 1953)."""
    acts = (basis > 0.0) & (w > 0.0)[:, None]
    rows = acts.any(axis=1)
    low = (first + acts.argmax(axis=1))[rows]
    high = (first + basis.shape[1] - 1 - acts[:, ::-1].argmax(axis=1))[rows]
    rank, free = 0, 0
    for k in np.lexsort((high, low)):
        free = max(free, int(low[k]))
        if free <= high[k]:
            rank, free = rank + 1, free + 1
    return rank


def _undetermined(rank: int, count: int, degree: int) -> InvalidValue:
    return InvalidValue(
        f"times: the data determine {rank} of {count} free control points; every stretch of {degree + 1} segments "
        f"needs a time of its own: take fewer control points or more data"
    )


def _weights(weights: ArrayLike | None, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    w = finite_array(weights, "weights", (count,), "one per time")
    if (w < 0.0).any():
        raise InvalidValue(f"weights: expected none below zero, got weights[{int(np.argmax(w < 0.0))}] = {w.min():g}")
    return w


def gauss_sites(breaks: Array, count: int) -> tuple[Array, Array]:
    """Return times and weights with which Σ w_k f(t_k) integrates polynomials of degree 2 count − 1 per segment."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    middle, half = 0.5 * (breaks[1:] + breaks[:-1]), 0.5 * np.diff(breaks)
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def curve_values(curve: Callable[[Array], ArrayLike], times: Array) -> Array:
    """Return what a curve gives at many times, (N, n), after a look at its shape."""
    try:
        values = function(curve, "curve", "times")(times)
    except CstormError:
        raise
    except Exception as error:
        raise InvalidValue(f"curve: failed: {type(error).__name__}: {error}") from error
    return finite_array(values, "curve", (times.size, None), "it must give a row per time, a column per joint")
