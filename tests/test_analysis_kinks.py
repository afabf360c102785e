"""Derivatives of runs through kinks and jumps, declared or found in equations: closed forms, fine differences."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from bdsim.components import FunctionBlock

import cstormpy as cs
from cstormpy.signals.tables import beside_points, shares
from cstormpy.trajectory import BSpline

FINE = {"rtol": 1e-11, "atol": 1e-13}
BLOCKS = {
    "saturation": lambda bd: bd.SATURATION(low=-0.3, high=0.2, name="law"),
    "dead zone": lambda bd: bd.DEADZONE(low=-0.3, high=0.2, name="law"),
    "table": lambda bd: bd.LOOKUP1D([-1, -0.2, 0.3, 1], [-0.5, 0.4, -0.1, 0.8], name="law"),
    "table of two": lambda bd: bd.LOOKUP2D([-0.2, 0.3, 0.4], [-3.0, 0.0, 2.0], np.eye(3), name="law"),
    "function": lambda bd: bd.FUNCTION(lambda u: np.clip(u, -0.3, 0.2), name="law"),
    "an if": lambda bd: bd.FUNCTION(lambda u: 0.2 if u > 0.2 else u if u > -0.3 else -0.3, name="law"),
    "CLIP": lambda bd: bd.CLIP(-0.3, 0.2, name="law"),
    "compared": lambda bd: compared(bd),
    "jumping function": lambda bd: bd.FUNCTION(lambda u: np.where(u > 0.2, 0.4, 0.0), name="law"),
    "an if that jumps": lambda bd: bd.FUNCTION(lambda u: 0.4 if u > 0.2 else 0.0, name="law"),
}
#: Slopes without bound where a number passes zero.
STEEP = {
    "root": lambda bd: bd.FUNCTION(lambda u: np.sqrt(np.abs(u)) * np.sign(u), name="law"),
    "power": lambda bd: bd.FUNCTION(lambda u: np.abs(u) ** 0.7 * np.sign(u) if u != 0.0 else 0.0, name="law"),
    "cube root": lambda bd: bd.FUNCTION(np.cbrt, name="law"),
}
#: What a run locates, and computes the same.
LOCATED = dict.fromkeys(("function", "an if", "CLIP"), "saturation")
LOCATED |= dict.fromkeys(("jumping function", "an if that jumps"), "compared")


def compared(bd):
    """Return 0.4 where a signal is above 0.2, as a comparison that is located."""
    bd.connect(above := bd.COMPARE(">", 0.2, name="above"), scaled := bd.GAIN(0.4, name="law"))
    return above, scaled


def oscillator(sim, block, gain=1.0, source="x"):
    """Return ẍ = −4 x − 0.3 ẋ − 1.5 law(gain x), and the integral of x²."""
    bd = sim.blockdiagram()
    x, v, cost = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="v"), bd.INTEGRATOR(name="cost")
    made, given = {**BLOCKS, **STEEP}[block](bd), bd.GAIN(gain, name="gain")
    law, first = made[::-1] if isinstance(made, tuple) else (made, made)
    rate = bd.SUM("+++", name="rate")
    for k, (taken, name, factor) in enumerate([(x, "k", -4.0), (v, "c", -0.3), (law, "b", -1.5)]):
        bd.connect(taken, part := bd.GAIN(factor, name=name))
        bd.connect(part, rate[k])
    bd.connect({"x": x, "v": v}[source], given)
    bd.connect(given, first[0])
    if law.nin == 2:
        bd.connect(v, law[1])
    bd.connect(rate, v)
    bd.connect(v, x)
    bd.connect(x, square := bd.POW(2, name="square"))
    bd.connect(square, cost)
    return bd


@functools.cache
def differenced(block, gain, source, name, h=1e-5):
    """Return the derivative of the cost by differences, extrapolated."""
    sim, slopes = cs.Simulation(engine="compiled", live=False, progress=False), []
    bd = oscillator(sim, block, gain, source)
    blk, attribute = bd.blocknames[name.partition(".")[0]], name.partition(".")[2]
    value = getattr(blk, attribute)
    for step in (h, h / 2):
        ends = []
        for moved in (value + step, value - step):
            setattr(blk, attribute, moved)
            ends.append(sim.run(bd, T=3.0, **FINE).x[-1, 2])
        slopes.append((ends[0] - ends[1]) / (2.0 * step))
    return (4.0 * slopes[1] - slopes[0]) / 3.0


@pytest.mark.parametrize(
    ("engine", "source"), [pytest.param("interpreted", "x", marks=pytest.mark.slow), ("compiled", "v")]
)
@pytest.mark.parametrize("block", BLOCKS)
def test_slopes_are_those_of_the_side_that_a_step_is_on(engine, source, block):
    # stages at the time of a kink took the slope of either side, as rounding had it: off by up to 5e-3
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    truth = [differenced(LOCATED.get(block, block), 1.0, source, name) for name in ("k.K", "b.K")]
    for options, within in (({}, 2e-7), ({"rtol": 1e-5}, 1e-5), ({"solver": "RK4", "dt": 0.0125}, 2e-6)):
        bd = oscillator(sim, block, 1.0, source)
        found = sim.gradient(bd, "cost", ["k.K", "b.K"], T=3.0, **options)
        np.testing.assert_allclose(found.gradient, truth, rtol=0, atol=within * np.abs(truth).max())


@pytest.mark.parametrize("block", ["saturation", "table", "function"])
@pytest.mark.parametrize("gain", [10.0, 1000.0])
def test_two_borders_within_a_step_are_both_located(block, gain):
    # they made the same number change its sign twice, which is not at all: off by 14 percent of the gradient
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = oscillator(sim, block, gain)
    found = sim.gradient(bd, "cost", ["k.K", "b.K"], T=3.0, solver="RK4", dt=0.05)
    truth = [differenced(LOCATED.get(block, block), gain, "x", name, 1e-6) for name in ("k.K", "b.K")]
    np.testing.assert_allclose(found.gradient, truth, rtol=0, atol=1e-4 * np.abs(truth).max())


@pytest.mark.parametrize(
    ("options", "within"), [({}, 5e-3), ({"rtol": 1e-9}, 3e-3), ({"solver": "RK4", "dt": 1e-3}, 5e-3)]
)
@pytest.mark.parametrize("block", STEEP)
def test_steps_do_not_end_where_a_slope_has_no_bound(block, options, within):
    """They carried that slope: of a root the gradient was 800 to a thousand million times too large, without a word."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    found = sim.gradient(oscillator(sim, block, 1.0, "v"), "cost", ["k.K", "b.K"], T=3.0, **options)
    truth = [differenced(block, 1.0, "v", name) for name in ("k.K", "b.K")]
    within = max(within, 0.02) if block == "cube root" and "dt" in options else within
    np.testing.assert_allclose(found.gradient, truth, rtol=0, atol=within * np.abs(truth).max())
    assert len(found.notes) == 1 and found.notes[0].startswith("the slope of law grows without bound at t = ")


@pytest.mark.parametrize("options", [{}, {"solver": "RK4", "dt": 0.02}], ids=str)
@pytest.mark.parametrize("second", [0.8, 1.0])
def test_kinks_of_two_numbers_at_nearly_or_just_the_same_time(options, second):
    """One passes a border 0.02 s behind the other one, which was not looked for there, or both do so together."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR([1.0, second], name="x"), bd.INTEGRATOR(np.zeros(2), name="v")
    rate, limit, cost = bd.SUM("++", name="rate"), bd.SATURATION(low=-0.3, high=0.2), bd.INTEGRATOR(name="cost")
    for begin, end in ((x, bd.GAIN(-4.0, name="k")), (limit, bd.GAIN(-3.0, name="b"))):
        bd.connect(begin, end)
    square = bd.FUNCTION(lambda x: x @ x, name="square")
    wires = [(v, x), (x, limit), (rate, v), (x, square), (square, cost)]
    for begin, end in [*wires, (bd["k"], rate[0]), (bd["b"], rate[1])]:
        bd.connect(begin, end)
    found, slopes = sim.gradient(bd, "cost", ["k.K", "b.K"], T=3.0, **options).gradient, []
    for name in "kb":
        ends = []
        for moved in (bd[name].K + 1e-5, bd[name].K - 1e-5):
            before, bd[name].K = bd[name].K, moved
            ends.append(sim.run(bd, T=3.0, **FINE).x[-1, 4])
            bd[name].K = before
        slopes.append((ends[0] - ends[1]) / 2e-5)
    np.testing.assert_allclose(found, slopes, rtol=0, atol=2e-6)


@pytest.mark.parametrize("count", range(2, 20))
def test_some_share_of_a_table_tells_any_two_intervals_apart(count):
    points = np.cumsum(np.random.default_rng(count).uniform(0.1, 1.0, count))
    within = np.concatenate([[points[0] - 0.3], 0.5 * (points[1:] + points[:-1]), [points[-1] + 0.3]])
    codes = [tuple(np.sign(float(beside_points(at, points, k))) for k in range(shares(points))) for at in within]
    assert len(set(codes)) == count + 1
    assert shares(points) <= np.log2(count) + 1


class Own(FunctionBlock):
    """A function of one's own as a block."""

    nin = nout = 1

    def __init__(self, function, **blockargs):
        super().__init__(**blockargs)
        self.function = function

    def output(self, t, u, x):
        return [self.function(u[0])]


JUMPS = {
    "where": lambda x: np.where(x > 0.3, 2.0, 1.0 + x),
    "sign": lambda x: 2.0 + np.sign(x - 0.3) * x,
    "and": lambda x: np.where((x > 0.3) & (x < 0.9), 2.0 * x, 1.0),
    "floor": lambda x: 1.0 + np.floor(2.0 * x),
    "round": lambda x: 1.5 + 2.0 * x - np.round(2.0 * x),
    "remainder": lambda x: 1.0 + (x + 0.1) % 0.4,
    "angle": lambda x: 4.0 + np.arctan2(0.3 - x, x - 1.0),
    "halves": lambda x: 1.0 + np.heaviside(x - 0.3, 0.5),
    "tangent": lambda x: 3.0 + 0.1 * np.arctan(np.tan(4.0 * x)),
    "quotient": lambda x: 1.0 + x // 0.3,
    "counts": lambda x: 1.0 + np.digitize(x, [0.3, 0.6, 0.7, 0.8, 1.0]),
    "counts below": lambda x: 1.0 + np.searchsorted([0.3, 0.6, 0.7, 0.8, 1.0], x),
}


@pytest.mark.parametrize("options", [{}, {"solver": "RK4", "dt": 0.02}], ids=str)
@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("way", [1.0, -1.0], ids=["rising", "falling"])
@pytest.mark.parametrize("own", ["block", "function"])
def test_jumps_of_equations_are_in_the_derivative(engine, name, options, way, own):
    """Of ẋ = K f(x) the end is a function of K T, with the slope f(x) T at K = 1.

    Rounded down while it falls, as up while it rises, it was off by a quarter: the distance to a whole number had no
    slope where it is one. So it was of remainders, and of counts, which were not looked for, without a word.
    """
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(0.0, name="x"), bd.GAIN(1.0, name="gain")
    function = lambda x: way * JUMPS[name](way * x)  # noqa: E731
    bd.connect(x, law := Own(function, bd=bd, name="law") if own == "block" else bd.FUNCTION(function, name="law"))
    bd.connect(law, gain)
    bd.connect(gain, x)
    found = sim.gradient(bd, "x", ["gain.K"], T=0.75, **options)
    assert found.notes == [] and found.events == []
    assert found.gradient[0] == pytest.approx(0.75 * way * float(JUMPS[name](way * found.cost)), rel=1e-6)


NOT_GONE_THROUGH = {
    "quotient": lambda x: 2.0 + (x - 0.3) / np.abs(x - 0.3),
    "angle of a slope": lambda x: 3.0 + np.arctan(1.0 / (x - 0.3)),
    "asked in Python": lambda x: 2.0 + math.remainder(3.0 * x, 1.0),
}


@pytest.mark.parametrize(
    ("name", "own"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case == ("asked in Python", "law")))
        for case in itertools.product(NOT_GONE_THROUGH, ("block", "function", "law"))
    ],
)
def test_jumps_that_a_run_does_not_go_through_are_noted_whoever_has_them(own, name):
    """Only of a FUNCTION that was asked in Python they were: of the rest the gradient was 10 to 350 percent off."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd, function = sim.blockdiagram(), NOT_GONE_THROUGH[name]
    if own == "law":
        slider = cs.Mechanism([cs.Link("cart", None, cs.Prismatic([1, 0, 0], damping=1e-3), mass=1.0)])
        plant = bd.HYBRIDDYNAMICS(slider, name="plant")
        bd.connect(plant[0:2], (law := bd.CONTROLLER(slider, lambda t, q, qd: [function(q[0])], name="law"))[0:2])
        bd.connect(law.tau, gain := bd.GAIN(1.0, name="gain"))
        bd.connect(gain, plant.tau)
    else:
        x, gain = bd.INTEGRATOR(0.0, name="x"), bd.GAIN(1.0, name="gain")
        bd.connect(x, law := Own(function, bd=bd, name="law") if own == "block" else bd.FUNCTION(function, name="law"))
        bd.connect(law, gain)
        bd.connect(gain, x)
    found = sim.gradient(bd, lambda out: out.x[-1, 0], ["gain.K"], T=1.0 if own == "law" else 0.75)
    assert len(found.notes) == 1 and found.notes[0].startswith("the function of law jumps at t = ")


@pytest.mark.parametrize("function", [lambda x: 1.0 + np.floor(1e3 * x) / 1e3, lambda x: 1.0 + np.round(1e3 * x) / 1e3])
def test_many_jumps_within_a_step_are_noted(function):
    """Of an even number of jumps in each step nothing was seen: the gradient was a third off, without a word."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(0.0, name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(x, law := Own(function, bd=bd, name="law"))
    bd.connect(law, gain)
    bd.connect(gain, x)
    found = sim.gradient(bd, "x", ["gain.K"], T=0.5, solver="RK4", dt=0.01)
    assert len(found.notes) == 1 and found.notes[0].startswith("law jumps to and fro at t = ")


@pytest.mark.parametrize("kind", [pytest.param("limit", marks=pytest.mark.slow), "compare", "relay"])
def test_an_event_that_a_jump_of_a_function_brings_about_comes_when_it_jumps(kind):
    """How fast the signal of the event goes to zero beside the jump says nothing of when: gradients went by that."""
    sim = cs.Simulation(live=False, progress=False)

    def diagram(K):
        bd = sim.blockdiagram()
        gain, function = bd.GAIN(K, name="gain"), bd.FUNCTION(lambda u: -0.2 * u if u < 0.6 else 1.0 - u, name="f")
        block = {
            "limit": lambda: bd.PIDCONTROLLER(P=1.0, I=1.0, D=0.1, N=10.0, c=1.0, low=-0.25, high=0.25),
            "compare": lambda: bd.COMPARE(">", 0.2),
            "relay": lambda: bd.RELAY(0.2, -0.5, 1.0, 0.3),
        }[kind]()
        total = bd.INTEGRATOR(name="total")
        bd.connect(bd.TIME(), gain)
        bd.connect(gain, function)
        bd.connect(function, block[0])
        if block.nin == 2:
            bd.connect(bd.CONSTANT(0.0), block[1])
        bd.connect(block, total)
        return bd

    found = sim.gradient(diagram(1.3), "total:x_0", ["gain.K"], T=1.1)
    above, below = (sim.run(diagram(1.3 + h), T=1.1, rtol=1e-10, atol=1e-12).x[-1, -1] for h in (1e-5, -1e-5))
    assert found.gradient[0] == pytest.approx((above - below) / 2e-5, abs=1e-5)
    assert found.notes == [] and found.events


def test_many_that_switch_at_once_do_not_chatter():
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(np.zeros(6), name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(x, law := bd.FUNCTION(lambda x: np.where(x > 0.3, 2.0, 1.0), name="law"))
    bd.connect(law, gain)
    bd.connect(gain, x)
    bd.connect(x, end := bd.FUNCTION(lambda x: x @ np.arange(6.0), name="end"))
    bd.connect(end, bd.NULL())
    found = sim.gradient(bd, "end", ["gain.K"], T=0.75)
    assert found.gradient[0] == pytest.approx(15.0 * 0.75 * 2.0, rel=1e-9) and found.notes == []


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_jumps_to_and_fro_is_noted(engine):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(0.5, name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(x, law := bd.FUNCTION(lambda x: np.where(x > 0.0, -1.0, 1.0), name="law"))
    bd.connect(law, gain)
    bd.connect(gain, x)
    found = sim.gradient(bd, "x", ["gain.K"], T=1.0, solver="RK4", dt=0.01)
    assert [note.partition(" at t = ")[0] for note in found.notes] == ["law jumps to and fro"]


def ramp(sim):
    """Return a diagram with t as a state, and the integrals of min(gain t, 1) in some elements and of t > 1/4."""
    bd = sim.blockdiagram()
    t, gain = bd.INTEGRATOR(name="t"), bd.GAIN(np.full(5, 4.0), name="gain")
    bd.connect(bd.CONSTANT(1.0), t)
    bd.connect(gain, limit := bd.SATURATION(-1.0, 1.0))
    bd.connect(t, gain, late := bd.COMPARE(">", 0.25))
    bd.connect(limit, bd.INTEGRATOR(np.zeros(5), name="limited"))
    bd.connect(late, bd.INTEGRATOR(name="late"))
    return bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_kinks_of_several_elements_and_a_jump_at_one_time(engine):
    """Even numbers of elements made up for one another; a jump that stays was moved by the gain of the kink beside it.

    Of the first and the fifth, which share a number, that grazes zero: such a derivative was refused.
    """
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    found = sim.gradient(ramp(sim), lambda out: out.x[-1, 1:].sum(), ["gain.K"], T=1.0)
    np.testing.assert_allclose(found.gradient[0], np.full(5, 0.5 / 4.0**2), rtol=0, atol=1e-9)
    assert {name for _, name in found.events} == {"compare.0"}  # those of more than four are found in the equations


@pytest.mark.parametrize("kind", ["SATURATION", "DEADZONE", "PIDCONTROLLER"])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_kinks_of_the_first_and_the_fifth_element_within_a_step(engine, kind):
    """They share a number that is watched, and made up for one another: a gradient was 1 or 2 percent off."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    t, gain = bd.INTEGRATOR(name="t"), bd.GAIN(np.array([3.0, 0.0, 0.0, 0.0, -3.0]), name="gain")
    bd.connect(bd.CONSTANT(1.0), t)
    bd.connect(t, gain)
    signal = bd.FUNCTION(lambda u: u + np.array([0.0, 0.0, 0.0, 0.0, 2.0]))  # 3 t, 0, 0, 0, 2 - 3 t: both are 1 at 1/3
    bd.connect(gain, signal)
    law = (
        bd.PIDCONTROLLER(low=-1.0, high=1.0, tracking=1e12, n=5)
        if kind == "PIDCONTROLLER"
        else getattr(bd, kind)(-1.0, 1.0)
    )
    bd.connect(signal, law[0])
    if law.nin == 2:
        bd.connect(bd.CONSTANT(np.zeros(5)), law[1])
    bd.connect(law, bd.INTEGRATOR(np.zeros(5), name="passed"))
    cost = lambda out: out.signal("passed")[-1].sum()  # noqa: E731
    found = sim.gradient(bd, cost, ["gain.K[0]", "gain.K[4]"], T=0.9, watch=["passed"])
    before, behind = 0.5 / 3.0**2, 0.5 * (0.9**2 - 1.0 / 3.0**2)  # the integrals of t
    expected = [behind, before] if kind == "DEADZONE" else [before, behind]
    np.testing.assert_allclose(found.gradient, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_law_goes_through_the_rows_of_its_table():
    """Of TVLQR it was said that it jumps to and fro, as its row changes with time in each step, and is far off."""
    sim, mech = cs.Simulation(engine="compiled", live=False, progress=False), cs.library.pendulum()
    bd = sim.blockdiagram()
    law = cs.control.TVLQR(mech, BSpline.clamped([[-1.5], [-1.5], [-0.5], [-1.0], [-1.0]], 0.5), steps=100)
    plant, controller = bd.HYBRIDDYNAMICS(mech, q0=[-1.3], name="plant"), bd.CONTROLLER(mech, {"along": law})
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    found = sim.gradient(bd, lambda out: out.x[-1, 0], ["plant"], T=0.3)
    ends = [
        sim.run(bd, T=0.3, start={"plant.joint1.q": -1.3 + h}, rtol=1e-10, atol=1e-12).x[-1, 0] for h in (1e-3, -1e-3)
    ]
    assert found.gradient[0] == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-4) and found.notes == []


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_a_jump_at_a_small_number_is_no_grazing(size):
    """Where a signal passed it by less than 1e-9 a second, the gradient was 0, without a word."""
    sim = cs.Simulation(engine="interpreted", live=False)
    bd = sim.blockdiagram()
    x, end = bd.INTEGRATOR(x0=0.0, name="x"), bd.INTEGRATOR(x0=0.0, name="end")
    border = 0.222 * size
    bd.connect(bd.CONSTANT(size, name="rate"), x)
    bd.connect(x, sign := bd.FUNCTION(lambda v: np.where(v > border, 1.0, -1.0)))
    bd.connect(sign, end)
    found = sim.gradient(bd, "end[0]", ["rate.value"], T=0.5, solver="RK4", dt=0.01)
    assert found.gradient[0] * size == pytest.approx(2.0 * 0.222, rel=1e-9) and not found.notes


def limited_twice(sim, first, second, source):
    """Return the integral of what two limits leave of a signal."""
    bd = sim.blockdiagram()
    sources = {
        "sine": lambda: bd.WAVEFORM("sine", freq=0.5, name="given"),
        "constant": lambda: bd.CONSTANT(0.5, name="given"),
        "held": lambda: bd.ZOH(bd.clock(0.1, "s"), x0=0.0, name="held"),
    }
    given, total = sources[source](), bd.INTEGRATOR(0.0, name="total")
    if source == "held":
        bd.connect(bd.CONSTANT(0.5, name="given"), given)
    limits = {
        "SATURATION": lambda name, high: bd.SATURATION(low=-1.0, high=high, name=name),
        "CLIP": lambda name, high: bd.CLIP(-1.0, high, name=name),
    }
    a, b = limits[first[0]]("a", first[1]), limits[second[0]]("b", second[1])
    bd.connect(given, a)
    bd.connect(a, b)
    bd.connect(b, total)
    return bd, f"b.{'high' if second[0] == 'SATURATION' else 'max'}"


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("source", ["sine", "constant", "held"])
@pytest.mark.parametrize(("first", "second"), [("SATURATION", "SATURATION"), ("CLIP", "CLIP"), ("CLIP", "SATURATION")])
def test_what_stays_exactly_where_it_bends_is_noted(engine, source, first, second):
    """A limit behind another of the same number, or of what it gets: more of it changes nothing, less does."""
    sim = cs.Simulation(engine=engine, progress=False, live=False)
    bd, name = limited_twice(sim, (first, 0.5), (second, 0.5), source)
    block, attribute = bd.blocknames["b"], name.partition(".")[2]
    ends = []
    for high in (0.5, 0.5 + 1e-5, 0.5 - 1e-5):
        setattr(block, attribute, high)
        ends.append(sim.run(bd, T=0.95, **FINE).x[-1, 0])
    setattr(block, attribute, 0.5)
    assert abs(ends[1] - ends[0]) / 1e-5 < 1e-4 and (ends[0] - ends[2]) / 1e-5 > 0.6
    (note,) = sim.gradient(bd, "total", [name, "a." + ("high" if first == "SATURATION" else "max")], T=0.95).notes
    assert name in note and "stays exactly where it bends" in note


@pytest.mark.parametrize("second", [0.499, 0.501])
def test_limits_that_differ_a_little_have_one_derivative_each(second):
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd, name = limited_twice(sim, ("CLIP", 0.5), ("SATURATION", second), "sine")
    found = sim.gradient(bd, "total", [name, "a.max", "given.freq"], T=0.95)
    assert found.notes == [] and sorted(found.gradient[:2]) == [0.0, pytest.approx(2.0 / 3.0, abs=0.01)]
    assert (found.gradient[0] > 0.6) == (second < 0.5)


class Solving(cs.control.Law):
    """Torques of a matrix that is solved, of which the larger pivot changes as the elbow moves."""

    def __init__(self, mech, k=1.0):
        super().__init__(mech)
        self.k = k

    def torque(self, t, q, qd, reference=None):
        return -np.linalg.solve(np.array([[self.k * q[1], 1.0], [1.0, -self.k]]), q) - qd


def test_pivots_that_change_are_no_switches():
    """It was noted that k decides when something switches; steps ended where another pivot is the larger."""
    sim, mech = cs.Simulation(live=False), cs.library.planar_2r()

    def build(k=1.0):
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[-1.0, 2.0], name="plant")
        law = bd.CONTROLLER(mech, {"solving": Solving(mech, k)}, name="law")
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law.tau, plant.tau)
        return bd

    found = sim.gradient(build(), "plant.elbow.q", ["law.solving.k"], T=1.0)
    assert found.notes == [] and len(found.events) == 0
    elbow = found.out.x[:, 1]
    assert elbow.max() > 1.0 > elbow.min()  # where the pivots change places
    above, below = (sim.run(build(1.0 + h), T=1.0, rtol=1e-10, atol=1e-12).x[-1, 1] for h in (1e-5, -1e-5))
    np.testing.assert_allclose(found.gradient, (above - below) / 2e-5, rtol=1e-5)


@pytest.mark.parametrize("clock", [0.3, 2.0])
@pytest.mark.parametrize("size", [1.0, 1e-10])
def test_what_dies_away_towards_a_bend_does_not_stay_there(clock, size):
    """It was moved to its other side, by 1e-6: where the start had to be another by 1e8 for that, or to be negative."""
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd = sim.blockdiagram()
    level, limit, rate = bd.INTEGRATOR(size, name="level"), bd.CLIP(0.0, 2.0), bd.GAIN(-16.0, name="rate")
    bd.connect(level, limit, sampled := bd.ZOH(bd.clock(clock, "s")))
    bd.connect(sampled, bd.NULL())
    bd.connect(limit, rate)
    bd.connect(rate, level)
    found = sim.gradient(bd, "level", ["level", "rate.K"], T=2.0, rtol=1e-9, atol=1e-30)
    assert found.notes == []
    np.testing.assert_allclose(found.gradient, np.exp(-32.0) * np.array([1.0, 2.0 * size]), rtol=1e-5)
