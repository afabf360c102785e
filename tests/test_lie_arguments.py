"""What the Lie groups take and refuse: batches, shapes, numbers, poses that are none."""

import inspect
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lie_cases import AXES, EPS, VELOCITY

from cstormpy import lie
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError

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
        hint = "; exp_so3 makes it of a rotation vector.*" if name in ("R", "rotation") else ""
        for bad in (good[..., :-1], good[0], 1.0, [], np.zeros((2, 7)), np.zeros((7, 7))):
            got = re.escape(str(np.shape(bad)))
            with pytest.raises(ShapeError, match=rf"^{name}: expected shape \(\.\.\., .*got {got}{hint}$"):
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


def test_a_rotation_in_another_form_is_told_what_makes_one():
    """Of a rotation vector or a quaternion in place of the matrix only the shape was said."""
    for other in ([0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 1.0]):
        with pytest.raises(ShapeError, match=r"^R: .*; exp_so3 makes it of a rotation vector, SciPy's Rotation of"):
            lie.make_pose(other, [0, 0, 0])


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
