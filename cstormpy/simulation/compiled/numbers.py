"""The numbers that a diagram's function reads: where each stands, and how it is read anew from its block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Numbers", "Table"]


class Table:
    """Numbers one behind the other, some with a function that reads them anew."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.size = 0
        self._parts: list[NDArray[Any]] = []
        self._readers: list[tuple[int, int, tuple[int, ...], Callable[[], Any], Callable[[Any], NDArray[Any]]]] = []
        #: What each reader gave last, where that can not have changed since if it is the same object.
        self._lasting: list[Any] = []

    def keep(
        self, value: Any, reader: Callable[[], Any] | None, convert: Callable[[Any], NDArray[Any]]
    ) -> tuple[NDArray[Any], int]:
        """Add numbers; return them as an array, and where they begin."""
        array, first = convert(value), self.size
        self._parts.append(array.ravel().astype(self.kind))
        self.size += array.size
        if reader is not None:
            self._readers.append((first, self.size, array.shape, reader, convert))
            self._lasting.append(None)
        return array, first

    def array(self) -> NDArray[Any]:
        """Return all numbers."""
        return np.concatenate([np.zeros(0, dtype=self.kind), *self._parts])

    def refresh(self, out: NDArray[Any]) -> bool:
        """Write what the readers give now; return False where something has another shape.

        The array is the same one each time.
        """
        lasting = self._lasting
        for k, (first, last, shape, reader, convert) in enumerate(self._readers):
            value = reader()
            if value is lasting[k] and value is not None:
                continue
            if value.__class__ is float and last - first == 1 and not shape:
                out[first] = lasting[k] = value
                continue
            # conversion would copy
            plain = value.__class__ is np.ndarray and value.shape == shape and value.dtype == self.kind
            array = value if plain else convert(value)
            if array.shape != shape:
                return False
            out[first:last] = array.ravel()
            lasting[k] = value if _is_fixed(value) else None
        return True


class Numbers:
    """All numbers of a program, and on what else its source depends.

    Attributes
    ----------
    floats, whole : Table
    conditions : list of (function, value)
        What the form of the source depends on: its reader, and what it gave.
    baked : bool
        Whether numbers stand in it that may change and can not be read anew.
    """

    def __init__(self) -> None:
        self.floats, self.whole = Table(np.float64), Table(np.int64)
        self.conditions: list[tuple[Callable[[], Any], Any]] = []
        self.baked = False

    def refresh(self, p: NDArray[np.float64], n: NDArray[np.int64]) -> bool:
        """Read all numbers anew; return False where the source no longer fits what is read."""
        if self.baked or not all(_same(reader(), value) for reader, value in self.conditions):
            return False
        return self.floats.refresh(p) and self.whole.refresh(n)


def _is_fixed(value: Any) -> bool:
    """Tell whether an object always has the value that it has now."""
    if value.__class__ is not np.ndarray:
        return isinstance(value, (float, int))
    base = value.base
    return not value.flags.writeable and (base is None or (isinstance(base, np.ndarray) and not base.flags.writeable))


def _same(now: Any, before: Any) -> bool:
    if now is before and not isinstance(now, (list, dict)):
        return True
    if isinstance(now, np.ndarray) or isinstance(before, np.ndarray):
        return bool(np.shape(now) == np.shape(before) and np.array_equal(now, before))
    return bool(now == before)
