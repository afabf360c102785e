"""Gradients of costs of samples on a grid, as of measured rows: those that a run has by its `dt`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.simulation.analysis.extremes import extreme_times
from cstormpy.simulation.diagram import Diagram

COSTS = {
    "row": lambda out: out.signal("plant.q")[37, 0],
    "squares": lambda out: np.sum((out.signal("plant.q") - 0.2) ** 2),
    "mean": lambda out: np.mean(out.signal("pid")),
    "largest": lambda out: np.max(out.signal("plant.q")),
}


def servo(P=60.0, high=30.0):
    """A pendulum that a sampled controller takes to a reference that jumps, its torque within limits."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", q0=[-1.2], name="plant")
    pid = bd.DISCRETEPID(bd.clock(20, "Hz"), n=1, P=P, I=20.0, D=9.0, low=-high, high=high, name="pid")
    stop = bd.SATURATION(-0.5, 0.1, name="stop")
    bd.connect(bd.STEP(0.3, -1.2, 0.2, name="wanted"), bd.FUNCTION(np.atleast_1d, name="one"))
    bd.connect(bd["one"], pid.reference)
    bd.connect(plant.q, pid.measured, angle := bd.INDEX([0]))
    bd.connect(angle, stop)
    bd.connect(pid, plant.tau)
    return sim, bd


@pytest.mark.parametrize("dt", [0.02, 0.013])
def test_a_cost_of_samples_has_the_rows_of_a_run(dt):
    """With dt= the cost was given each step of the solver, another number of rows in each search."""
    times, watch = [], ["plant", "pid", "stop"]
    sim, bd = servo()

    def cost(out):
        times.append(out.t)
        return np.concatenate([[each(out)] for each in COSTS.values()])

    found = sim.gradient(bd, cost, ["pid.P", "plant.q0[0]"], T=1.0, dt=dt, watch=watch, rtol=1e-10, atol=1e-12)
    out = sim.run(bd, T=1.0, dt=dt, watch=watch, rtol=1e-10, atol=1e-12)
    assert all(len(t) == len(out.t) for t in times)
    np.testing.assert_allclose(found.out.t, out.t, atol=1e-12)
    np.testing.assert_allclose(found.out.signal("pid"), out.signal("pid"), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.cost, cost(out), rtol=1e-8)
    ends = []
    for P in (60.0 - 1e-3, 60.0 + 1e-3):
        sim, bd = servo(P)
        ends.append(cost(sim.run(bd, T=1.0, dt=dt, watch=watch, rtol=1e-11, atol=1e-13)))
    np.testing.assert_allclose(found.gradient[:, 0], (ends[1] - ends[0]) / 2e-3, rtol=2e-5, atol=1e-9)


def test_a_grid_goes_on_from_where_a_run_was_saved():
    sim, bd = servo()
    half = sim.run(bd, T=0.5, watch=["plant"])
    times = sim.run(bd, T=0.25, dt=0.02, start=half, watch=["plant"]).t
    found = sim.gradient(bd, COSTS["squares"], ["pid.P"], T=0.25, dt=0.02, start=half, watch=["plant"])
    np.testing.assert_allclose(found.out.t, times, atol=1e-12)


def test_a_run_that_stops_has_its_end_behind_the_grid():
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    rate = bd.CONSTANT(2.0, name="rate")
    way = bd.INTEGRATOR(name="way")
    bd.connect(rate, way)
    bd.connect(way, bd.STOP(lambda x: x > 1.03, name="end"))
    found = sim.gradient(bd, lambda out: out.t[-1], ["rate.value"], T=2.0, dt=0.1)
    np.testing.assert_allclose(found.out.t, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.515], atol=1e-9)
    np.testing.assert_allclose(found.gradient, [-1.03 / 4.0], rtol=1e-6)
    seen = []
    sim.tune(bd, lambda out: seen.append(out.t) or (out.t[-1] - 0.87) ** 2, ["rate.value"], T=2.0, dt=0.1)
    np.testing.assert_allclose(seen[-1][:-1], 0.1 * np.arange(9), atol=1e-12)
    assert 0.869 < seen[-1][-1] < 0.871  # the last one that was asked is beside the best


@pytest.mark.parametrize("double", [13, 14, 15, 16, 17])
def test_samples_a_rounding_from_each_other_leave_a_peak_where_it_is(double):
    """The polynomial through them was any: a peak was taken to come 5e-3 off, and NumPy warned of a poor fit."""
    t = np.linspace(0.0, 3.0, 31)
    t = np.insert(t, double + 1, np.nextafter(t[double], 4.0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = extreme_times(t, np.sin(t)[:, None], [])
    assert not said and found == pytest.approx([np.pi / 2], abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"dt": 1e-5, "max_step": 1.0},
        {"solver": "DOP853", "dt": 1e-5, "max_step": 1.0},
        {"solver": "RK4", "dt": 0.2, "log_dt": 1e-5},
    ],
    ids=["RK45", "DOP853", "RK4"],
)
def test_steps_of_many_samples_are_sampled_by_the_compiled_diagram(options, monkeypatch):
    """More than 2046 samples within a step were asked of the blocks one by one: 50 s for a million in place of 0.2."""
    asked = []
    evaluate = Diagram.evaluate
    monkeypatch.setattr(Diagram, "evaluate", lambda self, *at: asked.append(1) or evaluate(self, *at))

    def run(engine, T=0.5):
        sim = cs.Simulation(graphics=False, progress=False, engine=engine)
        bd = sim.blockdiagram()
        turn, swing = bd.INTEGRATOR(x0=1.0, name="cos"), bd.INTEGRATOR(x0=0.0, name="sin")
        bd.connect(turn, swing)
        bd.connect(swing, minus := bd.GAIN(-1.0, name="minus"))
        bd.connect(minus, turn)
        bd.connect(turn, relay := bd.RELAY(on=0.9, off=0.0, name="relay"))
        bd.connect(relay, bd.NULL())
        asked.clear()
        return sim.run(bd, T=T, watch=["relay", "minus"], **options)

    out = run("compiled")
    assert len(asked) < 100
    plain = run("interpreted")
    np.testing.assert_allclose(out.t, np.arange(50001) * 1e-5, atol=1e-12)
    np.testing.assert_allclose(out.x, plain.x, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(out.signal("relay"), plain.signal("relay"))
    np.testing.assert_allclose(out.signal("minus"), -out.x[:, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(out.x[:, 0], np.cos(out.t), atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"dt": 0.05}, {"dt": 0.05, "solver": "RK4"}])
def test_a_cost_may_write_into_what_it_is_given(settings):
    """It wrote into the run itself: the gradient was that of another cost, without a word."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(decay := bd.INTEGRATOR(x0=2.0, name="decay"), rate := bd.GAIN(-0.5, name="rate"))
    bd.connect(rate, decay)

    def cost(out):
        error, slope = out.x[:, 0], out.signal("rate")
        error -= 0.5
        slope *= 2.0
        return error[-1] ** 2 + slope[-1]

    found = sim.gradient(bd, cost, ["rate.K"], T=1.0, watch=["rate"], **settings)
    end = 2.0 * np.exp(-0.5)
    np.testing.assert_allclose(found.cost, (end - 0.5) ** 2 - end, rtol=1e-5)
    np.testing.assert_allclose(found.gradient, [2.0 * (end - 0.5) * end + 2.0 * end - end], rtol=1e-5)
    np.testing.assert_allclose(found.out.x[-1], end, rtol=1e-5)
