"""The loader of whatever the package saves: mechanisms, curves, states, sweeps, and what runs recorded."""

from __future__ import annotations

import os
from pathlib import Path
from pkgutil import resolve_name
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
        A ``.json`` that a mechanism, a curve, a run's state or a sweep was saved to, a ``.urdf``, ``.mjcf`` or
        ``.xml`` of a robot, or the ``.npz``, ``.csv`` or ``.mat`` of a run.

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
    return resolve_name(loader)(name)


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
    if isinstance(content, dict) and {"made_by", "solutions"} <= set(content):
        raise FileFormatError(f"{path}: is a solution; load it with optimal.Solution.load(path, problem)")
    loader = _FORMATS.get(" ".join(said.split()[:2])) if isinstance(said, str) else None
    if loader is None:
        kinds = ", ".join(repr(kind) for kind in _FORMATS)
        raise FileFormatError(f'{path}: expected an object whose "format" is one of {kinds}, got {shown(said)}')
    return resolve_name(loader)(path)


#: What saves JSON says so in its "format", perhaps with a version behind it. Loaders are imported where they are used.
_FORMATS = {
    "cstormpy mechanism": "cstormpy.mechanism:Mechanism.load",
    "cstormpy spline": "cstormpy.trajectory:BSpline.load",
    "cstormpy state": "cstormpy.simulation.saved_state:SavedState.load",
    "cstormpy sweep": "cstormpy.simulation.sweep:Sweep.read",
}
_RUN = "cstormpy.simulation.results:read"
_LOADERS = {
    ".json": f"{__name__}:_json",
    ".jsonl": f"{__name__}:_json",
    ".urdf": _FORMATS["cstormpy mechanism"],
    ".mjcf": _FORMATS["cstormpy mechanism"],
    ".xml": _FORMATS["cstormpy mechanism"],
    ".npz": _RUN,
    ".csv": _RUN,
    ".mat": _RUN,
}
