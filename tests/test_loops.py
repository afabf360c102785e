"""Machine code of plain functions with loops and branches: the same numbers as by Python, to the last bit."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from cstormpy.graph.loops import LoopError, loops_text
from cstormpy.graph.machine import Machine
from cstormpy.kernels import dense, event_location, rungekutta, stepping
from cstormpy.kernels.stepping_code import Steps, steps_of
from cstormpy.simulation.compiled.slices import tables_of
from cstormpy.simulation.step_control import MAX_FACTOR, MIN_FACTOR, SAFETY
from cstormpy.simulation.tableaus import EXPLICIT

PARTS = (0.5, -2.0, math.inf)


def _inner(x, k):
    if k > 2:
        return x[k - 1], True
    return x[k] * 2.0, False


def everything(x, A, n):
    """What the reader of loops knows, in one function."""
    total, seen, least = 0.0, 0, np.inf
    for i in range(1, x.size):
        value, late = _inner(x, i)
        if late and not value < 0.0:
            seen += 1
            continue
        total += value if late else -value
        least = min(least, max(value, PARTS[i % len(PARTS)]))
    for i in range(A.shape[0]):
        row = A[i]
        row[0], row[1] = row[1], row[0]
        for j in range(A.shape[1]):
            A[i, j] = abs(A[i, j]) ** 0.5 - (j - 3) % 2
            if math.isnan(A[i, j]) or not math.isfinite(A[i, j]):
                break
    part = x[1:3]
    part[0] = np.nextafter(total, np.inf)
    k = n[0]
    while k < 20 and (k != 13 or seen == 0):
        k += 1 + (k > 5) * 2
    x[0], x[3] = (total, least) if k % 3 == 0 else (least, float(k))
    n[1] = int(total * 10.0)
    n[0] += 1.5 > total
    return seen, k


def call(function, kinds, arrays):
    """Return what machine code of a function of arrays gives."""
    machine = Machine(loops_text({function: kinds}))
    found = np.zeros(2, dtype=np.int64)
    given = np.array([v for a in arrays for v in (a.ctypes.data, *a.shape)], dtype=np.int64)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(
        machine.address(f"{function.__name__}_call")
    )
    run(given.ctypes.data, found.ctypes.data)
    return found.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_machine_code_of_loops_does_what_python_does(seed):
    random = np.random.default_rng(seed)
    ours = [random.normal(size=6), random.normal(size=(3, 4)), random.integers(0, 9, size=2)]
    theirs = [a.copy() for a in ours]
    assert call(everything, ("F1", "F2", "I1"), ours) == list(everything(*theirs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_not_read_is_named_with_its_line():
    def dreaming(x):
        return sorted(x)

    with pytest.raises(LoopError, match=r"test_loops\.py, line \d+: not known: sorted"):
        loops_text({dreaming: ("F1",)})


def pendulum(t, x, z, p, n, w, out, xd):
    """Fill the rates of a driven pendulum and its signals: two guards and what a clock samples."""
    xd[0], xd[1] = x[1], -math.sin(x[0]) - p[0] * x[1] + z[0]
    out[0], out[1], out[2], out[3] = x[0], x[1], x[0] - 0.2 * t, 0.3 * math.cos(3.0 * t)
    return 0


def slowed(t, x, z, p, n, w, out, xd):
    """Fill the state to which a step's end is put, as that which closes loops: here at no more than half a unit."""
    xd[0], xd[1] = x[0], min(x[1], 0.5)
    return 0


def behind_an_address(function):
    """Return such a function as one of C."""
    sizes = (2, 1, 1, 1, 1, 4, 2)

    def asked(t, *places):
        kinds = [ctypes.c_int64 if k == 3 else ctypes.c_double for k in range(7)]
        given = [
            np.ctypeslib.as_array((kind * m).from_address(a)) for a, m, kind in zip(places, sizes, kinds, strict=True)
        ]
        return function(t, *given)

    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 7)(asked)


def arguments(method, grid, bends=False):
    """Return what `advance` takes, of a run with a guard, a clock and a jump; the guard may only end a step."""
    table, spread, kind = tables_of(method)
    how, at, K = (
        np.zeros(rungekutta.HOW, dtype=np.int64),
        np.zeros(rungekutta.AT),
        np.zeros((method.stages + dense.K_ROWS, 2)),
    )
    how[[dense.STAGES, dense.DENSE, rungekutta.ADAPTIVE]] = method.stages, kind, method.adaptive
    how[[rungekutta.SECOND, rungekutta.FINITE, rungekutta.MOST]] = method.E3 is not None, 1, 500
    how[[rungekutta.COLUMNS, rungekutta.CHECKED, rungekutta.LAST, rungekutta.MOST_MET]] = 4, 4, 1, 9
    at[[rungekutta.LENGTH, rungekutta.BOUND, rungekutta.RTOL, rungekutta.ATOL]] = 0.01, 8.0, 1e-7, 1e-9
    at[[rungekutta.LONGEST, rungekutta.EXPONENT, rungekutta.EARLIEST]] = 0.2, -1.0 / (method.error_order + 1), -np.inf
    at[[rungekutta.LATEST, rungekutta.FIXED, rungekutta.GRID]] = np.inf, 0.02, grid
    at[[rungekutta.SAFETY, rungekutta.MAX_FACTOR, rungekutta.MIN_FACTOR]] = SAFETY, MAX_FACTOR, MIN_FACTOR
    at[[rungekutta.SAME_TIME, rungekutta.JUMP_WIDTH]] = 1e-12, 8
    x, z, p, n, w, out = (
        np.array([0.5, 0.0]),
        np.zeros(1),
        np.array([0.1]),
        np.zeros(1, dtype=np.int64),
        np.zeros(1),
        np.zeros(4),
    )
    guards, sides = np.array([2]), np.full((event_location.SIDES, 1), np.nan)
    sides[event_location.BEFORE], sides[event_location.DIRECTION], sides[event_location.FIRED_AT] = 0.5, 0.0, -np.inf
    sides[event_location.BENDS] = bends
    clocks, parts = np.array([[0.25, 1.0, 0.25, 0.0]]), np.array([[0, 1, 3, -1]])
    pendulum(0.0, x, z, p, n, w, out, K[0])
    return [
        table, spread, how, at, x, z, p, n, w, out, K, guards, sides, np.arange(4), clocks, parts, np.array([1.1, 3.3]),
        np.zeros((600, 4)), np.zeros((9, 2)), np.zeros(600), np.zeros((600, 2)), np.zeros((600, 4)),
    ]  # fmt: skip


@pytest.mark.parametrize(("grid", "bends"), [(0.0, False), (0.0, True), (0.07, False), (0.07, True)])
@pytest.mark.parametrize("name", EXPLICIT)
def test_the_steps_of_machine_code_are_those_of_python(name, grid, bends):
    """Steps, ticks, jumps, a grid, crossings, what keeps loops closed: `advance` leaves the same bits."""
    ours, theirs = arguments(EXPLICIT[name], grid, bends), arguments(EXPLICIT[name], grid, bends)
    functions = [behind_an_address(f) for f in (pendulum, slowed)]
    for how in (ours[2], theirs[2]):
        how[rungekutta.CLOSED] = grid > 0.0
    for _ in range(3):
        found = Steps("advance")(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions), *ours)
        assert found == [int(v) for v in stepping.advance(pendulum, slowed, *theirs)]
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
    if bends:
        assert found[0] == stepping.WENT and ours[2][rungekutta.MET] == np.count_nonzero(ours[-4][:, 0]) > 0
    else:
        assert found[0] in (stepping.CROSSED, stepping.LOOK)


def test_steps_refuse_arrays_of_another_kind():
    steps = Steps("trial")
    arrays = [np.zeros((2, 2)), np.zeros(3)]
    with pytest.raises(TypeError, match="argument 2 is not a C array of int64"):
        steps(0, *arrays)


def rates_of_the_pendulum(t, x, z, p, n, w, out, xd):
    """Fill the rates of the pendulum alone."""
    return pendulum(t, x, z, p, n, w, np.full(4, np.nan), xd)


@pytest.mark.parametrize("rates", [pendulum, rates_of_the_pendulum])
@pytest.mark.parametrize("name", EXPLICIT)
def test_steps_written_out_for_a_method_are_those_of_any(name, rates):
    """Its coefficients and the number of states are folded in, and its stages need no signals: the same bits."""
    ours, theirs = arguments(EXPLICIT[name], 0.07), arguments(EXPLICIT[name], 0.07)
    functions = [behind_an_address(f) for f in (pendulum, slowed, rates)]
    places = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
    codes = [rungekutta.STAGES_CODE, rungekutta.ERROR_CODE, rungekutta.RATES]
    ours[2][codes] = *steps_of(ours[0], 2), places[2]
    assert ours[2][codes].all()
    for _ in range(3):
        assert Steps("advance")(*places[:2], *ours) == Steps("advance")(*places[:2], *theirs)
        theirs[2][codes] = ours[2][codes]
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)
        theirs[2][codes] = 0


def test_steps_of_many_states_are_not_written_out():
    table = tables_of(EXPLICIT["RK45"])[0]
    assert steps_of(table, 1000) == steps_of(table, 0) == (0, 0)
