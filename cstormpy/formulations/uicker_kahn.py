"""Inverse dynamics by Uicker and Kahn: Lagrange's equation in 4 x 4 matrices, evaluated as it is written.

J. J. Uicker, "On the Dynamic Analysis of Spatial Linkages Using 4x4 Matrices", PhD thesis, Northwestern
University, 1965, and M. E. Kahn, Stanford AI Project Memo AIM-106, 1969, as quoted by W. M. Silver, "On the
Representation of Angular Velocity and its Effect on the Efficiency of Manipulator Dynamics Computation", MIT AI
Memo 622, 1981, (1.2).

================  ==================  ==================================================================
here              Silver              meaning
================  ==================  ==================================================================
W                 W_i                 4 x 4 matrix from link coordinates to those of the base
legs.partial      ∂W_j/∂q_i, ...      its partial derivatives, from products of the joints' matrices
Wdd               Ẅ_j                 ΣΣ ∂²W_j/∂q_k∂q_l q̇_k q̇_l + Σ ∂W_j/∂q_k q̈_k
J                 J_j                 4 x 4 inertia matrix of the link in its coordinates
carried(i)        j = i, ..., n       link i and those that it carries
================  ==================  ==================================================================

Why it takes n⁴: for each joint i and each link j that it carries, Ẅ_j is a double sum over the joints k, l below
link j, each of which asks for a product of matrices. Nothing is kept from one pair (i, j) to the next, since this is
what Silver's figures ("well over 100,000 adds and multiplies" for six links) are about; `hollerbach` shows what
keeping saves.

Departures from the print:

1. Gravity, which (1.2) omits, enters as Silver's 3.2 and Luh have it: the base is accelerated by -g.
2. Branches: j runs over the links that joint i carries.
3. Extensions, marked so: wrenches on the links, and what acts in the joints themselves. Screw joints are admitted,
   since the derivation asks of W_j only that it be a smooth function of the q_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, by_link, joint_torque, read_tree
from cstormpy.formulations.homogeneous import Frames, Legs, carried, frames, load_matrices, trace

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "screw", "fixed")
BRANCHED = True


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by (1.2).

    Parameters
    ----------
    mech : Mechanism
        Any tree of fixed joints and joints of one coordinate; which are active plays no part.
    q, qd, qdd : (n,) array_like
        Position, velocity and acceleration of the joints (rad or m).
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.

    Returns
    -------
    (n,) ndarray
        Torque or force of each motor (N m or N).

    Raises
    ------
    CstormError
        If an argument has another shape, is not of numbers, or is not finite.

    Examples
    --------
    A horizontal link of 2 kg, its centre of mass at 0.5 m, is held against gravity:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0])
    array([9.81])
    """
    tree = read_tree(mech, "Uicker and Kahn's formulation", KINDS)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    body, Psi = frames(tree), load_matrices(tree, wrench)
    legs = Legs(tree, body, q, orders=2)
    tau = []
    for i in tree.joint_links:
        torque = sum(pair(tree, body, legs, i, j, qd, qdd, Psi) for j in carried(tree, i))  # (1.2)
        tau.append(torque + joint_torque(tree, i, q[i], qd[i], qdd[i]))  # extension
    return np.array(tau)


def pair(tree: Tree, body: Frames, legs: Legs, i: int, j: int, qd: Array, qdd: Array, Psi: Array | None) -> Any:
    """Return what link j adds to the torque of joint i: the term of the sum (1.2)."""
    Wdd = second_rate(tree, legs, j, qd, qdd)
    Wdd[:, 3] = Wdd[:, 3] - body.g  # gravity
    D = body.J[j] @ Wdd.T
    if Psi is not None:
        D = D - Psi[j] @ legs.partial(j).T  # extension
    return trace(legs.partial(j, i), D)  # (1.2)


def second_rate(tree: Tree, legs: Legs, j: int, qd: Array, qdd: Array) -> Array:
    """Return Ẅ_j by the chain rule."""
    joints = [k for k in legs.path[j] if tree.moves[k]]
    Wdd = sum(legs.partial(j, k) * qdd[k] for k in joints)
    for k in joints:
        for l in joints:
            Wdd = Wdd + legs.partial(j, k, l) * (qd[k] * qd[l])
    return np.asarray(Wdd)
