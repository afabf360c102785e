"""Reads arguments, which are batches, and refuses by name what cannot be taken.

Symbols, as laws and blocks are traced with, are taken as numbers are: what would be refused of these has the machine
code fail, so that Python is asked, which says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array, Shape, array_of_shape, real_array
from cstormpy.errors import InvalidValue, NonFinite, ShapeError
from cstormpy.graph.arrays import is_symbolic, symbols
from cstormpy.graph.nodes import require_zero

P = ParamSpec("P")
Result = TypeVar("Result")
EPS = float(np.finfo(np.float64).eps)


def _guarded(function: Callable[P, Result]) -> Callable[P, Result]:
    """Refuse a result that is not finite: what was read is finite, so it has overflowed."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Result:
        with np.errstate(all="ignore"):
            result = function(*args, **kwargs)
        if not is_symbolic(result) and not np.all(np.isfinite(np.asarray(result))):
            raise NonFinite(f"{getattr(function, '__name__', '')}: the result overflows; the numbers are too large")
        return result

    return guarded


def _read(x: ArrayLike, name: str, *tails: tuple[int, ...], hint: str = "") -> Array:
    """Return a fresh float64 copy of `x`, finite and with one of the trailing shapes `tails`, or refuse it."""
    shapes: list[Shape] = [(..., *tail) for tail in tails]
    if is_symbolic(x):
        return array_of_shape(symbols(x), name, *shapes, hint=hint).copy()
    return real_array(x, name, *shapes, hint=hint).copy()


def _refuse_any(bad: NDArray[np.bool_] | np.bool_, name: str, why: Callable[[tuple[int, ...]], str]) -> None:
    """Raise for the first sample of a batch that is `bad`, naming its row; `why(row)` tells the reason."""
    if is_symbolic(bad):
        require_zero(np.any(_array(bad)))
    elif np.any(bad):
        row = tuple(int(i) for i in np.argwhere(bad)[0])
        label = f"{name}[{', '.join(map(str, row))}]" if row else name
        raise InvalidValue(f"{label}: {why(row)}")


def _match(**leading: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common leading shape, or refuse arguments whose batches do not go together."""
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = " and ".join(str(shape) for shape in leading.values())
        raise ShapeError(f"{' and '.join(leading)}: expected batches that go together, got {shapes}") from None


def _array(values: ArrayLike) -> Array:
    """Return an array of float64, or of symbols."""
    return symbols(values) if is_symbolic(values) else np.asarray(values, dtype=np.float64)


def _biggest(matrix: Array) -> Array:
    """Largest |entry| of each matrix of a batch."""
    return _array(np.abs(matrix).max(axis=-1).max(axis=-1))


def _transpose(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _apply(matrix: Array, vector: Array) -> Array:
    return _array((matrix @ vector[..., None])[..., 0])


def _times(factor: Array | float, matrix: Array) -> Array:
    """One factor per matrix of a batch."""
    return _array(factor)[..., None, None] * matrix
