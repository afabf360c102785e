"""Model predictive control: against casadi's solvers, the regulator, and both engines."""

from __future__ import annotations

import math
import pickle
import sys

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import cstormpy as cs
from cstormpy.control import PredictiveController
from cstormpy.control.predictive import sampled_model
from cstormpy.errors import BlockError, InvalidType, InvalidValue, ShapeError
from cstormpy.mechanism import library

pytest.importorskip("daqp")
UPRIGHT = math.pi / 2
CART = library.cart_pole()
DT = 0.05
#: Of the cart: limited force and speed, and a pole that should stay within 0.1 rad.
ASKED = {
    "Q": [10.0, 10.0, 1.0, 1.0],
    "R": 0.1,
    "low": -2.6,
    "high": 2.6,
    "x_low": [-np.inf, -np.inf, -0.8, -np.inf],
    "x_high": [np.inf, np.inf, 0.8, np.inf],
    "C": [[0.0, 1.0, 0.0, 0.0]],
    "y_low": -0.1,
    "y_high": 0.1,
    "penalty": 300.0,
}


def casadi_plan(mpc, asked):
    """Return a function of (x, reference): inputs and excess of the programme with its states, by qpOASES in casadi."""
    casadi = pytest.importorskip("casadi")
    n, m, N = mpc.n, mpc.m, mpc.N
    e, v, s, r = (casadi.SX.sym(*each) for each in (("e", n, N + 1), ("v", m, N), ("s", 1), ("r", n)))
    C, Q, R = np.array(asked["C"]), np.diag(asked["Q"]), asked["R"] * np.eye(m)
    cost, rows = asked["penalty"] * s**2 / 2, []
    for k in range(N):
        rows.append(e[:, k + 1] - mpc.A @ e[:, k] - mpc.B @ v[:, k])
        weight, off = mpc.P if k == N - 1 else Q, e[:, k + 1] - r
        cost += (off.T @ weight @ off + v[:, k].T @ R @ v[:, k]) / 2
    low, high = [0.0] * (n * N), [0.0] * (n * N)
    for k in range(1, N + 1):
        rows += [C @ e[:, k] - s, C @ e[:, k] + s]
        low += [-np.inf, asked["y_low"]]
        high += [asked["y_high"], np.inf]
    variables = casadi.vertcat(casadi.reshape(e, -1, 1), casadi.reshape(v, -1, 1), s)
    options = {"printLevel": "none", "error_on_fail": True}
    programme = {"x": variables, "f": cost, "g": casadi.vertcat(*rows), "p": r}
    solver = casadi.qpsol("programme", "qpoases", programme, options)
    states = [np.tile(np.array(asked[name]) - mpc.x, N) for name in ("x_low", "x_high")]

    def plan(x, reference):
        now = x - mpc.x
        lbx = np.concatenate([now, states[0], np.full(m * N, asked["low"]), [0.0]])
        ubx = np.concatenate([now, states[1], np.full(m * N, asked["high"]), [np.inf]])
        found = np.array(solver(lbx=lbx, ubx=ubx, lbg=low, ubg=high, p=reference - mpc.x)["x"]).ravel()
        return found[n * (N + 1) : -1].reshape(N, m), found[-1]

    return plan


def test_plans_are_those_of_casadi():
    """The programme without states, by DAQP, against the one with states, by qpOASES: along a motion, warm-started."""
    mpc = PredictiveController.of_mechanism(CART, DT, horizon=12, **ASKED)
    x, far = np.array([0.3, UPRIGHT + 0.12, 0.2, -0.1]), np.array([-0.6, UPRIGHT, 0.0, 0.0])
    reached, witness = np.zeros(3, dtype=bool), casadi_plan(mpc, ASKED)
    for k in range(12):
        goal = far if k > 3 else mpc.x
        plan = mpc.plan(x, goal)
        inputs, excess = witness(x, goal)
        np.testing.assert_allclose(plan.inputs, inputs, atol=1e-8)
        np.testing.assert_allclose(plan.exceeded, excess, atol=1e-8)
        fast = np.isclose(np.abs(plan.states[:, 2]), 0.8).any()
        reached |= [np.isclose(np.abs(inputs), 2.6).any(), fast, excess > 1e-6]
        x = mpc.x + mpc.A @ (x - mpc.x) + mpc.B @ plan.inputs[0]
    assert reached.all(), "each kind of limit is to be reached"


@pytest.mark.parametrize("horizon", [5, 200])
def test_without_limits_it_is_the_regulator(horizon):
    """Over 10 s a pole grows by 1e15: the programme lost its digits, and then ended in the solver's words."""
    mpc = PredictiveController.of_mechanism(CART, DT, horizon=horizon, Q=[10, 10, 1, 1], R=0.5)
    S = solve_discrete_are(mpc.A, mpc.B, np.diag([10.0, 10.0, 1.0, 1.0]), 0.5 * np.eye(1))
    K = np.linalg.solve(0.5 * np.eye(1) + mpc.B.T @ S @ mpc.B, mpc.B.T @ S @ mpc.A)
    for x in np.random.default_rng(1).normal(size=(5, 4)):
        np.testing.assert_allclose(mpc(mpc.x + 0.3 * x), -K @ (0.3 * x), rtol=1e-9, atol=1e-9)


def test_plans_do_not_depend_on_units():
    """Weights below 1e-11 were taken for none by the solver, and the plan ended in its words."""
    A, B = sampled_model([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.1)
    plans = []
    for force, cost in ((1.0, 1.0), (1e3, 1e-8)):
        costs = {"Q": [cost, 0.0], "R": 0.1 * cost / force**2, "penalty": 10.0 * cost}
        made = PredictiveController(A, B / force, low=-force, high=force, C=[0.0, 1.0], y_low=-0.15, **costs)
        plan = made.plan([1.0, 0.1])
        plans.append([*(plan.inputs[:, 0] / force), *plan.exceeded])
    assert min(plans[0]) == pytest.approx(-1.0) and plans[0][-1] > 0.1, "both limits are to be reached"
    np.testing.assert_allclose(*plans, rtol=1e-8, atol=1e-10)


def test_a_plan_does_not_depend_on_what_was_planned_before():
    mpc = PredictiveController.of_mechanism(CART, DT, **ASKED)
    states = mpc.x + np.random.default_rng(2).normal(size=(20, 4)) * [0.3, 0.1, 0.1, 0.1]
    warm = [mpc(x) for x in states]
    cold = [pickle.loads(pickle.dumps(mpc))(x) for x in states]
    np.testing.assert_allclose(warm, cold, atol=1e-9)


def test_a_hinge_that_went_round_is_at_the_same_place():
    mpc = PredictiveController.of_mechanism(CART, DT, **ASKED)
    at = np.array([0.1, UPRIGHT + 0.05, 0.0, 0.0])
    np.testing.assert_allclose(mpc(at + 2 * mpc.turn), mpc(at), atol=1e-9)


def test_what_is_to_be_reached_is_approached_by_the_shorter_way():
    """Half a turn away from the point of the model an arm a little beside its reference went all the way round."""
    mpc = PredictiveController.of_mechanism(cs.library.furuta(), DT, Q=[10, 10, 1, 1])
    arm = np.array([1.0, 0.0, 0.0, 0.0])
    expected = mpc(mpc.x - 0.3 * arm, mpc.x)
    for beyond in (1.0, 3.0, 3.3, 9.0):
        np.testing.assert_allclose(mpc(mpc.x + (beyond - 0.3) * arm, mpc.x + beyond * arm), expected, atol=1e-9)


def run(engine, **asked):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(CART, q0=[0.3, UPRIGHT + 0.12], name="plant")
    state = bd.MUX(2, name="state")
    mpc = bd.MPC(bd.clock(DT), CART, name="mpc", **{**ASKED, **asked})
    bd.connect(plant[0:2], state[0:2])
    bd.connect(state, mpc)
    bd.connect(mpc, plant.tau)
    return sim, bd, sim.run(bd, T=4.0, rtol=1e-8, atol=1e-10, watch=["mpc", "plant.q", "plant.qd"])


def test_the_cart_is_brought_back_in_both_engines_within_its_limits():
    found = [run(engine)[2] for engine in ("interpreted", "compiled")]
    for name in ("plant.q", "plant.qd"):
        ends = [out.signal(name)[-1] for out in found]
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)
    out = found[1]
    assert np.abs(out.signal("mpc")).max() <= 2.6 + 1e-9
    assert np.abs(out.signal("plant.qd")[:, 0]).max() < 0.8 + 0.01  # the model is linear, the cart is not
    assert np.abs(out.signal("plant.q")[-1] - [0.0, UPRIGHT]).max() < 0.02


@pytest.mark.parametrize("name", ["four_bar", pytest.param("five_bar", marks=pytest.mark.slow)])
def test_a_closed_mechanism_is_brought_to_rest_within_its_limits(name):
    """It was refused. Its model is of the joints that loops leave free, its states are those of all."""
    mech = getattr(library, name)(damping=0.05)
    goal = mech.trim(mech.project(np.array([1.0, -1.8, -2.0, 2.0][: mech.n]))[0], hold=mech.actuated).q
    plain = PredictiveController.of_mechanism(mech, 0.02, goal, horizon=5, R=0.5)
    S = solve_discrete_are(plain.A, plain.B, np.eye(plain.n), 0.5 * np.eye(plain.m))
    K = np.linalg.solve(0.5 * np.eye(plain.m) + plain.B.T @ S @ plain.B, plain.B.T @ S @ plain.A)
    start = mech.project(goal + 0.1 * np.cos(np.arange(mech.n)), hold=mech.actuated)[0]
    free = [mech.joint_index(state) for state in plain.states[: plain.n // 2]]
    off = np.concatenate([(start - goal)[free], 0.0 * goal[free]])
    np.testing.assert_allclose(plain(np.concatenate([start, 0 * start])), plain.u - K @ off, rtol=1e-9)
    most = 0.8 * np.abs(K @ off).max()
    ends = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        plant, state = bd.HYBRIDDYNAMICS(mech, q0=start, name="plant"), bd.MUX(2)
        mpc = bd.MPC(bd.clock(0.02), mech, goal=goal, R=0.5, low=plain.u - most, high=plain.u + most, name="mpc")
        bd.connect(plant[0:2], state[0:2])
        bd.connect(state, mpc)
        bd.connect(mpc, plant.tau)
        out = sim.run(bd, T=6.0, rtol=1e-8, atol=1e-10, watch=["mpc"])
        assert np.abs(out.signal("mpc") - plain.u).max() == pytest.approx(most, abs=1e-9)
        assert np.abs(out.x[-1] - np.concatenate([goal, 0 * goal])).max() < 1e-3
        ends.append(out.x[-1])
    np.testing.assert_allclose(*ends, atol=1e-8)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_limit_that_cannot_be_kept_is_named(engine):
    with pytest.raises(BlockError, match=r"mpc at t = 0 s: no inputs .* keep 'pole' from going above 1.6 after 1 of"):
        run(engine, x_high=[np.inf, 1.6, np.inf, np.inf])


def test_a_sampled_linear_model_will_do_and_must_have_the_period_of_the_clock():
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    push, mass = bd.CONSTANT(0.0, name="push"), bd.STATESPACE([[0, 1], [0, 0]], [[0], [1]], np.eye(2), name="mass")
    bd.connect(push, mass)
    model = sim.linearize(bd, inputs=["push"], outputs=["mass"], dt=0.1)
    A, B = sampled_model([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.1)
    other = sim.blockdiagram()
    block = other.MPC(other.clock(0.1), model, low=-1.0, high=1.0)
    controller = PredictiveController(A, B, low=-1.0, high=1.0)
    assert repr(controller) == f"<PredictiveController: 2 states, 1 input, {controller.N} periods>"
    expected = controller([0.4, 0.1])
    np.testing.assert_allclose(block.output(0.0, [np.array([0.4, 0.1])], None)[0], expected, atol=1e-9)
    with pytest.raises(InvalidValue, match=r"model: is sampled every 0.1 s, the clock ticks every 0.2 s"):
        other.MPC(other.clock(0.2), model)

    moving = sim.linearize(bd, x=[0.0, 0.3], inputs=["push"], outputs=["mass"], dt=0.1)
    with pytest.raises(InvalidValue, match=r"that of no equilibrium, state 'mass:x_0' changes by 0.3 a second"):
        other.MPC(other.clock(0.1), moving)

    arm, goal = cs.library.planar_2r(), np.array([0.3, 0.4])
    load = arm.inverse_dynamics(goal, [0, 0], [0, 0])
    for opened, given in ((["hold"], load), ([], 0.0 * load)):  # it takes the signal's place, or is added to it
        bd = sim.blockdiagram()
        bd.connect(bd.CONSTANT(load, name="hold"), bd.HYBRIDDYNAMICS(arm, q0=goal))
        held = sim.linearize(bd, inputs=["hold"], opened=opened, dt=0.1)
        block = other.MPC(other.clock(0.1), held)
        np.testing.assert_allclose(block.output(0.0, [np.r_[goal, 0, 0]], None)[0], given, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"model": 3}, InvalidType, "model: expected a mechanism"),
        ({"R": 0.0}, InvalidValue, "R: must be positive definite"),
        ({"low": 2.0, "high": 1.0}, InvalidValue, "low, high: there is nothing between 2 and 1 for 'cart torque'"),
        ({"x_high": [1.0]}, ShapeError, "x_high: "),
        ({"C": [[1.0, 0.0]]}, ShapeError, "C: "),
        ({"horizon": 0}, InvalidValue, "horizon: "),
        ({"goal": [0.0, 0.3]}, InvalidValue, "MPC: goal .* is no equilibrium"),
        ({"penalty": -1.0}, InvalidValue, "penalty: expected a positive number"),
    ],
)
def test_what_cannot_be_made_is_refused(options, kind, message):
    bd = cs.Simulation(live=False).blockdiagram()
    with pytest.raises(kind, match=message):
        bd.MPC(bd.clock(0.1), **{"model": CART, **options})


def test_states_and_references_are_looked_at():
    """One number was taken for all states, and one that is none gave an input that is none."""
    mpc = PredictiveController(np.diag([1.1, 0.5]), [[0.0], [1.0]], P=1.0, horizon=60, low=-1, high=1, x_high=10)
    for states, kind, message in (
        (([1.0],), ShapeError, r"x: expected shape \(2,\), got \(1,\)"),
        (([np.nan, 0.0],), InvalidValue, "x: expected finite numbers, got nan"),
        (([0.0, 0.0], [1.0]), ShapeError, r"reference: expected shape \(2,\)"),
        (([1.0, 1.0],), InvalidValue, "keep 'state 0' from going above 10 after 60 of 60 periods"),  # as no input does
    ):
        with pytest.raises(kind, match=message):
            mpc(*states)


def test_the_numbers_of_a_programme_are_not_set_in_vain():
    mpc = PredictiveController([[0.9]], [[1.0]], low=-1.0)
    for name in ("Q", "low", "penalty", "horizon"):
        with pytest.raises(AttributeError, match=f"'{name}' cannot be set later, make another controller with it"):
            setattr(mpc, name, 0.5)
    assert pickle.loads(pickle.dumps(mpc))([3.0]).tolist() == [-1.0]


def test_what_the_solver_gives_up_is_said(monkeypatch):
    """With limits of inputs alone there is none that cannot be kept."""
    mpc = PredictiveController([[1.0]], [[1.0]], horizon=3, low=-1, high=1)
    monkeypatch.setattr(mpc, "_solve", lambda e, r: (np.zeros(3), -4, {}))
    with pytest.raises(InvalidValue, match=r"programme was not solved \(DAQP says -4\)"):
        mpc([0.5])


def test_without_its_solver_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(BlockError, match=r"pip install 'cstormpy\[mpc\]'"):
        PredictiveController(np.eye(1), np.eye(1))
