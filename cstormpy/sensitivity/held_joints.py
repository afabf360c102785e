"""Held joints: a mechanism with six coordinates more wherever a frame may move, all of them zero."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.loads import Wrenches
from cstormpy.dynamics.tracing import LARGEST, of_any_size
from cstormpy.graph.arrays import zeros
from cstormpy.linkage import Linkage
from cstormpy.linkage.joints import Composite, OneDofJoint, Prismatic, Revolute
from cstormpy.linkage.links import Link

#: What moves a frame by the entries of a twist (ω, v), as far as these are small.
_TWIST = (*(Revolute(e) for e in np.eye(3)), *(Prismatic(e) for e in np.eye(3)))


def _within(link: Link, held: set[int]) -> Link:
    """Return a link that can move before some of its joint's freedoms."""
    joints: list[OneDofJoint] = []
    for k in range(link.joint.dof + 1):
        joints += _TWIST if k in held else ()
        joints += link.joint.freedoms[k : k + 1]
    return link.replace(joint=Composite(joints, name=link.joint_name))


def _held_name(link: Link, position: int) -> str:
    return f"{link.name} held {position}"


def _around(link: Link, held: set[int]) -> tuple[Link, list[Link]]:
    """Return a link that can move before its ball joint or behind it, and the links between its parent and it."""
    first, last = _held_name(link, 0), _held_name(link, link.joint.dof)
    ball = link.joint.replace(name=link.joint_name)
    between: list[Link] = []
    if 0 in held:
        between.append(Link(first, link.parent, Composite(_TWIST), link.pose))
        link = link.replace(parent=first, pose=np.eye(4))
    if last != first and link.joint.dof in held:
        between.append(Link(f"{last} ball", link.parent, ball, link.pose))
        link = link.replace(parent=f"{last} ball", pose=np.eye(4), joint=Composite(_TWIST, name=last))
    return link, between


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
    mech : Linkage
    own : ndarray of int
        Where the coordinates of the mechanism that it is made of stand.
    """

    mech: Linkage
    own: NDArray[np.int64]
    _places: dict[tuple[int, int], slice]

    @classmethod
    def of(cls, mech: Linkage, places: set[tuple[int, int]]) -> Held:
        """Return a mechanism that can move before some freedoms, each given by its link and its place there."""
        key = "held", frozenset(places)
        found: Held | None = mech.memo.get(key)
        if found is None:
            found = mech.memo[key] = cls._made(mech, places)
        return found

    @classmethod
    def _made(cls, mech: Linkage, places: set[tuple[int, int]]) -> Held:
        links, more = list(mech.links), []
        for i in sorted({link for link, _ in places}):
            held = {position for link, position in places if link == i}
            if any(mech.links[i].joint.balls):
                links[i], between = _around(mech.links[i], held)
                more += between
            else:
                links[i] = _within(mech.links[i], held)
        made = type(mech)([*links, *more], gravity=mech.gravity)
        own: list[int] = []
        at: dict[tuple[int, int], slice] = {}
        for i, link in enumerate(mech.links):
            held = {position for which, position in places if which == i}
            if any(link.joint.balls):
                first = made.coordinates(link.joint_name).start
                at |= {(i, k): made.coordinates(_held_name(link, k)) for k in held}
                own += range(first, first + link.joint.dof)
                continue
            place = made.coordinates(link.joint_name).start
            for k in range(link.joint.dof + 1):
                if k in held:
                    at[i, k] = slice(place, place + len(_TWIST))
                    place += len(_TWIST)
                if k < link.joint.dof:
                    own.append(place)
                    place += 1
        return cls(made, np.array(own, dtype=np.int64), at)

    def place(self, link: int, position: int) -> slice:
        """Return the six coordinates that stand before a freedom of a link."""
        return self._places[link, position]

    def widened(self, x: Any) -> Any:
        """Return numbers (..., n) of all coordinates with zeros for those that are held."""
        wide = zeros((*np.shape(x)[:-1], self.mech.n), x)
        wide[..., self.own] = x
        return wide

    def inverse_sensitivity(
        self, q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
    ) -> HeldSensitivity:
        """Return the inverse dynamics of rows, or a row of symbols, of its mechanism, and its derivatives."""
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        if isinstance(wrench, Wrenches) and wrench.rows is not None:
            wrench = wrench.rows
        if isinstance(wrench, np.ndarray) and wrench.ndim > 1:  # rows for all links, none on those that are more
            more = len(self.mech.links) - wrench.shape[-2]
            wrench = np.concatenate([wrench, np.zeros((*wrench.shape[:-2], more, wrench.shape[-1]))], axis=-2)
        motion = self.widened(q), self.widened(qd), self.widened(qdd)
        whole = of_any_size() if self.mech.symbolic and self.mech.n <= LARGEST["held", True] else nullcontext()
        with whole:
            d = hybrid_sensitivity(self.mech, *motion, wrench, base, threads, drive="inverse", name="qdd")
        return HeldSensitivity(d.y, (d.dy_dq, d.dy_dqd, d.dy_du))
