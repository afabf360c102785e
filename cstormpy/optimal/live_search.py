"""The live display of a search: what it is told, and where the window comes from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cstormpy.errors import InvalidType, shown

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.solution import Solution
    from cstormpy.optimal.starts import Progressed

WINDOW = ("cstormpy.live.search", "SearchWindow")
"""The window of our own. It is found by its name when somebody wants it: windows stand above optimal control, which
does without them."""


@runtime_checkable
class Viewer(Protocol):
    """The progress of a search, as `Problem.solve` tells it to whoever shows it."""

    def begin(self, problem: Problem, starts: int, stage: str) -> None:
        """Take what is searched for: at the start, and of each stage after the first."""

    def update(self, now: Progressed) -> bool:
        """Take an iteration, in the thread that made it; return whether the search is to end."""

    def finish(self, solution: Solution | None) -> None:
        """Take what was found; None where the search failed."""


def viewer_of(live: Any) -> Viewer | None:
    """Return what shows a search: nothing, our own window, or what was given."""
    if live is None or live is False:
        return None
    if live is True:
        module, name = WINDOW
        return getattr(import_module(module), name)()
    if not isinstance(live, Viewer):
        raise InvalidType(f"live: expected True, False or an object with begin, update and finish, got {shown(live)}")
    return live
