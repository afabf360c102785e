"""Runs a diagram compiled where that costs nothing or pays: ``engine="auto"``."""

from __future__ import annotations

import time
import weakref
from typing import Any

from cstormpy.arrays import Array
from cstormpy.simulation.compiled.compiled_run import CompiledRun
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.runner import Run

#: A run that has taken so many seconds of computing, and is expected to take so many more, is compiled on its way; one
#: of a diagram whose earlier runs took as many as the first number is compiled from its start.
_LONG, _WORTH = 1.5, 4.0
#: How many seconds of computing the runs of diagrams have taken that were not compiled.
_computed: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()


class AutomaticRun(CompiledRun):
    """A run that is compiled from its start where the diagram's function is at hand, in this process or on disk.

    Else it begins interpreted, unless the diagram has run for long already. If it turns out long, it is compiled, which
    is said in one line, and goes on from where it stands. What cannot be translated goes on interpreted, and that is
    said once.
    """

    strict = False
    #: Whether compiling may still come.
    _open = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._began = time.thread_time()

    def begin(self, t: float, x: Array, step: float) -> None:
        """Stand at the start, compiled if the function is at hand, or if enough has been computed without it."""
        Run.begin(self, t, x, step)
        earlier = _computed.get(self.diagram.bd, 0.0)
        self._compile(only_at_hand=earlier <= _LONG or bool(self.watchers))

    def go(self) -> None:
        """Run to the end, and note what that took."""
        try:
            super().go()
        finally:
            if self.program is None:
                bd, spent = self.diagram.bd, time.thread_time() - self._began
                _computed[bd] = _computed.get(bd, 0.0) + spent

    def _compile(self, only_at_hand: bool) -> None:
        try:
            self._prepare()
            if only_at_hand and not self._prepared.at_hand():
                return
            self._begin_compiled()
            self._open = False
        except NotTranslated as error:
            if only_at_hand:  # a short run loses nothing by it; a long one comes here again
                return
            self._open = False
            self._fall_back(error)

    def _commanded(self, jumped: bool = False) -> bool:
        if self._open and self._is_long():
            self._compile(only_at_hand=False)
            if self.program is not None:
                self._begin_segment(jumped)
                super()._commanded(jumped)
                return True
        return super()._commanded(jumped)

    def _is_long(self) -> bool:
        """Tell whether there is more to compute than compiling would take; a window must not freeze for so long."""
        if self.watchers:
            return False
        spent = time.thread_time() - self._began
        done = self.t - self.start_time
        return spent > _LONG and done > 0.0 and spent * (self.end - self.t) > _WORTH * done
