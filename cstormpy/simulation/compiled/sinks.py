"""Sinks that compute nothing: which need not be called at each point of a compiled run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cstormpy.simulation.bdsim_blocks import class_name

_silent: dict[str, Callable[[Any], bool]] = {}


def silent_sink(*classes: str, when: Callable[[Any], bool] = lambda block: True) -> None:
    """Say that the `step` of a sink need not be called at each point of a run: always, or as ``when`` tells."""
    _silent.update(dict.fromkeys(classes, when))
    _rule_of.cache_clear()


def is_silent(block: Any) -> bool:
    """Tell whether nothing happens in the `step` of a sink."""
    kind: Any = type(block)
    return bool(_rule_of(kind)(block))


@functools.cache
def _rule_of(kind: type) -> Callable[[Any], bool]:
    """Return what tells of a block of a class whether nothing happens in its `step`."""
    for base in kind.__mro__:
        silent = _silent.get(class_name(base))
        if silent is not None:
            return silent
        if "step" in vars(base):
            return lambda block: getattr(block, "silent", False)
    return lambda block: False


silent_sink(
    "bdsim.blocks.sinks.Null", "bdsim.blocks.sinks.Watch", "bdsim.blocks.sinks.Stop", "bdsim.blocks.sinks.Event"
)
silent_sink(
    "bdsim.blocks.displays.Scope",
    "bdsim.blocks.displays.ScopeXY",
    "bdsim.blocks.displays.ScopeXY1",
    when=lambda block: not getattr(block, "_enabled", True),
)
