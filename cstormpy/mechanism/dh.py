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
from cstormpy.errors import CstormError, ShapeError, unknown_name
from cstormpy.linkage.joints import JOINT_TYPES, Joint
from cstormpy.linkage.links import Link
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
            if key not in _KEYS:
                raise unknown_name(f"{where}: key", key, _KEYS)
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
