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

from cstormpy.kernels.charts import enter_charts
from cstormpy.kernels.closed_forms import screws
from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import NOT_FINITE, hybrid, joint_axis, move, place
from cstormpy.kernels.inertial_numbers import INERTIAL, find_responses, put_columns
from cstormpy.kernels.kinematics import carrier, link_frame
from cstormpy.kernels.lanes import all_greater, fill_zeros, noted, put_tile, vanishing, width, zero_lanes
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
    T_PITCH,
    D,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.samples import bring_base, bring_form_base, bring_in, bring_loads, take_out
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, cross, dot, load3, scale


@step
def into_axes(axes, a):
    return dot(axes[0], a), dot(axes[1], a), dot(axes[2], a)


@step
def put_ten(out, to, stride, samples, x):
    """Write the lanes of ten numbers side by side; return 0 if they are finite, else NaN."""
    put_tile(out, to, stride, samples, (x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]))
    put_tile(out, to + 2, stride, samples, (x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9]))
    first = (vanishing(x[0]) + vanishing(x[1])) + (vanishing(x[2]) + vanishing(x[3]))
    last = (vanishing(x[6]) + vanishing(x[7])) + (vanishing(x[8]) + vanishing(x[9]))
    return first + (vanishing(x[4]) + vanishing(x[5])) + last


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
def bring_motion(T, N, W, q, qd, qdd, base, first, last, like):
    """Write the velocities and accelerations of all nodes into their rows."""
    bring_in(N, W, q, qd, qdd, first, last, like)
    bring_base(T, W, base, first, last, like)
    if N[N_BALLS]:
        enter_charts(N, W, like)
    for i in range(1, N[N_COUNT] + 1):
        axes, d = place(T, N, W, i, like)
        move(T, N, W, i, axes[2], d, like)


@step
def link_motion(T, N, W, link, like):
    """Return the axes of a link, the way to its origin from its node, and ω, α and A in those axes."""
    i = carrier(N, link)
    axes, r = link_frame(T, N, W, link, like)
    omega, alpha = load3(W, i * ROW + OMEGA, like), load3(W, i * ROW + ALPHA, like)
    acc = add(load3(W, i * ROW + ACC, like), add(cross(alpha, r), cross(omega, cross(omega, r))))
    return axes, r, into_axes(axes, omega), into_axes(axes, alpha), into_axes(axes, acc)


@step
def joint_twist(T, N, W, i, axes, r, like):
    """Return the twist (s, l) of the joint of node i, at r from its origin, in some axes."""
    k, t = node(i)
    z = joint_axis(W, i, like)
    s, l = (like, like, like), (like, like, like)
    if N[k + N_TURNS]:
        s, l = into_axes(axes, z), into_axes(axes, cross(z, r))
    if N[k + N_SLIDES]:
        l = add(l, scale(T[t + T_PITCH], into_axes(axes, z)))
    return s, l


@step
def put_link(T, N, W, link, out, pitch, column, first, last, like):
    """Write the ten columns of a link into the rows of all joints on the way to it; return 0 if finite, else NaN.

    A row is `pitch` long, and the link's columns begin at `column`.
    """
    i = carrier(N, link)
    axes, r, omega, alpha, acc = link_motion(T, N, W, link, like)
    n, total = N[N_COUNT], like
    while i > 0:
        k, _ = node(i)
        s, l = joint_twist(T, N, W, i, axes, r, like)
        values = ten_coefficients(s, l, omega, alpha, acc)
        to = (first * n + N[k + N_COORDINATE]) * pitch + column
        total = total + put_ten(out, to, n * pitch, min(width(like), last + 1 - first), values)
        r = add(r, load3(W, i * ROW + D, like))
        i = N[k + N_PARENT]
    return total


_MATRIX = "f8[:,::1]"


@entry(f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 4)}, f8[::1], i8, i8)", nogil=True)
def regressor_lanes(T, N, W, q, qd, qdd, base, out, start, stop):
    """Fill out (samples, n, 10 links), flat: with zeros, and while the cache has these with what is not zero.

    N has all joints active. The rows of a ball joint are those of its moments about the axes of its link. Return
    `start`, and 0 if all is finite.
    """
    like, status = zero_lanes(), 0
    size = N[N_COUNT] * INERTIAL * N[N_LINKS]
    for first in range(start, stop, width(like)):
        last = stop - 1
        fill_zeros(out, first * size, min(width(like), stop - first) * size)
        bring_motion(T, N, W, q, qd, qdd, base, first, last, like)
        total = like
        for link in range(N[N_LINKS]):
            total = total + put_link(T, N, W, link, out, INERTIAL * N[N_LINKS], INERTIAL * link, first, last, like)
        status = noted(status, all_greater(1.0, total), NOT_FINITE)
    return start, status


_PLAN = "i8[:,::1], i8[::1], i8[::1], f8[::1], i8, i8, f8[::1]"


@entry(f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 5)}, {_PLAN}, i8, i8)", nogil=True)
def inertial_rates_lanes(
    T, N, W, q, qd, qdd, base, response, runs, starts, columns, values, pitch, own, out, start, stop
):
    """Fill out (samples, n, pitch), flat: what torques, or answers to them, change by per inertial number.

    The plan, `runs` to `pitch`, and `own` are those of `inertial_numbers.put_columns`. Without a response (samples,
    n n) only what is not zero is written. N has all joints active. Return `start`, and 0 if all is finite.
    """
    like, status = zero_lanes(), 0
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_in(N, W, q, qd, qdd, first, last, like)
        bring_base(T, W, base, first, last, like)
        if N[N_BALLS]:
            enter_charts(N, W, like)
        bring_form_base(T, N, W, base, first, last, like)
        for i in range(1, N[N_COUNT] + 1):
            place(T, N, W, i, like)
            screws(T, N, W, i, like)
        plan = runs, starts, columns, values, pitch
        total = put_columns(T, N, W, response.shape[0] > 0, response, plan, own, out, first, last, like)
        status = noted(status, all_greater(1.0, total), NOT_FINITE)
    return start, status


@entry(f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 6)}, {_PLAN}, i8, i8)", nogil=True)
def inertial_sensitivity_lanes(
    T, N, W, q, qd, u, wrench, base, y, runs, starts, columns, values, pitch, own, out, start, stop
):
    """Fill rows of y and of out (samples, n, pitch), flat: the answers of the hybrid dynamics by inertial number.

    Return the first row of the first group that holds a bad one (or -1), and its status.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_in(N, W, q, qd, u, first, last, like)
        bring_base(T, W, base, first, last, like)
        status = hybrid(T, N, W, bring_loads(N, W, wrench, first, last, like), False, like)
        take_out(N, W, y, first, last, like)
        if status == 0:
            bring_form_base(T, N, W, base, first, last, like)
            for i in range(1, N[N_COUNT] + 1):
                screws(T, N, W, i, like)
            find_responses(T, N, W, like)
            plan = runs, starts, columns, values, pitch
            total = put_columns(T, N, W, True, base[:0], plan, own, out, first, last, like)
            status = noted(status, all_greater(1.0, total), NOT_FINITE)
        if status != 0:
            return first, status
    return -1, 0
