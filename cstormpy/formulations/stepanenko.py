"""Inverse dynamics by Stepanenko and Vukobratović: Newton's and Euler's equations, all vectors in the base's axes.

Y. Stepanenko and M. Vukobratović, "Dynamics of Articulated Open-Chain Active Mechanisms", Math. Biosciences 28 (1976).
Silver (1981, 1.3) tells what is its own: the fixed coordinates, and no sweep from the tips to the base; that was seen
by Orin and others (1979). None of its equations is in our copies: **they are derived here**, and lettered.

================  ==================================================================
here              meaning
================  ==================================================================
R[i]              axes of link i in the base's
z[i], p[i]        joint axis; reference point on it from the base's origin
r[i], I           centre of mass from the base's origin; inertia about it
omega, alpha      angular velocity and acceleration of the link
a                 acceleration of its reference point, less gravity
F, N              what moves the link: force, moment about its centre of mass
================  ==================================================================

Derivation, everything in the base's axes: the vectors are those of `luh_walker_paul`, (a) to (d), without A;

    (a)  R_i = R_P R_{P,i},    z = R_i e,    p_i = p_P + R_P l
    (b)  ω_i = ω_P + z q̇,    ω̇_i = ω̇_P + z q̈ + ω_i × z q̇    (turning)
    (c)  v̇_i = v̇_P + ω̇_P × (p_i - p_P) + ω_P × (ω_P × (p_i - p_P))    and, sliding,  + z q̈ + 2 ω_i × z q̇
    (d)  I = R_i I' R_iᵀ: the inertia tensor turns with the link
    (e)  F = m v̇ of the centre of mass,  N = I · ω̇ + ω × (I · ω), (1.3) of Silver
    (f)  τ_j = z_j · Σ F_i (sliding), z_j · Σ ((r_i - p_j) × F_i + N_i) (turning), over all links i that joint j
         carries: the sums of Silver, after (3.16), here as they stand, which takes n² of them.

Departures from the print: three frames a link there, one here (Silver, 1.3); branches, fixed joints, the motor's other
torques and the refusal of screw joints are as in `luh_walker_paul`; loads on links enter (f) with F and N.
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
    """Positions and motions of the links, in the base's axes; the base is the last row of the first five."""

    R: Array
    p: Array
    omega: Array
    alpha: Array
    a: Array
    z: Array
    r: Array
    a_c: Array
    R_P: Array  # axes of the link in its parent's
    l: Array  # from the parent's reference point, in the parent's axes


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion.

    Parameters, result, errors and example are those of `luh_walker_paul.inverse_dynamics`.
    """
    tree = read_tree(mech, "Stepanenko and Vukobratović's algorithm", KINDS)
    body = bodies(tree)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    motion = base_motion(tree, body, q, qd, qdd)
    force, moment = loads_at_reference(tree, body, wrench)
    F, N = zeros(np.result_type(motion.a, force), motion.r.shape, motion.r.shape)
    for i in tree.outward:
        F[i], N[i] = force_step(tree.mass[i], tree.inertia[i], motion, i)
        if wrench is not None:  # what acts at the reference point, seen from the centre of mass
            load = motion.R[i] @ force[i]
            F[i] = F[i] - load  # (e)
            N[i] = N[i] - motion.R[i] @ moment[i] - cross(motion.p[i] - motion.r[i], load)  # (e)
    tau = [borne(tree, motion, F, N, j) + joint_torque(tree, int(j), q[j], qd[j], qdd[j]) for j in tree.joint_links]
    return np.array(tau)


def base_motion(tree: Tree, body: Bodies, q: Array, qd: Array, qdd: Array) -> Motion:
    """From the base to the tips: place and motion of each link."""
    n, kind = len(tree.P), np.result_type(q, qd, qdd)
    above = [(n + 1, 3)] * 4
    motion = Motion(*zeros(kind, (n + 1, 3, 3), *above, (n, 3), (n, 3), (n, 3), (n, 3, 3), (n, 3)))
    R, p, omega, alpha, a, z, r, a_c, R_P, l = motion
    R[-1], a[-1] = np.eye(3), -tree.gravity  # the base is accelerated upwards
    for i in tree.outward:
        P, e = tree.P[i], tree.axis[i]
        R_P[i], l[i] = turned(tree, body, i, q[i])
        d = R[P] @ l[i]
        R[i], p[i] = R[P] @ R_P[i], p[P] + d  # (a)
        omega[i], alpha[i] = omega[P], alpha[P]  # (b)
        a[i] = a[P] + cross(alpha[P], d) + cross(omega[P], cross(omega[P], d))  # (c)
        z[i] = R[i] @ e  # (a)
        if tree.turns[i]:
            omega[i] = omega[i] + z[i] * qd[i]  # (b)
            alpha[i] = alpha[i] + z[i] * qdd[i] + cross(omega[i], z[i] * qd[i])  # (b)
        elif tree.slides[i]:
            a[i] = a[i] + z[i] * qdd[i] + 2 * cross(omega[i], z[i] * qd[i])  # (c)
        s = R[i] @ body.s[i]
        r[i] = p[i] + s
        a_c[i] = a[i] + cross(alpha[i], s) + cross(omega[i], cross(omega[i], s))  # (c), from p to r
    return motion


def force_step(m: Any, I: Array, motion: Motion, i: int) -> tuple[Array, Array]:
    """Return force and moment about its centre of mass that move link i, in the base's axes."""
    R, omega, alpha = motion.R[i], motion.omega[i], motion.alpha[i]
    I = R @ I @ R.T  # (d)
    return m * motion.a_c[i], I @ alpha + cross(omega, I @ omega)  # (e)


def borne(tree: Tree, motion: Motion, F: Array, N: Array, j: int) -> Any:
    """Return what the motor of link j bears of all that moves the links that it carries."""
    carried, total = [j], np.zeros(3, F.dtype)
    while carried:
        i = carried.pop()
        carried += tree.C[i]
        if tree.turns[j]:
            total = total + cross(motion.r[i] - motion.p[j], F[i]) + N[i]  # (f)
        else:
            total = total + F[i]  # (f)
    return motion.z[j] @ total  # (f)
