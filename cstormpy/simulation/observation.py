"""Observation of a run: samples, at its steps or on a grid, and the signals that its sinks are given."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from bdsim.graphics_block import GraphicsBlock
from bdsim.run_sim import BDSimState

from cstormpy.arrays import Array
from cstormpy.errors import BlockError
from cstormpy.simulation.bdsim_blocks import is_of
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.recording import Recording
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.step_control import SAME_TIME
from cstormpy.simulation.steppers import Stepper

#: bdsim's own plots are redrawn from all their data at each point, so they get at most so many in a run.
_GRAPHICS_POINTS = 200


class Observation:
    """Records the points of a run, and serves its sinks.

    Attributes
    ----------
    point : int
        Number of the next point of the grid, where there is one.
    """

    def __init__(self, diagram: Diagram, simstate: BDSimState, recording: Recording, settings: Settings) -> None:
        self.diagram, self.simstate, self.recording, self.settings = diagram, simstate, recording, settings
        self.point = self._first = 0
        self._start = self._end = 0.0
        self._graphics_at = -math.inf
        #: The sinks, where their inputs stand, and whether they are bdsim's own plots.
        self._sinks = [(b, b._inport_slots, is_of(b.__class__, GraphicsBlock)) for b in diagram.sinks]

    def begin(self, t: float) -> None:
        """Take the start of the run for the first point; all others of a grid are multiples of its width."""
        self._start, self._end = t, t + self.settings.T
        self.point = self._first = int(t / self.settings.grid + 1e-9) if self.settings.grid else 0

    def add(self, t: float, x: Array, at_boundary: bool) -> None:
        """Record the point where the run stands, and show it to the sinks."""
        self.diagram.at(t, x)
        self.check_finite(t)
        if not self.settings.grid:
            self.recording.add(t, x)
        elif at_boundary and self._on_grid(t):
            self._record(t, x)
        if not self.settings.sinks_on_grid:
            self._serve_sinks(t)

    def add_within(self, stepper: Stepper, x: Array, until: float, bound: float) -> None:
        """Record the points of the grid within the last step, up to a time; the end of the segment is seen later."""
        if not self.settings.grid:
            return
        dense = None
        tolerance = SAME_TIME * max(1.0, abs(until))
        while self._time_of(self.point) < until - tolerance:
            t = self._time_of(self.point)
            dense = dense or stepper.dense()
            between = dense(t) if self.diagram.nstates else x
            self.diagram.evaluate(t, between)
            self._record(t, between)
        if until < bound - tolerance and abs(self._time_of(self.point) - until) <= tolerance and until == stepper.t:
            self.diagram.at(until, stepper.x)
            self._record(until, stepper.x)

    def add_kept(self, t: float, x: Array, out: Array, columns: Array, split: Callable[[Array], list[Array]]) -> bool:
        """Record a point as `add` does, where no sink wants to see it: signals stand side by side in `out`.

        Those that are recorded are `columns` (1, size), of which `split` makes the signals.

        Returns False, and records nothing, where that is to be done by `add`.
        """
        if self._sinks or self.settings.grid or (self.settings.check_finite and not math.isfinite(np.add.reduce(out))):
            return False
        self.simstate.t = t
        self.recording.extend(np.array([t]), x[None].copy(), columns, split)
        return True

    def check_finite(self, t: float) -> None:
        """Refuse outputs that are not finite, unless the settings allow them."""
        if not self.settings.check_finite:
            return
        bad = self.diagram.not_finite()
        if bad is not None:
            raise BlockError(
                f"{bad} at t = {t:.9g}; the run ends there. Look at what this block computes from its inputs"
            )

    def _on_grid(self, t: float) -> bool:
        """Tell whether the next point of the grid, or the last of the run, is at this time."""
        last = t >= self._end or self.simstate.stop is not None
        return last or abs(self._time_of(self.point) - t) <= SAME_TIME * max(1.0, abs(t))

    def _time_of(self, point: int) -> float:
        return point * (self.settings.grid or math.inf) if point > self._first else self._start

    def _record(self, t: float, x: Array) -> None:
        if self.point and t <= self.recording.last:
            return
        self.recording.add(t, x)
        self.point += 1
        if self.settings.sinks_on_grid:
            self._serve_sinks(t)

    def _serve_sinks(self, t: float) -> None:
        self.simstate.t = t
        for b, slots, drawn in self._sinks:
            if drawn and t < self._graphics_at and t < self._end:
                continue
            try:
                b.step(t, [s.value for s in slots])
            except Exception as error:
                raise self.diagram.failure(b, "step", t, error) from error
        if t >= self._graphics_at:
            self._graphics_at = t + self.settings.T / _GRAPHICS_POINTS
