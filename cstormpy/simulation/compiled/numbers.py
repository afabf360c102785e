"""The numbers that a diagram's function reads: where each stands, and how it is read anew from its block."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled.readings import Reading
from cstormpy.simulation.compiled.structures import Structures


class _Places:
    """Places in a table, as an array once that is asked for."""

    def __init__(self) -> None:
        self._given: list[int] = []

    def add(self, first: int, last: int) -> None:
        """Add those from the first to before the last."""
        self._given += range(first, last)

    @cached_property
    def array(self) -> NDArray[np.intp]:
        """All of them."""
        return np.array(self._given, dtype=np.intp)


class Table:
    """Numbers one behind the other, some with a function that reads them anew."""

    def __init__(self, kind: Any) -> None:
        self.kind = np.dtype(kind)
        self.size = 0
        self._parts: list[NDArray[Any]] = []
        #: Where single numbers stand, and what reads them; what is read anew is written together, for it is much.
        self._places = _Places()
        self._single: list[Callable[[], Any]] = []
        #: The same of arrays, with their shapes.
        self._within = _Places()
        self._shapes: list[tuple[int, ...]] = []
        self._arrays: list[tuple[Callable[[], Any], Callable[[Any], NDArray[Any]]]] = []
        #: What fills in many numbers by itself, and where.
        self._filled: list[tuple[Reading, slice]] = []
        #: The array that was filled last, and that part of it for each of these.
        self._views: tuple[NDArray[Any], list[tuple[Reading, NDArray[Any]]]] | None = None

    def keep(
        self, value: Any, reader: Callable[[], Any] | None, convert: Callable[[Any], NDArray[Any]]
    ) -> tuple[NDArray[Any], int]:
        """Add numbers; return them as an array, and where they begin."""
        numbers, first = convert(value), self.size
        self._parts.append(numbers.ravel().astype(self.kind))
        self.size += numbers.size
        if reader is not None and numbers.shape == ():
            self._places.add(first, self.size)
            self._single.append(reader)
        elif reader is not None:
            self._within.add(first, self.size)
            self._shapes.append(numbers.shape)
            self._arrays.append((reader, convert))
        return numbers, first

    def keep_filled(self, reading: Reading) -> None:
        """Add numbers that are read together."""
        part = slice(self.size, self.size + reading.count)
        self._parts.append(reading())
        self.size = part.stop
        self._filled.append((reading, part))
        self._views = None

    def array(self) -> NDArray[Any]:
        """Return all numbers."""
        return np.concatenate([np.zeros(0, dtype=self.kind), *self._parts])

    def refresh(self, out: NDArray[Any]) -> bool:
        """Write what the readers give now; return False where something has another shape."""
        if self._single:
            out[self._places.array] = array("d", [read() for read in self._single])
        if self._arrays:
            arrays = [
                value if value.__class__ is np.ndarray and value.dtype is self.kind else convert(value)
                for value, convert in [(read(), convert) for read, convert in self._arrays]
            ]
            if [value.shape for value in arrays] != self._shapes:
                return False
            out[self._within.array] = np.concatenate(arrays, axis=None)
        if self._views is None or self._views[0] is not out:
            self._views = out, [(reading, out[part]) for reading, part in self._filled]
        for reading, numbers in self._views[1]:
            reading.fill(numbers)
        return True


class Numbers:
    """All numbers of a program, and on what else its source depends.

    Attributes
    ----------
    floats, whole : Table
    conditions : list of (function, value)
        What the form of the source depends on: its reader, and what it gave.
    structures : Structures
        What the methods that were traced depend on.
    """

    def __init__(self) -> None:
        self.floats, self.whole = Table(np.float64), Table(np.int64)
        self.conditions: list[tuple[Callable[[], Any], Any]] = []
        self.structures = Structures([])

    def refresh(self, p: NDArray[np.float64], n: NDArray[np.int64]) -> bool:
        """Read all numbers anew; return False where the source no longer fits what is read."""
        if not all(_same(reader(), value) for reader, value in self.conditions):
            return False
        return self.structures.hold() and self.floats.refresh(p) and self.whole.refresh(n)


def _same(now: Any, before: Any) -> bool:
    if now is before and not isinstance(now, (list, dict)):
        return True
    if isinstance(now, np.ndarray) or isinstance(before, np.ndarray):
        return bool(np.shape(now) == np.shape(before) and np.array_equal(now, before))
    return bool(now == before)
