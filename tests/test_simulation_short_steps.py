"""Steps that stay short: the switch or the stiff state that holds up the solver is named, and ends a run in vain."""

from __future__ import annotations

import math

import pytest

import cstormpy as cs


@pytest.fixture
def sim():
    return cs.Simulation()


def signed(sim, function):
    bd = sim.blockdiagram()
    state, switch = bd.INTEGRATOR(x0=1.0, name="state"), bd.FUNCTION(function, name="switch")
    bd.connect(state, switch)
    bd.connect(switch, state)
    return bd


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_switch_that_holds_up_the_solver_is_named_once(engine, caplog):
    sim = cs.Simulation(engine=engine)
    caplog.set_level("INFO", "cstormpy")
    assert sim.run(signed(sim, lambda x: -1.0 if x > 0 else 1.0), T=1.0009).status == "finished"
    said = [line for line in caplog.messages if line.startswith("steps of ")]
    assert len(said) == 1 and "'switch' (FUNCTION) jumps to and fro" in said[0] and "hysteresis" in said[0]
    assert "since t = 1.000" in said[0]


def test_a_switch_at_which_a_run_begins_is_named(caplog):
    """A swing about the point of switching is as small as its errors: no look ahead sees it, one to the sides does."""
    sim = cs.Simulation(engine="compiled")
    caplog.set_level("INFO", "cstormpy")
    bd = sim.blockdiagram()
    speed, place = bd.INTEGRATOR(x0=0.0), bd.INTEGRATOR(x0=0.0)
    switch = bd.FUNCTION(lambda x: -1.0 if x > 0 else 1.0, name="switch")
    bd.connect(speed, place)
    bd.connect(place, switch)
    bd.connect(switch, speed)
    sim.run(bd, T=0.02, max_step=1.0)
    (said,) = [line for line in caplog.messages if line.startswith("steps of ")]
    assert "'switch' (FUNCTION) jumps to and fro" in said


@pytest.mark.slow
def test_a_stiff_state_that_holds_up_the_solver_is_named(sim, caplog):
    caplog.set_level("INFO", "cstormpy")
    sim.run(signed(sim, lambda x: -1e7 * x), T=4e-3, max_step=1.0)
    (said,) = [line for line in caplog.messages if line.startswith("steps of ")]
    assert "state 'state" in said and "Radau" in said


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_switch_that_would_hold_up_the_solver_for_ever_ends_the_run(engine):
    """The sign of a sliding variable: millions of steps were ahead, two minutes of them interpreted."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    place, speed = bd.INTEGRATOR(x0=0.1, name="place"), bd.INTEGRATOR(x0=0.0, name="speed")
    switch = bd.FUNCTION(lambda x, v: -20.0 if x + v > 0.0 else 20.0, nin=2, name="switch")
    bd.connect(speed, place)
    bd.connect(place, switch[0])
    bd.connect(speed, switch[1])
    bd.connect(switch, speed)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and 5000 < len(out.t) < 20000
    for part in ("'switch' (FUNCTION) jumps to and fro", "hysteresis", "bd.ZOH(bd.clock("):
        assert part in out.message


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_relay_that_switches_all_the_time_ends_the_run(engine):
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    speed, relay = bd.INTEGRATOR(x0=0.01, name="speed"), bd.RELAY(1e-7, -1e-7, on=-1.0, off=1.0, name="bang")
    bd.connect(speed, relay)
    bd.connect(relay, speed)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and len(out.t) < 3000
    assert out.message.startswith("bang: 1000 events within 0.0002") and "wider hysteresis" in out.message
    assert sim.run(bd, T=0.0105).status == "finished"  # the events ahead are few


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_relays_that_switch_all_the_time_by_turns_end_the_run(engine):
    """With more than one of them the millions of events ahead were not seen."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    for name, first in (("one", 0.0), ("other", 5e-8)):
        speed, relay = bd.INTEGRATOR(x0=first), bd.RELAY(1e-7, -1e-7, on=-1.0, off=1.0, name=name)
        bd.connect(speed, relay)
        bd.connect(relay, speed)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and len(out.t) < 3000
    assert out.message.startswith(("one: 500 events within", "other: 500 events within"))
    assert sim.run(bd, T=0.0005).status == "finished"


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize("solver", ["RK45", pytest.param("DOP853", marks=pytest.mark.slow)])
def test_a_stiff_state_that_would_hold_up_an_explicit_solver_for_ever_ends_the_run(engine, solver):
    """It went on until its samples filled the memory."""
    sim = cs.Simulation(engine=engine)
    bd = signed(sim, lambda x: -1e9 * x)
    out = sim.run(bd, T=1.0, solver=solver)
    assert out.status == "failed" and 5000 < len(out.t) < 20000
    assert "state 'state" in out.message and "'Radau' or 'BDF'" in out.message
    assert sim.run(bd, T=1.0, solver="BDF").status == "finished"


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize("rest", [1.0, 3e7])
def test_a_stiff_state_of_any_size_is_not_taken_for_a_switch(engine, rest):
    """Of a pressure in Pa that came to rest it was said that it jumps to and fro: by its last digit, within 1e-9."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    pressure, valve = bd.INTEGRATOR(x0=0.5 * rest, name="pressure"), bd.GAIN(1e9, name="valve")
    lacking = bd.SUM("+-", name="lacking")
    bd.connect(bd.CONSTANT(rest), lacking[0])
    bd.connect(pressure, lacking[1])
    bd.connect(lacking, valve)
    bd.connect(valve, pressure)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and "state 'pressure" in out.message and "'Radau' or 'BDF'" in out.message


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize("size", [1e-3, 1e7])
def test_a_switch_is_named_whatever_the_size_of_what_it_switches(engine, size):
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    pressure = bd.INTEGRATOR(x0=1.001 * size, name="pressure")
    valve = bd.FUNCTION(lambda p: -10.0 * size if p > size else 10.0 * size, name="valve")
    bd.connect(pressure, valve)
    bd.connect(valve, pressure)
    out = sim.run(bd, T=1e4, rtol=1e-9)
    assert out.status == "failed" and "'valve' (FUNCTION) jumps to and fro" in out.message


@pytest.mark.slow
def test_a_fast_swing_is_not_stiff(sim):
    """Its steps are short since it is followed; no other solver would take longer ones."""
    bd = sim.blockdiagram()
    place, speed, pull = bd.INTEGRATOR(x0=1.0), bd.INTEGRATOR(x0=0.0), bd.GAIN(-1e16)
    bd.connect(speed, place)
    bd.connect(place, pull)
    bd.connect(pull, speed)
    out = sim.run(bd, T=1.0, observer=lambda t, x: sim.stop(bd) if t > 2e-5 else None)
    assert "Radau" not in out.message and out.t[-1] > 2e-5


def test_short_steps_that_were_asked_for_are_no_reason_to_say_anything(sim, caplog):
    caplog.set_level("INFO", "cstormpy")
    sim.run(signed(sim, lambda x: -x), T=0.003, max_step=1e-6)
    sim.run(signed(sim, lambda x: -x), T=0.003, solver="Euler", dt=1e-6)
    assert not [line for line in caplog.messages if line.startswith("steps of ")]


def test_steps_that_end_at_ticks_are_no_reason_to_say_anything(caplog):
    """A fast loop in a long run was told that a state changes fast, and to take a solver for stiff diagrams."""
    sim = cs.Simulation(engine="compiled")
    caplog.set_level("INFO", "cstormpy")
    bd = sim.blockdiagram()
    lag, held = bd.INTEGRATOR(x0=1.0, name="lag"), bd.ZOH(bd.clock(1000, "Hz"), x0=1.0, name="held")
    bd.connect(lag, held)
    bd.connect(held, back := bd.GAIN(-1.0))
    bd.connect(back, lag)
    sim.run(bd, T=20.0, max_step=20.0)
    assert not [line for line in caplog.messages if line.startswith("steps of ")]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_fails_just_ahead_of_the_last_step_keeps_what_was_simulated(engine):
    """A state that runs away until its rate cannot be computed: the run says so, and returns how it came there."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    state, rate = bd.INTEGRATOR(x0=0.0, name="state"), bd.FUNCTION(lambda x: math.exp(10.0 * x * x), name="rate")
    bd.connect(state, rate)
    bd.connect(rate, state)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and len(out.t) > 20
    assert "'rate' (FUNCTION), output at t = " in out.message and "OverflowError: math range error" in out.message
