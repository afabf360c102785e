"""The skeleton of a mechanism: what a drawing of it needs, and its forward kinematics in plain NumPy.

A link is drawn as lines from its joint to the joints of its children and to where loops hold it. One that has neither
is drawn to its frame where that lies off the joint (as Denavit-Hartenberg frames do) and not at the parent's, or else
to twice its centre of mass, where a uniform rod would end; so is one whose lines all lie on its own axis, as the body
between two wheels. A link that has shapes is drawn as these are, and ends where they do. All is kept in the frames of
the links, so that a drawing moves it by the links' poses alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array, real_array
from cstormpy.linkage.joints import Joint
from cstormpy.linkage.linkage import Linkage
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Solid
from cstormpy.linkage.view_direction import view

_SAME = 1e-9
"""Points closer than this, relative to the size of the mechanism, are one; directions within this are parallel."""

_ALONG = 0.6
"""A last link whose centre of mass is off its axis by less than this part of the way is drawn along the axis."""

_BASE = -1

FAR = 4.0
"""A view follows a mechanism that goes farther than so many times its own size."""


@dataclass(frozen=True)
class Drawing:
    """A skeleton in one configuration, or in a batch of N: all in the base frame.

    Attributes
    ----------
    lines : tuple of tuple of ndarray (..., k, 3)
        Of each link the polylines to draw; none for a link without length.
    base : tuple of ndarray (k, 3)
        Polylines of the base, from its origin to the joints that it carries; the same in every configuration.
    joints : ndarray (..., n_links, 3)
        A point of each link's joint, on the side of the link.
    anchors : ndarray (..., n_links, 3)
        The same point on the side of the parent at q = 0: where a slide or screw begins.
    axes : ndarray (..., n_links, 3)
        Unit vectors of the joints' axes; zero for a joint that has none.
    coms : ndarray (..., n_links, 3)
        Centres of mass.
    tips : ndarray (..., n_tips, 3)
        The ends of the links that carry nothing, in the order of `Skeleton.tips`.
    solids : tuple of tuple of Solid
        Of each link its shapes, which are drawn in place of its lines.
    """

    lines: tuple[tuple[Array, ...], ...]
    base: tuple[Array, ...]
    joints: Array
    anchors: Array
    axes: Array
    coms: Array
    tips: Array
    solids: tuple[tuple[Solid, ...], ...]

    def points(self) -> Array:
        """Return all points that are drawn, (K, 3), of all configurations."""
        return np.concatenate([self.moving().reshape(-1, 3), *self.base, self.anchors.reshape(-1, 3)])

    def moving(self) -> Array:
        """Return the points (..., K, 3) that are drawn of links and their joints, without what stays with the base."""
        parts = [line for link in self.lines for line in link]
        parts += [solid.corners for solid in (each for link in self.solids for each in link)]
        return np.concatenate([*parts, self.joints], axis=-2)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The points and lines by which a mechanism is drawn; made by `skeleton`.

    Attributes
    ----------
    names, joint_names : tuple of str
        Of the links, and of the joints that carry them.
    parents : ndarray of int (n_links,)
        Index of the parent, -1 for the base.
    order : tuple of int
        The links such that a parent precedes its children.
    n : int
        Number of coordinates.
    joints : tuple of Joint
        What carries each link; its `symbol` says how it is drawn.
    ranges : tuple of slice
        The coordinates in q of these joints.
    home : ndarray (n_links, 4, 4)
        Poses in the parents' frames at q = 0.
    axes, points : ndarray (n_links, 3)
        Axis of the joint (zero if there is none) and a point of it, in the link's frame.
    starts : ndarray (n_links, 3)
        The point of the joint that stays with the parent, in the parent's frame.
    strokes : tuple of (low, high) or None
        How far a joint that is drawn with a rail may slide along its axis [m], where both sides are limited.
    lines : tuple of tuple of ndarray (k, 3)
        Of each link the polylines in its frame.
    base : tuple of ndarray (k, 3)
        Polylines of the base, to the joints that it carries.
    coms : ndarray (n_links, 3)
        Centres of mass in the links' frames.
    masses : ndarray (n_links,)
    tips : tuple of (int, ndarray (3,))
        Links that carry nothing, and their ends in the link's frame.
    planar : bool
        Whether all that moves stays parallel to one plane.
    right, up : ndarray (3,)
        Directions of the base frame to draw to the right and upwards: in the plane, or for a view in space.
    reach : float
        No drawn point is farther from the base's origin [m]; a slide without limits counts as at q = 0.
    solids : tuple of tuple of Solid
        Of each link what its shapes look like, in its frame.
    """

    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parents: NDArray[np.int64]
    order: tuple[int, ...]
    n: int
    joints: tuple[Joint, ...]
    ranges: tuple[slice, ...]
    home: Array
    axes: Array
    points: Array
    starts: Array
    strokes: tuple[tuple[float, float] | None, ...]
    lines: tuple[tuple[Array, ...], ...]
    base: tuple[Array, ...]
    coms: Array
    masses: Array
    tips: tuple[tuple[int, Array], ...]
    planar: bool
    right: Array
    up: Array
    reach: float
    solids: tuple[tuple[Solid, ...], ...]

    def poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., n_links, 4, 4) of the links in the base frame for q (n,) or (N, n).

        It is `Mechanism.forward_kinematics` without a compiler, for processes that only draw.
        """
        X = self.local_poses(q)
        for i in self.order:
            p = self.parents[i]
            if p >= 0:
                X[..., i, :, :] = X[..., p, :, :] @ X[..., i, :, :]
        return X

    def local_poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., n_links, 4, 4) of the links in their parents' frames for q (n,) or (N, n)."""
        q = real_array(q, "q", (self.n,), ("N", self.n), finite=False)
        X = np.empty((*q.shape[:-1], len(self.parents), 4, 4))
        for i, (joint, at) in enumerate(zip(self.joints, self.ranges, strict=True)):
            X[..., i, :, :] = self.home[i] @ joint.motion(q[..., at])
        return X

    def slides(self, q: ArrayLike) -> Array:
        """Return how far each joint with a rail has slid along its axis, (..., n_links), for q (..., n)."""
        q = np.asarray(q)
        way = np.zeros((*q.shape[:-1], len(self.parents)))
        for i, (joint, at) in enumerate(zip(self.joints, self.ranges, strict=True)):
            if joint.symbol.rail:
                way[..., i] = joint.freedoms[0].slide * q[..., at.start]
        return way

    def place(self, X: ArrayLike) -> Drawing:
        """Return the skeleton at the poses X (..., n_links, 4, 4) of its links in the base frame."""
        n_links = len(self.parents)
        X = real_array(X, "X", (..., n_links, 4, 4), finite=False)
        anchors = np.empty((*X.shape[:-3], n_links, 3))
        for i, p in enumerate(self.parents):
            anchors[..., i, :] = self.starts[i] if p < 0 else _moved(X[..., p, :, :], self.starts[i])
        R = X[..., :3, :3]
        return Drawing(
            lines=tuple(
                tuple(_moved(X[..., i, :, :], line) for line in polylines) for i, polylines in enumerate(self.lines)
            ),
            base=self.base,
            joints=_each(X, self.points),
            anchors=anchors,
            axes=np.einsum("...ij,...j->...i", R, np.broadcast_to(self.axes, (*X.shape[:-3], n_links, 3))),
            coms=_each(X, self.coms),
            tips=np.stack([_moved(X[..., i, :, :], tip) for i, tip in self.tips], axis=-2),
            solids=tuple(
                tuple(solid.moved(X[..., i, :, :]) for solid in solids) for i, solids in enumerate(self.solids)
            ),
        )

    def extent(self, q: ArrayLike) -> tuple[Array, Array]:
        """Return the lowest and the highest coordinates (3,), in the base frame, of all drawn over q (n,) or (N, n)."""
        points = self.place(self.poses(q)).points()
        return points.min(axis=0), points.max(axis=0)


def skeleton(mech: Linkage) -> Skeleton:
    """Return the skeleton of a mechanism.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> acrobot = skeleton(library.acrobot())
    >>> acrobot.planar, acrobot.reach
    (True, 3.0)
    >>> acrobot.place(acrobot.poses([0.0, np.pi / 2])).tips.round(9).tolist()
    [[1.0, 2.0, 0.0]]
    """
    links = mech.links
    joints = tuple(link.joint for link in links)
    home = np.stack([link.pose for link in links])
    points = np.stack([joint.end for joint in joints])
    order = _order(mech.parents)
    anchors = np.stack([joint.start for joint in joints])
    starts = np.einsum("nij,nj->ni", home[:, :3, :3], anchors) + home[:, :3, 3]  # joints in the parents' frames
    children: list[list[int]] = [[] for _ in links]
    for i, p in enumerate(mech.parents):
        if p >= 0:
            children[p].append(i)
    scale = float(max(np.abs(starts).max(), np.abs(points).max(), *(np.abs(link.com).max() for link in links)))
    same, held = _SAME * scale, _loop_points(mech)
    ends = [[starts[c] for c in below] for below in children]
    for i, link in enumerate(links):
        ends[i] += [point for point in held[link.name] if np.linalg.norm(point - points[i]) > same]
    lines = tuple(_polylines(link, points[i], ends[i], same) for i, link in enumerate(links))
    tips = tuple((i, lines[i][0][-1] if lines[i] else points[i]) for i in range(len(links)) if not children[i])
    roots = [i for i, p in enumerate(mech.parents) if p == _BASE and joints[i].symbol.stands]
    planar, right, up = view(mech, order)
    strokes = tuple(_stroke(joint) for joint in joints)
    solids = tuple(tuple(shape.solid() for shape in link.shapes) for link in links)
    drawn = tuple((*own, *(solid.corners for solid in more)) for own, more in zip(lines, solids, strict=True))
    return Skeleton(
        names=tuple(link.name for link in links),
        joint_names=tuple(link.joint_name for link in links),
        parents=mech.parents,
        order=order,
        n=mech.n,
        joints=joints,
        ranges=tuple(mech.coordinates(link.joint_name) for link in links),
        home=home,
        axes=np.stack([joint.direction for joint in joints]),
        points=points,
        starts=starts,
        strokes=strokes,
        lines=lines,
        base=tuple(np.stack([np.zeros(3), starts[i]]) for i in roots if np.linalg.norm(starts[i]) > _SAME * scale),
        coms=np.stack([link.com for link in links]),
        masses=np.array([link.mass for link in links]),
        tips=tips,
        planar=planar,
        right=right,
        up=up,
        reach=_reach(mech.parents, order, starts, points, drawn, joints) or 1.0,
        solids=solids,
    )


def _loop_points(mech: Linkage) -> dict[str, list[Array]]:
    """Return the points of each link at which loops hold it, in its frame."""
    found: dict[str, list[Array]] = {link.name: [] for link in mech.links}
    for loop in mech.loops:
        if isinstance(loop, Loop):
            for name, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
                if name in found:
                    found[name].append(pose[:3, 3])
    return found


def _moved(X: Array, points: Array) -> Array:
    """Return points (3,) or (k, 3) moved by poses (..., 4, 4)."""
    if points.ndim == 1:
        return X[..., :3, :3] @ points + X[..., :3, 3]
    return points @ np.swapaxes(X[..., :3, :3], -1, -2) + X[..., None, :3, 3]


def _each(X: Array, points: Array) -> Array:
    """Return point i (3,) moved by pose i, for poses (..., n, 4, 4)."""
    return np.einsum("...nij,nj->...ni", X[..., :3, :3], points) + X[..., :3, 3]


def _order(parents: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the links so that a parent precedes its children."""
    placed: list[int] = []
    done = {_BASE}
    waiting = list(range(len(parents)))
    while waiting:
        ready = [i for i in waiting if parents[i] in done]
        placed += ready
        done.update(ready)
        waiting = [i for i in waiting if i not in done]
    return tuple(placed)


def _polylines(link: Link, start: Array, children: list[Array], same: float) -> tuple[Array, ...]:
    """Return the lines from a link's joint to the joints of its children, or to its end."""
    # the frame lies off the joint: the link leads there first, unless it is where the parent's is, as of an arm of
    # joint screws, and tells nothing of the link
    far = np.linalg.norm(start) > same and np.linalg.norm(link.pose[:3, 3]) > same
    ends = children or ([] if far else [_end(link, start)])
    if children and not far and _turns_unseen(link, start, children, same):
        ends = [*children, _end(link, start)]
    if far and not children:
        return (np.stack([start, np.zeros(3)]),)
    lines = []
    for end in ends:
        corners = [start, np.zeros(3), end] if far else [start, end]
        kept = [corners[0]]
        kept += [b for a, b in pairwise(corners) if np.linalg.norm(b - a) > same]
        if len(kept) > 1:
            lines.append(np.stack(kept))
    return tuple(lines)


def _turns_unseen(link: Link, start: Array, children: list[Array], same: float) -> bool:
    """Tell whether lines to its children all lie on a link's axis, off which its centre of mass is."""
    axis = link.joint.direction
    if (
        link.joint.symbol.rail
        or not np.any(axis)
        or any(np.linalg.norm(np.cross(end - start, axis)) > same for end in children)
    ):
        return False
    return bool(np.linalg.norm(np.cross(_end(link, start) - start, axis)) > same)


def _end(link: Link, start: Array) -> Array:
    """Return where a link that carries nothing ends: twice as far from the joint as its centre of mass.

    Shapes that do not reach so far end it; one that has no mass, nor a place for it, ends at the joint.
    """
    if link.mass == 0.0 and not np.any(link.com) and not link.shapes:
        return start
    arm = link.com - start
    along = float(arm @ link.joint.direction)
    if np.linalg.norm(arm - along * link.joint.direction) < _ALONG * abs(along):
        arm = along * link.joint.direction
    corners = [shape.solid().corners for shape in link.shapes]
    parts = ((np.concatenate(corners) - start) @ arm / (arm @ arm)) if corners and np.any(arm) else np.zeros(0)
    return np.asarray(start + (np.clip(parts.max(), 0.0, 2.0) if parts.size else 2.0) * arm)


def _stroke(joint: Joint) -> tuple[float, float] | None:
    if not joint.symbol.rail:
        return None
    freedom = joint.freedoms[0]
    position = None if freedom.limits is None else freedom.limits.position
    if position is None or not np.isfinite(position).all():
        return None
    low, high = sorted(freedom.slide * side for side in position)
    return low, high


def _reach(
    parents: NDArray[np.int64],
    order: tuple[int, ...],
    starts: Array,
    points: Array,
    lines: tuple[tuple[Array, ...], ...],
    joints: tuple[Joint, ...],
) -> float:
    """Return a bound for the distance of all drawn points from the base's origin."""
    to_joint = np.zeros(len(parents))
    farthest = 0.0
    for i in order:
        p = parents[i]
        way = np.linalg.norm(starts[i]) if p < 0 else to_joint[p] + np.linalg.norm(starts[i] - points[p])
        way += np.linalg.norm(joints[i].end - joints[i].start)
        for freedom in joints[i].freedoms:
            position = None if freedom.limits is None else freedom.limits.position
            if position is not None and np.isfinite(position).all():
                way += abs(freedom.slide) * max(map(abs, position))
        to_joint[i] = way
        ends = [np.linalg.norm(line - points[i], axis=1).max(initial=0.0) for line in lines[i]]
        farthest = max(farthest, float(way + max(ends, default=0.0)))
    return farthest
