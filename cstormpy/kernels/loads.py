"""Loads on the links from outside: wrenches, which turn with their link, and dead loads, which do not.

A wrench is given in its link's frame and turns with the link (a follower load), as the inertial force does. A dead load
keeps its direction in space (Xiang, Arora and Abdel-Malek 2008, (16), (19), (33)): a force f at the point x of a link,
and a moment m₀, that stay as they are in the base's axes. Beside a wrench that is the same at the moment it lags
behind: a turn of a joint whose screw is (s, l) takes

    δm = x × (s × f) + s × m₀,   δf = s × f        (all at the origin of the base)

off what the turn does to the wrench. Summed up over the loads on a subtree,

    X = Σ x fᵀ,   L = tr(X) − Xᵀ − [m₀],   f = Σ f        (δm, δf) = (L s, s × f)

so that with dead loads joint j on the way to joint i has G_i · s_j, G_i = L_iᵀ s_i + f_i × l_i, more in ∂τ_i/∂q_j, and
(L_i s_i, s_i × f_i) more in the force WQ_i that gives ∂τ_j/∂q_i (see `closed_forms`). L and f are sums over the subtree
as its inertia is.

The dead loads on a link come as one row: m₀, f and P = Σ p fᵀ, with the points p in the link's frame.
"""

from cstormpy.kernels.layout import (
    DEAD,
    DEAD_LOADS,
    N_COUNT,
    N_LINKS,
    N_NODE,
    N_NODES,
    PA,
    ROW,
    T_LINK,
    T_NODE,
    T_NODES,
    WRENCH,
    R,
)
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import (
    add,
    add_scaled,
    column_times,
    cross,
    dot,
    increase3,
    load3,
    load_columns,
    rotate,
    scale,
)


@step
def wrench_place(N):
    """Return where the wrenches stand in the scratch memory: a row of six for each link."""
    return (N[N_COUNT] + 1) * ROW


@step
def dead_place(N):
    """Return where the dead loads stand in the scratch memory: a row of fifteen for each link."""
    return wrench_place(N) + WRENCH * N[N_LINKS]


@step
def wrench_in_world(T, N, W, link, i, like):
    """Return the wrench on a link in world axes, its moment about the origin of node i."""
    t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * link
    w = wrench_place(N) + WRENCH * link
    axes = load_columns(W, i * ROW + R, like)
    local_m = table_times(T, t, load3(W, w, like))
    local_f = table_times(T, t, load3(W, w + 3, like))
    moment = column_times(axes, local_m[0], local_m[1], local_m[2])
    force = column_times(axes, local_f[0], local_f[1], local_f[2])
    return add(moment, cross(rotate(axes, T, t + 9), force)), force


@step
def table_times(T, t, a):
    """Return the 3x3 matrix that stands row by row at T[t] times a."""
    return (
        T[t] * a[0] + T[t + 1] * a[1] + T[t + 2] * a[2],
        T[t + 3] * a[0] + T[t + 4] * a[1] + T[t + 5] * a[2],
        T[t + 6] * a[0] + T[t + 7] * a[1] + T[t + 8] * a[2],
    )


@step
def combined(a, b, c, x, y, z):
    """Return a x + b y + c z."""
    return add_scaled(add_scaled(scale(a, x), b, y), c, z)


@step
def dead_load(T, N, W, link, i, like):
    """Return moment, force, and the rows of Σ r fᵀ of the dead load on a link, r from the origin of node i.

    All in the base's axes.
    """
    t = T_NODES + T_NODE * N[N_COUNT] + T_LINK * link
    w = dead_place(N) + DEAD * link
    moment, force = load3(W, w, like), load3(W, w + 3, like)
    p0, p1, p2 = load3(W, w + 6, like), load3(W, w + 9, like), load3(W, w + 12, like)
    n0 = add_scaled(combined(T[t], T[t + 1], T[t + 2], p0, p1, p2), T[t + 9], force)
    n1 = add_scaled(combined(T[t + 3], T[t + 4], T[t + 5], p0, p1, p2), T[t + 10], force)
    n2 = add_scaled(combined(T[t + 6], T[t + 7], T[t + 8], p0, p1, p2), T[t + 11], force)
    x, y, z = load_columns(W, i * ROW + R, like)
    r0 = combined(x[0], y[0], z[0], n0, n1, n2)
    r1 = combined(x[1], y[1], z[1], n0, n1, n2)
    r2 = combined(x[2], y[2], z[2], n0, n1, n2)
    return moment, force, (r0, r1, r2)


@step
def shifted(arms, d, force):
    """Return the rows of Σ (r + d) fᵀ from those of Σ r fᵀ."""
    return (
        add_scaled(arms[0], d[0], force),
        add_scaled(arms[1], d[1], force),
        add_scaled(arms[2], d[2], force),
    )


@step
def moment_of(arms):
    """Return Σ r × f from the rows of Σ r fᵀ."""
    return arms[1][2] - arms[2][1], arms[2][0] - arms[0][2], arms[0][1] - arms[1][0]


@step
def load_in_world(T, N, W, link, i, loaded, like):
    """Return all that acts on a link from outside, in world axes, its moment about the origin of node i."""
    moment, force = wrench_in_world(T, N, W, link, i, like)
    if loaded == DEAD_LOADS:
        couple, dead, arms = dead_load(T, N, W, link, i, like)
        moment, force = add(moment, add(couple, moment_of(arms))), add(force, dead)
    return moment, force


@step
def take_off_loads(T, N, W, loaded, like):
    """Take the loads, which act on the links from outside, off the forces that the joints carry."""
    n, links = N[N_COUNT], N[N_LINKS]
    for link in range(links):
        i = N[N_NODES + N_NODE * n + link]
        if i > 0:
            moment, force = load_in_world(T, N, W, link, i, loaded, like)
            increase3(W, i * ROW + PA, scale(-1.0, moment))
            increase3(W, i * ROW + PA + 3, scale(-1.0, force))


# What they add to the derivatives ------------------------------------------------------------


@step
def lag_matrix(arms, moment):
    """Return the rows of L = tr(X) − Xᵀ − [m₀] from those of X."""
    x, y, z = arms
    m = moment
    return (
        (y[1] + z[2], m[2] - y[0], -m[1] - z[0]),
        (-m[2] - x[1], x[0] + z[2], m[0] - z[1]),
        (m[1] - x[2], -m[0] - y[2], x[0] + y[1]),
    )


@step
def lag_of(W, place, s, l, like):
    """Return (L s, s × f), and G = Lᵀ s + f × l, of the loads that stand at a place."""
    force = load3(W, place, like)
    a, b, c = load3(W, place + 3, like), load3(W, place + 6, like), load3(W, place + 9, like)
    moment = (dot(a, s), dot(b, s), dot(c, s))
    return moment, cross(s, force), add(combined(s[0], s[1], s[2], a, b, c), cross(force, l))
