"""Compiled entries: sensitivities times directions, and gradients times sensitivities, of a batch."""

from cstormpy.kernels.closed_forms import row_of
from cstormpy.kernels.directional import against_gradient, along_direction
from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.lanes import lane, load, store, width, zero_lanes
from cstormpy.kernels.layout import C_DQ, C_DQD, C_DU, N_COORDINATE, N_COUNT
from cstormpy.kernels.samples import answer_with_forms, gather, take_out
from cstormpy.kernels.steps import step

_MATRIX = "f8[:,::1]"


@step
def bring_column(N, W, values, slot, first, last, like):
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        store(W, row_of(N, i) + slot, gather(values, first, last, N[k + N_COORDINATE], like))


@step
def take_column(N, W, out, slot, first, last, like):
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        value = load(W, row_of(N, i) + slot, like)
        for s in range(min(width(like), last + 1 - first)):
            out[first + s, N[k + N_COORDINATE]] = lane(value, s)


_SIGNATURE = f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 10)}, i8, i8)"


@entry(_SIGNATURE, nogil=True)
def direction_lanes(T, N, W, q, qd, u, wrench, base, dq, dqd, du, y, dy, start, stop):
    """Fill rows start to stop of y and of dy = ∂y/∂q dq + ∂y/∂qd dqd + ∂y/∂u du."""
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        status, loaded = answer_with_forms(T, N, W, q, qd, u, wrench, base, y, True, first, stop - 1, like)
        if status != 0:
            return first, status
        bring_column(N, W, dq, C_DQ, first, stop - 1, like)
        bring_column(N, W, dqd, C_DQD, first, stop - 1, like)
        bring_column(N, W, du, C_DU, first, stop - 1, like)
        along_direction(T, N, W, loaded, like)
        take_out(N, W, dy, first, stop - 1, like)
    return -1, 0


@entry(_SIGNATURE, nogil=True)
def gradient_lanes(T, N, W, q, qd, u, wrench, base, gy, y, gq, gqd, gu, start, stop):
    """Fill rows start to stop of y and of the gradients to q, qd and u that a gradient gy to y brings."""
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        status, loaded = answer_with_forms(T, N, W, q, qd, u, wrench, base, y, True, first, stop - 1, like)
        if status != 0:
            return first, status
        bring_column(N, W, gy, C_DU, first, stop - 1, like)
        against_gradient(T, N, W, loaded, like)
        take_column(N, W, gq, C_DQ, first, stop - 1, like)
        take_column(N, W, gqd, C_DQD, first, stop - 1, like)
        take_column(N, W, gu, C_DU, first, stop - 1, like)
    return -1, 0
