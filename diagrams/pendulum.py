"""A pendulum of one or more rods that swings freely, its motion and its energy.

::

    plant --q,qd--+--> scope_q, view
                  +--> energy ---> scope_energy
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.arguments import whole_number
from cstormpy.diagrams._building import ready, scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.mechanism import library

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation


@ready
def build(
    sim: Simulation,
    rods: int = 1,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    length: float = 1.0,
    mass: float = 1.0,
    damping: float = 0.0,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    rods : int
        How many rods hang from one another.
    q0, qd0 : array_like, (rods,), optional
        Start [rad, rad/s]; at rest and horizontal unless given.
    length, mass, damping : float
        Of each rod [m, kg] and each hinge [N m s/rad].
    """
    whole_number(rods, "rods", 1)
    mech = library.pendulum(rods, length=length, mass=mass, damping=damping).with_drive(actuated=[], active=[])
    bd = sim.blockdiagram(name="pendulum")
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], energy[0:2])
    scope(bd, "scope_q", plant[0], mech.names, "Angles" if mech.n > 1 else "Angle", "rad")
    scope(bd, "scope_energy", [energy[0], energy[1], energy[2]], ["kinetic", "potential", "total"], "Energy", "J")
    view(bd, mech, plant, "Pendulum")
    if damping > 0.0:
        bd.goal = Goal([-math.pi / 2] + [0.0] * (mech.n - 1))
    return bd
