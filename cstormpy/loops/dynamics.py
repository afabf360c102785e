"""Dynamics of closed mechanisms: the open chain's hybrid dynamics, corrected by the multipliers of its loops.

With u the active joints and v the others, q̈_r and τ_r the hybrid dynamics of the open chain, A q̇ = 0 the constraints,

    (a)  (A_v M_vv⁻¹ A_vᵀ) λ = -(A q̈_r + Ȧ q̇),        W = M_vv⁻¹ A_vᵀ
    (b)  q̈_v = q̈_r,v + W λ,    τ_u = τ_r,u + M_uv W λ - A_uᵀ λ

after Kim (2012), (54) and (55). M_vv⁻¹ and M_uv M_vv⁻¹ are the derivative of the open chain's answer to u. Where the
multipliers are not unique they are the least; where the active joints leave them open ("redundant actuation") they are
those of the least torque, Kim (63)-(66), which may be weighted, or the least, after (61): `loops.redundancy`. Inverse
dynamics is of the actuated joints, (56)-(66).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import HybridDynamics, Together, carefully, copy_out, hybrid_dynamics
from cstormpy.dynamics.tracing import with_its_tree
from cstormpy.errors import InvalidValue
from cstormpy.graph import require_zero
from cstormpy.graph.arrays import symbols
from cstormpy.graph.linear_algebra import solve_definite
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.scales import coordinate_scales, falling_of, torque_scales, work_of
from cstormpy.loops import lines as closed_lines
from cstormpy.loops.assembly import independent_rows, is_carried, refuse_open, singular, written_rows
from cstormpy.loops.carried import DEFINITE, OpenChain
from cstormpy.loops.closure import LEAST, Closure, closure_of, constraint_names, ends_of
from cstormpy.loops.opening import without_opening
from cstormpy.loops.projection import row_scales
from cstormpy.loops.redundancy import Redundancy, least_torque, matrix_rank, pseudoinverse, weights_of
from cstormpy.reporting import notice_once

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

CONTRADICTION = 1e-6
"""Accelerations that miss a constraint by more than this part of what they are contradict it."""

BALANCE = 1e-9
"""A load that no actuator carries counts as none below this part of the largest load."""


class LoopLoads:
    """Base of the answers of closed mechanisms: what the loops carry, from the multipliers of the constraints."""

    __slots__ = ()
    _mech: Linkage
    _rank: Any
    multipliers: Any

    @property
    def loop_wrenches(self) -> Any:
        """The wrench that each loop carries, (loops, 6) or (N, loops, 6)."""
        return wrenches_of(self._mech, self.multipliers)

    @property
    def rank(self) -> Any:
        """Number of constraints that determine the motion; where they are sound, of those that are independent."""
        return rank_of(self._mech, self.multipliers) if self._rank is None else self._rank


class ClosedDynamics(LoopLoads, HybridDynamics):
    """The answer of the hybrid dynamics of a closed mechanism.

    Attributes
    ----------
    y, qdd, tau : ndarray, (n,) or (N, n)
        As in `HybridDynamics`.
    multipliers : ndarray, (m,) or (N, m)
        Of the constraints: Aᵀ λ is what the loops do to the joints.
    loop_wrenches : ndarray, (loops, 6) or (N, loops, 6)
        Moment and force on link_b of each loop, at the origin of frame B, in the axes of frame A; the opposite acts on
        link_a.
    rank : int or ndarray of int, (N,)
        How many constraints determine the motion, of those that passive joints feel.
    """

    __slots__ = ("_mech", "_rank", "multipliers")

    def __init__(self, mech: Linkage, parts: Together | Array, multipliers: Any, rank: Any = None) -> None:
        super().__init__(parts)
        self._mech, self.multipliers, self._rank = mech, multipliers, rank


class ClosedAnswer(np.ndarray[Any, np.dtype[np.float64]]):
    """Torques or accelerations of a closed mechanism, with the forces of its loops; see `ClosedDynamics`.

    What is computed from it is a plain array.
    """

    multipliers: Array
    loop_wrenches: Array
    rank: Any

    @classmethod
    def of(cls, values: Any, multipliers: Any, loop_wrenches: Any, rank: Any) -> Any:
        """Return values with what belongs to them; symbols remain plain."""
        if values.dtype == object:
            return values
        made = np.asarray(values).view(cls)
        made.multipliers, made.loop_wrenches, made.rank = multipliers, loop_wrenches, rank
        return made

    def __array_wrap__(self, array: Any, *context: Any) -> Any:
        """Return what is computed as a plain array or number."""
        plain = np.asarray(array)
        return plain if plain.ndim else plain[()]


def wrenches_of(mech: Linkage, multipliers: Any) -> Any:
    """Return (loops, 6) wrenches from multipliers (m,), or (N, loops, 6) from (N, m)."""
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    out = np.zeros((*multipliers.shape[:-1], len(loops), 6), dtype=multipliers.dtype)
    at = 0
    for k, loop in enumerate(loops):
        out[..., k, np.flatnonzero(loop.directions)] = multipliers[..., at : at + loop.count]
        at += loop.count
    return out


def rank_of(mech: Linkage, multipliers: Any) -> Any:
    """Return the rank, or one for each row, of constraints as independent as those of closed postures are."""
    rank = len(independent_rows(mech))
    return rank if multipliers.ndim == 1 else np.full(len(multipliers), rank)


@with_its_tree
def closed_hybrid(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
    drive: str = "own",
    name: str = "u",
    check: bool = True,
) -> ClosedDynamics:
    """Return the hybrid dynamics of a closed mechanism; of forward dynamics the drive is "forward".

    Without `check` a state that does not close the loops is taken as it is, as in the stages of a step.
    """
    active = mech.active_mask if drive == "own" else np.zeros(mech.n, dtype=bool)
    plain = wrench is None and base is None and redundancy is None
    if plain and (made := closed_lines.at_once(mech, drive, "dynamics", q, qd, u)):
        return ClosedDynamics(mech, Together(made[0], u.copy(), active), made[1])  # type: ignore[union-attr]
    L = weights_of(redundancy, names_where(mech, active))
    samples = read_samples(mech.tree, {"q": q, "qd": qd, name: u}, wrench, base)
    given = samples.rows[name]
    made = closed_lines.rows_of(mech, drive, "dynamics", samples, threads)
    if made is not None:
        y, lam = map(samples.shaped, made)
        return ClosedDynamics(mech, Together(y, samples.shaped(given.copy()), active), lam)
    found = closure_of(mech, samples.rows["q"])
    by_loops = samples.symbolic and is_carried(mech.numeric, drive)
    if not samples.symbolic:
        found = without_opening(mech, found)
    y_r, D = OpenChain(mech, found, samples, drive, name, wrench, base, threads, by_loops=by_loops).ask(given)
    Y = D[:, :, 2 * mech.n :]
    if samples.symbolic:
        y, lam, rank = _written_down(mech, found, samples, y_r[0], Y[0], active, given)
    else:
        if check:
            refuse_open(mech, found, samples.rows["qd"], samples.single)
        wanted = wanted_accelerations(found, samples.rows["qd"], np.where(active, given, y_r))
        W = columns(found.A, Y, active)
        lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
        if check and not active.any() and (text := singular_row(mech, found.A, rank, samples.single)):
            notice_once(f"{text}; accelerations are those of the constraints that are left, multipliers the least")
        y, lam, _ = with_least_torque(found.A, W, y_r, lam, rank, active, L)
    parts = Together(samples.shaped(y), samples.shaped(given.copy()), active)
    rank = int(rank[0]) if samples.single else rank
    return ClosedDynamics(mech, parts, samples.shaped(lam), rank)


def closed_forward(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> Any:
    """Return the accelerations of a closed mechanism under torques in all joints."""
    found = closed_hybrid(mech, q, qd, tau, wrench, base, threads, drive="forward", name="tau")
    return ClosedAnswer.of(found.y, found.multipliers, found.loop_wrenches, found.rank)


def closed_evaluator(
    mech: Linkage, wrench: WrenchLike = None
) -> tuple[Callable[..., Array], Callable[..., ClosedDynamics]]:
    """Return a prepared f(q, qd, u, out=None) -> y, and one that returns the whole answer."""
    plain = wrench is None and not mech.symbolic
    y_only, whole = closed_lines.ways_of(mech, "dynamics") if plain else (carefully, carefully)
    n, three, m, active, empty = mech.n, 3 * mech.n, len(constraint_names(mech)), mech.active_mask, np.empty

    def evaluate(q: Array, qd: Array, u: Array, out: Array | None = None) -> Array:
        y = empty(n) if out is None else out
        if y_only(q, qd, u, y, empty(m)) == 0:
            return y
        found = closed_hybrid(mech, q, qd, u, wrench).y
        return found if out is None else copy_out(found, out)

    def answer(q: Array, qd: Array, u: Array) -> ClosedDynamics:
        parts, lam = empty(three), empty(m)
        if whole(q, qd, u, parts, lam) == 0:
            return ClosedDynamics(mech, parts, lam)
        if y_only(q, qd, u, y := parts[:n], lam) == 0:
            return ClosedDynamics(mech, Together(y, u.copy(), active), lam)
        return closed_hybrid(mech, q, qd, u, wrench)

    return evaluate, answer


def names_where(mech: Linkage, chosen: NDArray[np.bool_]) -> list[str]:
    """Return the names of the coordinates that are chosen."""
    return [name for name, on in zip(mech.names, chosen, strict=True) if on]


def _transposed(A: Array, lam: Array) -> Array:
    """Return Aᵀ λ, (N, n)."""
    return np.einsum("smn,sm->sn", A, lam)


def wanted_accelerations(found: Closure, qd: Array, qdd: Array) -> Array:
    """Return -(A q̈ + Ȧ q̇), (N, m)."""
    return -(found.A @ qdd[..., None] + found.rate(qd) @ qd[..., None])[..., 0]


def columns(A: Array, Y: Array, active: NDArray[np.bool_]) -> Array:
    """Return W in the rows of v and M_uv W in those of u, (N, n, m)."""
    return Y @ np.where(active[:, None], 0.0, np.swapaxes(A, -1, -2))


def singular_row(mech: Linkage, A: Array, rank: NDArray[np.int64], single: bool) -> str | None:
    """Return what to say of the first row whose posture is singular, if there is one."""
    rows = (k for k in np.flatnonzero(rank < A.shape[1]).tolist())
    return next((text for k in rows if (text := singular(mech, A[k], None if single else k))), None)


def with_least_torque(
    A: Array, W: Array, y_r: Array, lam: Array, rank: NDArray[np.int64], active: NDArray[np.bool_], L: Array | None
) -> tuple[Array, Array, bool]:
    """Return y and λ, and whether λ was open to be that of the least torque, weighted by LᵀL; None: the least λ."""

    def answer() -> Array:
        return np.asarray(y_r + (W @ lam[..., None])[..., 0] - np.where(active, _transposed(A, lam), 0.0))

    y = answer()
    if L is None or not (rank < A.shape[1]).any() or not active.any():
        return y, lam, False
    lam = np.array([least_torque(*one, active, L) for one in zip(A, lam, y[:, active], strict=True)])
    return answer(), lam, True


def inverse_of(S: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return S⁺ of symmetric matrices (N, m, m), and their ranks."""
    values, vectors = np.linalg.eigh(S)
    kept = values > LEAST * np.maximum(values[:, -1:], 0.0) * 1e-3
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    return (vectors * inverse[:, None]) @ np.swapaxes(vectors, -1, -2), kept.sum(axis=1)


def multipliers_of(
    mech: Linkage, found: Closure, W: Array, wanted: Array, active: NDArray[np.bool_], single: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Return λ of (a), the least one, and the ranks; refuse what the prescribed accelerations contradict."""
    S = np.where(active, 0.0, found.A) @ W
    inverse, rank = inverse_of(S)
    lam = (inverse @ wanted[..., None])[..., 0]
    sizes = row_scales(mech)
    off = np.abs((S @ lam[..., None])[..., 0] - wanted)
    largest = np.abs(wanted / sizes).max(axis=1, keepdims=True, initial=0.0)
    scale = np.maximum(min(1.0, falling_of(mech)), largest) * sizes
    if (off > CONTRADICTION * scale).any():
        row, k = divmod(int(np.argmax(off / scale)), off.shape[1])
        where = "" if single else f" in row {row}"
        if active.any():
            joints = ", ".join(map(repr, names_where(mech, active)))
            why = f"the accelerations of the active joints ({joints}) contradict it{where}; make fewer joints active"
        else:
            why = f"cannot be kept closed{where}: the posture is singular"
        raise InvalidValue(
            f"loop {constraint_names(mech)[k]}: {why}{ends_of(mech, k)} (rank {rank[row]} of {len(S[row])} constraints)"
        )
    return lam, rank


def _written_down(
    mech: Linkage, found: Closure, samples: Samples, y_r: Any, Y: Any, active: NDArray[np.bool_], given: Any
) -> tuple[Any, Any, Any]:
    """Return y, λ and the rank of one sample of symbols: of constraints that are independent in closed postures."""
    rows = written_rows(mech.numeric, active)
    A, qd = found.A[0][rows], samples.rows["qd"][0]
    A_v, A_u = A.copy(), A.copy()
    A_v[:, active], A_u[:, ~active] = 0.0, 0.0
    qdd = y_r.copy()
    qdd[active] = given[0][active]
    wanted = -(A @ qdd + found.rate(samples.rows["qd"])[0][rows] @ qd)
    W = Y @ A_v.T
    lam, indefinite = solve_definite(A_v @ W, wanted, DEFINITE)
    require_zero(indefinite)
    y = y_r + W @ lam - A_u.T @ lam
    return y[None], least_multipliers(found.A[0], lam, rows)[None], np.array([len(rows)])


def least_multipliers(whole: Any, lam: Any, rows: list[int]) -> Any:
    """Return the least multipliers of all constraints that do what those of independent ones do."""
    return lam if len(rows) == len(whole) else least_spread(whole, rows) @ lam


def least_spread(whole: Any, rows: list[int]) -> Any:
    """Return P, whose product with multipliers of independent constraints are the least ones of all."""
    if len(rows) == len(whole):
        return np.eye(len(rows))
    A = whole[rows]
    C = symbols(solve_definite(A @ A.T, A @ whole.T, DEFINITE)[0]).T  # whole = C A
    return symbols(solve_definite(C.T @ C, C.T, DEFINITE)[0]).T


def closed_inverse(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
) -> Any:
    """Return the torques of the actuated joints that make a motion; those of the others are zero."""
    L = weights_of(redundancy, names_where(mech, mech.actuated_mask))
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "qdd": qdd}, wrench, base)
    found = _closed_motion(mech, samples)
    free = hybrid_dynamics(mech.tree, q, qd, qdd, wrench, base, threads, drive="inverse", name="qdd")
    tau_r = np.reshape(free, samples.rows["q"].shape)
    tau, lam, rank = _shares(mech, found.A, tau_r, L, samples.single)
    tau, lam = tau.reshape(tau_r.shape), lam.reshape(len(tau_r), found.A.shape[1])
    lam = samples.shaped(lam)
    return ClosedAnswer.of(samples.shaped(tau), lam, wrenches_of(mech, lam), int(rank[0]) if samples.single else rank)


def closed_shares(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    base: BaseLike = None,
    redundancy: Redundancy = None,
) -> Array:
    """Return T, (n, n) or (N, n, n): the motors' torques that make a motion are T times those of the open chain.

    Raises
    ------
    InvalidValue
        For an open motion, and where there is none as the motors do not drive all freedoms.
    """
    L = weights_of(redundancy, names_where(mech, mech.actuated_mask))
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "qdd": qdd}, None, base)
    found, sizes, idle = _closed_motion(mech, samples), torque_scales(mech), ~mech.actuated_mask
    count, n = samples.rows["q"].shape
    felt = np.array([matrix_rank(A[:, idle], float(np.abs(A).max(initial=0.0))) for A in found.A])
    if (felt < idle.sum()).any():
        row = int(np.argmax(felt < idle.sum()))
        where = "" if samples.single else f" in row {row}"
        raise InvalidValue(
            f"loop {mech.loops[0].name!r}: {int(idle.sum() - felt[row])} freedom(s) of the mechanism have no actuator"
            f"{where}, so that torques of motors do not make every motion; mech.without_loops() is the open chain"
        )
    loads = np.tile(np.diag(sizes), (count, 1))
    tau = _shares(mech, np.repeat(found.A, n, axis=0), loads, L, samples.single)[0]
    T = np.swapaxes(tau.reshape(count, n, n), 1, 2) / sizes
    return np.asarray(T[0] if samples.single else T)


def _closed_motion(mech: Linkage, samples: Samples) -> Closure:
    """Return the constraints along a motion of all joints; refuse one that opens loops."""
    if samples.symbolic:
        raise InvalidValue(
            f"loop {mech.loops[0].name!r}: inverse dynamics of loops cannot be written down with symbols"
        )
    rows = samples.rows
    found = without_opening(mech, closure_of(mech, rows["q"]))
    refuse_open(mech, found, rows["qd"], samples.single)
    sizes, units = row_scales(mech), coordinate_scales(mech)
    off = np.abs(wanted_accelerations(found, rows["qd"], rows["qdd"])) / sizes
    scale = (
        min(1.0, falling_of(mech))
        + np.abs(rows["qdd"] / units).max(axis=1, initial=0.0)
        + np.abs(rows["qd"] / units).max(axis=1, initial=0.0) ** 2
    )
    if (off > 1e3 * CONTRADICTION * scale[:, None]).any():
        row, k = divmod(int(np.argmax(off / scale[:, None])), off.shape[1])
        where = "" if samples.single else f" in row {row}"
        raise InvalidValue(
            f"loop {constraint_names(mech)[k]}: the accelerations open it by "
            f"{off[row, k] * sizes[k]:.3g}{ends_of(mech, k)}{where}; those of all joints follow from some of them by "
            "mech.with_drive(active=[...]).hybrid_dynamics; an optimal motion keeps it closed to more digits by "
            "transcription='freedoms' or solve(feasibility=1e-6)"
        )
    return found


def _shares(mech: Linkage, A: Array, loads: Array, L: Array | None, single: bool) -> tuple[Array, Array, Array]:
    """Return torques, multipliers and ranks that carry the loads of the open chain, (N, n)."""
    shares = _only_shares(mech, A, loads)
    if shares is None:
        pairs = [
            _share(mech, one, load, L, None if single else k)
            for k, (one, load) in enumerate(zip(A, loads, strict=True))
        ]
        return tuple(np.array([pair[k] for pair in pairs]) for k in range(3))  # type: ignore[return-value]
    return shares


def _only_shares(mech: Linkage, A: Array, loads: Array) -> tuple[Array, Array, Array] | None:
    """Return torques, multipliers and ranks of rows where the joints without a motor feel all constraints.

    There is no choice then: (58). None where that is not so of all rows, or no torques carry the loads of one.
    """
    a, p = mech.actuated_mask, ~mech.actuated_mask
    m = A.shape[1]
    if not m or p.sum() < m or not len(A):
        return None
    felt = np.swapaxes(A[:, :, p], 1, 2)
    U, s, Vt = np.linalg.svd(felt, full_matrices=False)
    if not (s[:, -1] > LEAST * np.abs(A).max(axis=(1, 2))).all():
        return None
    along = (np.swapaxes(U, 1, 2) @ loads[:, p, None])[..., 0] / s
    lam = (np.swapaxes(Vt, 1, 2) @ along[..., None])[..., 0]
    left = loads[:, p] - (felt @ lam[..., None])[..., 0]
    units, work = coordinate_scales(mech), work_of(mech) or 1.0
    if (np.abs(left * units[p]).max(axis=1) > BALANCE * np.maximum(work, np.abs(loads * units).max(axis=1))).any():
        return None
    tau = np.zeros(loads.shape)
    tau[:, a] = loads[:, a] - _transposed(A[:, :, a], lam)
    return tau, lam, np.full(len(A), m)


def _share(mech: Linkage, A: Array, load: Array, L: Array | None, row: int | None) -> tuple[Array, Array, int]:
    """Return torques, multipliers and rank that carry the loads of the open chain; Kim's letters and numbers."""
    a, p = mech.actuated_mask, ~mech.actuated_mask
    A_a, A_p = A[:, a], A[:, p]
    scale = float(np.abs(A).max(initial=0.0))
    lam = pseudoinverse(A_p.T, scale) @ load[p]  # (57), (58), the first part of (59)
    rank = matrix_rank(A_p, scale)
    left = load[p] - A_p.T @ lam
    units, work = coordinate_scales(mech), work_of(mech) or 1.0
    off = np.abs(left * units[p])
    if off.max(initial=0.0) > BALANCE * max(work, float(np.abs(load * units).max())):
        k = int(np.argmax(off))
        joint = names_where(mech, p)[k]
        where = "" if row is None else f" in row {row}"
        raise InvalidValue(
            f"joint {joint!r}: has no motor and the loops do not carry it: the motion needs {left[k]:.4g} there{where}"
            f"; {int(p.sum()) - rank} freedom(s) of the mechanism have no actuator"
        )
    if L is not None:
        lam = least_torque(A, lam, load[a] - A_a.T @ lam, a, L)  # (63), (64), (66)
    tau = np.zeros(len(load))
    tau[a] = load[a] - A_a.T @ lam  # (56), (62)
    return tau, lam, rank
