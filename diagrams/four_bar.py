"""A four-bar linkage whose crank a motor turns at a steady rate: a loop that stays closed, and what its pin carries.

::

    speed --> error --> gain --tau--> plant --q,qd--+--> scope_q, view
                ^                                   +--> energy ---> scope_energy
                +--------------- rate <-------------+

    scope_tau on gain; rate takes that of the crank
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cstormpy import checks
from cstormpy.diagrams._building import ready, scope, view
from cstormpy.mechanism import library

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation


@ready
def build(sim: Simulation, speed: float = 6.0, gain: float = 2.0, angle: float = 1.0, damping: float = 0.01) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    speed : float
        What the crank is to turn at [rad/s].
    gain : float
        Of the motor's torque [N m s/rad].
    angle : float
        Of the crank at the start, at rest [rad].
    damping : float
        Of each hinge [N m s/rad].
    """
    mech = library.four_bar(damping=damping)
    q0, _ = mech.project([checks.real(angle, "angle"), 0.0, 1.5], hold=["crank"])
    bd = sim.blockdiagram(name="four_bar")
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant")
    wanted = bd.CONSTANT(checks.real(speed, "speed"), name="speed")
    rate = bd.INDEX([0], name="rate")
    error = bd.SUM("+-", name="error")
    motor = bd.GAIN(checks.real(gain, "gain"), name="gain")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant.qd, rate)
    bd.connect(wanted, error[0])
    bd.connect(rate, error[1])
    bd.connect(error, motor)
    bd.connect(motor, plant.tau)
    bd.connect(plant[0:2], energy[0:2])
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_tau", motor, ["crank"], "Torque of the motor", "N m")
    scope(bd, "scope_energy", [energy[0], energy[1], energy[2]], ["kinetic", "potential", "total"], "Energy", "J")
    view(bd, mech, plant, "Four-bar linkage")
    return bd
