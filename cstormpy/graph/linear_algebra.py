"""Linear algebra of arrays of symbols: elimination, singular values, norms, as `numpy.linalg` has them.

Everything is written out for matrices of the sizes that signals have. Elimination chooses its pivots while it runs.
Singular values are found by one-sided Jacobi rotations (Golub and Van Loan 2013, section 8.6.3), in so many sweeps
that small matrices are orthogonal to the last digits; the rotations have regular derivatives unless two singular
values are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cstormpy.graph import primitives as p
from cstormpy.graph.nodes import SymbolicBranch, require_zero, where
from cstormpy.graph.primitives import apply

Array = Any  # of nodes and floats
Number = Any
#: Determinants of matrices with more columns are found by elimination.
_EXPANDED = 5
#: Matrices with more columns are left to other ways than writing their rotations down.
_WIDEST = 4


def _square(a: Array) -> Array:
    a = np.array(a, dtype=object)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise SymbolicBranch("np.linalg's functions can be written down with symbols for one square matrix")
    return a


def _eliminated(a: Array, b: Array, columns: bool = False) -> tuple[Array, Array, Number]:
    """Return A and B with A made upper triangular by the same operations on both, and the sign of the exchanges.

    With `columns` one without a pivot goes last, so that of rank n - 1 all pivots but the last are there.
    """
    sign: Number = 1.0
    for k in range(len(a)):
        if columns and k + 1 < len(a):
            sign = _exchange_empty(a, k, sign)
        for i in range(k + 1, len(a)):  # the larger of two rows comes first
            swap = apply(p.LARGER, a[i, k], a[k, k])
            sign = where(swap, -sign, sign)
            for rows in (a, b):
                upper, lower = rows[k].copy(), rows[i].copy()
                for j in range(rows.shape[1]):
                    rows[k, j], rows[i, j] = where(swap, lower[j], upper[j]), where(swap, upper[j], lower[j])
        for i in range(k + 1, len(a)):
            factor = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
            b[i] = b[i] - factor * b[k]
    return a, b, sign


def _exchange_empty(a: Array, k: int, sign: Number) -> Number:
    """Exchange column k with the last one where it has no pivot; return the sign after that."""
    empty: Any = True
    for x in a[k:, k]:
        empty = apply(p.AND, empty, apply(p.EQUAL, x, 0.0))
    for row in a[k:]:
        row[k], row[-1] = where(empty, row[-1], row[k]), where(empty, row[k], row[-1])
    return where(empty, -sign, sign)


def solve(a: Array, b: Array) -> Array:
    """Return A⁻¹ B; where NumPy raises, as a pivot is zero, what is written down fails."""
    a, b = _square(a), np.array(b, dtype=object)
    if len(b) != len(a):
        raise SymbolicBranch("np.linalg.solve can be written down with symbols for one square matrix")
    single, n = b.ndim == 1, len(a)
    a, b, _ = _eliminated(a, b[:, None] if single else b)
    for k in range(n):
        require_zero(apply(p.EQUAL, a[k, k], 0.0))
    x = np.empty_like(b)
    for k in reversed(range(n)):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k] if k + 1 < n else b[k] / a[k, k]
    return x[:, 0] if single else x


def solve_definite(a: Array, b: Array, least: float) -> tuple[Array, Any]:
    """Return A⁻¹ B of a symmetric positive definite A, by A = L D Lᵀ, and the truth that A is not definite.

    That is where a pivot is no more than a part `least` of what stood in its place before the others were taken away.
    """
    a, b = np.array(a, dtype=object), np.array(b, dtype=object)
    n, single = len(a), b.ndim == 1
    x = b[:, None] if single else b
    indefinite: Any = False
    whole, scaled = a.diagonal().copy(), np.zeros((n, n), dtype=object)
    inverse = np.zeros(n, dtype=object)
    for k in range(n):
        sound = apply(p.GREATER, a[k, k], least * whole[k])
        indefinite = apply(p.OR, indefinite, apply(p.NOT, sound))
        inverse[k] = 1.0 / a[k, k]
        for i in range(k + 1, n):
            scaled[i, k] = a[i, k] * inverse[k]
            x[i] = x[i] - scaled[i, k] * x[k]
            for j in range(k + 1, i + 1):
                a[i, j] = a[i, j] - scaled[i, k] * a[j, k]
    for k in reversed(range(n)):
        x[k] = inverse[k] * x[k]
        for i in range(k + 1, n):
            x[k] = x[k] - scaled[i, k] * x[i]
    return (x[:, 0] if single else x), indefinite


def cholesky(a: Array, **options: Any) -> Array:
    """Return L, lower triangular, with L Lᵀ = A, of which the lower half is read; fails where NumPy raises.

    That is where A is not positive definite.
    """
    a, upper = _square(a), options.pop("upper", False)
    if options or not isinstance(upper, bool):
        raise SymbolicBranch(f"options {sorted(options)} of np.linalg.cholesky cannot be written down with symbols")
    a, root = (a.T if upper else a), np.zeros(a.shape, dtype=object)
    for k in range(len(a)):
        left = a[k, k] - (root[k, :k] * root[k, :k]).sum() if k else a[k, k]
        require_zero(apply(p.NOT, apply(p.GREATER, left, 0.0)))
        root[k, k] = apply(p.SQRT, left)
        for i in range(k + 1, len(a)):
            root[i, k] = ((a[i, k] - root[i, :k] @ root[k, :k]) if k else a[i, k]) / root[k, k]
    return root.T if upper else root


class SignedLogarithm(NamedTuple):
    """The sign of a determinant and the logarithm of its size, as NumPy calls them."""

    sign: Number
    logabsdet: Number


def signed_logarithm(a: Array) -> SignedLogarithm:
    """Return the sign of det A and the logarithm of its size."""
    value = determinant(a)
    return SignedLogarithm(apply(p.SIGN, value), apply(p.LOG, apply(p.ABS, value)))


def inverse(a: Array) -> Array:
    """Return A⁻¹."""
    return solve(a, np.eye(len(a)))


def determinant(a: Array) -> Number:
    """Return det A, exactly zero where a column has no pivot."""
    a = _square(a)
    if len(a) <= _EXPANDED:  # its definition has no pivots, and derivatives everywhere
        return _expanded(a)
    a, _, value = _eliminated(a, np.zeros((len(a), 0), dtype=object), columns=True)
    for k in range(len(a) - 1):
        value = where(apply(p.EQUAL, a[k, k], 0.0) | apply(p.EQUAL, value, 0.0), 0.0, value * a[k, k])
    # behind a pivot of zero all is NaN; the last one is divided by nowhere, and the product changes with it
    return where(apply(p.EQUAL, value, 0.0), 0.0, value * a[-1, -1])


def is_singular(a: Array) -> Number:
    """Return whether elimination meets a pivot that is exactly zero."""
    a = _square(a)
    a, _, _ = _eliminated(a, np.zeros((len(a), 0), dtype=object))
    found: Any = False
    for k in range(len(a)):  # behind a pivot of zero all is NaN
        found = found | apply(p.EQUAL, a[k, k], 0.0)
    return found


def _expanded(a: Array) -> Number:
    if len(a) == 1:
        return a[0, 0]
    minors = [np.delete(a[1:], j, axis=1) for j in range(len(a))]
    return sum(((-1.0) ** j * a[0, j] * _expanded(minor) for j, minor in enumerate(minors)), 0.0)


# Singular values -----------------------------------------------------------------------------------------


def _orthogonalised(a: Array) -> tuple[Array, Array]:
    """Return U and V with A V = U, whose columns are orthogonal; A has at least as many rows as columns."""
    u, columns = np.array(a, dtype=object), a.shape[1]
    if columns > _WIDEST:
        raise SymbolicBranch(f"singular values of more than {_WIDEST} columns are not written down with symbols")
    v = np.array(np.eye(columns), dtype=object)
    for _ in range(min(2 + 2 * columns, 9) if columns > 1 else 0):
        for i in range(columns - 1):
            for j in range(i + 1, columns):
                _rotate(u, v, i, j)
    return u, v


def _rotate(u: Array, v: Array, i: int, j: int) -> None:
    """Turn two columns so that they are orthogonal."""
    difference, product = u[:, j] @ u[:, j] - u[:, i] @ u[:, i], u[:, i] @ u[:, j]
    # tan θ = 2 uᵢuⱼ / (d ± √(d² + 4 (uᵢuⱼ)²)), d = uⱼuⱼ - uᵢuᵢ: regular where the columns are orthogonal already
    both = difference * difference + 4.0 * product * product
    there = apply(p.GREATER, both, 0.0)
    root = where(there, apply(p.SQRT, where(there, both, 1.0)), 0.0)
    below = difference + where(apply(p.AT_LEAST, difference, 0.0), root, -root)
    tangent = where(there, 2.0 * product / where(there, below, 1.0), 0.0)
    c = 1.0 / apply(p.SQRT, 1.0 + tangent * tangent)
    s = c * tangent
    for m in (u, v):
        first, second = m[:, i].copy(), m[:, j].copy()
        m[:, i], m[:, j] = c * first - s * second, s * first + c * second


def singular_values(a: Array) -> Array:
    """Return the singular values, the largest first."""
    a = np.array(a, dtype=object)
    u, _ = _orthogonalised(a if a.shape[0] >= a.shape[1] else a.T)
    return _descending([_length(u[:, k]) for k in range(u.shape[1])])


def _descending(values: list[Number]) -> Array:
    for end in range(len(values) - 1, 0, -1):
        for k in range(end):
            a, b = values[k], values[k + 1]
            values[k], values[k + 1] = apply(p.MAXIMUM, a, b), apply(p.MINIMUM, a, b)
    return np.array(values, dtype=object)


def _length(vector: Array) -> Number:
    """Return √Σ x², whose derivative at zero, where it has none, is zero."""
    total = (vector * vector).sum() if len(vector) else 0.0
    return where(apply(p.GREATER, total, 0.0), apply(p.SQRT, total), total)


def condition(a: Array, order: Any = None) -> Number:
    """Return the ratio of the largest and the smallest singular value."""
    if order is not None:
        raise SymbolicBranch("only the condition in the 2-norm can be written down with symbols")
    values = singular_values(a)
    return values[0] / values[-1]


def pseudoinverse(a: Array, rcond: float = 1e-15, **more: Any) -> Array:
    """Return the pseudo-inverse of Moore and Penrose: singular values of at most `rcond` of the largest are none."""
    if any(value is not np._NoValue for value in more.values()) or not isinstance(rcond, (float, type(None))):
        raise SymbolicBranch("options of np.linalg.pinv cannot be written down with symbols")
    a = np.array(a, dtype=object)
    wide = a.shape[0] < a.shape[1]
    u, v = _orthogonalised(a.T if wide else a)
    squares = [(u[:, k] * u[:, k]).sum() for k in range(u.shape[1])]
    largest = squares[0]
    for square in squares[1:]:
        largest = apply(p.MAXIMUM, largest, square)
    least = (1e-15 if rcond is None else rcond) ** 2 * largest
    out: Any = 0.0
    for k, square in enumerate(squares):
        counts = apply(p.GREATER, square, least)
        weight = where(counts, 1.0 / where(counts, square, 1.0), 0.0)
        out = out + np.multiply.outer(v[:, k], weight * u[:, k])
    return out.T if wide else out


# Norms ---------------------------------------------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of a vector or matrix, or of vectors along an axis."""
    if keepdims or not (axis is None or isinstance(axis, int)):
        raise SymbolicBranch("norms over several axes cannot be written down with symbols")
    x = np.asarray(x, dtype=object)
    if axis is None and (ord is None or x.ndim == 1):
        return _vector_norm(x.ravel(), ord)
    if axis is None:
        return _matrix_norm(x, ord)
    lines = np.moveaxis(x, axis, -1)
    out = np.empty(lines.shape[:-1], dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = _vector_norm(lines[place], ord)
    return out if out.ndim else out[()]


def _vector_norm(vector: Array, order: Any) -> Number:
    if order is None or order == 2:
        return _length(vector)
    sizes = [apply(p.ABS, item) for item in vector]
    if order in (math.inf, -math.inf):
        return _chained(p.MAXIMUM if order > 0 else p.MINIMUM, sizes)
    if order == 0:
        return sum((where(apply(p.UNEQUAL, size, 0.0), 1.0, 0.0) for size in sizes), 0.0)
    if order == 1:
        return sum(sizes, 0.0)
    if not isinstance(order, (int, float)):
        raise SymbolicBranch(f"there is no norm {order!r} of a vector")
    return apply(p.POW, sum((apply(p.POW, size, float(order)) for size in sizes), 0.0), 1.0 / order)


def _matrix_norm(a: Array, order: Any) -> Number:
    if order == "fro":
        return _length(a.ravel())
    if order == "nuc":
        return singular_values(a).sum()
    if order in (2, -2):
        return singular_values(a)[0 if order == 2 else -1]
    if order in (1, -1, math.inf, -math.inf):
        lines = a.T if abs(order) == 1 else a
        sums = [sum((apply(p.ABS, item) for item in line), 0.0) for line in lines]
        return _chained(p.MAXIMUM if order > 0 else p.MINIMUM, sums)
    raise SymbolicBranch(f"there is no norm {order!r} of a matrix")


def _chained(primitive: p.Primitive, items: list[Number]) -> Number:
    found = items[0]
    for item in items[1:]:
        found = apply(primitive, found, item)
    return found


#: NumPy's functions that these stand for.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.norm: norm,
    np.linalg.solve: solve,
    np.linalg.inv: inverse,
    np.linalg.det: determinant,
    np.linalg.slogdet: signed_logarithm,
    np.linalg.cholesky: cholesky,
    np.linalg.cond: condition,
    np.linalg.pinv: pseudoinverse,
}
