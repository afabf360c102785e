"""Comparisons in figures: motions and torques over one another, what controllers endure, the cost of formulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.comparison.table import CRITERIA
from cstormpy.errors import InvalidValue
from cstormpy.reporting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cstormpy.comparison.entries import Entry
    from cstormpy.comparison.formulations import FormulationComparison
    from cstormpy.comparison.robustness import Curve, Score

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.9
"""Width of a figure, height of one plot in it, and of what stands above and below them [inches]."""
LEGEND_LINE, LEGEND_LETTER, LEGEND_ROW, IN_ABOVE = 0.6, 0.085, 0.22, 3
"""Room for a line of a legend, a letter and a row of it [inches], and how many rows there is room for anyway."""
IN_ONE_COLUMN = 4
"""Up to so many plots stand below one another."""
ASIDE, MOST_TURNS = 1.0, 12
"""How far beside what settles is shown, as a part of its range or a turn, and at most so many lines at the goal."""
Quantity = tuple[str, str]
"""What has a plot: a name and its unit."""
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
    joints = list(dict.fromkeys(joint for entry in shown for joint in _joints(entry)))
    motors = list(dict.fromkeys(motor for entry in shown for motor in _motors(entry)))
    figure, plots = _plots(plt, len(joints), len(motors))
    positions, torques = dict(zip(joints, plots, strict=False)), dict(zip(motors, plots[len(joints) :], strict=True))
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    # the first line is the widest, so that one which others cover is still seen
    widths = np.linspace(THICK, THIN, len(shown)) if len(shown) > 1 else [THIN]
    lines = [
        _lines(positions, torques, entry, colours[k % len(colours)], float(width))
        for k, (entry, width) in enumerate(zip(shown, widths, strict=True))
    ]
    for joint in joints:
        having = [entry for entry in shown if joint in _joints(entry)]
        name, unit = joint
        _finish(positions[joint], f"{name} [{unit}]")
        _look_at_goal(positions[joint], having, joint)
        _mark_goal(positions[joint], having[0], joint)
    for motor in motors:
        name, unit = motor
        _finish(torques[motor], f"{name} {'force' if unit == 'N' else 'torque'}\n[{unit}]")
    plots[0].set_xlim(0.0, max(float(entry.t[-1]) for entry in shown))
    figure.align_ylabels()
    labels, columns = _laid_out([_legend(entry) for entry in shown], figure.get_figwidth(), 2)
    rows = sum(label.count("\n") + 1 for label in labels) if columns == 1 else 0
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0, rows - IN_ABOVE))
    figure.legend(lines, [*map(plain, labels)], loc="outside upper center", ncols=columns, frameon=False)
    return figure


def _joints(entry: Entry) -> list[Quantity]:
    """Return the coordinates of a run's mechanism; in that of another run one of this name may have another unit."""
    return list(zip(entry.joints, entry.units, strict=True))


def _motors(entry: Entry) -> list[Quantity]:
    """Return the motors of a run's mechanism."""
    return list(zip(entry.motors, entry.motor_units, strict=True))


def _laid_out(labels: Sequence[str], width: float, most: int) -> tuple[list[str], int]:
    """Return labels of a legend, in lines that fit into a width [inches], and how many columns of them do."""
    broken = [fill(label, int((width - LEGEND_LINE) / LEGEND_LETTER)) for label in labels]
    longest = max(len(line) for label in broken for line in label.split("\n"))
    return broken, max(1, min(most, len(labels), int(width / (LEGEND_LINE + LEGEND_LETTER * longest))))


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


def _lines(
    positions: Mapping[Quantity, Axes], torques: Mapping[Quantity, Axes], entry: Entry, colour: str, width: float
) -> Any:
    for joint, q in zip(_joints(entry), entry.q.T, strict=True):
        (line,) = positions[joint].plot(entry.t, q, color=colour, linewidth=width)
        if entry.time_to_balance is not None:
            at = np.interp(entry.time_to_balance, entry.t, q)
            positions[joint].plot(entry.time_to_balance, at, "o", color=colour, markersize=5, zorder=3)
    for motor, tau in zip(_motors(entry), entry.tau.T, strict=False):
        torques[motor].plot(entry.t, tau, color=colour, linewidth=width)
    return line


def _legend(entry: Entry) -> str:
    if entry.status in ("failed", "interrupted"):
        return f"{entry.label} ({entry.status})"
    if entry.time_to_balance is not None:
        return f"{entry.label} (balanced from {entry.time_to_balance:.2f} s on)"
    return f"{entry.label} (not balanced)" if entry.goal is not None else entry.label


def _finish(axes: Axes, label: str) -> None:
    axes.set_ylabel(plain(label))
    axes.grid(True, alpha=0.3)


def _look_at_goal(axes: Axes, entries: Sequence[Entry], joint: Quantity) -> None:
    """Show what the runs that settle do, where others go so far away that nothing could be seen of it."""
    seen = [entry.q[:, _joints(entry).index(joint)] for entry in entries if entry.settled]
    if not seen:
        return
    least, most = min(float(q.min()) for q in seen), max(float(q.max()) for q in seen)
    beside = ASIDE * max(most - least, float(entries[0].turn[_joints(entries[0]).index(joint)]))
    low, high = axes.get_ylim()
    if beside > 0.0 and high - low > most - least + 2.0 * beside:
        axes.set_ylim(max(low, least - beside), min(high, most + beside))


def _mark_goal(axes: Axes, entry: Entry, joint: Quantity) -> None:
    """Draw a line where the goal is, and where it is again a turn further, as far as that is in sight.

    Where very many turns are, lines would hide the runs, and there are none.
    """
    if entry.goal is None:
        return
    k = _joints(entry).index(joint)
    at, turn = float(entry.goal.q[k]), float(entry.turn[k])
    low, high = axes.get_ylim()
    turns = range(math.ceil((low - at) / turn), math.floor((high - at) / turn) + 1) if turn else range(1)
    for more in turns if len(turns) <= MOST_TURNS else ():
        axes.axhline(at + more * turn, color="0.5", linewidth=1.0, linestyle="--", zorder=0)


MAP_WIDTH, BARS, ROW, MARGIN = 9.0, 2.8, 0.24, 1.2
"""Width of a figure, height of the bars, of a row of runs, and around them [inches]."""
GOOD, BAD = "#4c9f70", "#d9d9d9"
"""Colours of runs that succeed and that do not."""


def draw_robustness(entries: Sequence[Entry]) -> Figure:
    """Return a figure of pyplot's: bars of all controllers on top, and a map of the runs of each below.

    In a map a row is a quantity and a cell a run, from the least of that quantity on the left to the most.
    """
    import matplotlib.pyplot as plt

    shown = [(entry.label, entry.robustness) for entry in entries if entry.robustness is not None]
    found = [(label, score) for label, score in shown if score.curves]
    if not found:
        reasons = "; ".join(f"{label}: {score.reason}" for label, score in shown)
        raise InvalidValue(
            f"plot_robustness: no run has a score{': ' + reasons if reasons else '; compare with robustness=True'}"
        )
    rows = [len(score.curves) for _, score in found]
    heights = [BARS, *(ROW * count + MARGIN for count in rows)]
    figure, axes = plt.subplots(
        len(heights), 1, figsize=(MAP_WIDTH, sum(heights)), height_ratios=heights, layout="constrained"
    )
    _bars(axes[0], found)
    for plot, (label, score) in zip(axes[1:], found, strict=True):
        _map(plot, label, score.curves)
    return figure


def _bars(axes: Any, found: Sequence[tuple[str, Score]]) -> None:
    names = [*CRITERIA, "total"]
    place, width = np.arange(len(names)), 0.8 / len(found)
    for k, (label, score) in enumerate(found):
        shares = [100.0 * score.row[name] for name in names]
        bars = axes.bar(place - 0.4 + (k + 0.5) * width, shares, 0.92 * width, label=label)
        axes.bar_label(bars, fmt="%.0f", fontsize="small", padding=1)
    axes.set_xticks(place, names)
    axes.set(ylim=(0.0, 112.0), yticks=range(0, 101, 25), ylabel="runs that succeed [%]")
    axes.grid(True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    labels, columns = _laid_out(labels, MAP_WIDTH - MARGIN, 4)
    axes.legend(
        handles, [*map(plain, labels)], loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False
    )


def _map(axes: Any, label: str, curves: Sequence[Curve]) -> None:
    for k, curve in enumerate(curves):
        edges = np.linspace(0.0, 1.0, len(curve.success) + 1)
        colours = [GOOD if good else BAD for good in curve.success]
        axes.barh(k, np.diff(edges), left=edges[:-1], height=0.8, color=colours, edgecolor="white", linewidth=0.6)
    names = [curve.name if curve.criterion != "pushes" else "pushes, each another" for curve in curves]
    rows = [plain(f"{name}  {_range(curve)}") for name, curve in zip(names, curves, strict=True)]
    axes.set_yticks(range(len(curves)), rows)
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.set(xlim=(0.0, 1.0), ylim=(len(curves) - 0.5, -0.5), xticks=[0.0, 1.0])
    axes.set_title(plain(f"{label}: runs that succeed in green"))
    axes.set_xticklabels(["least", "most"])
    for side in axes.spines.values():
        side.set_visible(False)


def _range(curve: Curve) -> str:
    if curve.criterion == "pushes":
        return ""
    sign = "×" if curve.criterion == "model" and curve.values[0] < 1.0 < curve.values[-1] else ""
    return f"{sign}{curve.values[0]:.3g} to {sign}{curve.values[-1]:.3g}"


PROBLEM_WIDTH, PROBLEM_HEIGHT = 12.0, 3.6
"""Width of the figure, and height of the plots of one problem [inches]."""
COLOURS = "tab20"
"""Colour map; a problem has up to twenty formulations."""


def draw_formulations(found: FormulationComparison) -> Figure:
    """Return a figure of pyplot's: a row for each problem, operations on the left, time on the right.

    What was run is drawn as points and a line, what was continued as dots.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    problems = found.problems()
    figure, grid = plt.subplots(
        len(problems), 2, squeeze=False, figsize=(PROBLEM_WIDTH, PROBLEM_HEIGHT * len(problems)), layout="constrained"
    )
    colours = plt.get_cmap(COLOURS).colors  # type: ignore[attr-defined]
    for (counts, times), problem in zip(grid, problems, strict=True):
        for name, colour in zip(found.names(problem), (*colours, *colours), strict=False):
            rows = found.of(problem, name)
            by_count = {row.n: row.operations() for row in rows if row.operations() is not None}
            by_time = {row.n: row.seconds for row in rows if row.seconds is not None}
            _line(counts, by_count, lambda n, p=problem, m=name: found.operations(p, m, n), found.last, colour, name)
            _line(times, by_time, lambda n, p=problem, m=name: found.seconds(p, m, n), found.last, colour, name)
        for axes, what in ((counts, "multiplications and additions"), (times, "time of a call [s]")):
            axes.set(xscale="log", yscale="log", xlabel="joints", ylabel=what, title=problem)
            axes.xaxis.set_major_formatter(LogFormatter())  # 20 joints, not 2 x 10^1
            axes.xaxis.set_minor_formatter(LogFormatter())
            axes.grid(True, which="both", alpha=0.2)
        times.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    return figure


def _line(axes: Any, points: dict[int, Any], at: Any, last: int, colour: Any, name: str) -> None:
    if not points:
        return
    axes.plot(list(points), list(points.values()), "o-", color=colour, markersize=3, linewidth=1.2, label=name)
    end = max(points)
    beyond = sorted({round(n) for n in np.linspace(end, last, 12)}) if last > end else []
    continued = {n: value[0] for n in beyond if (value := at(n)) is not None}
    axes.plot(list(continued), list(continued.values()), ":", color=colour, linewidth=1.2)
