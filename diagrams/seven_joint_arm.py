"""An arm of seven joints that tracks splines, by computed torque or by PD.

::

    motion --q,qd,qdd--> controller --tau--+--> plant --q,qd--+--> controller, scope_q, view
                             |             |                  +--> hand --position--> scope_hand
                             |             +--> effort --> scope_effort
                             +--law--> scope_law

The controller holds three laws: "computed torque", "pd with gravity" (what holds the arm at rest is added) and "pd".
Only the first follows the motion; the second lags behind it, and the third hangs below it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.control import PD, ComputedTorque
from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.mechanism import library
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Postures [rad] between which the motion goes.
HOME = (0.0, 0.3, 0.0, -1.2, 0.0, 0.8, 0.0)
VIA = (0.9, 0.8, -0.4, -1.6, 0.5, 1.1, 0.6)
REACH = (1.4, 0.5, 0.3, -0.7, -0.4, 0.4, math.pi / 2)
#: Stiffness [N m/rad] and damping [N m s/rad] of the PD laws, from the base to the hand.
STIFFNESS = (150.0, 250.0, 60.0, 80.0, 6.0, 6.0, 0.3)
DAMPING = (20.0, 35.0, 8.0, 10.0, 0.6, 0.6, 0.03)


@ready
def build(
    sim: Simulation,
    controller: str = "computed torque",
    motion: BSpline | ArrayLike = (HOME, HOME, HOME, VIA, VIA, REACH, REACH, REACH),
    duration: float = 3.0,
    kp: float = 100.0,
    kd: float = 20.0,
    offset: float = 0.1,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"computed torque", "pd with gravity", "pd"}
        The law that begins.
    motion : array_like, (m, 7), or BSpline
        What the joints are to follow [rad], by control points or as a curve.
    duration : float
        How long the motion takes [s].
    kp, kd : float
        Of the computed torque [1/s², 1/s].
    offset : float
        By how much each joint starts beside the motion [rad], at rest.
    """
    mech = library.arm7()
    bd = sim.blockdiagram(name="seven_joint_arm")
    spline = motion_of(bd, motion, duration, mech.names)
    curve = spline.curve
    plant = bd.HYBRIDDYNAMICS(mech, q0=curve.evaluate(curve.t0)[0] + checks.real(offset, "offset"), name="plant")
    laws = {
        "computed torque": ComputedTorque(mech, kp=kp, kd=kd),
        "pd with gravity": PD(mech, STIFFNESS, DAMPING, compensate=True),
        "pd": PD(mech, STIFFNESS, DAMPING),
    }
    command = bd.CONTROLLER(mech, laws, law=controller, reference=True, name="controller")
    hand = bd.KINEMATICS(mech, frame="aligned", name="hand")
    effort = bd.EFFORT(name="effort")
    bd.connect(plant[0:2], command[0:2])
    bd.connect(spline[0:3], command[2:5])
    bd.connect(command[0], plant[0], effort)
    bd.connect(plant[0:2], hand[0:2])
    view(bd, mech, plant, "Arm")
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_hand", hand[3], ["x", "y", "z"], "Position of the hand", "m")
    scope(bd, "scope_law", command[1], ["law"], "Law", stairs=True)
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s")
    bd.goal = Goal(curve.evaluate(curve.t1)[0])
    return bd
