"""The acrobot beside other simulators: the same mechanism, law and tolerance, in one run.

The law's phases are located as events by all. How far each is from a reference after a second or two stands in the
table, because a tolerance of 1e-6 does not mean the same to all of them.
"""

from __future__ import annotations

import importlib
import math

import numpy as np
import peers
import pytest
from interleaved import interleave

SWINGING, PASSIVE = (0.1 - math.pi / 2, 0.0, 0.0, 0.0), (0.3, 0.2, 0.0, 0.0)
GOAL = 20
SWING_UP = (
    f"acrobot swing-up, 10 s, rtol 1e-6 [ms], times ours (goal {GOAL}: MultibodyPlant, PathSim), and error after 1 s"
)
FALLING = (
    "passive acrobot, 10 s, rtol 1e-6 [ms], times ours (goals 6.7: exudyn, 4: Drake in closed form, 0.33: an expert's "
    "numba), error after 2 s"
)
T, ROUNDS = 10.0, 5
#: Steps of MuJoCo that make it as exact as the others at their tolerance [s].
STEP = 0.01

#: Name in the table, module, how the run is made, and how large the error may be.
SWING_UPS = [
    (
        "Drake MultibodyPlant, RK3 (default), law in Python",
        "pydrake",
        lambda x: peers.drake(x, "energy", "runge_kutta3"),
        1e-4,
    ),
    ("Drake MultibodyPlant, RK5, law in Python", "pydrake", lambda x: peers.drake(x, "energy", "runge_kutta5"), 1e-2),
    (
        "Drake AcrobotPlant, RK5, law in Python",
        "pydrake",
        lambda x: peers.drake(x, "energy", "runge_kutta5", True),
        1e-2,
    ),
    ("PathSim, RKDP54, links and law in Python", "pathsim", lambda x: peers.pathsim(x, "energy"), 2e-4),
]
PASSIVES = [
    ("exudyn, kinematic tree, DOPRI5", "exudyn", peers.exudyn, 1e-4),
    (f"MuJoCo, RK4 at {STEP} s", "mujoco", lambda x: peers.mujoco(x, STEP), 1e-4),
    ("Drake AcrobotPlant (closed form), RK5", "pydrake", lambda x: peers.drake(x, "none", "runge_kutta5", True), 1e-4),
    ("Drake MultibodyPlant, RK3 (default)", "pydrake", lambda x: peers.drake(x, "none", "runge_kutta3"), 1e-4),
    ("Drake MultibodyPlant, RK5", "pydrake", lambda x: peers.drake(x, "none", "runge_kutta5"), 1e-2),
    ("PathSim, RKDP54, links in Python", "pathsim", lambda x: peers.pathsim(x, "none"), 1e-4),
    ("an expert's own RK45 in numba, closed form", "numba", peers.expert, 1e-4),
]


def distance(run: peers.Run, start: tuple[float, ...], law: str, at: float) -> float:
    return float(np.abs(run(at) - np.array(peers.reference(start, law, at))).max())


def compared(record_row, table, name, module, make, start, law, at, tolerance):
    """Run one beside ours, and put both into a table."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"{module} is not installed: {error}")
    theirs, ours = make(start), peers.ours(start, law)
    error = distance(theirs, start, law, at)
    assert error < tolerance
    assert distance(ours, start, law, at) < 1e-4
    times = interleave({"theirs": lambda: theirs(T), "ours": lambda: ours(T)}, rounds=ROUNDS, seconds=0.0)
    ratio = times["theirs"] / times["ours"]
    record_row(table, simulator=name, time=times["theirs"] * 1e3, times=ratio, error=error, ours=times["ours"] * 1e3)
    return theirs, ours


@pytest.mark.parametrize(("name", "module", "make", "tolerance"), SWING_UPS, ids=[row[0] for row in SWING_UPS])
def test_swing_up(benchmark, record_row, name, module, make, tolerance):
    theirs, ours = compared(record_row, SWING_UP, name, module, make, SWINGING, "energy", 1.0, tolerance)
    for run in (theirs, ours):
        assert np.abs(peers.Law.error(run(T))).max() < 1e-3  # all balance in the end
    benchmark.pedantic(lambda: theirs(T), rounds=3)


@pytest.mark.parametrize(("name", "module", "make", "tolerance"), PASSIVES, ids=[row[0] for row in PASSIVES])
def test_passive(benchmark, record_row, name, module, make, tolerance):
    theirs, _ = compared(record_row, FALLING, name, module, make, PASSIVE, "none", 2.0, tolerance)
    benchmark.pedantic(lambda: theirs(T), rounds=3)


@pytest.mark.parametrize(
    ("law", "start", "table", "at"),
    [("energy", SWINGING, SWING_UP, 1.0), ("none", PASSIVE, FALLING, 2.0)],
    ids=["swing-up", "passive"],
)
def test_ours(benchmark, record_row, law, start, table, at):
    run = peers.ours(start, law)
    error = distance(run, start, law, at)
    times = interleave({"ours": lambda: run(T)}, rounds=ROUNDS, seconds=0.0)["ours"]
    record_row(
        table, simulator="cstormpy, the diagram as shipped", time=times * 1e3, times=1.0, error=error, ours=times * 1e3
    )
    benchmark.pedantic(lambda: run(T), rounds=3)
