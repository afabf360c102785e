"""Sample and hold: outputs of sampled blocks with feedthrough, computed at the ticks of their clock and held between.

A DERIV_S, or an LTI_SS_S with a matrix D, computes its output from its input. bdsim asks it at any time, so that the
output moves between the ticks: a DERIV_S of a ramp is zero after a tick, and grows until the next. Here it is computed
where its clock ticks, from the signals there and its state before the tick, which other blocks of that tick see, and
is held until the next one. Before the first tick it is what it was at the start.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import ShapeError
from cstormpy.simulation.bdsim_blocks import output_of, real_numbers


class Hold:
    """The outputs of one block.

    Attributes
    ----------
    block : Block
    live : bool
        Whether they are computed now: where its clock ticks, and at the start of a run.
    values : list or None
        What they were when they were computed last.
    """

    def __init__(self, block: Any) -> None:
        self.block, self.live = block, True
        self._output = output_of(block)
        self.values: list[Any] | None = None

    def output(self, t: float, u: list[Any], x: Any) -> Any:
        """Return the outputs, computed or held."""
        if not self.live and self.values is not None:
            return self.values
        values = self._output(t, u, x)
        if isinstance(values, (list, tuple)):
            self.values = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
        return values

    def take(self) -> None:
        """Take the values that stand at the outputs, if they are computed now."""
        if self.live:
            self.values = [slot.value for slot in self.block._outport_slots]

    def flat(self) -> Array:
        """Return the values one behind the other."""
        return np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in self.values or []])

    def put(self, flat: Array) -> None:
        """Take values that stand one behind the other."""
        first, values = 0, []
        for slot in self.block._outport_slots:
            value = slot.value
            last = first + np.size(value)
            values.append(flat[first:last].reshape(np.shape(value)).copy() if np.ndim(value) else float(flat[first]))
            first = last
        self.values = values

    def saved(self) -> list[Any]:
        """Return the values as numbers and lists; copies of what is none, as a text or a pose."""
        found = [(v, real_numbers(v)) for v in self.values or []]
        return [copy.deepcopy(v) if numbers is None else numbers.tolist() for v, numbers in found]

    def restore(self, values: list[Any], what: str) -> None:
        """Hold values that were saved."""
        if len(values) != self.block.nout:
            raise ShapeError(
                f"{what}: block {self.block.name!r} has {self.block.nout} outputs, the saved state holds "
                f"{len(values)}; was it saved from another diagram?"
            )
        found = [(v, real_numbers(v)) for v in values]
        self.values = [copy.deepcopy(v) if n is None else n if n.ndim else float(n) for v, n in found]
        self.live = False


def holds_of(bd: Any) -> dict[Any, Hold]:
    """Return the holds of a diagram's blocks, by block."""
    return {b: Hold(b) for clock in bd.clocklist for b in clock.blocklist if b._feedthrough and b.nout}
