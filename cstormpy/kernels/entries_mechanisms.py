"""Energies of a mechanism, as laws ask for them at every evaluation: one sample, its numbers side by side."""

from cstormpy.kernels.ball_springs import has_spring, spring_energy
from cstormpy.kernels.charts import enter_charts
from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import node, place, place_base
from cstormpy.kernels.layout import (
    ACC,
    ALPHA,
    N_BALL,
    N_COORDINATE,
    N_COUNT,
    N_PARENT,
    N_SLIDES,
    N_TURNS,
    OMEGA,
    QD,
    ROW,
    T_ARMATURE,
    T_COM,
    T_GRAVITY,
    T_INERTIA,
    T_MASS,
    T_PITCH,
    T_REST,
    T_STIFFNESS,
    Q,
)
from cstormpy.kernels.vector import add, add_scaled, cross, dot, load3, rotate, rotated_inertia, store3, symmetric_times

_TABLES = "f8[::1], i8[::1], f8[::1]"


@entry(f"UniTuple(f8, 2)({_TABLES}, f8[::1])", nogil=True)
def energies(T, N, W, g):
    """Return kinetic and potential energy of the moving links, the base at rest; g holds q and q̇.

    The rows of the nodes keep position and velocity of their origins where the dynamics keep accelerations.
    """
    n = N[N_COUNT]
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)
    store3(W, ACC, rest)
    gravity = load3(T, T_GRAVITY, 0.0)
    kinetic, potential = 0.0, 0.0
    for i in range(1, n + 1):
        k, _ = node(i)
        W[i * ROW + Q], W[i * ROW + QD] = g[N[k + N_COORDINATE]], g[n + N[k + N_COORDINATE]]
    enter_charts(N, W, 0.0)
    for i in range(1, n + 1):
        k, t = node(i)
        row, parent = i * ROW, N[k + N_PARENT] * ROW
        q, qd = W[row + Q], W[row + QD]
        axes, d = place(T, N, W, i, 0.0)
        omega = load3(W, parent + OMEGA, 0.0)
        v = add(load3(W, parent + ALPHA, 0.0), cross(omega, d))
        x = add(load3(W, parent + ACC, 0.0), d)
        if N[k + N_TURNS]:
            omega = add_scaled(omega, qd, axes[2])
        if N[k + N_SLIDES]:
            v = add_scaled(v, T[t + T_PITCH] * qd, axes[2])
        store3(W, row + OMEGA, omega)
        store3(W, row + ALPHA, v)
        store3(W, row + ACC, x)
        c = rotate(axes, T, t + T_COM)
        velocity = add(v, cross(omega, c))
        spin = dot(omega, symmetric_times(rotated_inertia(axes, T, t + T_INERTIA), omega))
        kinetic += 0.5 * (T[t + T_MASS] * dot(velocity, velocity) + spin + T[t + T_ARMATURE] * qd * qd)
        potential -= T[t + T_MASS] * dot(gravity, add(x, c))
        if not N[k + N_BALL]:
            potential += 0.5 * T[t + T_STIFFNESS] * (q - T[t + T_REST]) ** 2
        elif N[k + N_BALL] == 1 and has_spring(T, i):
            potential += spring_energy(T, N, W, i, 0.0)[0]
    return kinetic, potential
