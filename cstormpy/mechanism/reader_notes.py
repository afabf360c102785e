"""Shared parts of the readers of foreign files: remarks on a file, names, and places in the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, shown
from cstormpy.linkage.joints import Joint
from cstormpy.linkage.links import Link
from cstormpy.reporting import notice

_SHOWN = 4


class Notes:
    """Remarks on a file, each once with the things that it concerns."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, text: str, whom: str) -> None:
        """Keep that something is to be said of somebody."""
        self._found.setdefault(text, []).append(whom)

    def say(self, of: str) -> None:
        """Say a line for each thing of a file, with the first that it concerns."""
        for text, names in self._found.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            notice(f"{of}: {text}: {', '.join(names[:_SHOWN])}{more}")


def is_text(source: object, kind: str) -> bool:
    """Tell the text of a file of XML from its path."""
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidType(f"{kind}: expected the path of a file, or its text, got {shown(source)}")
    return isinstance(source, str) and "<" in source


def fresh_name(wish: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    while wish in taken:
        wish += "_"
    taken.add(wish)
    return wish


def refuse_twice(lines: dict[str, Any], kind: str, name: str, line: int | str) -> None:
    """Note the line in which a name stands, or refuse it where it stood in another one."""
    if name in lines:
        raise FileFormatError(f"line {line}: {kind} {shown(name)}: the name occurs twice, first in line {lines[name]}")
    lines[name] = line


def made(where: str, make: Callable[[], Any]) -> Any:
    """Return what a constructor makes; if it refuses, say where in the file."""
    try:
        return make()
    except CstormError as error:
        raise FileFormatError(f"{where}{error}") from None


def kept_link(
    notes: Notes, line: int | str, name: str, parent: str | None, joint: Joint, pose: Array, **body: Any
) -> Link:
    """Return a link; an inertia that no body can have but a file says is kept, and noted."""
    where = f"line {line}: "
    try:
        return Link(name, parent, joint, pose, **body)
    except InvalidValue as refused:
        # What is wrong in another way is refused again.
        link: Link = made(where, lambda: Link(name, parent, joint, pose, **body, allow_impossible=True))
        reason = str(refused).split("inertia: ", 1)[-1].split(",")[0].split(";")[0]
        notes.add("inertias that no body has are kept", f"{name!r} (line {line}: {reason})")
        return link
    except CstormError as error:
        raise FileFormatError(f"{where}{error}") from None
