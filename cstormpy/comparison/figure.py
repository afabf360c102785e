"""A comparison in one figure: the joints' positions and the torques of the motors, all runs over one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import InvalidValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cstormpy.comparison.entries import Entry

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.9
"""Width of a figure, height of one plot in it, and of what stands above and below them [inches]."""
IN_ONE_COLUMN = 4
"""Up to so many plots stand below one another."""
THICK, THIN = 2.4, 1.1
"""Width of the first line and of the last [points]."""


def draw(entries: Sequence[Entry]) -> Figure:
    """Return a figure of pyplot's with a plot for each joint and each motor.

    Few plots stand below one another, many in two columns: the joints on the left, the motors on the right.
    """
    import matplotlib.pyplot as plt

    shown = [entry for entry in entries if len(entry.t)]
    if not shown:
        raise InvalidValue("plot: no run has a sample to draw")
    joints, motors = shown[0].joints, shown[0].motors
    figure, plots = _plots(plt, len(joints), len(motors))
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    # the first line is the widest, so that one which others cover is still seen
    widths = np.linspace(THICK, THIN, len(shown)) if len(shown) > 1 else [THIN]
    lines = [
        _lines(plots, entry, colours[k % len(colours)], float(width))
        for k, (entry, width) in enumerate(zip(shown, widths, strict=True))
    ]
    for k, joint in enumerate(joints):
        _finish(plots[k], f"{joint} [rad]")
        _mark_goal(plots[k], shown[0], k)
    for motor, axes in zip(motors, plots[len(joints) :], strict=True):
        _finish(axes, f"{motor} torque\n[N m]")
    plots[0].set_xlim(0.0, max(float(entry.t[-1]) for entry in shown))
    figure.align_ylabels()
    figure.legend(lines, [_legend(entry) for entry in shown], loc="outside upper center", ncols=2, frameon=False)
    return figure


def _plots(plt: Any, joints: int, motors: int) -> tuple[Figure, list[Axes]]:
    """Return a figure and its plots, those of the joints before those of the motors."""
    columns = 1 if joints + motors <= IN_ONE_COLUMN or not motors else 2
    rows = joints + motors if columns == 1 else max(joints, motors)
    size = (WIDTH * (1.0 if columns == 1 else 1.5), HEIGHT * rows + ABOVE)
    figure, grid = plt.subplots(rows, columns, sharex=True, squeeze=False, figsize=size, layout="constrained")
    counts = [joints + motors] if columns == 1 else [joints, motors]
    for column, count in enumerate(counts):
        for axes in grid[count:, column]:
            axes.remove()
        grid[count - 1, column].set_xlabel("time [s]")
        grid[count - 1, column].tick_params(labelbottom=True)
    return figure, [grid[row, column] for column, count in enumerate(counts) for row in range(count)]


def _lines(axes: Sequence[Axes], entry: Entry, colour: str, width: float) -> Any:
    n = len(entry.joints)
    for k in range(n):
        (line,) = axes[k].plot(entry.t, entry.q[:, k], color=colour, linewidth=width)
    for k in range(entry.tau.shape[1]):
        axes[n + k].plot(entry.t, entry.tau[:, k], color=colour, linewidth=width)
    if entry.time_to_balance is not None:
        for k in range(n):
            at = np.interp(entry.time_to_balance, entry.t, entry.q[:, k])
            axes[k].plot(entry.time_to_balance, at, "o", color=colour, markersize=5, zorder=3)
    return line


def _legend(entry: Entry) -> str:
    if entry.status in ("failed", "interrupted"):
        return f"{entry.label} ({entry.status})"
    if entry.time_to_balance is not None:
        return f"{entry.label} (balanced from {entry.time_to_balance:.2f} s on)"
    return f"{entry.label} (not balanced)" if entry.goal is not None else entry.label


def _finish(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(True, alpha=0.3)


def _mark_goal(axes: Axes, entry: Entry, joint: int) -> None:
    """Draw a line where the goal is, and where it is again a turn further, as far as that is in sight."""
    if entry.goal is None:
        return
    at, turn = float(entry.goal.q[joint]), float(entry.turn[joint])
    low, high = axes.get_ylim()
    turns = range(math.ceil((low - at) / turn), math.floor((high - at) / turn) + 1) if turn else [0]
    for k in turns:
        axes.axhline(at + k * turn, color="0.5", linewidth=1.0, linestyle="--", zorder=0)
