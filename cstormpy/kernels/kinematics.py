"""Poses of the links in the base's frame, and what the joints do to one of them."""

from cstormpy.kernels.closed_forms import row_of
from cstormpy.kernels.hybrid import node, place
from cstormpy.kernels.layout import (
    C_PD,
    C_POS,
    C_S,
    C_V,
    N_BALL,
    N_COUNT,
    N_NODE,
    N_NODES,
    N_PARENT,
    ROW,
    T_LINK,
    T_NODE,
    T_NODES,
    D,
    R,
)
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, column_times, cross, dot, load3, load_columns, rotate, store3, sub


@step
def place_all(T, N, W, like):
    """Find orientation and position of every node."""
    store3(W, row_of(N, 0) + C_POS, (like, like, like))
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        place(T, N, W, i, like)
        position = add(load3(W, row_of(N, N[k + N_PARENT]) + C_POS, like), load3(W, i * ROW + D, like))
        store3(W, row_of(N, i) + C_POS, position)


@step
def carrier(N, link):
    """Return the node that carries a link, 0 for one that is fixed to the base."""
    return N[N_NODES + N_NODE * N[N_COUNT] + link]


@step
def link_frame(T, N, W, link, like):
    """Return the axes (columns) of a link, and the way to its origin from that of the node that carries it."""
    i = carrier(N, link)
    t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * link
    axes = load_columns(W, i * ROW + R, like)
    x = column_times(axes, T[t], T[t + 3], T[t + 6])
    y = column_times(axes, T[t + 1], T[t + 4], T[t + 7])
    z = column_times(axes, T[t + 2], T[t + 5], T[t + 8])
    return (x, y, z), rotate(axes, T, t + 9)


@step
def pose_of_link(T, N, W, link, like):
    """Return the axes (columns) and the origin of a link, in the base's frame."""
    axes, d = link_frame(T, N, W, link, like)
    return axes, add(load3(W, row_of(N, carrier(N, link)) + C_POS, like), d)


@step
def into_link(axes, origin, s, l):
    """Return the twist (s, l) at the base's origin as a twist in the link's own frame."""
    v = add(l, cross(s, origin))
    return (
        (dot(axes[0], s), dot(axes[1], s), dot(axes[2], s)),
        (dot(axes[0], v), dot(axes[1], v), dot(axes[2], v)),
    )


@step
def jacobian_column(N, W, j, carrier, axes, origin, like):
    """Return the twist of the link per rate of joint j, and the rate of that twist, in the link's frame.

    In the base's frame the rate of S_j, seen from the link, is S_j × (V_link − V_j).
    """
    c, e = row_of(N, j), row_of(N, carrier)
    k, _ = node(j)
    s, l = load3(W, c + C_S, like), load3(W, c + C_S + 3, like)
    omega, v = load3(W, e + C_V, like), load3(W, e + C_V + 3, like)
    if N[k + N_BALL]:  # whose screws change in its frame too
        rate_s = add(load3(W, c + C_PD, like), cross(s, omega))
        rate_l = add(load3(W, c + C_PD + 3, like), add(cross(s, v), cross(l, omega)))
    else:
        omega, v = sub(omega, load3(W, c + C_V, like)), sub(v, load3(W, c + C_V + 3, like))
        rate_s, rate_l = cross(s, omega), add(cross(s, v), cross(l, omega))
    w, u = into_link(axes, origin, s, l)
    dw, du = into_link(axes, origin, rate_s, rate_l)
    return w, u, dw, du
