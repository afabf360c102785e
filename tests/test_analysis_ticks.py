"""Derivatives through the ticks of clocks: many at once by the compiled steps, against recursions and single ticks."""

import copy
import math

import numba
import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import InvalidValue
from cstormpy.simulation.analysis.ticks import TickingRun

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="ticks are done one by one where the JIT is off")


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="compiled")


@pytest.fixture
def at_once(monkeypatch):
    """How many ticks were done by compiled steps, in a list."""
    done, original = [], TickingRun._steps_and_ticks

    def counted(self, *arguments):
        went, ticked = original(self, *arguments)
        done.append(len(ticked))
        return went, ticked

    monkeypatch.setattr(TickingRun, "_steps_and_ticks", counted)
    return done


@pytest.mark.parametrize(
    "steps", [{"dt": 0.005, "solver": "RK4"}, {"rtol": 1e-9, "atol": 1e-12}], ids=["fixed", "chosen"]
)
def test_thousands_of_ticks_are_their_recursion(sim, at_once, steps):
    T, period, K, start = 30.0, 0.01, 1.5, 0.3
    bd = sim.blockdiagram()
    lag, error = bd.LTI_SISO([1.0], [1.0, 1.0], x0=[start], name="lag"), bd.SUM("+-", name="error")
    hold, gain = bd.ZOH(bd.clock(period), name="hold"), bd.GAIN(K, name="gain")
    bd.connect(bd.CONSTANT(1.0, name="wanted"), error[0])
    bd.connect(lag, error[1])
    bd.connect(error, hold)
    bd.connect(hold, gain)
    bd.connect(gain, lag)
    found = sim.gradient(bd, "lag[0]", ["gain.K"], T=T, **steps)
    keeps, x, dx = math.exp(-period), start, 0.0
    ticks = np.arange(round(T / period)) * period
    at = np.searchsorted(found.out.t, ticks - 1e-9)
    for k in at.tolist():
        assert found.out.x[k, 0] == pytest.approx(x, abs=1e-9) and found.dx[k, 0, 0] == pytest.approx(dx, abs=1e-9)
        u, du = K * (1.0 - x), (1.0 - x) - K * dx
        x, dx = keeps * x + (1.0 - keeps) * u, keeps * dx + (1.0 - keeps) * du
    assert found.dx[-1, 0, 0] == pytest.approx(dx, abs=1e-9) and found.gradient == pytest.approx([dx], abs=1e-9)
    assert sum(at_once) > 0.99 * len(ticks)


def two_clocks(sim):
    """A plant of second order under a sampled PID, a filter by another clock, and a switch by what that holds.

    The plant's reference steps; a limited integral of what is sampled stands at its bound for some time.
    """
    bd = sim.blockdiagram()
    fast, slow = bd.clock(0.03, name="fast"), bd.clock(0.07, offset=0.011, name="slow")
    wanted = bd.STEP(T=0.4, off=0.1, on=0.5, name="wanted")
    pid, plant = (
        bd.DISCRETEPID(fast, P=6.0, I=4.0, D=0.4, name="pid"),
        bd.LTI_SISO([2.0], [1.0, 0.8, 3.0], name="plant"),
    )
    smooth = bd.LTI_SISO_S(slow, [0.5, 0.1], [1.0, -0.4], name="smooth")
    change = bd.DERIV_S(slow, gain=0.05, name="change")
    relay = bd.RELAY(0.02, -0.02, on=0.3, off=-0.3, name="relay")
    push, bounded = bd.SUM("++", name="push"), bd.INTEGRATOR(min=-0.05, max=0.04, name="bounded")
    for begin, end in [
        (wanted, pid.reference), (plant, pid.measured), (pid, push[0]), (relay, push[1]), (push, plant),
        (plant, smooth), (smooth, change), (change, relay), (relay, bounded), (bounded, bd.NULL()),
    ]:  # fmt: skip
        bd.connect(begin, end)
    return bd


@pytest.mark.parametrize(
    "steps", [pytest.param({"dt": 0.004, "solver": "RK4"}, marks=pytest.mark.slow), {"rtol": 1e-8, "atol": 1e-10}]
)
def test_ticks_at_once_are_ticks_one_by_one(sim, at_once, steps):
    names = ["pid.P", "pid.D", "plant.x0", "relay.on", "bounded.max", "wanted.on", "wanted.T"]
    options = {"T": 2.0, "watch": ["plant", "smooth", "change", "bounded"], **steps}
    many = sim.gradient(two_clocks(sim), lambda out: out.x[-1], names, **options)
    assert sum(at_once) > 60
    plain = cs.Simulation(live=False, engine="interpreted")
    single = plain.gradient(two_clocks(plain), lambda out: out.x[-1], names, **options)
    assert [e[1] for e in many.events] == [e[1] for e in single.events] and {e[1] for e in many.events} >= {"relay"}
    assert many.notes == single.notes
    np.testing.assert_allclose(many.out.t, single.out.t, rtol=0, atol=1e-12)
    np.testing.assert_allclose(many.dx, single.dx, rtol=0, atol=1e-9)
    for signal in options["watch"]:
        np.testing.assert_allclose(many.out.signal(signal), single.out.signal(signal), rtol=0, atol=1e-10)


def test_sampled_states_of_a_saved_start_are_parameters(sim):
    bd, names = two_clocks(sim), ["pid:integral", "pid:difference", "smooth:X_0", "pid held[0]", "change held[0]"]
    first = sim.run(bd, T=0.5).state
    found = sim.gradient(bd, lambda out: out.x[-1], names, T=0.4, start=first)
    moved = {"pid:integral": ("sampled", "pid", 0), "pid:difference": ("sampled", "pid", 2)}
    moved |= {"smooth:X_0": ("sampled", "smooth", 0)} | {f"{b} held[0]": ("held", b, 0) for b in ("pid", "change")}
    for name, slope in zip(names, found.gradient.T, strict=True):
        kind, block, k = moved[name]
        ends = []
        for h in (1e-4, -1e-4):
            start = copy.deepcopy(first)
            getattr(start, kind)[block][k] += h
            ends.append(sim.run(bd, T=0.4, start=start, rtol=1e-10, atol=1e-12).x[-1])
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, atol=1e-6)
    with pytest.raises(InvalidValue, match="'pid:integral' is a sampled state, which no block is given"):
        sim.tune(bd, lambda out: out.x[-1, 0] ** 2, names, T=0.4, start=first)
