"""Diagrams that others step: what of them is stepped, where it begins, and what is refused of them."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from bdsim.block import SinkBlock
from bdsim.components import Clock
from numpy.typing import NDArray

from cstormpy.arrays import Array, own_arrays, real_array, real_number
from cstormpy.errors import BlockError, DiagramError, InvalidType, InvalidValue, shown, unknown_name
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
from cstormpy.simulation.bounds import is_bounded
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import fill_samples
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.edges import edges_of
from cstormpy.simulation.given_arguments import check_numbers
from cstormpy.simulation.named_states import state_vector
from cstormpy.simulation.recording import Signal, find_signals
from cstormpy.simulation.run_start import start_clocks
from cstormpy.simulation.runner import RunState
from cstormpy.simulation.saved_state import SavedState, opened, ticks_are_due


class AssemblySteppedByOthers(AssemblyWithInputs):
    """A walk through a diagram that settles states after each step, as there are no events that would do so."""

    def rate_rule(self, b: Any) -> str:
        """Return which of a block's equations gives the rates of its states: where they have limits, beside these."""
        return "bounded_deriv" if is_bounded(b) else "deriv"

    def shown_rule(self, b: Any) -> Callable[..., Any] | None:
        """Return what puts a state at its limit that is beyond it within a step."""
        return self.settling_rule(b) if is_bounded(b) else None

    def settled_blocks(self) -> list[tuple[Any, slice]]:
        """Return the blocks that have loops, rotation vectors or limits, and where their states stand."""
        return self.diagram.settling

    def settling_rule(self, b: Any) -> Callable[..., Any]:
        """Return what settles the states of a block."""
        equations = equations_of(b) if is_bounded(b) else None
        return self.projected if equations is None or equations.bounded is None else equations.bounded

    @staticmethod
    def projected(b: Any, t: Any, u: Any, x: Any) -> Any:
        """Return the state of a block as it is to be after a step."""
        return b.settled(x)


@dataclass(frozen=True)
class Start:
    """Where steps begin.

    Attributes
    ----------
    t : float
    x : ndarray
        The state, or a row for each copy.
    due : bool
        Whether clocks that tick at this time are still to do so.
    fresh : bool
        Whether they have not ticked before.
    """

    t: float
    x: Array
    due: bool
    fresh: bool


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
    sources : list of Block
        Sources that jump or bend at known times.
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
    sources: list[Any]
    saved: SavedState | None
    places: NDArray[np.int64]
    seen: NDArray[np.int64]
    wired: NDArray[np.int64]

    @contextlib.contextmanager
    def begun(self, x: Any, t: float | None, who: str, checked: Callable[[Any], Array]) -> Iterator[Start]:
        """Yield where a reset goes to, of what users say of it, with the numbers of all blocks read anew.

        The sampled blocks have their states. What is not said is as where it began; an array is yielded as it is
        `checked`. Where this or what follows fails, all stays as it was.
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
            yield Start(begin, x, due, not saved and self.saved is None)
        except BaseException:  # of blocks of a user, Ctrl-C
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

    def beginning(self, start: Start) -> tuple[Array, list[tuple[float, int]], Array]:
        """Return sampled states at a start, the next tick of each clock and its number, and jumps ahead."""
        z = np.zeros(self.program.sampled_size)
        fill_samples(z, self.program, self.diagram)
        start_clocks(self.diagram.bd, self.simstate, 0, start.t, start.due)
        ticks = {source: when for when, source in declared_events(self.simstate) if isinstance(source, Clock)}
        number = {clock: self.simstate.clock_states[clock].tick - 1 for clock in ticks}
        # a jump is told as of a clock that ticks first with its tick 0
        jumps = [when + (number[clock] * clock.T if start.fresh else 0.0) for when, clock in self.jumps]
        clocks = [clock for clock, _, _ in self.program.clocks]
        return (
            z,
            [(ticks[c], number[c]) for c in clocks],
            np.array(sorted(j for j in jumps if j > start.t), dtype=float),
        )

    @property
    def stops(self) -> bool:
        """Whether steps are cut on the way: where a clock ticks, or a source jumps."""
        return bool(self.program.clocks or self.sources)

    @property
    def sampled(self) -> tuple[str, ...]:
        """The names of the sampled blocks."""
        return tuple(str(b.name) for b, _ in self.program.sampled)

    def samples_of(self, given: Any, rows: int) -> list[tuple[slice, Array]]:
        """Return where sampled states stand and what they are, of what users say of them by the names of blocks."""
        parts = {str(b.name): part for b, part in self.program.sampled}
        sizes = {name: part.stop - part.start for name, part in parts.items()}
        return [(parts[name], values) for name, values in samples_named(given, sizes, rows)]

    def state(self, t: float, x: Array, z: Array, due: bool) -> SavedState:
        """Return the state of the whole where what is stepped stands; at a start nothing is held yet."""
        whole, program = self.first[1].copy(), self.program
        whole[self.kept] = x
        for b, part in program.held:
            self.diagram.holds[b].put(z[part])
        found = SavedState.of(self.whole, t, whole, 0.0)
        sampled = {**found.sampled, **{str(b.name): z[part].tolist() for b, part in program.sampled}}
        held = {} if z[list(program.flags.values())].any() else found.held
        return replace(found, sampled=sampled, held=held, due=due)


def stepped_by_others(
    sim: Any,
    bd: Any,
    inputs: Any,
    outputs: Any,
    x: Any,
    who: str,
    walk: type[AssemblySteppedByOthers] = AssemblySteppedByOthers,
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
            raise DiagramError(f"{who}: {why}{f'; {_BY_RUNS[who]}' if who in _BY_RUNS else ''}") from why
        refuse_other_ticks(program, diagram, who, "cannot be stepped")
        return SteppedByOthers(
            diagram,
            whole,
            kept,
            simstate,
            program,
            (t, state.copy()),
            own_arrays(x) if x is None or isinstance(x, Mapping) else state.copy(),
            np.concatenate([*(i.value for i in moved), np.zeros(0)]),
            tuple(name for i in moved for name in labels(i.signal)),
            tuple(name for s in watched for name in labels(s)),
            tuple(bd.statenames[k] for k in kept),
            jumps,
            jumping_sources(diagram, moved),
            saved if isinstance(saved := opened(x, f"{who}: x"), SavedState) else None,
            np.array([k for i in moved for k in assembly.places_of.get(i.signal.key, ())], dtype=np.int64),
            places_of(program, watched),
            places_of(program, [arriving(bd, i.signal) for i in moved]),
        )


def samples_named(given: Any, sizes: Mapping[str, int], rows: int) -> list[tuple[str, Array]]:
    """Return sampled states that a user gives by the names of blocks, of which each has so many."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidType(f"reset: sampled: expected a dict, as {{'filter': state}}, got {shown(given)}")
    found = []
    for name, value in given.items():
        if name not in sizes:
            raise unknown_name("reset: sampled: block", name, sizes)
        size = sizes[name]
        found.append((name, real_array(value, f"reset: sampled[{name!r}]", (size,), (rows, size))))
    return found


def settled_within(diagram: Any, x: Array, end: float) -> Array:
    """Return a state as it is to be after a step; refuse one that a step has moved too far."""
    try:
        found: Array = diagram.settled(x)
    except InvalidValue as why:
        raise BlockError(f"step: at t = {end:.9g}: {why}; take shorter steps, substeps=") from why
    return found


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
    return bool(diagram.cells or jumping_sources(diagram, moved))


def jumping_sources(diagram: Diagram, moved: list[Input]) -> list[Any]:
    """Return the sources that jump or bend at known times, and whose signals are no inputs."""
    return [b for b, *_ in diagram.order if edges_of(b) is not None and not _replaced(b, moved)]


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
            ways = _either(
                _BY_RUNS.get(who, ""), "leave the block out of this diagram, and put what it gives in by inputs="
            )
            raise DiagramError(
                f"{who}: block {b.name!r} {cannot}: its ticks are not translated; only a run handles such: {ways}"
            )


def refuse_more_than_samples(
    diagram: Diagram, simstate: Any, declared: list[tuple[float, Any]], moved: list[Input], who: str
) -> list[tuple[float, Clock]]:
    """Refuse events that do something, and sources that do not tell when they jump.

    Returns when sampled blocks jump, and by which clock.
    """
    left_out = set(diagram.bd.blocklist) - diagram.blocks
    for detector, block in simstate.crossing_detectors:
        owner = getattr(detector, "block", block)
        if owner in left_out or not getattr(detector, "acts", True):  # at a kink a step ends, which is all
            continue
        if getattr(detector, "settles", False):  # which is done after each step instead
            continue
        if not _replaced(owner, moved):
            may_not = "locate" in inspect.signature(type(owner)).parameters
            remedy = "make it with locate=False" if may_not else ""
            _refuse(who, block.name, "locates events", "located events", remedy, gives=getattr(owner, "nout", 1) > 0)
    jumps = [(t, source) for t, source in declared if not isinstance(source, Clock) and source not in left_out]
    for _, source in jumps:
        if source not in diagram.cells and edges_of(source) is None:
            _refuse_jumps(source, moved, who)
    return [(t, source._clock) for t, source in jumps if source in diagram.cells]


#: What helps who asks, beside leaving a block out.
_BY_RUNS = {"stepper": "give events=True, with which each step is a run"}


def _either(*ways: str) -> str:
    """Return what helps, of which one may be empty."""
    *others, last = filter(None, ways)
    return ", ".join([*others, f"or {last}"]) if others else last


def _refuse(who: str, name: str, what: str, kind: str, remedy: str = "", gives: bool = True) -> NoReturn:
    instead = ", and put what it gives in by inputs=" if gives else ""
    if not gives and who not in _BY_RUNS:
        instead = "; sim.sweep makes many runs with it"
    ways = _either(_BY_RUNS.get(who, ""), remedy, f"leave the block out of this diagram{instead}")
    raise DiagramError(f"{who}: block {name!r} {what}; only a run handles {kind}: {ways}")


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
    tell = "have its class tell when by a method edges(), as PULSE does" if name else ""
    ways = _either(_BY_RUNS.get(who, ""), tell, f"put in what it gives by {asked}")
    raise DiagramError(f"{who}: {what} declares when it jumps, which only a run handles; {ways}")
