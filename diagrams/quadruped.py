"""A quadruped thrown into the air, which turns by what one of its legs does.

::

    motion --qdd--+--> plant --q,qd--+--> turn --> scope_turn
                  |                  +--> scope_q, view
                  |                  v
                  +------------> torques --> motors --> scope_motors

The robot is read from a file, ``quadruped.urdf``, on a free base. Two joints are active: those of the front left leg,
whose motion is given; its other legs hang on damped hinges. Nothing holds the robot, so that its mass centre flies as a
stone does and its angular momentum stays zero: when the leg swings forwards the trunk turns backwards, and because hip
and knee do not swing in step, the trunk has turned when the leg is back where it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.mechanism import Mechanism
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Angles of hip and knee when the legs are half bent [rad].
_BENT = (0.7, -1.4)
#: Control points of hip and knee of the driven leg [rad]: two strides.
STRIDES = (
    (0.7, -1.4), (0.7, -1.4), (0.7, -1.4), (-1.2, -0.2), (-0.6, 0.0), (2.0, -0.6), (2.2, -2.6),
    (-1.2, -0.2), (-0.6, 0.0), (2.0, -0.6), (2.2, -2.6), (0.7, -1.4), (0.7, -1.4), (0.7, -1.4),
)  # fmt: skip
_DRIVEN = ("front_left_hip", "front_left_knee")


@ready
def build(
    sim: Simulation,
    motion: BSpline | ArrayLike = STRIDES,
    duration: float = 1.4,
    height: float = 0.5,
    velocity: float = 7.0,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    motion : array_like, (m, 2), or BSpline
        Motion of hip and knee of the driven leg [rad], by its control points or as a curve.
    duration : float
        How long the motion takes [s].
    height, velocity : float
        Of the trunk at the start: how high it is [m], and how fast it goes upwards [m/s].
    """
    mech = Mechanism.from_urdf(Path(__file__).with_suffix(".urdf"), floating=True, actuated=_DRIVEN, active=_DRIVEN)
    bd = sim.blockdiagram(name="quadruped")
    spline = motion_of(bd, motion, duration, mech.active)
    q, qd = np.array([0.0] * 6 + list(_BENT) * 4), np.zeros(mech.n)
    q[2], qd[2] = checks.real(height, "height"), checks.real(velocity, "velocity")
    q[mech.active_mask], qd[mech.active_mask], _ = spline.curve.evaluate(spline.curve.t0)
    plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant")
    torques = bd.JOINTEFFORT(mech, name="torques")
    turn, motors = bd.INDEX([3, 4, 5], name="turn"), bd.INDEX([6, 7], name="motors")
    bd.connect(spline[2], plant[0], torques[2])
    bd.connect(plant[0:2], torques[0:2])
    bd.connect(plant[0], turn)
    bd.connect(torques[1], motors)
    view(bd, mech, plant, "Quadruped")
    scope(bd, "scope_turn", turn[0], ["about x", "about y", "about z"], "Rotation vector of the trunk", "rad")
    scope(bd, "scope_q", plant[0], mech.names, "Place, rotation vector, angles")
    scope(bd, "scope_motors", motors[0], mech.active, "Torques", "N m")
    bd.duration, bd.pace = 1.4, 0.2
    return bd
