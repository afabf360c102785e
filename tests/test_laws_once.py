"""Each law says its equations once: what is written down of its method is what the method gives, with its derivatives.

A law is called with symbols in place of time, state and its own numbers; machine code of that agrees with the law on
floats, for all its phases, and its derivatives with differences. No part of the engine knows a law by its name.
"""

from __future__ import annotations

import ast
import copy
import ctypes
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import cstormpy
import cstormpy.blocks.controllers
from cstormpy.control import (
    LQR,
    PD,
    TVLQR,
    ComputedTorque,
    GravityCompensation,
    HybridTracking,
    Law,
    Off,
    OpenLoop,
    OwnLaw,
    Then,
    law,
)
from cstormpy.control.blend import LawSet
from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import TABLE, alive
from cstormpy.graph.routine import Routine
from cstormpy.mechanism import library
from cstormpy.simulation.compiled.readings import Reading, Source
from cstormpy.simulation.compiled.twins import Twins, numbers_used, readers_of_numbers
from cstormpy.trajectory import BSpline

ACROBOT, ARM = library.acrobot(), library.planar_2r()
CURVE = BSpline.clamped(np.random.default_rng(5).normal(size=(9, 2)), duration=2.0, degree=4)
LONG = BSpline.clamped(np.random.default_rng(6).normal(size=(200, 2)), duration=2.0)


class Switching(Law):
    """A law of somebody's own with three phases, told apart by an `if`."""

    modes = ("low", "middle", "high")

    def __init__(self, mech):
        super().__init__(mech)
        self.kp, self.levels = 3.0, np.array([-1.0, 0.5, 2.0])

    def torque(self, t, q, qd, reference=None):
        if self.mode == 0:
            return np.array([-self.kp * q[1]])
        return np.array([np.sin(q[0]) * self.levels[self.mode] - qd[1]])

    def margin(self, t, q, qd):
        return None if self.mode == 2 else q[0] - self.levels[self.mode]

    def switch(self, t, q, qd):
        self.mode += 1


def along_a_motion():
    balance = LQR(ACROBOT)
    rest = (balance.goal, np.zeros(2), np.zeros(2))
    return TVLQR(ACROBOT, lambda t: rest, t0=0.2, t1=0.8, steps=40, final=balance, limit=20.0)


def two_laws():
    return Then(OpenLoop(ARM, lambda t: np.array([np.sin(3.0 * t), 1.0])), PD(ARM, 3.0, 1.0, [0.1, 0.2]), duration=0.7)


LAWS = {
    "off": lambda: Off(ACROBOT),
    "pd": lambda: PD(ARM, 10.0, [2.0, 1.0], [0.5, -0.2], limit=[4.0, 3.0]),
    "pd, compensated": lambda: PD(ACROBOT, 10.0, 2.0, [0.4], compensate=True),
    "pd along a spline": lambda: PD(ARM, 10.0, 2.0, CURVE),
    "pd along a long spline": lambda: PD(ARM, 10.0, 2.0, LONG),
    "pd along a function": lambda: PD(
        ARM, 9.0, 2.0, lambda t: (np.array([t, t * t]), np.array([1.0, 2 * t]), np.zeros(2))
    ),
    "gravity": lambda: GravityCompensation(ARM),
    "computed torque": lambda: ComputedTorque(ARM, 100.0, 20.0, CURVE),
    "hybrid": lambda: HybridTracking(ACROBOT, 50.0, 9.0, [0.3]),
    "hybrid, one joint": lambda: HybridTracking(ARM, 50.0, 9.0, CURVE, joints=[ARM.names[1]]),
    "energy": lambda: law("energy", ACROBOT),
    "pfl": lambda: law("pfl", ACROBOT),
    "noncollocated": lambda: law("noncollocated", ACROBOT),
    "lqr": lambda: law("lqr", ACROBOT),
    "tvlqr": along_a_motion,
    "one after the other": two_laws,
    "a function": lambda: OwnLaw(ACROBOT, lambda t, q, qd: -2.0 * qd[1] + np.sin(t)),
    "own phases": lambda: Switching(ACROBOT),
    "spline": lambda: law("spline", ACROBOT),
}


class Written:
    """A function of (law, t, q, qd) as machine code: its values, and their change along a direction."""

    def __init__(self, owner, ask):
        graph = Graph()
        twins = Twins(graph)
        given = symbols(graph.inputs("x", 5))
        outputs = list(np.ravel(np.asarray(symbols(ask(twins.of(owner), given[0], given[1:3], given[3:])))))
        nodes = alive([*outputs, graph.status])
        self.places = [twins.places[k] for k in numbers_used(nodes)]
        begins, count = {}, 0
        for k in numbers_used(nodes):
            begins[k] = count
            count += twins.places[k].count
        read = [*readers_of_numbers(nodes, begins)]
        directions = {x: graph.input("dx", k) for k, x in enumerate(given)}
        for node, first in read:
            extent = node.data[2] if node.primitive is TABLE else False
            directions[node] = graph.make(node.primitive, (), ("dp", first, extent))
        changes, status = tangents(outputs, directions), graph.status
        for node, first in read:
            graph.rename(node, "p", first)
        self.count, self.numbers = len(outputs), count
        sizes = {"p": count, "dp": count}, {"x": 5, "dx": 5}
        self.text = text_for_one(Routine("w", *sizes, {"y": outputs, "dy": changes}, status))
        self.machine = Machine(self.text)
        self.function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)(self.machine.address("w_one"))

    def __call__(self, owner, x, dx=None, dp=None):
        p = Reading(Source(owner, self.places))()
        arrays = [p, np.zeros_like(p) if dp is None else dp, x, np.zeros(5) if dx is None else dx]
        arrays += [np.zeros(self.count), np.zeros(self.count)]
        status = self.function(*(np.ascontiguousarray(a).ctypes.data for a in arrays))
        return status, arrays[-2], arrays[-1]


def torque_of(each, t, q, qd):
    return each(t, q, qd)


@pytest.mark.parametrize("name", LAWS)
def test_what_is_written_down_of_a_law_is_what_it_gives(name):
    """Values in all phases, by one code, and the derivatives to time, position and rate."""
    each = LAWS[name]()
    rng = np.random.default_rng(1)
    states = [np.concatenate([[t], rng.normal(size=4) * (1.5, 1.5, 2.0, 2.0)]) for t in rng.uniform(-0.3, 2.3, 12)]
    each.start(0.0, states[0][1:3], states[0][3:])  # the motion of the law "spline" is found here
    each(0.3, states[0][1:3], states[0][3:])
    written = Written(each, torque_of)
    for mode in range(len(each.modes)):
        each.mode = mode
        for x in states:
            expected = each(x[0], x[1:3], x[3:])
            status, found, _ = written(each, x)
            assert status == 0
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * max(1.0, abs(expected).max()))
            dx, h = rng.normal(size=5), 1e-5
            sides = [each(y[0], y[1:3].copy(), y[3:].copy()) for y in (x + s * h * dx for s in (-2, -1, 1, 2))]
            slope = (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)
            _, _, change = written(each, x, dx)
            if np.ptp([sides[2] - sides[1], 0.5 * (sides[3] - sides[0])], axis=0).max() < 1e-6:  # no kink in between
                np.testing.assert_allclose(change, slope, rtol=2e-6, atol=2e-6 * max(1.0, abs(slope).max()))


@pytest.mark.parametrize("name", ["energy", "spline", "one after the other", "own phases"])
def test_what_is_written_down_of_a_margin_is_what_it_gives(name):
    each = LAWS[name]()
    rng = np.random.default_rng(2)
    each.start(0.0, rng.normal(size=2), np.zeros(2))
    each(0.0, rng.normal(size=2), np.zeros(2))
    written = Written(each, lambda each, t, q, qd: [each.left(t, q, qd)])
    for mode in range(len(each.modes)):
        each.mode, each.begun = mode, 0.1 * mode
        for _ in range(5):
            x = rng.normal(size=5)
            assert written(each, x)[1][0] == pytest.approx(each.left(x[0], x[1:3], x[3:]), rel=1e-12, abs=1e-12)


def test_gains_and_phases_are_numbers_of_the_code():
    """Another gain, goal, limit or phase needs no other code; their derivatives are those of differences."""
    last = ACROBOT.links[-1].name
    each = law("energy", ACROBOT.with_parameters({f"{last}.mass": 1.3}))
    written = Written(each, torque_of)
    other = law("energy", ACROBOT.with_parameters({f"{last}.mass": 1.7}), kp=7.0, ke=1.3, limit=60.0)
    assert Written(other, torque_of).text == written.text
    x = np.array([0.0, 0.3, -0.4, 0.5, 1.1])
    np.testing.assert_allclose(written(other, x)[1], other(0.0, x[1:3], x[3:]), rtol=1e-12)
    k = next(k for k, place in enumerate(written.places) if place.path[-1] == "ke")
    assert all(place.count == 1 for place in written.places)
    change = written(other, x, dp=np.eye(written.numbers)[k])[2]
    values = []
    for h in (-1e-3, 1e-3):
        moved_law = copy.deepcopy(other)
        moved_law.set_gain("ke", 1.3 + h)
        values.append(moved_law(0.0, x[1:3], x[3:]))
    np.testing.assert_allclose(change, (values[1] - values[0]) / 2e-3, rtol=1e-9)


def test_a_set_of_laws_is_one_expression_in_which_numbers_choose():
    """The law, its phase, the blend after a swap and the limit, for all laws by one code."""
    laws = LawSet({name: LAWS[name]() for name in ("energy", "lqr", "own phases")}, blend=0.4, limit=9.0)
    written = Written(laws, lambda laws, t, q, qd: [*laws(t, q, qd), 1.0 * laws.phase, laws.left(t, q, qd)])
    rng = np.random.default_rng(3)
    laws.begin(0.0, np.zeros(2), np.zeros(2))
    for name in ("lqr", "own phases", "energy"):
        laws.swap(name, 1.0, rng.normal(size=2), rng.normal(size=2))
        for mode in range(len(laws.laws[name].modes)):
            laws.laws[name].mode = mode
            for t in (0.9, 1.0, 1.15, 1.6):
                x = np.concatenate([[t], rng.normal(size=4)])
                expected = [*laws(t, x[1:3], x[3:]), laws.phase, laws.left(t, x[1:3], x[3:])]
                np.testing.assert_allclose(written(laws, x)[1], expected, rtol=1e-11, atol=1e-11)


def test_a_law_that_refuses_where_it_is_not_active_does_not_stop_the_others():
    """A spline that is to be asked within its interval only, in a law whose turn it is not."""
    strict = PD(ARM, 1.0, 1.0, CURVE.replace(outside="refuse"))
    laws = LawSet({"strict": strict, "off": Off(ARM)})
    written = Written(laws, lambda laws, t, q, qd: laws(t, q, qd))
    inside, outside = np.array([1.0, 0, 0, 0, 0]), np.array([5.0, 0, 0, 0, 0])
    assert [written(laws, inside)[0], written(laws, outside)[0]] == [0, 1]
    laws.active = 1
    assert written(laws, outside)[0] == 0


# the source -------------------------------------------------------------------------------------------------

PACKAGE = Path(cstormpy.__file__).parent
CONTROL = sorted((PACKAGE / "control").glob("*.py"))


@pytest.mark.slow
def test_the_engine_knows_no_law_by_its_name():
    """No class of a law, nor its module, is named in what runs, compiles or differentiates diagrams."""
    names = {node.name for path in CONTROL for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}  # fmt: skip
    names -= {"Law", "LawSet", "OwnLaw", "HybridDynamics", "InverseDynamics", "Inertia"}
    assert len(names) > 10
    told = []
    for path in sorted((PACKAGE / "simulation").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            words = {getattr(node, "id", None), getattr(node, "attr", None)}
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cstormpy.control"):
                words |= {alias.name for alias in node.names}
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                words |= {part for part in node.value.split(".") if "cstormpy.control." in node.value}
            told += [(path.name, word) for word in words & names]
    assert not told


def shapes(tree):
    """Return the formulas of a function: expressions of three operations and more, with the names as they are."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.Compare)) and sum(isinstance(x, ast.BinOp) for x in ast.walk(node)) >= 3:
            yield ast.unparse(node).replace("self.", "")


@pytest.mark.slow
def test_no_formula_of_a_law_stands_twice():
    """In the laws, in the engine or in the kernels."""
    found = defaultdict(set)
    paths = [*CONTROL, *sorted((PACKAGE / "simulation").rglob("*.py")), *sorted((PACKAGE / "kernels").glob("*.py"))]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                for shape in shapes(node):
                    found[shape].add((path.name, node.name))
    of_laws = {p.name for p in CONTROL}
    twice = {shape: places for shape, places in found.items() if len(places) > 1 and {p for p, _ in places} & of_laws}
    assert not twice
    assert any("goal_energy - " in shape for shape in found)  # the walk sees the laws' formulas


def test_nothing_outside_of_a_class_reads_its_private_attributes():
    """In the laws, in CONTROLLER, and in what traces them."""
    compiled = PACKAGE / "simulation" / "compiled"
    paths = [
        *CONTROL,
        *(
            Path(cstormpy.blocks.controllers.__file__).with_name(name)
            for name in ("controllers.py", "_law_selection.py")
        ),
        compiled / "opaque_laws.py",
        compiled / "equations.py",
    ]
    told = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "law")
                if not own and not isinstance(node.value, ast.Call):
                    told.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not told
