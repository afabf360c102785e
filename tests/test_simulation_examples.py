"""Any bdsim diagram runs: diagrams after bdsim's examples, beside bdsim's own runs and beside scipy."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from bdsim.components import SinkBlock
from bdsim_examples import EXAMPLES, TIGHT, plain

import cstormpy as cs

SECONDS, GRID = 2.0, 0.037  # the grid meets no tick and no jump, where bdsim's sample is of either side
NEAR = 1e-6


@pytest.fixture(params=EXAMPLES)
def example(request):
    return EXAMPLES[request.param]


def ours(example, **options):
    bd, watch = example.wire(cs.Simulation())
    return cs.Simulation().run(bd, SECONDS, watch=watch, on_error="raise", **{**TIGHT, **options})


def theirs(example, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        sim = plain()
        bd, watch = example.wire(sim)
        bd.compile()
        return sim.run(bd, SECONDS, watch=watch, solver_args=dict(TIGHT), **options)


# with dt, bdsim goes on from the last point of the grid before an event
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "cart and pole"))
        for name, e in EXAMPLES.items()
        if not e.tags & {"events", "stops"}
    ],
)
def test_as_bdsim_runs_it(name):
    example = EXAMPLES[name]
    grid = {} if "no states" in example.tags else {"dt": GRID}
    out, ref = ours(example, first_tick="bdsim", **grid), theirs(example, **grid)
    nearest = [int(np.argmin(np.abs(out.t - t))) for t in ref.t]
    same = np.abs(out.t[nearest] - ref.t) < 1e-9
    assert same.sum() >= (2 if "sources" in example.tags else 5)
    assert out.t[-1] == ref.t[-1] == SECONDS
    if ref.x.size:
        assert np.max(np.abs(out.x[nearest] - ref.x)[same]) < NEAR
        assert np.max(np.abs(out.x[-1] - ref.x[-1])) < NEAR
    assert np.max(np.abs(out.y[nearest] - ref.y)[same]) < NEAR


def test_with_events_as_bdsim_runs_it():
    for name in ("bouncing ball", "to a pose"):
        out, ref = ours(EXAMPLES[name]), theirs(EXAMPLES[name])
        assert out.t[-1] == pytest.approx(ref.t[-1], abs=NEAR)
        # bdsim moves on by 1e-9 s behind an event
        np.testing.assert_allclose(out.x[-1], ref.x[-1], atol=NEAR)
        assert len(out.events) >= 1


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.rate])
def test_as_scipy_solves_it(name):
    example = EXAMPLES[name]
    out = ours(example)
    times, first = np.unique(out.t, return_index=True)
    assert len(times) >= 20
    assert np.max(np.abs(out.x[first] - example.by_scipy(times))) < NEAR


#: On the motor BDF takes long, since each tick of the clock starts it anew; the two others show it.
SOLVED = [
    pytest.param(name, solver, marks=[pytest.mark.slow] * ((name, solver) == ("motor", "BDF")))
    for name in ("cart and pole", "motor", "bouncing ball")
    for solver in ("DOP853", "Radau", "BDF", "LSODA", "RK23")
]


@pytest.mark.parametrize(("name", "solver"), SOLVED)
def test_every_solver_comes_to_the_same(name, solver):
    example = EXAMPLES[name]
    tolerances = {"rtol": 1e-7, "atol": 1e-9} if solver in ("BDF", "RK23") else {"rtol": 1e-9, "atol": 1e-11}
    got, want = ours(example, solver=solver, **tolerances), ours(example)
    np.testing.assert_allclose(got.x[-1], want.x[-1], atol=3e-5 if solver in ("BDF", "RK23") else NEAR)


def test_sinks_see_every_sample(example):
    """Sinks are served as time advances: with what is recorded, in the same order."""
    sim = cs.Simulation()
    bd, watch = example.wire(sim)
    seen = []

    class Probe(SinkBlock):
        nin = 1

        def step(self, t, inputs):
            seen.append((t, np.array(inputs[0]).tolist()))

    probe = Probe(bd=bd)
    bd.connect(watch[0], probe)
    out = sim.run(bd, 1.0, watch=[watch[0]])
    assert [t for t, _ in seen] == out.t.tolist()
    np.testing.assert_array_equal(np.array([value for _, value in seen]).reshape(len(out.t), -1), out.y)
