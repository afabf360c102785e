"""Lengths of the steps of an adaptive solver: where it hardly gets on that is said, and where it never will it ends."""

from __future__ import annotations

import contextlib

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, DiagramError
from cstormpy.reporting import notice
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.repeatability import refuse_unrepeatable
from cstormpy.simulation.settings import Settings

#: After so many steps their length is looked at; a part of the longest that small is said.
_MANY, _SHORT = 2000, 1e-4
#: Steps end at ticks: only those are short that are so beside the period of the fastest clock, too.
_IN_A_PERIOD = 0.1
#: So many looks in a row with one reason for short steps are no passing state of a run.
_LOOKS = 3
#: More steps to the end than this end the run: of a signal that jumps to and fro, whose steps are in vain, and of a
#: stiff diagram, for which other solvers take few.
_STEPS_IN_VAIN, _STIFF_STEPS = 5e5, 1e7


class StepLengths:
    """Says once that an adaptive solver hardly gets on, and what makes it so slow.

    It ends a run that a switch or a stiff state would hold up for ever.
    """

    def __init__(self, diagram: Diagram, settings: Settings) -> None:
        self.diagram, self.settings = diagram, settings
        #: How many steps had been taken, and when it was, when their length was looked at last.
        self._looked, self._end = (0, 0.0), 0.0
        self._said = False
        #: Looks in a row that found a signal jumping, and a stiff state.
        self._jumps = self._stiff = 0

    def begin(self, t: float) -> None:
        """Count from a time on."""
        self._looked, self._end = (0, t), t + self.settings.T

    def look(self, t: float, x: Array, steps: int) -> None:
        """Look at the length of the steps since the last look, once there are many."""
        before, since = self._looked
        if steps < before + _MANY or self.settings.step is not None:
            return
        self._looked = (steps, t)
        length = (t - since) / (steps - before)
        period = min((clock.T for clock in self.diagram.bd.clocklist), default=np.inf)
        short = length < min(_SHORT * min(self.settings.max_step, self.settings.T), _IN_A_PERIOD * period)
        if not self._said:
            refuse_unrepeatable(self.diagram, t, x, adaptive=True, remembering=short)
        if not short:
            self._jumps = self._stiff = 0
            return
        ahead = (self._end - t) / length if length > 0.0 else np.inf
        if self._said and ahead <= _STEPS_IN_VAIN:
            return
        jumping, stiff, why = "", False, ""
        with contextlib.suppress(CstormError):  # what a block cannot be asked ahead of time ends no run
            jumping = self.diagram.jumping(t, x, length, self.settings.atol)
            stiff = not jumping and ahead > _STIFF_STEPS and self.diagram.is_stiff(t, x, length)
            why = self.diagram.why_short_steps(t, x, jumping, self.settings.atol)
        self.diagram.forget()
        if why and not self._said:
            self._said = True
            notice(f"steps of {length:.2g} s since t = {since:.6g}: {why}")
        self._jumps, self._stiff = self._jumps + 1 if jumping else 0, self._stiff + 1 if stiff else 0
        if (self._jumps >= _LOOKS and ahead > _STEPS_IN_VAIN) or self._stiff >= _LOOKS:
            raise DiagramError(f"steps of {length:.2g} s at t = {t:.6g}, and {ahead:.2g} ahead: {why}")
