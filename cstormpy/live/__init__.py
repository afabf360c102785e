"""Live scopes, mechanism and panel, in a process of their own; this side of it, which knows no Qt.

>>> from cstormpy import live
>>> feed = live.LiveFeed("pendulum")            # doctest: +SKIP
>>> feed.show(panes, controls, end=10.0)        # doctest: +SKIP
>>> feed.sample(t, row)                         # doctest: +SKIP
>>> for command in feed.commands(): ...         # doctest: +SKIP
"""

from __future__ import annotations

from cstormpy.live.availability import available
from cstormpy.live.description import Knob, LawChoice, LivePane
from cstormpy.live.feed import LiveFeed

__all__ = ["Knob", "LawChoice", "LiveFeed", "LivePane", "available"]
