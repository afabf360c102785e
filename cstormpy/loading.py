"""The loader of whatever the package saves: mechanisms, curves, states, sweeps, and what runs recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cstormpy.errors import FileFormatError, shown
from cstormpy.file_writer import file_path, read_bytes
from cstormpy.json_files import MAX_BYTES, parse

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> Any:
    """Return what a file holds.

    Parameters
    ----------
    path : str or path
        A ``.json`` that a mechanism, a curve, a run's state or a sweep was saved to, a ``.urdf`` or ``.mjcf``, or the
        ``.npz``, ``.csv`` or ``.mat`` of a run.

    Returns
    -------
    Mechanism, BSpline, SavedState, Sweep or Recorded
        `Recorded` is a saved run: `signal`, `plot`, `measures`, `to_pandas` and so on are those of a run's result.

    Raises
    ------
    FileFormatError
        Naming the file, and what it holds; `FileReadError` where it cannot be read.
    """
    name = file_path(path)
    suffix = name.suffix.lower()
    if suffix == ".bd":
        raise FileFormatError(f"{name}: is a diagram; load it with sim.load(path)")
    loader = _LOADERS.get(suffix)
    if loader is None:
        raise FileFormatError(f"{name}: expected a name that ends in {', '.join(_LOADERS)}")
    return loader(name)


def _mechanism(path: Path) -> Any:
    from cstormpy.mechanism import Mechanism

    return Mechanism.load(path)


def _curve(path: Path) -> Any:
    from cstormpy.trajectory import BSpline

    return BSpline.load(path)


def _state(path: Path) -> Any:
    from cstormpy.simulation.saved_state import SavedState

    return SavedState.load(path)


def _sweep(path: Path) -> Any:
    from cstormpy.simulation.sweep import Sweep

    return Sweep.read(path)


def _run(path: Path) -> Any:
    from cstormpy.simulation.results import read

    return read(path)


def _json(path: Path) -> Any:
    """Load by what the content says of itself."""
    raw = read_bytes(path, MAX_BYTES + 1)
    lines = raw.split(b"\n", 1)
    try:
        try:
            content = parse(lines[0])  # a sweep has a document on each line
        except FileFormatError:
            content = parse(raw)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None
    said = content.get("format") if isinstance(content, dict) else None
    loader = _FORMATS.get(" ".join(said.split()[:2])) if isinstance(said, str) else None
    if loader is None:
        kinds = ", ".join(repr(kind) for kind in _FORMATS)
        raise FileFormatError(f'{path}: expected an object whose "format" is one of {kinds}, got {shown(said)}')
    return loader(path)


#: What saves JSON says so in its "format", perhaps with a version behind it.
_FORMATS: dict[str, Callable[[Path], Any]] = {
    "cstormpy mechanism": _mechanism,
    "cstormpy spline": _curve,
    "cstormpy state": _state,
    "cstormpy sweep": _sweep,
}
_LOADERS: dict[str, Callable[[Path], Any]] = {
    ".json": _json,
    ".jsonl": _json,
    ".urdf": _mechanism,
    ".mjcf": _mechanism,
    ".npz": _run,
    ".csv": _run,
    ".mat": _run,
}
