"""Methods of blocks and laws called with symbols in place of numbers, which write down what they compute.

What is called is a method of a twin (`twins`), an object whose numbers are symbols: they stay inputs of the code, so
that they can be tuned. Everything else of it shapes what is written down, and has it written down again when it
changes.
"""

from __future__ import annotations

import linecache
import math
import os
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from cstormpy.graph import Graph, SymbolicBranch
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import AskedForNumber
from cstormpy.graph.paths import on_all_ways
from cstormpy.simulation.compiled.actions import action_of
from cstormpy.simulation.compiled.call_table import CallTable
from cstormpy.simulation.compiled.numbers import Numbers
from cstormpy.simulation.compiled.side_effects import Reached
from cstormpy.simulation.compiled.signals import compared
from cstormpy.simulation.compiled.twins import Changed, Twins
from cstormpy.simulation.compiled.untranslated import Untraceable

#: A trace with more operations, which would take more than some ten seconds to compile, is left to the other ways.
_MOST_OPERATIONS = 50_000


def asked_twice(graph: Graph, twins: Twins, ask: Callable[[], Any], ours: bool = False) -> Any:
    """Return what a method of a twin gives; one of `ours` that looks at nothing of others is asked once.

    Raises
    ------
    Untraceable
        If it cannot be written down, is too long, changes its object, or gives something else the second time.
    """
    before, reached = len(graph.nodes), Reached(twins.shared)

    def check() -> None:
        changed = reached.restore()
        if changed:
            raise Untraceable(f"it changes {changed} while it computes")
        try:
            twins.refuse_changes()
        except Changed as error:
            raise Untraceable(str(error)) from error
        if len(graph.nodes) - before > _MOST_OPERATIONS:
            raise Untraceable(f"it takes {len(graph.nodes) - before} operations")

    def acting() -> str:
        found = action_of(reached.objects, twins.read_by)
        return (
            f"it asks a number that is known only while it runs, and can reach {found}, which may act" if found else ""
        )

    graph.legible = False
    try:
        result = _run(lambda: on_all_ways(graph, ask, check, acting))
        again = result if ours and twins.are_ours() else _run(lambda: on_all_ways(graph, ask, check, acting))
    finally:
        graph.legible = True
        reached.restore()
    if again is not result and compared(result) != compared(again):
        raise Untraceable("it gives something else each time that it is asked")
    return result


def untraceable(owner: Any, method: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> str | None:
    """Return why a method of (twin, *symbols of some shapes) cannot be written down; None if it can."""
    graph = Graph()
    graph.call_table = CallTable(Numbers(), graph.input("t"))
    twins, inputs, size = Twins(graph), [], 0
    for shape in shapes:
        nodes = [graph.input("x", size + k) for k in range(math.prod(shape))]
        inputs.append(nodes[0] if shape == () else symbols(nodes).reshape(shape))
        size += len(nodes)
    twin = twins.of(owner)
    try:
        asked_twice(graph, twins, lambda: method(twin, *inputs))
    except Untraceable as error:
        return str(error)
    return None


def _run(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Untraceable:
        raise
    except SymbolicBranch as error:
        asks = "it asks a number that is known only while it runs"
        raise Untraceable(f"{asks if isinstance(error, AskedForNumber) else error}{_where(error)}") from error
    except Exception as error:
        # NumPy's words, of a function of elements, and of one of np.linalg
        lacking = re.search(r"which has no callable (\w+) method|Cannot cast ufunc '(?P<of>[a-z]+)", str(error))
        if lacking:
            raise Untraceable(
                f"NumPy's {lacking[1] or lacking['of']}() cannot be written down with symbols{_where(error)}"
            ) from error
        raise Untraceable(f"{type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """Return the last line of the user's own code that led to an error."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if not _is_library(f.filename)]
    if not own:
        return ""
    line = linecache.getline(own[-1].filename, own[-1].lineno or 0).strip()
    return f", in line {own[-1].lineno} of {os.path.basename(own[-1].filename)}: {line}"


def _is_library(path: str) -> bool:
    here = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return path.startswith(here + os.sep) or "site-packages" in path
