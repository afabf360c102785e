"""Names and connections of the links of a mechanism, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidType, InvalidValue, UnknownName, shown, unknown_name
from cstormpy.linkage.links import Link


def check_links(links: Iterable[Link]) -> tuple[Link, ...]:
    """Return the links as a tuple, refusing what is not a link and an empty list."""
    checked = _entries(links, "links: expected a list of links")
    for position, link in enumerate(checked):
        if not isinstance(link, Link):
            raise InvalidType(f"links[{position}]: expected a Link, got {shown(link)}")
    if not checked:
        raise InvalidValue("links: there are none; a mechanism has at least one link")
    return checked


def index_names(kind: str, names: Iterable[str]) -> dict[str, int]:
    """Return the position of each name, refusing a name that occurs twice."""
    index: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in index:
            raise InvalidValue(f"{kind} {name!r}: the name occurs twice (entries {index[name]} and {position})")
        index[name] = position
    return index


_BASES = ("base", "ground", "world")
"""What other programs call the base."""


def parent_indices(links: Sequence[Link], index: Mapping[str, int]) -> list[int]:
    """Return the position of each link's parent, -1 for the base, refusing unknown parents and cycles."""
    parents = []
    for link in links:
        if link.parent is None:
            parents.append(-1)
        elif link.parent in index:
            parents.append(index[link.parent])
        else:
            unknown = unknown_name("parent", link.parent, [name for name in index if name != link.name])
            hint = " (None is the base)" if link.parent.lower() in _BASES else ""
            raise UnknownName(f"link {link.name!r}: {unknown}{hint}")
    _refuse_cycle(links, parents)
    return parents


def _refuse_cycle(links: Sequence[Link], parents: Sequence[int]) -> None:
    rooted = [False] * len(links)  # known to lead to the base
    for start in range(len(links)):
        path: list[int] = []
        on_path: set[int] = set()
        i = start
        while i >= 0 and not rooted[i]:
            if i in on_path:
                cycle = path[path.index(i) :]
                names = [links[k].name for k in cycle[:8]] + (["…"] if len(cycle) > 8 else []) + [links[i].name]
                raise InvalidValue(f"links form a cycle, each the child of the next: {' -> '.join(names)}")
            path.append(i)
            on_path.add(i)
            i = parents[i]
        for k in path:
            rooted[k] = True


def select_names(
    option: str, names: object, known: Sequence[str], joints: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the chosen coordinates in the order of q, refusing unknown, fixed and repeated joints, and parts of one.

    Parameters
    ----------
    option : str
        What the names are for.
    names : iterable of str
        Names of joints, or of all coordinates of a joint.
    known : sequence of str
        Names of the coordinates.
    joints : mapping
        The coordinates of each joint.

    >>> select_names("active", ["elbow"], ("shoulder", "elbow"), {"shoulder": ("shoulder",), "elbow": ("elbow",)})
    ('elbow',)
    """
    if isinstance(names, (str, bytes)):
        raise InvalidType(f"{option}: expected a list of joint names, got a text; write [{names!r:.60}]")
    chosen: set[str] = set()
    coordinates = set(known)
    for name in _entries(names, f"{option}: expected a list of joint names"):
        if not isinstance(name, str):
            raise InvalidType(f"{option}: expected joint names, got {shown(name)}")
        if name not in coordinates and not joints.get(name, (name,)):
            raise InvalidValue(f"{option}: joint {name!r} is fixed and cannot be driven")
        if name not in coordinates and name not in joints:
            raise UnknownName(f"{option}: {unknown_name('joint', name, joints)}")
        meant = (name,) if name in coordinates else joints[name]
        if not chosen.isdisjoint(meant):
            raise InvalidValue(f"{option}: joint {name!r} occurs twice")
        chosen.update(meant)
    for name, meant in joints.items():
        if not chosen.isdisjoint(meant) and not chosen.issuperset(meant):
            raise InvalidValue(
                f"{option}: joint {name!r} is driven as a whole; give its name, or all of {', '.join(meant)}"
            )
    return tuple(name for name in known if name in chosen)


def _entries(things: object, expected: str) -> tuple[Any, ...]:
    if not isinstance(things, (str, bytes, Mapping)):
        try:
            return tuple(things)  # type: ignore[arg-type]
        except TypeError:  # no iterable, or one that says so only when iterated: an array without dimensions
            pass
    raise InvalidType(f"{expected}, got {shown(things)}")
