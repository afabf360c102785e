"""Functions of the user in a compiled diagram: what they read, what they return, and where they have no value."""

from __future__ import annotations

import collections
import enum
import importlib
import math
import os
import random
import subprocess
import sys
import types

import numba
import numpy as np
import pytest
from test_compiled import behind_a_state, simulation

from cstormpy.errors import BlockError, NonFinite
from cstormpy.simulation.compiled import NotTranslated
from cstormpy.simulation.compiled.fingerprints import fingerprint
from cstormpy.simulation.compiled.untranslated import told

FIXED = {"T": 1.0, "solver": "RK4", "dt": 0.1}


def function_of(func, **options):
    return lambda bd: bd.FUNCTION(func, name="fn", **options)


# what a function reads --------------------------------------------------------------------------------


def digest_of(func):
    text, lasting = fingerprint([func])
    assert lasting
    return text


def test_a_number_in_a_module_of_ones_own_that_changes_is_seen_by_the_next_run():
    """It was frozen in the compiled code: the module was told apart by its name only."""
    gains = types.ModuleType("gains")
    gains.k = 2.0
    sim = simulation()
    bd = behind_a_state(sim, function_of(lambda x: -gains.k * x))
    for k in (2.0, 3.0):
        gains.k = k
        assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(0.5 * math.exp(-k), rel=1e-5)


def test_code_that_numba_has_frozen_is_kept_for_no_other_process():
    """There the helper would be compiled with the present number, here it stays as it is."""
    helper = numba.njit(module_with_a_gain(2.0))

    def law(x):
        return helper(x)

    before = digest_of(law)
    assert law(1.0) == 2.0 and digest_of(law) == before
    helper.py_func.__globals__["gain"] = 3.0
    after, lasting = fingerprint([law])
    assert law(1.0) == 2.0 and after != before and not lasting
    helper.py_func.__globals__["gain"] = 2.0
    assert digest_of(law) == before


def test_helpers_that_call_themselves_or_each_other_are_told_apart_by_what_they_read():
    module = types.ModuleType("helpers_that_call")
    exec(CALL_EACH_OTHER, module.__dict__)
    for name in ("down", "even", "odd"):
        setattr(module, name, numba.njit(getattr(module, name)))

    def law(x):
        return module.down(3) + module.even(4) + module.odd(5) + x

    before = digest_of(law)
    assert digest_of(law) == before
    module.step = 2
    after, lasting = fingerprint([law])
    assert after != before and not lasting


CALL_EACH_OTHER = """
step = 1
def down(n):
    return 0 if n <= 0 else down(n - step)
def even(n):
    return n == 0 or odd(n - step)
def odd(n):
    return n != 0 and even(n - step)
"""


def module_with_a_gain(gain):
    """Return a function of a module of its own."""
    module = types.ModuleType("gain_of_a_helper")
    exec(f"gain = {gain}\ndef times(x):\n    return gain * x\n", module.__dict__)
    return module.times


READS = """
import lately_gains, lately_tables.inner
from cstormpy.simulation.compiled.fingerprints import fingerprint
def law(x):
    return lately_gains.law(x) + lately_tables.inner.table[0] * lately_gains.k
print(*fingerprint([law]))
"""
GAINS = "k = 1.0\nunused = 0\ndef law(x):\n    return 2 * x\n"


def test_an_edited_module_is_another_function_and_the_same_one_is_not(tmp_path, monkeypatch, capsys):
    """The code on disk goes by the fingerprint: from one process to another it follows what the modules hold."""
    folder = tmp_path / "lately_tables"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    def told(gains, table):
        (tmp_path / "lately_gains.py").write_text(gains)
        (folder / "inner.py").write_text(f"import numpy\ntable = numpy.array([{table}])\n")
        for name in ("lately_gains", "lately_tables", "lately_tables.inner"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        exec(READS, {})
        return capsys.readouterr().out.split()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    others = [told(GAINS.replace("2 *", "5 *"), 3.0), told(GAINS.replace("1.0", "4.0"), 3.0), told(GAINS, 6.0)]
    first = told(GAINS, 3.0)
    assert told(GAINS.replace("unused = 0", "unused = 7"), 3.0) == first and first[1] == "True"
    assert len({first[0], *(text for text, _ in others)}) == 4
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-B", "-c", READS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    assert done.stdout.split() == first


def test_what_is_installed_is_told_by_its_name():
    assert digest_of(lambda x: np.sin(x) + math.pi) == digest_of(lambda x: np.sin(x) + math.pi)
    assert digest_of(lambda x: np.sin(x)) != digest_of(lambda x: np.cos(x))


def test_classes_and_defaults_are_told_apart_by_what_they_hold():
    def mode(value):
        Mode = enum.IntEnum("Mode", {"FAST": value})
        return lambda x: Mode.FAST * x

    def held(value):
        class Gains:
            k = value

        return lambda x: Gains.k * x

    def keyword(value):
        def law(x, *, k=value):
            return k * x

        return law

    def fields(*names):
        pair = collections.namedtuple("Pair", names)(1.0, 2.0)
        return lambda x: pair.a * x

    for make in (mode, held, keyword):
        assert digest_of(make(1)) == digest_of(make(1)) != digest_of(make(2))
    assert digest_of(fields("a", "b")) != digest_of(fields("b", "a"))


# what it reads and compiled code cannot ----------------------------------------------------------------

LIST, TABLE = [1.0, 2.0], {"k": 2.0}
LISTS = types.ModuleType("lists")
LISTS.gains = LIST


def halved(x):
    return 0.5 * x


@pytest.mark.parametrize(
    "make",
    [
        lambda v: lambda x: -v[0] * x,
        lambda v: lambda x: -LIST[0] * x,
        lambda v: lambda x: -LISTS.gains[0] * x,
        lambda v: lambda x: -TABLE["k"] * x,
        lambda v: lambda x: -halved(x),
    ],
)
def test_what_a_function_reads_and_numba_refuses_is_traced(make):
    """Lists, dicts and helpers that are not compiled had the whole diagram run interpreted."""
    interpreted, compiled = ends(lambda sim: behind_a_state(sim, function_of(make([1.0, 2.0]))))
    np.testing.assert_allclose(compiled.x, interpreted.x, rtol=1e-12)
    sim = simulation()
    assert "fn     output: traced" in sim.explain(behind_a_state(sim, function_of(make([1.0, 2.0]))))


@pytest.mark.parametrize("generator", [np.random.default_rng(1), np.random.RandomState(1), random.Random(1)])
def test_a_random_generator_is_refused_by_name(generator):
    sim = simulation()
    with pytest.raises(
        NotTranslated, match=r"it reads 'generator', a random generator.*engine='interpreted'"
    ) as caught:
        sim.run(behind_a_state(sim, function_of(lambda x: x + generator.uniform(0.0, 1.0))), **FIXED)
    assert "0x" not in str(caught.value)


def test_a_fault_of_numba_without_a_known_cause_bears_no_address():
    fault = "<numba.core.base.OverloadSelector object at 0x7fee12>, (Odd,), in the function at line 3 of laws.py"
    assert told(halved, fault) == "it reads what compiled code cannot hold; in the function at line 3 of laws.py"
    assert told(lambda x, v=LIST: v[0] * x, fault).startswith("it reads 'v', a list; make it a tuple or an array; in ")
    assert told(halved, "in the function at line 3 of laws.py").startswith("it fails without telling why, as where")
    assert told(halved, "no <Thing object at 0x7fee12> here") == "no <Thing object> here"


# what it returns --------------------------------------------------------------------------------------


def ends(build, **options):
    """Return the results of a run interpreted and of one compiled."""
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        found.append(sim.run(build(sim), **{**FIXED, **options}))
    return found


def two_states(sim, func):
    bd = sim.blockdiagram()
    s, fn = bd.INTEGRATOR(x0=[1.0, 2.0], name="s"), bd.FUNCTION(func, name="fn")
    bd.connect(s, fn)
    bd.connect(fn, s)
    return bd


def test_a_result_that_changes_its_shape_ends_the_run_as_in_the_interpreted_one():
    """The compiled run read past the array, and said that it had finished."""
    interpreted, compiled = ends(lambda sim: two_states(sim, lambda x: x[x < 5.0] * 1.0), T=4.0)
    assert (interpreted.status, compiled.status) == ("failed", "failed")
    assert compiled.message == interpreted.message and "returned 1 number, 2 before this" in compiled.message
    np.testing.assert_allclose(compiled.x, interpreted.x, rtol=1e-12)


def lists(x):
    if x > 0.8:
        return [x]
    return [x, 2.0 * x]


def test_a_list_that_changes_its_length_ends_the_run_and_names_the_block():
    def build(sim):
        bd = sim.blockdiagram()
        s, fn = bd.INTEGRATOR(x0=0.5, name="s"), bd.FUNCTION(lists, nout=2, name="fn")
        bd.connect(s, fn)
        bd.connect(fn[0], s)
        bd.connect(fn[1], bd.NULL())
        return bd

    interpreted, compiled = ends(build)
    assert compiled.status == interpreted.status == "failed"
    assert compiled.message == interpreted.message and "'fn'" in compiled.message


@pytest.mark.parametrize("condition", [lambda v: v > 0.77, lambda v: bool(v > 0.77)])
def test_a_condition_stops_the_compiled_run(condition):
    """Truth values were not compiled: numba knows no float(True)."""

    def build(sim):
        bd = sim.blockdiagram()
        x = bd.INTEGRATOR(x0=0.0, name="x")
        bd.connect(bd.CONSTANT(1.0), x)
        bd.connect(x, bd.STOP(condition, name="stop"))
        return bd

    interpreted, compiled = ends(build)
    assert compiled.message == interpreted.message == "stopped at t = 0.77 by block 'stop'"
    assert compiled.t[-1] == pytest.approx(interpreted.t[-1], abs=1e-9)


def truths(x):
    return np.array([x < 0.8, x > 0.6])


@pytest.mark.parametrize("func", [lambda x: x < 0.8, lambda x: bool(x < 0.8), lambda x: x < 0.8 or 0.3 * x])
def test_a_truth_value_is_one_or_zero(func):
    interpreted, compiled = ends(lambda sim: behind_a_state(sim, function_of(func)), watch=["fn"])
    np.testing.assert_allclose(compiled.x, interpreted.x, rtol=1e-12)
    np.testing.assert_allclose(
        compiled.signal("fn[0]"), np.asarray(interpreted.signal("fn[0]"), dtype=float), rtol=1e-12
    )


def test_an_array_of_truth_values_and_a_stop_behind_it():
    def build(sim):
        bd = sim.blockdiagram()
        s, fn, late = bd.INTEGRATOR(x0=0.0, name="s"), bd.FUNCTION(truths, name="fn"), bd.INDEX([1], name="late")
        bd.connect(bd.CONSTANT(1.0), s)
        bd.connect(s, fn)
        bd.connect(fn, late)
        bd.connect(late, bd.STOP(name="stop"))
        return bd

    interpreted, compiled = ends(build, watch=["fn"])
    assert compiled.message == interpreted.message and "by block 'stop'" in compiled.message
    expected = np.array(interpreted.signal("fn[0]"), dtype=float)
    np.testing.assert_array_equal(compiled.signal("fn[0]"), expected)


def test_truth_values_that_are_added_are_left_to_numpy():
    """True + True is True in NumPy and would be 2 in the compiled diagram."""

    def build(sim):
        bd = sim.blockdiagram()
        s, total = bd.INTEGRATOR(x0=np.array([0.0, 0.5]), name="s"), bd.SUM("++", name="total")
        for port in (0, 1):
            fn = bd.FUNCTION(lambda x: x > 0.3, name=f"fn{port}")
            bd.connect(s, fn)
            bd.connect(fn, total[port])
        bd.connect(total, s)
        return bd

    interpreted, compiled = ends(build)
    np.testing.assert_array_equal(compiled.x, interpreted.x)
    assert compiled.x[-1, 1] == pytest.approx(1.5)


def test_the_gradient_goes_through_a_function_that_returns_a_truth_value_or_a_number():
    def build(sim, x0):
        bd = sim.blockdiagram()
        x, fn = bd.INTEGRATOR(x0=x0, name="x"), bd.FUNCTION(lambda v: v < 0.76 or 1.0 + 0.2 * (v - 0.76), name="fn")
        bd.connect(x, fn)
        bd.connect(fn, x)
        return bd

    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        found = sim.gradient(build(sim, 0.5), "x", "x:x_0", **FIXED)
        assert found.gradient[0] == pytest.approx(math.exp(0.2 * 0.74), rel=1e-6)  # from 0.26 s on x grows by itself


# where it has no value --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "x0", "slope"),
    [
        (math.sqrt, 1e-6, 500.0),
        (np.sqrt, 1e-6, 500.0),
        (math.log, 1e-9, 1e9),
        (lambda x: math.sqrt(x) ** 3, 0.0, 0.0),
        (lambda x: x * math.sqrt(1.0 - x) ** 3, 1.0, 0.0),
        (lambda x: x + math.sqrt(x) ** 4, 0.0, 1.0),
    ],
)
def test_a_function_is_differenced_up_to_the_edge_of_its_domain(func, x0, slope):
    def build(sim):
        bd = sim.blockdiagram()
        x, fn = bd.INTEGRATOR(x0=x0, name="x"), bd.FUNCTION(numbers_only, name="fn")
        bd.connect(x, fn)
        bd.connect(fn, x)
        return bd

    def numbers_only(v):
        return func(float(f"{v:.17g}"))  # which no symbol has

    sim = simulation("interpreted")
    assert sim.linearize(build(sim)).A[0, 0] == pytest.approx(slope, rel=1e-6, abs=2e-2 if slope == 0.0 else 1e-9)


def of_its_digits(x):
    x = float(f"{x:.17g}")
    return math.sqrt(x) if x >= 0.0 else -math.sqrt(-x) / (x - x)


@pytest.mark.parametrize(
    ("func", "error", "says"),
    [
        (math.sqrt, NonFinite, "the slope of the rate of x:x_0 is not finite"),
        (np.sqrt, NonFinite, "the slope of the rate of x:x_0 is not finite"),
        (lambda x: math.sqrt(x) if x >= 0.0 else -math.sqrt(-x) / (x - x), NonFinite, "the slope of the rate of x:x_0"),
        (of_its_digits, BlockError, r"block 'fn': has no derivative at t = 0 that differences find"),
    ],
)
def test_where_there_is_no_derivative_the_state_or_the_block_is_named(func, error, says):
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    x, fn = bd.INTEGRATOR(x0=0.0, name="x"), bd.FUNCTION(lambda v: func(v), name="fn")
    bd.connect(x, fn)
    bd.connect(fn, x)
    with pytest.raises(error, match=says):
        sim.linearize(bd)


def test_a_function_that_names_what_is_not_there_yet_is_compiled():
    """Looking for what numba does not take ended the run: "Cell is empty"."""
    sim = simulation("compiled")

    def stairs(u):
        count = 0.0
        while count < u:
            count += 1.0
            if count > 1e6:
                count = later(count)
        return count

    out = sim.run(behind_a_state(sim, function_of(stairs)), T=1.0)
    assert out.x[-1, 0] == pytest.approx(2.0, abs=1e-3)  # by 1 up to 1, then by 2; no step ends there
    if not len(out.t):
        later = None
