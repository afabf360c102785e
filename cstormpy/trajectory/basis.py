"""B-spline basis functions, by the recursion of Cox and de Boor.

Reference: L. Piegl, W. Tiller, The NURBS Book, 2nd ed., chapters 2 and 3; Xiang et al. 2008, (39), (40).

======================  =====================================================================
p                       degree
m, n                    number of control points, of joints
t_0 … t_{m+p}           knots; the curve lives on [t_p, t_m]
N_{i,p}                 basis function i of degree p, not zero on [t_i, t_{i+p+1})
P_i, P_i^(r)            control points of the curve and of its derivative of order r
span                    index k of the knot interval t_k <= t < t_{k+1} that holds the time t
first                   span − p, the first of the p + 1 control points that matter at t
======================  =====================================================================

At a knot the values are those from the right, and at the end of the interval those from the left.
Arrays are contiguous float64; nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.tables import rows_from


def spans(knots: Array, interval: tuple[float, float], times: Any) -> NDArray[np.intp]:
    """Return the span of each time; times must lie in the interval, whose ends are knots."""
    lowest = np.searchsorted(knots, interval[0], "right") - 1
    highest = np.searchsorted(knots, interval[1], "left") - 1
    return np.asarray(np.clip(np.searchsorted(knots, times, "right") - 1, lowest, highest))


def basis_rows(time: Any, window: Sequence[Any], degree: int) -> list[list[Any]]:
    """Return the basis functions of every degree up to `degree` that are not zero at a time.

    Row d holds N_{span−d,d} … N_{span,d}. `window` holds the 2p knots t_{span−p+1} … t_{span+p}. Time and knots may be
    floats or arrays of one shape. The span is not empty, so no denominator vanishes.
    """
    rows: list[list[Any]] = [[1.0]]
    for d in range(1, degree + 1):
        row: list[Any] = []
        carried: Any = 0.0
        for r, lower in enumerate(rows[-1]):
            left, right = window[degree + r - d], window[degree + r]  # t_{span+1+r−d}, t_{span+1+r}
            share = lower / (right - left)
            row.append(carried + (right - time) * share)
            carried = (time - left) * share
        row.append(carried)
        rows.append(row)
    return rows


def slopes(knots: Array, degree: int, order: int) -> Array:
    """Return (p−r+1) / (t_{i+p+1} − t_{i+r}), the factors of P_i^(r) = factor (P_{i+1}^(r−1) − P_i^(r−1)).

    Where the knots coincide the basis function that goes with it is zero everywhere, and so is the factor.
    """
    last = knots.size - order  # i runs over the m − r control points of the derivative
    gaps = knots[degree + 1 : last] - knots[order : last + order - degree - 1]
    wide = gaps > 0.0
    return np.where(wide, (degree - order + 1) / np.where(wide, gaps, 1.0), 0.0)


def difference(knots: Array, degree: int, points: Array, order: int) -> Array:
    """Return the control points (m−r, n) of the derivative of order r from those of order r − 1."""
    return slopes(knots, degree, order)[:, None] * np.diff(points, axis=0)


def evaluate(
    knots: Array, degree: int, levels: Mapping[int, Array], span: NDArray[np.intp], times: Array
) -> dict[int, Array]:
    """Return derivatives by their order at N times, each (N, n).

    Parameters
    ----------
    knots, degree, span, times
        the curve's knots and degree; span and time of each sample, both (N,)
    levels
        control points (m−r, n) of the derivatives wanted, by their order r, at most the degree
    """
    window = [knots.take(span + j) for j in range(1 - degree, degree + 1)]
    rows = basis_rows(times, window, degree)
    first = span - degree
    columns = [first + k for k in range(degree + 1)]
    out = {}
    for order, points in levels.items():
        row = rows[degree - order]
        total = np.zeros((times.size, points.shape[1]))
        for k, weight in enumerate(row):
            part = points.take(columns[k], axis=0)
            part *= weight if order == degree else weight[:, None]
            total += part
        out[order] = total
    return out


def evaluate_one(knots: Array, degree: int, levels: Mapping[int, Array], span: int, time: float) -> dict[int, Array]:
    """Return derivatives by their order at one time, each (n,); see `evaluate`."""
    rows = basis_rows(time, knots[span - degree + 1 : span + degree + 1].tolist(), degree)
    first = span - degree
    return {r: np.dot(rows[degree - r], points[first : span + 1 - r]) for r, points in levels.items()}


def evaluate_symbolic(knots: Any, degree: int, points: Any, span: Any, time: Any, orders: int) -> list[Any]:
    """Return the derivatives up to some order, at most the degree, at one time that is a symbol.

    Of knots and control points those around the time are looked up, and the differences are taken of these.
    """
    first = span - degree
    near, part = rows_from(knots, first, 2 * degree + 2), rows_from(points, first, degree + 1)
    rows, found = basis_rows(time, near[1:-1].tolist(), degree), []
    for r in range(orders + 1):
        part = difference(near, degree, part, r) if r else part
        found.append(np.dot(rows[degree - r], part))
    return found


def local_basis(knots: Array, degree: int, span: NDArray[np.intp], times: Array, order: int) -> Array:
    """Return the derivatives of order r of the basis functions first … first + p, (N, p + 1)."""
    values = np.zeros((times.size, degree + 1))
    if order > degree:
        return values
    window = [knots.take(span + j) for j in range(1 - degree, degree + 1)]
    row = basis_rows(times, window, degree)[degree - order]
    for r in range(order, 0, -1):  # from the weights of P^(r) to those of P^(r−1)
        factors = slopes(knots, degree, r)
        scaled = [weight * factors.take(span - degree + k) for k, weight in enumerate(row)]
        row = [-scaled[0], *[before - after for before, after in pairwise(scaled)], scaled[-1]]
    for k, weight in enumerate(row):
        values[:, k] = weight
    return values
