"""What a run returns, and its files: npz, CSV and MATLAB's .mat.

A file holds the times and named columns: a signal of width one under its name, a wider one under its name and the
index of the number, as in ``plant.q[0]``; matrices are flattened row by row.
"""

from __future__ import annotations

import csv
import html
import io
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from bdsim.block import Block
from bdsim.components import BDStruct
from bdsim.connect import Plug
from numpy.typing import NDArray

from cstormpy import report
from cstormpy.errors import FileFormatError, InvalidValue, UnknownAttribute, UnknownName, unknown_name
from cstormpy.file_writer import atomic_file, file_path
from cstormpy.simulation.mat_files import read_mat
from cstormpy.simulation.recording import port_suffix

__all__ = ["Recorded", "Result", "read"]

Array = NDArray[np.float64]
_INDEXED = re.compile(r"(?P<name>.*)\[(?P<index>\d+)\]$")


class Result(BDStruct):
    """The outcome of a run: bdsim's structure with t, x, xnames, y, ynames, and how the run ended.

    Attributes
    ----------
    t : ndarray (N,)
        Times of the samples. Where a state is reset or a source jumps there are two of the same time, before and after.
    x, xnames : ndarray (N, nstates), list of str
        Continuous states.
    y, ynames : ndarray (N, columns), list of str
        Watched signals, if there are any.
    status : str
        "finished", "stopped" (by a block), "interrupted" (Ctrl-C) or "failed".
    message : str
        Why the run ended.
    left_limits : list of LeftLimits
        Joints without a stop that went beyond their position limits: plant, joint, t, limits, farthest.
    state : SavedState
        From which a run goes on: ``sim.run(bd, T=5, start=out.state)``.
    """

    _read = True

    @property
    def was_read(self) -> bool:
        """Whether anybody has looked at it since the run returned it."""
        return self._read

    def unread(self) -> None:
        """Take it for new: nobody has looked at it."""
        self._read = False

    def __str__(self) -> str:
        """Return it in lines, part by part."""
        self._read = True
        return str(super().__str__())

    def __getitem__(self, key: str) -> Any:
        """Return a part of the result."""
        self._read = True
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        """Return a part of the result, or say which there are."""
        if not name.startswith("_"):
            self._read = True
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or "data" not in self.__dict__:
                raise
        if name in ("y", "ynames") and "t" in self.data:
            raise UnknownAttribute(f"{name}: no signals were watched; name them, as in sim.run(bd, watch=['plant.q'])")
        raise unknown_name("result", name, [key.lstrip(".") for key in self.data], UnknownAttribute)

    def signal(self, name: Any) -> Array:
        """Return the samples (N, ...) of a watched signal or state, as in ``out.signal("plant.q")``.

        Parameters
        ----------
        name : str, or port
            Of a port, a state, or a block that has one watched output; or the port or the block itself.
        """
        self._read = True
        if isinstance(name, (Block, Plug)):
            name = self._name_of(name)
        found = {**dict(zip(self.data.get("ynames", []), self.data.get(".ywatch", []), strict=False))}
        for k, state in enumerate(self.data["xnames"]):
            found.setdefault(state, self.data["x"][:, k])
        if name in found:
            value: Array = found[name]
            return value
        wanted = [key for key in found if _owner(key) == name]
        if len(wanted) == 1:
            value = found[wanted[0]]
            return value
        if wanted:
            raise UnknownName(f"signal {name!r} is one of several: {', '.join(wanted)}")
        outputs = self.data.get(".outputs", [])
        if any(name in (output, _owner(output)) for output in outputs):
            raise UnknownName(f"signal {name!r} was not watched; name it, as in sim.run(bd, watch=[{name!r}])")
        path = _owner(name) + "."
        ports = [output.removeprefix(path) for output in outputs if output.startswith(path)]
        if ports:
            raise unknown_name(f"output of block {_owner(name)!r}", name.removeprefix(path), ports)
        raise unknown_name("signal", name, found)

    def _name_of(self, given: Block | Plug) -> str:
        """Return how a block or port is called in this run: inside of a subsystem, it stands after its name."""
        block = given.block if isinstance(given, Plug) else given
        found = self.data.get(".paths", {}).get(getattr(block, "_identity", None), [str(block.name)])
        if len(found) > 1:
            raise UnknownName(f"signal: block {block.name!r} is there more than once; name one of {', '.join(found)}")
        if isinstance(given, Block):
            return found[0]
        return found[0] + port_suffix(block._outport_names, given.port or 0)

    def recorded(self) -> Recorded:
        """Return what a file of this run would hold."""
        return Recorded(np.asarray(self.data["t"]), self.columns())

    def columns(self) -> dict[str, Array]:
        """Return all states and watched signals as named columns (N,)."""
        self._read = True
        out: dict[str, Array] = {}
        for name, values in zip(self.data.get("ynames", []), self.data.get(".ywatch", []), strict=False):
            out.update(_columns(name, values))
        for k, name in enumerate(self.data["xnames"]):
            out.setdefault(name, self.data["x"][:, k])
        return out

    def _repr_html_(self) -> str:
        """Return what a notebook shows of a run: its scopes and its mechanism in motion."""
        if "t" not in self.data or ".panes" not in self.data:
            return f"<pre>{html.escape(str(self))}</pre>"
        return report.inline(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write times, states and watched signals to a file: .npz, .csv or .mat by its name.

        The file appears whole or not at all.
        """
        target = file_path(path)
        writer = _WRITERS.get(target.suffix.lower())
        if writer is None:
            raise InvalidValue(f"{target}: expected a name that ends in .npz, .csv or .mat")
        columns = {"t": np.asarray(self.data["t"]), **self.columns()}
        with atomic_file(target) as file:
            writer(file, columns)


def _owner(name: str) -> str:
    """Return the block of a port's name, or what a state belongs to: "gain.0" of "gain.0[0]", "plant" of "plant.q"."""
    match = _INDEXED.match(name)
    return match["name"] if match else name.rpartition(".")[0]


def _is_port(name: str) -> bool:
    """Return whether a name reads as that of a port, "plant.q" or "gain[0]", and not of a block, "gain" or "gain.0"."""
    _, point, last = name.rpartition(".")
    return _INDEXED.match(name) is not None or (point != "" and last.isidentifier())


def _columns(name: str, values: Any) -> dict[str, Array]:
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        return {}  # poses and texts have no columns
    if array.dtype.kind != "c":
        array = array.astype(float)
    if array.ndim == 1:
        return {name: array}
    flat = array.reshape(len(array), -1)
    return {f"{name}[{k}]": flat[:, k] for k in range(flat.shape[1])}


def _write_npz(file: BinaryIO, columns: dict[str, Array]) -> None:
    names = np.array(list(columns))
    np.savez_compressed(file, names=names, data=np.column_stack(list(columns.values())))


def _write_csv(file: BinaryIO, columns: dict[str, Array]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([repr(float(v)) for v in row] for row in zip(*columns.values(), strict=True))
    text.detach()  # which flushes it; it would close the file with itself


def _write_mat(file: BinaryIO, columns: dict[str, Array]) -> None:
    from scipy.io import savemat

    names, data = np.array(list(columns), dtype=object), np.column_stack(list(columns.values()))
    savemat(file, {"t": columns["t"], "names": names, "data": data}, oned_as="column")


_WRITERS = {".npz": _write_npz, ".csv": _write_csv, ".mat": _write_mat}


@dataclass
class Recorded:
    """A saved run: times (N,) and named columns (N,)."""

    t: Array
    columns: dict[str, Array] = field(default_factory=dict)

    @property
    def signals(self) -> dict[str, list[str]]:
        """The columns of each signal, in the order of their indices."""
        found: dict[str, list[tuple[int, str]]] = {}
        for key in self.columns:
            match = _INDEXED.match(key)
            name, index = (match["name"], int(match["index"])) if match else (key, -1)
            found.setdefault(name, []).append((index, key))
        return {name: [key for _, key in sorted(columns)] for name, columns in found.items()}

    def signal(self, name: str) -> Array:
        """Return a column (N,), or all that carry a name with an index, side by side (N, width).

        The name of a block stands for the one signal that it has. Where that is a single column, as ``gain.0[0]`` of
        the block ``gain.0``, it is (N,), as in the run; that of a port, as ``plant.q[0]``, is a row of one number.
        """
        if name in self.columns:
            return self.columns[name]
        signals = self.signals
        wanted = [name] if name in signals else [key for key in signals if _is_port(key) and _owner(key) == name]
        if not wanted:
            raise unknown_name("signal", name, signals)
        if len(wanted) > 1:
            raise UnknownName(f"signal {name!r} is one of several: {', '.join(wanted)}")
        columns = [self.columns[key] for key in signals[wanted[0]]]
        if len(columns) == 1 and (wanted[0] in self.columns or not _is_port(wanted[0])):
            return columns[0]
        return np.column_stack(columns)


def read(path: str | os.PathLike[str]) -> Recorded:
    """Read a file that `Result.save` wrote, or a CSV whose first row holds names and whose first column the times."""
    source = file_path(path)
    reader = {".npz": _read_npz, ".csv": _read_csv, ".mat": _read_mat}.get(source.suffix.lower())
    if reader is None:
        raise FileFormatError(f"{source}: expected a name that ends in .npz, .csv or .mat")
    if not source.is_file():
        raise FileFormatError(f"{source}: there is no such file")
    try:
        names, data = reader(source)
    except FileFormatError:
        raise
    except Exception as error:  # what a damaged file can set off in its readers is not to be foreseen
        raise FileFormatError(f"{source}: is not a saved run: {error}") from error
    if data.ndim != 2 or data.shape[1] != len(names) or not len(names):
        raise FileFormatError(f"{source}: has {len(names)} names for {data.shape} numbers")
    t = data[:, 0]
    if len(t) == 0 or not np.isfinite(t).all() or (np.diff(t) < 0).any():
        raise FileFormatError(f"{source}: its first column must hold times that do not decrease")
    return Recorded(t, {name: data[:, k] for k, name in enumerate(names) if k})


def _read_npz(path: Path) -> tuple[list[str], Array]:
    with np.load(path, allow_pickle=False) as file:
        return [str(name) for name in file["names"]], np.asarray(file["data"], dtype=float)


def _read_csv(path: Path) -> tuple[list[str], Array]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if len(rows) < 2:
        raise FileFormatError(f"{path}: expected a row of names and rows of numbers")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise FileFormatError(f"{path}: row {number} has {len(row)} cells, the first {len(rows[0])}")
    return rows[0], np.array(rows[1:], dtype=float)


def _read_mat(path: Path) -> tuple[list[str], Array]:
    try:
        content = read_mat(path, ("names", "data"))
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None
    names, data = content.get("names"), content.get("data")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileFormatError(f"{path}: has no variable 'names', a cell array of texts")
    if not isinstance(data, np.ndarray):
        raise FileFormatError(f"{path}: has no variable 'data', a matrix of a column for each name")
    return names, data
