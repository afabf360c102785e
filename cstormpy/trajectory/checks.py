"""What the trajectories accept: real, finite arrays of the shape named, refused in one voice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError

__all__ = [
    "OUTSIDE",
    "Floats",
    "control_point_array",
    "finite_array",
    "is_single",
    "joint_names",
    "one_of",
    "positive",
    "real_number",
    "whole_number",
]

Floats = NDArray[np.float64]

MOST = 100_000
"""Most control points, and the like, that are accepted."""

OUTSIDE = ("hold", "refuse")
"""What a curve may do at a time outside of its interval."""


def finite_array(value: ArrayLike, what: str, shape: tuple[int | None, ...], hint: str = "") -> Floats:
    """Return `value` as a contiguous float64 array of that shape; ``None`` stands for any length.

    >>> finite_array([[1, 2]], "control points", (None, 2)).tolist()
    [[1.0, 2.0]]
    """
    array = _real_array(value, what)
    fits = array.ndim == len(shape) and all(e is None or e == g for e, g in zip(shape, array.shape, strict=True))
    if not fits:
        lengths = ", ".join("any" if e is None else str(e) for e in shape)
        expected = f"({lengths}{',' if len(shape) == 1 else ''})"
        raise ShapeError(f"{what}: expected shape {expected}, got {array.shape}{'; ' + hint if hint else ''}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        place = "".join(f"[{i}]" for i in where)
        raise NonFinite(f"{what}: entry {place} is {array[tuple(where)]}; every entry must be finite")
    return array


def control_point_array(control_points: ArrayLike) -> Floats:
    """Return control points (m, n) as an array of at least one row and one column."""
    points = finite_array(control_points, "control points", (None, None), "one row per point, one column per joint")
    if not points.size:
        raise ShapeError(f"control points: expected at least one row and one column, got {points.shape}")
    return points


def _real_array(value: Any, what: str) -> Floats:
    """Return a float64 array, refusing what is not made of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # a ragged or too deep list
        raise ShapeError(f"{what}: expected a rectangular array of numbers; {error}") from None
    except (TypeError, OverflowError, RecursionError) as error:
        raise InvalidType(f"{what}: expected an array of real numbers; {error}") from None
    if array.dtype.kind == "O":  # Python integers beyond 64 bits come as objects
        array = _from_objects(array, what)
    if array.dtype.kind not in "iuf" and array.size:
        raise InvalidType(f"{what}: expected real numbers, got {array.dtype.name} entries")
    # a copy always; adding zero turns -0.0 into 0.0
    with np.errstate(over="ignore"):  # a long double beyond the range becomes inf and is refused by the caller
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape) + 0.0


def _from_objects(array: NDArray[Any], what: str) -> Floats:
    """Return an array of Python objects as floats where each of them is a number."""
    numbers = np.empty(array.shape)
    for index, entry in np.ndenumerate(array):
        if isinstance(entry, bool | np.bool_) or not isinstance(entry, int | float | np.integer | np.floating):
            raise InvalidType(f"{what}: expected real numbers, got a {type(entry).__name__}")
        try:
            numbers[index] = float(entry)
        except OverflowError as error:
            raise NonFinite(f"{what}: an integer is too large for a float") from error
    return numbers


def is_single(value: Any) -> bool:
    """Tell whether a value stands for one number rather than for many."""
    return getattr(value, "ndim", None) == 0 or not hasattr(value, "__len__")


def real_number(value: Any, what: str) -> float:
    """Return one finite float.

    >>> real_number(2, "start time")
    2.0
    """
    return float(finite_array(value, what, ()))


def positive(value: Any, what: str) -> float:
    """Return one finite float greater than zero."""
    number = real_number(value, what)
    if number <= 0.0:
        raise InvalidValue(f"{what}: expected a number greater than zero, got {number:g}")
    return number


def whole_number(value: Any, what: str, least: int, most: int = MOST) -> int:
    """Return an integer from `least` to `most`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidType(f"{what}: expected an integer, got {value!r} ({type(value).__name__})")
    if value < least:
        raise InvalidValue(f"{what}: expected at least {least}, got {value}")
    if value > most:
        raise InvalidValue(f"{what}: expected at most {most}")
    return int(value)


def one_of(value: Any, what: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of the words that can stand here."""
    if not isinstance(value, str) or value not in choices:
        shown = " or ".join(repr(c) for c in choices)
        raise InvalidValue(f"{what}: expected {shown}, got {value!r}")
    return value


def joint_names(names: Iterable[str] | None, n: int) -> tuple[str, ...] | None:
    """Return the names of `n` joints as a tuple, or None where the joints have no names."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidType(f"names: expected a sequence of {n} joint names, got {names!r}")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not name:
            raise InvalidType(f"names: expected joint names that are non-empty strings, got {name!r}")
    if len(found) != n:
        raise ShapeError(f"names: expected {n} joint names, one per column of the control points, got {len(found)}")
    twice = next((a for a in found if found.count(a) > 1), None)
    if twice is not None:
        raise InvalidValue(f"names: joint {twice!r} is named twice")
    return found
