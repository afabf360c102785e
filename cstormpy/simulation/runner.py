"""Runs a compiled diagram: steps, ticks, jumps and events in the order of time, sinks served as time advances.

Time is cut into segments at which something is scheduled: the tick of a clock, the jump of a source, a function of the
user. A segment ends exactly there; blocks are never asked for a time beyond its end, so that no stage of a step sees
the jump. At the end of a segment all that is due is done, and the next begins with the derivative computed anew.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections.abc import Callable
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.components import Clock
from bdsim.graphics_block import GraphicsBlock
from bdsim.run_sim import BDSimState
from numpy.typing import NDArray

from cstormpy.errors import BlockError, CstormError, DiagramError
from cstormpy.reporting import notice, notice_once
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.crossings import Crossings
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.recording import Recording
from cstormpy.simulation.repeatability import said_of, unrepeatable
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.steppers import StepFailed, Stepper, make_stepper
from cstormpy.simulation.wiring import describe

__all__ = ["Run", "RunState"]

Array = NDArray[np.float64]

#: Scheduled times closer than this (relative, and in seconds below one second) are one.
SAME_TIME = 1e-12
#: A source is taken to jump within so many units in the last place of its declared time.
JUMP_WIDTH = 8
#: So many events of one block within so short a time (as SAME_TIME) are chattering, or accumulate as those of a ball
#: that comes to rest: soon they would lie closer together than time can resolve, and one of them would be missed.
_CHATTER = ((100, 1e-7), (4, 1e-8))
#: After so many steps their length is looked at; a part of the longest that small is said.
_MANY, _SHORT = 2000, 1e-4
#: bdsim's own plots are redrawn from all their data at each point, so they get at most so many in a run.
_GRAPHICS_POINTS = 200


class RunState(BDSimState):
    """The run as blocks know it: bdsim's state, with signals looked up in our evaluation."""

    def __init__(self, diagram: Diagram) -> None:
        super().__init__()
        self.diagram = diagram

    def ensure_event_probe_evaluated(self, bd: Any, t: float, y: Any) -> None:
        """Compute all signals at (t, y) unless they stand there already."""
        self.diagram.at(t, y)


class Run:
    """One run of a diagram.

    After `go` the attributes t, x say where it stands, `status` and `message` how it ended, `events` which zero
    crossings were met, as pairs of time and name of the block.
    """

    def __init__(
        self,
        diagram: Diagram,
        simstate: RunState,
        recording: Recording,
        settings: Settings,
        commands: queue.SimpleQueue[Callable[[], object]],
        watchers: list[Callable[[float, Array], None]],
    ) -> None:
        self.diagram, self.simstate, self.recording, self.settings = diagram, simstate, recording, settings
        self.commands, self.watchers = commands, watchers
        self.t, self.x = 0.0, np.zeros(diagram.nstates)
        self.end = 0.0
        self.status, self.message = "finished", "reached the end"
        self.error: CstormError | None = None
        self.events: list[tuple[float, str]] = []
        self.steps = 0
        #: What Ctrl-C does.
        self.interrupts = Interrupts()
        #: Whether it goes on from where another run stood, which has done what was due there.
        self.resumed = False
        self._graphics_at = -math.inf
        self._grid = self._first_point = 0
        #: How many steps had been taken, and when it was, when their length was looked at last.
        self._looked: tuple[int, float] | None = (0, 0.0)

    # what is asked of the outside

    def begin(self, t: float, x: Array, step: float) -> None:
        """Stand at the start, with all that is due there done."""
        self.t, self.x, self.start_time = t, self._within_bounds(x), t
        # points of the grid are multiples of its width also where a run goes on; the start is the first one in any case
        self._grid = self._first_point = int(t / self.settings.grid + 1e-9) if self.settings.grid else 0
        self._looked = (0, t)
        self.end = t + self.settings.T
        self.crossings = Crossings(self.simstate.crossing_detectors)
        nothing_between = not self.diagram.nstates and not self.crossings.detectors and not self.settings.grid
        self._only_ticks = nothing_between and bool(self.diagram.bd.clocklist)
        self.stepper = self._make_stepper(step)
        self.diagram.bind_samples(self.simstate)
        self._look_at_repeats(t, self.x)

    def _look_at_repeats(self, t: float, x: Array, remembering: bool = False) -> None:
        """Refuse a block that gives different values for the same time, where states follow it; fixed steps take it."""
        try:
            block = unrepeatable(self.diagram, t, x, remembering)
        except CstormError:  # what fails is said by the run
            return
        if block is None:
            return
        if self.settings.step is None:
            raise BlockError(said_of(block, "and a state follows it: no step is short enough for a solver's tolerance"))
        notice_once(said_of(block, "and a state follows it: each stage of a step gets another value"))

    def _within_bounds(self, x: Array) -> Array:
        """Return the state at the start within its bounds, and say where it was not."""
        inside = self.diagram.bounds.within(x)
        for bound in self.diagram.bounds:
            k = bound.place
            if inside[k] != x[k]:
                name = self.diagram.bd.statenames[k]
                notice_once(f"state {name!r} begins at its limit, {inside[k]:g}, not beyond it at {x[k]:g}")
        return inside

    def _make_stepper(self, step: float) -> Stepper:
        s = self.settings
        if self.diagram.nstates == 0:
            length = math.inf if self._only_ticks else s.step or s.max_step
            return make_stepper(self.diagram.derivative, "Euler", s.rtol, s.atol, s.max_step, length, {})
        stepper = make_stepper(self.diagram.derivative, s.solver, s.rtol, s.atol, s.max_step, s.step, s.solver_args)
        if step > 0.0 and s.step is None:
            stepper.h = step
        return stepper

    def go(self) -> None:
        """Run to the end, or until a block, an error or the user ends it; the data until then is kept.

        From its end on Ctrl-C is held.
        """
        try:
            self._go_or_fail()
            self.interrupts.hold()
        except KeyboardInterrupt:
            self.interrupts.hold()
            if self.error is None:
                self.status, self.message = "interrupted", f"interrupted at t = {self.t:.6g}"

    def _go_or_fail(self) -> None:
        try:
            self.steps_to_end()
        except StepFailed as failure:
            self.t, self.x = self.stepper.t, self.stepper.x
            self._fail(self._why_no_step(failure))
        except CstormError as error:
            self._fail(error)

    def _why_no_step(self, failure: StepFailed) -> CstormError:
        """Return why the solver cannot go on."""
        try:
            self._look_at_repeats(self.t, self.x, remembering=True)
        except CstormError as error:
            return error
        return self.diagram.why_no_step(self.t, self.x, failure, self.settings.atol)

    def _fail(self, error: CstormError) -> None:
        self.status, self.message, self.error = "failed", str(error), error

    def limit_step(self, longest: float) -> None:
        """Take no step longer than this from now on; steps of fixed length stay as they are."""
        self.stepper.limit(longest)

    def state(self) -> SavedState:
        """Return where the run stands, to go on from."""
        return SavedState.of(self.diagram, self.simstate, self.t, self.x, self.stepper.h)

    # the loop

    def steps_to_end(self) -> None:
        """Step from event to event until the end, or until a block stops the run."""
        due = self._due(self.t)
        if self.diagram.holds:
            self.diagram.at(self.t, self.x)
        self._serve(due)
        self.diagram.freeze()
        self._begin_segment(any(_jumps(s) for s in due))
        fired = self.crossings.start(self.t, self.x, self.resumed or self.t > 0.0)
        if fired:
            self._event(self.t, self.x, fired)
        else:
            self._observe(at_boundary=True)
        self._commanded()
        while self.t < self.end and self.simstate.stop is None:
            if self._can_glide():
                met = self._glide()
                if self._commanded() or met:
                    continue
            bound, sources = self._next_boundary()
            reached = self._segment(bound, sources)
            if not reached:
                for source in sources:
                    self.simstate.declare_event(source, bound)
                continue
            self._boundary(sources)
        if self.simstate.stop is not None:
            self.status = "stopped"
            stop = self.simstate.stop
            self.message = f"stopped at t = {self.t:.6g} by {describe(stop) if isinstance(stop, Block) else stop}"

    def _segment(self, bound: float, sources: list[Any]) -> bool:
        """Step to a boundary; False where an event or a command ended the segment before."""
        d = self.diagram
        self._look_up_to(bound, sources)
        if self._only_ticks:
            self._leap(bound)
            return True
        while self.t < bound:
            self.stepper.step(bound)
            self.steps += 1
            crossing = self.crossings.first(self.stepper) if self.crossings.detectors else None
            if crossing is not None:
                self._grid_points(crossing[0], bound)
                self._event(*crossing)
                return self.t >= bound and self.simstate.stop is None
            self._grid_points(self.stepper.t, bound)
            self.t, self.x = self.stepper.t, self.stepper.x
            d.earliest = -math.inf
            if d.closed:
                self._close_loops()
            if self.t < bound:
                self._observe()
                self._look_at_length()
                if self._commanded() or self.simstate.stop is not None or self._can_glide():
                    return False
        return True

    def _close_loops(self) -> None:
        """Take away what the last step has let the loops of mechanisms drift apart."""
        x = self.x.copy()
        for block, part in self.diagram.closed:
            x[part] = block.projected(x[part])
        if not np.array_equal(x, self.x):
            self.x = x
            self.stepper.restart(self.t, x)

    def _look_at_length(self) -> None:
        """Say once that an adaptive solver hardly gets on, and what makes it so slow."""
        if self._looked is None or self.steps < self._looked[0] + _MANY:
            return
        steps, since = self._looked
        self._looked = (self.steps, self.t)
        longest = min(self.settings.max_step, self.settings.T)
        length = (self.t - since) / (self.steps - steps)
        if self.settings.step is not None:
            return
        short = length < _SHORT * longest
        self._look_at_repeats(self.t, self.x, remembering=short)
        if short:
            self._looked = None
            with contextlib.suppress(CstormError):  # what a block cannot be asked ahead of time ends no run
                why = self.diagram.why_short_steps(self.t, self.x, length, self.settings.atol)
                notice(f"steps of {length:.2g} s since t = {since:.6g}: {why}")
            self.diagram.forget()

    def _can_glide(self) -> bool:
        """Tell whether many steps may be taken at once from where the run stands."""
        return False

    def _glide(self) -> bool:
        """Take many steps at once, until the next one is to be looked at or something is due that is not done so.

        Returns whether an event was met instead, and dealt with.
        """
        return False

    def _leap(self, bound: float) -> None:
        """Go to a boundary where nothing changes on the way."""
        self.t = bound
        self.stepper.t = bound

    def _boundary(self, sources: list[Any]) -> None:
        """Do what is due at the end of a segment, and begin the next."""
        d = self.diagram
        jumped = any(_jumps(s) for s in sources)
        ticks = any(isinstance(s, Clock) for s in sources)
        as_bdsim = self.settings.first_tick == "bdsim"
        if jumped and not as_bdsim and not self.settings.grid and self.recording.last < self.t:
            d.forget()
            self._observe(at_boundary=True)
        d.latest = math.inf
        self._look_beyond(jumped)
        if as_bdsim and ticks:
            self._observe(at_boundary=True)
        self._serve(sources)
        self._begin_segment(jumped)
        fired = self.crossings.jumped(self.t, self.x) if self.crossings.detectors else []
        if fired:
            self._event(self.t, self.x, fired, jumped)
        elif not (as_bdsim and ticks):
            self._observe(at_boundary=True)
        self._commanded(jumped)

    def _begin_segment(self, jumped: bool) -> None:
        """Compute the derivative anew where the run stands."""
        self._look_beyond(jumped)
        self._hold_or_free()
        self.stepper.restart(self.t, self.x)
        self.diagram.at(self.t, self.x)

    def _hold_or_free(self) -> bool:
        """Put states within their bounds, and decide which are held there; return whether that changes any rate."""
        bounds = self.diagram.bounds
        if not bounds:
            return False
        self.x = bounds.within(self.x)
        self.diagram.at(self.t, self.x)
        changed = False
        for i, (bound, _) in enumerate(self.simstate.crossing_detectors):
            if isinstance(bound, Bound) and bound.decide(self.x):
                self.crossings.before[i], changed = bound(self.t, self.x), True
        return changed

    def _look_up_to(self, bound: float, sources: list[Any]) -> None:
        """Let blocks see no time at or behind the next jump."""
        jumps = any(_jumps(s) for s in sources)
        self.diagram.latest = bound - JUMP_WIDTH * float(np.spacing(bound)) if jumps else math.inf

    def _look_beyond(self, jumped: bool) -> None:
        """Let blocks see the time behind a jump; clocks that tick there sample what the source jumps to."""
        d = self.diagram
        d.earliest = self.t + JUMP_WIDTH * float(np.spacing(self.t)) if jumped else -math.inf
        d.forget()

    def _next_boundary(self) -> tuple[float, list[Any]]:
        """Return the next scheduled time, at most the end, and what is due then."""
        tolerance = SAME_TIME * max(1.0, abs(self.t))
        while True:
            when, sources = self.simstate.eventq.pop(dt=tolerance)
            if when is None:
                return self.end, []
            if when > self.end + tolerance:
                for source in sources:
                    self.simstate.declare_event(source, when)
                return self.end, []
            due = [s for s in sources if s is not None]
            if due:  # what an event has come just before is late by less than the tolerance
                return max(self.t, self.end if abs(when - self.end) <= tolerance else float(when)), due

    def _due(self, t: float) -> list[Any]:
        """Return what is scheduled up to a time."""
        pending = self.simstate.eventq.pop_until(t + SAME_TIME * max(1.0, abs(t)))
        return [source for _, source in pending if source is not None]

    def _serve(self, sources: list[Any]) -> None:
        """Let clocks tick, all from the same signals, and call what was scheduled."""
        d, simstate = self.diagram, self.simstate
        clocks = [s for s in sources if isinstance(s, Clock)]
        if clocks:
            d.sample(clocks, self.t, self.x)
            updates = [(clock, d.next_state(clock, self.t)) for clock in clocks]
            for clock, state in updates:
                clock.savestate(self.t, simstate, x=state)
                clock.next_event(simstate)
            d.freeze()
            d.bind_samples(simstate)
        for source in sources:
            if callable(source) and not isinstance(source, (Clock, Block)):
                d.at(self.t, self.x)
                self._call("a scheduled function", source, self.t, simstate)
                d.forget()

    def _call(self, what: str, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function of the user; what it raises ends the run, whose data is kept."""
        try:
            function(*arguments)
        except Exception as error:
            reason = str(error) if isinstance(error, CstormError) else f"{type(error).__name__}: {error}"
            raise BlockError(f"{what} failed at t = {self.t:.9g}: {reason}") from error

    # events

    def _event(self, t: float, x: Array, fired: list[int], jumped: bool = False) -> None:
        """Stand at a zero crossing, let the blocks handle it, and begin anew behind it."""
        d, simstate = self.diagram, self.simstate
        x = self._arrived(x, fired)
        self.t, self.x = t, x
        self._look_beyond(jumped)
        d.at(t, x)
        states = d.bd.state_map(x.copy(), simstate)
        for i in fired:
            detector, block = simstate.crossing_detectors[i]
            self.events.append((t, str(block.name)))
            if not isinstance(detector, Bound):
                self._handle(block, t, x, states)
        after = self._states_after(states)
        if not np.array_equal(after, x) and not self.settings.grid:
            self._observe(at_boundary=True)
        self.x = after
        d.bind_samples(simstate)
        self._check_chatter()
        # events that come ever faster, as those of a ball that comes to rest, would else be stepped over
        since = t - (self.events[-len(fired) - 1][0] if len(self.events) > len(fired) else self.start_time)
        if since > 0.0:
            self.stepper.h = min(self.stepper.h, since)
        self._begin_segment(jumped)
        further = self.crossings.rearm(self.t, self.x, fired)
        if further:  # as where one switch works another
            self._event(self.t, self.x, further, jumped)
        else:
            self._observe(at_boundary=True)

    def _arrived(self, x: Array, fired: list[int]) -> Array:
        """Return a state in which those that have just reached a bound stand exactly there."""
        bounds = [self.simstate.crossing_detectors[i][0] for i in fired]
        reached = [bound for bound in bounds if isinstance(bound, Bound) and not bound.side]
        if not reached:
            return x
        out = x.copy()
        for bound in reached:
            out[bound.place] = bound.nearest(float(x[bound.place]))
        return out

    def _states_after(self, states: dict[Any, Any]) -> Array:
        """Return the continuous states that event handlers have left."""
        parts = [(b, np.asarray(states[b], dtype=float).reshape(-1)) for b, _ in self.diagram.continuous]
        for b, part in parts:
            if part.size != b.nstates:
                raise DiagramError(
                    f"{describe(b)}: has {b.nstates} states, an event handler left {part.size}; "
                    "write into the array, as in states[block][:] = ..."
                )
        return np.concatenate([part for _, part in parts]) if parts else np.zeros(0)

    def _handle(self, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        handler = getattr(block, "event_handler", None) or getattr(block, "on_event", None)
        if handler is None:
            return
        try:
            handler(t, x, states, self.simstate)
        except Exception as error:
            raise self.diagram.failure(getattr(block, "block", block), "event handler", t, error) from error

    def _check_chatter(self) -> None:
        for count, span in _CHATTER:
            name = self.events[-1][1]
            times = [t for t, block in self.events[-2 * count :] if block == name][-count:]
            if len(times) == count and times[-1] - times[0] <= span * max(1.0, abs(self.t)):
                raise DiagramError(
                    f"{name}: {count} events within {times[-1] - times[0]:.3g} s at t = {self.t:.9g}; the signal "
                    "chatters about zero: give the switch a hysteresis, or let the event move the state away"
                )

    # what is seen from outside

    def _observe(self, at_boundary: bool = False) -> None:
        """Record the point where the run stands, and show it to the sinks."""
        d = self.diagram
        d.at(self.t, self.x)
        self._check_finite()
        if not self.settings.grid:
            self.recording.add(self.t, self.x)
        elif at_boundary and self._on_grid(self.t):
            self._record_grid(self.t, self.x)
        if not self.settings.sinks_on_grid:
            self._sinks(self.t)
        for watch in self.watchers:
            self._call("the observer", watch, self.t, self.x)

    def _on_grid(self, t: float) -> bool:
        """Whether the next point of the grid, or the last of the run, is at this time."""
        last = t >= self.end or self.simstate.stop is not None
        return last or abs(self._grid_time(self._grid) - t) <= SAME_TIME * max(1.0, abs(t))

    def _grid_time(self, k: int) -> float:
        return k * (self.settings.grid or math.inf) if k > self._first_point else self.start_time

    def _grid_points(self, until: float, bound: float) -> None:
        """Record the points of the grid within the last step, up to a time; the end of the segment is seen later."""
        if not self.settings.grid:
            return
        dense = None
        tolerance = SAME_TIME * max(1.0, abs(until))
        while self._grid_time(self._grid) < until - tolerance:
            t = self._grid_time(self._grid)
            dense = dense or self.stepper.dense()
            x = dense(t) if self.diagram.nstates else self.x
            self.diagram.evaluate(t, x)
            self._record_grid(t, x)
        if until < bound and abs(self._grid_time(self._grid) - until) <= tolerance and until == self.stepper.t:
            self.diagram.at(until, self.stepper.x)
            self._record_grid(until, self.stepper.x)

    def _record_grid(self, t: float, x: Array) -> None:
        if self._grid and t <= self.recording.last:
            return
        self.recording.add(t, x)
        self._grid += 1
        if self.settings.sinks_on_grid:
            self._sinks(t)

    def _sinks(self, t: float) -> None:
        self.simstate.t = t
        for b in self.diagram.sinks:
            if isinstance(b, GraphicsBlock):
                if t < self._graphics_at and t < self.end:
                    continue
            try:
                b.step(t, [s.value for s in b._inport_slots])
            except Exception as error:
                raise self.diagram.failure(b, "step", t, error) from error
        if t >= self._graphics_at:
            self._graphics_at = t + self.settings.T / _GRAPHICS_POINTS

    def _check_finite(self) -> None:
        if not self.settings.check_finite:
            return
        bad = self.diagram.not_finite()
        if bad is not None:
            raise BlockError(
                f"{bad} at t = {self.t:.9g}; the run ends there. Look at what this block computes from its inputs"
            )

    def _commanded(self, jumped: bool = False) -> bool:
        """Carry out what was asked from outside; True where that was anything."""
        if self.commands.empty():
            return False
        while not self.commands.empty():
            self._call("a posted function", self.commands.get())
        self._begin_segment(jumped)
        crossed = self.crossings.rearm(self.t, self.x, []) if self.crossings.detectors else []
        if crossed:
            self._event(self.t, self.x, crossed, jumped)
        return True


def _jumps(source: Any) -> bool:
    """Whether something scheduled is the jump of a source, and not a clock or a function to call."""
    return isinstance(source, Block)
