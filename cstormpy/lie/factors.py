"""The factors of φ in exp, log and their derivatives, which keep their digits from φ = 0 on.

Products of half-angle sines where there are such forms, power series in φ² up to `SERIES_ANGLE` where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial

import numpy as np

from cstormpy.arrays import Array
from cstormpy.lie.arguments import _times

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
    total = np.zeros_like(square)
    for coefficient in reversed(series):
        total = total * square + coefficient
    return np.where(small, total, closed(np.where(small, SERIES_ANGLE, phi)))


def _sinc(phi: Array) -> Array:
    """(sin φ)/φ, which loses no digits."""
    return np.asarray(np.divide(np.sin(phi), phi, out=np.ones_like(phi), where=phi != 0), dtype=np.float64)


def _a(phi: Array) -> Array:
    """(1 - cos φ)/φ² = ((sin φ/2)/(φ/2))²/2, which loses no digits either."""
    return np.asarray(0.5 * _sinc(0.5 * phi) ** 2, dtype=np.float64)


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
    return np.eye(3) + _times(np.asarray(f1, dtype=np.float64), W) + _times(f2, W @ W)
