"""The signs on the buttons, drawn here: fonts do not have them everywhere."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap, QPolygonF

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
