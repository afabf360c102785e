"""Blocks that give another value for the same time: said early, in every engine, with what to do."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import BlockError

ENGINES = ["interpreted", "compiled", "auto"]


def noisy(sim, function, sampled=False, **options):
    """Return a diagram in which a state follows a function of the time."""
    bd = sim.blockdiagram()
    noise, x = bd.FUNCTION(function, name="noise", **options), bd.INTEGRATOR(name="x")
    bd.connect(bd.TIME(), noise)
    if sampled:
        hold = bd.ZOH(bd.clock(0.01, "s"), name="hold")
        bd.connect(noise, hold)
        bd.connect(hold, x)
    else:
        bd.connect(noise, x)
    return bd


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("solver", ["RK45", "DOP853", "Radau", "LSODA"])
def test_noise_behind_which_a_state_stands_is_named_before_the_first_step(engine, solver):
    # it took 170 713 steps for 0.02 s, and was advised "a stiff diagram wants Radau"
    rng, calls = np.random.default_rng(1), []

    def noise(t):
        calls.append(t)
        return rng.normal()

    sim = cs.Simulation(engine=engine, live=False)
    with pytest.raises(BlockError, match=r"'noise'.*different values for the same time.*bd\.ZOH.*block 'x'") as error:
        sim.run(noisy(sim, noise), T=0.02, solver=solver)
    assert "Radau" not in str(error.value) and len(calls) < 10


@pytest.mark.parametrize("engine", ["interpreted", "auto"])
def test_noise_that_is_sampled_runs(engine):
    rng = np.random.default_rng(1)
    sim = cs.Simulation(engine=engine, live=False)
    out = sim.run(noisy(sim, lambda t: rng.normal(), sampled=True), T=1.0)
    assert out.status == "finished" and len(out.t) < 400 and abs(out.x[-1, 0]) > 0.0


def test_noise_that_begins_later_ends_the_run_there_with_the_same_words():
    rng = np.random.default_rng(1)
    sim = cs.Simulation(engine="interpreted", live=False)
    out = sim.run(noisy(sim, lambda t: rng.normal() if t > 0.5 else 1.0), T=1.0)
    assert out.status == "failed" and "different values for the same time" in out.message
    assert 0.4 < out.t[-1] < 0.6 and len(out.t) < 5000


def test_a_function_that_counts_its_calls_is_named_once_it_stops_the_solver():
    def count(t, userdata):
        userdata["n"] = userdata.get("n", 0) + 1
        return (-1.0) ** userdata["n"]

    sim = cs.Simulation(engine="interpreted", live=False)
    out = sim.run(noisy(sim, count, persistent=True), T=1.0)
    assert out.status == "failed" and "different values for the same time" in out.message


def test_steps_of_fixed_length_take_noise_and_it_is_said(caplog):
    rng = np.random.default_rng(1)
    sim = cs.Simulation(engine="interpreted", live=False)
    with caplog.at_level("INFO", logger="cstormpy"):
        out = sim.run(noisy(sim, lambda t: rng.normal()), T=0.1, solver="Euler", dt=0.01)
    assert out.status == "finished" and "each stage of a step gets another value" in caplog.text


def test_noise_that_no_state_follows_is_left_alone():
    rng = np.random.default_rng(1)
    sim = cs.Simulation(engine="interpreted", live=False)
    bd = sim.blockdiagram()
    noise = bd.FUNCTION(lambda t: rng.normal(), name="noise")
    bd.connect(bd.TIME(), noise)
    bd.connect(noise, bd.NULL())
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR())
    assert sim.run(bd, T=1.0).status == "finished"


@pytest.mark.parametrize(
    "engine",
    [pytest.param("interpreted", marks=pytest.mark.slow), "compiled", pytest.param("auto", marks=pytest.mark.slow)],
)
def test_a_law_of_chance_is_named(engine):
    """It was taken for a switch that jumps to and fro, or was said to compute other numbers when compiled."""
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", name="plant")
    law = bd.CONTROLLER("pendulum", lambda t, q, qd: np.random.default_rng().normal())
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    told = r"controller\.0.*gives different values for the same time, as a random number does"
    if engine == "compiled":
        with pytest.raises(cs.CstormError, match=told):
            sim.run(bd, T=1.0)
    else:
        assert re.search(told + r".*bd\.ZOH.*block 'plant'", sim.run(bd, T=1.0).message)
