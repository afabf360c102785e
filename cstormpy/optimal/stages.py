"""Stages of a search from coarse to fine, and how a motion is carried from one problem to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cstormpy import checks
from cstormpy.optimal.guesses import followed
from cstormpy.optimal.samples import Array
from cstormpy.optimal.transcription import phase_curve

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
        if problem.guess is not None:
            changed["guess"] = phase_curve(problem.knots, problem.degree, problem.setup.width).replace(
                control_points=problem.guess
            )
        made = problem.replace(**changed) if changed else problem
        return made if self.penalty == 1.0 else made.scaled_penalties(checks.positive(self.penalty, "penalty"))


def _refined(before: Problem, points: int) -> Array | None:
    """Return the knots with so many control points into which the motion of a stage fits; None if they are fewer."""
    if points < before.options.points:
        return None
    return phase_curve(before.knots, before.degree, 1).refine(points).knots


def carried(problem: Problem, x: Array, onto: Problem) -> Array:
    """Return the variables of another problem that move as x moves this one."""
    unit = problem.transcription.spline(x)
    points = followed(unit, onto, len(onto.knots) - onto.degree - 1)
    T = min(max(problem.transcription.duration(x), onto.low_duration), onto.high_duration)
    return onto.transcription.variables(points, T, x[problem.transcription.of_design])
