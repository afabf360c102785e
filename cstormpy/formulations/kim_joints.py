"""Open chains by Kim with joints of several coordinates: his Tables 2 and 4 as printed, S(q) with as many columns.

J. Kim, "Lie Group Formulation of Articulated Rigid Body Dynamics", version 2.01 (2012), section 2, (35)-(53). The
letters are those of `kim`, where every joint has one coordinate; here

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
T                 T_{λ(i),i}          pose of body i in its parent's frame, a function of q_i
S, Sdot           S_i, Ṡ_i            Jacobian of the joint in the body's frame, (6, n_i), and its rate
Psi               Ψ_i                 (S'ÎS)^-1, (n_i, n_i)
================  ==================  ==================================================================

Departures from the print: the motor's other torques are added to τ (u) or subtracted from it (v), the armatures A_i
add to S'ÎS of v, and S'ÎS is solved, not inverted. A weld has n_i = 0 and is one of u. The torque that a joint takes
itself is that of each coordinate, but of the rotation vector of a ball J' (a ω̇ + ω × a ω + d ω + f tanh(ω / v_s) + m),
with the angular velocity ω = J q̇ of the body relative to its parent in the body's axes, J the first three rows of S,
and the moment m of the potential k ψ²/2, ψ the logarithm of the rotation from rest to where the body is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import SingularInertia
from cstormpy.formulations.arguments import (
    SINGULAR,
    WRENCH_HINT,
    Array,
    bracket,
    depth_first,
    refuse_loops,
    size_of,
    vector,
)
from cstormpy.formulations.kim import Ad_inverse, ad, generalised_inertia

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


class System(NamedTuple):
    """A mechanism in the paper's letters, by body, in one state."""

    names: list[str]
    outward: list[int]
    lam: list[int]
    mu: list[list[int]]
    at: list[slice]  # the coordinates of each joint
    Ad_h: list[Array]
    S: list[Array]
    V: Array
    eta: Array
    I: list[Array]
    F_ext: Array
    V_ground: Array  # V̇_0
    spent: Array  # (n,), what the motors spend in the joints themselves at this state with q̈ = 0
    armature: list[Array]  # A_i, (n_i, n_i)


def read_system(mech: Mechanism, q: Array, qd: Array, wrench: ArrayLike | None) -> System:
    """Return a mechanism in the paper's letters, its velocities swept: the first recursion of Tables 2 and 4."""
    refuse_loops(mech)
    lam = [int(p) for p in mech.parents]
    mu = [[k for k, p in enumerate(lam) if p == i] for i in range(len(lam))]
    at = [mech.coordinates(link.joint_name) for link in mech.links]
    kind = np.result_type(q, qd)
    V, eta = np.zeros((len(lam) + 1, 6), kind), np.zeros((len(lam), 6), kind)
    S: list[Array] = [np.zeros((6, 0))] * len(lam)
    Ad_h: list[Array] = [np.zeros((6, 6))] * len(lam)
    armature, spent = list(S), np.zeros(mech.n, kind)
    for i in (outward := depth_first(lam, mu)):
        joint, qi, qdi = mech.links[i].joint, q[at[i]], qd[at[i]]
        S[i], Ad_h[i] = joint.subspace(qi), Ad_inverse(mech.links[i].pose @ joint.motion(qi))
        V[i] = Ad_h[i] @ V[lam[i]] + S[i] @ qdi  # (37)
        eta[i] = ad(V[i]) @ (S[i] @ qdi) + joint.subspace_rate(qi, qdi) @ qdi  # of (41)
        armature[i], spent[at[i]] = _own_torque(mech.freedoms[at[i]], joint, S[i], qi, qdi)
    shape = (len(lam), 6)
    return System(
        names=[link.name for link in mech.links],
        outward=outward,
        lam=lam,
        mu=mu,
        at=at,
        Ad_h=Ad_h,
        S=S,
        V=V,
        eta=eta,
        I=[generalised_inertia(link.mass, np.array(link.com), np.array(link.inertia)) for link in mech.links],
        F_ext=np.zeros(shape) if wrench is None else vector("wrench", wrench, shape, WRENCH_HINT),
        V_ground=np.concatenate([np.zeros(3), -mech.gravity]),  # footnote 6
        spent=spent,
        armature=armature,
    )


def _own_torque(freedoms: tuple[Any, ...], joint: Any, S: Array, q: Array, qd: Array) -> tuple[Array, Array]:
    """Return A_i and what the joint takes itself at rest of q̈; a ball's rotation vector is the last of its q."""
    kind = np.result_type(S, q, qd)
    rates, spent = np.eye(joint.dof, dtype=kind), np.zeros(joint.dof, kind)
    ball = [k for k, place in enumerate(joint.balls) if place]
    rotor = np.diag([f.armature for f in freedoms])
    if ball:
        J = rates[np.ix_(ball, ball)] = S[:3, ball]
        w = J @ qd[ball]
        spent[ball] = rotor[np.ix_(ball, ball)] @ (joint.subspace_rate(q, qd)[:3, ball] @ qd[ball])
        spent[ball] += bracket(w) @ rotor[np.ix_(ball, ball)] @ w
        spent[ball] += spring_moment(joint, [freedoms[k] for k in ball], q)
    for k, (freedom, rate) in enumerate(zip(freedoms, rates @ qd, strict=True)):
        spent[k] += freedom.damping * rate + freedom.friction * np.tanh(rate / freedom.friction_velocity)
        if k not in ball:
            spent[k] += freedom.stiffness * (q[k] - freedom.rest)
    return rates.T @ rotor @ rates, rates.T @ spent


def spring_moment(joint: Any, axes: list[Any], q: Array) -> Array:
    """Return the moment of a ball's spring in the body's axes: of the trace and the skew part of the turn from rest."""
    k, rest = np.array([f.stiffness for f in axes]), np.zeros(joint.dof)
    rest[-3:] = [f.rest for f in axes]
    turn = joint.motion(rest)[:3, :3].T @ joint.motion(q)[:3, :3]
    skew = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    cosine = (np.trace(turn) - 1) / 2
    if cosine.real > 0:
        sine = np.sqrt(skew @ skew)
        psi = skew * (2 * np.arctan(sine / (1 + cosine)) / sine if abs(sine) > 1e-9 else 1.0)
    else:  # up to half a turn the axis n is that of the symmetric part, (1 - cos) n n', and the skew part is its sense
        square = (turn + turn.T) / 2 - cosine * np.eye(3)
        longest = int(np.argmax(np.diag(square).real))
        n = square[:, longest] / np.sqrt(square[longest, longest] * (1 - cosine))
        n = n if (n @ skew).real > 0 else -n
        psi = n * (np.pi - 2 * np.arctan(n @ skew / (1 - cosine)))
    shift = np.zeros(joint.dof, psi.dtype)
    shift[-3:] = psi
    return np.linalg.solve(joint.subspace(shift)[:3, -3:].T, k * psi)  # δψ = J(ψ)⁻¹ δ for a turn δ


def coordinates(mech: Mechanism, name: str, value: ArrayLike) -> Array:
    """Return an argument of one number per coordinate."""
    return vector(name, value, (mech.n,), "one number per coordinate")


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion, by Table 2; arguments as in `kim.inverse_dynamics`, any joints.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Translational
    >>> mech = Mechanism([Link("block", None, Translational(), mass=2.0)])
    >>> inverse_dynamics(mech, np.zeros(3), np.zeros(3), [1.0, 0.0, 0.0]).round(12)
    array([ 2.  , 19.62,  0.  ])
    """
    q, qd, qdd = (coordinates(mech, name, x) for name, x in (("q", q), ("qd", qd), ("qdd", qdd)))
    s = read_system(mech, q, qd, wrench)
    Vdot = np.zeros((len(s.lam) + 1, 6), np.result_type(s.V, qdd))
    F, tau = np.zeros_like(Vdot[:-1]), np.zeros(mech.n, Vdot.dtype)
    Vdot[-1] = s.V_ground
    for i in s.outward:
        Vdot[i] = s.Ad_h[i] @ Vdot[s.lam[i]] + s.eta[i] + s.S[i] @ qdd[s.at[i]]  # (41)
    for i in reversed(s.outward):
        F[i] = s.I[i] @ Vdot[i] - ad(s.V[i]).T @ (s.I[i] @ s.V[i]) - s.F_ext[i]  # (42)
        for k in s.mu[i]:
            F[i] += s.Ad_h[k].T @ F[k]  # (42)
        tau[s.at[i]] = s.S[i].T @ F[i] + s.armature[i] @ qdd[s.at[i]]  # Table 2
    return tau + s.spent


class Inward(NamedTuple):
    """Quantities of the second recursion of Table 4 by body."""

    I_hat: Array
    B_hat: Array
    I_S: list[Array]
    pivot: list[Array]  # S'ÎS, of v


def hybrid_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, u: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the hybrid dynamics, by Table 4; arguments as in `kim.hybrid_dynamics`, any joints.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Planar
    >>> mech = Mechanism([Link("plate", None, Planar(), mass=2.0, inertia=np.eye(3))])
    >>> (hybrid_dynamics(mech, np.zeros(3), np.zeros(3), np.zeros(3)) + 0.0).round(12)
    array([ 0.  , -9.81,  0.  ])
    """
    q, qd, u = (coordinates(mech, name, x) for name, x in (("q", q), ("qd", qd), ("u", u)))
    s = read_system(mech, q, qd, wrench)
    is_u = [bool(mech.active_mask[at].all()) for at in s.at]
    y = np.where(mech.active_mask, 0.0, u - s.spent)
    inward = sweep_inward(s, is_u, u, y)
    Vdot = np.zeros((len(s.lam) + 1, 6), inward.B_hat.dtype)
    Vdot[-1], y = s.V_ground, y.astype(Vdot.dtype)
    for i in s.outward:
        S, at, carried = s.S[i], s.at[i], s.Ad_h[i] @ Vdot[s.lam[i]] + s.eta[i]
        if is_u[i]:
            qdd = u[at]
        else:
            left = y[at] - S.T @ (inward.I_hat[i] @ carried + inward.B_hat[i])
            y[at] = qdd = np.linalg.solve(inward.pivot[i], left)  # (45)
        Vdot[i] = carried + S @ qdd  # (41)
        if is_u[i]:
            F = inward.I_hat[i] @ Vdot[i] + inward.B_hat[i]  # (43)
            y[at] = S.T @ F + s.spent[at] + s.armature[i] @ qdd  # Table 4
    return y


def sweep_inward(s: System, is_u: list[bool], u: Array, tau: Array) -> Inward:
    """Return articulated inertias and bias forces: the second recursion of Table 4."""
    n, kind = len(s.lam), np.result_type(s.V, u, s.F_ext)
    I_hat, Pi, B_hat, beta = (np.zeros((n, *shape), kind) for shape in ((6, 6), (6, 6), (6,), (6,)))
    I_S, pivot = list(s.S), list(s.S)
    for i in reversed(s.outward):
        S, eta, at = s.S[i], s.eta[i], s.at[i]
        I_hat[i], B_hat[i] = s.I[i], -ad(s.V[i]).T @ (s.I[i] @ s.V[i]) - s.F_ext[i]
        for k in s.mu[i]:
            I_hat[i] += s.Ad_h[k].T @ Pi[k] @ s.Ad_h[k]  # (52)
            B_hat[i] += s.Ad_h[k].T @ beta[k]  # (53)
        if is_u[i]:
            Pi[i], beta[i] = I_hat[i], B_hat[i] + I_hat[i] @ (eta + S @ u[at])  # (52), (53)
            continue
        I_S[i] = I_hat[i] @ S
        pivot[i] = S.T @ I_S[i] + s.armature[i]
        refuse_singular(s, i, pivot[i], I_hat[i])
        Pi[i] = I_hat[i] - I_S[i] @ np.linalg.solve(pivot[i], I_S[i].T)  # (52)
        left = tau[at] - S.T @ (I_hat[i] @ eta + B_hat[i])
        beta[i] = B_hat[i] + I_hat[i] @ eta + I_S[i] @ np.linalg.solve(pivot[i], left)  # (53)
    return Inward(I_hat, B_hat, I_S, pivot)


def refuse_singular(s: System, i: int, pivot: Array, inertia: Array) -> None:
    """Refuse S'ÎS of a joint of v that is singular but for rounding."""
    size = np.maximum(size_of(inertia, s.S[i]), np.abs(np.diag(pivot).real))
    unit = np.sqrt(np.outer(size, size))
    if not size.all() or np.abs(np.linalg.eigvalsh(pivot.real / unit)).min() <= SINGULAR:
        raise SingularInertia(
            f"link {s.names[i]!r}: its passive joint moves no inertia along a coordinate; give it mass or armature"
        )
