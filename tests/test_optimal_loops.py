"""Optimal control through loops: against closed forms, the closed mechanism's inverse dynamics, and free unknowns."""

import numpy as np
import pytest
from scipy.optimize import minimize

import cstormpy as cs
from cstormpy.optimal import Effort, Problem
from cstormpy.trajectory import BSpline, clamped_knots

GROUND, LENGTHS, MASSES = 0.9, np.array([0.3, 0.8, 0.5]), np.array([0.3, 0.8, 0.5])
"""The four-bar of the library."""

STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def four_bar(points=12, **options):
    """Return the problem to turn the crank from 0.5 to 2 rad in a second, from rest to rest, with least effort."""
    mech = cs.library.four_bar()
    start, end = (mech.project([crank, 0.0, 1.5], hold=["crank"])[0] for crank in (0.5, 2.0))
    options = {"objective": Effort(), "samples": 21, "points": points, **options}
    return Problem(mech, duration=1.0, start=start, end=end, **options)


def reduced(theta):
    """Return I(θ) and V(θ) of the four-bar in its crank's angle, by the triangle of the coupler and the rocker."""
    a, b, c = LENGTHS
    tip = a * np.exp(1j * theta)
    across = GROUND - tip
    r = abs(across)
    x = (r * r + b * b - c * c) / (2 * r)
    pin = tip + across / r * (x + 1j * np.sqrt(b * b - x * x))
    alpha, beta = np.angle(pin - tip), np.angle(pin - GROUND)
    # rates for θ̇ = 1, from a e^{iθ} + b e^{iα} α' = c e^{iβ} β'
    d_alpha = a * np.sin(beta - theta) / (b * np.sin(alpha - beta))
    d_beta = a * np.sin(theta - alpha) / (c * np.sin(beta - alpha))
    middle = abs(1j * a * np.exp(1j * theta) + 0.5j * b * np.exp(1j * alpha) * d_alpha)
    m = MASSES
    inertia = m[0] * a * a / 3 + m[1] * (middle**2 + (b * d_alpha) ** 2 / 12) + m[2] * (c * d_beta) ** 2 / 3
    heights = m[0] * a / 2 * np.sin(theta) + m[1] * (a * np.sin(theta) + b / 2 * np.sin(alpha))
    return np.array([inertia, 9.81 * (heights + m[2] * c / 2 * np.sin(beta))])


def crank_torque(theta, rate, acceleration):
    """Return I θ̈ + ½ I' θ̇² + V'."""
    slopes = sum(weight / 1e-3 * reduced(theta + 1e-3 * k) for k, weight in STENCIL)
    return reduced(theta)[0] * acceleration + 0.5 * slopes[0] * rate**2 + slopes[1]


def least_effort_of_the_crank(points):
    """Return the least ½ ∫ τ² dt and the crank's control points, found on the reduced equation with no loop in it."""
    knots = clamped_knots(points, 5)
    curve = BSpline(knots, np.zeros((points, 1)), degree=5)
    breaks, (x, w) = np.unique(knots), np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(breaks)[:, None]
    sites, weights = (breaks[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    bases = [curve.basis_matrix(sites, r).toarray() for r in range(3)]

    def cost(p):
        P = np.concatenate([[0.5, 0.5], p, [2.0, 2.0]])
        return 0.5 * weights @ crank_torque(*(basis @ P for basis in bases)) ** 2

    found = minimize(cost, np.linspace(0.5, 2.0, points)[2:-2], method="BFGS", options={"gtol": 1e-7})
    return found.fun, found.x


def test_a_four_bar_moves_with_the_effort_that_its_reduced_equation_needs():
    """One spline has the crank, the loop is eliminated by hand; three splines are closed by equations."""
    solution = four_bar(points=16).solve(progress=False)
    effort, crank = least_effort_of_the_crank(16)
    assert solution.feasible and solution.converged
    assert solution.cost == pytest.approx(effort, rel=2e-5)
    assert solution.dense_cost == pytest.approx(effort, rel=2e-5)
    np.testing.assert_allclose(solution.motion.control_points[2:-2, 0], crank, atol=1e-3)
    at = solution.at(np.linspace(0.0, 1.0, 50))
    theta, rate, acceleration = (values[:, 0] for values in (at.q, at.qd, at.qdd))
    np.testing.assert_allclose(at.tau[:, 0], crank_torque(theta, rate, acceleration), atol=2e-2)
    assert (at.tau[:, 1:] == 0.0).all()
