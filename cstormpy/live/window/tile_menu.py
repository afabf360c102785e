"""Context menu of a pane: its buttons, its picture and its data, to be copied or saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QPoint
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

from cstormpy.arrays import Array


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
