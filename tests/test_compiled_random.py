"""Random diagrams compute and run alike in both engines.

Each is compiled, which takes most of the time: there are few of them among the quick tests, and many among the slow.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_diagrams import KINDS, build
from test_compiled import assert_same_derivatives, simulation

from cstormpy.simulation.compiled import CompiledRun

STEPS = st.lists(
    st.tuples(st.integers(0, len(KINDS) - 1), *[st.integers(0, 1000)] * 4).map(list), min_size=1, max_size=14
)
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def run_both(steps, **options):
    """Return the interpreted run, the compiled one, and what the latter was at its end."""
    found, runs, begin = [], [], CompiledRun.begin
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = build(sim.blockdiagram(), steps)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CompiledRun, "begin", lambda self, *a: (runs.append(self), begin(self, *a))[1])
            found.append(sim.run(bd, watch="all", solver="RK4", dt=0.01, **options))
    return *found, runs[-1]


def compare(steps, T=0.3, **options):
    """Compare derivatives, signals and ticks at random states, and the samples and events of a run."""
    interpreted, compiled, run = run_both(steps, T=T, **options)
    assert run.program is not None
    if interpreted[".status"] == "failed":
        assert compiled[".status"] == "failed"
        return
    assert compiled[".status"] == "finished", compiled[".message"]
    names = [name for _, name in interpreted[".events"]]
    assert [name for _, name in compiled[".events"]] == names
    times = [[t for t, _ in out[".events"]] for out in (compiled, interpreted)]
    np.testing.assert_allclose(*times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.t, interpreted.t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.x, interpreted.x, rtol=0, atol=1e-8 * (1.0 + np.abs(interpreted.x).max()))
    assert_same_derivatives(run, np.linspace(0.01, 0.6, 5), spread=0.3)
    assert_same_ticks(run)


def assert_same_ticks(run):
    """Compare what the ticks of all clocks make of the sampled states, and what stands behind them, which is held."""
    d, c = run.diagram, run._compiled
    d.sample(list(d.bd.clocklist), run.t, run.x)
    d.evaluate(run.t, run.x)
    c.z[list(run.program.flags.values())] = 1.0  # what a tick brings is computed only where its clock ticks
    assert c.rate(run.t, run.x) == 0
    clocks = {clock: c.out[first : first + part.stop - part.start] for clock, part, first in run.program.clocks}
    for clock in d.bd.clocklist:
        if clock.blocklist:
            held = [d.holds[b].flat() for b in clock.blocklist if b in d.holds]
            wanted = np.concatenate([d.next_state(clock, run.t), *held])
            np.testing.assert_allclose(clocks[clock], wanted, rtol=1e-12, atol=1e-12)


@settings(max_examples=12, deadline=None, suppress_health_check=QUIET)
@given(steps=STEPS)
def test_random_diagrams(steps):
    compare(steps, observer=lambda t, x: None)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=QUIET)
@given(steps=STEPS)
def test_more_random_diagrams(steps):
    compare(steps, observer=lambda t, x: None)


def some_steps(seed, count=12):
    rng = np.random.default_rng(seed)
    return [[int(rng.integers(len(KINDS))), *rng.integers(0, 1000, 4).tolist()] for _ in range(count)]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_diagrams_in_machine_code(seed):
    compare(some_steps(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 7))
def test_more_random_diagrams_in_machine_code(seed):
    compare(some_steps(seed, 15))
