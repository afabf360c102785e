"""A two-link arm from rest to rest as fast as its motors can: found, then replayed.

::

    controller --tau--> plant --q,qd--+--> controller, scope_q, view
        |   |                         +--> error --> scope_error
        |   |              motion --q-------^
        |   +--> scope_tau, effort --> scope_effort
        +--law, phase--> scope_law, scope_phase

The first example of Xiang, Arora and Abdel-Malek (2008), section 6.3: no gravity, 10 N m in each joint; they print
0.3934 s. "open loop" gives the torques that were found, whatever the arm does; "tvlqr" also feeds back what it is
beside the motion. Both hold the end after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready
from cstormpy.diagrams._optimised import STIFF, found, laws_along, replay
from cstormpy.mechanism import library
from cstormpy.optimal import Problem, Time

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

START, END = (0.0, -2.0), (1.0, -1.0)


def problem(points: int = 22, samples: int = 201) -> Problem:
    """Return the problem: least time, with control points of each joint and limits at so many samples."""
    arm = library.xiang_two_link().with_gravity([0, 0, 0])
    ends = {"start": START, "end": END}
    return Problem(arm, duration=(0.2, 1.0), objective=Time(), points=points, samples=samples, **ends)


@ready
def build(
    sim: Simulation,
    controller: str = "tvlqr",
    points: int = 22,
    samples: int = 201,
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
    offset : float or array_like, (2,)
        How far the joints start beside the motion [rad].
    limit : float, optional
        Largest torques in the replay [N m], which leave nothing to feed back where they are those of the motion.
    optimise : bool
        Whether to search also where the motion is known.
    watch : bool
        Whether a window shows the search.
    """
    asked = problem(points, samples)
    options = {"name": "two_link_time_optimal", "points": points, "samples": samples}
    solution = found(asked, lambda: [asked.solve(live=watch)], optimise, **options)
    bd = sim.blockdiagram(name="two_link_time_optimal")
    mech = asked.mech.with_drive(active=())
    laws = laws_along(mech, solution, solution.motion(solution.duration), STIFF)
    replay(bd, mech, solution, laws, controller, offset, limit, "Arm")
    return bd
