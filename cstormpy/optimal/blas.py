"""One thread for linear algebra while a solver works on matrices that are too small to share.

OpenBLAS gives even these to all cores, and spins while it waits: a search takes ten times as long where other work, as
that of other starts, wants the cores too. The wheels of NumPy and SciPy bring an OpenBLAS each.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_lock = threading.Lock()
_depth = 0
_before: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread within the block, in all threads of the process; blocks may overlap."""
    global _depth
    libraries = _libraries()
    with _lock:
        if _depth == 0:
            _before[:] = [get() for get, _ in libraries]
            for _, set_count in libraries:
                set_count(1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for (_, set_count), count in zip(libraries, _before, strict=True):
                    set_count(count)


@functools.cache
def _libraries() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """Return how to ask and to set the number of threads of each OpenBLAS that wheels have brought."""
    found = []
    for package in ("numpy", "scipy"):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for folder in (root.parent / f"{package}.libs", root / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                functions = _functions(path)
                if functions is not None:
                    found.append(functions)
    return tuple(found)


def _functions(path: Path) -> tuple[Callable[[], int], Callable[[int], None]] | None:
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    for name in _NAMES:
        get, set_count = getattr(library, name.format("get"), None), getattr(library, name.format("set"), None)
        if get is not None and set_count is not None:
            get.argtypes, get.restype = [], ctypes.c_int
            set_count.argtypes, set_count.restype = [ctypes.c_int], None
            return get, set_count
    return None
