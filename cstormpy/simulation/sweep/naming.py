"""What the names of a sweep's axes mean, and what tells one sweep from another."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cstormpy.errors import InvalidValue, unknown_name
from cstormpy.simulation.sweep.measures import digest
from cstormpy.simulation.sweep.workers import Varied

__all__ = ["accepted", "diagram_digest", "meant"]

_NUMBERED = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]$")


def accepted(build: Callable[..., Any] | None) -> tuple[list[str], bool]:
    """Return the options that a builder names, and whether it takes others too."""
    if build is None:
        return [], False
    try:
        parameters = list(inspect.signature(build).parameters.values())[1:]
    except (TypeError, ValueError):
        return [], True
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [p.name for p in parameters if p.kind in kinds]
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)


def meant(name: str, bd: Any, build: Callable[..., Any] | None, fixed: Mapping[str, Any]) -> Varied:
    """Return what an axis of this name varies.

    Raises
    ------
    UnknownName
        With the nearest spelling among the options, states and parameters that there are.
    InvalidValue
        Where it is given as a fixed option too.
    """
    options, others = accepted(build)
    if name in fixed:
        raise InvalidValue(f"option {name!r}: is to vary, and given as a fixed one too; leave out one of them")
    if name in options:
        return Varied(name, "option")
    if name in bd.statenames:
        return Varied(name, "state")
    block = max((b for b in bd.blocknames if name.startswith((f"{b}:", f"{b}."))), key=len, default=None)
    if block is not None:
        parameter = name[len(block) + 1 :]
        known = bd.blocknames[block]._parameters
        if parameter in known:
            return Varied(name, "parameter", block, parameter)
        numbered = _NUMBERED.match(parameter)
        if numbered and numbered["name"] in known:
            return Varied(name, "parameter", block, numbered["name"], int(numbered["index"]))
    elif others and name.isidentifier():
        return Varied(name, "option")
    tunable = [f"{b.name}:{p}" for b in bd.blocklist for p in b._parameters]
    raise unknown_name("axis", name, [*options, *bd.statenames, *tunable])


def diagram_digest(bd: Any) -> str:
    """Return what tells a diagram from another: its blocks, their initial states, parameters and functions."""
    told = [[str(b.name), type(b).__qualname__, *_told(b)] for b in bd.blocklist]
    told.append([str(s) for s in np.asarray(bd.getstate0(), dtype=float).tolist()])
    told.append([f"{w.start.block.name}[{w.start.port}] {w.end.block.name}[{w.end.port}]" for w in bd.wirelist])
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _told(block: Any) -> list[str]:
    out = []
    for name in block._parameters:
        value = getattr(block, name, None)
        array = np.asarray(value)
        text = str(array.tolist()) if array.dtype.kind in "biufU" else repr(value)
        out.append(f"{name} {type(value).__name__ if ' at 0x' in text else text}")
    functions = [(n, v) for n, v in sorted(vars(block).items()) if isinstance(v, types.FunctionType)]
    return [*out, *(f"{name} {digest(f)}" for name, f in functions)]
