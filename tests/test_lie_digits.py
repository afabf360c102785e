"""The exponential and its factors to rounding: against 400 digits (mpmath)."""

import functools

import mpmath
import numpy as np
import pytest
from lie_cases import AXES, EPS, VELOCITY

from cstormpy import lie
from cstormpy.lie import exponential

SMALL = [0.0, 5e-324, 1e-300, 1e-200, 1e-160, 1e-100, 1e-16, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2]
MIDDLE = [0.1, 0.5, 1.0, 1.5707963267948966, 2.0, 2.5, 3.0, np.pi - 1e-2]
NEAR_PI = [np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-12, np.pi - 1e-14, np.nextafter(np.pi, 0), np.pi]
ANGLES = SMALL + MIDDLE + NEAR_PI
BEYOND = [np.nextafter(np.pi, 4), np.pi + 1e-8, 3.5, 5.0, 6.0, 2 * np.pi - 1e-3, 2 * np.pi, 7.0, 30.0, 1e3]
big = mpmath.mp.clone()
big.prec = 1400  # more than the 1074 bits between 1 and the smallest float


def exact_exp(X):
    """exp of a big matrix by its power series, with ten squarings to shorten it."""
    halvings = max(0, int(big.ceil(big.log(big.norm(X, 1) + 1, 2)))) + 10
    term = total = big.eye(X.rows)
    small, k = X / big.mpf(2) ** halvings, 0
    while big.norm(term, 1) > big.mpf(2) ** -big.prec:
        k += 1
        term = term * small / k
        total = total + term
    for _ in range(halvings):
        total = total * total
    return total


@functools.cache
def exact_turns(phi):
    """(ω, its pose with VELOCITY) about each of AXES; angles whose sine is seen beside 1 need fewer bits."""
    with big.workprec(1400 if phi < 1e-20 else 250):
        turns = []
        for omega in (phi * axis for axis in AXES):
            X = big.matrix(lie.hat6(np.concatenate([omega, VELOCITY])).tolist())
            turns.append((omega, exact_exp(X)))
        return turns


def rounded(X):
    return np.array(X.tolist(), dtype=float)


def error(value, witness):
    """Largest difference between floats and the witness, found before any rounding."""
    difference = big.matrix(np.asarray(value).tolist()) - witness
    return max((abs(float(x)) for x in difference), default=0.0)


def exact_size(vector):
    return big.norm(big.matrix(list(vector)), 2)


def exact_factors(phi):
    """b, c, a'/φ, b'/φ, c'/φ from their closed forms, where 1400 bits outlast any cancellation of doubles >= 1e-60."""
    x = big.mpf(float(phi))
    s, a, b = big.sin(x) / x, (1 - big.cos(x)) / x**2, (x - big.sin(x)) / x**3
    c = (2 * big.sin(x) - x * (1 + big.cos(x))) / (2 * x**2 * big.sin(x))  # as printed below (8)
    slope = big.cos(x / 2) / (2 * x**2 * big.sin(x / 2)) + 1 / (4 * x * big.sin(x / 2) ** 2) - 2 / x**3
    return b, c, (s - 2 * a) / x**2, (a - 3 * b) / x**2, slope / x


@pytest.mark.parametrize("phi", [1e-60, *SMALL[6:], *MIDDLE, *NEAR_PI, *BEYOND[:5], 4.0, 4.5, 5.5])
def test_factors_keep_their_digits(phi):
    got = [
        f(np.asarray(phi))
        for f in (exponential._b, exponential._c, exponential._a_slope, exponential._b_slope, exponential._c_slope)
    ]
    # above π the slopes are differences: SERIES_ANGLE says how much they may lose there
    allowed = [3, 3, 3, 3, 3] if phi <= exponential.SERIES_ANGLE else [3, 3, 6, 10, 12]
    for value, witness, limit in zip(got, exact_factors(phi), allowed, strict=True):
        assert abs(float((big.mpf(float(value)) - witness) / witness)) <= limit * EPS


def test_factors_at_zero_are_their_limits():
    zero = np.asarray(0.0)
    got = [
        float(f(zero))
        for f in (
            exponential._sinc,
            exponential._a,
            exponential._b,
            exponential._c,
            exponential._a_slope,
            exponential._b_slope,
            exponential._c_slope,
        )
    ]
    assert got == [1, 1 / 2, 1 / 6, 1 / 12, -1 / 12, -1 / 60, 1 / 360]


@pytest.mark.parametrize("phi", ANGLES + BEYOND)
def test_exp_is_exact_to_rounding(phi):
    for omega, witness in exact_turns(phi):
        g = np.concatenate([omega, VELOCITY])
        R, turn = lie.exp_so3(omega), witness[:3, :3]
        assert error(R, turn) <= 2 * EPS * max(1, phi)
        assert error(lie.exp_se3(g), witness) <= 3 * EPS * max(1, phi)
        # the skew part holds a small angle, and must be right in its own size
        skew = big.matrix((R - R.T).tolist()) - (turn - turn.T)
        assert max(abs(float(x)) for x in skew) <= max(4 * EPS * min(phi, 1) * max(1, phi), 5e-324)


@pytest.mark.parametrize("phi", ANGLES)
def test_log_finds_axis_and_angle(phi):
    for omega, witness in exact_turns(phi):
        pose = rounded(witness)
        got, g = lie.log_so3(pose[:3, :3]), lie.log_se3(pose)
        np.testing.assert_array_equal(g[:3], got)
        assert np.linalg.norm(got) <= np.pi * (1 + EPS)
        excess = exact_size(omega) - big.pi
        if excess > -2 * EPS and got @ omega < 0:  # at π, to rounding, the turn the other way is as right
            omega = rounded(big.matrix(list(omega)) * (1 - 2 * big.pi / exact_size(omega))).ravel()
        elif phi < np.pi - 1e-13:
            assert np.abs(g[3:] - VELOCITY).max() <= 5 * EPS
        assert np.abs(got - omega).max() <= max(3 * EPS * phi, 5e-324)
        with big.workprec(250):  # and on either side of π, exp of it is the pose
            assert error(pose, exact_exp(big.matrix(lie.hat6(g).tolist()))) <= 5 * EPS


@pytest.mark.parametrize("axis", AXES + [-axis for axis in AXES])
def test_log_so3_of_half_a_turn(axis):
    got = lie.log_so3(lie.nearest_rotation(2 * np.outer(axis, axis) - np.eye(3)))
    largest = np.abs(got) >= np.abs(got).max() * (1 - 8 * EPS)  # of entries alike to rounding any may be the largest
    assert got[largest].max() > 0
    assert np.abs(got - np.sign(got @ axis) * np.pi * axis).max() <= 4 * np.pi * EPS


def test_log_so3_keeps_the_side_of_a_half_turn_about_a_coordinate_axis():
    """sin(fl(π)) = 1.2e-16 stands alone in an entry there, and tells +π from -π."""
    for omega in (np.pi * np.eye(3), -np.pi * np.eye(3)):
        np.testing.assert_array_equal(lie.log_so3(lie.exp_so3(omega)), omega)


def exact_dexp(g, side):
    """T⁻¹ dT or dT T⁻¹ by differences so small that their error is below the floats'."""
    step = big.mpf(2) ** -150
    X = big.matrix(lie.hat6(g).tolist())
    back = exact_exp(-X)
    result = big.matrix(6, 6)
    for k in range(6):
        change = big.matrix(lie.hat6(np.eye(6)[k]).tolist()) * step
        rate = (exact_exp(X + change) - exact_exp(X - change)) / (2 * step)
        twist = back * rate if side == "left" else rate * back
        for i, (row, column) in enumerate([(2, 1), (0, 2), (1, 0), (0, 3), (1, 3), (2, 3)]):
            result[i, k] = twist[row, column]
    return result


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("phi", [0, 1e-300, 1e-12, 1e-4, 1.0, 3.0, np.pi - 1e-8, np.pi, 4.0, 6.0])
def test_derivative_of_exp_is_exact_to_rounding(phi, side):
    g = np.concatenate([phi * AXES[5], VELOCITY])
    with big.workprec(500):
        witness = exact_dexp(g, side)
        back = witness**-1
    size = max(1, phi) * np.linalg.norm(VELOCITY)
    assert error(lie.dexp_se3(g, side), witness) <= 4 * EPS * size
    assert error(lie.dexp_so3(g[:3], side), witness[:3, :3]) <= 3 * EPS * max(1, phi)
    size = float(big.norm(back, big.inf)) * max(1, phi)
    assert error(lie.dexp_inv_se3(g, side), back) <= 4 * EPS * size
    assert error(lie.dexp_inv_so3(g[:3], side), back[:3, :3]) <= 4 * EPS * size


def test_derivative_of_exp_loses_digits_only_as_it_must_near_a_full_turn():
    for gap in (1e-2, 1e-4, 1e-6):
        omega = (2 * np.pi - gap) * AXES[5]
        product = lie.dexp_inv_so3(omega) @ lie.dexp_so3(omega)
        assert np.abs(product - np.eye(3)).max() <= 8 * EPS * 2 * np.pi / gap
