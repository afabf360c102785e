"""Constraints along a motion: limits of joints, and where a link has to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks as numbers
from cstormpy import lie
from cstormpy.arrays import as_floats, own_arrays
from cstormpy.dynamics.checked_arguments import link_index
from cstormpy.dynamics.inverse_kinematics import masked
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, shown
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.joints import turning
from cstormpy.optimal.samples import Array, Parts, Samples
from cstormpy.optimal.sizes import Sizes

AtLike = str | Sequence[float] | float

WHERE = ("all", "start", "end", "breaks")


class PathConstraint:
    """lower <= c(samples) <= upper, k numbers at each of the samples where it holds.

    Attributes
    ----------
    lower, upper : ndarray, () or (k,)
    at : str or tuple of float
        Where it holds.
    name : str
    channels : tuple of str
        The channels that it is known to depend on.
    """

    channels: tuple[str, ...] = ()
    of_mechanism = False
    """True where it asks for places of links, so that it follows the geometry of a design."""
    collocation: str | tuple[float, ...] = "collocation"

    def __init__(self, lower: ArrayLike, upper: ArrayLike, at: AtLike, name: str) -> None:
        self.name = numbers.name(name, "name of a constraint")
        self.lower = own_arrays(as_floats(lower, f"{self.name}: lower"))
        self.upper = own_arrays(as_floats(upper, f"{self.name}: upper"))
        for bound in (self.lower, self.upper):
            if np.isnan(bound).any() or bound.ndim > 1:
                raise InvalidValue(f"constraint {name!r}: a bound must be a number, or a number for each function")
        if np.any(self.lower > self.upper):
            raise InvalidValue(f"constraint {name!r}: the lower bound {self.lower} is above the upper one {self.upper}")
        if np.any(self.lower == np.inf) or np.any(self.upper == -np.inf):
            raise NonFinite(f"constraint {name!r}: an infinite bound leaves nothing; lower is −∞ or finite")
        self.at = _where(at, name)

    @property
    def equations(self) -> bool:
        """True where all bounds are equal."""
        return bool(np.all(self.lower == self.upper))

    @property
    def imposed(self) -> str | tuple[float, ...]:
        """Phases at which a solver is to meet it: equations that hold all the time at as many as a spline can."""
        return self.collocation if self.equations and self.at == "all" else self.at

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return what each number belongs to, as a joint or an axis, and its unit."""
        return [("" if count == 1 else f"[{c}]", "") for c in range(count)]

    def values(self, at: Samples) -> Array:
        """Return c at N samples, (N, k)."""
        raise NotImplementedError

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives of c to the channels that matter, (N, k, n), and (N, k) for "t"."""
        raise NotImplementedError

    def check(self, mech: Mechanism) -> None:
        """Refuse a mechanism that the constraint does not fit."""

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return what the numbers, and by how much they are violated, are divided by, (k,).

        It is the greater bound; where both are zero or none, what `_size` says.
        """
        low, high = (np.where(np.isfinite(b), np.abs(b), 0.0) for b in (self.lower, self.upper))
        size = np.broadcast_to(np.maximum(low, high), values.shape[1:])
        return size.copy() if (size > 0.0).all() else np.where(size > 0.0, size, self._size(values, parts, sizes))

    def _size(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return the characteristic size, (k,): how far values at the guess, (N, k), are from zero and can be moved."""
        found = [np.abs(values).max(axis=0, initial=0.0)]
        for channel, part in parts.items():
            if channel in ("t", "duration"):
                found.append(sizes.time * np.abs(part).max(axis=0, initial=0.0))
            else:
                found.append((sizes.of(channel) * np.abs(part)).max(axis=(0, 2), initial=0.0))
        size = np.max(found, axis=0)
        return np.where(size > 0.0, size, 1.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, at={self.at!r})"


def _where(at: Any, name: str) -> str | tuple[float, ...]:
    if isinstance(at, str):
        if at not in WHERE:
            raise InvalidValue(
                f"constraint {name!r}: at: expected one of {', '.join(WHERE)}, or phases, got {shown(at)}"
            )
        return at
    phases = np.atleast_1d(as_floats(at, f"constraint {name!r}: at"))
    if phases.ndim != 1 or not phases.size or not np.all((phases >= 0.0) & (phases <= 1.0)):
        raise InvalidValue(
            f"constraint {name!r}: at: expected phases from 0 (the start) to 1 (the end), got {shown(at)}"
        )
    return tuple(phases.tolist())


#: The limits of joints: the channel of each, None for the power τ q̇, and its unit.
KINDS: dict[str, tuple[str | None, str, str]] = {
    "position": ("q", "rad", "m"),
    "velocity": ("qd", "rad/s", "m/s"),
    "acceleration": ("qdd", "rad/s²", "m/s²"),
    "jerk": ("qddd", "rad/s³", "m/s³"),
    "torque": ("tau", "N m", "N"),
    "power": (None, "W", "W"),
}


class JointLimit(PathConstraint):
    """Limits of one kind on some joints, at all samples."""

    def __init__(self, mech: Mechanism, kind: str, low: Array, high: Array) -> None:
        self.kind = kind
        self.joints = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        self.channel, of_angle, of_length = KINDS[kind]
        self.channels = ("tau", "qd") if self.channel is None else (self.channel,)
        self.columns = [mech.names[k] for k in self.joints]
        self.units = [of_angle if angle else of_length for angle in turning(mech)[self.joints]]
        self._select = np.eye(mech.n)[self.joints]
        super().__init__(low[self.joints], high[self.joints], "all", kind)

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return joints and units."""
        return list(zip(self.columns, self.units, strict=True))

    def _size(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        return (sizes.power if self.channel is None else sizes.of(self.channel))[self.joints]

    def values(self, at: Samples) -> Array:
        """Return what is limited, (N, k)."""
        y = at.tau * at.qd if self.channel is None else getattr(at, self.channel)
        return np.asarray(y[:, self.joints])

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel, (N, k, n)."""
        if self.channel is not None:
            return {self.channel: np.broadcast_to(self._select, (len(at), *self._select.shape))}
        return {"tau": self._select * at.qd[:, None, :], "qd": self._select * at.tau[:, None, :]}


class Position(PathConstraint):
    """Position of a point of a link: lower <= x <= upper in the base's axes, or x = target.

    Parameters
    ----------
    link : str or int
    target : array_like, (3,) with None for directions that are free, optional
        The point's place [m]; makes equations.
    lower, upper : array_like, (3,) with None, optional
        Bounds instead.
    tool : array_like, (3,), optional
        The point in the link's frame; its origin unless given.
    at : {"all", "start", "end", "breaks"} or sequence of floats
        Where it holds: all the time, at an end, at the knots, or at phases from 0 to 1. An equation that holds all the
        time is asked at the knots, and knots are added until it holds between them, too.
    name : str, optional

    Examples
    --------
    >>> Position("forearm", target=[0.5, 0.5, None], tool=[1, 0, 0])
    Position('position of forearm', at='end')
    """

    what, unit = "position", "m"
    of_mechanism = True

    def __init__(
        self,
        link: str | int,
        target: Any = None,
        lower: Any = None,
        upper: Any = None,
        tool: ArrayLike = (0.0, 0.0, 0.0),
        at: AtLike = "end",
        name: str | None = None,
    ) -> None:
        self.link = link
        self.tool = numbers.array(tool, (3,), "tool")
        if target is None and lower is None and upper is None:
            raise InvalidValue(f"{type(self).__name__}: give a target, or lower or upper bounds")
        if target is not None and (lower is not None or upper is not None):
            raise InvalidValue(f"{type(self).__name__}: give a target or bounds, not both")
        given = (lower, "lower"), (upper, "upper")
        if target is not None:
            given = ((target, "target"),) * 2
        (low, high) = (_three(*each, missing) for each, missing in zip(given, (-np.inf, np.inf), strict=True))
        self.axes = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        if not self.axes.size:
            raise InvalidValue(f"{type(self).__name__}: leaves x, y and z free; give a number for one of them at least")
        super().__init__(low[self.axes], high[self.axes], at, name or f"{self.what} of {link}")
        self.columns = ["xyz"[k] for k in self.axes]

    def check(self, mech: Mechanism) -> None:
        """Refuse a link that does not exist."""
        link_index(mech, self.link)

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return the length of the mechanism."""
        return np.full(len(self.axes), sizes.length)

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return axes of the base."""
        return [(axis, self.unit) for axis in self.columns]

    def values(self, at: Samples) -> Array:
        """Return the coordinates of the point, (N, k)."""
        pose = at.mech.forward_kinematics(at.q)[:, link_index(at.mech, self.link)]
        return (pose[:, :3, :3] @ self.tool + pose[:, :3, 3])[:, self.axes]

    def derivatives(self, at: Samples) -> Parts:
        """Return ∂x/∂q = R (J_v − [p] J_ω), (N, k, n)."""
        pose = at.mech.forward_kinematics(at.q)[:, link_index(at.mech, self.link)]
        J = at.mech.jacobian(at.q, self.link)
        inside = J[:, 3:] - lie.hat3(self.tool) @ J[:, :3]
        return {"q": (pose[:, :3, :3] @ inside)[:, self.axes]}


class PointVelocity(Position):
    """Velocity of a point of a link: lower <= v <= upper in the base's axes, or v = target [m/s].

    Parameters
    ----------
    link, target, lower, upper, tool, at, name
        As for `Position`.

    Examples
    --------
    A tip that passes the middle of the motion at 0.5 m/s along x:

    >>> PointVelocity("forearm", target=[0.5, 0.0, None], tool=[1, 0, 0], at=0.5)
    PointVelocity('velocity of forearm', at=(0.5,))
    """

    what, unit, channels = "velocity", "m/s", ("q", "qd")

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return the length of the mechanism in the time of the motion."""
        return np.full(len(self.axes), sizes.length / sizes.time)

    def values(self, at: Samples) -> Array:
        """Return the velocity of the point, (N, k)."""
        return at.mech.point_velocity(at.q, at.qd, self.link, self.tool)[:, self.axes]

    def derivatives(self, at: Samples) -> Parts:
        """Return ∂v/∂q and ∂v/∂q̇, (N, k, n)."""
        found = at.mech.point_motion(at.q, at.qd, at.qdd, self.link, self.tool)
        return {"q": found.dv_dq[:, self.axes], "qd": found.dv_dqd[:, self.axes]}


class PointAcceleration(Position):
    """Acceleration of a point of a link: lower <= a <= upper in the base's axes, or a = target [m/s²].

    Parameters
    ----------
    link, target, lower, upper, tool, at, name
        As for `Position`; gravity is no part of the acceleration.

    Examples
    --------
    A cup of which nothing is to be spilt:

    >>> PointAcceleration("forearm", lower=[-2, None, None], upper=[2, None, None], tool=[1, 0, 0], at="all")
    PointAcceleration('acceleration of forearm', at='all')
    """

    what, unit, channels = "acceleration", "m/s²", ("q", "qd", "qdd")

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return the length of the mechanism in the square of the time of the motion."""
        return np.full(len(self.axes), sizes.length / sizes.time**2)

    def values(self, at: Samples) -> Array:
        """Return the acceleration of the point, (N, k)."""
        return at.mech.point_acceleration(at.q, at.qd, at.qdd, self.link, self.tool)[:, self.axes]

    def derivatives(self, at: Samples) -> Parts:
        """Return ∂a/∂q, ∂a/∂q̇ and ∂a/∂q̈, (N, k, n)."""
        found = at.mech.point_motion(at.q, at.qd, at.qdd, self.link, self.tool)
        parts = {"q": found.da_dq, "qd": found.da_dqd, "qdd": found.da_dqdd}
        return {channel: part[:, self.axes] for channel, part in parts.items()}


class Pose(PathConstraint):
    """Keep a link, or a tool on it, in a pose: the six components of log(target⁻¹ T) are zero, or some of them.

    Parameters
    ----------
    link : str or int
    pose : array_like, (4, 4)
        The target in the base's frame.
    tool : array_like, (4, 4), optional
        Pose of the tool in the link's frame.
    mask : {"pose", "position", "orientation", "planar"} or six bool
        Which components (rotation about, translation along x, y, z of the target's axes) count. "planar" is rotation
        about z and translation in x and y.
    at, name
        As for `Position`.
    """

    of_mechanism = True

    def __init__(
        self,
        link: str | int,
        pose: ArrayLike,
        tool: ArrayLike | None = None,
        mask: str | Sequence[bool] = "pose",
        at: AtLike = "end",
        name: str | None = None,
    ) -> None:
        self.link = link
        self._from_target = lie.inverse(lie.check_pose(pose, name="pose"))
        self.tool = np.eye(4) if tool is None else lie.check_pose(tool, name="tool")
        self._to_tool = lie.Ad(lie.inverse(self.tool))
        self.axes = masked(mask)
        super().__init__(np.zeros(len(self.axes)), np.zeros(len(self.axes)), at, name or f"pose of {link}")
        self.columns = [("rx", "ry", "rz", "x", "y", "z")[k] for k in self.axes]

    def check(self, mech: Mechanism) -> None:
        """Refuse a link that does not exist."""
        link_index(mech, self.link)

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return one radian for rotations, the length of the mechanism for translations."""
        return np.where(self.axes < 3, 1.0, sizes.length)

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return the components."""
        return [(name, "rad" if name.startswith("r") else "m") for name in self.columns]

    def _away(self, at: Samples) -> Array:
        pose = at.mech.forward_kinematics(at.q)[:, link_index(at.mech, self.link)]
        return lie.log_se3(self._from_target @ pose @ self.tool)

    def values(self, at: Samples) -> Array:
        """Return the components, (N, k)."""
        return self._away(at)[:, self.axes]

    def derivatives(self, at: Samples) -> Parts:
        """Return dexp⁻¹ J, (N, k, n): the twist of the tool in its own frame moves the logarithm on the right."""
        J = self._to_tool @ at.mech.jacobian(at.q, self.link)
        return {"q": (lie.dexp_inv_se3(self._away(at), side="left") @ J)[:, self.axes]}


def _three(value: Any, what: str, missing: float) -> Array:
    """Return three numbers, with what stands for those that are None."""
    if value is None:
        return np.full(3, missing)
    try:
        entries = list(value)
    except TypeError as error:
        raise InvalidType(f"{what}: expected three numbers (x, y, z), got {shown(value)}") from error
    if len(entries) != 3:
        raise ShapeError(f"{what}: expected three numbers (x, y, z), got {len(entries)}")
    return np.array([missing if e is None else numbers.real(e, what) for e in entries])
