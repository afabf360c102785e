r"""Closure of loops: residual φ(q), constraint Jacobian A(q) with A q̇ = 0, its rate, and their derivatives.

A loop is a serial chain from its frame A to its frame B: the joints between A and the last common link inwards, then
those to B outwards. All is said in the axes of A, so that the columns of the chain change by crosses of each other:

================  =====================================================================================
here              meaning
================  =====================================================================================
R, p              orientation and origin of B in A
w, v              columns of the chain: ω of B relative to A is w q̇, the velocity of B's origin in A is v q̇
j < k             coordinate j is nearer to A than k
================  =====================================================================================

    (a)  ∂w_j/∂q_k = w_k × w_j  where k < j, else 0
    (b)  ∂v_j/∂q_k = w_k × v_j  where k < j, else w_j × v_k

The rows of A are those of (w; v) that the loop closes. The residual is p, and of the rotation: its vector where all
three are closed; where two are, the vector that swings the free axis of A into that of B; the angle where one is.
Where the loop is closed ∂φ/∂q = A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.checked_arguments import Samples, read_samples
from cstormpy.dynamics.kinematics import coordinates_to, forward_kinematics, jacobian
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import zeros
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.loops import Loop
from cstormpy.loops.constraint_rows import ConstraintRows, RowsAt

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = [
    "Chain",
    "Closure",
    "closure",
    "closure_jacobian",
    "closure_jacobian_rate",
    "closure_of",
    "constraint_names",
    "cross",
    "held_closure_of",
]

_ROTATES = 1e-9
"""A column of rotation below this is none."""


@dataclass(frozen=True)
class Chain:
    """A loop as a serial chain from A to B: its links (-1 is the base), coordinates in order, rows that are closed."""

    loop: Loop
    a: int
    b: int
    on_a: NDArray[np.int64]
    on_b: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def path(self) -> NDArray[np.int64]:
        """Coordinates from A to B."""
        return np.concatenate([self.on_a, self.on_b])

    @property
    def before(self) -> Array:
        """The matrix that sums up, for each coordinate of the path, what belongs to those nearer to A."""
        return np.triu(np.ones((len(self.path), len(self.path))), 1)


@dataclass(frozen=True)
class Closure:
    """All loops in some samples: of each its chain, R (N, 3, 3), p (N, 3), w and v (N, 3, k)."""

    n: int
    chains: tuple[Chain, ...]
    parts: tuple[tuple[Any, Any, Any, Any], ...]
    others: tuple[RowsAt, ...] = ()

    @property
    def m(self) -> int:
        """How many constraints there are."""
        return sum(len(chain.rows) for chain in self.chains) + sum(rows.A.shape[1] for rows in self.others)

    @property
    def holonomic(self) -> NDArray[np.bool_]:
        """Which rows close positions: not those of a constraint of rates, (m,)."""
        loops = np.ones(sum(len(chain.rows) for chain in self.chains), dtype=bool)
        return np.concatenate([loops, *(np.full(x.A.shape[1], x.holonomic) for x in self.others)])

    @cached_property
    def A(self) -> Any:
        """The constraint Jacobian, (N, m, n)."""
        return self._stacked(
            [np.concatenate([w, v], axis=-2) for _, _, w, v in self.parts], [rows.A for rows in self.others]
        )

    def rate(self, qd: Any) -> Any:
        """Return its rate Ȧ, (N, m, n), from rates (N, n)."""
        return self._stacked(
            [self.rate_of(chain, w, v, qd) for chain, (_, _, w, v) in self._each()], [x.rate(qd) for x in self.others]
        )

    def residual(self) -> Array:
        """Return φ, (N, m); not of symbols."""
        of_loops = [_residual(chain, R, p) for chain, (R, p, _, _) in self._each()]
        return np.concatenate([*of_loops, *(rows.phi for rows in self.others)], axis=-1)

    def sines(self) -> tuple[Any, Any]:
        """Return φ with the sines of its angles instead of these, and the truth that an angle is a right one or more.

        That says as much near to closure, and is said without a choice: of symbols too, of one sample.
        """
        found, over = [], False
        for chain, (R, p, _, _) in self._each():
            sine, wide = _sine(chain, R[0])
            found.append(np.concatenate([sine, p[0]])[chain.rows])
            over = wide | over
        return np.concatenate([*found, *(rows.phi[0] for rows in self.others)])[None], over

    def slopes(self) -> Array:
        """Return ∂A/∂q, (N, m, n, n), the last index being that of q."""
        of_others = [rows.slopes() for rows in self.others]
        like = [*(x for part in self.parts for x in part), *of_others]
        out = zeros((len(like[0]), self.m, self.n, self.n), *like)
        at = 0
        for chain, (_, _, w, v) in self._each():
            rows = slice(at, at := at + len(chain.rows))
            H = np.concatenate(_slopes(chain, w, v), axis=1)[:, chain.rows]
            out[:, rows, chain.path[:, None], chain.path[None, :]] = H
        for H in of_others:
            out[:, at : (at := at + H.shape[1])] = H
        return out

    def bias_slopes(self, qd: Array) -> tuple[Array, Array]:
        """Return the derivatives of Ȧ q̇ to q and to q̇, each (N, m, n)."""
        to_q, to_qd = [], []
        for chain, (_, _, w, v) in self._each():
            rates = qd[:, chain.path]
            Hw, Hv = _slopes(chain, w, v)
            by_rate = rates[:, None, :, None]
            carried = chain.before.T @ (Hw * by_rate)  # ∂Ω of what lies nearer to A
            omega = ((w * rates[:, None]) @ chain.before)[..., None]
            moving = 2.0 * omega + (w * rates[:, None])[..., None]
            d_moving = 2.0 * carried + Hw * by_rate
            turned = cross(carried, w[..., None], -3) + cross(omega, Hw, -3)
            shifted = cross(d_moving, v[..., None], -3) + cross(moving, Hv, -3)
            to_q.append(np.concatenate([(x * by_rate).sum(axis=2) for x in (turned, shifted)], axis=1))
            H = np.concatenate([Hw, Hv], axis=1)
            to_qd.append((H * by_rate).sum(axis=2) + (H * rates[:, None, None]).sum(axis=3))
        of_others = [rows.bias_slopes(qd) for rows in self.others]
        return self._stacked(to_q, [x for x, _ in of_others]), self._stacked(to_qd, [x for _, x in of_others])

    def _each(self) -> Any:
        return zip(self.chains, self.parts, strict=True)

    def first(self, loop: int) -> int:
        """Return the first row of a loop."""
        return sum(len(chain.rows) for chain in self.chains[:loop])

    @staticmethod
    def rate_of(chain: Chain, w: Any, v: Any, qd: Any) -> Any:
        """Return the rates of w and v of a chain, (N, 6, k)."""
        rates = qd[:, None, chain.path]
        omega, behind = (w * rates) @ chain.before, (v * rates) @ (1.0 - chain.before)
        return np.concatenate([cross(omega, w), cross(omega, v) + cross(w, behind)], axis=-2)

    def _stacked(self, of_chains: list[Any], of_others: list[Any]) -> Any:
        """Return matrices (N, 6, k) of the chains and (N, c, n) of other constraints as one (N, m, n)."""
        every = [*of_chains, *of_others]
        like = next((x for x in every if x.dtype == object), every[0])
        out = np.zeros((len(like), self.m, self.n), dtype=like.dtype)
        if out.dtype == object:
            out[...] = 0.0
        at = 0
        for chain, block in zip(self.chains, of_chains, strict=True):
            rows = slice(at, at := at + len(chain.rows))
            out[:, rows, chain.path] = np.asarray(block)[:, chain.rows]
        for block in of_others:
            out[:, at : (at := at + block.shape[1])] = np.asarray(block)
        return out.view(type(like))


def cross(a: Any, b: Any, axis: int = -2) -> Any:
    """Return a × b along an axis, also of symbols."""
    (x, y, z), (u, v, w) = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=axis)


def _slopes(chain: Chain, w: Array, v: Array) -> tuple[Array, Array]:
    """Return ∂w_j/∂q_k and ∂v_j/∂q_k, (N, 3, k, k) each."""
    w_j, w_k, v_j, v_k = w[..., :, None], w[..., None, :], v[..., :, None], v[..., None, :]
    nearer = chain.before.T > 0.0  # k < j
    turned = np.where(nearer, cross(w_k, w_j, -3), 0.0)  # (a)
    return turned, np.where(nearer, cross(w_k, v_j, -3), cross(w_j, v_k, -3))  # (b)


def _residual(chain: Chain, R: Array, p: Array) -> Array:
    from cstormpy import lie

    closed = chain.loop.directions
    turns = [k for k in range(3) if closed[k]]
    angle = np.zeros(p.shape)
    if len(turns) == 3:
        angle = lie.log_so3(R)
    elif len(turns) == 2:
        (k,) = {0, 1, 2}.difference(turns)
        free = np.eye(3)[k]
        axis = np.cross(free, R[..., :, k])
        sine, cosine = np.linalg.norm(axis, axis=-1), R[..., k, k]
        axis[(sine < _ROTATES) & (cosine < 0.0)] = np.eye(3)[turns[0]]  # turned by π, whichever way
        long = np.maximum(np.linalg.norm(axis, axis=-1), np.finfo(float).tiny)
        angle = axis * (np.arctan2(sine, cosine) / long)[..., None]
    elif turns:
        i, j = (turns[0] + 1) % 3, (turns[0] + 2) % 3
        angle[..., turns[0]] = np.arctan2(R[..., j, i] - R[..., i, j], R[..., i, i] + R[..., j, j])
    return np.concatenate([angle, p], axis=-1)[..., chain.rows]


def _sine(chain: Chain, R: Any) -> tuple[Any, Any]:
    """Return the sine of the angle of R about each axis that the loop closes, and whether it is a right one or more."""
    turns = [k for k in range(3) if chain.loop.directions[k]]
    sine = zeros(3, R)
    if not turns:
        return sine, False
    if len(turns) == 2:
        (k,) = {0, 1, 2}.difference(turns)
        i, j = (k + 1) % 3, (k + 2) % 3
        sine[i], sine[j] = -R[j, k], R[i, k]
        return sine, R[k, k] < 0.0
    for k in turns:
        i, j = (k + 1) % 3, (k + 2) % 3
        sine[k] = (R[j, i] - R[i, j]) / 2.0
    k = turns[0]
    i, j = (k + 1) % 3, (k + 2) % 3
    return sine, R[i, i] + R[j, j] + (R[k, k] - 1.0 if len(turns) == 3 else 0.0) < 0.0


def chains_of(mech: Linkage) -> tuple[Chain, ...]:
    """Return the chains of a mechanism's loops, kept."""
    if "chains" not in mech.memo:
        mech.memo["chains"] = tuple(_chain(mech, loop) for loop in mech.loops if isinstance(loop, Loop))
        if not mech.symbolic:
            _refuse_free_rotations(mech)
    made: tuple[Chain, ...] = mech.memo["chains"]
    return made


def _chain(mech: Linkage, loop: Loop) -> Chain:
    a, b = (-1 if end is None else mech.link_index(end) for end in (loop.link_a, loop.link_b))
    to_a, to_b = (coordinates_to(mech, end) for end in (a, b))
    common = set(to_a) & set(to_b)
    on_a, on_b = ([k for k in path if k not in common] for path in (to_a[::-1], to_b))
    balls = [k for first in mech.ball_starts for k in range(first, first + 3) if k in on_a or k in on_b]
    if balls:
        raise InvalidValue(
            f"loop {loop.name!r}: passes through the rotation vector of {mech.names[balls[0]]!r}, which is not "
            "supported yet; close the loop at that ball (directions='position') instead"
        )
    if not on_a and not on_b:
        raise InvalidValue(f"loop {loop.name!r}: no joint lies between its ends, so that there is nothing to close")
    rows = np.flatnonzero(loop.directions)
    return Chain(loop, a, b, np.array(on_a, dtype=np.int64), np.array(on_b, dtype=np.int64), rows)


def _refuse_free_rotations(mech: Linkage) -> None:
    """Refuse a loop that closes one rotation alone where the links rotate otherwise too: that can be no closure."""
    chains = mech.memo["chains"]
    alone = [k for k, chain in enumerate(chains) if sum(chain.loop.directions[:3]) == 1]
    if not alone:
        return
    found = closure_of(mech, np.random.default_rng(0).uniform(-2.0, 2.0, (3, mech.n)))
    for k in alone:
        loop, (R, _, w, _) = chains[k].loop, found.parts[k]
        about = loop.directions.index(True)
        others = [axis for axis in range(3) if axis != about]
        if np.abs(w[:, others]).max(initial=0.0) > _ROTATES or np.abs(R[:, others, about]).max() > _ROTATES:
            del mech.memo["chains"]
            raise InvalidValue(
                f"loop {loop.name!r}: closes rotation about {'xyz'[about]} alone, but its links also rotate about "
                "other axes; close two rotations ('hinge') or all three ('pose', 'orientation')"
            )


def closure_of(mech: Linkage, q: Any) -> Closure:
    """Return the closure of rows q (N, n), or of one row of symbols."""
    if not mech.loops:
        raise InvalidValue("closure: the mechanism has no loops; give it some as Mechanism(links, loops=[Loop(...)])")
    return _closure(mech.tree, chains_of(mech), q, tuple(rows.at(q) for rows in rows_of_constraints(mech)))


def held_closure_of(held: Linkage, loops: Sequence[Loop], q: Any) -> Closure:
    """Return the closure of loops on a mechanism with held joints: also of one that closes a rotation alone."""
    return _closure(held, tuple(_chain(held, loop) for loop in loops), q, ())


def _closure(tree: Linkage, chains: tuple[Chain, ...], q: Any, others: tuple[RowsAt, ...]) -> Closure:
    single = q.dtype == object
    poses = forward_kinematics(tree, q[0])[None] if single else forward_kinematics(tree, q)
    columns: dict[int, Any] = {}
    for end in {end for chain in chains for end in (chain.a, chain.b) if end >= 0}:
        columns[end] = jacobian(tree, q[0], end)[0][None] if single else jacobian(tree, q, end)[0]
    return Closure(tree.n, chains, tuple(_parts(chain, poses, columns) for chain in chains), others)


def rows_of_constraints(mech: Linkage) -> tuple[ConstraintRows, ...]:
    """Return the rows of a mechanism's own constraints, kept."""
    of = mech.numeric
    if "constraint rows" not in of.memo:
        of.memo["constraint rows"] = tuple(
            ConstraintRows(loop, of.n) for loop in of.loops if isinstance(loop, Constraint)
        )
    made: tuple[ConstraintRows, ...] = of.memo["constraint rows"]
    return made


def _parts(chain: Chain, poses: Any, columns: dict[int, Any]) -> tuple[Any, Any, Any, Any]:
    """Return R, p, w and v of a chain."""
    loop, count = chain.loop, len(poses)
    (R_a, p_a), (R_b, p_b) = (
        (T[:, :3, :3], T[:, :3, 3:])
        for T in (
            np.broadcast_to(pose, (count, 4, 4)) if end < 0 else poses[:, end] @ pose
            for end, pose in ((chain.a, loop.pose_a), (chain.b, loop.pose_b))
        )
    )
    to_a = np.swapaxes(R_a, -1, -2)
    R, p = to_a @ R_b, to_a @ (p_b - p_a)
    blocks = []
    if len(chain.on_a):
        J, E = columns[chain.a][:, :, chain.on_a], loop.pose_a[:3, :3].T
        w = E @ J[:, :3]
        v = E @ (J[:, 3:] + cross(J[:, :3], loop.pose_a[:3, 3:]))
        blocks.append((-w, -(v + cross(w, p))))
    if len(chain.on_b):
        J, E = columns[chain.b][:, :, chain.on_b], to_a @ poses[:, chain.b, :3, :3]
        blocks.append((E @ J[:, :3], E @ (J[:, 3:] + cross(J[:, :3], loop.pose_b[:3, 3:]))))
    w, v = (np.concatenate(part, axis=-1) for part in zip(*blocks, strict=True))
    return R, p[..., 0], w, v


def constraint_names(mech: Linkage) -> tuple[str, ...]:
    """Return what the rows of the constraints are, as "coupler - rocker: x"."""
    loops = [f"{loop.name}: {label}" for loop in mech.loops if isinstance(loop, Loop) for label in loop.labels]
    return (*loops, *(f"{r.constraint.name}: {label}" for r in rows_of_constraints(mech) for label in r.labels))


def _read(mech: Linkage, **given: ArrayLike) -> Samples:
    return read_samples(mech.tree, given)


def closure(mech: Linkage, q: ArrayLike) -> Array:
    """Return φ(q), (m,) or (N, m); `Mechanism.closure` tells of it."""
    samples = _read(mech, q=q)
    return samples.shaped(closure_of(mech, samples.rows["q"]).residual())


def closure_jacobian(mech: Linkage, q: ArrayLike) -> Array:
    """Return A(q), (m, n) or (N, m, n)."""
    samples = _read(mech, q=q)
    return samples.shaped(closure_of(mech, samples.rows["q"]).A)


def closure_jacobian_rate(mech: Linkage, q: ArrayLike, qd: ArrayLike) -> Array:
    """Return Ȧ(q, q̇), (m, n) or (N, m, n)."""
    samples = _read(mech, q=q, qd=qd)
    return samples.shaped(closure_of(mech, samples.rows["q"]).rate(samples.rows["qd"]))
