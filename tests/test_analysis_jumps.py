"""Derivatives to the times at which sources jump: the jump that comes earlier or later is in them, or refused."""

from __future__ import annotations

import cProfile
from functools import cache

import numpy as np
import pytest
from bdsim.components import SourceBlock
from test_analysis_gradient import by_differences

import cstormpy as cs
from cstormpy.control import LQR, Law
from cstormpy.errors import DiagramError


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param, live=False)


FINE = {"rtol": 1e-10, "atol": 1e-12}


def lag(sim, source, x0=0.2):
    """Return ẋ = −1.5 x + u, an oscillator behind it, and the source as made by its function."""
    bd = sim.blockdiagram()
    made = source(bd)
    rate, x = bd.SUM("++", name="rate"), bd.INTEGRATOR(x0, name="x")
    bd.connect(x, gain := bd.GAIN(-1.5, name="gain"))
    bd.connect(gain, rate[0])
    bd.connect(made, rate[1])
    bd.connect(rate, x)
    error = bd.SUM("+-", name="error")
    bd.connect(made, error[0])
    bd.connect(x, error[1])
    bd.connect(error, square := bd.POW(2, name="square"))
    bd.connect(square, bd.INTEGRATOR(name="cost"))
    return bd


def differenced(sim, bd, cost, name, h, **options):
    """Return the derivative by differences of runs, extrapolated; the blocks are as before."""
    block, attribute = bd.blocknames[name.partition(".")[0]], name.partition(".")[2]
    value, slopes = getattr(block, attribute), []
    for step in (h, h / 2):
        ends = []
        for side in (step, -step):
            setattr(block, attribute, value + side)
            ends.append(cost(sim.run(bd, **options)))
        slopes.append((ends[0] - ends[1]) / (2.0 * step))
    setattr(block, attribute, value)
    return (4.0 * slopes[1] - slopes[0]) / 3.0


def test_the_time_of_a_step_is_in_the_derivative(sim):
    # it was 0.0, with a notice, where -2 is true
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(name="x")
    bd.connect(bd.STEP(T=1.0, off=1.0, on=3.0, name="step"), x)
    found = sim.gradient(bd, "x[0]", ["step.T", "step.on"], T=2.5)
    assert found.gradient == pytest.approx([-2.0, 1.5], abs=1e-9) and found.notes == []


def square(bd):
    return bd.WAVEFORM("square", freq=0.77, duty=0.4, phase=0.13, name="w")


def pulse(bd):  # its times had no derivative, and a notice
    return bd.PULSE(amplitude=2.0, period=1.3, width=0.4, delay=0.17, name="w")


WAVES = {f"w.{number}": square for number in ("freq", "phase", "duty", "amplitude")}
WAVES |= {f"w.{number}": pulse for number in ("period", "width", "delay")}


@cache
def slope_of_wave(name):
    """Return the derivative of the end to a number of a wave, by differences of runs."""
    free = cs.Simulation(engine="interpreted", live=False)
    return differenced(free, lag(free, WAVES[name]), lambda out: out.x[-1], name, 1e-3, T=3.0, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("solver", [FINE, {"solver": "RK4", "dt": 0.01}, {"solver": "DOP853", **FINE}], ids=str)
@pytest.mark.parametrize("name", WAVES)
def test_the_numbers_of_a_wave_that_say_when_it_jumps_have_derivatives(sim, solver, name):
    found = sim.gradient(lag(sim, WAVES[name]), lambda out: out.x[-1], [name], T=3.0, **solver)
    np.testing.assert_allclose(found.gradient[:, 0], slope_of_wave(name), rtol=0, atol=1e-6)
    assert found.notes == []


@pytest.mark.parametrize("kind", ["ramp", "triangle"])
def test_a_source_that_only_bends_has_its_derivative_too(sim, kind):
    source, name = {
        "ramp": (lambda bd: bd.RAMP(T=0.7, slope=2.0, name="w"), "w.T"),
        "triangle": (lambda bd: bd.WAVEFORM("triangle", freq=0.77, phase=0.13, name="w"), "w.freq"),
    }[kind]
    bd = lag(sim, source)
    found = sim.gradient(bd, lambda out: out.x[-1], [name], T=3.0, **FINE)
    free = cs.Simulation(engine="interpreted", live=False)
    truth = differenced(free, bd, lambda out: out.x[-1], name, 1e-3, T=3.0, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.gradient[:, 0], truth, rtol=0, atol=1e-6)
    assert found.notes == []


@pytest.mark.parametrize("sim", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"], indirect=True)
def test_a_cost_of_samples_follows_the_jump_as_the_integral_does(sim):
    bd = lag(sim, lambda bd: bd.STEP(T=1.0, off=-1.0, on=2.0, name="step"))

    def cost(out):
        squares = out.signal("error") ** 2
        return np.sum(0.5 * (squares[1:] + squares[:-1]) * np.diff(out.t))

    run = {"T": 2.5, "solver": "RK4", "dt": 0.0005, "watch": ["error"]}
    sampled = sim.gradient(bd, cost, ["step.T"], **run)
    exact = sim.gradient(bd, "cost[0]", ["step.T"], **run)
    assert sampled.gradient[0] == pytest.approx(exact.gradient[0], abs=1e-5)
    assert abs(exact.gradient[0]) > 0.1


def test_an_event_that_a_jump_brings_about_goes_with_it(sim):
    """A step switches a law at its edge: the switch is the jump's, at the same time."""
    bd = sim.blockdiagram()
    step, x = bd.STEP(T=1.0, off=-1.0, on=2.0, name="step"), bd.INTEGRATOR(max=0.5, name="x")
    bd.connect(step, x)
    bd.connect(step, bd.EVENT("^", lambda block, states: None, name="edge"))
    found = sim.gradient(bd, "x[0]", ["step.T"], T=1.2, **FINE)
    assert found.gradient[0] == pytest.approx(-3.0, abs=1e-9)
    assert [name for _, name in found.events] == ["edge"]


def test_a_jump_frees_a_limited_integrator_with_its_time(sim):
    bd = sim.blockdiagram()
    step, x = bd.STEP(T=1.0, off=1.0, on=-2.0, name="step"), bd.INTEGRATOR(max=0.5, name="x")
    bd.connect(step, x)
    bd.clock(0.1, "s")  # of no block: its ticks do nothing
    found = sim.gradient(bd, "x[0]", ["step.T", "x.max"], T=1.2, **FINE)
    # full at 0.5, down with 2 from T on
    assert found.cost == pytest.approx(0.1, abs=1e-9) and found.gradient == pytest.approx([2.0, 1.0], abs=1e-8)


def test_a_tuned_step_finds_its_time(sim):
    # "the gradient has vanished" at a cost of 4
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(name="x")
    bd.connect(bd.STEP(T=2.0, off=1.0, on=3.0, name="step"), x)
    found = sim.tune(bd, lambda out: (out.x[-1, 0] - 5.5) ** 2, ["step.T"], T=2.5)
    assert found.after[0] == pytest.approx(1.0, abs=1e-4)


def test_two_jumps_at_once_of_which_one_moves_are_refused_with_their_names(sim):
    bd = sim.blockdiagram()
    both, x = bd.SUM("++"), bd.INTEGRATOR(name="x")
    bd.connect(bd.STEP(T=1.0, name="one"), both[0])
    bd.connect(bd.STEP(T=1.0, name="two"), both[1])
    bd.connect(both, x)
    with pytest.raises(DiagramError, match=r"one and two jump at t = 1, together"):
        sim.gradient(bd, "x[0]", ["one.T"], T=2.0)
    assert sim.gradient(bd, "x[0]", ["one.on"], T=2.0).gradient[0] == pytest.approx(1.0, abs=1e-9)


def pulsed(sim, what):
    """A pulse that jumps where a clock ticks, which samples another signal, or one that the pulse or its event changes.

    Or the event takes what the clock holds, or the tick has a sample taken of what the pulse drives.
    """
    bd = sim.blockdiagram()
    pulse = bd.PULSE(amplitude=2.0, period=2.0, width=0.4, delay=0.5, name="pulse")
    limits = {"max": 0.02} if what == "freed" else {}
    x, cost = bd.INTEGRATOR(name="x", **limits), bd.INTEGRATOR(name="cost")
    wave, hold = bd.WAVEFORM("sine", freq=0.3, name="wave"), bd.ZOH(bd.clock(0.1, "s"), x0=0.0, name="hold")
    both = bd.PROD("**", name="both") if what == "product" else bd.SUM("++", name="both")
    rate, sampled = pulse, {"pulse": pulse, "x": x, "freed": x}.get(what, wave)
    first, second = pulse if what in ("rates", "product") else x, hold
    wires = []
    if what == "limited":
        rate = bd.SATURATION(-1.3, 1.3, name="limit")
        wires = [(pulse, rate)]
    elif what == "freed":
        rate = bd.SUM("+-")
        wires = [(wave, rate[0]), (pulse, rate[1])]
    elif what == "zero":
        sampled = bd.PROD("**")
        wires = [(bd.CONSTANT(0.0, name="zero"), sampled[0]), (pulse, sampled[1])]
    elif what == "compared":
        sampled = bd.COMPARE(">", 1.0, name="compared")
        wires = [(pulse, sampled)]
    elif what in ("taken", "held", "ticked"):
        event = bd.SAMPLEHOLD(0.75, name="event")
        u, trigger = {"taken": (hold, pulse), "held": (wave, pulse), "ticked": (x, hold)}[what]
        wires = [(u, event.u), (trigger, event.trigger)]
        sampled, second = (event, hold) if what == "held" else (wave, event)
    for begin, end in [*wires, (rate, x), (sampled, hold), (first, both[0]), (second, both[1]), (both, cost)]:
        bd.connect(begin, end)
    return bd


@pytest.mark.parametrize("what", ["other", "rates", "limited"])
def test_a_jump_at_a_tick_that_samples_something_else_is_in_the_derivative(sim, what):
    """A pulse of 0.4 s each 2 s in a clock of 0.1 s was refused, whatever the clock sampled."""
    names, run = ["pulse.delay", "pulse.amplitude"], {"T": 2.7, "rtol": 1e-8, "atol": 1e-10}
    found = sim.gradient(pulsed(sim, what), "cost[0]", names, **run)
    quick = cs.Simulation(engine="compiled", live=False)
    bd = pulsed(quick, what)
    wanted = [differenced(quick, bd, lambda out: out.x[-1, 1], name, 1e-3, **run) for name in names]
    assert found.gradient == pytest.approx(wanted, abs=1e-6) and found.notes == []


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("pulse", "and hold samples what it changes, and only one"),
        ("x", "and hold samples what it changes, and only one"),  # its rate
        ("zero", "and hold samples what it changes, and only one"),  # how it follows zero.value: 1.2 for 1.4
        ("product", "and what is sampled makes the jump another one"),
        ("compared", "and an event of compared comes too"),
        ("taken", "and an event of event comes too"),
        ("held", "and an event of event comes too"),
        ("ticked", "and an event of event comes too"),
        ("freed", "and an event of x comes too"),
    ],
)
def test_a_jump_at_a_tick_is_refused_with_its_name_where_it_matters_which_comes_first(sim, what, told):
    """Events there were not seen, and the derivative was that of either order."""
    bd = pulsed(sim, what)
    names = [name for name in ("pulse.delay", "zero.value") if name.partition(".")[0] in bd.blocknames]
    with pytest.raises(DiagramError, match=rf"pulse jumps at t = 0.5, where a clock ticks {told}"):
        sim.gradient(bd, "cost[0]", names, T=1.2)


def swung(sim):
    """Position and speed of an oscillator, held where it begins to rise, push it on."""
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(0.3, name="x"), bd.INTEGRATOR(0.0, name="v")
    held, both, parts = bd.SAMPLEHOLD(0.1, x0=[0.2, 0.0], name="held"), bd.MUX(2), bd.DEMUX(2)
    rate, spring, gain = bd.SUM("-+-"), bd.GAIN(4.0, name="spring"), bd.GAIN(0.7, name="gain")
    wires = [(v, x), (x, both[0]), (v, both[1]), (both, held.u), (v, held.trigger), (held, parts), (x, spring)]
    wires += [(spring, rate[0]), (bd.CONSTANT(1.0, name="given"), rate[1]), (parts[0], gain), (gain, rate[2])]
    product, cost = bd.PROD("**"), bd.INTEGRATOR(name="cost")
    for begin, end in [*wires, (rate, v), (parts[1], product[0]), (x, product[1]), (product, cost)]:
        bd.connect(begin, end)
    return bd, ["given.value", "gain.K", "spring.K", "held.threshold"]


def counted(sim):
    """What is held, less a fifth, and time are held anew; the trigger is of time alone."""
    bd = sim.blockdiagram()
    held, gain, new = bd.SAMPLEHOLD(0.2, name="held"), bd.GAIN(0.8, name="gain"), bd.SUM("++")
    saw = bd.WAVEFORM("triangle", freq=0.23, amplitude=2.0, name="saw")
    bd.connect(held, gain)
    bd.connect(gain, new[0])
    bd.connect(saw, new[1])
    bd.connect(new, held.u)
    bd.connect(bd.WAVEFORM("sine", freq=0.7, name="wave"), held.trigger)
    bd.connect(held, bd.INTEGRATOR(name="cost"))
    return bd, ["wave.freq", "saw.freq", "saw.amplitude", "gain.K", "held.threshold"]


def caused(sim):
    """A pulse has a ramp held, and what is held there has its area held, where it is large enough."""
    bd = sim.blockdiagram()
    pulse = bd.PULSE(period=1.7, width=0.4, delay=0.5, name="pulse")
    x, area = bd.INTEGRATOR(0.1, name="x"), bd.INTEGRATOR(name="area")
    first, second, both = bd.SAMPLEHOLD(0.5, name="first"), bd.SAMPLEHOLD(1.0, name="second"), bd.SUM("++")
    wires = [(bd.CONSTANT(0.5, name="slope"), x), (x, area), (x, first.u), (pulse, first.trigger), (area, second.u)]
    wires += [(first, second.trigger), (first, both[0]), (second, both[1]), (both, bd.INTEGRATOR(name="cost"))]
    for begin, end in wires:
        bd.connect(begin, end)
    return bd, ["pulse.delay", "pulse.period", "slope.value"]


@pytest.mark.parametrize("made", [swung, counted, caused])
def test_samples_held_at_triggers_carry_derivatives_and_so_does_when_they_are_taken(sim, made):
    """It was refused: how the states behind the event follow those before was not known."""
    (bd, names), quick = made(sim), cs.Simulation(engine="compiled", live=False)
    other, _ = made(quick)
    run = {"T": 3.5, "watch": ["cost"], "rtol": 1e-8, "atol": 1e-10}
    found = sim.gradient(bd, "cost[0]", names, **run)
    wanted = [differenced(quick, other, lambda out: out.signal("cost[0]")[-1], name, 1e-3, **run) for name in names]
    assert found.gradient == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert found.notes == [] and len(found.events) >= 2


@pytest.mark.parametrize(
    ("number", "at", "told"), [("push.value", 0.5, 1), ("high.value", 0.5, 0), ("push.value", 0.55, 0)]
)
def test_an_event_at_a_tick_that_moves_is_noted(sim, number, at, told):
    """The hold samples 2 where the switch comes before the tick, 0 after it: the derivative was 0 without a word."""
    bd = sim.blockdiagram()
    push, high, ramp = bd.CONSTANT(1.0, name="push"), bd.CONSTANT(2.0, name="high"), bd.INTEGRATOR(name="ramp")
    switch, hold = bd.SWITCH(threshold=at, name="switch"), bd.ZOH(bd.clock(10, "Hz", name="beat"), x0=0.0)
    bd.connect(push, ramp)
    bd.connect(high, switch.on)
    bd.connect(ramp, switch.control)
    bd.connect(bd.CONSTANT(0.0), switch.off)
    bd.connect(switch, hold)
    bd.connect(hold, bd.INTEGRATOR(name="x"))
    found = sim.gradient(bd, "x[0]", [number], T=1.25)
    said = ["the event of switch at t = 0.5 comes where beat ticks"]
    assert [note.partition(",")[0] for note in found.notes] == said[:told]
    if not told:  # what is sampled is in proportion to `high`, and goes not with a switch between ticks
        assert found.gradient == pytest.approx([found.out.x[-1, 1] / 2.0 if number == "high.value" else 0.0], abs=1e-9)


def played(sim, ends):
    """Return a curve with jumps of its acceleration at a knot and at its ends, played into integrators."""
    bd = sim.blockdiagram()
    points = [[0.5], [0.0], [1.0], [2.0], [1.7]]
    w = bd.SPLINETRAJECTORY(points, duration=2.0, degree=2, start=0.3, speed=1.3, ends=ends, name="w")
    for name, port in (("path", 0), ("rate", 2)):
        bd.connect(w[port], bd.INTEGRATOR(x0=[0.0], name=name))
    return bd


@pytest.mark.parametrize("ends", ["hold", pytest.param("repeat", marks=pytest.mark.slow)])
def test_the_speed_of_a_motion_has_a_derivative(sim, ends):
    """It acted in sweeps, and here nothing was said to read it; its knots and ends come earlier or later."""
    bd = played(sim, ends)
    found = sim.gradient(bd, lambda out: out.x[-1], ["w.speed"], T=2.2, **FINE)
    truth = differenced(sim, bd, lambda out: out.x[-1], "w.speed", 1e-3, T=2.2, **FINE)
    np.testing.assert_allclose(found.gradient[:, 0], truth, rtol=0, atol=1e-6)
    assert found.notes == [] and np.abs(truth).max() > 0.1
    assert bd.blocknames["w"].speed == 1.3


@pytest.mark.parametrize("T", [0.0, 2.0])
def test_a_jump_at_the_beginning_or_the_end_is_noted(sim, T):
    bd = sim.blockdiagram()
    bd.connect(bd.STEP(T=T, name="one"), bd.INTEGRATOR(name="x"))
    found = sim.gradient(bd, "x[0]", ["one.T"], T=2.0)
    assert len(found.notes) == 1 and found.notes[0].startswith("one jumps where the run")


class Switch(SourceBlock):
    """A source of one's own that jumps at a time, and declares it."""

    nin, nout = 0, 1

    def __init__(self, when=1.0, **blockargs):
        super().__init__(**blockargs)
        self.when = when

    def start(self, simstate):
        simstate.declare_event(self, self.when)

    def output(self, t, u, x):
        return [np.where(t >= self.when, 1.0, 0.0)]


def test_a_number_of_ones_own_source_that_decides_when_it_jumps_is_noted(sim, caplog):
    bd = sim.blockdiagram()
    name = f"own_{sim.engine}"
    bd.connect(Switch(bd=bd, name=name), bd.INTEGRATOR(name="x"))
    with caplog.at_level("INFO", logger="cstormpy"):
        found = sim.gradient(bd, "x[0]", [f"{name}.when"], T=2.0)
    assert found.notes[0].startswith(f"{name}.when decides when something switches") and name in caplog.text


@pytest.mark.parametrize("gain", [1.5, -1.0])
def test_whether_a_gain_is_zero_decides_nothing_on_the_way(sim, gain):
    """Gradients to the gain I of a PIDCONTROLLER with limits were told to miss a jump that there is none of."""
    bd = sim.blockdiagram()
    pid, plant = bd.PIDCONTROLLER(P=2.0, I=gain, low=-0.5, high=0.5, name="pid"), bd.INTEGRATOR(name="x")
    bd.connect(bd.WAVEFORM("sine", freq=0.5, amplitude=2.0), pid[0])
    bd.connect(plant, pid[1])
    bd.connect(pid, plant)
    found = sim.gradient(bd, "x[0]", ["pid.I"], T=3.0, **FINE)
    assert found.notes == []
    _, slope = by_differences(sim, bd, "x[0]", ["pid.I"], T=3.0, **FINE)
    assert found.gradient == pytest.approx(slope, rel=1e-4)


def test_a_search_whose_gradient_is_not_whole_says_so(sim):
    bd = sim.blockdiagram()
    bd.connect(Switch(bd=bd, name="own"), bd.INTEGRATOR(name="x"))
    found = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.5) ** 2, ["own.when"], T=2.0)
    assert found.message.startswith("the gradient has vanished at the start")
    assert "; it is not whole: own.when decides when something switches" in found.message


def test_the_times_of_a_table_have_derivatives_each_by_itself(sim):
    bd = sim.blockdiagram()
    table = bd.PIECEWISE((0, 1.0), (0.7, 2.0), (1.4, -1.0), name="table")
    bd.connect(table, bd.INTEGRATOR(name="x"))
    found = sim.gradient(bd, "x[0]", ["table.t[1]", "table.t[2]", "table.y[1]"], T=2.0, **FINE)
    assert found.gradient == pytest.approx([-1.0, 3.0, 0.7], abs=1e-8) and found.notes == []


class Drag(Law):
    """Drags, and from a time on holds an angle that it wraps."""

    modes = ("drag", "hold")

    def __init__(self, mech, k=0.3, begins=10.0):
        super().__init__(mech)
        self.k, self.begins = k, begins

    def torque(self, t, q, qd, reference=None):
        held = np.arctan2(np.sin(q), np.cos(q)) if self.mode == 1 else 0.0
        return -self.k * qd - 4.0 * held

    def margin(self, t, q, qd):
        return self.begins - t if self.mode == 0 else 1.0

    def switch(self, t, q, qd):
        self.mode = 1


def spun(sim, begins, speed, *others):
    disk = cs.Mechanism([cs.Link("disk", joint=cs.Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 1))])
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(disk, q0=[0.0], qd0=[speed], name="plant")
    laws = {"drag": Drag(disk, begins=begins), **{other.__name__: other(disk, [0.0]) for other in others}}
    law = bd.CONTROLLER(disk, laws, name="law")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    return bd


def test_switches_of_laws_and_phases_that_are_not_active_end_no_steps(sim):
    """Each turn of a wheel ended steps where a law that was not active wraps, and was said to jump to and fro."""
    found = sim.gradient(spun(sim, 10.0, 240.0, LQR), "plant.disk.q", ["law.drag.k"], T=3.0)
    k, T = 0.3, 3.0  # q = 240 (1 − exp(−k t)) / k
    wanted = 240.0 * (T * np.exp(-k * T) / k - (1.0 - np.exp(-k * T)) / k**2)
    assert found.gradient == pytest.approx([wanted], rel=1e-6) and found.notes == []


def test_switches_are_looked_for_once_their_phase_is_active(sim):
    """The law was said to jump there too, where all that it jumps by is located."""
    bd = spun(sim, 1.0, 60.0)
    found = sim.gradient(bd, "plant.disk.q", ["law.drag.k"], T=1.4, **FINE)
    drag, ends = bd["law"].laws.laws["drag"], []
    for k in (0.3001, 0.2999):
        drag.k = k
        ends.append(sim.run(bd, T=1.4, rtol=1e-12, atol=1e-13).x[-1, 0])
    assert found.gradient == pytest.approx([(ends[0] - ends[1]) / 2e-4], rel=1e-6) and found.notes == []


def test_a_margin_that_jumps_as_an_angle_wraps_changes_the_phase_when_that_does(sim):
    """The shoulder passes below, its error goes from one side to the other, and the regulator takes over by that."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.3], name="plant")
    law = bd.CONTROLLER("acrobot", "energy", name="law")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    asked = "plant.shoulder.q", ["law.energy.ke", "plant.elbow.q"]
    found = sim.gradient(bd, *asked, T=1.25, **FINE)
    assert [(round(t, 4), name) for t, name in found.events] == [(1.2221, "law")]
    before = found.out.x[np.searchsorted(found.out.t, found.events[0][0])]
    assert before[0] == pytest.approx(-np.pi / 2, abs=1e-9)
    assert found.gradient == pytest.approx(by_differences(sim, bd, *asked, T=1.25, h=1e-3, **FINE)[1], rel=1e-4)


def switched(sim, made, start=0.0, rate=1.0):
    """A ramp switches something on at zero, whose time is the cost; "above" does so at one, and off at zero."""
    bd = sim.blockdiagram()
    ramp, cost = bd.INTEGRATOR(start, name="ramp"), bd.INTEGRATOR(0.0, name="cost")
    switch = {
        "compare": lambda: bd.COMPARE(">", 0.0, name="switch"),
        "relay": lambda: bd.RELAY(0.0, 0.0, on=1.0, off=0.0, name="switch"),
        "above": lambda: bd.RELAY(1.0, 0.0, on=1.0, off=0.0, name="switch"),
        "below": lambda: bd.RELAY(0.0, -1.0, on=1.0, off=0.0, name="switch"),
        "function": lambda: bd.FUNCTION(lambda u: np.where(u > 0.0, 1.0, 0.0), name="switch"),
    }[made]()
    bd.connect(bd.CONSTANT(rate, name="rate"), ramp)
    bd.connect(ramp, switch)
    bd.connect(switch, cost)
    return bd


@pytest.mark.parametrize("made", ["compare", "relay", "function"])
def test_what_begins_exactly_at_a_switch_is_noted_where_the_start_moves(sim, made):
    """The cost bends there: one side's slope, or one between, was told without a word."""
    found = [sim.gradient(switched(sim, made), "cost[0]", [name], T=1.0) for name in ("ramp:x_0", "rate.value")]
    assert [len(each.notes) for each in found] == [1, 0]
    assert (
        found[0].notes[0].startswith("switch begins at t = 0 exactly at a switch, and parameters lead to either side")
    )


@pytest.mark.parametrize(("made", "rate", "told"), [("above", 1.0, 0), ("above", -1.0, 0), ("below", -1.0, 1)])
def test_a_relay_that_begins_off_at_where_it_goes_off_is_not_at_a_switch(sim, made, rate, told):
    """It was noted, though it is off on both sides."""
    beside = [sim.run(switched(sim, made, h, rate), T=2.0).x[-1, 1] for h in (-1e-3, 0.0, 1e-3)]
    found = sim.gradient(switched(sim, made, rate=rate), "cost[0]", ["ramp:x_0"], T=2.0)
    assert len(found.notes) == told == (not np.isclose(*np.diff(beside)))
    assert told or found.gradient == pytest.approx(np.diff(beside)[:1] / 1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "T", "name", "told"),
    [
        (1.0, 1.0, "ramp:x_0", 1),
        (1.0, 1.5, "ramp:x_0", 0),
        (1.0, 1.0, "cost:x_0", 0),
        (0.3, 0.7, "ramp:x_0", 1),
        (1.0, 2.3, "ramp:x_0", 1),
        (0.1, 1 / 3, "ramp:x_0", 1),
    ],
)
def test_an_event_where_the_run_ends_is_noted(sim, rate, T, name, told):
    """Also where that is a rounding before the event, as it was not, and only of parameters that move it."""
    found = sim.gradient(switched(sim, "compare", -1.0 if T == 1.5 else -rate * T, rate), "cost[0]", [name], T=T)
    assert [note.partition(",")[0] for note in found.notes] == [
        f"the event of switch at t = {T:.6g} comes where the run ends"
    ] * told


def test_a_run_that_stops_as_it_begins_has_derivatives(sim):
    """Steps behind the STOP were to be as long as those before it, 4e-24 s: more than fit in memory."""
    bd = sim.blockdiagram()
    ramp = bd.INTEGRATOR(0.0, name="ramp")
    bd.connect(bd.CONSTANT(1.0), ramp)
    bd.connect(ramp, bd.STOP(lambda v: v > 0.0, name="stop"))
    found = sim.gradient(bd, lambda out: out.x[-1, 0], ["ramp:x_0"], T=1.0)
    assert found.out.t[-1] < 1e-12 and len(found.notes) == 1


def test_a_delayed_signal_arrives_where_a_source_jumps_that_moves(sim):
    """The delay was asked what it gives without its samples: a TypeError."""
    bd = sim.blockdiagram()
    step, total = bd.STEP(T=0.12, name="step"), bd.INTEGRATOR(0.0, name="total")
    late = bd.DELAY(bd.clock(0.05), time=0.12, x0=0.3, name="late")
    place, force = bd.INTEGRATOR(1.0, name="place"), bd.SUM("++")
    bd.connect(bd.CONSTANT(1.0), place)
    bd.connect(place, late)
    bd.connect(step, force[0])
    bd.connect(late, force[1])
    bd.connect(force, total)
    with pytest.raises(DiagramError, match=r"step and late jump at t = 0\.12, together"):
        sim.gradient(bd, "total[0]", ["step.T"], T=0.3)


def test_a_function_that_divides_by_a_signal_is_looked_at_with_few_calls():
    """Each output was asked at some fifty points between two ticks, which took longer than all the rest."""

    def ratios(x, y):
        return np.array([x / (2.0 + y), y / (2.0 + x), x * y / (3.0 + x + y), x / (2.0 + x)])

    sim = cs.Simulation(engine="compiled", live=False)
    bd = sim.blockdiagram()
    x, y = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="y")
    made, back = bd.FUNCTION(ratios, nin=2, name="made"), bd.GAIN(-1.0, name="back")
    bd.connect(x, made[0], y)
    bd.connect(y, made[1], back)
    bd.connect(back, x)
    bd.connect(made, bd.NULL())
    bd.connect(x, bd.ZOH(bd.clock(50, "Hz")))  # between whose ticks it is looked at
    sim.gradient(bd, "x", ["back.K"], T=0.1, dt=0.1, watch=["made"])  # which compiles
    with cProfile.Profile() as profile:
        found = sim.gradient(bd, "x", ["back.K"], T=2.0, dt=0.02, watch=["made"])
    asked = next(e.callcount for e in profile.getstats() if getattr(e.code, "co_name", "") == "ratios")
    assert asked < 20 * len(found.out.t) and not found.notes


@pytest.mark.parametrize("what", ["sign", "arctan", "smooth"])
def test_a_quotient_that_jumps_where_it_is_no_number_is_noted(sim, what):
    """There the halving of the step ended without an answer: a derivative of 1 was told, where 1.368 is true."""
    bd = sim.blockdiagram()
    ratios = {
        "sign": lambda k, x: k + 0.3 * (x - 0.6) / abs(x - 0.6),
        "arctan": lambda k, x: 1.0 + 0.3 * np.arctan(k / (x - 0.6)),
        "smooth": lambda k, x: k + 0.3 * (x - 0.6) * (x + 1.0) / (x - 0.6),
    }
    k, x, rate = bd.CONSTANT(1.0, name="k"), bd.INTEGRATOR(0.3, name="x"), bd.FUNCTION(ratios[what], nin=2, name="rate")
    bd.connect(k, rate[0])
    bd.connect(x, rate[1])
    bd.connect(rate, x)
    notes = sim.gradient(bd, "x", ["k.value"], T=1.0, rtol=1e-9, atol=1e-11).notes
    assert any("the function of rate jumps at t = " in note for note in notes) == (what != "smooth")
