"""Run, pause, step, back and forward, stop, pace; and the bar on which the time is scrubbed."""

from __future__ import annotations

import math

from PySide6.QtCore import QMargins, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from cstormpy.live.window import theme
from cstormpy.live.window.plotting import round_step
from cstormpy.live.window.widgets import Combo, make

#: What the pace may be: times real time; None is as fast as possible.
PACES: tuple[tuple[str, float | None], ...] = (
    ("as fast as possible", None),
    ("0.1 × real time", 0.1),
    ("0.25 × real time", 0.25),
    ("0.5 × real time", 0.5),
    ("real time", 1.0),
    ("2 × real time", 2.0),
    ("5 × real time", 5.0),
    ("10 × real time", 10.0),
)


_MOST_TICKS, _APART = 14, 1.6
"""Most times that are written along the bar; how far they are apart at least, in widths of the widest."""
_NARROWEST, _WITH_TEXTS = 380, 860
"""Pixels of width of the row of buttons at least, and from which on their texts have room."""


class Transport(QFrame):
    """The row of buttons on top."""

    asked = Signal(dict)
    back = Signal()
    forward = Signal()
    go_live = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("bar")
        self.setMinimumWidth(_NARROWEST)
        self.state = "waiting"
        self._narrow = False
        row = make(QHBoxLayout, self, spacing=6, contentsMargins=QMargins(8, 6, 12, 6))
        self.run = _button("Pause", "pause", "run", "Run and pause (space)")
        self.run.setObjectName("primary")
        self.step = _button("Step", "step", "step", "One step of the solver (S)")
        self.backward = _button("", "back", "back", "One logged sample back (,)")
        self.onward = _button("", "forward", "forward", "One logged sample forward (.)")
        self.live = _button("Live", "live", "live", "Follow the run (L)")
        self.live.setCheckable(True)
        self.live.setChecked(True)
        self.stop = _button("Stop", "stop", "stop", "End the run; its data is kept (Ctrl+E)")
        self.pace = make(Combo, toolTip="How fast the run goes")
        self.pace.setProperty("control", "pace")
        self.pace.addItems([text for text, _ in PACES])
        for widget in (self.run, self.step, self.stop):
            row.addWidget(widget)
        row.addSpacing(10)
        for widget in (self.backward, self.onward, self.live):
            row.addWidget(widget)
        row.addSpacing(10)
        self._pace_label = QLabel("pace")
        row.addWidget(self._pace_label)
        row.addWidget(self.pace)
        self.status = make(QLabel, objectName="muted")
        self.status.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row.addSpacing(8)
        row.addWidget(self.status, 1)
        self.clock = make(QLabel, objectName="clock")
        row.addWidget(self.clock)
        self.run.clicked.connect(self.run_or_pause)
        self.step.clicked.connect(lambda: self.asked.emit({"do": "step"}))
        self.stop.clicked.connect(lambda: self.asked.emit({"do": "stop"}))
        self.backward.clicked.connect(self.back)
        self.onward.clicked.connect(self.forward)
        self.live.clicked.connect(self.go_live)
        self.pace.activated.connect(lambda k: self.asked.emit({"do": "pace", "value": PACES[k][1]}))
        self._texts = [(self.run, "Pause"), (self.step, "Step"), (self.stop, "Stop"), (self.live, "Live")]
        self.show_state("waiting")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the texts of the buttons to their tips where there is no room for them."""
        super().resizeEvent(event)
        self._narrow = self.width() < _WITH_TEXTS
        self.run.setMinimumWidth(0 if self._narrow else 84)
        for button, text in self._texts[1:]:
            button.setText("" if self._narrow else text)
        self._pace_label.setVisible(not self._narrow)
        self.pace.setMaximumWidth(96 if self._narrow else 16777215)
        self._name_run()

    def _name_run(self) -> None:
        self.run.setText("" if self._narrow else "Run" if self.state == "paused" else "Pause")

    def run_or_pause(self) -> None:
        """Ask for the other one of running and paused."""
        if self.state in ("running", "paused"):
            self.asked.emit({"do": "pause" if self.state == "running" else "run"})

    def show_state(self, state: str, message: str = "") -> None:
        """Show whether the simulation is "waiting", "running", "paused" or "ended"."""
        self.state = state
        goes = state in ("running", "paused")
        self._name_run()
        self.run.setIcon(icon("run" if state == "paused" else "pause", theme.PAPER))
        for widget in (self.run, self.step, self.stop, self.pace):
            widget.setEnabled(goes)
        self.say(message or {"waiting": "waiting for the simulation …", "ended": "the run has ended"}.get(state, ""))

    def say(self, text: str) -> None:
        """Show a line of text."""
        self.status.setText(text)
        self.status.setToolTip(text)

    def show_pace(self, pace: float | None) -> None:
        """Show a pace that was chosen elsewhere."""
        known = [value for _, value in PACES]
        if pace not in known and self.pace.count() == len(PACES):
            self.pace.addItem("")
        if pace in known:
            self.pace.setCurrentIndex(known.index(pace))
        else:
            self.pace.setItemText(len(PACES), f"{pace:g} × real time")
            self.pace.setCurrentIndex(len(PACES))

    def show_time(self, now: float, end: float) -> None:
        """Show the time that is seen."""
        digits = 2 if end >= 100 else 3
        self.clock.setText(f"{now:.{digits}f} s")


class TimeBar(QWidget):
    """The time of the run: what is logged, and what of it is seen."""

    scrubbed = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip("Drag to see what was logged at another time")
        self.setProperty("control", "time")
        self.setFixedHeight(34)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.begin, self.end = 0.0, 1.0
        self.newest = self.now = 0.0
        self.live = True

    def show_times(self, newest: float, now: float, live: bool) -> None:
        """Show how far the log goes, and what is seen of it."""
        if (newest, now, live) != (self.newest, self.now, self.live):
            self.newest, self.now, self.live = newest, now, live
            self.update()

    def place(self, t: float) -> float:
        """Return where a time is, in pixels from the left."""
        return 12.0 + (self.width() - 24.0) * (t - self.begin) / (self.end - self.begin)

    def time(self, x: float) -> float:
        """Return the time at a place, at most the newest that is logged."""
        t = self.begin + (x - 12.0) / (self.width() - 24.0) * (self.end - self.begin)
        return min(max(t, self.begin), self.newest)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round times along the bar, as many as there is room for, and how each is written.

        The digits tell it from the next one.
        """
        metrics = QFontMetricsF(theme.plot_font())
        for most in range(_MOST_TICKS, 0, -1):
            found = self._ticks(most)
            room = self.place(found[1][0]) - self.place(found[0][0]) if len(found) > 1 else math.inf
            if room >= _APART * max((metrics.horizontalAdvance(text) for _, text in found), default=0.0):
                break
        return found

    def _ticks(self, most: int) -> list[tuple[float, str]]:
        step = round_step((self.end - self.begin) / most)
        first, last = math.ceil(self.begin / step - 1e-9), math.floor(self.end / step + 1e-9)
        digits = max(4, len(str(max(abs(first), abs(last)))) + 1)
        return [(k * step, f"{k * step:.{digits}g}") for k in range(first, last + 1)]

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold."""
        self.scrubbed.emit(self.time(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.scrubbed.emit(self.time(event.position().x()))

    def sizeHint(self) -> QSize:
        """Return the size that is good to have."""
        return QSize(400, 34)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the widget."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        y = 11.0
        left = self.place(self.begin)
        painter.setPen(Qt.PenStyle.NoPen)
        parts = ((theme.BORDER, self.end), ("#a9c4ee", self.newest), (theme.ACCENT, self.now))
        for colour, until in ((colour, self.place(t)) for colour, t in parts):
            painter.setBrush(QColor(colour))
            painter.drawRoundedRect(QRectF(left, y - 2.5, max(0.0, until - left), 5.0), 2.5, 2.5)
        painter.setPen(QColor(theme.ACCENT))
        painter.setBrush(QColor(theme.ACCENT if self.live else theme.PAPER))
        painter.drawEllipse(QPointF(self.place(self.now), y), 6.0, 6.0)
        painter.setFont(theme.plot_font())
        painter.setPen(QColor(theme.MUTED))
        for t, text in self.ticks():
            width = painter.fontMetrics().horizontalAdvance(text)
            x = min(max(self.place(t) - 0.5 * width, 2.0), self.width() - width - 2.0)
            painter.drawText(QPointF(x, 31.0), text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave the keys to the window's shortcuts."""
        event.ignore()  # the window's shortcuts


def _button(text: str, sign: str, name: str, tip: str) -> QPushButton:
    picture = icon(sign, theme.ACCENT if sign == "live" else theme.INK)
    button = make(QPushButton, picture, text, toolTip=tip, focusPolicy=Qt.FocusPolicy.NoFocus)
    button.setProperty("control", name)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    return button


_SIZE = 16
_Shape = list[tuple[float, float]]


def _triangle(left: float, right: float) -> _Shape:
    return [(left, 3), (right, 8), (left, 13)]


def _bar(left: float, width: float = 3.0) -> _Shape:
    return [(left, 3), (left + width, 3), (left + width, 13), (left, 13)]


_SHAPES: dict[str, list[_Shape]] = {
    "run": [_triangle(4, 13)],
    "pause": [_bar(3.5), _bar(9.5)],
    "step": [_bar(2.5, 2.5), _triangle(6.5, 14)],
    "back": [_triangle(12, 3)],
    "forward": [_triangle(4, 13)],
    "stop": [[(3.5, 3.5), (12.5, 3.5), (12.5, 12.5), (3.5, 12.5)]],
}


def icon(name: str, colour: str) -> QIcon:
    """Return the icon of this name."""
    result = QIcon()
    for mode, shade in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, "#b4bdc9")):
        for scale in (1, 2):
            result.addPixmap(_picture(name, shade, scale), mode)
    return result


def _picture(name: str, colour: str, scale: int) -> QPixmap:
    picture = QPixmap(_SIZE * scale, _SIZE * scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(scale, scale)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    if name == "live":
        painter.drawEllipse(QRectF(4, 4, 8, 8))
    for shape in _SHAPES.get(name, []):
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in shape]))
    painter.end()
    picture.setDevicePixelRatio(scale)
    return picture
