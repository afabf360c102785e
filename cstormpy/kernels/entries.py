"""Entries: kernels that Python calls. Numba is loaded where one is called for the first time, and not before."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

_entries: list[Entry] = []


def entry(
    signature: str, *, nogil: bool = False, exact: bool = False, given: int = 0
) -> Callable[[Callable[..., Any]], Entry]:
    """Make a function of one signature that is compiled at first use, or read from disk if it is there.

    ``nogil`` lets other threads run meanwhile; without it the scratch memory may be shared, because the
    interpreter lock is held throughout the call. ``exact`` is that of `steps.exact_step`. Arrays come from outside
    and none is returned: an entry does not count who refers to them, which would cost a call from Python 0.03 us for
    each. ``given``, of a kernel of rows, is how many of its arguments behind T, N and W it reads; it fills the others,
    and small mechanisms have it as a straight line too (`dynamics.kernel_lines`).
    """

    def decorate(function: Callable[..., Any]) -> Entry:
        made = Entry(function, signature, nogil, exact, given)
        _entries.append(made)
        return made

    return decorate


def entry_of_c(signature: str) -> Callable[[Callable[..., Any]], EntryOfC]:
    """Make a function that machine code calls by its `address`: it takes pointers."""

    def decorate(function: Callable[..., Any]) -> EntryOfC:
        made = EntryOfC(function, signature, nogil=True, exact=False)
        _entries.append(made)
        return made

    return decorate


def all_entries() -> list[Entry]:
    """Return the entries of all modules beside this one, which are imported, and whatever else has been declared."""
    for module in iter_modules([os.path.dirname(__file__)]):
        if module.name.startswith("entries_"):
            import_module(f"{__package__}.{module.name}")
    return list(_entries)


class Entry:
    """A kernel that Python calls: `load` returns it ready to run.

    Attributes
    ----------
    kept_as : str
        Its module and name, by which it is kept on disk.
    function : function
        What is compiled, as plain Python.
    signature : str
    nogil, exact : bool
    given : int
        How many arguments it reads, see `entry`; 0 where that is not said.
    of_c : bool
        Whether machine code calls it, as a function of C.
    """

    of_c = False

    def __init__(self, function: Callable[..., Any], signature: str, nogil: bool, exact: bool, given: int = 0) -> None:
        self.name = function.__name__
        self.kept_as = f"{function.__module__.rpartition('.')[2]}.{self.name}"
        self.function, self.signature, self.nogil, self.exact = function, signature, nogil, exact
        self.given = given
        self._ready: Any = None
        self._compiling = threading.Lock()

    def load(self) -> Any:
        """Return the compiled function; compile it, or read it from disk, the first time."""
        if self._ready is None:
            from cstormpy.kernels.compiling import compiled_entry

            with self._compiling:
                if self._ready is None:
                    self._ready = compiled_entry(self)
        return self._ready

    def is_ready(self) -> bool:
        """Tell whether it runs without being compiled: it is here, or on disk."""
        if self._ready is not None:
            return True
        from cstormpy.kernels.compiling import is_kept

        return bool(is_kept(self.kept_as))


class EntryOfC(Entry):
    """A kernel that machine code calls as a function of C; `load` returns it with its address."""

    of_c = True

    def address(self) -> int:
        """Return where it begins, ready to run."""
        return int(self.load()[1])
