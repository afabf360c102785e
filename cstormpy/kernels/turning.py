"""Loads on links that keep their direction in space: their wrenches at each configuration, and what that adds.

For the closed forms a wrench is fixed to its link and turns with it. A force f at a point p, and a moment m₀, that stay
as they are in the base's axes lag behind such a wrench: a turn of joint j, whose screw is (s_j, l_j), takes

    δf = s_j × f        δm = p × δf + s_j × m₀

off it, all at the origin of the base. The generalised forces of the joints i on the way to the link change by
−(s_i · δm + l_i · δf). A passive joint's is like a torque of its motor, so that its share comes by ∂y/∂u; that of an
active joint is taken off what its motor gives.
"""

from __future__ import annotations

from cstormpy.kernels.closed_forms import row_of
from cstormpy.kernels.compiling import step
from cstormpy.kernels.factorisation import column_count, columns_place
from cstormpy.kernels.hybrid import node, place, table_times, wrench_place
from cstormpy.kernels.kinematics import carrier
from cstormpy.kernels.layout import (
    C_POS,
    C_S,
    N_ACTIVE,
    N_COORDINATE,
    N_COUNT,
    N_PARENT,
    ROW,
    T_LINK,
    T_NODE,
    T_NODES,
    R,
)
from cstormpy.kernels.vector import add, column_times, cross, dot, load3, load_columns, rotate, store3, table3


@step
def into_link(T, N, axes, link, a):
    """Return a vector of the base's axes in those of a link, whose node has these axes."""
    t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * link
    x, y, z = dot(axes[0], a), dot(axes[1], a), dot(axes[2], a)
    return (
        T[t] * x + T[t + 3] * y + T[t + 6] * z,
        T[t + 1] * x + T[t + 4] * y + T[t + 7] * z,
        T[t + 2] * x + T[t + 5] * y + T[t + 8] * z,
    )


@step
def bring_wrenches(T, N, W, wrench, links, loads):
    """Write the wrenches on all links in their frames: those that are fixed to them, and the loads as they stand now.

    The base's row and q stand in W. A row of loads holds the point in the link's frame, force and moment in the base's.
    """
    begin = wrench_place(N)
    for j in range(wrench.size):
        W[begin + j] = wrench[j]
    if links.size == 0:
        return
    for i in range(1, N[N_COUNT] + 1):
        place(T, N, W, i, 0.0)
    for k in range(links.size):
        axes = load_columns(W, carrier(N, links[k]) * ROW + R, 0.0)
        force = into_link(T, N, axes, links[k], table3(loads[k], 3))
        moment = add(into_link(T, N, axes, links[k], table3(loads[k], 6)), cross(table3(loads[k], 0), force))
        w = begin + 6 * links[k]
        store3(W, w, add(load3(W, w, 0.0), moment))
        store3(W, w + 3, add(load3(W, w + 3, 0.0), force))


@step
def share_out(N, W, i, column, force):
    """Add to the derivatives of all answers to one coordinate what a change of joint i's generalised force makes."""
    place_of, pitch = columns_place(N, 0.0), column_count(N, False, 0.0)
    n = N[N_COUNT]
    k, _ = node(i)
    if N[k + N_ACTIVE]:
        W[place_of + (i - 1) * pitch + column] -= force
    else:
        source = 2 * n + N[k + N_COORDINATE]
        for row in range(n):
            x = place_of + row * pitch
            W[x + column] += W[x + source] * force


@step
def add_turning(T, N, W, links, loads):
    """Add to the columns ∂y/∂q, which `fill_columns` left in W, what comes of loads that do not turn."""
    for k in range(links.size):
        b = carrier(N, links[k])
        t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * links[k]
        axes = load_columns(W, b * ROW + R, 0.0)
        inside = table_times(T, t, table3(loads[k], 0))
        point = add(column_times(axes, inside[0], inside[1], inside[2]), rotate(axes, T, t + 9))
        j = b
        while j > 0:
            kj, _ = node(j)
            s = load3(W, row_of(N, j) + C_S, 0.0)
            d_force = cross(s, table3(loads[k], 3))
            at = add(load3(W, row_of(N, b) + C_POS, 0.0), point)
            d_moment = add(cross(at, d_force), cross(s, table3(loads[k], 6)))
            i = b
            while i > 0:
                ki, _ = node(i)
                c = row_of(N, i) + C_S
                lag = dot(load3(W, c, 0.0), d_moment) + dot(load3(W, c + 3, 0.0), d_force)
                share_out(N, W, i, N[kj + N_COORDINATE], -lag)
                i = N[ki + N_PARENT]
            j = N[kj + N_PARENT]
