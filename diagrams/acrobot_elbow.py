"""The acrobot with the motion of its elbow prescribed: the hybrid dynamics find the shoulder's motion and the torque.

::

    motion --qdd--+--> plant --q,qd--+--> scope_q, view
                  |                  v
                  +------------> torques --+--> scope_tau
                                           +--> effort --> scope_effort

The elbow is active: its acceleration is given, and what its motor has to give for it comes out. With the motion that
stands here the acrobot swings from rest to upright in 4 s; then the elbow is held, and the acrobot falls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.mechanism import library
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Control points [rad] of the elbow's motion over 4 s: found by least squares, for the shoulder upright at the end.
SWING_UP = (0.0, 0.0, 0.0, 0.55, -0.31, -1.98, -1.7, 0.08, 1.6, 3.4, 2.74, 0.0, 0.0, 0.0)


@ready
def build(
    sim: Simulation,
    motion: BSpline | ArrayLike = SWING_UP,
    duration: float = 4.0,
    shoulder: float = -math.pi / 2,
    parameters: str = "teaching",
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    motion : array_like, (m,), or BSpline
        Motion of the elbow [rad], by its control points or as a curve.
    duration : float
        How long the motion takes [s].
    shoulder : float
        Where the shoulder starts, at rest [rad].
    parameters : {"teaching", "spong", "gym", "rods"}
        Which acrobot.
    """
    mech = library.acrobot(parameters).with_drive(active=["elbow"])
    bd = sim.blockdiagram(name="acrobot_elbow")
    spline = motion_of(bd, motion, duration, mech.active)
    q, qd, _ = spline.curve.evaluate(spline.curve.t0)
    start = [checks.real(shoulder, "shoulder"), *q]
    plant = bd.HYBRIDDYNAMICS(mech, q0=start, qd0=[0.0, *qd], name="plant")
    torques = bd.JOINTEFFORT(mech, name="torques")
    effort = bd.EFFORT(name="effort")
    bd.connect(spline[2], plant[0], torques[2])
    bd.connect(plant[0:2], torques[0:2])
    bd.connect(torques[1], effort)
    view(bd, mech, plant, "Acrobot")
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_tau", torques[1], mech.names, "Torques", "N m")
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s")
    return bd
