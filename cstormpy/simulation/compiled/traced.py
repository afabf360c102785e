"""Blocks and laws without an emitter, in the compiled engine: by their own methods, in one of three ways.

1. *Traced*: the method is called once with symbols in place of the time, the signals and the block's own numbers, and
   writes down what it computes (`cstormpy.graph`). That becomes machine code, and so do its exact derivatives.
2. *Compiled by numba*: a plain function that asks a number (an ``if``, a loop that ends somewhere), see
   `emitters_functions`. Its derivatives are differenced.
3. *In Python*: whatever is left is asked by its own method from inside of the compiled function.

The object that is traced is a twin of the block or law (`twins`), whose numbers are symbols: they stay inputs of the
code and are read anew for each run, so that they can be tuned. Everything else of it shapes what is written down, and
has it written down again when it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cstormpy.graph import Graph, Node, SymbolicBranch
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.kept import machine_for
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import alive
from cstormpy.graph.routine import Routine
from cstormpy.simulation.compiled.emitter import Emitter, named
from cstormpy.simulation.compiled.readings import Reading
from cstormpy.simulation.compiled.registry import Value
from cstormpy.simulation.compiled.structures import Structure
from cstormpy.simulation.compiled.twins import Changed, Readers, Twins, moved, numbers_used

__all__ = ["Untraceable", "traced", "untraceable"]

#: A trace with more operations is left to the other ways.
_MOST_OPERATIONS = 20_000


class Untraceable(Exception):
    """What a method does that cannot be written down; the text says what, and where."""


def traced(
    e: Emitter,
    read: Callable[[], Any],
    function: Callable[..., Any],
    method: Callable[..., Any],
    given: Sequence[Value],
    readers: Readers | None = None,
    instead: Mapping[int, Any] | None = None,
) -> list[Value]:
    """Emit a method of a block or law by its trace, and return what it returns, a list as its parts.

    Parameters
    ----------
    e : Emitter
    read : function without arguments
        Gives the block or law, or the function that is one, as it is now.
    function : function
        The method, as somebody has written it.
    method : function of (twin, *given)
        Calls it with the twin.
    given : sequence of Value
        The signals that it takes, as expressions; it is given symbols of the same shapes.
    readers : mapping of str to function of the owner, optional
        Attributes of the twin that are numbers whatever they are in the owner, and how they are read.
    instead : mapping of int to mapping, optional
        Methods that stand in the twin for those of some objects, by the `id` of the object and their names.

    Raises
    ------
    Untraceable
    """
    shapes = [v.shape for v in given]
    trace = _Trace(read(), method, shapes, readers or {}, instead or {})
    again = trace if _is_of_bdsim(function) else _Trace(read(), method, shapes, readers or {}, instead or {})
    if again.text != trace.text:
        raise Untraceable("it gives something else each time that it is asked")
    e.depends(Structure(read(), trace.twins, readers, [function]).holds)
    addresses = e.integers(lambda: trace.addresses)
    table = e.numbers(Reading(read(), trace.used, readers))
    stored = e.store(list(given), e.scratch(trace.size))
    out = e.scratch(trace.count)
    filled = f"w[{out}:{out + trace.count}]"
    e.fail_if(f"{e.call('line_function')}({table}, {stored}, {filled}, {addresses}) != 0")
    values, k = [], out
    for shape in trace.shapes:
        behind = k + math.prod(shape)
        values.append(named([f"w[{i}]" for i in range(k, behind)]).reshape(shape))
        k = behind
    return values


def untraceable(owner: Any, method: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> str | None:
    """Return why a method of (twin, *symbols of some shapes) cannot be written down; None if it can."""
    try:
        first, second = (_Trace(owner, method, shapes, {}, {}) for _ in range(2))
    except Untraceable as error:
        return str(error)
    return None if first.text == second.text else "it gives something else each time that it is asked"


def _is_of_bdsim(function: Callable[..., Any]) -> bool:
    """Tell whether a function is known to give the same each time: it calls nothing of a user's."""
    return str(function.__module__).startswith(("bdsim.blocks.", "cstormpy.simulation.compiled.bdsim_equations"))


class _Trace:
    """What a method computes, as machine code.

    Attributes
    ----------
    size, count : int
        How many numbers go in and come out.
    shapes : list of tuple
        Those of the parts of the result.
    used : list of (path, index)
        The numbers of the owner that it reads, in their order.
    twins : Twins
    reads : list of (path, name)
        All attributes that it looks at.
    text : str
        The code, by which it is known.
    """

    def __init__(
        self,
        owner: Any,
        method: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]],
        readers: Readers,
        instead: Mapping[int, Any],
    ) -> None:
        graph = Graph()
        self.twins = twins = Twins(graph)
        twins.instead.update(instead)
        inputs: list[Any] = []
        self.size = 0
        for shape in shapes:
            count = math.prod(shape)
            nodes = [graph.input("x", self.size + k) for k in range(count)]
            inputs.append(nodes[0] if shape == () else symbols(nodes).reshape(shape))
            self.size += count
        result = _run(lambda: method(twins.of(owner, (), readers), *inputs))
        try:
            twins.refuse_changes()
        except Changed as error:
            raise Untraceable(str(error)) from error
        self.reads = list(twins.reads)
        parts = list(result) if isinstance(result, (list, tuple)) else [result]
        self.shapes = [np.shape(np.asarray(symbols(part))) for part in parts]
        outputs = [_output(x) for part in parts for x in np.asarray(symbols(part)).ravel()]
        self.count = len(outputs)
        self._build(outputs, twins)

    def _build(self, outputs: list[Any], twins: Twins) -> None:
        status = twins.graph.status
        nodes = alive([*outputs, status])
        if len(nodes) > _MOST_OPERATIONS:
            raise Untraceable(f"it takes {len(nodes)} operations")
        mine = numbers_used(nodes)
        self.used = [twins.places[k] for k in mine]
        begins, count = {}, 0  # only the numbers that are read are handed over, one behind the other
        for k in mine:
            begins[k] = count
            count += twins.places[k].count
        graph = twins.graph
        directions = {node: graph.input("dx", node.data[1]) for node in nodes if node.data and node.data[0] == "x"}
        directions |= moved(nodes, begins, "dp")
        changes = tangents(outputs, directions)
        renamed = {node.index: to for node, to in moved(nodes, begins, "p").items()}
        outputs, changes, (status,) = _renamed([outputs, changes, [status]], renamed)
        value = Routine("value", {"p": count}, {"x": self.size}, {"y": outputs}, status)
        change = Routine("change", {"p": count, "dp": count}, {"x": self.size, "dx": self.size}, {"dy": changes})
        self.text = text_for_one(value)
        self._change = text_for_one(change)
        self._machines: list[Any] = []
        self._addresses: list[int] = []

    @property
    def addresses(self) -> list[int]:
        """Where the code for the values, and that for their change along a direction, stand."""
        if not self._addresses:
            for name, text in (("value", self.text), ("change", self._change)):
                self._machines.append(machine_for(f"block_{name}", text.encode(), partial(str, text)))
                self._addresses.append(self._machines[-1].address(f"{name}_one"))
        return self._addresses


def _run(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Untraceable:
        raise
    except SymbolicBranch as error:
        raise Untraceable(f"it asks a number that is known only while it runs{_where(error)}") from error
    except Exception as error:
        raise Untraceable(f"{type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """Return the last line of the user's own code that led to an error."""
    import linecache
    import os
    import traceback

    own = [f for f in traceback.extract_tb(error.__traceback__) if not _is_library(f.filename)]
    if not own:
        return ""
    line = linecache.getline(own[-1].filename, own[-1].lineno or 0).strip()
    return f", in line {own[-1].lineno} of {os.path.basename(own[-1].filename)}: {line}"


def _is_library(path: str) -> bool:
    import os

    here = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return path.startswith(os.path.join(here, "graph")) or path == __file__ or "site-packages" in path


def _output(x: Any) -> Any:
    if isinstance(x, Node):
        return x.number()
    if isinstance(x, (bool, int, float, np.number, np.bool_)):
        return float(x)
    raise Untraceable(f"it returns a {type(x).__name__}")


def _renamed(lists: list[list[Any]], renamed: dict[int, Node]) -> list[list[Any]]:
    """Return outputs of which some inputs are others of the same graph; `renamed` gets what all nodes have become."""
    made = renamed
    for node in alive([x for one in lists for x in one]):
        if node.index not in made:
            args = tuple(made[a.index] if isinstance(a, Node) else a for a in node.args)
            made[node.index] = node if args == () else node.graph.make(node.primitive, args, node.data)
    return [[made[x.index] if isinstance(x, Node) else x for x in one] for one in lists]
