"""Object code on disk: machine instructions and numbers, in a format that runs nothing when it is read.

A file bears the name of what it answers and of what it depends on: the sources that trace and emit, the processor, the
version of LLVM. What is damaged or foreign does not bear its own digest, and is compiled anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from cstormpy.cache_folder import root, say_not_kept
from cstormpy.file_writer import write_bytes
from cstormpy.graph.machine import Machine, fingerprint
from cstormpy.private_folder import FILE_MODE, check_private, make_private, read_private

#: Seconds without use after which a file is removed.
_OUT_OF_USE = 30 * 24 * 3600.0
_MAGIC = b"cstormpy object code 1\n"
#: Packages whose sources decide what a straight line is: what emits it, and all that a mechanism of symbols calls.
_SOURCES: tuple[str, ...] = ("graph", "kernels", "dynamics", "loops", "control", "mechanism", "sensitivity")
_SOURCES += ("linkage", "linkage/joints", "lie")


def _digest() -> str | None:
    """Return a digest of the sources; None where an installation has none."""
    digest, found = hashlib.sha256(), False
    package = Path(__file__).parent.parent
    for name in _SOURCES:
        for source in sorted((package / name).glob("*.py")):
            digest.update(f"{name}/{source.name}".encode() + hashlib.sha256(source.read_bytes()).digest())
            found = True
    return digest.hexdigest() if found else None


#: Taken now and not when a line is first made, when the sources may have become others than those imported.
_IMPORTED = _digest()


def _place(name: str, key: bytes) -> Path:
    if _IMPORTED is None:
        raise OSError("their source files are not there to tell old from new")
    digest = hashlib.sha256(key)
    for part in (_IMPORTED, fingerprint()):
        digest.update(part.encode())
    check_private(root())
    return check_private(root() / "lines") / f"{name}-{digest.hexdigest()[:24]}.object"


def is_kept(name: str, key: bytes) -> bool:
    """Tell whether code is on disk: no more than a glance."""
    try:
        return _place(name, key).exists()
    except OSError:
        return False


def machine_for(name: str, key: bytes, text: Callable[[], str], quick: bool = False, unrolled: bool = True) -> Machine:
    """Return the machine of a name and a key, from disk, or compiled from its text and kept there; see `Machine`."""
    try:
        place = _place(name, key)
    except OSError as error:
        say_not_kept(error)
        return Machine(text(), quick=quick, unrolled=unrolled)
    code = _read(place)
    if code is not None:
        with contextlib.suppress(OSError):
            os.utime(place)  # in use
        return Machine(code=code)
    machine = Machine(text(), quick=quick, unrolled=unrolled)
    try:
        make_private(place.parent)
        _remove_old(place.parent)
        content = _MAGIC + hashlib.sha256(machine.code).digest() + machine.code
        write_bytes(place, content, durable=False, mode=FILE_MODE)
    except OSError as error:
        say_not_kept(error)
    return machine


@functools.cache
def _remove_old(folder: Path) -> None:
    """Remove what nobody has used for long, once in a process: other sources and versions leave their files behind."""
    with contextlib.suppress(OSError):  # another process may be doing the same
        for place in folder.glob("*.object"):
            if place.stat().st_mtime < time.time() - _OUT_OF_USE:
                place.unlink()


def _read(place: Path) -> bytes | None:
    """Return the code of a file; None if there is none, or not as it was written."""
    content = read_private(place)
    if content is None:
        return None
    begin = len(_MAGIC) + 32
    sound = content.startswith(_MAGIC) and hashlib.sha256(content[begin:]).digest() == content[len(_MAGIC) : begin]
    return content[begin:] if sound else None
