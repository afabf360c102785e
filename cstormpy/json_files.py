"""JSON that a person can read, read with care: in bounded time, and only the package's own errors come out.

What a file means is the affair of who reads it; here are the text, the file, and what is wrong with either.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from cstormpy.errors import FileFormatError
from cstormpy.file_writer import file_path, read_bytes, write_text

MAX_BYTES = 64 * 2**20
"""Largest file that is read."""

_MAX_DIGITS = 400  # more than any float has before its point; reading an integer takes time quadratic in its digits

Made = TypeVar("Made")


def read(path: str | os.PathLike[str], make: Callable[[Any], Made]) -> Made:
    """Return what `make` makes of the content of a JSON file.

    Raises
    ------
    FileFormatError
        Naming the file before what is wrong with the text, or with the content according to `make`.
    FileReadError
        Naming the file, where it cannot be read: `FileMissing`, which is a FileNotFoundError too, if there is none.
    """
    name = file_path(path)
    raw = read_bytes(name, MAX_BYTES + 1)
    try:
        if len(raw) > MAX_BYTES:
            raise FileFormatError(f"has more than {MAX_BYTES} bytes")
        return make(parse(raw))
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from None


def write(path: str | os.PathLike[str], content: Any) -> None:
    """Write a JSON file, whole or not at all; raises as `file_writer.atomic_file` does."""
    write_text(path, json_text(content) + "\n")


def json_text(value: Any, indent: str = "") -> str:
    """Return JSON with every list of numbers or of text on one line.

    >>> print(json_text({"name": "rod", "com": [0.5, 0.0, 0.0]}))
    {
      "name": "rod",
      "com": [0.5, 0.0, 0.0]
    }
    """
    inner = indent + "  "
    if isinstance(value, dict) and value:
        entries = [f"{inner}{json.dumps(key)}: {json_text(entry, inner)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(entry, (dict, list)) for entry in value):
        entries = [inner + json_text(entry, inner) for entry in value]
        return "[\n" + ",\n".join(entries) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def parse(text: str | bytes) -> Any:
    """Return what a JSON text holds; NaN, endless numbers and doubled keys are refused."""
    try:
        return json.loads(
            text, parse_constant=_refuse_constant, parse_int=_parse_int, object_pairs_hook=_refuse_duplicates
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
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise FileFormatError(f"the key {double[:60]!r} occurs twice in one object")
    return content


def equals(value: object, expected: str | float) -> bool:
    """Tell whether what stands somewhere is a text or a number, and the one expected; true is not 1."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and value == expected


def list_of(value: object, place: str) -> list[Any]:
    """Return the list that stands at a place of the content."""
    if not isinstance(value, (list, tuple)):
        raise FileFormatError(f"{place}: expected a list, got {brief(value)}")
    return list(value)


def brief(value: object) -> str:
    """Describe a value for a message, by its type where its content may be endless."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str):
        return repr(value[:40] + ("…" if len(value) > 40 else ""))
    if value is None or isinstance(value, (bool, float)):
        return json.dumps(value)
    return "a whole number" if isinstance(value, int) else f"a {type(value).__name__}"
