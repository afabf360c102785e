"""The frames of an animation: a mechanism in motion beside scopes whose traces grow, drawn as the figures of a run are.

A frame is a picture of what does not move, kept once, with the mechanism and the traces up to its time drawn over it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.report.data import Sight, bones_of, motion_of, trail_of
from cstormpy.report.figures import Trace, draw_plot, draw_pose, look_at, projection, seen
from cstormpy.report.resampling import resampled
from cstormpy.reporting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 100
_CLOCK = 22
"""Pixels at the top for the time."""
_BETWEEN, _BETWEEN_3D = 0.02, 0.14
"""Free space between a mechanism and the plots, as a part of the width of one; in space its labels stand in it."""
_FINE = 4
"""So many points of these ways there are to a frame."""
_MARGIN = 0.06
"""Free space around a mechanism, as a part of what it reaches."""
_NAMED = 9
"""Traces of a plot, at most, that a legend names."""
_FAINT = 0.2
"""Opacity of what a trace has not reached yet."""

Frame = NDArray[np.uint8]


class Film:
    """The frames of an animation, which are drawn one after the other.

    Parameters
    ----------
    panes : list
        What is drawn.
    times : ndarray (F,)
        Of the frames [s].
    size : (int, int)
        Pixels.
    pace : float
        Times real time.
    """

    def __init__(self, panes: list[Any], times: Array, size: tuple[int, int], pace: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        self.times = times
        layout = ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, 1.0 - _CLOCK / size[1]))
        figure = Figure(figsize=(size[0] / _DPI, size[1] / _DPI), dpi=_DPI, layout=layout)
        canvas: Any = FigureCanvasAgg(figure)
        self._clock = figure.text(0.008, 0.985, "", va="top", fontsize=11, family="monospace", animated=True)
        self._suffix = "" if pace == 1.0 else f"   x {pace:.3g}"
        self._moving: list[_Moving | _Growing] = []
        for cell, pane in zip(_cells(figure, panes), panes, strict=True):
            self._moving.append((_Moving if pane.kind == "mechanism" else _Growing)(figure, cell, pane, times))
        _share_time([each.axes for each in self._moving if isinstance(each, _Growing) and each.over_time])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            figure.draw_without_rendering()
        if any("constrained_layout" in str(each.message) for each in told):
            raise InvalidValue(
                f"animate: {size[0]} x {size[1]} pixels are too few for {len(panes)} panes; choose more, or fewer panes"
            )
        figure.set_layout_engine("none")
        for each in self._moving:
            each.axes.set_animated(each.follows)
        canvas.draw()
        self._canvas, self._still = canvas, canvas.copy_from_bbox(figure.bbox)
        for each in self._moving:
            if each.in_space and not each.follows:  # of which mplot3d draws the axes behind all that is in them
                _hide_still_parts(each.axes)
        legends = [axes.get_legend() for axes in figure.axes]
        self._legends = [canvas.copy_from_bbox(each.get_window_extent()) for each in legends if each is not None]

    def frame(self, k: int) -> Frame:
        """Return the picture (height, width, 3) of a frame."""
        self._canvas.restore_region(self._still)
        renderer = self._canvas.get_renderer()
        self._clock.set_text(f"t = {self.times[k]:.2f} s{self._suffix}")
        for artist in (self._clock, *(artist for each in self._moving for artist in each.at(k))):
            artist.draw(renderer)
        for legend in self._legends:  # which stand before the traces
            self._canvas.restore_region(legend)
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def frames(self) -> Iterator[Frame]:
        """Yield all pictures."""
        return map(self.frame, range(len(self.times)))


def _cells(figure: Any, panes: list[Any]) -> list[Any]:
    """Return a place in the figure for each pane: mechanisms on the left, plots below one another on the right."""
    moving = [pane.kind == "mechanism" for pane in panes]
    mechanisms, plots = moving.count(True), moving.count(False)
    if mechanisms and plots:
        flat = all(bones_of(pane).planar for pane in panes if pane.kind == "mechanism")
        left, _, right = figure.add_gridspec(1, 3, width_ratios=[1, _BETWEEN if flat else _BETWEEN_3D, 1])
        cells = {True: iter(left.subgridspec(mechanisms, 1)), False: iter(right.subgridspec(plots, 1))}
    else:
        cells = dict.fromkeys((True, False), iter(figure.add_gridspec(plots or 1, mechanisms or 1)))
    return [next(cells[kind]) for kind in moving]


def _share_time(column: list[Any]) -> None:
    """Write times only below the last of scopes that stand below one another."""
    for axes in column[:-1]:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)


class _Moving:
    """A mechanism, with the ways of its ends behind it: on axes that hold still, or go along with one that goes far."""

    def __init__(self, figure: Any, cell: Any, pane: Any, times: Array) -> None:
        self._bones = bones_of(pane)
        count = len(times)
        fine = np.interp(np.arange(_FINE * (count - 1) + 1) / _FINE, np.arange(count), times)
        t, q = motion_of(pane, self._bones)
        q = resampled(t, q, np.clip(fine, t[0], t[-1]))
        drawing = self._bones.place(self._bones.poses(q))
        self._q, self._tips = q[::_FINE], drawing.tips
        self._behind = int(min(trail_of(pane.options) / (fine[1] - fine[0]), len(fine))) if len(fine) > 1 else 0
        sight = Sight.of(drawing)
        still = np.tile((sight.low + sight.high) / 2, (len(times), 1))
        self._middles = sight.middles[::_FINE] if sight.follows else still
        across = sight.side if sight.follows else float((sight.high - sight.low).max())
        self._half = (0.5 + _MARGIN) * max(across, 1e-9)
        self.axes = figure.add_subplot(cell, projection=projection(self._bones))
        self.axes.set_title(plain(pane.title or pane.name))
        self.axes.autoscale(False)
        look_at(self.axes, self._bones, self._middles[0], self._half)
        #: Whether the axes go along; in space they sort what is drawn in them by how far away it is.
        self.follows, self.in_space = sight.follows, not self._bones.planar

    def at(self, k: int) -> list[Any]:
        """Return what to draw of a frame."""
        for artist in self._drawn():
            artist.remove()
        now = _FINE * k
        behind = slice(max(0, now - self._behind), now + 1)
        for j in range(self._tips.shape[1] if self._behind else 0):
            self.axes.plot(*seen(self._bones, self._tips[behind, j]), color=f"C{j + 1}", linewidth=1.0)
        draw_pose(self.axes, self._bones, self._q[k])
        if self.follows:
            look_at(self.axes, self._bones, self._middles[k], self._half)
        return [self.axes] if self.follows or self.in_space else self._drawn()

    def _drawn(self) -> list[Any]:
        return [*self.axes.patches, *self.axes.collections, *self.axes.lines]


class _Growing:
    """A scope, or an XY plot, whose traces grow over what they will be."""

    def __init__(self, figure: Any, cell: Any, pane: Any, times: Array) -> None:
        self.axes = figure.add_subplot(cell)
        self.follows, self.in_space, self.over_time = False, False, pane.kind == "scope"
        drawn = draw_plot(self.axes, pane)
        self.axes.set_title(plain(pane.title or pane.name), fontsize="medium")
        self._times, self._traces = times, [trace for trace, _ in drawn]
        self._lines, self._dots = [], []
        _fit_legend(self.axes, len(drawn))
        for _, line in drawn:
            line.set_alpha(_FAINT)
            look = {"color": line.get_color(), "animated": True}
            style = {"linestyle": line.get_linestyle(), "drawstyle": line.get_drawstyle()}
            self._lines += self.axes.plot([], [], linewidth=1.4, **style, **look)
            self._dots += self.axes.plot([], [], "o", markersize=5, **look)

    def at(self, k: int) -> list[Any]:
        """Return what to draw of a frame."""
        for trace, line, dot in zip(self._traces, self._lines, self._dots, strict=True):
            x, y = _until(trace, float(self._times[k]))
            line.set_data(x, y)
            dot.set_data(x[-1:], y[-1:])
        return [*self._lines, *self._dots]


def _hide_still_parts(axes: Any) -> None:
    """Leave of axes in space what is drawn in them, as the rest has been drawn."""
    axes.set_axis_off()
    axes.patch.set_visible(False)
    axes.title.set_visible(False)


def _fit_legend(axes: Axes, traces: int) -> None:
    """Let the legend of a plot take no more room than a low one has; one of many traces has none."""
    if (legend := axes.get_legend()) is not None:
        legend.remove()
        if traces <= _NAMED:
            axes.legend(loc="best", fontsize="small", ncols=-(-traces // 3)).set_in_layout(False)


def _until(trace: Trace, now: float) -> tuple[Array, Array]:
    """Return the points of a trace up to a time, and where it is then."""
    n = int(np.searchsorted(trace.t, now, side="right"))
    if not 0 < n < len(trace.t):
        return trace.x[:n], trace.y[:n]
    share = (now - trace.t[n - 1]) / (trace.t[n] - trace.t[n - 1])
    x, y = (side[n - 1] + share * (side[n] - side[n - 1]) for side in (trace.x, trace.y))
    return np.append(trace.x[:n], x), np.append(trace.y[:n], trace.y[n - 1] if trace.held else y)
