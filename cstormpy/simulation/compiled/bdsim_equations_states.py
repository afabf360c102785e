"""Equations of bdsim's blocks with states, continuous and sampled, whose own methods ask for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.bdsim_blocks import linear_outputs, side_by_side
from cstormpy.simulation.bounds import bounds_of, is_bounded, side_of
from cstormpy.simulation.compiled.equations import deriv, guard, next_state, output, own_method

Signals = list[Any]

own_method("bdsim.blocks.sampled.Deriv_S", numbers=("gain", "T"))

# the bounds of an integrator are a rule of the runner: see `cstormpy.simulation.bounds`
_BOUNDS = {
    "bounded": lambda b: None if not is_bounded(b) else 1.0,
    "side": side_of,
    "low": lambda b: bounds_of(b)[0],
    "high": lambda b: bounds_of(b)[1],
}


@deriv("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _integrator_rate(b: Any, t: Any, u: Signals, x: Any) -> Any:
    rate = b.gain * np.ravel(u[0])
    return rate if b.bounded is None else np.where(b.side == 0.0, rate, 0.0)


@guard("bdsim.blocks.continuous.Integrator", numbers=("gain",), **_BOUNDS)
def _bound(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    """Return the room that a free state has to its bounds, or how fast a held one would go out of the one it is at."""
    k = detector.entry
    room = np.minimum(b.high[k] - x[k], x[k] - b.low[k])
    return np.where(b.side[k] == 0.0, room, b.side[k] * (b.gain * np.ravel(u[0]))[k])


_SYSTEM = ("A", "B", "C", "D")
output("bdsim.blocks.continuous.LTI_SS", "bdsim.blocks.sampled.LTI_SS_S", numbers=_SYSTEM)(linear_outputs)


@deriv("bdsim.blocks.continuous.LTI_SS", numbers=_SYSTEM)
@next_state("bdsim.blocks.sampled.LTI_SS_S", numbers=_SYSTEM)
def _linear_rate(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return b.A @ x + b.B @ side_by_side(u)


@next_state("bdsim.blocks.sampled.ZOH")
def _held(b: Any, t: Any, u: Signals, x: Any) -> Any:
    return np.ravel(u[0])
