"""Derivatives of a curve at sample times with respect to control points, knots and duration, as sparse matrices.

Xiang et al. 2008, (41), (42): with these and the sensitivities of the dynamics, ∂τ/∂p_i and ∂τ/∂t_i follow by the chain
rule. A time outside of the interval of a curve that holds its ends gives the derivative of the value held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import flag, one_of
from cstormpy.arrays import Array
from cstormpy.trajectory.basis import local_basis, spans
from cstormpy.trajectory.knot_derivatives import knot_derivative

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
