"""Mechanisms as they are asked for: an object, the name of a ready one, or a file."""

from __future__ import annotations

import os

from cstormpy.errors import InvalidType, UnknownName
from cstormpy.mechanism import files, library
from cstormpy.mechanism.mechanism import Mechanism

__all__ = ["as_mechanism"]


def as_mechanism(value: Mechanism | str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism that is meant.

    Parameters
    ----------
    value : Mechanism, str or path
        A mechanism; the name of a ready one (`library.names`), made with its defaults; or the path of a JSON file.
        A text that is the name of a ready mechanism is never taken as a path.

    Raises
    ------
    UnknownName
        If a text is neither the name of a ready mechanism, nor ends in ".json", nor is the path of a file; with the
        nearest spelling.
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
        return files.load(value)
    if not isinstance(value, str):
        raise InvalidType(
            f"mechanism: expected a Mechanism, the name of a ready one or the path of a JSON file, "
            f"got a {type(value).__name__}"
        )
    if value in library.names():
        return library.get(value)
    if value.endswith(".json") or os.path.isfile(value):
        return files.load(value)
    try:
        return library.get(value)
    except UnknownName as error:
        raise UnknownName(f"{error} (the path of a file ends in .json, or the file exists)") from None
