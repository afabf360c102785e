r"""Charts of the ball joints that a loop passes through: from three hinges to a rotation vector.

Along its chain a ball stands as three hinges about the axes of its link, at the angles θ = 0 of the posture, so that
their columns change by crosses as those of all other coordinates. Its coordinates are those of the rotation vector φ;
with the matrices of `kernels.charts`,

    θ̇ = J φ̇,  θ̈ = J φ̈ + h,   δθ = J δφ,  δθ̇ = P δφ + J δφ̇,  δh = Q δφ + 2 P δφ̇,   P = K φ̇,  h = P φ̇

and with C the columns of the hinges, H = ∂C/∂θ and b = Ċ θ̇ their bias,

    (a)  A = C J
    (b)  Ȧ = Ċ J + C P
    (c)  ∂A/∂φ = (H J) J + C K
    (d)  ∂(Ȧ φ̇)/∂φ = (∂b/∂θ + H h) J + ∂b/∂θ̇ P + C Q,   ∂(Ȧ φ̇)/∂φ̇ = ∂b/∂θ̇ J + 2 C P

Re-centring of rotation vectors: a vector that has come to half a turn gives way to the shorter one of its rotation.

It is a change of chart, (q, q̇) ↦ (q′, q̇′), between two descriptions of one motion. A derivative of the state is carried
into the new chart by its Jacobian, and nothing is added for when that happens: where one comes earlier, the other chart
describes the same motion for so much longer.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.arrays import symbols
from cstormpy.kernels.chart_derivatives import acceleration_change, rate_change
from cstormpy.kernels.charts import drift, inverse_times, jacobian_times, stumpff, swept, unit
from cstormpy.kernels.vector import dot, sub
from cstormpy.linkage.joints import ball

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

_UNITS = tuple(unit(k, 0.0) for k in range(3))


class Chart:
    """The chart of one ball about rotation vectors φ, (N, 3) numbers or (1, 3) symbols; found when it is asked for."""

    def __init__(self, phi: Any) -> None:
        self._symbolic = phi.dtype == object
        self._phi = self._numbers(phi)

    @cached_property
    def _terms(self) -> tuple[tuple[Any, Any], ...]:
        """(c₂, c₃), their first and second derivatives to |φ|²."""
        s = dot(self._phi, self._phi)
        c = stumpff(s) if self._symbolic else np.array([stumpff(float(x)) for x in s]).reshape(-1, 6).T
        c2, c3, c4, c5, c6, c7 = c
        second = 2.0 * c6 - 1.25 * c5 + 0.25 * c4, 3.75 * c7 - 1.75 * c6 + 0.25 * c5
        return (c2, c3), (c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4), second

    @property
    def _c(self) -> tuple[Any, Any]:
        return self._terms[0]

    @property
    def _dc(self) -> tuple[Any, Any]:
        return self._terms[1]

    @property
    def _ddc(self) -> tuple[Any, Any]:
        return self._terms[2]

    def _numbers(self, x: Any) -> tuple[Any, Any, Any]:
        """Return vectors as three numbers: arrays (N,), or symbols."""
        return tuple(x[0]) if self._symbolic else tuple(np.moveaxis(x, -1, 0))

    def _vectors(self, x: tuple[Any, Any, Any]) -> Any:
        """Return vectors (N, 3), or (1, 3) of symbols, of three numbers."""
        return symbols([list(x)]) if self._symbolic else np.stack(x, axis=-1)

    def _matrix(self, columns: list[tuple[Any, Any, Any]]) -> Any:
        """Return matrices (N, 3, 3), or (1, 3, 3) of symbols, of their columns."""
        if self._symbolic:
            return np.swapaxes(symbols([[list(column) for column in columns]]), -1, -2)
        like = self._phi[0]
        return np.stack([np.stack([x + 0.0 * like for x in column], axis=-1) for column in columns], axis=-1)

    @cached_property
    def J(self) -> Any:
        """J, (N, 3, 3)."""
        return self._matrix([jacobian_times(self._phi, *self._c, e) for e in _UNITS])

    @cached_property
    def inverse(self) -> Any:
        """J⁻¹, (N, 3, 3)."""
        (c2, _), (dc2, _), _ = self._terms
        return self._matrix([inverse_times(self._phi, -dc2 / c2, e) for e in _UNITS])  # dc₂ = c₄ - c₃ / 2

    @cached_property
    def K(self) -> Any:
        """The second derivative of θ to φ, (N, 3, 3, 3)."""
        return np.stack([self._changes(e) for e in _UNITS], axis=-1)

    def _turned(self, rate: Any) -> Any:
        return jacobian_times(self._phi, *self._c, rate)

    def _changes(self, rate: Any) -> Any:
        hinged = self._turned(rate)
        return self._matrix([rate_change(self._phi, self._c, self._dc, rate, hinged, e) for e in _UNITS])

    def P(self, rate: Any) -> Any:
        """Return P at rates φ̇ (N, 3), (N, 3, 3)."""
        return (self.K * rate[:, None, None]).sum(axis=-1)

    def drift(self, rate: Any) -> Any:
        """Return J̇ φ̇ at rates φ̇ (N, 3), (N, 3): with J φ̈ the angular acceleration."""
        return self._vectors(drift(self._phi, self._c[1], *self._dc, self._numbers(rate)))

    def bias(self, rate: Any) -> tuple[Any, Any]:
        """Return h, (N, 3), and Q, (N, 3, 3), at rates φ̇ (N, 3)."""
        x, none = self._numbers(rate), (0.0, 0.0, 0.0)
        w = self._turned(x)
        h = sub(drift(self._phi, self._c[1], *self._dc, x), swept(w, w))
        columns = []
        for e in _UNITS:
            dw = rate_change(self._phi, self._c, self._dc, x, w, e)
            columns.append(acceleration_change(self._phi, self._c, self._dc, self._ddc, (x, none), (w, h), e, dw))
        return self._vectors(h), self._matrix(columns)


LONGEST = 4.5
"""A search lets no rotation vector be longer than this [rad], so that after a step of a radian along each of its
components it is shorter than a whole turn."""

NEARLY = np.pi * (1.0 - 1e-9)
"""A vector that a run has found at half a turn is as long as this."""


RECENTRED = "a rotation vector gives way to the shorter one"
"""What is said of the event."""


def half_turn_left(mech: Linkage, q: Any) -> Any:
    """Return by how much the longest rotation vector is shorter than π, as the difference of the squares."""
    squares = [q[k] * q[k] + q[k + 1] * q[k + 1] + q[k + 2] * q[k + 2] for k in mech.ball_starts]
    longest = squares[0]
    for square in squares[1:]:
        longest = np.maximum(longest, square)
    return np.pi**2 - longest


def recentre(mech: Linkage, q: Array, qd: Array, longest: float = NEARLY) -> None:
    """Write the same positions and rates by other rotation vectors where these are longer than that."""
    for at, joint in _balls(mech):
        q[at], qd[at] = joint.recentred(q[at], qd[at], longest)


def recentred(mech: Linkage, x: Array) -> Array:
    """Return a state (2n,) in which vectors longer than half a turn are those of the other side; symbols will do."""
    found, half = x.copy(), np.pi**2
    for first in mech.ball_starts:
        at, rates = slice(first, first + 3), slice(mech.n + first, mech.n + first + 3)
        far = x[at] @ x[at] > half
        away = x[at] + np.where(far, 0.0, 1.0)  # so that nothing is divided by zero
        for part, other in zip((at, rates), ball.shortened(away, x[rates], 2.0 * np.pi), strict=True):
            found[part] = np.where(far, other, x[part])
    return found


def shortened(mech: Linkage, q: Array, free: NDArray[np.bool_], longest: float = NEARLY) -> Array:
    """Return the same posture with no rotation vector longer than that, of those that may move."""
    short = q.copy()
    recentre(mech, short, np.zeros(mech.n), longest)
    for first in mech.ball_starts:
        own = slice(first, first + 3)
        if not free[own].all():
            short[own] = q[own]
    return short


def carried(mech: Linkage, q: Array, qd: Array, tangents: Array, longest: float = NEARLY) -> Array:
    """Return derivatives (2n, k) of a state as those of the state that `recentre` makes of it."""
    n, found = mech.n, np.array(tangents, dtype=float)
    for at, joint in _balls(mech):
        rows = np.r_[np.arange(at.start, at.stop), np.arange(n + at.start, n + at.stop)]
        found[rows] = joint.recentring_jacobian(q[at], qd[at], longest) @ found[rows]
    return found


def _balls(mech: Linkage) -> list[tuple[slice, Any]]:
    """Return the coordinates of each joint that has a rotation vector, and the joint."""
    names = [mech.links[mech.joint_links[first]].joint_name for first in mech.ball_starts]
    return [(mech.coordinates(name), mech.joint(name)) for name in names]
