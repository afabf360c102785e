"""Runs a compiled diagram: steps, ticks, jumps and events in the order of time, sinks served as time advances.

Time is cut into segments at which something is scheduled: the tick of a clock, the jump of a source, a function of the
user. A segment ends exactly there; blocks are never asked for a time beyond its end, so that no stage of a step sees
the jump. At the end of a segment all that is due is done, and the next begins with the derivative computed anew.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.components import Clock
from bdsim.run_sim import BDSimState

from cstormpy.arrays import Array
from cstormpy.errors import BlockError, CstormError, reason_of
from cstormpy.simulation.bdsim_blocks import handler_of, is_users_class
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.crossings import Crossings
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.edges import Edges, edges_of
from cstormpy.simulation.events import (
    Event,
    at_bounds,
    chatter_of,
    chatters_still,
    leaps,
    refuse_chatter,
    refuse_endless,
    refuse_left,
    states_left,
)
from cstormpy.simulation.given_arguments import check_numbers
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.recording import Observation, Recording
from cstormpy.simulation.repeatability import refuse_unrepeatable
from cstormpy.simulation.run_start import refuse_many, same_tick
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.step_control import JUMP_WIDTH, SAME_TIME
from cstormpy.simulation.step_lengths import StepLengths
from cstormpy.simulation.steppers import StepFailed, Stepper, make_stepper
from cstormpy.simulation.wiring import describe

_RUNAWAY = 1e6
"""States beyond this have most likely left what their equations are meant for."""


class RunState(BDSimState):
    """The run as blocks know it: bdsim's state, with signals looked up in our evaluation."""

    def __init__(self, diagram: Diagram) -> None:
        super().__init__()
        self.diagram = diagram
        #: When clocks tick no more, as that is left to a run that goes on from there.
        self.ticks_until = math.inf

    def declare_event(self, block: Any, t: float) -> None:
        """Schedule the jump of a source, a function to call, or the tick of a clock unless that is left to others."""
        end = self.ticks_until
        if end == math.inf or not isinstance(block, Clock) or t < end - same_tick(block, end):
            super().declare_event(block, t)

    def declare_anew(self, source: Any, times: list[float]) -> None:
        """Schedule the jumps of a source at other times than until now."""
        pending = self.eventq.pop_until(math.inf)
        for t, each in [*((t, each) for t, each in pending if each is not source), *((t, source) for t in times)]:
            super().declare_event(each, t)

    def ensure_event_probe_evaluated(self, bd: Any, t: float, y: Any) -> None:
        """Compute all signals at (t, y) unless they stand there already."""
        self.diagram.at(t, y)


class Run:
    """One run of a diagram.

    After `go` the attributes t, x say where it stands, `status` and `message` how it ended, `events` which zero
    crossings were met.
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
        self.events: list[Event] = []
        self.steps = 0
        self._sees_both = False  # whether the near side of the event that is dealt with is recorded
        self._left_off: dict[Any, float] = {}  # when blocks have left off that chattered by rounding
        self._due_at = math.inf  # when what is next was to be done, of which the boundary may be as good as the time
        self._caused = 0  # events, one after the other, at the time of the present one
        #: What Ctrl-C does.
        self.interrupts = Interrupts()
        #: Whether it goes on from where another run stood, which has done what was due there.
        self.resumed = False
        self.observation = Observation(diagram, simstate, recording, settings)
        self._lengths = StepLengths(diagram, settings)

    # what is asked of the outside

    def begin(self, t: float, x: Array, step: float) -> None:
        """Stand at the start, with all that is due there done."""
        self.t, self.x, self.start_time = t, self.diagram.bounds.entered(x, self.diagram.bd.statenames), t
        self.observation.begin(t)
        self._lengths.begin(t)
        self.end = t + self.settings.T
        self.crossings = Crossings(self.simstate.crossing_detectors)
        nothing_between = not self.diagram.nstates and not self.crossings.detectors and not self.settings.grid
        self._only_ticks = nothing_between and bool(self.diagram.bd.clocklist)
        self.stepper = self._make_stepper(step)
        self.diagram.bind_samples(self.simstate)
        refuse_unrepeatable(self.diagram, t, self.x, self.settings.step is None)

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
            refuse_unrepeatable(self.diagram, self.t, self.x, self.settings.step is None, remembering=True)
        except CstormError as error:
            return error
        return self.diagram.why_no_step(self.t, self.x, failure, self.settings.atol)

    def _fail(self, error: CstormError) -> None:
        step = self.settings.step
        if step is not None and np.abs(self.x).max(initial=0.0) > _RUNAWAY:
            error.args = (f"{error}; states grow beyond all bounds, perhaps as dt = {step:g} s is too long a step",)
        self.status, self.message, self.error = "failed", str(error), error

    def limit_step(self, longest: float) -> None:
        """Take no step longer than this from now on; steps of fixed length stay as they are."""
        self.stepper.limit(longest)

    def publish(self) -> None:
        """Leave the signals where the run ended at the outputs of the blocks, for others to look at."""
        self.diagram.publish()

    def release(self) -> None:
        """Let go of what refers back to the run, once its result is there; else it waits for the garbage collector."""
        self.diagram.shortcut = None
        del self.stepper, self.crossings
        self.watchers.clear()
        self.simstate.crossing_detectors.clear()

    def state(self) -> SavedState:
        """Return where the run stands, to go on from."""
        return SavedState.of(self.diagram, self.t, self.x, self.stepper.h)

    # the loop

    def steps_to_end(self) -> None:
        """Step from event to event until the end, or until a block stops the run."""
        due = self._due(self.t)
        if due or self.diagram.holds:
            self.diagram.decide(self.t, self.x)
            self.crossings.rearm(self.t, self.x, [])  # what the first ticks take across zero is an event
        self._serve(due)
        self.diagram.freeze()
        self._begin_segment(any(is_jump(s) for s in due))
        fired = self.crossings.start(self.t, self.x, self.resumed or self.t > 0.0)
        if fired:
            self._event(self.t, self.x, fired)
        else:
            self._observe(at_boundary=True)
        self._commanded()
        while self.t < self.end and self.simstate.stop is None:
            if self._can_take_slices():
                met = self._take_slices()
                if (self._commanded() or met) and (self.t < self.end or self.simstate.stop is not None):
                    continue  # else what is due at the end is done
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
            self.t = self.stepper.t = bound  # as nothing changes on the way
            return True
        while self.t < bound:
            self.stepper.step(bound)
            self.steps += 1
            crossing = self.crossings.first(self.stepper) if self.crossings.detectors else None
            if crossing is not None:
                self.observation.add_within(self.stepper, self.x, crossing[0], bound)
                self._meet(*crossing)
                return self.t >= bound and self.simstate.stop is None
            self.observation.add_within(self.stepper, self.x, self.stepper.t, bound)
            self.t, self.x = self.stepper.t, self.stepper.x
            d.earliest = -math.inf
            if d.closed:
                self._close_loops()
            if self.t < bound:
                self._observe()
                self._lengths.look(self.t, self.x, self.steps)
                if self._commanded() or self.simstate.stop is not None or self._can_take_slices():
                    return False
        return True

    def _close_loops(self) -> None:
        """Take away what the last step has let the loops of mechanisms drift apart."""
        x = self.diagram.shut(self.x)
        if not np.array_equal(x, self.x):
            self.x = x
            self.stepper.restart(self.t, x)

    def _asked(self) -> bool:
        """Tell whether a block is to do something at its next evaluation that its detectors do not show."""
        return False

    def _can_take_slices(self) -> bool:
        """Tell whether many steps may be taken at once from where the run stands."""
        return False

    def _take_slices(self) -> bool:
        """Take many steps at once, until the next one is to be looked at or something is due that is not done so.

        Returns whether an event was met instead, and dealt with.
        """
        return False

    def _boundary(self, sources: list[Any]) -> None:
        """Do what is due at the end of a segment, and begin the next."""
        d = self.diagram
        if not sources and not d.bounds and not self._asked():  # the end of the run, which the last step has seen
            d.latest = math.inf
            self.simstate.t = self.t
            if self.recording.last < self.t or self.settings.grid:  # else a slice of steps has recorded it
                self._observe(at_boundary=True)
            self._commanded()
            return
        jumped = any(is_jump(s) for s in sources)
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
        self._show()

    def _show(self) -> None:
        """Have the signals of where the run stands be where its blocks look at them."""
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
        jumps, edge = any(is_jump(s) for s in sources), min(bound, self._due_at)
        self.diagram.latest = edge - JUMP_WIDTH * float(np.spacing(abs(edge))) if jumps else math.inf

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
                self._due_at = float(when)
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
                with self._numbers_followed():
                    self._call("a scheduled function", source, self.t, simstate)
                d.forget()

    def _call(self, what: str, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function of the user; what it raises ends the run, whose data is kept."""
        try:
            function(*arguments)
        except Exception as error:
            raise BlockError(f"{what} failed at t = {self.t:.9g}: {reason_of(error)}") from error

    @contextlib.contextmanager
    def _numbers_followed(self) -> Iterator[None]:
        """Schedule the jumps of sources whose numbers are set within, as those of a PULSE, at their new times.

        Limits are refused of states that had none.
        """
        before = [edges_of(source) for source in self._telling]
        yield
        self.diagram.bounds.refuse_more(self.diagram.continuous)
        for source, told in zip(self._telling, before, strict=True):
            if edges_of(source) != told:
                edges = Edges.of([source])
                refuse_many(source, float(((self.end - self.t) / edges.every).sum()))
                times = edges.between(self.t, self.end)
                self.simstate.declare_anew(source, times[times > self.t].tolist())

    @cached_property
    def _telling(self) -> list[Any]:
        """The blocks of bdsim and ours that tell when they jump, by numbers that can be set."""
        blocks = [b for b, *_ in self.diagram.order if not is_users_class(b.__class__)]
        given = [b.__dict__.get("_given") for b in blocks]
        settable = [b for b, made in zip(blocks, given, strict=True) if made is None or made.settable(b)]
        return [b for b in settable if edges_of(b) is not None]

    # events

    def _meet(self, t: float, x: Array, fired: list[int]) -> None:
        """Deal with a zero crossing within a segment, where signals that jump there have two values."""
        self.t, self.x = t, at_bounds(self.simstate, x, fired)
        if not self.settings.grid and any(leaps(self.simstate.crossing_detectors[i][0]) for i in fired):
            if self.recording.last < t:
                self._look_beyond(False)
                self._observe(at_boundary=True)
            self._sees_both = True
        self._event(t, x, fired)

    def _event(self, t: float, x: Array, fired: list[int], jumped: bool = False) -> None:
        """Stand at a zero crossing, let the blocks handle it, and begin anew behind it."""
        d, simstate = self.diagram, self.simstate
        x = at_bounds(self.simstate, x, fired)
        self.t, self.x = t, x
        self._look_beyond(jumped)
        d.at(t, x)
        self.crossings.arrive(t, x, fired)
        states = d.states_by_block(x.copy())
        for i in fired:
            detector, block = simstate.crossing_detectors[i]
            if not getattr(detector, "listed", True):
                continue
            self.events.append(Event(t, str(block.name)))
            if not isinstance(detector, Bound):
                self._handle(block, t, x, states)
            if (told := getattr(type(detector), "told", None)) is not None:
                self.events[-1].what = told(detector)
        after = states_left(d, states)
        if not (self.settings.grid or self._sees_both) and self._leaves_a_step(x, after):
            self._observe(at_boundary=True)
        self._sees_both = False
        self.x = after
        d.bind_samples(simstate)
        if self.events:
            self._refuse_chatter(t, [simstate.crossing_detectors[i][0] for i in fired])
        # events that come ever faster, as those of a ball that comes to rest, would else be stepped over
        since = t - (self.events[-len(fired) - 1][0] if len(self.events) > len(fired) else self.start_time)
        if since > 0.0:
            self.stepper.h = min(self.stepper.h, since)
        self._begin_segment(jumped)
        further = self.crossings.rearm(self.t, self.x, fired)
        if further:  # as where one switch works another
            self._caused += 1
            refuse_endless(self.events, self._caused)
            self._event(self.t, self.x, further, jumped)
        else:
            self._caused = 0
            self._observe(at_boundary=True)

    def _leaves_a_step(self, before: Array, after: Array) -> bool:
        """Tell whether the point before an event is recorded beside that behind it."""
        return not np.array_equal(before, after)

    def _refuse_chatter(self, t: float, fired: list[Any]) -> None:
        """Refuse events that come too fast, unless by rounding, where blocks leave off.

        Kinks are left to the steps, as nothing jumps there. A switch stays on its side until its signal has moved by
        more than rounding, which that of a sliding mode does at once: that it chatters all the same is refused. What
        the event of another block causes comes as often as that one, which is refused or leaves off for both.
        """
        # of the class: where a block has none, it would look for a port of that name, which takes long
        blocks: list[Any] = [getattr(d, "block", None) for d in fired]
        leave_off: list[Any] = [b.leave_off if hasattr(type(b), "leave_off") else None for b in blocks]
        left_off = max([self._left_off.get(leave, -math.inf) for leave in leave_off])
        try:
            refuse_chatter(self.events, t, self.end, left_off > -math.inf)
        except CstormError:
            fast = chatter_of(self.events, t) is not None
            if fast and self._caused:
                return
            fast = fast and not chatters_still(left_off, t)
            if None in leave_off or not all([leave(fast) for leave in leave_off]):
                raise
            self._left_off.update(dict.fromkeys(leave_off, t))

    def _handle(self, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        handler = handler_of(block)
        if handler is None:
            return
        of_user = isinstance(block, Block)
        before = set(states) if of_user else set[Any]()
        try:
            with self._numbers_followed() if of_user else contextlib.nullcontext():
                handler(t, x, states, self.simstate)
                if of_user:  # which may have set numbers, or what is none
                    check_numbers(self.diagram.bd.blocklist)
                    refuse_left(self.diagram, states, before, self.settings.check_finite)
        except Exception as error:
            raise self.diagram.failure(getattr(block, "block", block), "event handler", t, error) from error

    # what is seen from outside

    def _observe(self, at_boundary: bool = False) -> None:
        """Record the point where the run stands, and show it to the sinks and watchers."""
        self.observation.add(self.t, self.x, at_boundary)
        for watch in self.watchers:
            self._call("the observer", watch, self.t, self.x)

    def _commanded(self, jumped: bool = False) -> bool:
        """Carry out what was asked from outside until now; True where that was anything."""
        if self.commands.empty():
            return False
        with self._numbers_followed():
            for _ in range(self.commands.qsize()):  # what these post themselves is for after the next step
                self._call("a posted function", self.commands.get())
            self._call("a posted function", check_numbers, self.diagram.bd.blocklist)
        self._begin_segment(jumped)
        crossed = self.crossings.rearm(self.t, self.x, []) if self.crossings.detectors else []
        if crossed:
            self._event(self.t, self.x, crossed, jumped)
        return True


def is_jump(source: Any) -> bool:
    """Tell whether something scheduled is the jump of a source, and not a clock or a function to call."""
    return isinstance(source, Block)
