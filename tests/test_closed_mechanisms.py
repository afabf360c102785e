"""Closed mechanisms against closed forms, Pinocchio, Kim's equations, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import ALL, STARTS, state
from closeness import assert_close

import cstormpy as cs
from cstormpy.formulations import kim_constrained as constrained


# ---------------------------------------------------------------- closed forms
def test_four_bar_by_freudenstein():
    """Position, velocity and acceleration of the rocker by the closed form of the loop; torque by virtual power."""
    mech = cs.library.four_bar()
    g, (a, b, c) = 0.9, (0.3, 0.8, 0.5)

    def angles(th):  # of coupler and rocker from the x axis, by the circles' intersection; analytic in th
        x, y = g - a * np.cos(th), -a * np.sin(th)
        f = np.sqrt(x * x + y * y)
        at = -1j * np.log((x + 1j * y) / f)
        inner = np.arccos((f * f + b * b - c * c) / (2 * f * b))
        coupler = at + inner
        tip = a * np.cos(th) + b * np.cos(coupler) - g, a * np.sin(th) + b * np.sin(coupler)
        return coupler, -1j * np.log((tip[0] + 1j * tip[1]) / c)

    th, om, al = 1.1, 2.0, -3.0
    coupler, rocker = (float(np.real(x)) for x in angles(th + 0j))
    q = np.array([th, coupler - th, rocker])
    assert np.abs(mech.closure(q)).max() < 1e-12
    assert_close(mech.project([th, coupler - th + 0.1, rocker - 0.1], hold=["crank"])[0], q, 1e-10)
    # rates and accelerations from the two complex loop equations a e^{iθ} + b e^{iφ} = g + c e^{iψ}
    e = [np.exp(1j * x) for x in (th, coupler, rocker)]

    def solve(right):
        return np.linalg.solve(
            [[(1j * b * e[1]).real, (-1j * c * e[2]).real], [(1j * b * e[1]).imag, (-1j * c * e[2]).imag]],
            [right.real, right.imag],
        )

    w = solve(-1j * a * e[0] * om)
    z = solve(-1j * a * e[0] * al + a * e[0] * om**2 + b * e[1] * w[0] ** 2 - c * e[2] * w[1] ** 2)
    qd, qdd = np.array([om, w[0] - om, w[1]]), np.array([al, z[0] - al, z[1]])
    driven = mech.with_drive(active=["crank"])
    assert_close(mech.project(q, [om, 0, 0], hold=["crank"])[1], qd, 1e-10)
    r = driven.hybrid_dynamics(q, qd, [al, 0, 0])
    assert_close(r.qdd, qdd, 1e-10)
    # virtual power of inertia and weight: rods of masses a, b, c
    power = 0.0
    for m, length, k, rates in ((0.3, a, 0, (om, al)), (0.8, b, 1, (w[0], z[0])), (0.5, c, 2, (w[1], z[1]))):
        before_v, before_a = (1j * a * e[0] * om, a * e[0] * (1j * al - om**2)) if k == 1 else (0j, 0j)
        arm = length / 2 * e[k]
        v, acc = before_v + 1j * arm * rates[0], before_a + arm * (1j * rates[1] - rates[0] ** 2)
        power += m * ((acc + 9.81j) * np.conj(v)).real + m * length**2 / 12 * rates[1] * rates[0]
    assert abs(r.tau[0] - power / om) < 1e-10
    assert_close(np.asarray(mech.inverse_dynamics(q, qd, qdd)), [power / om, 0.0, 0.0], 1e-10)
    # an acceleration of the crank alone was answered by what an optimal motion would do
    with pytest.raises(cs.CstormError, match=r"those of all joints follow .*with_drive\(active=\[.*hybrid_dynamics"):
        mech.inverse_dynamics(q, qd, [al, 0.0, 0.0])


def test_slider_crank_by_its_closed_form():
    mech, r, L = cs.library.slider_crank(), 0.3, 0.8
    th, om, al = 0.7, 3.0, -2.0

    def x(t):
        return r * np.cos(t) + np.sqrt(L**2 - (r * np.sin(t)) ** 2)

    s, c = np.sin(th), np.cos(th)
    root = np.sqrt(L**2 - (r * s) ** 2)
    x1 = -r * s - r * r * s * c / root
    x2 = -r * c - r * r * ((c * c - s * s) / root + (r * s * c) ** 2 / root**3)
    q, qd = mech.project([th, -1.0, 1.0], [om, 0, 0], hold=["crank"])
    assert abs(q[2] - x(th)) < 1e-10 and abs(qd[2] - x1 * om) < 1e-10
    found = mech.with_drive(active=["crank"]).hybrid_dynamics(q, qd, [al, 0, 0])
    assert abs(found.qdd[2] - (x1 * al + x2 * om**2)) < 1e-10
    # the crank's torque by the virtual power of inertia and weight
    ph = q[0] + q[1]
    rate = -r * c * om / (L * np.cos(ph))
    turn = (-r * (c * al - s * om**2) / L + np.sin(ph) * rate**2) / np.cos(ph)
    power = (0.3 * r**2 / 3 * al + 0.3 * 9.81 * r / 2 * c) * om + found.qdd[2] * qd[2]
    tip, end = r * np.exp(1j * th), L / 2 * np.exp(1j * ph)
    v = 1j * tip * om + 1j * end * rate
    acc = tip * (1j * al - om**2) + end * (1j * turn - rate**2)
    power += 0.8 * ((acc + 9.81j) * np.conj(v)).real + 0.8 * L**2 / 12 * turn * rate
    assert abs(found.tau[0] - power / om) < 1e-10


# ---------------------------------------------------------------- witnesses
@pytest.mark.parametrize("name", [*STARTS, pytest.param("spatial", marks=pytest.mark.slow)])
def test_kims_equations(name):
    mech, q, qd = state(name, 1)
    rng = np.random.default_rng(2)
    wrench = rng.normal(size=(len(mech.links), 6))
    A, rate = mech.closure_jacobian(q), mech.closure_jacobian_rate(q, qd)
    for active in ([], mech.actuated[:1]):
        driven = mech.with_drive(active=active)
        u = rng.normal(size=mech.n)
        r = driven.hybrid_dynamics(q, qd, u, wrench)
        want = constrained.constrained_hybrid_dynamics(driven.without_loops(), q, qd, u, A, rate, wrench)
        assert_close(r.y, want.y, 1e-10)
        assert_close(r.multipliers, want.lam, 1e-10)
        for least in ("torque", "force"):
            all_motors = mech.with_drive(actuated=mech.names)
            tau = all_motors.inverse_dynamics(q, qd, r.qdd, wrench, redundancy=least)
            want = constrained.constrained_inverse_dynamics(
                all_motors.without_loops(), q, qd, r.qdd, A, wrench, least=least
            )
            assert_close(np.asarray(tau), want.tau, 1e-10)
            assert_close(tau.multipliers, want.lam, 1e-10)


@pytest.mark.parametrize("name", ALL)
def test_pinocchios_constraint_dynamics(name):
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import Oracle

    mech, q, qd = state(name, 4)
    peer = Oracle(mech.without_loops())
    models = pin.StdVec_RigidConstraintModel()
    for loop in mech.loops:
        places = []
        for end, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            joint, local = (0, pin.SE3.Identity()) if end is None else peer.frames[mech.link_index(end)]
            places += [joint, local * pin.SE3(np.array(pose))]
        kind = pin.ContactType.CONTACT_6D if loop.kind == "hinge" else pin.ContactType.CONTACT_3D
        models.append(pin.RigidConstraintModel(kind, peer.model, *places))
    if any(loop.kind == "hinge" for loop in mech.loops):  # Pinocchio closes all six
        mech = mech.replace(loops=[x.replace(directions="pose") if x.kind == "hinge" else x for x in mech.loops])
        qd = mech.project(q, qd)[1]
    datas = pin.StdVec_RigidConstraintData()
    for model in models:
        datas.append(model.createData())
    tau = np.random.default_rng(6).normal(size=mech.n)
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-10, 200)
    want = pin.constraintDynamics(
        peer.model, peer.data, peer.to(q), peer.to(qd), peer.to(tau - peer.losses(q, qd)), models, datas, settings
    )
    assert_close(np.asarray(mech.forward_dynamics(q, qd, tau)), peer.back(want), 1e-9)


@pytest.mark.parametrize("name", ALL)
def test_forward_after_inverse_is_the_identity_and_power_is_balanced(name):
    mech, q, qd = state(name, 7)
    rng = np.random.default_rng(8)
    found = mech.forward_dynamics(q, qd, rng.normal(size=mech.n))
    qdd = np.asarray(found)
    motors = mech.with_drive(actuated=mech.names)
    for least in ("torque", "force"):
        tau = motors.inverse_dynamics(q, qd, qdd, redundancy=least)
        assert_close(np.asarray(mech.forward_dynamics(q, qd, tau)), qdd, 1e-9)
    # the loops do no work: what the motors give goes into energy and losses
    h = 1e-4

    def energy(s):
        T, V = mech.energy(q + s * qd + s * s / 2 * qdd, qd + s * qdd)
        return T + V

    gained = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    losses = sum(
        mech.joint(n).damping * v * v + mech.joint(n).friction * v * np.tanh(v / mech.joint(n).friction_velocity)
        for n, v in zip(mech.names, qd, strict=True)
    )
    assert abs(gained + losses - tau @ qd) < 1e-7 * (1.0 + abs(gained))
    assert abs(found.multipliers @ mech.closure_jacobian(q) @ qd) < 1e-9


@pytest.mark.parametrize(
    ("name", "start"), [("three_rrr", [-0.8, 1.6, -0.8, 1.3, 1.6, 3.4, 1.6]), ("two_arms", [2.0, -1.0, -1.0, 1.1, 1.0])]
)
def test_ready_platforms_meet_the_equations_of_motion_with_multipliers(name, start):
    """M q̈ + bias = τ + Aᵀ λ, A q̈ + Ȧ q̇ = 0; three freedoms; what the motors give for a motion makes it."""
    mech = cs.library.get(name)
    q, qd = mech.project(start, np.ones(mech.n))
    assert mech.mobility(q).freedoms == 3
    tau = np.linspace(-1.0, 1.0, mech.n)
    qdd, A = mech.forward_dynamics(q, qd, tau), mech.closure_jacobian(q)
    assert_close(A @ qdd + mech.closure_jacobian_rate(q, qd) @ qd, np.zeros(len(A)), 1e-10)
    assert_close(mech.mass_matrix(q) @ qdd + mech.bias(q, qd), tau + A.T @ qdd.multipliers, 1e-10)
    motors = mech.inverse_dynamics(q, qd, np.asarray(qdd))
    assert not np.asarray(motors)[~mech.actuated_mask].any()
    assert_close(np.asarray(mech.forward_dynamics(q, qd, motors)), np.asarray(qdd), 1e-9)
