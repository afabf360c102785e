"""Sensitivities of Xiang, Arora and Abdel-Malek's recursive Lagrangian: (21)-(35).

The paper and the notation are those of `xiang`. Further

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
A_q[i, k]         ∂A_i/∂q_k           4 x 4, for k on the path from the base to link i
B_q, B_qd         ∂B_i/∂q_k, ∂q̇_k     the same
C_q, C_qd, C_qdd  ∂C_i/∂q_k, …        the same
D_q, ..., G_q     ∂D_i/∂q_k, …        for k on the path to link i, and for k that link i carries
path[i]           k ≤ i               the joints from the base to link i, itself included
beyond[i]         k > i               the joints that link i carries
================  ==================  ==================================================================

The cases k < i, k = i and k > i of the print become: k on the path below i, i itself, and k beyond i. In a tree there
is a fourth, k on another branch, for which all derivatives are 0 and none is formed. Since k runs inside of i, the
number of operations grows with n² in a chain; the O(n) of the paper's 4.4 is that of the torques.

Departures from the print, besides those of `xiang`:

1. Loads that turn with their link (`wrench`) are not constant in the base's frame, so that (31) and (32) are not 0 for
   k ≤ i: ∂F_i/∂q_k and ∂G_i/∂q_k begin with those of the link's own load, and (33) has the terms that belong to them.
   With loads fixed in space these are 0, and (31)-(33) are as printed.
2. Misprints: in (23) and (26), k = i, the derivative is ∂T_i/∂q_k, printed ∂T_i/∂q̇_k and ∂T_i/∂q̈_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree
from cstormpy.formulations.homogeneous import path, trace
from cstormpy.formulations.xiang import (
    Base,
    Dynamics,
    Kinematics,
    Load,
    System,
    dynamics,
    joint_slopes,
    kinematics,
    system,
    z0,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")
BRANCHED = True


def inverse_sensitivity(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
    loads: Sequence[Load] = (),
) -> tuple[Array, Array, Array]:
    """Return ∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ of τ = `xiang.inverse_dynamics` of the same arguments.

    Parameters and errors are those of `xiang.inverse_dynamics`. A wrench is held constant in the link's frame, a load
    of `loads` in space, as the paper has it, and the motion of the base in the base's frame.

    Returns
    -------
    dtau_dq, dtau_dqd, dtau_dqdd : (n, n) ndarray
        Row: the torque. Column: the variable.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1), damping=0.5), mass=2.0, com=(0.5, 0, 0))])
    >>> [float(d[0, 0]) for d in inverse_sensitivity(mech, [np.pi / 2], [0.0], [0.0])]  # -m g l, damping, inertia
    [-9.81, 0.5, 0.5]
    """
    s = system(mech, q, qd, qdd, wrench, base, loads)
    k = kinematics(s)
    path, beyond = relations(s.tree)
    rates = kinematic_sensitivity(s, k, path)
    d = dynamics(s, k)
    n = len(s.q)
    tau_q, tau_qd, tau_qdd = np.zeros((3, n, n), s.kind)
    partial = Partials({}, {}, {}, {}, {}, {})
    for i in reversed(s.tree.outward):
        for j in path[i] + beyond[i]:
            dynamic_step(s, k, d, rates, partial, i, j, path)
            if s.tree.moves[i]:
                tau_q[i, j], tau_qd[i, j], tau_qdd[i, j] = torque_step(s, k, d, rates, partial, i, j, path)
        for matrix, slope in zip((tau_q, tau_qd, tau_qdd), joint_slopes(s.tree, i, s.qd[i]), strict=True):
            matrix[i, i] = matrix[i, i] + slope  # extension
    own = np.ix_(mech.joint_links, mech.joint_links)
    return tau_q[own], tau_qd[own], tau_qdd[own]


def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the mass matrix, (n, n), armature included: ∂τ/∂q̈, (35).

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    still = np.zeros(mech.n)
    return inverse_sensitivity(mech, q, still, still)[2]


def relations(tree: Tree) -> tuple[list[list[int]], list[list[int]]]:
    """Return, by link, the joints on the path to it, itself included, and those that it carries."""
    n = len(tree.P)
    moving = [[k for k in path(tree, i) if tree.moves[k]] for i in range(n)]
    beyond = [[k for k in tree.outward if k != i and i in path(tree, k) and k in moving[k]] for i in range(n)]
    return moving, beyond


# ---------------------------------------------------------------- 4.3.1: kinematics
class Rates(NamedTuple):
    """Quantities of (21)-(26) by link i and joint k on the path to it."""

    A_q: dict[tuple[int, int], Array]
    B_q: dict[tuple[int, int], Array]
    B_qd: dict[tuple[int, int], Array]
    C_q: dict[tuple[int, int], Array]
    C_qd: dict[tuple[int, int], Array]
    C_qdd: dict[tuple[int, int], Array]


def kinematic_sensitivity(s: System, k: Kinematics, path: list[list[int]]) -> Rates:
    """Return the derivatives of A, B and C, outward."""
    r = Rates({}, {}, {}, {}, {}, {})
    for i in s.tree.outward:
        for j in path[i]:
            if j == i:
                same_joint(s, k, r, i)
            else:
                joint_below(s, k, r, i, j)
    return r


def same_joint(s: System, k: Kinematics, r: Rates, i: int) -> None:
    """(21)-(26) for k = i."""
    P, qd, qdd = s.tree.P[i], s.qd[i], s.qdd[i]
    A, B, C, dT, ddT = k.A[P], k.B[P], k.C[P], k.dT[i], k.ddT[i]
    dddT = s.body.T(i, s.q[i], 3)
    r.A_q[i, i] = A @ dT  # (21)
    r.B_q[i, i] = B @ dT + A @ ddT * qd  # (22)
    r.B_qd[i, i] = A @ dT  # (23)
    r.C_q[i, i] = C @ dT + B @ ddT * (2 * qd) + A @ dddT * (qd * qd) + A @ ddT * qdd  # (24)
    r.C_qd[i, i] = B @ dT * 2 + A @ ddT * (2 * qd)  # (25)
    r.C_qdd[i, i] = A @ dT  # (26)


def joint_below(s: System, k: Kinematics, r: Rates, i: int, j: int) -> None:
    """(21)-(26) for k < i."""
    P, T, dT, ddT, qd, qdd = s.tree.P[i], k.T[i], k.dT[i], k.ddT[i], s.qd[i], s.qdd[i]
    r.A_q[i, j] = r.A_q[P, j] @ T  # (21)
    r.B_q[i, j] = r.B_q[P, j] @ T  # (22)
    r.B_qd[i, j] = r.B_qd[P, j] @ T  # (23)
    r.C_q[i, j] = r.C_q[P, j] @ T  # (24)
    r.C_qd[i, j] = r.C_qd[P, j] @ T  # (25)
    r.C_qdd[i, j] = r.C_qdd[P, j] @ T  # (26)
    if s.tree.moves[i]:
        rate = ddT * (qd * qd) + dT * qdd
        r.B_q[i, j] = r.B_q[i, j] + r.A_q[P, j] @ dT * qd  # (22)
        r.C_q[i, j] = r.C_q[i, j] + r.B_q[P, j] @ dT * (2 * qd) + r.A_q[P, j] @ rate  # (24)
        r.C_qd[i, j] = r.C_qd[i, j] + r.B_qd[P, j] @ dT * (2 * qd)  # (25)


# ---------------------------------------------------------------- 4.3.2: dynamics
class Partials(NamedTuple):
    """Quantities of (27)-(32) by link i and joint k on its path or beyond it."""

    D_q: dict[tuple[int, int], Any]
    D_qd: dict[tuple[int, int], Any]
    D_qdd: dict[tuple[int, int], Any]
    E_q: dict[tuple[int, int], Any]
    F_q: dict[tuple[int, int], Any]
    G_q: dict[tuple[int, int], Any]


def dynamic_step(
    s: System, k: Kinematics, d: Dynamics, r: Rates, p: Partials, i: int, j: int, path: list[list[int]]
) -> None:
    """(27)-(32) at link i, for joint j as the paper's k."""
    D_q = D_qd = D_qdd = F_q = np.zeros((4, 4))
    E_q = G_q = np.zeros(4)
    if j in path[i]:
        J = s.body.J[i]
        D_q, D_qd, D_qdd = J @ r.C_q[i, j].T, J @ r.C_qd[i, j].T, J @ r.C_qdd[i, j].T  # (27)-(29), k ≤ i
        F_q, G_q = turning_load(s, i, r.A_q[i, j])  # (31), (32)
    for c in s.tree.C[i]:
        if (c, j) not in p.D_q:
            continue  # another branch
        T = k.T[c]
        D_q, D_qd, D_qdd = D_q + T @ p.D_q[c, j], D_qd + T @ p.D_qd[c, j], D_qdd + T @ p.D_qdd[c, j]  # (27)-(29)
        if j not in path[i]:
            E_q = E_q + T @ p.E_q[c, j]  # (30), k > i
        F_q, G_q = F_q + T @ p.F_q[c, j], G_q + p.G_q[c, j]  # (31), (32)
        if c == j:
            D_q = D_q + k.dT[c] @ d.D[c]  # (27), k = i + 1
            E_q = E_q + k.dT[c] @ d.E[c]  # (30), k = i + 1
            F_q = F_q + k.dT[c] @ d.F[c]  # (31), k = i + 1
    p.D_q[i, j], p.D_qd[i, j], p.D_qdd[i, j], p.E_q[i, j], p.F_q[i, j], p.G_q[i, j] = D_q, D_qd, D_qdd, E_q, F_q, G_q


def turning_load(s: System, i: int, A_q: Array) -> tuple[Any, Any]:
    """Return the derivatives of r f' and h of the wrench that turns with link i."""
    if not s.wrench[i].any():
        return np.zeros((4, 4)), np.zeros(4)
    moment, force = np.append(s.wrench[i, :3], 0), np.append(s.wrench[i, 3:], 0)
    return np.outer([0, 0, 0, 1], A_q @ force), A_q @ moment


def torque_step(
    s: System, k: Kinematics, d: Dynamics, r: Rates, p: Partials, i: int, j: int, path: list[list[int]]
) -> tuple[Any, Any, Any]:
    """(33)-(35): return ∂τ_i/∂q_j, ∂τ_i/∂q̇_j, ∂τ_i/∂q̈_j of the forces on the links."""
    P, g, dA = s.tree.P[i], s.body.g, r.A_q[i, i]
    tau_q = trace(dA, p.D_q[i, j]) - g @ (dA @ p.E_q[i, j])  # (33)
    tau_q = tau_q - trace(dA, p.F_q[i, j]) - p.G_q[i, j] @ (k.A[P] @ z0(s.tree, i))  # (33), departure 1
    if j in path[i]:
        ddA = k.A[P] @ k.ddT[i] if j == i else r.A_q[P, j] @ k.dT[i]
        tau_q = tau_q + trace(ddA, d.D[i]) - g @ (ddA @ d.E[i]) - trace(ddA, d.F[i])  # (33), k ≤ i
        if j != i:
            tau_q = tau_q - d.G[i] @ (r.A_q[P, j] @ z0(s.tree, i))  # (33), k ≤ i
    return tau_q, trace(dA, p.D_qd[i, j]), trace(dA, p.D_qdd[i, j])  # (33), (34), (35)
