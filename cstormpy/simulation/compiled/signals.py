"""Signals while a diagram is traced: symbols, floats, and arrays of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.dynamics.loads import Wrenches
from cstormpy.graph import Node
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.compiled.untranslated import Untraceable

#: A node, a float, or an array of them; of DICT a dict of these.
Signal = Any


def number(x: Any) -> Any:
    """Return a number that a method has given, as a node or a float; a truth as 1 or 0."""
    if isinstance(x, Node):
        return x.number()
    if isinstance(x, (bool, int, float, np.number, np.bool_)):
        return float(x)
    raise Untraceable(f"it returns a {type(x).__name__}")


def numbers(value: Signal) -> list[Any]:
    """Return the numbers of a signal, one behind the other."""
    return [number(x) for x in np.asarray(symbols(value)).ravel()]


def shaped(items: Sequence[Any], shape: tuple[int, ...]) -> Signal:
    """Return a signal of some numbers: a single one as itself."""
    return symbols(list(items)).reshape(shape) if shape else items[0]


def shaped_as(items: Sequence[Any], samples: Sequence[Any]) -> list[Signal]:
    """Return numbers that stand one behind the other as signals of the shapes of samples."""
    found, first = [], 0
    for sample in samples:
        last = first + np.size(sample)
        found.append(shaped(items[first:last], np.shape(sample)))
        first = last
    return found


def as_signal(value: Any) -> Signal:
    """Return what a method gave as a signal."""
    return value if isinstance(value, Wrenches) else shaped(numbers(value), np.shape(np.asarray(symbols(value))))


def as_copy(value: Signal) -> Signal:
    """Return a copy of an array, with what wrenches know beside their numbers; of a number the same."""
    if not isinstance(value, np.ndarray):
        return value
    made: Any = np.array(value, dtype=object)
    rows = value.rows if isinstance(value, Wrenches) else None
    return made.view(type(value)) if rows is None else Wrenches(made, rows)


def as_truth(value: Any) -> Any:
    """Return a number as the truth of its not being 0."""
    if isinstance(value, np.ndarray):
        value = value.item()
    return value != 0.0 if isinstance(value, Node) and not value.primitive.truth else value


def compared(result: Any) -> list[Any]:
    """Return the numbers of a result, symbols by their places, to tell whether another is the same."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    items = [x for part in parts for x in np.asarray(symbols(part)).ravel().tolist()]
    return [x.index if isinstance(x, Node) else repr(x) for x in items]
