"""Loads that keep their direction in space while their links turn: their values, and their part in every derivative.

The witnesses are a complex step through the formulations, to which such a load is a wrench that depends on q; the
derivative of the wrench in Algorithm 4.1; and that a force fixed in space has a potential.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from closeness import assert_close, complex_step, tolerance
from random_mechanisms import any_tree, random_mechanism, random_state

import cstormpy as cs
from cstormpy import formulations as sb
from cstormpy import lie
from cstormpy.dynamics.checked_arguments import read_loads
from cstormpy.dynamics.loads import Wrenches
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import Load, library

ARM = library.xiang_two_link()
STILL = np.zeros(2)
COMPLEX_STEP = 1e-9


def random_load(rng, mech, frame=None, samples=None):
    """Return a load on any link, which now and then has its force in another row for each sample."""
    shape = (3,) if samples is None or rng.random() < 0.5 else (samples, 3)
    link = int(rng.integers(len(mech.links)))
    name = mech.links[link].name if rng.random() < 0.5 else link
    frame = str(rng.choice(["world", "base", "link"])) if frame is None else frame
    return Load(name, rng.normal(size=shape) * 4, rng.normal(size=3) * 3, rng.normal(size=3), frame)


def random_mixture(rng, mech, samples=None):
    """Return loads of both kinds and wrenches, in any order, more than one of them on some links."""
    loads = [random_load(rng, mech, samples=samples) for _ in range(rng.integers(1, 5))]
    loads += [(int(rng.integers(len(mech.links))), None, rng.normal(size=6)) for _ in range(rng.integers(3))]
    return [loads[k] for k in rng.permutation(len(loads))]


def rows_of(mech, q, loads, k=0):
    """Return the wrenches that the loads are at q, (n_links, 6), in the links' frames; of sample k."""
    rows = np.zeros((len(mech.links), 6), dtype=np.asarray(q).dtype)
    poses = sb.forward_kinematics(mech, q)
    for load in loads:
        if isinstance(load, tuple):
            rows[load[0]] += load[2]
            continue
        link = mech.link_index(load.link) if isinstance(load.link, str) else load.link
        R = np.eye(3) if load.turns else poses[link, :3, :3].T
        force = R @ (load.force if load.force.ndim == 1 else load.force[k])
        rows[link, :3] += R @ load.moment + np.cross(load.point, force)
        rows[link, 3:] += force
    return rows


def by_complex_step(mech, q, qd, u, loads, base, k=0):
    """Return ∂y/∂q through the formulations, the wrenches being those of the loads at each q."""
    return complex_step(lambda z: sb.hybrid_dynamics(mech, z, qd, u, rows_of(mech, z, loads, k), base), q)


# ---------------------------------------------------------------- values and derivatives
@any_tree(examples=25, links=14)
def test_a_load_is_a_wrench_that_depends_on_q(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads, base = random_mixture(rng, mech), tuple(rng.normal(size=(2, 6)))
    plain = rows_of(mech, q, loads)
    d = mech.hybrid_sensitivity(q, qd, u, loads, base, to_base=True)
    same = mech.hybrid_sensitivity(q, qd, u, plain, base, to_base=True)
    for what in ("y", "qdd", "tau", "dy_dqd", "dy_du", "dy_dbase"):
        assert_close(getattr(d, what), getattr(same, what), tolerance(mech, q))
    assert_close(mech.hybrid_dynamics(q, qd, u, loads, base).y, same.y, tolerance(mech, q))
    assert_close(d.dy_dq, by_complex_step(mech, q, qd, u, loads, base), tolerance(mech, q, COMPLEX_STEP))


@any_tree(examples=15, links=10)
def test_its_derivative_is_that_of_algorithm_4_1_with_the_derivative_of_the_wrench(seed, links):
    """Sohl and Bobrow 2001, Algorithm 4.1, takes ∂F_ext/∂x beside the state's: here that of the turned load."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads, none = random_mixture(rng, mech), np.zeros(mech.n)
    turned = complex_step(lambda z: rows_of(mech, z, loads), q)
    want = [
        sb.hybrid_directional(mech, q, qd, u, rows_of(mech, q, loads), dq=e, dqd=none, du=none, dwrench=turned[..., j])
        for j, e in enumerate(np.eye(mech.n))
    ]
    got = mech.hybrid_sensitivity(q, qd, u, loads).dy_dq
    assert_close(got, np.transpose(want), tolerance(mech, q))


@any_tree(examples=15, links=20)
def test_directional_forms_are_those_of_the_matrices(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech, 3)
    dq, dqd, du = random_state(rng, mech, 3)
    loads = random_mixture(rng, mech, 3)
    d = mech.hybrid_sensitivity(q, qd, u, loads)
    y, dy = mech.hybrid_jvp(q, qd, u, dq, dqd, du, loads)
    tol = tolerance(mech, q)
    assert_close(y, d.y, tol)
    along = zip((d.dy_dq, d.dy_dqd, d.dy_du), (dq, dqd, du), strict=True)
    assert_close(dy, sum(np.einsum("kij,kj->ki", D, v) for D, v in along), tol)
    y, *gradients = mech.hybrid_vjp(q, qd, u, dq, loads)
    assert_close(y, d.y, tol)
    for gradient, D in zip(gradients, (d.dy_dq, d.dy_dqd, d.dy_du), strict=True):
        assert_close(gradient, np.einsum("ki,kij->kj", dq, D), tol)


@any_tree(examples=15, links=8)
def test_a_batch_is_its_samples(seed, links):
    """Also where each sample has a force of its own."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech, 11)
    loads = random_mixture(rng, mech, 11)
    d = mech.hybrid_sensitivity(q, qd, u, loads)
    values = mech.hybrid_dynamics(q, qd, u, loads)
    for k in range(0, 11, 5):
        state = q[k], qd[k], u[k]
        assert_close(d.dy_dq[k], by_complex_step(mech, *state, loads, None, k), tolerance(mech, q[k], COMPLEX_STEP))
        assert_close(
            values.y[k], sb.hybrid_dynamics(mech, *state, rows_of(mech, q[k], loads, k)), tolerance(mech, q[k])
        )


@pytest.mark.slow
@any_tree(examples=10, links=10)
def test_evaluators_with_a_load(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_mixture(rng, mech)
    d = mech.hybrid_sensitivity(q, qd, u, loads)
    f, F = mech.hybrid_evaluator(wrench=loads), mech.hybrid_sensitivity_evaluator(wrench=loads)
    tol = tolerance(mech, q)
    out = np.empty(mech.n)
    assert f(q, qd, u, out) is out
    y, D = F(q, qd, u)
    for got in (out, f(q, qd, u), f(q.tolist(), qd.tolist(), u.tolist()), y, F(q.tolist(), qd, u)[0]):
        assert_close(got, d.y, tol)
    for matrices in (D, F(q.tolist(), qd, u)[1]):
        assert_close(matrices, np.stack([d.dy_dq, d.dy_dqd, d.dy_du]), tol)
    without = mech.hybrid_evaluator()(q, qd, u)
    assert_close(without, mech.hybrid_dynamics(q, qd, u).y, tol)


@pytest.mark.parametrize("n", [24, pytest.param(90, marks=pytest.mark.slow)])
def test_deep_and_large_mechanisms(n):
    """The columns of deep mechanisms are solved by recursion, those of large ones one sample after the other."""
    rng = np.random.default_rng(n)
    mech = library.chain(n).with_drive(active=())
    q, qd, u = random_state(rng, mech, 2)
    loads = [random_load(rng, mech, "world") for _ in range(3)]
    v = rng.normal(size=(2, n))
    d = mech.hybrid_sensitivity(q, qd, u, loads)
    want = []
    for k in range(2):
        z = q[k] + 1e-30j * v[k]
        want.append(np.imag(sb.hybrid_dynamics(mech, z, qd[k], u[k], rows_of(mech, z, loads))) / 1e-30)
    assert_close(np.einsum("kij,kj->ki", d.dy_dq, v), np.array(want), tolerance(mech, q, COMPLEX_STEP))
    zero = np.zeros_like(q)
    assert_close(mech.hybrid_jvp(q, qd, u, v, zero, zero, loads)[1], np.array(want), tolerance(mech, q, COMPLEX_STEP))


@any_tree(examples=20, links=12)
def test_a_force_fixed_in_space_has_a_potential(seed, links):
    """At rest the torques under forces alone are the gradient of −Σ f · x, so that their derivative is symmetric."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, terms=False)
    q, none = random_state(rng, mech)[0], np.zeros(mech.n)
    loads = [Load(k.name, rng.normal(size=3), point=rng.normal(size=3)) for k in mech.links]

    def potential(z):
        poses = sb.forward_kinematics(mech, z)
        points = [(poses[mech.link_index(load.link)] @ np.append(load.point, 1.0))[:3] for load in loads]
        return np.array([-sum(load.force @ x for load, x in zip(loads, points, strict=True))])

    d, without = (mech.inverse_sensitivity(q, none, none, wrench) for wrench in (loads, None))
    assert_close(d.y - without.y, complex_step(potential, q)[0], 1e-9)
    turning = d.dy_dq - without.dy_dq
    assert_close(turning, turning.T, 1e-9)


# ---------------------------------------------------------------- who takes it
def test_every_question_that_takes_wrenches_takes_a_load():
    """The torques of the levelled arm carry 10 N at its tip; the shoulder's fall by 4 N m a radian for each link."""
    weight, plain = Load("forearm", [0, -10, 0], point=[0.4, 0, 0]), ARM.with_gravity([0, 0, 0])
    level = np.zeros(2)
    for asked in (weight, [weight], (weight,)):
        np.testing.assert_allclose(plain.inverse_dynamics(level, STILL, STILL, wrench=asked), [8.0, 4.0], atol=1e-13)
    assert plain.bias(level, STILL, wrench=weight).round(12).tolist() == [8.0, 4.0]
    found = plain.forward_dynamics(level, STILL, [8.0, 4.0], wrench=weight)
    np.testing.assert_allclose(found, 0.0, atol=1e-13)
    up = np.array([np.pi / 2, 0.0])
    d = plain.inverse_sensitivity(up, STILL, STILL, wrench=weight)
    np.testing.assert_allclose(d.dy_dq, [[-8.0, -4.0], [-4.0, -4.0]], atol=1e-12)
    forward = plain.forward_sensitivity(up, STILL, STILL, wrench=weight)
    np.testing.assert_allclose(plain.mass_matrix(up) @ forward.dy_dq, -d.dy_dq, atol=1e-12)


def test_linear_model_under_a_load():
    """A = ∂(q̇, q̈)/∂(q, q̇) by differences of the forward dynamics, single and in a batch, one joint driven."""
    mech = ARM.with_drive(active=["elbow"])
    weight = Load("forearm", [3, -10, 0], moment=[0, 0, 0.4], point=[0.4, 0.1, 0])
    rng = np.random.default_rng(5)
    q, qd = rng.normal(size=(2, 3, 2))
    tau, acc = rng.normal(size=(2, 3, 1))
    batch = mech.linearize(q, qd, tau, acc, wrench=weight)
    for k in range(3):
        u = np.array([tau[k, 0], acc[k, 0]])
        one = mech.linearize(q[k], qd[k], tau[k], acc[k], wrench=[weight])
        want = by_complex_step(mech, q[k], qd[k], u, [weight], None)[0]
        for model in (one.A, batch.A[k]):
            assert_close(model[2, :2], want, 1e-12)
            assert not model[3].any()
        assert_close(one.rate[2:], mech.hybrid_dynamics(q[k], qd[k], u, weight).qdd, 1e-12)
    each = np.random.default_rng(6).normal(size=(3, 2, 6))
    assert_close(mech.linearize(q, wrench=each).rate[1], mech.linearize(q[1], wrench=each[1]).rate, 1e-13)


def test_equilibrium_under_a_load():
    """A double pendulum hangs along the sum of the weights below each joint and of a wind to the side."""
    mech = library.pendulum(2)
    wind = [Load(k, [4.0, 0.0, 0.0], point=mech.links[k].com) for k in (0, 1)]
    q, tau = mech.trim([-np.pi / 2, 0.0], tau=0, wrench=wind)
    masses = [link.mass for link in mech.links]
    held = mech.inverse_dynamics(q, STILL, STILL, wrench=wind)
    assert max(np.abs(held).max(), np.abs(tau).max()) <= 1e-9
    lower = np.arctan2(-masses[1] * 9.81, 4.0)
    assert q.sum() == pytest.approx(lower, abs=1e-9)
    with pytest.raises(InvalidValue, match="no equilibrium near the guess"):
        library.pendulum().trim([0.3], tau=0, hold=["joint1"], wrench=wind[0])


def test_loads_add_up_to_one_row_for_each_link():
    """Several on one link, at points of their own, are one row; without any that is fixed in space a row has six."""
    one, two = Load(1, [1, 2, 3], point=[1, 0, 0]), Load("forearm", [4, 5, 6], [7, 8, 9], [0, 1, 0])
    turns = Load(0, [1, 0, 0], point=[0, 2, 0], frame="link")
    row = read_loads(ARM, [one, two, turns, (1, None, np.arange(6.0))]).reshape(2, 21)
    assert row[0].tolist() == [0, 0, -2, 1, 0, 0, *[0] * 15]
    assert row[1, :12].tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9, 5, 7, 9]
    assert row[1, 12:].tolist() == [1, 2, 3, 4, 5, 6, 0, 0, 0]
    assert read_loads(ARM, turns).size == 12 and read_loads(ARM, None).size == read_loads(ARM, []).size - 12 == 0
    q, qd, u = np.array([[0.3, 0.4], [0.5, -0.6], [1.0, 2.0]])
    whole = ARM.hybrid_sensitivity(q, qd, u, wrench=row)
    assert_close(
        whole.dy_dq, ARM.hybrid_sensitivity(q, qd, u, [one, two, turns, (1, None, np.arange(6.0))]).dy_dq, 1e-14
    )


def test_a_load_is_the_same_class_everywhere():
    from cstormpy import mechanism, optimal

    assert cs.Load is mechanism.Load is optimal.Load
    load = Load("forearm", [1, 2, 3], frame="base")
    assert repr(load) == repr(Load("forearm", [1, 2, 3], frame="world")) == repr(pickle.loads(pickle.dumps(load)))


SAYS = {
    "a wrong frame": (lambda: Load(0, frame="space"), InvalidValue, r"frame: expected 'world' \(or 'base'"),
    "no link": (lambda: Load(None), InvalidType, "link: expected the name of a link or its position, got None"),
    "two numbers": (lambda: Load(0, [1, 2]), ShapeError, r"force on link 0: expected shape \(3,\)"),
    "text": (lambda: Load(0, "down"), InvalidType, "force on link 0"),
    "nan": (lambda: Load("forearm", moment=[0, 0, np.nan]), NonFinite, "moment on link 'forearm'"),
    "a wrong link": (lambda: asked(Load("foream")), UnknownName, "did you mean 'forearm'"),
    "a link too far": (lambda: asked(Load(2)), InvalidValue, r"wrench\[0\]: expected a position from 0 to 1"),
    "a batch for one": (
        lambda: asked([Load(0), Load("forearm", np.ones((4, 3)))]),
        ShapeError,
        r"wrench\[1\] on link 'forearm', its force: expected shape \(3,\), got \(4, 3\)",
    ),
    "another batch": (
        lambda: ARM.bias(np.zeros((3, 2)), np.zeros((3, 2)), wrench=Load(0, moment=np.ones((4, 3)))),
        ShapeError,
        r"its moment: expected shape \(3,\) or \(3, 3\), got \(4, 3\)",
    ),
    "too large": (
        lambda: asked(Load(1, [0, 1e200, 0], point=[1e200, 0, 0])),
        NonFinite,
        r"wrench\[0\] on link 'forearm', the sum of loads: expected finite numbers, got inf",
    ),
    "for an evaluator": (lambda: ARM.hybrid_evaluator(wrench=Load("foream")), UnknownName, "forearm"),
    "a batch for a motion": (
        lambda: cs.optimal.Problem(
            ARM, duration=1, start=[0, 0], end=[1, 1], objective=cs.optimal.Effort(), loads=Load(0, np.ones((2, 3)))
        ),
        ShapeError,
        r"loads\[0\]: expected one force",
    ),
}


def asked(wrench):
    return ARM.inverse_dynamics(STILL, STILL, STILL, wrench=wrench)


@pytest.mark.parametrize("slip", SAYS)
def test_slips(slip):
    call, error, says = SAYS[slip]
    with pytest.raises(error, match=says):
        call()


# ---------------------------------------------------------------- as a signal
def test_wrenches_keep_what_they_know_where_they_are_combined_linearly():
    rng = np.random.default_rng(1)
    first, second = (Wrenches(rng.normal(size=(2, 6)), rng.normal(size=(2, 21))) for _ in range(2))
    plain = rng.normal(size=(2, 6))
    wide = np.hstack([plain, np.zeros((2, 15))])
    for got, want, rows in (
        (first + second, np.asarray(first) + np.asarray(second), first.rows + second.rows),
        (first - plain, np.asarray(first) - plain, first.rows - wide),
        (plain - first, plain - np.asarray(first), wide - first.rows),
        (-first, -np.asarray(first), -first.rows),
        (2.0 * first / 4.0, np.asarray(first) / 2.0, first.rows / 2.0),
        (first.flatten() + plain.ravel(), (np.asarray(first) + plain).ravel(), first.rows + wide),
    ):
        assert isinstance(got, Wrenches)
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-15)
        np.testing.assert_allclose(got.rows, rows, atol=1e-15)
    for other in (
        first * plain,
        np.sin(first),
        first + 1.0,
        first[0],
        first.copy(),
        first.T,
        np.abs(first),
        first.sum(),
    ):
        assert getattr(other, "rows", None) is None


def test_wrenches_are_taken_with_what_they_know():
    """As the output of a WRENCH block, given to a mechanism by hand."""
    q, qd, u = np.array([[0.3, 0.4], [0.5, -0.6], [1.0, 2.0]])
    load = Load("forearm", [1, -10, 0], point=[0.4, 0, 0])
    rows = read_loads(ARM, load).reshape(2, 21)
    plain = rows_of(ARM, q, [load])
    known = ARM.hybrid_sensitivity(q, qd, u, wrench=Wrenches(plain, rows))
    assert_close(known.dy_dq, ARM.hybrid_sensitivity(q, qd, u, wrench=load).dy_dq, 1e-14)
    pose = lie.make_pose(ARM.forward_kinematics(q)[1, :3, :3].T, load.point)
    assert_close(plain[1], lie.transform_wrench(pose, np.array([0, 0, 0, 1, -10, 0.0])), 1e-14)
