"""Inverse dynamics by Hollerbach's recursive Lagrangian with 4 x 4 matrices.

J. M. Hollerbach, "A Recursive Lagrangian Formulation of Manipulator Dynamics and a Comparative Study of Dynamics
Formulation Complexity", IEEE Trans. Systems, Man, and Cybernetics SMC-10(11), 1980, pp. 730-736, as described by
Silver 1981, 1.4; with 3 x 3 matrices it is in `hollerbach_3x3`. We derive it here from Silver's (1.2) and have not
seen the original; Xiang, Arora and Abdel-Malek 2008 print the same recursions as (12)-(18), and their numbers stand
at the lines' ends.

Derivation. W_i = W_P T_i, P the link's parent, and T_i is a function of q_i alone, so that

    Ẇ_i = Ẇ_P T_i + W_P T_i' q̇_i,
    Ẅ_i = Ẅ_P T_i + 2 Ẇ_P T_i' q̇_i + W_P (T_i'' q̇_i² + T_i' q̈_i)

take the motion outward, a fixed number of products a link: no double sum over joints. Inward, each link j that
joint i carries has W_j = W_i X_ij, where X_ij does not depend on q_i, so that in (1.2)

    τ_i = Σ_j tr(∂W_j/∂q_i J_j Ẅ_j') = tr(∂W_i/∂q_i D_i),    D_i = Σ_j X_ij J_j Ẅ_j',

and since X_ij = T_c X_cj for the child c of i on the way to j, the sums follow from those of the children:

    D_i = J_i Ẅ_i' + Σ_c T_c D_c.

So all torques take a number of operations proportional to the number of links.

================  ==================  ==================================================================
here              Silver, Xiang       meaning
================  ==================  ==================================================================
T, dT, ddT        T_j, ∂T_j/∂q_j, …   pose of link i in its parent's frame, and its derivatives to q_i
W, Wd, Wdd        W, Ẇ, Ẅ; A, B, C    pose of link i in the base's frame, and its rates
dW                ∂W_i/∂q_i           W_P T_i'
J, D              J_j, D_i            inertia matrix, and the sum above
================  ==================  ==================================================================

Gravity accelerates the base by -g (Silver 1981, 3.2). Branches, and so marked wrenches, the terms of the joints
themselves, and screw joints, are extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, by_link, joint_torque, read_tree
from cstormpy.formulations.homogeneous import Frames, frames, load_matrices, trace

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "screw", "fixed")
BRANCHED = True


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by two recursions of 4 x 4 matrices.

    Parameters, result, errors and example are those of `uicker_kahn.inverse_dynamics`.
    """
    tree = read_tree(mech, "Hollerbach's formulation", KINDS)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    body, Psi = frames(tree), load_matrices(tree, wrench)
    kind = np.result_type(q, qd, qdd, *([] if Psi is None else [Psi]))
    T, W, dW, Wdd = outward(tree, body, q, qd, qdd)
    D, tau = np.zeros((len(q), 4, 4), kind), np.zeros(len(q), kind)
    for i in reversed(tree.outward):
        D[i] = body.J[i] @ Wdd[i].T  # (17)
        if Psi is not None:
            D[i] = D[i] - Psi[i] @ W[i].T  # extension
        for c in tree.C[i]:
            D[i] = D[i] + T[c] @ D[c]  # (17)
        if tree.moves[i]:
            tau[i] = trace(dW[i], D[i])  # (16)
            tau[i] = tau[i] + joint_torque(tree, i, q[i], qd[i], qdd[i])  # extension
    return tau[tree.joint_links]


def outward(tree: Tree, body: Frames, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array, Array]:
    """Return T, W, ∂W_i/∂q_i and Ẅ by link, gravity included; the last rows of W and Ẅ are the base's."""
    n, kind = len(q), np.result_type(q, qd, qdd)
    T, dW = np.zeros((2, n, 4, 4), kind)
    W, Wd, Wdd = np.zeros((3, n + 1, 4, 4), kind)
    W[-1] = np.eye(4)
    Wdd[-1, :, 3] = -body.g
    for i in tree.outward:
        P = tree.P[i]
        T[i] = body.T(i, q[i])
        W[i] = W[P] @ T[i]  # (12)
        Wd[i] = Wd[P] @ T[i]  # (13)
        Wdd[i] = Wdd[P] @ T[i]  # (14)
        if tree.moves[i]:
            dT, ddT = body.T(i, q[i], 1), body.T(i, q[i], 2)
            dW[i] = W[P] @ dT
            Wd[i] = Wd[i] + dW[i] * qd[i]  # (13)
            Wdd[i] = Wdd[i] + Wd[P] @ dT * (2 * qd[i]) + W[P] @ ddT * (qd[i] * qd[i]) + dW[i] * qdd[i]  # (14)
    return T, W, dW, Wdd
