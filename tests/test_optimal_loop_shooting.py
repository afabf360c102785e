"""Shooting with loops: gradients against differences of whole motions, and the optimum of the reduced equation."""

import numpy as np
import pytest
from closed_states import skate
from test_optimal_loops import STENCIL, least_effort_of_the_crank

import cstormpy as cs
from cstormpy.optimal import Constraint, Cut, Effort, Load, Problem, Running, Tied, Time

FOUR_BAR = cs.library.four_bar()
START = FOUR_BAR.project([0.5, 0.0, 1.5], hold=["crank"])[0]
BY_ACCELERATION = FOUR_BAR.with_drive(active=["crank"])


def shot(mech=FOUR_BAR, **options):
    """Return a problem to turn the crank, by its torque or by its motion, the coupler and the rocker integrated."""
    common = {"duration": 1.0, "start": START, "end": {"crank": 1.0}, "objective": Effort(), "points": 6, "steps": 20}
    return Problem(mech, transcription="shooting", **{**common, **options})


def error(problem):
    """Return the largest error of all gradients, against differences of fourth order of the steps that are taken."""
    x = problem.first_guess()
    x = x + 0.02 * np.random.default_rng(0).normal(size=len(x))
    if problem.design is not None:
        x[problem.transcription.of_design] = problem.design.guess
    if problem.free_duration:
        x[-1] = problem.duration_guess
    programme = problem.programme(x)
    exact = np.vstack([programme.gradient(x), programme.jacobian(x)])
    columns = []
    for k, size in enumerate(problem.transcription.variable_sizes):
        total = 0.0
        for place, weight in STENCIL:
            moved = x.copy()
            moved[k] += place * 2e-4 * size
            total = total + weight / (2e-4 * size) * np.append(programme.cost(moved), programme.constraints(moved))
        columns.append(total)
    off = np.abs(exact - np.stack(columns, axis=1))
    return float((off / (1.0 + np.abs(exact).max(axis=0))).max())


@pytest.mark.slow
def test_a_skate_is_steered_to_any_place():
    """Constraints of rates tie no places: all three at the end were refused as more than its two freedoms."""
    mech, end = skate(), ([0.5, 0.3, 0.0], {"x": 0.0, "skate": 0.0})
    c, s = np.cos(0.2), np.sin(0.2)
    problem = shot(mech, start=([0.0, 0.0, 0.2], [0.5 * c, 0.5 * s, 0.3]), end=end, duration=2.0)
    solution = problem.solve(progress=False)
    assert solution.feasible
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.0, 0.0, 0.2], qd0=[0.5 * c, 0.5 * s, 0.3], name="plant")
    torque = bd.FUNCTION(solution.tau)
    bd.connect(bd.TIME(), torque)
    bd.connect(torque, plant.tau)
    out = sim.run(bd, T=2.0, solver="RK4", dt=0.05)
    np.testing.assert_allclose(out.x[-1], [0.5, 0.3, 0.0, 0.0, 0.0, 0.0], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mech", [FOUR_BAR, BY_ACCELERATION])
def test_the_gradients_of_an_integrated_closed_motion_are_those_of_its_steps(mech):
    """Shooting with loops was refused: duration, masses and losses are variables too."""
    design = {"coupler_rod.mass": (0.5, 1.0), "rocker.damping": (0.0, 0.1, 1.0)}
    assert error(shot(mech, duration=(0.3, 0.6), design=design, points=5, steps=20)) < 1e-8


@pytest.mark.slow
def test_the_forces_of_loops_and_their_gradients_are_those_of_the_steps():
    """They had no columns, so that a cost of them was zero without a word."""
    load = Load("rocker_rod", force=[1, 2, 0], point=[0.1, 0, 0])
    forces = Constraint(lambda at: at.multipliers, lower=-100, upper=100)
    problem = shot(
        duration=(0.3, 0.5), points=5, loads=load, constraints=[forces], design={"coupler_rod.com[0]": (0.3, 0.5)},
        objective=Running(lambda at: (at.multipliers**2).sum(axis=1)),
    )  # fmt: skip
    assert error(problem) < 1e-8
    at = problem.transcription.evaluate(problem.first_guess()).samples
    found = at.mech.hybrid_dynamics(at.q, at.qd, at.tau, wrench=[load])
    np.testing.assert_allclose(at.multipliers, found.multipliers, rtol=0, atol=1e-12)
    assert np.abs(at.multipliers).max() > 1.0


@pytest.mark.slow
def test_shooting_finds_the_least_effort_of_the_reduced_equation():
    """One spline for the crank, the loop closed by its forces as the steps go, and eliminated by hand."""
    problem = shot(BY_ACCELERATION, end={"crank": 2.0}, points=10, degree=5, steps=60)
    solution = problem.solve(progress=False)
    effort, _ = least_effort_of_the_crank(10)
    assert solution.converged and solution.feasible and solution.kkt < 1e-5
    assert solution.cost == pytest.approx(effort, rel=1e-4)
    rows = solution.at(np.linspace(0.0, 1.0, 30))
    assert np.abs(FOUR_BAR.closure(rows.q)).max() < 1e-4  # as well as the steps integrate


def test_what_shooting_with_loops_cannot_follow_is_said():
    rod = Tied((0.7, 0.8, 0.95), lambda length: {"pin.pose_b.x": length - 0.8})
    for options, message in (
        ({"cuts": "pin"}, "cuts: shooting integrates the motion with the forces of its loops"),
        ({"cuts": Cut("pin", play=0.001)}, "cuts: shooting integrates"),
        ({"design": {"rod": rod}}, "design: moves what loop 'pin' closes.*transcription='inverse'"),
        ({"start": START + np.array([0.0, 0.1, 0.0])}, "start: loop pin: x: misses closure by"),
        ({"end": {"crank": 1.0, "rocker": 1.2}}, r"end: gives positions of 2 joints.*free; give 1"),
    ):
        with pytest.raises(cs.CstormError, match=message):
            shot(**options)
    with pytest.raises(cs.CstormError, match=r"active joints 'crank', 'rocker': are more than the freedoms"):
        shot(FOUR_BAR.with_drive(actuated=["crank", "rocker"], active=["crank", "rocker"]), end=None).first_guess()


@pytest.mark.slow
def test_a_torque_that_the_search_itself_holds_has_not_converged():
    """Without a limit the least time said "converged" at control points that nobody had asked for."""
    solution = shot(duration=(0.01, 0.4, 1.0), objective=Time()).solve(progress=False)
    assert not solution.converged
    assert "'crank': the search holds its torque's control points within 962" in solution.outcomes[0].reason
    resting = shot(duration=(0.05, 0.4, 1.0), objective=Time()).solve(progress=False)
    assert resting.converged and resting.duration == pytest.approx(0.05)


def test_a_guess_that_tears_its_loops_names_them():
    """Falling for a second in twenty steps opens the pin, which was called a motion that is not finite, and no more."""
    with pytest.raises(cs.NonFinite, match=r"^guess: .* \(loop pin: .: .*\); give another guess, more steps"):
        shot().programme()
