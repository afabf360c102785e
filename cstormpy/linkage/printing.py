"""Mechanisms as text: the table that `print` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cstormpy.linkage.constraints import Constraint, Coupling
from cstormpy.reporting import aligned
from cstormpy.values import numbers_text

if TYPE_CHECKING:
    from cstormpy.linkage.linkage import Linkage
    from cstormpy.linkage.links import Link
    from cstormpy.linkage.loops import Loop

MAX_ROWS = 120
"""A longer table is shortened in the middle."""

_HEADER = ("q", "joint", "type", "drive", "axis", "link", "parent", "mass", "com", "more")
_RIGHT = ("q", "mass")


def table(mechanism: Linkage) -> str:
    """Return a table with a row per link: its joint, how it is driven, its parent and its mass.

    >>> from cstormpy.mechanism import library
    >>> print(table(library.acrobot()))
    Mechanism of 2 links, n = 2, gravity (0, -9.81, 0)
    q  joint     type      drive     axis       link       parent     mass  com          more
    0  shoulder  revolute  free      (0, 0, 1)  upper_arm  (base)        1  (0.5, 0, 0)  damping 0.1
    1  elbow     revolute  actuated  (0, 0, 1)  forearm    upper_arm     1  (1, 0, 0)    damping 0.1
    """
    rows = [_row(mechanism, link) for link in mechanism.links]
    columns = [k for k, name in enumerate(_HEADER) if name != "more" or any(row[k] for row in rows)]
    omitted = len(rows) - MAX_ROWS
    if omitted > 0:
        rows[MAX_ROWS // 2 : MAX_ROWS // 2 + omitted] = []
    shown = [[row[k] for k in columns] for row in (_HEADER, *rows)]
    lines = aligned(shown, [k for k, name in enumerate(shown[0]) if name not in _RIGHT])
    if omitted > 0:
        lines.insert(1 + MAX_ROWS // 2, f"… {omitted} more links …")
    count = f"{len(mechanism.links)} link{'s' if len(mechanism.links) > 1 else ''}"
    title = f"Mechanism of {count}, n = {mechanism.n}, gravity {numbers_text(mechanism.gravity)}"
    return "\n".join([title, *lines, *(_loop(loop) for loop in mechanism.loops)])


def _loop(loop: Loop | Constraint) -> str:
    if isinstance(loop, Coupling):
        shift = f" {'+' if loop.offset > 0.0 else '-'} {abs(loop.offset):.4g}" if loop.offset else ""
        return f"coupling {loop.name!r}: {loop.joint} = {loop.ratio:.4g} {loop.other}{shift}"
    if isinstance(loop, Constraint):
        return f"constraint {loop.name!r}: {'φ(q) = 0' if loop.kind == 'position' else 'A(q) q̇ = 0'}, by a function"
    ends = ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b))
    a, b = (f"{link or '(base)'} at {numbers_text(pose[:3, 3], 4)}" for link, pose in ends)
    return f"loop {loop.name!r}: {a} with {b}, closed in {', '.join(loop.labels)}"


def _row(mechanism: Linkage, link: Link) -> tuple[str, ...]:
    joint, name = link.joint, link.joint_name
    at = mechanism.coordinates(name)
    return (
        "-" if at.start == at.stop else f"{at.start}" if joint.dof == 1 else f"{at.start}-{at.stop - 1}",
        name,
        joint.kind,
        _drive(mechanism, at.start) if joint.dof else "-",
        numbers_text(joint.direction, 4) if joint.direction.any() else "-",
        link.name,
        "(base)" if link.parent is None else link.parent,
        f"{link.mass:.6g}",
        numbers_text(link.com, 4),
        ", ".join(joint.details()),
    )


def _drive(mechanism: Linkage, k: int) -> str:
    return "active" if mechanism.active_mask[k] else "actuated" if mechanism.actuated_mask[k] else "free"
