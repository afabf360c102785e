"""Arguments drawn at random, sound ones and others: they bring answers or our own errors."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_calls import ACROBOT, SIX, THREE, Z, as_read_only, careful, misaligned

from cstormpy import lie
from cstormpy.arrays import as_floats
from cstormpy.errors import CstormError

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
        assert answer.shape in (expected, (*expected[:-1], 3, 2, 2), (*expected, 2), (*expected, 6))  # of two links


@pytest.mark.slow
@pytest.mark.nojit
@settings(max_examples=300)
@given(st.sampled_from(careful), sound, wrenches, bases, st.sampled_from([1, None, 2]) | anything)
def test_fuzzed_wrenches_bases_and_threads_bring_only_our_errors(ask, q, wrench, base, threads):
    answer = only_our_errors(ask, ACROBOT, q, q, q, wrench=wrench, base=base, threads=threads)
    assert answer is None or np.isfinite(answer).all()


@pytest.mark.slow
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
