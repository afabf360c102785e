"""Equations of bdsim's INTERPOLATE, which holds an object of SciPy (interp1d): lines, steps and splines by points."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.equations import fails, output
from cstormpy.simulation.compiled.untranslated import Untraceable
from cstormpy.trajectory.basis import evaluate_symbolic

Number = Any

_INTERPOLATE = "bdsim.blocks.functions.Interpolate"


def _knots(b: Any) -> Any:
    return getattr(getattr(b.f, "_spline", None), "t", None)


def _controls(b: Any) -> Any:
    spline = getattr(b.f, "_spline", None)
    return None if spline is None else spline.c.reshape(len(spline.c), *np.shape(b.f.y)[1:])


@output(
    _INTERPOLATE,
    points=lambda b: np.asarray(b.f.x, dtype=float),
    values=lambda b: np.asarray(b.f.y, dtype=float),
    borders=lambda b: getattr(b.f, "x_bds", None),
    knots=_knots,
    controls=_controls,
)
def _interpolate(b: Any, t: Any, u: list[Any], x: Any) -> list[Any]:
    kind = getattr(b.f, "_kind", "")
    between = _BETWEEN.get(kind)
    if between is None or not b.f.bounds_error or b.f.axis != 0:
        raise Untraceable(f"it interpolates in a way that is not known ({kind or type(b.f).__name__!s:.40})")
    at = t if b.time else u[0]
    if np.ndim(at) == 0:
        return [between(b, at)]
    found = [np.asarray(between(b, item)) for item in np.ravel(at)]
    return [np.stack(found).reshape((*np.shape(at), *found[0].shape))]


@fails(_INTERPOLATE)
def _outside(b: Any, t: Any, u: list[Any], x: Any) -> Any:
    found: Any = False
    for item in np.ravel(t if b.time else u[0]):
        found = ~((item >= b.points[0]) & (item <= b.points[-1])) | found
    return found


def _on_lines(b: Any, at: Number) -> Any:
    count = len(b.points)
    if count < 2:
        raise Untraceable("it interpolates between fewer than two points")
    k = np.clip(np.searchsorted(b.points, at, "left") - 1.0, 0.0, count - 2.0)
    left, right, y, after = b.points[k], b.points[k + 1.0], b.values[k], b.values[k + 1.0]
    return (after - y) / (right - left) * (at - left) + y


def _at_neighbour(b: Any, at: Number) -> Any:
    kind = b.f._kind
    borders = b.borders if kind.startswith("nearest") else b.points
    k = np.searchsorted(borders, at, "left" if kind in ("nearest", "next") else "right")
    return b.values[k - 1.0 if kind == "previous" else k]


def _on_spline(b: Any, at: Number) -> Any:
    """Return the point of a spline; outside of its points the first or the last piece goes on."""
    degree = int(b.f._spline.k)
    span = np.clip(np.searchsorted(b.knots, at, "right") - 1.0, float(degree), len(b.controls) - 1.0)
    return evaluate_symbolic(b.knots, degree, b.controls, span, at, 0)[0]


_BETWEEN = {
    "linear": _on_lines,
    "nearest": _at_neighbour,
    "nearest-up": _at_neighbour,
    "previous": _at_neighbour,
    "next": _at_neighbour,
    "spline": _on_spline,
}
