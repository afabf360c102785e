"""Rotations by angles, as tables and files of others have them; quarter turns without the rounding of π."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError

_NOTHING = 4 * float(np.finfo(np.float64).eps)


def cos_sin(angle: float) -> tuple[float, float]:
    """Return cosine and sine, 0 and ±1 exactly where the angle is a float's quarter turn or several.

    >>> cos_sin(math.pi / 2)
    (0.0, 1.0)
    """
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) <= _NOTHING:
        return 0.0, math.copysign(1.0, s)
    if abs(s) <= _NOTHING:
        return math.copysign(1.0, c), 0.0
    return c, s


def rotation(rpy: Sequence[float]) -> Array:
    """Return the rotation (3, 3) of roll, pitch and yaw about fixed axes, Rz(yaw) Ry(pitch) Rx(roll).

    >>> rotation((0, 0, math.pi / 2)).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    (cr, sr), (cp, sp), (cy, sy) = map(cos_sin, rpy)
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.array(rows) + 0.0


def roll_pitch_yaw(R: Array) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of a rotation; where the pitch is a quarter turn, roll and yaw are one angle.

    >>> roll_pitch_yaw(rotation((0.1, 0.2, 0.3)))
    (0.1, 0.2, 0.3)
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    # With the yaw taken out, so that its error near the quarter turn is made good by the roll.
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    return math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1]), pitch, yaw


def about(axis: Array, angle: float) -> Array:
    """Return the rotation (3, 3) about a unit vector.

    >>> about(np.array([0.0, 0.0, 1.0]), math.pi / 2).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    (c, s), (x, y, z) = cos_sin(angle), axis.tolist()
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + s * across + (1.0 - c) * (across @ across)) + 0.0


def from_z(direction: Array) -> Array:
    """Return the shortest rotation (3, 3) that brings z to a unit vector; where it points along -z, one about x.

    >>> from_z(np.array([1.0, 0.0, 0.0])).tolist()
    [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    """
    axis = np.array([-direction[1], direction[0], 0.0])
    sine = float(np.linalg.norm(axis))
    if sine < _NOTHING:
        return np.eye(3) if direction[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return about(axis / sine, math.atan2(sine, direction[2]))


def of_quaternion(quaternion: Array) -> Array:
    """Return the rotation (3, 3) of a unit quaternion, its real part first.

    >>> of_quaternion(np.array([0.0, 0.0, 0.0, 1.0])).tolist()
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    w, x, y, z = quaternion.tolist()
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.array(rows) + 0.0


def unit(vector: Array, where: str) -> Array:
    """Return a vector of length 1, refused where it has no direction."""
    size = float(np.abs(vector).max())
    if size == 0.0:
        raise FileFormatError(f"{where}: has no length")
    scaled: Array = vector / size
    return scaled / float(np.linalg.norm(scaled))
