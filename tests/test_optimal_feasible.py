"""Feasible means feasible at any time: between the samples, for every constraint, by one measure for all."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from scipy.integrate import solve_ivp

from cstormpy.errors import InvalidValue, NonFinite
from cstormpy.mechanism import library
from cstormpy.optimal import Acceleration, Constraint, Effort, Jerk, Position, Problem, Running, Stage, Time, starts
from cstormpy.optimal.residuals import residuals

UP = np.pi / 2
FORTRAN = tuple(int(part) for part in scipy.__version__.split(".")[:2]) < (1, 16)
RADIUS = 0.25
CENTRE = np.array([0.62, 0.45])


def acrobot(**options):
    given = {"duration": 3.0, "start": [-1.0, 0.0], "end": [UP, 0.0], "objective": Effort(), "samples": 61}
    return Problem(library.acrobot("rods"), transcription="inverse", **{**given, **options})


def pumping(**options):
    """The acrobot swings to 0.4 rad beside its rest."""
    return acrobot(**{"duration": 2.0, "start": [-UP, 0.0], "end": [-UP + 0.4, 0.0], "points": 20, **options})


def arm(**options):
    given = {"duration": 1.0, "start": [-0.2, 0.3], "end": [1.4, 0.3], "objective": Effort(), "points": 10}
    return Problem(library.planar_2r(), **{"samples": 6, **given, **options})


def tip(mech, q):
    pose = mech.forward_kinematics(q)[:, 1]
    return (pose[:, :3, :3] @ [0.5, 0.0, 0.0] + pose[:, :3, 3])[:, :2]


def away(at):
    """Return the square of the tip's distance from the disc's centre."""
    return ((tip(at.mech, at.q) - CENTRE) ** 2).sum(axis=1)


DISC = Constraint(away, lower=RADIUS**2, name="disc")


def dense(solution, count=200_001):
    return solution.at(np.linspace(0.0, solution.duration, count))


# ---------------------------------------------------------------- joints without motor


def test_a_joint_without_motor_that_has_a_torque_is_not_feasible():
    """It was called converged, with a violation of 2e-11 at the knots and 33 N m in the shoulder between them."""
    solution = acrobot(points=16, degree=3).solve(refine=False)
    assert not solution.feasible and not solution.converged
    assert "INFEASIBLE" in repr(solution) and "INFEASIBLE" in str(solution)
    (worst,) = [each for each in solution.excess if each.kind == "no motor"]
    assert f"exceeded by      {worst!r}" in str(solution)
    assert worst.joint == "shoulder" and worst.unit == "N m"
    at = dense(solution)
    assert worst.amount == pytest.approx(np.abs(at.tau[:, 0]).max(), rel=1e-4)
    assert worst.amount > 10.0
    solution.excess = (replace(worst, amount=1e-9, relative=1e-7),)  # had a line for each rounding of each joint
    assert "exceeded by" not in str(solution) and f"kept at any time {worst.kind}" in str(solution)
    assert solution.reason.startswith("infeasible: no motor is missed by")
    assert solution.violation == worst.relative > solution.feasibility
    assert solution.outcomes[0].sampled < 1e-6  # what the solver saw


def test_it_is_refined_until_it_has_none_and_replays():
    """The torque of the elbow alone, integrated by another method, does the motion."""
    solution = pumping().solve(feasibility=2e-4)
    assert solution.converged, solution.reason
    assert solution.violation <= solution.feasibility == 2e-4
    assert solution.refined["points"] > 20
    at = dense(solution)
    size = solution.excess[0].amount / solution.excess[0].relative
    assert np.abs(at.tau[:, 0]).max() <= 2e-4 * size * (1 + 1e-6)
    mech = library.acrobot("rods")

    def rate(t, x):
        tau = np.array([0.0, solution.tau(min(t, solution.duration))[0]])
        return np.concatenate([x[2:], mech.forward_dynamics(x[:2], x[2:], tau)])

    run = solve_ivp(rate, (0.0, 2.0), [-UP, 0.0, 0.0, 0.0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(run.y[:, -1], [-UP + 0.4, 0.0, 0.0, 0.0], atol=0.02)


@pytest.mark.slow
def test_few_collocation_phases_are_not_enough():
    """Asked at eight phases only, a spline of 20 control points has torques between them; the search asks for more."""
    coarse = pumping(collocation=8).solve(refine=False)
    assert not coarse.feasible
    refined = pumping(collocation=8).solve()
    assert refined.feasible and refined.cost > coarse.cost


@pytest.mark.skipif(FORTRAN, reason="SLSQP in Fortran, before SciPy 1.16, takes minutes there")
def test_new_segments_are_looked_at():
    """Samples were added at peaks alone: in a segment without one the force was 1e5 N, at the shortest of durations.

    With 200 intervals, multiple shooting of the same cart and pole takes 1.2053 s.
    """
    ends = {"start": [0, -UP], "end": [0, UP], "limits": {"torque": 20.0}}
    fast = Problem(
        library.cart_pole(), duration=(0.5, 2, 4), objective=Time(), points=24, transcription="inverse", **ends
    )
    solution = fast.solve(progress=False)
    assert solution.duration == pytest.approx(1.2053, rel=5e-3)
    assert solution.violation < 0.03
    assert solution.feasible or solution.reason.endswith("refined further it was missed by more")


def test_a_guess_that_is_feasible_is_better_than_what_is_not():
    """Samples at the ends alone let a search go across the wall that its guess keeps from; it was answered."""
    wall = Constraint(lambda at: at.q[:, 0], lower=-UP - 0.05, name="wall")
    problem = arm(start=[-UP, 0.0], end=[UP, 0.0], duration=2.0, constraints=[wall], samples=2)
    solution = problem.solve(refine=False, progress=False)
    assert solution.feasible and not solution.converged and solution.iterations > 5
    assert solution.reason.startswith("this is the guess; what was found is infeasible: wall is missed by ")
    np.testing.assert_array_equal(solution.x, problem.first_guess())
    assert problem.solve(progress=False).converged


# ---------------------------------------------------------------- obstacles and limits


@pytest.mark.slow
def test_a_disc_is_not_cut_between_the_samples():
    """An obstacle of radius 0.5 was passed at 0.488, and `excess` was empty."""
    coarse = arm(constraints=[DISC]).solve(refine=False)
    nearest = np.sqrt(away(dense(coarse)).min())
    assert nearest < 0.99 * RADIUS
    assert not coarse.feasible and not coarse.converged
    assert coarse.excess[0].kind == "disc"
    assert coarse.excess[0].amount == pytest.approx(RADIUS**2 - nearest**2, rel=1e-5)
    refined = arm(constraints=[DISC]).solve()
    assert refined.converged and refined.feasible
    assert away(dense(refined)).min() >= RADIUS**2 * (1.0 - refined.feasibility)


def test_a_wall_is_not_crossed_between_the_samples():
    wall = Position("forearm", upper=[0.85, None, None], tool=[0.5, 0.0, 0.0], at="all", name="wall")
    problem = arm(constraints=[wall], start=[-1.2, 0.35], samples=2, objective=Acceleration())
    coarse, refined = problem.solve(refine=False), problem.solve()
    assert not coarse.feasible
    assert coarse.excess[0].kind == "wall" and coarse.excess[0].joint == "x" and coarse.excess[0].unit == "m"
    assert refined.converged
    assert tip(problem.mech, dense(refined).q)[:, 0].max() <= 0.85 + 1e-3 * 1.0


@pytest.mark.parametrize(("wall", "start"), [(0.73, [-1.0, 0.4]), (0.95, [-1.2, 0.5])])
def test_another_method_goes_on_where_slsqp_gets_no_further(wall, start):
    """The peak of a path moves between two samples of it, where SLSQP ended after 150 iterations without a gain."""
    given = Position("forearm", upper=[wall, None, None], tool=[0.5, 0.0, 0.0], at="all", name="wall")
    problem = arm(constraints=[given], start=start, samples=2, objective=Acceleration())
    solution = problem.solve()
    assert solution.converged
    assert tip(problem.mech, dense(solution).q)[:, 0].max() <= wall + 1e-3 * 1.0
    assert solution.cost == pytest.approx(problem.replace(samples=12).solve().cost, rel=5e-3)


def test_every_joint_is_named_with_its_true_worst_value():
    solution = arm(limits={"torque": 9.0, "velocity": 1.9}, samples=5).solve(refine=False)
    assert {(each.kind, each.joint) for each in solution.excess} == {
        (kind, joint) for kind in ("torque", "velocity") for joint in ("shoulder", "elbow")
    }
    at = dense(solution)
    for each in solution.excess:
        j = ["shoulder", "elbow"].index(each.joint)
        y, bound = (at.tau, 9.0) if each.kind == "torque" else (at.qd, 1.9)
        assert each.amount == pytest.approx(
            max(0.0, np.abs(y[:, j]).max() - bound), rel=1e-4, abs=1e-9
        )  # the grid misses kinks at the knots by some 1e-4 N m
        assert each.relative == pytest.approx(each.amount / bound)
    sizes = [each.relative for each in solution.excess]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == solution.violation


def test_an_equation_at_all_times_is_met_by_more_knots():
    """The tip keeps to a line all the way; at all samples of a spline that is more than it can meet."""
    mech, start = library.planar_2r(), [-0.9, 0.9]
    x0 = tip(mech, np.array([start]))[0, 0]
    line = Position("forearm", target=[x0, None, None], tool=[0.5, 0.0, 0.0], at="all", name="line")
    solution = arm(start=start, end={"shoulder": 0.4}, constraints=[line], samples=21).solve()
    assert solution.converged, solution.reason
    assert np.abs(tip(mech, dense(solution).q)[:, 0] - x0).max() <= 1e-3 * 1.0


@pytest.mark.parametrize("solver", ["slsqp", "gauss-newton"])
def test_an_equation_that_the_start_keeps_is_none(solver):
    """By the rounding of its differences it depended on the motion there, and both solvers ended where they began."""
    mech, posture = library.arm7(), np.array([0, 0.6, 0, 1.2, 0, 0.6, 0])
    pose = mech.forward_kinematics(posture)[-1]
    upright = pose[:3, :3].T @ [0.0, 0.0, 1.0]

    def tilt(at):
        return (at.mech.forward_kinematics(at.q)[:, -1, :3, :3] @ upright)[:, :2]

    constraints = [Constraint(tilt, lower=0, upper=0, name="cup")]
    constraints.append(Position("link7", target=pose[:3, 3] + [-0.1, 0.2, 0.1]))
    options = {"start": posture, "duration": 1.5, "objective": Effort(), "points": 8, "limits": None}
    carried = Problem(mech, constraints=constraints, **options)
    solution = carried.solve(solver=solver, feasibility=5e-3, iterations=60, progress=False)
    assert solution.iterations > 30 and solution.cost < 400, solution.reason  # of the guess, which stays, it is 1413
    assert np.abs(tilt(dense(solution, 2001))).max() < 0.1


@pytest.mark.slow
def test_starts_are_ranked_by_what_they_are_at_any_time():
    """Without refinement a start that cuts the disc deeper costs less; it does not win."""
    solution = arm(constraints=[DISC], samples=8).solve(starts=5, seed=2, refine=False)
    by_rank = min(solution.outcomes, key=lambda o: (not o.feasible, o.cost if o.feasible else o.violation))
    assert solution.cost == by_rank.cost and solution.violation == by_rank.violation
    assert all(o.feasible == (o.violation <= o.feasibility) for o in solution.outcomes)
    assert any(o.sampled <= 1e-6 < o.violation for o in solution.outcomes)


def test_shooting_with_few_steps_is_refined_until_its_integration_is_right():
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    options = {"duration": 2.0, "start": [-1.0, 0.0], "end": {"elbow": 0.5}, "objective": Effort(), "points": 8}
    coarse = Problem(mech, steps=10, **options)
    solution = coarse.solve()
    assert solution.feasible and solution.refined["steps"] > 10
    rough = coarse.solve(refine=False)
    assert not rough.feasible and rough.excess[0].kind == "integration"
    assert rough.excess[0].joint == "shoulder"


def test_steps_end_at_the_phases_that_constraints_ask_for():
    """Their number was chosen for the knots, so that "no sample stands there", after a refinement of the steps too."""
    mech = library.acrobot().with_drive(active=["elbow"])
    right = Position("forearm", lower=[0.1, None, None], tool=(0.5, 0, 0), at=0.3)
    options = {"duration": 1.5, "start": [-UP, 0.0], "end": {"elbow": 0.5}, "objective": Effort(), "points": 9}
    assert Problem(mech, constraints=[right], **options).steps == 510
    solution = Problem(mech, constraints=[right], steps=10, **options).solve(progress=False)
    assert solution.converged and solution.refined["steps"] % 10 == 0
    pose = mech.forward_kinematics(solution.at(0.3 * 1.5).q[0])[1]
    assert (pose @ [0.5, 0.0, 0.0, 1.0])[0] > 0.1 - 1e-6


@pytest.mark.slow
def test_coarse_stages_are_not_refined_and_the_last_one_is():
    stages = [Stage(points=8), Stage(points=12)]
    solution = arm(constraints=[DISC]).solve(stages=stages)
    assert solution.feasible and len(solution.spline.control_points) == 12
    assert not solution.outcomes[0].changes and solution.outcomes[-1].changes


@pytest.mark.parametrize("bad", [{"feasibility": 0.0}, {"feasibility": -1.0}, {"refine": "no"}])
def test_what_is_asked_of_feasibility_is_checked(bad):
    with pytest.raises(ValueError if "feasibility" in bad else TypeError):
        arm().solve(**bad)


# ---------------------------------------------------------------- impulses at knots


def test_splines_with_impulses_are_refused():
    """Of degree one, an effort of 36.5 was called converged where the rates' jumps at the knots made it 77.8."""
    knots = np.array([0, 0, 0, 0, 0.5, 0.5, 0.5, 1, 1, 1, 1])
    for make in (
        lambda: arm(degree=1),
        lambda: arm(degree=1, objective=Time(), duration=(0.5, 2.0), limits={"torque": 30.0}),
        lambda: arm(degree=2, objective=Jerk()),
        lambda: arm(degree=3, knots=knots, points=7),
        lambda: acrobot(degree=1, points=9),
        lambda: Problem(
            library.acrobot("rods").with_drive(active=["elbow"]), duration=1.0, start=[0, 0], objective=Time(), degree=1
        ),
    ):
        with pytest.raises(InvalidValue, match="impulses at their knots; take degree="):
            make()
    with pytest.raises(InvalidValue, match=r"mine.*impulses"):
        arm(degree=1, objective=Running(lambda at: at.tau[:, 0] ** 2, name="mine")).solve()


def test_what_has_no_impulse_is_taken():
    polygon = arm(degree=1, objective=Time(), duration=(0.1, 2.0), limits={"velocity": 2.0}).solve()
    assert polygon.duration == pytest.approx(1.6 / 2.0 * 9 / 7, rel=1e-6)  # it rests in two of nine segments
    assert arm(degree=2).solve().converged
    torques = Problem(library.acrobot("rods"), duration=1.0, start=[-1.0, 0.0], objective=Effort(), degree=1)
    held = 0.5 * 9.81 * math.cos(1.0)  # torque of the elbow that holds the start
    assert torques.programme().cost(torques.first_guess()) == pytest.approx(held**2 / 2, rel=1e-12)


def test_a_bound_that_is_exceeded_beyond_all_numbers_is_so_infinitely(recwarn):
    """Divided by a small scale the largest number overflowed, with a warning."""
    wall = Constraint(lambda at: np.where(at.q[:, :1] > 1.5, np.inf, 1e-3 * at.q[:, :1]), upper=1e-3)
    two = {"duration": 1.0, "start": [0, 0], "end": [1, 1], "points": 8, "objective": Effort(), "constraints": [wall]}
    problem = Problem(library.planar_2r(), **two)
    found = residuals(problem, problem.first_guess() + 1.0)
    assert found.worst == np.inf and not recwarn.list


def test_what_cannot_be_refined_is_answered_all_the_same(monkeypatch):
    """Of a closed mechanism the refined splines may ask for what its loops cannot follow: that raised NonFinite."""
    run = starts._Run

    def coarse_alone(problem, x0, start, orders, begin, before=None):
        if before is not None:
            raise NonFinite("guess: the other joints cannot follow")
        return run(problem, x0, start, orders, begin)

    monkeypatch.setattr(starts, "_Run", coarse_alone)
    solution = arm(constraints=[DISC]).solve()
    assert not solution.feasible and not solution.converged
    assert solution.reason.startswith("infeasible: disc is missed by") and "cannot follow" in solution.reason


def test_a_converged_answer_is_not_given_up_for_one_beside_the_constraints():
    """A tolerance of 1e-5 leaves 2e-6: a point on the way at 9e-5, of a lower cost, was taken, as not converged."""

    class OfNumbers:
        """Cost and violation are the variables."""

        def cost(self, x):
            return x[0]

        def violation(self, x):
            return x[1]

    best = starts.Outcome(0, np.array([1.0, 9e-5]), 1.0, np.inf, True, "converged", sampled=9e-5)
    starts._settle(OfNumbers(), np.array([1.1, 2e-6]), best)
    assert best.converged and best.cost == 1.1
