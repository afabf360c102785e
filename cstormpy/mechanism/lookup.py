"""Mechanisms as they are asked for: an object, the name of a ready one, or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cstormpy.errors import CstormError, FileFormatError, InvalidType, UnknownName, shown
from cstormpy.file_writer import file_path, read_bytes
from cstormpy.mechanism import files, library, mjcf, urdf, xml_elements
from cstormpy.mechanism.mechanism import Mechanism

_SUFFIXES = {".json": "json", ".urdf": "urdf", ".xacro": "urdf", ".mjcf": "mjcf"}
_LOOKED_AT = 1024
"""Bytes at the beginning of a file that tell what it is, where its name does not."""


def as_mechanism(value: Mechanism | str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism that is meant.

    Parameters
    ----------
    value : Mechanism, str or path
        A mechanism; the name of a ready one (`library.names`), made with its defaults; or the path of a JSON,
        URDF or MJCF file. A text that is the name of a ready mechanism is never taken as a path.

    Raises
    ------
    UnknownName
        If a text is neither the name of a ready mechanism, nor ends in ".json", ".urdf", ".mjcf" or ".xml", nor is the
        path of a file; with the nearest spelling.
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
            f"mechanism: expected a Mechanism, the name of a ready one or the path of a JSON, URDF or MJCF file, "
            f"got {shown(value)}"
        )
    if value in library.names():
        return library.get(value)
    if value.startswith("package://") or value.lower().endswith((*_SUFFIXES, ".xml")) or os.path.isfile(value):
        return load(value)
    try:
        return library.get(value)
    except UnknownName as error:
        endings = ".json, .urdf, .mjcf or .xml"
        raise UnknownName(f"{error} (the path of a file ends in {endings}, or the file exists)") from None


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism of a JSON, URDF or MJCF file, told by the ending of its name or else by how it begins.

    Raises
    ------
    FileFormatError, FileReadError
        Naming the file.
    """
    name = file_path(path)
    if isinstance(path, str) and path.startswith("package://"):
        return urdf.from_urdf(path)
    return _READERS[_SUFFIXES.get(name.suffix.lower()) or _kind(name)](name)


_READERS: dict[str, Callable[[Path], Mechanism]] = {
    "json": files.load,
    "urdf": urdf.from_urdf,
    "mjcf": mjcf.from_mjcf,
}


def _kind(name: Path) -> str:
    """Return which reader a file is for: of XML it is the root that tells."""
    begin = read_bytes(name, _LOOKED_AT).lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0")[:1]
    if begin and begin not in b"<{[":
        hint = "; a script that builds a diagram is run: cstorm run" * (name.suffix.lower() in (".py", ".bd"))
        raise FileFormatError(f"{name}: is no file of a mechanism, JSON, URDF or MJCF{hint}")
    if begin != b"<":
        return "json"
    try:
        return "mjcf" if xml_elements.parse(xml_elements.read(name)).tag == "mujoco" else "urdf"
    except CstormError:
        return "urdf"  # which says what is wrong with it
