"""Sampled blocks with feedthrough hold their outputs between the ticks of their clock, in both engines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.components import SampledBlock
from scipy.signal import dlsim

import cstormpy as cs
from cstormpy.errors import FileFormatError

T = 0.1


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param, live=False)


def of_time(bd, f):
    """Return a FUNCTION of the time."""
    block = bd.FUNCTION(f)
    bd.connect(bd.TIME(), block)
    return block


def derived(sim, f, offset=0.0, **options):
    """Return a diagram with a DERIV_S of a function of the time, and its integral."""
    bd = sim.blockdiagram()
    rate, total = bd.DERIV_S(bd.clock(T, "s", offset=offset), name="rate", **options), bd.INTEGRATOR(name="total")
    bd.connect(of_time(bd, f), rate)
    bd.connect(rate, total)
    return bd


def at(out, signal, times):
    """Return a signal right after given times."""
    k = [int(np.flatnonzero(out.t > t + 1e-9)[0]) for t in times]
    return out.signal(signal)[k]


@pytest.mark.parametrize("how", [{}, {"solver": "RK4", "dt": 0.013}, {"solver": "Radau"}, {"dt": 0.03}], ids=str)
def test_the_sampled_derivative_of_a_ramp_is_its_slope_between_ticks_too(sim, how):
    # its output moved between the ticks, from zero up to the slope, and integrated to 1.5 over a second instead of 3
    out = sim.run(derived(sim, lambda t: 3.0 * t, x0=-0.3), T=1.0, watch=["rate"], **how)
    assert out.x[-1, 0] == pytest.approx(3.0, abs=1e-9)
    np.testing.assert_allclose(out.signal("rate"), 3.0, rtol=0, atol=1e-9)


def test_the_sampled_derivative_is_the_difference_of_samples_held(sim):
    out = sim.run(derived(sim, lambda t: math.sin(t), gain=2.0), T=1.0, watch=["rate"])
    ticks = T * np.arange(10)
    wanted = 2.0 * (np.sin(ticks) - np.sin(np.maximum(ticks - T, 0.0))) / T
    for later in (0.0, 0.03, 0.08):
        np.testing.assert_allclose(at(out, "rate", ticks + later), wanted, rtol=0, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(wanted.sum() * T, abs=1e-9)


def test_vectors_are_held_each_number_by_itself(sim):
    bd = sim.blockdiagram()
    rate, total = bd.DERIV_S(bd.clock(T, "s"), x0=[-0.1, 0.2], name="rate"), bd.INTEGRATOR([0.0, 0.0])
    gain = bd.GAIN(np.array([[1.0], [-2.0]]), premul=True)
    bd.connect(of_time(bd, lambda t: np.array([t])), gain)
    bd.connect(gain, rate)
    bd.connect(rate, total)
    np.testing.assert_allclose(sim.run(bd, T=1.0).x[-1], [1.0, -2.0], rtol=0, atol=1e-9)


def test_a_block_that_samples_at_the_same_tick_sees_the_new_difference(sim):
    bd = sim.blockdiagram()
    clock = bd.clock(T, "s")
    rate, hold, total = bd.DERIV_S(clock, x0=-0.3), bd.ZOH(clock, x0=0.0), bd.INTEGRATOR(name="total")
    bd.connect(of_time(bd, lambda t: 3.0 * t), rate)
    bd.connect(rate, hold)
    bd.connect(hold, total)
    assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(3.0, abs=1e-9)


def test_before_the_first_tick_the_output_is_as_at_the_start(sim):
    out = sim.run(derived(sim, lambda t: 1.0 + t, offset=0.05), T=0.24, watch=["rate"])
    # 1/T until the first tick at 0.05, then the difference to x0 = 0, then the slope
    np.testing.assert_allclose(at(out, "rate", [0.0, 0.03, 0.06, 0.12, 0.17]), [10, 10, 10.5, 10.5, 1.0], atol=1e-9)


def test_pid_s_holds_its_derivative(sim):
    bd = sim.blockdiagram()
    pid, total = bd.PID_S(bd.clock(T, "s"), P=2.0, D=0.5), bd.INTEGRATOR(name="total")
    bd.connect(bd.CONSTANT(0.0), pid[0])
    bd.connect(of_time(bd, lambda t: 3.0 * t), pid[1])
    bd.connect(pid, total)
    # P of the error as it is, D of its samples: nothing before the second tick
    assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(2.0 * 1.5 + 0.5 * 3.0 * 0.9, abs=1e-9)


def test_a_sampled_system_with_feedthrough_gives_the_samples_of_scipy(sim):
    A, B, C, D = np.array([[0.6, 0.2], [-0.3, 0.5]]), np.array([1.0, 0.5]), np.array([1.0, -1.0]), np.array([2.0])
    bd = sim.blockdiagram()
    system = bd.LTI_SS_S(bd.clock(T, "s"), A=A, B=B, C=C, D=D, x0=[0.1, -0.2], name="system")
    bd.connect(of_time(bd, lambda t: math.cos(3.0 * t)), system)
    bd.connect(system, bd.NULL())
    out = sim.run(bd, T=1.0, watch=["system"])
    ticks = T * np.arange(10)
    _, wanted, _ = dlsim((A, B[:, None], C[None], D[None], T), np.cos(3.0 * ticks), x0=[0.1, -0.2])
    np.testing.assert_allclose(out.signal("system")[:10], wanted[:, 0], rtol=0, atol=1e-12)


def test_a_run_that_goes_on_between_two_ticks_holds_the_same(sim, tmp_path):
    bd = derived(sim, lambda t: t**2)
    whole = sim.run(bd, T=1.0)
    sim.run(bd, T=0.37).state.save(tmp_path / "state.json")
    out = sim.run(bd, T=0.63, start=tmp_path / "state.json")
    assert out.x[-1, 0] == pytest.approx(whole.x[-1, 0], abs=1e-12)


def test_both_engines_hold_the_same_while_clocks_change_turns():
    found = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False)
        bd = sim.blockdiagram()
        fast, slow = bd.clock(0.05, "s"), bd.clock(0.07, "s", offset=0.01)
        one, two, x = bd.DERIV_S(fast, name="one"), bd.DERIV_S(slow, gain=-0.3, name="two"), bd.INTEGRATOR(name="x")
        law = bd.SUM("++")
        bd.connect(of_time(bd, lambda t: math.sin(5.0 * t)), one)
        bd.connect(one, two)
        bd.connect(one, law[0])
        bd.connect(two, law[1])
        bd.connect(law, x)
        found.append(sim.run(bd, T=1.0, watch=["one", "two"]))
    assert found[0].t == pytest.approx(found[1].t, abs=1e-12)
    for name in ("one", "two"):
        np.testing.assert_allclose(found[0].signal(name), found[1].signal(name), rtol=0, atol=1e-9)


def test_derivatives_of_a_run_go_through_what_is_held(sim):
    bd = derived(sim, lambda t: t**2, gain=2.0)
    found = sim.gradient(bd, "total[0]", ["rate.gain", "rate.x0"], T=1.0, solver="RK4", dt=0.01)
    ticks = T * np.arange(10)
    samples = (ticks**2 - np.maximum(ticks - T, 0.0) ** 2) / T
    assert found.cost == pytest.approx(2.0 * T * samples.sum(), abs=1e-9)
    assert found.gradient == pytest.approx([T * samples.sum(), -2.0], abs=1e-6)


def test_linear_models_have_no_feedthrough_through_what_is_held(sim):
    bd = derived(sim, lambda t: 3.0 * t)
    found = sim.linearize(bd, inputs=["function.0"], outputs=["rate"])
    assert found.D[0, 0] == 0.0 and found.held == ("rate",)


def test_what_a_tick_brings_is_computed_only_where_its_clock_ticks(monkeypatch):
    """Noise drew its numbers at each evaluation, eight times for each tick, and used one of them."""
    from cstormpy.simulation.compiled import CompiledRun

    runs, begin = [], CompiledRun.begin
    monkeypatch.setattr(CompiledRun, "begin", lambda self, *given: (begin(self, *given), runs.append(self))[0])
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.NOISE(bd.clock(T, "s"), seed=1, name="noise"), bd.INTEGRATOR(name="total"))
    sim.run(bd, T=0.25)
    program, form = runs[0].program, runs[0]._compiled
    (_, part, first), flag = program.clocks[0], next(iter(program.flags.values()))
    before = form.z[part].copy()
    for ticks in (0.0, 1.0):
        form.z[flag] = ticks
        assert form.rate(0.25, np.zeros(1)) == 0
        after = form.out[first : first + before.size]
        assert np.array_equal(after, before) == (ticks == 0.0)
    assert " br i1 " in program.text[program.text.index("@rate") :]


@pytest.mark.parametrize("values", [("low", "high"), (1j, 2j), ({"q": 0.0}, {"q": 1.0})], ids=str)
def test_what_is_held_may_be_no_number(values, tmp_path):
    """The end of the run tried to make floats of it, and its whole result was lost."""

    class Named(SampledBlock):
        nin, nout = 1, 1

        def __init__(self, clock, **blockargs):
            super().__init__(clock, x0=np.zeros(1), feedthrough=True, **blockargs)

        def output(self, t, u, x):
            return [values[u[0] > 0.5]]

        def next(self, t, u, x):
            return x

    sim = cs.Simulation(engine="interpreted", live=False)
    bd = sim.blockdiagram()
    named = Named(bd.clock(T), bd=bd, name="named")
    bd.connect(bd.TIME(), named)
    bd.connect(named, bd.NULL())
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR())
    out = sim.run(bd, T=0.75, watch=["named"])
    assert (out.status, out.signal("named")[0], out.signal("named")[-1]) == ("finished", *values)
    again = sim.run(bd, T=0.02, start=out, watch=["named"])
    assert again.signal("named")[0] == values[1]
    with pytest.raises(FileFormatError, match="what block 'named' holds is no number, and cannot be written"):
        out.state.save(tmp_path / "state.json")
