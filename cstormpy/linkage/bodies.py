"""Bodies as the sum of rigid parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cstormpy.arrays import Array


class Body(NamedTuple):
    """A rigid body in some axes.

    Attributes
    ----------
    mass : float
    com : ndarray (3,)
        Centre of mass.
    inertia : ndarray (3, 3)
        About the centre of mass.
    """

    mass: float
    com: Array
    inertia: Array

    def moved(self, pose: Array) -> Body:
        """Return the body in other axes, in which its own have this pose."""
        R = pose[:3, :3]
        return Body(self.mass, R @ self.com + pose[:3, 3], R @ self.inertia @ R.T)


def sum_of(parts: Sequence[Body]) -> Body:
    """Return parts as one, by the theorem of Huygens and Steiner; a single one bit by bit.

    >>> ball = np.zeros((3, 3))
    >>> pair = [Body(1.0, np.array([x, 0.0, 0.0]), ball) for x in (-1.0, 1.0)]
    >>> sum_of(pair).inertia.diagonal().tolist()
    [0.0, 2.0, 2.0]
    """
    if len(parts) == 1:
        return parts[0]
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part in parts:
        arm = part.com - com
        inertia += part.inertia + part.mass * ((arm @ arm) * np.eye(3) - np.outer(arm, arm))
    return Body(mass, com, inertia)
