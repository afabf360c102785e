"""The motion of the spline law: from hanging to the goal, with little effort and torque to spare for the feedback.

The law itself is `cstormpy.control.SplineSwingUp`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control import upright
from cstormpy.control.law import mechanism_of
from cstormpy.control.spline import SHARE
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.problem import Problem
from cstormpy.optimal.solution import Solution
from cstormpy.optimal.solution_cache import asked, solved
from cstormpy.optimal.stages import Stage
from cstormpy.optimal.starts import INTERRUPTED
from cstormpy.optimal.terms import Effort, Terminal
from cstormpy.reporting import notice

PENALTIES = 200.0, 20.0
"""Weights of position and rate at the end, while they are penalties."""

STARTS, COARSE = 4, 104
"""Starts of the search, with this many steps at least; the best are finished with more."""


def swing_up_problem(
    mech: Mechanism, goal: Array, start: Array, duration: float, limit: Array | None, points: int
) -> Problem:
    """Return the problem of least effort from rest to rest in a goal: motors move along splines, the rest follows."""
    driven = mech.with_drive(active=mech.actuated)
    others = [k for k in range(mech.n) if not mech.actuated_mask[k]]
    q = {mech.names[k]: float(goal[k]) for k in others}
    at_end = PENALTIES[0] * Terminal(q=q) + PENALTIES[1] * Terminal(qd=dict.fromkeys(q, 0.0)) if q else 0
    limits: dict[str, Any] = {}
    if limit is not None:
        limits["torque"] = dict(zip(mech.actuated, (SHARE * limit).tolist(), strict=True))
    return Problem(
        driven,
        duration=duration,
        start=start,
        end={name: float(goal[mech.joint_index(name)]) for name in mech.actuated},
        objective=Effort() + at_end,
        limits=limits,
        points=points,
        spread=2.0,
    )


def swing_up(
    mech: Mechanism,
    goal: ArrayLike | None = None,
    start: ArrayLike | None = None,
    duration: float = 3.0,
    limit: ArrayLike | None = 25.0,
    points: int = 16,
    keep: bool = True,
) -> Solution:
    """Return a motion of little effort, from rest to rest in an equilibrium; the one that is known, if there is one.

    Parameters
    ----------
    mech : Mechanism or str
    goal, start : array_like, (n,), optional
        The highest posture, and its mirror image, which hangs, unless given.
    duration : float
        [s].
    limit : float or array_like (n_a,), optional
        Largest torques of the motors, of which the motion uses 80 %.
    points : int
        Control points of each motor's spline.
    keep : bool
        Whether to look for it among what is kept, and to keep it.

    Raises
    ------
    InvalidValue
        If none was found; a longer duration or a greater limit may help.
    """
    mech = mechanism_of(mech, "spline").with_drive(active=())
    wanted = upright(mech) if goal is None else checks.array(goal, (mech.n,), "goal")
    hanging = np.where(mech.actuated_mask, wanted, wanted - math.pi)
    begin = hanging if start is None else checks.array(start, (mech.n,), "start")
    most = None if limit is None else np.broadcast_to(np.asarray(limit, dtype=np.float64), (len(mech.actuated),))
    lasts, count = checks.positive(duration, "duration"), checks.count(points, "points")
    problem = swing_up_problem(mech, wanted, begin, lasts, most, count)
    made_by = asked(
        "swing-up", mechanism=mech.to_dict(), goal=wanted, start=begin, duration=lasts, limit=most, points=count
    )
    (solution,), _ = solved(problem.replace(exact=True), made_by, lambda: [_search(problem, made_by)], keep=keep)
    return solution


def _search(problem: Problem, made_by: Mapping[str, Any]) -> Solution:
    notice("searching the swing-up motion of the spline law (some seconds, once)")
    segments = problem.options.points - problem.degree
    coarse = {"steps": 2 * segments * math.ceil(COARSE / (2 * segments))}
    stages = [Stage(options=coarse), Stage(options=coarse, exact=True), Stage(exact=True)]
    solution = problem.solve(starts=STARTS, keep=2, stages=stages)
    if solution.reason == INTERRUPTED:
        raise KeyboardInterrupt
    if not solution.feasible:
        raise InvalidValue(
            f"spline: no motion of {made_by['duration']:g} s reaches the goal within the limits of torque "
            f"({solution.reason}); give another duration= or limit="
        )
    return solution
