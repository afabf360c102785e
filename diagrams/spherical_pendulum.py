"""A bob on a ball joint that swings around, without the seam that two hinges have.

::

    plant --q,qd--+--> tip --position--> scope_tip
                  +--> energy ---> scope_energy
                  +--> scope_q, view
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready, scope, view
from cstormpy.mechanism import Link, Mechanism, Spherical

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation


@ready
def build(
    sim: Simulation,
    q0: ArrayLike = (0.8, 0.0, 0.0),
    qd0: ArrayLike = (0.0, 1.5, 0.5),
    length: float = 1.0,
    mass: float = 1.0,
    radius: float = 0.1,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    q0, qd0 : array_like, (3,)
        Rotation vector from where the bob hangs down, and its rate, at the start [rad, rad/s].
    length, mass, radius : float
        From the joint to the middle of the bob, a solid sphere, and of the bob [m, kg, m].
    """
    inertia = 0.4 * mass * radius**2 * np.eye(3)
    bob = Link("bob", None, Spherical(), mass=mass, com=(0.0, -length, 0.0), inertia=inertia)
    mech = Mechanism([bob], actuated=[])
    bd = sim.blockdiagram(name="spherical_pendulum")
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    tip = bd.KINEMATICS(mech, "bob", tool=(0.0, -length, 0.0), name="tip")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], tip[0:2])
    bd.connect(plant[0:2], energy[0:2])
    scope(bd, "scope_tip", tip.position, ["x", "y", "z"], "Middle of the bob", "m")
    scope(bd, "scope_q", plant[0], mech.names, "Rotation vector", "rad")
    scope(bd, "scope_energy", [energy[0], energy[1], energy[2]], ["kinetic", "potential", "total"], "Energy", "J")
    view(bd, mech, plant, "Spherical pendulum")
    return bd
