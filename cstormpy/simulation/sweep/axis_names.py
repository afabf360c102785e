"""Meaning of the names of a sweep's axes: parameters, starts, options of a run or a builder."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidValue, unknown_name
from cstormpy.simulation.sweep.workers import AxisTarget

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


def meant(name: str, bd: Any, build: Callable[..., Any] | None, fixed: Mapping[str, Any]) -> AxisTarget:
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
        return AxisTarget(name, "option")
    if name in bd.statenames:
        return AxisTarget(name, "state")
    block = max((b for b in bd.blocknames if name.startswith((f"{b}:", f"{b}."))), key=len, default=None)
    if block is not None:
        parameter = name[len(block) + 1 :]
        known = bd.blocknames[block]._parameters
        if parameter in known:
            return AxisTarget(name, "parameter", block, parameter)
        numbered = _NUMBERED.match(parameter)
        if numbered and numbered["name"] in known:
            return AxisTarget(name, "parameter", block, numbered["name"], int(numbered["index"]))
    elif others and name.isidentifier():
        return AxisTarget(name, "option")
    mark = ":" if ":" in name else "."
    tunable = [f"{b.name}{mark}{p}" for b in bd.blocklist for p in b._parameters]
    raise unknown_name("axis", name, [*options, *bd.statenames, *tunable])


def check_twice(varied: Sequence[AxisTarget]) -> None:
    """Refuse two axes that set the same number.

    Raises
    ------
    InvalidValue
        Naming both.
    """
    for k, one in enumerate(varied):
        for other in varied[:k]:
            same = one.kind == "parameter" and (one.block, one.parameter) == (other.block, other.parameter)
            if same and (one.number == other.number or None in (one.number, other.number)):
                raise InvalidValue(f"sweep: {one.block}.{one.parameter} is named twice: {other.name!r}, {one.name!r}")
