"""Emitters of bdsim's sources, and of INTERPOLATE."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits
from cstormpy.simulation.compiled.tables import Rows, index

__all__: list[str] = []

Values = list[Value]


@emits("bdsim.blocks.sources.Constant")
def _constant(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [e.number(lambda: block.value)]


@emits("bdsim.blocks.sources.Time")
def _time(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [e.time]


@emits("bdsim.blocks.sources.Step")
def _step(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    T, on, off = e.number(lambda: block.T), e.number(lambda: block.on), e.number(lambda: block.off)
    return [e.each("{1} if {3} >= {0} else {2}", T, on, off, e.time)]


@emits("bdsim.blocks.sources.Ramp")
def _ramp(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    T, off, slope = e.number(lambda: block.T), e.number(lambda: block.off), e.number(lambda: block.slope)
    return [e.each("{1} + {2} * ({3} - {0}) if {3} >= {0} else {1}", T, off, slope, e.time)]


@emits("bdsim.blocks.sources.Piecewise")
def _piecewise(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    times = e.numbers(lambda: np.sort(np.asarray(block.t, dtype=float)))
    values = Rows(e, lambda: np.asarray(block.y, dtype=float))
    begun = index(e, f"{e.call('count_upto')}({times}, {values.count}, {e.time})")
    # before the first time it is the last value, as bdsim's block has it
    return [values.at(index(e, f"{begun} - 1 if {begun} > 0 else {values.count - 1}"))]


@emits("bdsim.blocks.sources.WaveForm")
def _waveform(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    freq, phase = e.number(lambda: block.freq), e.number(lambda: block.phase)
    s = e.let(e.each("({2} * {0} - {1}) % 1.0", freq, phase, e.time))
    kind = e.depends(lambda: block.wave)
    if kind == "square":
        wave = e.each("1.0 if {0} < {1} else -1.0", s, e.number(lambda: block.duty))
    elif kind == "triangle":
        rising = "{0} * 4.0 if {0} < 0.25 else"
        wave = e.each(rising + " 1.0 - 4.0 * ({0} - 0.25) if {0} < 0.75 else -1.0 + 4.0 * ({0} - 0.75)", s)
    else:
        e.call("math")
        wave = e.each("math.sin({0} * 2.0 * math.pi)", s)
    return [e.each("{0} * {1} + {2}", wave, e.number(lambda: block.amplitude), e.number(lambda: block.offset))]


# INTERPOLATE, which is scipy's interp1d --------------------------------------------------------------------


@emits("bdsim.blocks.functions.Interpolate")
def _interpolate(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    kind, bounded = e.depends(lambda: (getattr(block.f, "_kind", ""), bool(block.f.bounds_error)))
    between = _BETWEEN.get(kind)
    if between is None or not bounded or block.f.axis != 0:
        raise Untranslatable(f"interpolates in a way that is not known ({kind or type(block.f).__name__!s:.40})")
    at = e.time if block.time else u[0]
    first, last = e.number(lambda: block.f.x[0]), e.number(lambda: block.f.x[-1])
    out = []
    for item in e.let(at).ravel():
        e.fail_if(f"not ({first} <= {item} <= {last})")
        out.append(between(e, block.f, str(item)))
    if at.shape == ():
        return [out[0]]
    return [np.array([value.tolist() for value in out], dtype=object).reshape((*at.shape, *out[0].shape))]


def _on_lines(e: Emitter, f: Any, item: str) -> Value:
    if f.x.size < 2:
        raise Untranslatable("interpolates between fewer than two points")
    xs, values = Rows(e, lambda: f.x), Rows(e, lambda: f.y)
    k = index(e, f"{e.call('interval')}({e.numbers(lambda: f.x)}, {f.x.size}, {item})")
    left, right = xs.at(k), xs.at(f"({k} + 1)")
    y, after = values.at(k), values.at(f"({k} + 1)")
    return e.each(f"({{1}} - {{0}}) / ({{3}} - {{2}}) * ({item} - {{2}}) + {{0}}", y, after, left, right)


def _at_neighbour(e: Emitter, f: Any, item: str) -> Value:
    kind, values = f._kind, Rows(e, lambda: f.y)
    borders, count = (lambda: f.x_bds, f.x_bds.size) if kind.startswith("nearest") else (lambda: f.x, f.x.size)
    how = "count_below" if kind in ("nearest", "next") else "count_upto"
    k = index(e, f"{e.call(how)}({e.numbers(borders)}, {count}, {item})")
    return values.at(f"({k} - 1)" if kind == "previous" else k)


def _on_spline(e: Emitter, f: Any, item: str) -> Value:
    spline, shape = f._spline, f.y.shape[1:]
    width, degree, count = int(np.prod(shape)), int(spline.k), len(spline.c)
    table = e.numbers(lambda: np.concatenate([f._spline.t, f._spline.c.ravel()]))
    sizes = e.integers([degree, count, width, 0, degree, count - 1])
    row, place = e.scratch(degree + 1), e.scratch(3 * width)
    e.line(f"{e.call('spline')}({item}, {table}, {sizes}, w[{row}:{row + degree + 1}], w[{place}:{place + 3 * width}])")
    found = named([f"w[{k}]" for k in range(place, place + width)])
    return found.reshape(shape) if shape else named(found[0])


_BETWEEN = {
    "linear": _on_lines,
    "nearest": _at_neighbour,
    "nearest-up": _at_neighbour,
    "previous": _at_neighbour,
    "next": _at_neighbour,
    "spline": _on_spline,
}
