"""The numbers of a mechanism by readable names, as "forearm.mass" and "elbow.damping"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidType, UnknownName, shown, unknown_name
from cstormpy.linkage.constraints import Constraint, Coupling
from cstormpy.linkage.joints import Joint
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop

LINK_PARAMETERS = ("mass", "com", "inertia", "pose")
"""The parameters of a link beside those of its joint."""

LOOP_PARAMETERS = ("pose_a", "pose_b")
"""The parameters of a loop."""

COUPLING_PARAMETERS = ("ratio", "offset")
"""The parameters of a coupling."""

GEOMETRY = ("pose", "axis", "axes", "point", "pitch", *LOOP_PARAMETERS, *COUPLING_PARAMETERS)
"""The parameters on which it depends which postures close the loops."""


#: A moment of inertia as it is written elsewhere, "hull.inertia[0, 0]", "hull.inertia[xx]" or "hull.Ixx".
#: Numbers are places in brackets alone: the first axis of "hull.I11" is 1 in books.
_MOMENT = re.compile(r"(.+)\.i(?:nertia)?(?:\W*|_)([xyz]|(?<=\[)[012])\W*([xyz]|(?<=\W)[012])\W*", re.IGNORECASE)


def unknown_parameter(name: Any, known: Iterable[str]) -> UnknownName:
    """Return the error for a name that no number of a mechanism has.

    >>> str(unknown_parameter("hull.inertia[1, 0]", ["hull.mass", "hull.inertia"]))
    "parameter 'hull.inertia[1, 0]' does not exist; did you mean 'hull.inertia.xy'?"
    """
    known = list(known)
    moment = _MOMENT.fullmatch(name) if isinstance(name, str) else None
    if moment and f"{moment[1]}.inertia" in known:
        pair = "".join(sorted("xyz"[int(axis)] if axis.isdigit() else axis.lower() for axis in moment.groups()[1:]))
        return UnknownName(f"parameter {name!r} does not exist; did you mean '{moment[1]}.inertia.{pair}'?")
    return unknown_name("parameter", name, known)


def joint_parameters(joint: Joint) -> tuple[str, ...]:
    """Return the names of a joint's parameters: all its fields but the name and the joints that it is made of.

    >>> from cstormpy.mechanism import Fixed
    >>> joint_parameters(Fixed())
    ()
    """
    return tuple(field for field in joint._fields if field not in ("name", "joints"))


def loop_parameters(loop: Loop | Constraint) -> tuple[str, ...]:
    """Return the names of the parameters of a loop or coupling; a user's own constraint has none."""
    return LOOP_PARAMETERS if isinstance(loop, Loop) else COUPLING_PARAMETERS if isinstance(loop, Coupling) else ()


def parameter_names(links: Sequence[Link], loops: Sequence[Loop | Constraint] = ()) -> list[str]:
    """Return the names of all parameters of the links, their joints and loops, and "gravity"."""
    of_links = [f"{link.name}.{field}" for link in links for field in LINK_PARAMETERS]
    of_joints = [f"{link.joint_name}.{field}" for link in links for field in joint_parameters(link.joint)]
    of_parts = [
        f"{name}.{field}" for name, (_, _, part) in joint_parts(links).items() for field in joint_parameters(part)
    ]
    of_loops = [f"{loop.name}.{field}" for loop in loops for field in loop_parameters(loop)]
    return [*of_links, *of_joints, *of_parts, *of_loops, "gravity"]


def joint_parts(links: Sequence[Link]) -> dict[str, tuple[int, int, Joint]]:
    """Return link, place and joint of each joint that a composite one is made of, by the name of its coordinate."""
    return {
        label: (i, k, part)
        for i, link in enumerate(links)
        if link.joint.parts
        for k, (label, part) in enumerate(zip(link.joint.labels(link.joint_name), link.joint.parts, strict=True))
    }


def changed_loops(
    loops: Sequence[Loop | Constraint], values: Mapping[str, Any]
) -> tuple[tuple[Loop | Constraint, ...], dict[str, Any]]:
    """Return the loops with the named parameters of theirs replaced and validated, and the values that are no such."""
    known = {loop.name: loop_parameters(loop) for loop in loops}
    own: dict[str, dict[str, Any]] = {name: {} for name in known}
    rest = {}
    for name, value in values.items():
        owner, _, field = name.rpartition(".") if isinstance(name, str) else ("", "", "")
        if field in known.get(owner, ()):
            own[owner][field] = value
        else:
            rest[name] = value
    return tuple(loop.replace(**own[loop.name]) if own[loop.name] else loop for loop in loops), rest


def changed_links(
    links: Sequence[Link],
    values: Mapping[str, Any],
    link_index: Mapping[str, int],
    joint_links: Mapping[str, int],
    loops: Sequence[Loop | Constraint] = (),
) -> tuple[Link, ...]:
    """Return the links with the named parameters replaced and validated.

    Parameters
    ----------
    links : sequence of Link
        All links of a mechanism.
    values : mapping
        New values by the names that `parameter_names` lists, without "gravity".
    link_index, joint_links : mapping
        Position in `links` of each link's name, and of the link that each joint moves.
    loops : sequence of Loop
        Whose parameters are offered too where a name is unknown.
    """
    link_changes: dict[int, dict[str, Any]] = {}
    joint_changes: dict[int, dict[str, Any]] = {}
    parts = joint_parts(links)
    part_changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names, got {shown(name)}")
        owner, _, field = name.rpartition(".")
        if field in LINK_PARAMETERS and owner in link_index:
            link_changes.setdefault(link_index[owner], {})[field] = value
        elif owner in joint_links and field in joint_parameters(links[joint_links[owner]].joint):
            joint_changes.setdefault(joint_links[owner], {})[field] = value
        elif owner in parts and field in joint_parameters(parts[owner][2]):
            part_changes.setdefault(owner, {})[field] = value
        else:
            raise unknown_parameter(name, parameter_names(links, loops))
    for owner, changes in part_changes.items():
        i, k, part = parts[owner]
        joints = joint_changes.setdefault(i, {"joints": list(links[i].joint.parts)})["joints"]
        joints[k] = part.replace(**changes, name=owner).replace(name=part.name)
    changed = list(links)
    for position, changes in joint_changes.items():
        # an unnamed joint has its link's name for once, so that a message about a bad value names it
        link, joint = links[position], links[position].joint
        changed[position] = link.replace(joint=joint.replace(**changes, name=link.joint_name).replace(name=joint.name))
    for position, changes in link_changes.items():
        changed[position] = changed[position].replace(**changes)
    return tuple(changed)
