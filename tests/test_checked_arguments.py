"""The border between users' arrays and the kernels: what is taken, what is refused, and in which words."""

import copy
import inspect
import pickle
import re
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, random_state

from cstormpy import lie
from cstormpy.arrays import as_floats
from cstormpy.dynamics import batches
from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.errors import (
    CstormError,
    InvalidType,
    InvalidValue,
    NonFinite,
    ShapeError,
    SingularInertia,
    UnknownName,
    shown,
)
from cstormpy.kernels.layout import LANES
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, library

ACROBOT = library.acrobot(parameters="rods").with_drive(active=["elbow"])
Z = np.zeros(2)
SIX = np.zeros(6)


def hybrid(mech, *args, **options):
    return mech.hybrid_dynamics(*args, **options).y


def sensitivity(mech, *args, **options):
    return mech.hybrid_sensitivity(*args, **options).dy_dq


def prepared(mech, *args):
    return mech.hybrid_evaluator()(*args)


def prepared_sensitivity(mech, *args):
    return mech.hybrid_sensitivity_evaluator()(*args)[1]


#: What takes q, qd, u, and what these are called in messages.
THREE = {
    hybrid: "u",
    sensitivity: "u",
    prepared: "u",
    prepared_sensitivity: "u",
    Mechanism.inverse_dynamics: "qdd",
    Mechanism.forward_dynamics: "tau",
}
careful = [f for f in THREE if f not in (prepared, prepared_sensitivity)]
three = pytest.mark.parametrize("ask", THREE)


def samples(mech, count, seed=0):
    return random_state(np.random.default_rng(seed), mech, count)


# What is taken ----------------------------------------------------------------------------------------


def as_read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def misaligned(a):
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(a.shape)
    view[...] = a
    return view


class Heir(np.ndarray):
    pass


class Boxed:
    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return self.a


#: The same numbers (halves and quarters, so that a float32 holds them) in other clothes.
CLOTHES = {
    "list": np.ndarray.tolist,
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim > 1 else tuple(a.tolist()),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "big-endian": lambda a: a.astype(">f8"),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed": lambda a: a[..., ::-1].copy()[..., ::-1],
    "Fortran": np.asfortranarray,
    "read-only": as_read_only,
    "misaligned": misaligned,
    "subclass": lambda a: a.view(Heir),
    "masked": lambda a: np.ma.array(a, mask=np.zeros(a.shape)),
    "memoryview": memoryview,
    "array interface": Boxed,
    "list of arrays": list,
}


@pytest.mark.nojit
@three
@pytest.mark.parametrize("shape", [(2,), (11, 2)], ids=["sample", "batch"])
def test_any_array_of_the_same_numbers_gives_the_same(ask, shape):
    rng = np.random.default_rng(1)
    numbers = [rng.integers(-8, 8, size=shape) / 4.0 for _ in range(3)]
    expected = ask(ACROBOT, *numbers)
    for wear in CLOTHES.values():
        found = ask(ACROBOT, *map(wear, numbers))
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
        for k in range(3):  # one of them alone
            mixed = [wear(a) if i == k else a for i, a in enumerate(numbers)]
            np.testing.assert_array_equal(ask(ACROBOT, *mixed), expected)


@pytest.mark.nojit
@three
@pytest.mark.parametrize("kind", [int, np.int8, np.uint16, np.int64, np.uint64])
def test_integers_are_numbers(ask, kind):
    numbers = [np.array([1, 2]), np.array([3, 0]), np.array([2, 1])]
    expected = ask(ACROBOT, *(a.astype(float) for a in numbers))
    np.testing.assert_array_equal(ask(ACROBOT, *(a.astype(kind) for a in numbers)), expected)
    assert ask(ACROBOT, *(a.astype(kind) for a in numbers)).dtype == np.float64


@pytest.mark.nojit
@three
def test_what_was_given_stays_as_it_was(ask):
    for shape in ((2,), (9, 2)):
        given_ = [np.full(shape, 0.5 * k) for k in range(3)]
        ask(ACROBOT, *given_)
        for k, array in enumerate(given_):
            np.testing.assert_array_equal(array, np.full(shape, 0.5 * k))


@pytest.mark.parametrize("shape", [(2,), (9, 2)])
@pytest.mark.parametrize("question", ["hybrid_dynamics", "hybrid_sensitivity"])
def test_an_answer_does_not_change_with_what_was_given(question, shape):
    """A stepper that fills the same u again and again changed the answers of before."""
    u = np.ones(shape)
    r = getattr(ACROBOT, question)(np.zeros(shape), np.zeros(shape), u)
    before = r.y.copy(), r.qdd.copy(), r.tau.copy()
    u[...] = 7.0
    np.testing.assert_array_equal((r.y, r.qdd, r.tau), before)


@pytest.mark.parametrize("answer", [lambda: prepared(ACROBOT, Z, Z, Z), lambda: prepared_sensitivity(ACROBOT, Z, Z, Z)])
def test_answers_are_fresh_arrays(answer):
    first = answer()
    kept = first.copy()
    assert not np.shares_memory(first, answer())
    first[...] = 3.0
    np.testing.assert_array_equal(answer(), kept)


@pytest.mark.nojit
@pytest.mark.parametrize("kinds", [("revolute",), ("prismatic", "fixed"), ("screw", "revolute")])
def test_a_batch_is_its_samples(kinds):
    rng = np.random.default_rng(5)
    mech = random_mechanism(rng, links=5, kinds=kinds)
    q, qd, u = random_state(rng, mech, 2 * LANES + 3)
    for ask in THREE:
        whole = ask(mech, q, qd, u)
        for k in (0, LANES - 1, LANES, len(q) - 1):
            np.testing.assert_allclose(ask(mech, q[k], qd[k], u[k]), whole[k], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.nojit
def test_no_samples_have_no_answers():
    none = np.zeros((0, 2))
    for ask in THREE:
        assert ask(ACROBOT, none, none, none).shape[0] == 0
    assert hybrid(ACROBOT, none, none, none).shape == (0, 2)
    assert sensitivity(ACROBOT, none, none, none).shape == (0, 2, 2)
    d = ACROBOT.hybrid_sensitivity(none, none, none, to_base=True, threads=None)
    assert d.dy_dbase.shape == (0, 2, 12)
    assert hybrid(ACROBOT, none, none, none, wrench=np.zeros((2, 6)), base=(SIX, SIX)).shape == (0, 2)
    assert hybrid(ACROBOT, none, none, none, wrench=np.zeros((0, 2, 6))).shape == (0, 2)
    assert hybrid(ACROBOT, none, none, none, base=(np.zeros((0, 6)), SIX)).shape == (0, 2)
    assert hybrid(ACROBOT, none, none, none, wrench=[("forearm", None, np.zeros((0, 6)))]).shape == (0, 2)
    assert ACROBOT.bias(none, none).shape == (0, 2)
    assert ACROBOT.gravity_load(none).shape == (0, 2)
    assert ACROBOT.mass_matrix(none).shape == (0, 2, 2)
    assert ACROBOT.energy(none, none)[0].shape == (0,)
    assert ACROBOT.forward_kinematics(none).shape == (0, 2, 4, 4)
    assert ACROBOT.jacobian(none, "forearm").shape == (0, 6, 2)
    assert ACROBOT.jacobian_derivative(none, "forearm").shape == (0, 6, 2, 2)
    assert [a.shape for a in ACROBOT.hybrid_jvp(*[none] * 6)] == [(0, 2)] * 2
    assert [a.shape for a in ACROBOT.hybrid_vjp(*[none] * 4)] == [(0, 2)] * 4


@pytest.mark.slow
@pytest.mark.nojit
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_a_mechanism_that_can_not_move_has_empty_answers(shape):
    mech = Mechanism([Link("block", None, Fixed(), mass=1.0)])
    nothing = np.zeros(shape)
    for ask in (hybrid, prepared, Mechanism.inverse_dynamics, Mechanism.forward_dynamics):
        assert ask(mech, nothing, nothing, nothing).shape == shape
    assert sensitivity(mech, nothing, nothing, nothing).shape == (*shape, 0)
    assert mech.mass_matrix(nothing).shape == (*shape, 0)
    assert mech.jacobian(nothing, 0).shape == (*shape[:-1], 6, 0)
    np.testing.assert_array_equal(
        mech.forward_kinematics(nothing)[..., 0, :, :], np.broadcast_to(np.eye(4), (*shape[:-1], 4, 4))
    )


# What is refused ----------------------------------------------------------------------------------------

NO_NUMBERS = {
    "None": None,
    "text": "ab",
    "bytes": b"ab",
    "bool": True,
    "bools": [True, False],
    "complex": np.array([1.0, 2.0j]),
    "object": object(),
    "objects": [object(), 1.0],
    "dictionary": {0: 1.0, 1: 2.0},
    "set": {1.0, 2.0},
    "empty set": set(),
    "iterator": iter([1.0, 2.0]),
    "function": len,
    "dates": np.array([0, 1], dtype="M8[s]"),
    "durations": np.array([0, 1], dtype="m8[s]"),
    "record": np.zeros(2, dtype=[("a", float)]),
    "strings": ["1.0", "2.0"],
    "none among them": [None, 1.0],
}


@pytest.mark.nojit
@three
@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_array_of_real_numbers_is_refused(ask, value):
    for k, name in enumerate(("q", "qd", THREE[ask])):
        arguments = [Z, Z, Z]
        arguments[k] = value
        with pytest.raises(InvalidType, match=rf"^{name}: expected real numbers, got"):
            ask(ACROBOT, *arguments)


@pytest.mark.nojit
@three
def test_rows_of_different_lengths_are_refused(ask):
    for ragged in ([[1.0], [1.0, 2.0]], [1.0, [2.0]], [np.zeros(2), np.zeros(3)]):
        with pytest.raises(ShapeError, match=r"^q: expected an array of numbers, got rows of different lengths"):
            ask(ACROBOT, ragged, Z, Z)


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
@pytest.mark.parametrize("shape", [(2,), (3, 2)], ids=["sample", "batch"])
def test_masked_numbers_are_refused(ask, shape):
    """Always: numba takes a masked sample for the array beneath it once it has seen a plain one."""
    plain = np.ones(shape)
    ask(ACROBOT, plain, plain, plain)
    masked = np.ma.array(plain, mask=np.broadcast_to([False, True], shape))
    for k, name in enumerate(("q", "qd", THREE[ask])):
        given_ = [plain] * 3
        given_[k] = masked
        with pytest.raises(InvalidValue, match=rf"^{name}: expected numbers, got an array in which some are masked"):
            ask(ACROBOT, *given_)


@pytest.mark.nojit
@three
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (1, 1), (2, 1), (2, 3), (1, 2, 2), (2, 0)])
def test_another_shape_is_refused(ask, shape):
    begin = "q: expected shape (2,) or (N, 2), got "
    for first in (np.zeros(shape), np.zeros(shape).tolist()):
        got = np.shape(first)
        with pytest.raises(ShapeError, match=f"^{re.escape(f'{begin}{got}; the coordinates are shoulder, elbow')}$"):
            ask(ACROBOT, first, Z, Z)


@pytest.mark.nojit
@three
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 2), (2, 2)])
def test_arguments_that_do_not_go_together_are_refused(ask, shape):
    """Neither a sample with a batch, nor a batch of one with another: nothing is spread over anything."""
    for k, name in ((1, "qd"), (2, THREE[ask])):
        arguments = [Z, Z, Z]
        arguments[k] = np.zeros(shape)
        with pytest.raises(ShapeError, match=rf"^{name}: expected shape \(2,\) like q, got"):
            ask(ACROBOT, *arguments)
    with pytest.raises(
        ShapeError, match=r"expected shape \(3, 2\) like q, got \(2,\); give one sample of each or a batch"
    ):
        ask(ACROBOT, np.zeros((3, 2)), Z, np.zeros((3, 2)))


def test_one_number_is_no_array_of_one():
    """A pendulum's q = 0.5 was once taken for [0.5]."""
    mech = library.pendulum(1)
    for ask in THREE:
        with pytest.raises(ShapeError, match=r"expected shape \(1,\) or \(N, 1\), got \(\)"):
            ask(mech, 0.5, 0.0, 0.0)
    with pytest.raises(ShapeError):
        mech.forward_kinematics(0.5)


@pytest.mark.nojit
@three
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named_by_joint_and_row(ask, value):
    for k, name in enumerate(("q", "qd", THREE[ask])):
        arguments = [Z.copy(), Z.copy(), Z.copy()]
        arguments[k][1] = value
        with pytest.raises(
            NonFinite, match=rf"^{name}: expected finite numbers, got {value} at index 1 \(joint 'elbow'\)$"
        ):
            ask(ACROBOT, *arguments)
        arguments = [np.zeros((40, 2)) for _ in range(3)]
        arguments[k][29, 0] = value
        with pytest.raises(
            NonFinite, match=rf"^{name}: expected finite .*, got {value} at index \(29, 0\) \(joint 'shoulder'\)$"
        ):
            ask(ACROBOT, *arguments)


@pytest.mark.nojit
def test_a_long_double_beyond_the_range_is_not_finite():
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        with pytest.raises(NonFinite, match=r"^q: expected finite numbers, got inf at index 0 \(joint 'shoulder'\)"):
            hybrid(ACROBOT, np.array([np.longdouble("1e4000"), 0]), Z, Z)


@pytest.mark.usefixtures("eager_threads")
def test_one_bad_row_of_many_is_found():
    q, qd, u = samples(ACROBOT, 50_000)
    qd[40_001, 1] = np.nan
    for threads in (1, 2):
        with pytest.raises(
            NonFinite, match=r"^qd: expected finite numbers, got nan at index \(40001, 1\) \(joint 'elbow'\)"
        ):
            hybrid(ACROBOT, q, qd, u, threads=threads)


def test_directions_and_gradients_are_checked_by_their_names():
    given_ = [np.zeros((3, 2)) for _ in range(6)]
    for k, name in enumerate(("q", "qd", "u", "dq", "dqd", "du")):
        bad = list(given_)
        bad[k] = np.full((3, 2), np.nan)
        with pytest.raises(NonFinite, match=rf"^{name}: .* got nan at index \(0, 0\) \(joint 'shoulder'\)"):
            ACROBOT.hybrid_jvp(*bad)
    with pytest.raises(ShapeError, match=r"^gy: expected shape \(3, 2\) like q, got \(2,\)"):
        ACROBOT.hybrid_vjp(*given_[:3], Z)


# Wrenches -----------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_wrenches_of_another_shape_are_refused(ask):
    batch = [np.zeros((3, 2))] * 3
    for wrench in (SIX, np.zeros((3, 6)), np.zeros((2, 5)), np.zeros((3, 2, 6)), np.zeros((1, 2, 6)), 0.0, [[1.0] * 6]):
        with pytest.raises(ShapeError, match=r"^wrench: expected shape \(2, 6\), got .*for each of 2 links"):
            ask(ACROBOT, Z, Z, Z, wrench=wrench)
    for wrench in (SIX, np.zeros((3, 6)), np.zeros((2, 2, 6)), np.zeros((1, 2, 6))):
        with pytest.raises(ShapeError, match=r"^wrench: expected shape \(2, 6\) or \(3, 2, 6\), got"):
            ask(ACROBOT, *batch, wrench=wrench)
    with pytest.raises(InvalidType, match=r"^wrench: expected real numbers, got"):
        ask(ACROBOT, Z, Z, Z, wrench={"forearm": SIX})


@pytest.mark.nojit
def test_wrenches_that_are_not_finite_are_named_by_link():
    wrench = np.zeros((9, 2, 6))
    wrench[7, 1, 4] = np.inf
    batch = [np.zeros((9, 2))] * 3
    with pytest.raises(NonFinite, match=r"^wrench: .* got inf at index \(7, 1, 4\) \(link 'forearm'\)"):
        hybrid(ACROBOT, *batch, wrench=wrench)
    with pytest.raises(
        NonFinite, match=r"^wrench: .* got inf at index \(1, 4\) \(link 'forearm'\)"
    ):  # one for all samples has no row
        hybrid(ACROBOT, *batch, wrench=wrench[7])
    with pytest.raises(NonFinite, match=r"^wrench\[0\] on link .*: expected finite numbers, got nan at index 0"):
        hybrid(ACROBOT, Z, Z, Z, wrench=[(0, np.eye(4), [np.nan, 0, 0, 0, 0, 0])])


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_a_load_that_is_no_load_is_refused(ask):
    put = partial(ask, ACROBOT, Z, Z, Z)
    with pytest.raises(UnknownName, match=r"^link 'forarm' does not exist; did you mean 'forearm'"):
        put(wrench=[("forarm", None, SIX)])
    for link in (2, -1, 2**70):
        with pytest.raises(
            InvalidValue, match=rf"^wrench\[1\]: expected a position from 0 to 1 in the links, got {shown(link)}$"
        ):
            put(wrench=[(0, None, SIX), (link, None, SIX)])
    for link in (True, None, 1.0, [0]):
        with pytest.raises(InvalidType, match=r"^wrench\[1\]: expected"):
            put(wrench=[("forearm", None, SIX), (link, None, SIX)])
    for entry in (("forearm", SIX), ("forearm", None, SIX, SIX), ("forearm",), SIX, None):
        with pytest.raises(InvalidType, match=r"^wrench\[1\]: expected \(link, pose or None, wrench\), got a"):
            put(wrench=[(0, None, SIX), entry])
    with pytest.raises(InvalidType, match=r"^wrench: expected a list of .*put it in a list"):
        put(wrench=("forearm", None, SIX))
    for bad in (np.zeros(3), np.zeros((1, 6)), 0.0, np.zeros((2, 6))):
        with pytest.raises(
            ShapeError, match=r"^wrench\[0\] on link 'forearm': expected shape \(6,\), got .*moment, force"
        ):
            put(wrench=[("forearm", None, bad)])
    with pytest.raises(InvalidType, match=r"^wrench\[0\] on link 'forearm': expected real numbers"):
        put(wrench=[("forearm", None, "north")])


@pytest.mark.nojit
def test_the_pose_of_a_load_is_checked():
    put = partial(hybrid, ACROBOT, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)))
    begin = r"^wrench\[0\] on link 'forearm', its pose: expected"
    for pose in (np.eye(3), SIX, 1.0, np.stack([np.eye(4)] * 3), np.stack([np.eye(4)] * 5)):
        with pytest.raises((ShapeError, InvalidType), match=begin):
            put(wrench=[("forearm", pose, SIX)])
    for pose in (2 * np.eye(4), np.diag([1.0, 1, -1, 1]), np.full((4, 4), np.nan)):
        with pytest.raises(InvalidValue, match=begin):
            put(wrench=[("forearm", pose, SIX)])
    far = np.eye(4)
    far[0, 3] = 1e300
    with pytest.raises(NonFinite, match=r"^wrench\[0\] on link 'forearm': its moment in the link's frame overflows"):
        put(wrench=[("forearm", far, [0, 0, 0, 0, 1e300, 0])])
    with pytest.raises(
        NonFinite, match=r"^wrench\[1\] on link 'forearm', the sum of loads: expected finite numbers, got inf"
    ):
        put(wrench=[("forearm", None, np.full(6, 1.7e308))] * 2)


@pytest.mark.nojit
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_loads_are_carried_over_to_their_links(seed):
    """A wrench in a frame whose pose in the link's is T = (R, p): force R f, moment R m + p x R f."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=4)
    q, qd, u = random_state(rng, mech, 5)
    total, loads = np.zeros((5, 4, 6)), []
    for _ in range(rng.integers(0, 6)):
        link = int(rng.integers(4))
        pose = random_pose(rng) if rng.random() < 0.7 else None
        wrench = rng.normal(size=(5, 6) if rng.random() < 0.5 else 6)
        loads.append((mech.links[link].name if rng.random() < 0.5 else np.int64(link), pose, wrench))
        R, p = (np.eye(3), np.zeros(3)) if pose is None else (pose[:3, :3], pose[:3, 3])
        moment, force = wrench[..., :3] @ R.T, wrench[..., 3:] @ R.T
        total[:, link] += np.concatenate([moment + np.cross(p, force), force], axis=-1)
    rows = read_samples(mech, {"q": q}, wrench=loads).wrench
    np.testing.assert_allclose(np.broadcast_to(rows, (5, 24)), total.reshape(5, 24), rtol=0, atol=1e-12)
    found = mech.inverse_dynamics(q, qd, u, wrench=loads)
    np.testing.assert_allclose(found, mech.inverse_dynamics(q, qd, u, wrench=total), rtol=0, atol=1e-9)


@pytest.mark.nojit
def test_a_wrench_for_all_samples_is_the_same_for_each():
    rng = np.random.default_rng(3)
    q, qd, u = samples(ACROBOT, 2 * LANES + 1)
    wrench, base = rng.normal(size=(2, 6)), tuple(rng.normal(size=(2, 6)))
    shared = hybrid(ACROBOT, q, qd, u, wrench=wrench, base=base)
    each = hybrid(
        ACROBOT, q, qd, u, wrench=np.tile(wrench, (len(q), 1, 1)), base=[np.tile(b, (len(q), 1)) for b in base]
    )
    np.testing.assert_array_equal(shared, each)
    half = hybrid(ACROBOT, q, qd, u, wrench=wrench, base=(base[0], np.tile(base[1], (len(q), 1))))
    np.testing.assert_array_equal(shared, half)


def test_no_loads_are_no_wrench():
    np.testing.assert_array_equal(hybrid(ACROBOT, Z, Z, Z, wrench=[]), hybrid(ACROBOT, Z, Z, Z))


# The base, links, threads -----------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_a_motion_of_the_base_of_another_form_is_refused(ask):
    for base in (SIX, (SIX,), (SIX,) * 3, 0.0, np.array(1.0), "ab" * 2, {0: SIX, 1: SIX}, np.zeros((3, 6))):
        with pytest.raises(InvalidValue, match=r"^base: expected the pair \(V0, dV0\)"):
            ask(ACROBOT, Z, Z, Z, base=base)
    for bad in (np.zeros(5), np.zeros((1, 6)), 0.0):
        with pytest.raises(ShapeError, match=r"^base, dV0: expected shape \(6,\), got .*angular, linear"):
            ask(ACROBOT, Z, Z, Z, base=(SIX, bad))
    batch = [np.zeros((3, 2))] * 3
    with pytest.raises(ShapeError, match=r"^base, V0: expected shape \(6,\) or \(3, 6\), got \(2, 6\)"):
        ask(ACROBOT, *batch, base=(np.zeros((2, 6)), SIX))
    with pytest.raises(InvalidType, match=r"^base, V0: expected real numbers"):
        ask(ACROBOT, Z, Z, Z, base=("fast", SIX))


@pytest.mark.nojit
def test_a_motion_of_the_base_that_is_not_finite_is_refused():
    fast = np.zeros((3, 6))
    fast[2, 3] = np.nan
    batch = [np.zeros((3, 2))] * 3
    with pytest.raises(NonFinite, match=r"^base, V0: expected finite numbers, got nan at index \(2, 3\)"):
        hybrid(ACROBOT, *batch, base=(fast, SIX))
    with pytest.raises(NonFinite, match=r"^base, dV0: expected finite numbers, got nan at index 3"):
        hybrid(ACROBOT, *batch, base=(np.zeros((3, 6)), fast[2]))


@pytest.mark.nojit
def test_a_link_is_a_name_or_a_position():
    np.testing.assert_array_equal(ACROBOT.jacobian(Z, "forearm"), ACROBOT.jacobian(Z, np.int32(1)))
    questions = [
        lambda link: ACROBOT.jacobian(Z, link),
        lambda link: ACROBOT.jacobian_rate(Z, Z, link),
        lambda link: ACROBOT.jacobian_derivative(Z, link),
    ]
    for ask in questions:
        for link in (2, -1, -2):
            with pytest.raises(
                InvalidValue, match=rf"^link: expected a position from 0 to 1 in the links, got {link}$"
            ):
                ask(link)
        for link in (None, 1.0, True, b"forearm", ["forearm"], np.array(1)):
            with pytest.raises(InvalidType, match=r"^link: expected the name of a link or its position, got a"):
                ask(link)
        with pytest.raises(UnknownName, match=r"^link 'fore arm' does not exist; did you mean 'forearm'"):
            ask("fore arm")


@pytest.mark.nojit
@pytest.mark.parametrize("threads", [0, -1, "2", 1.5, True, [2], np.float64(2)])
def test_threads_are_a_positive_number(threads):
    for shape in ((20, 2), (2,), (0, 2)):
        some = np.zeros(shape)
        for ask in (hybrid, sensitivity):
            with pytest.raises(
                InvalidValue, match=r"^threads: expected a positive number or None for one per core, got"
            ):
                ask(ACROBOT, some, some, some, threads=threads)
        for ask in (ACROBOT.forward_kinematics, ACROBOT.inertial, ACROBOT.gravity_load):
            with pytest.raises(InvalidValue, match=r"^threads: expected"):
                ask(some, threads=threads)
        with pytest.raises(InvalidValue, match=r"^threads: expected"):
            ACROBOT.hybrid_jvp(*[some] * 6, threads=threads)
        with pytest.raises(InvalidValue, match=r"^threads: expected"):
            ACROBOT.jacobian(some, 1, threads=threads)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.nojit
@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 5 * LANES + 3])
def test_any_number_of_threads_gives_the_same(count):
    q, qd, u = samples(ACROBOT, count)
    one = hybrid(ACROBOT, q, qd, u)
    for threads in (2, 3, 64, np.int64(2), None):
        np.testing.assert_array_equal(hybrid(ACROBOT, q, qd, u, threads=threads), one)
        np.testing.assert_array_equal(
            sensitivity(ACROBOT, q, qd, u, threads=threads), sensitivity(ACROBOT, q, qd, u, threads=1)
        )


@pytest.mark.usefixtures("eager_threads")
def test_threads_do_not_pile_up():
    """Each number of parts once had threads of its own."""
    before = threading.active_count()
    for parts in range(2, 9):
        q, qd, u = samples(ACROBOT, parts * LANES)
        hybrid(ACROBOT, q, qd, u, threads=8)
    assert threading.active_count() - before <= 2 + 4 + 8


def test_threads_of_the_user_do_not_meet():
    """Each thread has scratch memory of its own, and prepared functions hold the interpreter's lock."""
    rng = np.random.default_rng(8)
    mechs = [random_mechanism(rng, links=k) for k in (3, 9, 5)]
    work = [(m, *random_state(rng, m, 30)) for m in mechs]
    expected = [hybrid(*w) for w in work]
    wrong = []

    def repeat(k):
        mech, q, qd, u = work[k]
        for i in range(60):
            same = np.array_equal(hybrid(mech, q, qd, u), expected[k])
            one = np.allclose(
                prepared(mech, q[i % 30], qd[i % 30], u[i % 30]), expected[k][i % 30], rtol=1e-9, atol=1e-9
            )
            if not (same and one):
                wrong.append((k, i))

    threads = [threading.Thread(target=repeat, args=(k % 3,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.nojit
def test_what_scratch_memory_holds_from_before_does_not_matter():
    rng = np.random.default_rng(9)
    mech = random_mechanism(rng, links=5)
    q, qd, u = random_state(rng, mech, 11)
    wrench, base = rng.normal(size=(5, 6)), tuple(rng.normal(size=(2, 6)))
    questions = [
        lambda: hybrid(mech, q, qd, u),
        lambda: hybrid(mech, q, qd, u, wrench=wrench, base=base),
        lambda: mech.hybrid_sensitivity(q, qd, u, wrench, base, to_base=True).dy_dbase,
        lambda: sensitivity(mech, q, qd, u),
        lambda: mech.hybrid_jvp(q, qd, u, q, qd, u, wrench, base)[1],
        lambda: mech.hybrid_vjp(q, qd, u, u, wrench, base)[1],
        lambda: mech.forward_kinematics(q),
        lambda: mech.jacobian(q, 3),
        lambda: mech.jacobian_rate(q, qd, 3),
        lambda: mech.inertial(q, qd, base).momentum,
        lambda: mech.inertial(q, qd, base).kinetic_by_q,
    ]
    clean = [ask() for ask in questions]
    for ask, expected in zip(questions, clean, strict=True):
        batches.workspace(1)[...] = np.nan
        np.testing.assert_array_equal(ask(), expected)


# Prepared functions -----------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_out_receives_the_answer():
    expected = prepared(ACROBOT, Z, Z, Z)
    f = ACROBOT.hybrid_evaluator()
    for out in (np.full(2, 9.0), np.zeros((2, 2))[:, 1], np.zeros(2).view(Heir)):
        assert f(Z, Z, Z, out) is out
        np.testing.assert_array_equal(out, expected)
    out = np.zeros(2)
    assert f([0, 0], Z, Z, out=out) is out  # the careful way
    np.testing.assert_array_equal(out, expected)
    batch = np.zeros((3, 2))
    f(batch, batch, batch, out=batch)  # may be what was given
    np.testing.assert_allclose(batch, np.tile(expected, (3, 1)), rtol=1e-14)
    same = np.zeros(2)
    f(same, same, same, same)
    np.testing.assert_array_equal(same, expected)


@pytest.mark.nojit
def test_an_out_that_can_not_hold_the_answer_is_refused():
    f = ACROBOT.hybrid_evaluator()
    for shape in ((), (3,), (1, 2), (2, 1)):
        with pytest.raises(ShapeError, match=r"^out: expected shape \(2,\), got"):
            f(Z, Z, Z, np.zeros(shape))
    for out in ([0.0, 0.0], "ab", np.zeros(2, dtype=int), np.zeros(2, dtype=np.float32), np.zeros(2, dtype=">f8"), 0.0):
        with pytest.raises(InvalidValue, match=r"^out: expected an array of float64, got"):
            f(Z, Z, Z, out)
    with pytest.raises(InvalidValue, match=r"^out: .*read-only"):
        f(Z, Z, Z, as_read_only(Z))


@pytest.mark.nojit
def test_an_out_stays_as_it_is_where_there_is_no_answer():
    f = ACROBOT.hybrid_evaluator()
    for bad in (np.array([np.nan, 0.0]), np.array([1e200, 0.0]), np.zeros(3)):
        out = np.array([8.0, 9.0])
        with pytest.raises(CstormError):
            f(Z, bad, Z, out)
        np.testing.assert_array_equal(out, [8.0, 9.0])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda mech: pickle.loads(pickle.dumps(mech))])
def test_a_mechanism_that_was_asked_can_be_copied(copied):
    mech = library.acrobot()
    expected = mech.hybrid_sensitivity(Z, Z, Z)
    twin = copied(mech)
    del mech
    np.testing.assert_array_equal(hybrid(twin, Z, Z, Z), expected.y)
    np.testing.assert_array_equal(sensitivity(twin, Z, Z, Z), expected.dy_dq)


def test_evaluators_are_made_once_and_outlive_their_mechanism():
    f = library.acrobot().hybrid_evaluator()
    g = library.acrobot().hybrid_sensitivity_evaluator()
    assert ACROBOT.hybrid_evaluator() is ACROBOT.hybrid_evaluator()
    expected = library.acrobot().hybrid_sensitivity(Z, Z, Z)
    np.testing.assert_array_equal(f(Z, Z, Z), expected.y)
    np.testing.assert_array_equal(g(Z, Z, Z)[1][0], expected.dy_dq)


def test_evaluators_take_what_they_promise():
    for f in (ACROBOT.hybrid_evaluator(), ACROBOT.hybrid_sensitivity_evaluator()):
        assert list(inspect.signature(f).parameters)[:3] == ["q", "qd", "u"]


# Samples without an answer ----------------------------------------------------------------------------------

POINT = {"mass": 1.0, "com": (1.0, 0.0, 0.0)}

#: Mechanisms of two joints, the joint whose pivot vanishes, and a state in which it does.
SINGULAR = {
    "a leaf without mass": ([Link("a", None, Revolute((0, 0, 1)), **POINT), Link("b", "a", Revolute((0, 0, 1)))], "b"),
    "nothing has mass": ([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 0, 1)))], "b"),
    "one axis twice": ([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 0, 1)), **POINT)], "a"),
    "a slide without mass": (
        [Link("a", None, Prismatic((0, 0, 1)), **POINT), Link("b", "a", Prismatic((0, 1, 1)), inertia=np.eye(3))],
        "b",
    ),
    "one slide twice": ([Link("a", None, Prismatic((1, 1, 0))), Link("b", "a", Prismatic((1, 1, 0)), mass=2.0)], "a"),
    "a screw twice": ([Link("a", None, Screw((0, 1, 0), 0.2)), Link("b", "a", Screw((0, 1, 0), 0.2), **POINT)], "a"),
    "a mass on its axis": (
        [Link("a", None, Revolute((0, 0, 1)), **POINT), Link("b", "a", Revolute((0, 0, 1)), mass=1)],
        "b",
    ),
}


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", SINGULAR)
@pytest.mark.parametrize("pose", ["plain", "anywhere"])
def test_a_joint_that_moves_no_inertia_is_named(case, pose):
    links, joint = SINGULAR[case]
    if pose == "anywhere":
        first = random_pose(np.random.default_rng(2))
        links = [
            Link("stand", None, Fixed(), pose=first, mass=1.0),
            Link("a", "stand", links[0].joint, mass=links[0].mass, com=links[0].com, inertia=links[0].inertia),
            links[1],
        ]
    mech = Mechanism(links, active=())
    begin = rf"^joint '{joint}': moves no inertia, so its acceleration is undefined"
    q, qd, u = np.array([0.3, 0.7]), np.array([0.1, -0.2]), np.ones(2)
    for ask in (hybrid, prepared, sensitivity, prepared_sensitivity, Mechanism.forward_dynamics):
        with pytest.raises(SingularInertia, match=begin):
            ask(mech, q, qd, u)
    batch = [np.tile(a, (LANES + 3, 1)) for a in (q, qd, u)]
    in_row = begin.replace("inertia,", "inertia in row 0,")
    for ask in (hybrid, sensitivity, Mechanism.forward_dynamics):
        with pytest.raises(SingularInertia, match=in_row):
            ask(mech, *batch)
    with pytest.raises(SingularInertia, match=in_row):
        mech.hybrid_jvp(*batch, *batch)
    with pytest.raises(SingularInertia, match=in_row):
        mech.hybrid_vjp(*batch, batch[0])
    # prescribed, or with armature, there is no such question
    assert np.isfinite(mech.inverse_dynamics(q, qd, u)).all()
    assert np.isfinite(hybrid(mech.with_drive(active=["a", "b"]), q, qd, u)).all()
    armed = mech.with_parameters({"a.armature": 0.1, "b.armature": 0.1})
    assert np.isfinite(hybrid(armed, q, qd, u)).all()


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.nojit
@pytest.mark.parametrize("row", [0, 5, LANES, 3 * LANES - 1, 3 * LANES + 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_joint_that_moves_no_inertia_in_one_row_is_named_with_the_row(row, threads):
    """A point mass on the second axis turns about the first only where it is off that axis."""
    mech = Mechanism([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 1, 0)), **POINT)], active=())
    q = np.zeros((3 * LANES + 2, 2))
    q[row:, 1] = np.pi / 2  # straight up from here on
    nothing = np.zeros_like(q)
    message = rf"^joint 'a': moves no inertia in row {row}, so"
    for ask in (hybrid, sensitivity):
        with pytest.raises(SingularInertia, match=message):
            ask(mech, q, nothing, nothing, threads=threads)
    with pytest.raises(SingularInertia, match=message):
        mech.hybrid_jvp(q, *[nothing] * 5, threads=threads)
    with pytest.raises(SingularInertia, match=message):
        mech.hybrid_vjp(q, *[nothing] * 3, threads=threads)


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
def test_a_result_that_overflows_is_refused():
    """All numbers given are finite, what comes out is not: an error, and neither infinity nor NaN."""
    mech = library.acrobot(parameters="rods")
    fast = np.array([1e200, 0.0])
    message = r"^the result is not finite although all given numbers are: some are too large$"
    for ask in (hybrid, prepared, sensitivity, prepared_sensitivity, Mechanism.inverse_dynamics):
        with pytest.raises(NonFinite, match=message):
            ask(mech, Z, fast, Z)
    batch = [np.zeros((2 * LANES, 2)) for _ in range(3)]
    batch[1][LANES + 2, 0] = 1e200
    for ask in (hybrid, sensitivity):
        with pytest.raises(NonFinite, match=rf"^the result in row {LANES + 2} is not finite"):
            ask(mech, *batch)


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "ask",
    [
        lambda mech, far, fast: mech.energy(far, fast),
        lambda mech, far, fast: mech.momentum(far, fast),
        lambda mech, far, fast: mech.center_of_mass(far),
        lambda mech, far, fast: mech.forward_kinematics(far),
        lambda mech, far, fast: mech.jacobian(far, "c"),
        lambda mech, far, fast: mech.jacobian_rate(far, fast, "c"),
        lambda mech, far, fast: mech.mass_matrix(far),
    ],
    ids=["energy", "momentum", "center_of_mass", "forward_kinematics", "jacobian", "jacobian_rate", "mass_matrix"],
)
def test_kinematics_and_energy_that_overflow_are_refused(ask):
    slide = Prismatic((1, 0, 0))
    mech = Mechanism([
        Link("a", None, Revolute((0, 0, 1)), mass=1.0),
        Link("b", "a", slide, mass=100.0),
        Link("c", "b", slide, mass=100.0),
    ])  # fmt: skip
    far = fast = np.array([0.5, 1.7e308, 1.7e308])
    with pytest.raises(NonFinite, match=r"is not finite although all given numbers are: some are too large$"):
        ask(mech, far, fast)
    with pytest.raises(NonFinite, match=r"^the result in row 2 is not finite"):
        ask(mech, np.array([0 * far, 0 * far, far]), np.array([0 * fast, 0 * fast, fast]))


def test_what_weighs_nothing_has_no_centre():
    mech = Mechanism([Link("a", None, Revolute((0, 0, 1)), inertia=np.eye(3))])
    with pytest.raises(InvalidValue, match=r"^center_of_mass: "):
        mech.center_of_mass([0.0])


# Anything at all --------------------------------------------------------------------------------------------

numbers = st.floats() | st.integers() | st.booleans() | st.complex_numbers() | st.none() | st.text(max_size=3)
numbers |= st.sampled_from([2**70, "forearm", b"x", object(), ..., np.float32(1), np.int8(1), np.nan])
nested = st.recursive(numbers, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=8)
shapes = st.sampled_from(
    [(), (0,), (1,), (2,), (3,), (6,), (0, 2), (1, 2), (2, 2), (3, 2), (2, 6), (3, 6), (3, 2, 6), (4, 4), (1, 2, 2)]
)
dtypes = st.sampled_from(
    [float, np.float32, np.float16, int, bool, complex, object, "U3", "M8[s]", ">f8", np.uint8, "V4"]
)
arrays = st.builds(np.zeros, shapes, dtypes) | st.builds(lambda s, v: np.full(s, v), shapes, st.floats())
anything = nested | arrays | st.dictionaries(st.integers(), numbers, max_size=2) | st.sets(st.integers(), max_size=2)
sound = st.sampled_from([Z, np.ones(2), [0.1, 0.2], np.ones((3, 2)), np.zeros((1, 2))])
coordinates = sound | anything
wrenches = st.none() | anything | st.just(np.zeros((2, 6)))
wrenches |= st.lists(
    st.tuples(
        anything | st.sampled_from(["forearm", 0]), anything | st.none() | st.just(np.eye(4)), anything | st.just(SIX)
    ),
    max_size=2,
)
bases = st.none() | anything | st.tuples(st.just(SIX) | anything, st.just(SIX) | anything)


def only_our_errors(ask, *args, **options):
    try:
        return ask(*args, **options)
    except CstormError as error:
        assert str(error)
        assert "\x1b" not in str(error)  # numba's messages are coloured


@pytest.mark.nojit
@settings(max_examples=300)
@given(st.sampled_from(list(THREE)), coordinates, coordinates, coordinates)
def test_fuzzed_coordinates_bring_only_our_errors(ask, q, qd, u):
    answer = only_our_errors(ask, ACROBOT, q, qd, u)
    if answer is not None:
        assert np.isfinite(answer).all()
        expected = as_floats(q, "q").shape
        assert answer.shape in (expected, (*expected[:-1], 3, 2, 2), (*expected, 2))


@pytest.mark.nojit
@settings(max_examples=300)
@given(st.sampled_from(careful), sound, wrenches, bases, st.sampled_from([1, None, 2]) | anything)
def test_fuzzed_wrenches_bases_and_threads_bring_only_our_errors(ask, q, wrench, base, threads):
    answer = only_our_errors(ask, ACROBOT, q, q, q, wrench=wrench, base=base, threads=threads)
    assert answer is None or np.isfinite(answer).all()


@pytest.mark.nojit
@settings(max_examples=300)
@given(st.data())
def test_fuzzed_questions_bring_only_our_errors(data):
    """Every other question about a mechanism, each argument drawn by its name."""
    drawn = {
        "link": st.sampled_from([0, 1, "forearm"]) | anything,
        "base": bases,
        "wrench": wrenches,
        "threads": st.sampled_from([1, 2, None]),
    }
    names = "bias gravity_load inertial mass_matrix energy momentum center_of_mass forward_kinematics"
    names += " jacobian jacobian_rate jacobian_derivative hybrid_jvp hybrid_vjp inverse_sensitivity forward_sensitivity"
    name = data.draw(st.sampled_from(names.split()))
    arguments = {}
    for parameter in inspect.signature(getattr(ACROBOT, name)).parameters.values():
        if parameter.name != "to_base":
            arguments[parameter.name] = data.draw(drawn.get(parameter.name, coordinates), label=parameter.name)
    only_our_errors(getattr(ACROBOT, name), **arguments)


@pytest.mark.nojit
@settings(max_examples=100)
@given(anything)
def test_fuzzed_outs_bring_only_our_errors(out):
    f = ACROBOT.hybrid_evaluator()
    answer = only_our_errors(f, Z, Z, Z, out)
    if answer is not None:
        np.testing.assert_array_equal(answer, f(Z, Z, Z))


@pytest.mark.nojit
def test_reading_floats_keeps_what_can_be_kept():
    a = np.arange(6.0).reshape(2, 3)
    assert as_floats(a, "a") is a or np.shares_memory(as_floats(a, "a"), a)
    for other in (a.T, as_read_only(a), misaligned(a), a[:, ::2], a.astype(int)):
        found = as_floats(other, "a")
        np.testing.assert_array_equal(found, other)
        assert found.flags.carray
        assert not np.shares_memory(found, other)
    assert as_floats(3, "a").shape == ()
    assert lie.exp_so3(as_floats([0, 0, 0], "a")).shape == (3, 3)
