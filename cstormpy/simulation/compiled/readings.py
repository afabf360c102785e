"""The numbers of objects that what was written down reads, found anew for each run."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.linkage.tables import tables_of
from cstormpy.simulation.compiled.structures import Holders, getter
from cstormpy.simulation.compiled.twins import Path, Place, Readers, TableStep, as_parameter

__all__ = ["Reading"]

Indices = NDArray[np.intp]


class Reading:
    """The numbers of an object, read anew each time that it is called.

    Numbers that stand in the same list or mapping are read together, and so are arrays that are read as a whole.

    Parameters
    ----------
    owner : object
    places : sequence of Place
    readers : mapping, optional
    """

    def __init__(self, owner: Any, places: Sequence[Place], readers: Readers | None = None) -> None:
        self._owner, self._readers = owner, dict(readers or {})
        self._groups: list[tuple[Path, list[int], slice]] = []
        count = 0
        for path, group in groupby(places, lambda p: p.path):
            mine = [*group]
            size = sum(place.count for place in mine)
            self._groups.append((path, [place.index for place in mine], slice(count, count + size)))
            count += size
        self._count = count
        self._plan()

    def _plan(self) -> None:
        """Note where the numbers are held now."""
        self._holders = Holders()
        singles: dict[int, tuple[Any, list[Any], list[int]]] = {}
        arrays: dict[int, tuple[Any, list[Any], list[Indices]]] = {}
        #: What gives values of which some numbers are read, which ones, None for all, and where they stand.
        self._others: list[tuple[Callable[[], Any], Indices | None, slice]] = []
        for path, indices, part in self._groups:
            some = None if indices[0] < 0 else np.array(indices, dtype=np.intp)
            if len(path) == 1 and path[0] in self._readers:
                self._others.append((self._asked(self._readers[path[0]]), some, part))
                continue
            end = self._holders.follow(self._owner, path[:-1])
            if isinstance(path[-1], TableStep):
                self._others.append((_numbers_of(end, path[-1].name), some, part))
                continue
            inside = end if isinstance(end, (list, tuple, dict)) else self._holders.attributes(end)
            value = inside[path[-1]]
            if type(value) is np.ndarray:
                _, keys, picked = arrays.setdefault(id(inside), (inside, [], []))
                keys.append(path[-1])
                within = np.full(value.size, -1, dtype=np.intp)
                within[slice(None) if some is None else some] = [*range(part.start, part.stop)]
                picked.append(within)
            elif indices == [0]:
                _, keys, places = singles.setdefault(id(inside), (inside, [], []))
                keys.append(path[-1])
                places.append(part.start)
            else:
                self._others.append((lambda inside=inside, key=path[-1]: inside[key], some, part))  # type: ignore[misc]
        self._holders.settle()
        # what gives a single value gives it twice
        self._singles = [(getter(keys), inside) for inside, keys, _ in singles.values()]
        self._places = _places(places if len(places) > 1 else 2 * places for _, _, places in singles.values())
        self._arrays = [(getter(keys), inside) for inside, keys, _ in arrays.values()]
        within = _places(chain.from_iterable(p if len(p) > 1 else 2 * p) for _, _, p in arrays.values())
        self._size = within.size
        self._picked = np.flatnonzero(within >= 0)
        self._within = within[self._picked]

    def _asked(self, read: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: as_parameter(read(self._owner))

    def __call__(self) -> NDArray[np.float64]:
        """Return them as an array."""
        if not self._holders.hold():
            self._plan()
        out = np.empty(self._count)
        if self._singles:
            out[self._places] = array("d", chain.from_iterable([get(held) for get, held in self._singles]))
        if self._arrays:
            found = np.concatenate([*chain.from_iterable([get(held) for get, held in self._arrays])], axis=None)
            if found.size != self._size:
                raise LookupError("an array has another size")
            out[self._within] = found[self._picked]
        for read, some, part in self._others:
            numbers = np.ravel(read())
            out[part] = numbers if some is None else numbers[some]
        return out


def _places(parts: Iterable[Iterable[int]]) -> Indices:
    return np.array([*chain.from_iterable(parts)], dtype=np.intp)


def _numbers_of(mech: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(tables_of(mech.tree), name)
