"""Exact sensitivities of the hybrid dynamics of a closed mechanism.

With y = f(q, q̇, u) of the open chain, and the forces Aᵀ λ of the loops acting on it,

    y = f(q, q̇, u + [Aᵀλ]_v) - [Aᵀλ]_u,    A q̈ + Ȧ q̇ = 0

and for a change d of q, q̇ or u (Y is ∂f/∂u, W = [Y A_vᵀ] as in `loops.dynamics`)

    (a)  dy = ∂f + Y [dAᵀ λ]_v - [dAᵀ λ]_u + (W - A_uᵀ) dλ
    (b)  (A_v W_v) dλ = -(A_v dq̈_v|_{dλ = 0} + A_u dq̈_u + dA q̈ + d(Ȧ q̇))

Of inverse dynamics, with the torques τ_r of the open chain, p the joints without a motor and a those with one,

    (c)  A_pᵀ λ = τ_r,p,    dλ = (A_pᵀ)⁺ (dτ_r,p - dA_pᵀ λ),    dτ_a = dτ_r,a - dA_aᵀ λ - A_aᵀ dλ

What of λ the passive joints, or those without a motor, do not feel changes as `loops.redundancy` tells.
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
from cstormpy.loops.assembly import is_carried, refuse_open, written_rows
from cstormpy.loops.carried import DEFINITE, OpenChain, side_by_side
from cstormpy.loops.closure import Closure, closure_of, constraint_names
from cstormpy.loops.dynamics import (
    LoopLoads,
    closed_inverse,
    columns,
    inverse_of,
    least_spread,
    multipliers_of,
    names_where,
    singular_row,
    wanted_accelerations,
    with_least_torque,
)
from cstormpy.loops.opening import without_opening
from cstormpy.loops.redundancy import Redundancy, matrix_rank, pseudoinverse, unfelt_change, weights_of
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
    dy_dbase : ndarray, (n, 12) or (N, n, 12)
        As in `HybridSensitivity`.
    multipliers, loop_wrenches, rank
        As in `loops.dynamics.ClosedDynamics`.
    """

    __slots__ = ("_mech", "_rank", "multipliers")

    def __init__(
        self,
        mech: Linkage,
        parts: Together | Array,
        columns: Array,
        multipliers: Array,
        rank: Any = None,
        to_base: Array | None = None,
    ) -> None:
        super().__init__(parts, columns, to_base)
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
    redundancy: Redundancy = None,
    to_base: bool = False,
    drive: str = "own",
    name: str = "u",
    check: bool = True,
) -> ClosedSensitivity:
    """Return y of a closed mechanism and its derivatives to q, q̇ and u, of one sample or of a batch.

    Without `check` states that do not close the loops are taken as they are, as in the stages of a step.
    """
    n = mech.n
    active = mech.active_mask if drive == "own" else np.zeros(n, dtype=bool)
    plain = wrench is None and base is None and redundancy is None and not to_base
    if plain and (made := closed_lines.at_once(mech, drive, "sensitivity", q, qd, u)):
        y, lam, D = made
        return ClosedSensitivity(mech, Together(y, u.copy(), active), D, lam)  # type: ignore[union-attr]
    L = weights_of(redundancy, names_where(mech, active))
    samples = read_samples(mech.tree, {"q": q, "qd": qd, name: u}, wrench, base)
    rates, given = samples.rows["qd"], samples.rows[name]
    made = None if to_base else closed_lines.rows_of(mech, drive, "sensitivity", samples, threads)
    if made is not None:
        y, lam, D = map(samples.shaped, made)
        return ClosedSensitivity(mech, Together(y, samples.shaped(given.copy()), active), D, lam)

    found = closure_of(mech, samples.rows["q"])
    by_loops = samples.symbolic and is_carried(mech.numeric, drive)
    if not samples.symbolic:
        found = without_opening(mech, found)
    chain = OpenChain(mech, found, samples, drive, name, wrench, base, threads, to_base, by_loops)
    y_r, D = chain.ask(given)
    A, Y = found.A, D[:, :, 2 * n : 3 * n]
    W, shared = columns(A, Y, active), False
    if samples.symbolic:
        lam, inverse, rank = written_multipliers(mech, found, samples, y_r, W, active)
    else:
        if check:
            refuse_open(mech, found, rates, samples.single)
        wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))
        lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
        if not active.any() and (text := singular_row(mech, A, rank, samples.single)):
            raise InvalidValue(f"{text}; what moves there has no derivatives")
        inverse, _ = inverse_of(np.where(active, 0.0, A) @ W)
        _, lam, shared = with_least_torque(A, W, y_r, lam, rank, active, L)
    force = (np.swapaxes(A, -1, -2) @ lam[..., None])[..., 0]
    y, D = chain.ask(given + np.where(active, 0.0, force))
    y = y - np.where(active, force, 0.0)
    b, way, d_lam = _corrected(found, D, W, lam, np.where(active, given, y), rates, active, inverse)
    D = b + way @ d_lam
    if not samples.symbolic and active.any() and (rank < found.m).any():
        d_lam = _with_shares(found, lam, y, D, d_lam, active, L if shared else None)
        D = b + way @ d_lam
    return _answer(mech, samples, y, D, samples.shaped(lam), int(rank[0]) if samples.single else rank, active)


def written_multipliers(
    mech: Linkage, found: Closure, samples: Samples, y_r: Any, W: Any, active: NDArray[np.bool_]
) -> tuple[Any, Any, Any]:
    """Return λ, S⁺ and the rank of one sample of symbols, of constraints that are independent in closed postures."""
    rows = written_rows(mech.numeric, active)
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


def _answer(
    mech: Linkage, samples: Samples, y: Array, D: Array, lam: Array, rank: Any, active: NDArray[np.bool_]
) -> ClosedSensitivity:
    """Return the answer of derivatives (N, n, k) that stand side by side."""
    n, given = mech.n, list(samples.rows.values())[2]
    matrices = np.ascontiguousarray(np.moveaxis(D[:, :, : 3 * n].reshape(-1, n, 3, n), 2, 1))
    parts = Together(samples.shaped(y), samples.shaped(given.copy()), active)
    of_base = samples.shaped(D[:, :, 3 * n :]) if D.shape[2] > 3 * n else None
    return ClosedSensitivity(mech, parts, samples.shaped(matrices), lam, rank, of_base)


def _corrected(
    found: Any, D: Array, W: Array, lam: Array, qdd: Array, rates: Array, active: NDArray[np.bool_], inverse: Array
) -> tuple[Any, Any, Any]:
    """Return b, W - A_uᵀ and dλ, of which (a) makes the derivatives of the closed mechanism, b + (W - A_uᵀ) dλ.

    D (N, n, k) are those of the open chain under all forces, `inverse` is that of A_v W_v.
    """
    A, on, n = found.A, active[:, None], len(active)
    to = [slice(k * n, (k + 1) * n) for k in range(3)]
    slopes = found.slopes()
    turning = (slopes * lam[..., None, None]).sum(axis=1)  # of Aᵀ λ
    b = D.copy()
    b[:, :, to[0]] += D[:, :, to[2]] @ np.where(on, 0.0, turning) - np.where(on, turning, 0.0)
    to_q, to_qd = found.bias_slopes(rates)
    accelerations = np.where(on, 0.0, b)
    accelerations[:, :, to[2]] += np.where(on, np.eye(n), 0.0)
    wanted = -(A @ accelerations)
    wanted[:, :, to[0]] -= (slopes * qdd[:, None, :, None]).sum(axis=2) + to_q
    wanted[:, :, to[1]] -= to_qd
    return b, W - np.where(on, np.swapaxes(A, -1, -2), 0.0), inverse @ wanted  # (b)


def _with_shares(
    found: Closure, lam: Array, tau: Array, D: Array, d_lam: Array, sharing: NDArray[np.bool_], L: Array | None
) -> Array:
    """Return dλ (N, m, k) with what the joints that do not share a load do not feel; D (N, n, k) without that."""
    dA = np.zeros((len(D), found.m, *D.shape[1:]))
    dA[..., : found.n] = found.slopes()
    changes = [
        unfelt_change(*each, tau[s, sharing], D[s, sharing], sharing, L)
        for s, each in enumerate(zip(found.A, dA, lam, strict=True))
    ]
    return d_lam + np.reshape(changes, d_lam.shape)


@with_its_tree
def closed_inverse_sensitivity(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
    to_base: bool = False,
) -> ClosedSensitivity:
    """Return the torques of a motion, as y, and their derivatives to q, q̇ and q̈, of one sample or of a batch.

    Raises
    ------
    InvalidValue
        As of `closed_inverse`; and for fewer actuators than freedoms: other motions than this one have no torques.
    """
    n, a = mech.n, mech.actuated_mask
    p = ~a
    L = weights_of(redundancy, names_where(mech, a))
    answer = closed_inverse(mech, q, qd, qdd, wrench, base, threads, redundancy)
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "qdd": qdd}, wrench, base)
    tree = hybrid_sensitivity(mech.tree, q, qd, qdd, wrench, base, threads, to_base, drive="inverse", name="qdd")
    found = without_opening(mech, closure_of(mech, samples.rows["q"]))
    tau, D = np.reshape(answer, (-1, n)), side_by_side(tree, to_base)
    lam = answer.multipliers.reshape(-1, found.m)
    D[:, :, :n] -= (found.slopes() * lam[..., None, None]).sum(axis=1)
    carried = np.zeros((len(tau), found.m, p.sum()))
    for s, A in enumerate(found.A):
        scale = float(np.abs(A).max(initial=0.0))
        carried[s] = pseudoinverse(A[:, p].T, scale)
        if short := int(p.sum()) - matrix_rank(A[:, p], scale):
            where, without = "" if samples.single else f" in row {s}", ", ".join(map(repr, names_where(mech, p)))
            raise InvalidValue(
                f"inverse_sensitivity: {short} freedom(s) of the mechanism have no actuator{where}: other motions than "
                f"this one need torques in joints without a motor ({without})"
            )

    def of_motors(d_lam: Array) -> Array:
        return np.where(a[:, None], D - np.swapaxes(found.A, -1, -2) @ d_lam, 0.0)

    d_lam = carried @ D[:, p]  # (c)
    if np.less(answer.rank, found.m).any():
        d_lam = _with_shares(found, lam, tau, of_motors(d_lam), d_lam, a, L)
    every = np.ones(n, dtype=bool)
    return _answer(mech, samples, tau, of_motors(d_lam), answer.multipliers, answer.rank, every)


def refuse_redundant(mech: Linkage, q: Array) -> None:
    """Refuse active joints that the loops tie to each other at a posture (n,)."""
    A, active = closure_of(mech, q[None]).A[0], mech.active_mask
    scale = float(np.abs(A).max(initial=0.0))
    if active.any() and matrix_rank(A[:, ~active], scale) < matrix_rank(A, scale):
        joints = ", ".join(repr(name) for name in mech.active)
        raise InvalidValue(
            f"active joints {joints}: are more than the freedoms that the loops leave, so that their motions cannot be "
            "chosen one by one (redundant actuation); make fewer joints active"
        )
