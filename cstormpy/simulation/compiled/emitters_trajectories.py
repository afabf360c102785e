"""Emitters of SPLINETRAJECTORY and FROMDATA, and what plays a B-spline in other blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_mechanisms import held
from cstormpy.simulation.compiled.registry import Value, emits
from cstormpy.simulation.compiled.tables import Rows, index, spline_levels, spline_sizes

__all__ = ["played"]

Values = list[Value]


def played(e: Emitter, read: Callable[[], Any], time: str) -> Value:
    """Return value, rate and acceleration (3, n) of a B-spline at a time within its interval; `read` gives it."""
    curve = read()
    place, row = e.scratch(3 * curve.n), e.scratch(curve.degree + 1)
    table, sizes = e.numbers(lambda: spline_levels(read())), e.integers(lambda: spline_sizes(read()))
    e.depends(lambda: (read().degree, read().n))
    e.line(
        f"{e.call('spline')}({time}, {table}, {sizes}, w[{row}:{row + curve.degree + 1}], "
        f"w[{place}:{place + 3 * curve.n}])"
    )
    return held(place, 3 * curve.n).reshape(3, curve.n)


def _within(e: Emitter, ends: str, first: Value, last: Value) -> Value:
    """Return the time of a motion or a record that the present time stands for."""
    if ends == "repeat":
        return e.let(e.each(f"{e.call('repeated')}({{2}}, {{0}}, {{1}})", first, last, e.time))
    if ends == "error":
        e.fail_if(f"not ({first} <= {e.time} <= {last})")
        return e.time
    return e.let(e.each(f"{e.call('clipped')}({{2}}, {{0}}, {{1}})", first, last, e.time))


@emits("cstormpy.blocks.trajectories.SplineTrajectory")
def _spline(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    ends = e.depends(lambda: block._ends)
    first, rate = e.number(lambda: block._from), e.number(lambda: block._pace)
    last = e.number(lambda: block._from + block.curve.duration / block._pace)
    t0, t1 = e.number(lambda: block.curve.t0), e.number(lambda: block.curve.t1)
    within = _within(e, ends, first, last)
    s = e.let(
        e.each(f"{e.call('clipped')}({{0}} + {{1}} * ({{2}} - {{3}}), {{0}}, {{4}})", t0, rate, within, first, t1)
    )
    found = played(e, lambda: block.curve, str(s))
    moves = rate
    if ends == "hold":
        moves = e.let(e.each("{3} if {0} <= {2} < {1} else 0.0", first, last, e.time, rate))
    return [found[0], e.each("{0} * {1}", moves, found[1]), e.each("{0} * {0} * {1}", moves, found[2])]


@emits("cstormpy.blocks.trajectories.FromData")
def _from_data(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    between, ends = e.depends(lambda: (block._between, block._ends))
    first, last = e.number(lambda: block._times[0]), e.number(lambda: block._times[-1])
    within = _within(e, ends, first, last)
    if between == "cubic":
        return [_on_pieces(e, block, str(within))]
    times, values = Rows(e, lambda: block._times), Rows(e, lambda: block._values)
    table, count = e.numbers(lambda: block._times), times.count
    k = index(e, f"max({e.call('count_upto')}({table}, {count}, {within}) - 1, 0)")
    if between == "previous":
        return [values.at(k)]
    after = index(e, f"min({k} + 1, {count - 1})")
    here, there = times.at(k), times.at(after)
    share = e.let(
        e.each(f"({within} - {{0}}) / ({{1}} - {{0}}) if {{0}} < {within} and {{1}} > {{0}} else 0.0", here, there)
    )
    return [e.each("{0} + {2} * ({1} - {0})", values.at(k), values.at(after), share)]


def _on_pieces(e: Emitter, block: Any, within: str) -> Value:
    """Return the value on the spline of the piece that a time falls into."""
    pieces, shape = block._pieces, block._values.shape[1:]
    if not pieces:
        raise Untranslatable("has no samples")
    width, degree = pieces[0].n, max(piece.degree for piece in pieces)
    begins, count = e.numbers(lambda: block._begins), len(pieces)
    k = index(e, f"max({e.call('count_upto')}({begins}, {count}, {within}) - 1, 0)")
    tables = e.numbers(lambda: np.concatenate([spline_levels(piece) for piece in block._pieces]))
    sizes = e.integers(lambda: np.concatenate([spline_sizes(piece) for piece in block._pieces]))
    lengths = e.integers(lambda: [spline_levels(piece).size for piece in block._pieces])
    bounds = Rows(e, lambda: [[piece.t0, piece.t1] for piece in block._pieces]).at(k)
    inside = e.let(f"{e.call('clipped')}({within}, {bounds[0]}, {bounds[1]})")
    place, row = e.scratch(3 * width), e.scratch(degree + 1)
    e.line(
        f"{e.call('piece_of_spline')}({inside}, {tables}, {sizes}, {k}, {lengths}, w[{row}:{row + degree + 1}], "
        f"w[{place}:{place + 3 * width}])"
    )
    found = held(place, width)
    return found.reshape(shape) if shape else named(found[0])
