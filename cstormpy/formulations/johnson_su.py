"""The algorithms of Johnson and Su: recursive Newton-Euler, composite rigid body, articulated body, all in one frame.

T. Johnson and M. Su, "Articulated Body Dynamics" (slides), after R. Featherstone, "Robot Dynamics Algorithms" (1987).
The slides have no equation numbers; the name at the end of a line is the slide that it implements. Their first example
and the coefficients of "Efficiency (1)" are in `johnson_su_coefficients`.

================  ==================  ==================================================================
here              slides              meaning
================  ==================  ==================================================================
P[i], C[i]        λ(i)                parent and children of link i; the base is row -1 of v and a
s                 s_i                 joint axis, a spatial vector
v, a              v_i, a_i            spatial velocity and acceleration; a_0 = -g
I                 I_i                 spatial inertia
f_net             f*_i                rate of change of the link's momentum
f                 f_i                 force transmitted to link i through joint i
f_x               f^x_i               force on link i from outside
Q                 Q_i                 force of the joint, the motor's less what is spent in the joint
I_A, p            I^A_i, p_i          articulated-body inertia, bias force
I_c               -                   composite inertia: of the link and all that it carries
H                 H_ij                mass matrix, of "Efficiency (1)"
================  ==================  ==================================================================

The slides leave out all transforms between frames. They may, if every spatial vector is written in the base's frame and
about its origin: then s_i and I_i depend on q, v_i = v_λ(i) + s_i q̇_i adds as printed, and × is the same for all. So it
is here. (Featherstone's book, and `kim`, keep each link's vectors in its own frame, where s and I are constants.)

Spatial vectors are (ω, v) and (moment, force); v × and its dual on forces, v ×*, are `times` and `times_dual`.

Derivation of what the slides only name. *Composite rigid body*: let only joint j accelerate, by 1, without velocity and
gravity. Then all that link j carries moves as one rigid body of the inertia I_c, which takes the force I_c s_j, and
joint i on the way from the base to j transmits this force, whatever is between:

    (a)  I_c,i = I_i + Σ I_c,k over the links k that i carries;    H_ij = s_i · I_c,j s_j for i at or below j

and H q̈ = Q - (what the joints must give for q̈ = 0), which is solved by H = L D Lᵀ.

Misprints: "RNEA", step 3: f^x is that of λ(i) there, and Q = s · f is never formed; equation (I) counts v × I v twice;
"f = I^A a + v × I^A v" wants p in place of the second term; s q̇ in the loop of the velocities is that of link_i.
Departures: the motor's other torques are added (inverse) or subtracted (forward) at the joint, the armature adds to
s · I s and H; branches; fixed joints have s = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import SingularInertia
from cstormpy.formulations.arguments import (
    SINGULAR,
    Array,
    Tree,
    bracket,
    by_link,
    cross,
    divisor,
    joint_torque,
    plain,
    read_tree,
    rotation,
    size_of,
    wrenches,
    zeros,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


# ---------------------------------------------------------------- spatial vectors in the base's frame
class Space(NamedTuple):
    """The mechanism at q, by link, in the base's frame."""

    s: Array
    I: Array
    f_x: Array


def times(v: Array, m: Array) -> Array:
    """Return v × m of two motions."""
    return np.concatenate([cross(v[:3], m[:3]), cross(v[:3], m[3:]) + cross(v[3:], m[:3])])


def times_dual(v: Array, f: Array) -> Array:
    """Return v ×* f of a motion and a force."""
    return np.concatenate([cross(v[:3], f[:3]) + cross(v[3:], f[3:]), cross(v[:3], f[3:])])


def place(tree: Tree, q: Array, wrench: Array | None = None) -> Space:
    """Return axes, inertias and outer forces of all links in the base's frame."""
    n, kind = len(tree.P), q.dtype if wrench is None else np.result_type(q, wrench)
    R, p, s, I, f_x = zeros(kind, (n + 1, 3, 3), (n + 1, 3), (n, 6), (n, 6, 6), (n, 6))
    R[-1] = np.eye(3)
    for i in tree.outward:
        P, M, S = tree.P[i], tree.pose[i], tree.screw[i]
        turn, slide = displacement(tree, i, q[i])
        R[i], p[i] = R[P] @ (M[:3, :3] @ turn), p[P] + R[P] @ (M[:3, 3] + M[:3, :3] @ slide)
        axis, moment = R[i] @ S[:3], R[i] @ S[3:]
        s[i] = np.concatenate([axis, moment + cross(p[i], axis)])
        I[i] = inertia(tree.mass[i], p[i] + R[i] @ tree.com[i], R[i] @ tree.inertia[i] @ R[i].T)
        if wrench is not None:
            force = R[i] @ wrench[i, 3:]
            f_x[i] = np.concatenate([R[i] @ wrench[i, :3] + cross(p[i], force), force])
    return Space(s, I, f_x)


def displacement(tree: Tree, i: int, q: Any) -> tuple[Array, Array]:
    """Return the rotation and the translation by which the joint of link i moves its frame, in the frame at q = 0."""
    S, e, c = tree.screw[i], tree.axis[i], tree.point[i]
    if not tree.turns[i]:
        return np.eye(3), S[3:] * q
    turn = rotation(e, q)
    slide = c - turn @ c if c.any() else np.zeros(3)  # the point on the axis stays
    if tree.screws[i]:
        slide = slide + e * (e @ S[3:]) * q  # e · v is the pitch
    return turn, slide


def inertia(m: Any, r: Array, I_c: Array) -> Array:
    """Return the spatial inertia, 6 x 6, of a mass m at r with the inertia I_c about it."""
    mr = bracket(m * r)
    return np.block([[I_c - mr @ bracket(r), mr], [-mr, m * np.eye(3)]])


# ---------------------------------------------------------------- recursive Newton-Euler
def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by the recursive Newton-Euler algorithm.

    Parameters, result, errors and example are those of `uicker_kahn.inverse_dynamics`.
    """
    tree = read_tree(mech)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    space = place(tree, q, None if wrench is None else wrenches(tree, wrench))
    Q = recursive_newton_euler(tree, space, qd, qdd, tree.gravity)
    return np.array([Q[i] + joint_torque(tree, i, q[i], qd[i], qdd[i]) for i in tree.joint_links])


def recursive_newton_euler(tree: Tree, space: Space, qd: Array, qdd: Array | None, gravity: Array) -> Array:
    """Return Q by link."""
    n, s, I = len(tree.P), space.s, space.I
    kind = np.result_type(s, qd)
    v, a, f, Q = zeros(kind, (n + 1, 6), (n + 1, 6), (n, 6), (n,))
    a[-1, 3:] = -gravity  # "Taking into Account External Forces": a_0 = -g
    for i in tree.outward:
        P = tree.P[i]
        v[i] = v[P] + s[i] * qd[i]  # "Step 1: Link Motion"
        a[i] = a[P] + times(v[i], s[i] * qd[i])  # "Step 1"
        if qdd is not None:
            a[i] = a[i] + s[i] * qdd[i]  # "Step 1"
        f_net = I[i] @ a[i] + times_dual(v[i], I[i] @ v[i])  # "Step 2: Net Forces on the Link"
        f[i] = f_net - space.f_x[i]  # "Taking into Account External Forces"
    for i in reversed(tree.outward):
        Q[i] = s[i] @ f[i]  # (VI)
        if tree.P[i] >= 0:
            f[tree.P[i]] = f[tree.P[i]] + f[i]  # "Step 3: Joint Forces"
    return Q


# ---------------------------------------------------------------- composite rigid body
def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the mass matrix, (n, n), armature included, by the composite rigid body algorithm.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    tree = read_tree(mech)
    return composite_rigid_body(tree, place(tree, by_link(tree, "q", q)))


def composite_inertias(tree: Tree, I: Array) -> Array:
    """Return I_c by link."""
    I_c = I.copy()
    for i in reversed(tree.outward):
        if tree.P[i] >= 0:
            I_c[tree.P[i]] = I_c[tree.P[i]] + I_c[i]  # (a)
    return I_c


def composite_rigid_body(tree: Tree, space: Space) -> Array:
    """Return H by joint, armature included."""
    I_c, s = composite_inertias(tree, space.I), space.s
    joint = {int(i): k for k, i in enumerate(tree.joint_links)}
    H = np.zeros((len(joint), len(joint)), s.dtype)
    for j, k in joint.items():
        F = I_c[j] @ s[j]  # (a)
        i = j
        while i >= 0:
            if i in joint:
                H[joint[i], k] = H[k, joint[i]] = s[i] @ F  # (a)
            i = tree.P[i]
        if tree.terms["armature"][j]:
            H[k, k] = H[k, k] + tree.terms["armature"][j]
    return H


def forward_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the accelerations under given motor torques, by the composite rigid body algorithm and a solve.

    Parameters, result, errors and example are those of `articulated_body`.
    """
    tree = read_tree(mech)
    q, qd, tau = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "tau", tau)
    space = place(tree, q, None if wrench is None else wrenches(tree, wrench))
    Q = recursive_newton_euler(tree, space, qd, None, tree.gravity)
    net = np.array([tau[i] - joint_torque(tree, i, q[i], qd[i]) - Q[i] for i in tree.joint_links])
    H, I_c = composite_rigid_body(tree, space), composite_inertias(tree, plain(space.I))
    sizes = [size_of(I_c[i], space.s[i]) for i in tree.joint_links]
    return solve(H, net, [tree.names[i] for i in tree.joint_links], sizes)


def solve(H: Array, right: Array, names: Sequence[str] = (), sizes: Sequence[float] = ()) -> Array:
    """Return x with H x = right for a symmetric, positive definite H, by H = L D Lᵀ; names are of its rows.

    `sizes` are those of the numbers that its diagonal comes from; what is no more than their rounding is nothing.

    Examples
    --------
    >>> solve(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([4.0, 7.0]))
    array([1., 2.])
    """
    n, x = len(right), right.astype(np.result_type(H, right))
    LD = H.copy()  # below and on its diagonal
    for j in range(n):
        for k in range(j):
            L_jk = LD[j, k] / LD[k, k]
            for i in range(j, n):
                LD[i, j] = LD[i, j] - LD[i, k] * L_jk
        if abs(plain(LD[j, j])) <= SINGULAR * max(abs(plain(H[j, j])), sizes[j] if len(sizes) else 0.0):
            who = f"link {names[j]!r}" if len(names) else f"row {j}"
            raise SingularInertia(f"{who}: its joint moves no inertia that others do not; give it mass or armature")
    for j in range(n):
        x[j] = x[j] / LD[j, j]
        for i in range(j + 1, n):
            x[i] = x[i] - LD[i, j] * x[j]
    for j in reversed(range(n - 1)):
        x[j] = x[j] - LD[j + 1 :, j] @ x[j + 1 :] / LD[j, j]
    return x


# ---------------------------------------------------------------- articulated body
def articulated_body(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the accelerations under given motor torques, by the articulated body algorithm.

    Parameters
    ----------
    mech : Mechanism
        Any tree of fixed joints and joints of one coordinate; which are active plays no part.
    q, qd, tau : (n,) array_like
        Position, velocity and motor torque of the joints.
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.

    Returns
    -------
    (n,) ndarray
        Acceleration of the joints (rad/s² or m/s²).

    Raises
    ------
    CstormError
        If an argument has another shape, is not of numbers, or is not finite; SingularInertia if a joint moves no
        inertia at all.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> articulated_body(mech, [0.0], [0.0], [0.0])
    array([-19.62])
    """
    tree = read_tree(mech)
    q, qd, tau = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "tau", tau)
    s, I, f_x = place(tree, q, None if wrench is None else wrenches(tree, wrench))
    n, kind = len(tree.P), np.result_type(s, qd, tau, f_x)
    v, c, I_A, p, Is, sIs, left, a, qdd = zeros(
        kind, (n + 1, 6), (n, 6), (n, 6, 6), (n, 6), (n, 6), (n,), (n,), (n + 1, 6), (n,)
    )
    for i in tree.outward:
        v[i] = v[tree.P[i]] + s[i] * qd[i]  # "Put all steps together", (IV)
        c[i] = times(v[i], s[i] * qd[i])  # (V)
        I_A[i], p[i] = I[i], times_dual(v[i], I[i] @ v[i]) - f_x[i]  # "Inertia & Bias forces (3)", f + f^E
    for i in reversed(tree.outward):
        I_a, p_a = I_A[i], p[i] + I_A[i] @ c[i]
        if tree.moves[i]:
            Is[i] = I_A[i] @ s[i]
            sIs[i] = divisor(tree, i, s[i] @ Is[i], I_A[i], s[i])
            left[i] = tau[i] - joint_torque(tree, i, q[i], qd[i]) - s[i] @ p_a  # Q - s · (I^A c + p)
            Is_over = Is[i] / sIs[i]
            I_a = I_a - np.outer(Is_over, Is[i])  # "Inertia & Bias forces (3)"
            p_a = p_a + Is_over * left[i]  # "Inertia & Bias forces (3)"
        P = tree.P[i]
        if P >= 0:
            I_A[P], p[P] = I_A[P] + I_a, p[P] + p_a  # "Inertia & Bias forces (3)"
    a[-1, 3:] = -tree.gravity
    for i in tree.outward:
        a_b = a[tree.P[i]]
        if tree.moves[i]:
            qdd[i] = (left[i] - Is[i] @ a_b) / sIs[i]  # "Joint acceleration (2)"
        a[i] = a_b + c[i] + s[i] * qdd[i]  # (V)
    return qdd[tree.joint_links]
