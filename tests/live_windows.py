"""A live window with its real widgets, off the screen, and a simulation that is played by a list."""

import contextlib
import os

import numpy as np
import pytest

from cstormpy import library, live
from cstormpy.live import Knob, LawChoice, LivePane
from cstormpy.live.description import described
from cstormpy.live.ring import RingWriter, SharedMemory, ring_bytes

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
reason = live.available({"QT_QPA_PLATFORM": "offscreen"})
if reason is not None:
    pytest.skip(f"no window here: {reason}", allow_module_level=True)

from PySide6.QtCore import QPoint, Qt  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget  # noqa: E402

from cstormpy.live.window import main_window, theme  # noqa: E402

ACROBOT, ARM = library.acrobot(), library.arm7()
PANES = [
    LivePane("angles", "scope", ["q1", "q2"], title="Joint angles", unit="rad"),
    LivePane("torque", "scope", ["elbow"], title="Torque", unit="N m", options={"stairs": True, "scale": [-2, 2]}),
    LivePane("phase", "xy", ["q1", "q1'"], title="Phase", options={"equal": True}),
    LivePane("robot", "mechanism", ACROBOT.names, mechanism=ACROBOT, push="plant"),
    LivePane("arm", "mechanism", ARM.names, mechanism=ARM, options={"frames": True, "trail": 0.5}),
]
CONTROLS = [Knob("controller", "ke", 20.0), Knob("plant", "damping", 0.0), LawChoice("controller", ["a", "b"], "a")]
LEFT = Qt.MouseButton.LeftButton


class Simulation:
    """Stands in for the channel, and writes samples."""

    def __init__(self, panes=PANES, controls=CONTROLS, end=10.0):
        content = described(panes, controls)
        self.lost, self.sent = False, []
        self.memory = SharedMemory()
        size, slots = ring_bytes(2**14, content["width"]), 2**14
        self.writer = RingWriter(self.memory.map(size), slots, content["width"])
        name = {**self.memory.name(), "size": size, "slots": slots}
        self.waiting = [
            {"say": "show", "title": "test", "position": None, "begin": 0.0, "end": end, "pace": 1.0}
            | {"state": "running", "memory": name, **content}
        ]

    def messages(self):
        taken, self.waiting = self.waiting, []
        return taken

    def send(self, **message):
        if "do" in message:
            self.sent.append(message)

    def flush(self):
        pass

    def write(self, begin, end, count):
        """Write samples of a motion; return t and the rows."""
        t = np.linspace(begin, end, count)
        rows = np.zeros((count, self.writer.width))
        waves = np.sin(np.outer(t, 1.0 + np.arange(rows.shape[1])))
        rows[:] = waves
        self.writer.write_many(t, rows)
        return t, rows


def application():
    app = QApplication.instance() or QApplication([])
    theme.apply(app)
    return app


@contextlib.contextmanager
def shown_window():
    """Open a window that shows the first four seconds of a run; give it and the simulation."""
    simulation = Simulation()
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.data = simulation.write(0.0, 4.0, 2001)
    frame(window)
    yield window, simulation
    window.close()
    window.deleteLater()
    simulation.memory.close()


def frame(window, count=4):
    for _ in range(count):
        window.tick()
        QApplication.processEvents()


def control(window, name):
    found = [w for w in window.findChildren(QWidget) if w.property("control") == name]
    assert found, name
    return found[0]


def tile(window, name):
    return next(t for t in window.tiles if t.pane["name"] == name)


def click(inside, name):
    button = control(inside, name)
    assert isinstance(button, QAbstractButton)
    QTest.mouseClick(button, LEFT)


def menu_of(window, chosen):
    """Open the menu of a pane, and return its entries by their texts."""
    chosen.menu_wanted.emit(chosen, QPoint(10, 10))
    entries = {action.text(): action for action in window.menu.actions() if action.text()}
    window.menu.close()
    return entries
