"""Copies a diagram for each worker of a sweep, where nothing of it would be shared."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.errors import DiagramError
from cstormpy.mechanism import Mechanism

#: Packages whose functions may be shared by threads: what they close over does not change, or is guarded.
_SHAREABLE = ("bdsim", "cstormpy", "numba", "numpy", "scipy")


def copied(bd: Any, make: Callable[[], Any]) -> Any:
    """Return a copy of a diagram that shares nothing with it that could change.

    Raises
    ------
    DiagramError
        Where a function that a block holds would be shared, with what it remembers.
    """
    advice = "give the function build(sim, **options) that makes it, so that each worker has its own"
    for b in bd.blocklist:
        shared = _remembered(b)
        if shared is not None:
            raise DiagramError(
                f"sweep: the diagram cannot be copied for several workers: block {b.name!r} {shared}; {advice}"
            )
    # the copy has a simulation of its own
    memo: dict[int, Any] = {id(bd.runtime): make()} if hasattr(bd, "runtime") else {}
    try:
        return copy.deepcopy(bd, memo)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise DiagramError(f"sweep: the diagram cannot be copied for workers: {told}; {advice}") from error


def _remembered(block: Any) -> str | None:
    """Say what a block would share with its copy: functions are not copied, nor what they close over."""
    stack = [v for name, v in vars(block).items() if name not in ("_bd", "bd")]
    seen: set[int] = {id(block)}
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.MethodType):
            stack += [value.__func__, value.__self__]
        elif isinstance(value, types.FunctionType):
            name = _changing(value)
            if name is not None:
                return f"holds the function {value.__qualname__!r}, whose {name!r} all of them would use"
        elif isinstance(value, (list, tuple, set)):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
    return None


def _changing(function: types.FunctionType) -> str | None:
    """Return the name of what a function remembers from one call to the next, or could."""
    if function.__module__.split(".")[0] in _SHAREABLE:
        return None
    names = function.__code__.co_freevars
    held = [(name, cell.cell_contents) for name, cell in zip(names, function.__closure__ or (), strict=True)]
    held += [(name, v) for name, v in (function.__kwdefaults__ or {}).items()]
    given = function.__code__.co_varnames[: function.__code__.co_argcount]
    held += list(zip(reversed(given), reversed(function.__defaults__ or ()), strict=False))
    return next((name for name, value in held if not _constant(value)), None)


def _constant(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(_constant(item) for item in value)
    if isinstance(value, types.FunctionType):
        return _changing(value) is None
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    plain = (bool, int, float, complex, str, bytes, type(None), np.generic, type, types.ModuleType, Mechanism)
    return isinstance(value, (*plain, types.BuiltinFunctionType))
