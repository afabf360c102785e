"""Calls of machine code from a graph: nodes whose numbers a function finds that stands at some address.

The function is one of C, ``int64_t f(..., const double *given, double *found)``, and returns 0 where all went well. Its
address is read from an array of integers, ``n``, when the routine runs, so that code that is kept on disk holds in
another process too. Where it does not return 0 the routine ends, and returns what is said for that.

Before the numbers it may be given places: in ``n``, in ``w``, the routine's scratch memory, and tables. Who writes a
routine down says where in these arrays there is room (`CallTable`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidType
from cstormpy.graph.nodes import Graph, Node
from cstormpy.graph.primitives import Primitive

Number = Any
#: What gives the derivatives of the results along a direction: of (arguments, their rates).
Along = Callable[[Sequence[Number], Sequence[Number]], Sequence[Number]]
#: A place in one of the arrays of a routine: its name, and the index.
PlaceIn = tuple[str, int]


class Function(Protocol):
    """A function of C, ready when it is asked for its address."""

    def address(self) -> int:
        """Return where it begins; that holds as long as this object lives."""

    def is_ready(self) -> bool:
        """Tell whether it is there without being compiled."""


class CallTable(Protocol):
    """The functions that a routine calls, and the room that they are given.

    Attributes
    ----------
    failure : int
        What the routine returns where a function that is called now fails.
    """

    failure: int

    def function(self, function: Function, changes: bool = False) -> int:
        """Return where in ``n`` the address of a function stands; `changes`: only derivatives call it."""

    def integers(self, values: NDArray[np.int64]) -> int:
        """Return where in ``n`` some integers begin."""

    def scratch(self, count: int) -> int:
        """Return where in ``w`` so many numbers begin; calls share them."""

    def differenced(self, node: Node, what: str, exact: range = range(0)) -> None:
        """Note that derivatives of what a call finds, but for some of the numbers, are differences."""


def external(
    graph: Graph,
    place: int,
    failure: int,
    given: Sequence[Number],
    count: int,
    along: Along | None = None,
    before: Sequence[PlaceIn | Node] = (),
) -> list[Node]:
    """Return what a function finds, as nodes.

    Parameters
    ----------
    graph : Graph
    place : int
        Where in ``n`` its address stands.
    failure : int
        What the routine returns where the function fails.
    given : sequence of nodes and floats
    count : int
        How many numbers it finds.
    along : function, optional
        Its derivatives along a direction, from the tables before the numbers and the numbers, and the rates of them
        all; of a function that is such a derivative itself there are none.
    before : sequence of (str, int) and nodes
        Places that it is given before the numbers: in ``n`` or ``w``, and tables.
    """
    tables = [x for x in before if isinstance(x, Node)]

    def code(e: Any, *values: str) -> str:
        if e.lanes != 1:
            raise InvalidType("a function that is called finds the numbers of one sample, not of lanes")
        room = e.new(f"alloca double, i64 {len(given) + count}, align 8")
        for k, value in enumerate(values[len(tables) :]):
            e.lines.append(f"  store double {value}, ptr {e.address(room, k)}, align 8")
        found = e.address(room, len(given))
        address = e.new(f"load i64, ptr {e.address('%n', place)}, align 8")
        function = e.new(f"inttoptr i64 {address} to ptr")
        known = iter(values)
        pointers = [next(known) if isinstance(x, Node) else e.address(f"%{x[0]}", x[1]) for x in before]
        passed = ", ".join(f"ptr {pointer}" for pointer in (*pointers, room, found))
        status = e.new(f"call i64 {function}({passed})")
        good = e.new(f"icmp eq i64 {status}, 0")
        label = good[1:]
        e.lines += [f"  br i1 {good}, label %good{label}, label %bad{label}", f"bad{label}:", f"  ret i64 {failure}"]
        e.lines.append(f"good{label}:")
        return found

    text = f"f{place}({', '.join(['{}'] * (len(tables) + len(given)))})"

    def changes(node: Node, rate: Callable[[Number], Number]) -> Sequence[Number]:
        rates = [rate(a) for a in node.args]
        if all(not isinstance(r, Node) and r == 0.0 for r in rates):
            return [0.0] * count
        if along is None:
            raise InvalidType("a derivative that is found by a call has no further derivative")
        return along(node.args, rates)

    places = [x for x in before if not isinstance(x, Node)]
    name = f"call {place} {failure} {places}"
    call = Primitive(name, len(tables) + len(given), _unknown, text, code, _unknown, along=changes, named=False)
    node = graph.make(call, (*tables, *given))
    return [graph.make(_part(k), (node,)) for k in range(count)]


def _unknown(*_: Any) -> Any:
    raise NotImplementedError("a call is known while it runs only")


_parts: dict[int, Primitive] = {}


def _part(k: int) -> Primitive:
    """Return the primitive that is the k-th number of what a call finds."""
    if k not in _parts:
        _parts[k] = Primitive(
            f"part {k}", 1, _unknown, f"{{}}[{k}]", lambda e, a: e.load_same(a, k), _unknown,
            along=lambda node, rate: rate(node.args[0])[k], named=False,
        )  # fmt: skip
    return _parts[k]
