"""Exciting motions: from their logs parameters are told better, by the factor that is predicted."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.mechanism import library
from cstormpy.optimal import excitation, exciting_motion

LIMITS = {"position": 1.5, "velocity": 3.0, "torque": 40.0}
NOISE = np.array([0.5, 0.2])
UNKNOWN = ["upper_arm", "forearm", "*.damping"]


def exciting(**options):
    good = {"duration": 4.0, "limits": LIMITS, "points": 9, "noise": NOISE, "samples": 41, "progress": False}
    return exciting_motion(library.planar_2r(), UNKNOWN, **{**good, **options})


@pytest.fixture(scope="module")
def found():
    return exciting()


def log_of(mech, motion, rate, rng):
    t = np.arange(0.0, motion.duration, 1.0 / rate)
    q, qd, qdd = motion.evaluate(t)
    tau = mech.inverse_dynamics(q, qd, qdd)
    return {"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": tau + NOISE * rng.normal(size=tau.shape)}


def test_the_motion_keeps_to_its_limits_and_rests_at_its_ends(found):
    assert found.solution.converged and found.solution.feasible
    t = np.linspace(0.0, 4.0, 2001)
    q, qd, qdd = found.motion.evaluate(t)
    tau = library.planar_2r().inverse_dynamics(q, qd, qdd)
    for values, most in zip((q, qd, tau), LIMITS.values(), strict=True):
        assert np.abs(values).max() <= most * (1.0 + 1e-3)
    for row in (0, -1):
        np.testing.assert_allclose([q[row], qd[row], qdd[row]], 0.0, atol=1e-9)


@pytest.mark.parametrize("criterion", ["determinant", "condition"])
def test_gradients_of_the_information_are_exact(criterion):
    """Columns of the regressor are differences of mechanisms; that of friction has an edge as wide as its velocity."""
    mech = library.planar_2r()
    names = ["upper_arm", "forearm.mass", "elbow.friction"]
    problem = exciting_motion(
        mech, names, duration=2.0, limits={"velocity": 3.0}, points=8, samples=5, degree=4, criterion=criterion,
        iterations=1, progress=False,
    ).solution.problem  # fmt: skip
    checked = problem.check_gradients(tolerance=1e-7)
    assert checked.ok, str(checked)


def test_confidence_grows_by_the_factor_that_is_predicted(found):
    """Parameters from many noisy logs of both motions scatter as the two covariances say."""
    mech, rate, rng = library.planar_2r(), 25.0, np.random.default_rng(3)
    scatter, told = [], []
    for motion in (found.guess, found.motion):
        fits = [cs.identify(mech, log_of(mech, motion, rate, rng), UNKNOWN, physical=False) for _ in range(60)]
        scatter.append(np.std([fit.base_values for fit in fits], axis=0, ddof=1))
        told.append(excitation(mech, motion, UNKNOWN, noise=NOISE).standard_errors(rate))
        np.testing.assert_allclose(np.mean([fit.standard_errors for fit in fits], axis=0), told[-1], rtol=0.05)
    predicted, seen = np.log(told[0] / told[1]), np.log(scatter[0] / scatter[1])
    assert predicted.mean() > 0.5  # a factor of 1.6 and more in every standard error, on average
    # the logarithm of each standard deviation is known to 1/√(2·59), of their ratio to √2 of that
    np.testing.assert_allclose(seen, predicted, atol=4.0 * np.sqrt(1.0 / 59))
    assert seen.mean() == pytest.approx(predicted.mean(), abs=0.15)


def test_the_least_condition_number_is_less_than_that_of_the_greatest_determinant(found):
    other = exciting(criterion="condition")
    assert other.condition < found.condition < found.first.condition
    assert found.log_det > other.log_det > found.first.log_det
    assert "condition" in str(other) and "log det" in str(other)


def test_a_motion_of_one_joint_does_not_excite_the_other():
    points = np.zeros((9, 2))
    points[3:6, 0] = 1.0
    mech, motion = library.planar_2r(), cs.BSpline.uniform(points, duration=2.0, degree=5)
    still = excitation(mech, motion, UNKNOWN)
    assert still.condition > 1e7
    # errors came from the rounding of a singular matrix, or there was an error of NumPy
    q, qd, qdd = motion.evaluate(np.linspace(0.0, 2.0, 400))
    log = {"q": q, "qd": qd, "qdd": qdd, "tau": mech.inverse_dynamics(q, qd, qdd)}
    identified = cs.identify(mech, log, UNKNOWN, physical=False)
    untold = np.isinf(identified.standard_errors)
    assert untold.any() and not untold.all()
    np.testing.assert_array_equal(np.isinf(still.standard_errors(100.0)), untold)
    rest = excitation(mech, cs.BSpline.uniform(0 * points, duration=2.0, degree=5), "*.damping")
    assert np.isinf(rest.standard_errors(100.0)).all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"limits": {"position": 1.0}}, InvalidValue, "nothing limits how fast"),
        ({"limits": None}, InvalidValue, "nothing limits how fast"),
        ({"noise": 0.0}, InvalidValue, "noise"),
        (
            {"noise": [0.1]},
            ShapeError,
            r"noise: expected shape \(2,\), .* of each joint, .*: shoulder, elbow",
        ),
        ({"criterion": "det"}, UnknownName, "determinant"),
        ({"duration": (1.0, 2.0)}, ShapeError, "duration"),
        ({"start": [3.0, 0.0]}, InvalidValue, "outside of its limits"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(options, error, words):
    with pytest.raises(error, match=words):
        exciting(**options)


def test_a_joint_without_motor_is_refused_by_name():
    with pytest.raises(InvalidValue, match="'shoulder' has no motor"):
        exciting_motion(library.acrobot(), duration=1.0, limits=LIMITS)
    # was overwritten without a word
    with pytest.raises(InvalidValue, match="exciting motion: end: it ends in the posture in which it starts"):
        exciting_motion(library.planar_2r(), duration=2.0, limits={"velocity": 3.0}, end=[1.0, 0.0])
    with pytest.raises(InvalidType, match="BSpline"):
        excitation(library.planar_2r(), [0, 1])


@pytest.mark.slow
def test_an_arm_of_seven_joints_is_excited():
    """43 base parameters, and the gradient by as many passes."""
    arm = library.arm7()
    found = exciting_motion(arm, duration=8.0, limits={"position": 2.0, "velocity": 2.0}, points=10, iterations=12,
                            samples=41, progress=False)  # fmt: skip
    assert found.log_det > found.first.log_det + 20.0
    assert found.standard_errors(100.0).mean() < 0.5 * found.first.standard_errors(100.0).mean()
