"""Sensitivity of the hybrid dynamics by Sohl and Bobrow: Algorithm 4.1, carried over to branched chains.

G. A. Sohl and J. E. Bobrow, "A Recursive Multibody Dynamics and Sensitivity Algorithm for Branched
Kinematic Chains", ASME J. Dynamic Systems, Measurement, and Control 123 (2001), doi:10.1115/1.1376121,
section 4, equations (61)-(81). The notation is that of `sohl_bobrow`; further

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
dV, dz, ...       ∂V_i/∂x, ∂z_i/∂x    derivative of V, z, ... to the one variable x of this sweep
dq, dqd, dqdd     ∂q_i/∂x, ...        what x is: dq = 1 at x = q_i, dqd = 1 at x = q̇_i, and 0 elsewhere
dtau              ∂τ_i/∂x             1 at x = τ_i of a passive joint
================  ==================  ==================================================================

Each step below is the derivative of the step of `sohl_bobrow` that its first line names, and the comment
above a line repeats the equation that the line differentiates.

Departures from the print, besides those of `sohl_bobrow`:

1. The cases i < j, i = j, i > j and x = q_j, q̇_j, ... become the factors dq, dqd, dqdd, dtau, which are 0
   or 1. So branches need no case either (a link that joint j does not carry gets ∂V_P = 0), and x may be any
   number on which q, q̇, u, the loads, V_0 and V̇_0 depend: the given ∂V̇_0/∂x, and ∂V_0/∂x beside it.
2. Corrections, each of which is needed to agree with differences:
   ∂a_i/∂x for x = q_i is -ad_{S q̇}(∂V_i/∂x), printed 0;
   ∂b_i/∂x is -ad*_{∂V}(J V) - ad*_V(J ∂V), printed with + before the second term;
   (65) is -ad*_{Ad_M S}(Ad*_h z⁺) with M, S of i + 1, printed + and index i;
   (75) and ∂z_i⁺/∂x hold S'z - τ and S'∂z - ∂τ, printed with +.
3. Slips: ∂V_i/∂x holds Ad of T_{i-1,i}^-1, printed T_{i-1,j}; (76) and (77) use T_{i-1,i}, printed T_{i,i+1};
   (80) holds the transpose of φ; (79), (80) are as if the torque were the rigid body's alone (extension).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import WRENCH_HINT, Array, by_link, vector, zeros
from cstormpy.formulations.sohl_bobrow import (
    Ad,
    Base,
    Chain,
    Hybrid,
    ad,
    base_motion,
    hybrid_sweep,
    loads,
    read_mechanism,
)

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


# ---------------------------------------------------------------- the steps
def d_velocity_step(
    S: Array, J: Array, Ad_h: Array, V_P: Array, V: Array, qd: Any, dV_P: Array, dq: Any, dqd: Any
) -> tuple[Array, Array, Array]:
    """Differentiate `velocity_step`, Algorithm 3.4: return ∂V, ∂a, ∂b."""
    # V = Ad_h V_P + S q̇  (50)
    dV = Ad_h @ dV_P + ad(Ad_h @ V_P) @ S * dq + S * dqd
    # a = -ad_{S q̇} V  (25)
    da = -ad(S) @ V * dqd - ad(S * qd) @ dV
    # b = -ad*_V (J V)  (52)
    db = -ad(dV).T @ (J @ V) - ad(V).T @ (J @ dV)
    return dV, da, db


class Child(NamedTuple):
    """Quantities that a child passes on to its parent's inward step, and their derivatives."""

    M: Array
    S: Array
    Ad_h: Array
    J_plus: Array
    z_plus: Array
    dq: Any
    dJ_plus: Array
    dz_plus: Array


def d_gather_step(db: Array, children: list[Child]) -> tuple[Array, Array]:
    """Differentiate the sums over children of `inward_step`, Algorithm 3.5: return ∂Ĵ, ∂B."""
    dJ_hat, dB = np.zeros((6, 6), db.dtype), db
    for c in children:
        Ad_h, dAd_h = c.Ad_h, -ad(c.S) @ c.Ad_h * c.dq
        # Ĵ = J + Σ Ad*_h Ĵ⁺ Ad_h  (53)
        dJ_hat = dJ_hat + dAd_h.T @ c.J_plus @ Ad_h + Ad_h.T @ c.J_plus @ dAd_h  # (63)
        dJ_hat = dJ_hat + Ad_h.T @ c.dJ_plus @ Ad_h  # (64), (67)
        # B = b + Σ Ad*_h z⁺  (54)
        dB = dB - ad(Ad(c.M) @ c.S).T @ (Ad_h.T @ c.z_plus) * c.dq  # (65)
        dB = dB + Ad_h.T @ c.dz_plus  # (66), (68)
    return dJ_hat, dB


def d_known_force_step(
    S: Array, a: Array, qdd: Any, J_hat: Array, dJ_hat: Array, dB: Array, da: Array, dqdd: Any, dF_ext: Array
) -> Array:
    """Differentiate z of `inward_step`, Algorithm 3.5; q̈ and ∂q̈ are 0 where they are sought."""
    # z = Ĵ (S q̈ + a) + B - F_ext  (55)
    return dJ_hat @ (S * qdd + a) + J_hat @ (S * dqdd + da) + dB - dF_ext  # (69)


class PassiveRates(NamedTuple):
    """Derivatives at a passive joint."""

    dphi: Array
    dc_hat: Any
    dJ_plus: Array
    dz_plus: Array


def d_passive_step(
    S: Array, J_hat: Array, z: Array, tau: Any, Omega: Any, dJ_hat: Array, dz: Array, dtau: Any
) -> PassiveRates:
    """Differentiate `passive_step`, Algorithm 3.5."""
    phi = J_hat @ S / Omega  # (72)
    dOmega = S @ dJ_hat @ S  # (71)
    dphi = (Omega * dJ_hat @ S - J_hat @ S * dOmega) / Omega**2  # (73)
    # ĉ = (τ - S'z) / Ω  (74)
    dc_hat = ((S @ z - tau) * dOmega - Omega * (S @ dz - dtau)) / Omega**2  # (75)
    # z⁺ = z + φ (τ - S'z)  (57)
    dz_plus = dz - dphi * (S @ z - tau) - phi * (S @ dz - dtau)
    # Ĵ⁺ = (I - φ S') Ĵ  (56)
    dJ_plus = -np.outer(dphi, S) @ J_hat + (np.eye(6) - np.outer(phi, S)) @ dJ_hat
    return PassiveRates(dphi, dc_hat, dJ_plus, dz_plus)


def d_transport_step(S: Array, Ad_h: Array, Vdot_P: Array, dVdot_P: Array, dq: Any) -> tuple[Array, Array]:
    """Return V̇⁺ and its derivative, as Algorithm 3.6 uses them."""
    Vdot_plus = Ad_h @ Vdot_P  # (76)
    dVdot_plus = Ad_h @ dVdot_P + ad(Vdot_plus) @ S * dq  # (77)
    return Vdot_plus, dVdot_plus


# ---------------------------------------------------------------- the sweep
class Tangent(NamedTuple):
    """Derivatives of all that is given to one variable x, by link."""

    dq: Array
    dqd: Array
    du: Array
    dF_ext: Array
    dV0: Array
    dVdot0: Array


def d_extra_torque(chain: Chain, qd: Array, dq: Array, dqd: Array) -> Array:
    """Differentiate `extra_torque`: damping, friction and spring (extension)."""
    t = chain.terms
    slope = (1 - np.tanh(qd / t["friction_velocity"]) ** 2) / t["friction_velocity"]
    return (t["damping"] + t["friction"] * slope) * dqd + t["stiffness"] * dq


def d_hybrid_sweep(chain: Chain, qd: Array, h: Hybrid, x: Tangent) -> Array:
    """Algorithm 4.1 for one variable x: return ∂y/∂x by link, after the values of `hybrid_sweep`."""
    kind = np.result_type(h.z, *x)
    dextra = d_extra_torque(chain, qd, x.dq, x.dqd)
    dqdd = np.where(chain.I_a, x.du, 0).astype(kind)
    dtau = np.where(chain.I_a, 0, x.du - dextra).astype(kind)
    da, db = d_forward_velocity(chain, qd, h, x, kind)
    rates = d_backward(chain, h, x, da, db, dqdd, dtau, kind)
    dqdd, dtau = d_forward_acceleration(chain, h, x, da, dqdd, dtau, *rates)
    return np.where(chain.I_a, dtau + dextra, dqdd)


def d_forward_velocity(chain: Chain, qd: Array, h: Hybrid, x: Tangent, kind: Any) -> tuple[Array, Array]:
    """First forward recursion of Algorithm 4.1: return ∂a, ∂b by link."""
    n, v = len(qd), h.v
    dV, da, db = zeros(kind, (n + 1, 6), (n, 6), (n, 6))
    dV[-1] = x.dV0
    for i in chain.outward:
        P = chain.P[i]
        dV[i], da[i], db[i] = d_velocity_step(
            chain.S[i], chain.J[i], v.Ad_h[i], v.V[P], v.V[i], qd[i], dV[P], x.dq[i], x.dqd[i]
        )
    return da, db


def d_backward(
    chain: Chain, h: Hybrid, x: Tangent, da: Array, db: Array, dqdd: Array, dtau: Array, kind: Any
) -> tuple[Array, Array, Array, Array]:
    """Backward recursion of Algorithm 4.1: return ∂Ĵ, ∂z, ∂φ, ∂ĉ by link."""
    n, M, S, I_a = len(dqdd), chain.M, chain.S, chain.I_a
    dJ_hat, dz, dphi, dc_hat = zeros(kind, (n, 6, 6), (n, 6), (n, 6), (n,))
    dJ_plus, dz_plus = zeros(kind, (n, 6, 6), (n, 6))
    for i in reversed(chain.outward):
        children = [
            Child(M[j], S[j], h.v.Ad_h[j], h.J_plus[j], h.z_plus[j], x.dq[j], dJ_plus[j], dz_plus[j])
            for j in chain.C[i]
        ]
        dJ_hat[i], dB = d_gather_step(db[i], children)
        qdd = h.qdd[i] if I_a[i] else 0
        dz[i] = d_known_force_step(S[i], h.v.a[i], qdd, h.J_hat[i], dJ_hat[i], dB, da[i], dqdd[i], x.dF_ext[i])
        dJ_plus[i], dz_plus[i] = dJ_hat[i], dz[i]
        if not I_a[i]:
            dphi[i], dc_hat[i], dJ_plus[i], dz_plus[i] = d_passive_step(
                S[i], h.J_hat[i], h.z[i], h.tau[i], h.Omega[i], dJ_hat[i], dz[i], dtau[i]
            )
    return dJ_hat, dz, dphi, dc_hat


def d_forward_acceleration(
    chain: Chain,
    h: Hybrid,
    x: Tangent,
    da: Array,
    dqdd: Array,
    dtau: Array,
    dJ_hat: Array,
    dz: Array,
    dphi: Array,
    dc_hat: Array,
) -> tuple[Array, Array]:
    """Second forward recursion of Algorithm 4.1: return ∂q̈, ∂τ by link."""
    dVdot = np.zeros((len(dqdd) + 1, 6), dqdd.dtype)
    dVdot[-1] = x.dVdot0
    for i in chain.outward:
        P, S, J_hat = chain.P[i], chain.S[i], h.J_hat[i]
        Vdot_plus, dVdot_plus = d_transport_step(S, h.v.Ad_h[i], h.Vdot[P], dVdot[P], x.dq[i])  # (76), (77)
        if chain.I_a[i]:
            dtau[i] = S @ (J_hat @ dVdot_plus + dz[i] + dJ_hat[i] @ Vdot_plus)  # (79)
            dtau[i] += chain.terms["armature"][i] * dqdd[i]  # extension
        else:
            phi = J_hat @ S / h.Omega[i]  # (72)
            dqdd[i] = dc_hat[i] - dphi[i] @ Vdot_plus - phi @ dVdot_plus  # (80)
        dVdot[i] = dVdot_plus + S * dqdd[i] + da[i]  # (81)
    return dqdd, dtau


# ---------------------------------------------------------------- the columns
class Point(NamedTuple):
    """Point at which the derivatives are taken: the mechanism, q̇ by link, and the values of Algorithms 3.4 to 3.6."""

    chain: Chain
    qd: Array
    h: Hybrid


def evaluate(mech: Mechanism, q: ArrayLike, qd: ArrayLike, u: ArrayLike, wrench: ArrayLike | None, base: Base) -> Point:
    """Return the point at which all columns are taken."""
    chain = read_mechanism(mech)
    q, qd, u = by_link(chain, "q", q), by_link(chain, "qd", qd), by_link(chain, "u", u)
    return Point(chain, qd, hybrid_sweep(chain, q, qd, u, *loads(chain, wrench, base)))


def columns(point: Point, field: str, directions: Array) -> Array:
    """Return ∂y/∂x for x along each row of directions, in one field of `Tangent`, as columns."""
    n = len(point.qd)
    still = Tangent(*zeros(np.float64, (n,), (n,), (n,), (n, 6), (6,), (6,)))
    joints = point.chain.joint_links
    out = np.zeros((len(joints), len(directions)), point.h.z.dtype)
    for k, direction in enumerate(directions):
        out[:, k] = d_hybrid_sweep(*point, still._replace(**{field: direction}))[joints]
    return out


def hybrid_sensitivity(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
) -> tuple[Array, Array, Array]:
    """Return ∂y/∂q, ∂y/∂q̇ and ∂y/∂u of y = `hybrid_dynamics(mech, q, qd, u, wrench, base)`.

    Parameters and errors are those of `hybrid_dynamics`. Wrench and base motion are held constant in the
    frames in which they are given; `hybrid_directional` also differentiates to them.

    Returns
    -------
    dy_dq, dy_dqd, dy_du : (n, n) ndarray
        Row: the torque of an active, the acceleration of a passive joint. Column: the variable.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1), damping=0.5), mass=2.0, com=(0.5, 0, 0))])
    >>> hybrid_sensitivity(mech, [0.0], [0.0], [0.0])[1:]  # -damping / inertia, 1 / inertia
    (array([[-1.]]), array([[2.]]))
    """
    point = evaluate(mech, q, qd, u, wrench, base)
    unit = np.eye(len(point.qd))[point.chain.joint_links]
    return columns(point, "dq", unit), columns(point, "dqd", unit), columns(point, "du", unit)


def base_sensitivity(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
) -> tuple[Array, Array]:
    """Return ∂y/∂V0 and ∂y/∂dV0 of y = `hybrid_dynamics(mech, q, qd, u, wrench, base)`.

    Parameters and errors are those of `hybrid_dynamics`. The derivative to gravity is the negative of the
    last three columns of ∂y/∂dV0.

    Returns
    -------
    dy_dV0, dy_ddV0 : (n, 6) ndarray
        Row: the torque of an active, the acceleration of a passive joint. Column: (ω, v) in the base frame.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> links = [Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]
    >>> base_sensitivity(Mechanism(links, active=["arm"]), [0.0], [0.0], [0.0])[1]  # inertia, m r
    array([[0. , 0. , 0.5, 0. , 1. , 0. ]])
    """
    point = evaluate(mech, q, qd, u, wrench, base)
    return columns(point, "dV0", np.eye(6)), columns(point, "dVdot0", np.eye(6))


def hybrid_directional(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
    *,
    dq: ArrayLike | None = None,
    dqd: ArrayLike | None = None,
    du: ArrayLike | None = None,
    dwrench: ArrayLike | None = None,
    dbase: Base = None,
) -> Array:
    """Return ∂y/∂x for one variable x on which any of the arguments depend: one sweep of Algorithm 4.1.

    Parameters
    ----------
    mech, q, qd, u, wrench, base
        As in `hybrid_dynamics`.
    dq, dqd, du : (n,) array_like, optional
        Derivatives of q, qd, u to x; 0 unless given.
    dwrench : (n_links, 6) array_like, optional
        Derivative of the wrenches, of the components in link frames.
    dbase : (∂V0/∂x, ∂dV0/∂x), optional
        Derivatives of the base's velocity and acceleration, each (6,): the paper's given ∂V̇_0/∂x.

    Returns
    -------
    (n,) ndarray
        Derivative of the torque of each active, of the acceleration of each passive joint.

    Examples
    --------
    The base of a free link is accelerated upwards, which acts as more gravity:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> hybrid_directional(mech, [0.0], [0.0], [0.0], dbase=([0] * 6, [0, 0, 0, 0, 1, 0]))
    array([-2.])
    """
    point = evaluate(mech, q, qd, u, wrench, base)
    chain, joints = point.chain, point.chain.joint_links
    shape, still = (len(chain.P), 6), np.zeros(len(joints))
    dV0, dVdot0 = (np.zeros(6), np.zeros(6)) if dbase is None else base_motion("dbase", dbase)
    x = Tangent(
        dq=by_link(chain, "dq", still if dq is None else dq),
        dqd=by_link(chain, "dqd", still if dqd is None else dqd),
        du=by_link(chain, "du", still if du is None else du),
        dF_ext=np.zeros(shape) if dwrench is None else vector("dwrench", dwrench, shape, WRENCH_HINT),
        dV0=dV0,
        dVdot0=dVdot0,
    )
    return d_hybrid_sweep(*point, x)[joints]
