"""What functions are made of: the codes within them, what stands around them, and whose module is theirs."""

from __future__ import annotations

import contextlib
import dis
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


def blocks_named(func: types.FunctionType) -> list[Any]:
    """Return the blocks of diagrams that a function reads, as they are, by a port, or in a list or the like."""
    names = {name for code in codes_within(func.__code__) for name in code.co_names}
    read = [func.__globals__[name] for name in names if name in func.__globals__]
    read += [*surrounding(func).values(), func.__defaults__, func.__kwdefaults__]
    found = []
    for value in read:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        found += [each.block if isinstance(each, Plug) else each for each in items if isinstance(each, (Block, Plug))]
    return found


def stored_names(code: types.CodeType, where: str) -> set[str]:
    """Return what a function, or one within it, sets: "GLOBAL" those of its module, "DEREF" also those around it."""
    steps = (step for part in codes_within(code) for step in dis.get_instructions(part))
    return {step.argval for step in steps if step.opname == f"STORE_{where}"}


def is_installed(module: str) -> bool:
    """Tell whether a module is one of the language or of a library, not of the user."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:  # one that is built into the language, or where somebody types
        return module in sys.builtin_module_names
    return "site-packages" in path or path.startswith(_LIBRARY)
