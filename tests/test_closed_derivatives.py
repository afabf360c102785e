"""Derivatives and linear models of closed mechanisms against differences, complex step, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import ALL, STARTS, state
from closeness import assert_close, central_difference, complex_step, tolerance

import cstormpy as cs


# ---------------------------------------------------------------- derivatives
@pytest.mark.parametrize("name", ALL)
def test_derivatives_against_differences(name):
    mech, q, qd = state(name, 10)
    u = np.random.default_rng(11).normal(size=mech.n)
    for active in ([], mech.actuated[:1]):
        driven = mech.with_drive(active=active)
        d = driven.hybrid_sensitivity(q, qd, u)
        assert_close(d.y, driven.hybrid_dynamics(q, qd, u).y, 1e-11)
        h = 2e-4
        tol = max(1e-8, tolerance(driven.without_loops(), q, 0.0) / h)  # rounding of the values, over the step
        assert_close(d.dy_dq, central_difference(lambda x, f=driven: f.hybrid_dynamics(x, qd, u).y, q, h), tol)
        assert_close(d.dy_dqd, central_difference(lambda x, f=driven: f.hybrid_dynamics(q, x, u).y, qd, h), tol)
        assert_close(d.dy_du, central_difference(lambda x, f=driven: f.hybrid_dynamics(q, qd, x).y, u, 1e-3), 1e-9)
    d = mech.forward_sensitivity(q, qd, u)
    assert_close(d.dy_du, mech.hybrid_sensitivity(q, qd, u).dy_du, 1e-12)


@pytest.mark.parametrize("name", ["five_bar", "spatial"])
def test_directional_forms_against_differences_along_closed_states_and_each_other(name):
    """They refused loops."""
    mech, q, qd = state(name)
    mech, rng = mech.with_drive(active=mech.names[:1]), np.random.default_rng(3)
    u, gy, du = rng.normal(size=(3, mech.n))
    other = mech.project(q, rng.normal(size=mech.n))[1]

    def moved(s):
        return mech.project(q + s * other, qd)

    h = 1e-4
    (before, rate_before), (after, rate_after) = moved(-h), moved(h)
    dq, dqd = (after - before) / (2 * h), (rate_after - rate_before) / (2 * h)
    y, dy = mech.hybrid_jvp(q, qd, u, dq, dqd, du)
    ends = [mech.hybrid_dynamics(*moved(s), u + s * du).y for s in (-h, h)]
    assert_close(y, mech.hybrid_dynamics(q, qd, u).y, 1e-12)
    assert_close(dy, (ends[1] - ends[0]) / (2 * h), 1e-5)
    same, gq, gqd, gu = mech.hybrid_vjp(q, qd, u, gy)
    assert_close(same, y, 1e-12)
    assert_close(gy @ dy, gq @ dq + gqd @ dqd + gu @ du, 1e-10)
    rows = [np.stack([x, x]) for x in (q, qd, u, dq, dqd, du)]
    assert_close(mech.hybrid_jvp(*rows)[1], np.stack([dy, dy]), 1e-9)  # eliminated in another order
    assert_close(mech.hybrid_vjp(*rows[:3], np.stack([gy, 0 * gy]))[1], np.stack([gq, 0 * gq]), 1e-9)
    assert mech.hybrid_jvp(*(x[:0] for x in rows))[1].shape == (0, mech.n)
    with pytest.raises(cs.ShapeError, match="du: expected shape"):
        mech.hybrid_jvp(q, qd, u, dq, dqd, du[:1])


def test_derivatives_by_complex_step_through_maximal_coordinates():
    """The slider-crank as three bodies of the plane, all joints constraints: exact derivatives by another model."""
    mech, q, qd = state("slider_crank", 12)
    r, L, m = 0.3, 0.8, (0.3, 0.8, 1.0)
    inertia = (m[0] * r**2 / 12, m[1] * L**2 / 12)

    def accelerations(q, qd, u):
        th, ph = q[0], q[0] + q[1]
        w = (qd[0], qd[0] + qd[1])
        (c1, s1), (c2, s2) = ((np.cos(x), np.sin(x)) for x in (th, ph))
        # velocities of crank's centre, rod's centre, slider: J(q) q̇, and their rates at q̈ = 0
        J = np.array(
            [
                [-r / 2 * s1, 0, 0],
                [r / 2 * c1, 0, 0],
                [-r * s1 - L / 2 * s2, -L / 2 * s2, 0],
                [r * c1 + L / 2 * c2, L / 2 * c2, 0],
                [0, 0, 1],
                [0, 0, 0],
                [1, 0, 0],
                [1, 1, 0],
            ],
            dtype=complex,
        )
        bias = np.array(
            [
                -r / 2 * c1 * w[0] ** 2,
                -r / 2 * s1 * w[0] ** 2,
                -r * c1 * w[0] ** 2 - L / 2 * c2 * w[1] ** 2,
                -r * s1 * w[0] ** 2 - L / 2 * s2 * w[1] ** 2,
                0,
                0,
                0,
                0,
            ]
        )
        D = np.diag([m[0], m[0], m[1], m[1], m[2], m[2], *inertia])
        weight = np.array([0, -9.81 * m[0], 0, -9.81 * m[1], 0, -9.81 * m[2], 0, 0])
        # the slider's frame does not turn: the end of the rod less the slider
        A = np.array([[-r * s1 - L * s2, -L * s2, -1], [r * c1 + L * c2, L * c2, 0]])
        gamma = np.array([-r * c1 * w[0] ** 2 - L * c2 * w[1] ** 2, -r * s1 * w[0] ** 2 - L * s2 * w[1] ** 2])
        K = np.block([[J.T @ D @ J, -A.T], [A, np.zeros((2, 2))]])
        return np.linalg.solve(K, np.concatenate([u + J.T @ (weight - D @ bias), -gamma]))[:3]

    u = np.array([1.0, -0.5, 2.0])
    d = mech.hybrid_sensitivity(q, qd, u)
    assert_close(d.y, accelerations(q, qd, u).real, 1e-10)
    assert_close(d.dy_dq, complex_step(lambda x: accelerations(x, qd, u), q), 1e-8)
    assert_close(d.dy_dqd, complex_step(lambda x: accelerations(q, x, u), qd), 1e-8)
    assert_close(d.dy_du, complex_step(lambda x: accelerations(q, qd, x), u), 1e-8)


# ---------------------------------------------------------------- linear models and equilibria
@pytest.mark.parametrize("name", STARTS)
def test_the_linear_model_is_that_of_the_freedoms_by_differences_along_closed_states(name):
    mech, q, qd = state(name, 3)
    tau = np.linspace(0.5, -1.0, len(mech.actuated))
    model = mech.linearize(q, qd, tau)
    f = mech.mobility(q).freedoms
    z, free = [mech.names.index(s) for s in model.states[:f]], model.states[:f]
    assert model.A.shape == (2 * f, 2 * f) and len(z) == f

    def rate(x, v=tau):
        a, b, u = q.copy(), qd.copy(), np.zeros(mech.n)
        a[z], b[z] = x[:f], x[f:]
        a, b = mech.project(a, b, hold=free)
        u[mech.actuated_mask] = v
        return np.concatenate([b[z], np.asarray(mech.forward_dynamics(a, b, u))[z]])

    def whole(x):
        a, b = q.copy(), qd.copy()
        a[z], b[z] = x[:f], x[f:]
        return np.concatenate(mech.project(a, b, hold=free))

    x0 = np.concatenate([q[z], qd[z]])
    assert_close(model.rate, rate(x0), 1e-10)
    assert_close(model.A, central_difference(rate, x0, 1e-3), 1e-8)
    assert_close(model.B, central_difference(lambda v: rate(x0, v), tau, 1e-2), 1e-9)
    assert_close(model.joints, central_difference(whole, x0, 1e-3), 1e-9)
    rows = mech.linearize(np.array([q, q]), np.array([qd, qd]), tau)
    assert_close(rows.A[1], model.A, 1e-13)
    assert mech.linearize(np.zeros((0, mech.n))).A.shape == (0, *model.A.shape)


def test_a_joint_that_does_not_tell_of_the_others_in_one_row_is_refused_there():
    """The rocker stands still at its dead point, where crank and coupler are in line."""
    mech = cs.library.four_bar()
    other, dead = mech.project([1.0, 0.0, 1.5], hold=["crank"])[0], mech.project([0.3, 0.0, 1.0], hold=["coupler"])[0]
    with pytest.raises(cs.InvalidValue, match="the joints 'rocker' do not determine the others in row 1"):
        mech.linearize([other, dead], independent=["rocker"])


def test_a_hanging_parallelogram_swings_as_a_pendulum():
    """By its energies: ω² = (m₁ a/2 + m₂ a + m₃ a/2) g / (m₁ a²/3 + m₂ a² + m₃ a²/3)."""
    a, (m1, m2, m3) = 0.5, (0.5, 0.8, 0.4)
    mech = cs.library.four_bar(ground=0.8, lengths=(a, 0.8, a), masses=(m1, m2, m3))
    q, _ = mech.trim([-1.4, 1.4, -1.5], tau=0)
    assert_close(q, np.array([-1.0, 1.0, -1.0]) * np.pi / 2, 1e-9)
    model = mech.linearize(q, independent=["crank"])
    assert model.states == ("crank", "crank rate")
    stiffness, inertia = 9.81 * a * (m1 / 2 + m2 + m3 / 2), a * a * (m1 / 3 + m2 + m3 / 3)
    assert_close(model.A, [[0.0, 1.0], [-stiffness / inertia, 0.0]], 1e-9)
    assert_close(model.B, [[0.0], [1.0 / inertia]], 1e-10)
    assert mech.linearize(q, independent=["crank", "crank"]).states == model.states


def test_an_equilibrium_of_more_motors_than_freedoms_has_the_least_torque():
    mech, q, _ = state("five_bar", 5)
    motors = mech.with_drive(actuated=mech.names)
    found = motors.trim(q)
    still = np.zeros(4)
    assert np.abs(mech.closure(found.q)).max() < 1e-12
    load, A = mech.without_loops().inverse_dynamics(found.q, still, still), mech.closure_jacobian(found.q)
    assert np.abs(A @ found.tau).max() < 1e-10  # the least torque has no part that only loads the loops
    assert np.linalg.matrix_rank(np.vstack([A, load - found.tau]), tol=1e-10) == 2
    with pytest.raises(cs.InvalidValue, match=r"independent: expected 2 coordinate"):
        mech.linearize(found.q, independent=["left_shoulder"])
    with pytest.raises(cs.InvalidValue, match="independent: is of mechanisms with loops"):
        mech.without_loops().linearize(found.q, independent=["left_shoulder"])
