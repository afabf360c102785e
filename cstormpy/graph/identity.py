"""Entries of many mappings, and objects, compared with what they were, by machine code that asks CPython itself.

Python takes 60 ns to look up an entry and compare it; this takes ten, and a diagram has some hundreds of them to be
looked at before each run.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cstormpy.graph.code_cache import machine_for

#: Bytes from the beginning of an object to its type, of a float to its value, and of an array to its data, dimensions,
#: dtype and flags: part of their binary interfaces.
TYPE, VALUE, DATA, NDIM, SHAPE, DTYPE, FLAGS = 8, 16, 16, 24, 32, 56, 64
#: C_CONTIGUOUS, ALIGNED and, of arrays that are filled, WRITEABLE.
READABLE, WRITABLE = 0x101, 0x501

_CPYTHON = sys.implementation.name == "cpython" and object.__basicsize__ == 16


def is_cpython() -> bool:
    """Tell whether objects are laid out as CPython with its interpreter lock lays them out."""
    return _CPYTHON


#: Stands for an entry that is not to be there.
ABSENT = object()

#: What a row of the table compares: an entry of a mapping, its type only, the type of an object, the mapping of its
#: attributes, the length of a list, an entry of a list.
_ENTRY, _ENTRY_TYPE, _KIND, _ATTRIBUTES, _LENGTH, _ITEM = range(6)

#: Of each row: the mapping, object or list, the key or index, what is to stand there (0: nothing), and which of these.
_TEXT = f"""
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare void @Py_DecRef(ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)

define i64 @same(ptr %rows, i64 %from, i64 %count) {{
begin:
  %none = icmp sge i64 %from, %count
  br i1 %none, label %yes, label %loop
loop:
  %k = phi i64 [ %from, %begin ], [ %next, %go ]
  %first = mul i64 %k, 4
  %row = getelementptr i64, ptr %rows, i64 %first
  %held = load ptr, ptr %row, align 8
  %at1 = getelementptr i64, ptr %row, i64 1
  %key = load ptr, ptr %at1, align 8
  %index = load i64, ptr %at1, align 8
  %at2 = getelementptr i64, ptr %row, i64 2
  %wanted = load ptr, ptr %at2, align 8
  %at3 = getelementptr i64, ptr %row, i64 3
  %what = load i64, ptr %at3, align 8
  switch i64 %what, label %no [
    i64 {_ENTRY}, label %entry
    i64 {_ENTRY_TYPE}, label %entrytype
    i64 {_KIND}, label %kind
    i64 {_ATTRIBUTES}, label %attributes
    i64 {_LENGTH}, label %length
    i64 {_ITEM}, label %item
  ]
entry:
  %found = call ptr @PyDict_GetItem(ptr %held, ptr %key)
  br label %compare
entrytype:
  %typed = call ptr @PyDict_GetItem(ptr %held, ptr %key)
  %nothing = icmp eq ptr %typed, null
  br i1 %nothing, label %no, label %typeof
typeof:
  %at4 = getelementptr i8, ptr %typed, i64 {TYPE}
  %type = load ptr, ptr %at4, align 8
  br label %compare
kind:
  %at5 = getelementptr i8, ptr %held, i64 {TYPE}
  %own = load ptr, ptr %at5, align 8
  br label %compare
attributes:
  %mapping = call ptr @PyObject_GenericGetDict(ptr %held, ptr null)
  call void @Py_DecRef(ptr %mapping)
  br label %compare
length:
  %size = call i64 @PyList_Size(ptr %held)
  %sized = inttoptr i64 %size to ptr
  br label %compare
item:
  %listed = call ptr @PyList_GetItem(ptr %held, i64 %index)
  br label %compare
compare:
  %thing = phi ptr [ %found, %entry ], [ %type, %typeof ], [ %own, %kind ], [ %mapping, %attributes ],
    [ %sized, %length ], [ %listed, %item ]
  %same = icmp eq ptr %thing, %wanted
  br i1 %same, label %go, label %no
go:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %yes
yes:
  ret i64 %count
no:
  ret i64 %k
}}
"""


class OfType:
    """Stands for any object of exactly this type."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


class Entries:
    """Entries of mappings, each a dict, a key and what is to stand there; objects and lists that stay as they are.

    Parameters
    ----------
    entries : sequence of (dict, key, object)
        The object is to be the very same; `ABSENT` and `OfType` say something else.
    objects : sequence
        Whose types, and the mappings that hold their attributes, are to be the same.
    lists : sequence of list
        That are to hold the same objects.

    Examples
    --------
    >>> held, limits = {"gain": 2.0, "limits": [1, 2]}, [1, 2]
    >>> entries = Entries([(held, "gain", OfType(float)), (held, "limits", held["limits"]), (held, "step", ABSENT)])
    >>> held["gain"] = 3.0
    >>> entries.hold()
    True
    >>> held["limits"] = [1, 2]
    >>> entries.hold()
    False
    """

    def __init__(
        self,
        entries: Sequence[tuple[dict[Any, Any], Any, Any]],
        objects: Sequence[Any] = (),
        lists: Sequence[list[Any]] = (),
    ) -> None:
        self._entries = [*entries]  # whose addresses are theirs as long as they live
        self._objects = [(each, type(each), vars(each)) for each in objects]
        self._lists = [(each, [*each]) for each in lists]
        rows = [(id(held), id(key), *_wanted(what)) for held, key, what in self._entries]
        for each, kind, attributes in self._objects:
            rows += [(id(each), 0, id(kind), _KIND), (id(each), 0, id(attributes), _ATTRIBUTES)]
        for held, items in self._lists:
            rows += [(id(held), 0, len(items), _LENGTH)]
            rows += [(id(held), k, id(item), _ITEM) for k, item in enumerate(items)]
        self._table = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
        self._place, self._count = self._table.ctypes.data, len(rows)
        self._same = _same() if is_cpython() else None

    def hold(self) -> bool:
        """Tell whether all are as they were."""
        if self._same is None:
            return self.take(lambda found, wanted: False)
        return self._same(self._place, 0, self._count) == self._count

    def take(self, alike: Callable[[Any, Any], bool]) -> bool:
        """Take other objects that are like those before for these in mappings; return whether there are no others."""
        if self._same is None:
            return self._take_in_python(alike)
        row = -1
        while (row := self._same(self._place, row + 1, self._count)) < self._count:
            if row >= len(self._entries) or not self._take_one(row, alike):
                return False
        return True

    def _take_one(self, k: int, alike: Callable[[Any, Any], bool]) -> bool:
        held, key, wanted = self._entries[k]
        found = held.get(key, ABSENT)
        if found is wanted or (isinstance(wanted, OfType) and type(found) is wanted.kind):
            return True
        if found is ABSENT or wanted is ABSENT or isinstance(wanted, OfType) or not alike(found, wanted):
            return False
        self._entries[k] = held, key, found
        self._table[k, 2:] = _wanted(found)
        return True

    def _take_in_python(self, alike: Callable[[Any, Any], bool]) -> bool:
        if any(type(each) is not kind or vars(each) is not held for each, kind, held in self._objects):
            return False
        for held, items in self._lists:
            if len(held) != len(items) or any(x is not item for x, item in zip(held, items, strict=True)):
                return False
        return all([self._take_one(k, alike) for k in range(len(self._entries))])


def _wanted(what: Any) -> tuple[int, int]:
    """Return the address of what is to stand somewhere, and whether that is the type only."""
    if isinstance(what, OfType):
        return id(what.kind), _ENTRY_TYPE
    return 0 if what is ABSENT else id(what), _ENTRY


@functools.cache
def _same() -> Callable[[int, int, int], int]:
    """Return what gives the first row, from one on, that is not as it was, or how many there are if all are."""
    machine = machine_for("identity", b"3", lambda: _TEXT)
    # the interpreter lock is held meanwhile
    kinds = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(machine.address("same"))
    function.machine = machine  # type: ignore[attr-defined]  # which is to live as long
    return function
