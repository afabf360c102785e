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
from cstormpy.kernels.lanes import lane, load, load_tile, store, store_tile, tile_width, width, zero_lanes
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
def weigh_link(T, N, W, link, starts, columns, values, begin, end, room, at, like):
    """Write what the torques of the joints on the way to a link change by per number, from `at`; `room` is for ten.

    The numbers `begin` to `end` change the ten of the link by sparse rows: of row c the entries `starts[c]` to
    `starts[c + 1]` of columns and values.
    """
    i = carrier(N, link)
    axes, r, omega, alpha, acc = link_motion(T, N, W, link, like)
    while i > 0:
        s, l = joint_twist(T, N, W, i, axes, r, like)
        ten = ten_coefficients(s, l, omega, alpha, acc)
        for k in range(INERTIAL):
            store(W, room + k, ten[k])
        for c in range(begin, end):
            total = like
            for e in range(starts[c], starts[c + 1]):
                total = total + values[e] * load(W, room + columns[e], like)
            store(W, at, total)
            at += 1
        r = add(r, load3(W, i * ROW + D, like))
        i = N[node(i)[0] + N_PARENT]


@step
def put_weighed(W, ways, asks, begins, links, out, n, room, first, last, like):
    """Write the columns of all links' numbers: the rows of the joints on the way to each."""
    lanes, pitch = width(like), begins[links]
    for s in range(min(lanes, last + 1 - first)):
        at = room + INERTIAL
        for link in range(links):
            for w in range(asks[link], asks[link + 1]):
                to = ((first + s) * n + ways[w]) * pitch
                for c in range(begins[link], begins[link + 1]):
                    out[to + c] = W[at * lanes + s]
                    at += 1


@step
def put_response(W, ways, asks, begins, links, response, out, n, room, size, first, last, like):
    """Write the columns of all links' numbers: the responses to the torques that they ask of the joints on the way.

    Row by row of each sample, whose neighbouring columns stand side by side in a vector: the torques of the joints on
    the way to a link, in all columns of the link, times the responses of the row to them.
    """
    lanes, pitch, tile = width(like), begins[links], tile_width()
    asked = lanes * (room + INERTIAL)
    own = asked + lanes * size
    last_tile = own + size + tile  # what a vector holds beyond the columns of a link is not written
    for s in range(min(lanes, last + 1 - first)):
        for k in range(size):
            W[own + k] = W[asked + k * lanes + s]
        for row in range(n):
            to, here = ((first + s) * n + row) * pitch, own
            for link in range(links):
                w, end, most = asks[link], asks[link + 1], begins[link + 1] - begins[link]
                for c in range(0, most, tile):
                    at = max(0, min(c, most - tile))  # the last one overlaps the one before
                    total = response[first + s, row, ways[w]] * load_tile(W, here + at)
                    for p in range(1, end - w):
                        total = total + response[first + s, row, ways[w + p]] * load_tile(W, here + p * most + at)
                    if most >= tile:
                        store_tile(out, to + begins[link] + at, total)
                    else:
                        store_tile(W, last_tile, total)
                        for k in range(most):
                            out[to + begins[link] + k] = W[last_tile + k]
                here += (end - w) * most


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


_RATES = f"void(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 4)}, f8[:,:,::1], {', '.join(['i8[::1]'] * 5)}"


@entry(f"{_RATES}, f8[::1], i8, i8, f8[::1], i8, i8)", nogil=True)
def inertial_rates_lanes(
    T, N, W, q, qd, qdd, base, response, begins, asks, ways, starts, columns, values, room, size, out, start, stop
):
    """Fill out (samples, n, k), flat: what torques, or answers to them, change by per number of the links in turn.

    `begins` says where the numbers of each link begin, none of a link on the base; `asks` where the coordinates on the
    way to it begin in `ways`; `starts`, columns and values what each number does to the ten of its link, see
    `weigh_link`. Without a response the columns are those of the torques, of which only what is not zero is written.
    N has all joints active, and its scratch memory has `room` numbers before what is needed here, of which `size` are
    the torques that all numbers ask for.
    """
    like, links = zero_lanes(), N[N_LINKS]
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_motion(T, N, W, q, qd, qdd, base, first, last, like)
        at = room + INERTIAL
        for link in range(links):
            if begins[link] < begins[link + 1]:
                weigh_link(T, N, W, link, starts, columns, values, begins[link], begins[link + 1], room, at, like)
                at += (asks[link + 1] - asks[link]) * (begins[link + 1] - begins[link])
        if response.shape[0] == 0:
            put_weighed(W, ways, asks, begins, links, out, N[N_COUNT], room, first, last, like)
        else:
            put_response(W, ways, asks, begins, links, response, out, N[N_COUNT], room, size, first, last, like)
