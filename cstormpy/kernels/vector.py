"""Three-vectors, rotations and symmetric matrices as tuples of numbers, and the elementary functions."""

import math

from cstormpy.kernels.lanes import all_greater, exact_sincos, load, store, where_positive
from cstormpy.kernels.steps import step

# Tuples in memory ----------------------------------------------------------------------------------


@step
def load3(W, i, like):
    return load(W, i, like), load(W, i + 1, like), load(W, i + 2, like)


@step
def store3(W, i, x):
    store(W, i, x[0])
    store(W, i + 1, x[1])
    store(W, i + 2, x[2])


@step
def increase3(W, i, x):
    store(W, i, load(W, i, x[0]) + x[0])
    store(W, i + 1, load(W, i + 1, x[0]) + x[1])
    store(W, i + 2, load(W, i + 2, x[0]) + x[2])


@step
def table3(T, i):
    return T[i], T[i + 1], T[i + 2]


# Vectors -------------------------------------------------------------------------------------------


@step
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@step
def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@step
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@step
def add_scaled(a, s, b):
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@step
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@step
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


# Symmetric matrices xx xy xz yy yz zz ----------------------------------------------------------------


@step
def symmetric_times(S, a):
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@step
def load6(W, i, like):
    return (
        load(W, i, like),
        load(W, i + 1, like),
        load(W, i + 2, like),
        load(W, i + 3, like),
        load(W, i + 4, like),
        load(W, i + 5, like),
    )


@step
def store6(W, i, x):
    for k in range(6):
        store(W, i + k, x[k])


@step
def rotated_inertia(A, T, i):
    """Return A I Aᵀ for the symmetric I that stands at T[i:i + 6] and the columns A of a rotation."""
    xx, xy, xz, yy, yz, zz = T[i], T[i + 1], T[i + 2], T[i + 3], T[i + 4], T[i + 5]
    x, y, z = A
    bx = (x[0] * xx + y[0] * xy + z[0] * xz, x[1] * xx + y[1] * xy + z[1] * xz, x[2] * xx + y[2] * xy + z[2] * xz)
    by = (x[0] * xy + y[0] * yy + z[0] * yz, x[1] * xy + y[1] * yy + z[1] * yz, x[2] * xy + y[2] * yy + z[2] * yz)
    bz = (x[0] * xz + y[0] * yz + z[0] * zz, x[1] * xz + y[1] * yz + z[1] * zz, x[2] * xz + y[2] * yz + z[2] * zz)
    return (
        bx[0] * x[0] + by[0] * y[0] + bz[0] * z[0],
        bx[0] * x[1] + by[0] * y[1] + bz[0] * z[1],
        bx[0] * x[2] + by[0] * y[2] + bz[0] * z[2],
        bx[1] * x[1] + by[1] * y[1] + bz[1] * z[1],
        bx[1] * x[2] + by[1] * y[2] + bz[1] * z[2],
        bx[2] * x[2] + by[2] * y[2] + bz[2] * z[2],
    )


# Rotations: three columns ----------------------------------------------------------------------------


@step
def load_columns(W, i, like):
    """Return the columns of the 3x3 matrix that stands row by row at index i."""
    return (
        (load(W, i, like), load(W, i + 3, like), load(W, i + 6, like)),
        (load(W, i + 1, like), load(W, i + 4, like), load(W, i + 7, like)),
        (load(W, i + 2, like), load(W, i + 5, like), load(W, i + 8, like)),
    )


@step
def store_columns(W, i, A):
    for k in range(3):
        store(W, i + 3 * k, A[0][k])
        store(W, i + 3 * k + 1, A[1][k])
        store(W, i + 3 * k + 2, A[2][k])


@step
def column_times(A, a, b, c):
    """Return A (a, b, c)ᵀ."""
    x, y, z = A
    return (
        x[0] * a + y[0] * b + z[0] * c,
        x[1] * a + y[1] * b + z[1] * c,
        x[2] * a + y[2] * b + z[2] * c,
    )


@step
def rotate(A, T, i):
    """Return A times the vector that stands at T[i:i + 3]."""
    return column_times(A, T[i], T[i + 1], T[i + 2])


# Sine and cosine -------------------------------------------------------------------------------------

#: Beyond this square of the angle the reduction below would lose digits, and the library is asked.
_LARGE = 1e12
#: Adding and subtracting this rounds a float64 to the nearest integer.
_ROUND = 6755399441055744.0
_TWO_OVER_PI = 2.0 / math.pi
#: pi/2 in three parts of which the first two have so few bits that their multiples are exact.
_PIO2_1 = float.fromhex("0x1.921fb54400000p+0")
_PIO2_2 = float.fromhex("0x1.0b4611a600000p-34")
_PIO2_3 = float.fromhex("0x1.3198a2e037073p-69")


@step(symbolic=lambda x: (x.sin(), x.cos()))
def sincos(x):
    """Return sine and cosine of a number, to about one unit in the last place of 1.

    The nearest multiple of pi/2 is taken off (Cody and Waite), the rest goes into two polynomials whose
    coefficients are those of the freely distributable library of Sun, and the quadrant decides which
    polynomial is which. Large or non-finite angles go to the library itself.
    """
    if not all_greater(_LARGE, x * x):
        return exact_sincos(x)
    n = (x * _TWO_OVER_PI + _ROUND) - _ROUND
    r = ((x - n * _PIO2_1) - n * _PIO2_2) - n * _PIO2_3
    z = r * r
    s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
    s = r + r * z * (-1.66666666666666324348e-01 + z * s)
    c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    c = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c)
    c = (1.0 - 0.5 * z) + z * z * (4.16666666666666019037e-02 + z * c)
    quadrant = n - 4.0 * (((n * 0.25 - 0.375) + _ROUND) - _ROUND)
    upper = where_positive(quadrant - 1.5, 2.0, 0.0)
    odd = (quadrant - upper) - 0.5
    sign = 1.0 - upper
    return sign * where_positive(odd, c, s), sign * where_positive(odd, -s, c)
