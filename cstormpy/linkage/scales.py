"""Sizes of a mechanism, by which numbers of different units are compared, whatever these units are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstormpy.arrays import Array
from cstormpy.linkage.loops import Loop
from cstormpy.values import frozen

if TYPE_CHECKING:
    from cstormpy.linkage.linkage import Linkage


def length_of(mech: Linkage) -> float:
    """Return the largest distance that a link or a loop has in it, or 1 m where there is none."""
    if "length" not in mech.memo:
        mech.memo["length"] = _largest_distance(mech) or 1.0
    return float(mech.memo["length"])


def _largest_distance(mech: Linkage) -> float:
    places = [link.com for link in mech.links]
    places += [link.pose[:3, 3] for link in mech.links if link.parent is not None]
    for loop in mech.loops:
        if isinstance(loop, Loop):
            places += [loop.pose_a[:3, 3], loop.pose_b[:3, 3]]
    gyrations = [np.sqrt(max(np.trace(link.inertia), 0.0) / link.mass) for link in mech.links if link.mass > 0.0]
    return float(np.max([*np.linalg.norm(places, axis=1), *gyrations], initial=0.0))


def falling_of(mech: Linkage) -> float:
    """Return an ordinary acceleration of a joint that turns [rad/s²]: that of falling, or 1 without gravity."""
    return float(np.linalg.norm(mech.gravity)) / length_of(mech) or 1.0


def work_of(mech: Linkage) -> float:
    """Return an ordinary size of its potential energy: of all masses lifted by its length, and of its springs."""
    if "work" not in mech.memo:
        units = coordinate_scales(mech)
        springs = [float(joint.stiffness) * unit**2 for joint, unit in zip(mech.freedoms, units, strict=True)]
        lifted = sum(link.mass for link in mech.links) * float(np.linalg.norm(mech.gravity)) * length_of(mech)
        mech.memo["work"] = lifted + sum(springs)
    return float(mech.memo["work"])


def coordinate_scales(mech: Linkage) -> Array:
    """Return an ordinary size of each coordinate, (n,): a radian, or the mechanism's length where it slides.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> coordinate_scales(library.cart_pole())
    array([0.5, 1. ])
    """
    if "coordinate scales" not in mech.memo:
        length = length_of(mech)
        mech.memo["coordinate scales"] = frozen(np.array([1.0 if joint.turns else length for joint in mech.freedoms]))
    return np.asarray(mech.memo["coordinate scales"])
