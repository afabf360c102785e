"""A run as an animation in a file: its mechanism in motion beside its scopes, drawn as its figures are.

A frame is a picture of what does not move, kept once, with the mechanism and the traces up to its time drawn over it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, describe
from cstormpy.errors import DiagramError, FileWriteError, InvalidType, InvalidValue, unknown_name
from cstormpy.file_writer import atomic_file, file_path, read_bytes, write_bytes
from cstormpy.report.data import Sight, bones_of, motion_of, moving_plants, panes_of
from cstormpy.report.figures import Trace, draw_plot, draw_pose, look_at, plain, projection, seen, traces_of
from cstormpy.report.resampling import resampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 100
_LEAST, _MOST = 128, 4096
"""Pixels of a side."""
_LONGEST = 20.0
"""Seconds that an animation takes at most, unless it is told how fast."""
_FRAMES = 3000
"""No more frames than these are written."""
_PLOTS = 4
"""So many scopes are drawn beside a mechanism, unless they are named."""
_REST = 1.0
"""Seconds for which the last frame stands before a picture that repeats itself begins again."""
_TRAIL = 1.0
"""Seconds of the ways of a mechanism's ends, unless its block says others."""
_BETWEEN, _BETWEEN_3D = 0.02, 0.14
"""Free space between a mechanism and the plots, as a part of the width of one; in space its labels stand in it."""
_FINE = 4
"""So many points of these ways there are to a frame."""
_MARGIN = 0.06
"""Free space around a mechanism, as a part of what it reaches."""
_NAMED = 9
"""Traces of a plot, at most, that a legend names."""
_COLOURS = 255
"""Of a GIF, which has room for one more, of what has not changed since the frame before."""
_FAINT = 0.2
"""Opacity of what a trace has not reached yet."""
_FFMPEG = ["ffmpeg", "-nostdin", "-loglevel", "error"]

Frame = NDArray[np.uint8]


def animation_path(path: str | os.PathLike[str]) -> Path:
    """Return where an animation goes, or refuse what is not the name of one."""
    target = file_path(path, "animation")
    if target.suffix.lower() not in _WRITERS:
        raise InvalidValue(f"animation: {target}: expected a name that ends in .gif, .webp or .mp4")
    if target.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        raise InvalidValue(
            f"animation: {target}: is written by the program ffmpeg, which is not on the path; install it, or choose "
            "the name of a .gif or .webp"
        )
    return target


def animate(
    path: str | os.PathLike[str],
    bd: Any,
    out: Any,
    *,
    panes: Sequence[Any] | None = None,
    pace: float | str = "auto",
    fps: float = 25.0,
    size: Sequence[int] = (960, 540),
) -> Path:
    """Write the animation of a run; see `Simulation.animate`.

    Parameters
    ----------
    path : path
        The file, which is replaced whole or stays as it was.
    bd : BlockDiagram
        The diagram, as it was run.
    out : Result
        Of `Simulation.run`.
    panes, pace, fps, size
        See `Simulation.animate`.
    """
    target = animation_path(path)
    fps = positive(fps, "animate: fps")
    if target.suffix.lower() == ".gif":  # whose frames last whole hundredths of a second, two at least
        fps = 100 / max(2, round(100 / fps))
    shown = _chosen(list(panes_of(out)) or moving_plants(bd, out), panes)
    start, end = (float(side(np.asarray(out.t))) for side in (np.min, np.max))
    pace = max(1.0, (end - start) / _LONGEST) if pace == "auto" else positive(pace, "animate: pace")
    frames = (end - start) / pace * fps + 1.0
    if frames > _FRAMES:
        raise InvalidValue(
            f"animate: {end - start:g} s at a pace of {pace:g} and {fps:g} frames a second are {frames:.6g} frames, "
            f"more than {_FRAMES}; choose a faster pace"
        )
    times = np.asarray(start + pace / fps * np.arange(int(frames + 1e-9)))
    film = _Film(shown, times, _checked_size(size), pace)
    _WRITERS[target.suffix.lower()](target, film, fps)
    return target


def _checked_size(size: Any) -> tuple[int, int]:
    try:
        width, height = size
    except (TypeError, ValueError):
        raise InvalidType(f"animate: size: expected width and height in pixels, got {describe(size)}") from None
    return whole_number(width, "animate: width", _LEAST, _MOST), whole_number(height, "animate: height", _LEAST, _MOST)


def _chosen(panes: list[Any], names: Sequence[Any] | None) -> list[Any]:
    """Return the panes with samples that are to be drawn: those named, or all mechanisms and the first scopes."""
    drawn = [pane for pane in panes if len(pane.t)]
    if not drawn:
        raise DiagramError(
            "animate: there is nothing to draw in this diagram; add bd.MECHANISMVIEW(mech), or a bd.LIVESCOPE()"
        )
    if names is None:
        plots = [pane for pane in drawn if pane.kind != "mechanism"][:_PLOTS]
        return [pane for pane in drawn if pane.kind == "mechanism" or any(pane is plot for plot in plots)]
    if isinstance(names, str) or not isinstance(names, Sequence) or not len(names):
        raise InvalidType(f"animate: panes: expected a list of blocks or of their names, got {describe(names)}")
    by_name = {str(pane.title): pane for pane in drawn if pane.title} | {str(pane.name): pane for pane in drawn}
    found = []
    for name in (str(getattr(each, "name", each)) for each in names):
        if name not in by_name:
            raise unknown_name("animate: pane", name, by_name)
        found.append(by_name[name])
    return found


class _Film:
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

        self.times = times
        figure = Figure(figsize=(size[0] / _DPI, size[1] / _DPI), dpi=_DPI, layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)
        self._clock = figure.text(0.008, 0.985, "", va="top", fontsize=11, family="monospace", animated=True)
        self._suffix = "" if pace == 1.0 else f"   x {pace:.3g}"
        self._moving: list[_Moving | _Growing] = []
        for cell, pane in zip(_cells(figure, panes), panes, strict=True):
            self._moving.append((_Moving if pane.kind == "mechanism" else _Growing)(figure, cell, pane, times))
        _share_time([each.axes for each in self._moving if isinstance(each, _Growing) and each.over_time])
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for each in self._moving:
            each.begin()
        canvas.draw()
        self._canvas, self._still = canvas, canvas.copy_from_bbox(figure.bbox)

    def frame(self, k: int) -> Frame:
        """Return the picture (height, width, 3) of a frame."""
        self._canvas.restore_region(self._still)
        renderer = self._canvas.get_renderer()
        self._clock.set_text(f"t = {self.times[k]:.2f} s{self._suffix}")
        for artist in (self._clock, *(artist for each in self._moving for artist in each.at(k))):
            artist.draw(renderer)
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
        fine = np.linspace(times[0], times[-1], _FINE * (len(times) - 1) + 1)
        t, q = motion_of(pane, self._bones)
        q = resampled(t, q, np.clip(fine, t[0], t[-1]))
        drawing = self._bones.place(self._bones.poses(q))
        self._q, self._tips = q[::_FINE], drawing.tips
        trail = (pane.options or {}).get("trail", True)
        seconds = _TRAIL if trail is True else float(trail or 0.0)
        self._behind = int(min(seconds / (fine[1] - fine[0]), len(fine))) if len(fine) > 1 else 0
        sight = Sight.of(drawing)
        still = np.tile((sight.low + sight.high) / 2, (len(times), 1))
        self._middles = sight.middles[::_FINE] if sight.follows else still
        across = sight.side if sight.follows else float((sight.high - sight.low).max())
        self._half = (0.5 + _MARGIN) * max(across, 1e-9)
        self._axes = figure.add_subplot(cell, projection=projection(self._bones))
        self._axes.set_title(plain(pane.title or pane.name))
        self._axes.autoscale(False)
        if not self._bones.planar:
            self._axes.locator_params(nbins=5)
        look_at(self._axes, self._bones, self._middles[0], self._half)
        self._whole = sight.follows or not self._bones.planar  # in space the axes stand among what is drawn in them

    def begin(self) -> None:
        """Leave what moves out of the picture of what does not."""
        self._axes.set_animated(self._whole)

    def at(self, k: int) -> list[Any]:
        """Return what to draw of a frame."""
        for artist in self._drawn():
            artist.remove()
        now = _FINE * k
        behind = slice(max(0, now - self._behind), now + 1)
        for j in range(self._tips.shape[1] if self._behind else 0):
            self._axes.plot(*seen(self._bones, self._tips[behind, j]), color=f"C{j + 1}", linewidth=1.0)
        draw_pose(self._axes, self._bones, self._q[k])
        if not self._whole:
            return self._drawn()
        look_at(self._axes, self._bones, self._middles[k], self._half)
        return [self._axes]

    def _drawn(self) -> list[Any]:
        return [*self._axes.patches, *self._axes.collections, *self._axes.lines]


class _Growing:
    """A scope, or an XY plot, whose traces grow over what they will be."""

    def __init__(self, figure: Any, cell: Any, pane: Any, times: Array) -> None:
        self.axes = figure.add_subplot(cell)
        self.over_time = pane.kind == "scope"
        lines = draw_plot(self.axes, pane)
        self.axes.set_title(plain(pane.title or pane.name), fontsize="medium")
        self._times, self._traces = times, traces_of(pane)
        self._lines, self._dots = [], []
        self._legend = _legend(self.axes, len(lines))
        for line in lines:
            line.set_alpha(_FAINT)
            look = {"color": line.get_color(), "animated": True}
            self._lines += self.axes.plot([], [], linewidth=1.4, drawstyle=line.get_drawstyle(), **look)
            self._dots += self.axes.plot([], [], "o", markersize=5, **look)

    def begin(self) -> None:
        """Leave the legend out of the picture of what does not move: it stands before the traces."""
        for legend in self._legend:
            legend.set_animated(True)

    def at(self, k: int) -> list[Any]:
        """Return what to draw of a frame."""
        for trace, line, dot in zip(self._traces, self._lines, self._dots, strict=True):
            x, y = _until(trace, float(self._times[k]))
            line.set_data(x, y)
            dot.set_data(x[-1:], y[-1:])
        return [*self._lines, *self._dots, *self._legend]


def _legend(axes: Axes, traces: int) -> list[Any]:
    """Return the legend of a plot, which takes no more room than a low one has; none of many traces."""
    if (legend := axes.get_legend()) is not None:
        legend.remove()
    if legend is None or traces > _NAMED:
        return []
    legend = axes.legend(loc="best", fontsize="small", ncols=-(-traces // 3))
    legend.set_in_layout(False)
    return [legend]


def _until(trace: Trace, now: float) -> tuple[Array, Array]:
    """Return the points of a trace up to a time, and where it is then."""
    n = int(np.searchsorted(trace.t, now, side="right"))
    if not 0 < n < len(trace.t):
        return trace.x[:n], trace.y[:n]
    share = (now - trace.t[n - 1]) / (trace.t[n] - trace.t[n - 1])
    x, y = (side[n - 1] + share * (side[n] - side[n - 1]) for side in (trace.x, trace.y))
    return np.append(trace.x[:n], x), np.append(trace.y[:n], trace.y[n - 1] if trace.held else y)


# ---------------------------------------------------------------- files


def _write_gif(target: Path, film: _Film, fps: float) -> None:
    """Write pictures of few colours, which are those of three of them."""
    from PIL import Image

    last = len(film.times) - 1
    several = np.concatenate([film.frame(k) for k in (0, last // 2, last)])
    palette = Image.fromarray(several).quantize(_COLOURS)
    pictures = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in film.frames())
    _save(target, pictures, len(film.times), fps, format="GIF", optimize=True)


def _write_webp(target: Path, film: _Film, fps: float) -> None:
    from PIL import Image

    pictures = (Image.fromarray(frame) for frame in film.frames())
    _save(target, pictures, len(film.times), fps, format="WEBP", quality=80, method=2)


def _save(target: Path, pictures: Iterator[Any], number: int, fps: float, **options: Any) -> None:
    """Write pictures that repeat themselves."""
    times = [*np.diff(np.round(1000 / fps * np.arange(number))).astype(int).tolist(), int(1000 * _REST)]
    first = next(pictures)
    with atomic_file(target) as file:
        first.save(file, save_all=True, append_images=pictures, duration=times, loop=0, **options)


def _write_mp4(target: Path, film: _Film, fps: float) -> None:
    """Have ffmpeg write it, to a folder of its own."""
    height, width = film.frame(0).shape[:2]
    told = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    even = ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    with tempfile.TemporaryDirectory() as folder:
        draft, said = Path(folder, "animation.mp4"), Path(folder, "errors")
        command = [*_FFMPEG, *told, *even, str(draft)]
        with open(said, "wb") as errors, subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors) as ffmpeg:
            assert ffmpeg.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # of which it says why
                for frame in film.frames():
                    ffmpeg.stdin.write(frame.tobytes())
        if ffmpeg.returncode:
            why = said.read_text(errors="replace").strip().splitlines() or [f"it returned {ffmpeg.returncode}"]
            raise FileWriteError(f"{target}: ffmpeg cannot write it: {why[0]}")
        write_bytes(target, read_bytes(draft))


_WRITERS = {".gif": _write_gif, ".webp": _write_webp, ".mp4": _write_mp4}
