"""A diagram with events that is stepped from outside: each step is a run, which locates and handles them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from bdsim.blocks.sources import Constant
from numpy.typing import ArrayLike

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, own_arrays, real_number
from cstormpy.errors import DiagramError
from cstormpy.simulation.analysis.analysis_start import first_state, saved_with, started
from cstormpy.simulation.analysis.external import fixed_method, input_not_finite, ports_of, read_inputs, refuse_copies
from cstormpy.simulation.analysis.model import Input, inputs_of, labels, named_once, numbers_of
from cstormpy.simulation.analysis.ports import InputPort, arriving, feed_open_inputs, find_ports
from cstormpy.simulation.analysis.stepped_by_others import samples_named
from cstormpy.simulation.events import Event
from cstormpy.simulation.handlers import Changes, handling
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.named_states import state_vector
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.saved_state import SavedState, opened
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.wiring import describe


class EventStepper:
    """Steps a diagram as its user says, by a run for each step; see `Simulation.stepper`.

    Attributes
    ----------
    t, x, state, inputs, outputs, states, sampled
        As those of a `DiagramStepper`, of the whole diagram.
    events : list of Event
        What came about in the last step.
    stopped : str
        Why a STOP has ended a step before its time; there is no other until `reset`. Empty where none has.
    """

    def __init__(self, sim: Any, bd: Any, inputs: Any, outputs: Any, x: Any, solver: str, substeps: int) -> None:
        self._substeps = whole_number(substeps, "stepper: substeps", 1, 10_000)
        fixed_method(solver, "stepper")
        self._sim, self._bd, self._solver, self._first = sim, bd, solver, own_arrays(opened(x, "stepper: x"))
        feed_open_inputs(bd, inputs, "stepper: inputs")
        with started(sim, bd, x, 0.0, "stepper") as (diagram, *_):
            ports = named_once(find_ports(bd, inputs, "stepper: inputs"), "stepper: inputs")
            self._given = inputs_of(ports, True, "stepper")
            self._constants = [_constant_of(diagram, each) for each in self._given]
            watched = numbers_of(find_signals(bd, outputs, "stepper: outputs"), "stepper")
            self.outputs = tuple(name for s in watched for name in labels(s))
            self._slots, self._watched = [s.slot for s in watched], [s.block[s.port] for s in watched]
            self._sizes = {str(b.name): b.ndstates for b in diagram.cells}
        self.inputs = tuple(name for i in self._given for name in labels(i.signal))
        self.states, self.sampled = tuple(bd.statenames), tuple(self._sizes)
        self._changes = Changes(handling(bd.blocklist))
        self.reset()

    def __repr__(self) -> str:
        """Return where it stands, and what u and y are."""
        return f"<stepper of {str(self._bd.name)!r} by runs at t = {self.t:g}: {ports_of(self)}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        refuse_copies("stepper")

    def reset(self, x: Any = None, t: float | None = None, sampled: Any = None) -> Array:
        """Go back to the start, or to another state and time; return the outputs there, with the inputs as wired there.

        What functions of events have set in blocks since the last reset is put back, but for what has been set again
        since; random generators go on.
        See `DiagramStepper.reset` for the arguments.
        """
        samples = samples_named(sampled, self._sizes, 1)
        when = None if t is None else real_number(t, "reset: t")
        given = opened(x, "reset: x")
        with self._changes.undone():
            begin = self._begun(given)
            if not isinstance(begin, SavedState) and (samples or when):
                begin = self._looked_at(begin, when or 0.0)[0]
            if isinstance(begin, SavedState):
                states = begin.sampled | {name: v.ravel().tolist() for name, v in samples}
                begin = replace(begin, t=begin.t if when is None else when, sampled=states)
            saved, y, state = self._looked_at(begin, 0.0)
        self._changes = Changes(handling(self._bd.blocklist))  # of the functions that there are now
        self._start, self._saved = begin, begin if isinstance(begin, SavedState) else saved
        self.t, self.x, self._late = saved.t, state, 0.0
        self.events, self.stopped = list[Event](), ""
        return y

    def _begun(self, given: Any) -> Any:
        """Return a start as a user says it, with what is not said as where it began."""
        if given is None or isinstance(given, SavedState):
            return self._first if given is None else given
        state = state_vector(self._bd, given, first_state(self._bd, self._first, "reset"), "reset: x")
        return saved_with(self._bd, self._first, state) if isinstance(self._first, SavedState) else state

    def _looked_at(self, begin: Any, t: float) -> tuple[SavedState, Array, Array]:
        """Return all of where a start is, where nothing has ticked yet, and the outputs and states there."""
        with started(self._sim, self._bd, begin, t, "reset") as (diagram, _, now, state):
            saved = replace(SavedState.of(diagram, now, state, 0.0), due=True)
            return saved, self._read([slot.value for slot in self._slots]), state

    @property
    def state(self) -> SavedState:
        """Where it stands, to go back to by `reset`, or to go on from by `Simulation.run`."""
        return self._saved

    def step(self, u: ArrayLike, dt: float) -> Array:
        """Hold the inputs for a time, and return the outputs after it; see `DiagramStepper.step`.

        Raises
        ------
        DiagramError
            A STOP has ended a step before this one.
        """
        if self.stopped:
            raise DiagramError(f"step: {self.stopped}; begin again by reset()")
        values = read_inputs(u, self.inputs)
        if not np.isfinite(values).all():
            raise input_not_finite(values, self.inputs)
        dt = positive(dt, "step: dt")
        ahead = dt + self._late
        end = self.t + ahead
        settings = Settings.checked(T=ahead, dt=dt / self._substeps, solver=self._solver)
        settings.ticks_at_end = False  # for the next step to do, by its inputs
        with Interrupts() as interrupts:
            interrupts.hold()  # but within the run, which hands on what comes behind its last step
            with self._holding(values), self._changes:
                out = self._sim.run(
                    self._bd,
                    settings,
                    watch=self._watched,
                    start=self._start,
                    live=False,
                    threaded=True,
                    on_error="raise",
                )
                if interrupts.pressed:
                    raise KeyboardInterrupt
            stopped = out.message if out.status == "stopped" else ""
            saved = out.state if stopped else replace(out.state, t=end, due=True)
            y = self._read([part[-1] for part in out.data.get(".ywatch", [])])
            self._late = 0.0 if stopped else ahead - (end - self.t)
            self.t, self.x, self.events, self.stopped = saved.t, out.x[-1].copy(), out.events, stopped
            self._start = self._saved = saved
        if interrupts.pressed:
            raise KeyboardInterrupt
        return y

    def rates(self, u: ArrayLike) -> Array:
        """Return the rates of the states where it stands, with some inputs; see `DiagramStepper.rates`."""
        values = read_inputs(u, self.inputs)
        if not np.isfinite(values).all():
            raise input_not_finite(values, self.inputs, what="rates")
        with self._holding(values), started(self._sim, self._bd, self._start, self.t, "rates") as (diagram, _, now, x):
            return diagram.derivative(now, x)

    @contextlib.contextmanager
    def _holding(self, u: Array) -> Iterator[None]:
        """Let the constants be the inputs for as long as this lasts."""
        before, first = [block.value for block in self._constants], 0
        try:
            for block, given in zip(self._constants, self._given, strict=True):
                part = u[first : first + given.value.size]
                block.value = part.reshape(given.shape) if given.shape else float(part[0])
                first += part.size
            yield
        finally:
            for block, value in zip(self._constants, before, strict=True):
                block.value = value

    @staticmethod
    def _read(values: list[Any]) -> Array:
        return np.concatenate([*(np.ravel(value) for value in values), np.zeros(0)]).astype(float)


def _constant_of(diagram: Any, given: Input) -> Any:
    """Return the CONSTANT whose value an input is, and nothing else that is no input."""
    bd, signal = diagram.bd, given.signal
    source = arriving(bd, signal).block
    if not isinstance(source, Constant):
        raise DiagramError(
            f"stepper: input {signal.name!r}: comes from {describe(source)}, where a stepper with events=True sets a "
            "CONSTANT; wire one in its place"
        )
    goes_to = sum(slot is signal.slot for b in bd.blocklist for slot in b._inport_slots)
    if isinstance(signal, InputPort) and goes_to > 1:
        raise DiagramError(
            f"stepper: input {signal.name!r}: {describe(source)} goes to other ports too; name it as the input, or "
            "wire another CONSTANT to this port"
        )
    return source
