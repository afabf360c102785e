"""Tangents of B-spline curves as a compiled diagram plays them: to time, knots and control points."""

from __future__ import annotations

from cstormpy.kernels.entries import entry
from cstormpy.kernels.entries_curves import span_at
from cstormpy.kernels.steps import step


@step
def evaluate_tangent(time, table, sizes, row, out, dtime, dtable, drow, dout):
    """Fill what `spline` does and its tangents, and those of its row: the recursion of the basis differentiated."""
    degree, m, n = sizes[0], sizes[1], sizes[2]
    low = span_at(time, table, sizes)
    first = low - degree
    for k in range(3 * n):
        out[k] = 0.0
        dout[k] = 0.0
    row[0] = 1.0
    drow[0] = 0.0
    for d in range(degree + 1):
        if d > 0:
            carried, dcarried = 0.0, 0.0 * dtime
            for r in range(d):
                a, b = low + 1 + r - d, low + 1 + r
                left, right, dleft, dright = table[a], table[b], dtable[a], dtable[b]
                share = row[r] / (right - left)
                dshare = (drow[r] - share * (dright - dleft)) / (right - left)
                row[r] = carried + (right - time) * share
                drow[r] = dcarried + (dright - dtime) * share + (right - time) * dshare
                carried = (time - left) * share
                dcarried = (dtime - dleft) * share + (time - left) * dshare
            row[d] = carried
            drow[d] = dcarried
        order = degree - d
        if order <= sizes[3]:
            points = m + degree + 1 + order * m * n - (order * (order - 1) // 2) * n
            for k in range(d + 1):
                for j in range(n):
                    at = points + (first + k) * n + j
                    out[order * n + j] += row[k] * table[at]
                    dout[order * n + j] += drow[k] * table[at] + row[k] * dtable[at]


@entry("void(f8, f8[::1], i8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1], f8[::1])", nogil=True)
def spline_tangent(time, table, sizes, row, out, dtime, dtable, drow, dout):
    """Fill position, rate and acceleration of a curve, and their tangents."""
    evaluate_tangent(time, table, sizes, row, out, dtime, dtable, drow, dout)


@entry(
    "void(f8, f8[::1], i8[::1], i8, i8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1], f8[::1])",
    nogil=True,
)
def piece_of_spline_tangent(time, tables, sizes, k, lengths, row, out, dtime, dtables, drow, dout):
    """Do the same for the curve of number k of several, as `piece_of_spline`."""
    first = 0
    for i in range(k):
        first += lengths[i]
    last = first + lengths[k]
    own = sizes[6 * k : 6 * k + 6]
    evaluate_tangent(time, tables[first:last], own, row, out, dtime, dtables[first:last], drow, dout)
