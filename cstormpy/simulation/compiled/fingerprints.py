"""Fingerprints of users' functions: of their code, and of the values that it reads."""

from __future__ import annotations

import builtins
import enum
import hashlib
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["fingerprint"]


def fingerprint(functions: list[Callable[..., Any]]) -> tuple[str, bool]:
    """Return what tells functions apart, and whether another process would find the same.

    Told apart are their code and the values that it reads: what stands in their module, in a module that they name, in
    what surrounds them and in their defaults.
    """
    seen: dict[Any, int] = {}
    parts: list[str] = []
    lasting = all([_describe(f, parts, seen) for f in functions])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest(), lasting


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.EllipsisType, np.generic)
#: Of these what stands in a module does not change while a version is installed.
_INSTALLED = frozenset({"numpy", "scipy", "numba", "cstormpy"})


def _describe(value: Any, parts: list[str], seen: dict[Any, int], names: tuple[str, ...] = ()) -> bool:
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
    seen[key] = len(seen)
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
    if hasattr(value, "py_func"):
        return _describe_compiled(value, parts, seen)
    if isinstance(value, types.FunctionType):
        if str(value.__module__).split(".")[0] in ("numpy", "scipy", "math"):
            parts.append(f"{value.__module__}.{value.__qualname__}")
            return True
        parts.append("function")
        return _describe_function(value, parts, seen)
    return _describe_whole(value, parts, seen)


#: Functions that users have compiled by numba, as they were when they were met first.
_met: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
#: Stands among what has been seen where that is within such a function.
_WITHIN = "within a compiled function"


def _describe_compiled(value: Any, parts: list[str], seen: dict[Any, int]) -> bool:
    """Add a function that a user has compiled: what it reads has become part of it, and stays when that changes."""
    parts.append("compiled")
    if _WITHIN in seen:
        return _describe(value.py_func, parts, seen)
    own: list[str] = []
    lasting = _describe(value.py_func, own, {_WITHIN: 0, id(value): 1})
    parts += own
    return lasting and _met.setdefault(value, "\n".join(own)) == "\n".join(own)


def _describe_whole(value: Any, parts: list[str], seen: dict[Any, int]) -> bool:
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
    parts.append(f"object {id(value)}")
    return False


def _is_installed(module: types.ModuleType) -> bool:
    """Tell whether a module belongs to the language or a library on which this one stands: not to the user."""
    top = module.__name__.split(".")[0]
    path = getattr(module, "__file__", None)
    own = path is None or path.startswith(os.path.dirname(os.__file__))  # a user's may be called as one of those
    return top in _INSTALLED or (top in sys.stdlib_module_names and own)


def _describe_named(name: str, value: Any, parts: list[str], seen: dict[Any, int], names: tuple[str, ...]) -> bool:
    parts.append(name)
    return _describe(value, parts, seen, names)


def _describe_class(kind: type, parts: list[str], seen: dict[Any, int]) -> bool:
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


def _describe_function(func: types.FunctionType, parts: list[str], seen: dict[Any, int]) -> bool:
    names = _names(func.__code__)
    lasting = _describe_code(func.__code__, func.__globals__, parts, seen, names)
    cells = [cell.cell_contents for cell in func.__closure__ or ()]
    held = (func.__defaults__, func.__kwdefaults__, *cells)
    return all([lasting, *(_describe(value, parts, seen, names) for value in held)])


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in a function and in those within it."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _describe_code(
    code: types.CodeType, space: dict[str, Any], parts: list[str], seen: dict[Any, int], names: tuple[str, ...]
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
