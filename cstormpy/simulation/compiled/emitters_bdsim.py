"""Emitters of bdsim's functions and connections, and which of its sinks are silent."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_linalg import inverse, power
from cstormpy.simulation.compiled.load_signals import add_loads, scale_loads
from cstormpy.simulation.compiled.registry import Value, emits, silent_sink

__all__: list[str] = []

Values = list[Value]

# functions --------------------------------------------------------------------------------------------


@emits("bdsim.blocks.functions.Gain")
def _gain(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    matrix, premul = e.depends(lambda: (isinstance(block.K, np.ndarray), block.premul))
    if not matrix and not isinstance(block.K, (int, float, np.number)):
        raise Untranslatable(f"its gain is a {type(block.K).__name__}")
    K = e.number(lambda: block.K)
    scale_loads(e, block, K)
    if u[0].ndim and matrix:
        return [e.product(K, u[0]) if premul else e.product(u[0], K)]
    return [e.each("{0} * {1}", u[0], K)]


_WRAPS = {"c": "wrapped", "C": "wrapped_positive", "l": "wrapped_colatitude", "L": "wrapped_colatitude"}


@emits("bdsim.blocks.functions.Sum")
def _sum(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    signs, mode = e.depends(lambda: (block.signs, block.mode))
    if len(u) > 1 and all(_is_numpy_truth(slot.value) for slot in block._inport_slots[:2]):
        raise Untranslatable("adds truth values, of which NumPy makes one and not a number")
    total = u[0] if signs[0] == "+" else e.each("-{0}", u[0])
    for sign, value in zip(signs[1:], u[1:], strict=True):
        total = e.each("{0} + {1}" if sign == "+" else "{0} - {1}", total, value)
    if mode is None:
        add_loads(e, block, signs, u)
        return [total]
    total = e.let(total)
    rows = np.atleast_1d(total)
    if total.ndim and len(mode) != len(rows):
        raise Untranslatable("its mode is not as long as its signal")
    for k in range(len(rows)):
        wrap = _WRAPS.get(mode[k])
        if wrap is not None:
            rows[k] = named([f"{e.call(wrap)}({item})" for item in np.ravel(rows[k])]).reshape(np.shape(rows[k]))
    if total.shape == () or rows.size == 1:
        return [rows.reshape(())]
    return [rows]


def _is_numpy_truth(value: Any) -> bool:
    return isinstance(value, (np.bool_, np.ndarray)) and value.dtype.kind == "b"


@emits("bdsim.blocks.functions.Prod")
def _prod(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    ops = e.depends(lambda: block.ops)
    total = None
    for op, value in zip(ops, u, strict=True):
        factor = inverse(e, value) if op == "/" and value.ndim else value
        if total is None:
            total = e.each("1.0 / {0}", value) if op == "/" and not value.ndim else factor
        elif value.ndim:
            total = e.let(e.product(total, factor))
        else:
            total = e.each("{0} * {1}" if op == "*" else "{0} / {1}", total, value)
    return [named(total)]


#: Powers up to this one are written out.
_WRITTEN_OUT = 4


@emits("bdsim.blocks.functions.Pow")
def _pow(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    matrix, whole = e.depends(lambda: (block.matrix, block.p if isinstance(block.p, int) else None))
    if u[0].ndim and matrix:
        return [power(e, u[0], whole)]
    if whole is not None and 0 <= whole <= _WRITTEN_OUT:  # how often it is multiplied is structure, not a number
        return [e.each(" * ".join(["{0}"] * whole) or "1.0 + 0.0 * {0}", u[0])]
    return [e.each("{0} ** {1}", u[0], e.number(lambda: block.p))]


@emits("bdsim.blocks.functions.Clip")
def _clip(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    least, most = e.number(lambda: block.min), e.number(lambda: block.max)
    return [e.each(f"{e.call('clipped')}({{0}}, {{1}}, {{2}})", u[0], least, most)]


# connections ------------------------------------------------------------------------------------------


@emits("bdsim.blocks.connections.Mux")
def _mux(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [np.concatenate([value.ravel() for value in u])]


@emits("bdsim.blocks.connections.DeMux")
def _demux(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [named(value) for value in u[0]]


@emits("bdsim.blocks.connections.Index")
def _index(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    places = e.depends(lambda: list(block.index))
    if len(places) == 1:
        return [named(u[0][places[0]])]
    return [np.array([u[0][i] for i in places], dtype=object)]


@emits("bdsim.blocks.connections.Dict")
def _dict(e: Emitter, block: Any, u: Values, x: Any) -> list[Any]:
    return [dict(zip(e.depends(lambda: tuple(block.keys)), u, strict=True))]


@emits("bdsim.blocks.connections.Item")
def _item(e: Emitter, block: Any, u: list[Any], x: Any) -> Values:
    name = e.depends(lambda: block.item)
    if not isinstance(u[0], dict) or name not in u[0]:
        raise Untranslatable(f"there is no {name!r} in its input")
    return [u[0][name]]


@emits("bdsim.blocks.connections.InPort", "bdsim.blocks.connections.OutPort")
def _passed_on(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return u


# sinks ------------------------------------------------------------------------------------------------

silent_sink(
    "bdsim.blocks.sinks.Null", "bdsim.blocks.sinks.Watch", "bdsim.blocks.sinks.Stop", "bdsim.blocks.sinks.Event"
)
silent_sink(
    "bdsim.blocks.displays.Scope",
    "bdsim.blocks.displays.ScopeXY",
    "bdsim.blocks.displays.ScopeXY1",
    when=lambda block: not getattr(block, "_enabled", True),
)
silent_sink("cstormpy.blocks.live.LiveScope", "cstormpy.blocks.live.LiveXY", "cstormpy.blocks.live.MechanismView")
