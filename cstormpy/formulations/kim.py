"""Open chains by Kim: dense hybrid dynamics, and the recursions of his Tables 2, 3 and 4.

J. Kim, "Lie Group Formulation of Articulated Rigid Body Dynamics", version 2.01 (2012), equations (1)-(53). The
derivatives to any scalar are in `kim_derivative`, constrained systems, (54)-(66), in `kim_constrained`.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
lam, mu           λ(i), μ(i)          parent and children of body i; the ground is row -1 of V and Vdot
T                 T_{λ(i),i}          pose of body i in its parent's frame
Ad_h              Ad_{T^-1}           its adjoint: takes velocities to the body's frame; Ad_h.T is the dual
S                 S_i                 Jacobian of the joint in the body's frame, here one column
V, Vdot           V_i, V̇_i            velocity (w, v) and the component-wise rate; V̇_0 = (0, -g)
I                 I_i                 generalised inertia
F, F_ext          F_i, F_i^ext        force (moment, force) from the parent; from outside
eta               η_i                 ad_V S q̇ + Ṡ q̇
I_hat, B_hat      Î_i, B̂_i            articulated inertia and bias force
Psi, Pi, beta     Ψ_i, Π_i, β_i       (S'ÎS)^-1; what the joint passes on of Î and of the bias force
u, v              u, v                joints with prescribed acceleration; with prescribed torque
================  ==================  ==================================================================

Departures from the print:

1. Joints have one freedom (`kim_joints` has the others): S is a column that does not depend on q, Ṡ = 0, and S'ÎS is
   a number. A fixed joint has S = 0 and is one of u.
2. The motor's other torques are added to τ (u) or subtracted from it (v); the armature adds to S'ÎS of v.
3. (34) is solved, not inverted. M and b are found by Table 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import SingularInertia
from cstormpy.formulations.arguments import (
    Array,
    Tree,
    bracket,
    by_link,
    divisor,
    joint_torque,
    read_tree,
    wrenches,
    zeros,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


# ---------------------------------------------------------------- section 1
def Ad_inverse(T: Array) -> Array:
    """Return Ad of T^-1, 6 x 6."""
    Rt, p = T[:3, :3].T, T[:3, 3]
    X = np.zeros((6, 6), T.dtype)
    X[:3, :3] = X[3:, 3:] = Rt
    X[3:, :3] = -Rt @ bracket(p)  # (7), of T^-1 = (R', -R'p)
    return X


def ad(V: Array) -> Array:
    """Return ad_V, 6 x 6; its transpose is the dual, (29)."""
    X = np.zeros((6, 6), V.dtype)
    X[:3, :3] = X[3:, 3:] = bracket(V[:3])
    X[3:, :3] = bracket(V[3:])  # (27)
    return X


def generalised_inertia(m: Any, p: Array, I_c: Array) -> Array:
    """Return I, 6 x 6, of a mass m at p with the inertia I_c about it, in the same axes."""
    X = np.zeros((6, 6), np.result_type(np.asarray(m), p, I_c))
    X[:3, :3] = I_c + m * bracket(p).T @ bracket(p)
    X[:3, 3:] = m * bracket(p)
    X[3:, :3] = m * bracket(p).T
    X[3:, 3:] = m * np.eye(3)  # (22), R = 1
    return X


def pose(M: Array, S: Array, q: Any) -> Array:
    """Return T = M e^{S q}, 4 x 4; the angular part of S has length 1 or 0."""
    w, v, s, versine = bracket(S[:3]), S[3:], np.sin(q), 1 - np.cos(q)
    square = w @ w
    X = np.eye(4, dtype=np.result_type(M, S, np.asarray(q)))
    X[:3, :3] = np.eye(3) + s * w + versine * square
    X[:3, 3] = q * v + versine * (w @ v) + (q - s) * (square @ v)
    return M @ X


# ---------------------------------------------------------------- the open chain in the paper's letters
class System(NamedTuple):
    """A mechanism in the paper's letters, by body."""

    tree: Tree
    lam: list[int]
    mu: list[list[int]]
    M: Array
    S: Array
    I: Array
    u: Array


def read_system(mech: Mechanism) -> System:
    """Return a mechanism in the paper's letters."""
    tree = read_tree(mech)
    I = [generalised_inertia(*of) for of in zip(tree.mass, tree.com, tree.inertia, strict=True)]
    return System(tree, tree.P, tree.C, tree.pose, tree.screw, np.array(I), tree.active)


class Velocities(NamedTuple):
    """Quantities of the first sweep by body; the ground is the last row of V."""

    Ad_h: Array
    V: Array
    eta: Array


def velocity_sweep(system: System, q: Array, qd: Array) -> Velocities:
    """Return the velocities: the first recursion of Tables 2, 3 and 4."""
    n, kind = len(system.lam), np.result_type(q, qd)
    v = Velocities(*zeros(kind, (n, 6, 6), (n + 1, 6), (n, 6)))
    for i in system.tree.outward:
        S = system.S[i]
        v.Ad_h[i] = Ad_inverse(pose(system.M[i], S, q[i]))
        v.V[i] = v.Ad_h[i] @ v.V[system.lam[i]] + S * qd[i]  # (37)
        v.eta[i] = ad(v.V[i]) @ (S * qd[i])  # of (41)
    return v


def ground(system: System, kind: Any) -> Array:
    """Return an array for V̇, its last row that of the ground."""
    Vdot = np.zeros((len(system.lam) + 1, 6), kind)
    Vdot[-1, 3:] = -system.tree.gravity  # footnote 6: gravity enters as an acceleration of the ground
    return Vdot


def extra(system: System, q: Array, qd: Array, qdd: Array | None = None) -> Array:
    """Return what the motors spend in the joints themselves, by body."""
    rates = np.zeros(len(q)) if qdd is None else qdd
    out = [joint_torque(system.tree, i, q[i], qd[i], rates[i]) for i in range(len(q))]
    return np.array(out)


# ---------------------------------------------------------------- Table 2
def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by Table 2.

    Parameters, result, errors and example are those of `uicker_kahn.inverse_dynamics`.
    """
    system = read_system(mech)
    q, qd, qdd = (by_link(system.tree, name, x) for name, x in (("q", q), ("qd", qd), ("qdd", qdd)))
    tau = table_2(system, q, qd, qdd, wrenches(system.tree, wrench), system.tree.gravity)
    return (tau + extra(system, q, qd, qdd))[system.tree.joint_links]


def table_2(system: System, q: Array, qd: Array, qdd: Array, F_ext: Array, gravity: Array) -> Array:
    """Return τ of the bodies alone, by body."""
    v = velocity_sweep(system, q, qd)
    n, kind = len(q), np.result_type(v.V, qdd, F_ext)
    Vdot, F, tau = zeros(kind, (n + 1, 6), (n, 6), (n,))
    Vdot[-1, 3:] = -gravity  # footnote 6
    for i in system.tree.outward:
        Vdot[i] = v.Ad_h[i] @ Vdot[system.lam[i]] + v.eta[i] + system.S[i] * qdd[i]  # (41)
    for i in reversed(system.tree.outward):
        V, I = v.V[i], system.I[i]
        F[i] = I @ Vdot[i] - ad(V).T @ (I @ V) - F_ext[i]  # (42)
        for k in system.mu[i]:
            F[i] = F[i] + v.Ad_h[k].T @ F[k]  # (42)
        tau[i] = system.S[i] @ F[i]  # Table 2
    return tau


# ---------------------------------------------------------------- (32)-(34)
def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return M of (32), (n, n), armature included: column k is Table 2 for q̈ = e_k, at rest and without gravity.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    system = read_system(mech)
    q, joints = by_link(system.tree, "q", q), system.tree.joint_links
    n = len(q)
    still, free = np.zeros(n), np.zeros((n, 6))
    columns = [table_2(system, q, still, e, free, np.zeros(3))[joints] for e in np.eye(n)[joints]]
    M = np.array(columns).reshape(len(joints), len(joints)).T
    return M + np.diag(system.tree.terms["armature"][joints])


def hybrid_dynamics_dense(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, u: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the hybrid dynamics by (33) and (34), from the mass matrix.

    Parameters, result and errors are those of `hybrid_dynamics`; numbers that count are not taken.

    Examples
    --------
    >>> from cstormpy.mechanism.library import acrobot
    >>> mech = acrobot().with_drive(active=["elbow"])
    >>> y, z = (f(mech, [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]) for f in (hybrid_dynamics_dense, hybrid_dynamics))
    >>> bool(abs(y - z).max() < 1e-12)
    True
    """
    M, b = mass_matrix(mech, q), inverse_dynamics(mech, q, qd, np.zeros(mech.n), wrench)  # (32)
    given = by_link(read_tree(mech), "u", u)[mech.joint_links]
    is_u, is_v = mech.active_mask, ~mech.active_mask
    qdd, tau = given.astype(np.result_type(M, b, given)), given.astype(np.result_type(M, b, given))
    right = given[is_v] - b[is_v] - M[is_v][:, is_u] @ given[is_u]
    try:
        qdd[is_v] = np.linalg.solve(M[is_v][:, is_v], right)  # (34)
    except np.linalg.LinAlgError:
        raise SingularInertia("the passive joints' block of the mass matrix is singular") from None
    tau[is_u] = (M @ qdd + b)[is_u]  # (33)
    return np.where(is_u, tau, qdd)


# ---------------------------------------------------------------- Tables 3 and 4
class Hybrid(NamedTuple):
    """Quantities of Table 4 by body; the ground is the last row of Vdot. Psi is 0 at the joints of u."""

    v: Velocities
    I_hat: Array
    B_hat: Array
    Psi: Array
    Pi: Array
    beta: Array
    Vdot: Array
    F: Array
    qdd: Array
    tau: Array


def hybrid_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, u: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the hybrid dynamics, by Table 4.

    Parameters, result and errors are those of `sohl_bobrow.hybrid_dynamics`; the base is at rest.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> hybrid_dynamics(mech, [0.0], [0.0], [0.0])
    array([-19.62])
    """
    system = read_system(mech)
    q, qd, u = (by_link(system.tree, name, x) for name, x in (("q", q), ("qd", qd), ("u", u)))
    h = table_4(system, q, qd, u, wrenches(system.tree, wrench))
    return np.where(system.u, h.tau + extra(system, q, qd, h.qdd), h.qdd)[system.tree.joint_links]


def forward_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the accelerations under given motor torques, by Table 3: Table 4 without joints of u.

    Parameters, result and errors are those of `hybrid_dynamics`, with all joints passive.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))], active=["arm"])
    >>> forward_dynamics(mech, [0.0], [0.0], [0.0])
    array([-19.62])
    """
    system = read_system(mech)
    free = system._replace(u=~np.array(system.tree.moves))
    q, qd, tau = (by_link(system.tree, name, x) for name, x in (("q", q), ("qd", qd), ("tau", tau)))
    return table_4(free, q, qd, tau, wrenches(system.tree, wrench)).qdd[system.tree.joint_links]


def table_4(system: System, q: Array, qd: Array, u: Array, F_ext: Array) -> Hybrid:
    """Return all of Table 4; qdd and tau are those of the bodies, without the motors' other torques."""
    v = velocity_sweep(system, q, qd)
    n, kind = len(q), np.result_type(v.V, u, F_ext)
    qdd = np.where(system.u, u, 0).astype(kind)
    tau = np.where(system.u, 0, u - extra(system, q, qd)).astype(kind)
    I_hat, B_hat, Psi, Pi, beta, F = zeros(kind, (n, 6, 6), (n, 6), (n,), (n, 6, 6), (n, 6), (n, 6))
    for i in reversed(system.tree.outward):
        S, V, I = system.S[i], v.V[i], system.I[i]
        I_hat[i] = I
        B_hat[i] = -ad(V).T @ (I @ V) - F_ext[i]
        for k in system.mu[i]:
            I_hat[i] = I_hat[i] + v.Ad_h[k].T @ Pi[k] @ v.Ad_h[k]  # (52)
            B_hat[i] = B_hat[i] + v.Ad_h[k].T @ beta[k]  # (53)
        if system.u[i]:
            Pi[i] = I_hat[i]  # (52)
            beta[i] = B_hat[i] + I_hat[i] @ (v.eta[i] + S * qdd[i])  # (53)
        else:
            I_S = I_hat[i] @ S
            Psi[i] = 1 / divisor(system.tree, i, S @ I_S, I_hat[i], S)  # Table 4
            Pi[i] = I_hat[i] - np.outer(I_S * Psi[i], I_S)  # (52)
            left = tau[i] - S @ (I_hat[i] @ v.eta[i] + B_hat[i])
            beta[i] = B_hat[i] + I_hat[i] @ v.eta[i] + I_S * (Psi[i] * left)  # (53)
    Vdot = ground(system, kind)
    for i in system.tree.outward:
        S, carried = system.S[i], v.Ad_h[i] @ Vdot[system.lam[i]]
        if not system.u[i]:
            qdd[i] = Psi[i] * (tau[i] - S @ (I_hat[i] @ (carried + v.eta[i])) - S @ B_hat[i])  # (45)
        Vdot[i] = carried + S * qdd[i] + v.eta[i]  # (41)
        F[i] = I_hat[i] @ Vdot[i] + B_hat[i]  # (43)
        if system.u[i]:
            tau[i] = S @ F[i]  # Table 4
    return Hybrid(v, I_hat, B_hat, Psi, Pi, beta, Vdot, F, qdd, tau)
