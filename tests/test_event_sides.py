"""Both sides of events in the samples of a run, and gradients of costs that add up what jumps there: closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cstormpy as cs

ENGINES = ["interpreted", "compiled"]
#: x = c (1 − exp(−t)) passes this at −ln(1 − 0.35 / c).
BORDER = 0.35


def passes(border):
    """Return when x passes a border, for c = 1, and how that follows c."""
    return -math.log(1.0 - border), -border / (1.0 - border)


def stepping(border, height):
    """Return the integral over one second of what jumps by a height at a border, and its derivative to c."""
    t, slope = passes(border)
    return np.array([height * (1.0 - t), -height * slope])


def compare(bd, x):
    bd.connect(x, y := bd.COMPARE(">", BORDER, name="y"))
    return y


def counter(bd, x):
    bd.connect(x, y := bd.COUNTER(BORDER, name="y"))
    return y


def relay(bd, x):
    bd.connect(x, y := bd.RELAY(BORDER, 0.1, on=3.0, off=1.0, name="y"))
    return y


def quantizer(bd, x):
    bd.connect(x, y := bd.QUANTIZER(0.1, name="y"))
    return y


def samplehold(bd, x):
    y, twice = bd.SAMPLEHOLD(BORDER, name="y"), bd.GAIN(2.0)
    bd.connect(x, twice, y.trigger)
    bd.connect(twice, y.u)
    return y


def event(bd, x):
    """A number that the function of an EVENT sets, as a protection that latches."""
    y, gap = bd.CONSTANT(0.7, name="y"), bd.SUM("+-")

    def latch(block):
        y.value = 2.5

    bd.connect(x, gap[0])
    bd.connect(bd.CONSTANT(BORDER), gap[1])
    bd.connect(gap, bd.EVENT("^", latch, name="latch"))
    return y


def caused(bd, x):
    """A relay that a comparison works: one event causes another, at the same time."""
    bd.connect(x, over := bd.COMPARE(">", BORDER))
    bd.connect(over, y := bd.RELAY(0.5, 0.2, on=2.0, off=0.5, name="y"))
    return y


#: The integral of each over one second, and its derivative to c.
EXPECTED = {
    compare: stepping(BORDER, 1.0),
    counter: stepping(BORDER, 1.0),
    relay: np.array([1.0, 0.0]) + stepping(BORDER, 2.0),
    quantizer: sum(stepping(border, 0.1) for border in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55)),
    samplehold: stepping(BORDER, 2.0 * BORDER),
    event: np.array([0.7, 0.0]) + stepping(BORDER, 1.8),
    caused: np.array([0.5, 0.0]) + stepping(BORDER, 1.5),
}


def diagram(sim, make):
    """Return ẋ = c − x from x = 0, and what jumps with it as "y"."""
    bd = sim.blockdiagram()
    x, c, rate = bd.INTEGRATOR(name="x"), bd.CONSTANT(1.0, name="c"), bd.SUM("+-")
    bd.connect(c, rate[0])
    bd.connect(x, rate[1])
    bd.connect(rate, x)
    bd.connect(make(bd, x), bd.NULL())
    return bd


def area(out):
    return np.trapezoid(out.signal("y").ravel(), out.t)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", EXPECTED)
def test_what_jumps_at_an_event_adds_up(engine, make):
    """A run had only what comes behind an event, and its sum an error of half a step."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    out = sim.run(diagram(sim, make), T=1.0, rtol=1e-10, atol=1e-13, watch=["y"])
    assert area(out) == pytest.approx(EXPECTED[make][0], rel=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", EXPECTED)
def test_that_events_come_earlier_is_in_the_gradient_of_what_adds_up(engine, make):
    """It was 0: the samples did not move with the event."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    found = sim.gradient(diagram(sim, make), area, ["c.value"], T=1.0, rtol=1e-10, atol=1e-13, watch=["y"])
    assert [found.cost, found.gradient[0]] == pytest.approx(EXPECTED[make], rel=1e-7)
    assert not found.notes


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_at_a_kink_goes_with_it(engine):
    """The sum of what a limit holds is wrong by the square of a step, no longer by a step."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)

    def limited(bd, x):
        bd.connect(x, y := bd.SATURATION(-1.0, BORDER, name="y"))
        return y

    found = sim.gradient(diagram(sim, limited), area, ["c.value"], T=1.0, max_step=0.01, watch=["y"])
    assert found.gradient[0] == pytest.approx(passes(BORDER)[0] - BORDER, rel=2e-4)  # h²/12 of a slope of 0.65 is 5e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_goes_with_a_kink_that_the_states_do_not_follow(engine):
    """The sum followed a limit only within a step, and the other numbers too, when the limit was one of them."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)

    def limited(bd, x):
        bd.connect(x, y := bd.SATURATION(-1.0, BORDER, name="y"))
        return y

    names = ["c.value", "y.high"]
    found = sim.gradient(diagram(sim, limited), area, names, T=1.0, max_step=0.01, watch=["y"])
    t, _ = passes(BORDER)
    assert found.gradient == pytest.approx([t - BORDER, 1.0 - t], rel=2e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_both_sides_are_recorded_where_signals_jump_alone(engine):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    out = sim.run(diagram(sim, caused), T=1.0, watch=["y"])
    at = np.flatnonzero(np.diff(out.t) == 0.0)
    assert out.t[at] == pytest.approx([passes(BORDER)[0]], abs=1e-6)
    assert out.signal("y").ravel()[[at[0], at[0] + 1]].tolist() == [0.5, 2.0]

    def ends(bd, x):
        bd.connect(x, kinked := bd.SATURATION(-1.0, 0.2), bd.INTEGRATOR(max=0.01))
        bd.connect(x, bd.STOP(lambda value: value > BORDER))
        return kinked

    out = sim.run(diagram(sim, ends), T=1.0)
    assert out.status == "stopped" and (np.diff(out.t) > 0.0).all()
    out = sim.run(diagram(sim, caused), T=1.0, dt=0.1)
    assert out.t == pytest.approx(np.linspace(0.0, 1.0, 11))


@pytest.mark.parametrize("engine", ENGINES)
def test_samples_on_a_grid_do_not_move(engine):
    """An event that comes at a time of the grid: the sample there is one of that time."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = diagram(sim, compare)
    bd["y"].threshold = 1.0 - math.exp(-0.5)
    found = sim.gradient(bd, lambda out: out.x[5, 0], ["c.value"], T=1.0, dt=0.1, watch=["y"])
    assert found.gradient[0] == pytest.approx(1.0 - math.exp(-0.5), rel=1e-5)


@pytest.mark.parametrize("make", [compare, relay])
def test_events_that_come_together_and_move_apart_add_up(make):
    """The sample between them was dropped: of two that are alike one had half its share, and the other one more."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    total = bd.SUM("++", name="total")
    for k in range(2):
        x, c, rate = bd.INTEGRATOR(name=f"x{k}"), bd.CONSTANT(1.0, name=f"c{k}"), bd.SUM("+-")
        y = bd.COMPARE(">", BORDER) if make is compare else bd.RELAY(BORDER, 0.1, on=3.0, off=1.0)
        bd.connect(c, rate[0])
        bd.connect(x, rate[1], y)
        bd.connect(rate, x)
        bd.connect(y, total[k])
    bd.connect(total, bd.NULL())
    found = sim.gradient(
        bd, lambda out: np.trapezoid(out.signal("total").ravel(), out.t), ["c0.value", "c1.value"], T=1.0,
        watch=["total"], rtol=1e-10, atol=1e-13,
    )  # fmt: skip
    assert found.gradient == pytest.approx([EXPECTED[make][1]] * 2, rel=1e-7)
