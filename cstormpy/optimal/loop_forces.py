"""Forces of loops along a motion: those that are unknowns of the search, and those that the motion itself determines.

With τ_r the inverse dynamics of the open chain and A q̇ = 0 the constraints, of which c are cut (their multipliers λ_c
are given) and r are not, the load of the joints is

    (a)  τ_o = τ_r - A_cᵀ λ_c                                  Xiang et al. 2008, (38): the wrench at the cut
    (b)  [D A_rᵀ; A_r 0] (w, λ_r) = (τ_o, 0),    τ = D w       D = 1 for joints with a motor, else 0

(b) are the conditions for the least ½ ‖τ‖² with τ + A_rᵀ λ_r = τ_o and no torque where there is no motor: Kim 2012,
(58) where that leaves no choice, (59)-(66) where it does. Where nothing is left for (b), τ = τ_o, also in joints
without motor. The derivative of (b) to anything is the same system with another right side,

    (c)  (dτ_r - dA_cᵀ λ_c - dA_rᵀ λ_r - A_cᵀ dλ_c, -dA_r w)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstormpy.loops.closure import Closure, closure_of, constraint_names
from cstormpy.optimal.samples import Array

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Shared:
    """The forces at N samples: torques (N, n), multipliers (N, m), and what their derivatives need."""

    closure: Closure
    tau: Array
    multipliers: Array
    w: Array
    matrix: Array | None  # of (b), (N, n + r, n + r)


class LoopForces:
    """Forces with which the loops of a mechanism share the load of a motion.

    Parameters
    ----------
    mech : Mechanism
    cut, rest : ndarray of int
        Rows of the constraints whose multipliers are given, and of those that follow; no row depends on others.
    """

    def __init__(self, mech: Mechanism, cut: Indices, rest: Indices) -> None:
        self.mech, self.cut, self.rest = mech, cut, rest
        self.names = [constraint_names(mech)[k] for k in cut]
        self.motors = mech.actuated_mask.astype(np.float64) if len(rest) else np.ones(mech.n)

    def shared(self, q: Array, load: Array, given: Array, mech: Mechanism | None = None) -> Shared:
        """Return the forces at postures (N, n) where the open chain needs the torques `load`, with λ_c given.

        Another mechanism is of the same structure: another design.
        """
        found, n, rest = closure_of(mech or self.mech, q), self.mech.n, self.rest
        A = found.A
        multipliers = np.zeros(A.shape[:2])
        multipliers[:, self.cut] = given
        load = load - np.einsum("sci,sc->si", A[:, self.cut], given)  # (a)
        if not len(rest):
            return Shared(found, load, multipliers, load, None)
        matrix = np.zeros((len(q), n + len(rest), n + len(rest)))
        matrix[:, range(n), range(n)] = self.motors
        matrix[:, n:, :n] = A[:, rest]
        matrix[:, :n, n:] = np.swapaxes(A[:, rest], 1, 2)
        right = np.concatenate([load, np.zeros((len(q), len(rest)))], axis=1)
        both = solved(matrix, right[..., None])[..., 0]  # (b)
        multipliers[:, rest] = both[:, n:]
        return Shared(found, self.motors * both[:, :n], multipliers, both[:, :n], matrix)

    def derivatives(self, at: Shared, columns: Array) -> tuple[Array, Array]:
        """Return those of τ and λ to q, q̇ and q̈, (N, 3, n + m, n), and to λ_c, (N, n + m, c).

        `columns`, (N, 3, n, n), are those of the open chain's torques.
        """
        n, rest, cut = self.mech.n, self.rest, self.cut
        count, m = at.multipliers.shape
        slopes = at.closure.slopes()
        right = np.zeros((count, n + len(rest), 3 * n + len(cut)))
        right[:, :n, : 3 * n] = np.moveaxis(columns, 1, 2).reshape(count, n, 3 * n)
        right[:, :n, :n] -= np.einsum("sk,skij->sij", at.multipliers, slopes)
        right[:, :n, 3 * n :] = -np.swapaxes(at.closure.A[:, cut], 1, 2)
        right[:, n:, :n] = -np.einsum("skij,si->skj", slopes[:, rest], at.w)
        both = right if at.matrix is None else solved(at.matrix, right)  # (c)
        whole = np.zeros((count, n + m, 3 * n + len(cut)))
        whole[:, :n] = self.motors[:, None] * both[:, :n]
        whole[:, n + rest] = both[:, n:]
        whole[:, n + cut, 3 * n + np.arange(len(cut))] = 1.0
        return np.moveaxis(whole[..., : 3 * n].reshape(count, n + m, 3, n), 2, 1), whole[..., 3 * n :]

    def by_design(self, at: Shared, load: Array, dA: Array) -> Array:
        """Return the derivatives of τ and λ to a design, (N, n + m, k), from those of τ_r (N, n, k) and of A."""
        n, rest = self.mech.n, self.rest
        count, m = at.multipliers.shape
        right = np.zeros((count, n + len(rest), load.shape[-1]))
        right[:, :n] = load - np.einsum("smnk,sm->snk", dA, at.multipliers)
        right[:, n:] = -np.einsum("smnk,sn->smk", dA[:, rest], at.w)
        both = right if at.matrix is None else solved(at.matrix, right)  # (c)
        whole = np.zeros((count, n + m, right.shape[-1]))
        whole[:, :n], whole[:, n + rest] = self.motors[:, None] * both[:, :n], both[:, n:]
        return whole


def solved(matrix: Array, right: Array) -> Array:
    """Return the solutions, NaN where a posture is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)
