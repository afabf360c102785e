"""A two-link arm swings up with the least effort: found from many starts, then replayed.

::

    controller --tau--> plant --q,qd--+--> controller, scope_q, view
        |   |                         +--> error --> scope_error
        |   |              motion --q-------^
        |   +--> scope_tau, effort --> scope_effort
        +--law, phase--> scope_law, scope_phase

The arm of Sohl and Bobrow (2001), section 5.1, from the horizontal to the vertical. The guess, straight from one to the
other, costs 73.57 N²m²s, as in the paper; the motion found lets the arm fall, folds the forearm and swings up for 9.9.
"open loop" gives the torques that were found, whatever the arm does; "tvlqr" also feeds back what it is beside the
motion. Both hold the end after it, which without feedback does not stand for long.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.diagrams._building import ready
from cstormpy.diagrams._optimised import STIFF, found, laws_along, replay
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation

START, END = (0.0, 0.0), (math.pi / 2, 0.0)


def problem(points: int = 20, duration: float = 1.308) -> Problem:
    """Return the problem: least effort, with so many control points of each joint."""
    arm = library.planar_2r()
    return Problem(arm, duration=duration, start=START, end=END, objective=Effort(), points=points, samples=41)


@ready
def build(
    sim: Simulation,
    controller: str = "tvlqr",
    points: int = 20,
    duration: float = 1.308,
    starts: int = 24,
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
    points : int
        Control points of each joint.
    duration : float
        How long the motion takes [s].
    starts : int
        How many guesses the search starts from; the first alone leads to a poor motion.
    offset : float or array_like, (2,)
        How far the joints start beside the motion [rad].
    limit : float, optional
        Largest torques in the replay [N m].
    optimise : bool
        Whether to search also where the motion is known.
    watch : bool
        Whether a window shows the search.
    """
    asked = problem(points, duration)
    options = {"name": "two_link_swing", "points": points, "duration": duration, "starts": starts}
    solution = found(asked, lambda: [asked.solve(starts=starts, seed=0, live=watch)], optimise, **options)
    bd = sim.blockdiagram(name="two_link_swing")
    mech = asked.mech.with_drive(active=())
    laws = laws_along(mech, solution, solution.motion(solution.duration), STIFF)
    replay(bd, mech, solution, laws, controller, offset, limit, "Arm")
    return bd
