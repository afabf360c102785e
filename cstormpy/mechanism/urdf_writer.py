"""URDF written from mechanisms, where it can tell of them.

URDF has hinges and slides whose axis passes through the origin of the link's frame, damping, friction and symmetric
limits; neither springs nor rotors, and no gravity. It has floating joints, and planar ones that are told by their
normal, whose coordinates share one damping and one friction and have no limits. A link whose joint has its axis or
point elsewhere, or other directions in its plane than a reader takes, is welded to a carrier without a mass whose frame
lies there, so that every link keeps its frame, and every joint its coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast
from xml.sax.saxutils import quoteattr

import numpy as np

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.constraints import Coupling
from cstormpy.linkage.joints import Joint, Limits, OneDofJoint
from cstormpy.linkage.links import Link
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.reader_notes import fresh_name
from cstormpy.mechanism.rotations import roll_pitch_yaw
from cstormpy.mechanism.urdf import NO_LIMIT, WORLD, driven
from cstormpy.mechanism.xml_elements import numbers_of
from cstormpy.reporting import notice

GRAVITY = (0.0, 0.0, -9.81)
"""The value that a reader of URDF assumes."""

_SHAPES = ("box", "sphere", "cylinder")
_KINDS = ("revolute", "prismatic", "fixed", "floating", "planar")

_PERPENDICULAR = 1e-12
"""The greatest cosine between the directions of a planar joint that is written: a reader makes them perpendicular."""


def to_urdf(mech: Mechanism, name: str = "robot") -> str:
    """Return the text of a URDF; `Mechanism.to_urdf` tells of it."""
    named = checks.name(name, "name")
    follows = _couplings(mech)
    for link in mech.links:
        _refuse_others(link.joint, link.joint_name)
    links, joints = {link.name for link in mech.links}, {link.joint_name for link in mech.links}
    root = _root(mech)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={quoteattr(named)}>"]
    if root is None:
        if WORLD in links:
            raise InvalidValue(f"link {WORLD!r}: the name means the base in a URDF; give the link another one")
        lines.append(f"  <link name={quoteattr(WORLD)}/>")
    for link in mech.links:
        lines += _link(link)
    for link in mech.links:
        if link is not root:
            parent = WORLD if link.parent is None else link.parent
            lines += _joint(link, parent, links, joints, follows.get(link.joint_name))
    _say_what_is_left_out(mech)
    return "\n".join([*lines, "</robot>", ""])


def _couplings(mech: Mechanism) -> dict[str, Coupling]:
    """Return the couplings by the joint that follows, refusing loops and what no mimic joint is."""
    found: dict[str, Coupling] = {}
    joints = {link.joint_name for link in mech.links}
    for loop in mech.loops:
        if not isinstance(loop, Coupling):
            raise InvalidValue(f"loop {loop.name!r}: a URDF has no loops; write mech.without_loops(), or save to JSON")
        if loop.joint in found or not {loop.joint, loop.other} <= joints:
            raise InvalidValue(f"coupling {loop.name!r}: a URDF couples a joint of one coordinate to one other")
        found[loop.joint] = loop
    return found


def _root(mech: Mechanism) -> Link | None:
    """Return the link that a reader welds to the base where it stands; None if the base must be a link of the file."""
    roots = [link for link in mech.links if link.parent is None]
    fits = len(roots) == 1 and not roots[0].joint.dof and np.array_equal(roots[0].pose, np.eye(4))
    return roots[0] if fits and (roots[0].name != WORLD or roots[0].mass or roots[0].inertia.any()) else None


def _refuse_others(joint: Joint, name: str) -> None:
    """Refuse by its name what a URDF does not have."""
    if joint.in_urdf is None:
        raise InvalidValue(f"joint {name!r}: is a {joint.kind} joint; a URDF has {', '.join(_KINDS)} ones")
    if joint.dof > 1:
        _refuse_several(joint, joint.in_urdf[2], name)
    for freedom in joint.freedoms:
        _refuse_terms(freedom, name)


def _refuse_several(joint: Joint, axes: Array, name: str) -> None:
    """Refuse what a URDF does not have of a joint of several coordinates."""
    if joint.max_angle is not None or any(freedom.limits for freedom in joint.freedoms):
        raise InvalidValue(f"joint {name!r}: has limits, which a URDF has no place for on a {joint.kind} joint")
    for key in ("damping", "friction"):
        numbers = {getattr(freedom, key) for freedom in joint.freedoms}
        if len(numbers) > 1:
            raise InvalidValue(
                f"joint {name!r}: {key}: a URDF has one number for all coordinates of a {joint.kind} joint, "
                f"not {', '.join(f'{number:g}' for number in sorted(numbers))}"
            )
    if abs(cosine := float(axes[:, 0] @ axes[:, 1])) > _PERPENDICULAR:
        raise InvalidValue(f"joint {name!r}: axes: must be perpendicular in a URDF, their cosine is {cosine:.3g}")


def _refuse_terms(joint: OneDofJoint, name: str) -> None:
    for key in ("armature", "stiffness"):
        if getattr(joint, key):
            raise InvalidValue(
                f"joint {name!r}: has {key} {getattr(joint, key):g}, which a URDF has no place for; "
                f"mech.with_parameters({{'{name}.{key}': 0}}) leaves it out"
            )
    usual = OneDofJoint.own_torque["friction_velocity"]
    if joint.friction and joint.friction_velocity != usual:
        raise InvalidValue(
            f"joint {name!r}: friction_velocity: a URDF has no place for {joint.friction_velocity:g}; "
            f"mech.with_parameters({{'{name}.friction_velocity': {usual:g}}}) takes the usual one; JSON keeps yours"
        )
    limits = joint.limits or Limits()
    for key, pair in (("velocity", limits.velocity), ("torque", limits.torque)):
        if pair is not None and (pair[0] != -pair[1] or pair[1] == 0.0):
            raise InvalidValue(f"joint {name!r}: {key} limits: a URDF has symmetric ones only, got {pair}")


def _link(link: Link) -> list[str]:
    inner = _inertial(link) if link.mass or link.inertia.any() else []
    inner += [line for shape in link.shapes if shape.kind in _SHAPES for line in _visual(shape)]
    if not inner:
        return [f"  <link name={quoteattr(link.name)}/>"]
    return [f"  <link name={quoteattr(link.name)}>", *inner, "  </link>"]


def _inertial(link: Link) -> list[str]:
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    entries = link.inertia[np.triu_indices(3)].tolist()
    return [
        "    <inertial>",
        f'      <origin xyz="{numbers_of(link.com)}" rpy="0 0 0"/>',
        f'      <mass value="{link.mass!r}"/>',
        "      <inertia " + " ".join(f'{key}="{value!r}"' for key, value in zip(keys, entries, strict=True)) + "/>",
        "    </inertial>",
    ]


def _visual(shape: Shape) -> list[str]:
    size = f'size="{numbers_of(shape.size)}"' if shape.kind == "box" else f'radius="{float(shape.size[0])!r}"'
    if shape.kind == "cylinder":
        size += f' length="{float(shape.size[1])!r}"'
    colour = [] if shape.colour is None else [
        f'      <material name=""> <color rgba="{numbers_of(shape.colour)} 1.0"/> </material>'
    ]  # fmt: skip
    return ["    <visual>", _origin(shape.pose), f"      <geometry> <{shape.kind} {size}/> </geometry>", *colour,
            "    </visual>"]  # fmt: skip


def _joint(link: Link, parent: str, links: set[str], joints: set[str], follows: Coupling | None) -> list[str]:
    """Return the joint of a link, with a carrier between where the joint's frame is not that of the link.

    `links` and `joints` are the names that are taken in the file, `follows` is what the joint follows.
    """
    kind, frame, inner = _told(link.joint)
    if follows is not None:
        led = f'joint={quoteattr(follows.other)} multiplier="{follows.ratio!r}" offset="{follows.offset!r}"'
        inner.append(f"    <mimic {led}/>")
    if frame is None:
        return _connection(link.joint_name, kind, parent, link.name, link.pose, inner)
    back = np.eye(4)
    back[:3, :3], back[:3, 3] = frame[:3, :3].T, -frame[:3, :3].T @ frame[:3, 3]
    carrier = fresh_name(f"{link.name}_axis", links)
    weld = fresh_name(f"{link.name}_frame", joints)
    return [
        f"  <link name={quoteattr(carrier)}/>",
        *_connection(link.joint_name, kind, parent, carrier, link.pose @ frame, inner),
        *_connection(weld, "fixed", carrier, link.name, back, []),
    ]


def _told(joint: Joint) -> tuple[str, Array | None, list[str]]:
    """Return the type of a joint in a URDF, the joint's frame in the link's unless they are one, and what is inside."""
    kind, axis, axes = cast("tuple[str, Array | None, Array]", joint.in_urdf)
    if not joint.dof:
        return kind, None, []
    frame = np.eye(4)
    frame[:3, :3], frame[:3, 3] = axes, joint.start
    first, inner = joint.freedoms[0], [] if axis is None else [f'    <axis xyz="{numbers_of(axis)}"/>']
    if first.damping or first.friction:
        inner.append(f'    <dynamics damping="{first.damping!r}" friction="{first.friction!r}"/>')
    if joint.dof == 1:
        limits = first.limits or Limits()
        if kind == "revolute" and limits.position is None:
            kind = "continuous"
        if limits or kind != "continuous":
            inner.append(_limit(limits, kind))
    same = kind == "prismatic" or np.array_equal(frame, np.eye(4))
    return kind, None if same else frame, inner


def _connection(name: str, kind: str, parent: str, child: str, pose: Array, inner: Sequence[str]) -> list[str]:
    return [
        f'  <joint name={quoteattr(name)} type="{kind}">',
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        _origin(pose),
        *inner,
        "  </joint>",
    ]


def _origin(pose: Array) -> str:
    rpy = (0.0, 0.0, 0.0) if np.array_equal(pose[:3, :3], np.eye(3)) else roll_pitch_yaw(pose[:3, :3])
    return f'    <origin xyz="{numbers_of(pose[:3, 3])}" rpy="{numbers_of(rpy)}"/>'


def _limit(limits: Limits, kind: str) -> str:
    words = []
    if kind != "continuous":
        low, high = limits.position or (-math.inf, math.inf)
        words += [f'lower="{max(low, -NO_LIMIT)!r}"', f'upper="{min(high, NO_LIMIT)!r}"']
    for key, pair in (("effort", limits.torque), ("velocity", limits.velocity)):
        words.append(f'{key}="{NO_LIMIT if pair is None else pair[1]!r}"')
    return f"    <limit {' '.join(words)}/>"


def _say_what_is_left_out(mech: Mechanism) -> None:
    """Say what a reader of the file has to be told again."""
    lost = []
    if tuple(mech.gravity.tolist()) != GRAVITY:
        lost.append(f"gravity=({', '.join(f'{g:g}' for g in mech.gravity)})")
    if any(isinstance(loop, Coupling) for loop in mech.loops):
        lost.append("mimic='hold'")
    if mech.actuated != driven(mech):
        lost.append(f"actuated={list(mech.actuated)}")
    if mech.active:
        lost.append(f"active={list(mech.active)}")
    if lost:
        notice(
            f"a URDF has no place for {' and '.join(lost)}; say it again: Mechanism.from_urdf(path, {', '.join(lost)})"
        )
    others = sorted({shape.kind for link in mech.links for shape in link.shapes} - {*_SHAPES})
    if others:
        notice(f"a URDF draws no shapes of the kind {' and '.join(others)}; they are left out")
