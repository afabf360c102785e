"""Operating points: states and signals at which chosen rates vanish and chosen outputs have their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.linear import chosen_inputs
from cstormpy.simulation.analysis.model import labels, make_model
from cstormpy.simulation.analysis.starting import numbers, started, state_places
from cstormpy.simulation.recording import find_signals

__all__ = ["OperatingPoint", "trim"]

Array = NDArray[np.float64]
#: Largest residual, as part of one plus the largest rate at the start, that counts as none.
REACHED = 1e-9


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """What `Simulation.trim` found.

    Attributes
    ----------
    x : ndarray, (n,)
        States: for ``sim.run(bd, start=point.x)`` and ``sim.linearize(bd, point.x, point.u, inputs=point.inputs)``.
    u : ndarray, (m,)
        Values of the signals that were chosen freely, one behind the other.
    states, inputs, names : tuple of str
        Names of the states, of the ports of these signals, and of the numbers in u.
    success : bool
    message : str
    residual : dict of str to float
        What remains of each condition: the rate of a state, by its name, or an output less its value.
    t : float
    differenced : tuple of (str, str)
        As in `LinearModel`.
    """

    x: Array
    u: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    names: tuple[str, ...]
    success: bool
    message: str
    residual: dict[str, float]
    t: float
    differenced: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Return states, signals and what remains."""
        lines = [self.message]
        lines += [f"  {name} = {value:.9g}" for name, value in zip(self.states, self.x, strict=True)]
        lines += [f"  {name} = {value:.9g}" for name, value in zip(self.names, self.u, strict=True)]
        return "\n".join(lines)


@dataclass
class _Conditions:
    """Which rates and outputs are to have which values."""

    rates: NDArray[np.intp]
    wanted: Array
    outputs: Array
    names: list[str]


def trim(
    sim: Any,
    bd: Any,
    x: Any = None,
    *,
    t: float = 0.0,
    inputs: Any = (),
    u: Any = None,
    hold: Any = (),
    rates: Mapping[Any, Any] | None = None,
    outputs: Mapping[Any, Any] | None = None,
) -> OperatingPoint:
    """Return an operating point of a diagram; see `Simulation.trim`."""
    t = float(numbers(t, 1, "trim: t")[0])
    for what, given_values in (("rates", rates), ("outputs", outputs)):
        if given_values is not None and not isinstance(given_values, Mapping):
            raise InvalidType(
                f"trim: {what}: expected a dict from names to values, as {{'name': 0.0}}, got {given_values!r}"
            )
    with started(sim, bd, x, t, "trim") as (diagram, _, t, state):
        given = chosen_inputs(bd, inputs, u, inputs, "trim")
        watched = [s for name in outputs or {} for s in find_signals(bd, [name], "trim: outputs")]
        model = make_model(diagram, given, watched)
        if not model.exact:
            notice(
                f"trim: by differences, as {model.differenced[0][0]} can not be translated: {model.differenced[0][1]}"
            )
        idle = _idle(bd, model, t, state, given)
        wanted = _conditions(bd, rates or {}, watched, outputs or {}, idle)
        free = np.ones(state.size, dtype=bool)
        for name in [hold] if isinstance(hold, str) else hold:
            free[state_places(bd, name, "trim: hold")] = False
        start = np.concatenate([*(i.value for i in given), np.zeros(0)])
        if not free.any() and not start.size:
            raise InvalidValue("trim: nothing is free: all states are held, and there are no inputs")
        found, residual, scale = _solve(model, t, state, start, free, wanted)
        left = {name: float(value) for name, value in zip(wanted.names, residual, strict=True)}
        worst = max(left, key=lambda name: abs(left[name]), default="")
        success = not left or abs(left[worst]) <= REACHED * scale
        message = "an operating point" if success else f"no operating point was found: {_told(left)} remains"
        if not success:
            notice(f"trim: {message}; begin nearer to one, free more inputs, or ask for less")
        return OperatingPoint(
            x=found[: state.size],
            u=found[state.size :],
            states=tuple(bd.statenames),
            inputs=tuple(i.signal.name for i in given),
            names=tuple(name for i in given for name in labels(i.signal)),
            success=success,
            message=message,
            residual=left,
            t=t,
            differenced=tuple(model.differenced),
        )


def _told(left: dict[str, float]) -> str:
    largest = sorted(left, key=lambda name: -abs(left[name]))[:3]
    return ", ".join(f"{name} = {left[name]:.3g}" for name in largest)


def _conditions(
    bd: Any, rates: Mapping[Any, Any], watched: list[Any], outputs: Mapping[Any, Any], idle: list[int]
) -> _Conditions:
    n = len(bd.statenames)
    kept, values = np.ones(n, dtype=bool), np.zeros(n)
    kept[idle] = False
    for name, value in rates.items():
        at = state_places(bd, name, "trim: rates")
        if value is None:
            kept[at] = False
        else:
            kept[at], values[at] = True, numbers(value, len(at), f"trim: rates[{name!r}]")
    sizes = [np.size(s.slot.value) for s in watched]
    flat = []
    for name, value in outputs.items():
        size = sum(np.size(s.slot.value) for s in find_signals(bd, [name]))
        flat.append(numbers(value, size, f"trim: outputs[{name!r}]"))
    names = [f"rate of {name}" for name, keep in zip(bd.statenames, kept, strict=True) if keep]
    names += [name for s in watched for name in labels(s)]
    assert sum(sizes) == sum(part.size for part in flat)
    return _Conditions(np.flatnonzero(kept), values[kept], np.concatenate([*flat, np.zeros(0)]), names)


def _idle(bd: Any, model: Any, t: float, state: Array, given: list[Any]) -> list[int]:
    """Return the states that only add up, as that of an EFFORT: no rate and no other block but sinks looks at them."""
    slopes = model.jacobians(t, state, np.concatenate([*(i.value for i in given), np.zeros(0)])).A
    found = []
    for b in bd.blocklist:
        if b.blockclass == "continuous":
            at = state_places(bd, b, "trim")
            ends = [wire.end.block for wire in bd.wirelist if wire.start.block is b]
            if not slopes[:, at].any() and not any(end.nout for end in ends):
                found += at
    return found


def _solve(
    model: Any, t: float, state: Array, start: Array, free: Array, wanted: _Conditions
) -> tuple[Array, Array, float]:
    """Return states and inputs, what remains of the conditions, and what they are measured by."""
    from scipy.optimize import least_squares

    whole = np.concatenate([state, start])
    moving = np.flatnonzero(np.concatenate([free, np.ones(start.size, dtype=bool)]))
    last: dict[str, Any] = {}

    def look(v: Array) -> Any:
        if last.get("at") != v.tobytes():
            point = whole.copy()
            point[moving] = v
            last["at"], last["j"] = v.tobytes(), model.jacobians(t, point[: state.size], point[state.size :])
        return last["j"]

    def residual(v: Array) -> Array:
        j = look(v)
        return np.concatenate([j.rate[wanted.rates] - wanted.wanted, j.y - wanted.outputs])

    def slope(v: Array) -> Array:
        j = look(v)
        rows = np.vstack([np.hstack([j.A, j.B])[wanted.rates], np.hstack([j.C, j.D])])
        return rows[:, moving]

    begin = whole[moving]
    scale = 1.0 + float(np.abs(residual(begin)).max(initial=0.0))
    best = least_squares(residual, begin, slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200)
    whole[moving] = best.x
    return whole, residual(best.x), scale
