"""Text for the user: messages, one line at a time through the logger named ``cstormpy``, progress, and tables."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import Any

_logger = logging.getLogger("cstormpy")


def dashes(k: int) -> str:
    """Return the style of the k-th line of a figure of matplotlib: another one where its ten colours begin anew.

    >>> dashes(9), dashes(10)
    ('-', '--')
    """
    return ("-", "--", ":", "-.")[k // 10 % 4]


def plain(text: object) -> str:
    r"""Return a text in which matplotlib finds no mathematics.

    >>> print(plain("cost [$/$]"))
    cost [\$/\$]
    """
    return str(text).replace("$", r"\$")


def is_flat(low: float, high: float) -> bool:
    """Return whether values differ by no more than rounding, so that a plot shows them as constant.

    >>> is_flat(0.009, 0.009 + 1e-17), is_flat(0.0, 1e-12)
    (True, False)
    """
    return high - low <= 1e-12 * max(abs(low), abs(high))


def level_if_flat(axes: Any) -> None:
    """Let axes of matplotlib show values that differ by rounding alone as a level line, not as noise."""
    axes.autoscale(axis="y")  # of a second run that is drawn into them, the values may differ
    low, high = (float(end) for end in axes.dataLim.intervaly)
    if low < high and is_flat(low, high):
        beside = 0.1 * max(abs(low), abs(high))
        axes.set_ylim(low - beside, high + beside)


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


class Text(str):
    """Text of several lines, which a console and a notebook show as it reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def called(value: object) -> str | None:
    """Return the name of a function, or the names in a dict of functions and laws, None of other values.

    >>> called(notice), called({"mine": notice}), called({"kp": 0.5})
    ('notice', 'mine', None)
    """
    if isinstance(value, dict) and value and all(callable(v) or hasattr(v, "torque") for v in value.values()):
        return ", ".join(map(str, value))
    name = getattr(value, "__name__", None) if callable(value) else None
    return name if isinstance(name, str) else None


def told_apart(texts: Sequence[Any], values: Iterable[Any]) -> list[Any]:
    """Return how values are shown, with a number behind what is cut, or a function's name, where another has the same.

    >>> told_apart(["notice", "0.3", "notice"], [notice, 0.3, lambda: None]), told_apart(["a…", "a…"], ["ab", "ac"])
    (['notice', '0.3', 'notice (2)'], ['a…', 'a… (2)'])
    """
    alike: dict[str, list[str]] = {}
    found = []
    for text, value in zip(texts, values, strict=True):
        if called(value) or "…" in str(text):
            those, whole = alike.setdefault(text, []), str(value)
            if whole not in those:
                those.append(whole)
            number = those.index(whole) + 1
            text = f"{text} ({number})" if number > 1 else text
        found.append(text)
    return found


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table; its columns stand at the right, but for some.

    >>> aligned([["law", "effort"], ["energy", "1.5"]])
    ['law     effort', 'energy     1.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in cells).rstrip())
    return lines


class Progress:
    """Progress of something, its speed and the time it will take: a line on a terminal, or now and then in a log.

    Where standard error is a terminal, one line is written over and over. Elsewhere, as in a pipe, a log file or an
    editor, a line is said through `notice` every some seconds.

    Parameters
    ----------
    name, unit : str
    begin, end : float
        What it goes from and to.
    enabled : bool
        Whether anything is said.
    idle : callable, optional
        Returns the seconds so far in which nothing could go on, as while a window opens or the user pauses.
    """

    #: Seconds between two looks of the line on a terminal, and before the first.
    EVERY, AFTER = 0.1, 0.5
    #: Seconds between two lines elsewhere; more of what takes long, in parts of the time so far.
    LINE_EVERY, LINE_PART = 10.0, 0.1

    def __init__(
        self,
        name: str,
        begin: float,
        end: float,
        unit: str = "",
        enabled: bool = True,
        idle: Callable[[], float] | None = None,
    ) -> None:
        self.name, self.begin, self.end, self.unit = name, begin, end, unit
        self.enabled, self._terminal = enabled, False
        if enabled:
            with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
                self._terminal = sys.stderr.isatty()
        self._idle = idle or (lambda: 0.0)
        self._started = time.perf_counter()
        self._after = self.AFTER if self._terminal else self.LINE_EVERY
        self._next = self._started + self._after
        #: When it was first told where it stands, where that was, and how long it had been idle by then.
        self._first: tuple[float, float, float] | None = None
        self._width = 0

    def update(self, value: float) -> None:
        """Say where it stands; cheap enough to be called at each step."""
        if not self.enabled:
            return
        if self._first is None:
            now = time.perf_counter()
            self._first, self._next = (now, value, self._idle()), now + self._after
        if not self.due:
            return
        when, where, idle = self._first
        spent = time.perf_counter() - when - (self._idle() - idle)
        rate = (value - where) / spent if spent > 0.0 else 0.0
        left = (self.end - value) / rate if rate > 0.0 else float("inf")
        part = (value - self.begin) / (self.end - self.begin)
        stands = f"{self.name} = {value:.4g} of {self.end:.4g} {self.unit}"
        self.say(stands, f"{100 * part:3.0f} %", f"{rate:.3g} {self.unit}/s", f"{_duration(left)} left")

    @property
    def due(self) -> bool:
        """True where it is time for a line."""
        return self.enabled and time.perf_counter() >= self._next

    def say(self, *parts: str) -> None:
        """Say a line of some parts, in columns or, without a terminal, with commas."""
        now = time.perf_counter()
        if self._terminal:
            self._next = now + self.EVERY
            self._write("  ".join(parts))
        else:
            self._next = now + max(self.LINE_EVERY, self.LINE_PART * (now - self._started))
            notice(", ".join(" ".join(part.split()) for part in parts))

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
