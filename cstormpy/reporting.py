"""What the library says to its user: one line at a time, through the logger named ``cstormpy``."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys

__all__ = ["notice", "notice_once"]

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
