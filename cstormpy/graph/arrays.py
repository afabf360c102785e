"""Arrays of symbols: NumPy's arrays of objects, on which its functions of numbers hold as they do on floats.

Indexing, broadcasting, reshaping, ``@``, ``np.sum``, ``np.concatenate`` and the functions that an object has as methods
(``np.sin``, ``np.sqrt``) are NumPy's own. What would ask a symbol for its truth (comparisons, ``np.where``,
``np.clip``, ``np.maximum``) is done by `numpy_functions` instead. A function that cannot be written down says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.arrays import as_floats
from cstormpy.graph import primitives as p
from cstormpy.graph.elementwise import accumulation, are_truths, elementwise, objects, reduction, truths_as_numbers
from cstormpy.graph.nodes import Node, SymbolicBranch, whole_or_truth
from cstormpy.graph.numpy_functions import FUNCTIONS, UFUNCS, searchsorted, take, where
from cstormpy.graph.primitives import Symbol
from cstormpy.graph.products import LARGE, constants, product


class Symbols(np.ndarray[Any, Any]):
    """An array of nodes and floats."""

    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Do what NumPy's function does on floats."""
        if isinstance(options.get("where"), Symbols):
            raise SymbolicBranch(f"np.{ufunc.__name__} with where= cannot be written down with symbols; use np.where")
        outs = options.get("out") or ()
        if outs:
            options["out"] = tuple(np.asarray(o) if isinstance(o, Symbols) else o for o in outs)
        if method != "at" and not any(map(holds_symbols, inputs)):
            result = getattr(ufunc, method)(*map(_as_floats, inputs), **options)
        else:
            given = [np.asarray(x) if holds_symbols(x) or method == "at" else _as_floats(x) for x in inputs]
            result = _on_symbols(ufunc, method, given, options)
        if outs:
            return outs[0] if len(outs) == 1 else outs
        return _each(_wrapped, result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Do what NumPy's function does on floats."""
        if function not in _WRITING and not holds_symbols(args) and not holds_symbols(list(kwargs.values())):
            return self._on_floats(function, types, args, kwargs)
        own = FUNCTIONS.get(function)
        if own is not None:
            return _each(_wrapped, own(*args, **kwargs))
        if function is np.empty_like:  # an array to write into, also that of one number
            return super().__array_function__(function, types, args, kwargs)
        return self._as_views(super().__array_function__(function, types, args, kwargs))

    def _on_floats(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Do what NumPy's function does where no array holds a symbol yet."""
        floats: list[tuple[Any, Any]] = []

        def converted(value: Any) -> Any:
            if type(value) in (list, tuple):
                return type(value)(map(converted, value))
            if isinstance(value, Symbols):
                floats.append((value, _as_floats(value)))
                return floats[-1][1]
            return value

        result = function(*converted(args), **{name: converted(value) for name, value in kwargs.items()})
        if any(made.tobytes() != _as_floats(before).tobytes() for before, made in floats):
            raise SymbolicBranch(f"np.{function.__name__} with out= cannot be written down with symbols")
        parts = result if isinstance(result, (list, tuple)) else [result]
        if any(
            isinstance(part, np.ndarray) and np.may_share_memory(part, made) for part in parts for _, made in floats
        ):
            return super().__array_function__(function, types, args, kwargs)  # a view, into which one may write
        return _each(_wrapped, result)

    def _as_views(self, result: Any) -> Any:
        """Return what NumPy gave, views of this array as such."""
        if isinstance(result, Symbols) and np.may_share_memory(result, self):
            return result if result.ndim else result.item()
        return _each(_wrapped, result)

    def __getitem__(self, key: Any) -> Any:
        """Return parts of the array, also those at places that are symbols."""
        if isinstance(key, Node) or (isinstance(key, Symbols) and key.dtype == object):
            return _wrapped(take(np.asarray(self), key, 0))
        if isinstance(key, tuple) and key and isinstance(key[0], Node):
            return self[key[0]][key[1:]]
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write into the array, also one number wherever truths hold that are symbols."""
        if isinstance(key, (Node, Symbols)) and holds_symbols(key):
            if objects(key).shape != self.shape or np.ndim(value) or not are_truths(objects(key)):
                raise SymbolicBranch("numbers at places that are symbols cannot be written; use np.where")
            key, value = ..., where(key, value, self)
        super().__setitem__(key, value)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the same numbers, whole ones where the kind is one of integers."""
        if np.dtype(dtype) == object:
            return super().astype(dtype, *args, **options)
        kind = whole_or_truth(dtype)
        if kind == "f":
            return self.copy()
        return _wrapped(elementwise(p.UNEQUAL, self, 0.0) if kind == "b" else _whole(np.asarray(self)))

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return how many of these numbers, which do not fall, are less than v, or at most as large."""
        return _wrapped(searchsorted(self, v, side, sorter))

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Return the same numbers within limits."""
        return np.clip(self, min, max, **options)

    def argmax(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Return the place of the greatest number, the first of several."""
        return np.argmax(self, axis, **options)

    def argmin(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Return the place of the least number, the first of several."""
        return np.argmin(self, axis, **options)

    def __bool__(self) -> bool:
        """Refuse: a symbol has no truth yet."""
        if self.size == 1:
            return bool(self.item())
        return super().__bool__()


def symbols(values: Any) -> Symbols:
    """Return an array of nodes and floats, of which `values` is a nest."""
    return objects(values).view(Symbols)


def is_symbolic(value: Any) -> bool:
    """Tell whether something is a symbol, or an array that may hold some."""
    return isinstance(value, Symbols) or holds_symbols(value)


def holds_symbols(value: Any) -> bool:
    """Tell whether something is a symbol, or a nest or an array that holds one."""
    if isinstance(value, Symbol):
        return True
    if isinstance(value, (list, tuple)):
        return any(map(holds_symbols, value))
    return isinstance(value, np.ndarray) and value.dtype == object and any(isinstance(x, Symbol) for x in value.flat)


def as_numbers(value: Any, what: str) -> Any:
    """Return an array of symbols where any is among the numbers, else what `arrays.as_floats` does."""
    return symbols(value) if is_symbolic(value) else as_floats(value, what)


def zeros(shape: int | tuple[int, ...], *like: Any) -> Any:
    """Return an array of zeros, into which numbers like the given ones can be written: floats, or symbols too."""
    if not any(map(is_symbolic, like)):
        return np.zeros(shape)
    return writable(np.zeros(shape))


def writable(values: Any) -> Any:
    """Return an array of floats as one into which symbols can be written; anything else as it is."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or not values.ndim:
        return values
    return values.astype(object).view(Symbols)


def _whole(values: Any) -> Any:
    """Return numbers without what stands behind the point."""
    out = np.empty(values.shape, dtype=object)
    for index, x in np.ndenumerate(values):
        out[index] = x.whole() if isinstance(x, Node) else float(math.trunc(x))
    return out


def _as_floats(value: Any) -> Any:
    """Return an array of numbers that are known as one of floats; anything else as it is."""
    if not isinstance(value, Symbols) or value.dtype != object:
        return value
    try:
        return np.asarray(value).astype(np.float64)
    except (TypeError, ValueError):  # of text
        return np.asarray(value)


#: Functions of NumPy that write into their first argument, as they do into an array of objects.
_WRITING = frozenset({np.copyto, np.fill_diagonal, np.put, np.place, np.putmask, np.put_along_axis})
#: What does a ufunc with all elements along an axis.
_REPEATED: dict[str, Callable[..., Any]] = {"reduce": reduction, "accumulate": accumulation}


def _on_symbols(ufunc: Any, method: str, given: list[Any], options: dict[str, Any]) -> Any:
    """Return what a function of elements makes of arrays of objects."""
    own = UFUNCS.get(ufunc.__name__)
    if ufunc is np.subtract and all(are_truths(np.asarray(a)) for a in given):  # np.diff of truths among them
        raise SymbolicBranch("it subtracts truths, which NumPy refuses, or tells whether they differ")
    if ufunc is np.add and method in ("reduce", "accumulate"):  # which counts truths
        given[0] = truths_as_numbers(given[0])
    if ufunc is np.matmul and method == "__call__" and not options and any(map(_is_large, given)):
        return _multiplied(*given)
    if own is None:
        return getattr(ufunc, method)(*given, **options)
    if method == "__call__":
        return _call(own, given, options)
    if method in _REPEATED and isinstance(own, p.Primitive):
        return _REPEATED[method](own, *given, **options)
    raise SymbolicBranch(f"np.{ufunc.__name__}.{method} cannot be written down with symbols")


def _each(made: Callable[[Any], Any], result: Any) -> Any:
    """Return a result, or each of several in a tuple, after a function has been at it."""
    return tuple(map(made, result)) if type(result) is tuple else made(result)


def _wrapped(result: Any) -> Any:
    """Return an array of nodes and floats as symbols, one of truths that are known as such; a single one as itself."""
    if not isinstance(result, np.ndarray) or result.dtype != object:
        return writable(result)
    if all(isinstance(x, bool) for x in result.flat) and result.size:
        return np.asarray(result).astype(bool)
    return result.item() if result.ndim == 0 else result.view(Symbols)


def _call(own: p.Primitive | Callable[..., Any], given: list[Any], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    if options.pop("where", True) is not True or options:
        raise SymbolicBranch(f"options {sorted(options)} of NumPy's functions cannot be written down with symbols")
    result = elementwise(own, *given) if isinstance(own, p.Primitive) else own(*given)
    if out is None:
        return result
    out[0][...] = result
    return out[0]


def _is_large(a: Any) -> bool:
    """Tell whether something is a matrix of floats with so many that are not zero that it is not written out."""
    return type(a) is np.ndarray and a.ndim == 2 and a.dtype.kind in "biuf" and bool(np.count_nonzero(a) > LARGE)


def _multiplied(a: Any, b: Any) -> Any:
    """Return the product of a large matrix of floats and a vector or matrix of symbols, or the other way round."""
    of_rows = _is_large(b)
    matrix, other = (b, np.asarray(a)) if of_rows else (a, np.asarray(b))
    some = next((x for x in other.flat if isinstance(x, Node)), None) if other.dtype == object else None
    if some is None or other.ndim > 2 or other.shape[-1 if of_rows else 0] != matrix.shape[0 if of_rows else 1]:
        return _wrapped(np.matmul(a, b))
    node = constants(matrix, some)
    rows = np.atleast_2d(other if of_rows else other.T)
    found = [
        product(node, matrix.shape, [x.number() if isinstance(x, Node) else float(x) for x in row], of_rows)
        for row in rows
    ]
    made = symbols(found[0] if other.ndim == 1 else found)
    return made if of_rows or other.ndim == 1 else made.T


def _array_ufunc(self: Node, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Let NumPy's functions take a node as they take an array of it."""
    given = [symbols(x) if isinstance(x, Node) else x for x in inputs]
    return getattr(ufunc, method)(*given, **options)


def joined(value: Any) -> Any:
    """Return a list or nest of numbers with symbols among them as an array; anything else as it is."""
    if type(value) in (list, tuple) and holds_symbols(value):
        made = symbols(value)
        if not any(isinstance(x, (list, tuple, np.ndarray)) for x in made.flat):  # rows of one length
            return made
    return value


def _array_function(self: Node, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    own = FUNCTIONS.get(function)
    if own is not None:
        return _each(_wrapped, own(*map(joined, args), **{name: joined(x) for name, x in kwargs.items()}))
    if not any(map(_is_written_out, (*args, *kwargs.values()))):  # NumPy has looked into an array, as np.roots does
        raise SymbolicBranch(f"np.{function.__name__} of symbols cannot be written down")
    return function(*map(_parts, args), **{name: _parts(x) for name, x in kwargs.items()})


def _is_written_out(value: Any) -> bool:
    """Tell whether something is a symbol, or a list with one."""
    return isinstance(value, Node) or (type(value) in (list, tuple) and any(map(_is_written_out, value)))


def _parts(value: Any) -> Any:
    """Return a symbol as an array, and lists with arrays in the place of symbols."""
    if isinstance(value, Node):
        return symbols(value)
    return type(value)(map(_parts, value)) if type(value) in (list, tuple) else value


Node.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
Node.__array_function__ = _array_function  # type: ignore[attr-defined]
