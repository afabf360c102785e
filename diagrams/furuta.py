"""The pendulum of Furuta, on an arm that turns, swung up and balanced by a law of your choice.

::

                          kick
                            |
    plant --q,qd--> controller --tau--> torque --+--> plant
      |                 |                        +--> scope_tau
      +--> scope_q      |                        +--> effort --> scope_effort
      +--> view         +--law, phase--> scope_law, scope_phase

The kick is a short pulse that starts the motion: at rest the laws that pump energy have nothing to push against. The
law "pump" accelerates the arm so that it does work on the pendulum, as Åström and Furuta (2000) do.
The law "lqr" holds it upright from a start nearby, as ``q0=[0, 1.5]``; where it hangs the shorter way up changes sides,
and with it the torque, so that a run from there fails.
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

UPRIGHT, HANGING = (0.0, math.pi / 2), (0.0, -math.pi / 2)
#: How long a demo runs [s].
DURATION = 15.0
#: Of each parameter set: the kick [N m], the gains of the pump, V below which the regulator catches, the largest
#: torque [N m], and the weights of the regulator.
SETS = {
    "cazzolato": (0.05, {"kp": 2.0, "kd": 2.0, "ke": 3e4}, 5.0, 0.6, [10.0, 10.0, 1.0, 1.0], 1.0),
    "qube": (0.01, {"kp": 2.0, "kd": 2.0, "ke": 1e7}, 0.1, 0.05, [1.0, 1.0, 0.01, 0.01], 100.0),
}


@ready
def build(
    sim: Simulation,
    controller: str = "pump",
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    kick: bool | None = None,
    parameters: str = "cazzolato",
    limit: float | None = None,
    blend: float = 0.05,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"pump", "lqr", "none"}
        The law that begins: the arm that pumps the pendulum until the regulator catches it, the regulator alone, or no
        torque. ``select`` of the block "controller" swaps them, also during a run.
    q0, qd0 : array_like, (2,), optional
        Start [rad, rad/s]; at rest and hanging unless given.
    kick : bool, optional
        Whether a tenth of the largest torque starts the motion for 0.2 s, beside the law's. Unless it is said, only
        from the start at rest.
    parameters : {"cazzolato", "qube"}
        Which pendulum; see `cstormpy.library.furuta`.
    limit : float, optional
        Largest torque of the motor [N m]; unless given, that of each law.
    blend : float
        Time over which a swap of laws gives back its step in torque [s].
    """
    mech = library.furuta(parameters)
    strength, gains, threshold, most, Q, R = SETS[parameters]
    balance = control.LQR(mech, goal=UPRIGHT, Q=Q, R=R, limit=most)
    pump = control.PendulumPump(mech, goal=UPRIGHT, **gains)
    laws = {
        "pump": control.SwingUp(pump, balance, threshold, limit=most),
        "lqr": balance,
        "none": control.Off(mech),
    }
    bd = sim.blockdiagram(name="furuta")
    options = {"q0": q0, "qd0": qd0, "kick": kick, "strength": strength, "limit": limit, "blend": blend}
    return swing_up(bd, mech, laws, controller, UPRIGHT, HANGING, title="Furuta pendulum", duration=DURATION, **options)
