"""Inverse dynamics by Hollerbach's recursive Lagrangian with 3 x 3 rotation matrices and displacement vectors.

J. M. Hollerbach, "A Recursive Lagrangian Formulation of Manipulator Dynamics and a Comparative Study of Dynamics
Formulation Complexity", IEEE Trans. Systems, Man, and Cybernetics SMC-10(11), 1980, pp. 730-736, as described by
Silver 1981, 1.4: rotation matrices say how the links are turned, vectors where they are, which about halves the
operations of 4 x 4 matrices (`hollerbach`), whose last rows are known. We have not seen its equations and derive them
here; letters in brackets are this page's.

================  ==================================================================
here              meaning
================  ==================================================================
A, dA             rotation A_i from the axes of link i to those of its parent, and ∂A_i/∂q_i
d, dd             origin of link i from its parent's, in the parent's axes, and ∂d_i/∂q_i
W, Wd, Wdd        rotation W_i to the axes of the base, and its rates
pdd               p̈_i, acceleration of the link's origin, less gravity, in the base's axes
m, n, J           mass, ∫ r dm = m r_c and ∫ r r' dm of the link, r from its origin in its axes: the blocks of the
                  4 x 4 inertia matrix
D, e              the sums of the inward recursion, by link
================  ==================================================================

Derivation. A point r of link i is at p_i + W_i r, so that twice its kinetic energy is

    2 K_i = m_i ṗ_i·ṗ_i + 2 ṗ_i·Ẇ_i n_i + tr(Ẇ_i J_i Ẇ_i').

Lagrange's equation of an energy that is a square in the rates of the coordinates' functions x, ½ ẋ'Nẋ with constant
N, is τ_j = (∂x/∂q_j)' N ẍ. Here, with gravity as an acceleration -g of the base,

    τ_j = Σ_i [ ∂p_i/∂q_j · (m_i p̈_i + Ẅ_i n_i) + tr(∂W_i/∂q_j (J_i Ẅ_i' + n_i p̈_i')) ],                         (a)

over the links i that joint j carries. The motion comes from W_i = W_P A_i and p_i = p_P + W_P d_i:

    Ẇ_i = Ẇ_P A_i + W_P ∂A_i q̇_i,                                                                                  (b)
    Ẅ_i = Ẅ_P A_i + 2 Ẇ_P ∂A_i q̇_i + W_P (∂²A_i q̇_i² + ∂A_i q̈_i),                                                 (c)
    p̈_i = p̈_P + Ẅ_P d_i + 2 Ẇ_P ∂d_i q̇_i + W_P (∂²d_i q̇_i² + ∂d_i q̈_i).                                          (d)

Seen from link j, link i is turned by X_ji and stands at s_ji, neither of which depends on q_j:

    ∂W_i/∂q_j = ∂W_j/∂q_j X_ji,    ∂p_i/∂q_j = ∂p_j/∂q_j + ∂W_j/∂q_j s_ji,

where ∂W_j/∂q_j = W_P ∂A_j and ∂p_j/∂q_j = W_P ∂d_j. With u·Ys = tr(Y s u') all of (a)
is one trace and one product of vectors,

    τ_j = tr(W_P ∂A_j D_j) + W_P ∂d_j · e_j,                                                                         (e)

and since X_ji = A_c X_ci and s_ji = d_c + A_c s_ci for the child c of j on the way to i, the sums recur:

    e_j = m_j p̈_j + Ẅ_j n_j + Σ_c e_c,                                                                              (f)
    D_j = J_j Ẅ_j' + n_j p̈_j' + Σ_c (A_c D_c + d_c e_c').                                                           (g)

Branches, and so marked wrenches, the terms of the joints themselves and screw joints, are extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, bracket, by_link, joint_torque, read_tree, wrenches
from cstormpy.formulations.homogeneous import Frames, frames, trace

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "screw", "fixed")
BRANCHED = True


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by two recursions of 3 x 3 matrices and vectors.

    Parameters, result, errors and example are those of `uicker_kahn.inverse_dynamics`.
    """
    tree = read_tree(mech, "Hollerbach's formulation", KINDS)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    body, load, n_links = frames(tree), wrenches(tree, wrench), len(q)
    at = outward(tree, body, q, qd, qdd)
    kind = np.result_type(at.W, load)
    D, e, tau = np.zeros((n_links, 3, 3), kind), np.zeros((n_links, 3), kind), np.zeros(n_links, kind)
    for j in reversed(tree.outward):
        D[j], e[j] = inertial(body, at, j)  # (f), (g)
        if wrench is not None:
            e[j] = e[j] - at.W[j] @ load[j, 3:]  # extension
            D[j] = D[j] + bracket(load[j, :3]) @ at.W[j].T / 2  # extension: n·ω = -½ tr([n] [ω])
        for c in tree.C[j]:
            e[j] = e[j] + e[c]  # (f)
            D[j] = D[j] + at.A[c] @ D[c] + np.outer(at.d[c], e[c])  # (g)
        if tree.moves[j]:
            tau[j] = trace(at.dW[j], D[j]) + at.dp[j] @ e[j]  # (e)
            tau[j] = tau[j] + joint_torque(tree, j, q[j], qd[j], qdd[j])  # extension
    return tau[tree.joint_links]


class Motion(NamedTuple):
    """Quantities of the outward recursion by link; the last rows of W, Wdd and pdd are the base's."""

    A: Array
    d: Array
    dW: Array  # ∂W_i/∂q_i
    dp: Array  # ∂p_i/∂q_i
    W: Array
    Wdd: Array
    pdd: Array


def outward(tree: Tree, body: Frames, q: Array, qd: Array, qdd: Array) -> Motion:
    """Return the motion of all links, gravity included."""
    n, kind = len(q), np.result_type(q, qd, qdd)
    A, d, dW, dp = (np.zeros((n, *shape), kind) for shape in ((3, 3), (3,), (3, 3), (3,)))
    W, Wd, Wdd, pdd = (np.zeros((n + 1, *shape), kind) for shape in ((3, 3), (3, 3), (3, 3), (3,)))
    W[-1], pdd[-1] = np.eye(3), -body.g[:3]
    for i in tree.outward:
        P = tree.P[i]
        A[i], d[i] = halves(body.T(i, q[i]))
        W[i] = W[P] @ A[i]
        Wd[i] = Wd[P] @ A[i]  # (b)
        Wdd[i] = Wdd[P] @ A[i]  # (c)
        pdd[i] = pdd[P] + Wdd[P] @ d[i]  # (d)
        if tree.moves[i]:
            (dA, dd), (ddA, ddd) = halves(body.T(i, q[i], 1)), halves(body.T(i, q[i], 2))
            dW[i], dp[i], square = W[P] @ dA, W[P] @ dd, qd[i] * qd[i]
            Wd[i] = Wd[i] + dW[i] * qd[i]  # (b)
            Wdd[i] = Wdd[i] + Wd[P] @ dA * (2 * qd[i]) + W[P] @ ddA * square + dW[i] * qdd[i]  # (c)
            pdd[i] = pdd[i] + Wd[P] @ dd * (2 * qd[i]) + W[P] @ ddd * square + dp[i] * qdd[i]  # (d)
    return Motion(A, d, dW, dp, W, Wdd, pdd)


def halves(T: Array) -> tuple[Array, Array]:
    """Return rotation and displacement of a 4 x 4 matrix, or their derivatives."""
    return T[:3, :3], T[:3, 3]


def inertial(body: Frames, at: Motion, j: int) -> tuple[Array, Array]:
    """Return what link j itself adds to D and e."""
    J, n, m = body.J[j, :3, :3], body.J[j, :3, 3], body.J[j, 3, 3]
    D = J @ at.Wdd[j].T + np.outer(n, at.pdd[j])  # (g)
    e = m * at.pdd[j] + at.Wdd[j] @ n  # (f)
    return D, e
