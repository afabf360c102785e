"""Tiles: neighbouring numbers of one sample in one vector of the machine, as the columns that share their factors are.

A tile is a node like any other: ``+ - *`` mix it with numbers, which then count for all its lanes. It stands between
`tile`, which puts it together, and `lane`, which takes a number out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cstormpy.graph.primitives import Primitive, Symbol

#: Numbers side by side in one vector of the machine.
LANES = 8


def _together(e: Any, *numbers: str) -> str:
    """Append what brings numbers, of which some are constants, side by side."""
    known = [f"double {'poison' if x.startswith('%') else x}" for x in numbers]
    found = f"<{', '.join(known)}>"
    for k, x in enumerate(numbers):
        if x.startswith("%"):
            found = e.new(f"insertelement <{LANES} x double> {found}, double {x}, i32 {k}")
    return found


def _no_value(*numbers: float) -> float:
    raise TypeError("a tile is no number")


#: `LANES` numbers side by side; and one of them, whose place is the node's data.
TILE = Primitive("tile", LANES, _no_value, "tile(...)", _together, lambda r, *args: (None,) * LANES)
LANE = Primitive(
    "lane",
    1,
    _no_value,
    "lane({})",
    lambda e, a: e.new(f"extractelement <{LANES} x double> {a}, i32 {e.node.data}"),
    lambda r, a: (None,),
)


def tile(graph: Any, numbers: Sequence[Any]) -> Any:
    """Return `LANES` numbers as one tile; 0.0 where all are, which stays zero whatever it is multiplied by.

    >>> from cstormpy.graph import Graph
    >>> graph = Graph()
    >>> numbers = graph.inputs("x", LANES)
    >>> [lane(tile(graph, numbers), k) is x for k, x in enumerate(numbers)] == [True] * LANES
    True
    >>> tile(graph, [0.0] * LANES)
    0.0
    """
    symbols: list[Any] = [x for x in numbers if isinstance(x, Symbol)]
    if not symbols and not any(numbers):
        return 0.0
    if len(symbols) == LANES and symbols[0].primitive is LANE:
        whole = symbols[0].args[0]
        if all(x.primitive is LANE and x.args[0] is whole and x.data == k for k, x in enumerate(symbols)):
            return whole
    return graph.make(TILE, tuple(numbers))


def lane(x: Any, k: int) -> Any:
    """Return number k of a tile; of a number, which counts for all lanes, itself."""
    if not isinstance(x, Symbol):
        return x
    return x.args[k] if x.primitive is TILE else x.graph.make(LANE, (x,), k)  # type: ignore[attr-defined]
