"""The limits of INTEGRATOR as events: beyond one the state stands still, and when it gets there depends on parameters.

Stages of a step see the limit too, as they do in a run: the state gets there late by a part of the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bdsim.blocks.continuous import Integrator
from numpy.typing import NDArray

from cstormpy.simulation.compiled.emitter import Emitter
from cstormpy.simulation.compiled.registry import Value, emits_guard
from cstormpy.simulation.diagram import Diagram

__all__ = ["Limit", "limits_of"]

Array = NDArray[np.float64]
#: A state that stands so far beyond its limit, as part of one and the limit, is beyond it for certain.
_BEYOND = 1e-15


class Limit:
    """Detects that one state of an INTEGRATOR gets to a limit.

    Attributes
    ----------
    place : int
        Where the state stands among all.
    direction : float
        1 at the greatest value, -1 at the least.
    """

    def __init__(self, block: Any, entry: int, place: int, direction: float) -> None:
        self._block, self._entry, self.place, self.direction = block, entry, place, direction

    def bound(self) -> float:
        """Return the limit."""
        value = self._block.max if self.direction > 0.0 else self._block.min
        return float(np.broadcast_to(value, self._block.nstates)[self._entry])

    def __call__(self, t: float, x: Array) -> float:
        """Return how far a state is beyond the limit, in the direction of greater values."""
        bound = self.bound()
        return float(x[self.place]) - bound - self.direction * _BEYOND * (1.0 + abs(bound))

    def inside(self, x: Array) -> Array:
        """Return the same state just before the limit."""
        before, bound = x.copy(), self.bound()
        before[self.place] = bound - self.direction * _BEYOND * (1.0 + abs(bound))
        return before


def limits_of(diagram: Diagram) -> list[tuple[Limit, Any]]:
    """Return the limits of a diagram's integrators, each with its block."""
    return [
        (Limit(b, k, part.start + k, direction), b)
        for b, part in diagram.continuous
        if isinstance(b, Integrator)
        for direction, given in ((1.0, b.max), (-1.0, b.min))
        if given is not None
        for k in range(b.nstates)
    ]


@emits_guard("bdsim.blocks.continuous.Integrator")
def _limit(e: Emitter, block: Any, u: list[Value], detector: Limit) -> Value:
    far = f"{{0}} - {{1}} - {detector.direction * _BEYOND} * (1.0 + abs({{1}}))"
    return e.each(far, f"x[{detector.place}]", e.number(detector.bound))
