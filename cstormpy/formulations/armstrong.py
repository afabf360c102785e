"""Forward dynamics after Armstrong: coefficients of a linear law, swept from the tips to the base, in link coordinates.

W. W. Armstrong, "Recursive Solution to the Equations of Motion of an N-Link Manipulator", Proc. 5th World Congress on
Theory of Machines and Mechanisms, vol. 2 (1979). Silver (1981, 1.3) says of it that its time grows linearly with the
number of links, and that it refers motion and force to link coordinates; Johnson and Su mean this kind of algorithm by
"recursion coefficients". None of its equations is in our copies: **they are derived here**, and lettered.

================  ==================================================================
here              meaning
================  ==================================================================
a, alpha          acceleration of the reference point, less gravity, and of the angle
f, n              what the joint transmits to the link: force, moment about that point
M, G, K           coefficients of the law (a) below, each 3 x 3
p, t              its constant terms
g, k, D           what the joint takes of M, G, K: see (d)
A, l, e, s        as in `luh_walker_paul`
================  ==================================================================

Derivation. The force and moment that a joint transmits are linear in the acceleration of the link that it carries,
whatever the links beyond do, because all equations of motion are:

    (a)  f = M a + G ω̇ + p,    n = Gᵀ a + K ω̇ + t

A link alone has, with Newton's and Euler's equations about its reference point ([s] is the matrix of s ×),

    (b)  M = m 1,  G = -m [s],  K = I - m [s][s],  p = m ω × (ω × s),  t = ω × (I · ω) + s × p

Let joint i be free: its acceleration is ω̇ = ω̇' + e q̈ (turning) or a = a' + e q̈ (sliding), where

    (c)  ω̇' = A ω̇_P + [ω_i × e q̇],    a' = A (a_P + ω̇_P × l + ω_P × (ω_P × l)) + [2 ω_i × e q̇]

with the brackets for a turning and a sliding joint in turn. Its motor says e · n = τ (or e · f = τ), so that

    (d)  g = G e, k = K e, D = e · k  (turning);    g = M e, k = Gᵀ e, D = e · g  (sliding)
    (e)  q̈ = (τ - e · t - g · a' - k · ω̇') / D   (sliding: e · p in place of e · t)

and (a) holds of a', ω̇' with

    (f)  M⁺ = M - g gᵀ/D,  G⁺ = G - g kᵀ/D,  K⁺ = K - k kᵀ/D,  p⁺ = p + g (τ - e · t)/D,  t⁺ = t + k (τ - e · t)/D

Seen from the parent's axes and reference point, with (c) for a' and ω̇' in terms of a_P and ω̇_P (R = Aᵀ):

    (g)  M_P += R M⁺ A,  G_P += X - R M⁺ A [l],  K_P += R K⁺ A + [l] X - Xᵀ [l] - [l] R M⁺ A [l],   X = R G⁺ A
    (h)  p_P += R (p⁺ + M⁺ b + G⁺ c),  t_P += R (t⁺ + G⁺ᵀ b + K⁺ c) + l × (what p_P gained)

where b and c are what (c) has besides the terms in a_P and ω̇_P. The base knows a and ω̇; (c) and (e) lead back out.

Departures from the print: Armstrong's joints are balls, whose three angular accelerations are eliminated at once (D is
a 3 x 3 matrix, and only M survives); joints here have one freedom. Branches, fixed joints, the motor's other torques
and the refusal of screw joints are as in `luh_walker_paul`; the armature adds to D.
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
    bracket,
    by_link,
    cross,
    divisor,
    joint_torque,
    loads_at_reference,
    read_tree,
    turned,
    zeros,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")


class Velocity(NamedTuple):
    """Quantities of the first sweep by link; b and c are the parts of (c) that the accelerations have no part in."""

    A: Array
    l: Array
    omega: Array
    b: Array
    c: Array


class Law(NamedTuple):
    """Coefficients of (a), by link."""

    M: Array
    G: Array
    K: Array
    p: Array
    t: Array


class Joint(NamedTuple):
    """Response of a joint, (d), and its torque less what the links beyond oppose, by link."""

    g: Array
    k: Array
    D: Array
    left: Array


def forward_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the accelerations under given motor torques.

    Parameters, result, errors and example are those of `johnson_su.articulated_body`, but that screws are refused.
    """
    tree = read_tree(mech, "Armstrong's algorithm", KINDS)
    body = bodies(tree)
    q, qd, tau = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "tau", tau)
    v = velocity_sweep(tree, body, q, qd)
    net = np.array([tau[i] - joint_torque(tree, i, q[i], qd[i]) for i in range(len(q))])
    joints = law_sweep(tree, body, v, net, *loads_at_reference(tree, body, wrench))
    return acceleration_sweep(tree, v, joints)[tree.joint_links]


def velocity_sweep(tree: Tree, body: Bodies, q: Array, qd: Array) -> Velocity:
    """From the base to the tips: velocities, and what of the accelerations follows from them."""
    n, kind = len(tree.P), np.result_type(q, qd)
    v = Velocity(*zeros(kind, (n, 3, 3), (n, 3), (n + 1, 3), (n, 3), (n, 3)))
    for i in tree.outward:
        omega_P, e = v.omega[tree.P[i]], tree.axis[i]
        R, v.l[i] = turned(tree, body, i, q[i])
        v.A[i] = R.T
        v.omega[i] = R.T @ omega_P
        v.b[i] = R.T @ cross(omega_P, cross(omega_P, v.l[i]))  # (c)
        if tree.turns[i]:
            v.omega[i] = v.omega[i] + e * qd[i]
            v.c[i] = cross(v.omega[i], e * qd[i])  # (c)
        elif tree.slides[i]:
            v.b[i] = v.b[i] + 2 * cross(v.omega[i], e * qd[i])  # (c)
    return v


def law_sweep(tree: Tree, body: Bodies, v: Velocity, net: Array, force: Array, moment: Array) -> Joint:
    """From the tips to the base: the coefficients of (a), and what each joint takes of them."""
    n, kind = len(tree.P), np.result_type(v.omega, net, force)
    law = Law(*zeros(kind, (n, 3, 3), (n, 3, 3), (n, 3, 3), (n, 3), (n, 3)))
    joint = Joint(*zeros(kind, (n, 3), (n, 3), (n,), (n,)))
    for i in tree.outward:
        M, G, K, p, t = alone(tree.mass[i], tree.inertia[i], body.s[i], v.omega[i])
        law.M[i], law.G[i], law.K[i], law.p[i], law.t[i] = M, G, K, p - force[i], t - moment[i]
    for i in reversed(tree.outward):
        own = Law(*(part[i] for part in law))
        if tree.moves[i]:
            g, k, D, left = at_joint(own, tree.turns[i], tree.axis[i], net[i])
            D = divisor(tree, i, D, own.K if tree.turns[i] else own.M, tree.axis[i])
            joint.g[i], joint.k[i], joint.D[i], joint.left[i] = g, k, D, left
            own = freed(own, g, k, D, left)
        P = tree.P[i]
        if P >= 0:
            for part, gain in zip(law, seen_from_parent(own, v.A[i], v.l[i], v.b[i], v.c[i]), strict=True):
                part[P] = part[P] + gain  # (g), (h)
    return joint


def alone(m: Any, I: Array, s: Array, omega: Array) -> Law:
    """Return the law of a link that carries nothing."""
    p = m * cross(omega, cross(omega, s))  # (b)
    t = cross(omega, I @ omega) + cross(s, p)  # (b)
    return Law(m * np.eye(3), -m * bracket(s), I - m * bracket(s) @ bracket(s), p, t)  # (b)


def at_joint(law: Law, turns: bool, e: Array, net: Any) -> tuple[Array, Array, Any, Any]:
    """Return g, k, D less the armature, and what is left of the torque when nothing accelerates."""
    if turns:
        g, k = law.G @ e, law.K @ e  # (d)
        return g, k, e @ k, net - e @ law.t  # (d), (e)
    g, k = law.M @ e, law.G.T @ e  # (d)
    return g, k, e @ g, net - e @ law.p  # (d), (e)


def freed(law: Law, g: Array, k: Array, D: Any, left: Any) -> Law:
    """Return what the joint passes on of the law, its own acceleration eliminated."""
    g_D, k_D = g / D, k / D
    return Law(
        M=law.M - np.outer(g_D, g),  # (f)
        G=law.G - np.outer(g_D, k),  # (f)
        K=law.K - np.outer(k_D, k),  # (f)
        p=law.p + g_D * left,  # (f)
        t=law.t + k_D * left,  # (f)
    )


def seen_from_parent(law: Law, A: Array, l: Array, b: Array, c: Array) -> Law:
    """Return what the parent gains."""
    M, X, K, L = A.T @ law.M @ A, A.T @ law.G @ A, A.T @ law.K @ A, bracket(l)
    ML = M @ L
    p = A.T @ (law.p + law.M @ b + law.G @ c)  # (h)
    t = A.T @ (law.t + law.G.T @ b + law.K @ c) + cross(l, p)  # (h)
    return Law(M, X - ML, K + L @ X - X.T @ L - L @ ML, p, t)  # (g)


def acceleration_sweep(tree: Tree, v: Velocity, joint: Joint) -> Array:
    """From the base to the tips: the accelerations of the joints, by link."""
    n, kind = len(tree.P), joint.left.dtype
    a, alpha, qdd = zeros(kind, (n + 1, 3), (n + 1, 3), (n,))
    a[-1] = -tree.gravity  # the base is accelerated upwards
    for i in tree.outward:
        P, e = tree.P[i], tree.axis[i]
        alpha[i] = v.A[i] @ alpha[P] + v.c[i]  # (c)
        a[i] = v.A[i] @ (a[P] + cross(alpha[P], v.l[i])) + v.b[i]  # (c)
        if not tree.moves[i]:
            continue
        qdd[i] = (joint.left[i] - joint.g[i] @ a[i] - joint.k[i] @ alpha[i]) / joint.D[i]  # (e)
        if tree.turns[i]:
            alpha[i] = alpha[i] + e * qdd[i]
        else:
            a[i] = a[i] + e * qdd[i]
    return qdd
