"""Figures of scopes that would be lost: of a run that no window showed, and whose result nobody ever read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cstormpy import report
from cstormpy.errors import CstormError
from cstormpy.reporting import notice
from cstormpy.simulation.results import Result


def write_figures(name: str, out: Result, why: str = "") -> None:
    """Write the scopes of a run as pictures into a folder of the diagram's name, and say so in a line."""
    folder = Path(f"{name}_figures")
    files = report.figures(out, folder)
    notice(f"{why}the figures are in {folder}{os.sep}: {', '.join(file.name for file in files)}")


class UnreadResult:
    """The result of the last run that was to have a window, and had none.

    It is in its user's hands, who may look at it or write a report. What nobody has touched when its simulation is
    gone, as of a script that only calls ``sim.run(bd, T=8)``, would be lost: its figures are written then. In an
    interactive session nothing is: whoever sits there was told what to call.
    """

    def __init__(self) -> None:
        self._kept: tuple[str, Result] | None = None

    def keep(self, name: str, out: Result) -> None:
        """Remember a result, in the place of the one before."""
        self._kept = name, out

    def write(self) -> None:
        """Write the figures of what nobody has read."""
        kept, self._kept = self._kept, None
        if kept is None or kept[1].was_read or hasattr(sys, "ps1"):
            return
        try:
            write_figures(*kept, why="nobody read the result of the last run: ")
        except CstormError as error:
            notice(str(error))
