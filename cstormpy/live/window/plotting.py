"""Plots of pyqtgraph as they are cheap to draw: thin lines, fixed axes, no legend inside."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QGraphicsItem

from cstormpy.live.window import theme
from cstormpy.reporting import is_flat

_WIDEST_NAME, _BESIDE_NAME = 140, 14
"""Pixels of the names at an axis, and of what is beside them."""
_PLAIN, _LABELLED = 44, 58
"""Pixels of an upright axis at least, without a label and with one."""
_BETWEEN_NUMBERS = 8
"""Least pixels between two numbers side by side."""
_MARGIN = 0.06
"""Of the height, above and below the curves."""


def round_step(length: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least as long.

    >>> round_step(0.7), round_step(31.0)
    (1.0, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(length))
    return power * next(f for f in (1.0, 2.0, 5.0, 10.0) if f * power >= length * (1.0 - 1e-9))


def rounded_range(low: float, high: float) -> tuple[float, float]:
    """Return a range around two numbers that ends at round ones, so that it seldom changes.

    >>> rounded_range(-0.93, 1.71)
    (-1.5, 2.0)
    >>> rounded_range(2.0, 2.0)
    (1.5, 2.5)
    >>> rounded_range(2.0, 2.0 + 1e-15)[0]
    1.5
    """
    if is_flat(low, high):
        half = 0.25 * abs(low) or 1.0
        return low - half, high + half
    margin = _MARGIN * (high - low)
    step = 0.5 * round_step((high - low) / 5.0)
    return math.floor((low - margin) / step) * step, math.ceil((high + margin) / step) * step


def short_number(text: str) -> str:
    """Return a number as it is shown: powers of ten without zeros, and true minus signs.

    These are as wide as a digit, and no place to break a line.

    >>> short_number("-5e-05"), short_number("2e+06"), short_number("-0.5")
    ('−5e−5', '2e6', '−0.5')
    """
    return re.sub(r"e[+]?(-?)0*(\d)", r"e\1\2", text).replace("-", "\u2212")


class _Axis(pg.AxisItem):
    """An axis that has numbers at its very ends too: pyqtgraph leaves them out where there is a grid."""

    def boundingRect(self) -> Any:
        sideways, upright = (16.0, 0.0) if self.orientation == "bottom" else (0.0, 8.0)
        return super().boundingRect().adjusted(-sideways, -upright, sideways, upright)

    _coarser: Sequence[float] = ()
    _per_unit = 0.0
    _named = False

    def tickValues(self, low: float, high: float, size: float) -> Any:
        levels = super().tickValues(low, high, size)
        self._coarser, self._per_unit = [spacing for spacing, _ in levels], size / (high - low)
        return levels

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str | None]:
        """Return the numbers at some ticks, as many as there is room for side by side: pyqtgraph lets them touch."""
        texts: list[str | None] = [short_number(text) for text in super().tickStrings(values, scale, spacing)]
        if self.orientation != "bottom" or not texts:
            return texts
        metrics, room = QFontMetrics(theme.plot_font()), spacing * self._per_unit
        wanted = max(metrics.horizontalAdvance(text or "") for text in texts) + _BETWEEN_NUMBERS
        ratios = [round(other / spacing) for other in self._coarser if other > 1.5 * spacing]
        for every in (1, 2, 5, 10, 20, 50):
            if every * room >= wanted and not any(ratio % every for ratio in ratios):
                return [
                    text if round(v / spacing) % every == 0 else None for v, text in zip(values, texts, strict=True)
                ]
        return [None] * len(texts)

    def widen(self, size: float) -> None:
        """Make room for the numbers beside so many pixels: pyqtgraph leaves those out that are wider than the axis."""
        low, high = self.range
        if self._named or not (low < high and size > 0.0):
            return
        metrics = QFontMetrics(theme.plot_font())
        texts = [
            text
            for spacing, values in self.tickValues(low, high, size)
            for text in self.tickStrings(values, self.scale, spacing)
        ]
        wanted = max((metrics.horizontalAdvance(text or "") for text in texts), default=0) + _BESIDE_NAME
        wanted += _LABELLED - _PLAIN if self.label.isVisible() else 0
        if wanted > self.width():  # never narrower again: the plot would tremble
            self.setWidth(wanted)

    def name_values(self, names: Sequence[str]) -> None:
        """Write names where the values 0, 1, … are, and nothing in between."""
        self._named = True
        self.setTicks([list(enumerate(names))])
        widths = [QFontMetrics(theme.plot_font()).horizontalAdvance(name) for name in names]
        self.setWidth(min(_WIDEST_NAME, max(widths)) + _BESIDE_NAME)


class Plot(pg.PlotWidget):
    """A plot with quiet axes; `zoomed` is sent when the user moves or scales it."""

    zoomed = Signal()
    right_clicked = Signal(object)

    def __init__(self, bottom: str, left: str) -> None:
        super().__init__(background=theme.PAPER, axisItems={side: _Axis(side) for side in ("bottom", "left")})
        self.setFrameShape(self.Shape.NoFrame)
        self.setAntialiasing(False)
        self.hideButtons()
        self.setMenuEnabled(False)
        item = self.getPlotItem()
        item.showGrid(x=True, y=True, alpha=0.22)
        for side, text in (("bottom", bottom), ("left", left)):
            axis = item.getAxis(side)
            # grid and numbers take longer than the curves, and seldom change: they are kept as a picture
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
            axis.enableAutoSIPrefix(False)
            axis.setPen(pg.mkPen(theme.BORDER))
            axis.setTextPen(pg.mkPen(theme.MUTED))
            axis.setStyle(tickFont=theme.plot_font(), tickTextOffset=4, tickLength=-4)
            if text:
                axis.setLabel(text, color=theme.MUTED, **{"font-size": "11px"})
        item.getAxis("left").setWidth(_LABELLED if left else _PLAIN)
        item.getAxis("bottom").setHeight(36)
        item.layout.setContentsMargins(0, 4, 14, 0)
        box = item.getViewBox()
        box.disableAutoRange()
        box.setDefaultPadding(0.0)
        box.sigRangeChangedManually.connect(lambda *_: self.zoomed.emit())
        for changed in (box.sigYRangeChanged, box.sigResized):
            changed.connect(lambda *_: item.getAxis("left").widen(box.height()))
        self.scene().sigMouseClicked.connect(self._clicked)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Wait for the end of the click, which may be a drag that zooms."""
        event.accept()

    def _clicked(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self.right_clicked.emit(event.screenPos().toPoint())

    @property
    def pixels(self) -> int:
        """The width of the plot in pixels."""
        return max(50, int(self.getPlotItem().getViewBox().width()))

    def x_range(self) -> tuple[float, float]:
        """Return the ends of the axis that is shown."""
        (low, high), _ = self.getPlotItem().getViewBox().viewRange()
        return low, high


def device_pixels() -> int:
    """Return how many pixels of the screen a thin line is wide: a pen of pyqtgraph's counts those of the device."""
    screen = QGuiApplication.primaryScreen()
    return max(1, round(screen.devicePixelRatio())) if screen is not None else 1


def curve(colour: str, width: int = 1) -> Any:
    """Return a line through points."""
    item = pg.PlotCurveItem(pen=pg.mkPen(colour, width=width * device_pixels()), antialias=False)
    item.setSegmentedLineMode("on")  # a path of Qt's drops a pixel here and there
    return item


def line(angle: int, colour: str, movable: bool = False, label: str = "", dashed: bool = False) -> Any:
    """Return a straight line across the plot."""
    style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
    options: dict[str, Any] = {}
    if label:
        options = {"label": label, "labelOpts": {"position": 0.8, "color": colour, "fill": f"{theme.PAPER}d0"}}
    item = pg.InfiniteLine(
        angle=angle,
        movable=movable,
        pen=pg.mkPen(colour, width=1, style=style),
        hoverPen=pg.mkPen(colour, width=3),
        **options,
    )
    item.setZValue(20)
    return item
