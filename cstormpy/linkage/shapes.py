"""Shapes that a link is drawn with: boxes, balls, cylinders, capsules and ellipsoids, which the dynamics do not know.

All are convex: a picture of one is what its outer faces show.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import entries, option
from cstormpy.arrays import Array, is_single
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.values import Value, numbers_text

SHAPES = {
    "box": ("length in x", "in y", "in z"),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("half axis in x", "in y", "in z"),
}
"""Kinds of shapes, and the numbers that are their size."""

_ROUND = 12
"""Corners of what is drawn for a circle."""


class Solid(NamedTuple):
    """The outside of a convex shape: its flat faces.

    Attributes
    ----------
    middle : ndarray (3,)
    corners : ndarray (k, 3)
    faces : tuple of tuple of int
        Corners of each face, counterclockwise seen from outside.
    normals : ndarray (n_faces, 3)
        Unit vectors, outwards.
    colour : ndarray (3,) or None
    smooth : bool
        Whether the edges between faces are not there in truth.
    """

    middle: Array
    corners: Array
    faces: tuple[tuple[int, ...], ...]
    normals: Array
    colour: Array | None
    smooth: bool

    def moved(self, X: Array) -> Solid:
        """Return the shape in frames in which its own has the poses X (..., 4, 4); its points become (..., k, 3)."""
        R, p = X[..., :3, :3], X[..., :3, 3]
        Rt = np.swapaxes(R, -1, -2)
        return self._replace(
            middle=R @ self.middle + p, corners=self.corners @ Rt + p[..., None, :], normals=self.normals @ Rt
        )


class Shape(Value):
    """A shape of a link, for drawings alone.

    Parameters
    ----------
    kind : {"box", "sphere", "cylinder", "capsule", "ellipsoid"}
        Cylinders and capsules lie along z; a capsule is a cylinder with half a ball at each end.
    size : float or array_like
        Lengths along x, y and z of a box; radius of a sphere; radius and length of a cylinder, and of a capsule without
        its ends; half the axes of an ellipsoid. All in metres, none negative.
    pose : array_like, (4, 4) or (3,), optional
        Pose of its middle in the link's frame, or the middle alone.
    colour : array_like, (3,), optional
        Red, green and blue from 0 to 1; that of the link unless given.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType, UnknownName
        Naming what is wrong.

    Examples
    --------
    >>> Shape("cylinder", (0.1, 1.0), colour=(1, 0, 0))
    Shape('cylinder', (0.1, 1), colour=(1, 0, 0))
    >>> Shape("box", (2.0, 2.0, 2.0)).extent
    1.7320508075688772
    """

    _fields = ("kind", "size", "pose", "colour")
    kind: str
    size: Array
    pose: Array
    colour: Array | None

    def __init__(
        self, kind: str, size: ArrayLike, pose: ArrayLike | None = None, colour: ArrayLike | None = None
    ) -> None:
        option(kind, "shape", SHAPES)
        given: Any = [size] if is_single(size) else size
        numbers = checks.array(given, (len(SHAPES[kind]),), f"{kind}: size")
        if (numbers < 0).any():
            raise InvalidValue(f"{kind}: size: must not be negative, got {numbers_text(numbers)}")
        paint = None if colour is None else checks.array(colour, (3,), f"{kind}: colour")
        if paint is not None and not ((paint >= 0) & (paint <= 1)).all():
            raise InvalidValue(f"{kind}: colour: expected three numbers from 0 to 1, got {numbers_text(paint)}")
        self._set(
            kind=kind,
            size=numbers,
            pose=checks.frame_pose(pose, f"{kind}: pose"),
            colour=paint,
        )

    @property
    def extent(self) -> float:
        """No point of it is farther from its middle [m]."""
        if self.kind == "box":
            return 0.5 * float(np.linalg.norm(self.size))
        if self.kind == "cylinder":
            return float(np.hypot(self.size[0], 0.5 * self.size[1]))
        if self.kind == "capsule":
            return float(self.size[0] + 0.5 * self.size[1])
        return float(self.size.max())

    def moved(self, pose: Array) -> Shape:
        """Return the shape in another frame, in which its own has this pose."""
        return Shape(self.kind, self.size, pose @ self.pose, self.colour)

    def solid(self) -> Solid:
        """Return what is drawn of it, in the link's frame.

        >>> cube = Shape("box", (2.0, 2.0, 2.0)).solid()
        >>> len(cube.corners), len(cube.faces), cube.normals[0].tolist()
        (8, 6, [-1.0, 0.0, 0.0])
        """
        own = _box(0.5 * self.size) if self.kind == "box" else _turned(self._profile(), self._scale())
        own = [face for face in own if np.linalg.norm(_normal(face)) > 0]
        R, middle = self.pose[:3, :3], self.pose[:3, 3]
        places: dict[tuple[float, ...], int] = {}
        faces = tuple(tuple(places.setdefault(tuple(c), len(places)) for c in (face + 0.0).tolist()) for face in own)
        normals = np.array([_normal(face) / np.linalg.norm(_normal(face)) for face in own]).reshape(-1, 3)
        corners = np.array(list(places)).reshape(-1, 3)
        return Solid(middle, corners @ R.T + middle, faces, normals @ R.T, self.colour, self.kind != "box")

    def _scale(self) -> Array:
        return self.size if self.kind == "ellipsoid" else np.ones(3)

    def _profile(self) -> Array:
        """Return the outline that turns about z, (k, 2): distance from the axis and height, from below to above."""
        if self.kind == "cylinder":
            radius, half = self.size[0], 0.5 * self.size[1]
            return np.array([[0.0, -half], [radius, -half], [radius, half], [0.0, half]])
        angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _ROUND // 2 + 1)
        arc = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        arc[[0, -1], 0] = 0.0
        if self.kind == "ellipsoid":
            return arc
        arc = self.size[0] * arc
        if self.kind == "sphere":
            return arc
        lift, middle = np.array([0.0, 0.5 * self.size[1]]), _ROUND // 4
        return np.concatenate([arc[: middle + 1] - lift, arc[middle:] + lift])

    def __repr__(self) -> str:
        parts = [repr(self.kind), numbers_text(self.size) if len(self.size) > 1 else f"({self.size[0]:g},)"]
        if not np.array_equal(self.pose, np.eye(4)):
            turned = not np.array_equal(self.pose[:3, :3], np.eye(3))
            parts.append(f"pose={'<turned>' if turned else numbers_text(self.pose[:3, 3])}")
        if self.colour is not None:
            parts.append(f"colour={numbers_text(self.colour)}")
        return f"Shape({', '.join(parts)})"


def check_shapes(shapes: Iterable[Shape], what: str) -> tuple[Shape, ...]:
    """Return shapes as a tuple, refusing what is none."""
    found = tuple(entries(shapes, what, "Shape"))
    for k, shape in enumerate(found):
        if not isinstance(shape, Shape):
            raise InvalidType(f"{what}[{k}]: expected a Shape, got {shown(shape)}")
    return found


def _box(half: Array) -> list[Array]:
    faces = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            a, b = np.eye(3)[(axis + 1) % 3] * half, np.eye(3)[(axis + 2) % 3] * half
            middle = side * np.eye(3)[axis] * half
            corners = [middle - a - b, middle + a - b, middle + a + b, middle - a + b]
            faces.append(np.array(corners if side > 0 else corners[::-1]))
    return faces


def _turned(profile: Array, scale: Array) -> list[Array]:
    """Return the faces of an outline that turns about z, the flat ones at its ends whole."""
    angle = 2.0 * np.pi * np.arange(_ROUND + 1) / _ROUND
    angle[-1] = 0.0
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    faces = []
    for (r, z), (R, Z) in pairwise(profile.tolist()):
        if z == Z:  # an end
            rim = np.column_stack([max(r, R) * circle[:-1], np.full(_ROUND, z)])
            faces.append(rim[::-1] if r < R else rim)
            continue
        low, high = (np.column_stack([radius * circle, np.full(_ROUND + 1, at)]) for radius, at in ((r, z), (R, Z)))
        for k in range(_ROUND):
            corners = [low[k], low[k + 1], high[k + 1], high[k]]
            kept = corners[1:] if not r else corners[:3] if not R else corners
            faces.append(np.array(kept))
    return [face * scale for face in faces]


def _normal(face: Array) -> Array:
    """Return twice the area of a plane polygon, as a vector to the side from which it is counterclockwise."""
    return np.cross(face, np.roll(face, -1, axis=0)).sum(axis=0)
