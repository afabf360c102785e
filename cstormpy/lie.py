"""The groups SO(3) and SE(3), their algebras, and what rigid bodies make of them, in readable NumPy.

References: Sohl & Bobrow 2001, section 2, (1)-(17) and (19); Kim 2012, sections 1.1-1.4, there as "Kim (n)".

====== ================ ==============================================================================
letter shape            meaning
====== ================ ==============================================================================
R      (..., 3, 3)      rotation Θ: its columns are the axes of the moving frame
T, G   (..., 4, 4)      pose [[Θ, b], [0, 1]]: T_ab is the pose of frame b in frame a, x_a = T_ab x_b
omega  (..., 3)         rotation vector or angular velocity ω, radians (per second); φ = |ω|
g, V   (..., 6)         screw or twist (ω, v), v in metres (per second); as a matrix [[ω], v; 0, 0]
F      (..., 6)         wrench or momentum (moment, force); as a matrix [[force], moment; 0, 0]
J      (..., 6, 6)      spatial inertia in (ω, v) order, about the frame's origin
====== ================ ==============================================================================

Velocities are body-fixed. Every function takes a batch (leading dimensions broadcast), returns fresh float64, and
refuses by the argument's name: `ShapeError` (shape), `NonFinite` (NaN, infinity, a result that overflows),
`InvalidType` (not real numbers), `InvalidValue` (not a rotation, not skew, no answer). so(3) is taken as 3-vectors
only, since three vectors and one 3x3 matrix have the same shape; se(3) as 6-vectors or 4x4 matrices.

The trigonometric factors keep their digits from φ = 0 to π and beyond: products of half-angle sines where there are
such forms, power series in φ² up to `SERIES_ANGLE` where there are none.

Where this departs from the print: log takes atan2 of half angles, since (7) and A⁻¹ of (8) are 0/0 at φ = π (and
the trace below (8) is 1 + 2 cos φ); (11) agrees with (12) if the matrix of a wrench has the *force* in the rotation's
place; then (15) agrees with (16) as ad*_g(h*) = [h*, g]; and the change of frame after (12) is, as in Kim (13),
F_2 = Ad*_{T_12} F_1.

>>> T = make_pose(exp_so3([0, 0, np.pi / 2]), [1, 0, 0])
>>> transform_twist(T, [0, 0, 1, 0, 0, 0]).round(12)  # turning about b's z axis, seen from a
array([ 0.,  0.,  1.,  0., -1.,  0.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from math import factorial
from typing import ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError

__all__ = [
    "ANGLE_LIMIT",
    "ROTATION_TOLERANCE",
    "SINGULAR_TOLERANCE",
    "SKEW_TOLERANCE",
    "SYMMETRY_TOLERANCE",
    "Ad",
    "Ad_star",
    "ad",
    "ad_star",
    "body_velocity",
    "bracket",
    "check_pose",
    "check_rotation",
    "dexp_inv_se3",
    "dexp_inv_so3",
    "dexp_se3",
    "dexp_so3",
    "exp_se3",
    "exp_so3",
    "hat3",
    "hat6",
    "hat6_star",
    "inverse",
    "is_pose",
    "is_rotation",
    "kinetic_energy",
    "log_se3",
    "log_so3",
    "make_pose",
    "momentum",
    "nearest_rotation",
    "spatial_inertia",
    "transform_inertia",
    "transform_momentum",
    "transform_twist",
    "transform_wrench",
    "twist_rate",
    "vector_rate",
    "vee3",
    "vee6",
    "vee6_star",
    "world_velocity",
    "wrench_rate",
]

Array: TypeAlias = NDArray[np.float64]
P = ParamSpec("P")
Result = TypeVar("Result")

EPS = float(np.finfo(np.float64).eps)
ROTATION_TOLERANCE = 1e-9
"""Largest entry of ΘᵀΘ - 1, and of the last row of a pose less (0, 0, 0, 1), that still passes."""
SKEW_TOLERANCE = 1e-9
"""Largest entry of W + Wᵀ in units of the largest of W that still passes as skew-symmetric."""
SYMMETRY_TOLERANCE = 1e-9
"""Largest entry of J - Jᵀ in units of the largest of J that still passes as symmetric."""
ANGLE_LIMIT = 1 / EPS
"""Longest rotation vector taken, 2**52 rad: from there on neighbouring floats are a radian or more apart."""
SINGULAR_TOLERANCE = EPS**0.5
"""dexp_inv is refused within this fraction of a multiple of 2π, where it would lose half of its digits or more."""
SERIES_ANGLE = float(np.pi)
"""Up to this φ the factors that cancel near 0 are summed as series; above it the closed forms lose no more than
a factor of ten (worst: c'/φ, 9.6 at π)."""
SERIES_TERMS = 32
"""The slowest series, c'/φ, has its pole at 2π: at φ = π its term k is k 4⁻ᵏ/π⁴, so that what is left out from
k = 32 on is 2.4e-20 of 4.8e-3, below EPS/32. The series with factorials have ended long before."""


# Reading and refusing


def _guarded(function: Callable[P, Result]) -> Callable[P, Result]:
    """Refuse a result that is not finite: what was read is finite, so it has overflowed."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Result:
        with np.errstate(all="ignore"):
            result = function(*args, **kwargs)
        if not np.all(np.isfinite(np.asarray(result))):
            raise NonFinite(f"{getattr(function, '__name__', '')}: the result overflows; the numbers are too large")
        return result

    return guarded


def _read(x: ArrayLike, name: str, *tails: tuple[int, ...]) -> Array:
    """Return a fresh float64 copy of `x`, finite and with one of the trailing shapes `tails`, or refuse it."""
    shapes = " or ".join("(" + ", ".join(["...", *map(str, tail)]) + ")" for tail in tails)
    try:
        raw = np.asarray(x)
    except ValueError:  # nested sequences of unequal length
        raise ShapeError(f"{name}: expected shape {shapes}, got sequences of unequal length") from None
    except (TypeError, OverflowError) as error:
        raise InvalidType(f"{name}: expected an array of real numbers of shape {shapes}; {error}") from None
    if raw.dtype.kind not in "iuf":
        raise InvalidType(f"{name}: expected real numbers of shape {shapes}, got {type(x).__name__} of {raw.dtype}")
    if not any(raw.shape[raw.ndim - len(tail) :] == tail for tail in tails if len(tail) <= raw.ndim):
        raise ShapeError(f"{name}: expected shape {shapes}, got {raw.shape}")
    with np.errstate(over="ignore"):  # a long double may overflow, and is refused below
        array: Array = np.array(raw, dtype=np.float64)
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NonFinite(f"{name}: expected finite numbers, got {array[index]} at index {index}")
    return array


def _refuse_any(bad: NDArray[np.bool_] | np.bool_, name: str, why: Callable[[tuple[int, ...]], str]) -> None:
    """Raise for the first sample of a batch that is `bad`, naming its row; `why(row)` tells the reason."""
    if np.any(bad):
        row = tuple(int(i) for i in np.argwhere(bad)[0])
        label = f"{name}[{', '.join(map(str, row))}]" if row else name
        raise InvalidValue(f"{label}: {why(row)}")


def _match(**leading: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common leading shape, or refuse arguments whose batches do not go together."""
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = " and ".join(str(shape) for shape in leading.values())
        raise ShapeError(f"{' and '.join(leading)}: expected batches that go together, got {shapes}") from None


def _biggest(matrix: Array) -> Array:
    """Largest |entry| of each matrix of a batch."""
    return np.asarray(np.abs(matrix).max(axis=(-2, -1)), dtype=np.float64)


def _check_rotation(R: Array, name: str, tol: float) -> None:
    gap = _biggest(_transpose(R) @ R - np.eye(3))
    _refuse_any(
        ~(gap <= tol),  # so that a NaN from an overflow is refused as well
        name,
        lambda row: (
            f"expected a rotation, got a matrix with |RᵀR - 1| = {gap[row]:.1e} (at most {tol:.0e}); "
            "nearest_rotation mends rounding"
        ),
    )
    _refuse_any(np.linalg.det(R) < 0, name, lambda _: "expected a rotation, got a reflection (determinant -1)")


def _check_pose(T: Array, name: str, tol: float) -> None:
    gap = np.abs(T[..., 3, :] - [0, 0, 0, 1]).max(axis=-1)
    _refuse_any(~(gap <= tol), name, lambda row: f"expected the last row (0, 0, 0, 1), got {T[row][3]}")
    _check_rotation(T[..., :3, :3], name, tol)


def _read_group(G: ArrayLike, name: str) -> Array:
    """Read a rotation (..., 3, 3) or a pose (..., 4, 4)."""
    array = _read(G, name, (4, 4), (3, 3))
    (_check_pose if array.shape[-1] == 4 else _check_rotation)(array, name, ROTATION_TOLERANCE)
    return array


def _read_twist(g: ArrayLike, name: str) -> Array:
    """Read an element of se(3) in either form as a 6-vector."""
    array = _read(g, name, (6,), (4, 4))
    return array if array.shape[-1] == 6 else _vee6(array, name)


def _read_symmetric(J: ArrayLike, name: str, n: int) -> Array:
    array = _read(J, name, (n, n))
    gap, size = _biggest(array - _transpose(array)), _biggest(array)
    _refuse_any(
        ~(gap <= SYMMETRY_TOLERANCE * size),
        name,
        lambda row: f"expected a symmetric matrix, got one that differs by {gap[row]:.1e} from its transpose",
    )
    return 0.5 * (array + _transpose(array))


def _transpose(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0], dtype=np.float64)


def _times(factor: Array, matrix: Array) -> Array:
    """One factor per matrix of a batch."""
    return np.asarray(factor)[..., None, None] * matrix


# Matrices of vectors


def _hat3(omega: Array) -> Array:
    x, y, z = omega[..., 0], omega[..., 1], omega[..., 2]
    W = np.zeros((*omega.shape, 3))
    W[..., 2, 1], W[..., 0, 2], W[..., 1, 0] = x, y, z  # (2)
    W[..., 1, 2], W[..., 2, 0], W[..., 0, 1] = 0 - x, 0 - y, 0 - z  # 0 - x: no -0.0 in what users print
    return W


def _vee3(W: Array, name: str, tol: float = SKEW_TOLERANCE, floor: float = 0.0) -> Array:
    gap, size = _biggest(W + _transpose(W)), np.maximum(_biggest(W), floor)
    _refuse_any(
        ~(gap <= tol * size),
        name,
        lambda row: f"expected a skew-symmetric matrix, got |W + Wᵀ| = {gap[row]:.1e} (at most {tol:.0e} of |W|)",
    )
    upper = np.stack([W[..., 1, 2], W[..., 2, 0], W[..., 0, 1]], axis=-1)
    lower = np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], axis=-1)
    return np.asarray(lower - 0.5 * (lower + upper), dtype=np.float64)  # the mean, and exact for an exact [ω]


def _hat6(g: Array) -> Array:
    X = np.zeros((*g.shape[:-1], 4, 4))
    X[..., :3, :3] = _hat3(g[..., :3])  # (3), Kim (5)
    X[..., :3, 3] = g[..., 3:]
    return X


def _vee6(X: Array, name: str, tol: float = SKEW_TOLERANCE, floor: float = 0.0) -> Array:
    last = np.abs(X[..., 3, :]).max(axis=-1)
    _refuse_any(~(last <= tol * _biggest(X)), name, lambda row: f"expected a last row of zeros, got {X[row][3]}")
    return np.concatenate([_vee3(X[..., :3, :3], name, tol, floor), X[..., :3, 3]], axis=-1)


def _swap(h: Array) -> Array:
    """(moment, force) to (force, moment) and back."""
    return np.concatenate([h[..., 3:], h[..., :3]], axis=-1)


@_guarded
def hat3(omega: ArrayLike) -> Array:
    """Skew-symmetric matrix [ω] (..., 3, 3) of a vector (..., 3), with [ω] x = ω × x: (2).

    >>> hat3([1, 2, 3])
    array([[ 0., -3.,  2.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    return _hat3(_read(omega, "omega", (3,)))


@_guarded
def vee3(W: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Vector (..., 3) of a skew-symmetric matrix (..., 3, 3); one that is not, by more than `tol`, is refused.

    >>> vee3([[0, -3, 2], [3, 0, -1], [-2, 1, 0]])
    array([1., 2., 3.])
    """
    return _vee3(_read(W, "W", (3, 3)), "W", tol)


@_guarded
def hat6(g: ArrayLike) -> Array:
    """Matrix [[ω], v; 0, 0] (..., 4, 4) of a twist (ω, v) (..., 6): (3), Kim (5).

    >>> hat6([0, 0, 1, 7, 8, 9])[:2]
    array([[ 0., -1.,  0.,  7.],
           [ 1.,  0.,  0.,  8.]])
    """
    return _hat6(_read(g, "g", (6,)))


@_guarded
def vee6(X: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Twist (ω, v) (..., 6) of a matrix (..., 4, 4) of se(3): (4).

    >>> vee6(hat6([1, 2, 3, 4, 5, 6]))
    array([1., 2., 3., 4., 5., 6.])
    """
    return _vee6(_read(X, "X", (4, 4)), "X", tol)


@_guarded
def hat6_star(h: ArrayLike) -> Array:
    """Matrix [[force], moment; 0, 0] (..., 4, 4) of a wrench (moment, force) (..., 6): the form that (11) takes.

    >>> hat6_star([7, 8, 9, 0, 0, 1])[:2]
    array([[ 0., -1.,  0.,  7.],
           [ 1.,  0.,  0.,  8.]])
    """
    return _hat6(_swap(_read(h, "h", (6,))))


@_guarded
def vee6_star(X: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Wrench (moment, force) (..., 6) of its matrix (..., 4, 4); the inverse of `hat6_star`.

    >>> vee6_star(hat6_star([1, 2, 3, 4, 5, 6]))
    array([1., 2., 3., 4., 5., 6.])
    """
    return _swap(_vee6(_read(X, "X", (4, 4)), "X", tol))


@_guarded
def bracket(x: ArrayLike, y: ArrayLike) -> Array:
    """Lie bracket [x, y] = xy - yx of two matrices of so(3) (..., 3, 3) or of se(3) (..., 4, 4): (13).

    >>> vee3(bracket(hat3([1, 0, 0]), hat3([0, 1, 0])))
    array([0., 0., 1.])
    """
    a = _read(x, "x", (3, 3), (4, 4))
    b = _read(y, "y", a.shape[-2:])
    _match(x=a.shape[:-2], y=b.shape[:-2])
    for array, name in ((a, "x"), (b, "y")):
        (_vee3 if a.shape[-1] == 3 else _vee6)(array, name)
    return a @ b - b @ a  # (13)


# Rotations and poses


def check_rotation(R: ArrayLike, tol: float = ROTATION_TOLERANCE, *, name: str = "R") -> Array:
    """Return rotations (..., 3, 3) as float64, or refuse with the row, the deviation and `name`: Kim (2).

    >>> check_rotation(2 * np.eye(3), name="camera")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    cstormpy.errors.InvalidValue: camera: expected a rotation, got a matrix with |RᵀR - 1| = 3.0e+00 ...
    """
    array = _read(R, name, (3, 3))
    with np.errstate(all="ignore"):
        _check_rotation(array, name, tol)
    return array


def check_pose(T: ArrayLike, tol: float = ROTATION_TOLERANCE, *, name: str = "T") -> Array:
    """Return poses (..., 4, 4) as float64, or refuse with the row, the deviation and `name`: Kim (3).

    >>> check_pose(np.eye(4)).shape
    (4, 4)
    """
    array = _read(T, name, (4, 4))
    with np.errstate(all="ignore"):
        _check_pose(array, name, tol)
    return array


def is_rotation(R: ArrayLike, tol: float = ROTATION_TOLERANCE) -> bool:
    """Whether `R` is a rotation (3, 3), or a batch of nothing else; anything else is False, never an error.

    >>> is_rotation(np.eye(3)), is_rotation(-np.eye(3)), is_rotation("R")
    (True, False, False)
    """
    try:
        check_rotation(R, tol)
    except (InvalidValue, InvalidType):
        return False
    return True


def is_pose(T: ArrayLike, tol: float = ROTATION_TOLERANCE) -> bool:
    """Whether `T` is a pose (4, 4), or a batch of nothing else; anything else is False, never an error.

    >>> is_pose(np.eye(4)), is_pose(np.eye(3))
    (True, False)
    """
    try:
        check_pose(T, tol)
    except (InvalidValue, InvalidType):
        return False
    return True


@_guarded
def nearest_rotation(R: ArrayLike) -> Array:
    """Rotation nearest to a matrix (..., 3, 3) in the Frobenius norm, to mend rounding; refused if det R <= 0.

    >>> is_rotation(nearest_rotation([[0.7071, -0.7071, 0], [0.7071, 0.7071, 0], [0, 0, 1]]))
    True
    """
    array = _read(R, "R", (3, 3))
    left, sizes, right = np.linalg.svd(array)
    flipped = np.linalg.det(left) * np.linalg.det(right) < 0
    singular = sizes[..., 2] <= 3 * EPS * sizes[..., 0]
    _refuse_any(flipped | singular, "R", lambda _: "expected a matrix with det R > 0, got one with det R <= 0")
    return np.asarray(left @ right, dtype=np.float64)


def _pose(R: Array, p: Array) -> Array:
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0  # Kim (3)
    return T


def _inverse(T: Array) -> Array:
    Rt = _transpose(T[..., :3, :3])
    return _pose(Rt, 0 - _apply(Rt, T[..., :3, 3]))  # (1), Kim (4)


@_guarded
def make_pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Pose (..., 4, 4) of a frame with axes `R` (..., 3, 3) and origin `p` (..., 3), metres: Kim (3).

    >>> make_pose(np.eye(3), [1, 2, 3])[:, 3]
    array([1., 2., 3., 1.])
    """
    rotation, position = check_rotation(R), _read(p, "p", (3,))
    _match(R=rotation.shape[:-2], p=position.shape[:-1])
    return _pose(rotation, position)


@_guarded
def inverse(T: ArrayLike) -> Array:
    """Inverse T_ba (..., 4, 4) of a pose T_ab, by transposing its rotation: (1), Kim (4).

    >>> inverse(make_pose(np.eye(3), [1, 2, 3]))[:, 3]
    array([-1., -2., -3.,  1.])
    """
    return _inverse(check_pose(T))


# Factors of φ


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


# Exponential and logarithm


def _angle(omega: Array, name: str) -> Array:
    """φ = |ω|, refused where the floats are too coarse for an angle."""
    phi = np.asarray(np.sqrt((omega * omega).sum(axis=-1)), dtype=np.float64)
    _refuse_any(
        phi > ANGLE_LIMIT,
        name,
        lambda row: f"expected |ω| <= {ANGLE_LIMIT:.1e} rad, got {phi[row]:.1e}: an angle without a digit left",
    )
    return phi


def _polynomial(W: Array, f1: Array | float, f2: Array) -> Array:
    """1 + f1 [ω] + f2 [ω]²."""
    return np.eye(3) + _times(np.asarray(f1, dtype=np.float64), W) + _times(f2, W @ W)


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


def _log_so3(R: Array) -> Array:
    """Logarithm by half angles: ω is along the vector part of the quaternion of R, φ/2 = atan2(vector, scalar).

    K = 4 q qᵀ is linear in R; each of its rows is a multiple of q = (scalar, vector), and the one with the largest
    diagonal entry (at least 1) has no cancellation. Near φ = 0 the scalar's row is that of (7).
    """
    trace = R[..., 0, 0] + R[..., 1, 1] + R[..., 2, 2]
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., 1:, 1:] = R + _transpose(R)
    for i, j, k in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        K[..., 0, i] = K[..., i, 0] = R[..., k - 1, j - 1] - R[..., j - 1, k - 1]
    diagonal = np.einsum("...ii->...i", K)  # a view
    diagonal[..., 1:] += (1 - trace)[..., None]
    diagonal[..., 0] = 1 + trace
    rows = K.reshape(-1, 4, 4)
    q = rows[np.arange(len(rows)), diagonal.reshape(-1, 4).argmax(axis=-1)].reshape(diagonal.shape)
    q = np.where(q[..., :1] < 0, -q, q)  # φ <= π
    size = np.sqrt((q[..., 1:] ** 2).sum(axis=-1))
    # an underflowing size means φ ~ 0, where 2 atan2(size, scalar)/size = 2/scalar
    ratio = np.where(size > 0, 2 * np.arctan2(size, q[..., 0]) / size, 2 / q[..., 0])
    return np.asarray(ratio[..., None] * q[..., 1:], dtype=np.float64)  # (7)


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


# Derivative of the exponential


def _sign(side: str) -> float:
    """Return the sign of g: the left-trivialised derivative at g is the right-trivialised one at -g."""
    if side not in ("left", "right"):
        raise InvalidValue(f"side: expected 'left' or 'right', got {side!r}")
    return -1.0 if side == "left" else 1.0


def _refuse_singular(phi: Array, name: str) -> None:
    """Refuse |ω| = 2π, 4π, ..., where exp is not locally invertible."""
    _refuse_any(
        (phi > np.pi) & (np.abs(2 * np.sin(0.5 * phi)) <= SINGULAR_TOLERANCE * phi),
        name,
        lambda row: f"expected |ω| away from multiples of 2π, where exp has no inverse, got {phi[row]:.17g}",
    )


def _dual_polynomial(g: Array, f1: Array | float, f2: Array, d1: Array | float, d2: Array) -> Array:
    """f(ad_g) (..., 6, 6) for f([ω]) = 1 + f1 [ω] + f2 [ω]², with d = f'(φ)/φ.

    ad_g = [[ω], 0; [v], [ω]] is [ω] + ε[v] with ε² = 0, so that the lower left block of f(ad_g) is the derivative of
    f at [ω] in the direction [v].
    """
    omega, v = g[..., :3], g[..., 3:]
    W, V, along = _hat3(omega), _hat3(v), (omega * v).sum(axis=-1)
    f1, d1 = np.asarray(f1, dtype=np.float64), np.asarray(d1, dtype=np.float64)
    X = np.zeros((*g.shape[:-1], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = _polynomial(W, f1, f2)
    X[..., 3:, :3] = _times(f1, V) + _times(f2, W @ V + V @ W) + _times(d1 * along, W) + _times(d2 * along, W @ W)
    return X


@_guarded
def dexp_so3(omega: ArrayLike, side: str = "left") -> Array:
    """Return the derivative of exp on so(3) (..., 3, 3): the angular velocity is dexp_so3(ω) ω̇.

    Parameters
    ----------
    omega : array_like, (..., 3)
        Rotation vector, radians.
    side : {"left", "right"}
        Left-trivialised, exp(ω)⁻¹ d exp(ω), the body-fixed angular velocity (others say "right Jacobian"); or
        right-trivialised, d exp(ω) exp(ω)⁻¹, the same in fixed axes: the matrix A of (6).

    Examples
    --------
    >>> (dexp_so3([0, 0, np.pi]) @ [np.pi, 0, 0]).round(12)
    array([ 0., -2.,  0.])
    """
    vector = _sign(side) * _read(omega, "omega", (3,))
    phi = _angle(vector, "omega")
    return _polynomial(_hat3(vector), _a(phi), _b(phi))  # A of (6)


@_guarded
def dexp_inv_so3(omega: ArrayLike, side: str = "left") -> Array:
    """Inverse (..., 3, 3) of `dexp_so3`: ω̇ from the angular velocity. Refused where |ω| is near 2π, 4π, ...

    >>> dexp_inv_so3([0, 0, np.pi])[0].round(4)
    array([ 0.    , -1.5708,  0.    ])
    """
    vector = _sign(side) * _read(omega, "omega", (3,))
    phi = _angle(vector, "omega")
    _refuse_singular(phi, "omega")
    return _polynomial(_hat3(vector), -0.5, _c(phi))  # A⁻¹ of (8)


@_guarded
def dexp_se3(g: ArrayLike, side: str = "left") -> Array:
    """Return the derivative of exp on se(3) (..., 6, 6): the twist of T = exp(g) is dexp_se3(g) ġ.

    Parameters
    ----------
    g : array_like, (..., 6) or (..., 4, 4)
        Twist (ω, v), radians and metres.
    side : {"left", "right"}
        Left-trivialised, T⁻¹ Ṫ, the body-fixed velocity; or right-trivialised, Ṫ T⁻¹.

    Examples
    --------
    >>> dexp_se3([0, 0, 0, 0, 2, 0])[3:, :3]  # -[v]/2 for a translation
    array([[ 0.,  0., -1.],
           [ 0.,  0.,  0.],
           [ 1.,  0.,  0.]])
    """
    twist = _sign(side) * _read_twist(g, "g")
    phi = _angle(twist[..., :3], "g")
    return _dual_polynomial(twist, _a(phi), _b(phi), _a_slope(phi), _b_slope(phi))


@_guarded
def dexp_inv_se3(g: ArrayLike, side: str = "left") -> Array:
    """Inverse (..., 6, 6) of `dexp_se3`: ġ from the twist. Refused where |ω| is near 2π, 4π, ...

    >>> g = [0.1, 0.2, 0.3, 4, 5, 6]
    >>> bool(np.allclose(dexp_inv_se3(g) @ dexp_se3(g), np.eye(6)))
    True
    """
    twist = _sign(side) * _read_twist(g, "g")
    phi = _angle(twist[..., :3], "g")
    _refuse_singular(phi, "g")
    return _dual_polynomial(twist, -0.5, _c(phi), 0.0, _c_slope(phi))


# Adjoint operators


def _Ad(T: Array) -> Array:
    R, X = T[..., :3, :3], np.zeros((*T.shape[:-2], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = R
    X[..., 3:, :3] = _hat3(T[..., :3, 3]) @ R  # (10), Kim (7)
    return X


def _ad(g: Array) -> Array:
    X = np.zeros((*g.shape[:-1], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = _hat3(g[..., :3])
    X[..., 3:, :3] = _hat3(g[..., 3:])  # (14), Kim (27)
    return X


def _operand(h: ArrayLike, n: int, **other: tuple[int, ...]) -> tuple[Array, bool]:
    """Read what an n x n operator acts on; tell whether it is a matrix of se(3)."""
    array = _read(h, "h", (3,)) if n == 3 else _read(h, "h", (6,), (4, 4))
    matrix = array.shape[-1] == 4
    if matrix:
        _vee6(array, "h")
    _match(**other, h=array.shape[: -2 if matrix else -1])
    return array, matrix


@_guarded
def Ad(G: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Adjoint map of a pose or a rotation, as a matrix or applied to `h`: the same twist in the other frame.

    Parameters
    ----------
    G : array_like, (..., 4, 4) or (..., 3, 3)
        Pose T_ab, or rotation R_ab.
    h : array_like, (..., 6) or (..., 4, 4), for a rotation (..., 3); optional
        Twist in frame b.

    Returns
    -------
    ndarray
        Without `h` the matrix (..., 6, 6) of (10), for a rotation (..., 3, 3); else the twist in frame a, in the form
        of `h`.

    Examples
    --------
    >>> Ad(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 1, 0, 0, 0])
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    group = _read_group(G, "G")
    operator = _Ad(group) if group.shape[-1] == 4 else group
    if h is None:
        return operator
    twist, matrix = _operand(h, operator.shape[-1], G=group.shape[:-2])
    return group @ twist @ _inverse(group) if matrix else _apply(operator, twist)  # (9), Kim (6); (10)


@_guarded
def Ad_star(G: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Dual adjoint map, the transpose of `Ad`: a wrench in frame a, seen in frame b, for G = T_ab.

    Parameters
    ----------
    G : array_like, (..., 4, 4) or (..., 3, 3)
        Pose T_ab, or rotation R_ab.
    h : array_like, (..., 6) or (..., 4, 4), for a rotation (..., 3); optional
        Wrench (moment, force) in frame a; as a matrix in the form of `hat6_star`.

    Returns
    -------
    ndarray
        The matrix of (12), or the wrench in frame b in the form of `h`.

    Examples
    --------
    >>> Ad_star(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 1, 0])
    array([ 0.,  0., -1.,  0.,  1.,  0.])
    """
    group = _read_group(G, "G")
    operator = _transpose(_Ad(group) if group.shape[-1] == 4 else group).copy()  # (12), Kim (8)
    if h is None:
        return operator
    wrench, matrix = _operand(h, operator.shape[-1], G=group.shape[:-2])
    return _inverse(group) @ wrench @ group if matrix else _apply(operator, wrench)  # (11); (12)


def _read_algebra(g: ArrayLike) -> Array:
    """Read a vector of so(3), or an element of se(3) in either form, as a vector."""
    array = _read(g, "g", (6,), (4, 4), (3,))
    return _vee6(array, "g") if array.shape[-1] == 4 else array


@_guarded
def ad(g: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Lie bracket with g, as a matrix or applied to `h`: ad_g(h) = [g, h], the cross product of twists.

    Parameters
    ----------
    g : array_like, (..., 6), (..., 4, 4), or of so(3) (..., 3)
        Twist.
    h : array_like, (..., 6) or (..., 4, 4), for so(3) (..., 3); optional
        Twist in the same frame.

    Returns
    -------
    ndarray
        The matrix of (14), (..., 6, 6) or (..., 3, 3); or [g, h] in the form of `h`.

    Examples
    --------
    >>> ad([0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0])
    array([0., 0., 0., 0., 1., 0.])
    """
    vector = _read_algebra(g)
    operator = _ad(vector) if vector.shape[-1] == 6 else _hat3(vector)
    if h is None:
        return operator
    twist, matrix = _operand(h, operator.shape[-1], g=vector.shape[:-1])
    return _hat6(vector) @ twist - twist @ _hat6(vector) if matrix else _apply(operator, twist)  # (13); (14)


@_guarded
def ad_star(g: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Dual of `ad`, its transpose, as a matrix or applied to a wrench `h`: ad*_g(h*) = [h*, g].

    Parameters
    ----------
    g : array_like, (..., 6), (..., 4, 4), or of so(3) (..., 3)
        Twist.
    h : array_like, (..., 6) or (..., 4, 4), for so(3) (..., 3); optional
        Wrench (moment, force) in the same frame; as a matrix in the form of `hat6_star`.

    Returns
    -------
    ndarray
        The matrix of (16), (..., 6, 6) or (..., 3, 3); or the wrench in the form of `h`.

    Examples
    --------
    >>> ad_star([0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0])
    array([ 0., -1.,  0.,  0.,  0.,  0.])
    """
    vector = _read_algebra(g)
    operator = _transpose(_ad(vector) if vector.shape[-1] == 6 else _hat3(vector)).copy()  # (16), Kim (29)
    if h is None:
        return operator
    wrench, matrix = _operand(h, operator.shape[-1], g=vector.shape[:-1])
    return wrench @ _hat6(vector) - _hat6(vector) @ wrench if matrix else _apply(operator, wrench)  # (15); (16)


# Velocities and changes of frame


def _velocity(T: ArrayLike, dT: ArrayLike, tol: float, fixed: bool) -> Array:
    pose, rate = check_pose(T), _read(dT, "dT", (4, 4))
    _match(T=pose.shape[:-2], dT=rate.shape[:-2])
    X = rate @ _inverse(pose) if fixed else _inverse(pose) @ rate
    return _vee6(X, "dT", tol, floor=1.0)  # the entries of a rotation are of order 1, and so are their errors


@_guarded
def body_velocity(T: ArrayLike, dT: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Body-fixed velocity V = T⁻¹ Ṫ (..., 6) of a pose and its rate, both (..., 4, 4): section 2.4, Kim (9), (10).

    A rate `dT` that leaves SE(3), by more than `tol` in units of max(1, |ω|), is refused.

    >>> V = [0.1, 0.2, 0.3, 4, 5, 6]
    >>> T = exp_se3(V)
    >>> body_velocity(T, T @ hat6(V)).round(12)
    array([0.1, 0.2, 0.3, 4. , 5. , 6. ])
    """
    return _velocity(T, dT, tol, fixed=False)


@_guarded
def world_velocity(T: ArrayLike, dT: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Velocity Ṫ T⁻¹ (..., 6) in the fixed frame, of the point of the body that is at its origin: section 2.4.

    >>> world_velocity(make_pose(np.eye(3), [1, 0, 0]), np.zeros((4, 4)))
    array([0., 0., 0., 0., 0., 0.])
    """
    return _velocity(T, dT, tol, fixed=True)


@_guarded
def transform_twist(T: ArrayLike, V: ArrayLike) -> Array:
    """Twist (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4): V_a = Ad_T V_b, Kim (11).

    >>> transform_twist(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 1, 0, 0, 0])
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    pose, twist = check_pose(T), _read(V, "V", (6,))
    _match(T=pose.shape[:-2], V=twist.shape[:-1])
    return _apply(_Ad(pose), twist)  # Kim (11)


def _covector(T: ArrayLike, F: ArrayLike, name: str) -> Array:
    pose, covector = check_pose(T), _read(F, name, (6,))
    _match(**{"T": pose.shape[:-2], name: covector.shape[:-1]})
    return _apply(_transpose(_Ad(_inverse(pose))), covector)  # Kim (13), (24)


@_guarded
def transform_wrench(T: ArrayLike, F: ArrayLike) -> Array:
    """Wrench (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4): F_a = Ad*_{T⁻¹} F_b, Kim (13).

    >>> transform_wrench(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 1, 0])
    array([0., 0., 1., 0., 1., 0.])
    """
    return _covector(T, F, "F")


@_guarded
def transform_momentum(T: ArrayLike, L: ArrayLike) -> Array:
    """Momentum (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4), as a wrench: Kim (24).

    >>> transform_momentum(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 2, 0])
    array([0., 0., 2., 0., 2., 0.])
    """
    return _covector(T, L, "L")


@_guarded
def transform_inertia(T: ArrayLike, J: ArrayLike) -> Array:
    """Spatial inertia (..., 6, 6), given in frame b, in frame a, for T = T_ab: J_a = Ad*_{T⁻¹} J_b Ad_{T⁻¹}, Kim (21).

    >>> transform_inertia(make_pose(np.eye(3), [0, 2, 0]), spatial_inertia(3, [0, 0, 0], np.eye(3))).diagonal()
    array([13.,  1., 13.,  3.,  3.,  3.])
    """
    pose, inertia = check_pose(T), _read_symmetric(J, "J", 6)
    _match(T=pose.shape[:-2], J=inertia.shape[:-2])
    X = _Ad(_inverse(pose))
    moved = _transpose(X) @ inertia @ X  # Kim (21)
    return 0.5 * (moved + _transpose(moved))


# Inertia, momentum, energy


@_guarded
def spatial_inertia(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Spatial inertia J (..., 6, 6) about the frame's origin, in (ω, v) order: (19), Kim (22).

    Whether an inertia belongs to a real body (the triangle inequality) is not asked here; links ask it.

    Parameters
    ----------
    mass : array_like, (...)
        Mass, kg, not negative.
    com : array_like, (..., 3)
        Centre of mass r in the frame, m.
    inertia : array_like, (..., 3, 3)
        Inertia about the centre of mass, kg m², symmetric.
    rotation : array_like, (..., 3, 3), optional
        Axes of `inertia` in the frame, if they differ from the frame's.

    Examples
    --------
    >>> spatial_inertia(2, [1, 0, 0], np.zeros((3, 3)))[1]
    array([ 0.,  2.,  0.,  0.,  0., -2.])
    """
    m, r, central = _read(mass, "mass", ()), _read(com, "com", (3,)), _read_symmetric(inertia, "inertia", 3)
    _refuse_any(m < 0, "mass", lambda row: f"expected a mass that is not negative, got {m[row]:g}")
    leading = {"mass": m.shape, "com": r.shape[:-1], "inertia": central.shape[:-2]}
    if rotation is not None:
        R = check_rotation(rotation, name="rotation")
        leading["rotation"] = R.shape[:-2]
    J = np.zeros((*_match(**leading), 6, 6))
    if rotation is not None:
        central = R @ central @ _transpose(R)
    arm = _hat3(r)
    J[..., :3, :3] = 0.5 * (central + _transpose(central)) - _times(m, arm @ arm)  # (19), Kim (22)
    J[..., :3, 3:] = _times(m, arm)
    J[..., 3:, :3] = 0 - _times(m, arm)
    J[..., 3:, 3:] = _times(m, np.eye(3))
    return J


@_guarded
def momentum(J: ArrayLike, V: ArrayLike) -> Array:
    """Momentum L = J V (..., 6), (angular about the frame's origin, linear), body-fixed: Kim (23).

    >>> momentum(spatial_inertia(2, [1, 0, 0], np.zeros((3, 3))), [0, 0, 3, 0, 0, 0])
    array([0., 0., 6., 0., 6., 0.])
    """
    inertia, twist = _read_symmetric(J, "J", 6), _read(V, "V", (6,))
    _match(J=inertia.shape[:-2], V=twist.shape[:-1])
    return _apply(inertia, twist)  # Kim (23)


@_guarded
def kinetic_energy(J: ArrayLike, V: ArrayLike) -> Array | np.float64:
    """Kinetic energy Vᵀ J V / 2 (...), joules: Kim (15).

    >>> float(kinetic_energy(spatial_inertia(2, [1, 0, 0], np.zeros((3, 3))), [0, 0, 3, 0, 0, 0]))
    9.0
    """
    twist = _read(V, "V", (6,))
    energy: Array | np.float64 = 0.5 * (twist * momentum(J, twist)).sum(axis=-1)  # Kim (15)
    return energy


# Rates in a moving frame


def _rate(x: Array, dx: Array, operator: Array, names: tuple[str, str, str]) -> Array:
    _match(**dict(zip(names, (x.shape[:-1], dx.shape[:-1], operator.shape[:-2]), strict=True)))
    return dx + _apply(operator, x)


@_guarded
def vector_rate(x: ArrayLike, dx: ArrayLike, omega: ArrayLike) -> Array:
    """Time derivative ẋ + ω × x of a vector (..., 3) with components x, ẋ in a frame turning with ω: Kim (25).

    >>> vector_rate([1, 0, 0], [0, 0, 0], [0, 0, 2])
    array([0., 2., 0.])
    """
    operator = _hat3(_read(omega, "omega", (3,)))
    return _rate(_read(x, "x", (3,)), _read(dx, "dx", (3,)), operator, ("x", "dx", "omega"))  # Kim (25)


@_guarded
def twist_rate(X: ArrayLike, dX: ArrayLike, V: ArrayLike) -> Array:
    """Time derivative Ẋ + ad_V X of a twist (..., 6) with components X, Ẋ in a frame moving with V: lemma 1, Kim (26).

    >>> twist_rate([0, 0, 0, 1, 0, 0], np.zeros(6), [0, 0, 2, 0, 0, 0])
    array([0., 0., 0., 0., 2., 0.])
    """
    operator = _ad(_read(V, "V", (6,)))
    return _rate(_read(X, "X", (6,)), _read(dX, "dX", (6,)), operator, ("X", "dX", "V"))  # Kim (26)


@_guarded
def wrench_rate(Y: ArrayLike, dY: ArrayLike, V: ArrayLike) -> Array:
    """Time derivative Ẏ - ad*_V Y of a wrench or momentum (..., 6) in a frame moving with V: lemma 2, Kim (28).

    With the momentum Y = J V this is the equation of motion (18).

    >>> wrench_rate([1, 0, 0, 0, 0, 0], np.zeros(6), [0, 0, 2, 0, 0, 0])
    array([0., 2., 0., 0., 0., 0.])
    """
    operator = 0 - _transpose(_ad(_read(V, "V", (6,))))
    return _rate(_read(Y, "Y", (6,)), _read(dY, "dY", (6,)), operator, ("Y", "dY", "V"))  # Kim (28)
