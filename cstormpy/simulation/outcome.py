"""Makes the result of a run: what was recorded, how it ended, where to go on; writes its figures if nobody reads it."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cstormpy import report
from cstormpy.arrays import Array
from cstormpy.errors import CstormError
from cstormpy.reporting import notice
from cstormpy.simulation.limits import limits_left
from cstormpy.simulation.panes import Pane, RecordedPane
from cstormpy.simulation.recording import Recording, Signal, paths, signal_name
from cstormpy.simulation.results import Deferred, Result
from cstormpy.simulation.runner import Run
from cstormpy.simulation.units import coordinates_of, mechanisms_of, named_values, units_of


def result_of(bd: Any, run: Run) -> Result:
    """Return the result of a run as far as it got; what few look at is made of it when somebody does."""
    recording, blocks = run.recording, [*bd.blocklist]
    t, x = recording.points()
    out = Result()
    data = out.data
    data["t"], data["x"], data["xnames"] = t, x, list(bd.statenames)
    for clock in bd.clocklist:
        times, states = clock.getlog(run.simstate)
        name = clock.name.replace(".", "")
        log = Result(name)
        log["t"], log["X"], log["Xnames"] = _in_one(times, 1), _in_one(states, 2), clock.statenames
        out.add(name, log)
    if recording.watched:
        watched = recording.signals[: recording.watched]
        data[".ywatch"] = Deferred(lambda: recording.values[: recording.watched])
        data["y"] = Deferred(lambda: _side_by_side(recording.values[: recording.watched]))
        describe_watched(data, watched)
    data[".paths"] = Deferred(lambda: paths(blocks))
    mechanisms = mechanisms_of(blocks)
    describe_signals(data, mechanisms, recording.signals, recording.panes, lambda: recording.values)
    data[".panes"] = Deferred(_panes(recording, t, mechanisms))
    data[".status"], data[".message"], data[".state"], data[".events"] = (
        run.status,
        run.message,
        run.state(),
        run.events,
    )
    data[".left_limits"] = limits_left(run.diagram.continuous, blocks, t, x)
    data[".stats"] = Deferred(
        functools.partial(
            Result, "stats", integration_time_points=len(t), steps=run.steps, evaluations=run.diagram.count
        )
    )
    return out


def describe_watched(data: dict[str, Any], watched: list[Signal]) -> None:
    """Put into a result what watched signals are called, which are held, and what their values stand for."""
    data["ynames"] = [s.name for s in watched]
    data["._held"] = Deferred(lambda: [s.name for s in watched if s.held])
    data[".values"] = named_values(watched)


def describe_signals(
    data: dict[str, Any],
    mechanisms: Mapping[Any, Any],
    signals: list[Signal],
    panes: list[Pane],
    values: Callable[[], list[Any]],
) -> None:
    """Put into a result which outputs there are, and units and coordinates of signals and states.

    Parameters
    ----------
    data
        That of the result.
    mechanisms
        As of `mechanisms_of`.
    signals, panes
        What was recorded, and where it is shown.
    values
        Returns the samples (N, …) of each signal.
    """
    blocks = [*mechanisms]
    data[".outputs"] = Deferred(lambda: [signal_name(b, port) for b in blocks for port in range(b.nout)])
    data[".units"] = Deferred(lambda: units_of(mechanisms, signals, panes, _widths(values())))
    data[".coordinates"] = Deferred(lambda: coordinates_of(mechanisms, signals, _widths(values())))


def _panes(recording: Recording, t: Array, mechanisms: Mapping[Any, Any]) -> Callable[[], list[RecordedPane]]:
    """Return what makes the records of all panes, of what their blocks are told to show now."""
    panes = [(pane, pane.told()) for pane in (recording.panes if len(t) else ())]
    names = {block: block.value_names for block in {s.block: None for pane, _ in panes for s in pane.named}}

    def make() -> list[RecordedPane]:
        by_key = {s.key: values for s, values in zip(recording.signals, recording.values, strict=True)}
        return [
            pane.recorded(t, [by_key[s.key] for s in pane.signals], mechanisms, names, *told) for pane, told in panes
        ]

    return make


def _widths(signals: list[Any]) -> list[int]:
    """Return how many numbers signals have, 0 for one that is a number alone."""
    return [0 if np.ndim(values) == 1 else math.prod(np.shape(values)[1:]) for values in signals]


def _in_one(logged: list[Any], dimensions: int) -> Any:
    """Return what clocks have logged as one array: of single ticks, or of many at once."""
    parts = [np.asarray(part) for part in logged]
    parts = [part if part.ndim == dimensions else part[None] for part in parts]
    return np.concatenate(parts) if parts else np.array([])


def _side_by_side(signals: list[Any]) -> Any:
    """Return signals as columns; those that are no numbers are left out. A run that failed at once has no samples."""
    columns = [np.asarray(s).reshape(len(s), -1) for s in signals if len(s) and np.asarray(s).dtype.kind in "biufc"]
    return np.hstack(columns) if columns else np.zeros((0, 0))


def write_figures(name: str, out: Result, why: str = "") -> None:
    """Write the scopes of a run as pictures into a folder of the diagram's name, and say so in a line."""
    folder = Path(f"{name}_figures")
    files = report.figures(out, folder)
    notice(f"{why}the figures are in {folder}{os.sep}: {', '.join(file.name for file in files)}")


class UnreadResult:
    """The result of the last run that was to have a window, and had none.

    It is in its user's hands, who may look at it or write a report. What nobody has touched when its simulation is
    gone, as of a script that only calls ``sim.run(bd, T=8)``, would be lost: its figures are written then. In an
    interactive session nothing is: whoever sits there was told what to call.
    """

    def __init__(self) -> None:
        self._kept: tuple[str, Result] | None = None

    def keep(self, name: str, out: Result) -> None:
        """Remember a result, in the place of the one before."""
        self._kept = name, out

    def write(self) -> None:
        """Write the figures of what nobody has read."""
        kept, self._kept = self._kept, None
        if kept is None or kept[1].was_read or hasattr(sys, "ps1"):
            return
        try:
            write_figures(*kept, why="nobody read the result of the last run: ")
        except CstormError as error:
            notice(str(error))
