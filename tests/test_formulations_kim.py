"""Kim's tables, his derivatives to any scalar, and constrained systems."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close, central_difference, tolerance
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import in_a_row, random_loads, random_mechanism, random_state

from cstormpy.errors import InvalidValue, ShapeError, SingularInertia, UnknownName
from cstormpy.formulations import kim, kim_constrained, kim_derivative
from cstormpy.formulations.counting import counted
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute
from cstormpy.mechanism.library import xiang_two_link

seeds = st.integers(0, 2**32 - 1)


def case(seed, links=7):
    """Return a random tree, or a chain, its state, and the wrenches on its links."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    mech = in_a_row(mech) if seed % 3 == 0 else mech
    return mech, *random_state(rng, mech), random_loads(rng, mech, base=False)["wrench"]


# ---------------------------------------------------------------- (32)-(34), Tables 2 to 4
@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=seeds)
def test_tables_are_the_kernels(seed):
    mech, q, qd, u, wrench = case(seed)
    tol, forward = tolerance(mech, q), tolerance(mech, q, drive="forward")
    y = mech.hybrid_dynamics(q, qd, u, wrench).y
    assert_close(kim.inverse_dynamics(mech, q, qd, u, wrench), mech.inverse_dynamics(q, qd, u, wrench), 1e-10)
    assert_close(kim.forward_dynamics(mech, q, qd, u, wrench), mech.forward_dynamics(q, qd, u, wrench), forward)
    assert_close(kim.hybrid_dynamics(mech, q, qd, u, wrench), y, tol)
    assert_close(kim.hybrid_dynamics_dense(mech, q, qd, u, wrench), y, tol)
    assert_close(kim.mass_matrix(mech, q), mech.mass_matrix(q), 1e-10)


@pytest.mark.parametrize("fold", [False, True])
def test_tables_run_on_counting_numbers(fold):
    mech, q, qd, u, wrench = case(4)
    for function in (
        kim.inverse_dynamics,
        kim.forward_dynamics,
        kim.hybrid_dynamics,
        kim_derivative.inverse_sensitivity,
    ):
        result, tally = counted(function, mech, q, qd, u, wrench, fold=fold)
        want = function(mech, q, qd, u, wrench)
        for got, expected in zip(np.atleast_2d(result), np.atleast_2d(want), strict=True):
            assert_close(got, expected, 1e-11)
        assert tally.multiplications > tally.functions > 0


def test_passive_joint_without_inertia_is_named():
    arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    mech = Mechanism([arm, Link("ghost", "arm", Prismatic((1, 0, 0)))])
    with pytest.raises(SingularInertia, match="link 'ghost'"):
        kim.hybrid_dynamics(mech, [0, 0], [0, 0], [0, 0])
    with pytest.raises(SingularInertia, match="mass matrix is singular"):
        kim.hybrid_dynamics_dense(mech, [0, 0], [0, 0], [0, 0])


# ---------------------------------------------------------------- derivatives
@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_sensitivities_are_the_kernels(seed):
    mech, q, qd, u, wrench = case(seed, links=6)
    d, tol = mech.hybrid_sensitivity(q, qd, u, wrench), tolerance(mech, q)
    got = kim_derivative.hybrid_sensitivity(mech, q, qd, u, wrench)
    for one, want in zip(got, (d.dy_dq, d.dy_dqd, d.dy_du), strict=True):
        assert_close(one, want, tol)
    d = mech.inverse_sensitivity(q, qd, u, wrench)
    got = kim_derivative.inverse_sensitivity(mech, q, qd, u, wrench)
    for one, want in zip(got, (d.dy_dq, d.dy_dqd, d.dy_du), strict=True):
        assert_close(one, want, 1e-10)


def change_of(rng, mech, name):
    """Return a number of the mechanism, and a random direction for it."""
    if name == "gravity":
        return mech.gravity, rng.normal(size=3)
    owner, _, field = name.rpartition(".")
    holder = mech.link(owner) if field in ("mass", "com", "inertia", "pose") else mech.joint(owner)
    value = getattr(holder, field)
    if field == "inertia":
        points = rng.normal(size=(4, 3)) * 0.2
        return value, sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)
    if field == "pose":
        w = rng.normal(size=3)
        rate = np.zeros((4, 4))
        rate[:3, :3], rate[:3, 3] = value[:3, :3] @ kim.bracket(w), rng.normal(size=3)
        return value, rate
    return value, rng.normal(size=np.shape(value)) if np.ndim(value) else 1.0


def moved(name, value, rate, step):
    """Return the number after a step along its direction; a pose turns rigidly."""
    if not name.endswith(".pose"):
        return value + step * rate
    w = value[:3, :3].T @ rate[:3, :3] * step
    angle = np.sqrt(w[2, 1] ** 2 + w[0, 2] ** 2 + w[1, 0] ** 2)
    turn = np.eye(3) + np.sinc(angle / np.pi) * w + (np.sinc(angle / 2 / np.pi) ** 2 / 2) * (w @ w)
    out = value.copy()
    out[:3, :3], out[:3, 3] = value[:3, :3] @ turn, value[:3, 3] + step * rate[:3, 3]
    return out


FIELDS = ["mass", "com", "inertia", "pose", "axis", "point", "pitch", "armature", "damping", "friction"]
FIELDS += ["friction_velocity", "stiffness", "rest"]


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
@pytest.mark.parametrize("field", [*FIELDS, "gravity"])
def test_derivative_to_a_number_of_the_mechanism_is_that_of_the_kernels(kind, field):
    rng = np.random.default_rng(len(field))
    mech = random_mechanism(rng, 5, (kind,))
    if field == "pitch" and kind != "screw":
        with pytest.raises(UnknownName, match="pitch"):
            kim_derivative.hybrid_derivative(mech, *random_state(rng, mech), parameters={"link2.pitch": 1.0})
        return
    q, qd, u = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    for name in ["gravity"] if field == "gravity" else [f"link{k}.{field}" for k in (0, 2, 4)]:
        value, rate = change_of(rng, mech, name)

        def of(step, name=name, value=value, rate=rate):
            changed = mech.with_parameters({name: moved(name, value, rate, float(step[0]))})
            return changed.hybrid_dynamics(q, qd, u, wrench).y

        want = central_difference(of, np.zeros(1), 1e-3)[:, 0]
        got = kim_derivative.hybrid_derivative(mech, q, qd, u, wrench, parameters={name: rate})
        assert_close(got, want, 1e-8)


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_derivative_along_a_path_of_state_loads_and_mechanism(seed):
    """All that y depends on moves with one p; the derivative is linear in the rates."""
    rng = np.random.default_rng(seed)
    mech, q, qd, u, wrench = case(seed, links=6)
    dq, dqd, du = rng.normal(size=(3, mech.n))
    dwrench = rng.normal(size=wrench.shape)
    names = ["gravity", "link1.mass", "link2.pose", f"{mech.names[0]}.axis", f"{mech.names[-1]}.armature"]
    numbers = {name: change_of(rng, mech, name) for name in names}
    d = mech.hybrid_sensitivity(q, qd, u, wrench)
    parts = [kim_derivative.hybrid_derivative(mech, q, qd, u, wrench, parameters={k: numbers[k][1]}) for k in names]
    unit = [kim_derivative.hybrid_derivative(mech, q, qd, u, wrench, dwrench=dwrench)]
    want = d.dy_dq @ dq + d.dy_dqd @ dqd + d.dy_du @ du + sum(parts) + sum(unit)
    got = kim_derivative.hybrid_derivative(
        mech,
        q,
        qd,
        u,
        wrench,
        dq=dq,
        dqd=dqd,
        du=du,
        dwrench=dwrench,
        parameters={name: rate for name, (_, rate) in numbers.items()},
    )
    assert_close(got, want, 10 * tolerance(mech, q))
    linear = mech.hybrid_dynamics(q, qd, u, wrench + dwrench).y - mech.hybrid_dynamics(q, qd, u, wrench).y
    assert_close(unit[0], linear, tolerance(mech, q))
    assert not kim_derivative.hybrid_derivative(mech, q, qd, u, wrench).any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"parameters": {"link1.masse": 1.0}}, UnknownName, "did you mean 'mass'"),
        ({"parameters": {"nobody.mass": 1.0}}, UnknownName, "link 'nobody' does not exist"),
        ({"parameters": {"link1.com": 1.0}}, ShapeError, r"link1.com: expected shape \(3,\)"),
        ({"parameters": {"link1.pose": np.ones((4, 4))}}, InvalidValue, "leaves the rigid transforms"),
        ({"dq": [1.0]}, ShapeError, r"dq: expected shape \(2,\)"),
        ({"dwrench": [1.0]}, ShapeError, r"dwrench: expected shape \(2, 6\)"),
    ],
)
def test_wrong_directions_are_refused(arguments, error, message):
    mech = Mechanism(
        [link.replace(name=f"link{k}", parent="link0" if k else None) for k, link in enumerate(xiang_two_link().links)]
    )
    with pytest.raises(error, match=message):
        kim_derivative.hybrid_derivative(mech, [0, 0], [0, 0], [0, 0], **arguments)


# ---------------------------------------------------------------- section 3: constraints
def constrained_case(seed, m):
    """Return a tree, constraints, and a motion that satisfies them."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 7, ("revolute", "prismatic", "screw"))
    q, *_ = random_state(rng, mech)
    A, Adot = rng.normal(size=(2, m, mech.n))
    qd = rng.normal(size=mech.n)
    qd -= np.linalg.pinv(A) @ (A @ qd)
    qdd = rng.normal(size=mech.n)
    qdd -= np.linalg.pinv(A) @ (A @ qdd + Adot @ qd)
    return rng, mech, q, qd, qdd, A, Adot, random_loads(rng, mech, base=False)["wrench"]


@settings(max_examples=10, deadline=None)
@given(seed=seeds, active=st.integers(0, 3))
def test_constrained_hybrid_dynamics_solves_the_dense_equations(seed, active):
    """(54) and the rate of (55), written out with the kernels' mass matrix and solved as they stand."""
    rng, mech, q, qd, _, A, Adot, wrench = constrained_case(seed, 2)
    mech = mech.with_drive(active=mech.names[:active])
    u = rng.normal(size=mech.n)
    y, lam, rank = kim_constrained.constrained_hybrid_dynamics(mech, q, qd, u, A, Adot, wrench)
    M, b = mech.mass_matrix(q), mech.inverse_dynamics(q, qd, np.zeros(mech.n), wrench)
    n, m, is_u = mech.n, len(A), mech.active_mask
    E = np.eye(n)
    # unknowns: q̈ and τ of all joints, λ
    rows = [np.hstack([M, -E, -A.T]), np.hstack([A, np.zeros((m, n + m))])]
    rows.append(np.hstack([np.where(is_u[:, None], E, 0), np.where(is_u[:, None], 0, E), np.zeros((n, m))]))
    full = np.vstack(rows)
    x = np.linalg.solve(full, np.concatenate([-b, -Adot @ qd, u]))
    tol = max(1e-9, 1e-14 * np.linalg.cond(full))
    assert rank == m
    assert_close(y, np.where(is_u, x[n : 2 * n], x[:n]), tol)
    assert_close(lam, x[2 * n :], tol)


def test_dependent_constraints_are_solved_and_their_rank_reported():
    rng, mech, q, qd, _, A, Adot, wrench = constrained_case(1, 2)
    mech, u = mech.with_drive(active=[]), rng.normal(size=mech.n)
    one = kim_constrained.constrained_hybrid_dynamics(mech, q, qd, u, A, Adot, wrench)
    twice = kim_constrained.constrained_hybrid_dynamics(mech, q, qd, u, [*A, A[0]], [*Adot, Adot[0]], wrench)
    assert twice.rank == one.rank == 2
    assert_close(twice.y, one.y, 1e-9)
    assert_close(np.array([twice.lam[0] + twice.lam[2], twice.lam[1]]), one.lam, 1e-9)
    assert twice.lam[0] == pytest.approx(twice.lam[2])  # the least


def test_prescribed_motion_against_the_constraint_is_refused():
    _, mech, q, qd, _, A, Adot, _ = constrained_case(1, 2)
    with pytest.raises(InvalidValue, match=r"constraint [01]: the prescribed accelerations contradict it"):
        kim_constrained.constrained_hybrid_dynamics(mech.with_drive(active=mech.names), q, qd, np.ones(mech.n), A, Adot)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, least=st.sampled_from(["torque", "force"]))
def test_constrained_inverse_dynamics_undoes_the_forward_dynamics(seed, least):
    _, mech, q, qd, qdd, A, Adot, wrench = constrained_case(seed, 3)
    mech = mech.with_drive(actuated=mech.names[:5], active=[])  # two joints without motors, three constraints
    tau, lam = kim_constrained.constrained_inverse_dynamics(mech, q, qd, qdd, A, wrench, least=least)
    assert not tau[5:].any()
    M, b = mech.mass_matrix(q), mech.inverse_dynamics(q, qd, np.zeros(mech.n), wrench)
    tol = max(1e-9, 1e-13 * np.linalg.cond(A[:, 5:]) * np.linalg.cond(M))
    assert_close(tau + A.T @ lam, M @ qdd + b, tol)  # (54)
    back = kim_constrained.constrained_hybrid_dynamics(mech, q, qd, tau, A, Adot, wrench)
    assert_close(back.y, qdd, 10 * tol)
    # any other solution has a greater torque, or greater multipliers
    size = np.linalg.norm(tau if least == "torque" else lam)
    free = kim_constrained.null_space(A[:, 5:].T)
    assert free.shape[1] == 1
    for step in (-1e-2, 1e-2):
        other = lam + free[:, 0] * step
        assert np.linalg.norm((M @ qdd + b - A.T @ other) if least == "torque" else other) > size - 1e-9 * size


def test_least_torque_with_all_joints_actuated_is_a_projection():
    """(65) and (66): τ = τ_r - Aᵀ (Aᵀ)† τ_r does no work on the constraints' forces."""
    _, mech, q, qd, qdd, A, _, _ = constrained_case(3, 2)
    tau, lam = kim_constrained.constrained_inverse_dynamics(mech, q, qd, qdd, A)
    tau_r = mech.inverse_dynamics(q, qd, qdd)
    assert_close(lam, np.linalg.pinv(A.T) @ tau_r, 1e-10)  # (66)
    assert_close(A @ tau, np.zeros(2), 1e-9)
    assert np.linalg.norm(tau) < np.linalg.norm(tau_r)


def four_bar():
    """Return a four-bar linkage cut at its last pin, its constraints and their rate at a state, and the state."""
    links = [
        Link("crank", None, Revolute((0, 0, 1)), None, 1.0, (0.2, 0, 0), np.diag([0, 0.01, 0.01])),
        Link("coupler", "crank", Revolute((0, 0, 1)), shifted(0.4), 2.0, (0.5, 0, 0), np.diag([0, 0.2, 0.2])),
        Link("rocker", None, Revolute((0, 0, 1)), shifted(0.9), 1.5, (0.3, 0, 0), np.diag([0, 0.05, 0.05])),
    ]
    mech = Mechanism(links, actuated=["crank"])

    def gap(q):  # of the coupler's tip from the rocker's
        a, b, c = q
        tip = np.array([0.4 * np.cos(a) + 1.0 * np.cos(a + b), 0.4 * np.sin(a) + 1.0 * np.sin(a + b)])
        return tip - np.array([0.9 + 0.7 * np.cos(c), 0.7 * np.sin(c)])

    def jacobian(q):
        a, b, c = q
        sa, ca, sab, cab = np.sin(a), np.cos(a), np.sin(a + b), np.cos(a + b)
        return np.array(
            [[-0.4 * sa - sab, -sab, 0.7 * np.sin(c)], [0.4 * ca + cab, cab, -0.7 * np.cos(c)]],
        )

    q = np.array([0.7, 0.3, 1.4])
    for _ in range(20):  # Newton's iteration on the two other angles
        q[1:] -= np.linalg.solve(jacobian(q)[:, 1:], gap(q))
    A = jacobian(q)
    qd = np.array([1.3, *np.linalg.solve(A[:, 1:], -A[:, 0] * 1.3)])
    Adot = jacobian(q + 1e-30j * qd).imag / 1e-30
    return mech, q, qd, A, Adot


def shifted(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def test_four_bar_keeps_its_energy_and_its_one_motor_drives_it():
    """A loop of one freedom, (58): as many constraints as joints without motors."""
    mech, q, qd, A, Adot = four_bar()
    qdd = kim_constrained.constrained_hybrid_dynamics(mech, q, qd, [0, 0, 0], A, Adot).y
    assert_close(A @ qdd + Adot @ qd, np.zeros(2), 1e-12)
    # the rate of the energy: q̇·(M q̈ + b) = q̇·(τ + Aᵀλ) = 0
    assert qd @ mech.inverse_dynamics(q, qd, qdd) == pytest.approx(0.0, abs=1e-12)
    driven = qdd + np.linalg.svd(A)[2][2] * 2.0  # another motion that the loop allows
    tau, lam = kim_constrained.constrained_inverse_dynamics(mech, q, qd, driven, A)
    assert not tau[1:].any()
    assert_close(tau + A.T @ lam, mech.inverse_dynamics(q, qd, driven), 1e-12)
    held = mech.with_drive(active=["crank"])
    y = kim_constrained.constrained_hybrid_dynamics(held, q, qd, [driven[0], 0, 0], A, Adot).y
    assert_close(y, np.array([tau[0], *driven[1:]]), 1e-11)


def test_too_few_actuators_are_told_by_name():
    mech, q, qd, _, A, _, *_ = constrained_case(2, 1)[1:]
    weak = mech.with_drive(actuated=mech.names[:2], active=[])
    with pytest.raises(InvalidValue, match=r"joint 'link.': is not actuated .* too few actuators"):
        kim_constrained.constrained_inverse_dynamics(weak, q, qd, qd, A)
    with pytest.raises(InvalidValue, match="least: expected 'torque' or 'force'"):
        kim_constrained.constrained_inverse_dynamics(mech, q, qd, qd, A, least="effort")
    with pytest.raises(ShapeError, match="A: expected shape"):
        kim_constrained.constrained_inverse_dynamics(mech, q, qd, qd, A[0])
    with pytest.raises(InvalidValue, match="Adot: expected shape"):
        kim_constrained.constrained_hybrid_dynamics(mech, q, qd, qd, A, np.vstack([A, A]))


def test_what_is_known_of_other_torques_is_counted_in():
    mech, q, qd, A, _ = four_bar()
    tau = kim_constrained.constrained_inverse_dynamics(mech, q, qd, [0, 0, 0], A, tau_p=[9, 0.1, -0.2]).tau
    assert tau[1:].tolist() == [0.1, -0.2]
    lam = np.linalg.solve(A[:, 1:].T, mech.inverse_dynamics(q, qd, [0, 0, 0])[1:] - tau[1:])  # (58)
    assert tau[0] == pytest.approx(mech.inverse_dynamics(q, qd, [0, 0, 0])[0] - A[:, 0] @ lam)
