"""All sensitivities of the hybrid dynamics, from the closed forms and the passive block of the mass matrix.

With ID(q, q̇, q̈) = τ, p the passive and a the active joints:

    ∂q̈ᵖ = −M_pp⁻¹ (∂ID_p − ∂τᵖ + M_pa ∂q̈ᵃ)      ∂τᵃ = ∂ID_a + M_aa ∂q̈ᵃ + M_ap ∂q̈ᵖ

M_pp = Lᵀ D L keeps the zeros of the tree (Featherstone 2008, section 6.5).
The right-hand sides are the rows of X, one for each node, its columns in the order of q:
∂/∂q (n), ∂/∂q̇ (n), ∂/∂u (n), and ∂/∂V0 (6), ∂/∂dV0 (6) where the motion of the base is asked for.
"""

from __future__ import annotations

from cstormpy.kernels.closed_forms import forms_place, row_of
from cstormpy.kernels.compiling import step
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.lanes import load, load_tile, store, store_tile, tanh, tile_width, width
from cstormpy.kernels.layout import (
    C_B,
    C_PD,
    C_PDD,
    C_S,
    C_T,
    C_V,
    C_WD,
    C_WQ,
    CF_ROW,
    N_ABOVE,
    N_ACTIVE,
    N_COORDINATE,
    N_COUNT,
    N_DEEP,
    N_END,
    N_LOSSES,
    N_PARENT,
    QD,
    ROW,
    T_ARMATURE,
    T_DAMPING,
    T_FRICTION,
    T_SMOOTH,
    T_STIFFNESS,
)
from cstormpy.kernels.recursion import solve_by_recursion
from cstormpy.kernels.vector import cross, dot, load3


@step
def matrix_place(N):
    """Return where M stands: a row for each node, of as many numbers as `row_length` says."""
    return forms_place(N) + (N[N_COUNT] + 1) * CF_ROW


@step
def padded(count, like):
    """Return a length of at least `count` numbers that an odd count of tiles fills.

    With an even count the rows of a column would meet in few sets of the processor's cache.
    """
    fill = max(1, tile_width() // width(like))
    tiles = (count + fill - 1) // fill
    return (tiles + 1 - tiles % 2) * fill


@step
def row_length(N, like):
    return padded(N[N_COUNT] + 1, like)


@step
def factor_place(N, like):
    """Return where the passive block of M, later L, stands, in rows like those of M."""
    return matrix_place(N) + (N[N_COUNT] + 1) * row_length(N, like)


@step
def columns_place(N, like):
    """Return where X stands."""
    return matrix_place(N) + 2 * (N[N_COUNT] + 1) * row_length(N, like)


@step
def column_count(N, of_base, like):
    return padded(3 * N[N_COUNT] + (12 if of_base else 0), like)


@step
def clear(W, place, count, like):
    for k in range(place, place + count):
        store(W, k, like)


@step
def joint_rates(T, N, W, i, like):
    """Return the derivatives of the joint's own torque (damping, friction, spring) to q and q̇."""
    k, t = node(i)
    to_q, to_qd = like, like
    if N[k + N_LOSSES]:
        to_q = to_q + T[t + T_STIFFNESS]
        to_qd = to_qd + T[t + T_DAMPING]
        if T[t + T_FRICTION] != 0.0:
            th = tanh(T[t + T_SMOOTH] * load(W, i * ROW + QD, like))
            to_qd = to_qd + (T[t + T_FRICTION] * T[t + T_SMOOTH]) * (1.0 - th * th)
    return to_q, to_qd


@step
def six_dot(a, b, W, c, like):
    return dot(a, load3(W, c, like)) + dot(b, load3(W, c + 3, like))


@step
def fill_pairs(T, N, W, i, place, pitch, factors, like):
    """Write row and column of node i and all nodes on the way to it: ∂ID with the sign of the row, and M.

    Without `factors` neither M nor the columns that come from it are written.
    """
    n = N[N_COUNT]
    ki, t = node(i)
    ci = row_of(N, i)
    tm, tf = load3(W, ci + C_T, like), load3(W, ci + C_T + 3, like)
    b = load3(W, ci + C_B, like)
    dm, df = load3(W, ci + C_WD, like), load3(W, ci + C_WD + 3, like)
    qm, qf = load3(W, ci + C_WQ, like), load3(W, ci + C_WQ + 3, like)
    column_i, active_i = N[ki + N_COORDINATE], N[ki + N_ACTIVE]
    row_i = place + (i - 1) * pitch
    matrix = matrix_place(N) + i * row_length(N, like)
    passive = factor_place(N, like) + i * row_length(N, like)
    sign_i = 1.0 if active_i else -1.0
    to_q, to_qd = joint_rates(T, N, W, i, like)
    j = i
    while j > 0:
        kj, _ = node(j)
        cj = row_of(N, j)
        column_j, active_j = N[kj + N_COORDINATE], N[kj + N_ACTIVE]
        row_j = place + (j - 1) * pitch
        sign_j = 1.0 if active_j else -1.0
        sd = load3(W, cj + C_PD, like)
        mass = six_dot(tm, tf, W, cj + C_S, like)
        twice = six_dot(tm, tf, W, cj + C_PD, like)
        by_q = dot(b, sd) + six_dot(tm, tf, W, cj + C_PDD, like)
        by_qd = dot(b, load3(W, cj + C_S, like)) + 2.0 * twice
        if j == i:
            by_q = by_q + to_q
            by_qd = by_qd + to_qd
            mass = mass + T[t + T_ARMATURE]
        else:
            store(W, row_j + column_i, sign_j * six_dot(qm, qf, W, cj + C_S, like))
            store(W, row_j + n + column_i, sign_j * six_dot(dm, df, W, cj + C_S, like))
            if active_i and factors:
                store(W, row_j + 2 * n + column_i, sign_j * mass)
        store(W, row_i + column_j, sign_i * by_q)
        store(W, row_i + n + column_j, sign_i * by_qd)
        if factors:
            if active_j:
                store(W, row_i + 2 * n + column_j, sign_i * mass)
            store(W, matrix + j, mass)
            if not (active_i or active_j):
                store(W, passive + j, mass)
        j = N[kj + N_PARENT]
    if not active_i:
        store(W, row_i + 2 * n + column_i, like + 1.0)


@step
def fill_base(N, W, i, place, pitch, like):
    """Write the derivatives of joint i to the motion of the base."""
    ki, _ = node(i)
    ci, base = row_of(N, i), forms_place(N)
    sign = 1.0 if N[ki + N_ACTIVE] else -1.0
    tm, tf = load3(W, ci + C_T, like), load3(W, ci + C_T + 3, like)
    omega, v = load3(W, base + C_V, like), load3(W, base + C_V + 3, like)
    # as for a joint whose screw is the direction e, but dV0 is given: T · (V0 × e) = −(V0 ×* T) · e comes once
    turned = cross(omega, tm)
    shifted = cross(v, tf)
    b = load3(W, ci + C_B, like)
    force = cross(omega, tf)
    row = place + (i - 1) * pitch + 3 * N[N_COUNT]
    for k in range(3):
        store(W, row + k, sign * (b[k] - turned[k] - shifted[k]))
        store(W, row + 3 + k, -sign * force[k])
        store(W, row + 6 + k, sign * tm[k])
        store(W, row + 9 + k, sign * tf[k])


# Factorisation ---------------------------------------------------------------------------------------


@step
def passive_parent(N, i):
    """Return the nearest passive node between node i and the base, or 0."""
    k, _ = node(i)
    return N[k + N_ABOVE]


@step
def reduce_row(N, W, i, k, a, matrix, length, like):
    """Take a times row k off row i, up to its diagonal."""
    if width(like) < tile_width():
        # one sample: whole tiles, what stands beyond the diagonal is never read
        for c in range(0, i + 1, tile_width()):
            row_k = load_tile(W, matrix + k * length + c)
            store_tile(W, matrix + i * length + c, load_tile(W, matrix + i * length + c) - a * row_k)
    else:
        j = i
        while j > 0:
            x = load(W, matrix + i * length + j, like) - a * load(W, matrix + k * length + j, like)
            store(W, matrix + i * length + j, x)
            j = passive_parent(N, j)


@step
def factorise(N, W, like):
    """Replace the passive block of M by L, and its diagonal by the inverse of D."""
    matrix, length = factor_place(N, like), row_length(N, like)
    for k in range(N[N_COUNT], 0, -1):
        kk, _ = node(k)
        if not N[kk + N_ACTIVE]:
            inverse = 1.0 / load(W, matrix + k * length + k, like)
            i = passive_parent(N, k)
            while i > 0:
                a = load(W, matrix + k * length + i, like) * inverse
                reduce_row(N, W, i, k, a, matrix, length, like)
                store(W, matrix + k * length + i, a)
                i = passive_parent(N, i)
            store(W, matrix + k * length + k, inverse)


@step
def load_four(W, position):
    t = tile_width()
    return (
        load_tile(W, position),
        load_tile(W, position + t),
        load_tile(W, position + 2 * t),
        load_tile(W, position + 3 * t),
    )


@step
def store_four(W, position, a):
    for k in range(4):
        store_tile(W, position + k * tile_width(), a[k])


@step
def minus_four(a, factor, b):
    return a[0] - factor * b[0], a[1] - factor * b[1], a[2] - factor * b[2], a[3] - factor * b[3]


@step
def inward_four(N, W, place, pitch, c, like):
    """Solve with Lᵀ for four neighbouring tiles of all columns."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for j in range(N[N_COUNT], 0, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            x = (place + (j - 1) * pitch) * w + c
            a = load_four(W, x)
            for i in range(j + 1, N[kj + N_END]):
                ki, _ = node(i)
                if not N[ki + N_ACTIVE]:
                    factor = load(W, factors + i * length + j, like)
                    a = minus_four(a, factor, load_four(W, (place + (i - 1) * pitch) * w + c))
            store_four(W, x, a)


@step
def inward_tile(N, W, place, pitch, c, like):
    """Do the same with one tile."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for j in range(N[N_COUNT], 0, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            x = (place + (j - 1) * pitch) * w + c
            a = load_tile(W, x)
            for i in range(j + 1, N[kj + N_END]):
                ki, _ = node(i)
                if not N[ki + N_ACTIVE]:
                    factor = load(W, factors + i * length + j, like)
                    a = a - factor * load_tile(W, (place + (i - 1) * pitch) * w + c)
            store_tile(W, x, a)


@step
def outward_four(N, W, place, pitch, c, like):
    """Solve with D L for four neighbouring tiles of all columns."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            x = (place + (i - 1) * pitch) * w + c
            inverse = load(W, factors + i * length + i, like)
            b = load_four(W, x)
            a = (inverse * b[0], inverse * b[1], inverse * b[2], inverse * b[3])
            j = passive_parent(N, i)
            while j > 0:
                factor = load(W, factors + i * length + j, like)
                a = minus_four(a, factor, load_four(W, (place + (j - 1) * pitch) * w + c))
                j = passive_parent(N, j)
            store_four(W, x, a)


@step
def outward_tile(N, W, place, pitch, c, like):
    """Do the same with one tile."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            x = (place + (i - 1) * pitch) * w + c
            a = load(W, factors + i * length + i, like) * load_tile(W, x)
            j = passive_parent(N, i)
            while j > 0:
                factor = load(W, factors + i * length + j, like)
                a = a - factor * load_tile(W, (place + (j - 1) * pitch) * w + c)
                j = passive_parent(N, j)
            store_tile(W, x, a)


@step
def hand_inward(N, W, i, place, pitch, column, like):
    """Take what node i has in a column off the passive nodes on its way to the base."""
    factors = factor_place(N, like) + i * row_length(N, like)
    y = load(W, place + (i - 1) * pitch + column, like)
    j = passive_parent(N, i)
    while j > 0:
        x = place + (j - 1) * pitch + column
        store(W, x, load(W, x, like) - load(W, factors + j, like) * y)
        j = passive_parent(N, j)


@step
def inward_column(N, W, joint, last, place, pitch, column, like):
    """Solve with Lᵀ for a column that is zero but from node `joint` to node `last` and on the way to the base."""
    for i in range(last, joint - 1, -1):
        k, _ = node(i)
        if not N[k + N_ACTIVE]:
            hand_inward(N, W, i, place, pitch, column, like)
    i = passive_parent(N, joint)
    while i > 0:
        hand_inward(N, W, i, place, pitch, column, like)
        i = passive_parent(N, i)


@step
def inward_columns(N, W, place, pitch, of_base, like):
    """Solve with Lᵀ column by column, where the samples stand side by side, leaving out what is zero."""
    n = N[N_COUNT]
    for j in range(1, n + 1):
        k, _ = node(j)
        column, last = N[k + N_COORDINATE], N[k + N_END] - 1
        inward_column(N, W, j, last, place, pitch, column, like)
        inward_column(N, W, j, last, place, pitch, n + column, like)
        inward_column(N, W, j, last if N[k + N_ACTIVE] else j, place, pitch, 2 * n + column, like)
    if of_base:
        for column in range(3 * n, 3 * n + 12):
            for i in range(n, 0, -1):
                k, _ = node(i)
                if not N[k + N_ACTIVE]:
                    hand_inward(N, W, i, place, pitch, column, like)


@step
def add_to_active(N, W, i, place, pitch, count, like):
    """Add M_ap ∂q̈ᵖ to the row of the active node i, or of the active nodes on the way to the passive node i."""
    ki, _ = node(i)
    matrix = matrix_place(N) + i * row_length(N, like)
    active_i = N[ki + N_ACTIVE]
    w = width(like)
    j = N[ki + N_PARENT]
    while j > 0:
        kj, _ = node(j)
        if N[kj + N_ACTIVE] != active_i:
            mass = load(W, matrix + j, like)
            into, out = (i, j) if active_i else (j, i)
            to, of = (place + (into - 1) * pitch) * w, (place + (out - 1) * pitch) * w
            for c in range(0, count * w, tile_width()):
                store_tile(W, to + c, load_tile(W, to + c) + mass * load_tile(W, of + c))
        j = N[kj + N_PARENT]


@step
def goes_deep(N, like):
    """Tell whether the columns are solved by recursion: for one sample of a mechanism that is deep."""
    return width(like) < tile_width() and N[N_DEEP] != 0


@step
def fill_columns(T, N, W, of_base, like):
    """Fill the rows of X with all derivatives of y; the closed forms stand in W.

    Where the mechanism `goes_deep`, so do the articulated inertias of all nodes.
    """
    n = N[N_COUNT]
    deep = goes_deep(N, like)
    place, pitch = columns_place(N, like), column_count(N, of_base, like)
    clear(W, place, n * pitch, like)
    if not deep:
        clear(W, factor_place(N, like), (n + 1) * row_length(N, like), like)
    for i in range(1, n + 1):
        fill_pairs(T, N, W, i, place, pitch, not deep, like)
        if of_base:
            fill_base(N, W, i, place, pitch, like)
    if deep:
        solve_by_recursion(T, N, W, place, pitch, place + n * pitch)
    else:
        solve_by_factors(N, W, place, pitch, of_base, like)


@step
def solve_by_factors(N, W, place, pitch, of_base, like):
    """Replace the passive rows of X by M_pp⁻¹ times them, and add M_ap times them to the active rows."""
    factorise(N, W, like)
    end, t = pitch * width(like), tile_width()
    one_sample = width(like) < t
    if not one_sample:
        inward_columns(N, W, place, pitch, of_base, like)
    c = 0
    while c + 4 * t <= end:
        if one_sample:
            inward_four(N, W, place, pitch, c, like)
        outward_four(N, W, place, pitch, c, like)
        c += 4 * t
    while c < end:
        if one_sample:
            inward_tile(N, W, place, pitch, c, like)
        outward_tile(N, W, place, pitch, c, like)
        c += t
    for i in range(1, N[N_COUNT] + 1):
        add_to_active(N, W, i, place, pitch, pitch, like)
