"""NumPy as a function that is traced sees it: arrays that it makes of floats can hold symbols too.

``u = np.zeros(2); u[0] = -k * q[0]`` writes a symbol into an array of floats, which NumPy refuses, ``np.asarray(q,
dtype=float)`` asks symbols for their numbers, and ``np.max([a, b])`` does not see that there are any.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph import Node, SymbolicBranch
from cstormpy.graph.arrays import Symbols, holds_symbols, joined, symbols, writable
from cstormpy.graph.elementwise import are_truths
from cstormpy.graph.nodes import whole_or_truth

#: Arrays with more numbers stay those of floats: nobody writes them element by element.
_LARGEST = 10_000
#: Functions whose lists are of arrays: each of their parts may be a list of numbers.
_OF_PARTS = frozenset(
    {"choose", "column_stack", "concat", "concatenate", "dstack", "hstack", "select", "stack", "vstack"}
)


def _is_float(dtype: Any) -> bool:
    return dtype is None or np.dtype(dtype) == np.float64


def _filled(value: Any) -> Any:
    """Return an array that a function has made as one into which symbols can be written, unless it is large."""
    return value if np.size(value) > _LARGEST else writable(value)


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes an array of known numbers, such that symbols can be written into it."""

    def make(*args: Any, **options: Any) -> Any:
        return _filled(function(*args, **options))

    return make


def _making_like(function: Callable[..., Any]) -> Callable[..., Any]:
    def make(a: Any, *args: Any, **options: Any) -> Any:
        if any(map(holds_symbols, args)):
            raise SymbolicBranch(f"np.{function.__name__} of a symbol cannot be written down")
        if holds_symbols(a) or isinstance(a, Symbols):
            a = np.zeros(np.shape(a), bool if are_truths(symbols(a)) else float)
        return _filled(function(a, *args, **options))

    return make


def _array(value: Any, dtype: Any = None, **options: Any) -> Any:
    """Return a new array of what is given."""
    if not holds_symbols(value) and not isinstance(value, Symbols):
        return _filled(np.array(value, dtype, **options))
    ndmin = options.pop("ndmin", 0)
    if options.get("copy") is False:
        return _as_array(value, dtype)
    made = _of_kind(symbols(value), dtype)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def _as_array(value: Any, dtype: Any = None, **options: Any) -> Any:
    """Return what is given as an array: itself where it is one."""
    if isinstance(value, Symbols) and _is_float(dtype) and (dtype is None or not are_truths(value)):
        return value
    if not holds_symbols(value) and not isinstance(value, Symbols):
        return np.asarray(value, dtype, **options)
    return _of_kind(symbols(value), dtype)


def _of_kind(array: Symbols, dtype: Any) -> Any:
    if dtype is None and are_truths(array):
        return array
    kind = "f" if dtype is None else whole_or_truth(dtype)
    numbers = [x.number() if isinstance(x, Node) else float(x) for x in array.flat]
    made: Any = symbols(numbers).reshape(array.shape)
    return made if kind == "f" else made.astype(dtype)


def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    if not holds_symbols(fill_value):
        return _filled(np.full(shape, fill_value, dtype, **options))
    made = writable(np.zeros(shape))
    made[...] = _of_kind(symbols(fill_value), dtype)
    return made


class Number:
    """A type of numbers as a function of symbols: ``float(x)`` is x, and in a list of types it is the type.

    Parameters
    ----------
    kind : type
        `float`, `int` or `numpy.float64`.
    """

    def __init__(self, kind: type) -> None:
        self.kind, self.dtype = kind, np.dtype(kind)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return a number of this type."""
        if len(args) == 1 and isinstance(args[0], Symbols) and args[0].size == 1:
            args = (args[0].item(),)
        if len(args) != 1 or not isinstance(args[0], Node):
            return self.kind(*args, **options)
        return args[0].whole() if self.kind is int else args[0].number()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)

    def __or__(self, other: Any) -> Any:
        return self.kind | (other.kind if isinstance(other, Number) else other)

    def __ror__(self, other: Any) -> Any:
        return other | self.kind


def refusing(why: str) -> Callable[..., Any]:
    """Return a function that refuses to be called with symbols, and says why."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise SymbolicBranch(why)

    return refuse


_FILES = ("fromfile", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt", "savez", "savez_compressed")
_MADE: dict[str, Callable[..., Any]] = {
    **{name: _making(getattr(np, name)) for name in ("zeros", "ones", "empty", "eye", "identity")},
    **{name: _making_like(getattr(np, name)) for name in ("zeros_like", "ones_like", "empty_like", "full_like")},
    "array": _array,
    "copy": lambda a, **options: _array(a),
    "asarray": _as_array,
    "asanyarray": _as_array,
    "ascontiguousarray": _as_array,
    "full": _full,
    "float64": Number(np.float64),
    **{name: refusing(f"it calls np.{name}() each time") for name in _FILES},
}


class _Numpy(types.SimpleNamespace):
    """A module of NumPy, whose functions take lists of symbols as they take those of floats."""

    def __init__(self, module: types.ModuleType, own: dict[str, Any]) -> None:
        super().__init__(**own)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = instead_of(getattr(self._module, name), name)
        return found


def instead_of(value: Any, name: str) -> Any:
    """Return what stands in the place of a function of NumPy, or of one of its modules."""
    if value is np.linalg:
        return LINALG
    if isinstance(value, type) or not callable(value) or isinstance(value, np.ufunc):
        return value
    if name == "block":  # its lists are rows of arrays, at any depth
        return value
    read = _joined_parts if name in _OF_PARTS else joined

    def function(*args: Any, **options: Any) -> Any:
        return value(*map(read, args), **{key: read(option) for key, option in options.items()})

    return function


def _joined_parts(value: Any) -> Any:
    return [joined(part) for part in value] if isinstance(value, (list, tuple)) else value


LINALG = _Numpy(np.linalg, {})
NUMPY = _Numpy(np, {**_MADE, "linalg": LINALG})
#: What stands in the place of NumPy, its modules, and functions that somebody has imported from it.
IN_PLACE = {id(np): NUMPY, id(np.linalg): LINALG, **{id(getattr(np, name)): made for name, made in _MADE.items()}}
