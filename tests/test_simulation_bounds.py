"""Limits of INTEGRATOR: reached and left at the right times, in both engines, by every solver, and in derivatives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from bdsim.blocks.continuous import Integrator

import cstormpy as cs
from cstormpy.errors import InvalidValue, NonFinite

ENGINES = ["interpreted", "compiled"]
SOLVERS = [
    {"rtol": 1e-10, "atol": 1e-12},
    {"solver": "DOP853", "rtol": 1e-10, "atol": 1e-12},
    {"solver": "Radau", "rtol": 1e-9, "atol": 1e-11},
    {"solver": "RK4", "dt": 0.01},
    {"dt": 0.05, "rtol": 1e-10, "atol": 1e-12},
]


@pytest.fixture(params=ENGINES)
def sim(request):
    return cs.Simulation(engine=request.param, live=False)


def of_time(bd, f, name="u"):
    """Return a FUNCTION of the time."""
    block = bd.FUNCTION(f, name=name)
    bd.connect(bd.TIME(), block)
    return block


def limited(sim, f, **limits):
    """Return a diagram with an INTEGRATOR of a function of the time."""
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(name="I", **limits)
    bd.connect(of_time(bd, f), state)
    return bd


def cosine(t):
    return np.cos(t)


def saturated(f, times, x=0.0, low=-0.5, high=0.5):
    """Return the limited integral at times, from its exact increments in short steps: the witness."""
    steps = np.union1d(np.linspace(0.0, times[-1], 100001), times)
    values = [x]
    for before, after in itertools.pairwise(f(steps).tolist()):
        values.append(min(high, max(low, values[-1] + after - before)))
    return np.array(values)[np.searchsorted(steps, times)]


@pytest.mark.parametrize("how", SOLVERS, ids=str)
def test_an_integrator_of_cosine_leaves_its_limits_as_soon_as_its_input_turns(sim, how):
    # it stayed at 0.5 for ever
    out = sim.run(limited(sim, cosine, min=-0.5, max=0.5), T=10.0, **how)
    np.testing.assert_allclose(out.x[:, 0], saturated(np.sin, out.t), rtol=0, atol=2e-7)
    assert out.x.max() == 0.5 and out.x.min() == -0.5  # never beyond, not by rounding either
    turns = [math.pi / 2 + k * math.pi for k in range(3)]
    reached = [math.pi / 6, *(math.pi * k for k in (1, 2, 3))]
    assert [t for t, _ in out.events] == pytest.approx(sorted(turns + reached), abs=2e-7)
    assert {name for _, name in out.events} == {"I"}


def test_pid_with_a_limited_integrator_comes_down_with_its_reference(sim):
    # P = I = 1, plant 1/(s + 1): it ended at 0.150 instead of -0.200
    bd = sim.blockdiagram()
    pid, plant = bd.PID(P=1.0, I=1.0, I_limit=0.5), bd.LTI_SISO(1, [1, 1], name="plant")
    reference = bd.PIECEWISE((0, 2.0), (10, -0.2))
    bd.connect(plant, pid[0])
    bd.connect(reference, pid[1])
    bd.connect(pid, plant)
    out = sim.run(bd, T=20.0, rtol=1e-10, atol=1e-12)
    # until 10 the integrator is full, and x = 2.5/2; then x'' + 2 x' + x = -0.2, from x = 1.25 and x' = -2.2
    y, slope = 1.25 + 0.2, -2.2
    expected = -0.2 + (y + (slope + y) * 10.0) * math.exp(-10.0)
    assert out.x[-1, 1] == pytest.approx(expected, abs=1e-7)


def test_limits_hold_for_each_state_by_itself(sim):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR([0.0, 0.3, 0.0], min=[-5.0, -0.2, -np.inf], max=[0.4, 5.0, np.inf], gain=2.0, name="I")
    bd.connect(of_time(bd, lambda t: np.array([1.0, -1.0, 1.0]) * np.cos(t)), state)
    out = sim.run(bd, T=4.0, rtol=1e-10, atol=1e-12)
    wanted = [
        saturated(lambda t: 2 * np.sin(t), out.t, 0.0, -5.0, 0.4),
        saturated(lambda t: -2 * np.sin(t), out.t, 0.3, -0.2, 5.0),
        2.0 * np.sin(out.t),
    ]
    for k in range(3):
        np.testing.assert_allclose(out.x[:, k], wanted[k], rtol=0, atol=1e-7)


def test_states_that_reach_their_limits_together_do_not_chatter(sim):
    """Four at the same time were refused as events that come too often."""
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=np.zeros(6), max=[1.0] * 6, name="I")
    bd.connect(bd.CONSTANT(np.ones(6)), state)
    out = sim.run(bd, T=2.0)
    assert out.status == "finished" and out.x[-1].tolist() == [1.0] * 6
    assert [(round(t, 9), name) for t, name in out.events] == [(1.0, "I")] * 6


def test_a_negative_gain_is_limited_where_its_rate_points(sim):
    out = sim.run(limited(sim, cosine, gain=-1.0, min=-0.5, max=0.5), T=4.0, rtol=1e-10, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(min(0.5, -0.5 - (math.sin(4.0) - 1.0)), abs=1e-8)


@pytest.mark.parametrize("first", [0.5, -0.5])
def test_a_limit_where_the_state_begins_is_held_or_left_from_the_start(sim, first):
    out = sim.run(limited(sim, cosine, x0=first, min=-0.5, max=0.5), T=2.0, rtol=1e-10, atol=1e-12)
    wanted = saturated(np.sin, out.t, first)
    np.testing.assert_allclose(out.x[:, 0], wanted, rtol=0, atol=1e-8)


def test_an_input_that_grows_from_zero_at_the_limit_holds_it_there(sim):
    out = sim.run(limited(sim, lambda t: t * (1.0 - t), x0=0.5, max=0.5), T=2.0, rtol=1e-10, atol=1e-12)
    assert out.x.max() == 0.5
    assert out.x[-1, 0] == pytest.approx(0.5 - 5.0 / 6.0, abs=1e-8)  # free from t = 1 on


def test_a_start_beyond_a_limit_is_one_at_it(sim):
    out = sim.run(limited(sim, lambda t: -1.0 + 0.0 * t, x0=2.0, max=0.5), T=1.0)
    assert out.x[0, 0] == 0.5 and out.x[-1, 0] == pytest.approx(-0.5, abs=1e-9)
    out = sim.run(limited(sim, lambda t: 1.0 + 0.0 * t, min=0.25), T=1.0, start=[-3.0])
    assert out.x[0, 0] == 0.25 and out.x[-1, 0] == pytest.approx(1.25, abs=1e-9)


def test_a_saved_state_at_the_limit_goes_on_as_if_nothing_had_been(sim):
    bd = limited(sim, cosine, min=-0.5, max=0.5)
    first = sim.run(bd, T=1.0, rtol=1e-10, atol=1e-12)
    assert first.x[-1, 0] == 0.5
    out = sim.run(bd, T=1.0, start=first.state, rtol=1e-10, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(0.5 + math.sin(2.0) - 1.0, abs=1e-8)
    # an input that is exactly zero there
    bd = limited(sim, lambda t: 1.0 - t, max=0.5)
    first = sim.run(bd, T=1.0, rtol=1e-10, atol=1e-12)
    out = sim.run(bd, T=1.0, start=first.state, rtol=1e-10, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("source", ["step", "sampled", "wave"])
def test_an_input_that_jumps_back_frees_the_integrator_at_once(sim, source):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(max=0.5, name="I")
    if source == "step":
        bd.connect(bd.STEP(T=1.0, off=1.0, on=-1.0), state)
    elif source == "sampled":
        hold = bd.ZOH(bd.clock(0.25, "s"), x0=1.0)
        bd.connect(of_time(bd, lambda t: 1.0 if t < 0.99 else -1.0), hold)
        bd.connect(hold, state)
    else:
        bd.connect(bd.WAVEFORM("square", freq=0.5), state)
    out = sim.run(bd, T=2.0, max_step=0.3)
    assert out.x[-1, 0] == pytest.approx(-0.5, abs=1e-9)
    assert out.x[:, 0].max() == 0.5


def test_an_input_that_is_no_number_ends_the_run_with_its_name(sim):
    bd = limited(sim, lambda t: 1.0 if t < 1.0 else math.nan, max=0.5)
    out = sim.run(bd, T=2.0)
    assert out.status == "failed" and "'u'" in out.message and out.t[-1] == pytest.approx(1.0, abs=0.03)


def test_one_limit_is_that_of_each_state_and_another_width_is_refused_by_name(sim):
    """It was "cannot be made: incorrect vector length: expected 4, got 1", though one is to serve for all."""
    f = lambda t: np.array([1.0, -1.0, 0.5]) * np.cos(t)  # noqa: E731
    ends = [
        sim.run(limited(sim, f, x0=[0.0] * 3, min=low, max=high), T=4.0, rtol=1e-10, atol=1e-12).x[-1]
        for low, high in ((-0.3, 0.2), ([-0.3], np.array([0.2])), ([-0.3] * 3, [0.2] * 3))
    ]
    wanted = [saturated(lambda t, k=k: k * np.sin(t), [4.0], 0.0, -0.3, 0.2)[0] for k in (1.0, -1.0, 0.5)]
    np.testing.assert_allclose(ends, [wanted] * 3, rtol=0, atol=1e-7)
    bd = sim.blockdiagram()
    sampled = bd.INTEGRATOR_S(bd.clock(10, "Hz"), x0=[0.0, 0.0], min=-0.3, max=0.2, name="S")
    bd.connect(bd.CONSTANT([1.0, -1.0]), sampled)
    np.testing.assert_array_equal(sim.run(bd, T=2.0, watch=["S"]).signal("S")[-1], [0.2, -0.3])
    with pytest.raises(
        cs.ShapeError, match=r"INTEGRATOR 'I': max: expected .*\(3,\), got \(2,\); give one number for all"
    ):
        limited(sim, f, x0=[0.0] * 3, max=[1.0, 2.0])


def test_limits_that_cannot_be_are_refused(sim):
    with pytest.raises(InvalidValue, match=r"INTEGRATOR 'I': min: .* is above max, "):
        sim.run(limited(sim, cosine, min=1.0, max=-1.0), T=1.0)
    with pytest.raises(NonFinite, match=r"block 'I': min and max must be numbers"):
        sim.run(limited(sim, cosine, max=math.nan), T=1.0)
    out = sim.run(limited(sim, cosine, x0=0.2, min=0.2, max=0.2), T=4.0)
    assert np.all(out.x == 0.2)
    bd = limited(sim, cosine, max=1.0)
    for later, says in (("x", "real numbers, got the text"), (10**400, "finite numbers"), ([1, 2], "1 number, got 2")):
        bd["I"].max = later
        with pytest.raises(cs.CstormError, match=f"block 'I': max: expected {says}"):
            sim.run(bd, T=1.0)


def test_derivatives_go_through_reaching_and_leaving_a_limit(sim):
    """A tank that is filled by a cos t from x0 up to m, and emptied again after π/2; its content and its integral."""
    bd = sim.blockdiagram()
    flow, level = bd.GAIN(1.0, name="flow"), bd.INTEGRATOR(0.1, max=0.5, name="level")
    total = bd.INTEGRATOR(name="total")
    bd.connect(of_time(bd, cosine), flow)
    bd.connect(flow, level)
    bd.connect(level, total)
    names = ["flow.K", "level.max", "level.x0"]
    found = sim.gradient(bd, lambda out: out.x[-1], names, T=2.5, rtol=1e-10, atol=1e-12)
    a, m, x0, T = 1.0, 0.5, 0.1, 2.5
    full = math.asin((m - x0) / a)

    def ends(a, m, x0):
        full = math.asin((m - x0) / a)
        first = x0 * full + a * (1.0 - math.cos(full))
        after = m * (T - math.pi / 2) + a * (-math.cos(T) - (T - math.pi / 2))
        return np.array([m + a * (math.sin(T) - 1.0), first + m * (math.pi / 2 - full) + after])

    values = np.array([a, m, x0])
    slopes = [(ends(*(values + h)) - ends(*(values - h))) / 2e-5 for h in np.eye(3) * 1e-5]
    np.testing.assert_allclose(found.cost, ends(a, m, x0), rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.gradient, np.transpose(slopes), rtol=0, atol=1e-6)
    assert found.events[0][0] == pytest.approx(full, abs=1e-8) and found.notes == []


@pytest.mark.parametrize("first", [0.5, 0.7])
def test_a_start_at_a_limit_follows_the_limit(sim, first):
    bd = limited(sim, cosine, x0=first, max=0.5)
    found = sim.gradient(bd, "I[0]", ["I.max", "I.x0"], T=2.0, rtol=1e-9, atol=1e-11)
    assert found.gradient == pytest.approx([1.0, 0.0], abs=1e-9)


def test_linear_models_hold_a_state_at_its_limit(sim):
    bd = sim.blockdiagram()
    state, u = bd.INTEGRATOR(0.5, max=0.5, name="I"), bd.CONSTANT(1.0, name="u")
    bd.connect(u, state)
    assert sim.linearize(bd, inputs=["u"]).B[0, 0] == 0.0
    assert sim.linearize(bd, x=[0.4], inputs=["u"]).B[0, 0] == 1.0


def test_a_trim_rests_at_a_limit_and_not_beyond_it(sim):
    bd = sim.blockdiagram()
    state, gain, total = bd.INTEGRATOR(0.0, max=0.5, name="I"), bd.GAIN(-1.0), bd.SUM("++")
    bd.connect(state, gain)
    bd.connect(gain, total[0])
    bd.connect(bd.CONSTANT(2.0), total[1])
    bd.connect(total, state)
    point = sim.trim(bd)
    assert point.success and point.x == [0.5] and sim.run(bd, T=2.0).x[-1] == [0.5]
    (name,) = bd.statenames
    point = sim.trim(bd, rates={name: 0.1})
    assert not point.success and "beyond its limit" in point.message


def test_on_a_plain_bdsim_its_own_limits_hold():
    """What bdsim does by itself is left alone: beyond a limit its rate is zero for good."""
    import bdsim

    plain = bdsim.BDSim(sysargs=False, graphics=False, progress=False, banner=False)
    bd = plain.blockdiagram()
    state = bd.INTEGRATOR(min=-0.5, max=0.5)
    bd.connect(of_time(bd, cosine), state)
    bd.compile()
    assert plain.run(bd, T=4.0, max_step=0.05).x[-1, 0] > 0.49


class Leaky(Integrator):
    """A leak beside what bdsim's own does."""

    def deriv(self, t, u, x):
        return self.gain * np.ravel(u[0]) - x


def test_an_integrator_with_a_rate_of_its_own_keeps_its_limits_itself(sim):
    """The interpreted engine left the leak out, the compiled one located the limit by a rate without it."""
    bd = sim.blockdiagram()
    leaky = Leaky(x0=0.0, max=0.5, bd=bd, name="leaky")
    bd.connect(bd.CONSTANT(0.4), leaky)
    bd.connect(leaky, bd.NULL())
    out = sim.run(bd, T=2.0, rtol=1e-9, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(0.4 * (1.0 - math.exp(-2.0)), abs=1e-8) and not out.events


@pytest.mark.parametrize("limits", [{}, {"max": [0.5, math.inf]}])
def test_limits_set_in_a_run_of_a_state_that_had_none_are_refused(sim, limits):
    """They were heeded at the ends of steps by one engine, and by the other not at all."""
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=[0.0, 0.0], name="I", **limits)
    bd.connect(bd.CONSTANT([1.0, 1.0]), state)
    out = sim.run(bd, T=2.0, at={1.0: lambda: setattr(state, "max", np.array([0.8, 1.2]))})
    assert out.status == "failed" and out.t[-1] <= 1.0
    assert f"block 'I': min and max are set in a run for state {len(limits)}, which had neither" in out.message
    assert sim.run(bd, T=2.0).x[-1] == pytest.approx([0.8, 1.2])


def test_limits_that_a_state_has_may_be_set_in_a_run(sim):
    bd = limited(sim, lambda t: 1.0, max=0.5)
    out = sim.run(bd, T=2.0, at={1.0: lambda: setattr(bd["I"], "max", 0.8)})
    assert out.x[-1, 0] == pytest.approx(0.8) and [t for t, _ in out.events] == pytest.approx([0.5, 1.3])
