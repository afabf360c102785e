"""Functions that a diagram's routine calls, and the room that they are given in its arrays ``n`` and ``w``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph import Node
from cstormpy.graph.external import Function
from cstormpy.graph.python_calls import PythonCall
from cstormpy.graph.routine import Routine
from cstormpy.simulation.compiled.numbers import Numbers


@dataclass(eq=False, repr=False)
class CalledFunction:
    """A function that is called.

    Attributes
    ----------
    function : Function
    changes : bool
        Whether only the derivative of the routine calls it.
    place : int
        Where in n its address stands.
    address : int
        0 until the function is ready.
    """

    function: Function
    changes: bool
    place: int
    address: int = 0

    def connect(self, n: NDArray[np.int64], in_python: bool = False) -> None:
        """Have the function ready, and write its address; one of the user's as it is in Python, if that is wanted."""
        python: PythonCall | None = getattr(self.function, "python", None) if in_python else None
        self.address = python.address() if python is not None else self.address or self.function.address()
        n[self.place] = self.address


class CallTable:
    """The functions that the graph of a diagram calls; see `cstormpy.graph.external.CallTable`.

    Attributes
    ----------
    time : Node
    failure : int
        The number of the block that is gone through, from 1 on.
    owner : str
        Its name.
    links : list of CalledFunction
    used : list of Function
        What the block has called.
    room : int
        The size of w.
    """

    def __init__(self, numbers: Numbers, time: Node) -> None:
        self._numbers = numbers
        self.time = time
        self.failure = 0
        self.owner = ""
        self.links: list[CalledFunction] = []
        self.used: list[Function] = []
        self.room = 0
        self._integers: dict[bytes, int] = {}
        self._differenced: dict[str, tuple[str, str, range]] = {}

    def function(self, function: Function, changes: bool = False) -> int:
        """Return where in n the address of a function stands; `changes`: only derivatives call it."""
        self.used.append(function)
        for link in self.links:
            if link.function is function:
                link.changes = link.changes and changes
                return link.place
        made = CalledFunction(function, changes, self._numbers.whole.size)
        self._numbers.whole.keep([0], lambda: [made.address], _integers)
        self.links.append(made)
        return made.place

    def integers(self, values: NDArray[np.int64]) -> int:
        """Return where in n some integers begin."""
        key = values.tobytes()
        if key not in self._integers:
            self._integers[key] = self._numbers.whole.size
            self._numbers.whole.keep(values, None, _integers)
        return self._integers[key]

    def scratch(self, count: int) -> int:
        """Return where in w so many numbers begin; calls, which follow one another, share them."""
        self.room = max(self.room, count)
        return 0

    def differenced(self, node: Node, what: str, exact: range = range(0)) -> None:
        """Note that derivatives of what a call finds, but for some of the numbers, are differences."""
        self._differenced[node.primitive.name] = self.owner, what, exact

    def differenced_in(self, routine: Routine) -> list[tuple[str, str]]:
        """Return of which block what is differenced where a routine is differentiated."""
        found: dict[tuple[str, str], None] = {}
        for node in routine.nodes:
            source = node.args[0] if node.args else None
            noted = self._differenced.get(source.primitive.name) if isinstance(source, Node) else None
            if noted is not None and int(node.primitive.name.split()[-1]) not in noted[2]:
                found[noted[:2]] = None
        return list(found)


def _integers(value: Any) -> NDArray[np.int64]:
    return np.asarray(value, dtype=np.int64)
