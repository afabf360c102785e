"""The pane in which the mechanism moves: seen on its plane or in space, and pushed with the mouse."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from cstormpy.arrays import Array
from cstormpy.linkage.skeleton import Drawing, skeleton
from cstormpy.live.window import theme
from cstormpy.live.window.artist import Artist, Look
from cstormpy.live.window.camera import Camera
from cstormpy.live.window.history import Thinned
from cstormpy.live.window.tile import Tile, small_button
from cstormpy.mechanism.files import from_dict

_GRIP = 14.0
"""A link is taken hold of at most so many pixels away."""
_TRAIL = 1.0
"""Seconds of the trail, unless said."""
_TRAIL_LINKS, _TRAIL_POINTS = 2000, (24, 160)
"""A trail has so many points, fewer with many links."""
_MASSES_SHOWN = 8
"""Centres of mass are drawn at first where there are at most so many."""
_WEIGHTS = 2.0
"""A push as long as the reach is so many times the mechanism's weight."""
_LEAST_WEIGHT = 1.0


class MechanismTile(Tile):
    """A pane with a mechanism on the clock of the run."""

    pushed = Signal(dict)
    released = Signal()

    def __init__(self, pane: dict[str, Any], begin: float, end: float) -> None:
        super().__init__(pane)
        self.history = Thinned(len(self.labels), begin, end)
        self.view = MechanismView(pane)
        trail = self.options.get("trail", True)
        self._trail = _TRAIL if trail is True else float(trail or 0.0)
        self.view.look.trail = self._trail > 0.0
        self.view.look.frames = bool(self.options.get("frames"))
        self._dirty, self._at = False, np.nan
        #: Whether the run has ended, so that there is nothing to push.
        self.over = False
        look, camera = self.view.look, self.view.camera
        for text, tip, on, switch in (
            ("3D", "View in space: drag to turn", camera.spatial, self._switch_spatial),
            ("frames", "Frames of the links", look.frames, lambda on: self._show(frames=on)),
            ("masses", "Centres of mass", look.masses, lambda on: self._show(masses=on)),
            ("trail", "Where the ends were", look.trail, lambda on: self._show(trail=on)),
        ):
            button = small_button(text, text, tip)
            button.setChecked(on)
            button.toggled.connect(switch)
            self.head.addWidget(button)
        reset = small_button("fit", "reset", "The first view again", checkable=False)
        reset.clicked.connect(self.view.reset)
        self.head.addWidget(reset)
        self.column.addWidget(self.view, 1)
        self.view.pushed.connect(self.pushed)
        self.view.released.connect(self.released)

    def add(self, t: Array, rows: Array) -> None:
        """Take new samples (N,), (N, n)."""
        self.history.add(t, rows)
        self._dirty = True

    def q(self, t: Array) -> Array:
        """Return the coordinates (k, n) at times (k,), linearly between what is kept."""
        h = self.history
        after = np.clip(np.searchsorted(h.t, t, side="right"), 1, max(1, len(h) - 1))
        before = after - 1
        after = np.minimum(after, len(h) - 1)
        span = h.t[after] - h.t[before]
        part = np.clip(np.divide(t - h.t[before], span, out=np.ones_like(t), where=span > 0.0), 0.0, 1.0)
        return h.y[before] + part[:, None] * (h.y[after] - h.y[before])

    def refresh(self, now: float, live: bool) -> None:
        """Put the mechanism where it was at a time."""
        can_push = live and not self.over and bool(self.pane["push"])
        if not len(self.history) or (not self._dirty and now == self._at and can_push == self.view.can_push):
            return
        self._dirty, self._at = False, now
        times = np.array([now])
        if self._trail:
            few, many = _TRAIL_POINTS
            count = min(many, max(few, _TRAIL_LINKS // len(self.view.skeleton.parents)))
            step = self._trail / count
            grid = step * np.arange(np.ceil((now - self._trail) / step), np.ceil(now / step))  # stands still
            times = np.append(grid[grid >= self.history.t[0]], now)
        self.view.can_push = can_push
        self.view.place(self.q(times))

    def _show(self, **what: bool) -> None:
        for name, on in what.items():
            setattr(self.view.look, name, on)
        self.view.update()

    def _switch_spatial(self, on: bool) -> None:
        self.view.camera.spatial = on
        self.view.update()


class MechanismView(QWidget):
    """The picture itself."""

    pushed = Signal(dict)
    released = Signal()

    def __init__(self, pane: dict[str, Any]) -> None:
        super().__init__()
        self.mechanism = from_dict(pane["mechanism"])
        self.skeleton = skeleton(self.mechanism)
        self._name = pane["name"]
        view = pane["options"].get("view", "auto")
        spatial = view == "3d" or (view == "auto" and not self.skeleton.planar)
        reach = self.skeleton.reach
        centre = 0.3 * reach * self.skeleton.up if spatial else np.zeros(3)
        self.camera = Camera(self.skeleton.right, self.skeleton.up, centre, (0.9 if spatial else 1.12) * reach)
        self.camera.spatial = spatial
        self.artist = Artist(self.skeleton, self.camera, self.mechanism.gravity)
        self._begins_close = bool(pane["options"].get("fit", False))
        self.look = Look(masses=not spatial and len(self.skeleton.names) <= _MASSES_SHOWN)
        self.can_push = self._pushed = False
        self._block = pane["push"]
        self.drawing: Drawing | None = None
        self._poses = np.zeros((0, 4, 4))
        self._trails: Array | None = None
        self._grip: tuple[int, Array] | None = None  # a link, and a point in its frame
        self._mouse = QPointF()
        self._sent: tuple[float, ...] | None = None
        self.setProperty("control", f"{self._name} picture")
        self.setMinimumSize(80, 80)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    @property
    def gravity(self) -> Array:
        """The acceleration of gravity, (3,) [m/s²]: the arrow's, and of the weight that is the measure of a push."""
        return self.artist.gravity

    @gravity.setter
    def gravity(self, value: Array) -> None:
        self.artist.gravity = value
        if self._grip is not None:
            self._send_push()
        self.update()

    @property
    def _stiffness(self) -> float:
        """Force of a push by the distance of the mouse [N/m]."""
        weight = float(self.skeleton.masses.sum() * np.linalg.norm(self.gravity))
        return _WEIGHTS * max(weight, _LEAST_WEIGHT) / self.skeleton.reach

    def place(self, q: Array) -> None:
        """Move the mechanism to the last row of q (k, n); the others are where its trail is drawn."""
        X = self.skeleton.poses(q)
        if not np.isfinite(X[-1]).all():
            return
        self._poses = X[-1]
        self.drawing = self.skeleton.place(self._poses)
        if self._begins_close:
            self._begins_close = False
            self.camera.begin_close(self.drawing.points())
        self._trails = self._tips(X) if len(X) > 1 else None
        self.camera.include(self.drawing.points(), self.drawing.moving())
        if self._grip is not None:
            self._send_push()
        self.update()

    def _tips(self, X: Array) -> Array:
        """Return where the ends of the last links are, (k, ends, 3)."""
        return np.stack([X[:, i, :3, :3] @ tip + X[:, i, :3, 3] for i, tip in self.skeleton.tips], axis=1)

    def reset(self) -> None:
        """Go back to the first view."""
        self.camera.reset()
        self.update()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the widget."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.PAPER))
        if self.drawing is not None:
            self.artist.draw(painter, self.drawing, self._poses, self._trails, self.look)
        if self.can_push and not self._pushed:
            self.artist.hint(painter, "drag a link to push it")
        if self._grip is not None:
            point, target, force = self._push()
            self.artist.push(painter, point, target, f"{np.linalg.norm(force):.3g} N")
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Tell the camera the new size."""
        self.camera.width, self.camera.height = float(self.width()), float(self.height())

    # the mouse

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold."""
        self._mouse = event.position()
        if event.button() == Qt.MouseButton.LeftButton and self.can_push:
            self._grip = self._nearest(self._mouse.x(), self._mouse.y())
            if self._grip is not None:
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
                self._send_push()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the mouse."""
        moved = event.position() - self._mouse
        self._mouse = event.position()
        if self._grip is not None:
            self._send_push()
        elif event.buttons() & Qt.MouseButton.LeftButton and self.camera.spatial:
            self.camera.turn(moved.x(), moved.y())
        elif event.buttons():
            self.camera.shift(moved.x(), moved.y())
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        if self._grip is not None and event.button() == Qt.MouseButton.LeftButton:
            self._grip, self._sent = None, None
            self.unsetCursor()
            self.released.emit()
            self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go back to what was first."""
        self.reset()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom by the wheel."""
        at = event.position()
        self.camera.zoom(1.15 ** (event.angleDelta().y() / 120.0), at.x(), at.y())
        self.update()

    # the push

    def _nearest(self, x: float, y: float) -> tuple[int, Array] | None:
        """Return the link under a pixel, and the point of its axis there in its own frame."""
        if self.drawing is None:
            return None
        best, found = _GRIP, None
        at = np.array([x, y])
        for i, polylines in enumerate(self.drawing.lines):
            for polyline in polylines:
                seen = self.camera.project(polyline)[:, :2]
                for k in range(len(seen) - 1):
                    way = seen[k + 1] - seen[k]
                    part = float(np.clip((at - seen[k]) @ way / max(float(way @ way), 1e-12), 0.0, 1.0))
                    distance = float(np.linalg.norm(seen[k] + part * way - at))
                    if distance < best:
                        best, found = distance, (i, polyline[k] + part * (polyline[k + 1] - polyline[k]))
        if found is None:
            return None
        link, point = found
        pose = self._poses[link]
        return link, pose[:3, :3].T @ (point - pose[:3, 3])

    def _push(self) -> tuple[Array, Array, Array]:
        """Return the point that is pushed, where the mouse is, and the force, all in the base frame."""
        assert self._grip is not None
        link, local = self._grip
        point = self._poses[link, :3, :3] @ local + self._poses[link, :3, 3]
        target = self.camera.unproject(self._mouse.x(), self._mouse.y(), point)
        return point, target, self._stiffness * (target - point)

    def _send_push(self) -> None:
        assert self._grip is not None
        link, local = self._grip
        _, _, force = self._push()
        numbers = tuple(float(f"{f:.5g}") for f in force)
        if numbers != self._sent:
            self._sent, self._pushed = numbers, True
            self.pushed.emit(
                {
                    "block": self._block,
                    "link": self.skeleton.names[link],
                    "force": list(numbers),
                    "point": [float(f"{p:.6g}") for p in local],
                }
            )
