"""Functions that ask symbols for their truth, in an ``if`` say: all ways through them are followed and written down.

A function is called once for each way. Whenever it asks for a truth that is not known it gets an answer: first True,
and in a later call, with the same answers before, False. What it returns on the ways is chosen by the conditions that
it has asked for. A way that ends with an error of its own, by ``raise`` or ``assert``, gives nothing: what is written
down fails where its conditions hold (`Graph.require`).
"""

from __future__ import annotations

import dis
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph import primitives as p
from cstormpy.graph.arrays import Symbols
from cstormpy.graph.elementwise import elementwise
from cstormpy.graph.nodes import AskedForNumber, Graph, Node, SymbolicBranch, where

#: So many ways are followed, and so many answers given on each of them: a loop may ask without end.
_WAYS, _ANSWERS = 32, 64
_NUMBERS = (bool, int, float, np.number, np.bool_, Node)

_LIBRARY = os.path.dirname(os.__file__) + os.sep
#: What a way gives that ends with an error.
_FAILS = object()
#: The answers of a way: the condition that was asked for, and what it was told.
_Way = list[tuple[Node, bool]]


def on_all_ways(
    graph: Graph,
    ask: Callable[[], Any],
    check: Callable[[], None] = lambda: None,
    refusal: Callable[[], str] = lambda: "",
) -> Any:
    """Return what a function gives, whatever the truths of symbols are that it asks for.

    Parameters
    ----------
    graph : Graph
        That of the symbols.
    ask : function
        Gives numbers, arrays, or lists, tuples and mappings of them; on all ways alike. It changes nothing.
    check : function
        Is called after each way.
    refusal : function
        Says, when a truth is asked for, why the ways must not be followed, "" if they may.

    Raises
    ------
    SymbolicBranch
        If there are too many ways, they must not be followed, or what it gives on two of them is not alike.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.input("x")
    >>> on_all_ways(graph, lambda: 2.0 * x if x > 0.0 else 0.0)
    where(x[0] > 0.0, 2.0*x[0], 0.0)
    """
    found: list[tuple[_Way, Any]] = []
    way: _Way = []
    while True:
        result = _followed(graph, ask, way, refusal)
        check()
        found.append((way.copy(), result))
        while way and not way[-1][1]:
            way.pop()
        if not way:
            chosen = _chosen(found, 0)
            if chosen is _FAILS:
                raise SymbolicBranch("it raises an error on all ways through its conditions")
            return chosen
        if len(found) == _WAYS:
            raise SymbolicBranch(f"there are more than {_WAYS} ways through its conditions")
        way[-1] = (way[-1][0], False)


def _followed(graph: Graph, ask: Callable[[], Any], way: _Way, refusal: Callable[[], str]) -> Any:
    """Return what a function gives on a way, which may be longer afterwards."""
    known: dict[int, bool] = {}
    given = 0

    def answer(condition: Node) -> bool:
        nonlocal given
        if condition.primitive is p.NOT:
            return not answer(condition.args[0])
        if condition.index not in known:
            if given == len(way):
                if given == _ANSWERS:
                    raise SymbolicBranch(f"it asks for more than {_ANSWERS} truths that are known only while it runs")
                if not way and (why := refusal()):
                    raise SymbolicBranch(why)
                way.append((condition, True))
            expected, told = way[given]
            if expected is not condition:
                raise SymbolicBranch("it asks for something else each time that it is called")
            given += 1
            known[condition.index] = told
            graph.suppose(condition if told else ~condition)
        return known[condition.index]

    graph.written = ""
    with graph.answering(answer):
        try:
            result = ask()
        except SystemExit:
            raise SymbolicBranch("it leaves the program, on a way that need not be taken") from None
        except SymbolicBranch:
            raise
        except Exception as error:
            if not given or not _is_raised(error):
                if graph.written:
                    raise AskedForNumber(graph.written) from error
                raise
            graph.require(1.0)
            result = _FAILS
    if graph.written and result is not _FAILS:
        raise AskedForNumber(graph.written)
    if given != len(way):
        raise SymbolicBranch("it asks for something else each time that it is called")
    return result


def _chosen(found: list[tuple[_Way, Any]], depth: int) -> Any:
    """Return the results of ways that are the same up to some depth, chosen by the conditions from there on."""
    if len(found) == 1:
        return found[0][1]
    condition = found[0][0][depth][0]
    sides = [[each for each in found if each[0][depth][1] is told] for told in (True, False)]
    return _either(condition, *(_chosen(side, depth + 1) for side in sides))


def _is_raised(error: Exception) -> bool:
    """Tell whether an error was raised by a statement of the user, and not by what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code, module = trace.tb_frame.f_code, str(trace.tb_frame.f_globals.get("__name__"))
    path = code.co_filename
    if module.partition(".")[0] == "cstormpy" or "site-packages" in path or path.startswith(_LIBRARY):
        return False
    return any(step.offset == trace.tb_lasti and step.opname == "RAISE_VARARGS" for step in dis.get_instructions(code))


def _either(condition: Node, a: Any, b: Any) -> Any:
    """Return a where a condition holds, else b, part by part."""
    if a is b or b is _FAILS:
        return a
    if a is _FAILS:
        return b
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        if _is_truth(a) and _is_truth(b):
            return (condition & a) | (~condition & b)
        return where(condition, *(x.number() if isinstance(x, Node) else float(x) for x in (a, b)))
    if any(isinstance(x, np.ndarray) for x in (a, b)):
        if np.shape(a) != np.shape(b) or not {type(a), type(b)} <= {np.ndarray, Symbols, list, tuple}:
            raise SymbolicBranch(f"it gives the shapes {np.shape(a)} and {np.shape(b)}, by a condition")
        return elementwise(p.SELECT, condition, a, b).view(Symbols)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return [_either(condition, x, y) for x, y in zip(a, b, strict=True)]
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _either(condition, x, b[key]) for key, x in a.items()}
    raise SymbolicBranch(f"it gives a {type(a).__name__} or another {type(b).__name__}, by a condition")


def _is_truth(x: Any) -> bool:
    return x.primitive.truth if isinstance(x, Node) else isinstance(x, (bool, np.bool_))
