"""Closed mechanisms with more motors than freedoms, or fewer: torques that share a load, and what the loops carry."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import state
from closeness import assert_close

import cstormpy as cs
from cstormpy.formulations import kim_constrained as constrained


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
    prepared = driven.hybrid_evaluator()  # a division by zero: of such a drive there is no straight line
    assert_close(prepared(q, qd, qdd), np.asarray(driven.inverse_dynamics(q, qd, qdd)), 1e-10)


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
