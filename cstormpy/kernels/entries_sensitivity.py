"""What Python calls: hybrid dynamics with all its sensitivities."""

from __future__ import annotations

import numpy as np

from cstormpy.kernels.closed_forms import form_base
from cstormpy.kernels.compiling import entry, step
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.lanes import lane, load, width, zero_lanes
from cstormpy.kernels.layout import N_COORDINATE, N_COUNT, ROW, Y
from cstormpy.kernels.samples import bring_base, bring_form_base, bring_in, bring_in_one, bring_wrenches, take_out
from cstormpy.kernels.sensitivity import column_count, columns_place, sensitivity


@step
def take_out_columns(N, W, out, of_base, first, last, like):
    """Copy the rows of X into out[sample, block, row, column]: blocks of n columns, and one of 12 for the base."""
    n = N[N_COUNT]
    place, pitch = columns_place(N, like), column_count(N, of_base.shape[0] > 0, like)
    samples = min(width(like), last + 1 - first)
    for i in range(1, n + 1):
        k, _ = node(i)
        row = N[k + N_COORDINATE]
        for block in range(3):
            x = place + (i - 1) * pitch + block * n
            for j in range(n):
                value = load(W, x + j, like)
                for s in range(samples):
                    out[first + s, block, row, j] = lane(value, s)
        if of_base.shape[0] > 0:
            for j in range(12):
                value = load(W, place + (i - 1) * pitch + 3 * n + j, like)
                for s in range(samples):
                    of_base[first + s, row, j] = lane(value, s)


@entry("Tuple((f8[::1], f8[:,:,::1]))(f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def sensitivity_one(T, N, W, q, qd, u):
    """Return y and its derivatives to q, qd, u as (3, n, n) for one sample; raise as `hybrid_one` does."""
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n:
        raise ArithmeticError
    bring_in_one(N, W, q, qd, u)
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)
    if hybrid(T, N, W, False, False, 0.0) != 0:
        raise ArithmeticError
    form_base(T, N, W, rest, rest, rest, rest, 0.0)
    sensitivity(T, N, W, False, False, 0.0)
    y, D = np.empty(n), np.empty((3, n, n))
    place, pitch = columns_place(N, 0.0), column_count(N, False, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        row, x = N[k + N_COORDINATE], place + (i - 1) * pitch
        y[row] = W[i * ROW + Y]
        for block in range(3):
            for j in range(n):
                D[block, row, j] = W[x + block * n + j]
    return y, D


@step
def sensitivity_rows(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop, like):
    loaded = wrench.shape[0] > 0
    for first in range(start, stop, width(like)):
        bring_in(N, W, q, qd, u, first, stop - 1, like)
        bring_base(T, W, base, first, stop - 1, like)
        if loaded:
            bring_wrenches(N, W, wrench, first, stop - 1, like)
        status = hybrid(T, N, W, loaded, False, like)
        take_out(N, W, y, first, stop - 1, like)
        if status != 0:
            return first, status
        bring_form_base(T, N, W, base, first, stop - 1, like)
        sensitivity(T, N, W, loaded, of_base.shape[0] > 0, like)
        take_out_columns(N, W, out, of_base, first, stop - 1, like)
    return -1, 0


_MATRIX = "f8[:,::1]"
_SENSITIVITY = (
    f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, "
    "f8[:,:,:,::1], f8[:,:,::1], i8, i8)"
)


@entry(_SENSITIVITY, nogil=True)
def sensitivity_batch(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop):
    """Fill rows start to stop of y, out (samples, 3, n, n) and, unless empty, of_base (samples, n, 12)."""
    return sensitivity_rows(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop, 0.0)


@entry(_SENSITIVITY, nogil=True)
def sensitivity_lanes(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop):
    """Do the same with several samples side by side; the bad row is the first of its group."""
    return sensitivity_rows(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop, zero_lanes())
