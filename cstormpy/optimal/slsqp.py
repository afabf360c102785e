"""Sequential quadratic programming by scipy's SLSQP (D. Kraft, DFVLR-FB 88-28, 1988)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cstormpy.optimal.programme import Programme
from cstormpy.optimal.samples import Array
from cstormpy.optimal.transcription import Indices

__all__ = ["solve_slsqp"]

RESTARTS = 3
"""How often SLSQP begins anew, its curvature forgotten, where its line search failed."""

_REASONS = {
    0: "converged",
    2: "more equations than variables",
    3: "the quadratic subproblem did not converge",
    4: "the constraints contradict one another",
    5: "a singular matrix in the quadratic subproblem",
    6: "a singular matrix in the quadratic subproblem",
    7: "the equations depend on one another",
    8: "no descent along the search direction",
    9: "the most iterations were made",
}


def solve_slsqp(
    programme: Programme,
    x0: Array,
    iterations: int,
    tolerance: float,
    after_iteration: Callable[[Array], None],
) -> tuple[Array, bool, str, int]:
    """Return x, whether the solver says that it converged, why it stopped, and the number of iterations."""
    from scipy.optimize import Bounds, minimize

    x, total = np.clip(x0, programme.low, programme.high), 0
    constraints = _as_dictionaries(programme)
    for _ in range(RESTARTS + 1):
        before = programme.cost(x)
        found = minimize(
            programme.cost,
            x,
            jac=programme.gradient,
            method="SLSQP",
            bounds=Bounds(programme.low, programme.high),
            constraints=constraints,
            callback=after_iteration,
            options={"maxiter": max(iterations - total, 1), "ftol": tolerance},
        )
        total += int(found.nit)
        status = int(found.status)
        moved = programme.finite(found.x) and not np.array_equal(found.x, x)
        x = found.x if programme.finite(found.x) else x
        again = status in (4, 8) and moved and total < iterations
        if not again or abs(programme.cost(x) - before) <= tolerance * max(1.0, abs(before)):
            break
    return x, status == 0, _REASONS.get(status, str(found.message)), total


def _as_dictionaries(programme: Programme) -> list[dict[str, object]]:
    """Return the constraints as SLSQP takes them: c = 0 and c >= 0."""
    lower, upper = programme.lower, programme.upper
    equal = np.flatnonzero(lower == upper)
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
                "fun": lambda x: _both(programme.constraints(x), below, above, low, high),
                "jac": lambda x: _both_rows(programme.jacobian(x), below, above),
            }
        )
    return made


def _both(c: Array, below: Indices, above: Indices, low: Array, high: Array) -> Array:
    return np.concatenate([c[below] - low, high - c[above]])


def _both_rows(J: Array, below: Indices, above: Indices) -> Array:
    return np.concatenate([J[below], -J[above]])
