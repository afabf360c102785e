"""Inverse dynamics by Luh, Walker and Paul: Newton's and Euler's equations link by link, in link coordinates.

J. Y. S. Luh, M. W. Walker and R. P. C. Paul, "On-line Computational Scheme for Mechanical Manipulators", ASME J.
Dynamic Systems, Measurement, and Control 102 (1980). Silver (1981) describes it in words: the four steps of his section
1.3, every quantity in the coordinates of its link (1.3, last paragraph), gravity as an acceleration of the base,
friction added joint by joint, the load of the hand where the inward sweep begins (end of 3.2). He prints Euler's
equation, (1.3), and the sums that the inward sweep forms, after (3.16); **the others are derived below**, and lettered.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
A[i]              A_i                 takes components from the parent's axes to the link's; A.T takes them back
e[i]              z_{i-1}             unit vector along the axis of the joint that carries the link
l[i]              p*_i                from the parent's reference point to the link's, in the parent's axes
s[i]              s_i                 from the reference point to the centre of mass
omega, alpha      ω_i, ω̇_i            angular velocity and acceleration of the link
a                 v̇_i                 acceleration of its reference point, less gravity
F, N              F_i, N_i            what moves the link: force, moment about its centre of mass
f, n              f_i, n_i            what the joint transmits to the link: force, moment about the reference point
================  ==================  ==================================================================

Derivation. Let P carry i by a joint that turns about e with q̇, or slides along it. Angular velocities add; an axis that
turns with ω changes by ω × e; a vector r fixed in a body has the second derivative ω̇ × r + ω × (ω × r):

    (a)  ω_i = A ω_P + e q̇                        (turning; sliding: A ω_P)
    (b)  ω̇_i = A ω̇_P + e q̈ + ω_i × e q̇             (turning; sliding: A ω̇_P)
    (c)  v̇_i = A (v̇_P + ω̇_P × l + ω_P × (ω_P × l))   and, sliding,  + e q̈ + 2 ω_i × e q̇
    (d)  v̇ of the centre of mass = v̇_i + ω̇_i × s + ω_i × (ω_i × s)
    (e)  F = m v̇ of the centre of mass, Newton;  N by Euler's equation, (1.3)
    (f)  f_i = F + Σ f_j over the links j that i carries, less the load on i
    (g)  n_i = N + s × F + Σ (n_j + l_j × f_j), less the load's moment about the reference point
    (h)  τ = e · n (turning), e · f (sliding)

Departures from the print:

1. One frame a link, its reference point *on* the joint's axis (Luh's lies at the link's far end), so that l is a
   constant of a turning joint and s of every joint. Axes may point anywhere in it.
2. Branches: (f) and (g) sum over the links that i carries; Luh has one. A fixed joint is one that does not slide.
3. The motor's other torques (armature, damping, friction, spring) are added at the joint, as Luh adds friction.
4. A screw joint is neither of Luh's two kinds, and is refused.

"Exactly the computation specified by Luh" is what Silver (1981, 3.2) says of his Lagrangian with angular velocities.
Run on counting numbers that keep their operands, this module and `silver`, which is written from Silver's equations, do
the same multiplications and additions on the same numbers, each as often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import (
    Array,
    Bodies,
    Tree,
    bodies,
    by_link,
    cross,
    joint_torque,
    loads_at_reference,
    read_tree,
    turned,
    zeros,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")


class Motion(NamedTuple):
    """Quantities of the outward sweep by link, in link coordinates; l is in the parent's."""

    A: Array
    l: Array
    omega: Array
    alpha: Array
    a: Array
    F: Array
    N: Array


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion.

    Parameters, result, errors and example are those of `uicker_kahn.inverse_dynamics`, but that screws are refused.
    """
    tree = read_tree(mech, "Luh, Walker and Paul's algorithm", KINDS)
    body = bodies(tree)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    motion = outward_sweep(tree, body, q, qd, qdd)
    f, n = inward_sweep(tree, body, motion, *loads_at_reference(tree, body, wrench))
    tau = [projected(tree, i, f[i], n[i]) + joint_torque(tree, i, q[i], qd[i], qdd[i]) for i in tree.joint_links]
    return np.array(tau)


def outward_sweep(tree: Tree, body: Bodies, q: Array, qd: Array, qdd: Array) -> Motion:
    """From the base to the tips: the motion of each link, and the force and moment that it takes."""
    n, kind = len(tree.P), np.result_type(q, qd, qdd)
    motion = Motion(*zeros(kind, (n, 3, 3), (n, 3), (n + 1, 3), (n + 1, 3), (n + 1, 3), (n, 3), (n, 3)))
    A, l, omega, alpha, a, F, N = motion
    a[-1] = -tree.gravity  # the base is accelerated upwards
    for i in tree.outward:
        P = tree.P[i]
        R, l[i] = turned(tree, body, i, q[i])
        A[i] = R.T
        omega[i], alpha[i], a[i] = motion_step(tree, i, A[i], l[i], omega[P], alpha[P], a[P], qd[i], qdd[i])
        F[i], N[i] = force_step(tree.mass[i], tree.inertia[i], body.s[i], omega[i], alpha[i], a[i])
    return motion


def motion_step(
    tree: Tree, i: int, A: Array, l: Array, omega_P: Array, alpha_P: Array, a_P: Array, qd: Any, qdd: Any
) -> tuple[Array, Array, Array]:
    """Step 1 at one link: return ω, ω̇, v̇ from those of its parent."""
    e, omega, alpha = tree.axis[i], A @ omega_P, A @ alpha_P  # (a), (b)
    a = A @ (a_P + cross(alpha_P, l) + cross(omega_P, cross(omega_P, l)))  # (c)
    if tree.turns[i]:
        omega = omega + e * qd  # (a)
        alpha = alpha + e * qdd + cross(omega, e * qd)  # (b)
    elif tree.slides[i]:
        a = a + e * qdd + 2 * cross(omega, e * qd)  # (c)
    return omega, alpha, a


def force_step(m: Any, I: Array, s: Array, omega: Array, alpha: Array, a: Array) -> tuple[Array, Array]:
    """Step 2 at one link: return F, N."""
    F = m * (a + cross(alpha, s) + cross(omega, cross(omega, s)))  # (d), (e)
    N = I @ alpha + cross(omega, I @ omega)  # (1.3)
    return F, N


def inward_sweep(tree: Tree, body: Bodies, motion: Motion, force: Array, moment: Array) -> tuple[Array, Array]:
    """From the tips to the base: force and moment about the reference point that each joint transmits."""
    f, n = zeros(np.result_type(motion.F, force), motion.F.shape, motion.N.shape)
    for i in reversed(tree.outward):
        f[i] = motion.F[i] - force[i]  # (f)
        n[i] = motion.N[i] + cross(body.s[i], motion.F[i]) - moment[i]  # (g)
        for j in tree.C[i]:
            f_j = motion.A[j].T @ f[j]
            f[i] = f[i] + f_j  # (f)
            n[i] = n[i] + motion.A[j].T @ n[j] + cross(motion.l[j], f_j)  # (g)
    return f, n


def projected(tree: Tree, i: int, f: Array, n: Array) -> Any:
    """Return what the motor of link i bears of the force and moment at its joint, in the same axes."""
    return tree.axis[i] @ (n if tree.turns[i] else f)  # (h)
