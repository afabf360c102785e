"""The nearest closed state, from nearby and from afar, and all ways to assemble a closed mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.dynamics.charts import LONGEST, half_turn_left, shortened
from cstormpy.dynamics.checked_arguments import coordinates_of, read_samples, some_of
from cstormpy.dynamics.inertial import inertial
from cstormpy.dynamics.kinematics import forward_kinematics
from cstormpy.errors import InvalidValue
from cstormpy.linkage.degrees import say_degrees
from cstormpy.linkage.scales import coordinate_scales, length_of
from cstormpy.loops.closure import LEAST, Closure, angular_rows, closure_of, constraint_names, ends_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

SHUT = 1e-12
"""A projected state closes its loops to this, in units of the mechanism's size."""

STARTS, BESIDE = 6, 0.5
"""Most postures from which a closed one is looked for, and how far each lies farther away than the one before."""

AT_ONCE = 128
"""So many postures are brought from afar together; the slopes of all their constraints stand side by side."""

ITERATIONS = 100
"""Most steps of a projection; from nearby it takes three."""

STIFFEST = 1e9
"""Steps that are damped by more go nowhere."""

LOOKED, NO_BETTER = 10, 1e-3
"""Every so many steps it is asked whether a posture can be closed: not where no step of 1, in ordinary sizes of the
coordinates, takes away more than this part of the squares of what is left open. Some that walk far, or leave a saddle,
do so from steps of 0.003."""

SETTLED = 8
"""So many steps are taken to where what is left open is least, for the message."""

STRAIGHT = 1.0
"""A step that turns joints by more [rad] goes by slopes that do not hold so far, and may end in another assembly."""

NEAREST, BY_ROUNDING, FLATTEST, HALVINGS = 1e-9, 1e-7, 0.1, 12
"""A posture is the nearest where its distance falls by no more than this part along closed ones; by how much it falls
where rounding hides whether a step has brought it nearer; the least curvature of the distance that a step counts with;
how often a step is halved."""

COARSE = 32.0
"""Symbols, and what goes beside them, know sizes as powers of this: machine code of ordinary lengths is the same."""


def one_posture(mech: Linkage, q: ArrayLike) -> Array:
    """Return one posture (n,), as checked."""
    return checks.array(q, (mech.n,), "q", f"one posture; the coordinates are {some_of(mech.names)}")


def _held(mech: Linkage, hold: Iterable[str]) -> NDArray[np.bool_]:
    return np.isin(np.arange(mech.n), coordinates_of(mech, hold, "hold"))


def project(mech: Linkage, q: ArrayLike, qd: ArrayLike | None = None, hold: Iterable[str] = ()) -> tuple[Array, Array]:
    """Return the nearest state that closes all loops; `Mechanism.project` tells of it."""
    free = ~_held(mech, hold)
    samples = read_samples(mech.tree, {"q": q} if qd is None else {"q": q, "qd": qd})
    rows = samples.rows["q"]
    if samples.single:
        say_degrees(mech.freedoms, mech.names, rows[0].tolist(), "q")
    near, near_rates = projected(mech, rows, samples.rows.get("qd", np.zeros(rows.shape)), free)
    return samples.shaped(near), samples.shaped(near_rates)


def assemblies(mech: Linkage, q: ArrayLike, hold: Iterable[str] = (), tries: int = 48) -> Array:
    """Return all ways to close the loops that are found with some joints held; `Mechanism.assemblies` tells of it."""
    q0, tries = one_posture(mech, q), checks.count(tries, "tries")
    free = ~_held(mech, hold)
    rng, metric = np.random.default_rng(0), mass_metric(mech, q0, free)
    found: list[Array] = []
    poses: list[Array] = []
    units = coordinate_scales(mech)
    turned = [units * np.where(free & (k > 0), rng.uniform(-np.pi, np.pi, mech.n), 0.0) for k in range(tries)]
    for end in _closed(mech, q0 + np.array(turned), free, metric):
        closed = _unwound(mech, shortened(mech, end, free), q0, free)
        A = (closure_of(mech, closed[None]).A[0] * units / row_scales(mech)[:, None])[:, free]
        rank = np.linalg.matrix_rank(A, tol=1e-6 * max(1.0, float(np.abs(A).max(initial=0.0))))
        if rank < free.sum():
            raise InvalidValue(
                f"assemblies: loop {constraint_names(mech)[0]}: leaves {int(free.sum()) - rank} freedom(s) besides the "
                "joints that are held, so that there are infinitely many; hold more joints"
            )
        pose = forward_kinematics(mech.tree, closed)
        pose[:, :3, 3] /= length_of(mech)
        if not any(np.abs(pose - other).max() < 1e-6 for other in poses):
            found.append(closed)
            poses.append(pose)
    return np.array(sorted(found, key=lambda x: float(np.linalg.norm(x - q0))))


def projected(mech: Linkage, q0: Array, qd0: Array, free: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the closed states nearest to some, (N, n) each."""
    metric = mass_metric(mech, q0, free)
    q, near = _nearest(mech, q0, free, metric)
    far = np.flatnonzero(~near)
    for first in range(0, len(far), AT_ONCE):
        some = far[first : first + AT_ONCE]
        q[some] = _from_afar(mech, q0[some], free, metric[some], some if len(q) > 1 else None)
    return q, _nearest_rates(mech, q, qd0, free)


def _of_row(k: int, error: InvalidValue) -> InvalidValue:
    """Return what is said of one row among many."""
    return InvalidValue(f"row {k}: {error}")


def mass_metric(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> Array:
    """Return L with L Lᵀ the inverse of the free joints' mass matrix; one that moves no mass counts as of little.

    Of numbers that no body has, as a fit may come upon, all joints count the same.
    """
    units = coordinate_scales(mech)[free]
    M = inertial(mech.tree, q).mass_matrix[..., free, :][..., free] * units * units[:, None]
    f = M.shape[-1]
    least = 1e-13 * np.maximum(np.trace(M, axis1=-2, axis2=-1) / max(f, 1), np.finfo(float).tiny)
    try:
        root = np.linalg.cholesky(M + least[..., None, None] * np.eye(f))
    except np.linalg.LinAlgError:
        root = np.broadcast_to(np.eye(f), M.shape)
    return np.asarray(np.swapaxes(np.linalg.inv(root) * units, -1, -2))


def row_scales(mech: Linkage) -> Array:
    """Return an ordinary size of what each constraint misses, (m,): a radian, or the mechanism's length."""
    if "row scales" not in mech.memo:
        anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, (3, mech.n)) * coordinate_scales(mech)
        found = closure_of(mech, anywhere)
        first = found.first(len(found.chains))
        scales = np.where(angular_rows(mech), 1.0, length_of(mech))
        # of a function it is what its slopes say
        slopes = np.abs(found.A[:, first:] * coordinate_scales(mech)).max(axis=(0, 2), initial=0.0)
        scales[first:] = np.where(slopes > 0.0, slopes, 1.0)
        mech.memo["row scales"] = scales
    return np.asarray(mech.memo["row scales"])


def coarse_scales(mech: Linkage) -> tuple[Array, Array]:
    """Return the sizes of constraints (m,) and of coordinates (n,) as symbols know them."""
    mech = mech.numeric
    if "coarse scales" not in mech.memo:
        sizes = row_scales(mech), coordinate_scales(mech)
        mech.memo["coarse scales"] = tuple(COARSE ** np.rint(np.log(x) / np.log(COARSE)) for x in sizes)
    rows, units = mech.memo["coarse scales"]
    return rows, units


def _sizes(mech: Linkage, found: Closure) -> Array:
    """Return the size of each posture in lengths of the mechanism, (N,): how far its joints move the closed frames."""
    units, length = coordinate_scales(mech), length_of(mech)
    far = [np.abs(at.v * units[at.chain.path]).max(axis=(1, 2), initial=0.0) / length for at in found.chains]
    return np.asarray(np.max([np.ones(len(found.A)), *far], axis=0))


def _nearest(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the closed postures (N, n) nearest to some by sequential quadratic programming, and which of them are so.

    The others are too far away.
    """
    q, near = q0.copy(), np.zeros(len(q0), dtype=bool)
    going, moved, winds = np.arange(len(q0)), np.full(len(q0), np.inf), _winds(mech)[free]
    units, rows = coordinate_scales(mech)[free], row_scales(mech)
    for left in reversed(range(ITERATIONS)):
        found = closure_of(mech, q[going])
        h = found.holonomic
        phi, A = found.residual()[:, h], found.A[:, h][:, :, free]
        # a constraint's function may not be defined there
        defined = np.isfinite(phi).all(axis=1) & np.isfinite(A).all(axis=(1, 2))
        near[going] = defined & (np.abs(phi / rows[h]).max(axis=1, initial=0.0) <= SHUT * _sizes(mech, found))
        on = defined & ~(near[going] & (moved[going] <= 1e-9))
        going, phi, A = going[on], phi[on], A[on]
        if not left or not len(going):
            break
        away, L = (q - q0)[going][:, free, None], metric[going]
        step = (L @ (np.linalg.pinv(A @ L, rcond=LEAST) @ (A @ away - phi[..., None])) - away)[..., 0]
        last, moved[going] = moved[going], np.abs(step / units).max(axis=1, initial=0.0)
        q[np.ix_(going, free)] += step
        sound = moved[going] < 10.0 * np.maximum(1.0, np.minimum(last, 1.0))
        sound &= np.abs(step[:, winds]).max(axis=1, initial=0.0) <= STRAIGHT
        if mech.ball_starts:  # a whole turn, where a rotation vector is singular
            sound &= half_turn_left(mech, q[going].T) > -3.0 * np.pi**2
        near[going[~sound]] = False
        going = going[sound]
    return q, near


def _descended(mech: Linkage, q0: Array, q: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the closed postures (N, n) nearest to some down to which closed ones lead from given ones.

    Steps are Newton's in coordinates y, of q - q0 = L y, in which the distance is |y|: along the closed postures, with
    the curvature of these, and closed again.
    """
    inverse, units = np.linalg.inv(metric), coordinate_scales(mech)[free]
    q, y = q.copy(), _times(inverse, (q - q0)[:, free])
    going = np.arange(len(q))
    for _ in range(ITERATIONS):
        if not len(going):
            break
        way, falls, on = _down(mech, q[going], y[going], free, metric[going])
        going, way, last, hidden = going[on], way[on], falls[on] <= NEAREST, falls[on] <= BY_ROUNDING
        way /= np.maximum(1.0, np.abs(way / units).max(axis=1, keepdims=True))
        taken = np.zeros(len(going), dtype=bool)
        for part in 0.5 ** np.arange(HALVINGS):
            left = np.flatnonzero(~taken)
            if not len(left):
                break
            rows = going[left]
            tried = q[rows]
            tried[:, free] -= part * way[left]
            tried, shut, _ = _closing_all(mech, tried, free, metric[rows])
            there = _times(inverse[rows], (tried - q0[rows])[:, free])
            nearer = shut & (hidden[left] | ((there * there).sum(axis=1) < (y[rows] * y[rows]).sum(axis=1)))
            q[rows[nearer]], y[rows[nearer]], taken[left[nearer]] = tried[nearer], there[nearer], True
        going = going[taken & ~last]
    return q


def _down(
    mech: Linkage, q: Array, y: Array, free: NDArray[np.bool_], metric: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return Newton's steps (N, f) along closed postures, how the distance falls there, and which steps there are."""
    found = closure_of(mech, q)
    h = found.holonomic
    A = found.A[:, h][:, :, free] @ metric
    _, s, Vt = np.linalg.svd(A)
    closing = np.zeros((len(q), Vt.shape[-1]))  # 1 of directions that open loops
    closing[:, : s.shape[1]] = s > LEAST * s.max(axis=1, initial=0.0, keepdims=True)
    across = np.swapaxes(Vt, 1, 2) @ (Vt * (1.0 - closing)[..., None])
    down = _times(across, y)
    far = np.linalg.norm(np.linalg.inv(metric) * coordinate_scales(mech)[free], axis=(1, 2))
    falls = np.abs(down).max(axis=1, initial=0.0) / (far + np.linalg.norm(y, axis=1))
    lam = -_times(np.swapaxes(np.linalg.pinv(A, rcond=LEAST), 1, 2), y)
    slopes = np.einsum("sm,smij->sij", lam, found.slopes()[:, h])[:, free][:, :, free]
    bent = np.swapaxes(metric, 1, 2) @ slopes @ metric
    values, axes = np.linalg.eigh(across @ (np.eye(y.shape[1]) + 0.5 * (bent + np.swapaxes(bent, 1, 2))) @ across)
    steps = _times(np.swapaxes(axes, 1, 2), down) / np.maximum(np.abs(values), FLATTEST)
    return _times(metric @ across @ axes, steps), falls, np.asarray(down.any(axis=1))


def _times(matrices: Any, vectors: Any) -> Array:
    """Return the product of each matrix with its vector."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _winds(mech: Linkage) -> NDArray[np.bool_]:
    """Return the coordinates (n,) that bring all links back to where they were after a turn, and keep loops closed."""
    if "winds" not in mech.memo:
        hinges = np.array([freedom.winds for freedom in mech.freedoms], dtype=bool)
        for first in mech.ball_starts:
            hinges[first : first + 3] = False
        anywhere = np.random.default_rng(0).uniform(-1.0, 1.0, (3, mech.n))
        mech.memo["winds"] = hinges & ~closure_of(mech, anywhere).by_value
    return np.asarray(mech.memo["winds"])


def _unwound(mech: Linkage, q: Array, near: Array, free: NDArray[np.bool_]) -> Array:
    """Return the same postures (..., n) without the whole turns of free hinges that lead away from others."""
    return np.asarray(q - 2.0 * np.pi * np.where(_winds(mech) & free, np.rint((q - near) / (2.0 * np.pi)), 0.0))


def _from_afar(
    mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array, rows: NDArray[np.intp] | None
) -> Array:
    """Return the closed postures (N, n) nearest to some: some closed ones first, then from the nearest of these down.

    They are without the whole turns that hinges make on the way. What is refused is named by its row, if given.
    """
    starts = (q0[:, None] + _beside(mech, free)).reshape(-1, mech.n)
    ends, shut, failed = _closing_all(mech, starts, free, np.repeat(metric, STARTS, axis=0))
    ends, shut = ends.reshape(len(q0), STARTS, mech.n), shut.reshape(len(q0), STARTS)
    for k in np.flatnonzero(~shut.any(axis=1)):
        error = failed.get(int(k) * STARTS) or _left_open(mech, ends[k, 0], free)
        raise error if rows is None else _of_row(int(rows[k]), error) from None
    ends = _unwound(mech, ends, q0[:, None], free)
    far = _times(np.linalg.inv(metric)[:, None], (ends - q0[:, None])[..., free])
    best = np.where(shut, np.linalg.norm(far, axis=-1), np.inf).argmin(axis=1)
    return _descended(mech, q0, ends[np.arange(len(q0)), best], free, metric)


def _beside(mech: Linkage, free: NDArray[np.bool_]) -> Array:
    """Return by how much starts (STARTS, n) lie beside a posture: one that is stretched shows no way to go."""
    rng = np.random.default_rng(0)
    units = coordinate_scales(mech)
    return np.array([units * np.where(free, BESIDE * k * rng.normal(size=mech.n), 0.0) for k in range(STARTS)])


def closed_beside(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the first closed posture (n,) that is found from one, or else from postures beside it."""
    first = None
    for start in q0 + _beside(mech, free):
        try:
            return _closed(mech, start[None], free, metric)[0]
        except InvalidValue as error:
            first = first or error
    assert first is not None
    raise first


def _closed(mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the closed postures (N, n) that are found from some; where there are none, of the first is said why."""
    q, shut, failed = _closing_all(mech, starts, free, np.broadcast_to(metric, (len(starts), *metric.shape)))
    if not shut.any():
        raise failed.get(0) or _left_open(mech, q[0], free)
    return q[shut]


def _closing_all(
    mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array
) -> tuple[Array, NDArray[np.bool_], dict[int, InvalidValue]]:
    """Return what `_closing` does, and in which rows a constraint's function fails on the way."""
    try:
        return *_closing(mech, starts, free, metric), {}
    except InvalidValue as error:
        if len(starts) == 1:
            return starts, np.zeros(1, dtype=bool), {0: error}
    each = [_closing_all(mech, starts[k : k + 1], free, metric[k : k + 1]) for k in range(len(starts))]
    q, shut = (np.concatenate([one[part] for one in each]) for part in range(2))
    return q, shut, {k: failed[0] for k, (_, _, failed) in enumerate(each) if failed}


def _closing(mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return where damped Gauss-Newton steps in the mass metric lead from postures (N, n), and what is closed there.

    They end where what is left open is nearly least.
    """
    q, units = by_short_vectors(mech, starts, free), coordinate_scales(mech)[free]
    phi, A, size = _left(mech, q, free)
    damping = np.full(len(q), 1e-3)
    going = np.flatnonzero(np.isfinite(phi).all(axis=1) & np.isfinite(A).all(axis=(1, 2)))
    shut, before = np.zeros(len(q), dtype=bool), np.full(len(q), np.inf)
    for k in range(5 * ITERATIONS):
        shut[going] = np.abs(phi[going]).max(axis=1, initial=0.0) <= SHUT * size[going]
        going = going[~shut[going] & (damping[going] < STIFFEST)]
        if k % LOOKED == 0:
            squares = (phi[going] ** 2).sum(axis=1)
            slow, before[going] = going[squares > 0.5 * before[going]], squares
            if len(slow):
                going = np.setdiff1d(going, slow[_best(mech, q[slow], free)[1] <= NO_BETTER])
        if not len(going):
            break
        L = metric[going]
        W = A[going] @ L
        S = W @ np.swapaxes(W, 1, 2)
        S += (damping[going] * np.maximum(np.trace(S, axis1=1, axis2=2), 1e-300))[:, None, None] * np.eye(S.shape[1])
        step = (L @ np.swapaxes(W, 1, 2) @ np.linalg.solve(S, -phi[going, :, None]))[..., 0]
        tried = q[going]
        tried[:, free] += step / np.maximum(1.0, np.abs(step / units).max(axis=1, initial=0.0))[:, None]
        tried = by_short_vectors(mech, tried, free)
        left, slopes, length = _left(mech, tried, free)
        nearer = ((left * left).sum(axis=1) < (phi[going] ** 2).sum(axis=1)) & np.isfinite(slopes).all(axis=(1, 2))
        damping[going] = np.maximum(damping[going] * np.where(nearer, 0.1, 10.0), 1e-15)
        on = going[nearer]
        q[on], phi[on], A[on], size[on] = (x[nearer] for x in (tried, left, slopes, length))
    return q, shut


def _best(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return steps (N, f) to where less is left open, and which part of its squares steps may take away at most, (N,).

    The squares count with their curvature, and steps are of 1 at most in each of its directions.
    """
    found, units = closure_of(mech, q), coordinate_scales(mech)[free]
    h = found.holonomic
    rows = row_scales(mech)[h, None]
    phi, A = found.residual()[:, h] / rows[:, 0], found.A[:, h][:, :, free] / rows * units
    slopes = np.einsum("sm,smij->sij", phi / rows[:, 0], found.slopes()[:, h][:, :, free][..., free])
    slopes *= units * units[:, None]
    bent = np.swapaxes(A, 1, 2) @ A + 0.5 * (slopes + np.swapaxes(slopes, 1, 2))
    steps, gains = np.zeros(A[:, 0].shape), np.full(len(q), np.inf)
    known = np.flatnonzero(np.isfinite(bent).all(axis=(1, 2)))
    values, axes = np.linalg.eigh(bent[known])
    down = -_times(np.swapaxes(axes, 1, 2), _times(np.swapaxes(A, 1, 2), phi)[known])
    within = np.abs(down) <= values
    parts = np.where(within, down / np.where(within & (values > 0.0), values, 1.0), np.where(down < 0.0, -1.0, 1.0))
    gain = (down * parts - 0.5 * values * parts**2).sum(axis=1)
    gains[known] = 2.0 * gain / np.maximum((phi[known] ** 2).sum(axis=1), np.finfo(float).tiny)
    steps[known] = units * _times(axes, parts)
    return steps, gains


def by_short_vectors(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> Array:
    """Return the same postures (N, n) by rotation vectors that are not too long."""
    return np.array([shortened(mech, row, free, LONGEST) for row in q]) if mech.ball_starts else q.copy()


def _left(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return what is left open in postures (N, n), its derivative to the joints that may move, and the sizes there.

    Each row is a part of its `row_scales`.
    """
    found = closure_of(mech, q)
    h = found.holonomic
    rows = row_scales(mech)[h]
    return found.residual()[:, h] / rows, found.A[:, h][:, :, free] / rows[:, None], _sizes(mech, found)


def _left_open(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> InvalidValue:
    """Return the refusal of a posture from which no closed one is found, or where a constraint is not defined."""
    for _ in range(SETTLED):  # to where what is left is least, as far as that is near
        step, gain = _best(mech, q[None], free)
        if not gain[0] <= NO_BETTER:
            break
        q = q.copy()
        q[free] += step[0]
    found = closure_of(mech, q[None])
    h, A = found.holonomic, found.A[0]
    phi, at = found.residual()[0, h], f"q = ({', '.join(f'{x:.4g}' for x in q)})"
    defined = np.isfinite(phi) & np.isfinite(A[h]).all(axis=1)
    k = int(np.argmax(np.abs(phi)) if defined.all() else np.argmin(defined))
    row = int(np.flatnonzero(h)[k])
    name = constraint_names(mech)[row]
    if not defined.all():
        return InvalidValue(f"loop {name}: is not defined at {at}; begin elsewhere")
    rank = np.linalg.matrix_rank((A * coordinate_scales(mech) / row_scales(mech)[:, None])[h][:, free], tol=1e-6)
    return InvalidValue(
        f"loop {name}: cannot be closed from there, {phi[k]:.3g} is left{ends_of(mech, row)} at {at}, where {rank} of "
        f"{len(phi)} constraints are independent in the {int(free.sum())} joints that may move; begin elsewhere"
        f"{', hold fewer joints' if not free.all() else ''}"
    )


def _nearest_rates(mech: Linkage, q: Array, qd0: Array, free: NDArray[np.bool_]) -> Array:
    """Return the rates (N, n) nearest to given ones that keep the loops closed."""
    A, metric = closure_of(mech, q).A, mass_metric(mech, q, free)
    inverse = metric @ np.linalg.pinv(A[:, :, free] @ metric, rcond=LEAST)
    qd = qd0.copy()
    for _ in range(2):  # the second takes rounding away
        qd[:, free] -= _times(inverse, _times(A, qd))
    left = np.abs(_times(A, qd))
    refused = left.max(axis=1, initial=0.0) > 1e-9 * (1.0 + np.abs(qd).max(axis=1, initial=0.0))
    for row in np.flatnonzero(refused):
        k = int(np.argmax(left[row]))
        error = InvalidValue(
            f"loop {constraint_names(mech)[k]}: the rates of the joints that are held contradict it, "
            f"{left[row, k]:.3g} is left{ends_of(mech, k)}; hold fewer joints"
        )
        raise error if len(q) == 1 else _of_row(int(row), error)
    return qd
