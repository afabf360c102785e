"""Emitter of CONTROLLER: its laws, of which the numbers choose one, its blend and its zero crossings.

All laws stand in the source, so that a swap or another phase changes numbers only. The formulas are those of
`cstormpy.control`; laws and block are known by name, simulation does not import the block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_mechanisms import energies, motion, vector
from cstormpy.simulation.compiled.registry import Value, emits, emits_guard

__all__: list[str] = []

Values = list[Value]
Torque = Callable[[Emitter, Any, Value, Value], Value]
_CONTROLLER = "cstormpy.blocks.controllers.Controller"


def _limited(e: Emitter, tau: Value, limit: Any) -> Value:
    if limit is None:
        return tau
    e.call("clipped")
    return e.each("clipped({0}, -{1}, {1})", tau, e.number(limit))


def _law(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    """Return the torques of a law within its limit, (n_a,)."""
    torque = _LAWS.get(f"{type(law).__module__}.{type(law).__qualname__}")
    if torque is None:
        raise Untranslatable(f"there is no emitter for the law {type(law).__module__}.{type(law).__qualname__}")
    return _limited(e, torque(e, law, q, qd), law.limit)


def _off(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    return np.full(len(law.motors), "0.0", dtype=object)


def _wrapped(e: Emitter, error: Value, turn: Any, per_turn: Any) -> Value:
    """Return errors with the angles within half a turn, as `cstormpy.control.formulas.wrapped`."""
    return e.each(f"{{0}} - {{1}} * {e.call('nearest')}({{0}} * {{2}})", error, e.number(turn), e.number(per_turn))


def _towards(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    """Return kp (q* - q) - kd q̇ of the motors' joints, by the shorter way round."""
    a = law._motors
    off = e.let(e.each("{0} - {1}", q[a], e.number(law.goal[a])))
    error = _wrapped(e, off, law._turn[a], law._per_turn[a])
    return e.each("-{0} * {1} - {2} * {3}", e.number(law.kp), error, e.number(law.kd), qd[a])


def _pumped(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    """Return ke (E* - E) q̇ of the motors' joints."""
    kinetic, potential = energies(e, law.mech, q, qd)
    lacking = f"({e.number(law.goal_energy)} - ({kinetic} + {potential}))"
    return e.each(f"{{0}} * {lacking} * {{1}}", e.number(law.ke), qd[law._motors])


def _pump(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    return e.each("{0} + {1}", _pumped(e, law, q, qd), _towards(e, law, q, qd))


def _linearised(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    u = np.full(law.mech.n, "0.0", dtype=object)
    u[law._motors] = _towards(e, law, q, qd)
    driven = law.mech._cache.get(("driven", law.motors))
    if driven is None:  # kept as the tables of a mechanism are
        driven = law.mech._cache["driven", law.motors] = law.mech.with_drive(active=law.motors)
    _, torques = motion(e, driven, q, qd, u)
    return e.each("{0} + {1}", e.let(torques[law._motors]), _pumped(e, law, q, qd))


def _error(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    off = e.let(e.each("{0} - {1}", q, e.number(law.goal)))
    return e.let(np.concatenate([_wrapped(e, off, law._turn, law._per_turn), qd]))


def _regulator(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    return e.each("{0} - {1}", e.number(law.hold), e.product(e.number(law.K), _error(e, law, q, qd)))


def _pd(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    if callable(law.reference):
        raise Untranslatable("its law follows a function of time")
    at = law._at
    q_r, qd_r, _ = (part if len(part) == len(law.followed) else part[at] for part in law.reference)
    form = "{0} * ({1} - {2}) + {3} * ({4} - {5})"
    tau = e.each(form, e.number(law.kp), e.number(q_r), q[at], e.number(law.kd), e.number(qd_r), qd[at])
    if law.compensate:
        still = np.full(law.mech.n, "0.0", dtype=object)
        _, hold = motion(e, law.mech, q, still, still, "inverse")
        tau = e.each("{0} + {1}", tau, hold[law._motors])
    return tau


def _swing_up(e: Emitter, law: Any, q: Value, qd: Value) -> Value:
    out, phase = e.variables(len(law.motors)), e.number(law.mode)
    for k, each in enumerate((law.pump, law.balance)):
        with e.under(f"if {phase} == {k}.0:"):
            e.assign(out, _law(e, each, q, qd))
    return out


_LAWS: dict[str, Torque] = {
    "cstormpy.control.law.Off": _off,
    "cstormpy.control.swinging.EnergyPump": _pump,
    "cstormpy.control.swinging.EnergyPFL": _linearised,
    "cstormpy.control.lqr.LQR": _regulator,
    "cstormpy.control.tracking.PD": _pd,
    "cstormpy.control.swing_up.SwingUp": _swing_up,
}


@emits(_CONTROLLER)
def _controller(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if block._by_signal or block._targets is not None:
        raise Untranslatable("has ports for a selecting signal or a reference")
    laws, n = block.laws, block._mech.n
    q, qd = (vector(value, n) for value in u[:2])
    tau, active = e.variables(len(laws.step)), e.number(laws.active)
    for k, law in enumerate(laws.laws.values()):
        with e.under(f"if {active} == {k}.0:"):
            try:
                e.assign(tau, _law(e, law, q, qd))
            except Untranslatable:
                if k == laws.active:
                    raise
                e.fail_if("True")
    since, until, step = e.number(laws.since), e.number(laws.until), e.number(laws.step)
    with e.under(f"if t < {until}:"):
        share = e.let(e.each("1.0 if t <= {0} else 1.0 - (t - {0}) / ({1} - {0})", since, until))
        e.assign(tau, e.each("{0} + {1} * {2}", tau, share, step))
    return [_limited(e, tau, laws.limit)[block._commanded], e.number(laws.mode)]


@emits_guard(_CONTROLLER)
def _controller_guard(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    quantity = getattr(getattr(detector, "_quantity", None), "__name__", "")
    laws = block.laws
    if quantity == "_blend_left":
        since, until = e.number(laws.since), e.number(laws.until)
        return e.each("{1} - t if {1} > {0} else 1.0", since, until)
    if quantity == "_request_margin":
        e.pending.append(lambda: block._request is not None)
        return named("1.0")
    if quantity != "_phase_margin":
        raise Untranslatable("has a zero crossing that is not known")
    return _phase_margin(e, laws, *(vector(value, block._mech.n) for value in u[:2]))


def _phase_margin(e: Emitter, laws: Any, q: Value, qd: Value) -> Value:
    out, active = e.variables(1), e.number(laws.active)
    e.assign(out, named(["1.0"]))
    for k, law in enumerate(laws.laws.values()):
        if len(law.modes) == 1:
            continue
        with e.under(f"if {active} == {k}.0:"):
            if _LAWS.get(f"{type(law).__module__}.{type(law).__qualname__}") is not _swing_up:
                e.fail_if("True")
                continue
            error = _error(e, law.balance, q, qd)
            value = e.let(e.product(error, e.product(e.number(law.balance.S), error)))
            phase, threshold, release = e.number(law.mode), e.number(law.threshold), e.number(law.release)
            e.assign(
                out, np.atleast_1d(e.each("{1} - {0} if {3} == 1.0 else {0} - {2}", value, release, threshold, phase))
            )
    return named(out[0])
