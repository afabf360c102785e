"""A scope: signals over time, with a legend of present values, zoom, cursors, a trigger, and a hold of the picture."""

from __future__ import annotations

import functools
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from cstormpy.arrays import Array
from cstormpy.live.window import theme
from cstormpy.live.window.history import Drawn, Extremes
from cstormpy.live.window.plotting import Plot, curve, line, rounded_range
from cstormpy.live.window.tile import Tile, figure, small_button
from cstormpy.live.window.trigger import Trigger
from cstormpy.live.window.widgets import make

_LEGEND_EVERY = 3
"""The values in the legend change every so many frames: they are to be read."""
_SPANS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds that can be shown of a run that goes on."""
_LOWEST = 84
"""A plot takes at least so many pixels of height."""
_MOST_IN_LEGEND = 12
_SHORTEST_NAME, _BESIDE_SIGNAL = 60, 150
"""Pixels that a long name in the legend is shortened to at most, and those left to its mark, value and unit."""
_WORD_JOINER = "\u2060"
"""Keeps Qt from ending a line between mux[0] and [3], as it does even where no break is wanted."""
_WIDEST_READOUT = 5
"""So many traces stand side by side in the readout of the cursors; more stand one below the other."""
_BESIDE_NAMED = 0.5
"""Margin of an axis of names below the lowest and above the highest."""
_DENSITY = 1.0
"""Cells that a pixel column is worth; each has at most two points."""


class ScopeTile(Tile):
    """A pane with signals over time."""

    def __init__(self, pane: dict[str, Any], begin: float, end: float) -> None:
        super().__init__(pane)
        self.begin, self.end = begin, max(end, begin + 1e-9)
        self.histories = [Extremes(1, begin, end) for _ in self.labels]
        self._drawn = [Drawn(history) for history in self.histories]
        self._lows, self._highs = np.full(len(self.labels), np.inf), np.full(len(self.labels), -np.inf)
        #: Traces that the user has hidden, and the seconds that are shown of a run that goes on, if not all.
        self.hidden: set[int] = set()
        self.span: float | None = None
        self._fixed = self.options.get("scale")
        self.names: list[list[str] | None] = pane.get("names") or [None] * len(self.labels)
        #: Whether the axis of y has names instead of numbers: those of all traces.
        self._named = bool(self.names and self.names[0]) and all(names == self.names[0] for names in self.names)
        self._zoomed = self._held = self._dirty = False
        self._frames = 0
        self._newest = begin
        self._make_head()
        self.plot = Plot("t [s]", f"[{self.unit}]" if self.unit else "")
        self.plot.setMinimumHeight(_LOWEST)
        if self._named:
            self.plot.getPlotItem().getAxis("left").name_values(self.names[0])
        self.column.addWidget(self.plot, 1)
        self.curves = [curve(theme.trace(k)) for k in range(len(self.labels))]
        for item in self.curves:
            self.plot.addItem(item)
        self.now = line(90, "#98a5b5")
        self.plot.addItem(self.now)
        self._make_cursors()
        self.trigger = Trigger(self.labels, self.end - self.begin)
        self.column.insertWidget(2, self.trigger)
        self.plot.addItem(self.trigger.level_line)
        self.trigger_button.toggled.connect(self._switch_trigger)
        self.plot.zoomed.connect(self._was_zoomed)
        self.plot.right_clicked.connect(lambda at: self.menu_wanted.emit(self, at))
        self.plot.getPlotItem().getViewBox().sigResized.connect(self._mark)
        self.reset_view()

    def _make_head(self) -> None:
        self.cursor_button = small_button("cursors", "cursors", "Two cursors, and the values at them")
        self.trigger_button = small_button("trigger", "trigger", "Stand still around the crossing of a level")
        self.hold_button = small_button("hold", "hold", "Hold this picture; the run goes on")
        self.reset_button = small_button("fit", "reset", "The whole run again (wheel and drag zoom)", checkable=False)
        for button in (self.cursor_button, self.trigger_button, self.hold_button, self.reset_button):
            self.head.addWidget(button)
        self.legend = make(
            QLabel,
            wordWrap=True,
            contextMenuPolicy=Qt.ContextMenuPolicy.NoContextMenu,
            textInteractionFlags=Qt.TextInteractionFlag.LinksAccessibleByMouse,
            toolTip="Click: hide or show",
        )
        self.legend.linkActivated.connect(lambda k: self.switch_trace(int(k)))
        self.column.addWidget(self.legend)
        self.cursor_button.toggled.connect(self._switch_cursors)
        self.hold_button.toggled.connect(self._switch_hold)
        self.reset_button.clicked.connect(self.reset_view)
        self._write_legend(self.begin)

    def _make_cursors(self) -> None:
        self.cursors = [line(90, colour, True, name) for name, colour in (("A", "#7048e8"), ("B", "#0b7285"))]
        for item in self.cursors:
            item.setVisible(False)
            item.sigPositionChanged.connect(self._write_readout)
            self.plot.addItem(item)
        self.readout = make(QLabel, objectName="readout", visible=False)
        self.column.addWidget(self.readout)

    # what comes

    def add(self, t: Array, rows: Array) -> None:
        """Take new samples (N,), (N, traces)."""
        for history, values in zip(self.histories, rows.T, strict=True):
            history.add(t, values[:, None])
        finite = np.isfinite(rows)
        self._lows = np.minimum(self._lows, np.where(finite, rows, np.inf).min(axis=0))
        self._highs = np.maximum(self._highs, np.where(finite, rows, -np.inf).max(axis=0))
        self._newest = float(t[-1])
        self.trigger.add(t, rows)
        self._dirty = True

    @property
    def _low(self) -> float:
        """The lowest value of what is shown."""
        return min((float(x) for k, x in enumerate(self._lows) if k not in self.hidden), default=np.inf)

    @property
    def _high(self) -> float:
        return max((float(x) for k, x in enumerate(self._highs) if k not in self.hidden), default=-np.inf)

    def refresh(self, now: float, live: bool) -> None:
        """Draw the traces, if there is anything new, and the values at a time."""
        self._frames += 1
        if self._held:
            return
        if self.now.value() != now:
            self.now.setValue(now)
            self.now.setVisible(not live)
        if not live or self._frames % _LEGEND_EVERY == 0:
            self._write_legend(now)
        shown = self.trigger.due(self._newest) if self.trigger.on else None
        if shown is None and self.span is not None and not self._zoomed:
            end = min(max(now, self.begin + self.span), self.end)
            shown = max(self.begin, end - self.span), end
        if shown is not None and self.plot.x_range() != shown:
            self.plot.setXRange(*shown, padding=0)
            self._dirty = True
        if not self._dirty:
            return
        self._dirty = False
        self._scale()
        for item, drawn in zip(self.curves, self._drawn, strict=True):
            item.setData(*self._points(drawn))
        if self.cursor_button.isChecked():
            self._write_readout()

    def _points(self, drawn: Drawn) -> tuple[Array, Array]:
        low, high = self.plot.x_range()
        t, y = drawn.points(low, high, int(_DENSITY * self.plot.pixels))
        values = y[:, 0]
        if self.options.get("stairs") and len(t):
            return np.repeat(t, 2)[1:], np.repeat(values, 2)[:-1]
        return t, values

    def _scale(self) -> None:
        """Let the axis of y hold all that was seen, unless it is given or the user chose another."""
        if self._zoomed or self._low > self._high:
            return
        if self._fixed:
            low, high = self._fixed
        else:
            beside = self._low - _BESIDE_NAMED, self._high + _BESIDE_NAMED
            low, high = beside if self._named else rounded_range(self._low, self._high)
        if self.plot.getPlotItem().getViewBox().viewRange()[1] != [low, high]:
            self.plot.setYRange(low, high, padding=0)

    # what the user does

    def reset_view(self) -> None:
        """Show the whole run."""
        self._zoomed = False
        self.span = None
        self.plot.setXRange(self.begin, self.end, padding=0)
        self.trigger.again()
        self._mark()
        self._scale()

    def roll(self, span: float | None) -> None:
        """Show the last seconds of the run, or all of it."""
        self.reset_view()
        self.span = span

    def switch_trace(self, k: int) -> None:
        """Hide a trace, or show it again."""
        self.hidden ^= {k}
        self.curves[k].setVisible(k not in self.hidden)
        self._mark()
        self._write_legend(float(self.now.value()) if self.now.isVisible() else self._newest)

    def data(self) -> tuple[list[str], Array] | None:
        """Return the samples that are kept of the traces that are shown."""
        unit = f" [{self.unit}]" if self.unit else ""
        shown = [k for k in range(len(self.labels)) if k not in self.hidden]
        t = np.unique(np.concatenate([np.zeros(0), *(self.histories[k].t for k in shown)]))
        columns = [[self.value(k, time) for time in t] for k in shown]
        return ["t [s]", *(self.labels[k] + unit for k in shown)], np.array([t, *columns], dtype=float).T

    def actions_of_menu(self) -> list[tuple[str, bool | None, Callable[[], object]]]:
        """Return what the menu offers."""
        length = self.end - self.begin
        spans = [span for span in _SPANS if span < length]
        rolling: list[tuple[str, bool | None, Callable[[], object]]] = [
            (f"show the last {span:g} s", self.span == span, functools.partial(self.roll, span)) for span in spans
        ]
        whole = ("show the whole run", self.span is None and not self._zoomed, self.reset_view)
        return [*super().actions_of_menu(), *rolling, whole]

    def _was_zoomed(self) -> None:
        self._zoomed = True
        self._mark()

    def _mark(self, *_: object) -> None:
        self._dirty = True

    def _switch_hold(self, on: bool) -> None:
        self._held = on
        self._dirty = True

    def _switch_trigger(self, on: bool) -> None:
        self.trigger.switch(on, self._low, self._high)
        if not on:
            self.reset_view()

    def _switch_cursors(self, on: bool) -> None:
        low, high = self.plot.x_range()
        if low < self._newest < high:
            high = self._newest
        for item, part in zip(self.cursors, (1.0 / 3.0, 2.0 / 3.0), strict=True):
            item.setVisible(on)
            if on:
                item.setValue(low + part * (high - low))
        self.readout.setVisible(on)
        self._write_readout()

    # what is written

    def value(self, trace: int, t: float) -> float | None:
        """Return the value that was logged last at or before a time, or None before the first."""
        history = self.histories[trace]
        return float(history.y[history.nearest(t), 0]) if len(history) else None

    def _name(self, trace: int, value: float) -> str:
        """Return what a value of a trace is called, nothing if it has no name."""
        names = self.names[trace] or ()
        return names[int(value)] if value in range(len(names)) else ""

    def _write_legend(self, now: float) -> None:
        parts = []
        metrics, room = self.legend.fontMetrics(), max(_SHORTEST_NAME, self.legend.width() - _BESIDE_SIGNAL)
        for k, label in enumerate(self.labels[:_MOST_IN_LEGEND]):
            label = metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, room).replace("[", f"{_WORD_JOINER}[")
            value = self.value(k, now)
            text = "" if value is None else f"&nbsp;{_named(self._name(k, value)) or _padded(value)}"
            unit = f"&nbsp;{escape(self.unit)}" if self.unit and value is not None else ""
            parts.append(
                f"<nobr><a href='{k}' style='text-decoration:{'line-through' if k in self.hidden else 'none'};"
                f"color:{theme.MUTED if k in self.hidden else theme.INK}'>"
                f"<span style='color:{theme.MUTED if k in self.hidden else theme.trace(k)}'><b>━</b></span>"
                f"&nbsp;{escape(label)}</a><span style='color:{theme.MUTED}'>{text}{unit}</span></nobr>"
            )
        if len(self.labels) > _MOST_IN_LEGEND:
            parts.append(f"<nobr>… {len(self.labels) - _MOST_IN_LEGEND} more</nobr>")
        self.legend.setText("&nbsp; ".join(parts))

    def _write_readout(self, *_: object) -> None:
        if not self.cursor_button.isChecked():
            return
        a, b = (float(item.value()) for item in self.cursors)
        nothing: list[float | None] = [None] * len(self.labels)
        values = [[self.value(k, t) for k in range(len(self.labels))] if t <= self._newest else nothing for t in (a, b)]
        differences = [None if x is None or y is None else y - x for x, y in zip(*values, strict=True)]
        grid = [["", "A", "B", "B \u2212 A"], ["t [s]", *(figure(t, 5) for t in (a, b, b - a))]]
        for k, label in enumerate(self.labels):
            difference = None if self.names[k] else differences[k]
            numbers = [
                "" if v is None else escape(self._name(k, v)) or figure(v, 5) for v in (values[0][k], values[1][k])
            ]
            numbers.append("" if difference is None else figure(difference, 5))
            grid.append([f"<span style='color:{theme.trace(k)}'>{escape(label)}</span>", *numbers])
        if 1 < len(self.labels) <= _WIDEST_READOUT:
            grid = [list(row) for row in zip(*grid, strict=True)]
        cells = ("".join(f"<td align=right>&nbsp;&nbsp;{cell}</td>" for cell in row) for row in grid)
        self.readout.setText(f"<table cellspacing=0>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")


def _named(name: str) -> str:
    """Return the name of a value as the legend writes it, at the distance of a number."""
    return f"&nbsp;{escape(name)}" if name else ""


def _padded(value: float) -> str:
    """Return a number with blanks as wide as digits before it, so that what follows stands still."""
    return figure(value).rjust(7).replace(" ", "\u2007")
