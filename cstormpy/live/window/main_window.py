"""The window: transport on top, panes tiled below, the panel beside them, and the bar of time at the bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from PySide6.QtCore import QMargins, QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QMessageBox, QSplitter, QVBoxLayout, QWidget

from cstormpy.arrays import Array
from cstormpy.live.ring import RingReader, attach
from cstormpy.live.window.mechanism import MechanismTile
from cstormpy.live.window.panel import Panel
from cstormpy.live.window.scope import ScopeTile
from cstormpy.live.window.starting_window import SIZES, TEXT, TITLE
from cstormpy.live.window.tile import Tile, copy_data, open_menu
from cstormpy.live.window.transport import TimeBar, Transport
from cstormpy.live.window.widgets import make
from cstormpy.live.window.window import Conversation, Window
from cstormpy.live.window.xy import XYTile

_HEIGHTS = ((2, 4), (3, 4), (3, 6), (4, 8), (6, 12))
"""Most pictures, and most scopes, in one column; the first pair that makes few columns is taken."""
_MOST_COLUMNS = 3
_RATE_EVERY = 0.5
"""Seconds over which the rate of the run is measured."""


class MainWindow(Window):
    """The live window.

    It shows the time `now`: of the newest sample while it is `live`, or else what the user scrubbed to.
    """

    def __init__(self, channel: Conversation) -> None:
        super().__init__(channel, SIZES["run"], TITLE)
        self.reader: RingReader | None = None
        self.tiles: list[Tile] = []
        self._columns: list[slice] = []
        self._splitters: list[QSplitter] = []
        self.panel: Panel | None = None
        self.begin, self.end = 0.0, 1.0
        self.newest = self.now = 0.0
        self.live = True
        self._log = Times()
        self._measured = (time.monotonic(), 0.0)
        self._build()
        self._make_shortcuts()

    def _build(self) -> None:
        self.transport = Transport()
        self.transport.asked.connect(self._ask)
        self.transport.back.connect(lambda: self.leaf(-1))
        self.transport.forward.connect(lambda: self.leaf(1))
        self.transport.go_live.connect(self.go_live)
        self.rows.addWidget(self.transport)
        self.middle.addWidget(make(QLabel, TEXT, alignment=Qt.AlignmentFlag.AlignCenter))
        self.rows.addWidget(self.middle, 1)
        bar = make(QFrame, objectName="bar")
        self.time_bar = TimeBar()
        self.time_bar.scrubbed.connect(self.scrub)
        make(QVBoxLayout, bar, contentsMargins=QMargins(4, 3, 4, 1)).addWidget(self.time_bar)
        self.rows.addWidget(bar)

    def _make_shortcuts(self) -> None:
        self.keys = [
            ("Space", "run and pause", self.transport.run_or_pause),
            ("S", "one step of the solver", self.transport.step.click),
            (",", "one logged sample back", lambda: self.leaf(-1)),  # the arrows belong to the sliders
            (".", "one logged sample forward", lambda: self.leaf(1)),
            ("L", "follow the run", self.go_live),
            ("Ctrl+E", "end the run; its data is kept", self.transport.stop.click),
            ("Ctrl+C", "copy the data of the pane under the mouse, or the window's picture", self.copy),
            ("F1", "this list", self.show_keys),
            ("?", "this list", self.show_keys),
        ]
        for keys, _, action in self.keys:
            sequences = [QKeySequence(keys), *([QKeySequence("Shift+?")] if keys == "?" else [])]
            for sequence in sequences:
                QShortcut(sequence, self).activated.connect(action)

    def show_keys(self) -> None:
        """Show what keys and mouse do."""
        self.list_of_keys = show_list(self, [(keys, text) for keys, text, _ in self.keys])

    def copy(self) -> None:
        """Copy the data of the pane under the mouse, or the picture of all."""
        for tile in self.tiles:
            if not tile.isHidden() and tile.underMouse():
                copy_data(tile)
                self.transport.say(f"copied: {tile.pane['title']}")
                return
        QApplication.clipboard().setPixmap(self.grab())
        self.transport.say("copied: the picture of the window")

    def _open_menu(self, tile: Tile, at: QPoint) -> None:
        self.menu = open_menu(tile, self, at, self.transport.say)

    # what the simulation says

    def take(self, message: dict[str, Any]) -> None:
        """Do what a message of the simulation says."""
        said = message.get("say")
        if said == "show":
            self.show_run(message)
            self.channel.send(say="shown")
        elif said == "state":
            self.transport.show_state(message["state"], message.get("message", ""))
            if message["state"] == "ended":
                self._end_controls()
            else:
                self.transport.show_pace(message["pace"])
        elif said == "message":
            self.transport.say(message["text"])
        elif said == "value" and self.panel is not None:
            self.panel.show_value(message["block"], message["name"], message["index"], message["value"])
        elif said == "gravity":
            for tile in self.tiles:
                if isinstance(tile, MechanismTile) and tile.pane["name"] == message["pane"]:
                    tile.view.gravity = np.array(message["value"], dtype=float)
        elif said == "law" and self.panel is not None:
            self.panel.show_law(message["block"], message["name"])

    def _end_controls(self) -> None:
        """Leave nothing to turn or push: nobody listens any more."""
        if self.panel is not None:
            self.panel.setEnabled(False)
        for tile in self.tiles:
            if isinstance(tile, MechanismTile):
                tile.over = True

    def show_run(self, run: dict[str, Any]) -> None:
        """Lay out the panes and controls of a run."""
        memory = run["memory"]
        self.reader = RingReader(attach(memory, memory["size"]), memory["slots"], run["width"])
        self.lay_out(run["title"], run.get("position"))
        self.begin, self.end = run["begin"], max(run["end"], run["begin"] + 1e-9)
        self.newest = self.now = self.begin
        self.time_bar.begin, self.time_bar.end = self.begin, self.end
        self.time_bar.show_times(self.begin, self.begin, True)
        kinds = {"scope": ScopeTile, "xy": XYTile, "mechanism": MechanismTile}
        for pane in run["panes"]:
            tile = kinds[pane["kind"]](pane, self.begin, self.end)
            tile.enlarge.connect(self._enlarge)
            tile.menu_wanted.connect(self._open_menu)
            if isinstance(tile, MechanismTile):
                tile.pushed.connect(lambda push: self._ask({"do": "push", **push}))
                tile.released.connect(lambda: self._ask({"do": "release"}))
            self.tiles.append(tile)
            self._columns.append(slice(*pane["columns"]))
        self._add_columns(run)
        self.transport.show_state(run["state"])
        self.transport.show_pace(run["pace"])
        self._log = Times()
        self._measured = (time.monotonic(), self.begin)

    def _add_columns(self, run: dict[str, Any]) -> None:
        """Put the mechanisms and XY plots in one column, the scopes in the next ones, the panel at the side."""
        pictures: list[Tile] = [tile for tile in self.tiles if isinstance(tile, MechanismTile)]
        pictures += [tile for tile in self.tiles if isinstance(tile, XYTile)]
        scopes = [tile for tile in self.tiles if isinstance(tile, ScopeTile)]
        for heights in _HEIGHTS:
            groups = [*_columns(pictures, heights[0]), *_columns(scopes, heights[1])]
            if len(groups) <= _MOST_COLUMNS:
                break
        for group in groups:
            sizes = [400 if isinstance(tile, MechanismTile) else 260 for tile in group]
            self._splitters.append(self.add_column(group, sizes))
            self.middle.setStretchFactor(self.middle.count() - 1, 1)
        if not groups:
            self.middle.addWidget(QLabel("This diagram has no scopes; add LIVESCOPE, LIVEXY or MECHANISMVIEW to it."))
        if run["knobs"] or run["laws"]:
            self.panel = Panel(run["knobs"], run["laws"])
            self.panel.asked.connect(self._ask)
            self.middle.addWidget(self.panel)
            self.middle.setStretchFactor(self.middle.count() - 1, 0)
        self.middle.setSizes([1000] * len(groups) + [236])

    def _enlarge(self, chosen: Tile) -> None:
        """Show one tile alone, or all again."""
        alone = all(tile is chosen or tile.isHidden() for tile in self.tiles) and len(self.tiles) > 1
        for tile in self.tiles:
            tile.setVisible(alone or tile is chosen)
        for column in self._splitters:
            column.setVisible(any(column.isAncestorOf(tile) and not tile.isHidden() for tile in self.tiles))

    # each frame

    def draw(self) -> None:
        """Draw what came."""
        if self.reader is not None:
            self._read()
            self._refresh()
        if self.panel is not None:
            self.panel.flush()

    def _read(self) -> None:
        assert self.reader is not None
        t, rows = self.reader.read()
        if not len(t):
            return
        for tile, columns in zip(self.tiles, self._columns, strict=True):
            tile.add(t, rows[:, columns])
        self._log.add(t)
        self.newest = float(t[-1])

    def _refresh(self) -> None:
        if self.live:
            self.now = self.newest
        for tile in self.tiles:
            if not tile.isHidden():
                tile.refresh(self.now, self.live)
        self.transport.show_time(self.now, self.end)
        self.time_bar.show_times(self.newest, self.now, self.live)
        at, t = self._measured
        passed = time.monotonic() - at
        if passed >= _RATE_EVERY:
            self._measured = (at + passed, self.newest)
            if self.transport.state == "running" and self.newest > t:
                self.transport.say(f"runs at {(self.newest - t) / passed:.2g} × real time" + self._missing())

    def _missing(self) -> str:
        assert self.reader is not None
        return f", {self.reader.lost} samples not drawn" if self.reader.lost else ""

    # what the user does

    def _ask(self, command: dict[str, Any]) -> None:
        if command["do"] in ("run", "step"):
            self.go_live()
        self.channel.send(**command)

    def scrub(self, t: float) -> None:
        """Show what was logged at a time."""
        self.live = t >= self.newest and self.transport.state == "running"
        self.transport.live.setChecked(self.live)
        self.now = self._log.at_or_before(t)

    def leaf(self, by: int) -> None:
        """Go a logged sample back or forward; a run that goes on is paused first."""
        if self.transport.state == "running":
            self.transport.run_or_pause()
        self.live = False
        self.transport.live.setChecked(False)
        self.now = self._log.beside(self.now, by)

    def go_live(self) -> None:
        """Follow the run."""
        self.live = True
        self.transport.live.setChecked(True)


class Times:
    """The times that were logged; of those long ago ever fewer, when they become too many."""

    MOST = 2**18
    _PART = 2**15

    def __init__(self) -> None:
        self._t = np.zeros(0)
        self._new: list[Array] = []
        self._waiting = 0

    def add(self, t: Array) -> None:
        """Add times (N,) that are later than all before."""
        self._new.append(t)
        self._waiting += len(t)
        if self._waiting > self._PART:
            self._all()

    def __len__(self) -> int:
        return len(self._t) + self._waiting

    def _all(self) -> Array:
        if self._new:
            self._t = np.concatenate([self._t, *self._new])
            self._new, self._waiting = [], 0
            while len(self._t) > self.MOST:
                middle = len(self._t) // 2
                self._t = np.concatenate([self._t[:middle:2], self._t[middle:]])
        return self._t

    def at_or_before(self, t: float) -> float:
        """Return the logged time that is seen when a time is asked for."""
        times = self._all()
        return float(times[max(0, int(np.searchsorted(times, t, side="right")) - 1)]) if len(times) else t

    def beside(self, t: float, by: int) -> float:
        """Return the logged time before (by -1) or behind (1) a time."""
        times = self._all()
        if not len(times):
            return t
        k = int(np.searchsorted(times, t, side="right" if by > 0 else "left")) - (by < 0)
        return float(times[min(max(k, 0), len(times) - 1)])


def _columns(tiles: list[Any], most: int) -> list[list[Any]]:
    """Return tiles in columns of at most so many each."""
    if not tiles:
        return []
    count = math.ceil(len(tiles) / most)
    height = math.ceil(len(tiles) / count)
    return [tiles[k : k + height] for k in range(0, len(tiles), height)]


#: What the mouse does, where nothing on the screen says so.
MOUSE = (
    ("wheel, drag in a scope", "zoom and move; fit shows the whole run again"),
    ("right click on a pane", "its menu: buttons, rolling time, copy and save picture and data"),
    ("click on a name in the legend", "hide the trace, and show it again"),
    ("double click on a pane's title", "this pane alone, and all again"),
    ("double click on a parameter's name", "set it back"),
    ("drag a link", "push it"),
)


def show_list(parent: QWidget, keys: Sequence[tuple[str, str]]) -> QMessageBox:
    """Show keys with what they do."""
    rows = "".join(
        f"<tr><td style='padding-right: 16px'><b>{escape(key)}</b></td><td>{escape(text)}</td></tr>"
        for key, text in (*keys, ("", ""), *MOUSE)
    )
    box = QMessageBox(parent)
    box.setWindowTitle("Keys and mouse")
    box.setText(f"<table cellspacing=3>{rows}</table>")
    box.setModal(False)
    box.show()
    return box
