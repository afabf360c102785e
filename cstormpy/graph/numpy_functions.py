"""NumPy's functions of symbols that ask for a truth, or whose name is not that of a method of a node.

They take arrays of nodes and floats, and return them: `arrays` calls them in the place of NumPy's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from cstormpy.graph import linear_algebra
from cstormpy.graph import primitives as p
from cstormpy.graph.elementwise import Array, are_truths, as_number, elementwise, objects, reduction, truths_as_numbers
from cstormpy.graph.look_ups import count_not_above, entry
from cstormpy.graph.nodes import Node, SymbolicBranch, require_zero
from cstormpy.graph.primitives import Symbol

#: Arrays with more numbers are not sorted, which takes n² / 2 comparisons.
_SORTED = 16
_GREATEST = float(np.finfo(float).max)

# Of elements ----------------------------------------------------------------------------------------


def _swapped(primitive: p.Primitive) -> Callable[[Any, Any], Any]:
    return lambda a, b: elementwise(primitive, b, a)


def _is_nan(a: Any) -> Any:
    return elementwise(p.UNEQUAL, a, a)


def _unless_nan(primitive: p.Primitive, a: Any, b: Any) -> Any:
    """Return the greater or lesser of two numbers, and the other one of which one is not a number."""
    return where(_is_nan(a), b, where(_is_nan(b), a, elementwise(primitive, a, b)))


def _side(a: Any) -> Any:
    """Return 1 or −1 by the sign of a number, which a zero has too."""
    return elementwise(p.COPYSIGN, 1.0, a)


def _product(a: Any, b: Any) -> Any:
    return elementwise(p.MUL, a, b)


def _exclusive(a: Any, b: Any) -> Any:
    one, other = elementwise(p.NOT, a), elementwise(p.NOT, b)
    return elementwise(p.OR, elementwise(p.AND, a, other), elementwise(p.AND, one, b))


def _inverted(a: Any) -> Any:
    """Return what a truth is not; ~True of Python's own truths is the number -2."""
    if not are_truths(objects(a)):
        raise SymbolicBranch("the bits of a number are not known while the expression is written down")
    return elementwise(p.NOT, a)


def _heaviside(a: Any, at_zero: Any) -> Any:
    at_most = where(elementwise(p.GREATER, 0.0, a), 0.0, elementwise(p.ADD, at_zero, a))  # which is 0, or no number
    return where(elementwise(p.GREATER, a, 0.0), 1.0, at_most)


def _elementary(primitive: p.Primitive) -> Callable[[Any], Any]:
    """Return a function of numbers; of an array of truths NumPy computes it in half precision."""

    def of(a: Any) -> Any:
        if are_truths(objects(a)):
            raise SymbolicBranch(f"of truths NumPy computes {primitive.name} in half precision; multiply them by 1.0")
        return elementwise(primitive, a)

    return of


_ELEMENTARY = {
    **{name: getattr(p, name.upper()) for name in "sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10".split()},
    **{"log1p": p.LOG1P, "arcsin": p.ASIN, "arccos": p.ACOS, "arctan": p.ATAN},
    **{"arcsinh": p.ASINH, "arccosh": p.ACOSH, "arctanh": p.ATANH},
}
#: What stands for a function of elements, a ufunc, by its name: a primitive, or what is made of several.
UFUNCS: dict[str, p.Primitive | Callable[..., Any]] = {
    "greater": p.GREATER,
    "greater_equal": p.AT_LEAST,
    "less": _swapped(p.GREATER),
    "less_equal": _swapped(p.AT_LEAST),
    "equal": p.EQUAL,
    "not_equal": p.UNEQUAL,
    "logical_and": p.AND,
    "logical_or": p.OR,
    "logical_not": p.NOT,
    "logical_xor": _exclusive,
    "invert": _inverted,
    "maximum": p.MAXIMUM,
    "minimum": p.MINIMUM,
    "fmax": lambda a, b: _unless_nan(p.MAXIMUM, a, b),
    "fmin": lambda a, b: _unless_nan(p.MINIMUM, a, b),
    **{name: _elementary(primitive) for name, primitive in _ELEMENTARY.items()},
    **dict.fromkeys(("deg2rad", "radians"), lambda a: _product(a, math.pi / 180.0)),
    **dict.fromkeys(("rad2deg", "degrees"), lambda a: _product(a, 180.0 / math.pi)),
    "sqrt": p.SQRT,
    "cbrt": p.CBRT,
    "square": lambda a: _product(a, a),
    "sign": p.SIGN,
    "absolute": p.ABS,
    "fabs": p.ABS,
    "copysign": lambda a, b: _product(elementwise(p.ABS, a), _side(b)),
    "signbit": lambda a: elementwise(p.GREATER, 0.0, _side(a)),
    "heaviside": _heaviside,
    "arctan2": p.ATAN2,
    "hypot": p.HYPOT,
    "remainder": p.MOD,
    "fmod": p.FMOD,
    "divmod": lambda a, b: (np.floor_divide(a, b), elementwise(p.MOD, a, b)),
    "power": p.POW,
    "float_power": p.POW,
    "rint": p.ROUND,
    "floor": p.FLOOR,
    "ceil": p.CEIL,
    "trunc": p.TRUNC,
    "isfinite": lambda a: elementwise(p.EQUAL, elementwise(p.VANISHING, a), 0.0),
    "isinf": lambda a: elementwise(p.EQUAL, elementwise(p.ABS, a), math.inf),
    "isnan": _is_nan,
}

# Choices --------------------------------------------------------------------------------------------


def where(condition: Any, *choices: Any) -> Any:
    """Return the elements of one array where a condition holds, elsewhere those of another."""
    if len(choices) != 2:
        raise SymbolicBranch("np.where with a condition alone cannot be written down with symbols")
    return elementwise(p.SELECT, condition, *choices)


def _select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(condition, choice, found)
    return found


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **names: Any) -> Any:
    low, high = names.pop("min", a_min), names.pop("max", a_max)
    if names or out is not None:
        raise SymbolicBranch("options of np.clip cannot be written down with symbols")
    result = a if low is None else elementwise(p.MAXIMUM, a, low)
    return result if high is None else elementwise(p.MINIMUM, result, high)


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    greatest = _GREATEST if posinf is None else posinf
    least = -_GREATEST if neginf is None else neginf
    found = where(elementwise(p.GREATER, x, _GREATEST), greatest, x)
    found = where(elementwise(p.GREATER, -_GREATEST, found), least, found)
    return where(_is_nan(x), nan, found)


# Of all elements ------------------------------------------------------------------------------------


def _extreme(primitive: p.Primitive) -> Callable[..., Any]:
    def of(a: Any, axis: Any = None, **options: Any) -> Any:
        return reduction(primitive, a, axis=axis, **options)

    return of


def _count_nonzero(a: Any, axis: Any = None, **options: Any) -> Any:
    return np.sum(truths_as_numbers(elementwise(p.NOT, elementwise(p.NOT, objects(a)))), axis=axis, **options)


def _all_equal(a: Any, b: Any, equal_nan: bool = False) -> Any:
    a, b = objects(a), objects(b)
    if a.shape != b.shape:
        return False
    equal = elementwise(p.EQUAL, a, b)
    if equal_nan:
        equal = elementwise(p.OR, equal, elementwise(p.AND, _is_nan(a), _is_nan(b)))
    return reduction(p.AND, objects(equal), axis=None)


def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    distance = elementwise(p.ABS, elementwise(p.SUB, a, b))
    allowed = elementwise(p.ADD, _product(elementwise(p.ABS, b), rtol), atol)
    finite = elementwise(p.EQUAL, elementwise(p.VANISHING, b), 0.0)
    near = elementwise(p.AND, elementwise(p.AT_LEAST, allowed, distance), finite)
    close = elementwise(p.OR, near, elementwise(p.EQUAL, a, b))
    return elementwise(p.OR, close, elementwise(p.AND, _is_nan(a), _is_nan(b))) if equal_nan else close


def _allclose(a: Any, b: Any, *tolerances: Any, **options: Any) -> Any:
    return reduction(p.AND, objects(_isclose(a, b, *tolerances, **options)), axis=None)


def _place(primitive: p.Primitive) -> Callable[..., Any]:
    """Return the place of the first of the greatest or least numbers, or of the first that is not a number."""

    def place(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is not None or keepdims:
            raise SymbolicBranch("options of np.argmax and np.argmin cannot be written down with symbols")
        a = objects(a)
        rows = a.ravel() if axis is None else np.moveaxis(a, axis, 0)
        best, found = rows[0], np.zeros(np.shape(rows[0]))
        for k, row in enumerate(rows[1:], 1):
            beyond = elementwise(p.GREATER, *((row, best) if primitive is p.MAXIMUM else (best, row)))
            better = elementwise(p.OR, beyond, elementwise(p.AND, _is_nan(row), elementwise(p.NOT, _is_nan(best))))
            best, found = where(better, row, best), where(better, float(k), found)
        return found

    return place


def _sort(a: Any, axis: Any = -1, **options: Any) -> Array:
    """Return numbers in their order, by exchanging neighbours; those that are none come last."""
    if any(option is not None for option in options.values()):
        raise SymbolicBranch("options of np.sort cannot be written down with symbols")
    a = objects(a)
    rows = a.ravel() if axis is None else np.moveaxis(a, axis, 0).copy()
    if len(rows) > _SORTED:
        raise SymbolicBranch(f"np.sort of more than {_SORTED} numbers is not written down with symbols")
    for last in range(len(rows) - 1, 0, -1):
        for i, j in pairwise(range(last + 1)):
            low, high = rows[i], rows[j]
            rows[i], rows[j] = _unless_nan(p.MINIMUM, low, high), elementwise(p.MAXIMUM, low, high)
    return rows if axis is None else np.moveaxis(rows, 0, axis)


def _median(a: Any, axis: Any = None, **options: Any) -> Any:
    if options.pop("out", None) is not None or options.pop("keepdims", False):
        raise SymbolicBranch("options of np.median cannot be written down with symbols")
    rows = _sort(a, None) if axis is None else np.moveaxis(_sort(a, axis), axis, 0)
    count = len(rows)
    middle = rows[count // 2] if count % 2 else elementwise(p.MUL, rows[count // 2 - 1] + rows[count // 2], 0.5)
    return where(_is_nan(rows[-1]), math.nan, middle)


# Places ---------------------------------------------------------------------------------------------


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        raise SymbolicBranch("np.dot with out= cannot be written down with symbols")
    return np.matmul(a, b) if np.ndim(a) in (1, 2) and np.ndim(b) in (1, 2) else np.asarray(a).dot(np.asarray(b))


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """Return the parts of an array at places that are symbols, from the end where they are negative.

    What is written down fails at a place beyond the ends, where NumPy raises.
    """
    if out is not None or mode != "raise":
        raise SymbolicBranch("options of np.take cannot be written down with symbols")
    places = objects(indices)
    if any(isinstance(k, Node) and k.primitive.truth for k in places.flat):
        raise SymbolicBranch("which parts a mask of symbols takes is not known while the expression is written down")
    count = float(np.size(a) if axis is None else np.shape(a)[axis])
    for k in places.flat:
        if isinstance(k, Node):
            whole = elementwise(p.TRUNC, k)
            require_zero(elementwise(p.OR, whole < -count, whole >= count))
        elif not -count <= k < count:
            raise IndexError(f"index {k} is out of bounds for size {count:.0f}")
    return _taken(a, places, axis)


def _taken(a: Any, indices: Any, axis: int | None) -> Any:
    """Return the parts of an array at places; one beyond an end counts as the end."""
    places = objects(indices)
    rows = np.ravel(a) if axis is None else np.moveaxis(np.asarray(a, dtype=object), axis, 0)
    shape, table = rows.shape[1:], truths_as_numbers(rows.reshape(len(rows), -1))
    out = np.empty((*places.shape, table.shape[1]), dtype=object)
    for at in np.ndindex(places.shape):
        out[at] = [entry(as_number(places[at]), column) for column in table.T.tolist()]
    out = out.reshape(places.shape + shape)
    if axis in (None, 0) or places.ndim == 0:
        return out
    if places.ndim > 1:
        raise SymbolicBranch("np.take of several axes cannot be written down with symbols")
    return np.moveaxis(out, 0, axis)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return how many of some numbers, which do not fall, are less than v, or at most as large."""
    if sorter is not None:
        raise SymbolicBranch("np.searchsorted with a sorter cannot be written down with symbols")
    table, given = truths_as_numbers(np.ravel(a)).tolist(), truths_as_numbers(objects(v))
    return where(_is_nan(given), float(len(table)), _counts(given, table, side))  # NumPy sorts NaN behind all numbers


def _counts(given: Any, table: list[Any], side: str) -> Array:
    out = np.empty(given.shape, dtype=object)
    for at in np.ndindex(given.shape):
        out[at] = count_not_above(given[at], table, strictly=side == "left")
    return out


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    bins = objects(bins)
    if any(isinstance(a, Symbol) for a in bins.flat) or any(a > b for a, b in pairwise(bins.tolist())):
        raise SymbolicBranch("np.digitize is written down with symbols for bins that are known and do not fall")
    return searchsorted(bins, x, "left" if right else "right")


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return what lies on the lines between points; outside of them the first and the last value."""
    if period is not None:
        raise SymbolicBranch("np.interp with a period cannot be written down with symbols")
    x, xp, fp = (truths_as_numbers(objects(a)) for a in (x, xp, fp))
    if len(xp) == 1:
        found = fp[0]
    else:
        k = elementwise(p.SUB, _counts(x, xp.tolist(), "right"), 1.0)
        k = elementwise(p.MAXIMUM, elementwise(p.MINIMUM, k, len(xp) - 2.0), 0.0)
        after = elementwise(p.ADD, k, 1.0)
        at, behind, low, high = _taken(xp, k, 0), _taken(xp, after, 0), _taken(fp, k, 0), _taken(fp, after, 0)
        found = (high - low) / (behind - at) * (x - at) + low
    found = where(elementwise(p.GREATER, x, xp[-1]), fp[-1] if right is None else right, found)
    return where(elementwise(p.GREATER, xp[0], x), fp[0] if left is None else left, found)


def _roll(a: Any, shift: Any, axis: Any = None) -> Array:
    return np.roll(np.asarray(a), shift, axis)


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, **options: Any) -> Array:
    if any(option not in (None, False, 0) for option in options.values()) or np.ndim(start) or np.ndim(stop):
        raise SymbolicBranch("options of np.linspace cannot be written down with symbols")
    parts = max(num - 1 if endpoint else num, 1)
    step = elementwise(p.DIV, elementwise(p.SUB, stop, start), float(parts))
    found = [elementwise(p.ADD, elementwise(p.MUL, float(k), step), start) for k in range(num)]
    return objects([*found[:-1], elementwise(p.ADD, stop, 0.0)] if endpoint and num > 1 else found)


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays of numbers as one of arrays of truths too."""

    def of(*arrays: Any, **options: Any) -> Any:
        return function(*(truths_as_numbers(a) if isinstance(a, np.ndarray) else a for a in arrays), **options)

    return of


#: What stands for a function of NumPy.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: where,
    np.select: _select,
    np.dot: _dot,
    np.clip: _clip,
    np.max: _extreme(p.MAXIMUM),
    np.amax: _extreme(p.MAXIMUM),
    np.min: _extreme(p.MINIMUM),
    np.amin: _extreme(p.MINIMUM),
    np.argmax: _place(p.MAXIMUM),
    np.argmin: _place(p.MINIMUM),
    np.sort: _sort,
    np.median: _median,
    np.count_nonzero: _count_nonzero,
    np.array_equal: _all_equal,
    np.isclose: _isclose,
    np.allclose: _allclose,
    np.take: take,
    np.searchsorted: searchsorted,
    np.digitize: _digitize,
    np.interp: _interp,
    np.roll: _roll,
    np.linspace: _linspace,
    np.nan_to_num: _nan_to_num,
    **{function: _of_numbers(own) for function, own in linear_algebra.FUNCTIONS.items()},
}
