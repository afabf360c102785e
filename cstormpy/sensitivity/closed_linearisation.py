"""Linear models and equilibria of closed mechanisms, in the coordinates that the loops leave free.

With z some independent joints, as many as there are freedoms, the others follow: with A q̇ = 0 and A_d the columns of
the dependent joints,

    (a)  δq = N δz,            N = [1; -A_d⁻¹ A_z]
    (b)  δq̇ = N δż + G δz,     G = [0; -A_d⁻¹ ∂(A q̇)/∂q N]

so that the derivatives of q̈ to q and q̇ along (a) and (b) are those of z̈ to (z, ż). An equilibrium is a closed posture
where the loads of the open chain are carried by motors and by the forces Aᵀ λ of the loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import entries
from cstormpy.dynamics.assembly import LEAST, project
from cstormpy.dynamics.closed import pseudoinverse
from cstormpy.dynamics.closure import closure_of, constraint_names
from cstormpy.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]

__all__ = ["Tangent", "closed_loads", "independent_joints", "tangent"]


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


def independent_joints(mech: Mechanism, q: Array, wanted: Iterable[str] | None = None) -> NDArray[np.int64]:
    """Return coordinates that may be given freely in a closed posture: those wanted, or the best conditioned.

    Motors come before other joints where they do as well.

    Raises
    ------
    InvalidValue
        If those that are wanted are too few, too many, or tied to each other.
    """
    A = closure_of(mech, q[None]).A[0]
    scale = float(np.abs(A).max(initial=0.0))
    rank = int(np.linalg.matrix_rank(A, tol=LEAST * scale)) if A.size else 0
    if wanted is not None:
        return _checked(mech, A, rank, scale, wanted)
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


def _checked(mech: Mechanism, A: Array, rank: int, scale: float, wanted: Iterable[str]) -> NDArray[np.int64]:
    chosen: list[int] = []
    for name in [wanted] if isinstance(wanted, str) else entries(wanted, "independent", "names of joints"):
        try:
            chosen += mech.joint_indices(name)
        except UnknownName as error:
            raise UnknownName(f"independent: {error}") from None
    freedoms = mech.n - rank
    if len(set(chosen)) != freedoms:
        raise InvalidValue(f"independent: expected {freedoms} coordinate(s), as many as freedoms, got {len(chosen)}")
    rest = np.setdiff1d(np.arange(mech.n), chosen)
    if rank and np.linalg.matrix_rank(A[:, rest], tol=LEAST * scale) < rank:
        names = ", ".join(repr(mech.names[k]) for k in chosen)
        raise InvalidValue(
            f"independent: loop {constraint_names(mech)[0]}: the joints {names} do not determine the others here; "
            "name others, or none"
        )
    return np.array(chosen, dtype=np.int64)


def tangent(mech: Mechanism, q: Array, qd: Array, independent: NDArray[np.int64]) -> Tangent:
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


def closed_loads(mech: Mechanism, guess: Array, hold: Iterable[str]) -> tuple[Array, Array, Any]:
    """Return a closed posture near a guess, multipliers to begin with, and what the loops add to the loads there.

    That is a function of (q, λ) that returns Aᵀ λ, its derivatives to q and λ, and the residual with its derivative.
    """
    q, _ = project(mech, guess, None, hold)
    m = len(constraint_names(mech))

    def ask(q: Array, lam: Array) -> tuple[Array, Array, Array, Array, Array]:
        found = closure_of(mech, q[None])
        A = found.A[0]
        turning = (found.slopes()[0] * lam[:, None, None]).sum(axis=0)
        return A.T @ lam, turning, A.T, found.residual()[0], A

    return q, np.zeros(m), ask
