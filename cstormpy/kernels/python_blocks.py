"""How the function of a diagram asks a block that computes in Python: by the address of what ctypes has made of it."""

from __future__ import annotations

import ctypes

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

__all__ = ["python_block"]

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def python_block(where, given, filled):
    """Return what a block says, see `cstormpy.simulation.compiled.python_calls`; that takes the interpreter's lock."""
    return _FUNCTION(int(where))(given.ctypes.data, filled.ctypes.data)


@intrinsic
def _called(typing_context, where, given, filled):
    def generate(context, builder, signature, values):
        number = ir.DoubleType().as_pointer()
        function = builder.inttoptr(values[0], ir.FunctionType(ir.IntType(64), [number, number]).as_pointer())
        arrays = zip(signature.args[1:], values[1:], strict=True)
        return builder.call(function, [context.make_array(a)(context, builder, value).data for a, value in arrays])

    return types.int64(types.int64, given, filled), generate


@overload(python_block)
def _compiled(where, given, filled):
    return lambda where, given, filled: _called(where, given, filled)
