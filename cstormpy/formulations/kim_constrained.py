"""Dynamics of constrained systems by Kim, section 3: of a given constraint A(q) q̇ = 0 on an open chain.

J. Kim, "Lie Group Formulation of Articulated Rigid Body Dynamics", version 2.01 (2012), (54)-(66). Our copy breaks off
in 3.1, inverse dynamics; 3.2 and 3.3, forward and hybrid dynamics, **are derived here**, and lettered.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
A                 A(q)                m constraints on the n velocities, A q̇ = 0
Adot              Ȧ                   its rate
lam               λ                   multipliers: Aᵀλ is the force of the constraints on the joints
tau_r, qdd_r      τ_r, -              what the open chain would take, or do, without them
a, p              a, p                joints that are actuated, and that are not: τ_p is known
u, v              u, v                joints whose acceleration, whose torque is prescribed
================  ==================  ==================================================================

Derivation. With u and v as in (33), the equations (54) and the rate of (55) are

    (a)  M_vv q̈_v + M_vu q̈_u + b_v = τ_v + A_vᵀλ,    A_v q̈_v + A_u q̈_u + Ȧ q̇ = 0
    (b)  τ_u = M_uu q̈_u + M_uv q̈_v + b_u - A_uᵀλ

Let q̈_r and τ_r be the hybrid dynamics of the open chain. Then q̈_v = q̈_r,v + M_vv⁻¹ A_vᵀ λ, and

    (c)  (A_v M_vv⁻¹ A_vᵀ) λ = -(A q̈_r + Ȧ q̇)
    (d)  q̈_v = q̈_r,v + W λ,  τ_u = τ_r,u + M_uv W λ - A_uᵀ λ,    W = M_vv⁻¹ A_vᵀ

The columns of W and of M_uv W are hybrid dynamics themselves, of the open chain at rest, without gravity, under the
torques of one column of A_vᵀ: no mass matrix is formed. If the constraints depend on one another, λ is the least one,
and the rank is reported. With no joint in u this is forward dynamics.

Departures from the print: after (54), "Jᵀλ" is Aᵀλ; before (62) the signs of n > m > n_p are lost; (62)-(66) give the
least torque, and the bullet after (61) the least constraint force. "Passive" means "not actuated" in section 3, and "of
prescribed torque" before it. A system that is consistent may have dependent constraints here: † is the pseudoinverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidValue
from cstormpy.formulations.arguments import by_link, read_tree, vector
from cstormpy.formulations.kim import hybrid_dynamics, inverse_dynamics

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Floats = NDArray[np.float64]

LEAST = 1e-10
"""A singular value below this part of the greatest counts as 0, and a residual below this part of the force."""
CONTRADICTION = 1e-6
"""Prescribed accelerations that miss a constraint by more than this part of what is wanted contradict it."""


class ConstrainedTorque(NamedTuple):
    """Torques (n,) and multipliers (m,)."""

    tau: Floats
    lam: Floats


class ConstrainedMotion(NamedTuple):
    """Torque of each joint of u and acceleration of each of v, (n,); multipliers (m,); rank of (c)."""

    y: Floats
    lam: Floats
    rank: int


def constraint(mech: Mechanism, name: str, A: ArrayLike) -> Floats:
    """Return A as a matrix of one column per joint."""
    return vector(name, A, ("m", mech.n), "one row per constraint, one column per joint")


def pseudoinverse(X: Floats) -> tuple[Floats, int]:
    """Return X† and the rank of X."""
    if not X.size:
        return np.zeros(X.shape[::-1]), 0
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int((s > LEAST * s[0]).sum())
    return Vt[:rank].T @ (U[:, :rank] / s[:rank]).T, rank


def null_space(X: Floats) -> Floats:
    """Return N(X), whose columns are orthonormal and span what X takes to 0."""
    if not X.shape[0]:
        return np.eye(X.shape[1])
    _, s, Vt = np.linalg.svd(X)
    rank = int((s > LEAST * s[0]).sum()) if s.size else 0
    return Vt[rank:].T


def constrained_inverse_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    A: ArrayLike,
    wrench: ArrayLike | None = None,
    *,
    tau_p: ArrayLike | None = None,
    least: str = "torque",
) -> ConstrainedTorque:
    """Return torques and multipliers of a given motion of a constrained system, by (56)-(66).

    Parameters
    ----------
    mech : Mechanism
        The open chain; its actuated joints are those of a.
    q, qd, qdd : (n,) array_like
        A motion that satisfies the constraints.
    A : (m, n) array_like
        The constraints, A q̇ = 0.
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.
    tau_p : (n,) array_like, optional
        Torques of the joints that are not actuated, 0 unless given; the entries of actuated joints are not read.
    least : "torque" or "force"
        Where actuation is redundant: the least torque of the actuated joints, (62)-(66), or the least multipliers.

    Raises
    ------
    InvalidValue
        If the actuated joints cannot make the motion; and as `kim.inverse_dynamics`.

    Examples
    --------
    Two motors share a load on one shaft: the arms are welded, q1 = q2, and each motor takes half.

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> arm = Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))
    >>> mech = Mechanism([arm, Link("twin", None, Revolute((0, 0, 1)))])
    >>> constrained_inverse_dynamics(mech, [0, 0], [0, 0], [0, 0], [[1, -1]]).tau
    array([4.905, 4.905])
    """
    if least not in ("torque", "force"):
        raise InvalidValue(f"least: expected 'torque' or 'force', got {least!r}")
    A = constraint(mech, "A", A)
    tau_r = inverse_dynamics(mech, q, qd, qdd, wrench)
    known = np.zeros(mech.n) if tau_p is None else by_link(read_tree(mech), "tau_p", tau_p)[mech.joint_links]
    a, p = mech.actuated_mask, ~mech.actuated_mask
    A_a, A_p = A[:, a], A[:, p]
    inverse, _ = pseudoinverse(A_p.T)
    right = tau_r[p] - known[p]
    lam = inverse @ right  # (57), (58), the first part of (59)
    off = np.abs(A_p.T @ lam - right)
    if off.size and off.max() > LEAST * max(1.0, np.abs(tau_r).max()):
        joint = [name for name, other in zip(mech.names, p, strict=True) if other][int(off.argmax())]
        raise InvalidValue(
            f"joint {joint!r}: is not actuated and the constraints leave it free: the motion needs a torque of "
            f"{right[off.argmax()]:.6g} there; too few actuators"
        )
    if least == "torque":
        N = null_space(A_p.T)
        inverse, _ = pseudoinverse(A_a.T @ N)
        lam = lam + N @ (inverse @ (tau_r[a] - A_a.T @ lam))  # (63), (64); (66) if all joints are actuated
    tau = known.astype(np.float64)
    tau[a] = tau_r[a] - A_a.T @ lam  # (56), (62)
    return ConstrainedTorque(tau, lam)


def constrained_hybrid_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    A: ArrayLike,
    Adot: ArrayLike,
    wrench: ArrayLike | None = None,
) -> ConstrainedMotion:
    """Return the hybrid dynamics of a constrained system, by (c) and (d).

    Parameters
    ----------
    mech : Mechanism
        The open chain; its active joints are those of u. With none active this is forward dynamics.
    q, qd : (n,) array_like
        A state that satisfies the constraints, A q̇ = 0.
    u : (n,) array_like
        Acceleration of each active joint, motor torque of each passive joint.
    A, Adot : (m, n) array_like
        The constraints and their rate.
    wrench : (n_links, 6) array_like, optional
        (moment, force) that acts on each link from outside, in the link's frame.

    Raises
    ------
    InvalidValue
        If the prescribed accelerations contradict the constraints; and as `kim.hybrid_dynamics`.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> arms = [Link(name, None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0)) for name in ("left", "right")]
    >>> constrained_hybrid_dynamics(Mechanism(arms), [0, 0], [0, 0], [9.81, 0], [[1, -1]], [[0, 0]]).y
    array([-9.81, -9.81])
    """
    A, Adot = constraint(mech, "A", A), constraint(mech, "Adot", Adot)
    if A.shape != Adot.shape:
        raise InvalidValue(f"Adot: expected shape {A.shape} as of A, got {Adot.shape}")
    tree, n = read_tree(mech), mech.n
    is_u, is_v = mech.active_mask, ~mech.active_mask
    given, rates = (by_link(tree, name, x)[mech.joint_links] for name, x in (("u", u), ("qd", qd)))
    y = hybrid_dynamics(mech, q, qd, given, wrench)
    bare = without_losses(mech)
    forces = np.where(is_v, A, 0.0)  # one row, the forces of one constraint on the joints of v
    W = np.array([hybrid_dynamics(bare, q, np.zeros(n), row) for row in forces]).reshape(A.shape).T
    qdd_r = np.where(is_u, given, y)
    inverse, rank = pseudoinverse(A[:, is_v] @ W[is_v])
    wanted = -(A @ qdd_r + Adot @ rates)
    lam = inverse @ wanted  # (c)
    off = np.abs(A[:, is_v] @ W[is_v] @ lam - wanted)
    if off.size and off.max() > CONTRADICTION * max(1.0, np.abs(wanted).max()):
        raise InvalidValue(f"constraint {int(off.argmax())}: the prescribed accelerations contradict it; fewer active")
    change = W @ lam  # (d): M_uv W λ in the rows of u, for there W is the torque that holds them
    return ConstrainedMotion(np.where(is_u, y + change - A.T @ lam, y + change), lam, rank)


def without_losses(mech: Mechanism) -> Mechanism:
    """Return the mechanism without gravity, damping, friction and springs: its inertia alone."""
    none = {f"{name}.{term}": 0.0 for name in mech.names for term in ("damping", "friction", "stiffness")}
    return mech.with_parameters({**none, "gravity": np.zeros(3)})
