"""Spring-damper stops at the position limits of a mechanism's joints, as JOINTLIMIT and HYBRIDDYNAMICS have them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import Array, is_single
from cstormpy.dynamics.loads import stop_torque, turn_stop_torque
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.mechanism import Mechanism
from cstormpy.trajectory.checks import finite_array


class Stops:
    """Stops at the position limits of joints, and at the largest angles of balls.

    Parameters
    ----------
    mech : Mechanism
    stiffness, damping : float or array_like, (n,)
        Of the stop of each joint [N m/rad, N/m], [N m s/rad, N s/m].
    joints : list of str, optional
        The joints that have stops; all with position limits unless given.
    depth : float or array_like, (n,)
        How far into the stop of each joint its damper acts in full [rad, m].
    driven : ndarray of int, optional
        Coordinates at which a torque can act; at all unless given.

    Attributes
    ----------
    low, high : ndarray, (n,)
        Where the stops are; infinities where there is none.
    where : list of int
        Coordinates of the joints that have stops.
    turns : list of (int, float)
        Where in q the rotation vectors begin whose angle has a stop, and the angle.
    """

    def __init__(
        self,
        mech: Mechanism,
        stiffness: ArrayLike = 1e4,
        damping: ArrayLike = 100.0,
        joints: Any = None,
        depth: ArrayLike = 0.01,
        driven: NDArray[np.int64] | None = None,
    ) -> None:
        self.where = _limited(mech, joints, driven)
        self.stiffness = each_joint(stiffness, mech, "stiffness")
        self.damping = each_joint(damping, mech, "damping")
        self.depth = each_joint(depth, mech, "depth", checks.positive)
        self.read(mech)

    def read(self, mech: Mechanism) -> None:
        """Take the limits from a mechanism of the same joints."""
        self.low, self.high = np.full(mech.n, -math.inf), np.full(mech.n, math.inf)
        self.turns = [(k, angle) for k, angle in mech.largest_angles if {k, k + 1, k + 2} & {*self.where}]
        for index in self.where:
            limits = mech.freedoms[index].limits
            if limits is not None and limits.position is not None:
                self.low[index], self.high[index] = limits.position

    def torque(self, q: Array, qd: Array) -> Array:
        """Return the torques of the stops on all joints, (n,)."""
        tau = stop_torque(q, qd, self.low, self.high, self.stiffness, self.damping, self.depth)
        for k, angle in self.turns:
            own = slice(k, k + 3)
            stop = turn_stop_torque(q[own], qd[own], angle, self.stiffness[k], self.damping[k], self.depth[k])
            tau = np.concatenate([tau[:k], tau[own] + stop, tau[k + 3 :]])
        return tau


_OPTIONS = tuple(name for name in inspect.signature(Stops).parameters if name not in ("mech", "driven"))


def stops_of(mech: Mechanism, given: Any) -> Stops | None:
    """Return the stops of a plant: none for False, those of all joints that are not active for True, or by options."""
    if given is None or given is False:
        return None
    if given is not True and not isinstance(given, Mapping):
        raise InvalidType(f"stops: expected True or False, or a dict of {', '.join(_OPTIONS)}, got {shown(given)}")
    options = {} if given is True else dict(given)
    for name in options:
        option(name, "stops: option", _OPTIONS)
    free = np.flatnonzero(~mech.active_mask)
    if options.get("joints") is None:
        limited = [mech.names[k] for k in limited_joints(mech) if k in free]
        if limited:
            options["joints"] = limited
    return Stops(mech, **options, driven=free)


def limited_joints(mech: Mechanism) -> list[int]:
    """Return the coordinates that have position limits, or are of a rotation vector whose angle has one."""
    limits = [freedom.limits for freedom in mech.freedoms]
    own = {k for k, each in enumerate(limits) if each is not None and each.position is not None}
    return sorted(own | {k + i for k, _ in mech.largest_angles for i in range(3)})


def _limited(mech: Mechanism, joints: Any, driven: NDArray[np.int64] | None) -> list[int]:
    """Return the coordinates that have stops; refuse those whose torque is not to be had."""
    limited = limited_joints(mech)
    if joints is None:
        chosen = limited
        if not chosen:
            raise InvalidValue("mechanism: no joint has position limits; give one limits=Limits(position=(low, high))")
    else:
        wanted = [joints] if isinstance(joints, str) else joints
        if not isinstance(wanted, (list, tuple)) or not wanted:
            raise InvalidType("joints: expected a list of names, at least one")
        chosen = []
        for name in wanted:
            own = mech.joint_indices(name)
            chosen += [k for k in own if k in limited] or own
        for k in chosen:
            if k not in limited:
                raise InvalidValue(f"joint {mech.names[k]!r}: has no position limits, so that there is no stop")
    for k in chosen:
        if driven is not None and k not in driven:
            why = "its motion is prescribed" if mech.active_mask[k] else "has no motor"
            others = [mech.names[i] for i in chosen if i in driven]
            raise InvalidValue(
                f"joint {mech.names[k]!r}: {why}, so that no torque of a stop can act there; leave it out, "
                f"as joints={others}, or take the torques of all joints, all=True"
            )
    return chosen


def each_joint(
    value: Any, mech: Mechanism, what: str, check: Callable[[Any, str], float] = checks.nonnegative
) -> Array:
    """Return one number for each coordinate, none of them negative."""
    if is_single(value):
        return np.full(mech.n, check(value, what))
    array = finite_array(value, what, (mech.n,), "one for each joint of q")
    for name, number in zip(mech.names, array.tolist(), strict=True):
        check(number, f"joint {name!r}: {what}")
    return array
