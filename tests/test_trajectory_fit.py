"""Curves from data, from other curves, and motions from point to point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline as SciPySpline
from scipy.interpolate import make_interp_spline, make_lsq_spline

from cstormpy.errors import CstormError, InvalidValue
from cstormpy.trajectory import BSpline, EndConditions, cubic, fitting, minimum_jerk, quintic, septic

DEGREES = range(1, 8)


def polynomial(degree: int):
    """Two polynomials of that degree in a time that starts away from zero, and their derivatives."""
    rng = np.random.default_rng(degree)
    both = [np.polynomial.Polynomial(rng.uniform(-1, 1, degree + 1), domain=[1.0, 3.0]) for _ in range(2)]
    return lambda t, order=0: np.stack([p.deriv(order)(np.asarray(t)) if order else p(np.asarray(t)) for p in both], -1)


# ------------------------------------------------------------------ interpolation


@pytest.mark.parametrize("degree", DEGREES)
def test_interpolation_reproduces_polynomials(degree):
    f = polynomial(degree)
    rng = np.random.default_rng(degree)
    inside = np.sort(rng.uniform(1.0, 3.0, degree + 5)) + 0.02 * np.arange(degree + 5)
    times = np.concatenate([[0.99], inside, [3.5]])
    curve = BSpline.interpolate(times, f(times), degree=degree)
    dense = np.linspace(times[0], times[-1], 100)
    size = np.abs(curve.control_points).max()  # the sites are random: what cancels is of the size of the points
    np.testing.assert_allclose(curve(dense), f(dense), rtol=0, atol=1e-12 * size * 4**degree)
    assert (curve.t0, curve.t1, len(curve.control_points)) == (times[0], times[-1], times.size)


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("count", [20, 200])
def test_interpolation_passes_through_the_data(degree, count):
    """With 200 points the equations are solved as a band, with 20 as a full matrix."""
    rng = np.random.default_rng(count)
    times = np.cumsum(rng.uniform(0.5, 1.0, count))
    values = rng.standard_normal((count, 3))
    curve = BSpline.interpolate(times, values, degree=degree)
    size = np.abs(curve.control_points).max()
    np.testing.assert_allclose(curve(times), values, rtol=0, atol=1e-13 * size)
    if degree % 2:  # scipy, too, is not-a-knot then
        dense = np.linspace(times[0], times[-1], 500)
        witness = make_interp_spline(times, values, k=degree)
        np.testing.assert_allclose(curve(dense), witness(dense), rtol=0, atol=1e-12 * size * 2**degree)


def test_band_and_full_matrix_agree(monkeypatch):
    rng = np.random.default_rng(0)
    times, values = np.cumsum(rng.uniform(0.5, 1.0, 30)), rng.standard_normal((30, 2))
    ends = EndConditions(qd0=1.0, qdd0=0.0, qd1=-1.0)
    full = BSpline.interpolate(times, values, degree=5, ends=ends)
    monkeypatch.setattr(fitting, "DENSE", 0)
    band = BSpline.interpolate(times, values, degree=5, ends=ends)
    np.testing.assert_allclose(band.control_points, full.control_points, rtol=0, atol=1e-12)


def test_complete_and_natural_cubic_equal_scipy():
    rng = np.random.default_rng(1)
    times, values = np.cumsum(rng.uniform(0.5, 1.0, 12)), rng.standard_normal((12, 2))
    dense = np.linspace(times[0], times[-1], 300)
    complete = BSpline.interpolate(times, values, ends=EndConditions(qd0=[1.0, 2.0], qd1=0.0))
    witness = make_interp_spline(times, values, bc_type=([(1, [1.0, 2.0])], [(1, [0.0, 0.0])]))
    np.testing.assert_allclose(complete(dense), witness(dense), rtol=0, atol=1e-13)
    natural = BSpline.interpolate(times, values, ends=EndConditions(qdd0=0.0, qdd1=0.0))
    np.testing.assert_allclose(natural(dense), make_interp_spline(times, values, bc_type="natural")(dense), atol=1e-13)


@given(
    degree=st.integers(2, 7),
    start=st.sets(st.integers(1, 3), max_size=3),
    stop=st.sets(st.integers(1, 3), max_size=3),
    count=st.integers(2, 9),
)
@settings(max_examples=80, deadline=None)
def test_interpolation_meets_any_end_conditions(degree, start, stop, count):
    """Taken from a polynomial of that degree, data and conditions give it back wherever they determine it."""
    f = polynomial(degree)
    times = np.linspace(1.0, 3.0, count)
    wanted = {f"q{'d' * r}0": f(1.0, r) for r in start} | {f"q{'d' * r}1": f(3.0, r) for r in stop}
    try:
        curve = BSpline.interpolate(times, f(times), degree=degree, ends=EndConditions(**wanted))
    except CstormError as error:
        few = count + len(start) + len(stop) <= degree
        crowded = max(len(start), len(stop)) >= degree or max(start | stop, default=0) > degree
        undetermined = (degree, count, start, stop) == (3, 2, {3}, {3})  # the jerk of one cubic segment, given twice
        assert few or crowded or undetermined, str(error)
        return
    dense = np.linspace(1.0, 3.0, 50)
    np.testing.assert_allclose(curve(dense), f(dense), rtol=0, atol=1e-10)


# ------------------------------------------------------------------ least squares


@pytest.mark.parametrize("kind", ["uniform", "clamped"])
@pytest.mark.parametrize("degree", DEGREES)
def test_fit_reproduces_polynomials_with_and_without_conditions(degree, kind):
    f = polynomial(degree)
    times = np.linspace(1.0, 3.0, 60)
    orders = range(min(degree, 3) + 1)
    full = EndConditions(**{f"q{'d' * r}{e}": f(t, r) for r in orders for e, t in ((0, 1.0), (1, 3.0))})
    for ends in (None, EndConditions(q0=f(1.0), q1=[None, f(3.0)[1]]), full):
        curve = BSpline.fit(times, f(times), degree + 6, degree=degree, knots=kind, ends=ends)
        np.testing.assert_allclose(curve(times), f(times), rtol=0, atol=1e-12 * 2**degree)


def test_fit_equals_scipy_with_weights():
    rng = np.random.default_rng(2)
    times = np.sort(rng.uniform(0.0, 5.0, 200))
    values, weights = rng.standard_normal((200, 2)), rng.uniform(0.1, 2.0, 200)
    curve = BSpline.fit(times, values, 15, weights=weights)
    witness = make_lsq_spline(times, values, curve.knots, k=3, w=np.sqrt(weights))  # scipy squares its weights
    np.testing.assert_allclose(curve.control_points, witness.c, rtol=0, atol=1e-12)
    shuffled = rng.permutation(200)
    other = BSpline.fit(times[shuffled], values[shuffled], knots=curve.knots, weights=weights[shuffled])
    np.testing.assert_allclose(other.control_points, curve.control_points, rtol=0, atol=1e-12)


def test_long_logs_are_fitted_by_bands():
    """12000 rows took 45 s as a full matrix, and 120000 all memory."""
    rng, times = np.random.default_rng(5), np.linspace(0.0, 10.0, 12_000)
    values, weights = rng.standard_normal((12_000, 2)), rng.uniform(0.1, 2.0, 12_000)
    curve = BSpline.fit(times, values, 2400, degree=5, weights=weights)
    witness = make_lsq_spline(times, values, curve.knots, k=5, w=np.sqrt(weights))
    np.testing.assert_allclose(curve.control_points, witness.c, rtol=0, atol=1e-10)
    some = times[::10][(times[::10] < 4.0) | (times[::10] > 5.0)]
    knots = BSpline.fit(times, values, 240, degree=5).knots
    rank = np.linalg.matrix_rank(SciPySpline.design_matrix(some, knots, 5).toarray())
    with pytest.raises(InvalidValue, match=f"the data determine {rank} of 240 free control points"):
        BSpline.fit(some, np.ones((len(some), 1)), 240, degree=5)


@pytest.mark.parametrize("seed", [246, 288, 30, 212])
def test_bands_are_as_exact_as_a_full_matrix_where_the_data_hardly_tell_a_point(seed, monkeypatch):
    """Their normal equations were not: the first two were wrong by as much as the points are large."""
    rng = np.random.default_rng(seed)
    times, values = np.sort(rng.uniform(0.0, 1.0, 70)), rng.standard_normal((70, 2))
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, 48), np.ones(3)])
    knots = times[0] + (times[-1] - times[0]) * knots
    design = SciPySpline.design_matrix(times, np.clip(knots, times[0], times[-1]), 3).toarray()
    wanted, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    monkeypatch.setattr(fitting, "FULL", 0)
    if rank < 50:
        with pytest.raises(InvalidValue, match="of 50 free control points"):
            BSpline.fit(times, values, 50)
        return
    found = BSpline.fit(times, values, 50).control_points
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_fit_under_conditions_is_the_best_that_meets_them():
    rng = np.random.default_rng(3)
    times, values = np.linspace(0.0, 2.0, 80), rng.standard_normal((80, 2))
    ends = EndConditions(q0=[1.0, None], qd0=0.0, qdd1=[0.5, None])
    curve = BSpline.fit(times, values, 10, degree=4, knots="uniform", ends=ends)
    points = curve.fix_ends(ends)
    gradient = curve.basis_matrix(times).T @ (curve(times) - values)
    assert np.abs(points.pull_back(gradient)).max() < 1e-12  # stationary within what the conditions leave free
    np.testing.assert_allclose(curve(0.0)[0], 1.0, atol=1e-14)
    np.testing.assert_allclose(curve.rate(0.0), 0.0, atol=1e-12)
    np.testing.assert_allclose(curve.acceleration(2.0)[0], 0.5, atol=1e-11)


def test_weight_zero_leaves_a_point_out():
    times = np.linspace(0.0, 1.0, 30)
    values = (times**2)[:, None].copy()
    values[7] = 1e3
    weights = np.ones(30)
    weights[7] = 0.0
    curve = BSpline.fit(times, values, 6, weights=weights, interval=(-0.5, 1.5))
    np.testing.assert_allclose(curve(times)[:, 0], times**2, rtol=0, atol=1e-12)
    assert (curve.t0, curve.t1) == (-0.5, 1.5)


# ------------------------------------------------------------------ from another curve


def test_from_curve_is_exact_where_it_can_be():
    rng = np.random.default_rng(4)
    coarse = BSpline.uniform(rng.standard_normal((7, 2)), 2.0, t0=1.0, names=["a", "b"])
    dense = np.linspace(1.0, 3.0, 200)
    doubled = BSpline.from_curve(coarse, 11, knots="uniform")  # 4 segments become 8, and stay uniform
    raised = BSpline.from_curve(coarse, degree=5, knots=np.sort(np.concatenate([coarse.breaks] * 3 + [[1.0, 3.0]] * 3)))
    for other in (doubled, raised, BSpline.from_curve(coarse, 7, knots="clamped")):
        np.testing.assert_allclose(other(dense), coarse(dense), rtol=0, atol=1e-13)
        assert other.names == ("a", "b")


def test_from_curve_of_a_function_and_with_ends_kept():
    def wave(t):
        return np.stack([np.sin(t), np.cos(2 * t)], axis=-1)

    curve = BSpline.from_curve(wave, 20, interval=(0.0, 3.0), names=("a", "b"))
    dense = np.linspace(0.0, 3.0, 100)
    # best approximation by cubics: the fourth derivative, 16, times h^4 / 384 or so
    assert np.abs(curve(dense) - wave(dense)).max() < 16 * (3.0 / 17) ** 4 / 100
    fewer = BSpline.from_curve(curve, 8, ends=EndConditions.of(curve))
    for t in (0.0, 3.0):
        np.testing.assert_allclose(fewer(t), curve(t), rtol=0, atol=1e-14)
        np.testing.assert_allclose(fewer.rate(t), curve.rate(t), rtol=0, atol=1e-12)


def test_from_curve_is_stationary():
    """The error is orthogonal to every basis function, integrated by a rule of higher order."""
    fine = BSpline.clamped(np.random.default_rng(5).standard_normal((15, 1)), 1.0, degree=4)
    coarse = BSpline.from_curve(fine, 9, degree=4)
    times, weights = fitting.gauss_sites(np.union1d(fine.breaks, coarse.breaks), 8)
    error = (coarse(times) - fine(times)) * weights[:, None]
    assert np.abs(coarse.basis_matrix(times).T @ error).max() < 1e-14


@pytest.mark.parametrize("kind", ["uniform", "clamped"])
@pytest.mark.parametrize(("degree", "order"), [(3, 1), (3, 2), (4, 2), (5, 1), (5, 3), (7, 3)])
def test_rest_to_rest(degree, order, kind):
    q0, q1 = np.array([0.0, 1.0, -2.0]), np.array([1.0, 1.0, 3.0])
    curve = BSpline.rest_to_rest(q0, q1, 1.7, 14, degree=degree, knots=kind, order=order, t0=0.3)
    gap = 1.7 / curve.segments
    for time, q in ((curve.t0, q0), (curve.t1, q1)):
        np.testing.assert_allclose(curve(time), q, rtol=0, atol=1e-14)
        for r in range(1, order + 1):
            assert np.abs(curve(time, r)).max() < 1e-13 * (2 * degree / gap) ** r
    times = np.linspace(curve.t0, curve.t1, 50)
    np.testing.assert_allclose(curve(times)[:, 1], 1.0, rtol=0, atol=1e-13)  # a joint that stays
    least_jerk = quintic(q0, q1, 1.7, t0=0.3)
    assert np.abs(curve(times) - least_jerk(times)).max() < 0.02


# ------------------------------------------------------------------ point to point


@pytest.mark.parametrize(("make", "degree", "highest"), [(cubic, 3, 1), (quintic, 5, 2), (septic, 7, 3)])
def test_boundary_values(make, degree, highest):
    rng = np.random.default_rng(degree)
    q0, q1 = rng.uniform(-2, 2, (2, 4))
    wanted = {f"q{'d' * r}{e}": rng.uniform(-2, 2, 4) for r in range(1, highest + 1) for e in (0, 1)}
    curve = make(q0, q1, 0.7, t0=2.0, **wanted, names=list("abcd"), outside="refuse")
    assert (curve.degree, curve.segments, curve.t0, curve.t1) == (degree, 1, 2.0, 2.7)
    assert curve.names == ("a", "b", "c", "d") and curve.outside == "refuse"
    for end, time in ((0, 2.0), (1, 2.7)):
        np.testing.assert_array_equal(curve(time), (q0, q1)[end])  # to the last bit
        for r in range(1, highest + 1):
            np.testing.assert_allclose(curve(time, r), wanted[f"q{'d' * r}{end}"], rtol=0, atol=1e-14 * 20**r)


def test_rest_to_rest_polynomials_of_the_textbook():
    """Siciliano et al., Robotics, section 4.2: 3s²−2s³; the quintic 10s³−15s⁴+6s⁵; and 35s⁴−84s⁵+70s⁶−20s⁷."""
    s = np.linspace(0.0, 1.0, 21)
    profiles = {
        cubic: 3 * s**2 - 2 * s**3,
        quintic: 10 * s**3 - 15 * s**4 + 6 * s**5,
        septic: 35 * s**4 - 84 * s**5 + 70 * s**6 - 20 * s**7,
    }
    for make, expected in profiles.items():  # the powers cancel: 209 eps for the last
        np.testing.assert_allclose(make([1.0], [3.0], 2.0)(2.0 * s)[:, 0], 1.0 + 2.0 * expected, rtol=0, atol=1e-13)
    assert minimum_jerk([[1.0], [3.0]], [0.0, 2.0]) == quintic([1.0], [3.0], 2.0)


def test_minimum_jerk_has_the_least_jerk():
    """The jerk is orthogonal to that of every change that keeps the points and the boundary values."""
    rng = np.random.default_rng(6)
    times, points = np.array([0.0, 0.4, 1.1, 2.0]), rng.standard_normal((4, 2))
    curve = minimum_jerk(points, times, qd0=1.0, qdd1=[0.0, 2.0])
    np.testing.assert_allclose(curve(times), points, rtol=0, atol=1e-13)
    assert curve.rate(0.0) == pytest.approx([1.0, 1.0]) and curve.acceleration(2.0) == pytest.approx([0.0, 2.0])
    waypoints = np.repeat(times, [6, 3, 3, 6])
    rich = BSpline(np.sort(np.concatenate([waypoints, rng.uniform(0, 2, 5)])), np.zeros((17, 1)), degree=5)
    sites, weights = fitting.gauss_sites(np.union1d(rich.breaks, curve.breaks), 6)
    rows = [rich.basis_matrix(times).toarray()]
    rows += [rich.basis_matrix([0.0, 2.0], order).toarray() for order in (1, 2)]
    _, size, directions = np.linalg.svd(np.concatenate(rows))
    changes = directions[8:]
    assert size.min() > 1e-6 and len(changes) == 9
    jerk_of_change = rich.basis_matrix(sites, 3) @ changes.T
    product = (weights[:, None] * jerk_of_change).T @ curve.jerk(sites)
    assert np.abs(product).max() < 1e-10 * np.abs(curve.jerk(sites)).max() * np.abs(jerk_of_change).max()


# ------------------------------------------------------------------ refusals

T5 = np.linspace(0.0, 1.0, 5)
Q5 = np.zeros((5, 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BSpline.interpolate([0, 1, 1, 2, 3], Q5),
            r"they must rise, but times\[2\] = 1 follows 1; with dt= a run has one",
        ),
        (lambda: BSpline.interpolate(T5, Q5[:4]), "expected 5 rows, one per time, got 4"),
        (lambda: BSpline.interpolate(T5, Q5[:, 0]), "one row per time, one column per joint"),
        (lambda: BSpline.interpolate(T5, Q5[:, :0]), "at least one column"),
        (lambda: BSpline.interpolate(T5[:3], Q5[:3]), "degree 3 needs 4 data points and end conditions, got 3"),
        (lambda: BSpline.interpolate([0.0], [[0.0]]), "expected at least 2, got 1"),
        (lambda: BSpline.interpolate(T5, Q5 * np.nan), "values: .* nan"),
        (lambda: BSpline.interpolate(T5, Q5, ends=EndConditions(q0=0.0)), "q0: the data give the position"),
        (lambda: BSpline.interpolate(T5, Q5, ends=EndConditions(qd0=[0.0, None])), "rate of all joints or of none"),
        (lambda: BSpline.interpolate(T5, Q5, degree=2, ends=EndConditions(qddd0=0.0)), "always zero"),
        (lambda: BSpline.interpolate(T5, Q5, degree=1, ends=EndConditions(qd0=0.0)), "at most 0 per end"),
        (lambda: BSpline.interpolate(T5, Q5, ends={"qd0": 0.0}), "ends: expected EndConditions, got "),
        (lambda: BSpline.fit(T5, Q5, 6), "determine 5 of 6 free control points; .*fewer control points or more data"),
        (lambda: BSpline.fit(T5, Q5, 3), "degree 3 needs at least 4, got 3"),
        (lambda: BSpline.fit(T5, Q5), "knots='clamped' needs their number"),
        (lambda: BSpline.fit(T5, Q5, 4, knots="natural"), "'clamped' or 'uniform'"),
        (lambda: BSpline.fit(T5, Q5, 4, knots=np.arange(8.0)), "not both"),
        (lambda: BSpline.fit(T5, Q5, knots=np.arange(8.0)), r"0 is outside of the curve's interval \[3, 4\]"),
        (lambda: BSpline.fit(T5, Q5, 4, weights=[1.0]), r"weights: expected shape \(5,\)"),
        (lambda: BSpline.fit(T5, Q5, 4, weights=[1, 1, -1, 1, 1]), r"none below zero, got weights\[2\] = -1"),
        (lambda: BSpline.fit(T5, Q5, 4, interval=(1.0, 0.0)), "must be later"),
        (lambda: BSpline.fit([1.0, 1.0], Q5[:2], 4), "must be later"),
        (lambda: BSpline.from_curve(np.sin, 5), "a function needs the interval"),
        (lambda: BSpline.from_curve(np.sin, 5, interval=(0, 1)), "a row per time, a column per joint"),
        (lambda: BSpline.from_curve(lambda t: np.full((len(t), 1), np.nan), 5, interval=(0, 1)), "curve: .* nan"),
        (lambda: BSpline.rest_to_rest([0.0], [1.0, 2.0], 1.0, 9), r"q1: expected the shape \(1,\) of q0"),
        (lambda: BSpline.rest_to_rest([0.0], [1.0], 1.0, 4, order=2), "need at least 6 control points"),
        (lambda: BSpline.rest_to_rest([0.0], [1.0], 0.0, 9), "duration"),
        (lambda: cubic([0.0], [1.0], -1.0), "duration"),
        (lambda: cubic(0.0, 1.0, 1.0), r"q0: expected shape \(N,\)"),
        (lambda: cubic([], [], 1.0), "at least one joint"),
        (lambda: cubic([0.0], [1.0], 1.0, qd0=None), "needs 4 data points and end conditions, got 3"),
        (lambda: quintic([0.0, 1.0], [1.0, 2.0], 1.0, qdd1=[0.0]), "qdd1: expected 2 entries"),
        (lambda: minimum_jerk([[0.0], [1.0]], [1.0, 0.0]), "must rise"),
        (lambda: minimum_jerk([[0.0], [1.0]], [0.0, 1.0, 2.0]), r"^points: expected shape \(3, N\), got \(2, 1\)"),
        (lambda: minimum_jerk([[0.0], [1.0, 2.0]], [0.0, 1.0]), "^points: expected an array of numbers, got rows of"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(CstormError, match=message):
        make()
