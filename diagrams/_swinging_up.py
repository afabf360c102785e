"""Common diagram of the mechanisms that a law swings up and balances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from cstormpy.arguments import flag
from cstormpy.control import Law
from cstormpy.diagrams._building import scope, view
from cstormpy.diagrams._goal import Goal
from cstormpy.mechanism import Mechanism

__all__ = ["swing_up"]

#: How long the kick lasts [s].
LASTS = 0.2


def swing_up(
    bd: Any,
    mech: Mechanism,
    laws: Mapping[str, Law],
    controller: str,
    goal: Sequence[float],
    rest: Sequence[float],
    *,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    kick: bool | None,
    strength: float,
    limit: float | None,
    blend: float,
    title: str,
    units: tuple[str, str, str] = ("Angles", "rad", "N m"),
    duration: float,
) -> Any:
    """Wire the plant, the laws, the kick that starts the motion, and what shows them; return the diagram.

    Parameters
    ----------
    goal, rest : sequence of float, (n,)
        The posture to reach, and that from which the motion starts unless `q0` is given.
    kick : bool or None
        Whether a short pulse of this `strength` starts the motion; unless it is said, only from the start at rest.
    units : tuple of str
        What the positions are called, and the units of positions and torques.
    """
    plant = bd.HYBRIDDYNAMICS(mech, q0=list(rest) if q0 is None else q0, qd0=qd0, name="plant")
    chosen = bd.CONTROLLER(mech, laws, law=controller, blend=blend, limit=limit, name="controller")
    bd.connect(plant[0:2], chosen[0:2])
    kicked = (q0 is None and qd0 is None) if kick is None else flag(kick, "kick")
    torque = _kicked(bd, chosen[0], strength) if kicked else chosen[0]
    effort = bd.EFFORT(name="effort")
    bd.connect(torque, plant[0], effort[0])
    view(bd, mech, plant, title)
    what, position, force = units
    scope(bd, "scope_q", plant[0], mech.names, what, position)
    scope(bd, "scope_tau", torque, mech.actuated, "Torque" if force == "N m" else "Force", force)
    scope(bd, "scope_law", chosen[1], ["law"], "Law", stairs=True)
    scope(bd, "scope_phase", chosen[2], ["phase"], "Phase", stairs=True)
    scope(bd, "scope_effort", effort[0], ["effort"], "Effort", "N²m²s" if force == "N m" else "N²s")
    bd.goal, bd.duration = Goal(goal), duration
    return bd


def _kicked(bd: Any, torque: Any, strength: float) -> Any:
    """Return a torque with the kick added to it."""
    kick = bd.PIECEWISE((0.0, strength), (LASTS, 0.0), name="kick")
    both = bd.SUM("++", name="torque")
    bd.connect(torque, both[0])
    bd.connect(kick, both[1])
    return both[0]
