"""Draws a mechanism with a painter: ground, links, joints, centres of mass, frames, trails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPolygonF

from cstormpy.arrays import Array
from cstormpy.linkage.shapes import Solid
from cstormpy.linkage.skeleton import Drawing, Skeleton
from cstormpy.live.window import theme
from cstormpy.live.window.camera import Camera
from cstormpy.live.window.plotting import short_number

_AXES = ("#e03131", "#2f9e44", "#1971c2")
_GRID_CELLS = 8
_GRAVITY_PIXELS = 26
_TRAIL_STEPS = 12
_SHADE = 55
"""By how many per cent a face across the view is darker."""
_SOLID, _LAST = 10, 1000
"""First number of shapes among the kinds of what is drawn; in a plane they lie below all else."""


@dataclass
class Look:
    """The choice of what is drawn besides the links."""

    frames: bool = False
    masses: bool = True
    trail: bool = True


class Artist:
    """Draws one skeleton as a camera sees it.

    Parameters
    ----------
    skeleton : Skeleton
    camera : Camera
    gravity : ndarray (3,)
    """

    def __init__(self, skeleton: Skeleton, camera: Camera, gravity: Array) -> None:
        self.skeleton, self.camera = skeleton, camera
        #: The acceleration of gravity in the base frame, (3,).
        self.gravity = gravity
        self._size = skeleton.reach

    def draw(self, painter: QPainter, drawing: Drawing, poses: Array, trails: Array | None, look: Look) -> None:
        """Draw everything, back to front."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._thick = float(np.clip(0.05 * self._size * self.camera.scale / math.sqrt(1 + len(poses) / 6), 3.0, 15.0))
        self._ground(painter)
        if trails is not None and look.trail:
            self._trails(painter, trails)
        self._base(painter, drawing)
        self._bodies(painter, drawing)
        if look.masses:
            self._masses(painter, drawing)
        if look.frames:
            self._frames(painter, poses)
        self._scale_bar(painter)

    # the surroundings

    def _ground(self, painter: QPainter) -> None:
        """Draw a grid: in the plane of the picture, or on the floor."""
        camera = self.camera
        step = _round_length(2.0 * self._size / _GRID_CELLS)
        painter.setPen(QPen(QColor(theme.GRID), 1))
        if not camera.spatial:
            right, up = camera.axes()[:2]
            middle = np.array([right @ camera.centre, up @ camera.centre])
            half = np.array([camera.width, camera.height]) / (2.0 * camera.scale)
            for axis in (0, 1):
                for k in range(math.ceil((middle - half)[axis] / step), math.floor((middle + half)[axis] / step) + 1):
                    place = (k * step - middle[axis]) * camera.scale
                    if axis == 0:
                        x = 0.5 * camera.width + place
                        painter.drawLine(QPointF(x, 0), QPointF(x, camera.height))
                    else:
                        y = 0.5 * camera.height - place
                        painter.drawLine(QPointF(0, y), QPointF(camera.width, y))
            return
        up = self.skeleton.up
        across, along = self.skeleton.right, np.cross(self.skeleton.right, up)
        ticks = step * np.arange(-_GRID_CELLS // 2, _GRID_CELLS // 2 + 1)
        end, at = ticks[-1], np.zeros(3)
        if camera.follows:
            at = np.sum([step * round(float(camera.centre @ way) / step) * way for way in (across, along)], axis=0)
        for k in ticks:
            for a, b in ((across, along), (along, across)):
                self._segment(painter, at + k * a - end * b, at + k * a + end * b)

    def _scale_bar(self, painter: QPainter) -> None:
        """Draw a length to compare with."""
        length = _round_length(0.35 * self.camera.radius)
        pixels = length * self.camera.scale
        left, y = 12.0, self.camera.height - 12.0
        painter.setPen(QPen(QColor(theme.MUTED), 1.5))
        painter.drawLine(QPointF(left, y), QPointF(left + pixels, y))
        for x in (left, left + pixels):
            painter.drawLine(QPointF(x, y - 3), QPointF(x, y + 3))
        painter.setFont(theme.plot_font())
        painter.drawText(QPointF(left + 4, y - 6), f"{length:g} m")
        self._gravity(painter)

    def _gravity(self, painter: QPainter) -> None:
        """Draw where gravity points to, and say how large it is."""
        size = float(np.linalg.norm(self.gravity))
        if not size:
            return
        seen = self.camera.axes() @ (self.gravity / size)
        if math.hypot(seen[0], seen[1]) <= 0.2:
            return
        way = QPointF(seen[0], -seen[1]) * (0.5 * _GRAVITY_PIXELS)
        middle = QPointF(self.camera.width - 20, self.camera.height - 42 + 0.5 * _GRAVITY_PIXELS)
        self._arrow(painter, middle - way, middle + way, QColor(theme.MUTED), 1.5)
        text = f"g {short_number(f'{size:.3g}')}"
        wide = QFontMetrics(theme.plot_font()).horizontalAdvance(text)
        painter.drawText(middle - QPointF(wide + 0.5 * _GRAVITY_PIXELS + 4, -4), text)

    # the mechanism

    def _base(self, painter: QPainter, drawing: Drawing) -> None:
        """Draw what does not move, hatched below each joint that it carries."""
        joints = enumerate(zip(self.skeleton.parents, self.skeleton.joints, strict=True))
        roots = [drawing.anchors[i] for i, (parent, joint) in joints if parent < 0 and joint.symbol.stands]
        for foot in [polyline[0] for polyline in drawing.base] or roots:
            if self.camera.spatial:
                self._foot(painter, foot)
            else:
                self._support(painter, self.camera.project(foot))
        painter.setPen(QPen(QColor("#aab4c0"), self._thick, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        for polyline in drawing.base:
            painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in self.camera.project(polyline)[:, :2]]))

    def _foot(self, painter: QPainter, at: Array) -> None:
        """Draw a disc that lies on the floor."""
        angle = np.linspace(0.0, 2.0 * np.pi, 33)
        right = self.skeleton.right
        along = np.cross(right, self.skeleton.up)
        rim = at + 0.09 * self._size * (np.outer(np.cos(angle), right) + np.outer(np.sin(angle), along))
        painter.setPen(QPen(QColor("#8793a3"), 1.2))
        painter.setBrush(QColor("#dfe5ec"))
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in self.camera.project(rim)[:, :2]]))

    def _support(self, painter: QPainter, at: Array) -> None:
        size = max(9.0, 1.2 * self._thick)
        x, y = float(at[0]), float(at[1])
        painter.setPen(QPen(QColor("#8793a3"), 1.2))
        painter.setBrush(QColor("#dfe5ec"))
        bottom = y + 1.5 * size
        painter.drawPolygon(QPolygonF([QPointF(x, y), QPointF(x - size, bottom), QPointF(x + size, bottom)]))
        painter.drawLine(QPointF(x - 1.6 * size, bottom), QPointF(x + 1.6 * size, bottom))
        for k in range(-3, 4):
            foot = x + 0.45 * k * size
            painter.drawLine(QPointF(foot, bottom), QPointF(foot - 0.4 * size, bottom + 0.45 * size))

    def _bodies(self, painter: QPainter, drawing: Drawing) -> None:
        """Draw links and joints in the order of their depth."""
        camera = self.camera
        parts: list[tuple[float, int, int, Array]] = []
        for i, polylines in enumerate(drawing.lines):
            for k, solid in enumerate(drawing.solids[i]):
                parts.append((float(camera.project(solid.middle)[2]), _SOLID + k, i, solid.corners))
            for polyline in polylines if not drawing.solids[i] else ():
                seen = camera.project(polyline)
                parts += [(float(seen[k : k + 2, 2].mean()), 0, i, seen[k : k + 2]) for k in range(len(seen) - 1)]
        joints, anchors = camera.project(drawing.joints), camera.project(drawing.anchors)
        for i, joint in enumerate(self.skeleton.joints):
            if joint.symbol.rail:
                parts.append((float(anchors[i, 2]) - 1e-6, 1, i, np.stack([anchors[i], joints[i]])))
            if joint.symbol.mark:
                parts.append((float(joints[i, 2]) + 1e-6, 2, i, joints[i : i + 1]))
        if not camera.spatial:
            parts.sort(key=lambda part: part[1] - _LAST * (part[1] >= _SOLID))
        else:
            parts.sort(key=lambda part: part[0])
        for depth, what, i, seen in parts:
            if what >= _SOLID:
                self._solid(painter, drawing.solids[i][what - _SOLID], QColor(theme.LINKS[i % len(theme.LINKS)]))
            elif what == 0:
                self._rod(painter, seen, self._shade(QColor(theme.LINKS[i % len(theme.LINKS)]), depth))
            elif what == 1:
                self._slide(painter, i, seen, drawing)
            else:
                self._joint(painter, i, seen[0])

    def _rod(self, painter: QPainter, seen: Array, colour: QColor) -> None:
        a, b = QPointF(*seen[0, :2]), QPointF(*seen[1, :2])
        for shade, width in ((colour.darker(135), self._thick + 1.6), (colour, self._thick)):
            painter.setPen(QPen(shade, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawLine(a, b)

    def _solid(self, painter: QPainter, solid: Solid, colour: QColor) -> None:
        """Draw the faces of a shape that are turned to the viewer, darker the less they are."""
        if solid.colour is not None:
            colour = QColor.fromRgbF(*map(float, solid.colour))
        seen = self.camera.project(solid.corners)
        facing = solid.normals @ self.camera.axes()[2]
        edge = colour.darker(160)
        for face, turned in zip(solid.faces, facing.tolist(), strict=True):
            a, b, c = (seen[k] for k in face[:3])
            if (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) >= 0.0:  # upside down: y points down
                continue
            shade = colour.darker(round(100 + _SHADE * (1.0 - max(0.0, turned))))
            painter.setPen(QPen(shade if solid.smooth else edge, 1.0))
            painter.setBrush(shade)
            painter.drawPolygon(QPolygonF([QPointF(seen[k][0], seen[k][1]) for k in face]))

    def _slide(self, painter: QPainter, i: int, seen: Array, drawing: Drawing) -> None:
        """Draw the rail of a slide, and its carriage."""
        axis = drawing.axes[i]
        low, high = self.skeleton.strokes[i] or (-0.25 * self._size, 0.25 * self._size)
        start = drawing.anchors[i]
        self._line(painter, start + low * axis, start + high * axis, QColor("#aab4c0"), 2.5)
        painter.setPen(QPen(QColor("#7d8a9a"), 1.5, Qt.PenStyle.DotLine))
        painter.drawLine(QPointF(*seen[0, :2]), QPointF(*seen[1, :2]))

    def _joint(self, painter: QPainter, i: int, at: Array) -> None:
        painter.setPen(QPen(QColor(theme.INK), 1.3))
        painter.setBrush(QColor("white"))
        radius = 0.42 * self._thick + 1.5
        x, y = float(at[0]), float(at[1])
        if self.skeleton.joints[i].symbol.mark == "slider":
            painter.drawRect(QRectF(x - 1.3 * radius, y - radius, 2.6 * radius, 2.0 * radius))
        else:
            painter.drawEllipse(QPointF(x, y), radius, radius)

    def _masses(self, painter: QPainter, drawing: Drawing) -> None:
        """Draw the centres of mass as quartered discs."""
        largest = float(self.skeleton.masses.max(initial=0.0)) or 1.0
        for at, mass in zip(self.camera.project(drawing.coms), self.skeleton.masses, strict=True):
            if mass <= 0.0:
                continue
            r = 0.36 * self._thick * (0.5 + 0.5 * (float(mass) / largest) ** (1 / 3)) + 1.0
            box = QRectF(float(at[0]) - r, float(at[1]) - r, 2 * r, 2 * r)
            painter.setPen(QPen(QColor(theme.INK), 0.8))
            painter.setBrush(QColor("white"))
            painter.drawEllipse(box)
            painter.setBrush(QColor(theme.INK))
            for quarter in (0, 180):
                painter.drawPie(box, quarter * 16, 90 * 16)

    def _frames(self, painter: QPainter, poses: Array) -> None:
        length = 0.13 * self._size
        for pose in (np.eye(4), *poses):
            for k, colour in enumerate(_AXES):
                if not self.camera.spatial and abs(float(self.camera.axes()[2] @ pose[:3, k])) > 0.99:
                    continue
                self._line(painter, pose[:3, 3], pose[:3, 3] + length * pose[:3, k], QColor(colour), 1.6)

    def _trails(self, painter: QPainter, trails: Array) -> None:
        """Draw where the ends were, (times, ends, 3), fading with age."""
        for k in range(trails.shape[1]):
            seen = self.camera.project(trails[:, k])
            cuts = np.linspace(0, len(seen) - 1, _TRAIL_STEPS + 1).astype(int)
            for j, (a, b) in enumerate(pairwise(cuts.tolist())):
                if b <= a:
                    continue
                colour = QColor(theme.WARM)
                colour.setAlphaF(0.08 + 0.62 * (j + 1) / _TRAIL_STEPS)
                painter.setPen(QPen(colour, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
                painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in seen[a : b + 1, :2]]))

    def push(self, painter: QPainter, at: Array, target: Array, text: str) -> None:
        """Draw a push: a spring from the point on the link to the mouse."""
        a, b = self.camera.project(at), self.camera.project(target)
        colour = QColor("#c2255c")
        self._arrow(painter, QPointF(*a[:2]), QPointF(*b[:2]), colour, 2.4)
        painter.setBrush(colour)
        painter.drawEllipse(QPointF(*a[:2]), 3.5, 3.5)
        font = theme.plot_font()
        font.setBold(True)
        painter.setFont(font)
        width = painter.fontMetrics().horizontalAdvance(text)
        x = min(max(float(b[0]) + 8.0, 4.0), self.camera.width - width - 6.0)
        y = min(max(float(b[1]) - 8.0, 14.0), self.camera.height - 6.0)
        painter.drawText(QPointF(x, y), text)

    def hint(self, painter: QPainter, text: str) -> None:
        """Write a line at the bottom."""
        painter.setFont(theme.plot_font())
        painter.setPen(QColor(theme.MUTED))
        width = painter.fontMetrics().horizontalAdvance(text)
        painter.drawText(QPointF(0.5 * (self.camera.width - width), self.camera.height - 8.0), text)

    # strokes

    def _shade(self, colour: QColor, depth: float) -> QColor:
        """Return a colour paler with distance."""
        if not self.camera.spatial:
            return colour
        away = min(1.0, max(0.0, 0.5 - 0.5 * depth / self._size))
        mix = 0.45 * away
        paper = 255 * mix
        return QColor(*(int(c * (1.0 - mix) + paper) for c in (colour.red(), colour.green(), colour.blue())))

    def _segment(self, painter: QPainter, a: Array, b: Array) -> None:
        seen = self.camera.project(np.stack([a, b]))
        painter.drawLine(QPointF(*seen[0, :2]), QPointF(*seen[1, :2]))

    def _line(self, painter: QPainter, a: Array, b: Array, colour: QColor, width: float) -> None:
        painter.setPen(QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        self._segment(painter, a, b)

    def _arrow(self, painter: QPainter, a: QPointF, b: QPointF, colour: QColor, width: float) -> None:
        painter.setPen(QPen(colour, width))
        way = b - a
        length = math.hypot(way.x(), way.y())
        if length < 1.0:
            return
        along = way / length
        across = QPointF(-along.y(), along.x())
        head = min(10.0, 0.5 * length)
        painter.drawLine(a, b - along * head * 0.8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        neck = b - along * head
        painter.drawPolygon(QPolygonF([b, neck + across * 0.45 * head, neck - across * 0.45 * head]))
        painter.setPen(QPen(colour, width))


def _round_length(length: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not longer.

    >>> _round_length(0.7), _round_length(31.0)
    (0.5, 20.0)
    """
    if not length > 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(length))
    return power * max(f for f in (1.0, 2.0, 5.0) if f * power <= length * (1.0 + 1e-12))
