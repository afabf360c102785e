"""Compiled entries: hybrid dynamics with all its sensitivities."""

from cstormpy.kernels.charts import charts_place
from cstormpy.kernels.closed_forms import closed_forms, form_base, row_of
from cstormpy.kernels.entries import entry
from cstormpy.kernels.factorisation import column_count, columns_place, matrix_place
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.lanes import lane, load, load_tile, store_tile, tile_width, transpose_tiles, width, zero_lanes
from cstormpy.kernels.layout import C_KEPT, CHART, KEPT, N_BALLS, N_COORDINATE, N_COUNT, N_DEEP, ROW, UNLOADED
from cstormpy.kernels.nodes import node_of
from cstormpy.kernels.samples import (
    WRONG_SIZE,
    answer_with_forms,
    arrays_behind,
    bring_in_one,
    bring_loads_one,
    take_out_one,
)
from cstormpy.kernels.sensitivity import fill_columns
from cstormpy.kernels.steps import step


@step
def put_row(W, x, count, out, to, pitch, samples, like):
    """Copy neighbouring numbers, those of sample s to ``out[to + s * pitch :]``: whole tiles, the last may overlap."""
    w, t = width(like), tile_width()
    if count < t or samples < w:
        for j in range(count):
            value = load(W, x + j, like)
            for s in range(samples):
                out[to + s * pitch + j] = lane(value, s)
    else:
        for c in range(0, count, t):
            j = min(c, count - t)
            if w == t:
                transpose_tiles(W, (x + j) * w, out, to + j, pitch)
            else:
                store_tile(out, to + j, load_tile(W, x + j))


@step
def put_blocks(N, W, place, pitch, out, to):
    """Copy the blocks of all rows, of which the lanes hold whole samples, to ``out[to:]``, sample after sample.

    Tiles are written one behind the other, over the ends of rows as well: where `out` begins with a line of the cache,
    each line is written once and as a whole. A tile of the ends of rows is put together behind the columns.
    """
    n, t = N[N_COUNT], tile_width()
    whole = 3 * n * n
    end, filled = place + n * pitch, 0
    for block in range(3):
        for row in range(n):
            x, c = place + (node_of(N, row) - 1) * pitch + block * n, 0
            while c < n:
                if filled == 0 and c + t <= n:
                    transpose_tiles(W, (x + c) * t, out, to, whole)
                    to += t
                    c += t
                else:
                    store_tile(W, (end + filled) * t, load_tile(W, (x + c) * t))
                    filled += 1
                    c += 1
                    if filled == t:
                        transpose_tiles(W, end * t, out, to, whole)
                        to += t
                        filled = 0
    for k in range(filled):
        value = load_tile(W, (end + k) * t)
        for s in range(t):
            out[to + s * whole + k] = lane(value, s)


@step
def take_out_columns(N, W, out, of_base, first, last, like):
    """Copy the rows of X into out[sample, block, row, column]: blocks of n columns, and one of 12 for the base."""
    n = N[N_COUNT]
    place, pitch = columns_place(N, like), column_count(N, of_base.shape[0] > 0, like)
    samples = min(width(like), last + 1 - first)
    columns, to_base = out.reshape(-1), of_base.reshape(-1)
    side_by_side = width(like) == tile_width() and samples == width(like)
    if side_by_side:
        put_blocks(N, W, place, pitch, columns, 3 * first * n * n)
    for i in range(1, n + 1):
        k, _ = node(i)
        row, x = N[k + N_COORDINATE], place + (i - 1) * pitch
        if not side_by_side:
            for block in range(3):
                put_row(W, x + block * n, n, columns, ((3 * first + block) * n + row) * n, 3 * n * n, samples, like)
        if of_base.shape[0] > 0:
            put_row(W, x + 3 * n, 12, to_base, (first * n + row) * 12, 12 * n, samples, like)


@entry("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,::1])")
def sensitivity_one(handle, q, qd, u, y, D):
    """Fill y and D (3, n, n), its derivatives to q, qd, u, for one sample; return as `hybrid_one` does."""
    T, N, W = arrays_behind(handle)
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n or y.size != n * handle[6] or D.size != 3 * n * n:
        return WRONG_SIZE
    bring_in_one(N, W, q, qd, u)
    return answer_one(T, N, W, UNLOADED, y, D)


@entry("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,::1])")
def loaded_sensitivity_one(handle, wrench, q, qd, u, y, D):
    """Answer one sample as `sensitivity_one` does, with a row of loads on the links."""
    T, N, W = arrays_behind(handle)
    n = N[N_COUNT]
    if q.size != n or qd.size != n or u.size != n or y.size != n * handle[6] or D.size != 3 * n * n:
        return WRONG_SIZE
    bring_in_one(N, W, q, qd, u)
    loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
    return answer_one(T, N, W, loaded, y, D)


@step
def answer_one(T, N, W, loaded, y, D):
    """Fill y and D of the sample that stands in W; return the status of the hybrid dynamics."""
    n = N[N_COUNT]
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)
    status = hybrid(T, N, W, loaded, N[N_DEEP] != 0, 0.0)
    if status != 0:
        return status
    form_base(T, N, W, rest, rest, rest, rest, 0.0)
    closed_forms(T, N, W, loaded, 0.0)
    fill_columns(T, N, W, loaded, False, 0.0)
    place, pitch = columns_place(N, 0.0), column_count(N, False, 0.0)
    take_out_one(N, W, y)
    columns = D.reshape(-1)
    for i in range(1, n + 1):
        k, _ = node(i)
        row, x = N[k + N_COORDINATE], place + (i - 1) * pitch
        for block in range(3):
            put_row(W, x + block * n, n, columns, (block * n + row) * n, 0, 1, 0.0)
    return 0


@step
def keep_one(N, W, V, s, like):
    """Copy what the matrices need of sample s, of those side by side in W, to V."""
    w = width(like)
    for i in range(N[N_COUNT] + 1):
        for k in range(i * ROW, i * ROW + KEPT):
            V[k] = W[k * w + s]
        c = row_of(N, i)
        for k in range(c, c + C_KEPT):
            V[k] = W[k * w + s]
    for k in range(charts_place(N), charts_place(N) + CHART * N[N_BALLS]):
        V[k] = W[k * w + s]


_MATRIX = "f8[:,::1]"
_SENSITIVITY = (
    f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, {_MATRIX}, "
    "f8[:,:,:,::1], f8[:,:,::1], i8, i8)"
)


@entry(_SENSITIVITY, nogil=True)
def sensitivity_lanes(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop):
    """Fill rows start to stop of y, out (samples, 3, n, n) and, unless empty, of_base (samples, n, 12).

    All is done with several samples side by side. Return the first row of the first group that holds a bad one (or
    -1), and its status.
    """
    like, deep = zero_lanes(), N[N_DEEP] != 0
    for first in range(start, stop, width(like)):
        status, loaded = answer_with_forms(T, N, W, q, qd, u, wrench, base, y, deep, first, stop - 1, like)
        if status != 0:
            return first, status
        fill_columns(T, N, W, loaded, of_base.shape[0] > 0, like)
        take_out_columns(N, W, out, of_base, first, stop - 1, like)
    return -1, 0


@entry(_SENSITIVITY, nogil=True)
def sensitivity_large(T, N, W, q, qd, u, wrench, base, y, out, of_base, start, stop):
    """Fill what `sensitivity_lanes` does, its matrices sample by sample, which the processor's caches can hold."""
    like = zero_lanes()
    deep, V = N[N_DEEP] != 0, W[matrix_place(N) * width(like) :]
    for first in range(start, stop, width(like)):
        status, loaded = answer_with_forms(T, N, W, q, qd, u, wrench, base, y, deep, first, stop - 1, like)
        if status != 0:
            return first, status
        for s in range(min(width(like), stop - first)):
            keep_one(N, W, V, s, like)
            fill_columns(T, N, V, loaded, of_base.shape[0] > 0, 0.0)
            take_out_columns(N, V, out, of_base, first + s, first + s, 0.0)
    return -1, 0
