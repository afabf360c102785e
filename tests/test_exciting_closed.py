"""Exciting motions of closed mechanisms: the loops stay closed, and what identification minimises is told best."""

import numpy as np
import pytest
from closeness import assert_close
from scipy.linalg import null_space
from unit_systems import in_units

import cstormpy as cs
from cstormpy.errors import InvalidValue, NonFinite
from cstormpy.identification.equations import equations_of
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Time, excitation, exciting_motion

STARTS = {"four_bar": [1.0, -0.7, 1.5], "five_bar": [2.0, -1.0, 1.1, 1.0]}
SPEED, TORQUE, DURATION = 4.0, 20.0, 4.0
NOISE = 0.1


def closed(name):
    mech = getattr(library, name)()
    return mech, mech.project(STARTS[name])[0]


# ---------------------------------------------------------------- gradients
@pytest.mark.parametrize("sigma", [[0.3, 1.0, 0.1, 0.5], [1.0, 1e-6, 1e-6, 1e-6]], ids=["plain", "hardly pushed"])
def test_equations_turn_with_the_posture_as_differences_say(sigma):
    """Of four motors with two freedoms; where only one has noise worth the name, one direction counts as pushed."""
    mech, sigma = library.five_bar().with_drive(actuated=library.five_bar().names), np.array(sigma)
    rng = np.random.default_rng(0)
    q, _ = mech.project(STARTS["five_bar"] + 0.2 * rng.normal(size=(20, 4)))
    q += 0.01 * rng.normal(size=q.shape)  # an open one is taken as it is
    X, way, h = rng.normal(size=(20, 4, 3)), rng.normal(size=q.shape), 1e-5

    def total(k):
        return (equations_of(mech, q + k * h * way).weighed(X, sigma) ** 2).sum()

    found = (equations_of(mech, q).turned(X @ np.swapaxes(X, 1, 2), sigma) * way).sum()
    wanted = (8 * (total(1) - total(-1)) - (total(2) - total(-2))) / (12 * h)
    assert abs(found - wanted) < 1e-7 * abs(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["determinant", "condition"])
@pytest.mark.parametrize("motors", [None, ["left_shoulder", "left_elbow", "right_shoulder"]], ids=["just", "more"])
def test_gradients_of_the_information_are_exact(criterion, motors):
    """Through the base regressor, the posture's equations, and the joints that follow."""
    mech, start = closed("five_bar")
    mech = mech if motors is None else mech.with_drive(actuated=motors)
    problem = exciting_motion(
        mech, ["left_fore", "*.damping"], start=start, duration=2.0, limits={"velocity": 3.0, "torque": 200.0},
        points=8, samples=5, degree=4, criterion=criterion, noise=[0.3, 0.2, 0.1, 0.2], iterations=1, progress=False,
    ).solution.problem  # fmt: skip
    programme, x, rng = problem.programme(), problem.first_guess(), np.random.default_rng(0)
    way, h = rng.normal(size=x.shape), 1e-4
    cost = {k: programme.cost(x + k * h * way) for k in (-2, -1, 1, 2)}
    wanted = (8 * (cost[1] - cost[-1]) - (cost[2] - cost[-2])) / (12 * h)
    assert abs(programme.gradient(x) @ way - wanted) < 1e-7 * np.abs(programme.gradient(x)).max()
    checked = problem.check_gradients(tolerance=1e-7)
    assert checked.ok, str(checked)


# ---------------------------------------------------------------- freedoms on splines
@pytest.mark.slow
def test_freedoms_on_splines_find_what_all_joints_on_splines_do():
    """One spline of the crank, and the others follow, or three splines that are closed by equations."""
    mech, start = closed("four_bar")
    asked = {"duration": (0.5, 1.0, 2.0), "start": start, "objective": Effort() + Time(), "limits": {"velocity": 10.0},
             "end": {"crank": 2.0}, "design": {"coupler_rod.mass": (0.5, 1.0)}}  # fmt: skip
    one = Problem(mech, transcription="freedoms", points=10, **asked)
    checked = one.check_gradients(tolerance=1e-7)
    assert checked.ok, str(checked)
    found, other = one.solve(progress=False), Problem(mech, points=20, **asked).solve(progress=False)
    assert found.converged and found.problem.driven.tolist() == [0]
    assert found.cost == pytest.approx(other.cost, rel=1e-5)
    assert np.abs(mech.closure(found.at(np.linspace(0.0, found.duration, 301)).q)).max() < 1e-9


@pytest.mark.parametrize("units", [(1e3, 1.0, 1.0), (1e6, 1e6, 1e3), (1e-6, 1e-12, 1e-6)])
def test_the_same_joint_is_free_in_other_units(units):
    """In millimetres the slider, which has no motor, was on the spline, as its column of the constraints is small."""
    mech = library.slider_crank()
    start = mech.project([0.6, -0.3, 1.0])[0]
    asked = {"objective": Effort(), "points": 8, "transcription": "freedoms"}
    here = Problem(mech, duration=1.0, start=start, end={"crank": 1.6}, **asked)
    other, size = in_units(mech, *units)
    there = Problem(other, duration=units[2], start=start * size, end={"crank": 1.6}, **asked)
    assert there.driven.tolist() == here.driven.tolist() == [0]
    assert there.freedoms.volume == pytest.approx(here.freedoms.volume, rel=1e-12)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_the_spline_of_all_joints_is_closed_whatever_its_degree(degree):
    """Those of degree 2 never came, and those of degree 3 after 15 s, as full matrices of all points were solved."""
    mech, start = closed("four_bar")
    problem = Problem(
        mech, duration=1.0, start=start, end={"crank": 2.0}, objective=Effort(), points=8, transcription="freedoms",
        degree=degree,
    )  # fmt: skip
    x, crank = problem.first_guess(), problem.transcription.spline(problem.first_guess())
    motion, t = problem.transcription.motion(x), np.linspace(0.0, 1.0, 1001)
    q, qd, _ = motion.evaluate(t)
    assert np.abs(mech.closure(q)).max() < 1e-9
    assert_close(q[:, 0], crank(t)[:, 0], 1e-12)
    assert np.abs(mech.closure_jacobian(q) @ qd[..., None]).max() < 1e-5
    assert_close(qd[[0, -1]], np.zeros((2, 3)), 1e-5)


def test_what_freedoms_do_not_know_is_refused():
    mech, start = closed("four_bar")
    asked = {"duration": 1.0, "start": start, "objective": Effort(), "transcription": "freedoms", "points": 8}
    for changed, words in (
        ({"end": {"rocker": 1.0}}, "end: the joints 'crank' are on splines and the others follow"),
        ({"start": {"rocker": 1.5}}, "start: the joints 'crank' are on splines and the others follow"),
        ({"end": mech.project(start, [0.0, 1.0, 0.0])}, "end: the joints 'crank' are on splines"),
        ({"cuts": "all"}, "cuts: the loops are closed with transcription='freedoms'"),
        ({"start": None}, "start: with transcription='freedoms' a posture tells which way"),
        ({"design": {"coupler_rod.pose.x": (-0.1, 0.1)}}, "design: moves what the loops close"),
        ({"mech": mech.with_drive(actuated=[])}, "forces of its loops; give it more motors"),  # not cuts=, as above
        ({"mech": library.planar_2r(), "start": [0.0, 0.0]}, "'freedoms' is of mechanisms with loops"),
    ):
        given = {"mech": mech, **asked, **changed}
        with pytest.raises(InvalidValue, match=words):
            Problem(given.pop("mech"), **given)
    with pytest.raises(NonFinite, match="the other joints cannot follow 'rocker' all along it"):
        Problem(mech.with_drive(actuated=["rocker"]), **{**asked, "end": {"rocker": 4.0}}).programme()


# ---------------------------------------------------------------- exciting motions
@pytest.fixture(scope="module", params=["four_bar", "five_bar"])
def excited(request):
    mech, start = closed(request.param)
    limits = {"velocity": SPEED, "torque": TORQUE}
    found = exciting_motion(
        mech, start=start, duration=DURATION, limits=limits, noise=NOISE, points=10, samples=61, criterion="condition",
        progress=False,
    )  # fmt: skip
    return mech, start, found


@pytest.mark.slow
def test_the_motion_is_closed_within_limits_and_rests_at_its_ends(excited):
    mech, start, found = excited
    assert found.solution.feasible
    q, qd, qdd = found.motion.evaluate(np.linspace(0.0, DURATION, 3001))
    assert np.abs(mech.closure(q)).max() < 1e-9
    A, rate = mech.closure_jacobian(q), mech.closure_jacobian_rate(q, qd)
    assert np.abs(A @ qd[..., None]).max() < 1e-6
    assert np.abs(A @ qdd[..., None] + rate @ qd[..., None]).max() < 1e-3
    assert np.abs(qd).max() <= SPEED * (1.0 + 1e-3)
    assert np.abs(mech.inverse_dynamics(q, qd, qdd)).max() <= TORQUE * (1.0 + 1e-3)
    for row in (0, -1):
        np.testing.assert_allclose([q[row], qd[row], qdd[row]], [start, 0 * start, 0 * start], atol=1e-9)


def random_motions(mech, start, joints, rng, count):
    """Yield closed motions within limits, of sines in the free joints from rest to rest, row by row."""
    t = np.linspace(0.0, DURATION, 141)
    h, made = t[1], 0
    while made < count:
        free = start[joints] + (
            np.sin(np.pi * t / DURATION)[:, None] ** 3
            * sum(rng.normal(size=len(joints)) * np.sin(k * t[:, None] + rng.uniform(0, 6)) for k in (1, 2, 4))
            * rng.uniform(0.1, 0.8)
        )
        q = [start]
        try:
            for row in free:
                begin = q[-1].copy()
                begin[joints] = row
                q.append(mech.project(begin, hold=[mech.names[k] for k in joints])[0])
        except InvalidValue:
            continue
        q = np.array(q[1:])
        qd, qdd = np.gradient(q, h, axis=0), np.gradient(np.gradient(q, h, axis=0), h, axis=0)
        q, qd, qdd = q[3:-3], qd[3:-3], qdd[3:-3]
        q, qd = mech.project(q, qd)
        A, rate = mech.closure_jacobian(q), mech.closure_jacobian_rate(q, qd)
        off = (A @ qdd[..., None] + rate @ qd[..., None])[..., 0]
        qdd = qdd - np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(A, off, strict=True)])
        if np.abs(qd).max() < SPEED and np.abs(mech.inverse_dynamics(q, qd, qdd)).max() < TORQUE:
            made += 1
            yield q, qd, qdd


def condition(mech, found, q, qd, qdd):
    """Return the condition number of the base regressor of the freedoms, in units of the motors' noise, row by row."""
    Y = mech.without_loops().regressor(q, qd, qdd)
    numbers = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    names = [f"{link.name}.{number}" for link in mech.links for number in numbers]
    kept = [names.index(parameter.names[0]) for parameter in found.base.parameters]
    rows, motors = [], mech.actuated_mask
    for y, A in zip(Y[..., kept], mech.closure_jacobian(q), strict=True):
        N = null_space(A)
        rows.append(np.linalg.solve(N[motors].T, N.T @ y))  # as many motors as freedoms
    return np.linalg.cond(np.concatenate(rows))


@pytest.mark.slow
def test_the_motion_tells_more_than_random_ones_do(excited):
    """By a computation of its own, from motions of other functions of time within the same limits."""
    mech, start, found = excited
    t = np.linspace(0.0, DURATION, 401)
    q, qd, qdd = found.motion.evaluate(t)
    best = condition(mech, found, q, qd, qdd)
    assert best == pytest.approx(found.condition, rel=0.02)
    others = random_motions(mech, start, found.solution.problem.driven, np.random.default_rng(0), 8)
    assert best < 0.5 * min(condition(mech, found, *motion) for motion in others)


@pytest.mark.slow
def test_noisy_logs_of_the_motion_give_smaller_errors_as_foretold(excited):
    mech, _, found = excited
    rate, rng, seen = 50.0, np.random.default_rng(1), []
    t = np.arange(0.0, DURATION, 1.0 / rate)
    truth = found.base.matrix @ mech.inertial_numbers
    for motion in (found.guess, found.motion):
        q, qd, qdd = motion.evaluate(t)
        tau = np.array(mech.inverse_dynamics(q, qd, qdd))
        off = []
        for _ in range(40):
            noisy = tau + NOISE * rng.normal(size=tau.shape) * mech.actuated_mask
            fit = cs.identify(mech, {"q": q, "qd": qd, "qdd": qdd, "tau": noisy}, physical=False)
            off.append(fit.base_values - truth)
        seen.append(np.sqrt(np.mean(np.square(off), axis=0)))
        told = excitation(mech, motion, noise=NOISE).standard_errors(rate)
        # of 40 logs a root mean square is known to 1/√80
        assert_close(np.log(seen[-1] / told), 0.0 * told, 4.0 / np.sqrt(80.0))
    assert (seen[1] < seen[0]).all()
    assert np.log(seen[0] / seen[1]).mean() > 0.7  # a factor of 2 on average


@pytest.mark.slow
def test_a_gear_excites_as_the_single_joint_that_it_is():
    """Behind a gear the second joint follows exactly, and the information is that of a regressor by hand."""
    mech = library.planar_2r().replace(loops=[cs.Coupling("elbow", "shoulder", ratio=2.0)])
    mech = mech.with_drive(actuated=["shoulder"])
    found = exciting_motion(mech, duration=3.0, limits={"velocity": 6.0, "position": 2.0}, points=9, progress=False)
    q, qd, qdd = found.motion.evaluate(np.linspace(0.0, 3.0, 2001))
    np.testing.assert_allclose(q[:, 1], 2.0 * q[:, 0], atol=1e-9)
    assert np.abs(q).max() < 2.0 * 1.001 and np.abs(qd).max() < 6.0 * 1.001
    Y = mech.without_loops().regressor(q, qd, qdd)
    one = (Y[:, 0] + 2.0 * Y[:, 1])[:, [1, 2, 9, 11, 12]]  # the power of both along the shoulder, base columns
    M = np.trapezoid(one[:, :, None] * one[:, None, :], dx=3.0 / 2000, axis=0)
    assert found.log_det == pytest.approx(np.linalg.slogdet(M)[1], abs=1e-3)
    assert found.solution.converged and found.log_det > found.first.log_det + 2.0


@pytest.mark.slow
def test_the_platform_of_a_stewart_platform_is_told():
    mech = library.stewart_platform()
    found = exciting_motion(
        mech, ["platform"], duration=3.0, limits={"velocity": 3.0, "torque": 4000.0}, points=9, samples=31,
        iterations=4, progress=False,
    )  # fmt: skip
    q, qd, _ = found.motion.evaluate(np.linspace(0.0, 3.0, 501))
    assert np.abs(mech.closure(q)).max() < 1e-9 and np.abs(qd).max() < 3.0 * 1.001
    assert found.log_det > found.first.log_det + 5.0


def test_what_cannot_be_excited_is_refused():
    limits = {"velocity": 3.0}
    with pytest.raises(InvalidValue, match=r"the motors \(left_shoulder\) drive not all freedoms"):
        exciting_motion(library.five_bar().with_drive(actuated=["left_shoulder"]), duration=1.0, limits=limits)
    with pytest.raises(InvalidValue, match="exciting motion: cuts: the forces of the loops follow"):
        exciting_motion(library.five_bar(), duration=1.0, limits=limits, cuts="all")
    for option, value in (("base", (np.zeros(6), np.zeros(6))), ("design", {"left_fore.mass": (0.5, 2.0)})):
        with pytest.raises(InvalidValue, match=f"exciting motion: {option}: what is told is of"):  # took no part in it
            exciting_motion(library.five_bar(), duration=1.0, limits=limits, **{option: value})
    with pytest.raises(InvalidValue, match="start: loop pin: y: misses closure by"):
        exciting_motion(library.four_bar(), duration=1.0, limits=limits, start=[1.0, 0.0, 0.0])
    blade = cs.Constraint(lambda q: [[1.0, -1.0 + 0.0 * q[0]]], "rate", "blade")
    with pytest.raises(InvalidValue, match="exciting motion: loop blade: is of rates"):
        exciting_motion(library.planar_2r().replace(loops=[blade]), duration=1.0, limits=limits)


@pytest.mark.slow
def test_without_a_start_it_begins_where_the_motors_hold_it():
    """The posture in the middle, that of the least coordinates, was refused, as it is singular for the motors."""
    mech = library.three_rrr()
    found = exciting_motion(mech, duration=2.0, limits={"velocity": 4.0}, points=8, iterations=1, progress=False)
    q = found.motion(0.0)
    assert np.abs(mech.closure(q)).max() < 1e-9
    A = mech.closure_jacobian(q)
    motors = np.isin(mech.names, mech.actuated)
    assert np.linalg.cond(A[:, ~motors]) < 20.0


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"velocity": 4.0}, {"velocity": 6.0, "acceleration": 40.0}], ids=["slow", "fast"])
def test_the_search_does_not_end_where_it_begins(limits):
    """The first steps went to where the joints that follow have many times their limits, and there was no way back.

    Where the line search ends goes with the processor: limits may be missed by a little, as is told.
    """
    found = exciting_motion(library.five_bar(), duration=3.0, limits=limits, seed=1, progress=False)
    assert found.solution.violation < 0.01, found.solution.reason
    assert found.first.log_det < 40.0 and found.log_det > 60.0
