"""Charts of ball joints: from the rotation vector φ to three hinges about the body's axes, and back.

A ball is three nodes. Their coordinates are those of the rotation vector φ, which turns the link by exp(φ); but the
recursions see three hinges about the axes x, y, z of the link, one after the other, at the angles θ = 0 of the pose
exp(φ). φ ↦ θ(φ), exp(φ₀) Rx(θ₁) Ry(θ₂) Rz(θ₃) = exp(φ), is a change of coordinates about each pose φ₀, so that rates,
accelerations, torques and all their derivatives pass through its Taylor polynomial, and none is singular below
|φ| = 2π. With J the right Jacobian of the exponential, w = J φ̇ the angular velocity in the link's axes:

    θ̇ = J φ̇,   θ̈ = J φ̈ + g(φ, φ̇) − E(w, w),   τ_φ = Jᵀ τ_θ                          (g = J̇ φ̇)
    δθ = J δφ,  δθ̇ = P δφ + J δφ̇,  δθ̈ = Q δφ + 2 P δφ̇ + J δφ̈,  δτ_φ = Jᵀ δτ_θ + H δφ

    J x = x − c₂ φ×x + c₃ φ×(φ×x),  Jᵀ x = x + c₂ φ×x + c₃ φ×(φ×x)                      (Park and Chung 2005, (12))
    E(δ, x) = (δ₃ x₂, −δ₃ x₁, δ₂ x₁)      what a turn δθ does to the angular velocity of the hinges at the rates x

The Stumpff functions c_k(s) = Σ (−s)ʲ / (2j + k)!, s = |φ|², are entire, as are their derivatives
dc_k/ds = (k c_{k+2} − c_{k+1}) / 2: there is no case φ = 0. At |φ| ≥ 2π, where J has no inverse, they are made infinite
and the dynamics report what is not finite.
"""

from __future__ import annotations

import math

from cstormpy.kernels.lanes import load, reciprocal, store, where_positive
from cstormpy.kernels.layout import (
    C_DQ,
    C_DQD,
    C_DU,
    C_PD,
    C_S,
    C_T,
    CF_ROW,
    CH_C,
    CH_DQ,
    CH_DQD,
    CH_H,
    CH_P,
    CH_Q,
    CH_QD,
    CH_U,
    CH_Y,
    CHART,
    DEAD,
    N_ACTIVE,
    N_BALL,
    N_CHART,
    N_COORDINATE,
    N_COUNT,
    N_LINKS,
    QD,
    ROW,
    WRENCH,
    Q,
    U,
    Y,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, cross, dot, load3, scale, store3, sub

_LIMIT = (2.0 * math.pi) ** 2
_TERMS = 18  # the last one is below the rounding for all s < _LIMIT
_SIX = tuple((-1.0) ** j / math.factorial(2 * j + 6) for j in range(_TERMS))
_SEVEN = tuple((-1.0) ** j / math.factorial(2 * j + 7) for j in range(_TERMS))


# Where things stand ------------------------------------------------------------------------------------


@step
def charts_place(N):
    """Return where the numbers of the balls begin in the scratch memory."""
    return (N[N_COUNT] + 1) * ROW + (WRENCH + DEAD) * N[N_LINKS]


@step
def chart_of(N, i):
    """Return where the numbers of the ball stand to which node i belongs."""
    k, _ = node(i)
    return charts_place(N) + CHART * N[k + N_CHART]


@step
def slot(N, i, own, of_ball):
    """Return where a number of joint i stands: in its row, or in its ball's chart."""
    k, _ = node(i)
    if N[k + N_BALL]:
        return chart_of(N, i) + of_ball + N[k + N_BALL] - 1
    return i * ROW + own


@step
def rate_at(N, i):
    """Return where q̇ of joint i stands once the charts are entered."""
    return slot(N, i, QD, CH_QD)


@step
def given_at(N, i):
    """Return where u of joint i stands once the charts are entered."""
    return slot(N, i, U, CH_U)


@step
def answer_at(N, i):
    """Return where y of joint i stands once the charts are left."""
    return slot(N, i, Y, CH_Y)


@step
def load_each(W, place, pitch, like):
    return load(W, place, like), load(W, place + pitch, like), load(W, place + 2 * pitch, like)


@step
def store_each(W, place, pitch, x):
    store(W, place, x[0])
    store(W, place + pitch, x[1])
    store(W, place + 2 * pitch, x[2])


@step
def of_rows(W, i, what, like):
    """Return a number of the three nodes from i on."""
    return load_each(W, i * ROW + what, ROW, like)


@step
def unit(j, like):
    """Return the unit vector j."""
    one = like + 1.0
    if j == 0:
        return one, like, like
    if j == 1:
        return like, one, like
    return like, like, one


@step
def matrix_times(W, place, x, like):
    """Return the matrix that stands row by row at a place, times x."""
    return (
        dot(load3(W, place, like), x),
        dot(load3(W, place + 3, like), x),
        dot(load3(W, place + 6, like), x),
    )


@step
def transposed_times(W, place, x, like):
    """Return the transpose of the matrix that stands row by row at a place, times x."""
    first = add_scaled(scale(x[0], load3(W, place, like)), x[1], load3(W, place + 3, like))
    return add_scaled(first, x[2], load3(W, place + 6, like))


# The exponential and its Jacobian ----------------------------------------------------------------------


@step
def stumpff(s):
    """Return c₂ to c₇ of s."""
    c6, c7 = _SIX[_TERMS - 2] + s * _SIX[_TERMS - 1], _SEVEN[_TERMS - 2] + s * _SEVEN[_TERMS - 1]
    for k in range(_TERMS - 3, -1, -1):
        c6, c7 = _SIX[k] + s * c6, _SEVEN[k] + s * c7
    c6 = c6 + where_positive(_LIMIT - s, 0.0, 1e308) * s  # infinite beyond
    c5, c4 = 1.0 / 120.0 - s * c7, 1.0 / 24.0 - s * c6
    c3, c2 = 1.0 / 6.0 - s * c5, 0.5 - s * c4
    return c2, c3, c4, c5, c6, c7


@step
def jacobian_times(p, c2, c3, x):
    """Return J x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, -c2, n), c3, cross(p, n))


@step
def jacobian_transposed(p, c2, c3, x):
    """Return Jᵀ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, c2, n), c3, cross(p, n))


@step
def inverse_times(p, gamma, x):
    """Return J⁻¹ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, 0.5, n), gamma, cross(p, n))


@step
def inverse_transposed(p, gamma, x):
    """Return J⁻ᵀ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, -0.5, n), gamma, cross(p, n))


@step
def phi_of(W, i, c, like):
    """Return φ, c₂, c₃ and the γ of J⁻¹ = 1 + φ×/2 + γ φ×φ×, of the ball whose first node is i and whose chart is c."""
    c2, c3, c4 = load3(W, c + CH_C, like)
    return of_rows(W, i, Q, like), c2, c3, (0.5 * c3 - c4) * reciprocal(c2)


@step
def turned_by_ball(N, W, i, axes, like):
    """Return axes turned by exp(φ), in the order that makes the first of them the z axis of node i."""
    p, c = of_rows(W, i, Q, like), chart_of(N, i)
    c2, c3 = load(W, c + CH_C, like), load(W, c + CH_C + 1, like)
    s = dot(p, p)
    c0, c1 = 1.0 - s * c2, 1.0 - s * c3
    x, y, z = axes
    bx = exponential_column(x, y, z, p, c0, c1, c2)
    by = exponential_column(y, z, x, (p[1], p[2], p[0]), c0, c1, c2)
    bz = exponential_column(z, x, y, (p[2], p[0], p[1]), c0, c1, c2)
    return by, bz, bx


@step
def exponential_column(x, y, z, p, c0, c1, c2):
    """Return the column of c₀ + c₁ φ× + c₂ φ φᵀ that belongs to the first of three axes, which they are given in."""
    along = scale(c0 + c2 * p[0] * p[0], x)
    return add_scaled(add_scaled(along, c1 * p[2] + c2 * p[0] * p[1], y), c2 * p[0] * p[2] - c1 * p[1], z)


# Derivatives of rate and acceleration -------------------------------------------------------------------


@step
def swept(d, x):
    """Return E(δ, x)."""
    return d[2] * x[1], -d[2] * x[0], d[1] * x[0]


@step
def swept_twice(d, x):
    """Return the change of E(x, x), as far as it comes from the angles δ of the hinges."""
    return -(d[1] * x[1] + d[2] * x[2]) * x[0], -d[2] * x[2] * x[1], 0.0 * x[0]


@step
def velocity_change(p, c2, c3, dc2, dc3, x, d):
    """Return the derivative of J x along δφ = d."""
    n, along = cross(p, x), 2.0 * dot(p, d)
    change = add_scaled(scale(-c2, cross(d, x)), -dc2 * along, n)
    change = add_scaled(change, c3, add(cross(d, n), cross(p, cross(d, x))))
    return add_scaled(change, dc3 * along, cross(p, n))


@step
def drift(p, c3, dc2, dc3, x):
    """Return g(φ, φ̇) = J̇ φ̇ for φ̇ = x."""
    n, px = cross(p, x), dot(p, x)
    return add_scaled(add_scaled(scale(-2.0 * dc2 * px, n), c3, cross(x, n)), 2.0 * dc3 * px, cross(p, n))


@step
def drift_change(p, c3, dc2, dc3, ddc2, ddc3, x, d):
    """Return the derivative of g(φ, φ̇) along δφ = d for φ̇ = x."""
    n, px, pd, xd = cross(p, x), dot(p, x), dot(p, d), dot(x, d)
    dn, pn = cross(d, x), cross(p, n)
    change = add_scaled(scale(-(4.0 * ddc2 * pd * px + 2.0 * dc2 * xd), n), -2.0 * dc2 * px, dn)
    change = add_scaled(add_scaled(change, 2.0 * dc3 * pd, cross(x, n)), c3, cross(x, dn))
    change = add_scaled(change, 4.0 * ddc3 * pd * px + 2.0 * dc3 * xd, pn)
    return add_scaled(change, 2.0 * dc3 * px, add(cross(d, n), cross(p, dn)))


@step
def first_rates(W, c, like):
    """Return dc₂/ds and dc₃/ds."""
    c3, c4, c5 = load3(W, c + CH_C + 1, like)
    return c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4


@step
def second_rates(W, c, like):
    """Return d²c₂/ds² and d²c₃/ds²."""
    c4, (c5, c6, c7) = load(W, c + CH_C + 2, like), load3(W, c + CH_C + 3, like)
    return 2.0 * c6 - 1.25 * c5 + 0.25 * c4, 3.75 * c7 - 1.75 * c6 + 0.25 * c5


@step
def write_rate_change(N, W, i, like):
    """Write P of the ball whose first node is i."""
    c = chart_of(N, i)
    p, c2, c3, _ = phi_of(W, i, c, like)
    dc2, dc3 = first_rates(W, c, like)
    rate, w = load3(W, c + CH_QD, like), of_rows(W, i, QD, like)
    for j in range(3):
        e = unit(j, like)
        change = velocity_change(p, c2, c3, dc2, dc3, rate, e)
        store_each(W, c + CH_P + j, 3, sub(change, swept(jacobian_times(p, c2, c3, e), w)))


@step
def write_changes(N, W, i, like):
    """Write P, Q and H of the ball whose first node is i; the dynamics stand in W."""
    write_rate_change(N, W, i, like)
    k, _ = node(i)
    c = chart_of(N, i)
    p, c2, c3, _ = phi_of(W, i, c, like)
    dc2, dc3 = first_rates(W, c, like)
    ddc2, ddc3 = second_rates(W, c, like)
    rate, w = load3(W, c + CH_QD, like), of_rows(W, i, QD, like)
    acceleration, alpha, torque = load3(W, c + CH_Y, like), of_rows(W, i, Y, like), of_rows(W, i, U, like)
    if N[k + N_ACTIVE]:
        acceleration, alpha, torque = load3(W, c + CH_U, like), of_rows(W, i, U, like), of_rows(W, i, Y, like)
    for j in range(3):
        e = unit(j, like)
        turn = jacobian_times(p, c2, c3, e)
        change = velocity_change(p, c2, c3, dc2, dc3, acceleration, e)
        change = add(change, drift_change(p, c3, dc2, dc3, ddc2, ddc3, rate, e))
        dw = load_each(W, c + CH_P + j, 3, like)
        change = sub(sub(change, swept(turn, alpha)), swept_twice(turn, w))
        store_each(W, c + CH_Q + j, 3, sub(change, add(swept(dw, w), swept(w, dw))))
        for m in range(3):
            f = unit(m, like)
            second = velocity_change(p, c2, c3, dc2, dc3, f, e)
            second = sub(second, swept(turn, jacobian_times(p, c2, c3, f)))
            store(W, c + CH_H + 3 * m + j, dot(torque, second))


# Dynamics ----------------------------------------------------------------------------------------------


@step
def enter_charts(N, W, like):
    """Turn q̇ and u of the balls into rates, accelerations and torques of their hinges; keep them in their charts."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c = chart_of(N, i)
            p, rate, given = of_rows(W, i, Q, like), of_rows(W, i, QD, like), of_rows(W, i, U, like)
            store3(W, c + CH_QD, rate)
            store3(W, c + CH_U, given)
            found = stumpff(dot(p, p))
            for m in range(6):
                store(W, c + CH_C + m, found[m])
            _, c2, c3, gamma = phi_of(W, i, c, like)
            w = jacobian_times(p, c2, c3, rate)
            store_each(W, i * ROW + QD, ROW, w)
            if N[k + N_ACTIVE]:
                dc2, dc3 = first_rates(W, c, like)
                bias = sub(drift(p, c3, dc2, dc3, rate), swept(w, w))
                store_each(W, i * ROW + U, ROW, add(jacobian_times(p, c2, c3, given), bias))
            else:
                store_each(W, i * ROW + U, ROW, inverse_transposed(p, gamma, given))


@step
def leave_charts(N, W, like):
    """Write y of the balls, as their coordinates have it, into their charts."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c = chart_of(N, i)
            p, c2, c3, gamma = phi_of(W, i, c, like)
            found = of_rows(W, i, Y, like)
            if N[k + N_ACTIVE]:
                store3(W, c + CH_Y, jacobian_transposed(p, c2, c3, found))
            else:
                dc2, dc3 = first_rates(W, c, like)
                w = of_rows(W, i, QD, like)
                bias = sub(drift(p, c3, dc2, dc3, load3(W, c + CH_QD, like)), swept(w, w))
                store3(W, c + CH_Y, inverse_times(p, gamma, sub(found, bias)))


# Matrices ----------------------------------------------------------------------------------------------


@step
def pull_back_columns(N, W, place, pitch, of_base, like):
    """Turn the derivatives in the rows of X (see `sensitivity`) into those of y to the coordinates of the balls."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_changes(N, W, i, like)
            for r in range(N[N_COUNT]):
                pull_back_row(N, W, i, place + r * pitch, like)
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            pull_back_answers(N, W, i, place, pitch, of_base, like)


@step
def pull_back_row(N, W, i, row, like):
    """Turn a row's derivatives to what the hinges of a ball do into those to φ, φ̇ and its u."""
    k, _ = node(i)
    n, c = N[N_COUNT], chart_of(N, i)
    p, c2, c3, gamma = phi_of(W, i, c, like)
    q = row + N[k + N_COORDINATE]
    to_q, to_qd, to_u = load3(W, q, like), load3(W, q + n, like), load3(W, q + 2 * n, like)
    by_q = add(jacobian_transposed(p, c2, c3, to_q), transposed_times(W, c + CH_P, to_qd, like))
    by_qd = jacobian_transposed(p, c2, c3, to_qd)
    if N[k + N_ACTIVE]:
        by_u = jacobian_transposed(p, c2, c3, to_u)
        by_q = add(by_q, transposed_times(W, c + CH_Q, to_u, like))
        by_qd = add_scaled(by_qd, 2.0, transposed_times(W, c + CH_P, to_u, like))
    else:
        by_u = inverse_times(p, gamma, to_u)
        by_q = sub(by_q, transposed_times(W, c + CH_H, by_u, like))
    store3(W, q, by_q)
    store3(W, q + n, by_qd)
    store3(W, q + 2 * n, by_u)


@step
def pull_back_answers(N, W, i, place, pitch, of_base, like):
    """Turn the rows of a ball's hinges into those of its y."""
    k, _ = node(i)
    n, c, row, a = N[N_COUNT], chart_of(N, i), place + (i - 1) * pitch, N[k + N_COORDINATE]
    p, c2, c3, gamma = phi_of(W, i, c, like)
    for j in range(3 * n + 12 if of_base else 3 * n):
        x = load_each(W, row + j, pitch, like)
        if N[k + N_ACTIVE]:
            x = jacobian_transposed(p, c2, c3, x)
            if a <= j and j < a + 3:
                x = add(x, load_each(W, c + CH_H + j - a, 3, like))
        else:
            if a <= j and j < a + 3:
                x = sub(x, load_each(W, c + CH_Q + j - a, 3, like))
            if n + a <= j and j < n + a + 3:
                x = add_scaled(x, -2.0, load_each(W, c + CH_P + j - n - a, 3, like))
            x = inverse_times(p, gamma, x)
        store_each(W, row + j, pitch, x)


# Directions and gradients ------------------------------------------------------------------------------


@step
def push_direction(N, W, forms, like):
    """Turn a direction (δφ, δφ̇, δu) of each ball into that of its hinges; the dynamics stand in W."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_changes(N, W, i, like)
            push_motion(N, W, i, forms, like)
            c, row = chart_of(N, i), forms + CF_ROW * i
            p, c2, c3, gamma = phi_of(W, i, c, like)
            dq, dqd = load3(W, c + CH_DQ, like), load3(W, c + CH_DQD, like)
            du = load_each(W, row + C_DU, CF_ROW, like)
            if N[k + N_ACTIVE]:
                du = add(jacobian_times(p, c2, c3, du), matrix_times(W, c + CH_Q, dq, like))
                du = add_scaled(du, 2.0, matrix_times(W, c + CH_P, dqd, like))
            else:
                du = inverse_transposed(p, gamma, sub(du, matrix_times(W, c + CH_H, dq, like)))
            store_each(W, row + C_DU, CF_ROW, du)


@step
def push_motion(N, W, i, forms, like):
    """Turn the direction (δφ, δφ̇) of one ball into that of its hinges, and keep it; P stands in its chart."""
    c, row = chart_of(N, i), forms + CF_ROW * i
    p, c2, c3, _ = phi_of(W, i, c, like)
    dq, dqd = load_each(W, row + C_DQ, CF_ROW, like), load_each(W, row + C_DQD, CF_ROW, like)
    store3(W, c + CH_DQ, dq)
    store3(W, c + CH_DQD, dqd)
    store_each(W, row + C_DQ, CF_ROW, jacobian_times(p, c2, c3, dq))
    moved = add(jacobian_times(p, c2, c3, dqd), matrix_times(W, c + CH_P, dq, like))
    store_each(W, row + C_DQD, CF_ROW, moved)


@step
def push_motions(N, W, forms, like):
    """Turn the directions (δφ, δφ̇) of all balls into those of their hinges."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_rate_change(N, W, i, like)
            push_motion(N, W, i, forms, like)


@step
def pull_back_response(N, W, like):
    """Write what a direction does to y of the balls into their charts."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c = chart_of(N, i)
            p, c2, c3, gamma = phi_of(W, i, c, like)
            dq, dqd, dy = load3(W, c + CH_DQ, like), load3(W, c + CH_DQD, like), of_rows(W, i, Y, like)
            if N[k + N_ACTIVE]:
                dy = add(jacobian_transposed(p, c2, c3, dy), matrix_times(W, c + CH_H, dq, like))
            else:
                dy = sub(dy, matrix_times(W, c + CH_Q, dq, like))
                dy = inverse_times(p, gamma, add_scaled(dy, -2.0, matrix_times(W, c + CH_P, dqd, like)))
            store3(W, c + CH_Y, dy)


@step
def push_gradient(N, W, forms, like):
    """Turn a gradient to y of each ball into that to the answers of its hinges; the dynamics stand in W."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_changes(N, W, i, like)
            c, row = chart_of(N, i), forms + CF_ROW * i
            p, c2, c3, gamma = phi_of(W, i, c, like)
            gy = load_each(W, row + C_DU, CF_ROW, like)
            if N[k + N_ACTIVE]:
                store3(W, c + CH_DQ, transposed_times(W, c + CH_H, gy, like))
                store3(W, c + CH_DQD, (like, like, like))
                gy = jacobian_times(p, c2, c3, gy)
            else:
                gy = inverse_transposed(p, gamma, gy)
                store3(W, c + CH_DQ, scale(-1.0, transposed_times(W, c + CH_Q, gy, like)))
                store3(W, c + CH_DQD, scale(-2.0, transposed_times(W, c + CH_P, gy, like)))
            store_each(W, row + C_DU, CF_ROW, gy)


@step
def pull_back_gradient(N, W, forms, like):
    """Turn the gradients to what the hinges of each ball do into those to φ, φ̇ and u."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c, row = chart_of(N, i), forms + CF_ROW * i
            p, c2, c3, gamma = phi_of(W, i, c, like)
            to_q, to_qd = load_each(W, row + C_DQ, CF_ROW, like), load_each(W, row + C_DQD, CF_ROW, like)
            to_u = load_each(W, row + C_DU, CF_ROW, like)
            by_q = add(jacobian_transposed(p, c2, c3, to_q), transposed_times(W, c + CH_P, to_qd, like))
            by_qd = jacobian_transposed(p, c2, c3, to_qd)
            if N[k + N_ACTIVE]:
                by_u = jacobian_transposed(p, c2, c3, to_u)
                by_q = add(by_q, transposed_times(W, c + CH_Q, to_u, like))
                by_qd = add_scaled(by_qd, 2.0, transposed_times(W, c + CH_P, to_u, like))
            else:
                by_u = inverse_times(p, gamma, to_u)
                by_q = sub(by_q, transposed_times(W, c + CH_H, by_u, like))
            store_each(W, row + C_DQ, CF_ROW, add(by_q, load3(W, c + CH_DQ, like)))
            store_each(W, row + C_DQD, CF_ROW, add(by_qd, load3(W, c + CH_DQD, like)))
            store_each(W, row + C_DU, CF_ROW, by_u)


# Screws ------------------------------------------------------------------------------------------------


@step
def pull_back_screws(N, W, forms, like):
    """Turn S, Ṡ and T in the closed forms of the balls' hinges, and their rates, into those per rate of φ."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_rate_change(N, W, i, like)
            c, row = chart_of(N, i), forms + CF_ROW * i
            p, c2, c3, _ = phi_of(W, i, c, like)
            jx = jacobian_transposed(p, c2, c3, unit(0, like))  # rows of J
            jy = jacobian_transposed(p, c2, c3, unit(1, like))
            jz = jacobian_transposed(p, c2, c3, unit(2, like))
            for r in range(6):
                s, sd, t = row + C_S + r, row + C_PD + r, row + C_T + r
                x, v = load_each(W, s, CF_ROW, like), load_each(W, sd, CF_ROW, like)
                m = load_each(W, t, CF_ROW, like)
                v = add(combined(jx, jy, jz, v), transposed_times(W, c + CH_P, x, like))
                store_each(W, s, CF_ROW, combined(jx, jy, jz, x))
                store_each(W, sd, CF_ROW, v)
                store_each(W, t, CF_ROW, combined(jx, jy, jz, m))
            store_each(W, i * ROW + QD, ROW, load3(W, c + CH_QD, like))


@step
def combined(a, b, c, x):
    """Return x₁ a + x₂ b + x₃ c."""
    return add_scaled(add_scaled(scale(x[0], a), x[1], b), x[2], c)
