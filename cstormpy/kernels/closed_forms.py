"""Quantities that make up the derivatives of the inverse dynamics, one per node.

The derivative of τ = ID(q, q̇, q̈) between two joints of which one carries the other is a product of a
quantity of the one and a quantity of the other (Carpentier and Mansard 2018; Singh, Russo and Wensing
2022). All spatial vectors here stand at the origin of the base, in its axes, so that no product needs a
transformation. For joint j on the way to joint i (or i itself):

    ∂τ_i/∂q_j = B_i · Ṡ_j(ω) + T_i · S̈_j        ∂τ_j/∂q_i = S_j · WQ_i   (j ≠ i)
    ∂τ_i/∂q̇_j = B_i · S_j(ω) + 2 T_i · Ṡ_j       ∂τ_j/∂q̇_i = S_j · WD_i
    M_ij = S_j · T_i

with, of the subtree that joint i carries, the inertia I, the force F, the momentum P and its moment matrix
K = Σ m x ẋᵀ over all mass points:

    Ṡ = V × S,  S̈ = a_P × S + V_P × Ṡ  (P the parent, a less gravity),  T = I S
    C(η) = 2 Σ m x-line of (η × ẋ) = (2 (tr K η − Kᵀ η), 2 η × P), the Coriolis force of a turn η
    B = 2 (tr K ω_S − K ω_S + P × v_S), so that B · η = S · C(η)
    WD = C(S) + 2 I Ṡ,  WQ = C(Ṡ) + I S̈ + S ×* F

A wrench that is fixed to its link turns with it as the inertial force does and is simply part of F. What a load adds
that keeps its direction in space stands in `loads`:

    ∂τ_i/∂q_j += G_i · s_j        WQ_i += (L_i s_i, s_i × f_i)
"""

from cstormpy.kernels.charts import charts_place
from cstormpy.kernels.hybrid import about_origin, joint_axis, node
from cstormpy.kernels.lanes import load, store
from cstormpy.kernels.layout import (
    C_A,
    C_B,
    C_F,
    C_G,
    C_I,
    C_K,
    C_L,
    C_PD,
    C_PDD,
    C_POS,
    C_S,
    C_T,
    C_V,
    C_WD,
    C_WQ,
    C_X,
    CF_ROW,
    CHART,
    DEAD_LOADS,
    N_ACTIVE,
    N_BALLS,
    N_COUNT,
    N_LINKS,
    N_NODE,
    N_NODES,
    N_PARENT,
    N_SLIDES,
    N_TURNS,
    QD,
    ROW,
    T_COM,
    T_GRAVITY,
    T_INERTIA,
    T_MASS,
    T_PITCH,
    UNLOADED,
    D,
    R,
    U,
    Y,
)
from cstormpy.kernels.loads import dead_load, lag_matrix, lag_of, moment_of, shifted, wrench_in_world
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import (
    add,
    add_scaled,
    cross,
    dot,
    increase3,
    load3,
    load6,
    load_columns,
    rotate,
    rotated_inertia,
    scale,
    store3,
    store6,
    sub,
    symmetric_times,
)


@step
def forms_place(N):
    """Return where the rows of the closed forms begin in the scratch memory."""
    return charts_place(N) + CHART * N[N_BALLS]


@step
def row_of(N, i):
    return forms_place(N) + CF_ROW * i


@step
def form_base(T, N, W, omega, v, alpha, a, like):
    """Fill the base's row with its velocity and its acceleration, the derivative of the velocity in its own axes."""
    c = forms_place(N)
    store3(W, c + C_POS, (like, like, like))
    store3(W, c + C_V, omega)
    store3(W, c + C_V + 3, v)
    store3(W, c + C_A, alpha)
    store3(W, c + C_A + 3, (a[0] - T[T_GRAVITY], a[1] - T[T_GRAVITY + 1], a[2] - T[T_GRAVITY + 2]))


@step
def screws(T, N, W, i, like):
    """Find screw, velocity, acceleration of node i and the rates of its screw, from those of its parent."""
    k, t = node(i)
    row, c, p = i * ROW, row_of(N, i), row_of(N, N[k + N_PARENT])
    z = joint_axis(W, i, like)
    x = add(load3(W, p + C_POS, like), load3(W, row + D, like))
    s, l = (like, like, like), (like, like, like)
    if N[k + N_TURNS]:
        s, l = z, cross(x, z)
    if N[k + N_SLIDES]:
        l = add_scaled(l, T[t + T_PITCH], z)
    qd, qdd = load(W, row + QD, like), load(W, row + Y, like)
    if N[k + N_ACTIVE]:
        qdd = load(W, row + U, like)
    omega_p, v_p = load3(W, p + C_V, like), load3(W, p + C_V + 3, like)
    alpha_p, a_p = load3(W, p + C_A, like), load3(W, p + C_A + 3, like)
    sd, ld = cross(omega_p, s), add(cross(omega_p, l), cross(v_p, s))
    sdd = add(cross(alpha_p, s), cross(omega_p, sd))
    ldd = add(add(cross(alpha_p, l), cross(a_p, s)), add(cross(omega_p, ld), cross(v_p, sd)))
    omega, v = add_scaled(omega_p, qd, s), add_scaled(v_p, qd, l)
    alpha = add_scaled(add_scaled(alpha_p, qdd, s), qd, sd)
    a = add_scaled(add_scaled(a_p, qdd, l), qd, ld)
    store3(W, c + C_POS, x)
    store3(W, c + C_S, s)
    store3(W, c + C_S + 3, l)
    store3(W, c + C_PD, sd)
    store3(W, c + C_PD + 3, ld)
    store3(W, c + C_PDD, sdd)
    store3(W, c + C_PDD + 3, ldd)
    store3(W, c + C_V, omega)
    store3(W, c + C_V + 3, v)
    store3(W, c + C_A, alpha)
    store3(W, c + C_A + 3, a)
    return omega, v, alpha, a


@step
def moment_matrix(inertia, c, omega, p):
    """Return Σ m x ẋᵀ, row by row, of a body at c with the momentum p: c pᵀ + rows ω × G, G = Σ m ρ ρᵀ."""
    half = 0.5 * (inertia[0] + inertia[3] + inertia[5])
    g0 = cross(omega, (half - inertia[0], -inertia[1], -inertia[2]))
    g1 = cross(omega, (-inertia[1], half - inertia[3], -inertia[4]))
    g2 = cross(omega, (-inertia[2], -inertia[4], half - inertia[5]))
    return add_scaled(g0, c[0], p), add_scaled(g1, c[1], p), add_scaled(g2, c[2], p)


@step
def body_inertia(T, N, W, i, like):
    """Write the inertia of body i; return its mass, centre of mass and inertia about that."""
    _, t = node(i)
    row = row_of(N, i)
    m = T[t + T_MASS]
    axes = load_columns(W, i * ROW + R, like)
    c = add(load3(W, row + C_POS, like), rotate(axes, T, t + T_COM))
    inertia = rotated_inertia(axes, T, t + T_INERTIA)
    h = scale(m, c)
    store(W, row + C_I, like + m)
    store3(W, row + C_I + 1, h)
    store6(W, row + C_I + 4, about_origin(inertia, h, c))
    return m, c, inertia


@step
def body_forms(T, N, W, i, omega, v, alpha, a, like):
    """Write inertia, momentum, its moment matrix and the force of body i."""
    row = row_of(N, i)
    m, c, inertia = body_inertia(T, N, W, i, like)
    velocity = add(v, cross(omega, c))
    p = scale(m, velocity)
    force = scale(m, add(a, add(cross(alpha, c), cross(omega, velocity))))
    moment = add(symmetric_times(inertia, alpha), cross(omega, symmetric_times(inertia, omega)))
    store3(W, row + C_K, p)
    k0, k1, k2 = moment_matrix(inertia, c, omega, p)
    store3(W, row + C_K + 3, k0)
    store3(W, row + C_K + 6, k1)
    store3(W, row + C_K + 9, k2)
    store3(W, row + C_F, add(moment, cross(c, force)))
    store3(W, row + C_F + 3, force)


@step
def loads_into_forms(T, N, W, loaded, like):
    n = N[N_COUNT]
    if loaded == DEAD_LOADS:
        for i in range(1, n + 1):
            for k in range(12):
                store(W, row_of(N, i) + C_L + k, like)
    for link in range(N[N_LINKS]):
        i = N[N_NODES + N_NODE * n + link]
        if i > 0:
            row = row_of(N, i)
            moment, force = wrench_in_world(T, N, W, link, i, like)
            if loaded == DEAD_LOADS:
                couple, dead, arms = dead_load(T, N, W, link, i, like)
                moment, force = add(moment, add(couple, moment_of(arms))), add(force, dead)
                lag = lag_matrix(shifted(arms, load3(W, row + C_POS, like), dead), couple)
                increase3(W, row + C_L, dead)
                for k in range(3):
                    increase3(W, row + C_L + 3 + 3 * k, lag[k])
            moment = add(moment, cross(load3(W, row + C_POS, like), force))
            increase3(W, row + C_F, scale(-1.0, moment))
            increase3(W, row + C_F + 3, scale(-1.0, force))


@step
def inertia_times(W, row, s, l, like):
    """Return I (s, l) of the subtree whose row this is."""
    m, h = load(W, row + C_I, like), load3(W, row + C_I + 1, like)
    moment = add(symmetric_times(load6(W, row + C_I + 4, like), s), cross(h, l))
    return moment, add_scaled(cross(s, h), m, l)


@step
def coriolis_times(W, row, eta, like):
    """Return C(η) of the subtree whose row this is."""
    p = load3(W, row + C_K, like)
    k0, k1, k2 = (load3(W, row + C_K + 3, like), load3(W, row + C_K + 6, like), load3(W, row + C_K + 9, like))
    trace = k0[0] + k1[1] + k2[2]
    transposed = add_scaled(add_scaled(scale(eta[0], k0), eta[1], k1), eta[2], k2)
    return scale(2.0, sub(scale(trace, eta), transposed)), scale(2.0, cross(eta, p))


@step
def coriolis_transposed(W, row, s, l, like):
    """Return B with B · η = (s, l) · C(η)."""
    p = load3(W, row + C_K, like)
    k0, k1, k2 = (load3(W, row + C_K + 3, like), load3(W, row + C_K + 6, like), load3(W, row + C_K + 9, like))
    trace = k0[0] + k1[1] + k2[2]
    return scale(2.0, add(sub(scale(trace, s), (dot(k0, s), dot(k1, s), dot(k2, s))), cross(p, l)))


@step
def subtree_forms(N, W, i, loaded, like):
    """Find T, B, WD, WQ of node i, whose subtree is summed up, and G; add its sums to the parent's."""
    k, _ = node(i)
    row = row_of(N, i)
    s, l = load3(W, row + C_S, like), load3(W, row + C_S + 3, like)
    sd, ld = load3(W, row + C_PD, like), load3(W, row + C_PD + 3, like)
    moment, force = inertia_times(W, row, s, l, like)
    store3(W, row + C_T, moment)
    store3(W, row + C_T + 3, force)
    store3(W, row + C_B, coriolis_transposed(W, row, s, l, like))
    moment, force = inertia_times(W, row, sd, ld, like)
    c_moment, c_force = coriolis_times(W, row, s, like)
    store3(W, row + C_WD, add_scaled(c_moment, 2.0, moment))
    store3(W, row + C_WD + 3, add_scaled(c_force, 2.0, force))
    moment, force = inertia_times(W, row, load3(W, row + C_PDD, like), load3(W, row + C_PDD + 3, like), like)
    c_moment, c_force = coriolis_times(W, row, sd, like)
    f_moment, f_force = load3(W, row + C_F, like), load3(W, row + C_F + 3, like)
    turned = add(cross(s, f_moment), cross(l, f_force))
    store3(W, row + C_WQ, add(add(moment, c_moment), turned))
    store3(W, row + C_WQ + 3, add(add(force, c_force), cross(s, f_force)))
    parent = N[k + N_PARENT]
    p = row_of(N, parent)
    if loaded == DEAD_LOADS:
        moment, force, multiplier = lag_of(W, row + C_L, s, l, like)
        increase3(W, row + C_WQ, moment)
        increase3(W, row + C_WQ + 3, force)
        store3(W, row + C_G, multiplier)
        if parent > 0:
            for j in range(12):
                store(W, p + C_L + j, load(W, p + C_L + j, like) + load(W, row + C_L + j, like))
    if parent > 0:
        for j in range(C_X - C_I):
            store(W, p + C_I + j, load(W, p + C_I + j, like) + load(W, row + C_I + j, like))


@step
def closed_forms(T, N, W, loaded, like):
    """Fill the rows of all nodes; the base's row, the loads and the hybrid dynamics stand in W already."""
    n = N[N_COUNT]
    for i in range(1, n + 1):
        omega, v, alpha, a = screws(T, N, W, i, like)
        body_forms(T, N, W, i, omega, v, alpha, a, like)
    if loaded != UNLOADED:
        loads_into_forms(T, N, W, loaded, like)
    for i in range(n, 0, -1):
        subtree_forms(N, W, i, loaded, like)
