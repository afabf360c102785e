"""Small dense matrices, row by row in flat arrays, as a compiled diagram asks for them: none of it allocates or raises.

Linear equations are solved by elimination with row pivoting, as LAPACK does; singular values come from the one-sided
rotations of Jacobi (Golub and Van Loan, Matrix Computations, 4th ed., section 8.6.3).
"""

from __future__ import annotations

import math

from cstormpy.kernels.entries import entry
from cstormpy.kernels.steps import step

#: Sweeps of rotations; three to five do for matrices of this size.
_SWEEPS = 60
_EPS = 2.220446049250313e-16


@step
def swap_rows(A, columns, i, k):
    for j in range(columns):
        A[i * columns + j], A[k * columns + j] = A[k * columns + j], A[i * columns + j]


@step
def pivot_row(A, n, k):
    """Return the row from k on with the largest number in column k."""
    best = k
    for i in range(k + 1, n):
        if abs(A[i * n + k]) > abs(A[best * n + k]):
            best = i
    return best


@entry("i8(f8[::1], f8[::1], i8, i8)", nogil=True)
def solve(A, B, n, columns):
    """Put X of A X = B in the place of B (n, columns), and factors in that of A (n, n); return 1 if A is singular."""
    for k in range(n):
        best = pivot_row(A, n, k)
        if A[best * n + k] == 0.0:
            return 1
        if best != k:
            swap_rows(A, n, k, best)
            swap_rows(B, columns, k, best)
        for i in range(k + 1, n):
            factor = A[i * n + k] / A[k * n + k]
            for j in range(k + 1, n):
                A[i * n + j] -= factor * A[k * n + j]
            for j in range(columns):
                B[i * columns + j] -= factor * B[k * columns + j]
    for k in range(n - 1, -1, -1):
        for j in range(columns):
            value = B[k * columns + j]
            for i in range(k + 1, n):
                value -= A[k * n + i] * B[i * columns + j]
            B[k * columns + j] = value / A[k * n + k]
    return 0


@entry("f8(f8[::1], i8)", nogil=True)
def determinant(A, n):
    """Return the determinant of A (n, n), which is overwritten."""
    value = 1.0
    for k in range(n):
        best = pivot_row(A, n, k)
        if A[best * n + k] == 0.0:
            return 0.0
        if best != k:
            swap_rows(A, n, k, best)
            value = -value
        value *= A[k * n + k]
        for i in range(k + 1, n):
            factor = A[i * n + k] / A[k * n + k]
            for j in range(k + 1, n):
                A[i * n + j] -= factor * A[k * n + j]
    return value


@step
def rotate_columns(A, columns, rows, p, q, c, s):
    for i in range(rows):
        first, second = A[i * columns + p], A[i * columns + q]
        A[i * columns + p] = c * first - s * second
        A[i * columns + q] = s * first + c * second


@step
def make_orthogonal(A, V, rows, columns):
    """Rotate the columns of A (rows, columns) until they are orthogonal, and those of V (columns, columns) alike."""
    for _ in range(_SWEEPS):
        rotated = False
        for p in range(columns - 1):
            for q in range(p + 1, columns):
                a, b, g = 0.0, 0.0, 0.0
                for i in range(rows):
                    x, y = A[i * columns + p], A[i * columns + q]
                    a, b, g = a + x * x, b + y * y, g + x * y
                if abs(g) <= _EPS * math.sqrt(a * b) or not math.isfinite(g):
                    continue
                rotated = True
                zeta = (b - a) / (2.0 * g)
                t = 1.0 / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
                if zeta < 0.0:
                    t = -t
                c = 1.0 / math.sqrt(1.0 + t * t)
                rotate_columns(A, columns, rows, p, q, c, c * t)
                rotate_columns(V, columns, columns, p, q, c, c * t)
        if not rotated:
            break


@step
def column_norms(A, rows, columns, s):
    for j in range(columns):
        total = 0.0
        for i in range(rows):
            total += A[i * columns + j] * A[i * columns + j]
        s[j] = math.sqrt(total)


@step
def make_unit(V, n):
    for i in range(n):
        for j in range(n):
            V[i * n + j] = 1.0 if i == j else 0.0


@entry("void(f8[::1], f8[::1], i8, i8, f8[::1])", nogil=True)
def singular_values(A, V, rows, columns, s):
    """Fill s (columns) with the singular values of A (rows, columns), rows >= columns, the largest first.

    A and V (columns, columns) are overwritten.
    """
    make_unit(V, columns)
    make_orthogonal(A, V, rows, columns)
    column_norms(A, rows, columns, s)
    for i in range(1, columns):
        value, k = s[i], i
        while k > 0 and s[k - 1] < value:
            s[k] = s[k - 1]
            k -= 1
        s[k] = value


@entry("void(f8[::1], f8[::1], i8, i8, f8[::1], f8, f8[::1])", nogil=True)
def pseudoinverse(A, V, rows, columns, s, least, out):
    """Fill out (columns, rows) with the pseudo-inverse of A (rows, columns), rows >= columns.

    Singular values of at most `least` times the largest count as zero. A, V (columns, columns) and s (columns) are
    overwritten.
    """
    make_unit(V, columns)
    make_orthogonal(A, V, rows, columns)
    column_norms(A, rows, columns, s)
    largest = 0.0
    for j in range(columns):
        largest = max(largest, s[j])
    for i in range(columns):
        for k in range(rows):
            total = 0.0
            for j in range(columns):
                if s[j] > least * largest:
                    total += V[i * columns + j] * (A[k * columns + j] / s[j]) / s[j]
            out[i * rows + k] = total
