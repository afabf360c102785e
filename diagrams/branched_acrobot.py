"""The branched acrobot: a body on a passive joint, and two legs that swing it up along a motion that was found.

With `controller="prescribed"`::

    motion --qdd--+--> plant --q,qd--+--> scope_q, view
                  |                  v
                  +------------> torques --+--> scope_tau
                                           +--> effort --> scope_effort

Both hips are active: the motion of the legs is given, the body follows. After the motion the legs are held, and the
body falls. With `controller="tvlqr"` or `"open loop"` the hips are driven by torque, and `controller` also feeds back
what the mechanism is beside the motion, and then balances it, or does not::

    controller --tau--> plant --q,qd--+--> controller, scope_q, view
        |   |                         +--> error --> scope_error
        |   |              motion --q-------^
        |   +--> scope_tau, effort --> scope_effort
        +--law, phase--> scope_law, scope_phase

The motion is that of Sohl and Bobrow (2001), section 5.3: least effort from rest to upright, in one of two different
ways, each the best near to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.diagrams._building import motion_of, ready, scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.diagrams._optimised import ANGLES, found, laws_along, propose, replay
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Terminal
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.optimal import Solution
    from cstormpy.simulation import Simulation

DURATION, BODY = 3.0, -1.0
CONTROLLERS = "prescribed", "tvlqr", "open loop"
WAYS = "best", "other"
LEGS = ["left_hip", "right_hip"]
UPRIGHT = math.pi / 2, 0.0, 0.0
#: Weights of position and rate of the body at the end, (83).
PENALTIES = 100.0, 10.0
#: Of the control points that are prescribed, so that they are the same on every machine.
DECIMALS = 12
#: The search: starts, steps of the first stage, by what part the cost of another way is different, and the tolerance
#: of the last stage.
STARTS, COARSE, DIFFERENT, EXACT = 10, 108, 0.02, 1e-12


def problem(duration: float = DURATION, body: float = BODY, damping: float = 0.0, points: int = 12) -> Problem:
    """Return the problem: least effort from rest, the body ending upright, the legs as they began."""
    mech = library.branched_acrobot(damping=damping).with_drive(active=LEGS)
    up = PENALTIES[0] * Terminal(q={"base": math.pi / 2}) + PENALTIES[1] * Terminal(qd={"base": 0.0})
    start = [checks.real(body, "body"), 0.0, 0.0]
    legs = dict.fromkeys(LEGS, 0.0)
    return Problem(mech, duration=duration, start=start, end=legs, objective=up + Effort(), points=points)


def search(asked: Problem, watch: bool = False) -> list[Solution]:
    """Return the best solution and the best of a different cost."""
    coarse = asked.replace(steps=COARSE)
    first = coarse.solve(starts=STARTS, seed=0, live=watch)
    ranked = sorted((o for o in first.outcomes if o.converged), key=lambda o: o.cost)
    ways = ranked[:1] + [o for o in ranked if o.cost > (1.0 + DIFFERENT) * ranked[0].cost][:1]
    if not ways:
        raise InvalidValue(f"branched_acrobot: the search found no motion ({first.reason}); give another duration=")
    guesses = [coarse.transcription.spline(o.x) for o in ways]
    finer = (asked.replace(guess=guess).solve(tolerance=EXACT, live=watch) for guess in guesses)
    return sorted(finer, key=lambda solution: solution.cost)


def optimum(
    motion: str = "best",
    duration: float = DURATION,
    body: float = BODY,
    damping: float = 0.0,
    points: int = 12,
    optimise: bool = False,
    watch: bool = False,
) -> Solution:
    """Return the best motion or another one, if it is known without a search."""
    asked = problem(duration, body, damping, points)
    options = {"name": "branched_acrobot", "duration": duration, "body": body, "points": points, "starts": STARTS}
    return found(asked, lambda: search(asked, watch), optimise, WAYS.index(motion), **options)


def legs(solution: Solution | None = None) -> Array:
    """Return the control points of the legs' motion, (m, 2) [rad]; of the best one unless it is given."""
    return np.round((optimum() if solution is None else solution).spline.control_points, DECIMALS)


@ready
def build(
    sim: Simulation,
    controller: str = "prescribed",
    motion: BSpline | ArrayLike | str = "best",
    duration: float = DURATION,
    body: float = BODY,
    damping: float = 0.0,
    points: int = 12,
    offset: ArrayLike = 0.0,
    optimise: bool = False,
    watch: bool = False,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    controller : {"prescribed", "tvlqr", "open loop"}
        Whether the motion of the legs is prescribed, or torques follow it with feedback or without.
    motion : {"best", "other"}, array_like, (m, 2), or BSpline
        The motion found, or another of the motions that are the best near to them; or for "prescribed" a motion of
        the left and the right leg against the body [rad] that is given, by its control points or as a curve.
    duration : float
        How long the motion takes [s].
    body : float
        Where the body starts, at rest [rad].
    damping : float
        Of each joint [N m s/rad].
    points : int
        Control points of each leg's motion that is found.
    offset : float or array_like, (3,)
        How far the joints start beside the motion, under torques [rad].
    optimise : bool
        Whether to search also where the motion is known.
    watch : bool
        Whether a window shows the search.
    """
    option(controller, "controller", CONTROLLERS)
    solution = None
    if isinstance(motion, str):
        option(motion, "motion", WAYS)
        solution = optimum(motion, duration, body, damping, points, optimise, watch)
    elif controller != "prescribed":
        raise InvalidValue(
            "motion: a motion that is given can be prescribed only; the torques of those found are known"
        )
    bd = sim.blockdiagram(name="branched_acrobot")
    if controller == "prescribed" or solution is None:
        _prescribed(bd, motion if solution is None else legs(solution), duration, body, damping)
        return bd
    mech = library.branched_acrobot(damping=damping)
    laws = laws_along(mech, solution, np.array(UPRIGHT), R=1.0)
    replay(bd, mech, solution, laws, controller, offset, None, "Branched acrobot")
    bd.goal = Goal(UPRIGHT)
    return bd


def _prescribed(bd: Any, motion: Any, duration: float, body: float, damping: float) -> None:
    mech = library.branched_acrobot(damping=damping).with_drive(active=LEGS)
    spline = motion_of(bd, motion, duration, mech.active)
    q, qd, _ = spline.curve.evaluate(spline.curve.t0)
    plant = bd.HYBRIDDYNAMICS(mech, q0=[checks.real(body, "body"), *q], qd0=[0.0, *qd], name="plant")
    torques = bd.JOINTEFFORT(mech, name="torques")
    effort = bd.EFFORT(name="effort")
    bd.connect(spline[2], plant[0], torques[2])
    bd.connect(plant[0:2], torques[0:2])
    bd.connect(torques[1], effort)
    view(bd, mech, plant, "Branched acrobot")
    scope(bd, "scope_q", plant[0], mech.names, *ANGLES)
    scope(bd, "scope_tau", torques[1], mech.names, "Torques", "N m")
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s")
    propose(bd, 1.5 * spline.curve.duration)
