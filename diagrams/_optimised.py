"""Common parts of the diagrams that find a motion first, and then replay it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import flag
from cstormpy.arrays import Array
from cstormpy.control import LQR, TVLQR, Law, OpenLoop, Then
from cstormpy.diagrams._building import scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.errors import InvalidValue
from cstormpy.optimal.solution_cache import asked, solved
from cstormpy.reporting import notice_once

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal import Problem, Solution

__all__ = ["ANGLES", "STIFF", "found", "laws_along", "propose", "replay"]

ANGLES = "Angles", "rad"
#: A run shows the motion and what comes after it: how long, as part of the motion; and at least so long on the screen.
BEYOND, ON_SCREEN = 0.5, 6.0
#: Weight of the torques of an arm with all its motors, for which it is some 30 N m/rad stiff.
STIFF = 0.01
#: Rows of the regulator's table, which is linear between them.
STEPS = 800


def found(
    problem: Problem,
    search: Callable[[], Sequence[Solution]],
    optimise: bool,
    way: int = 0,
    **options: Any,
) -> Solution:
    """Return the motion of least cost, and say in a line what it is.

    Parameters
    ----------
    problem : Problem
        What is solved.
    search : callable
        Returns the solutions, best first.
    optimise : bool
        Search also where the answer is known.
    way : int
        Which of the solutions.
    **options
        What the problem was made with, beside its mechanism; `name` is that of the diagram.
    """
    name, begin = options["name"], time.perf_counter()
    made_by = asked(mechanism=problem.mech.to_dict(), **options)
    solutions, known = solved(problem, made_by, search, anew=flag(optimise, "optimise"))
    solution = solutions[min(way, len(solutions) - 1)]
    if not solution.feasible:
        raise InvalidValue(f"{name}: the search ended without a motion that keeps to the limits ({solution.reason})")
    took = time.perf_counter() - begin
    how = "known, optimise=True searches anew" if known else f"{solution.reason}, found in {took:.3g} s"
    notice_once(f"{name}: T = {solution.duration:.5g} s, cost {solution.dense_cost:.6g} ({how})")
    return solution


class _Torques:
    """The torques of the motors along a solution, as a function of time."""

    def __init__(self, solution: Solution) -> None:
        self.solution, self.motors = solution, solution.problem.mech.actuated_mask

    def __call__(self, t: float) -> Array:
        return np.ascontiguousarray(self.solution.at([t]).tau[0, self.motors])


def laws_along(mech: Mechanism, solution: Solution, goal: Array, R: float, hold: Array | None = None) -> dict[str, Law]:
    """Return the laws that replay a solution: its torques alone, and with time-varying LQR about it.

    Parameters
    ----------
    mech : Mechanism
        With all its motors driven by torque.
    goal : ndarray, (n,)
        Where it is held after the motion: by the torques that do so at rest, or by LQR.
    R : float
        Weight of the torques that are fed back.
    hold : ndarray, (n_a,), optional
        The torques that hold the goal where loads act too; what is fed back does not know that loads turn.
    """
    torques = _Torques(solution)
    balance = LQR(mech, goal, R=R)
    if hold is not None:
        balance.hold = hold
    times = np.linspace(0.0, solution.duration, 2 * STEPS + 1)
    known = dict(zip(times.tolist(), solution.at(times).tau[:, torques.motors], strict=True))
    follow = TVLQR(
        mech, solution.motion, lambda t: known[t] if t in known else torques(t), R=R, final=balance, steps=STEPS
    )
    return {
        "open loop": Then(OpenLoop(mech, torques), OpenLoop(mech, balance.hold), solution.duration),
        "tvlqr": Then(follow, balance, solution.duration),
    }


def replay(
    bd: Any,
    mech: Mechanism,
    solution: Solution,
    laws: dict[str, Law],
    controller: str,
    offset: ArrayLike,
    limit: float | None,
    title: str,
    wrench: bool = False,
) -> Any:
    """Wire the plant, the controller and the motion that is to be followed, and return the plant."""
    motion = solution.motion
    beside = [offset] * mech.n if np.ndim(offset) == 0 else offset
    start = motion(motion.t0) + checks.array(beside, (mech.n,), "offset")
    plant = bd.HYBRIDDYNAMICS(mech, q0=start, wrench=wrench, name="plant")
    command = bd.CONTROLLER(mech, laws, law=controller, limit=limit, name="controller")
    bd.connect(plant[0:2], command[0:2])
    wanted = bd.SPLINETRAJECTORY(motion, name="motion")
    error = bd.SUM("+-", name="error")
    bd.connect(plant[0], error[0])
    bd.connect(wanted[0], error[1])
    effort = bd.EFFORT(name="effort")
    bd.connect(command[0], plant[0], effort[0])
    view(bd, mech, plant, title)
    scope(bd, "scope_q", plant[0], mech.names, *ANGLES)
    scope(bd, "scope_error", error[0], mech.names, "Error", "rad")
    scope(bd, "scope_tau", command[0], mech.actuated, "Torques", "N m")
    scope(bd, "scope_law", command[1], ["law"], "Law", stairs=True)
    scope(bd, "scope_phase", command[2], ["phase"], "Phase", stairs=True)
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s")
    bd.goal = Goal(motion(motion.t1))
    propose(bd, (1.0 + BEYOND) * solution.duration)
    return plant


def propose(bd: Any, duration: float) -> None:
    """Say how long a run of a diagram is to be [s], and how fast a live window is to show it."""
    bd.duration, bd.pace = duration, min(1.0, duration / ON_SCREEN)
