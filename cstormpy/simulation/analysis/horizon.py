"""A run whose states and signals carry their derivatives to parameters along, through ticks, jumps and events."""

from __future__ import annotations

import math
import queue
from functools import partial
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.blocks.sinks import Stop
from bdsim.components import Clock

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidValue
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.bends import BendWatch
from cstormpy.simulation.analysis.jumps import JumpWatch, follows, jump_time, moved_jump, tells_when
from cstormpy.simulation.analysis.kept_programs import KeptProgram
from cstormpy.simulation.analysis.model import columns_of, places_of
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.analysis.resets import Resets, Seen
from cstormpy.simulation.analysis.steps import Steps, Trajectory
from cstormpy.simulation.analysis.switches import Switch
from cstormpy.simulation.analysis.ticks import TickingRun, clocks_among
from cstormpy.simulation.bdsim_blocks import handler_of
from cstormpy.simulation.compiled.opaque_laws import laws_of
from cstormpy.simulation.compiled.side_effects import Remembered
from cstormpy.simulation.compiled.slices import fill_samples
from cstormpy.simulation.compiled.translation import program_of
from cstormpy.simulation.events import Event
from cstormpy.simulation.named_states import sample_places
from cstormpy.simulation.recording import Recording, Signal, find_signals
from cstormpy.simulation.runner import is_jump
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.step_control import JUMP_WIDTH
from cstormpy.simulation.tableaus import explicit_method

#: Numbers that differ by a smaller part are the same.
_ROUNDED = 1e-9
#: Derivatives of numbers, which are differences, are the same where they differ by less of the largest.
_FOLLOWED = 1e-6


def follow(
    sim: Any,
    bd: Any,
    parameters: Parameters,
    kept: KeptProgram,
    watch: Any,
    settings: Settings,
    start: Array | SavedState,
    from_blocks: bool,
    times: Array | None,
    directions: Array | None = None,
    last_first: bool = False,
    seen: tuple[Array, Array] | None = None,
) -> Trajectory:
    """Run a diagram with the derivatives to parameters.

    Parameters
    ----------
    sim : Simulation
    bd : BlockDiagram
    parameters : Parameters
    kept : KeptProgram
        What runs before this one have left, with derivatives to the same parameters.
    watch : list
        Signals whose samples are wanted.
    settings : Settings
    start : array or SavedState
        With the states among the parameters put in.
    from_blocks : bool
        Whether the start is where the blocks begin, and follows their numbers.
    times : ndarray, optional
        Ends of the steps; those of the fixed step of the settings unless given.
    directions : ndarray, (k, n), optional
        How the start follows the parameters, where they do not say it themselves.
    last_first : bool
        Whether events that come together, and move apart with the parameters, are dealt with the other way round.
    seen : tuple of ndarray, optional
        Times and states of a run, by which steps are seen to be too long for what dies away fast, and cut.
    """
    with started(sim, bd, start, 0.0, "gradient", settings.T, settings.first_tick) as (diagram, simstate, t, x):
        run = _TangentRun(diagram, simstate, Recording([], 0, []), settings, queue.SimpleQueue(), [])
        run.resumed, run.last_first = isinstance(start, SavedState), last_first
        run.kept_program = kept
        run.prepare(parameters, find_signals(bd, watch, beside_states=True), from_blocks, sim.engine, times)
        if directions is not None:
            run.dx = directions.copy()
        if run.times is not None and seen is not None:
            run.times = run.steps_of.short_enough(run.times, *seen)
        run.begin(t, x, 0.0)
        run.stand_at_bounds(x)
        run.crossings.before = [None] * len(run.crossings.detectors)
        run.steps_to_end()
        return run.trajectory()


class _TangentRun(TickingRun):
    """A run by steps that carry tangents; events, ticks and jumps are dealt with as in any run."""

    kept_program: KeptProgram

    def prepare(
        self, parameters: Parameters, signals: list[Signal], from_blocks: bool, engine: str, times: Array | None
    ) -> None:
        """Translate the diagram, and differentiate its numbers and its start to the parameters."""
        self.parameters, self.signals, self.times = parameters, signals, times
        self._engine = engine
        #: Blocks whose jumps are events, or declared at times that are known as functions of the parameters.
        self._known = frozenset(
            [str(bound.block.name) for bound in self.diagram.bounds]
            + [str(b.name) for b in self.diagram.bd.blocklist if tells_when(b)]
        )
        #: How the jump at which the run stands moves with the parameters (k,), and the rates before it.
        self._moves: Array | None = None
        self._rate_before = np.zeros(0)
        detectors = self.simstate.crossing_detectors
        #: The zero crossings that blocks have declared; those that are found in their equations come behind them.
        self._declared = [(d, b) for d, b in detectors if getattr(getattr(d, "block", None), "tells_all_kinks", True)]
        detectors[:] = self._declared
        self._telling = self._blocks_that_tell()
        with parameters.moved():
            self.program = self.kept_program.of(self.diagram, self._declared, self._telling)
        if self.program.guards is None:
            names = ", ".join(str(b.name) for _, b in self._declared)
            raise DiagramError(
                f"gradient: the zero crossings of {names} cannot be translated; wire what passes zero to an EVENT"
            )
        #: The samples, in parts: times, states and their tangents, signals and theirs, and how the times move.
        self.kept: list[list[Array]] = []
        self.notes: list[str] = []
        self.meetings: list[Event] = []
        #: What the events that are being dealt with write into states.
        self._resets: Resets | None = None
        #: How the times of the events that were met follow the parameters.
        self._shifts: list[Array] = []
        #: What handlers remember elsewhere.
        self._remembered = Remembered()
        #: How the numbers that the parameters are now follow the parameters, and what tells of others that were set.
        self.values, self._set_others = np.eye(len(parameters.entries)), ""
        #: Whether a jump at which the run stands waits for what is due at the same time.
        self._waits = False
        #: The jumps at which the run stands that move while a tick at the same time does not.
        self._meeting: list[Any] = []
        self._stale = False
        self._owned = {id(slot): (id(b), port) for b, port, slot in self.diagram.outputs}
        self._differentiate(from_blocks)

    def _blocks_that_tell(self) -> list[Any]:
        """Return the blocks that declare where they have kinks, or when they jump."""
        ahead = self.simstate.eventq.pop_until(math.inf)
        for t, source in ahead:
            self.simstate.declare_event(source, t)
        #: The jumps that are declared where the run begins, and when they come.
        self._announced = [(t, source) for t, source in ahead if is_jump(source)]
        owners = [getattr(d, "block", b) for d, b in self._declared]
        kinked = [b for b in owners if getattr(type(b), "declares_kinks", False)]
        jumping = [b for b in self.diagram.bd.blocklist if tells_when(b)]
        return [*kinked, *jumping, *(b for _, b in self._announced)]

    def _differentiate(self, from_blocks: bool) -> None:
        """Find how the numbers of the program, the start and the bounds of states follow the parameters."""
        parameters, bd, size = self.parameters, self.diagram.bd, self.program.p.size
        beginning = [] if self.resumed else self.program.sampled  # what is saved follows nothing

        def read() -> Array:
            if not self._reread():
                return np.zeros(0)
            x0 = parameters.start(np.array(bd.getstate0(), dtype=float) if from_blocks else np.zeros(bd.nstates))
            z0 = [np.ravel(np.asarray(b.getstate0(), dtype=float)) for b, _ in beginning]
            return np.concatenate([self.program.p, x0, self._read_ends(), *z0])

        slopes = parameters.slopes(read)
        self._reread()
        self._refuse_idle(slopes)
        cuts = np.cumsum([size, bd.nstates, 2 * len(self.diagram.bounds.all)])
        dp, self.dx, dends, dz = (np.ascontiguousarray(part) for part in np.split(slopes, cuts, axis=1))
        #: How the least and the greatest value of each bounded state follow the parameters.
        self.dends = dends.reshape(len(slopes), -1, 2)
        self._warn_of_switches(dp)
        self._make(dp)
        for j, entry in enumerate(parameters.entries):
            if isinstance(entry.state, str):
                self.steps_of.dz[j, self._samples()[entry.state]] = 1.0
        first = 0
        for _, part in beginning:
            size = part.stop - part.start
            self.steps_of.dz[:, part] = dz[:, first : first + size]
            first += size

    def _read_ends(self) -> list[float]:
        """Return the bounds of states, zero where there is none."""
        return [value if np.isfinite(value) else 0.0 for b in self.diagram.bounds for value in (b.low, b.high)]

    def _samples(self) -> dict[str, int]:
        """Return where sampled states, and what is held, stand in z, by their names."""
        return sample_places(self.program.sampled, self.program.held)

    def stand_at_bounds(self, first: Array) -> None:
        """Let states that begin, or are written, beyond their bounds, and therefore stand at them, follow these."""
        for k, bound in enumerate(self.diagram.bounds):
            if first[bound.place] != self.x[bound.place]:
                self.dx[:, bound.place] = self.dends[:, k, int(self.x[bound.place] == bound.high)]

    def _reread(self) -> bool:
        """Read the numbers of the blocks anew; return False where the diagram has taken another form."""
        if self.program.refresh():
            return True
        program = program_of(self.diagram, self._declared, self._telling)
        if program.key != self.program.key:
            return False
        self.program.adopt(program)
        return True

    def _numbers(self) -> Array:
        """Return the numbers of the blocks as they are now, none where the diagram has taken another form.

        Bounds that are nowhere are zero, as infinite numbers have no differences.
        """
        return np.where(np.isfinite(self.program.p), self.program.p, 0.0) if self._reread() else np.zeros(0)

    def _refuse_idle(self, slopes: Array) -> None:
        for entry, row in zip(self.parameters.entries, slopes, strict=True):
            # one of a mechanism may have no effect, as that of an axis along itself
            if isinstance(entry.state, str):  # which is no number of a block
                continue
            if entry.block is not None and handler_of(entry.block) is not None:  # which may read it, at its events
                continue
            if not row.any() and entry.mechanism is None and getattr(entry.block, "blockclass", "") != "sampled":
                raise InvalidValue(
                    f"gradient: nothing in the compiled diagram reads {entry.name}, so it cannot be tuned; is it a "
                    "parameter that a block only looks at when it is made?"
                )

    def _warn_of_switches(self, dp: Array) -> None:
        read = self.kept_program.deciding(self._known)
        for entry, row in zip(self.parameters.entries, dp, strict=True):
            if set(np.flatnonzero(row).tolist()) & read:
                self.notes.append(
                    f"{entry.name} decides when something switches; what the run gains or loses by a jump there that "
                    "comes earlier or later is not in the derivative"
                )

    def _make(self, dp: Array) -> None:
        method, compiled = explicit_method(self.settings.solver), self._engine != "interpreted"
        assert method is not None, "others are refused where options are read"
        numbers, tuned = self.program.routine.outputs["out"], frozenset(np.flatnonzero(dp.any(axis=0)).tolist())
        switches = [
            Switch(str(b.name), partial(self._signal, place), jumps, follows(numbers[place], tuned))
            for place, b, jumps in self.program.switches
        ]
        self.simstate.crossing_detectors += [(switch, switch) for switch in switches]
        kinks = [not getattr(detector, "acts", True) for detector, _ in self.simstate.crossing_detectors]
        self.steps_of = Steps(self.program, compiled, method, dp, self.diagram.nstates, kinks)
        watched = places_of(self.program, self.signals)
        self._seen = watched.size
        self._jumps = JumpWatch(
            self.program, self.diagram, self._owned, [entry.block for entry in self.parameters.entries]
        )
        self.columns = np.concatenate([watched, np.array(self._jumps.columns, dtype=np.int64)])
        self._bends_seen = BendWatch(self.steps_of, self.parameters, watched)

    def _signal(self, place: int, t: float, x: Array) -> float:
        self._bounds()
        return self.steps_of.signal(place, t, x)

    # segments

    def _segment(self, bound: float, sources: list[Any]) -> bool:
        d = self.diagram
        d.latest = bound - JUMP_WIDTH * float(np.spacing(bound)) if any(is_jump(s) for s in sources) else math.inf
        while self.t < bound:
            times = self._ends(np.array([bound]))
            self._bounds()
            d.earliest = -math.inf
            sides = self._sides()
            taken, kept = self.steps_of.advance(times, self.x, self.dx, sides, self.columns)
            self._aside = 0 if taken else self._aside
            self._look_for_jumps(times[: taken + 1], *kept[2:])
            self.steps += taken
            self.t = float(times[taken])
            self.crossings.before = sides[0].tolist()
            self._look_for_bends(times[1 : taken + 1], *kept[:2])
            last = taken - 1 if taken and self.t >= bound else taken
            if last:
                still = np.zeros((last, len(self.dx)))
                self.kept.append([times[1 : last + 1], *(part[:last] for part in kept), still])
            if taken < len(times) - 1:
                self._cross(float(times[taken + 1]), bound, sides)
                return self.t >= bound and self.simstate.stop is None
        return True

    # events

    def _event(self, t: float, x: Array, fired: list[int], jumped: bool = False) -> None:
        """Stand at an event; how much earlier or later it comes shifts the states by f⁻ − f⁺ for that time."""
        acting = [b for d, b in map(self.simstate.crossing_detectors.__getitem__, fired) if getattr(d, "acts", True)]
        self._refuse_acting(acting)
        self._bounds()
        self._tell_end(t, x, fired)
        self._stale, known = True, self._tangents_of_signals(t, x, fired, jumped)
        shift, _ = self._shifted()
        resets = Resets(
            self.diagram, self.simstate, self.parameters, self._numbers, t, x, fired, *known, shift, self.values,
            self._remembered,
        )  # fmt: skip
        times = [jump_time(b, when) for when, b in self._announced if when > self.t]

        def decided() -> list[float]:
            return [*self._read_ends(), *(reader() for reader in times if reader is not None)]

        self._resets, before, fixed, others = resets, self._noted(), decided(), self._set_others
        super()._event(t, x, fired, jumped)
        shift = shift if t < self.end or self.simstate.stop is not None else np.zeros_like(shift)
        self._shifts += [shift] * (len(self.events) - len(self._shifts))  # those that it has caused are there already
        self._tell_noted(before)
        for name in resets.recalled:
            told = f"{name}: its function goes by numbers that were remembered before t = "
            if not any(note.startswith(told) for note in self.notes):
                more = "keep them in a state, as of an INTEGRATOR of zero"
                self.notes.append(f"{told}{t:.6g}; how they follow the parameters is not in the derivative; {more}")
        if resets.by and (others or fixed != decided()):
            self._tell_set(others or self._set_by(resets.by))

    def _leaves_a_step(self, before: Array, after: Array) -> bool:
        return self._goes() is not None or super()._leaves_a_step(before, after)

    def _set_by(self, by: list[str]) -> str:
        return f"{' and '.join(dict.fromkeys(by))}: numbers of blocks are set at t = {self.t:.6g}"

    def _tell_set(self, told: str) -> None:
        """Note that a handler has set numbers whose derivatives are not known wherever they are read."""
        if not any(note.startswith(told.rpartition("=")[0]) for note in self.notes):
            self.notes.append(f"{told}; how they follow the parameters is not in the derivative")

    def _take_numbers(self, resets: Resets) -> None:
        """Have the numbers of the blocks follow the parameters as a handler has left them."""
        dp, numbers = self.steps_of.dp, resets.numbers
        if numbers is None or numbers.shape != dp.shape:
            self._tell_set(self._set_by(resets.by))
            return
        known = resets.values @ self.parameters.slopes(self._numbers)
        self._reread()
        sizes = np.maximum(np.abs(known), np.abs(numbers))
        if (np.abs(numbers - known) > _FOLLOWED * np.maximum(sizes, sizes.max(axis=1, keepdims=True))).any():
            self._set_others = self._set_by(resets.by)
            if len(resets.by) > 1:  # of which the one behind may read what the one before has set
                self._tell_set(self._set_others)
        before, moved = (frozenset(np.flatnonzero(each.any(axis=0)).tolist()) for each in (dp, numbers))
        asked = [self.program.routine.outputs["out"][place] for place, *_ in self.program.switches]
        unseen = any(follows(each, moved) and not follows(each, before) for each in asked)
        if unseen or (moved - before) & self.kept_program.deciding(self._known):
            self._tell_set(self._set_by(resets.by))
        self.values, dp[:] = resets.values, numbers

    def _handle(self, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        assert self._resets is not None
        p, n = self.program.p.copy(), self.program.n.copy()
        self._resets.handle(super()._handle, block, t, x, states)
        self.program.p[:], self.program.n[:] = p, n  # tries have left others; what stands before the event is of these

    def _tangents_of_signals(
        self, t: float, x: Array, fired: list[int], jumped: bool
    ) -> tuple[dict[int, list[Array]], list[Seen]]:
        """Return how the inputs that events write into states follow the parameters (size, k), as the time does too.

        And all signals, where a handler of the user may look at them.
        """
        detectors = self.simstate.crossing_detectors
        found = {i: detectors[i][0] for i in fired if _samples(detectors[i][0])}
        handled = any(isinstance(detectors[i][1], Block) for i in fired)
        if not found and not handled:
            return {}, []
        self._look_beyond(jumped)
        self._bounds()
        shift, before = self._shifted()
        self.steps_of.evaluate(t, x, self.dx + shift[:, None] * before if shift.any() else self.dx, shift)
        inputs = {i: [self._tangent_of(slot).T.copy() for slot in d.block._inport_slots] for i, d in found.items()}
        slots = [slot for _, _, slot in self.diagram.outputs] if handled else []
        return inputs, [Seen(slot, tangents) for slot in slots if (tangents := self._tangent_of(slot).T.copy()).any()]

    def _shifted(self) -> tuple[Array, Array]:
        """Return by how much the parameters delay where the run stands, and the rates before it."""
        if self._delay is not None:
            return self._delay
        return np.zeros(len(self.dx)) if self._moves is None else self._moves, self._rate_before

    def _noted(self, again: bool = True) -> dict[tuple[str, str], Any]:
        """Return what laws of controllers have noted, by block and what it is."""
        controllers = [(str(b.name), laws) for b in self.diagram.bd.blocklist if (laws := laws_of(b)) is not None]
        return {(name, what): value for name, laws in controllers for what, value in laws.noted(again).items()}

    def _tell_noted(self, before: dict[tuple[str, str], Any], again: bool = True) -> None:
        """Note numbers that laws have from the state since then: how these follow the parameters is not known."""
        for (block, what), value in self._noted(again).items():
            told = f"{block}: {what} is noted from the run at t = "
            changed = not np.array_equal(before.get((block, what), ()), value)
            if changed and not any(note.startswith(told) for note in self.notes):
                self.notes.append(f"{told}{self.t:.6g}; how it follows the parameters is not in the derivative")

    def _begin_segment(self, jumped: bool) -> None:
        self._look_beyond(jumped)
        sides = [bound.side for bound in self.diagram.bounds]
        self._stale = self._hold_or_free() or self._stale
        if jumped:
            bounds = zip(self.diagram.bounds, sides, strict=True)
            self._refuse_acting([bound.block for bound, side in bounds if bound.side != side])
        self.diagram.at(self.t, self.x)
        if self.t == self.start_time and not self.resumed and self.dx.any():
            self._tell_noted({}, again=False)
        self._renew()
        self._bounds()
        if not self.kept and not self.resumed:
            self._tell_beginning()
        shift, before = self._shifted()
        resets, self._resets = self._resets, None
        if shift.any() or resets is not None:
            self.dx = self.dx + shift[:, None] * before if shift.any() else self.dx
            if resets is not None:
                self.dx, written = resets.carry(self.dx, self.x)
                self.stand_at_bounds(written)
                if resets.numbers is not None:
                    self._take_numbers(resets)
            _, after, _ = self.steps_of.evaluate(self.t, self.x, self.dx)
            self.dx = self.dx - shift[:, None] * after
            self._rate_before = after
            self._delay = None if self._delay is None else (shift, after)
        for k, bound in enumerate(self.diagram.bounds):
            if bound.side not in (0.0, sides[k]):  # it stands at its bound from now on
                self.dx[:, bound.place] = self.dends[:, k, int(bound.side > 0.0)]

    # declared jumps

    def _boundary(self, sources: list[Any]) -> None:
        """Do what is due; where a jump that comes earlier or later shifts the states, by f⁻ − f⁺ for that time.

        Ticks at the same time, which do not move, come before it.
        """
        jumps = [s for s in sources if is_jump(s)]
        moves = moved_jump(self, jumps, clocks_among(sources))
        if moves is not None and len(jumps) < len(sources):
            apart, others = self._leap(), [s for s in sources if not is_jump(s)]
            self._waits = True
            self._meeting = jumps if any(getattr(s, "blocklist", True) for s in others) else []
            super()._boundary(others)
            self._waits, sources = False, jumps
            if not _same(self._leap(), apart).all():
                raise self._meets_tick("what is sampled makes the jump another one")
        if moves is not None:
            self._bounds()
            _, self._rate_before, _ = self.steps_of.evaluate(self.t, self.x, self.dx)
        self._moves = moves
        super()._boundary(sources)
        self._moves, self._meeting = None, []

    def _look_beyond(self, jumped: bool) -> None:
        super()._look_beyond(jumped)
        if self._waits:
            self.diagram.latest = self.t - JUMP_WIDTH * float(np.spacing(self.t))

    def _leap(self) -> Array:
        """Return by how much the rates jump where a source does, zero where that is rounding."""
        self._bounds()
        before = self.steps_of.rate_at(self.t, self.x)
        self._bounds_beyond()
        after = self.steps_of.rate_at(self.t, self.x)
        return np.where(_same(before, after), 0.0, after - before)

    def _bounds_beyond(self) -> None:
        self.steps_of.bounds[:] = self.t + JUMP_WIDTH * float(np.spacing(self.t)), math.inf

    def changed_by_a_jump(self, clocks: list[Clock], moves: Array) -> list[str]:
        """Return which blocks that sample at a jump sample something else behind it, or what follows otherwise there.

        What an event at the jump changes is not seen: that event is refused where it comes.
        """
        sampling = [(b, slot) for clock in clocks for b in clock.blocklist for slot in b._inport_slots]
        if not sampling:
            return []
        later, s = moves[:, None] * self._leap(), self.steps_of
        sides: list[Array] = []
        for bounds, dx in ((self._bounds, self.dx), (self._bounds_beyond, self.dx - later)):
            bounds()
            s.evaluate(self.t, self.x, dx)
            sides.append(np.vstack([s.out, s.dout]))
        same = _same(*sides).all(axis=0)
        found: list[str] = []
        for b, slot in sampling:
            first, shape = self.program.columns[self._owned[id(slot)]]
            if not same[first : first + int(np.prod(shape))].all():
                found.append(str(b.name))
        return list(dict.fromkeys(found))

    def _refuse_acting(self, blocks: list[Any]) -> None:
        """Refuse what blocks do where a jump that moves meets a tick: it may depend on which of both comes first."""
        if self._meeting and blocks:
            raise self._meets_tick(f"an event of {' and '.join(dict.fromkeys(str(b.name) for b in blocks))} comes too")

    def _meets_tick(self, what: str) -> DiagramError:
        """Return the error where a jump that moves meets a tick, which says what comes of it."""
        names = " and ".join(str(b.name) for b in self._meeting)
        return DiagramError(
            f"gradient: {names} jumps at t = {self.t:.9g}, where a clock ticks and {what}: there is no derivative; "
            "move one of them a little"
        )

    def _renew(self) -> None:
        """Take the numbers and sampled states that the blocks have now."""
        fill_samples(self.steps_of.z, self.program, self.diagram)
        if not self._stale:
            return
        self._stale = False
        if not self._reread():
            raise DiagramError(
                f"gradient: at t = {self.t:.9g} the diagram takes another form; end the horizon before it"
            )

    # what is kept

    def _observe(self, at_boundary: bool = False) -> None:
        self._bounds()
        status, rate, _ = self.steps_of.evaluate(self.t, self.x, self.dx)
        if status or not np.isfinite(self.steps_of.out).all():
            self.diagram.at(self.t, self.x)
            self.observation.check_finite(self.t)
            raise self._ended()
        if not self.kept:  # sinks are not served, of which a STOP ends a run that begins beyond it
            beyond = [value is not None and value > 0.0 for value in self.crossings.before]
            stops = [b for (_, b), is_on in zip(self.crossings.detectors, beyond, strict=True) if is_on]
            self.simstate.stop = next((b for b in stops if isinstance(b, Stop)), self.simstate.stop)
        s, c = self.steps_of, self.columns
        dx, dsignals, moves = self.dx.copy(), s.dout[:, c], np.zeros(len(self.dx))
        signals = s.out[c].copy()
        if self.simstate.stop is not None and self._delay is not None:
            self._moves = self._delay[0]
        goes = self._goes()
        goes = self._moves if goes is None else goes
        if goes is not None:  # the samples on both sides of a jump or an event go with it, and the last one by a STOP
            moves = goes
            along, _ = s.evaluate_along(self.t, self.x, rate)
            dx, dsignals = dx + moves[:, None] * rate, dsignals + moves[:, None] * along[c]
        sample = np.array([self.t]), self.x[None].copy(), dx[None], signals[None], dsignals[None], moves[None]
        self.kept.append([*sample])

    def trajectory(self) -> Trajectory:
        """Return what was run."""
        if self.simstate.stop is None:
            self._bounds()
            self._tell_end(self.t, self.x, range(len(self.simstate.crossing_detectors)))
        t, x, dx, signals, dsignals, dt = map(np.concatenate, zip(*self.kept, strict=True))
        self._refuse_infinite(t, dx)
        y, dy, first = [], [], 0
        for s in self.signals:
            shape = columns_of(self.program, s)[1]
            last = first + int(np.prod(shape))
            y.append(signals[:, first:last].reshape(len(t), *shape))
            dy.append(dsignals[:, :, first:last].reshape(len(t), dx.shape[1], *shape))
            first = last
        differenced = list(dict.fromkeys(self.program.differenced))
        written = {b for clock, _, _ in self.program.clocks for b in clock.blocklist}
        asked = [b for b, _ in self.program.sampled if b not in written]
        differenced += [(str(b.name), "what it does at a tick") for b in asked]
        self._bounds()
        rate = self.steps_of.rate_at(self.t, self.x)
        steps, ended = self.steps_of, (self.meetings, self.status, self.message)
        samples = {name: (float(steps.z[k]), steps.dz[:, k].copy()) for name, k in self._samples().items()}
        run = t, dt, x, dx, rate, samples, self.signals, y, dy
        return Trajectory(*run, self.events, self._shifts, differenced, self.notes, *ended, self.times)

    def _refuse_infinite(self, t: Array, dx: Array) -> None:
        """Refuse states whose derivatives are not finite, where a slope is infinite."""
        if np.isfinite(dx).all():
            return
        i, j, k = np.argwhere(~np.isfinite(dx))[0]
        raise DiagramError(
            f"gradient: how {self.diagram.bd.statenames[k]} follows {self.parameters.names[j]} is not finite at "
            f"t = {t[i]:.6g}; a slope is infinite there, as that of a square root at zero"
        )


def _same(a: Array, b: Array) -> Any:
    """Tell which numbers are the same up to rounding."""
    return np.abs(a - b) <= _ROUNDED * (np.abs(a) + np.abs(b))


def _samples(detector: Any) -> bool:
    """Tell whether an event writes inputs into states."""
    return getattr(detector, "by_inputs", False) and detector.tangents is not None
