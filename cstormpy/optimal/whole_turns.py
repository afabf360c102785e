"""Rotation vectors on splines: as nothing re-centres them there, they have to stay shorter than a whole turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.conditions import State
from cstormpy.optimal.samples import Array

__all__ = ["refuse_whole_turns", "whole_turn"]


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
