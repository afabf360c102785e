"""The list of keys, which F1 and ? show."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtWidgets import QMessageBox, QWidget

#: What the mouse does, where nothing on the screen says so.
MOUSE = (
    ("wheel, drag in a scope", "zoom and move; fit shows the whole run again"),
    ("right click on a pane", "its menu: buttons, rolling time, copy and save picture and data"),
    ("click on a name in the legend", "hide the trace, and show it again"),
    ("double click on a pane's title", "this pane alone, and all again"),
    ("double click on a parameter's name", "set it back"),
    ("drag a link", "push it"),
)


def show_list(parent: QWidget, keys: Sequence[tuple[str, str]]) -> QMessageBox:
    """Show keys with what they do."""
    rows = "".join(
        f"<tr><td style='padding-right: 16px'><b>{escape(key)}</b></td><td>{escape(text)}</td></tr>"
        for key, text in (*keys, ("", ""), *MOUSE)
    )
    box = QMessageBox(parent)
    box.setWindowTitle("Keys and mouse")
    box.setText(f"<table cellspacing=3>{rows}</table>")
    box.setModal(False)
    box.show()
    return box
