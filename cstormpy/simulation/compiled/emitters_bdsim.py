"""Emitters of bdsim's blocks without states: sources, functions, connections, sinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits, silent_sink

__all__: list[str] = []

Values = list[Value]

# sources ----------------------------------------------------------------------------------------------


@emits("bdsim.blocks.sources.Constant")
def _constant(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [e.number(block.value)]


@emits("bdsim.blocks.sources.Time")
def _time(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [e.time]


@emits("bdsim.blocks.sources.Step")
def _step(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [e.each("{1} if t >= {0} else {2}", e.number(block.T), e.number(block.on), e.number(block.off))]


@emits("bdsim.blocks.sources.Ramp")
def _ramp(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    T, off, slope = e.number(block.T), e.number(block.off), e.number(block.slope)
    return [e.each("{1} + {2} * (t - {0}) if t >= {0} else {1}", T, off, slope)]


@emits("bdsim.blocks.sources.Piecewise")
def _piecewise(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    times = np.asarray(block.t, dtype=float)
    if (np.diff(times) < 0.0).any():
        raise Untranslatable("its times do not increase")
    if len(times) > 64:
        raise Untranslatable("has more than 64 pieces")
    starts, values = e.number(times), [e.number(y) for y in block.y]
    out = values[-1]  # before the first time, as bdsim's block
    for start, value in zip(starts, values, strict=True):
        out = e.let(e.each("{1} if t >= {0} else {2}", start, value, out))
    return [out]


@emits("bdsim.blocks.sources.WaveForm")
def _waveform(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    freq, phase = e.number(block.freq), e.number(block.phase)
    s = e.let(e.each("(t * {0} - {1}) % 1.0", freq, phase))
    if block.wave == "square":
        wave = e.each("1.0 if {0} < {1} else -1.0", s, e.number(block.duty))
    elif block.wave == "triangle":
        rising = "{0} * 4.0 if {0} < 0.25 else"
        wave = e.each(rising + " 1.0 - 4.0 * ({0} - 0.25) if {0} < 0.75 else -1.0 + 4.0 * ({0} - 0.75)", s)
    else:
        e.call("math")
        wave = e.each("math.sin({0} * 2.0 * math.pi)", s)
    return [e.each("{0} * {1} + {2}", wave, e.number(block.amplitude), e.number(block.offset))]


# functions --------------------------------------------------------------------------------------------


@emits("bdsim.blocks.functions.Gain")
def _gain(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if not isinstance(block.K, (int, float, np.number, np.ndarray)):
        raise Untranslatable(f"its gain is a {type(block.K).__name__}")
    K = e.number(block.K)
    if u[0].ndim and isinstance(block.K, np.ndarray):
        return [e.product(K, u[0]) if block.premul else e.product(u[0], K)]
    return [e.each("{0} * {1}", u[0], K)]


_WRAPS = {"c": "wrapped", "C": "wrapped_positive", "l": "wrapped_colatitude", "L": "wrapped_colatitude"}


@emits("bdsim.blocks.functions.Sum")
def _sum(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    total = u[0] if block.signs[0] == "+" else e.each("-{0}", u[0])
    for sign, value in zip(block.signs[1:], u[1:], strict=True):
        total = e.each(f"{{0}} {sign} {{1}}", total, value)
    if block.mode is None:
        return [total]
    total = e.let(total)
    rows = np.atleast_1d(total)
    if total.ndim and len(block.mode) != len(rows):
        raise Untranslatable("its mode is not as long as its signal")
    for k in range(len(rows)):
        wrap = _WRAPS.get(block.mode[k])
        if wrap is not None:
            rows[k] = named([f"{e.call(wrap)}({item})" for item in np.ravel(rows[k])]).reshape(np.shape(rows[k]))
    if total.shape == () or len(rows) == 1:
        return [rows.reshape(())]
    return [rows]


@emits("bdsim.blocks.functions.Prod")
def _prod(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if any(op == "/" and value.ndim for op, value in zip(block.ops, u, strict=True)):
        raise Untranslatable("divides by a matrix")
    total = u[0] if block.ops[0] == "*" else e.each("1.0 / {0}", u[0])
    for op, value in zip(block.ops[1:], u[1:], strict=True):
        total = e.product(total, value) if value.ndim else e.each(f"{{0}} {op} {{1}}", total, value)
    return [total]


@emits("bdsim.blocks.functions.Pow")
def _pow(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if u[0].ndim and block.matrix:
        raise Untranslatable("takes the power of a matrix")
    if isinstance(block.p, int) and 0 <= block.p <= 4:  # how often it is multiplied is structure, not a number
        return [e.each(" * ".join(["{0}"] * block.p) or "1.0 + 0.0 * {0}", u[0])]
    return [e.each("{0} ** {1}", u[0], e.number(block.p))]


@emits("bdsim.blocks.functions.Clip")
def _clip(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    e.call("clipped")
    return [e.each("clipped({0}, {1}, {2})", u[0], e.number(block.min), e.number(block.max))]


@emits("bdsim.blocks.functions.Interpolate")
def _interpolate(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    f = block.f
    at = e.time if block.time else u[0]
    if getattr(f, "_kind", "") != "linear" or at.shape != () or f.y.ndim > 2 or f.x.size < 2:
        raise Untranslatable("interpolates otherwise than linearly, or between points that are no numbers or vectors")
    xs, item = e.numbers(f.x), e.let(at)[()]
    e.fail_if(f"not ({e.number(f.x[0])} <= {item} <= {e.number(f.x[-1])})")
    columns = np.atleast_2d(np.asarray(f.y).T)
    tables = [e.number(column)[0] for column in columns]
    k = f"k{e.scratch(1)}"
    e.line(f"{k} = {e.call('interval')}({xs}, {f.x.size}, {item})")
    first = xs[2:].split(":")[0]
    left, right = f"p[{first} + {k}]", f"p[{first} + {k} + 1]"
    out = []
    for table in tables:
        y = table[2:-1]
        out.append(f"((p[{y} + {k} + 1] - p[{y} + {k}]) / ({right} - {left}) * ({item} - {left}) + p[{y} + {k}])")
    return [named(out if f.y.ndim == 2 else out[0])]


# connections ------------------------------------------------------------------------------------------


@emits("bdsim.blocks.connections.Mux")
def _mux(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [np.concatenate([value.ravel() for value in u])]


@emits("bdsim.blocks.connections.DeMux")
def _demux(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [named(value) for value in u[0]]


@emits("bdsim.blocks.connections.Index")
def _index(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if len(block.index) == 1:
        return [named(u[0][block.index[0]])]
    return [np.array([u[0][i] for i in block.index], dtype=object)]


@emits("bdsim.blocks.connections.InPort", "bdsim.blocks.connections.OutPort")
def _passed_on(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return u


@emits("bdsim.blocks.linalg.Slice1")
def _slice1(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [named(u[0][block.index])]


@emits("bdsim.blocks.linalg.Slice2")
def _slice2(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [named(u[0][block.rows, block.cols])]


@emits("bdsim.blocks.linalg.Transpose")
def _transpose(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [u[0].reshape(-1, 1) if u[0].ndim == 1 else u[0].T]


@emits("bdsim.blocks.linalg.Flatten")
def _flatten(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [u[0].flatten(block.order)]


@emits("bdsim.blocks.linalg.Norm")
def _norm(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if block.args != {"ord": None, "axis": None}:
        raise Untranslatable("takes another norm than the Euclidean one")
    e.call("math")
    return [named(f"math.sqrt({e.sum([f'{item} * {item}' for item in u[0].ravel()])})")]


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
