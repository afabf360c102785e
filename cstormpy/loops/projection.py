"""The nearest closed state, from nearby and from afar, and all ways to assemble a closed mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.charts import LONGEST, half_turn_left, shortened
from cstormpy.dynamics.checked_arguments import read_samples, some_of
from cstormpy.dynamics.inertial import inertial
from cstormpy.dynamics.kinematics import forward_kinematics
from cstormpy.errors import InvalidType, InvalidValue, UnknownName
from cstormpy.loops.closure import LEAST, Closure, closure_of, constraint_names, ends_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

SHUT = 1e-12
"""A projected state closes its loops to this, in units of the mechanism's size."""

STARTS, BESIDE = 6, 0.5
"""Most postures from which a closed one is looked for, and how far each lies farther away than the one before."""

ITERATIONS = 100
"""Most steps of a projection; from nearby it takes three."""

STIFFEST = 1e9
"""Steps that are damped by more go nowhere."""

STRAIGHT = 1.0
"""A step that turns joints by more [rad] goes by slopes that do not hold so far, and may end in another assembly."""

NEAREST, FLATTEST, HALVINGS = 1e-9, 0.1, 12
"""A posture is the nearest where its distance falls by no more than this part along closed ones; the least curvature of
the distance that a step counts with; how often a step is halved."""


def one_posture(mech: Linkage, q: ArrayLike) -> Array:
    """Return one posture (n,), as checked."""
    return checks.array(q, (mech.n,), "q", f"one posture; the coordinates are {some_of(mech.names)}")


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
    near, near_rates = projected(mech, rows, rates, free)
    return samples.shaped(near), samples.shaped(near_rates)


def assemblies(mech: Linkage, q: ArrayLike, hold: Iterable[str] = (), tries: int = 48) -> Array:
    """Return all ways to close the loops that are found with some joints held; `Mechanism.assemblies` tells of it."""
    q0, tries = one_posture(mech, q), checks.count(tries, "tries")
    free = ~_held(mech, hold)
    rng, metric = np.random.default_rng(0), mass_metric(mech, q0, free)
    found: list[Array] = []
    poses: list[Array] = []
    turned = [np.where(free & (k > 0), rng.uniform(-np.pi, np.pi, mech.n), 0.0) for k in range(tries)]
    for end in _closed(mech, q0 + np.array(turned), free, metric):
        closed = shortened(mech, end, free)
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
    return np.array(sorted(found, key=lambda x: float(np.linalg.norm(x - q0))))


def projected(mech: Linkage, q0: Array, qd0: Array, free: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the closed states nearest to some, (N, n) each."""
    metric = mass_metric(mech, q0, free)
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


def mass_metric(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> Array:
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
                (tried,) = _closed(mech, tried[None], free, metric)
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

    closed = map(unwound, closed_around(mech, q0, free, metric))
    return min(closed, key=lambda q: float(np.linalg.norm(inverse @ (q - q0)[free])))


def closed_around(mech: Linkage, q0: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return closed postures (N, n) from q0 and from postures beside it: one that is stretched shows no way to go."""
    rng = np.random.default_rng(0)
    beside = [np.where(free, BESIDE * k * rng.normal(size=mech.n), 0.0) for k in range(STARTS)]
    return _closed(mech, q0 + np.array(beside), free, metric)


def _closed(mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    """Return the closed postures (N, n) that are found from some, by damped Gauss-Newton steps in the mass metric.

    Raises
    ------
    InvalidValue
        None is found; of the first start it is said what is left there.
    """
    try:
        q, shut = _closing(mech, starts, free, metric)
    except InvalidValue:  # a constraint's function fails on the way from one of them
        if len(starts) == 1:
            raise
        return _closed_each(mech, starts, free, metric)
    if not shut.any():
        raise _left_open(mech, q[0], free)
    return q[shut]


def _closed_each(mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array) -> Array:
    found, first = [], None
    for start in starts:
        try:
            found.append(_closed(mech, start[None], free, metric))
        except InvalidValue as error:
            first = first or error
    if first is not None and not found:
        raise first
    return np.concatenate(found)


def _closing(mech: Linkage, starts: Array, free: NDArray[np.bool_], metric: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return where Gauss-Newton's steps lead from some postures (N, n), and which of these places are closed."""
    q = np.array([shortened(mech, start, free, LONGEST) for start in starts])
    phi, A, size = _left(mech, q, free)
    squares, damping = (phi * phi).sum(axis=1), np.full(len(q), 1e-3)
    going = np.flatnonzero(np.isfinite(squares) & np.isfinite(A).all(axis=(1, 2)))
    shut = np.zeros(len(q), dtype=bool)
    for _ in range(5 * ITERATIONS):
        shut[going] = np.abs(phi[going]).max(axis=1, initial=0.0) <= SHUT * size[going]
        going = going[~shut[going] & (damping[going] < STIFFEST)]
        if not len(going):
            break
        W = A[going] @ metric
        S = W @ np.swapaxes(W, 1, 2)
        S += (damping[going] * np.maximum(np.trace(S, axis1=1, axis2=2), 1e-300))[:, None, None] * np.eye(S.shape[1])
        step = (metric @ np.swapaxes(W, 1, 2) @ np.linalg.solve(S, -phi[going, :, None]))[..., 0]
        tried = q[going]
        tried[:, free] += step / np.maximum(1.0, np.abs(step).max(axis=1, initial=0.0))[:, None]
        tried = np.array([shortened(mech, row, free, LONGEST) for row in tried])
        left, slopes, length = _left(mech, tried, free)
        square = (left * left).sum(axis=1)
        nearer = (square < squares[going]) & np.isfinite(slopes).all(axis=(1, 2))
        damping[going] *= np.where(nearer, 0.1, 10.0)
        np.maximum(damping, 1e-15, out=damping)
        on = going[nearer]
        q[on], phi[on], A[on], size[on], squares[on] = (x[nearer] for x in (tried, left, slopes, length, square))
    return q, shut


def _left(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return what is left open in postures (N, n), its derivative to the joints that may move, and the sizes there."""
    found = closure_of(mech, q)
    h = found.holonomic
    return found.residual()[:, h], found.A[:, h][:, :, free], _sizes(found)


def _left_open(mech: Linkage, q: Array, free: NDArray[np.bool_]) -> InvalidValue:
    """Return the refusal of a posture from which no closed one is found, or where a constraint is not defined."""
    found = closure_of(mech, q[None])
    h, A = found.holonomic, found.A[0]
    phi, at = found.residual()[0, h], f"q = ({', '.join(f'{x:.4g}' for x in q)})"
    defined = np.isfinite(phi) & np.isfinite(A[h]).all(axis=1)
    k = int(np.argmax(np.abs(phi)) if defined.all() else np.argmin(defined))
    row = int(np.flatnonzero(h)[k])
    name = constraint_names(mech)[row]
    if not defined.all():
        return InvalidValue(f"loop {name}: is not defined at {at}; begin elsewhere")
    rank = np.linalg.matrix_rank(A[h][:, free], tol=1e-6)
    return InvalidValue(
        f"loop {name}: cannot be closed from there, {phi[k]:.3g} is left{ends_of(mech, row)} at {at}, where {rank} of "
        f"{len(phi)} constraints are independent in the {int(free.sum())} joints that may move; begin elsewhere"
        f"{', hold fewer joints' if not free.all() else ''}"
    )


def _nearest_rate(mech: Linkage, q: Array, qd0: Array, free: NDArray[np.bool_]) -> Array:
    """Return the rate nearest to a given one that keeps the loops closed."""
    A = closure_of(mech, q[None]).A[0]
    metric = mass_metric(mech, q, free)
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
