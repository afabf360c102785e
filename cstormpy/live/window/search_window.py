"""The window of a search: the motion that leads, its joints and torques, and the cost of each start by iteration."""

from __future__ import annotations

import base64
import time
from html import escape
from typing import Any

import numpy as np
from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton

from cstormpy.arrays import Array
from cstormpy.live.window import theme
from cstormpy.live.window.history import Thinned
from cstormpy.live.window.mechanism import MechanismTile
from cstormpy.live.window.plotting import Plot, curve, line, rounded_range
from cstormpy.live.window.starting_window import SIZES
from cstormpy.live.window.tile import Tile
from cstormpy.live.window.widgets import make
from cstormpy.live.window.window import Conversation, Window

_MECHANISM_EVERY, _CURSORS_EVERY = 2, 6
"""The mechanism moves every so many frames, the cursors seldomer: a cursor has its whole plot drawn anew. The search
needs the processor more than the window does."""
_TRAIL = 0.3
"""Part of the motion that the trail shows."""
_SLOWEST = 2.5
"""A motion is shown in real time, but takes at least so many seconds."""
_PAUSE = 0.7
"""Seconds for which the end of the motion is seen before it begins anew."""
_ENORMOUS = 1e11
"""A cost above this is what a motion that is not finite was given."""
_POWERS = 100.0
"""A cost that falls by more than this factor is drawn by powers of ten."""


def unpacked(text: str, rows: int) -> Array:
    """Return the numbers of `cstormpy.live.search.packed`, (rows, …)."""
    numbers = np.frombuffer(base64.b64decode(text), dtype=np.float32).astype(float)
    return numbers.reshape(rows, -1) if rows else np.zeros((0, 1))


def _pane(name: str, title: str, labels: list[str], unit: str = "", mechanism: Any = None) -> dict[str, Any]:
    options = {"trail": True}
    return {
        "name": name, "title": title, "labels": labels, "unit": unit, "options": options, "mechanism": mechanism,
        "push": None,
    }  # fmt: skip


class MotionTile(MechanismTile):
    """A mechanism that goes through a motion again and again."""

    def __init__(self, mechanism: Any, labels: list[str]) -> None:
        super().__init__(_pane("motion", "Motion", labels, mechanism=mechanism), 0.0, 1.0)
        self.duration = 0.0

    def replace(self, t: Array, q: Array) -> None:
        """Take another motion, t (N,) and q (N, n), from 0 on."""
        self.history = Thinned(len(self.labels), 0.0, float(t[-1]))
        self.add(t, q)
        self.duration = float(t[-1])
        self._trail = _TRAIL * self.duration

    def play(self, clock: float) -> float:
        """Show where the mechanism is by a clock [s]; return that time of the motion."""
        if not self.duration:
            return 0.0
        lasts = max(self.duration, _SLOWEST)
        now = min(clock % (lasts + _PAUSE) / lasts, 1.0) * self.duration
        self.refresh(now, False)
        return now


class CurvesTile(Tile):
    """Curves over time that are replaced as a whole."""

    def __init__(self, name: str, title: str, labels: list[str], unit: str, bounds: list[float]) -> None:
        super().__init__(_pane(name, title, labels, unit))
        legend = QLabel(
            " &nbsp; ".join(f'<span style="color:{theme.trace(k)}">{escape(x)}</span>' for k, x in enumerate(labels))
        )
        self.head.addWidget(legend)
        self.plot = Plot("t [s]", f"[{unit}]")
        self.column.addWidget(self.plot, 1)
        self.curves = [curve(theme.trace(k)) for k in range(len(labels))]
        self.now = line(90, "#98a5b5")
        for item in [*self.curves, self.now]:
            self.plot.addItem(item)
        self._bounds = bounds
        for bound in bounds:
            level = line(0, theme.MUTED, dashed=True)
            level.setPos(bound)
            self.plot.addItem(level)

    def replace(self, t: Array, y: Array) -> None:
        """Take other curves, t (N,) and y (N, curves)."""
        for item, values in zip(self.curves, y.T, strict=True):
            item.setData(t, values)
        finite = np.concatenate([y[np.isfinite(y)], self._bounds])
        if finite.size:
            self.plot.setYRange(*rounded_range(float(finite.min()), float(finite.max())), padding=0.0)
        self.plot.setXRange(0.0, float(t[-1]), padding=0.0)


class CostTile(Tile):
    """The cost of each start by iteration; the one that leads stands out."""

    def __init__(self, starts: int) -> None:
        super().__init__(_pane("cost", "Cost", [f"start {k + 1}" for k in range(starts)]))
        self._known: list[Array] = [np.zeros((0, 2)) for _ in range(starts)]
        self.plot = Plot("iteration", "")
        self.column.addWidget(self.plot, 1)
        self.curves = [curve("#b9c5d6") for _ in range(starts)]
        for item in self.curves:
            self.plot.addItem(item)
        self.leader = 0
        self.by_powers = False

    def add_costs(self, rows: Array, leader: int) -> None:
        """Take iterations, (N, 4): start, iteration, cost, violation."""
        self.leader = leader
        rows = rows[(rows[:, 2] < _ENORMOUS) & np.isfinite(rows[:, 2])] if rows.shape[1] == 4 else np.zeros((0, 4))
        for k in np.unique(rows[:, 0]).astype(int):
            mine = rows[rows[:, 0] == k]
            self._known[k] = np.concatenate([self._known[k], mine[:, 1:3]])
        self._draw()

    def _draw(self) -> None:
        costs = np.concatenate([known[:, 1] for known in self._known])
        if not costs.size:
            return
        low, high = float(costs.min()), float(costs.max())
        self.by_powers = low > 0.0 and high > _POWERS * low
        for k, (item, known) in enumerate(zip(self.curves, self._known, strict=True)):
            item.setData(known[:, 0], np.log10(known[:, 1]) if self.by_powers else known[:, 1])
            leads = k == self.leader
            item.setPen(theme.ACCENT if leads else "#b9c5d6", width=2 if leads else 1)
            item.setZValue(5 if leads else 0)
        self.plot.getPlotItem().getAxis("left").setLogMode(self.by_powers)
        ends = (np.log10(low), np.log10(high)) if self.by_powers else (low, high)
        self.plot.setYRange(*rounded_range(*(float(end) for end in ends)), padding=0.0)
        last = max(float(known[-1, 0]) for known in self._known if len(known))
        self.plot.setXRange(1.0, max(last, 10.0), padding=0.0)


class SearchWindow(Window):
    """The window; it says "stop" and nothing else."""

    def __init__(self, channel: Conversation) -> None:
        super().__init__(channel, SIZES["search"], "cstormpy")
        self.motion: MotionTile | None = None
        self.joints: CurvesTile | None = None
        self.torques: CurvesTile | None = None
        self.cost: CostTile | None = None
        self._motors: list[int] = []
        self._began = time.monotonic()
        self.rows.addWidget(self._make_bar())
        self.rows.addWidget(self.middle, 1)

    def _make_bar(self) -> QFrame:
        bar = make(QFrame, objectName="bar")
        row = make(QHBoxLayout, bar, contentsMargins=QMargins(8, 6, 12, 6))
        tip = "End the search; the best so far is kept (closing the window does not end it)"
        self.stop = make(QPushButton, "Stop", toolTip=tip, clicked=self._ask_to_stop)
        self.stop.setProperty("control", "stop")
        self.status = QLabel("the search is being prepared \u2026")
        row.addWidget(self.stop)
        row.addSpacing(8)
        row.addWidget(self.status, 1)
        self.stage = make(QLabel, objectName="muted")
        row.addWidget(self.stage)
        return bar

    def _ask_to_stop(self) -> None:
        self.channel.send(do="stop")
        self.stop.setEnabled(False)

    # what the search says

    def take(self, message: dict[str, Any]) -> None:
        """Do what a message says."""
        said = message.get("say")
        if said == "search":
            self._show_problem(message)
            self.channel.send(say="shown")
        elif said == "motion":
            self._show_motion(message)
        elif said == "costs" and self.cost is not None:
            self.cost.add_costs(unpacked(message["rows"], message["count"]), message["leader"])
        elif said in ("progress", "found"):
            self.status.setText(message["text"])
            if said == "found":
                self.stop.setEnabled(False)

    def _show_problem(self, message: dict[str, Any]) -> None:
        self.lay_out(message["title"], message.get("position"))
        self.stage.setText(message["stage"])
        joints, self._motors = message["joints"], message["motors"]
        motors = [joints[k] for k in self._motors]
        unit, effort = message["units"]
        self.motion = MotionTile(message["mechanism"], joints)
        self.joints = CurvesTile("joints", "Joints", joints, unit, [])
        self.torques = CurvesTile("torques", "Torques", motors, effort, message["bounds"])
        self.cost = CostTile(message["starts"])
        for upper, lower in ((self.motion, self.cost), (self.joints, self.torques)):
            self.add_column([upper, lower], [400, 300])
        self.middle.setSizes([1000, 1000])

    def _show_motion(self, message: dict[str, Any]) -> None:
        if self.motion is None or self.joints is None or self.torques is None:
            return
        count = message["count"]
        t, q, tau = (unpacked(message[name], count) for name in ("t", "q", "tau"))
        self.motion.replace(t[:, 0], q)
        self.joints.replace(t[:, 0], q)
        self.torques.replace(t[:, 0], tau[:, self._motors])

    def draw(self) -> None:
        """Move the mechanism, and the cursors along the curves."""
        if self.motion is not None and self.joints is not None and self.torques is not None:
            if self.frames % _MECHANISM_EVERY == 0:
                now = self.motion.play(time.monotonic() - self._began)
                if self.frames % _CURSORS_EVERY == 0:
                    self.joints.now.setPos(now)
                    self.torques.now.setPos(now)
