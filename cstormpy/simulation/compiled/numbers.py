"""The numbers that a diagram's function reads: symbols while blocks are traced, then places in arrays, read anew."""

from __future__ import annotations

import bisect
import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import alive
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.readings import Reading, Source
from cstormpy.simulation.compiled.signals import Signal
from cstormpy.simulation.compiled.structures import Structure, Structures
from cstormpy.simulation.compiled.twins import Place, Readers, Twins, numbers_used, readers_of_numbers
from cstormpy.simulation.compiled.untranslated import Refused


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

    def refresh(self, p: Array, n: NDArray[np.int64]) -> bool:
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


class BlockNumbers:
    """The numbers that are read of the blocks of a diagram.

    Attributes
    ----------
    kept : Numbers
        The arrays p and n of the routine, and how they are read anew.
    begins : dict of int to int
        Where in p each of the places begins that are read.
    owner_of : dict of int to str
        The name of the block that has written a node down first.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.kept = Numbers()
        self.begins: dict[int, int] = {}
        self.owner_of: dict[int, str] = {}
        self._places = _OwnedPlaces()
        #: Places that are read whether a node needs them or not.
        self._always: list[int] = []
        #: Of each block that was traced its twins, what is read of it as numbers, and what was traced.
        self._rules: dict[int, tuple[Any, Twins, Readers, list[Callable[..., Any]]]] = {}
        #: Up to which node the graph is of which block.
        self._owned: list[tuple[int, str]] = []

    def twins(self) -> Twins:
        """Return what makes twins of a block whose numbers are all in one place."""
        made = Twins(self._graph)
        made.places = self._places
        return made

    def belong_to(self, owner: Any) -> None:
        """Have the places that are met from now on be found from an object."""
        self._places.owner = owner

    def note(self, block: Any, twins: Twins, readers: Readers, rule: Callable[..., Any]) -> None:
        """Note that a method of a block has been traced."""
        self._owned.append((len(self._graph.nodes), str(block.name)))
        self._rules.setdefault(id(block), (block, twins, readers, []))[3].append(rule)

    def forget(self, block: Any) -> None:
        """Forget that a block has been traced."""
        self._rules.pop(id(block), None)

    def depends(self, reader: Callable[[], Any], value: Any) -> None:
        """Note that what is written down holds as long as a reader gives the same."""
        self.kept.conditions.append((reader, value))

    def read(self, reader: Callable[[], Any]) -> Signal:
        """Return the symbols of a number or an array that a function reads anew."""
        array, first = self.kept.floats.keep(reader(), reader, _floats)
        nodes = [self._graph.input("p", first + k) for k in range(array.size)]
        return symbols(nodes).reshape(array.shape) if array.shape else nodes[0]

    def number_of(self, owner: Any, path: tuple[str, ...], index: int) -> tuple[Node, int]:
        """Return the symbol of a number of some object, which is read even if nothing needs it, and its place."""
        self._places.owner = owner
        self._places.append(Place(path, index))
        place = len(self._places) - 1
        self._always.append(place)
        return self._graph.input("all", place), place

    def settle(self, outputs: Iterable[Any]) -> None:
        """Give the numbers that some outputs need their places in p, from where all nodes read them from now on."""
        self.kept.structures = Structures([Structure(*traced) for traced in self._rules.values()])
        nodes = alive(outputs)
        groups: dict[int, list[int]] = {}
        # all numbers of a mechanism that is asked count as read, even where nothing depends on them, as a planar one
        # does not on the gravity across its plane
        asked = (k for k, place in enumerate(self._places) if place.of_mechanism)
        for k in sorted({*numbers_used(nodes), *self._always, *asked}):
            groups.setdefault(id(self._places.owners[k]), []).append(k)
        count, sources = self.kept.floats.size, []
        for mine in groups.values():
            for k in mine:
                self.begins[k] = count
                count += self._places[k].count
            owner, places = self._places.owners[mine[0]], [self._places[k] for k in mine]
            equations = equations_of(owner)
            sources.append(Source(owner, places, equations.numbers if equations else {}))
        self.kept.floats.keep_filled(Reading(*sources))
        for node, first in [*readers_of_numbers(nodes, self.begins)]:
            self._graph.rename(node, "p", first)
        borders, owners = [border for border, _ in self._owned], [name for _, name in self._owned]
        for node in nodes:
            place = bisect.bisect_right(borders, node.index)
            if place < len(owners):
                self.owner_of[node.index] = owners[place]


class _OwnedPlaces(list[Place]):
    """Places of numbers, with the blocks that they are found from."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[Any] = []
        self.owner: Any = None

    def append(self, place: Place) -> None:
        super().append(place)
        self.owners.append(self.owner)


def _floats(value: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Refused(f"has a parameter that is no real number: a {type(value).__name__}")
    return array.astype(np.float64)


#: An array of more numbers is a table, which nobody tunes: as arguments of a call they would cost more than the call.
_MOST = 200


class HeldNumbers:
    """Numbers and arrays that a method reads of its object while Python or numba calls it, by names.

    They are further arguments of the call, so that its derivatives, which are differences, reach them too.

    Parameters
    ----------
    names : sequence of str
        Or what else `read` and `write` take.
    read : function of a name
        Returns what is held now.
    write : function of (name, value)
        Has the object hold something else.
    """

    def __init__(self, names: Sequence[Any], read: Callable[[Any], Any], write: Callable[[Any, Any], object]) -> None:
        self.names, self._read, self._write = tuple(names), read, write

    @classmethod
    def none(cls) -> HeldNumbers:
        """Return no numbers at all."""
        return cls((), lambda name: None, lambda name, value: None)

    def beside(self, other: HeldNumbers) -> HeldNumbers:
        """Return these numbers and others."""
        names = [(each, name) for each in (self, other) for name in each.names]
        return HeldNumbers(names, lambda at: at[0]._read(at[1]), lambda at, value: at[0]._write(at[1], value))

    def readers(self) -> list[Callable[[], Any]]:
        """Return functions without arguments that return what is held now, one for each name."""
        return [lambda name=name: self._read(name) for name in self.names]  # type: ignore[misc]

    @contextlib.contextmanager
    def moved(self, values: Sequence[Any]) -> Iterator[None]:
        """Have the object hold other numbers for a while."""
        before = [(name, self._read(name)) for name in self.names]
        changed = [(name, old, new) for (name, old), new in zip(before, values, strict=True) if np.any(old != new)]
        try:
            for name, _, new in changed:
                self._write(name, new)
            yield
        finally:
            for name, old, _ in changed:
                self._write(name, old)


def held_by(*owners: Any) -> HeldNumbers:
    """Return the numbers, and arrays of some, that objects have as public attributes."""
    held = [(owner, *item) for owner in owners for item in vars(owner).items() if not item[0].startswith("_")]
    names = [(owner, name) for owner, name, value in held if is_real(value) and np.size(value) <= _MOST]
    return HeldNumbers(names, lambda at: getattr(*at), lambda at, value: setattr(at[0], at[1], value))


def is_real(value: Any) -> bool:
    """Tell whether something is a number or an array of real numbers."""
    array = type(value) is np.ndarray and value.dtype == np.float64
    return array or (isinstance(value, (float, np.floating)) and bool(np.isfinite(value)))
