"""The sensitivity of a free swing of the acrobot to its start.

::

    plant --q,qd--+--> variation --dx_dx0--+--> entries --> column --> scope_column
                  |                        +--> size -----> scope_size
                  +--> sensitivity --dy_dq--> stiffness --> scope_stiffness
                  +--> scope_q, view

`variation` carries ∂x/∂x0 along the run, x = (q, qd): how much the state changes with the start of the shoulder's
angle (the first `column`), and with all of it (`size`, the norm of the matrix). `sensitivity` is that of the
accelerations at each moment. Such a high swing is chaotic: the size grows a hundredfold within seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready, scope, view
from cstormpy.mechanism import library

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation


@ready
def build(
    sim: Simulation,
    q0: ArrayLike = (0.3, 0.5),
    qd0: ArrayLike = (0.0, 0.0),
    parameters: str = "teaching",
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    q0, qd0 : array_like, (2,)
        Start of the swing [rad, rad/s].
    parameters : {"teaching", "spong", "gym", "rods"}
        Which acrobot; its motor is left out.
    """
    mech = library.acrobot(parameters).with_drive(actuated=[])
    bd = sim.blockdiagram(name="swing_sensitivity")
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    variation = bd.VARIATION(mech, name="variation")
    sensitivity = bd.SENSITIVITY(mech, name="sensitivity")
    bd.connect(plant[0:2], variation[0:2])
    bd.connect(plant[0:2], sensitivity[0:2])
    entries = bd.FLATTEN(name="entries")
    size, stiffness = bd.NORM(name="size"), bd.NORM(name="stiffness")
    bd.connect(variation, entries, size)
    bd.connect(sensitivity[0], stiffness)
    states = [f"{joint}.{kind}" for kind in ("q", "qd") for joint in mech.names]
    column = bd.INDEX(list(range(0, len(states) ** 2, len(states))), name="column")
    bd.connect(entries, column)
    view(bd, mech, plant, "Acrobot")
    scope(bd, "scope_q", plant[0], mech.names, "Angles", "rad")
    scope(bd, "scope_column", column[0], states, "dx / d shoulder.q(0)")
    scope(bd, "scope_size", size[0], ["norm"], "Size of dx/dx0")
    scope(bd, "scope_stiffness", stiffness[0], ["norm"], "Size of dqdd/dq", "1/s²")
    return bd
