"""Bodies as the sum of rigid parts, and links without joints welded to those that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.linkage import Linkage
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Shape


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


M = TypeVar("M", bound=Linkage)


def without_fixed(mech: M) -> M:
    """Return the mechanism with one link for all that is welded together; `Linkage.without_fixed` tells of it."""
    carrier: dict[str, tuple[str | None, Array]] = {}  # of each fixed link: what carries it, and its pose there
    parts: dict[str, list[Body]] = {link.name: [] for link in mech.links}
    shapes: dict[str, list[Shape]] = {link.name: list(link.shapes) for link in mech.links}
    impossible = {link.name for link in mech.links if link.allow_impossible and link.joint.dof}
    for i in outwards(mech):
        link = mech.links[i]
        body, pose = _place(link, carrier)
        if link.joint.dof:
            parts[link.name].append(Body(link.mass, link.com, link.inertia))
            continue
        carrier[link.name] = body, pose
        if body is not None:
            parts[body].append(Body(link.mass, link.com, link.inertia).moved(pose))
            shapes[body] += [shape.moved(pose) for shape in link.shapes]
            if link.allow_impossible:
                impossible.add(body)
    if not mech.n:
        raise InvalidValue("without_fixed: every joint is fixed, so that no link would be left")
    links = []
    for link in mech.links:
        if not link.joint.dof:
            continue
        parent, pose = _place(link, carrier)
        # Named by its link unless it has a name, so that the coordinates keep theirs.
        mass, com, inertia = sum_of(parts[link.name])
        kept: dict[str, Any] = {"allow_impossible": link.name in impossible, "shapes": shapes[link.name]}
        links.append(Link(link.name, parent, link.joint, pose, mass, com, inertia, **kept))
    loops = [_carried(loop, carrier) if isinstance(loop, Loop) else loop for loop in mech.loops]
    return mech.replace(links=links, loops=loops)


def _carried(loop: Loop, carrier: dict[str, tuple[str | None, Array]]) -> Loop:
    """Return a loop whose frames lie on the links that carry them."""
    (a, pose_a), (b, pose_b) = (
        (body, place @ pose)
        for (body, place), pose in (
            (carrier.get(loop.link_a or "", (loop.link_a, np.eye(4))), loop.pose_a),
            (carrier.get(loop.link_b or "", (loop.link_b, np.eye(4))), loop.pose_b),
        )
    )
    return loop.replace(link_a=a, link_b=b, pose_a=pose_a, pose_b=pose_b)


def _place(link: Link, carrier: dict[str, tuple[str | None, Array]]) -> tuple[str | None, Array]:
    """Return the link that moves on a joint and carries this one, None for the base, and the pose at q = 0 in it."""
    if link.parent in carrier:
        body, pose = carrier[link.parent]
        return body, pose @ link.pose
    return link.parent, link.pose


def outwards(mech: Linkage) -> list[int]:
    """Return the links such that a parent precedes its children."""
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(mech.parents.tolist()):
        children.setdefault(parent, []).append(i)
    order, stack = [], children.get(-1, [])[::-1]
    while stack:
        order.append(i := stack.pop())
        stack.extend(children.get(i, [])[::-1])
    return order
