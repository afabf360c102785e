"""Motions of closed mechanisms: given ones that nearly close, random ones, and the directions that are free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.scales import coordinate_scales, falling_of
from cstormpy.loops.assembly import CLOSED, OPENED
from cstormpy.loops.closure import LEAST, closure_of, constraint_names, ends_of
from cstormpy.loops.projection import by_short_vectors, project, row_scales

if TYPE_CHECKING:
    from cstormpy.linkage.linkage import Linkage

#: Most steps by which a logged posture is closed, and what then may be left, in lengths of the mechanism and radians.
STEPS, SHUT = 20, 1e-11
#: Random postures whose constraints are nearer to dependent than this are left out.
WELL_POSED = 1e-3
#: How often random postures are drawn, twice as many as are wanted.
TRIES = 10
#: Steps by which random postures are closed, and the longest of them, in radians and lengths of the mechanism.
LONG_WAY, FURTHEST = 40, 0.5


def free_directions(mech: Linkage, A: Array, of: Any = slice(None)) -> Array:
    """Return bases (N, n, f) of the null spaces of A (N, m, n), with zeros where there are fewer, of constraints `of`.

    They are orthonormal in parts of the ordinary sizes of the coordinates.
    """
    units = coordinate_scales(mech)
    _, values, rows = np.linalg.svd(A * units / row_scales(mech)[of][:, None], full_matrices=True)
    rank = (values > LEAST * values.max(axis=1, initial=0.0, keepdims=True)).sum(axis=1)
    fewest = int(rank.min())
    free = np.arange(fewest, A.shape[2]) >= rank[:, None]
    return np.asarray(np.swapaxes(rows[:, fewest:] * units * free[..., None], 1, 2))


def state_directions(mech: Linkage, x: Array) -> Array:
    """Return directions (N, 2n, 2f) along which states (N, 2n) may change; of closed ones, so that they stay closed.

    With A δq = 0 and A δq̇ = −(∂A/∂q δq) q̇.
    """
    n = mech.n
    if not mech.loops:
        return np.tile(np.eye(2 * n), (len(x), 1, 1))
    found = closure_of(mech, x[:, :n])
    basis = free_directions(mech, found.A)
    turned = np.einsum("smnk,sn,skf->smf", found.slopes(), x[:, n:], basis)
    tilted = -_least(mech, found.A, turned)
    return np.block([[basis, np.zeros_like(basis)], [tilted, basis]])


def closed_motion(
    mech: Linkage, q: Array, qd: Array, qdd: Array | None = None, what: str = "data", advice: str = ""
) -> tuple[Array, Array, Array]:
    """Return the nearest motion (N, n) that closes all loops, of one that nearly does; q̈ is zero unless given.

    Of rates and accelerations that do not, `advice` is given too.

    Raises
    ------
    InvalidValue
        Naming the loop, by how much it is open, and the row.
    """
    found = closure_of(mech, q)
    h, units, falling = found.holonomic, coordinate_scales(mech), falling_of(mech)
    _refuse_gap(mech, found.residual(), 1.0, what, "is open by")
    for _ in range(STEPS):
        off = found.residual()[:, h]
        if np.abs(off / row_scales(mech)[h]).max(initial=0.0) <= SHUT:
            break
        q = q - _least(mech, found.A[:, h], off, h)
        found = closure_of(mech, q)
    _refuse_gap(mech, found.residual(), CLOSED / OPENED, what, "cannot be closed, and is left open by")
    # of a whole log, as those at the ends of a spline that differentiates noise are rough
    fast = float(np.abs(qd / units).max(initial=0.0))
    rate = (found.A @ qd[..., None])[..., 0]
    _refuse_gap(mech, rate, np.sqrt(falling) + fast, what, "opens at the rate", advice)
    qd = qd - _least(mech, found.A, rate)
    if qdd is None:
        return q, qd, np.zeros_like(q)
    opens = ((found.A @ qdd[..., None]) + found.rate(qd) @ qd[..., None])[..., 0]
    largest = float(np.abs(qdd / units).max(initial=0.0)) + fast**2
    _refuse_gap(mech, opens, falling + largest, what, "is opened by an acceleration of", advice)
    return q, qd, qdd - _least(mech, found.A, opens)


def _least(mech: Linkage, A: Array, x: Array, of: Any = slice(None)) -> Array:
    """Return A⁺ x, row by row, of constraints `of`: the least in parts of the ordinary sizes of the coordinates."""
    inverse = least_of(mech, A, of)
    return np.asarray(inverse @ x if x.ndim == 3 else (inverse @ x[..., None])[..., 0])


def least_of(mech: Linkage, A: Array, of: Any = slice(None)) -> Array:
    """Return A⁺ (N, n, m) of constraints `of`, whose answers are the least in parts of the coordinates' sizes."""
    units, rows = coordinate_scales(mech), row_scales(mech)[of]
    return np.asarray(units[:, None] * np.linalg.pinv(A * units / rows[:, None], rcond=LEAST) / rows)


def _refuse_gap(mech: Linkage, off: Array, scale: float, what: str, verb: str, advice: str = "") -> None:
    off = np.abs(off)
    part = off / row_scales(mech)
    if not (part > OPENED * scale).any():
        return
    row, k = divmod(int(np.argmax(part)), off.shape[1])
    raise InvalidValue(
        f"{what}: loop {constraint_names(mech)[k]}: {verb} {off[row, k]:.3g}{ends_of(mech, k)} in row {row}; is the "
        f"motion that of all joints of the open chain, in their order, and in radians and metres?{advice}"
    )


def _random_postures(mech: Linkage, q: Array) -> Array:
    """Return closed postures that are reached from some (N, n) and where constraints are not nearly dependent."""
    every = np.ones(mech.n, dtype=bool)
    q = by_short_vectors(mech, q, every)
    found, units, rows = closure_of(mech, q), coordinate_scales(mech), row_scales(mech)
    h = found.holonomic
    for _ in range(LONG_WAY):
        step = _least(mech, found.A[:, h], found.residual()[:, h], h)
        longest = np.abs(step / units).max(axis=1, keepdims=True)
        q = by_short_vectors(mech, q - step * np.minimum(1.0, FURTHEST / np.maximum(longest, FURTHEST)), every)
        found = closure_of(mech, q)
    values = np.linalg.svd(found.A * units / rows[:, None], compute_uv=False)
    largest = values.max(axis=1, initial=0.0, keepdims=True)
    least = np.where(values > LEAST * largest, values, np.inf).min(axis=1, initial=np.inf)
    closed = np.abs(found.residual() / rows).max(axis=1, initial=0.0) <= SHUT
    return q[closed & (least > WELL_POSED * largest[:, 0])]


def random_motions(mech: Linkage, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return random motions (N, n) of all joints, which close the loops if there are some."""
    units, falling = coordinate_scales(mech), falling_of(mech)
    spread = units * np.array([np.pi if joint.turns else 1.0 for joint in mech.freedoms])
    sizes = units * np.array([np.sqrt(falling), falling])[:, None, None]
    if not mech.loops:
        q, rates = rng.uniform(-1, 1, (count, mech.n)) * spread, sizes * rng.normal(size=(2, count, mech.n))
        return q, rates[0], rates[1]
    kept = np.zeros((0, mech.n))
    for _ in range(TRIES):
        if len(kept) < count:
            kept = np.concatenate([kept, _random_postures(mech, rng.uniform(-1, 1, (2 * count, mech.n)) * spread)])
    if not len(kept):
        project(mech, np.zeros(mech.n))  # which may know why
        raise InvalidValue(f"loop {mech.loops[0].name!r}: no random posture could be closed; all were singular or open")
    q = kept[:count]
    found, (qd, qdd) = closure_of(mech, q), sizes * rng.normal(size=(2, *q.shape))
    qd = qd - _least(mech, found.A, (found.A @ qd[..., None])[..., 0])
    opens = ((found.A @ qdd[..., None]) + found.rate(qd) @ qd[..., None])[..., 0]
    return q, qd, qdd - _least(mech, found.A, opens)
