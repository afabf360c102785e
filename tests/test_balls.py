"""Balls and free bodies: rotation vectors from zero to a whole turn, and what others make of the same joints."""

import numpy as np
import pytest
from closeness import assert_close, central_difference, complex_step, tolerance
from random_mechanisms import random_inertia, random_mechanism, random_pose, random_state

import cstormpy as cs
from cstormpy import lie
from cstormpy.formulations import kim_joints
from cstormpy.mechanism.component_values import component_value, with_components


def tower(rng, active=(), joints=None):
    """Return a free body that carries a hinge, a ball and another ball, all off their links' frames."""
    points = rng.normal(size=(3, 3)) * 0.2
    joints = joints or [
        cs.Free(point=points[0]), cs.Revolute((1, 2, 3)), cs.Spherical(point=points[1]), cs.Spherical(point=points[2]),
    ]  # fmt: skip
    links, parent = [], None
    for k, joint in enumerate(joints):
        com, inertia = rng.normal(size=3) * 0.3, random_inertia(rng)
        links.append(cs.Link(f"link{k}", parent, joint, random_pose(rng), rng.uniform(0.5, 2), com, inertia))
        parent = f"link{k}"
    return cs.Mechanism(links, rng.normal(size=3) * 5, active=active)


def turned(q, mech, angle, rng):
    """Return coordinates with all rotation vectors of this length."""
    q = q.copy()
    for first in mech.ball_starts:
        q[first : first + 3] *= angle / np.linalg.norm(q[first : first + 3])
    return q


DRIVES = ((), ("link0",), ("link2",), ("link0", "link1", "link2", "link3"))


@pytest.mark.slow
@pytest.mark.parametrize("active", DRIVES, ids=lambda active: "+".join(active) or "none")
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, np.pi - 1e-6, np.pi, 4.0, 5.5])
def test_nothing_happens_between_zero_and_a_whole_turn(angle, active):
    """The chart has no seam at φ = 0, where closed forms divide by zero, nor at π, where φ is re-centred."""
    rng = np.random.default_rng(7)
    mech = tower(rng, active)
    q, qd, u = random_state(rng, mech)
    q = turned(q, mech, angle, rng)
    y = mech.hybrid_dynamics(q, qd, u).y
    assert_close(y, kim_joints.hybrid_dynamics(mech, q, qd, u), 1e-10)
    d = mech.hybrid_sensitivity(q, qd, u)
    scale = np.abs(d.dy_dq).max()
    difference = central_difference(lambda x: mech.hybrid_dynamics(x, qd, u).y, q, 1e-3)
    np.testing.assert_allclose(d.dy_dq, difference, rtol=0, atol=1e-7 * scale)
    if angle > 1e-3:  # where it is zero the root in the witness has no derivative
        exact = complex_step(lambda x: kim_joints.hybrid_dynamics(mech, x, qd, u), q)
        assert_close(d.dy_dq, exact, 1e-9)
    gradient = rng.normal(size=mech.n)
    _, gq, gqd, gu = mech.hybrid_vjp(q, qd, u, gradient)
    for found, matrix in ((gq, d.dy_dq), (gqd, d.dy_dqd), (gu, d.dy_du)):
        assert_close(found, gradient @ matrix, 1e-10)
    direction = rng.normal(size=(3, mech.n))
    dy = d.dy_dq @ direction[0] + d.dy_dqd @ direction[1] + d.dy_du @ direction[2]
    assert_close(mech.hybrid_jvp(q, qd, u, *direction)[1], dy, 1e-10)


@pytest.mark.parametrize("angle", [0.0, 1.0, 4.0])
def test_batches_evaluators_and_loops_say_the_same(angle):
    """Lines, lanes and the matrices of one sample after the other come of one source."""
    rng = np.random.default_rng(2)
    mech = tower(rng, ("link2",))
    q, qd, u = random_state(rng, mech, 19)
    q = np.stack([turned(one, mech, angle, rng) for one in q])
    y, d = mech.hybrid_dynamics(q, qd, u).y, mech.hybrid_sensitivity(q, qd, u)
    evaluate = mech.hybrid_evaluator()
    for k in range(len(q)):
        assert_close(evaluate(q[k], qd[k], u[k]), y[k], 1e-11)
        one = mech.hybrid_sensitivity(q[k], qd[k], u[k])
        for found, expected in ((one.dy_dq, d.dy_dq[k]), (one.dy_dqd, d.dy_dqd[k]), (one.dy_du, d.dy_du[k])):
            assert_close(found, expected, 1e-10)
    assert_close(mech.jacobian_derivative(q, 3)[4], mech.jacobian_derivative(q[4], 3), 1e-12)


def test_kinematics_and_energies_change_as_their_derivatives_say():
    rng = np.random.default_rng(3)
    mech = tower(rng)
    q, qd, _ = random_state(rng, mech)
    H = central_difference(lambda x: mech.jacobian(x, 3), q, 1e-3)
    assert_close(mech.jacobian_derivative(q, 3), H, 1e-8)
    assert_close(mech.jacobian_rate(q, qd, 3), H @ qd, 1e-8)
    i = mech.inertial(q, qd)
    for found, f, x in (
        (i.kinetic_by_q, lambda x: mech.energy(x, qd)[0], q),
        (i.kinetic_by_qd, lambda x: mech.energy(q, x)[0], qd),
        (i.potential_by_q, lambda x: mech.energy(x, qd)[1], q),
    ):
        assert_close(found, central_difference(f, x, 1e-3), 1e-8)
    assert_close(i.momentum_matrix @ qd, i.momentum, 1e-12)
    assert_close(0.5 * qd @ i.mass_matrix @ qd, i.kinetic, 1e-12)


def test_balls_and_free_bodies_are_pinocchios():
    """Pinocchio turns them by quaternions and moves them by twists of the body."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import in_body_axes

    rng = np.random.default_rng(11)
    kinds = {"free": pin.JointModelFreeFlyer, "spherical": pin.JointModelSpherical, "revolute": pin.JointModelRZ}
    mech = tower(rng, joints=[cs.Free(), cs.Spherical(), cs.Revolute((0, 0, 1)), cs.Spherical()])
    model, above = pin.Model(), 0
    model.gravity.linear = np.array(mech.gravity)
    for link in mech.links:
        above = model.addJoint(above, kinds[link.joint.kind](), pin.SE3(np.array(link.pose)), link.name)
        inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(above, inertia, pin.SE3.Identity())
    data = model.createData()
    for angle in (0.0, 0.7, np.pi, 5.0):
        q, qd, qdd = random_state(rng, mech)
        q, theirs = turned(q, mech, angle, rng), []
        for link in mech.links:
            own = q[mech.coordinates(link.joint_name)]
            theirs += [*own[:-3]] if any(link.joint.balls) else [*own]
            if any(link.joint.balls):
                theirs += [*pin.Quaternion(link.joint.motion(own)[:3, :3].copy()).coeffs()]
        x = np.array(theirs)
        v, a, E, bias = in_body_axes(mech, q, qd, qdd)
        assert_close(mech.inverse_dynamics(q, qd, qdd), E.T @ pin.rnea(model, data, x, v, a), 1e-10)
        tau = rng.normal(size=mech.n)
        expected = np.linalg.solve(E, pin.aba(model, data, x, v, np.linalg.solve(E.T, tau)) - bias)
        assert_close(mech.forward_dynamics(q, qd, tau), expected, tolerance(mech, q, drive="forward"))
        M = np.triu(pin.crba(model, data, x))
        assert_close(mech.mass_matrix(q), E.T @ (M + np.triu(M, 1).T) @ E, 1e-10)
        J = pin.computeJointJacobian(model, data, x, above)
        assert_close(mech.jacobian(q, "link3"), np.roll(J, 3, axis=0) @ E, 1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_a_ball_and_a_gimbal_of_three_hinges_move_alike(seed):
    """Wherever the gimbal is regular: the same pose, twist and torque make the same acceleration."""
    rng = np.random.default_rng(seed)
    gimbal = cs.Composite([cs.Revolute((0, 0, 1)), cs.Revolute((0, 1, 0)), cs.Revolute((1, 0, 0))], name="neck")
    ball = cs.Spherical(name="neck")
    body = random_mechanism(rng, 2, ("revolute",), terms=False, shuffled=False).links
    by_gimbal, by_ball = (
        cs.Mechanism([body[0].replace(joint=joint), body[1].replace(parent="link0")]) for joint in (gimbal, ball)
    )
    e, ed, edd, (q, qd, qdd) = *rng.uniform(-1, 1, (3, 3)), rng.normal(size=(3, 1))
    phi = lie.log_so3(gimbal.motion(e)[:3, :3])
    S, G = gimbal.subspace(e)[:3], ball.subspace(phi)[:3]
    phid = np.linalg.solve(G, S @ ed)
    drift = gimbal.subspace_rate(e, ed)[:3] @ ed - ball.subspace_rate(phi, phid)[:3] @ phid
    motion = np.append(phi, q), np.append(phid, qd), np.append(np.linalg.solve(G, S @ edd + drift), qdd)
    tau = by_gimbal.inverse_dynamics(np.append(e, q), np.append(ed, qd), np.append(edd, qdd))
    expected = np.append(G.T @ np.linalg.solve(S.T, tau[:3]), tau[3])
    np.testing.assert_allclose(by_ball.inverse_dynamics(*motion), expected, atol=1e-11)
    for active in ([], ["neck"], ["link1"]):
        driven = by_ball.with_drive(active=active)
        u, y = (np.where(driven.active_mask, *pair) for pair in ((motion[2], expected), (expected, motion[2])))
        np.testing.assert_allclose(driven.hybrid_dynamics(*motion[:2], u).y, y, atol=1e-9)


def test_recentring_keeps_pose_and_twist():
    """Rotation vectors whose lengths differ by whole turns along one axis turn the link alike."""
    rng = np.random.default_rng(5)
    for joint in (cs.Spherical(), cs.Free(point=(0.1, 0.2, 0.3))):
        for angle in (3.2, 5.0, 6.2):
            q, qd = rng.normal(size=(2, joint.dof))
            q[-3:] *= angle / np.linalg.norm(q[-3:])
            p, pd = joint.recentred(q, qd)
            assert np.linalg.norm(p[-3:]) <= np.pi
            np.testing.assert_allclose(joint.motion(p), joint.motion(q), atol=1e-14)
            np.testing.assert_allclose(joint.subspace(p) @ pd, joint.subspace(q) @ qd, atol=1e-12)
    same, rate = joint.recentred(p, pd)
    np.testing.assert_array_equal(same, p)
    np.testing.assert_array_equal(rate, pd)


@pytest.mark.parametrize(
    "ask",
    [
        lambda mech, q: mech.hybrid_dynamics(q, q, q),
        lambda mech, q: mech.hybrid_evaluator()(q, q, q),
        lambda mech, q: mech.hybrid_sensitivity(q, q, q),
        lambda mech, q: mech.linearize(q),
        lambda mech, q: mech.forward_kinematics(q),
        lambda mech, q: mech.energy(q, q),
        lambda mech, q: mech.hybrid_dynamics(np.stack([0 * q, q]), np.zeros((2, 3)), np.zeros((2, 3))),
    ],
)
def test_a_whole_turn_is_refused_by_the_joints_name(ask):
    mech = cs.Mechanism([cs.Link("top", None, cs.Spherical(name="tip"), mass=1.0, inertia=np.eye(3))])
    with pytest.raises(cs.InvalidValue, match=r"joint 'tip': its rotation vector is 6\.5 rad long"):
        ask(mech, np.array([0.0, 0.0, 6.5]))


# Runs -----------------------------------------------------------------------------------------------------

ENGINES = ("interpreted", "compiled")
LONG = [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"]


def quiet(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, graphics=False, progress=False)


def spinning_body():
    """Return a body in space whose mass centre is off its frame, with three different principal inertias."""
    joint = cs.Free(name="body")
    body = cs.Link("body", None, joint, mass=2.0, com=(0.1, 0.2, 0.0), inertia=np.diag([1.0, 2.0, 3.0]))
    return cs.Mechanism([body], gravity=(0, 0, 0), actuated=[])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tumbling_body_keeps_momentum_and_energy(engine):
    """It turns over about its intermediate axis, through re-centrings that leave pose and twist as they are."""
    mech, sim = spinning_body(), quiet(engine)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(mech, q0=[0, 0, 0, 0.1, 0.2, 0.3], qd0=[0.1, 0, 0, 1e-3, 3, 1e-3], name="plant")
    out = sim.run(bd, T=100, solver="DOP853", rtol=1e-12, atol=1e-12)
    q, qd = out.x[:, :6], out.x[:, 6:]
    found = mech.inertial(q, qd)
    np.testing.assert_allclose(found.kinetic, found.kinetic[0], rtol=1e-9)
    np.testing.assert_allclose(found.momentum, found.momentum[[0]] * np.ones((len(q), 1)), atol=1e-9)
    assert len(out.events) > 20
    assert {name for _, name in out.events} == {"plant"}
    assert np.linalg.norm(q[:, 3:], axis=1).max() < np.pi + 1e-9
    X = mech.forward_kinematics(q)[:, 0, :3, :3]
    assert X[:, 1, 1].min() < -0.9  # it has turned over


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_begins_with_short_rotation_vectors(engine):
    """A vector beyond π at the start would never cross it, and run into the whole turn."""
    mech, sim = spinning_body(), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0, 0, 0, 0, 0, 6.0], qd0=[0, 0, 0, 0, 0, 1.0], name="plant")
    np.testing.assert_allclose(plant.q0[3:], [0, 0, 6.0])
    out = sim.run(bd, T=4.0, solver="DOP853", rtol=1e-10)
    np.testing.assert_allclose(out.x[0, 5], 6.0 - 2 * np.pi)
    turned = mech.forward_kinematics(out.x[-1, :6])[0, :3, :3]
    np.testing.assert_allclose(turned, lie.exp_so3([0, 0, 10.0]), atol=1e-6)


def two_balls():
    """Return a pendulum of two balls, the upper one driven along a motion."""
    links = [
        cs.Link("arm", None, cs.Spherical(name="shoulder"), mass=1.0, com=(0, -0.5, 0), inertia=0.1 * np.eye(3)),
        cs.Link(
            "fore", "arm", cs.Spherical(name="elbow"), lie.make_pose(np.eye(3), [0, -1, 0]), 0.5, (0.1, -0.4, 0),
            np.diag([0.1, 0.05, 0.12]),
        ),
    ]  # fmt: skip
    return cs.Mechanism(links, active=["shoulder"])


def test_blocks_take_balls_in_both_engines():
    """What the blocks around a plant say is what the mechanism says of its state, across re-centrings."""
    mech, runs = two_balls(), []
    for engine in ENGINES:
        sim = quiet(engine)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 0.3, 1, 0, 2], qd0=[1, 0, 2, 4, 1, 3], name="plant")
        drive = bd.CONSTANT([0.5, 0.2, 0.1], name="drive")
        load = bd.CONSTANT([0.1, 0.0, -0.1], name="load")
        effort = bd.JOINTEFFORT(mech, name="effort")
        energy, pose = bd.ENERGY(mech, name="energy"), bd.KINEMATICS(mech, "fore", name="pose")
        mass, hanging = bd.MASSMATRIX(mech, name="mass"), bd.GRAVITYLOAD(mech, name="hanging")
        slopes = bd.SENSITIVITY(mech, name="slopes")
        bd.connect(load, plant.tau, effort.tau, slopes.tau)
        bd.connect(drive, plant.acc, effort.acc, slopes.acc)
        for block in (effort, energy, pose, slopes):
            bd.connect(plant.q, block.q)
            bd.connect(plant.qd, block.qd)
        bd.connect(plant.q, mass, hanging)
        watch = [effort[0], effort[1], energy[2], pose[0], mass, hanging, slopes[0]]
        runs.append(sim.run(bd, T=2.0, watch=watch, solver="DOP853", rtol=1e-10, atol=1e-10))
    one, other = runs
    assert len(one.events) > 0
    np.testing.assert_allclose(one.x[-1], other.x[-1], atol=1e-7)
    for run in runs:
        q, qd = run.x[-1, :6], run.x[-1, 6:]
        u = np.array([0.5, 0.2, 0.1, 0.1, 0.0, -0.1])
        r = mech.hybrid_dynamics(q, qd, u)
        expected = [
            r.qdd, r.tau, sum(mech.energy(q, qd)), mech.forward_kinematics(q)[1], mech.mass_matrix(q),
            mech.gravity_load(q), mech.hybrid_sensitivity(q, qd, u).dy_dq,
        ]  # fmt: skip
        for found, want in zip(run.data[".ywatch"], expected, strict=True):
            np.testing.assert_allclose(np.ravel(np.asarray(found)[-1]), np.ravel(want), atol=1e-9, rtol=1e-9)


def test_linear_models_are_those_of_the_mechanism():
    mech, sim = two_balls().with_drive(active=[]), quiet()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 0.3, 1, 0, 2], qd0=[1, 0, 2, 4, 1, 3], name="plant")
    bd.connect(bd.CONSTANT(np.zeros(6), name="tau"), plant)
    A = mech.linearize(plant.q0, plant.qd0).A
    np.testing.assert_allclose(sim.linearize(bd, inputs=["tau"], outputs=["plant.q"]).A, A, atol=1e-8)


@pytest.mark.parametrize("engine", LONG)
def test_a_gradient_goes_through_recentrings(engine):
    """Where the plant takes another vector, the derivative is carried into the new chart; once it was refused."""
    mech, sim = spinning_body(), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, qd0=[0, 0, 0, 0.1, 3, 0.2], name="plant")
    found = sim.gradient(bd, lambda out: out.x[-1], ["plant.qd0"], T=1.2, solver="DOP853", rtol=1e-9, atol=1e-9)
    assert [name for _, name in found.events] == ["plant"]

    def end(rates):
        plant.qd0 = rates
        return quiet().run(bd, T=1.2, solver="DOP853", rtol=1e-12, atol=1e-12).x[-1]

    expected = central_difference(end, np.array([0, 0, 0, 0.1, 3, 0.2]), 1e-3)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("engine", LONG)
def test_a_variation_is_carried_through_recentrings(engine):
    """Φ at the end is how the end, in its own chart, follows the start; it was refused for balls."""
    mech, sim = spinning_body(), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, qd0=[0, 0, 0, 0.1, 3, 0.2], name="plant")
    variation = bd.VARIATION(mech, directions=["body[3].qd", "body[4].qd", "body[5].qd"], name="variation")
    bd.connect(plant[0:2], variation[0:2])
    out = sim.run(bd, T=2.0, watch=["variation"], solver="DOP853", rtol=1e-8, atol=1e-8)
    assert sorted(name for _, name in out.events) == ["plant", "variation"]

    def end(rates):
        plant.qd0 = [0, 0, 0, *rates]
        return quiet().run(bd, T=2.0, solver="DOP853", rtol=1e-11, atol=1e-11).x[-1, :12]

    expected = central_difference(end, np.array([0.1, 3, 0.2]), 1e-3)
    np.testing.assert_allclose(out.signal("variation.dx_dx0")[-1].reshape(12, 3), expected, atol=2e-6)


@pytest.mark.parametrize("angle", [0.5, 3.0, 4.0])
def test_a_ball_is_trimmed_and_linearised_where_it_hangs(angle):
    """A pendulum on a ball, held by its motors: at rest there, and its linear model is that of differences."""
    mech = two_balls().with_drive(active=[])
    rng = np.random.default_rng(3)
    q = turned(rng.normal(size=6), mech, angle, rng)
    found = mech.trim(q)
    np.testing.assert_allclose(mech.forward_dynamics(found.q, np.zeros(6), found.tau), 0.0, atol=1e-8)
    model = mech.linearize(found.q, tau=found.tau)

    def rate(x):
        return np.concatenate([x[6:], mech.forward_dynamics(x[:6], x[6:], found.tau)])

    expected = central_difference(rate, np.concatenate([found.q, np.zeros(6)]), 1e-3)
    assert_close(model.A, expected, 1e-7)
    sim = quiet()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, name="plant")
    tau = bd.CONSTANT(np.zeros(6), name="tau")
    bd.connect(tau, plant)
    point = sim.trim(bd, np.concatenate([q, np.zeros(6)]), inputs=["tau"])
    given = np.asarray(point.u).ravel()
    np.testing.assert_allclose(mech.forward_dynamics(point.x[:6], point.x[6:], given), 0.0, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_ikine_finds_the_vectors_of_balls(engine):
    """The pose that a plant's links take is given back by coordinates of the same pose."""
    mech, sim = two_balls().with_drive(active=[]), quiet(engine)
    bd = sim.blockdiagram()
    q = np.array([0.4, -0.3, 0.2, 0.5, 0.1, 0.6])
    pose = bd.KINEMATICS(mech, "fore", name="pose")
    bd.connect(bd.CONSTANT(q), pose.q)
    bd.connect(bd.CONSTANT(np.zeros(6)), pose.qd)
    back = bd.IKINE(mech, "fore", q0=0.8 * q, name="back")
    again = bd.KINEMATICS(mech, "fore", name="again")
    bd.connect(pose.pose, back)
    bd.connect(back.q, again.q)
    bd.connect(bd.CONSTANT(np.zeros(6)), again.qd)
    out = sim.run(bd, T=0.1, dt=0.1, watch=["pose", "back", "again"])
    assert out.signal("back.reached")[-1] == 1.0
    np.testing.assert_allclose(out.signal("again.pose")[-1], out.signal("pose.pose")[-1], atol=1e-8)


def test_inverse_kinematics_through_balls():
    rng = np.random.default_rng(0)
    for joints in (None, [cs.Spherical(), cs.Revolute((0, 0, 1)), cs.Spherical()], [cs.Free()]):
        mech = tower(rng, joints=joints)
        targets = mech.forward_kinematics(rng.uniform(-1.8, 1.8, (50, mech.n)))[:, -1]
        found = mech.inverse_kinematics(len(mech.links) - 1, targets)
        assert found.reached.all()
        np.testing.assert_allclose(mech.forward_kinematics(found.q)[:, -1], targets, atol=1e-8)


def limited_arm(largest=(0.8, 1.1)):
    """Return an arm of two balls whose angles are limited, with a hinge between them."""
    joints = [cs.Spherical(max_angle=largest[0]), cs.Revolute((0, 0, 1), limits=(-1, 1.5)),
              cs.Spherical(max_angle=largest[1])]  # fmt: skip
    return tower(np.random.default_rng(3), joints=joints)


def angles_of(mech, q):
    return np.stack([np.linalg.norm(q[..., k : k + 3], axis=-1) for k, _ in mech.largest_angles], axis=-1)


def test_inverse_kinematics_keeps_balls_within_their_largest_angles():
    """Poses that can be taken within them are found; once answers lay outside, as if there were no such limit."""
    mech, rng = limited_arm(), np.random.default_rng(1)
    within = rng.normal(size=(60, mech.n))
    for first, largest in mech.largest_angles:
        own = within[:, first : first + 3]
        own *= largest * rng.random((60, 1)) / np.linalg.norm(own, axis=1, keepdims=True)
    within[:, 3] = rng.uniform(-1, 1.5, 60)
    targets = mech.forward_kinematics(within)[:, -1]
    found = mech.inverse_kinematics("link2", targets, q0=rng.normal(size=7))
    assert found.reached.mean() >= 0.98
    assert (angles_of(mech, found.q) <= np.array([0.8, 1.1]) * (1 + 1e-12)).all()
    free = mech.inverse_kinematics("link2", targets, q0=rng.normal(size=7), limits=False)
    assert (angles_of(mech, free.q) > np.array([0.8, 1.1])).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_nearest_pose_of_a_limited_ball_is_at_its_largest_angle(engine):
    """A target that is turned by 1.5 rad, where 0.6 can be done: the same axis, 0.9 rad away. IKINE finds it too."""
    mech, axis = limited_pendulum(), np.array([1.0, -2.0, 0.5]) / np.sqrt(5.25)
    target = lie.make_pose(lie.exp_so3(1.5 * axis), np.zeros(3))
    found = mech.inverse_kinematics("leg", target, q0=[0.0, 0.3, 0.1], mask="orientation")
    assert not found.reached
    np.testing.assert_allclose(found.q, 0.6 * axis, atol=1e-6)
    np.testing.assert_allclose(found.error, [0.9, 0.0], atol=1e-9)
    assert found.at_limit == ("hip",)
    assert "at a limit: hip" in found.message
    sim = quiet(engine)
    bd = sim.blockdiagram()
    block = bd.IKINE(mech, "leg", mask="orientation", name="back")
    bd.connect(bd.CONSTANT(target), block)
    out = sim.run(bd, T=0.1, dt=0.1, watch=["back"])
    assert out.signal("back.reached")[-1] == 0.0
    np.testing.assert_allclose(out.signal("back.q")[-1], 0.6 * axis, atol=1e-6)


FLYING = """<robot name="drone"><link name="hull"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
<link name="arm"><inertial><origin xyz="0 0 0.3"/><mass value="0.5"/>
<inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="{kind}"><parent link="hull"/><child link="arm"/>
<origin xyz="0.2 0.1 0" rpy="0.3 0.2 0.1"/><axis xyz="0 1 0"/></joint></robot>"""


def test_a_robot_on_a_free_base_is_pinocchios():
    """`floating=True` puts the root link on a free joint, which Pinocchio calls a free flyer."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import in_body_axes

    text = FLYING.format(kind="prismatic").replace(
        "</joint>", '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    )
    mech = cs.Mechanism.from_urdf(text, floating=True)
    assert mech.names == (*(f"hull[{k}]" for k in range(6)), "shoulder")
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data, rng = model.createData(), np.random.default_rng(4)
    q, qd, qdd = random_state(rng, mech)
    x = np.array([*q[:3], *pin.Quaternion(mech.joint("hull").motion(q[:6])[:3, :3].copy()).coeffs(), q[6]])
    v, a, E, _ = in_body_axes(mech, q, qd, qdd)
    assert_close(mech.inverse_dynamics(q, qd, qdd), E.T @ pin.rnea(model, data, x, v, a), 1e-10)


def test_floating_joints_inside_a_tree():
    mech = cs.Mechanism.from_urdf(FLYING.format(kind="floating"))
    assert mech.joint("shoulder") == cs.Free(name="shoulder")
    assert cs.Mechanism.from_urdf(mech.to_urdf()).joint("shoulder") == mech.joint("shoulder")


def test_loads_and_a_moving_base_act_through_balls():
    """A dead load, which does not turn with its link, and the base's motion, with their shares in all derivatives."""
    rng = np.random.default_rng(8)
    mech = tower(rng, ("link0",), [cs.Spherical(point=(0.1, 0.2, 0.3)), cs.Revolute((1, 2, 0)), cs.Spherical()])
    q, qd, u = random_state(rng, mech)
    motion = rng.uniform(-2, 2, 12)
    loads = [cs.Load("link2", force=(1, 2, 3), point=(0.1, 0.2, 0.3))]

    def y(q, motion):
        return mech.hybrid_dynamics(q, qd, u, wrench=loads, base=(motion[:6], motion[6:])).y

    d = mech.hybrid_sensitivity(q, qd, u, wrench=loads, base=(motion[:6], motion[6:]), to_base=True)
    assert_close(d.dy_dq, central_difference(lambda x: y(x, motion), q, 1e-3), 1e-8)
    assert_close(d.dy_dbase, central_difference(lambda x: y(q, x), motion, 1e-3), 1e-8)


# The torque that a ball takes itself ----------------------------------------------------------------------


def worn_joint(rng, kind=cs.Spherical, **options):
    """Return a ball, or a free joint, with damping, friction, rotors and springs along and about each axis."""
    size = 3 if kind is cs.Spherical else 6
    return kind(
        point=rng.normal(size=3) * 0.2,
        damping=rng.uniform(0.1, 0.5, size),
        friction=rng.uniform(0.1, 0.5, size),
        friction_velocity=rng.uniform(0.2, 1.0, size),
        armature=rng.uniform(0.1, 0.3, size),
        stiffness=rng.uniform(0.5, 2.0, size),
        rest=rng.normal(size=size) * 0.7,
        **options,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damped_ball_slows_down_by_its_angular_velocity(engine):
    """The rate of a rotation vector is no angular velocity: damping of it would bend the axis of a turning sphere.

    ω falls off as exp(-d t / (I + a)), and the sphere turns about it as it was.
    """
    joint = cs.Spherical(damping=0.3, armature=0.2, name="ball")
    mech = cs.Mechanism([cs.Link("sphere", None, joint, mass=1.0, inertia=0.4 * np.eye(3))], actuated=[])
    phi, omega = np.array([0.5, -1.0, 0.4]), np.array([1.0, 2.0, -0.5])
    sim = quiet(engine)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(mech, q0=phi, qd0=np.linalg.solve(joint.subspace(phi)[:3], omega), name="plant")
    out = sim.run(bd, T=2.0, solver="DOP853", rtol=1e-10, atol=1e-10)
    rate = joint.subspace(out.x[-1, :3])[:3] @ out.x[-1, 3:]
    np.testing.assert_allclose(rate, omega * np.exp(-2.0 * 0.3 / 0.6), atol=1e-8)
    turned = lie.exp_so3(phi) @ lie.exp_so3(omega * (0.6 / 0.3) * (1.0 - np.exp(-2.0 * 0.3 / 0.6)))
    np.testing.assert_allclose(joint.motion(out.x[-1, :3])[:3, :3], turned, atol=1e-8)


def test_a_rotor_on_a_ball_is_a_body_that_turns_with_the_link():
    """Where the parent rests, three rotors about the axes of the link are as much more inertia about the centre."""
    rng = np.random.default_rng(4)
    rotors, com = np.array([0.1, 0.3, 0.2]), rng.normal(size=3)
    bare = cs.Link("top", None, cs.Spherical(), random_pose(rng), 2.0, com, random_inertia(rng))
    worn = cs.Mechanism([bare.replace(joint=cs.Spherical(armature=rotors))])
    heavy = cs.Mechanism([bare.replace(inertia=bare.inertia + np.diag(rotors))])
    q, qd, tau = random_state(rng, worn, 9)
    assert_close(worn.forward_dynamics(q, qd, tau), heavy.forward_dynamics(q, qd, tau), 1e-12)
    one, other = worn.inertial(q, qd), heavy.inertial(q, qd)
    for name in ("mass_matrix", "kinetic", "kinetic_by_q", "kinetic_by_qd"):
        assert_close(getattr(one, name), getattr(other, name), 1e-12)
    assert_close(worn.energy(q[0], qd[0]), heavy.energy(q[0], qd[0]), 1e-12)
    d, e = worn.hybrid_sensitivity(q, qd, tau), heavy.hybrid_sensitivity(q, qd, tau)
    for name in ("dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(d, name), getattr(e, name), 1e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_energy_that_worn_balls_lose_is_the_integral_of_their_power(engine):
    """Kinetic and potential energy, rotors included, fall by the work ∫ ω · (d ω + f tanh(ω / v)) dt."""
    rng = np.random.default_rng(8)
    body = {"mass": 1.0, "com": (0.1, -0.4, 0.2), "inertia": np.diag([0.1, 0.15, 0.12])}
    links = [
        cs.Link("ship", None, worn_joint(rng, cs.Free), **body),
        cs.Link("mast", "ship", worn_joint(rng), random_pose(rng), **body),
    ]
    mech, sim = cs.Mechanism(links, actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    q0, qd0 = 0.3 * rng.normal(size=(2, 9))
    bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    out = sim.run(bd, T=0.5, dt=0.005, solver="DOP853", rtol=1e-10, atol=1e-12)
    q, qd = out.x[:, :9], out.x[:, 9:]
    power = np.zeros(len(q))
    for link in mech.links:
        at = mech.coordinates(link.joint_name)
        rates = qd[:, at].copy()
        rates[:, -3:] = np.einsum("sij,sj->si", link.joint.subspace(q[:, at])[:, :3], qd[:, at])
        friction = link.joint.friction * np.tanh(rates / link.joint.friction_velocity)
        power += (rates * (link.joint.damping * rates + friction)).sum(axis=1)
    lost = -np.diff(np.sum(mech.energy(q, qd), axis=0)[[0, -1]])[0]
    weights = np.tile([2.0, 4.0], len(q) // 2)  # Simpson's rule
    work = (0.005 / 3.0) * (weights @ power[:-1] - power[0] + power[-1])
    assert lost > 0.1
    np.testing.assert_allclose(lost, work, rtol=1e-6)


def test_numbers_of_a_ball_are_parameters_by_name():
    rng = np.random.default_rng(6)
    mech = tower(rng, ("link2",), [worn_joint(rng, cs.Free), cs.Revolute((1, 2, 3)), worn_joint(rng), worn_joint(rng)])
    q, qd, u = random_state(rng, mech)
    fields = ("armature", "damping", "friction", "friction_velocity", "stiffness", "rest", "point")
    d = mech.parameter_sensitivity(q, qd, u, [f"{joint}.{field}" for joint in ("link0", "link2") for field in fields])
    assert d["link2.damping"].shape == (13, 3)
    for k, name in enumerate(d.components):
        value = component_value(mech, name)
        changed = lambda x, name=name: with_components(mech, {name: x[0]}).hybrid_dynamics(q, qd, u).y  # noqa: E731
        difference = central_difference(changed, np.array([value]), 1e-3)[:, 0]
        np.testing.assert_allclose(d.dy_dp[:, k], difference, atol=1e-8 * max(1.0, np.abs(difference).max()))
    same = mech.with_parameters({"link2.damping": 0.7, "link3.armature": (0.1, 0.2, 0.3)})
    assert [freedom.damping for freedom in same.freedoms[7:10]] == [0.7] * 3
    np.testing.assert_array_equal(same.joint("link2").rest, mech.joint("link2").rest)
    assert cs.Mechanism.from_dict(same.to_dict()) == same


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cs.Spherical(damping=-1.0, name="hip"), r"joint 'hip\[0\]': damping: must not be negative"),
        (lambda: cs.Free(armature=(1, 2, 3), name="trunk"), r"joint 'trunk': armature: expected shape \(6,\)"),
        (lambda: cs.Spherical(rest=(0, 5, 5), name="hip"), r"joint 'hip': rest: its rotation vector is 7.071 rad long"),
        (lambda: cs.Spherical(max_angle=3.2, name="hip"), r"joint 'hip': max_angle: must be at most half a turn"),
        (lambda: cs.Spherical(max_angle=0.0, name="hip"), r"joint 'hip': max_angle: expected a positive number, got 0"),
    ],
)
def test_numbers_that_no_ball_has_are_refused_by_name(make, words):
    with pytest.raises(cs.CstormError, match=words):
        make()


# Its spring -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 2e-5, 1.0, 3.0, 5.0])
def test_a_spring_pulls_along_the_shortest_turn_from_rest(angle):
    """With one constant its moment is k ψ in the axes of the link: R = R_rest exp(ψ), at ψ = 0 too."""
    rng = np.random.default_rng(2)
    rest, axis = np.array([0.3, -1.2, 0.8]), rng.normal(size=3)
    psi = axis * (angle if angle < np.pi else angle - 2 * np.pi) / np.linalg.norm(axis)
    joint = cs.Spherical(stiffness=3.0, rest=rest, name="hip")
    mech = cs.Mechanism([cs.Link("leg", None, joint, mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))], gravity=(0, 0, 0))
    phi = lie.log_so3(lie.exp_so3(rest) @ lie.exp_so3(psi))
    np.testing.assert_allclose(joint.stretch(phi), psi, atol=1e-14)
    back = phi - 2 * np.pi * phi / np.linalg.norm(phi)  # the same rotation
    for q in (phi, back):
        tau = np.linalg.solve(joint.subspace(q)[:3].T, mech.inverse_dynamics(q, np.zeros(3), np.zeros(3)))
        np.testing.assert_allclose(tau, 3.0 * psi, atol=1e-13)
        np.testing.assert_allclose(mech.energy(q, np.zeros(3)), [0.0, 1.5 * psi @ psi], atol=1e-14)


def springy(rng, active=()):
    """Return a worn free body that carries a hinge and two worn balls, the last without wear."""
    last = cs.Spherical(stiffness=4.0, name="link3")
    joints = [worn_joint(rng, cs.Free), cs.Revolute((1, 2, 3), stiffness=0.4), worn_joint(rng), last]
    return tower(rng, active, joints)


@pytest.mark.parametrize("active", [("link2",), pytest.param((), marks=pytest.mark.slow)], ids=["link2", "none"])
@pytest.mark.parametrize("angle", [0.0, 1e-4, 3.0, 5.0])
def test_springs_have_their_share_in_all_derivatives(angle, active):
    rng = np.random.default_rng(7)
    mech = springy(rng, active)
    q, qd, u = random_state(rng, mech)
    q = turned(q, mech, angle, rng)
    assert_close(mech.hybrid_dynamics(q, qd, u).y, kim_joints.hybrid_dynamics(mech, q, qd, u), 1e-10)
    d = mech.hybrid_sensitivity(q, qd, u)
    difference = central_difference(lambda x: mech.hybrid_dynamics(x, qd, u).y, q, 1e-3)
    np.testing.assert_allclose(d.dy_dq, difference, rtol=0, atol=1e-7 * np.abs(d.dy_dq).max())
    if angle > 1e-3:
        assert_close(d.dy_dq, complex_step(lambda x: kim_joints.hybrid_dynamics(mech, x, qd, u), q), 1e-9)
    gradient, direction = rng.normal(size=(2, mech.n))
    assert_close(mech.hybrid_vjp(q, qd, u, gradient)[1], gradient @ d.dy_dq, 1e-10)
    assert_close(mech.hybrid_jvp(q, qd, u, direction, 0 * qd, 0 * u)[1], d.dy_dq @ direction, 1e-10)
    samples = [np.tile(x, (9, 1)) for x in (q, qd, u)]
    assert_close(mech.hybrid_dynamics(*samples).y[4], mech.hybrid_dynamics(q, qd, u).y, 1e-11)
    assert_close(mech.hybrid_sensitivity(*samples).dy_dq[4], d.dy_dq, 1e-10)
    potential = central_difference(lambda x: mech.energy(x, qd)[1], q, 1e-3)
    assert_close(mech.inertial(q).potential_by_q, potential, 1e-8)
    assert_close(mech.inertial(samples[0]).potential_by_q[4], mech.inertial(q).potential_by_q, 1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_body_that_swings_on_springs_keeps_its_energy(engine):
    """Kinetic and potential energy together, through turns beyond π of φ, where the spring is half a turn from rest."""
    joint = cs.Spherical(stiffness=(1.0, 1.5, 2.0), rest=(0.0, 0.0, 2.5), name="ball")
    body = cs.Link("body", None, joint, mass=1.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.2, 0.4]))
    mech, sim = cs.Mechanism([body], actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 2.0], qd0=[0.2, 0.1, 3.0], name="plant")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], energy[0:2])
    out = sim.run(bd, T=5.0, watch=["energy"], solver="DOP853", rtol=1e-10, atol=1e-11)
    total = out.signal("energy.total").ravel()
    assert out.events
    assert np.ptp(out.signal("energy.potential")) > 1.0
    np.testing.assert_allclose(total, total[0], atol=1e-7)
    np.testing.assert_allclose(np.sum(mech.energy(out.x[:, :3], out.x[:, 3:]), axis=0), total, atol=1e-10)


@pytest.mark.parametrize("engine", LONG)
def test_the_end_of_a_run_follows_the_numbers_of_a_spring(engine):
    joint = cs.Spherical(stiffness=3.0, rest=(0.3, 0.0, -0.4), name="ball")
    body = cs.Link("body", None, joint, mass=1.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.2, 0.4]))
    mech, sim = cs.Mechanism([body], actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 0.3], name="plant")
    names = ["plant.ball.stiffness", "plant.ball.rest"]
    found = sim.gradient(bd, lambda out: out.x[-1], names, T=1.0, solver="DOP853", rtol=1e-10, atol=1e-10)

    def end(numbers):
        plant.mech = mech.with_parameters({"ball.stiffness": numbers[:3], "ball.rest": numbers[3:]})
        return quiet().run(bd, T=1.0, solver="DOP853", rtol=1e-12, atol=1e-12).x[-1]

    expected = central_difference(end, np.array([3.0, 3.0, 3.0, 0.3, 0.0, -0.4]), 1e-3)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-7 * np.abs(expected).max())


# Its largest angle ----------------------------------------------------------------------------------------


def limited_pendulum():
    """Return a pendulum on a ball that may turn by 0.6 rad, hanging down where it has not turned."""
    joint = cs.Spherical(name="hip", max_angle=0.6)
    link = cs.Link("leg", None, joint, mass=1.0, com=(0, -0.5, 0), inertia=0.1 * np.eye(3))
    return cs.Mechanism([link])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_holds_a_ball_at_its_largest_angle(engine):
    """It pushes along the rotation vector, wherever that points; without it the run says how far the ball went."""
    mech, found = limited_pendulum(), []
    for stops in (False, {"stiffness": 1e4, "damping": 0.0}):
        sim = quiet(engine)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, qd0=[4.0, 0.0, -3.0], stops=stops, name="plant")
        bd.connect(bd.CONSTANT(np.zeros(3)), plant.tau)
        found.append(sim.run(bd, T=0.2, dt=0.01, solver="DOP853", rtol=1e-8, atol=1e-9))
    free, stopped = found
    (left,) = free.left_limits
    assert (left.joint, left.limits) == ("hip", (0.0, 0.6))
    assert left.farthest > 0.7
    angle = np.linalg.norm(stopped.x[:, :3], axis=1)
    assert 0.6 < angle.max() < 0.66  # its spring takes all the energy there is
    assert not stopped.left_limits
    outside = angle[:, None] > 0.6
    energy = np.sum(mech.energy(stopped.x[:, :3], stopped.x[:, 3:]), axis=0)
    stored = 0.5e4 * np.where(outside[:, 0], angle - 0.6, 0.0) ** 2
    np.testing.assert_allclose(energy + stored, energy[0], atol=1e-5)


def test_an_optimal_motion_keeps_a_ball_within_its_largest_angle():
    """It sets out outwards; left free it swings farther than the joint allows."""
    from cstormpy.optimal import Effort, Problem

    mech = limited_pendulum().with_parameters({"hip.max_angle": 0.55})
    options = {"duration": 1.0, "objective": Effort(), "points": 7, "samples": 21}
    side = {"start": ((0.4, 0, 0), (2.0, 0, 0)), "end": {"hip": (0, 0, 0.4)}}
    free, kept = (Problem(mech, **side, **options, limits=limits).solve() for limits in (None, "mechanism"))
    farthest = [np.linalg.norm(found.at(np.linspace(0, 1, 99)).q, axis=1).max() for found in (free, kept)]
    assert free.feasible
    assert kept.feasible
    assert farthest[0] > 0.6
    assert farthest[1] < 0.5505
    assert kept.cost > free.cost
    with pytest.raises(cs.InvalidValue, match=r"end: joint 'hip': is turned by 0\.7 rad, beyond its max_angle"):
        Problem(mech, start={"hip": (0, 0, 0)}, end={"hip": (0, 0.7, 0)}, **options)
