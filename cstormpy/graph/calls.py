"""Calls from Python straight into machine code: a built-in function that takes NumPy arrays by position.

Going through `ctypes` costs a call a microsecond and more, which is thirty times what an acrobot's dynamics take. The
function that is made here follows CPython's calling convention for built-in functions itself (PEP 590,
``METH_FASTCALL``) and reads the arrays' own records, whose layout is part of NumPy's binary interface.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph.emission import Emitter
from cstormpy.graph.machine import Machine
from cstormpy.graph.routine import Routine

__all__ = ["UNFIT", "call_text", "caller"]

#: What a call returns where an argument is not an array of float64, of the right size, contiguous and writable.
UNFIT = -2

#: Bytes from the beginning of an object to its type, and of an array to its data, dimensions, dtype and flags.
_TYPE, _DATA, _NDIM, _SHAPE, _DTYPE, _FLAGS = 8, 16, 24, 32, 56, 64
#: C_CONTIGUOUS, ALIGNED and, of arrays that are filled, WRITEABLE.
_READABLE, _WRITABLE = 0x101, 0x501
_METH_FASTCALL = 0x80

_CPYTHON = sys.implementation.name == "cpython" and object.__basicsize__ == 16


def call_text(routine: Routine, shapes: Mapping[str, tuple[int, ...]], like: Emitter) -> str:
    """Return ``PyObject *NAME_call(self, args, count)``, which calls ``NAME_one`` with the data of its arguments.

    `shapes` are those of the arguments. `self` is an array of integers: the addresses of NumPy's type of arrays, of
    its float64, and of the data that all samples share.
    """
    e = Emitter(1, like, prefix="c")
    checks = 0

    def field(record: str, offset: int, kind: str = "ptr") -> str:
        place = e.new(f"getelementptr inbounds i8, ptr {record}, i64 {offset}")
        return e.new(f"load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}")

    def require(kind: str, value: str, expected: object) -> None:
        nonlocal checks
        checks += 1
        fits = e.new(f"icmp eq {kind} {value}, {expected}")
        e.lines.extend([f"  br i1 {fits}, label %fit{checks}, label %unfit", f"fit{checks}:"])

    known = field("%self", _DATA)
    array_type, float64 = field(known, 0), field(known, 8)
    places = [field(known, 16 + 8 * k) for k in range(len(routine.shared))]
    require("i64", "%count", len(routine.rows) + len(routine.outputs))
    for k, name in enumerate((*routine.rows, *routine.outputs)):
        array, flags = field("%args", 8 * k), _WRITABLE if name in routine.outputs else _READABLE
        require("ptr", field(array, _TYPE), array_type)
        require("ptr", field(array, _DTYPE), float64)
        require("i32", e.new(f"and i32 {field(array, _FLAGS, 'i32')}, {flags}"), flags)
        require("i32", field(array, _NDIM, "i32"), len(shapes[name]))
        dimensions = field(array, _SHAPE)
        for axis, size in enumerate(shapes[name]):
            require("i64", field(dimensions, 8 * axis, "i64"), size)
        places.append(field(array, _DATA))
    like.declared.add("declare ptr @PyLong_FromLongLong(i64)")
    status = e.new(f"call i64 @{routine.name}_one({', '.join(f'ptr {p}' for p in places)})")
    return "\n".join(
        [
            f"define ptr @{routine.name}_call(ptr %self, ptr %args, i64 %count) {{",
            "begin:",
            *e.lines,
            f"  %answer = call ptr @PyLong_FromLongLong(i64 {status})",
            "  ret ptr %answer",
            "unfit:",
            f"  %no = call ptr @PyLong_FromLongLong(i64 {UNFIT})",
            "  ret ptr %no",
            "}\n",
        ]
    )


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
    if not _CPYTHON:
        return _through_ctypes(machine, name, shared, shapes)
    known = np.array([id(np.ndarray), id(np.dtype(np.float64)), *(a.ctypes.data for a in shared)], dtype=np.int64)
    method = _Method(name.encode(), machine.address(f"{name}_call"), _METH_FASTCALL, None)
    made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., int] = made(ctypes.addressof(method), known, None)
    # a built-in function has no place for what it needs but its own object, which Python may call as long as it likes
    _kept_alive[id(known)] = machine, method, tuple(shared)
    weakref.finalize(known, _kept_alive.pop, id(known), None)
    return function


_kept_alive: dict[int, Any] = {}


def _through_ctypes(
    machine: Machine, name: str, shared: Sequence[NDArray[np.float64]], shapes: Sequence[tuple[int, ...]]
) -> Callable[..., int]:
    """Return the same where objects are laid out otherwise, as in a Python without the interpreter lock."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * (len(shared) + len(shapes)))
    function, known = kind(machine.address(f"{name}_one")), [a.ctypes.data for a in shared]

    def call(*arrays: Any) -> int:
        if len(arrays) != len(shapes):
            return UNFIT
        for array, shape in zip(arrays, shapes, strict=True):
            if type(array) is not np.ndarray or array.dtype != np.float64 or array.shape != shape:
                return UNFIT
            if not array.flags.carray:
                return UNFIT
        return int(function(*known, *(a.ctypes.data for a in arrays)))

    call.keeps = machine, shared  # type: ignore[attr-defined]
    return call
