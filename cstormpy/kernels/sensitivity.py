"""All sensitivities of the hybrid dynamics, from the closed forms and the passive block of the mass matrix.

With ID(q, q̇, q̈) = τ, p the passive and a the active joints:

    ∂q̈ᵖ = −M_pp⁻¹ (∂ID_p − ∂τᵖ + M_pa ∂q̈ᵃ)      ∂τᵃ = ∂ID_a + M_aa ∂q̈ᵃ + M_ap ∂q̈ᵖ

`factorisation` solves with M_pp, or `recursion` where its factors would be long. The right-hand sides are
the rows of X, one for each node, its columns in the order of q:
∂/∂q (n), ∂/∂q̇ (n), ∂/∂u (n), and ∂/∂V0 (6), ∂/∂dV0 (6) where the motion of the base is asked for.
"""

from cstormpy.kernels.chart_derivatives import pull_back_answers, pull_back_columns
from cstormpy.kernels.charts import chart_of
from cstormpy.kernels.closed_forms import forms_place, row_of
from cstormpy.kernels.factorisation import (
    column_count,
    columns_place,
    factor_place,
    matrix_place,
    row_length,
    solve_by_factors,
)
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.joint_torques import joint_rates, write_own_changes
from cstormpy.kernels.lanes import store, store_tile, tile_width, width, zero_lanes
from cstormpy.kernels.layout import (
    C_B,
    C_G,
    C_PD,
    C_PDD,
    C_S,
    C_T,
    C_V,
    C_WD,
    C_WQ,
    CH_K,
    CH_KD,
    DEAD_LOADS,
    N_ACTIVE,
    N_BALL,
    N_BALLS,
    N_COORDINATE,
    N_COUNT,
    N_DEEP,
    N_PARENT,
    T_ARMATURE,
)
from cstormpy.kernels.recursion import solve_by_recursion
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import cross, dot, increase3, load3, scale


@step
def clear(W, place, count, like):
    """Write zeros into whole rows of matrices."""
    if width(like) < tile_width():
        for k in range(place, place + count, tile_width()):
            store_tile(W, k, zero_lanes())
    else:
        for k in range(place, place + count):
            store(W, k, like)


@step
def six_dot(a, b, W, c, like):
    return dot(a, load3(W, c, like)) + dot(b, load3(W, c + 3, like))


@step
def fill_pairs(T, N, W, i, loaded, place, pitch, factors, like):
    """Write row and column of node i and all nodes on the way to it: ∂ID with the sign of the row, and M.

    Without `factors` neither M nor the columns that come from it are written.
    """
    n = N[N_COUNT]
    ki, t = node(i)
    ci = row_of(N, i)
    tm, tf = load3(W, ci + C_T, like), load3(W, ci + C_T + 3, like)
    b = load3(W, ci + C_B, like)
    g = (like, like, like)
    if loaded == DEAD_LOADS:
        g = load3(W, ci + C_G, like)
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
        if loaded == DEAD_LOADS:
            by_q = by_q + dot(g, load3(W, cj + C_S, like))
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


@step
def fill_balls(T, N, W, place, pitch, like):
    """Add what the balls' own torques change by beside those of their hinges."""
    n = N[N_COUNT]
    write_own_changes(T, N, W, like)
    for i in range(1, n + 1):
        k, _ = node(i)
        if N[k + N_BALL]:
            sign = 1.0 if N[k + N_ACTIVE] else -1.0
            row = chart_of(N, i) + 3 * (N[k + N_BALL] - 1)
            x = place + (i - 1) * pitch + N[k + N_COORDINATE] - N[k + N_BALL] + 1
            increase3(W, x, scale(sign, load3(W, row + CH_K, like)))
            increase3(W, x + n, scale(sign, load3(W, row + CH_KD, like)))


@step
def goes_deep(N, like):
    """Tell whether the columns are solved by recursion: for one sample of a mechanism that is deep."""
    return width(like) < tile_width() and N[N_DEEP] != 0


@step
def fill_columns(T, N, W, loaded, of_base, like):
    """Fill the rows of X with all derivatives of y; the closed forms, with loads of the kind ``loaded``, stand in W.

    Where the mechanism `goes_deep`, so do the articulated inertias of all nodes.
    """
    n = N[N_COUNT]
    deep = goes_deep(N, like)
    place, pitch = columns_place(N, like), column_count(N, of_base, like)
    clear(W, place, n * pitch, like)
    if not deep:
        clear(W, factor_place(N, like), (n + 1) * row_length(N, like), like)
    for i in range(1, n + 1):
        fill_pairs(T, N, W, i, loaded, place, pitch, not deep, like)
        if of_base:
            fill_base(N, W, i, place, pitch, like)
    if N[N_BALLS]:
        fill_balls(T, N, W, place, pitch, like)
    if deep:
        count = 3 * n + (12 if of_base else 0)
        solve_by_recursion(T, N, W, place, pitch, count, place + n * pitch)
    else:
        solve_by_factors(N, W, place, pitch, of_base, like)
    if N[N_BALLS]:
        pull_back_columns(N, W, place, pitch, like)
        pull_back_answers(N, W, place, pitch, like)
