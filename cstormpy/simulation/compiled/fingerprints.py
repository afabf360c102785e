"""Fingerprints of users' functions and objects: of their code, and of the values that it reads."""

from __future__ import annotations

import builtins
import enum
import hashlib
import inspect
import os
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from cstormpy.simulation.surroundings import codes_within, surrounding


class _Met(dict[Any, int]):
    """The objects that have been met, by their `id`, and in which order."""

    def __init__(self, *known: Any) -> None:
        super().__init__({each: k for k, each in enumerate(known)})
        self.objects: list[Any] = []

    def add(self, key: Any, value: Any) -> None:
        """Note an object, which lives as long as its `id` is known."""
        self[key] = len(self)
        self.objects.append(value)


def fingerprint(values: list[Any]) -> tuple[str, bool]:
    """Return what tells functions, or objects, apart, and whether another process would find the same.

    Told apart are the code of functions and the values that it reads: what stands in their module, in a module that
    they name, in what surrounds them and in their defaults; and what objects hold.
    """
    parts: list[str] = []
    met = _Met()
    lasting = all([_describe(value, parts, met) for value in values])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest(), lasting


def reachable(values: list[Any]) -> list[Any]:
    """Return the objects that functions, or the methods of classes, can reach, but for plain values."""
    met = _Met()
    for value in values:
        _describe(value, [], met)
    return met.objects


def is_by_identity(value: Any) -> bool:
    """Tell whether an object counts by which it is, not by what it holds.

    So do diagrams and their blocks, which change as they run, and what of this package nobody changes.
    """
    module = str(type(value).__module__)
    top = module.partition(".")[0]
    return top == "bdsim" or (top == "cstormpy" and not module.startswith("cstormpy.control"))


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.EllipsisType, np.generic)
#: Of these what stands in a module does not change while a version is installed.
_INSTALLED = frozenset({"numpy", "scipy", "numba", "cstormpy", "bdsim", "matplotlib", "spatialmath", "ansitable"})


def _describe(value: Any, parts: list[str], seen: _Met, names: tuple[str, ...] = ()) -> bool:
    """Add what a value is; return whether that holds in another process too.

    Of a module that counts which goes by one of `names`, those in the code that reaches it.
    """
    if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
        parts.append(f"{type(value).__name__} {value!r}")
        return True
    key = (id(value), names) if isinstance(value, types.ModuleType) else id(value)
    if key in seen:
        parts.append(f"the {seen[key]}th")
        return True
    seen.add(key, value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        parts.append(f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
        return True
    if isinstance(value, types.ModuleType):
        parts.append(f"module {value.__name__}")
        read = () if _is_installed(value) else [name for name in names if hasattr(value, name)]
        return all([_describe_named(name, getattr(value, name), parts, seen, names) for name in read])
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
        parts.append(f"{getattr(value, '__module__', '')}.{value.__name__}")
        return True
    if isinstance(value, type):
        return _describe_class(value, parts, seen)
    if inspect.getattr_static(value, "py_func", None) is not None:
        return _describe_compiled(value, parts, seen)
    if isinstance(value, types.FunctionType):
        if str(value.__module__).split(".")[0] in ("numpy", "scipy", "math", "copyreg"):
            parts.append(f"{value.__module__}.{value.__qualname__}")
            return True
        parts.append("function")
        return _describe_function(value, parts, seen)
    return _describe_whole(value, parts, seen)


#: Functions that users have compiled by numba, as they were when they were met first.
_met: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
#: Stands among what has been seen where that is within such a function.
_WITHIN = "within a compiled function"


def _describe_compiled(value: Any, parts: list[str], seen: _Met) -> bool:
    """Add a function that a user has compiled: what it reads has become part of it, and stays when that changes."""
    parts.append("compiled")
    if _WITHIN in seen:
        return _describe(value.py_func, parts, seen)
    own: list[str] = []
    lasting = _describe(value.py_func, own, _Met(_WITHIN, id(value)))
    parts += own
    return lasting and _met.setdefault(value, "\n".join(own)) == "\n".join(own)


def _describe_whole(value: Any, parts: list[str], seen: _Met) -> bool:
    """Add what a value is that is made of others."""
    if isinstance(value, enum.Enum):
        parts.append(f"{type(value).__qualname__}.{value.name}")
        return _describe(value.value, parts, seen)
    if isinstance(value, (frozenset, set)):
        value = sorted(value, key=repr)
    if isinstance(value, (tuple, list)):
        parts.append(f"{type(value).__name__} of {len(value)} {getattr(value, '_fields', '')}")
        return all([_describe(item, parts, seen) for item in value])
    if isinstance(value, dict):
        parts.append(f"dict of {len(value)}")
        return all([_describe(item, parts, seen) for pair in value.items() for item in pair])
    if isinstance(value, (staticmethod, classmethod)):
        return _describe(value.__func__, parts, seen)
    if isinstance(value, property):
        return _describe(value.fget, parts, seen)
    if isinstance(value, memoryview):
        return _describe(value.tobytes(), parts, seen)
    if isinstance(value, types.MethodType):
        return all([_describe(value.__func__, parts, seen), _describe(value.__self__, parts, seen)])
    return _describe_object(value, parts, seen)


#: Where more objects have been met, one stands for itself.
_MOST = 5000


def _describe_object(value: Any, parts: list[str], seen: _Met) -> bool:
    """Add an object by its class and by what it holds, as a copy of it would be given; else by which it is."""
    if not is_by_identity(value) and len(seen) < _MOST:
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # it says so by whatever its class raises
            reduced = None
        if isinstance(reduced, str):
            parts.append(f"{type(value).__module__}.{reduced}")
            return True
        if reduced is not None:
            parts.append("object")
            made, given, *more = reduced
            held = [list(each) if isinstance(each, Iterator) else each for each in more]
            if isinstance(value, np.ndarray):
                held, given = [value.tolist()], (value.shape, str(value.dtype))
            lasting = all([_describe(each, parts, seen) for each in (made, given, *held)])
            if len(given) > 1 or any(each is not None and not (isinstance(each, list) and not each) for each in held):
                return lasting
    parts.append(f"object {id(value)}")
    return False


def _is_installed(module: types.ModuleType) -> bool:
    """Tell whether a module belongs to the language or a library on which this one stands: not to the user."""
    top = module.__name__.split(".")[0]
    path = getattr(module, "__file__", None)
    own = path is None or path.startswith(os.path.dirname(os.__file__))  # a user's may be called as one of those
    return top in _INSTALLED or (top in sys.stdlib_module_names and own)


def _describe_named(name: str, value: Any, parts: list[str], seen: _Met, names: tuple[str, ...]) -> bool:
    parts.append(name)
    return _describe(value, parts, seen, names)


def _describe_class(kind: type, parts: list[str], seen: _Met) -> bool:
    """Add a class by its values and functions, or by its name if it is not one of the user's."""
    parts.append(f"{kind.__module__}.{kind.__qualname__} of {[base.__qualname__ for base in kind.__mro__]}")
    if issubclass(kind, enum.Enum):
        members = [(name, member.value) for name, member in kind.__members__.items()]
        return all([_describe_named(name, value, parts, seen, ()) for name, value in members])
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _describe(tuple(kind._fields), parts, seen)
    held = [
        (name, value)
        for base in kind.__mro__
        if not _is_installed(sys.modules.get(base.__module__, builtins))
        for name, value in vars(base).items()
        if isinstance(value, types.FunctionType) or not name.startswith("__")
    ]
    return all([_describe_named(name, value, parts, seen, ()) for name, value in held])


def _describe_function(func: types.FunctionType, parts: list[str], seen: _Met) -> bool:
    names = _names(func.__code__)
    lasting = _describe_code(func.__code__, func.__globals__, parts, seen, names)
    held = (func.__defaults__, func.__kwdefaults__, vars(func) or None, *surrounding(func).values())
    return all([lasting, *(_describe(value, parts, seen, names) for value in held)])


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in a function and in those within it."""
    return tuple(dict.fromkeys([name for part in codes_within(code) for name in part.co_names]))


def _describe_code(
    code: types.CodeType, space: dict[str, Any], parts: list[str], seen: _Met, names: tuple[str, ...]
) -> bool:
    parts.append(f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}")
    lasting = True
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            lasting &= _describe_code(constant, space, parts, seen, names)
        else:
            lasting &= _describe(constant, parts, seen)
    for name in code.co_names:
        if name in space:
            lasting &= _describe(space[name], parts, seen, names)
    return lasting
