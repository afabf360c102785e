"""Numbers and lanes: each primitive, in a small kernel of its own, against NumPy; and the sine and cosine."""

import math
from types import SimpleNamespace

import mpmath
import numba
import numpy as np
import pytest

from cstormpy.kernels import lanes, vector
from cstormpy.kernels.compiling import _OPTIONS, ready
from cstormpy.kernels.lanes import all_greater, load, store, tanh, where_positive, width, zero_lanes
from cstormpy.kernels.layout import LANES

JIT = not numba.config.DISABLE_JIT
compiled_only = pytest.mark.skipif(not JIT, reason="there is one lane where the JIT is off")
kernel = numba.njit(**_OPTIONS)
sincos = ready(vector.sincos)

#: Largest error of sine and cosine up to 1e6: measured 1.87e-16; one unit in the last place of 1 is 2.2e-16.
SINCOS_ERROR = 2.0**-52
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan]


def plain(function):
    """Return the Python behind a compiled piece, which is what runs where the JIT is off."""
    return getattr(function, "py_func", function)


class Called:
    """The steps of a module as functions that Python can call, each in a kernel of its own."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        step = ready(getattr(self._module, name))
        return kernel(lambda *arguments: step(*arguments))


called = Called(vector)


def pairs(seed=0, count=64):
    """Return two arrays of numbers, all pairs of special ones first."""
    rng = np.random.default_rng(seed)
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    pad = -(a.size + count) % LANES + count
    return np.concatenate([a, rng.normal(size=pad)]), np.concatenate([b, rng.normal(size=pad)])


# Arithmetic and choices -----------------------------------------------------------------------------


def arithmetic(A, B, scalar, out, like):
    for i in range(A.size // width(like)):
        a, b = load(A, i, like), load(B, i, like)
        store(out[0], i, a + b)
        store(out[1], i, a - b)
        store(out[2], i, a * b)
        store(out[3], i, a / b)
        store(out[4], i, -a)
        store(out[5], i, a + scalar)
        store(out[6], i, scalar - a)
        store(out[7], i, scalar * a)
        store(out[8], i, a / scalar)
        store(out[9], i, scalar / a)
        store(out[10], i, a + 1.0)
        store(out[11], i, like + 2.5)


def choices(A, B, scalar, out, like):
    for i in range(A.size // width(like)):
        a, b = load(A, i, like), load(B, i, like)
        store(out[0], i, where_positive(a, a, b))
        store(out[1], i, where_positive(a, scalar, b))
        store(out[2], i, where_positive(a, a, scalar))
        store(out[3], i, where_positive(a, 2.0, 0.0) + like)
        store(out[4], i, tanh(a))


def run(function, A, B, scalar, rows, side_by_side):
    """Run a kernel over all numbers, one at a time or side by side; return its rows."""
    out = np.full((rows, A.size), 7e77)
    compiled = _compiled(function)
    with np.errstate(all="ignore"):
        compiled(A, B, scalar, tuple(out), zero_lanes() if side_by_side and not JIT else 0.0, side_by_side)
    return out


_made = {}


def _compiled(function):
    if function not in _made:
        inner = kernel(function)

        @kernel
        def choose(A, B, scalar, out, like, side_by_side):
            if side_by_side:
                inner(A, B, scalar, out, zero_lanes())
            else:
                inner(A, B, scalar, out, like)

        _made[function] = choose
    return _made[function]


def expected_arithmetic(a, b, s):
    return [a + b, a - b, a * b, a / b, -a, a + s, s - a, s * a, a / s, s / a, a + 1.0, np.full_like(a, 2.5)]


def expected_choices(a, b, s):
    positive = a > 0
    tables = [(a, b), (s, b), (a, s), (2.0, 0.0)]
    return [np.where(positive, yes, no) for yes, no in tables] + [np.tanh(a)]


@pytest.mark.nojit
@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("scalar", [0.75, -3.0])
def test_arithmetic_is_that_of_numpy(side_by_side, scalar):
    a, b = pairs()
    with np.errstate(all="ignore"):
        expected = expected_arithmetic(a, b, scalar)
    found = run(arithmetic, a, b, scalar, len(expected), side_by_side)
    np.testing.assert_array_equal(found, expected)
    # the sign of a zero too: 1 / -0.0 decides what an infinity becomes
    np.testing.assert_array_equal(np.signbit(found[4]), np.signbit(-a))


@pytest.mark.nojit
@pytest.mark.parametrize("side_by_side", [False, True])
def test_choices_and_tanh_are_those_of_numpy(side_by_side):
    a, b = pairs(1)
    expected = expected_choices(a, b, 0.25)
    found = run(choices, a, b, 0.25, len(expected), side_by_side)
    np.testing.assert_array_equal(found[:4], expected[:4])
    np.testing.assert_allclose(found[4], expected[4], rtol=4e-16, atol=0)


@pytest.mark.nojit
def test_nan_is_not_positive_and_greater_than_nothing():
    nan = math.nan
    assert where_positive(nan, 1.0, 2.0) == 2.0
    assert not all_greater(nan, 1.0)
    assert not all_greater(1.0, nan)

    @kernel
    def compare(A, B, out):
        for i in range(A.size // width(zero_lanes())):
            out[i, 0] = all_greater(load(A, i, zero_lanes()), load(B, i, zero_lanes()))
            out[i, 1] = all_greater(load(A, i, zero_lanes()), 1.0)
            out[i, 2] = all_greater(1.0, load(A, i, zero_lanes()))
            out[i, 3] = all_greater(A[i], B[i])

    lane_count = LANES if JIT else 1
    cases = [np.full(lane_count, 2.0) for _ in range(4)]
    cases[1][-1] = nan
    cases[2][0] = 0.5
    cases[3][lane_count // 2] = 1.5
    A, B = np.concatenate(cases), np.full(4 * lane_count, 1.5)
    out = np.zeros((4, 4), dtype=bool)
    compare(A, B, out)
    groups = A.reshape(4, -1)
    np.testing.assert_array_equal(out[:, 0], (groups > 1.5).all(axis=1))
    np.testing.assert_array_equal(out[:, 1], (groups > 1.0).all(axis=1))
    np.testing.assert_array_equal(out[:, 2], (groups < 1.0).all(axis=1))
    np.testing.assert_array_equal(out[:, 3], A[:4] > 1.5)


# Memory ---------------------------------------------------------------------------------------------


@compiled_only
def test_number_i_stands_where_the_layout_says():
    @kernel
    def move(W, out):
        like = zero_lanes()
        for i in range(3):
            store(out, 2 - i, load(W, i, like))
        return width(like), width(0.0), lanes.tile_width()

    W = np.arange(3.0 * LANES + 5)
    out = np.full_like(W, -1)
    assert move(W, out) == (LANES, 1, LANES)
    np.testing.assert_array_equal(out[: 3 * LANES].reshape(3, LANES), W[: 3 * LANES].reshape(3, LANES)[::-1])
    np.testing.assert_array_equal(out[3 * LANES :], -1)


@compiled_only
def test_tiles_begin_anywhere():
    @kernel
    def shift(W, start, out):
        lanes.store_tile(out, 1, lanes.load_tile(W, start))

    W = np.arange(40.0)
    for start in range(40 - LANES + 1):
        out = np.zeros(LANES + 2)
        shift(W, start, out)
        np.testing.assert_array_equal(out, [0, *W[start : start + LANES], 0])


@compiled_only
def test_a_square_of_tiles_is_copied_with_rows_for_columns():
    @kernel
    def copy(W, start, out, to, pitch):
        lanes.transpose_tiles(W, start, out, to, pitch)

    W = np.random.default_rng(0).normal(size=LANES * LANES + 3)
    out = np.zeros((LANES + 1, LANES + 2))
    copy(W, 3, out.reshape(-1), 1, LANES + 2)
    np.testing.assert_array_equal(out[:LANES, 1:-1], W[3:].reshape(LANES, LANES).T)
    np.testing.assert_array_equal(out[:, [0, -1]], 0.0)
    np.testing.assert_array_equal(out[-1], 0.0)


@compiled_only
def test_single_lanes_are_read_and_written():
    @kernel
    def swap(W, k, value, x):
        v = load(W, 0, zero_lanes())
        old = lanes.lane(v, k)
        store(W, 0, lanes.with_lane(v, k, value))
        return old, lanes.lane(x, k), lanes.with_lane(x, k, value)

    for k in range(LANES):
        W = np.arange(float(LANES))
        assert swap(W, k, -9.0, 0.5) == (k, 0.5, -9.0)
        expected = np.arange(float(LANES))
        expected[k] = -9.0
        np.testing.assert_array_equal(W, expected)


@compiled_only
def test_an_integer_literal_becomes_a_float():
    """A kernel's `0` in place of `0.0` made another type of the same name."""

    @kernel
    def mixed(W):
        x = load(W, 0, 0)
        store(W, 1, 3)
        return x, where_positive(1, 2, 3), all_greater(2, 1)

    W = np.array([0.5, 0.0])
    assert mixed(W) == (0.5, 2.0, True)
    assert W[1] == 3.0


# Tuples of numbers ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.nojit
def test_vectors_and_matrices_are_those_of_numpy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 3))
    A = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    S = rng.normal(size=(3, 3))
    S = S + S.T
    six = S[np.triu_indices(3)]
    columns = tuple(map(tuple, A.T))
    near = dict(rtol=0, atol=1e-15)
    np.testing.assert_allclose(called.cross(tuple(a), tuple(b)), np.cross(a, b), **near)
    np.testing.assert_allclose(called.dot(tuple(a), tuple(b)), a @ b, **near)
    np.testing.assert_allclose(called.add(tuple(a), tuple(b)), a + b, **near)
    np.testing.assert_allclose(called.sub(tuple(a), tuple(b)), a - b, **near)
    np.testing.assert_allclose(called.scale(1.5, tuple(a)), 1.5 * a, **near)
    np.testing.assert_allclose(called.add_scaled(tuple(a), 1.5, tuple(b)), a + 1.5 * b, **near)
    np.testing.assert_allclose(called.symmetric_times(tuple(six), tuple(a)), S @ a, **near)
    np.testing.assert_allclose(called.column_times(columns, *a), A @ a, **near)
    np.testing.assert_allclose(called.rotate(columns, np.array([9.0, *a]), 1), A @ a, **near)
    turned = called.rotated_inertia(columns, np.array([9.0, *six]), 1)
    np.testing.assert_allclose(turned, (A @ S @ A.T)[np.triu_indices(3)], rtol=0, atol=5e-15)


@pytest.mark.slow
@pytest.mark.nojit
def test_tuples_go_to_memory_and_come_back():
    W = np.zeros(30)
    called.store3(W, 1, (1.0, 2.0, 3.0))
    called.increase3(W, 1, (10.0, 20.0, 30.0))
    assert called.load3(W, 1, 0.0) == (11.0, 22.0, 33.0)
    called.store6(W, 10, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert called.load6(W, 10, 0.0) == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    columns = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    called.store_columns(W, 20, columns)
    assert called.load_columns(W, 20, 0.0) == columns
    np.testing.assert_array_equal(W[20:29].reshape(3, 3).T, columns)  # row by row
    assert W[[0, 4, 9, 16, 19, 29]].tolist() == [0.0] * 6


# Sine and cosine ------------------------------------------------------------------------------------


@kernel
def sincos_of_each(X, S, C):
    for i in range(X.size):
        S[i], C[i] = sincos(X[i])


@kernel
def sincos_side_by_side(X, S, C):
    like = zero_lanes()
    for i in range(X.size // width(like)):
        s, c = sincos(load(X, i, like))
        store(S, i, s)
        store(C, i, c)


def sincos_arrays(kernel_, X):
    found = SimpleNamespace(s=np.empty_like(X), c=np.empty_like(X))
    with np.errstate(over="ignore"):  # the square of a large angle, where the JIT is off
        kernel_(X, found.s, found.c)
    return found


def sincos_errors(X, found):
    """Return the errors of sines and cosines, from 60 digits."""
    with mpmath.workdps(60):
        s = [float(mpmath.sin(mpmath.mpf(x)) - mpmath.mpf(y)) for x, y in zip(X, found.s, strict=True)]
        c = [float(mpmath.cos(mpmath.mpf(x)) - mpmath.mpf(y)) for x, y in zip(X, found.c, strict=True)]
    return np.abs([s, c])


def hard_angles(limit):
    """Return multiples of pi/4 and their neighbours, where the reduction loses most or the quadrant changes."""
    k = np.unique(np.geomspace(1, limit / (math.pi / 4), 300).astype(int))
    x = k * (math.pi / 4)
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf), -x])
    x = x[np.abs(x) < limit]
    return x[: x.size // LANES * LANES]


@pytest.mark.nojit
@pytest.mark.parametrize("low, high", [(1e-20, 1e-3), (1e-3, 1.0), (1.0, 100.0), (100.0, 1e4), (1e4, 1e6)])
@pytest.mark.parametrize("kernel_", [sincos_of_each, sincos_side_by_side])
def test_sine_and_cosine_are_right_to_the_last_place_of_one(kernel_, low, high):
    rng = np.random.default_rng(int(high))
    X = np.exp(rng.uniform(math.log(low), math.log(high), 400)) * rng.choice([-1, 1], 400)
    X = np.concatenate([X, hard_angles(high)]) if high >= 1 else X
    found = sincos_arrays(kernel_, X)
    errors = sincos_errors(X, found)
    assert errors.max() <= SINCOS_ERROR
    if high < 0.1:  # a small sine is right in its own digits
        assert (errors[0] <= SINCOS_ERROR * np.abs(X)).all()


@pytest.mark.nojit
@pytest.mark.parametrize("kernel_", [sincos_of_each, sincos_side_by_side])
def test_large_angles_are_the_librarys(kernel_):
    rng = np.random.default_rng(7)
    X = np.concatenate([10.0 ** rng.uniform(7, 300, 192), [1.7976931348623157e308, 1e22, 2.0**1000, 1.0000001e6]])
    X = np.concatenate([X, -X])
    found = sincos_arrays(kernel_, X)
    assert sincos_errors(X, found).max() <= 2.0**-53  # correctly rounded, but for a hair


@pytest.mark.nojit
def test_the_border_of_the_polynomials_is_no_step():
    x = np.linspace(1e6 - 1e-9, 1e6 + 1e-9, LANES * 20)
    assert sincos_errors(x, sincos_arrays(sincos_of_each, x)).max() <= SINCOS_ERROR


@pytest.mark.nojit
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kernel_", [sincos_of_each, sincos_side_by_side])
def test_what_is_not_finite_spoils_its_own_lane_only(kernel_, bad):
    for k in range(LANES):
        X = np.linspace(-3.0, 3.0, LANES)
        X[k] = bad
        found = sincos_arrays(kernel_, X)
        expected = np.arange(LANES) == k
        np.testing.assert_array_equal(np.isnan(found.s), expected)
        np.testing.assert_array_equal(np.isnan(found.c), expected)
        np.testing.assert_allclose(found.s[~expected], np.sin(X[~expected]), rtol=0, atol=SINCOS_ERROR)


@pytest.mark.nojit
def test_signs_and_exact_values():
    sincos = called.sincos
    assert sincos(0.0) == (0.0, 1.0)
    s, _ = sincos(-0.0)
    assert s == 0.0
    for k in range(-9, 10):
        s, c = sincos(k * math.pi / 2)
        assert abs(s - round(math.sin(k * math.pi / 2))) < 1e-15
        assert abs(c - round(math.cos(k * math.pi / 2))) < 1e-15


# With and without the JIT -----------------------------------------------------------------------------


@compiled_only
def test_uncompiled_python_gives_the_same():
    X = np.concatenate([np.linspace(-40, 40, 301), [1e6, 1e6 + 1, 1e9, 1e300]])
    found = sincos_arrays(sincos_of_each, X)
    with np.errstate(all="ignore"):
        python = np.array([_uncompiled_sincos(float(x)) for x in X])
    np.testing.assert_allclose(found.s, python[:, 0], rtol=0, atol=SINCOS_ERROR)
    np.testing.assert_allclose(found.c, python[:, 1], rtol=0, atol=SINCOS_ERROR)
    a, b = pairs(5)
    for function, rows in ((arithmetic, 12), (choices, 5)):
        out = np.empty((rows, a.size))
        with np.errstate(all="ignore"):
            function(a, b, 0.75, out, 0.0)
        compiled = run(function, a, b, 0.75, rows, True)
        np.testing.assert_allclose(out, compiled, rtol=4e-16, atol=0)


def _uncompiled_sincos(x):
    return plain(sincos)(x)


@pytest.mark.nojit
def test_python_answers_for_one_float():
    assert (lanes.width(0.0), lanes.tile_width(), lanes.zero_lanes()) == (1, 1, 0.0)
    W = np.arange(4.0)
    lanes.store(W, 1, 8.0)
    lanes.store_tile(W, 2, 9.0)
    lanes.transpose_tiles(W, 2, W, 3, 1)
    assert (lanes.load(W, 1, 0.0), lanes.load_tile(W, 2), W[3]) == (8.0, 9.0, 9.0)
    assert (lanes.lane(3.0, 0), lanes.with_lane(3.0, 0, 4.0)) == (3.0, 4.0)
    assert lanes.exact_sincos(math.inf)[0] != lanes.exact_sincos(math.inf)[0]
    assert lanes.tanh(0.5) == math.tanh(0.5)
