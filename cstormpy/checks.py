"""Checks of what mechanisms are made of: each returns the clean value or raises an error that names it."""

from __future__ import annotations

import contextlib
import math

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, describe, real_array
from cstormpy.arrays import real_number as real
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.values import frozen

__all__ = [
    "MAX_NAME",
    "POSE_TOLERANCE",
    "array",
    "count",
    "frame_pose",
    "name",
    "nonnegative",
    "positive",
    "real",
    "rigid_pose",
    "unit_vector",
]

MAX_NAME = 200
"""Longest name of a link or joint, in characters."""

_UNIT_TOLERANCE = 4 * np.finfo(np.float64).eps
"""A vector whose norm is this close to one is kept bit by bit, so that saving and loading changes nothing."""

POSE_TOLERANCE = 1e-6
"""By how much a rotation matrix may miss RᵀR = 1 (a float32 matrix does by 1e-7); within this it is mended."""

_EXACT_ROTATION = 1e-14
"""A rotation matrix this good is kept bit by bit, so that saving and loading changes nothing."""


def nonnegative(value: object, what: str) -> float:
    """Return a finite float >= 0."""
    number = real(value, what)
    if number < 0:
        raise InvalidValue(f"{what}: must not be negative, got {number:g}")
    return number


def count(value: object, what: str, most: int = 100_000) -> int:
    """Return a whole number of things, from 1 to `most`.

    >>> count(3, "n")
    3
    """
    return whole_number(value, what, 1, most)


def array(value: ArrayLike, shape: tuple[int, ...], what: str, hint: str = "") -> Array:
    """Return a read-only float64 copy of the given shape with finite entries; a hint ends what is said of another one.

    >>> array([1, 2, 3], (3,), "com")
    array([1., 2., 3.])
    """
    return frozen(real_array(value, what, shape, hint=hint))


def unit_vector(value: ArrayLike, what: str) -> Array:
    """Return the direction of a nonzero 3-vector."""
    if isinstance(value, str):
        raise InvalidType(
            f"{what}: expected a direction, as (0, 0, 1), got {describe(value)}; names are given by name="
        )
    vector = array(value, (3,), what, "a direction, as (0, 0, 1)")
    norm = math.hypot(*vector.tolist())
    if abs(norm - 1.0) <= _UNIT_TOLERANCE:
        return vector
    largest = float(np.abs(vector).max())
    if largest == 0.0:
        raise InvalidValue(f"{what}: is zero; a direction is needed, as (0, 0, 1)")
    scaled = vector / largest  # first, since the norm of a very long or short vector over- or underflows
    return frozen(scaled / math.hypot(*scaled.tolist()))


def name(value: object, what: str) -> str:
    """Return a name: printable text without blanks around it, at most `MAX_NAME` characters."""
    if not isinstance(value, str):
        own = getattr(value, "name", None)  # of a link or joint that stands where its name should
        raise InvalidType(f"{what}: expected text, got {describe(value)}{f'; write {own!r}' * isinstance(own, str)}")
    if not value:
        raise InvalidValue(f"{what}: is empty")
    if len(value) > MAX_NAME:
        raise InvalidValue(f"{what}: {value[:20] + '…'!r} has {len(value)} characters, at most {MAX_NAME} are allowed")
    if not value.isprintable() or value != value.strip():
        raise InvalidValue(f"{what}: {value!r} has blanks around it or characters that cannot be printed")
    return str(value)


def frame_pose(value: ArrayLike | None, what: str) -> Array:
    """Return the pose of a frame, given as one or as the point at its origin; None is the identity."""
    if value is None:
        return frozen(np.eye(4))
    is_point = False
    with contextlib.suppress(ValueError):  # of a ragged list, which is refused below
        is_point = np.shape(value) == (3,)
    if not is_point:
        return rigid_pose(
            value, what, "of a frame that is not turned the point, (3,), will do, and lie.make_pose(R, p) makes others"
        )
    pose = np.eye(4)
    pose[:3, 3] = array(value, (3,), what)
    return frozen(pose)


def rigid_pose(value: ArrayLike, what: str, hint: str = "") -> Array:
    """Return a rigid transform, its rotation mended if it is nearly one."""
    pose = array(value, (4, 4), what, hint)
    if pose[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
        raise InvalidValue(f"{what}: is not a rigid transform, its last row is not (0, 0, 0, 1)")
    R = pose[:3, :3]
    if np.abs(R).max() > 2.0 or (error := np.abs(R.T @ R - np.eye(3)).max()) > POSE_TOLERANCE:
        raise InvalidValue(f"{what}: is not a rigid transform, its 3x3 block is not a rotation (RᵀR differs from 1)")
    (a, b, c), (d, e, f), (g, h, k) = R.tolist()
    if a * (e * k - f * h) + b * (f * g - d * k) + c * (d * h - e * g) < 0:
        raise InvalidValue(f"{what}: is not a rigid transform, its 3x3 block mirrors (determinant -1)")
    if error <= _EXACT_ROTATION:
        return pose
    mended = pose.copy()
    for _ in range(2):  # Newton's iteration for the nearest rotation: an error of 1e-6 becomes 1e-12, then nothing
        R = mended[:3, :3]
        mended[:3, :3] = R @ (1.5 * np.eye(3) - 0.5 * (R.T @ R))
    return frozen(mended)
