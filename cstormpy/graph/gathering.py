"""Floats, and arrays of them, copied from many mappings and lists into one array, by machine code that asks CPython.

NumPy takes half a microsecond for each piece that it joins to others; a diagram has some hundred of them to be read
before each run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph.code_cache import machine_for
from cstormpy.graph.identity import DATA, DTYPE, FLAGS, NDIM, READABLE, SHAPE, TYPE, VALUE, is_cpython

#: Of each row: the mapping or list, the key or index, where to, how many numbers (0: a float), which of them (-1: all),
#: and whether it is a list.
_WIDTH = 6
_TEXT = f"""
declare ptr @PyDict_GetItem(ptr, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)

define i64 @gather(ptr %rows, i64 %count, ptr %out, ptr %float, ptr %array, ptr %float64) {{
begin:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %yes, label %loop
loop:
  %k = phi i64 [ 0, %begin ], [ %next, %go ]
  %first = mul i64 %k, {_WIDTH}
  %row = getelementptr i64, ptr %rows, i64 %first
  %held = load ptr, ptr %row, align 8
  %at1 = getelementptr i64, ptr %row, i64 1
  %key = load ptr, ptr %at1, align 8
  %index = load i64, ptr %at1, align 8
  %at2 = getelementptr i64, ptr %row, i64 2
  %to = load i64, ptr %at2, align 8
  %at3 = getelementptr i64, ptr %row, i64 3
  %size = load i64, ptr %at3, align 8
  %at4 = getelementptr i64, ptr %row, i64 4
  %which = load i64, ptr %at4, align 8
  %at5 = getelementptr i64, ptr %row, i64 5
  %listed = load i64, ptr %at5, align 8
  %target = getelementptr double, ptr %out, i64 %to
  %inlist = icmp ne i64 %listed, 0
  br i1 %inlist, label %list, label %mapping
list:
  %length = call i64 @PyList_Size(ptr %held)
  %there = icmp slt i64 %index, %length
  br i1 %there, label %item, label %no
item:
  %itself = call ptr @PyList_GetItem(ptr %held, i64 %index)
  br label %look
mapping:
  %entry = call ptr @PyDict_GetItem(ptr %held, ptr %key)
  br label %look
look:
  %found = phi ptr [ %itself, %item ], [ %entry, %mapping ]
  %nothing = icmp eq ptr %found, null
  br i1 %nothing, label %no, label %kind
kind:
  %typeat = getelementptr i8, ptr %found, i64 {TYPE}
  %type = load ptr, ptr %typeat, align 8
  %single = icmp eq i64 %size, 0
  br i1 %single, label %number, label %numbers
number:
  %isfloat = icmp eq ptr %type, %float
  br i1 %isfloat, label %value, label %no
value:
  %valueat = getelementptr i8, ptr %found, i64 {VALUE}
  %one = load double, ptr %valueat, align 8
  store double %one, ptr %target, align 8
  br label %go
numbers:
  %isarray = icmp eq ptr %type, %array
  br i1 %isarray, label %dtype, label %no
dtype:
  %dtypeat = getelementptr i8, ptr %found, i64 {DTYPE}
  %its = load ptr, ptr %dtypeat, align 8
  %floats = icmp eq ptr %its, %float64
  br i1 %floats, label %flags, label %no
flags:
  %flagsat = getelementptr i8, ptr %found, i64 {FLAGS}
  %flag = load i32, ptr %flagsat, align 4
  %some = and i32 %flag, {READABLE}
  %readable = icmp eq i32 %some, {READABLE}
  br i1 %readable, label %shape, label %no
shape:
  %ndimat = getelementptr i8, ptr %found, i64 {NDIM}
  %ndim = load i32, ptr %ndimat, align 4
  %shapeat = getelementptr i8, ptr %found, i64 {SHAPE}
  %dims = load ptr, ptr %shapeat, align 8
  %axes = sext i32 %ndim to i64
  br label %axis
axis:
  %a = phi i64 [ 0, %shape ], [ %anext, %longer ]
  %total = phi i64 [ 1, %shape ], [ %product, %longer ]
  %within = icmp slt i64 %a, %axes
  br i1 %within, label %longer, label %sized
longer:
  %dimat = getelementptr i64, ptr %dims, i64 %a
  %dim = load i64, ptr %dimat, align 8
  %product = mul i64 %total, %dim
  %anext = add i64 %a, 1
  br label %axis
sized:
  %fits = icmp eq i64 %total, %size
  br i1 %fits, label %data, label %no
data:
  %dataat = getelementptr i8, ptr %found, i64 {DATA}
  %source = load ptr, ptr %dataat, align 8
  %whole = icmp slt i64 %which, 0
  br i1 %whole, label %copy, label %pick
pick:
  %pickat = getelementptr double, ptr %source, i64 %which
  %picked = load double, ptr %pickat, align 8
  store double %picked, ptr %target, align 8
  br label %go
copy:
  %c = phi i64 [ 0, %data ], [ %cnext, %copy ]
  %from = getelementptr double, ptr %source, i64 %c
  %onto = getelementptr double, ptr %target, i64 %c
  %moved = load double, ptr %from, align 8
  store double %moved, ptr %onto, align 8
  %cnext = add i64 %c, 1
  %further = icmp slt i64 %cnext, %size
  br i1 %further, label %copy, label %go
go:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %yes
yes:
  ret i64 1
no:
  ret i64 0
}}
"""


class Gathered:
    """Numbers that stand in mappings and lists, and where they are copied to.

    Parameters
    ----------
    entries : sequence of (dict or list, key, sequence of int or None, int)
        Each is a float, or an array of float64 in C order: which of its numbers are wanted, None for all, and where the
        first of them is to stand; the others follow. What stands there now tells which, and of how many numbers.

    Examples
    --------
    >>> held, out = {"gain": 2.0, "limits": np.array([3.0, 4.0, 5.0])}, np.zeros(3)
    >>> gathered = Gathered([(held, "gain", None, 0), (held, "limits", [0, 2], 1)])
    >>> gathered.fill(out), out.tolist()
    (True, [2.0, 3.0, 5.0])
    >>> held["gain"] = "much"
    >>> gathered.fill(out)
    False
    """

    def __init__(self, entries: Sequence[tuple[Any, Any, Sequence[int] | None, int]]) -> None:
        #: Mapping or list, key, where to, how many numbers, and which; whose addresses are theirs as long as they live.
        self._rows: list[tuple[Any, Any, int, int, int]] = []
        for held, key, some, first in entries:
            value = held[key]
            size = 0 if type(value) is float else int(value.size)
            if size == 0 or some is None or [*some] == [*range(size)]:
                self._rows.append((held, key, first, size, -1))
            else:
                self._rows += [(held, key, first + k, size, index) for k, index in enumerate(some)]
        rows = [
            (id(held), key if type(held) is list else id(key), first, size, which, type(held) is list)
            for held, key, first, size, which in self._rows
        ]
        self._table = np.array(rows, dtype=np.int64).reshape(len(rows), _WIDTH)
        self._place, self._count = self._table.ctypes.data, len(rows)
        self._gather = _gather() if is_cpython() else None
        #: The array that was filled last, and its address.
        self._out: tuple[Any, int] = None, 0

    @staticmethod
    def takes(held: Any, value: Any) -> bool:
        """Tell whether a value that stands there can be copied in this way."""
        if type(held) not in (dict, list):
            return False
        return type(value) is float or _is_plain(value)

    def fill(self, out: NDArray[np.float64]) -> bool:
        """Copy them into an array in C order; return False where another kind of thing, or size, stands there than did.

        What has been filled until then stays so.
        """
        if self._gather is None:
            return self._fill_in_python(out)
        if out is not self._out[0]:
            self._out = out, out.ctypes.data
        return self._gather(self._place, self._count, self._out[1], *_TYPES) == 1

    def _fill_in_python(self, out: NDArray[np.float64]) -> bool:
        for held, key, to, size, which in self._rows:
            try:
                value = held[key]
            except LookupError:
                return False
            if (type(value) is not float) if size == 0 else (not _is_plain(value) or value.size != size):
                return False
            if size == 0 or which >= 0:
                out[to] = value if size == 0 else value.ravel()[which]
            else:
                out[to : to + size] = value.ravel()
        return True


def _is_plain(value: Any) -> bool:
    plain = type(value) is np.ndarray and value.dtype is _FLOAT64 and value.size > 0
    return bool(plain and value.flags.c_contiguous and value.flags.aligned)


_FLOAT64 = np.dtype(np.float64)
_TYPES = id(float), id(np.ndarray), id(_FLOAT64)


@functools.cache
def _gather() -> Callable[..., int]:
    machine = machine_for("gathering", b"1", lambda: _TEXT)
    kinds = [ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 4]
    # the interpreter lock is held meanwhile
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(machine.address("gather"))
    function.machine = machine  # type: ignore[attr-defined]  # which is to live as long
    return function
