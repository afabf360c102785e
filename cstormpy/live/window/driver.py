"""Lets a test use the window as its user would: with events of mouse and keyboard on the widgets themselves.

Only where the environment variable CSTORMPY_LIVE_TEST is set.
"""

from __future__ import annotations

import time
from typing import Any

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLineEdit, QSlider, QWidget

from cstormpy.live.window.scope import ScopeTile


class Driver:
    """Carries out {"say": "drive", "act": …, "control": …} and returns {"say": "driven", …}.

    Acts: "click"; "slide" and "choose" and "type" with "value"; "press", "move", "release" with "at" in pixels;
    "look" for what the window shows; "lag" for how late it is; "picture" with a "path"; "close".
    """

    def __init__(self, window: Any) -> None:
        self.window = window

    def drive(self, message: dict[str, Any]) -> dict[str, Any]:
        """Carry out one act."""
        try:
            result = getattr(self, f"_{message['act']}")(message)
        except Exception as error:  # the test is to see it
            result = {"error": f"{type(error).__name__}: {error}"}
        return {"say": "driven", **(result or {})}

    def find(self, name: str) -> Any:
        """Return the widget of a control."""
        for widget in self.window.findChildren(QWidget):
            if widget.property("control") == name:
                return widget
        raise LookupError(f"no control {name!r}")

    def _click(self, message: dict[str, Any]) -> None:
        widget = self.find(message["control"])
        assert isinstance(widget, QAbstractButton)
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton)

    def _slide(self, message: dict[str, Any]) -> None:
        slider = self.find(message["control"])
        assert isinstance(slider, QSlider)
        slider.setFocus()
        QTest.keyClick(slider, Qt.Key.Key_Home)
        for _ in range(int(message["value"])):
            QTest.keyClick(slider, Qt.Key.Key_PageUp)

    def _choose(self, message: dict[str, Any]) -> None:
        box = self.find(message["control"])
        assert isinstance(box, QComboBox)
        QTest.keyClick(box, Qt.Key.Key_Home)
        for _ in range(box.findText(message["value"])):
            QTest.keyClick(box, Qt.Key.Key_Down)

    def _type(self, message: dict[str, Any]) -> None:
        edit = self.find(message["control"])
        assert isinstance(edit, QLineEdit)
        edit.selectAll()
        QTest.keyClicks(edit, str(message["value"]))
        QTest.keyClick(edit, Qt.Key.Key_Return)

    def _press(self, message: dict[str, Any]) -> None:
        QTest.mousePress(self.find(message["control"]), Qt.MouseButton.LeftButton, pos=QPoint(*message["at"]))

    def _move(self, message: dict[str, Any]) -> None:
        QTest.mouseMove(self.find(message["control"]), QPoint(*message["at"]))

    def _release(self, message: dict[str, Any]) -> None:
        QTest.mouseRelease(self.find(message["control"]), Qt.MouseButton.LeftButton, pos=QPoint(*message["at"]))

    def _close(self, message: dict[str, Any]) -> None:
        self.window.close()

    def _picture(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"saved": self.window.grab().save(message["path"])}

    def _link(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the pixel in the middle of a link that is drawn."""
        view = self.find(message["control"])
        line = view.drawing.lines[message["link"]][0]
        seen = view.camera.project(line)[:, :2].mean(axis=0)
        return {"at": [round(float(v)) for v in QPointF(*seen).toTuple()]}

    def _lag(self, message: dict[str, Any]) -> dict[str, Any]:
        """Draw a frame; return the time of its newest sample, and when it began and was painted."""
        begin = time.monotonic()
        self.window.tick()
        QApplication.processEvents()
        return {"newest": self.window.newest, "begin": begin, "painted": time.monotonic()}

    def _look(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what is seen."""
        w = self.window
        curves = {
            tile.pane["name"]: [[part.tolist() for part in item.getData()] for item in tile.curves]
            for tile in w.tiles
            if isinstance(tile, ScopeTile)
        }
        return {
            "state": w.transport.state,
            "status": w.transport.status.text(),
            "pace": w.transport.pace.currentText(),
            "now": w.now,
            "newest": w.newest,
            "live": w.live,
            "frames": w.frames,
            "lost": w.reader.lost if w.reader else 0,
            "curves": curves,
        }
