"""Rotations and poses: checked, mended, composed and inverted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.graph.arrays import zeros
from cstormpy.lie.arguments import EPS, _apply, _biggest, _guarded, _match, _read, _refuse_any, _transpose

ROTATION_TOLERANCE = 1e-9
"""Largest entry of ΘᵀΘ - 1, and of the last row of a pose less (0, 0, 0, 1), that still passes."""

_OTHER_FORMS = "exp_so3 makes it of a rotation vector, SciPy's Rotation of a quaternion or of Euler angles"


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


def check_rotation(R: ArrayLike, tol: float = ROTATION_TOLERANCE, *, name: str = "R") -> Array:
    """Return rotations (..., 3, 3) as float64, or refuse with the row, the deviation and `name`: Kim (2).

    >>> check_rotation(2 * np.eye(3), name="camera")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    cstormpy.errors.InvalidValue: camera: expected a rotation, got a matrix with |RᵀR - 1| = 3.0e+00 ...
    """
    array = _read(R, name, (3, 3), hint=_OTHER_FORMS)
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
    """Tell whether `R` is a rotation (3, 3), or a batch of nothing else; anything else is False, never an error.

    >>> is_rotation(np.eye(3)), is_rotation(-np.eye(3)), is_rotation("R")
    (True, False, False)
    """
    try:
        check_rotation(R, tol)
    except (InvalidValue, InvalidType):
        return False
    return True


def is_pose(T: ArrayLike, tol: float = ROTATION_TOLERANCE) -> bool:
    """Tell whether `T` is a pose (4, 4), or a batch of nothing else; anything else is False, never an error.

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
    left, sizes, right = np.linalg.svd(_read(R, "R", (3, 3), hint=_OTHER_FORMS))
    flipped = np.linalg.det(left) * np.linalg.det(right) < 0
    singular = sizes[..., 2] <= 3 * EPS * sizes[..., 0]
    _refuse_any(flipped | singular, "R", lambda _: "expected a matrix with det R > 0, got one with det R <= 0")
    return np.asarray(left @ right, dtype=np.float64)


def _pose(R: Array, p: Array) -> Array:
    T = zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4), R, p)
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
