"""The prescribed motion of a base, at the ports of blocks, in evaluators and in optimal control."""

import numpy as np
import pytest
from closeness import assert_close, central_difference
from random_mechanisms import random_inertia, random_pose
from scipy.integrate import solve_ivp

import cstormpy as cs


def quiet(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, graphics=False, progress=False)


def arm(rng, first=(), active=()):
    """Return a hinge and a ball behind links that move the base, (name, joint) each, without mass."""
    links, parent = [], None
    for name, joint in first:
        links.append(cs.Link(name, parent, joint))
        parent = name
    rng = np.random.default_rng(rng)
    for k, joint in enumerate((cs.Revolute((1, 2, 3), name="hinge"), cs.Spherical(name="ball"))):
        com, inertia, pose = rng.normal(size=3) * 0.3, random_inertia(rng), random_pose(rng)
        links.append(cs.Link(f"link{k}", parent, joint, pose, rng.uniform(0.5, 2), com, inertia))
        parent = f"link{k}"
    return cs.Mechanism(links, rng.normal(size=3) * 5, active=active)


def test_a_base_that_moves_is_a_free_joint_prescribed_and_virtual_joints_without_mass():
    """Where the free joint and the six virtual ones stand at zero, their frames are the base's, Xiang (36)."""
    rng = np.random.default_rng(0)
    V, dV = rng.normal(size=(2, 6))
    axes = np.eye(3)
    virtual = [(f"slide{k}", cs.Prismatic(axes[k])) for k in range(3)]
    virtual += [(f"turn{k}", cs.Revolute(axes[k])) for k in range(3)]
    by_base = arm(1)
    names = [joint.name or name for name, joint in virtual]
    q, qd, tau = rng.normal(size=(3, by_base.n))
    expected = by_base.hybrid_dynamics(q, qd, tau, base=(V, dV)).qdd
    free = arm(1, [("vehicle", cs.Free(name="vehicle"))], active=["vehicle"])
    joint = free.joint("vehicle")
    zero = np.zeros(6)
    rates = np.linalg.solve(joint.subspace(zero), V)
    # Ṡ at φ = 0 depends on the rates
    accelerations = np.linalg.solve(joint.subspace(zero), dV - joint.subspace_rate(zero, rates) @ rates)
    found = free.hybrid_dynamics(
        np.concatenate([zero, q]), np.concatenate([rates, qd]), np.concatenate([accelerations, tau])
    )
    assert_close(found.qdd[6:], expected, 1e-11)
    chain = arm(1, virtual, active=names)
    rates = np.concatenate([V[3:], V[:3]])
    J, J_rate = (
        chain.jacobian(np.zeros(chain.n), "turn2"),
        chain.jacobian_rate(np.zeros(chain.n), np.concatenate([rates, qd]), "turn2"),
    )
    assert_close(J[:, :6] @ rates, V, 1e-12)
    accelerations = np.linalg.solve(J[:, :6], dV - J_rate[:, :6] @ rates)
    found = chain.hybrid_dynamics(
        np.concatenate([zero, q]), np.concatenate([rates, qd]), np.concatenate([accelerations, tau])
    )
    assert_close(found.qdd[6:], expected, 1e-11)


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_plant_on_a_turntable_is_one_behind_a_joint_that_turns(engine):
    """A pendulum whose base turns about the vertical at a growing rate; torques and derivatives are the mechanism's."""
    mech = cs.Mechanism(
        [cs.Link("bob", None, cs.Revolute((1, 0, 0)), mass=1.0, com=(0, 0.3, -0.5), inertia=0.02 * np.eye(3))],
        gravity=(0, 0, -9.81),
    )
    table = cs.Mechanism(
        [cs.Link("table", None, cs.Revolute((0, 0, 1))), mech.links[0].replace(parent="table")],
        gravity=(0, 0, -9.81), active=["table"],
    )  # fmt: skip
    sim = quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3], base=True, name="plant")
    turned = bd.HYBRIDDYNAMICS(table, q0=[0, 0.3], qd0=[1.0, 0], name="turned")
    motion = bd.FUNCTION(lambda t: np.array([[0, 0, 1.0 + 0.5 * t, 0, 0, 0], [0, 0, 0.5, 0, 0, 0]]), name="motion")
    effort = bd.JOINTEFFORT(mech, base=True, name="effort")
    inverse = bd.INVERSEDYNAMICS(mech, base=True, name="inverse")
    slopes = bd.SENSITIVITY(mech, base=True, name="slopes")
    bd.connect(bd.TIME(), motion)
    bd.connect(bd.CONSTANT(0.2), plant.tau, turned.tau, effort.tau, slopes.tau)
    bd.connect(bd.CONSTANT(0.5), turned.acc)
    bd.connect(motion, plant.base, effort.base, inverse.base, slopes.base)
    for block in (effort, inverse, slopes):
        bd.connect(plant[0:2], block[0:2])
    bd.connect(effort.qdd, inverse.qdd)
    out = sim.run(bd, T=1.0, solver="DOP853", rtol=1e-7, atol=1e-8, watch=["inverse", "slopes"])
    own, other = out.signal("plant.bob.q"), out.signal("turned.bob.q")
    np.testing.assert_allclose(own, other, atol=1e-6)
    assert np.ptp(own) > 0.1
    np.testing.assert_allclose(out.signal("inverse.tau"), 0.2, atol=1e-9)
    base = np.array([[0, 0, 1.5, 0, 0, 0], [0, 0, 0.5, 0, 0, 0]])
    q, qd = out.signal("plant.bob.q")[-1:], out.signal("plant.bob.qd")[-1:]
    slope = central_difference(lambda x: mech.hybrid_dynamics(q, qd, [0.2], base=x.reshape(2, 6)).y, base.ravel(), 1e-3)
    np.testing.assert_allclose(out.signal("slopes.dy_dbase")[-1].reshape(1, 12), slope, atol=1e-8)


def test_evaluators_take_the_motion_of_the_base():
    """At each call, as an array of twelve numbers or a pair; beside loads that stay, and of loops too."""
    rng = np.random.default_rng(2)
    mech = arm(3)
    for load in (None, rng.normal(size=(2, 6))):
        f, g = mech.hybrid_evaluator(load, base=True), mech.hybrid_sensitivity_evaluator(load, base=True)
        for _ in range(2):
            q, qd, u = rng.normal(size=(3, mech.n))
            motion = rng.normal(size=12)
            expected = mech.hybrid_sensitivity(q, qd, u, wrench=load, base=(motion[:6], motion[6:]))
            assert_close(f(q, qd, u, motion), expected.y, 1e-12)
            assert_close(f(q, qd, u, (motion[:6], motion[6:])), expected.y, 1e-12)
            y, D = g(q, qd, u, motion)
            assert_close(y, expected.y, 1e-12)
            assert_close(D, np.stack([expected.dy_dq, expected.dy_dqd, expected.dy_du]), 1e-11)
    out = np.empty(mech.n)
    assert f(q, qd, u, motion, out) is out
    with pytest.raises(cs.CstormError, match="base"):
        f(q, qd, u, motion[:7])


def test_an_arm_on_a_turntable_is_planned_as_one_behind_a_joint():
    """The torques of the optimised motion, which the turning base raises, are those behind a prescribed joint."""
    from cstormpy.optimal import Effort, Problem

    mech = cs.library.planar_2r()
    task = {"start": [0.0, 0.5], "end": [0.5, 0.9], "duration": 1.0, "objective": Effort(), "points": 7, "limits": None}

    def spinning(t):
        return [0, 0, 2.0 * t, 0, 0, 0], [0, 0, 2.0, 0, 0, 0]

    found = Problem(mech, base=spinning, **task).solve()
    still = Problem(mech, **task).solve()
    assert found.converged and abs(found.dense_cost - still.dense_cost) > 0.01 * still.dense_cost
    at = found.at(np.linspace(0, 1, 5))
    first = mech.links[0]
    behind = cs.Mechanism(
        [cs.Link("table", None, cs.Revolute((0, 0, 1))), first.replace(parent="table"), *mech.links[1:]], mech.gravity
    )
    for k, t in enumerate(at.t):
        # gravity turns with the table in the frame of the base, where the problem keeps it
        turn = np.array([[np.cos(t * t), np.sin(t * t), 0], [-np.sin(t * t), np.cos(t * t), 0], [0, 0, 1]])
        posture = np.concatenate([[t * t], at.q[k]]), np.concatenate([[2 * t], at.qd[k]])
        tau = behind.with_gravity(turn.T @ mech.gravity).inverse_dynamics(*posture, np.concatenate([[2.0], at.qdd[k]]))
        np.testing.assert_allclose(at.tau[k], tau[1:], atol=1e-9)
    with pytest.raises(cs.InvalidValue, match="base: expected the pair"):
        Problem(mech, base=[1.0, 2.0, 3.0], **task)
    with pytest.raises(cs.CstormError, match="base: a function of time needs a fixed duration"):
        Problem(mech, base=spinning, **{**task, "duration": (0.5, 1.0)})


@pytest.mark.parametrize("constant", [False, True])
def test_shooting_integrates_on_a_moving_base(constant):
    """An acrobot on a rocking table, its elbow on a spline: the shoulder follows, as scipy integrates it too."""
    from cstormpy.optimal import Effort, Problem, Terminal

    mech = cs.library.acrobot(parameters="rods").with_drive(active=["elbow"])

    def rocking(t):
        return [0, 0, 0.8 * np.sin(3 * t), 0.2 * t, 0, 0], [0, 0, 2.4 * np.cos(3 * t), 0.2, 0, 0]

    base = rocking(0.7) if constant else rocking
    problem = Problem(
        mech, base=base, transcription="shooting", start=([-1.2, 0.3], [0.1, 0.0]), duration=0.8, points=6, limits=None,
        objective=Effort() + 10.0 * Terminal(q={"shoulder": -1.0}), steps=40,
    )  # fmt: skip
    transcription = problem.transcription
    x = np.random.default_rng(1).normal(size=transcription.size)
    found = transcription.evaluate(x)
    at = found.samples

    def end(x):
        samples = transcription.evaluate(x).samples
        return np.concatenate([samples.q[-1], samples.qd[-1], samples.tau[-1]])

    exact = np.concatenate([found.by_x(channel)[-1] for channel in ("q", "qd", "tau")])
    assert_close(exact, central_difference(end, x, 1e-3), 1e-8)
    motion, where = transcription.setup.curve, transcription.map.with_duration(0.8).control_points(x)

    def rate(t, z):
        splines = [float((motion.basis_matrix(np.array([t / 0.8]), r) @ where)[0, 0]) / 0.8**r for r in range(3)]
        q, qd, u = [z[0], splines[0]], [z[1], splines[1]], [0.0, splines[2]]
        pair = base if constant else rocking(t)
        return [z[1], mech.hybrid_dynamics(q, qd, u, base=tuple(map(np.array, pair))).qdd[0]]

    z = solve_ivp(rate, (0, 0.8), [-1.2, 0.1], rtol=1e-8, atol=1e-10).y[:, -1]
    np.testing.assert_allclose([at.q[-1, 0], at.qd[-1, 0]], z, atol=5e-5)  # 40 steps of fourth order: 3e-5
    pairs = [tuple(map(np.array, base if constant else rocking(t))) for t in at.t]
    for k in (0, 21, 40):
        tau = mech.inverse_dynamics(at.q[k], at.qd[k], at.qdd[k], base=pairs[k])
        np.testing.assert_allclose(tau, [0.0, at.tau[k, 1]], atol=1e-9)
    with pytest.raises(cs.InvalidValue, match="base: shooting follows a design on a base at rest alone"):
        Problem(
            mech, base=base, transcription="shooting", start=([-1.2, 0.3], [0.1, 0.0]), duration=0.8, points=6,
            limits=None, objective=Effort(), design={"forearm.mass": (0.5, 1.0, 2.0)},
        )  # fmt: skip
    if not constant:
        solved = problem.solve()
        assert solved.converged
        last = solved.at([0.8])
        tau = mech.inverse_dynamics(last.q[0], last.qd[0], last.qdd[0], base=tuple(map(np.array, rocking(0.8))))
        np.testing.assert_allclose(tau, [0.0, last.tau[0, 1]], atol=1e-6)


def test_balls_on_splines_keep_away_from_a_whole_turn():
    """A posture of 2π or more is refused by name; a motion between shorter ones is found, and stays shorter."""
    from cstormpy.optimal import Effort, Problem

    ball = cs.Link("bob", None, cs.Spherical(name="hip"), mass=1.0, com=(0, 0, -0.5), inertia=0.1 * np.eye(3))
    mech = cs.Mechanism([ball], gravity=(0, 0, -9.81))
    task = {"duration": 1.0, "objective": Effort(), "points": 7}
    with pytest.raises(cs.InvalidValue, match=r"end: joint 'hip': its rotation vector is 6\.4"):
        Problem(mech, start=[0, 0, 0], end=[0, 0, 6.4], **task)
    found = Problem(mech, start=[0, 0, 0], end=[0.5, 0.2, 1.0], **task).solve()
    assert found.converged
    at = found.at(np.linspace(0, 1, 21))
    assert np.linalg.norm(at.q, axis=1).max() < 2 * np.pi
    np.testing.assert_allclose(at.tau, mech.inverse_dynamics(at.q, at.qd, at.qdd), atol=1e-9)
