"""Silver's derivation from Lagrange's equation, term by term: (3.1)-(3.16) and appendix A.

W. M. Silver, "On the Representation of Angular Velocity and its Effect on the Efficiency of Manipulator Dynamics
Computation", MIT AI Memo 622, 1981. Each term of the derivation is a function, so that a reader can look at it and a
test hold it against exact derivatives of the kinetic energy; the sums are taken as they are written, in the base's
axes, in n² operations. `silver` is the recursion that they become.

================  ==================  ==================================================================
here              Silver              meaning; vectors are in the base's axes
================  ==================  ==================================================================
z, o              ẑ_j                 unit vector of joint j's axis, and a point on it
r, v, vd          r_i, v_i, v̇_i       centre of mass of link i, its velocity and acceleration
w, wd             ω_i, ω̇_i            angular velocity and acceleration of link i
I                 I_i                 inertia about the centre of mass
v_qd, w_qd        ∂v/∂q̇_j, ∂ω/∂q̇_j    partial velocities, (3.15), (3.16)
v_q, w_q          ∂v/∂q_j, ∂ω/∂q_j    derivatives to the position
path[i], over[j]  j ≤ i, i ≥ j        joints from the base to link i; links that joint j carries
================  ==================  ==================================================================

Departures from the print:

1. Branches: sums run over `path` and `over`. Fixed joints are no joints.
2. Gravity is the base's acceleration -g in `inverse_dynamics` (3.2, second point), and not part of K.
3. Misprints: dots are lost over v, I and ω in (3.2), (3.3), (3.5) and before (3.10); "section 2.1" in appendix A is
   3.1; (A.3) is ∂ẑ_k/∂q_j, printed dẑ_k/dt; in the last proof ω_j is ω_i - Σ_k q̇_k ẑ_k, printed with +.
4. For sliding joints ẑ_k does not turn anything: the 0 that the appendix takes for it is what `w_qd` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import (
    Array,
    Tree,
    bodies,
    bracket,
    by_link,
    cross,
    joint_torque,
    loads_at_reference,
    read_tree,
    turned,
)
from cstormpy.formulations.homogeneous import path

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")
BRANCHED = True


# ---------------------------------------------------------------- the motion
class Motion(NamedTuple):
    """Positions and motions of all links, by link."""

    tree: Tree
    path: list[list[int]]
    over: list[list[int]]
    W: Array  # (n_links, 3, 3), link's axes in the base's
    z: Array
    o: Array
    r: Array
    I: Array
    q: Array
    qd: Array
    qdd: Array
    w: Array
    v: Array
    v_o: Array  # velocity of the point o
    wd: Array
    vd: Array


def motion(mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Motion:
    """Return the motion of a tree of revolute, prismatic and fixed joints."""
    tree = read_tree(mech, "Silver's formulation", KINDS)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    body, n, kind = bodies(tree), len(tree.P), np.result_type(q, qd, qdd)
    paths = [[k for k in path(tree, i) if tree.moves[k]] for i in range(n)]
    W, I = np.zeros((n + 1, 3, 3), kind), np.zeros((n, 3, 3), kind)
    o, (z, r) = np.zeros((n + 1, 3), kind), np.zeros((2, n, 3), kind)
    W[-1] = np.eye(3)
    for i in tree.outward:
        P = tree.P[i]
        R, l = turned(tree, body, i, q[i])
        W[i], o[i] = W[P] @ R, o[P] + W[P] @ l
        z[i], r[i] = W[i] @ tree.axis[i], o[i] + W[i] @ body.s[i]
        I[i] = W[i] @ tree.inertia[i] @ W[i].T
    over = [[i for i in tree.outward if j in paths[i]] for j in range(n)]
    m = Motion(tree, paths, over, W[:-1], z, o[:-1], r, I, q, qd, qdd, *np.zeros((5, n, 3), kind))
    for i in tree.outward:
        m.w[i], m.v[i], m.v_o[i] = angular_velocity(m, i), velocity(m, i, r[i]), velocity(m, i, o[i])
        m.wd[i], m.vd[i] = angular_acceleration(m, i), acceleration(m, i)
    return m


def v_qd(m: Motion, j: int, x: Array) -> Array:
    """Return ∂v/∂q̇_j of the point x of a link that joint j carries."""
    return m.z[j] if slides(m, j) else cross(m.z[j], x - m.o[j])  # (3.15)


def w_qd(m: Motion, j: int) -> Array:
    """Return ∂ω/∂q̇_j of a link that joint j carries."""
    return 0 * m.z[j] if slides(m, j) else m.z[j]  # (3.16)


def slides(m: Motion, j: int) -> bool:
    """Return whether joint j is translational."""
    return m.tree.slides[j]


def velocity(m: Motion, i: int, x: Array) -> Array:
    """Return the velocity of the point x of link i; of its centre of mass it is v_i."""
    return sum((v_qd(m, j, x) * m.qd[j] for j in m.path[i]), 0 * x)  # (3.13)


def angular_velocity(m: Motion, i: int) -> Array:
    """Return ω_i."""
    return sum((w_qd(m, j) * m.qd[j] for j in m.path[i]), 0 * m.z[i])  # (3.14)


def acceleration(m: Motion, i: int) -> Array:
    """Return v̇_i: the rate of (3.13)."""
    terms = (v_qd(m, j, m.r[i]) * m.qdd[j] + v_qd_rate(m, i, j) * m.qd[j] for j in m.path[i])
    return sum(terms, 0 * m.r[i])


def angular_acceleration(m: Motion, i: int) -> Array:
    """Return ω̇_i: the rate of (3.14)."""
    return sum((w_qd(m, j) * m.qdd[j] + w_qd_rate(m, j) * m.qd[j] for j in m.path[i]), 0 * m.z[i])


# ---------------------------------------------------------------- appendix A
def v_qd_rate(m: Motion, i: int, j: int) -> Array:
    """Return d/dt (∂v_i/∂q̇_j), the left side of (3.4)."""
    turning = cross(m.w[j], m.z[j])  # dẑ_j/dt, (A.2)
    if slides(m, j):
        return turning
    return cross(turning, m.r[i] - m.o[j]) + cross(m.z[j], m.v[i] - m.v_o[j])


def v_q(m: Motion, i: int, j: int) -> Array:
    """Return ∂v_i/∂q_j, the right side of (3.4), from (3.13) with ∂r_i/∂q_j = ∂v_i/∂q̇_j, (A.1)."""
    total, dr = 0 * m.z[j], v_qd(m, j, m.r[i])  # (A.1)
    for k in m.path[i]:
        dz, do = z_q(m, k, j), v_qd(m, j, m.o[k]) if j in m.path[k] else 0 * dr
        change = dz if slides(m, k) else cross(dz, m.r[i] - m.o[k]) + cross(m.z[k], dr - do)
        total = total + change * m.qd[k]
    return total


def w_qd_rate(m: Motion, j: int) -> Array:
    """Return d/dt (∂ω_i/∂q̇_j), the left side of (3.6), which is the same for all links i."""
    return cross(m.w[j], w_qd(m, j))  # (A.2)


def z_q(m: Motion, k: int, j: int) -> Array:
    """Return ∂ẑ_k/∂q_j."""
    return cross(w_qd(m, j), m.z[k]) if j in m.path[k] else 0 * m.z[k]  # (A.3)


def w_q(m: Motion, i: int, j: int) -> Array:
    """Return ∂ω_i/∂q_j, from (3.14) and (A.3)."""
    turning = (k for k in m.path[i] if not slides(m, k))
    return sum((z_q(m, k, j) * m.qd[k] for k in turning), 0 * m.z[j])


def I_rate(m: Motion, i: int) -> Array:
    """Return İ_i = ω_i × I_i - I_i × ω_i."""
    W = bracket(m.w[i])
    return W @ m.I[i] - m.I[i] @ W


def I_q(m: Motion, i: int, j: int) -> Array:
    """Return ∂I_i/∂q_j, which is ∂İ_i/∂q̇_j."""
    W = bracket(w_qd(m, j))
    return W @ m.I[i] - m.I[i] @ W


# ---------------------------------------------------------------- 3.1: from the energy to the forces
def kinetic_energy(m: Motion) -> Any:
    """Return K."""
    total: Any = 0
    for i in m.tree.outward:
        total = total + (m.v[i] @ m.v[i] * m.tree.mass[i] + m.w[i] @ m.I[i] @ m.w[i]) / 2  # (3.1)
    return total


def momentum(m: Motion, j: int) -> Any:
    """Return ∂K/∂q̇_j."""
    total: Any = 0
    for i in m.over[j]:
        total = total + m.v[i] @ v_qd(m, j, m.r[i]) * m.tree.mass[i]  # (3.2)
        total = total + m.w[i] @ m.I[i] @ w_qd(m, j)  # (3.2)
    return total


def momentum_rate_by_parts(m: Motion, j: int) -> Any:
    """Return d/dt (∂K/∂q̇_j) as the rule for products gives it."""
    total: Any = 0
    for i in m.over[j]:
        mass, w_i, I = m.tree.mass[i], m.w[i], m.I[i]
        total = total + (m.vd[i] @ v_qd(m, j, m.r[i]) + m.v[i] @ v_qd_rate(m, i, j)) * mass  # (3.3)
        total = total + m.wd[i] @ I @ w_qd(m, j) + w_i @ I_rate(m, i) @ w_qd(m, j)  # (3.3)
        total = total + w_i @ I @ w_qd_rate(m, j)  # (3.3)
    return total


def momentum_rate(m: Motion, j: int) -> Any:
    """Return d/dt (∂K/∂q̇_j) after (3.4)-(3.7)."""
    total: Any = 0
    for i in m.over[j]:
        total = total + (m.vd[i] @ v_qd(m, j, m.r[i]) + m.v[i] @ v_q(m, i, j)) * m.tree.mass[i]  # (3.8)
        total = total + m.wd[i] @ m.I[i] @ w_qd(m, j) + m.w[i] @ m.I[i] @ w_q(m, i, j)  # (3.8)
    return total


def slope(m: Motion, j: int) -> Any:
    """Return ∂K/∂q_j."""
    total: Any = 0
    for i in m.over[j]:
        w_i = m.w[i]
        total = total + m.v[i] @ v_q(m, i, j) * m.tree.mass[i]  # (3.9)
        total = total + w_i @ m.I[i] @ w_q(m, i, j) + w_i @ I_q(m, i, j) @ w_i / 2  # (3.9)
    return total


def forces(m: Motion, i: int, lift: Array) -> tuple[Array, Array]:
    """Return F_i and N_i of (3.11), the moment about the centre of mass; lift is the acceleration of the base."""
    return (m.vd[i] + lift) * m.tree.mass[i], m.I[i] @ m.wd[i] + cross(m.w[i], m.I[i] @ m.w[i])  # (1.3)


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by the sums (3.12).

    Parameters, result, errors and example are those of `silver.inverse_dynamics`.
    """
    m = motion(mech, q, qd, qdd)
    tree = m.tree
    total = [forces(m, i, -tree.gravity) for i in range(len(tree.P))]
    force, moment = loads_at_reference(tree, bodies(tree), wrench)
    tau = []
    for j in tree.joint_links:
        torque = sum(total[i][0] @ v_qd(m, j, m.r[i]) + total[i][1] @ w_qd(m, j) for i in m.over[j])  # (3.12)
        if wrench is not None:
            for i in m.over[j]:  # extension
                f, n = m.W[i] @ force[i], m.W[i] @ moment[i]
                torque = torque - f @ v_qd(m, j, m.o[i]) - n @ w_qd(m, j)
        tau.append(torque + joint_torque(tree, j, m.q[j], m.qd[j], m.qdd[j]))  # friction
    return np.array(tau)
