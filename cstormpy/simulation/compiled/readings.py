"""The numbers of objects that what was written down reads, found anew for each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.gathering import Gathered
from cstormpy.linkage.tables import numbers_of
from cstormpy.simulation.compiled.structures import Holders
from cstormpy.simulation.compiled.twins import Path, Place, Readers, TableStep, as_parameter

Indices = NDArray[np.intp]


class Source(NamedTuple):
    """Places of numbers that are found from one object, and readers of some of its attributes."""

    owner: Any
    places: Sequence[Place]
    readers: Readers = {}  # noqa: RUF012  # nobody writes into it


class _Group(NamedTuple):
    """Numbers that stand at the end of one path: which of them, None for all, and where they are filled in."""

    owner: Any
    path: Path
    readers: Mapping[str, Callable[[Any], Any]]
    some: list[int] | None
    part: slice


class Reading:
    """The numbers of some objects, read anew each time that they are asked for.

    Parameters
    ----------
    *sources : Source
        Whose numbers follow each other.
    """

    def __init__(self, *sources: Source) -> None:
        self._groups: list[_Group] = []
        count = 0
        for owner, places, readers in sources:
            for path, group in groupby(places, lambda p: p.path):
                mine = [*group]
                size = sum(place.count for place in mine)
                some = None if mine[0].index < 0 else [place.index for place in mine]
                self._groups.append(_Group(owner, path, readers, some, slice(count, count + size)))
                count += size
        self.count = count
        self._sizes: dict[int, int] = {}
        self._plan()

    def _plan(self) -> None:
        """Note where the numbers are held now."""
        self._holders = Holders()
        #: Single numbers of other kinds: what holds each, its key, and where it stands.
        self._singles: list[tuple[Any, Any, int]] = []
        gathered: list[tuple[Any, Any, list[int] | None, int]] = []
        #: What gives values of which some numbers are read, which ones, None for all, and where they stand.
        self._others: list[tuple[Callable[[], Any], Indices | None, slice]] = []
        for k, group in enumerate(self._groups):
            owner, path = group.owner, group.path
            if len(path) == 1 and path[0] in group.readers:
                self._ask(group, partial(_read_by, group.readers[path[0]], owner))
                continue
            end = self._holders.follow(owner, path[:-1])
            inside, key = end, path[-1]
            if isinstance(key, TableStep):  # a mechanism's tables stay as long as it is the same
                key = key.name
                inside = {key: numbers_of(end, key)}
            elif not isinstance(end, (list, tuple, dict)):
                inside = self._holders.attributes(end)
            value = inside[key]
            if np.size(value) != self._sizes.setdefault(k, np.size(value)):
                raise LookupError("an array has another size")
            if Gathered.takes(inside, value):
                gathered.append((inside, key, group.some, group.part.start))
            elif np.ndim(value) == 0:
                self._singles.append((inside, key, group.part.start))
            else:
                self._ask(group, partial(getitem, inside, key))
        self._holders.settle()
        self._gathered = Gathered(gathered)

    def _ask(self, group: _Group, read: Callable[[], Any]) -> None:
        some = None if group.some is None else np.array(group.some, dtype=np.intp)
        self._others.append((read, some, group.part))

    def __call__(self) -> Array:
        """Return them as an array."""
        out = np.empty(self.count)
        self.fill(out)
        return out

    def fill(self, out: Array) -> None:
        """Write them into an array.

        Raises
        ------
        LookupError
            Where something is gone, or an array has another size.
        """
        if not (self._holders.hold() and self._gathered.fill(out)):
            self._plan()
            self._gathered.fill(out)
        for held, key, place in self._singles:
            out[place] = held[key]
        for read, some, part in self._others:
            value = read()
            numbers = value.ravel() if value.__class__ is np.ndarray else np.ravel(value)
            out[part] = numbers if some is None else numbers[some]


def _read_by(reader: Callable[[Any], Any], owner: Any) -> Any:
    return as_parameter(reader(owner))
