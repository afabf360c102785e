"""Steppers of diagrams with events: each step is a run, and all of them together are one run."""

from __future__ import annotations

import copy
import signal

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import BlockError, DiagramError, InvalidType, InvalidValue, NonFinite
from cstormpy.simulation import simulation


@pytest.fixture(params=["compiled", "interpreted"])
def sim(request):
    return cs.Simulation(engine=request.param, live=False, progress=False)


def ball(sim):
    """A ball that a force pushes, with nine tenths of its speed after each bounce, and what counts them."""
    bd = sim.blockdiagram("ball")
    rate, v, h = bd.SUM("++", name="rate"), bd.INTEGRATOR(name="v"), bd.INTEGRATOR(x0=1.0, name="h")
    count, keeps = bd.CONSTANT(0.0, name="count"), bd.GAIN(0.9, name="keeps")
    bd.connect(count, keeps)

    def bounce(block, states):
        states[v][:] = -keeps.K * states[v]
        count.value += 1.0

    bd.connect(bd.CONSTANT(0.0, name="force"), rate[0])
    bd.connect(bd.CONSTANT(-9.81, name="g"), rate[1])
    bd.connect(rate, v)
    bd.connect(v, h)
    bd.connect(h, bd.EVENT("v", bounce, name="ground"))
    return bd


def test_steps_are_one_run_with_its_events(sim):
    """They were refused, as only a run handles events."""
    bd = ball(sim)
    stepper = sim.stepper(bd, ["force"], ["h", "v", "count"], events=True)
    met, seen = [], []
    for _ in range(60):
        seen.append(stepper.step([0.0], 0.05))
        met += stepper.events
    out = sim.run(ball(sim), T=3.0, solver="RK4", dt=0.05, watch=["h", "v"])
    assert len(met) == len(out.events) == 4 and stepper.t == 3.0
    np.testing.assert_allclose([e[0] for e in met], [e[0] for e in out.events], rtol=1e-11)
    np.testing.assert_allclose(stepper.x, out.x[-1], rtol=1e-9)
    np.testing.assert_allclose(seen[-1], [*out.y[-1], 4.0], rtol=1e-9)
    first = np.sqrt(2.0 / 9.81)  # in closed form: parabolas
    np.testing.assert_allclose(met[1][0], first * (1.0 + 2.0 * 0.9), rtol=1e-11)


def test_inputs_are_held_and_the_constants_are_as_before(sim):
    bd = ball(sim)
    stepper = sim.stepper(bd, ["force"], ["h"], events=True)
    pushed = [stepper.step(4.905, 0.1)[0] for _ in range(4)]
    np.testing.assert_allclose(pushed, 1.0 - 0.25 * 9.81 * (0.1 * np.arange(1, 5)) ** 2, rtol=1e-12)
    assert bd.blocknames["force"].value == 0.0


def test_a_reset_puts_back_what_handlers_have_set_but_not_what_the_user_has(sim):
    bd = ball(sim)
    stepper = sim.stepper(bd, ["force"], ["count", "h"], events=True)
    for _ in range(2):
        for _ in range(20):
            y = stepper.step([0.0], 0.05)
        np.testing.assert_allclose(y[0], 1.0)
        np.testing.assert_array_equal(stepper.reset(), [0.0, 1.0])
    keeps, count = bd.blocknames["keeps"], bd.blocknames["count"]
    keeps.K = 0.5  # which the handler reads; set before an episode
    for _ in range(12):
        y = stepper.step([0.0], 0.05)
    speed = 0.5 * np.sqrt(2.0 * 9.81) - 9.81 * (0.6 - np.sqrt(2.0 / 9.81))
    np.testing.assert_allclose(stepper.x[0], speed, rtol=1e-9)
    assert (y[0], keeps.K) == (1.0, 0.5)
    stepper.reset()
    stepper.step([0.0], 0.05)
    count.value = 7.0  # and between two steps
    for _ in range(11):
        y = stepper.step([0.0], 0.05)
    assert y[0] == 8.0
    np.testing.assert_array_equal(stepper.reset(), [7.0, 1.0])
    assert keeps.K == 0.5


def thermostat(sim):
    """A room that a relay heats, sampled by a slow clock beside it, and what is sampled summed up."""
    bd = sim.blockdiagram("thermostat")
    clock = bd.clock(0.1)
    room, relay = bd.INTEGRATOR(x0=0.1, name="room"), bd.RELAY(0.5, 0.2, on=0.0, off=1.0, name="relay")
    rate, held, total = bd.SUM("+-+", name="rate"), bd.ZOH(clock, name="held"), bd.INTEGRATOR_S(clock, name="total")
    bd.connect(room, relay, held)
    bd.connect(relay, rate[0])
    bd.connect(room, rate[1])
    bd.connect(bd.CONSTANT(0.0, name="outside"), rate[2])
    bd.connect(rate, room)
    bd.connect(held, total)
    return bd


def test_clocks_tick_as_in_a_run_whatever_the_length_of_steps(sim):
    """A tick at the end of a step waits for the next, by the inputs of this."""
    bd = thermostat(sim)
    stepper = sim.stepper(bd, ["outside"], ["room", "held", "total", "relay"], events=True, substeps=3)
    rng = np.random.default_rng(3)
    for _ in range(40):
        y = stepper.step([-0.2], float(rng.choice([0.05, 0.1, 0.03, 0.17])))
    wired = thermostat(sim)
    wired.blocknames["outside"].value = -0.2
    out = sim.run(wired, T=stepper.t, rtol=1e-10, atol=1e-12, watch=["room", "held", "total", "relay"])
    np.testing.assert_allclose(stepper.x, out.x[-1], rtol=1e-6)
    np.testing.assert_allclose(y[[0, 3]], out.y[-1][[0, 3]], rtol=1e-6)
    assert len(out.events) > 3


@pytest.mark.parametrize("seed", range(3))
def test_without_events_it_steps_as_the_other(sim, seed):
    bd = sim.blockdiagram()
    clock, wanted = bd.clock(0.1), bd.CONSTANT([0.5, 0.1], name="wanted")
    error, held = bd.SUM("+-", name="error"), bd.ZOH(clock, x0=[0.0, 0.0], name="held")
    x, total = bd.INTEGRATOR(x0=[0.1, 0.0], name="x"), bd.INTEGRATOR_S(clock, x0=[0.0, 0.0], name="total")
    late = bd.STEP(T=0.3, name="late")
    rate = bd.SUM("++", name="rate")
    bd.connect(wanted, error[0])
    bd.connect(x, error[1])
    bd.connect(error, held, total)
    bd.connect(held, rate[0])
    bd.connect(late, rate[1])
    bd.connect(rate, x)
    ask = [["wanted"], ["x", "held", "total", "late"]]
    one, other = sim.stepper(bd, *ask, substeps=2), sim.stepper(bd, *ask, substeps=2, events=True)
    assert (one.inputs, one.outputs, one.states, one.sampled) == (
        other.inputs,
        other.outputs,
        other.states,
        other.sampled,
    )
    rng = np.random.default_rng(seed)
    for begin in ({}, {"x": [0.3, -0.2]}, {"x": {"x": 0.4}}, {"t": 1.03}, {"sampled": {"total": [0.7, 0.1]}}, "state"):
        given = {"x": one.state} if begin == "state" else begin
        np.testing.assert_allclose(one.reset(**given), other.reset(**given), rtol=1e-12)
        for _ in range(8):
            u, dt = rng.normal(size=2), float(rng.choice([0.05, 0.1, 0.03, 0.25]))
            np.testing.assert_allclose(one.step(u, dt), other.step(u, dt), rtol=1e-9, atol=1e-11)
            assert one.t == other.t and one.state.due == other.state.due
            np.testing.assert_allclose(one.x, other.x, rtol=1e-9, atol=1e-11)


def falling(sim):
    """A weight that stops the run where it comes to the ground."""
    bd = sim.blockdiagram("falling")
    v, h, over = bd.INTEGRATOR(name="v"), bd.INTEGRATOR(x0=1.0, name="h"), bd.COMPARE("<=", 0.0, name="down")
    bd.connect(bd.CONSTANT(-9.81, name="g"), v)
    bd.connect(v, h)
    bd.connect(h, over)
    bd.connect(over, bd.STOP(name="stop"))
    return bd


def test_a_stop_ends_a_step_and_there_are_no_others(sim):
    stepper = sim.stepper(falling(sim), ["g"], ["h"], events=True)
    for _ in range(2):
        while not stepper.stopped:
            y = stepper.step([-9.81], 0.1)
        np.testing.assert_allclose([stepper.t, y[0]], [np.sqrt(2.0 / 9.81), 0.0], atol=1e-11)
        assert "stopped at t = 0.451524 by" in stepper.stopped
        with pytest.raises(DiagramError, match=r"step: stopped at t = 0\.451524 by .*; begin again by reset\(\)"):
            stepper.step([0.0], 0.1)
        stepper.reset()
        assert (stepper.t, stepper.stopped, stepper.events) == (0.0, "", [])


def test_a_run_goes_on_where_it_stands_and_it_where_a_run_has_ended(sim):
    bd = ball(sim)
    stepper = sim.stepper(bd, ["force"], ["h"], events=True)
    for _ in range(30):
        stepper.step([0.0], 0.05)
    out = sim.run(bd, T=0.5, solver="RK4", dt=0.05, start=stepper.state)
    for _ in range(10):
        stepper.step([0.0], 0.05)
    np.testing.assert_allclose(out.x[-1], stepper.x, rtol=1e-10)
    stepper.reset(out)
    assert stepper.t == 2.0 and repr(stepper) == "<stepper of 'ball' by runs at t = 2: u = force[0]; y = h[0]>"


def test_a_step_that_fails_leaves_it_where_it_stands(sim):
    bd = ball(sim)
    root = bd.FUNCTION(lambda h: np.sqrt(h) if h > 0.5 else 1.0 / 0, name="root")
    bd.connect(bd.blocknames["h"], root)
    bd.connect(root, bd.NULL())
    stepper = sim.stepper(bd, ["force"], ["h"], events=True)
    stepper.step([0.0], 0.1)
    t, x = stepper.t, stepper.x.copy()
    for u, error, said in (
        ([0.0], BlockError, "'root'"),
        ([np.nan], BlockError, r"step: u: input 'force\[0\]' is nan"),
        ([1.0, 2.0], InvalidValue, "step: u: .*the inputs are force"),
        (["a"], InvalidType, "step: u"),
    ):
        with pytest.raises((error, NonFinite), match=said):
            stepper.step(u, 0.3)
        assert (stepper.t, bd.blocknames["force"].value) == (t, 0.0)
        np.testing.assert_array_equal(stepper.x, x)
    for dt in (0.0, -1.0, np.nan, "a"):
        with pytest.raises(cs.CstormError, match="step: dt"):
            stepper.step([0.0], dt)
    np.testing.assert_allclose(stepper.step([9.81], 0.1), x[1] + 0.1 * x[0], rtol=1e-12)


@pytest.mark.parametrize("length", [0.25, 0.1, 0.05])
@pytest.mark.parametrize("guarded", ["x", "time"])
def test_an_event_where_a_clock_ticks_at_the_end_of_a_step_comes_about(sim, guarded, length):
    """One that depends on the time was lost, as the run of the step ended a little before; and the state lagged."""
    bd = sim.blockdiagram()
    x, gap, held = bd.INTEGRATOR(name="x"), bd.SUM("+-"), bd.ZOH(bd.clock(length), name="held")
    count = bd.CONSTANT(0.0, name="count")

    def counted(block):
        count.value += 1.0

    bd.connect(bd.CONSTANT(1.0, name="u"), x)
    bd.connect(x if guarded == "x" else bd.TIME(), gap[0])
    bd.connect(bd.CONSTANT(1.0), gap[1])
    bd.connect(gap, bd.EVENT("^", counted, name="one"))
    bd.connect(x, held)
    bd.connect(held, bd.NULL())
    bd.connect(count, bd.NULL())
    stepper, met, seen = sim.stepper(bd, ["u"], ["held", "count"], events=True), [], []
    for _ in range(round(2.0 / length)):
        seen.append(stepper.step([1.0], length))
        met += stepper.events
    assert [name for _, name in met] == ["one"] and seen[-1][1] == 1.0
    np.testing.assert_allclose([met[0][0], stepper.x[0]], [1.0, 2.0], rtol=2e-15)
    np.testing.assert_allclose([y[0] for y in seen], length * np.arange(len(seen)), atol=4e-15)


def test_a_tick_beside_the_end_of_a_step_is_done_once(sim):
    """Steps whose lengths are rounded end a little before or behind ticks, by less than those are told apart."""
    bd = sim.blockdiagram()
    ticks = bd.INTEGRATOR_S(bd.clock(1.0 / 30.0), name="ticks")
    bd.connect(bd.CONSTANT(30.0), ticks)
    bd.connect(ticks, bd.INTEGRATOR(name="x"))
    for length in (0.033333333335, 0.0333333333333, 0.03333333333):
        stepper = sim.stepper(bd, [], ["ticks"], events=True)
        found = [stepper.step([], length)[0] for _ in range(6)]
        np.testing.assert_allclose(found, np.arange(1.0, 7.0), rtol=1e-12)


def test_a_reset_leaves_random_numbers_and_what_the_user_has_changed_as_they_are(sim):
    """It set NumPy's generator back, so that a policy's noise was the same in each episode."""
    bd, gains, met = ball(sim), {"keeps": 0.9}, []
    v = bd.blocknames["v"]

    def bounce(block, states):
        states[v][:] = -gains["keeps"] * states[v]
        met.append(block.name)

    bd.connect(bd.blocknames["h"], bd.EVENT("v", bounce, name="other"))
    stepper, drawn, speeds = sim.stepper(bd, ["force"], ["h"], events=True), [], []
    for _ in range(3):
        stepper.step([0.0], 0.3)
        drawn.append(np.random.normal())  # noqa: NPY002
        gains["keeps"] += 0.1  # which the handler reads
        stepper.step([0.0], 0.3)
        assert met == ["other"]
        speeds.append(stepper.x[0])
        stepper.reset()
        assert met == []
    assert len(set(drawn)) == 3 and gains["keeps"] == pytest.approx(1.2)
    assert np.all(np.diff(np.abs(speeds)) != 0.0)


def test_what_handlers_have_set_is_put_back_where_a_step_fails_and_not_where_a_reset_does(sim):
    bd = ball(sim)
    root = bd.FUNCTION(lambda v: 1.0 / 0 if v > 3.6 else 1.0, name="root")
    bd.connect(bd.blocknames["v"], root)
    bd.connect(root, bd.NULL())
    stepper, count = sim.stepper(bd, ["force"], ["count"], events=True), bd.blocknames["count"]
    stepper.step([0.0], 0.4)
    for _ in range(2):
        with pytest.raises(BlockError, match="'root'"):
            stepper.step([0.0], 0.3)  # behind a bounce
        assert (count.value, stepper.t) == (0.0, 0.4)
    assert stepper.step([9.81], 0.6) == [1.0]  # no faster than before
    with pytest.raises(cs.CstormError, match="reset: x"):
        stepper.reset([1.0, 2.0, 3.0])
    assert (count.value, stepper.t) == (1.0, 1.0)
    assert stepper.reset() == [0.0] and count.value == 0.0


def test_what_another_function_sets_that_an_event_has_got_is_put_back_too(sim):
    bd = ball(sim)
    other, v = bd.CONSTANT(0.0, name="other"), bd.blocknames["v"]
    bd.connect(other, bd.NULL())
    stepper = sim.stepper(bd, ["force"], ["count", "other"], events=True)

    def bounce(block, states):
        states[v][:] = -states[v]
        other.value += 1.0

    for found in ([1.0, 0.0], [0.0, 1.0], [0.0, 1.0]):
        np.testing.assert_array_equal(stepper.step([0.0], 0.6), found)
        bd.blocknames["ground"].func = bounce
        np.testing.assert_array_equal(stepper.reset(), [0.0, 0.0])


def test_ctrl_c_ends_the_loop_of_steps_wherever_it_comes(sim, monkeypatch):
    """Behind the last step of a run it was noted only: a loop of short steps went on."""
    bd = ball(sim)
    stepper, real = sim.stepper(bd, ["force"], ["h"], events=True), simulation.result_of
    monkeypatch.setattr(simulation, "result_of", lambda *given: signal.raise_signal(signal.SIGINT) or real(*given))
    with pytest.raises(KeyboardInterrupt):
        stepper.step([1.0], 0.6)  # behind a bounce
    assert (stepper.t, bd.blocknames["count"].value, bd.blocknames["force"].value) == (0.0, 0.0, 0.0)
    monkeypatch.undo()
    assert stepper.step([1.0], 0.1) == pytest.approx(1.0 - 0.5 * 8.81 * 0.01)


@pytest.mark.parametrize("begin", [{"x": {"a": 1.0}}, {"x": [1.0, 3.0]}, "saved"])
def test_a_reset_to_some_states_has_the_others_as_where_it_began(sim, begin):
    """They were as their blocks say, at time zero."""
    bd = sim.blockdiagram()
    clock = bd.clock(0.1)
    a, b, held = bd.INTEGRATOR(name="a"), bd.INTEGRATOR(name="b"), bd.INTEGRATOR_S(clock, name="held")
    bd.connect(bd.CONSTANT(1.0, name="u"), a, b, held)
    bd.connect(held, bd.NULL())
    ask = [["u"], ["a", "b", "held"]]
    given = {"x": sim.run(bd, T=0.55).state} if begin == "saved" else begin
    one, other = (sim.stepper(bd, *ask, **given, events=events) for events in (False, True))
    for reset in ({"x": {"b": 7.0}}, {"t": 0.23}, {"x": [1.0, 2.0]}, {"x": {"a": -1.0}, "sampled": {"held": [4.0]}}):
        np.testing.assert_allclose(one.reset(**reset), other.reset(**reset), rtol=1e-12)
        for length in (0.1, 0.07, 0.13):
            assert one.t == other.t
            np.testing.assert_allclose(one.step([2.0], length), other.step([2.0], length), rtol=1e-9)


@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("start", [np.array([2.0]), {"x": np.array([2.0])}, {"x": 2.0}])
def test_where_it_begins_is_its_own(sim, start, events):
    """Of an array with events=True, and of a dict, it went by what these were changed to since."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(0.0, name="push"), bd.INTEGRATOR(1.0, name="x"))
    given = copy.deepcopy(start)
    stepper = sim.stepper(bd, ["push"], ["x"], x=given, events=events)
    if isinstance(given, np.ndarray):
        given[:] = 7.0
    elif isinstance(given["x"], np.ndarray):
        given["x"][:] = 7.0
    else:
        given["x"] = 7.0
    assert stepper.x == stepper.step([1.0], 0.5) - 0.5 == 2.0
    assert stepper.reset() == 2.0


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            ["h"],
            r"input 'h\[0\]': comes from block 'h' \(INTEGRATOR\), where .* sets a CONSTANT; wire one in its place",
        ),
        (["rate.in0"], "input"),
        (["v.u"], "input"),
    ],
)
def test_inputs_are_constants(sim, inputs, said):
    with pytest.raises(cs.CstormError, match=said):
        sim.stepper(ball(sim), inputs, ["h"], events=True)


def test_ports_are_inputs_where_a_constant_goes_to_them_alone(sim):
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", name="plant")
    angle = bd.INDEX([0], name="angle")
    bd.connect(plant.q, angle)
    bd.connect(angle, bd.RELAY(0.5, 0.2, name="relay"))
    stepper = sim.stepper(bd, ["plant.tau"], ["plant.q", "relay"], events=True)  # open: it gets a CONSTANT
    assert stepper.inputs == ("plant.tau[0]",)
    stepper.step([1.0], 0.1)
    shared = sim.blockdiagram()
    push = shared.CONSTANT([0.0], name="push")
    for name in ("one", "two"):
        arm = shared.HYBRIDDYNAMICS("pendulum", name=name)
        shared.connect(push, arm.tau)
        shared.connect(arm.q, shared.NULL())
    with pytest.raises(
        DiagramError, match=r"'one\.tau': block 'push' .* goes to other ports too; name it as the input"
    ):
        sim.stepper(shared, ["one.tau"], ["one.q"], events=True)
    with pytest.raises(InvalidType, match="a stepper cannot be copied"):
        copy.copy(stepper)


def test_the_remedy_is_told_where_a_stepper_is_refused(sim):
    bd = ball(sim)
    with pytest.raises(
        DiagramError, match="only a run handles located events: give events=True, with which each step is"
    ):
        sim.stepper(bd, ["force"], ["h"])
    with pytest.raises(cs.CstormError, match="stepper: events: expected True or False"):
        sim.stepper(bd, ["force"], ["h"], events="yes")
