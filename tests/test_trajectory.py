"""B-spline curves: against scipy's, by the laws of the basis, outside of the interval, and derived from one another."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline as Witness

from cstormpy.errors import CstormError, UnknownName
from cstormpy.trajectory import BSpline, clamped_knots, uniform_knots

DEGREES = range(1, 8)


def random_curve(rng: np.random.Generator, degree: int, kind: str, m: int = 12, n: int = 3, **options) -> BSpline:
    points = rng.standard_normal((m, n))
    t0, duration = rng.uniform(-2.0, 2.0), rng.uniform(0.5, 3.0)
    if kind == "uniform":
        return BSpline.uniform(points, duration, degree=degree, t0=t0, **options)
    if kind == "clamped":
        return BSpline.clamped(points, duration, degree=degree, t0=t0, **options)
    knots = t0 + np.cumsum(rng.uniform(0.1, 0.5, m + degree + 1))
    if kind == "multiple" and degree > 1:  # a double knot inside, and a triple start
        knots[degree + 3] = knots[degree + 4]
        knots[degree - 1] = knots[degree]
    return BSpline(knots, points, degree=degree, **options)


KINDS = ("uniform", "clamped", "irregular", "multiple")


def inner_times(curve: BSpline, count: int = 101) -> np.ndarray:
    """Times with all knots among them: at the knots the sides must agree, too."""
    return np.union1d(np.linspace(curve.t0, curve.t1, count), curve.breaks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", DEGREES)
def test_value_and_all_derivatives_equal_scipy(degree, kind):
    curve = random_curve(np.random.default_rng(degree), degree, kind)
    witness = Witness(curve.knots, curve.control_points, degree, extrapolate=False)
    times = inner_times(curve)
    fused = curve.evaluate(times, order=degree + 2)
    shortest = np.diff(curve.breaks).min()
    for order in range(degree + 1):
        # scipy is continuous from the right, but at the end from the left, as we are
        expected = witness(times, nu=order)
        scale = (2 * degree / shortest) ** order
        np.testing.assert_allclose(fused[order], expected, rtol=0, atol=1e-13 * scale)
        np.testing.assert_array_equal(curve(times, order), fused[order])
    for order in (degree + 1, degree + 2):
        assert not fused[order].any()


@pytest.mark.parametrize("degree", DEGREES)
def test_one_time_equals_many(degree):
    curve = random_curve(np.random.default_rng(1), degree, "multiple", outside="hold")
    times = np.concatenate([inner_times(curve, 11), [curve.t0 - 1.0, curve.t1 + 1.0]])
    many = curve.evaluate(times, order=3)
    for k, time in enumerate(times):
        for order, one in enumerate(curve.evaluate(float(time), order=3)):
            assert one.shape == (3,)
            scale = 1.0 + np.abs(many[order]).max()
            np.testing.assert_allclose(one, many[order][k], rtol=0, atol=4e-15 * scale)


def test_named_derivatives_and_shapes():
    curve = random_curve(np.random.default_rng(2), 5, "clamped")
    times = [curve.t0, curve.t1]
    for order, method in enumerate((curve, curve.rate, curve.acceleration, curve.jerk)):
        np.testing.assert_array_equal(method(times), curve(times, order))
    assert curve.evaluate(curve.t0)[2].shape == (3,)
    assert curve([]).shape == (0, 3)
    assert curve(np.float32(curve.t0)).shape == curve(np.array(curve.t0)).shape == (3,)
    assert (curve.n, curve.segments, curve.degree, curve.duration) == (3, 7, 5, curve.t1 - curve.t0)


def test_paper_004_counts():
    """Papers/004, (40): s segments need s + 3 control points; its "22 control points and 20 segments" do not fit."""
    curve = BSpline.uniform(np.zeros((22, 2)), 0.3934)
    assert curve.segments == 19
    np.testing.assert_allclose(np.diff(curve.knots), 0.3934 / 19, rtol=1e-12)
    assert (curve.t0, curve.t1) == (0.0, 0.3934)


@given(st.floats(-1e3, -1.0), st.floats(0.01, 1.0), st.integers(1, 7), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_the_interval_is_that_asked_for_to_the_last_bit(start, stop, degree, segments):
    """For a start far from zero, start + (stop − start) is not stop."""
    for maker in (uniform_knots, clamped_knots):
        knots = maker(segments + degree, degree, (start, stop))
        assert (knots[degree], knots[-degree - 1]) == (start, stop)
    scaled = BSpline(knots, np.zeros((segments + degree, 1)), degree=degree).with_duration(0.3)
    assert (scaled.t0, scaled.t1) == (start, start + 0.3)
    through = BSpline.interpolate([start, 0.0, 0.005, stop], np.zeros((4, 1)))
    assert (through.t0, through.t1) == (start, stop)


@given(
    degree=st.integers(1, 7),
    gaps=st.lists(st.floats(0.01, 10.0), min_size=16, max_size=24),
    where=st.lists(st.floats(0.0, 1.0), max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_laws_of_the_basis(degree, gaps, where):
    """Not negative, a partition of unity, and affine invariance of the curve."""
    knots = np.cumsum(gaps)
    m = knots.size - degree - 1
    rng = np.random.default_rng(degree)
    curve = BSpline(knots, rng.standard_normal((m, 2)), degree=degree)
    times = curve.t0 + curve.duration * np.array([0.0, 1.0, *where])
    basis = curve.basis_matrix(times).toarray()
    assert basis.min() >= 0.0
    np.testing.assert_allclose(basis.sum(axis=1), 1.0, rtol=0, atol=1e-14 * degree)
    slope = curve.basis_matrix(times, 1).toarray()
    np.testing.assert_allclose(slope.sum(axis=1), 0.0, atol=1e-13 * degree * np.abs(slope).max())
    moved = curve.with_control_points(3.0 * curve.control_points + 1.0)
    np.testing.assert_allclose(moved(times), 3.0 * curve(times) + 1.0, rtol=0, atol=1e-13)
    assert np.abs(curve(times)).max() <= np.abs(curve.control_points).max() * (1 + 1e-14)  # the hull property


# ------------------------------------------------------------------ outside of the interval


def test_hold_keeps_the_end_and_stands_still():
    curve = random_curve(np.random.default_rng(3), 3, "uniform")
    times = [curve.t0 - 2.0, curve.t1 + 0.5]
    q, qd, qdd, qddd = curve.evaluate(times, order=3)
    np.testing.assert_array_equal(q, curve([curve.t0, curve.t1]))
    assert not qd.any() and not qdd.any() and not qddd.any()
    assert curve.rate(curve.t1).any()  # at the end itself the curve still moves
    np.testing.assert_array_equal(curve(curve.t1 + 0.5), q[1])
    assert not curve.rate(curve.t1 + 0.5).any()
    assert not curve.basis_matrix(times, 1).toarray().any()
    np.testing.assert_array_equal(curve.basis_matrix(times) @ curve.control_points, q)


def test_a_time_outside_by_rounding_counts_as_the_end():
    """A sum of steps ends at 0.30000000000000004; the rate there must not drop to zero, nor the time be refused."""
    curve = BSpline.clamped([[0.0], [1.0], [2.0], [3.0]], 0.3, outside="refuse")
    late = 0.1 + 0.2
    assert late > curve.t1
    assert curve.rate(late) == pytest.approx(10.0) and curve.rate([late])[0] == pytest.approx(10.0)


def test_refuse_names_the_time():
    curve = BSpline.clamped(np.zeros((4, 1)), 2.0, outside="refuse")
    for call in (curve, curve.evaluate, curve.basis_matrix, curve.knot_matrix, curve.duration_matrix):
        for times in (2.5, [0.0, 2.5]):
            with pytest.raises(CstormError, match=r"2\.5 s is outside of .*\[0, 2\]"):
                call(times)
    assert curve.replace(outside="hold")(2.5) == 0.0


# ------------------------------------------------------------------ derived curves


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", DEGREES)
def test_knot_insertion_leaves_the_curve_unchanged(degree, kind):
    rng = np.random.default_rng(degree)
    curve = random_curve(rng, degree, kind)
    new = rng.uniform(curve.t0, curve.t1, 9)
    if degree > 2:
        new = np.append(new, [new[0], curve.breaks[1]])  # a double knot, and one more where one stands
    finer = curve.insert_knots(new)
    times = inner_times(curve, 201)
    np.testing.assert_allclose(finer(times), curve(times), rtol=0, atol=1e-13)
    assert len(finer.control_points) == 12 + len(new)
    np.testing.assert_array_equal(finer.knots, np.sort(np.concatenate([curve.knots, new])))
    if degree > 1:
        gaps = np.diff(finer.breaks).min()
        np.testing.assert_allclose(finer.rate(times), curve.rate(times), rtol=0, atol=1e-13 * degree / gaps)


def test_refine_from_coarse_to_fine():
    coarse = random_curve(np.random.default_rng(5), 3, "uniform", m=10)
    times = np.linspace(coarse.t0, coarse.t1, 301)
    curve = coarse
    for m in (16, 24, 32):
        curve = curve.refine(m)
        assert len(curve.control_points) == m
        np.testing.assert_allclose(curve(times), coarse(times), rtol=0, atol=1e-13)
    lengths = np.diff(curve.breaks)
    assert lengths.max() / lengths.min() < 4 + 1e-9  # 7 segments in 29
    assert curve.refine(32) is curve
    doubled = coarse.refine(17)
    np.testing.assert_allclose(np.diff(doubled.breaks), coarse.duration / 14, rtol=1e-12)
    split = np.flatnonzero(np.diff(coarse.refine(12).breaks) < 0.9 * coarse.duration / 7)
    assert split.tolist() == [1, 2, 6, 7]  # the second and the sixth of seven segments are halved


@given(degree=st.integers(1, 7), duration=st.floats(1e-3, 1e3), start=st.floats(-100.0, 100.0))
@settings(max_examples=40, deadline=None)
def test_time_scaling(degree, duration, start):
    curve = random_curve(np.random.default_rng(degree), degree, "clamped").with_start(start)
    scaled = curve.with_duration(duration)
    assert scaled.t0 == start and scaled.t1 == start + duration
    phase = np.linspace(0.0, 1.0, 7)
    old, new = (c.evaluate(c.t0 + c.duration * phase, order=2) for c in (curve, scaled))
    # the time is known to eps |t0|, so the phase to eps |t0| / T
    slack = 1e-13 + 1e-14 * abs(start) / min(duration, curve.duration)
    for order in range(min(degree, 3)):  # one less than the degree: the highest jumps at the knots
        ratio = (curve.duration / duration) ** order
        scale = (2.0 * degree * curve.segments) ** (order + 1)
        np.testing.assert_allclose(new[order] / ratio, old[order], rtol=0, atol=slack * scale)


def test_with_start_moves_the_curve():
    curve = random_curve(np.random.default_rng(6), 4, "irregular")
    times = np.linspace(curve.t0, curve.t1, 20)
    later = curve.with_start(curve.t0 + 1.0)
    np.testing.assert_allclose(later(times + 1.0), curve(times), rtol=0, atol=1e-13)


def test_names_and_select():
    curve = random_curve(np.random.default_rng(7), 3, "clamped", names=("hip", "knee", "ankle"))
    chosen = curve.select(["ankle", "hip"])
    assert chosen.names == ("ankle", "hip") and curve.select("knee").names == ("knee",)
    np.testing.assert_array_equal(chosen(curve.t0), curve(curve.t0)[[2, 0]])
    with pytest.raises(UnknownName, match="'kne' does not exist; did you mean 'knee'"):
        curve.select(["kne"])
    with pytest.raises(CstormError, match="named twice"):
        curve.select(["hip", "hip"])
    assert curve.select([2, "hip"]).names == ("ankle", "hip")
    nameless = curve.replace(names=None)  # which could not be taken apart at all
    np.testing.assert_array_equal(nameless.select([2, 0])(curve.t0), curve(curve.t0)[[2, 0]])
    assert nameless.select(1).n == nameless.select(np.int64(1)).n == 1 and nameless.select(1).names is None
    with pytest.raises(UnknownName, match=r"'hip' does not exist, as the curve names none: joints=\[0, 1, 2\] takes"):
        nameless.select("hip")
    with pytest.raises(CstormError, match="joints: expected at most 2, got 3"):
        nameless.select([3])
    assert "hip, knee, ankle" in repr(curve) and "3 joints" in repr(curve.replace(names=None))


def test_a_value_equal_hashed_copied_and_immutable():
    curve = random_curve(np.random.default_rng(8), 5, "clamped", names=list("abc"), outside="refuse")
    for other in (pickle.loads(pickle.dumps(curve)), copy.deepcopy(curve), copy.copy(curve), curve.replace()):
        assert other == curve and hash(other) == hash(curve)
        assert not other.knots.flags.writeable and not other.control_points.flags.writeable
    assert curve != curve.replace(outside="hold") and curve != curve.replace(names=None) and curve != 1
    assert curve != curve.with_control_points(curve.control_points + 1.0)
    signed = BSpline.clamped([[0.0], [0.0], [0.0], [-0.0]], 1.0)
    assert signed == BSpline.clamped(np.zeros((4, 1)), 1.0) and hash(signed) == hash(signed.replace())
    with pytest.raises(AttributeError):
        curve.degree = 3
    with pytest.raises(ValueError):
        curve.control_points[0, 0] = 1.0
    points = np.zeros((4, 1))
    made = BSpline.clamped(points, 1.0)
    points[:] = 7.0
    assert not made.control_points.any()
    for array in (curve.knots, curve.control_points):
        assert array.flags.c_contiguous and array.dtype == np.float64


def test_derivatives_asked_in_any_order_are_the_same():
    """They are kept once computed: the order of asking must not matter."""
    curve = random_curve(np.random.default_rng(9), 5, "irregular")
    other = curve.replace()
    jerk = curve.jerk(curve.t0)
    assert np.array_equal(other.evaluate(curve.t0, order=3)[3], jerk)
    assert np.array_equal(curve.rate(curve.t0), other.rate(curve.t0))


def test_import_loads_numpy_only():
    script = (
        "import sys, cstormpy.trajectory\nprint(*(m for m in ('scipy', 'numba', 'matplotlib') if m in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not found.stdout.strip()


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BSpline.uniform(np.zeros((3, 1)), 1.0), "degree 3 needs at least 4, got 3; s segments take s"),
        (lambda: BSpline.uniform(np.zeros(4), 1.0), r"expected shape \(N, M\), got \(4,\); one row per point"),
        (lambda: BSpline.uniform(np.zeros((4, 0)), 1.0), "at least one row and one column"),
        (
            lambda: BSpline.uniform([[0.0], [1.0], [np.nan], [0.0]], 1.0),
            r"control points: .* got nan at index \(2, 0\)",
        ),
        (lambda: BSpline.uniform([["a"], ["b"]], 1.0), "expected real numbers"),
        (lambda: BSpline.uniform([[0.0], [1.0, 2.0]], 1.0), "rows of different lengths"),
        (lambda: BSpline.uniform(np.zeros((4, 1), complex), 1.0), "expected real numbers, got complex numbers"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 0.0), "duration: expected a positive number, got 0"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), -1.0), "duration: .* got -1"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), np.inf), "duration: .* inf"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), [1.0]), "duration: expected one number"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 1.0, t0=1e20), "must be later than the start"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 1.0, degree=2.5), "degree: expected a whole number"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 1.0, degree=True), "degree: expected a whole number"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 1.0, degree=0), "degree: expected at least 1"),
        (lambda: BSpline.uniform(np.zeros((4, 1)), 1.0, outside="wrap"), "outside: expected 'hold' or 'refuse'"),
        (lambda: BSpline.uniform(np.zeros((4, 2)), 1.0, names=["a"]), "expected 2 joint names"),
        (lambda: BSpline.uniform(np.zeros((4, 2)), 1.0, names=["a", 2]), "non-empty strings, got 2"),
        (lambda: BSpline(np.arange(8.0), np.zeros((5, 1))), "8 knots of degree 3 carry 4 control points, got 5"),
        (lambda: BSpline(np.arange(7.0), np.zeros((3, 1))), "degree 3 needs at least 8 knots"),
        (lambda: BSpline([0, 1, 2, 3, 4, 6, 5, 7], np.zeros((4, 1))), r"knots\[6\] = 5 < knots\[5\] = 6"),
        (lambda: BSpline([0, 0, 0, 0, 0, 1, 1, 1, 1], np.zeros((5, 1))), "first and the last segment"),
        (lambda: BSpline(clamped_knots(8, 3)[[*range(6), 5, 5, 5, *range(6, 12)]], np.zeros((11, 1))), "more than 3"),
        (lambda: BSpline([0, 0, 1e-320, 1e-320], np.zeros((2, 1)), degree=1), "beyond the range"),
        (lambda: uniform_knots(5, 3, (-1e308, 1e308)), "beyond the range"),
        (lambda: clamped_knots(5, 3, (1.0, 1.0)), "must be later"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).with_duration(0), "duration"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).with_duration(np.nan), "duration"),
        (
            lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).with_control_points(np.zeros((5, 1))),
            r"\(4, 1\), got \(5, 1\)",
        ),
        (
            lambda: BSpline.clamped(np.zeros((5, 1)), 1.0).insert_knots([1.0]),
            r"1 is not inside of the interval \(0, 1\)",
        ),
        (lambda: BSpline.clamped(np.zeros((5, 1)), 1.0).insert_knots([0.5] * 3), "more than 3 times"),
        (lambda: BSpline.clamped(np.zeros((5, 1)), 1.0).refine(4), "from 5 up, got 4"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)(np.nan), "time: .* nan"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)([0.0, np.inf]), "times: .* got inf at index 1"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)([[0.0]]), r"times: expected shape \(N,\), got \(1, 1\)"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)("now"), "time: expected a number, got the text 'now'"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)([0.0, [1.0]]), "rows of different lengths"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0)(0.0, -1), "order: expected at least 0"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).evaluate(0.0, 1.0), "order: expected a whole number"),
        (lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).duration_matrix(0.0, fixed="T"), "'phase' or 'time'"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(CstormError, match=message):
        make()


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.floats(), max_size=9),
    st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=2), min_size=1, max_size=6),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)


@pytest.mark.slow
@given(ODD, ODD, ODD, ODD, ODD)
@settings(max_examples=300, deadline=None)
def test_only_our_own_errors_come_out(knots, points, degree, names, times):
    """Whatever is given, the answer is a curve with finite values or a CstormError."""
    makers = (
        lambda: BSpline(knots, points, degree=degree, names=names),
        lambda: BSpline.clamped(points, times, degree=degree, names=names),
        lambda: BSpline.uniform(points, 1.0, degree=degree, t0=times),
    )
    for make in makers:
        try:
            curve = make()
        except CstormError:
            continue
        assert np.isfinite(curve([curve.t0, curve.t1])).all()
        try:
            curve(times, degree)
            curve.insert_knots(knots)
        except CstormError:
            pass
