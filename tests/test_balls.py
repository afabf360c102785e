"""Balls and free bodies: rotation vectors from zero to a whole turn, and what others make of the same joints."""

import numpy as np
import pytest
from ball_towers import tower, turned
from closeness import assert_close, central_difference, complex_step, tolerance
from random_mechanisms import random_mechanism, random_state

import cstormpy as cs
from cstormpy import lie
from cstormpy.formulations import kim_joints

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


def test_nothing_drives_a_free_base_unless_it_is_said(caplog):
    """A robot on its feet had motors at its trunk: a plant took 14 torques of a quadruped with 8 motors."""
    text = FLYING.format(kind="continuous")
    mech = cs.Mechanism.from_urdf(text, floating=True)
    assert mech.actuated == ("shoulder",)
    assert cs.Mechanism.from_urdf(FLYING.format(kind="floating")).actuated == ()
    led = cs.Mechanism.from_urdf(text, floating=True, active=["hull"])
    assert led.active == mech.names[:6] and led.actuated == mech.names
    assert cs.Mechanism.from_urdf(text, floating=True, actuated=["hull"]).actuated == mech.names[:6]
    assert cs.Mechanism.from_urdf(mech.to_urdf()).actuated == ("shoulder",) and not caplog.messages
    led.with_drive(active=[]).to_urdf()
    assert "say it again: Mechanism.from_urdf(path, actuated=['hull[0]'," in caplog.messages[-1]


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
