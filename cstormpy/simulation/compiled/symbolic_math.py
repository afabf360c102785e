"""Functions of `math`, ``max`` and ``min`` on symbols, for functions that somebody has written for numbers."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph import Node

_AS_NUMPY = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "hypot": np.hypot, "fabs": np.abs, "pow": np.power,
    "fmod": np.fmod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
}  # fmt: skip


def _on_symbols(function: Callable[..., Any], numpy: Callable[..., Any]) -> Callable[..., Any]:
    def either(*args: Any, **options: Any) -> Any:
        if any(isinstance(a, Node) for a in args):
            return numpy(*args, **options)
        return function(*args, **options)

    return either


def _chain(numpy: Callable[[Any, Any], Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``max`` or ``min``, which of symbols is taken two by two."""

    def either(*args: Any, **options: Any) -> Any:
        items = list(args[0]) if len(args) == 1 else list(args)
        if options or not any(isinstance(a, Node) for a in items):
            return plain(items if len(args) == 1 else args, **options) if len(args) == 1 else plain(*args, **options)
        found = items[0]
        for item in items[1:]:
            found = numpy(found, item)
        return found

    return either


_MATH = types.SimpleNamespace(**{**vars(math), **{k: _on_symbols(getattr(math, k), f) for k, f in _AS_NUMPY.items()}})
_OWN = {id(getattr(math, k)): getattr(_MATH, k) for k in _AS_NUMPY} | {id(math): _MATH}


def with_symbolic_math(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a plain function for which `math`, ``max`` and ``min`` take symbols.

    So do those functions of its module that it calls.
    """
    if not isinstance(function, types.FunctionType):
        return function
    before = function.__globals__
    space = {name: _OWN.get(id(value), value) for name, value in before.items()}
    space.setdefault("max", _chain(np.maximum, max))
    space.setdefault("min", _chain(np.minimum, min))
    for name, value in before.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is before:
            space[name] = _within(value, space)
    return _within(function, space)


def _within(function: types.FunctionType, space: dict[str, Any]) -> types.FunctionType:
    cells = function.__closure__
    if cells is not None:
        cells = tuple(types.CellType(_OWN.get(id(c.cell_contents), c.cell_contents)) for c in cells)
    copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
