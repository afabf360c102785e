"""Hybrid dynamics of branched chains by Sohl and Bobrow: section 2 and Algorithms 3.1 to 3.6.

G. A. Sohl and J. E. Bobrow, "A Recursive Multibody Dynamics and Sensitivity Algorithm for Branched
Kinematic Chains", ASME J. Dynamic Systems, Measurement, and Control 123 (2001), doi:10.1115/1.1376121,
equations (1)-(60); Algorithm 4.1, (62)-(81), is in `sohl_bobrow_sensitivity`.

This is the page to open first with the paper in hand, and what the compiled kernels are tested against.
The number at the end of a line is the equation that the line implements.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
P[i], C[i]        P, C                parent and children of link i; the base is row -1 of V and Vdot
M, S, J           M_i, S_i, J_i       pose in the parent at q = 0; joint screw and inertia, in the link's frame
T                 T_{P,i}             pose of link i in its parent's frame
Ad_h              Ad_{T_{P,i}^-1}     motion from the parent's frame to the link's; Ad_h.T takes forces back
V, Vdot           V_i, V̇_i            body-fixed velocity (ω, v), and the rate of its components less gravity
Vdot_plus         V̇_i⁺                V̇_P in the link's frame, (76)
a, b              a_i, b_i            velocity-dependent part of V̇_i, and of the force
F                 F_i                 force (moment, force) that the joint transmits to link i
F_ext             -F'_i               wrench that acts on link i from outside
J_hat, B, z       Ĵ_i, B_i, z_i       articulated inertia, bias force, known part of F_i
J_plus, z_plus    Ĵ_i⁺, z_i⁺          what joint i passes on to the parent, in the link's frame
Omega, phi        Ω_i, φ_i            S'ĴS and ĴS / Ω, (70), (72)
qd, qdd, tau      q̇, q̈, τ             by joint outside, by link inside (a fixed joint has zeros)
I_a               I^a                 active joints: q̈ given; the others, I^p, are passive: τ given
================  ==================  ==================================================================

Departures from the print:

1. Branches and order. Algorithm 3.1 is summed over children. Links may be listed in any order; loops run
   outward depth first and inward in the reverse of it, which visits children first, as breadth first does.
2. Fixed joints are active joints with S = 0, so that q̈ = 0 is given and their torque is none.
3. Loads. The paper's F_{n+1} and F' are forces that the link passes on and are added; ours act on the link
   from outside and are subtracted, on every link and in its own frame (also in Algorithms 3.1 and 3.2).
4. The base moves with a given V_0 and its rate dV_0; gravity enters as V̇_0 = dV_0 - (0, g). That is one
   vector of components in the base frame, right also for V_0 ≠ 0, since (26), (48), (60) are linear in it.
5. Extension, marked so: the motor also accelerates the armature and overcomes damping, friction and spring,
   τ = S'F + armature q̈ + damping q̇ + friction tanh(q̇ / v_s) + stiffness (q - rest). The armature adds to Ω.
6. Misprints: forces are mapped to the parent by Ad* of T_{P,i}^-1, (27), (31), (35)-(36), (41), (43), (53)-(54)
   (section 2.5 says Ad* of T_{1,2} for what it calls F_1); (27) is ad*_{V_i}(J_i V_i) without dots; (31) is
   ad*_{V_n}; Algorithm 3.2 begins with z_{n+1} = F_{n+1}, or else the load is lost.

Every function also takes complex numbers: there is no abs, norm or conjugate, and no branch on data other
than to refuse it, so that the imaginary part of f(x + ih) / h is an exact derivative (h = 1e-30, say).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue, shown
from cstormpy.formulations.arguments import (
    TERMS,
    Array,
    by_link,
    depth_first,
    only_freedom,
    refuse_loops,
    refuse_vanished,
    vector,
    wrenches,
    zeros,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Base: TypeAlias = "tuple[ArrayLike, ArrayLike] | None"


# ---------------------------------------------------------------- section 2: SE(3) and its operators
def cross_matrix(w: Array) -> Array:
    """Return [w], 3 x 3, with [w] x = w × x."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])  # (2)


def inverse(T: Array) -> Array:
    """Return the inverse of a pose, 4 x 4."""
    X = np.eye(4, dtype=T.dtype)
    X[:3, :3] = T[:3, :3].T
    X[:3, 3] = -T[:3, :3].T @ T[:3, 3]  # (1)
    return X


def exp(S: Array, q: Any) -> Array:
    """Return e^{S q}, 4 x 4, for S = (ω, v) with ω of length 1, or 0 for a translation."""
    w, v = cross_matrix(S[:3]), S[3:]
    versine = 2 * np.sin(q / 2) ** 2  # 1 - cos q without cancellation
    X = np.eye(4, dtype=np.result_type(S, np.asarray(q)))
    X[:3, :3] += np.sin(q) * w + versine * (w @ w)  # (5), φ = q
    X[:3, 3] = q * v + versine * (w @ v) + (q - np.sin(q)) * (w @ (w @ v))  # (6)
    return X


def Ad(G: Array) -> Array:
    """Return Ad_G, 6 x 6; its transpose is Ad*_G, (12)."""
    R, X = G[:3, :3], np.zeros((6, 6), dtype=G.dtype)
    X[:3, :3] = X[3:, 3:] = R
    X[3:, :3] = cross_matrix(G[:3, 3]) @ R  # (10)
    return X


def ad(g: Array) -> Array:
    """Return ad_g, 6 x 6; its transpose is ad*_g, (16)."""
    X = np.zeros((6, 6), dtype=g.dtype)
    X[:3, :3] = X[3:, 3:] = cross_matrix(g[:3])
    X[3:, :3] = cross_matrix(g[3:])  # (14)
    return X


def spatial_inertia(m: float, r: Array, inertia: Array) -> Array:
    """Return J, 6 x 6, at the link's origin; r is the centre of mass, inertia is about it."""
    R, J = cross_matrix(r), np.zeros((6, 6))
    J[:3, :3] = inertia - m * R @ R
    J[:3, 3:] = m * R
    J[3:, :3] = -m * R
    J[3:, 3:] = m * np.eye(3)  # (19)
    return J


# ---------------------------------------------------------------- the mechanism in the paper's letters
class Chain(NamedTuple):
    """A mechanism in the paper's letters, one entry per link."""

    names: list[str]
    outward: list[int]
    P: list[int]
    C: list[list[int]]
    M: Array
    S: Array
    J: Array
    I_a: Array
    gravity: Array
    joint_links: Array
    terms: dict[str, Array]


def read_mechanism(mech: Mechanism) -> Chain:
    """Return the mechanism in the paper's letters."""
    refuse_loops(mech)
    links, P = mech.links, [int(p) for p in mech.parents]
    S = np.zeros((len(links), 6))
    terms = {t: np.zeros(len(links)) for t in TERMS}
    terms["friction_velocity"][:] = 1.0  # of fixed joints, where friction is 0
    I_a = np.ones(len(links), dtype=bool)
    for k, i in enumerate(mech.joint_links):
        joint = only_freedom(links[i])
        S[i], I_a[i] = joint.screw, mech.active_mask[k]
        for t in TERMS:
            terms[t][i] = getattr(joint, t)
    C = [[c for c, p in enumerate(P) if p == i] for i in range(len(links))]
    return Chain(
        names=[link.name for link in links],
        outward=depth_first(P, C),
        P=P,
        C=C,
        M=np.array([link.pose for link in links]),
        S=S,
        J=np.array([spatial_inertia(link.mass, np.array(link.com), np.array(link.inertia)) for link in links]),
        I_a=I_a,
        gravity=np.array(mech.gravity),
        joint_links=np.array(mech.joint_links),
        terms=terms,
    )


def loads(chain: Chain, wrench: ArrayLike | None, base: Base) -> tuple[Array, Array, Array]:
    """Return F_ext (n_links, 6), V_0 and V̇_0 (gravity included), each (6,)."""
    F_ext = wrenches(chain, wrench)
    V0, dV0 = (np.zeros(6), np.zeros(6)) if base is None else base_motion("base", base)
    return F_ext, V0, dV0 - np.concatenate([np.zeros(3), chain.gravity])


def base_motion(name: str, base: Any) -> tuple[Array, Array]:
    """Return (V_0, dV_0), each (6,), or refuse."""
    if not isinstance(base, Sequence | np.ndarray) or len(base) != 2:
        raise InvalidValue(f"{name}: expected a pair (V0, dV0), got {shown(base)}")
    V0, dV0 = (vector(f"{name}[{k}]", x, (6,), "(ω, v) in the base frame") for k, x in enumerate(base))
    return V0, dV0


def extra_torque(chain: Chain, q: Array, qd: Array) -> Array:
    """Return damping, friction and spring torque of each joint: the extension, less the armature."""
    t = chain.terms
    return t["damping"] * qd + t["friction"] * np.tanh(qd / t["friction_velocity"]) + t["stiffness"] * (q - t["rest"])


# ---------------------------------------------------------------- Algorithms 3.1 and 3.4: outward, velocity
def velocity_step(M: Array, S: Array, J: Array, V_P: Array, q: Any, qd: Any) -> tuple[Array, Array, Array, Array]:
    """Algorithm 3.4 at one link: return Ad_h, V, a, b."""
    T = M @ exp(S, q)  # (22), (49)
    Ad_h = Ad(inverse(T))  # (62)
    V = Ad_h @ V_P + S * qd  # (23), (50)
    a = -ad(S * qd) @ (Ad_h @ V_P)  # (24), (51)
    b = -ad(V).T @ (J @ V)  # (42), (52)
    return Ad_h, V, a, b


class Velocities(NamedTuple):
    """Quantities of Algorithm 3.4 by link; the base is the last row of V."""

    Ad_h: Array
    V: Array
    a: Array
    b: Array


def velocity_sweep(chain: Chain, V0: Array, q: Array, qd: Array) -> Velocities:
    """Algorithm 3.4: outward recursion for the spatial velocity."""
    n, kind = len(chain.P), np.result_type(V0, q, qd)
    v = Velocities(*zeros(kind, (n, 6, 6), (n + 1, 6), (n, 6), (n, 6)))
    v.V[-1] = V0
    for i in chain.outward:
        v.Ad_h[i], v.V[i], v.a[i], v.b[i] = velocity_step(
            chain.M[i], chain.S[i], chain.J[i], v.V[chain.P[i]], q[i], qd[i]
        )
    return v


# ---------------------------------------------------------------- Algorithm 3.1: inverse dynamics
def inverse_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
) -> Array:
    """Return the motor torques of a given motion, by Algorithm 3.1.

    Parameters
    ----------
    mech : Mechanism
        Any tree of fixed joints and joints of one coordinate; which are active plays no part.
    q, qd, qdd : (n,) array_like
        Position, velocity and acceleration of the joints (rad or m).
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.
    base : (V0, dV0), optional
        Velocity (ω, v) of the base and the rate of its components, each (6,), in the base frame.

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
    chain = read_mechanism(mech)
    q, qd, qdd = by_link(chain, "q", q), by_link(chain, "qd", qd), by_link(chain, "qdd", qdd)
    tau = rigid_body_torque(chain, q, qd, qdd, *loads(chain, wrench, base))
    tau = tau + chain.terms["armature"] * qdd + extra_torque(chain, q, qd)  # extension
    return tau[chain.joint_links]


def rigid_body_torque(chain: Chain, q: Array, qd: Array, qdd: Array, F_ext: Array, V0: Array, Vdot0: Array) -> Array:
    """Algorithm 3.1, by link."""
    v = velocity_sweep(chain, V0, q, qd)
    kind = np.result_type(v.V, qdd, F_ext, Vdot0)
    Vdot, F, tau = zeros(kind, (len(q) + 1, 6), (len(q), 6), (len(q),))
    Vdot[-1] = Vdot0
    for i in chain.outward:
        Vdot[i] = v.Ad_h[i] @ Vdot[chain.P[i]] + chain.S[i] * qdd[i] + v.a[i]  # (26)
    for i in reversed(chain.outward):
        F[i] = sum((v.Ad_h[j].T @ F[j] for j in chain.C[i]), chain.J[i] @ Vdot[i] + v.b[i] - F_ext[i])  # (27)
        tau[i] = chain.S[i] @ F[i]  # (28)
    return tau


# ---------------------------------------------------------------- Algorithms 3.2 and 3.3: serial chains
def hybrid_dynamics_serial(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
) -> Array:
    """Return the hybrid dynamics of a chain without branches, by Algorithms 3.2 and 3.3.

    Parameters, result and errors are those of `hybrid_dynamics`; a branched mechanism is refused.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> hybrid_dynamics_serial(mech, [0.0], [0.0], [9.81])
    array([0.])
    """
    chain = read_mechanism(mech)
    forks = [f"link {chain.names[P]!r}" if P >= 0 else "the base" for P in chain.P if chain.P.count(P) > 1]
    if forks:
        raise InvalidValue(f"{forks[0]} carries several links; hybrid_dynamics is for branched chains")
    q, qd, u = by_link(chain, "q", q), by_link(chain, "qd", qd), by_link(chain, "u", u)
    F_ext, V0, Vdot0 = loads(chain, wrench, base)
    v = velocity_sweep(chain, V0, q, qd)  # (22)-(24), (42)
    extra = extra_torque(chain, q, qd)
    qdd, tau = np.where(chain.I_a, u, 0), np.where(chain.I_a, 0, u - extra)
    J_hat, B, z = serial_inward(chain, v, qdd, tau, F_ext)
    qdd, tau = serial_outward(chain, v, qdd, tau, J_hat, B, z, Vdot0)
    y = np.where(chain.I_a, tau + chain.terms["armature"] * qdd + extra, qdd)
    return y[chain.joint_links]


def serial_inward(chain: Chain, v: Velocities, qdd: Array, tau: Array, F_ext: Array) -> tuple[Array, Array, Array]:
    """Algorithm 3.2: return Ĵ, B, z by link. With F_ext on the links, z_{n+1} = 0 and Ĵ_{n+1} = 0."""
    n, S, kind = len(chain.P), chain.S, np.result_type(v.V, qdd, tau, F_ext)
    J_hat, B, z = zeros(kind, (n, 6, 6), (n, 6), (n, 6))
    for k in reversed(range(n)):
        i = chain.outward[k]
        J_hat[i], B[i] = chain.J[i], v.b[i] - F_ext[i]  # (30), (31)
        if k + 1 < n:
            j = chain.outward[k + 1]  # the paper's i + 1
            Ad_h, JS = v.Ad_h[j], J_hat[j] @ S[j]
            if chain.I_a[j]:
                J_hat[i] += Ad_h.T @ J_hat[j] @ Ad_h  # (41)
                B[i] += Ad_h.T @ z[j]  # (43)
            else:
                Omega = inertia_of_joint(chain, j, J_hat[j])
                J_hat[i] += Ad_h.T @ (np.eye(6) - np.outer(JS, S[j]) / Omega) @ J_hat[j] @ Ad_h  # (41)
                B[i] += Ad_h.T @ (z[j] + JS * (tau[j] - S[j] @ z[j]) / Omega)  # (43)
        z[i] = J_hat[i] @ (S[i] * qdd[i] + v.a[i]) + B[i]  # (44), q̈ = 0 here where it is sought
    return J_hat, B, z


def serial_outward(
    chain: Chain, v: Velocities, qdd: Array, tau: Array, J_hat: Array, B: Array, z: Array, Vdot0: Array
) -> tuple[Array, Array]:
    """Algorithm 3.3: return q̈ and the rigid body torque by link."""
    kind = np.result_type(z, Vdot0)
    qdd, tau, Vdot = qdd.astype(kind), tau.astype(kind), Vdot0.astype(kind)
    for i in chain.outward:
        S, Vdot_plus = chain.S[i], v.Ad_h[i] @ Vdot
        if not chain.I_a[i]:
            qdd[i] = (tau[i] - S @ (J_hat[i] @ Vdot_plus + z[i])) / inertia_of_joint(chain, i, J_hat[i])  # (46)
        Vdot = Vdot_plus + S * qdd[i] + v.a[i]  # (48)
        if chain.I_a[i]:
            tau[i] = S @ (J_hat[i] @ Vdot + B[i])  # (47)
    return qdd, tau


def inertia_of_joint(chain: Chain, i: int, J_hat: Array) -> Any:
    """Return Ω of the passive joint of link i."""
    Omega = chain.S[i] @ J_hat @ chain.S[i] + chain.terms["armature"][i]  # (70) and extension
    refuse_vanished(chain.names[i], Omega, J_hat, chain.S[i])
    return Omega


# ---------------------------------------------------------------- Algorithms 3.5 and 3.6: branched chains
def inward_step(
    J: Array, b: Array, S: Array, a: Array, qdd: Any, F_ext: Array, children: list[tuple[Array, Array, Array]]
) -> tuple[Array, Array]:
    """Algorithm 3.5 at one link: return Ĵ, z; children are (Ad_h, Ĵ⁺, z⁺), and q̈ is 0 where it is sought."""
    J_hat, B = J, b
    for Ad_h, J_plus, z_plus in children:
        J_hat = J_hat + Ad_h.T @ J_plus @ Ad_h  # (53)
        B = B + Ad_h.T @ z_plus  # (54)
    z = J_hat @ (S * qdd + a) + B - F_ext  # (55)
    return J_hat, z


def passive_step(J_hat: Array, S: Array, z: Array, tau: Any, Omega: Any) -> tuple[Array, Array]:
    """Algorithm 3.5 at a passive joint: return Ĵ⁺, z⁺ (an active joint passes on Ĵ and z)."""
    phi = J_hat @ S / Omega  # (72)
    J_plus = J_hat - np.outer(phi, S) @ J_hat  # (56)
    z_plus = z + phi * (tau - S @ z)  # (57)
    return J_plus, z_plus


class Hybrid(NamedTuple):
    """Quantities of Algorithms 3.4 to 3.6 by link; the base is the last row of V and Vdot."""

    v: Velocities
    Omega: Array
    J_hat: Array
    z: Array
    J_plus: Array
    z_plus: Array
    Vdot: Array
    qdd: Array
    tau: Array


def hybrid_sweep(chain: Chain, q: Array, qd: Array, u: Array, F_ext: Array, V0: Array, Vdot0: Array) -> Hybrid:
    """Algorithms 3.4, 3.5 and 3.6; tau is the rigid body torque with the armature's."""
    v, I_a = velocity_sweep(chain, V0, q, qd), chain.I_a
    n, kind = len(q), np.result_type(v.V, u, F_ext, Vdot0)
    qdd, tau = np.where(I_a, u, 0).astype(kind), np.where(I_a, 0, u - extra_torque(chain, q, qd)).astype(kind)
    Omega, J_hat, z, J_plus, z_plus, Vdot = zeros(kind, (n,), (n, 6, 6), (n, 6), (n, 6, 6), (n, 6), (n + 1, 6))
    for i in reversed(chain.outward):
        children = [(v.Ad_h[j], J_plus[j], z_plus[j]) for j in chain.C[i]]
        J_hat[i], z[i] = inward_step(chain.J[i], v.b[i], chain.S[i], v.a[i], qdd[i], F_ext[i], children)
        J_plus[i], z_plus[i] = J_hat[i], z[i]
        if not I_a[i]:
            Omega[i] = inertia_of_joint(chain, i, J_hat[i])  # (70)
            J_plus[i], z_plus[i] = passive_step(J_hat[i], chain.S[i], z[i], tau[i], Omega[i])
    Vdot[-1] = Vdot0
    for i in chain.outward:
        S, Vdot_plus = chain.S[i], v.Ad_h[i] @ Vdot[chain.P[i]]
        if I_a[i]:
            tau[i] = S @ (J_hat[i] @ Vdot_plus + z[i]) + chain.terms["armature"][i] * qdd[i]  # (59) and extension
        else:
            qdd[i] = (tau[i] - S @ (J_hat[i] @ Vdot_plus + z[i])) / Omega[i]  # (58)
        Vdot[i] = Vdot_plus + S * qdd[i] + v.a[i]  # (60)
    return Hybrid(v, Omega, J_hat, z, J_plus, z_plus, Vdot, qdd, tau)


def hybrid_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
) -> Array:
    """Return y = f(q, q̇, u) of (61), by Algorithms 3.4, 3.5 and 3.6.

    Parameters
    ----------
    mech : Mechanism
        Any tree of fixed joints and joints of one coordinate.
    q, qd : (n,) array_like
        Position and velocity of the joints (rad or m).
    u : (n,) array_like
        Acceleration of each active joint, motor torque of each passive joint.
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.
    base : (V0, dV0), optional
        Velocity (ω, v) of the base and the rate of its components, each (6,), in the base frame.

    Returns
    -------
    (n,) ndarray
        Motor torque of each active joint, acceleration of each passive joint.

    Raises
    ------
    CstormError
        If an argument has another shape, is not of numbers, or is not finite; SingularInertia
        if a passive joint moves no inertia at all.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> links = [Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]
    >>> hybrid_dynamics(Mechanism(links), [0.0], [0.0], [0.0])  # free to fall
    array([-19.62])
    >>> hybrid_dynamics(Mechanism(links, active=["arm"]), [0.0], [0.0], [0.0])  # held
    array([9.81])
    """
    chain = read_mechanism(mech)
    q, qd, u = by_link(chain, "q", q), by_link(chain, "qd", qd), by_link(chain, "u", u)
    h = hybrid_sweep(chain, q, qd, u, *loads(chain, wrench, base))
    y = np.where(chain.I_a, h.tau + extra_torque(chain, q, qd), h.qdd)  # (61)
    return y[chain.joint_links]


# ---------------------------------------------------------------- kinematics and energy
def forward_kinematics(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the pose of every link in the base frame, (n_links, 4, 4).

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Prismatic
    >>> mech = Mechanism([Link("slider", None, Prismatic((1, 0, 0)))])
    >>> forward_kinematics(mech, [0.25])[0, :3, 3]
    array([0.25, 0.  , 0.  ])
    """
    chain = read_mechanism(mech)
    q = by_link(chain, "q", q)
    X = np.zeros((len(q) + 1, 4, 4), q.dtype)
    X[-1] = np.eye(4)
    for i in chain.outward:
        X[i] = X[chain.P[i]] @ chain.M[i] @ exp(chain.S[i], q[i])  # (17), (22)
    return X[:-1]


def link_velocities(mech: Mechanism, q: ArrayLike, qd: ArrayLike, base: Base = None) -> Array:
    """Return the body-fixed velocity (ω, v) of every link, (n_links, 6), in link frames.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Prismatic
    >>> mech = Mechanism([Link("slider", None, Prismatic((1, 0, 0)))])
    >>> link_velocities(mech, [0.25], [2.0])
    array([[0., 0., 0., 2., 0., 0.]])
    """
    chain = read_mechanism(mech)
    _, V0, _ = loads(chain, None, base)
    return velocity_sweep(chain, V0, by_link(chain, "q", q), by_link(chain, "qd", qd)).V[:-1]


def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the mass matrix, (n, n), armature included: column k is Algorithm 3.1 for q̈ = e_k at rest.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    chain = read_mechanism(mech)
    q, k = by_link(chain, "q", q), chain.joint_links
    rest, still, n_links = np.zeros(6), np.zeros(len(q)), len(q)
    columns = [rigid_body_torque(chain, q, still, e, np.zeros((n_links, 6)), rest, rest) for e in np.eye(n_links)[k]]
    M = np.array(columns).reshape(len(k), n_links)[:, k].T
    return M + np.diag(chain.terms["armature"][k])  # extension


def energy(mech: Mechanism, q: ArrayLike, qd: ArrayLike, base: Base = None) -> tuple[Any, Any]:
    """Return the kinetic energy, armature included, and the potential energy of gravity and springs (J).

    The potential energy is -Σ m gᵀc + ½ Σ k (q - rest)², with the centres of mass c and gravity g in the
    base frame. Of `base` only V0 counts: it adds to the velocity of every link.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0, 0.5, 0))])
    >>> [float(e) for e in energy(mech, [0.0], [2.0])]
    [1.0, 9.81]
    """
    chain = read_mechanism(mech)
    V, X, t = link_velocities(mech, q, qd, base), forward_kinematics(mech, q), chain.terms
    q, qd = by_link(chain, "q", q), by_link(chain, "qd", qd)
    kinetic = sum(V_i @ J @ V_i for V_i, J in zip(V, chain.J, strict=True)) / 2 + t["armature"] @ qd**2 / 2
    centre = (link.mass * (X_i[:3, :3] @ link.com + X_i[:3, 3]) for X_i, link in zip(X, mech.links, strict=True))
    potential = t["stiffness"] @ (q - t["rest"]) ** 2 / 2 - sum(chain.gravity @ mc for mc in centre)
    return kinetic, potential
