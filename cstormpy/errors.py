"""The errors that cstormpy raises: each is a `CstormError` and the builtin that fits."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = [
    "BlockError",
    "CstormError",
    "DiagramError",
    "FileFormatError",
    "FileMissing",
    "FileReadError",
    "FileWriteError",
    "InvalidType",
    "InvalidValue",
    "NonFinite",
    "ShapeError",
    "SingularInertia",
    "UnknownArgument",
    "UnknownAttribute",
    "UnknownName",
    "reason_of",
    "shown",
    "unknown_name",
]

_LONGEST = 80
"""Characters of a value that a message shows."""
_DEPTH = 4
"""Lists within one another that a message shows."""


class CstormError(Exception):
    """Base of all errors that cstormpy raises on purpose."""


class InvalidValue(CstormError, ValueError):
    """A value that cannot be: a negative mass, a zero axis, a cycle of links."""


class ShapeError(InvalidValue):
    """An array of another shape than expected."""


class NonFinite(InvalidValue):
    """NaN or infinity, in what was given or in what came out of it."""


class FileFormatError(InvalidValue):
    """A file whose content is not what its reader expects."""


class FileReadError(FileFormatError, OSError):
    """A file that cannot be read: no permission, a folder, no name that a file can have."""


class FileMissing(FileReadError, FileNotFoundError):
    """A file that does not exist."""


class FileWriteError(FileFormatError, OSError):
    """A file that cannot be written: no such folder, no space, no permission. What was there before is still there."""


class InvalidType(CstormError, TypeError):
    """A value of a type that cannot serve here."""


class UnknownName(CstormError, LookupError):
    """A name that does not exist: of a link, a joint, a parameter."""


class UnknownAttribute(UnknownName, AttributeError):
    """A name after a dot that does not exist: of a port, a kind of block, a part of a result."""


class UnknownArgument(UnknownName, TypeError):
    """An argument that a class does not take."""


class SingularInertia(CstormError, ArithmeticError):
    """A passive joint that moves no inertia, so that its acceleration is undefined."""


class DiagramError(CstormError, RuntimeError):
    """A diagram that cannot run as it is wired: an open port, an algebraic loop, widths that do not fit."""


class BlockError(CstormError, RuntimeError):
    """A block that failed while the diagram ran; its own exception is the cause."""


def shown(value: Any) -> str:
    """Return how a message shows what was given: short things as they are written, others by what they are.

    >>> shown("fast"), shown(2.5), shown([1, "x"]), shown(10**400), shown(object())
    ("'fast'", '2.5', "[1, 'x']", 'a whole number of more than 20 digits', 'an object')
    """
    return _shown(value, _DEPTH)


def _shown(value: Any, depth: int) -> str:
    """Return how a message shows a value, and lists and the like within it so many deep: some hold themselves."""
    kind: type = type(value)
    if kind in (str, bytes):
        return repr(value[:_LONGEST]) + ("…" if len(value) > _LONGEST else "")
    if kind is int:
        return repr(value) if abs(value) < 10**20 else "a whole number of more than 20 digits"
    if value is None or value is Ellipsis or kind in (bool, float, complex):
        return repr(value)
    if kind in (list, tuple, dict, set) and len(value) <= 8:
        text = _written(value, depth - 1) if depth else ""
        if 0 < len(text) <= _LONGEST:
            return text
    if isinstance(value, type):
        return f"the class {value.__name__.lstrip('_')}"
    shape = getattr(value, "shape", None)
    if type(shape) is tuple and hasattr(value, "dtype"):
        if not shape and value.dtype.kind in "biufcSU":  # a scalar of NumPy's, or an array that holds one
            given = value.astype({"f": float, "c": complex}.get(value.dtype.kind, value.dtype))  # no long double
            return _shown(given.item(), depth)
        return f"an array of shape {shape}"
    name = kind.__name__.lstrip("_") or "object"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _written(value: Any, depth: int) -> str:
    """Return a list, tuple, dict or set as it is written, its entries as `shown` has them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(k, depth)}: {_shown(v, depth)}" for k, v in value.items()) + "}"
    inner = ", ".join(_shown(entry, depth) for entry in value)
    if isinstance(value, tuple):
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return f"[{inner}]" if isinstance(value, list) else f"{{{inner}}}" if value else "set()"


def reason_of(error: Exception) -> str:
    """Return what an error says, behind its type where it is none of ours.

    >>> reason_of(KeyError("elbow")), reason_of(InvalidValue("mass: expected a positive number, got 0"))
    ("KeyError: 'elbow'", 'mass: expected a positive number, got 0')
    """
    if isinstance(error, CstormError):
        return str(error)
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of a class of the user's that fails to tell
        return type(error).__name__


def unknown_name(kind: str, name: object, known: Iterable[str], error: type[UnknownName] = UnknownName) -> UnknownName:
    """Return the error for an unknown name, with the nearest spelling or the names that exist.

    >>> str(unknown_name("joint", "elbo", ["shoulder", "elbow"]))
    "joint 'elbo' does not exist; did you mean 'elbow'?"
    >>> str(unknown_name("parameter", "elbow.mass", ["elbow.axis", "forearm.mass"]))
    "parameter 'elbow.mass' does not exist; did you mean 'forearm.mass'?"
    >>> str(unknown_name("parameter", "hinge.k", ["boom.mass", "hinge.rest", "hinge.stiffness"]))
    "parameter 'hinge.k' does not exist; there are 'hinge.rest', 'hinge.stiffness'"
    >>> str(unknown_name("unit", "hz", ["s", "ms", "Hz"]))
    "unit 'hz' does not exist; did you mean 'Hz'?"
    """
    names = [str(k) for k in known]
    alike = [k for k in names if isinstance(name, str) and k.casefold() == name.casefold()]
    close = alike[:1] or (get_close_matches(name[:_LONGEST], names, n=1) if isinstance(name, str) else [])
    closest = alike[:1] or (get_close_matches(name[:_LONGEST], names, n=1, cutoff=0.9) if isinstance(name, str) else [])
    first, _, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    of_others = [k for k in names if k.rpartition(".")[2] == last and "." in k]
    of_it = [k for k in names if first and k.rpartition(".")[0] == first and not alike]
    if of_it and not 0 < len(of_others) <= 4:
        # whose they are, which they have in common, makes none of them near
        close = get_close_matches(last[:_LONGEST], [k.rpartition(".")[2] for k in of_it], n=1)
        close, closest, names = [f"{first}.{k}" for k in close], [], of_it
    if closest or (close and (not of_others or close[0] in of_others)):
        hint = f"did you mean {close[0]!r}?"
    elif 0 < len(of_others) <= 4:
        hint = f"did you mean {' or '.join(map(repr, of_others))}?"
    elif close:
        hint = f"did you mean {close[0]!r}?"
    elif names:
        hint = f"there are {', '.join(repr(k) for k in names[:12])}{', …' if len(names) > 12 else ''}"
    else:
        hint = "there are none"
    return error(f"{kind} {shown(name)} does not exist; {hint}")
