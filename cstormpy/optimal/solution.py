"""The solution of a search: the motion, why it ended there, and how far it keeps to what was asked."""

from __future__ import annotations

import html
import io
import os
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.optimal.inverse import Inverse
from cstormpy.optimal.kkt import kkt_residual
from cstormpy.optimal.residuals import Excess, dense
from cstormpy.optimal.samples import Array, Samples
from cstormpy.trajectory import BSpline
from cstormpy.trajectory.checks import finite_array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.starts import Outcome

__all__ = ["Excess", "Solution"]

TOLD = 1e-3
"""A table tells by how much a constraint is exceeded where it is by more than this part of what is allowed."""

AT_BOUND = 1e-6
"""A duration is at a bound that is nearer than this part of it."""


class Solution:
    """A motion of least cost, as far as it was found.

    Attributes
    ----------
    problem : Problem
    x : ndarray
        The variables: free control points, and T where it is free.
    cost : float
    converged : bool
        Whether the solver says that it is a local minimum, and it is feasible, its cost is that of the whole motion
        (see `dense_cost`), and the search was not stopped.
    reason : str
        Why it stopped: "converged", or what was in the way.
    feasible : bool
        Whether all constraints hold, between the samples too: whether `violation` is at most `feasibility`.
    violation : float
        The largest residual of a constraint at any time, as a part of its bound, or where that is zero of the
        characteristic size of its numbers.
    excess : tuple of Excess
        The residual of each number of each constraint, in its own unit, the worst first; of a motion that was
        integrated also how far twice as many steps end beside it.
    refined : dict
        The options of `problem` that were changed to make it feasible.
    iterations, evaluations : int
        Of the start that won; `seconds` of the whole search.
    outcomes : tuple of Outcome
        What came of each start of each stage.
    solver : str
    """

    def __init__(
        self, problem: Problem, best: Outcome, outcomes: tuple[Outcome, ...], solver: str, seconds: float
    ) -> None:
        self.problem = problem if best.problem is None else best.problem
        self.outcomes, self.solver, self.seconds = outcomes, solver, seconds
        self.x, self.cost = best.x, best.cost
        self.violation, self.feasibility, self.excess = best.violation, best.feasibility, best.excess
        self.converged, self.reason, self.feasible = best.converged, best.reason, best.feasible
        self.refined = dict(best.changes)
        self._stopped, self._chosen = "", best.chosen
        self.iterations, self.evaluations = best.iterations, best.evaluations
        self.history = tuple(best.history)

    def stop(self, why: str, when: str) -> None:
        """Note that the search was stopped before its end."""
        self._stopped = f"{why}, {when}; the best of them: {self.reason}"
        self.converged, self.reason = False, why

    @property
    def duration(self) -> float:
        """T [s]."""
        return self.problem.transcription.duration(self.x)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that moves: the designed one where there are design variables."""
        return self.samples.mech

    @property
    def parameters(self) -> dict[str, float]:
        """The design variables by their names, empty where there are none."""
        return self.samples.design

    @cached_property
    def spline(self) -> BSpline:
        """The motion (or torque) of the joints on splines; behind them, twice integrated, multipliers of cuts."""
        return self.problem.transcription.spline(self.x)

    @cached_property
    def samples(self) -> Samples:
        """The motion at the samples at which limits were asked."""
        t = self.problem.transcription
        found = t.evaluate(self.x)
        assert found is not None, "the best motion is finite"
        return found.samples.at(t.grid)

    def at(self, times: ArrayLike) -> Samples:
        """Return position, rate, acceleration and torque of all joints at times (N,), or at a time (N = 1).

        Times before the start or after the end are taken as these.
        """
        t = finite_array(times if np.ndim(times) else np.array([times]), "times", (None,))
        return dense(self.problem, self.spline, self.samples, np.clip(t, 0.0, self.duration))

    @cached_property
    def motion(self) -> BSpline:
        """The motion of all joints; those integrated, or following from others, on a spline through what they do."""
        t = self.problem.transcription
        if isinstance(t, Inverse):
            return t.motion(self.x)
        at = self.samples
        return BSpline.interpolate(at.t, at.q, degree=5).replace(names=self.problem.mech.names)

    def tau(self, t: ArrayLike) -> Array:
        """Return the torques of the motors, (n_a,), at a time, or (N, n_a) at times; zeros before and after."""
        times = np.array([checks.real(t, "t")]) if np.ndim(t) == 0 else finite_array(t, "t", (None,))
        within = (times >= 0.0) & (times <= self.duration)
        found = np.zeros((len(times), len(self.problem.mech.actuated)))
        if within.any():
            found[within] = self.at(times[within]).tau[:, self.problem.mech.actuated_mask]
        return found if np.ndim(t) else found[0]

    #: As TVLQR asks of a function: that it takes many times at once.
    tau.takes_times = True  # type: ignore[attr-defined]

    @cached_property
    def kkt(self) -> float:
        """Residual of the conditions of Karush, Kuhn and Tucker, relative to the gradient of the cost."""
        scaled = self.problem.scaled(self.problem.programme(self.x))
        return kkt_residual(scaled, self.x / scaled.sizes)

    @cached_property
    def dense_cost(self) -> float:
        """The cost with integrals from ten times as many samples, or from twice as many steps."""
        return self.problem.dense_cost(self.x)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution, with the design variables by name, into a file of JSON."""
        from cstormpy.optimal.solution_cache import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], problem: Problem) -> Solution:
        """Return the solution of a problem that a file holds, after the problem has confirmed cost and feasibility.

        Raises
        ------
        FileFormatError
            For the solution of another problem, or no solution at all.
        """
        from cstormpy.optimal.solution_cache import load

        return load(problem, path)

    def plot(self, frames: int = 12) -> Figure:
        """Return a figure of pyplot's: joints, torques with their limits, frames of the motion, the cost by iteration.

        The frames, at equal intervals of time as in the figures of the papers, begin light and end dark.
        """
        from cstormpy.optimal.plotting import draw

        return draw(self, checks.count(frames, "frames"))

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: its figure and its table."""
        import matplotlib.pyplot as plt

        from cstormpy.linkage.picture import image

        figure, drawn = self.plot(), io.StringIO()
        plt.close(figure)  # which a notebook would show once more
        figure.savefig(drawn, format="svg")
        return f"<div>{image(drawn.getvalue(), repr(self))}</div><pre>{html.escape(str(self))}</pre>"

    def _end_of_durations(self) -> str:
        """Return whether a free duration is at one of its bounds, in words."""
        problem, near = self.problem, AT_BOUND * self.duration
        if not problem.free_duration:
            return ""
        if self.duration <= problem.low_duration + near:
            return ", the shortest that is allowed"
        return ", the longest that is allowed" if self.duration >= problem.high_duration - near else ""

    def __repr__(self) -> str:
        word = "converged" if self.converged else "NOT converged" if self.feasible else "INFEASIBLE"
        stopped = self._stopped.partition(";")[0]
        if stopped:
            word = stopped.upper() if self.feasible else f"INFEASIBLE, {stopped}"
        return f"<Solution: cost {self.cost:.8g}, T = {self.duration:.6g} s, {word}>"

    def __str__(self) -> str:
        """Return a table of all that matters."""
        effort = f"{self.solver}, {self.iterations} iterations, {self.evaluations} motions"
        rows = [
            ("cost", f"{self.cost:.8g}"),
            ("duration", f"{self.duration:.6g} s{self._end_of_durations()}"),
            ("stopped", f"{self._stopped or self.reason} ({effort})"),
            ("violation", f"{self.violation:.2e}, at most {self.feasibility:g}{': INFEASIBLE' * (not self.feasible)}"),
            ("KKT residual", f"{self.kkt:.2e}"),
        ]
        if self._chosen:
            rows.insert(3, ("solver", f"{self.solver}: {self._chosen}"))
        rows += [(name, f"{value:.6g}") for name, value in self.parameters.items()]
        exceeded = [e for e in self.excess if e.amount > 0.0 and e.relative > TOLD * self.feasibility]
        rows += [("exceeded by", repr(e)) for e in exceeded]
        missed = {e.kind for e in exceeded}
        kept = dict.fromkeys(e.kind for e in self.excess if e.kind not in missed)
        if kept:
            rows.append(("kept at any time", ", ".join(kept)))
        if len(self.outcomes) > 1:
            rows.append(("starts", ", ".join(_brief(o) for o in sorted(self.outcomes, key=lambda o: o.rank)[:6])))
        rows.append(("time", f"{self.seconds:.3g} s"))
        return "\n".join(f"{name:<16} {text}" for name, text in rows)


def _brief(outcome: Outcome) -> str:
    return f"{outcome.cost:.6g}" if outcome.feasible else f"infeasible by {outcome.violation:.1e}"
