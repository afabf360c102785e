"""What functions are made of: the codes within them, what stands around them, and whose module is theirs."""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

from bdsim import BlockDiagram
from bdsim.components import Block, Clock, Plug

#: What holds nothing else; long lists are full of it.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def surrounding(func: types.FunctionType) -> dict[int, Any]:
    """Return what a function has of those in which it stands, by the place, but for what is not there yet."""
    found = {}
    for k, cell in enumerate(func.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found[k] = cell.cell_contents
    return found


def codes_within(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_within(constant)


def globals_read(func: types.FunctionType) -> dict[str, Any]:
    """Return the globals that a function reads, and functions within it, by name."""
    space = func.__globals__
    return {name: space[name] for name in _names_of(func.__code__, "LOAD_GLOBAL", "LOAD_NAME") if name in space}


def read_by(func: types.FunctionType) -> list[Any]:
    """Return what a function reads beside its arguments, of its globals where it is the user's."""
    defaults = [*(func.__defaults__ or ()), *(func.__kwdefaults__ or {}).values()]
    of_module = globals_read(func).values() if is_of_user(str(func.__module__)) else ()
    return [*surrounding(func).values(), *defaults, *of_module]


def held_by(value: Any) -> list[Any]:
    """Return what a function reads, what a list or the like holds, or an object of the user's or a law."""
    if isinstance(value, types.FunctionType):
        return read_by(value)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        items = value.values() if isinstance(value, dict) else value
        return [each for each in items if type(each) not in _PLAIN]
    return [*vars(value).values()] if has_own(value) else []


def has_own(value: Any) -> bool:
    """Tell whether an object is one of the user's with attributes, or a law that is made of his functions."""
    if isinstance(value, (type, types.ModuleType, Block, Clock, Plug)) or not hasattr(value, "__dict__"):
        return False
    module = str(type(value).__module__)
    return module.startswith("cstormpy.control") or is_of_user(module)


def line_of_user(error: Exception) -> str:
    """Return the innermost line of the user's in which an error came about, in brackets, or nothing."""
    found, cause = "", error.__cause__ or error
    for frame, line in traceback.walk_tb(cause.__traceback__):
        if is_of_user(str(frame.f_globals.get("__name__"))):
            found = f" (line {line} of {os.path.basename(frame.f_code.co_filename)}, in {frame.f_code.co_name})"
    return found


def is_of_user(module: str) -> bool:
    """Tell whether a module is the user's, by its name."""
    return module.partition(".")[0] not in ("bdsim", "cstormpy") and not is_installed(module)


def blocks_within(*values: Any) -> list[Any]:
    """Return the blocks that values are, hold or read: as they are, by a port or by their diagram."""
    stack, seen, found = [*values], set[int](), dict[int, Any]()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (Block, Plug)):
            block = value.block if isinstance(value, Plug) else value
            found[id(block)] = block
        elif isinstance(value, BlockDiagram):
            stack += value.blocklist
        else:
            stack += held_by(value)
    return [*found.values()]


def stored_names(code: types.CodeType, where: str) -> set[str]:
    """Return what a function, or one within it, sets: "GLOBAL" those of its module, "DEREF" also those around it."""
    return {*_names_of(code, f"STORE_{where}")}


@functools.lru_cache(1024)
def _names_of(code: types.CodeType, *steps: str) -> tuple[str, ...]:
    """Return the names that some steps of a function have, and of those within it, in their order."""
    found = (step for part in codes_within(code) for step in dis.get_instructions(part))
    return tuple(dict.fromkeys(step.argval for step in found if step.opname in steps))


def is_installed(module: str) -> bool:
    """Tell whether a module is one of the language or of a library, not of the user."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:  # one that is built into the language, or where somebody types
        return module in sys.builtin_module_names
    return "site-packages" in path or path.startswith(_LIBRARY)
