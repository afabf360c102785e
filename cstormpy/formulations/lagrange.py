"""Inverse dynamics by Lagrange's equation itself, on the difference of kinetic and potential energy.

W. M. Silver, "On the Representation of Angular Velocity and its Effect on the Efficiency of Manipulator Dynamics
Computation", MIT AI Memo 622, 1981, (1.1):

    τ_i = d/dt (∂L/∂q̇_i) - ∂L/∂q_i,    L = K - P.

The plainest witness of all the others: it knows where the links are for given q, their masses, and (1.1), but no
velocity, acceleration or force of any link. The derivatives are exact, since `dual` numbers take them:

* Ẇ_i, in the kinetic energy, is the ε-part of W_i(q + ε q̇);
* ∂L/∂q_i is the ε-part of L(q + ε e_i, q̇), with e_i the ith unit vector;
* d/dt (∂L/∂q̇_i) is the part of ε_t ε_i in L(q + ε_t q̇, q̇ + ε_t q̈ + ε_i e_i), by the chain rule.

================  ==================  ==================================================================
here              Silver              meaning
================  ==================  ==================================================================
W                 W_i                 pose of link i in the base's frame, 4 x 4
J                 J_i                 its 4 x 4 inertia matrix
kinetic_energy    K                   Σ ½ tr(Ẇ_i J_i Ẇ_i'), (2.8) in 4 x 4 matrices
potential_energy  P                   of gravity: -Σ m_i g · (centre of mass)
================  ==================  ==================================================================

Extensions: armatures add to K and springs to P; friction and loads have no energy of this kind, and are forces beside
L: damping and friction of the joint as such, a wrench by its work for each q_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, by_link, joint_torque, read_tree
from cstormpy.formulations.dual import Dual
from cstormpy.formulations.homogeneous import Frames, frames, load_matrices

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "screw", "fixed")
BRANCHED = True


# ---------------------------------------------------------------- the energies
def poses(tree: Tree, body: Frames, q: Any) -> list[Any]:
    """Return W of all links; the last is the base's."""
    W: list[Any] = [np.eye(4)] * (len(tree.P) + 1)
    for i in tree.outward:
        W[i] = W[tree.P[i]] @ body.T(i, q[i])
    return W


def kinetic_energy(tree: Tree, body: Frames, q: Any, qd: Any) -> Any:
    """Return K, armature included."""
    K: Any = 0
    W = poses(tree, body, [Dual(x, v) for x, v in zip(q, qd, strict=True)])
    for i in tree.outward:
        if isinstance(W[i], Dual):  # or else fixed to the base
            Wd = W[i].b
            K = K + ((Wd @ body.J[i]) * Wd).sum() * 0.5  # (2.8)
        if tree.terms["armature"][i]:
            K = K + qd[i] * qd[i] * (tree.terms["armature"][i] / 2)  # extension
    return K


def potential_energy(tree: Tree, body: Frames, q: Any) -> Any:
    """Return P of gravity and springs; that of gravity is 0 where the centre of mass is at the base's origin."""
    P: Any = 0
    W = poses(tree, body, q)
    for i in tree.outward:
        P = P - (W[i] @ (body.J[i][:, 3:] @ body.g[None, :])).trace()
        if tree.terms["stiffness"][i]:
            stretch = q[i] - tree.terms["rest"][i]
            P = P + stretch * stretch * (tree.terms["stiffness"][i] / 2)  # extension
    return P


def energy(mech: Mechanism, q: ArrayLike, qd: ArrayLike) -> tuple[Any, Any]:
    """Return kinetic and potential energy (J).

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0, 0.5, 0))])
    >>> [float(e) for e in energy(mech, [0.0], [2.0])]
    [1.0, 9.81]
    """
    tree = read_tree(mech)
    body = frames(tree)
    q, qd = by_link(tree, "q", q), by_link(tree, "qd", qd)
    return kinetic_energy(tree, body, q, qd), potential_energy(tree, body, q)


# ---------------------------------------------------------------- the equation
def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by (1.1).

    Parameters, result and errors are those of `uicker_kahn.inverse_dynamics`.

    Examples
    --------
    A horizontal link of 2 kg, its centre of mass at 0.5 m, is held against gravity:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0])
    array([9.81])
    """
    tree = read_tree(mech, "Lagrange's equation", KINDS)
    body, Psi = frames(tree), load_matrices(tree, wrench)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    lossy = tree._replace(terms={**tree.terms, "armature": 0 * tree.mass, "stiffness": 0 * tree.mass})
    tau = []
    for j in tree.joint_links:
        torque = rate_of_momentum(tree, body, j, q, qd, qdd) - slope(tree, body, j, q, qd)  # (1.1)
        if Psi is not None:
            torque = torque - work(tree, body, j, q, Psi)  # extension
        tau.append(torque + joint_torque(lossy, j, q[j], qd[j]))  # extension
    return np.array(tau)


def rate_of_momentum(tree: Tree, body: Frames, j: int, q: Array, qd: Array, qdd: Array) -> Any:
    """Return d/dt (∂L/∂q̇_j); the potential energy has no part in it."""
    at = [Dual(Dual(x, 0.0), Dual(v, 0.0)) for x, v in zip(q, qd, strict=True)]
    rate = [Dual(Dual(v, float(i == j)), Dual(a, 0.0)) for i, (v, a) in enumerate(zip(qd, qdd, strict=True))]
    return kinetic_energy(tree, body, at, rate).b.b


def slope(tree: Tree, body: Frames, j: int, q: Array, qd: Array) -> Any:
    """Return ∂L/∂q_j."""
    at = [Dual(x, float(i == j)) for i, x in enumerate(q)]
    rate = [Dual(v, 0.0) for v in qd]
    return (kinetic_energy(tree, body, at, rate) - potential_energy(tree, body, at)).b


def work(tree: Tree, body: Frames, j: int, q: Array, Psi: Array) -> Any:
    """Return the work of the wrenches for each q_j: tr(∂W/∂q_j Ψ W') summed over the links."""
    W = poses(tree, body, [Dual(x, float(i == j)) for i, x in enumerate(q)])
    moving = [i for i in tree.outward if isinstance(W[i], Dual)]
    return sum(((W[i].b @ Psi[i]) * W[i].a).sum() for i in moving)


def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the mass matrix, (n, n), armature included: ∂²K/∂q̇_i∂q̇_j.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    tree = read_tree(mech, "Lagrange's equation", KINDS)
    body, q = frames(tree), by_link(tree, "q", q)
    at = [Dual(Dual(x, 0.0), Dual(0.0, 0.0)) for x in q]
    M = np.zeros((mech.n, mech.n), q.dtype)
    for row, i in enumerate(tree.joint_links):
        for column, j in enumerate(tree.joint_links):
            rate = [Dual(Dual(0.0, float(k == i)), Dual(float(k == j), 0.0)) for k in range(len(q))]
            M[row, column] = kinetic_energy(tree, body, at, rate).b.b
    return M
