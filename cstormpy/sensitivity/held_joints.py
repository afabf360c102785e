"""Held joints: a mechanism with six coordinates more wherever a frame may move, all of them zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.mechanism.joints import Composite, Prismatic, Revolute

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]

__all__ = ["Held", "HeldSensitivity"]

#: What moves a frame by the entries of a twist (ω, v), as far as these are small.
_TWIST = (*(Revolute(e) for e in np.eye(3)), *(Prismatic(e) for e in np.eye(3)))


@dataclass(frozen=True)
class HeldSensitivity:
    """Torques of all coordinates and their derivatives to q, q̇ and q̈ of all, those that are held included."""

    torques: Array
    blocks: tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Held:
    """A mechanism with held joints.

    Attributes
    ----------
    mech : Mechanism
    own : ndarray of int
        Where the coordinates of the mechanism that it is made of stand.
    """

    mech: Mechanism
    own: NDArray[np.int64]
    _places: dict[tuple[int, int], slice]

    @classmethod
    def of(cls, mech: Mechanism, places: set[tuple[int, int]]) -> Held:
        """Return a mechanism that can move before some freedoms, each given by its link and its place there."""
        key = "held", frozenset(places)
        found: Held | None = mech._cache.get(key)
        if found is None:
            found = mech._cache[key] = cls._made(mech, places)
        return found

    @classmethod
    def _made(cls, mech: Mechanism, places: set[tuple[int, int]]) -> Held:
        from cstormpy.mechanism.mechanism import Mechanism

        links, own, at, count = [], [], {}, 0
        for i, link in enumerate(mech.links):
            joints: list[Any] = []
            freedoms = link.joint.freedoms
            for k in range(len(freedoms) + 1):
                if (i, k) in places:
                    at[i, k] = slice(count + len(joints), count + len(joints) + len(_TWIST))
                    joints += _TWIST
                if k < len(freedoms):
                    own.append(count + len(joints))
                    joints.append(freedoms[k])
            count += len(joints)
            changed = len(joints) > len(freedoms)
            links.append(link.replace(joint=Composite(joints, name=link.joint_name)) if changed else link)
        return cls(Mechanism(links, gravity=mech.gravity), np.array(own, dtype=np.int64), at)

    def place(self, link: int, position: int) -> slice:
        """Return the six coordinates that stand before a freedom of a link."""
        return self._places[link, position]

    def inverse_sensitivity(
        self, q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
    ) -> HeldSensitivity:
        """Return the inverse dynamics of rows of the mechanism that it is made of, and its derivatives."""
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        wide = np.zeros((3, len(q), self.mech.n))
        wide[..., self.own] = q, qd, qdd
        d = hybrid_sensitivity(self.mech, wide[0], wide[1], wide[2], wrench, base, threads, drive="inverse", name="qdd")
        return HeldSensitivity(d.y, (d.dy_dq, d.dy_dqd, d.dy_du))
