"""Starts Qt, the window, and the timer that draws."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import TracebackType

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication

from cstormpy.live.window import theme
from cstormpy.live.window.channel import Channel
from cstormpy.live.window.driving import TEST_VARIABLE, Driver
from cstormpy.live.window.main_window import MainWindow
from cstormpy.live.window.search_window import SearchWindow

__all__ = ["FRAME", "run"]

FRAME = 33
"""Milliseconds between two frames."""


def run(channel: Channel, kind: str = "run") -> int:
    """Show the window of a run, or of a search, until it is closed, and return the exit code."""
    app = QApplication(["cstormpy"])
    theme.apply(app, theme.wants_dark(app))
    window = SearchWindow(channel) if kind == "search" else MainWindow(channel)
    if os.environ.get(TEST_VARIABLE):
        window.driver = Driver(window)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: window.close())
    sys.excepthook = lambda *error: _give_up(app, channel, *error)
    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(window.tick)
    timer.start(FRAME)
    window.show()
    channel.send(say="ready")
    code: int = app.exec()
    timer.stop()
    if not channel.lost and not code:
        channel.send(say="closed")
    channel.flush()
    return code


def _give_up(
    app: QApplication, channel: Channel, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """End the window where it failed, and say why; the run goes on without it."""
    where = traceback.extract_tb(trace)[-1] if trace else None
    place = f" ({os.path.basename(where.filename)}, line {where.lineno})" if where else ""
    channel.send(say="failed", reason=f"{kind.__name__}: {error}{place}")
    app.exit(4)
