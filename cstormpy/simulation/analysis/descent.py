"""The search of `Simulation.tune` for a lower cost, by a run and its gradient at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, NonFinite
from cstormpy.reporting import Progress, notice
from cstormpy.simulation.analysis.gradients import Gradient, Problem

#: A cost has no minimum where it falls so many times its size at the start, or one, below zero; or it may have none.
_BOTTOMLESS, _DEEP = 1e12, 1e4
#: A run that fails so close to the best, as part of its size, may be what keeps a search from going on.
_CLOSE = 1e-3
#: Steps of a search are chosen anew where the solver takes so many times as many as at its start.
_MORE = 1.1
#: By this part of what is gained may a cost differ by other steps, if it is to be one that does not depend on them.
_SAME = 0.01
#: A search has come to its end where so many steps together gain next to nothing; in a flat valley a single one may.
_IDLE = 3
#: So many runs are kept, as a search may come back to one.
_KEPT = 4
_NO_GAIN, INTERRUPTED = "nothing more is gained", "interrupted"


def single(cost: float | Array) -> float:
    """Return a cost as one number: of several half the sum of their squares."""
    return float(cost) if np.ndim(cost) == 0 else 0.5 * float(np.sum(np.square(cost)))


def _few(found: Gradient) -> tuple[Array, Array]:
    """Return derivatives (k + 1, k) and costs (k + 1,) of the same squares and products as those of a run.

    Costs at the samples of a run are as many as these, which differ from run to run where events end steps.
    """
    gradient, costs = np.asarray(found.gradient), np.asarray(found.cost)
    count = gradient.shape[1] + 1
    few = np.zeros((count, count))
    triangle = np.linalg.qr(np.column_stack([gradient, costs]), mode="r")
    few[: len(triangle)] = triangle
    return few[:, :-1], few[:, -1]


class _Stop(Exception):
    """Ends a search, and says why."""


@dataclass
class Descent:
    """A search for a lower cost; each parameter is measured by its size at the start."""

    problem: Problem
    limits: Array
    before: Array
    most: int
    options: Any
    runs: int = 0
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scale = np.where(self.before != 0.0, np.abs(self.before), 1.0)
        self.best: Gradient
        self.progress = Progress("tune", 0.0, self.most, enabled=bool(getattr(self.options, "progress", True)))
        #: What the last runs gave, by their parameters; None of those that failed.
        self._last: dict[bytes, Gradient | None] = {}
        #: Where runs failed, as measured, and how the last one did.
        self._failed: list[Array] = []
        self._failure = ""

    def look(self, values: Array) -> Gradient:
        """Return cost and gradient at values, and remember the best."""
        found = self.problem.evaluate(values)
        if not (np.isfinite(single(found.cost)) and np.isfinite(found.gradient).all()):
            raise NonFinite(f"tune: the cost is {found.cost}, its gradient {found.gradient}")
        self.runs += 1
        if not self.history or single(found.cost) < single(self.best.cost):
            self.best = found
        self.history.append(single(self.best.cost))
        if self.progress.due:
            self.progress.say(f"tune: run {self.runs} of at most {self.most}", f"cost {single(self.best.cost):.6g}")
        return found

    def go(self, tol: float) -> tuple[bool, str]:
        """Search from the best; return whether that came to an end, and why it did."""
        try:
            search = self._squares if np.ndim(self.best.cost) else self._descent
            ended: tuple[bool, str] | None = None
            while True:
                cost = single(self.best.cost)
                success, message = search(tol)
                gained = single(self.best.cost) < cost - np.sqrt(tol) * abs(cost)
                if ended is not None and not gained:
                    return ended
                if success and gained and self._takes_other_steps(tol):
                    ended = success, message
                    continue
                if not self._hemmed_in() or self._steepness() <= np.sqrt(tol):
                    return success, message
                if not gained:
                    deep = f"the cost may have no minimum: {self._advice()}; " if self._below(_DEEP) else ""
                    return False, f"{deep}runs on the way down fail, the last one so: {self._failure}"
        except _Stop as stop:
            return False, str(stop)
        except KeyboardInterrupt:
            return False, INTERRUPTED

    def _takes_other_steps(self, tol: float) -> bool:
        """Have runs take the steps that the solver chooses at the best, if it takes more there or a slope is left.

        With other numbers those of the start may be too long: the costs of unstable runs are walls that are not there.
        """
        before, best, problem = self.problem.times, self.best, self.problem
        if before is None or self.runs >= self.most:
            return False
        problem.parameters.set(best.values)
        try:
            times = problem.chosen_steps()
            if len(times) <= _MORE * len(before) and self._steepness() <= np.sqrt(tol):
                return False
            problem.times = times
            self.best = self.look(best.values)
        except CstormError:
            problem.times = before
            return False
        self.history[-1] = cost = single(self.best.cost)
        if abs(cost - single(best.cost)) > _SAME * abs(self.history[0] - cost):  # a sum over samples: not comparable
            problem.times, self.best, self.history[-1] = before, best, single(best.cost)
            return False
        self._last.clear()
        self._failed.clear()
        return True

    def _hemmed_in(self) -> bool:
        """Return whether a run failed that is close to the best."""
        best = self.best.values / self.scale
        return any(np.abs(v - best).max() <= _CLOSE * (1.0 + np.abs(best).max()) for v in self._failed)

    def _size(self) -> float:
        """Return what costs are measured by."""
        return abs(self.history[0]) or float(np.abs(self._slope(self.best)).max()) or 1.0

    def _slope(self, found: Gradient) -> Array:
        """Return the derivative of the cost, of several that of their squares' sum, to the parameters as measured."""
        slope = found.gradient if np.ndim(found.cost) == 0 else np.asarray(found.cost) @ found.gradient
        return np.asarray(slope) * self.scale

    def _held(self) -> NDArray[np.bool_]:
        """Return which parameters of the best are at a bound beyond which the cost would fall."""
        slope, values = self._slope(self.best), self.best.values
        low, high = (np.isclose(values, limit, rtol=1e-9, atol=0.0) for limit in self.limits)
        return (low & (slope > 0.0)) | (high & (slope < 0.0))

    def _steepness(self) -> float:
        """Return how steep the cost is at the best, but for directions in which a bound is reached."""
        return float(np.abs(self._slope(self.best)[~self._held()]).max(initial=0.0)) / self._size()

    def _vanished(self) -> str:
        held = [name for name, at in zip(self.problem.parameters.names, self._held(), strict=True) if at]
        but = f", but for {', '.join(held)} at a bound" if held else ""
        if not held and np.array_equal(self.best.values, self.before):
            but = " at the start, as it does at a least cost, but at a greatest one and on a saddle too"
        return f"the gradient has vanished{but}" + "".join(f"; it is not whole: {note}" for note in self.best.notes)

    def _descent(self, tol: float) -> tuple[bool, str]:
        from scipy.optimize import minimize

        size, begin = self._size(), self.best.values / self.scale
        along = [(begin, self.best)]  # the points between which the search goes along lines
        gone = [single(self.best.cost) / size]  # the costs at them

        def costs(v: Array) -> tuple[float, Array]:
            found = self._attempt(v)
            if found is not None:
                return single(found.cost) / size, self._slope(found) / size
            # a slope upwards from where the line begins, so that the search goes back along it by some part
            origin, start = along[-1]
            slope = self._slope(start) / size
            return single(start.cost) / size + abs(float(slope @ (v - origin))), -slope

        def reached(v: Array) -> None:
            found = self._last.get(v.tobytes())
            if found is not None:
                along[-1] = v.copy(), found
                gone.append(single(found.cost) / size)
            if idle(_IDLE):
                raise StopIteration

        def idle(steps: int) -> bool:
            return len(gone) > steps and gone[-1 - steps] - gone[-1] <= tol * max(1.0, abs(gone[-1]))

        answer = minimize(
            costs, begin, jac=True, method="L-BFGS-B", bounds=(self.limits / self.scale).T, callback=reached,
            options={"maxfun": self.most, "maxiter": self.most, "ftol": 0.0, "gtol": tol},
        )  # fmt: skip
        if answer.status == 1:
            raise self._exhausted()
        if answer.status == 2 and not idle(1):
            return False, "the cost cannot be lowered along its gradient: it is not smooth there, or rounding hides it"
        return True, self._vanished() if self._steepness() <= tol else _NO_GAIN

    def _squares(self, tol: float) -> tuple[bool, str]:
        from scipy.optimize import least_squares

        count, size = len(self.before), np.sqrt(self._size())

        def costs(v: Array) -> Array:
            found = self._attempt(v)
            return np.full(count + 1, np.inf) if found is None else _few(found)[1] / size  # a shorter step comes then

        def slopes(v: Array) -> Array:
            found = self._attempt(v)
            assert found is not None  # asked for only where a step has ended
            return _few(found)[0] * self.scale / size

        answer = least_squares(
            costs, self.best.values / self.scale, slopes, bounds=self.limits / self.scale, ftol=tol, xtol=tol, gtol=tol,
            max_nfev=self.most,
        )  # fmt: skip
        if answer.status == 0:
            raise self._exhausted()
        return True, self._vanished() if answer.status == 1 else _NO_GAIN

    def _attempt(self, v: Array) -> Gradient | None:
        """Return what a run gives, None where it fails; the last ones are not run again."""
        key = v.tobytes()
        if key not in self._last:
            if not np.isfinite(v).all():
                raise _Stop("the cost is too steep for the search to go on; begin elsewhere, or set bounds")
            if self.runs >= self.most:
                raise self._exhausted()
            while len(self._last) >= _KEPT:
                self._last.pop(next(iter(self._last)))
            self._last[key] = None
            try:
                self._last[key] = self.look(np.clip(v * self.scale, *self.limits))
            except CstormError as error:
                self.runs += 1
                self.history.append(self.history[-1])
                if not self._failed:
                    notice(f"tune: a run failed, and shorter steps are tried: {error}")
                self._failed.append(v.copy())
                self._failure = str(error)
            if self._below(_BOTTOMLESS):
                raise _Stop(f"the cost has no minimum within reach: {self._advice()}")
        return self._last[key]

    def _exhausted(self) -> _Stop:
        why = f"the cost may have no minimum: {self._advice()}" if self._below(_DEEP) else "allow more"
        return _Stop(f"max_runs = {self.most} did not let the search come to an end; {why}")

    def _below(self, times: float) -> bool:
        return self.history[-1] < -times * (1.0 + abs(self.history[0]))

    def _advice(self) -> str:
        """Say which parameter goes farthest, and what to do."""
        away = self.best.values - self.before
        is_open = np.isinf(np.where(away > 0.0, self.limits[1], self.limits[0]))
        k = int(np.argmax(np.where(is_open, np.abs(away) / self.scale, -1.0)))
        name, value, size = self.problem.parameters.names[k], self.best.values[k], 10.0 * self.scale[k]
        limits = f"({self.before[k] - size:.3g}, {self.before[k] + size:.3g})"
        return (
            f"it falls to {self.history[-1]:.3g} as {name} goes to {value:.3g}; keep that within bounds, as in "
            f"bounds={{{name!r}: {limits}}}"
        )
