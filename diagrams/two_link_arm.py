"""A two-link arm made to follow a motion by computed torque, wired from blocks.

::

    motion --q----> error_q --> kp --+
      |               ^              v
      +------qd---> error_qd --> kd --> command --qdd--> inverse --tau--> plant --q,qd--+
      +------qdd---------------------->                     ^                           |
                      ^                                     |                           |
                      +--------------- q, qd ---------------+---------------------------+

    scope_q and view on the plant's q, scope_error on error_q, scope_tau on inverse's tau

    command = qdd_r + kd (qd_r - qd) + kp (q_r - q),    tau = ID(q, qd, command)

so that the error follows ë + kd ė + kp e = 0, whatever the arm. The arm starts beside the motion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.mechanism import library
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Control points [rad] of shoulder and elbow.
REACH = ((-1.2, 0.4), (-1.2, 0.4), (-1.2, 0.4), (-0.2, 2.0), (1.0, 1.2), (0.6, -0.8), (0.6, -0.8), (0.6, -0.8))


@ready
def build(
    sim: Simulation,
    motion: BSpline | ArrayLike = REACH,
    duration: float = 2.0,
    kp: float = 100.0,
    kd: float = 20.0,
    q0: ArrayLike = (-1.0, 0.1),
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    motion : array_like, (m, 2), or BSpline
        What shoulder and elbow are to follow [rad], by control points or as a curve.
    duration : float
        How long the motion takes [s].
    kp, kd : float
        [1/s², 1/s].
    q0 : array_like, (2,)
        Where the arm starts, at rest [rad].
    """
    mech = library.planar_2r()
    bd = sim.blockdiagram(name="two_link_arm")
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant")
    spline = motion_of(bd, motion, duration, mech.names)
    command = bd.SUM("+++", name="command")
    for k, (what, name, gain) in enumerate([("q", "kp", kp), ("qd", "kd", kd)]):
        error = bd.SUM("+-", name=f"error_{what}")
        bd.connect(spline[k], error[0])
        bd.connect(plant[k], error[1])
        corrected = bd.GAIN(checks.real(gain, name), name=name)
        bd.connect(error, corrected)
        bd.connect(corrected, command[k])
    bd.connect(spline[2], command[2])
    inverse = bd.INVERSEDYNAMICS(mech, name="inverse")
    bd.connect(plant[0:2], inverse[0:2])
    bd.connect(command, inverse[2])
    bd.connect(inverse, plant[0])
    view(bd, mech, plant, "Arm")
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_error", bd.blocknames["error_q"][0], mech.names, "Error of the angles", "rad")
    scope(bd, "scope_tau", inverse[0], mech.names, "Torques", "N m")
    bd.goal = Goal(spline.curve.evaluate(spline.curve.t1)[0])
    return bd
