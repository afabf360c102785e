"""Draws the icons of the blocks for bdedit: black ink on a transparent ground, 250 pixels square.

bdedit looks for ``Icons/<block in lower case>.png`` beside the blocks and shows it at a fifth of its size, inputs left
and outputs right; so lines are thick and little stands in a picture. Run from anywhere::

    python tests/block_icons.py

Each function below draws one icon, of the block that it is named after, on axes from 0 to 10.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle, FancyArrowPatch, Polygon, Rectangle
from signal_icons import CROSSED, CURVES, FORMULAS

import cstormpy.blocks

PIXELS = 250
THICK, THIN = 7.0, 3.5
"""Widths of lines in points; a point is 1.4 pixels."""

Draw = Callable[[Axes], None]
ICONS: dict[str, Draw] = {}


def icon(draw: Draw) -> Draw:
    """Enter a drawing under the name of its function."""
    ICONS[draw.__name__] = draw
    return draw


def line(axes: Axes, points: list[tuple[float, float]], width: float = THICK, dashes: object = "-") -> None:
    """Draw a line through points."""
    x, y = np.transpose(points)
    axes.plot(x, y, linestyle=dashes, color="black", lw=width, solid_capstyle="round", solid_joinstyle="round")


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], width: float = THICK, bend: float = 0.0
) -> None:
    """Draw an arrow; `bend` is the height of its arc over its length."""
    head = f"-|>,head_length={0.9 * width:g},head_width={0.55 * width:g}"
    style = f"arc3,rad={bend:g}"
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle=head, connectionstyle=style, color="black", lw=width, shrinkA=0, shrinkB=0,
            joinstyle="miter", mutation_scale=1.0,
        )
    )  # fmt: skip


def disc(axes: Axes, x: float, y: float, radius: float, filled: bool = True) -> None:
    """Draw a joint: filled, or a ring."""
    face = "black" if filled else "white"
    axes.add_patch(Circle((x, y), radius, facecolor=face, edgecolor="black", lw=THIN + 1, zorder=5))


def formula(axes: Axes, text: str, size: float) -> None:
    """Write a formula in the middle."""
    axes.text(5, 5, f"${text}$", fontsize=size, ha="center", va="center")


def ground(axes: Axes, x: float, y: float) -> None:
    """Draw the support of a joint."""
    axes.add_patch(Polygon([(x, y), (x - 1.3, y - 1.9), (x + 1.3, y - 1.9)], facecolor="black"))
    line(axes, [(x - 2.0, y - 1.9), (x + 2.0, y - 1.9)], THIN)


def cross_axes(axes: Axes, x: float, y: float) -> None:
    """Draw the axes of a graph that cross at (x, y)."""
    line(axes, [(x, 0.6), (x, 9.4)], THIN)
    line(axes, [(0.6, y), (9.4, y)], THIN)


@icon
def hybriddynamics(axes: Axes) -> None:
    """Draw two links; one joint moves freely, a ring, and one is driven, a disc."""
    ground(axes, 2.6, 2.6)
    line(axes, [(2.6, 2.6), (4.6, 7.6), (9.0, 5.6)], 9)
    disc(axes, 2.6, 2.6, 0.95, filled=False)
    disc(axes, 4.6, 7.6, 1.15)


@icon
def jointeffort(axes: Axes) -> None:
    """Draw a link and the torque about its joint, and what else comes out."""
    line(axes, [(3.4, 2.2), (9.2, 2.2)], 9)
    disc(axes, 3.4, 2.2, 1.15)
    arrow(axes, (6.2, 3.6), (0.9, 3.4), THICK, bend=0.7)
    axes.text(7.7, 7.4, r"$\tau\,\ddot{q}$", fontsize=56, ha="center", va="center")


@icon
def inversedynamics(axes: Axes) -> None:
    """Write the torque as a function of the motion."""
    formula(axes, r"\tau(q,\dot{q},\ddot{q})", 47)


@icon
def massmatrix(axes: Axes) -> None:
    """Write the mass matrix."""
    formula(axes, r"M(q)", 74)


@icon
def gravityload(axes: Axes) -> None:
    """Write the load of gravity."""
    formula(axes, r"g(q)", 92)


@icon
def energy(axes: Axes) -> None:
    """Write the sum of the energies."""
    formula(axes, r"T\!+\!V", 70)


@icon
def kinematics(axes: Axes) -> None:
    """Draw two links and the frame at the tip."""
    line(axes, [(1.2, 1.4), (3.4, 5.8), (6.2, 3.2)], 9)
    disc(axes, 1.2, 1.4, 0.85)
    disc(axes, 3.4, 5.8, 0.85)
    arrow(axes, (6.2, 3.2), (9.6, 4.6), THICK - 1)
    arrow(axes, (6.2, 3.2), (4.9, 6.9), THICK - 1)
    axes.text(8.2, 8.2, r"$T$", fontsize=54, ha="center", va="center")


@icon
def ikine(axes: Axes) -> None:
    """Draw what is sought: the joints from the frame at the tip."""
    line(axes, [(1.2, 1.4), (3.4, 5.8), (6.2, 3.2)], THICK - 1, (0, (1.3, 1.0)))
    disc(axes, 1.2, 1.4, 0.85, filled=False)
    disc(axes, 3.4, 5.8, 0.85, filled=False)
    arrow(axes, (6.2, 3.2), (9.6, 4.6), THICK - 1)
    arrow(axes, (6.2, 3.2), (4.9, 6.9), THICK - 1)
    axes.text(8.2, 8.2, r"$q$", fontsize=60, ha="center", va="center")


@icon
def sensitivity(axes: Axes) -> None:
    """Write the derivative."""
    formula(axes, r"\frac{\partial y}{\partial x}", 100)


@icon
def variation(axes: Axes) -> None:
    """Draw two motions that began close to each other, and how far apart they come."""
    x = np.linspace(0.0, 1.0, 60)
    lower = 1.4 + 1.8 * np.sin(3.0 * x)
    upper = lower + 1.3 + 4.6 * x**2
    at = 1.0 + 7.2 * x
    line(axes, list(zip(at, lower, strict=True)), 9)
    line(axes, list(zip(at, upper, strict=True)), THICK - 1, (0, (2.2, 1.6)))
    arrow(axes, (9.3, lower[-1]), (9.3, upper[-1] + 0.6), THICK)
    disc(axes, at[0], lower[0], 0.55)
    disc(axes, at[0], upper[0], 0.55, filled=False)


@icon
def splinetrajectory(axes: Axes) -> None:
    """Draw a spline within its control points."""
    points = np.array([(1.2, 1.9), (2.8, 8.6), (7.0, 1.4), (8.8, 8.1)])
    t = np.linspace(0.0, 1.0, 60)[:, None]
    curve = (1 - t) ** 3 * points[0] + 3 * t * (1 - t) ** 2 * points[1] + 3 * t**2 * (1 - t) * points[2]
    curve = curve + t**3 * points[3]
    line(axes, [(x, y) for x, y in points], THIN - 1, "--")
    line(axes, [(x, y) for x, y in curve], 9)
    for x, y in points:
        disc(axes, x, y, 0.75)


@icon
def fromdata(axes: Axes) -> None:
    """Draw a table and what comes out of it."""
    for row in range(4):
        for column in range(2):
            filled = "black" if row == 3 else "none"
            axes.add_patch(
                Rectangle((0.7 + 2.2 * column, 0.8 + 2.1 * row), 2.2, 2.1, facecolor=filled, edgecolor="black", lw=THIN)
            )
    arrow(axes, (5.4, 5.0), (9.6, 5.0), 8)


@icon
def wrench(axes: Axes) -> None:
    """Draw a force and a moment on a body."""
    axes.add_patch(Polygon([(2.4, 0.9), (7.8, 0.9), (6.9, 4.2), (3.2, 4.6)], facecolor="black", joinstyle="round"))
    arrow(axes, (9.4, 8.9), (6.4, 4.5), THICK)
    arrow(axes, (4.6, 7.0), (0.9, 3.2), THICK, bend=0.55)


@icon
def push(axes: Axes) -> None:
    """Draw a short push: a pulse in time, and the arrow that it makes."""
    line(axes, [(0.7, 1.0), (3.4, 1.0), (3.4, 4.0), (5.6, 4.0), (5.6, 1.0), (9.3, 1.0)], THICK)
    arrow(axes, (0.6, 7.4), (5.6, 7.4), 10)
    axes.add_patch(Rectangle((6.1, 5.7), 3.2, 3.4, facecolor="black"))


@icon
def anglewrap(axes: Axes) -> None:
    """Draw a growing angle that starts again at the bottom."""
    cross_axes(axes, 5.0, 5.0)
    for start in (0.8, 3.6, 6.4):
        line(axes, [(start, 1.8), (start + 2.8, 8.2)], 8)
    for drop in (3.6, 6.4):
        line(axes, [(drop, 8.2), (drop, 1.8)], THIN - 1, ":")


@icon
def jointlimit(axes: Axes) -> None:
    """Draw a link between two stops."""
    pivot = (2.0, 5.0)
    for angle in (-42, 42):
        way = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        line(axes, [tuple(pivot + 1.8 * way), tuple(pivot + 4.6 * way)], THIN, "--")
        line(axes, [tuple(pivot + 4.6 * way), tuple(pivot + 6.6 * way)], 10)
    axes.add_patch(Arc(pivot, 10.6, 10.6, theta1=-34, theta2=34, color="black", lw=THIN))
    line(axes, [pivot, (9.2, 6.2)], 8)
    disc(axes, *pivot, 1.15)


@icon
def effort(axes: Axes) -> None:
    """Write the integral of the squared torque."""
    formula(axes, r"\int\,\tau^2 dt", 58)


@icon
def controller(axes: Axes) -> None:
    """Draw several laws, of which one is switched through."""
    for y in (1.6, 5.0, 8.4):
        line(axes, [(0.5, y), (3.0, y)], THICK)
        disc(axes, 3.2, y, 0.75, filled=y == 8.4)
    line(axes, [(3.2, 8.4), (7.0, 5.0)], 9)
    disc(axes, 7.0, 5.0, 0.75)
    line(axes, [(7.0, 5.0), (9.5, 5.0)], THICK)


@icon
def livescope(axes: Axes) -> None:
    """Draw a screen with two traces."""
    line(axes, [(0.7, 1.2), (9.3, 1.2), (9.3, 8.8), (0.7, 8.8), (0.7, 1.2)], THICK)
    t = np.linspace(1.6, 8.4, 60)
    line(axes, list(zip(t, 5.0 + 2.6 * np.sin(1.7 * t), strict=True)), THICK)
    line(axes, list(zip(t, 5.0 + 1.3 * np.cos(1.1 * t), strict=True)), THIN)


@icon
def livexy(axes: Axes) -> None:
    """Draw a path that winds outwards, in a frame, and where it has come to."""
    line(axes, [(0.7, 1.2), (9.3, 1.2), (9.3, 8.8), (0.7, 8.8), (0.7, 1.2)], THICK)
    angle = np.linspace(0.0, 4.6 * np.pi, 120)
    x, y = 5.0 + 0.23 * angle * np.cos(angle), 5.0 + 0.2 * angle * np.sin(angle)
    line(axes, list(zip(x, y, strict=True)), THIN + 1)
    disc(axes, float(x[-1]), float(y[-1]), 0.6)


@icon
def mechanismview(axes: Axes) -> None:
    """Draw two links that move, in a frame."""
    line(axes, [(0.7, 1.2), (9.3, 1.2), (9.3, 8.8), (0.7, 8.8), (0.7, 1.2)], THICK)
    line(axes, [(3.2, 3.0), (4.6, 6.6), (7.2, 5.4)], 9)
    disc(axes, 3.2, 3.0, 0.8, filled=False)
    disc(axes, 4.6, 6.6, 0.8, filled=False)
    arrow(axes, (8.0, 4.8), (6.4, 2.6), THIN + 1, bend=-0.4)


def curves(axes: Axes, name: str) -> None:
    """Draw the icon of a block of signals: its curves, over crossed axes where it has them, or its formula."""
    if name in FORMULAS:
        formula(axes, *FORMULAS[name])
        return
    if name in CROSSED:
        cross_axes(axes, 5, 5)
    for points in CROSSED.get(name, []) + CURVES.get(name, []):
        line(axes, points)


ICONS.update({name: functools.partial(curves, name=name) for name in (*CROSSED, *CURVES, *FORMULAS)})


def draw_icons(folder: Path) -> list[Path]:
    """Draw all icons into a folder and return their paths."""
    made = []
    for name, draw in ICONS.items():
        with matplotlib.rc_context({"mathtext.fontset": "cm"}):
            figure = Figure(figsize=(2.5, 2.5), dpi=PIXELS / 2.5)
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set(xlim=(0, 10), ylim=(0, 10))
            axes.axis("off")
            draw(axes)
            path = folder / f"{name}.png"
            # no name of the program that drew it, so that the same picture is the same file
            figure.savefig(path, transparent=True, metadata={"Software": None})
            made.append(path)
    return made


if __name__ == "__main__":
    draw_icons(Path(cstormpy.blocks.__path__[0]) / "Icons")
