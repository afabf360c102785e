"""Derivatives of a curve at sample times with respect to control points, knots and duration, as sparse matrices.

Xiang et al. 2008, (41), (42): with these and the sensitivities of the dynamics, ∂τ/∂p_i and ∂τ/∂t_i follow by the chain
rule. A time outside of the interval of a curve that holds its ends gives the derivative of the value held.

The derivative of a B-spline curve with respect to its knots: ∂q/∂t_j of Xiang et al. 2008, (42), and of its rates.

Reference: L. Piegl, W. Tiller, Computing the derivative of NURBS with respect to a knot, CAGD 15 (1998) 925-934.

A basis function is a divided difference of the truncated power over its knots, and the derivative of a divided
difference with respect to one of its nodes is the same difference with that node doubled. So, with t̂ the knots with t_j
standing once more and N̂ their basis functions,

    ∂q/∂t_j = Σ_{k=j−p}^{j} N̂_k (P_{k−1} − P_k) / (t̂_{k+p+1} − t̂_k),

which differentiates with respect to time like any other spline. At a time that equals t_j the derivative of order p − 1
(the acceleration of a cubic) jumps; the value from the right is taken, at the end of the interval that from the left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import flag, one_of
from cstormpy.arrays import Array
from cstormpy.trajectory.basis import difference, evaluate, local_basis, spans

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cstormpy.trajectory.curve import Curve

Mask = NDArray[np.bool_]


def local_values(curve: Curve, times: Array, outside: Mask | None, order: int) -> tuple[NDArray[np.intp], Array]:
    """Return for each time the first control point that matters, (N,), and the weights of p + 1 of them, (N, p + 1)."""
    span = spans(curve.knots, (curve.t0, curve.t1), times)
    values = local_basis(curve.knots, curve.degree, span, times, order)
    if order and outside is not None:
        values[outside] = 0.0
    return span - curve.degree, values


def _rows(curve: Curve, first: NDArray[np.intp], values: Array) -> csr_array:
    from scipy.sparse import csr_array

    width = curve.degree + 1
    columns = (first[:, None] + np.arange(width)).ravel()
    starts = np.arange(0, values.size + 1, width)
    return csr_array((values.ravel(), columns, starts), shape=(first.size, len(curve.control_points)))


def basis_matrix(curve: Curve, times: Array, outside: Mask | None, order: int) -> csr_array:
    """Return ∂q^(r)/∂P, (N, m), for each joint alike, with p + 1 entries a row."""
    return _rows(curve, *local_values(curve, times, outside, order))


def duration_matrix(curve: Curve, times: Array, outside: Mask | None, order: int, fixed: str) -> csr_array:
    """Return the matrix (N, m) that takes P to ∂q^(r)/∂T at fixed phase, or at fixed time."""
    one_of(fixed, "fixed", ("phase", "time"))
    first, values = local_values(curve, times, outside, order)
    values *= -order / curve.duration
    if fixed == "time":
        _, following = local_values(curve, times, outside, order + 1)
        phase = (times - curve.t0) / curve.duration
        values -= phase[:, None] * following
    return _rows(curve, first, values)


def knot_matrix(curve: Curve, times: Array, outside: Mask | None, order: int, grouped: bool) -> csr_array:
    """Return ∂q^(r)/∂t_j, (N·n, knots); its rows follow ``q.ravel()`` of q (N, n)."""
    from scipy.sparse import csr_array

    knots, n = curve.knots, curve.n
    rows, columns, data = [], [], []
    for j in range(knots.size):
        felt, values = knot_derivative(knots, curve.degree, curve.control_points, times, order, j)
        if outside is not None and order:
            values[outside[felt]] = 0.0
        rows.append((felt[:, None] * n + np.arange(n)).ravel())
        columns.append(np.full(felt.size * n, j))
        data.append(values.ravel())
    if outside is not None and not order:
        for held, j in _ends_held(curve, times, outside):
            rows.append((held[:, None] * n + np.arange(n)).ravel())
            columns.append(np.full(held.size * n, j))
            data.append(np.tile(curve.rate(float(knots[j])), held.size))
    column = np.concatenate(columns)
    count = knots.size
    if flag(grouped, "grouped"):
        distinct, group = np.unique(knots, return_inverse=True)
        column, count = group[column], distinct.size
    return csr_array((np.concatenate(data), (np.concatenate(rows), column)), shape=(times.size * n, count))


def _ends_held(curve: Curve, times: Array, outside: Mask) -> list[tuple[NDArray[np.intp], int]]:
    """Return which times hold which end; the value held moves with that end's knot as fast as the curve does there."""
    last = curve.knots.size - curve.degree - 1
    return [(np.flatnonzero(outside & (times == curve.knots[j])), j) for j in (curve.degree, last)]


def knot_derivative(
    knots: Array, degree: int, points: Array, times: Array, order: int, j: int
) -> tuple[NDArray[np.intp], Array]:
    """Return which times feel knot j, and there ∂q^(r)/∂t_j, (K, n); all times lie in the curve's interval."""
    interval = (float(knots[degree]), float(knots[-degree - 1]))
    lower, upper = knots[max(j - degree, 0)], knots[min(j + degree, knots.size - 1)]
    felt = np.flatnonzero((times >= lower) & (times <= upper))
    if order > degree or not felt.size:
        return felt[:0], np.zeros((0, points.shape[1]))
    doubled = np.insert(knots, j, knots[j])
    moving = _moving_points(doubled, degree, points, j)
    for r in range(1, order + 1):
        moving = difference(doubled, degree, moving, r)
    at = times[felt]
    return felt, evaluate(doubled, degree, {order: moving}, spans(doubled, interval, at), at)[order]


def _moving_points(doubled: Array, degree: int, points: Array, j: int) -> Array:
    """Return the control points (m + 1, n) of ∂q/∂t_j on the doubled knots.

    The outermost two do not matter: their basis functions vanish on the interval for every j that reaches them.
    """
    m = len(points)
    moving = np.zeros((m + 1, points.shape[1]))
    k = np.arange(max(j - degree, 1), min(j, m - 1) + 1)
    gaps = doubled[k + degree + 1] - doubled[k]
    k, gaps = k[gaps > 0.0], gaps[gaps > 0.0]  # an empty basis function counts for nothing
    moving[k] = (points[k - 1] - points[k]) / gaps[:, None]
    return moving
