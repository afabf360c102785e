"""Limit of the angles of rotation vectors along a motion: |φ| is at most the largest angle of the joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.conditions import State
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.samples import Array, Parts, Samples

__all__ = ["TurnLimit"]


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
