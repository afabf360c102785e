"""Values of the components of a mechanism's parameters: read and set one by one, as "forearm.com[0]"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array, real_number
from cstormpy.errors import InvalidValue
from cstormpy.lie.exponential import exp_se3
from cstormpy.linkage.components import PAIRS, TWIST, components
from cstormpy.linkage.joints import Joint
from cstormpy.linkage.parameters import LINK_PARAMETERS, LOOP_PARAMETERS, joint_parts

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

#: How the names of parameters end that are poses, whose components are those of a twist.
_POSES = (".pose", *(f".{field}" for field in LOOP_PARAMETERS))
#: How the names of those end that are made unit vectors, row by row.
_DIRECTIONS = (".axis", ".axes")
_INDEX = re.compile(r"\[([\d,]+)\]$")


def component_value(mech: Mechanism, name: str) -> float:
    """Return the value of one component.

    That of a pose is 0: components of a pose are a twist by which the frame moves in its own axes.

    >>> from cstormpy.mechanism import library
    >>> mech = library.acrobot()
    >>> component_value(mech, "forearm.mass") == mech.link("forearm").mass, component_value(mech, "gravity[1]")
    (True, -9.81)
    """
    parameter, index = _split(mech, name)
    value = _value(mech, parameter)
    return 0.0 if parameter.endswith(_POSES) else float(value[index])


def is_twist(mech: Mechanism, name: str) -> bool:
    """Tell whether a component is by how much a pose is moved, which begins at 0 of any.

    >>> from cstormpy.mechanism import library
    >>> [is_twist(library.acrobot(), name) for name in ("forearm.pose.x", "forearm.mass")]
    [True, False]
    """
    return _split(mech, name)[0].endswith(_POSES)


def with_components(mech: Mechanism, values: Mapping[str, float], *, allow_impossible: bool = False) -> Mechanism:
    """Return the mechanism with some components changed, and the others as they are.

    Its joints keep the axes beside their own that `linkage.tables` has chosen, so that its tables follow the
    components smoothly.

    Parameters
    ----------
    mech : Mechanism
    values : mapping
        New values by the names of components; of a pose how far it is moved.
    allow_impossible : bool
        Whether a link may get an inertia that no body has.

    >>> from cstormpy.mechanism import library
    >>> moved = with_components(library.acrobot(), {"forearm.com[1]": 0.1, "forearm.pose.x": 0.2})
    >>> moved.link("forearm").com.tolist(), float(moved.link("forearm").pose[0, 3])
    ([1.0, 0.1, 0.0], 1.2)
    """
    changes, twists = _arrays(mech, values)
    changes |= {name: _value(mech, name) @ exp_se3(twist) for name, twist in twists.items()}
    start = mech
    if allow_impossible:
        touched = {name.rpartition(".")[0] for name in changes if name.endswith(".inertia")}
        links = (link.replace(allow_impossible=True) if link.name in touched else link for link in mech.links)
        start = mech.with_links(links) if touched else mech
    made = start.with_parameters({name: array if array.ndim else float(array) for name, array in changes.items()})
    made.memo["like"] = mech.memo.get("like", mech)
    return made


def is_entry(name: Any) -> bool:
    """Tell whether a name may be that of one number of an array, as "forearm.com[0]", or of an inertia or a pose.

    >>> [is_entry(name) for name in ("forearm.com[0]", "forearm.inertia.xx", "forearm.com")]
    [True, True, False]
    """
    return isinstance(name, str) and (name.endswith("]") or name.rpartition(".")[2] in (*PAIRS, *TWIST))


def whole_values(mech: Mechanism, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of whole parameters from some of single numbers of them; other names stay as they are."""
    known = components(mech)
    entries = {
        name: value for name, value in values.items() if is_entry(name) and name in known and _split(mech, name)[1]
    }
    whole = {name: value for name, value in values.items() if name not in entries}
    for name, value in entries.items():
        parameter = _split(mech, name)[0]
        if parameter.endswith(_POSES):
            raise InvalidValue(
                f"parameter {name!r}: is by how much the frame is moved, which derivatives are to; give {parameter!r}"
            )
        if parameter in values:
            raise InvalidValue(f"parameter {name!r}: is given twice, as {parameter!r} is given too")
        entries[name] = real_number(value, f"parameter {name!r}")
    return whole | _arrays(mech, entries)[0]


def direction_lengths(mech: Mechanism, values: Mapping[str, float]) -> dict[str, float]:
    """Return the length of the direction that each component of one stands in, as it is set, before it is normalised.

    Beside these values a mechanism changes by so much less than beside the unit vector that it keeps.

    >>> from cstormpy.mechanism import library
    >>> direction_lengths(library.acrobot(), {"elbow.axis[0]": 0.75, "forearm.mass": 2.0})
    {'elbow.axis[0]': 1.25}
    """
    changes, _ = _arrays(mech, values)
    found = {}
    for name in values:
        parameter, index = _split(mech, name)
        if parameter.endswith(_DIRECTIONS):
            found[name] = float(np.linalg.norm(changes[parameter][index[:-1]]))
    return found


def _arrays(mech: Mechanism, values: Mapping[str, float]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the arrays that components change, with their new values, and the twists by which poses move."""
    changes: dict[str, Array] = {}
    twists: dict[str, Array] = {}
    for name, value in values.items():
        parameter, index = _split(mech, name)
        if parameter.endswith(_POSES):
            twists.setdefault(parameter, np.zeros(6))[index] = value
            continue
        array = changes.setdefault(parameter, np.array(_value(mech, parameter), dtype=float))
        array[index] = value
        if parameter.endswith(".inertia"):
            array[index[::-1]] = value
    return changes, twists


def _split(mech: Mechanism, name: str) -> tuple[str, tuple[Any, ...]]:
    """Return the parameter that a component belongs to, and where it stands there."""
    owner, _, field = name.rpartition(".")
    if field in PAIRS and owner.endswith(".inertia"):
        i, j = np.triu_indices(3)
        at = PAIRS.index(field)
        return owner, (int(i[at]), int(j[at]))
    if field in TWIST and owner.endswith(_POSES):
        return owner, (TWIST.index(field),)
    found = _INDEX.search(name)
    if found and name[: found.start()] in components(mech):
        return name[: found.start()], tuple(int(k) for k in found[1].split(","))
    return name, ()


def _value(mech: Mechanism, parameter: str) -> Array:
    """Return what a parameter is in a mechanism."""
    owner, _, field = parameter.rpartition(".")
    if parameter == "gravity":
        return mech.gravity
    if field == "wrench":
        raise InvalidValue(
            f"parameter {parameter!r}: is no number of the mechanism; it comes through a port for wrenches"
        )
    if field in LOOP_PARAMETERS:
        return np.asarray(next(getattr(loop, field) for loop in mech.loops if loop.name == owner), dtype=float)
    if field in LINK_PARAMETERS:
        return np.asarray(getattr(mech.link(owner), field), dtype=float)
    parts = joint_parts(mech.links)  # of a single part the label is the name of the whole joint
    joint: Joint = parts[owner][2] if owner in parts else mech.joint(owner)
    return np.asarray(getattr(joint, field), dtype=float)
