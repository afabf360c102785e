"""Columns of one sample's sensitivities side by side in tiles: in straight lines, and in the kernels with loops."""

import numpy as np
import pytest
from closeness import assert_close, complex_step
from random_mechanisms import random_inertia, random_state

import cstormpy as cs
from cstormpy.dynamics import lines, tracing
from cstormpy.dynamics.tracing import Signature
from cstormpy.formulations import kim_joints
from cstormpy.graph import Graph
from cstormpy.graph.calls import caller
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import where
from cstormpy.graph.routine import Routine
from cstormpy.graph.tiles import LANES, lane, tile
from cstormpy.linkage.tables import tables_of


def answered(routine, x, count):
    """Return what a routine of an array x fills, and its status."""
    shapes = {"x": (len(x),), "y": (count,)}
    y = np.full(count, np.nan)
    status = caller(Machine(text_for_one(routine, shapes)), "f", [], list(shapes.values()))(x, y)
    return y, status


def test_numbers_of_tiles_are_those_of_numpy():
    """A number among tiles counts for all lanes; what stands side by side is stored so, whole, in part and alone."""
    graph = Graph()
    x = graph.inputs("x", 20)
    a, b = tile(graph, x[:8]), tile(graph, [*x[8:12], 2.0, *x[13:16]])
    found = [lane(x[16] * a - b / x[17], k) for k in range(LANES)]
    other = [lane(-(a + 3.0 * b), k) for k in range(LANES)]
    outputs = [*found, *other[2:7], other[0], x[18] + found[3], 7.0, 5.0, *other[5:7]]
    numbers = np.random.default_rng(0).normal(size=20)
    y, status = answered(Routine("f", {}, {"x": 20}, {"y": outputs}), numbers, len(outputs))
    assert status == 0
    second = numbers[8:16].copy()
    second[4] = 2.0
    one = numbers[16] * numbers[:8] - second / numbers[17]
    two = -(numbers[:8] + 3.0 * second)
    expected = [*one, *two[2:7], two[0], numbers[18] + one[3], 7.0, 5.0, *two[5:7]]
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-14)


def test_a_tile_that_is_zero_costs_nothing():
    """Joints that do not touch one another: neither products nor sums of their columns' zeros are written down."""
    graph = Graph()
    zero, x = tile(graph, [0.0] * LANES), tile(graph, graph.inputs("x", LANES))
    assert zero == 0.0 and x - graph.input("x", 9) * zero is x
    assert tile(graph, [lane(x, k) for k in range(LANES)]) is x


@pytest.mark.parametrize("number", [2.0, -2.0])
def test_tiles_cross_the_branches_of_a_long_choice(number):
    """A tile that one side of a choice computes first, and that is wanted behind it too, waits as a vector."""
    graph = Graph()
    x = graph.inputs("x", 9)
    a = tile(graph, x[:8])
    for k in range(30):
        a = a * x[k % 3] + float(k)
    one, other = lane(a, 1), lane(a * a, 2)
    for k in range(60):
        one, other = one * 0.5 + x[k % 8], other * 0.25 - x[k % 7]
    outputs = [where(x[8] > 0.0, one, other), lane(a, 7)]
    numbers = np.array([0.5, -0.25, 0.75, 1.0, 2.0, 3.0, 4.0, 5.0, number])
    expected = numbers[:8].copy()
    for k in range(30):
        expected = expected * numbers[k % 3] + k
    one, other = expected[1], expected[2] ** 2
    for k in range(60):
        one, other = one * 0.5 + numbers[k % 8], other * 0.25 - numbers[k % 7]
    y, status = answered(Routine("f", {}, {"x": 9}, {"y": outputs}), numbers, 2)
    assert status == 0
    np.testing.assert_allclose(y, [one if number > 0 else other, expected[7]], rtol=1e-13)


def robot(active):
    """Return a body on a ball that carries a hinge, which carries a slide."""
    rng = np.random.default_rng(4)
    links, parent = [], None
    for name, joint in {"hull": cs.Spherical(), "arm": cs.Revolute((1, 2, 3)), "rod": cs.Prismatic((0, 1, 1))}.items():
        com, inertia = rng.normal(size=3) * 0.3, random_inertia(rng)
        links.append(cs.Link(name, parent, joint, mass=1.5, com=com, inertia=inertia))
        parent = name
    return cs.Mechanism(links, (1.0, -2.0, -9.0), active=active)


@pytest.mark.parametrize("active", [(), ("hull",), ("rod",)], ids=lambda names: "+".join(names) or "none")
def test_a_line_with_tiles_has_the_derivatives_of_the_witness(active):
    """All columns, of passive and active balls too, by complex step through Kim's tables; no tile is zero by chance."""
    mech = robot(active)
    tables, signature = tables_of(mech), Signature(sensitivities=True)
    line = lines.Line(tables, signature)
    routine = tracing.hybrid_routine(tables.T, tables.N, signature, tiles=True)
    assert any(node.primitive.name == "tile" for node in routine.nodes)
    call = caller(Machine(text_for_one(routine, line.shapes)), line.name, [tables.T], list(line.shapes.values()))
    given = random_state(np.random.default_rng(1), mech)
    y, columns = np.empty(mech.n), np.empty((3, mech.n, mech.n))
    assert call(*given, y, columns) == 0
    assert_close(y, kim_joints.hybrid_dynamics(mech, *given), 1e-11)
    for k in range(3):

        def answer(x, k=k):
            return kim_joints.hybrid_dynamics(mech, *given[:k], x, *given[k + 1 :])

        assert_close(columns[k], complex_step(answer, given[k]), 1e-10)


def test_lines_of_many_joints_have_tiles_and_others_not():
    """Where columns fill few tiles they would only wait for one another."""
    few = cs.library.puma560()
    many = cs.library.tree(4, links=lines.TILED)
    for mech, expected in ((few, False), (many, True)):
        line = lines.line_for(tables_of(mech), Signature(sensitivities=True))
        for kind, asked in (("one", expected), ("rows", False)):
            assert any(node.primitive.name == "tile" for node in line._traced(kind).nodes) is asked
