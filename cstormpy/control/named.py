"""Laws by name: the family that swings an acrobot up, with gains that work for the "teaching" one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cstormpy.arguments import option
from cstormpy.control.energy_pumps import EnergyPFL, EnergyPump, NonCollocated
from cstormpy.control.goal import goal_posture
from cstormpy.control.law import Law, Off, mechanism_of
from cstormpy.control.lqr import LQR
from cstormpy.control.sequence import SwingUp
from cstormpy.control.spline import SplineSwingUp
from cstormpy.control.tracking import PD, ComputedTorque, GravityCompensation, HybridTracking
from cstormpy.control.tvlqr import TVLQR
from cstormpy.errors import UnknownName
from cstormpy.mechanism import Mechanism


def _swing_up(
    pump: Callable[..., Law], threshold: float, limit: float, **defaults: float
) -> tuple[Any, dict[str, Any]]:
    """Return how to make a pump inside of a `SwingUp`, and its gains."""

    def make(mech: Mechanism, goal: Any, threshold: Any, release: Any, limit: Any, Q: Any, R: Any, **gains: Any) -> Law:
        balance = LQR(mech, goal, Q, R)
        return SwingUp(pump(mech, goal=balance.goal, **gains), balance, threshold, release, limit)

    common = {"goal": None, "threshold": threshold, "release": None, "limit": limit, "Q": None, "R": 1.0}
    return make, {**defaults, **common}


def _pd(mech: Mechanism, kp: Any, kd: Any, goal: Any, limit: Any) -> Law:
    return PD(mech, kp, kd, goal_posture(mech, goal, "pd")[0], limit=limit)


_LAWS: dict[str, tuple[Callable[..., Law], dict[str, Any]]] = {
    "energy": _swing_up(EnergyPump, 1650.0, 25.0, kp=5.0, kd=1.4, ke=2.7),
    "pfl": _swing_up(EnergyPFL, 1600.0, 25.0, kp=100.0, kd=24.0, ke=15.0),
    "noncollocated": _swing_up(NonCollocated, 1800.0, 200.0, kp=78.0, kd=2.2),
    "spline": (
        SplineSwingUp,
        {
            "goal": None,
            "duration": 3.0,
            "points": 16,
            "threshold": 50.0,
            "release": None,
            "near": None,
            "limit": 25.0,
            "Q": None,
            "R": 1.0,
        },
    ),
    "lqr": (LQR, {"goal": None, "Q": None, "R": 1.0, "limit": 25.0}),
    "pd": (_pd, {"kp": 5.0, "kd": 1.4, "goal": None, "limit": 25.0}),
    "none": (Off, {}),
}
_TRACKING = {cls.__name__.lower(): cls.__name__ for cls in (ComputedTorque, GravityCompensation, HybridTracking, TVLQR)}


def names() -> tuple[str, ...]:
    """Return the names of the laws that `law` makes.

    >>> names()
    ('energy', 'pfl', 'noncollocated', 'spline', 'lqr', 'pd', 'none')
    """
    return tuple(_LAWS)


def law(name: str, mech: Mechanism, **gains: Any) -> Law:
    """Return a law by its name, to bring a mechanism to its highest posture.

    Parameters
    ----------
    name : {"energy", "pfl", "noncollocated", "spline", "lqr", "pd", "none"}
        Energy pump with PD, energy pump with collocated partial feedback linearisation, non-collocated partial
        feedback linearisation, and an optimised motion followed by time-varying LQR, each until a linear-quadratic
        regulator catches; that regulator alone; PD on the joints with a motor; no torque. The optimised motion is
        found, and kept, when "spline" is first used; those of the library's acrobots are known.
    mech : Mechanism or str
    **gains
        What is to differ from the law's own: `kp`, `kd`, `ke`, `threshold`, `release`, `limit`, `Q`, `R`, `goal`,
        `duration`, `points`, `near`, as far as the law has them. Those that stand here suit the acrobot of the
        parameters "teaching".

    Raises
    ------
    UnknownName
        With the nearest spelling, of the law or of the gain.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> law("energy", library.acrobot(), ke=2.5).gains["ke"]
    2.5
    """
    tracking = _TRACKING.get(re.sub(r"[\W_]", "", str(name)).lower())
    if tracking is not None:
        raise UnknownName(f"law {name!r} wants to be told what to follow; make it as control.{tracking}(mech, ...)")
    make, defaults = _LAWS[option(name, "law", _LAWS)]
    for given in gains:
        option(given, f"gain of the law {name!r}:", defaults)
    return make(mechanism_of(mech, name), **{**defaults, **gains})
