"""Lengths of the steps of an adaptive solver: where it hardly gets on, that and the reason are said."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import CstormError
from cstormpy.reporting import notice
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.repeatability import refuse_unrepeatable
from cstormpy.simulation.settings import Settings

__all__ = ["StepLengths"]

#: After so many steps their length is looked at; a part of the longest that small is said.
_MANY, _SHORT = 2000, 1e-4


class StepLengths:
    """Says once that an adaptive solver hardly gets on, and what makes it so slow."""

    def __init__(self, diagram: Diagram, settings: Settings) -> None:
        self.diagram, self.settings = diagram, settings
        #: How many steps had been taken, and when it was, when their length was looked at last; None: never again.
        self._looked: tuple[int, float] | None = (0, 0.0)

    def begin(self, t: float) -> None:
        """Count from a time on."""
        self._looked = (0, t)

    def look(self, t: float, x: NDArray[np.float64], steps: int) -> None:
        """Look at the length of the steps since the last look, once there are many."""
        if self._looked is None or steps < self._looked[0] + _MANY:
            return
        before, since = self._looked
        self._looked = (steps, t)
        longest = min(self.settings.max_step, self.settings.T)
        length = (t - since) / (steps - before)
        if self.settings.step is not None:
            return
        short = length < _SHORT * longest
        refuse_unrepeatable(self.diagram, t, x, adaptive=True, remembering=short)
        if short:
            self._looked = None
            with contextlib.suppress(CstormError):  # what a block cannot be asked ahead of time ends no run
                why = self.diagram.why_short_steps(t, x, length, self.settings.atol)
                notice(f"steps of {length:.2g} s since t = {since:.6g}: {why}")
            self.diagram.forget()
