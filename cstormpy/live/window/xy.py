"""An XY plot: one signal over another, with a trail and a point at the present."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QLabel

from cstormpy.arrays import Array
from cstormpy.live.window import theme
from cstormpy.live.window.history import Drawn, Extremes
from cstormpy.live.window.plotting import Plot, curve, rounded_range
from cstormpy.live.window.tile import Tile, figure, small_button
from cstormpy.live.window.widgets import make

_CELLS = 2000
"""The path is drawn with the extremes of so many spans of time."""
_TRAIL = 1.5
"""Seconds of the path that stand out, unless said."""


class XYTile(Tile):
    """A pane with one signal over another."""

    def __init__(self, pane: dict[str, Any], begin: float, end: float) -> None:
        super().__init__(pane)
        self.begin, self.end = begin, max(end, begin + 1e-9)
        self.history = Extremes(2, begin, end)
        self._drawn = Drawn(self.history)
        self._low, self._high = np.full(2, np.inf), np.full(2, -np.inf)
        self._zoomed = self._dirty = False
        self._at = np.nan
        trail = self.options.get("trail", True)
        self._trail = _TRAIL if trail is True else float(trail or 0.0)
        self.value_label = make(QLabel, objectName="muted")
        self.head.addWidget(self.value_label)
        self.reset_button = small_button("fit", "reset", "The whole path again (wheel and drag zoom)", checkable=False)
        self.reset_button.clicked.connect(self.reset_view)
        self.head.addWidget(self.reset_button)
        unit = f" [{self.unit}]" if self.unit else ""
        self.plot = Plot(self.labels[0] + unit, self.labels[1] + unit)
        if self.options.get("equal"):
            self.plot.setAspectLocked(True)
        self.column.addWidget(self.plot, 1)
        self.path = curve("#9db7dd")
        self.recent = curve(theme.ACCENT, 2)
        self.point = pg.ScatterPlotItem(size=9, brush=pg.mkBrush(theme.WARM), pen=pg.mkPen("w"))
        for item in (self.path, self.recent, self.point):
            self.plot.addItem(item)
        self.plot.zoomed.connect(self._was_zoomed)
        self.plot.right_clicked.connect(lambda at: self.menu_wanted.emit(self, at))

    def data(self) -> tuple[list[str], Array] | None:
        """Return the samples that are kept."""
        unit = f" [{self.unit}]" if self.unit else ""
        return ["t [s]", *(label + unit for label in self.labels)], np.column_stack([self.history.t, self.history.y])

    def add(self, t: Array, rows: Array) -> None:
        """Take new samples (N,), (N, 2)."""
        self.history.add(t, rows)
        finite = rows[np.isfinite(rows).all(axis=1)]
        if len(finite):
            self._low, self._high = (
                np.minimum(self._low, finite.min(axis=0)),
                np.maximum(self._high, finite.max(axis=0)),
            )
        self._dirty = True

    def refresh(self, now: float, live: bool) -> None:
        """Draw the path, the trail that ends at a time, and the point there."""
        if not len(self.history) or (not self._dirty and now == self._at):
            return
        if self._dirty:
            self._scale()
            _, rows = self._drawn.points(self.begin, self.end, _CELLS)
            self.path.setData(rows[:, 0], rows[:, 1])
        self._dirty, self._at = False, now
        last = self.history.nearest(now)
        first = self.history.nearest(now - self._trail)
        stride = max(1, (last - first) // _CELLS)
        recent = self.history.y[first : last + 1 : stride]
        x, y = self.history.y[last]
        if self._trail:
            self.recent.setData(np.append(recent[:, 0], x), np.append(recent[:, 1], y))
        self.point.setData([x], [y])
        self.value_label.setText(f"({figure(float(x))}, {figure(float(y))})")

    def _scale(self) -> None:
        if self._zoomed or not (self._low <= self._high).all():
            return
        given = self.options.get("scale")
        if given and len(given) == 2:
            given = [*given, *given]
        ranges = [rounded_range(self._low[k], self._high[k]) for k in (0, 1)]
        if given:
            ranges = [(given[0], given[1]), (given[2], given[3])]
        if self.plot.getPlotItem().getViewBox().targetRange() != [list(r) for r in ranges]:
            self.plot.setRange(xRange=ranges[0], yRange=ranges[1], padding=0)

    def reset_view(self) -> None:
        """Show the whole path."""
        self._zoomed = False
        self._dirty = True

    def _was_zoomed(self) -> None:
        self._zoomed = True
