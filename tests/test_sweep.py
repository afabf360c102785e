"""Sweeps: what may be varied and measured, what fails, what is refused, and that workers change nothing."""

import _thread
import functools
import itertools
import logging
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.diagrams import pendulum
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.wiring import compile_diagram

RNG = np.random.default_rng(0)


def decay(sim, rate=-1.0, start=1.0, shape=None):
    """ẋ = rate x."""
    bd = sim.blockdiagram("decay")
    state = bd.INTEGRATOR(x0=start, name="state")
    gain = bd.GAIN(rate, name="rate")
    bd.connect(state, gain)
    bd.connect(gain, state)
    return bd


def final(out):
    return out.x[-1, 0]


@pytest.fixture
def sim():
    return cs.Simulation(engine="interpreted", live=False)


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "cstormpy")
    return lambda: [record.message for record in caplog.records]


# ---------------------------------------------------------------- what varies


def test_a_grid_runs_every_combination(sim):
    rates, starts = [-1.0, -2.0, -0.5], [1.0, 3.0]
    found = sim.sweep(decay, {"rate": rates, "state:x_0": starts}, final, T=1.0, rtol=1e-9)
    assert found.shape == (3, 2) and found.status == "finished" and not found.failed.any() and found.done.all()
    np.testing.assert_allclose(found.value, np.exp(rates)[:, None] * starts, rtol=1e-8)
    assert found.axes["rate"].tolist() == rates and found.grid


def test_a_run_of_a_sweep_is_the_run_itself(sim):
    found = sim.sweep(decay, {"rate:K": [-1.5]}, lambda out: {"t": out.t[-1], "x": out.x[-1]}, T=0.7, max_step=0.05)
    out = sim.run(decay(sim, rate=-1.5), T=0.7, max_step=0.05)
    assert found["t"].tolist() == [0.7]
    np.testing.assert_array_equal(found["x"][0], out.x[-1])


def test_one_number_of_a_parameter_is_varied(sim):
    found = sim.sweep(
        pendulum,
        {"plant:q0[1]": [0.2, 0.4], "plant:qd0": [[0.0, 0.0], [1.0, 2.0]]},
        lambda out: out.x[0],
        T=0.1,
        rods=2,
    )
    assert found.value.shape == (2, 2, 4)
    assert found.value[1, 1, 1:].tolist() == [0.4, 1.0, 2.0]
    assert found.value[0, 0, 1:].tolist() == [0.2, 0.0, 0.0]


def test_states_take_the_place_of_what_parameters_say_of_them(sim):
    grid = {"plant:q0": [[0.1]], "plant.joint1.q": [0.7]}
    assert sim.sweep(pendulum, grid, lambda out: out.x[0, 0], T=0.1).value.item() == 0.7


def test_samples_are_run_one_by_one(sim):
    rates, starts = np.array([-1.0, -2.0, -3.0]), np.array([1.0, 2.0, 3.0])
    expected = starts * np.exp(rates)
    records = np.array(list(zip(rates, starts, strict=True)), dtype=[("rate:K", float), ("state:x_0", float)])
    for given, names in (
        ({"rate:K": rates, "state:x_0": starts}, None),
        (records, None),
        (np.column_stack([rates, starts]), ["rate:K", "state:x_0"]),
    ):
        found = sim.sweep(decay, samples=given, names=names, measure=final, T=1.0, rtol=1e-9)
        assert found.shape == (3,) and not found.grid
        np.testing.assert_allclose(found.value, expected, rtol=1e-8)


def test_each_option_has_its_own_diagram(sim):
    """An option that varies fastest in the grid still has each of its diagrams built once for each worker."""
    built = []

    def build(sim, rate, **others):
        built.append(rate)
        return decay(sim, rate)

    found = sim.sweep(build, {"state:x_0": [1.0, 2.0, 3.0], "rate": [-1.0, -2.0]}, final, T=0.5, workers=1)
    assert found.value.shape == (3, 2)
    assert sorted(built) == [-2.0, -1.0]


def test_functions_are_options_too(sim, tmp_path):
    """Functions within functions cannot be pickled, and need not be, where threads do the work."""

    def build(sim, law):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=1.0, name="state")
        bd.connect(state, rate := bd.FUNCTION(law, name="rate"))
        bd.connect(rate, state)
        return bd

    laws = [lambda x: -x, lambda x: -2.0 * x]
    found = sim.sweep(build, {"law": laws, "state:x_0": [1.0, 2.0]}, final, T=1.0, rtol=1e-9, workers=2)
    np.testing.assert_allclose(found.value, np.exp([-1.0, -2.0])[:, None] * [1.0, 2.0], rtol=1e-8)
    twice = sim.sweep(build, samples={"law": laws * 20}, measure=final, T=1.0, rtol=1e-9, workers=2)
    np.testing.assert_array_equal(twice.value, list(found.value[:, 0]) * 20)
    with pytest.raises(cs.InvalidType, match="'law': a function cannot be written to the file of a sweep"):
        sim.sweep(build, {"law": laws}, final, T=1.0, resume=tmp_path / "sweep")


def test_a_law_is_an_option_by_its_name(sim):
    found = sim.sweep(
        cs.diagrams.load("acrobot"), {"controller": ["none", "pd"]}, ["effort.effort"], T=0.2, q0=[0.3, 0.2]
    )
    assert found.axes["controller"].tolist() == ["none", "pd"]
    (effort,) = found.values()
    assert effort[0] == 0.0 < effort[1]


# ---------------------------------------------------------------- what is measured


def test_names_stand_for_final_values(sim):
    found = sim.sweep(decay, {"rate.K": [-1.0, -2.0]}, ["rate", "state:x_0"], T=1.0)
    assert found["rate"] is found["rate[0]"]
    assert list(found) == ["rate[0]", "state:x_0"]
    np.testing.assert_allclose(found["rate[0]"], found["state:x_0"] * [-1.0, -2.0])


def test_a_measure_of_another_shape_fails_in_its_run(sim):
    found = sim.sweep(decay, {"state:x_0": [1.0, 2.0, 3.0]}, lambda out: np.zeros(1 + (out.x[0, 0] == 2.0)), T=0.1)
    assert found.failed.tolist() == [False, True, False]
    assert "(2,)" in found.reasons[1,] and np.isnan(found.value[1]).all()


def test_a_measure_that_fails_is_named(sim, said):
    found = sim.sweep(decay, {"state:x_0": [1.0, 2.0]}, lambda out: out.nonsense, T=0.1)
    assert found.failed.all() and "measure: result 'nonsense' does not exist" in found.reasons[0,]
    assert any("all runs failed" in line for line in said())
    with pytest.raises(cs.errors.UnknownName, match="all runs failed, one of them so: measure: result 'nonsense'"):
        found.value  # noqa: B018  said that there is no 'value'
    assert sim.sweep(decay, {"state:x_0": [1.0]}, lambda out: "text", T=0.1).reasons[0,].startswith("measure: expected")


# ---------------------------------------------------------------- what fails in a run


def test_a_failed_run_is_recorded_and_the_others_go_on(sim):
    def build(sim):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=1.0, name="state")
        bd.connect(state, fragile := bd.FUNCTION(lambda x: 1.0 / (1.5 - x) if x < 1.5 else 1 // 0, name="fragile"))
        bd.connect(fragile, state)
        return bd

    found = sim.sweep(build, {"state:x_0": [0.0, 2.0, -1.0]}, final, T=0.1)
    assert found.failed.tolist() == [False, True, False] and found.status == "finished"
    assert "fragile" in found.reasons[1,] and np.isfinite(found.value[[0, 2]]).all()


def test_a_value_that_a_block_refuses_fails_in_its_run(sim):
    found = sim.sweep(pendulum, {"plant:q0": [[0.1], [0.1, 0.2]]}, ["plant.q"], T=0.1)
    assert found.failed.tolist() == [False, True] and "q0" in found.reasons[1,]
    # of one entry it ended the whole sweep, by an error of NumPy's
    found = sim.sweep(pendulum, {"plant:q0[0]": [0.1, [0.1, 0.2], "up"]}, ["plant.q"], T=0.1)
    assert found.failed.tolist() == [False, True, True] and "q0[0]: cannot be set to 'up'" in found.reasons[2,]


def test_an_option_that_the_builder_refuses_fails_in_its_runs(sim):
    found = sim.sweep(pendulum, {"rods": [1, -1]}, lambda out: out.x[-1].sum(), T=0.1)
    assert found.failed.tolist() == [False, True]


# ---------------------------------------------------------------- workers


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_number_of_workers_changes_nothing(engine):
    sim = cs.Simulation(engine=engine, live=False)
    grid = {"plant:q0[0]": np.linspace(-1.0, 2.0, 6), "damping": [0.0, 0.3]}
    alone = sim.sweep(pendulum, grid, ["plant.q", "plant.qd"], T=0.5, workers=1)
    assert not alone.failed.any() and np.ptp(alone["plant.q"]) > 0.1
    for workers in (2, 5):
        shared = sim.sweep(pendulum, grid, ["plant.q", "plant.qd"], T=0.5, workers=workers)
        np.testing.assert_array_equal(shared["plant.q"], alone["plant.q"])
        np.testing.assert_array_equal(shared["plant.qd"], alone["plant.qd"])


def test_threads_work_at_the_same_time(sim):
    """Two runs wait for each other in the measure; one worker would wait for ever."""
    meet = threading.Barrier(2, timeout=20.0)
    seen = []

    def measure(out):
        if seen:  # the first run is carried out alone
            meet.wait()
        seen.append(threading.get_ident())
        return final(out)

    found = sim.sweep(decay, {"state:x_0": np.arange(1.0, 6.0)}, measure, T=0.1, workers=2)
    assert not found.failed.any() and len(set(seen)) == 3


@pytest.mark.slow
def test_any_executor_carries_it_out():
    sim = cs.Simulation(engine="interpreted", live=False)
    grid = {"plant.joint1.q": [0.1, 0.5, 1.0], "rods": [1, 2]}
    alone = sim.sweep(pendulum, grid, ["plant.joint1.q"], T=0.1, workers=1)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, get_context("spawn")) as processes:
        for executor in (threads, processes):
            found = sim.sweep(pendulum, grid, ["plant.joint1.q"], T=0.1, executor=executor)
            np.testing.assert_array_equal(found["plant.joint1.q"], alone["plant.joint1.q"])
        with pytest.raises(cs.InvalidType, match="measure cannot be sent to another process"):
            sim.sweep(pendulum, grid, lambda out: 0.0, executor=processes)
        with pytest.raises(cs.InvalidType, match="axis 'rods' cannot be sent to another process"):
            sim.sweep(pendulum, {"rods": [1, lambda: 2]}, ["plant.q"], executor=processes)
        with pytest.raises(cs.DiagramError, match="give the function"):
            sim.sweep(pendulum.build(sim), {"plant.joint1.q": [0.1]}, ["plant.q"], executor=processes)


@pytest.mark.slow
def test_a_diagram_is_copied_and_left_as_it_was(sim):
    bd = pendulum.build(sim, rods=2)
    grid = {"plant:q0[0]": np.linspace(0.1, 1.0, 5), "plant:gravity": [[0.0, -9.81, 0.0], [0.0, -1.6, 0.0]]}
    found = sim.sweep(bd, grid, ["plant.q"], T=0.2, workers=2)
    built = sim.sweep(pendulum, grid, ["plant.q"], T=0.2, rods=2)
    np.testing.assert_array_equal(found["plant.q"], built["plant.q"])
    before = pendulum.build(sim, rods=2)["plant"]
    assert bd["plant"].q0.tolist() == before.q0.tolist() and bd["plant"].mech == before.mech


@pytest.mark.parametrize("before", ["run", "gradient"])
def test_a_diagram_that_was_run_compiled_is_copied(before, said):
    """Its compiled form holds a module, which cannot be copied: the sweep refused, or went on with one thread."""
    sim = cs.Simulation(engine="compiled", live=False)
    bd = decay(sim)
    sim.run(bd, T=1.0) if before == "run" else sim.gradient(bd, "state:x_0", ["rate.K"], T=1.0)
    found = sim.sweep(bd, {"rate:K": [-1.0, -2.0, -3.0]}, final, T=1.0, rtol=1e-9, workers=2)
    np.testing.assert_allclose(found.value, np.exp([-1.0, -2.0, -3.0]), rtol=1e-8)
    sim.sweep(bd, {"rate:K": [-1.0]}, final, T=1.0)
    assert not any("one worker" in line for line in said())


def test_a_diagram_that_remembers_is_not_copied(sim, said):
    def build(sim):
        calls = []
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=1.0, name="state")
        bd.connect(state, gain := bd.GAIN(-1.0, name="rate"))
        bd.connect(gain, count := bd.FUNCTION(lambda x: (calls.append(x), x)[1], name="count"))
        bd.connect(count, state)
        return bd

    grid = {"rate:K": [-1.0, -2.0, -3.0]}
    with pytest.raises(cs.DiagramError, match=r"'count' holds the function .*'calls'.*build"):
        sim.sweep(build(sim), grid, final, T=0.1, workers=2)
    bd = build(sim)
    found = sim.sweep(bd, grid, final, T=1.0)
    np.testing.assert_allclose(found.value, np.exp(grid["rate:K"]), rtol=1e-5)
    assert bd["rate"].K == -1.0
    assert any("one worker does it all" in line for line in said())
    assert not sim.sweep(build, grid, final, T=0.1, workers=2).failed.any()


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (lambda x: -float(str(float(x))), "asked in Python"),
        (lambda x: -x + 1e-9 * RNG.normal(), "interpreted"),
    ],
    ids=["a text", "a generator"],
)
def test_what_cannot_be_translated_is_run_all_the_same(said, function, how):
    def build(sim):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=1.0, name="state")
        bd.connect(state, odd := bd.FUNCTION(function, name="odd"))
        bd.connect(odd, state)
        return bd

    fixed = {"T": 1.0, "solver": "RK4", "dt": 0.01}
    found = cs.Simulation(live=False).sweep(build, {"state:x_0": [1.0, 2.0]}, final, **fixed, workers=2)
    np.testing.assert_allclose(found.value, np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-5)
    assert sum("odd" in line and how in line for line in said()) == 1
    if how == "asked in Python":
        return
    with pytest.raises(cs.DiagramError, match="odd"):
        cs.Simulation(engine="compiled", live=False).sweep(build, {"state:x_0": [1.0]}, final, **fixed)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_after_its_with_keeps_what_is_done(sim, said, kind):
    """The pool's own RuntimeError came out, and the first run was lost."""
    with kind(1) as executor:
        pass
    found = sim.sweep(decay, {"rate:K": [-1.0, -2.0, -3.0]}, final, T=1.0, executor=executor)
    assert found.status == "interrupted" and found.done.tolist() == [True, False, False]
    np.testing.assert_allclose(found.value[0], np.exp(-1.0), rtol=1e-5)
    assert any("the executor broke: cannot schedule new futures after shutdown" in line for line in said())


# ---------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor])
def test_ctrl_c_keeps_what_is_done(sim, said, executor):
    count = []

    def measure(out):
        count.append(0)
        if len(count) == 5:
            _thread.interrupt_main()
        time.sleep(0.02)
        return final(out)

    begin = time.monotonic()
    pool = executor(2) if executor else None
    found = sim.sweep(decay, {"state:x_0": np.arange(1.0, 201.0)}, measure, T=0.1, executor=pool)
    if pool is not None:
        pool.shutdown(cancel_futures=True)
    assert found.status == "interrupted" and 1 <= found.done.sum() < 150
    assert time.monotonic() - begin < 10.0
    np.testing.assert_allclose(found.value[found.done], np.exp(-0.1) * np.arange(1.0, 201.0)[found.done], rtol=1e-6)
    assert np.isnan(found.value[~found.done]).all()
    assert any(line.startswith("sweep: interrupted: ") for line in said())


def test_ctrl_c_ends_a_long_run(sim):
    """The run that goes on would take a minute: it is abandoned, not waited for."""

    def build(sim, slow=0.0):
        bd = sim.blockdiagram()
        state = bd.INTEGRATOR(x0=1.0, name="state")
        bd.connect(state, lag := bd.FUNCTION(functools.partial(late, slow), name="lag"))
        bd.connect(lag, state)
        return bd

    begin = time.monotonic()
    found = sim.sweep(build, {"slow": [0.0, 0.05, 0.06]}, interrupted_soon, T=1.0, workers=2, max_step=1e-3)
    assert time.monotonic() - begin < 15.0
    assert found.done.tolist() == [True, False, False]


def interrupted_soon(out):
    """Measure the first run, which is carried out alone, and have Ctrl-C pressed when the others are on their way."""
    threading.Timer(0.5, _thread.interrupt_main).start()
    return final(out)


def late(slow, x):
    time.sleep(slow)
    return -x


# ---------------------------------------------------------------- what is refused before anything runs


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [
        (cs.UnknownName, "did you mean 'rate'", {"grid": {"rat": [1.0]}}),
        (cs.UnknownName, "did you mean 'state:x_0'", {"grid": {"state:x_1": [1.0]}}),
        (cs.UnknownName, "axis 'rates:K' does not exist; did you mean 'rate:K'", {"grid": {"rates:K": [1.0]}}),
        (cs.UnknownName, "axis 'rate.k' does not exist; did you mean 'rate.K'", {"grid": {"rate.k": [1.0]}}),
        (cs.UnknownName, "measure: ", {"grid": {"rate:K": [1.0]}, "measure": ["speed"]}),
        (cs.UnknownName, "watch: ", {"grid": {"rate:K": [1.0]}, "watch": ["speed"]}),
        (cs.InvalidType, "measure: expected a function", {"grid": {"rate:K": [1.0]}, "measure": 3}),
        (cs.InvalidType, "measure: expected a function", {"grid": {"rate:K": [1.0]}, "measure": None}),
        (cs.InvalidType, "expected a list of values, got 1.0", {"grid": {"rate:K": 1.0}}),
        (cs.InvalidType, "expected a dict", {"grid": [1.0]}),
        (cs.InvalidValue, "has no values", {"grid": {"rate:K": []}}),
        (cs.InvalidValue, "is empty", {"grid": {}}),
        (cs.InvalidValue, "either grid", {}),
        (cs.InvalidValue, "either grid", {"grid": {"rate:K": [1.0]}, "samples": {"rate:K": [1.0]}}),
        (cs.NonFinite, "must be finite", {"grid": {"rate:K": [1.0, np.nan]}}),
        (cs.ShapeError, "as many values", {"samples": {"rate:K": [1.0, 2.0], "state:x_0": [1.0]}}),
        (cs.ShapeError, "a column for each", {"samples": np.zeros((4, 3)), "names": ["a", "b"]}),
        (cs.InvalidValue, "given as a fixed one", {"grid": {"rate": [1.0]}, "rate": 2.0}),
        (cs.InvalidValue, "rate.K is named twice: 'rate.K', 'rate:K'", {"grid": {"rate.K": [1.0], "rate:K": [2.0]}}),
        (cs.InvalidValue, "workers: ", {"grid": {"rate:K": [1.0]}, "workers": 0}),
        (cs.InvalidType, "executor: ", {"grid": {"rate:K": [1.0]}, "executor": "threads"}),
        (cs.InvalidValue, "T: ", {"grid": {"rate:K": [1.0]}, "T": -1.0}),
        (cs.DiagramError, "unexpected keyword argument 'mass'", {"grid": {"rate:K": [1.0]}, "mass": 2.0}),
        (cs.UnknownName, "solver 'RK46' does not exist", {"grid": {"rate:K": [1.0]}, "solver": "RK46"}),
        (cs.InvalidValue, "takes no further options, got 'foo'", {"grid": {"rate:K": [1]}, "solver_args": {"foo": 1}}),
        (cs.InvalidType, "resume: expected the path of a file, got an int", {"grid": {"rate:K": [1.0]}, "resume": 3}),
        (cs.InvalidType, "watch: expected names of signals", {"grid": {"rate:K": [1.0]}, "watch": None}),
        (cs.InvalidType, "names: expected a list", {"samples": np.zeros((4, 3)), "names": 3}),
        (cs.InvalidValue, "grid 'rate:K': 1.0 is there twice", {"grid": {"rate:K": [1, 2, 1.0]}}),
        (cs.InvalidValue, "'a' is there twice", {"grid": {"rate": ["a", "b", "a"]}}),
        (cs.InvalidValue, r"\[0, 1\] is there twice", {"grid": {"start": [[0, 1], [0, 1]]}}),
    ],
)
def test_mistakes_are_named_before_anything_runs(sim, monkeypatch, error, text, arguments):
    monkeypatch.setattr(cs.Simulation, "run", lambda *_, **__: pytest.fail("something ran"))
    with pytest.raises(error, match=text):
        sim.sweep(decay, **{"measure": final, "T": 0.1, **arguments})


def test_a_solver_that_does_not_exist_leaves_no_file(sim, tmp_path):
    """Each run of the grid failed, and its failure was written to the file."""
    with pytest.raises(cs.UnknownName, match="solver 'RK46'"):
        sim.sweep(decay, {"rate:K": [1.0, 2.0]}, final, T=0.1, solver="RK46", resume=tmp_path / "sweep")
    assert not list(tmp_path.iterdir())


def test_values_that_are_equal_only_at_first_sight_are_run(sim):
    """A flag is no number, and lists of several lengths are no array."""
    built = []

    def build(sim, shape):
        built.append(shape)
        return decay(sim)

    shapes = [True, 1, [1], [[1]], [[1], [1, 2]], [[1], [2, 1]]]
    found = sim.sweep(build, {"shape": shapes}, final, T=0.1, workers=1)
    assert built == shapes == found.axes["shape"].tolist()


def test_more_runs_than_any_memory_holds_are_refused(sim, monkeypatch):
    """The numbers of 9e8 runs were put in a list before the first of them, which ended in a MemoryError."""
    monkeypatch.setattr(cs.Simulation, "run", lambda *_, **__: pytest.fail("something ran"))
    many = np.linspace(0.0, 1.0, 100_000)
    with pytest.raises(cs.InvalidValue, match=r"10000000000 runs \(100000 x 100000\) would take 5000 GB of memory"):
        sim.sweep(decay, {"rate:K": many, "start": many}, final)


def test_the_order_of_a_grid_is_found_without_a_list_of_it():
    """Runs with the same options come one behind the other, and those of more than fit in memory have no list."""
    axes = Axes.checked({"a": [0, 1], "law": [2, 3, 4], "b": [5, 6]})
    for first in (["law"], ["law", "b"], ["a", "b"]):
        chosen = [axes.names.index(name) for name in first]
        expected = sorted(range(12), key=lambda k: ([axes.run(k)[i] for i in sorted(chosen)], k))
        assert list(axes.order(first)) == expected
    assert axes.order([]) == range(12)


def test_the_same_number_is_not_varied_twice(sim):
    for twice in ({"plant:q0": [[0.1, 0.2]], "plant.q0[1]": [0.3]}, {"plant:q0[1]": [0.1], "plant.q0[1]": [0.3]}):
        with pytest.raises(cs.InvalidValue, match=r"plant\.q0 is named twice: .*, 'plant\.q0\[1\]'"):
            sim.sweep(pendulum, twice, ["plant.q"], T=0.1, rods=2)
    for twice in ({"state": [1.0], "state:x_0": [2.0]}, {"state:x_0": [1.0], "state": [2.0]}):  # the last one won
        with pytest.raises(cs.InvalidValue, match=r"sweep: state:x_0 is named twice: 'state"):
            sim.sweep(decay, twice, final, T=0.1)
    found = sim.sweep(pendulum, {"plant:q0[0]": [0.1], "plant.q0[1]": [0.3]}, lambda out: out.x[0, :2], T=0.1, rods=2)
    assert found.value[0, 0].tolist() == [0.1, 0.3]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("plant.link2.mass", [0.5, 2.0]),
        ("link2.mass", [0.5, 2.0]),
        pytest.param("link1.com", [[0.2, 0.0, 0.0], [0.5, 0.1, 0.0]], marks=pytest.mark.slow),
        pytest.param("plant.gravity[1]", [-1.6, -9.0], marks=pytest.mark.slow),
        pytest.param("plant.q0[0]", [0.1, 0.2], marks=pytest.mark.slow),
        ("mix.K[0, 1]", [0.5, 2.0]),
    ],
)
def test_names_are_those_of_tune(sim, name, values):
    """Numbers of mechanisms, and of matrices, were known to `tune` and unknown here."""

    def build(sim):
        bd = pendulum.build(sim, rods=2)
        bd.connect(bd.blocknames["plant"][0], bd.GAIN(np.array([[1.0, 2.0], [3.0, 4.0]]), name="mix"))
        bd.connect(bd.blocknames["mix"], bd.NULL(name="sink"))
        return bd

    def measure(out):
        return np.append(out.signal("mix")[-1], out.x[-1])

    found = sim.sweep(build, {name: values}, measure, T=0.3, watch=["mix"])
    for value, end in zip(values, found.value, strict=True):
        bd = build(sim)
        compile_diagram(bd)
        Parameters(bd, name).set(np.atleast_1d(value))
        np.testing.assert_allclose(end, measure(sim.run(bd, T=0.3, watch=["mix"])), rtol=1e-12, atol=1e-15)
    assert np.ptp(found.value, axis=0).max() > 1e-3
    bd = build(sim)
    compile_diagram(bd)
    before = Parameters(bd, name).get()
    sim.sweep(bd, {name: values}, measure, T=0.1, watch=["mix"], workers=1)
    np.testing.assert_array_equal(Parameters(bd, name).get(), before)


@pytest.mark.slow
def test_numbers_of_a_mechanism_are_set_together_and_none_twice(sim):
    both = {"link1.mass": [0.5, 2.0], "link2.mass": [3.0, 1.5]}
    found = sim.sweep(pendulum, both, lambda out: out.x[-1], T=0.3, rods=2)
    for i, first in enumerate(both["link1.mass"]):
        for j, second in enumerate(both["link2.mass"]):
            bd = pendulum.build(sim, rods=2)
            compile_diagram(bd)
            Parameters(bd, list(both)).set(np.array([first, second]))
            np.testing.assert_allclose(found.value[i, j], sim.run(bd, T=0.3).x[-1], rtol=1e-12)
    with pytest.raises(cs.InvalidValue, match="link1"):
        sim.sweep(pendulum, {"link1.mass": [1.0], "plant.link1.mass": [1.0]}, final, T=0.1, rods=2)
    impossible = sim.sweep(pendulum, {"link1.mass": [1.0, -1.0]}, final, T=0.1, rods=2)
    assert impossible.failed.tolist() == [False, True] and "mass" in impossible.reasons[(1,)]
    short = sim.sweep(pendulum, {"link1.com": [[0.1, 0.0]]}, final, T=0.1, rods=2)
    assert "link1.com: expected 3 numbers" in short.reasons[(0,)]


def test_what_moves_a_pose_goes_from_the_diagrams_own_in_each_run(sim):
    """It went on from where the run before had left it, by 0.1, then 0.3, on as many workers as there were."""
    turns, shifts = [0.1, 0.2, 0.4], [0.0, 0.3]
    both = {"link2.pose.rz": turns, "link2.pose.x": shifts}
    found = sim.sweep(pendulum, both, lambda out: out.x[-1], T=0.3, rods=2, workers=1)
    for (i, turn), (j, shift) in itertools.product(enumerate(turns), enumerate(shifts)):
        bd = pendulum.build(sim, rods=2)
        compile_diagram(bd)
        Parameters(bd, list(both)).set(np.array([turn, shift]))
        np.testing.assert_allclose(found.value[i, j], sim.run(bd, T=0.3).x[-1], rtol=1e-12)


def test_what_is_no_diagram_is_refused(sim):
    with pytest.raises(cs.InvalidType, match="expected a function build"):
        sim.sweep(3, {"rate:K": [1.0]}, final)
    with pytest.raises(cs.InvalidType, match="return bd"):
        sim.sweep(lambda sim: None, {"rate:K": [1.0]}, final)
    with pytest.raises(cs.UnknownName, match=r"'measures' does not.*; did you mean 'measure'.*function that builds"):
        sim.sweep(decay(sim), {"rate:K": [1.0]}, measures=final)
    with pytest.raises(cs.UnknownName, match="value 'x' does not exist"):
        sim.sweep(decay, {"rate:K": [1.0]}, final, T=0.1)["x"]


@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_that_an_event_sets_are_not_those_with_which_the_next_run_begins(sim, workers):
    """A run after another began with what that one's events had set: 1.7, then 0.61."""

    def build(sim):
        bd = sim.blockdiagram()
        level, flow, room = bd.INTEGRATOR(0.0, name="level"), bd.GAIN(2.0, name="flow"), bd.SUM("+-")
        bd.connect(bd.CONSTANT(1.0), flow)
        bd.connect(flow, level)
        bd.connect(level, room[0])
        bd.connect(bd.CONSTANT(1.0), room[1])

        def full(block, states):
            block.count = getattr(block, "count", 0) + 1
            flow.K *= 0.5**block.count

        bd.connect(room, bd.EVENT("^", full, name="full"))
        return bd

    for diagram in (build, build(sim)):
        swept = sim.sweep(diagram, {"flow.K": [2.0, 4.0], "level": [0.0, 0.2]}, final, T=1.2, workers=workers)
        np.testing.assert_allclose(swept.value, [[1.7, 1.8], [2.9, 3.0]], atol=1e-5)
