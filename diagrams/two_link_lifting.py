"""A two-link arm lifts a load with a mixture of little time and little effort: found, then replayed.

::

    controller --tau--> plant --q,qd--+--> controller, scope_q, view
        |   |             ^           +--> error --> scope_error
        |   |             |   motion --q-----^
        |   |             +--- load <-- weight, and q of the plant
        |   +--> scope_tau, effort --> scope_effort
        +--law, phase--> scope_law, scope_phase

The second example of Xiang, Arora and Abdel-Malek (2008), section 6.4: 10 N pull the tip down, and u T + (1 - u) times
the effort is least for u = 0.01; they print 0.520 s. "open loop" gives the torques that were found, whatever the arm
does; "tvlqr" also feeds back what it is beside the motion. Both hold arm and load after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready
from cstormpy.diagrams._optimised import STIFF, found, laws_along, replay
from cstormpy.mechanism import library
from cstormpy.optimal import Load, Mixed, Problem

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

START, END = (1.32, -2.37), (2.80, -2.37)
#: The weight [N], and where on the forearm it hangs [m].
WEIGHT, TIP = (0.0, -10.0, 0.0), (0.4, 0.0, 0.0)
LINK = "forearm"
HANGING = Load(LINK, force=WEIGHT, point=TIP)


def problem(points: int = 22, samples: int = 201, mixture: float = 0.01) -> Problem:
    """Return the problem: least mixture of time and effort, with so many control points of each joint and samples."""
    return Problem(
        library.xiang_two_link(),
        duration=(0.2, 1.0),
        start=START,
        end=END,
        objective=Mixed(mixture),
        loads=HANGING,
        points=points,
        samples=samples,
    )


@ready
def build(
    sim: Simulation,
    controller: str = "tvlqr",
    points: int = 22,
    samples: int = 201,
    mixture: float = 0.01,
    offset: ArrayLike = 0.0,
    limit: float | None = None,
    optimise: bool = False,
    watch: bool = False,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"tvlqr", "open loop"}
        Whether what is beside the motion is fed back.
    points, samples : int
        Control points of each joint, and samples at which the limits hold.
    mixture : float
        Part of the time in the cost; the rest is effort.
    offset : float or array_like, (2,)
        How far the joints start beside the motion [rad].
    limit : float, optional
        Largest torques in the replay [N m], which leave nothing to feed back where they are those of the motion.
    optimise : bool
        Whether to search also where the motion is known.
    watch : bool
        Whether a window shows the search.
    """
    asked = problem(points, samples, mixture)
    options = {"name": "two_link_lifting", "points": points, "samples": samples, "mixture": mixture}
    solution = found(asked, lambda: [asked.solve(live=watch)], optimise, **options)
    bd = sim.blockdiagram(name="two_link_lifting")
    mech = asked.mech.with_drive(active=())
    end = solution.motion(solution.duration)
    rest = np.zeros(2)
    laws = laws_along(mech, solution, end, STIFF, hold=mech.inverse_dynamics(end, rest, rest, wrench=HANGING))
    plant = replay(bd, mech, solution, laws, controller, offset, limit, "Arm", wrench=True)
    weight = bd.CONSTANT(np.array(WEIGHT), name="weight")
    load = bd.WRENCH(mech, LINK, frame="base", point=TIP, load="force", name="load")
    bd.connect(weight, load[0])
    bd.connect(plant[0], load[1])
    bd.connect(load, plant[1])
    return bd
