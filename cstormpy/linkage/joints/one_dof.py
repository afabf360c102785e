"""Joints of one coordinate: hinges, slides and screws, and the forces that act in the joint itself.

Such a joint is a constant screw S in the frame of the link that it moves: the link's pose in its parent's frame is
M exp(S q), with M the link's `pose`. The torque of its motor is, beside the mechanism's inverse dynamics,

    armature * qdd + damping * qd + friction * tanh(qd / friction_velocity) + stiffness * (q - rest).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import NonFinite
from cstormpy.linkage.joints.joint import Joint, Symbol, point_from, shift_of_point, turn_of_axis
from cstormpy.linkage.joints.limits import Limits, limits_of
from cstormpy.values import frozen, numbers_text

J = TypeVar("J", bound="OneDofJoint")


class OneDofJoint(Joint):
    """A joint of one coordinate about or along an axis; see `Revolute` for the parameters.

    Attributes
    ----------
    turns : bool
        Whether the coordinate is an angle [rad]; otherwise it is a length [m].
    slide : float
        What the joint slides along its axis per unit of its coordinate.
    """

    turns: ClassVar[bool] = True
    slide: float = 0.0
    required: ClassVar[tuple[str, ...]] = ("axis",)
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"axis": (3,), "point": (3,)}
    #: The numbers of the joint's own torque, and what they are unless said.
    own_torque: ClassVar[dict[str, float]] = {
        "damping": 0.0,
        "friction": 0.0,
        "friction_velocity": 0.01,
        "armature": 0.0,
        "stiffness": 0.0,
        "rest": 0.0,
    }
    _fields = ("axis", "point", *own_torque, "limits", "name")
    axis: Array
    point: Array
    damping: float
    friction: float
    friction_velocity: float
    armature: float
    stiffness: float
    rest: float
    limits: Limits | None

    def __init__(
        self,
        axis: ArrayLike,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        damping: float = 0.0,
        friction: float = 0.0,
        friction_velocity: float = 0.01,
        armature: float = 0.0,
        stiffness: float = 0.0,
        rest: float = 0.0,
        limits: Limits | Sequence[float | None] | None = None,
        name: str | None = None,
    ) -> None:
        named = None if name is None else checks.name(name, "joint name")
        where = "" if named is None else f"joint {named!r}: "
        self._set(
            name=named,
            axis=checks.unit_vector(axis, f"{where}axis"),
            point=checks.array(point, (3,), f"{where}point"),
            damping=checks.nonnegative(damping, f"{where}damping"),
            friction=checks.nonnegative(friction, f"{where}friction"),
            friction_velocity=checks.positive(friction_velocity, f"{where}friction_velocity"),
            armature=checks.nonnegative(armature, f"{where}armature"),
            stiffness=checks.real(stiffness, f"{where}stiffness"),
            rest=checks.real(rest, f"{where}rest"),
            limits=limits_of(limits, where),
        )
        if not np.isfinite(self.screw).all():
            raise NonFinite(f"{where}point: is so far away that the joint's screw overflows")

    def _carried(self: J, pose: NDArray[Any]) -> J:
        return self.replace(axis=pose[:3, :3].T @ self.axis, point=point_from(pose, self.point))

    @property
    def in_urdf(self) -> tuple[str, Array | None, Array] | None:
        """A hinge or a slide; None if it does both."""
        if self.turns and self.slide:
            return None
        return "revolute" if self.turns else "prismatic", self.axis, np.eye(3)

    @property
    def in_mjcf(self) -> tuple[str, ...] | None:
        """A hinge or a slide; None if it does both."""
        if self.turns and self.slide:
            return None
        return ("hinge" if self.turns else "slide",)

    @property
    def screw(self) -> Array:
        """The screw S (6,), (ω, v), in the link's own frame."""
        raise NotImplementedError

    @property
    def freedoms(self) -> tuple[OneDofJoint, ...]:
        """The joint itself."""
        return (self,)

    @property
    def unit(self) -> str:
        """Unit of the coordinate."""
        return "rad" if self.turns else "m"

    @property
    def winds(self) -> bool:
        """True where a full turn of the coordinate brings the link back to where it was."""
        return self.turns and self.slide == 0.0

    @property
    def direction(self) -> Array:
        """The axis."""
        return self.axis

    def displacement(self, q: ArrayLike) -> NDArray[Any]:
        """Return exp(S q), (..., 4, 4), for q (...)."""
        q, (x, y, z) = np.asarray(q), self.axis
        X = np.zeros((*q.shape, 4, 4), np.result_type(q, np.float64))
        X[..., :3, :3] = np.eye(3)
        if self.turns:
            across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            angle = q[..., None, None]
            X[..., :3, :3] += np.sin(angle) * across + 2.0 * np.sin(0.5 * angle) ** 2 * (across @ across)
        X[..., :3, 3] = self.point - X[..., :3, :3] @ self.point + (self.slide * q)[..., None] * self.axis
        X[..., 3, 3] = 1.0
        return X

    def turned(self, field: str, index: tuple[int, ...]) -> list[tuple[int, int, NDArray[Any]]]:
        """Return what its screw follows if an entry of axis or point changes."""
        (k,) = index
        return [(0, 1, shift_of_point(k) if field == "point" else turn_of_axis(self.axis, np.eye(3)[k], self.point))]

    def details(self) -> list[str]:
        """Return pitch, point, options and limits where they differ from the defaults."""
        shown = [f"{key} {getattr(self, key):.6g}" for key in self.required if key != "axis"]
        shown += [f"point {numbers_text(self.point, 4)}"] if self.point.any() else []
        changed = [k for k, default in self.own_torque.items() if getattr(self, k) != default]
        shown += [f"{key} {getattr(self, key):.6g}" for key in changed]
        return shown + (self.limits.details() if self.limits else [])

    def content(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults."""
        fields = super().content()
        if not self.point.any():
            del fields["point"]
        return {k: v for k, v in fields.items() if k not in self.own_torque or v != self.own_torque[k]}

    def __repr__(self) -> str:
        shown = [numbers_text(self.axis)]
        shown += [f"{getattr(self, key):g}" for key in self.required if key != "axis"]
        if self.point.any():
            shown.append(f"point={numbers_text(self.point)}")
        shown += [f"{k}={getattr(self, k):g}" for k, default in self.own_torque.items() if getattr(self, k) != default]
        shown += [f"{k}={getattr(self, k)!r}" for k in ("limits", "name") if getattr(self, k) is not None]
        return f"{type(self).__name__}({', '.join(shown)})"


class Revolute(OneDofJoint):
    """A hinge: rotation about an axis.

    Parameters
    ----------
    axis : array_like, (3,)
        Direction of the axis in the link's own frame; normalised.
    point : array_like, (3,)
        A point on the axis in the link's own frame [m].
    damping, friction : float
        Viscous damping [N m s/rad] and Coulomb friction [N m], >= 0. For a prismatic joint N s/m and N.
    friction_velocity : float
        Velocity in tanh(qd / friction_velocity), which smooths the Coulomb friction [rad/s], > 0.
    armature : float
        Inertia of the rotor as seen at the joint, gear ratio squared times the rotor's [kg m^2], >= 0.
    stiffness, rest : float
        Spring constant [N m/rad], of any sign, and the position where the spring is relaxed [rad].
    limits : Limits or (low, high), optional
        A pair is short for `Limits(position=(low, high))`.
    name : str, optional
        Without it the joint is called by the name of its link.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType
        Naming the joint, if it has a name, and the parameter.

    Examples
    --------
    >>> Revolute((0, 0, 2), damping=0.1, name="elbow")
    Revolute((0, 0, 1), damping=0.1, name='elbow')
    >>> Revolute((0, 0, 1), point=(-0.5, 0, 0)).screw.tolist()
    [0.0, 0.0, 1.0, 0.0, 0.5, 0.0]
    """

    kind = "revolute"
    symbol = Symbol("pin")
    pitch = 0.0

    @property
    def screw(self) -> Array:
        """The screw S = (a, p x a), read-only (6,), in the link's own frame."""
        return _screw(self.axis, self.point, 0.0)


class Prismatic(OneDofJoint):
    """A slide: translation along an axis. The parameters are those of `Revolute`, with metres for radians.

    Examples
    --------
    >>> Prismatic((1, 0, 0)).screw.tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """

    kind = "prismatic"
    symbol = Symbol("slider", rail=True, support=False)
    turns = False
    slide = 1.0

    @property
    def screw(self) -> Array:
        """The screw S = (0, a), read-only (6,), in the link's own frame."""
        return frozen(np.concatenate([np.zeros(3), self.axis]))


class Screw(OneDofJoint):
    """A screw: rotation about an axis with a translation along it; q is the angle.

    Parameters
    ----------
    axis : array_like, (3,)
        Direction of the axis in the link's own frame; normalised.
    pitch : float
        Translation along the axis per angle [m/rad]; 0 is a revolute joint.
    **options
        As for `Revolute`.

    Examples
    --------
    >>> Screw((0, 0, 1), 0.1).screw.tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.1]
    """

    kind = "screw"
    symbol = Symbol("pin", rail=True)
    required = ("axis", "pitch")
    _fields = ("axis", "pitch", *OneDofJoint._fields[1:])
    pitch: float

    def __init__(self, axis: ArrayLike, pitch: float, **options: Any) -> None:
        name = options.get("name")
        where = "" if name is None else f"joint {checks.name(name, 'joint name')!r}: "
        number = checks.real(pitch, f"{where}pitch")
        self._set(pitch=number, slide=number)
        super().__init__(axis, **options)

    @property
    def screw(self) -> Array:
        """The screw S = (a, p x a + pitch a), read-only (6,), in the link's own frame."""
        return _screw(self.axis, self.point, self.pitch)


def _screw(axis: Array, point: Array, pitch: float) -> Array:
    (a1, a2, a3), (p1, p2, p3) = axis.tolist(), point.tolist()
    # Plain floats: they overflow to infinity without a warning, and the constructor refuses that.
    moment = (p2 * a3 - p3 * a2, p3 * a1 - p1 * a3, p1 * a2 - p2 * a1)
    linear = (m + pitch * a for m, a in zip(moment, (a1, a2, a3), strict=True))
    return frozen(np.array([a1, a2, a3, *linear]))
