"""Tuning by the exact gradient of a run's cost: known optima, bounds, interruptions, runs that fail."""

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import InvalidType, InvalidValue, UnknownName


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="interpreted")


def lag(sim):
    """Return a state that goes to a set point, ẋ = k (1 − x): at t it has gone 1 − exp(−k t) of the way."""
    bd = sim.blockdiagram()
    error, gain, x = bd.SUM("+-", name="error"), bd.GAIN(0.5, name="gain"), bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0, name="wanted"), error[0])
    bd.connect(x, error[1])
    bd.connect(error, gain)
    bd.connect(gain, x)
    return bd


RUN = {"T": 1.0, "dt": 0.02, "solver": "RK4"}
BEST = math.log(4.0)  # 1 − exp(−k) = 3/4


@pytest.mark.parametrize("several", [False, True])
def test_tuning_finds_the_known_optimum_and_sets_it(sim, several):
    bd = lag(sim)

    def miss(out):
        away = out.x[-1, 0] - 0.75
        return np.array([away, 0.0]) if several else away**2

    tuned = sim.tune(bd, miss, ["gain.K"], tol=1e-14, **RUN)
    assert tuned.success and tuned.applied and tuned.cost < 1e-12 < tuned.cost_before
    assert tuned.after[0] == pytest.approx(BEST, abs=1e-5)
    assert bd.blocknames["gain"].K == tuned.after[0]
    assert tuned.history == sorted(tuned.history, reverse=True) and "gain.K: 0.5 ->" in str(tuned)
    assert len(tuned.plot().axes) == 2


def test_tuning_keeps_within_bounds_and_sets_nothing_unless_wanted(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], bounds=(0.1, 1.0), apply=False, **RUN)
    assert tuned.after[0] == pytest.approx(1.0, abs=1e-12) and not tuned.applied
    assert bd.blocknames["gain"].K == 0.5
    with pytest.raises(InvalidValue, match=r"gain.K = 0.5 is not within"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds={"gain.K": (1.0, 2.0)}, **RUN)
    with pytest.raises(UnknownName, match="gian"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds={"gian.K": (1.0, 2.0)}, **RUN)


def test_an_interrupted_search_returns_the_best_and_leaves_the_blocks_alone(sim):
    bd, calls = lag(sim), []

    def miss(out):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return (out.x[-1, 0] - 0.75) ** 2

    tuned = sim.tune(bd, miss, ["gain.K"], **RUN)
    assert not tuned.success and not tuned.applied and tuned.message == "interrupted"
    assert tuned.cost <= tuned.cost_before and bd.blocknames["gain"].K == 0.5


def test_a_run_that_fails_is_stepped_back_from(sim, caplog):
    bd = lag(sim)

    def miss(out):
        if out.x[-1, 0] > 0.76:
            raise ValueError("too far")
        return (out.x[-1, 0] - 0.75) ** 2

    with caplog.at_level("INFO", logger="cstormpy"):
        tuned = sim.tune(bd, miss, ["gain.K"], **RUN)
    assert tuned.cost < tuned.cost_before and tuned.after[0] == pytest.approx(BEST, abs=0.02)


def test_as_many_runs_are_made_as_were_allowed(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], max_runs=2, tol=1e-15, **RUN)
    assert tuned.runs <= 2


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ({"bound": (-5.0, -3.0)}, UnknownName, "tune: option 'bound' does not exist; did you mean 'bounds'"),
        ({"max_runs": "many"}, InvalidType, "max_runs: expected a whole number, got 'many'"),
        ({"max_runs": 0}, InvalidValue, "max_runs: expected 1 or more"),
        ({"tol": -1.0}, InvalidValue, "tol: expected a positive number"),
        ({"tol": "fine"}, InvalidType, "tol: expected a positive number"),
    ],
)
def test_what_a_search_can_not_take_is_refused_before_a_run(sim, option, error, said):
    bd = lag(sim)

    def never(out):
        raise AssertionError("a run was made")

    with pytest.raises(error, match=said):
        sim.tune(bd, never, ["gain.K"], **RUN, **option)
