"""A field to type a number into."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDoubleValidator
from PySide6.QtWidgets import QLineEdit

__all__ = ["NumberBox"]


class NumberBox(QLineEdit):
    """A number; `changed` is sent when the user typed another one."""

    changed = Signal(float)

    def __init__(self, value: float = 0.0, width: int = 82) -> None:
        super().__init__()
        self.number = value
        self.setFixedWidth(width)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setValidator(QDoubleValidator(self))
        self.editingFinished.connect(self._typed)
        self.show_number(value)

    def show_number(self, value: float) -> None:
        """Show a number, without sending it."""
        self.number = value
        self.setText(f"{value:.6g}")
        self.setCursorPosition(0)

    def _typed(self) -> None:
        try:
            value = float(self.text().replace(",", "."))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.show_number(self.number)
        elif f"{value:.6g}" != f"{self.number:.6g}":
            self.number = value
            self.changed.emit(value)
