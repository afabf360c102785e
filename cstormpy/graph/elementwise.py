"""Primitives of the graph element by element, on NumPy's arrays of nodes and floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.graph import primitives as p
from cstormpy.graph.nodes import Node, SymbolicBranch
from cstormpy.graph.primitives import Symbol, apply

Array = Any  # of nodes and floats
_OF_TRUTHS = (p.AND, p.OR, p.NOT)


def objects(values: Any) -> Array:
    """Return an array of nodes and floats, of which `values` is a nest."""
    if isinstance(values, Symbol):
        made = np.empty((), dtype=object)
        made[()] = values
        return made
    array = np.array(values, dtype=object)
    for index, x in np.ndenumerate(array):
        if isinstance(x, np.ndarray) and not x.ndim:
            array[index] = x.item()
    return array


def elementwise(primitive: p.Primitive, *values: Any) -> Any:
    """Return a primitive of numbers, or of arrays element by element."""
    if all(isinstance(v, Symbol) or np.ndim(v) == 0 for v in values):
        return _applied(primitive, *(as_number(v.item() if isinstance(v, np.ndarray) else v) for v in values))
    arrays = np.broadcast_arrays(*map(objects, values))
    out = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = _applied(primitive, *(as_number(a[index]) for a in arrays))
    return out


def _applied(primitive: p.Primitive, *args: Any) -> Any:
    """Return a primitive of numbers; a truth among them counts as 0 or 1, a number as a truth where one is taken."""
    if primitive in _OF_TRUTHS:
        return apply(primitive, *map(_truth, args))
    first = 1 if primitive is p.SELECT else 0
    numbers = [x.number() if isinstance(x, Node) else float(x) for x in args[first:]]
    return apply(primitive, *map(_truth, args[:first]), *numbers)


def _truth(x: Any) -> Any:
    if isinstance(x, Node):
        return x if x.primitive.truth else x != 0.0
    return bool(x)


def as_number(x: Any) -> Any:
    """Return a symbol, a truth, or a float."""
    return x if isinstance(x, (Symbol, bool)) else bool(x) if isinstance(x, np.bool_) else float(x)


def are_truths(values: Array) -> bool:
    """Tell whether an array is one of truths."""
    return bool(np.size(values)) and all(
        isinstance(x, (bool, np.bool_)) or (isinstance(x, Node) and x.primitive.truth) for x in values.flat
    )


def truths_as_numbers(values: Array) -> Array:
    """Return an array of which truths are numbers, 1 or 0."""
    out = np.empty(np.shape(values), dtype=object)
    for index, x in np.ndenumerate(values):
        out[index] = x.number() if isinstance(x, Node) else float(x)
    return out


def reduction(primitive: Any, array: Any, axis: Any = 0, keepdims: Any = False, **more: Any) -> Any:
    """Return a primitive of all elements along one axis, or of all."""
    more.pop("dtype", None)  # that of truths, or floats
    first = [more.pop("initial")] if more.get("initial") is not None else []
    if isinstance(axis, tuple) or any(x is not None and x is not True for x in more.values()):
        raise SymbolicBranch("a reduction over several axes, or of a part, cannot be written down with symbols")
    array = np.asarray(array, dtype=object)
    rows = array.ravel() if axis is None else np.moveaxis(array, axis, 0)
    if not len(rows) and not first:
        raise ValueError("zero-size array to reduction operation which has no identity")
    total, *others = [*first, *rows.tolist()] if rows.ndim == 1 else [*first, *rows]
    for row in others:
        total = elementwise(primitive, total, row)
    if keepdims:
        total = np.reshape(objects(total), (1,) * array.ndim) if axis is None else np.expand_dims(total, axis)
    return total


def accumulation(primitive: p.Primitive, array: Any, axis: int = 0, **more: Any) -> Array:
    """Return a primitive of all elements up to each of them along an axis."""
    if any(option is not None for option in more.values()):
        raise SymbolicBranch(f"options {sorted(more)} of NumPy's functions cannot be written down with symbols")
    rows = np.moveaxis(np.array(array, dtype=object), axis, 0)
    for k in range(1, len(rows)):
        rows[k] = elementwise(primitive, rows[k - 1], rows[k])
    return np.moveaxis(rows, 0, axis)
