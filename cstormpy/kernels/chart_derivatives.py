"""Derivatives through the charts of ball joints (see `charts`, which has the notation).

P, Q and H stand in the charts. They turn the derivatives that the closed forms give for a ball's three hinges into
those to its rotation vector: of the matrices of the sensitivities, of the directional forms, and of the screws.
"""

from cstormpy.kernels.charts import (
    chart_of,
    first_rates,
    inverse_times,
    inverse_transposed,
    jacobian_times,
    jacobian_transposed,
    load_each,
    matrix_times,
    of_rows,
    phi_of,
    store_each,
    swept,
    transposed_times,
    unit,
)
from cstormpy.kernels.lanes import load, load_tile, store, store_tile, tile_width, width
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
    CH_J,
    CH_JI,
    CH_P,
    CH_Q,
    CH_QD,
    CH_U,
    CH_Y,
    N_ACTIVE,
    N_BALL,
    N_COORDINATE,
    N_COUNT,
    QD,
    ROW,
    U,
    Y,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, cross, dot, increase3, load3, load_columns, scale, store3, sub


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
def drift_change(p, c3, dc2, dc3, ddc2, ddc3, x, d):
    """Return the derivative of g(φ, φ̇) along δφ = d for φ̇ = x."""
    n, px, pd, xd = cross(p, x), dot(p, x), dot(p, d), dot(x, d)
    dn, pn = cross(d, x), cross(p, n)
    change = add_scaled(scale(-(4.0 * ddc2 * pd * px + 2.0 * dc2 * xd), n), -2.0 * dc2 * px, dn)
    change = add_scaled(add_scaled(change, 2.0 * dc3 * pd, cross(x, n)), c3, cross(x, dn))
    change = add_scaled(change, 4.0 * ddc3 * pd * px + 2.0 * dc3 * xd, pn)
    return add_scaled(change, 2.0 * dc3 * px, add(cross(d, n), cross(p, dn)))


@step
def second_rates(W, c, like):
    """Return d²c₂/ds² and d²c₃/ds²."""
    c4, (c5, c6, c7) = load(W, c + CH_C + 2, like), load3(W, c + CH_C + 3, like)
    return 2.0 * c6 - 1.25 * c5 + 0.25 * c4, 3.75 * c7 - 1.75 * c6 + 0.25 * c5


@step
def rate_change(p, c, dc, rate, w, d):
    """Return P d, the derivative of θ̇ along δφ = d; c and dc are (c₂, c₃) and its derivative."""
    change = velocity_change(p, c[0], c[1], dc[0], dc[1], rate, d)
    return sub(change, swept(jacobian_times(p, c[0], c[1], d), w))


@step
def acceleration_change(p, c, dc, ddc, motion, hinged, d, dw):
    """Return Q d, the derivative of θ̈ along δφ = d that changes θ̇ by dw; the motions are rates and accelerations."""
    turn = jacobian_times(p, c[0], c[1], d)
    change = velocity_change(p, c[0], c[1], dc[0], dc[1], motion[1], d)
    change = add(change, drift_change(p, c[1], dc[0], dc[1], ddc[0], ddc[1], motion[0], d))
    change = sub(sub(change, swept(turn, hinged[1])), swept_twice(turn, hinged[0]))
    return sub(change, add(swept(dw, hinged[0]), swept(hinged[0], dw)))


@step
def write_rate_change(N, W, i, like):
    """Write P of the ball whose first node is i."""
    c = chart_of(N, i)
    p, c2, c3, _ = phi_of(W, i, c, like)
    dc2, dc3 = first_rates(W, c, like)
    rate, w = load3(W, c + CH_QD, like), of_rows(W, i, QD, like)
    for j in range(3):
        store_each(W, c + CH_P + j, 3, rate_change(p, (c2, c3), (dc2, dc3), rate, w, unit(j, like)))


@step
def write_changes(N, W, i, like):
    """Write P, Q, H, J and J⁻¹ of the ball whose first node is i; the dynamics stand in W."""
    write_rate_change(N, W, i, like)
    k, _ = node(i)
    c = chart_of(N, i)
    p, c2, c3, gamma = phi_of(W, i, c, like)
    dc2, dc3 = first_rates(W, c, like)
    ddc2, ddc3 = second_rates(W, c, like)
    rate, w = load3(W, c + CH_QD, like), of_rows(W, i, QD, like)
    acceleration, alpha, torque = load3(W, c + CH_Y, like), of_rows(W, i, Y, like), of_rows(W, i, U, like)
    if N[k + N_ACTIVE]:
        acceleration, alpha, torque = load3(W, c + CH_U, like), of_rows(W, i, U, like), of_rows(W, i, Y, like)
    for j in range(3):
        e = unit(j, like)
        store_each(W, c + CH_J + j, 3, jacobian_times(p, c2, c3, e))
        store_each(W, c + CH_JI + j, 3, inverse_times(p, gamma, e))
        dw = load_each(W, c + CH_P + j, 3, like)
        motion, hinged = (rate, acceleration), (w, alpha)
        change = acceleration_change(p, (c2, c3), (dc2, dc3), (ddc2, ddc3), motion, hinged, e, dw)
        store_each(W, c + CH_Q + j, 3, change)
        for m in range(3):
            f = unit(m, like)
            second = rate_change(p, (c2, c3), (dc2, dc3), f, jacobian_times(p, c2, c3, f), e)
            store(W, c + CH_H + 3 * m + j, dot(torque, second))


# Matrices ----------------------------------------------------------------------------------------------


@step
def pulled_back(N, W, i, to_q, to_qd, to_u, like):
    """Return derivatives to φ, φ̇ and u of a ball from those to what its hinges do."""
    k, _ = node(i)
    c = chart_of(N, i)
    by_q = add(transposed_times(W, c + CH_J, to_q, like), transposed_times(W, c + CH_P, to_qd, like))
    by_qd = transposed_times(W, c + CH_J, to_qd, like)
    if N[k + N_ACTIVE]:
        by_u = transposed_times(W, c + CH_J, to_u, like)
        by_q = add(by_q, transposed_times(W, c + CH_Q, to_u, like))
        by_qd = add_scaled(by_qd, 2.0, transposed_times(W, c + CH_P, to_u, like))
    else:
        by_u = matrix_times(W, c + CH_JI, to_u, like)
        by_q = sub(by_q, transposed_times(W, c + CH_H, by_u, like))
    return by_q, by_qd, by_u


@step
def pull_back_columns(N, W, place, pitch, like):
    """Turn the derivatives in the rows of X (see `sensitivity`) into those to the coordinates of the balls."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_changes(N, W, i, like)
            for r in range(N[N_COUNT]):
                pull_back_row(N, W, i, place + r * pitch, like)


@step
def pull_back_row(N, W, i, row, like):
    """Turn a row's derivatives to what the hinges of a ball do into those to φ, φ̇ and its u."""
    k, _ = node(i)
    n = N[N_COUNT]
    q = row + N[k + N_COORDINATE]
    to_q, to_qd, to_u = load3(W, q, like), load3(W, q + n, like), load3(W, q + 2 * n, like)
    by_q, by_qd, by_u = pulled_back(N, W, i, to_q, to_qd, to_u, like)
    store3(W, q, by_q)
    store3(W, q + n, by_qd)
    store3(W, q + 2 * n, by_u)


@step
def pull_back_answers(N, W, place, pitch, like):
    """Turn the rows of the balls' hinges, whose columns are pulled back, into those of their y."""
    n, w = N[N_COUNT], width(like)
    for i in range(1, n + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c, row, a, active = chart_of(N, i), place + (i - 1) * pitch, N[k + N_COORDINATE], N[k + N_ACTIVE]
            for j in range(3):
                for m in range(3):
                    own = row + j * pitch + a + m
                    if not active:
                        store(W, own, load(W, own, like) - load(W, c + CH_Q + 3 * j + m, like))
                        own = own + n
                        store(W, own, load(W, own, like) - 2.0 * load(W, c + CH_P + 3 * j + m, like))
            for x in range(row * w, (row + pitch) * w, tile_width()):
                if active:
                    turn_tiles(W, x, pitch * w, load_columns(W, c + CH_J, like))
                else:
                    turn_tiles(W, x, pitch * w, of_transposed(W, c + CH_JI, like))
            if active:
                for j in range(3):
                    increase3(W, row + j * pitch + a, load3(W, c + CH_H + 3 * j, like))


@step
def of_transposed(W, place, like):
    """Return the rows of the matrix that stands row by row at a place."""
    return load3(W, place, like), load3(W, place + 3, like), load3(W, place + 6, like)


@step
def turn_tiles(W, x, pitch, rows):
    """Multiply three tiles, each `pitch` float64 behind the one before, by the matrix of these rows."""
    t = (load_tile(W, x), load_tile(W, x + pitch), load_tile(W, x + 2 * pitch))
    store_tile(W, x, dot(rows[0], t))
    store_tile(W, x + pitch, dot(rows[1], t))
    store_tile(W, x + 2 * pitch, dot(rows[2], t))


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
            to_q, to_qd = load_each(W, row + C_DQ, CF_ROW, like), load_each(W, row + C_DQD, CF_ROW, like)
            to_u = load_each(W, row + C_DU, CF_ROW, like)
            by_q, by_qd, by_u = pulled_back(N, W, i, to_q, to_qd, to_u, like)
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
