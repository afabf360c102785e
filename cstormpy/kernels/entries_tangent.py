"""Directional derivatives of what the function of a diagram calls, and Runge-Kutta steps with directions carried along.

Beside a value stands its tangent, the derivative along one direction, named as the value with a d before it. For the
mechanisms that is the exact directional form; numbers of their tables move by gravity exactly (the answer is affine
in it), by anything else with central differences of the kernel.
"""

from __future__ import annotations

import math

from cstormpy.kernels.charts import answer_at, push_motions
from cstormpy.kernels.closed_forms import closed_forms, form_base, forms_place, row_of
from cstormpy.kernels.compiling import caller_at
from cstormpy.kernels.diagram_rate import RATE
from cstormpy.kernels.directional import along_direction
from cstormpy.kernels.entries import entry
from cstormpy.kernels.entries_mechanisms import bring, energies, take
from cstormpy.kernels.hybrid import hybrid, node
from cstormpy.kernels.layout import (
    ALPHA,
    C_DQ,
    C_DQD,
    C_DU,
    C_S,
    C_T,
    C_V,
    N_ACTIVE,
    N_BALLS,
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
    T_NODES,
    T_PITCH,
    T_REST,
    T_STIFFNESS,
    D,
    Q,
    R,
)
from cstormpy.kernels.locating import crossed
from cstormpy.kernels.rungekutta import T_RESULT, T_TIMES, clamped
from cstormpy.kernels.samples import bring_loads_one
from cstormpy.kernels.stepping import LOOK, WENT
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import (
    add,
    add_scaled,
    cross,
    dot,
    load3,
    load_columns,
    rotate,
    rotated_inertia,
    store3,
    sub,
    symmetric_times,
)

#: Share of a number by which it is moved for a central difference: the cube root of the rounding.
MOVED = 6e-6
#: The function of a diagram with tangents: t, x, z, p, n, w, out, xd, then dt and the tangents of all but n.
TANGENT = f"{RATE[:-1]}, f8, {', '.join(['f8[::1]'] * 6)})"
#: ``evaluate_along(f, t, …)``, f being the address of such a function.
evaluate_along = caller_at(TANGENT)
_TABLES = "f8[::1], i8[::1], f8[::1]"


@step
def moved_by(T, dT):
    """Return by how much of dT the table T is moved for a difference; 0 where nothing in dT differs from zero."""
    least = math.inf
    for i in range(T_NODES, dT.size):
        if dT[i] != 0.0:
            least = min(least, MOVED * max(abs(T[i]), 1e-3) / abs(dT[i]))
    if least < math.inf:
        return least
    most = 0.0
    for i in range(T_NODES):
        most = max(most, abs(dT[i]))
    return 1.0 / most if most > 0.0 else 0.0


@step
def along_closed_forms(T, N, W, g, dg, loaded):
    """Fill dg behind δq, δq̇, δu with δq̈ and δτ, after the hybrid dynamics have kept every inertia."""
    n = N[N_COUNT]
    rest = (0.0, 0.0, 0.0)
    form_base(T, N, W, rest, rest, rest, rest, 0.0)
    closed_forms(T, N, W, loaded, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        j, c = N[k + N_COORDINATE], row_of(N, i)
        W[c + C_DQ], W[c + C_DQD], W[c + C_DU] = dg[j], dg[n + j], dg[2 * n + j]
    along_direction(T, N, W, loaded, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        j, found, active = N[k + N_COORDINATE], W[answer_at(N, i)], N[k + N_ACTIVE] != 0
        dg[3 * n + j] = dg[2 * n + j] if active else found
        dg[4 * n + j] = found if active else dg[2 * n + j]


@step
def add_answers(N, W, dg, share):
    """Add a share of the answers y to the tangents of accelerations and torques."""
    n = N[N_COUNT]
    for i in range(1, n + 1):
        k, _ = node(i)
        found = 4 * n if N[k + N_ACTIVE] else 3 * n
        dg[found + N[k + N_COORDINATE]] += share * W[answer_at(N, i)]


@step
def differing(dT, dwrench):
    for k in range(dwrench.size):
        if dwrench[k] != 0.0:
            return True
    for k in range(dT.size):
        if dT[k] != 0.0:
            return True
    return False


@entry(f"i8({_TABLES}, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])", nogil=True)
def loaded_motion_tangent(T, N, W, g, wrench, dT, dg, dwrench):
    """Fill what `loaded_motion` does (`motion` where there are no wrenches), and its tangent; return the status.

    W has room for the closed forms, and for a table behind them; dg holds δq, δq̇, δu, then it receives δq̈, δτ.
    """
    bring(T, N, W, g)
    loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
    status = hybrid(T, N, W, loaded, True, 0.0)
    take(N, W, g)
    if status != 0:
        return status
    along_closed_forms(T, N, W, g, dg, loaded)
    if not differing(dT, dwrench):
        return 0
    moved = W[row_of(N, N[N_COUNT] + 1) : row_of(N, N[N_COUNT] + 1) + T.size]
    for what in range(2):  # the table, then the wrenches, in which the answer is affine
        h = moved_by(T, dT) if what == 0 else 1.0
        for side in range(2):
            signed = h if side == 0 else -h
            for i in range(T.size):
                moved[i] = T[i] + (signed * dT[i] if what == 0 else 0.0)
            bring(moved, N, W, g)
            bring_loads_one(N, W, wrench, signed if what == 1 else 0.0, dwrench)
            if h > 0.0:
                status = max(status, abs(hybrid(moved, N, W, loaded, False, 0.0)))
                add_answers(N, W, dg, 0.5 / signed)
    return status


energy_of = step(energies._function)


@step
def energy_along(T, N, W, g, dg):
    """Return the tangents of both energies, after `energy_of`.

    A change of the joints turns node i by δθ and moves its origin by δx; what is fixed to it changes by δθ × itself.
    δθ, δx, δω and δv stand in the rows of the closed forms.
    """
    n = N[N_COUNT]
    rest = (0.0, 0.0, 0.0)
    base = row_of(N, 0)
    for part in (C_S, C_S + 3, C_T, C_V):
        store3(W, base + part, rest)
    gravity = load3(T, T_GRAVITY, 0.0)
    kinetic, potential = 0.0, 0.0
    for i in range(1, n + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        W[row_of(N, i) + C_DQ], W[row_of(N, i) + C_DQD] = dg[j], dg[n + j]
    if N[N_BALLS]:
        push_motions(N, W, forms_place(N), 0.0)
    for i in range(1, n + 1):
        k, t = node(i)
        row = i * ROW
        c_row, p_row, parent = row_of(N, i), row_of(N, N[k + N_PARENT]), N[k + N_PARENT] * ROW
        qd, dq, dqd = W[row + QD], W[c_row + C_DQ], W[c_row + C_DQD]
        axes = load_columns(W, row + R, 0.0)
        z = axes[2]
        d, omega_p, omega = load3(W, row + D, 0.0), load3(W, parent + OMEGA, 0.0), load3(W, row + OMEGA, 0.0)
        turn = load3(W, p_row + C_S, 0.0)
        dz, dd = cross(turn, z), cross(turn, d)
        domega = load3(W, p_row + C_T, 0.0)
        if N[k + N_SLIDES]:
            dd = add_scaled(dd, T[t + T_PITCH] * dq, z)
        dx = add(load3(W, p_row + C_S + 3, 0.0), dd)
        dv = add(load3(W, p_row + C_V, 0.0), add(cross(domega, d), cross(omega_p, dd)))
        if N[k + N_TURNS]:
            turn = add_scaled(turn, dq, z)
            domega = add_scaled(add_scaled(domega, dqd, z), qd, dz)
        if N[k + N_SLIDES]:
            pitch = T[t + T_PITCH]
            dv = add_scaled(add_scaled(dv, pitch * dqd, z), pitch * qd, dz)
        store3(W, c_row + C_S, turn)
        store3(W, c_row + C_S + 3, dx)
        store3(W, c_row + C_T, domega)
        store3(W, c_row + C_V, dv)
        c = rotate(axes, T, t + T_COM)
        dc = cross(turn, c)
        velocity = add(load3(W, row + ALPHA, 0.0), cross(omega, c))
        dvelocity = add(dv, add(cross(domega, c), cross(omega, dc)))
        momentum = symmetric_times(rotated_inertia(axes, T, t + T_INERTIA), omega)
        kinetic += T[t + T_MASS] * dot(velocity, dvelocity) + dot(momentum, sub(domega, cross(turn, omega)))
        kinetic += T[t + T_ARMATURE] * qd * dqd
        potential -= T[t + T_MASS] * dot(gravity, add(dx, dc))
        potential += T[t + T_STIFFNESS] * (W[row + Q] - T[t + T_REST]) * dq
    return kinetic, potential


@entry(f"UniTuple(f8, 2)({_TABLES}, f8[::1], f8[::1], f8[::1])", nogil=True)
def energies_tangent(T, N, W, g, dT, dg):
    """Return the tangents of kinetic and potential energy; W as for `motion_tangent`, g and dg hold q, q̇ and theirs."""
    n = N[N_COUNT]
    energy_of(T, N, W, g)
    kinetic, potential = energy_along(T, N, W, g, dg)
    h = moved_by(T, dT)
    if h > 0.0:
        moved = W[row_of(N, n + 1) : row_of(N, n + 1) + T.size]
        for side in range(2):
            signed = h if side == 0 else -h
            for i in range(T.size):
                moved[i] = T[i] + signed * dT[i]
            found = energy_of(moved, N, W, g)
            kinetic += 0.5 / signed * found[0]
            potential += 0.5 / signed * found[1]
    return kinetic, potential


# Steps with directions carried along --------------------------------------------------------------------


@step
def evaluate(f, t, z, dz, p, dp, n, w, dw, out, dout, K, dK, s):
    """Fill signals and derivatives s at the point in the last rows of K and dK; return what f returned."""
    at = K.shape[0] - 1
    for j in range(dK.shape[0]):
        status = evaluate_along(
            f, t, K[at], z, p, n, w, out, K[s], 0.0, dK[j, at], dz[j], dp[j], dw[j], dout[j], dK[j, s]
        )
        if status != 0:
            return status
    return 0


@step
def combined(table, row, count, h, x, K, result):
    """Fill x + h Σ table[row, j] K[j]."""
    for i in range(x.size):
        total = 0.0
        for j in range(count):
            if table[row, j] != 0.0:
                total += K[j, i] * table[row, j]
        result[i] = x[i] + total * h


@step
def halted(out, guards, sides):
    """Tell whether a signal is not finite or a guard crosses zero."""
    nothing = 0.0
    for k in range(out.size):
        nothing += 0.0 * out[k]
    if not nothing == 0.0:
        return True
    for g in range(guards.size):
        if crossed(sides[0, g], out[guards[g]], sides[1, g]):
            return True
    return False


_ROWS, _CUBE = "f8[:,::1]", "f8[:,:,::1]"


@entry(
    f"UniTuple(i8, 2)(i8, {_ROWS}, f8[::1], f8[::1], f8[::1], {_ROWS}, f8[::1], {_ROWS}, f8[::1], "
    f"{_ROWS}, i8[::1], f8[::1], {_ROWS}, f8[::1], {_ROWS}, {_ROWS}, {_CUBE}, i8[::1], {_ROWS}, i8[::1], {_ROWS}, "
    f"{_CUBE}, {_ROWS}, {_CUBE})",
    nogil=True,
)
def propagate(
    f, table, at, times, x, dx, z, dz, p, dp, n, w, dw, out, dout, K, dK, guards, sides, columns, states, dstates,
    signals, dsignals,
):  # fmt: skip
    """Take steps to given times, and carry the tangents of the states along; return `WENT` or `LOOK`, and how many.

    times holds the present one and those at which the steps end. K and dK hold the derivatives of the stages and, in
    their last rows, scratch; K[0] and dK[:, 0] those at (t, x). A step within which a guard changes its side, or after
    which something is not finite, is not taken: x, dx, K[0], dK[:, 0] and the sides stand before it.
    """
    stages, directions = table.shape[1] - 1, dx.shape[0]
    for taken in range(times.size - 1):
        t, h = times[taken], times[taken + 1] - times[taken]
        stage = K[stages + 1]
        for s in range(1, stages + 1):
            row, count, when = stages + T_RESULT, stages, t + h
            if s < stages:
                row, count, when = s, s, t + table[stages + T_TIMES, s] * h
            combined(table, row, count, h, x, K, stage)
            for j in range(directions):
                combined(table, row, count, h, dx[j], dK[j], dK[j, stages + 1])
            if evaluate(f, clamped(when, at), z, dz, p, dp, n, w, dw, out, dout, K, dK, s) != 0:
                return LOOK, taken
        if halted(out, guards, sides):
            return LOOK, taken
        for i in range(x.size):
            x[i], K[0, i], states[taken, i] = stage[i], K[stages, i], stage[i]
        for j in range(directions):
            for i in range(x.size):
                dx[j, i], dK[j, 0, i], dstates[taken, j, i] = (
                    dK[j, stages + 1, i],
                    dK[j, stages, i],
                    dK[j, stages + 1, i],
                )
        for g in range(guards.size):
            sides[0, g] = out[guards[g]]
        for k in range(columns.size):
            signals[taken, k] = out[columns[k]]
            for j in range(directions):
                dsignals[taken, j, k] = dout[j, columns[k]]
    return WENT, times.size - 1
