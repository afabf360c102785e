"""Keeps two threads from running one diagram at a time: its blocks hold the signals of a single run."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from cstormpy.errors import DiagramError

F = TypeVar("F", bound=Callable[..., Any])

#: Where a diagram keeps who has it.
_KEPT = "_occupation"


class Occupation:
    """The lock of a diagram, held by the thread that runs or analyses it; a copy of the diagram has its own."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __reduce__(self) -> tuple[type[Occupation], tuple[()]]:
        """Have a copy begin with a lock that nobody holds."""
        return Occupation, ()


class occupied:
    """Within, a diagram is this thread's, or it is refused in the name of who asks."""

    def __init__(self, bd: Any, who: str) -> None:
        kept = bd.__dict__.get(_KEPT) or bd.__dict__.setdefault(_KEPT, Occupation())
        self._lock = kept.lock
        self._bd, self._who = bd, who

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise DiagramError(
                f"{self._who}: another thread uses diagram {str(self._bd.name)!r} now, whose blocks hold the signals "
                "of one run; give each thread its own, as copy.deepcopy(bd), or leave the threads to sim.sweep"
            )

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def by_one_thread(method: F) -> F:
    """Have a method of a simulation refuse a diagram that another thread runs or analyses now."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        bd: Any = args[0] if args else kwargs.get("bd")
        if not hasattr(bd, "blocklist"):
            return method(self, *args, **kwargs)  # which says what is wrong
        with occupied(bd, method.__name__):
            return method(self, *args, **kwargs)

    return cast("F", guarded)
