"""Re-centring of rotation vectors: a vector that has come to half a turn gives way to the shorter one of its rotation.

It is a change of chart, (q, q̇) ↦ (q′, q̇′), between two descriptions of one motion. A derivative of the state is carried
into the new chart by its Jacobian, and nothing is added for when that happens: where one comes earlier, the other chart
describes the same motion for so much longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

LONGEST = 4.5
"""A search lets no rotation vector be longer than this [rad], so that after a step of a radian along each of its
components it is shorter than a whole turn."""

NEARLY = np.pi * (1.0 - 1e-9)
"""A vector that a run has found at half a turn is as long as this."""


RECENTRED = "a rotation vector gives way to the shorter one"
"""What is said of the event."""


def half_turn_left(mech: Linkage, q: Any) -> Any:
    """Return by how much the longest rotation vector is shorter than π, as the difference of the squares."""
    squares = [q[k] * q[k] + q[k + 1] * q[k + 1] + q[k + 2] * q[k + 2] for k in mech.ball_starts]
    longest = squares[0]
    for square in squares[1:]:
        longest = np.maximum(longest, square)
    return np.pi**2 - longest


def recentre(mech: Linkage, q: Array, qd: Array, longest: float = NEARLY) -> None:
    """Write the same positions and rates by other rotation vectors where these are longer than that."""
    for at, joint in _balls(mech):
        q[at], qd[at] = joint.recentred(q[at], qd[at], longest)


def shortened(mech: Linkage, q: Array, free: NDArray[np.bool_], longest: float = NEARLY) -> Array:
    """Return the same posture with no rotation vector longer than that, of those that may move."""
    short = q.copy()
    recentre(mech, short, np.zeros(mech.n), longest)
    for first in mech.ball_starts:
        own = slice(first, first + 3)
        if not free[own].all():
            short[own] = q[own]
    return short


def carried(mech: Linkage, q: Array, qd: Array, tangents: Array, longest: float = NEARLY) -> Array:
    """Return derivatives (2n, k) of a state as those of the state that `recentre` makes of it."""
    n, found = mech.n, np.array(tangents, dtype=float)
    for at, joint in _balls(mech):
        rows = np.r_[np.arange(at.start, at.stop), np.arange(n + at.start, n + at.stop)]
        found[rows] = joint.recentring_jacobian(q[at], qd[at], longest) @ found[rows]
    return found


def _balls(mech: Linkage) -> list[tuple[slice, Any]]:
    """Return the coordinates of each joint that has a rotation vector, and the joint."""
    names = [mech.links[mech.joint_links[first]].joint_name for first in mech.ball_starts]
    return [(mech.coordinates(name), mech.joint(name)) for name in names]
