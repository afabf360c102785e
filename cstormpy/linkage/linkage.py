"""A mechanism as data: links and joints that form a tree, and which of the joints are driven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.joints import Joint, OneDofJoint
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop, check_loops
from cstormpy.linkage.topology import check_links, index_names, parent_indices, select_names
from cstormpy.values import Value, frozen

M = TypeVar("M", bound="Linkage")

#: What is kept of a mechanism that does not depend on its drive.
_OF_GEOMETRY = ("like", "independent rows")

_DOWN = "a vector in the base frame, as (0, -9.81, 0)"


class Linkage(Value):
    """Links and joints that form a tree, the loops that close it, gravity and drive: immutable, validated when made.

    All that a mechanism consists of, from which dynamics, sensitivities and drawings are computed. Users have a
    `cstormpy.Mechanism`, which adds the methods that compute; its docstring tells of arguments and attributes.
    """

    _fields = ("links", "gravity", "actuated", "active", "loops")
    #: Whether its numbers are symbols, see `mechanism.symbolic`.
    symbolic: ClassVar[bool] = False
    links: tuple[Link, ...]
    loops: tuple[Loop | Constraint, ...]
    gravity: Array
    n: int
    names: tuple[str, ...]
    freedoms: tuple[OneDofJoint, ...]
    ball_starts: tuple[int, ...]
    actuated: tuple[str, ...]
    active: tuple[str, ...]
    passive: tuple[str, ...]
    actuated_mask: NDArray[np.bool_]
    active_mask: NDArray[np.bool_]
    parents: NDArray[np.int64]
    joint_links: NDArray[np.int64]
    _link_index: Mapping[str, int]
    _link_of_joint: Mapping[str, int]
    _joint_index: Mapping[str, int]  # position in q of each coordinate's name
    _ranges: tuple[slice, ...]  # coordinates of the joint of each link
    memo: dict[Any, Any]

    def __init__(
        self,
        links: Iterable[Link],
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        actuated: Iterable[str] | None = None,
        active: Iterable[str] = (),
        loops: Iterable[Loop | Constraint] = (),
    ) -> None:
        links = check_links(links)
        link_index = index_names("link", (link.name for link in links))
        loops = check_loops(loops, links, link_index)
        link_of_joint = index_names("joint", (link.joint_name for link in links))
        freedoms = [link.joint.freedoms for link in links]
        moved = [i for i, own in enumerate(freedoms) for _ in own]
        labels = [link.joint.labels(link.joint_name) for link in links]
        names = tuple(label for each in labels for label in each)
        starts = [0, *accumulate(map(len, freedoms))]
        if any(len(own) > 1 for own in freedoms):  # names of coordinates beside those of joints
            index_names("joint", (*names, *(link.joint_name for link in links if not link.joint.dof)))
        self._set(
            links=links,
            loops=loops,
            gravity=checks.array(gravity, (3,), "gravity", _DOWN),
            n=len(moved),
            names=names,
            freedoms=tuple(freedom for own in freedoms for freedom in own),
            ball_starts=tuple(np.flatnonzero([place == 1 for link in links for place in link.joint.balls]).tolist()),
            parents=frozen(np.array(parent_indices(links, link_index), dtype=np.int64)),
            joint_links=frozen(np.array(moved, dtype=np.int64)),
            _link_index=MappingProxyType(link_index),
            _link_of_joint=MappingProxyType(link_of_joint),
            _joint_index=MappingProxyType({name: k for k, name in enumerate(names)}),
            _ranges=tuple(slice(first, last) for first, last in pairwise(starts)),
            memo={},
        )
        for loop in self.loops:
            if isinstance(loop, Constraint):
                loop.on(names, [names[first + k] for first in self.ball_starts for k in range(3)])  # refuses other ones
        self._drive(names if actuated is None else actuated, active)

    def _drive(self, actuated: Iterable[str], active: Iterable[str]) -> None:
        joints = {name: self.names[self._ranges[i]] for name, i in self._link_of_joint.items()}
        motors = select_names("actuated", actuated, self.names, joints)
        driven = select_names("active", active, self.names, joints)
        motor_set, driven_set = set(motors), set(driven)
        for name in driven:
            if name not in motor_set:
                raise InvalidValue(f"joint {name!r}: is active but not actuated; add it to actuated")
        self._set(
            actuated=motors,
            active=driven,
            passive=tuple(name for name in self.names if name not in driven_set),
            actuated_mask=frozen(np.array([name in motor_set for name in self.names], dtype=bool)),
            active_mask=frozen(np.array([name in driven_set for name in self.names], dtype=bool)),
        )

    def _derive(self: M, **attributes: Any) -> M:
        """Return a copy of the same topology with some attributes changed, validated by the caller."""
        return super()._derive(**attributes, memo={})

    def link_index(self, name: str) -> int:
        """Return the position of a link in `links`."""
        return _look_up("link", name, self._link_index)

    def joint_index(self, name: str) -> int:
        """Return the position in q of a coordinate: of a joint that has one, or as "wrist[0]" of one of several."""
        if isinstance(name, str) and name in self._link_of_joint and name not in self._joint_index:
            coordinates = self.names[self.coordinates(name)]
            if not coordinates:
                raise InvalidValue(f"joint {name!r}: is fixed and has no coordinate")
            raise InvalidValue(
                f"joint {name!r}: has {len(coordinates)} coordinates, {', '.join(coordinates)}; name one"
            )
        return _look_up("joint", name, self._joint_index)

    def joint_indices(self, name: str) -> list[int]:
        """Return the positions in q of a joint's coordinates, or of one of them; a weld is refused.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> library.acrobot().joint_indices("elbow")
        [1]
        """
        at = self.coordinates(name)
        return list(range(at.start, at.stop)) or [self.joint_index(name)]  # which says that it is fixed

    def coordinates(self, name: str) -> slice:
        """Return the range of q that belongs to a joint, or to one of its coordinates.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> library.acrobot().coordinates("elbow")
        slice(1, 2, None)
        """
        if isinstance(name, str) and name in self._joint_index:
            k = self._joint_index[name]
            return slice(k, k + 1)
        return self._ranges[_look_up("joint", name, self._link_of_joint)]

    def link(self, name: str) -> Link:
        """Return the link of this name."""
        return self.links[self.link_index(name)]

    def joint(self, name: str) -> Joint:
        """Return the joint of this name, fixed ones included, or the one that a coordinate belongs to."""
        if isinstance(name, str) and name in self._joint_index:
            return self.links[self.joint_links[self._joint_index[name]]].joint
        return self.links[_look_up("joint", name, self._link_of_joint)].joint

    @property
    def largest_angles(self) -> tuple[tuple[int, float], ...]:
        """The first coordinate of each rotation vector whose angle is limited, and its largest angle [rad]."""
        joints = (self.links[self.joint_links[first]].joint for first in self.ball_starts)
        pairs = zip(self.ball_starts, (joint.max_angle for joint in joints), strict=True)
        return tuple((first, angle) for first, angle in pairs if angle is not None)

    def with_drive(self: M, *, active: Iterable[str] | None = None, actuated: Iterable[str] | None = None) -> M:
        """Return the mechanism with other joints active or actuated; what is not given stays.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> library.acrobot().with_drive(active=["elbow"]).passive
        ('shoulder',)
        """
        derived = self._derive()
        derived.memo.update({key: self.memo[key] for key in _OF_GEOMETRY if key in self.memo})
        derived._drive(self.actuated if actuated is None else actuated, self.active if active is None else active)
        return derived

    def without_loops(self: M) -> M:
        """Return the mechanism with all loops open: the tree alone."""
        return self.tree

    @property
    def tree(self: M) -> M:
        """The mechanism with all loops open, kept; itself where there is none."""
        if not self.loops:
            return self
        if "tree" not in self.memo:
            self.memo["tree"] = self._derive(loops=())
            if "like" in self.memo:
                self.memo["tree"].memo["like"] = self.memo["like"]
        return cast("M", self.memo["tree"])

    @property
    def numeric(self) -> Linkage:
        """The mechanism whose numbers are known: itself, unless they are symbols."""
        return self

    def of_symbols(self, number: Callable[[str, int], Any], links: Callable[[], tuple[Link, ...]]) -> Linkage:
        """Return it with symbols for its ordinary numbers, as `mechanism.symbolic.SymbolicMechanism` says."""
        raise NotImplementedError

    def with_gravity(self: M, gravity: ArrayLike) -> M:
        """Return the mechanism under another gravity, (3,) in the base frame [m/s^2]."""
        return self._derive(gravity=checks.array(gravity, (3,), "gravity", _DOWN))

    def with_parameters(self: M, values: Mapping[str, Any]) -> M:
        """Return the mechanism with some whole parameters changed; `Mechanism.with_parameters` tells of it."""
        from cstormpy.linkage.parameters import GEOMETRY, changed_links, changed_loops

        if not isinstance(values, Mapping):
            raise InvalidType(f"parameters: expected a mapping from names to values, got {shown(values)}")
        loops, rest = changed_loops(self.loops, values)
        gravity = checks.array(rest.pop("gravity", self.gravity), (3,), "gravity", _DOWN)
        links = changed_links(self.links, rest, self._link_index, self._link_of_joint, self.loops)
        made = self._derive(links=links, freedoms=_freedoms(links), gravity=gravity, loops=loops)
        if "independent rows" in self.memo and not any(name.rpartition(".")[2] in GEOMETRY for name in values):
            made.memo["independent rows"] = self.memo["independent rows"]
        return made

    def with_links(self: M, links: Iterable[Link]) -> M:
        """Return the mechanism with other links, of the same names, parents and joints but for their numbers.

        Raises
        ------
        InvalidType, InvalidValue
            With the link that is none, or that stands at another place or on another joint.
        """
        made = tuple(entries(links, "links", "Link"))
        for k, link in enumerate(made):
            if not isinstance(link, Link):
                raise InvalidType(f"links[{k}]: expected a Link, got {shown(link)}")
        if len(made) != len(self.links):
            raise InvalidValue(f"links: expected {len(self.links)}, as there are, got {len(made)}")
        for old, new in zip(self.links, made, strict=True):
            if (old.name, old.parent, old.joint_name) != (new.name, new.parent, new.joint_name):
                raise InvalidValue(
                    f"link {old.name!r}: expected the same name, parent and joint, got link {new.name!r} on "
                    f"{new.parent!r} by joint {new.joint_name!r}"
                )
            if old.joint.kind != new.joint.kind or len(old.joint.freedoms) != len(new.joint.freedoms):
                raise InvalidValue(f"link {old.name!r}: expected a joint like the one it has, got {new.joint!r}")
        return self._derive(links=made, freedoms=_freedoms(made))

    def without_fixed(self: M) -> M:
        """Return the mechanism with one link for all that is welded together, which moves in the same way.

        The link that moves on a joint keeps its name and takes the masses of those welded to it; what is welded to the
        base is left out.

        Examples
        --------
        >>> from cstormpy.mechanism import Fixed, Link, Mechanism, Revolute
        >>> arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0))
        >>> tip = Link("tip", "arm", Fixed(), [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], mass=1.0)
        >>> Mechanism([arm, tip]).without_fixed().links
        (Link('arm', joint=Revolute((0, 0, 1)), mass=2, com=(0.75, 0, 0)),)
        """
        from cstormpy.linkage.bodies import without_fixed

        return without_fixed(self)

    def __repr__(self) -> str:
        count = f"{len(self.links)} link{'s' if len(self.links) > 1 else ''}"
        shown = ", ".join(self.names[:6]) + (", …" if self.n > 6 else "")
        closed = f", {len(self.loops)} loop{'s' if len(self.loops) > 1 else ''}" if self.loops else ""
        return f"<Mechanism of {count}{closed}, n = {self.n}{': ' if shown else ''}{shown}>"

    def __str__(self) -> str:
        from cstormpy.linkage.printing import table

        return table(self)


def _freedoms(links: Iterable[Link]) -> tuple[OneDofJoint, ...]:
    return tuple(freedom for link in links for freedom in link.joint.freedoms)


def _look_up(kind: str, name: object, index: Mapping[str, int]) -> int:
    if not isinstance(name, str):
        raise InvalidType(f"{kind}: expected a name, got {shown(name)}")
    if name not in index:
        raise unknown_name(kind, name, index)
    return index[name]
