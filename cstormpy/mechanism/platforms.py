"""Ready platform in space: a Stewart platform, six legs of universal, prismatic and ball joint (6-UPS).

Gravity points along -z. Coordinates are those of the open chain: of the platform as a free body, then of the legs;
`project` finds closed postures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstormpy import checks
from cstormpy.linkage.joints import Free, Prismatic, Universal
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.planar import rod_inertia

_LEGS = tuple((2.0 * np.pi / 3.0 * k, side) for k in range(3) for side in (-1.0, 1.0))


def stewart_platform(
    *,
    radii: Sequence[float] = (0.6, 0.4),
    spreads: Sequence[float] = (0.2, 0.2),
    height: float = 0.8,
    lengths: Sequence[float] = (0.5, 0.5),
    masses: Sequence[float] = (1.0, 0.5, 10.0),
    damping: float = 0.0,
) -> Mechanism:
    """Return a Stewart platform, of mobility 6: a disc on six legs that lengthen, a motor in each.

    The general platform of Stewart (1965) in the form that is built most, with pairs of joints on two circles: leg
    2 k + 1 or 2 k + 2 (k = 0, 1, 2) stands on the base at the angle 120° k - a or + a, and carries the disc at
    120° k - (60° - b) or + (60° - b) about its centre. At q = 0 the disc lies level at its height and the legs are
    closed, each along +x of its barrel; the coordinate "leg1" is how much longer than there the first leg is. Each leg
    is a barrel on a universal joint, whose axes stand across the leg, and a rod that slides in it; its ball in the disc
    is the loop "ball1".

    Parameters
    ----------
    radii : array_like, (2,)
        Of the circles of the joints on the base and on the disc [m].
    spreads : array_like, (2,)
        Half of the angles a and b between the joints of a pair, on the base and on the disc [rad].
    height : float
        Of the disc at q = 0 [m].
    lengths : array_like, (2,)
        Of a barrel and of a rod, which are uniform [m].
    masses : array_like, (3,)
        Of a barrel, a rod and the disc [kg].
    damping : float
        Of the sliding of each leg [N s/m].

    Examples
    --------
    >>> mech = stewart_platform()
    >>> q, qd = mech.project(np.zeros(24))
    >>> mech.mobility(q)
    Mobility(freedoms=6, rank=18, constraints=18, dependent=())

    Its inverse kinematics: the disc lifted by 0.1 m, the legs follow.

    >>> q[2] = 0.1
    >>> mech.project(q, hold=["platform"])[0][[mech.names.index(f"leg{k}") for k in (1, 6)]].round(4)
    array([0.0917, 0.0917])
    """
    R, r = checks.array(radii, (2,), "radii").tolist()
    a, b = checks.array(spreads, (2,), "spreads").tolist()
    barrel, rod = checks.array(lengths, (2,), "lengths").tolist()
    m = checks.array(masses, (3,), "masses").tolist()
    centre = np.array([0.0, 0.0, checks.positive(height, "height")])
    home = np.eye(4)
    home[:3, 3] = centre
    disc = np.diag([0.25, 0.25, 0.5]) * m[2] * r * r
    plate = Shape("cylinder", (r, 0.02))
    links, loops = [Link("platform", None, Free(), home, m[2], inertia=disc, shapes=[plate])], []
    for k, (pair, side) in enumerate(_LEGS, 1):
        foot, ball = _on_circle(R, pair + side * a), _on_circle(r, pair + side * (np.pi / 3.0 - b))
        length = float(np.linalg.norm(centre + ball - foot))
        sliding = np.eye(4)
        sliding[0, 3] = length - rod
        slide = Prismatic((1, 0, 0), damping=damping, name=f"leg{k}")
        links += [
            Link(f"barrel{k}", None, Universal(axes=np.eye(3)[1:]), _along(foot, centre + ball), *_rod(barrel, m[0])),
            Link(f"rod{k}", f"barrel{k}", slide, sliding, *_rod(rod, m[1])),
        ]
        loops.append(Loop("platform", f"rod{k}", ball, (rod, 0.0, 0.0), "position", name=f"ball{k}"))
    return Mechanism(links, gravity=(0.0, 0.0, -9.81), actuated=[f"leg{k}" for k in range(1, 7)], loops=loops)


def _on_circle(radius: float, angle: float) -> NDArray[np.float64]:
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])


def _along(foot: NDArray[np.float64], ball: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pose at a foot whose x axis points to a ball, its y axis level."""
    pose = np.eye(4)
    x = (ball - foot) / np.linalg.norm(ball - foot)
    y = np.cross((0.0, 0.0, 1.0), x)
    y /= np.linalg.norm(y)
    pose[:3, :3], pose[:3, 3] = np.column_stack([x, y, np.cross(x, y)]), foot
    return pose


def _rod(length: float, mass: float) -> tuple[float, tuple[float, float, float], NDArray[np.float64]]:
    """Return mass, centre of mass and inertia of a uniform rod along +x."""
    across = rod_inertia(length, mass)
    return mass, (length / 2, 0.0, 0.0), np.diag([0.0, across, across])
