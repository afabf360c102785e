"""Components of a mechanism's parameters: each number by a name, as "forearm.com[0]" or "elbow.axis[2]".

A component says what a change of it does to the inverse dynamics, by one of five kinds: `Inertia` changes the inertial
numbers of a link, `Term` is a number of a joint's own torque, `Shift` moves frames in a joint, `Gravity` and `Wrench`
act from outside. A `LoopFrame` moves a frame of a loop, which changes what is closed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue, UnknownName, shown
from cstormpy.linkage.constraints import Coupling
from cstormpy.linkage.joints import Joint, OneDofJoint
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.parameters import COUPLING_PARAMETERS, unknown_parameter

if TYPE_CHECKING:
    from cstormpy.linkage.linkage import Linkage

#: Parameters of a joint's own torque.
TERMS = tuple(OneDofJoint.own_torque)

PAIRS = ("xx", "xy", "xz", "yy", "yz", "zz")
TWIST = ("rx", "ry", "rz", "x", "y", "z")


@dataclass(frozen=True, eq=False)
class Component:
    """One number of a mechanism, by its name."""

    name: str


@dataclass(frozen=True, eq=False)
class Inertia(Component):
    """A number of a link's inertia: the inertial numbers of the link change by `weights` (10,), at some `places`."""

    link: int
    weights: Array
    places: tuple[int, ...] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", _places(self.weights))


@dataclass(frozen=True, eq=False)
class Term(Component):
    """A number of the torque that the joint of a coordinate takes itself, as "damping"."""

    coordinate: int
    field: str


@dataclass(frozen=True, eq=False)
class Move:
    """A motion within the joint of a link: by a twist (6,), in the link's own axes, before its freedom `position`.

    It grows with the coordinate that `along` names, or is the same whatever that is (-1). Of the twist only `places`
    differ from zero.
    """

    position: int
    twist: Array
    along: int = -1
    places: tuple[int, ...] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", _places(self.twist))

    def by(self, columns: Any) -> Any:
        """Return what changes along the motion, from six columns that say what changes along each entry of a twist."""
        places = list(self.places)
        return columns[..., places] @ self.twist[places]


def _places(values: Array) -> tuple[int, ...]:
    """Return where numbers differ from zero, as a graph of them takes it for granted."""
    return tuple(np.flatnonzero(values).tolist())


@dataclass(frozen=True, eq=False)
class Shift(Component):
    """A number of the geometry: frames in the joint of a link move."""

    link: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, eq=False)
class Gravity(Component):
    """A component of gravity."""

    axis: int


@dataclass(frozen=True, eq=False)
class Wrench(Component):
    """A component of a wrench on a link, beside whatever acts there, in the link's frame, which it turns with."""

    link: int
    axis: int


@dataclass(frozen=True, eq=False)
class LoopFrame(Component):
    """A number of the pose of frame A or B, `end`, of a loop: it moves by one entry of a twist (6,) in its own axes."""

    loop: int
    end: str
    along: int

    @property
    def twist(self) -> Array:
        """The twist (6,)."""
        return np.eye(len(TWIST))[self.along]


def components(mech: Linkage) -> dict[str, tuple[Component, ...]]:
    """Return the components of each parameter, in its order, by the names of both.

    >>> from cstormpy.mechanism import library
    >>> found = components(library.acrobot())
    >>> [part.name for part in found["forearm.com"]], len(found["forearm.com[1]"])
    (['forearm.com[0]', 'forearm.com[1]', 'forearm.com[2]'], 1)
    """
    made: dict[str, tuple[Component, ...]] | None = mech.memo.get("components")
    if made is None:
        made = {}
        for name, parts in _parameters(mech):
            made[name] = parts
            if len(parts) > 1:
                made |= {part.name: (part,) for part in parts}
        mech.memo["components"] = made
    return made


def find(mech: Linkage, names: Any) -> list[tuple[str, tuple[Component, ...]]]:
    """Return each parameter of a list with its components.

    Raises
    ------
    UnknownName, InvalidValue, InvalidType
        With the nearest spelling; for what the dynamics does not depend on; for a name that is given twice.
    """
    from cstormpy.arguments import entries

    known, found = components(mech), []
    wanted = [names] if isinstance(names, str) else entries(names, "parameters")
    for name in wanted:
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names, got {shown(name)}")
        if name not in known:
            raise _refusal(mech, name, known)
        found.append((name, known[name]))
    each = [part.name for _, parts in found for part in parts]
    if len(set(each)) < len(each):
        twice = next(name for k, name in enumerate(each) if name in each[:k])
        raise InvalidValue(f"parameters: {twice!r} is among them twice")
    return found


def _refusal(mech: Linkage, name: str, known: dict[str, tuple[Component, ...]]) -> UnknownName | InvalidValue:
    owner, _, field = name.rpartition(".")  # of a name that may have a bracket too
    field = field.partition("[")[0]
    if field == "limits":
        return InvalidValue(f"parameter {name!r}: the dynamics do not depend on limits")
    if any(isinstance(loop, Coupling) and loop.name == owner for loop in mech.loops) and field in COUPLING_PARAMETERS:
        return InvalidValue(
            f"parameter {name!r}: a coupling has no derivatives to its numbers, which "
            "with_parameters changes, and so an option of a builder in a sweep"
        )
    welds = {link.joint_name for link in mech.links if not link.joint.dof}
    if owner in welds and field in (*TERMS, "axis", "point", "pitch"):
        return InvalidValue(f"parameter {name!r}: joint {owner!r} is fixed and has no {field}")
    return unknown_parameter(name, known)


def _parameters(mech: Linkage) -> Iterator[tuple[str, tuple[Component, ...]]]:
    for i, link in enumerate(mech.links):
        yield from _of_link(i, link)
        first = mech.coordinates(link.joint_name).start
        yield from _of_joint(link.joint_name, i, link.joint, first, 0)
        if link.joint.parts:
            for k, (label, part) in enumerate(zip(link.joint.labels(link.joint_name), link.joint.parts, strict=True)):
                yield from _of_joint(label, i, part, first + k, k)
    yield "gravity", tuple(Gravity(f"gravity[{k}]", k) for k in range(3))
    for k, loop in enumerate(loop for loop in mech.loops if isinstance(loop, Loop)):
        for end in ("a", "b"):
            name = f"{loop.name}.pose_{end}"
            yield (
                name,
                tuple(LoopFrame(f"{name}.{label}", k, end, along) for along, label in enumerate(TWIST)),
            )


def _of_link(i: int, link: Link) -> Iterator[tuple[str, tuple[Component, ...]]]:
    name, m, c = link.name, link.mass, link.com
    yield f"{name}.mass", (Inertia(f"{name}.mass", i, _numbers(1.0, c, c @ c * np.eye(3) - np.outer(c, c))),)
    of_com = []
    for k, e in enumerate(np.eye(3)):
        spread = m * (2.0 * c[k] * np.eye(3) - np.outer(e, c) - np.outer(c, e))
        of_com.append(Inertia(f"{name}.com[{k}]", i, _numbers(0.0, m * e, spread)))
    yield f"{name}.com", tuple(of_com)
    yield (
        f"{name}.inertia",
        tuple(Inertia(f"{name}.inertia.{pair}", i, np.eye(10)[4 + k]) for k, pair in enumerate(PAIRS)),
    )
    yield (
        f"{name}.pose",
        tuple(Shift(f"{name}.pose.{along}", i, (Move(0, np.eye(6)[k]),)) for k, along in enumerate(TWIST)),
    )
    yield f"{name}.wrench", tuple(Wrench(f"{name}.wrench[{k}]", i, k) for k in range(6))


def _numbers(mass: float, moment: Array, inertia: Array) -> Array:
    """Return the ten numbers in the order of `Mechanism.inertial_numbers`."""
    return np.array([mass, *moment, *inertia[np.triu_indices(3)]])


def _of_joint(
    name: str, link: int, joint: Joint, coordinate: int, position: int
) -> Iterator[tuple[str, tuple[Component, ...]]]:
    """Go through the parameters of a joint, or of a part of one that begins at a place among its freedoms."""
    for field in TERMS:
        if field in joint._fields:
            several = field in joint.each
            labels = [f"{name}.{field}[{k}]" for k in range(joint.dof)] if several else [f"{name}.{field}"]
            yield f"{name}.{field}", tuple(Term(label, coordinate + k, field) for k, label in enumerate(labels))
    for field, shape in joint.shapes.items():
        parts = []
        for index in np.ndindex(shape):
            moves = tuple(
                Move(position + place, sign * twist)
                for first, last, twist in joint.turned(field, index)
                for place, sign in ((first, 1.0), (last, -1.0))
            )
            parts.append(Shift(f"{name}.{field}[{','.join(map(str, index))}]", link, moves))
        yield f"{name}.{field}", tuple(parts)
    if "pitch" in joint._fields:
        move = Move(position + 1, np.concatenate([np.zeros(3), joint.direction]), coordinate)
        yield f"{name}.pitch", (Shift(f"{name}.pitch", link, (move,)),)
