"""Ctrl-C, kept from losing what has been computed, and from tearing what other threads and processes wait for.

A KeyboardInterrupt comes between any two instructions. Between the last step of a run and its return it would lose the
result; between those by which a pool hands work out and takes results in it may leave a lock taken, for which another
thread or process then waits for ever. There Ctrl-C is held: noted, and looked at. It raises where a run is simulated,
and where it is pressed once more.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

try:  # of which `signal` makes an enumeration of each handler: a run comes here four times
    import _signal as handlers  # type: ignore[import-not-found]
except ImportError:
    handlers = signal

#: Seconds in which a second one is the same: a terminal sends it to all processes, and `timeout` once more to its own.
_SAME = 1.0
#: Seconds in which these follow one another.
_REPEATED = 0.2


class Interrupts:
    """The handler of Ctrl-C in the main thread of this process; other threads and other handlers are let alone."""

    def __init__(self) -> None:
        self._at = -math.inf
        self._held_until = -math.inf
        self._before: Any = None

    @property
    def pressed(self) -> bool:
        """True once it was pressed."""
        return self._at > -math.inf

    def just_pressed(self) -> bool:
        """Tell whether it was pressed so recently that another one would be the same."""
        return time.monotonic() < self._at + _SAME

    def hold(self, seconds: float = math.inf) -> None:
        """Let it be noted only, once and for so long."""
        self._held_until = time.monotonic() + seconds

    def linger(self) -> None:
        """Let it be noted only while the result of a task is handed back and the next one is waited for."""
        self.hold(_SAME)

    def release(self) -> None:
        """Let it raise KeyboardInterrupt."""
        self._held_until = -math.inf

    def end_wait(self, wait: Callable[[], object]) -> None:
        """Call a function that waits for the user, and let Ctrl-C end it; it is held before and after."""
        try:
            self.release()
            wait()
            self.hold()
        except KeyboardInterrupt:
            self.hold()

    def install(self) -> None:
        """Take the place of Python's own handler, and of one of these that another process has left by its fork."""
        if threading.current_thread() is not threading.main_thread():
            return
        handler = handlers.getsignal(signal.SIGINT)  # None where it is one of C, which Python could not put back
        owner = getattr(handler, "__self__", None)
        if owner is not self and (handler is signal.default_int_handler or isinstance(owner, Interrupts)):
            self._before = handlers.signal(signal.SIGINT, self._press)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.just_pressed():
            return
        now = time.monotonic()
        self._at = now
        if now < self._held_until:
            self.release()
            return
        raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        self.install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while time.monotonic() < self._at + _REPEATED:
            time.sleep(_REPEATED / 10.0)
        around = getattr(self._before, "__self__", None)
        if self.pressed and isinstance(around, Interrupts):  # a sweep ends with the run that was interrupted
            around._at = max(around._at, self._at)
        if self._before is not None and getattr(handlers.getsignal(signal.SIGINT), "__self__", None) is self:
            handlers.signal(signal.SIGINT, self._before)
