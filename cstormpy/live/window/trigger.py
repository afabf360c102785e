"""The trigger of a scope: where a trace crosses a level, the picture stands still around that time."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from cstormpy.arrays import Array
from cstormpy.live.window.plotting import line
from cstormpy.live.window.tile import figure
from cstormpy.live.window.widgets import Combo, NumberBox, make

_EDGES = ("rising", "falling", "either")
_WIDEST_NAME = 110
_BEFORE = 0.25
"""Part of the window that lies before the crossing."""


def crossings(t: Array, y: Array, level: float, edge: str) -> Array:
    """Return the times at which samples cross a level, linearly between two of them.

    >>> crossings(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 1.0, -1.0]), 0.0, "rising").tolist()
    [0.5]
    """
    above = y >= level
    rising, falling = ~above[:-1] & above[1:], above[:-1] & ~above[1:]
    hit = {"rising": rising, "falling": falling}.get(edge, rising | falling)
    (i,) = np.nonzero(hit)
    return t[i] + (t[i + 1] - t[i]) * (level - y[i]) / (y[i + 1] - y[i])


class Trigger(QWidget):
    """The row of a trigger's settings, and what it found.

    Parameters
    ----------
    labels : list of str
        Of the traces.
    span : float
        How long the run takes [s].
    """

    def __init__(self, labels: list[str], span: float) -> None:
        super().__init__()
        self.on = False
        self._crossing: float | None = None
        self._waiting: float | None = None
        self._last: tuple[float, Array] | None = None
        self._rows = make(QVBoxLayout, self, spacing=3, contentsMargins=QMargins())
        self.trace, self.edge = Combo(), Combo()
        self.trace.addItems(labels)
        self.edge.addItems(_EDGES)
        self.trace.setMaximumWidth(_WIDEST_NAME)
        self.level, self.width_box = NumberBox(width=60), NumberBox(float(f"{span / 10.0:.3g}"), width=50)
        self._span = span
        self.single = QCheckBox("once")
        self.found = make(QLabel, "waits", objectName="muted")
        self.found.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        for name, widget in (
            ("trigger trace", self.trace),
            ("edge", self.edge),
            ("level", self.level),
            ("window", self.width_box),
            ("once", self.single),
        ):
            widget.setProperty("control", name)
        words = [QLabel(text) for text in ("level", "show", "s")]
        self._lay_out([self.trace, self.edge, self.single, self.found])
        self._lay_out([words[0], self.level, words[1], self.width_box, words[2]])
        self.level_line = line(0, "#b07d00", True, dashed=True)
        self.level_line.setVisible(False)
        self.level_line.sigPositionChanged.connect(self._level_dragged)
        self.level.changed.connect(self.level_line.setValue)
        for changed in (self.level.changed, self.trace.currentIndexChanged, self.edge.currentIndexChanged):
            changed.connect(lambda *_: self.again())
        self.setVisible(False)

    def _lay_out(self, widgets: list[QWidget]) -> None:
        row = make(QHBoxLayout, spacing=4)
        for widget in widgets:
            row.addWidget(widget, 1 if widget is self.found else 0)
        if self.found not in widgets:
            row.addStretch(1)
        self._rows.addLayout(row)

    def _level_dragged(self) -> None:
        self.level.show_number(float(self.level_line.value()))
        self.again()

    @property
    def width_shown(self) -> float:
        """Length of the time that is shown [s]."""
        return min(max(self.width_box.number, 1e-6 * self._span), self._span)

    def switch(self, on: bool, low: float, high: float) -> None:
        """Begin to wait for a crossing, of the middle between two numbers unless the level was set."""
        self.on = on
        if on and self.level.number == 0.0 and low <= high and not low < 0.0 < high:
            self.level_line.setValue(0.5 * (low + high))
        self.setVisible(on)
        self.level_line.setVisible(on)
        self.again()

    def again(self) -> None:
        """Forget what was found, and wait for the next crossing."""
        self._crossing = self._waiting = None
        self.found.setText("waits")

    def add(self, t: Array, rows: Array) -> None:
        """Look for a crossing in new samples (N,), (N, traces)."""
        last, self._last = self._last, (float(t[-1]), rows[-1].copy())
        if not self.on or self._waiting is not None or (self.single.isChecked() and self._crossing is not None):
            return
        if last is not None:
            t, rows = np.append(last[0], t), np.vstack([last[1], rows])
        times = crossings(t, rows[:, self.trace.currentIndex()], self.level.number, self.edge.currentText())
        free = -np.inf if self._crossing is None else self._crossing + (1.0 - _BEFORE) * self.width_shown
        times = times[times >= free]
        if len(times):
            self._waiting = float(times[0])

    def due(self, newest: float) -> tuple[float, float] | None:
        """Return the time to show, when a crossing and what follows it are complete; None where nothing changes."""
        width = self.width_shown
        if self._waiting is None or newest < self._waiting + (1.0 - _BEFORE) * width:
            return None
        self._crossing, self._waiting = self._waiting, None
        self.found.setText(f"at {figure(self._crossing, 5)} s")
        return self._crossing - _BEFORE * width, self._crossing + (1.0 - _BEFORE) * width
