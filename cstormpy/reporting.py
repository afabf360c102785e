"""What the library says to its user: one line at a time, through the logger named ``cstormpy``."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import time
from types import TracebackType

__all__ = ["Progress", "notice", "notice_once"]

_logger = logging.getLogger("cstormpy")


def notice(text: str) -> None:
    """Say one line: through the user's own logging where it is set up, or else on standard error."""
    if _logger.level == logging.NOTSET:
        _logger.setLevel(logging.INFO)  # the root's own level, WARNING, would swallow it
    if _logger.hasHandlers():
        _logger.info(text)
    elif _logger.isEnabledFor(logging.INFO) and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it any more
            sys.stderr.write(f"cstormpy: {text}\n")
            sys.stderr.flush()


@functools.cache
def notice_once(text: str) -> None:
    """Say one line, but only the first time in this process."""
    notice(text)


class Progress:
    """A line on a terminal that says how far something is, how fast it goes and how long it will take.

    Nothing is written where standard error is no terminal, nor before half a second has passed.
    """

    #: Seconds between two looks of the line, and before the first.
    EVERY, AFTER = 0.1, 0.5

    def __init__(self, name: str, begin: float, end: float, unit: str = "", enabled: bool = True) -> None:
        self.name, self.begin, self.end, self.unit = name, begin, end, unit
        self.enabled = False
        with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
            self.enabled = enabled and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = self._started + self.AFTER
        self._width = 0

    def update(self, value: float) -> None:
        """Say where it stands; cheap enough to be called at each step."""
        if not self.enabled:
            return
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + self.EVERY
        spent, done = now - self._started, value - self.begin
        rate = done / spent
        left = (self.end - value) / rate if rate > 0.0 else float("inf")
        part = done / (self.end - self.begin)
        self._write(
            f"{self.name} = {value:.4g} of {self.end:.4g} {self.unit}  {100 * part:3.0f} %  "
            f"{rate:.3g} {self.unit}/s  {_duration(left)} left"
        )

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._write("")
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\r")
                sys.stderr.flush()


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.3g} s"
    if seconds < 360000.0:
        return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d} h"
    return "very long"
