"""Offers the blocks of cstormpy to a bdsim, in every way that the package can be installed.

bdsim looks for blocks in ``<sys.path entry>/<package>/blocks`` and keeps what it found in a table on its class: the
first ``BDSim()`` of a process decides for all that follow. Here bdsim's own reader is pointed at the folder where the
blocks are, and its entries are added to the table of one instance; they serve beside whatever was found before.

The table of blocks that bdsim reads from the sources of all blocks, kept on disk from one process to the next.

Reading it, with the documentation of two hundred blocks, takes longer than a run. What is kept bears the name of all
that it was made of: the sources of the blocks, bdsim's own reader, and Python's version.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from bdsim import BDSim
from bdsim import run_sim as bdsim_runs
from bdsim.run_sim import _LazyBlockClass

from cstormpy.cache_folder import root
from cstormpy.file_writer import write_bytes
from cstormpy.private_folder import FILE_MODE, check_private, make_private, read_private

_PACKAGE = "cstormpy"


#: Standard output belongs to the process: two threads that turn it aside at once would not both turn it back.
_ASIDE = threading.RLock()


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Catch what bdsim prints, such as that toolboxes are not installed."""
    with _ASIDE, contextlib.redirect_stdout(io.StringIO()) as printed:
        yield printed


@functools.cache
def our_blocks() -> dict[str, dict[str, Any]]:
    """Return the entries of our blocks as bdsim's table holds them: by their name in capitals."""
    folder = os.path.dirname(str(import_module(f"{_PACKAGE}.blocks").__file__))
    modules = BDSim._moduledicts
    try:
        with quiet():
            found = _Reader(folder).load_blocks(False, toolboxes=False)
    finally:
        BDSim._moduledicts = modules
    ours = {}
    for name, info in found.items():
        if info["path"] != [folder]:
            continue
        module = f"{_PACKAGE}.blocks.{os.path.basename(info['module'].rpartition('.')[2])}"
        lazy = _LazyBlockClass(module, info["classname"])
        ours[name] = {**info, "module": module, "package": _PACKAGE, "class": lazy}
    return ours


class _Reader(BDSim):
    """A bdsim that only reads a folder of blocks."""

    def __init__(self, folder: str) -> None:
        self.packages = folder

    def load_blocks(self, verbose: bool = True, toolboxes: bool = True) -> dict[str, dict[str, Any]]:
        return kept_table(self, super().load_blocks, verbose, toolboxes)


#: Of each block by its name in capitals what bdsim knows of it; and its modules.
Table = dict[str, dict[str, Any]]
#: So many tables are kept: of other versions, and of other folders with blocks.
_MOST = 16


def kept_table(reader: Any, read: Callable[..., Table], verbose: bool, toolboxes: bool) -> Table:
    """Return what a bdsim reads of (verbose, toolboxes), from disk where no source has changed.

    Parameters
    ----------
    reader : BDSim
        Its `packages` are further folders with blocks, separated by colons.
    read : callable
        Its own way to read, which also sets `BDSim._moduledicts`.
    """
    packages = reader.packages
    sources = dict(_sources(packages))
    given = repr((sys.version, toolboxes, packages, os.environ.get("BDSIMPATH")))
    digest = hashlib.sha256(given.encode())
    for path, content in sources.items():
        digest.update(repr((path, len(content))).encode() + content)
    try:
        check_private(root())
        place = check_private(root() / "blocks") / f"blocks-{digest.hexdigest()[:24]}.json"
    except OSError:  # where code is compiled it is said that nothing can be kept
        return read(verbose, toolboxes=toolboxes)
    found = _taken(read_private(place))
    if found is None:
        complaints: list[Any] = []
        with _noted(reader, complaints):
            table = read(verbose, toolboxes=toolboxes)
        found = table, BDSim._moduledicts
        content = _written(*found)
        folders = {os.path.dirname(path) for path in sources}
        whole = folders.issuperset(folder for info in table.values() for folder in info["path"])
        again = _taken(content)
        same = again is not None and (_plain(again[0]), again[1]) == (_plain(table), found[1])
        if whole and same and not complaints:  # else it is to complain each time
            with contextlib.suppress(OSError):
                make_private(place.parent)
                write_bytes(place, content, durable=False, mode=FILE_MODE)
                _remove_old(place.parent)
    table, BDSim._moduledicts = found
    return table


@contextlib.contextmanager
def _noted(reader: Any, complaints: list[Any]) -> Iterator[None]:
    """Note of which sources a bdsim says that they are no Python."""
    say = reader._print_exception_red

    def noted(*what: Any) -> None:
        complaints.append(what)
        say(*what)

    reader._print_exception_red = noted
    try:
        yield
    finally:
        del reader._print_exception_red


def _sources(packages: str | None) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file that bdsim may read, and of the reader itself."""
    yield str(bdsim_runs.__file__), Path(str(bdsim_runs.__file__)).read_bytes()
    named = [name for given in (os.environ.get("BDSIMPATH"), packages) if given for name in given.split(":")]
    folders = [name for name in named if os.sep in name or "/" in name]
    # any word in the reader's code may be the name of a package that it looks for
    for name in dict.fromkeys([*_words(BDSim.load_blocks.__code__), *named]):
        folders += [os.path.join(entry, name, "blocks") for entry in sys.path if entry]
    for folder in filter(os.path.isdir, folders):
        for path in sorted(Path(folder).glob("*.py")):
            if path.name == "__init__.py" or not path.name.startswith("_"):
                with contextlib.suppress(OSError):
                    yield str(path), path.read_bytes()


def _words(constant: Any) -> list[str]:
    """Return all names among the constants of a function, and of those within it."""
    if isinstance(constant, types.CodeType):
        constant = constant.co_consts
    if isinstance(constant, tuple):
        return [word for each in constant for word in _words(each)]
    return [constant] if isinstance(constant, str) and constant.isidentifier() else []


def _written(table: Table, modules: Any) -> bytes:
    """Return a table as text, behind its digest."""
    content = json.dumps([_plain(table), modules], default=lambda _: None).encode()
    return hashlib.sha256(content).hexdigest().encode() + content


def _taken(content: bytes | None) -> tuple[Table, Any] | None:
    """Return a table from its text; None if there is none, or not as it was written."""
    if content is None or hashlib.sha256(content[64:]).hexdigest().encode() != content[:64]:
        return None
    plain, modules = json.loads(content[64:])
    return {name: _entry(info) for name, info in plain.items()}, modules


def _plain(table: Table) -> Table:
    """Return a table without what is made anew from the names in it."""
    return {name: {key: value for key, value in info.items() if key != "class"} for name, info in table.items()}


def _entry(info: dict[str, Any]) -> dict[str, Any]:
    params = {name: tuple(said) for name, said in info["params"].items()}
    given = {key: params.get(key[:-1]) for key in ("inputs", "outputs")}
    return {**info, **given, "params": params, "class": bdsim_runs._LazyBlockClass(info["module"], info["classname"])}


def _remove_old(folder: Path) -> None:
    """Remove the tables that were written first, but for some."""
    for path in sorted(folder.glob("blocks-*.json"), key=os.path.getmtime)[:-_MOST]:
        path.unlink()
