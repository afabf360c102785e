"""Tables of Denavit's and Hartenberg's four parameters: serial arms made from them, and written as them.

========  ================  ==================================================================================
here      unit              meaning
========  ================  ==================================================================================
theta     rad               rotation about z; of a revolute joint where q = 0
d         m                 translation along z; of a prismatic joint where q = 0
a         m                 translation along x
alpha     rad               rotation about x
========  ================  ==================================================================================

The pose of frame k in frame k - 1 is, with q added to theta of a revolute and to d of a prismatic joint,

    standard:  Rz(theta) Tz(d) Tx(a) Rx(alpha)     joint k moves about z of frame k - 1, at the near end of link k
    modified:  Rx(alpha) Tx(a) Rz(theta) Tz(d)     joint k moves about z of frame k itself

The first is (1) of Xiang, Arora and Abdel-Malek (2008) and the convention of Paul, Spong and Corke; the second is that
of Craig and of Khalil and Kleinfinger, whose alpha and a bear the index k - 1.

Frames of Denavit and Hartenberg in a serial arm: its own where they are such, else on the axes' common normals.

================  ===============================================================================================
here              meaning
================  ===============================================================================================
F                 poses of the links' own frames in the base's frame at q = 0, (n, 4, 4)
G                 poses of the frames 0 to n of the convention there, (n + 1, 4, 4)
z, p              direction of each joint's axis there, and a point on it, (n, 3)
================  ===============================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import entries, option
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidValue, ShapeError
from cstormpy.linkage.degrees import say_angles
from cstormpy.linkage.joints import JOINT_TYPES, Joint, OneDofJoint
from cstormpy.linkage.links import Link
from cstormpy.linkage.tables import inverse_pose
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.rotations import cos_sin

CONVENTIONS = ("standard", "modified")
"""Whose axis a joint moves about: z of the frame before, or z of its own."""

_PARAMETERS = ("theta", "d", "a", "alpha")
"""Columns of a table, in the order of the standard product and of Xiang's Table 2."""

_TYPES = ("revolute", "prismatic")
_LINK = ("mass", "com", "inertia", "allow_impossible")
_JOINT = ("damping", "friction", "friction_velocity", "armature", "stiffness", "rest", "limits")
_KEYS = (*_PARAMETERS, "type", "name", "joint", *_LINK, *_JOINT)


class DHTable(NamedTuple):
    """A serial arm as a table: rows as `Mechanism.from_dh` takes them, and the pose of frame 0 in the base's frame."""

    rows: list[dict[str, Any]]
    base: Array


def from_dh(
    table: Iterable[Any],
    convention: str = "standard",
    *,
    base: ArrayLike | None = None,
    gravity: ArrayLike = (0.0, -9.81, 0.0),
    actuated: Iterable[str] | None = None,
    active: Iterable[str] = (),
) -> Mechanism:
    """Return the serial arm of a table; `Mechanism.from_dh` tells of the arguments."""
    convention = option(convention, "convention", CONVENTIONS)
    rows = [_read_row(row, f"row {k}") for k, row in enumerate(entries(table, "table", "rows"), 1)]
    pose = np.eye(4) if base is None else checks.array(base, (4, 4), "base")
    links: list[Link] = []
    for k, row in enumerate(rows, 1):
        parent = links[-1].name if links else None
        try:
            links.append(_link(row, k, parent, pose, convention))
        except CstormError as error:
            raise type(error)(f"row {k}: {error}") from None
        pose = np.eye(4)
    return Mechanism(links, gravity, actuated=actuated, active=active)


def _read_row(row: Any, where: str) -> dict[str, Any]:
    """Return a row as a mapping with its four parameters, whichever way it was given."""
    if isinstance(row, Mapping):
        given = dict(row)
        for key in given:
            option(key, f"{where}: key", _KEYS)
        if "type" not in given and given.get("joint") in _TYPES:
            raise InvalidValue(
                f"{where}: 'joint' is a name, and what the joint does is said by 'type': {given['joint']!r}"
            )
    else:
        values = entries(row, where, "(theta, d, a, alpha), with the joint's type behind it unless it is revolute")
        if len(values) not in (4, 5):
            raise ShapeError(
                f"{where}: expected (theta, d, a, alpha), perhaps a joint's type, got {len(values)} entries"
            )
        given = dict(zip((*_PARAMETERS, "type"), values, strict=False))
    given["type"] = option(given.get("type", "revolute"), f"{where}: type", _TYPES)
    for key in _PARAMETERS:
        given[key] = checks.real(given.get(key, 0.0), f"{where}: {key}")
    for key in ("theta", "alpha"):
        say_angles(f"{where}: {key}", (given[key],))
    return given


def _link(row: Mapping[str, Any], k: int, parent: str | None, before: Array, convention: str) -> Link:
    theta, d, a, alpha = (row[key] for key in _PARAMETERS)
    options = {key: row[key] for key in _JOINT if key in row}
    if convention == "standard":  # z of the frame before, as the frame at the far end sees it
        c, s = cos_sin(alpha)
        options.update(axis=(0.0, s, c), point=(-a, 0.0, 0.0))
    else:
        options["axis"] = (0.0, 0.0, 1.0)
    name = row.get("name", f"link{k}")
    make: Callable[..., Joint] = JOINT_TYPES[row["type"]]
    joint = make(**options, name=row.get("joint", None if "name" in row else f"joint{k}"))
    pose = before @ transform(theta, d, a, alpha, convention)
    return Link(name, parent, joint, pose, **{key: row[key] for key in _LINK if key in row})


def transform(theta: float, d: float, a: float, alpha: float, convention: str = "standard") -> Array:
    """Return the pose (4, 4) of a frame in the one before; quarter turns are exact.

    >>> transform(0.0, 0.1, 0.2, math.pi / 2).tolist()[1:3]
    [[0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.1]]
    """
    (ct, st), (ca, sa) = cos_sin(theta), cos_sin(alpha)
    if convention == "standard":
        rows = [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0.0, sa, ca, d]]
    else:
        rows = [[ct, -st, 0.0, a], [st * ca, ct * ca, -sa, -sa * d], [st * sa, ct * sa, ca, ca * d]]
    return np.array([*rows, [0.0, 0.0, 0.0, 1.0]]) + 0.0


def parameters(pose: Array, convention: str) -> tuple[float, float, float, float]:
    """Return theta, d, a and alpha of the nearest `transform`; whether it is the pose, the caller sees."""
    R, (x, y, z) = pose[:3, :3], pose[:3, 3].tolist()
    if convention == "standard":
        theta, alpha = math.atan2(R[1, 0], R[0, 0]), math.atan2(R[2, 1], R[2, 2])
        c, s = cos_sin(theta)
        return theta, z, c * x + s * y, alpha
    theta, alpha = math.atan2(-R[0, 1], R[0, 0]), math.atan2(-R[1, 2], R[2, 2])
    c, s = cos_sin(alpha)
    return theta, c * z - s * y, x, alpha


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
    unit = _size(F, p)  # a power of 2: nothing is rounded
    for lengths in (F[:, :3, 3], p):
        lengths /= unit
    G, missed = _own(links, F, z, p, convention, unit), FRAME_TOLERANCE
    if _misfit(links, G, z, p, convention, missed) is not None:
        G, missed = _on_normals(F, z, p, convention), REBUILT_TOLERANCE
    bad = _misfit(links, G, z, p, convention, missed)
    if bad is not None:
        raise InvalidValue(
            f"joint {bad.joint_name!r}: its axis is so nearly parallel to a neighbour's that their common normal lies "
            "too far away; no table of Denavit and Hartenberg tells of this arm to nine digits"
        )
    for lengths in (F[:, :3, 3], G[:, :3, 3]):
        lengths *= unit
    rows = [_row(link, own, G[k], G[k + 1], convention) for k, (link, own) in enumerate(zip(links, F, strict=True))]
    return DHTable(rows, G[0].copy())


def _size(F: Array, p: Array) -> float:
    """Return a power of 2 that no coordinate of the frames and the points on axes exceeds, 1 where all are zero."""
    largest = float(max(np.abs(F[:, :3, 3]).max(), np.abs(p).max()))
    return 2.0 ** math.frexp(largest)[1] if largest else 1.0


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
    kind = _TYPES[0] if joint.turns else _TYPES[1]  # of a screw without a pitch too
    row: dict[str, Any] = {"type": kind, "theta": theta, "d": d, "a": a, "alpha": alpha, "name": link.name}
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


def _own(links: tuple[Link, ...], F: Array, z: Array, p: Array, convention: str, unit: float) -> Array:
    """Return the links' own frames, and frame 0: that of the base where it fits, else with theta = d = 0.

    Lengths are in units of the arm's size.
    """
    G = np.concatenate([np.eye(4)[None], F])
    if convention == "modified":
        first = parameters(G[1], convention)
        if np.abs(transform(*first, convention) - G[1]).max() > FRAME_TOLERANCE:
            G[0] = G[1]
        return G
    on_axis = np.abs(z[0] - (0.0, 0.0, 1.0)).max() <= FRAME_TOLERANCE and (
        not _joint(links[0]).turns or np.abs(p[0, :2]).max() <= FRAME_TOLERANCE
    )
    if not on_axis:  # frame 0 on the axis of joint 1, with theta = d = 0: x as frame 1 has it
        joint = _joint(links[0])
        alpha = float(np.arctan2(joint.axis[1], joint.axis[2]))
        a = -float(joint.point[0]) / unit if joint.turns else 0.0
        G[0] = F[0] @ inverse_pose(transform(0.0, 0.0, a, alpha))
    return G


def _on_normals(F: Array, z: Array, p: Array, convention: str) -> Array:
    """Return frames on the common normals of successive axes; free choices keep parameters zero."""
    n = len(F)
    x = _across(z[0], np.array([1.0, 0.0, 0.0]))
    origin = _foot(np.zeros(3), p[0], z[0])
    frames = [_frame(origin, x, z[0])]
    for k in range(1, n):
        x, near, far = _common_normal(origin, x, (p[k - 1], z[k - 1]), (p[k], z[k]))
        origin = far
        frames.append(_frame(far, x, z[k]) if convention == "standard" else _frame(near, x, z[k - 1]))
    last = F[-1][:3, 3]
    if convention == "standard":
        foot = _foot(last, p[-1], z[-1])
        if np.abs(last - foot).max() > PARALLEL_TOLERANCE:
            x = (last - foot) / np.linalg.norm(last - foot)
        return np.array([*frames, _frame(last if np.abs(last - foot).max() > 0.0 else foot, x, z[-1])])
    # Frame 0 is frame 1 at q = 0, and the last has the direction of x from the normal before it.
    frames = [*frames[1:], _frame(_foot(last, p[-1], z[-1]), x, z[-1])]
    return np.array([frames[0], *frames])


def _common_normal(
    origin: Array, x: Array, a: tuple[Array, Array], b: tuple[Array, Array]
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
        return (x, near, near) if gap <= PARALLEL_TOLERANCE else ((far - near) / gap, near, far)
    normal = normal / sine
    t, s, gap = np.linalg.solve(np.column_stack([z, -w, normal]), r - p).tolist()
    if abs(gap) <= PARALLEL_TOLERANCE:  # they meet: x turns as little as it can
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
