"""Torques that joints take themselves: damping, friction, springs, and the rotors of balls.

A hinge or slide takes d q̇ + f tanh(q̇ / v_s) + k (q − rest), and its rotor a q̈, which the recursions add to the inertia
that they see. A ball takes the moment, in the axes x, y, z of its link,

    m = a ω̇ + ω × a ω + d ω + f tanh(ω / v_s) + m_s(R)

of the angular velocity ω = J φ̇ relative to the parent, a, d, f and v_s for each axis: d and f are those of three
bearings, a is a body that turns with the link and feels nothing but ω, of the energy ½ ωᵀ a ω; and the moment m_s of
its spring, which depends on how far it is turned (see `ball_springs`). To the hinges of its
chart (see `charts`), which are at θ = 0 with the rates w = ω and

    ω = w + E(θ, θ̇) + …,   ω̇ = θ̈ + E(w, w),   τ_θ = (1 + E(θ, ·) + …)ᵀ m

this is what three hinges of these numbers take, and the torque β of the rotors beside:

    β = a E(w, w) + w × a w,   δτ_θ = a δθ̈ + (d + f′) δθ̇ + K δθ + K̇ δθ̇
    K δ = a (E(δ, θ̈) + E₂(δ, w)) + E(δ, w) × a w + w × a E(δ, w) + (d + f′) E(δ, w) + ∂m_s δ + E(δ, ·)ᵀ m
    K̇ δ = a (E(δ, w) + E(w, δ)) + δ × a w + w × a δ
"""

from cstormpy.kernels.ball_springs import has_spring, moment_change, spring_moment
from cstormpy.kernels.chart_derivatives import swept_twice, velocity_change
from cstormpy.kernels.charts import (
    chart_of,
    first_rates,
    jacobian_times,
    jacobian_transposed,
    of_rows,
    phi_of,
    store_each,
    swept,
    unit,
)
from cstormpy.kernels.lanes import load, tanh
from cstormpy.kernels.layout import (
    CH_K,
    CH_KD,
    CH_QD,
    N_ACTIVE,
    N_BALL,
    N_COUNT,
    N_LOSSES,
    QD,
    ROW,
    T_ARMATURE,
    T_DAMPING,
    T_FRICTION,
    T_NODE,
    T_REST,
    T_SMOOTH,
    T_STIFFNESS,
    Q,
    U,
    Y,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, cross, dot, load3


@step
def losses(T, N, W, i, like):
    """Return damping, friction and spring torque of joint i, and of a ball's hinge what the rotors take beside."""
    k, t = node(i)
    loss = like
    if N[k + N_LOSSES]:
        q, qd = load(W, i * ROW + Q, like), load(W, i * ROW + QD, like)
        loss = T[t + T_DAMPING] * qd
        if not N[k + N_BALL]:
            loss = loss + T[t + T_STIFFNESS] * (q - T[t + T_REST])
        if T[t + T_FRICTION] != 0.0:
            loss = loss + T[t + T_FRICTION] * tanh(T[t + T_SMOOTH] * qd)
    if N[k + N_BALL]:
        loss = loss + rotor_bias(T, N, W, i, like)
        if N[k + N_LOSSES]:
            loss = loss + spring_share(T, N, W, i, like)
    return loss


@step
def spring_share(T, N, W, i, like):
    """Return the moment of a ball's spring about the axis of its node i."""
    k, _ = node(i)
    place = N[k + N_BALL]
    share = like
    if has_spring(T, i - place + 1):
        moment = spring_moment(T, W, i - place + 1, like)
        if place == 1:
            share = moment[0]
        elif place == 2:
            share = moment[1]
        else:
            share = moment[2]
    return share


@step
def joint_rates(T, N, W, i, like):
    """Return the derivatives of the joint's own torque (damping, friction, spring) to q and q̇; no spring of balls."""
    k, t = node(i)
    to_q, to_qd = like, like
    if N[k + N_LOSSES]:
        if not N[k + N_BALL]:
            to_q = to_q + T[t + T_STIFFNESS]
        to_qd = to_qd + T[t + T_DAMPING]
        if T[t + T_FRICTION] != 0.0:
            th = tanh(T[t + T_SMOOTH] * load(W, i * ROW + QD, like))
            to_qd = to_qd + (T[t + T_FRICTION] * T[t + T_SMOOTH]) * (1.0 - th * th)
    return to_q, to_qd


# Balls --------------------------------------------------------------------------------------------------


@step
def rotors(T, i):
    """Return the armatures of the ball whose first node is i."""
    _, t = node(i)
    a = t + T_ARMATURE
    return T[a], T[a + T_NODE], T[a + 2 * T_NODE]


@step
def each_times(a, x):
    return a[0] * x[0], a[1] * x[1], a[2] * x[2]


@step
def rotor_bias(T, N, W, i, like):
    """Return β of node i of a ball."""
    k, _ = node(i)
    place = N[k + N_BALL]
    a0, a1, a2 = rotors(T, i - place + 1)
    x, y, z = of_rows(W, i - place + 1, QD, like)
    if place == 1:
        return (a0 - a1 + a2) * (y * z)
    if place == 2:
        return (a0 - a1 - a2) * (z * x)
    return (a2 + a1 - a0) * (x * y)


@step
def swept_transposed(d, m):
    """Return E(δ, ·)ᵀ m."""
    return d[1] * m[2] - d[2] * m[1], d[2] * m[0], 0.0 * m[0]


@step
def write_own_changes(T, N, W, like):
    """Write K and K̇ of all balls into their charts; the dynamics stand in W."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            write_own_change(T, N, W, i, like)


@step
def write_own_change(T, N, W, i, like):
    """Write K and K̇ of the ball whose first node is i."""
    k, _ = node(i)
    c, a, w = chart_of(N, i), rotors(T, i), of_rows(W, i, QD, like)
    alpha = of_rows(W, i, Y, like)
    if N[k + N_ACTIVE]:
        alpha = of_rows(W, i, U, like)
    _, x = joint_rates(T, N, W, i, like)
    _, y = joint_rates(T, N, W, i + 1, like)
    _, z = joint_rates(T, N, W, i + 2, like)
    own = (losses(T, N, W, i, like), losses(T, N, W, i + 1, like), losses(T, N, W, i + 2, like))
    moment, spin = add(each_times(a, alpha), own), each_times(a, w)
    for j in range(3):
        e = unit(j, like)
        moved = swept(e, w)
        change = add(each_times(a, add(swept(e, alpha), swept_twice(e, w))), each_times((x, y, z), moved))
        change = add(change, add(cross(moved, spin), cross(w, each_times(a, moved))))
        if N[k + N_LOSSES] and has_spring(T, i):
            change = add(change, moment_change(T, W, i, e, like))
        store_each(W, c + CH_K + j, 3, add(change, swept_transposed(e, moment)))
        change = each_times(a, add(moved, swept(w, e)))
        store_each(W, c + CH_KD + j, 3, add(change, add(cross(e, spin), cross(w, each_times(a, e)))))


# The rotors of balls in coordinates: φ̇ stands in the charts -------------------------------------------------


@step
def ball_energy(T, N, W, i, like):
    """Return ∂/∂φ and ∂/∂φ̇ of the kinetic energy of the rotors of the ball whose first node is i, and twice that."""
    c, a = chart_of(N, i), rotors(T, i)
    p, c2, c3, _ = phi_of(W, i, c, like)
    dc2, dc3 = first_rates(W, c, like)
    rate = load3(W, c + CH_QD, like)
    spin = each_times(a, jacobian_times(p, c2, c3, rate))
    x = dot(spin, velocity_change(p, c2, c3, dc2, dc3, rate, unit(0, like)))
    y = dot(spin, velocity_change(p, c2, c3, dc2, dc3, rate, unit(1, like)))
    z = dot(spin, velocity_change(p, c2, c3, dc2, dc3, rate, unit(2, like)))
    by_rate = jacobian_transposed(p, c2, c3, spin)
    return (x, y, z), by_rate, dot(by_rate, rate)


@step
def ball_mass(T, N, W, i, j, k, like):
    """Return row j, column k of Jᵀ a J of the ball whose first node is i."""
    p, c2, c3, _ = phi_of(W, i, chart_of(N, i), like)
    column = jacobian_times(p, c2, c3, unit(k, like))
    return dot(jacobian_times(p, c2, c3, unit(j, like)), each_times(rotors(T, i), column))
