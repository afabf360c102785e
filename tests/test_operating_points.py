"""Operating points of diagrams: against closed forms, and what is told where there is none."""

import math

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import cstormpy as cs
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="interpreted")


def test_an_operating_point_frees_an_input_port(sim):
    mech = cs.library.planar_2r().with_gravity((0.0, -9.81, 0.0))
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT([0.0, 0.0], name="torque"), bd.HYBRIDDYNAMICS(mech, name="plant").tau)
    point = sim.trim(bd, {"plant": [0.3, -0.8, 0.0, 0.0]}, inputs=["plant.tau"], hold=["plant"])
    assert point.success and point.inputs == ("plant.tau",) and "plant.elbow.tau = " in str(point)
    np.testing.assert_allclose(point.u, mech.inverse_dynamics([0.3, -0.8], [0, 0], [0, 0]), rtol=0, atol=1e-12)
    assert np.abs(sim.linearize(bd, point.x, point.u, inputs=point.inputs).rate).max() < 1e-12
    with pytest.raises(UnknownName, match=r"trim: inputs: port of block 'plant' 'tua' does not exist; .*'tau'"):
        sim.trim(bd, inputs=["plant.tua"])


def test_an_operating_point_holds_the_arm_against_gravity(sim):
    mech = cs.library.planar_2r().with_gravity((0.0, -9.81, 0.0))
    bd = sim.blockdiagram()
    plant, torque, effort = bd.HYBRIDDYNAMICS(mech, name="plant"), bd.CONSTANT([0.0, 0.0], name="torque"), bd.EFFORT()
    bd.connect(torque, plant, effort)
    q = [0.3, -0.8]
    point = sim.trim(bd, {"plant": [*q, 0.0, 0.0]}, inputs=["torque"], hold=["plant"])
    assert point.success and max(map(abs, point.residual.values())) < 1e-12
    np.testing.assert_allclose(point.u, mech.inverse_dynamics(q, [0, 0], [0, 0]), rtol=0, atol=1e-12)
    model = sim.linearize(bd, point.x, point.u, inputs=point.inputs)
    np.testing.assert_allclose(model.A[:4, :4], mech.linearize(q, tau=point.u).A, rtol=0, atol=1e-10)
    # without motors the arm hangs
    hanging = sim.trim(bd, {"plant": [-1.4, 0.2, 0.0, 0.0]})
    np.testing.assert_allclose(hanging.x[:2], [-math.pi / 2, 0.0], atol=1e-9)
    # speeds were printed as -9.6e-32, and a torque as "kick[0][0]"
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", name="plant")
    bd.connect(bd.CONSTANT([0.0], name="kick"), plant.tau)
    point = sim.trim(bd, {"plant": [-1.6, 0.2, 0.0, 0.0]}, inputs=["kick"])
    printed = dict(line.split(" = ") for line in str(point).replace("  ", "").splitlines()[1:])
    assert printed["plant.elbow.qd"] == "0" and "kick[0]" in printed and point.names == ("kick[0][0]",)
    model = sim.linearize(bd, point.x, point.u, inputs=["kick"], outputs=["kick", "plant.q"])
    assert model.captions["kick[0][0]"] == "kick[0]" and model.captions["plant.q[1]"] == "plant.elbow.q"


def test_an_operating_point_may_move_and_give_an_output(sim):
    bd = sim.blockdiagram()
    drive = bd.CONSTANT(0.0, name="drive")
    speed = bd.LTI_SISO([2.0], [1.0, 4.0], name="speed")
    angle = bd.INTEGRATOR(x0=0.0, name="angle")
    total = bd.SUM("++", name="total")
    bd.connect(drive, speed)
    bd.connect(speed, angle, total[0])
    bd.connect(angle, total[1])
    point = sim.trim(bd, inputs=["drive"], rates={"angle": None}, outputs={"speed[0]": 3.0}, hold=["angle"])
    assert point.success and point.u[0] == pytest.approx(6.0, abs=1e-10) and "drive" in str(point)


def test_more_is_asked_of_an_operating_point_than_is_free(sim):
    """Rates and an output, of states alone, ended in an error of shapes where the rates came to rest elsewhere."""
    bd = sim.blockdiagram()
    x, y = bd.INTEGRATOR(0.1, name="x"), bd.INTEGRATOR(0.0, name="y")
    rate = bd.FUNCTION(lambda x, y: -np.arctan(x - 2.0) - y, nin=2, name="rate")
    bd.connect(x, rate[0])
    bd.connect(y, rate[1], follow := bd.FUNCTION(lambda y: -y, name="follow"))
    bd.connect(rate, x)
    bd.connect(follow, y)
    there = sim.trim(bd, outputs={"rate": 0.0})
    np.testing.assert_allclose(there.x, [2.0, 0.0], atol=1e-9)
    elsewhere = sim.trim(bd, outputs={"x": 0.5})
    assert there.success and not elsewhere.success and "no operating point was found" in elsewhere.message


def test_where_there_is_no_operating_point_the_states_are_named(sim, caplog):
    bd = sim.blockdiagram()
    push, x = bd.CONSTANT(1.0, name="push"), bd.INTEGRATOR(x0=0.0, name="x")
    slope, y = bd.GAIN(2.0, name="slope"), bd.INTEGRATOR(x0=0.0, name="y")
    bd.connect(push, x)
    bd.connect(x, slope)
    bd.connect(slope, y, bd.NULL())
    bd.connect(y, bd.GAIN(1.0))
    with caplog.at_level("INFO", logger="cstormpy"):
        point = sim.trim(bd)
    assert not point.success and "rate of x" in point.message and "rate of x" in caplog.text
    with pytest.raises(InvalidValue, match="nothing is free: all states are held"):
        sim.trim(bd, hold=["x", "y"])
    still = sim.blockdiagram()
    still.connect(still.CONSTANT(1.0), still.NULL())
    with pytest.raises(InvalidValue, match="nothing is free: the diagram has no states"):
        sim.trim(still)


def test_the_rate_of_a_state_that_nobody_takes_is_left_out_by_name(sim):
    """It was called an operating point without a word, while the state ran away."""
    bd = sim.blockdiagram()
    push, x = bd.CONSTANT(1.5, name="push"), bd.INTEGRATOR(x0=0.5, name="x")
    bd.connect(push, x)
    bd.connect(x, bd.NULL())
    point = sim.trim(bd)
    assert point.success and point.left_out == {"x:x_0": 1.5}
    assert "left out, as no other block takes the state: rate of x:x_0 = 1.5" in point.message
    asked = sim.trim(bd, inputs=["push"], rates={"x:x_0": 0.0})
    assert (asked.message, asked.left_out) == ("an operating point", {}) and asked.u == pytest.approx([0.0], abs=1e-12)
    assert not sim.trim(bd, rates={"x": 0.0}).success
    any_will_do = sim.trim(bd, rates={"x": None})
    assert (any_will_do.message, any_will_do.left_out) == ("an operating point", {})


def test_an_operating_point_tells_of_sampled_states_that_are_held(sim):
    """The loop would move at its next tick: the sampled integrator is still given an error of one."""
    bd = sim.blockdiagram()
    wanted, error = bd.CONSTANT(1.0), bd.SUM("+-")
    total = bd.INTEGRATOR_S(bd.clock(10, "Hz"), gain=0.5, name="total")
    lag = bd.LTI_SISO([1.0], [1.0, 1.0], name="lag")
    for start, end in ((wanted, error[0]), (lag, error[1]), (error, total), (total, lag)):
        bd.connect(start, end)
    point = sim.trim(bd)
    assert point.success and point.held == ("total",)
    assert "sampled states being held" in point.message and point.message.endswith(": total")
    assert abs(sim.run(bd, T=1.0, start=point.x).x[-1, 0] - point.x[0]) > 0.1


@pytest.mark.parametrize("inputs", [{}, {"inputs": ["torque"]}])
@pytest.mark.parametrize("q0", [(0.0, 0.0), (0.1, 0.1)])
def test_a_point_is_found_where_more_is_free_than_asked_for(sim, inputs, q0):
    """From zero the first step was as long as the trust region, over the point to another as far from it."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.planar_2r(), name="plant")
    bd.connect(bd.CONSTANT([0.0, 0.0], name="torque"), plant)
    point = sim.trim(bd, {"plant": [*q0, 0.0, 0.0]}, rates={"plant": None}, outputs={"plant.q": [0.3, 0.4]}, **inputs)
    assert point.success
    np.testing.assert_allclose(point.x[:2], [0.3, 0.4], rtol=0, atol=1e-9)


@pytest.mark.parametrize("start", [[0.5, 0.5], [0.9, -0.9], [-1.0, 0.0]])
def test_a_loop_with_limits_of_torque_is_brought_to_rest(start):
    """The search ended where speeds made up for accelerations: from half of such starts no point was found."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    arm = cs.library.planar_2r()
    plant, error, torque = bd.HYBRIDDYNAMICS(arm, q0=start, name="plant"), bd.SUM("+-"), bd.SUM("++", name="torque")
    bd.connect(bd.CONSTANT([1.0, 0.0]), error[0])
    bd.connect(plant.q, error[1])
    bd.connect(error, gain := bd.GAIN(30.0))
    bd.connect(gain, limited := bd.SATURATION(-15.0, 15.0))
    bd.connect(plant.qd, damper := bd.GAIN(-2.0))
    bd.connect(limited, torque[0])
    bd.connect(damper, torque[1])
    bd.connect(torque, plant.tau)
    point = sim.trim(bd)
    assert point.success
    q, qd = point.x[:2], point.x[2:]
    np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    tau = np.clip(30.0 * (np.array([1.0, 0.0]) - q), -15.0, 15.0)
    np.testing.assert_allclose(arm.inverse_dynamics(q, qd, qd), tau, atol=1e-7)


def wound_up(sim, x0):
    """Return a lag under a PI law whose integrator has limits: y' = i + 0.5 e - 3 y, i' = e, e = 2 - y, |i| <= 1."""
    bd = sim.blockdiagram()
    y, i, e, rate = bd.INTEGRATOR(name="y"), bd.INTEGRATOR(x0, min=-1.0, max=1.0, name="i"), bd.SUM("+-"), bd.SUM("+++")
    p, d = bd.GAIN(0.5), bd.GAIN(-3.0)
    bd.connect(bd.CONSTANT(2.0, name="wanted"), e[0])
    bd.connect(y, e[1], d)
    bd.connect(e, i, p)
    for k, term in enumerate((p, d, i)):
        bd.connect(term, rate[k])
    bd.connect(rate, y)
    return bd


@pytest.mark.parametrize("x0", [0.0, 1.0, -1.0])
def test_an_integrator_may_stay_at_its_limit(sim, x0):
    """None was found but from the limit, and there one that is none, at which the integrator would leave it."""
    point = sim.trim(bd := wound_up(sim, x0))
    assert point.success and point.x[1] == 1.0
    np.testing.assert_allclose(point.x[0], 2.0 / 3.5, rtol=1e-12)
    out = sim.run(bd, T=1.0, start=point.x)
    np.testing.assert_allclose(out.x, np.tile(point.x, (len(out.x), 1)), atol=1e-9)
    # from the limit to one within, where another value is wanted
    free = sim.trim(bd, inputs=["wanted"], outputs={"y": 0.2})
    assert free.success
    np.testing.assert_allclose([*free.x, *free.u], [0.2, 0.6, 0.2], atol=1e-9)


def test_an_integrator_that_is_only_pushed_ends_at_its_limit(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(-0.3), i := bd.INTEGRATOR(min=-4.0, max=5.0, name="i"))
    bd.connect(i, bd.LTI_SISO([2.0], [1.0, 1.0], name="lag"))
    point = sim.trim(bd)
    assert point.success and point.x[0] == -4.0
    np.testing.assert_allclose(sim.run(bd, T=60.0).x[-1], point.x, atol=1e-6)


@pytest.mark.parametrize(("rest", "high", "x0"), [(5e-11, 1e-10, 1e-12), (3e-10, 1.0, 0.5)])
def test_a_state_near_a_limit_is_not_taken_there(sim, rest, high, x0):
    """x' = rest - x: what was within 1e-9 of a limit was put there, and called an operating point."""
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(x0, min=0.0, max=high, name="x"), bd.FUNCTION(lambda x: rest - x)
    bd.connect(x, rate)
    bd.connect(rate, x)
    point = sim.trim(bd)
    assert point.success
    np.testing.assert_allclose(point.x, [rest], rtol=0.0, atol=1e-16)


@pytest.mark.parametrize(
    ("rate", "low", "high", "x0", "gain", "y0"),
    [
        (lambda x: 3e-10 - x, 0.0, 1e-9, 5e-10, 1e9, 0.0),
        (lambda x: -0.3 + 0.0 * x, 0.7, 2.0, 1.1, 1e8, 1e8 * (1.1 - 0.7)),
        (lambda x: -0.3 + 0.0 * x, 0.1, 2.0, 0.9, 1e10, 1e10 * (0.9 - 0.1)),
        (
            lambda x: -0.4 + 0.0 * x,
            0.25,
            2.0,
            1.07,
            1e8,
            1e8 * (1.07 - 0.25),
        ),  # where a trust region missed by rounding
        (lambda x: -0.7 + 0.0 * x, 0.64, 2.0, 1.35, 1e9, 1e9 * (1.35 - 0.64)),
    ],
)
def test_what_follows_a_state_at_its_limit_rests_too(sim, rate, low, high, x0, gain, y0):
    """y' = gain (x - low) - y was told from before x was put at its limit: its rate was 1, 0.019 and 0.0016 there."""
    bd = sim.blockdiagram()
    x, y = bd.INTEGRATOR(x0, min=low, max=high, name="x"), bd.INTEGRATOR(y0, name="y")
    pushed, behind = bd.FUNCTION(rate), bd.FUNCTION(lambda x, y: gain * (x - low) - y, nin=2)
    bd.connect(x, pushed, behind[0])
    bd.connect(y, behind[1])
    bd.connect(pushed, x)
    bd.connect(behind, y)
    point = sim.trim(bd)
    assert point.success and low <= point.x[0] <= high
    moves = gain * (point.x[0] - low) - point.x[1]
    assert abs(moves) < 1e-8 and point.residual["rate of y:x_0"] == pytest.approx(moves, abs=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_states_with_limits_rest_where_a_potential_is_least(sim, seed):
    """x' = b - Q x within limits stays where the quadratic form is least in the box, as scipy's lsq_linear finds it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    root = np.triu(rng.normal(size=(n, n)), 1) + np.diag(rng.uniform(0.5, 2.0, n))
    Q, b = root.T @ root, rng.choice([0.3, 3.0, 30.0]) * rng.normal(size=n)
    low, high = -rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 1.0, n)
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(rng.uniform(low, high), min=low, max=high, name="x"), bd.FUNCTION(lambda x: b - Q @ x)
    bd.connect(x, rate)
    bd.connect(rate, x)
    point = sim.trim(bd)
    assert point.success
    least = lsq_linear(root, np.linalg.solve(root.T, b), (low, high), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(point.x, least, atol=1e-8)


def less_six(bd, source, state):
    """Wire i' = (u > 0.5 ? u : 3 u) - 6, of a source u."""
    switch, one, three, rate = bd.SWITCH(0.5), bd.GAIN(1.0), bd.GAIN(3.0), bd.SUM("+-")
    bd.connect(source, one, three, switch[1])
    bd.connect(one, switch[0])
    bd.connect(three, switch[2])
    bd.connect(switch, rate[0])
    bd.connect(bd.CONSTANT(6.0), rate[1])
    bd.connect(rate, state)
    return bd


@pytest.mark.parametrize("x0", [0.0, 1.0])
def test_what_switches_on_the_way_to_a_point_is_as_it_is_there(sim, x0):
    """From the other branch i = 2 was called an operating point, from which a run went away at 6/s."""
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0, name="i")
    point = sim.trim(less_six(bd, state, state))
    assert point.success
    np.testing.assert_allclose(point.x, [6.0], rtol=1e-12)
    np.testing.assert_allclose(sim.run(bd, T=0.1, start=point.x).x[-1], [6.0], rtol=1e-9)


@pytest.mark.parametrize("u", [None, [2.0]])
def test_what_switches_by_an_input_is_as_the_one_that_is_found_has_it(sim, u):
    bd = sim.blockdiagram()
    less_six(bd, bd.CONSTANT(0.0, name="push"), bd.INTEGRATOR(name="i"))
    point = sim.trim(bd, inputs=["push"], u=u, rates={"i": 0.0})
    assert point.success
    np.testing.assert_allclose(point.u, [6.0], rtol=1e-12)


def test_a_point_at_which_a_block_switches_is_none(sim):
    """Each branch of i' = (i > 0.5 ? -i : 1 - i) rests where the other one holds."""
    bd = sim.blockdiagram()
    state, switch, rate = bd.INTEGRATOR(0.0, name="i"), bd.SWITCH(0.5, name="s"), bd.SUM("+-")
    bd.connect(bd.CONSTANT(0.0), switch[0])
    bd.connect(state, switch[1], rate[1])
    bd.connect(bd.CONSTANT(1.0), switch[2])
    bd.connect(switch, rate[0])
    bd.connect(rate, state)
    point = sim.trim(bd)
    assert not point.success and "where one would be, block 's' (SWITCH) switches" in point.message


def test_single_numbers_of_outputs_and_of_rates_may_be_asked_for(sim):
    """One number of a position was refused, and None within a list too: of a plane only the height was to be given."""
    arm = cs.library.planar_2r(damping=0.1).with_gravity((0.0, -9.81, 0.0))
    for outputs in ({"tip.position[1]": 0.3}, {"tip.position": [None, 0.3, None]}):
        bd = sim.blockdiagram()
        plant, tip = bd.HYBRIDDYNAMICS(arm, name="plant"), bd.KINEMATICS(arm, tool=(1, 0, 0), name="tip")
        bd.connect(plant[0:2], tip[0:2])
        bd.connect(bd.CONSTANT([0.0, 0.0], name="torque"), plant.tau)
        start = {"plant": [0.4, -0.6, 0.0, 0.0]}
        point = sim.trim(bd, start, inputs=["torque"], hold=["plant.elbow.q"], outputs=outputs)
        q = point.x[:2]
        assert point.success and point.x[1] == -0.6 and list(point.residual)[-1] == "tip.position[1]"
        assert arm.forward_kinematics(q)[-1, 1, 3] + np.sin(q.sum()) == pytest.approx(0.3, abs=1e-8)
        moves = sim.trim(bd, start, inputs=["torque"], hold=["plant.elbow.q"], rates={"plant": [0.2, None, 0, 0]})
        assert moves.success and moves.x[2] == pytest.approx(0.2) and moves.residual["rate of plant.elbow.qd"] < 1e-9
        assert "rate of plant.elbow.q" not in moves.residual
    for wrong in ({"tip.position[3]": 0.3}, {"tip.positon[1]": 0.3}, {"top.position[1]": 0.3}):
        with pytest.raises(UnknownName, match=r"^trim: outputs: "):
            sim.trim(bd, inputs=["torque"], outputs=wrong)
    with pytest.raises(InvalidValue, match=r"^trim: outputs: tip\.position is named twice"):
        sim.trim(bd, inputs=["torque"], outputs={"tip.position[1]": 0.3, "tip.position": 0.2})
    with pytest.raises(ShapeError, match=r"^trim: outputs\['tip\.position'\]: expected shape \(3,\), got \(2,\)"):
        sim.trim(bd, inputs=["torque"], outputs={"tip.position": [None, 0.2]})


def flight(sim):
    """Return a mass in air that a thrust moves against drag of the square of its speed, v' = (f - v |v| / 2) / 3."""
    bd = sim.blockdiagram()
    speed, drag = bd.INTEGRATOR(5.0, name="speed"), bd.FUNCTION(lambda v: 0.5 * v * abs(v), name="drag")
    net, mass = bd.SUM("+-", name="net"), bd.GAIN(1 / 3.0, name="mass")
    bd.connect(bd.CONSTANT(1.0, name="thrust"), net[0])
    bd.connect(speed, drag)
    bd.connect(drag, net[1])
    bd.connect(net, mass)
    bd.connect(mass, speed)
    return bd


def test_models_are_made_and_searches_begun_at_an_operating_point(sim):
    """It was refused, and its states alone, with the thrust that the diagram has, are no operating point."""
    bd = flight(sim)
    point = sim.trim(bd, {"speed": 8.0}, inputs=["thrust"], hold=["speed"])
    assert point.u == pytest.approx([32.0]) and point.given["thrust[0]"] == pytest.approx([32.0])
    for inputs in ((), ["thrust"], ["thrust", "net"]):
        model = sim.linearize(bd, point, inputs=inputs, outputs=["speed"])
        assert model.A == pytest.approx(np.array([[-8.0 / 3.0]])) and abs(model.rate[0]) < 1e-9
        assert model.inputs[0] == "thrust[0]" and model.B[0, 0] == pytest.approx(1.0 / 3.0)
    # a gust alone, at the thrust of the point, which is held
    gust = sim.linearize(bd, point, inputs=["net"], outputs=["speed"])
    assert gust.inputs == ("net[0]",) and gust.B == pytest.approx(np.array([[1.0 / 3.0]])) and abs(gust.rate[0]) < 1e-9
    assert gust.A == pytest.approx(np.array([[-8.0 / 3.0]])) and gust.y == pytest.approx([8.0])
    assert sim.linearize(bd, point, [20.0], inputs=["thrust"]).rate == pytest.approx([-4.0])
    for inputs in ((), ["thrust"]):
        again = sim.trim(bd, point, inputs=inputs, hold=["speed"])
        assert again.success and again.x == pytest.approx([8.0]) and again.u == pytest.approx([32.0])
    with pytest.raises(InvalidValue, match=r"^trim: the operating point has a value of its own for thrust\[0\]; name"):
        sim.trim(bd, point, inputs=["net"])
    with pytest.raises(InvalidType, match=r"got an OperatingPoint; its states are its x, and its inputs those of"):
        sim.run(bd, 1.0, start=point)


def test_an_output_that_is_an_input_is_refused(sim):
    """What the diagram gives there was asked for, and no point found."""
    with pytest.raises(InvalidValue, match=r"outputs: thrust\[0\] is among the inputs, which are free; leave it out"):
        sim.trim(flight(sim), inputs=["thrust"], outputs={"thrust": 32.0})


def test_a_model_at_an_operating_point_is_of_its_time(sim):
    """It was that at t = 0, of x' = u - (1 + t) x at t = 2 with a pole at -1."""
    bd = sim.blockdiagram()
    push, x = bd.CONSTANT(1.0, name="push"), bd.INTEGRATOR(1.0, name="x")
    slope = bd.FUNCTION(lambda t, u, x: u - (1.0 + t) * x, nin=3, name="slope")
    for k, block in enumerate((bd.TIME(), push, x)):
        bd.connect(block, slope[k])
    bd.connect(slope, x)
    point = sim.trim(bd, t=2.0, inputs=["push"], outputs={"x": 2.0})
    model = sim.linearize(bd, point)
    assert model.t == 2.0 and model.A == pytest.approx(np.array([[-3.0]])) and abs(model.rate[0]) < 1e-9
    assert sim.trim(bd, point, outputs={"x": 3.0}).u == pytest.approx([9.0])


@pytest.mark.parametrize("fades", [lambda u: np.exp(-u), lambda u: 1.0 / (1.0 + u * u)], ids=["exp", "square"])
def test_what_only_fades_has_no_operating_point(sim, fades):
    """Newton steps went on until the rate was small enough: to x = 39, and to x = 6e6."""
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(1.0, name="x"), bd.FUNCTION(fades, name="rate")
    bd.connect(x, rate)
    bd.connect(rate, x)
    assert not sim.trim(bd).success


@pytest.mark.parametrize(("value", "kind"), [("slow", "str"), (1j, "complex")])
def test_what_carries_no_real_numbers_is_no_output(value, kind):
    """Of complex numbers the real parts were taken; a text was an error of NumPy's."""
    sim = cs.Simulation(live=False, progress=False)

    def asked(ask):
        bd = sim.blockdiagram()
        bd.connect(x := bd.INTEGRATOR(1.0, name="x"), odd := bd.FUNCTION(lambda x: value, name="odd"))
        bd.connect(odd, bd.NULL())
        bd.connect(bd.CONSTANT(0.0, name="u"), x)
        with pytest.raises(cs.BlockError, match=rf"odd\[0\] carries a {kind}, no real numbers"):
            ask(bd)

    asked(lambda bd: sim.linearize(bd, outputs=["odd"]))
    asked(lambda bd: sim.trim(bd, inputs=["u"], outputs={"odd": 1.0}))
    asked(lambda bd: sim.stepper(bd, outputs=["odd"], events=True))
