"""What users may get wrong in an optimal control problem: refused with its name before anything runs, or told."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.loading import load
from cstormpy.mechanism import Limits, library
from cstormpy.optimal import (
    AtEnd,
    Constraint,
    Effort,
    EnergySpent,
    Jerk,
    Load,
    Mixed,
    Pose,
    Position,
    Problem,
    Running,
    Terminal,
    Time,
)


def arm(**options):
    good = {"duration": 1.0, "start": [0, 0], "end": [1, 0], "objective": Effort(), "points": 8, "samples": 11}
    return Problem(library.planar_2r(), **{**good, **options})


def acrobot(**options):
    good = {"duration": 1.0, "start": [-1, 0], "objective": Effort(), "points": 8, "steps": 20}
    return Problem(library.acrobot().with_drive(active=["elbow"]), **{**good, **options})


def acrobot_by_torque(**options):
    good = {"duration": 1.0, "start": [-1, 0], "objective": Effort(), "points": 8, "steps": 20}
    return Problem(library.acrobot(), **{**good, **options})


def nan_at(t):
    return lambda at: np.where(at.t > t, np.nan, 1.0)


WRONG = {
    "a duration of zero": (lambda: arm(duration=0.0), InvalidValue, "duration: must be greater than zero|positive"),
    "a negative bound": (lambda: arm(duration=(-1.0, 2.0)), InvalidValue, "duration"),
    "bounds that fall": (lambda: arm(duration=(2.0, 1.0)), InvalidValue, "duration: the bounds must rise"),
    "four durations": (lambda: arm(duration=(1, 2, 3, 4)), InvalidValue, "duration: expected T"),
    "an endless duration": (lambda: arm(duration=(1.0, math.inf)), CstormError, "duration"),
    "no objective": (lambda: arm(objective=3.0), InvalidType, "Effort\\(\\) \\+ .*, got 3.0"),
    "an option misspelt": (lambda: arm(sample=3), UnknownName, "did you mean 'samples'"),
    "an option missing": (
        lambda: Problem(library.planar_2r(), start=[0, 0], objective=Effort()),
        InvalidType,
        "duration= is missing",
    ),
    "a start of three": (lambda: arm(start=[0, 0, 0]), ShapeError, "start: expected 2 numbers"),
    "a start that is NaN": (lambda: arm(start=[0, math.nan]), NonFinite, "start, joint 'elbow'"),
    "a start by a wrong name": (lambda: arm(start={"sholder": 0}), UnknownName, "did you mean 'shoulder'"),
    "a start that is text": (lambda: arm(start="up"), InvalidType, "start: expected a posture"),
    "the jerk of a joint that is integrated": (
        lambda: acrobot(limits={"jerk": {"shoulder": 1.0}}),
        InvalidValue,
        "jerk limit: joint 'shoulder' is on no spline, so that its jerk is not known; that of 'elbow' is",
    ),
    "the jerk where nothing is on a spline": (
        lambda: acrobot_by_torque(limits={"jerk": 1.0}),
        InvalidValue,
        "jerk limit: joint 'shoulder' is on no spline.*no joint's is",
    ),
    "the least jerk of a joint that is integrated": (
        lambda: acrobot(objective=Jerk(["shoulder"])),
        InvalidValue,
        r"Jerk\(\): joint 'shoulder' is on no spline",
    ),
    "a start by joints and by channels": (
        lambda: arm(start={"q": [0, 0], "elbow": 0.0}),
        InvalidValue,
        "start: give joints by their names, or 'q', 'qd' and 'qdd', not both",
    ),
    "a start by channels and a wrong name": (
        lambda: arm(start={"q": [0, 0], "x": 0.0}),
        UnknownName,
        "start: joint 'x' does not exist",
    ),
    "steps of a motion that is not integrated": (lambda: arm(steps="many"), InvalidType, "steps: expected a whole"),
    "samples of a motion that is integrated": (lambda: acrobot(samples=math.nan), CstormError, "samples: expected"),
    "collocation of a motion that is integrated": (lambda: acrobot(collocation=-1), InvalidValue, "collocation"),
    "exact by a word": (lambda: arm(exact="no"), InvalidType, "exact: expected True or False, got 'no'"),
    "one number for stages": (lambda: arm().solve(stages=2), InvalidType, "stages: expected a list of Stage, got 2"),
    "too few points": (lambda: arm(points=3), InvalidValue, "control points"),
    "fewer points than conditions": (
        lambda: arm(points=4, start=([0, 0], [0, 0], [0, 0])),
        InvalidValue,
        "5 conditions on one joint .* need at least 5 control points",
    ),
    "no freedom": (lambda: arm(points=4), InvalidValue, "points: the conditions at the ends fix all 4 control points"),
    "a start outside the limits": (
        lambda: arm(limits={"position": {"shoulder": (0.5, 2.0)}}),
        InvalidValue,
        r"start: joint 'shoulder' has the position 0, outside of its limits \(0.5, 2\)",
    ),
    "an end outside the limits": (lambda: arm(limits={"position": (-0.5, 0.5)}), InvalidValue, "end: joint 'shoulder'"),
    "limits that contradict": (lambda: arm(limits={"torque": (3, -3)}), InvalidValue, "torque limit of joint"),
    "a negative limit": (lambda: arm(limits={"velocity": -1}), InvalidValue, "velocity limit of joint"),
    "limits of a wrong kind": (lambda: arm(limits={"torqe": 3}), UnknownName, "did you mean 'torque'"),
    "limits of a wrong joint": (lambda: arm(limits={"torque": {"elbo": 3}}), UnknownName, "did you mean 'elbow'"),
    "a limit of a motor that is none": (
        lambda: acrobot(limits={"torque": {"shoulder": 3.0}}),
        InvalidValue,
        "torque limit of joint 'shoulder': it has no motor, .* joints with a motor: 'elbow'",
    ),
    "limits that are text": (lambda: arm(limits="none"), UnknownName, "limits 'none'"),
    "NaN as a limit": (
        lambda: arm(limits={"torque": math.nan}),
        NonFinite,
        "torque limit of joint 'shoulder': expected a finite number, got nan",
    ),
    "a term of a wrong joint": (lambda: arm(objective=Effort(["elbo"])), UnknownName, "did you mean 'elbow'"),
    "a target of a wrong joint": (lambda: arm(objective=Terminal(q={"elbo": 1})), UnknownName, "elbow"),
    "a constraint on a wrong link": (
        lambda: arm(constraints=[Position("foream", target=[0, 0, 0])]),
        UnknownName,
        "did you mean 'forearm'",
    ),
    "a load on a wrong link": (lambda: arm(loads=Load("foream")), UnknownName, "did you mean 'forearm'"),
    "something else as a load": (lambda: arm(loads=[3]), InvalidType, r"loads\[0\]"),
    "something else as a constraint": (lambda: arm(constraints=[3]), InvalidType, r"constraints\[0\]"),
    "a guess of a wrong shape": (lambda: arm(guess=np.zeros((3, 2))), ShapeError, "guess: expected shape"),
    "a guess that is NaN": (lambda: arm(guess=np.full((8, 2), np.nan)), NonFinite, "guess"),
    "knots of a wrong number": (lambda: arm(knots=np.linspace(0, 1, 13)), ShapeError, "knots: 8 points of degree 3"),
    "a wrong transcription": (lambda: arm(transcription="direct"), UnknownName, "transcription 'direct'"),
    "no motor at all": (
        lambda: Problem(library.pendulum().with_drive(actuated=[]), duration=1.0, start=[0], objective=Effort()),
        InvalidValue,
        "nothing to choose",
    ),
    "a start that integration needs": (
        lambda: acrobot(start={"elbow": 0.0}),
        InvalidValue,
        "start: joint 'shoulder' is integrated from its start",
    ),
    "an odd number of steps": (lambda: acrobot(steps=21).solve(), InvalidValue, "steps: must be even"),
    "a phase between steps": (
        lambda: acrobot(constraints=[Position("forearm", upper=[1, 1, 1], at=[0.123])]).solve(),
        InvalidValue,
        "no sample stands there",
    ),
    "an objective that is NaN": (
        lambda: arm(objective=Running(nan_at(0.5))).solve(),
        NonFinite,
        r"objective: Running\(\) is not finite at t = 0.5",
    ),
    "an end that is NaN": (
        lambda: arm(objective=AtEnd(lambda at: at.q[:, 0] * np.nan)).solve(),
        NonFinite,
        r"AtEnd\(\)",
    ),
    "an objective of a wrong shape": (
        lambda: arm(objective=Running(lambda at: at.q)).solve(),
        ShapeError,
        r"Running\(\): the function's answer: expected shape \(11|Running\(\): the function's answer: expected",
    ),
    "a gradient of a wrong shape": (
        lambda: arm(objective=Running(lambda at: at.q[:, 0], lambda at: {"q": np.ones(2)})).solve(),
        ShapeError,
        r"Running\(\): the gradient, 'q': expected shape",
    ),
    "a gradient to a wrong channel": (
        lambda: arm(objective=Running(lambda at: at.q[:, 0], lambda at: {"qdot": at.q})).solve(),
        UnknownName,
        "channel 'qdot'",
    ),
    "a gradient that is no mapping": (
        lambda: arm(objective=Running(lambda at: at.q[:, 0], lambda at: at.q)).solve(),
        InvalidType,
        "expected a mapping from channels to arrays",
    ),
    "a gradient that is NaN": (
        lambda: arm(objective=Running(lambda at: at.q[:, 0], lambda at: {"q": at.q * np.nan})).solve(),
        NonFinite,
        "the gradient, 'q'",
    ),
    "a constraint that is NaN": (
        lambda: arm(constraints=[Constraint(nan_at(0.5), upper=1.0, name="mine")]).solve(),
        NonFinite,
        "constraint 'mine': is not finite",
    ),
    "bounds of a wrong number": (
        lambda: arm(constraints=[Constraint(lambda at: at.q, upper=[1.0, 2.0, 3.0], name="mine")]).solve(),
        InvalidValue,
        "constraint 'mine': upper has 3 numbers for 2 functions",
    ),
    "bounds that contradict": (lambda: Constraint(nan_at(1), 2.0, 1.0), InvalidValue, "the lower bound 2.0 is above"),
    "a phase of two": (lambda: Position("forearm", target=[0, 0, 0], at=2.0), InvalidValue, "phases from 0"),
    "a place that is none": (
        lambda: Position("forearm", target=[0, 0, 0], at="middle"),
        InvalidValue,
        "expected one of",
    ),
    "no bounds": (lambda: Position("forearm"), InvalidValue, "give a target, or lower or upper bounds"),
    "bounds of no direction": (lambda: Position("forearm", lower=[None] * 3), InvalidValue, "leaves x, y and z free"),
    "a target and bounds": (lambda: Position("forearm", [0, 0, 0], lower=[0, 0, 0]), InvalidValue, "not both"),
    "a pose that is none": (lambda: Pose("forearm", np.ones((4, 4))), CstormError, "pose"),
    "a mask that is none": (lambda: Pose("forearm", np.eye(4), mask="all"), UnknownName, "mask 'all' does not exist"),
    "a function that is none": (lambda: Running(3), InvalidType, "function: expected a function"),
    "u beyond one": (lambda: Mixed(1.5), InvalidValue, "u: expected a number from 0 to 1"),
    "terms multiplied": (lambda: Effort() * Time(), InvalidType, "added and scaled"),
    "a weight that is NaN": (lambda: math.nan * Effort(), NonFinite, "weight of an objective"),
    "no smoothing": (lambda: EnergySpent(smooth=0.0), InvalidValue, "smooth"),
    "a target of nothing": (lambda: Terminal(), InvalidValue, "Terminal: give q= or qd="),
    "a wrong solver": (lambda: arm().solve(solver="snopt"), UnknownName, "solver 'snopt'"),
    "no starts": (lambda: arm().solve(starts=0), InvalidValue, "starts"),
    "a stage that is none": (lambda: arm().solve(stages=[3]), InvalidType, "stages: expected Stage"),
    "x of a wrong shape": (lambda: arm().check_gradients(x=np.zeros(3)), ShapeError, r"x: expected shape \(8,\), got"),
    "x of a motion": (lambda: arm().motion(np.zeros(3)), ShapeError, r"x: expected shape \(8,\), got \(3,\)"),
    "x of a programme": (lambda: arm().programme(np.zeros((2, 3))), ShapeError, r"x: expected shape \(8,\), got"),
    "a seed that is text": (lambda: arm().solve(seed="one"), InvalidType, "seed: expected a whole number"),
    "a negative seed": (lambda: arm().solve(seed=-1), InvalidType, "seed: expected a whole number"),
    "a number as executor": (lambda: arm().solve(executor=4), InvalidType, "executor: expected one of concurrent"),
    "a callback of an executor": (lambda: watched_elsewhere(), InvalidValue, "callback: is not called by what an exec"),
    "a part of a phase": (lambda: arm(collocation=3.5), InvalidType, "collocation: expected a whole number"),
    "a phase of no dimension": (lambda: arm(collocation=np.array(0.5)), InvalidType, "collocation: expected a whole"),
    "a time that is text": (lambda: arm().solve().tau("now"), InvalidType, "t: expected a number"),
    "a time that is NaN": (lambda: arm().solve().tau(math.nan), NonFinite, "t: expected a finite number"),
    "frames that are text": (lambda: arm().solve().plot(frames="all"), InvalidType, "frames: expected a whole number"),
}


def watched_elsewhere():
    """The callback was never called, without a word."""
    with ThreadPoolExecutor(1) as pool:
        return arm().solve(executor=pool, callback=lambda now: None)


@pytest.mark.parametrize("case", WRONG)
def test_is_refused(case):
    make, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        make()


def test_a_duration_may_be_a_number_of_numpy():
    """It was a TypeError, "iteration over a 0-d array"."""
    assert arm(duration=np.array(1.5)).low_duration == 1.5


@pytest.mark.parametrize("limit", [(None, 5.0), (-np.inf, 5.0), (-5.0, None)])
def test_a_torque_may_be_limited_to_one_side(limit):
    """Random starts were NaN: "control points: expected finite numbers, got nan"."""
    problem = Problem(
        "acrobot",
        duration=1.0,
        start=[-np.pi / 2, 0],
        objective=Effort() + 10 * Terminal(q={"shoulder": -1.2}),
        limits={"torque": {"elbow": limit}},
        points=6,
        steps=100,
    )
    assert np.isfinite(problem.bounds).all()
    found = problem.solve(starts=3, iterations=30, progress=False)
    assert found.feasible and len(found.outcomes) == 3
    free = problem.replace(limits=None).solve(progress=False)  # whose torque stays within 3 N m
    assert found.cost == pytest.approx(free.cost, rel=1e-4)


def test_a_duration_is_found_where_the_ends_fix_all_control_points():
    """It was a ValueError of SciPy; the motion is the cubic from rest to rest."""
    found = arm(points=4, duration=(0.4, 3.0), limits={"acceleration": 6.0}, objective=Time()).solve()
    assert found.converged
    assert found.duration == pytest.approx(1.0, abs=1e-4)


def test_one_place_asked_twice_points_to_the_solver_that_takes_it():
    level = Position("forearm", target=[0.4, None, None], tool=[0.2, 0, 0], at=0.5)
    problem = Problem(
        "planar_2r", duration=1.0, start=[0, 0], end=[1, 0.5], objective=Effort(), points=8, constraints=[level] * 2
    )
    assert problem.solve(solver="slsqp").reason.endswith("depend on one another; solver='gauss-newton' takes such")
    assert problem.solve(solver="gauss-newton").converged
    chosen = problem.solve()  # had to be asked for
    assert chosen.converged and chosen.solver == "gauss-newton"
    assert "solver           gauss-newton: slsqp ended with: the equations depend on one another\n" in str(chosen)


def test_limits_that_can_not_be_kept_are_told_with_how_much():
    """1 N m does not hold the arm up: the answer says so, and by how much of the limit it is exceeded."""
    solution = arm(limits={"torque": 1.0}).solve()
    assert not solution.feasible
    assert not solution.converged
    assert solution.reason.startswith("infeasible: torque is missed by 1")
    assert solution.violation > 1.0
    assert "INFEASIBLE" in repr(solution)
    assert "INFEASIBLE" in str(solution)
    assert solution.excess[0].amount >= solution.violation


def test_a_wrong_gradient_is_found_by_the_check_and_the_search_points_to_it():
    backwards = Running(lambda at: at.q[:, 0] ** 2, lambda at: {"q": -2.0 * at.q * [1, 0]}, name="mine")
    problem = arm(objective=Effort() + 1000 * backwards)
    check = problem.check_gradients()
    assert not check.ok
    with pytest.raises(InvalidValue, match="its gradient is off by 2 of the largest derivative"):
        check.raise_if_wrong()
    solution = problem.solve(iterations=300)
    assert not solution.converged
    assert solution.reason.endswith("check_gradients() tells whether a gradient of your own is wrong")
    assert arm().check_gradients().ok


def test_what_the_user_raises_comes_through():
    """In the objective, its gradient or a callback, at the first motion or later: his own error, nothing of ours."""

    def fails(at):
        raise LookupError("my own")

    calls = []

    def fails_later(at):
        calls.append(at)
        return at.q[:, 0] ** 2 if len(calls) < 9 else fails(at)

    for objective in (Running(fails), Running(lambda at: at.q[:, 0], fails), Running(fails_later)):
        with pytest.raises(LookupError, match="my own"):
            arm(objective=Effort() + objective).solve()
    with pytest.raises(LookupError, match="my own"):
        acrobot().solve(starts=3, callback=fails)


def test_a_place_out_of_reach_is_told_with_its_distance():
    tip = Position("forearm", target=[5.0, 0.0, None], tool=[0.5, 0.0, 0.0], name="far away")
    solution = arm(constraints=tip, end=None).solve()
    assert not solution.feasible
    amount = float(solution.reason.removeprefix("infeasible: far away is missed by ").split(";")[0])
    at = solution.samples.q[-1]
    pose = library.planar_2r().forward_kinematics(at)[1]
    assert amount == pytest.approx(np.abs(pose[:2, :3] @ [0.5, 0, 0] + pose[:2, 3] - [5, 0]).max(), rel=1e-2)


def test_functions_that_do_not_take_what_they_are_called_with_are_named():
    for make in (Running, AtEnd, Constraint):
        with pytest.raises(
            InvalidType, match=r"^function: is called as function\(samples\), of which q, qd, tau, t are"
        ):
            make(lambda q, qd: q)
    with pytest.raises(InvalidType, match=r"^gradient: is called as gradient\(samples\)"):
        Running(lambda at: at.q[:, 0], gradient=lambda: {})
    with pytest.raises(InvalidType, match=r"^callback: is called as callback\(progressed\)"):
        arm().solve(callback=lambda: True)


def test_three_numbers_are_asked_for_by_the_name_they_were_given_by():
    """A target that was no list was refused as "lower"."""
    with pytest.raises(InvalidType, match=r"^target: expected three numbers \(x, y, z\), got 0.5$"):
        Position("forearm", target=0.5)
    with pytest.raises(ShapeError, match=r"^target: expected three numbers \(x, y, z\), got 2$"):
        Position("forearm", target=[1, 1])
    with pytest.raises(InvalidType, match=r"^upper: expected three numbers"):
        Position("forearm", upper=1.0)


@pytest.mark.parametrize(("bounds", "words"), [((0.5, 1.0), "0.5 s, the shortest that"), ((0.5, 4.0), "0.51")])
def test_a_duration_at_its_bound_is_told(bounds, words):
    """Of a rod of 1 kg and 1 m, bang-bang by 5 N m: 2 (1/15)^½ = 0.5164 s."""
    mech = library.pendulum().with_gravity([0, 0, 0])
    fast = Problem(mech, duration=bounds, start=[0], end=[1], objective=Time(), limits={"torque": 5.0})
    solution = fast.replace(limits=None).solve(progress=False) if bounds[1] == 1.0 else fast.solve(progress=False)
    assert f"duration         {words}" in str(solution)
    assert ("allowed" in str(solution)) == (bounds[1] == 1.0)


def test_a_solution_for_its_motion_is_told_of_it():
    solution = arm().solve(progress=False)
    with pytest.raises(InvalidType, match=r"guess: expected a BSpline, as solution.motion, or .*, got a Solution$"):
        arm(guess=solution).first_guess()


def test_a_file_of_a_solution_says_how_it_is_loaded(tmp_path):
    arm().solve(progress=False).save(tmp_path / "reach.json")
    with pytest.raises(FileFormatError, match=r"is a solution; load it with optimal.Solution.load\(path, problem\)$"):
        load(tmp_path / "reach.json")


def test_limits_of_the_mechanism_bind_unless_others_are_given():
    mech = library.planar_2r()
    limited = mech.with_parameters({"shoulder.limits": Limits(position=(-1, 2), velocity=3.0, torque=20.0)})
    options = {"duration": 1.0, "start": [0, 0], "end": [1, 0], "objective": Effort()}
    assert [limit.kind for limit in Problem(limited, **options).limits] == ["position", "velocity", "torque"]
    assert Problem(limited, limits=None, **options).limits == []
    own = Problem(limited, limits={"torque": 5.0}, **options).limits
    assert [limit.kind for limit in own] == ["torque"]
    assert own[0].columns == ["shoulder", "elbow"]


def test_objectives_print_and_add():
    assert repr(sum([Time(), Effort()])) == "Time() + Effort()"
    assert repr(-(2 * Time()) - Effort() / 2 + Jerk()) == "-2 Time() - 0.5 Effort() + Jerk()"
    assert repr(-(Time() - Effort() / 2)) == "-Time() + 0.5 Effort()"


anything = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 60), st.floats(), st.text(max_size=4), st.lists(st.floats(), max_size=4),
    st.dictionaries(st.sampled_from(["shoulder", "q", "torque", "x"]), st.floats() | st.none(), max_size=2),
    st.tuples(st.floats(), st.floats()),
)  # fmt: skip
NAMES = (
    "duration", "start", "end", "objective", "limits", "constraints", "loads", "points", "degree", "transcription",
    "collocation", "guess", "spread", "box", "knots", "samples",
)  # fmt: skip


@settings(max_examples=60)
@given(name=st.sampled_from(NAMES), value=anything)
def test_anything_is_taken_or_refused_with_an_error_of_ours(name, value):
    try:
        problem = arm(**{name: value})
        problem.programme()
    except CstormError:
        pass


def test_options_of_a_problem_that_is_made_stay():
    problem = arm()
    for name in ("duration", "limits", "mech", "points"):
        with pytest.raises(
            CstormError, match=rf"'{name}' cannot be set; problem.replace\({name}=…\) is another problem"
        ):
            setattr(problem, name, 2.0)
    assert problem.replace(duration=2.0).low_duration == 2.0
