"""Closed mechanisms against closed forms, Pinocchio, Kim's equations, and laws."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pinocchio as pin
import pytest
from closeness import assert_close, central_difference, complex_step, tolerance
from pinocchio_model import Oracle

import cstormpy as cs
from cstormpy import lie
from cstormpy.formulations import kim
from cstormpy.formulations import kim_constrained as constrained
from cstormpy.loops import lines as closed_lines
from cstormpy.loops.assembly import independent_rows, shut

STARTS = {"four_bar": [1.0, 0.0, 1.5], "five_bar": [2.0, -1.0, 1.1, 1.0], "slider_crank": [0.7, -1.0, 1.0]}


def spatial(**drive):
    """Return a tree with two loops: a hinge between two branches, and a ball on the base."""
    tree = cs.library.tree(4, branching=2)
    rng = np.random.default_rng(5)
    q = rng.uniform(-0.7, 0.7, tree.n)
    X = tree.forward_kinematics(q)
    a, b = 7, 13
    frame = lie.exp_se3(rng.normal(size=6))
    to_b = np.linalg.inv(X[b]) @ X[a] @ frame
    ball = X[10] @ np.array([0.2, 0.1, -0.1, 1.0])
    loops = [
        cs.Loop(tree.links[a].name, tree.links[b].name, frame, to_b, "hinge"),
        cs.Loop(None, tree.links[10].name, ball[:3], (0.2, 0.1, -0.1), "position"),
    ]
    return cs.Mechanism(tree.links, tree.gravity, loops=loops, **drive), q


def state(name, seed=0):
    rng = np.random.default_rng(seed)
    if name == "spatial":
        mech, q = spatial()
        return mech, *mech.project(q, rng.normal(size=mech.n))
    mech = cs.library.get(name)
    q0 = np.array(STARTS[name])
    return mech, *mech.project(q0 + 0.1 * rng.normal(size=mech.n), rng.normal(size=mech.n))


ALL = [*STARTS, "spatial"]


# ---------------------------------------------------------------- closure
@pytest.mark.parametrize("name", ALL)
def test_the_jacobian_is_the_derivative_of_the_closure_and_its_rate_that_of_the_jacobian(name):
    mech, q, qd = state(name)
    assert np.abs(mech.closure(q)).max() < 1e-11
    assert_close(mech.closure_jacobian(q), central_difference(mech.closure, q, 1e-3), 1e-10)
    along = central_difference(lambda s: mech.closure_jacobian(q + s[0] * qd), np.zeros(1), 1e-3)[..., 0]
    assert_close(mech.closure_jacobian_rate(q, qd), along, 1e-10)


def test_a_batch_is_answered_as_its_samples_are():
    mech = cs.library.five_bar()
    rng = np.random.default_rng(3)
    q, qd = mech.project(np.array(STARTS["five_bar"]) + 0.2 * rng.normal(size=(9, 4)), rng.normal(size=(9, 4)))
    u = rng.normal(size=(9, 4))
    r, d = mech.hybrid_dynamics(q, qd, u), mech.hybrid_sensitivity(q, qd, u)
    t = mech.inverse_dynamics(q, qd, r.qdd)
    for k in range(9):
        one = mech.hybrid_dynamics(q[k], qd[k], u[k])
        assert_close(r.y[k], one.y, 1e-13)
        assert_close(r.multipliers[k], one.multipliers, 1e-13)
        assert_close(d.dy_dq[k], mech.hybrid_sensitivity(q[k], qd[k], u[k]).dy_dq, 1e-12)
        assert_close(np.asarray(t[k]), np.asarray(mech.inverse_dynamics(q[k], qd[k], r.qdd[k])), 1e-12)
    assert mech.closure(q).shape == (9, 2) and r.loop_wrenches.shape == (9, 1, 6) and r.rank.tolist() == [2] * 9


def test_projection_is_nearest_in_the_mass_metric():
    mech, q0 = cs.library.four_bar(), np.array(STARTS["four_bar"])
    q, qd = mech.project(q0, [1.0, 2.0, 3.0])
    A, M0, M = mech.closure_jacobian(q), mech.mass_matrix(q0), mech.mass_matrix(q)
    free = np.linalg.svd(A)[2][-1]  # the direction that keeps it closed
    assert abs(free @ M0 @ (q - q0)) < 1e-9 and abs(free @ M @ (qd - [1.0, 2.0, 3.0])) < 1e-12
    assert np.abs(A @ qd).max() < 1e-12


def test_all_assemblies_of_a_four_bar_can_be_had():
    """Coupler above or below: the circles about the crank's tip and the rocker's pivot meet in two points."""
    mech = cs.library.four_bar()
    found = mech.assemblies([0.8, 0.0, 1.5], hold=["crank"])
    tips = [0.9 + 0.5 * np.exp(1j * q[2]) for q in found]
    tip, pivot = 0.3 * np.exp(0.8j), 0.9
    along = (pivot - tip) / abs(pivot - tip)
    x = (abs(pivot - tip) ** 2 + 0.8**2 - 0.5**2) / (2 * abs(pivot - tip))
    wanted = [tip + along * (x + s * 1j * np.sqrt(0.8**2 - x * x)) for s in (1, -1)]
    assert_close(sorted(tips, key=np.imag), sorted(wanted, key=np.imag), 1e-9)
    with pytest.raises(cs.InvalidValue, match=r"assemblies: .* leaves 1 freedom"):
        mech.assemblies([0.8, 0.0, 1.5])
    with pytest.raises(cs.InvalidValue, match="cannot be closed from there"):
        cs.library.four_bar(ground=3.0).assemblies([0.8, 0.0, 1.5], hold=["crank"], tries=3)


def test_what_cannot_be_closed_is_said():
    far = cs.library.four_bar(ground=3.0)
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: cannot be closed .* of 2 constraints are independent"):
        far.project([1.0, 0.0, 1.5])
    mech, q, qd = state("four_bar")
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: the rates of the joints that are held contradict"):
        mech.project(q, [1.0, 5.0, -3.0], hold=["crank", "coupler"])
    with pytest.raises(
        cs.InvalidValue, match=r"loop pin: .: misses closure by .* between 'rocker_rod' and 'coupler_rod'; mech"
    ):
        mech.hybrid_dynamics(q + np.array([0.1, 0, 0]), qd, np.zeros(3))
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: is left at the rate"):
        mech.forward_dynamics(q, [1.0, 5.0, 3.0], np.zeros(3))
    with pytest.raises(cs.InvalidValue, match="no loops"):
        mech.without_loops().closure(q)
    with pytest.raises(cs.InvalidValue, match="redundancy: is of mechanisms with loops"):
        mech.without_loops().inverse_dynamics(q, qd, q, redundancy="force")


def test_what_does_not_know_of_loops_is_refused_by_their_name_and_never_open_in_silence():
    mech, q, qd = state("four_bar")
    bd = cs.Simulation(graphics=False, progress=False).blockdiagram()
    u = np.zeros(3)
    for ask in (
        lambda: mech.hybrid_jvp(q, qd, u, q, q, q),
        lambda: mech.hybrid_vjp(q, qd, u, q),
        lambda: mech.inverse_sensitivity(q, qd, u),
        lambda: mech.hybrid_sensitivity(q, qd, u, to_base=True),
        lambda: mech.inverse_kinematics("rocker_rod", np.eye(4), q),
        lambda: mech.parameter_sensitivity(q, qd, u, ["crank_rod.mass"]),
        lambda: mech.regressor(q, qd, u),
        lambda: bd.CONTROLLER(mech, "pd"),
        lambda: kim.inverse_dynamics(mech, q, qd, u),
    ):
        with pytest.raises(cs.CstormError, match=r"loop 'pin': .*without_loops\(\)"):
            ask()


def test_one_closed_rotation_is_refused_where_the_links_rotate_otherwise():
    arm = cs.library.puma560()
    mech = cs.Mechanism(arm.links, loops=[cs.Loop(None, arm.links[-1].name, directions="planar")])
    with pytest.raises(cs.InvalidValue, match="closes rotation about z alone, but its links also rotate"):
        mech.closure(np.zeros(6))


def test_dependent_constraints_are_named_and_harmless():
    """A planar four-bar welded by a hinge in space: three constraints of five say nothing new."""
    plain, q, qd = state("four_bar")
    (pin_,) = plain.loops
    mech = plain.replace(loops=[pin_.replace(directions="hinge")])
    m = mech.mobility(q)
    assert (m.freedoms, m.rank, m.constraints) == (1, 2, 5)
    assert m.dependent == ("pin: rotation x", "pin: rotation y", "pin: z")
    assert len(independent_rows(mech)) == 2
    u = np.array([1.0, 0.2, -0.3])
    a, b = plain.hybrid_dynamics(q, qd, u), mech.hybrid_dynamics(q, qd, u)
    assert_close(b.y, a.y, 1e-11)
    assert_close(b.loop_wrenches, a.loop_wrenches, 1e-11)
    assert b.rank == 2


def test_a_loop_that_is_over_constrained_is_said_with_its_links_and_rank(caplog):
    """A planar loop that is closed as if in space: its multipliers are not determined, and nobody is left to guess."""
    plain, q, qd = state("four_bar")
    spare = cs.Loop("rocker_rod", "coupler_rod", (0.5, 0, 0), (0.8, 0, 0), "hinge", name="spare")
    mech = plain.replace(loops=[spare])
    mech.hybrid_sensitivity(np.array([q] * 3), np.array([qd] * 3), np.zeros((3, 3)))
    assert len(independent_rows(mech)) == 2
    (said,) = [text for text in caplog.messages if "over-constrained" in text]
    assert said.startswith("loop spare: rotation x: over-constrained between 'rocker_rod' and 'coupler_rod'")
    assert "rotation x, spare: rotation y, spare: z follow" in said and "rank 2 of 5" in said


def test_a_singular_posture_is_said_with_loop_links_and_rank(caplog):
    """A parallelogram that lies flat may go on as one or crossed: at rest there the dynamics say so."""
    pinned = cs.library.four_bar(ground=0.8, lengths=(0.5, 0.8, 0.5))
    mech = pinned.replace(loops=[pinned.loops[0].replace(name="flat")]).with_gravity((0, 0, 0))
    q = np.zeros(3)
    assert mech.mobility(q) == (2, 1, 2, ("flat: x",))
    said = "loop flat: x: the posture is singular between 'rocker_rod' and 'coupler_rod'"
    assert mech.forward_dynamics(q, q, [1.0, 0.0, 0.0]).rank == 1
    assert any(text.startswith(said) and "rank 1 of the constraints, 2 in others" in text for text in caplog.messages)
    with pytest.raises(cs.InvalidValue, match=said + ".*rank 1.*no derivatives"):
        mech.hybrid_sensitivity(q, q, [1.0, 0.0, 0.0])


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
@pytest.mark.parametrize("name", ALL)
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


# ---------------------------------------------------------------- actuation
def five_bar_motion():
    mech, q, qd = state("five_bar", 9)
    return mech, q, qd, np.asarray(mech.forward_dynamics(q, qd, [1.0, 0, -2.0, 0]))


def test_redundant_actuation_is_optimal():
    """Of all torques that make a motion no others are less; of all forces of the loops none are less."""
    mech, q, qd, qdd = five_bar_motion()
    A = mech.closure_jacobian(q)
    for names in (mech.names[:3], mech.names):
        motors = mech.with_drive(actuated=names)
        a = motors.actuated_mask
        N = constrained.null_space(A[:, ~a].T)
        torque = motors.inverse_dynamics(q, qd, qdd)
        force = motors.inverse_dynamics(q, qd, qdd, redundancy="force")
        assert N.shape[1] == len(names) - 2
        assert np.abs(N.T @ A[:, a] @ np.asarray(torque)[a]).max() < 1e-10
        assert np.abs(N.T @ force.multipliers).max() < 1e-10
        assert np.linalg.norm(torque) < np.linalg.norm(force)
        assert np.linalg.norm(torque.multipliers) > np.linalg.norm(force.multipliers)
        assert_close(np.asarray(mech.forward_dynamics(q, qd, torque)), qdd, 1e-10)


@pytest.mark.parametrize("full", [False, True])
def test_weights_say_which_torques_are_dear(full):
    """Of all torques that make a motion, those of the least τᵀ W τ: its gradient along all others is zero."""
    mech, q, qd, qdd = five_bar_motion()
    A, rng = mech.closure_jacobian(q), np.random.default_rng(17)
    for names in (mech.names[:3], mech.names):
        motors = mech.with_drive(actuated=names)
        a, k = motors.actuated_mask, len(names)
        W = np.diag(rng.uniform(0.5, 5.0, k))
        if full:
            X = rng.normal(size=(k, k))
            W = W + X @ X.T
        given = W if full else np.diag(W)
        N = constrained.null_space(A[:, ~a].T)
        tau = motors.inverse_dynamics(q, qd, qdd, redundancy=given)
        assert np.abs(N.T @ A[:, a] @ W @ np.asarray(tau)[a]).max() < 1e-10
        assert_close(np.asarray(mech.forward_dynamics(q, qd, tau)), qdd, 1e-10)
        least = np.asarray(motors.inverse_dynamics(q, qd, qdd))[a]
        assert np.asarray(tau)[a] @ W @ np.asarray(tau)[a] < least @ W @ least - 1e-3
        same = motors.inverse_dynamics(q, qd, qdd, redundancy=3.0 * np.ones(k))
        assert_close(np.asarray(same)[a], least, 1e-10)
        driven = motors.with_drive(active=names)
        u = np.where(a, qdd, 0.0)
        assert_close(driven.hybrid_dynamics(q, qd, u, redundancy=given).tau, np.asarray(tau), 1e-9)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("torqe", r"redundancy: expected 'torque', 'force' or weights, got 'torqe'"),
        ([1.0, 2.0], r"redundancy: expected shape \(3,\) or \(3, 3\).*left_shoulder, left_elbow, right_shoulder"),
        ([1.0, -2.0, 1.0], r"redundancy: the weight of joint 'left_elbow' must be positive, got -2"),
        ([1.0, 0.0, 1.0], r"redundancy: the weight of joint 'left_elbow' must be positive, got 0"),
        ([1.0, np.nan, 1.0], r"redundancy"),
        ([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], r"redundancy: weights must be symmetric.*'left_shoulder'"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], r"redundancy: weights must be positive definite"),
    ],
)
def test_weights_that_are_none_are_refused_by_name(weights, said):
    mech, q, qd, qdd = five_bar_motion()
    motors = mech.with_drive(actuated=mech.names[:3])
    with pytest.raises(cs.CstormError, match=said):
        motors.inverse_dynamics(q, qd, qdd, redundancy=weights)
    with pytest.raises(cs.CstormError, match=said):
        motors.with_drive(active=mech.names[:3]).hybrid_dynamics(q, qd, qdd, redundancy=weights)


def test_active_joints_that_share_a_load_take_the_least_torque():
    """Hybrid dynamics with all joints active is the inverse dynamics of as many motors."""
    mech, q, qd, qdd = five_bar_motion()
    driven = mech.with_drive(actuated=mech.names, active=mech.names)
    for least in ("torque", "force"):
        r = driven.hybrid_dynamics(q, qd, qdd, redundancy=least)
        assert_close(r.tau, np.asarray(driven.inverse_dynamics(q, qd, qdd, redundancy=least)), 1e-10)
    assert_close(driven.hybrid_dynamics(q, qd, qdd).tau, np.asarray(driven.inverse_dynamics(q, qd, qdd)), 1e-10)
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: the accelerations of the active joints .* contradict it"):
        driven.hybrid_dynamics(q, qd, qdd + np.array([1.0, 0, 0, 0]))
    with pytest.raises(cs.InvalidValue, match="redundant actuation"):
        driven.hybrid_sensitivity(q, qd, qdd)


def test_too_few_actuators_are_said_with_the_deficiency():
    mech, q, qd, qdd = five_bar_motion()
    with pytest.raises(cs.InvalidValue, match=r"has no motor and the loops do not carry it.*; 1 freedom\(s\)"):
        mech.with_drive(actuated=["left_shoulder"]).inverse_dynamics(q, qd, qdd)


def test_a_structure_that_cannot_move_needs_no_torque():
    """A triangle of rods, n = m: the loops carry all, the motors nothing."""
    rods = cs.library.planar_2r().links
    mech = cs.Mechanism(rods, loops=[cs.Loop(None, "forearm", (0.7, 0, 0), (0.5, 0, 0), "pin")])
    q, qd = mech.project([0.8, -1.6], [1.0, 1.0])
    assert mech.mobility(q).freedoms == 0 and np.abs(qd).max() < 1e-12
    assert np.abs(mech.forward_dynamics(q, qd, [3.0, -1.0])).max() < 1e-10
    assert np.abs(mech.inverse_dynamics(q, qd, np.zeros(2))).max() < 1e-10


def test_the_wrench_of_a_loop_is_what_the_pin_carries():
    """A level bar on two pins at its ends: each carries half of its weight."""
    bar = cs.Link("bar", None, cs.Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0), inertia=np.diag([0, 0.1, 0.1]))
    mech = cs.Mechanism([bar], loops=[cs.Loop(None, "bar", (1.0, 0, 0), (1.0, 0, 0), "pin")])
    r = mech.hybrid_dynamics([0.0], [0.0], [0.0])
    assert_close(r.loop_wrenches, [[0, 0, 0, 0, 9.81, 0]], 1e-12)


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


def test_the_prepared_functions_are_of_the_closed_mechanism():
    mech, q, qd = state("four_bar")
    u = np.array([1.0, 0.0, 0.0])
    out = np.empty(3)
    assert mech.hybrid_evaluator()(q, qd, u, out) is out
    y, D = mech.hybrid_sensitivity_evaluator()(q, qd, u)
    assert_close(out, mech.hybrid_dynamics(q, qd, u).y, 1e-13)
    assert_close(y, out, 1e-13)
    assert_close(D[0], mech.hybrid_sensitivity(q, qd, u).dy_dq, 1e-13)
    assert type(np.asarray(mech.forward_dynamics(q, qd, u)) + 1) is np.ndarray


# ---------------------------------------------------------------- straight lines
@pytest.mark.parametrize("what", ["dynamics", "sensitivity"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_the_straight_line_answers_as_the_numbers_do(name, what):
    mech, q, qd = state(name, 20)
    mech = mech.with_drive(active=mech.actuated[:1]) if name == "five_bar" else mech
    with without_lines():
        fresh = mech.with_drive(active=mech.active)
        u = np.linspace(-1.0, 1.0, mech.n)
        found = (fresh.hybrid_sensitivity if what == "sensitivity" else fresh.hybrid_dynamics)(q, qd, u)
    filled = [np.empty(mech.n), np.empty(2), np.empty((3, mech.n, mech.n))][: 3 if what == "sensitivity" else 2]
    assert closed_lines.prepared(mech, "own", what, "found")(q, qd, u, *filled) == 0
    assert_close(filled[0], found.y, 1e-12)
    assert_close(filled[1], found.multipliers, 1e-12)
    if what == "sensitivity":
        assert_close(filled[2], found.columns, 1e-11)


def test_constraints_that_depend_on_each_other_have_the_least_multipliers_in_a_line_too():
    """Two pins at one place: each carries half of the load."""
    plain, q, qd = state("four_bar")
    (pin_,) = plain.loops
    mech = plain.replace(loops=[pin_, pin_.replace(name="again")])
    y, lam = np.empty(3), np.empty(4)
    u = np.array([1.0, 0.2, -0.3])
    assert closed_lines.prepared(mech, "own", "dynamics", "found")(q, qd, u, y, lam) == 0
    with without_lines():
        want = plain.hybrid_dynamics(q, qd, u)
    assert_close(y, want.y, 1e-11)
    assert_close(lam, np.tile(want.multipliers / 2.0, 2), 1e-11)


def test_where_a_line_has_no_answer_the_numbers_have_it():
    """A singular posture, an open one, a redundant drive: ranks stay right and errors say what they say."""
    mech = cs.library.four_bar(ground=0.8, lengths=(0.5, 0.8, 0.5))  # a parallelogram
    flat = np.array([0.0, 0.0, 0.0])
    y, lam = np.empty(3), np.empty(2)
    line = closed_lines.prepared(mech, "own", "dynamics", "found")
    assert line(flat, np.zeros(3), np.zeros(3), y, lam) != 0
    assert mech.mobility(flat).freedoms == 2
    assert mech.hybrid_evaluator()(flat, np.zeros(3), np.zeros(3)).shape == (3,)
    assert mech.hybrid_dynamics(flat, np.zeros(3), np.zeros(3)).rank == 1
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: misses closure"):
        mech.hybrid_evaluator()(flat + 0.1, np.zeros(3), np.zeros(3))
    with pytest.raises(cs.NonFinite):
        mech.hybrid_evaluator()(flat * np.nan, np.zeros(3), np.zeros(3))


@contextmanager
def without_lines():
    """Ask closed mechanisms by numbers within the block."""
    kept = closed_lines._found_line
    closed_lines._found_line = lambda *_: None
    try:
        yield
    finally:
        closed_lines._found_line = kept


def test_a_projection_in_machine_code_is_that_by_numbers():
    mech, q, qd = state("five_bar", 21)
    drifted = q + 1e-6 * np.array([1.0, -2.0, 0.5, 1.0])
    to_q, to_qd = np.empty(4), np.empty(4)
    close = closed_lines.prepared(mech, "forward", "shut", "found")
    assert close(drifted, qd, to_q, to_qd) == 0
    with without_lines():
        want = shut(mech.with_drive(active=[]), drifted, qd)
    assert_close(to_q, want[0], 1e-13)
    assert_close(to_qd, want[1], 1e-12)
    assert np.abs(mech.closure(to_q)).max() < 1e-10
    assert close(drifted + 0.1, qd, to_q, to_qd) != 0


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


@pytest.mark.parametrize(
    ("name", "start"),
    [("three_rrr", [-0.8, 1.6, -0.8, 1.3, 1.6, 3.4, 1.6]), ("two_arms", [2.0, -1.0, -1.0, 1.1, 1.0])],
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
