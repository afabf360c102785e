"""Derivatives of terms and constraints compared with differences of fourth order: finds a gradient that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import real_array
from cstormpy.errors import InvalidValue, NonFinite
from cstormpy.optimal.differences import STEP as PART
from cstormpy.optimal.differences import differenced, differences
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.samples import CHANNELS, FORCES, TIMES, Array, Parts, Samples
from cstormpy.optimal.terms import Objective

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem

STEP = 1e-3
"""Step of the differences to a variable, as a part of its size."""

SHORTER = (1.0, 0.1, 0.01)
"""Parts of it, the differences to which are compared too."""

ROUNDING, TINY = 1e-12, 1e-300
"""A change by less than this part of a value says nothing about its derivative; nor does one below the second
number."""

WRONG, SMOOTH = 1e-4, 1e-5
"""A derivative that differs from a difference by more than the first part of the largest is wrong, if the difference
changes by less than the second where its step is halved: else the function has an edge there."""

EDGES = 0.05
"""Part of the samples that may lie on edges, to either side of which the function changes by the same."""


@dataclass(frozen=True)
class GradientCheck:
    """The result of a comparison: for each term or constraint the largest error, relative to its largest derivative.

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
        """True where all errors are within the tolerance."""
        return all(error <= self.tolerance for error in self.errors.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The term or constraint of the largest error, and that error."""
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


def check_gradients(problem: Problem, x: Array | None, tolerance: float) -> GradientCheck:
    """Compare all derivatives at x, or near to the guess; see `Problem.check_gradients`."""
    t = problem.transcription
    if x is None:
        x = problem.first_guess()
        x = x + 0.05 * np.random.default_rng(0).normal(size=x.shape) * np.where(
            np.arange(t.size) < t.map.size, t.variable_sizes, 0.0
        )
    x = real_array(x, "x", (t.size,))
    steps = STEP * t.variable_sizes
    errors: dict[str, float] = {}
    for weight, term in problem.objective.parts:
        part = Programme(t, Objective([(weight, term)]), (), *problem.bounds, x)
        _keep(errors, term.label(), part.gradient(x) * steps, part.cost, x, steps)
    for constraint in problem.constraints:
        part = Programme(t, Objective(), (constraint,), *problem.bounds, x)
        _keep(errors, f"constraint {constraint.name!r}", part.jacobian(x) * steps, part.constraints, x, steps)
    return GradientCheck(errors, tolerance)


def _keep(
    errors: dict[str, float], name: str, exact: Array, function: Callable[[Array], Any], x: Array, steps: Array
) -> None:
    """Keep the largest error of derivatives, by the best of differences of several steps for each.

    Rounding is in those of short steps; an edge, or nearly one as of the power in `EnergySpent`, in those of long ones.
    """
    found = np.stack([differences(function, x, part * steps) * steps for part in SHORTER])
    if not np.isfinite(found).all():
        raise NonFinite(f"{name}: is not finite near to where its gradient is to be checked")
    rounding = ROUNDING * float(np.abs(function(x)).max(initial=0.0))
    size = max(float(np.abs(exact).max(initial=0.0)), float(np.abs(found[0]).max(initial=0.0)), rounding, TINY)
    off = np.abs(exact - found).min(axis=0)
    off = np.where(off <= rounding, 0.0, off)  # of what is constant, as the duration may be
    same = sum(key == name or key.startswith(f"{name} #") for key in errors)
    errors[f"{name} #{same + 1}" if same else name] = float(off.max(initial=0.0)) / size


def wrong_gradient(problem: Problem, x: Array) -> str:
    """Return which gradient of the user's own is wrong along the motion of x, and by how much; nothing if none is."""
    t = problem.transcription
    motion = t.evaluate(x)
    if motion is None:
        return ""
    owners: list[tuple[str, Any, Samples]] = []
    for _, term in problem.objective.parts:
        places = t.grid if term.kind == "integral" else slice(t.grid.stop - 1, t.grid.stop)
        owners.append((term.label(), term, motion.samples.at(places)))
    for constraint in problem.constraints:
        owners.append((f"constraint {constraint.name!r}", constraint, motion.samples.at(t.places(constraint.imposed))))
    for name, owner, at in owners:
        if getattr(owner, "gradient", None) is not None:
            error, channel = _worst_channel(problem, owner, at)
            if error > WRONG:
                return f"{name}: its gradient to {channel!r} is off by {error:.2g} of the largest derivative"
    return ""


def _worst_channel(problem: Problem, owner: Any, at: Samples) -> tuple[float, str]:
    """Return the largest error of a gradient, relative to the largest derivative, and the channel that has it."""
    given: Parts = owner.derivatives(at)
    wide, close = differenced(owner.values, at), differenced(owner.values, at, 0.5 * PART)
    channels = [*CHANNELS, *([FORCES] if at.multipliers.shape[1] else [])]
    channels += TIMES if problem.free_duration else ()

    def of(parts: Parts, channel: str) -> Array:
        if channel in TIMES:
            return np.asarray(parts.get(channel, np.zeros(known.shape)) * at.duration)
        return np.asarray(parts.get(channel, np.zeros((*known.shape, 1))) * at.sizes.of(channel))

    known = owner.values(at)
    values = float(np.abs(known).max(initial=0.0))
    largest = max([float(np.abs(of(p, c)).max(initial=0.0)) for p in (given, wide) for c in channels])
    largest = max(largest, ROUNDING * values, TINY)
    worst = (0.0, "")
    for channel in channels:
        exact, first, second = (of(parts, channel) for parts in (given, wide, close))
        if channel == "qddd":  # the jerk of a joint that is integrated is not known
            moved = np.isin(np.arange(first.shape[-1]), problem.driven)
            exact, first, second = exact * moved, first * moved, second * moved
        off = np.where(np.abs(first - second) <= SMOOTH * largest, np.abs(exact - second), 0.0)
        by_sample = np.sort(off.reshape(len(at), -1).max(axis=1))
        worst = max(worst, (float(by_sample[-1 - int(EDGES * len(at))]) / largest, channel))
    return worst
