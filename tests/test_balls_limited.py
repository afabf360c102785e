"""Balls with a largest angle: inverse kinematics, stops and optimal motions."""

import numpy as np
import pytest
from ball_towers import ENGINES, quiet, tower

import cstormpy as cs
from cstormpy import lie


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


@pytest.mark.slow
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
