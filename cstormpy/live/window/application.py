"""Starts Qt, the window, which first says no more than that it is starting, and the timer that draws."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication

from cstormpy.live.window import theme
from cstormpy.live.window.channel import Channel
from cstormpy.live.window.starting_window import StartingWindow, import_slowly

if TYPE_CHECKING:
    from cstormpy.live.window.main_window import MainWindow
    from cstormpy.live.window.search_window import SearchWindow

FRAME = 33
"""Milliseconds between two frames."""
TEST_VARIABLE = "CSTORMPY_LIVE_TEST"
"""Set where a test uses the window, see `driving`."""


def run(channel: Channel, kind: str = "run") -> int:
    """Show the window of a run, or of a search, until it is closed, and return the exit code."""
    app = QApplication(["cstormpy"])
    theme.apply(app, theme.wants_dark(app))
    starting = StartingWindow(kind)
    starting.show()
    app.processEvents()
    channel.send(say="starting")
    channel.flush()
    for _ in import_slowly(app):
        if starting.closed or channel.over:
            channel.send(say="closed")
            channel.flush()
            return 0
    window = _window(channel, kind)
    window.setGeometry(starting.geometry())
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: window.close())
    sys.excepthook = lambda *error: _give_up(app, channel, *error)
    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(window.tick)
    timer.start(FRAME)
    window.show()
    app.processEvents()
    starting.hide()
    channel.send(say="ready")
    code: int = app.exec()
    timer.stop()
    if not channel.lost and not code:
        channel.send(say="closed")
    channel.flush()
    return code


def _window(channel: Channel, kind: str) -> MainWindow | SearchWindow:
    from cstormpy.live.window.main_window import MainWindow
    from cstormpy.live.window.search_window import SearchWindow

    window = SearchWindow(channel) if kind == "search" else MainWindow(channel)
    if os.environ.get(TEST_VARIABLE):
        from cstormpy.live.window.driver import Driver

        window.driver = Driver(window)
    return window


def _give_up(
    app: QApplication, channel: Channel, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """End the window where it failed, and say why; the run goes on without it."""
    where = traceback.extract_tb(trace)[-1] if trace else None
    place = f" ({os.path.basename(where.filename)}, line {where.lineno})" if where else ""
    channel.send(say="failed", reason=f"{kind.__name__}: {error}{place}")
    app.exit(4)
