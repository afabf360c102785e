"""What a search says of itself: wrong gradients, derivatives to the duration, and that it was interrupted."""

import numpy as np
import pytest

from cstormpy.mechanism import library
from cstormpy.optimal import AtEnd, Constraint, Effort, EnergySpent, Problem, Running
from cstormpy.optimal.ipopt import has_ipopt

SOLVERS = ["slsqp", pytest.param("ipopt", marks=pytest.mark.skipif(not has_ipopt(), reason="cyipopt is not installed"))]


def arm(**options):
    given = {"duration": 1.0, "start": [0, 0], "end": [1, 0], "objective": Effort(), "points": 8, "samples": 21}
    return Problem(library.planar_2r(), **{**given, **options})


def acrobot(**options):
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    return Problem(
        mech, duration=1.0, start=[-1.0, 0.0], end={"elbow": 0.4}, objective=Effort(), points=8, steps=100, **options
    )


def too_coarse(solution):
    """Return whether a cost is not that of the motion; if so, it is not called converged and says why."""
    is_wrong = abs(solution.dense_cost - solution.cost) > 0.05 * abs(solution.cost)
    said = not solution.converged and "integrals of the cost are too coarse" in solution.reason
    assert said or not is_wrong
    return is_wrong


def test_a_cost_of_a_few_nodes_is_not_that_of_the_motion():
    """A moment that counts and that no node of the integral sees."""
    moment = Running(lambda at: 1e3 * np.exp(-(((at.t - 0.5) / 2e-3) ** 2)), lambda at: {}, name="moment")
    assert too_coarse(arm(objective=Effort() + moment).solve(progress=False))
    assert not too_coarse(arm(objective=Effort()).solve(progress=False))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_cost_that_is_no_number_between_its_nodes_is_told():
    """A barrier that a motion leaps over ended the search in an error that told of the guess."""
    barrier = Running(lambda at: np.log(at.q[:, 0]), name="barrier")
    leaping = arm(start=[0.1, 0.1], end=[1, 0.5], objective=Effort() - 0.1 * barrier, points=10, samples=201)
    solution = leaping.solve(progress=False)
    assert solution.samples.q[:, 0].min() < 0.0 and not solution.converged
    assert solution.reason.startswith("the integrals of the cost are too coarse: ") and np.isnan(solution.dense_cost)


def test_a_cost_without_a_minimum_is_told():
    """It was -3e47, "a singular matrix in the quadratic subproblem"."""
    for solver in ("slsqp", "gauss-newton"):
        solution = arm(objective=-Effort()).solve(solver=solver, progress=False)
        assert not solution.converged and "the cost falls without end, to -" in solution.reason


def test_energy_that_is_given_back_says_nothing_of_the_motion():
    """The nodes of its integral did, and -3e8 was "converged"; whether a search gets there hangs on the last digits."""
    energy = EnergySpent(recover=1.0) + 1e-3 * Effort()
    too_coarse(arm(duration=1.5, start=[0, 0.3], end=[1, 1], points=12, objective=energy).solve(progress=False))
    alone = arm(start=[0, -2], end=[1, -1], points=10, samples=41, objective=EnergySpent(recover=1.0))
    too_coarse(alone.solve(progress=False))  # -3e46 ended in "a singular matrix" alone


# ---------------------------------------------------------------- wrong gradients


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("make", [arm, acrobot])
def test_no_search_converges_by_a_wrong_gradient(make, solver):
    """With Ipopt such a search was called converged at 2027, where SLSQP said 311 and that it was stuck."""
    wrong = Running(lambda at: at.q[:, 0] ** 2, lambda at: {"q": -2.0 * at.q * [1, 0]}, name="mine")
    solution = make().replace(objective=Effort() + 100 * wrong).solve(solver=solver, iterations=60)
    assert not solution.converged
    assert "mine" in solution.reason and "'q'" in solution.reason
    assert solution.reason.endswith("check_gradients() tells whether a gradient of your own is wrong")


@pytest.mark.parametrize("solver", SOLVERS)
def test_nor_by_that_of_a_constraint_or_of_the_end(solver):
    bent = Constraint(lambda at: np.sin(at.q), upper=0.9, gradient=lambda at: {"q": np.eye(2) * 1.0}, name="bent")
    bent.gradient = lambda at: {"q": np.broadcast_to(np.eye(2), (len(at), 2, 2))}  # the cosine was forgotten
    solution = arm(constraints=[bent]).solve(solver=solver)
    assert not solution.converged and "constraint 'bent'" in solution.reason
    last = AtEnd(lambda at: at.tau[:, 0] ** 2, lambda at: {"tau": 4.0 * at.tau * [1, 0]}, name="last")
    solution = arm(objective=Effort() + last).solve(solver=solver)
    assert not solution.converged and "last" in solution.reason


@pytest.mark.parametrize("solver", SOLVERS)
def test_right_gradients_are_not_suspected(solver):
    """Not where a function has an edge, nor where it leaves out the time of a motion whose duration is fixed."""
    edge = Running(lambda at: np.abs(at.q[:, 0] - 0.5), lambda at: {"q": np.sign(at.q - 0.5) * [1, 0]})
    timed = Running(lambda at: at.t * at.tau[:, 0] ** 2, lambda at: {"tau": 2 * at.t[:, None] * at.tau * [1, 0]})
    smooth = Constraint(lambda at: at.q[:, 0] ** 2, upper=9.0, gradient=lambda at: {"q": 2 * at.q * [1, 0]})
    problem = arm(objective=Effort() + 1e-3 * edge + timed, constraints=[smooth])
    assert "gradient" not in problem.solve(solver=solver, iterations=50).reason


# ---------------------------------------------------------------- the duration


def lasting(at):
    return at.q[:, 0] * at.duration**2 + at.tau[:, 1] / at.duration


def lasting_gradient(at):
    first, last = np.eye(at.q.shape[1])[[0, -1]]
    return {
        "q": np.full((len(at), 1), at.duration**2) * first,
        "tau": np.full((len(at), 1), 1.0 / at.duration) * last,
        "duration": 2.0 * at.q[:, 0] * at.duration - at.tau[:, 1] / at.duration**2,
    }


@pytest.mark.parametrize("gradient", [None, lasting_gradient])
@pytest.mark.parametrize("make", [arm, acrobot])
def test_a_function_may_read_the_duration(make, gradient):
    """Its derivative to a free duration was wrong without a word."""
    problem = make().replace(
        duration=(0.5, 2.0),
        objective=Running(lasting, gradient) + AtEnd(lasting, gradient),
        constraints=[Constraint(lasting, upper=100.0, gradient=gradient)],
    )
    check = problem.check_gradients()
    assert check.ok, str(check)


def test_a_gradient_that_forgets_the_duration_is_found():
    forgets = Running(lasting, lambda at: {k: v for k, v in lasting_gradient(at).items() if k != "duration"})
    problem = arm(duration=(0.5, 2.0), objective=Effort() + forgets)
    assert not problem.check_gradients().ok
    solution = problem.solve()
    assert not solution.converged and "'duration'" in solution.reason


# ---------------------------------------------------------------- interrupted


@pytest.mark.parametrize("make", [arm, pytest.param(acrobot, marks=pytest.mark.slow)])
def test_a_search_that_was_interrupted_says_so(make):
    """After Ctrl-C at the third of 40 starts it said "converged": what the best of two starts had said."""

    def press(now):
        if now.start == 2 and now.iteration == 2:
            raise KeyboardInterrupt

    solution = make().solve(starts=40, callback=press, seed=1)
    assert solution.reason == "interrupted" and not solution.converged
    ended = sum(outcome.ended for outcome in solution.outcomes)
    assert ended < 40
    assert f"INTERRUPTED, {ended} OF 40 STARTS HAD ENDED" in repr(solution)
    assert f"interrupted, {ended} of 40 starts had ended" in str(solution)
    if make is arm:
        assert ended == 2
        assert solution.cost == min(o.cost for o in solution.outcomes if o.feasible)


def test_one_that_a_callback_stopped_says_so_too():
    solution = arm().solve(starts=5, callback=lambda now: now.start == 1 and now.iteration == 3)
    assert solution.reason == "stopped by the user" and not solution.converged
    assert "1 OF 5 STARTS" in repr(solution)


def test_one_that_was_interrupted_in_a_stage_names_it():
    from cstormpy.optimal import Stage

    seen = []

    def press(now):
        seen.append(now.problem.options.points)
        if seen[-1] == 10:
            raise KeyboardInterrupt

    solution = arm().solve(stages=[Stage(points=8), Stage(points=10)], callback=press)
    assert solution.reason == "interrupted"
    assert "stage 2 of 2" in str(solution)
