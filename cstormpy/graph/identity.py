"""Entries of many mappings compared with what they were, by machine code that asks CPython itself.

Python takes 60 ns to look up an entry and compare it; this takes ten, and a diagram has some hundreds of them to be
looked at before each run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cstormpy.graph.calls import is_cpython
from cstormpy.graph.kept import machine_for

__all__ = ["ABSENT", "Entries", "of_type"]

#: Stands for an entry that is not to be there.
ABSENT = object()

#: Of each entry: the mapping, the key, what is to stand there (0: nothing), and whether that is its type only. The type
#: of an object stands 8 bytes from its beginning.
_TEXT = """
declare ptr @PyDict_GetItem(ptr, ptr)

define i64 @same(ptr %rows, i64 %count) {
begin:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %yes, label %loop
loop:
  %k = phi i64 [ 0, %begin ], [ %next, %go ]
  %first = mul i64 %k, 4
  %row = getelementptr i64, ptr %rows, i64 %first
  %mapping = load ptr, ptr %row, align 8
  %at1 = getelementptr i64, ptr %row, i64 1
  %key = load ptr, ptr %at1, align 8
  %at2 = getelementptr i64, ptr %row, i64 2
  %wanted = load ptr, ptr %at2, align 8
  %at3 = getelementptr i64, ptr %row, i64 3
  %typed = load i64, ptr %at3, align 8
  %found = call ptr @PyDict_GetItem(ptr %mapping, ptr %key)
  %whole = icmp eq i64 %typed, 0
  br i1 %whole, label %compare, label %look
look:
  %nothing = icmp eq ptr %found, null
  br i1 %nothing, label %no, label %kind
kind:
  %at4 = getelementptr i8, ptr %found, i64 8
  %type = load ptr, ptr %at4, align 8
  br label %compare
compare:
  %thing = phi ptr [ %found, %loop ], [ %type, %kind ]
  %same = icmp eq ptr %thing, %wanted
  br i1 %same, label %go, label %no
go:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %yes
yes:
  ret i64 1
no:
  ret i64 0
}
"""


class of_type:
    """Stands for any object of exactly this type."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


class Entries:
    """Entries of mappings, each a dict, a key and what is to stand there.

    Parameters
    ----------
    entries : sequence of (dict, key, object)
        The object is to be the very same; `ABSENT` and `of_type` say something else.

    Examples
    --------
    >>> held, limits = {"gain": 2.0, "limits": [1, 2]}, [1, 2]
    >>> entries = Entries([(held, "gain", of_type(float)), (held, "limits", held["limits"]), (held, "step", ABSENT)])
    >>> held["gain"] = 3.0
    >>> entries.hold()
    True
    >>> held["limits"] = [1, 2]
    >>> entries.hold()
    False
    """

    def __init__(self, entries: Sequence[tuple[dict[Any, Any], Any, Any]]) -> None:
        self._entries = [*entries]  # whose addresses are theirs as long as they live
        rows = [(id(held), id(key), *_wanted(what)) for held, key, what in self._entries]
        self._table = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
        self._place, self._count = self._table.ctypes.data, len(rows)
        self._same = _same() if is_cpython() else None

    def hold(self) -> bool:
        """Tell whether all are as they were."""
        if self._same is None:
            return self.take(lambda found, wanted: False)
        return self._same(self._place, self._count) == 1

    def take(self, alike: Callable[[Any, Any], bool]) -> bool:
        """Take other objects that are like those before for these; return whether there are no others."""
        for k, (held, key, wanted) in enumerate(self._entries):
            found = held.get(key, ABSENT)
            if found is wanted or (isinstance(wanted, of_type) and type(found) is wanted.kind):
                continue
            if found is ABSENT or wanted is ABSENT or isinstance(wanted, of_type) or not alike(found, wanted):
                return False
            self._entries[k] = held, key, found
            self._table[k, 2:] = _wanted(found)
        return True


def _wanted(what: Any) -> tuple[int, int]:
    """Return the address of what is to stand somewhere, and whether that is the type only."""
    if isinstance(what, of_type):
        return id(what.kind), 1
    return 0 if what is ABSENT else id(what), 0


@functools.cache
def _same() -> Callable[[int, int], int]:
    machine = machine_for("identity", b"1", lambda: _TEXT)
    # the interpreter lock is held meanwhile
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(machine.address("same"))
    function.machine = machine  # type: ignore[attr-defined]  # which is to live as long
    return function
