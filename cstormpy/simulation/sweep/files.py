"""The file of a sweep: one line of JSON that says what is varied, then one for each run, in the order they end.

Lines are appended as results come, so that a process that is killed leaves all but a part of the last line, which is
ignored, and an interrupted sweep goes on from its file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cstormpy.errors import FileFormatError, FileWriteError, InvalidType
from cstormpy.file_writer import read_bytes
from cstormpy.json_files import parse
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.sweep.workers import Record

_FORMAT = "cstormpy sweep 1"
#: So many differences are named.
_NAMED = 4
_BEGINNING = f'{{"format": "{_FORMAT}"'.encode()


def header(axes: Axes, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first line: the axes, and what else tells a sweep from others.

    Raises
    ------
    InvalidType
        Where an axis holds what cannot be written.
    """
    values = {name: [_plain(name, v) for v in one] for name, one in zip(axes.names, axes.values, strict=True)}
    return {"format": _FORMAT, "kind": "grid" if axes.grid else "samples", "axes": values, **about}


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InvalidType(
            f"{name!r}: a {type(value).__name__} cannot be written to the file of a sweep; let the axis hold numbers "
            "or names, and have the builder make the rest of them"
        )
    return array.tolist()


class Log:
    """A file to which the results of a sweep are appended; it always ends in a whole line.

    Raises
    ------
    FileFormatError
        Where it belongs to another sweep.
    FileWriteError
        Where it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], first: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.records: dict[int, Record] = {}
        begin = 0
        if self.path.is_file() and not _just_begun(self.path):
            there, self.records, begin = read_lines(self.path)
            _compare(self.path, there, json.loads(json.dumps(first)))
        try:
            self._file = open(self.path, "r+b" if begin else "wb", buffering=0)  # closed by `close`
            self._file.truncate(begin)
            self._file.seek(begin)
        except OSError as error:
            raise FileWriteError(f"{path}: cannot be written: {error.strerror or error}") from error
        if not begin:
            self._write([json.dumps(first)])

    def append(self, found: Sequence[tuple[int, Record]]) -> None:
        """Add what came of some runs."""
        self._write([line(number, record) for number, record in found])

    def _write(self, lines: Sequence[str]) -> None:
        content = memoryview("".join(f"{one}\n" for one in lines).encode())
        end = self._file.tell()
        try:
            while len(content):
                content = content[self._file.write(content) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise FileWriteError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _just_begun(path: Path) -> bool:
    """Tell whether a file holds no more than a part of the first line, or nothing."""
    start = read_bytes(path)
    return start == b"" or (start.startswith(_BEGINNING) and b"\n" not in start)


def line(number: int, record: Record) -> str:
    """Return the line of a run."""
    if record.failed is not None:
        return json.dumps({"run": number, "failed": record.failed})
    return json.dumps({"run": number, "values": {name: _spelt(v.tolist()) for name, v in record.values.items()}})


def _spelt(value: Any) -> Any:
    """Return numbers as JSON can hold them: those that are not finite as text."""
    if isinstance(value, list):
        return [_spelt(item) for item in value]
    return value if math.isfinite(value) else repr(value)


def read_lines(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[int, Record], int]:
    """Return the first line of a sweep's file, the records by number, and where the last whole line ends.

    Raises
    ------
    FileFormatError
        Naming the line that is none of a sweep's file.
    """
    raw = read_bytes(Path(path))
    end = raw.rfind(b"\n") + 1
    lines = raw[:end].split(b"\n")[:-1]
    first: Any = None
    records: dict[int, Record] = {}
    for k, text in enumerate(lines):
        try:
            content = parse(text)
            if k == 0:
                first = _checked(content)
            else:
                records.update([_record(content)])
        except (FileFormatError, KeyError, TypeError, ValueError, AttributeError) as error:
            if k:
                raise FileFormatError(f"{path}: line {k + 1} is no result of a run: {error}") from None
            break
    if first is None:
        raise FileFormatError(f"{path}: is not the file of a sweep; give another name, or move it away")
    return first, records, end


def _checked(content: Any) -> dict[str, Any]:
    axes = content["axes"]
    if content["format"] != _FORMAT or not axes or not all(isinstance(v, list) and v for v in axes.values()):
        raise ValueError
    return dict(content)


def _record(content: Any) -> tuple[int, Record]:
    number = int(content["run"])
    if "failed" in content:
        return number, Record({}, str(content["failed"]))
    return number, Record({str(name): np.array(v, dtype=float) for name, v in content["values"].items()})


def _compare(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse the file of another sweep, and say in what it differs."""
    for key, new in here.items():
        old: Any = there.get(key)
        if old == new and (key != "axes" or list(old) == list(new)):  # their order numbers the runs
            continue
        told = f"its {key} {_brief(old)} is not {_brief(new)}"
        if key == "axes":
            other = next((n for n in new if n in old and new[n] != old[n]), None)
            told = f"{other!r} has other values" if other else f"it varies {', '.join(old)}, not {', '.join(new)}"
        elif isinstance(old, dict) and isinstance(new, dict):
            names = [n for n in {**old, **new} if n not in old or n not in new or old[n] != new[n]]
            told = f"its {key} {'differ' if key.endswith('s') else 'differs'}: "
            told += ", ".join(f"{n} was {_named(old, n)} and is {_named(new, n)}" for n in names[:_NAMED])
            told += f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise FileFormatError(f"{path}: belongs to another sweep: {told}; give another name, or move it away")


def _named(held: Mapping[str, Any], name: str) -> str:
    return _brief(held[name]) if name in held else "not there"


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
