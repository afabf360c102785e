"""Emitters of ANGLEWRAP and JOINTLIMIT."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_mechanisms import stop_torques, vector
from cstormpy.simulation.compiled.registry import Value, emits, emits_guard

__all__: list[str] = []

Values = list[Value]


def _angles(e: Emitter, block: Any, value: Value) -> tuple[Value, Value, list[int]]:
    """Return the positions as a vector, the middles of their turns, and which of them are wrapped."""
    q = np.atleast_1d(value)
    if q.ndim != 1 or (block._width is not None and q.size != block._width):
        raise Untranslatable(
            f"is given a signal of the shape {value.shape} where it takes {block._width or 'some'} angles"
        )
    chosen = e.depends(lambda: None if block._chosen is None else list(block._chosen))
    places = list(range(q.size)) if chosen is None else chosen
    if max(places) >= q.size:
        raise Untranslatable(f"is to wrap number {max(places)} of a signal of {q.size}")
    centre = e.number(lambda: block._centre)
    return q, np.broadcast_to(centre, q.shape), places


@emits("cstormpy.blocks.joints.AngleWrap")
def _angle_wrap(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    q, centre, places = _angles(e, block, u[0])
    turn, out = e.number(2.0 * math.pi), q.copy()
    for k in places:
        out[k] = f"{e.call('within_turn')}({q[k]}, {centre[k]}, {turn})"
    return [out.reshape(u[0].shape)]


@emits_guard("cstormpy.blocks.joints.AngleWrap")
def _far_side(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    q, centre, places = _angles(e, block, u[0])
    e.call("math")
    return named(" * ".join(f"math.cos(0.5 * ({q[k]} - {centre[k]}))" for k in places))


@emits("cstormpy.blocks.joints.JointLimit")
def _joint_limit(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    q, qd = (vector(value, block._mech.n) for value in u)
    return [stop_torques(e, block, q, qd)[e.depends(lambda: block._rows)]]
