"""Private folders: what may run when it is read is read only where nobody else can have written it.

On POSIX a folder is private that belongs to this user or to root and that neither its group nor others may write to.
Above it nobody may replace it: no folder is writable by all but those with the sticky bit, as /tmp, and each belongs to
this user or to root. A file is read only if it has such an owner and such permissions itself, which is asked of the
open file, so that nothing can come in between. Elsewhere the system's own permissions have to do.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o644
"""Of files in such folders; the umask may take more away."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class NotPrivateError(OSError):
    """A folder that others may write to, or that is theirs; the message says what to do."""


def check_private(folder: Path) -> Path:
    """Return where a folder really is, which need not exist; refuse one that is not private.

    Raises
    ------
    NotPrivateError
        Naming the folder and whom it belongs to, or who may write to it.
    """
    real = Path(os.path.realpath(folder))
    if os.name != "posix":
        return real
    for place in (real, *real.parents):
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            continue
        if not _is_ours(status):
            raise NotPrivateError(f"{place}: belongs to another user ({_owner(status)})")
        if place == real and status.st_mode & _OTHERS_WRITE:
            raise NotPrivateError(f"{place}: others may write to it; have 'chmod go-w' take that away")
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise NotPrivateError(f"{place}: all may write to it, and so replace what is in it")
    return real


def make_private(folder: Path) -> bool:
    """Make a folder, and those above it that are missing, for this user alone; return whether it was missing."""
    try:
        folder.mkdir(FOLDER_MODE)
    except FileNotFoundError:
        if folder.parent.is_dir() or folder.parent == folder:
            raise  # none can be made there, as in /proc or on a drive that is not there
        make_private(folder.parent)
        return make_private(folder)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    return True


def read_private(path: Path) -> bytes | None:
    """Return the content of a file; None if there is none that nobody else can have written."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        with open(number, "rb") as file:
            status = os.fstat(number)
            private = os.name != "posix" or (_is_ours(status) and not status.st_mode & _OTHERS_WRITE)
            return file.read() if private and stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether something belongs to this user, or to root, who is seen as somebody else within a namespace."""
    return status.st_uid in (os.geteuid(), 0, os.stat("/").st_uid)


def _owner(status: os.stat_result) -> str:
    import pwd

    try:
        return pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return str(status.st_uid)
