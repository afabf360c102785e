"""M_pp⁻¹ times many columns by the hybrid recursion: O(n) for each, where the factors of M_pp would be long.

One sample; its columns stand side by side in tiles (see `lanes`). The articulated inertias of all nodes are there. A
column asks: with these torques of the passive joints, and these accelerations of the active ones, how does the
mechanism, at rest and without gravity, move, and what do the active joints take?

All spatial vectors stand at the origin of the base, so that nothing is transformed on the way: inward the force
P += U g, outward the acceleration A += S x, with U = Î S. Where a node has one child, or is one, P and A stay in
registers.
"""

from cstormpy.kernels.closed_forms import row_of
from cstormpy.kernels.hybrid import along, joint_axis, node
from cstormpy.kernels.lanes import load_tile, store_tile, tile_width, with_lane, zero_lanes
from cstormpy.kernels.layout import (
    C_POS,
    C_S,
    DI,
    N_ACTIVE,
    N_COORDINATE,
    N_COUNT,
    N_END,
    N_PARENT,
    PACKED,
    ROW,
    T_ARMATURE,
    UV,
)
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, cross, load3, store3

# numbers of a node, packed: S (6), U (6), the inverse of the pivot of a passive joint, or the pivot of an active one
P_S, P_U, P_PIVOT = 0, 6, 12


@step
def pack(T, N, W, i, packed):
    k, t = node(i)
    c, row, p = row_of(N, i), i * ROW, packed + PACKED * i
    Um, Uf = load3(W, row + UV, 0.0), load3(W, row + UV + 3, 0.0)
    store3(W, p + P_S, load3(W, c + C_S, 0.0))
    store3(W, p + P_S + 3, load3(W, c + C_S + 3, 0.0))
    store3(W, p + P_U, add(Um, cross(load3(W, c + C_POS, 0.0), Uf)))
    store3(W, p + P_U + 3, Uf)
    if N[k + N_ACTIVE]:
        W[p + P_PIVOT] = along(T, N, i, joint_axis(W, i, 0.0), Um, Uf, 0.0) + T[t + T_ARMATURE]
    else:
        W[p + P_PIVOT] = W[row + DI]


@step
def load_state(W, position):
    t = tile_width()
    return (
        load_tile(W, position),
        load_tile(W, position + t),
        load_tile(W, position + 2 * t),
        load_tile(W, position + 3 * t),
        load_tile(W, position + 4 * t),
        load_tile(W, position + 5 * t),
    )


@step
def store_state(W, position, x):
    for k in range(6):
        store_tile(W, position + k * tile_width(), x[k])


@step
def times(W, p, x):
    """Return the product of the six numbers at p with six tiles."""
    return (W[p] * x[0] + W[p + 1] * x[1] + W[p + 2] * x[2]) + (W[p + 3] * x[3] + W[p + 4] * x[4] + W[p + 5] * x[5])


@step
def plus(x, W, p, g):
    """Return six tiles plus g times the six numbers at p."""
    return (
        x[0] + W[p] * g,
        x[1] + W[p + 1] * g,
        x[2] + W[p + 2] * g,
        x[3] + W[p + 3] * g,
        x[4] + W[p + 4] * g,
        x[5] + W[p + 5] * g,
    )


@step
def has_branches(N, i):
    """Tell whether node i has several children: its first one, i + 1, does not end where it ends."""
    k, _ = node(i)
    end = N[k + N_END]
    if end == i + 1:
        return False
    first, _ = node(i + 1)
    return N[first + N_END] != end


@step
def prescribed(N, i, column, zero):
    """Return the accelerations that the columns from `column` on prescribe to the active joint i: 1 in its own."""
    k, _ = node(i)
    own = 2 * N[N_COUNT] + N[k + N_COORDINATE] - column
    if 0 <= own and own < tile_width():
        return with_lane(zero, own, 1.0)
    return zero


@step
def sweep_inward(N, W, place, pitch, column, packed, states, zero):
    size = 6 * tile_width()
    n = N[N_COUNT]
    none = (zero, zero, zero, zero, zero, zero)
    for i in range(1, n + 1):
        if has_branches(N, i):
            store_state(W, states + size * i, none)
    force = none
    for i in range(n, 0, -1):
        k, _ = node(i)
        x, p, parent = place + (i - 1) * pitch + column, packed + PACKED * i, N[k + N_PARENT]
        if N[k + N_END] == i + 1:
            force = none
        elif has_branches(N, i):
            force = load_state(W, states + size * i)
        known = times(W, p + P_S, force)
        if N[k + N_ACTIVE]:
            g = prescribed(N, i, column, zero)
            store_tile(W, x, load_tile(W, x) + known + W[p + P_PIVOT] * g)
        else:
            rest = load_tile(W, x) - known
            store_tile(W, x, rest)
            g = W[p + P_PIVOT] * rest
        force = plus(force, W, p + P_U, g)
        if parent > 0 and has_branches(N, parent):
            above = load_state(W, states + size * parent)
            force = (
                force[0] + above[0],
                force[1] + above[1],
                force[2] + above[2],
                force[3] + above[3],
                force[4] + above[4],
                force[5] + above[5],
            )
            store_state(W, states + size * parent, force)


@step
def sweep_outward(N, W, place, pitch, column, packed, states, zero):
    size = 6 * tile_width()
    none = (zero, zero, zero, zero, zero, zero)
    motion = none
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        x, p, parent = place + (i - 1) * pitch + column, packed + PACKED * i, N[k + N_PARENT]
        if parent == 0:
            motion = none
        elif parent != i - 1:
            motion = load_state(W, states + size * parent)
        reaction = times(W, p + P_U, motion)
        if N[k + N_ACTIVE]:
            store_tile(W, x, load_tile(W, x) + reaction)
            g = prescribed(N, i, column, zero)
        else:
            g = W[p + P_PIVOT] * (load_tile(W, x) - reaction)
            store_tile(W, x, g)
        motion = plus(motion, W, p + P_S, g)
        if has_branches(N, i):
            store_state(W, states + size * i, motion)


@step
def solve_by_recursion(T, N, W, place, pitch, count, scratch):
    """Replace the passive rows of X by ∂q̈ᵖ and add to the active rows, which hold ∂ID, what the motion asks of them.

    The rows, `pitch` float64 apart, begin at `place` and have `count` columns; from `scratch` on there is scratch
    memory.
    """
    n = N[N_COUNT]
    packed, states = scratch, scratch + PACKED * (n + 1)
    for i in range(1, n + 1):
        pack(T, N, W, i, packed)
    zero = zero_lanes()
    for column in range(0, count, tile_width()):
        sweep_inward(N, W, place, pitch, column, packed, states, zero)
        sweep_outward(N, W, place, pitch, column, packed, states, zero)
