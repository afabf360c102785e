"""Exact sensitivities of the hybrid dynamics of a closed mechanism.

With y = f(q, q̇, u) of the open chain, and the forces Aᵀ λ of the loops acting on it,

    y = f(q, q̇, u + [Aᵀλ]_v) - [Aᵀλ]_u,    A q̈ + Ȧ q̇ = 0

and for a change d of q, q̇ or u (Y is ∂f/∂u, W = [Y A_vᵀ] as in `loops.dynamics`)

    (a)  dy = ∂f + Y [dAᵀ λ]_v - [dAᵀ λ]_u + (W - A_uᵀ) dλ
    (b)  (A_v W_v) dλ = -(A_v dq̈_v|_{dλ = 0} + A_u dq̈_u + dA q̈ + d(Ȧ q̇))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import Together
from cstormpy.errors import InvalidValue
from cstormpy.loops.assembly import LEAST, refuse_open
from cstormpy.loops.closure import closure_of
from cstormpy.loops.dynamics import columns, forces_of_loops, inverse_of, multipliers_of, wanted_accelerations
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = ["ClosedSensitivity", "closed_sensitivity", "closed_sensitivity_evaluator"]


class ClosedSensitivity(HybridSensitivity):
    """The answer of the hybrid dynamics of a closed mechanism with its derivatives.

    Attributes
    ----------
    y, qdd, tau : ndarray, (n,) or (N, n)
    dy_dq, dy_dqd, dy_du : ndarray, (n, n) or (N, n, n)
        Of the answer as it continues beside the states that close the loops: only directions that keep them closed
        have a meaning of their own.
    multipliers, loop_wrenches, rank
        As in `loops.dynamics.ClosedDynamics`.
    """

    __slots__ = ("loop_wrenches", "multipliers", "rank")

    def __init__(self, parts: Together, columns: Array, multipliers: Array, loop_wrenches: Array, rank: Any) -> None:
        super().__init__(parts, columns)
        self.multipliers, self.loop_wrenches, self.rank = multipliers, loop_wrenches, rank


def closed_sensitivity(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    drive: str = "own",
    name: str = "u",
) -> ClosedSensitivity:
    """Return y of a closed mechanism and its derivatives to q, q̇ and u, of one sample or of a batch."""
    samples = read_samples(mech.tree, {"q": q, "qd": qd, name: u}, wrench, base)
    if samples.symbolic:
        raise InvalidValue(f"loop {mech.loops[0].name!r}: sensitivities of loops cannot be written down with symbols")
    rates, given = samples.rows["qd"], samples.rows[name]
    shape, n = np.shape(q), mech.n
    active = mech.active_mask if drive == "own" else np.zeros(n, dtype=bool)

    def ask(forced: Array) -> tuple[Array, Array]:
        """Return y and its derivatives of the open chain under u."""
        d = hybrid_sensitivity(mech.tree, q, qd, forced.reshape(shape), wrench, base, threads, False, drive, name)
        return d.y.reshape(-1, n), d.columns.reshape(-1, 3, n, n)

    found = closure_of(mech, samples.rows["q"])
    refuse_open(mech, found, rates, samples.single)
    y_r, D = ask(given)
    A, Y = found.A, D[:, 2]
    W = columns(A, Y, active)
    wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))
    lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
    _refuse_redundant(mech, A, rank, active)
    force = np.einsum("smn,sm->sn", A, lam)
    y, D = ask(given + np.where(active, 0.0, force))
    y = y - np.where(active, force, 0.0)
    D = _corrected(found, D, W, lam, np.where(active, given, y), rates, active)
    parts = Together(samples.shaped(y), samples.shaped(given.copy()), active)
    wrenches = samples.shaped(forces_of_loops(mech, lam))
    rank_of = int(rank[0]) if samples.single else rank
    return ClosedSensitivity(parts, samples.shaped(D), samples.shaped(lam), wrenches, rank_of)


def closed_sensitivity_evaluator(mech: Linkage, wrench: WrenchLike = None) -> Callable[..., tuple[Array, Array]]:
    """Return f(q, qd, u) -> (y, D), D of shape (3, n, n)."""

    def evaluate(q: Array, qd: Array, u: Array) -> tuple[Array, Array]:
        found = closed_sensitivity(mech, q, qd, u, wrench)
        return found.y, found.columns

    return evaluate


def _corrected(
    found: Any, D: Array, W: Array, lam: Array, qdd: Array, rates: Array, active: NDArray[np.bool_]
) -> Array:
    """Return the derivatives (N, 3, n, n) of the closed mechanism from those D of the open chain under all forces."""
    A, on = found.A, active[:, None]
    slopes = found.slopes()
    turning = np.einsum("smjk,sm->sjk", slopes, lam)  # of Aᵀ λ
    b = D.copy()
    b[:, 0] += D[:, 2] @ np.where(on, 0.0, turning) - np.where(on, turning, 0.0)
    to_q, to_qd = found.bias_slopes(rates)
    accelerations = np.where(on, 0.0, b)
    accelerations[:, 2] += np.where(on, np.eye(len(active)), 0.0)
    wanted = -(A[:, None] @ accelerations)
    wanted[:, 0] -= np.einsum("smjk,sj->smk", slopes, qdd) + to_q
    wanted[:, 1] -= to_qd
    inverse, _ = inverse_of(np.where(active, 0.0, A) @ W)
    d_lam = inverse[:, None] @ wanted  # (b)
    return np.asarray(b + (W - np.where(on, np.swapaxes(A, -1, -2), 0.0))[:, None] @ d_lam)  # (a)


def _refuse_redundant(mech: Linkage, A: Array, rank: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
    """Refuse active joints that the loops tie to each other: how they share a load has no derivative here."""
    if not active.any():
        return
    whole = np.linalg.matrix_rank(A, tol=LEAST * float(np.abs(A).max(initial=0.0)))
    if (rank < whole).any():
        joints = ", ".join(repr(name) for name in mech.active)
        raise InvalidValue(
            f"active joints {joints}: are more than the freedoms that the loops leave, so that their torques are a "
            "choice (redundant actuation), whose derivative is not given; make fewer joints active"
        )
