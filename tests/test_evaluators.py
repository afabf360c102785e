"""Prepared functions of a mechanism: what they fill, how long they live, what they promise."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from mechanism_calls import ACROBOT, Heir, Z, as_read_only, hybrid, prepared, sensitivity

from cstormpy.errors import CstormError, InvalidValue, ShapeError
from cstormpy.mechanism import library


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
