"""Exponential and logarithm of SO(3) and SE(3).

The factors of φ in them and their derivatives keep their digits from φ = 0 on: products of half-angle sines where there
are such forms, power series in φ² up to `SERIES_ANGLE` where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.graph.arrays import zeros
from cstormpy.lie.arguments import EPS, _apply, _array, _guarded, _read, _refuse_any, _times, _transpose
from cstormpy.lie.groups import _pose, check_pose, check_rotation
from cstormpy.lie.matrices import _hat3, _read_twist

SERIES_ANGLE = float(np.pi)
"""Up to this φ the factors that cancel near 0 are summed as series; above it the closed forms lose no more than
a factor of ten (worst: c'/φ, 9.6 at π)."""
SERIES_TERMS = 32
"""The slowest series, c'/φ, has its pole at 2π: at φ = π its term k is k 4⁻ᵏ/π⁴, so that what is left out from
k = 32 on is 2.4e-20 of 4.8e-3, below EPS/32. The series with factorials have ended long before."""


def _quotient(upper: Sequence[Fraction], lower: Sequence[Fraction]) -> list[Fraction]:
    """Return the power series upper / lower."""
    result: list[Fraction] = []
    for k, value in enumerate(upper):
        result.append((value - sum(lower[k - j] * c for j, c in enumerate(result))) / lower[0])
    return result


def _with_slope(series: Sequence[Fraction]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the series in φ² of f and of f'(φ)/φ = 2 df/d(φ²), rounded once."""
    return tuple(float(c) for c in series), tuple(float(2 * k * c) for k, c in enumerate(series) if k)


def _factorials(shift: int, scale: int = 1) -> list[Fraction]:
    """Return Σ (-φ²/scale)ᵏ / (2k + shift)!."""
    return [Fraction((-1) ** k, scale**k * factorial(2 * k + shift)) for k in range(SERIES_TERMS + 1)]


def _cotangent() -> list[Fraction]:
    """Return the series of (1 - x cot x)/φ², x = φ/2, which is ((sin x)/x - cos x)/φ² over (sin x)/x."""
    sine = _factorials(1, 4)
    return _quotient([s - k for s, k in zip(sine, _factorials(0, 4), strict=True)][1:], sine)


(_, _A_SLOPE), (_B, _B_SLOPE), (_C, _C_SLOPE) = map(_with_slope, (_factorials(2), _factorials(3), _cotangent()))


def _factor(phi: Array, series: Sequence[float], closed: Callable[[Array], Array]) -> Array:
    """Sum `series` in φ² up to `SERIES_ANGLE`, and take the `closed` form above it."""
    small = phi <= SERIES_ANGLE
    square = np.where(small, phi, 0.0) ** 2
    total: Any = series[-1]
    for coefficient in reversed(series[:-1]):
        total = total * square + coefficient
    return np.where(small, total, closed(np.where(small, SERIES_ANGLE, phi)))


def _sinc(phi: Array) -> Array:
    """(sin φ)/φ, which loses no digits."""
    turned = np.where(phi == 0, 1.0, phi)
    return _array(np.where(phi == 0, 1.0, np.sin(turned) / turned))


def _a(phi: Array) -> Array:
    """(1 - cos φ)/φ² = ((sin φ/2)/(φ/2))²/2, which loses no digits either."""
    return 0.5 * _sinc(0.5 * phi) ** 2


def _b(phi: Array) -> Array:
    """(φ - sin φ)/φ³."""
    return _factor(phi, _B, lambda x: (x - np.sin(x)) / x**3)


def _c(phi: Array) -> Array:
    """(2 sin φ - φ (1 + cos φ)) / (2 φ² sin φ) = (1 - (φ/2) cot φ/2)/φ²."""
    return _factor(phi, _C, lambda x: (1 - 0.5 * x / np.tan(0.5 * x)) / x**2)


def _a_slope(phi: Array) -> Array:
    """a'(φ)/φ."""
    return _factor(phi, _A_SLOPE, lambda x: (_sinc(x) - 2 * _a(x)) / x**2)


def _b_slope(phi: Array) -> Array:
    """b'(φ)/φ."""
    return _factor(phi, _B_SLOPE, lambda x: (_a(x) - 3 * _b(x)) / x**2)


def _c_slope(phi: Array) -> Array:
    """c'(φ)/φ."""
    return _factor(phi, _C_SLOPE, lambda x: (0.25 / np.sin(0.5 * x) ** 2 - 1 / x**2 - _c(x)) / x**2)


def _polynomial(W: Array, f1: Array | float, f2: Array) -> Array:
    """1 + f1 [ω] + f2 [ω]²."""
    return np.eye(3) + _times(f1, W) + _times(f2, W @ W)


ANGLE_LIMIT = 1 / EPS
"""Longest rotation vector taken, 2**52 rad: from there on neighbouring floats are a radian or more apart."""


def _length(vector: Array) -> Array:
    """|v|, whose derivative at 0, where it has none, is 0."""
    square = (vector * vector).sum(axis=-1)
    return _array(np.where(square > 0, np.sqrt(np.where(square > 0, square, 1.0)), 0.0))


def _angle(omega: Array, name: str) -> Array:
    """φ = |ω|, refused where the floats are too coarse for an angle."""
    phi = _length(omega)
    _refuse_any(
        phi > ANGLE_LIMIT,
        name,
        lambda row: f"expected |ω| <= {ANGLE_LIMIT:.1e} rad, got {phi[row]:.1e}: an angle without a digit left",
    )
    return phi


@_guarded
def exp_so3(omega: ArrayLike) -> Array:
    """Rotation (..., 3, 3) by |ω| radians about ω (..., 3): (5).

    >>> exp_so3([0, 0, np.pi / 2]).round(12)
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    vector = _read(omega, "omega", (3,))
    phi = _angle(vector, "omega")
    return _polynomial(_hat3(vector), _sinc(phi), _a(phi))  # (5)


@_guarded
def exp_se3(g: ArrayLike) -> Array:
    """Pose (..., 4, 4) that a body reaches by the twist g = (ω, v) in unit time: (6).

    A joint of screw S at coordinate q is ``M @ exp_se3(S * q)``, and a chain their product: (17).

    Parameters
    ----------
    g : array_like, (..., 6) or (..., 4, 4)
        Twist in radians and metres, |ω| at most `ANGLE_LIMIT`; |ω| = 0 is a translation.

    Examples
    --------
    >>> exp_se3([0, 0, np.pi / 2, 0, -np.pi / 2, 0])[:, 3].round(12)  # quarter turn about (1, 0, 0), v = q × ω
    array([ 1., -1.,  0.,  1.])
    """
    twist = _read_twist(g, "g")
    W, v, phi = _hat3(twist[..., :3]), twist[..., 3:], _angle(twist[..., :3], "g")
    A = _polynomial(W, _a(phi), _b(phi))
    return _pose(_polynomial(W, _sinc(phi), _a(phi)), _apply(A, v))  # (5), (6)


def quaternion_so3(R: Array) -> Array:
    """Quaternion (scalar, vector) of a rotation, its scalar >= 0, of a length between 2 and 4.

    K = 4 q qᵀ is linear in R; each of its rows is a multiple of q, and the one with the largest diagonal entry (at
    least 1) has no cancellation.
    """
    trace = R[..., 0, 0] + R[..., 1, 1] + R[..., 2, 2]
    K = zeros((*R.shape[:-2], 4, 4), R)
    K[..., 1:, 1:] = R + _transpose(R)
    for i, j, k in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        K[..., 0, i] = K[..., i, 0] = R[..., k - 1, j - 1] - R[..., j - 1, k - 1]
    for i in (1, 2, 3):
        K[..., i, i] = K[..., i, i] + (1 - trace)
    K[..., 0, 0] = 1 + trace
    q, largest = K[..., 0, :], K[..., 0, :1]
    for i in (1, 2, 3):
        larger = K[..., i, i : i + 1] > largest
        q, largest = np.where(larger, K[..., i, :], q), np.where(larger, K[..., i, i : i + 1], largest)
    return _array(np.where(q[..., :1] < 0, -q, q))


def _log_so3(R: Array) -> Array:
    """Logarithm by half angles: ω is along the vector part of the quaternion of R, φ/2 = atan2(vector, scalar) <= π/2.

    Near φ = 0 the scalar's row of the quaternion is that of (7).
    """
    q = quaternion_so3(R)
    size = _length(q[..., 1:])
    # an underflowing size means φ ~ 0, where 2 atan2(size, scalar)/size = 2/scalar
    known = np.where(size > 0, size, 1.0)
    ratio = np.where(size > 0, 2 * np.arctan2(known, q[..., 0]) / known, 2 / np.where(size > 0, 1.0, q[..., 0]))
    return _array(ratio)[..., None] * q[..., 1:]  # (7)


@_guarded
def log_so3(R: ArrayLike) -> Array:
    """Rotation vector ω (..., 3) with |ω| <= π of a rotation (..., 3, 3): (7), in half angles.

    At |ω| = π both ω and -ω are right; the one whose largest component is positive is returned.

    >>> log_so3(np.diag([-1, 1, -1]))
    array([0.        , 3.14159265, 0.        ])
    """
    return _log_so3(check_rotation(R))


@_guarded
def log_se3(T: ArrayLike) -> Array:
    """Twist g = (ω, v) (..., 6) with |ω| <= π and exp(g) = T, of a pose (..., 4, 4): (8).

    >>> log_se3(exp_se3([0.1, 0.2, 0.3, 4, 5, 6])).round(12)
    array([0.1, 0.2, 0.3, 4. , 5. , 6. ])
    """
    pose = check_pose(T)
    omega = _log_so3(pose[..., :3, :3])
    A_inv = _polynomial(_hat3(omega), -0.5, _c(_angle(omega, "T")))
    return np.concatenate([omega, _apply(A_inv, pose[..., :3, 3])], axis=-1)  # (8)
