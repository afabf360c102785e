"""Inverse dynamics by Silver's Lagrangian with angular velocities: Lagrange's equation that ends in Newton and Euler's.

W. M. Silver, "On the Representation of Angular Velocity and its Effect on the Efficiency of Manipulator Dynamics
Computation", MIT AI Memo 622, 1981, section 3. This page is the algorithm at the end of his 3.2, in link coordinates.
The derivation (3.1)-(3.11) and appendix A, term by term, are in `silver_energy`, section 2 in `silver_rotation`.

Lagrange's equation on K = Σ ½ m v·v + ½ ω·I·ω, (3.1), becomes (3.11): total force and moment of each link by Newton
and Euler, projected on the partial velocities,

    τ_j = Σ_i (F_i · ∂v_i/∂q̇_j + N_i · ∂ω_i/∂q̇_j),    F = m v̇,   N = I·ω̇ + ω × (I·ω).                         (3.12)

The partial velocities are (ẑ_j × p_ji, ẑ_j) of a turning and (ẑ_j, 0) of a sliding joint, (3.15), (3.16), so that

    τ_j = ẑ_j · Σ F_i  or  ẑ_j · Σ (p_ji × F_i + N_i)    over the links i that joint j carries,

and both sums recur from child to parent: his point is that this is, number for number, the computation of Luh,
Walker and Paul.

================  ==================  ==================================================================
here              Silver              meaning; all by link, in its own coordinates
================  ==================  ==================================================================
z                 ẑ_j                 unit vector of the joint's axis
s, l              (in p_ji)           centre of mass, and next joint's point, from a point on the joint's axis
R                                     from the coordinates of link i to those of its parent
w, wd             ω, ω̇                angular velocity and acceleration
ad                                    acceleration of the point on the joint's axis, less gravity
vd                v̇                   acceleration of the centre of mass, less gravity
F, N              F_i, N_i            total force, total moment about the centre of mass
f, n              ΣF, Σ(p × F + N)    the sums above, n about the point on the joint's axis
================  ==================  ==================================================================

His four minor points: coordinates are the link's own; gravity accelerates the base by -g; the friction of a joint is
computed from its velocity and added to its torque; and the load at the tip is a wrench here, and in
`with_load_as_link` one more link, "whose motion is defined so as to produce the required external forces".
Screw joints are refused by name: (3.13)-(3.16) know two kinds. Branches, wrenches on every link, armature and spring
are extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue
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
    vector,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")
BRANCHED = True


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by the recursions at the end of section 3.2.

    Parameters, result and errors are those of `uicker_kahn.inverse_dynamics`, but that screws are refused.

    Examples
    --------
    A horizontal link of 2 kg, its centre of mass at 0.5 m, is held against gravity:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0])
    array([9.81])
    """
    tree = read_tree(mech, "Silver's formulation", KINDS)
    body = bodies(tree)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    R, l, _, F, N = outward(tree, body, q, qd, qdd)
    force, moment = loads_at_reference(tree, body, wrench)
    return inward(tree, R, l, F - force, N - moment, q, qd, qdd)


def outward(
    tree: Tree, body: Bodies, q: Array, qd: Array, qdd: Array
) -> tuple[list[Array], list[Array], list[Array], Array, Array]:
    """Return R, l and ω by link, and total force and moment F, s × F + N, the latter about the reference point."""
    n, g = len(q), tree.gravity
    R, l, w, wd, ad = ([np.zeros(3)] * (n + 1) for _ in range(5))
    F, N, ad[-1] = list(w[:n]), list(w[:n]), -g
    for i in tree.outward:
        P, z, s = tree.P[i], tree.axis[i], body.s[i]
        R[i], l[i] = turned(tree, body, i, q[i])
        w[i], wd[i], ad[i] = step(tree, i, R[i].T, l[i], z, w[P], wd[P], ad[P], qd[i], qdd[i])
        vd = ad[i] + cross(wd[i], s) + cross(w[i], cross(w[i], s))
        F[i], moment = total_force(tree.mass[i], tree.inertia[i], w[i], wd[i], vd)
        N[i] = cross(s, F[i]) + moment
    return R, l, w, np.array(F), np.array(N)


def step(
    tree: Tree, i: int, Rt: Array, l: Array, z: Array, w_P: Array, wd_P: Array, ad_P: Array, qd: Any, qdd: Any
) -> tuple[Array, Array, Array]:
    """Return ω, ω̇ and the acceleration of the reference point of a link from its parent's; Rt is R transposed."""
    w, wd = Rt @ w_P, Rt @ wd_P
    ad = Rt @ (ad_P + cross(wd_P, l) + cross(w_P, cross(w_P, l)))
    if tree.turns[i]:
        w = w + z * qd  # (3.14)
        wd = wd + z * qdd + cross(w, z * qd)  # rate of (3.14), with (A.2)
    elif tree.slides[i]:
        ad = ad + cross(w, z * qd) * 2 + z * qdd  # rate of (3.13)
    return w, wd, ad


def total_force(m: Any, inertia: Array, w: Array, wd: Array, vd: Array) -> tuple[Array, Array]:
    """Return F and N of (3.12): Newton's and Euler's expressions, (1.3), found in Lagrange's equation (3.11)."""
    return vd * m, inertia @ wd + cross(w, inertia @ w)


def inward(tree: Tree, R: list[Array], l: list[Array], F: Array, N: Array, q: Array, qd: Array, qdd: Array) -> Array:
    """Return the torques by joint from the forces on each link and their moments about its reference point."""
    f, n, tau = list(F), list(N), [0.0] * len(q)
    for j in reversed(tree.outward):
        for c in tree.C[j]:
            force = R[c] @ f[c]
            f[j] = f[j] + force
            n[j] = n[j] + R[c] @ n[c] + cross(l[c], force)
        if tree.moves[j]:
            along = f[j] if tree.slides[j] else n[j]
            tau[j] = tree.axis[j] @ along + joint_torque(tree, j, q[j], qd[j], qdd[j])  # (3.12), friction
    return np.array([tau[j] for j in tree.joint_links])


def with_load_as_link(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    link: str,
    load: ArrayLike,
    mass: float = 1.0,
    inertia: float = 1.0,
) -> Array:
    """Return the motor torques where the load on a link is one more link, upon it.

    The additional link is a ball whose centre is at the origin of the link that carries it. It moves so that what
    accelerates it is what the load would be: m v̇ = -f and I·ω̇ = -n. Its mass and inertia may be any, since less mass is
    accelerated more.

    Parameters
    ----------
    mech, q, qd, qdd
        As in `inverse_dynamics`.
    link : str
        The link that carries the load.
    load : (6,) array_like
        (moment, force) that the load exerts on the link, in the link's frame.
    mass, inertia : float
        Of the additional link (kg, kg m²), not 0.

    Returns
    -------
    (n,) ndarray
        Those of `inverse_dynamics` with the load as a wrench.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> with_load_as_link(mech, [0.0], [0.0], [0.0], "arm", [0, 0, -3, 0, 0, 0])
    array([12.81])
    """
    tree = read_tree(mech, "Silver's formulation", KINDS)
    if mass == 0 or inertia == 0:
        raise InvalidValue("the additional link needs a mass and an inertia that are not 0, or else it exerts nothing")
    body, j = bodies(tree), mech.link_index(link)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    load = vector("load", load, (6,), "(moment, force) in the link's frame")
    R, l, w, F, N = outward(tree, body, q, qd, qdd)
    vd, wd = load[3:] / -mass, load[:3] / -inertia  # its motion; a ball's ω × (I·ω) is 0
    force, moment = total_force(mass, inertia * np.eye(3), w[j], wd, vd)
    F, N = F.astype(np.result_type(F, force)), N.astype(np.result_type(N, moment))
    F[j] = F[j] + force
    N[j] = N[j] + moment + cross(-body.c[j], force)  # the link's origin is at -c from its reference point
    return inward(tree, R, l, F, N, q, qd, qdd)
