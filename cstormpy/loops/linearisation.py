"""Linear models and equilibria of closed mechanisms, in the coordinates that the loops leave free.

With z some independent joints, as many as there are freedoms, the others follow: with A q̇ = 0 and A_d the columns of
the dependent joints,

    (a)  δq = N δz,            N = [1; -A_d⁻¹ A_z]
    (b)  δq̇ = N δż + G δz,     G = [0; -A_d⁻¹ ∂(A q̇)/∂q N]

so that the derivatives of q̈ to q and q̇ along (a) and (b) are those of z̈ to (z, ż). An equilibrium is a closed posture
where the loads of the open chain are carried by motors and by the forces Aᵀ λ of the loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import WrenchLike
from cstormpy.errors import InvalidValue, UnknownName
from cstormpy.loops.assembly import LEAST, project
from cstormpy.loops.closure import closure_of, constraint_names
from cstormpy.loops.dynamics import closed_inverse
from cstormpy.loops.redundancy import pseudoinverse
from cstormpy.loops.sensitivity import closed_sensitivity
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.linearisation import Equilibrium, Linearization, linearize, search_for, trim

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


@dataclass(frozen=True)
class ClosedLinearization(Linearization):
    """The linear model of a closed mechanism, in the state (z, ż) of joints that are independent.

    Attributes
    ----------
    A : ndarray, (2f, 2f) or (N, 2f, 2f)
    B : ndarray, (2f, m) or (N, 2f, m)
    rate : ndarray, (2f,) or (N, 2f)
    states, inputs : tuple of str
        As in `Linearization`; f joints and their rates.
    joints : ndarray, (2n, 2f) or (N, 2n, 2f)
        What the states of all joints follow by: δ(q, q̇) = joints δ(z, ż).
    """

    joints: Array


@dataclass(frozen=True)
class Tangent:
    """Directions in which a closed mechanism moves from a state: δ(q, q̇) = joints δ(z, ż).

    Attributes
    ----------
    independent : ndarray of int, (f,)
        Coordinates z.
    N, G : ndarray, (n, f)
        Of (a) and (b).
    """

    independent: NDArray[np.int64]
    N: Array
    G: Array

    @property
    def joints(self) -> Array:
        """The matrix (2n, 2f)."""
        return np.block([[self.N, np.zeros(self.N.shape)], [self.G, self.N]])


def independent_joints(
    mech: Linkage, q: Array, wanted: Iterable[str] | None = None, where: str = "here"
) -> NDArray[np.int64]:
    """Return coordinates that may be given freely in a closed posture: those wanted, or the best conditioned.

    Motors come before other joints where they do as well. `where` is said of a posture in which those wanted may not.

    Raises
    ------
    InvalidValue
        If those that are wanted are too few, too many, or tied to each other.
    """
    A = closure_of(mech, q[None]).A[0]
    scale = float(np.abs(A).max(initial=0.0))
    rank = int(np.linalg.matrix_rank(A, tol=LEAST * scale)) if A.size else 0
    if wanted is not None:
        return _checked(mech, A, rank, scale, wanted, where)
    # joints that are left out one by one must determine the constraints: the best pivots, motors last
    left = A / max(scale, np.finfo(float).tiny)
    dependent: list[int] = []
    weight = np.where(mech.actuated_mask, 0.1, 1.0)
    for _ in range(rank):
        lengths = np.linalg.norm(left, axis=0)
        lengths[dependent] = 0.0
        k = int(np.argmax(weight * lengths))
        dependent.append(k)
        along = left[:, k] / lengths[k]
        left = left - np.outer(along, along @ left)
    return np.setdiff1d(np.arange(mech.n), dependent)


def _checked(mech: Linkage, A: Array, rank: int, scale: float, wanted: Iterable[str], where: str) -> NDArray[np.int64]:
    named: list[int] = []
    for name in [wanted] if isinstance(wanted, str) else entries(wanted, "independent", "names of joints"):
        try:
            named += mech.joint_indices(name)
        except UnknownName as error:
            raise UnknownName(f"independent: {error}") from None
    freedoms, chosen = mech.n - rank, list(dict.fromkeys(named))
    if len(chosen) != freedoms:
        raise InvalidValue(f"independent: expected {freedoms} coordinate(s), as many as freedoms, got {len(chosen)}")
    rest = np.setdiff1d(np.arange(mech.n), chosen)
    if rank and np.linalg.matrix_rank(A[:, rest], tol=LEAST * scale) < rank:
        names = ", ".join(repr(mech.names[k]) for k in chosen)
        raise InvalidValue(
            f"independent: loop {constraint_names(mech)[0]}: the joints {names} do not determine the others {where}; "
            "name others, or none"
        )
    return np.array(chosen, dtype=np.int64)


def tangent(mech: Linkage, q: Array, qd: Array, independent: NDArray[np.int64]) -> Tangent:
    """Return the directions (a) and (b) about a closed state."""
    found = closure_of(mech, q[None])
    A = found.A[0]
    dependent = np.setdiff1d(np.arange(mech.n), independent)
    inverse = pseudoinverse(A[:, dependent], float(np.abs(A).max(initial=0.0)))
    N, G = np.zeros((mech.n, len(independent))), np.zeros((mech.n, len(independent)))
    N[independent] = np.eye(len(independent))
    N[dependent] = -inverse @ A[:, independent]
    turning = (found.slopes()[0] * qd[:, None]).sum(axis=1)  # ∂(A q̇)/∂q
    G[dependent] = -inverse @ turning @ N
    return Tangent(np.asarray(independent), N, G)


def closed_linearize(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    acc: ArrayLike | None = None,
    wrench: WrenchLike = None,
    independent: Iterable[str] | None = None,
) -> ClosedLinearization:
    """Return the linear model about a closed state; `Mechanism.linearize` says what is what.

    That of all joints has a meaning along closed states only.
    """
    whole = linearize(mech, q, qd, tau, acc, wrench, closed_sensitivity)
    given = np.asarray(q, dtype=float)
    rows = given.reshape(-1, mech.n)
    rates = np.broadcast_to(0.0 if qd is None else np.asarray(qd, dtype=float), given.shape).reshape(rows.shape)
    first = rows[0] if len(rows) else project(mech, np.zeros(mech.n))[0]
    z = independent_joints(mech, first, independent)
    for k, row in enumerate(rows[1:], 1):
        independent_joints(mech, row, [mech.names[j] for j in z], f"in row {k}")
    joints = np.empty((len(rows), 2 * mech.n, 2 * len(z)))
    for made, a, b in zip(joints, rows, rates, strict=True):
        made[:] = tangent(mech, a, b, z).joints
    joints = joints.reshape(*given.shape[:-1], *joints.shape[1:])
    kept = np.concatenate([z, mech.n + z])
    return ClosedLinearization(
        (whole.A @ joints)[..., kept, :],
        whole.B[..., kept, :],
        whole.rate[..., kept],
        tuple(whole.states[k] for k in kept),
        whole.inputs,
        joints,
    )


def closed_trim(
    mech: Linkage,
    guess: ArrayLike | None = None,
    tau: ArrayLike | Mapping[str, float] | None = None,
    hold: Iterable[str] = (),
    tolerance: float = 1e-9,
    wrench: WrenchLike = None,
) -> Equilibrium:
    """Return an equilibrium near a posture; `Mechanism.trim` says what is what."""
    found = trim(mech, guess, tau, hold, tolerance, wrench, _closed_search)
    if tau is not None:
        return found
    still = np.zeros(mech.n)  # of more motors than freedoms the least torque
    load = np.asarray(closed_inverse(mech, found.q, still, still, wrench))
    return Equilibrium(found.q, load[mech.actuated_mask], found.residual)


def _closed_search(
    mech: Linkage, guess: Array, free: NDArray[np.bool_], rows: NDArray[np.bool_], wanted: Array, wrench: WrenchLike
) -> tuple[Array, Array]:
    """Return a closed posture whose loads in `rows` are as wanted, and the loads; joints and multipliers are found."""
    n, still = mech.n, np.zeros(mech.n)
    held = [name for name, moves in zip(mech.names, free, strict=True) if not moves]
    q, _ = project(mech, guess, None, held)
    m = len(constraint_names(mech))

    def ask(x: Array) -> tuple[Array, Array, Array]:
        d = hybrid_sensitivity(mech.tree, x[:n], still, still, wrench, drive="inverse", name="qdd")
        found = closure_of(mech, x[None, :n])
        A, lam = found.A[0], x[n:]
        h = found.holonomic
        phi = found.residual()[0, h]
        load = d.y - A.T @ lam
        turning = (found.slopes()[0] * lam[:, None, None]).sum(axis=0)
        J = np.block([[(d.dy_dq - turning)[rows], -A.T[rows]], [A[h], np.zeros((len(phi), m))]])
        return load, np.concatenate([(load - wanted)[rows], phi]), J[:, np.append(free, np.ones(m, dtype=bool))]

    x, load = search_for(mech, ask, np.concatenate([q, np.zeros(m)]), np.append(free, np.ones(m, dtype=bool)))
    return x[:n], load
