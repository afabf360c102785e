"""What the function of a diagram may call, by the name that stands in its source.

Small pieces are inlined into it; what is an entry is compiled once and linked. w[a:b] below are slices of the scratch
memory that the source has just filled, p[a:b] numbers and n[a:b] integers. "Fills" names the argument that is written;
all else comes back as the value of the call.

=================== ============================== ==========================================================
name                arguments                      what it gives
=================== ============================== ==========================================================
wrapped             angle                          the angle within [-π, π)
wrapped_positive    angle                          the angle within [0, 2π)
wrapped_colatitude  angle                          the angle folded into [0, π]
nearest             x                              the whole number next to x; slope 0
within_turn         q, centre, turn                q less so many turns that it is within half a turn of centre; slope 1
clipped             value, least, most             value within bounds; slope 1 inside, that of the bound outside
stop_torque         q, qd, low, high, k, d, depth  torque of a stop at the limits of a joint
repeated            t, start, end                  the time within [start, end) of what is played over; slope 1
interval            table, count, x                whole: i with table[i] <= x <= table[i + 1]
count_below         table, count, x                whole: how many entries are < x
count_upto          table, count, x                whole: how many entries are <= x
row_before          s, last                        whole: s rounded down, within [0, last - 1]
spline              time, table, sizes, row, out   fills out: position, rate, acceleration of a B-spline (3 n)
piece_of_spline     time, tables, sizes, place,    the same of one of several splines of one width, whose knots and
                    lengths, row, out              points stand one behind the other
motion              T, N, W, g                     fills g: q, q̇, u, then q̈, τ (5 n); status of the hybrid dynamics
loaded_motion       T, N, W, g, wrench             the same with wrenches on the links (6 numbers each)
line_motion         T, N, W, g, address            what motion does, by the straight line at n[a:a + 1]
line_loaded_motion  T, N, W, g, wrench, address    the same with wrenches
line_function       numbers, given, filled,        fills what a block or law gives, by its trace at n[a:a + 2]; 0
                    addresses
pushed_motion       T, N, W, g, wrench, push       the same with wrenches (or none) and a push: link, point, force
energies            T, N, W, g                     (kinetic, potential); g holds q, q̇
kinematics          T, N, W, g, tool, link, frame  fills g: q, then pose (16), Jacobian (6 n) of a tool (16) on a link;
                                                   frame 0: in its own frame, 1: the base's, 2: the base's axes
inertia             T, N, W, g                     fills g: q, then M (n n)
sensitivities       T, N, W, g, wrench             fills g: q, q̇, u, q̈, τ, then ∂y/∂q, ∂y/∂q̇, ∂y/∂u (n n each); status
solve               A, B, n, m                     fills B with A⁻¹ B (n, m); A (n, n) is overwritten; 1 if singular
determinant         A, n                           det A; A is overwritten
singular_values     A, V, rows, columns, s         fills s, the largest first; A (rows >= columns) and V are overwritten
pseudoinverse       A, V, rows, columns, s,        fills out (columns, rows); A, V and s are overwritten
                    least, out
python_block        where, given, filled           fills the outputs of a block that computes in Python, given the
                                                   time and its inputs; 0, or 1 where that failed
math                                               the module; its sin, cos, tan, sqrt are used, and those of a user
=================== ============================== ==========================================================

Beside these the source uses + - * / % ** and comparisons, ``a if c else b``, abs(a), max(a, b), min(a, b), float(a) and
int(a).
"""

from __future__ import annotations

import math

import numpy as np

from cstormpy.kernels.compiling import ready
from cstormpy.kernels.entries_curves import piece_of_spline, spline
from cstormpy.kernels.entries_linear import determinant, pseudoinverse, singular_values, solve
from cstormpy.kernels.entries_mechanisms import energies, loaded_motion, motion
from cstormpy.kernels.entries_questions import inertia, kinematics, pushed_motion, sensitivities
from cstormpy.kernels.line_calls import line_function, line_loaded_motion, line_motion
from cstormpy.kernels.python_blocks import python_block
from cstormpy.kernels.steps import step

__all__ = ["CALLS", "callee"]


@step
def wrapped(angle):
    """Return an angle within [-π, π), as spatialmath's wrap_mpi_pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


@step
def wrapped_positive(angle):
    """Return an angle within [0, 2π), as spatialmath's wrap_0_2pi."""
    return angle - 2.0 * math.pi * np.floor(angle / 2.0 / math.pi)


@step
def wrapped_colatitude(angle):
    """Return an angle folded into [0, π], as spatialmath's wrap_0_pi."""
    angle = abs(angle)
    n = math.floor(angle / math.pi)
    return angle - n * math.pi if n % 2 == 0 else (n + 1) * math.pi - angle


@step
def nearest(x):
    """Return the whole number next to x, the even one of two, as NumPy's rint."""
    return np.rint(x)


@step
def within_turn(q, centre, turn):
    """Return an angle within (centre − turn/2, centre + turn/2], as `cstormpy.dynamics.loads.wrap`."""
    away = q - centre
    if away > 0.5 * turn or away <= -0.5 * turn:
        return q - np.ceil(away / turn - 0.5) * turn
    return q


@step
def clipped(value, least, most):
    """Return what Python's min(most, max(value, least)) gives."""
    above = least if least > value else value
    return above if above < most else most


@step
def stop_torque(q, qd, low, high, stiffness, damping, depth):
    """Return the torque of a stop, as `cstormpy.dynamics.loads.stop_torque`."""
    e = 0.0
    if q > high:
        e = q - high
    elif q < low:
        e = q - low
    tau = -(stiffness * e + damping * min(abs(e) / depth, 1.0) * qd)
    return tau if tau * e < 0.0 else 0.0


@step
def repeated(t, start, end):
    """Return the time within a motion that is played over and over, as `cstormpy.trajectory.playback.place`."""
    if start <= t < end:
        return t
    period = end - start
    since = np.fmod(t - start, period)
    if since < 0.0:
        since += period
    if period - since <= 4.0 * np.spacing(max(max(abs(t), abs(start)), period)):
        since = 0.0
    return start + since


@step
def interval(table, count, x):
    """Return the index i in [0, count - 2] of the interval table[i] <= x <= table[i + 1]; they increase."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] < x:
            low = middle
        else:
            high = middle
    return low


@step
def count_below(table, count, x):
    """Return how many of the first entries, which do not decrease, are below x."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if table[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@step
def count_upto(table, count, x):
    """Return how many of the first entries, which do not decrease, are not above x."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if table[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@step
def row_before(s, last):
    """Return s rounded down, within [0, last − 1]: the row of a table of which there are last + 1."""
    if not s > 0.0:
        return 0
    if s >= last:
        return last - 1
    return int(s)


#: What the source of a diagram may call, by name.
CALLS = {
    function.__name__: function
    for function in (
        wrapped, wrapped_positive, wrapped_colatitude, nearest, within_turn, clipped, stop_torque, repeated,
        interval, count_below, count_upto, row_before, line_motion, line_loaded_motion,
        line_function, python_block,
    )
}  # fmt: skip
CALLS |= {
    made.name: made
    for made in (
        motion, loaded_motion, pushed_motion, energies, kinematics, inertia, sensitivities,
        spline, piece_of_spline, solve, determinant, singular_values, pseudoinverse,
    )
}  # fmt: skip
CALLS["math"] = math


def callee(name):
    """Return what the source calls by a name, ready to be compiled into it."""
    return ready(CALLS[name])
