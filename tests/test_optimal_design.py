"""Design variables of optimal control: numbers of the mechanism that are chosen together with its motion."""

import numpy as np
import pytest

from cstormpy.errors import FileFormatError, InvalidType, InvalidValue, UnknownName
from cstormpy.mechanism import library
from cstormpy.mechanism.component_values import with_components
from cstormpy.optimal import (
    Acceleration,
    AtEnd,
    Constraint,
    Effort,
    Load,
    PointAcceleration,
    PointVelocity,
    Pose,
    Position,
    Problem,
    Running,
    Solution,
    Terminal,
    Tied,
    Time,
)
from cstormpy.optimal.differences import STENCIL


def rod(length):
    """A rod of 0.5 kg, with a motor of which it keeps the inertia."""
    about = 0.5 * length**2 / 12 + 0.01
    return {"forearm.com[0]": length / 2, "forearm.inertia.yy": about, "forearm.inertia.zz": about}


def arm(**options):
    good = {
        "duration": (0.3, 1.0), "start": [0, -2], "end": [1, -1], "points": 8, "samples": 9,
        "objective": Time() + 0.1 * Effort() + AtEnd(lambda at: np.full(1, at.design["rod"] ** 2)),
        "design": {
            "rod": Tied((0.2, 1.0), rod), "forearm.mass": (0.1, 3.0), "forearm.pose.x": (-0.2, 0.2),
            "forearm.pose.rz": (-0.5, 0.1, 0.5), "elbow.stiffness": (0.0, 1.0, 5.0), "gravity[0]": (-1, 1),
        },
    }  # fmt: skip
    return Problem(library.xiang_two_link(), **{**good, **options})


def acrobot(active=("elbow",), **options):
    good = {
        "duration": (0.5, 2.0), "start": [-1, 0.3], "points": 6, "steps": 20,
        "objective": Effort() + 3 * Terminal(q={"shoulder": 1}) + 0.1 * Acceleration(),
        "design": {"leg": Tied((0.5, 2.0, 3.0), rod), "shoulder.damping": (0, 1), "forearm.pose.x": (-0.2, 0.2)},
    }  # fmt: skip
    return Problem(library.acrobot().with_drive(active=active), **{**good, **options})


TOOL = [0.3, 0.1, 0.0]


def error(problem):
    """Return the largest error of the gradients to the design, against differences of fourth order."""
    x = problem.first_guess() + 0.05 * np.random.default_rng(0).normal(size=problem.transcription.size)
    at = problem.transcription.of_design
    x[at] = problem.design.guess + 0.02 * problem.design.sizes
    programme = problem.programme(x)
    exact = np.vstack([programme.gradient(x), programme.jacobian(x)])[:, at]
    multipliers = np.random.default_rng(1).normal(size=len(programme.lower))
    both = programme.lagrangian_gradient(x, 0.7, multipliers)[at]
    np.testing.assert_allclose(both, np.concatenate([[0.7], multipliers]) @ exact, rtol=1e-10, atol=1e-12)
    columns = []
    for k in range(at.start, at.stop):
        step = 1e-3 * problem.transcription.variable_sizes[k]
        total = 0.0
        for place, weight in STENCIL:
            moved = x.copy()
            moved[k] += place * step
            total = total + weight / step * np.append(programme.cost(moved), programme.constraints(moved))
        columns.append(total)
    off = np.abs(exact - np.stack(columns, axis=1))
    return float((off / (1.0 + np.abs(exact).max(axis=0))).max())


def constraints(last):
    return [
        Position("forearm", upper=[0.9, None, None], at="all", tool=TOOL),
        PointVelocity("forearm", upper=[9, 9, None], at="all", tool=TOOL),
        PointAcceleration("forearm", upper=[99, 99, None], at=0.5, tool=TOOL),
        Pose("forearm", pose=np.eye(4), mask="planar", at="end"),
        Constraint(lambda at: at.mech.forward_kinematics(at.q)[:, 1, 0, 3], upper=9.0, name="own"),
        last,
    ]


@pytest.mark.parametrize("problem", [arm, acrobot])
def test_gradients_to_an_axis_hold_off_the_guess_too(problem):
    """What a design sets is made a unit vector of: they were as if it were one, off by its length at the bounds."""
    design = {"elbow.axis[0]": (0.3, 0.75, 0.8), "shoulder.axis[1]": (-0.5, 0.5)}
    assert error(problem(design=design, duration=0.5, objective=Effort() + Terminal(q=[1, 1]), limits=None)) < 1e-8


@pytest.mark.parametrize("fixed", [pytest.param(True, marks=pytest.mark.slow), False])
def test_gradients_of_a_motion_on_splines_follow_the_design(fixed):
    """Every kind of number, tied ones too, against differences of the whole problem."""
    own = Constraint(
        lambda at: at.q[:, 0] * at.design["rod"],
        gradient=lambda at: {
            "q": at.q * 0 + [at.design["rod"], 0],
            "design": np.outer(at.q[:, 0], np.eye(6)[0]),
        },
        upper=9.0,
        name="with its gradient",
    )
    problem = arm(
        constraints=constraints(own) if fixed else [own],
        loads=[Load("forearm", force=[1, 2, 0], point=[1, 0, 0], frame="world")],
        **({"duration": 0.5, "objective": Effort()} if fixed else {}),
    )  # fmt: skip
    assert error(problem) < 1e-8


@pytest.mark.parametrize("active", [(), ("elbow",)])
@pytest.mark.parametrize("duration", [1.0, (0.5, 2.0)])
def test_gradients_of_a_motion_that_is_integrated_follow_the_design(active, duration):
    """The derivatives are those of the steps that were taken, so that they are exact with twenty of them."""
    running = Running(lambda at: at.q[:, 0] ** 2 * at.design["leg"])
    problem = acrobot(
        active, duration=duration, constraints=constraints(Position("forearm", lower=[-9, None, None])),
        objective=Effort() + running + 3 * Terminal(q={"shoulder": 1}),
        loads=[Load("forearm", force=[1, 2, 0], point=[1, 0, 0], frame="world")],
    )  # fmt: skip
    assert error(problem) < 1e-8


@pytest.mark.parametrize("make", [arm, acrobot])
def test_the_motion_of_a_design_is_that_of_the_mechanism_made_by_hand(make):
    problem = make()
    x, at = problem.first_guess(), problem.transcription.of_design
    x[at] += 0.1 * problem.design.sizes
    values = dict(zip(problem.design.names, x[at].tolist(), strict=True))
    length = values.pop(problem.design.names[0])
    by_hand = with_components(problem.mech, {**values, **rod(length)})
    plain = problem.replace(mech=by_hand, design=None, objective=Effort())
    there = plain.motion(np.delete(x, np.arange(at.start, at.stop)))
    here = problem.motion(x)
    for channel in ("q", "qd", "qdd", "tau"):
        np.testing.assert_allclose(getattr(here, channel), getattr(there, channel), atol=1e-10)


def test_a_spring_is_chosen_that_bears_the_weight():
    """A lone mass on a vertical slide: with a spring that bears it at rest, no effort is left.

    The weight is m g, the spring gives k (q - rest) of it; at q = 0 the least effort has k rest = m g.
    """
    from cstormpy.mechanism import Link, Mechanism, Prismatic

    joint = Prismatic([0, 1, 0], name="slide", stiffness=100.0)
    mech = Mechanism([Link("body", None, joint, mass=2.0)], gravity=[0, -10.0, 0], actuated=["slide"])
    problem = Problem(
        mech, duration=1.0, start=[0], end=[0], objective=Effort(), design={"slide.rest": (0.0, 0.5)}, points=6
    )
    found = problem.solve(progress=False)
    assert found.parameters == pytest.approx({"slide.rest": 0.2}, abs=1e-6)
    assert found.mechanism.joint("slide").rest == pytest.approx(0.2, abs=1e-6)
    assert found.cost < 1e-6
    assert "slide.rest" in str(found)


@pytest.fixture(scope="module")
def solved():
    problem = arm(objective=Effort(), duration=0.5, design={"rod": Tied((0.2, 1.0), rod)}, limits=None)
    return problem, problem.solve(progress=False)


def test_the_best_design_is_best_among_its_neighbours(solved):
    problem, found = solved
    assert found.converged
    for step in (-0.05, 0.05):
        length = np.clip(found.parameters["rod"] + step, 0.2, 1.0)
        other = problem.replace(mech=with_components(problem.mech, rod(length)), design=None).solve(progress=False)
        assert other.cost >= found.cost - 1e-9
    same = problem.replace(mech=found.mechanism, design=None).solve(progress=False)
    assert same.cost == pytest.approx(found.cost, rel=1e-6)


def test_a_solution_is_saved_with_its_design(solved, tmp_path):
    problem, found = solved
    found.save(tmp_path / "found.json")
    again = Solution.load(tmp_path / "found.json", problem)
    assert again.parameters == found.parameters
    assert again.cost == pytest.approx(found.cost, rel=1e-12)
    np.testing.assert_array_equal(again.mechanism.inertial_numbers, found.mechanism.inertial_numbers)
    with pytest.raises(FileFormatError, match="another mechanism"):
        Solution.load(tmp_path / "found.json", problem.replace(mech=library.planar_2r()))
    with pytest.raises(FileFormatError, match="x: is not of this problem"):
        Solution.load(tmp_path / "found.json", problem.replace(design=None))
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(FileFormatError):
        Solution.load(tmp_path / "other.json", problem)


def test_a_solution_is_loaded_with_the_tolerance_that_it_was_found_by(tmp_path):
    """One of a looser tolerance could be saved, and not be loaded: it was called infeasible."""
    problem = Problem(
        library.planar_2r(), duration=1.5, start=[0, 0.3], end=[1, 1], objective=Effort(), points=12, samples=11,
        limits={"velocity": 0.97},
    )  # fmt: skip
    found = problem.solve(feasibility=0.05, progress=False)
    assert found.feasible and found.violation > 1e-3
    found.save(tmp_path / "found.json")
    again = Solution.load(tmp_path / "found.json", problem)
    assert again.feasible and again.feasibility == 0.05 and again.violation == found.violation
    assert again.refined.keys() == found.refined.keys() == {"samples"}  # not what was asked for as well


def test_random_starts_try_other_designs(solved):
    problem, _ = solved
    drawn = [problem.random_guess(np.random.default_rng(k))[problem.transcription.of_design] for k in range(5)]
    assert np.ptp(drawn) > 0.2 and np.min(drawn) >= 0.2 and np.max(drawn) <= 1.0


def test_a_design_that_no_body_has_is_stepped_over():
    """Bounds may be possible while what is between them is not: the search is told so, and none of it raises."""
    hollow = Tied((-1.0, 0.9, 1.0), lambda v: {"forearm.mass": v * v - 0.25})
    problem = arm(objective=Effort(), duration=0.5, design={"hollow": hollow})
    x = problem.first_guess()
    assert problem.programme(x).finite(x)
    x[problem.transcription.of_design] = 0.1
    assert problem.transcription.evaluate(x) is None
    assert problem.programme().cost(x) == np.inf


@pytest.mark.parametrize(
    ("design", "error", "words"),
    [
        ({"forearm.mas": (1, 2)}, UnknownName, "forearm.mass"),
        ({"forearm.mass": (-1, 2)}, InvalidValue, r"'forearm.mass': the low bound -1 makes no mechanism.*mass"),
        ({"forearm.mass": (2, 3)}, InvalidValue, "forearm.mass = 0.5 is not within its bounds"),
        ({"forearm.mass": (2, 1)}, InvalidValue, "must be finite and rise"),
        ({"forearm.mass": 2}, InvalidType, r"expected \(low, high\)"),
        ({"forearm.mass": (1, np.inf)}, InvalidValue, "finite"),
        ({"forearm.wrench[0]": (0, 1)}, InvalidValue, "loads="),
        ({"elbow.limits": (0, 1)}, InvalidValue, "do not depend on limits"),
        (["forearm.mass"], InvalidType, "expected a mapping"),
        ({"a": Tied((0, 1), lambda v: {"forearm.lenght": v})}, UnknownName, "'a'.*forearm.lenght"),
        ({"a": Tied((0, 1), lambda v: {"forearm.com": v})}, InvalidValue, "name each"),
        ({"a": Tied((0, 1), lambda v: v)}, InvalidType, "expected a mapping from components"),
        ({"a": Tied((-1, 1), lambda v: {"forearm.mass": v})}, InvalidValue, "'a': the low bound -1"),
        (
            {"a": Tied((0.1, 1), lambda v: {"forearm.mass": v}), "forearm.mass": (0.1, 1)},
            InvalidValue,
            "is set by 'a' and by 'forearm.mass'",
        ),
    ],
)  # fmt: skip
def test_what_a_design_variable_may_not_be_is_refused_by_name(design, error, words):
    with pytest.raises(error, match=words):
        arm(objective=Effort(), design=design)
