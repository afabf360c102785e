"""Derivatives of B-splines to control points, knots and duration: against a complex step through a naive twin, against
differences, and by the laws of shifting and stretching time. Papers/004, (41), (42)."""

from __future__ import annotations

import numpy as np
import pytest

from cstormpy.trajectory import BSpline

DEGREES = range(1, 8)
KINDS = ("uniform", "clamped", "irregular", "multiple")


def make(kind: str, degree: int, m: int = 11, n: int = 2) -> BSpline:
    rng = np.random.default_rng(degree)
    points = rng.standard_normal((m, n))
    if kind == "uniform":
        return BSpline.uniform(points, 2.0, degree=degree, t0=0.5)
    if kind == "clamped":
        return BSpline.clamped(points, 2.0, degree=degree, t0=0.5)
    knots = np.cumsum(rng.uniform(0.1, 0.5, m + degree + 1))
    if kind == "multiple" and degree > 1:
        knots[degree + 1] = knots[degree + 2]
        knots[-degree] = knots[-degree - 1]
    return BSpline(knots, points, degree=degree)


def off_knots(curve: BSpline) -> np.ndarray:
    """Three times within each segment."""
    a, b = curve.breaks[:-1], curve.breaks[1:]
    return np.sort(np.concatenate([a + part * (b - a) for part in (0.11, 0.5, 0.83)]))


# ------------------------------------------------------------------ the naive twin


def naive_basis(knots, i, degree, time, order):
    """Cox and de Boor's recursion as it stands in the books, for real or complex knots and times."""
    if order:
        left, right = knots[i + degree] - knots[i], knots[i + degree + 1] - knots[i + 1]
        before = naive_basis(knots, i, degree - 1, time, order - 1)
        after = naive_basis(knots, i + 1, degree - 1, time, order - 1)
        return degree * ((before / left if left else 0.0) - (after / right if right else 0.0))
    if degree == 0:
        return 1.0 if knots[i].real <= time.real < knots[i + 1].real else 0.0
    left, right = knots[i + degree] - knots[i], knots[i + degree + 1] - knots[i + 1]
    before = (time - knots[i]) / left * naive_basis(knots, i, degree - 1, time, 0) if left else 0.0
    after = (knots[i + degree + 1] - time) / right * naive_basis(knots, i + 1, degree - 1, time, 0) if right else 0.0
    return before + after


def naive(knots, points, degree, time, order):
    return sum(naive_basis(knots, i, degree, time, order) * points[i] for i in range(len(points)))


def complex_step(knots, direction, points, degree, time, order):
    h = 1e-30
    return naive(knots + 1j * h * direction, points, degree, complex(time), order).imag / h


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_derivative_to_each_knot_equals_the_complex_step(degree, kind):
    curve = make(kind, degree, m=degree + 4)
    times = off_knots(curve)[:: 1 if degree < 5 else 3]
    shortest = np.diff(curve.breaks).min()
    for order in range(min(degree, 2) + 1):
        found = curve.knot_matrix(times, order).toarray().reshape(times.size, curve.n, -1)
        scale = (2 * degree / shortest) ** (order + 1)
        for j, direction in enumerate(np.eye(curve.knots.size)):
            for k, time in enumerate(times):
                expected = complex_step(curve.knots, direction, curve.control_points, degree, time, order)
                np.testing.assert_allclose(found[k, :, j], expected, rtol=0, atol=1e-13 * scale)


# ------------------------------------------------------------------ differences

STEP = np.finfo(float).eps ** 0.2
"""Of the five-point formula, in units of the distance at which the curve changes, here the shortest segment over 4 p:
its truncation is STEP⁴, as large as its rounding eps / STEP, both 3e-13 of the derivative's scale."""


def five_point(f, h):
    return (8.0 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12.0 * h)


def tolerance(curve: BSpline, order: int) -> float:
    """Ten times STEP⁴ in units of the curve; a time is rounded to eps |t|, which counts in units of the reach."""
    reach = np.diff(curve.breaks).min() / (4 * curve.degree)
    rounding = 1.0 + max(abs(curve.t0), abs(curve.t1)) / reach
    return 10 * np.finfo(float).eps ** 0.8 * rounding * reach ** -(order + 1)


@pytest.mark.parametrize("kind", ["uniform", "irregular"])
@pytest.mark.parametrize("degree", DEGREES)
def test_derivative_to_each_knot_equals_differences(degree, kind):
    curve = make(kind, degree)
    times = off_knots(curve)
    # a knot moves by less than the distance to the nearest time, so that no time changes its segment
    h = STEP * np.diff(curve.breaks).min() / (4 * degree)
    for order in range(min(degree, 2) + 1):
        found = curve.knot_matrix(times, order).toarray()
        for j, direction in enumerate(np.eye(curve.knots.size)):

            def moved(step, direction=direction, order=order):
                # held at the ends: outer times must stay inside while the end knots move
                other = curve.replace(knots=curve.knots + step * direction)
                return other(times, order).ravel()

            np.testing.assert_allclose(found[:, j], five_point(moved, h), rtol=0, atol=tolerance(curve, order))


@pytest.mark.parametrize("fixed", ["phase", "time"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", DEGREES)
def test_derivative_to_the_duration_equals_differences(degree, kind, fixed):
    curve = make(kind, degree)
    times = off_knots(curve)
    h = STEP * np.diff(curve.breaks).min() / (4 * degree)
    for order in range(min(degree, 3) + 1):

        def stretched(step, order=order):
            other = curve.with_duration(curve.duration + step)
            return other(
                times if fixed == "time" else curve.t0 + (times - curve.t0) * other.duration / curve.duration, order
            )

        found = curve.duration_matrix(times, order, fixed=fixed) @ curve.control_points
        np.testing.assert_allclose(found, five_point(stretched, h), rtol=0, atol=tolerance(curve, order))


@pytest.mark.parametrize("degree", DEGREES)
def test_derivative_to_the_control_points_is_exact(degree):
    """The curve is linear in them, so that columns of the basis matrix are the curve of a unit control point."""
    curve = make("multiple", degree)
    times = np.union1d(off_knots(curve), curve.breaks)
    for order in range(min(degree, 3) + 1):
        matrix = curve.basis_matrix(times, order)
        scale = (2 * degree / np.diff(curve.breaks).min()) ** order
        assert matrix.shape == (times.size, 11) and matrix.nnz == times.size * (degree + 1)
        np.testing.assert_allclose(matrix @ curve.control_points, curve(times, order), rtol=0, atol=1e-13 * scale)
        for i, unit in enumerate(np.eye(11)):
            one = curve.replace(control_points=unit[:, None])
            np.testing.assert_allclose(matrix.toarray()[:, i], one(times, order)[:, 0], rtol=0, atol=1e-14 * scale)
    assert curve.basis_matrix(times, degree + 1).toarray().any() == np.False_


# ------------------------------------------------------------------ laws


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", DEGREES)
def test_moving_all_knots_shifts_or_stretches_time(degree, kind):
    """Σ_j ∂q/∂t_j = −q̇, and Σ_j (t_j − t0)/T ∂q/∂t_j is the derivative to the duration at fixed time."""
    curve = make(kind, degree)
    times = np.union1d(off_knots(curve), curve.breaks)  # at the knots the laws hold from the right
    for order in range(min(degree, 2) + 1):
        scale = (2 * degree / np.diff(curve.breaks).min()) ** (order + 1)
        knots = curve.knot_matrix(times, order)
        shifted = (knots @ np.ones(curve.knots.size)).reshape(times.size, -1)
        np.testing.assert_allclose(shifted, -curve(times, order + 1), rtol=0, atol=1e-13 * scale)
        stretched = (knots @ ((curve.knots - curve.t0) / curve.duration)).reshape(times.size, -1)
        expected = curve.duration_matrix(times, order, fixed="time") @ curve.control_points
        np.testing.assert_allclose(stretched, expected, rtol=0, atol=1e-13 * scale)


def test_at_fixed_phase_rates_scale_and_the_value_stays():
    curve = make("clamped", 5)
    times = off_knots(curve)
    for order in range(4):
        found = curve.duration_matrix(times, order) @ curve.control_points
        np.testing.assert_allclose(found, -order / curve.duration * curve(times, order), rtol=1e-10, atol=1e-10)


def test_the_derivative_jumps_at_its_knot_and_is_taken_from_the_right():
    """Of the acceleration of a cubic to a knot, at that very knot; at the end of the interval it is from the left."""
    curve = make("uniform", 3)
    j = 6
    eps = 1e-9
    at, right, left = (curve.knot_matrix([curve.knots[j] + d], 2).toarray() for d in (0.0, eps, -eps))
    np.testing.assert_allclose(at, right, atol=1e-5)
    assert np.abs(at[:, j] - left[:, j]).max() > 1.0
    last, before = (curve.knot_matrix([curve.t1 - d], 2).toarray() for d in (0.0, eps))
    np.testing.assert_allclose(last, before, atol=1e-5)


def test_grouped_moves_equal_knots_together():
    """All four knots at the start of a clamped curve, which cannot move one by one in both directions."""
    curve = make("clamped", 3)
    times = off_knots(curve)
    h = STEP * np.diff(curve.breaks).min() / 12
    grouped = curve.knot_matrix(times, 1, grouped=True)
    assert grouped.shape == (times.size * 2, curve.breaks.size)
    for j, time in enumerate(curve.breaks):
        direction = (curve.knots == time).astype(float)

        def moved(step, direction=direction):
            return curve.replace(knots=curve.knots + step * direction)(times, 1).ravel()

        found = grouped.toarray()[:, j]
        np.testing.assert_allclose(found, five_point(moved, h), rtol=0, atol=tolerance(curve, 1))


@pytest.mark.parametrize("kind", ["uniform", "clamped"])
def test_outside_the_derivatives_are_those_of_the_value_held(kind):
    curve = make(kind, 3)
    times = np.array([curve.t0 - 1.0, curve.t1 + 1.0])
    h = STEP * np.diff(curve.breaks).min() / 12
    found = curve.knot_matrix(times, grouped=True).toarray()
    for j, time in enumerate(np.unique(curve.knots)):
        direction = (curve.knots == time).astype(float)

        def moved(step, direction=direction):
            return curve.replace(knots=curve.knots + step * direction)(times).ravel()

        np.testing.assert_allclose(found[:, j], five_point(moved, h), rtol=0, atol=tolerance(curve, 0))
    assert not curve.knot_matrix(times, 1).toarray().any()
    for fixed in ("phase", "time"):
        assert not (curve.duration_matrix(times, 0, fixed) @ curve.control_points).any()
        assert not curve.duration_matrix(times, 1, fixed).toarray().any()


def test_one_time_gives_one_row_and_none_gives_none():
    curve = make("uniform", 3)
    assert curve.basis_matrix(1.0).shape == (1, 11)
    assert curve.knot_matrix(1.0).shape == (2, 15)
    assert curve.duration_matrix([]).shape == (0, 11) and curve.knot_matrix([]).shape == (0, 15)


def test_chain_rule_of_papers_004_41():
    """∂τ/∂p_i of a torque that is a function of q, q̇ and q̈, as (41) adds it up, against differences."""
    curve = make("uniform", 3)
    times = np.linspace(curve.t0, curve.t1, 9)

    def torque(c):
        q, qd, qdd = c.evaluate(times)
        return qdd[:, 0] * (2.0 + np.cos(q[:, 1])) + qd[:, 1] ** 2 * np.sin(q[:, 1])

    q, qd, qdd = curve.evaluate(times)
    b0, b1, b2 = (curve.basis_matrix(times, order).toarray() for order in range(3))
    to_q1 = (-qdd[:, 0] * np.sin(q[:, 1]) + qd[:, 1] ** 2 * np.cos(q[:, 1]))[:, None] * b0
    to_qd1 = (2.0 * qd[:, 1] * np.sin(q[:, 1]))[:, None] * b1
    second_joint = to_q1 + to_qd1
    first_joint = (2.0 + np.cos(q[:, 1]))[:, None] * b2
    for i in range(11):
        for joint, expected in enumerate((first_joint[:, i], second_joint[:, i])):
            unit = np.zeros((11, 2))
            unit[i, joint] = 1.0
            found = five_point(lambda h, u=unit: torque(curve.with_control_points(curve.control_points + h * u)), 1e-3)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(qdd).max())
