"""Base of the joints that hold numbers for each of several coordinates: damping, friction, springs, limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, is_single
from cstormpy.errors import InvalidType, ShapeError
from cstormpy.linkage.joints.joint import Joint
from cstormpy.linkage.joints.limits import Limits, limits_of
from cstormpy.linkage.joints.one_dof import OneDofJoint
from cstormpy.values import frozen, numbers_text

EachLimits = Sequence[Limits | Sequence[float | None] | None] | None
"""Limits, or a pair for the position, or None, for each coordinate."""


class MultiDofJoint(Joint):
    """A joint about a point of the link whose `freedoms` are made of its own fields, an entry for each coordinate."""

    each = tuple(OneDofJoint.own_torque)
    point: Array
    damping: Array
    friction: Array
    friction_velocity: Array
    armature: Array
    stiffness: Array
    rest: Array
    limits: tuple[Limits | None, ...] | None
    _count: ClassVar[int]  # of coordinates
    _chain: tuple[OneDofJoint, ...]

    def _set_each(self, point: ArrayLike, limits: EachLimits, name: str | None, **options: ArrayLike) -> str:
        """Set the fields that all such joints have; return what a message about another one begins with."""
        named = None if name is None else checks.name(name, "joint name")
        where = "" if named is None else f"joint {named!r}: "
        self._set(
            name=named,
            point=checks.array(point, (3,), f"{where}point"),
            limits=_limits_of_each(limits, self._count, where),
            **{key: _of_each(value, self._count, f"{where}{key}") for key, value in options.items()},
        )
        return where

    def _freedom(self, k: int, of: type[OneDofJoint], axis: Array) -> OneDofJoint:
        """Return the hinge or slide of a coordinate."""
        options = {key: float(getattr(self, key)[k]) for key in self.each}
        limits = None if self.limits is None else self.limits[k]
        label = None if self.name is None else f"{self.name[: checks.MAX_NAME - 3]}[{k}]"
        return of(axis, point=self.point, limits=limits, name=label, **options)

    @property
    def freedoms(self) -> tuple[OneDofJoint, ...]:
        """The hinges and slides that make the motion, in the order of the coordinates."""
        return self._chain

    def _geometry(self, digits: int) -> dict[str, str]:
        """Return the fields of its geometry that differ from the defaults, as text."""
        return {"point": numbers_text(self.point, digits)} if self.point.any() else {}

    def _changed(self) -> list[str]:
        """Return the options that differ from their defaults somewhere."""
        defaults = OneDofJoint.own_torque
        return [key for key in self.each if (getattr(self, key) != defaults[key]).any()]

    def details(self) -> list[str]:
        """Return geometry, options and limits where they differ from the defaults."""
        shown = [f"{key} {text}" for key, text in self._geometry(4).items()]
        shown += [f"{key} {numbers_text(getattr(self, key))}" for key in self._changed()]
        for k, limits in enumerate(self.limits or ()):
            shown += [f"[{k}] {text}" for text in limits.details()] if limits else []
        return shown

    def content(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults."""
        optional = {"axes", "point", *self.each} - {*self._geometry(4), *self._changed()}
        return {key: value for key, value in super().content().items() if key not in optional}

    def __repr__(self) -> str:
        geometry = self._geometry(6)
        shown = [geometry.pop("axes")] if "axes" in geometry else []
        shown += [f"{key}={text}" for key, text in geometry.items()]
        shown += [f"{key}={numbers_text(getattr(self, key))}" for key in self._changed()]
        rest = self._fields[self._fields.index("limits") :]
        shown += [f"{key}={getattr(self, key)!r}" for key in rest if getattr(self, key) is not None]
        return f"{type(self).__name__}({', '.join(shown)})"


def _of_each(value: ArrayLike, count: int, what: str) -> Array:
    """Return a number for each coordinate."""
    if is_single(value):
        return frozen(np.full(count, checks.real(value, what)))
    return checks.array(value, (count,), what)


def _limits_of_each(value: object, count: int, where: str) -> tuple[Limits | None, ...] | None:
    """Return the limits of each coordinate, None if there are none at all."""
    if value is None:
        return None
    if isinstance(value, (str, bytes, Limits)) or not isinstance(value, Iterable):
        raise InvalidType(f"{where}limits: expected an entry for each of {count} coordinates, as [(-1, 1), None, …]")
    entries = list(value)
    if len(entries) != count:
        raise ShapeError(f"{where}limits: expected an entry for each of {count} coordinates, got {len(entries)}")
    found = tuple(limits_of(entry, f"{where}limits[{k}]: ") for k, entry in enumerate(entries))
    return found if any(found) else None
