"""What is written in C computes what the machine code does, for every primitive and for a diagram."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest
from test_graph import SPECIAL, machine_values, same

import cstormpy as cs
from cstormpy.graph import Graph
from cstormpy.graph import primitives as p
from cstormpy.graph.look_ups import count_not_above, entry
from cstormpy.graph.nodes import where
from cstormpy.graph.printing import c_source
from cstormpy.graph.routine import Routine
from cstormpy.graph.tables import Table
from cstormpy.simulation.compiled.translation import program_of
from cstormpy.simulation.diagram import Diagram

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(text, name, arguments, folder):
    """Return a function of C, whose argument t is a number and all others are arrays."""
    (folder / f"{name}.c").write_text(text)
    command = [COMPILER, "-std=c99", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable"]
    command += [
        "-O1",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-o",
        str(folder / f"{name}.so"),
        str(folder / f"{name}.c"),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    function = getattr(ctypes.CDLL(str(folder / f"{name}.so")), name)
    function.argtypes = [ctypes.c_double if a == "t" else ctypes.c_void_p for a in arguments]
    return lambda *given: function(*(g if isinstance(g, float) else g.ctypes.data for g in given))


@needs_compiler
def test_primitives_are_in_c_what_they_are_in_machine_code(tmp_path):
    graph = Graph()
    a, b = graph.inputs("x", 2)
    plain = [f for f in p.TABLE.values() if not f.truth and f.name != "select"]
    out = [p.apply(f, *(a, b)[: f.arity]) for f in plain]
    truths = [a > b, a >= b, (a > b) & (b > 0.0), (a > b) | (b > 0.0), ~(a > b), p.apply(p.EQUAL, a, b)]
    out += [where(truth, a, 2.0 * b) for truth in truths]
    routine = Routine("all_of_them", {}, {"x": 2}, {"y": out})
    function = compiled(c_source({"all_of_them": routine}, ("x", "y")), "all_of_them", ("x", "y"), tmp_path)
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL), *np.random.default_rng(1).normal(size=(40, 2))])
    _, (expected,) = machine_values(routine, pairs)
    for row, want in zip(pairs, expected, strict=True):
        y = np.zeros(len(out))
        assert function(np.ascontiguousarray(row), y) == 0
        assert same(y, want).all(), [(f.name, *row) for f, fine in zip(plain, same(y, want), strict=False) if not fine]


@needs_compiler
def test_tables_are_looked_up_in_c_as_in_machine_code(tmp_path):
    """Of numbers in an array, known ones, and such that are computed; at each entry, beyond the ends, and at NaN."""
    graph = Graph()
    inputs = graph.inputs("x", 14)
    x, table = inputs[0], [-3.0, -1.5, 0.0, 0.25, 0.25, 1.0, 2.0, 5.0, 8.0, 9.0, 11.0, 20.0]
    read = list(inputs[1:13])
    mixed = [read[0], 0.5 * (read[0] + read[3]), read[4], 21.0]
    out = []
    for entries in (read, table, mixed):
        out += [
            count_not_above(x, entries),
            count_not_above(x, entries, strictly=True),
            entry(p.apply(p.FLOOR, x), entries),
        ]
    routine = Routine("looked", {}, {"x": 14}, {"y": out})
    text = c_source({"looked": routine}, ("x", "y"))
    assert text.count("static const double table") == 1  # the known one, said once
    function = compiled(text, "looked", ("x", "y"), tmp_path)
    at = [*table, *(v + 1e-9 for v in table), -1e300, 1e300, -13.0, -2.0, 3.7, np.inf, -np.inf, np.nan]
    rows = np.array([[v, *table, 0.0] for v in at])
    _, (expected,) = machine_values(routine, rows)
    for row, want in zip(rows, expected, strict=True):
        y = np.zeros(len(out))
        assert function(np.ascontiguousarray(row), y) == 0
        np.testing.assert_array_equal(y, want)
    assert len(np.unique(expected[:, 0])) > 8
    stored = Table(lambda k: graph.input("x", 1 + k), (12,))
    routine = Routine("stored", {}, {"x": 14}, {"y": [stored.searchsorted(x, "right"), stored[x]]})
    function = compiled(c_source({"stored": routine}, ("x", "y")), "stored", ("x", "y"), tmp_path)
    for row in rows:
        y, at = np.zeros(2), np.nan_to_num(row[0], nan=-1e308)
        assert function(np.ascontiguousarray(row), y) == 0
        wanted = np.searchsorted(table, at, "right"), table[int(np.clip(at, 0.0, 11.0))]
        np.testing.assert_array_equal(y, wanted)


def acrobot():
    sim = cs.Simulation(graphics=False, progress=False, live=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, 0.5], name="plant")
    controller = bd.CONTROLLER("acrobot", "pd", name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return sim, bd


@needs_compiler
def test_a_diagram_is_in_c_what_it_is_in_the_engine(tmp_path):
    sim, bd = acrobot()
    text = sim.source(bd, language="c")
    assert "// " in text and "controller" in text
    diagram = Diagram(bd)
    x = np.array([0.3, 0.5, -0.2, 1.0])
    diagram.evaluate(0.0, x)
    program = program_of(diagram)
    names = ("t", "x", "z", "p", "n", "w", "out", "xd")
    function = compiled(text, "rate", names, tmp_path)
    z, w = np.zeros(program.sampled_size), np.zeros(program.scratch)
    results = []
    for rate in (function, program.function()):
        out, xd = np.zeros(program.width), np.zeros(4)
        assert rate(0.0, x, z, program.p, program.n, w, out, xd) == 0
        results.append(np.concatenate([out, xd]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-12)
    assert abs(results[0][-2:]).max() > 0.1


def test_what_is_not_written_in_c_is_said():
    sim = cs.Simulation(graphics=False, progress=False, live=False)
    bd = sim.blockdiagram()
    bd.connect(bd.TIME(), bd.FUNCTION(lambda t: hash(str(t)) % 7, name="odd"))
    with pytest.raises(cs.InvalidValue, match=r"source in C: .* is a call"):
        sim.source(bd, language="c")
    with pytest.raises(cs.InvalidValue, match="language"):
        sim.source(bd, language="fortran")
