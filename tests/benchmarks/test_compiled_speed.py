"""Runs of compiled diagrams beside bdsim's own of the same diagrams, to the same tolerances and longest step."""

from __future__ import annotations

import contextlib
import io
import math

import numpy as np
import pytest
from bdsim_examples import EXAMPLES, plain
from interleaved import interleave
from test_compiled_bends import saturated

import cstormpy as cs
from cstormpy.blocks._crossings import Crossing
from cstormpy.diagrams import acrobot, pendulum
from cstormpy.simulation.compiled import CompiledRun
from cstormpy.simulation.crossings import Crossings

#: How many times as fast as bdsim's own run, of the diagram that was measured when the goal was set.
TIMES_BDSIM = {"acrobot swing-up": 300}
#: Longest evaluation within the stepper [us].
MICROSECONDS = {"acrobot passive": 0.08, "acrobot swing-up": 0.12}
RUN = "one run, compiled [ms, us per evaluation all in] and how many times as fast as bdsim's own (goal)"
EVALUATION = "one evaluation of a compiled diagram's derivative [us] (goal), in the stepper, and ratio to bdsim's own"
ROUNDS = 5


def chain(sim, count=100):
    """A loop of scalar blocks."""
    bd = sim.blockdiagram()
    state = before = bd.INTEGRATOR(x0=1.0)
    for k in range(count - 1):
        block = bd.GAIN(-0.99) if k % 2 == 0 else bd.CLIP(min=-2.0, max=2.0)
        bd.connect(before, block)
        before = block
    bd.connect(before, state)
    return bd


def ours(sim, name):
    if name == "acrobot swing-up":
        return acrobot.build(sim)
    if name == "acrobot passive":
        return acrobot.build(sim, controller="none", q0=[0.3, 0.2])
    if name == "pendulum":
        return pendulum.build(sim)
    return chain(sim) if name == "100 blocks" else EXAMPLES[name].wire(sim)[0]


NAMES = ["acrobot swing-up", "acrobot passive", "pendulum", "100 blocks", "feedback", "van der pol", "cart and pole"]


@pytest.fixture
def engines(monkeypatch, request):
    """Return the diagram's compiled run as begun last, what runs it compiled, by bdsim, and the diagrams."""
    begun, begin = [], CompiledRun.begin
    monkeypatch.setattr(CompiledRun, "begin", lambda self, *a: (begin(self, *a), begun.append(self))[0])
    name, T = request.param, 10.0
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd = ours(sim, name)
    theirs = plain()
    theirs._blocklibrary = dict(cs.Simulation()._blocklibrary)  # our blocks under bdsim's own runner
    bd2 = ours(theirs, name)
    with contextlib.redirect_stdout(io.StringIO()):
        bd2.compile()

    def compiled():
        return sim.run(bd, T=T, rtol=1e-6, atol=1e-9)

    def by_bdsim():
        with contextlib.redirect_stdout(io.StringIO()):
            return theirs.run(bd2, T, solver_args={"rtol": 1e-6, "atol": 1e-9})

    compiled()
    return name, begun, compiled, by_bdsim, bd2


@pytest.mark.parametrize("engines", NAMES, indirect=True)
def test_one_run(benchmark, record_row, engines):
    name, _, compiled, by_bdsim, _ = engines
    times = interleave({"compiled": compiled, "bdsim": by_bdsim}, rounds=ROUNDS, seconds=0.0)
    evaluations = compiled()[".stats"].evaluations
    record_row(
        RUN,
        diagram=name,
        compiled=times["compiled"] * 1e3,
        bdsim=times["bdsim"] * 1e3,
        times_bdsim=times["bdsim"] / times["compiled"],
        goal=TIMES_BDSIM.get(name, ""),
        evaluations=evaluations,
        per_evaluation=times["compiled"] / evaluations * 1e6,
    )
    benchmark.pedantic(compiled, rounds=3)


@pytest.mark.parametrize("engines", NAMES, indirect=True)
def test_one_evaluation(benchmark, record_row, engines):
    """Evaluations as the stepper makes them: fixed steps of Euler's method, two evaluations each."""
    from cstormpy.simulation.compiled.slices import Slices
    from cstormpy.simulation.step_control import JUMP_WIDTH, SAME_TIME
    from cstormpy.simulation.steppers import make_stepper

    name, begun, _, _, bd2 = engines
    run, x = begun[-1], np.array(bd2.getstate0(), dtype=float)
    stepper = make_stepper(run._derivative, "Euler", 1e-6, 1e-9, 1e-7, 1e-7, {})
    slices = Slices(run._compiled, stepper.method, [], True)
    slices.limit(stepper, SAME_TIME, JUMP_WIDTH, 0.0)
    run.diagram.earliest, run.diagram.latest = -math.inf, math.inf

    assert run.probe(0.5, x)
    before = run._compiled.out[slices.guards].tolist()
    crossings = Crossings([(lambda t, x: 1.0, None)] * len(before))

    def steps():
        stepper.restart(0.5, x)
        slices.schedule(1.0, True, False, [], np.zeros(0))
        crossings.before = before
        taken = slices.go(stepper, -math.inf, crossings, 0, 0.0, 0)
        assert not taken.look and len(taken.times) > 2000
        return slices.steps

    def theirs():
        bd2.evaluate(bd2.state_map(x), 0.5, sinks=False)
        return bd2.deriv(0.5)

    times = interleave({"compiled": steps, "bdsim": theirs})
    each = times["compiled"] / steps()
    record_row(
        EVALUATION,
        diagram=name,
        blocks=sum(len(group) for group in bd2.plan),
        compiled=each * 1e6,
        goal=MICROSECONDS.get(name, ""),
        bdsim=times["bdsim"] * 1e6,
        times_bdsim=times["bdsim"] / each,
    )
    benchmark(steps)


BENDS = "20 s of an acrobot's limited law with a dead zone [ms]: events that only bend, in the steps and by Python"


def test_bends(benchmark, record_row):
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd = sim.blockdiagram()
    saturated(bd)
    only_bends = Crossing.only_bends

    def run():
        return sim.run(bd, T=20.0)

    def by_python():
        Crossing.only_bends = False
        try:
            return run()
        finally:
            Crossing.only_bends = only_bends

    times = interleave({"steps": run, "python": by_python}, rounds=ROUNDS)
    record_row(
        BENDS,
        events=len(run().events),
        steps=times["steps"] * 1e3,
        python=times["python"] * 1e3,
        ratio=times["python"] / times["steps"],
    )
    benchmark.pedantic(run, rounds=3)


SAMPLED = "an acrobot held by a sampled LQR of 1 kHz, compiled: times real time (goal 1500)"


def sampled(sim):
    """The acrobot balanced through a zero-order hold that ticks every millisecond."""
    bd = sim.blockdiagram("sampled")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[math.pi / 2 - 0.02, 0.0], name="plant")
    law = bd.CONTROLLER("acrobot", "lqr", name="law")
    held = bd.ZOH(bd.clock(1000, unit="Hz"), x0=[0.0], name="held")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law[0], held)
    bd.connect(held, plant[0])
    return bd


def test_a_sampled_controller(benchmark, record_row):
    sim, T = cs.Simulation(engine="compiled", progress=False, live=False), 10.0
    bd = sampled(sim)
    out = sim.run(bd, T=T)
    assert abs(out.x[-1, 0] - math.pi / 2) < 1e-3
    times = interleave({"wall": lambda: sim.run(bd, T=T)}, rounds=ROUNDS, seconds=0.0)
    record_row(
        SAMPLED,
        seconds=T,
        ticks=len(getattr(out, bd.clocklist[0].name.replace(".", "")).t),
        time=times["wall"] * 1e3,
        times_real_time=T / times["wall"],
    )
    benchmark.pedantic(lambda: sim.run(bd, T=T), rounds=3)
