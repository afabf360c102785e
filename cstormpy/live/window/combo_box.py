"""A choice whose arrow is drawn here: style sheets take it only from a file."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QComboBox

from cstormpy.live.window import theme

__all__ = ["Combo"]


class Combo(QComboBox):
    """A choice that the wheel does not change by accident."""

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
