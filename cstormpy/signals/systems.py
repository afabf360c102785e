"""Linear systems: transfer functions of several inputs and outputs as state-space models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown

Matrices = tuple[Array, Array, Array, Array]


def linear_output(C: Any, D: Any, x: Any, u: Any) -> Any:
    """Return C x + D u; without D where it is None."""
    return C @ x if D is None else C @ x + D @ u


def linear_rate(A: Any, B: Any, x: Any, u: Any) -> Any:
    """Return A x + B u."""
    return A @ x + B @ u


def state_space(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None) -> Matrices:
    """Return the matrices of a linear system, which must fit one another.

    Numbers are those of one state, input or output; a vector is a column in B, and a row in C.

    >>> [M.shape for M in state_space(-1.0, [2.0], [[1.0], [3.0]])]
    [(1, 1), (1, 1), (2, 1), (2, 1)]
    """
    a, b, c = (real_array(M, name, (), ("any",), ("any", "any")) + 0.0 for M, name in ((A, "A"), (B, "B"), (C, "C")))
    a = a.reshape(1, 1) if a.ndim == 0 else a
    n = len(a)
    if a.shape != (n, n) or not n:
        raise ShapeError(f"A: expected a square matrix, got shape {a.shape}")
    b = b.reshape(n, -1) if b.ndim < 2 and b.size in (1, n) and (b.ndim or n == 1) else b
    c = c.reshape(-1, n) if c.ndim < 2 and c.size in (1, n) and (c.ndim or n == 1) else c
    if b.ndim != 2 or len(b) != n:
        raise ShapeError(f"B: expected {n} rows, as A has, got shape {b.shape}")
    if c.ndim != 2 or c.shape[1] != n:
        raise ShapeError(f"C: expected {n} columns, as A has, got shape {c.shape}")
    wanted = (len(c), b.shape[1])
    if D is None:
        return a, b, c, np.zeros(wanted)
    d = real_array(D, "D", (), ("any",), ("any", "any")) + 0.0
    if d.size != wanted[0] * wanted[1] or (d.ndim == 2 and d.shape != wanted):
        raise ShapeError(f"D: expected shape {wanted}, as C has rows and B columns, got {d.shape}")
    return a, b, c, d.reshape(wanted)


def realized(num: Any, den: Any) -> Matrices:
    """Return a state-space model of transfer functions, in controller canonical form.

    Parameters
    ----------
    num, den : sequence
        Coefficients of polynomials, the highest power first, or rows of such polynomials: an entry for each output and
        input. One denominator may stand for all.

    Examples
    --------
    >>> A, B, C, D = realized([1.0, 2.0], [1.0, 3.0, 5.0])
    >>> A.tolist(), C.tolist(), D.tolist()
    ([[-3.0, -5.0], [1.0, 0.0]], [[1.0, 2.0]], [[0.0]])
    """
    rows = _rows(num, "num")
    shape = len(rows), len(rows[0])
    if any(len(row) != shape[1] for row in rows):
        raise ShapeError(f"num: expected as many entries in each row, got {[len(row) for row in rows]}")
    below = _rows(den, "den")
    if (len(below), len(below[0])) == (1, 1):
        below = [[below[0][0]] * shape[1] for _ in range(shape[0])]
    if [len(row) for row in below] != [shape[1]] * shape[0]:
        raise ShapeError(f"den: expected one polynomial or {shape[0]} rows of {shape[1]}, as num has")
    parts = [
        (i, j, _single(rows[i][j], below[i][j], f"entry ({i}, {j})")) for i in range(shape[0]) for j in range(shape[1])
    ]
    n = sum(len(part[0]) for _, _, part in parts)
    A, B, C, D = np.zeros((n, n)), np.zeros((n, shape[1])), np.zeros((shape[0], n)), np.zeros(shape)
    k = 0
    for i, j, (a, c, d) in parts:
        span = slice(k, k + len(a))
        A[span, span], C[i, span], D[i, j] = a, c, d
        if len(a):
            B[k, j] = 1.0
        k += len(a)
    return A, B, C, D


def _single(num: Array, den: Array, what: str) -> tuple[Array, Array, float]:
    """Return A, C and D of one transfer function; B is 1 and zeros."""
    lead = np.trim_zeros(den, "f")
    if not lead.size:
        raise InvalidValue(f"den: {what} is zero")
    above = np.trim_zeros(num, "f") / lead[0]
    below = lead / lead[0]
    n = below.size - 1
    if above.size > n + 1:
        raise InvalidValue(
            f"num: {what} has a higher power than its denominator, so that it would differentiate; add a pole"
        )
    full = np.concatenate([np.zeros(n + 1 - above.size), above])
    d = float(full[0])
    A = np.zeros((n, n))
    if n:
        A[0], A[1:, :-1] = -below[1:], np.eye(n - 1)
    return A, full[1:] - d * below[1:], d


def _rows(value: Any, what: str) -> list[list[Array]]:
    """Return polynomials as rows of arrays, from a number, a polynomial, or rows of these."""
    depth, given = _depth(value), value
    if depth <= 1:
        value = [[value if depth else [value]]]
    elif depth != 3:
        raise InvalidType(
            f"{what}: expected the coefficients of a polynomial, or rows of polynomials as [[[1], [2, 1]]], got "
            f"{shown(value)}; of SciPy's matrix with a row for each output make [[row] for row in {what}]"
        )
    rows = [[real_array(entry, what, ("any",)) + 0.0 for entry in row] for row in value]
    if not all(row and all(entry.size for entry in row) for row in rows or [[]]):
        raise InvalidValue(f"{what}: expected at least one coefficient of each polynomial, got {shown(given)}")
    return rows


def _depth(value: Any) -> int:
    """Return how deep lists are nested, by their first entries."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if not isinstance(value, (list, tuple)):
        return 0
    return 1 + (_depth(value[0]) if value else 0)
