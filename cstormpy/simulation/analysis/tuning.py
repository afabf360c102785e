"""Improves numbers of a diagram, such as a controller's gains, by the exact gradient of a run's cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arguments import flag, positive, whole_number
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidType, InvalidValue, shown, unknown_name
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.descent import INTERRUPTED, Descent, single
from cstormpy.simulation.analysis.gradients import Gradient, Problem
from cstormpy.simulation.named_states import block_of_state, state_places
from cstormpy.simulation.results import Result
from cstormpy.simulation.run_data import draw_columns, groups_of
from cstormpy.simulation.saved_state import SavedState

#: By this part of what is gained may the cost differ that the run has by steps of its own.
_FAR = 0.01
#: How many runs a search is expected to take.
_EXPECTED = 30
#: A cost that falls by more than this factor is drawn on a logarithmic axis.
_DECADE = 10.0


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of `Simulation.tune`.

    Attributes
    ----------
    parameters : tuple of str
    before, after : ndarray, (k,)
        Their values.
    cost_before, cost : float
        At both, by the steps that the solver chose there or near it: of several costs half the sum of their squares.
    success, applied : bool
        Whether the search came to an end by itself, and whether the blocks have the new values; the message names
        states whose values are in no block.
    message : str
        Why it ended.
    history : list of float
        The best cost after each run, `cost` being the last.
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

    def __repr__(self) -> str:
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
        signals : str or list of str, optional
            Watched signals or states; the watched ones, or else the states, unless given.
        """
        import matplotlib.pyplot as plt

        names = () if signals is None else (signals,) if isinstance(signals, str) else tuple(signals)
        before, after = groups_of(self.out_before, names), groups_of(self.out, names)
        figure, axes = plt.subplots(1 + len(after), 1, layout="constrained", figsize=(7.0, 2.2 * (1 + len(after))))
        panels = np.ravel(axes)
        panels[0].plot(range(1, len(self.history) + 1), self.history, ".-")
        panels[0].xaxis.get_major_locator().set_params(integer=True)
        panels[0].set_yscale("log" if 0.0 < _DECADE * min(self.history) < max(self.history) else "linear")
        panels[0].set(xlabel="run", ylabel="best cost", title=f"cost {self.cost_before:.4g} → {self.cost:.4g}")
        panels[0].grid(alpha=0.3)
        for panel, title in zip(panels[1:], after, strict=True):
            draw_columns(panel, self.out_before, title, before[title], "before", "--")
            draw_columns(panel, self.out, title, after[title], "after", "-")
            panel.set_xlabel("t [s]")
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # beside the curves
        return figure


def tune(
    sim: Any, bd: Any, cost: Any, parameters: Any, *, bounds: Any, apply: Any, max_runs: Any, tol: Any, **options: Any
) -> Tuning:
    """Improve parameters of a diagram; see `Simulation.tune`."""
    most, least = whole_number(max_runs, "tune: max_runs", 1, 10**9), positive(tol, "tune: tol")
    wanted = None if apply is None else flag(apply, "tune: apply")
    problem = Problem(sim, bd, cost, parameters, options, "tune")
    if samples := problem.parameters.samples():
        raise InvalidValue(f"tune: {next(iter(samples))!r} is a sampled state, which no block is given; name its x0")
    before = problem.parameters.get()
    problem.runs, problem.halves = _EXPECTED, True
    search = Descent(problem, _limits(problem.parameters.names, bounds, before), before, most, sim.options)
    try:
        with search.progress:
            first = search.look(before)
            success, message = search.go(least)
            best = search.best
            problem.parameters.set(best.values)
            if message != INTERRUPTED and problem.times is not None:
                holds, said = _by_own_steps(problem, best, single(first.cost))
                success, message = success and holds, message + said
    except BaseException:
        problem.parameters.set(before)
        raise
    better = single(best.cost) < single(first.cost)
    keep = better and (success if wanted is None else wanted)
    problem.parameters.set(best.values if keep else before)
    left = _states_left(problem) if keep else []
    applied = keep and len(left) < len(before)
    if left:
        message += f"; in no block is set {', '.join(left)}: {_how_to_pass(problem, left[0], best.out.x[0])}"
    result = Tuning(
        problem.parameters.names, before, best.values, single(first.cost), single(best.cost), success,
        applied, message, search.history, search.runs, first.out, best.out, best.differenced,
    )  # fmt: skip
    if not applied:
        notice(f"tune: {message}; the blocks keep their values{'' if not better else ', the result holds better ones'}")
    return result


def _by_own_steps(problem: Problem, best: Gradient, before: float) -> tuple[bool, str]:
    """Return whether a run by steps that the solver chooses anew is better too, and what it costs if not the same."""
    try:
        problem.times = problem.chosen_steps()
        free, cost = single(problem.evaluate(best.values).cost), single(best.cost)
    except CstormError as error:
        return False, f"; but by steps of its own the run fails: {error}"
    except KeyboardInterrupt:
        return False, f"; {INTERRUPTED}"
    if abs(free - cost) <= _FAR * max(abs(cost), abs(before - cost)):
        return True, ""
    advice = "tune with a fixed step, as in solver='RK4', dt=0.01"
    return free < before, f"; but by steps of its own the run costs {free:.6g}: {advice}"


def _states_left(problem: Problem) -> list[str]:
    """Have the blocks begin at the states among the parameters; return those that `start` says, or no block."""
    start, bd = problem.start, problem.bd
    given = set() if start is None else set(range(len(bd.statenames)))
    if isinstance(start, Mapping):
        given = {k for name in start for k in state_places(bd, name, "tune: start")}
    left = []
    for name in problem.parameters.states():
        if list(bd.statenames).index(name) in given or not problem.parameters.put_state(name):
            left.append(name)
    return left


def _how_to_pass(problem: Problem, name: str, x: Array) -> str:
    if not isinstance(problem.start, SavedState):
        return "run with start=tuned.out.x[0]"
    block, at, _ = block_of_state(problem.bd, name)
    return f"put it into the saved state, as start.continuous[{str(block.name)!r}] = {x[at].tolist()}"


def _limits(names: tuple[str, ...], bounds: Any, values: Array) -> Array:
    """Return the least and the greatest value of each parameter, (2, k)."""
    limits = np.array([[-np.inf], [np.inf]]) * np.ones(len(names))
    if bounds is None:
        bounds = {}
    if not isinstance(bounds, Mapping):
        pairs = list(bounds) if isinstance(bounds, (list, tuple, np.ndarray)) else []
        if pairs and all(np.ndim(pair) == 1 for pair in pairs):  # one for each, as scipy takes them
            if len(pairs) != len(names):
                raise InvalidValue(
                    f"tune: bounds: expected one pair for each of the {len(names)} parameters, got {len(pairs)}; the "
                    f"parameters are {', '.join(names)}"
                )
            bounds = dict(zip(names, pairs, strict=True))
        else:
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
            raise InvalidType(
                f"tune: bounds of {name}: expected two numbers, got {shown(pair)}; bounds is a dict of "
                "pairs by name, one pair for all parameters, or a list of one for each"
            ) from None
        if not least < most:
            raise InvalidValue(f"tune: bounds of {name}: expected the lesser number first, got {least:g} and {most:g}")
        limits[0, at], limits[1, at] = least, most
        for k in at:
            if not least <= values[k] <= most:
                raise InvalidValue(f"tune: {names[k]} = {values[k]:g} is not within its bounds, {least:g} to {most:g}")
    return limits
