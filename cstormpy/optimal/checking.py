"""Derivatives of terms and constraints compared with differences of fourth order: finds a gradient that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import InvalidValue, NonFinite, ShapeError
from cstormpy.optimal.differences import STENCIL
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.samples import Array
from cstormpy.optimal.terms import Objective

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem

__all__ = ["GradientCheck", "check_gradients", "differences"]

STEP = 1e-3
"""Step of the differences to a variable; T is moved by this part of itself."""


@dataclass(frozen=True)
class GradientCheck:
    """What came of a comparison: for each term or constraint the largest error, relative to its largest derivative.

    Attributes
    ----------
    errors : dict
        By what it is, in the order of the problem.
    tolerance : float
    """

    errors: dict[str, float]
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether all errors are within the tolerance."""
        return all(error <= self.tolerance for error in self.errors.values())

    @property
    def worst(self) -> tuple[str, float]:
        """What has the largest error, and that."""
        return max(self.errors.items(), key=lambda item: item[1], default=("nothing", 0.0))

    def raise_if_wrong(self) -> None:
        """Raise InvalidValue that names the worst derivative, if one is wrong."""
        if not self.ok:
            name, error = self.worst
            raise InvalidValue(
                f"{name}: its gradient is off by {error:.2g} of the largest derivative, against differences of its "
                f"values; more than {self.tolerance:g} is taken for wrong"
            )

    def __str__(self) -> str:
        """Return a table."""
        width = max((len(name) for name in self.errors), default=0)
        return "\n".join(
            f"{name:<{width}}  {error:.1e}  {'ok' if error <= self.tolerance else 'WRONG'}"
            for name, error in self.errors.items()
        )


def differences(function: Callable[[Array], Any], x: Array, steps: Array) -> Array:
    """Return the derivatives of function(x), (k,), to x by differences of fourth order, (k, n)."""
    columns = []
    for j, step in enumerate(steps):
        total: Any = 0.0
        for place, weight in STENCIL:
            moved = x.copy()
            moved[j] += place * step
            total = total + (weight / step) * function(moved)
        columns.append(np.atleast_1d(total))
    return np.stack(columns, axis=-1)


def check_gradients(problem: Problem, x: Array | None, tolerance: float) -> GradientCheck:
    """Compare all derivatives at x, or near to the guess; see `Problem.check_gradients`."""
    t = problem.transcription
    if x is None:
        x = problem.first_guess()
        x = x + 0.05 * np.random.default_rng(0).normal(size=x.shape) * np.where(
            np.arange(t.size) < t.map.size, 1.0, 0.0
        )
    elif np.shape(x) != (t.size,):
        raise ShapeError(f"x: expected the shape ({t.size},), got {np.shape(x)}")
    steps = np.full(t.size, STEP)
    if t.free_duration:
        steps[-1] = STEP * x[-1]
    errors: dict[str, float] = {}
    for weight, term in problem.objective.parts:
        part = Programme(t, Objective([(weight, term)]), (), *problem.bounds, x)
        _keep(errors, term._shown(), part.gradient(x)[None], differences(part.cost, x, steps))
    for constraint in problem.constraints:
        part = Programme(t, Objective(), (constraint,), *problem.bounds, x)
        _keep(errors, f"constraint {constraint.name!r}", part.jacobian(x), differences(part.constraints, x, steps))
    return GradientCheck(errors, tolerance)


def _keep(errors: dict[str, float], name: str, exact: Array, differenced: Array) -> None:
    if not np.isfinite(differenced).all():
        raise NonFinite(f"{name}: is not finite near to where its gradient is to be checked")
    size = max(float(np.abs(exact).max(initial=0.0)), float(np.abs(differenced).max(initial=0.0)), 1e-12)
    same = sum(key == name or key.startswith(f"{name} #") for key in errors)
    errors[f"{name} #{same + 1}" if same else name] = float(np.abs(exact - differenced).max(initial=0.0)) / size
