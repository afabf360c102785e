"""Emitter of CONTROLLER: its laws, of which the numbers choose one, its blend and its zero crossings.

All laws stand in the source, so that a swap or another phase changes numbers only. The block is known by name,
simulation does not import it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_laws import Moment, is_ready, law_torque, limited, margin_of
from cstormpy.simulation.compiled.emitters_mechanisms import vector
from cstormpy.simulation.compiled.registry import Value, emits, emits_guard

__all__: list[str] = []

Values = list[Value]
_CONTROLLER = "cstormpy.blocks.controllers.Controller"


def _moment(e: Emitter, block: Any, u: Values) -> Moment:
    """Return what the laws are given."""
    n = block._mech.n
    q, qd = vector(u[0], n), vector(u[1], n)
    if block._targets is None:
        return Moment(e, q, qd, e.time)
    targets = [u[port] for port in block._targets]
    if block._followed and targets[0].size == len(block._followed):
        n = len(block._followed)
    return Moment(e, q, qd, e.time, [vector(value, n) for value in targets])


@emits(_CONTROLLER)
def _controller(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    laws, now = block.laws, _moment(e, block, u)
    tau, active = e.variables(len(laws.step)), e.number(lambda: float(laws.active))
    for k, law in enumerate(laws.laws.values()):
        _for_law(e, laws, k, law, active, tau, partial(law_torque, now, law))
    since, until = e.number(lambda: laws.since), e.number(lambda: laws.until)
    with e.under(f"if {e.time} < {until}:"):
        share = e.let(e.each("1.0 if {2} <= {0} else 1.0 - ({2} - {0}) / ({1} - {0})", since, until, e.time))
        e.assign(tau, e.each("{0} + {1} * {2}", tau, share, e.number(lambda: laws.step)))
    torque = limited(e, tau, lambda: laws.limit)[block._commanded]
    return [torque, active, e.number(lambda: float(laws.phase))]


def _for_law(e: Emitter, laws: Any, k: int, law: Any, active: Value, out: Value, emit: Callable[[], Value]) -> None:
    """Assign what is emitted for a law, where it is the active one.

    One that can not be translated, or has to be made first, stands in the way only while it is active.
    """
    with e.under(f"if {active} == {k}.0:"):
        try:
            if not e.depends(lambda: is_ready(law) or laws.active == k):
                raise Untranslatable("is not made yet")
            e.assign(out, np.atleast_1d(emit()))
        except Untranslatable:
            if e.depends(lambda: laws.active == k):
                raise
            e.fail_if("True")


# zero crossings ---------------------------------------------------------------------------------------------


@emits_guard(_CONTROLLER)
def _controller_guard(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    quantity = getattr(getattr(detector, "quantity", None), "__name__", "")
    guard = _GUARDS.get(quantity)
    if guard is None:
        raise Untranslatable("has a zero crossing that is not known")
    return guard(e, block, u)


def _blend_left(e: Emitter, block: Any, u: Values) -> Value:
    laws = block.laws
    since, until = e.number(lambda: laws.since), e.number(lambda: laws.until)
    return e.each("{1} - {2} if {1} > {0} else 1.0", since, until, e.time)


def _request_margin(e: Emitter, block: Any, u: Values) -> Value:
    e.pending.append(lambda: block._request is not None)
    return named("1.0")


def _select_margin(e: Emitter, block: Any, u: Values) -> Value:
    e.pending.append(lambda: True)  # where the signal jumps, the block itself looks at it between two steps
    return e.each("0.5 - abs({0} - {1})", vector(u[2], 1)[0], e.number(lambda: float(block.laws.active)))


def _phase_margin(e: Emitter, block: Any, u: Values) -> Value:
    laws, now = block.laws, _moment(e, block, u)
    out, active = e.variables(1), e.number(lambda: float(laws.active))
    e.assign(out, named(["1.0"]))
    for k, law in enumerate(laws.laws.values()):
        if len(law.modes) == 1:
            continue
        _for_law(e, laws, k, law, active, out, partial(margin_of, now, law))
    return named(out[0])


_GUARDS = {
    "_blend_left": _blend_left,
    "_request_margin": _request_margin,
    "_select_margin": _select_margin,
    "_phase_margin": _phase_margin,
}
