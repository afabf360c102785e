"""What a search found is what the blocks do: the motion's acceleration drives a plant, or the torques found do.

The problems are those of the papers' examples. The plant integrates the joints on splines too, so that the stages of
its steps differ from those of the search: the ends differ by what the steps make of that.
"""

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Load, Problem, Terminal

FOLDER = Path(__file__).parent.parent / "examples" / "papers"
ASKED = {
    "acrobot, q1(0) = -1": ("acrobot_swing_up", (-1.0,), 4),
    "acrobot, q1(0) = -1.3": ("acrobot_swing_up", (-1.3,), 4),
    "branched acrobot": ("branched_acrobot_swing_up", (), 2),
}
#: Relative tolerance of an adaptive solver, and how near its end comes: the swing-up, unstable as it is, makes some
#: ten thousand times of an error on its way.
ADAPTIVE = ((1e-9, 5e-5), (1e-12, 2e-6))
#: One motion, by the tight tolerance, is among the quick tests.
CASES = [
    pytest.param(name, *case, marks=[pytest.mark.slow] * ((name, case[0]) != ("branched acrobot", 1e-12)))
    for name in ASKED
    for case in ADAPTIVE
]


@cache
def found(name):
    script, arguments, starts = ASKED[name]
    return runpy.run_path(str(FOLDER / f"{script}.py"))["problem"](*arguments).solve(starts=starts, seed=0)


def replay(solution, **options):
    """Drive a plant by the accelerations of the joints on splines."""
    at = solution.samples
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    motion = bd.SPLINETRAJECTORY(solution.spline)
    plant = bd.HYBRIDDYNAMICS(solution.problem.mech, q0=at.q[0], qd0=at.qd[0])
    bd.connect(motion[2], plant[0])
    return sim.run(bd, solution.duration, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_with_the_same_steps_the_whole_motion_is_that_of_the_search(name):
    solution = found(name)
    assert solution.converged
    at = solution.samples
    out = replay(solution, solver="RK4", dt=solution.duration / (len(at) - 1))
    k = np.searchsorted(out.t, at.t - 1e-9)
    np.testing.assert_allclose(out.t[k], at.t, atol=1e-12)
    np.testing.assert_allclose(out.x[k], np.hstack([at.q, at.qd]), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rtol", "within"), CASES)
def test_with_steps_of_its_own_a_solver_comes_to_the_same_end(name, rtol, within):
    solution = found(name)
    at = solution.samples
    out = replay(solution, rtol=rtol, atol=0.1 * rtol)
    np.testing.assert_allclose(out.x[-1], np.concatenate([at.q[-1], at.qd[-1]]), atol=within)


@pytest.mark.slow
def test_a_weight_that_is_carried_keeps_its_direction():
    """Half a kilogram in the acrobot's hand: the search turns the load as WRENCH in the base's axes does."""
    mech, hand = library.acrobot("rods").with_drive(active=["elbow"]), [1.0, 0.0, 0.0]
    problem = Problem(
        mech,
        duration=2.0,
        start=[-1.0, 0.0],
        end={"elbow": 0.0},
        objective=Effort() + 30 * Terminal(q={"shoulder": 0.0}),
        loads=Load("forearm", force=[0, -4.9, 0], point=hand),
    )
    solution = problem.solve(iterations=40)
    free = problem.replace(loads=()).motion(solution.x)
    at = solution.samples
    assert np.abs(free.q - at.q).max() > 0.1
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    motion = bd.SPLINETRAJECTORY(solution.spline)
    weight = bd.CONSTANT(np.array([0.0, -4.9, 0.0]))
    wrench = bd.WRENCH(mech, link="forearm", frame="base", point=hand, load="force")
    plant = bd.HYBRIDDYNAMICS(mech, q0=at.q[0], wrench=True)
    bd.connect(motion[2], plant[0])
    bd.connect(weight, wrench[0])
    bd.connect(plant[0], wrench[1])
    bd.connect(wrench, plant[1])
    out = sim.run(bd, 2.0, solver="RK4", dt=2.0 / (len(at) - 1))
    np.testing.assert_allclose(out.x[-1], np.concatenate([at.q[-1], at.qd[-1]]), atol=1e-5)


@pytest.mark.slow
def test_torques_alone_swing_the_arm_up():
    """Inverse: the torque along the motion, as a signal of time, drives an arm that has no other guidance."""
    problem = runpy.run_path(str(FOLDER / "two_link_swing.py"))["problem"]()
    solution = problem.solve(starts=8, seed=0)
    mech = library.planar_2r()
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    motion = bd.SPLINETRAJECTORY(solution.spline)
    torques = bd.INVERSEDYNAMICS(mech)
    plant = bd.HYBRIDDYNAMICS(mech, q0=solution.samples.q[0])
    bd.connect(motion[0:3], torques[0:3])
    bd.connect(torques, plant[0])
    out = sim.run(bd, solution.duration, rtol=1e-12, atol=1e-13)
    at = solution.at(np.minimum(out.t, solution.duration))
    np.testing.assert_allclose(out.x, np.hstack([at.q, at.qd]), atol=1e-6)
