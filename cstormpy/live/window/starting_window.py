"""The window's first sight: it says that the simulation is starting, while what draws is still being imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow

from cstormpy.live.window.widgets import make

TITLE = "starting — cstormpy"
TEXT = "Starting: the simulation is being prepared …"
SIZES = {"run": (1200, 800), "search": (1100, 760)}
"""Width and height of the windows of a run and of a search."""
_SLOW = (
    "numpy",
    "PySide6.QtOpenGLWidgets",
    "pyqtgraph.Qt",
    "pyqtgraph.functions",
    "pyqtgraph",
    "cstormpy.live.window.scope",
    "cstormpy.mechanism",
    "cstormpy.live.window.driver",
    "cstormpy.live.window.main_window",
)


class StartingWindow(QMainWindow):
    """An empty window in the place of the one that comes."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.setWindowTitle(TITLE)
        self.closed = False
        self.resize(*SIZES.get(kind, SIZES["run"]))
        self.setCentralWidget(make(QLabel, TEXT, alignment=Qt.AlignmentFlag.AlignCenter))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember that its user wants no window."""
        self.closed = True
        super().closeEvent(event)


def import_slowly(app: QApplication) -> Iterator[None]:
    """Import what draws piece by piece; between two of them the window is served."""
    for name in _SLOW:
        app.processEvents()
        import_module(name)
        yield
    app.processEvents()
