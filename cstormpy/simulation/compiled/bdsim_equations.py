"""Equations of bdsim's blocks whose own methods ask for numbers, or that hold functions of the user or of SciPy.

All other blocks of bdsim are traced by their own methods (`equations.own_method` says which of their attributes are
parameters).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph import Node
from cstormpy.graph.linear_algebra import is_singular
from cstormpy.simulation.bdsim_blocks import linear_outputs, side_by_side
from cstormpy.simulation.bounds import bounds_of, is_bounded, side_of
from cstormpy.simulation.compiled.equations import (
    bounded,
    bounded_deriv,
    deriv,
    fails,
    guard,
    next_state,
    output,
    own_method,
    passes_on,
)
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.simulation.compiled.untranslated import Untraceable
from cstormpy.trajectory.basis import evaluate_symbolic

Signals = list[Any]

# linear algebra ---------------------------------------------------------------------------------------


@output("bdsim.blocks.linalg.Norm", known=lambda b: frozenset(b.args.items()))
def _norm(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    return [np.linalg.norm(u[0], **dict(b.known))]  # which norm it is is no parameter


# sources ----------------------------------------------------------------------------------------------

own_method("bdsim.blocks.sources.Constant", numbers=("value",))


@output("bdsim.blocks.sources.Step", numbers=("T", "on", "off"))
def _step(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    return [np.where(t >= b.T, b.on, b.off)]


@output("bdsim.blocks.sources.Ramp", numbers=("T", "off", "slope"))
def _ramp(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    return [np.where(t >= b.T, b.off + b.slope * (t - b.T), b.off)]


@output("bdsim.blocks.sources.WaveForm", numbers=("freq", "phase", "duty", "amplitude", "offset"))
def _waveform(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    s = (t * b.freq - b.phase) % 1.0
    if b.wave == "square":
        wave = np.where(s < b.duty, 1.0, -1.0)
    elif b.wave == "triangle":
        falling = np.where(s < 0.75, 1.0 - 4.0 * (s - 0.25), -1.0 + 4.0 * (s - 0.75))
        wave = np.where(s < 0.25, s * 4.0, falling)
    else:
        wave = np.sin(s * 2.0 * math.pi)
    return [wave * b.amplitude + b.offset]


@output(
    "bdsim.blocks.sources.Piecewise",
    times=lambda b: np.sort(np.asarray(b.t, dtype=float)),
    values=lambda b: np.asarray(b.y, dtype=float),
)
def _piecewise(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    # before the first time it is the last value, as bdsim's block has it
    return [np.take(b.values, np.searchsorted(b.times, t, "right") - 1.0, 0)]


# functions --------------------------------------------------------------------------------------------


@output("bdsim.blocks.functions.Gain", numbers=("K",))
def _gain(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    if not np.ndim(u[0]) or not np.ndim(b.K):
        return [u[0] * b.K]
    return [b.K @ u[0] if b.premul else u[0] @ b.K]


_WRAPS: dict[str, Callable[[Any], Any]] = {
    "c": lambda angle: (angle + math.pi) % (2.0 * math.pi) - math.pi,
    "C": lambda angle: angle - 2.0 * math.pi * np.floor(angle / 2.0 / math.pi),
    "l": lambda angle: _folded(np.abs(angle)),
    "L": lambda angle: _folded(np.abs(angle)),
    "r": lambda value: value,
}


def _folded(angle: Any) -> Any:
    """Return an angle that is not negative, folded into [0, π], as spatialmath's wrap_0_pi."""
    n = np.floor(angle / math.pi)
    return np.where(n % 2.0 == 0.0, angle - n * math.pi, (n + 1.0) * math.pi - angle)


def _kind_of_inputs(b: Any) -> str:
    """Return "truths" of a SUM whose first two signals are NumPy's truth values."""
    first = [slot.value for slot in b._inport_slots[:2]]
    truths = all(isinstance(value, (np.bool_, np.ndarray)) and value.dtype.kind == "b" for value in first)
    return "truths" if len(first) > 1 and truths else ""


@output("bdsim.blocks.functions.Sum", kind_of_inputs=_kind_of_inputs)
def _sum(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    if b.kind_of_inputs == "truths":
        raise Untraceable("it adds truth values, of which NumPy makes one and not a number")
    total = -u[0] if b.signs[0] == "-" else u[0]
    for sign, value in zip(b.signs[1:], u[1:], strict=True):
        total = total - value if sign == "-" else total + value
    if b.mode is None:
        return [total]
    if np.ndim(total) == 0:
        return [_WRAPS[b.mode[0]](total)]
    wrapped = [_WRAPS[mode](row) for mode, row in zip(b.mode, total, strict=True)]
    return [np.reshape(wrapped[0], ()) if np.size(total) == 1 else np.stack([np.asarray(row) for row in wrapped])]


@fails("bdsim.blocks.functions.Prod")
def _prod_fails(b: Any, t: Any, u: Signals, x: Any) -> Any:
    """Return whether a matrix that it divides by has no inverse."""
    found: Any = False
    for op, value in zip(b.ops, u, strict=True):
        if op == "/" and np.ndim(value):
            found = is_singular(value) | found
    return found


@output("bdsim.blocks.functions.Clip", low=lambda b: _as_array(b.min), high=lambda b: _as_array(b.max))
def _clip(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    if np.ndim(u[0]):
        return [np.clip(u[0], b.low, b.high)]
    above = np.where(b.low > u[0], b.low, u[0])  # as Python's max and min: NaN becomes the upper bound
    return [np.where(above < b.high, above, b.high)]


def _as_array(value: Any) -> Any:
    return value if np.ndim(value) == 0 else np.asarray(value, dtype=float)


# connections ------------------------------------------------------------------------------------------

passes_on("bdsim.blocks.connections.Dict", "keys")
passes_on("bdsim.blocks.connections.Item", "item")
passes_on("bdsim.blocks.connections.InPort")
passes_on("bdsim.blocks.connections.OutPort")


@output("bdsim.blocks.connections.Mux")
def _mux(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    return [side_by_side(u)]


# linear algebra -----------------------------------------------------------------------------------------


@fails("bdsim.blocks.linalg.Inverse")
def _inverse_fails(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return not b.pinv and u[0].shape[0] == u[0].shape[1] and is_singular(u[0])


# INTERPOLATE, which holds an object of SciPy (interp1d): lines, steps and splines by points --------------

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
def _interpolate(b: Any, t: Any, u: Signals, x: Any) -> Signals:
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
def _outside(b: Any, t: Any, u: Signals, x: Any) -> Any:
    found: Any = False
    for item in np.ravel(t if b.time else u[0]):
        found = ~((item >= b.points[0]) & (item <= b.points[-1])) | found
    return found


def _on_lines(b: Any, at: Any) -> Any:
    count = len(b.points)
    if count < 2:
        raise Untraceable("it interpolates between fewer than two points")
    k = np.clip(np.searchsorted(b.points, at, "left") - 1.0, 0.0, count - 2.0)
    left, right, y, after = b.points[k], b.points[k + 1.0], b.values[k], b.values[k + 1.0]
    return (after - y) / (right - left) * (at - left) + y


def _at_neighbour(b: Any, at: Any) -> Any:
    kind = b.f._kind
    borders = b.borders if kind.startswith("nearest") else b.points
    k = np.searchsorted(borders, at, "left" if kind in ("nearest", "next") else "right")
    return b.values[k - 1.0 if kind == "previous" else k]


def _on_spline(b: Any, at: Any) -> Any:
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


# functions of the user: FUNCTION, STOP, INTEGRATOR_S, and EVENT -------------------------------------------


@output("bdsim.blocks.functions.Function")
def _function(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    if b.userdata is not None:
        raise Untraceable("it keeps data between its calls (persistent=True)")
    if not callable(b.func):
        return [_called(b, each, u) for each in b.func]
    found = _called(b, b.func, u)
    parts = list(found) if isinstance(found, (list, tuple)) else [found]
    if len(parts) != b.nout:
        raise Untraceable(f"it returns {len(parts)} values for {b.nout} outputs")
    return parts


def _called(b: Any, function: Any, u: Signals) -> Any:
    return with_symbolic_math(function)(*u, *b.args, **b.kwargs)


@next_state("bdsim.blocks.sampled.Integrator_S", numbers=("gain", "T", "min", "max"))
def _summed(b: Any, t: Any, u: Signals, x: Any) -> Any:
    after = x + b.gain * b.T * np.ravel(u[0])
    if b.min is not None:
        after = np.maximum(after, b.min)
    if b.max is not None:
        after = np.minimum(after, b.max)
    if b.enable is None:
        return after
    return np.where(with_symbolic_math(b.enable)(t, u, x), after, 0.0)


@guard("bdsim.blocks.sinks.Event")
def _event(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    return u[0]


@guard("bdsim.blocks.sinks.Stop")
def _stop(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    """Return the number whose sign stops a run; of a truth 1 where it holds, else -1."""
    if b.stopfunc is None:
        truth = np.asarray(b._inport_slots[0].value).dtype.kind == "b"
        return np.where(u[0] != 0.0, 1.0, -1.0) if truth else u[0]
    found = with_symbolic_math(b.stopfunc)(u[0])
    if np.ndim(found) == 0 and isinstance(found, (bool, np.bool_)):
        return 1.0 if found else -1.0
    is_truth = isinstance(found, Node) and found.primitive.truth
    return np.where(found, 1.0, -1.0) if is_truth else found


# states, continuous and sampled -------------------------------------------------------------------------

own_method("bdsim.blocks.sampled.Deriv_S", numbers=("gain", "T"))

# the bounds of an integrator are a rule of the runner: see `cstormpy.simulation.bounds`
_BOUNDS = {
    "bounded": lambda b: None if not is_bounded(b) else 1.0,
    "side": side_of,
    "low": lambda b: bounds_of(b)[0],
    "high": lambda b: bounds_of(b)[1],
}


@bounded_deriv("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _rate_beside_bounds(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return b.gain * np.ravel(u[0])


@deriv("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _integrator_rate(b: Any, t: Any, u: Signals, x: Any) -> Any:
    rate = _rate_beside_bounds(b, t, u, x)
    return rate if b.bounded is None else np.where(b.side == 0.0, rate, 0.0)


@bounded("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _within_bounds(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return np.minimum(np.maximum(x, b.low), b.high)


@guard("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _bound(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    """Return the room that a free state has to its bounds, or how fast a held one would go out of the one it is at."""
    k = detector.entry
    room = np.minimum(b.high[k] - x[k], x[k] - b.low[k])
    return np.where(b.side[k] == 0.0, room, b.side[k] * _rate_beside_bounds(b, t, u, x)[k])


_SYSTEM = ("A", "B", "C", "D")
output("bdsim.blocks.continuous.LTI_SS", "bdsim.blocks.sampled.LTI_SS_S", numbers=_SYSTEM)(linear_outputs)


@deriv("bdsim.blocks.continuous.LTI_SS", numbers=_SYSTEM)
@next_state("bdsim.blocks.sampled.LTI_SS_S", numbers=_SYSTEM)
def _linear_rate(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return b.A @ x + b.B @ side_by_side(u)


@next_state("bdsim.blocks.sampled.ZOH")
def _held(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return np.ravel(u[0])
