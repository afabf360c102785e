"""The reader of array arguments: real numbers of one of the shapes expected, or an error that names the argument.

Everything in the package that takes numbers from a user reads them here, so that one slip has one answer: the same
class of error, the same words.

============================================  =============  ===========================================================
what was given                                error          the words after the name of the argument
============================================  =============  ===========================================================
rows of different lengths                     `ShapeError`   expected an array of numbers, got rows of different lengths
another shape                                 `ShapeError`   expected shape (2,), got (3,)
text, objects, booleans, complex numbers      `InvalidType`  expected real numbers, got text
masked entries                                `InvalidValue` expected numbers, got an array in which some are masked
NaN, infinity, what is too large for a float  `NonFinite`    expected finite numbers, got nan at index 1
============================================  =============  ===========================================================
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Real
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError

Array = NDArray[np.float64]

Shape = tuple["int | str | EllipsisType", ...]
"""A shape expected: lengths, letters that stand for any length, and an ellipsis in front for batches of any shape."""

_FLOAT = np.dtype(np.float64)
_PLAIN = frozenset({float, int, np.float64})
"""Entries of a list that hide no mask."""

_KINDS = {
    "b": "booleans",
    "c": "complex numbers",
    "M": "dates",
    "m": "durations",
    "S": "bytes",
    "T": "text",
    "U": "text",
    "V": "records",
}
RAGGED = "expected an array of numbers, got rows of different lengths"
_MASKED = "expected numbers, got an array in which some are masked"


def real_array(value: Any, what: str, *shapes: Shape, hint: str = "", finite: bool = True) -> Array:
    """Return an aligned, writable C array of float64 of one of the shapes, with finite numbers unless said otherwise.

    It may be the very array that was given: whoever keeps it, or writes to it, takes a copy.

    Parameters
    ----------
    value
        What the user gave.
    what
        Its name, with which messages begin.
    *shapes
        What it may have: ``(3,)``, ``("N", 3)``, ``(..., 4, 4)``; anything if there are none.
    hint
        Ends the message about another shape.
    finite
        Whether NaN and infinities are refused.

    Raises
    ------
    ShapeError, InvalidType, InvalidValue, NonFinite
        See the table above.

    Examples
    --------
    >>> real_array([[1, 2]], "points", ("N", 2))
    array([[1., 2.]])
    >>> real_array([1, 2, 3], "points", (2,), ("N", 2))
    Traceback (most recent call last):
    cstormpy.errors.ShapeError: points: expected shape (2,) or (N, 2), got (3,)
    """
    array = array_of_shape(as_floats(value, what), what, *shapes, hint=hint)
    if finite:
        refuse_non_finite(array, what)
    return array


def array_of_shape(array: Array, what: str, *shapes: Shape, hint: str = "") -> Array:
    """Return an array as it is, refused where it has none of the shapes."""
    if shapes and array.shape not in shapes and not any(_fits(array.shape, shape) for shape in shapes):
        expected = " or ".join(map(_shape_text, shapes))
        raise ShapeError(f"{what}: expected shape {expected}, got {array.shape}{'; ' + hint if hint else ''}")
    return array


def as_floats(value: Any, what: str) -> Array:
    """Return an array of float64 of any shape, which may hold NaN and infinities.

    >>> as_floats((1, 2), "q")
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT and value.flags.carray:
        return value
    array = _read(value, what)
    if array.dtype.kind == "c":
        raise InvalidType(f"{what}: expected real numbers, got {_KINDS['c']}")
    with np.errstate(over="ignore"):  # a long double beyond the range becomes inf, which is refused where it matters
        array = np.asarray(array, dtype=np.float64, order="C")
    # numba takes no array that is read-only or badly aligned
    return array if type(array) is np.ndarray and array.flags.carray else np.array(array, order="C", subok=False)


def complex_array(value: Any, what: str, *shapes: Shape, hint: str = "") -> NDArray[Any]:
    """Return a copy as float64, or as complex128 where it holds complex numbers: for derivatives by a complex step.

    >>> complex_array([1, 2j], "q", (2,))
    array([1.+0.j, 0.+2.j])
    """
    array = _read(value, what)
    if array.dtype.kind != "c":
        return real_array(array, what, *shapes, hint=hint).copy()
    real_array(array.real, what, *shapes, hint=hint)
    real_array(array.imag, what)
    return array.astype(np.complex128)


def real_number(value: Any, what: str) -> float:
    """Return one finite float; integers and NumPy scalars will do, booleans and text will not.

    >>> real_number(np.float32(0.5), "damping")
    0.5
    """
    if type(value) is float and math.isfinite(value):
        return value + 0.0  # turns -0.0 into 0.0
    array = _read(value, what, "a number", "a finite number")
    if array.dtype.kind == "c":
        raise InvalidType(f"{what}: expected a number, got {describe(value)}")
    if array.shape != ():
        raise ShapeError(f"{what}: expected one number, got an array of shape {array.shape}")
    with np.errstate(over="ignore"):
        number = float(array)
    if not math.isfinite(number):
        raise NonFinite(f"{what}: expected a finite number, got {number}")
    return number + 0.0


def as_slice(places: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return positions that follow one another as a slice, which is quicker and copies nothing; others as they are.

    >>> as_slice(np.array([1, 2])), as_slice(np.array([0, 2]))
    (slice(1, 3, None), array([0, 2]))
    """
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return slice(int(places[0]), int(places[0]) + len(places))
    return places


def is_single(value: Any) -> bool:
    """Tell whether a value stands for one number rather than for many; text is one, however wrong.

    >>> [is_single(value) for value in (1.0, np.array(1.0), None, "fast", [1.0], [[1.0], [1.0, 2.0]])]
    [True, True, True, True, False, False]
    """
    return isinstance(value, (str, bytes)) or getattr(value, "ndim", None) == 0 or not hasattr(value, "__len__")


def refuse_non_finite(array: NDArray[Any], what: str, owner: Callable[[tuple[int, ...]], str] | None = None) -> None:
    """Raise `NonFinite` for the first entry that is NaN or infinite; `owner(index)` says whose it is.

    >>> refuse_non_finite(np.array([0.0, np.inf]), "q", lambda index: f"joint{index[0] + 1}")
    Traceback (most recent call last):
    cstormpy.errors.NonFinite: q: expected finite numbers, got inf at index 1 (joint2)
    """
    if np.isfinite(array).all():
        return
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    at = f" at index {index[0] if len(index) == 1 else index}" if index else ""
    raise NonFinite(
        f"{what}: expected finite numbers, got {array[index]}{at}{f' ({owner(index)})' if owner is not None else ''}"
    )


def describe(value: Any) -> str:
    """Describe a value for a message, by its type and not by its possibly endless content.

    >>> describe("fast"), describe(None), describe({}), describe(np.array(["a"]))
    ("the text 'fast'", 'None', 'a dict', 'an array of text of shape (1,)')
    """
    if isinstance(value, str):
        return f"the text {value[:40] + ('…' if len(value) > 40 else '')!r}"
    if isinstance(value, (bool, complex, np.bool_, np.complexfloating)) or value is None:
        return str(value)
    if isinstance(value, bytes):
        return _KINDS["S"]
    if isinstance(value, np.ndarray):
        held = "numbers" if value.dtype.kind in "iuf" else _KINDS.get(value.dtype.kind, "objects")
        return f"an array of {held} of shape {value.shape}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _read(
    value: Any, what: str, expected: str = "real numbers", expected_finite: str = "finite numbers"
) -> NDArray[Any]:
    """Return an array of real or complex numbers, as NumPy reads it."""
    if isinstance(value, (list, tuple)) and _has_masked_arrays() and type(np.ma.masked) in map(type, value):
        raise InvalidValue(f"{what}: {_MASKED}")  # before NumPy warns that it becomes NaN
    try:
        array = np.asarray(value)
    except ValueError as error:
        if isinstance(value, (list, tuple)) and "maximum number of dimension" not in str(error):
            raise ShapeError(f"{what}: {RAGGED}") from None
        raise InvalidType(f"{what}: expected an array of numbers, got {describe(value)}; {error}") from None
    except Exception as error:  # an object that NumPy asks for its array may raise anything
        raise InvalidType(f"{what}: expected an array of numbers, got {describe(value)}; {error}") from error
    if _masked(value):
        raise InvalidValue(f"{what}: {_MASKED}")
    if array.dtype.kind in "iufc":
        return array
    if array.dtype.kind == "O":  # integers beyond 64 bits come as objects, and so do fractions
        return _from_objects(array, what, value, expected, expected_finite)
    got = describe(value) if array.ndim == 0 else _KINDS.get(array.dtype.kind, "objects")
    raise InvalidType(f"{what}: expected {expected}, got {got}")


def _from_objects(array: NDArray[Any], what: str, value: Any, expected: str, expected_finite: str) -> Array:
    """Return an array of Python objects as floats where each of them is a number."""
    numbers = np.empty(array.shape)
    for index, entry in np.ndenumerate(array):
        if _has_masked_arrays() and entry is np.ma.masked:
            raise InvalidValue(f"{what}: {_MASKED}")
        if isinstance(entry, (bool, np.bool_)) or not isinstance(entry, Real):
            among = " among them" if array.ndim else ""
            raise InvalidType(f"{what}: expected {expected}, got {describe(value if not index else entry)}{among}")
        try:
            numbers[index] = float(entry)
        except OverflowError:
            at = f" at index {index[0] if len(index) == 1 else index}" if index else ""
            raise NonFinite(f"{what}: expected {expected_finite}, got one too large for a float{at}") from None
    return numbers


def own_arrays(value: Any) -> Any:
    """Return a value, or a list, tuple or dict of such, with copies of its arrays: whoever gave them may change them.

    >>> a = np.ones(2)
    >>> kept = own_arrays({"start": (a, [a])})
    >>> a += 1
    >>> kept
    {'start': (array([1., 1.]), [array([1., 1.])])}
    """
    kind = type(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if kind in (list, tuple):
        return kind(map(own_arrays, value))
    return {name: own_arrays(each) for name, each in value.items()} if kind is dict else value


def refuse_masked(value: Any, what: str) -> None:
    """Refuse an array, or what holds one, of which some numbers are masked; nothing else is asked of it."""
    if _masked(value):
        raise InvalidValue(f"{what}: {_MASKED}")


def _has_masked_arrays() -> bool:
    """Tell whether anything can be masked: NumPy loads the module, some 30 ms, when it is first asked for."""
    return "numpy.ma" in sys.modules


def _masked(value: Any) -> bool:
    """Tell whether some numbers are masked: NumPy reads what stands under the mask."""
    if _has_masked_arrays() and isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    if not isinstance(value, (list, tuple)) or _PLAIN.issuperset(map(type, value)):
        return False
    return any(map(_masked, value))


def _fits(shape: tuple[int, ...], expected: Shape) -> bool:
    if expected and expected[0] is ...:
        expected = expected[1:]
        shape = shape[max(len(shape) - len(expected), 0) :]
    return len(shape) == len(expected) and all(map(_length_fits, shape, expected))


def _length_fits(length: int, expected: object) -> bool:
    return length == expected or isinstance(expected, str)


def _shape_text(shape: Shape) -> str:
    """Return a shape as a message says it, with a letter for each length that may be any.

    >>> _shape_text((3,)), _shape_text(("any", 2)), _shape_text((..., 4, 4)), _shape_text(("any", "any"))
    ('(3,)', '(N, 2)', '(..., 4, 4)', '(N, M)')
    """
    letters = (letter for letter in "NMKL" if letter not in shape)
    lengths = ["..." if length is ... else next(letters) if length == "any" else str(length) for length in shape]
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
