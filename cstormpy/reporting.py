"""What the library says to its user: one line at a time, through the logger named ``cstormpy``."""

from __future__ import annotations

import logging
import sys

__all__ = ["notice"]

_logger = logging.getLogger("cstormpy")


class _LineHandler(logging.Handler):
    """Writes to standard error where the user has set up no logging of their own."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers or sys.stderr is None:
            return
        sys.stderr.write(f"cstormpy: {record.getMessage()}\n")
        sys.stderr.flush()


def notice(text: str) -> None:
    """Say one line: on standard error, or to the user's own logging where it is set up."""
    if not any(isinstance(h, _LineHandler) for h in _logger.handlers):
        _logger.addHandler(_LineHandler())
        if _logger.level == logging.NOTSET:
            _logger.setLevel(logging.INFO)
    _logger.info(text)
