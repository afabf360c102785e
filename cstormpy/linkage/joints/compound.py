"""Joints of several coordinates that are chains of joints of one, with nothing between them.

Each is the product of its freedoms' motions, M exp(S_1 q_1) exp(S_2 q_2) …, so that q̇ = dq/dt and each coordinate has
damping, friction, armature, spring and limits of its own. Where two freedoms come to do the same (three hinges whose
first and last axis coincide) the joint is singular, and its acceleration is refused by the joint's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.linkage.joints.joint import Joint, Symbol, point_from, shift_of_point, turn_of_axis
from cstormpy.linkage.joints.multi_dof import EachLimits, MultiDofJoint
from cstormpy.linkage.joints.one_dof import OneDofJoint, Prismatic, Revolute
from cstormpy.values import frozen, numbers_text

C = TypeVar("C", bound="Composite")
A = TypeVar("A", bound="_Axes")

_PERPENDICULAR = 1e-6
"""Largest cosine of the angle between the directions of a planar joint."""

_PARALLEL = 1e-9
"""The sine of the angle, or the volume, below which axes do the same."""


class Composite(Joint):
    """Joints of one coordinate, one after the other: the first next to the parent, the last next to the link.

    Parameters
    ----------
    joints : iterable of Revolute, Prismatic or Screw
        Their axes and points are given in the link's own frame, where it is at q = 0.
    name : str, optional
        Without it the joint is called by the name of its link.

    Raises
    ------
    InvalidType, InvalidValue
        If there is none, or one that has not one coordinate.

    Examples
    --------
    A gimbal, whose coordinates are the angles of yaw, pitch and roll:

    >>> gimbal = Composite([Revolute((0, 0, 1)), Revolute((0, 1, 0)), Revolute((1, 0, 0), damping=0.1)])
    >>> gimbal.dof
    3
    """

    kind = "composite"
    required = ("joints",)
    symbol = Symbol("ball")
    _fields = ("joints", "name")
    joints: tuple[OneDofJoint, ...]

    def __init__(self, joints: Iterable[OneDofJoint], *, name: str | None = None) -> None:
        named = None if name is None else checks.name(name, "joint name")
        where = "" if named is None else f"joint {named!r}: "
        if isinstance(joints, (str, bytes, Joint)) or not isinstance(joints, Iterable):
            raise InvalidType(f"{where}joints: expected a list of joints, got {shown(joints)}")
        chain = tuple(joints)
        for k, joint in enumerate(chain):
            if not isinstance(joint, OneDofJoint):
                raise InvalidType(
                    f"{where}joints[{k}]: expected a joint of one coordinate, as Revolute((0, 0, 1)), "
                    f"got {shown(joint)}"
                )
        if not chain:
            raise InvalidValue(f"{where}joints: there are none; use Fixed() for a weld")
        self._set(joints=chain, name=named)

    @property
    def freedoms(self) -> tuple[OneDofJoint, ...]:
        """The joints."""
        return self.joints

    @property
    def parts(self) -> tuple[OneDofJoint, ...]:
        """The joints."""
        return self.joints

    @property
    def start(self) -> Array:
        """The point of the first joint."""
        return self.joints[0].start

    @property
    def end(self) -> Array:
        """The point of the last joint."""
        return self.joints[-1].end

    def _carried(self: C, pose: Array) -> C:
        return self.replace(joints=[joint.from_parent(pose) for joint in self.joints])

    def details(self) -> list[str]:
        """Return types and axes of the joints."""
        return [
            f"[{k}] " + ", ".join([j.kind, numbers_text(j.axis, 4), *j.details()]) for k, j in enumerate(self.joints)
        ]

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        return f"Composite([{', '.join(map(repr, self.joints))}]{named})"


class _Axes(MultiDofJoint):
    """Base of the compound joints that are given by axes and one point."""

    _fields = ("axes", "point", *MultiDofJoint.each, "limits", "name")
    _given: ClassVar[tuple[tuple[int, ...], ...]]  # axes unless said
    axes: Array

    def __init__(
        self,
        axes: ArrayLike | None = None,
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        friction_velocity: ArrayLike = 0.01,
        armature: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        rest: ArrayLike = 0.0,
        limits: EachLimits = None,
        name: str | None = None,
    ) -> None:
        values = (damping, friction, friction_velocity, armature, stiffness, rest)
        where = self._set_each(point, limits, name, **dict(zip(self.each, values, strict=True)))
        given = checks.array(self._given if axes is None else axes, np.shape(self._given), f"{where}axes")
        units = [checks.unit_vector(axis, f"{where}axes[{k}]") for k, axis in enumerate(given)]
        self._set(axes=frozen(np.stack(units)))
        self._set(_chain=self._made(where))

    def _made(self, where: str) -> tuple[OneDofJoint, ...]:
        """Return the freedoms."""
        raise NotImplementedError

    def turned(self, field: str, index: tuple[int, ...]) -> list[tuple[int, int, Array]]:
        """Return what the screws of its freedoms follow if an entry of axes or point changes."""
        if field == "point":
            return [(0, self.dof, shift_of_point(index[0]))]
        k, j = index
        return [(k, k + 1, turn_of_axis(self.axes[k], np.eye(3)[j], self.point))]

    def _carried(self: A, pose: Array) -> A:
        return self.replace(axes=self.axes @ pose[:3, :3], point=point_from(pose, self.point))

    def _geometry(self, digits: int) -> dict[str, str]:
        axes = {} if np.array_equal(self.axes, self._given) else {"axes": _rows(self.axes, digits)}
        return axes | super()._geometry(digits)


class Universal(_Axes):
    """A universal joint: two hinges whose axes meet, as in a cardan shaft.

    Parameters
    ----------
    axes : array_like, (2, 3)
        Directions of the axes where the link is at q = 0, in its own frame; the first stays with the parent, the
        second with the link. x and y unless said; normalised.
    point : array_like, (3,)
        Where they meet, in the link's own frame [m].
    damping, friction, friction_velocity, armature, stiffness, rest : float or array_like, (2,)
        As for `Revolute`, one number for both coordinates or one for each.
    limits : sequence, optional
        For each coordinate `Limits`, a pair (low, high) for the position, or None.
    name : str, optional
        Without it the joint is called by the name of its link.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType
        Naming the joint, if it has a name, and the parameter: axes that are parallel too.

    Examples
    --------
    >>> Universal(damping=0.1, limits=[(-1, 1), None], name="wrist")
    Universal(damping=(0.1, 0.1), limits=(Limits(position=(-1, 1)), None), name='wrist')
    """

    kind = "universal"
    symbol = Symbol("ball")
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"axes": (2, 3), "point": (3,)}
    _count = 2
    _given = (1, 0, 0), (0, 1, 0)

    def _made(self, where: str) -> tuple[OneDofJoint, ...]:
        if np.linalg.norm(np.cross(*self.axes)) < _PARALLEL:
            raise InvalidValue(f"{where}axes: are parallel, so that both coordinates would do the same")
        return tuple(self._freedom(k, Revolute, axis) for k, axis in enumerate(self.axes))


class Planar(_Axes):
    """A joint that moves in a plane: q is the displacement along the first and the second direction [m], and the angle.

    The directions stay with the parent; the link turns about their normal through `point`.

    Parameters
    ----------
    axes : array_like, (2, 3)
        Two perpendicular directions in the plane, where the link is at q = 0, in its own frame; x and y unless said.
    point : array_like, (3,)
        What turns about the normal stays at this point of the link [m].
    damping, friction, friction_velocity, armature, stiffness, rest, limits, name
        As for `Universal`, of three coordinates.

    Examples
    --------
    >>> Planar().motion([1.0, 2.0, 0.0])[:3, 3].tolist()
    [1.0, 2.0, 0.0]
    """

    kind = "planar"
    symbol = Symbol("pin", support=False)
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"axes": (2, 3), "point": (3,)}
    perpendicular: ClassVar[tuple[str, ...]] = ("axes",)
    _count = 3
    _given = (1, 0, 0), (0, 1, 0)

    @classmethod
    def across(cls, normal: ArrayLike, **options: Any) -> Planar:
        """Return the joint that moves in the plane across a normal, its first direction near to x, or else to y.

        >>> Planar.across((0, 0, 2)) == Planar()
        True
        """
        n = checks.unit_vector(normal, "normal")
        first = np.eye(3)[int(np.argmin(np.abs(n)))]
        first = first - (first @ n) * n
        return cls([first, np.cross(n, first)], **options)

    @property
    def in_urdf(self) -> tuple[str, Array | None, Array]:
        """A planar joint, whose frame is turned where a reader would take other directions across the normal."""
        normal = self.direction
        if np.array_equal(self.axes, Planar.across(normal).axes):
            return "planar", normal, np.eye(3)
        return "planar", np.eye(3)[2], np.column_stack([*self.axes, normal])

    @property
    def direction(self) -> Array:
        """The normal of the plane."""
        return self._chain[2].axis

    def turned(self, field: str, index: tuple[int, ...]) -> list[tuple[int, int, Array]]:
        """Return what the screws follow: the normal with the directions."""
        found = super().turned(field, index)
        if field == "axes":
            rates = np.zeros((2, 3))
            axis = self.axes[index[0]]
            rates[index[0]] = np.eye(3)[index[1]] - axis[index[1]] * axis
            normal = np.cross(*self.axes)
            rate = np.cross(rates[0], self.axes[1]) + np.cross(self.axes[0], rates[1])
            found.append((2, 3, turn_of_axis(self.direction, rate / np.linalg.norm(normal), self.point)))
        return found

    def _made(self, where: str) -> tuple[OneDofJoint, ...]:
        first, second = self.axes
        if abs(first @ second) > _PERPENDICULAR:
            raise InvalidValue(f"{where}axes: must be perpendicular, their cosine is {first @ second:.3g}")
        kinds: tuple[type[OneDofJoint], ...] = (Prismatic, Prismatic, Revolute)
        axes = (first, second, np.cross(first, second))
        return tuple(self._freedom(k, of, axis) for k, (of, axis) in enumerate(zip(kinds, axes, strict=True)))


class Translational(_Axes):
    """A joint that moves in three directions without turning: q is the displacement along each [m].

    Parameters
    ----------
    axes : array_like, (3, 3)
        The directions, a row each, in the link's own frame; x, y and z unless said. Normalised; they need not be
        perpendicular.
    point : array_like, (3,)
        Where the joint is drawn, in the link's own frame [m].
    damping, friction, friction_velocity, armature, stiffness, rest, limits, name
        As for `Universal`, of three coordinates. Directions in one plane are refused.

    Examples
    --------
    >>> Translational().subspace([0.1, 0.2, 0.3])[3:].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    kind = "translational"
    symbol = Symbol("slider", support=False)
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"axes": (3, 3), "point": (3,)}
    _count = 3
    _given = (1, 0, 0), (0, 1, 0), (0, 0, 1)

    def _made(self, where: str) -> tuple[OneDofJoint, ...]:
        if abs(np.linalg.det(self.axes)) < _PARALLEL:
            raise InvalidValue(f"{where}axes: lie in one plane, so that two coordinates would do the same")
        return tuple(self._freedom(k, Prismatic, axis) for k, axis in enumerate(self.axes))


def _rows(axes: Array, digits: int) -> str:
    return "(" + ", ".join(numbers_text(axis, digits) for axis in axes) + ")"
