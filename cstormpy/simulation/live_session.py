"""Shows a run while it runs: samples to the live window, its commands to the run, and the pace.

The window is a process of its own (`cstormpy.live`). What its panel asks for is carried out between two steps; a run
that is paused, or ahead of its pace, sleeps until the window has something to say.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cstormpy.arguments import option, positive
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidType, InvalidValue, ShapeError, reason_of, shown, unknown_name
from cstormpy.live import Knob, LawChoice, LiveFeed, LivePane
from cstormpy.simulation.given_arguments import check_numbers
from cstormpy.simulation.panes import Pane
from cstormpy.simulation.runner import Run

#: Frames in a second of a paced run: no step is longer than one of them.
FRAMES = 30.0
#: A paced run that is ahead by less than this does not sleep [s].
_SLACK = 1e-3
#: The least pace, by which a second takes twelve days: at a smaller one a run stands still for good.
_SLOWEST = 1e-6
#: Seconds that a paced run waits for its window to appear.
_PATIENCE = 10.0
#: Seconds of sleep between two looks at a window that has nothing to say.
_NAP = 0.5
#: A parameter of so many numbers at most has knobs.
_MOST_KNOBS = 6
#: Parameters that take effect when a run starts: turned during one, they would do nothing.
_AT_START = ("q0", "qd0", "x0")
_COMMANDS = ("run", "pause", "step", "stop", "pace", "set", "law", "push", "release")
#: What a command may raise that asks for something that there is not.
_MISTAKES = (CstormError, LookupError, TypeError, ValueError, AttributeError)


def check_pace(pace: Any) -> float | None:
    """Return a pace, times real time; None for as fast as possible."""
    if pace is None:
        return None
    try:
        found = positive(pace, "pace")
    except (InvalidType, ShapeError):
        raise InvalidType(f"pace: expected a number (1 for real time) or None, got {shown(pace)}") from None
    except InvalidValue:
        told = f"pace: expected a positive number or None for as fast as possible, got {shown(pace)}"
        raise InvalidValue(told) from None
    if found < _SLOWEST:
        raise InvalidValue(f"pace: expected a number of at least {_SLOWEST:g} (1 for real time), got {found:g}")
    return found


def wants_window(bd: Any) -> bool:
    """Tell whether a diagram has blocks that are made for a live window."""
    return any(getattr(block, "pane_kind", None) for block in bd.blocklist)


def controls_of(bd: Any) -> list[Knob | LawChoice]:
    """Return what can be turned in a diagram: the choice of laws, and the numbers among its blocks' parameters.

    Those of blocks that have laws come first. A block may say between which ends a number of its is turned, in an
    attribute `ranges`: (low, high) by the parameter's name.
    """
    controls: list[Knob | LawChoice] = []
    for block in sorted(bd.blocklist, key=lambda block: not _laws_of(block)):
        laws = _laws_of(block)
        if laws and callable(getattr(block, "select", None)):
            controls.append(LawChoice(str(block.name), laws, str(block.active_law)))
        for name in block._parameters:
            if name not in _AT_START:
                ends = getattr(block, "ranges", {}).get(name, (None, None))
                controls += _knobs(str(block.name), name, getattr(block, name, None), *ends)
    return controls


def _laws_of(block: Any) -> list[str]:
    """Return the names of a block's laws; none of most blocks."""
    laws: Any = getattr(block, "laws", None)
    return list(laws.names) if hasattr(laws, "names") and hasattr(block, "active_law") else []


def _knobs(block: str, name: str, value: Any, low: float | None, high: float | None) -> Iterator[Knob]:
    if isinstance(value, (bool, str)):
        return
    try:
        numbers = np.asarray(value)
    except ValueError:
        return
    if numbers.dtype.kind not in "if" or numbers.size > _MOST_KNOBS:
        return
    if numbers.ndim == 0:
        yield Knob(block, name, float(numbers), low, high)
    else:
        for k, number in enumerate(numbers.ravel()):
            yield Knob(block, name, float(number), low, high, index=k)


class LiveSession:
    """One run in a live window.

    Parameters
    ----------
    feed : LiveFeed
        The window, which may be none at all; a pace is kept without one too.
    bd : BlockDiagram
    run : Run
    panes : list of Pane
    pace : float, None or "auto"
        Times real time, None for as fast as possible; "auto" is 1 as long as somebody has the window open, else None.
    """

    def __init__(self, feed: LiveFeed | None, bd: Any, run: Run, panes: list[Pane], pace: float | str | None) -> None:
        self.feed, self.bd, self.run, self.panes = feed, bd, run, panes
        self.paused = False
        #: Seconds in which the run waited for its window to open, or for the end of a pause.
        self.idle = 0.0
        self._automatic = isinstance(pace, str) and pace == "auto"
        self._begun = self._over = False
        self._steps = 0  # until the next pause
        self._laws: dict[str, str] = {}
        #: Of the panes with a mechanism: whose motion is seen, and the gravity that the window was told.
        self._gravities: dict[str, tuple[Any, list[float]]] = {}
        self._longest = run.settings.max_step
        if self._automatic:
            pace = 1.0 if feed is not None and feed.alive else None
        self._set_pace(check_pace(pace))

    @functools.cached_property
    def _blocks(self) -> dict[str, Any]:
        return {str(block.name): block for block in self.bd.blocklist}

    def _begin(self) -> None:
        """Describe the panes and controls to the window; the signals have been computed once by now."""
        if self.feed is None or not self.feed.alive:
            return
        shown = [self._described(pane) for pane in self.panes]
        controls = controls_of(self.bd)
        self._laws = {choice.block: choice.active for choice in controls if isinstance(choice, LawChoice)}
        self.feed.show(shown, controls, begin=self.run.t, end=self.run.end, pace=self.pace)
        if self.pace is not None:
            begin = time.perf_counter()
            self.feed.wait_until_ready(_PATIENCE)  # or the first second is over before anybody sees it
            self.idle += time.perf_counter() - begin

    def _described(self, pane: Pane) -> LivePane:
        widths = [column.size for column in pane.columns()]
        source = pane.signals[0].block if pane.kind == "mechanism" else None
        mechanism = pane.mechanism
        if source is not None and isinstance(getattr(type(source), "gravity", None), property):
            self._gravities[pane.name] = (source, source.gravity.tolist())
            mechanism = mechanism.with_gravity(source.gravity)
        return LivePane(
            name=pane.name,
            kind=pane.kind,
            labels=pane.labels(widths),
            title=pane.title,
            unit=pane.unit(widths),
            mechanism=mechanism,
            options=pane.options,
            push=str(source.name) if source is not None and hasattr(source, "push") else None,
            names=pane.names(widths),
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
            self._tell_laws(feed)
            self._tell_gravities(feed)
        if self._steps:
            self._steps -= 1
            if not self._steps:
                self.paused = True
                feed.state("paused", self.pace)
        self._obey()
        begin = time.perf_counter()
        while self.paused and self.run.simstate.stop is None:
            if not feed.alive:
                self.paused = False  # nobody is left who could end the pause
            feed.wait(_NAP)
            self._obey()
        self.idle += time.perf_counter() - begin

    def _tell_laws(self, feed: LiveFeed) -> None:
        """Tell the window of laws that were changed by other means, or by it."""
        for name, told in self._laws.items():
            active = str(self._blocks[name].active_law)
            if active != told:
                self._laws[name] = active
                feed.law(name, active)

    def _tell_gravities(self, feed: LiveFeed) -> None:
        """Tell the window of gravity that was changed, by it or by other means."""
        for name, (source, told) in self._gravities.items():
            now = source.gravity.tolist()
            if now != told:
                self._gravities[name] = (source, now)
                feed.gravity(name, now)

    def finish(self) -> None:
        """Tell the window that the run has ended; what it has asked for too late is left undone."""
        self._over = True
        if self.feed is not None:
            self.feed.finish(self.run.message)

    # the pace

    def _set_pace(self, pace: float | None) -> None:
        self.pace = pace
        self._zero: tuple[float, float] | None = None
        self.run.limit_step(min(self._longest, pace / FRAMES) if pace is not None else self._longest)

    def _keep_pace(self, t: float) -> None:
        """Sleep until real time has come as far as simulated time."""
        if self._automatic and self.feed is not None and not self.feed.alive:
            self._automatic = False
            self._set_pace(None)  # nobody watches any more
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
            except _MISTAKES as error:
                self.feed.message(reason_of(error))

    def _carry_out(self, command: dict[str, Any]) -> None:
        """Carry out one command of `LiveFeed.commands`; what changes the diagram waits for the end of the step."""
        assert self.feed is not None
        what = command["do"]
        if what in ("run", "pause"):
            self.paused = what == "pause"
            self._steps, self._zero = 0, None
            self.feed.state("paused" if self.paused else "running", self.pace)
        elif what == "step":
            self.paused, self._zero = False, None
            self._steps += 1
        elif what == "stop":
            self.paused = False
            self.run.simstate.stop = "the user, in the live window"
        elif what == "pace":
            self._automatic = False
            self._set_pace(check_pace(command["value"]))
            self.feed.state("paused" if self.paused else "running", self.pace)
        else:
            self._change(what, command)

    def _change(self, what: str, command: dict[str, Any]) -> None:
        block: Any = self._block(command["block"]) if command.get("block") is not None else None
        if what == "set":
            name, index, value = command["name"], command.get("index"), command["value"]
            self._between_steps(lambda: self._set(block, name, index, value))
        elif what == "law":
            self._between_steps(lambda: self._select(block, command["name"]))
        elif what == "push":
            link, force, point = command["link"], command["force"], command["point"]
            self._between_steps(lambda: block.push(link, force, point))
        elif what == "release":
            for other in [block] if block is not None else self.bd.blocklist:
                if hasattr(other, "push") and hasattr(other, "release"):
                    self._between_steps(other.release)
        else:
            raise unknown_name("command", what, _COMMANDS)

    def _block(self, name: str) -> Any:
        return self._blocks[option(name, "block", self._blocks)]

    def _between_steps(self, action: Callable[[], object]) -> None:
        """Have something done where the run stands; what is refused is said in the window, and the run goes on."""

        def act() -> None:
            if self._over:
                return  # a later run of the same simulation finds it
            try:
                action()
            except _MISTAKES as error:
                assert self.feed is not None
                self.feed.message(reason_of(error))

        self.run.commands.put(act)

    def _select(self, block: Any, law: str) -> None:
        try:
            block.select(law)
        except CstormError:
            assert self.feed is not None
            self.feed.law(str(block.name), str(block.active_law))  # as it stands
            raise

    def _set(self, block: Any, name: str, index: int | None, value: Any) -> None:
        """Set a parameter, or one number of it; the window is told where it stands if that is refused."""
        option(name, f"{block.name}: parameter", block._parameters)
        held = getattr(block, name)
        before = np.asarray(held, dtype=float)
        if not 0 <= (index or 0) < before.size:
            raise InvalidValue(f"{block.name}: {name} has {before.size} numbers, there is none of index {index}")
        try:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise InvalidValue(f"{name}: expected a finite number, got {shown(value)}")
            new: Any = value
            if index is not None:
                new = before.copy()
                new.flat[index] = value
            block._parameters[name](block, name, new)  # set_param would print it
            try:
                check_numbers([block])
            except CstormError:
                block._parameters[name](block, name, held)
                raise
        except _MISTAKES as error:
            assert self.feed is not None
            self.feed.value(str(block.name), name, float(before.flat[index or 0]), index)
            said = reason_of(error)
            raise InvalidValue(said if repr(str(block.name)) in said else f"{block.name}: {said}") from error
