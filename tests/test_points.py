"""Coriolis matrices, and velocities and accelerations of points of links with what they change by."""

import numpy as np
import pytest
from closeness import assert_close, central_difference
from random_mechanisms import random_mechanism, random_state

import cstormpy as cs
from cstormpy.formulations import xiang, xiang_sensitivity

KINDS = [
    pytest.param(("revolute", "prismatic", "screw"), id="one-dof"),
    pytest.param(("universal", "planar", "translational", "revolute"), id="several"),
    pytest.param(("spherical", "free", "revolute"), id="balls"),
]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_coriolis_matrix_is_that_of_christoffel(kinds, seed):
    """Its torques are what is left of the inverse dynamics at no acceleration, gravity or loss; Ṁ - 2 C is skew."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 4, kinds)
    q, qd, _ = random_state(rng, mech)
    C = mech.coriolis_matrix(q, qd)
    zero = np.zeros(mech.n)
    losses = mech.inverse_dynamics(q, qd, zero) - mech.with_gravity((0, 0, 0)).inverse_dynamics(q, qd, zero)
    np.testing.assert_allclose(losses, mech.gravity_load(q), atol=1e-9 * (1 + np.abs(losses).max()))
    slopes = central_difference(lambda x: mech.mass_matrix(x), q, 1e-3)  # (n, n, n), the last that of q
    symbols = 0.5 * (slopes + np.swapaxes(slopes, 1, 2) - np.moveaxis(slopes, 2, 0))
    expected = symbols @ qd
    assert_close(C, expected, 1e-8)
    skew = slopes @ qd - 2.0 * C
    np.testing.assert_allclose(skew, -skew.T, atol=1e-8 * np.abs(C).max())
    batch = mech.coriolis_matrix(np.stack([q, q]), np.stack([qd, 2.0 * qd]))
    assert_close(batch, np.stack([C, 2.0 * C]), 1e-12)


@pytest.mark.parametrize("kinds", KINDS)
def test_points_move_as_the_differences_of_their_positions_say(kinds):
    """Along a motion of all joints; every derivative against central differences."""
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 5, kinds)
    q, qd, qdd = random_state(rng, mech)
    r, link = np.array([0.3, -0.2, 0.5]), len(mech.links) - 1
    found = mech.point_motion(q, qd, qdd, link, r)

    def position(t):
        X = mech.forward_kinematics(q + t * qd + 0.5 * t**2 * qdd)[link]
        return X[:3, :3] @ r + X[:3, 3]

    def at(q=q, qd=qd, qdd=qdd):
        return mech.point_motion(q, qd, qdd, link, r)

    assert_close(found.position, position(0.0), 1e-13)
    velocity = central_difference(lambda t: position(t[0]), np.zeros(1), 1e-3)[:, 0]
    assert_close(found.velocity, velocity, 1e-8)
    speed = central_difference(
        lambda t: at(q + t[0] * qd + 0.5 * t[0] ** 2 * qdd, qd + t[0] * qdd).velocity, np.zeros(1), 1e-3
    )
    assert_close(found.acceleration, speed[:, 0], 1e-8)
    for slope, what, by in (
        (found.dp_dq, "position", "q"), (found.dv_dq, "velocity", "q"), (found.dv_dqd, "velocity", "qd"),
        (found.da_dq, "acceleration", "q"), (found.da_dqd, "acceleration", "qd"),
        (found.da_dqdd, "acceleration", "qdd"),
    ):  # fmt: skip
        start = {"q": q, "qd": qd, "qdd": qdd}[by]
        expected = central_difference(lambda x, by=by, what=what: getattr(at(**{by: x}), what), start, 1e-3)
        assert_close(slope, expected, 1e-7)
    assert_close(mech.point_velocity(q, qd, link, r), found.velocity, 1e-12)
    assert_close(mech.point_acceleration(q, qd, qdd, link, r), found.acceleration, 1e-12)
    batch = mech.point_motion(np.stack([q, 0.5 * q]), np.stack([qd, qd]), np.stack([qdd, qdd]), link, r)
    assert_close(batch.da_dq[0], found.da_dq, 1e-13)


def test_points_move_as_xiang_s_recursion_says():
    """Of hinges and slides: (15) with the second rates of 4 x 4 poses, and the derivatives (21)-(26)."""
    rng = np.random.default_rng(4)
    mech = random_mechanism(rng, 5, ("revolute", "prismatic"))
    q, qd, qdd = random_state(rng, mech)
    r = np.array([0.3, -0.2, 0.5, 1.0])
    system = xiang.system(mech, q, qd, qdd, None, None, ())
    rates = xiang.kinematics(system)
    slopes = xiang_sensitivity.kinematic_sensitivity(system, rates, xiang_sensitivity.relations(system.tree)[0])
    joint_of = {int(i): k for k, i in enumerate(mech.joint_links)}
    for link in range(5):
        found = mech.point_motion(q, qd, qdd, link, r[:3])
        assert_close(found.velocity, (rates.B[link] @ r)[:3], 1e-12)
        assert_close(found.acceleration, (rates.C[link] @ r)[:3], 1e-12)
        assert_close(mech.point_acceleration(q, qd, qdd, link, r[:3]), (rates.C[link] @ r)[:3], 1e-12)
        for slope, printed in (
            (found.dp_dq, slopes.A_q), (found.dv_dq, slopes.B_q), (found.dv_dqd, slopes.B_qd),
            (found.da_dq, slopes.C_q), (found.da_dqd, slopes.C_qd), (found.da_dqdd, slopes.C_qdd),
        ):  # fmt: skip
            expected = np.zeros((3, mech.n))  # what does not carry the link does not move it
            for (i, j), matrix in printed.items():
                if i == link:
                    expected[:, joint_of[j]] = (matrix @ r)[:3]
            assert_close(slope, expected, 1e-12)


@pytest.mark.parametrize("ask", ["point_velocity", "point_acceleration", "point_motion"])
def test_motions_that_overflow_are_refused(ask):
    """The derivatives of the acceleration were NaN, with warnings of NumPy."""
    mech, large = cs.library.acrobot(), np.full(2, 1e200)
    at = [np.full(2, 0.3), *[large] * (1 if ask == "point_velocity" else 2)]
    point = [1e200, 0.0, 0.0]
    with pytest.raises(cs.NonFinite, match="the result is not finite although all given numbers are"):
        getattr(mech, ask)(*at, "forearm", point)
    rows = [np.stack([0.0 * given, given]) for given in at]
    with pytest.raises(cs.NonFinite, match="the result in row 1 is not finite"):
        getattr(mech, ask)(*rows, "forearm", point)


@pytest.mark.parametrize("engine", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_kinematics_says_how_a_tool_is_accelerated(engine):
    """Wired behind a plant and its effort: the second difference of the position that the same block gives."""
    rng = np.random.default_rng(6)
    mech = random_mechanism(rng, 3, ("revolute", "spherical"))
    mech = mech.with_drive(active=[], actuated=[])
    sim = cs.Simulation(engine=engine, live=False, graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=np.full(mech.n, 0.2), qd0=np.full(mech.n, 0.5), name="plant")
    effort = bd.JOINTEFFORT(mech, name="effort")
    tip = bd.KINEMATICS(mech, tool=[0.3, -0.2, 0.5], acceleration=True, name="tip")
    bd.connect(plant[0:2], effort[0:2])
    bd.connect(plant[0:2], tip[0:2])
    bd.connect(effort.qdd, tip.qdd)
    out = sim.run(bd, T=0.1, dt=1e-3, solver="RK4", watch=["tip"])
    p, a = out.signal("tip.position"), out.signal("tip.acceleration")
    np.testing.assert_allclose(a[1:-1], (p[2:] - 2 * p[1:-1] + p[:-2]) / 1e-6, atol=1e-4 * np.abs(a).max())


def test_a_tip_passes_a_point_at_a_velocity():
    """Of the two-link arm: in the middle of the motion, with its acceleration bounded all the time."""
    from cstormpy.optimal import Effort, PointAcceleration, PointVelocity, Problem

    mech, tip = cs.library.planar_2r(), {"link": "forearm", "tool": [0.5, 0.0, 0.0]}
    passing = PointVelocity(target=[-0.6, None, None], at=0.5, **tip)
    gently = PointAcceleration(lower=[-3, -3, None], upper=[3, 3, None], at="all", **tip)
    problem = Problem(
        mech, duration=1.5, start=[0.0, 0.5], end=[1.2, 0.9], objective=Effort(), limits=None, points=9,
        constraints=[passing, gently],
    )  # fmt: skip
    found = problem.solve()
    assert found.feasible, found.message
    at = found.at(np.array([0.0, 0.3, 0.75, 1.1, 1.5]))
    motion = mech.point_motion(at.q, at.qd, at.qdd, "forearm", [0.5, 0, 0])
    np.testing.assert_allclose(motion.velocity[2, 0], -0.6, atol=1e-5)
    assert np.abs(motion.acceleration).max() < 3.0 + 1e-3
