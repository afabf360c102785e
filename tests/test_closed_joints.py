"""Loops through joints of many freedoms: balls, universal, planar and sliding joints, bodies that are free."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import assert_rates_of_closure
from closeness import assert_close, central_difference, tolerance

import cstormpy as cs
from cstormpy import lie
from cstormpy.formulations import kim_constrained
from cstormpy.loops import lines as closed_lines

X, Y, Z = np.eye(3)
KINDS = {
    "balls": ([cs.Revolute(Y), cs.Spherical(point=(0.1, 0.0, 0.2))], [cs.Spherical()], "position", "b0"),
    "free": ([cs.Free(point=(0.0, 0.1, 0.0))], [cs.Revolute(X)], "hinge", "b0"),
    "pose": ([cs.Revolute(Y)], [cs.Spherical(), cs.Translational()], "pose", "a0"),
    "flat": ([cs.Planar()], [cs.Translational(), cs.Revolute(Z)], "position", "b1"),
}


def closed(name, angle=1.0):
    """Return a mechanism whose loop closes two arms on the base, and a closed state of it."""
    rng = np.random.default_rng([7, *name.encode()])
    *arms, directions, _ = KINDS[name]
    links, above = [], []
    for side, joints in zip("ab", arms, strict=True):
        on = None
        for k, joint in enumerate(joints):
            inertia = np.diag(rng.uniform(0.1, 0.2, 3))
            pose, com = lie.exp_se3(rng.normal(size=6) * 0.5), rng.normal(size=3) * 0.1
            links.append(cs.Link(f"{side}{k}", on, joint, pose, rng.uniform(0.5, 1.5), com, inertia))
            on = f"{side}{k}"
        above.append(on)
    tree = cs.Mechanism(links)
    q = angle * rng.uniform(-1.0, 1.0, tree.n)
    X = tree.forward_kinematics(q)
    i, j = map(tree.link_index, above)
    frame = lie.exp_se3(rng.normal(size=6) * 0.3)
    loop = cs.Loop(*above, frame, np.linalg.inv(X[j]) @ X[i] @ frame, directions, name="loop")
    mech = tree.replace(loops=[loop])
    return mech, *mech.project(q, rng.normal(size=mech.n))


@pytest.mark.parametrize("name", KINDS)
def test_the_jacobian_is_the_derivative_of_the_closure_and_its_rate_that_of_the_jacobian(name):
    assert_rates_of_closure(*closed(name))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("balls", "free"))) for name in KINDS]
)
def test_derivatives_against_differences(name):
    mech, q, qd = closed(name)
    u = np.random.default_rng(11).normal(size=mech.n)
    for active in ([], KINDS[name][-1:]):
        driven = mech.with_drive(active=active)
        d = driven.hybrid_sensitivity(q, qd, u)
        assert_close(d.y, driven.hybrid_dynamics(q, qd, u).y, 1e-11)
        h = 1e-4
        tol = max(1e-8, tolerance(driven.without_loops(), q, 0.0) / h)
        assert_close(d.dy_dq, central_difference(lambda x, f=driven: f.hybrid_dynamics(x, qd, u).y, q, h), tol)
        assert_close(d.dy_dqd, central_difference(lambda x, f=driven: f.hybrid_dynamics(q, x, u).y, qd, h), tol)
        assert_close(d.dy_du, central_difference(lambda x, f=driven: f.hybrid_dynamics(q, qd, x).y, u, 1e-3), 1e-9)


PEERS = {"free": "JointModelFreeFlyer", "spherical": "JointModelSpherical"}


@pytest.mark.parametrize("name", ["balls", "free"])
def test_pinocchios_constraint_dynamics(name):
    """Pinocchio turns balls by quaternions; of a rod with a pin at its end it closes the point or the whole pose."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_model import in_body_axes, joint_model

    mech, q, qd = closed(name)
    loop = mech.loops[0].replace(directions="position" if name == "balls" else "pose")
    mech = mech.replace(loops=[loop])
    q, qd = mech.project(q, qd)
    model, joints, x = pin.Model(), [0], []

    def at(link):
        """Return where Pinocchio's joint stands in the link: a body that is free has its own frame."""
        return pin.SE3(np.eye(3), np.array(link.joint.point) * (link.joint.kind != "free"))

    model.gravity.linear = np.array(mech.gravity)
    for link in mech.links:
        above, own = (0 if link.parent is None else joints[mech.link_index(link.parent) + 1]), link.joint
        at_joint = at(link)
        pose = pin.SE3(np.array(link.pose)) * at_joint
        if link.parent is not None:
            pose = at(mech.link(link.parent)).inverse() * pose
        made = getattr(pin, PEERS[own.kind])() if own.kind in PEERS else joint_model(own)
        joints.append(model.addJoint(above, made, pose, link.name))
        inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(joints[-1], inertia, at_joint.inverse())
        z = q[mech.coordinates(link.joint_name)]
        T = own.motion(z)
        if any(own.balls):
            x += [*(T[:3, 3] if own.dof == 6 else ()), *pin.Quaternion(T[:3, :3].copy()).coeffs()]
        else:
            x += [*z]
    places = []
    for end, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
        k = mech.link_index(end)
        places += [joints[k + 1], at(mech.links[k]).inverse() * pin.SE3(np.array(pose))]
    kind = pin.ContactType.CONTACT_3D if name == "balls" else pin.ContactType.CONTACT_6D
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(pin.RigidConstraintModel(kind, model, *places))
    datas.append(models[0].createData())
    v, _, E, bias = in_body_axes(mech, q, qd, qd)
    tau, data = np.random.default_rng(6).normal(size=mech.n), model.createData()
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-10, 200)
    a = pin.constraintDynamics(model, data, np.array(x), v, np.linalg.solve(E.T, tau), models, datas, settings)
    assert_close(np.asarray(mech.forward_dynamics(q, qd, tau)), np.linalg.solve(E, a - bias), 1e-9)


def spatial_four_bar(cut):
    """Return crank, coupler and rocker in space, on hinges at the base and balls between: closed at a ball or hinge.

    The balls of one that is closed at a ball are three hinges each.
    """
    crank = cs.Link("crank", None, cs.Revolute(Z), mass=1.0, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]))
    coupler = {"mass": 2.0, "com": (0.5, 0.1, 0.0), "inertia": np.diag([0.02, 0.2, 0.2])}
    rocker = {"mass": 1.5, "com": (0.0, 0.3, 0.05), "inertia": np.diag([0.1, 0.05, 0.1])}
    foot, tip, end = lie.exp_se3([0.3, 0.8, 0.0, 0.9, 0.1, 0.2]), np.eye(4), np.eye(4)
    tip[:3, 3], end[:3, 3] = (0.4, 0, 0), (1.0, 0, 0)
    if cut == "hinge":
        links = [
            crank,
            cs.Link("coupler", "crank", cs.Spherical(), tip, **coupler),
            cs.Link("rocker", "coupler", cs.Spherical(point=(0, 0.6, 0)), end, **rocker),
        ]
        return cs.Mechanism(links, actuated=["crank"], loops=[cs.Loop(None, "rocker", foot, None, "hinge")])
    links = [
        crank,
        cs.Link("first", "crank", cs.Revolute(Z), tip),
        cs.Link("second", "first", cs.Revolute(Y)),
        cs.Link("coupler", "second", cs.Revolute(X), **coupler),
        cs.Link("rocker", None, cs.Revolute(Z), foot, **rocker),
    ]
    ball = cs.Loop("coupler", "rocker", (1.0, 0.6, 0.0), (0, 0.6, 0), "position")
    return cs.Mechanism(links, actuated=["crank"], loops=[ball])


def accelerations(mech, q, qd, qdd):
    """Return the accelerations of crank and coupler in their own axes, (2, 6)."""
    return np.array([mech.jacobian(q, k) @ qdd + mech.jacobian_rate(q, qd, k) @ qd for k in ("crank", "coupler")])


def test_a_loop_may_be_cut_at_a_hinge_instead_of_at_a_ball_of_hinges():
    """By Kim's equations for hinges alone: the same motion, and the work that the motor does goes into energy."""
    by_ball, by_hinge = (spatial_four_bar(cut) for cut in ("ball", "hinge"))
    rng = np.random.default_rng(3)
    e, ed = by_ball.project([0.3, 0.2, 0.4, -0.3, 0.5], rng.normal(size=5))
    tau = np.array([5.0, 0, 0, 0, 0])
    A, rate = by_ball.closure_jacobian(e), by_ball.closure_jacobian_rate(e, ed)
    edd = kim_constrained.constrained_hybrid_dynamics(by_ball.without_loops(), e, ed, tau, A, rate).y
    X = by_ball.forward_kinematics(e)[[0, 3, 4]]
    at_home = [link.pose for link in by_hinge.links]
    phi = [lie.log_so3((np.linalg.inv(X[k - 1] @ at_home[k]) @ X[k])[:3, :3]) for k in (1, 2)]
    q0 = np.concatenate([e[:1], *phi])
    V = [by_ball.jacobian(e, k)[:3] @ ed for k in ("crank", "coupler", "rocker")]
    R = X[:, :3, :3]
    turns = [V[k] - R[k].T @ R[k - 1] @ V[k - 1] for k in (1, 2)]
    rates = [np.linalg.solve(cs.Spherical().subspace(x)[:3], w) for x, w in zip(phi, turns, strict=True)]
    q, qd = by_hinge.project(q0, np.concatenate([ed[:1], *rates]))
    assert_close(q, q0, 1e-10)
    assert_close(qd[1:], np.concatenate(rates), 1e-9)
    assert by_hinge.mobility(q)[:2] == (2, 5)
    found = by_hinge.hybrid_dynamics(q, qd, np.append(tau[0], np.zeros(6)))
    assert_close(accelerations(by_hinge, q, qd, found.qdd), accelerations(by_ball, e, ed, edd), 1e-9)
    power = central_difference(
        lambda s: sum(by_hinge.energy(q + s[0] * qd + s[0] ** 2 / 2 * found.qdd, qd + s[0] * found.qdd)), [0.0], 1e-3
    )
    assert_close(power, [tau[0] * qd[0]], 1e-8)
    # at the rocker's hinge the foot carries what the rocker's own motion does not
    lam = by_ball.hybrid_dynamics(e, ed, tau).loop_wrenches[0, 3:]  # of the ball on the rocker, in axes of the coupler
    J, Jd = (f(k="rocker") for f in (lambda k: by_ball.jacobian(e, k), lambda k: by_ball.jacobian_rate(e, ed, k)))
    weight = R[2].T @ by_ball.gravity
    turn = V[2]
    inertia, com, mass = (getattr(by_ball.link("rocker"), name) for name in ("inertia", "com", "mass"))
    acc = J @ edd + Jd @ ed
    centre = acc[3:] + np.cross(turn, J[3:] @ ed) + np.cross(acc[:3], com) + np.cross(turn, np.cross(turn, com))
    force = mass * (centre - weight)
    moment = np.cross(com, force) + inertia @ acc[:3] + np.cross(turn, inertia @ turn)
    pull = R[2].T @ R[1] @ lam
    foot = by_hinge.loops[0].pose_a[:3, :3].T @ R[2]
    wanted = np.concatenate([foot @ (moment - np.cross([0, 0.6, 0], pull)), foot @ (force - pull)])
    assert_close(found.loop_wrenches[0], wanted, 1e-8)


def test_a_closed_posture_is_found_from_rotation_vectors_of_nearly_a_whole_turn():
    """The steps of the search lead beyond a whole turn, where a rotation vector has no rates: it takes the shorter."""
    mech = spatial_four_bar("hinge")
    rng = np.random.default_rng(29)
    q0 = rng.normal(size=7)
    for at in (slice(1, 4), slice(4, 7)):
        q0[at] *= 6.1 / np.linalg.norm(q0[at])
    q, qd = mech.project(q0, np.ones(7))
    assert np.abs(mech.closure(q)).max() < 1e-11
    assert np.abs(mech.closure_jacobian(q) @ qd).max() < 1e-11
    held, _ = mech.project(q, hold=["coupler"])
    assert_close(held[1:4], q[1:4], 1e-15)


def test_projection_is_nearest_beyond_half_a_turn_too():
    """On its way down a vector gave way to the shorter one, which is far away: the search ended there, not nearest."""
    mech, rng = spatial_four_bar("hinge"), np.random.default_rng(1)
    for q0 in 1.5 * rng.normal(size=(3, 7)):
        for at in (slice(1, 4), slice(4, 7)):
            q0[at] *= 3.0 / np.linalg.norm(q0[at])
        q, _ = mech.project(q0)
        A = mech.closure_jacobian(q)
        free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
        assert np.abs(free @ mech.mass_matrix(q0) @ (q - q0)).max() < 1e-7


def sliding_top():
    """Return a top on a ball, whose tip slides on a plane, and a closed state of it."""
    top = cs.Link("top", None, cs.Spherical(), mass=1.0, com=(0.3, 0, 0.1), inertia=np.diag([0.02, 0.05, 0.06]))
    plane = cs.Loop(None, "top", (0.0, 0.0, 0.2), (0.5, 0, 0), (False,) * 5 + (True,), name="plane")
    mech = cs.Mechanism([top], loops=[plane])
    return mech, *mech.project([0.1, 0.2, 2.5], [6.0, 1.0, 5.0])


def test_the_straight_line_of_a_ball_answers_as_the_numbers_do(monkeypatch):
    mech, q, qd = sliding_top()
    u = np.array([0.3, -0.2, 0.5])
    y, D = mech.hybrid_sensitivity_evaluator()(q, qd, u)
    filled = [np.empty(3), np.empty(1), np.empty((3, 3, 3))]
    assert closed_lines.prepared(mech, "own", "sensitivity")(q, qd, u, *filled) == 0
    monkeypatch.setattr(closed_lines, "_found_line", lambda *_: None)
    d = mech.with_drive(active=[]).hybrid_sensitivity(q, qd, u)
    assert_close(filled[0], d.y, 1e-11)
    assert_close(y, d.y, 1e-11)
    assert_close(D, [d.dy_dq, d.dy_dqd, d.dy_du], 1e-10)


@pytest.mark.parametrize("name", ["free", "balls"])
def test_the_linear_model_is_that_of_the_freedoms_by_differences_along_closed_states(name):
    mech, q, qd = closed(name)
    tau = np.linspace(0.5, -1.0, mech.n)
    model = mech.linearize(q, qd, tau)
    f = mech.mobility(q).freedoms
    z, free = [mech.names.index(s) for s in model.states[:f]], model.states[:f]

    def rate(x):
        a, b = q.copy(), qd.copy()
        a[z], b[z] = x[:f], x[f:]
        a, b = mech.project(a, b, hold=free)
        return np.concatenate([b[z], np.asarray(mech.forward_dynamics(a, b, tau))[z]])

    x0 = np.concatenate([q[z], qd[z]])
    assert_close(model.rate, rate(x0), 1e-10)
    assert_close(model.A, central_difference(rate, x0, 3e-4), 1e-7)


@pytest.mark.slow
def test_a_run_goes_on_through_recentrings_and_stays_closed_in_both_engines():
    """A top on a ball whose tip slides on a plane turns over: where its vector is exchanged it stays closed."""
    mech, q0, qd0 = sliding_top()
    runs = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, graphics=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
        bd.connect(bd.CONSTANT(np.zeros(3)), plant.tau)
        runs.append(sim.run(bd, T=0.6))
    for out in runs:
        q, qd = out.x[:, :3], out.x[:, 3:]
        assert len(out.events) >= 2 and np.linalg.norm(q, axis=1).max() < np.pi + 1e-6
        assert np.abs(mech.closure(q)).max() < 1e-8
        assert np.abs(mech.closure_jacobian(q) @ qd[..., None]).max() < 1e-7
        assert np.ptp(np.sum(mech.energy(q, qd), axis=0)) < 1e-4
    assert_close(runs[1].x[-1], runs[0].x[-1], 1e-7)
