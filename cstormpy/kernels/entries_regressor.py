"""Compiled entries: the inertial regressor Y of the inverse dynamics, of a batch.

The inverse dynamics is linear in the ten inertial numbers π of each link: mass m, first moment h = m c and inertia I
about the origin of the link's frame, in its axes. With the link's angular velocity ω, angular acceleration α and the
acceleration A of its origin less gravity, all in its own axes, it asks for

    force = m A + α × h + ω × (ω × h)        moment = h × A + I α + ω × I ω

and a joint on the way to it, whose twist (s, l) stands at the link's origin in its axes, for s · moment + l · force:

    of m    l · A
    of h    l × α + ω × (ω × l) + A × s
    of I    the symmetric part of s αᵀ + (s × ω) ωᵀ
"""

from __future__ import annotations

from cstormpy.kernels.charts import enter_charts
from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import move, place
from cstormpy.kernels.kinematics import carrier
from cstormpy.kernels.lanes import lane, load, width, zero_lanes
from cstormpy.kernels.layout import (
    ACC,
    ALPHA,
    N_BALLS,
    N_COORDINATE,
    N_COUNT,
    N_LINKS,
    N_PARENT,
    N_SLIDES,
    N_TURNS,
    OMEGA,
    ROW,
    T_LINK,
    T_NODE,
    T_NODES,
    T_PITCH,
    D,
    R,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.samples import bring_base, bring_in
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, column_times, cross, dot, load3, load_columns, rotate, scale

INERTIAL = 10  # numbers of a link: m, h (3), I (xx xy xz yy yz zz)


@step
def into_axes(axes, a):
    return dot(axes[0], a), dot(axes[1], a), dot(axes[2], a)


@step
def put_ten(out, first, last, row, column, values):
    """Write the lanes of ten numbers side by side."""
    for s in range(min(width(values[0]), last + 1 - first)):
        for k in range(INERTIAL):
            out[first + s, row, column + k] = lane(values[k], s)


@step
def clear_rows(N, out, first, last, like):
    """Write zeros first, side by side, where only the joints on the way to a link are written to later."""
    for s in range(min(width(like), last + 1 - first)):
        for row in range(N[N_COUNT]):
            for column in range(INERTIAL * N[N_LINKS]):
                out[first + s, row, column] = 0.0


@step
def link_frame(T, N, W, link, like):
    """Return the axes of a link, and the way to its origin from that of the node that carries it."""
    i = carrier(N, link)
    t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * link
    axes = load_columns(W, i * ROW + R, like)
    x = column_times(axes, T[t], T[t + 3], T[t + 6])
    y = column_times(axes, T[t + 1], T[t + 4], T[t + 7])
    z = column_times(axes, T[t + 2], T[t + 5], T[t + 8])
    return (x, y, z), rotate(axes, T, t + 9)


@step
def ten_coefficients(s, l, omega, alpha, acc):
    """Return what the ten inertial numbers of a body are multiplied by in (s, l) · its wrench."""
    c = add(add(cross(l, alpha), cross(omega, cross(omega, l))), cross(acc, s))
    p = cross(s, omega)
    return (
        dot(l, acc),
        c[0],
        c[1],
        c[2],
        s[0] * alpha[0] + p[0] * omega[0],
        s[0] * alpha[1] + s[1] * alpha[0] + (p[0] * omega[1] + p[1] * omega[0]),
        s[0] * alpha[2] + s[2] * alpha[0] + (p[0] * omega[2] + p[2] * omega[0]),
        s[1] * alpha[1] + p[1] * omega[1],
        s[1] * alpha[2] + s[2] * alpha[1] + (p[1] * omega[2] + p[2] * omega[1]),
        s[2] * alpha[2] + p[2] * omega[2],
    )


@step
def put_link(T, N, W, link, out, first, last, like):
    """Write the ten columns of a link into the rows of all joints on the way to it."""
    i = carrier(N, link)
    axes, r = link_frame(T, N, W, link, like)
    omega, alpha = load3(W, i * ROW + OMEGA, like), load3(W, i * ROW + ALPHA, like)
    acc = add(load3(W, i * ROW + ACC, like), add(cross(alpha, r), cross(omega, cross(omega, r))))
    omega, alpha, acc = into_axes(axes, omega), into_axes(axes, alpha), into_axes(axes, acc)
    while i > 0:
        k, t = node(i)
        z = (load(W, i * ROW + R + 2, like), load(W, i * ROW + R + 5, like), load(W, i * ROW + R + 8, like))
        s, l = (like, like, like), (like, like, like)
        if N[k + N_TURNS]:
            s, l = into_axes(axes, z), into_axes(axes, cross(z, r))
        if N[k + N_SLIDES]:
            l = add(l, scale(T[t + T_PITCH], into_axes(axes, z)))
        values = ten_coefficients(s, l, omega, alpha, acc)
        put_ten(out, first, last, N[k + N_COORDINATE], INERTIAL * link, values)
        r = add(r, load3(W, i * ROW + D, like))
        i = N[k + N_PARENT]


_MATRIX = "f8[:,::1]"


@entry(f"void(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 4)}, f8[:,:,::1], i8, i8)", nogil=True)
def regressor_lanes(T, N, W, q, qd, qdd, base, out, start, stop):
    """Fill out (samples, n, 10 links); N has all joints active.

    The rows of a ball joint are those of its moments about the axes of its link.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        last = stop - 1
        clear_rows(N, out, first, last, like)
        bring_in(N, W, q, qd, qdd, first, last, like)
        bring_base(T, W, base, first, last, like)
        if N[N_BALLS]:
            enter_charts(N, W, like)
        for i in range(1, N[N_COUNT] + 1):
            axes, d = place(T, N, W, i, like)
            move(T, N, W, i, axes[2], d, like)
        for link in range(N[N_LINKS]):
            put_link(T, N, W, link, out, first, last, like)
