"""Compiles kernels in processes beside this one, which finds them on disk when it comes to need them."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable

#: What such a process runs: the paths of this one, and the names of the kernels as `Entry.name` and its module say.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cstormpy.kernels.compile_processes import compile_here; compile_here(sys.argv[2:])"
)


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def compile_beside(*groups: tuple[str, ...]) -> int:
    """Start a process for each group of kernels, as ``"entries_sensitivity.sensitivity_one"``, in the order given.

    Kernels that are on disk are left out; with one processor, without a compiler, or with no place to keep kernels
    nothing is started. The processes end with this one. Returns how many were started.
    """
    from numba import config

    from cstormpy.kernels import compiling

    started, paths = 0, json.dumps([os.path.abspath(p) for p in sys.path])
    if config.DISABLE_JIT or processors() < 2:
        return started
    for group in groups:
        missing = [name for name in group if not compiling.is_kept(name)]
        if missing and compiling.can_keep():
            with contextlib.suppress(OSError):  # no process can be had: this one compiles what it needs
                _start([sys.executable, "-c", _START, paths, *missing])
                compiling.wait_silently(missing)
                started += 1
    return started


def _start(command: list[str]) -> None:
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)

    def end() -> None:
        process.kill()
        process.wait()

    atexit.register(end)


def compile_here(names: Iterable[str]) -> None:
    """Compile kernels one after the other: what a process beside does."""
    from importlib import import_module

    for name in names:
        module, _, kernel = name.partition(".")
        getattr(import_module(f"{__package__}.{module}"), kernel).load()
