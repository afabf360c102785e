"""The small widgets of the windows, and widgets and layouts made with their properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QDoubleValidator, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit

from cstormpy.live.window import theme

Made = TypeVar("Made")

_LEAST = 40
"""Width of a shortened text, in pixels."""


def make(kind: Callable[..., Made], *arguments: Any, **properties: Any) -> Made:
    """Return a widget or layout with these properties and handlers of signals, which PySide's stubs do not know."""
    return kind(*arguments, **properties)


class Combo(QComboBox):
    """A choice that the wheel does not change by accident, with an arrow that style sheets take only from a file."""

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the widget."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.MUTED if self.isEnabled() else theme.BORDER), 1.6, c=Qt.PenCapStyle.RoundCap))
        x, y = self.width() - 12.0, 0.5 * self.height()
        painter.drawPolyline(QPolygonF([QPointF(x - 3.5, y - 1.8), QPointF(x, y + 1.8), QPointF(x + 3.5, y - 1.8)]))
        painter.end()

    def showPopup(self) -> None:
        """Open the list, as wide as its longest entry."""
        view = self.view()
        view.setMinimumWidth(view.sizeHintForColumn(0) + 2 * view.frameWidth() + 24)
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to what is around."""
        event.ignore()


class NumberBox(QLineEdit):
    """A number; `changed` is sent when the user typed another one."""

    changed = Signal(float)

    def __init__(self, value: float = 0.0, width: int = 82) -> None:
        super().__init__()
        self.number = value
        self.setFixedWidth(width)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setValidator(QDoubleValidator(self))
        self.editingFinished.connect(self._typed)
        self.show_number(value)

    def show_number(self, value: float) -> None:
        """Show a number, without sending it."""
        self.number = value
        self.setText(f"{value:.6g}")
        self.setCursorPosition(0)

    def _typed(self) -> None:
        try:
            value = float(self.text().replace(",", "."))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.show_number(self.number)
        elif f"{value:.6g}" != f"{self.number:.6g}":
            self.number = value
            self.changed.emit(value)


class Elided(QLabel):
    """A label that does not force its width on what is around; its tip has the whole text."""

    def __init__(self, text: str = "", **properties: Any) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText, **properties)

    def minimumSizeHint(self) -> QSize:
        """Return the least size, in which some letters can be seen."""
        return QSize(min(_LEAST, self.sizeHint().width()), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint as much of the text as there is room for."""
        painter = QPainter(self)
        text = painter.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()
