"""Branches of machine code: choices of which only the side that is taken is computed."""

from __future__ import annotations

import ctypes
import math
import random

import numpy as np
import pytest
from test_graph import evaluate

from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.graph.branching import literals, needs
from cstormpy.graph.choices import choose, pick
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import INPUT, alive, require_zero, where
from cstormpy.graph.routine import Routine


def computed(text, x, count):
    """Return the status and what the code fills for each row of x."""
    machine = Machine(text)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(machine.address("b_one"))
    y = np.full((len(x), count), np.nan)
    return [function(row.ctypes.data, out.ctypes.data) for row, out in zip(x, y, strict=True)], y


def evaluated(nodes, outputs, row):
    """Return the outputs by the primitives' own values, one node after the other."""
    known = {}
    for node in nodes:
        values = [known[a.index] if hasattr(a, "index") and not isinstance(a, float) else a for a in node.args]
        known[node.index] = row[node.data[1]] if node.primitive is INPUT else node.primitive.value(*values)
    return [known[x.index] if hasattr(x, "index") else x for x in outputs]


def long(x, k, steps=30):
    """Return something that takes many operations."""
    for i in range(steps):
        x = x * (0.9 + 0.01 * k) + np.sin(x) * 0.1 * (i % 3)
    return x


def test_of_several_laws_only_one_is_computed():
    """Each of five has its branch, and none of its operations stands outside of it."""
    graph = Graph()
    k, x, y = graph.inputs("x", 3)
    found = choose(k, [lambda x, j=j: long(x, j) for j in range(5)], x) + y
    text = text_for_one(Routine("b", {}, {"x": 3}, {"y": [found]}))
    assert text.count("br i1") >= 4 + 1  # and that of sincos
    rows = np.array([[j, a, 0.5] for j in (0, 1, 2, 3, 4, 7) for a in (-1.0, 0.3)])
    _, values = computed(text, rows, 1)
    expected = [long(np.float64(a), min(int(j), 4)) + 0.5 for j, a, _ in rows]
    np.testing.assert_allclose(values[:, 0], expected, rtol=1e-13)


def test_what_both_sides_need_stands_before_the_branch():
    graph = Graph()
    k, x = graph.inputs("x", 2)
    shared = np.exp(x)
    c = k > 0.0
    found = where(c, long(shared, 1), long(shared, 2))
    mine = literals(alive([found]), [found])
    assert mine[shared.index] == frozenset() and mine[c.index] == frozenset()
    assert mine[found.args[1].index] == {(c.index, True)} and mine[found.args[2].index] == {(c.index, False)}


def total(x, k, steps=60):
    """Return something that takes many operations, each of which is soon done."""
    for i in range(steps):
        x = x * (0.9 + 0.01 * k) + 0.1 * i
    return x


def test_what_some_of_several_laws_need_is_computed_in_their_branches_only():
    """Each of the two computes it; what all need, the last too, for which no condition holds, stands before them."""
    graph = Graph()
    k, x, y = graph.inputs("x", 3)
    some, every = total(x, 3), total(y, 4)
    laws = [lambda: total(some, 1), lambda: total(some, 2) + every, lambda: total(x, 5), lambda: x - y]
    found = choose(k, [lambda law=law: law() * every for law in laws])
    nodes = alive([found])
    mine = needs(nodes, [found])
    is_first, is_second, _ = (node.index for node in nodes if node.primitive.name == "equal")
    assert mine[every.index] == {frozenset()}
    first, second = sorted(mine[some.index], key=lambda each: (is_first, True) not in each)
    assert {(is_first, True), (is_second, False)} <= first and {(is_first, False), (is_second, True)} <= second
    rows = np.array([[j, 0.3, -0.2] for j in (0, 1, 2, 3, 5)])
    _, values = computed(text_for_one(Routine("b", {}, {"x": 3}, {"y": [found]})), rows, 1)
    assert values[:, 0] == pytest.approx([evaluated(nodes, [found], row.tolist())[0] for row in rows], rel=1e-13)


def test_a_number_that_equals_one_equals_no_other():
    """What is needed for one law is not needed for another, whichever of them is asked first."""
    graph = Graph()
    k, x = graph.inputs("x", 2)
    once, again = k == 0.0, k == 1.0
    found = where(once, total(x, 1), 0.0) + where(again, total(x, 2), 0.0)
    mine = needs(alive([found]), [found])
    for node in found.args:
        assert mine[node.index] == {frozenset()}
    sides = {
        frozenset(((once.index, True), (again.index, False))),
        frozenset(((again.index, True), (once.index, False))),
    }
    assert {each for node in found.args for each in mine[node.args[1].index]} == sides


@pytest.mark.parametrize("seed", range(40))
def test_random_expressions_are_the_same_with_branches(seed, monkeypatch):
    """Choices within choices, sides that wait for other choices, of few operations and of many; and derivatives."""
    monkeypatch.setattr("cstormpy.graph.branching.WORTH", 1 + 15 * (seed % 3))
    rng = random.Random(seed)
    graph = Graph()
    known = list(graph.inputs("x", 4))
    law = known[3] if seed % 2 else None  # a whole number
    conditions = [known[0] > 0.0, known[1] > known[2], *([] if law is None else [law == k for k in (0.0, 1.0, 2.0)])]
    for _ in range(120):
        a, b = rng.choice(known[-20:]), rng.choice(known)
        kind = rng.randrange(6)
        if kind == 0:
            known.append(where(rng.choice(conditions), a, b))
        elif kind == 1:
            conditions.append(a > b)
        elif kind == 2:
            known.append(np.sin(a) + b)
        elif kind == 3:
            known.append(where(rng.choice(conditions), np.cos(a), np.tanh(b) * a))
        else:
            known.append(0.5 * a - 0.7 * b * rng.random())
        known = [x for x in known if hasattr(x, "index")]
        conditions = [x for x in conditions if hasattr(x, "index")]
    outputs = known[-3:]
    outputs += [x for x in tangents(outputs, {x: 1.0 for x in graph.inputs("x", 4)}) if hasattr(x, "index")]
    text = text_for_one(Routine("b", {}, {"x": 4}, {"y": outputs}))
    rows = np.random.default_rng(seed).normal(size=(30, 4))
    if law is not None:
        rows[:, 3] = np.arange(30) % 4
    nodes = alive(outputs)
    _, found = computed(text, rows, len(outputs))
    for row, values in zip(rows, found, strict=True):
        expected = np.array(evaluated(nodes, outputs, row.tolist()))
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())


def test_what_is_required_on_one_side_is_required_there_only():
    """A law that is not active may well have nothing to say."""
    graph = Graph()
    k, x = graph.inputs("x", 2)

    def careful(x):
        require_zero(x < 0.0)
        return np.sqrt(x)

    found = choose(k, [careful, lambda x: -x], x)
    text = text_for_one(Routine("b", {}, {"x": 2}, {"y": [found]}, graph.status))
    states, values = computed(text, np.array([[0, 4.0], [0, -4.0], [1, -4.0]]), 1)
    assert states == [0, 1, 0] and values[0, 0] == 2.0 and values[2, 0] == 4.0


def test_a_singular_matrix_is_a_status():
    """Where NumPy raises an error, what is written down of it fails."""
    graph = Graph()
    x, y = graph.inputs("x", 2)
    found = np.linalg.solve(symbols([[x, 2.0], [y, 4.0]]), np.array([1.0, 1.0]))
    text = text_for_one(Routine("b", {}, {"x": 2}, {"y": list(found)}, graph.status))
    states, values = computed(text, np.array([[1.0, 3.0], [1.0, 2.0], [0.0, 1.0]]), 2)
    assert states == [0, 1, 0]
    np.testing.assert_allclose(values[[0, 2]], [np.linalg.solve([[1, 2], [3, 4]], [1, 1]), [-1.0, 0.5]], rtol=1e-14)


def test_a_known_number_chooses_at_once():
    asked = []
    assert choose(1, [lambda: asked.append("first"), lambda: 5.0]) == 5.0 and not asked
    assert pick(1, ["a", "b"]) == "b"


@pytest.mark.parametrize("divisor", [0.0, -0.0, math.nan, 3.0, -9.0])
def test_a_whole_quotient_is_written_down_without_a_branch(divisor):
    """Whether a divisor is NaN was asked of one that is a symbol."""
    a, b = Graph().inputs("x", 2)
    for x in (7.0, -7.0, 0.5):
        with np.errstate(all="ignore"):
            expected = np.floor_divide(x, divisor)
            found = [evaluate(y, [a, b], [x, divisor]) for y in (a // b, a // divisor, x // b)]
        np.testing.assert_array_equal(found, 3 * [expected])
        assert math.isnan(expected) or np.signbit(found).tolist() == 3 * [np.signbit(expected)]
