"""SLSQP as it is used here: which points are iterates, and how far from its constraints it may step."""

import numpy as np
import pytest

from cstormpy.optimal.scaling import HUGE
from cstormpy.optimal.slsqp import LEAP, solve_slsqp


class Programme:
    """Least cost(x) with c(x) <= 1, of one variable."""

    n, low, high = 1, np.array([-100.0]), np.array([100.0])
    lower, upper = np.array([-np.inf]), np.array([1.0])

    def __init__(self, cost, gradient, c, slope):
        self._cost, self._gradient, self._c, self._slope = cost, gradient, c, slope

    def cost(self, x):
        return self._cost(x[0])

    def gradient(self, x):
        return np.array([self._gradient(x[0])])

    def constraints(self, x):
        return np.array([self._c(x[0])])

    def jacobian(self, x):
        return np.array([[self._slope(x[0])]])

    def finite(self, x):
        return self.cost(x) < HUGE

    def violation(self, x):
        return max(0.0, self._c(x[0]) - 1.0)


def seen_by(programme, x0):
    seen = []
    x, converged, reason, count = solve_slsqp(programme, np.array([x0]), 100, 1e-8, lambda x: seen.append(x[0]))
    assert converged, reason
    assert count == len(seen)
    return x[0], np.array(seen)


def test_what_is_shown_are_iterates_and_not_trials():
    """A barrier has no value beyond 1: SLSQP's own callback is given the first trials, of which some are there."""
    programme = Programme(
        lambda x: -np.log(1.0 - x) - 9.0 * x if x < 1.0 else HUGE,
        lambda x: 1.0 / (1.0 - x) - 9.0 if x < 1.0 else 0.0,
        lambda x: 0.0 * x,
        lambda x: 0.0,
    )
    x, seen = seen_by(programme, 0.0)
    assert x == pytest.approx(8.0 / 9.0, abs=1e-6)
    assert (seen < 1.0).all()
    costs = [programme.cost([each]) for each in seen]
    assert (np.diff(costs) <= 1e-12).all() and costs[0] < programme.cost([0.0])


def test_no_step_leaves_the_constraints_by_any_amount():
    """x⁵ <= 1 has no slope at 0, so that the first step knows nothing of it: it went to 10, where x⁵ is 100000."""
    programme = Programme(lambda x: -10.0 * x, lambda x: -10.0, lambda x: x**5, lambda x: 5.0 * x**4)
    x, seen = seen_by(programme, 0.0)
    assert x == pytest.approx(1.0, abs=1e-6)
    assert max(programme.violation([each]) for each in seen) <= LEAP
