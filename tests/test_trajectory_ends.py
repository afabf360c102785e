"""End conditions met by fixing control points: exactly, for any free parameters, durations and kinds of knots."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cstormpy.errors import CstormError
from cstormpy.trajectory import BSpline, ControlPointMap, EndConditions

NAMES = ("q0", "qd0", "qdd0", "qddd0", "q1", "qd1", "qdd1", "qddd1")


def template(kind: str, degree: int, m: int, n: int, duration: float = 1.5) -> BSpline:
    if kind == "irregular":
        knots = np.cumsum(np.random.default_rng(m).uniform(0.1, 0.4, m + degree + 1))
        return BSpline(knots, np.zeros((m, n)), degree=degree)
    maker = BSpline.uniform if kind == "uniform" else BSpline.clamped
    return maker(np.zeros((m, n)), duration, degree=degree, t0=-0.3)


def check_met(curve: BSpline, wanted: dict[str, np.ndarray], names=NAMES) -> None:
    """Hold each condition to rounding, in units of what its terms are made of: (2 p / gap)^order times the points."""
    size = 1.0 + np.abs(curve.control_points).max()
    first, last = np.diff(curve.breaks)[[0, -1]]
    for name in names:
        order, time, gap = name.count("d"), *((curve.t0, first) if name[-1] == "0" else (curve.t1, last))
        scale = size * (2 * curve.degree / gap) ** order
        expected = np.asarray(wanted[name], dtype=float)
        free = np.isnan(expected)
        difference = np.where(free, 0.0, curve(time, order) - expected)
        assert np.abs(difference).max() <= 1e-14 * scale, name


@pytest.mark.parametrize("kind", ["uniform", "clamped", "irregular"])
@pytest.mark.parametrize("degree", range(1, 8))
def test_every_set_of_conditions_is_met_for_any_parameters(degree, kind):
    rng = np.random.default_rng(degree)
    curve = template(kind, degree, 13, 2)
    possible = [name for name in NAMES if name.count("d") <= degree]
    sets = [c for k in range(len(possible) + 1) for c in itertools.combinations(possible, k)]
    for names in sets if len(sets) < 20 else [sets[i] for i in rng.integers(0, len(sets), 20)]:
        wanted = {name: rng.uniform(-2, 2, 2) for name in names}
        ends = curve.fix_ends(EndConditions(**wanted))
        assert ends.size == 2 * (13 - len(names))
        for duration in (curve.duration, 4.0):
            x = rng.uniform(-1, 1, ends.size)
            at = ends.with_duration(duration)
            check_met(curve.with_duration(duration).with_control_points(at.control_points(x)), wanted, names)


@given(degree=st.integers(1, 7), extra=st.integers(0, 10), seed=st.integers(0, 2**16), kind=st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_joints_may_differ_in_what_is_prescribed(degree, extra, seed, kind):
    rng = np.random.default_rng(seed)
    names = [name for name in NAMES if name.count("d") <= min(degree, 2)]
    m = max(degree + 1, 2 * degree) + extra
    curve = template(("uniform", "clamped", "irregular")[kind], degree, m, 4)
    wanted = {name: np.where(rng.random(4) < 0.5, np.nan, rng.uniform(-2, 2, 4)) for name in names}
    conditions = {k: [None if np.isnan(v) else v for v in values] for k, values in wanted.items()}
    try:
        ends = curve.fix_ends(EndConditions(**conditions))
    except CstormError as error:  # with few control points the ends may share too many
        assert m < 2 * degree + 2
        assert "control points" in str(error)
        return
    x = rng.uniform(-1, 1, ends.size)
    points = ends.control_points(x)
    check_met(curve.with_control_points(points), wanted, names)
    # three ways to say Z
    z = ends.matrix
    np.testing.assert_allclose(z @ x + ends.offset.ravel(), points.ravel(), rtol=0, atol=1e-12)
    g = rng.standard_normal(ends.shape)
    np.testing.assert_allclose(ends.pull_back(g), z.T @ g.ravel(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ends.parameters(points), x)
    if z.nnz:
        assert np.abs(z.data).max() <= 1.02  # bounds on x keep the control points bounded


@pytest.mark.parametrize(
    ("degree", "m", "names"),
    [(6, 7, ("qdd0", "q1", "qd1")), (8, 10, ("qd0", "qdd1", "qddd1")), (4, 5, ("qdd0", "q1")), (5, 20, ("q0", "q1"))],
)
def test_no_coefficient_of_the_map_is_large(degree, m, names):
    """With few control points, solving for those that come first would leave coefficients of 2 and more."""
    curve = BSpline.uniform(np.zeros((m, 1)), 1.0, degree=degree)
    assert np.abs(curve.fix_ends(EndConditions(**dict.fromkeys(names, 0.0))).matrix.data).max() <= 1.02


def test_rest_to_rest_on_clamped_knots_is_exact_to_the_last_bit():
    """The outer two control points at either end are the position: nothing to round."""
    q0, q1 = np.array([0.1, -1.3]), np.array([0.7, 2.9])
    ends = BSpline.clamped(np.zeros((9, 2)), 0.3934).fix_ends(EndConditions.at_rest(q0, q1))
    points = ends.control_points(np.random.default_rng(0).standard_normal(ends.size))
    np.testing.assert_array_equal(points[[0, 1, -2, -1]], [q0, q0, q1, q1])
    assert ends.size == 2 * 5 and ends.matrix.nnz == 2 * 5  # the rest is x itself


def test_paper_004_uniform_cubic_at_rest():
    """22 control points, position and rate given at both ends: (39) and its rate at a knot, 1-4-1 and −1-0-1."""
    curve = BSpline.uniform(np.zeros((22, 2)), 0.39)
    ends = curve.fix_ends(EndConditions.at_rest([0.0, 0.5], [1.0, 1.5]))
    assert ends.size == 36
    points = ends.control_points(np.linspace(0, 1, 36))
    np.testing.assert_allclose(points[0] + 4 * points[1] + points[2], [0.0, 3.0], atol=1e-14)
    np.testing.assert_allclose(points[0], points[2], atol=1e-15)
    np.testing.assert_allclose(points[-1], points[-3], atol=1e-15)


@pytest.mark.parametrize("kind", ["uniform", "clamped"])
def test_offset_follows_the_duration(kind):
    """∂P0/∂T against a central difference; P0 is a cubic in T, so that the error is h² / 6 P0''' + eps P0 / h."""
    rng = np.random.default_rng(4)
    curve = template(kind, 7, 14, 2, duration=2.0)
    ends = curve.fix_ends(EndConditions(**{name: rng.uniform(-2, 2, 2) for name in NAMES}))
    h = 1e-5
    difference = (ends.with_duration(2.0 + h).offset - ends.with_duration(2.0 - h).offset) / (2 * h)
    np.testing.assert_allclose(ends.offset_rate, difference, rtol=0, atol=1e-9)
    assert ends.with_duration(2.0 + h).matrix is not None and ends.duration == 2.0
    np.testing.assert_array_equal(ends.with_duration(3.0).matrix.toarray(), ends.matrix.toarray())


def test_as_many_conditions_as_control_points_leave_nothing_free():
    curve = BSpline.clamped(np.zeros((6, 1)), 2.0, degree=5)
    ends = curve.fix_ends(EndConditions.at_rest([0.0], [1.0], order=2))
    assert ends.size == 0 and ends.matrix.shape == (6, 0)
    np.testing.assert_allclose(ends.control_points([]).ravel(), [0, 0, 0, 1, 1, 1], atol=1e-15)


def test_no_conditions_leave_all_free():
    ends = BSpline.uniform(np.zeros((5, 2)), 1.0).fix_ends(EndConditions())
    assert ends.size == 10 and not ends.offset.any()
    np.testing.assert_array_equal(ends.matrix.toarray(), np.eye(10))
    assert "10 of 10 numbers free" in repr(ends)


def test_conditions_are_values():
    one = EndConditions(q0=[0, 1], qd0=0, q1=np.array([1.0, 2.0]))
    assert one == EndConditions(q0=(0.0, 1.0), qd0=0.0, q1=[1, 2]) and hash(one) == hash(
        pickle.loads(pickle.dumps(one))
    )
    assert eval(repr(one)) == one
    curve = BSpline.uniform(np.random.default_rng(0).standard_normal((7, 2)), 1.0)
    of = EndConditions.of(curve, order=2)
    assert of.qdd1 == tuple(curve.acceleration(curve.t1)) and of.qddd0 is None
    np.testing.assert_allclose(
        curve.fix_ends(of).control_points(curve.fix_ends(of).parameters(curve.control_points)),
        curve.control_points,
        atol=1e-13,
    )
    copy = pickle.loads(pickle.dumps(curve.fix_ends(of)))
    assert isinstance(copy, ControlPointMap) and np.array_equal(copy.offset, curve.fix_ends(of).offset)


SIX = BSpline.clamped(np.zeros((6, 2)), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SIX.fix_ends(EndConditions(q0=[0.0])), "q0: expected 2 entries, one per joint, or one number; got 1"),
        (lambda: SIX.fix_ends({"q0": 0}), "expected EndConditions, got "),
        (
            lambda: BSpline.clamped(np.zeros((4, 1)), 1.0).fix_ends(EndConditions.at_rest([0.0], [1.0], 2)),
            "6 conditions on one joint .* need at least 6 control points, the curve has 4",
        ),
        (
            lambda: BSpline.clamped(np.zeros((2, 1)), 1.0, degree=1).fix_ends(EndConditions(qd0=0.0, qd1=0.0)),
            "rate at the end cannot be chosen freely beside rate at the start.*too few control points",
        ),
        (
            lambda: BSpline.uniform(np.zeros((4, 1)), 1.0).fix_ends(EndConditions(qddd0=1.0, qddd1=2.0)),
            "jerk at the end cannot be chosen freely",
        ),
        (
            lambda: BSpline.clamped(np.zeros((9, 1)), 1.0, degree=2).fix_ends(EndConditions(qddd1=0.0)),
            "jerk at the end of a curve of degree 2 is always zero",
        ),
        (lambda: EndConditions(q0=np.nan), "q0: .* nan"),
        (lambda: EndConditions(q1=[0.0, np.inf]), r"q1: .* got inf at index 1"),
        (lambda: EndConditions(qd0="fast"), "qd0: expected real numbers"),
        (lambda: EndConditions(qd0=[[0.0]]), r"qd0: expected shape \(N,\), got \(1, 1\)"),
        (lambda: EndConditions.at_rest([0.0], [1.0], 4), "up to order 3"),
        (lambda: EndConditions.at_rest([0.0], [1.0], 0), "at least 1"),
        (lambda: SIX.fix_ends(EndConditions()).control_points(np.zeros(3)), r"free parameters: expected shape \(12,\)"),
        (
            lambda: SIX.fix_ends(EndConditions()).control_points(np.full(12, np.nan)),
            r"free parameters: .* got nan at index 0",
        ),
        (
            lambda: SIX.fix_ends(EndConditions()).parameters(np.zeros((5, 2))),
            r"control points: expected shape \(6, 2\)",
        ),
        (lambda: SIX.fix_ends(EndConditions()).pull_back(np.zeros(12)), r"gradient: expected shape \(6, 2\)"),
        (lambda: SIX.fix_ends(EndConditions()).with_duration(-1.0), "duration"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(CstormError, match=message):
        make()
