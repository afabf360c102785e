"""Runs of the interpreted engine beside bdsim's own of the same diagrams, to the same tolerances and longest step.

Ours serves sinks at each accepted step, as it advances; bdsim does so about 200 times, after the integration of a
stretch. Scopes draw nothing in either.
"""

from __future__ import annotations

import contextlib
import io
from functools import partial

import numpy as np
import pytest
from bdsim.components import SinkBlock
from bdsim_examples import EXAMPLES, plain
from interleaved import interleave

import cstormpy as cs
from cstormpy.simulation.diagram import Diagram

GOAL = 0.8
TABLE = f"one run [ms], rtol 1e-6, atol 1e-9, and its ratio to bdsim's own (goal {GOAL})"
EVALUATION = "one evaluation of a diagram's derivative [us], per block, and its ratio to bdsim's own"
ROUNDS = 7


class Live(SinkBlock):
    """Takes what a live scope would: a copy of each sample."""

    nin = 1

    def __init__(self, **blockargs):
        super().__init__(**blockargs)
        self.samples = []

    def start(self, simstate):
        self.samples.clear()

    def step(self, t, u):
        self.samples.append((t, np.array(u[0])))


def acrobot(bd):
    """An acrobot that swings under a smooth law."""
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.4, 0.1], name="plant")
    law = bd.FUNCTION(lambda q, qd: np.array([-5 * q[1] - 1.4 * qd[1] + 4 * np.tanh(5 * qd[1])]), nin=2, name="law")
    bd.connect(plant.q, law[0])
    bd.connect(plant.qd, law[1])
    bd.connect(law, plant.tau, bd.SCOPE(vector=1, name="torque"))
    return [plant[0], law]


def wired(sim, name):
    bd = sim.blockdiagram()
    watch = acrobot(bd) if name == "acrobot" else EXAMPLES[name].build(bd)
    live = Live(bd=bd)
    bd.connect(watch[0], live)
    return bd, watch, live


def seconds(name):
    return 5.0 if name == "acrobot" else EXAMPLES[name].T


def with_our_blocks(sim):
    """Return a bdsim whose diagrams have our blocks too."""
    sim._blocklibrary = dict(cs.Simulation()._blocklibrary)
    return sim


def runs(name):
    """Return the run of each, to be called, and their diagrams."""
    T, tolerances = seconds(name), {"rtol": 1e-6, "atol": 1e-9}
    ours, theirs = cs.Simulation(progress=False), with_our_blocks(plain())
    (bd, watch, live), (bd2, watch2, live2) = wired(ours, name), wired(theirs, name)

    def by_bdsim():
        with contextlib.redirect_stdout(io.StringIO()):
            return theirs.run(bd2, T, watch=watch2, solver_args=dict(tolerances))

    with contextlib.redirect_stdout(io.StringIO()):
        bd2.compile()
    return partial(ours.run, bd, T, watch=watch, first_tick="bdsim", **tolerances), by_bdsim, bd, bd2, (live, live2)


@pytest.mark.parametrize("name", [*(n for n, e in EXAMPLES.items() if "sources" not in e.tags), "acrobot"])
def test_one_run(benchmark, record_row, name):
    run, by_bdsim, _, _, lives = runs(name)
    out, ref = run(), by_bdsim()
    assert out.status in ("finished", "stopped")
    if ref.x.size:
        np.testing.assert_allclose(out.x[-1], ref.x[-1], rtol=0.02, atol=0.02)
    times = interleave({"ours": run, "bdsim": by_bdsim}, rounds=ROUNDS, seconds=0.0)
    record_row(
        TABLE,
        diagram=name,
        ours=times["ours"] * 1e3,
        bdsim=times["bdsim"] * 1e3,
        ratio=times["ours"] / times["bdsim"],
        goal=GOAL,
        samples=len(lives[0].samples),
        bdsim_samples=len(lives[1].samples),
    )
    benchmark.pedantic(run, rounds=3)


@pytest.mark.parametrize("name", ["feedback", "cart and pole", "to a point", "quadrotor", "acrobot"])
def test_one_evaluation(benchmark, record_row, name):
    run, by_bdsim, bd, bd2, _ = runs(name)
    run()
    with contextlib.redirect_stdout(io.StringIO()):
        by_bdsim()
    diagram, x = Diagram(bd), np.array(bd.getstate0(), dtype=float)
    ours = partial(diagram.derivative, 0.0, x)

    def theirs():
        bd2.evaluate(bd2.state_map(x), 0.0, sinks=False)
        return bd2.deriv(0.0)

    np.testing.assert_array_equal(ours(), theirs())
    times = interleave({"ours": ours, "bdsim": theirs})
    blocks = sum(len(group) for group in bd.plan)
    record_row(
        EVALUATION,
        diagram=name,
        blocks=blocks,
        ours=times["ours"] * 1e6,
        per_block=times["ours"] / blocks * 1e6,
        ratio=times["ours"] / times["bdsim"],
    )
    benchmark(ours)
