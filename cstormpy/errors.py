"""The errors that cstormpy raises: each is a `CstormError` and the builtin that fits."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BlockError",
    "CstormError",
    "DiagramError",
    "FileFormatError",
    "FileWriteError",
    "InvalidType",
    "InvalidValue",
    "NonFinite",
    "ShapeError",
    "SingularInertia",
    "UnknownAttribute",
    "UnknownName",
    "unknown_name",
]


class CstormError(Exception):
    """Base of all errors that cstormpy raises on purpose."""


class InvalidValue(CstormError, ValueError):
    """A value that can not be: a negative mass, a zero axis, a cycle of links."""


class ShapeError(InvalidValue):
    """An array of another shape than expected."""


class NonFinite(InvalidValue):
    """NaN or infinity, in what was given or in what came out of it."""


class FileFormatError(InvalidValue):
    """A file whose content is not what its reader expects."""


class FileWriteError(FileFormatError, OSError):
    """A file that cannot be written: no such folder, no space, no permission. What was there before is still there."""


class InvalidType(CstormError, TypeError):
    """A value of a type that can not serve here."""


class UnknownName(CstormError, LookupError):
    """A name that does not exist: of a link, a joint, a parameter."""


class UnknownAttribute(UnknownName, AttributeError):
    """A name after a dot that does not exist: of a port, a kind of block, a part of a result."""


class SingularInertia(CstormError, ArithmeticError):
    """A passive joint that moves no inertia, so that its acceleration is undefined."""


class DiagramError(CstormError, RuntimeError):
    """A diagram that can not run as it is wired: an open port, an algebraic loop, widths that do not fit."""


class BlockError(CstormError, RuntimeError):
    """A block that failed while the diagram ran; its own exception is the cause."""


def unknown_name(kind: str, name: object, known: Iterable[str], error: type[UnknownName] = UnknownName) -> UnknownName:
    """Return the error for an unknown name, with the nearest spelling or the names that exist.

    >>> str(unknown_name("joint", "elbo", ["shoulder", "elbow"]))
    "joint 'elbo' does not exist; did you mean 'elbow'?"
    """
    names = [str(k) for k in known]
    close = get_close_matches(str(name), names, n=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif names:
        shown = ", ".join(repr(k) for k in names[:12]) + (", …" if len(names) > 12 else "")
        hint = f"there are {shown}"
    else:
        hint = "there are none"
    return error(f"{kind} {name!r} does not exist; {hint}")
