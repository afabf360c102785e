"""What a search found: the motion, why it ended there, and how far it keeps to what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.mechanism import checks
from cstormpy.optimal.constraints import JointLimit
from cstormpy.optimal.dense import dense
from cstormpy.optimal.inverse import Inverse
from cstormpy.optimal.kkt import kkt_residual
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.samples import Array, Samples
from cstormpy.trajectory import BSpline
from cstormpy.trajectory.checks import finite_array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.solving import Outcome

__all__ = ["Excess", "Solution"]

DENSER = 10
"""How many times denser than the limits were asked the motion is sampled for `Solution.excess`."""


@dataclass(frozen=True)
class Excess:
    """By how much a limit is exceeded between the samples, in its own unit; 0 where it is kept."""

    kind: str
    joint: str
    amount: float
    time: float
    unit: str

    def __repr__(self) -> str:
        where = f" in {self.joint} at {self.time:.4g} s" if self.amount > 0.0 else ""
        return f"{self.kind}: {self.amount:.3g} {self.unit}{where}"


class Solution:
    """A motion of least cost, as far as it was found.

    Attributes
    ----------
    problem : Problem
    x : ndarray
        The variables: free control points, and T where it is free.
    cost : float
    converged : bool
        Whether the solver says that it is a local minimum; `feasible`: whether all constraints hold.
    reason : str
        Why it stopped: "converged", or what was in the way.
    violation : float
        The largest violation of a scaled constraint at the samples.
    iterations, evaluations : int
        Of the start that won; `seconds` of the whole search.
    outcomes : tuple of Outcome
        What came of each start of each stage.
    solver : str
    """

    def __init__(
        self, problem: Problem, best: Outcome, outcomes: tuple[Outcome, ...], solver: str, seconds: float
    ) -> None:
        self.problem, self.outcomes, self.solver, self.seconds = problem, outcomes, solver, seconds
        self.x, self.cost, self.violation = best.x, best.cost, best.violation
        self.converged, self.reason, self.feasible = best.converged, best.reason, best.feasible
        self.iterations, self.evaluations = best.iterations, best.evaluations
        self.history = tuple(best.history)

    @property
    def duration(self) -> float:
        """T [s]."""
        return self.problem.transcription.duration(self.x)

    @cached_property
    def spline(self) -> BSpline:
        """The motion (or torque) of the joints on splines."""
        return self.problem.transcription.spline(self.x)

    @cached_property
    def samples(self) -> Samples:
        """The motion at the samples at which limits were asked."""
        t = self.problem.transcription
        found = t.evaluate(self.x)
        assert found is not None, "the best motion is finite"
        return found.samples.at(t.grid)

    def at(self, times: ArrayLike) -> Samples:
        """Return position, rate, acceleration and torque of all joints at times (N,) from 0 to T."""
        t = finite_array(times, "times", (None,))
        return dense(self.problem, self.spline, self.samples, np.clip(t, 0.0, self.duration))

    @cached_property
    def motion(self) -> BSpline:
        """The motion of all joints; integrated ones on a quintic spline through their steps."""
        mech = self.problem.mech
        if self.problem.inverse:
            return self.spline
        at = self.samples
        through = BSpline.interpolate(at.t, at.q, degree=5)
        return through.replace(names=mech.names)

    def tau(self, t: float) -> Array:
        """Return the torques of the motors, (n_a,), at a time; zeros before the start and after the end."""
        if not 0.0 <= checks.real(t, "t") <= self.duration:
            return np.zeros(len(self.problem.mech.actuated))
        return self.at([t]).tau[0, self.problem.mech.actuated_mask]

    @cached_property
    def kkt(self) -> float:
        """How far it is from the conditions of Karush, Kuhn and Tucker, relative to the gradient of the cost."""
        return kkt_residual(self._programme, self.x)

    @cached_property
    def _programme(self) -> Programme:
        return self.problem.programme(self.x)

    @cached_property
    def excess(self) -> tuple[Excess, ...]:
        """By how much each limit is exceeded at most, sampled ten times denser than it was asked."""
        t = self.problem.transcription
        count = t.grid.stop - 1
        at = self.at(np.linspace(0.0, self.duration, DENSER * count + 1))
        return tuple(self._excess_of(limit, at) for limit in self.problem.constraints if isinstance(limit, JointLimit))

    @staticmethod
    def _excess_of(limit: JointLimit, at: Samples) -> Excess:
        y = limit.values(at)
        over = np.maximum(np.maximum(y - limit.upper, limit.lower - y), 0.0)
        k, c = np.unravel_index(int(over.argmax()), over.shape)
        return Excess(limit.name, limit.columns[c], float(over[k, c]), float(at.t[k]), limit.units[c])

    @cached_property
    def dense_cost(self) -> float:
        """The cost with integrals from ten times as many samples, or from the same of a motion that was integrated."""
        if not self.problem.inverse:
            return self.cost
        finer = Inverse(self.problem.setup, 2, True, None, DENSER)
        return Programme(finer, self.problem.objective, (), *self.problem.bounds, self.x).cost(self.x)

    def plot(self, frames: int = 12) -> Figure:
        """Return a figure: joints, torques with their limits, frames of the motion, and the cost by iteration.

        The frames, at equal intervals of time as in the figures of the papers, begin light and end dark.
        """
        from cstormpy.optimal.plotting import draw

        return draw(self, checks.count(frames, "frames"))

    def __repr__(self) -> str:
        word = "converged" if self.converged else "NOT converged" if self.feasible else "INFEASIBLE"
        return f"<Solution: cost {self.cost:.8g}, T = {self.duration:.6g} s, {word}>"

    def __str__(self) -> str:
        """Return a table of all that matters."""
        rows = [
            ("cost", f"{self.cost:.8g}"),
            ("duration", f"{self.duration:.6g} s"),
            ("stopped", f"{self.reason} ({self.solver}, {self.iterations} iterations, {self.evaluations} motions)"),
            ("violation", f"{self.violation:.2e} at the samples{'' if self.feasible else ': INFEASIBLE'}"),
            ("KKT residual", f"{self.kkt:.2e}"),
        ]
        rows += [("between samples", repr(e)) for e in self.excess]
        if len(self.outcomes) > 1:
            rows.append(("starts", ", ".join(_brief(o) for o in sorted(self.outcomes, key=lambda o: o.rank)[:6])))
        rows.append(("time", f"{self.seconds:.3g} s"))
        return "\n".join(f"{name:<16} {text}" for name, text in rows)


def _brief(outcome: Outcome) -> str:
    return f"{outcome.cost:.6g}" if outcome.feasible else f"infeasible by {outcome.violation:.1e}"
