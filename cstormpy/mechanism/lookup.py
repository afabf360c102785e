"""Mechanisms as they are asked for: an object, the name of a ready one, or a file."""

from __future__ import annotations

import os

from cstormpy.errors import InvalidType, UnknownName
from cstormpy.file_writer import file_path, read_bytes
from cstormpy.mechanism import files, library, urdf
from cstormpy.mechanism.mechanism import Mechanism

__all__ = ["as_mechanism", "load"]

_SUFFIXES = {".json": "json", ".urdf": "urdf", ".xacro": "urdf"}
_LOOKED_AT = 1024
"""Bytes at the beginning of a file that tell what it is, where its name does not."""


def as_mechanism(value: Mechanism | str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism that is meant.

    Parameters
    ----------
    value : Mechanism, str or path
        A mechanism; the name of a ready one (`library.names`), made with its defaults; or the path of a JSON or
        URDF file. A text that is the name of a ready mechanism is never taken as a path.

    Raises
    ------
    UnknownName
        If a text is neither the name of a ready mechanism, nor ends in ".json" or ".urdf", nor is the path of a file;
        with the nearest spelling.
    FileFormatError
        Naming the file and the place in it.
    FileReadError
        If it cannot be read: `FileMissing` if there is none.
    InvalidType
        If it is something else.

    Examples
    --------
    >>> as_mechanism("acrobot").names
    ('shoulder', 'elbow')
    >>> as_mechanism(library.pendulum(3)).n
    3
    """
    if isinstance(value, Mechanism):
        return value
    if isinstance(value, os.PathLike):
        return load(value)
    if not isinstance(value, str):
        raise InvalidType(
            f"mechanism: expected a Mechanism, the name of a ready one or the path of a JSON or URDF file, "
            f"got a {type(value).__name__}"
        )
    if value in library.names():
        return library.get(value)
    if value.startswith("package://") or value.lower().endswith(tuple(_SUFFIXES)) or os.path.isfile(value):
        return load(value)
    try:
        return library.get(value)
    except UnknownName as error:
        raise UnknownName(f"{error} (the path of a file ends in .json or .urdf, or the file exists)") from None


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism of a JSON or URDF file, told by the ending of its name or else by its first character.

    Raises
    ------
    FileFormatError, FileReadError
        Naming the file.
    """
    name = file_path(path)
    kind = _SUFFIXES.get(name.suffix.lower())
    if isinstance(path, str) and path.startswith("package://"):
        return urdf.from_urdf(path)
    if kind is None:
        kind = "urdf" if read_bytes(name, _LOOKED_AT).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "json"
    return files.load(name) if kind == "json" else urdf.from_urdf(name)
