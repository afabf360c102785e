"""Regressor beside Pinocchio's, and derivatives to all inertial parameters beside those to the state, of a batch."""

from __future__ import annotations

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from interleaved import interleave  # noqa: E402
from pinocchio_model import Oracle  # noqa: E402

import cstormpy as cs  # noqa: E402
from cstormpy.mechanism import library  # noqa: E402

MECHANISMS = {"arm of 7": (library.arm7, 512), "tree of 36": (lambda: library.tree(6, links=36), 64)}
TABLE = "time per sample [us], and its ratio to Pinocchio's regressor (goal 0.3) or the state sensitivities (goal 2)"
ALONG = "0.5 s with derivatives to a number of the mechanism along it [ms], and the ratio to another run"


@pytest.mark.parametrize("name", MECHANISMS)
def test_parameters(benchmark, record_row, name):
    made, count = MECHANISMS[name]
    mech = made()
    q, qd, u = np.random.default_rng(0).normal(size=(3, count, mech.n))
    names = [f"{link.name}.{field}" for link in mech.links for field in ("mass", "com", "inertia")]
    theirs = Oracle(mech)
    args = [theirs.to(x[0]) for x in (q, qd, u)]

    def loop():
        for _ in range(count):
            pin.computeJointTorqueRegressor(theirs.model, theirs.data, *args)

    times = interleave(
        {
            "regressor": lambda: mech.regressor(q, qd, u),
            "pinocchio": loop,
            "numbers": lambda: mech.parameter_sensitivity(q, qd, u, names),
            "states": lambda: mech.hybrid_sensitivity(q, qd, u),
        }
    )
    ours, peer, numbers, states = times.values()
    for what, a, b, goal in (("regressor", ours, peer, 0.3), ("all inertial numbers", numbers, states, 2.0)):
        record_row(
            TABLE, mechanism=name, what=what, ours=a / count * 1e6, other=b / count * 1e6, ratio=a / b, goal=goal
        )
    benchmark(lambda: mech.regressor(q, qd, u))


ALONG_RUNS = {
    "acrobot, a mass": (library.acrobot, ["forearm.mass"], None),
    "acrobot, a length": (library.acrobot, ["forearm.pose.x"], None),
    "four-bar, a mass": (library.four_bar, ["coupler_rod.mass"], [1.0, 0.0, 1.5]),
}


@pytest.mark.parametrize("name", ALONG_RUNS)
def test_parameters_along_a_run(benchmark, record_row, name):
    """A run with VARIATION to a number of the mechanism, by the engines, and by the compiled one without it."""
    made, names, start = ALONG_RUNS[name]
    mech = made()
    q0 = np.full(mech.n, 0.3) if start is None else mech.project(start)[0]

    def wired(engine, varied=True):
        sim = cs.Simulation(graphics=False, progress=False, engine=engine)
        bd = sim.blockdiagram()
        plant, drive = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant"), bd.CONSTANT(np.full(len(mech.actuated), 0.1))
        bd.connect(drive, plant[0])
        if varied:
            variation = bd.VARIATION(mech, directions=[], parameters=names, name="variation")
            bd.connect(plant[0:2], variation[0:2])
            bd.connect(drive, variation[2])
        return lambda: sim.run(bd, T=0.5, dt=0.01, solver="RK4")

    runs = {"compiled": wired("compiled"), "interpreted": wired("interpreted"), "plant": wired("compiled", False)}
    compiled, interpreted, plant = interleave(runs).values()
    for what, other in (("interpreted", interpreted), ("compiled, without it", plant)):
        record_row(ALONG, diagram=name, other=what, ours=compiled * 1e3, theirs=other * 1e3, ratio=compiled / other)
    benchmark(runs["compiled"])
