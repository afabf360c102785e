"""The numbers of a mechanism by readable names, as "forearm.mass" and "elbow.damping"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidType, unknown_name
from cstormpy.linkage.joints import Joint
from cstormpy.linkage.links import Link

__all__ = ["LINK_PARAMETERS", "changed_links", "joint_parameters", "joint_parts", "parameter_names"]

LINK_PARAMETERS = ("mass", "com", "inertia", "pose")
"""The parameters of a link beside those of its joint."""


def joint_parameters(joint: Joint) -> tuple[str, ...]:
    """Return the names of a joint's parameters: all its fields but the name and the joints that it is made of.

    >>> from cstormpy.mechanism import Fixed
    >>> joint_parameters(Fixed())
    ()
    """
    return tuple(field for field in joint._fields if field not in ("name", "joints"))


def parameter_names(links: Sequence[Link]) -> list[str]:
    """Return the names of all parameters of the links and their joints, and "gravity"."""
    of_links = [f"{link.name}.{field}" for link in links for field in LINK_PARAMETERS]
    of_joints = [f"{link.joint_name}.{field}" for link in links for field in joint_parameters(link.joint)]
    of_parts = [
        f"{name}.{field}" for name, (_, _, part) in joint_parts(links).items() for field in joint_parameters(part)
    ]
    return [*of_links, *of_joints, *of_parts, "gravity"]


def joint_parts(links: Sequence[Link]) -> dict[str, tuple[int, int, Joint]]:
    """Return link, place and joint of each joint that a composite one is made of, by the name of its coordinate."""
    return {
        label: (i, k, part)
        for i, link in enumerate(links)
        if link.joint.parts
        for k, (label, part) in enumerate(zip(link.joint.labels(link.joint_name), link.joint.parts, strict=True))
    }


def changed_links(
    links: Sequence[Link], values: Mapping[str, Any], link_index: Mapping[str, int], joint_links: Mapping[str, int]
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
    """
    link_changes: dict[int, dict[str, Any]] = {}
    joint_changes: dict[int, dict[str, Any]] = {}
    parts = joint_parts(links)
    part_changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names, got a {type(name).__name__}")
        owner, _, field = name.rpartition(".")
        if field in LINK_PARAMETERS and owner in link_index:
            link_changes.setdefault(link_index[owner], {})[field] = value
        elif owner in joint_links and field in joint_parameters(links[joint_links[owner]].joint):
            joint_changes.setdefault(joint_links[owner], {})[field] = value
        elif owner in parts and field in joint_parameters(parts[owner][2]):
            part_changes.setdefault(owner, {})[field] = value
        else:
            raise unknown_name("parameter", name, parameter_names(links))
    for owner, changes in part_changes.items():
        i, k, part = parts[owner]
        joints = joint_changes.setdefault(i, {"joints": list(links[i].joint.parts)})["joints"]
        joints[k] = part.replace(**changes, name=owner).replace(name=part.name)
    changed = list(links)
    for position, changes in joint_changes.items():
        changed[position] = links[position].replace(joint=_changed_joint(links[position], changes))
    for position, changes in link_changes.items():
        changed[position] = changed[position].replace(**changes)
    return tuple(changed)


def _changed_joint(link: Link, changes: Mapping[str, Any]) -> Joint:
    # An unnamed joint is called by its link's name, so that a message about a bad value names it; then it is unnamed.
    return link.joint.replace(**changes, name=link.joint_name).replace(name=link.joint.name)
