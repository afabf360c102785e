"""Projects points in space onto the picture, and back."""

from __future__ import annotations

import math

import numpy as np

from cstormpy.arrays import Array
from cstormpy.linkage.skeleton import FAR

_DISTANCE = 5.0
"""Of the eye from the centre, in radii of what is seen."""
_MARGIN = 1.2
"""Radius of a view by that of what fills it."""
_STEEPEST = math.radians(89.0)
_TURN = 0.008
"""Radians for each pixel that the mouse moves."""


class Camera:
    """A view of the base frame: from straight ahead onto a plane, or in perspective from where the user turns it.

    Parameters
    ----------
    right, up : ndarray (3,)
        Directions that show to the right and upwards, before it is turned.
    centre : ndarray (3,)
        The point in the middle of the picture.
    radius : float
        What is at most so far from the centre is seen [m].
    """

    def __init__(self, right: Array, up: Array, centre: Array, radius: float) -> None:
        self._right, self._up = right, up
        self._towards = np.cross(right, up)
        self._home = (centre.copy(), radius)
        self._followed: Array | None = None
        self.spatial = False
        self.width, self.height = 100.0, 100.0
        self.reset()

    @property
    def follows(self) -> bool:
        """True of a view that goes along with a mechanism."""
        return self._followed is not None

    def reset(self) -> None:
        """Go back to the first view."""
        self.centre, self.radius = self._home[0].copy(), self._home[1]
        self.azimuth, self.elevation = math.radians(-35.0), math.radians(22.0)

    def begin_close(self, points: Array) -> None:
        """Make the first view one that some points (K, 3) fill, but for a margin."""
        seen = points @ self.axes().T
        low, high = seen.min(axis=0), seen.max(axis=0)
        radius = 0.5 * float((high - low)[:2].max())
        if radius > 0.0 and math.isfinite(radius):
            self._home = (0.5 * (low + high) @ self.axes(), _MARGIN * radius)
            self.centre, self.radius = self._home[0].copy(), self._home[1]

    @property
    def scale(self) -> float:
        """Pixels for each metre, at the centre."""
        return 0.5 * min(self.width, self.height) / self.radius

    def axes(self) -> Array:
        """Return the directions (3, 3) to the right, upwards and towards the viewer, in rows."""
        if not self.spatial:
            return np.stack([self._right, self._up, self._towards])
        ca, sa = math.cos(self.azimuth), math.sin(self.azimuth)
        ce, se = math.cos(self.elevation), math.sin(self.elevation)
        towards = ce * (ca * self._towards + sa * self._right) + se * self._up
        right = ca * self._right - sa * self._towards
        return np.stack([right, np.cross(towards, right), towards])

    def project(self, points: Array) -> Array:
        """Return pixels to the right and downwards, and the depth towards the viewer [m], (..., 3), of points."""
        seen = (points - self.centre) @ self.axes().T
        factor = self.scale * self._magnification(seen[..., 2])
        return np.stack(
            [0.5 * self.width + factor * seen[..., 0], 0.5 * self.height - factor * seen[..., 1], seen[..., 2]], axis=-1
        )

    def unproject(self, x: float, y: float, beside: Array) -> Array:
        """Return the point under a pixel that is as deep as another point."""
        axes = self.axes()
        depth = float(axes[2] @ (beside - self.centre))
        factor = self.scale * float(self._magnification(np.asarray(depth)))
        across, upwards = (x - 0.5 * self.width) / factor, (0.5 * self.height - y) / factor
        return self.centre + axes.T @ np.array([across, upwards, depth])

    def _magnification(self, depth: Array) -> Array:
        if not self.spatial:
            return np.ones_like(depth)
        away = _DISTANCE * self._home[1]
        return away / np.maximum(away - depth, 0.1 * away)

    def turn(self, dx: float, dy: float) -> None:
        """Walk around the centre by a movement of the mouse."""
        self.azimuth -= _TURN * dx
        self.elevation = min(_STEEPEST, max(-_STEEPEST, self.elevation + _TURN * dy))

    def shift(self, dx: float, dy: float) -> None:
        """Move the picture by so many pixels."""
        axes = self.axes()
        self.centre = self.centre - (axes[0] * dx - axes[1] * dy) / self.scale

    def zoom(self, factor: float, x: float, y: float) -> None:
        """Magnify by a factor about a pixel."""
        fixed = self.unproject(x, y, self.centre)
        self.radius /= factor
        self.centre = self.centre + fixed - self.unproject(x, y, self.centre)

    def include(self, points: Array, own: Array) -> bool:
        """Widen the view if some points (K, 3) lie far outside, or go along; True if it was widened.

        Of these points `own` (k, 3) are a mechanism's: one that has gone farther than `FAR` times its size is followed.
        """
        low, high = own.min(axis=0), own.max(axis=0)
        middle, side = 0.5 * (low + high), float((high - low).max())
        if self._followed is not None:
            move, self._followed, points = middle - self._followed, middle, own
            self.centre, self._home = self.centre + move, (self._home[0] + move, self._home[1])
        farthest = float(np.linalg.norm((points - self._home[0]) @ self.axes()[:2].T, axis=1).max(initial=0.0))
        if not math.isfinite(farthest) or farthest <= 1.02 * self._home[1]:
            return False
        if self._followed is None and 2.0 * farthest > FAR * side > 0.0:
            self._followed, self._home = middle, (middle, 0.5 * _MARGIN * float(np.linalg.norm(high - low)))
        else:
            self._home = (self._home[0], 1.25 * farthest)
        self.centre, self.radius = self._home[0].copy(), self._home[1]
        return True
