"""The Lie groups against 400 digits (mpmath), against the definitions, and against what must be refused.

EPS is the distance from 1 to the next float. Tolerances are multiples of it, of the size of the numbers involved:
reading a pose of entries of order 1 already costs EPS/2, so that "a few EPS" is the best that there can be.
"""

import functools
import inspect
import itertools
import re

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm, logm

from cstormpy import lie
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.lie import factors

EPS = np.finfo(float).eps
SMALL = [0.0, 5e-324, 1e-300, 1e-200, 1e-160, 1e-100, 1e-16, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2]
MIDDLE = [0.1, 0.5, 1.0, 1.5707963267948966, 2.0, 2.5, 3.0, np.pi - 1e-2]
NEAR_PI = [np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-12, np.pi - 1e-14, np.nextafter(np.pi, 0), np.pi]
ANGLES = SMALL + MIDDLE + NEAR_PI
BEYOND = [np.nextafter(np.pi, 4), np.pi + 1e-8, 3.5, 5.0, 6.0, 2 * np.pi - 1e-3, 2 * np.pi, 7.0, 30.0, 1e3]
AXES = [
    np.array(axis) / np.linalg.norm(axis)
    for axis in ([1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 1, 0], [-1, 1, -1], [0.3, -0.5, 0.8], [1e-9, 1, -1e-5])
]
VELOCITY = np.array([0.7, -1.1, 0.4])

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


# Precision


@pytest.mark.parametrize("phi", [1e-60, *SMALL[6:], *MIDDLE, *NEAR_PI, *BEYOND[:5], 4.0, 4.5, 5.5])
def test_factors_keep_their_digits(phi):
    got = [f(np.asarray(phi)) for f in (factors._b, factors._c, factors._a_slope, factors._b_slope, factors._c_slope)]
    # above π the slopes are differences: SERIES_ANGLE says how much they may lose there
    allowed = [3, 3, 3, 3, 3] if phi <= factors.SERIES_ANGLE else [3, 3, 6, 10, 12]
    for value, witness, limit in zip(got, exact_factors(phi), allowed, strict=True):
        assert abs(float((big.mpf(float(value)) - witness) / witness)) <= limit * EPS


def test_factors_at_zero_are_their_limits():
    zero = np.asarray(0.0)
    got = [
        float(f(zero))
        for f in (
            factors._sinc,
            factors._a,
            factors._b,
            factors._c,
            factors._a_slope,
            factors._b_slope,
            factors._c_slope,
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


# Laws


def vectors(n, size=3.0):
    return arrays(float, n, elements=st.floats(-size, size))


fewer = settings(max_examples=40)  # of the slow ones
twists = vectors(6)
poses = twists.map(lie.exp_se3)
wrenches = vectors(6, 10.0)


def inertia_of(numbers):
    half = numbers[4:].reshape(3, 3)
    return lie.spatial_inertia(abs(numbers[0]), numbers[1:4], half @ half.T)


inertias = vectors(13).map(inertia_of)


@fewer
@given(twists)
def test_exp_and_log_agree_with_scipy(g):
    T = lie.exp_se3(g)
    np.testing.assert_allclose(T, expm(lie.hat6(g)), atol=1e-13)
    if np.linalg.norm(g[:3]) < 3:  # scipy's has its own trouble at π
        np.testing.assert_allclose(lie.hat6(lie.log_se3(T)), logm(T).real, atol=1e-11)


@given(poses)
def test_exp_undoes_log(T):
    np.testing.assert_allclose(lie.exp_se3(lie.log_se3(T)), T, atol=50 * EPS)
    np.testing.assert_allclose(lie.exp_so3(lie.log_so3(T[:3, :3])), T[:3, :3], atol=10 * EPS)


@given(twists)
def test_log_undoes_exp_inside_the_half_turn(g):
    g[:3] *= 3.1 / max(3.1, np.linalg.norm(g[:3]))
    np.testing.assert_allclose(lie.log_se3(lie.exp_se3(g)), g, atol=100 * EPS)
    np.testing.assert_allclose(lie.inverse(lie.exp_se3(g)), lie.exp_se3(-g), atol=20 * EPS)  # (1)


@given(poses, poses, twists)
def test_adjoint_is_a_homomorphism(A, B, h):
    size = (1 + np.abs(A).max()) * (1 + np.abs(B).max())
    np.testing.assert_allclose(lie.Ad(A @ B), lie.Ad(A) @ lie.Ad(B), atol=30 * EPS * size)
    np.testing.assert_allclose(lie.Ad(lie.inverse(A)) @ lie.Ad(A), np.eye(6), atol=30 * EPS * size**2)
    np.testing.assert_allclose(
        lie.Ad(A, lie.bracket(lie.hat6(h), lie.hat6(h[::-1]))),
        lie.bracket(lie.Ad(A, lie.hat6(h)), lie.Ad(A, lie.hat6(h[::-1]))),
        atol=1e3 * EPS * size**2,
    )


@given(twists, twists, twists)
def test_bracket_is_skew_and_satisfies_jacobi(x, y, z):
    np.testing.assert_allclose(lie.ad(x, y), -lie.ad(y, x), atol=4 * 9 * 2 * EPS)
    total = lie.ad(x, lie.ad(y, z)) + lie.ad(z, lie.ad(x, y)) + lie.ad(y, lie.ad(z, x))
    np.testing.assert_allclose(total, 0, atol=12 * 27 * 4 * EPS)


@fewer
@given(poses, twists, wrenches)
def test_vector_and_matrix_forms_agree(T, g, h):
    """(9) with (10), (11) with (12), (13) with (14), and (15), as [h*, g], with (16)."""
    size = 100 * EPS * (1 + np.abs(T).max()) ** 2
    np.testing.assert_allclose(lie.Ad(T, lie.hat6(h)), lie.hat6(lie.Ad(T, h)), atol=10 * size)
    np.testing.assert_allclose(lie.Ad_star(T, lie.hat6_star(h)), lie.hat6_star(lie.Ad_star(T, h)), atol=10 * size)
    for other in (g, lie.hat6(g)):
        np.testing.assert_allclose(lie.ad(other, lie.hat6(h)), lie.hat6(lie.ad(g, h)), atol=size)
        np.testing.assert_allclose(lie.ad_star(other, lie.hat6_star(h)), lie.hat6_star(lie.ad_star(g, h)), atol=size)
    np.testing.assert_array_equal(lie.bracket(lie.hat6(g), lie.hat6(h)), lie.ad(g, lie.hat6(h)))
    np.testing.assert_array_equal(lie.exp_se3(lie.hat6(g)), lie.exp_se3(g))


@given(poses, twists, twists, wrenches)
def test_duality(T, g, v, f):
    size = 1e3 * EPS * (1 + np.abs(T).max())
    assert abs(lie.Ad_star(T, f) @ v - f @ lie.Ad(T, v)) <= size
    assert abs(lie.ad_star(g, f) @ v - f @ lie.ad(g, v)) <= size
    assert abs(lie.transform_wrench(T, f) @ lie.transform_twist(T, v) - f @ v) <= size * (1 + np.abs(T).max())


@example(np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), np.full(6, 2.22507386e-313))
@given(twists, twists)
def test_ad_is_the_derivative_of_Ad(g, h):
    """Central differences: their truncation is step²/6 |ad_g³ h|, their rounding EPS |Ad h|/step.

    Numbers too small for all their digits are rounded to the least there is.
    """
    step = EPS ** (1 / 3)
    rate = (lie.Ad(lie.exp_se3(step * g), h) - lie.Ad(lie.exp_se3(-step * g), h)) / (2 * step)
    size = np.linalg.norm(lie.ad(g), 2)
    tolerance = (step**2 / 6 * (1 + size) ** 3 + 20 * EPS / step) * 3 * np.abs(h).max()
    tolerance += 20 * np.finfo(float).smallest_subnormal / step
    np.testing.assert_allclose(rate, lie.ad(g, h), atol=tolerance, rtol=0)


@fewer
@given(twists, twists)
def test_Ad_of_exp_is_exp_of_ad(g, h):
    np.testing.assert_allclose(lie.Ad(lie.exp_se3(g)), expm(lie.ad(g)), atol=1e-12)


@given(twists, twists)
def test_derivatives_of_exp_go_together(g, dg):
    left, right = lie.dexp_se3(g, "left"), lie.dexp_se3(g, "right")
    np.testing.assert_allclose(lie.Ad(lie.exp_se3(g)) @ left, right, atol=1e-12)
    np.testing.assert_allclose(left[:3, :3], lie.dexp_so3(g[:3]), atol=0)
    np.testing.assert_allclose(left @ g, g, atol=1e-12)  # along itself a screw is constant
    np.testing.assert_allclose(lie.dexp_inv_se3(g) @ (left @ dg), dg, atol=1e-10)


def test_default_side_is_the_body_fixed_one():
    g, dg, step = np.array([0.3, -0.2, 0.9, 1, 2, 3]), np.array([1, 0.5, -0.7, 0.2, 0.1, -0.4]), EPS ** (1 / 3)
    rate = (lie.exp_se3(g + step * dg) - lie.exp_se3(g - step * dg)) / (2 * step)
    np.testing.assert_allclose(lie.body_velocity(lie.exp_se3(g), rate), lie.dexp_se3(g) @ dg, atol=1e-9)
    np.testing.assert_allclose(lie.world_velocity(lie.exp_se3(g), rate), lie.dexp_se3(g, "right") @ dg, atol=1e-9)


@given(poses, twists)
def test_body_and_world_velocity_are_one_twist_in_two_frames(T, V):
    dT = T @ lie.hat6(V)
    np.testing.assert_allclose(lie.body_velocity(T, dT), V, atol=100 * EPS * (1 + np.abs(T).max()))
    np.testing.assert_allclose(lie.world_velocity(T, dT), lie.transform_twist(T, V), atol=1e-12)


@given(poses, twists, st.floats(-3, 3))
def test_both_forms_of_a_joint(M, S, q):
    """Section 2.6: M exp(S q) = exp(S' q) M with S' = Ad_M S."""
    moved = lie.exp_se3(lie.Ad(M, S) * q) @ M
    np.testing.assert_allclose(M @ lie.exp_se3(S * q), moved, atol=1e-11)


@given(vectors(3), vectors(3))
def test_so3_is_the_rotation_part_of_se3(x, y):
    R = lie.exp_so3(x)
    np.testing.assert_allclose(lie.Ad(R, y), R @ y, atol=10 * EPS)
    np.testing.assert_array_equal(lie.Ad_star(R), R.T)
    np.testing.assert_allclose(lie.ad(x, y), np.cross(x, y), atol=10 * EPS)
    np.testing.assert_array_equal(lie.ad_star(x), lie.hat3(x).T)
    np.testing.assert_allclose(lie.vee3(lie.bracket(lie.hat3(x), lie.hat3(y))), np.cross(x, y), atol=20 * EPS)


@given(arrays(float, 6, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_hat_and_vee_are_exact_inverses_over_all_floats(g):
    np.testing.assert_array_equal(lie.vee6(lie.hat6(g)), g)
    np.testing.assert_array_equal(lie.vee6_star(lie.hat6_star(g)), g)
    np.testing.assert_array_equal(lie.vee3(lie.hat3(g[:3])), g[:3])


@fewer
@given(inertias, twists, poses)
def test_energy_and_power_do_not_depend_on_the_frame(J, V, T):
    moved, V_a = lie.transform_inertia(T, J), lie.transform_twist(T, V)
    size = 1e3 * EPS * (1 + np.abs(T).max()) ** 4 * (1 + np.abs(J).max())
    np.testing.assert_array_equal(moved, moved.T)
    assert abs(lie.kinetic_energy(moved, V_a) - lie.kinetic_energy(J, V)) <= size
    momentum = lie.transform_momentum(T, lie.momentum(J, V))
    np.testing.assert_allclose(lie.momentum(moved, V_a), momentum, atol=size)  # Kim (24)


@given(vectors(13), poses)
def test_inertia_of_a_moved_centre_of_mass_frame(numbers, T):
    """Kim (22) from Kim (21)."""
    half = numbers[4:].reshape(3, 3)
    central, mass = half @ half.T, abs(numbers[0])
    J = lie.transform_inertia(T, lie.spatial_inertia(mass, np.zeros(3), central))
    size = EPS * (1 + np.abs(T).max()) ** 2 * (1 + mass + np.abs(central).max())
    np.testing.assert_allclose(lie.spatial_inertia(mass, T[:3, 3], central, T[:3, :3]), J, atol=100 * size)


def test_energy_of_particles():
    """Kim (14): half the sum of m |v|² over the particles of a rigid body."""
    rng = np.random.default_rng(1)
    masses, points, V = rng.uniform(0.1, 2, 9), rng.normal(size=(9, 3)), rng.normal(size=6)
    com = masses @ points / masses.sum()
    arms = lie.hat3(points - com)
    inertia = (masses[:, None, None] * (np.swapaxes(arms, 1, 2) @ arms)).sum(axis=0)
    J = lie.spatial_inertia(masses.sum(), com, inertia)
    np.testing.assert_allclose(J, lie.spatial_inertia(masses, points, np.zeros((3, 3))).sum(axis=0), atol=1e-13)
    speed = V[3:] + np.cross(V[:3], points)
    np.testing.assert_allclose(lie.kinetic_energy(J, V), 0.5 * masses @ (speed**2).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(lie.momentum(J, V)[:3], (masses @ np.cross(points, speed)), atol=1e-13)


@given(vectors(13), twists, twists)
def test_rate_of_momentum_is_newton_and_euler(numbers, V, dV):
    """(18), written with lemma 2, against (20) and (21)."""
    half, m, r = numbers[4:].reshape(3, 3), abs(numbers[0]), numbers[1:4]
    I_c, J = half @ half.T, lie.spatial_inertia(m, r, half @ half.T)
    w, v, dw = V[:3], V[3:], dV[:3]
    a = dV[3:] + np.cross(w, v) + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    moment = I_c @ dw + np.cross(w, I_c @ w) + m * np.cross(r, a)
    F = lie.wrench_rate(lie.momentum(J, V), lie.momentum(J, dV), V)
    np.testing.assert_allclose(F, np.concatenate([moment, m * a]), atol=1e-10)


@fewer
@given(poses, twists, twists, twists, wrenches)
def test_rates_in_a_moving_frame_are_rates_in_a_fixed_one(T, V, X, dX, dY):
    """Lemmas 1 and 2 by their proof: carried to the fixed frame, differenced there, carried back."""
    step, Y = EPS ** (1 / 3), X[::-1].copy()

    def rate(carry, x, dx):
        ahead, behind = (T @ lie.exp_se3(s * V) for s in (step, -step))
        change = (carry(ahead, x + step * dx) - carry(behind, x - step * dx)) / (2 * step)
        return carry(lie.inverse(T), change)

    scale = (1 + np.abs(T).max()) ** 2
    tolerance = scale * (step**2 * (1 + np.linalg.norm(V)) ** 3 * 60 + 1e4 * EPS / step)
    np.testing.assert_allclose(lie.twist_rate(X, dX, V), rate(lie.transform_twist, X, dX), atol=tolerance)
    np.testing.assert_allclose(lie.wrench_rate(Y, dY, V), rate(lie.transform_wrench, Y, dY), atol=tolerance)
    np.testing.assert_allclose(lie.vector_rate(X[3:], dX[3:], V[:3]), dX[3:] + np.cross(V[:3], X[3:]), atol=1e-13)


def test_mended_rotation_is_the_nearest():
    R = lie.exp_so3([1, 2, -0.5])
    noise = 1e-3 * np.random.default_rng(0).normal(size=(20, 3, 3))
    mended = lie.nearest_rotation(R + noise)
    assert lie.is_rotation(mended, 16 * EPS)
    for other in (R, lie.exp_so3([1e-4, 0, 0]) @ mended, mended @ lie.exp_so3([0, -1e-5, 1e-5])):
        assert np.all(np.linalg.norm(mended - R - noise, axis=(1, 2)) < np.linalg.norm(other - R - noise, axis=(1, 2)))


# Arrays in and out


POSE = lie.exp_se3([0.3, -0.2, 0.9, 1, 2, 3])
TWIST, WRENCH = np.array([0.5, 0.4, -0.3, 0.2, 0.1, 0.9]), np.array([3.0, 1, 4, 1, 5, 9])
INERTIA = lie.spatial_inertia(2, [0.1, 0.2, 0.3], np.diag([1.0, 2, 2.5]))
CALLS = {
    lie.hat3: [VELOCITY],
    lie.vee3: [lie.hat3(VELOCITY)],
    lie.hat6: [TWIST],
    lie.vee6: [lie.hat6(TWIST)],
    lie.hat6_star: [WRENCH],
    lie.vee6_star: [lie.hat6_star(WRENCH)],
    lie.bracket: [lie.hat6(TWIST), lie.hat6(WRENCH)],
    lie.check_rotation: [POSE[:3, :3]],
    lie.check_pose: [POSE],
    lie.nearest_rotation: [POSE[:3, :3]],
    lie.make_pose: [POSE[:3, :3], VELOCITY],
    lie.inverse: [POSE],
    lie.exp_so3: [VELOCITY],
    lie.log_so3: [POSE[:3, :3]],
    lie.exp_se3: [TWIST],
    lie.log_se3: [POSE],
    lie.dexp_so3: [VELOCITY],
    lie.dexp_inv_so3: [VELOCITY],
    lie.dexp_se3: [TWIST],
    lie.dexp_inv_se3: [TWIST],
    lie.Ad: [POSE, TWIST],
    lie.Ad_star: [POSE, WRENCH],
    lie.ad: [TWIST, TWIST[::-1]],
    lie.ad_star: [TWIST, WRENCH],
    lie.body_velocity: [POSE, POSE @ lie.hat6(TWIST)],
    lie.world_velocity: [POSE, POSE @ lie.hat6(TWIST)],
    lie.transform_twist: [POSE, TWIST],
    lie.transform_wrench: [POSE, WRENCH],
    lie.transform_momentum: [POSE, WRENCH],
    lie.transform_inertia: [POSE, INERTIA],
    lie.spatial_inertia: [np.array(2.0), VELOCITY, np.diag([1.0, 2, 2.5]), POSE[:3, :3]],
    lie.momentum: [INERTIA, TWIST],
    lie.kinetic_energy: [INERTIA, TWIST],
    lie.vector_rate: [VELOCITY, VELOCITY[::-1], VELOCITY * 2],
    lie.twist_rate: [TWIST, TWIST[::-1], TWIST * 2],
    lie.wrench_rate: [WRENCH, WRENCH[::-1], TWIST],
}
each_call = pytest.mark.parametrize(("function", "arguments"), CALLS.items(), ids=lambda x: getattr(x, "__name__", ""))
each_argument = pytest.mark.parametrize(
    ("function", "position"), [(f, k) for f, a in CALLS.items() for k in range(len(a))]
)


def called_with(function, position, argument):
    arguments = list(CALLS[function])
    arguments[position] = argument
    return function(*arguments)


def name_of(function, position):
    return list(inspect.signature(function).parameters)[position]


def test_every_public_function_is_in_the_table():
    public = {name for name in lie.__all__ if callable(getattr(lie, name))}
    assert public == {f.__name__ for f in CALLS} | {"is_pose", "is_rotation"}


@each_call
def test_a_batch_is_its_rows(function, arguments):
    single = function(*arguments)
    for lead in ((4,), (2, 3), (0,)):
        batch = function(*(np.broadcast_to(a, lead + np.shape(a)) for a in arguments))
        np.testing.assert_allclose(batch, np.broadcast_to(single, lead + np.shape(single)), rtol=4 * EPS, atol=4 * EPS)
    for k in range(len(arguments)):  # one argument in a batch, the others single
        batch = called_with(function, k, np.stack([arguments[k]] * 3))
        np.testing.assert_allclose(batch, np.stack([single] * 3), rtol=4 * EPS, atol=4 * EPS)


@each_call
def test_arguments_are_neither_changed_nor_handed_out(function, arguments):
    given_ = [np.array(a) for a in arguments]
    result = function(*given_)
    for a, b in zip(given_, arguments, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(result, a)
    assert result.dtype == np.float64


@each_call
def test_lists_and_strided_arrays_will_do(function, arguments):
    wanted = function(*arguments)
    np.testing.assert_array_equal(function(*(np.asarray(a).tolist() for a in arguments)), wanted)
    spread = [np.repeat(a, 2, axis=-1)[..., ::2] if np.ndim(a) else a for a in arguments]
    np.testing.assert_allclose(function(*spread), wanted, rtol=4 * EPS, atol=4 * EPS)


# Refusals


@each_argument
def test_non_finite_numbers_are_refused_by_name(function, position):
    for value in (np.nan, np.inf, -np.inf):
        bad = np.stack([CALLS[function][position]] * 3)
        bad.reshape(3, -1)[1, -1] = value
        with pytest.raises(NonFinite, match=rf"^{name_of(function, position)}: .*got {value} at index \(?1\b"):
            called_with(function, position, bad)


@each_argument
def test_wrong_shapes_are_refused_by_name(function, position):
    good = np.asarray(CALLS[function][position])
    name = name_of(function, position)
    if good.ndim:
        for bad in (good[..., :-1], good[0], 1.0, [], np.zeros((2, 7)), np.zeros((7, 7))):
            got = re.escape(str(np.shape(bad)))
            with pytest.raises(ShapeError, match=rf"^{name}: expected shape \(\.\.\., .*got {got}$"):
                called_with(function, position, bad)
    with pytest.raises(ShapeError, match=rf"^{name}: expected an array of numbers, got rows of different lengths$"):
        called_with(function, position, [[1.0], [1.0, 2.0]])


@each_argument
def test_what_is_not_a_real_number_is_refused_by_name(function, position):
    for kind in (complex, str, bool, "datetime64[s]"):
        bad = np.zeros(np.shape(CALLS[function][position]), dtype=int).astype(kind)
        with pytest.raises(InvalidType, match=rf"^{name_of(function, position)}: expected real numbers"):
            called_with(function, position, bad)


@each_call
def test_batches_that_do_not_go_together_are_refused(function, arguments):
    for k, j in itertools.permutations(range(len(arguments)), 2):
        mixed = list(arguments)
        mixed[k], mixed[j] = np.stack([mixed[k]] * 2), np.stack([mixed[j]] * 3)
        with pytest.raises(ShapeError, match="batches that go together"):
            function(*mixed)


@pytest.mark.parametrize(
    "function", [f for f, a in CALLS.items() if name_of(f, 0) in ("T", "G") and f is not lie.check_pose]
)
def test_what_is_not_a_pose_is_refused_with_its_row(function):
    name, batch = name_of(function, 0), np.stack([POSE] * 3)
    for change, said in (
        (np.diag([1, 1, 1, 2.0]), "last row"),
        (np.diag([1, 1, -1, 1.0]), "reflection"),
        (np.diag([1, 1, 1 + 1e-8, 1.0]), r"\|RᵀR - 1\| = 2.0e-08 \(at most 1e-09\); nearest_rotation"),
    ):
        bad = batch.copy()
        bad[2] = bad[2] @ change
        with pytest.raises(InvalidValue, match=rf"^{name}\[2\]: .*{said}"):
            called_with(function, 0, bad)
    with pytest.raises(InvalidValue, match=rf"^{name}: "):
        called_with(function, 0, 1.1 * POSE)


@pytest.mark.parametrize("function", [lie.log_so3, lie.make_pose, lie.Ad, lie.Ad_star, lie.check_rotation])
def test_what_is_not_a_rotation_is_refused(function):
    for bad in (-np.eye(3), np.zeros((3, 3)), np.eye(3) * 1e200, np.diag([1, 1, 1 + 1e-8])):
        with pytest.raises(InvalidValue, match=r"^[RG]: expected a rotation"):
            function(bad, *CALLS[lie.make_pose][1:]) if function is lie.make_pose else function(bad)


def test_checks_take_a_tolerance_and_a_name():
    rough = lie.exp_so3([1, 2, 3]).round(6)
    assert not lie.is_rotation(rough) and lie.is_rotation(rough, 1e-5)
    assert not lie.is_rotation(rough, np.nan)
    with pytest.raises(InvalidValue, match=r"^link 'arm': pose: expected a rotation"):
        lie.check_pose(lie.make_pose(np.eye(3), [1, 2, 3]) * np.array([[1.001]] * 3 + [[1]]), name="link 'arm': pose")
    for bad in (None, "T", np.eye(3), [], [[1], [1, 2]], np.eye(4) * np.nan, 1j * np.eye(4), 2 * np.eye(4)):
        assert lie.is_pose(bad) is False
    assert lie.is_pose(np.stack([POSE] * 3)) is True
    assert lie.is_pose(np.stack([POSE, 2 * POSE])) is False


def test_matrices_outside_the_algebra_are_refused():
    skewed = lie.hat6(TWIST) + 1e-6 * np.eye(4)[[1, 0, 2, 3]]
    footed = lie.hat6(TWIST) + np.outer([0, 0, 0, 1], [0, 0, 0, 1e-6])
    for bad in (skewed, footed, np.eye(4)):
        for call in (
            lie.vee6,
            lie.vee6_star,
            lie.exp_se3,
            lie.ad,
            lambda x: lie.Ad(POSE, x),
            lambda x: lie.ad_star(TWIST, x),
            lambda x: lie.bracket(lie.hat6(TWIST), x),
            lambda x: lie.body_velocity(np.eye(4), x),
        ):
            with pytest.raises(InvalidValue, match=r"skew-symmetric|last row of zeros"):
                call(bad)
    with pytest.raises(InvalidValue, match=r"^W\[1\]: expected a skew-symmetric matrix"):
        lie.vee3([lie.hat3(VELOCITY), np.eye(3)])
    with pytest.raises(ShapeError, match=r"^y: "):
        lie.bracket(lie.hat6(TWIST), lie.hat3(VELOCITY))


def test_singular_and_meaningless_angles_are_refused():
    full_turn = 2 * np.pi * AXES[5]
    for call, bad in itertools.product((lie.dexp_inv_so3, lie.dexp_inv_se3), (full_turn, -3 * full_turn)):
        bad = bad if call is lie.dexp_inv_so3 else np.append(bad, VELOCITY)
        with pytest.raises(InvalidValue, match="multiples of 2π"):
            call(bad)
    for call in (lie.exp_so3, lie.dexp_so3, lie.dexp_inv_so3):
        for bad in ([1e16, 0, 0], [0, 1e200, 0]):
            with pytest.raises(InvalidValue, match=r"^omega\[1\]: .*without a digit left"):
                call([VELOCITY, bad])
    with pytest.raises(InvalidValue, match=r"^side: expected 'left' or 'right', got 'body'"):
        lie.dexp_so3(VELOCITY, "body")


def test_impossible_inertia_is_refused():
    with pytest.raises(InvalidValue, match=r"^mass\[1\]: expected a mass that is not negative, got -2"):
        lie.spatial_inertia([1, -2], VELOCITY, np.eye(3))
    with pytest.raises(InvalidValue, match=r"^inertia: expected a symmetric matrix"):
        lie.spatial_inertia(1, VELOCITY, np.triu(np.ones((3, 3))))
    for call in (lambda J: lie.momentum(J, TWIST), lambda J: lie.transform_inertia(POSE, J)):
        with pytest.raises(InvalidValue, match=r"^J: expected a symmetric matrix"):
            call(INERTIA + np.triu(np.ones((6, 6)), 1))
    for bad in (-np.eye(3), np.zeros((3, 3)), np.diag([1, 1, 0])):
        with pytest.raises(InvalidValue, match=r"^R: expected a matrix with det R > 0"):
            lie.nearest_rotation(bad)


def test_overflow_is_refused():
    for call in (
        lambda: lie.exp_se3([0.3, 0.3, 0.3, 1.7e308, -1.7e308, 1.7e308]),
        lambda: lie.transform_twist(lie.make_pose(np.eye(3), [1e300, 0, 0]), [0, 0, 1e10, 0, 0, 0]),
        lambda: lie.kinetic_energy(INERTIA, TWIST * 1e200),
        lambda: lie.spatial_inertia(1, [1e200, 0, 0], np.eye(3)),
    ):
        with pytest.raises(NonFinite, match="overflows"):
            call()


@given(arrays(float, 12, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_floats_give_finite_numbers_or_our_own_error(x):
    g, h = x[:6], x[6:]
    calls = [
        lambda: lie.exp_so3(g[:3]),
        lambda: lie.exp_se3(g),
        lambda: lie.dexp_se3(g),
        lambda: lie.dexp_inv_se3(g),
        lambda: lie.ad(g, h),
        lambda: lie.ad_star(g, h),
        lambda: lie.ad(g, lie.hat6(h)),
        lambda: lie.log_se3(lie.exp_se3(g)),
        lambda: lie.Ad(lie.exp_se3(g), h),
        lambda: lie.spatial_inertia(x[0], x[1:4], np.diag(x[4:7])),
        lambda: lie.twist_rate(g, h, g),
    ]
    for call in calls:
        try:
            result = call()
        except CstormError:
            continue
        assert np.isfinite(result).all()
