"""Velocity and acceleration of a point of a link, and what they change by.

Of a point at p(q) in the base's frame let P = ∂p/∂q. Then

    v = P q̇,    a = P q̈ + Ṗ q̇
    ∂v/∂q̇ = P,  ∂v/∂q = Ṗ,    ∂a/∂q̈ = P,  ∂a/∂q̇ = 2 Ṗ,  ∂a/∂q = P̈

since derivatives to time and to q may change places: the answers to (15) and (21)-(26) of Xiang, Arora and Abdel-Malek
(2008). With the link's body Jacobian J and rotation R, and r the point in the link's frame, P = R [-r×, 1] J. In the
link's frame the joints k behind a joint j turn its column, J̇_j = ad_{J_j} W_j + Ad Ṡ_j with W_j = Σ_k J_k q̇_k, where
Ṡ is zero but for rotation vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array, real_array
from cstormpy.dynamics.checked_arguments import link_index, read_samples, refuse_overflow
from cstormpy.dynamics.kinematics import forward_kinematics, jacobian, places_on_path
from cstormpy.graph.arrays import as_numbers

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

_STEP = 1e-30
"""Of a complex step."""


@dataclass(frozen=True)
class PointMotion:
    """Motion of a point of a link, in the axes of the base, of one sample or of a batch (leading dimension N)."""

    position: Array  #: (3,)
    velocity: Array  #: (3,)
    acceleration: Array  #: (3,)
    dp_dq: Array  #: (3, n), of the position; so are dv_dqd and da_dqdd
    dv_dq: Array  #: (3, n), of the velocity to q
    da_dq: Array  #: (3, n), of the acceleration to q
    da_dqd: Array  #: (3, n), of the acceleration to q̇

    @property
    def dv_dqd(self) -> Array:
        """The derivative of the velocity to q̇, (3, n)."""
        return self.dp_dq

    @property
    def da_dqdd(self) -> Array:
        """The derivative of the acceleration to q̈, (3, n)."""
        return self.dp_dq


def point_velocity(mech: Linkage, q: ArrayLike, qd: ArrayLike, link: str | int, point: ArrayLike) -> Array:
    """Return v, (3,) or (N, 3)."""
    q, qd, r = as_numbers(q, "q"), as_numbers(qd, "qd"), _point(point)
    samples = read_samples(mech, {"q": q, "qd": qd})
    R, J = _rotation(mech, q, link), jacobian(mech, q, link, qd)[0]
    with _overflow_refused():
        v = _apply(R, _apply(_at(r, J), qd))
    refuse_overflow(samples, v)
    return v


def point_acceleration(
    mech: Linkage, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, link: str | int, point: ArrayLike
) -> Array:
    """Return a, (3,) or (N, 3); all may be symbols."""
    q, qd, qdd, r = as_numbers(q, "q"), as_numbers(qd, "qd"), as_numbers(qdd, "qdd"), _point(point)
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd})
    J, rate = jacobian(mech, q, link, qd)
    with _overflow_refused():
        omega = _apply(J[..., :3, :], qd)
        inside = _apply(_at(r, J), qdd) + _apply(_at(r, rate), qd) + _cross(omega, _apply(_at(r, J), qd))
        a = _apply(_rotation(mech, q, link), inside)
    refuse_overflow(samples, a)
    return a


def point_motion(
    mech: Linkage, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, link: str | int, point: ArrayLike
) -> PointMotion:
    """Return how a point moves with its derivatives."""
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd})
    r, index = _point(point), link_index(mech, link)
    q, qd, qdd = samples.rows.values()
    poses = forward_kinematics(mech, q)
    R = poses[:, index, :3, :3]
    with _overflow_refused():
        J, J_rate, J_rate2 = _jacobian_rates(mech, q, qd, qdd, index, poses)
        omega, alpha = _apply(J[:, :3], qd), _apply(J[:, :3], qdd) + _apply(J_rate[:, :3], qd)
        turn, turn_rate = _hat(omega), _hat(alpha)
        P, P1, P2 = _at(r, J), _at(r, J_rate), _at(r, J_rate2)
        parts = P, turn @ P + P1, (turn_rate + turn @ turn) @ P + 2.0 * turn @ P1 + P2
        P, P1, P2 = (R @ part for part in parts)
        found = (
            poses[:, index, :3, 3] + R @ r, _apply(P, qd), _apply(P, qdd) + _apply(P1, qd), P, P1, P2, 2.0 * P1
        )  # fmt: skip
    refuse_overflow(samples, *found)
    return PointMotion(*(samples.shaped(part) for part in found))


def _jacobian_rates(
    mech: Linkage, q: Array, qd: Array, qdd: Array, link: int, poses: Array
) -> tuple[Array, Array, Array]:
    """Return J, J̇ and J̈ of a link, (N, 6, n) each."""
    J, rate = jacobian(mech, q, link, qd)
    order = places_on_path(mech, link)
    last = order.copy()
    for first in mech.ball_starts:  # the components of a vector turn each other's columns in a way of their own
        last[first : first + 3] = order[first : first + 3].max()
    behind = (order[:, None] >= 0) & (order[None, :] > last[:, None])  # k behind j
    W = np.einsum("sik,jk,sk->sij", J, behind, qd)
    W_rate = np.einsum("sik,jk,sk->sij", rate, behind, qd) + np.einsum("sik,jk,sk->sij", J, behind, qdd)
    own = rate - _bracket(J, W)
    rate2 = _bracket(rate + own, W) + _bracket(J, W_rate)
    for first in (k for k in mech.ball_starts if order[k] >= 0):
        i = int(mech.joint_links[first])
        at = mech.coordinates(mech.links[i].joint_name)
        step = 1j * _STEP
        ball, z, zd = mech.links[i].joint, q[:, at] + step * qd[:, at], qd[:, at] + step * qdd[:, at]
        columns = ball.subspace_rate(z, zd)[..., -3:].imag / _STEP
        R = np.swapaxes(poses[:, link, :3, :3], 1, 2)
        away = (R @ (poses[:, i, :3, 3] - poses[:, link, :3, 3])[..., None])[..., 0]
        turned = R @ poses[:, i, :3, :3]
        moved = turned @ columns[:, :3]
        rate2[:, :, first : first + 3] += np.concatenate([moved, _hat(away) @ moved + turned @ columns[:, 3:]], axis=1)
    return J, rate, rate2


def _bracket(X: Array, Y: Array) -> Array:
    """Return ad of columns, (N, 6, n)."""
    w, v = X[:, :3], X[:, 3:]
    turned = np.cross(w, Y[:, :3], axis=1)
    return np.concatenate([turned, np.cross(w, Y[:, 3:], axis=1) + np.cross(v, Y[:, :3], axis=1)], axis=1)


def _overflow_refused() -> np.errstate:
    """Return a context in which NumPy does not warn of what `refuse_overflow` refuses behind it."""
    return np.errstate(over="ignore", invalid="ignore")


def _point(point: ArrayLike) -> Array:
    return real_array(point, "point", (3,), hint="the coordinates of a point in the link's frame")


def _rotation(mech: Linkage, q: Any, link: str | int) -> Any:
    return forward_kinematics(mech, q)[..., link_index(mech, link), :3, :3]


def _at(r: Array, J: Any) -> Any:
    """Return [-r×, 1] J: v + ω × r."""
    w, v = J[..., :3, :], J[..., 3:, :]
    return v - _hat(r) @ w


def _apply(A: Any, x: Any) -> Any:
    return (A @ x[..., None])[..., 0]


def _hat(a: Any) -> Any:
    """Return a×, (..., 3, 3), of numbers."""
    zero = np.zeros(a.shape[:-1])
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _cross(a: Any, b: Any) -> Any:
    """Return a × b, of numbers or symbols."""
    return np.stack([a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))], axis=-1)
