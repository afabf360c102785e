"""Files of runs: npz, CSV and MATLAB's .mat.

A file holds the times and named columns: a signal of width one under its name, a wider one under its name and the
index of the number, as in ``plant.q[0]``; matrices are flattened row by row. Units stand beside the names where they
are known: in a CSV in its header, as in ``plant.q[0] [rad]``; the other two also keep what figures call the columns and
their values. A .mat file has a variable for each signal, (N, width),
by its name with underscores, as in ``plant_q``, and the times in ``t``.
"""

from __future__ import annotations

import csv
import io
import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError
from cstormpy.simulation.mat_files import read_mat

#: Names of columns, the columns side by side, their units, which are held, and all captions as a text of JSON, if any.
Content = tuple[list[str], Array, list[str], list[str], list[str]]

_INDEXED = re.compile(r"(?P<name>.*)\[(?P<index>\d+)\]$")
_WITH_UNIT = re.compile(r"(?P<name>.*\S) \[(?P<unit>[^\[\]]*)\]$")
_LONGEST = 60
"""Characters of a variable of MATLAB, of the 63 that it may have."""
_TEXTS = ("names", "units", "held", "captions")
"""Variables of a file: names of all columns, their units, names of those held from row to row, and captions."""
_TAKEN = ("t", *_TEXTS, "variables", "data", "end", "function", "case", "otherwise", "switch", "catch")


def owner(name: str) -> str:
    """Return the block of a port's name, or what a state belongs to: "gain.0" of "gain.0[0]", "plant" of "plant.q"."""
    match = _INDEXED.match(name)
    return match["name"] if match else name.rpartition(".")[0]


def is_port(name: str) -> bool:
    """Return whether a name reads as that of a port, "plant.q" or "gain[0]", and not of a block, "gain" or "gain.0"."""
    _, point, last = name.rpartition(".")
    return _INDEXED.match(name) is not None or (point != "" and last.isidentifier())


def by_signal(columns: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the columns of each signal, in the order of their indices."""
    found: dict[str, list[tuple[int, str]]] = {}
    for key in columns:
        match = _INDEXED.match(key)
        name, index = (match["name"], int(match["index"])) if match else (key, -1)
        found.setdefault(name, []).append((index, key))
    return {name: [key for _, key in sorted(keys)] for name, keys in found.items()}


def columns_of(name: str, values: Any) -> dict[str, Array]:
    """Return the samples of a signal as columns (N,) by name; poses and texts have none."""
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        return {}
    if array.dtype.kind != "c":
        array = array.astype(float)
    if array.ndim == 1:
        return {name: array}
    flat = array.reshape(len(array), -1)
    return {f"{name}[{k}]": flat[:, k] for k in range(flat.shape[1])}


def _write_npz(
    file: BinaryIO, columns: Mapping[str, Array], units: Mapping[str, str], held: Collection[str], captions: str
) -> None:
    names, known = np.array(list(columns)), np.array([units.get(name, "") for name in columns])
    data = np.column_stack(list(columns.values()))
    last = np.array([name for name in columns if name in held], dtype=str)
    np.savez_compressed(file, names=names, units=known, data=data, held=last, captions=np.array([captions]))


def _write_csv(file: BinaryIO, columns: Mapping[str, Array], units: Mapping[str, str], *_: object) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow([f"{name} [{units[name]}]" if units.get(name) else name for name in columns])
    writer.writerows([repr(float(v)) for v in row] for row in zip(*columns.values(), strict=True))
    text.detach()  # which flushes it; it would close the file with itself


def _write_mat(
    file: BinaryIO, columns: Mapping[str, Array], units: Mapping[str, str], held: Collection[str], captions: str
) -> None:
    from scipy.io import savemat

    called = _variables(list(columns))
    content: dict[str, Any] = {}
    for variable in dict.fromkeys(called.values()):
        content[variable] = np.column_stack([columns[name] for name in columns if called[name] == variable])
    content["names"] = np.array(list(columns), dtype=object)
    content["variables"] = np.array([called[name] for name in columns], dtype=object)
    content["units"] = np.array([units.get(name, "") for name in columns], dtype=object)
    if held:
        content["held"] = np.array([name for name in columns if name in held], dtype=object)
    content["captions"] = np.array([captions], dtype=object)
    savemat(file, content, oned_as="column", long_field_names=True)


def _variables(names: list[str]) -> dict[str, str]:
    """Return for each column the variable of MATLAB that holds it: one for all numbers of a signal."""
    found: dict[str, str] = {"t": "t"}
    of: dict[str, str] = {}
    taken = {*_TAKEN, *keyword.kwlist}
    for name in names[1:]:
        match = _INDEXED.match(name)
        signal = match["name"] if match else name
        if signal not in of:
            stem = re.sub(r"[^0-9A-Za-z_]", "_", signal)[:_LONGEST].rstrip("_") or "signal"
            stem = stem if stem[0].isalpha() else f"x{stem}"[:_LONGEST]
            word, k = stem, 1
            while word in taken:
                word, k = f"{stem[: _LONGEST - 4]}_{k}", k + 1
            taken.add(word)
            of[signal] = word
        found[name] = of[signal]
    return found


WRITERS: dict[str, Callable[..., None]] = {".npz": _write_npz, ".csv": _write_csv, ".mat": _write_mat}
"""Writers of a file by the ending of its name: of columns, the times first, the units of those that have one, which
are held from one row to the next, and captions as a text."""


def _read_npz(path: Path) -> Content:
    with np.load(path, allow_pickle=False) as file:
        names, units, held, captions = ([str(text) for text in file[key]] if key in file else [] for key in _TEXTS)
        return names, np.asarray(file["data"], dtype=float), units, held, captions


def _read_csv(path: Path) -> Content:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if len(rows) < 2:
        raise FileFormatError(f"{path}: expected a row of names and rows of numbers")
    other = next((sign for sign in ";\t" if sign in rows[0][0]), "")
    mark = (
        f"; what stands between cells is a comma, not {other!r}: pandas.read_csv(path, sep={other!r})" if other else ""
    )
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise FileFormatError(f"{path}: row {number} has {len(row)} cells, the first {len(rows[0])}{mark}")
    split = [_WITH_UNIT.match(cell) for cell in rows[0]]
    names = [cell if match is None else match["name"] for cell, match in zip(rows[0], split, strict=True)]
    numbers = [[cell.strip() or "nan" for cell in row] for row in rows[1:]]  # of an empty cell nothing was measured
    try:
        data = np.array(numbers, dtype=float)
    except ValueError:
        at, k = next((at, k) for at, row in enumerate(numbers) for k, cell in enumerate(row) if not _is_number(cell))
        shown = f"row {at + 2}, column {rows[0][k]!r}: expected a number, got {numbers[at][k]!r}"
        raise FileFormatError(
            f"{path}: {shown}{mark or '; numbers have a point, and cells a comma between them'}"
        ) from None
    return names, data, ["" if match is None else match["unit"] for match in split], [], []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_mat(path: Path) -> Content:
    try:
        content = read_mat(path, ("data", "variables", *_TEXTS))
        names, units, held, captions = (_texts(content.get(key)) for key in _TEXTS)
        if names is None:
            raise FileFormatError("has no variable 'names', a cell array of texts")
        data, variables = content.get("data"), _texts(content.get("variables"))
        if variables is not None:
            data = _gathered(variables, read_mat(path, set(variables)))
        if not isinstance(data, np.ndarray):
            raise FileFormatError("has no variable 'data', a matrix of a column for each name")
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None
    return names, data, units or [], held or [], captions or []


def _texts(cells: Any) -> list[str] | None:
    """Return the texts of a cell array, in which empty ones come as empty arrays."""
    cells = [cells] if isinstance(cells, str) else cells
    if not isinstance(cells, list):
        return None
    texts = ["" if (isinstance(cell, np.ndarray) and not cell.size) or cell == [] else cell for cell in cells]
    return texts if all(isinstance(text, str) for text in texts) else None


def _gathered(variables: list[str], content: Mapping[str, Any]) -> Array:
    """Return the columns of variables side by side, in the order in which they are named."""
    columns, begun = [], dict.fromkeys(variables, 0)
    for variable in variables:
        value, k = content.get(variable), begun[variable]
        if not isinstance(value, np.ndarray) or value.ndim != 2 or k >= value.shape[1]:
            raise FileFormatError(f"has no variable {variable!r} with {k + 1} columns")
        columns.append(value[:, k])
        begun[variable] += 1
    if len({len(column) for column in columns}) != 1:
        raise FileFormatError("has variables of different lengths")
    return np.column_stack(columns)


READERS = {".npz": _read_npz, ".csv": _read_csv, ".mat": _read_mat}
"""Readers of a file by the ending of its name."""
