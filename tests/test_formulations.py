"""The formulation of Sohl and Bobrow: against complex step, Lagrange's equations, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import STEP, assert_close, complex_step, tolerance
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import changed_links, in_a_row, random_loads, random_mechanism, random_state
from scipy.linalg import expm
from xiang_arm import xiang_sensitivity, xiang_torque

from cstormpy import formulations as sb
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, SingularInertia
from cstormpy.formulations import sohl_bobrow, sohl_bobrow_sensitivity
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute
from cstormpy.mechanism.library import xiang_two_link

seeds = st.integers(0, 2**32 - 1)


# ---------------------------------------------------------------- states, reference, tolerance
def straightened(mech):
    """Return the mechanism with its links one upon the other, the last one listed first."""
    row = in_a_row(mech)
    return Mechanism(row.links[::-1], gravity=row.gravity, active=row.active)


def random_case(rng, mech):
    """Return q, qd, u, and the loads: wrench and base."""
    return *random_state(rng, mech), random_loads(rng, mech)


def split(mech, u, y):
    """Return qdd, tau from u and y."""
    return np.where(mech.active_mask, u, y), np.where(mech.active_mask, y, u)


# ---------------------------------------------------------------- Algorithm 4.1
@pytest.mark.slow
@settings(max_examples=12)
@given(seed=seeds, serial=st.booleans())
def test_algorithm_4_1_is_the_complex_step_of_the_dynamics(seed, serial):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=8)
    mech = straightened(mech) if serial else mech
    q, qd, u, load = random_case(rng, mech)
    tol = tolerance(mech, q, least=1e-12)
    dy_dq, dy_dqd, dy_du = sb.hybrid_sensitivity(mech, q, qd, u, **load)
    assert_close(dy_dq, complex_step(lambda x: sb.hybrid_dynamics(mech, x, qd, u, **load), q), tol)
    assert_close(dy_dqd, complex_step(lambda x: sb.hybrid_dynamics(mech, q, x, u, **load), qd), tol)
    assert_close(dy_du, complex_step(lambda x: sb.hybrid_dynamics(mech, q, qd, x, **load), u), tol)


@settings(max_examples=8)
@given(seed=seeds)
def test_base_sensitivity_is_the_complex_step(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    tol = tolerance(mech, q, least=1e-12)
    (V0, dV0), wrench = load["base"], load["wrench"]
    dy_dV0, dy_ddV0 = sb.base_sensitivity(mech, q, qd, u, **load)
    assert_close(dy_dV0, complex_step(lambda x: sb.hybrid_dynamics(mech, q, qd, u, wrench, (x, dV0)), V0), tol)
    assert_close(dy_ddV0, complex_step(lambda x: sb.hybrid_dynamics(mech, q, qd, u, wrench, (V0, x)), dV0), tol)


@settings(max_examples=8)
@given(seed=seeds)
def test_directional_sweep_follows_every_argument_at_once(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    dq, dqd, du, d = random_case(rng, mech)
    got = sb.hybrid_directional(mech, q, qd, u, **load, dq=dq, dqd=dqd, du=du, dwrench=d["wrench"], dbase=d["base"])
    ih = 1j * STEP
    base = tuple(x + ih * dx for x, dx in zip(load["base"], d["base"], strict=True))
    want = sb.hybrid_dynamics(mech, q + ih * dq, qd + ih * dqd, u + ih * du, load["wrench"] + ih * d["wrench"], base)
    assert_close(got, want.imag / STEP, tolerance(mech, q, least=1e-12))
    assert not sb.hybrid_directional(mech, q, qd, u, **load).any()


def test_forty_joints():
    rng = np.random.default_rng(40)
    mech = random_mechanism(rng, links=40, kinds=("revolute", "prismatic", "screw"))
    q, qd, u, load = random_case(rng, mech)
    direction = random_case(rng, mech)[0]
    want = sb.hybrid_dynamics(mech, q + 1j * STEP * direction, qd, u, **load).imag / STEP
    tol = tolerance(mech, q, least=1e-12)
    assert_close(sb.hybrid_directional(mech, q, qd, u, **load, dq=direction), want, tol)
    qdd, tau = split(mech, u, sb.hybrid_dynamics(mech, q, qd, u, **load))
    assert_close(sb.inverse_dynamics(mech, q, qd, qdd, **load), tau, tol)


# The lines of Algorithm 4.1 that the paper misprints, as it prints them.
def printed_da(S, J, Ad_h, V_P, V, qd, dV_P, dq, dqd):
    dV, da, db = true_velocity_step(S, J, Ad_h, V_P, V, qd, dV_P, dq, dqd)
    return dV, da * (1 - dq), db


def printed_db(S, J, Ad_h, V_P, V, qd, dV_P, dq, dqd):
    dV, da, _ = true_velocity_step(S, J, Ad_h, V_P, V, qd, dV_P, dq, dqd)
    return dV, da, -sohl_bobrow.ad(dV).T @ (J @ V) + sohl_bobrow.ad(V).T @ (J @ dV)


def printed_65_sign(db, children):
    dJ_hat, dB = true_gather_step(db, children)
    for c in children:
        dB = dB + 2 * sohl_bobrow.ad(sohl_bobrow.Ad(c.M) @ c.S).T @ (c.Ad_h.T @ c.z_plus) * c.dq
    return dJ_hat, dB


def printed_75(S, J_hat, z, tau, Omega, dJ_hat, dz, dtau):
    dc_hat = ((S @ z + tau) * (S @ dJ_hat @ S) - Omega * (S @ dz + dtau)) / Omega**2
    return true_passive_step(S, J_hat, z, tau, Omega, dJ_hat, dz, dtau)._replace(dc_hat=dc_hat)


def printed_dz_plus(S, J_hat, z, tau, Omega, dJ_hat, dz, dtau):
    rates = true_passive_step(S, J_hat, z, tau, Omega, dJ_hat, dz, dtau)
    dz_plus = dz - rates.dphi * (S @ z + tau) - J_hat @ S / Omega * (S @ dz + dtau)
    return rates._replace(dz_plus=dz_plus)


true_velocity_step = sohl_bobrow_sensitivity.d_velocity_step
true_gather_step = sohl_bobrow_sensitivity.d_gather_step
true_passive_step = sohl_bobrow_sensitivity.d_passive_step


@pytest.mark.parametrize(
    ("step", "printed"),
    [
        ("d_velocity_step", printed_da),
        ("d_velocity_step", printed_db),
        ("d_gather_step", printed_65_sign),
        ("d_passive_step", printed_75),
        ("d_passive_step", printed_dz_plus),
    ],
)
def test_each_correction_of_algorithm_4_1_is_needed(monkeypatch, step, printed):
    """On the paper's own ground: a serial chain, a load at the tip, torques on the passive joints."""
    rng = np.random.default_rng(4)
    mech = straightened(random_mechanism(rng, 4, ("revolute", "prismatic", "screw"), terms=False, shuffled=False))
    mech = mech.with_drive(active=["link2"])
    q, qd, u, load = random_case(rng, mech)
    wrench = np.zeros_like(load["wrench"])
    wrench[mech.link_index("link3")] = load["wrench"][0]

    def error():
        want = complex_step(lambda x: sb.hybrid_dynamics(mech, *x.reshape(3, -1), wrench), np.concatenate([q, qd, u]))
        return np.max(np.abs(np.hstack(sb.hybrid_sensitivity(mech, q, qd, u, wrench)) - want))

    assert error() < 1e-10
    monkeypatch.setattr(sohl_bobrow_sensitivity, step, printed)
    assert error() > 1e-2


# ---------------------------------------------------------------- Algorithms 3.1 to 3.6
@settings(max_examples=10)
@given(seed=seeds)
def test_hybrid_dynamics_solves_the_inverse_dynamics(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    tol = tolerance(mech, q, least=1e-12)
    qdd, tau = split(mech, u, sb.hybrid_dynamics(mech, q, qd, u, **load))
    assert_close(sb.inverse_dynamics(mech, q, qd, qdd, **load), tau, tol)
    held, free = mech.with_drive(active=mech.names), mech.with_drive(active=[])
    assert_close(sb.hybrid_dynamics(held, q, qd, qdd, **load), tau, tol)
    assert_close(sb.hybrid_dynamics(free, q, qd, tau, **load), qdd, tolerance(free, q, least=1e-12))


@settings(max_examples=10)
@given(seed=seeds)
def test_serial_form_is_the_tree_form(seed):
    rng = np.random.default_rng(seed)
    mech = straightened(random_mechanism(rng, links=8))
    q, qd, u, load = random_case(rng, mech)
    got = sb.hybrid_dynamics_serial(mech, q, qd, u, **load)
    assert_close(got, sb.hybrid_dynamics(mech, q, qd, u, **load), tolerance(mech, q, least=1e-12))


def test_serial_form_refuses_branches():
    a, b = (Link(name, None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0)) for name in "ab")
    c = Link("c", "a", Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    with pytest.raises(InvalidValue, match="the base carries several links"):
        sb.hybrid_dynamics_serial(Mechanism([a, b]), [0, 0], [0, 0], [0, 0])
    d = Link("d", "a", Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    with pytest.raises(InvalidValue, match="link 'a' carries several links"):
        sb.hybrid_dynamics_serial(Mechanism([c, d, a]), [0] * 3, [0] * 3, [0] * 3)


def body_twists(mech, q, dq):
    """Return the body-fixed twist of each link as q moves along dq, from the poses alone."""
    X = sb.forward_kinematics(mech, q)
    G = np.linalg.inv(X) @ (sb.forward_kinematics(mech, q + 1j * STEP * dq).imag / STEP)
    return np.stack([G[:, 2, 1], G[:, 0, 2], G[:, 1, 0], G[:, 0, 3], G[:, 1, 3], G[:, 2, 3]], axis=1)


@settings(max_examples=8)
@given(seed=seeds)
def test_inverse_dynamics_is_lagranges_equation(seed):
    """d/dt ∂T/∂q̇ - ∂T/∂q + ∂V/∂q + losses = τ + virtual work of the wrenches; T and V from `energy`."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, qdd, load = random_case(rng, mech)
    wrench, still = load["wrench"], np.zeros(mech.n)
    joints = [mech.joint(name) for name in mech.names]

    def momentum(q, qd):  # ∂T/∂q̇ exactly, since T is quadratic in q̇
        def T(v):
            return sb.energy(mech, q, v)[0]

        return np.array([T(qd + e) - T(qd) - T(e) for e in np.eye(mech.n)])

    rate = momentum(q + 1j * STEP * qd, qd + 1j * STEP * qdd).imag / STEP
    dT = complex_step(lambda x: sb.energy(mech, x, qd)[0], q)
    dV = complex_step(lambda x: sb.energy(mech, x, still)[1], q)
    losses = np.array(
        [j.damping * v + j.friction * np.tanh(v / j.friction_velocity) for j, v in zip(joints, qd, strict=True)]
    )
    work = np.array([np.sum(body_twists(mech, q, e) * wrench) for e in np.eye(mech.n)])
    assert_close(sb.inverse_dynamics(mech, q, qd, qdd, wrench), rate - dT + dV + losses - work, 1e-12)


@settings(max_examples=8)
@given(seed=seeds)
def test_moving_base_is_a_mechanism_on_driven_joints(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    kinds = [Prismatic, Prismatic, Prismatic, Revolute, Revolute, Revolute]
    axes = np.vstack([np.eye(3), np.eye(3)])
    carriers = [
        Link(f"carrier{k}", f"carrier{k - 1}" if k else None, kind(a))
        for k, (kind, a) in enumerate(zip(kinds, axes, strict=True))
    ]
    carried = changed_links(mech, lambda link: {"parent": link.parent or "carrier5"})
    names = [c.name for c in carriers]
    whole = Mechanism(carriers + carried, gravity=mech.gravity, active=[*names, *mech.active])
    p, pd, pdd = rng.uniform(-1, 1, (3, 6))
    Q, QD = np.concatenate([p, q]), np.concatenate([pd, qd])
    V = sb.link_velocities(whole, Q + 1j * STEP * QD, QD + 1j * STEP * np.concatenate([pdd, 0 * q]))[5]
    R = sb.forward_kinematics(whole, Q)[5, :3, :3]
    load["base"] = (V.real, V.imag / STEP)
    there = mech.with_gravity(R.T @ mech.gravity)
    wrench = np.vstack([np.zeros((6, 6)), load["wrench"]])
    tol = tolerance(mech, q, least=1e-12)
    want = sb.hybrid_dynamics(whole, Q, QD, np.concatenate([pdd, u]), wrench)[6:]
    assert_close(sb.hybrid_dynamics(there, q, qd, u, **load), want, tol)
    assert_close(sb.link_velocities(mech, q, qd, load["base"]), sb.link_velocities(whole, Q, QD)[6:], tol)
    # kinetic energy: the carriers have no mass
    got, want = sb.energy(mech, q, qd, load["base"])[0], sb.energy(whole, Q, QD)[0]
    assert got == pytest.approx(want, rel=1e-12)


@settings(max_examples=8)
@given(seed=seeds)
def test_power_balance(seed):
    """The rate of the energy is the motors' power and the wrenches', less what damping and friction take."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    wrench, ih = load["wrench"], 1j * STEP
    qdd, tau = split(mech, u, sb.hybrid_dynamics(mech, q, qd, u, wrench))
    rate = sum(sb.energy(mech, q + ih * qd, qd + ih * qdd)).imag / STEP
    joints = [mech.joint(name) for name in mech.names]
    lost = sum(
        j.damping * v**2 + j.friction * v * np.tanh(v / j.friction_velocity) for j, v in zip(joints, qd, strict=True)
    )
    gained = tau @ qd + np.sum(wrench * sb.link_velocities(mech, q, qd))
    scale = np.abs(qdd) @ np.abs(sb.mass_matrix(mech, q)) @ np.abs(qd) + np.abs(tau) @ np.abs(qd)
    assert rate == pytest.approx(gained - lost, abs=tolerance(mech, q, least=1e-12) * max(1.0, scale))


@settings(max_examples=8)
@given(seed=seeds)
def test_mass_matrix_is_the_kinetic_energys(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, *_ = random_case(rng, mech)
    M = sb.mass_matrix(mech, q)
    assert_close(M, M.T, 1e-13)
    assert sb.energy(mech, q, qd)[0] == pytest.approx(qd @ M @ qd / 2, rel=1e-12)


@settings(max_examples=8)
@given(seed=seeds)
def test_poses_are_products_of_matrix_exponentials(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng)
    q, qd, *_ = random_case(rng, mech)
    X, k = sb.forward_kinematics(mech, q), {i: k for k, i in enumerate(mech.joint_links)}
    for i, link in enumerate(mech.links):
        S = np.zeros((4, 4))
        if i in k:
            w, S[:3, 3] = link.joint.screw[:3], link.joint.screw[3:]
            S[:3, :3] = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        above = np.eye(4) if link.parent is None else X[mech.link_index(link.parent)]
        assert_close(X[i], above @ link.pose @ expm(S * (q[k[i]] if i in k else 0.0)), 1e-13)
    assert_close(sb.link_velocities(mech, q, qd), body_twists(mech, q, qd), 1e-12)


def test_results_do_not_depend_on_the_order_of_the_links():
    rng = np.random.default_rng(7)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    order = rng.permutation(len(mech.links))
    other = Mechanism([mech.links[i] for i in order], gravity=mech.gravity, active=mech.active)
    k = [mech.joint_index(name) for name in other.names]
    load_there = {"wrench": load["wrench"][order], "base": load["base"]}
    want = sb.hybrid_dynamics(mech, q, qd, u, **load)[k]
    assert_close(sb.hybrid_dynamics(other, q[k], qd[k], u[k], **load_there), want, tolerance(mech, q, least=1e-12))


# ---------------------------------------------------------------- Xiang, Arora and Abdel-Malek (2008), (69)-(82)
def load_at_tip(mech, q, f):
    """Return the wrenches of a force f downwards at the tip, and their derivative to each angle."""
    link = mech.links[1]
    tip = 2 * link.com - link.joint.point  # the centre of mass is in the middle
    angle = np.sum(q)  # of the link's x axis
    rows = []
    for s, c in ((np.sin(angle), np.cos(angle)), (np.cos(angle), -np.sin(angle))):
        force = -f * np.array([s, c, 0])
        rows.append(np.array([np.zeros(6), np.concatenate([np.cross(tip, force), force])]))
    return rows


def test_two_link_arm_has_the_closed_forms_of_xiang():
    mech = xiang_two_link()
    rng = np.random.default_rng(2008)
    for f in (0.0, 10.0):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        wrench, dwrench = load_at_tip(mech, q, f)
        want = xiang_torque(*q, *qd, *qdd, f)
        assert_close(sb.inverse_dynamics(mech, q, qd, qdd, wrench), want, 1e-13)
        held = mech.with_drive(active=mech.names)
        _, dqd, dqdd = sb.hybrid_sensitivity(held, q, qd, qdd, wrench)
        dq = [sb.hybrid_directional(held, q, qd, qdd, wrench, dq=e, dwrench=dwrench) for e in np.eye(2)]
        for got, want in zip((np.transpose(dq), dqd, dqdd), xiang_sensitivity(*q, *qd, *qdd, f), strict=True):
            assert_close(got, want, 1e-13)
        assert_close(sb.mass_matrix(mech, q), xiang_sensitivity(*q, *qd, *qdd, f)[2], 1e-13)


# ---------------------------------------------------------------- numbers in, numbers out, refusals
def test_real_arguments_give_real_results_and_complex_ones_complex():
    mech = xiang_two_link()
    for number, kind in ((1, np.float64), (1.0, np.float64), (1j, np.complex128)):
        q = np.array([number, number])
        assert sb.hybrid_dynamics(mech, q, [0, 1], [0, 0]).dtype == kind
        assert {d.dtype for d in sb.hybrid_sensitivity(mech, q, [0, 1], [0, 0])} == {np.dtype(kind)}


def test_arguments_are_not_changed():
    rng = np.random.default_rng(1)
    mech = random_mechanism(rng)
    q, qd, u, load = random_case(rng, mech)
    arrays = [q, qd, u, load["wrench"], *load["base"]]
    kept = [a.copy() for a in arrays]
    sb.hybrid_sensitivity(mech, q, qd, u, **load)
    sb.base_sensitivity(mech, q, qd, u, **load)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, kept, strict=True))


REFUSED = [
    ({"q": [0.0]}, ShapeError, r"q: expected shape \(2,\), got \(1,\)"),
    ({"qd": 0.0}, ShapeError, r"qd: expected shape \(2,\), got \(\)"),
    ({"u": [[0.0, 0.0]]}, ShapeError, "u: expected shape"),
    ({"q": [[0.0], [1.0, 2.0]]}, ShapeError, "q: expected an array of numbers, got rows of different lengths"),
    ({"q": ["a", "b"]}, InvalidType, "q: expected real numbers, got text"),
    ({"u": [None, 1.0]}, InvalidType, "u: expected real numbers, got None among them"),
    ({"qd": [0.0, np.nan]}, NonFinite, "qd: expected finite numbers, got nan at index 1"),
    ({"wrench": np.zeros(6)}, ShapeError, r"wrench: expected shape \(2, 6\), got \(6,\)"),
    ({"base": (np.zeros(6),)}, InvalidValue, "base: expected a pair"),
    ({"base": 3.0}, InvalidValue, "base: expected a pair"),
    ({"base": (np.zeros(6), np.zeros(3))}, ShapeError, r"base\[1\]: expected shape \(6,\)"),
]


@pytest.mark.parametrize("function", [sb.hybrid_dynamics, sb.hybrid_dynamics_serial, sb.hybrid_sensitivity])
@pytest.mark.parametrize(("change", "error", "message"), REFUSED)
def test_wrong_arguments_are_refused(function, change, error, message):
    arguments = {"q": [0.0, 0.0], "qd": [0.0, 0.0], "u": [0.0, 0.0]}
    with pytest.raises(error, match=message) as caught:
        function(xiang_two_link(), **{**arguments, **change})
    assert isinstance(caught.value, CstormError)


def test_directions_are_refused_too():
    mech, still = xiang_two_link(), [0.0, 0.0]
    with pytest.raises(ShapeError, match=r"dq: expected shape \(2,\)"):
        sb.hybrid_directional(mech, still, still, still, dq=[1.0])
    with pytest.raises(InvalidValue, match="dbase: expected a pair"):
        sb.hybrid_directional(mech, still, still, still, dbase=[1.0])
    with pytest.raises(ShapeError, match="qdd: expected shape"):
        sb.inverse_dynamics(mech, still, still, [1.0])


@pytest.mark.parametrize("function", [sb.hybrid_dynamics, sb.hybrid_dynamics_serial, sb.hybrid_sensitivity])
def test_passive_joint_without_inertia_is_named(function):
    arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    ghost = Link("ghost", "arm", Prismatic((1, 0, 0)))
    with pytest.raises(SingularInertia, match="link 'ghost'"):
        function(Mechanism([arm, ghost]), [0, 0], [0, 0], [0, 0])
    function(Mechanism([arm, ghost], active=["ghost"]), [0, 0], [0, 0], [0, 0])
