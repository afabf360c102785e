"""A free body that turns over and over about its intermediate axis, as a T-handle does in orbit.

::

    plant --q,qd--+--> motion --velocity--> spin --> scope_spin
                  +--> energy ---> scope_energy
                  +--> scope_q, view

The body moves on a `Free` joint: its position and a rotation vector, which the run re-centres wherever it becomes
longer than π (the jumps of `scope_q`); nothing that can be measured jumps there. `motion` gives the angular velocity in
the axes of the body: a turn about the axis of the largest or the smallest inertia stays, one about the axis between
them does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready, scope, view
from cstormpy.mechanism import Free, Link, Mechanism
from cstormpy.trajectory.checks import finite_array

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: Ends of the handle, in the body's frame, to be seen [m].
_ENDS = {"left": (-0.1, 0.0, 0.0), "right": (0.1, 0.0, 0.0), "stem": (0.0, 0.15, 0.0)}


@ready
def build(
    sim: Simulation,
    spin: ArrayLike = (1e-3, 3.0, 1e-3),
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    inertia: ArrayLike = (1e-3, 2e-3, 3e-3),
    mass: float = 0.4,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    spin : array_like, (3,)
        Angular velocity at the start, about the body's axes x, y, z [rad/s].
    velocity : array_like, (3,)
        Velocity at the start [m/s].
    inertia : array_like, (3,)
        Moments of inertia about x, y, z through the mass centre [kg m²].
    mass : float
        Of the body [kg].
    """
    mech = _handle(mass, finite_array(inertia, "inertia", (3,)))
    rates = np.concatenate([finite_array(velocity, "velocity", (3,)), finite_array(spin, "spin", (3,))])
    bd = sim.blockdiagram(name="spinning_body")
    plant = bd.HYBRIDDYNAMICS(mech, qd0=rates, name="plant")  # where φ = 0 its rate is the angular velocity
    motion, turning = bd.KINEMATICS(mech, "body", name="motion"), bd.INDEX([0, 1, 2], name="spin")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], motion[0:2])
    bd.connect(plant[0:2], energy[0:2])
    bd.connect(motion[1], turning)
    scope(
        bd, "scope_spin", turning[0], ["about x", "about y", "about z"], "Angular velocity in the body's axes", "rad/s"
    )
    scope(bd, "scope_q", plant[0], mech.names, "Position and rotation vector")
    scope(bd, "scope_energy", [energy[2]], ["total"], "Energy", "J")
    view(bd, mech, plant, "Spinning body")
    bd.duration = 30.0
    return bd


def _handle(mass: float, inertia: Any) -> Mechanism:
    """Return a body in space, with ends that have no mass, which are there to be seen."""
    links = [Link("body", None, Free(), mass=mass, inertia=np.diag(inertia))]
    for name, end in _ENDS.items():
        pose = np.eye(4)
        pose[:3, 3] = end
        links.append(Link(name, "body", pose=pose))
    return Mechanism(links, gravity=(0, 0, 0), actuated=[])
