"""A mechanism drawn where it is now: a picture as an array, or in a window of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError
from cstormpy.linkage.skeleton import Skeleton, skeleton
from cstormpy.report.figures import draw_pose, look_at, projection

_SIZE, _DPI = 4.8, 100
"""Inches of either side, and pixels in one."""
_SAMPLES = 200
"""In so many postures it is looked how far a mechanism reaches."""
_MARGIN = 0.08
"""Free space around, as a part of what is reached."""
_ROOM = 2.0
"""The view of a floating mechanism is so many times as wide as that."""
_ALL_FREEDOMS = 6
"""Coordinates of a joint that leaves a body free in space: what it reaches says nothing of where it will be."""


class PoseDrawing:
    """Mechanisms side by side, drawn as figures draw them, on axes that hold still, or go along with a floating one.

    Parameters
    ----------
    mechanisms : list of Mechanism
    title : str
        Above the drawing, of the window too.
    in_window : bool
        Whether to open a window.

    Raises
    ------
    DiagramError
        No window can be opened.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> drawing = PoseDrawing([library.acrobot()], "acrobot")
    >>> drawing.picture([[0.3, 0.5]]).shape
    (480, 480, 3)
    """

    def __init__(self, mechanisms: Sequence[Any], title: str = "", in_window: bool = False) -> None:
        self._bones = [skeleton(mech) for mech in mechanisms]
        self._views = [_View(bones) for bones in self._bones]
        size = (_SIZE * len(self._bones), _SIZE)
        self._figure = _window(title, size) if in_window else _sheet(size)
        self._in_window = in_window
        self._axes = []
        for k, bones in enumerate(self._bones):
            self._axes.append(self._figure.add_subplot(1, len(self._bones), k + 1, projection=projection(bones)))

    def draw(self, postures: Sequence[Any]) -> None:
        """Draw the mechanisms with these joint positions, (n,) each."""
        for axes, bones, view, q in zip(self._axes, self._bones, self._views, postures, strict=True):
            row = np.asarray(q, dtype=float)
            low, high = view.seen(row)
            axes.clear()
            half = (0.5 + _MARGIN) * max(float((high - low).max()), 1e-9)
            draw_pose(axes, bones, row)
            look_at(axes, bones, (low + high) / 2, half)
        if self._in_window:
            self._figure.canvas.draw_idle()

    def wait(self, seconds: float) -> None:
        """Serve the window for a while."""
        self._figure.canvas.start_event_loop(max(seconds, 1e-3))

    def picture(self, postures: Sequence[Any]) -> NDArray[np.uint8]:
        """Return the picture, (height, width, 3), of the mechanisms with these joint positions."""
        self.draw(postures)
        self._figure.canvas.draw()
        return np.asarray(self._figure.canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Close the window."""
        if self._in_window:
            import matplotlib.pyplot as plt

            plt.close(self._figure)


class _View:
    """What is to be seen of a mechanism: all that it reaches, or of one that may be anywhere what is around it."""

    def __init__(self, bones: Skeleton) -> None:
        self._bones = bones
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_SAMPLES, bones.n))
        self._floats = any(joint.dof == _ALL_FREEDOMS for joint in bones.joints)
        self._low, self._high = bones.extent(q)
        if self._floats:
            low, high = _box(bones, q)
            half = 0.5 * _ROOM * (float((high - low).max()) or 1.0)  # a body without a shape is a dot
            self._low, self._high = np.full(3, -half), np.full(3, half)

    def seen(self, q: Array) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates to be seen in a posture (n,)."""
        if self._floats:
            low, high = _box(self._bones, q)
            shift = np.maximum(high - self._high, 0.0) + np.minimum(low - self._low, 0.0)
            self._low, self._high = self._low + shift, self._high + shift
        else:
            low, high = self._bones.extent(q)
            self._low, self._high = np.minimum(self._low, low), np.maximum(self._high, high)
        return self._low, self._high


def _box(bones: Skeleton, q: Array) -> tuple[Array, Array]:
    """Return the least and the greatest coordinates of a mechanism itself in each posture."""
    moving = bones.place(bones.poses(q)).moving()
    return moving.min(axis=-2), moving.max(axis=-2)


def _sheet(size: tuple[float, float]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure


def _window(title: str, size: tuple[float, float]) -> Any:
    """Return the figure of a window, refused where matplotlib can show none."""
    import matplotlib.pyplot as plt

    plt.switch_backend(plt.get_backend())  # which finds out whether there is a display
    if plt.get_backend().lower() in ("agg", "pdf", "svg", "ps", "cairo", "template"):
        raise DiagramError(
            "render_mode='human': matplotlib has no window to draw in here (its backend is "
            f"{plt.get_backend()}); use render_mode='rgb_array', or a display and a backend such as QtAgg or TkAgg"
        )
    figure = plt.figure(title or None, figsize=size, dpi=_DPI)
    figure.show()
    return figure
