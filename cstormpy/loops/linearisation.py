"""Linear models and equilibria of closed mechanisms, in the coordinates that the loops leave free.

With z some independent joints, as many as there are freedoms, the others follow: with A q̇ = 0 and A_d the columns of
the dependent joints,

    (a)  δq = N δz,            N = [1; -A_d⁻¹ A_z]
    (b)  δq̇ = N δż + G δz,     G = [0; -A_d⁻¹ ∂(A q̇)/∂q N]

so that the derivatives of q̈ to q and q̇ along (a) and (b) are those of z̈ to (z, ż). An equilibrium is a closed posture
where the loads of the open chain are carried by motors and by the forces Aᵀ λ of the loops.

A constraint of rates A_r q̇ = 0 ties positions, too, as long as A_r δq = 0 stays true along the motion,

    (c)  d(A_r δq)/dt = (Ȧ_r - ∂(A_r q̇)/∂q) δq = 0

as it does at rest, and where A_r can be integrated. Elsewhere, as of a wheel that rolls, positions follow in (a) by the
loops alone, and p, those that loops leave free, take the place of z among the states and in G.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import WrenchLike, coordinates_of
from cstormpy.errors import InvalidValue
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.loops.closure import Closure, closure_of, constraint_names
from cstormpy.loops.dynamics import closed_inverse
from cstormpy.loops.projection import project, row_scales
from cstormpy.loops.redundancy import matrix_rank, pseudoinverse
from cstormpy.loops.sensitivity import closed_sensitivity
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.linearisation import ROUNDING, Equilibrium, Linearization, linearize, search_for, trim

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

TIED = 1e-6
"""Drift [1/s], for a motion of up to 1 rad/s or m/s, below which positions that a constraint of rates ties stay so."""

OPEN = 1e-9
"""A posture at which a search for an equilibrium has ended is closed anew where it misses closure by more, in ordinary
sizes of the constraints."""


@dataclass(frozen=True)
class ClosedLinearization(Linearization):
    """The linear model of a closed mechanism, in the state (z, ż) of joints that are independent.

    Attributes
    ----------
    A : ndarray, (2f, 2f) or (N, 2f, 2f)
    B : ndarray, (2f, m) or (N, 2f, m)
    rate : ndarray, (2f,) or (N, 2f)
    states, inputs : tuple of str
        As in `Linearization`; f joints and their rates, and first the positions of more joints than these where
        constraints of rates, as of a wheel that rolls, leave them free.
    joints : ndarray, (2n, 2f) or (N, 2n, 2f)
        What the states of all joints follow by: δ(q, q̇) = joints δ(z, ż).
    """

    joints: Array


@dataclass(frozen=True)
class Tangent:
    """Directions in which a closed mechanism moves from a state: δ(q, q̇) = joints δ(p, ż).

    Attributes
    ----------
    positions, independent : ndarray of int, (k,), (f,)
        Coordinates p and z, which are the same unless constraints of rates leave more positions free than rates.
    N, G : ndarray, (n, k)
        Of (a) and (b).
    V : ndarray, (n, f)
        N of the rates.
    """

    positions: NDArray[np.int64]
    independent: NDArray[np.int64]
    N: Array
    G: Array
    V: Array

    @property
    def joints(self) -> Array:
        """The matrix (2n, k + f)."""
        return np.block([[self.N, np.zeros(self.V.shape)], [self.G, self.V]])

    @property
    def states(self) -> NDArray[np.int64]:
        """Places of p and ż in the state (q, q̇)."""
        return np.concatenate([self.positions, len(self.N) + self.independent])


def independent_joints(
    mech: Linkage, q: Array, wanted: Iterable[str] | None = None, where: str = "here"
) -> NDArray[np.int64]:
    """Return coordinates that may be given freely in a closed posture: those wanted, or the best conditioned.

    Motors come before other joints where they do as well. `where` is said of a posture in which those wanted may not.

    Raises
    ------
    InvalidValue
        If those that are wanted are too few, too many, or tied to each other.
    """
    A = closure_of(mech, q[None]).A[0] * coordinate_scales(mech) / row_scales(mech)[:, None]
    scale = float(np.abs(A).max(initial=0.0))
    rank = matrix_rank(A, scale)
    if wanted is not None:
        return _checked(mech, A, rank, scale, wanted, where)
    # joints that are left out must determine the constraints, motors last
    return _without_pivots(A / max(scale, np.finfo(float).tiny), rank, np.where(mech.actuated_mask, 0.1, 1.0))


def _without_pivots(A: Array, rank: int, weight: Array) -> NDArray[np.int64]:
    """Return the columns but the best pivots, one by one; those of weight zero are none."""
    dependent: list[int] = []
    for _ in range(rank):
        lengths = np.linalg.norm(A, axis=0)
        lengths[dependent] = 0.0
        k = int(np.argmax(weight * lengths))
        dependent.append(k)
        along = A[:, k] / lengths[k]
        A = A - np.outer(along, along @ A)
    return np.setdiff1d(np.arange(A.shape[1]), dependent)


def free_positions(mech: Linkage, q: Array, qd: Array, independent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return p of closed states (N, n): the independent joints, and more where (c) does not hold in all of them."""
    found = closure_of(mech, q)
    h = found.holonomic
    if h.all():
        return independent
    rates = found.rate(qd)
    for k, A in enumerate(found.A):
        scale = float(np.abs(A).max(initial=0.0))
        drift = (rates[k] - _turning(found, k, qd[k]))[~h] @ _following(A, independent, scale)
        if np.abs(drift).max(initial=0.0) > TIED * scale * max(1.0, float(np.abs(qd[k]).max())):
            rank = matrix_rank(A[h], scale)
            weight = np.ones(mech.n)
            weight[independent] = 0.0
            return _without_pivots(A[h], rank, weight)
    return independent


def _checked(mech: Linkage, A: Array, rank: int, scale: float, wanted: Iterable[str], where: str) -> NDArray[np.int64]:
    freedoms, chosen = mech.n - rank, list(dict.fromkeys(coordinates_of(mech, wanted, "independent")))
    if len(chosen) != freedoms:
        raise InvalidValue(f"independent: expected {freedoms} coordinate(s), as many as freedoms, got {len(chosen)}")
    rest = np.setdiff1d(np.arange(mech.n), chosen)
    if matrix_rank(A[:, rest], scale) < rank:
        names = ", ".join(repr(mech.names[k]) for k in chosen)
        raise InvalidValue(
            f"independent: loop {constraint_names(mech)[0]}: the joints {names} do not determine the others {where}; "
            "name others, or none"
        )
    return np.array(chosen, dtype=np.int64)


def tangent(
    mech: Linkage, q: Array, qd: Array, independent: NDArray[np.int64], positions: NDArray[np.int64] | None = None
) -> Tangent:
    """Return the directions (a) and (b) about a closed state; p are those of `free_positions` unless given."""
    if positions is None:
        positions = free_positions(mech, q[None], qd[None], independent)
    found = closure_of(mech, q[None])
    A = found.A[0]
    scale = float(np.abs(A).max(initial=0.0))
    N = V = _following(A, independent, scale)
    if len(positions) > len(independent):
        N = _following(A[found.holonomic], positions, scale)
    G, dependent = np.zeros(N.shape), np.setdiff1d(np.arange(mech.n), independent)
    G[dependent] = -pseudoinverse(A[:, dependent], scale) @ _turning(found, 0, qd) @ N
    return Tangent(positions, independent, N, G, V)


def _following(A: Array, independent: NDArray[np.int64], scale: float) -> Array:
    """Return N, by which all joints follow independent ones."""
    n = A.shape[1]
    dependent = np.setdiff1d(np.arange(n), independent)
    N = np.zeros((n, len(independent)))
    N[independent] = np.eye(len(independent))
    N[dependent] = -pseudoinverse(A[:, dependent], scale) @ A[:, independent]
    return N


def _turning(found: Closure, k: int, qd: Array) -> Array:
    """Return ∂(A q̇)/∂q of a row of states."""
    return np.asarray((found.slopes()[k] * qd[:, None]).sum(axis=1))


def closed_linearize(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    acc: ArrayLike | None = None,
    wrench: WrenchLike = None,
    independent: Iterable[str] | None = None,
) -> ClosedLinearization:
    """Return the linear model about a closed state; `Mechanism.linearize` says what is what.

    That of all joints has a meaning along closed states only.
    """
    whole = linearize(mech, q, qd, tau, acc, wrench, closed_sensitivity)
    given = np.asarray(q, dtype=float)
    rows = given.reshape(-1, mech.n)
    rates = np.broadcast_to(0.0 if qd is None else np.asarray(qd, dtype=float), given.shape).reshape(rows.shape)
    first = rows[0] if len(rows) else project(mech, np.zeros(mech.n))[0]
    z = independent_joints(mech, first, independent)
    for k, row in enumerate(rows[1:], 1):
        independent_joints(mech, row, [mech.names[j] for j in z], f"in row {k}")
    p = free_positions(mech, rows, rates, z)
    kept = np.concatenate([p, mech.n + z])
    joints = np.empty((len(rows), 2 * mech.n, len(kept)))
    for made, a, b in zip(joints, rows, rates, strict=True):
        made[:] = tangent(mech, a, b, z, p).joints
    joints = joints.reshape(*given.shape[:-1], *joints.shape[1:])
    return ClosedLinearization(
        (whole.A @ joints)[..., kept, :],
        whole.B[..., kept, :],
        whole.rate[..., kept],
        tuple(whole.states[k] for k in kept),
        whole.inputs,
        joints,
    )


def closed_trim(
    mech: Linkage,
    guess: ArrayLike | None = None,
    tau: ArrayLike | Mapping[str, float] | None = None,
    hold: Iterable[str] = (),
    tolerance: float = 1e-9,
    wrench: WrenchLike = None,
) -> Equilibrium:
    """Return an equilibrium near a posture; `Mechanism.trim` says what is what."""
    found = trim(mech, guess, tau, hold, tolerance, wrench, _closed_search)
    if tau is not None:
        return found
    still = np.zeros(mech.n)  # of more motors than freedoms the least torque
    load = np.asarray(closed_inverse(mech, found.q, still, still, wrench))
    return Equilibrium(found.q, load[mech.actuated_mask], found.residual)


def _closed_search(
    mech: Linkage, guess: Array, free: NDArray[np.bool_], rows: NDArray[np.bool_], wanted: Array, wrench: WrenchLike
) -> tuple[Array, Array, Array]:
    """Return a closed posture whose loads in `rows` are as wanted, the loads, and their rounding, as `search_for` does.

    Joints and multipliers are found.
    """
    n, still = mech.n, np.zeros(mech.n)
    held = [name for name, moves in zip(mech.names, free, strict=True) if not moves]
    q, _ = project(mech, guess, None, held)
    m = len(constraint_names(mech))

    def ask(x: Array) -> tuple[Array, Array, Array]:
        d = hybrid_sensitivity(mech.tree, x[:n], still, still, wrench, drive="inverse", name="qdd")
        found = closure_of(mech, x[None, :n])
        A, lam = found.A[0], x[n:]
        h = found.holonomic
        phi = found.residual()[0, h]
        load = d.y - A.T @ lam
        turning = (found.slopes()[0] * lam[:, None, None]).sum(axis=0)
        J = np.block([[(d.dy_dq - turning)[rows], -A.T[rows]], [A[h], np.zeros((len(phi), m))]])
        return load, np.concatenate([(load - wanted)[rows], phi]), J[:, np.append(free, np.ones(m, dtype=bool))]

    start = closure_of(mech, q[None])
    closing = np.abs(start.A[0] * coordinate_scales(mech)).max(axis=1)
    closing = np.where(closing > 0.0, closing, 1.0)
    moving = np.append(free, np.ones(m, dtype=bool))
    x, load, rounding = search_for(mech, ask, np.concatenate([q, np.zeros(m)]), moving, rows, closing, start.holonomic)
    open_by = closure_of(mech, x[None, :n]).residual()[0] / closing
    if (np.abs(open_by[start.holonomic]) > OPEN).any():  # a search that finds nothing ends anywhere
        with contextlib.suppress(InvalidValue):
            x = np.append(project(mech, x[:n], None, held)[0], np.zeros(m))
            A = closure_of(mech, x[None, :n]).A[0]
            x[n:] = np.linalg.lstsq(A.T[rows], ask(x)[1][: rows.sum()], rcond=None)[0]
            load = ask(x)[0]
    shares = np.abs(closure_of(mech, x[None, :n]).A[0].T) @ np.abs(x[n:])  # what the forces of the loops add up to
    return x[:n], load, np.maximum(rounding, ROUNDING * shares)
