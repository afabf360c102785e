"""The atomic writer of files: a file is replaced whole or stays as it is, whatever happens meanwhile.

The content goes to a draft beside the target, which takes the target's place once it is complete and on the disk.
With a full disk, a lost connection, Ctrl-C or an error of whoever makes the content the old file is still there.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from cstormpy.arrays import describe
from cstormpy.errors import FileMissing, FileReadError, FileWriteError, InvalidType, InvalidValue, shown

_NAME_KEPT = 40
"""Characters of the target's name in that of the draft, which must not become too long for the file system."""


def file_path(path: object, what: str = "path") -> Path:
    """Return the path that a user gave, of text, bytes or a path; `what` it was given as, for messages.

    >>> file_path("run.npz").name
    'run.npz'
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidType(f"{what}: expected the path of a file, got {describe(path)}")
    name = os.fsdecode(path)
    try:
        os.fsencode(name)
        fits = bool(name) and "\0" not in name
    except UnicodeEncodeError:  # half of a pair of surrogates
        fits = False
    if not fits:
        raise InvalidValue(f"{what}: {shown(name)} is not the name of a file")
    return Path(name)


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Return the content of a file, at most so many bytes of it.

    Raises
    ------
    FileReadError
        Naming the file; `FileMissing` if there is none.
    """
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError as error:
        kind = FileMissing if isinstance(error, FileNotFoundError) else FileReadError
        raised = kind(f"{path}: cannot be read: {error.strerror or error}")
        raised.errno = error.errno
        raise raised from error


def write_bytes(path: object, content: bytes, durable: bool = True, mode: int | None = None) -> None:
    """Replace a file by one of this content, or leave it; see `atomic_file`."""
    with atomic_file(path, durable, mode) as file:
        file.write(content)


def write_text(path: object, content: str) -> None:
    """Replace a file by one of this text in UTF-8, or leave it; see `atomic_file`."""
    write_bytes(path, content.encode("utf-8", "replace"))


@contextmanager
def atomic_file(path: object, durable: bool = True, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a draft to write to, which takes the place of a file at the end of the ``with`` block.

    Where the block raises, the draft is removed and the file stays as it was. The new file has the permissions of the
    old one; a symbolic link stays, and what it points to is replaced.

    Parameters
    ----------
    path : path
        The file, which may exist.
    durable : bool
        Wait until the disk has it, so that a power failure leaves the old file or the new one.
    mode : int, optional
        Permissions of the new file, less the umask, in place of the old one's.

    Raises
    ------
    FileWriteError
        Naming the file: there is no such folder, no permission, no space; or it is a folder, a device or a pipe.
    """
    given = file_path(path)
    draft: Path | None = None
    raw: _Draft | None = None
    ours = True
    try:
        target = Path(os.path.realpath(given))
        old = _status(given, target)
        draft = target.with_name(f".{target.name[:_NAME_KEPT]}.{secrets.token_hex(4)}")
        old = old if mode is None else None
        raw = _Draft(draft, old, 0o666 if mode is None else mode)
        with io.BufferedWriter(raw) as file:
            ours = False
            yield cast(BinaryIO, file)
            ours = True
            file.flush()
            raw.finish(old, durable)
        os.replace(draft, target)
        if durable:
            _settle(target.parent)
    except FileWriteError:
        raise
    except Exception as error:
        # the first error: what writes a format may trip over its own file, left half written, and say something else
        failed = raw.error if raw is not None else None
        if failed is None and ours and isinstance(error, OSError):
            failed = error
        if failed is None:
            raise
        raised = FileWriteError(f"{given}: cannot be written: {failed.strerror or failed}")
        raised.errno = failed.errno
        raise raised from failed
    finally:
        if draft is not None:
            with suppress(OSError):  # moved away, or never made
                draft.unlink()


class _Draft(io.FileIO):
    """A new file that remembers the first error in writing it."""

    error: OSError | None = None

    def __init__(self, path: Path, old: os.stat_result | None, mode: int) -> None:
        # nobody reads in the draft of a file what he could not read in the file
        mode = mode if old is None else stat.S_IMODE(old.st_mode) & 0o600
        super().__init__(path, "x", opener=lambda name, flags: os.open(name, flags, mode))

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            self.error = self.error or error
            raise

    def finish(self, old: os.stat_result | None, durable: bool) -> None:
        """Give it the owner and the permissions of the file that it is to replace."""
        if old is not None:
            if hasattr(os, "fchown"):
                for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
                    with suppress(OSError):  # only root gives files away
                        os.fchown(self.fileno(), owner, group)
            if hasattr(os, "fchmod"):
                os.fchmod(self.fileno(), stat.S_IMODE(old.st_mode))
        if durable:
            os.fsync(self.fileno())


def _status(given: Path, target: Path) -> os.stat_result | None:
    """Return the status of a file that is there and may be replaced; None if there is none."""
    try:
        old = target.stat()
    except FileNotFoundError:
        if not target.parent.is_dir():
            folder = target.parent if given.parent.is_dir() else given.parent  # the former where it is a link
            raise FileWriteError(f"{given}: cannot be written: there is no folder {str(folder)!r}") from None
        return None
    if stat.S_ISDIR(old.st_mode):
        raise FileWriteError(f"{given}: cannot be written: it is a folder")
    if not stat.S_ISREG(old.st_mode):
        raise FileWriteError(f"{given}: is no file, and will not be replaced by one")
    if not os.access(target, os.W_OK):
        raise FileWriteError(f"{given}: cannot be written: it is write-protected")
    return old


def _settle(folder: Path) -> None:
    """Have the disk know the new name, where the system can tell it to."""
    with suppress(OSError, AttributeError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
