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
from cstormpy.kernels.lanes import lane, load, store, width, with_lane, zero_lanes
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
    z = (load(W, i * ROW + R + 2, like), load(W, i * ROW + R + 5, like), load(W, i * ROW + R + 8, like))
    s, l = (like, like, like), (like, like, like)
    if N[k + N_TURNS]:
        s, l = into_axes(axes, z), into_axes(axes, cross(z, r))
    if N[k + N_SLIDES]:
        l = add(l, scale(T[t + T_PITCH], into_axes(axes, z)))
    return s, l


@step
def put_link(T, N, W, link, out, first, last, like):
    """Write the ten columns of a link into the rows of all joints on the way to it."""
    i = carrier(N, link)
    axes, r, omega, alpha, acc = link_motion(T, N, W, link, like)
    while i > 0:
        k, _ = node(i)
        s, l = joint_twist(T, N, W, i, axes, r, like)
        values = ten_coefficients(s, l, omega, alpha, acc)
        put_ten(out, first, last, N[k + N_COORDINATE], INERTIAL * link, values)
        r = add(r, load3(W, i * ROW + D, like))
        i = N[k + N_PARENT]


@step
def weigh_link(T, N, W, link, weights, begin, end, room, like):
    """Write what the torques of the joints on the way to a link change by per number, from `room` on.

    Numbers change the ten of the link by the rows `begin` to `end` of the weights.
    """
    i = carrier(N, link)
    axes, r, omega, alpha, acc = link_motion(T, N, W, link, like)
    count = 0
    while i > 0:
        s, l = joint_twist(T, N, W, i, axes, r, like)
        ten = ten_coefficients(s, l, omega, alpha, acc)
        for c in range(begin, end):
            total = like
            for k in range(INERTIAL):
                if weights[c, k] != 0.0:
                    total = total + weights[c, k] * ten[k]
            store(W, room + count * (end - begin) + c - begin, total)
        count += 1
        r = add(r, load3(W, i * ROW + D, like))
        i = N[parent_place(i)]


@step
def parent_place(i):
    return node(i)[0] + N_PARENT


@step
def put_weighed(N, W, link, out, places, begin, end, room, first, last, like):
    """Write the columns of a link's numbers: the rows of the joints on the way to it."""
    lanes = width(like)
    for s in range(min(lanes, last + 1 - first)):
        i, at = carrier(N, link), room
        while i > 0:
            row = N[node(i)[0] + N_COORDINATE]
            for c in range(begin, end):
                out[first + s, row, places[c]] = W[at * lanes + s]
                at += 1
            i = N[parent_place(i)]


@step
def put_response(N, W, link, out, places, begin, end, room, answers, first, last, like):
    """Write the columns of a link's numbers: the responses, which stand from `answers` on, to the torques they ask."""
    n, most, lanes = N[N_COUNT], end - begin, width(like)
    filled = room + n * most
    for row in range(n):
        for c in range(most):
            store(W, filled + row * most + c, like)
        i, at = carrier(N, link), room
        while i > 0:
            answer = load(W, answers + row * n + N[node(i)[0] + N_COORDINATE], like)
            for c in range(most):
                to = filled + row * most + c
                store(W, to, load(W, to, like) + answer * load(W, at + c, like))
            at += most
            i = N[parent_place(i)]
    for s in range(min(lanes, last + 1 - first)):
        for row in range(n):
            for c in range(most):
                out[first + s, row, places[begin + c]] = W[(filled + row * most + c) * lanes + s]


@step
def bring_response(N, W, response, answers, first, last, like):
    """Load the lanes of (samples, n, n) into the scratch memory from `answers` on."""
    n = N[N_COUNT]
    for row in range(n):
        for column in range(n):
            x = like
            for s in range(width(like)):
                x = with_lane(x, s, response[min(first + s, last), row, column])
            store(W, answers + row * n + column, x)


_MATRIX = "f8[:,::1]"


@entry(f"void(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 4)}, f8[:,:,::1], i8, i8)", nogil=True)
def regressor_lanes(T, N, W, q, qd, qdd, base, out, start, stop):
    """Fill out (samples, n, 10 links) but for what is zero, the rows of joints not on the way to a link.

    N has all joints active.

    The rows of a ball joint are those of its moments about the axes of its link.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_motion(T, N, W, q, qd, qdd, base, first, last, like)
        for link in range(N[N_LINKS]):
            put_link(T, N, W, link, out, first, last, like)


_RATES = f"void(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 4)}, f8[:,:,::1], i8[::1], {_MATRIX}, i8[::1]"


@entry(f"{_RATES}, i8, f8[:,:,::1], i8, i8)", nogil=True)
def inertial_rates_lanes(T, N, W, q, qd, qdd, base, response, begins, weights, places, room, out, start, stop):
    """Fill some columns of out (samples, n, k): what torques, or answers to them, change by per number of some links.

    `begins` says where the numbers of each link begin among the rows of the weights, `places` which column each has.
    Without a response the columns are those of the torques, of which only what is not zero is written. N has all joints
    active, and its scratch memory has `room` numbers before what is needed here.
    """
    like = zero_lanes()
    answers = room
    after = room + (N[N_COUNT] * N[N_COUNT] if response.shape[0] else 0)
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_motion(T, N, W, q, qd, qdd, base, first, last, like)
        if response.shape[0]:
            bring_response(N, W, response, answers, first, last, like)
        for link in range(N[N_LINKS]):
            begin, end = begins[link], begins[link + 1]
            if begin == end:
                continue
            weigh_link(T, N, W, link, weights, begin, end, after, like)
            if response.shape[0]:
                put_response(N, W, link, out, places, begin, end, after, answers, first, last, like)
            else:
                put_weighed(N, W, link, out, places, begin, end, after, first, last, like)
