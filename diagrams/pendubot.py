"""The pendubot, two links with a motor in the shoulder, swung up and balanced by a law of your choice.

::

                          kick
                            |
    plant --q,qd--> controller --tau--> torque --+--> plant
      |                 |                        +--> scope_tau
      +--> scope_q      |                        +--> effort --> scope_effort
      +--> view         +--law, phase--> scope_law, scope_phase

The kick is a short pulse that starts the motion: at rest the laws that pump energy have nothing to push against.
The law "lqr" holds it upright from a start nearby, as ``q0=[1.5, 0.1]``; where it hangs the shorter way up changes
sides, and with it the torque, so that a run from there fails.
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

UPRIGHT, HANGING = (math.pi / 2, 0.0), (-math.pi / 2, 0.0)
#: How long a demo runs [s].
DURATION = 15.0
#: Of each parameter set: the kick [N m], the gains of "energy" and of "pfl", V below which the regulator catches, and
#: the largest torque [N m]; that of the double pendulums of DFKI is 6 N m.
SETS = {
    "design_C.1": (0.5, {"kp": 1.0, "kd": 0.3, "ke": 2.0}, {"kp": 30.0, "kd": 5.0, "ke": 0.3}, 5.0, 6.0),
    "design_A.0": (0.5, {"kp": 1.0, "kd": 0.3, "ke": 2.0}, {"kp": 10.0, "kd": 2.0, "ke": 1.0}, 5.0, 6.0),
    "teaching": (0.5, {"kp": 20.0, "kd": 4.0, "ke": 1.0}, {"kp": 60.0, "kd": 1.0, "ke": 3.0}, 1000.0, 25.0),
}


@ready
def build(
    sim: Simulation,
    controller: str = "pfl",
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    kick: bool | None = None,
    parameters: str = "design_C.1",
    limit: float | None = None,
    blend: float = 0.05,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"pfl", "energy", "lqr", "pd", "none"}
        The law that begins; see `cstormpy.control.law`. The others are there too: ``select`` of the block "controller"
        swaps them, also during a run.
    q0, qd0 : array_like, (2,), optional
        Start [rad, rad/s]; at rest and hanging unless given.
    kick : bool, optional
        Whether a torque of 0.5 N m starts the motion for 0.2 s, beside the law's. Unless it is said, only
        from the start at rest.
    parameters : {"design_C.1", "design_A.0", "teaching"}
        Which pendubot; see `cstormpy.library.pendubot`.
    limit : float, optional
        Largest torque of the motor [N m]; unless given, that of each law.
    blend : float
        Time over which a swap of laws gives back its step in torque [s].
    """
    mech = library.pendubot(parameters)
    strength, energy, pfl, threshold, most = SETS[parameters]
    catch = {"goal": UPRIGHT, "threshold": threshold, "limit": most}
    laws = {
        "pfl": control.law("pfl", mech, **pfl, **catch),
        "energy": control.law("energy", mech, **energy, **catch),
        "lqr": control.law("lqr", mech, goal=UPRIGHT, limit=most),
        "pd": control.law("pd", mech, goal=UPRIGHT, limit=most),
        "none": control.law("none", mech),
    }
    bd = sim.blockdiagram(name="pendubot")
    options = {"q0": q0, "qd0": qd0, "kick": kick, "strength": strength, "limit": limit, "blend": blend}
    return swing_up(bd, mech, laws, controller, UPRIGHT, HANGING, title="Pendubot", duration=DURATION, **options)
