"""Derivatives of runs that a STOP ends: when it does so, and what is then."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import DiagramError

FINE = {"rtol": 1e-10, "atol": 1e-12}


def below(bd, height, low):
    bd.connect(height, bd.STOP(lambda h: h < 0.2))


def below_or_above(bd, height, low):
    bd.connect(height, bd.STOP(lambda h: (h < 0.2) | (h > 3.0)))


def chosen(bd, height, low):
    bd.connect(height, bd.STOP(lambda h: True if h < 0.2 else False))


def compared(bd, height, low):
    compare = bd.COMPARE("<", 0.2)
    bd.connect(height, compare)
    bd.connect(compare, bd.STOP())


def subtracted(bd, height, low):
    apart = bd.SUM("+-")
    bd.connect(low, apart[0])
    bd.connect(height, apart[1])
    bd.connect(apart, bd.STOP())


def falling(sim, stop):
    bd = sim.blockdiagram()
    height, speed = bd.INTEGRATOR(1.0, name="height"), bd.INTEGRATOR(0.0, name="speed")
    bd.connect(bd.CONSTANT(-9.81, name="gravity"), speed)
    bd.connect(speed, height)
    low = bd.CONSTANT(0.2, name="low")
    bd.connect(low, bd.NULL())
    stop(bd, height, low)
    return bd


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param)


@pytest.mark.parametrize("stop", [below, below_or_above, chosen, compared, subtracted])
def test_when_a_run_stops_and_what_is_then_follow_the_numbers(sim, stop):
    def cost(out):
        return np.array([out.t[-1], out.x[-1, 1], np.trapezoid(out.x[:, 1], out.t)])

    found = sim.gradient(falling(sim, stop), cost, ["height", "gravity.value"], T=1.0, max_step=1e-3, **FINE)
    g, fall = 9.81, 0.8
    t = math.sqrt(2.0 * fall / g)
    np.testing.assert_allclose(found.cost, [t, -g * t, -fall], atol=1e-7)
    wanted = [[t / (2.0 * fall), t / (2.0 * g)], [-g * t / (2.0 * fall), t / 2.0], [-1.0, 0.0]]
    np.testing.assert_allclose(found.gradient, wanted, atol=1e-6)
    assert found.out.status == "stopped" and found.notes == []
    low = sim.gradient(falling(sim, subtracted), lambda out: out.t[-1], ["low.value"], T=1.0, **FINE)
    assert low.gradient == pytest.approx([-t / (2.0 * fall)])


def test_a_start_is_tuned_for_when_a_run_stops(sim):
    """Beyond where the first run stopped, too."""
    bd = falling(sim, compared)
    found = sim.tune(bd, lambda out: (out.t[-1] - 0.6) ** 2, ["height"], bounds=[(0.5, 5.0)], T=2.0, **FINE)
    assert found.after == pytest.approx([0.2 + 0.5 * 9.81 * 0.36], abs=1e-4)


def test_a_run_that_stops_where_a_clock_ticks_stops_there_with_other_numbers_too(sim):
    bd = falling(sim, lambda bd, height, low: None)
    late = bd.ZOH(bd.clock(0.1, "s"), name="late")
    bd.connect(bd["height"], late)
    bd.connect(late, bd.STOP(lambda h: h < 0.2))
    found = sim.gradient(bd, lambda out: np.array([out.t[-1], out.x[-1, 1]]), ["gravity.value"], T=1.0, **FINE)
    np.testing.assert_allclose(found.cost, [0.5, -9.81 * 0.5], atol=1e-9)
    np.testing.assert_allclose(found.gradient, [[0.0], [0.5]], atol=1e-9)


def test_a_round_that_a_block_stops_is_no_orbit(sim):
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="v")
    back = bd.GAIN(-1.0)
    bd.connect(v, x)
    bd.connect(x, back, bd.STOP(lambda x: x < -0.5))
    bd.connect(back, v)
    with pytest.raises(DiagramError, match=r"periodic_orbit: a round comes to no end: stopped at t = 2\.094"):
        sim.periodic_orbit(bd, 6.28)


@pytest.mark.parametrize("max_step", [0.01, 0.0123])
def test_no_sample_beside_the_stop_stays_where_it_is(sim, max_step):
    """A step ended exactly there: of the largest number, which is that of the STOP, half a derivative was told."""
    bd = sim.blockdiagram()
    x, c, rate = bd.INTEGRATOR(name="x"), bd.CONSTANT(1.0, name="c"), bd.SUM("+-")
    bd.connect(c, rate[0])
    bd.connect(x, rate[1], bd.STOP(lambda x: x > 0.35))
    bd.connect(rate, x)
    found = sim.gradient(bd, lambda out: out.x.max(), ["x", "c.value"], T=1.0, max_step=max_step)
    assert found.cost == pytest.approx(0.35)
    np.testing.assert_allclose(found.gradient, 0.0, atol=1e-9)


@pytest.mark.parametrize("solver", ["RK45", "RK4"])
def test_a_run_that_begins_beyond_its_stop_ends_there(sim, solver):
    """It went on, so that the cost was that of another run."""
    bd = falling(sim, lambda bd, height, low: bd.connect(height, bd.STOP(lambda h: h > 0.5)))
    options = {"T": 1.0, "solver": solver, **({"dt": 0.1} if solver == "RK4" else {})}
    assert sim.run(bd, **options).t.tolist() == [0.0]
    found = sim.gradient(bd, lambda out: np.append(out.x[-1], out.t[-1]), ["height", "gravity.value"], **options)
    assert found.cost.tolist() == [1.0, 0.0, 0.0] and found.out.status == "stopped"
    np.testing.assert_allclose(found.gradient, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], atol=1e-9)
