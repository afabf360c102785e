"""Equilibria and linear models: known matrices, complex step through the formulations, and what has no answer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from closeness import assert_close, complex_step, tolerance
from random_mechanisms import MOVING, any_tree, random_mechanism

import cstormpy as cs
from cstormpy import formulations as sb
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute, library

# ---------------------------------------------------------------- linear models


def rate(mech, x, v):
    """Return dx/dt by the formulations, also of complex numbers; v is torques, then accelerations."""
    n = mech.n
    driven, active = np.flatnonzero(mech.actuated_mask & ~mech.active_mask), np.flatnonzero(mech.active_mask)
    u = np.zeros(n, dtype=np.result_type(x, v))
    u[np.concatenate([driven, active])] = v
    y = sb.hybrid_dynamics(mech, x[:n], x[n:], u)
    return np.concatenate([x[n:], np.where(mech.active_mask, u, y)])


@any_tree(examples=15, links=8)
def test_linear_models_are_the_derivatives_of_the_motion(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    actuated = [name for name in mech.names if name in mech.active or rng.random() < 0.5]
    mech = mech.with_drive(actuated=actuated)
    x, v = rng.normal(size=2 * mech.n), rng.normal(size=len(actuated))
    k = len(actuated) - len(mech.active)
    model = mech.linearize(x[: mech.n], x[mech.n :], v[:k], v[k:])
    tol = tolerance(mech, x[: mech.n], 1e-9)
    assert_close(model.rate, rate(mech, x, v), tol)
    assert_close(model.A, complex_step(lambda z: rate(mech, z, v), x), tol)
    assert_close(model.B, complex_step(lambda z: rate(mech, x, z), v) if len(v) else np.zeros((2 * mech.n, 0)), tol)


def test_a_pendulum_has_the_textbook_matrices():
    damping, g = 0.3, 9.81
    mech = library.pendulum(length=2.0, mass=3.0, damping=damping)
    inertia, moment = 3.0 * 2.0**2 / 3.0, 3.0 * 1.0
    for q, stiffness in ((-np.pi / 2, 1.0), (np.pi / 2, -1.0)):
        model = mech.linearize([q])
        want = [[0.0, 1.0], [-stiffness * moment * g / inertia, -damping / inertia]]
        assert_close(model.A, want, 1e-13)
        assert_close(model.B, [[0.0], [1.0 / inertia]], 1e-13)
        assert_close(model.rate, [0.0, 0.0], 1e-13)


def test_signals_come_in_the_order_of_the_drive():
    """Torques of joints that are not active come before accelerations of those that are, whatever their place in q."""
    mech = library.branched_acrobot().with_drive(actuated=["base", "right_hip"], active=["base"])
    model = mech.linearize(np.zeros(3), tau=[2.0], acc=[3.0])
    assert model.inputs == ("right_hip torque", "base acceleration")
    assert model.states == (*mech.names, *(f"{name} rate" for name in mech.names))
    assert_close(model.B[3], [0.0, 1.0], 0)
    assert_close(model.A[3], np.zeros(6), 0)
    assert model.rate[3] == 3.0


def test_a_joint_that_is_called_what_the_rate_of_another_is():
    """Two states had one name, as had two weights of a regulator, and of closed mechanisms nobody told them apart."""
    links = [Link(name, None, Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0)) for name in ("hip rate", "hip")]
    with pytest.raises(InvalidValue, match=r"joint 'hip rate': is what the rate of joint 'hip' is called"):
        Mechanism(links).linearize(np.zeros(2))


def test_a_batch_of_models_is_the_models_one_by_one():
    rng = np.random.default_rng(3)
    mech = library.branched_acrobot()
    q, qd = rng.normal(size=(2, 5, mech.n))
    tau = rng.normal(size=(5, len(mech.actuated)))
    batch = mech.linearize(q, qd, tau)
    for k in range(5):
        one = mech.linearize(q[k], qd[k], tau[k])
        for name in ("A", "B", "rate"):
            assert_close(getattr(batch, name)[k], getattr(one, name), 1e-13)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"q": [0.0, 0.0, 0.0]}, ShapeError, "q"),
        ({"q": [0.0, np.nan]}, NonFinite, "elbow"),
        ({"q": [0.0, 0.0], "tau": [0.0, 0.0]}, ShapeError, r"tau: expected shape \(1,\), got .*; it is for elbow"),
        ({"q": [0.0, 0.0], "tau": [np.inf]}, NonFinite, "tau"),
        ({"q": [0.0, 0.0], "acc": [1.0]}, ShapeError, "acc: .* for no joint"),
        ({"q": [0.0, 0.0], "tau": "x"}, InvalidType, "tau"),
    ],
)
def test_bad_states_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        library.acrobot().linearize(**arguments)


# ---------------------------------------------------------------- equilibria


@pytest.mark.parametrize("parameters", ["teaching", "spong", "gym", "rods"])
@pytest.mark.parametrize(("guess", "want"), [([1.4, 0.2], [np.pi / 2, 0.0]), ([-1.8, 0.3], [-np.pi / 2, 0.0])])
def test_the_acrobot_balances_upright_and_hanging_without_torque(parameters, guess, want):
    q, tau = library.acrobot(parameters).trim(guess, tau=0)
    assert_close(q, want, 1e-13)
    assert_close(tau, [0.0], 1e-12)


def test_an_equilibrium_is_kept():
    mech = library.acrobot()
    found = mech.trim([np.pi / 2, 0.0])
    assert found.q.tolist() == [np.pi / 2, 0.0]
    assert found.residual < 1e-13
    again = pickle.loads(pickle.dumps(found))
    assert again.residual == found.residual
    assert again.q.tolist() == found.q.tolist()


def test_motors_hold_what_comes_unless_they_are_told():
    mech = library.acrobot()
    bent = mech.trim([1.0, 1.2], hold=["elbow"])
    assert bent.q[1] == 1.2
    assert_close(mech.inverse_dynamics(bent.q, [0.0, 0.0], [0.0, 0.0]), [0.0, bent.tau[0]], 1e-9)
    # the same again, told the torque instead of the angle
    for given in (bent.tau, float(bent.tau[0]), {"elbow": bent.tau[0]}):
        told = mech.trim(bent.q + 0.05, tau=given)
        assert_close(told.q, bent.q, 1e-9)


@any_tree(examples=15, links=6)
def test_what_is_found_is_at_rest(seed, links):
    """Near a posture at which springs are made to balance the joints without motor there is an equilibrium."""
    rng = np.random.default_rng(seed)
    plain = random_mechanism(rng, links, MOVING, terms=False)
    q0 = rng.uniform(-1, 1, plain.n)
    load = plain.gravity_load(q0)
    stiff = 60.0  # more than gravity pulls, so that the equilibrium is not degenerate
    springs = {f"{name}.stiffness": stiff for name in plain.names}
    rests = {f"{name}.rest": q0[k] + load[k] / stiff for k, name in enumerate(plain.names)}
    mech = plain.with_parameters({**springs, **rests})
    mech = mech.with_drive(actuated=[name for name in mech.names if rng.random() < 0.4], active=())
    found = mech.trim(q0 + 0.05 * rng.normal(size=mech.n))
    tau = np.zeros(mech.n)
    tau[mech.actuated_mask] = found.tau
    assert_close(mech.forward_dynamics(found.q, np.zeros(mech.n), tau), np.zeros(mech.n), tolerance(mech, q0, 1e-6))
    assert_close(mech.trim(found.q).q, found.q, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_an_arm_without_motors_comes_to_rest_from_anywhere(seed):
    """The search ended on its way along a bent valley; that of diagrams turned the arm 14 times about the vertical."""
    arm = library.arm7().with_drive(actuated=[])
    q = np.append(0.0, np.random.default_rng(seed).uniform(-1, 1, 6))
    found = arm.trim(q)
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(arm, name="plant")
    point = sim.trim(bd, {"plant": [*q, *np.zeros(7)]})
    assert point.success
    for at in (found.q, point.x[:7]):
        assert_close(arm.gravity_load(at), np.zeros(7), 1e-7)
        assert abs(at[0]) < 1e-9


def test_where_nothing_stays_at_rest_the_joint_is_named():
    mech = library.acrobot()
    with pytest.raises(InvalidValue, match=r"no equilibrium .* 'shoulder' 13"):
        mech.trim([1.0, 0.0], hold=["shoulder", "elbow"])
    with pytest.raises(InvalidValue, match="'elbow'"):
        mech.trim([1.0, 0.0], tau=100.0)
    falling = Mechanism([Link("stone", joint=Prismatic((0, 1, 0)), mass=2.0)], actuated=[])
    with pytest.raises(InvalidValue, match=r"'stone' 19\.6"):
        falling.trim()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"guess": [0.0]}, ShapeError, "guess"),
        ({"guess": [0.0, np.nan]}, NonFinite, "guess"),
        ({"tau": {"elbo": 0.0}}, UnknownName, "did you mean 'elbow'"),
        ({"tau": {"shoulder": 0.0}}, UnknownName, "'elbow'"),
        ({"tau": [0.0, 0.0]}, ShapeError, "elbow"),
        ({"tau": "x"}, InvalidType, "tau"),
        ({"hold": ["elbo"]}, UnknownName, "hold: .*did you mean 'elbow'"),
        ({"hold": 3}, InvalidType, "hold"),
        ({"tolerance": 0.0}, InvalidValue, "tolerance"),
    ],
)
def test_bad_arguments_of_trim_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        library.acrobot().trim(**arguments)


def test_a_guess_in_degrees_is_noted(caplog):
    """An equilibrium fourteen turns away was returned without a word."""
    caplog.set_level("INFO", "cstormpy")
    library.acrobot().trim([90.0, 0.0], tau=0)
    assert [said.partition(";")[0] for said in caplog.messages] == [
        "joint 'shoulder': guess 90 rad is more than two turns"
    ]


def test_a_mechanism_without_joints_to_move_is_in_balance():
    arm = Mechanism([Link("arm", joint=Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0))])
    found = arm.trim([0.3], hold="arm")
    assert_close(found.tau, [9.81 * 0.5 * np.cos(0.3)], 1e-12)


def heavier(mech, factor):
    """A mechanism all of whose links have so many times their mass."""
    return mech.replace(links=[a.replace(mass=factor * a.mass, inertia=factor * a.inertia) for a in mech.links])


@pytest.mark.parametrize("factor", [1.0, 1e4, 1e8])
def test_a_heavy_mechanism_is_trimmed_to_what_rounding_leaves_of_its_loads(factor):
    """An excavator of some tons had "torque left over -1.77e-09": rounding of 1e5 N m, more than the tolerance."""
    mech = heavier(library.four_bar(), factor)
    for crank in np.linspace(0.3, 2.2, 9):
        q, tau = mech.trim(mech.project([crank, 0.0, 1.5], hold=["crank"])[0], hold=["crank"])
        around = [mech.project(q + np.array([d, 0, 0]), hold=["crank"])[0] for d in (1e-5, -1e-5)]
        work = np.subtract(*[mech.energy(x, np.zeros(3))[1] for x in around]) / 2e-5  # virtual work
        assert_close(tau[0], work, 1e-8 * factor)
    q, tau = heavier(library.acrobot(), factor).trim([1.0, 1.2], hold=["elbow"])
    assert_close(q, library.acrobot().trim([1.0, 1.2], hold=["elbow"]).q, 1e-9)


def test_an_equilibrium_that_is_none_is_refused_however_heavy():
    heavy = heavier(library.four_bar().with_drive(actuated=[]), 1e8)
    with pytest.raises(InvalidValue, match=r"no equilibrium near.*left over in 'crank'"):
        heavy.trim(heavy.project([1.0, 0.0, 1.5], hold=["crank"])[0], hold=["crank"])


@pytest.mark.parametrize(
    ("at", "slope"), [(-1.5, 0.0), (-1.0, -0.4), (-0.5, -0.4), (0.0, -0.4), (1.0, -0.1), (1.5, -0.1), (3.0, -0.1)]
)
@pytest.mark.parametrize("plane", [False, True])
def test_the_slope_at_a_point_of_a_table_is_that_of_the_line_behind_it(at, slope, plane):
    """It was zero, which neither line beside the point has, as of a friction that stands still.

    At the ends it was that outside of the table, as of a tyre's at a slip of 0 where its table begins.
    """
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd, points, values = sim.blockdiagram(), [-1.0, 0.0, 1.0, 3.0], np.array([-0.4, 0.0, 0.4, 0.6])
    speed, back = bd.INTEGRATOR(at, name="speed"), bd.GAIN(-1.0)
    if plane:
        friction = bd.LOOKUP2D(points, [0.0, 1.0, 2.0], np.tile(values, (3, 1)).T)
        bd.connect(bd.CONSTANT(1.0), friction.v)
    else:
        friction = bd.LOOKUP1D(points, values)
    bd.connect(speed, friction[0])
    bd.connect(friction, back)
    bd.connect(back, speed)
    np.testing.assert_allclose(sim.linearize(bd, [at]).A, [[slope]], atol=1e-12)
    if -1.0 < at <= 0.0:
        found = sim.gradient(bd, "speed", ["speed"], T=0.5, rtol=1e-10, atol=1e-12)
        assert found.gradient == pytest.approx([np.exp(-0.2)], abs=1e-9)
