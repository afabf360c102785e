"""The border between users' arrays and the kernels: what is taken, what is refused, and in which words."""

import re

import numpy as np
import pytest
from mechanism_calls import (
    ACROBOT,
    SIX,
    THREE,
    Heir,
    Z,
    as_read_only,
    careful,
    hybrid,
    misaligned,
    prepared,
    prepared_sensitivity,
    samples,
    sensitivity,
)
from random_mechanisms import random_mechanism, random_state

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.kernels.layout import LANES
from cstormpy.mechanism import Fixed, Link, Mechanism, library

three = pytest.mark.parametrize("ask", THREE)


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
            with pytest.raises(InvalidType, match=r"^link: expected the name of a link or its position, got "):
                ask(link)
        with pytest.raises(UnknownName, match=r"^link 'fore arm' does not exist; did you mean 'forearm'"):
            ask("fore arm")


def test_torques_of_the_motors_alone_are_told_where_they_go():
    """As `trim` returns them, or a law: one for each motor, where the dynamics ask one for each joint."""
    mech = library.acrobot()
    for shape in ((2,), (5, 2)):
        q = np.zeros(shape)
        with pytest.raises(ShapeError, match=r"joints without motor it has a 0: tau = np.zeros\(.*mech.actuated_mask"):
            mech.forward_dynamics(q, q, np.ones((*shape[:-1], 1)))
