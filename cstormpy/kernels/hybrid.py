"""Hybrid dynamics in three sweeps, for any set of prescribed joints.

The algorithm is that of Sohl and Bobrow (Algorithms 3.4 to 3.6; `formulations.sohl_bobrow` has it as
printed). This file departs from the paper for speed; the results are the same:

* Every vector stands in axes parallel to the base's and every body is described at its own joint's origin
  O, so that an articulated inertia is shifted, never turned.
* Accelerations are those of points (Newton-Euler), so that linear velocities do not appear.
* The first sweep already carries gravity and the prescribed accelerations. The articulated inertia meets
  only the deviation δ that the passive joints add, and not at all where no joint below is passive.

Notation: node i, its parent P; z the joint's axis; S = (σ z, λ z) with σ = 1 if the joint turns and λ its
pitch (1 for a prismatic joint); d from O_P to O_i; ω, α, A: angular velocity, angular acceleration,
acceleration of O. An articulated inertia is (I, H, M): moment = I α + H A, force = Hᵀ α + M A.
"""

from cstormpy.kernels.charts import enter_charts, leave_charts, turned_by_ball
from cstormpy.kernels.joint_torques import losses
from cstormpy.kernels.lanes import all_greater, load, noted, reciprocal, store, vanishing
from cstormpy.kernels.layout import (
    ACC,
    ALPHA,
    DI,
    IA,
    N_ACTIVE,
    N_BALL,
    N_BALLS,
    N_COUNT,
    N_DEVIATES,
    N_NODE,
    N_NODES,
    N_PARENT,
    N_SLIDES,
    N_TILTED,
    N_TURNS,
    OMEGA,
    PA,
    QD,
    RES,
    ROW,
    T_ARMATURE,
    T_COM,
    T_E,
    T_GRAVITY,
    T_INERTIA,
    T_MASS,
    T_P,
    T_PITCH,
    UNLOADED,
    UV,
    D,
    Q,
    R,
    U,
    Y,
)
from cstormpy.kernels.loads import take_off_loads
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import (
    add,
    add_scaled,
    column_times,
    cross,
    dot,
    increase3,
    load3,
    load6,
    load_columns,
    rotate,
    rotated_inertia,
    scale,
    sincos,
    store3,
    store6,
    store_columns,
    sub,
    symmetric_times,
)

#: A pivot Sᵀ Î S below this share of the inertia it was taken from is zero but for rounding.
SINGULAR = 1e-14
#: What `hybrid` returns where a result is not finite although no pivot vanished.
NOT_FINITE = -1


# Outward: where everything is, and how it would move if no passive joint accelerated -----------------


@step
def place_base(T, W, omega, alpha, acc, like):
    """Fill the row of the base; `acc` is the acceleration of its origin, gravity not yet taken off."""
    one, zero = like + 1.0, like
    store_columns(W, R, ((one, zero, zero), (zero, one, zero), (zero, zero, one)))
    store3(W, OMEGA, omega)
    store3(W, ALPHA, alpha)
    store3(W, ACC, (acc[0] - T[T_GRAVITY], acc[1] - T[T_GRAVITY + 1], acc[2] - T[T_GRAVITY + 2]))


@step
def place(T, N, W, i, like):
    """Find orientation and origin of node i; return its axes and d."""
    k, t = node(i)
    row, parent = i * ROW, N[k + N_PARENT] * ROW
    q = load(W, row + Q, like)
    A = load_columns(W, parent + R, like)
    x, y, z = A
    if N[k + N_TILTED]:
        e = t + T_E
        x = column_times(A, T[e], T[e + 3], T[e + 6])
        y = column_times(A, T[e + 1], T[e + 4], T[e + 7])
        z = column_times(A, T[e + 2], T[e + 5], T[e + 8])
    d = rotate(A, T, t + T_P)
    if N[k + N_BALL]:
        if N[k + N_BALL] == 1:
            x, y, z = turned_by_ball(N, W, i, (x, y, z), like)
    elif N[k + N_TURNS]:
        s, c = sincos(q)
        x, y = add_scaled(scale(c, x), s, y), add_scaled(scale(c, y), -s, x)
    if N[k + N_SLIDES]:
        d = add_scaled(d, T[t + T_PITCH] * q, z)
    store_columns(W, row + R, (x, y, z))
    store3(W, row + D, d)
    return (x, y, z), d


@step
def move(T, N, W, i, z, d, like):
    """Find ω, α and A of node i, its joint accelerating as prescribed or not at all."""
    k, t = node(i)
    row, parent = i * ROW, N[k + N_PARENT] * ROW
    qd = load(W, row + QD, like)
    qdd = like
    if N[k + N_ACTIVE]:
        qdd = load(W, row + U, like)
    omega_p = load3(W, parent + OMEGA, like)
    alpha_p = load3(W, parent + ALPHA, like)
    turn = scale(qd, cross(omega_p, z))
    acc = add(load3(W, parent + ACC, like), add(cross(alpha_p, d), cross(omega_p, cross(omega_p, d))))
    omega, alpha = omega_p, alpha_p
    if N[k + N_TURNS]:
        omega = add_scaled(omega_p, qd, z)
        alpha = add_scaled(add(alpha_p, turn), qdd, z)
    if N[k + N_SLIDES]:
        pitch = T[t + T_PITCH]
        acc = add_scaled(add_scaled(acc, 2.0 * pitch, turn), pitch * qdd, z)
    store3(W, row + OMEGA, omega)
    store3(W, row + ALPHA, alpha)
    store3(W, row + ACC, acc)
    return omega, alpha, acc


@step
def load_body(T, N, W, i, axes, omega, alpha, acc, every, like):
    """Write the force that moves body i, and its inertia at O where a deviation can meet it."""
    k, t = node(i)
    row = i * ROW
    m = T[t + T_MASS]
    c = rotate(axes, T, t + T_COM)
    inertia = rotated_inertia(axes, T, t + T_INERTIA)
    force = scale(m, add(acc, add(cross(alpha, c), cross(omega, cross(omega, c)))))
    moment = add(symmetric_times(inertia, alpha), cross(omega, symmetric_times(inertia, omega)))
    store3(W, row + PA, add(moment, cross(c, force)))
    store3(W, row + PA + 3, force)
    if every or N[k + N_DEVIATES]:
        h = scale(m, c)
        store6(W, row + IA, about_origin(inertia, h, c))
        store_columns(W, row + IA + 6, ((like, h[2], -h[1]), (-h[2], like, h[0]), (h[1], -h[0], like)))
        mass = like + m
        store6(W, row + IA + 15, (mass, like, like, mass, like, mass))


@step
def about_origin(inertia, h, c):
    """Shift an inertia about the centre of mass c to the origin; h = m c."""
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return (
        inertia[0] + yy + zz,
        inertia[1] - h[0] * c[1],
        inertia[2] - h[0] * c[2],
        inertia[3] + xx + zz,
        inertia[4] - h[1] * c[2],
        inertia[5] + xx + yy,
    )


# Inward: articulated inertia and the force that is known so far --------------------------------------


@step
def joint_axis(W, i, like):
    """Return the axis of joint i, the third column of its axes."""
    row = i * ROW
    return load(W, row + R + 2, like), load(W, row + R + 5, like), load(W, row + R + 8, like)


@step
def along(T, N, i, z, moment, force, like):
    """Return Sᵀ (moment, force)."""
    k, t = node(i)
    value = like
    if N[k + N_TURNS]:
        value = dot(z, moment)
    if N[k + N_SLIDES]:
        value = value + T[t + T_PITCH] * dot(z, force)
    return value


@step
def close_joint(T, N, W, i, every, like):
    """Eliminate joint i and hand inertia and force on to the parent; return whether its pivot is sound."""
    k, t = node(i)
    row, p = i * ROW, N[k + N_PARENT]
    z = joint_axis(W, i, like)
    moment, force = load3(W, row + PA, like), load3(W, row + PA + 3, like)
    known = along(T, N, i, z, moment, force, like) + losses(T, N, W, i, like)
    u = load(W, row + U, like)
    sound = True
    if not (every or N[k + N_DEVIATES]):
        store(W, row + RES, known + T[t + T_ARMATURE] * u)
    else:
        I, M = load6(W, row + IA, like), load6(W, row + IA + 15, like)
        H = load_columns(W, row + IA + 6, like)
        Um, Uf, share = inertia_times_axis(T, N, i, I, H, M, z, like)
        pivot = along(T, N, i, z, Um, Uf, like) + T[t + T_ARMATURE]
        store3(W, row + UV, Um)
        store3(W, row + UV + 3, Uf)
        if N[k + N_ACTIVE]:
            store(W, row + RES, known + T[t + T_ARMATURE] * u)
        else:
            sound = all_greater(pivot, SINGULAR * share)
            inverse = reciprocal(pivot)
            residual = u - known
            store(W, row + DI, inverse)
            store(W, row + RES, residual)
            g = inverse * residual
            moment, force = add_scaled(moment, g, Um), add_scaled(force, g, Uf)
            I, H, M = without_joint(I, H, M, Um, Uf, inverse)
        if p > 0 and (every or N[N_NODES + N_NODE * (p - 1) + N_DEVIATES]):
            hand_on_inertia(W, p * ROW + IA, I, H, M, load3(W, row + D, like))
    if p > 0:
        d = load3(W, row + D, like)
        increase3(W, p * ROW + PA, add(moment, cross(d, force)))
        increase3(W, p * ROW + PA + 3, force)
    return sound


@step
def inertia_times_axis(T, N, i, I, H, M, z, like):
    """Return Î S and the size of the numbers that Sᵀ Î S comes from."""
    k, t = node(i)
    Um, Uf, share = (like, like, like), (like, like, like), like
    if N[k + N_TURNS]:
        Um = symmetric_times(I, z)
        Uf = (dot(H[0], z), dot(H[1], z), dot(H[2], z))
        share = I[0] + I[3] + I[5]
    if N[k + N_SLIDES]:
        pitch = T[t + T_PITCH]
        Um = add_scaled(Um, pitch, column_times(H, z[0], z[1], z[2]))
        Uf = add_scaled(Uf, pitch, symmetric_times(M, z))
        share = share + pitch * pitch * (M[0] + M[3] + M[5])
    return Um, Uf, share


@step
def minus_square(S, s, a):
    """Return S − s a aᵀ for a symmetric S."""
    b = scale(s, a)
    return (
        S[0] - b[0] * a[0],
        S[1] - b[0] * a[1],
        S[2] - b[0] * a[2],
        S[3] - b[1] * a[1],
        S[4] - b[1] * a[2],
        S[5] - b[2] * a[2],
    )


@step
def without_joint(I, H, M, Um, Uf, inverse):
    """Return Î − (Î S)(Î S)ᵀ / (Sᵀ Î S)."""
    b = scale(-inverse, Um)
    H = (add_scaled(H[0], Uf[0], b), add_scaled(H[1], Uf[1], b), add_scaled(H[2], Uf[2], b))
    return minus_square(I, inverse, Um), H, minus_square(M, inverse, Uf)


@step
def hand_on_inertia(W, place, I, H, M, d):
    """Add the inertia, shifted by d, to the parent's: H' = H + [d] M, I' = I − H' [d] + [d] Hᵀ."""
    # columns of [d] M are d × (columns of M)
    G0 = add(H[0], cross(d, (M[0], M[1], M[2])))
    G1 = add(H[1], cross(d, (M[1], M[3], M[4])))
    G2 = add(H[2], cross(d, (M[2], M[4], M[5])))
    # columns of H' [d]: [d] has the columns (0, d2, −d1), (−d2, 0, d0), (d1, −d0, 0)
    F0 = sub(scale(d[2], G1), scale(d[1], G2))
    F1 = sub(scale(d[0], G2), scale(d[2], G0))
    F2 = sub(scale(d[1], G0), scale(d[0], G1))
    # columns of [d] Hᵀ are d × (rows of H)
    E0 = cross(d, (H[0][0], H[1][0], H[2][0]))
    E1 = cross(d, (H[0][1], H[1][1], H[2][1]))
    E2 = cross(d, (H[0][2], H[1][2], H[2][2]))
    total = (
        I[0] - F0[0] + E0[0],
        I[1] - F1[0] + E1[0],
        I[2] - F2[0] + E2[0],
        I[3] - F1[1] + E1[1],
        I[4] - F2[1] + E2[1],
        I[5] - F2[2] + E2[2],
    )
    for k in range(6):
        store(W, place + k, load(W, place + k, d[0]) + total[k])
        store(W, place + 15 + k, load(W, place + 15 + k, d[0]) + M[k])
    for k in range(3):
        store(W, place + 6 + 3 * k, load(W, place + 6 + 3 * k, d[0]) + G0[k])
        store(W, place + 7 + 3 * k, load(W, place + 7 + 3 * k, d[0]) + G1[k])
        store(W, place + 8 + 3 * k, load(W, place + 8 + 3 * k, d[0]) + G2[k])


# Outward again: what the passive joints add ----------------------------------------------------------


@step
def answer(T, N, W, i, like):
    """Find the answer y of joint i and the deviation of its node, which takes the place of (α, A)."""
    k, t = node(i)
    row, parent = i * ROW, N[k + N_PARENT] * ROW
    y = load(W, row + RES, like)
    alpha, acc = (like, like, like), (like, like, like)
    if N[k + N_DEVIATES]:
        alpha = load3(W, parent + ALPHA, like)
        acc = add(load3(W, parent + ACC, like), cross(alpha, load3(W, row + D, like)))
        reaction = dot(load3(W, row + UV, like), alpha) + dot(load3(W, row + UV + 3, like), acc)
        if N[k + N_ACTIVE]:
            y = y + reaction
        else:
            y = (y - reaction) * load(W, row + DI, like)
            z = joint_axis(W, i, like)
            if N[k + N_TURNS]:
                alpha = add_scaled(alpha, y, z)
            if N[k + N_SLIDES]:
                acc = add_scaled(acc, T[t + T_PITCH] * y, z)
    store(W, row + Y, y)
    store3(W, row + ALPHA, alpha)
    store3(W, row + ACC, acc)
    return y


@step
def hybrid(T, N, W, loaded, every, like):
    """Fill the answers y into the rows of W; return 0, the node of a vanished pivot, or `NOT_FINITE`.

    The base's row and q, q̇, u of every node stand in W, and the loads of the kind ``loaded`` (`UNLOADED`, `WRENCHES`
    or `DEAD_LOADS`). ``every`` keeps the articulated inertia of all nodes, whether this run needs it or not.
    """
    n = N[N_COUNT]
    if N[N_BALLS]:
        enter_charts(N, W, like)
    for i in range(1, n + 1):
        axes, d = place(T, N, W, i, like)
        omega, alpha, acc = move(T, N, W, i, axes[2], d, like)
        load_body(T, N, W, i, axes, omega, alpha, acc, every, like)
    if loaded != UNLOADED:
        take_off_loads(T, N, W, loaded, like)
    status = 0
    for i in range(n, 0, -1):
        # what a vanished pivot spoils below is not the cause
        status = noted(status, close_joint(T, N, W, i, every, like), i)
    for k in range(3):
        store(W, ALPHA + k, like)
        store(W, ACC + k, like)
    nothing = like
    for i in range(1, n + 1):
        nothing = nothing + vanishing(answer(T, N, W, i, like))
    if N[N_BALLS]:
        leave_charts(N, W, like)
    return noted(status, all_greater(1.0, nothing), NOT_FINITE)
