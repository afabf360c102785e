"""Assembly of closed mechanisms: mobility, and the nearest state that closes all loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.charts import LONGEST, half_turn_left, shortened
from cstormpy.dynamics.checked_arguments import read_samples, some_of
from cstormpy.dynamics.inertial import inertial
from cstormpy.dynamics.kinematics import forward_kinematics
from cstormpy.dynamics.tracing import with_its_tree
from cstormpy.errors import InvalidType, InvalidValue, SingularInertia, UnknownName
from cstormpy.graph import require_zero
from cstormpy.graph.linear_algebra import solve_definite
from cstormpy.loops.carried import DEFINITE, OpenChain, carried_inverse_mass
from cstormpy.loops.closure import Closure, closure_of, constraint_names, ends_of
from cstormpy.reporting import notice_once
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

LEAST = 1e-9
"""A singular value of A below this part of the greatest counts as zero."""

CLOSED = 1e-3
"""A state is refused as open if it misses a loop by more [m, rad, or that a second and unit of rate]: a differenced
one is not, nor the stage of a step."""

OPENED = 0.1
"""By how much a step of a loose tolerance may open loops that were closed, and be taken back by projection."""

DRIFT = 1e-10
"""The drift of the loops [m, rad] at which a run projects its state."""

SHUT = 1e-12
"""A projected state closes its loops to this, in units of the mechanism's size."""

DISTINCT = 10.0 * SHUT**0.5
"""Where postures bifurcate, one that is closed to SHUT is off by the root of that, and so are singular values of A:
below this part of the greatest they tell nothing of the rank."""

STARTS, BESIDE = 6, 0.5
"""Most postures from which a closed one is looked for, and how far each lies farther away than the one before."""

ITERATIONS = 100
"""Most steps of a projection; from nearby it takes three."""

STRAIGHT = 1.0
"""A step that turns joints by more [rad] goes by slopes that do not hold so far, and may end in another assembly."""

NEAREST, FLATTEST, HALVINGS = 1e-9, 0.1, 12
"""A posture is the nearest where its distance falls by no more than this part along closed ones; the least curvature of
the distance that a step counts with; how often a step is halved."""


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
    rows = read_samples(mech.tree, {"q": _one_posture(mech, q)}).rows
    found = closure_of(mech, rows["q"])
    refuse_open(mech, found)
    A = found.A[0]
    chosen, names = _independent_of(mech, A), constraint_names(mech)
    dependent = tuple(name for k, name in enumerate(names) if k not in chosen)
    return Mobility(mech.n - len(chosen), len(chosen), len(A), dependent)


def _one_posture(mech: Linkage, q: ArrayLike) -> Array:
    return checks.array(q, (mech.n,), "q", f"one posture; the coordinates are {some_of(mech.names)}")


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
    every = np.ones(mech.n, dtype=bool)
    for k in range(12):
        try:
            start = rng.uniform(-2.0, 2.0, mech.n) * min(1.0, k / 3.0)
            q = next(_closed_around(mech, start, every, _metric(mech, start, every)))
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
        notice_once(
            f"loop {names[rest[0]]}: over-constrained{ends_of(mech, rest[0])}: {', '.join(names[k] for k in rest)} "
            f"follow from the other constraints (rank {len(made)} of {len(names)}); the motion is the same, of the "
            "multipliers, which are not determined, the least are given"
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
    off, what = np.abs(found.residual()), "misses closure by"
    scale = np.ones(len(off))
    if not (off > within).any() and qd is not None:
        off, what = np.abs(found.A @ qd[..., None])[..., 0], "is left at the rate"
        scale = 1.0 + np.abs(qd).max(axis=1, initial=0.0)
    bad = off > within * scale[:, None]
    if not bad.any() and np.isfinite(off).all():
        return
    row, k = divmod(int(np.argmax(np.where(np.isfinite(off), off, np.inf))), off.shape[1])
    where = "" if single else f" in row {row}"
    name = constraint_names(mech)[k]
    raise InvalidValue(
        f"loop {name}: {what} {off[row, k]:.3g}{ends_of(mech, k)}{where}; mech.project(q, qd) finds a closed state"
    )


def refuse_of_vectors(mech: Linkage, q: Array) -> None:
    """Refuse a user's constraint that a posture leaves open whose rotation vectors have given way to shorter ones."""
    found = closure_of(mech, q[None])
    first, off = found.first(len(found.chains)), np.abs(found.residual()[0])
    if (off[first:] > OPENED).any():
        k = first + int(np.argmax(off[first:]))
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
    off = max(float(np.abs(found.residual()).max()), float(np.abs(A @ qd).max()) / (1.0 + float(np.abs(qd).max())))
    if off <= DRIFT:
        return q, qd
    refuse_open(mech, found, qd[None], within=OPENED)
    free = np.ones(mech.n, dtype=bool)
    metric = _metric(mech, q, free)
    # from so near one step is as good as many, and the metric is the same
    h = found.holonomic
    shut_q = q - metric @ (np.linalg.pinv(A[h] @ metric, rcond=LEAST) @ found.residual()[0, h])
    found = closure_of(mech, shut_q[None])
    A = found.A[0]
    if np.abs(found.residual()).max() > DRIFT:
        shut_q, shut_qd = _projected(mech, q[None], qd[None], free)
        return shut_q[0], shut_qd[0]
    return shut_q, qd - metric @ (np.linalg.pinv(A @ metric, rcond=LEAST) @ (A @ qd))


def require_closed(found: Closure, qd: Any, within: float = CLOSED) -> tuple[Any, Any]:
    """Require of one sample of symbols what `refuse_open` refuses; return by how much it misses both."""
    (phi,), over = found.sines()
    require_zero(over)
    off, rate = np.max(np.abs(phi)), np.max(np.abs(found.A[0] @ qd)) / (1.0 + np.max(np.abs(qd)))
    require_zero((off > within) | (rate > within))
    return off, rate


@with_its_tree
def shut_symbols(mech: Linkage, q: Any, qd: Any, steps: int = 1) -> tuple[Any, Any]:
    """Return what `shut` does of symbols; one that so many steps do not close fails."""
    rows = independent_rows(mech.numeric)
    found = closure_of(mech, q[None])
    off, rate = require_closed(found, qd, OPENED)
    nothing = np.zeros(mech.n)

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
        far, next_q = np.max(np.abs(near.sines()[0])) > DRIFT, near_q
        for _ in range(steps - 1):
            there = closure_of(mech, next_q[None])
            A = there.A[0][closing]
            next_q = q - taken_away(inverse, A, there.sines()[0][0][closing] + A @ (q - next_q))
        near_q = np.where(far, next_q, near_q)
        inverse = inverse_mass(np.where(far, near_q, q))
        near = closure_of(mech, near_q[None])
    require_zero(np.max(np.abs(near.sines()[0])) > DRIFT)
    A = near.A[0][rows]
    near_qd = qd - taken_away(inverse, A, A @ qd)
    settled = (off <= DRIFT) & (rate <= DRIFT)
    return np.where(settled, q, near_q), np.where(settled, qd, near_qd)


def _held(mech: Linkage, hold: Iterable[str]) -> NDArray[np.bool_]:
    mask = np.zeros(mech.n, dtype=bool)
    for name in [hold] if isinstance(hold, str) else entries(hold, "hold", "names of joints"):
        try:
            mask[mech.joint_indices(name)] = True
        except (UnknownName, InvalidType) as error:
            raise type(error)(f"hold: {error}") from None
    return mask


def project(mech: Linkage, q: ArrayLike, qd: ArrayLike | None = None, hold: Iterable[str] = ()) -> tuple[Array, Array]:
    """Return the nearest state that closes all loops; `Mechanism.project` tells of it."""
    free = ~_held(mech, hold)
    samples = read_samples(mech.tree, {"q": q} if qd is None else {"q": q, "qd": qd})
    rows = samples.rows["q"]
    rates = samples.rows.get("qd", np.zeros(rows.shape))
    near, near_rates = _projected(mech, rows, rates, free)
    return samples.shaped(near), samples.shaped(near_rates)


def assemblies(mech: Linkage, q: ArrayLike, hold: Iterable[str] = (), tries: int = 48) -> Array:
    """Return all ways to close the loops that are found with some joints held; `Mechanism.assemblies` tells of it."""
    q0, tries = _one_posture(mech, q), checks.count(tries, "tries")
    free = ~_held(mech, hold)
    rng, metric = np.random.default_rng(0), _metric(mech, q0, free)
    found: list[Array] = []
    poses: list[Array] = []
    error = None
    for k in range(tries):
        start = q0 + np.where(free & (k > 0), rng.uniform(-np.pi, np.pi, mech.n), 0.0)
        try:
            closed = shortened(mech, _closed(mech, start, free, metric), free)
        except InvalidValue as failed:
            error = error or failed
            continue
        A = closure_of(mech, closed[None]).A[0][:, free]
        rank = np.linalg.matrix_rank(A, tol=1e-6 * max(1.0, float(np.abs(A).max(initial=0.0))))
        if rank < free.sum():
            raise InvalidValue(
                f"assemblies: loop {constraint_names(mech)[0]}: leaves {int(free.sum()) - rank} freedom(s) besides the "
                "joints that are held, so that there are infinitely many; hold more joints"
            )
        pose = forward_kinematics(mech.tree, closed)
        if not any(np.abs(pose - other).max() < 1e-6 for other in poses):
            found.append(closed)
            poses.append(pose)
    if not found:
        assert error is not None
        raise error
    return np.array(sorted(found, key=lambda x: float(np.linalg.norm(x - q0))))


def _projected(mech: Linkage, q0: Array, qd0: Array, free: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the closed states nearest to some, (N, n) each."""
    metric = _metric(mech, q0, free)
    q, near = _nearest(mech, q0, free, metric)
    qd = np.empty(q.shape)
    for k in range(len(q)):
        try:
            if not near[k]:  # from afar: closed postures first, then the nearest one from the nearest of these
                q[k] = _descended(mech, q0[k], _nearest_around(mech, q0[k], free, metric[k]), free, metric[k])
            qd[k] = _nearest_rate(mech, q[k], qd0[k], free)
        except InvalidValue as error:
            if len(q) == 1:
                raise
            raise InvalidValue(f"row {k}: {error}") from None
    return q, qd


def _metric(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> Array:
    """Return L with L Lᵀ the inverse of the free joints' mass matrix; one that moves no mass counts as of little.

    Of numbers that no body has, as a fit may come upon, all joints count the same.
    """
    M = inertial(mech.tree, q).mass_matrix[..., free, :][..., free]
    f = M.shape[-1]
    least = 1e-13 * np.maximum(np.trace(M, axis1=-2, axis2=-1) / max(f, 1), np.finfo(float).tiny)
    try:
        root = np.linalg.cholesky(M + least[..., None, None] * np.eye(f))
    except np.linalg.LinAlgError:
        root = np.broadcast_to(np.eye(f), M.shape)
    return np.asarray(np.swapaxes(np.linalg.inv(root), -1, -2))


def _sizes(found: Closure) -> Array:
    """Return a length of the mechanism in each posture, (N,): how far its joints move the closed frames."""
    far = [np.abs(at.v).max(axis=(1, 2), initial=0.0) for at in found.chains]
    return np.asarray(np.max([np.ones(len(found.A)), *far], axis=0))


def _nearest(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the closed postures (N, n) nearest to some by sequential quadratic programming, and which of them are so.

    The others are too far away.
    """
    q, near = q0.copy(), np.zeros(len(q0), dtype=bool)
    going, moved, winds = np.arange(len(q0)), np.full(len(q0), np.inf), _winds(mech)[free]
    for left in reversed(range(ITERATIONS)):
        found = closure_of(mech, q[going])
        h = found.holonomic
        phi, A = found.residual()[:, h], found.A[:, h][:, :, free]
        # a constraint's function may not be defined there
        defined = np.isfinite(phi).all(axis=1) & np.isfinite(A).all(axis=(1, 2))
        near[going] = defined & (np.abs(phi).max(axis=1, initial=0.0) <= SHUT * _sizes(found))
        on = defined & ~(near[going] & (moved[going] <= 1e-9))
        going, phi, A = going[on], phi[on], A[on]
        if not left or not len(going):
            break
        away, L = (q - q0)[going][:, free, None], metric[going]
        step = (L @ (np.linalg.pinv(A @ L, rcond=LEAST) @ (A @ away - phi[..., None])) - away)[..., 0]
        last, moved[going] = moved[going], np.abs(step).max(axis=1, initial=0.0)
        q[np.ix_(going, free)] += step
        sound = moved[going] < 10.0 * np.maximum(1.0, np.minimum(last, 1.0))
        sound &= np.abs(step[:, winds]).max(axis=1, initial=0.0) <= STRAIGHT
        if mech.ball_starts:  # a whole turn, where a rotation vector is singular
            sound &= half_turn_left(mech, q[going].T) > -3.0 * np.pi**2
        near[going[~sound]] = False
        going = going[sound]
    return q, near


def _descended(mech: Linkage, q0: Array, q: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the closed posture nearest to q0 down to which closed ones lead from one of them.

    Steps are Newton's in coordinates y, of q - q0 = L y, in which the distance is |y|: along the closed postures, with
    the curvature of these, and closed again.
    """
    inverse = np.linalg.inv(metric)
    y = inverse @ (q - q0)[free]
    for _ in range(ITERATIONS):
        found = closure_of(mech, q[None])
        h = found.holonomic
        A = found.A[0][h][:, free] @ metric
        _, s, Vt = np.linalg.svd(A)
        N = Vt[int((s > LEAST * s.max(initial=0.0)).sum()) :].T
        down = N.T @ y
        if not down.any():
            break
        last = np.abs(down).max(initial=0.0) <= NEAREST * (1.0 + float(np.linalg.norm(y)))
        lam = -np.linalg.pinv(A, rcond=LEAST).T @ y
        bent = metric.T @ np.tensordot(lam, found.slopes()[0][h], 1)[np.ix_(free, free)] @ metric
        values, axes = np.linalg.eigh(np.eye(N.shape[1]) + N.T @ (0.5 * (bent + bent.T)) @ N)
        way = metric @ N @ axes @ (axes.T @ down / np.maximum(np.abs(values), FLATTEST))
        way *= min(1.0, 1.0 / float(np.abs(way).max()))
        for part in 0.5 ** np.arange(HALVINGS):
            tried = q.copy()
            tried[free] -= part * way
            try:
                tried = _closed(mech, tried, free, metric)
            except InvalidValue:
                continue
            there = inverse @ (tried - q0)[free]
            if last or there @ there < y @ y:  # of a last step the distance tells nothing but roundings
                q, y = tried, there
                break
        else:
            break
        if last:
            break
    return q


def _winds(mech: Linkage) -> NDArray[np.bool_]:
    """Return the coordinates (n,) that bring all links back to where they were after a turn, and keep loops closed."""
    if "winds" not in mech.memo:
        hinges = np.array([freedom.winds for freedom in mech.freedoms], dtype=bool)
        for first in mech.ball_starts:
            hinges[first : first + 3] = False
        anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, (3, mech.n))
        mech.memo["winds"] = hinges & ~closure_of(mech, anywhere).by_value
    return np.asarray(mech.memo["winds"])


def _nearest_around(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the nearest of some closed postures, without the whole turns that hinges made on the way."""
    winds, inverse = _winds(mech) & free, np.linalg.inv(metric)

    def unwound(q: Array) -> Array:
        return q - 2.0 * np.pi * np.where(winds, np.rint((q - q0) / (2.0 * np.pi)), 0.0)

    closed = map(unwound, _closed_around(mech, q0, free, metric))
    return min(closed, key=lambda q: float(np.linalg.norm(inverse @ (q - q0)[free])))


def _closed_around(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> Iterator[Array]:
    """Yield closed postures from q0, and from postures beside it, as one that is stretched shows no way to go."""
    rng, first, some = np.random.default_rng(0), None, False
    for k in range(STARTS):
        try:
            yield _closed(mech, q0 + np.where(free, BESIDE * k * rng.normal(size=mech.n), 0.0), free, metric)
            some = True
        except InvalidValue as error:
            first = first or error
    if first is not None and not some:
        raise first


def _closed(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return a closed posture, by damped Gauss-Newton steps in the mass metric."""
    q, damping = shortened(mech, q0, free, LONGEST), 1e-3
    found = closure_of(mech, q[None])
    h = found.holonomic
    phi = found.residual()[0, h]
    defined = np.isfinite(phi) & np.isfinite(found.A[0][h]).all(axis=1)
    if not defined.all():
        row = int(np.flatnonzero(h)[np.argmin(defined)])
        at = ", ".join(f"{x:.4g}" for x in q)
        raise InvalidValue(f"loop {constraint_names(mech)[row]}: is not defined at q = ({at}); begin elsewhere")
    for _ in range(5 * ITERATIONS):
        A = found.A[0][h][:, free]
        if np.abs(phi).max(initial=0.0) <= SHUT * _sizes(found)[0]:
            return q
        W = A @ metric
        S = W @ W.T
        step = metric @ W.T @ np.linalg.solve(S + damping * max(float(np.trace(S)), 1e-300) * np.eye(len(S)), -phi)
        tried = q.copy()
        tried[free] += step * min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
        tried = shortened(mech, tried, free, LONGEST)
        there = closure_of(mech, tried[None])
        left = there.residual()[0, h]
        if left @ left < phi @ phi and np.isfinite(there.A).all():
            q, found, phi, damping = tried, there, left, max(damping * 0.1, 1e-15)
        elif damping > 1e8:
            break
        else:
            damping *= 10.0
    k = int(np.argmax(np.abs(phi)))
    rank = np.linalg.matrix_rank(found.A[0][h][:, free], tol=1e-6)
    row = int(np.flatnonzero(h)[k])
    raise InvalidValue(
        f"loop {constraint_names(mech)[row]}: cannot be closed from there, {phi[k]:.3g} is left{ends_of(mech, row)} at "
        f"q = ({', '.join(f'{x:.4g}' for x in q)}), where {rank} of {len(phi)} constraints are independent in the "
        f"{int(free.sum())} joints that may move; begin elsewhere{', hold fewer joints' if not free.all() else ''}"
    )


def _nearest_rate(mech: Linkage, q: Array, qd0: Array, free: NDArray[np.bool_]) -> Array:
    """Return the rate nearest to a given one that keeps the loops closed."""
    A = closure_of(mech, q[None]).A[0]
    metric = _metric(mech, q, free)
    inverse = metric @ np.linalg.pinv(A[:, free] @ metric, rcond=LEAST)
    qd = qd0.copy()
    for _ in range(2):  # the second takes rounding away
        qd[free] -= inverse @ (A @ qd)
    left = np.abs(A @ qd)
    if left.max(initial=0.0) > 1e-9 * (1.0 + np.abs(qd).max(initial=0.0)):
        k = int(np.argmax(left))
        raise InvalidValue(
            f"loop {constraint_names(mech)[k]}: the rates of the joints that are held contradict it, {left[k]:.3g} is "
            f"left{ends_of(mech, k)}; hold fewer joints"
        )
    return qd
