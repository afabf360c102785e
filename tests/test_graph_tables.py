"""Tables of the expression graph: looked up and searched by numbers that are known only while the code runs."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from cstormpy.errors import InvalidType
from cstormpy.graph import Graph, SymbolicBranch
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import gradient, tangents
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one, text_for_rows
from cstormpy.graph.nodes import short
from cstormpy.graph.routine import Routine
from cstormpy.graph.tables import Table, rows_from


def values_of(outputs, shared, x):
    """Return what machine code finds for samples x (N, k), by its code for one sample and by that for rows."""
    sizes = {name: len(array) for name, array in shared.items()}
    routine = Routine("t", sizes, {"x": x.shape[1]}, {"y": outputs})
    y = np.zeros((2, len(x), len(outputs)))
    given = [ctypes.c_void_p(a.ctypes.data) for a in shared.values()]
    one, rows = Machine(text_for_one(routine)), Machine(text_for_rows(routine))
    kind = [ctypes.c_void_p] * (len(given) + 2)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kind)(one.address("t_one"))
    for k in range(len(x)):
        assert function(*given, x[k].ctypes.data, y[0, k].ctypes.data) == 0
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kind, ctypes.c_int64, ctypes.c_int64)(rows.address("t_rows"))
    assert function(*given, x.ctypes.data, y[1].ctypes.data, 0, len(x)) == -1
    np.testing.assert_array_equal(y[0], y[1])
    return y[0]


def interpolated(times, rows, t):
    """Plain NumPy that serves floats and symbols alike: between the rows of a table."""
    k = (np.clip(np.searchsorted(times, t, "right") - 1.0, 0.0, len(times) - 2.0)).astype(int)
    share = np.clip((t - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0)
    return rows[k] + share * (rows[k + 1] - rows[k])


@pytest.fixture
def line():
    rng = np.random.default_rng(0)
    times, rows = np.sort(rng.uniform(0.0, 9.0, 12)), rng.normal(size=(12, 3))
    p = np.concatenate([[7.0], times, rows.ravel()])
    graph = Graph()
    tables = (
        Table(lambda k: graph.input("p", 1 + k), (12,)),
        Table(lambda k: graph.input("p", 13 + k), (12, 3)),
    )
    return graph, tables, times, rows, p


def test_a_table_is_looked_up_as_numpy_does(line):
    """Beyond the ends, at the samples themselves, in between; NaN stays NaN and reads nothing beyond the table."""
    graph, tables, times, rows, p = line
    outputs = list(interpolated(*tables, graph.input("x")))
    x = np.concatenate([np.linspace(-2.0, 11.0, 53), times, [math.inf, -math.inf, math.nan]])[:, None]
    found = values_of(outputs, {"p": p}, x)
    expected = np.array([interpolated(times, rows, np.float64(t)) for t in x[:-1, 0]])
    np.testing.assert_allclose(found[:-1], expected, rtol=1e-15, atol=1e-15)
    assert np.isnan(found[-1]).all()


@pytest.mark.slow
def test_what_is_looked_up_has_the_derivatives_of_differences(line):
    """To the time, and to each number of the table: along a direction and of a weighted sum."""
    graph, tables, times, _, p = line
    t = graph.input("x")
    outputs = list(interpolated(*tables, t))
    inputs = [graph.input("p", k) for k in range(len(p))]
    by_table = tangents(outputs, {t: 1.0} | {table.node: Table(
        lambda k, first=first: graph.input("dp", first + k), table.shape).node
        for table, first in zip(tables, (1, 13), strict=True)})  # fmt: skip
    by_number = tangents(outputs, {t: 1.0} | {x: graph.input("dp", k) for k, x in enumerate(inputs)})
    weights = [0.3, -1.0, 2.0]
    back = gradient(outputs, weights, [t, *inputs])
    rng = np.random.default_rng(1)
    for x in (0.5 * (times[3] + times[4]), 0.3 * times[7] + 0.7 * times[8]):
        dp = rng.normal(size=p.size)

        def value(s, x=x, dp=dp):
            moved = p + s * dp
            return interpolated(moved[1:13], moved[13:].reshape(12, 3), np.float64(x + s))

        h = 1e-4
        expected = (value(-2 * h) - 8 * value(-h) + 8 * value(h) - value(2 * h)) / (12 * h)
        given = np.full((8, 1), x)
        for rates in (by_table, by_number):
            np.testing.assert_allclose(values_of(rates, {"p": p, "dp": dp}, given)[0], expected, rtol=1e-8)
        found = values_of(back, {"p": p}, given)[0]
        assert found[0] + found[1:] @ dp == pytest.approx(np.dot(weights, expected), rel=1e-8)


def test_arrays_of_parameters_are_looked_up_too():
    graph = Graph()
    array, k = symbols(graph.inputs("p", 6)).reshape(3, 2), graph.input("x")
    assert [short(x) for x in Table.of(array)[k]] == ["p[0:6][2.0*x[0]]", "p[0:6][2.0*x[0] + 1.0]"]
    assert rows_from(array, k, 2).shape == (2, 2) and short(rows_from(array, k, 2)[0, 0]) == "p[0:6][2.0*x[0]]"
    with pytest.raises(SymbolicBranch, match="stand in one array"):
        Table.of(array[::-1])


def test_a_table_computes_as_an_array_where_no_index_is_looked_up():
    graph = Graph()
    table = Table(lambda k: graph.input("p", k), (20, 20))
    product = table @ np.eye(20)[1]
    assert product.shape == (20,) and short(product[3]) == "p[61]"
    assert short(table[2, 3]) == "p[43]" and table[1:3].shape == (2, 20)
    assert short((1.0 - table)[0, 0]) == "1.0 - p[0]"


def test_a_table_of_samples_side_by_side_is_refused():
    graph = Graph()
    table = Table(lambda k: graph.input("x", k), (4,))
    with pytest.raises(InvalidType, match="all samples share"):
        text_for_rows(Routine("t", {}, {"x": 5}, {"y": [table[graph.input("x", 4)]]}))
