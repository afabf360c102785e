"""An interior-point method for problems of many variables whose cost is a sum of squares.

Inequalities c_I(x) get slacks s, l <= s <= u, which like bounds of x are kept by a barrier (Wächter and Biegler 2006,
whose equation numbers these are):

    least  f(x) - μ Σ ln(s - l) - μ Σ ln(u - s) - ...   with  c_E(x) = 0,  c_I(x) - s = 0                     (3)

with primal-dual steps (9)-(12), the fraction to the boundary (15), and a filter for the line search (18)-(20). What is
different is the linear system: the Hessian of the Lagrangian is not formed but multiplied, by differences of exact
gradients, and the system solved by conjugate gradients (`gauss_newton_step`), of which the Gauss-Newton matrix, with
what the barrier adds to it, is the preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cstormpy.optimal.gauss_newton_step import Preconditioner, newton_step
from cstormpy.optimal.kkt import kkt_residual
from cstormpy.optimal.row_blocks import RowBlocks, Rows
from cstormpy.optimal.samples import Array
from cstormpy.optimal.scaling import Scaled

STATIONARY = 1e-8
"""Distance from the conditions of a minimum at which an answer is one, relative to the gradient of the cost."""

ACCEPTABLE = 1e-6
"""That distance, with any multipliers of the right sign, where rounding lets the search come no nearer."""

DIFFERENCE = 1e-5
"""Length of the differences of gradients, in multiples of the sizes of the variables."""

MOST_PRODUCTS = 40
"""Products for one step."""

FIRST_BARRIER, SMALL_BARRIER, LAST_BARRIER = 0.1, 1e-7, 1e-11
SHRINK, POWER, ENOUGH = 0.1, 1.2, 10.0  # κ_μ, θ_μ, κ_ε
PUSH = 1e-2  # κ_1, κ_2
TO_BOUNDARY = 0.99
KEEP_DUAL = 1e10  # κ_Σ
ARMIJO, MARGIN = 1e-4, 1e-5  # η_φ; γ_θ and γ_φ
SMALLEST = 1e-8
"""Shortest part of a step that is tried."""

LONGEST_STEP = 1.5
"""Of a variable, in multiples of its size."""

DAMPED, LEAST_DAMPING, MORE_DAMPING = 8, 1e-4, 10.0
"""Most dampings of a step, the least part of the unit matrix added to the Hessian, and its growth."""

PROXIMAL = 1e-7
"""Damping of every step, as a part of the mean diagonal entry of the Gauss-Newton matrix: more than its rounding."""

LOOSEST, TIGHTEST = 0.3, 1e-3
"""To which part of its first residual the system of a step is solved, far from a minimum and near to it."""

FAR = 1e20
"""A bound that is none."""


class _Bounds:
    """low <= value <= high with the multipliers of both sides."""

    def __init__(self, low: Array, high: Array) -> None:
        self.low, self.high = low, high
        self.has_low, self.has_high = low > -FAR, high < FAR
        self.below, self.above = np.zeros_like(low), np.zeros_like(high)  # multipliers

    def inside(self, value: Array) -> Array:
        """Return values pushed away from the bounds."""
        wide = np.where(self.has_low & self.has_high, self.high - self.low, np.inf)
        low = np.where(self.has_low, self.low, 0.0)
        high = np.where(self.has_high, self.high, 0.0)
        first = np.minimum(PUSH * np.maximum(1.0, np.abs(low)), PUSH * wide)
        last = np.minimum(PUSH * np.maximum(1.0, np.abs(high)), PUSH * wide)
        value = np.where(self.has_low, np.maximum(value, low + first), value)
        return np.where(self.has_high, np.minimum(value, high - last), value)

    def gaps(self, value: Array) -> tuple[Array, Array]:
        """Return how far values are from the bounds, ∞ where there is none."""
        return (
            np.where(self.has_low, value - self.low, np.inf),
            np.where(self.has_high, self.high - value, np.inf),
        )

    def start(self, value: Array, mu: float) -> None:
        """Set the multipliers to those of the barrier."""
        down, up = self.gaps(value)
        self.below, self.above = mu / down, mu / up

    def barrier(self, value: Array) -> float:
        """Return Σ ln of the gaps, -∞ outside."""
        total = 0.0
        for gap, has in zip(self.gaps(value), (self.has_low, self.has_high), strict=True):
            if (gap <= 0.0).any():
                return -np.inf
            total += float(np.log(gap[has]).sum())
        return total

    def slope(self, value: Array, mu: float) -> Array:
        """Return the gradient of -μ Σ ln of the gaps."""
        down, up = self.gaps(value)
        return mu / up - mu / down

    def stiffness(self, value: Array) -> Array:
        """Return Σ, the multipliers over the gaps."""
        down, up = self.gaps(value)
        return self.below / down + self.above / up

    def steps(self, value: Array, step: Array, mu: float) -> tuple[Array, Array]:
        """Return the steps of the multipliers, (12)."""
        down, up = self.gaps(value)
        return (mu - self.below * step) / down - self.below, (mu + self.above * step) / up - self.above

    def longest(self, value: Array, step: Array, part: float) -> float:
        """Return the longest part of a step that leaves 1 - part of each gap, (15a)."""
        down, up = self.gaps(value)
        return min(_longest(down, step, part), _longest(up, -step, part))

    def move(self, value: Array, steps: tuple[Array, Array], length: float, mu: float) -> None:
        """Move the multipliers, and keep them near to those of the barrier, (16)."""
        for name, step, gap in zip(("below", "above"), steps, self.gaps(value), strict=True):
            near = mu / gap
            moved = getattr(self, name) + length * step
            setattr(self, name, np.clip(moved, near / KEEP_DUAL, near * KEEP_DUAL))

    def off(self, value: Array, mu: float) -> float:
        """Return the largest |gap multiplier - μ|."""
        worst = 0.0
        for gap, dual, has in zip(
            self.gaps(value), (self.below, self.above), (self.has_low, self.has_high), strict=True
        ):
            worst = max(worst, float(np.abs(gap[has] * dual[has] - mu).max(initial=0.0)))
        return worst


def _longest(gap: Array, step: Array, part: float) -> float:
    moving = step < 0.0
    return min(1.0, float((part * gap[moving] / -step[moving]).min(initial=1.0)))


@dataclass
class _Place:
    """Cost, gradient, constraints and their Jacobian at x."""

    x: Array
    cost: float
    c: Array
    gradient: Array
    rows: Rows


@dataclass
class _Step:
    x: Array
    s: Array
    equal: Array  # the new multipliers of equations
    inner: Array  # and of inequalities
    slope: float  # of the barrier function


class _Search:
    """The state of the search."""

    def __init__(self, programme: Scaled, x0: Array) -> None:
        self.programme = programme
        lower, upper = programme.lower, programme.upper
        self.equal = np.flatnonzero(lower == upper)
        self.inner = np.flatnonzero((lower != upper) & ((lower > -FAR) | (upper < FAR)))
        self.of_x = _Bounds(programme.low, programme.high)
        self.of_s = _Bounds(lower[self.inner], upper[self.inner])
        self.blocks = RowBlocks(*programme.structure, (len(lower), programme.n))
        x = self.of_x.inside(np.clip(x0, programme.low, programme.high))
        x = x if programme.finite(x) else np.clip(x0, programme.low, programme.high)
        self.here = self.place(x)
        self.s = self.of_s.inside(self.here.c[self.inner])
        bounded = any(b.has_low.any() or b.has_high.any() for b in (self.of_x, self.of_s))
        self.last = LAST_BARRIER if bounded else 0.0
        self.mu = FIRST_BARRIER if bounded else 0.0
        self.of_x.start(x, self.mu)
        self.of_s.start(self.s, self.mu)
        self.y = np.zeros(len(lower))
        self.y[self.inner] = self.of_s.above - self.of_s.below
        self.damping = 0.0
        self.filter: list[tuple[float, float]] = []
        self.first_miss = max(1.0, self.miss(self.here.c, self.s))

    def place(self, x: Array) -> _Place:
        p = self.programme
        return _Place(x, p.cost(x), p.constraints(x).copy(), p.gradient(x), self.blocks.of(p.entries(x)))

    def residual(self, c: Array, s: Array) -> Array:
        """Return c_E(x) and c_I(x) - s, one behind the other."""
        return np.concatenate([c[self.equal] - self.programme.lower[self.equal], c[self.inner] - s])

    def miss(self, c: Array, s: Array) -> float:
        """Return θ, the sum of their sizes."""
        return float(np.abs(self.residual(c, s)).sum())

    def barrier(self, cost: float, x: Array, s: Array) -> float:
        """Return φ."""
        return cost - (self.mu * (self.of_x.barrier(x) + self.of_s.barrier(s)) if self.mu else 0.0)

    def error(self, mu: float) -> float:
        """Return the largest residual of the conditions of a minimum of the barrier's problem, (5)."""
        here = self.here
        size = max(1.0, float(np.abs(here.gradient).max(initial=0.0)))
        dual = here.gradient + here.rows.transposed(self.y) - self.of_x.below + self.of_x.above
        inner = self.y[self.inner] + self.of_s.below - self.of_s.above
        stationary = max(float(np.abs(dual).max(initial=0.0)), float(np.abs(inner).max(initial=0.0))) / size
        off = max(self.of_x.off(here.x, mu), self.of_s.off(self.s, mu)) / size
        return max(stationary, float(np.abs(self.residual(here.c, self.s)).max(initial=0.0)), off)

    def stands(self, tolerance: float) -> bool:
        """Tell whether it is a minimum, whatever the multipliers of the barrier are."""
        x = self.here.x
        return self.programme.violation(x) <= tolerance and kkt_residual(self.programme, x) <= ACCEPTABLE

    # ---------------------------------------------------------------- the step

    def system(self) -> tuple[Array, Preconditioner]:
        """Return what the barrier adds to the diagonal of the Hessian, and the preconditioner."""
        here = self.here
        K = self.programme.gauss_newton(here.x)
        extra = self.of_x.stiffness(here.x) + self.damping + PROXIMAL * float(np.diag(K).mean())
        np.einsum("ii->i", K)[:] += extra
        weights = np.zeros(len(here.c))
        weights[self.inner] = self.of_s.stiffness(self.s)
        here.rows.add_gram(weights, K)
        A = here.rows.dense(self.equal)
        damping = self.damping
        while True:
            try:
                return extra, Preconditioner(K, A)
            except np.linalg.LinAlgError:
                more = max(1e-6, 9.0 * damping)
                np.einsum("ii->i", K)[:] += more
                damping += more

    def product(self, extra: Array) -> Callable[[Array], Array]:
        """Return what multiplies the Hessian of the barrier's Lagrangian with a vector."""
        here, p = self.here, self.programme
        stiffness = np.zeros(len(here.c))
        stiffness[self.inner] = self.of_s.stiffness(self.s)
        y = self.y.copy()
        slope = here.gradient + here.rows.transposed(y)

        def times(v: Array) -> Array:
            length = DIFFERENCE / max(float(np.abs(v).max()), 1e-300)
            ahead = p.lagrangian_gradient(here.x + length * v, 1.0, y)
            if ahead is None:
                return np.full_like(v, np.nan)
            return (ahead - slope) / length + extra * v + here.rows.transposed(stiffness * here.rows.times(v))

        return times

    def step(self, part: float) -> _Step:
        """Return a step of x and s, and the new multipliers."""
        here, inner = self.here, self.inner
        extra, near = self.system()
        stiffness = self.of_s.stiffness(self.s)
        push = self.of_s.slope(self.s, self.mu)
        off = here.c[inner] - self.s
        pulled = np.zeros(len(here.c))
        pulled[inner] = push + stiffness * off
        of_x = here.gradient + self.of_x.slope(here.x, self.mu)
        g = of_x + here.rows.transposed(pulled)
        missed = here.c[self.equal] - self.programme.lower[self.equal]
        dx, equal = newton_step(self.product(extra), near, g, missed, part, MOST_PRODUCTS)
        ds = here.rows.times(dx)[inner] + off
        slope = float(of_x @ dx + push @ ds)
        return _Step(dx, ds, equal, push + stiffness * ds, slope)

    # ---------------------------------------------------------------- the line search

    def advance(self) -> bool:
        """Make one iteration, damped where the step leads nowhere; tell whether it moved."""
        self.damping = 0.0
        part = min(LOOSEST, max(self.error(self.mu) ** 0.5, TIGHTEST))
        for _ in range(DAMPED):
            if self.search(self.step(part)):
                return True
            self.damping = max(LEAST_DAMPING, MORE_DAMPING * self.damping)
        return False

    def search(self, step: _Step) -> bool:
        """Move along a step as far as it is of use; tell whether it was."""
        here, part = self.here, max(TO_BOUNDARY, 1.0 - self.mu)
        longest = min(self.of_x.longest(here.x, step.x, part), self.of_s.longest(self.s, step.s, part))
        miss, value = self.miss(here.c, self.s), self.barrier(here.cost, here.x, self.s)
        longest = min(longest, LONGEST_STEP / max(float(np.abs(step.x).max()), 1e-300))
        length = longest
        while length > SMALLEST * longest:
            x, s = here.x + length * step.x, self.s + length * step.s
            if self.programme.finite(x):
                c, cost = self.programme.constraints(x), self.programme.cost(x)
                if self.taken(self.miss(c, s), self.barrier(cost, x, s), miss, value, length * step.slope):
                    self.move(step, x, s, length, part)
                    return True
            length *= 0.5
        return False

    def taken(self, miss: float, value: float, miss0: float, value0: float, gain: float) -> bool:
        """Tell whether a point is good enough, (18)-(20), and add the old one to the filter where it is to be."""
        rounding = 1e-13 * max(1.0, abs(value0))
        if not np.isfinite(value) or any(miss >= m and value >= v - rounding for m, v in self.filter):
            return False
        if miss > 1e4 * self.first_miss:
            return False
        small = miss0 <= 1e-4 * self.first_miss
        if small and gain < 0.0 and (-gain) ** 2.3 > miss0**1.1:
            return value <= value0 + ARMIJO * gain + rounding
        if miss > (1.0 - MARGIN) * miss0 + 1e-15 and value > value0 - MARGIN * miss0 + rounding:
            return False
        self.filter.append(((1.0 - MARGIN) * miss0, value0 - MARGIN * miss0))
        return True

    def move(self, step: _Step, x: Array, s: Array, length: float, part: float) -> None:
        of_x = self.of_x.steps(self.here.x, step.x, self.mu)
        of_s = self.of_s.steps(self.s, step.s, self.mu)
        dual = min(
            _longest(values, change, part)
            for bounds, steps in ((self.of_x, of_x), (self.of_s, of_s))
            for values, change in zip((bounds.below, bounds.above), steps, strict=True)
        )
        self.here, self.s = self.place(x), s
        self.of_x.move(x, of_x, dual, self.mu)
        self.of_s.move(s, of_s, dual, self.mu)
        new = np.zeros_like(self.y)
        new[self.equal], new[self.inner] = step.equal, step.inner
        self.y += length * (new - self.y)

    def sharpen(self) -> None:
        """Lower the barrier where its problem is solved, (7)."""
        while self.mu > self.last and self.error(self.mu) <= ENOUGH * self.mu:
            self.mu = max(self.last, min(SHRINK * self.mu, self.mu**POWER))
            self.filter.clear()


def solve_gauss_newton(
    programme: Scaled,
    x0: Array,
    iterations: int,
    tolerance: float,
    after_iteration: Callable[[Array], None],
) -> tuple[Array, bool, str, int]:
    """Return x, whether the solver says that it converged, why it stopped, and the number of iterations."""
    search = _Search(programme, x0)
    for k in range(iterations):
        search.sharpen()
        if search.mu <= search.last and search.error(search.mu) <= STATIONARY:
            return search.here.x, True, "converged", k
        before = search.here.cost
        if not search.advance():
            good = search.error(0.0) <= ACCEPTABLE or search.stands(tolerance)
            return search.here.x, good, "converged" if good else "no descent along the search direction", k
        after_iteration(search.here.x)
        still = abs(search.here.cost - before) <= tolerance * max(1.0, abs(before))
        if still and 0.0 < search.mu <= SMALL_BARRIER and search.stands(tolerance):
            return search.here.x, True, "converged", k + 1
    return search.here.x, False, "the most iterations were made", iterations
