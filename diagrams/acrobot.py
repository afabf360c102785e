"""The acrobot swung up and balanced by a law of your choice.

::

                          kick
                            |
    plant --q,qd--> controller --tau--> torque --+--> plant
      |                 |                        +--> scope_tau
      +--> scope_q      |                        +--> effort --> scope_effort
      +--> view         +--law, phase--> scope_law, scope_phase

The kick is a short pulse that starts the motion: at rest the laws that pump energy have nothing to push against but
rounding. Without it `controller` drives `plant` itself. The law "spline" needs none: it follows a motion that was found
by optimal control, which is known for the four acrobots, and else searched when the law is first used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy import control
from cstormpy.diagrams._building import ready
from cstormpy.diagrams._swinging_up import swing_up
from cstormpy.mechanism import library

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

#: The kick: a torque [N m].
KICK = 0.5
UPRIGHT, HANGING = (math.pi / 2, 0.0), (-math.pi / 2, 0.0)
#: How long a demo runs, in which each swing-up law catches it [s].
DURATION = 6.0


@ready
def build(
    sim: Simulation,
    controller: str = "energy",
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    kick: bool | None = None,
    parameters: str = "teaching",
    limit: float | None = None,
    blend: float = 0.05,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"energy", "pfl", "noncollocated", "spline", "lqr", "pd", "none"}
        The law that begins; see `cstormpy.control.law`. The others are there too: ``select`` of the block "controller"
        swaps them, also during a run.
    q0, qd0 : array_like, (2,), optional
        Start [rad, rad/s]; at rest and hanging unless given.
    kick : bool, optional
        Whether a torque of 0.5 N m in the elbow starts the motion for 0.2 s, beside the law's. Unless it is said, only
        from the start at rest.
    parameters : {"teaching", "spong", "gym", "rods"}
        Which acrobot; the gains of the laws are those for "teaching".
    limit : float, optional
        Largest torque of the motor [N m]; unless given, that of each law.
    blend : float
        Time over which a swap of laws gives back its step in torque [s].
    """
    mech = library.acrobot(parameters)
    # told where upright is, no law has to search for it
    laws = {name: control.law(name, mech, **({} if name == "none" else {"goal": UPRIGHT})) for name in control.names()}
    bd = sim.blockdiagram(name="acrobot")
    options = {"q0": q0, "qd0": qd0, "kick": kick, "strength": KICK, "limit": limit, "blend": blend}
    return swing_up(bd, mech, laws, controller, UPRIGHT, HANGING, title="Acrobot", duration=DURATION, **options)
