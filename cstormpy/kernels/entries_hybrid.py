"""What Python calls: hybrid dynamics of one sample, of a batch, of a batch side by side."""

from __future__ import annotations

import numpy as np

from cstormpy.kernels.compiling import entry
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.lanes import width, zero_lanes
from cstormpy.kernels.layout import N_COORDINATE, N_COUNT, ROW, Y
from cstormpy.kernels.samples import bring_base, bring_in, bring_in_one, bring_wrenches, take_out


@entry("f8[::1](f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def hybrid_one(T, N, W, q, qd, u):
    """Return y of one sample; raise ArithmeticError where the slow way has to find out what is wrong."""
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n:
        raise ArithmeticError
    bring_in_one(N, W, q, qd, u)
    place_base(T, W, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)
    if hybrid(T, N, W, False, False, 0.0) != 0:
        raise ArithmeticError
    y = np.empty(n)
    for i in range(1, n + 1):
        k, _ = node(i)
        y[N[k + N_COORDINATE]] = W[i * ROW + Y]
    return y


_MATRIX = "f8[:,::1]"


@entry(f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 6)}, i8, i8)", nogil=True)
def hybrid_lanes(T, N, W, q, qd, u, wrench, base, out, start, stop):
    """Fill rows start to stop of `out`, several samples side by side.

    Return the first row of the first group that holds a bad one (or -1), and its status.
    """
    like = zero_lanes()
    loaded = wrench.shape[0] > 0
    for first in range(start, stop, width(like)):
        bring_in(N, W, q, qd, u, first, stop - 1, like)
        bring_base(T, W, base, first, stop - 1, like)
        if loaded:
            bring_wrenches(N, W, wrench, first, stop - 1, like)
        status = hybrid(T, N, W, loaded, False, like)
        take_out(N, W, out, first, stop - 1, like)
        if status != 0:
            return first, status
    return -1, 0
