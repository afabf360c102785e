"""Lanes in compiled code: numba's type of several float64 side by side, and what `lanes` becomes on them."""

import math
import operator

from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import models, overload, register_model

from cstormpy.kernels import lanes as plain
from cstormpy.kernels.lanes import TILE, lane, lane_by_lane, store_tile, with_lane
from cstormpy.kernels.layout import LANES as WIDTH

_CONTRACT = ("contract",)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


class LanesType(types.Type):
    """numba's type of `WIDTH` float64 side by side."""

    def __init__(self):
        super().__init__(name=f"Lanes{WIDTH}")


LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


def _is_lanes(number):
    return isinstance(number, LanesType)


# Arithmetic ---------------------------------------------------------------------------------------


def _splat(builder, scalar):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, WIDTH), None))


def _widen(builder, number_type, value):
    return value if _is_lanes(number_type) else _splat(builder, value)


class _Binary(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) != 2 or not any(map(_is_lanes, args)):
            return None
        if not all(_is_lanes(a) or isinstance(a, types.Float) for a in args):
            return None
        return signature(LANES, *(a if _is_lanes(a) else types.float64 for a in args))


def _register_binary(operation, instruction):
    infer_global(operation)(type(f"_{instruction}", (_Binary,), {"key": operation}))

    def lower(context, builder, sig, args):
        a, b = (_widen(builder, t, v) for t, v in zip(sig.args, args, strict=True))
        return getattr(builder, instruction)(a, b, flags=_CONTRACT)

    for a, b in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(operation, a, b)(lower)


_register_binary(operator.add, "fadd")
_register_binary(operator.sub, "fsub")
_register_binary(operator.mul, "fmul")
_register_binary(operator.truediv, "fdiv")


@infer_global(operator.neg)
class _Negation(AbstractTemplate):
    key = operator.neg

    def generic(self, args, kws):
        return signature(LANES, LANES) if len(args) == 1 and _is_lanes(args[0]) else None


@lower_builtin(operator.neg, LanesType)
def _lower_negation(context, builder, sig, args):
    return builder.fneg(args[0])


# Primitives: plain Python for one float, machine code for floats and lanes ------------------------------


def _primitive(function, typer):
    """Let compiled code call `function`: `typer` maps argument types to a signature, what is decorated emits it."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            return typer(*args)

    infer_global(function)(Template)
    return lower_builtin(function, types.VarArg(types.Any))


def _as_number(number_type):
    """Return the type of a number: lanes, or a float (which an integer literal becomes)."""
    return LANES if _is_lanes(number_type) else types.float64


def _element(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _vector_at(context, builder, array_type, array, index):
    return builder.bitcast(_element(context, builder, array_type, array, index), _VECTOR.as_pointer())


def _constant(value):
    return ir.Constant(_INT64, value)


@_primitive(plain.zero_lanes, lambda: signature(LANES))
def _zero_lanes(context, builder, sig, args):
    # else LLVM puts lanes down wherever the stack begins, most of them across two lines of the cache
    builder.function.attributes.alignstack = 8 * WIDTH
    return ir.Constant(_VECTOR, None)


@_primitive(plain.width, lambda like: signature(types.int64, like))
def _width(context, builder, sig, args):
    return _constant(WIDTH if _is_lanes(sig.args[0]) else 1)


@_primitive(plain.load, lambda W, i, like: signature(_as_number(like), W, types.int64, like))
def _load(context, builder, sig, args):
    W, i, _ = args
    if not _is_lanes(sig.return_type):
        return builder.load(_element(context, builder, sig.args[0], W, i))
    return _load_vector(context, builder, sig, (W, builder.mul(i, _constant(WIDTH))))


@_primitive(plain.store, lambda W, i, x: signature(types.none, W, types.int64, _as_number(x)))
def _store(context, builder, sig, args):
    W, i, x = args
    if not _is_lanes(sig.args[2]):
        builder.store(x, _element(context, builder, sig.args[0], W, i))
        return context.get_dummy_value()
    return _store_vector(context, builder, sig, (W, builder.mul(i, _constant(WIDTH)), x))


@_primitive(plain.load_tile, lambda W, position: signature(LANES, W, types.int64))
def _load_vector(context, builder, sig, args):
    value = builder.load(_vector_at(context, builder, sig.args[0], *args), typ=_VECTOR)
    value.align = 8
    return value


@_primitive(plain.store_tile, lambda W, position, x: signature(types.none, W, types.int64, LANES))
def _store_vector(context, builder, sig, args):
    builder.store(args[2], _vector_at(context, builder, sig.args[0], *args[:2])).align = 8
    return context.get_dummy_value()


@_primitive(plain.fill_zeros, lambda W, position, count: signature(types.none, W, types.int64, types.int64))
def _fill_zeros(context, builder, sig, args):
    W, position, count = args
    place = _element(context, builder, sig.args[0], W, position)
    cgutils.memset(builder, place, builder.mul(count, _constant(8)), 0)
    return context.get_dummy_value()


@_primitive(plain.tile_width, lambda: signature(types.int64))
def _tile_width(context, builder, sig, args):
    return _constant(WIDTH)


@_primitive(plain.is_unrolled, lambda: signature(types.boolean))
def _is_unrolled(context, builder, sig, args):
    return ir.Constant(ir.IntType(1), 0)


@_primitive(
    plain.transpose_tiles, lambda W, i, out, to, by: signature(types.none, W, types.int64, out, *[types.int64] * 2)
)
def _transpose_tiles(context, builder, sig, args):
    W, position, out, to, pitch = args
    load, store = signature(LANES, sig.args[0], types.int64), signature(types.none, sig.args[2], types.int64, LANES)
    rows = [
        _load_vector(context, builder, load, (W, builder.add(position, _constant(WIDTH * k)))) for k in range(WIDTH)
    ]
    rows = _transposed(builder, rows)
    for s, row in enumerate(rows):
        place = builder.add(to, builder.mul(pitch, _constant(s)))
        _store_vector(context, builder, store, (out, place, row))
    return context.get_dummy_value()


@_primitive(plain.lane, lambda x, k: signature(types.float64, _as_number(x), types.int64))
def _lane(context, builder, sig, args):
    return builder.extract_element(*args) if _is_lanes(sig.args[0]) else args[0]


@_primitive(plain.with_lane, lambda x, k, value: signature(_as_number(x), _as_number(x), types.int64, types.float64))
def _with_lane(context, builder, sig, args):
    return builder.insert_element(args[0], args[2], args[1]) if _is_lanes(sig.args[0]) else args[2]


@_primitive(plain.lane_by_lane, lambda numbers: signature(numbers, numbers))
def _lane_by_lane(context, builder, sig, args):
    return context.make_tuple(
        builder, sig.return_type, _transposed(builder, cgutils.unpack_tuple(builder, args[0], WIDTH))
    )


def _transposed(builder, rows):
    """Return the first lanes of all rows, the second ones, and so on: blocks are exchanged that double in size."""
    step = 1
    while step < WIDTH:
        rows = [_interleaved(builder, rows, k, step) for k in range(WIDTH)]
        step *= 2
    return rows


def _interleaved(builder, rows, k, step):
    """Return row k after blocks of `step` rows and lanes off the diagonal were exchanged."""
    a, b = rows[k & ~step], rows[k | step]
    upper = k & step
    lanes = [(j & ~step) + upper + (WIDTH if j & step else 0) for j in range(WIDTH)]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT32, WIDTH), lanes))


@overload(plain.put_tile)
def _put_tile(out, position, pitch, count, numbers):
    if not _is_lanes(numbers[0]):

        def floats(out, position, pitch, count, numbers):
            for k in range(TILE):
                out[position + k] = numbers[k]

        return floats

    def lanes(out, position, pitch, count, numbers):
        a, b, c, d, e, f, g, h = lane_by_lane(numbers)
        store_tile(out, position, a)
        if count > 1:
            store_tile(out, position + pitch, b)
        if count > 2:
            store_tile(out, position + 2 * pitch, c)
        if count > 3:
            store_tile(out, position + 3 * pitch, d)
        if count > 4:
            store_tile(out, position + 4 * pitch, e)
        if count > 5:
            store_tile(out, position + 5 * pitch, f)
        if count > 6:
            store_tile(out, position + 6 * pitch, g)
        if count > 7:
            store_tile(out, position + 7 * pitch, h)

    return lanes


# Arrays behind one argument: each array argument costs a call from Python 0.05 us ------------------------


@overload(plain.memory_floats)
def _memory_floats(address, size):
    return lambda address, size: carray(_pointer(address), size, types.float64)


@overload(plain.memory_integers)
def _memory_integers(address, size):
    return lambda address, size: carray(_pointer(address), size, types.int64)


def _pointer(address):
    raise TypeError("compiled code only")


@_primitive(_pointer, lambda address: signature(types.voidptr, types.int64))
def _int_to_pointer(context, builder, sig, args):
    return builder.inttoptr(args[0], context.get_value_type(types.voidptr))


# Choices that depend on numbers -------------------------------------------------------------------------


@_primitive(plain.where_positive, lambda x, a, b: signature(_as_number(x), _as_number(x), _as_number(a), _as_number(b)))
def _where_positive(context, builder, sig, args):
    zero = ir.Constant(_VECTOR if _is_lanes(sig.args[0]) else ir.DoubleType(), None)
    a, b = args[1:]
    if _is_lanes(sig.args[0]):
        a, b = _widen(builder, sig.args[1], a), _widen(builder, sig.args[2], b)
    return builder.select(builder.fcmp_ordered(">", args[0], zero), a, b)


@_primitive(plain.all_greater, lambda a, b: signature(types.boolean, _as_number(a), _as_number(b)))
def _all_greater(context, builder, sig, args):
    if not any(map(_is_lanes, sig.args)):
        return builder.fcmp_ordered(">", *args)
    test = builder.fcmp_ordered(">", *(_widen(builder, t, v) for t, v in zip(sig.args, args, strict=True)))
    bits = builder.bitcast(test, ir.IntType(WIDTH))
    return builder.icmp_unsigned("==", bits, ir.Constant(ir.IntType(WIDTH), 2**WIDTH - 1))


@overload(plain.noted)
def _noted(status, sound, fault):
    return lambda status, sound, fault: fault if status == 0 and not sound else status


@overload(plain.reciprocal)
def _reciprocal(x):
    return lambda x: 1.0 / x


@overload(plain.vanishing)
def _vanishing(x):
    return lambda x: 0.0 * x


# Functions of one number, where it is rarely needed -------------------------------------------------------


@overload(plain.tanh)
def _tanh(x):
    if not _is_lanes(x):
        return lambda x: math.tanh(x)

    def lanes(x):
        for k in range(WIDTH):
            x = with_lane(x, k, math.tanh(lane(x, k)))
        return x

    return lanes


@overload(plain.exact_sincos)
def _exact_sincos(x):
    if not _is_lanes(x):
        return lambda x: (math.sin(x), math.cos(x))

    def lanes(x):
        s, c = x, x
        for k in range(WIDTH):
            s = with_lane(s, k, math.sin(lane(x, k)))
            c = with_lane(c, k, math.cos(lane(x, k)))
        return s, c

    return lanes
