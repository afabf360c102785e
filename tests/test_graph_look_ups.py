"""Look-ups in tables and linear algebra of symbols: as NumPy on floats, with derivatives as differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closeness import central_difference
from test_graph import machine_values

from cstormpy.graph import Graph, SymbolicBranch
from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.derivatives import gradient, tangents
from cstormpy.graph.emission import LANES
from cstormpy.graph.routine import Routine

KNOTS = np.array([-1.0, -0.2, 0.1, 0.1, 0.9, 1.4, 2.0, 2.2, 3.0, 3.3, 4.0])


def outputs_of(function, size, samples):
    """Return what a function of symbols gives for samples, by the code for rows and that for one.

    Beside its values these are its change along a direction, and the gradient of a weighted sum.
    """
    graph = Graph()
    x = graph.inputs("x", size)
    y = list(np.ravel(np.asarray(symbols(function(symbols(x))))))
    direction, weights = weights_of(size), weights_of(len(y))
    forward = tangents(y, dict(zip(x, direction, strict=True)))
    backward = gradient(y, weights, x)
    enough = np.concatenate([samples, np.repeat(samples[-1:], LANES, axis=0)])
    routine = Routine("f", {}, {"x": size}, {"y": y, "forward": forward, "backward": backward})
    return [[array[: len(samples)] for array in filled] for filled in machine_values(routine, enough)]


def weights_of(count):
    return np.random.default_rng(count).normal(size=count)


def check(function, size, samples, tolerance=1e-12, h=1e-4, slack=1e-6):
    """Compare a function of symbols with the same one on floats, and both derivatives with differences."""
    for values, forward, backward in outputs_of(function, size, samples):
        for k, sample in enumerate(samples):
            expected = np.ravel(function(sample))
            np.testing.assert_allclose(values[k], expected, rtol=tolerance, atol=tolerance)
            slope = central_difference(lambda v: np.ravel(function(v)), sample, h)
            np.testing.assert_allclose(forward[k], slope @ weights_of(size), rtol=slack, atol=slack)
            np.testing.assert_allclose(backward[k], weights_of(len(expected)) @ slope, rtol=slack, atol=slack)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("count", [1, 3, 8, 9, 11])
def test_the_place_in_a_table_is_that_of_searchsorted(side, count):
    """Few entries are counted, many bisected; of constants, of parameters, of what is computed."""
    table = KNOTS[:count]
    xs = np.concatenate([KNOTS, KNOTS + 0.05, [-9.0, 9.0]])
    samples = np.column_stack([xs, *[np.full(len(xs), v) for v in table]])
    for given in (lambda x: table, lambda x: x[1:], lambda x: [*(2.0 * x[1:])]):
        expected = [np.searchsorted(given(s), s[0], side) for s in samples]
        for values, *rates in outputs_of(
            lambda x, given=given: np.searchsorted(given(x), x[0], side), 1 + count, samples
        ):
            np.testing.assert_array_equal(values[:, 0], expected)
            np.testing.assert_array_equal(np.hstack(rates), 0.0)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_entry_at_a_place_is_that_of_the_array(count):
    places = np.arange(-count, count, dtype=float)
    values = np.random.default_rng(3).normal(size=(len(places), count))
    samples = np.column_stack([places, values])

    def taken(x):
        k = x[0] if x.dtype == object else round(x[0])
        return x[1:][k], 2.0 * (3.0 * x[1:])[k], np.take(x[1:] * np.ones((2, 1)), k, 1)[1]

    check(lambda x: np.array(taken(x)), 1 + count, samples)


@pytest.mark.parametrize("place", [9.0, -9.0, math.inf, -math.inf, math.nan])
def test_a_place_beyond_the_ends_reads_no_foreign_memory(place):
    samples = np.array([[place, 1.0, 2.0, 3.0]])
    for values, *_ in outputs_of(lambda x: x[1:][x[0]], 4, samples):
        assert set(values[:, 0]) == {3.0 if place > 0 else 1.0}


def test_a_mask_of_symbols_is_refused():
    x = symbols(Graph().inputs("x", 3))
    with pytest.raises(SymbolicBranch, match="mask"):
        x[x > 0.0]


def test_one_number_is_written_where_truths_hold():
    def saturated(x):
        y = 2.0 * x
        y[x > 0.5] = 7.0
        y[np.abs(x) < 0.1] = x[0]
        return y

    check(saturated, 4, np.random.default_rng(5).normal(size=(9, 4)))
    x = symbols(Graph().inputs("x", 3))
    with pytest.raises(SymbolicBranch, match=r"np\.where"):
        x[x > 0.0] = np.ones(2)


def test_interpolation_on_lines_is_numpys():
    at, values = np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, -1.0, 2.0, 0.5])
    samples = np.array([[t, *values] for t in (-1.0, 0.4, 1.7, 2.9, 3.5, 4.5, 0.2, 0.3, 0.6)])
    check(lambda x: np.interp(x[0], at, x[1:]), 5, samples)
    check(lambda x: np.interp(x[0], at, values, left=7.0, right=x[1]), 5, samples)


MATRICES = {
    "determinant of 2": (np.linalg.det, (2, 2)),
    "determinant of 4": (np.linalg.det, (4, 4)),
    "inverse": (np.linalg.inv, (3, 3)),
    **{f"root of {n}": (lambda a: np.linalg.cholesky(a @ a.T + np.eye(len(a))), (n, n)) for n in (1, 4)},
    "root that reads the lower half": (lambda a: np.linalg.cholesky(np.eye(3) * 9.0 + np.triu(a, 1)), (3, 3)),
    "logarithm of the determinant": (lambda a: np.array(np.linalg.slogdet(a)), (3, 3)),
    "logarithm by its name": (lambda a: np.linalg.slogdet(a).logabsdet * np.linalg.slogdet(a).sign, (3, 3)),
    "power": (lambda a: np.linalg.matrix_power(a, -3), (2, 2)),
    "condition": (np.linalg.cond, (3, 3)),
    "condition of a wide one": (np.linalg.cond, (2, 4)),
    "pseudo-inverse of a tall one": (np.linalg.pinv, (4, 2)),
    "pseudo-inverse of a wide one": (np.linalg.pinv, (2, 3)),
    "frobenius": (np.linalg.norm, (2, 3)),
    **{f"norm {o}": (lambda a, o=o: np.linalg.norm(a, o), (3, 2)) for o in ("fro", "nuc", 1, -1, 2, -2, math.inf)},
    **{f"vector norm {o}": (lambda a, o=o: np.linalg.norm(a, o), (4,)) for o in (1, 2, 3, 2.5, 0, math.inf, -math.inf)},
    **{f"norm along {k}": (lambda a, k=k: np.linalg.norm(a, 3, axis=k), (3, 2)) for k in (0, 1)},
}


#: What is as good as another one, and takes long to compile.
LONG = ("condition", "norm nuc", "norm -2", "pseudo-inverse of a tall one")


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in MATRICES])
def test_linear_algebra_is_numpys(name):
    function, shape = MATRICES[name]
    size = math.prod(shape)
    samples = np.random.default_rng(4).normal(size=(9, size))
    check(lambda x: function(x.reshape(shape)), size, samples, tolerance=1e-9, slack=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_singular_values_are_found_to_the_last_digits(size):
    """So many sweeps of rotations are enough also where the columns are all but parallel."""
    rng = np.random.default_rng(size)
    samples = rng.normal(size=(16, size * size))
    samples[8:] = (rng.normal(size=(8, 1, size)) + 1e-3 * samples[8:].reshape(8, size, size)).reshape(8, -1)
    graph = Graph()
    x = symbols(graph.inputs("x", size * size)).reshape(size, size)
    routine = Routine("f", {}, {"x": size * size}, {"y": [np.linalg.norm(x, 2), np.linalg.norm(x, "nuc")]})
    for (values,) in machine_values(routine, samples):
        for found, sample in zip(values, samples.reshape(-1, size, size), strict=True):
            expected = np.linalg.norm(sample, 2), np.linalg.norm(sample, "nuc")
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_singular_matrix_has_the_determinant_zero():
    for n in (2, 3, 4, 5, 6):
        samples = np.ones((1, n * n))
        for values, *_ in outputs_of(lambda x, n=n: np.linalg.det(x.reshape(n, n)), n * n, samples):
            np.testing.assert_array_equal(values, 0.0)


@pytest.mark.parametrize(("size", "place"), [(4, 0), (4, 3), (5, 0), (5, 2), (6, 0), (6, 3), (6, 5)])
def test_a_determinant_changes_where_a_matrix_is_singular(size, place):
    """Its slope was 0 wherever elimination met a pivot of 0."""

    def determinant(x):
        a = symbols(np.eye(size)) if isinstance(x, Symbols) else np.eye(size)
        a[place, place], a[0, 1] = x[0], x[1]
        return np.linalg.det(a)

    check(determinant, 2, np.array([[0.0, 0.5], [1.0, 2.0]]), slack=1e-5)
