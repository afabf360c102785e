"""Numbers and lanes of numbers: one kernel source for one sample and for several side by side.

A kernel works on *numbers*. A number is a float64; or `Lanes`, several float64, one of each of as many samples, in
one machine vector (`lanes_compiled`); or a symbol of an expression graph. ``+ - * /`` and negation work on all of
them and mix with plain floats, so that a kernel is written once, as if for one sample; which of them it is follows
from the type of the argument ``like`` that the kernel hands to `load`. Branches may depend on the mechanism, never on
a number; what depends on a number goes through `where_positive`, `all_greater`, `noted` or `vanishing`.

Scratch memory is a flat float64 array; the number with index i stands at
``W[i * width(like) : (i + 1) * width(like)]``. Of symbols it is a dictionary of one.

Each function here is plain Python for one float, which is what runs when the JIT is off, or for a symbol.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np


def zero_lanes():
    """Return `WIDTH` zeros side by side (a plain 0.0 where the JIT is off)."""
    return 0.0


def width(like):
    """Return how many samples stand side by side in a number of this type."""
    return 1


def load(W, i, like):
    """Return the number with index i of the scratch memory W."""
    return W[i]


def store(W, i, x):
    """Write the number x with index i into the scratch memory W."""
    W[i] = x


def load_tile(W, position):
    """Return `tile_width` neighbours in memory, whatever numbers they belong to (one, where the JIT is off)."""
    return W.load_tile(position) if is_unrolled() else W[position]


def store_tile(W, position, x):
    """Write what `load_tile` reads."""
    if is_unrolled():
        W.store_tile(position, x)
    else:
        W[position] = x


def fill_zeros(W, position, count):
    """Write so many zeros that are neighbours in memory, as fast as the machine can."""
    for k in range(count):
        W[position + k] = 0.0


def tile_width():
    """Return how many float64 `load_tile` reads."""
    return _tile_width.get()


def is_unrolled():
    """Tell whether tiles are written down with symbols: what is zero costs nothing then, nor does a loop."""
    return _tile_width.get() > 1


_tile_width: ContextVar[int] = ContextVar("_tile_width", default=1)


@contextmanager
def tiles_of_symbols(width: int) -> Iterator[None]:
    """Have kernels take so many symbols for a tile within the ``with`` block; their scratch memory knows how."""
    before = _tile_width.set(width)
    try:
        yield
    finally:
        _tile_width.reset(before)


def transpose_tiles(W, position, out, to, pitch):
    """Copy a square of neighbouring tiles: lane s of tile k, of `tile_width` tiles, to ``out[to + s * pitch + k]``."""
    out[to] = W[position]


#: Neighbours in memory that `put_tile` writes.
TILE = 8


def put_tile(out, position, pitch, count, numbers):
    """Write a tuple of `TILE` numbers side by side: the first `count` lanes, each `pitch` behind the one before."""
    for k, x in enumerate(numbers):
        out[position + k] = x


def lane_by_lane(numbers):
    """Return, of as many numbers as there are lanes, the first lanes of all, the second ones, and so on."""
    return numbers


def lane(x, k):
    """Return the float of lane k."""
    return x


def with_lane(x, k, value):
    """Return x with another float in lane k."""
    return value


def memory_floats(address, size):
    """Return the `size` float64 that stand at an address, which somebody else keeps alive."""
    return np.frombuffer((ctypes.c_double * int(size)).from_address(int(address)), dtype=np.float64)


def memory_integers(address, size):
    """Return the `size` int64 that stand at an address, which somebody else keeps alive."""
    return np.frombuffer((ctypes.c_int64 * int(size)).from_address(int(address)), dtype=np.int64)


def chosen(condition, a, b):
    """Return a where a condition holds, else b; for truths of floats, or of symbols."""
    return (a if condition else b) if isinstance(condition, (bool, np.bool_)) else condition.where(a, b)


def where_positive(x, a, b):
    """Return a where x > 0, else b."""
    return chosen(x > 0.0, a, b)


def all_greater(a, b):
    """Tell whether a > b in every lane; False where either is NaN."""
    return a > b


def noted(status, sound, fault):
    """Return the status, or the fault where there was none before and it is not sound."""
    return chosen(sound, status, chosen(status == 0, fault, status))


def reciprocal(x):
    """Return 1 / x; infinity where x is zero."""
    if isinstance(x, float):
        return math.inf if x == 0.0 else 1.0 / x
    return x.reciprocal() if hasattr(x, "reciprocal") else 1.0 / x


def vanishing(x):
    """Return 0 x: 0 where x is finite, else NaN."""
    return 0.0 * x if isinstance(x, float) else x.vanishing()


def tanh(x):
    """Return the hyperbolic tangent, lane by lane."""
    return math.tanh(x) if isinstance(x, float) else x.tanh()


def exact_sincos(x):
    """Return the library's sine and cosine, lane by lane; NaN for what is not finite."""
    if not math.isfinite(x):
        return math.nan, math.nan
    return math.sin(x), math.cos(x)
