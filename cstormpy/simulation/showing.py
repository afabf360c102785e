"""Shows a run while it runs: samples to the live window, its commands to the run, and the pace.

The window is a process of its own (`cstormpy.live`). What its panel asks for is carried out between two steps; a run
that is paused, or ahead of its pace, sleeps until the window has something to say.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import CstormError, InvalidType, InvalidValue
from cstormpy.live import Knob, LawChoice, LiveFeed, LivePane
from cstormpy.simulation.panes import Pane
from cstormpy.simulation.runner import Run

__all__ = ["FRAMES", "Showing", "check_pace", "controls_of", "wants_window"]

Array = NDArray[np.float64]

#: Frames in a second of a paced run: no step is longer than one of them.
FRAMES = 30.0
#: A paced run that is ahead by less than this does not sleep [s].
_SLACK = 1e-3
#: Seconds of sleep between two looks at a window that has nothing to say.
_NAP = 0.5


def check_pace(pace: Any) -> float | None:
    """Return a pace, times real time; None for as fast as possible."""
    if pace is None:
        return None
    if isinstance(pace, bool) or not isinstance(pace, (int, float)):
        raise InvalidType(f"pace: expected a number (1 for real time) or None, got {pace!r}")
    if not 0.0 < pace < float("inf"):
        raise InvalidValue(f"pace: expected a positive number or None for as fast as possible, got {pace!r}")
    return float(pace)


def wants_window(bd: Any) -> bool:
    """Whether a diagram has blocks that are made for a live window."""
    return any(getattr(block, "pane_kind", None) for block in bd.blocklist)


def controls_of(bd: Any) -> list[Knob | LawChoice]:
    """Return what can be turned in a diagram: the numbers among its blocks' parameters, and the choice of laws."""
    controls: list[Knob | LawChoice] = []
    for block in bd.blocklist:
        laws = getattr(block, "laws", None)
        if laws is not None and hasattr(laws, "names") and hasattr(block, "law"):
            controls.append(LawChoice(str(block.name), list(laws.names), str(block.law)))
        for name in block._parameters:
            controls += _knobs(str(block.name), name, getattr(block, name, None))
    return controls


def _knobs(block: str, name: str, value: Any) -> Iterator[Knob]:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating, np.ndarray)):
        return
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "if" or numbers.size > 6:
        return
    if numbers.ndim == 0:
        yield Knob(block, name, float(numbers))
    else:
        for k, number in enumerate(numbers.ravel()):
            yield Knob(block, name, float(number), index=k)


class Showing:
    """One run in a live window.

    Parameters
    ----------
    feed : LiveFeed
        The window, which may be none at all; a pace is kept without one too.
    bd : BlockDiagram
    run : Run
    panes : list of Pane
    pace : float or None
    """

    def __init__(self, feed: LiveFeed | None, bd: Any, run: Run, panes: list[Pane], pace: float | None) -> None:
        self.feed, self.bd, self.run, self.panes = feed, bd, run, panes
        self.paused = False
        self._once = self._begun = False
        self._longest = run.settings.max_step
        self._set_pace(pace)

    def _begin(self) -> None:
        """Describe the panes and controls to the window; the signals have been computed once by now."""
        if self.feed is None or not self.feed.alive:
            return
        shown = [self._described(pane) for pane in self.panes]
        self.feed.show(shown, controls_of(self.bd), begin=self.run.t, end=self.run.end, pace=self.pace)

    def _described(self, pane: Pane) -> LivePane:
        width = pane.row().size
        source = pane.signals[0].block if pane.kind == "mechanism" else None
        return LivePane(
            name=pane.name,
            kind=pane.kind,
            labels=pane.labels(width),
            title=pane.title,
            unit=pane.unit,
            mechanism=pane.mechanism,
            options=pane.options,
            push=str(source.name) if source is not None and hasattr(source, "push") else None,
        )

    def sample(self, t: float, x: Array) -> None:
        """Show the point where the run stands, when its time has come; carry out what the window asks for."""
        del x
        if not self._begun:
            self._begun = True
            self._begin()
        self._keep_pace(t)
        feed = self.feed
        if feed is None:
            return
        if feed.alive:
            feed.sample(t, np.concatenate([pane.row() for pane in self.panes]) if self.panes else np.zeros(0))
        self._obey()
        if self._once:
            self._once, self.paused = False, True
            feed.state("paused", self.pace)
        while self.paused and self.run.simstate.stop is None:
            if not feed.alive:
                self.paused = False  # nobody is left who could end the pause
            feed.wait(_NAP)
            self._obey()

    def finish(self) -> None:
        """Tell the window that the run has ended."""
        if self.feed is not None:
            self.feed.finish(self.run.message)

    # the pace

    def _set_pace(self, pace: float | None) -> None:
        self.pace = pace
        self._zero: tuple[float, float] | None = None
        self.run.limit_step(min(self._longest, pace / FRAMES) if pace is not None else self._longest)

    def _keep_pace(self, t: float) -> None:
        """Sleep until real time has come as far as simulated time."""
        if self.pace is None:
            return
        if self._zero is None:
            self._zero = (time.perf_counter(), t)
        while self.pace is not None and self._zero is not None and self.run.simstate.stop is None and not self.paused:
            ahead = (t - self._zero[1]) / self.pace - (time.perf_counter() - self._zero[0])
            if ahead < _SLACK:
                return
            if self.feed is None:
                time.sleep(min(ahead, _NAP))
            elif self.feed.wait(min(ahead, _NAP)):
                self._obey()

    # what the window asks for

    def _obey(self) -> None:
        assert self.feed is not None
        for command in self.feed.commands():
            try:
                self._carry_out(command)
            except CstormError as error:
                self.feed.message(str(error))
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self.feed.message(f"{command.get('do')}: {type(error).__name__}: {error}")

    def _carry_out(self, command: dict[str, Any]) -> None:
        """Carry out one command of `LiveFeed.commands`; what changes the diagram waits for the end of the step."""
        assert self.feed is not None
        what = command["do"]
        if what in ("run", "pause"):
            self.paused = what == "pause"
            self._zero = None
            self.feed.state("paused" if self.paused else "running", self.pace)
        elif what == "step":
            self.paused, self._once, self._zero = False, True, None
        elif what == "stop":
            self.paused = False
            self.run.simstate.stop = "the user, in the live window"
        elif what == "pace":
            self._set_pace(check_pace(command["value"]))
            self.feed.state("paused" if self.paused else "running", self.pace)
        else:
            self._change(what, self.bd.blocknames[command["block"]] if "block" in command else None, command)

    def _change(self, what: str, block: Any, command: dict[str, Any]) -> None:
        if what == "set":
            self.run.commands.put(lambda: self._set(block, command["name"], command.get("index"), command["value"]))
        elif what == "law":
            self.run.commands.put(lambda: block.select(command["name"]))
        elif what == "push":
            self.run.commands.put(lambda: block.push(command["link"], command["force"], command["point"]))
        elif what == "release":
            for other in [block] if block is not None else self.bd.blocklist:
                if hasattr(other, "push") and hasattr(other, "release"):
                    self.run.commands.put(other.release)

    def _set(self, block: Any, name: str, index: int | None, value: float) -> None:
        before = getattr(block, name)
        new: Any = value
        if index is not None:
            new = np.array(before, dtype=float)
            new.flat[index] = value
        try:
            block._parameters[name](block, name, new)
        except (CstormError, ValueError, TypeError) as error:
            assert self.feed is not None
            self.feed.message(f"{block.name}: {error}")
            self.feed.value(str(block.name), name, float(np.asarray(before).flat[index or 0]), index)
