"""Ipopt (Wächter and Biegler 2006) through cyipopt, with sparse Jacobian and the Hessian of the Lagrangian.

The Hessian comes from differences of exact gradients along groups of variables ("colours") that meet in no entry:
control points of a spline matter to few samples, so that a few groups are enough however many control points there are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from cstormpy.optimal.samples import Array
from cstormpy.optimal.scaling import STEEP, Scaled
from cstormpy.optimal.transcription import Indices

STEP = 1e-7
"""Step of the differences of gradients, relative to the size of a variable: more exact than Ipopt needs."""

_GOOD = (0, 1)
"""Ipopt's status of a solution, to its own and to the acceptable tolerance."""


def has_ipopt() -> bool:
    """Tell whether cyipopt is installed."""
    return find_spec("cyipopt") is not None


def solve_ipopt(
    programme: Scaled,
    x0: Array,
    iterations: int,
    tolerance: float,
    after_iteration: Callable[[Array], None],
) -> tuple[Array, bool, str, int]:
    """Return x, whether the solver says that it converged, why it stopped, and the number of iterations."""
    cyipopt = import_module("cyipopt")
    asked = _Asked(programme, after_iteration, cyipopt.CyIpoptEvaluationError)
    solver = cyipopt.Problem(
        n=programme.n,
        m=len(programme.lower),
        problem_obj=asked,
        lb=programme.low,
        ub=programme.high,
        cl=programme.lower,
        cu=programme.upper,
    )
    options: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "max_iter": iterations,
        "tol": max(tolerance, 1e-10),
        "acceptable_tol": 1e-6,
        "bound_relax_factor": 0.0,
        "mu_strategy": "adaptive",
        "obj_scaling_factor": 1.0 / STEEP,  # its first step is that of Newton, so that the cost need not be steep
    }
    for name, value in options.items():
        solver.add_option(name, value)
    x, info = solver.solve(np.clip(x0, programme.low, programme.high))
    if asked.raised is not None:
        raise asked.raised
    message = info["status_msg"]
    text = message.decode() if isinstance(message, bytes) else str(message)
    good = int(info["status"]) in _GOOD
    x = np.clip(x, programme.low, programme.high)
    return x, good, "converged" if good else text.rstrip("."), asked.iterations


class _Asked:
    """A problem as cyipopt calls it."""

    def __init__(self, programme: Scaled, after_iteration: Callable[[Array], None], refuse: type[Exception]) -> None:
        self.programme, self.after_iteration, self.refuse = programme, after_iteration, refuse
        self.iterations = 0
        self.raised: BaseException | None = None
        self._x = np.zeros(programme.n)
        self._last_alone = programme.transcription.free_duration
        self._shared = programme.n - self._last_alone
        self._pattern = _pattern(programme)
        # the duration meets all others: it is a group of its own, and its row is known from its column
        several = self._pattern[: self._shared, : self._shared] if self._last_alone else self._pattern
        self._colours = colours_of(several)
        if self._last_alone:
            self._colours.append(np.array([self._shared]))
        self._rows, self._columns = np.nonzero(np.tril(self._pattern))

    def _finite(self, x: Array) -> None:
        if not self.programme.finite(x):
            raise self.refuse

    def objective(self, x: Array) -> float:
        self._x = x.copy()
        self._finite(x)
        return self.programme.cost(x)

    def gradient(self, x: Array) -> Array:
        self._finite(x)
        return self.programme.gradient(x)

    def constraints(self, x: Array) -> Array:
        self._finite(x)
        return self.programme.constraints(x)

    def jacobianstructure(self) -> tuple[Indices, Indices]:
        return self.programme.structure

    def jacobian(self, x: Array) -> Array:
        self._finite(x)
        return self.programme.entries(x)

    def hessianstructure(self) -> tuple[Indices, Indices]:
        return self._rows, self._columns

    def hessian(self, x: Array, multipliers: Array, factor: float) -> Array:
        """Return the entries of the lower triangle."""
        programme = self.programme
        found = np.zeros((programme.n, programme.n))
        here = programme.lagrangian_gradient(x, factor, multipliers)
        for group in self._colours:
            step = STEP * np.maximum(1.0, np.abs(x[group]))
            ahead = x.copy()
            ahead[group] += step
            there = programme.lagrangian_gradient(ahead, factor, multipliers)
            if here is None or there is None:
                raise self.refuse
            change = there - here
            for j, size in zip(group, step, strict=True):
                rows = self._pattern[:, j]
                found[rows, j] = change[rows] / size
        if self._last_alone:
            found[-1, :-1] = found[:-1, -1]
        found = 0.5 * (found + found.T)
        return found[self._rows, self._columns]

    def intermediate(self, mode: int, iteration: int, *measures: Any) -> bool:
        """Tell the search; False ends it."""
        self.iterations = iteration
        if iteration == 0:
            return True
        try:
            self.after_iteration(self._x)
        except BaseException as error:
            self.raised = error
            return False
        return True


def _pattern(programme: Scaled) -> Any:
    """Return which variables meet in the Hessian, (n, n): those that matter to a common sample."""
    t = programme.transcription
    plan = t.plan(np.arange(len(t.phases)))
    touched = np.zeros((len(t.phases), programme.n), dtype=np.int64)
    touched[plan.rows, plan.columns] = 1
    return touched.T @ touched > 0


def colours_of(pattern: Any) -> list[Indices]:
    """Return groups of columns of a symmetric pattern (n, n) of which no two have an entry in the same row.

    >>> [group.tolist() for group in colours_of(np.eye(3, dtype=bool))]
    [[0, 1, 2]]
    """
    filled: list[Any] = []
    groups: list[list[int]] = []
    for j in np.argsort(-pattern.sum(axis=0), kind="stable"):
        for group, rows in zip(groups, filled, strict=True):
            if not (rows & pattern[:, j]).any():
                group.append(int(j))
                rows |= pattern[:, j]
                break
        else:
            groups.append([int(j)])
            filled.append(pattern[:, j].copy())
    return [np.array(sorted(group)) for group in groups]
