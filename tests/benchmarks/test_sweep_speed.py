"""Sweeps of the acrobot: what a run costs in one beside a run alone, and what two cores gain.

Two threads share the interpreter's lock, which only the integration releases; how much of a run that is stands in the
table, beside what two processes without a common lock gain on this machine at this time.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from interleaved import gain, gain_of_two_processes

import cstormpy as cs
from cstormpy.diagrams import acrobot
from cstormpy.simulation.compiled.slices import Slices

RUNS, T, ROUNDS = 400, 10.0, 5
COST = f"a run within a sweep of {RUNS} acrobot runs of 10 s and alone [ms of CPU] (goal: at most 1.3 times)"
GAIN = f"{RUNS} acrobot runs of 10 s on two cores: how many times as fast as on one (goal: 1.8 of 2 possible)"
MANY = "10 000 swing-ups of 10 s: seconds on one core, and how many times as fast on two (goal: 1.8)"
GRID = {
    "plant.shoulder.q": -math.pi / 2 + np.linspace(-0.4, 0.4, RUNS // 2),
    "plant.elbow.q": [-0.2, 0.2],
}
LAWS = ["energy", "none"]


def sweep(sim, law, workers=None, executor=None, grid=GRID):
    found = sim.sweep(
        acrobot, grid, ["plant.q"], T=T, workers=workers, executor=executor, controller=law, kick=False, progress=False
    )
    assert found.status == "finished" and not found.failed.any()
    return found


@pytest.fixture
def sim():
    return cs.Simulation(engine="compiled", live=False, progress=False)


@pytest.mark.parametrize("law", LAWS)
def test_a_run_in_a_sweep_beside_one_alone(benchmark, record_row, sim, law):
    bd = acrobot.build(sim, controller=law, kick=False)
    starts = [(a, b, 0.0, 0.0, 0.0) for a in GRID["plant.shoulder.q"] for b in GRID["plant.elbow.q"]]

    def alone():
        for start in starts:
            sim.run(bd, T=T, start=start, watch=["plant.q"])

    def swept():
        sweep(sim, law, workers=1)

    ratio = gain(swept, alone, ROUNDS, 0.0, time.process_time)
    begin = time.process_time()
    alone()
    record_row(COST, law=law, alone=(time.process_time() - begin) / RUNS * 1e3, ratio=ratio)
    benchmark.pedantic(swept, rounds=1)


@pytest.mark.parametrize("law", LAWS)
def test_two_cores(benchmark, record_row, sim, law, monkeypatch):
    sweep(sim, law, workers=1, grid={name: values[:2] for name, values in GRID.items()})
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        sweep(sim, law, executor=processes)  # its workers import and load what is compiled
        one, two = partial(sweep, sim, law, workers=1), partial(sweep, sim, law, workers=2)
        threads = gain(one, two, ROUNDS, 0.0)
        gained = gain(one, partial(sweep, sim, law, executor=processes), ROUNDS, 0.0)
    released = share_released(sim, law, monkeypatch)
    bd = acrobot.build(sim, controller=law, kick=False)
    record_row(
        GAIN,
        law=law,
        threads=threads,
        processes=gained,
        possible=gain_of_two_processes(lambda: sim.run(bd, T=T)),
        lock_held=f"{1.0 - released:.0%}",
    )
    benchmark.pedantic(two, rounds=1)


def test_ten_thousand_runs(benchmark, record_row, sim):
    """As many as in the goal, each way once and one core before and after, with the start of the processes."""
    grid = {
        "plant.shoulder.q": -math.pi / 2 + np.linspace(-0.4, 0.4, 100),
        "plant.elbow.q": np.linspace(-0.3, 0.3, 100),
    }

    def seconds(**how):
        begin = time.perf_counter()
        sweep(sim, "energy", grid=grid, **how)
        return time.perf_counter() - begin

    before, threads = seconds(workers=1), seconds(workers=2)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        processes = seconds(executor=pool)
    one = 0.5 * (before + seconds(workers=1))
    record_row(MANY, one=one, threads=one / threads, processes=one / processes)
    benchmark.pedantic(lambda: sweep(sim, "energy", workers=2), rounds=1)


def share_released(sim, law, monkeypatch):
    """Return the share of a sweep's time in which the interpreter's lock is free."""
    free = [0.0]
    made = Slices.__init__

    def init(self, *arguments):
        made(self, *arguments)
        advance = self._advance

        def timed(*given):
            begin = time.perf_counter()
            try:
                return advance(*given)
            finally:
                free[0] += time.perf_counter() - begin

        self._advance = timed

    monkeypatch.setattr(Slices, "__init__", init)
    begin = time.perf_counter()
    sweep(sim, law, workers=1)
    return free[0] / (time.perf_counter() - begin)
