"""Linear models of loops with sampled blocks, from one period to the next: x[k+1] = A x[k] + B u[k], exactly.

The state is that of the continuous blocks at the beginning of a period, and of the sampled blocks before they tick
there; what such blocks hold is part of it only where it is held from one period into the next. Within a period the
continuous states follow their linear model by the matrix exponential, with sampled states and inputs held, and each
tick is the linear model of what its blocks do: all about the continuous states given, and about the samples that the
blocks have taken of these until then. Outputs are those after the ticks at the beginning of a period, as in a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidValue, NonFinite
from cstormpy.simulation.analysis.model import DifferencedModel, Model
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.named_states import sample_places
from cstormpy.simulation.runner import RunState

#: Times closer than this part of a period are one.
_TOGETHER = 1e-9


@dataclass
class Period:
    """The map of one period: s[k+1] = A s[k] + B u[k], y[k] = C s[k] + D u[k]; names and values of sampled states.

    Outputs and rates are those after the ticks at its beginning.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    y: Array
    rate: Array
    sampled: tuple[str, ...]
    z: Array


def has_inputs(clock: Any) -> bool:
    """Tell whether a block on a clock has inputs; the others are sources of noise and the like."""
    return any(b.nin for b in clock.blocklist)


def _divides(clock: Any, dt: float) -> bool:
    count = round(dt / clock.T)
    return count >= 1 and abs(count * clock.T - dt) <= _TOGETHER * dt


def _ticking(clocks: list[Any], dt: float) -> list[Any]:
    """Return the clocks that tick in a model of a period; sources whose clocks do not divide it hold what they show."""
    return [clock for clock in clocks if has_inputs(clock) or _divides(clock, dt)]


def ticks_within(clocks: list[Any], dt: float, what: str = "linearize: dt") -> list[tuple[float, list[Any]]]:
    """Return when clocks tick within a period, and which of them, in the order of time.

    Raises
    ------
    InvalidValue
        A clock whose period does not divide the one asked for.
    """
    found: list[tuple[float, Any]] = []
    for clock in clocks:
        if not _divides(clock, dt):
            raise InvalidValue(
                f"{what}: expected a whole number of the periods of all clocks, but {clock.name} ticks each "
                f"{clock.T:g} s; got {dt:g} s"
            )
        found += [((clock.offset % clock.T) + k * clock.T, clock) for k in range(round(dt / clock.T))]
    groups: list[tuple[float, list[Any]]] = []
    for when, clock in sorted(found, key=lambda entry: entry[0]):
        if groups and when - groups[-1][0] <= _TOGETHER * dt:
            groups[-1][1].append(clock)
        else:
            groups.append((when, [clock]))
    return groups


def switch_as_sampled(diagram: Diagram, simstate: RunState, t: float, x: Array, dt: float) -> None:
    """Have blocks that switch see what clocks sample at a point, as in a run; samples stay those before the ticks."""
    detectors = deciding(simstate)
    if not detectors:
        return
    before = [(runtime, runtime.state) for runtime in simstate.clock_states.values()]
    held = [(hold, hold.live, hold.values) for hold in diagram.holds.values()]
    for _, clocks in ticks_within(_ticking(diagram.bd.clocklist, dt), dt):
        diagram.sample(clocks, t, x)
        for clock, state in [(clock, diagram.next_state(clock, t)) for clock in clocks]:
            simstate.clock_states[clock].state = state
        diagram.freeze()
        diagram.bind_samples(simstate)
        switch_at(detectors, diagram, t, x)
    for runtime, state in before:
        runtime.state = state
    for hold, live, values in held:
        hold.live, hold.values = live, values
    diagram.bind_samples(simstate)
    diagram.at(t, x)


def switch_at(detectors: list[Any], diagram: Diagram, t: float, x: Array) -> list[Any]:
    """Have blocks switch that are not in the mode which their signals want, and those that these switch in turn.

    Returns those that did.
    """
    switched = []
    for _ in detectors:
        diagram.at(t, x)
        for detector in [detector for detector in detectors if detector(t, x) < 0.0]:
            detector.event_handler(t, x)
            switched.append(detector.block)
            diagram.forget()
    return switched


def switch_where_given(diagram: Diagram, simstate: RunState, t: float, x: Array, dt: float | None) -> None:
    """Have blocks that switch, and states at their bounds, follow values that stand in the place of signals."""
    switch_at(deciding(simstate), diagram, t, x)
    if dt is not None:
        switch_as_sampled(diagram, simstate, t, x, dt)
    diagram.at(t, x)
    diagram.bounds.hold(x)


def deciding(simstate: RunState) -> list[Any]:
    """Return the detectors of blocks whose modes the signals decide."""
    return [
        detector
        for detector, _ in simstate.crossing_detectors
        if getattr(detector, "decided", False) and not isinstance(detector, Bound) and not detector.first
    ]


def whole_period(model: Model | DifferencedModel, t: float, x: Array, u: Array, dt: float) -> Period:
    """Return the linear model of a diagram over one period, about a point.

    Raises
    ------
    DiagramError
        A diagram that cannot be translated, or in which a sampled block moves between its ticks.
    """
    if not isinstance(model, Model):
        reasons = "; ".join(f"{name}: {why}" for name, why in model.differenced)
        raise DiagramError(f"linearize: dt is for diagrams that can be translated, which this one cannot: {reasons}")
    for b, _ in model.program.sampled:
        if getattr(b, "between_ticks", False):
            raise DiagramError(
                f"linearize: block {b.name!r} moves between its ticks, of which a model by dt knows nothing; delay by "
                "samples= and hold that by a ZOH"
            )
    return _Ticking(model, t, x, u).period(dt)


class _Ticking:
    """A diagram about a point, whose sampled states move too."""

    def __init__(self, model: Model, t: float, x: Array, u: Array) -> None:
        self.model, self.t, self.x, self.u = model, t, x, u
        self.n, self.m, self.nz = x.size, u.size, model.program.sampled_size
        #: The samples in force, which ticks change.
        self.z = model.z.copy()
        for b, part in model.program.sampled:
            if hasattr(b, "going_on"):
                self.z[part] = b.going_on(self.z[part])

    def period(self, dt: float) -> Period:
        program, n, columns = self.model.program, self.n, self.model.columns
        size = n + self.nz
        clocks = [clock for clock, _, _ in program.clocks]
        ticking = _ticking(clocks, dt)
        groups = ticks_within(ticking, dt)
        at_once = groups.pop(0)[1] if groups and groups[0][0] <= _TOGETHER * dt else []
        total, now = self._tick(at_once), 0.0
        out, rate, slopes, _ = self._slopes([])
        y = slopes[columns] @ self._with_inputs(total)
        for when, together in groups:
            total = self._flow(when - now) @ self._with_inputs(total)
            total, now = self._tick(together) @ self._with_inputs(total), when
        total = self._flow(dt - now) @ self._with_inputs(total)
        kept = self._kept(total, y, [clock for clock in clocks if clock not in ticking])
        inner = total[np.ix_(kept, kept)]
        places = kept[kept >= n] - n
        values = self.model.z[places]
        B, C, D, names = total[kept, size:], y[:, kept], y[:, size:], self._names(places)
        return Period(inner, B, C, D, out[columns], rate, names, values)

    def _with_inputs(self, rows: Array) -> Array:
        """Return rows of (x, z) as functions of the beginning of the period, with those of the inputs below."""
        return np.vstack([rows, np.eye(self.m, rows.shape[1], rows.shape[1] - self.m)])

    def _tick(self, clocks: list[Any]) -> Array:
        """Have clocks tick; return (x, z) after that as functions of (x, z, u) before it."""
        size = self.n + self.nz
        after, z = np.eye(size, size + self.m), self.z.copy()
        out, _, slopes, _ = self._slopes(clocks)
        for clock, part, first in self.model.program.clocks:
            if clock in clocks:
                last = first + part.stop - part.start
                after[self.n + part.start : self.n + part.stop], z[part] = slopes[first:last], out[first:last]
        self.z = z
        return after

    def _flow(self, span: float) -> Array:
        """Return (x, z) after some time without ticks as functions of (x, z, u)."""
        from scipy.linalg import expm

        size = self.n + self.nz + self.m
        if span <= 0.0:
            return np.eye(size - self.m, size)
        block = np.zeros((size, size))
        block[: self.n] = self._slopes([])[3]
        with np.errstate(over="ignore", invalid="ignore"):
            found = expm(block * span)[: size - self.m]
        if not np.isfinite(found).all():
            raise NonFinite(
                f"linearize: within a period, at t = {self.t:.9g}, a disturbance grows beyond all numbers; "
                "give x= where the slopes are not as steep"
            )
        return found

    def _slopes(self, live: list[Any]) -> tuple[Array, Array, Array, Array]:
        """Return all signals and the rates where some clocks tick, and the derivatives of both to (x, z, u)."""
        model, p, n, nz, m = self.model, self.model.program, self.n, self.nz, self.m
        z, dz = self.z.copy(), np.eye(nz)
        for clock, place in p.flags.items():
            z[place], dz[place] = float(clock in live), 0.0
        failed, out, rate, dout, drate = model.slopes(self.t, self.x, z, self.u, dz)
        if failed or not (np.isfinite(dout).all() and np.isfinite(drate).all()):
            name = p.blocks[failed - 1] if failed else "the diagram"
            raise DiagramError(f"linearize: {name} has no derivative at t = {self.t:.9g} where a clock ticks")
        return out, rate, dout[:, : n + nz + m], drate[:, : n + nz + m]

    def _kept(self, total: Array, y: Array, still: list[Any]) -> NDArray[np.intp]:
        """Return which of (x, z) are states: all but what is held and written anew before it is used.

        A count, or a covariance, which a block has among its states is none either: it is what it is there; nor is what
        blocks have whose clocks stand `still`.
        """
        program, n = self.model.program, self.n
        flags = {n + place for place in program.flags.values()}
        for b, part in [*program.sampled, *program.held]:
            flags.update(range(n + part.start, n + part.stop) if b._clock in still else ())
        for b, part in program.sampled:
            flags.update(range(n + part.start, n + part.stop)[getattr(b, "aside", slice(0))])
        held = {n + k for _, part in program.held for k in range(part.start, part.stop)}
        used = np.any(total != 0.0, axis=0) | np.any(y != 0.0, axis=0)
        return np.array([k for k in range(n + self.nz) if k not in flags and (k not in held or used[k])], dtype=np.intp)

    def _names(self, places: NDArray[np.intp]) -> tuple[str, ...]:
        program = self.model.program
        found = {place: name for name, place in sample_places(program.sampled, program.held).items()}
        return tuple(found[k] for k in places.tolist())
