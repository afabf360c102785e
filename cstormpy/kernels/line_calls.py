"""How the function of a diagram asks for a mechanism's straight line: by the address of its machine code.

What the kernels with loops take besides, structure and scratch memory, is passed along for their derivatives.
"""

from __future__ import annotations

import ctypes

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

__all__ = ["line_function", "line_loaded_motion", "line_motion", "line_tangent"]


def _call(address, *arrays):
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))
    return kind(int(address))(*(a.ctypes.data for a in arrays))


def line_motion(T, N, W, g, address):
    """Fill g like `entries_mechanisms.motion` by the line that stands at an address."""
    n = g.size // 5
    return _call(address[0], T, g, g[n:], g[2 * n :], g[3 * n :])


def line_loaded_motion(T, N, W, g, wrench, address):
    """Fill g like `entries_mechanisms.loaded_motion` by the line that stands at an address."""
    n = g.size // 5
    return _call(address[0], T, g, g[n:], g[2 * n :], wrench, g[3 * n :])


def line_function(numbers, given, filled, addresses):
    """Fill what a block or law gives, by the machine code of its trace; return 0."""
    return _call(addresses[0], numbers, given, filled)


def line_tangent(numbers, given, filled, dnumbers, dgiven, dfilled, addresses):
    """Fill the same, and its change along a direction; return 0."""
    _call(addresses[0], numbers, given, filled)
    return _call(addresses[1], numbers, dnumbers, given, dgiven, dfilled)


@intrinsic
def _line_of_three(typing_context, address, a, b, c):
    return types.int64(types.int64, a, b, c), _passing_on


@intrinsic
def _line_of_five(typing_context, address, a, b, c, d, f):
    return types.int64(types.int64, a, b, c, d, f), _passing_on


def _passing_on(context, builder, signature, values):
    """Call what stands at an address with the data of some arrays."""
    kinds = zip(signature.args[1:], values[1:], strict=True)
    pointers = [context.make_array(kind)(context, builder, value).data for kind, value in kinds]
    kind = ir.FunctionType(ir.IntType(64), [ir.DoubleType().as_pointer()] * len(pointers))
    return builder.call(builder.inttoptr(values[0], kind.as_pointer()), pointers)


@overload(line_function)
def _compiled_function(numbers, given, filled, addresses):
    return lambda numbers, given, filled, addresses: _line_of_three(addresses[0], numbers, given, filled)


@overload(line_tangent)
def _compiled_tangent(numbers, given, filled, dnumbers, dgiven, dfilled, addresses):
    def both(numbers, given, filled, dnumbers, dgiven, dfilled, addresses):
        _line_of_three(addresses[0], numbers, given, filled)
        return _line_of_five(addresses[1], numbers, dnumbers, given, dgiven, dfilled)

    return both


def _caller(loaded):
    """Return what compiled code calls: a function of an address, T, g and, if loaded, the wrenches."""

    def generate(context, builder, signature, values):
        number = ir.DoubleType().as_pointer()
        kinds = zip(signature.args[1:], values[1:], strict=True)
        T, g, *wrench = (context.make_array(kind)(context, builder, value) for kind, value in kinds)
        n = builder.udiv(g.nitems, ir.Constant(ir.IntType(64), 5))
        q, qd, u, y = (builder.gep(g.data, [builder.mul(n, ir.Constant(ir.IntType(64), k))]) for k in range(4))
        pointers = [T.data, q, qd, u, *(w.data for w in wrench), y]
        kind = ir.FunctionType(ir.IntType(64), [number] * len(pointers))
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), pointers)

    if loaded:

        @intrinsic
        def call(typing_context, address, T, g, wrench):
            return types.int64(types.int64, T, g, wrench), generate

    else:

        @intrinsic
        def call(typing_context, address, T, g):
            return types.int64(types.int64, T, g), generate

    return call


_line_motion, _line_loaded_motion = _caller(False), _caller(True)


@overload(line_motion)
def _compiled_motion(T, N, W, g, address):
    return lambda T, N, W, g, address: _line_motion(address[0], T, g)


@overload(line_loaded_motion)
def _compiled_loaded_motion(T, N, W, g, wrench, address):
    return lambda T, N, W, g, wrench, address: _line_loaded_motion(address[0], T, g, wrench)
