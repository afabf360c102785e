"""Assembly of closed mechanisms: mobility, independent constraints, singular postures, and small openings shut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.dynamics.tracing import with_its_tree
from cstormpy.errors import InvalidValue, SingularInertia
from cstormpy.graph import require_zero
from cstormpy.graph.linear_algebra import solve_definite
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.loops.carried import DEFINITE, OpenChain, carried_inverse_mass
from cstormpy.loops.closure import LEAST, Closure, closure_of, constraint_names, ends_of
from cstormpy.loops.projection import (
    SHUT,
    closed_beside,
    coarse_scales,
    mass_metric,
    one_posture,
    project,
    projected,
    row_scales,
)
from cstormpy.reporting import notice_once
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

CLOSED = 1e-3
"""A state is refused as open if it misses a loop by more, in radians and lengths of the mechanism, or that a second and
unit of rate: a differenced one is not, nor the stage of a step."""

OPENED = 0.1
"""By how much a step of a loose tolerance may open loops that were closed, and be taken back by projection."""

DRIFT = 1e-10
"""The drift of the loops, in radians and lengths of the mechanism, at which a run projects its state."""

DISTINCT = 10.0 * SHUT**0.5
"""Where postures bifurcate, one that is closed to SHUT is off by the root of that, and so are singular values of A:
below this part of the greatest they tell nothing of the rank."""


class Mobility(NamedTuple):
    """Mobility of a closed mechanism where it stands.

    Attributes
    ----------
    freedoms : int
        n less the rank: how many joints may be moved independently.
    rank : int
        Of the constraints.
    constraints : int
        How many there are.
    dependent : tuple of str
        Constraints that say what the others say, as "pin: rotation x": their multipliers are not unique.
    """

    freedoms: int
    rank: int
    constraints: int
    dependent: tuple[str, ...]


def mobility(mech: Linkage, q: ArrayLike) -> Mobility:
    """Return the mobility of one posture; `Mechanism.mobility` tells of it."""
    rows = read_samples(mech.tree, {"q": one_posture(mech, q)}).rows
    found = closure_of(mech, rows["q"])
    refuse_open(mech, found)
    A = found.A[0]
    chosen, names = _independent_of(mech, A), constraint_names(mech)
    dependent = tuple(name for k, name in enumerate(names) if k not in chosen)
    return Mobility(mech.n - len(chosen), len(chosen), len(A), dependent)


def _independent(A: Array, least: float = LEAST) -> list[int]:
    """Return rows of A that span all of them: of each step the longest of what is left, the first of equals."""
    left = A.copy()
    chosen: list[int] = []
    scale = float(np.linalg.norm(A, 2)) if A.size else 0.0
    while len(chosen) < min(A.shape):
        lengths = np.linalg.norm(left, axis=1)
        k = int(np.argmax(lengths > (1.0 - 1e-9) * lengths.max()))
        if lengths[k] <= least * scale:
            break
        chosen.append(k)
        along = left[k] / lengths[k]
        left -= np.outer(left @ along, along)
    return sorted(chosen)


def _independent_of(mech: Linkage, A: Array) -> list[int]:
    """Return these rows of a closed posture; where they are more than elsewhere, those that are distinctly so."""
    rows = _independent(A)
    try:
        more = len(rows) > len(independent_rows(mech))
    except InvalidValue:  # no other posture is known
        more = False
    return _independent(A, DISTINCT) if more else rows


def independent_rows(mech: Linkage) -> list[int]:
    """Return constraints that span all of them in closed postures, kept: of a few postures those that span the most."""
    return _independent_in(mech)[0]


def regular_posture(mech: Linkage) -> Array:
    """Return a closed posture (n,) where the constraints are as independent as they are anywhere."""
    return _independent_in(mech)[1]


def is_carried(mech: Linkage, drive: str) -> bool:
    """Tell whether a passive joint moves no inertia of its own, and gets an acceleration from its loops alone."""
    key = "is carried", drive
    if key not in mech.memo:
        mech.memo[key] = _is_carried(mech, drive, regular_posture(mech)[None])
    return bool(mech.memo[key])


def _is_carried(mech: Linkage, drive: str, q: Array) -> bool:
    found, still = closure_of(mech, q), np.zeros(q.shape)
    chain = OpenChain(mech, found, read_samples(mech.tree, {"q": q, "qd": still, "u": still}), drive, "u")
    try:
        chain.ask(still)
    except SingularInertia:  # whatever is asked of it says so
        return False
    return chain.sigma is not None


def are_felt(mech: Linkage, passive: NDArray[np.bool_]) -> bool:
    """Tell whether independent constraints are so for passive joints too: else active ones contradict one another."""
    rows, q = independent_rows(mech), regular_posture(mech)
    return len(_independent(closure_of(mech, q[None]).A[0][:, passive])) == len(rows)


def written_rows(mech: Linkage, active: NDArray[np.bool_]) -> list[int]:
    """Return the constraints of which multipliers of symbols are found: independent ones, felt by passive joints.

    Raises
    ------
    InvalidValue
        Where more joints are active than the loops leave free, of which numbers alone tell whether they contradict it.
    """
    if not are_felt(mech, ~active):
        raise InvalidValue("more joints are active or locked than its loops leave free")
    return independent_rows(mech)


def _independent_in(mech: Linkage) -> tuple[list[int], Array]:
    """Return these rows, and the posture; of a mechanism with some numbers changed in the posture that is nearest."""
    made: tuple[list[int], Array] | None = mech.memo.get("independent rows")
    if made is None:
        made = mech.memo["independent rows"] = _independent_near(mech) or _independent_anywhere(mech)
    return made


def _independent_near(mech: Linkage) -> tuple[list[int], Array] | None:
    like = mech.memo.get("like")
    if like is None:
        return None
    try:
        q, _ = project(mech, _independent_in(like)[1])
    except InvalidValue:
        return None
    return _independent(closure_of(mech, q[None]).A[0]), q


def _independent_anywhere(mech: Linkage) -> tuple[list[int], Array]:
    rng, found, error, sound = np.random.default_rng(0), [], None, 0
    every, units = np.ones(mech.n, dtype=bool), coordinate_scales(mech)
    for k in range(12):
        try:
            start = rng.uniform(-2.0, 2.0, mech.n) * min(1.0, k / 3.0) * units
            q = closed_beside(mech, start, every, mass_metric(mech, start, every))
        except InvalidValue as failed:
            error = failed
            continue
        A = closure_of(mech, q[None]).A[0]
        rows, distinct = _independent(A), len(_independent(A, DISTINCT))
        least = float(np.linalg.svd(A[rows], compute_uv=False).min(initial=np.inf))
        found.append((distinct, len(rows), least, rows, q))
        sound += distinct == len(rows)
        if sound == 4:
            break
    if not found:
        assert error is not None
        raise error
    made, q = max(found, key=lambda one: one[:3])[3:]
    names = constraint_names(mech)
    if len(made) < len(names):
        rest = [k for k in range(len(names)) if k not in made]
        these = f"{', '.join(names[k] for k in rest)} follow" if len(rest) > 1 else "it follows"
        notice_once(
            f"loop {names[rest[0]]}: over-constrained{ends_of(mech, rest[0])}: {these} from the other constraints "
            f"(rank {len(made)} of {len(names)}); the motion is the same, of the multipliers, which are not "
            "determined, the least are given"
        )
    return made, q


def singular(mech: Linkage, A: Array, row: int | None) -> str | None:
    """Return what to say of a closed posture with Jacobian A where fewer constraints are independent than elsewhere."""
    try:
        elsewhere = len(independent_rows(mech))
    except InvalidValue:  # no other posture is known
        return None
    here, names = _independent_of(mech, A), constraint_names(mech)
    if len(here) >= elsewhere:
        return None
    lost = next(k for k in independent_rows(mech) if k not in here)
    where = "" if row is None else f" in row {row}"
    return (
        f"loop {names[lost]}: the posture is singular{ends_of(mech, lost)}{where}: rank {len(here)} of the "
        f"constraints, {elsewhere} in others"
    )


def refuse_open(
    mech: Linkage, found: Closure, qd: Array | None = None, single: bool = True, within: float = CLOSED
) -> None:
    """Refuse states that do not close the loops, or do not keep them closed, naming the worst of them."""
    rows, units = row_scales(mech), coordinate_scales(mech)
    off, what = np.abs(found.residual()), "misses closure by"
    scale = np.ones(len(off))
    if not (off > within * rows).any() and qd is not None:
        off, what = np.abs(found.A @ qd[..., None])[..., 0], "is left at the rate"
        scale = 1.0 + np.abs(qd / units).max(axis=1, initial=0.0)
    bad = off > within * rows * scale[:, None]
    if not bad.any() and np.isfinite(off).all():
        return
    row, k = divmod(int(np.argmax(np.where(np.isfinite(off), off / rows, np.inf))), off.shape[1])
    where = "" if single else f" in row {row}"
    name = constraint_names(mech)[k]
    raise InvalidValue(
        f"loop {name}: {what} {off[row, k]:.3g}{ends_of(mech, k)}{where}; mech.project(q, qd) finds a closed state"
    )


def refuse_of_vectors(mech: Linkage, q: Array) -> None:
    """Refuse a user's constraint that a posture leaves open whose rotation vectors have given way to shorter ones."""
    found = closure_of(mech, q[None])
    first, off = found.first(len(found.chains)), np.abs(found.residual()[0])
    parts = off[first:] / row_scales(mech)[first:]
    if (parts > OPENED).any():
        k = first + int(np.argmax(parts))
        raise InvalidValue(
            f"loop {constraint_names(mech)[k]}: misses closure by {off[k]:.3g} where a rotation vector gives way to "
            "the shorter one of the same rotation; let its function ask for the rotation, not for parts of its vector"
        )


def shut(mech: Linkage, q: Array, qd: Array, steps: int = 1) -> tuple[Array, Array]:
    """Return a state that nearly closes the loops with what it misses taken away; itself where that is nothing.

    Symbols take so many steps at most, numbers as many as it needs.
    """
    if q.dtype == object:
        return shut_symbols(mech, q, qd, steps)
    from cstormpy.loops.lines import shut_call

    to_q, to_qd = np.empty(mech.n), np.empty(mech.n)
    if shut_call(mech)(np.ascontiguousarray(q), np.ascontiguousarray(qd), to_q, to_qd) == 0:
        return to_q, to_qd
    return _shut(mech, q, qd)


def _shut(mech: Linkage, q: Array, qd: Array) -> tuple[Array, Array]:
    """Take off what a state misses, as `shut` does, by numbers."""
    found = closure_of(mech, q[None])
    A = found.A[0]
    rows, units = coarse_scales(mech)  # as symbols: both go the same way
    fast = 1.0 + float(np.abs(qd / units).max())
    off = max(float(np.abs(found.residual() / rows).max()), float(np.abs(A @ qd / rows).max()) / fast)
    if off <= DRIFT:
        return q, qd
    refuse_open(mech, found, qd[None], within=OPENED)
    free = np.ones(mech.n, dtype=bool)
    metric = mass_metric(mech, q, free)
    # from so near one step is as good as many, and the metric is the same
    h = found.holonomic
    shut_q = q - metric @ (np.linalg.pinv(A[h] @ metric, rcond=LEAST) @ found.residual()[0, h])
    found = closure_of(mech, shut_q[None])
    A = found.A[0]
    if np.abs(found.residual() / rows).max() > DRIFT:
        shut_q, shut_qd = projected(mech, q[None], qd[None], free)
        return shut_q[0], shut_qd[0]
    return shut_q, qd - metric @ (np.linalg.pinv(A @ metric, rcond=LEAST) @ (A @ qd))


def require_closed(mech: Linkage, found: Closure, qd: Any, within: float = CLOSED) -> tuple[Any, Any]:
    """Require of one sample of symbols what `refuse_open` refuses; return by how much it misses both."""
    (phi,), over = found.sines()
    require_zero(over)
    rows, units = coarse_scales(mech)
    fast = 1.0 + np.max(np.abs(qd / units))
    off, rate = np.max(np.abs(phi / rows)), np.max(np.abs(found.A[0] @ qd / rows)) / fast
    require_zero((off > within) | (rate > within))
    return off, rate


@with_its_tree
def shut_symbols(mech: Linkage, q: Any, qd: Any, steps: int = 1) -> tuple[Any, Any]:
    """Return what `shut` does of symbols; one that so many steps do not close fails."""
    rows = independent_rows(mech.numeric)
    found = closure_of(mech, q[None])
    off, rate = require_closed(mech, found, qd, OPENED)
    nothing, sizes = np.zeros(mech.n), coarse_scales(mech)[0]

    def inverse_mass(at: Any) -> Any:
        if is_carried(mech.numeric, "forward"):
            return carried_inverse_mass(mech, at)
        return hybrid_sensitivity(mech.tree, at, nothing, nothing, drive="forward").dy_du

    def taken_away(inverse: Any, A: Any, missed: Any) -> Any:
        W = inverse @ A.T
        lam, indefinite = solve_definite(A @ W, missed, DEFINITE)
        require_zero(indefinite)
        return W @ lam

    closing = [k for k in rows if found.holonomic[k]]
    inverse = inverse_mass(q)
    near_q = q - taken_away(inverse, found.A[0][closing], found.sines()[0][0][closing])
    near = closure_of(mech, near_q[None])
    if steps > 1:  # those of `_nearest`, where one does not do
        far, next_q = np.max(np.abs(near.sines()[0] / sizes)) > DRIFT, near_q
        for _ in range(steps - 1):
            there = closure_of(mech, next_q[None])
            A = there.A[0][closing]
            next_q = q - taken_away(inverse, A, there.sines()[0][0][closing] + A @ (q - next_q))
        near_q = np.where(far, next_q, near_q)
        inverse = inverse_mass(np.where(far, near_q, q))
        near = closure_of(mech, near_q[None])
    require_zero(np.max(np.abs(near.sines()[0] / sizes)) > DRIFT)
    A = near.A[0][rows]
    near_qd = qd - taken_away(inverse, A, A @ qd)
    settled = (off <= DRIFT) & (rate <= DRIFT)
    return np.where(settled, q, near_q), np.where(settled, qd, near_qd)
