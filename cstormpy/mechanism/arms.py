"""Ready robot arms in space, whose base's z axis points up, and chains and trees of any size with varied links."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.linkage.joints import Limits, Revolute
from cstormpy.linkage.links import Link
from cstormpy.mechanism.mechanism import Mechanism

_UP = (0.0, 0.0, -9.81)
"""Gravity where z points up."""

# Standard Denavit-Hartenberg parameters: the sine of the twist (always 0 or +-90 degrees), a and d [m].
_PUMA_DH = ((1, 0.0, 0.0), (0, 0.4318, 0.0), (-1, 0.0203, 0.15005), (1, 0.0, 0.4318), (-1, 0.0, 0.0), (0, 0.0, 0.0))
_PUMA_MASS = (0.0, 17.4, 4.8, 0.82, 0.34, 0.09)
_PUMA_COM = (
    (0.0, 0.0, 0.0),
    (-0.3638, 0.006, 0.2275),
    (-0.0203, -0.0141, 0.070),
    (0.0, 0.019, 0.0),
    (0.0, 0.0, 0.0),
    (0.0, 0.0, 0.032),
)
_PUMA_INERTIA = (
    (0.0, 0.35, 0.0),
    (0.13, 0.524, 0.539),
    (0.066, 0.086, 0.0125),
    (1.8e-3, 1.3e-3, 1.8e-3),
    (0.3e-3, 0.4e-3, 0.3e-3),
    (0.15e-3, 0.15e-3, 0.04e-3),
)
_PUMA_IMPOSSIBLE = (0, 2)
_PUMA_ROTOR = (200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6)
_PUMA_GEAR = (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686)
_PUMA_VISCOUS = (1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6)
_PUMA_COULOMB = (
    (0.395, 0.435),
    (0.126, 0.071),
    (0.132, 0.105),
    (11.2e-3, 16.9e-3),
    (9.26e-3, 14.5e-3),
    (3.96e-3, 10.5e-3),
)
_PUMA_RANGE = ((-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266))


def puma560(*, friction: bool = False) -> Mechanism:
    """Return the Unimation Puma 560 with the inertial parameters of Armstrong, Khatib and Burdick.

    Standard Denavit-Hartenberg frames, each at the far end of its link; at q = 0 the upper arm is horizontal and the
    forearm points up. Armature is the rotors' inertia times the gear ratio squared.

    Parameters
    ----------
    friction : bool
        With the published viscous and Coulomb friction, the latter as the mean of both directions.

    Notes
    -----
    Armstrong found no mass for link 1 and only its inertia about joint 1, and measured an inertia of link 3 that
    breaks the triangle inequality (0.086 > 0.066 + 0.0125): both are kept as published (`Link.allow_impossible`).

    References
    ----------
    B. Armstrong, O. Khatib, J. Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560 arm",
    Proc. IEEE Int. Conf. Robotics and Automation, 1986, pp. 510-518.
    P. Corke, B. Armstrong-Helouvry, "A search for consensus among model parameters reported for the PUMA 560 robot",
    Proc. IEEE Int. Conf. Robotics and Automation, 1994, pp. 1608-1613; in Corke's Robotics Toolbox, whose standard
    frames, friction and joint ranges (Wang and Chen, IEEE Trans. Robotics and Automation 7(4), 1991) these are.

    Examples
    --------
    >>> puma = puma560()
    >>> puma.link("link2").mass, round(puma.joint("joint2").armature, 4)
    (17.4, 2.3248)
    """
    if not isinstance(friction, bool):
        raise InvalidType(f"friction: expected True or False, got {shown(friction)}")
    links = []
    for k, (sin_twist, a, d) in enumerate(_PUMA_DH):
        gear = abs(_PUMA_GEAR[k])
        cos_twist = 1 - abs(sin_twist)
        joint = Revolute(
            (0, sin_twist, cos_twist),  # the axis is z of the frame before, seen from the frame at the far end
            point=(-a, 0.0, 0.0),
            armature=_PUMA_ROTOR[k] * gear**2,
            damping=_PUMA_VISCOUS[k] * gear**2 if friction else 0.0,
            friction=0.5 * sum(_PUMA_COULOMB[k]) * gear if friction else 0.0,
            limits=(math.radians(_PUMA_RANGE[k][0]), math.radians(_PUMA_RANGE[k][1])),
            name=f"joint{k + 1}",
        )
        pose = _pose([[1, 0, 0], [0, cos_twist, -sin_twist], [0, sin_twist, cos_twist]], (a, 0.0, d))
        parent = f"link{k}" if k else None
        inertia, kept = np.diag(_PUMA_INERTIA[k]), k in _PUMA_IMPOSSIBLE
        link = Link(f"link{k + 1}", parent, joint, pose, _PUMA_MASS[k], _PUMA_COM[k], inertia, allow_impossible=kept)
        links.append(link)
    return Mechanism(links, gravity=_UP)


# Distance from each joint to the next (the last to the flange) [m], mass [kg], range [rad], torque [N m].
_ARM7 = (
    (0.18, 4.0, 2.96, 320.0),
    (0.20, 4.0, 2.09, 320.0),
    (0.20, 3.0, 2.96, 176.0),
    (0.20, 2.7, 2.09, 176.0),
    (0.20, 1.7, 2.96, 110.0),
    (0.12, 1.8, 2.09, 40.0),
    (0.08, 0.5, 3.05, 40.0),
)
_ARM7_BASE = 0.16
_ARM7_RADIUS = 0.06


def arm7() -> Mechanism:
    """Return a generic arm of seven joints, of the size and weight of a lightweight robot.

    The axes alternate between z and y; at q = 0 the arm points straight up. The frame of each link lies in its joint;
    the links are solid cylinders along z whose centres lie a little beside the axis, as motors put them. Neither
    armature nor damping, so that other libraries can compute the same.

    Examples
    --------
    >>> arm7().n
    7
    """
    links = []
    start = _ARM7_BASE
    for k, (length, mass, reach, torque) in enumerate(_ARM7):
        joint = Revolute(
            (0, 0, 1) if k % 2 == 0 else (0, 1, 0),
            limits=Limits(position=(-reach, reach), velocity=2.0, torque=torque),
            name=f"joint{k + 1}",
        )
        across = mass * (3.0 * _ARM7_RADIUS**2 + length**2) / 12.0
        along = mass * _ARM7_RADIUS**2 / 2.0
        com = (0.01, 0.02 if k % 2 == 0 else -0.02, length / 2.0)
        parent = f"link{k}" if k else None
        pose = _pose(np.eye(3), (0.0, 0.0, start))
        links.append(Link(f"link{k + 1}", parent, joint, pose, mass, com, np.diag([across, across, along])))
        start = length
    return Mechanism(links, gravity=_UP)


def _pose(rotation: ArrayLike, position: ArrayLike) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = position
    return pose


MAX_LINKS = 100_000
"""Largest mechanism that is made here: the depth of a tree is easily mistyped."""


def chain(n: int = 6) -> Mechanism:
    """Return a serial chain of n revolute joints whose axes point in varied directions in space.

    Parameters
    ----------
    n : int
        Number of joints.

    Examples
    --------
    >>> chain(100).n
    100
    """
    count = checks.count(n, "n", MAX_LINKS)
    return Mechanism([_varied_link(k, k - 1) for k in range(count)])


def tree(depth: int = 3, branching: int = 2, links: int | None = None) -> Mechanism:
    """Return a tree of revolute joints in which each link carries `branching` others, numbered level by level.

    Parameters
    ----------
    depth : int
        Number of levels; the root is the first.
    branching : int
        Children of each link.
    links : int, optional
        Keep only the first so many links, level by level.

    Examples
    --------
    >>> tree(3).parents.tolist()
    [-1, 0, 0, 1, 1, 2, 2]
    >>> tree(6, links=36).n
    36
    """
    levels = checks.count(depth, "depth", MAX_LINKS)
    children = checks.count(branching, "branching", MAX_LINKS)
    whole, level = 0, 1
    for _ in range(levels):
        whole, level = whole + level, level * children
        if whole > MAX_LINKS:
            break
    count = whole if links is None else checks.count(links, "links", MAX_LINKS)
    if count > min(whole, MAX_LINKS):
        have = f"has {whole} links" if whole <= MAX_LINKS else f"would have more than {MAX_LINKS} links"
        raise InvalidValue(f"tree of depth {depth} and branching {branching}: {have}; change depth or links")
    return Mechanism([_varied_link(k, (k - 1) // children) for k in range(count)])


def _varied_link(k: int, parent: int) -> Link:
    """Return link k: a box of its own shape and orientation, off its joint, with an axis of its own."""
    height = math.cos(1.0 + 1.7 * k)
    across = math.sqrt(1.0 - height**2)
    turn = 2.4 * k  # the golden angle: no two axes are parallel
    mass = 1.0 + 0.3 * math.cos(1.1 * k)
    pose = np.eye(4)
    pose[:3, :3] = _rotation(0.5 * math.sin(0.9 * k + 0.3), 0.4 * math.cos(1.3 * k))
    if parent >= 0:
        pose[:3, 3] = (0.2, 0.05 * math.sin(0.8 * k), 0.05 * math.cos(0.6 * k))
    a, b, c = 0.2, 0.06 + 0.02 * math.sin(k), 0.05 + 0.01 * math.cos(2.0 * k)
    box = mass / 12.0 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    R = _rotation(0.3 * math.cos(k), 0.2 * math.sin(1.9 * k))
    return Link(
        f"link{k + 1}",
        f"link{parent + 1}" if parent >= 0 else None,
        Revolute((across * math.cos(turn), across * math.sin(turn), height), name=f"joint{k + 1}"),
        pose,
        mass,
        (0.1, 0.02 * math.cos(0.7 * k), 0.02 * math.sin(1.5 * k)),
        R @ box @ R.T,
    )


def _rotation(about_z: float, about_y: float) -> Array:
    cz, sz, cy, sy = math.cos(about_z), math.sin(about_z), math.cos(about_y), math.sin(about_y)
    return np.array([[cz * cy, -sz, cz * sy], [sz * cy, cz, sz * sy], [-sy, 0.0, cy]])
