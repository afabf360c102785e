"""Joint limits that a run goes beyond where no stop holds the joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cstormpy.arrays import Array
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.reporting import notice_once

_BESIDE = 1e-6
"""So far beyond a limit, in parts of its size or of a radian or the mechanism's length, a joint may be by the error of
an integration."""


class LeftLimits(NamedTuple):
    """A joint that a run takes beyond its position limits.

    Attributes
    ----------
    plant, joint : str
    t : float
        When it is first found beyond them [s].
    limits : tuple of float
        Low and high [rad or m].
    farthest : float
        Its position where it is farthest from them [rad or m].
    """

    plant: str
    joint: str
    t: float
    limits: tuple[float, float]
    farthest: float


def limits_left(continuous: Sequence[tuple[Any, slice]], blocks: Sequence[Any], t: Array, x: Array) -> list[LeftLimits]:
    """Return the joints without a stop that are beyond their limits in the samples of a run.

    A plant is a block with states, a mechanism and a place for stops; joints that a JOINTLIMIT of the same links stops
    are left out.

    Parameters
    ----------
    continuous : sequence of (Block, slice)
        Blocks with states, and where these stand in x.
    blocks : sequence of Block
        All of the diagram.
    t, x : ndarray (N,), (N, nstates)
    """
    # not as attributes: where a block has none, bdsim looks for a port of that name, which takes long
    stops = [(block, block.__dict__["_stops"]) for block in blocks if "_stops" in block.__dict__]
    stopped = {(block.mech.names, k) for block, each in stops for k in getattr(each, "where", ())}
    found = []
    for block, part in continuous:
        if "_stops" in block.__dict__ and len(x):
            mech, first = block.mech, part.start
            positions, angles = _limits_of(mech)
            for k, low, high in positions:
                if (mech.names, k) not in stopped:
                    found += _left(str(block.name), mech.names[k], t, x[:, first + k], (low, high), mech, k)
            for k, angle in angles:
                if (mech.names, k) not in stopped:
                    joint = mech.links[mech.joint_links[k]].joint_name
                    turn = np.linalg.norm(x[:, first + k : first + k + 3], axis=1)
                    found += _left(str(block.name), joint, t, turn, (0.0, angle), mech, k)
    return found


def _limits_of(mech: Any) -> tuple[list[tuple[int, float, float]], Sequence[tuple[int, float]]]:
    """Return place in q, low and high, of the coordinates of a mechanism that have position limits.

    And where the rotation vectors begin whose angles have, with these.
    """
    found: Any = mech.memo.get("position limits")
    if found is None:
        limits = [freedom.limits for freedom in mech.freedoms]
        wide = [(k, each.position) for k, each in enumerate(limits) if each is not None and each.position is not None]
        found = mech.memo["position limits"] = [(k, low, high) for k, (low, high) in wide], mech.largest_angles
    positions, angles = found
    return positions, angles


def _left(
    plant: str, joint: str, t: Array, q: Array, limits: tuple[float, float], mech: Any, k: int
) -> list[LeftLimits]:
    low, high = limits
    if len(q) and q.min() >= low and q.max() <= high:
        return []
    beyond, unit = np.fmax(low - q, q - high), float(coordinate_scales(mech)[k])
    allowed = _BESIDE * np.where(q < low, max(unit, abs(low)), max(unit, abs(high)))
    where = np.flatnonzero(beyond > allowed)
    if not len(where):
        return []
    return [LeftLimits(plant, joint, float(t[where[0]]), (low, high), float(q[np.nanargmax(beyond)]))]


def say_limits_left(left: list[LeftLimits]) -> None:
    """Say once of each joint that it is beyond its limits, and how to make a stop."""
    for each in left:
        notice_once(
            f"block {each.plant!r}: joint {each.joint!r} leaves its limits, {each.limits[0]:g} to {each.limits[1]:g}, "
            "which are data that the dynamics do not enforce; HYBRIDDYNAMICS(..., stops=True) makes stops, "
            "out.left_limits says when and how far"
        )
