"""Base of the windows: a column of rows, panes in columns in the middle, and what is done at each frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from PySide6.QtCore import QMargins, Qt
from PySide6.QtWidgets import QMainWindow, QSplitter, QVBoxLayout, QWidget

from cstormpy.live.window.widgets import make


class Conversation(Protocol):
    """The part of a `Channel` that a window uses."""

    lost: bool

    def messages(self) -> Any:
        """Return what was said since the last call."""

    def send(self, **message: Any) -> None:
        """Say something."""

    def flush(self) -> None:
        """Have it go out."""


class Window(QMainWindow):
    """A window that does what a simulation or a search says, and draws at each frame.

    Attributes
    ----------
    driver : Driver or None
        What a test uses the window with.
    rows : QVBoxLayout
        What stands one below the other.
    middle : QSplitter
        The columns of panes.
    """

    def __init__(self, channel: Conversation, size: tuple[int, int], title: str) -> None:
        super().__init__()
        self.channel = channel
        self.driver: Any = None
        self.frames = 0
        self.resize(*size)
        self.setWindowTitle(title)
        desk = make(QWidget, objectName="desk")
        self.setCentralWidget(desk)
        self.rows = make(QVBoxLayout, desk, spacing=8, contentsMargins=QMargins(8, 8, 8, 8))
        self.middle = _splitter(Qt.Orientation.Horizontal)

    def lay_out(self, title: str, position: Sequence[int] | None) -> None:
        """Take the title and the place of what is shown from now on, and empty the middle."""
        self.setWindowTitle(f"{title} — cstormpy")
        if position:
            self.setGeometry(*position)
        for k in reversed(range(self.middle.count())):
            old = self.middle.widget(k)
            if old is not None:
                old.setParent(None)
                old.deleteLater()

    def add_column(self, panes: Sequence[QWidget], sizes: Sequence[int]) -> QSplitter:
        """Return a new column of panes in the middle."""
        column = _splitter(Qt.Orientation.Vertical)
        for pane in panes:
            column.addWidget(pane)
        column.setSizes(sizes)
        self.middle.addWidget(column)
        return column

    def tick(self) -> None:
        """Take what came, and draw."""
        for message in self.channel.messages():
            if message.get("say") != "drive":
                self.take(message)
            elif self.driver is not None:
                self.channel.send(**self.driver.drive(message))
        if self.channel.lost:
            self.close()
            return
        self.draw()
        self.frames += 1
        self.channel.flush()

    def take(self, message: dict[str, Any]) -> None:
        """Do what a message says."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw a frame."""
        raise NotImplementedError


def _splitter(orientation: Qt.Orientation) -> QSplitter:
    return QSplitter(orientation, handleWidth=8, childrenCollapsible=False)
