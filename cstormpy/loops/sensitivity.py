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

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import Together, carefully
from cstormpy.dynamics.tracing import with_its_tree
from cstormpy.errors import InvalidValue
from cstormpy.graph import require_zero
from cstormpy.graph.arrays import symbols
from cstormpy.graph.linear_algebra import solve_definite
from cstormpy.loops import lines as closed_lines
from cstormpy.loops.assembly import DEFINITE, LEAST, independent_rows, refuse_open
from cstormpy.loops.closure import Closure, closure_of, constraint_names
from cstormpy.loops.dynamics import (
    LoopLoads,
    columns,
    inverse_of,
    least_spread,
    multipliers_of,
    singular_row,
    wanted_accelerations,
)
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


class ClosedSensitivity(LoopLoads, HybridSensitivity):
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

    __slots__ = ("_mech", "_rank", "multipliers")

    def __init__(
        self, mech: Linkage, parts: Together | Array, columns: Array, multipliers: Array, rank: Any = None
    ) -> None:
        super().__init__(parts, columns)
        self._mech, self.multipliers, self._rank = mech, multipliers, rank


@with_its_tree
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
    check: bool = True,
) -> ClosedSensitivity:
    """Return y of a closed mechanism and its derivatives to q, q̇ and u, of one sample or of a batch.

    Without `check` states that do not close the loops are taken as they are, as in the stages of a step.
    """
    n = mech.n
    active = mech.active_mask if drive == "own" else np.zeros(n, dtype=bool)
    samples = read_samples(mech.tree, {"q": q, "qd": qd, name: u}, wrench, base)
    rates, given, shape = samples.rows["qd"], samples.rows[name], np.shape(q)
    made = closed_lines.rows_of(mech, drive, "sensitivity", samples, threads)
    if made is not None:
        y, lam, D = map(samples.shaped, made)
        return ClosedSensitivity(mech, Together(y, samples.shaped(given.copy()), active), D, lam)

    def ask(forced: Array) -> tuple[Array, Array]:
        """Return y and its derivatives of the open chain under u."""
        d = hybrid_sensitivity(mech.tree, q, qd, forced.reshape(shape), wrench, base, threads, False, drive, name)
        return d.y.reshape(-1, n), d.columns.reshape(-1, 3, n, n)

    found = closure_of(mech, samples.rows["q"])
    y_r, D = ask(given)
    A, Y = found.A, D[:, 2]
    W = columns(A, Y, active)
    if samples.symbolic:
        lam, inverse, rank = written_multipliers(mech, found, samples, y_r, W, active)
    else:
        if check:
            refuse_open(mech, found, rates, samples.single)
        wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))
        lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
        _refuse_redundant(mech, A, rank, active)
        if not active.any() and (text := singular_row(mech, A, rank, samples.single)):
            raise InvalidValue(f"{text}; what moves there has no derivatives")
        inverse, _ = inverse_of(np.where(active, 0.0, A) @ W)
    force = (np.swapaxes(A, -1, -2) @ lam[..., None])[..., 0]
    y, D = ask(given + np.where(active, 0.0, force))
    y = y - np.where(active, force, 0.0)
    D = _corrected(found, D, W, lam, np.where(active, given, y), rates, active, inverse)
    parts = Together(samples.shaped(y), samples.shaped(given.copy()), active)
    return ClosedSensitivity(
        mech, parts, samples.shaped(D), samples.shaped(lam), int(rank[0]) if samples.single else rank
    )


def written_multipliers(
    mech: Linkage, found: Closure, samples: Samples, y_r: Any, W: Any, active: NDArray[np.bool_]
) -> tuple[Any, Any, Any]:
    """Return λ, S⁺ and the rank of one sample of symbols, of constraints that are independent in closed postures."""
    rows = independent_rows(mech.numeric)
    _, rates, given = samples.rows.values()
    A_v = np.where(active, 0.0, found.A[0])
    wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))[0]
    inverse, indefinite = solve_definite((A_v @ W[0])[np.ix_(rows, rows)], np.eye(len(rows)), DEFINITE)
    require_zero(indefinite)
    spread = least_spread(found.A[0], rows)
    lam = spread @ (symbols(inverse) @ wanted[rows])
    return lam[None], (spread @ symbols(inverse) @ spread.T)[None], np.array([len(rows)])


def closed_sensitivity_evaluator(
    mech: Linkage, wrench: WrenchLike = None
) -> tuple[Callable[..., tuple[Array, Array]], Callable[..., ClosedSensitivity]]:
    """Return a prepared f(q, qd, u) -> (y, D), D of shape (3, n, n), and one that returns the whole answer."""
    plain = wrench is None and not mech.symbolic
    y_only, whole = closed_lines.ways_of(mech, "sensitivity") if plain else (carefully, carefully)
    n, three, m, active, empty = mech.n, 3 * mech.n, len(constraint_names(mech)), mech.active_mask, np.empty
    shape = (3, n, n)

    def evaluate(q: Array, qd: Array, u: Array) -> tuple[Array, Array]:
        y, columns = empty(n), empty(shape)
        if y_only(q, qd, u, y, empty(m), columns) == 0:
            return y, columns
        found = closed_sensitivity(mech, q, qd, u, wrench)
        return found.y, found.columns

    def answer(q: Array, qd: Array, u: Array) -> ClosedSensitivity:
        parts, lam, columns = empty(three), empty(m), empty(shape)
        if whole(q, qd, u, parts, lam, columns) == 0:
            return ClosedSensitivity(mech, parts, columns, lam)
        if y_only(q, qd, u, y := parts[:n], lam, columns) == 0:
            return ClosedSensitivity(mech, Together(y, u.copy(), active), columns, lam)
        return closed_sensitivity(mech, q, qd, u, wrench)

    return evaluate, answer


def _corrected(
    found: Any, D: Array, W: Array, lam: Array, qdd: Array, rates: Array, active: NDArray[np.bool_], inverse: Array
) -> Array:
    """Return the derivatives (N, 3, n, n) of the closed mechanism from those D of the open chain under all forces.

    `inverse` is that of A_v W_v.
    """
    A, on = found.A, active[:, None]
    slopes = found.slopes()
    turning = (slopes * lam[..., None, None]).sum(axis=1)  # of Aᵀ λ
    b = D.copy()
    b[:, 0] += D[:, 2] @ np.where(on, 0.0, turning) - np.where(on, turning, 0.0)
    to_q, to_qd = found.bias_slopes(rates)
    accelerations = np.where(on, 0.0, b)
    accelerations[:, 2] += np.where(on, np.eye(len(active)), 0.0)
    wanted = -(A[:, None] @ accelerations)
    wanted[:, 0] -= (slopes * qdd[:, None, :, None]).sum(axis=2) + to_q
    wanted[:, 1] -= to_qd
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
