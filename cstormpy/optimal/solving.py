"""The search: several starts side by side, stages from coarse to fine, and the best of what was found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.dynamics.running import thread_count
from cstormpy.errors import CstormError, InvalidType, InvalidValue, unknown_name
from cstormpy.mechanism import checks
from cstormpy.optimal.blas import one_thread
from cstormpy.optimal.ipopt import has_ipopt, solve_ipopt
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.progress import SearchLine
from cstormpy.optimal.samples import Array
from cstormpy.optimal.slsqp import solve_slsqp
from cstormpy.optimal.transcription import phase_curve
from cstormpy.optimal.watching import viewer_of

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.solution import Solution

__all__ = ["FEASIBLE", "Outcome", "Progressed", "Search", "Stage"]

FEASIBLE = 1e-6
"""Largest violation of a scaled constraint that counts as none."""

MANY_VARIABLES = 120
"""Above this many variables Ipopt is taken where it is installed."""

INTERRUPTED = "interrupted"
"""The reason of a search that Ctrl-C ended within an iteration."""

STOPPED = "stopped by the user"
"""The reason of a search that a callback, or Ctrl-C, stopped between two iterations."""

STUCK = ("no descent", "no gain")
HINT = "; check_gradients() tells whether a gradient of your own is wrong"
"""What a search may be told that came to no minimum although its gradients promised descent."""

PATIENCE = 0.2
"""Seconds between two looks whether the starts have ended."""

STALL, GAIN = 150, 1e-7
"""SLSQP is stopped after so many iterations without a gain of this part."""

NEARLY = 0.1
"""Violation of a scaled constraint below which the cost of a point says something."""

SOLVERS = ("auto", "slsqp", "ipopt")


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
            if before is not None and before.options.degree == problem.options.degree:
                changed["knots"] = _refined(before, self.points)
        elif before is not None:
            changed.update(points=before.options.points, knots=before.knots)
        if self.exact:
            changed["exact"] = True
        if problem.guess is not None:
            changed["guess"] = phase_curve(problem.knots, problem.options.degree, len(problem.driven)).replace(
                control_points=problem.guess
            )
        made = problem.replace(**changed) if changed else problem
        return made if self.penalty == 1.0 else made.scaled_penalties(checks.positive(self.penalty, "penalty"))


def _refined(before: Problem, points: int) -> Array | None:
    """Return the knots with so many control points into which the motion of a stage fits; None if they are fewer."""
    if points < before.options.points:
        return None
    return phase_curve(before.knots, before.options.degree, 1).refine(points).knots


@dataclass(frozen=True)
class Progressed:
    """What a callback is told after an iteration."""

    start: int
    iteration: int
    cost: float
    violation: float
    x: Array
    seconds: float
    problem: Problem


@dataclass(eq=False)
class Outcome:
    """What came of one start."""

    start: int
    x: Array
    cost: float
    violation: float
    converged: bool
    reason: str
    iterations: int = 0
    evaluations: int = 0
    not_finite: int = 0
    seconds: float = 0.0
    history: list[tuple[float, float]] = field(default_factory=list)

    @property
    def feasible(self) -> bool:
        """Whether all constraints hold."""
        return self.violation <= FEASIBLE

    @property
    def rank(self) -> tuple[bool, float]:
        """What the best has least of: feasible ones by cost, the others by violation."""
        return (False, self.cost) if self.feasible else (True, self.violation)


class _Stopped(Exception):
    """Raised inside of a solver to leave it."""


class _Stall:
    """Ends a start that gets no better.

    Better is a better rank, or, nearly feasible as the points are that follow curved equations, a lower cost to which
    the violation is added.
    """

    def __init__(self, most: int) -> None:
        self.most, self.since = most, 0
        self.rank, self.merit = (True, np.inf), np.inf

    def look(self, best: Outcome, here: Outcome) -> None:
        """Count the iterations without a gain."""
        violated, value = best.rank
        gained = (violated, 0.0) < (self.rank[0], 0.0) or self.rank[1] - value > GAIN * max(abs(value), 1e-12)
        if gained:
            self.rank = best.rank
        merit = here.cost + max(1.0, abs(here.cost)) * here.violation
        if here.violation <= NEARLY and self.merit - merit > GAIN * abs(merit):
            self.merit, gained = merit, True
        self.since = 0 if gained else self.since + 1
        if self.since >= self.most:
            raise _Stopped(f"no gain in {self.most} iterations")


@dataclass
class _Orders:
    """How one start is to be run."""

    solver: str
    iterations: int
    tolerance: float
    watch: Callable[[Progressed], bool] | None = None


def run_start(problem: Problem, x0: Array, start: int, orders: _Orders) -> Outcome:
    """Run a solver from x0 and return the best that it passed; a function of the module, for other processes."""
    begin = time.perf_counter()
    programme = problem.programme(x0)
    best = Outcome(start, np.clip(x0, programme.low, programme.high), np.inf, np.inf, False, STOPPED)

    stall = _Stall(STALL if orders.solver == "slsqp" else orders.iterations)

    def consider(x: Array) -> Outcome:
        here = Outcome(start, np.array(x), programme.cost(x), programme.violation(x), False, "")
        if here.rank < best.rank:
            best.x, best.cost, best.violation = here.x, here.cost, here.violation
        return here

    def after_iteration(x: Array) -> None:
        here = consider(x)
        stall.look(best, here)
        best.iterations += 1
        best.history.append((here.cost, here.violation))
        if orders.watch is not None:
            spent = time.perf_counter() - begin
            if orders.watch(Progressed(start, best.iterations, here.cost, here.violation, here.x, spent, problem)):
                raise _Stopped

    try:
        with one_thread():
            consider(best.x)
            solve = solve_ipopt if orders.solver == "ipopt" else solve_slsqp
            x, best.converged, best.reason, _ = solve(
                programme, best.x, orders.iterations, orders.tolerance, after_iteration
            )
            _settle(programme, x, best)
    except _Stopped as ended:
        best.reason = str(ended) or best.reason
    except KeyboardInterrupt:
        best.reason = INTERRUPTED
    if best.reason.startswith(STUCK) and problem.has_own_gradients:
        best.reason += HINT
    best.evaluations, best.not_finite = programme.evaluations, programme.not_finite
    best.seconds = time.perf_counter() - begin
    if not best.feasible and best.reason not in (STOPPED, INTERRUPTED):
        best.converged = False
        best.reason = f"infeasible: {_missed(programme, best.x)}{best.reason}"
    return best


def _missed(programme: Programme, x: Array) -> str:
    """Return in words which constraint is missed most, and by how much."""
    name, amount = programme.worst(x) if programme.finite(x) else ("", 0.0)
    return f"{name} is missed by {amount:.3g}; " if name else ""


def _settle(programme: Programme, x: Array, best: Outcome) -> None:
    """Take the solver's answer, unless a point on its way was better."""
    violation = programme.violation(x)
    last = Outcome(best.start, np.array(x), programme.cost(x), violation, best.converged, best.reason)
    if last.rank <= best.rank or (last.feasible and best.converged):
        best.x, best.cost, best.violation = last.x, last.cost, last.violation
        best.history.append((best.cost, best.violation))
    else:
        best.converged = False


class Search:
    """A search with its settings; see `Problem.solve`."""

    def __init__(
        self,
        problem: Problem,
        solver: str,
        iterations: int,
        tolerance: float,
        executor: Executor | None,
        callback: Callable[[Progressed], Any] | None,
        progress: bool,
        live: Any,
    ) -> None:
        if solver not in SOLVERS:
            raise unknown_name("solver", solver, SOLVERS)
        if solver == "ipopt" and not has_ipopt():
            raise InvalidValue("solver: Ipopt is not installed; pip install 'cstormpy[ipopt]', or take 'slsqp'")
        if callback is not None and not callable(callback):
            raise InvalidType(f"callback: expected a function, got a {type(callback).__name__}")
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise InvalidType(f"executor: expected one of concurrent.futures, got a {type(executor).__name__}")
        self.problem, self.solver = problem, solver
        self.iterations = checks.count(iterations, "iterations")
        self.tolerance = checks.positive(tolerance, "tolerance")
        self.executor, self.callback, self.progress = executor, callback, progress
        self.viewer = viewer_of(live)
        self._stop = threading.Event()

    def run(self, starts: int, rng: np.random.Generator, stages: Sequence[Stage], keep: int) -> Solution:
        """Return the best that was found, and show it where that was asked for."""
        try:
            solution = self._run(starts, rng, stages, keep)
        except BaseException:
            if self.viewer is not None:
                self.viewer.finish(None)
            raise
        if self.viewer is not None:
            self.viewer.finish(solution)
        return solution

    def _run(self, starts: int, rng: np.random.Generator, stages: Sequence[Stage], keep: int) -> Solution:
        from cstormpy.optimal.solution import Solution

        begin = time.perf_counter()
        count, kept = checks.count(starts, "starts"), checks.count(keep, "keep")
        for stage in stages:
            if not isinstance(stage, Stage):
                raise InvalidType(f"stages: expected Stage, got a {type(stage).__name__}")
        problem = stages[0].of(self.problem) if stages else self.problem
        guesses = [problem.first_guess(), *(problem.random_guess(rng) for _ in range(count - 1))]
        problem.programme(guesses[0])  # what is wrong with the problem shows here, before anything runs
        outcomes = self._run_all(problem, guesses, f"stage 1 of {len(stages)}" if stages else "")
        total = list(outcomes)
        for k, stage in enumerate(stages[1:]):
            if self._stop.is_set():
                break
            finer = stage.of(self.problem, problem)
            ranked = sorted(outcomes, key=lambda o: o.rank)[:kept]
            guesses = [carried(problem, o.x, finer) for o in ranked]
            problem = finer
            outcomes = self._run_all(problem, guesses, f"stage {k + 2} of {len(stages)}")
            total.extend(outcomes)
        best = min(outcomes, key=lambda o: o.rank)
        return Solution(problem, best, tuple(total), self._solver_for(problem), time.perf_counter() - begin)

    def _solver_for(self, problem: Problem) -> str:
        if self.solver != "auto":
            return self.solver
        return "ipopt" if problem.transcription.size > MANY_VARIABLES and has_ipopt() else "slsqp"

    def _run_all(self, problem: Problem, guesses: Sequence[Array], name: str) -> list[Outcome]:
        orders = _Orders(self._solver_for(problem), self.iterations, self.tolerance)
        problem.transcription  # noqa: B018  made once, not by each thread
        line = SearchLine(name, len(guesses), self.progress)
        if self.viewer is not None:
            self.viewer.begin(problem, len(guesses), name)
        with line:
            if self.executor is not None:
                outcomes = self._gather(self._submit(self.executor, problem, guesses, orders))
                return outcomes
            orders.watch = self._watch(line)
            threads = self._threads(problem, len(guesses))
            if threads == 1:
                return self._one_by_one(problem, guesses, orders)
            with ThreadPoolExecutor(threads) as pool:
                return self._gather(self._submit(pool, problem, guesses, orders))

    def _one_by_one(self, problem: Problem, guesses: Sequence[Array], orders: _Orders) -> list[Outcome]:
        """Run the starts in this thread, until one is interrupted."""
        outcomes: list[Outcome] = []
        errors: list[CstormError] = []
        for k, guess in enumerate(guesses):
            try:
                outcomes.append(run_start(problem, guess, k, orders))
            except CstormError as error:  # this start was no motion; others may be
                errors.append(error)
                continue
            if outcomes[-1].reason == INTERRUPTED:
                self._stop.set()
            if self._stop.is_set():
                break
        if not outcomes:
            raise errors[0]
        return outcomes

    @staticmethod
    def _threads(problem: Problem, starts: int) -> int:
        """Return how many threads to use: only the integration of a motion runs beside Python."""
        return 1 if problem.inverse else min(thread_count(None), starts)

    @staticmethod
    def _submit(pool: Executor, problem: Problem, guesses: Sequence[Array], orders: _Orders) -> list[Future[Outcome]]:
        return [pool.submit(run_start, problem, guess, k, orders) for k, guess in enumerate(guesses)]

    def _watch(self, line: SearchLine) -> Callable[[Progressed], bool]:
        """Return what looks at each iteration: whether it is to be the last."""

        def watch(now: Progressed) -> bool:
            line.show(now.start, now.iteration, now.cost, now.violation)
            if self.callback is not None and self.callback(now) is True:
                self._stop.set()
            if self.viewer is not None and self.viewer.update(now):
                self._stop.set()
            return self._stop.is_set()

        return watch

    def _gather(self, futures: Sequence[Future[Outcome]]) -> list[Outcome]:
        """Return what came of all starts; after Ctrl-C, of those that had begun.

        Windows lets Ctrl-C through only where a wait has an end.
        """
        waiting = True
        while waiting:
            try:
                waiting = bool(wait(futures, timeout=PATIENCE).not_done)
            except KeyboardInterrupt:
                self._stop.set()
                for future in futures:
                    future.cancel()
        outcomes, errors = [], []
        for future in futures:
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                outcomes.append(future.result())
            elif isinstance(error, CstormError):
                errors.append(error)  # this start was no motion; others may be
            else:
                raise error
        if not outcomes:
            raise errors[0] if errors else KeyboardInterrupt
        return outcomes


def carried(problem: Problem, x: Array, onto: Problem) -> Array:
    """Return the variables of another problem that move as x moves this one."""
    from cstormpy.optimal.guesses import followed

    unit = problem.transcription.spline(x)
    points = followed(unit, onto, len(onto.knots) - onto.options.degree - 1)
    T = min(max(problem.transcription.duration(x), onto.low_duration), onto.high_duration)
    return onto.transcription.variables(points, T)
