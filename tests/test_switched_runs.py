"""Runs in which events come between many declared jumps, as of pulse width modulation: closed forms, and their cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.components import TimeQ
from scipy.linalg import expm
from scipy.optimize import brentq

import cstormpy as cs
from cstormpy.simulation.compiled import compiled_run

#: Of a buck converter [V, H, F, Ω], and the frequency of its switch [Hz].
SOURCE, L, C, R, FREQUENCY = 24.0, 100e-6, 100e-6, 2.0, 50e3


def converter(sim, duty, clocked=False):
    """Return a buck converter that starts from rest, its switch worked by a sawtooth and a comparison."""
    bd = sim.blockdiagram()
    carrier = bd.FROMDATA(t=[0.0, 1.0 / FREQUENCY], y=[0.0, 1.0], ends="repeat")
    level, wanted, switch = bd.SUM("+-"), bd.CONSTANT(duty), bd.COMPARE(">", name="switch")
    A, B = [[0.0, -1.0 / L], [1.0 / C, -1.0 / (R * C)]], [[SOURCE / L], [0.0]]
    filter = bd.STATESPACE(A, B, np.eye(2), name="filter")
    if clocked:
        bd.connect(wanted, held := bd.ZOH(bd.clock(FREQUENCY / 4.0, "Hz"), x0=[duty]))
        wanted = held
    bd.connect(wanted, level[0])
    bd.connect(carrier, level[1])
    bd.connect(level, switch)
    bd.connect(switch, filter)
    bd.connect(filter, bd.NULL())
    return bd


def expected(duty, rounds):
    """Return current and voltage after some periods of the switch."""
    x = np.array([0.0, 0.0, 1.0])
    for _ in range(rounds):
        for on, share in ((1.0, duty), (0.0, 1.0 - duty)):
            rates = np.array([[0.0, -1.0 / L, on * SOURCE / L], [1.0 / C, -1.0 / (R * C), 0.0], [0.0, 0.0, 0.0]])
            x = expm(rates * share / FREQUENCY) @ x
    return x[:2]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("duty", [0.25, 0.5, 0.8])
def test_no_switching_of_a_converter_is_missed(engine, duty):
    """At a duty of one half 8 of 300 were: those from whose step to the next jump of the carrier nothing was seen."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    out = sim.run(converter(sim, duty), T=3e-3, rtol=1e-9, atol=1e-12)
    assert len(out.events) in (299, 300)  # the last jump of the carrier ends the run
    np.testing.assert_allclose(out.x[-1], expected(duty, 150), rtol=1e-7)


def test_what_is_handed_to_compiled_steps_grows_with_the_time_alone(monkeypatch):
    """All jumps ahead were handed over and back at each event: a run twice as long took four times as long."""
    pushed = []

    def push(queue, value, original=TimeQ.push):
        pushed.append(value)
        original(queue, value)

    monkeypatch.setattr(TimeQ, "push", push)
    counts = []
    for T in (0.01, 0.02):
        sim = cs.Simulation(engine="compiled", live=False, progress=False)
        bd = converter(sim, 0.4)
        pushed.clear()
        sim.run(bd, T=T)
        counts.append(len(pushed))
    assert counts[1] < 2.2 * counts[0]


@pytest.mark.parametrize("clocked", [False, True])
@pytest.mark.parametrize("room", [1, 2, 5])
def test_steps_do_not_depend_on_how_much_is_handed_over(monkeypatch, room, clocked):
    monkeypatch.setattr(compiled_run, "_ROOM", room)
    runs = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        runs.append(sim.run(converter(sim, 0.4, clocked), T=1e-3, watch=["switch"]))
    plain, compiled = runs
    assert len(plain.t) == len(compiled.t)
    np.testing.assert_allclose(plain.t, compiled.t, rtol=1e-9)
    np.testing.assert_array_equal(plain.signal("switch"), compiled.signal("switch"))
    np.testing.assert_allclose(plain.x, compiled.x, atol=1e-8)


def discontinuous(sim, R, duty, L=100e-6, C=100e-6, period=2e-5):
    """Return a buck converter from 24 V whose current rests at zero in each round, as its diode blocks."""
    bd = sim.blockdiagram()
    current, voltage = bd.INTEGRATOR(0.0, min=0.0, name="current"), bd.INTEGRATOR(10.0, name="voltage")
    switch, across, surplus = bd.PULSE(24.0, period, duty), bd.SUM("+-"), bd.SUM("+-")
    bd.connect(switch, across[0])
    bd.connect(voltage, across[1], load := bd.GAIN(1.0 / R))
    bd.connect(across, by_L := bd.GAIN(1.0 / L))
    bd.connect(by_L, current)
    bd.connect(current, surplus[0])
    bd.connect(load, surplus[1])
    bd.connect(surplus, by_C := bd.GAIN(1.0 / C))
    bd.connect(by_C, voltage)
    return bd


def test_a_state_that_rests_at_its_limit_in_each_round(caplog):
    """It came out beyond its limit by a rounding, of which each run that begins there told."""
    R, L, C, duty, period = 50.0, 100e-6, 100e-6, 0.3, 2e-5

    def flow(on, t, current, voltage):
        rates = np.array([[0.0, -1.0 / L, on * 24.0 / L], [1.0 / C, -1.0 / (R * C), 0.0], [0.0, 0.0, 0.0]])
        return (expm(rates * t) @ [current, voltage, 1.0])[:2]

    def after(voltage):
        top = flow(1.0, duty * period, 0.0, voltage)
        empty = brentq(lambda t: flow(0.0, t, *top)[0], 1e-9, (1.0 - duty) * period, xtol=1e-16)
        rest = (1.0 - duty) * period - empty
        return flow(0.0, empty, *top)[1] * math.exp(-rest / (R * C))

    voltage = brentq(lambda v: after(v) - v, 8.0, 20.0, xtol=1e-12)
    slope = (after(voltage + 1e-3) - after(voltage - 1e-3)) / 2e-3
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = discontinuous(sim, R, duty)
    with caplog.at_level("INFO", logger="cstormpy"):
        orbit = sim.periodic_orbit(bd, period, settle=1e-2)
        sim.run(bd, T=period, start=orbit.out)
    assert orbit.success and 0.0 <= orbit.x[0] < 1e-12
    assert all("compiling kernels" in told for told in caplog.messages)
    assert orbit.x[1] == pytest.approx(voltage, rel=1e-8)
    assert orbit.multipliers.real == pytest.approx([slope, 0.0], abs=1e-6)
