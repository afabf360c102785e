"""Emitters of blocks by their equations: traced, or asked in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cstormpy.dynamics.loads import Wrenches
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable
from cstormpy.simulation.compiled.emitters_functions import function_by_numba
from cstormpy.simulation.compiled.equations import Rule, equations_of, passed_on
from cstormpy.simulation.compiled.load_signals import carry_loads, keep_loads
from cstormpy.simulation.compiled.opaque_laws import OpaqueLaws, laws_of, unready, untraced
from cstormpy.simulation.compiled.registry import Value
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.simulation.compiled.traced import Untraceable, traced
from cstormpy.simulation.compiled.untranslated import REASONS, name_of, why

__all__ = ["own_guard", "own_next", "own_outputs", "own_rates"]

Values = list[Value]
_FUNCTION = "bdsim.blocks.functions.Function"


def own_outputs(e: Emitter, block: Any, u: Values, x: Value | None) -> Values:
    """Return the outputs of a block by what `equations_of` has as ``output(t, u, x)``."""
    passed = passed_on(block)
    if passed is not None:
        e.depends(lambda: [getattr(block, name) for name in passed])
        return list(block.output(0.0, u, x))
    if any(isinstance(value, dict) for value in u):
        raise Untranslatable("is given a dict")
    found = [slot.value for slot in block._outport_slots]
    values = _by_method(e, block, "output", u, x, found)
    carry_loads(e, block, u)
    return values


def own_rates(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    """Return the rates of a block's states by its method ``deriv(t, u, x)``."""
    return _by_method(e, block, "deriv", u, x, [np.zeros(block.nstates)], whole=True)[0]


def own_next(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    """Return the states of a sampled block after a tick by its method ``next(t, u, x)``."""
    return _by_method(e, block, "next", u, x, [np.zeros(block.ndstates)], whole=True)[0]


def own_guard(e: Emitter, block: Any, u: Values, x: Value | None, detector: Any) -> Value:
    """Return the number that a zero-crossing detector of a block watches."""
    found = equations_of(block)
    if found is None or found.guard is None:
        raise Untranslatable("its detectors are not said as an equation")
    rule, call, laws = found.guard, _Call(u, x, False), unready(e, block)
    value = _traced(e, block, lambda *given: [rule(*given, detector)], rule, call, found.numbers, laws)[0]
    asked = getattr(detector, "asked", None)
    e.pending += [] if asked is None else [asked]
    return value


def _by_method(
    e: Emitter, block: Any, name: str, u: Values, x: Value | None, found: list[Any], whole: bool = False
) -> Values:
    kind = type(block)
    if name_of(kind) in REASONS:
        raise Untranslatable(why(kind))
    if name_of(kind) == _FUNCTION and block.userdata is not None:
        raise Untranslatable("keeps data between its calls (persistent=True)")
    loads = [e.shared.get(("loads", id(slot))) for slot in block._inport_slots]
    equations, call, own = equations_of(block), _Call(u, x, whole, loads), getattr(kind, name)
    rule = getattr(equations, name, None) or own
    numbers = equations.numbers if equations else {}
    laws = unready(e, block)
    try:
        try:
            values = _traced(e, block, with_symbolic_math(rule), rule, call, numbers, laws)
        except Untraceable:
            if not untraced(e, block, _given_to_laws(e, block, u), laws):
                raise
            values = _traced(e, block, with_symbolic_math(rule), rule, call, numbers, laws)
        if equations and equations.fails and name == "output":
            fails = equations.fails
            failed = _traced(e, block, lambda *given: [fails(*given)], fails, _Call(u, x, False), numbers, OpaqueLaws())
            e.fail_if(f"{failed[0].item()} != 0.0")
    except Untraceable as error:
        reason = str(error)
        if name_of(kind) == _FUNCTION:
            try:
                values = function_by_numba(e, block, u)
            except Untranslatable as refused:
                reason += f"; numba: {refused}"
            else:
                e.told(f"{name}: compiled by numba, as it cannot be traced: {reason}")
                return values
        e.told(f"{name}: asked in Python, as it cannot be traced: {reason}")
        signals = [slot.value for slot, known in zip(block._inport_slots, call.known, strict=True) if known]
        samples = signals if x is None else [*signals, np.zeros(x.shape)]
        return e.ask_python(lambda t, values: call(own, block, t, *values), call.given, samples, found)
    e.told(f"{name}: traced")
    if call.gives_loads:
        keep_loads(e, block, values.pop())
    return values


def _given_to_laws(e: Emitter, block: Any, u: Values) -> Values:
    """Return what the laws of a controller are given: the time, q, q̇ and, with ports for it, the reference."""
    if laws_of(block) is None:
        return [e.time]
    return [
        e.time,
        *(np.atleast_1d(value) for value in u[:2]),
        *(np.atleast_1d(value) for value in u[-3:] if len(u) > 3),
    ]


def _traced(
    e: Emitter,
    block: Any,
    symbolic: Rule,
    function: Rule,
    call: _Call,
    numbers: Mapping[str, Callable[[Any], Any]],
    laws: OpaqueLaws,
) -> Values:
    given = [e.time, *call.given, *(rows for rows in call.loads if rows is not None)]

    def ask(twin: Any, *values: Any) -> Any:
        laws.found = values[len(given) :]
        return call(symbolic, twin, *values[: len(given)])

    return traced(e, lambda: block, function, ask, [*given, *laws.torques], numbers, laws.methods)


class _Call:
    """A call of a block's method with the time and the signals that are known before it; the others are None.

    Wrenches that keep their direction in space come, and are given, with their rows (`load_signals`).
    """

    def __init__(self, u: Values, x: Value | None, whole: bool, loads: Sequence[Value | None] = ()) -> None:
        self.known = [not (value.shape == () and value.item() == "nan") for value in u]
        self.given = [value for value, known in zip(u, self.known, strict=True) if known] + ([] if x is None else [x])
        self._has_states, self._whole = x is not None, whole
        self.loads = loads or [None] * len(u)
        self.gives_loads = False

    def __call__(self, method: Callable[..., Any], owner: Any, t: Any, *given: Any) -> Any:
        signals = iter(given)
        u = [next(signals) if known else None for known in self.known]
        x = next(signals) if self._has_states else None
        if len(given) > len(self.given):
            pairs = zip(u, self.loads, strict=True)
            u = [value if rows is None else Wrenches(np.asarray(value), next(signals)) for value, rows in pairs]
        result = method(owner, t, u, x)
        if self._whole:
            return [np.asarray(result)]
        loads = [part.rows for part in result if isinstance(part, Wrenches) and part.rows is not None]
        self.gives_loads = len(loads) == 1
        return [*result, *loads] if self.gives_loads else result
