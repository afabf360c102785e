"""Frames of Denavit and Hartenberg in a serial arm: its own where they are such, else on the axes' common normals.

================  ===============================================================================================
here              meaning
================  ===============================================================================================
F                 poses of the links' own frames in the base's frame at q = 0, (n, 4, 4)
G                 poses of the frames 0 to n of the convention there, (n + 1, 4, 4)
z, p              direction of each joint's axis there, and a point on it, (n, 3)
================  ===============================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.joints import OneDofJoint
from cstormpy.linkage.links import Link
from cstormpy.linkage.tables import inverse_pose
from cstormpy.mechanism.dh import CONVENTIONS, DHTable, parameters, transform
from cstormpy.mechanism.mechanism import Mechanism

PARALLEL_TOLERANCE = 1e-10
"""Sine of the angle between two axes, or their distance in units of the arm's size, below which it is nothing."""

FRAME_TOLERANCE = 1e-12
"""By how much a frame may miss what the four parameters say of it, in units of the arm's size."""

REBUILT_TOLERANCE = 1e-9
"""That miss of a frame on common normals, which lie far away where axes are nearly parallel."""


def to_dh(mech: Mechanism, convention: str = "standard") -> DHTable:
    """Return a serial arm as a table; `Mechanism.to_dh` tells of it."""
    convention = option(convention, "convention", CONVENTIONS)
    if mech.loops:
        raise InvalidValue(f"loop {mech.loops[0].name!r}: a table has no loops; ask mech.without_loops()")
    _refuse_others(mech)
    links = mech.links
    F = np.array(links[0].pose)[None]
    for link in links[1:]:
        F = np.concatenate([F, (F[-1] @ link.pose)[None]])
    z = np.array([T[:3, :3] @ _joint(link).axis for T, link in zip(F, links, strict=True)])
    p = np.array([T[:3, :3] @ _joint(link).point + T[:3, 3] for T, link in zip(F, links, strict=True)])
    size = 1.0 + float(np.abs(F[:, :3, 3]).max()) + float(np.abs(p).max())
    G, missed = _own(links, F, z, p, convention), FRAME_TOLERANCE
    if _misfit(links, G, z, p, convention, size * missed) is not None:
        G, missed = _on_normals(F, z, p, convention, size), REBUILT_TOLERANCE
    bad = _misfit(links, G, z, p, convention, size * missed)
    if bad is not None:
        raise InvalidValue(
            f"joint {bad.joint_name!r}: its axis is so nearly parallel to a neighbour's that their common normal lies "
            "too far away; no table of Denavit and Hartenberg tells of this arm to nine digits"
        )
    rows = [_row(link, own, G[k], G[k + 1], convention) for k, (link, own) in enumerate(zip(links, F, strict=True))]
    return DHTable(rows, G[0].copy())


def _refuse_others(mech: Mechanism) -> None:
    """Refuse what a table cannot tell of, by its name."""
    for k, (link, parent) in enumerate(zip(mech.links, mech.parents, strict=True)):
        if not link.joint.dof:
            raise InvalidValue(
                f"joint {link.joint_name!r}: is fixed, and a table of Denavit and Hartenberg has a row for each joint "
                "that moves; mech.without_fixed() makes what is welded one link"
            )
        if link.joint.dof > 1 or _joint(link).turns == bool(_joint(link).slide):
            raise InvalidValue(
                f"joint {link.joint_name!r}: is a {link.joint.kind} joint; a table of Denavit and Hartenberg has "
                "revolute and prismatic ones"
            )
        if parent != k - 1:
            before = mech.links[k - 1].name if k else "the base"
            raise InvalidValue(
                f"link {link.name!r}: a table of Denavit and Hartenberg is a chain in which each link is carried by "
                f"the one before, here {before!r}; this one is carried by {link.parent or 'the base'!r}"
            )


def _joint(link: Link) -> OneDofJoint:
    (joint,) = link.joint.freedoms
    return joint


def _row(link: Link, own: Array, before: Array, frame: Array, convention: str) -> dict[str, Any]:
    """Return a row: parameters, names, the inertia in the axes of the convention's frame, the joint's own terms."""
    joint = _joint(link)
    theta, d, a, alpha = parameters(inverse_pose(before) @ frame, convention)
    row: dict[str, Any] = {"type": joint.kind, "theta": theta, "d": d, "a": a, "alpha": alpha, "name": link.name}
    if link.joint.name is not None:
        row["joint"] = link.joint.name
    com, inertia = link.com, link.inertia
    if not np.array_equal(own, frame):
        X = inverse_pose(frame) @ own
        com, inertia = X[:3, :3] @ com + X[:3, 3], X[:3, :3] @ inertia @ X[:3, :3].T
    if link.mass:
        row["mass"] = link.mass
        row["com"] = tuple(com.tolist())
    if inertia.any():
        row["inertia"] = inertia.tolist()
    if link.allow_impossible:
        row["allow_impossible"] = True
    for key, default in joint.own_torque.items():
        if getattr(joint, key) != default:
            row[key] = getattr(joint, key)
    if joint.limits is not None:
        row["limits"] = joint.limits
    return row


def _misfit(links: tuple[Link, ...], G: Array, z: Array, p: Array, convention: str, slack: float) -> Link | None:
    """Return the first link whose joint has another axis than z of its frame, or whose frame has another pose."""
    for k, link in enumerate(links):
        carrier = G[k] if convention == "standard" else G[k + 1]
        pose = inverse_pose(G[k]) @ G[k + 1]
        off = np.abs(pose - transform(*parameters(pose, convention), convention)).max()
        turned = np.abs(carrier[:3, 2] - z[k]).max()
        arm = carrier[:3, 3] - p[k]
        beside = np.abs(arm - (arm @ z[k]) * z[k]).max() if _joint(link).turns else 0.0
        if not max(off, turned, beside) <= slack:
            return link
    return None


def _own(links: tuple[Link, ...], F: Array, z: Array, p: Array, convention: str) -> Array:
    """Return the links' own frames, and frame 0: that of the base where it fits, else with theta = d = 0."""
    G = np.concatenate([np.eye(4)[None], F])
    if convention == "modified":
        first = parameters(G[1], convention)
        if np.abs(transform(*first, convention) - G[1]).max() > FRAME_TOLERANCE * (1.0 + np.abs(G[1]).max()):
            G[0] = G[1]
        return G
    on_axis = np.abs(z[0] - (0.0, 0.0, 1.0)).max() <= FRAME_TOLERANCE and (
        not _joint(links[0]).turns or np.abs(p[0, :2]).max() <= FRAME_TOLERANCE * (1.0 + np.abs(p[0]).max())
    )
    if not on_axis:  # frame 0 on the axis of joint 1, with theta = d = 0: x as frame 1 has it
        joint = _joint(links[0])
        alpha = float(np.arctan2(joint.axis[1], joint.axis[2]))
        a = -float(joint.point[0]) if joint.turns else 0.0
        G[0] = F[0] @ inverse_pose(transform(0.0, 0.0, a, alpha))
    return G


def _on_normals(F: Array, z: Array, p: Array, convention: str, size: float) -> Array:
    """Return frames on the common normals of successive axes; free choices keep parameters zero."""
    n = len(F)
    x = _across(z[0], np.array([1.0, 0.0, 0.0]))
    origin = _foot(np.zeros(3), p[0], z[0])
    frames = [_frame(origin, x, z[0])]
    for k in range(1, n):
        x, near, far = _common_normal(origin, x, (p[k - 1], z[k - 1]), (p[k], z[k]), size)
        origin = far
        frames.append(_frame(far, x, z[k]) if convention == "standard" else _frame(near, x, z[k - 1]))
    last = F[-1][:3, 3]
    if convention == "standard":
        foot = _foot(last, p[-1], z[-1])
        if np.abs(last - foot).max() > PARALLEL_TOLERANCE * size:
            x = (last - foot) / np.linalg.norm(last - foot)
        return np.array([*frames, _frame(last if np.abs(last - foot).max() > 0.0 else foot, x, z[-1])])
    # Frame 0 is frame 1 at q = 0, and the last has the direction of x from the normal before it.
    frames = [*frames[1:], _frame(_foot(last, p[-1], z[-1]), x, z[-1])]
    return np.array([frames[0], *frames])


def _common_normal(
    origin: Array, x: Array, a: tuple[Array, Array], b: tuple[Array, Array], size: float
) -> tuple[Array, Array, Array]:
    """Return the direction of the common normal from one axis to the next, and where it meets each.

    Of parallel axes it is the one through `origin`; of one and the same axis the direction `x` stays.
    """
    (p, z), (r, w) = a, b
    normal = np.cross(z, w)
    sine = float(np.linalg.norm(normal))
    if sine <= PARALLEL_TOLERANCE:
        near = _foot(origin, p, z)
        far = _foot(near, r, w)
        gap = float(np.linalg.norm(far - near))
        return (x, near, near) if gap <= PARALLEL_TOLERANCE * size else ((far - near) / gap, near, far)
    normal = normal / sine
    t, s, gap = np.linalg.solve(np.column_stack([z, -w, normal]), r - p).tolist()
    if abs(gap) <= PARALLEL_TOLERANCE * size:  # they meet: x turns as little as it can
        return (-normal if normal @ x < -PARALLEL_TOLERANCE else normal), p + t * z, r + s * w
    return (-normal if gap < 0.0 else normal), p + t * z, r + s * w


def _foot(point: Array, p: Array, z: Array) -> Array:
    """Return the point of an axis that is nearest to a point."""
    return p + ((point - p) @ z) * z


def _across(z: Array, wish: Array) -> Array:
    """Return a direction across z, near to a wish."""
    for candidate in (wish, np.array([0.0, 1.0, 0.0])):
        left = candidate - (candidate @ z) * z
        if np.linalg.norm(left) > 0.1:
            return np.asarray(left / np.linalg.norm(left))
    raise AssertionError("no direction is along both x and y")


def _frame(origin: Array, x: Array, z: Array) -> Array:
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, origin
    return T
