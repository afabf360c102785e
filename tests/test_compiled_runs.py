"""Runs of the compiled engine are those of the interpreted one: samples, events, jumps, ticks, changes, faults."""

from __future__ import annotations

import functools
import gc
import math
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from bdsim_examples import EXAMPLES, TIGHT
from test_compiled import simulation

from cstormpy.diagrams import acrobot, acrobot_elbow, pendulum
from cstormpy.errors import BlockError
from cstormpy.simulation.compiled import prepared
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.runner import Run
from cstormpy.simulation.steppers import ExplicitStepper


def both(wire, **options):
    """Return the same run by both engines."""
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd, watch = wire(sim)
        found.append(sim.run(bd, watch=watch, **options))
    return found


def asked_in_python(sim):
    bd, asked = sim.blockdiagram(), []
    decay = bd.INTEGRATOR(x0=[1.0, 2.0])
    bd.connect(decay, rate := bd.FUNCTION(lambda x: (asked.append(x), -x)[1]))
    bd.connect(rate, decay)
    return bd


def assert_same_runs(interpreted, compiled, tolerance):
    """Compare sample by sample; the rest of the time by which a step is longer or shorter moves the state along."""
    assert compiled.t.shape == interpreted.t.shape
    np.testing.assert_allclose(compiled.t, interpreted.t, rtol=0, atol=tolerance)
    np.testing.assert_allclose(compiled.x, interpreted.x, rtol=0, atol=tolerance)
    for ours, theirs in zip(compiled[".ywatch"], interpreted[".ywatch"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=100 * tolerance)
    assert compiled[".status"] == interpreted[".status"]
    assert [name for _, name in compiled[".events"]] == [name for _, name in interpreted[".events"]]
    times = [[t for t, _ in out[".events"]] for out in (compiled, interpreted)]
    np.testing.assert_allclose(*times, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, e in EXAMPLES.items() if "no states" not in e.tags])
@pytest.mark.parametrize(("solver", "dt"), [("RK4", 0.004), ("Euler", 0.002)])
def test_examples_with_fixed_steps(name, solver, dt):
    if name == "to a pose" and solver == "Euler":
        dt = 0.004
    assert_same_runs(*both(EXAMPLES[name].wire, T=1.5, solver=solver, dt=dt), tolerance=1e-10)


@pytest.mark.parametrize("solver", ["RK45", "RK23", "DOP853"])
@pytest.mark.parametrize("name", ["feedback", "van der pol", "bouncing ball", "feedback held", "steered bicycle"])
def test_examples_with_controlled_steps(name, solver):
    assert_same_runs(*both(EXAMPLES[name].wire, T=5.0, solver=solver), tolerance=1e-8)


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.rate])
def test_examples_as_scipy_solves_them(name):
    sim = simulation()
    out = sim.run(EXAMPLES[name].wire(sim)[0], T=2.0, **TIGHT)
    times, first = np.unique(out.t, return_index=True)
    assert len(times) >= 20
    np.testing.assert_allclose(out.x[first], EXAMPLES[name].by_scipy(times), rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"dt": 0.03}, {"log_dt": 0.1}])
@pytest.mark.parametrize("name", [name for name, e in EXAMPLES.items() if "no states" in e.tags])
def test_examples_without_states(name, options):
    """Where there are only ticks, both engines go from one to the next."""
    assert_same_runs(*both(EXAMPLES[name].wire, T=2.0, **options), tolerance=1e-12)


def wire(module, **options):
    def build(sim):
        return module.build(sim, **options), "all"

    return build


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "options"),
    [(pendulum, {"rods": 3}), (acrobot_elbow, {}), (acrobot, {"controller": "none", "q0": [0.3, 0.2]}), (acrobot, {})],
)
def test_shipped_diagrams_with_fixed_steps(module, options):
    assert_same_runs(*both(wire(module, **options), T=4.0, solver="RK4", dt=0.005), tolerance=1e-8)


def assert_same_swing_up(interpreted, compiled, tolerance):
    """Compare the states at times that both have, the effort as a part of itself, and when phases change."""
    assert compiled.t.shape == interpreted.t.shape
    np.testing.assert_allclose(compiled.t, interpreted.t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.x[:, :4], interpreted.x[:, :4], rtol=0, atol=tolerance)
    np.testing.assert_allclose(compiled.x[:, 4], interpreted.x[:, 4], rtol=tolerance, atol=tolerance)
    assert [name for _, name in compiled[".events"]] == ["controller"] * len(interpreted[".events"])
    times = [[t for t, _ in out[".events"]] for out in (compiled, interpreted)]
    np.testing.assert_allclose(*times, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["RK45", "DOP853"])
def test_acrobot_swings_up_and_changes_its_phase_at_the_same_times(solver):
    """The steps that are chosen depend on roundings, as the code is fused; when phases change does not.

    The torque has kinks at its limit, at which no step ends. Each leaves an error that depends on where the steps end,
    and that the swing makes a thousand times as large: up to 1e-6 at rtol=1e-10, 1e-8 at these tolerances.
    """
    tighter = {"rtol": 1e-12, "atol": 1e-13}
    assert_same_swing_up(*both(wire(acrobot), T=5.0, solver=solver, log_dt=0.01, **tighter), tolerance=1e-7)


@pytest.mark.parametrize("solver", ["RK45", "DOP853"])
def test_acrobot_balances_by_the_same_states(solver):
    """Without kinks the states are the same, whatever the steps."""
    near = {"controller": "lqr", "q0": [1.56, 0.02]}
    assert_same_runs(*both(wire(acrobot, **near), T=5.0, solver=solver, log_dt=0.01, rtol=1e-9), tolerance=1e-8)


def test_acrobot_has_the_same_rates_in_both_engines():
    """Where the code is fused, the last places differ, and no more: so steps from the same state are the same."""
    sim = simulation("compiled")
    bd = acrobot.build(sim)
    sim.run(bd, T=0.1)
    diagram, compiled = Diagram(bd), bd.__dict__["_compiled_form"].ready()
    rng = np.random.default_rng(4)
    for _ in range(50):
        x = rng.normal(size=5) * (2.0, 2.0, 4.0, 4.0, 1.0)
        assert compiled.rate(0.2, x) == 0
        expected = diagram.derivative(0.2, x)
        np.testing.assert_allclose(compiled.xd, expected, rtol=0, atol=1e-12 * max(1.0, abs(expected).max()))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(TIGHT | {"solver": "RK23", "rtol": 1e-8}, marks=pytest.mark.slow),
        pytest.param(TIGHT, marks=pytest.mark.slow),
        {"solver": "RK4", "dt": 0.004},
    ],
)
def test_events_are_located_by_steps_of_the_engine_itself(monkeypatch, options):
    """The compiled steps close in on a crossing themselves, and go on behind it."""
    single = []
    step = ExplicitStepper.step
    monkeypatch.setattr(ExplicitStepper, "step", lambda self, bound: (single.append(self.t), step(self, bound))[1])
    outs = []
    for engine in ("interpreted", "compiled"):
        single.clear()
        sim = simulation(engine)
        outs.append(sim.run(acrobot.build(sim), T=5.0, **options))
    interpreted, compiled = outs
    assert not single and len(interpreted[".events"]) == 3
    if "dt" in options:
        assert_same_swing_up(interpreted, compiled, tolerance=1e-8)
    else:
        times = [[t for t, _ in out[".events"]] for out in outs]
        np.testing.assert_allclose(*times, rtol=0, atol=1e-9)
        np.testing.assert_allclose(compiled.x[-1, :4], interpreted.x[-1, :4], rtol=0, atol=1e-6)


def many_kinds(sim, seen):
    """Whole numbers, truth values, arrays and what a function makes of them, seen by an event and by a block."""
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=[0.0, 1.0], name="x")
    two, first = bd.CONSTANT(2, name="two"), bd.INDEX([0], name="first")
    step = bd.STEP(0.45, off=0, on=1.5, name="step")
    truth = bd.FUNCTION(lambda a: a > 0.3, name="truth")
    mixed = bd.FUNCTION(lambda a: a < 0.5 or 0.3 * a, name="mixed")
    bd.connect(bd.CONSTANT([1.0, -0.5]), x)
    bd.connect(x, first)
    for block in (truth, mixed):
        bd.connect(first, block)
    rising = bd.SUM("+-", name="rising")
    bd.connect(first, rising[0])
    bd.connect(bd.CONSTANT(0.6), rising[1])

    def look(states, at):
        seen.append([(b.name, *map(describe_value, slots_of(b))) for b in (x, first, two, step, truth, mixed)])

    bd.connect(rising, bd.EVENT("^", look))
    for block in (two, step, truth, mixed):
        bd.connect(block, bd.NULL())
    return bd


def slots_of(block):
    return [slot.value for slot in block._outport_slots]


def describe_value(value):
    return (
        isinstance(value, np.ndarray),
        np.asarray(value).dtype.kind,
        np.shape(value),
        np.round(np.asarray(value, dtype=float), 9).tolist(),
    )


def test_what_blocks_see_at_an_event_is_as_by_the_blocks_themselves(monkeypatch):
    """The compiled function gives it: values of the same kinds, the blocks being evaluated at the start alone."""
    seen, counts = [], []
    evaluate = Diagram.evaluate
    for engine in ("interpreted", "compiled"):
        sim, looks, count = simulation(engine), [], []
        bd = many_kinds(sim, looks)
        monkeypatch.setattr(
            Diagram, "evaluate", lambda self, t, x, count=count: (count.append(t), evaluate(self, t, x))[1]
        )
        assert sim.run(bd, T=1.0).status == "finished"
        seen.append(looks)
        counts.append(len(count))
    assert seen[0] == seen[1] and len(seen[0]) == 1
    assert counts[1] <= 3 < counts[0]


def test_two_guards_that_cross_together_fire_together():
    """And one that is on zero when the run begins is looked at within the first step, on which side it is."""

    def wire(sim):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=0.0, name="state")
        bd.connect(bd.WAVEFORM("sine", freq=1.0), state)
        for name, level in (("one", 0.1), ("two", 0.1), ("start", 0.0)):
            above = bd.SUM("+-", name=f"above_{name}")
            bd.connect(state, above[0])
            bd.connect(bd.CONSTANT(level), above[1])
            bd.connect(above, bd.EVENT("^", lambda *_: None, name=name))
        return bd, "all"

    interpreted, compiled = both(wire, T=2.4, rtol=1e-9)
    assert len(interpreted[".events"]) > 4
    assert_same_runs(interpreted, compiled, tolerance=1e-12)


def test_stiff_solver_on_the_compiled_derivative():
    interpreted, compiled = both(EXAMPLES["van der pol"].wire, T=3.0, solver="Radau")
    np.testing.assert_allclose(compiled.x[-1], interpreted.x[-1], rtol=0, atol=1e-8)


def test_a_stop_ends_the_run_at_the_same_time():
    interpreted, compiled = both(EXAMPLES["to a pose"].wire, T=5.0)
    assert compiled[".status"] == "stopped"
    assert compiled.t[-1] == pytest.approx(interpreted.t[-1], abs=1e-9)
    assert compiled[".message"] == interpreted[".message"]


def test_a_stop_at_a_jump_is_sampled_before_and_behind_it():
    def wire(sim):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=0.0, name="state")
        bd.connect(bd.STEP(T=0.503), state, bd.STOP())
        return bd, "all"

    interpreted, compiled = both(wire, T=2.0)
    assert_same_runs(interpreted, compiled, tolerance=1e-12)
    assert (compiled.t == 0.503).sum() == 2


def test_many_steps_are_taken_in_one_slice(monkeypatch):
    """Python sees few of the steps; with an observer all of them, and the samples are the same."""
    single = []
    step = ExplicitStepper.step
    monkeypatch.setattr(ExplicitStepper, "step", lambda self, bound: (single.append(self.t), step(self, bound))[1])
    sim = simulation()
    bd, watch = EXAMPLES["van der pol"].wire(sim)
    sliced = sim.run(bd, T=10.0, watch=watch)
    assert len(sliced.t) > 100 and len(single) <= 2
    seen = []
    observed = sim.run(bd, T=10.0, watch=watch, observer=lambda t, x: seen.append(t))
    assert len(seen) == len(observed.t)
    np.testing.assert_allclose(sliced.t, observed.t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sliced.y, observed.y, rtol=0, atol=1e-9)


def test_more_steps_than_a_slice_holds():
    sim = simulation()
    bd, watch = EXAMPLES["van der pol"].wire(sim)
    out = sim.run(bd, T=6.0, solver="RK4", dt=0.001, watch=watch)
    assert len(out.t) == 6001
    np.testing.assert_allclose(np.diff(out.t), 0.001, rtol=1e-9)


def decay(sim):
    bd = sim.blockdiagram()
    state, gain = bd.INTEGRATOR(x0=1.0, name="state"), bd.GAIN(-1.0, name="gain")
    bd.connect(state, gain)
    bd.connect(gain, state)
    return bd, gain


def test_a_parameter_changed_within_a_run_counts_from_then_on():
    sim = simulation()
    bd, gain = decay(sim)
    out = sim.run(bd, T=2.0, at={1.0: lambda: gain.set_param("K", -3.0)}, rtol=1e-9, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(math.exp(-4.0), rel=1e-7)
    out = sim.run(bd, T=1.0, start=out.state, rtol=1e-9, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(math.exp(-7.0), rel=1e-7)


def test_a_posted_function_is_called_between_two_steps():
    sim = simulation()
    bd, gain = decay(sim)
    out = sim.run(bd, T=1.0, at={0.5: lambda: sim.post(lambda: gain.set_param("K", -2.0))}, rtol=1e-9, atol=1e-12)
    assert out.x[-1, 0] == pytest.approx(math.exp(-1.5), rel=1e-7)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_blocks_show_their_outputs_of_the_end_of_a_run(engine):
    """Samples are taken from the compiled function: its blocks have not seen their signals on the way."""
    sim = simulation(engine)
    bd, rate = decay(sim)
    state = bd["state"]
    for T in (1.0, 2.0):
        out = sim.run(bd, T=T)
        assert rate._output_values[0] == -state._output_values[0] == pytest.approx(-out.x[-1, 0])


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_function_posted_before_a_run_finds_the_signals_of_its_start(engine):
    sim, seen = simulation(engine), []
    bd, _ = decay(sim)
    state = bd["state"]
    sim.run(bd, T=1.0)
    sim.post(lambda: seen.append(state.inport_values[0]))
    sim.run(bd, T=1.0, start=[3.0])
    assert seen == [-3.0]


def test_a_signal_that_is_not_finite_at_the_start_of_a_compiled_run_is_named():
    """The first sample is taken from the compiled function too."""
    sim = simulation()
    bd, _ = decay(sim)
    state = bd["state"]
    root = bd.FUNCTION(lambda v: 1.0 / v, name="inverse")
    bd.connect(state, root)
    bd.connect(root, bd.NULL())
    sim.run(bd, T=1.0)
    with np.errstate(divide="ignore"), pytest.raises(BlockError, match="inverse"):
        sim.run(bd, T=1.0, start=[0.0])


@pytest.mark.slow
def test_diagrams_read_from_disk_are_not_mixed_up(tmp_path):
    """Code of two diagrams compiled by two processes once had the same symbol, and one ran as the other."""
    script = tmp_path / "one.py"
    script.write_text(
        "import sys, cstormpy as cs\n"
        "sim = cs.Simulation(engine='compiled', progress=False, live=False)\n"
        "for kind in sys.argv[1:]:\n"
        "    bd = sim.blockdiagram()\n"
        "    x = bd.INTEGRATOR(x0=1.0)\n"
        "    f = bd.GAIN(-1.0) if kind == 'a' else bd.CLIP(min=-0.5, max=0.5)\n"
        "    bd.connect(x, f)\n"
        "    bd.connect(f, x)\n"
        "    print(round(float(sim.run(bd, T=1.0, solver='RK4', dt=0.01).x[-1, 0]), 6))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = []
    for kinds in (["a"], ["b"], ["a", "b"]):
        done = subprocess.run(
            [sys.executable, str(script), *kinds], capture_output=True, text=True, check=True, env=environment
        )
        found.append(done.stdout.split())
    assert found == [["0.367879"], ["1.5"], ["0.367879", "1.5"]]


def test_laws_are_swapped_within_a_run():
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = acrobot.build(sim, controller="energy")
        controller = bd.blocknames["controller"]
        out = sim.run(bd, T=1.5, solver="RK4", dt=0.005, at={0.8: lambda c=controller: c.select("pd")}, watch="all")
        found.append(out)
    assert_same_runs(*found, tolerance=1e-9)
    law = found[1].signal("controller.law")
    assert law[0] == 0.0 and law[-1] > 0.0


def test_a_push_moves_the_plant_as_by_the_blocks():
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = pendulum.build(sim)
        plant = bd.blocknames["plant"]
        changes = {0.5: lambda p=plant: p.push(0, [3.0, 0.0, 0.0]), 0.7: plant.release}
        found.append(sim.run(bd, T=1.5, solver="RK4", dt=0.005, at=changes, watch="all"))
    assert_same_runs(*found, tolerance=1e-10)


def failing(sim):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=0.0, name="state")

    def root(v):
        if v > 0.5:
            raise ValueError("too large")
        return math.sqrt(1.0 - v)

    law = bd.FUNCTION(root, name="law")
    bd.connect(state, law)
    bd.connect(law, state)
    return bd


def infinite(sim):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=1.0, name="state")
    bd.connect(state, law := bd.PROD("/", name="law"))
    bd.connect(law, total := bd.SUM("-"))
    bd.connect(total, state)
    return bd


@pytest.mark.parametrize(("make", "says"), [(failing, "'law'.*too large"), (infinite, "state")])
def test_faults_are_reported_as_by_the_blocks(make, says):
    sim = simulation()
    with pytest.raises(BlockError, match=says) as caught:
        sim.run(make(sim), T=3.0, on_error="raise")
    assert len(caught.value.result.t) > 1


def sampled(sim):
    """A plant under two clocks, one of them late, and a reference that jumps between their ticks."""
    bd = sim.blockdiagram()
    fast, slow = bd.clock(100, "Hz"), bd.clock(0.07, "s", offset=0.02)
    plant, held, shown = bd.LTI_SISO(1, [1, 2, 1], name="plant"), bd.ZOH(fast), bd.ZOH(slow)
    error, gain, reference = bd.SUM("+-"), bd.GAIN(3.0), bd.STEP(T=0.203)
    bd.connect(reference, error[0])
    bd.connect(plant, error[1], shown)
    bd.connect(error, gain)
    bd.connect(gain, held)
    bd.connect(held, plant)
    bd.connect(shown, bd.NULL())
    return bd, "all"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"log_dt": 0.0123},
        {"solver": "DOP853", "dt": 0.05},
        {"solver": "RK4", "dt": 0.003, "log_dt": 0.01},
        {"first_tick": "bdsim"},
    ],
)
def test_ticks_jumps_and_grids_are_those_of_the_blocks(options):
    interpreted, compiled = both(sampled, T=0.7, **options)
    assert_same_runs(interpreted, compiled, tolerance=1e-12)
    logs = [[out[key] for key in out.data if key.startswith("clock")] for out in (interpreted, compiled)]
    assert len(logs[0]) == 2
    for ours, theirs in zip(*logs, strict=True):
        np.testing.assert_array_equal(ours.t, theirs.t)
        np.testing.assert_array_equal(ours.X, theirs.X)


def ticking(sim, feedthrough):
    """A plant under a clock, whose block takes what comes in at its ticks, or also gives it on at once."""
    bd = sim.blockdiagram()
    clock, plant, gain = bd.clock(0.01, "s", name="clock"), bd.LTI_SISO(1, [1, 2, 1], name="plant"), bd.GAIN(-3.0)
    held = bd.DERIV_S(clock, name="held") if feedthrough else bd.ZOH(clock, x0=[1.0], name="held")
    bd.connect(plant, gain)
    bd.connect(gain, held)
    bd.connect(held, plant)
    return bd


@pytest.mark.parametrize(("feedthrough", "count"), [(False, 7), (True, 8)])
def test_a_step_that_ends_at_a_tick_computes_what_its_blocks_become(feedthrough, count):
    """Six evaluations are those of the step, one is that behind the tick; what a block gives on at once needs another.

    It would change the derivative at the end of the step, by which this is judged.
    """
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        found.append(sim.run(ticking(sim, feedthrough), T=1.0, start=[1.0, 0.0], watch=["held"]))
    interpreted, compiled = found
    assert_same_runs(interpreted, compiled, tolerance=1e-12)
    np.testing.assert_array_equal(interpreted["clock"].X, compiled["clock"].X)
    assert count * 100 <= compiled.stats.evaluations < count * 100 + 30


def test_ticks_are_taken_within_the_slices(monkeypatch):
    single = []
    step = ExplicitStepper.step
    monkeypatch.setattr(ExplicitStepper, "step", lambda self, bound: (single.append(self.t), step(self, bound))[1])
    sim = simulation()
    bd, _ = sampled(sim)
    assert len(sim.run(bd, T=0.7).t) > 70
    assert len(single) <= 2


def test_a_second_run_translates_nothing(monkeypatch):
    """Other numbers, another mechanism of the same shape, other initial states: all are read anew."""
    count = []
    original = prepared.program_of
    monkeypatch.setattr(prepared, "program_of", lambda *a: (count.append(1), original(*a))[1])
    sim = simulation()
    bd = acrobot.build(sim)
    first = sim.run(bd, T=0.5)
    plant, controller = bd.blocknames["plant"], bd.blocknames["controller"]
    assert len(count) == 1
    plant.set_param("mech", plant.mech.with_gravity([0.0, -5.0, 0.0]))
    controller.set_param("energy.ke", 1.0)
    second = sim.run(bd, T=0.5, start=[-1.0, 0.3, 0.0, 0.0, 0.0])
    assert len(count) == 1
    reference = simulation("interpreted").run(bd, T=0.5, start=[-1.0, 0.3, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(second.x, reference.x, rtol=0, atol=1e-8)
    assert np.abs(second.x[-1] - first.x[-1]).max() > 0.1


@pytest.mark.parametrize("wire", [acrobot.build, asked_in_python], ids=["laws", "asked in Python"])
def test_a_diagram_that_nobody_holds_is_freed(wire):
    """What its blocks were traced with holds arrays of symbols, through which Python's collector does not see."""
    sim = simulation("compiled")
    held = []
    for _ in range(3):
        bd = wire(sim)
        sim.run(bd, T=0.01)
        held.append(weakref.ref(bd))
    del bd
    sim.run(pendulum.build(sim), T=0.01)  # its last result knows the diagram
    gc.collect()
    assert [each() for each in held] == [None] * 3


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_run_is_freed_as_soon_as_its_result_is_there(engine, monkeypatch):
    """It referred back to itself, and stayed with all that it had recorded until the collector came."""
    begun, begin = [], Run.begin
    monkeypatch.setattr(Run, "begin", lambda self, *a: (begin(self, *a), begun.append(weakref.ref(self)))[0])
    sim = simulation(engine)
    bd = acrobot.build(sim)
    gc.disable()
    try:
        out = sim.run(bd, T=0.01)
        assert [each() for each in begun] == [None]
    finally:
        gc.enable()
    assert out.t[-1] == 0.01


def test_a_diagram_wired_anew_is_translated_anew():
    sim = simulation()
    bd, gain = decay(sim)
    sim.run(bd, T=0.5)
    kept = bd.__dict__["_compiled_form"]
    sim.run(bd, T=0.5)
    assert bd.__dict__["_compiled_form"] is kept
    other, _ = decay(sim)
    bd.connect(gain, bd.NULL())
    twice = sim.run(bd, T=0.5)
    np.testing.assert_allclose(twice.x[-1], sim.run(other, T=0.5).x[-1])


@pytest.mark.parametrize("other", ["a function", "a clock"])
def test_what_is_due_a_rounding_apart_is_due_together(other):
    """3 * 0.1 lies one unit in the last place behind 0.3: a tick there, and what only Python does, come at once."""
    runs, called = [], []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        ramp, held = bd.INTEGRATOR(x0=0.0), bd.ZOH(bd.clock(0.3, "s"), name="held")
        bd.connect(bd.CONSTANT(1.0), ramp)
        bd.connect(ramp, held)
        call = functools.partial(called.append, engine)
        at = {k * 0.1: call for k in range(1, 9)} if other == "a function" else None
        if other == "a clock":  # whose ticks are left to Python
            summed = bd.INTEGRATOR_S(bd.clock(0.1, "s"), enable=lambda t, u, x: True, name="summed")
            bd.connect(ramp, summed)
            bd.connect(summed, bd.NULL())
        bd.connect(held, bd.NULL())
        runs.append(sim.run(bd, T=1.0, at=at, watch=["held"]))
    np.testing.assert_array_equal(runs[1].t, runs[0].t)
    np.testing.assert_array_equal(runs[1].signal("held"), runs[0].signal("held"))
    assert called.count("interpreted") == called.count("compiled") == (8 if other == "a function" else 0)
