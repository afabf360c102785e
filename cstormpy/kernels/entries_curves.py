"""B-spline curves as a compiled diagram plays them; compiled once, and linked to the function of each that does."""

from __future__ import annotations

from cstormpy.kernels.entries import entry
from cstormpy.kernels.steps import step


@step
def span_at(time, table, sizes):
    """Return the span of the knots in which a time lies."""
    low, high = sizes[4], sizes[5] + 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@step
def evaluate(time, table, sizes, row, out):
    """Fill position, rate and acceleration (3 n) of a B-spline curve at a time within its interval.

    sizes: degree, number of control points m, of joints n, how many derivatives there are (0 to 2), and the least and
    the greatest span. table: the knots, the control points (m, n), then those of its derivatives (m − r, n). `row` has
    room for degree + 1 numbers. The basis functions are those of `cstormpy.trajectory.basis`.
    """
    degree, m, n = sizes[0], sizes[1], sizes[2]
    low = span_at(time, table, sizes)
    first = low - degree
    for k in range(3 * n):
        out[k] = 0.0
    row[0] = 1.0
    for d in range(degree + 1):
        if d > 0:
            carried = 0.0
            for r in range(d):
                left, right = table[low + 1 + r - d], table[low + 1 + r]
                share = row[r] / (right - left)
                row[r] = carried + (right - time) * share
                carried = (time - left) * share
            row[d] = carried
        order = degree - d
        if order <= sizes[3]:
            points = m + degree + 1 + order * m * n - (order * (order - 1) // 2) * n
            for k in range(d + 1):
                for j in range(n):
                    out[order * n + j] += row[k] * table[points + (first + k) * n + j]


@entry("void(f8, f8[::1], i8[::1], f8[::1], f8[::1])", nogil=True)
def spline(time, table, sizes, row, out):
    """Fill position, rate and acceleration of a curve, as `evaluate`."""
    evaluate(time, table, sizes, row, out)


@entry("void(f8, f8[::1], i8[::1], i8, i8[::1], f8[::1], f8[::1])", nogil=True)
def piece_of_spline(time, tables, sizes, k, lengths, row, out):
    """Do the same for the curve of number k of several: `lengths` says how many numbers of `tables` each has."""
    first = 0
    for i in range(k):
        first += lengths[i]
    evaluate(time, tables[first : first + lengths[k]], sizes[6 * k : 6 * k + 6], row, out)
