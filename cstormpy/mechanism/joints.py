"""Joints: what a link may do relative to its parent, and the forces that act in the joint itself.

A joint is a constant screw S in the frame of the link that it moves: the link's pose in its parent's frame is
M exp(S q), with M the link's `pose`. The torque of the motor of a joint is, beside the mechanism's inverse dynamics,

    armature * qdd + damping * qd + friction * tanh(qd / friction_velocity) + stiffness * (q - rest).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.mechanism import checks
from cstormpy.mechanism.values import Value, frozen

__all__ = ["Fixed", "Joint", "Limits", "OneDofJoint", "Prismatic", "Revolute", "Screw"]

Bounds = float | Sequence[float | None] | None
"""What is taken for a limit: a symmetric bound, a pair (low, high) in which None is an open side, or None."""


class Limits(Value):
    """Limits of a joint: data for optimisers and drawings, which the dynamics do not enforce.

    Parameters
    ----------
    position : (low, high) or None
        Limits of q [rad or m]; None, or an infinity of the right sign, is an open side.
    velocity, torque : float, (low, high) or None
        Limits of qd and of the motor's torque or force; one number v stands for (-v, v).

    Attributes
    ----------
    position, velocity, torque : tuple of two floats, or None
        None where both sides are open.

    Raises
    ------
    InvalidValue
        If low > high, or a symmetric bound is negative.

    Examples
    --------
    >>> Limits(position=(-1, 2), torque=10)
    Limits(position=(-1, 2), torque=(-10, 10))
    """

    _fields = ("position", "velocity", "torque")
    position: tuple[float, float] | None
    velocity: tuple[float, float] | None
    torque: tuple[float, float] | None

    def __init__(self, position: Bounds = None, velocity: Bounds = None, torque: Bounds = None) -> None:
        self._set(
            position=_bounds(position, "position limits", symmetric=False),
            velocity=_bounds(velocity, "velocity limits", symmetric=True),
            torque=_bounds(torque, "torque limits", symmetric=True),
        )

    def __bool__(self) -> bool:
        return any(getattr(self, kind) is not None for kind in self._fields)

    def __repr__(self) -> str:
        shown = [f"{k}={_brief_numbers(v)}" for k, v in self._as_dict().items() if v is not None]
        return f"Limits({', '.join(shown)})"


class Joint(Value):
    """Base of all joints: a name, and the number of coordinates.

    Attributes
    ----------
    name : str or None
        A joint without a name is called by the name of the link that it moves.
    dof : int
        Number of coordinates that the joint adds to q.
    kind : str
        Its type in print and in files: "revolute", "prismatic", "screw" or "fixed".
    """

    dof: ClassVar[int]
    kind: ClassVar[str]
    name: str | None

    def __repr__(self) -> str:
        shown = [f"name={self.name!r}"] if self.name is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"


class Fixed(Joint):
    """A weld: the link does not move in its parent's frame, and adds nothing to q.

    Parameters
    ----------
    name : str, optional
        Name of the joint.

    Examples
    --------
    >>> Fixed().dof
    0
    """

    dof = 0
    kind = "fixed"
    _fields = ("name",)

    def __init__(self, *, name: str | None = None) -> None:
        self._set(name=None if name is None else checks.name(name, "joint name"))


class OneDofJoint(Joint):
    """A joint of one coordinate about or along an axis; see `Revolute` for the parameters."""

    dof = 1
    _options: ClassVar[dict[str, float]] = {
        "damping": 0.0,
        "friction": 0.0,
        "friction_velocity": 0.01,
        "armature": 0.0,
        "stiffness": 0.0,
        "rest": 0.0,
    }
    _fields = ("axis", "point", *_options, "limits", "name")
    axis: NDArray[np.float64]
    point: NDArray[np.float64]
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
            limits=_limits(limits, where),
        )
        if not np.isfinite(self.screw).all():
            raise NonFinite(f"{where}point: is so far away that the joint's screw overflows")

    @property
    def screw(self) -> NDArray[np.float64]:
        """The screw S (6,), (ω, v), in the link's own frame."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = [_brief_numbers(self.axis)]
        if isinstance(self, Screw):
            shown.append(f"{self.pitch:g}")
        if self.point.any():
            shown.append(f"point={_brief_numbers(self.point)}")
        shown += [f"{k}={getattr(self, k):g}" for k, default in self._options.items() if getattr(self, k) != default]
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
    pitch = 0.0

    @property
    def screw(self) -> NDArray[np.float64]:
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

    @property
    def screw(self) -> NDArray[np.float64]:
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
    _fields = ("axis", "pitch", *OneDofJoint._fields[1:])
    pitch: float

    def __init__(
        self,
        axis: ArrayLike,
        pitch: float,
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
        where = "" if name is None else f"joint {checks.name(name, 'joint name')!r}: "
        self._set(pitch=checks.real(pitch, f"{where}pitch"))
        super().__init__(
            axis,
            point=point,
            damping=damping,
            friction=friction,
            friction_velocity=friction_velocity,
            armature=armature,
            stiffness=stiffness,
            rest=rest,
            limits=limits,
            name=name,
        )

    @property
    def screw(self) -> NDArray[np.float64]:
        """The screw S = (a, p x a + pitch a), read-only (6,), in the link's own frame."""
        return _screw(self.axis, self.point, self.pitch)


def _screw(axis: NDArray[np.float64], point: NDArray[np.float64], pitch: float) -> NDArray[np.float64]:
    (a1, a2, a3), (p1, p2, p3) = axis.tolist(), point.tolist()
    # Plain floats: they overflow to infinity without a warning, and the constructor refuses that.
    moment = (p2 * a3 - p3 * a2, p3 * a1 - p1 * a3, p1 * a2 - p2 * a1)
    linear = (m + pitch * a for m, a in zip(moment, (a1, a2, a3), strict=True))
    return frozen(np.array([a1, a2, a3, *linear]))


def _limits(value: object, where: str) -> Limits | None:
    """Return the limits of a joint from `Limits` or from the short pair for the position."""
    if value is None or isinstance(value, Limits):
        return value or None
    try:
        return Limits(position=value) or None  # type: ignore[arg-type]
    except (InvalidValue, InvalidType) as error:
        raise type(error)(f"{where}{error}") from None


def _bounds(value: object, what: str, *, symmetric: bool) -> tuple[float, float] | None:
    """Return (low, high), or None if both sides are open."""
    if value is None:
        return None
    pair = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence):
        if not symmetric:
            raise InvalidType(f"{what}: expected a pair (low, high)")
        bound = checks.nonnegative(pair, what)
        return (-bound + 0.0, bound)
    if len(pair) != 2:
        raise ShapeError(f"{what}: expected a pair (low, high), got {len(pair)} entries")
    low, high = _side(pair[0], -math.inf, what), _side(pair[1], math.inf, what)
    if low > high:
        raise InvalidValue(f"{what}: the lower {low:g} is above the upper {high:g}")
    return None if math.isinf(low) and math.isinf(high) else (low, high)


def _side(value: object, open_side: float, what: str) -> float:
    if value is None or (isinstance(value, (float, np.floating)) and value == open_side):
        return open_side
    return checks.real(value, what)


def _brief_numbers(values: Sequence[float] | NDArray[np.float64]) -> str:
    return "(" + ", ".join(f"{v:.6g}" for v in values) + ")"
