"""From where to look at a mechanism: the plane of a planar one, or a view across gravity."""

from __future__ import annotations

import numpy as np

from cstormpy.arrays import Array
from cstormpy.linkage.linkage import Linkage

_TOLERANCE = 1e-6
"""By how much a direction may leave the plane, or miss an axis of the base."""


def view(mech: Linkage, order: tuple[int, ...]) -> tuple[bool, Array, Array]:
    """Return whether all that moves stays parallel to one plane, and the directions to draw to the right and upwards.

    Parameters
    ----------
    mech : Linkage
    order : tuple of int
        The links such that a parent precedes its children.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> planar, right, up = view(library.acrobot(), (0, 1))
    >>> planar, right.tolist(), up.tolist()
    (True, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    """
    rotations: dict[int, Array] = {-1: np.eye(3)}
    turning, sliding = [], []
    for i in order:
        link = mech.links[i]
        rotations[i] = rotations[int(mech.parents[i])] @ link.pose[:3, :3]
        for freedom in link.joint.freedoms:
            axis = rotations[i] @ freedom.axis
            if freedom.turns:
                turning.append(axis)
            if freedom.slide:
                sliding.append(axis)
    normal = _normal(turning, sliding, mech.gravity)
    if normal is None:
        normal, planar = _viewer(mech.gravity), False
    else:
        normal, planar = _facing(normal), True
    up = _upwards(normal, mech.gravity)
    return planar, np.cross(up, normal), up


def _normal(turning: list[Array], sliding: list[Array], gravity: Array) -> Array | None:
    """Return the normal of the plane in which all moves, or None."""
    if turning:
        normal = turning[0]
    else:  # slides alone: any plane that holds them, best one that holds gravity too
        rows = np.array([*sliding, 1e-3 * _unit(gravity), 1e-6 * np.array([1.0, 0, 0]), 1e-7 * np.array([0, 1.0, 0])])
        normal = np.linalg.svd(rows)[2][-1]
    if any(np.linalg.norm(np.cross(normal, axis)) > _TOLERANCE for axis in turning):
        return None
    if any(abs(normal @ axis) > _TOLERANCE for axis in sliding):
        return None
    k = int(np.abs(normal).argmax())
    exact: Array = np.zeros(3)
    exact[k] = np.sign(normal[k])
    return exact if np.abs(normal - exact).max() < _TOLERANCE else normal


def _facing(normal: Array) -> Array:
    """Return the normal on the side of the viewer: so that x shows to the right, or else y."""
    k = int(np.abs(normal).argmax())
    towards = -1.0 if k == 1 else 1.0
    return normal * towards * np.sign(normal[k])


def _viewer(gravity: Array) -> Array:
    """Return a direction across gravity from which to look at what moves in space."""
    up = _unit(gravity) if gravity.any() else np.array([0.0, 0.0, 1.0])
    k = int(np.abs(up).argmax())
    towards = np.array([(0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)][k])
    return _unit(towards - (towards @ up) * up)


def _upwards(normal: Array, gravity: Array) -> Array:
    """Return the direction against gravity in the plane; along an axis of the base where the plane holds two."""
    seen = -(gravity - (gravity @ normal) * normal)
    if np.linalg.norm(seen) <= _TOLERANCE * max(1.0, float(np.linalg.norm(gravity))):
        k = int(np.abs(normal).argmax())
        vertical = np.array((0.0, 1.0, 0.0) if k == 2 else (0.0, 0.0, 1.0))
        seen = vertical - (vertical @ normal) * normal
    if np.abs(normal).max() == 1.0:
        k = int(np.abs(seen).argmax())
        up: Array = np.zeros(3)
        up[k] = np.sign(seen[k])
        return up
    return _unit(seen)


def _unit(vector: Array) -> Array:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length) if length else np.zeros(3)
