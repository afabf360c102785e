"""Ready planar mechanisms with closed loops: four-bar, five-bar, slider-crank, a 3-RRR platform, arms with a bar.

They move in the x-y plane about z, under gravity along -y, and are made of uniform rods along their own +x, as those of
`planar`. Coordinates are those of the open chain; `project` finds closed postures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cstormpy import checks
from cstormpy.linkage.joints import Prismatic, Revolute
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.planar import uniform_rod


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
