"""Tables of values at points, with lines between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Number = Any  # a float, or a symbol


def _place(at: Number, points: Any, beyond: bool) -> tuple[Number, Number]:
    """Return the interval that a number is in, and where within it, from 0 to 1 unless the last line goes on beyond.

    At the first and the last point the slope is that of the line within the table.
    """
    k = np.clip(np.searchsorted(points, at, "right") - 1, 0, len(points) - 2)
    held = at if beyond else np.minimum(points[-1], np.maximum(points[0], at))  # of equal ones the second is taken
    return k, (held - points[k]) / (points[k + 1] - points[k])


def shares(points: Any) -> int:
    """Return into how many shares `beside_points` divides the points of a table."""
    return len(points).bit_length()


def beside_points(at: Number, points: Any, share: int) -> Number:
    """Return a number that changes its sign where another one passes a point of a share of a table, and only there.

    As in Gray's code, the first share is every other point, the next one every other of those left over, and so on: two
    numbers with any points of the table between them have an odd number of points of some share between them.

    >>> table = np.array([0.0, 1.0, 3.0])
    >>> [[float(np.sign(beside_points(at, table, k))) for at in (-9.0, 0.5, 2.0, 9.0)] for k in range(shares(table))]
    [[-1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]]
    """
    own = points[2**share - 1 :: 2 ** (share + 1)]
    if len(own) == 1:
        return at - own[0]
    k, part = _place(at, own, True)
    return np.sin(math.pi * (k + np.clip(part, -0.5, 1.5)))


def on_lines(at: Number, points: Any, values: Any, beyond: bool) -> Any:
    """Return what lies on the lines between points; outside of them the end's value, or what is on the last line.

    >>> table = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 0.0])
    >>> float(on_lines(2.0, *table, False)), float(on_lines(4.0, *table, False)), float(on_lines(4.0, *table, True))
    (1.0, 0.0, -1.0)
    """
    k, part = _place(at, points, beyond)
    return values[k] + part * (values[k + 1] - values[k])


def bilinear(x: Number, y: Number, xs: Any, ys: Any, values: Any, beyond: bool) -> Any:
    """Return what lies between four entries of a table (len(xs), len(ys)), linear along both axes.

    >>> float(bilinear(0.5, 0.5, np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 4.0]]), False))
    1.5
    """
    (i, s), (j, r) = _place(x, xs, beyond), _place(y, ys, beyond)
    flat, width = np.ravel(values), len(ys)
    first = i * width + j
    low = flat[first] + r * (flat[first + 1] - flat[first])
    high = flat[first + width] + r * (flat[first + width + 1] - flat[first + width])
    return low + s * (high - low)
