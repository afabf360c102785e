"""Sizes of a mechanism, by which numbers of different units are compared, whatever these units are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstormpy.arrays import Array
from cstormpy.linkage.skeleton import skeleton
from cstormpy.values import frozen

if TYPE_CHECKING:
    from cstormpy.linkage.linkage import Linkage


def length_of(mech: Linkage) -> float:
    """Return how far the mechanism reaches, or 1 m where it has no extent."""
    if "length" not in mech.memo:
        mech.memo["length"] = skeleton(mech).reach
    return float(mech.memo["length"])


def falling_of(mech: Linkage) -> float:
    """Return an ordinary acceleration of a joint that turns [rad/s²]: that of falling, or 1 without gravity."""
    return float(np.linalg.norm(mech.gravity)) / length_of(mech) or 1.0


def mass_of(mech: Linkage) -> float:
    """Return the mass of all links, or 1 kg where none has any."""
    return sum(link.mass for link in mech.links) or 1.0


def inertial_scales(mech: Linkage) -> Array:
    """Return ordinary sizes of the ten inertial numbers of a link, of mass, first moments and inertia, (10,)."""
    return mass_of(mech) * length_of(mech) ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])


def torque_scales(mech: Linkage) -> Array:
    """Return an ordinary size of the torque of each coordinate, (n,): of what moves all its mass as falling does."""
    return np.asarray(mass_of(mech) * length_of(mech) ** 2 * falling_of(mech) / coordinate_scales(mech))


def work_of(mech: Linkage) -> float:
    """Return an ordinary size of its potential energy: of all masses lifted by its length, and of its springs."""
    if "work" not in mech.memo:
        units = coordinate_scales(mech)
        springs = [abs(float(joint.stiffness)) * unit**2 for joint, unit in zip(mech.freedoms, units, strict=True)]
        lifted = sum(link.mass for link in mech.links) * float(np.linalg.norm(mech.gravity)) * length_of(mech)
        mech.memo["work"] = lifted + sum(springs)
    return float(mech.memo["work"])


def coordinate_scales(mech: Linkage) -> Array:
    """Return an ordinary size of each coordinate, (n,): a radian, or the mechanism's length where it slides.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> coordinate_scales(library.cart_pole(length=2.0))
    array([2., 1.])
    """
    if "coordinate scales" not in mech.memo:
        length = length_of(mech)
        mech.memo["coordinate scales"] = frozen(np.array([1.0 if joint.turns else length for joint in mech.freedoms]))
    return np.asarray(mech.memo["coordinate scales"])
