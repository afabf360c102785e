"""Actions of functions of the user: what they may do, on some way through them, beside computing and returning numbers.

All ways through a function are followed when it is written down (`graph.paths`), those too that no run takes. A message
to a log, a request to another thread, a write to a socket behind an ``if`` must not be made then, so that the ways are
not followed of what can reach anything that acts.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterable
from typing import Any

from cstormpy.simulation.compiled.fingerprints import is_by_identity
from cstormpy.simulation.surroundings import codes_within, is_installed, surrounding

#: Packages and modules that compute, and do nothing else.
_COMPUTING = frozenset(
    "__future__ _abc _collections_abc _functools _operator abc bisect builtins cmath collections copy copyreg cstormpy "
    "dataclasses decimal enum fractions functools heapq itertools math numba numbers numpy operator re scipy "
    "statistics string types typing".split()
)
_ACTING = ("cstormpy.simulation", "cstormpy.live", "cstormpy.report", "cstormpy.blocks", "blocks")


def action_of(objects: Iterable[Any], held: Callable[[set[str]], Iterable[Any]] = lambda names: ()) -> str:
    """Return what of the objects that some functions can reach may act, "" if there is none.

    Parameters
    ----------
    objects : iterable
        All of them. Blocks and diagrams count where a function of the user names them.
    held : function
        Gives what else the user's functions read, by the names that stand in them.

    Examples
    --------
    >>> import logging
    >>> action_of([3.0, logging])
    'logging'
    """
    objects = list(objects)
    named, names = [], set[str]()
    for function in objects:
        if isinstance(function, types.FunctionType) and not is_installed(function.__module__):
            read = {name for code in codes_within(function.__code__) for name in code.co_names}
            space = function.__globals__
            named += [space[name] for name in read if name in space] + [*surrounding(function).values()]
            names |= read
    known = [each for each in objects if not (is_by_identity(each) or _is_class_of_block(each))]
    return next(filter(None, map(_acting, [*known, *named, *held(names)])), "")


def _is_class_of_block(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith(("bdsim", *_ACTING))


def _acting(value: Any) -> str:
    """Return what a value is called, where it may act."""
    if isinstance(value, types.MethodType):
        value = value.__func__
    if isinstance(value, types.ModuleType):
        return value.__name__ if _acts(value.__name__) else ""
    if isinstance(value, types.FunctionType):
        imported = next(filter(_acts, _imported(value.__code__)), "")
        if imported:
            return imported
    made = isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType))
    return _name_if_acts(value if made else type(value))


def _name_if_acts(value: Any) -> str:
    module = str(getattr(value, "__module__", None) or "builtins")
    return f"{module}.{value.__qualname__}" if _acts(module) else ""


def _acts(module: str) -> bool:
    """Tell whether a module is one of the language or of a library that is not known to do nothing but compute."""
    if module.startswith(_ACTING):
        return True
    return module.partition(".")[0] not in _COMPUTING and is_installed(module)


def _imported(code: types.CodeType) -> list[str]:
    """Return the modules that a function imports when it is called."""
    steps = [step for part in codes_within(code) for step in dis.get_instructions(part)]
    return [str(step.argval) for step in steps if step.opname == "IMPORT_NAME"]
