"""Messages about a function that numba refuses: what it reads that compiled code cannot, and the remedy."""

from __future__ import annotations

import dis
import itertools
import random
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.fingerprints import codes_within

#: A fault of numba's own, which tells of its objects and not of the function: all but the line.
_FAULT = re.compile(r"^<[^>]* object at 0x[0-9a-f]+>.*?(?=, in the function at line|$)")
#: What numba says of a function that writes into an array of its module, of what surrounds it, or of its object.
_WRITING = "setitem(readonly array"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_WHERE = re.compile(r"in (the function at )?line \d+ of .*")
_NO_REASON = "it fails without telling why, as where one branch returns whole numbers and another floats"
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def told(function: types.FunctionType, said: str) -> str:
    """Return why numba refuses a function, from what the function reads and from what numba says on one line.

    Examples
    --------
    >>> gains = [1.0, 2.0]
    >>> told(lambda x: gains[0] * x, "<numba.core.base.OverloadSelector object at 0x7fee>, (List(float64, True),)")
    "it reads 'gains', a list; make it a tuple or an array"
    """
    unfit = {name: what for name, value in _read(function) if (what := _unfit(value))}
    reasons = [f"it reads {name!r}, {what}" for name, what in unfit.items()]
    if _WRITING in said:
        where = _WHERE.search(said)
        said, reasons = where[0] if where else "", [*reasons, "it writes into an array that it does not make itself"]
    rest = _ADDRESS.sub("", _FAULT.sub("", said)).removeprefix(", ")
    if not reasons and _FAULT.match(said):
        reasons = ["it reads what compiled code cannot hold"]
    if any(f"{name!r}" in _WHERE.sub("", rest) for name in unfit):  # said already, and with the remedy
        where = _WHERE.search(rest)
        rest = where[0] if where else ""
    if not reasons and _WHERE.fullmatch(rest):
        reasons = [_NO_REASON]
    return "; ".join([*reasons, rest] if rest else reasons)


def draws_numbers(function: types.FunctionType) -> bool:
    """Tell whether a function reads a random generator: it gives something else each time that it is asked."""
    return any(isinstance(value, _GENERATORS) for _, value in _read(function))


def _read(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Return what a function reads of its defaults, its module, what surrounds it and modules that it names."""
    code, defaults = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    spaces = {"LOAD_GLOBAL": function.__globals__, "LOAD_DEREF": {name: cell.cell_contents for name, cell in cells}}
    for part in codes_within(code):
        for here, after in itertools.pairwise(dis.get_instructions(part)):
            name, space = here.argval, spaces.get(here.opname, {})
            if name in space:
                value = space[name]
                if isinstance(value, types.ModuleType) and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    name, value = f"{name}.{after.argval}", getattr(value, after.argval, None)
                yield name, value


def _unfit(value: Any) -> str | None:
    """Return what a value is that compiled code cannot read, with the remedy; None where it may."""
    if isinstance(value, list):
        return "a list; make it a tuple or an array"
    if isinstance(value, (dict, set)):
        return f"a {type(value).__name__}; take out what is needed, as numbers, tuples or arrays of their own names"
    if isinstance(value, _GENERATORS):
        return "a random generator, of which each call changes the state; draw the numbers beforehand into an array"
    if isinstance(value, types.FunctionType) and not value.__module__.startswith("numpy"):
        return "a function that is not compiled; put @numba.njit before it"
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return "an array of objects; make it one of numbers"
    return None
