"""The figure of a solution: joints, torques, frames of the motion, cost by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.mechanism.skeleton import skeleton

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.samples import Array, Samples
    from cstormpy.optimal.solution import Solution

__all__ = ["draw", "draw_frames"]

POINTS = 400
"""Points of each line."""

SIZE = (10.0, 7.0)
"""Width and height [inches]."""


def draw(solution: Solution, frames: int) -> Figure:
    """Return the figure, made without pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    (joints, motion), (torques, history) = figure.subplots(2, 2)
    at = solution.at(np.linspace(0.0, solution.duration, POINTS))
    _draw_joints(joints, at)
    _draw_torques(torques, solution, at)
    _draw_frames(motion, solution, frames)
    _draw_history(history, solution)
    return figure


def _draw_joints(axes: Any, at: Samples) -> None:
    for name, column in zip(at.mech.names, at.q.T, strict=True):
        axes.plot(at.t, column, label=name)
    axes.set(xlabel="t [s]", ylabel="joints [rad or m]")
    axes.legend(frameon=False)


def _draw_torques(axes: Any, solution: Solution, at: Samples) -> None:
    limits = {name: k.kind for k in solution.problem.limits for name in k.columns if k.kind == "torque"}
    drawn = set()
    for name in at.mech.actuated:
        line = axes.plot(at.t, at.tau[:, at.mech.joint_index(name)], label=name)[0]
        if name not in limits:
            continue
        limit = next(k for k in solution.problem.limits if k.kind == "torque")
        c = limit.columns.index(name)
        for bound in (limit.lower[c], limit.upper[c]):
            if np.isfinite(bound) and bound not in drawn:
                axes.axhline(bound, color=line.get_color(), linewidth=0.8, linestyle=":")
                drawn.add(bound)
    axes.set(xlabel="t [s]", ylabel="torques [N m or N]")
    axes.legend(frameon=False)


def _draw_frames(axes: Any, solution: Solution, frames: int) -> None:
    at = solution.at(np.linspace(0.0, solution.duration, max(2, frames)))
    draw_frames(axes, solution.problem.mech, at.q)
    axes.set_title(f"every {solution.duration / (len(at) - 1):.3g} s")


def draw_frames(axes: Any, mech: Mechanism, q: Array) -> None:
    """Draw a mechanism in some postures (N, n), the first light and the last dark, into axes of matplotlib."""
    shape = skeleton(mech)
    for k, posture in enumerate(q):
        shade = 0.15 + 0.85 * k / max(len(q) - 1, 1)
        for line in (line for link in shape.place(shape.poses(posture)).lines for line in link):
            axes.plot(line @ shape.right, line @ shape.up, color="tab:blue", alpha=shade, linewidth=1.5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="[m]", ylabel="[m]")


def _draw_history(axes: Any, solution: Solution) -> None:
    costs = np.array([cost for cost, _ in solution.history])
    costs = np.where(np.abs(costs) < 1e11, costs, np.nan)
    axes.plot(np.arange(1, len(costs) + 1), costs)
    if len(costs) and np.nanmin(costs) > 0.0 and np.nanmax(costs) > 100.0 * np.nanmin(costs):
        axes.set_yscale("log")
    axes.set(xlabel="iteration", ylabel="cost")
