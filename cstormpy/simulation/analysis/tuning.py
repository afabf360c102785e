"""Improves numbers of a diagram, such as a controller's gains, by the exact gradient of a run's cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import CstormError, InvalidType, InvalidValue, unknown_name
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.gradients import Gradient, Problem
from cstormpy.simulation.results import Result

__all__ = ["Tuning", "tune"]

Array = NDArray[np.float64]
#: What a run that fails is taken to cost, as so many times what the first one does.
_WORSE = 1e3
#: How many runs a search is expected to take.
_EXPECTED = 30
#: Seconds between two looks of the progress line.
_EVERY = 0.2


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `Simulation.tune` found.

    Attributes
    ----------
    parameters : tuple of str
    before, after : ndarray, (k,)
        Their values.
    cost_before, cost : float
        At both, in runs of their own: of several costs half the sum of their squares.
    success, applied : bool
        Whether the search came to an end, and whether the blocks have the new values.
    message : str
        Why it ended.
    history : list of float
        The best cost after each run.
    runs : int
    out_before, out : Result
        The runs at both.
    differenced : list of (str, str)
        As in `Gradient`.
    """

    parameters: tuple[str, ...]
    before: Array
    after: Array
    cost_before: float
    cost: float
    success: bool
    applied: bool
    message: str
    history: list[float]
    runs: int
    out_before: Result
    out: Result
    differenced: list[tuple[str, str]]

    def __str__(self) -> str:
        """Return values and costs before and after."""
        lines = [f"{self.message}: cost {self.cost_before:.6g} -> {self.cost:.6g} in {self.runs} runs"]
        rows = zip(self.parameters, self.before, self.after, strict=True)
        lines += [f"  {name}: {old:.6g} -> {new:.6g}" for name, old, new in rows]
        if not self.applied:
            lines.append("the blocks have their old values")
        return "\n".join(lines)

    def plot(self, signals: Any = None) -> Any:
        """Draw the cost over the runs, and signals before and after; return the figure.

        Parameters
        ----------
        signals : list of str, optional
            Watched signals or states; the watched ones, or else the states, unless given.
        """
        import matplotlib.pyplot as plt

        names = list(self.out.data.get("ynames", [])) or list(self.out.xnames) if signals is None else list(signals)
        figure, axes = plt.subplots(1 + len(names), 1, layout="constrained", figsize=(7.0, 2.2 * (1 + len(names))))
        panels = np.ravel(axes)
        panels[0].semilogy(range(1, len(self.history) + 1), self.history, ".-")
        panels[0].set(xlabel="run", ylabel="best cost", title=f"cost {self.cost_before:.4g} → {self.cost:.4g}")
        for panel, name in zip(panels[1:], names, strict=True):
            for out, label, line in ((self.out_before, "before", "--"), (self.out, "after", "-")):
                values = out.signal(name).reshape(len(out.t), -1)
                for k, column in enumerate(values.T):
                    panel.plot(out.t, column, line, color=f"C{k}", label=label if k == 0 else None)
            panel.set(xlabel="t [s]", ylabel=name)
            panel.legend(loc="best")
        for panel in panels:
            panel.grid(alpha=0.3)
        return figure


def tune(
    sim: Any, bd: Any, cost: Any, parameters: Any, *, bounds: Any = None, apply: bool | None = None,
    max_runs: int = 100, tol: float = 1e-8, **options: Any,
) -> Tuning:  # fmt: skip
    """Improve parameters of a diagram; see `Simulation.tune`."""
    most, least = _count(max_runs), _tolerance(tol)
    problem = Problem(sim, bd, cost, parameters, options, "tune")
    before = problem.parameters.get()
    problem.runs = _EXPECTED
    search = _Search(problem, _limits(problem.parameters.names, bounds, before), before, most, sim.options)
    try:
        first = search.look(before)
        success, message = search.go(least)
        best = search.best
        problem.parameters.set(best.values)
        out = problem.free_run()
    except BaseException:
        problem.parameters.set(before)
        raise
    finally:
        search.line("")
    better = _single(best.cost) < _single(first.cost)
    applied = better and (success if apply is None else bool(apply))
    problem.parameters.set(best.values if applied else before)
    result = Tuning(
        problem.parameters.names, before, best.values, _single(first.cost), _single(problem._cost_of(out)), success,
        applied, message, search.history, search.runs, first.out, out, best.differenced,
    )  # fmt: skip
    if not applied:
        notice(f"tune: {message}; the blocks keep their values{'' if not better else ', the result holds better ones'}")
    return result


def _count(max_runs: Any) -> int:
    if isinstance(max_runs, bool) or not isinstance(max_runs, (int, np.integer)):
        raise InvalidType(f"tune: max_runs: expected a whole number, got {max_runs!r}")
    if max_runs < 1:
        raise InvalidValue(f"tune: max_runs: expected 1 or more, got {max_runs}")
    return int(max_runs)


def _tolerance(tol: Any) -> float:
    try:
        number = float(tol)
    except (TypeError, ValueError):
        raise InvalidType(f"tune: tol: expected a positive number, got {tol!r}") from None
    if not 0.0 < number < np.inf:
        raise InvalidValue(f"tune: tol: expected a positive number, got {tol!r}")
    return number


def _single(cost: float | Array) -> float:
    """Return a cost as one number: of several half the sum of their squares."""
    return float(cost) if np.ndim(cost) == 0 else 0.5 * float(np.sum(np.square(cost)))


def _limits(names: tuple[str, ...], bounds: Any, values: Array) -> Array:
    """Return the least and the greatest value of each parameter, (2, k)."""
    limits = np.array([[-np.inf], [np.inf]]) * np.ones(len(names))
    if bounds is None:
        bounds = {}
    if not isinstance(bounds, Mapping):
        bounds = dict.fromkeys(names, bounds)
    for name, pair in bounds.items():
        at = [k for k, known in enumerate(names) if known == name or known.startswith(f"{name}[")]
        if not at:
            raise unknown_name("tune: bounds for parameter", name, names)
        try:
            least, most = (
                np.inf * sign if value is None else float(value) for sign, value in zip((-1, 1), pair, strict=True)
            )
        except (TypeError, ValueError):
            raise InvalidType(f"tune: bounds of {name}: expected two numbers, got {pair!r}") from None
        limits[0, at], limits[1, at] = least, most
        for k in at:
            if not least < most or not least <= values[k] <= most:
                raise InvalidValue(f"tune: {names[k]} = {values[k]:g} is not within its bounds, {least:g} to {most:g}")
    return limits


class _Stop(Exception):
    """Ends a search: there have been as many runs as were allowed."""


@dataclass
class _Search:
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
        self._shown, self._width = 0.0, 0
        self._last: tuple[bytes, Gradient | None] = (b"", None)

    def look(self, values: Array) -> Gradient:
        """Return cost and gradient at values, and remember the best."""
        found = self.problem.evaluate(values)
        self.runs += 1
        if not self.history or _single(found.cost) < _single(self.best.cost):
            self.best = found
        self.history.append(_single(self.best.cost))
        self.line(f"tune: run {self.runs} of at most {self.most}, cost {_single(self.best.cost):.6g}")
        return found

    def go(self, tol: float) -> tuple[bool, str]:
        """Search from the best; return whether that came to an end, and why it did."""
        try:
            return self._squares(tol) if np.ndim(self.best.cost) else self._descent(tol)
        except _Stop:
            return True, f"{self.most} runs were made"
        except KeyboardInterrupt:
            return False, "interrupted"

    def _descent(self, tol: float) -> tuple[bool, str]:
        from scipy.optimize import minimize

        size = max(abs(_single(self.best.cost)), 1e-300)

        def costs(v: Array) -> tuple[float, Array]:
            found = self._attempt(v)
            if found is None:
                return _WORSE * (1.0 + self.history[0] / size), np.zeros(v.size)
            return _single(found.cost) / size, np.asarray(found.gradient) * self.scale / size

        answer = minimize(
            costs, self.before / self.scale, jac=True, method="L-BFGS-B", bounds=(self.limits / self.scale).T,
            options={"maxfun": self.most, "maxiter": self.most, "ftol": tol, "gtol": tol},
        )  # fmt: skip
        return bool(answer.success) or self.runs >= self.most, _reason(str(answer.message))

    def _squares(self, tol: float) -> tuple[bool, str]:
        from scipy.optimize import least_squares

        rows = np.size(self.best.cost)

        def costs(v: Array) -> Array:
            found = self._attempt(v)
            failed = np.full(rows, np.sqrt(_WORSE * (1.0 + self.history[0])))
            return failed if found is None else np.asarray(found.cost)

        def slopes(v: Array) -> Array:
            found = self._attempt(v)
            return np.zeros((rows, v.size)) if found is None else np.asarray(found.gradient) * self.scale

        answer = least_squares(
            costs, self.before / self.scale, slopes, bounds=self.limits / self.scale, ftol=tol, xtol=tol, gtol=tol,
            max_nfev=self.most,
        )  # fmt: skip
        return bool(answer.success), _reason(str(answer.message))

    def _attempt(self, v: Array) -> Gradient | None:
        """Return what a run gives, None where it fails; the last one is not run again."""
        if self._last[0] != v.tobytes():
            if self.runs >= self.most:
                raise _Stop
            found = None
            try:
                found = self.look(np.clip(v * self.scale, *self.limits))
            except CstormError as error:
                self.runs += 1
                self.history.append(self.history[-1])
                notice(f"tune: a run failed, and shorter steps are tried: {error}")
            self._last = (v.tobytes(), found)
        return self._last[1]

    def line(self, text: str) -> None:
        """Show a line of progress on a terminal; an empty one clears it."""
        shown = bool(getattr(self.options, "progress", True)) and sys.stderr is not None and sys.stderr.isatty()
        now = time.perf_counter()
        if not shown or (text and now - self._shown < _EVERY) or (not text and not self._width):
            return
        self._shown = now
        sys.stderr.write("\r" + text.ljust(self._width) + ("" if text else "\r"))
        sys.stderr.flush()
        self._width = len(text)


def _reason(text: str) -> str:
    """Return in our words why scipy stopped."""
    upper = text.upper()
    if "PROJECTED GRADIENT" in upper or "`GTOL`" in upper:
        return "the gradient has vanished"
    if "REDUCTION" in upper or "`FTOL`" in upper or "`XTOL`" in upper:
        return "nothing more is gained"
    if "EXCEEDS LIMIT" in upper or "EVALUATIONS" in upper:
        return "as many runs as were allowed have been made"
    return f"the search ended: {text.lower()}"
