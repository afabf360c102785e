"""The numbers of a diagram's blocks: symbols while they are traced, places in an array when the routine runs."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import alive
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.numbers import Numbers
from cstormpy.simulation.compiled.readings import Reading, Source
from cstormpy.simulation.compiled.signals import Signal
from cstormpy.simulation.compiled.structures import Structure, Structures
from cstormpy.simulation.compiled.twins import Place, Readers, Twins, numbers_used, readers_of_numbers
from cstormpy.simulation.compiled.untranslated import Refused


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
        self._places = _Places()
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


class _Places(list[Place]):
    """Places of numbers, with the blocks that they are found from."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[Any] = []
        self.owner: Any = None

    def append(self, place: Place) -> None:
        super().append(place)
        self.owners.append(self.owner)


def _floats(value: Any) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Refused(f"has a parameter that is no real number: a {type(value).__name__}")
    return array.astype(np.float64)
