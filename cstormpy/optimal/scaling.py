"""A programme as solvers see it: variables, cost and constraints as multiples of their characteristic sizes.

A solver's first step, its line search and its tolerances compare numbers of different dimension. In multiples of
`Sizes` they are the same in all units, so that the search is the same, too.
"""

from __future__ import annotations

import numpy as np

from cstormpy.optimal.programme import Programme
from cstormpy.optimal.samples import Array
from cstormpy.optimal.transcription import Transcription

HUGE = 1e12
"""Scaled cost of a motion that is not finite, for solvers that know no other way to be told."""

STEEP = 10.0
"""Slope of the scaled cost at the guess: a solver's first step is as long, so that it neither creeps nor leaps."""

BESIDE = 0.05
"""Distance from the guess, in multiples of the variables' sizes, at which the cost's gradient is asked as well."""


def cost_size(programme: Programme, x: Array) -> float:
    """Return the size of a cost: its gradient to the scaled variables at the guess x, or near to it if it is greater.

    A guess may be stationary, as rest in an equilibrium is for the effort.
    """
    sizes, rng = programme.transcription.variable_sizes, np.random.default_rng(0)
    places = [x, np.clip(x + BESIDE * sizes * rng.uniform(-1.0, 1.0, x.size), programme.low, programme.high)]
    found = [float(np.abs(programme.gradient(place) * sizes).max(initial=0.0)) for place in places]
    size = max([entry for entry in found if np.isfinite(entry)], default=0.0)
    return (size or abs(programme.cost(x)) or 1.0) / STEEP


class Scaled:
    """Least cost(z) with lower <= constraints(z) <= upper and low <= z <= high, z = x/sizes.

    Parameters
    ----------
    programme : Programme
    cost : float
        Size of the cost, see `cost_size`.
    """

    def __init__(self, programme: Programme, cost: float) -> None:
        self.programme, self.cost_size = programme, cost
        self.sizes = sizes = programme.transcription.variable_sizes
        self.n, self.low, self.high = programme.n, programme.low / sizes, programme.high / sizes
        self.lower, self.upper, self.structure = programme.lower, programme.upper, programme.structure

    @property
    def transcription(self) -> Transcription:
        """That of the programme."""
        return self.programme.transcription

    def cost(self, z: Array) -> float:
        """Return the cost, `HUGE` where it is not finite."""
        cost = self.programme.cost(z * self.sizes)
        return cost / self.cost_size if np.isfinite(cost) else HUGE

    def finite(self, z: Array) -> bool:
        """Tell whether the motion is finite."""
        return self.programme.finite(z * self.sizes)

    def gradient(self, z: Array) -> Array:
        """Return the gradient of the cost, (n,); zeros where the motion is not finite."""
        return self.programme.gradient(z * self.sizes) * (self.sizes / self.cost_size)

    def constraints(self, z: Array) -> Array:
        """Return the constraints, (R,)."""
        return self.programme.constraints(z * self.sizes)

    def jacobian(self, z: Array) -> Array:
        """Return the derivatives of the constraints, (R, n)."""
        return self.programme.jacobian(z * self.sizes) * self.sizes

    def entries(self, z: Array) -> Array:
        """Return the entries of the constraints' Jacobian, in the order of `structure`."""
        return self.programme.entries(z * self.sizes) * self.sizes[self.structure[1]]

    def lagrangian_gradient(self, z: Array, factor: float, multipliers: Array) -> Array | None:
        """Return factor ∇cost + Jacobianᵀ multipliers, (n,); None where it is not finite."""
        found = self.programme.lagrangian_gradient(z * self.sizes, factor / self.cost_size, multipliers)
        return None if found is None else found * self.sizes

    def gauss_newton(self, z: Array) -> Array:
        """Return the Gauss-Newton matrix of the cost, (n, n)."""
        found = self.programme.gauss_newton(z * self.sizes)
        found *= self.sizes / self.cost_size
        found *= self.sizes[:, None]
        return found

    def violation(self, z: Array) -> float:
        """Return by how much constraints and bounds are violated at most; ∞ where z is not finite."""
        return self.programme.violation(z * self.sizes)
