r"""Loops as serial chains: pose of frame B in A, the columns of the chain, how these change, and what is left open.

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

A ball stands as three hinges here, whose columns its rotation vector combines (`dynamics.charts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.charts import Chart
from cstormpy.dynamics.kinematics import coordinates_to, forward_kinematics, jacobian
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import zeros
from cstormpy.linkage.loops import Loop

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

ROTATES = 1e-9
"""A column of rotation below this is none."""


@dataclass(frozen=True)
class Chain:
    """A loop as a serial chain from A to B: its links (-1 is the base), coordinates in order, rows that are closed.

    Of each ball on it the first coordinate, and the places of all three on the path.
    """

    loop: Loop
    a: int
    b: int
    on_a: NDArray[np.int64]
    on_b: NDArray[np.int64]
    rows: NDArray[np.int64]
    balls: tuple[tuple[int, NDArray[np.int64]], ...] = ()

    @property
    def path(self) -> NDArray[np.int64]:
        """Coordinates from A to B."""
        return np.concatenate([self.on_a, self.on_b])

    @property
    def before(self) -> Array:
        """The matrix that sums up, for each coordinate of the path, what belongs to those nearer to A."""
        return np.triu(np.ones((len(self.path), len(self.path))), 1)


@dataclass(frozen=True)
class ChainAt:
    """A chain in some samples: R (N, 3, 3), p (N, 3), w and v (N, 3, k) per coordinate, charts of its balls."""

    chain: Chain
    R: Any
    p: Any
    w: Any
    v: Any
    charts: tuple[Chart, ...] = ()

    @cached_property
    def A(self) -> Any:
        """The columns (w; v), (N, 6, k)."""
        return np.concatenate([self.w, self.v], axis=-2)

    def residual(self) -> Array:
        """Return by how much the closed directions are open; not of symbols."""
        return _residual(self.chain.loop, self.R, self.p)

    def sines(self) -> tuple[Any, Any]:
        """Return the residual of one sample with the sines of its angles, and whether one is a right angle or more."""
        sine, wide = _sine(self.chain.loop, self.R[0])
        return np.concatenate([sine, self.p[0]])[self.chain.rows], wide

    def rate(self, qd: Any) -> Any:
        """Return Ȧ, (N, 6, k), from rates (N, n)."""
        rates, (w, v) = self._rates(qd)[:, None], self._hinged
        before = self.chain.before
        omega, behind = (w * rates) @ before, (v * rates) @ (1.0 - before)
        rate = np.concatenate([cross(omega, w), cross(omega, v) + cross(w, behind)], axis=-2)
        for places, chart, own in self._balls(qd):
            more = self._columns[..., places] @ chart.P(own)
            rate = _with(rate, places, rate[..., places] @ chart.J + more)
        return rate

    def slopes(self) -> Any:
        """Return ∂A/∂q, (N, 6, k, k), the last index being that of q."""
        H = np.concatenate(self._slopes, axis=1)
        for (_, places), chart in zip(self.chain.balls, self.charts, strict=True):
            H = self._turned_slopes(H, places, chart)
        return H

    def bias_slopes(self, qd: Any) -> tuple[Any, Any]:
        """Return the derivatives of Ȧ q̇ to q and to q̇, each (N, 6, k)."""
        rates, (w, v), (Hw, Hv) = self._rates(qd), self._hinged, self._slopes
        before, by_rate = self.chain.before, rates[:, None, :, None]
        carried = before.T @ (Hw * by_rate)  # ∂Ω of what lies nearer to A
        omega = ((w * rates[:, None]) @ before)[..., None]
        moving = 2.0 * omega + (w * rates[:, None])[..., None]
        d_moving = 2.0 * carried + Hw * by_rate
        turned = cross(carried, w[..., None], -3) + cross(omega, Hw, -3)
        shifted = cross(d_moving, v[..., None], -3) + cross(moving, Hv, -3)
        to_q = np.concatenate([(x * by_rate).sum(axis=2) for x in (turned, shifted)], axis=1)
        H = np.concatenate([Hw, Hv], axis=1)
        to_qd = (H * by_rate).sum(axis=2) + (H * rates[:, None, None]).sum(axis=3)
        for places, chart, own in self._balls(qd):
            h, _ = chart.bias(own)
            to_q = to_q + (H[:, :, places] * h[:, None, :, None]).sum(axis=2)
        for places, chart, own in self._balls(qd):
            C, P, (_, Q) = self._columns[..., places], chart.P(own), chart.bias(own)
            to_q = _with(to_q, places, to_q[..., places] @ chart.J + to_qd[..., places] @ P + C @ Q)
            to_qd = _with(to_qd, places, to_qd[..., places] @ chart.J + 2.0 * (C @ P))
        return to_q, to_qd

    @cached_property
    def _hinged(self) -> tuple[Any, Any]:
        """Columns w and v of chains whose balls are hinges."""
        w, v = self.w, self.v
        for (_, places), chart in zip(self.chain.balls, self.charts, strict=True):
            w, v = (_with(x, places, x[..., places] @ chart.inverse) for x in (w, v))
        return w, v

    @property
    def _columns(self) -> Any:
        return np.concatenate(self._hinged, axis=-2)

    @cached_property
    def _slopes(self) -> tuple[Any, Any]:
        """∂w_j/∂q_k and ∂v_j/∂q_k of chains whose balls are hinges, (N, 3, k, k) each."""
        w, v = self._hinged
        w_j, w_k, v_j, v_k = w[..., :, None], w[..., None, :], v[..., :, None], v[..., None, :]
        nearer = self.chain.before.T > 0.0  # k < j
        turned = np.where(nearer, cross(w_k, w_j, -3), 0.0)  # (a)
        return turned, np.where(nearer, cross(w_k, v_j, -3), cross(w_j, v_k, -3))  # (b)

    def _balls(self, qd: Any) -> Any:
        """Go through the balls: their places on the path, their charts, and the rates of their rotation vectors."""
        for (first, places), chart in zip(self.chain.balls, self.charts, strict=True):
            yield places, chart, qd[:, first : first + 3]

    def _rates(self, qd: Any) -> Any:
        """Return the rates along the path, (N, k), those of hinges for a ball."""
        rates = qd[:, self.chain.path]
        for places, chart, own in self._balls(qd):
            rates = _with(rates, places, (chart.J @ own[..., None])[..., 0])
        return rates

    def _turned_slopes(self, H: Any, places: NDArray[np.int64], chart: Chart) -> Any:
        """Return slopes as those to and of a rotation vector; `dynamics.charts`, (c)."""
        H = _with(H, places, H[..., places] @ chart.J[:, None])
        across = np.swapaxes(H, -1, -2)
        H = np.swapaxes(_with(across, places, across[..., places] @ chart.J[:, None]), -1, -2)
        own = zeros(H.shape, H, chart.K)
        own[...] = H
        C = self._columns[..., places]
        own[:, :, places[:, None], places[None, :]] += (C[..., None, None] * chart.K[:, None]).sum(axis=2)
        return own


def _with(X: Any, places: NDArray[np.int64], columns: Any) -> Any:
    """Return X with other columns in some places of its last axis."""
    out = zeros(X.shape, X, columns)
    out[...] = X
    out[..., places] = columns
    return out


def chain_of(mech: Linkage, loop: Loop) -> Chain:
    """Return the chain of a loop, refusing one that no joint lies in."""
    a, b = (-1 if end is None else mech.link_index(end) for end in (loop.link_a, loop.link_b))
    to_a, to_b = (coordinates_to(mech, end) for end in (a, b))
    common = set(to_a) & set(to_b)
    on_a, on_b = ([k for k in path if k not in common] for path in (to_a[::-1], to_b))
    if not on_a and not on_b:
        raise InvalidValue(f"loop {loop.name!r}: no joint lies between its ends, so that there is nothing to close")
    rows = np.flatnonzero(loop.directions)
    path = [*on_a, *on_b]
    balls = tuple(
        (first, np.array([path.index(first + j) for j in range(3)])) for first in mech.ball_starts if first in path
    )
    return Chain(loop, a, b, np.array(on_a, dtype=np.int64), np.array(on_b, dtype=np.int64), rows, balls)


def charts_of(chains: tuple[Chain, ...], q: Any) -> dict[int, Chart]:
    """Return the charts of all balls on some chains in rows q (N, n), by their first coordinates."""
    return {first: Chart(q[:, first : first + 3]) for chain in chains for first, _ in chain.balls}


def chains_at(tree: Linkage, chains: tuple[Chain, ...], q: Any) -> tuple[ChainAt, ...]:
    """Return chains in rows q (N, n), or in one row of symbols."""
    single = q.dtype == object
    poses = forward_kinematics(tree, q[0])[None] if single else forward_kinematics(tree, q)
    columns: dict[int, Any] = {}
    for end in {end for chain in chains for end in (chain.a, chain.b) if end >= 0}:
        columns[end] = jacobian(tree, q[0], end)[0][None] if single else jacobian(tree, q, end)[0]
    charts = charts_of(chains, q)
    return tuple(chain_at(chain, charts, poses, columns) for chain in chains)


def chain_at(chain: Chain, charts: dict[int, Chart], poses: Any, columns: dict[int, Any]) -> ChainAt:
    """Return a chain in samples, from charts of balls, poses of all links, and Jacobians of those at its ends."""
    loop, count = chain.loop, len(poses)
    (R_a, p_a), (R_b, p_b) = (
        (T[:, :3, :3], T[:, :3, 3:])
        for T in (
            np.broadcast_to(pose, (count, 4, 4), subok=True) if end < 0 else poses[:, end] @ pose
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
    return ChainAt(chain, R, p[..., 0], w, v, tuple(charts[first] for first, _ in chain.balls))


def cross(a: Any, b: Any, axis: int = -2) -> Any:
    """Return a × b along an axis, also of symbols."""
    rest = (slice(None),) * (-1 - axis)
    (x, y, z), (u, v, w) = ([every[(..., k, *rest)] for k in range(3)] for every in (a, b))
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=axis)


def _residual(loop: Loop, R: Array, p: Array) -> Array:
    from cstormpy import lie

    closed = loop.directions
    turns = [k for k in range(3) if closed[k]]
    angle = np.zeros(p.shape)
    if len(turns) == 3:
        angle = lie.log_so3(R)
    elif len(turns) == 2:
        (k,) = {0, 1, 2}.difference(turns)
        free = np.eye(3)[k]
        axis = np.cross(free, R[..., :, k])
        sine, cosine = np.linalg.norm(axis, axis=-1), R[..., k, k]
        axis[(sine < ROTATES) & (cosine < 0.0)] = np.eye(3)[turns[0]]  # turned by π, whichever way
        long = np.maximum(np.linalg.norm(axis, axis=-1), np.finfo(float).tiny)
        angle = axis * (np.arctan2(sine, cosine) / long)[..., None]
    elif turns:
        i, j = (turns[0] + 1) % 3, (turns[0] + 2) % 3
        angle[..., turns[0]] = np.arctan2(R[..., j, i] - R[..., i, j], R[..., i, i] + R[..., j, j])
    return np.concatenate([angle, p], axis=-1)[..., np.flatnonzero(loop.directions)]


def _sine(loop: Loop, R: Any) -> tuple[Any, Any]:
    """Return the sine of the angle of R about each axis that the loop closes, and whether it is a right one or more."""
    turns = [k for k in range(3) if loop.directions[k]]
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
