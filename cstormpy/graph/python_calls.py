"""Functions of Python that machine code of a graph calls, and their derivatives by differences."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cstormpy.graph.differences import differenced_function
from cstormpy.graph.external import CallTable, external
from cstormpy.graph.nodes import Graph, Node

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))
Number = Any  # a node or a float
#: A function of (t, list of signals), which returns a list of what it finds.
Ask = Callable[[float, list[Any]], list[Any]]


class PythonCall:
    """A call of a function of Python with numbers that stand in memory, the time first.

    Parameters
    ----------
    ask : function of (t, list of signals)
        Returns a list of what it finds.
    given, found : list
        Samples of the signals that go in and come out.

    Attributes
    ----------
    sizes : (int, int)
        How many numbers go in and come out.
    error : Exception, optional
        What the last call ended with, if it failed.
    """

    error: Exception | None = None

    def __init__(self, ask: Ask, given: list[Any], found: list[Any]) -> None:
        self._ask = ask
        self._inputs, inputs = _places(given, 1)
        self._outputs, outputs = _places(found, 0)
        self.sizes = inputs, outputs
        self._interrupt: BaseException | None = None
        self._function = _FUNCTION(self._call)

    @staticmethod
    def is_ready() -> bool:
        """Tell that it is there."""
        return True

    def address(self) -> int:
        """Return where compiled code finds it; that holds as long as this object lives."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _call(self, given: Any, filled: Any) -> int:
        """Return 0, or 1 where the block is to be asked again by who hears what it says."""
        self.error = None
        try:
            numbers, out = (np.ctypeslib.as_array(at, (n,)) for at, n in zip((given, filled), self.sizes, strict=True))
            values = self._ask(float(numbers[0]), [back(numbers[first:last]) for first, last, _, back in self._inputs])
            for (first, last, shape, _), value in zip(self._outputs, values, strict=True):
                if np.shape(value) != shape:
                    return 1
                out[first:last] = np.ravel(value)
        except Exception as error:
            self.error = error
            return 1
        except BaseException as interrupt:  # compiled code cannot carry it
            self._interrupt = interrupt
            return 1
        return 0

    def raise_interrupt(self) -> None:
        """Raise what has interrupted a call, as Ctrl-C does."""
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt


class Differences:
    """The derivative of a function along a direction, by differences, called from a graph.

    Parameters
    ----------
    call_table : CallTable
    ask : function of (t, list of signals)
    given, found : list
        Samples of the signals that go in and come out.
    """

    def __init__(self, call_table: CallTable, ask: Ask, given: list[Any], found: list[Any]) -> None:
        def change(t: float, values: list[Any]) -> list[Any]:
            count = len(given)
            rates = [np.asarray(rate, dtype=float)[..., None] for rate in values[count:]]
            _, slopes = differenced_function(
                lambda t, *signals: list(ask(float(t), list(signals))), (t, *values[:count]), tuple(rates)
            )
            return [np.asarray(slope)[..., 0] for slope in slopes]

        moves = [np.zeros(np.shape(v)) if np.ndim(v) else 0.0 for v in given]
        slopes = [np.zeros(np.shape(v)) if np.ndim(v) else 0.0 for v in found]
        call = PythonCall(change, [*given, 0.0, *moves], slopes)
        self._place, self._count = call_table.function(call, changes=True), call.sizes[1]

    def nodes(self, graph: Graph, failure: int, values: Sequence[Number], rates: Sequence[Number]) -> list[Node]:
        """Return the derivatives: from the time and all numbers, and their rates."""
        return external(graph, self._place, failure, [*values, *rates], self._count)


class CalledInPython:
    """A function of Python that is called while a routine runs; its derivatives are differences.

    Parameters
    ----------
    call_table : CallTable
    ask : function of (t, list of signals)
    given, found : list
        Samples of the signals that go in and come out.
    beside : function of (t, list of signals), optional
        What is asked instead beside a point, for differences; the same unless given.
    """

    def __init__(
        self, call_table: CallTable, ask: Ask, given: list[Any], found: list[Any], beside: Ask | None = None
    ) -> None:
        call = PythonCall(ask, given, found)
        self._place, self._count = call_table.function(call), call.sizes[1]
        self._call_table, self._differences = call_table, Differences(call_table, beside or ask, given, found)

    def nodes(self, graph: Graph, numbers: Sequence[Number]) -> list[Node]:
        """Return the answers of the call, from the time and the numbers of the signals."""
        failure = self._call_table.failure

        def along(values: Sequence[Number], rates: Sequence[Number]) -> list[Node]:
            return self._differences.nodes(graph, failure, values, rates)

        return external(graph, self._place, failure, numbers, self._count, along)


def _places(values: list[Any], first: int) -> tuple[list[tuple[int, int, tuple[int, ...], Callable[[Any], Any]]], int]:
    """Return where each of some signals stands, its shape, what makes it of its numbers; and where they end."""
    places = []
    for value in values:
        last = first + np.size(value)
        back = way_back(value) or (_as_truths if np.asarray(value).dtype.kind == "b" else _as_array)(np.shape(value))
        places.append((first, last, np.shape(value), back))
        first = last
    return places, first


def _as_array(shape: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda part: part.reshape(shape).copy()


def _as_truths(shape: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda part: (part != 0.0).reshape(shape)


def way_back(value: Any) -> Callable[[Any], Any] | None:
    """Return what makes a signal of the kind of a value from its numbers; None where it is no number."""
    kind = value.__class__
    if kind is np.ndarray:
        return _as_array(value.shape) if value.dtype == np.float64 else None
    if issubclass(kind, (bool, np.bool_)):
        return lambda part: kind(part[0]) if part[0] in (0.0, 1.0) else float(part[0])
    if issubclass(kind, (int, np.integer)):  # a step may go from a whole number to what is none, so may a function
        return lambda part: kind(part[0]) if part[0].is_integer() else float(part[0])
    return (lambda part: kind(part[0])) if issubclass(kind, float) else None
