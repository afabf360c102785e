"""Arrays of symbols: NumPy's arrays of objects, on which its functions of numbers hold as they do on floats.

Indexing, broadcasting, reshaping, ``@``, ``np.sum``, ``np.concatenate`` and the functions that an object has as methods
(``np.sin``, ``np.sqrt``) are NumPy's own. What would ask a symbol for its truth (comparisons, ``np.where``,
``np.clip``, ``np.maximum``) is done here instead. A function that cannot be written down says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.arrays import as_floats
from cstormpy.graph import linear_algebra
from cstormpy.graph import primitives as p
from cstormpy.graph.look_ups import count_not_above, entry
from cstormpy.graph.nodes import Node, SymbolicBranch
from cstormpy.graph.primitives import Symbol, apply
from cstormpy.graph.products import LARGE, constants, product


class Symbols(np.ndarray[Any, Any]):
    """An array of nodes and floats."""

    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Do what NumPy's function does on floats."""
        given = [np.asarray(x) if isinstance(x, Symbols) else x for x in inputs]
        if isinstance(options.get("where"), Symbols):
            raise SymbolicBranch(f"np.{ufunc.__name__} with where= cannot be written down with symbols; use np.where")
        if options.get("out") is not None:
            options["out"] = tuple(np.asarray(o) if isinstance(o, Symbols) else o for o in options["out"])
        primitive = _UFUNCS.get(ufunc.__name__)
        if ufunc is np.add and method == "reduce":  # which counts truths
            given[0] = np.asarray(_numbers(given[0]))
        if ufunc is np.matmul and method == "__call__" and not options and any(map(_is_large, given)):
            return _multiplied(*given)
        if primitive is None:
            result = getattr(ufunc, method)(*given, **options)
        elif method == "__call__":
            result = _call(primitive, given, options)
        elif method == "reduce":
            result = _reduce(primitive, given[0], **options)
        else:
            raise SymbolicBranch(f"np.{ufunc.__name__}.{method} cannot be written down with symbols")
        return _wrapped(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Do what NumPy's function does on floats."""
        own = _FUNCTIONS.get(function)
        if own is not None:
            return _wrapped(own(*args, **kwargs))
        return _wrapped(super().__array_function__(function, types, args, kwargs))

    def __getitem__(self, key: Any) -> Any:
        """Return parts of the array, also those at places that are symbols."""
        if isinstance(key, Node) or (isinstance(key, Symbols) and key.dtype == object):
            return _wrapped(_take(np.asarray(self), key, 0))
        if isinstance(key, tuple) and key and isinstance(key[0], Node):
            return self[key[0]][key[1:]]
        return super().__getitem__(key)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the same numbers, whole ones where the kind is one of integers."""
        if np.dtype(dtype).kind in "iu":
            return elementwise(p.TRUNC, self)
        return self if np.dtype(dtype).kind == "f" else super().astype(dtype, *args, **options)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return how many of these numbers, which do not fall, are less than v, or at most as large."""
        return _searchsorted(self, v, side, sorter)

    def __bool__(self) -> bool:
        """Refuse: a symbol has no truth yet."""
        if self.size == 1:
            return bool(self.item())
        return super().__bool__()


def symbols(values: Any) -> Symbols:
    """Return an array of nodes and floats, of which `values` is a nest."""
    if isinstance(values, Symbol):
        made = np.empty((), dtype=object)
        made[()] = values
    else:
        made = np.array(values, dtype=object)
    return made.view(Symbols)


def is_symbolic(value: Any) -> bool:
    """Tell whether something is a symbol, or holds one."""
    if isinstance(value, (Symbol, Symbols)):
        return True
    if isinstance(value, (list, tuple)):
        return any(is_symbolic(x) for x in value)
    return isinstance(value, np.ndarray) and value.dtype == object and any(isinstance(x, Symbol) for x in value.flat)


def as_numbers(value: Any, what: str) -> Any:
    """Return an array of symbols where any is among the numbers, else what `arrays.as_floats` does."""
    return symbols(value) if is_symbolic(value) else as_floats(value, what)


def zeros(shape: int | tuple[int, ...], *like: Any) -> Any:
    """Return an array of zeros, into which numbers like the given ones can be written: floats, or symbols too."""
    if not any(map(is_symbolic, like)):
        return np.zeros(shape)
    made = np.zeros(shape, dtype=object)
    made[...] = 0.0
    return made.view(Symbols)


def elementwise(primitive: p.Primitive, *values: Any) -> Any:
    """Return a primitive of numbers, or of arrays element by element."""
    if all(isinstance(v, Symbol) or np.ndim(v) == 0 for v in values):
        return _applied(primitive, *(_item(v) for v in values))
    arrays = np.broadcast_arrays(*(np.asarray(symbols(v)) for v in values))
    out = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = _applied(primitive, *(_number(a[index]) for a in arrays))
    return out.view(Symbols)


_OF_TRUTHS = (p.AND, p.OR, p.NOT)


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


def _numbers(values: Any) -> Symbols:
    """Return symbols of which truths are numbers."""
    return symbols([x.number() if isinstance(x, Node) else x for x in values.flat]).reshape(values.shape)


def _item(value: Any) -> Any:
    return _number(value.item() if isinstance(value, np.ndarray) else value)


def _number(x: Any) -> Any:
    """Return a symbol, a truth, or a float."""
    return x if isinstance(x, (Symbol, bool)) else bool(x) if isinstance(x, np.bool_) else float(x)


def _wrapped(result: Any) -> Any:
    """Return an array of objects as symbols, or as floats where none is left; a single one as itself."""
    if not isinstance(result, np.ndarray) or result.dtype != object:
        return result
    if not any(isinstance(x, Symbol) for x in result.flat):
        try:
            return np.asarray(result).astype(
                bool if all(isinstance(x, bool) for x in result.flat) and result.size else float
            )
        except (TypeError, ValueError):
            return result
    return result.item() if result.ndim == 0 else result.view(Symbols)


def _call(primitive: p.Primitive | Callable[..., Any], given: list[Any], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    if options.pop("where", True) is not True or options:
        raise SymbolicBranch(f"options {sorted(options)} of NumPy's functions cannot be written down with symbols")
    result = primitive(*given) if not isinstance(primitive, p.Primitive) else elementwise(primitive, *given)
    if out is None:
        return result
    out[0][...] = result
    return out[0]


def _reduce(primitive: Any, array: Any, axis: Any = 0, keepdims: bool = False, out: Any = None, **more: Any) -> Any:
    """Return a reduction along one axis, or all."""
    if isinstance(axis, tuple) or out is not None:
        raise SymbolicBranch("a reduction over several axes cannot be written down with symbols")
    array = np.asarray(array, dtype=object)
    rows = array.ravel() if axis is None else np.moveaxis(array, axis, 0)
    total = rows[0]
    for row in rows[1:]:
        total = elementwise(primitive, total, row)
    if keepdims:
        total = np.reshape(total, (1,) * array.ndim) if axis is None else np.expand_dims(total, axis)
    return total


def _swapped(primitive: p.Primitive) -> Callable[[Any, Any], Any]:
    return lambda a, b: elementwise(primitive, b, a)


def _unless_nan(primitive: p.Primitive, a: Any, b: Any) -> Any:
    """Return the greater or lesser of two numbers, and the other one of which one is not a number."""
    return _where(np.isnan(symbols(a)), b, _where(np.isnan(symbols(b)), a, elementwise(primitive, a, b)))


#: NumPy's functions of elements that ask for a truth, or whose name is not that of a method of `Node`.
_UFUNCS: dict[str, Any] = {
    "greater": p.GREATER,
    "greater_equal": p.AT_LEAST,
    "less": _swapped(p.GREATER),
    "less_equal": _swapped(p.AT_LEAST),
    "equal": p.EQUAL,
    "not_equal": p.UNEQUAL,
    "logical_and": p.AND,
    "logical_or": p.OR,
    "logical_not": p.NOT,
    "maximum": p.MAXIMUM,
    "minimum": p.MINIMUM,
    "fmax": lambda a, b: _unless_nan(p.MAXIMUM, a, b),
    "fmin": lambda a, b: _unless_nan(p.MINIMUM, a, b),
    "sign": p.SIGN,
    "absolute": p.ABS,
    "fabs": p.ABS,
    "arctan2": p.ATAN2,
    "hypot": p.HYPOT,
    "remainder": p.MOD,
    "fmod": p.FMOD,
    "power": p.POW,
    "float_power": p.POW,
    "rint": p.ROUND,
    "floor": p.FLOOR,
    "ceil": p.CEIL,
    "trunc": p.TRUNC,
    "isfinite": lambda a: elementwise(p.EQUAL, elementwise(p.VANISHING, a), 0.0),
    "isnan": lambda a: elementwise(p.UNEQUAL, a, a),
}


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise SymbolicBranch("np.where with a condition alone cannot be written down with symbols")
    return elementwise(p.SELECT, condition, *choices)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **names: Any) -> Any:
    low, high = names.pop("min", a_min), names.pop("max", a_max)
    if names or out is not None:
        raise SymbolicBranch("options of np.clip cannot be written down with symbols")
    result = a if low is None else elementwise(p.MAXIMUM, a, low)
    return result if high is None else elementwise(p.MINIMUM, result, high)


_GREATEST = float(np.finfo(float).max)


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = symbols(x)
    found = _where(x > _GREATEST, _GREATEST if posinf is None else posinf, x)
    found = _where(x < -_GREATEST, -_GREATEST if neginf is None else neginf, found)
    return _where(np.isnan(x), nan, found)


def _extreme(primitive: p.Primitive) -> Callable[..., Any]:
    return lambda a, axis=None, keepdims=False: _reduce(primitive, a, axis=axis, keepdims=keepdims)


def _is_large(a: Any) -> bool:
    """Tell whether something is a matrix of floats that is not written out."""
    return type(a) is np.ndarray and a.ndim == 2 and a.dtype.kind in "biuf" and a.size > LARGE


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


def _dot(a: Any, b: Any) -> Any:
    return np.matmul(a, b) if np.ndim(a) in (1, 2) and np.ndim(b) in (1, 2) else np.asarray(a).dot(np.asarray(b))


def _take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """Return the parts of an array at places that are symbols, from the end where they are negative."""
    if out is not None or mode != "raise":
        raise SymbolicBranch("options of np.take cannot be written down with symbols")
    if any(isinstance(k, Node) and k.primitive.truth for k in np.asarray(symbols(indices)).flat):
        raise SymbolicBranch("which parts a mask of symbols takes is not known while the expression is written down")
    rows = np.ravel(a) if axis is None else np.moveaxis(np.asarray(a, dtype=object), axis, 0)
    shape, table = rows.shape[1:], rows.reshape(len(rows), -1)
    places = np.asarray(symbols(indices))
    out = np.empty((*places.shape, table.shape[1]), dtype=object)
    for at in np.ndindex(places.shape):
        out[at] = [entry(_number(places[at]), [_number(x) for x in column]) for column in table.T]
    out = out.reshape(places.shape + shape)
    if axis in (None, 0) or places.ndim == 0:
        return out
    if places.ndim > 1:
        raise SymbolicBranch("np.take of several axes cannot be written down with symbols")
    return np.moveaxis(out, 0, axis)


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        raise SymbolicBranch("np.searchsorted with a sorter cannot be written down with symbols")
    table, given = [_number(x) for x in np.ravel(a)], np.asarray(symbols(v))
    out = np.empty(given.shape, dtype=object)
    for at in np.ndindex(given.shape):
        out[at] = count_not_above(_number(given[at]), table, strictly=side == "left")
    return out if out.ndim else out[()]


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return what lies on the lines between points; outside of them the first and the last value."""
    if period is not None:
        raise SymbolicBranch("np.interp with a period cannot be written down with symbols")
    xp, fp = np.asarray(symbols(xp)), np.asarray(symbols(fp))
    k = elementwise(p.MAXIMUM, elementwise(p.MINIMUM, _searchsorted(xp, x, "right") - 1.0, len(xp) - 2.0), 0.0)
    at, after, low, high = _take(xp, k, 0), _take(xp, k + 1.0, 0), _take(fp, k, 0), _take(fp, k + 1.0, 0)
    found = (high - low) / (after - at) * (x - at) + low
    found = _where(x > xp[-1], fp[-1] if right is None else right, found)
    return _where(x < xp[0], fp[0] if left is None else left, found)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.dot: _dot,
    np.searchsorted: _searchsorted,
    np.clip: _clip,
    np.max: _extreme(p.MAXIMUM),
    np.amax: _extreme(p.MAXIMUM),
    np.min: _extreme(p.MINIMUM),
    np.amin: _extreme(p.MINIMUM),
    np.take: _take,
    np.searchsorted: _searchsorted,
    np.interp: _interp,
    np.nan_to_num: _nan_to_num,
    **linear_algebra.FUNCTIONS,
}


def _array_ufunc(self: Node, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Let NumPy's functions take a node as they take an array of it."""
    given = [symbols(x) if isinstance(x, Node) else x for x in inputs]
    return getattr(ufunc, method)(*given, **options)


def _array_function(self: Node, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return function(*(symbols(x) if isinstance(x, Node) else x for x in args), **kwargs)


Node.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
Node.__array_function__ = _array_function  # type: ignore[attr-defined]
