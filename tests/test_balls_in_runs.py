"""Balls and free bodies in runs and diagrams, through re-centrings, in both engines."""

import numpy as np
import pytest
from ball_towers import ENGINES, LONG, quiet, tower, turned
from closeness import assert_close, central_difference

import cstormpy as cs
from cstormpy import lie


def spinning_body():
    """Return a body in space whose mass centre is off its frame, with three different principal inertias."""
    joint = cs.Free(name="body")
    body = cs.Link("body", None, joint, mass=2.0, com=(0.1, 0.2, 0.0), inertia=np.diag([1.0, 2.0, 3.0]))
    return cs.Mechanism([body], gravity=(0, 0, 0), actuated=[])


@pytest.mark.parametrize("engine", LONG)
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


@pytest.mark.slow
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


@pytest.mark.parametrize("angle", [pytest.param(0.5, marks=pytest.mark.slow), 3.0, 4.0])
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


def test_a_ball_without_motors_is_trimmed_where_it_hangs_or_stands():
    """Not at a whole turn, where no moment has a share in the torques of a rotation vector; it may turn as it hangs."""
    body = {"mass": 1.0, "com": (0, -0.5, 0), "inertia": 0.1 * np.eye(3)}
    mech = cs.Mechanism([cs.Link("arm", None, cs.Spherical(), **body)], actuated=[])
    for way in np.random.default_rng(0).normal(size=(20, 3)):
        for angle in (2.2, 2.9, 5.6):
            found = mech.trim(angle * way / np.linalg.norm(way))
            np.testing.assert_allclose(mech.forward_dynamics(found.q, np.zeros(3), np.zeros(3)), 0.0, atol=1e-8)


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


def test_a_ball_that_does_not_move_the_link_keeps_its_vector():
    """However long: it is not exchanged for the shorter one, as those are that the search goes through."""
    arm = cs.Mechanism([cs.Link("arm", None, cs.Revolute((0, 0, 1))), cs.Link("hand", "arm", cs.Spherical())])
    found = arm.inverse_kinematics("arm", arm.forward_kinematics([0.5, 0.0, 0.0, 0.0])[0], [0.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(found.q, [0.5, 0.0, 0.0, 5.0], atol=1e-9)
