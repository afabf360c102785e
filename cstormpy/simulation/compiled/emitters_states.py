"""Emitters of bdsim's blocks with states, continuous and sampled; of the sampled ones also what a tick does."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.bounds import Bound, bounded_states, is_bounded, side_of
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits, emits_guard, emits_next, emits_rate

__all__: list[str] = []

Values = list[Value]


def _number_or_vector(x: Value) -> Value:
    return named(x[0]) if x.size == 1 else x


@emits("bdsim.blocks.continuous.Integrator", "bdsim.blocks.sampled.ZOH", "bdsim.blocks.sampled.Integrator_S")
def _state(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    return [_number_or_vector(x)]


# continuous -------------------------------------------------------------------------------------------------


def _integrated(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    return e.each("{0} * {1}", e.number(lambda: block.gain), _as_wide(u[0], x))


@emits_rate("bdsim.blocks.continuous.Integrator")
def _integrator_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    rate = _integrated(e, block, u, x)
    if not e.depends(lambda: is_bounded(block)):
        return rate
    return e.each("{1} if {0} == 0.0 else 0.0 * {1}", e.number(lambda: side_of(block)), e.let(rate))


@emits_guard("bdsim.blocks.continuous.Integrator")
def _bound(e: Emitter, block: Any, u: Values, detector: Bound) -> Value:
    k, x = detector.entry, f"x[{detector.place}]"
    has_low, has_high = e.depends(lambda: bounded_states(block)[k])
    ways = [e.each("{1} - {0}", x, e.number(lambda: detector.high))] if has_high else []
    ways += [e.each("{0} - {1}", x, e.number(lambda: detector.low))] if has_low else []
    room = ways[0] if len(ways) == 1 else e.each("min({0}, {1})", *ways)
    rate = _integrated(e, block, u, named([""] * block.nstates))[k]
    return e.each("{2} if {0} == 0.0 else {0} * {1}", e.number(lambda: detector.side), rate, room)


def _as_wide(value: Value, x: Value) -> Value:
    if value.size != x.size:
        raise Untranslatable(f"has {x.size} states and an input of {value.size} numbers")
    return value.ravel()


def _stacked(u: Values) -> Value:
    """Return the inputs as one vector."""
    return np.concatenate([value.ravel() for value in u])


@emits("bdsim.blocks.continuous.LTI_SS", "bdsim.blocks.sampled.LTI_SS_S")
def _linear(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    y = e.product(e.number(lambda: block.C), x)
    if e.depends(lambda: block.D is not None):
        y = e.each("{0} + {1}", y, e.product(e.number(lambda: block.D), _stacked(u)))
    return [named(item) for item in np.atleast_1d(y)]


@emits_rate("bdsim.blocks.continuous.LTI_SS")
def _linear_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    both = np.hstack([e.number(lambda: block.A), e.number(lambda: block.B)])
    return e.product(both, np.concatenate([x, _stacked(u)]))


emits_next("bdsim.blocks.sampled.LTI_SS_S")(_linear_rate)

# sampled ----------------------------------------------------------------------------------------------------


@emits_next("bdsim.blocks.sampled.ZOH")
def _held(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    return _as_wide(u[0], x)


@emits_next("bdsim.blocks.sampled.Integrator_S")
def _summed(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    gain, T = e.number(lambda: block.gain), e.number(lambda: block.T)
    after = e.let(e.each("{0} + {1} * {2} * {3}", x, gain, T, _as_wide(u[0], x)))
    low, high = e.depends(lambda: (block.min is not None, block.max is not None))
    if low:
        after = e.let(e.each("max({0}, {1})", after, e.number(lambda: block.min)))
    if high:
        after = e.let(e.each("min({0}, {1})", after, e.number(lambda: block.max)))
    if e.depends(lambda: block.enable) is None:
        return after
    return e.each(f"{{0}} if abs({u[0].ravel()[0]}) < {{1}} else 0.0", after, e.number(_band(block, u[0])))


#: What PID_S has its integrator ask whether to go on.
_BAND = ("bdsim.blocks.sampled", "PID_S.__init__.<locals>.ifunc")


def _band(block: Any, value: Value) -> Any:
    """Return a reader of the error within which the integrator of PID_S is enabled."""
    enable = block.enable
    if (enable.__module__, enable.__qualname__) != _BAND or value.size != 1:
        raise Untranslatable("is enabled by a function (enable=)")
    return lambda: block.enable.__closure__[0].cell_contents


@emits("bdsim.blocks.sampled.Deriv_S")
def _sampled_rate(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    gain, T = e.number(lambda: block.gain), e.number(lambda: block.T)
    return [_number_or_vector(e.each("{0} * ({1} - {2}) / {3}", gain, u[0], x, T))]


@emits_next("bdsim.blocks.sampled.Deriv_S")
def _last_input(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    return _as_wide(u[0], x)
