"""Checks of what users pass in: each returns the clean value or raises an error that names it."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.mechanism.values import frozen

__all__ = ["MAX_NAME", "array", "count", "name", "nonnegative", "positive", "real", "unit_vector"]

MAX_NAME = 200
"""Longest name of a link or joint, in characters."""

_UNIT_TOLERANCE = 4 * np.finfo(np.float64).eps
"""A vector whose norm is this close to one is kept bit by bit, so that saving and loading changes nothing."""


def real(value: object, what: str) -> float:
    """Return a finite float; integers and NumPy scalars will do, booleans and text will not.

    >>> real(np.float32(0.5), "damping")
    0.5
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.ndarray):
        raise ShapeError(f"{what}: expected one number, got an array of shape {value.shape}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidType(f"{what}: expected a number, got {_brief(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidValue(f"{what}: the number is too large for a float") from None
    if not math.isfinite(number):
        raise NonFinite(f"{what}: expected a finite number, got {number}")
    return number + 0.0  # turns -0.0 into 0.0


def nonnegative(value: object, what: str) -> float:
    """Return a finite float >= 0."""
    number = real(value, what)
    if number < 0:
        raise InvalidValue(f"{what}: must not be negative, got {number:g}")
    return number


def positive(value: object, what: str) -> float:
    """Return a finite float > 0."""
    number = real(value, what)
    if number <= 0:
        raise InvalidValue(f"{what}: must be positive, got {number:g}")
    return number


def count(value: object, what: str, most: int = 100_000) -> int:
    """Return a whole number of things, from 1 to `most`.

    >>> count(3, "n")
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidType(f"{what}: expected a whole number, got {_brief(value)}")
    number = int(value)
    if not 1 <= number <= most:
        raise InvalidValue(f"{what}: must be from 1 to {most}, got {'more' if number > most else max(number, -most)}")
    return number


def array(value: ArrayLike, shape: tuple[int, ...], what: str) -> NDArray[np.float64]:
    """Return a read-only float64 copy of the given shape with finite entries.

    >>> array([1, 2, 3], (3,), "com")
    array([1., 2., 3.])
    """
    try:
        raw = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InvalidType(f"{what}: expected numbers of shape {shape}, got {_brief(value)}") from None
    if raw.dtype.kind not in "iuf":
        raise InvalidType(f"{what}: expected numbers of shape {shape}, got {_brief(value)}")
    if raw.shape != shape:
        raise ShapeError(f"{what}: expected shape {shape}, got {raw.shape}")
    with np.errstate(over="ignore"):  # a long double beyond the range becomes inf and is refused below
        numbers = raw.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise NonFinite(f"{what}: expected finite numbers, got {numbers.tolist()}")
    return frozen(numbers)


def unit_vector(value: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return the direction of a nonzero 3-vector."""
    vector = array(value, (3,), what)
    norm = math.hypot(*vector.tolist())
    if abs(norm - 1.0) <= _UNIT_TOLERANCE:
        return vector
    largest = float(np.abs(vector).max())
    if largest == 0.0:
        raise InvalidValue(f"{what}: is zero; a direction is needed, as (0, 0, 1)")
    scaled = vector / largest  # first, since the norm of a very long or short vector over- or underflows
    return frozen(scaled / math.hypot(*scaled.tolist()))


def name(value: object, what: str) -> str:
    """Return a name: printable text without blanks around it, at most `MAX_NAME` characters."""
    if not isinstance(value, str):
        raise InvalidType(f"{what}: expected text, got {_brief(value)}")
    if not value:
        raise InvalidValue(f"{what}: is empty")
    if len(value) > MAX_NAME:
        raise InvalidValue(f"{what}: {value[:20] + '…'!r} has {len(value)} characters, at most {MAX_NAME} are allowed")
    if not value.isprintable() or value != value.strip():
        raise InvalidValue(f"{what}: {value!r} has blanks around it or characters that can not be printed")
    return str(value)


def _brief(value: object) -> str:
    """Describe a value for a message, by its type and not by its possibly endless content."""
    if isinstance(value, str):
        return f"the text {value[:40] + ('…' if len(value) > 40 else '')!r}"
    if isinstance(value, (bool, complex, np.bool_)) or value is None:
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"a {type(value).__name__}"
