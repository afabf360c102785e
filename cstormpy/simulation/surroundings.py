"""What functions are made of: the codes within them, what stands around them, and whose module is theirs."""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from bdsim.components import Block, Plug

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


def blocks_named(func: types.FunctionType) -> list[Any]:
    """Return the blocks of diagrams that a function reads, as they are, by a port, or in a list or the like."""
    read = [*globals_read(func).values(), *surrounding(func).values(), func.__defaults__, func.__kwdefaults__]
    found = []
    for value in read:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        found += [each.block if isinstance(each, Plug) else each for each in items if isinstance(each, (Block, Plug))]
    return found


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
