"""Translates a compiled diagram into one function, and makes it ready to run.

The source is ``rate(t, x, z, p, n, w, out, xd)``: x the continuous states, z the sampled ones, p all numbers, n the
structure of the mechanisms, w scratch memory; it fills out, the signals of all outputs one behind the other, then the
guards and what sampled states become at a tick, and xd. It returns 0, or the position of a block, counted from 1, that
failed. Numbers, names and strings of a diagram do not stand in it, so that another diagram of the same wiring needs no
other code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled import (  # noqa: F401  # they register themselves
    bdsim_equations,
    bdsim_equations_curves,
    bdsim_equations_states,
    emitters_functions,
    emitters_kinematics,
    emitters_mechanisms,
    function_equations,
)
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_functions import fingerprint
from cstormpy.simulation.compiled.emitters_own import own_guard, own_next, own_outputs, own_rates
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.numbers import Numbers
from cstormpy.simulation.compiled.python_calls import PythonCall
from cstormpy.simulation.compiled.registry import (
    NotTranslated,
    Value,
    emitter_of,
    guard_of,
    is_silent,
    next_of,
    rate_of,
)
from cstormpy.simulation.compiled.traced import Untraceable
from cstormpy.simulation.diagram import Diagram

__all__ = ["Program", "translate"]

Array = NDArray[np.float64]


@dataclass
class Program:
    """A diagram's function, and the arrays that it takes.

    Attributes
    ----------
    source : str
    p, n : ndarray
        Numbers and integers that it reads.
    scratch, width : int
        How large w and out are.
    columns : dict
        Where in out an output stands, and its shape, by id of the block and port.
    sampled : list
        Blocks with sampled states, and where in z theirs stand.
    held : list of (Block, slice)
        Where in z stands what sampled blocks hold at their outputs.
    flags : dict of Clock to int
        Where in z stands whether the outputs that are held by a clock's ticks are computed now.
    guards : list of (int, float, bool) or None
        Where in out the quantity of each zero-crossing detector stands, the detector's direction, and whether that is
        all it looks at; None where there is one that is not translated.
    loud : list of str
        Sinks that want to be called at each point.
    calls, functions, owners, fingerprint
        What the source calls of the kernels and of the user's functions, whose blocks these are, what tells them from
        others, and whether that holds in another process too.
    legend : list of str
        What each variable is.
    pending : list of functions
        Each tells whether somebody has asked a block for something that its guards do not show.
    python_calls : list of PythonCall
        Blocks that the function asks in Python.
    numbers : Numbers
        How p and n are read anew.
    clocks : list of (Clock, slice, int)
        Clocks whose ticks are translated: where in z the states of their blocks stand, and what these hold, and in out
        the new ones.
    checked : int
        How many of out are signals and guards.
    nstates : int
        How many continuous states there are.
    blocks : list of str
        The names of the blocks in the order in which the function numbers them where they fail.
    line_owners : list of str
        The name of the block that each line of the source is of, from the second line on.
    ways : list of (str, str)
        Of blocks without emitter the name, and in which way each is computed.
    """

    source: str
    p: Array
    n: NDArray[np.int64]
    scratch: int
    width: int
    columns: dict[tuple[int, int], tuple[int, tuple[int, ...]]]
    sampled: list[tuple[Any, slice]]
    sampled_size: int
    held: list[tuple[Any, slice]]
    flags: dict[Any, int]
    guards: list[tuple[int, float, bool]] | None
    loud: list[str]
    calls: tuple[str, ...]
    functions: dict[str, tuple[Any, str]]
    owners: dict[str, str]
    fingerprint: tuple[str, bool]
    legend: list[str]
    pending: list[Callable[[], bool]]
    python_calls: list[PythonCall]
    numbers: Numbers
    clocks: list[tuple[Any, slice, int]]
    checked: int
    nstates: int
    blocks: list[str]
    line_owners: list[str]
    ways: list[tuple[str, str]]

    def refresh(self) -> bool:
        """Read the numbers anew from the blocks; return False where the diagram is to be translated anew instead."""
        try:
            return self.numbers.refresh(self.p, self.n)
        except Exception:  # what a reader no longer finds in its block
            return False

    def raise_interrupt(self) -> None:
        """Raise what has interrupted a block that the function asked in Python."""
        for call in self.python_calls:
            call.raise_interrupt()

    @property
    def key(self) -> tuple[str, str]:
        """What tells its code from that of another diagram."""
        return self.source, self.fingerprint[0]

    def printed(self) -> str:
        """Return the source with a line for each block before it, which says what is called how in it."""
        return "\n".join(f"# {line}" for line in self.legend) + "\n" + self.source


def translate(diagram: Diagram, detectors: list[tuple[Any, Any]] | None = None) -> Program:
    """Return the program of a diagram whose signals have just been evaluated, which tells their shapes.

    Parameters
    ----------
    diagram : Diagram
    detectors : list, optional
        The zero-crossing detectors of the run, with their blocks.

    Raises
    ------
    NotTranslated
        With every block that stands in the way.
    """
    return _Translation(diagram, detectors or []).program()


class _Translation:
    def __init__(self, diagram: Diagram, detectors: list[tuple[Any, Any]]) -> None:
        self.diagram, self.detectors = diagram, detectors
        self.e = Emitter()
        self.signals: dict[int, Any] = {}
        self.reasons: list[tuple[str, str]] = []
        self.columns: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        self.width = 0
        self.sampled: list[tuple[Any, slice]] = []
        self.sampled_size = 0
        self.held: list[tuple[Any, slice]] = []
        self.flags: dict[Any, int] = {}
        self.states: dict[Any, Value] = {}
        self.legend: list[str] = []

    def program(self) -> Program:
        e = self.e
        self._name_states()
        for k, (b, *_) in enumerate(self.diagram.order):
            e.block = k
            self._attempt(b, self._outputs)
        for k, (b, part) in enumerate(self.diagram.continuous):
            e.block = len(self.diagram.order) + k
            self._attempt(b, lambda b, part=part: self._rates(b, part))
        if self.reasons:
            raise NotTranslated(self.reasons)
        guards = self._guards()
        checked, clocks = self.width, self._clocks()
        names = self._numbered()
        body = "\n".join(f"    {line}" for line in e.lines)
        source = f"def rate(t, x, z, p, n, w, out, xd):\n{body}\n    return 0\n"
        return Program(
            source=source,
            p=e.numbers_of.floats.array(),
            n=e.numbers_of.whole.array(),
            scratch=e.scratch_size,
            width=self.width,
            columns=self.columns,
            sampled=self.sampled,
            sampled_size=self.sampled_size,
            held=self.held,
            flags=self.flags,
            guards=guards,
            loud=[str(b.name) for b in self.diagram.sinks if not is_silent(b)],
            calls=tuple(sorted(e.calls)),
            functions=e.functions,
            owners=e.owners,
            fingerprint=fingerprint([f for f, _ in e.functions.values()]),
            legend=self.legend,
            pending=e.pending,
            python_calls=e.python_calls,
            numbers=e.numbers_of,
            clocks=clocks,
            checked=checked,
            nstates=self.diagram.nstates,
            blocks=names,
            line_owners=[names[number] if number < len(names) else "the diagram" for number in e.written_by],
            ways=[(names[number], way) for number, told in e.ways.items() for way in told],
        )

    def _numbered(self) -> list[str]:
        """Return the names of the blocks in the order in which they were gone through."""
        d = self.diagram
        blocks = [*(b for b, *_ in d.order), *(b for b, _ in d.continuous), *(b for _, b in self.detectors)]
        blocks += [b for clock in d.bd.clocklist for b in clock.blocklist]
        return [str(b.name) for b in blocks]

    def _name_states(self) -> None:
        for b, part in self.diagram.continuous:
            self.states[b] = named([f"x[{k}]" for k in range(part.start, part.stop)])
        for clock in self.diagram.bd.clocklist:
            for b in clock.blocklist:
                part = slice(self.sampled_size, self.sampled_size + b.ndstates)
                self.states[b] = named([f"z[{k}]" for k in range(part.start, part.stop)])
                self.sampled.append((b, part))
                self.sampled_size = part.stop
            for b in clock.blocklist:
                if b in self.diagram.holds:
                    size = sum(np.size(slot.value) for slot in b._outport_slots)
                    part = slice(self.sampled_size, self.sampled_size + size)
                    self.held.append((b, part))
                    self.flags.setdefault(clock, -1)
                    self.sampled_size = part.stop
        for clock in self.flags:
            self.flags[clock] = self.sampled_size
            self.sampled_size += 1

    def _attempt(self, b: Any, emit: Any) -> None:
        functions = len(self.e.functions)
        try:
            emit(b)
        except Untranslatable as error:
            self._refuse(b, str(error))
        except Exception as error:  # an emitter, perhaps a user's, that met what it does not know
            self._refuse(b, f"its emitter failed: {type(error).__name__}: {error}")
        for name in list(self.e.functions)[functions:]:
            self.e.owners[name] = str(b.name)

    def _emitted(self, emit: Any, b: Any, u: list[Value], x: Any) -> Any:
        """Return what an emitter gives, which may be one that knows nothing of readers."""
        self.e.foreign = not str(getattr(emit, "__module__", "")).startswith("cstormpy.")
        return emit(self.e, b, u, x)

    def _refuse(self, b: Any, why: str) -> None:
        self.reasons.append((str(b.name), why))
        for slot in b._outport_slots:  # those behind it are still looked at
            self.signals[id(slot)] = np.full(np.shape(slot.value), "0.0", dtype=object)

    def _inputs(self, b: Any) -> list[Value]:
        feedthrough = [id(slot) in self.signals for slot in b._inport_slots]
        if not all(feedthrough):
            raise Untranslatable(f"input {feedthrough.index(False)} is not computed before it")
        return [self.signals[id(slot)] for slot in b._inport_slots]

    def _outputs(self, b: Any) -> None:
        emit = emitter_of(b) or own_outputs
        x = self.states.get(b)
        inputs = [self.signals.get(id(slot), named("nan")) for slot in b._inport_slots] if x is not None else None
        values = self._emitted(emit, b, self._inputs(b) if inputs is None else inputs, x)
        if len(values) != b.nout:
            raise Untranslatable(f"its emitter gives {len(values)} values for {b.nout} outputs")
        values = self._as_held(b, values)
        for port, (slot, value) in enumerate(zip(b._outport_slots, values, strict=True)):
            self._output(b, port, slot, value)

    def _as_held(self, b: Any, values: list[Value]) -> list[Value]:
        """Return outputs as they are between ticks too, if the block holds them."""
        first = next((part.start for held, part in self.held if held is b), None)
        if first is None:
            return values
        found, flag = [], f"z[{self.flags[b._clock]}]"
        for value in values:
            names = named([f"z[{k}]" for k in range(first, first + value.size)]).reshape(value.shape)
            found.append(self.e.each("{0} if {1} != 0.0 else {2}", value, flag, names))
            first += value.size
        return found

    def _output(self, b: Any, port: int, slot: Any, value: Value | dict[str, Value]) -> None:
        if isinstance(value, dict):  # signals side by side, of which blocks behind take single ones: it has no column
            self.signals[id(slot)] = {key: self.e.let(part) for key, part in value.items()}
            return
        kind = np.asarray(slot.value).dtype.kind
        if kind not in "biuf" or isinstance(slot.value, (list, tuple)):
            raise Untranslatable(f"output {port} carries a {type(slot.value).__name__}")
        if np.shape(slot.value) != value.shape:
            raise Untranslatable(f"output {port} has the shape {np.shape(slot.value)}, its emitter gives {value.shape}")
        value = self.e.let(value)
        self.signals[id(slot)] = value
        self.columns[id(b), port] = (self.width, value.shape)
        self.legend.append(f"{', '.join(value.ravel())}: {b.name!r} output {port}")
        for item in value.ravel():
            self.e.line(f"out[{self.width}] = {item}")
            self.width += 1

    def _rates(self, b: Any, part: slice) -> None:
        emit = rate_of(b) or own_rates
        rate = named(self._emitted(emit, b, self._inputs(b), self.states[b]))
        if rate.shape != (b.nstates,):
            raise Untranslatable(f"has {b.nstates} states, its emitter gives rates of the shape {rate.shape}")
        self.legend.append(f"xd[{part.start}] to xd[{part.stop - 1}]: {b.name!r}")
        for k, item in enumerate(rate):
            self.e.line(f"xd[{part.start + k}] = {item}")

    # what detectors look at

    def _guards(self) -> list[tuple[int, float, bool]] | None:
        found = []
        for k, (detector, b) in enumerate(self.detectors):
            self.e.block = len(self.diagram.order) + len(self.diagram.continuous) + k
            owner = getattr(detector, "block", b)
            functions, pending = len(self.e.functions), len(self.e.pending)
            try:
                value = self._guard(owner, detector)
            except (Untranslatable, Untraceable):
                return None
            self.e.owners.update(dict.fromkeys(list(self.e.functions)[functions:], str(b.name)))
            if value.size != 1:
                return None
            self.e.line(f"out[{self.width}] = {value.item()}")
            whole = len(self.e.pending) == pending
            found.append((self.width, float(getattr(detector, "direction", 0.0)), whole))
            self.width += 1
        return found

    def _guard(self, owner: Any, detector: Any) -> Value:
        """Return what a detector of a block watches: by the equation of its class, or by its emitter."""
        u, emit, equations = self._inputs(owner), guard_of(owner), equations_of(owner)
        if equations is not None and equations.guard is not None:
            self.e.foreign = False
            try:
                return own_guard(self.e, owner, u, self.states.get(owner), detector)
            except Untraceable:
                if emit is None:
                    raise
        if emit is None:
            raise Untranslatable("its detectors are not said as an equation")
        return named(self._emitted(emit, owner, u, detector))

    # what clocks do

    def _clocks(self) -> list[tuple[Any, slice, int]]:
        found, where = [], dict(self.sampled)
        self.e.block = len(self.diagram.order) + len(self.diagram.continuous) + len(self.detectors) - 1
        for clock in self.diagram.bd.clocklist:
            lines, first, before = len(self.e.lines), self.width, self.e.block
            if clock.blocklist and all(self._next(b) for b in clock.blocklist):
                self._hold(clock)
                begin = where[clock.blocklist[0]].start
                found.append((clock, slice(begin, begin + self.width - first), first))
            else:
                self.e.block = before + len(clock.blocklist)
                del self.e.lines[lines:], self.e.written_by[lines:]
                self.width = first
        return found

    def _hold(self, clock: Any) -> None:
        """Write what the blocks of a clock hold after a tick into out, behind their states."""
        for b, _ in self.held:
            if b._clock is clock:
                for slot in b._outport_slots:
                    for item in self.signals[id(slot)].ravel():
                        self.e.line(f"out[{self.width}] = {item}")
                        self.width += 1

    def _next(self, b: Any) -> bool:
        """Write the states of a sampled block after a tick into out; return whether that can be done."""
        emit = next_of(b) or own_next
        self.e.block += 1
        functions = len(self.e.functions)
        try:
            value = named(self._emitted(emit, b, self._inputs(b), self.states[b])).ravel()
        except Exception:  # its ticks are left to Python, which knows all blocks
            return False
        self.e.owners.update(dict.fromkeys(list(self.e.functions)[functions:], str(b.name)))
        if value.size != b.ndstates:
            return False
        for item in value:
            self.e.line(f"out[{self.width}] = {item}")
            self.width += 1
        return True
