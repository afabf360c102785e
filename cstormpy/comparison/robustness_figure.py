"""Robustness of controllers in one figure: the shares of the score, and which runs of each quantity succeeded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.comparison.table import CRITERIA
from cstormpy.errors import InvalidValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.comparison.entries import Entry
    from cstormpy.comparison.robustness import Curve, Score

WIDTH, BARS, ROW, MARGIN = 9.0, 2.8, 0.24, 1.2
"""Width of a figure, height of the bars, of a row of runs, and around them [inches]."""
GOOD, BAD = "#4c9f70", "#d9d9d9"
"""Colours of runs that succeed and that do not."""


def draw(entries: Sequence[Entry]) -> Figure:
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
        len(heights), 1, figsize=(WIDTH, sum(heights)), height_ratios=heights, layout="constrained"
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
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(found), 4), frameon=False)


def _map(axes: Any, label: str, curves: Sequence[Curve]) -> None:
    for k, curve in enumerate(curves):
        edges = np.linspace(0.0, 1.0, len(curve.success) + 1)
        colours = [GOOD if good else BAD for good in curve.success]
        axes.barh(k, np.diff(edges), left=edges[:-1], height=0.8, color=colours, edgecolor="white", linewidth=0.6)
    names = [curve.name if curve.criterion != "pushes" else "pushes, each another" for curve in curves]
    axes.set_yticks(range(len(curves)), [f"{name}  {_range(curve)}" for name, curve in zip(names, curves, strict=True)])
    axes.tick_params(axis="y", length=0, labelsize="small")
    axes.set(
        xlim=(0.0, 1.0), ylim=(len(curves) - 0.5, -0.5), xticks=[0.0, 1.0], title=f"{label}: runs that succeed in green"
    )
    axes.set_xticklabels(["least", "most"])
    for side in axes.spines.values():
        side.set_visible(False)


def _range(curve: Curve) -> str:
    if curve.criterion == "pushes":
        return ""
    sign = "×" if curve.criterion == "model" and curve.values[0] < 1.0 < curve.values[-1] else ""
    return f"{sign}{curve.values[0]:.3g} to {sign}{curve.values[-1]:.3g}"
