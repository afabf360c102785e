"""One reader of arrays: one slip has one class of error and one wording, wherever it is made."""

import re
from fractions import Fraction

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import control, lie
from cstormpy.arrays import RAGGED, as_floats, complex_array, real_array, real_number
from cstormpy.diagrams import Goal
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.formulations import sohl_bobrow
from cstormpy.mechanism import Revolute, library
from cstormpy.simulation.analysis.linear import LinearModel

MASKED = "expected numbers, got an array in which some are masked"

#: What may be given in place of two numbers, the class of error, and what is said after the name.
SLIPS = {
    "masked": (np.ma.array([1.0, 2.0], mask=[False, True]), InvalidValue, MASKED),
    "masked constant": ([np.ma.masked, 1.0], InvalidValue, MASKED),
    "masked rows": ([np.ma.array([1.0, 2.0], mask=[False, True])], InvalidValue, MASKED),
    "ragged": ([[1.0], [1.0, 2.0]], ShapeError, RAGGED),
    "ragged arrays": ([np.zeros(2), np.zeros(3)], ShapeError, RAGGED),
    "number and list": ([1.0, [2.0]], ShapeError, RAGGED),
    "text": ("fast", InvalidType, "expected real numbers, got the text 'fast'"),
    "texts": (["1", "2"], InvalidType, "expected real numbers, got text"),
    "bytes": (b"ab", InvalidType, "expected real numbers, got bytes"),
    "nothing": (None, InvalidType, "expected real numbers, got None"),
    "none among them": ([None, 1.0], InvalidType, "expected real numbers, got None among them"),
    "truth": (True, InvalidType, "expected real numbers, got True"),
    "truths": ([True, False], InvalidType, "expected real numbers, got booleans"),
    "complex": ([1.0, 2.0j], InvalidType, "expected real numbers, got complex numbers"),
    "dictionary": ({0: 1.0}, InvalidType, "expected real numbers, got a dict"),
    "dates": (np.array([0, 1], dtype="M8[s]"), InvalidType, "expected real numbers, got dates"),
    "records": (np.zeros(2, dtype=[("a", float)]), InvalidType, "expected real numbers, got records"),
    "empty": ([], ShapeError, "expected shape (2,), got (0,)"),
    "longer": ([1.0, 2.0, 3.0], ShapeError, "expected shape (2,), got (3,)"),
    "one number": (1.0, ShapeError, "expected shape (2,), got ()"),
    "not a number": ([0.0, np.nan], NonFinite, "expected finite numbers, got nan at index 1"),
    "infinite": ([-np.inf, 0.0], NonFinite, "expected finite numbers, got -inf at index 0"),
    "huge": ([0, 10**400], NonFinite, "expected finite numbers, got one too large for a float at index 1"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("read", [real_array, complex_array])
@pytest.mark.parametrize("slip", SLIPS)
def test_each_slip_has_its_answer(read, slip):
    value, error, told = SLIPS[slip]
    if read is complex_array and slip == "complex":
        np.testing.assert_array_equal(read(value, "q", (2,)), value)
        return
    with pytest.raises(error) as caught:
        read(value, "q", (2,))
    assert str(caught.value) == f"q: {told}"
    assert type(caught.value) is error


@pytest.mark.parametrize("value", [[2**70, 0], [Fraction(1, 2), 1], (np.float16(1), 2), np.ma.array([1, 2]), range(2)])
def test_numbers_in_other_clothes_are_numbers(value):
    """Whole numbers beyond 64 bits were refused by the mechanisms and taken by the curves."""
    found = real_array(value, "q", (2,))
    assert type(found) is np.ndarray and found.dtype == np.float64 and found.flags.carray
    assert found.tolist() == [float(v) for v in value]


def test_shapes_are_lengths_letters_and_batches():
    assert real_array(np.zeros((3, 2)), "q", (2,), ("N", 2)).shape == (3, 2)
    assert real_array(np.zeros((5, 3, 4, 4)), "q", (..., 4, 4)).shape == (5, 3, 4, 4)
    assert real_array(np.zeros((4, 4)), "q", (..., 6), (..., 4, 4)).shape == (4, 4)
    for shapes, told in (
        (((2,), ("N", 2)), "expected shape (2,) or (N, 2), got (4,); one row each"),
        (((..., 4, 4),), "expected shape (..., 4, 4), got (4,); one row each"),
        (((),), "expected shape (), got (4,); one row each"),
    ):
        with pytest.raises(ShapeError) as caught:
            real_array(np.zeros(4), "q", *shapes, hint="one row each")
        assert str(caught.value) == f"q: {told}"


def test_the_array_given_is_taken_where_the_kernels_can_take_it():
    ready = np.zeros(3)
    assert as_floats(ready, "q") is ready
    locked = np.zeros(3)
    locked.flags.writeable = False
    assert as_floats(locked, "q").flags.writeable
    assert complex_array(ready, "q", (3,)) is not ready


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(InvalidType, match=r"^q: expected an array of numbers, got a list; .*dimension"):
        as_floats(endless, "q")


def test_an_object_whose_array_fails_is_refused():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("it needs its gradient")

    with pytest.raises(InvalidType, match=r"^q: expected an array of numbers, got a Broken; it needs its gradient$"):
        as_floats(Broken(), "q")


@pytest.mark.parametrize("value", [2, 2.0, np.int8(2), np.float32(2), np.array(2.0), Fraction(2)])
def test_one_number_in_many_clothes(value):
    found = real_number(value, "T")
    assert found == 2.0 and type(found) is float


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        ("2", InvalidType, "T: expected a number, got the text '2'"),
        (True, InvalidType, "T: expected a number, got True"),
        (1j, InvalidType, "T: expected a number, got 1j"),
        (10**400, NonFinite, "T: expected a finite number, got one too large for a float"),
        (float("nan"), NonFinite, "T: expected a finite number, got nan"),
        ([1.0], ShapeError, "T: expected one number, got an array of shape (1,)"),
    ],
)
def test_one_number_refused(value, error, told):
    with pytest.raises(error) as caught:
        real_number(value, "T")
    assert str(caught.value) == told


# The readers of the package ------------------------------------------------------------------------------

ARM = library.planar_2r()
Z = np.zeros(2)


def begun(start):
    """Run a diagram of three states from a start."""
    sim = cs.Simulation(engine="interpreted", live=False)
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=[0.0, 0.0, 0.0])
    bd.connect(state, bd.NULL())
    bd.connect(bd.CONSTANT([0.0, 0.0, 0.0]), state)
    return sim.run(bd, 0.1, start=start)


def block(**options):
    return cs.Simulation(engine="interpreted", live=False).blockdiagram().HYBRIDDYNAMICS(ARM, **options)


#: Who reads arrays of numbers, of how many.
READERS = {
    "mechanisms": (2, lambda value: ARM.inverse_dynamics(value, Z, Z)),
    "prepared evaluators": (2, lambda value: ARM.hybrid_evaluator()(value, Z, Z)),
    "sensitivities": (2, lambda value: ARM.hybrid_sensitivity(Z, value, Z)),
    "linear models": (2, lambda value: ARM.linearize(Z, tau=value)),
    "bases": (6, lambda value: ARM.forward_dynamics(Z, Z, Z, base=(value, np.zeros(6)))),
    "wrenches": (6, lambda value: ARM.forward_dynamics(Z, Z, Z, wrench=[(0, None, value)])),
    "tools": (3, lambda value: ARM.inverse_kinematics(1, np.eye(4), tool=value)),
    "joints": (3, lambda value: Revolute((0, 0, 1), point=value)),
    "links": (3, lambda value: cs.Link("rod", None, Revolute((0, 0, 1)), com=value)),
    "gravity": (3, lambda value: ARM.with_gravity(value)),
    "library": (2, lambda value: library.planar_2r(lengths=value)),
    "goals of laws": (2, lambda value: control.LQR(ARM, goal=value)),
    "weights of laws": (4, lambda value: control.LQR(ARM, Q=value)),
    "gains of laws": (2, lambda value: control.PD(ARM, kp=value, kd=1.0)),
    "goals of diagrams": (2, Goal),
    "knots": (2, lambda value: cs.clamped_knots(6, 3, value)),
    "control points": (4, lambda value: cs.BSpline.clamped(np.zeros((4, 1)), 1.0).fit(value, np.zeros((4, 1)))),
    "motions": (2, lambda value: cs.cubic(value, Z, 1.0)),
    "rotations": (3, lie.hat3),
    "twists": (6, lie.exp_se3),
    "formulations": (2, lambda value: sohl_bobrow.inverse_dynamics(ARM, value, Z, Z)),
    "starts": (3, begun),
    "blocks": (2, lambda value: block(q0=value)),
    "matrices": (2, lambda value: LinearModel.of(value, np.zeros((2, 1)), np.zeros((1, 2)))),
    "frequencies": (2, LinearModel.of([[-1.0]], [[1.0]], [[1.0]]).frequency_response),
}

#: What may stand there instead of so many numbers.
WRONG = {
    "masked": (lambda n: np.ma.array(np.ones(n), mask=[False] * (n - 1) + [True]), InvalidValue, MASKED),
    "ragged": (lambda n: [[1.0], [1.0, 2.0]] + [[1.0]] * (n - 2), ShapeError, RAGGED),
    "texts": (lambda n: ["1"] * n, InvalidType, "expected real numbers, got text"),
    "nothing among them": (
        lambda n: [object()] + [1.0] * (n - 1),
        InvalidType,
        "expected real numbers, got an object among",
    ),
    "complex": (lambda n: [1j] * n, InvalidType, "expected real numbers, got complex numbers"),
    "dates": (lambda n: np.zeros(n, dtype="M8[s]"), InvalidType, "expected real numbers, got dates"),
    "nan": (lambda n: [np.nan] + [1.0] * (n - 1), NonFinite, "expected finite numbers, got nan at index 0"),
    "infinite": (lambda n: np.full(n, np.inf), NonFinite, "expected finite numbers, got inf at index 0"),
    "huge": (lambda n: [10**400] * n, NonFinite, "expected finite numbers, got one too large for a float at index 0"),
    "shape": (lambda n: np.ones((n + 1, n + 1, 1, n + 1)), ShapeError, "expected shape "),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slip", WRONG)
@pytest.mark.parametrize("reader", READERS)
def test_one_slip_has_one_answer_everywhere(reader, slip):
    """Masked numbers were refused here and read under the mask there; a ragged list had four classes of error."""
    size, read = READERS[reader]
    make, error, told = WRONG[slip]
    if reader == "formulations" and slip == "complex":
        pytest.skip("they take complex numbers, for derivatives by a complex step")
    with pytest.raises(error) as caught:
        read(make(size))
    assert f": {told}" in str(caught.value)
    assert type(caught.value) is error
    assert not re.search(r"<U|dtype|float64|complex128|inhomogeneous", str(caught.value))
