"""Stages of a search from coarse to fine, guesses, and motions carried from one problem to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy import checks
from cstormpy.errors import InvalidType, ShapeError, shown
from cstormpy.optimal.loop_problems import closed_points
from cstormpy.optimal.samples import Array
from cstormpy.optimal.transcription import phase_curve
from cstormpy.trajectory import BSpline, cubic
from cstormpy.trajectory.checks import finite_array
from cstormpy.trajectory.fitting import gauss_sites

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem


@dataclass(frozen=True)
class Stage:
    """One stage of a search from coarse to fine; what is not given stays as the problem has it.

    Parameters
    ----------
    points : int, optional
        Control points of each spline.
    penalty : float
        Factor on the weights of the `Terminal` terms.
    exact : bool
        Make equations of the `Terminal` terms instead.
    options : mapping, optional
        Further options of the problem, as ``{"samples": 401}``.
    """

    points: int | None = None
    penalty: float = 1.0
    exact: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def of(self, problem: Problem, before: Problem | None = None) -> Problem:
        """Return the problem as this stage has it; knots are inserted into those of the stage before."""
        changed = dict(self.options)
        if self.points is not None:
            changed["points"] = self.points
            if before is not None and before.degree == problem.degree:
                changed["knots"] = _refined(before, self.points)
        elif before is not None:
            changed.update(points=before.options.points, knots=before.knots)
        if self.exact:
            changed["exact"] = True
        made = problem.replace(**changed) if changed else problem
        return made if self.penalty == 1.0 else made.scaled_penalties(checks.positive(self.penalty, "penalty"))


def _refined(before: Problem, points: int) -> Array | None:
    """Return the knots with so many control points into which the motion of a stage fits; None if they are fewer."""
    if points < before.options.points:
        return None
    return phase_curve(before.knots, before.degree, 1).refine(points).knots


def carried(problem: Problem, x: Array, onto: Problem) -> Array:
    """Return the variables of another problem that move as x moves this one."""
    points = followed(problem.transcription.spline(x), onto, len(onto.knots) - onto.degree - 1)
    T = min(max(problem.transcription.duration(x), onto.low_duration), onto.high_duration)
    return onto.transcription.variables(points, T, x[problem.transcription.of_design])


WAVES = 3
"""Half waves that are added to a guess."""

SPREAD = 3.0
"""Their size [rad], in lengths of the mechanism where a joint slides, unless it is given; torques have their own."""


def guessed_points(problem: Problem) -> Array:
    """Return the control points (m, width) of the cubic from the start to the end, at rest at both.

    A joint that is free at one end stays where it is at the other; at zero if both are free. Torques go from those that
    hold the start to those that hold the end; with loops they are zero, and the motion is the nearest closed one.
    """
    if problem.mech.loops and problem.inverse and problem.freedoms is None:
        return closed_points(problem)
    first, last = problem.start.q, problem.end.q
    first, last = np.where(np.isnan(first), last, first), np.where(np.isnan(last), first, last)
    ends = np.nan_to_num(np.stack([first, last]))
    if not problem.inverse:
        ends = np.where(problem.mech.active_mask, ends, _holding(problem, ends))
    m = len(problem.knots) - problem.degree - 1
    first, last = ends[:, problem.driven]
    return followed(cubic(first, last, 1.0), problem, m)


def _holding(problem: Problem, q: Array) -> Array:
    """Return the torques (N, n) that hold postures, without loops."""
    if problem.mech.loops:
        return np.zeros_like(q)
    nothing, loads = np.zeros_like(q), [load for _, load in problem.loads]
    return problem.guessed_mech.inverse_dynamics(q, nothing, nothing, wrench=loads)


def random_points(problem: Problem, rng: np.random.Generator) -> Array:
    """Return what is added to the control points of a guess, (m, n_driven): waves of random size."""
    s = problem.setup.greville[:, None, None]
    count = np.arange(1, WAVES + 1)
    sizes = rng.uniform(-1.0, 1.0, (problem.setup.width, WAVES)) / np.sqrt(count)
    sizes_of, moved, given = problem.setup.column_sizes, problem.setup.moved, problem.options.spread
    natural = sizes_of * np.append(np.where(moved, SPREAD, 1.0), np.ones(len(sizes_of) - len(moved)))
    spread = natural if given is None else np.append(np.full(len(moved), given), natural[len(moved) :])
    points = spread * (sizes * np.sin(np.pi * count * s)).sum(axis=2)
    if not problem.inverse:
        torques = ~problem.mech.active_mask[problem.driven]
        limits = [limit for limit in problem.limits if limit.kind == "torque"]
        for c in np.flatnonzero(torques):
            j = problem.driven[c]
            if limits and j in limits[0].joints:
                k = list(limits[0].joints).index(j)
                half = 0.5 * float(limits[0].upper[k] - limits[0].lower[k])
                points[:, c] *= half / spread[c] if np.isfinite(half) else 1.0
    return np.asarray(points)


def read_guess(guess: Any, problem: Problem) -> Array | None:
    """Return the control points (m, n_driven) of a guess that was given; None if there is none."""
    if guess is None:
        return None
    m, n = len(problem.knots) - problem.degree - 1, problem.setup.width
    if isinstance(guess, BSpline):
        return followed(_with_torques(guess, problem), problem, m)
    if isinstance(guess, str) or not hasattr(guess, "__iter__"):
        raise InvalidType(f"guess: expected a BSpline, as solution.motion, or control points, got {shown(guess)}")
    points = finite_array(guess, "guess", (m, n), "control points of the joints on splines")
    knots = problem.options.knots
    # of knots beyond the ends, which the problem moves there, they are others of the same spline
    return points if knots is None else followed(phase_curve(knots, problem.degree, n, points), problem, m)


def _with_torques(curve: BSpline, problem: Problem) -> BSpline:
    """Return a motion of all joints as one of those on splines, some of which are of the torques that make it."""
    torques, mech = problem.driven[~problem.setup.moved], problem.mech
    if not len(torques) or curve.n != mech.n or curve.n == problem.setup.width:
        return curve
    unit = curve.with_start(0.0).with_duration(problem.duration_guess)
    times, _ = gauss_sites(problem.duration_guess * np.unique(problem.knots), problem.degree + 1)
    q, qd, qdd = unit.evaluate(times)
    base = None if problem.base is None else problem.base.pair(times)
    tau = mech.inverse_dynamics(q, qd, qdd, wrench=[load for _, load in problem.loads], base=base)
    q[:, torques] = tau[:, torques]
    knots = problem.duration_guess * problem.knots
    return BSpline.fit(times, q[:, problem.driven], knots=knots, degree=problem.degree)


def followed(curve: BSpline, problem: Problem, m: int) -> Array:
    """Return the control points of the spline that follows a motion, with the phases of its own time."""
    n, loops = problem.setup.width, problem.setup.loops
    if loops is not None and curve.n == problem.mech.n < n:
        nothing = np.zeros((len(curve.control_points), n - curve.n))
        curve = curve.replace(control_points=np.hstack([curve.control_points, nothing]), names=None)
    if curve.n == problem.mech.n and n != problem.mech.n:
        curve = curve.replace(control_points=curve.control_points[:, problem.driven], names=None)
    if curve.n != n:
        raise ShapeError(f"guess: expected a motion of {n} or {problem.mech.n} joints, got one of {curve.n}")
    unit = curve.with_start(0.0).with_duration(1.0)
    same = unit.degree == problem.degree and len(unit.knots) == len(problem.knots)
    if same and np.allclose(unit.knots, problem.knots, atol=1e-12):
        return unit.control_points.copy()
    return BSpline.from_curve(unit, knots=problem.knots, degree=problem.degree).control_points.copy()
