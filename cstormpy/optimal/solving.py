"""The search: starts side by side, stages from coarse to fine, the best of what was found, and what is seen of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from cstormpy import checks
from cstormpy.arguments import option, takes
from cstormpy.dynamics.batches import thread_count
from cstormpy.errors import CstormError, InvalidType, InvalidValue, shown
from cstormpy.optimal.ipopt import has_ipopt
from cstormpy.optimal.samples import Array
from cstormpy.optimal.stages import Stage, carried
from cstormpy.optimal.starts import INTERRUPTED, STOPPED, Accuracy, Orders, Outcome, Progressed, run_start
from cstormpy.reporting import Progress

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.solution import Solution

WINDOW = ("cstormpy.live.search", "SearchWindow")
"""The window of our own. It is found by its name when somebody wants it: windows stand above optimal control, which
does without them."""


@runtime_checkable
class Viewer(Protocol):
    """The progress of a search, as `Problem.solve` tells it to whoever shows it."""

    def begin(self, problem: Problem, starts: int, stage: str) -> None:
        """Take what is searched for: at the start, and of each stage after the first."""

    def update(self, now: Progressed) -> bool:
        """Take an iteration, in the thread that made it; return whether the search is to end."""

    def finish(self, solution: Solution | None) -> None:
        """Take what was found; None where the search failed."""


def viewer_of(live: Any) -> Viewer | None:
    """Return what shows a search: nothing, our own window, or what was given."""
    if live is None or live is False:
        return None
    if live is True:
        module, name = WINDOW
        return getattr(import_module(module), name)()
    if not isinstance(live, Viewer):
        raise InvalidType(f"live: expected True, False or an object with begin, update and finish, got {shown(live)}")
    return live


PATIENCE = 0.2
"""Seconds between two looks whether the starts have ended."""

SOLVERS = ("auto", "slsqp", "gauss-newton", "ipopt")


class SolutionSearch:
    """A search with its settings; see `Problem.solve`."""

    def __init__(
        self,
        problem: Problem,
        solver: str,
        iterations: int,
        accuracy: Accuracy,
        executor: Executor | None,
        callback: Callable[[Progressed], Any] | None,
        progress: bool,
        live: Any,
    ) -> None:
        option(solver, "solver", SOLVERS)
        if solver == "ipopt" and not has_ipopt():
            raise InvalidValue("solver: Ipopt is not installed; pip install 'cstormpy[ipopt]', or take 'slsqp'")
        if callback is not None and not callable(callback):
            raise InvalidType(f"callback: expected a function, got {shown(callback)}")
        if callback is not None and not takes(callback, ("progressed",)):
            raise InvalidType(
                "callback: is called as callback(progressed), with what `Progressed` has; let it take that"
            )
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise InvalidType(f"executor: expected one of concurrent.futures, got {shown(executor)}")
        if executor is not None and callback is not None:
            raise InvalidValue(
                "callback: is not called by what an executor runs, perhaps in another process; leave executor= away, "
                "which takes threads where these help"
            )
        self.problem, self.solver = problem, solver
        self.iterations = checks.count(iterations, "iterations")
        checks.positive(accuracy.tolerance, "tolerance")
        checks.positive(accuracy.feasibility, "feasibility")
        if not isinstance(accuracy.refine, bool):
            raise InvalidType(f"refine: expected True or False, got {accuracy.refine!r}")
        self.accuracy = accuracy
        self.executor, self.callback, self.progress = executor, callback, progress
        self.viewer = viewer_of(live)
        self._stop = threading.Event()
        self._why = ""  # why the search was stopped

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
                raise InvalidType(f"stages: expected Stage, got {shown(stage)}")
        problem = stages[0].of(self.problem) if stages else self.problem
        guesses = [problem.first_guess(), *(problem.random_guess(rng) for _ in range(count - 1))]
        problem.programme(guesses[0])  # what is wrong with the problem shows here, before anything runs
        name = f"stage 1 of {len(stages)}" if stages else ""
        outcomes = self._run_all(problem, guesses, name, len(stages) <= 1)
        total = list(outcomes)
        for k, stage in enumerate(stages[1:]):
            if self._stop.is_set():
                break
            finer = stage.of(self.problem, problem)
            ranked = sorted(outcomes, key=lambda o: o.sampled_rank)[:kept]
            guesses = [carried(problem, o.x, finer) for o in ranked]
            problem, name = finer, f"stage {k + 2} of {len(stages)}"
            outcomes = self._run_all(problem, guesses, name, k + 2 == len(stages))
            total.extend(outcomes)
        best = min(outcomes, key=lambda o: o.rank)
        solution = Solution(problem, best, tuple(total), best.solver, time.perf_counter() - begin)
        if self._why:
            ended = sum(outcome.ended for outcome in outcomes)
            starts_of = f"{ended} of {len(guesses)} start{'s' * (len(guesses) > 1)} had ended"
            solution.stop(self._why, f"{starts_of}, in {name}" if name else starts_of)
        return solution

    def _run_all(self, problem: Problem, guesses: Sequence[Array], name: str, final: bool) -> list[Outcome]:
        orders = Orders(self.solver, self.iterations, self.accuracy, final)
        problem.transcription  # noqa: B018  made once, not by each thread
        line = SearchLine(name, len(guesses), self.progress)
        if self.viewer is not None:
            self.viewer.begin(problem, len(guesses), name)
        with line:
            if self.executor is not None:
                return self._gather(self._submit(self.executor, problem, guesses, orders))
            orders.watch = self._watch(line)
            threads = self._threads(problem, len(guesses))
            if threads == 1:
                return self._one_by_one(problem, guesses, orders)
            with ThreadPoolExecutor(threads) as pool:
                return self._gather(self._submit(pool, problem, guesses, orders))

    def _one_by_one(self, problem: Problem, guesses: Sequence[Array], orders: Orders) -> list[Outcome]:
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
                self._end(INTERRUPTED)
            if self._stop.is_set():
                break
        if not outcomes:
            raise errors[0]
        return outcomes

    def _end(self, why: str) -> None:
        """End the search; that Ctrl-C was pressed outweighs what a callback said."""
        if self._why != INTERRUPTED:
            self._why = why
        self._stop.set()

    @staticmethod
    def _threads(problem: Problem, starts: int) -> int:
        """Return how many threads to use: only the integration of a motion runs beside Python."""
        return 1 if problem.inverse else min(thread_count(None), starts)

    @staticmethod
    def _submit(pool: Executor, problem: Problem, guesses: Sequence[Array], orders: Orders) -> list[Future[Outcome]]:
        return [pool.submit(run_start, problem, guess, k, orders) for k, guess in enumerate(guesses)]

    def _watch(self, line: SearchLine) -> Callable[[Progressed], bool]:
        """Return what looks at each iteration: whether it is to be the last."""

        def watch(now: Progressed) -> bool:
            line.show(now.start, now.iteration, now.cost, now.violation)
            if self.callback is not None and self.callback(now) is True:
                self._end(STOPPED)
            if self.viewer is not None and self.viewer.update(now):
                self._end(STOPPED)
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
                self._end(INTERRUPTED)
                for future in futures:
                    future.cancel()
        outcomes, errors = [], []
        for future in futures:
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                outcomes.append(future.result())
                if outcomes[-1].reason == INTERRUPTED:
                    self._end(INTERRUPTED)
            elif isinstance(error, CstormError):
                errors.append(error)  # this start was no motion; others may be
            else:
                raise error
        if not outcomes:
            raise errors[0] if errors else KeyboardInterrupt
        return outcomes


class SearchLine(Progress):
    """The line of `Progress` for a search: stage, start, iteration, cost, violation and time."""

    def __init__(self, name: str, starts: int, enabled: bool = True) -> None:
        super().__init__(name or "search", 0.0, float(starts), enabled=enabled)
        self._starts = starts
        self._writing = threading.Lock()
        self._least = float("inf")

    def show(self, start: int, iteration: int, cost: float, violation: float) -> None:
        """Say where one of the starts stands; cheap enough to be called at each iteration, by any thread."""
        with self._writing:
            if violation <= 1e-6:
                self._least = min(self._least, cost)
            if not self.due:
                return
            best = [f"best {self._least:.6g}"] if self._starts > 1 and self._least < float("inf") else []
            stands = f"{self.name}: start {start + 1} of {self._starts}, iteration {iteration}"
            spent = f"{time.perf_counter() - self._started:.1f} s"
            self.say(stands, f"cost {cost:.6g}", f"violation {violation:.1e}", *best, spent)
