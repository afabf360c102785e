"""Inverse kinematics of closed mechanisms: postures that close the loops and bring a frame on a link to a pose.

The search of `dynamics.pose_search` with rows for what is open of the loops behind those of the pose. They count for
more than these, so that of targets out of reach the nearest posture is closed; it is closed to the last digits behind
the search.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.inverse_kinematics import tip_of
from cstormpy.dynamics.pose_search import Flags, Found, Tip
from cstormpy.errors import InvalidValue
from cstormpy.loops.closure import angular_rows, closure_of, owners
from cstormpy.loops.projection import project

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

WEIGHT = 30.0
"""How much more a loop that is open counts than a pose that is not reached."""

SHUT = 1e-10
"""What may be left open [rad, m over `length`] where a target is reached."""


def closed_tip(
    mech: Linkage, link: str | int, tool: object, mask: object, limits: bool, length: object, tolerance: object
) -> ClosedTip:
    """Return the frame on a link, with the joints that move it and those that move with these."""
    tip = tip_of(mech.tree, link, tool, mask, limits, length, tolerance)
    tied = closure_of(mech, np.random.default_rng(0).uniform(-1.0, 1.0, (3, mech.n)))
    rows = (tied.A != 0.0).any(axis=0)  # (m, n)
    moving, chosen = np.isin(np.arange(mech.n), tip.moving), np.zeros(len(rows), dtype=bool)
    while (more := rows[:, moving].any(axis=1) & ~chosen).any():
        chosen |= more
        moving |= rows[chosen].any(axis=0)
    whole = tip_of(mech.tree, link, tool, mask, limits, length, tolerance, np.flatnonzero(moving).tolist())
    whole = replace(whole, winds=whole.winds & ~tied.by_value[whole.moving])
    of_tree: dict[str, Any] = {field.name: getattr(whole, field.name) for field in fields(whole)}
    return ClosedTip(**of_tree, closed=mech, rows=chosen & tied.holonomic)


@dataclass(frozen=True)
class ClosedTip(Tip):
    """The frame that is to be brought somewhere, of a closed mechanism."""

    closed: Linkage
    rows: NDArray[np.bool_]  # (m,) constraints that its joints have to keep

    @cached_property
    def _weights(self) -> Array:
        """Weights of the rows, of those that close lengths over `length`."""
        return WEIGHT * np.where(angular_rows(self.closed)[self.rows], 1.0, 1.0 / self.length)

    @property
    def width(self) -> int:
        """Number of rows of an error."""
        return super().width + int(np.count_nonzero(self.rows))

    def error(self, q: Array, target: Array) -> tuple[Array, Array]:
        """Return e and A, behind the rows of the pose those of the loops."""
        e, A = super().error(q, target)
        found = closure_of(self.closed, q)
        phi, slopes = found.residual()[:, self.rows], found.A[:, self.rows][..., self.moving] * self.scale
        weights = self._weights
        return np.concatenate([e, weights * phi], axis=1), np.concatenate([A, weights[:, None] * slopes], axis=1)

    def distance(self, e: Array) -> Array:
        """Return how far rows are from their targets, whatever is open."""
        return super().distance(e[:, : super().width])

    def reached(self, e: Array, cost: Array) -> Flags:
        """Return which rows are at their targets, and closed."""
        shut = np.abs(e[:, super().width :]).max(axis=1, initial=0.0) <= WEIGHT * SHUT
        return shut & super().reached(e, cost)

    def finished(self, found: Found, targets: Array) -> Found:
        """Return what was found with all loops closed, also those that the frame does not depend on."""
        names = {name for name, on in zip(owners(self.closed), self.rows, strict=True) if on}
        tied, others = (
            self.closed.replace(loops=[loop for loop in self.closed.loops if (loop.name in names) == own])
            for own in (True, False)
        )
        held = [name for k, name in enumerate(self.closed.names) if k in self.moving]
        for k, reached in enumerate(found.reached):
            if tied.loops and not reached:
                with contextlib.suppress(InvalidValue):  # what cannot be closed from there is told by the closure
                    found.q[k] = project(tied, found.q[k])[0]
            if others.loops:
                found.q[k] = project(others, found.q[k], hold=held)[0]
        found.e, _ = self.error(found.q, targets)
        return found
