"""Runs a diagram by its compiled function: between two things that need Python, in slices of many steps."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.components import Clock

from cstormpy.arrays import Array
from cstormpy.errors import BlockError, CstormError
from cstormpy.reporting import notice_once
from cstormpy.simulation.compiled.prepared import Prepared, WaysBack, prepared
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import Compiled, Slices, Taken, hand_samples_back
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.events import Event, until_next_look
from cstormpy.simulation.runner import Run
from cstormpy.simulation.step_control import JUMP_WIDTH, SAME_TIME
from cstormpy.simulation.steppers import ExplicitStepper, ScipyStepper

#: How much of what is due is handed to the compiled steps at once, where events come between.
_ROOM = 64


class CompiledRun(Run):
    """A run whose derivative is compiled.

    Events and what a user posts are dealt with as in any run. Between them the steps are taken many at a time, with
    the ticks of clocks, the jumps of sources and a grid of samples on the way, unless somebody wants to see each step:
    an observer, a live window, a sink that draws.

    Attributes
    ----------
    strict : bool
        Whether a diagram that cannot be translated is an error; else it is run by its blocks, and that is said once.
        What becomes so within a run, as a plant that is pushed, is run by its blocks for so long.
    program : Program or None
        What the diagram was translated into.
    """

    strict = True
    program: Program | None = None
    _prepared: Prepared
    _compiled: Compiled
    _slices: Slices | None = None
    #: Whether the diagram could be translated as the run began, and whether it may have changed since.
    _begun = _stale = False
    #: Where each signal stands, in its slot and in `out`, and what makes the one of the other; None: not for all.
    _published: WaysBack = None
    #: Time and state at which signals and rates stand in the compiled function's arrays, None if they stand nowhere.
    _probed: tuple[float, bytes] | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: What is called once a slice, beside the watchers, which see each step.
        self.glances: list[Any] = []
        self._room = _ROOM

    def begin(self, t: float, x: Array, step: float) -> None:
        """Stand at the start, the diagram translated."""
        super().begin(t, x, step)
        try:
            self._prepare()
            self._begin_compiled()
        except NotTranslated as error:
            self.diagram.derivative(t, x)  # what is wrong in any engine is said as by any
            self.observation.check_finite(t)
            if self.strict:
                raise
            self._fall_back(error)

    # the compiled function

    def _prepare(self) -> None:
        """Have what is kept of the diagram, with the numbers of now."""
        self.diagram.decide(self.t, self.x)
        self._prepared = prepared(self.diagram, self.simstate.crossing_detectors)

    def _begin_compiled(self) -> None:
        """Go on by the function of what has been prepared."""
        self._compiled = self._prepared.ready()
        self._compiled.sample(self.diagram)
        self._prepared.compare(self.diagram, self.t, self.x)
        self._begun = True
        self._take()

    def _take(self) -> None:
        """Take derivative, guards and steps from the compiled function."""
        program = self.program = self._prepared.program
        self._probed = None
        self._published = self._prepared.ways_back(self.diagram)
        self.diagram.shortcut = self._publish
        self.crossings.detectors = self.simstate.crossing_detectors
        if program.guards is not None:
            self.crossings.detectors = [
                (_Guard(self, place, detector), b) if whole else (detector, b)
                for (place, _, whole), (detector, b) in zip(program.guards, self.crossings.detectors, strict=True)
            ]
        if isinstance(self.stepper, ScipyStepper):
            self.stepper.compute_by(self._derivative, lambda: program.structure)
        if not isinstance(self.stepper, ExplicitStepper):
            return
        keys = [(id(s.block), s.port) for s in self.recording.signals]
        seen = all(map(program.columns.__contains__, keys))
        slices = self._prepared.slices(self.stepper.method, keys if seen else [], self.settings.check_finite)
        slices.bends[:] = self._bends()
        self._slices = slices if program.guards is not None and not program.stepped_sinks and seen else None
        if self.diagram.nstates:
            self.stepper.compute_by(self._derivative, self._trial(slices), slices.K[: self.stepper.method.stages + 1])

    def _bends(self) -> list[bool] | bool:
        """Tell of each detector whether nothing happens where it crosses zero, so that the steps may go on."""
        if self.program is None or self.program.guards is None:
            return False
        return [
            whole and getattr(type(d), "only_bends", False) and d.only_bends
            for (_, _, whole), (d, _) in zip(self.program.guards, self.simstate.crossing_detectors, strict=True)
        ]

    def _trial(self, slices: Slices) -> Any:
        d, stages = self.diagram, slices.method.stages

        def trial(t: float, x: Array, fx: Array, h: float) -> Array | None:
            self._probed = None
            d.count += stages
            return slices.trial(t, x, fx, h, d.earliest, d.latest)

        return trial

    def _fall_back(self, error: NotTranslated) -> None:
        notice_once(error.told("it runs interpreted"))
        self.program, self._slices, self.diagram.shortcut = None, None, None
        self.crossings.detectors = self.simstate.crossing_detectors
        self.stepper.compute_by(self.diagram.derivative)

    def _derivative(self, t: float, x: Array) -> Array:
        """Return the rate of the states, by the compiled function."""
        failed = self._evaluate(t, x)
        if failed:
            self.diagram.derivative(t, x)  # which says what is wrong
            name = self._prepared.named(failed)
            if self._prepared.program.ask_in_python(name) and not self._evaluate(t, x):
                return self._compiled.xd.copy()
            raise BlockError(f"block {name!r} failed at t = {t:.9g} in its compiled form only")
        return self._compiled.xd.copy()

    def probe(self, t: float, x: Array) -> bool:
        """Compute all signals by the compiled function, unless they stand there already; return whether that worked."""
        return self._evaluate(t, x) == 0

    def _evaluate(self, t: float, x: Array) -> int:
        """Have signals and rates at a time and a state stand in the arrays of the compiled function.

        Where they stand there already nothing is computed. Returns 0, or the number of the block that failed.
        """
        d = self.diagram
        t = min(max(t, d.earliest), d.latest)
        wanted = t, x.tobytes()
        if self._probed == wanted:
            return 0
        d.count += 1
        self._probed = None
        failed = self._compiled.rate(t, x)
        if not failed:
            self._probed = wanted
        return failed

    def _sample(self) -> None:
        """Have the compiled function take over the states of sampled blocks, and what they hold."""
        if self._compiled.program.sampled_size:
            self._compiled.sample(self.diagram)
            self._probed = None

    def _publish(self, t: float, x: Array) -> bool:
        """Give the blocks their signals by the compiled function, unless one of them may be about to change."""
        if self._stale or self._published is None or self._asked():
            return False
        self._sample()
        if not self.probe(t, x):
            return False
        out = self._compiled.out
        for slot, first, last, back in self._published:
            slot.value = back(out[first:last])
        for hold in self.diagram.holds.values():
            hold.take()
        return True

    # what may have changed the blocks

    def _asked(self) -> bool:
        """Tell whether a block is to do something at its next evaluation, as a controller that swaps its law."""
        if self.program is not None:
            for pending in self.program.pending:
                if pending():
                    return True
        return False

    def _serve(self, sources: list[Any]) -> None:
        # a block that may be asked for something, as a controller by a signal that jumps, is looked at again
        asked = self._asked()
        changed = any(not isinstance(s, Clock) and (asked or not isinstance(s, Block)) for s in sources)
        self._stale = self._stale or changed
        super()._serve(sources)

    def _commanded(self, jumped: bool = False) -> bool:
        if not self.commands.empty():
            self.diagram.at(self.t, self.x)
            self._stale = True
        return super()._commanded(jumped)

    def _handle(self, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        self._stale = True
        super()._handle(block, t, x, states)

    def _begin_segment(self, jumped: bool) -> None:
        """Compute the derivative anew where the run stands, with the numbers that the blocks have now."""
        if self.diagram.bounds:
            self._look_beyond(jumped)
            self._stale = self._hold_or_free() or self._stale
        renewed = self._begun and self._stale
        if renewed:
            self._renew(jumped)
        if self._begun:
            self._sample()
        if renewed and self.program is not None:  # the signals have just been evaluated
            self.stepper.restart(self.t, self.x)
        else:
            super()._begin_segment(jumped)

    def _renew(self, jumped: bool) -> None:
        self._probed = None
        self._look_beyond(jumped)
        if self._asked():
            self.diagram.at(self.t, self.x)
        if self.program is not None and self._prepared.refresh():
            self._stale = False
            return
        self.diagram.at(self.t, self.x)
        self._stale = False
        try:
            self._prepared.translate(self.diagram, self.simstate.crossing_detectors)
            self._prepared.ready()
        except NotTranslated as error:
            self._fall_back(error)
        else:
            self._take()

    # many steps at once

    def _can_take_slices(self) -> bool:
        if self._slices is None or self.program is None or self.watchers or self.t >= self.end:
            return False
        if not self.commands.empty():  # a step comes first
            return False
        if self.diagram.closed and not self.program.closes:
            return False
        if self.settings.first_tick == "bdsim" and len(self.simstate.eventq):
            return False
        return self.simstate.stop is None and not self._asked()

    def _take_slices(self) -> bool:
        slices, taken = self._slices, None
        assert slices is not None
        self._arrange(slices)
        self._room = max(_ROOM, self._room // 2)
        try:
            while self._can_take_slices():
                taken = self._slice(slices)
                slices.compiled.program.raise_interrupt()
                close = SAME_TIME * max(1.0, abs(self.t))  # what is due within it is done together, by Python
                if self.t > slices.bound - close:
                    self._room *= 4
                    break
                if taken.look or taken.fired:
                    break
        finally:
            self._hand_back(slices)
        if taken is None or not taken.fired:
            return False
        self._meet(self.t, self.x, taken.fired)
        return True

    def _arrange(self, slices: Slices) -> None:
        """Hand over clocks and jumps to the compiled steps, and say until when these may go on."""
        self._agenda: list[tuple[float, Any]] = []
        ticks: dict[Any, float] = {}
        jumps: list[float] = []
        clocks = [clock for clock, _, _ in slices.compiled.program.clocks]
        ahead, then = self._ahead()
        for when, source in ahead:
            if isinstance(source, Block):
                jumps.append(when)
                self._agenda.append((when, source))
            elif source in clocks and source not in ticks:
                ticks[source] = when
            elif source is not None:
                self._agenda.append((when, source))
        until = then[0][0] if then else math.inf
        if then and any(isinstance(source, Block) for _, source in then):
            jumps.append(until)  # which Python deals with, but steps do not see beyond
        other = min([when for when, source in self._agenda if not isinstance(source, Block)], default=until)
        tolerance = SAME_TIME * max(1.0, abs(self.end))
        last = other >= self.end - tolerance
        ends = other > self.end + tolerance and not (self.settings.grid or self.diagram.bounds)
        # the number of a tick is one behind that of the next to be scheduled
        due = [(ticks.get(clock, math.inf), self.simstate.clock_states[clock].tick - 1) for clock in clocks]
        slices.schedule(self.end if last else max(other, self.t), last, ends, due, np.array(jumps, dtype=float))
        slices.limit(self.stepper, SAME_TIME, JUMP_WIDTH, self.settings.grid or 0.0)

    def _ahead(self) -> tuple[list[tuple[float, Any]], list[tuple[float, Any]]]:
        """Take what is due next out of the queue, as much as there is room for; return it, and what is due then.

        Where many jumps are ahead and events come between them, all of them would be handed over at each event.
        """
        queue, ahead = self.simstate.eventq, list[tuple[float, Any]]()
        while len(queue) and len(ahead) < self._room:
            when, sources = queue.pop()
            ahead += [(float(when or 0.0), source) for source in sources]
        if not len(queue):
            return ahead, []
        until = ahead[-1][0]
        close = SAME_TIME * max(1.0, abs(until))  # what is due together is dealt with together
        then = [due for due in ahead if due[0] >= until - close]
        ahead = ahead[: -len(then)]
        then += queue.pop_until(until + close)
        for when, source in then:
            self.simstate.declare_event(source, when)
        return ahead, then

    def _hand_back(self, slices: Slices) -> None:
        """Schedule what is still ahead, as Python knows it."""
        due, left = slices.pending()
        for (clock, _, _), (when, index) in zip(slices.compiled.program.clocks, due, strict=True):
            if when < math.inf:  # else it is still in the queue
                self.simstate.declare_event(clock, when)
            self.simstate.clock_states[clock].tick = index + 1
        first = float(left[0]) if len(left) else math.inf
        for when, source in self._agenda:
            if not isinstance(source, Block) or when >= first:
                self.simstate.declare_event(source, when)

    def _slice(self, slices: Slices) -> Taken:
        """Take many steps, and keep what they leave."""
        d = self.diagram
        self._probed = None
        event = self.events[-1][0] if self.events else self.start_time
        bends = until_next_look(self.events)
        taken = slices.go(self.stepper, d.earliest, self.crossings, self.observation.point, event, bends)
        d.count += slices.evaluations
        self.steps += slices.steps
        if not (slices.steps or len(taken.ticks)):
            return taken
        d.earliest, d.latest = slices.earliest, math.inf
        self.t, self.x, self.observation.point = self.stepper.t, self.stepper.x, slices.point
        self._note_bends(taken.met.tolist())
        self._log_ticks(slices, taken.ticks)
        d.forget()
        self.recording.extend(taken.times, taken.states, taken.signals, slices.split)
        self._glance()
        self._lengths.look(self.t, self.x, self.steps)
        return taken

    def _note_bends(self, met: list[list[float]]) -> None:
        """Enter the events that the steps have passed."""
        detectors = self.simstate.crossing_detectors
        for t, place in met:
            detector, block = detectors[int(place)]
            self.events.append(Event(t, str(block.name), detector.told()))

    def _log_ticks(self, slices: Slices, ticks: Array) -> None:
        """Enter ticks where bdsim keeps them, all of this slice as one array."""
        if not len(ticks):
            return
        clocks = slices.compiled.program.clocks
        for k, (clock, _, _) in enumerate(clocks):
            rows = ticks if len(clocks) == 1 else ticks[ticks[:, 1] == k]
            size = sum(b.ndstates for b in clock.blocklist)
            log = self.simstate.clock_states[clock]
            log.tlog.append(rows[:, 0].copy())
            log.xlog.append(rows[:, 2 : 2 + size].copy())
        hand_samples_back(self._compiled.z, slices.compiled.program, self.diagram, self.simstate)

    def _show(self) -> None:
        if not self._unseen():
            super()._show()

    def _unseen(self) -> bool:
        """Tell whether nothing looks at the signals at the outputs of blocks between the steps of this run."""
        kept = self._slices is not None and self._published is not None
        return kept and not (self._stale or self.watchers or self.diagram.holds or self._asked())

    def _observe(self, at_boundary: bool = False) -> None:
        if not (self._unseen() and self._keep()):
            super()._observe(at_boundary)
        self._glance()

    def _keep(self) -> bool:
        """Record the point where the run stands from the compiled function; return whether that is all."""
        slices = self._slices
        assert slices is not None
        self._sample()
        if not self.probe(self.t, self.x):
            return False
        out = self._compiled.out
        return self.observation.add_kept(
            self.t, self.x, out[: slices.compiled.program.checked], out.take(slices.columns)[None], slices.split
        )

    def publish(self) -> None:
        """Leave the signals where the run ended at the outputs of the blocks, which have not got them on its way."""
        if self.error is None and self._unseen():
            with contextlib.suppress(CstormError):
                self.diagram.at(self.t, self.x)
        super().publish()

    def release(self) -> None:
        """Let go of what refers back to the run."""
        super().release()
        self.glances.clear()

    def _glance(self) -> None:
        for glance in self.glances:
            self._call("the progress line", glance, self.t, self.x)


class _Guard:
    """A detector of zero crossings that looks at the compiled signals."""

    def __init__(self, run: CompiledRun, place: int, detector: Any) -> None:
        self._run, self._place, self._detector = run, place, detector

    def __getattr__(self, name: str) -> Any:
        """Return what is asked of the detector, as its direction."""
        return getattr(self._detector, name)

    def __call__(self, t: float, x: Array) -> float:
        """Return the quantity at a time and a state; what fails is asked of the block."""
        run = self._run
        return float(run._compiled.out[self._place] if run.probe(t, x) else self._detector(t, x))
