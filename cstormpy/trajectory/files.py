"""Curves as dictionaries and as JSON files: every float comes back to the last bit, anything else is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cstormpy.errors import CstormError, FileFormatError, unknown_name
from cstormpy.json_files import brief, equals, list_of, read, write

if TYPE_CHECKING:
    from cstormpy.trajectory.bspline import BSpline

FORMAT = "cstormpy spline"
VERSION = 1
_KEYS = ("format", "version", "degree", "outside", "names", "knots", "control_points")


def to_dict(curve: BSpline) -> dict[str, Any]:
    """Return the content of a curve as lists, numbers and text."""
    names = None if curve.names is None else list(curve.names)
    content = (curve.degree, curve.outside, names, curve.knots.tolist(), curve.control_points.tolist())
    return dict(zip(_KEYS, (FORMAT, VERSION, *content), strict=True))


def from_dict(cls: type[BSpline], content: Any) -> BSpline:
    """Return the curve of a dictionary as `to_dict` returns it."""
    if not isinstance(content, dict):
        raise FileFormatError(f"expected an object with the keys {', '.join(_KEYS)}")
    for key in content:
        if key not in _KEYS:
            raise FileFormatError(str(unknown_name("key", str(key)[:60], _KEYS)))
    for key in _KEYS:
        if key not in content:
            raise FileFormatError(f"the key {key!r} is missing")
    if not equals(content["format"], FORMAT):
        raise FileFormatError(f"format: expected {FORMAT!r}, got {brief(content['format'])}")
    version = content["version"]
    if not equals(version, VERSION):
        raise FileFormatError(f"version: expected {VERSION}, got {brief(version)}; a newer cstormpy may read it")
    try:
        fields = {key: content[key] for key in _KEYS[2:]}
        knots = _numbers(fields.pop("knots"), "knots")
        rows = list_of(fields.pop("control_points"), "control_points")
        points = [_numbers(row, f"control_points[{k}]") for k, row in enumerate(rows)]
        return cls(knots, points, **fields)
    except FileFormatError:
        raise
    except CstormError as error:
        raise FileFormatError(str(error)) from None


def save(curve: BSpline, path: str | os.PathLike[str]) -> None:
    """Write a JSON file, whole or not at all."""
    write(path, to_dict(curve))


def load(cls: type[BSpline], path: str | os.PathLike[str]) -> BSpline:
    """Return the curve of a JSON file; raises as `json_files.read` does."""
    return read(path, lambda content: from_dict(cls, content))


def _numbers(value: Any, place: str) -> list[Any]:
    """Return a list of numbers; true and "1" are not numbers."""
    for k, entry in enumerate(list_of(value, place)):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise FileFormatError(f"{place}[{k}]: expected a number, got {brief(entry)}")
    return list(value)
