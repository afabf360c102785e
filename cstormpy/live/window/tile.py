"""The frame that all panes share: a title, what stands beside it, a place for the picture, and a menu."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QMargins, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QFrame, QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from cstormpy.arrays import Array
from cstormpy.live.window.plotting import short_number
from cstormpy.live.window.widgets import Elided, make

_NARROWEST, _FOR_THE_TITLE = 110, 46
"""Pixels of width of a pane at least, and of its head that are left at least to what is no button."""


def figure(value: float, digits: int = 4) -> str:
    """Return a number in few characters, of nearly constant width.

    >>> figure(3.14159), figure(-1234567.0), figure(1.2345e-7), figure(0.0)
    ('3.142', '−1.235e6', '1.2e−7', '0')
    """
    size = abs(value)
    if 1e-3 <= size < 1e4:
        text = f"{value:.{max(0, digits - len(str(int(size))))}f}"
    elif value:
        text = f"{value:.{max(1, digits - 3) if size < 1.0 else digits - 1}e}"
    else:
        text = "0"
    return short_number(text)


def small_button(text: str, name: str, tip: str, checkable: bool = True) -> QToolButton:
    """Return a button for the head of a tile."""
    button = make(QToolButton, objectName="small", text=text, toolTip=tip, checkable=checkable)
    button.setProperty("control", name)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    return button


class _Head(QWidget):
    """The row with the title; a double click enlarges the tile."""

    enlarged = Signal()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go back to what was first."""
        self.enlarged.emit()


class Tile(QFrame):
    """A pane of the window.

    Parameters
    ----------
    pane : dict
        Its description, as `cstormpy.live.description.described` makes it.
    """

    enlarge = Signal(object)
    menu_wanted = Signal(object, object)

    def __init__(self, pane: dict[str, Any]) -> None:
        super().__init__()
        self.setObjectName("tile")
        self.setMinimumWidth(_NARROWEST)
        self.pane = pane
        self.labels: list[str] = pane["labels"]
        self.unit: str = pane["unit"]
        self.options: dict[str, Any] = pane["options"]
        self.setProperty("control", pane["name"])
        self.column = make(QVBoxLayout, self, spacing=3, contentsMargins=QMargins(8, 6, 8, 6))
        head = _Head()
        head.enlarged.connect(lambda: self.enlarge.emit(self))
        self.head = make(QHBoxLayout, head, spacing=3, contentsMargins=QMargins())
        tip = f"{escape(pane['title'])}<br>Double click: this pane alone, and back"
        self.title = make(Elided, pane["title"], objectName="title", toolTip=tip)
        self.head.addWidget(self.title)
        self.head.addStretch(1)
        self.column.addWidget(head)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave to the menu the buttons for which there is no room beside the title, the last ones first."""
        super().resizeEvent(event)
        margins, gap, title = self.column.contentsMargins(), self.head.spacing(), self.title.sizeHint().width()
        others = [w for w in self._in_head() if w is not self.title]
        buttons = [w for w in others if isinstance(w, QToolButton)]
        room = self.contentsRect().width() - margins.left() - margins.right() - gap
        room -= sum(w.minimumSizeHint().width() + gap for w in others if w not in buttons and not w.isHidden())
        room -= max(_FOR_THE_TITLE, min(title, room // 2))
        for button in buttons:
            room -= button.sizeHint().width() + gap
            button.setVisible(room >= 0)

    def _in_head(self) -> list[QWidget]:
        items = (self.head.itemAt(k) for k in range(self.head.count()))
        return [widget for widget in (item.widget() for item in items if item is not None) if widget is not None]

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer the menu."""
        self.menu_wanted.emit(self, event.globalPos())

    def data(self) -> tuple[list[str], Array] | None:
        """Return the names of the columns, time first, and the samples that are kept; None where there are none."""
        return None

    def actions_of_menu(self) -> list[tuple[str, bool | None, Callable[[], object]]]:
        """Return what the menu offers: the buttons in the head, which a narrow pane does not show."""
        buttons = [w for w in self._in_head() if isinstance(w, QToolButton)]
        return [(f"{b.text()}: {b.toolTip()}", b.isChecked() if b.isCheckable() else None, b.click) for b in buttons]

    def add(self, t: Array, rows: Array) -> None:
        """Take new samples (N,), (N, columns)."""
        raise NotImplementedError

    def refresh(self, now: float, live: bool) -> None:
        """Draw what is to be seen at a time; `live` is True while the picture follows the run."""
        raise NotImplementedError


class Savable(Protocol):
    """A pane with a picture, and perhaps data."""

    pane: dict[str, Any]

    def grab(self) -> QPixmap:
        """Return the picture."""

    def data(self) -> tuple[list[str], Array] | None:
        """Return the names of the columns, time first, and the samples that are kept; None where there are none."""

    def actions_of_menu(self) -> list[tuple[str, bool | None, Callable[[], object]]]:
        """Return what else the menu offers: texts, whether they are on, and what they do."""


def as_text(names: list[str], rows: Array, separator: str) -> str:
    """Return data as lines of text, names first.

    >>> import numpy as np
    >>> print(as_text(["t [s]", "q"], np.array([[0.0, 1.5]]), ","), end="")
    t [s],q
    0.0,1.5
    """
    lines = [separator.join(name.replace(separator, " ").replace('"', "'") for name in names)]
    lines += [separator.join(repr(float(x)) for x in row) for row in rows]
    return "\n".join(lines) + "\n"


def copy_picture(tile: Savable) -> None:
    """Put a pane's picture on the clipboard."""
    QApplication.clipboard().setPixmap(tile.grab())


def copy_data(tile: Savable) -> None:
    """Put a pane's data on the clipboard, as spreadsheets take it; its picture where it has none."""
    found = tile.data()
    if found is None:
        copy_picture(tile)
    else:
        QApplication.clipboard().setText(as_text(*found, "\t"))


def save(tile: Savable, path: str) -> None:
    """Write a pane's picture (.png), or its data (.csv).

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if path.lower().endswith(".csv"):
        found = tile.data()
        assert found is not None
        Path(path).write_text(as_text(*found, ","), encoding="utf-8")
    elif not tile.grab().save(path):
        raise OSError(f"{path} cannot be written")


def _ask_and_save(tile: Savable, parent: QWidget, kind: str, say: Callable[[str], object]) -> None:
    name = {"png": "Pictures (*.png)", "csv": "Tables (*.csv)"}[kind]
    path, _ = QFileDialog.getSaveFileName(parent, f"Save {tile.pane['title']}", f"{tile.pane['name']}.{kind}", name)
    if not path:
        return
    path = path if path.lower().endswith(f".{kind}") else f"{path}.{kind}"
    try:
        save(tile, path)
    except OSError as error:
        say(f"not saved: {error.strerror or error}")
    else:
        say(f"saved: {path}")


def open_menu(tile: Savable, parent: QWidget, at: QPoint, say: Callable[[str], object]) -> QMenu:
    """Open the menu of a pane at a point of the screen."""
    menu = QMenu(parent)

    def add(text: str) -> Any:
        return menu.addAction(text)

    for text, on, act in tile.actions_of_menu():
        action = add(text)
        action.setCheckable(on is not None)
        action.setChecked(bool(on))
        action.triggered.connect(lambda _=False, act=act: act())
    menu.addSeparator()
    add("Copy picture").triggered.connect(lambda: copy_picture(tile))
    add("Save picture …").triggered.connect(lambda: _ask_and_save(tile, parent, "png", say))
    if tile.data() is not None:
        add("Copy data").triggered.connect(lambda: copy_data(tile))
        add("Save data …").triggered.connect(lambda: _ask_and_save(tile, parent, "csv", say))
    menu.popup(at)
    return menu
