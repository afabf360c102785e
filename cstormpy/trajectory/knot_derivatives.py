"""The derivative of a B-spline curve with respect to its knots: ∂q/∂t_j of Xiang et al. 2008, (42), and of its rates.

Reference: L. Piegl, W. Tiller, Computing the derivative of NURBS with respect to a knot, CAGD 15 (1998) 925-934.

A basis function is a divided difference of the truncated power over its knots, and the derivative of a divided
difference with respect to one of its nodes is the same difference with that node doubled. So, with t̂ the knots with t_j
standing once more and N̂ their basis functions,

    ∂q/∂t_j = Σ_{k=j−p}^{j} N̂_k (P_{k−1} − P_k) / (t̂_{k+p+1} − t̂_k),

which differentiates with respect to time like any other spline. At a time that equals t_j the derivative of order p − 1
(the acceleration of a cubic) jumps; the value from the right is taken, at the end of the interval that from the left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.trajectory.basis import difference, evaluate, spans


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
