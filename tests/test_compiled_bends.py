"""Events at which nothing happens, as where a signal only bends: compiled steps pass them as Python would."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.blocks._crossings import Crossing

START = [1.2, -0.7]


def saturated(bd):
    """A law, in part of samples that jump, through a limit and a dead zone, beside a pulse."""
    mech = cs.library.acrobot()
    mech = mech.with_parameters({"elbow.damping": 0.1})
    plant = bd.HYBRIDDYNAMICS(mech, q0=START, name="plant")
    bd.connect(plant.q, angle := bd.INDEX([1], name="angle"))
    bd.connect(plant.qd, rate := bd.INDEX([1], name="rate"))
    law = bd.SUM("---", name="law")
    bd.connect(angle, stiff := bd.GAIN(30.0, name="stiff"))
    bd.connect(rate, damped := bd.GAIN(0.4, name="damped"))
    bd.connect(stiff, law[0])
    bd.connect(damped, law[1])
    bd.connect(bd.PULSE(period=0.33, width=0.5, amplitude=9.0, name="knock"), held := bd.ZOH(bd.clock(0.05)))
    bd.connect(held, law[2])
    limit = bd.SATURATION(-6.0, 6.0, name="limit")
    zone = bd.DEADZONE(-0.5, 0.5, name="zone")
    push = bd.SUM("++", name="push")
    bd.connect(law, limit)
    bd.connect(limit, zone)
    bd.connect(zone, push[0])
    bd.connect(bd.PULSE(period=0.7, width=0.3, amplitude=1.0, name="pulse"), push[1])
    bd.connect(push, plant.tau)


def switched(bd):
    """A relay, which jumps, behind a table of straight pieces and an angle within its turn."""
    turn = bd.INTEGRATOR(x0=0.3, name="turn")
    speed = bd.INTEGRATOR(x0=3.0, name="speed")
    bd.connect(speed, turn)
    bd.connect(turn, wrapped := bd.ANGLEWRAP(name="wrapped"))
    bd.connect(wrapped, table := bd.LOOKUP1D([-3.0, -1.0, 0.5, 2.0, 3.0], [0.0, 1.5, -1.0, 0.2, 0.0], name="table"))
    bd.connect(table, relay := bd.RELAY(0.4, -0.4, 1.0, -1.0, name="relay"))
    force = bd.SUM("++", name="force")
    bd.connect(table, force[0])
    bd.connect(relay, force[1])
    bd.connect(force, speed)


def bounded(bd):
    """A law with an integral that has limits, which a signal reaches and leaves between bends of its own."""
    wanted = bd.PULSE(period=2.0, width=0.5, amplitude=2.0, name="wanted")
    error, law = bd.SUM("+-", name="error"), bd.SUM("++", name="law")
    integral = bd.INTEGRATOR(min=-0.3, max=0.7, name="integral")
    body, speed = bd.INTEGRATOR(name="body"), bd.INTEGRATOR(name="speed")
    zone, limit = bd.DEADZONE(-0.05, 0.05, name="zone"), bd.SATURATION(-0.9, 1.1, name="limit")
    bd.connect(wanted, error[0])
    bd.connect(body, error[1])
    bd.connect(error, zone)
    bd.connect(zone, integral, law[0])
    bd.connect(integral, law[1])
    bd.connect(law, limit)
    drag = bd.SUM("+-", name="drag")
    bd.connect(limit, drag[0])
    bd.connect(drag, speed)
    bd.connect(speed, body)
    bd.connect(speed, brake := bd.SATURATION(-0.5, 0.5, name="brake"))
    bd.connect(brake, drag[1])


def found(made, **how):
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    made(bd)
    return sim.run(bd, T=9.0, watch="all", **how)


@pytest.mark.parametrize("how", [{}, {"solver": "DOP853", "rtol": 1e-9}, {"solver": "RK4", "dt": 0.02}, {"dt": 0.03}])
@pytest.mark.parametrize(("made", "least"), [(saturated, 80), (switched, 20), (bounded, 30)])
def test_what_python_would_do_is_done(made, least, how, monkeypatch):
    """Samples, states and events: to the last bit where Python takes no step by itself, as it does before a tick."""
    ours = found(made, **how)
    monkeypatch.setattr(Crossing, "only_bends", False)
    theirs = found(made, **how)
    rounding = {"rtol": 0, "atol": 0}
    assert [(e[1], e.what) for e in ours.events] == [(e[1], e.what) for e in theirs.events]
    assert len(ours.events) >= least
    np.testing.assert_allclose([e[0] for e in ours.events], [e[0] for e in theirs.events], **rounding)
    np.testing.assert_allclose(ours.t, theirs.t, **rounding)
    np.testing.assert_allclose(ours.x, theirs.x, **rounding)
    if how == {"dt": 0.03}:  # of which blocks say what the signals are
        rounding["atol"] = max(rounding["atol"], 1e-13)
    np.testing.assert_allclose(ours.y, theirs.y, **rounding)


def test_a_block_leaves_off_that_bends_without_end(monkeypatch):
    """A dither of 50 kHz through a limit for 6 s: 1 200 000 events were ahead."""

    def dithered(bd):
        bd.connect(bd.WAVEFORM("sine", freq=5e4, amplitude=1.0), limit := bd.SATURATION(-0.5, 0.5, name="limit"))
        bd.connect(limit, bd.INTEGRATOR(name="sum"))

    ours = found(dithered, max_step=1e-4)
    monkeypatch.setattr(Crossing, "only_bends", False)
    theirs = found(dithered, max_step=1e-4)
    assert ours.events == theirs.events
    assert len(ours.events) < 10_000
    assert ours.status == theirs.status == "finished"
    np.testing.assert_array_equal(ours.t, theirs.t)
    np.testing.assert_array_equal(ours.x, theirs.x)


@pytest.mark.parametrize("how", [{"solver": "RK23"}, {"solver": "RK23", "dt": 1e-4}])
def test_a_run_stands_where_bends_are_refused(how, monkeypatch):
    """An angle that slides along its wrap: what was computed until the event that ends the run is kept."""

    def sliding(bd):
        turn = bd.INTEGRATOR(x0=3.0, name="turn")
        bd.connect(turn, wrapped := bd.ANGLEWRAP(name="wrapped"))
        bd.connect(wrapped, turn)

    ours = found(sliding, **how)
    monkeypatch.setattr(Crossing, "only_bends", False)
    theirs = found(sliding, **how)
    assert ours.status == theirs.status == "failed" and ours.message == theirs.message
    assert ours.events == theirs.events
    assert 0.9 * ours.events[-1][0] < ours.t[-1] <= ours.state.t == ours.events[-1][0]
    assert ours.state == theirs.state
    np.testing.assert_array_equal(ours.t, theirs.t)
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.y, theirs.y)
