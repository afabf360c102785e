"""Emitters of bdsim's blocks with states, continuous and sampled; of the sampled ones what they give between ticks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits, emits_rate

__all__: list[str] = []

Values = list[Value]


def _number_or_vector(x: Value) -> Value:
    return named(x[0]) if x.size == 1 else x


@emits("bdsim.blocks.continuous.Integrator", "bdsim.blocks.sampled.ZOH", "bdsim.blocks.sampled.Integrator_S")
def _state(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    return [_number_or_vector(x)]


@emits_rate("bdsim.blocks.continuous.Integrator")
def _integrator_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    rate = u[0].ravel()
    if rate.shape != x.shape:
        raise Untranslatable(f"has {x.size} states and an input of {rate.size} numbers")
    rate = e.let(rate)
    if block.min is not None:
        rate = e.each("0.0 if {0} < {1} else {2}", x, e.number(block.min), rate)
    if block.max is not None:
        rate = e.each("0.0 if {0} > {1} else {2}", x, e.number(block.max), rate)
    return e.each("{0} * {1}", e.number(block.gain), rate)


def _stacked(u: Values) -> Value:
    """Return the inputs as one vector."""
    return np.concatenate([value.ravel() for value in u])


@emits(
    "bdsim.blocks.continuous.LTI_SS",
    "bdsim.blocks.sampled.LTI_SS_S",
)
def _linear(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    y = e.product(e.number(block.C), x)
    if block.D is not None:
        y = e.each("{0} + {1}", y, e.product(e.number(block.D), _stacked(u)))
    return [_number_or_vector(np.atleast_1d(y))]


@emits_rate("bdsim.blocks.continuous.LTI_SS")
def _linear_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    return e.product(np.hstack([e.number(block.A), e.number(block.B)]), np.concatenate([x, _stacked(u)]))


@emits("bdsim.blocks.sampled.Deriv_S")
def _sampled_rate(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    difference = e.each("{0} * ({1} - {2}) / {3}", e.number(block.gain), u[0], x, e.number(block.T))
    return [_number_or_vector(difference)]
