"""Limits of rotation vectors along a motion: the largest angle of a joint, and a whole turn.

As nothing re-centres rotation vectors on splines, they have to stay shorter than a whole turn there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.conditions import State
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.samples import Array, Parts, Samples


class TurnLimit(PathConstraint):
    """The largest angles of a mechanism's balls, at all samples."""

    channels = ("q",)

    def __init__(self, mech: Mechanism) -> None:
        self.firsts = [first for first, _ in mech.largest_angles]
        self.joints = [mech.links[mech.joint_links[first]].joint_name for first in self.firsts]
        super().__init__(-np.inf, [angle for _, angle in mech.largest_angles], "all", "max_angle")

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return joints and units."""
        return [(joint, "rad") for joint in self.joints]

    def values(self, at: Samples) -> Array:
        """Return the angles, (N, k)."""
        return np.stack([np.linalg.norm(at.q[:, k : k + 3], axis=1) for k in self.firsts], axis=1)

    def derivatives(self, at: Samples) -> Parts:
        """Return φ/|φ|, (N, k, n); zero where nothing has turned."""
        found, angles = np.zeros((len(at), len(self.firsts), at.q.shape[1])), self.values(at)
        for row, k in enumerate(self.firsts):
            length = angles[:, row, None]
            found[:, row, k : k + 3] = at.q[:, k : k + 3] / np.where(length > 0.0, length, 1.0)
        return {"q": found}

    def refuse_outside(self, ends: Mapping[str, State]) -> None:
        """Refuse a start or an end that the limit excludes; what is free there counts as zero."""
        for where, state in ends.items():
            for joint, k, largest in zip(self.joints, self.firsts, self.upper, strict=True):
                angle = float(np.linalg.norm(np.nan_to_num(state.rows[0, k : k + 3])))
                if angle > largest * (1.0 + 1e-9):
                    raise InvalidValue(
                        f"{where}: joint {joint!r}: is turned by {angle:.6g} rad, beyond its max_angle of {largest:.6g}"
                    )


def whole_turn(mech: Mechanism, q: Array) -> bool:
    """Tell whether a rotation vector of some postures (N, n) is as long as a whole turn, where it has no rates."""
    return any(bool((_squares(q, first) >= (2.0 * np.pi) ** 2).any()) for first in mech.ball_starts)


def refuse_whole_turns(mech: Mechanism, ends: Mapping[str, State]) -> None:
    """Refuse such postures at the ends, by the name of the joint; what is free there counts as zero."""
    for name, state in ends.items():
        posture = np.nan_to_num(state.rows[:1])
        for first in mech.ball_starts:
            if _squares(posture, first)[0] >= (2.0 * np.pi) ** 2:
                joint = mech.links[mech.joint_links[first]].joint_name
                angle = float(np.sqrt(_squares(posture, first)[0]))
                raise InvalidValue(
                    f"{name}: joint {joint!r}: its rotation vector is {angle:.6g} rad long; a whole turn or more has "
                    "no rates: give the same rotation by a shorter vector"
                )


def _squares(q: Array, first: int) -> Array:
    return np.asarray((q[:, first : first + 3] ** 2).sum(axis=1))
