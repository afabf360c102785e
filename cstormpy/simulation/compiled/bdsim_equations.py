"""Equations of bdsim's sources, functions and connections whose own methods ask for numbers.

All other blocks of bdsim are traced by their own methods (`equations.own_method` says which of their attributes are
parameters).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph.linear_algebra import is_singular
from cstormpy.simulation.bdsim_blocks import side_by_side
from cstormpy.simulation.compiled.equations import fails, output, own_method, passes_on
from cstormpy.simulation.compiled.untranslated import Untraceable

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
    return "truths" if len(first) > 1 and all(map(_is_numpy_truth, first)) else ""


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


def _is_numpy_truth(value: Any) -> bool:
    return isinstance(value, (np.bool_, np.ndarray)) and value.dtype.kind == "b"


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
