"""Joints that begin beside the motion whose acceleration leads them, and so stay beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.reporting import notice_once
from cstormpy.simulation.wiring import describe

#: What plays a motion has these outputs, of which a plant is led by the last.
_OUTPUTS = ("q", "qd", "qdd")
#: So far beside the motion a joint, or its rate, may begin [rad, m, per s], or by this part of it.
_BESIDE = 1e-3


def say_starts_beside(bd: Any, continuous: Sequence[tuple[Any, slice]], t: float, x: Array) -> None:
    """Say of each joint whose acceleration is that of a motion that it begins beside the motion.

    Parameters
    ----------
    bd : BlockDiagram
    continuous : sequence of (Block, slice)
        Blocks with states, and where these stand in x.
    t, x : float, (nstates,)
        Where a run begins.
    """
    for wire in bd.wirelist:
        if wire.start.port != 2 or getattr(type(wire.start.block), "outlabels", ()) != _OUTPUTS:
            continue
        source, plant = wire.start.block, wire.end.block
        part = next((part for block, part in continuous if block is plant), None)
        if part is None:
            continue
        names = plant._inport_names or ()
        if source.blockclass != "source" or names[wire.end.port : wire.end.port + 1] != ["acc"]:
            continue
        led = np.flatnonzero(plant.mech.active_mask)
        q, qd, _ = (np.ravel(value) for value in source.output(t, [], None))
        if led.size != q.size:  # of a plant whose drive changes
            continue
        own = x[part][led], x[part][plant.mech.n + led]
        apart = np.maximum(*(np.abs(a - b) / np.maximum(1.0, np.abs(b)) for a, b in zip(own, (q, qd), strict=True)))
        for k in np.flatnonzero(apart > _BESIDE):
            notice_once(
                f"{describe(plant)}: joint {plant.mech.names[led[k]]!r} begins at {own[0][k]:.4g} with the rate "
                f"{own[1][k]:.4g}, but {source.name!r}, whose acceleration leads it, at {q[k]:.4g} with {qd[k]:.4g}; "
                "it stays beside that motion unless q0= and qd0= are those of its beginning"
            )
