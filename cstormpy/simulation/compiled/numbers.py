"""The numbers that a diagram's function reads: where each stands, and how it is read anew from its block."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
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
        #: Where single numbers stand, and what reads them: together, for there are many.
        self._places: list[int] = []
        self._single: list[Callable[[], Any]] = []
        self._arrays: list[_Read] = []

    def keep(
        self, value: Any, reader: Callable[[], Any] | None, convert: Callable[[Any], NDArray[Any]]
    ) -> tuple[NDArray[Any], int]:
        """Add numbers; return them as an array, and where they begin."""
        numbers, first = convert(value), self.size
        self._parts.append(numbers.ravel().astype(self.kind))
        self.size += numbers.size
        if reader is not None and numbers.shape == ():
            self._places.append(first)
            self._single.append(reader)
        elif reader is not None:
            self._arrays.append(_Read(slice(first, self.size), numbers.shape, reader, convert))
        return numbers, first

    def array(self) -> NDArray[Any]:
        """Return all numbers."""
        return np.concatenate([np.zeros(0, dtype=self.kind), *self._parts])

    def refresh(self, out: NDArray[Any]) -> bool:
        """Write what the readers give now; return False where something has another shape.

        The array is the same one each time.
        """
        if self._single:
            out[self._places] = array("d", [reader() for reader in self._single])
        for read in self._arrays:
            value = read.reader()
            if value is read.last:
                continue
            # conversion would copy
            plain = value.__class__ is np.ndarray and value.shape == read.shape and value.dtype == self.kind
            numbers = value if plain else read.convert(value)
            if numbers.shape != read.shape:
                return False
            out[read.part] = numbers.ravel()
            read.last = value if _is_fixed(value) else _NOTHING
        return True


#: What no reader gives.
_NOTHING = object()


@dataclass
class _Read:
    """An array of numbers, and what was read last where that can not have changed if it is the same object."""

    part: slice
    shape: tuple[int, ...]
    reader: Callable[[], Any]
    convert: Callable[[Any], NDArray[Any]]
    last: Any = _NOTHING


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
    """Tell whether an array always holds the numbers that it holds now."""
    if value.__class__ is not np.ndarray or value.flags.writeable:
        return False
    return value.base is None or (isinstance(value.base, np.ndarray) and not value.base.flags.writeable)


def _same(now: Any, before: Any) -> bool:
    if now is before and not isinstance(now, (list, dict)):
        return True
    if isinstance(now, np.ndarray) or isinstance(before, np.ndarray):
        return bool(np.shape(now) == np.shape(before) and np.array_equal(now, before))
    return bool(now == before)
