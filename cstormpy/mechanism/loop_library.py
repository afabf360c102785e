"""Ready planar mechanisms with closed loops: four-bar, five-bar, slider-crank, a 3-RRR platform, arms with a bar.

They move in the x-y plane about z, under gravity along -y, and are made of uniform rods along their own +x, as those of
`planar`. Coordinates are those of the open chain; `project` finds closed postures.

Ready platform in space: a Stewart platform, six legs of universal, prismatic and ball joint (6-UPS).

Gravity points along -z. Coordinates are those of the open chain: of the platform as a free body, then of the legs;
`project` finds closed postures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.linkage.joints import Free, Prismatic, Revolute, Universal
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.planar import rod_inertia, uniform_rod


def four_bar(
    *,
    ground: float = 0.9,
    lengths: Sequence[float] = (0.3, 0.8, 0.5),
    masses: Sequence[float] = (0.3, 0.8, 0.5),
    damping: float = 0.0,
) -> Mechanism:
    """Return a four-bar linkage: crank and coupler on one side, a rocker on the other, a motor in the crank.

    By its lengths a crank-rocker, whose crank turns all the way round.

    Parameters
    ----------
    ground : float
        Distance of the two pivots on the base, along x [m].
    lengths, masses : array_like, (3,)
        Of crank, coupler and rocker [m, kg].
    damping : float
        Of the three joints [N m s/rad].

    Examples
    --------
    >>> mech = four_bar()
    >>> q, qd = mech.project([1.0, 0.0, 1.5], hold=["crank"])
    >>> q.round(4)
    array([ 1.    , -0.6861,  1.5248])
    """
    crank, coupler, rocker = checks.array(lengths, (3,), "lengths").tolist()
    m, apart = checks.array(masses, (3,), "masses").tolist(), checks.positive(ground, "ground")
    links = [
        uniform_rod("crank_rod", None, "crank", 0.0, crank, m[0], damping),
        uniform_rod("coupler_rod", "crank_rod", "coupler", crank, coupler, m[1], damping),
        uniform_rod("rocker_rod", None, "rocker", apart, rocker, m[2], damping),
    ]
    pin = Loop("rocker_rod", "coupler_rod", (rocker, 0, 0), (coupler, 0, 0), "pin", name="pin")
    return Mechanism(links, actuated=["crank"], loops=[pin])


def five_bar(
    *,
    ground: float = 0.6,
    lengths: Sequence[float] = (0.4, 0.6, 0.4, 0.6),
    masses: Sequence[float] = (0.4, 0.6, 0.4, 0.6),
    damping: float = 0.0,
) -> Mechanism:
    """Return a five-bar linkage, of mobility 2: two arms of two rods whose ends are pinned, a motor in each shoulder.

    Parameters
    ----------
    ground : float
        Distance of the two shoulders, along x [m].
    lengths, masses : array_like, (4,)
        Of left upper, left fore, right upper and right forearm [m, kg].
    damping : float
        Of the four joints [N m s/rad].

    Examples
    --------
    >>> mech = five_bar()
    >>> q, qd = mech.project([2.0, -1.0, 1.1, 1.0])
    >>> mech.mobility(q).freedoms
    2
    """
    a, b, c, d = checks.array(lengths, (4,), "lengths").tolist()
    m = checks.array(masses, (4,), "masses").tolist()
    links = [
        uniform_rod("left_upper", None, "left_shoulder", 0.0, a, m[0], damping),
        uniform_rod("left_fore", "left_upper", "left_elbow", a, b, m[1], damping),
        uniform_rod("right_upper", None, "right_shoulder", checks.positive(ground, "ground"), c, m[2], damping),
        uniform_rod("right_fore", "right_upper", "right_elbow", c, d, m[3], damping),
    ]
    pin = Loop("right_fore", "left_fore", (d, 0, 0), (b, 0, 0), "pin", name="pin")
    return Mechanism(links, actuated=["left_shoulder", "right_shoulder"], loops=[pin])


def slider_crank(
    *, crank: float = 0.3, rod_length: float = 0.8, masses: Sequence[float] = (0.3, 0.8, 1.0), damping: float = 0.0
) -> Mechanism:
    """Return a slider-crank: a crank about the origin, a connecting rod, and a slider along x; a motor in the crank.

    Parameters
    ----------
    crank, rod_length : float
        Lengths of crank and connecting rod [m].
    masses : array_like, (3,)
        Of crank, connecting rod and slider [kg].
    damping : float
        Of all joints [N m s/rad, N s/m].

    Examples
    --------
    >>> mech = slider_crank()
    >>> q, qd = mech.project([0.0, 0.0, 1.0], hold=["crank"])
    >>> q.round(4) + 0
    array([0. , 0. , 1.1])
    """
    m = checks.array(masses, (3,), "masses").tolist()
    r, length = checks.positive(crank, "crank"), checks.positive(rod_length, "rod_length")
    slider = Prismatic((1, 0, 0), damping=damping, name="slider")
    links = [
        uniform_rod("crank_rod", None, "crank", 0.0, r, m[0], damping),
        uniform_rod("connecting_rod", "crank_rod", "crank_pin", r, length, m[1], damping),
        Link("slider_block", None, slider, mass=m[2]),
    ]
    pin = Loop("slider_block", "connecting_rod", None, (length, 0, 0), "pin", name="wrist_pin")
    return Mechanism(links, actuated=["crank"], loops=[pin])


def three_rrr(
    *,
    base: float = 0.5,
    lengths: Sequence[float] = (0.35, 0.35),
    platform: float = 0.15,
    masses: Sequence[float] = (0.35, 0.35, 1.0),
    damping: float = 0.0,
) -> Mechanism:
    """Return a planar 3-RRR platform, of mobility 3: a disc on three arms of two rods, a motor in each shoulder.

    The shoulders stand at the corners of an equilateral triangle about the origin. The coordinates are those of the
    first arm, with its wrist in the disc, then those of the others, which are pinned to the disc.

    Parameters
    ----------
    base : float
        Distance of the shoulders from the origin [m].
    lengths : array_like, (2,)
        Of upper arms and forearms [m].
    platform : float
        Distance of the wrists from the centre of the disc [m].
    masses : array_like, (3,)
        Of an upper arm, a forearm and the disc [kg].
    damping : float
        Of each joint [N m s/rad].

    Examples
    --------
    >>> mech = three_rrr()
    >>> q, qd = mech.project([-0.8, 1.6, -0.8, 1.3, 1.6, 3.4, 1.6])
    >>> mech.mobility(q)
    Mobility(freedoms=3, rank=4, constraints=4, dependent=())
    """
    a, b = checks.array(lengths, (2,), "lengths").tolist()
    m = checks.array(masses, (3,), "masses").tolist()
    R, r = checks.positive(base, "base"), checks.positive(platform, "platform")
    links, loops, motors = [], [], []
    for k, angle in enumerate(np.pi + 2.0 * np.pi / 3.0 * np.arange(3), 1):
        pose = np.eye(4)
        pose[:2, 3] = R * np.cos(angle), R * np.sin(angle)
        upper = uniform_rod(f"upper{k}", None, f"shoulder{k}", 0.0, a, m[0], damping)
        links += [
            upper.replace(pose=pose),
            uniform_rod(f"fore{k}", f"upper{k}", f"elbow{k}", a, b, m[1], damping),
        ]
        motors.append(f"shoulder{k}")
        if k == 1:
            wrist = Revolute((0, 0, 1), damping=damping, name="wrist")
            disc, at = np.diag([0.25, 0.25, 0.5]) * m[2] * r * r, np.eye(4)
            at[0, 3] = b
            links.append(Link("platform", "fore1", wrist, at, m[2], (r, 0.0, 0.0), disc))
        else:
            corner = (r + r * np.cos(angle), r * np.sin(angle), 0.0)
            loops.append(Loop("platform", f"fore{k}", corner, (b, 0, 0), "pin", name=f"pin{k}"))
    return Mechanism(links, actuated=motors, loops=loops)


def two_arms(
    *,
    apart: float = 1.0,
    lengths: Sequence[float] = (0.5, 0.5),
    bar: float = 0.6,
    masses: Sequence[float] = (0.5, 0.5, 1.0),
    damping: float = 0.0,
) -> Mechanism:
    """Return two planar arms that hold a bar at its ends, of mobility 3 with four motors: redundant.

    Parameters
    ----------
    apart : float
        Distance of the shoulders, along x [m].
    lengths : array_like, (2,)
        Of upper arms and forearms [m].
    bar : float
        Length of the bar [m].
    masses : array_like, (3,)
        Of an upper arm, a forearm and the bar [kg].
    damping : float
        Of each joint [N m s/rad].

    Examples
    --------
    >>> mech = two_arms()
    >>> q, qd = mech.project([2.0, -1.0, -1.0, 1.1, 1.0])
    >>> mech.mobility(q).freedoms, len(mech.actuated)
    (3, 4)
    """
    a, b = checks.array(lengths, (2,), "lengths").tolist()
    m = checks.array(masses, (3,), "masses").tolist()
    c = checks.positive(bar, "bar")
    links, motors = [], []
    for side, start in (("left", 0.0), ("right", checks.positive(apart, "apart"))):
        links += [
            uniform_rod(f"{side}_upper", None, f"{side}_shoulder", start, a, m[0], damping),
            uniform_rod(f"{side}_fore", f"{side}_upper", f"{side}_elbow", a, b, m[1], damping),
        ]
        motors += [f"{side}_shoulder", f"{side}_elbow"]
        if side == "left":
            links.append(uniform_rod("bar", "left_fore", "hand", b, c, m[2], damping))
    pin = Loop("bar", "right_fore", (c, 0, 0), (b, 0, 0), "pin", name="pin")
    return Mechanism(links, actuated=motors, loops=[pin])


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


def _on_circle(radius: float, angle: float) -> Array:
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])


def _along(foot: Array, ball: Array) -> Array:
    """Return the pose at a foot whose x axis points to a ball, its y axis level."""
    pose = np.eye(4)
    x = (ball - foot) / np.linalg.norm(ball - foot)
    y = np.cross((0.0, 0.0, 1.0), x)
    y /= np.linalg.norm(y)
    pose[:3, :3], pose[:3, 3] = np.column_stack([x, y, np.cross(x, y)]), foot
    return pose


def _rod(length: float, mass: float) -> tuple[float, tuple[float, float, float], Array]:
    """Return mass, centre of mass and inertia of a uniform rod along +x."""
    across = rod_inertia(length, mass)
    return mass, (length / 2, 0.0, 0.0), np.diag([0.0, across, across])
