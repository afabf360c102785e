"""Curves as dictionaries and as JSON files: every float comes back to the last bit, anything else is refused."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cstormpy.errors import CstormError, FileFormatError, unknown_name
from cstormpy.mechanism.printing import json_text

if TYPE_CHECKING:
    from cstormpy.trajectory.bspline import BSpline

__all__ = ["FORMAT", "MAX_BYTES", "VERSION", "from_dict", "load", "save", "to_dict"]

FORMAT = "cstormpy spline"
VERSION = 1
MAX_BYTES = 64 * 2**20
"""Largest file that is read."""

_MAX_DIGITS = 400  # more than any float has before its point; reading an integer takes time quadratic in its digits
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
    if content["format"] != FORMAT:
        raise FileFormatError(f"format: expected {FORMAT!r}, got {_brief(content['format'])}")
    version = content["version"]
    if isinstance(version, bool) or version != VERSION:
        raise FileFormatError(f"version: expected {VERSION}, got {_brief(version)}; a newer cstormpy may read it")
    try:
        fields = {key: content[key] for key in _KEYS[2:]}
        knots = _numbers(fields.pop("knots"), "knots")
        rows = _list(fields.pop("control_points"), "control_points")
        points = [_numbers(row, f"control_points[{k}]") for k, row in enumerate(rows)]
        return cls(knots, points, **fields)
    except FileFormatError:
        raise
    except CstormError as error:
        raise FileFormatError(str(error)) from None


def save(curve: BSpline, path: str | os.PathLike[str]) -> None:
    """Write a JSON file beside the target and move it there, so that no reader meets half a file."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        draft.write_text(json_text(to_dict(curve)) + "\n", encoding="utf-8")
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def load(cls: type[BSpline], path: str | os.PathLike[str]) -> BSpline:
    """Return the curve of a JSON file; one that can not be opened raises OSError."""
    with open(path, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    try:
        return from_dict(cls, _content(raw))
    except FileFormatError as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from None


def _content(raw: bytes) -> Any:
    """Return what a JSON text holds."""
    if len(raw) > MAX_BYTES:
        raise FileFormatError(f"has more than {MAX_BYTES} bytes")
    try:
        return json.loads(
            raw, parse_constant=_refuse_constant, parse_int=_parse_int, object_pairs_hook=_refuse_duplicates
        )
    except FileFormatError:
        raise
    except RecursionError:
        raise FileFormatError("is nested too deeply") from None
    except ValueError as error:  # of JSON and of the text's encoding
        raise FileFormatError(f"is not JSON: {error}") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise FileFormatError(f"{constant} stands where a finite number is expected")


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise FileFormatError(f"a number of {len(digits)} digits is too large for a float")
    return int(digits)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise FileFormatError("a key occurs twice in one object")
    return content


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise FileFormatError(f"{place}: expected a list, got {_brief(value)}")
    return list(value)


def _numbers(value: Any, place: str) -> list[Any]:
    """Return a list of numbers; true and "1" are not numbers."""
    for k, entry in enumerate(_list(value, place)):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise FileFormatError(f"{place}[{k}]: expected a number, got {_brief(entry)}")
    return list(value)


def _brief(value: object) -> str:
    """Describe a value for a message, by its type where its content may be endless."""
    short = value is None or isinstance(value, bool | float)
    if isinstance(value, str):
        return repr(value[:60])
    return repr(value) if short else f"a {type(value).__name__}"
