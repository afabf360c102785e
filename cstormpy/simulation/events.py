"""States at an event, before and after its handlers, and the refusal of events without end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import DiagramError
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.wiring import describe

__all__ = ["at_bounds", "refuse_chatter", "states_left"]

Array = NDArray[np.float64]
#: So many events of one block within so short a time (as SAME_TIME) are chattering, or accumulate as those of a ball
#: that comes to rest: soon they would lie closer together than time can resolve, and one of them would be missed.
_CHATTER = ((100, 1e-7), (4, 1e-8))


def at_bounds(simstate: Any, x: Array, fired: list[int]) -> Array:
    """Return a state in which those that have just reached a bound stand exactly there."""
    bounds = [simstate.crossing_detectors[i][0] for i in fired]
    reached = [bound for bound in bounds if isinstance(bound, Bound) and not bound.side]
    if not reached:
        return x
    out = x.copy()
    for bound in reached:
        out[bound.place] = bound.nearest(float(x[bound.place]))
    return out


def states_left(diagram: Diagram, states: dict[Any, Any]) -> Array:
    """Return the continuous states that event handlers have left."""
    parts = [(b, np.asarray(states[b], dtype=float).reshape(-1)) for b, _ in diagram.continuous]
    for b, part in parts:
        if part.size != b.nstates:
            raise DiagramError(
                f"{describe(b)}: has {b.nstates} states, an event handler left {part.size}; "
                "write into the array, as in states[block][:] = ..."
            )
    return np.concatenate([part for _, part in parts]) if parts else np.zeros(0)


def refuse_chatter(events: list[tuple[float, str]], t: float) -> None:
    """Refuse events of the block that had the last one, if they have come too often."""
    for count, span in _CHATTER:
        name = events[-1][1]
        times = [when for when, block in events[-2 * count :] if block == name][-count:]
        if len(times) == count and times[-1] - times[0] <= span * max(1.0, abs(t)):
            raise DiagramError(
                f"{name}: {count} events within {times[-1] - times[0]:.3g} s at t = {t:.9g}; the signal "
                "chatters about zero: give the switch a hysteresis, or let the event move the state away"
            )
