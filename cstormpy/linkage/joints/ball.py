"""Joints whose coordinates hold a rotation vector: the ball joint, and the free body.

A rotation vector φ turns the link by exp(φ): by the angle |φ| about the axis φ, which has the same components in the
axes of the link and in those that it has at q = 0. Its coordinates are φ itself and its rate dφ/dt (not the angular
velocity, which is J(φ) dφ/dt in the link's axes), so that q ∈ Rⁿ and q̇ = dq/dt as for every joint. The generalized
force belongs to these rates: Jᵀ times the moment in the link's axes. The joint's own moment there, about each axis, is

    armature * dω/dt + ω × (armature * ω) + damping * ω + friction * tanh(ω / friction_velocity) + spring

with the angular velocity ω of the link relative to its parent: that of three bearings, and of a body that turns with
the link and feels nothing but ω, whose energy is ½ ω · (armature * ω). The spring has the potential ½ ψ · (stiffness *
ψ) of ψ = log(exp(rest)ᵀ exp(φ)), the shortest rotation vector from where it is relaxed; its moment is stiffness * ψ
where the stiffness is the same about all axes, and J(ψ)⁻ᵀ (stiffness * ψ) in general. At |φ| = 2π the coordinates are
singular, and dynamics refuse |φ| >= 2π; a run re-centres φ once |φ| > π (`recentred`), which the spring does not feel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.errors import InvalidValue
from cstormpy.linkage.joints.joint import Symbol, point_from, shift_of_point
from cstormpy.linkage.joints.multi_dof import EachLimits, MultiDofJoint
from cstormpy.linkage.joints.one_dof import OneDofJoint, Prismatic, Revolute

Array = NDArray[Any]
B = TypeVar("B", bound="Spherical")


class _BallAxis(Revolute):
    """A component of a rotation vector [rad]."""

    @property
    def winds(self) -> bool:
        """No: 2π more in one component is another rotation."""
        return False


class Spherical(MultiDofJoint):
    """A ball joint: the link turns about a point; q is the rotation vector φ [rad], the link's pose M exp(φ).

    Its damping, friction and armature act about the axes of the link: on ω = J(φ) dφ/dt, not on dφ/dt, with the torque
    Jᵀ times the moment. Its spring acts on the rotation vector by which the link has turned from `rest`, which is no
    more than half a turn; beyond half a turn the spring pulls back from the other side.

    Parameters
    ----------
    point : array_like, (3,)
        The centre of the ball in the link's own frame [m].
    damping, friction, friction_velocity, armature : float or array_like, (3,)
        As for `Revolute`, about the axes x, y, z of the link, with the angular velocity relative to the parent in
        place of qd; one number for all three or one for each. Damping and armature that are the same about all axes do
        not depend on which these are; friction about three axes does, as MuJoCo's "frictionloss".
    stiffness : float or array_like, (3,)
        Spring constants [N m/rad] of the potential ½ ψ · (stiffness * ψ), ψ the rotation vector from `rest` to where
        the link is; the same about all axes, its moment is -stiffness * ψ, as in MuJoCo.
    rest : float or array_like, (3,)
        The rotation vector where the spring is relaxed [rad], shorter than a whole turn.
    limits : sequence, optional
        For each coordinate `Limits`, a pair (low, high) for the position, or None.
    max_angle : float, optional
        The largest angle |φ| by which the link may turn, at most π [rad]; a limit as others are.
    name : str, optional
        Without it the joint is called by the name of its link.

    Raises
    ------
    ShapeError, InvalidValue, NonFinite, InvalidType
        Naming the joint, if it has a name, and the parameter.

    Examples
    --------
    A quarter turn about z:

    >>> joint = Spherical(name="hip")
    >>> joint.dof, joint.motion([0.0, 0.0, np.pi / 2])[:3, 0].round(12).tolist()
    (3, [0.0, 1.0, 0.0])
    """

    kind = "spherical"
    symbol = Symbol("ball")
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"point": (3,)}
    _fields = ("point", *MultiDofJoint.each, "limits", "max_angle", "name")
    _count = 3

    def __init__(
        self,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        friction_velocity: ArrayLike = 0.01,
        armature: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        rest: ArrayLike = 0.0,
        limits: EachLimits = None,
        max_angle: float | None = None,
        name: str | None = None,
    ) -> None:
        values = (damping, friction, friction_velocity, armature, stiffness, rest)
        where = self._set_each(point, limits, name, **dict(zip(self.each, values, strict=True)))
        turn = float(np.linalg.norm(self.rest[-3:]))
        if turn >= 2.0 * np.pi:
            raise InvalidValue(f"{where}rest: its rotation vector is {turn:.4g} rad long, must be shorter than 2π")
        self._set(max_angle=None if max_angle is None else _angle(max_angle, f"{where}max_angle"))
        self._set(_chain=self._made())

    def _made(self) -> tuple[OneDofJoint, ...]:
        return tuple(self._freedom(self._count - 3 + k, _BallAxis, axis) for k, axis in enumerate(np.eye(3)))

    @property
    def balls(self) -> tuple[int, ...]:
        """Places 1, 2, 3 in the rotation vector."""
        return (1, 2, 3)

    @property
    def in_mjcf(self) -> tuple[str, ...]:
        """A ball."""
        return ("ball",)

    def turned(self, field: str, index: tuple[int, ...]) -> list[tuple[int, int, Array]]:
        """Return what it follows if an entry of point changes."""
        return [(0, self.dof, shift_of_point(index[0]))]

    def _carried(self: B, pose: Array) -> B:
        if not np.array_equal(pose[:3, :3], np.eye(3)):
            where = "" if self.name is None else f"joint {self.name!r}: "
            raise InvalidValue(
                f"{where}a rotation vector is given in the link's own axes, and the pose turns these; "
                "let the joint move a link whose axes are the parent's, and weld the other one to it (Fixed)"
            )
        return self.replace(point=point_from(pose, self.point))

    def motion(self, q: ArrayLike) -> Array:
        """Return the pose (..., 4, 4) of the link in its frame at q = 0, for q (..., dof); complex numbers too."""
        q = np.asarray(q)
        phi = q[..., -3:]
        X = np.zeros((*q.shape[:-1], 4, 4), np.result_type(q, np.float64))
        X[..., :3, :3] = R = _exponential(phi)
        X[..., :3, 3] = self._shift(q) + self.point - R @ self.point
        X[..., 3, 3] = 1.0
        return X

    def _shift(self, q: Array) -> Any:
        """Return how far the centre of the ball has moved."""
        return 0.0

    def subspace(self, q: ArrayLike) -> Array:
        """Return S(q), (..., 6, dof): the twist of the link in its own frame, the parent at rest, is S q̇."""
        J = _right_jacobian(np.asarray(q)[..., -3:])
        return np.concatenate([J, _cross(self.point) @ J], axis=-2)

    def subspace_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return Ṡ(q, q̇), (..., 6, dof), the derivative of `subspace` along q̇."""
        J = _right_jacobian_rate(np.asarray(q)[..., -3:], np.asarray(qd)[..., -3:])
        return np.concatenate([J, _cross(self.point) @ J], axis=-2)

    def stretch(self, q: ArrayLike) -> Array:
        """Return ψ (..., 3), the shortest rotation vector from where the spring is relaxed; complex numbers too.

        >>> joint = Spherical(stiffness=2.0, rest=(0, 0, 1))
        >>> joint.stretch([[0.0, 0.0, 1.5], [0.0, 0.0, -3.0]]).round(4).tolist()
        [[0.0, 0.0, 0.5], [0.0, 0.0, 2.2832]]
        """
        return _turn_between(self.rest[-3:], np.asarray(q)[..., -3:])

    def spring_rates(self, q: ArrayLike, axis: int) -> dict[str, Array]:
        """Return the derivatives (..., 3) of the spring's moment in the link's axes to the numbers of one axis."""
        phi, along = np.asarray(q)[..., -3:], np.eye(3)[axis]
        stiffness, rest = self.stiffness[-3:], self.rest[-3:]
        stretch = self.stretch(q)
        step = 1e-30j * along  # by complex step, which is exact
        to_rest = _spring_moment(stiffness, _turn_between(rest + step, phi)).imag / 1e-30
        return {"stiffness": _spring_moment(along, stretch), "rest": to_rest}

    def recentred(self, q: ArrayLike, qd: ArrayLike, longest: float = np.pi) -> tuple[Array, Array]:
        """Return q and q̇ (dof,) of the same motion, where the rotation vector is longer than π, by a shorter one.

        With another bound than π a vector about as long is exchanged for its opposite number, too.

        >>> q, qd = Spherical().recentred([0.0, 0.0, 4.0], [0.0, 0.0, 1.0])
        >>> q.round(4).tolist(), qd.round(12).tolist()
        ([0.0, 0.0, -2.2832], [0.0, 0.0, 1.0])
        """
        q, qd = np.array(q, dtype=np.float64), np.array(qd, dtype=np.float64)
        back = _turned_back(q[-3:], longest)
        if back:
            q[-3:], qd[-3:] = shortened(q[-3:], qd[-3:], back)
        return q, qd

    def recentring_jacobian(self, q: ArrayLike, qd: ArrayLike, longest: float = np.pi) -> Array:
        """Return the derivative, (2 dof, 2 dof), of what `recentred` makes of (q, q̇) there, to these.

        >>> Spherical().recentring_jacobian([0.0, 0.0, 4.0], [0.0, 0.0, 1.0])[2].round(12).tolist()
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        """
        q, qd = np.asarray(q, dtype=np.float64), np.asarray(qd, dtype=np.float64)
        found, back = np.eye(2 * self.dof), _turned_back(q[-3:], longest)
        if back:
            own = [*range(self.dof - 3, self.dof), *range(2 * self.dof - 3, 2 * self.dof)]
            found[np.ix_(own, own)] = shortening_jacobian(q[-3:], qd[-3:], back)
        return found

    def details(self) -> list[str]:
        """Return what differs from the defaults."""
        return super().details() + ([] if self.max_angle is None else [f"max_angle {self.max_angle:.4g}"])


class Free(Spherical):
    """A joint with all six freedoms, as of a body in space: q is the displacement along x, y and z [m], then φ [rad].

    The displacement is that of `point` along the axes that the link's frame has at q = 0; the link turns about this
    point by exp(φ) as on a `Spherical` joint. So q̇ is the velocity of the point in these axes, and dφ/dt; the twist of
    the link in its own axes is `subspace(q) @ qd`, (ω, v) with ω = J(φ) dφ/dt and, for point = 0, v = exp(φ)ᵀ ẋ.

    Parameters
    ----------
    point, max_angle, name
        As for `Spherical`.
    damping, friction, friction_velocity, armature, stiffness, rest : float or array_like, (6,)
        As for `Prismatic` along x, y, z, and as for `Spherical` about the axes of the link; one number for all, or one
        for each.
    limits : sequence, optional
        For each coordinate `Limits`, a pair (low, high) for the position, or None.

    Examples
    --------
    >>> Free(name="trunk").dof
    6
    >>> Free().motion([1.0, 2.0, 3.0, 0.0, 0.0, np.pi / 2]).round(12)[:3].tolist()
    [[0.0, -1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 3.0]]
    """

    kind = "free"
    symbol = Symbol("ball", support=False)
    _count = 6

    def _made(self) -> tuple[OneDofJoint, ...]:
        return (*(self._freedom(k, Prismatic, axis) for k, axis in enumerate(np.eye(3))), *super()._made())

    @property
    def balls(self) -> tuple[int, ...]:
        """Three that belong to no rotation vector, and places 1, 2, 3 in it."""
        return (0, 0, 0, 1, 2, 3)

    @property
    def in_urdf(self) -> tuple[str, Array | None, Array]:
        """A floating joint."""
        return "floating", None, np.eye(3)

    @property
    def in_mjcf(self) -> tuple[str, ...]:
        """A free joint."""
        return ("free",)

    def _shift(self, q: Array) -> Any:
        return q[..., :3]

    def subspace(self, q: ArrayLike) -> Array:
        """Return S(q), (..., 6, 6): the twist of the link in its own frame, the parent at rest, is S q̇."""
        q = np.asarray(q)
        S = np.zeros((*q.shape[:-1], 6, 6), np.result_type(q, np.float64))
        S[..., 3:, :3] = np.swapaxes(_exponential(q[..., 3:]), -1, -2)
        S[..., 3:] = super().subspace(q)
        return S

    def subspace_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return Ṡ(q, q̇), (..., 6, 6), the derivative of `subspace` along q̇."""
        q, qd = np.asarray(q), np.asarray(qd)
        phi = q[..., 3:]
        omega = np.einsum("...ij,...j->...i", _right_jacobian(phi), qd[..., 3:])
        across = _of_vectors(omega, _cross)
        rate = np.zeros((*across.shape[:-2], 6, 6), across.dtype)
        rate[..., 3:, :3] = -across @ np.swapaxes(_exponential(phi), -1, -2)
        rate[..., 3:] = super().subspace_rate(q, qd)
        return rate


def _angle(value: object, what: str) -> float:
    """Return an angle up to half a turn."""
    angle = checks.positive(value, what)
    if angle > np.pi:
        raise InvalidValue(f"{what}: must be at most half a turn, π, got {angle:g}; a turn is never longer")
    return angle


def _turned_back(phi: Array, longest: float) -> float:
    """Return by how many whole turns [rad] a vector has to be shorter, so that it is at most so long; mostly 0."""
    angle = float(np.linalg.norm(phi))
    return 2.0 * np.pi * float(np.ceil((angle - longest) / (2.0 * np.pi))) if angle > longest else 0.0


def shortened(phi: Any, rate: Any, back: float) -> tuple[Any, Any]:
    """Return the rotation vector that is shorter by some turns [rad], and its rate; symbols will do.

    >>> shortened(np.array([0.0, 0.0, 4.0]), np.array([0.0, 0.0, 1.0]), 2.0 * np.pi)[1].tolist()
    [0.0, 0.0, 1.0]
    """
    length = np.sqrt(phi @ phi)
    kept, along = 1.0 - back / length, back / length**3 * phi
    return kept * phi, kept * rate + along * (phi @ rate)


def shortening_jacobian(phi: Any, rate: Any, back: float) -> Any:
    """Return the derivative, (6, 6), of what `shortened` makes of both, to these."""
    length, unit = np.sqrt(phi @ phi), np.eye(3)
    along, forth = back / length**3 * phi, phi @ rate
    turn = (1.0 - back / length) * unit + along[:, None] * phi
    slopes = (rate - 3.0 * forth / length**2 * phi)[:, None] * along + along[:, None] * rate
    slopes = slopes + back / length**3 * forth * unit
    return np.concatenate([np.concatenate([turn, 0.0 * turn], axis=1), np.concatenate([slopes, turn], axis=1)])


def other_vector(phi: Any, rate: Any) -> tuple[Any, Any, Any, Any]:
    """Return the rotation vector of the same turn on the other side, its rate, ∂(both)/∂(both given), and if it is.

    That of a vector shorter than 1 rad is far away, and not found. Symbols will do.
    """
    near = phi @ phi >= 1.0
    away = phi + np.where(near, 0.0, 1.0)  # so that nothing is divided by zero
    back = 2.0 * np.pi
    return *shortened(away, rate, back), shortening_jacobian(away, rate, back), near


def _turn_between(rest: Array, phi: Array) -> Array:
    """Return log(exp(rest)ᵀ exp(φ)), at most π long."""
    (w0, v0), (w1, v1) = _quaternion(rest), _quaternion(phi)
    w = w0 * w1 + (v0 * v1).sum(axis=-1, keepdims=True)
    v = w0 * v1 - w1 * v0 - np.cross(v0, v1)
    sign = np.where(w.real > 0.0, 1.0, -1.0)
    w, v = sign * w, sign * v
    n = np.sqrt((v * v).sum(axis=-1, keepdims=True))
    small = np.abs(n) < 1e-3
    safe = np.where(small, 1.0, n)
    wide = np.abs(w) < 0.7  # each of the two where it is exact, and has no rounding beyond 1
    half = np.where(wide, np.arccos(np.where(wide, w, 0.0)), np.arcsin(np.where(wide, 0.0, n)))
    return 2.0 * np.where(small, 1.0 + n**2 / 6.0 + 3.0 * n**4 / 40.0, half / safe) * v


def _quaternion(phi: Array) -> tuple[Array, Array]:
    """Return the unit quaternion of exp(φ): (..., 1) and (..., 3)."""
    c0, c1, *_ = _coefficients(0.5 * phi)
    return c0[..., 0], 0.5 * c1[..., 0] * phi


def _spring_moment(stiffness: Array, psi: Array) -> Array:
    """Return the moment J(ψ)⁻ᵀ (stiffness * ψ) about the axes of the link."""
    back = np.swapaxes(_right_jacobian(psi), -1, -2)
    return np.linalg.solve(back, (stiffness * psi)[..., None])[..., 0]


def _cross(a: Array) -> Array:
    zero = 0.0 * a[0]
    return np.array([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])


def _of_vectors(a: Array, what: Callable[[Array], Array]) -> Array:
    """Return a matrix for each vector (..., 3)."""
    return np.moveaxis(what(np.moveaxis(a, -1, 0)), (0, 1), (-2, -1))


def _coefficients(phi: Array) -> list[Array]:
    """Return c_k(|φ|²) = Σ (−|φ|²)ʲ / (2j + k)!, k = 0 to 5, each (..., 1, 1); complex numbers are not conjugated."""
    s = (phi * phi).sum(axis=-1)[..., None, None]
    small = np.abs(s) < 1.0
    root = np.sqrt(np.where(small, 1.0, s))
    c0, c1 = np.cos(root), np.sin(root) / root
    large = [c0, c1, *_following(c0, c1, root * root)]
    return [np.where(small, _series(k, np.where(small, s, 0.0)), big) for k, big in enumerate(large)]


def _following(c0: Array, c1: Array, s: Array) -> list[Array]:
    c2, c3 = (1.0 - c0) / s, (1.0 - c1) / s
    return [c2, c3, (0.5 - c2) / s, (1.0 / 6.0 - c3) / s]


def _series(k: int, s: Array) -> Array:
    term: Array = np.ones_like(s) / float(np.prod(np.arange(1, k + 1)))
    total = term
    for j in range(1, 12):
        term = -term * s / ((2 * j + k) * (2 * j + k - 1))
        total = total + term
    return total


def _exponential(phi: Array) -> Array:
    """Return exp(φ), (..., 3, 3): c₀ + c₁ φ× + c₂ φ φᵀ."""
    c0, c1, c2, *_ = _coefficients(phi)
    return c0 * np.eye(3) + c1 * _of_vectors(phi, _cross) + c2 * phi[..., :, None] * phi[..., None, :]


def _right_jacobian(phi: Array) -> Array:
    """Return J, (..., 3, 3), with angular velocity J dφ/dt in the axes that exp(φ) turns: 1 − c₂ φ× + c₃ (φ×)²."""
    _, _, c2, c3, *_ = _coefficients(phi)
    across = _of_vectors(phi, _cross)
    return np.eye(3) - c2 * across + c3 * across @ across


def _right_jacobian_rate(phi: Array, rate: Array) -> Array:
    """Return dJ/dt."""
    _, _, c2, c3, c4, c5 = _coefficients(phi)
    across, turning = _of_vectors(phi, _cross), _of_vectors(rate, _cross)
    ds = 2.0 * (phi * rate).sum(axis=-1)[..., None, None]
    c2_rate, c3_rate = (c4 - 0.5 * c3) * ds, 0.5 * (3.0 * c5 - c4) * ds
    product = across @ turning + turning @ across
    return -c2_rate * across - c2 * turning + c3_rate * across @ across + c3 * product
