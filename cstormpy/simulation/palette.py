"""Offers the blocks of cstormpy to a bdsim, in every way that the package can be installed.

bdsim looks for blocks in ``<sys.path entry>/<package>/blocks`` and keeps what it found in a table on its class: the
first ``BDSim()`` of a process decides for all that follow. Here bdsim's own reader is pointed at the folder where the
blocks are, and its entries are added to the table of one instance; they serve beside whatever was found before.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from bdsim import BDSim
from bdsim.run_sim import _LazyBlockClass

from cstormpy.simulation.block_table import kept_table

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
