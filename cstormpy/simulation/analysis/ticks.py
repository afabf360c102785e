"""Ticks of clocks in a run with derivatives: one after the other in Python, or many at once by the kernel `propagate`.

What is sampled does not move in time: its tangents after a tick are those of what its blocks make of the signals there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bdsim.components import Clock
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.differences import differenced_function
from cstormpy.simulation.analysis.jumps import moved_jump
from cstormpy.simulation.analysis.located_steps import LocatingRun
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.compiled.slices import fill_samples, hand_samples_back
from cstormpy.simulation.runner import is_jump
from cstormpy.simulation.step_control import SAME_TIME

#: A fixed step that ends so close to the end of a segment, as part of its length, ends there: as in the stepper.
_CRUMB = 1e-9
#: A chosen step that ends so close to the end of a segment, for its time, ends there.
_CLOSE = 1e-12
#: Steps taken at once.
_ROOM = 2048
#: As many clocks have a bit in the number that says which of them tick.
_BITS = 62


class TickingRun(LocatingRun):
    """A run whose states carry tangents, as far as clocks go.

    Attributes
    ----------
    parameters : Parameters
    times : ndarray or None
        Ends of the steps; those of the fixed step of the settings unless given.
    values : ndarray, (k, k)
        How the numbers that the parameters are now follow the parameters.
    """

    parameters: Parameters
    times: Array | None
    values: Array
    _stale: bool
    _owned: dict[int, tuple[int, int]]

    def _bounds(self) -> None:
        self.steps_of.bounds[:] = self.diagram.earliest, self.diagram.latest

    def _ends(self, bounds: Array) -> Array:
        """Return the present time and the ends of the next steps, as many as are taken at once, bounds among them."""
        if self.times is not None:
            first, last = np.searchsorted(self.times, self.t, "right"), np.searchsorted(self.times, bounds[-1])
            all_of_them = last - first <= _ROOM
            ahead = self.times[first : last if all_of_them else first + _ROOM]
            after = np.minimum(np.searchsorted(bounds, ahead), bounds.size - 1)
            close = _CLOSE * np.maximum(1.0, np.abs(bounds[after]))
            begins = np.concatenate([[self.t], bounds])[after]
            ahead = ahead[(ahead - begins > close) & (bounds[after] - ahead > close)]
            reached = bounds if all_of_them else bounds[bounds < ahead[-1]]
            return np.concatenate([[self.t], np.sort(np.concatenate([ahead, reached]))])
        h, ends = float(self.settings.step or self.settings.max_step), [self.t]
        for bound in bounds.tolist():
            while ends[-1] < bound and len(ends) <= _ROOM:
                end = ends[-1] + h
                ends.append(bound if end > bound - _CRUMB * h else end)
        return np.array(ends)

    def _sides(self) -> Array:
        """Return where the guards are, not a number where one has just fired, and their directions.

        And whether stages must not be beyond them.
        """
        before = [math.nan if value is None else value for value in self.crossings.before]
        directions = [float(getattr(d, "direction", 0.0)) for d, _ in self.crossings.detectors]
        return np.array([before, directions, [float(getattr(d, "jumps", False)) for d, _ in self.crossings.detectors]])

    # one tick after the other

    def _serve(self, sources: list[Any]) -> None:
        clocks = clocks_among(sources)
        if self.t == self.start_time:
            moved_jump(self, [s for s in sources if is_jump(s)], [])  # which is noted
        if clocks or any(hold.live for hold in self.diagram.holds.values()):
            self.diagram.sample(clocks, self.t, self.x)
            self._bounds()
            fill_samples(self.steps_of.z, self.program, self.diagram)
            for part, tangents in self._ticked(clocks):
                self.steps_of.dz[:, part] = tangents
            self._hold_tangents()
        self._stale = self._stale or any(callable(s) and not isinstance(s, Clock) and not is_jump(s) for s in sources)
        super()._serve(sources)

    def _ticked(self, clocks: list[Clock]) -> list[tuple[slice, Array]]:
        """Return where in z what ticks stands, and the derivatives (k, nz) of what that is afterwards."""
        s, p, asked = self.steps_of, self.program, {b for clock in clocks for b in clock.blocklist}
        flags = [p.flags[clock] for clock in clocks if clock.blocklist]
        before, s.z[flags] = s.z[flags], 1.0
        failed = s.evaluate(self.t, self.x, self.dx)[0]
        s.z[flags] = before
        found = []
        for clock, part, first in p.clocks:
            if clock in clocks and not failed:
                found.append((part, s.dout[:, first : first + part.stop - part.start].copy()))
                asked.difference_update(clock.blocklist)
        return found + [(part, self._next_tangents(b, part)) for b, part in p.sampled if b in asked]

    def _hold_tangents(self) -> None:
        """Keep the derivatives of the outputs that are held from now on, after they were computed."""
        for b, part in self.program.held:
            if self.diagram.holds[b].live:
                tangents = [self._tangent_of(slot) for slot in b._outport_slots]
                self.steps_of.dz[:, part] = np.concatenate(tangents, axis=1)

    def _next_tangents(self, b: Any, part: slice) -> Array:
        """Return the derivatives (k, nz) of the next state of a sampled block, by central differences."""
        values = [np.asarray(slot.value, dtype=float) for slot in b._inport_slots]
        z = self.diagram.cells[b][0]
        directions = [
            np.moveaxis(self._tangent_of(slot).reshape(-1, *v.shape), 0, -1)
            for slot, v in zip(b._inport_slots, values, strict=True)
        ]
        _, along = differenced_function(
            lambda *u: np.ravel(np.asarray(b.next(self.t, [_number(v) for v in u[:-1]], u[-1]), dtype=float)),
            (*values, z),
            (*directions, self.steps_of.dz[:, part].T),
        )
        rows, given = along.T.copy(), [_number(v) for v in values]
        own = np.array([entry.block is b for entry in self.parameters.entries])
        if own.any():
            slopes = self.parameters.slopes(lambda: np.ravel(np.asarray(b.next(self.t, given, z), dtype=float)))
            rows += self.values[:, own] @ slopes[own]
        return np.asarray(rows)

    def _tangent_of(self, slot: Any) -> Array:
        first, shape = self.program.columns[self._owned[id(slot)]]
        return self.steps_of.dout[:, first : first + int(np.prod(shape))]

    # many ticks at once

    def _can_take_slices(self) -> bool:
        """Tell whether all that ticks is translated, and nobody looks at the signals before a tick."""
        clocks = self.program.clocks
        if not (self.steps_of.compiled and clocks) or self.settings.first_tick == "bdsim" or self._jumps.columns:
            return False
        blocks = sum(len(clock.blocklist) for clock, _, _ in clocks)
        return len(clocks) <= _BITS and blocks == len(self.program.sampled) and self.simstate.stop is None

    def _take_slices(self) -> bool:
        """Take steps with the ticks between them, until something else is due, or one of both is to be looked at."""
        while self._slice():
            pass
        return False

    def _slice(self) -> bool:
        """Take steps with the ticks between them, as many as are taken at once; tell whether to go on so."""
        agenda = self.simstate.eventq.pop_until(math.inf)
        when, which = self._ticks_ahead(agenda)
        went, ticked = self._steps_and_ticks(when, which) if when.size else (False, which)
        counts = {clock: int((ticked >> k & 1).sum()) for k, (clock, _, _) in enumerate(self.program.clocks)}
        for due, source in agenda:
            if counts.get(source):
                state = self.simstate.clock_states[source]
                state.tick += counts[source]
                due = source.time(state.tick - 1)
            self.simstate.declare_event(source, due)
        return went

    def _steps_and_ticks(self, when: Array, which: NDArray[np.int64]) -> tuple[bool, NDArray[np.int64]]:
        """Take steps to ticks; return whether all were taken, and which clocks have ticked, one after the other."""
        d, s, times = self.diagram, self.steps_of, self._ends(when)
        places = np.searchsorted(times, when[when <= times[-1]])
        due = np.zeros(len(times), dtype=np.int64)
        due[places] = which[: places.size]
        d.latest = math.inf
        self._bounds()
        d.earliest = -math.inf
        sides = self._sides()
        taken, kept = s.advance(times, self.x, self.dx, sides, self.columns, due=due)
        self.program.raise_interrupt()
        self.crossings.before = sides[0].tolist()
        if not taken:
            return False, which[:0]
        seen = taken - s.waits
        self.kept.append([times[1 : seen + 1], *(part[:seen] for part in kept), np.zeros((seen, len(self.dx)))])
        self.t, self._aside, self.steps = float(times[taken]), 0, self.steps + taken
        d.forget()
        hand_samples_back(s.z, self.program, d, self.simstate)
        last = slice(max(0, seen - 2), seen)
        self._look_for_bends(times[1 : seen + 1][last], *(part[last] for part in kept[:2]))
        return taken == len(times) - 1, which[: np.count_nonzero(places <= seen)]

    def _ticks_ahead(self, agenda: list[tuple[float, Any]]) -> tuple[Array, NDArray[np.int64]]:
        """Return when clocks tick before anything else is due, and which of them, as bits.

        Those that are due now, or at the end of the run, are none of them.
        """
        clocks = [clock for clock, _, _ in self.program.clocks]
        end = min([due for due, source in agenda if source not in clocks], default=self.end)
        last = min(end, self.end) * (1.0 - SAME_TIME) - SAME_TIME
        found = list[Array]()
        for clock in clocks:
            first = self.simstate.clock_states[clock].tick - 1  # that of the next one, behind which another comes
            ahead = clock.time(np.arange(first, first + _ROOM + 1))
            last = min(last, float(ahead[-1]) - 0.5 * clock.T)
            found.append(ahead)
        when = np.concatenate(found)
        which = np.repeat(1 << np.arange(len(found)), _ROOM + 1)
        order = np.argsort(when, kind="stable")
        order = order[when[order] < last]
        when, which = when[order], which[order]
        close = SAME_TIME * np.maximum(1.0, np.abs(when))
        if not when.size or when[0] <= self.t + close[0]:
            return when[:0], which[:0]
        begins = np.flatnonzero(np.concatenate([[True], np.diff(when) > close[1:]]))
        return when[begins], np.bitwise_or.reduceat(which, begins)


def clocks_among(sources: list[Any]) -> list[Clock]:
    """Return the clocks among what is due."""
    return [s for s in sources if isinstance(s, Clock)]


def _number(value: Array) -> Any:
    return float(value) if value.ndim == 0 else value
