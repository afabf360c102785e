"""Largest angles of balls in a search: rotation vectors that stay within a sphere, as other coordinates within limits.

Where a step t would take a rotation vector φ out of the sphere |φ| ≤ α, to the direction n = (φ + t) / |φ + t|, it is
bounded by the plane that touches the sphere there, n · (φ + t) ≤ α: in axes of which n is the first, a limit of one
coordinate. What then leaves the sphere along the plane is brought back to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

AT_LIMIT = 1e-12
"""A vector stands at its limit if it is shorter by no more than this part of it."""


@dataclass(frozen=True)
class LargestAngles:
    """The rotation vectors among some coordinates whose angle is limited: where each begins, and its largest angle."""

    places: tuple[tuple[int, float], ...]

    def within(self, q: Array) -> None:
        """Bring rotation vectors of coordinates (..., k) within their spheres, in place.

        One that is longer than π is first exchanged for the shorter one of the same rotation.
        """
        for first, largest in self.places:
            phi = q[..., first : first + 3]
            angle = _lengths(phi)
            turns = np.where(angle > np.pi, np.ceil((angle - np.pi) / (2 * np.pi)), 0.0)
            left = angle - 2 * np.pi * turns  # below zero: the other way round
            phi *= np.clip(left, -largest, largest) / np.where(angle > 0.0, angle, 1.0) * (angle > 0.0)

    def at_limit(self, q: Array) -> NDArray[np.bool_]:
        """Return which vectors of coordinates (..., k) stand at their largest angle, (..., number of them)."""
        held = [_lengths(q[..., k : k + 3])[..., 0] >= largest * (1 - AT_LIMIT) for k, largest in self.places]
        return np.stack(held, axis=-1) if held else np.zeros((*q.shape[:-1], 0), dtype=bool)

    def touched(self, q: Array, t: Array, low: Array, high: Array) -> tuple[Array, Array, Array] | None:
        """Return axes (B, k, k), columns, in which bounds (B, k) of a step hold largest angles too, and these bounds.

        None if steps t from coordinates q, (B, k) both, leave no sphere.
        """
        end = q + t
        lengths = {first: _lengths(end[:, first : first + 3])[:, 0] for first, _ in self.places}
        outside = {first: lengths[first] > largest for first, largest in self.places}
        if not any(rows.any() for rows in outside.values()):
            return None
        axes = np.tile(np.eye(q.shape[1]), (len(q), 1, 1))
        low, high = low.copy(), high.copy()
        for first, largest in self.places:
            rows, own = np.flatnonzero(outside[first]), slice(first, first + 3)
            n = end[rows, own] / lengths[first][rows, None]
            axes[rows, own, own] = _frames(n)
            low[rows, own], high[rows, own] = -np.inf, np.inf
            high[rows, first] = largest - (n * q[rows, own]).sum(axis=1)
        return axes, low, high

    def draw(self, rng: np.random.Generator, q: Array) -> None:
        """Write random vectors into coordinates (..., k), uniform in their spheres."""
        for first, largest in self.places:
            way = rng.normal(size=(*q.shape[:-1], 3))
            radius = largest * np.cbrt(rng.random((*q.shape[:-1], 1)))
            q[..., first : first + 3] = radius * way / _lengths(way)


def _lengths(phi: Array) -> Array:
    """Return the lengths (..., 1) of vectors (..., 3)."""
    found: Any = np.sqrt((phi * phi).sum(axis=-1, keepdims=True))
    return np.asarray(found)


def _frames(n: Array) -> Array:
    """Return axes (B, 3, 3), columns, of which the first are the unit vectors n (B, 3)."""
    helper = np.eye(3)[np.argmin(np.abs(n), axis=1)]
    second = np.cross(n, helper)
    second /= _lengths(second)
    return np.stack([n, second, np.cross(n, second)], axis=-1)
