"""The branched acrobot: a body on a passive joint, and two legs whose motions are prescribed.

::

    motion --qdd--+--> plant --q,qd--+--> scope_q, view
                  |                  v
                  +------------> torques --+--> scope_tau
                                           +--> effort --> scope_effort

Both hips are active. With the motion that stands here the legs swing the body from rest to upright in 4 s; then they
are held, and the body falls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.mechanism import checks, library
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Control points [rad] of the legs' motion over 4 s, left and right: found by least squares, for the body upright at
#: the end.
SWING_UP = (
    (0.0, 0.0),
    (0.0, 0.0),
    (0.0, 0.0),
    (4.2, 1.19),
    (3.72, 1.64),
    (-0.33, -0.71),
    (-3.58, -2.35),
    (-2.34, -4.56),
    (2.11, -4.37),
    (3.64, -0.66),
    (3.63, 5.52),
    (0.0, 0.0),
    (0.0, 0.0),
    (0.0, 0.0),
)


@ready
def build(
    sim: Simulation,
    motion: BSpline | ArrayLike = SWING_UP,
    duration: float = 4.0,
    body: float = -math.pi / 2,
    damping: float = 0.0,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    motion : array_like, (m, 2), or BSpline
        Motion of the left and the right leg against the body [rad], by its control points or as a curve.
    duration : float
        How long the motion takes [s].
    body : float
        Where the body starts, at rest [rad].
    damping : float
        Of each joint [N m s/rad].
    """
    mech = library.branched_acrobot(damping=damping).with_drive(active=["left_hip", "right_hip"])
    bd = sim.blockdiagram(name="branched_acrobot")
    spline = motion_of(bd, motion, duration, mech.active)
    q, qd, _ = spline.curve.evaluate(spline.curve.t0)
    start = [checks.real(body, "body"), *q]
    plant = bd.HYBRIDDYNAMICS(mech, q0=start, qd0=[0.0, *qd], name="plant")
    torques = bd.JOINTEFFORT(mech, name="torques")
    effort = bd.EFFORT(name="effort")
    bd.connect(spline[2], plant[0], torques[2])
    bd.connect(plant[0:2], torques[0:2])
    bd.connect(torques[1], effort)
    view(bd, mech, plant, "Branched acrobot")
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_tau", torques[1], mech.names, "Torques", "N m")
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s")
    return bd
