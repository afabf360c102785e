"""Unknowns of an identification: numbers in which the inverse dynamics is linear.

Of a link whose mass, centre of mass and inertia are all asked for, these are its ten inertial numbers, "forearm.m",
"forearm.mx" and so on (see `Mechanism.regressor`); mass and inertia on their own are themselves; so are armature,
damping, friction and stiffness of a joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.regressor import INERTIAL
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name
from cstormpy.identification.consistency import Body
from cstormpy.linkage.components import Component, Gravity, Inertia, Term, components, find
from cstormpy.linkage.scales import coordinate_scales, falling_of, inertial_scales, length_of, torque_scales

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

_OF_LINK = ("mass", "com", "inertia")
#: Terms of a joint in which its torque is linear, and which are not negative.
_OF_JOINT = ("armature", "damping", "friction", "stiffness")
NONNEGATIVE = ("armature", "damping", "friction")


@dataclass(frozen=True)
class Unknowns:
    """Numbers to be found.

    Attributes
    ----------
    parts : tuple of Component
        What a change of each does to the inverse dynamics.
    values : ndarray, (P,)
        What they are in the mechanism that was given.
    whole : mapping from int to slice
        For each link that is unknown as a whole, where its ten numbers stand.
    bodies : tuple of Body
        How the inertial numbers of each link that has unknowns follow from them, all in parts of their sizes.
    sizes : ndarray, (P,)
        Ordinary sizes of the unknowns in such a mechanism, by which they are compared with one another.
    """

    parts: tuple[Component, ...]
    values: Array
    whole: dict[int, slice]
    bodies: tuple[Body, ...]
    sizes: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each."""
        return tuple(part.name for part in self.parts)


def unknowns_of(mech: Mechanism, parameters: Iterable[str] | str | None) -> Unknowns:
    """Return the unknowns that parameters stand for; see `identify`.

    >>> from cstormpy.mechanism import library
    >>> unknowns_of(library.planar_2r(), ["forearm", "*.damping"]).names[-3:]
    ('forearm.Izz', 'shoulder.damping', 'elbow.damping')
    """
    wanted = _linear(mech, parameters)
    parts: list[Component] = []
    values: list[float] = []
    whole: dict[int, slice] = {}
    for i, link in enumerate(mech.links):
        if _whole(link.name) <= set(wanted):
            whole[i] = slice(len(parts), len(parts) + len(INERTIAL))
            parts += [Inertia(f"{link.name}.{n}", i, np.eye(10)[k]) for k, n in enumerate(INERTIAL)]
            values += mech.inertial_numbers[10 * i : 10 * i + 10].tolist()
    for name in wanted:
        for part in components(mech)[name]:
            if isinstance(part, Inertia) and part.link in whole:
                continue
            parts.append(part)
            values.append(_value(mech, part))
    found = np.array(values)
    sizes = np.array([size_of(mech, part) for part in parts])
    return Unknowns(tuple(parts), found, whole, _bodies(mech, parts, found, whole, sizes), sizes)


def size_of(mech: Mechanism, part: Component) -> float:
    """Return an ordinary size of a number in such a mechanism: of a joint's terms its torque over its motion's size."""
    if isinstance(part, Inertia):
        if ".com[" in part.name:
            return length_of(mech)
        return float(inertial_scales(mech)[part.places[0]])
    if isinstance(part, Gravity):
        return length_of(mech) * falling_of(mech)
    if not isinstance(part, Term):
        slides = part.name.endswith((".x", ".y", ".z", ".pitch")) or ".point[" in part.name
        return length_of(mech) if slides else 1.0
    unit, torque = (float(scales[part.coordinate]) for scales in (coordinate_scales(mech), torque_scales(mech)))
    falling = falling_of(mech)
    if part.field in ("rest", "friction_velocity"):
        return unit * (1.0 if part.field == "rest" else falling**0.5)
    motion = {"armature": unit * falling, "damping": unit * falling**0.5, "stiffness": unit, "friction": 1.0}
    return torque / motion[part.field]


def _bodies(
    mech: Mechanism, parts: Sequence[Component], values: Array, whole: Mapping[int, slice], sizes: Array
) -> tuple[Body, ...]:
    """Return how the inertial numbers of links follow from the unknowns, which have these values now."""
    made, unit = [Body.whole(mech.links[i].name, at) for i, at in whole.items()], inertial_scales(mech)
    places: dict[int, list[int]] = {}
    for k, part in enumerate(parts):
        if isinstance(part, Inertia) and part.link not in whole:
            places.setdefault(part.link, []).append(k)
    for i, at in places.items():
        weights = np.stack([parts[k].weights for k in at], axis=1)  # type: ignore[attr-defined]
        now = mech.inertial_numbers[10 * i : 10 * i + 10]
        fixed = (now - weights @ values[at]) / unit
        made.append(Body(mech.links[i].name, np.array(at), weights * sizes[at] / unit[:, None], fixed))
    return tuple(made)


def _whole(link: str) -> set[str]:
    """Return the parameters that make all inertial numbers of a link."""
    return {f"{link}.{field}" for field in _OF_LINK}


def parameter_list(mech: Mechanism, parameters: Any) -> list[str]:
    """Return names of parameters, each once, with those that the names of links and "*.damping" stand for."""
    moving = [link.name for i, link in enumerate(mech.links) if _moves(mech, i)]
    if parameters is None:
        parameters = moving
    given = [parameters] if isinstance(parameters, str) else entries(parameters, "parameters")
    names: list[str] = []
    for name in given:
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names, got {shown(name)}")
        names += _meant(mech, name, moving)
    names = list(dict.fromkeys(names))
    find(mech, names)  # refuses what there is not
    if not names:
        raise InvalidValue("parameters: there are none to identify")
    return names


def _linear(mech: Mechanism, parameters: Any) -> list[str]:
    """Return names of parameters in which the inverse dynamics is linear."""
    names = parameter_list(mech, parameters)
    for name in names:
        _refuse_other(mech, name, names)
    return names


def _meant(mech: Mechanism, name: str, moving: Sequence[str]) -> list[str]:
    links = [link.name for link in mech.links]
    if name in links:
        return [f"{name}.{field}" for field in _OF_LINK]
    owner, _, field = name.rpartition(".")
    if owner == "*":
        if field in _OF_LINK:
            return [f"{link}.{field}" for link in moving]
        if field in _OF_JOINT:
            joints = [link.joint_name for link in mech.links if link.joint.dof]
            return [f"{joint}.{field}" for joint in joints if f"{joint}.{field}" in components(mech)]
        raise unknown_name("parameters", name, [f"*.{known}" for known in (*_OF_LINK, *_OF_JOINT)])
    if name not in components(mech) and "." not in name and name != "gravity":
        raise unknown_name("parameter or link", name, [*links, *components(mech)])
    return [name]


def _refuse_other(mech: Mechanism, name: str, names: Sequence[str]) -> None:
    """Refuse a parameter in which the inverse dynamics is not linear."""
    field = name.rpartition(".")[2].partition("[")[0]  # the name of a link may have a bracket too
    link = name.rpartition(f".{field}")[0]
    if any(isinstance(part, Term) and part.field not in _OF_JOINT for part in components(mech)[name]) or not all(
        isinstance(part, (Inertia, Term)) for part in components(mech)[name]
    ):
        raise InvalidValue(
            f"parameter {name!r}: the torques are not linear in it; identify finds mass, com and inertia of links, and "
            f"{', '.join(_OF_JOINT)} of joints, and with form='output' any number"
        )
    if field == "com" and (name.endswith("]") or not _whole(link) <= set(names)):
        raise InvalidValue(f"parameter {name!r}: is found together with mass and inertia; name the link, {link!r}")


def _moves(mech: Mechanism, link: int) -> bool:
    """Tell whether any joint moves a link."""
    while link >= 0:
        if mech.links[link].joint.dof:
            return True
        link = int(mech.parents[link])
    return False


def _value(mech: Mechanism, part: Component) -> float:
    """Return what a number is in a mechanism."""
    if isinstance(part, Term):
        return float(getattr(mech.freedoms[part.coordinate], part.field))
    assert isinstance(part, Inertia)
    link = mech.links[part.link]
    if part.name == f"{link.name}.mass":
        return link.mass
    return float(link.inertia[np.triu_indices(3)] @ part.weights[4:])
