"""Sequential quadratic programming by scipy's SLSQP (D. Kraft, DFVLR-FB 88-28, 1988)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cstormpy.optimal.kkt import kkt_residual
from cstormpy.optimal.samples import Array
from cstormpy.optimal.scaling import HUGE, Scaled

RESTARTS = 3
"""Most times that SLSQP begins anew, its curvature forgotten, where its line search failed."""

SHARPER = 1e-4
"""SLSQP ends where a step changes the cost by less than this part of the tolerance: what a gradient leaves in the cost
is its square, so that at a change of the tolerance itself the conditions of a minimum would hold to its root only."""

LEAP = 1.0
"""By how many of their sizes constraints may be violated more after a step: SLSQP's line search sees but those that
bound the step when it was found, and would go to where others are violated by any amount."""

STATIONARY = 1e-6
"""A KKT residual that is that of a minimum: it is enough where a step changes the cost by less than the tolerance."""

_REASONS = {
    0: "converged",
    2: "more equations than variables",
    3: "the quadratic subproblem did not converge",
    4: "the constraints contradict one another",
    5: "a singular matrix in the quadratic subproblem",
    6: "a singular matrix in the quadratic subproblem",
    7: "a singular matrix in the quadratic subproblem",
    8: "no descent along the search direction",
    9: "the most iterations were made",
}
_SINGULAR = (6, 7)
DEPENDENT = "the equations depend on one another; solver='gauss-newton' takes such"


class _Found(Exception):
    """Raised inside of SLSQP to leave it at a minimum."""


class _Watch:
    """Looks at each iterate, and leaves SLSQP at a minimum that it would go on to polish.

    SLSQP asks for a gradient where its line search has ended; its callback is given the first trial of the next one.
    """

    def __init__(self, programme: Scaled, tolerance: float, after_iteration: Callable[[Array], None]) -> None:
        self.programme, self.tolerance, self.after_iteration = programme, tolerance, after_iteration
        self.count = 0
        self._last, self._violation = np.inf, np.inf
        self._begins = True
        self._best: tuple[tuple[bool, float], Array] | None = None

    def begin(self) -> None:
        """Take the next point for one at which SLSQP begins."""
        self._begins = True

    def cost(self, x: Array) -> float:
        """Return the cost of a trial, `HUGE` where it leaps."""
        return HUGE if self.programme.violation(x) > self._violation + LEAP else self.programme.cost(x)

    def end(self, x: Array) -> Array:
        """Return where SLSQP has ended; the best iterate where its line search failed beyond what can be."""
        return x if self._best is None or self.cost(x) < HUGE else self._best[1]

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the cost at an iterate."""
        violation = self._violation = self.programme.violation(x)
        cost, before = self.programme.cost(x), self._last
        self._last = cost
        rank = (False, cost) if violation <= self.tolerance else (True, violation)
        if np.isfinite(violation) and (self._best is None or rank < self._best[0]):
            self._best = rank, x.copy()
        if not self._begins:
            self.count += 1
            self.after_iteration(x)
            if abs(cost - before) <= self.tolerance and self.stands(x):
                raise _Found(x.copy())
        self._begins = False
        return self.programme.gradient(x)

    def stands(self, x: Array) -> bool:
        """Tell whether it is a minimum."""
        return self.programme.violation(x) <= self.tolerance and kkt_residual(self.programme, x) <= STATIONARY


def solve_slsqp(
    programme: Scaled,
    x0: Array,
    iterations: int,
    tolerance: float,
    after_iteration: Callable[[Array], None],
) -> tuple[Array, bool, str, int]:
    """Return x, whether the solver says that it converged, why it stopped, and the number of iterations."""
    from scipy.optimize import Bounds, minimize

    x = np.clip(x0, programme.low, programme.high)
    watch = _Watch(programme, tolerance, after_iteration)
    constraints = _as_dictionaries(programme, x)
    for _ in range(RESTARTS + 1):
        before = programme.cost(x)
        watch.begin()
        try:
            found = minimize(
                watch.cost,
                x,
                jac=watch.gradient,
                method="SLSQP",
                bounds=Bounds(programme.low, programme.high),
                constraints=constraints,
                options={"maxiter": max(iterations - watch.count, 1), "ftol": SHARPER * tolerance},
            )
        except _Found as minimum:
            return minimum.args[0], True, _REASONS[0], watch.count
        status = int(found.status)
        end = watch.end(found.x)
        moved, x = not np.array_equal(end, x), end
        if status == 8 and watch.stands(x):
            status = 0
        again = status in (4, 8) and moved and watch.count < iterations
        if not again or abs(programme.cost(x) - before) <= tolerance * max(1.0, abs(before)):
            break
    reason = _REASONS.get(status, str(found.message))
    if status in _SINGULAR and (programme.lower == programme.upper).any():
        reason = DEPENDENT
    return x, status == 0, reason, watch.count


def _kept_anyway(programme: Scaled, x: Array) -> NDArray[np.bool_]:
    """Return which constraints hold whatever the variables are, as at an end that is fixed; SLSQP cannot take them."""
    beside = np.clip(x + 0.01 * np.random.default_rng(0).uniform(-1.0, 1.0, x.size), programme.low, programme.high)
    fixed = ~(programme.jacobian(x) != 0.0).any(axis=1) & ~(programme.jacobian(beside) != 0.0).any(axis=1)
    return np.asarray(fixed & (np.abs(programme.constraints(x) - programme.lower) <= 1e-9))


def _as_dictionaries(programme: Scaled, x: Array) -> list[dict[str, object]]:
    """Return the constraints as SLSQP takes them: c = 0 and c >= 0."""
    lower, upper = programme.lower, programme.upper
    equal = np.flatnonzero(lower == upper)
    if len(equal):
        equal = np.flatnonzero((lower == upper) & ~_kept_anyway(programme, x))
    below = np.flatnonzero(np.isfinite(lower) & (lower != upper))
    above = np.flatnonzero(np.isfinite(upper) & (lower != upper))
    made: list[dict[str, object]] = []
    if len(equal):
        target = lower[equal]
        made.append(
            {
                "type": "eq",
                "fun": lambda x: programme.constraints(x)[equal] - target,
                "jac": lambda x: programme.jacobian(x)[equal],
            }
        )
    if len(below) or len(above):
        low, high = lower[below], upper[above]
        made.append(
            {
                "type": "ineq",
                "fun": lambda x: np.concatenate([(c := programme.constraints(x))[below] - low, high - c[above]]),
                "jac": lambda x: np.concatenate([(J := programme.jacobian(x))[below], -J[above]]),
            }
        )
    return made
