"""Rows of tables of numbers, looked up while a diagram runs: what the emitters of sources and laws share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled.emitter import Emitter, named
from cstormpy.simulation.compiled.registry import Value

__all__ = ["Rows", "index", "spline_levels", "spline_sizes"]

Array = NDArray[np.float64]


def index(e: Emitter, expression: str) -> str:
    """Return a local variable that holds a whole number."""
    name = f"k{e.scratch(1)}"
    e.line(f"{name} = {expression}")
    return name


class Rows:
    """A table of samples, each a number or an array, one row for each.

    Parameters
    ----------
    e : Emitter
    read : function without arguments
        Reads the samples, (N, ...).
    """

    def __init__(self, e: Emitter, read: Callable[[], Any]) -> None:
        samples = np.asarray(read(), dtype=float)
        self.count, self.shape = len(samples), samples.shape[1:]
        self._width = int(np.prod(self.shape))
        self._first = int(e.numbers(lambda: np.asarray(read(), dtype=float))[2:].split(":")[0])

    def at(self, place: str) -> Value:
        """Return the row of a number, which is an expression, as expressions."""
        texts = [f"p[{self._first + k} + {self._width} * {place}]" for k in range(self._width)]
        return named(texts).reshape(self.shape) if self.shape else named(texts[0])


def spline_levels(curve: Any) -> Array:
    """Return the knots and control points of a B-spline, and those of its derivatives, as `spline` has them."""
    from cstormpy.trajectory.basis import difference

    points = [curve.control_points]
    for order in range(1, min(curve.degree, 2) + 1):
        points.append(difference(curve.knots, curve.degree, points[-1], order))
    return np.concatenate([curve.knots, *(level.ravel() for level in points)])


def spline_sizes(curve: Any) -> list[int]:
    """Return what the callee `spline` has to know of a B-spline beside its numbers."""
    knots = curve.knots
    lowest = int(np.searchsorted(knots, curve.t0, "right")) - 1
    highest = int(np.searchsorted(knots, curve.t1, "left")) - 1
    return [curve.degree, len(curve.control_points), curve.n, min(curve.degree, 2), lowest, highest]
