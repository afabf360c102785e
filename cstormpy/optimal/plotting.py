"""Figures of a mechanism, a motion and a solution: joints, torques, frames of the motion, cost by iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.linkage.skeleton import Drawing, Skeleton, skeleton
from cstormpy.optimal.joints import turning
from cstormpy.reporting import dashes, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.constraints import JointLimit
    from cstormpy.optimal.samples import Array, Samples
    from cstormpy.optimal.solution import Solution

POINTS = 400
"""Points of each line."""

SIZE = (10.0, 7.0)
"""Width and height [inches]."""

_COLUMNS = 4
"""Most names beside one another above axes."""

ENORMOUS = 1e11
"""A cost above this is what a motion that is not finite was given: it is left out of the history."""


def draw(solution: Solution, frames: int) -> Figure:
    """Return the figure of a solution."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=SIZE, layout="constrained")
    (joints, motion), (torques, history) = figure.subplots(2, 2)
    at = solution.at(np.linspace(0.0, solution.duration, POINTS))
    draw_joints(joints, at, above=True)
    draw_torques(torques, at, solution.problem.limits, above=True)
    shown = solution.at(np.linspace(0.0, solution.duration, max(2, frames)))
    draw_frames(motion, solution.mechanism, shown.q)
    motion.set_title(f"every {solution.duration / (len(shown) - 1):.3g} s", fontsize="medium")
    draw_history(history, [cost for cost, _ in solution.history])
    return figure


def units(mech: Mechanism) -> tuple[str, str]:
    """Return the units of a mechanism's coordinates and of its torques, as axes name them.

    >>> from cstormpy.mechanism import library
    >>> units(library.acrobot())
    ('rad', 'N m')
    """
    turns = turning(mech)
    if turns.all():
        return "rad", "N m"
    return ("rad or m", "N m or N") if turns.any() else ("m", "N")


def draw_joints(axes: Any, at: Samples, above: bool = False) -> None:
    """Draw the positions of all joints over time into axes of matplotlib, their names within or `above` these."""
    for k, (name, column) in enumerate(zip(_labels(at.mech, ("rad", "m")), at.q.T, strict=True)):
        axes.plot(at.t, column, dashes(k), color=f"C{k}", label=name)
    axes.set(xlabel="t [s]", ylabel=f"q [{units(at.mech)[0]}]")
    _name_lines(axes, at.mech.n, above)


def _labels(mech: Mechanism, kinds: tuple[str, str]) -> list[str]:
    """Return the names of the coordinates, with their units where these differ."""
    turns = turning(mech)
    mixed = turns.any() and not turns.all()
    return [
        plain(f"{name} [{kinds[not turn]}]" if mixed else name)
        for name, turn in zip(mech.names, turns.tolist(), strict=True)
    ]


def _name_lines(axes: Any, count: int, above: bool) -> None:
    """Write the names of so many lines into axes, or above them, where they are on none of the lines."""
    if above:
        columns = min(count, _COLUMNS)
        axes.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=columns, fontsize="small",
            columnspacing=1.2, handlelength=1.5,
        )  # fmt: skip
    else:
        axes.legend(frameon=False)


def draw_torques(axes: Any, at: Samples, limits: Sequence[JointLimit] = (), above: bool = False) -> None:
    """Draw the torques of the motors over time, with their limits as dotted lines; colours are those of the joints."""
    labels = _labels(at.mech, ("N m", "N"))
    torque_limits = next((limit for limit in limits if limit.kind == "torque"), None)
    drawn = set()
    for name in at.mech.actuated:
        k = at.mech.joint_index(name)
        line = axes.plot(at.t, at.tau[:, k], dashes(k), label=labels[k], color=f"C{k}")[0]
        if torque_limits is None or name not in torque_limits.columns:
            continue
        c = torque_limits.columns.index(name)
        for bound in (float(torque_limits.lower[c]), float(torque_limits.upper[c])):
            if np.isfinite(bound) and bound not in drawn:
                axes.axhline(bound, color=line.get_color(), linewidth=0.8, linestyle=":")
                drawn.add(bound)
    axes.set(xlabel="t [s]", ylabel=f"torque [{units(at.mech)[1]}]")
    _name_lines(axes, len(at.mech.actuated), above)


def draw_frames(axes: Any, mech: Mechanism, q: Array) -> None:
    """Draw a mechanism in some postures (N, n), the first light and the last dark, into axes of matplotlib."""
    shape = skeleton(mech)
    for k, posture in enumerate(q):
        shade = 0.15 + 0.85 * k / max(len(q) - 1, 1)
        look = {"color": "tab:blue", "alpha": shade}
        drawing = shape.place(shape.poses(posture))
        lines = [line for link in drawing.lines for line in link]
        for way in _ways_slid(shape, drawing):
            axes.plot(way @ shape.right, way @ shape.up, linewidth=1.0, color="0.5", alpha=shade)
        for line in lines:
            axes.plot(line @ shape.right, line @ shape.up, linewidth=1.5, **look)
        if not lines:  # bodies that reach nowhere, as a free one: where they are
            places = mech.forward_kinematics(posture)[:, :3, 3]
            axes.plot(places @ shape.right, places @ shape.up, "o", **look)
    _name_directions(axes, shape)


def _ways_slid(shape: Skeleton, drawing: Drawing) -> list[Array]:
    """Return the lines (2, 3) along which links have slid that have no length of their own, as a cart."""
    without = [i for i, joint in enumerate(shape.joints) if joint.symbol.rail and not drawing.lines[i]]
    return [np.stack([drawing.anchors[i], drawing.joints[i]]) for i in without]


def _name_directions(axes: Any, shape: Skeleton) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=_direction(shape.right), ylabel=_direction(shape.up))


def _direction(along: Array) -> str:
    """Return how an axis is named that shows a direction of the base frame; by its unit alone where that is oblique."""
    k = int(np.argmax(np.abs(along)))
    return f"{'xyz'[k]} [m]" if along[k] > 1.0 - 1e-9 else "[m]"


def draw_history(axes: Any, costs: Sequence[float]) -> None:
    """Draw the cost by iteration, by powers of ten where it falls by more than two of them."""
    shown = np.array(costs, dtype=float)
    shown = np.where(np.abs(shown) < ENORMOUS, shown, np.nan)
    axes.plot(np.arange(1, len(shown) + 1), shown)
    if len(shown) and np.nanmin(shown) > 0.0 and np.nanmax(shown) > 100.0 * np.nanmin(shown):
        axes.set_yscale("log")
    axes.set(xlabel="iteration", ylabel="cost")
    axes.xaxis.get_major_locator().set_params(integer=True)


# ---------------------------------------------------------------- the mechanism itself


def draw_mechanism(axes: Any, mech: Mechanism, q: ArrayLike) -> None:
    """Draw a mechanism in one posture (n,): links with their names, joints, and the angles from where q is zero.

    A joint with a motor is filled, a passive one is not.
    """
    shape, posture = skeleton(mech), np.asarray(q, dtype=float)
    drawing = shape.place(shape.poses(posture))
    plane = np.column_stack([shape.right, shape.up])
    _draw_ground(axes, drawing.joints[shape.order[0]] @ plane, 0.05 * shape.reach)
    for way in _ways_slid(shape, drawing):
        axes.plot(*(way @ plane).T, color="0.55", linewidth=1.5, zorder=0)
    for i in shape.order:
        for line in drawing.lines[i]:
            axes.plot(*(line @ plane).T, color="0.55", linewidth=7, solid_capstyle="round", zorder=1)
        turn = _draw_angle(axes, shape, posture, i, plane)
        if drawing.lines[i]:
            _name_link(axes, shape.names[i], drawing.lines[i][0] @ plane, turn)
        x, y = drawing.joints[i] @ plane
        filled = "black" if mech.actuated_mask[shape.ranges[i]].any() else "white"
        axes.plot(x, y, "o", markersize=11, markerfacecolor=filled, markeredgecolor="black", zorder=3)
    _name_directions(axes, shape)


def _draw_ground(axes: Any, at: Array, size: float) -> None:
    """Draw what the base stands on: a line with hatches above its first joint."""
    x, y = at[0], at[1] + 1.6 * size
    axes.plot([x, x], [at[1], y], color="black", linewidth=1.5, zorder=0)
    axes.plot([x - 2.0 * size, x + 2.0 * size], [y, y], color="black", linewidth=1.5)
    for k in range(-4, 4):
        left = x + 0.5 * k * size
        axes.plot([left, left + 0.5 * size], [y, y + 0.6 * size], color="black", linewidth=0.8)


def _name_link(axes: Any, name: str, line: Array, turn: float) -> None:
    """Write a link's name beside its outer half, on the side where the angle is not."""
    along = line[-1] - line[0]
    away = np.array([-along[1], along[0]]) / np.hypot(*along) * (1.0 if turn >= 0.0 else -1.0)
    sides = "left" if away[0] > 0.0 else "right"
    axes.annotate(
        plain(name), line[0] + 0.72 * along, 10.0 * away, textcoords="offset points", ha=sides, va="center", zorder=4
    )


def _draw_angle(axes: Any, shape: Skeleton, q: Array, i: int, plane: Array) -> float:
    """Draw the angle of joint i as an arc from where its link would be at zero, a dashed line; return it."""
    zero = q.copy()
    zero[shape.ranges[i]] = 0.0
    lines = [shape.place(shape.poses(posture)).lines[i] for posture in (zero, q)]
    joint = shape.joints[i]
    if not (joint.dof == 1 and joint.freedoms[0].winds and lines[0]):
        return 0.0
    origin = lines[1][0][0] @ plane
    first, last = ((line[0][-1] - line[0][0]) @ plane for line in lines)
    length, turn = float(np.hypot(*first)), float(np.angle(complex(*last) / complex(*first)))
    along = np.stack([origin, origin + 0.75 * first])
    axes.plot(*along.T, color="black", linewidth=0.9, linestyle="--", zorder=0)
    sweep = np.arctan2(first[1], first[0]) + np.linspace(0.0, turn, 40)
    arc = origin + 0.5 * length * np.column_stack([np.cos(sweep), np.sin(sweep)])
    axes.plot(*arc[:-1].T, color="black", linewidth=0.9)
    axes.annotate("", arc[-1], arc[-3], arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 0.9})
    side = origin + 0.6 * length * np.array([np.cos(sweep[20]), np.sin(sweep[20])])
    axes.text(*side, f"$q_{{{shape.ranges[i].start + 1}}}$", ha="center", va="center")
    return turn
