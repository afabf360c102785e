"""A diagram that is stepped from outside: inputs in, outputs out, at each step of a loop of somebody else's."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from bdsim.block import SinkBlock
from bdsim.components import Clock
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, real_array, real_number
from cstormpy.errors import BlockError, CstormError, DiagramError, InvalidType, InvalidValue, shown, unknown_name
from cstormpy.kernels.held_steps import NOT_FINITE
from cstormpy.kernels.rungekutta import EARLIEST, LATEST, LENGTH, TIME
from cstormpy.kernels.stepping_code import Steps
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.model import (
    AssemblyWithInputs,
    Input,
    inputs_of,
    labels,
    named_once,
    places_of,
)
from cstormpy.simulation.analysis.parameters import take_up
from cstormpy.simulation.analysis.ports import arriving, feed_open_inputs, find_ports
from cstormpy.simulation.bdsim_blocks import is_of
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import Compiled, Slices, fill_samples, take_samples
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.given_arguments import check_numbers
from cstormpy.simulation.named_states import numbers, state_vector
from cstormpy.simulation.recording import Signal, find_signals
from cstormpy.simulation.run_start import start_clocks
from cstormpy.simulation.runner import RunState
from cstormpy.simulation.saved_state import SavedState, opened, ticks_are_due
from cstormpy.simulation.steppers import StepFailed
from cstormpy.simulation.tableaus import EXPLICIT, Tableau

_FLOAT64 = np.dtype(np.float64)
_SHOWN = 8
"""Number of names that a message lists at most."""


@dataclass
class SteppedByOthers:
    """A diagram that others step: its program, where it begins, and what its inputs u, outputs y and states are.

    Attributes
    ----------
    diagram, whole : Diagram
        What is stepped, and what it is a part of.
    kept : ndarray (n,)
        Where its states stand among those of the whole.
    first : (float, ndarray)
        The time and the state of the whole where it begins.
    start : None, array or dict
        What was given of that state; the rest is as the blocks say.
    u0 : ndarray
        The inputs there, as they are wired.
    jumps : list of (float, Clock)
        When sampled blocks jump, and by which clock, where that ticks first with its tick 0.
    saved : SavedState or None
        Where it begins, if that was saved.
    places, seen, wired : ndarray
        Where the inputs stand among the numbers of the program, if they do, and among its signals the outputs, and what
        is wired where the inputs enter.
    """

    diagram: Diagram
    whole: Diagram
    kept: NDArray[np.int64]
    simstate: RunState
    program: Program
    first: tuple[float, Array]
    start: Any
    u0: Array
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    states: tuple[str, ...]
    jumps: list[tuple[float, Clock]]
    saved: SavedState | None
    places: NDArray[np.int64]
    seen: NDArray[np.int64]
    wired: NDArray[np.int64]

    @contextlib.contextmanager
    def begun(
        self, x: Any, t: float | None, who: str, checked: Callable[[Any], Array]
    ) -> Iterator[tuple[float, Array, bool]]:
        """Yield the time and the state of a reset, of what users say of them, with the numbers of all blocks read anew.

        And whether clocks that tick at that time are still to do so; the sampled blocks have their states. What is not
        said is as where it began; an array is yielded as it is `checked`. Where this or what follows fails, all stays
        as it was.
        """
        program, bd = self.program, self.diagram.bd
        x = opened(x, "reset: x")
        saved = isinstance(x, SavedState)
        due = ticks_are_due(x if saved else self.saved, 0.0)
        begin = real_number(t, "reset: t") if t is not None else x.t if saved else float(self.first[0])
        before, arrays = SavedState.of(self.whole, *self.first, 0.0) if saved else None, (program.p, program.n)
        kept = [each.copy() for each in arrays]
        check_numbers(bd.blocklist)
        try:
            for hold in self.whole.holds.values():
                hold.live = True  # unless something is held, as is put back
            if saved:
                x = x.restore(self.whole, self.simstate, "reset: x")[self.kept]
            elif x is None or isinstance(x, Mapping):
                first = state_vector(bd, self.start, np.array(bd.getstate0(), dtype=float), "reset: x")
                x = state_vector(bd, x, first, "reset: x")[self.kept]
            else:
                x = checked(x)
            for b in bd.blocklist:
                take_up(b)
            if not saved:
                self._sample_as_at_start()
            self.whole.bind_samples(self.simstate)
            if not program.refresh():
                raise DiagramError(
                    f"{who}: a number of a block has been set to one of another form, or that it does not take; "
                    f"sim.run says which, or make another by sim.{who}(...)"
                )
            yield begin, x, due
        except CstormError:
            for each, values in zip(arrays, kept, strict=True):
                each[:] = values
            if before is not None:
                before.restore(self.whole, self.simstate)
            raise

    def _sample_as_at_start(self) -> None:
        """Give sampled blocks the states with which they begin."""
        if self.saved is not None:
            self.saved.restore_samples(self.whole, self.simstate)
            return
        for clock in self.whole.bd.clocklist:
            self.simstate.clock_states[clock].state = clock.getstate0()

    def beginning(self, t: float, due: bool) -> tuple[Array, list[tuple[float, int]], Array]:
        """Return sampled states where a start is at a time, the next tick of each clock and its number, and jumps."""
        z = np.zeros(self.program.sampled_size)
        fill_samples(z, self.program, self.diagram)
        start_clocks(self.diagram.bd, self.simstate, 0, t, due)
        ticks = {source: when for when, source in declared_events(self.simstate) if isinstance(source, Clock)}
        number = {clock: self.simstate.clock_states[clock].tick - 1 for clock in ticks}
        # a jump is told as of a clock that ticks first with its tick 0
        jumps = [when + (number[clock] * clock.T if due else 0.0) for when, clock in self.jumps]
        clocks = [clock for clock, _, _ in self.program.clocks]
        return z, [(ticks[c], number[c]) for c in clocks], np.array(sorted(j for j in jumps if j > t), dtype=float)

    @property
    def sampled(self) -> tuple[str, ...]:
        """The names of the sampled blocks."""
        return tuple(str(b.name) for b, _ in self.program.sampled)

    def samples_of(self, given: Any, rows: int) -> list[tuple[slice, Array]]:
        """Return where sampled states stand and what they are, of what users say of them by the names of blocks."""
        if given is None:
            return []
        if not isinstance(given, Mapping):
            raise InvalidType(f"reset: sampled: expected a dict, as {{'filter': state}}, got {shown(given)}")
        parts, found = {str(b.name): part for b, part in self.program.sampled}, []
        for name, value in given.items():
            if name not in parts:
                raise unknown_name("reset: sampled: block", name, parts)
            size = parts[name].stop - parts[name].start
            found.append((parts[name], real_array(value, f"reset: sampled[{name!r}]", (size,), (rows, size))))
        return found

    def state(self, t: float, x: Array, z: Array, due: bool) -> SavedState:
        """Return the state of the whole where what is stepped stands; at a start nothing is held yet."""
        take_samples(z, self.program, self.diagram)
        whole = self.first[1].copy()
        whole[self.kept] = x
        found = replace(SavedState.of(self.whole, t, whole, 0.0), due=due)
        return replace(found, held={}) if z[list(self.program.flags.values())].any() else found


def stepped_by_others(
    sim: Any, bd: Any, inputs: Any, outputs: Any, x: Any, who: str, walk: type[AssemblyWithInputs] = AssemblyWithInputs
) -> SteppedByOthers:
    """Return a diagram, translated by a kind of walk through it.

    Where it has more than continuous states, it is the part that the outputs need.
    """
    feed_open_inputs(bd, inputs, f"{who}: inputs")
    with started(sim, bd, x, 0.0, who) as (whole, simstate, t, state):
        moved = inputs_of(named_once(find_ports(bd, inputs, f"{who}: inputs"), f"{who}: inputs"), True, who)
        watched = find_signals(bd, outputs, f"{who}: outputs")
        diagram, kept, declared = whole, np.arange(state.size), declared_events(simstate)
        if watched and _has_more_than_states(whole, simstate, declared, moved):
            diagram, kept = needed_part(whole, simstate, moved, watched)
        jumps = refuse_more_than_samples(diagram, simstate, declared, moved, who)
        if t > 0.0:  # at which they may have jumped
            jumps = _jumps_of_samples(diagram)
        try:
            assembly = walk(diagram, moved)
            program = assembly.program()
        except NotTranslated as why:
            raise DiagramError(f"{who}: {why}") from why
        refuse_other_ticks(program, diagram, who, "cannot be stepped")
        return SteppedByOthers(
            diagram,
            whole,
            kept,
            simstate,
            program,
            (t, state.copy()),
            x if x is None or isinstance(x, Mapping) else state.copy(),
            np.concatenate([*(i.value for i in moved), np.zeros(0)]),
            tuple(name for i in moved for name in labels(i.signal)),
            tuple(name for s in watched for name in labels(s)),
            tuple(bd.statenames[k] for k in kept),
            jumps,
            saved if isinstance(saved := opened(x, f"{who}: x"), SavedState) else None,
            np.array([k for i in moved for k in assembly.places_of.get(i.signal.key, ())], dtype=np.int64),
            places_of(program, watched),
            places_of(program, [arriving(bd, i.signal) for i in moved]),
        )


class DiagramStepper:
    """Steps a diagram as its user says; see `Simulation.stepper`.

    Attributes
    ----------
    t : float
        The time.
    x : ndarray, (n,)
        The continuous states.
    state : SavedState
        Where it stands, with all that is sampled; of blocks that are left out where they began.
    inputs, outputs, states : tuple of str
        What the entries of u, y and x are.
    sampled : tuple of str
        The names of the sampled blocks.
    """

    def __init__(self, sim: Any, bd: Any, inputs: Any, outputs: Any, x: Any, solver: str, substeps: int) -> None:
        from cstormpy.simulation.analysis.clocked_steps import ClockedSteps

        self._substeps = whole_number(substeps, "stepper: substeps", 1, 10_000)
        method = fixed_method(solver, "stepper")
        found = stepped_by_others(sim, bd, inputs, outputs, x, "stepper")
        self._bd, self._diagram, self._program, self._found = bd, found.diagram, found.program, found
        self.inputs, self.outputs, self.states, self.sampled = found.inputs, found.outputs, found.states, found.sampled
        self._u0, self._places, self._seen = found.u0, found.places, found.seen
        #: Substeps that are taken in one call, which closes no loops of mechanisms: that is done after each of them.
        self._at_once = 1 if found.diagram.closed else self._substeps
        self._compiled = Compiled(found.program, len(self.states))
        self._clocked = ClockedSteps(found, self._compiled, method) if found.program.clocks else None
        self._prepare(method)
        self.reset()

    def __repr__(self) -> str:
        """Return where it stands, and what u and y are."""
        return f"<stepper of {str(self._bd.name)!r} at t = {self.t:g}: {ports_of(self)}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        refuse_copies("stepper")

    def _prepare(self, method: Any) -> None:
        """Make room for the steps, which all go through the same arrays."""
        c, program, slices = self._compiled, self._program, Slices(self._compiled, method, [], False)
        #: What a step takes and leaves: inputs, state, outputs.
        self._u, self._end, self._y = self._u0.copy(), np.zeros(c.nstates), np.zeros(self._seen.size)
        self._at, self._start = slices.at, slices.x
        self._at[EARLIEST], self._at[LATEST] = -np.inf, np.inf
        self._steps = Steps("held_steps")
        self._go = self._steps.bound(
            c.address, slices.table, slices.how, self._at, self._start, c.z, program.p, program.n, c.w, c.out, slices.K,
            self._at_once, self._u, self._places, self._end, self._seen, self._y,
        )  # fmt: skip

    def reset(self, x: Any = None, t: float | None = None, sampled: Any = None) -> Array:
        """Go back to the start, or to another state and time; return the outputs there, with the inputs as wired there.

        Numbers of blocks that have been set since are taken up here, and not between steps: to go on with them say
        ``stepper.reset(stepper.state)``.

        Parameters
        ----------
        x : array (n,), dict, SavedState, result or path, optional
            Continuous states, all or by name, where sampled blocks begin anew; or as `Simulation.run` takes its
            ``start``, with time, sampled states and what blocks remember.
        t : float, optional
            The time, instead of that of the start or of the saved state.
        sampled : dict, optional
            States of sampled blocks, by their names, instead of those.
        """
        samples = self._found.samples_of(sampled, 1)
        with self._found.begun(x, t, "stepper", self._checked) as (begin, state, due), self._kept():
            start = self._diagram.shut(state)
            if self._clocked is not None:
                self._clocked.begin(begin, due)
            for part, values in samples:
                self._compiled.z[part] = values
            y = self._look_as_wired(begin, start)
        self.x, self.t, self._late, self._due = start, begin, 0.0, due
        return y

    def _kept(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._clocked is None else self._clocked.kept()

    @property
    def state(self) -> SavedState:
        """Where it stands, to go back to by `reset`, or to go on from by `Simulation.run`."""
        return self._found.state(self.t, self.x, self._compiled.z, self._due)

    def _checked(self, x: Any) -> Array:
        return numbers(x, len(self.states), "reset: x")

    def step(self, u: ArrayLike, dt: float) -> Array:
        """Hold the inputs for a time, and return the outputs after it.

        Parameters
        ----------
        u : array_like, (m,)
        dt : float
            How long [s].

        Raises
        ------
        BlockError
            A block that fails, or a state that is not finite; time and state stay as they were.
        """
        given: Any = u
        if given.__class__ is np.ndarray and given.shape == self._u.shape and given.dtype is _FLOAT64:
            self._u[:] = given
        elif given.__class__ is float and self._u.size == 1:
            self._u[0] = given
        elif given.__class__ is list and len(given) == self._u.size and all([x.__class__ is float for x in given]):
            self._u[:] = given
        else:
            shapes = self._u.shape, *([()] if self._u.size == 1 else [])
            self._u[:] = real_array(u, "step: u", *shapes, hint=those_of(self.inputs), finite=False)
        if dt.__class__ is not float or not 0.0 < dt < math.inf:
            dt = positive(dt, "step: dt")
        # what is rounded off is added later: steps of a tenth of a clock's period end at its ticks for ever
        ahead = dt + self._late
        end = self.t + ahead
        if self._clocked is not None:
            y, x = self._clocked_step(dt, end)
        elif self._diagram.closed:
            y, x = self._closed_step(dt, end)
        else:
            self._start[:], self._at[TIME], self._at[LENGTH] = self.x, self.t, dt
            status = self._go()
            if status:
                raise self._failure(status, end)
            y, x = self._y.copy(), self._end.copy()
        self.t, self.x, self._late = end, x, ahead - (end - self.t)
        return y

    def _closed_step(self, dt: float, end: float) -> tuple[Array, Array]:
        """Return outputs and state with the loops of mechanisms closed after each substep, as a run does."""
        h, x = dt / self._substeps, self.x
        for k in range(self._substeps):
            self._start[:], self._at[TIME], self._at[LENGTH] = x, self.t + k * h, h
            status = self._go()
            if status:
                raise self._failure(status, end)
            x = shut_within(self._diagram, self._end, end)
        return self._look(end, x, self._u), x

    def _clocked_step(self, dt: float, end: float) -> tuple[Array, Array]:
        """Return outputs and state with what is due on the way done as a run does it."""
        clocked = self._clocked
        assert clocked is not None
        self._program.p[self._places] = self._u
        with clocked.kept():
            try:
                x = clocked.go(self.t, self.x, end, dt / self._substeps)
            except StepFailed:
                self._end[:], self._at[TIME] = clocked.tried, clocked.failed_at
                finite = np.isfinite(self._end).all()
                raise self._failure(1 if finite else NOT_FINITE, end) from None
        self._due = True
        return self._compiled.out[self._seen], x

    def _failure(self, status: int, end: float) -> BlockError:
        if not np.isfinite(self._u).all():
            return input_not_finite(self._u, self.inputs)
        if status == NOT_FINITE:
            wrong = [name for name, value in zip(self.states, self._end, strict=True) if not math.isfinite(value)]
            return BlockError(f"step: state {wrong[0]!r} is not finite at t = {end:.9g}; take shorter steps, substeps=")
        return self._fails_at(float(self._at[TIME]))

    def _look(self, t: float, x: Array, u: Array) -> Array:
        """Return the outputs at a time, with a state and inputs."""
        self._program.p[self._places] = u
        if self._compiled.rate(t, x):
            raise self._fails_at(t)
        return self._compiled.out[self._seen]

    def _look_as_wired(self, t: float, x: Array) -> Array:
        """Return the outputs with the inputs as they are wired, which may follow from one another."""
        out, p, u = self._compiled.out, self._program.p, self._u0
        for _ in range(u.size + 1):
            p[self._places] = u
            failed = self._compiled.rate(t, x)
            wired = out[self._found.wired]
            if wired.tolist() == u.tolist():
                break
            u = wired
        if failed:
            raise self._fails_at(t)
        self._u0 = u
        return out[self._seen]

    def _fails_at(self, t: float) -> BlockError:
        self._program.raise_interrupt()
        return BlockError(f"stepper: a block of the diagram fails at t = {t:.9g}; sim.run says which")


def those_of(inputs: Sequence[str]) -> str:
    """Return what a message adds that refuses u for its shape."""
    return (
        f"the inputs are {', '.join(inputs[:_SHOWN])}{', …' * (len(inputs) > _SHOWN)}" if inputs else "there are none"
    )


def ports_of(stepper: Any) -> str:
    """Return what u and y of a stepper are."""
    return f"u = {', '.join(stepper.inputs) or 'nothing'}; y = {', '.join(stepper.outputs) or 'nothing'}"


def refuse_copies(what: str) -> NoReturn:
    """Refuse to copy or pickle what holds machine code and the arrays that it works in."""
    raise InvalidType(f"a {what} cannot be copied or sent to another process: make another by sim.{what}(...) there")


def input_not_finite(u: Array, inputs: Sequence[str], where: str = "") -> BlockError:
    """Return the error that names the first input (m,) that is not finite."""
    k = int(np.flatnonzero(~np.isfinite(u))[0])
    return BlockError(f"step: u: input {inputs[k]!r}{where} is {u[k]}")


def shut_within(diagram: Any, x: Array, end: float) -> Array:
    """Return a state with loops closed; refuse one that a step has moved too far."""
    try:
        found: Array = diagram.shut(x)
    except InvalidValue as why:
        raise BlockError(f"step: at t = {end:.9g}: {why}; take shorter steps, substeps=") from why
    return found


def fixed_method(solver: Any, what: str) -> Tableau:
    """Return the method of fixed steps of a name."""
    method = EXPLICIT.get(solver) if isinstance(solver, str) else None
    if method is None or method.adaptive:
        fixed = ", ".join(repr(name) for name, each in EXPLICIT.items() if not each.adaptive)
        raise DiagramError(f"{what}: solver: expected one of fixed steps, {fixed}, got {solver!r:.40}")
    return method


def needed_part(
    diagram: Diagram, simstate: Any, moved: list[Input], watched: list[Signal]
) -> tuple[Diagram, NDArray[np.int64]]:
    """Return those blocks that some signals need, with inputs replaced, and where their states stand among all.

    What ends a run counts as needed.
    """
    given = {i.signal.key for i in moved}
    owners = {id(slot): (b, port) for b, port, slot in diagram.outputs}
    stack = [s.block for s in watched]
    stack += [b for d, b in simstate.crossing_detectors if is_of(b.__class__, SinkBlock) and getattr(d, "acts", True)]
    needed: set[Any] = set()
    while stack:
        b = stack.pop()
        if b in needed:
            continue
        needed.add(b)
        for port, slot in enumerate(b._inport_slots):
            source, number = owners[id(slot)]
            if given.isdisjoint({(id(b), ~port), (id(source), number)}):
                stack.append(source)
    kept = [np.arange(part.start, part.stop) for b, part in diagram.continuous if b in needed]
    return diagram.part(needed), np.concatenate([np.zeros(0, dtype=np.int64), *kept])


def declared_events(simstate: Any) -> list[tuple[float, Any]]:
    """Return when what jumps, of those that have declared it, and which clocks tick first."""
    return [(float(t), source) for t, source in simstate.eventq.pop_until(math.inf)]


def _has_more_than_states(
    diagram: Diagram, simstate: Any, declared: list[tuple[float, Any]], moved: list[Input]
) -> bool:
    """Tell whether something happens between two steps: ticks, events that do something, declared jumps."""
    try:
        refuse_more_than_samples(diagram, simstate, declared, moved, "")
    except DiagramError:
        return True
    return bool(diagram.cells)


def _jumps_of_samples(diagram: Diagram) -> list[tuple[float, Clock]]:
    """Return when sampled blocks jump, and by which clock, where a run begins at a time of 0."""
    simstate = RunState(diagram)
    simstate.t, simstate.T, simstate.tf, simstate.max_step = 0.0, 1.0, 1.0, 0.01
    start_clocks(diagram.bd, simstate, 0, 0.0, True)
    for b in diagram.cells:
        b.start_safe(simstate)
    return [(t, source._clock) for t, source in declared_events(simstate) if not isinstance(source, Clock)]


def refuse_other_ticks(program: Program, diagram: Diagram, who: str, cannot: str) -> None:
    """Refuse clocks whose ticks are left to Python, with one of their blocks."""
    written = [clock for clock, _, _ in program.clocks]
    for b in diagram.cells:
        if b._clock not in written:
            raise DiagramError(
                f"{who}: block {b.name!r} {cannot}: its ticks are not translated; only a run handles such: leave the "
                "block out of this diagram, and put what it gives in by inputs="
            )


def refuse_more_than_samples(
    diagram: Diagram, simstate: Any, declared: list[tuple[float, Any]], moved: list[Input], who: str
) -> list[tuple[float, Clock]]:
    """Refuse events that do something, and jumps of sources; return when sampled blocks jump, and by which clock."""
    for bound in diagram.bounds:
        _refuse(who, bound.block.name, "has limits of its states", "limits of states")
    left_out = set(diagram.bd.blocklist) - diagram.blocks
    for detector, block in simstate.crossing_detectors:
        owner = getattr(detector, "block", block)
        if owner in left_out or not getattr(detector, "acts", True):  # at a kink a step ends, which is all
            continue
        if not _replaced(owner, moved):
            may_not = "locate" in inspect.signature(type(owner)).parameters
            remedy = "make it with locate=False, or " if may_not else ""
            _refuse(who, block.name, "locates events", "located events", remedy)
    jumps = [(t, source) for t, source in declared if not isinstance(source, Clock) and source not in left_out]
    for _, source in jumps:
        if source not in diagram.cells:
            _refuse_jumps(source, moved, who)
    return [(t, source._clock) for t, source in jumps if source in diagram.cells]


def _refuse(who: str, name: str, what: str, kind: str, remedy: str = "") -> NoReturn:
    raise DiagramError(
        f"{who}: block {name!r} {what}; only a run handles {kind}: {remedy}leave the block out of this diagram, and "
        "put what it gives in by inputs="
    )


def _replaced(block: Any, moved: list[Input]) -> bool:
    """Tell whether all that a block gives comes from outside instead, so that it does not matter what it would do."""
    given = {i.signal.key for i in moved}
    own = {(id(block), port) for port in range(getattr(block, "nout", 0))}
    return getattr(block, "blockclass", "") in ("source", "function") and own <= given


def _refuse_jumps(source: Any, moved: list[Input], who: str) -> None:
    if _replaced(source, moved):
        return
    name = getattr(source, "name", None)
    what, asked = (f"block {name!r}", f"inputs=[{name!r}]") if name else ("a function", "an input")
    raise DiagramError(
        f"{who}: {what} declares when it jumps, which only a run handles; put in what it gives by {asked}"
    )
