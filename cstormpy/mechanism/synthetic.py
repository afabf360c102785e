"""Chains and trees of any size with varied links, for tests and measurements; the same numbers every time."""

from __future__ import annotations

import math

import numpy as np

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.joints import Revolute
from cstormpy.linkage.links import Link
from cstormpy.mechanism.mechanism import Mechanism

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
