"""Ready planar mechanisms: they move in the x-y plane about z, under gravity along -y.

The frame of each link lies in its joint, the link extends along its own +x, and its centre of mass lies on it. q1 is
measured from the horizontal, so that -pi/2 hangs and +pi/2 is upright; the other angles are relative to the parent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.errors import NonFinite
from cstormpy.linkage.joints import Limits, Revolute
from cstormpy.linkage.links import Link
from cstormpy.mechanism.mechanism import Mechanism

# (lengths, centres of mass from the joint, masses, inertias about the centres of mass, damping, gravity)
_ACROBOTS = {
    "teaching": ((1.0, 2.0), (0.5, 1.0), (1.0, 1.0), (0.083, 0.33), 0.1, 9.81),
    "spong": ((1.0, 2.0), (0.5, 1.0), (1.0, 1.0), (0.083, 0.33), 0.0, 9.8),
    "gym": ((1.0, 1.0), (0.5, 0.5), (1.0, 1.0), (1.0, 1.0), 0.0, 9.8),
    "rods": ((1.0, 1.0), (0.5, 0.5), (1.0, 1.0), (1.0 / 12.0, 1.0 / 12.0), 0.0, 9.81),
}


def pendulum(n: int = 1, *, length: float = 1.0, mass: float = 1.0, damping: float = 0.0) -> Mechanism:
    """Return a pendulum of n equal uniform rods.

    Parameters
    ----------
    n : int
        Number of rods.
    length, mass, damping : float
        Of each rod [m, kg] and each joint [N m s/rad].

    Examples
    --------
    >>> pendulum(2).names
    ('joint1', 'joint2')
    """
    count = checks.count(n, "n")
    size = checks.positive(length, "length")
    links = []
    for k in range(count):
        parent, start = (f"link{k}", size) if k else (None, 0.0)
        links.append(uniform_rod(f"link{k + 1}", parent, f"joint{k + 1}", start, size, mass, damping))
    return Mechanism(links)


def planar_2r(
    *,
    lengths: Sequence[float] = (0.5, 0.5),
    masses: Sequence[float] = (1.25, 1.25),
    damping: float = 0.0,
) -> Mechanism:
    """Return a planar arm of two uniform rods with a motor in both joints, as in section 5.1 of Sohl and Bobrow.

    The paper gives no numbers; with these its costs of 73.57 before and 9.9 after optimisation are met.

    Parameters
    ----------
    lengths, masses : array_like, (2,)
        Of the rods [m, kg].
    damping : float
        Of both joints [N m s/rad].

    Examples
    --------
    >>> planar_2r().names
    ('shoulder', 'elbow')
    """
    l1, l2 = checks.array(lengths, (2,), "lengths").tolist()
    m1, m2 = checks.array(masses, (2,), "masses").tolist()
    upper = uniform_rod("upper_arm", None, "shoulder", 0.0, l1, m1, damping)
    return Mechanism([upper, uniform_rod("forearm", "upper_arm", "elbow", l1, l2, m2, damping)])


def acrobot(parameters: str = "teaching") -> Mechanism:
    """Return the acrobot: two links, a motor in the elbow only, nothing active.

    Parameters
    ----------
    parameters : {"teaching", "spong", "gym", "rods"}
        "teaching": lengths 1 and 2 m, masses 1 kg, inertias 0.083 and 0.33 kg m^2, damping 0.1 in both joints.
        "spong": the same without damping, g = 9.8. "gym": lengths 1 m, masses 1 kg, inertias 1 kg m^2 and g = 9.8.
        "rods": uniform rods of 1 m and 1 kg, g = 9.81, without damping.

    Raises
    ------
    UnknownName
        If there is no such parameter set.

    Notes
    -----
    "spong" is the model of M. W. Spong, "The swing up control problem for the acrobot", IEEE Control Systems 15(1),
    1995; "gym" has the numbers of the Acrobot environment of Gymnasium.

    Examples
    --------
    >>> acrobot().actuated, acrobot().active
    (('elbow',), ())
    """
    given = _ACROBOTS[option(parameters, "acrobot parameter set", _ACROBOTS)]
    lengths, coms, masses, inertias, damping, g = given
    links = two_rods(lengths[0], coms, masses, inertias, damping=damping)
    return Mechanism(links, gravity=(0.0, -g, 0.0), actuated=["elbow"])


def branched_acrobot(*, length: float = 1.0, mass: float = 1.0, damping: float = 0.0) -> Mechanism:
    """Return the branched acrobot of Sohl and Bobrow, Fig. 7: a body on a passive joint, and two legs at its far end.

    Uniform rods; both hips have a motor, nothing is active. At q2 = q3 = 0 both legs continue the body.

    Parameters
    ----------
    length, mass, damping : float
        Of each rod [m, kg] and each joint [N m s/rad].

    Examples
    --------
    >>> branched_acrobot().actuated
    ('left_hip', 'right_hip')
    """
    size = checks.positive(length, "length")
    body = uniform_rod("body", None, "base", 0.0, size, mass, damping)
    legs = [uniform_rod(f"{side}_leg", "body", f"{side}_hip", size, size, mass, damping) for side in ("left", "right")]
    return Mechanism([body, *legs], actuated=["left_hip", "right_hip"])


def xiang_two_link() -> Mechanism:
    """Return the two-link manipulator of Xiang, Arora and Abdel-Malek (2008), Table 1.

    Lengths 0.4 m, masses 0.5 kg, inertias 0.1 kg m^2 about the centres of mass, which lie in the middle; torques within
    10 N m; g = 9.8062. The paper's link frames lie at the far ends, ours in the joints.

    Examples
    --------
    >>> xiang_two_link().joint("elbow").limits
    Limits(torque=(-10, 10))
    """
    links = two_rods(0.4, (0.2, 0.2), (0.5, 0.5), (0.1, 0.1), limits=Limits(torque=10.0))
    return Mechanism(links, gravity=(0.0, -9.8062, 0.0))


def rod_inertia(length: float, mass: float) -> float:
    """Return the inertia of a uniform rod about its middle."""
    length = checks.positive(length, "length")
    inertia = checks.nonnegative(mass, "mass") * length * length / 12.0
    if not math.isfinite(inertia):
        raise NonFinite(f"length: a rod of {length:g} m and {mass:g} kg has an inertia that is too large for a float")
    return inertia


def _rod(name: str, parent: str | None, joint: Revolute, start: float, mass: float, com: float, inertia: float) -> Link:
    """Return a link along +x that starts at `start` on its parent; a thin body has no inertia about its own axis."""
    return Link(name, parent, joint, _shift_x(start), mass, (com, 0.0, 0.0), np.diag([0.0, inertia, inertia]))


def uniform_rod(
    name: str, parent: str | None, joint: str, start: float, length: float, mass: float, damping: float
) -> Link:
    """Return a uniform rod along +x on a joint about z."""
    hinge = Revolute((0, 0, 1), damping=damping, name=joint)
    return _rod(name, parent, hinge, start, mass, length / 2, rod_inertia(length, mass))


def two_rods(
    length: float, coms: Sequence[float], masses: Sequence[float], inertias: Sequence[float], **joint: Any
) -> list[Link]:
    """Return upper arm, of this length, and forearm by their numbers; further arguments are of both joints."""
    shoulder, elbow = (Revolute((0, 0, 1), name=name, **joint) for name in ("shoulder", "elbow"))
    upper = _rod("upper_arm", None, shoulder, 0.0, masses[0], coms[0], inertias[0])
    return [upper, _rod("forearm", "upper_arm", elbow, length, masses[1], coms[1], inertias[1])]


def _shift_x(distance: float) -> Array:
    pose = np.eye(4)
    pose[0, 3] = distance
    return pose
