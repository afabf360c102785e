"""The panel: which law is active, and a slider for each number that can be changed."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import Any

from PySide6.QtCore import QMargins, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QSlider, QVBoxLayout, QWidget

from cstormpy.live.window.widgets import Combo, Elided, NumberBox, make

_STEPS = 1000
_WIDTH = 236


class KnobRow(QWidget):
    """One number: its name, its value to type, and a slider.

    What the user does is kept until `take`, which the window asks once a frame: a slider that is dragged says a
    hundred values a second, and the run wants the last.
    """

    def __init__(self, knob: dict[str, Any], laws: list[str], alone: bool = False) -> None:
        super().__init__()
        self.knob = knob
        #: Whether its block has no other, so that it bears the name of the block.
        self.alone = alone
        first, _, rest = knob["name"].partition(".")
        #: The law that it belongs to, if it is a gain of one.
        self.law = first if rest and first in laws else None
        self.low, self.high, self.log = knob["low"], knob["high"], knob["log"]
        self.value = self._first = knob["value"]
        self._changed = False
        name = knob["name"] + ("" if knob["index"] is None else f"[{knob['index']}]")
        self.setProperty("control", f"{knob['block']}.{name}")
        column = make(QVBoxLayout, self, spacing=1, contentsMargins=QMargins(0, 0, 0, 2))
        row = make(QHBoxLayout, spacing=4)
        tip = f"{escape(knob['block'])}: {escape(name)}<br>Double click: {self._first:.6g} again"
        shown = name if self.law is None else name.partition(".")[2]
        if alone:
            shown = knob["block"] if name == "value" else f"{knob['block']}.{name}"
        label = make(_Resetting, shown, toolTip=tip)
        label.reset.connect(lambda: self._choose(self._first))
        row.addWidget(label, 1)
        self.box = NumberBox(self.value)
        self.box.setProperty("control", f"{knob['block']}.{name} value")
        self.box.changed.connect(self._choose)
        row.addWidget(self.box)
        if knob["unit"]:
            row.addWidget(QLabel(knob["unit"]))
        column.addLayout(row)
        tip = f"{self.low:.4g} … {self.high:.4g}" + (", by factors" if self.log else "")
        self.slider = make(QSlider, Qt.Orientation.Horizontal, maximum=_STEPS, toolTip=tip)
        self.slider.setProperty("control", f"{knob['block']}.{name} slider")
        self.slider.valueChanged.connect(lambda place: self._choose(self._value_at(place), moved=True))
        column.addWidget(self.slider)
        self.show_value(self.value)

    def _value_at(self, place: int) -> float:
        part = place / _STEPS
        if self.log:
            value = self.low * (self.high / self.low) ** part
        else:
            value = self.low + part * (self.high - self.low)
        return float(f"{value:.4g}") if 0 < place < _STEPS else (self.low if place == 0 else self.high)

    def _place_of(self, value: float) -> int:
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return round(_STEPS * part)

    def _choose(self, value: float, moved: bool = False) -> None:
        self._changed = True
        self.show_value(value, move=not moved)

    def show_value(self, value: float, move: bool = True) -> None:
        """Show a value, which need not lie on the slider."""
        self.value = value
        self.box.show_number(value)
        if move:
            self.slider.blockSignals(True)
            self.slider.setValue(self._place_of(value))
            self.slider.blockSignals(False)

    def take(self) -> dict[str, Any] | None:
        """Return the command that the user's last change asks for, once."""
        if not self._changed:
            return None
        self._changed = False
        knob = self.knob
        return {"do": "set", "block": knob["block"], "name": knob["name"], "index": knob["index"], "value": self.value}


class _Resetting(Elided):
    reset = Signal()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go back to what was first."""
        self.reset.emit()


class LawRow(QWidget):
    """The choice of a block's law."""

    asked = Signal(dict)
    changed = Signal(str)

    def __init__(self, choice: dict[str, Any]) -> None:
        super().__init__()
        self.block = choice["block"]
        column = make(QVBoxLayout, self, spacing=2, contentsMargins=QMargins(0, 0, 0, 2))
        column.addWidget(Elided(self.block))
        self.box = Combo()
        self.box.addItems(choice["laws"])
        self.box.setProperty("control", f"{self.block} law")
        self.show_law(choice["active"])
        self.box.activated.connect(
            lambda _: self.asked.emit({"do": "law", "block": self.block, "name": self.box.currentText()})
        )
        self.box.currentTextChanged.connect(self.changed)
        column.addWidget(self.box)

    def show_law(self, name: str) -> None:
        """Show which law is active."""
        k = self.box.findText(name)
        if k >= 0:
            self.box.setCurrentIndex(k)


class Panel(QFrame):
    """The column of controls."""

    asked = Signal(dict)

    def __init__(self, knobs: list[dict[str, Any]], laws: list[dict[str, Any]]) -> None:
        super().__init__()
        self.setObjectName("panel")
        self.setFixedWidth(_WIDTH)
        hidden = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        area = make(QScrollArea, widgetResizable=True, horizontalScrollBarPolicy=hidden)
        make(QVBoxLayout, self, contentsMargins=QMargins(2, 4, 2, 4)).addWidget(area)
        inside = QWidget()
        area.setWidget(inside)
        column = make(QVBoxLayout, inside, spacing=5, contentsMargins=QMargins(8, 4, 10, 4))
        self.laws = [LawRow(choice) for choice in laws]
        counts = Counter(knob["block"] for knob in knobs)
        known = {choice["block"]: choice["laws"] for choice in laws}
        alone = {block for block in counts if counts[block] == 1 and block not in known}
        # those that have laws first, then those of one number, under one heading
        blocks = sorted(counts, key=lambda block: (block not in known, block not in alone))
        ordered = sorted(knobs, key=lambda knob: blocks.index(knob["block"]))
        self.knobs = [KnobRow(knob, known.get(knob["block"], []), knob["block"] in alone) for knob in ordered]
        if self.laws:
            column.addWidget(make(QLabel, "CONTROL LAW", objectName="section"))
        for law in self.laws:
            law.asked.connect(self.asked)
            law.changed.connect(self._show_gains)
            column.addWidget(law)
        heading = None if self.laws or len(blocks) < len(knobs) else "blocks"
        for row in self.knobs:
            above = "blocks" if row.alone else str(row.knob["block"])
            if above != heading:
                heading = above
                column.addSpacing(6)
                column.addWidget(make(Elided, above.upper(), objectName="section", toolTip=escape(above)))
            column.addWidget(row)
        column.addStretch(1)
        self._show_gains()

    def _show_gains(self, *_: str) -> None:
        """Show the gains of the laws that are active, and hide those of the others."""
        active = {law.block: law.box.currentText() for law in self.laws}
        for row in self.knobs:
            row.setVisible(row.law is None or row.law == active.get(row.knob["block"]))

    def flush(self) -> None:
        """Ask for what the user changed since the last time."""
        for row in self.knobs:
            command = row.take()
            if command is not None:
                self.asked.emit(command)

    def show_value(self, block: str, name: str, index: int | None, value: float) -> None:
        """Show where a parameter stands."""
        for row in self.knobs:
            if (row.knob["block"], row.knob["name"], row.knob["index"]) == (block, name, index):
                row.show_value(value)

    def show_law(self, block: str, name: str) -> None:
        """Show which law of a block is active."""
        for row in self.laws:
            if row.block == block:
                row.show_law(name)
