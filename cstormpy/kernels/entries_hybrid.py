"""Compiled entries: hybrid dynamics of one sample, and of a batch."""

from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import hybrid, place_base
from cstormpy.kernels.lanes import width, zero_lanes
from cstormpy.kernels.layout import N_COUNT, UNLOADED
from cstormpy.kernels.samples import (
    WRONG_SIZE,
    arrays_behind,
    bring_base,
    bring_in,
    bring_in_one,
    bring_loads,
    bring_loads_one,
    take_out,
    take_out_one,
)


@entry("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def hybrid_one(handle, q, qd, u, y):
    """Fill y of one sample and return 0, or another number where the careful way has to find out what is wrong.

    A y of three times the size also receives the accelerations and the torques of all joints.
    """
    T, N, W = arrays_behind(handle)
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n or y.size != n * handle[6]:
        return WRONG_SIZE
    bring_in_one(N, W, q, qd, u)
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)
    status = hybrid(T, N, W, UNLOADED, False, 0.0)
    if status == 0:
        take_out_one(N, W, y)
    return status


@entry("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def loaded_hybrid_one(handle, wrench, q, qd, u, y):
    """Answer one sample as `hybrid_one` does, with a row of loads on the links."""
    T, N, W = arrays_behind(handle)
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n or y.size != n * handle[6]:
        return WRONG_SIZE
    bring_in_one(N, W, q, qd, u)
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)
    loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
    status = hybrid(T, N, W, loaded, False, 0.0)
    if status == 0:
        take_out_one(N, W, y)
    return status


_MATRIX = "f8[:,::1]"


@entry(f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 6)}, i8, i8)", nogil=True)
def hybrid_lanes(T, N, W, q, qd, u, wrench, base, out, start, stop):
    """Fill rows start to stop of `out`, several samples side by side.

    Return the first row of the first group that holds a bad one (or -1), and its status.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        bring_in(N, W, q, qd, u, first, stop - 1, like)
        bring_base(T, W, base, first, stop - 1, like)
        loaded = bring_loads(N, W, wrench, first, stop - 1, like)
        status = hybrid(T, N, W, loaded, False, like)
        take_out(N, W, out, first, stop - 1, like)
        if status != 0:
            return first, status
    return -1, 0
