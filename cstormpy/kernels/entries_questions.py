"""What else a compiled diagram asks a mechanism: where a link is, its inertia, its sensitivities; of one sample.

The numbers stand side by side in one array g. Compiled once, and linked to the function of each diagram that asks.
"""

from __future__ import annotations

from cstormpy.kernels.charts import chart_of, enter_charts, jacobian_times, phi_of, pull_back_screws, unit
from cstormpy.kernels.closed_forms import closed_forms, form_base, forms_place, row_of
from cstormpy.kernels.entries import entry
from cstormpy.kernels.entries_mechanisms import bring, take
from cstormpy.kernels.factorisation import column_count, columns_place
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.kinematics import into_link, place_all, pose_of_link
from cstormpy.kernels.layout import (
    C_POS,
    C_S,
    C_T,
    N_BALL,
    N_BALLS,
    N_COORDINATE,
    N_COUNT,
    N_DEEP,
    N_LINKS,
    N_NODE,
    N_NODES,
    N_PARENT,
    N_SLIDES,
    N_TURNS,
    QD,
    ROW,
    T_ARMATURE,
    T_PITCH,
    UNLOADED,
    WRENCH,
    WRENCHES,
    Q,
    R,
    U,
    Y,
)
from cstormpy.kernels.loads import wrench_place
from cstormpy.kernels.samples import bring_loads_one
from cstormpy.kernels.sensitivity import fill_columns, six_dot
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, column_times, cross, dot, increase3, load3, load_columns, scale

_TABLES = "f8[::1], i8[::1], f8[::1]"
#: In which frame `kinematics` sees twists: in the tool's own, in the base's, in the base's axes about the tool.
BODY, BASE, ALIGNED = 0, 1, 2


@step
def bring_still(T, N, W, g):
    """Bring in q, all at rest."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        row = i * ROW
        W[row + Q], W[row + QD], W[row + U], W[row + Y] = g[N[k + N_COORDINATE]], 0.0, 0.0, 0.0
    if N[N_BALLS]:
        enter_charts(N, W, 0.0)
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)


@step
def screw_of(T, N, W, i):
    """Return what joint i does to the links that it carries: its screw at the origin of the base."""
    k, t = node(i)
    row = i * ROW
    z = (W[row + R + 2], W[row + R + 5], W[row + R + 8])
    s, l = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if N[k + N_BALL]:
        last = i + 3 - N[k + N_BALL]
        p, c2, c3, _ = phi_of(W, last - 2, chart_of(N, i), 0.0)
        x = jacobian_times(p, c2, c3, unit(N[k + N_BALL] - 1, 0.0))
        z = column_times(load_columns(W, last * ROW + R, 0.0), x[0], x[1], x[2])
    if N[k + N_TURNS]:
        s, l = z, cross(load3(W, row_of(N, i) + C_POS, 0.0), z)
    if N[k + N_SLIDES]:
        l = add_scaled(l, T[t + T_PITCH], z)
    return s, l


@entry(f"void({_TABLES}, f8[::1], f8[::1], i8, i8)", nogil=True)
def kinematics(T, N, W, g, tool, link, frame):
    """Fill the pose of a tool on a link, and its Jacobian as seen in a frame (`BODY`, `BASE` or `ALIGNED`).

    g holds q (n), then the pose (16, row by row) and the Jacobian (6 n, row by row); `tool` the pose of the tool in
    the link's frame (16).
    """
    n = N[N_COUNT]
    bring_still(T, N, W, g)
    place_all(T, N, W, 0.0)
    (x, y, z), origin = pose_of_link(T, N, W, link, 0.0)
    p = (tool[3], tool[7], tool[11])
    origin = add(origin, add(add(scale(p[0], x), scale(p[1], y)), scale(p[2], z)))
    a = add(add(scale(tool[0], x), scale(tool[4], y)), scale(tool[8], z))
    b = add(add(scale(tool[1], x), scale(tool[5], y)), scale(tool[9], z))
    c = add(add(scale(tool[2], x), scale(tool[6], y)), scale(tool[10], z))
    for r in range(3):
        g[n + 4 * r], g[n + 4 * r + 1], g[n + 4 * r + 2], g[n + 4 * r + 3] = a[r], b[r], c[r], origin[r]
        g[n + 12 + r] = 0.0
    g[n + 15] = 1.0
    J = n + 16
    for k in range(6 * n):
        g[J + k] = 0.0
    j = N[N_NODES + N_NODE * n + link]
    while j > 0:
        k, _ = node(j)
        w, v = screw_of(T, N, W, j)
        if frame == BODY:
            w, v = into_link((a, b, c), origin, w, v)
        elif frame == ALIGNED:
            v = add(v, cross(w, origin))
        column = J + N[k + N_COORDINATE]
        for r in range(3):
            g[column + r * n], g[column + (3 + r) * n] = w[r], v[r]
        j = N[k + N_PARENT]


@entry(f"i8({_TABLES}, f8[::1], f8[::1], f8[::1])", nogil=True)
def pushed_motion(T, N, W, g, wrench, push):
    """Fill accelerations and torques of all joints as `loaded_motion` does, with a push beside the wrenches, or alone.

    wrench holds a row of loads, or nothing; push the link, the point of it (3) and the force (3) in the base's
    axes.
    """
    bring_still(T, N, W, g)
    place_all(T, N, W, 0.0)
    link = int(push[0])
    axes, _ = pose_of_link(T, N, W, link, 0.0)
    force, point = load3(push, 4, 0.0), load3(push, 1, 0.0)
    force = (dot(axes[0], force), dot(axes[1], force), dot(axes[2], force))
    bring(T, N, W, g)
    first = wrench_place(N)
    loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
    if loaded == UNLOADED:
        loaded = WRENCHES
        for k in range(WRENCH * N[N_LINKS]):
            W[first + k] = 0.0
    increase3(W, first + WRENCH * link, cross(point, force))
    increase3(W, first + WRENCH * link + 3, force)
    status = hybrid(T, N, W, loaded, False, 0.0)
    take(N, W, g)
    return status


@entry(f"void({_TABLES}, f8[::1])", nogil=True)
def inertia(T, N, W, g):
    """Fill the mass matrix, armature included; g holds q (n), then M (n n, row by row)."""
    n = N[N_COUNT]
    bring_still(T, N, W, g)
    rest = (0.0, 0.0, 0.0)
    form_base(T, N, W, rest, rest, rest, rest, 0.0)
    place_all(T, N, W, 0.0)
    closed_forms(T, N, W, UNLOADED, 0.0)
    if N[N_BALLS]:
        pull_back_screws(N, W, forms_place(N), 0.0)
    for k in range(n * n):
        g[n + k] = 0.0
    for i in range(1, n + 1):
        ki, t = node(i)
        m, f = load3(W, row_of(N, i) + C_T, 0.0), load3(W, row_of(N, i) + C_T + 3, 0.0)
        row, j = N[ki + N_COORDINATE], i
        while j > 0:
            kj, _ = node(j)
            value = six_dot(m, f, W, row_of(N, j) + C_S, 0.0)
            if j == i:
                value += T[t + T_ARMATURE]
            column = N[kj + N_COORDINATE]
            g[n + row * n + column] = value
            g[n + column * n + row] = value
            j = N[kj + N_PARENT]


@entry(f"i8({_TABLES}, f8[::1], f8[::1])", nogil=True)
def sensitivities(T, N, W, g, wrench):
    """Fill the derivatives of the hybrid dynamics; return its status.

    g holds q, q̇, u, q̈, τ, each of n numbers, then ∂y/∂q, ∂y/∂q̇ and ∂y/∂u (n n each, row by row); `wrench` a row
    of loads as `samples.bring_loads` takes, or nothing.
    """
    n = N[N_COUNT]
    bring(T, N, W, g)
    loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
    status = hybrid(T, N, W, loaded, N[N_DEEP] != 0, 0.0)
    take(N, W, g)
    if status != 0:
        return status
    rest = (0.0, 0.0, 0.0)
    form_base(T, N, W, rest, rest, rest, rest, 0.0)
    closed_forms(T, N, W, loaded, 0.0)
    fill_columns(T, N, W, loaded, False, 0.0)
    place, pitch = columns_place(N, 0.0), column_count(N, False, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        row, x = 5 * n + N[k + N_COORDINATE] * n, place + (i - 1) * pitch
        for block in range(3):
            for j in range(n):
                g[row + block * n * n + j] = W[x + block * n + j]
    return 0
