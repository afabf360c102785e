"""Runs a diagram by its compiled function: between two things that need Python, in slices of many steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.components import Clock
from numpy.typing import NDArray

from cstormpy.errors import BlockError
from cstormpy.reporting import notice_once
from cstormpy.simulation.compiled.program import Program, translate
from cstormpy.simulation.compiled.registry import NotTranslated
from cstormpy.simulation.compiled.slices import Compiled, Slices
from cstormpy.simulation.runner import _JUMP_WIDTH, Run
from cstormpy.simulation.steppers import ExplicitStepper

__all__ = ["CompiledRun"]

Array = NDArray[np.float64]
#: Compiled and interpreted signals agree to this at the start, else the diagram is not run compiled.
_SAME = 1e-9


class CompiledRun(Run):
    """A run whose derivative is compiled.

    Ticks, events, jumps and what a user posts are dealt with as in any run. Between them the steps are taken many at a
    time, unless somebody wants to see each: an observer, a live window, a sink that draws, a grid of samples. A diagram
    without continuous states is run by its blocks, as there is nothing to integrate.

    Attributes
    ----------
    strict : bool
        Whether a diagram that can not be translated is an error; else it is run by its blocks, and that is said once.
        What becomes so within a run, as a plant that is pushed, is run by its blocks for so long.
    program : Program or None
        What the diagram was translated into.
    """

    strict = True
    program: Program | None = None
    _slices: Slices | None = None
    _compiled: Compiled
    #: Whether the diagram could be translated as the run began, and whether it may have changed since.
    _begun = _stale = False
    #: Time and state at which the signals stand in `out`, None if they stand nowhere.
    _probed: tuple[float, Array] | None = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: What is called once a slice, beside the watchers, which see each step.
        self.glances: list[Any] = []

    def begin(self, t: float, x: Array, step: float) -> None:
        """Stand at the start, the diagram translated."""
        super().begin(t, x, step)
        if not self.diagram.nstates:
            return
        self.diagram.evaluate(t, x)
        try:
            program = translate(self.diagram, self.simstate.crossing_detectors)
            self._compiled = Compiled(program, self.diagram.nstates)
            self._compare(program, t, x)
        except NotTranslated as error:
            if self.strict:
                raise
            self._fall_back(error)
            return
        self._begun = True
        self._take(program)

    def _fall_back(self, error: NotTranslated) -> None:
        notice_once(str(error).replace("; run it with engine='interpreted'", "; it runs interpreted"))
        self.program, self._slices = None, None
        self.crossings.detectors = self.simstate.crossing_detectors
        if isinstance(self.stepper, ExplicitStepper) or hasattr(self.stepper, "f"):
            self.stepper.f = self.diagram.derivative

    def _take(self, program: Program) -> None:
        self.program, self._probed = program, None
        if program.guards is not None:
            self.crossings.detectors = [
                (_Guard(self, place, detector), b) if whole else (detector, b)
                for (place, _, whole), (detector, b) in zip(
                    program.guards, self.simstate.crossing_detectors, strict=True
                )
            ]
        self.stepper.f = self._derivative  # type: ignore[attr-defined]
        keys = [(id(s.block), s.port) for s in self.recording.signals]
        if not isinstance(self.stepper, ExplicitStepper) or program.guards is None or program.loud:
            self._slices = None
        elif self._slices is None:
            self._slices = Slices(self._compiled, self.stepper.method, keys, self.settings.check_finite)
        else:
            self._slices.arrange()

    def _compare(self, program: Program, t: float, x: Array) -> None:
        """Refuse a program that does not compute what the blocks do."""
        d, c = self.diagram, self._compiled
        c.sample(d.cells)
        compiled, interpreted = np.zeros(d.nstates), d.derivative(t, x)
        failed = c.rate(t, np.ascontiguousarray(x, dtype=float), compiled)
        if failed:
            raise NotTranslated([(self._named(failed), "its compiled form fails at the start")])
        for b, _, _, outs, _, _ in d.order:
            for port, slot in enumerate(outs):
                if not _same(c.signal((id(b), port)), slot.value):
                    told = f"output {port} is {slot.value} at the start, but {c.signal((id(b), port))} compiled"
                    raise NotTranslated([(str(b.name), told)])
        for b, part in d.continuous:
            if not _same(compiled[part], interpreted[part]):
                told = f"its rate is {interpreted[part]} at the start, but {compiled[part]} compiled"
                raise NotTranslated([(str(b.name), told)])

    def _named(self, failed: int) -> str:
        blocks = [*(b for b, *_ in self.diagram.order), *(b for b, _ in self.diagram.continuous)]
        blocks += [b for _, b in self.simstate.crossing_detectors]
        return str(blocks[failed - 1].name)

    def _derivative(self, t: float, x: Array) -> Array:
        """Return the rate of the states, by the compiled function."""
        d = self.diagram
        d.count += 1
        self._probed = None
        rate = np.empty(d.nstates)
        failed = self._compiled.rate(min(max(t, d.earliest), d.latest), np.ascontiguousarray(x), rate)
        if failed:
            d.derivative(t, x)  # which says what is wrong
            raise BlockError(f"block {self._named(failed)!r} failed at t = {t:.9g} in its compiled form only")
        return rate

    def probe(self, t: float, x: Array) -> bool:
        """Compute all signals by the compiled function, unless they stand there already; return whether that worked."""
        if self._probed is None or self._probed[0] != t or not np.array_equal(self._probed[1], x):
            d = self.diagram
            d.count += 1
            self._probed = None
            if self._compiled.rate(min(max(t, d.earliest), d.latest), np.ascontiguousarray(x), np.empty(d.nstates)):
                return False
            self._probed = (t, x.copy())
        return True

    # what may have changed the blocks

    def _serve(self, sources: list[Any]) -> None:
        super()._serve(sources)
        self._stale = self._stale or any(not isinstance(s, (Clock, Block)) for s in sources)

    def _commanded(self, jumped: bool = False) -> bool:
        self._stale = self._stale or not self.commands.empty()
        return super()._commanded(jumped)

    def _handle(self, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        self._stale = True
        super()._handle(block, t, x, states)

    def _begin_segment(self, jumped: bool) -> None:
        """Compute the derivative anew where the run stands, with the numbers that the blocks have now."""
        if self._begun:
            if self._stale:
                self._renew(jumped)
            self._compiled.sample(self.diagram.cells)
            self._probed = None
        super()._begin_segment(jumped)

    def _renew(self, jumped: bool) -> None:
        self._stale = False
        self._look_beyond(jumped)
        self.diagram.at(self.t, self.x)
        try:
            program = translate(self.diagram, self.simstate.crossing_detectors)
            self._compiled.update(program)
        except NotTranslated as error:
            self._fall_back(error)
        else:
            self._take(program)

    # steps

    def _segment(self, bound: float, sources: list[Any]) -> bool:
        if self._slices is None or self._only_ticks or self.watchers or self.settings.grid:
            return super()._segment(bound, sources)
        d = self.diagram
        d.latest = math.inf
        if any(isinstance(s, Block) for s in sources):  # a source jumps there
            d.latest = bound - _JUMP_WIDTH * float(np.spacing(bound))
        while self.t < bound:
            look = True
            asked = self.program is None or any(pending() for pending in self.program.pending)
            if not asked and self.stepper.h > 0.0 and None not in self.crossings.before:
                look = self._slice(self._slices, bound)
            if self.t < bound and look:
                ended = self._one_step(bound)
                if ended is not None:
                    return ended
            if self.t < bound and (self._commanded() or self.simstate.stop is not None):
                return False
        return True

    def _slice(self, slices: Slices, bound: float) -> bool:
        """Take many steps; return whether the next one is to be taken by itself."""
        d, before = self.diagram, [float(v or 0.0) for v in self.crossings.before]
        self._probed = None
        evaluations = slices.evaluations
        taken, look = slices.go(self.stepper, bound, d.earliest, d.latest, before)
        d.count += slices.evaluations - evaluations
        self.steps += taken
        if not taken:
            return look
        d.earliest = -math.inf
        d.forget()
        self.t, self.x = self.stepper.t, self.stepper.x
        self.crossings.before = list(before)
        self._record(slices, taken if self.t < bound else taken - 1)  # the end of a segment is recorded by itself
        self._glance()
        return look

    def _record(self, slices: Slices, count: int) -> None:
        kept = self.recording
        for values, samples in zip(kept.y, slices.recorded(count), strict=True):
            values.extend(samples.tolist() if samples.ndim == 1 else samples)
        kept.x.extend(slices.states[:count].copy())
        kept.t.extend(slices.times[:count].tolist())

    def _one_step(self, bound: float) -> bool | None:
        """Take a step as any run does; return what `_segment` returns where it ends there."""
        self.stepper.step(bound)
        self.steps += 1
        crossing = self.crossings.first(self.stepper) if self.crossings.detectors else None
        if crossing is not None:
            self._event(*crossing)
            return self.t >= bound and self.simstate.stop is None
        self.t, self.x = self.stepper.t, self.stepper.x
        self.diagram.earliest = -math.inf
        if self.t < bound:
            self._observe()
        return None

    def _observe(self, at_boundary: bool = False) -> None:
        super()._observe(at_boundary)
        self._glance()

    def _glance(self) -> None:
        for glance in self.glances:
            self._call("the progress line", glance, self.t, self.x)


class _Guard:
    """A detector of zero crossings that looks at the compiled signals."""

    def __init__(self, run: CompiledRun, place: int, detector: Any) -> None:
        self._run, self._place, self._detector = run, place, detector
        self.direction = float(getattr(detector, "direction", 0.0))

    def __call__(self, t: float, x: Array) -> float:
        """Return the quantity at a time and a state; what fails is asked of the block."""
        run = self._run
        return float(run._compiled.out[self._place] if run.probe(t, x) else self._detector(t, x))


def _same(compiled: Array, interpreted: Any) -> bool:
    value = np.asarray(interpreted, dtype=float)
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(compiled - value) <= _SAME * (1.0 + np.abs(value))) | (compiled == value)))
