"""Closed loops: frames on two links of a tree that stay together in chosen directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import entries, option, six_flags
from cstormpy.arrays import Array, describe
from cstormpy.errors import InvalidType, InvalidValue, UnknownName, shown, unknown_name
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.links import Link
from cstormpy.values import Value, numbers_text

DIRECTIONS = {
    "pose": (True, True, True, True, True, True),
    "position": (False, False, False, True, True, True),
    "orientation": (True, True, True, False, False, False),
    "planar": (False, False, True, True, True, False),
    "pin": (False, False, False, True, True, False),
    "hinge": (True, True, False, True, True, True),
    "slide": (True, True, True, False, True, True),
}
"""The directions that are closed, of rotation about and translation along x, y, z of frame A, by names."""

_AXES = ("rotation x", "rotation y", "rotation z", "x", "y", "z")


class Loop(Value):
    """A connection that closes a loop: frame A on one link and frame B on another stay together.

    Parameters
    ----------
    link_a, link_b : str or None
        Names of the links that carry the frames; None is the base.
    pose_a, pose_b : array_like, (4, 4) or (3,)
        Pose of frame A in the frame of link_a, and of B in that of link_b; a point is that of a frame with the link's
        axes. The identity unless said.
    directions : {"pose", "position", "orientation", "hinge", "slide", "planar", "pin"} or six bool or 0 and 1
        Which rotations about and translations along x, y, z of the axes of frame A are closed: all six ("pose", a
        weld), the point alone ("position", a ball joint), the rotations alone ("orientation"), all but rotation about z
        ("hinge"), all but translation along x ("slide"); of mechanisms that move in the plane of x and y, rotation and
        translation ("planar"), or translation alone ("pin"). Of rotations one alone can be closed only where the links
        cannot rotate otherwise.
    name : str, optional
        "<link_a> - <link_b>" unless given.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType, UnknownName
        Naming the loop: no direction, a link that is closed to itself, a pose that is not a rigid transform.

    Examples
    --------
    >>> Loop("coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0), "position")
    Loop('coupler', 'rocker', pose_a=(0.5, 0, 0), pose_b=(0.4, 0, 0), directions='position')
    """

    _fields = ("link_a", "link_b", "pose_a", "pose_b", "directions", "name")
    link_a: str | None
    link_b: str | None
    pose_a: Array
    pose_b: Array
    directions: tuple[bool, ...]
    name: str

    def __init__(
        self,
        link_a: str | None,
        link_b: str | None,
        pose_a: ArrayLike | None = None,
        pose_b: ArrayLike | None = None,
        directions: str | Iterable[bool] = "pose",
        name: str | None = None,
    ) -> None:
        ends = [
            None if link is None else checks.name(link, f"loop: {what}")
            for link, what in ((link_a, "link_a"), (link_b, "link_b"))
        ]
        if name is None:
            named = " - ".join("base" if end is None else end for end in ends)
        else:
            named = checks.name(name, "loop name")
        where = f"loop {named!r}"
        if ends[0] == ends[1]:
            raise InvalidValue(f"{where}: both ends are on the same link; a loop is between two")
        self._set(
            link_a=ends[0],
            link_b=ends[1],
            pose_a=checks.frame_pose(pose_a, f"{where}: pose_a"),
            pose_b=checks.frame_pose(pose_b, f"{where}: pose_b"),
            directions=_directions(directions, f"{where}: directions"),
            name=named,
        )

    @property
    def count(self) -> int:
        """Number of directions that are closed."""
        return sum(self.directions)

    @property
    def labels(self) -> tuple[str, ...]:
        """The closed directions, as "rotation z" and "x", in axes of frame A."""
        return tuple(axis for axis, closed in zip(_AXES, self.directions, strict=True) if closed)

    @property
    def kind(self) -> str | None:
        """The name of its directions, None if they have none."""
        return next((name for name, mask in DIRECTIONS.items() if mask == self.directions), None)

    def with_poses(self, pose_a: Any, pose_b: Any) -> Loop:
        """Return the loop with frames elsewhere, of numbers that are known to be poses, or of symbols."""
        return self._derive(pose_a=pose_a, pose_b=pose_b)

    def __repr__(self) -> str:
        shown = [repr(self.link_a), repr(self.link_b)]
        for field, pose in (("pose_a", self.pose_a), ("pose_b", self.pose_b)):
            if not np.array_equal(pose, np.eye(4)):
                turned = not np.array_equal(pose[:3, :3], np.eye(3))
                shown.append(f"{field}={'<turned>' if turned else numbers_text(pose[:3, 3])}")
        shown.append(f"directions={self.kind or self.directions!r}")
        return f"Loop({', '.join(shown)})"


def _directions(value: str | Iterable[bool], what: str) -> tuple[bool, ...]:
    if isinstance(value, str):
        return DIRECTIONS[option(value, what, DIRECTIONS)]
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise InvalidType(f"{what}: expected a name as 'planar' or six True or False, got {shown(value)}")
    mask = six_flags(value)
    if mask is None:
        raise InvalidValue(f"{what}: expected six True or False, rotations and then translations, got {shown(value)}")
    if not any(mask):
        raise InvalidValue(f"{what}: none is closed, so that there is no loop")
    return mask


def refuse_loops(loops: Sequence[Loop | Constraint], what: str = "what is asked here") -> None:
    """Refuse a mechanism with loops where nothing is known of them, so that none is open in silence."""
    if loops:
        raise InvalidValue(
            f"loop {loops[0].name!r}: {what} does not know of loops yet; "
            "mech.without_loops() is the mechanism with all loops open"
        )


def check_loops(
    loops: Iterable[Loop | Constraint], links: Sequence[Link], index: Mapping[str, int]
) -> tuple[Loop | Constraint, ...]:
    """Return the loops and behind them constraints, refusing what is none, unknown links, a name that occurs twice."""
    if isinstance(loops, Mapping):
        raise InvalidType(f"loops: expected a list of Loop, got {describe(loops)}")
    checked, names = tuple(entries(loops, "loops", "Loop")), set()
    for position, loop in enumerate(checked):
        if not isinstance(loop, (Loop, Constraint)):
            raise InvalidType(f"loops[{position}]: expected a Loop or a Constraint, got {describe(loop)}")
        if loop.name in names:
            raise InvalidValue(f"loop {loop.name!r}: the name occurs twice; give one of them another by name=")
        names.add(loop.name)
        for end in (loop.link_a, loop.link_b) if isinstance(loop, Loop) else ():
            if end is not None and end not in index:
                raise UnknownName(f"loop {loop.name!r}: {unknown_name('link', end, [link.name for link in links])}")
    return tuple(sorted(checked, key=lambda loop: isinstance(loop, Constraint)))
