"""One start of a search: a solver's run from a guess, its answer measured, and refined where it is infeasible.

Refinement: more samples, knots or steps where a motion misses its constraints between them.

Inequalities are asked at the peaks as well (the exchange method for semi-infinite programmes), equations at new knots
in the segments where they are missed (of a cubic, half the length leaves a quarter of the residual), and what was
integrated gets steps that end at the knots, or twice as many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import NonFinite
from cstormpy.optimal.blas import one_thread
from cstormpy.optimal.checking import wrong_gradient
from cstormpy.optimal.gauss_newton import solve_gauss_newton
from cstormpy.optimal.ipopt import has_ipopt, solve_ipopt
from cstormpy.optimal.problem_arguments import fitting_steps, held_by_the_box
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.residuals import FEASIBILITY, INTEGRATION, Excess, Residuals, residuals
from cstormpy.optimal.samples import Array
from cstormpy.optimal.slsqp import DEPENDENT, solve_slsqp
from cstormpy.optimal.stages import carried

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem

KEPT, NEAR = 1e-6, 0.1
"""Largest violation of a scaled constraint at the samples at which a solver keeps it; so large a part of what is
feasible will do where it has not come that far, as the best point before may be the guess."""

INTERRUPTED = "interrupted"
"""The reason of a search, or of a start, that Ctrl-C ended."""

STOPPED = "stopped by the user"
"""The reason of one that a callback, or a window, stopped between two iterations."""

SOLVERS = {"slsqp": solve_slsqp, "gauss-newton": solve_gauss_newton, "ipopt": solve_ipopt}

STUCK = ("no descent", "no gain")
HINT = "; check_gradients() tells whether a gradient of your own is wrong"
"""Advice for a search that came to no minimum although its gradients promised descent."""

STALL, GAIN = 150, 1e-7
"""SLSQP is stopped after so many iterations without a gain of this part."""

NEARLY = 0.1
"""Violation of a scaled constraint below which the cost of a point says something."""

MANY_VARIABLES, MANY_OF_DRIVEN = 120, 40
"""Above this many variables the Gauss-Newton method is taken for sums of squares, else Ipopt where it is installed.

Above the second it is where all joints are driven: nothing but bounds then bends the set of motions.
"""

UNRESOLVED, NOTHING = 0.05, 1e-6
"""A cost that differs by more than the first part from that with finer integrals is none of the motion; below the
second part of its size at the guess it is zero."""

ENDLESS = 1e9
"""A cost that is below zero by so many of its sizes at the guess has no minimum."""

MOST_ROUNDS, MOST_WORSE = 10, 3
"""Most refinements of a start, and most by more knots after which constraints were missed by no less than at best."""


@dataclass(frozen=True)
class Accuracy:
    """Tolerances of an answer, and whether it is refined; see `Problem.solve`."""

    tolerance: float = 1e-8
    feasibility: float = FEASIBILITY
    refine: bool = True


@dataclass(frozen=True)
class Progressed:
    """The state of a search after an iteration, as a callback gets it."""

    start: int
    iteration: int
    cost: float
    violation: float
    x: Array
    seconds: float
    problem: Problem


@dataclass(eq=False)
class Outcome:
    """The outcome of one start.

    Attributes
    ----------
    start : int
    x : ndarray
        The variables of `problem`, which differs from the one that was asked where it was refined, by `changes`.
    cost : float
    violation : float
        The largest residual of a constraint, as a part of its scale, between the samples too.
    feasibility : float
        The largest violation of a motion that is feasible.
    converged : bool
    reason : str
    sampled : float
        The violation at the samples, as the solver saw it.
    excess : tuple of Excess
        The residuals of all constraints, the worst first.
    """

    start: int
    x: Array
    cost: float
    violation: float
    converged: bool
    reason: str
    sampled: float = np.inf
    feasibility: float = FEASIBILITY
    excess: tuple[Excess, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    problem: Problem | None = None
    solver: str = ""
    chosen: str = ""  # why this solver, where it is not the usual one
    iterations: int = 0
    evaluations: int = 0
    not_finite: int = 0
    seconds: float = 0.0
    history: list[tuple[float, float]] = field(default_factory=list)

    @property
    def feasible(self) -> bool:
        """True where all constraints hold, between the samples too."""
        return self.violation <= self.feasibility

    @property
    def rank(self) -> tuple[bool, float]:
        """The key by which outcomes are ranked: feasible ones by cost, the others by violation."""
        return (False, self.cost) if self.feasible else (True, self.violation)

    @property
    def sampled_rank(self) -> tuple[bool, float]:
        """The rank as the solver sees it, at the samples alone: that of iterates, and of coarse stages."""
        return (False, self.cost) if self.is_kept else (True, self.sampled)

    @property
    def is_kept(self) -> bool:
        """True where the constraints hold at the samples."""
        return self.sampled <= max(KEPT, NEAR * self.feasibility)

    @property
    def ended(self) -> bool:
        """True where it came to its own end."""
        return self.reason not in (INTERRUPTED, STOPPED)

    def take_counts(self, other: Outcome) -> None:
        """Take what another one of the same start has counted, and what it has seen."""
        for name in ("iterations", "evaluations", "not_finite", "history"):
            setattr(self, name, getattr(other, name))

    def measure(self, problem: Problem) -> Residuals:
        """Set what follows from the residuals in its problem, and return them."""
        self.problem = problem
        found = residuals(problem, self.x)
        self.violation, self.excess = found.worst, found.excess
        return found


class _Stopped(Exception):
    """Raised inside of a solver to leave it."""


class _Stall:
    """Ends a start that gets no better.

    Better is a better rank, or, nearly feasible as the points are that follow curved equations, a lower cost to which
    the violation is added.
    """

    def __init__(self, most: int, size: float) -> None:
        self.most, self.size, self.since = most, size, 0
        self.rank, self.merit = (True, np.inf), np.inf

    def look(self, best: Outcome, here: Outcome) -> None:
        """Count the iterations without a gain."""
        violated, value = best.sampled_rank
        gained = (violated, 0.0) < (self.rank[0], 0.0) or self.rank[1] - value > GAIN * abs(value)
        if gained:
            self.rank = best.sampled_rank
        merit = here.cost + max(self.size, abs(here.cost)) * here.sampled
        if here.sampled <= NEARLY and self.merit - merit > GAIN * abs(merit):
            self.merit, gained = merit, True
        self.since = 0 if gained else self.since + 1
        if self.since >= self.most:
            raise _Stopped(f"no gain in {self.most} iterations")


@dataclass
class Orders:
    """Settings of the search from one start; `final` is the last stage of a search, whose answers are refined."""

    solver: str
    iterations: int
    accuracy: Accuracy = Accuracy()
    final: bool = True
    watch: Callable[[Progressed], bool] | None = None

    def solver_for(self, problem: Problem, programme: Programme) -> tuple[str, str]:
        """Return which solver takes a problem, and why where it is not the usual one."""
        if self.solver != "auto":
            return self.solver, ""
        driven = problem.mech.actuated_mask.all() and not problem.mech.loops
        if programme.n <= (MANY_OF_DRIVEN if driven else MANY_VARIABLES):
            return "slsqp", ""
        if problem.inverse and programme.of_squares:
            return "gauss-newton", f"{programme.n} variables, and the cost is a sum of squares"
        if programme.n <= MANY_VARIABLES:
            return "slsqp", ""
        return ("ipopt", f"{programme.n} variables") if has_ipopt() else ("slsqp", "")


def run_start(problem: Problem, x0: Array, start: int, orders: Orders) -> Outcome:
    """Run a solver from x0, refine, and return the best; a function of the module, for other processes."""
    begin, asked = time.perf_counter(), problem
    best = last = _solved(problem, x0, start, orders, begin)
    found, worse = last.measure(problem), 0
    refine = orders.accuracy.refine and orders.final
    for _ in range(MOST_ROUNDS if refine else 0):
        if last.feasible or not last.ended or not last.is_kept or worse == MOST_WORSE:
            break
        changes = refinement(problem, found, orders.accuracy.feasibility)
        if not changes:
            break
        finer = problem.replace(**changes)
        try:
            run = _solved(finer, carried(problem, last.x, finer), start, orders, begin, last)
        except NonFinite as error:  # between the samples; what was found so far says by how much
            best.reason = str(error)
            break
        problem, last = finer, run
        last.changes = {**last.changes, **changes}
        found = last.measure(problem)
        best, worse = (last, 0) if last.rank <= best.rank else (best, worse + ("knots" in changes))
    if best is not last:
        best.take_counts(last)
        best.reason = f"{best.reason}; refined further it was missed by more" if last.ended else last.reason
    _judge(asked, best, x0)
    if not best.feasible and orders.final:
        best = _guess_if_feasible(asked, x0, best)
    best.seconds = time.perf_counter() - begin
    return best


def _solved(
    problem: Problem, x0: Array, start: int, orders: Orders, begin: float, before: Outcome | None = None
) -> Outcome:
    """Return what a solver finds; where it was chosen for the problem and is stuck, the other one goes on if it can."""
    found = _Run(problem, x0, start, orders, begin, before).outcome
    other = ""
    if found.solver == "gauss-newton" and found.reason.startswith(STUCK) and found.x.size <= MANY_VARIABLES:
        other = "slsqp"
    elif found.solver == "slsqp" and (found.reason == DEPENDENT or (found.reason.startswith(STUCK) and found.is_kept)):
        other = "gauss-newton"
    if orders.solver != "auto" or not other:
        return found
    second = _Run(problem, found.x, start, replace(orders, solver=other), begin, found).outcome
    second.chosen = f"{found.solver} ended with: {found.reason.partition(';')[0]}"
    return second


def _guess_if_feasible(asked: Problem, x0: Array, found: Outcome) -> Outcome:
    """Return the guess where it is feasible and what the search found is not, else that."""
    programme = asked.programme(x0)
    guess = _at(programme, np.clip(x0, programme.low, programme.high), found)
    if not guess.is_kept:
        return found
    guess.measure(asked)
    if not guess.feasible:
        return found
    guess.take_counts(found)
    guess.solver, guess.chosen = found.solver, found.chosen
    guess.reason = f"this is the guess; what was found is {found.reason}" if found.ended else found.reason
    return guess


class _Run:
    """A solver's run, which goes on from an outcome of a coarser problem where there is one."""

    def __init__(
        self, problem: Problem, x0: Array, start: int, orders: Orders, begin: float, before: Outcome | None = None
    ) -> None:
        self.problem, self.orders, self.begin = problem, orders, begin
        self.programme = problem.programme(x0)
        x = np.clip(x0, self.programme.low, self.programme.high)
        feasibility = orders.accuracy.feasibility
        self.outcome = Outcome(start, x, np.inf, np.inf, False, STOPPED, feasibility=feasibility)
        if before is not None:
            self.outcome.take_counts(before)
            self.outcome.changes = before.changes
        self.scaled = problem.scaled(self.programme)
        self.outcome.solver, self.outcome.chosen = orders.solver_for(problem, self.programme)
        self.solver = self.outcome.solver
        most = STALL if self.solver == "slsqp" else orders.iterations
        self.stall = _Stall(most, self.scaled.cost_size)
        self._run()

    def _run(self) -> None:
        best, orders, programme = self.outcome, self.orders, self.programme
        try:
            with one_thread():
                self._consider(best.x)
                solve, sizes = SOLVERS[self.solver], self.scaled.sizes
                z, best.converged, best.reason, _ = solve(
                    self.scaled, best.x / sizes, orders.iterations, orders.accuracy.tolerance, self._after_iteration
                )
                _settle(programme, np.clip(z * sizes, programme.low, programme.high), best)
        except _Stopped as ended:
            best.reason = str(ended) or best.reason
        except KeyboardInterrupt:
            best.reason = INTERRUPTED
        best.evaluations += programme.evaluations
        best.not_finite += programme.not_finite

    def _consider(self, x: Array) -> Outcome:
        best = self.outcome
        here = _at(self.programme, x, best)
        if here.sampled_rank < best.sampled_rank:
            best.x, best.cost, best.sampled = here.x, here.cost, here.sampled
        return here

    def _after_iteration(self, z: Array) -> None:
        best, watch = self.outcome, self.orders.watch
        here = self._consider(z * self.scaled.sizes)
        self.stall.look(best, here)
        best.iterations += 1
        best.history.append((here.cost, here.sampled))
        if watch is not None:
            spent = time.perf_counter() - self.begin
            now = Progressed(best.start, best.iterations, here.cost, here.sampled, here.x, spent, self.problem)
            if watch(now):
                raise _Stopped


def _at(programme: Programme, x: Array, best: Outcome) -> Outcome:
    """Return a point as an outcome of the same start as the best."""
    cost, violation = programme.cost(x), programme.violation(x)
    return Outcome(best.start, np.array(x), cost, np.inf, False, "", violation, best.feasibility)


def _settle(programme: Programme, x: Array, best: Outcome) -> None:
    """Take the solver's answer, unless a point on its way was better."""
    last = _at(programme, x, best)
    if last.sampled_rank <= best.sampled_rank or (last.is_kept and best.converged):
        best.x, best.cost, best.sampled = last.x, last.cost, last.sampled
        best.history.append((best.cost, best.sampled))
    else:
        best.converged = False


def _judge(asked: Problem, best: Outcome, x0: Array) -> None:
    """Say of an outcome that it has not converged where it is infeasible, held by the box, or a gradient is wrong."""
    if not best.ended:
        best.converged = False
        return
    if asked.has_own_gradients and best.problem is not None:
        wrong = wrong_gradient(asked, x0) or wrong_gradient(best.problem, best.x)
        if wrong:
            best.converged, best.reason = False, f"{wrong}{HINT}"
        elif best.reason.startswith(STUCK):
            best.reason += HINT
    if best.cost < -ENDLESS * asked.scaled(asked.programme(x0)).cost_size:
        best.converged = False
        best.reason = f"the cost falls without end, to {best.cost:.3g}; give limits, or no term a negative weight"
    if best.feasible and best.problem is not None:
        dense, size = best.problem.dense_cost(best.x), best.problem.scaled(best.problem.programme(best.x)).cost_size
        if not abs(dense - best.cost) <= UNRESOLVED * max(abs(dense), abs(best.cost), NOTHING * size):
            before, finer = "" if best.converged else f"; {best.reason}", "points" if best.problem.inverse else "steps"
            best.converged = False
            best.reason = (
                f"the integrals of the cost are too coarse: {best.cost:.4g}, and {dense:.4g} if they are finer; give "
                f"more {finer}=, another guess=, or a cost for fast motions{before}"
            )
    if best.converged and best.feasible and best.problem is not None:
        held = held_by_the_box(best.problem, best.x)
        if held:
            best.converged, best.reason = False, held
    if not best.feasible:
        best.converged = False
        worst = best.excess[0]
        where = f"{worst.joint} " if worst.joint else ""
        when = f"{where}at {worst.time:.4g} s"
        best.reason = f"infeasible: {worst.kind} is missed by {worst.amount:.3g}; {when}; {best.reason}"


MARGIN = 0.2
"""Peaks above this part of the tolerance become samples."""

CLOSE = 1e-7
"""Samples nearer than this are one."""

STRONGLY = 16.0
"""Tolerances by which an equation is missed where a segment is cut into four, else into two."""

MOST_VARIABLES, MOST_STEPS = 700, 16_000
"""Control points of all splines, and steps, up to which it is refined."""


def refinement(problem: Problem, found: Residuals, tolerance: float) -> dict[str, Any]:
    """Return the options that change, for residuals beyond the tolerance; none where nothing helps."""
    changes = _knots(problem, found.equations, tolerance)
    if problem.inverse:
        changes.update(_samples(problem, found.peaks, tolerance, changes.get("knots", problem.knots)))
        return changes
    exceeded = (found.peaks[:, 1] > tolerance).any() or found.exceeds(INTEGRATION, tolerance)
    have = len(problem.transcription.phases) - 1
    steps = fitting_steps(changes.get("knots", problem.knots), have, problem.asked_phases)
    steps = steps if steps > have else 2 * have
    if (changes or exceeded or found.worst > tolerance) and steps <= MOST_STEPS:
        changes["steps"] = steps
    return changes


def _samples(problem: Problem, peaks: Array, tolerance: float, knots: Array) -> dict[str, Any]:
    """Return the samples with those where limits are exceeded, and those that new segments need.

    A segment that none stands in could exceed a limit by any amount, unseen by the solver.
    """
    t = problem.transcription
    have = t.phases[t.grid]
    exceeded = peaks[:, 1] > MARGIN * tolerance if (peaks[:, 1] > tolerance).any() else np.zeros(len(peaks), bool)
    new = np.union1d(peaks[exceeded, 0], _in_new_segments(problem.knots, knots))
    new = np.array([phase for phase in new if np.abs(have - phase).min() > CLOSE])
    return {"samples": np.union1d(have, new)} if len(new) else {}


def _in_new_segments(before: Array, after: Array) -> Array:
    """Return the knots that are new, and the middles of the segments between them."""
    breaks = np.unique(after)
    new = ~np.isin(breaks, before)
    beside = new[1:] | new[:-1]
    return np.concatenate([breaks[new], 0.5 * (breaks[1:] + breaks[:-1])[beside]])


def _knots(problem: Problem, equations: Array, tolerance: float) -> dict[str, Any]:
    missed = equations[equations[:, 1] > tolerance]
    if not len(missed):
        return {}
    breaks = np.unique(problem.knots)
    segment = np.clip(np.searchsorted(breaks, missed[:, 0], side="right") - 1, 0, len(breaks) - 2)
    worst = np.zeros(len(breaks) - 1)
    np.maximum.at(worst, segment, missed[:, 1])
    new: list[float] = []
    for k in np.flatnonzero(worst):
        pieces = 4 if problem.inverse and worst[k] > STRONGLY * tolerance else 2
        new += np.linspace(breaks[k], breaks[k + 1], pieces + 1)[1:-1].tolist()
    points = problem.options.points + len(new)
    if points * problem.setup.width > MOST_VARIABLES:
        return {}
    return {"knots": np.sort(np.concatenate([problem.knots, new])), "points": points, "collocation": None}
