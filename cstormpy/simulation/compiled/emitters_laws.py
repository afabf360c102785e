"""Emitters of control laws, for CONTROLLER: the formulas are those of `cstormpy.control`, the laws known by name.

A law of your own joins by a method beside its `torque`, which returns expressions for the torques of the motors::

    def emit(self, e, t, q, qd, reference):
        return e.each("-{0} * {1}", e.number(lambda: self.damping), qd[self._motors])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_functions import user_call
from cstormpy.simulation.compiled.emitters_kinematics import mass_matrix
from cstormpy.simulation.compiled.emitters_linalg import solved
from cstormpy.simulation.compiled.emitters_mechanisms import Asked, energies, motion
from cstormpy.simulation.compiled.emitters_own import own_torque
from cstormpy.simulation.compiled.emitters_trajectories import played
from cstormpy.simulation.compiled.registry import Value
from cstormpy.simulation.compiled.tables import Rows, index

__all__ = ["Moment", "is_ready", "law_torque", "limited", "margin_of"]

Values = list[Value]


@dataclass
class Moment:
    """What a law is given: expressions for position, rate, time and, where there are ports for it, the reference."""

    e: Emitter
    q: Value
    qd: Value
    time: Value
    reference: Values | None = None

    def at(self, time: Value) -> Moment:
        """Return the same at another time."""
        return Moment(self.e, self.q, self.qd, time, self.reference)


Torque = Callable[[Moment, Any], Value]


def law_torque(now: Moment, law: Any) -> Value:
    """Return the torques of a law within its limit, (n_a,)."""
    return limited(now.e, _emitter_of(law)(now, law), lambda: law.limit)


def limited(e: Emitter, tau: Value, read: Callable[[], Any]) -> Value:
    """Return torques within ± what is read, which may be None."""
    if not e.depends(lambda: read() is not None):
        return tau
    return e.each(f"{e.call('clipped')}({{0}}, -{{1}}, {{1}})", tau, e.number(read))


def _emitter_of(law: Any) -> Torque:
    kind = type(law)
    known = _LAWS.get(f"{kind.__module__}.{kind.__qualname__}")
    if known is not None:
        return known
    for base in kind.__mro__:
        if "emit" in vars(base):
            return _by_itself
        if "torque" in vars(base):
            break
    return _own


def _own(now: Moment, law: Any) -> Value:
    return own_torque(now.e, law, [now.time, now.q, now.qd, *(now.reference or [])])


def _by_itself(now: Moment, law: Any) -> Value:
    e, foreign = now.e, now.e.foreign
    e.foreign = True
    try:
        return np.asarray(law.emit(e, now.time, now.q, now.qd, now.reference)).reshape(len(law.motors))
    finally:
        e.foreign = foreign


# the laws ---------------------------------------------------------------------------------------------------


def _off(now: Moment, law: Any) -> Value:
    return np.full(len(law.motors), "0.0", dtype=object)


def _still(law: Any) -> Value:
    return np.full(law.mech.n, "0.0", dtype=object)


def _wrapped(e: Emitter, off: Value, law: Any, at: Any = slice(None)) -> Value:
    """Return errors with the angles within half a turn, as `cstormpy.control.goal.wrapped`."""
    turn, per_turn = e.number(law._turn[at]), e.number(law._per_turn[at])
    return e.each(f"{{0}} - {{1}} * {e.call('nearest')}({{0}} * {{2}})", off, turn, per_turn)


def _towards(now: Moment, law: Any, at: Any) -> Value:
    """Return kp (q* - q) - kd q̇ of some joints, by the shorter way round."""
    e = now.e
    off = e.let(e.each("{0} - {1}", now.q[at], e.number(lambda: law.goal[at])))
    kp, kd = e.number(lambda: law.kp), e.number(lambda: law.kd)
    return e.each("-{0} * {1} - {2} * {3}", kp, _wrapped(e, off, law, at), kd, now.qd[at])


def _pumped(now: Moment, law: Any) -> Value:
    """Return ke (E* - E) q̇ of the motors' joints."""
    e = now.e
    kinetic, potential = energies(Asked.fixed(e, law.mech), now.q, now.qd)
    lacking = f"({e.number(lambda: law.goal_energy)} - ({kinetic} + {potential}))"
    return e.each(f"{{0}} * {lacking} * {{1}}", e.number(lambda: law.ke), now.qd[law._motors])


def _pump(now: Moment, law: Any) -> Value:
    return now.e.each("{0} + {1}", _pumped(now, law), _towards(now, law, law._motors))


def _with_active(law: Any, active: tuple[str, ...]) -> Any:
    """Return the mechanism of a law with some joints active, kept as its tables are."""
    key = ("driven", active)
    driven = law.mech._cache.get(key)
    if driven is None:
        driven = law.mech._cache[key] = law.mech.with_drive(active=active)
    return driven


def _linearised(now: Moment, law: Any) -> Value:
    u = _still(law)
    u[law._motors] = _towards(now, law, law._motors)
    _, torques = motion(Asked.fixed(now.e, _with_active(law, law.motors)), now.q, now.qd, u)
    return now.e.each("{0} + {1}", now.e.let(torques[law._motors]), _pumped(now, law))


def _inverse(now: Moment, law: Any, qdd: Value, qd: Value | None = None) -> Value:
    """Return the torques of all joints for accelerations."""
    found = motion(Asked.fixed(now.e, law.mech), now.q, now.qd if qd is None else qd, qdd, "inverse")[1]
    return now.e.let(found)


def _noncollocated(now: Moment, law: Any) -> Value:
    e, motors = now.e, np.flatnonzero(law.mech.actuated_mask)
    steered = np.flatnonzero(~law.mech.actuated_mask)
    qdd = _still(law)
    qdd[steered] = e.let(_towards(now, law, law._steered))
    coupling = mass_matrix(Asked.fixed(e, law.mech), now.q)[np.ix_(steered, motors)]
    coupling = e.let(coupling)
    lacking = e.each("-{0}", _inverse(now, law, qdd)[steered])
    qdd[motors] = e.let(solved(e, coupling, lacking))
    return _inverse(now, law, qdd)[motors]


def _error(now: Moment, law: Any) -> Value:
    """Return e = (q − q*, q̇) of a regulator, with the angles within half a turn."""
    e = now.e
    off = e.let(e.each("{0} - {1}", now.q, e.number(lambda: law.goal)))
    return e.let(np.concatenate([_wrapped(e, off, law), now.qd]))


def _regulator(now: Moment, law: Any) -> Value:
    e = now.e
    return e.each("{0} - {1}", e.number(lambda: law.hold), e.product(e.number(lambda: law.K), _error(now, law)))


def _row(now: Moment, law: Any) -> Value:
    """Return the row of the table of a time-varying regulator at a time: position, rate, torque and gains."""
    e = now.e
    t0, rate, last = e.number(lambda: law.t0), e.number(lambda: law._per_second), len(law.times) - 1
    s = e.let(e.each("({0} - {1}) * {2}", now.time, t0, rate))
    k = index(e, f"{e.call('row_before')}({s}, {last})")
    share = e.let(f"{e.call('clipped')}({s} - {k}, 0.0, 1.0)")
    table = Rows(e, lambda: law._table)
    return e.let(e.each("{0} + {2} * ({1} - {0})", table.at(k), table.at(f"({k} + 1)"), share))


def _error_along(now: Moment, law: Any, row: Value) -> Value:
    """Return e = (q − q_r, q̇ − q̇_r), with the angles within half a turn; a row begins with q_r and q̇_r."""
    e, n = now.e, law.mech.n
    off = e.let(e.each("{0} - {1}", now.q, row[:n]))
    return e.let(np.concatenate([_wrapped(e, off, law), e.each("{0} - {1}", now.qd, row[n : 2 * n])]))


def _along_motion(now: Moment, law: Any) -> Value:
    e, (_, begin, end) = now.e, law._cuts
    row = _row(now, law)
    gain = row[end:].reshape(end - begin, -1)
    return e.each("{0} - {1}", row[begin:end], e.product(gain, _error_along(now, law, row)))


# following --------------------------------------------------------------------------------------------------


def _target(now: Moment, law: Any) -> Values:
    """Return position, rate and acceleration to follow, of all joints or of those that follow."""
    if now.reference is not None:
        return now.reference
    e = now.e
    own = e.depends(lambda: law.reference if callable(law.reference) else None)
    if own is None:
        if law.reference is None:
            raise Untranslatable("its law has nothing to follow")
        return [
            e.number(lambda: law.reference[0]),
            e.number(lambda: law.reference[1]),
            e.number(lambda: law.reference[2]),
        ]
    if f"{type(own).__module__}.{type(own).__qualname__}" == "cstormpy.control.law._Following":
        return _on_curve(now, own)
    parts = user_call(e, own, [now.time], [0.0])
    if len(parts) != 3:
        raise Untranslatable("its law follows a function that does not return position, rate and acceleration")
    return parts


def _on_curve(now: Moment, following: Any) -> Values:
    """Return a motion along a B-spline, as its `evaluate` gives it: at rest outside of its interval."""
    from cstormpy.trajectory.curve import ROUNDING

    e, refuses = now.e, now.e.depends(lambda: following.curve.outside == "refuse")
    t0, t1 = e.number(lambda: following.curve.t0), e.number(lambda: following.curve.t1)
    least = e.number(lambda: ROUNDING * max(abs(following.curve.t0), abs(following.curve.t1)))
    s = e.let(e.each(f"{e.call('clipped')}({{0}}, {{1}}, {{2}})", now.time, t0, t1))
    outside = f"abs({now.time} - {s}) > {least}"
    if refuses:
        e.fail_if(outside)
    moves = e.let(f"0.0 if {outside} else 1.0")
    found = played(e, lambda: following.curve, str(s))
    return [found[0], e.each("{0} * {1}", moves, found[1]), e.each("{0} * {1}", moves, found[2])]


def _feedback(now: Moment, law: Any) -> tuple[Value, Value]:
    """Return kp (q_r - q) + kd (q̇_r - q̇) and q̈_r of the joints that follow."""
    e, at = now.e, law._at
    target = _target(now, law)
    q_r, qd_r, qdd_r = (part if part.shape == (len(law.followed),) else part[at] for part in target)
    form, kp, kd = "{0} * ({1} - {2}) + {3} * ({4} - {5})", e.number(lambda: law.kp), e.number(lambda: law.kd)
    return e.let(e.each(form, kp, q_r, now.q[at], kd, qd_r, now.qd[at])), qdd_r


def _pd(now: Moment, law: Any) -> Value:
    tau, _ = _feedback(now, law)
    if now.e.depends(lambda: law.compensate):
        tau = now.e.each("{0} + {1}", tau, _hold(now, law))
    return tau


def _hold(now: Moment, law: Any) -> Value:
    return _inverse(now, law, _still(law), _still(law))[law._motors]


def _computed_torque(now: Moment, law: Any) -> Value:
    correction, qdd_r = _feedback(now, law)
    return _inverse(now, law, now.e.each("{0} + {1}", qdd_r, correction))


def _hybrid_tracking(now: Moment, law: Any) -> Value:
    correction, qdd_r = _feedback(now, law)
    u, tau = _still(law), np.full(len(law.motors), "0.0", dtype=object)
    u[law._at] = now.e.each("{0} + {1}", qdd_r, correction)
    _, torques = motion(Asked.fixed(now.e, law.mech.with_drive(active=law.followed)), now.q, now.qd, u)
    tau[law._found] = torques[law._at]
    return tau


# phases -----------------------------------------------------------------------------------------------------


def _phase_number(e: Emitter, law: Any) -> Value:
    return e.number(lambda: float(law.mode))


def _swing_up(now: Moment, law: Any) -> Value:
    e, phase = now.e, _phase_number(now.e, law)
    out = e.variables(len(law.motors))
    for k, each in enumerate((law.pump, law.balance)):
        with e.under(f"if {phase} == {k}.0:"):
            e.assign(out, law_torque(now, each))
    return out


def _swing_up_margin(now: Moment, law: Any) -> Value:
    """Return V - threshold while swinging, release - V while balancing."""
    e = now.e
    threshold, release = e.number(lambda: law.threshold), e.number(lambda: law.release)
    value = e.let(_value(now, law.balance))
    form = "{1} - {0} if {3} == 1.0 else {0} - {2}"
    return e.each(form, value, release, threshold, _phase_number(e, law))


def _value(now: Moment, regulator: Any) -> Value:
    """Return V = eᵀ S e of a regulator."""
    e, error = now.e, _error(now, regulator)
    return e.product(error, e.product(e.number(lambda: regulator.S), error))


# the law along an optimised motion --------------------------------------------------------------------------


class _Latest:
    """A law that may be made anew: its attributes are those of what is read now."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read(), name)


def is_ready(law: Any) -> bool:
    """Tell whether all that a law needs is made; the motion of the spline law is found when that is first used."""
    return not _is_spline(law) or law.pump._made is not None


def _is_spline(law: Any) -> bool:
    return f"{type(law).__module__}.{type(law).__qualname__}" == _SPLINE


def _parts(law: Any) -> tuple[_Latest, _Latest, _Latest]:
    """Return the motion, the regulator along it, and that which brakes."""
    parts = law.pump._parts
    return _Latest(lambda: parts()[0]), _Latest(lambda: parts()[1]), _Latest(lambda: parts()[2])


def _spline_swing_up(now: Moment, law: Any) -> Value:
    e, phase, (_, follow, brake) = now.e, _phase_number(now.e, law), _parts(law)
    out = e.variables(len(law.motors))
    with e.under(f"if {phase} == 0.0:"):
        time = e.each("{1} + ({0} - {2})", now.time, e.number(lambda: follow.t0), e.number(lambda: law.begun))
        e.assign(out, limited(e, _along_motion(now.at(e.let(time)), follow), lambda: law.pump.limit))
    with e.under(f"if {phase} == 1.0:"):
        e.assign(out, law_torque(now, law.balance))
    with e.under(f"if {phase} == 2.0:"):
        e.assign(out, limited(e, _regulator(now, brake), lambda: brake.limit))
    return out


def _spline_margin(now: Moment, law: Any) -> Value:
    """Return how far it is to the end of the phase: in V, in the cost to join the motion, or in time."""
    e, phase, (motion_, follow, _) = now.e, _phase_number(now.e, law), _parts(law)
    out = e.variables(1)
    with e.under(f"if {phase} == 2.0:"):
        error = _error_along(now, follow, e.number(lambda: follow._table[0]))
        away = e.product(error, e.product(e.number(lambda: follow.S[0]), error))
        e.assign(out, e.each("{0} - {1}", away, e.number(lambda: law.near)).reshape(1))
    with e.under(f"if {phase} != 2.0:"):
        value = e.let(_value(now, law.balance))
        threshold, release = e.number(lambda: law.threshold), e.number(lambda: law.release)
        end = e.number(lambda: law.begun + motion_.duration)
        form = "{1} - {0} if {3} == 1.0 else min({0} - {2}, {2} * ({4} - {5}))"
        e.assign(out, e.each(form, value, release, threshold, phase, end, now.time).reshape(1))
    return named(out[0])


_SPLINE = "cstormpy.control.spline.SplineSwingUp"
_LAWS: dict[str, Torque] = {
    "cstormpy.control.law.Off": _off,
    "cstormpy.control.swinging.EnergyPump": _pump,
    "cstormpy.control.swinging.EnergyPFL": _linearised,
    "cstormpy.control.swinging.NonCollocated": _noncollocated,
    "cstormpy.control.lqr.LQR": _regulator,
    "cstormpy.control.tvlqr.TVLQR": _along_motion,
    "cstormpy.control.tracking.PD": _pd,
    "cstormpy.control.tracking.GravityCompensation": _hold,
    "cstormpy.control.tracking.ComputedTorque": _computed_torque,
    "cstormpy.control.tracking.HybridTracking": _hybrid_tracking,
    "cstormpy.control.swing_up.SwingUp": _swing_up,
    _SPLINE: _spline_swing_up,
}

#: How far it is to the end of a phase, of the laws that have phases.
_MARGINS: dict[str, Torque] = {"cstormpy.control.swing_up.SwingUp": _swing_up_margin, _SPLINE: _spline_margin}


def margin_of(now: Moment, law: Any) -> Value:
    """Return a number that falls to zero where a law wants to change its phase."""
    kind = type(law)
    margin = _MARGINS.get(f"{kind.__module__}.{kind.__qualname__}")
    if margin is None:
        raise Untranslatable(f"there is no emitter for the phases of the law {kind.__module__}.{kind.__qualname__}")
    return margin(now, law)
