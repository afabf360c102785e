"""The panes as pictures, where there is neither a window nor a browser."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import FileWriteError
from cstormpy.file_writer import file_path, write_bytes
from cstormpy.linkage.shapes import Solid
from cstormpy.linkage.skeleton import Skeleton
from cstormpy.report.data import bones_of, held_traces, kept_samples, panes_of, samples_of, shared_names
from cstormpy.report.resampling import along_lines
from cstormpy.reporting import dashes, level_if_flat, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_POINTS = 6000
_POSES = 7
"""In so many positions a mechanism is drawn, from faint to clear."""
_NAME_LENGTH = 60
_AXES = ("x [m]", "y [m]", "z [m]")


def figures(out: Any, folder: str | os.PathLike[str]) -> list[Path]:
    """Write a PNG picture of each pane of a run, and return their paths.

    Parameters
    ----------
    out : Result
        Of `Simulation.run`.
    folder : path
        Made if it does not exist. Pictures are named by number and block: ``1-scope.png``.

    Raises
    ------
    FileWriteError
        If a picture cannot be written.
    """
    paths = []
    target = file_path(folder, "folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileWriteError(f"{target}: the folder cannot be made: {error.strerror or error}") from error
    for k, pane in enumerate(panes_of(out), start=1):
        if not len(pane.t):
            continue
        name = re.sub(r"[^\w.-]+", "_", str(pane.name))[:_NAME_LENGTH].strip("._") or pane.kind
        path = target / f"{k}-{name}.png"
        picture = io.BytesIO()  # which Pillow does not write to past us
        _figure(pane).savefig(picture, format="png", dpi=130)
        write_bytes(path, picture.getvalue())
        paths.append(path)
    return paths


def _figure(pane: Any) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    if pane.kind == "mechanism":
        axes = _mechanism(figure, pane)
    else:
        draw_plot(axes := figure.add_subplot(), pane)
    if pane.kind == "xy":
        axes.plot(*np.asarray(pane.y, dtype=float)[-1, :2, None], "o", markersize=5)
    axes.set_title(plain(pane.title or pane.name))
    return figure


class Trace(NamedTuple):
    """A line of a plot: its samples' times and coordinates, and whether each value is held until the next one."""

    t: Array
    x: Array
    y: Array
    held: bool


def traces_of(pane: Any) -> list[Trace]:
    """Return the lines of a scope or of an XY plot, NaN where they are broken, with as many points as can be seen."""
    t, y = samples_of(pane)
    if pane.kind == "xy":
        kept = kept_samples(t, y[:, :2], _POINTS)
        return [Trace(t[kept], y[kept, 0], y[kept, 1], held=False)]
    held, found = held_traces(pane), []
    for k, values in enumerate(y.T):
        kept = kept_samples(t, values[:, None], _POINTS)
        found.append(Trace(t[kept], t[kept], values[kept], k < len(held) and held[k]))
    return found


def draw_plot(axes: Axes, pane: Any) -> list[tuple[Trace, Line2D]]:
    """Draw all samples of a scope or of an XY plot, and return its traces with their lines."""
    drawn = []
    for k, trace in enumerate(traces_of(pane)):
        style = "steps-post" if trace.held else "default"
        (line,) = axes.plot(trace.x, trace.y, dashes(k), linewidth=1.2, drawstyle=style, label=_label(pane, k))
        alone = _alone(np.isfinite(trace.x) & np.isfinite(trace.y))
        axes.plot(trace.x[alone], trace.y[alone], "o", markersize=4, color=line.get_color())
        drawn.append((trace, line))
    (_finish_xy if pane.kind == "xy" else _finish_scope)(axes, pane)
    return drawn


def _label(pane: Any, k: int) -> str:
    return plain(pane.labels[k] if k < len(pane.labels) else k).lstrip("_") or " "


def _finish_scope(axes: Axes, pane: Any) -> None:
    y = np.asarray(pane.y, dtype=float).reshape(len(pane.t), -1)
    axes.set_xlabel("time [s]")
    level_if_flat(axes)
    if pane.unit:
        axes.set_ylabel(plain(f"[{pane.unit}]"))
    _finish(axes, pane)
    ticks = shared_names(pane)
    if ticks:
        axes.set_yticks(range(len(ticks)), [plain(name) for name in ticks])
    if ticks and "scale" not in pane.options and np.isfinite(y).any():
        axes.set_ylim(np.nanmin(y) - 0.5, np.nanmax(y) + 0.5)
    if pane.labels and 0 < y.shape[1] <= 16:
        axes.legend(loc="best", fontsize="small")
    axes.margins(x=0.0)


def _finish_xy(axes: Axes, pane: Any) -> None:
    axes.set_xlabel(plain(pane.labels[0] if pane.labels else "x"))
    axes.set_ylabel(plain(pane.labels[1] if len(pane.labels) > 1 else "y"))
    if pane.options.get("equal"):
        axes.set_aspect("equal", "datalim")
    _finish(axes, pane)


def _alone(present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which samples have no neighbour that a line could be drawn to."""
    before, after = np.append(False, present[:-1]), np.append(present[1:], False)
    return present & ~before & ~after


def _finish(axes: Axes, pane: Any) -> None:
    axes.grid(True, alpha=0.3)
    limits = [float(v) for v in np.asarray(pane.options.get("scale", []), dtype=float).reshape(-1)]
    if len(limits) >= 2:
        axes.set_ylim(*limits[-2:])
    if len(limits) == 4:
        axes.set_xlim(*limits[:2])


def _mechanism(figure: Figure, pane: Any) -> Axes:
    """Draw the mechanism in some positions over the run, and the ways of its ends."""
    bones = bones_of(pane)
    t, q = np.asarray(pane.t, dtype=float), np.asarray(pane.y, dtype=float).reshape(len(pane.t), -1)
    at = np.linspace(t[0], t[-1], 400)
    moved = along_lines(t, q, at)
    tips = bones.place(bones.poses(moved)).tips
    axes: Any = figure.add_subplot(projection=projection(bones))
    for j in range(tips.shape[1]):
        axes.plot(*seen(bones, tips[:, j]), color=f"C{j + 1}", linewidth=0.9, alpha=0.6)
    for k, row in enumerate(np.linspace(0, len(at) - 1, _POSES).astype(int)):
        draw_pose(axes, bones, moved[row], alpha=1.0 if k == _POSES - 1 else 0.12 + 0.3 * k / _POSES)
    if bones.planar:
        _name_plane(axes, bones)
    else:
        low, high = bones.extent(moved)
        _look_into_space(axes, bones, (low + high) / 2, max(float((high - low).max()) / 2, 1e-9))
    return axes


def projection(bones: Skeleton) -> str | None:
    """Return the projection of axes in which a mechanism is drawn, by matplotlib's name: in a plane or in space."""
    return None if bones.planar else "3d"


def look_at(axes: Any, bones: Skeleton, middle: Any, half: float) -> None:
    """Show what is around a point up to a distance, in axes in which mechanisms are drawn."""
    if not bones.planar:
        _look_into_space(axes, bones, middle, half)
        return
    _name_plane(axes, bones)
    axes.set_aspect("equal", "box")
    for limit, axis in ((axes.set_xlim, bones.right), (axes.set_ylim, bones.up)):
        limit(float(middle @ axis) - half, float(middle @ axis) + half)


def _name_plane(axes: Any, bones: Skeleton) -> None:
    axes.set_aspect("equal", "datalim")
    axes.grid(True, alpha=0.3)
    for setter, axis in ((axes.set_xlabel, bones.right), (axes.set_ylabel, bones.up)):
        setter(_AXES[int(np.abs(axis).argmax())] if np.abs(axis).max() == 1.0 else "[m]")


def _look_into_space(axes: Any, bones: Skeleton, middle: Any, half: float) -> None:
    """Show a cube about a point from above: where an axis points down, it and one beside it run the other way."""
    vertical = int(np.abs(bones.up).argmax())
    turned = (vertical, (vertical + 2) % 3) if bones.up[vertical] < 0.0 else ()
    for k, kind in enumerate("xyz"):
        far = -half if k in turned else half
        getattr(axes, f"set_{kind}lim")(middle[k] - far, middle[k] + far)
        getattr(axes, f"set_{kind}label")(_AXES[k])
    axes.locator_params(nbins=5)
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=20, azim=-55, vertical_axis="xyz"[vertical])


def seen(bones: Skeleton, points: Any) -> tuple[Any, ...]:
    """Return the coordinates to plot of points (k, 3)."""
    return (points @ bones.right, points @ bones.up) if bones.planar else tuple(points.T)


def draw_pose(axes: Any, bones: Skeleton, q: Any, alpha: float = 1.0) -> None:
    """Draw one position of a mechanism."""
    drawing = bones.place(bones.poses(q))
    for line in drawing.base:
        axes.plot(*seen(bones, line), color="0.5", linewidth=5, alpha=alpha, solid_capstyle="round")
    for i, joint in enumerate(bones.joints):
        if joint.symbol.rail:
            way = np.stack([drawing.anchors[i], drawing.joints[i]])
            axes.plot(*seen(bones, way), color="0.5", linewidth=1.5, alpha=alpha)
    for solid in (solid for solids in drawing.solids for solid in solids):
        _solid(axes, bones, solid, alpha)
    plain = [lines for lines, solids in zip(drawing.lines, drawing.solids, strict=True) if not solids]
    for line in (line for polylines in plain for line in polylines):
        axes.plot(*seen(bones, line), color="C0", linewidth=3.5, alpha=alpha, solid_capstyle="round")
    for i, joint in enumerate(bones.joints):
        if joint.symbol.mark:
            marker = "s" if joint.symbol.mark == "slider" else "o"
            axes.plot(*seen(bones, drawing.joints[i : i + 1]), marker, color="k", markersize=4, alpha=alpha)


def _solid(axes: Any, bones: Skeleton, solid: Solid, alpha: float) -> None:
    """Draw the faces of a shape, in a plane those that are turned to the viewer."""
    colour = "C0" if solid.colour is None else tuple(solid.colour.tolist())
    faces = [solid.corners[list(face)] for face in solid.faces]
    if bones.planar:
        towards = solid.normals @ np.cross(bones.right, bones.up)
        for face in (face for face, way in zip(faces, towards, strict=True) if way > 0):
            axes.fill(*seen(bones, face), facecolor=colour, edgecolor=colour, linewidth=0.5, alpha=alpha)
        return
    from matplotlib.colors import to_rgb
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    axes.add_collection3d(Poly3DCollection(faces, facecolors=[to_rgb(colour)], shade=True, alpha=alpha))
