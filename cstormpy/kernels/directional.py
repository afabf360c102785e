"""Directional forms: sensitivities times a direction, and a gradient times sensitivities, in O(n).

Both use the closed forms, whose sums over the way to a joint and over the subtree that it carries take the
place of the matrices, and one more run of the hybrid recursion with the articulated inertias that are there.
"""

from cstormpy.kernels.chart_derivatives import pull_back_gradient, pull_back_response, push_direction, push_gradient
from cstormpy.kernels.charts import chart_of, load_each, matrix_times, store_each, transposed_times
from cstormpy.kernels.closed_forms import forms_place, row_of
from cstormpy.kernels.hybrid import along, joint_axis, node
from cstormpy.kernels.joint_torques import joint_rates, write_own_changes
from cstormpy.kernels.lanes import load, store
from cstormpy.kernels.layout import (
    ACC,
    ALPHA,
    C_B,
    C_DID,
    C_DQ,
    C_DQD,
    C_DU,
    C_G,
    C_PD,
    C_PDD,
    C_S,
    C_T,
    C_WD,
    C_WQ,
    C_X,
    CF_ROW,
    CH_K,
    CH_KD,
    DEAD_LOADS,
    DI,
    N_ACTIVE,
    N_BALL,
    N_BALLS,
    N_COUNT,
    N_PARENT,
    N_SLIDES,
    N_TURNS,
    PA,
    RES,
    ROW,
    T_ARMATURE,
    T_PITCH,
    UV,
    D,
    Y,
)
from cstormpy.kernels.sensitivity import six_dot
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, cross, dot, increase3, load3, scale, store3


@step
def respond(T, N, W, like):
    """Solve M x = r for a mechanism at rest: RES holds r_p and x_a, the slots Y receive x_p and r_a."""
    n = N[N_COUNT]
    zero = (like, like, like)
    for i in range(n + 1):
        store3(W, i * ROW + PA, zero)
        store3(W, i * ROW + PA + 3, zero)
    for i in range(n, 0, -1):
        respond_inward(T, N, W, i, like)
    store3(W, ALPHA, zero)
    store3(W, ACC, zero)
    for i in range(1, n + 1):
        respond_outward(T, N, W, i, like)


@step
def respond_inward(T, N, W, i, like):
    k, t = node(i)
    row, p = i * ROW, N[k + N_PARENT]
    z = joint_axis(W, i, like)
    Um, Uf = load3(W, row + UV, like), load3(W, row + UV + 3, like)
    moment, force = load3(W, row + PA, like), load3(W, row + PA + 3, like)
    known = along(T, N, i, z, moment, force, like)
    given = load(W, row + RES, like)
    if N[k + N_ACTIVE]:
        pivot = along(T, N, i, z, Um, Uf, like) + T[t + T_ARMATURE]
        store(W, row + Y, known + pivot * given)
        g = given
    else:
        store(W, row + RES, given - known)
        g = (given - known) * load(W, row + DI, like)
    if p > 0:
        moment, force = add_scaled(moment, g, Um), add_scaled(force, g, Uf)
        increase3(W, p * ROW + PA, add(moment, cross(load3(W, row + D, like), force)))
        increase3(W, p * ROW + PA + 3, force)


@step
def respond_outward(T, N, W, i, like):
    k, t = node(i)
    row, parent = i * ROW, N[k + N_PARENT] * ROW
    alpha = load3(W, parent + ALPHA, like)
    acc = add(load3(W, parent + ACC, like), cross(alpha, load3(W, row + D, like)))
    reaction = dot(load3(W, row + UV, like), alpha) + dot(load3(W, row + UV + 3, like), acc)
    x = load(W, row + RES, like)
    if N[k + N_ACTIVE]:
        store(W, row + Y, load(W, row + Y, like) + reaction)
    else:
        x = (x - reaction) * load(W, row + DI, like)
        store(W, row + Y, x)
    z = joint_axis(W, i, like)
    if N[k + N_TURNS]:
        alpha = add_scaled(alpha, x, z)
    if N[k + N_SLIDES]:
        acc = add_scaled(acc, T[t + T_PITCH] * x, z)
    store3(W, row + ALPHA, alpha)
    store3(W, row + ACC, acc)


# Sensitivities times a direction ----------------------------------------------------------------------


@step
def change_outward(T, N, W, i, loaded, like):
    """Sum up the direction on the way to node i, and begin the change of ID_i with it."""
    k, _ = node(i)
    c, p = row_of(N, i), row_of(N, N[k + N_PARENT])
    dq, dqd = load(W, c + C_DQ, like), load(W, c + C_DQD, like)
    turn = add_scaled(scale(dq, load3(W, c + C_PD, like)), dqd, load3(W, c + C_S, like))
    m = add_scaled(scale(dq, load3(W, c + C_PDD, like)), 2.0 * dqd, load3(W, c + C_PD, like))
    f = add_scaled(scale(dq, load3(W, c + C_PDD + 3, like)), 2.0 * dqd, load3(W, c + C_PD + 3, like))
    turn = add(turn, load3(W, p + C_X, like))
    m, f = add(m, load3(W, p + C_X + 3, like)), add(f, load3(W, p + C_X + 6, like))
    store3(W, c + C_X, turn)
    store3(W, c + C_X + 3, m)
    store3(W, c + C_X + 6, f)
    to_q, to_qd = joint_rates(T, N, W, i, like)
    change = dot(load3(W, c + C_B, like), turn) + six_dot(m, f, W, c + C_T, like)
    if loaded == DEAD_LOADS:
        turn = add_scaled(load3(W, p + C_X + 9, like), dq, load3(W, c + C_S, like))
        store3(W, c + C_X + 9, turn)
        change = change + dot(load3(W, c + C_G, like), turn)
    store(W, c + C_DID, change + to_q * dq + to_qd * dqd)


@step
def change_inward(N, W, i, like):
    """Complete the change of ID_i by what the direction does to the joints that joint i carries."""
    k, _ = node(i)
    c, p = row_of(N, i), row_of(N, N[k + N_PARENT])
    m, f = load3(W, c + C_X + 3, like), load3(W, c + C_X + 6, like)
    store(W, c + C_DID, load(W, c + C_DID, like) + six_dot(m, f, W, c + C_S, like))
    dq, dqd = load(W, c + C_DQ, like), load(W, c + C_DQD, like)
    m = add_scaled(add_scaled(m, dq, load3(W, c + C_WQ, like)), dqd, load3(W, c + C_WD, like))
    f = add_scaled(add_scaled(f, dq, load3(W, c + C_WQ + 3, like)), dqd, load3(W, c + C_WD + 3, like))
    increase3(W, p + C_X + 3, m)
    increase3(W, p + C_X + 6, f)


@step
def change_balls(N, W, like):
    """Add the change of the balls' own torques that their hinges do not have, K δθ + K̇ δθ̇, to that of ID."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c, row = chart_of(N, i), row_of(N, i)
            dq, dqd = load_each(W, row + C_DQ, CF_ROW, like), load_each(W, row + C_DQD, CF_ROW, like)
            change = add(matrix_times(W, c + CH_K, dq, like), matrix_times(W, c + CH_KD, dqd, like))
            store_each(W, row + C_DID, CF_ROW, add(load_each(W, row + C_DID, CF_ROW, like), change))


@step
def clear_sums(N, W, first, like):
    zero = (like, like, like)
    for i in range(first, N[N_COUNT] + 1):
        for part in range(4):
            store3(W, row_of(N, i) + C_X + 3 * part, zero)


@step
def along_direction(T, N, W, loaded, like):
    """Put ∂y/∂q δq + ∂y/∂q̇ δq̇ + ∂y/∂u δu into the slots Y; the direction stands in the closed forms' rows."""
    n = N[N_COUNT]
    if N[N_BALLS]:
        write_own_changes(T, N, W, like)
        push_direction(N, W, forms_place(N), like)
    clear_sums(N, W, 0, like)
    for i in range(1, n + 1):
        change_outward(T, N, W, i, loaded, like)
    if N[N_BALLS]:
        change_balls(N, W, like)
    clear_sums(N, W, 0, like)
    for i in range(n, 0, -1):
        change_inward(N, W, i, like)
    for i in range(1, n + 1):
        k, _ = node(i)
        c = row_of(N, i)
        given = load(W, c + C_DU, like)
        if not N[k + N_ACTIVE]:
            given = given - load(W, c + C_DID, like)
        store(W, i * ROW + RES, given)
    respond(T, N, W, like)
    for i in range(1, n + 1):
        k, _ = node(i)
        if N[k + N_ACTIVE]:
            store(W, i * ROW + Y, load(W, i * ROW + Y, like) + load(W, row_of(N, i) + C_DID, like))
    if N[N_BALLS]:
        pull_back_response(N, W, like)


# A gradient times sensitivities -----------------------------------------------------------------------


@step
def gradient_inward(N, W, i, loaded, like):
    """Sum λ B and λ T (and λ G) over the subtree of node i, and begin the gradients with them; λ stands in C_DID."""
    k, _ = node(i)
    c, p = row_of(N, i), row_of(N, N[k + N_PARENT])
    weight = load(W, c + C_DID, like)
    b = add_scaled(load3(W, c + C_X, like), weight, load3(W, c + C_B, like))
    m = add_scaled(load3(W, c + C_X + 3, like), weight, load3(W, c + C_T, like))
    f = add_scaled(load3(W, c + C_X + 6, like), weight, load3(W, c + C_T + 3, like))
    to_q = dot(b, load3(W, c + C_PD, like)) + six_dot(m, f, W, c + C_PDD, like)
    if loaded == DEAD_LOADS:
        g = add_scaled(load3(W, c + C_X + 9, like), weight, load3(W, c + C_G, like))
        to_q = to_q + dot(g, load3(W, c + C_S, like))
        increase3(W, p + C_X + 9, g)
    store(W, c + C_DQ, to_q)
    store(W, c + C_DQD, dot(b, load3(W, c + C_S, like)) + 2.0 * six_dot(m, f, W, c + C_PD, like))
    increase3(W, p + C_X, b)
    increase3(W, p + C_X + 3, m)
    increase3(W, p + C_X + 6, f)


@step
def gradient_outward(T, N, W, i, like):
    """Complete the gradients by λ S, summed over the way to the parent of node i."""
    k, _ = node(i)
    c, p = row_of(N, i), row_of(N, N[k + N_PARENT])
    m, f = load3(W, p + C_X + 3, like), load3(W, p + C_X + 6, like)
    weight = load(W, c + C_DID, like)
    to_q, to_qd = joint_rates(T, N, W, i, like)
    store(W, c + C_DQ, load(W, c + C_DQ, like) + six_dot(m, f, W, c + C_WQ, like) + to_q * weight)
    store(W, c + C_DQD, load(W, c + C_DQD, like) + six_dot(m, f, W, c + C_WD, like) + to_qd * weight)
    store3(W, c + C_X + 3, add_scaled(m, weight, load3(W, c + C_S, like)))
    store3(W, c + C_X + 6, add_scaled(f, weight, load3(W, c + C_S + 3, like)))


@step
def gradient_of_balls(N, W, like):
    """Add Kᵀ λ and K̇ᵀ λ of the balls to the gradients."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c, row = chart_of(N, i), row_of(N, i)
            weights = load_each(W, row + C_DID, CF_ROW, like)
            to_q = add(load_each(W, row + C_DQ, CF_ROW, like), transposed_times(W, c + CH_K, weights, like))
            to_qd = add(load_each(W, row + C_DQD, CF_ROW, like), transposed_times(W, c + CH_KD, weights, like))
            store_each(W, row + C_DQ, CF_ROW, to_q)
            store_each(W, row + C_DQD, CF_ROW, to_qd)


@step
def against_gradient(T, N, W, loaded, like):
    """Turn a gradient to y, which stands in the slots C_DU, into those to q, q̇ and u in C_DQ, C_DQD, C_DU.

    λ solves M_pp λ_p + M_pa ȳ_a = −ȳ_p with λ_a = ȳ_a; then ȳ · ∂y = λ · ∂ID − λ_p · ∂τᵖ + (M λ)_a · ∂q̈ᵃ.
    """
    n = N[N_COUNT]
    if N[N_BALLS]:
        write_own_changes(T, N, W, like)
        push_gradient(N, W, forms_place(N), like)
    for i in range(1, n + 1):
        k, _ = node(i)
        given = load(W, row_of(N, i) + C_DU, like)
        store(W, i * ROW + RES, given if N[k + N_ACTIVE] else -given)
    respond(T, N, W, like)
    for i in range(1, n + 1):
        k, _ = node(i)
        c, answer = row_of(N, i), load(W, i * ROW + Y, like)
        if N[k + N_ACTIVE]:
            store(W, c + C_DID, load(W, c + C_DU, like))
            store(W, c + C_DU, answer)
        else:
            store(W, c + C_DID, answer)
            store(W, c + C_DU, -answer)
    clear_sums(N, W, 0, like)
    for i in range(n, 0, -1):
        gradient_inward(N, W, i, loaded, like)
    clear_sums(N, W, 0, like)
    for i in range(1, n + 1):
        gradient_outward(T, N, W, i, like)
    if N[N_BALLS]:
        gradient_of_balls(N, W, like)
        pull_back_gradient(N, W, forms_place(N), like)
