"""Blocks of cstormpy say their equations once: what their methods write down has the values of the same methods."""

from __future__ import annotations

import numpy as np
import pytest
from test_symbolic_mechanisms import values_of

import cstormpy as cs
from cstormpy.dynamics.loads import Wrenches
from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.mechanism import library
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.readings import Reading, Source
from cstormpy.simulation.compiled.twins import Twins, value_at
from cstormpy.trajectory import BSpline

ACROBOT = library.acrobot().with_parameters({"forearm.mass": 1.3, "elbow.damping": 0.1})
DRIVEN = ACROBOT.with_drive(active=["elbow"])
LIMITED = ACROBOT.with_parameters({"elbow.limits": cs.Limits(position=(-0.5, 0.5))})
ARM = library.arm7()

#: The block, its inputs' widths, and of its methods those that are traced.
BLOCKS = {
    "HYBRIDDYNAMICS": lambda bd: bd.HYBRIDDYNAMICS(ACROBOT),
    "HYBRIDDYNAMICS, elbow active": lambda bd: bd.HYBRIDDYNAMICS(DRIVEN),
    "HYBRIDDYNAMICS with stops": lambda bd: bd.HYBRIDDYNAMICS(LIMITED, stops={"depth": 0.3}),
    "HYBRIDDYNAMICS with wrenches": lambda bd: bd.HYBRIDDYNAMICS(ACROBOT, wrench=True),
    "HYBRIDDYNAMICS, pushed": lambda bd: pushed(bd.HYBRIDDYNAMICS(ACROBOT)),
    "JOINTEFFORT": lambda bd: bd.JOINTEFFORT(DRIVEN),
    "JOINTEFFORT with stops": lambda bd: bd.JOINTEFFORT(LIMITED, stops=True),
    "INVERSEDYNAMICS": lambda bd: bd.INVERSEDYNAMICS(ARM),
    "INVERSEDYNAMICS with wrenches": lambda bd: bd.INVERSEDYNAMICS(ACROBOT, wrench=True),
    "MASSMATRIX": lambda bd: bd.MASSMATRIX(ARM),
    "GRAVITYLOAD": lambda bd: bd.GRAVITYLOAD(ARM),
    "ENERGY": lambda bd: bd.ENERGY(ACROBOT),
    "KINEMATICS": lambda bd: bd.KINEMATICS(ARM),
    "KINEMATICS of a tool": lambda bd: bd.KINEMATICS(ARM, tool=[0.1, 0.2, 0.3], frame="base"),
    "KINEMATICS, aligned": lambda bd: bd.KINEMATICS(ACROBOT, frame="aligned"),
    "ANGLEWRAP": lambda bd: bd.ANGLEWRAP(ACROBOT, centre=1.0),
    "ANGLEWRAP of one": lambda bd: bd.ANGLEWRAP(joints=[1], centre=[0.5, 0.1]),
    "JOINTLIMIT": lambda bd: bd.JOINTLIMIT(LIMITED, depth=0.4),
    "EFFORT": lambda bd: bd.EFFORT(weight=[1.0, 2.5]),
    "WRENCH": lambda bd: bd.WRENCH(ACROBOT, point=[0.3, 0.1, 0.0]),
    "WRENCH in the base": lambda bd: bd.WRENCH(ACROBOT, frame="base", load="force and moment", point=[0.3, 0.1, 0.0]),
    "PUSH": lambda bd: holding(bd.PUSH(ACROBOT, schedule=[(0.1, 0.9, [1.0, 2.0, 0.0])], shape="smooth")),
    "PUSH in the base": lambda bd: bd.PUSH(ACROBOT, schedule=[(0.1, 0.9, [1.0, 2.0, 0.0])], frame="base"),
    "SENSITIVITY": lambda bd: bd.SENSITIVITY(ACROBOT),
    "SENSITIVITY under loads": lambda bd: bd.SENSITIVITY(ACROBOT, wrench=True),
    "VARIATION": lambda bd: bd.VARIATION(DRIVEN),
    "VARIATION with feedback": lambda bd: bd.VARIATION(ACROBOT, feedback=True, parameters=2),
}  # fmt: skip


RNG = np.random.default_rng(7)
CURVE = BSpline.clamped(RNG.normal(size=(9, 2)), duration=1.2)
TIMES = np.sort(RNG.uniform(0.0, 1.0, 400))
JUMPS = [0.0, 0.2, 0.4, 0.4, 0.5, 0.6, 0.8, 1.0]
RECORD = RNG.normal(size=(8, 2))

SOURCES = {
    "SPLINETRAJECTORY": lambda bd: bd.SPLINETRAJECTORY(CURVE, start=0.1, speed=1.5),
    "SPLINETRAJECTORY, many points": lambda bd: bd.SPLINETRAJECTORY(RNG.normal(size=(200, 2)), duration=0.8),
    "SPLINETRAJECTORY, over and over": lambda bd: bd.SPLINETRAJECTORY(CURVE, duration=0.3, ends="repeat"),
    "SPLINETRAJECTORY, one joint": lambda bd: bd.SPLINETRAJECTORY(CURVE, joints=[1], ends="error"),
    "FROMDATA": lambda bd: bd.FROMDATA(t=TIMES, y=np.sin(9.0 * TIMES)),
    "FROMDATA with jumps": lambda bd: bd.FROMDATA(t=JUMPS, y=RECORD),
    "FROMDATA held": lambda bd: bd.FROMDATA(t=JUMPS, y=RECORD, interpolation="previous"),
    "FROMDATA, over and over": lambda bd: bd.FROMDATA(t=JUMPS, y=RECORD[:, 0], ends="repeat"),
    "FROMDATA, cubic": lambda bd: bd.FROMDATA(t=JUMPS, y=RECORD, interpolation="cubic"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_a_source_writes_down_has_the_values_of_its_method(name):
    bd = cs.Simulation(live=False, progress=False).blockdiagram()
    block = SOURCES[name](bd)
    block.output(0.0, [], None)
    at = [0.0, 0.05, 0.1, 0.2, 0.4, 0.45, 0.75, 0.8, 1.0, 1.1]
    times = [t for t in [*at, *([] if "one joint" in name else [-0.2, 1.2, 1.5])]]
    found, values = written(block, "output", 0.0, [], None)
    for t in times:
        values["t"] = [t]
        for ours, theirs in zip(found, block.output(t, [], None), strict=True):
            np.testing.assert_allclose(values_of(ours, values), theirs, rtol=1e-13, atol=1e-13)


def pushed(plant):
    plant.push("forearm", [1.0, -2.0, 0.0], [0.2, 0.1, 0.0])
    return plant


def holding(push):
    push.push([0.5, 0.25, 0.125])
    return push


def signals_of(block, rng):
    """Return signals for the inputs of a block; the wrenches among them keep their direction in part."""
    found = []
    names, widths = block._inport_names, block.inwidths
    for name, width in zip(names, widths, strict=True):
        if name == "wrench":
            rows = np.zeros((2, 21))
            rows[:, :12] = rng.normal(size=(2, 12))
            found.append(Wrenches(rows[:, :6] + 0.5, rows))
        elif name in ("du_dx", "du_dp"):
            found.append(rng.normal(size=(1, 4 if name == "du_dx" else 2)))
        else:
            found.append(rng.normal(size=2 if width is None else width))
    return found


def written(block, method, t, u, x):
    """Return what a method of a block writes down, and the values of the numbers that it is a function of."""
    graph = Graph()
    twins = Twins(graph)
    twin = twins.of(block)
    values = {"t": [t]}
    given = []
    for k, value in enumerate(u):
        values[f"u{k}"] = np.ravel(value)
        made = symbols(graph.inputs(f"u{k}", np.size(value))).reshape(np.shape(value))
        if isinstance(value, Wrenches):
            values[f"rows{k}"] = np.ravel(value.rows)
            rows = symbols(graph.inputs(f"rows{k}", value.rows.size)).reshape(value.rows.shape)
            made = Wrenches(np.asarray(made), rows)
        given.append(made)
    values["x"] = [] if x is None else x
    state = None if x is None else symbols(graph.inputs("x", len(x)))
    found = getattr(equations_of(block), method)(twin, graph.input("t"), given, state)
    twins.refuse_changes()
    assert all(form.fits(value_at(block, path)) for path, form in twins.forms)
    values["all"] = []
    for k, place in enumerate(twins.places):
        now = Reading(Source(block, [place]))().tolist()
        values["all"].append(now[0])
        values[f"all[{k}]"] = now
    return found, values


@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_writes_down_has_the_values_of_its_method(name):
    bd = cs.Simulation(live=False, progress=False).blockdiagram()
    block = BLOCKS[name](bd)
    rng = np.random.default_rng(11)
    methods = ["output", "deriv"] if block.blockclass == "continuous" else ["output"]
    for t in (0.3, 0.95):
        u = signals_of(block, rng)
        x = rng.normal(size=block.nstates) if block.blockclass == "continuous" else None
        for method in methods:
            found, values = written(block, method, t, u, x)
            expected = getattr(block, method)(t, u, x)
            pairs = zip(found, expected, strict=True) if method == "output" else [(found, expected)]
            for ours, theirs in pairs:
                scale = max(1.0, abs(np.asarray(theirs)).max())
                np.testing.assert_allclose(values_of(ours, values), theirs, rtol=0, atol=1e-13 * scale)
                if isinstance(theirs, Wrenches):
                    np.testing.assert_allclose(values_of(ours.rows, values), theirs.rows, rtol=0, atol=1e-13 * scale)
