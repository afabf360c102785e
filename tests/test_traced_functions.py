"""Functions of the user called with symbols: what is written down has the values that they have of numbers."""

from __future__ import annotations

import logging
import math
import threading

import numpy as np
import pytest
from own_laws import asserting, controlled
from random_functions import random_function
from scipy.interpolate import BSpline as Scipys
from test_graph import machine_values

from cstormpy.graph import Graph, SymbolicBranch
from cstormpy.graph.arrays import symbols
from cstormpy.graph.paths import on_all_ways
from cstormpy.graph.routine import Routine
from cstormpy.simulation.compiled.signals import numbers
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.trajectory import BSpline

rng = np.random.default_rng(0)
SAMPLES = np.vstack([rng.normal(size=(20, 3)) * 2, [[0, 0, 0], [1, -1, 0.5], [-0.5, 0.5, 0.5], [2, 0, -2]]])


def traced(function):
    """Return a function of rows of numbers that does what another does of symbols."""
    graph = Graph(legible=False)
    x = graph.inputs("x", 3)
    copy = with_symbolic_math(function)

    def ask():
        return copy(symbols(x))

    y = [numbers(on_all_ways(graph, ask)) for _ in range(2)]
    assert len(y[0]) == len(y[1]) and all(a is b or a == b for a, b in zip(*y, strict=True))
    routine = Routine("f", {}, {"x": 3}, {"y": y[0]})
    return lambda rows: machine_values(routine, rows)[0][0]


def values_of(function, rows):
    """Return what a function gives for each row, and for which it does, and all of it is finite."""
    found = []
    for row in rows:
        try:
            found.append(np.ravel(np.asarray(function(row.copy()), dtype=float)))
        except (ArithmeticError, ValueError, TypeError, IndexError):
            found.append(None)
    return found, [y is not None and bool(np.isfinite(y).all()) for y in found]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_random_function_is_what_is_written_down_of_it(first):
    """Or it is refused, by what it does or by how many ways there are through it."""
    compared = 0
    for seed in range(first, first + 100):
        function, text = random_function(seed)
        expected, sound = values_of(function, SAMPLES)
        try:
            found = traced(function)(SAMPLES)
        except (SymbolicBranch, ValueError, TypeError, ZeroDivisionError, OverflowError):
            continue
        compared += sum(sound) > len(sound) / 2
        for x, y, z, right in zip(SAMPLES, expected, found, sound, strict=True):
            if right:
                np.testing.assert_allclose(z, y, rtol=1e-7, atol=1e-7, err_msg=f"at {x.tolist()}\n{text}")
    assert compared > 70


IDIOMS = {
    "an array that is filled": "u = np.zeros(2); u[0] = -x[0]; u[1:] = x[1:2]; return u",
    "one like another": "u = np.zeros_like(x); u[1] = x[0]; return u",
    "a matrix that is filled": "A = np.eye(3); A[0, 1] = x[0]; A[2] *= x[1]; return A @ x",
    "numbers as floats": "return np.asarray(x, dtype=float) + np.array([x[0], 1, 2], dtype=np.float64) + float(x[1])",
    "a list of numbers": "return np.linalg.norm([x[0], x[1], 1.0]) + np.max([x[0], 0.5]) + np.mean([x[0], x[1]])",
    "functions of mixed arrays": "return np.sin(np.array([x[0], 1.0])) + np.exp(np.array([0.0, x[1]]))",
    "a choice of several": "return np.select([x > 1, x > 0], [x, 2 * x], -x) + np.select([x[0] > 1], [x[1]], 0.5)",
    "places": "return np.argmax(x) + 2.0 * x.argmin() + x[np.argmax(x)] + np.argmax(x.reshape(1, 3), axis=1)[0]",
    "order": "return np.sort(x)[::-1] + np.median(x) + np.median(x[:2])",
    "classes": "return np.digitize(x, [-1.0, 0.0, 1.0]) + np.searchsorted([-1.0, 0.0, 1.0], x)",
    "degrees": "return np.deg2rad(x) + np.degrees(x) + math.radians(x[0]) + math.degrees(x[1])",
    "roots and powers": "return np.cbrt(x) + np.exp2(x) + np.log2(1 + abs(x)) + np.log10(1 + abs(x)) + np.arcsinh(x)",
    "hyperbolic": "return np.arccosh(1 + abs(x)) + np.arctanh(x / 9) + math.asinh(x[0]) + math.atanh(x[1] / 9)",
    "signs": "return np.copysign(2.0, x) + np.signbit(x) + np.heaviside(x, 0.5) + math.copysign(1.0, x[0])",
    "quotients": "return np.divmod(x, 0.7)[0] + divmod(x[0], 0.7)[1] + x // 0.7",
    "quotients by zero": "return np.clip(x // (x - x[0] + 0 * x), -1, 1) + np.arctan2((x - 9) // -20.0, -1.0)",
    "remainders that are zero": "return np.copysign(1, (-4 * np.rint(x)) % 2.0) + 2 * np.copysign(1, np.rint(x) % -1)",
    "truths": "return np.logical_xor(x > 0, x > 1) + 0.0 + ((x > 0) ^ (x > 1))",
    "truths as floats": "m = np.asarray(x > 0, dtype=float); return m + m @ m",
    "a truth and truths": "return np.sum((x[0] > 0) * (np.array([1.0, -1.0]) > 0)) + x",
    "counts": "return np.count_nonzero(x > 0) + np.cumsum(x > 0) + np.sum(x > 0)",
    "all and any": "return (x > 0).any() * 1.0 + np.all(x > -1) + np.array_equal(x, x[::-1])",
    "nearness": "return np.isclose(x, 1.0) + 0.0 + np.isclose(x[0], [0.3, 0.5, np.inf], atol=0.2)",
    "nearness of all": "return np.allclose(x, 0.5, atol=1) * x[0]",
    "running extremes": "return np.maximum.accumulate(x) + np.minimum.accumulate(x) + np.cumsum(x)",
    "the least of zero": "return x.max(initial=0) + np.min(x, initial=0.0)",
    "the same over itself": "return np.where(np.isnan(x / x), 0.0, x / x)",
    "whole numbers": "return math.copysign(1.0, round(x[0] / 9)) + int(x[1]) + math.ceil(x[2] - 1)",
    "stacked": "return np.hstack([x[0], x[:2]]) + np.stack([x[0], x[1], 1.0]) + np.vstack([[x[0], 1, 2], x])[0]",
    "blocks": "A = np.outer(x, x); return np.block([[A, 2 * A], [np.eye(3), -A]]) + np.block([[x[0], np.r_[x, 0, 1]]])",
    "blocks beside numbers": "return np.block([[np.outer(x, x), x[:, None]], [np.zeros((1, 3)), 1.0]])",
    "another name": "A = np.zeros(3); B = A; A += 1.0; A[0] = x[0]; return B + A",
    "a part of it": "A = np.zeros((2, 2)); B = np.ravel(A); B[3] = x[0]; C = A.T; C[0, 1] = x[1]; return A[1]",
    "polynomials": "p = np.polyder([1.0, -2.0, 0.5]); return np.polyval(p, x[0]) + np.poly1d([x[1], 3.0])(x[2]) + x",
    "a copy of it": "A = x.astype(float); A[0] = 9.0; B = np.array(x); B[1] = 9.0; return x + A + B",
    "a loop that is left": "s = 0.0\n    for v in x:\n        if v > 1.0: break\n        s += v\n    return s",
    "a chain": "return x[0] if 0 < x[0] < 1 else x[1] if x[1] > 0 and not x[2] > 0 else sorted([*x[:2]])[1]",
    "kinds of one number": "return x[0].astype(int) + x[1].astype(np.int64) + x[2].astype('i4') + x[0].astype(bool)",
    "kinds of several": "return x.astype(np.int32) + x.astype(bool) + np.array(x, dtype=bool) + x[1].astype(float)",
    "what is not so": "m = np.array([x[0], 1.0, x[1]]) > 0; return np.where(~m, 1.0, 0.0) + np.arange(1.0, 4.0) * ~m",
    "decimals": "return np.round(x, 1) + np.round(x) + x[0].round(2) + np.round(100 * x, -1)",
    "a place by a whole number": "A = 1 / x[:2]; return A[np.clip(x, -2, 1).astype(int)] + A[x[0].astype(int) % 2]",
    "numbers behind all others": "r = np.sqrt(x); return np.searchsorted([0, 1.0], r) + np.digitize(r, [0, 1.0])",
    "a curve of one point": "return np.interp(x, [1.0], [5.0]) + np.interp(x, [0.5], [5.0], left=x[0])",
    "unlike kinds": "return [x[0], 1.0] if x[0] > 0 else np.array([x[1], 2]) if x[1] > 0 else (0, True)",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IDIOMS)
def test_what_people_write_is_written_down(name):
    """Filled arrays, floats, lists, ``if``: they were compiled by numba or asked in Python, some computed otherwise."""
    space = {"np": np, "math": math, "__name__": "idioms"}
    exec(f"def f(x):\n    {IDIOMS[name]}", space)
    expected, sound = values_of(space["f"], SAMPLES)
    assert sum(sound) >= 20
    found = traced(space["f"])(SAMPLES)
    np.testing.assert_allclose(found[sound], np.array([y for y, right in zip(expected, sound, strict=True) if right]))


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_a_curve_in_a_function_is_written_down(degree):
    """A law that plays a `BSpline` was asked in Python, 60 times slower, and had no exact derivatives."""
    curve = BSpline.clamped(rng.normal(size=(9, 2)), 3.0, degree=degree, t0=-1.0)
    witness = Scipys(curve.knots, curve.control_points, degree)

    def function(x):
        q, qd, qdd = curve.evaluate(x[0])
        return np.concatenate([q, qd, qdd, curve(x[1]), curve.rate(x[2])])

    found = traced(function)(SAMPLES)
    for x, y in zip(SAMPLES, found, strict=True):
        asked = zip(x[[0, 0, 0, 1, 2]], (0, 1, 2, 0, 1), strict=True)
        parts = [witness(np.clip(t, -1.0, 2.0), k) * (k == 0 or -1 <= t <= 2) for t, k in asked]
        np.testing.assert_allclose(y, np.concatenate(parts), rtol=0, atol=1e-10)


REFUSED = {
    "adds truths": lambda x: (x > 0.0) + (SAMPLES[0] > 0.0),
    "product of truths": lambda x: (x > 0.0) @ (SAMPLES[0] > 0.0),
    "difference of truths": lambda x: np.diff(x > 0.0),
    "float32": lambda x: x[0].astype(np.float32),
    "an array of float32": lambda x: x.astype(np.float32),
    "what becomes one of float32": lambda x: np.asarray(x, dtype=np.float32),
    "bytes": lambda x: x.astype(np.uint8),
    "bits": lambda x: np.invert(x.astype(int)),
    "roots": lambda x: np.roots(x),
    "half precision": lambda x: np.exp(x > 0.0),
    "too many ways": lambda x: sum(1.0 if x[0] > k else 2.0 if x[1] > k else 3.0 for k in range(4)),
    "no end": lambda x: next(k for k in range(1000) if k > x[0]),
    "unlike shapes": lambda x: x[:2] if x[0] > 0.0 else x,
    "text": lambda x: float(f"{x[0]:.3f}"),
    "how numbers are stored": lambda x: 1.0 if np.issubdtype(x.dtype, np.floating) else 2.0,
    "a type": lambda x: 1.0 if type(x[1]) is float else 2.0,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_down_is_refused(name):
    """Sums of truths were, and gave 2 for True + True."""
    with pytest.raises(SymbolicBranch):
        traced(REFUSED[name])


def ranged(t, q, qd):
    if abs(q[1]) > 0.25:
        raise ValueError(f"the elbow is beyond its range: {q[1]:.3f} rad, {q}")
    return 3.0


class Ranged:
    gain = 3.0

    def torque(self, t, q, qd):
        if q[1] > 0.25:
            self.fall(q)
        return self.gain

    def fall(self, q):
        raise ArithmeticError(f"it fell at {q[0]:.2f}")


def rooted(t, q, qd):
    return 3.0 * np.linalg.cholesky(np.diag([1.0, 0.25 - q[1]]))[0, 0]


def looked_up(t, q, qd):
    return np.array([3.0, 3.0, 3.0])[(12.0 * q[1]).astype(int)]


LAWS = {"raise": ranged, "assert": asserting, "in a method": Ranged(), "root": rooted, "place": looked_up}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_an_error_of_ones_own_ends_a_run_alike_in_both_engines(law):
    told = []
    for engine in ("interpreted", "compiled"):
        sim, bd = controlled(law, engine)
        out = sim.run(bd, T=1.0, solver="RK4", dt=0.01)
        assert sim.explain(bd).splitlines()[-1].split(maxsplit=1) == ["ctl", "output: traced"]
        told.append((out.status, out.message, out.t[-1]))
    assert told[0] == told[1] and told[0][0] == "failed" and 0.0 < told[0][2] < 0.5


@pytest.mark.slow
def test_what_must_not_fail_on_one_way_may_on_another():
    """A matrix that is singular on the way that is not taken ends no run."""

    def law(t, q, qd):
        if q[1] > -5.0:
            return -qd[1] - np.linalg.solve(np.diag([1.0, 2.0 + q[0] ** 2]), q)[1]
        return np.linalg.solve(np.zeros((2, 2)) * q[0], q)[1]

    ends = []
    for engine in ("interpreted", "compiled"):
        sim, bd = controlled(law, engine)
        ends.append(sim.run(bd, T=0.3, solver="RK4", dt=0.01, on_error="raise").x[-1])
    np.testing.assert_allclose(*ends, atol=1e-9)


ACTED = []
LOG = logging.getLogger("laws")


def logging_law(t, q, qd):
    if t > 0.5 or abs(q[0]) > 50.0:
        LOG.warning("it fell at %s", float(t))
    return -qd[1]


def telling_law(t, q, qd):
    LOG.warning(f"it fell at {t:.3f}")
    return -qd[1]


def starting_law(t, q, qd):
    if abs(q[0]) > 50.0:
        threading.Thread(target=ACTED.append, args=(1,)).start()
    return -qd[1]


def printing_law(t, q, qd):
    if abs(q[0]) > 50.0:
        print("it fell")
    return -qd[1]


def leaving_law(t, q, qd):
    if abs(q[0]) > 50.0:
        raise SystemExit("it fell")
    return -qd[1]


def interrupting_law(t, q, qd):
    if abs(q[0]) > 50.0:
        raise KeyboardInterrupt
    return -qd[1]


def importing_law(t, q, qd):
    if abs(q[0]) > 50.0:
        import logging as log

        log.getLogger("laws").warning("it fell")
    return -qd[1]


def counting_law(t, q, qd):
    if abs(q[0]) > 50.0:
        ACTED.append(t)
    return -qd[1]


@pytest.mark.parametrize(
    "law", [starting_law, printing_law, leaving_law, interrupting_law, importing_law, counting_law]
)
def test_nothing_is_done_on_a_way_that_no_run_takes(law, caplog, capsys):
    ends = []
    for engine in ("interpreted", "compiled"):
        sim, bd = controlled(law, engine)
        ends.append(sim.run(bd, T=0.3, solver="RK4", dt=0.01).x[-1])
    np.testing.assert_allclose(*ends, atol=1e-9)
    said = [text for text in [*caplog.messages, *capsys.readouterr()] if text.startswith("it fell")]
    assert said == [] == ACTED


@pytest.mark.parametrize(("law", "first"), [(logging_law, 0.5), (telling_law, 0.0)])
def test_what_is_done_in_a_run_is_done_each_time(law, first, caplog):
    caplog.set_level(logging.WARNING)
    sim, bd = controlled(law, "compiled")
    sim.run(bd, T=1.0, solver="RK4", dt=0.1)
    times = [float(text.split()[-1]) for text in caplog.messages if text.startswith("it fell")]
    assert len(times) >= 20 and min(times) >= first


def test_what_numpy_is_not_written_down_for_is_called_by_its_name():
    sim, bd = controlled(lambda t, q, qd: np.linalg.eigh(np.outer(q, q))[0][1], "compiled")
    assert "NumPy's eigh() cannot be written down with symbols" in sim.explain(bd)
