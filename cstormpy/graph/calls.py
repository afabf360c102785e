"""Calls from Python straight into machine code: a built-in function that takes NumPy arrays by position.

Going through `ctypes` costs a call a microsecond and more, which is thirty times what an acrobot's dynamics take. The
function that is made here follows CPython's calling convention for built-in functions itself (PEP 590,
``METH_FASTCALL``) and reads the arrays' own records, whose layout is part of NumPy's binary interface.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph.emission import LANES, Emitter
from cstormpy.graph.identity import DATA, DTYPE, FLAGS, NDIM, READABLE, SHAPE, TYPE, WRITABLE, is_cpython
from cstormpy.graph.machine import Machine
from cstormpy.graph.routine import Routine

#: What a call returns where an argument is not an array of float64, of the right size, contiguous and writable.
UNFIT = -2

_METH_FASTCALL = 0x80


class _Arguments:
    """Writes the instructions that read a built-in function's arguments; what is not as it must be goes to ``unfit``.

    `self` is an array of integers: the addresses of NumPy's type of arrays, of its float64, and of the data that all
    samples share.
    """

    def __init__(self, like: Emitter, shared: int, count: int) -> None:
        self.e = Emitter(1, like, prefix="c")
        self._checks = 0
        known = self.field("%self", DATA)
        self._array_type, self._float64 = self.field(known, 0), self.field(known, 8)
        self.places = [self.field(known, 16 + 8 * k) for k in range(shared)]
        self.require("eq i64", "%count", count)

    def field(self, record: str, offset: int, kind: str = "ptr") -> str:
        place = self.e.new(f"getelementptr inbounds i8, ptr {record}, i64 {offset}")
        return self.e.new(f"load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}")

    def require(self, comparison: str, value: str, expected: object) -> None:
        self._checks += 1
        fits = self.e.new(f"icmp {comparison} {value}, {expected}")
        self.e.lines.extend([f"  br i1 {fits}, label %fit{self._checks}, label %unfit", f"fit{self._checks}:"])

    def array(self, k: int, shape: Sequence[object], flags: int) -> str:
        """Take argument k, an array of float64 of a shape; return its shape in memory."""
        array = self.field("%args", 8 * k)
        self.require("eq ptr", self.field(array, TYPE), self._array_type)
        self.require("eq ptr", self.field(array, DTYPE), self._float64)
        self.require("eq i32", self.e.new(f"and i32 {self.field(array, FLAGS, 'i32')}, {flags}"), flags)
        self.require("eq i32", self.field(array, NDIM, "i32"), len(shape))
        dimensions = self.field(array, SHAPE)
        for axis, size in enumerate(shape):
            if size is not None:
                self.require("eq i64", self.field(dimensions, 8 * axis, "i64"), size)
        self.places.append(self.field(array, DATA))
        return dimensions

    def function(self, name: str, like: Emitter, answer: str) -> str:
        """Return the text of the function, whose answer, an integer, stands in a register."""
        like.declared.add("declare ptr @PyLong_FromLongLong(i64)")
        return "\n".join(
            [
                f"define ptr @{name}(ptr %self, ptr %args, i64 %count) {{",
                "begin:",
                *self.e.lines,
                f"  %answer = call ptr @PyLong_FromLongLong(i64 {answer})",
                "  ret ptr %answer",
                "unfit:",
                f"  %no = call ptr @PyLong_FromLongLong(i64 {UNFIT})",
                "  ret ptr %no",
                "}\n",
            ]
        )


def _flags(routine: Routine, name: str) -> int:
    return WRITABLE if name in routine.outputs else READABLE


def call_text(routine: Routine, shapes: Mapping[str, tuple[int, ...]], like: Emitter) -> str:
    """Return ``PyObject *NAME_call(self, args, count)``, which calls ``NAME_one`` with the data of its arguments.

    `shapes` are those of the arguments.
    """
    names = (*routine.rows, *routine.outputs)
    given = _Arguments(like, len(routine.shared), len(names))
    for k, name in enumerate(names):
        given.array(k, shapes[name], _flags(routine, name))
    status = given.e.new(f"call i64 @{routine.name}_one({', '.join(f'ptr {p}' for p in given.places)})")
    return given.function(f"{routine.name}_call", like, status)


def batch_text(routine: Routine, shapes: Mapping[str, tuple[int, ...]], like: Emitter) -> str:
    """Return ``PyObject *NAME_batch(self, args, count)``, which calls ``NAME_rows`` with the data of its arguments.

    `shapes` are those of a row of the arguments; behind the arrays stand the first row and the one behind the last.
    Other threads of Python run meanwhile.
    """
    names = (*routine.rows, *routine.outputs)
    given = _Arguments(like, len(routine.shared), len(names) + 2)
    e, rows = given.e, ""
    for k, name in enumerate(names):
        dimensions = given.array(k, (rows or None, *shapes[name]), _flags(routine, name))
        rows = rows or given.field(dimensions, 0, "i64")
    like.declared |= {
        "declare i64 @PyLong_AsLongLong(ptr)",
        "declare ptr @PyEval_SaveThread()",
        "declare void @PyEval_RestoreThread(ptr)",
    }
    bounds = [given.field("%args", 8 * (len(names) + k)) for k in range(2)]
    start, stop = (e.new(f"call i64 @PyLong_AsLongLong(ptr {bound})") for bound in bounds)
    given.require("sge i64", start, 0)
    given.require("sle i64", stop, rows)
    given.require("sge i64", stop, LANES)
    state = e.new("call ptr @PyEval_SaveThread()")
    pointers = ", ".join(f"ptr {p}" for p in given.places)
    bad = e.new(f"call i64 @{routine.name}_rows({pointers}, i64 {start}, i64 {stop})")
    e.lines.append(f"  call void @PyEval_RestoreThread(ptr {state})")
    return given.function(f"{routine.name}_batch", like, bad)


class _Method(ctypes.Structure):
    """CPython's record of a built-in function (``PyMethodDef``)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def caller(
    machine: Machine, name: str, shared: Sequence[NDArray[np.float64]], shapes: Sequence[tuple[int, ...]]
) -> Callable[..., int]:
    """Return the function of Python that calls the routine `name` of a machine for one sample.

    It takes the arrays of a sample and those to be filled, which have these shapes, by position, and returns the
    routine's status, or `UNFIT` where it has looked at no number because an argument is not as it must be: an array
    of float64, contiguous, of its shape, and writable where it is filled. It keeps all that it needs alive.
    """
    if not is_cpython():
        return _through_ctypes(machine, f"{name}_one", shared, shapes)
    return _built_in(machine, f"{name}_call", shared)


def batch_caller(
    machine: Machine, name: str, shared: Sequence[NDArray[np.float64]], shapes: Sequence[tuple[int, ...]]
) -> Callable[..., int]:
    """Return the function of Python that calls the routine `name` of a machine for rows of arrays.

    Behind the arrays, each with a row for each sample, it takes the first row and the one behind the last; there are
    `LANES` rows at least. It returns what ``NAME_rows`` does, or `UNFIT`, see `caller`.
    """
    if not is_cpython():
        return _through_ctypes(machine, f"{name}_rows", shared, shapes, bounds=2)
    return _built_in(machine, f"{name}_batch", shared)


def _built_in(machine: Machine, name: str, shared: Sequence[NDArray[np.float64]]) -> Callable[..., int]:
    known = np.array([id(np.ndarray), id(np.dtype(np.float64)), *(a.ctypes.data for a in shared)], dtype=np.int64)
    method = _Method(name.encode(), machine.address(name), _METH_FASTCALL, None)
    made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., int] = made(ctypes.addressof(method), known, None)
    # a built-in function has no place for what it needs but its own object, which Python may call as long as it likes
    _kept_alive[id(known)] = machine, method, tuple(shared)
    # not at the end of the process, where the function may live longer and still look at its record
    weakref.finalize(known, _kept_alive.pop, id(known), None).atexit = False
    return function


_kept_alive: dict[int, Any] = {}


def _through_ctypes(
    machine: Machine,
    name: str,
    shared: Sequence[NDArray[np.float64]],
    shapes: Sequence[tuple[int, ...]],
    bounds: int = 0,
) -> Callable[..., int]:
    """Return the same where objects are laid out otherwise, as in a Python without the interpreter lock.

    With two `bounds` of rows the arrays have one more dimension.
    """
    pointers = [ctypes.c_void_p] * (len(shared) + len(shapes))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *pointers, *[ctypes.c_int64] * bounds)(machine.address(name))
    known, count = [a.ctypes.data for a in shared], len(shapes)

    def call(*given: Any) -> int:
        arrays, limits = given[:count], given[count:]
        if len(arrays) != count or len(limits) != bounds:
            return UNFIT
        for array, shape in zip(arrays, shapes, strict=True):
            if type(array) is not np.ndarray or array.dtype != np.float64 or not array.flags.carray:
                return UNFIT
            if array.shape != ((len(arrays[0]), *shape) if bounds else shape):
                return UNFIT
        if bounds and not (0 <= limits[0] and LANES <= limits[1] <= len(arrays[0])):
            return UNFIT
        return int(function(*known, *(a.ctypes.data for a in arrays), *limits))

    call.keeps = machine, shared  # type: ignore[attr-defined]
    return call
