"""Everyday work of a control engineer: a step from outside, noise in a loop, a law in plain Python.

Ratios are between runs of the same process, taken in turns, of processor time.
"""

from __future__ import annotations

import math
import time
from statistics import median

import numpy as np
import pytest

import cstormpy as cs

STEP = "one step of `sim.stepper` of the acrobot by RK4 [us] (goal 5)"
NOISE = "10 s of a sampled loop with noise at 1 kHz: times the run without it (goal 1.3)"
SLOPES = "10 s of an acrobot balanced by a law at 1 kHz, with the derivatives to its weights: times the run without"
LAW = "10 s of an acrobot under a user's law: times as fast as the interpreted engine (goal 20)"


def simulation(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, progress=False)


def each_step(stepper, u, rounds=100, count=500):
    """Return the least processor time of a step [s]."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(count):
            stepper.step(u, 0.001)
        times.append((time.process_time() - begin) / count)
    return min(times)


def test_a_step_from_outside(benchmark, record_row):
    sim = simulation()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.3], name="plant")
    bd.connect(bd.CONSTANT(0.8, name="torque"), plant.tau)
    stepper = sim.stepper(bd, inputs=["plant.tau"], outputs=["plant.q", "plant.qd"])
    for name, u in (("array", np.array([0.1])), ("float", 0.1), ("list", [0.1])):
        record_row(STEP, inputs=name, time=each_step(stepper, u) * 1e6)
    benchmark(stepper.step, np.array([0.1]), 0.001)


def balanced(noisy, sampled):
    """An acrobot balanced by its LQR, which sees noise on its angles; sampled at 1 kHz or not."""
    sim = simulation()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[math.pi / 2 - 0.02, 0.0], name="plant")
    law = bd.CONTROLLER("acrobot", "lqr", name="law")
    clock = bd.clock(1000, unit="Hz")
    measured = plant[0]
    if noisy:
        noise, measured = bd.NOISE(clock, std=1e-4, n=2, seed=1, name="noise"), bd.SUM("++", name="measured")
        bd.connect(plant[0], measured[0])
        bd.connect(noise, measured[1])
    bd.connect(measured, law[0])
    bd.connect(plant[1], law[1])
    torque = law[0]
    if sampled:
        torque = bd.ZOH(clock, x0=[0.0], name="held")
        bd.connect(law[0], torque)
    bd.connect(torque, plant[0])
    return sim, bd, lambda: sim.run(bd, T=10.0)


def by_processor(contestants, rounds=15):
    """Return the median processor time of each [s], turn by turn."""
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            begin = time.process_time()
            run()
            times[name].append(time.process_time() - begin)
    return {name: median(values) for name, values in times.items()}


def test_noise_in_a_sampled_loop(benchmark, record_row):
    runs = {"noisy": balanced(True, True)[2], "quiet": balanced(False, True)[2]}
    for run in runs.values():
        assert np.abs(run().x[-1, 0] - math.pi / 2) < 0.05
    times = by_processor(runs)
    record_row(NOISE, quiet=times["quiet"] * 1e3, noisy=times["noisy"] * 1e3, ratio=times["noisy"] / times["quiet"])
    benchmark.pedantic(runs["noisy"], rounds=3)


def test_derivatives_through_ticks(benchmark, record_row):
    sim, bd, run = balanced(False, True)
    names = ["law.lqr.Q.shoulder", "law.lqr.Q.elbow", "law.lqr.R.elbow"]
    contestants = {"run": run, "gradient": lambda: sim.gradient(bd, "plant.shoulder.q", names, T=10.0)}
    assert np.isfinite(contestants["gradient"]().gradient).all()
    times = by_processor(contestants, rounds=5)
    record_row(
        SLOPES,
        run=times["run"] * 1e3,
        gradient=times["gradient"] * 1e3,
        ratio=times["gradient"] / times["run"],
        ticks=10000,
    )
    benchmark.pedantic(contestants["gradient"], rounds=3)


def smooth(t, q, qd):
    return [-5.0 * q[1] - 1.4 * qd[1] + 4.0 * np.tanh(5.0 * qd[1])]


def choosing(t, q, qd):
    """A law with an `if` on a number, which numba compiles."""
    push = -5.0 * q[1] - 1.4 * qd[1]
    if qd[1] > 0.0:
        push += 0.5
    return [min(max(push, -10.0), 10.0)]


@pytest.mark.parametrize("law", [smooth, choosing])
def test_a_law_in_plain_python(benchmark, record_row, law):
    runs = {}
    for engine in ("compiled", "interpreted"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.4, 0.1], name="plant")
        controller = bd.CONTROLLER("acrobot", law, name="law")
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller[0], plant.tau)
        runs[engine] = lambda sim=sim, bd=bd: sim.run(bd, T=10.0)
        runs[engine]()
    times = by_processor(runs, rounds=5)
    record_row(
        LAW,
        law=law.__name__,
        compiled=times["compiled"] * 1e3,
        interpreted=times["interpreted"] * 1e3,
        faster=times["interpreted"] / times["compiled"],
    )
    benchmark.pedantic(runs["compiled"], rounds=3)
