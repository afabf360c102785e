"""Derivatives and linear models of closed mechanisms against differences, complex step, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import STARTS, state
from closeness import assert_close, central_difference, complex_step, tolerance

import cstormpy as cs
from cstormpy.formulations import kim_constrained as constrained


# ---------------------------------------------------------------- derivatives
@pytest.mark.parametrize("name", [*STARTS, pytest.param("spatial", marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("least", ["torque", "force"])
@pytest.mark.parametrize(
    ("name", "motors"),
    [
        ("slider_crank", 1),
        ("three_rrr", 3),
        ("five_bar", 2),
        ("five_bar", 3),
        ("five_bar", 4),
        pytest.param("spatial", None, marks=pytest.mark.slow),
    ],
)
def test_derivatives_of_inverse_dynamics_against_differences_of_the_witness(name, motors, least):
    """They refused loops. As many motors as freedoms, more of them, and all joints."""
    mech, q, qd = state(name, 12)
    tau = np.where(mech.actuated_mask, np.linspace(-1.0, 1.0, mech.n), 0.0)
    qdd = np.asarray(mech.forward_dynamics(q, qd, tau))
    if motors is None or motors > len(mech.actuated):
        mech = mech.with_drive(actuated=mech.names[:motors])
    tree = mech.without_loops()

    def ask(a, b, c):
        return constrained.constrained_inverse_dynamics(tree, a, b, c, mech.closure_jacobian(a), least=least).tau

    d = mech.inverse_sensitivity(q, qd, qdd, redundancy=least)
    assert_close(d.y, ask(q, qd, qdd), 1e-9)
    assert_close(d.tau, d.y, 0.0)
    assert_close(d.qdd, qdd, 0.0)
    h = 1e-3
    assert_close(d.dy_dq, central_difference(lambda x: ask(x, qd, qdd), q, h), 1e-7)
    assert_close(d.dy_dqd, central_difference(lambda x: ask(q, x, qdd), qd, h), 1e-8)
    assert_close(d.dy_du, central_difference(lambda x: ask(q, qd, x), qdd, h), 1e-8)
    rows = mech.inverse_sensitivity(*(np.stack([x, x]) for x in (q, qd, qdd)), redundancy=least)
    assert_close(rows.columns[1], d.columns, 1e-10)
    assert_close(rows.multipliers[0], d.multipliers, 1e-10)


def test_derivatives_of_inverse_dynamics_want_a_motor_for_each_freedom():
    mech, q, qd = state("five_bar", 13)
    qdd = np.asarray(mech.forward_dynamics(q, qd, np.array([1.0, 0.0, 0.0, 0.0])))
    lame = mech.with_drive(actuated=["left_shoulder"])
    assert_close(lame.inverse_dynamics(q, qd, qdd), [1.0, 0.0, 0.0, 0.0], 1e-9)
    with pytest.raises(cs.InvalidValue, match=r"1 freedom\(s\) .* no actuator: .*'left_elbow', 'right_shoulder'"):
        lame.inverse_sensitivity(q, qd, qdd)
    with pytest.raises(cs.InvalidValue, match="redundancy: is of mechanisms with loops"):
        cs.library.acrobot().inverse_sensitivity([0.1, 0.2], [0.0, 0.0], [0.0, 0.0], redundancy="torque")


@pytest.mark.parametrize("redundancy", [None, "force", [1.0, 5.0, 0.2], "all"])
def test_active_joints_that_share_a_load_know_how_their_shares_change(redundancy):
    """Along a motion of closed states, whose accelerations are those that the loops allow; such drives were refused."""
    mech, q0, v0 = state("five_bar", 14)
    _, v1 = state("five_bar", 15)[1:]
    names = mech.names if redundancy == "all" else mech.names[:3]
    driven = mech.with_drive(active=names, actuated=names)
    redundancy = None if redundancy == "all" else redundancy
    torque = np.array([0.5, 0.0, -1.0, 0.0])

    def given(s):
        q, qd = mech.project(q0 + s * v1 * [1.0, 0.0, 1.0, 0.0], v0 + s * v1, hold=["left_shoulder", "right_shoulder"])
        qdd = np.asarray(mech.forward_dynamics(q, qd, torque * (1.0 + s)))
        return q, qd, np.where(driven.active_mask, qdd, 0.3 + s)

    h, points = 1e-3, [given(s) for s in (-2e-3, -1e-3, 1e-3, 2e-3)]
    slopes = [(x[0] - 8.0 * x[1] + 8.0 * x[2] - x[3]) / (12.0 * h) for x in map(np.array, zip(*points, strict=True))]
    answers = [driven.hybrid_dynamics(*x, redundancy=redundancy) for x in points]
    d = driven.hybrid_sensitivity(*given(0.0), redundancy=redundancy)
    assert_close(d.y, driven.hybrid_dynamics(*given(0.0), redundancy=redundancy).y, 1e-10)
    y = [a.y for a in answers]
    along = sum(D @ x for D, x in zip((d.dy_dq, d.dy_dqd, d.dy_du), slopes, strict=True))
    assert_close(along, (y[0] - 8.0 * y[1] + 8.0 * y[2] - y[3]) / (12.0 * h), 1e-7)
    if redundancy is None:
        assert_close(driven.hybrid_jvp(*given(0.0), *slopes)[1], along, 1e-10)
    if len(names) == 4:
        assert_close(d.columns, driven.inverse_sensitivity(*given(0.0)).columns, 1e-9)


@pytest.mark.parametrize("name", ["five_bar", pytest.param("spatial", marks=pytest.mark.slow)])
def test_derivatives_to_the_motion_of_the_base_against_differences(name):
    """They refused loops."""
    mech, q, qd = state(name, 16)
    rng = np.random.default_rng(17)
    base, u = rng.normal(size=12), rng.normal(size=mech.n)
    every = mech.with_drive(actuated=mech.names)

    def moving(x):
        return x[:6], x[6:]

    qdd = np.asarray(mech.forward_dynamics(q, qd, u, base=moving(base)))
    for driven, active in ((mech, []), (mech, mech.actuated[:1]), (every, mech.names[:4])):
        given = driven.with_drive(active=active)
        x = np.where(given.active_mask, qdd, u)
        d = given.hybrid_sensitivity(q, qd, x, base=moving(base), to_base=True)
        ask = lambda b, f=given, x=x: f.hybrid_dynamics(q, qd, x, base=moving(b)).y  # noqa: E731
        assert_close(d.y, ask(base), 1e-9)
        assert_close(d.dy_dbase, central_difference(ask, base, 1e-2), 1e-7)
        assert_close(given.hybrid_sensitivity(q, qd, x, base=moving(base)).columns, d.columns, 1e-9)
    d = mech.forward_sensitivity(q, qd, u, base=moving(base), to_base=True)
    ask = lambda b: np.asarray(mech.forward_dynamics(q, qd, u, base=moving(b)))  # noqa: E731
    assert_close(d.dy_dbase, central_difference(ask, base, 1e-2), 1e-7)
    d = every.inverse_sensitivity(q, qd, qdd, base=moving(base), to_base=True)
    ask = lambda b: np.asarray(every.inverse_dynamics(q, qd, qdd, base=moving(b)))  # noqa: E731
    assert_close(d.dy_dbase, central_difference(ask, base, 1e-2), 1e-7)
    with pytest.raises(AttributeError, match="to_base=True"):
        every.inverse_sensitivity(q, qd, qdd).dy_dbase  # noqa: B018


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
