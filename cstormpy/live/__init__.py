"""Live scopes, mechanism and panel, in a process of their own; this side of it, which knows no Qt.

>>> from cstormpy import live
>>> feed = live.LiveFeed("pendulum")            # doctest: +SKIP
>>> feed.show(panes, controls, end=10.0)        # doctest: +SKIP
>>> feed.sample(t, row)                         # doctest: +SKIP
>>> for command in feed.commands(): ...         # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cstormpy.live.availability import available as available
    from cstormpy.live.availability import is_off as is_off
    from cstormpy.live.description import Knob as Knob
    from cstormpy.live.description import LawChoice as LawChoice
    from cstormpy.live.description import LivePane as LivePane
    from cstormpy.live.feed import LiveFeed as LiveFeed

#: Where each name lives. They are imported when they are first used: the window's process, which imports this package
#: too, is to be on the screen before anything slow.
_HOMES = {
    "Knob": "description",
    "LawChoice": "description",
    "LiveFeed": "feed",
    "LivePane": "description",
    "available": "availability",
    "is_off": "availability",
}

__all__ = ["Knob", "LawChoice", "LiveFeed", "LivePane", "available", "is_off"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
