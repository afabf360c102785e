"""A pole on a cart swung up and balanced by a law of your choice.

::

                          kick
                            |
    plant --q,qd--> controller --tau--> torque --+--> plant
      |                 |                        +--> scope_tau
      +--> scope_q      |                        +--> effort --> scope_effort
      +--> view         +--law, phase--> scope_law, scope_phase

The kick is a short pulse that starts the motion: at rest the laws that pump energy have nothing to push against. The
law "pump" accelerates the cart so that it does work on the pole (Åström and Furuta 2000); "pfl" feeds energy to cart
and pole together, which takes longer, on a third of the track. The law "lqr" holds it upright from a start nearby, as
``q0=[0, 1.4]``; where it hangs the shorter way up changes sides, and with it the force, so that a run from there fails.
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

#: The kick: a force [N].
KICK = 0.5
UPRIGHT, HANGING = (0.0, math.pi / 2), (0.0, -math.pi / 2)
#: How long a demo runs [s].
DURATION = 15.0
#: Gains of the laws, and V below which the regulator catches, for the pole of the library.
PUMP, PFL = {"kp": 1.0, "kd": 2.0, "ke": 150.0}, {"kp": 15.0, "kd": 0.3, "ke": 10.0}
THRESHOLD, LIMIT = 15.0, 15.0


@ready
def build(
    sim: Simulation,
    controller: str = "pump",
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    kick: bool | None = None,
    limit: float | None = None,
    blend: float = 0.05,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"pump", "pfl", "lqr", "none"}
        The law that begins: the cart that pumps the pole, energy with partial feedback linearisation, the regulator
        alone, or no force. ``select`` of the block "controller" swaps them, also during a run.
    q0, qd0 : array_like, (2,), optional
        Start [m, rad; m/s, rad/s]; at rest and hanging unless given.
    kick : bool, optional
        Whether a force of 0.5 N starts the motion for 0.2 s, beside the law's. Unless it is said, only from the start
        at rest.
    limit : float, optional
        Largest force of the motor [N]; unless given, that of each law.
    blend : float
        Time over which a swap of laws gives back its step in force [s].
    """
    mech = library.cart_pole()
    balance = control.LQR(mech, goal=UPRIGHT, limit=LIMIT)
    laws = {
        "pump": control.SwingUp(control.PendulumPump(mech, goal=UPRIGHT, **PUMP), balance, THRESHOLD, limit=LIMIT),
        "pfl": control.SwingUp(control.EnergyPFL(mech, goal=UPRIGHT, **PFL), balance, THRESHOLD, limit=LIMIT),
        "lqr": balance,
        "none": control.Off(mech),
    }
    bd = sim.blockdiagram(name="cart_pole")
    options = {"q0": q0, "qd0": qd0, "kick": kick, "strength": KICK, "limit": limit, "blend": blend}
    units = "Position of the cart, angle of the pole", "m, rad", "N"
    return swing_up(
        bd, mech, laws, controller, UPRIGHT, HANGING, title="Cart and pole", duration=DURATION, units=units, **options
    )
