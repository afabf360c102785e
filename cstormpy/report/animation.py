"""A run, or a motion, as an animation in a file: GIF and WebP by Pillow, which matplotlib brings, MP4 by ffmpeg."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import option, positive, whole_number
from cstormpy.arrays import describe, real_array
from cstormpy.checks import nonnegative
from cstormpy.errors import DiagramError, FileWriteError, InvalidType, InvalidValue
from cstormpy.file_writer import atomic_file, file_path, read_bytes, write_bytes
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.report.data import TRAIL, shown_panes
from cstormpy.report.film import Film

__all__ = ["animate", "animate_run", "animation_path"]

_LEAST, _MOST = 128, 4096
"""Pixels of a side."""
_LONGEST = 20.0
"""Seconds that an animation takes at most, unless it is told how fast."""
_SLOWEST, _FASTEST = 0.1, 100
"""Frames a second."""
_FRAMES = 3000
"""No more frames than these are written."""
_PLOTS = 4
"""So many scopes are drawn beside a mechanism, unless they are named."""
_REST = 1.0
"""Seconds for which the last frame stands before a picture that repeats itself begins again."""
_COLOURS = 255
"""Of a GIF, which has room for one more, of what has not changed since the frame before."""
_FFMPEG = ["ffmpeg", "-nostdin", "-loglevel", "error"]


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
    mech: Mechanism | str | os.PathLike[str],
    t: ArrayLike,
    q: ArrayLike,
    plots: Mapping[str, ArrayLike] | None = None,
    *,
    trail: float = TRAIL,
    title: str = "",
    pace: float | str = "auto",
    fps: float = 25.0,
    size: Sequence[int] = (960, 540),
) -> Path:
    """Write an animation of a motion to a file: a mechanism, and beside it whatever else goes over the same time.

    Parameters
    ----------
    path : path
        A name that ends in .gif, .webp or .mp4; the last is written by the program ffmpeg, if that is there.
    mech : Mechanism, str or path
        Or the name of a ready one, or the file of one.
    t : array_like, (N,)
        Times, which increase [s]; two samples of one time are both sides of a jump, as a run has them at an event.
    q : array_like, (N, n)
        Positions of its joints.
    plots : mapping of str to array_like (N,) or (N, k), optional
        Plots by what stands above them. Columns are named by the mechanism's coordinates if there are as many.
    trail : float
        Seconds of the motion for which the ways of the ends of links are seen.
    title : str
        What stands above the mechanism.
    pace, fps, size
        See `Simulation.animate`, which does the same for a run.

    Examples
    --------
    An optimal motion: ``cs.animate("swing.gif", found.mechanism, found.samples.t, found.samples.q,
    {"Torque [N m]": found.samples.tau})``.
    """
    target = animation_path(path)
    mech = as_mechanism(mech)
    times = real_array(t, "animate: t", ("N",))
    if not len(times) or (np.diff(times) < 0.0).any():
        raise InvalidValue("animate: t: expected times that increase")
    if plots is not None and not isinstance(plots, Mapping):
        raise InvalidType(f"animate: plots: expected a mapping of titles to arrays, got {describe(plots)}")
    common = {"t": times, "unit": "", "held": None}
    y = real_array(q, "animate: q", (len(times), mech.n))
    view = {"kind": "mechanism", "labels": list(mech.names), "mechanism": mech}
    view["options"] = {"trail": nonnegative(trail, "animate: trail")}
    panes = [SimpleNamespace(name="mechanism", title=title, y=y, **view, **common)]
    for name, values in (plots or {}).items():
        y = real_array(values, f"animate: plots: {name}", (len(times),), (len(times), "k"))
        labels: list[str] = []
        if y.ndim == 2:
            labels = list(mech.names) if y.shape[1] == mech.n else [str(k) for k in range(y.shape[1])]
        panes.append(SimpleNamespace(name=name, title=name, kind="scope", y=y, labels=labels, options={}, **common))
    return _write(target, panes, times, pace, fps, size)


def animate_run(
    path: str | os.PathLike[str],
    bd: Any,
    out: Any,
    *,
    panes: Sequence[Any] | None = None,
    pace: float | str = "auto",
    fps: float = 25.0,
    size: Sequence[int] = (960, 540),
) -> Path:
    """Write the animation of a run of a diagram; see `Simulation.animate`."""
    return _write(animation_path(path), _chosen(shown_panes(bd, out), panes), out.t, pace, fps, size)


def _write(target: Path, panes: list[Any], t: ArrayLike, pace: Any, fps: Any, size: Any) -> Path:
    """Write panes that go over the same time, the file as a whole or not at all."""
    fps = positive(fps, "animate: fps")
    if not _SLOWEST <= fps <= _FASTEST:
        raise InvalidValue(f"animate: fps: expected {_SLOWEST} to {_FASTEST} frames a second, got {fps:g}")
    if target.suffix.lower() == ".gif":  # whose frames last whole hundredths of a second, two at least
        fps = 100 / max(2, round(100 / fps))
    start, end = float(np.min(t)), float(np.max(t))
    pace = max(1.0, (end - start) / _LONGEST) if pace == "auto" else positive(pace, "animate: pace")
    frames = (end - start) / pace * fps + 1.0
    if frames > _FRAMES:
        raise InvalidValue(
            f"animate: {end - start:g} s at a pace of {pace:g} and {fps:g} frames a second are {frames:.6g} frames, "
            f"more than {_FRAMES}; choose a faster pace"
        )
    times = start + pace / fps * np.arange(int(frames + 1e-9))
    if end - times[-1] > 1e-6 * (end - start):  # the run ends between two frames
        times = np.append(times, end)
    _WRITERS[target.suffix.lower()](target, Film(panes, times, _checked_size(size), pace), fps)
    return target


def _checked_size(size: Any) -> tuple[int, int]:
    try:
        width, height = size
    except (TypeError, ValueError):
        raise InvalidType(f"animate: size: expected width and height in pixels, got {describe(size)}") from None
    return whole_number(width, "animate: width", _LEAST, _MOST), whole_number(height, "animate: height", _LEAST, _MOST)


def _chosen(panes: list[Any], names: Sequence[Any] | None) -> list[Any]:
    """Return the panes that are to be drawn: those named, or all mechanisms and the first of the others."""
    if not panes:
        raise DiagramError(
            "animate: there is nothing to draw in this diagram; add bd.MECHANISMVIEW(mech), or a bd.LIVESCOPE()"
        )
    if names is None:
        plots = [id(pane) for pane in panes if pane.kind != "mechanism"]
        return [pane for pane in panes if id(pane) not in plots[_PLOTS:]]
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidType(f"animate: panes: expected a list of blocks or of their names, got {describe(names)}")
    if not names:
        raise InvalidValue("animate: panes: expected blocks or their names, got none")
    by_name = {str(pane.title): pane for pane in panes if pane.title} | {str(pane.name): pane for pane in panes}
    return [_named(by_name, each) for each in names]


def _named(by_name: dict[str, Any], given: Any) -> Any:
    """Return a pane by its name or title; a block in a subsystem stands there behind the name of that."""
    name = str(getattr(given, "name", given))
    inside = [key for key in by_name if key.endswith(f"/{name}")] if hasattr(given, "name") else []
    if name not in by_name and len(inside) == 1:
        (name,) = inside
    return by_name[option(name, "animate: pane", by_name)]


# ---------------------------------------------------------------- files


def _write_gif(target: Path, film: Film, fps: float) -> None:
    """Write pictures of few colours, which are those of three of them."""
    from PIL import Image

    last = len(film.times) - 1
    several = np.concatenate([film.frame(k) for k in (0, last // 2, last)])
    palette = Image.fromarray(several).quantize(_COLOURS)
    pictures = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in film.frames())
    _save(target, pictures, len(film.times), fps, format="GIF", optimize=True)


def _write_webp(target: Path, film: Film, fps: float) -> None:
    from PIL import Image

    pictures = (Image.fromarray(frame) for frame in film.frames())
    _save(target, pictures, len(film.times), fps, format="WEBP", quality=80, method=2)


def _save(target: Path, pictures: Iterator[Any], number: int, fps: float, **options: Any) -> None:
    """Write pictures that repeat themselves."""
    times = [*np.diff(np.round(1000 / fps * np.arange(number))).astype(int).tolist(), int(1000 * _REST)]
    first = next(pictures)
    with atomic_file(target) as file:
        first.save(file, save_all=True, append_images=pictures, duration=times, loop=0, **options)


def _write_mp4(target: Path, film: Film, fps: float) -> None:
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
