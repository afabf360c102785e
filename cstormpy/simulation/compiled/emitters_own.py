"""Emitters of blocks by their equations, and of a user's own laws: traced, compiled by numba, or asked in Python."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cstormpy.control.own import OwnLaw
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable
from cstormpy.simulation.compiled.emitters_functions import function_by_numba, user_call
from cstormpy.simulation.compiled.equations import Rule, equations_of, passed_on
from cstormpy.simulation.compiled.load_signals import carry_loads
from cstormpy.simulation.compiled.registry import Value
from cstormpy.simulation.compiled.traced import Untraceable, traced, with_symbolic_math
from cstormpy.simulation.compiled.untranslated import REASONS, name_of, why

__all__ = ["own_guard", "own_next", "own_outputs", "own_rates", "own_torque"]

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
    rule = found.guard
    return _traced(e, block, lambda *given: [rule(*given, detector)], rule, _Call(u, x, False), found.numbers)[0]


def _by_method(
    e: Emitter, block: Any, name: str, u: Values, x: Value | None, found: list[Any], whole: bool = False
) -> Values:
    kind = type(block)
    if name_of(kind) in REASONS:
        raise Untranslatable(why(kind))
    if name_of(kind) == _FUNCTION and block.userdata is not None:
        raise Untranslatable("keeps data between its calls (persistent=True)")
    equations, call, own = equations_of(block), _Call(u, x, whole), getattr(kind, name)
    rule = getattr(equations, name, None) or own
    numbers = equations.numbers if equations else {}
    try:
        values = _traced(e, block, with_symbolic_math(rule), rule, call, numbers)
        if equations and equations.fails and name == "output":
            fails = equations.fails
            failed = _traced(e, block, lambda *given: [fails(*given)], fails, _Call(u, x, False), numbers)
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
    return values


def _traced(
    e: Emitter, block: Any, symbolic: Rule, function: Rule, call: _Call, numbers: Mapping[str, Callable[[Any], Any]]
) -> Values:
    given = [e.time, *call.given]
    return traced(e, lambda: block, function, lambda twin, *given: call(symbolic, twin, *given), given, numbers)


class _Call:
    """A call of a block's method with the time and the signals that are known before it; the others are None."""

    def __init__(self, u: Values, x: Value | None, whole: bool) -> None:
        self.known = [not (value.shape == () and value.item() == "nan") for value in u]
        self.given = [value for value, known in zip(u, self.known, strict=True) if known] + ([] if x is None else [x])
        self._has_states, self._whole = x is not None, whole

    def __call__(self, method: Callable[..., Any], owner: Any, t: Any, *given: Any) -> Any:
        signals = iter(given)
        u = [next(signals) if known else None for known in self.known]
        result = method(owner, t, u, next(signals) if self._has_states else None)
        return [np.asarray(result)] if self._whole else result


def own_torque(e: Emitter, law: Any, given: Values) -> Value:
    """Return the torques of a law by its method ``torque``, given the time, q, q̇ and, maybe, the reference."""
    read, function, symbolic = _owner(law)

    def ask(owner: Any, *values: Any) -> list[Any]:
        return [owner_torques(symbolic(owner, *values), len(law.motors))]

    try:
        values = traced(e, read, function, ask, given)
    except Untraceable as error:
        return _untraced_torque(e, law, given, str(error))
    e.told(f"law {_name(law)}: traced")
    return values[0]


def _owner(law: Any) -> tuple[Callable[[], Any], Callable[..., Any], Callable[..., Any]]:
    """Return what reads the object whose numbers a law depends on, its method, and that as one of it and (t, q, q̇)."""
    if not isinstance(law, OwnLaw):
        function = type(law).torque
        method = with_symbolic_math(function)
        return lambda: law, function, lambda owner, t, q, qd, *target: method(owner, t, q, qd, target or None)
    if isinstance(law.own, types.FunctionType):
        method = with_symbolic_math(law.own)
        return lambda: law.own, law.own, lambda owner, t, q, qd, *_: method(t, q, qd)
    function = getattr(type(law.own), "torque", None) or type(law.own).__call__
    method = with_symbolic_math(function)
    return lambda: law.own, function, lambda owner, t, q, qd, *_: method(owner, t, q, qd)


def _name(law: Any) -> str:
    own = law.own if isinstance(law, OwnLaw) else law
    return str(getattr(own, "__name__", type(own).__name__))


def owner_torques(value: Any, count: int) -> Any:
    """Return what a law's method gave as an array of so many numbers; a number will do for one motor."""
    return np.reshape(np.asarray(value if np.ndim(value) else [value]), (count,))


def _untraced_torque(e: Emitter, law: Any, given: Values, why: str) -> Value:
    samples = [0.0, *(np.zeros(v.shape) for v in given[1:])]
    name, count = _name(law), len(law.motors)
    if isinstance(law, OwnLaw) and isinstance(law.own, types.FunctionType):
        try:
            parts = user_call(e, law.own, given[:3], samples[:3])
        except Untranslatable as error:
            why += f"; numba: {error}"
        else:
            e.told(f"law {name}: compiled by numba, as it cannot be traced: {why}")
            return np.concatenate([np.atleast_1d(part) for part in parts]).reshape(count)
    e.told(f"law {name}: asked in Python, as it cannot be traced: {why}")

    def ask(t: float, values: list[Any]) -> list[Any]:
        return [owner_torques(law.torque(t, values[0], values[1], tuple(values[2:]) or None), count)]

    return e.ask_python(ask, given[1:], samples[1:], [np.zeros(count)])[0]
