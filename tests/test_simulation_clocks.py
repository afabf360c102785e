"""Clocks tick at 0, T, 2T and all see the same signals; jumps of sources are hit exactly."""

from __future__ import annotations

import functools
import gc
import math
import weakref

import numpy as np
import pytest

import cstormpy as cs


@pytest.fixture
def sim():
    return cs.Simulation()


def ticks(out, k=0):
    return [out[key] for key in out if key.startswith("clock")][k]


def counter(bd, clock, name="count"):
    """Return a block that counts the ticks of a clock."""
    count = bd.INTEGRATOR_S(clock, gain=1 / clock.T, name=name)
    bd.connect(bd.CONSTANT(1.0), count)
    return count


def test_a_clock_that_was_meant_in_hertz_is_said_once(sim, caplog):
    """A controller at "250" stood still for the whole run, and nothing told that this is a period in seconds."""
    for period, said in ((250.0, True), (9.0, False), (0.1, False)):
        caplog.clear()
        bd = sim.blockdiagram()
        counter(bd, bd.clock(period, name=f"control{period:g}"))
        sim.run(bd, 1.0)
        assert [r.getMessage() for r in caplog.records if "has a period of" in r.getMessage()] == [
            "clock 'control250' has a period of 250 s, more than the run is long; a rate in Hz is written "
            "bd.clock(250, 'Hz')"
        ] * said


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize(("T", "offset"), [(0.1, 0.0), (0.25, 0.1), (1 / 3, 0.0), (0.7, 0.65)])
def test_ticks_are_at_0_T_2T(sim, T, offset, continuous):
    bd = sim.blockdiagram()
    counter(bd, bd.clock(T, offset=offset))
    if continuous:
        bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR())
    out = sim.run(bd, 2.1)
    times = offset + T * np.arange(100)
    times = times[times <= 2.1 + 1e-12]
    np.testing.assert_allclose(ticks(out).t, times, rtol=0, atol=1e-12)
    assert ticks(out).X[:, 0].tolist() == pytest.approx(1.0 + np.arange(len(times)))


def test_first_tick_as_bdsim(sim):
    bd = sim.blockdiagram()
    counter(bd, bd.clock(0.25))
    assert ticks(sim.run(bd, 1.0, first_tick="bdsim")).t.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert ticks(sim.run(bd, 1.0)).t.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    with pytest.raises(cs.InvalidValue, match="first_tick: expected 0 or 'bdsim', got 1"):
        sim.run(bd, 1.0, first_tick=1)


def test_a_hold_samples_the_present(sim):
    """After the tick at t the hold shows the input of t, until the next tick."""
    bd = sim.blockdiagram()
    hold = bd.ZOH(bd.clock(0.25), x0=-1.0, name="hold")
    bd.connect(bd.TIME(name="time"), hold)
    bd.connect(hold, bd.INTEGRATOR(name="held"))
    out = sim.run(bd, 1.1, watch=["hold"])
    np.testing.assert_allclose(out.signal("hold[0]"), 0.25 * np.floor(out.t / 0.25 + 1e-12), atol=1e-15)
    assert out.x[-1, 0] == pytest.approx(0.25 * (0 + 0.25 + 0.5 + 0.75) + 0.1 * 1.0, abs=1e-14)


def test_a_diagram_with_a_clock_is_freed_and_counts_its_own_clocks(sim):
    """bdsim's list of all clocks held their diagrams for ever, and numbered them through: now clock0, now clock17."""
    held = []
    for _ in range(2):
        bd = sim.blockdiagram()
        first, second = bd.ZOH(bd.clock(0.1), name="first"), bd.ZOH(bd.clock(0.2, name="slow"), name="second")
        bd.connect(bd.TIME(), first, second)
        bd.connect(first, bd.NULL())
        bd.connect(second, bd.NULL())
        out = sim.run(bd, T=0.3)
        assert (out.clock0.Xnames, out.slow.Xnames) == (["first:X_0"], ["second:X_0"])
        np.testing.assert_allclose(out.clock0.X[:, 0], out.clock0.t, atol=1e-12)
        held.append(weakref.ref(bd))
    del bd, first, second, out
    other = sim.blockdiagram()
    other.connect(other.CONSTANT(1.0), other.INTEGRATOR())
    sim.run(other, T=0.1)  # its last result knows the diagram
    gc.collect()
    assert [each() for each in held] == [None] * 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_clocks_that_tick_together_see_the_same_signals(sim, order):
    """Two holds in a ring exchange their values: neither sees what the other has just become."""
    bd = sim.blockdiagram()
    clocks = [bd.clock(0.5), bd.clock(0.25)]
    one, two = bd.ZOH(clocks[order[0]], x0=1.0, name="one"), bd.ZOH(clocks[order[1]], x0=2.0, name="two")
    bd.connect(one, two)
    bd.connect(two, one)
    out = sim.run(bd, 0.4, watch=[one, two])
    assert out.y[0].tolist() == [2.0, 1.0]


def test_two_clocks_of_different_rates(sim):
    bd = sim.blockdiagram()
    for k, T in enumerate((0.1, 0.15)):
        bd.connect(counter(bd, bd.clock(T), f"count{k}"), bd.NULL())
    out = sim.run(bd, 3.0, watch=["count0", "count1"])
    assert out.y[-1].tolist() == pytest.approx([31, 21])
    # the ticks that fall together are one sample
    assert len(out.t) == len(np.unique(np.round(out.t, 9)))


def test_a_clock_samples_what_a_source_jumps_to(sim):
    """STEP(T=1) is 1 at t = 1, and so is what a clock samples there, and what is recorded on a grid."""
    bd = sim.blockdiagram()
    step, hold = bd.STEP(T=1.0, name="step"), bd.ZOH(bd.clock(0.1), name="hold")
    bd.connect(step, hold)
    bd.connect(hold, bd.INTEGRATOR(name="x"))
    assert sim.run(bd, 2.0, max_step=0.05).x[-1, 0] == pytest.approx(1.0, abs=1e-12)
    out = sim.run(bd, 2.0, log_dt=0.5, watch=["step", "hold"])
    assert out.t.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert out.y[:, 0].tolist() == [0, 0, 1, 1, 1]
    assert out.y[:, 1].tolist() == [0, 0, 1, 1, 1]


def test_sampled_controller_as_its_exact_discretisation(sim):
    """x' = -x + u with u = -3 x held over T: x_{k+1} = x_k (e^-T - 3 (1 - e^-T))."""
    T = 0.1
    bd = sim.blockdiagram()
    plant, hold, gain = bd.LTI_SISO(1, [1, 1], x0=[1.0]), bd.ZOH(bd.clock(T)), bd.GAIN(-3.0)
    bd.connect(plant, gain)
    bd.connect(gain, hold)
    bd.connect(hold, plant)
    out = sim.run(bd, 2.0, rtol=1e-11, atol=1e-13)
    factor = math.exp(-T) - 3 * (1 - math.exp(-T))
    at_ticks = [out.x[np.argmin(abs(out.t - k * T)), 0] for k in range(21)]
    np.testing.assert_allclose(at_ticks, factor ** np.arange(21), atol=1e-11)


def test_a_clock_of_1_kHz_with_a_continuous_plant(sim):
    """No tick is lost, and the loop does what its exact discretisation does."""
    bd = sim.blockdiagram()
    plant, hold, gain = bd.LTI_SISO(1, [1, 1], x0=[1.0]), bd.ZOH(bd.clock(1000, "Hz"), x0=-3.0), bd.GAIN(-3.0)
    bd.connect(plant, gain)
    bd.connect(gain, hold)
    bd.connect(hold, plant)
    out = sim.run(bd, 1.0)
    assert len(ticks(out).t) == 1001
    assert out.x[-1, 0] == pytest.approx((4 * math.exp(-1e-3) - 3) ** 1000, rel=1e-8)


def test_a_purely_discrete_diagram_steps_from_tick_to_tick(sim):
    bd = sim.blockdiagram()
    delay = bd.LTI_SISO_S(bd.clock(0.5), N=[1], D=[1, -0.5], name="filter")
    bd.connect(bd.CONSTANT(1.0), delay)
    out = sim.run(bd, 3.0, watch=["filter"])
    assert out.t.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    np.testing.assert_allclose(out.y[:, 0], 2 * (1 - 0.5 ** np.arange(1, 8)), atol=1e-14)


def test_a_diagram_of_sources_alone(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.WAVEFORM("sine", freq=1, name="sine"), bd.NULL())
    out = sim.run(bd, 1.0, watch=["sine"])
    assert len(out.t) >= 100
    np.testing.assert_allclose(out.y[:, 0], np.sin(2 * np.pi * out.t), atol=1e-12)
    assert out.x.shape == (len(out.t), 0)


def test_widths_of_a_sampled_state(sim):
    bd = sim.blockdiagram()
    hold = bd.ZOH(bd.clock(0.1), name="hold")
    bd.connect(bd.CONSTANT([1.0, 2.0]), hold)
    with pytest.raises(
        cs.DiagramError, match=r"block 'hold' \(ZOH\): has 1 sampled states, but next\(\) gives 2; make x0"
    ):
        sim.run(bd, 1.0)


# ------------------------------------------------------------------ jumps of sources


def integral(sim, make, T, **options):
    """Return the integral of a source over a run, and the run."""
    bd = sim.blockdiagram()
    source = make(bd)
    bd.connect(source, bd.INTEGRATOR(name="x"))
    out = sim.run(bd, T, watch=[source], **options)
    return out.x[-1, 0], out


def square_integral(T, freq, phase, duty):
    """Return the integral of a square wave of ±1."""
    corners = np.concatenate([(np.arange(-2, T * freq + 2) + phase + part) / freq for part in (0.0, duty)])
    edges = np.unique(np.clip([0.0, *corners, T], 0.0, T))
    middles = (edges[1:] + edges[:-1]) / 2
    high = (middles * freq - phase) % 1.0 < duty
    return float(np.sum(np.diff(edges) * np.where(high, 1.0, -1.0)))


@pytest.mark.parametrize("freq", [1.0, 3.0, 7.3, math.pi, 0.37])
@pytest.mark.parametrize(("phase", "duty"), [(0.0, 0.5), (0.7, 0.5), (0.3, 0.1), (1 / 3, 0.9), (1.0, 0.5)])
def test_the_integral_of_a_square_wave_is_exact(sim, freq, phase, duty):
    value, out = integral(sim, lambda bd: bd.WAVEFORM("square", freq=freq, phase=phase, duty=duty), 5.0)
    assert value == pytest.approx(square_integral(5.0, freq, phase, duty), abs=1e-12)
    assert out.stats.evaluations < 40 * (100 + 10 * freq)  # no search for the jumps by ever shorter steps


def test_a_square_wave_after_many_cycles(sim):
    value, out = integral(sim, lambda bd: bd.WAVEFORM("square", freq=7.3, duty=0.3), 200.0)
    assert value == pytest.approx(square_integral(200.0, 7.3, 0.0, 0.3), abs=1e-10)
    assert out.stats.steps < 3500


def test_the_integral_of_a_triangle_wave_is_exact(sim):
    value, _ = integral(sim, lambda bd: bd.WAVEFORM("triangle", freq=1.7, phase=0.4), 10 / 1.7)
    assert value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("T", [0.1, 0.3, 1 / 3, 1.0, 1.7])
def test_steps_ramps_and_pieces_are_hit_exactly(sim, T):
    assert integral(sim, lambda bd: bd.STEP(T=T, on=3.0), 2.0)[0] == pytest.approx(3 * (2 - T), abs=1e-12)
    assert integral(sim, lambda bd: bd.RAMP(T=T, slope=2.0), 2.0)[0] == pytest.approx((2 - T) ** 2, abs=1e-12)
    pieces = ((0, 1.0), (T, -2.0), (T + 0.2, 5.0))
    value, out = integral(sim, lambda bd: bd.PIECEWISE(*pieces), 2.0)
    assert value == pytest.approx(T - 0.4 + 5 * (1.8 - T), abs=1e-12)
    # before and after the jump, at the very time
    at = np.flatnonzero(out.t == T)
    assert out.y[at, 0].tolist() == [1.0, -2.0]


def test_jumps_at_both_ends(sim):
    value, out = integral(sim, lambda bd: bd.PIECEWISE((0, 1.0), (1.0, 2.0)), 1.0)
    assert value == pytest.approx(1.0, abs=1e-14)
    assert out.y[-1, 0] == 2.0
    assert integral(sim, lambda bd: bd.STEP(T=0.0), 1.0)[0] == pytest.approx(1.0, abs=1e-14)
    assert integral(sim, lambda bd: bd.STEP(T=-1.0), 1.0)[0] == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("solver", ["RK4", "DOP853", "Radau", "BDF", "LSODA"])
def test_every_solver_hits_jumps(sim, solver):
    value, _ = integral(sim, lambda bd: bd.WAVEFORM("square", freq=3.3), 2.0, solver=solver, dt=0.01)
    assert value == pytest.approx(square_integral(2.0, 3.3, 0.0, 0.5), abs=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_points_of_a_grid_at_ticks_show_what_is_held_from_there_on(engine):
    """A step that ended one rounding before the tick at 0.2 s was taken for the point of the grid there."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    hold, state, rate = bd.ZOH(bd.clock(10, "Hz"), name="hold"), bd.INTEGRATOR(x0=0.0), bd.CONSTANT(1.0)
    bd.connect(bd.TIME(), hold)
    bd.connect(rate, state)
    for dt in (0.05, 0.025, 0.02, 0.1, 0.01):
        out = sim.run(bd, T=2.0, dt=dt, watch=["hold"])
        points = np.arange(len(out.t))
        np.testing.assert_allclose(out.t, points * dt, atol=1e-12)
        per_tick = round(0.1 / dt)
        np.testing.assert_allclose(np.ravel(out.signal("hold")), points // per_tick * 0.1, atol=1e-12)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_samples_on_a_grid_show_what_a_tick_at_an_event_brings(engine):
    """The event, at the same time or a rounding before, was recorded, and the tick behind it no more."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(bd.TIME(), bd.ZOH(bd.clock(0.1, "s"), name="held"))
    for phase in (0.0, 0.25):  # which pass zero at 0.1, 0.2, 0.3, … s
        bd.connect(bd.WAVEFORM("sine", freq=2.5, phase=phase), above := bd.COMPARE(">", 0.0))
        bd.connect(above, bd.INTEGRATOR())
    out = sim.run(bd, T=0.8, dt=0.1, watch=["held"])
    assert len(out.events) >= 7
    np.testing.assert_allclose(out.signal("held").ravel(), out.t, atol=1e-12)


def test_margins_are_those_of_the_period_of_a_subsystem_s_clock():
    """Of a diagram that had not been run yet the loop was said not to come back."""
    sim, found = cs.Simulation(live=False, progress=False), []
    for inside in (False, True):
        bd = sim.blockdiagram()
        host = sim.blockdiagram() if inside else bd
        law = host.DISCRETETF(host.clock(20, "Hz"), [3.0, -2.4], [1.0, -0.3], name="law")
        if inside:
            host.connect(host.INPORT(1), law)
            host.connect(law, host.OUTPORT(1))
            law = bd.SUBSYSTEM(host, name="part")
        plant, error = bd.TRANSFERFN([1], [1, 1, 0], name="plant"), bd.SUM("+-", name="error")
        bd.connect(bd.CONSTANT(1.0), error[0])
        bd.connect(plant, error[1])
        bd.connect(error, law)
        bd.connect(law, plant)
        margins = sim.margins(bd, at=["error"])
        found.append([*margins.gain[0], margins.phase[0], margins.distance[0]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    assert np.degrees(found[0][2]) == pytest.approx(60.86, abs=0.01)


@pytest.mark.parametrize("how", ["at", "post", "event"])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_sources_whose_times_are_set_in_a_run_are_hit_exactly_from_then_on(engine, how):
    """Their jumps stayed declared where they had been, and short pulses between the steps were missed."""
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    pulse, step = bd.PULSE(period=1.0, width=0.01, name="pulse"), bd.STEP(T=1.5, name="step")
    wave = bd.WAVEFORM("square", freq=1.0, name="wave")
    for source in (pulse, step, wave):
        bd.connect(source, bd.INTEGRATOR(name=f"of {source.name}"))

    def change(*_):
        pulse.period, step.T, wave.freq = 0.7, 2.2226, 1.9

    options = {}
    if how == "at":
        options["at"] = {0.5: change}
    elif how == "post":
        options["at"] = {0.5: lambda: sim.post(change)}
    else:
        late = bd.SUM("+-")
        bd.connect(bd.TIME(), late[0])
        bd.connect(bd.CONSTANT(0.5), late[1])
        bd.connect(late, bd.EVENT("+", change))
    out = sim.run(bd, T=8.0, **options)
    pulses = 0.01 + 0.007 * sum(0.7 * k < 8.0 for k in range(1, 20))
    waves = 0.5 + square_integral(8.0, 1.9, 0.0, 0.5) - square_integral(0.5, 1.9, 0.0, 0.5)
    assert out.x[-1].tolist() == pytest.approx([pulses, 8.0 - 2.2226, waves], abs=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_jumps_of_a_source_that_is_set_over_and_over_stay_as_many(engine):
    """Those of all numbers before stayed scheduled: 300 pulses of other widths took 46000 steps and 25 s."""
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    pulse = bd.PULSE(period=0.01, width=0.3, name="pulse")
    bd.connect(pulse, bd.INTEGRATOR())
    widths = [0.2 + 0.5 * (0.618 * k % 1.0) for k in range(1, 60)]
    at = {0.01 * k - 1e-4: functools.partial(setattr, pulse, "width", w) for k, w in enumerate(widths, 1)}
    out = sim.run(bd, T=0.6, at=at)
    assert out.x[-1, 0] == pytest.approx(0.01 * (0.3 + sum(widths)), abs=1e-12)
    assert out.stats.steps < 6 * len(widths)
