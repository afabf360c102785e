"""A whole diagram as one expression graph, of which one routine of machine code is made.

Each block's own methods, ``output``, ``deriv``, ``next``, are called once with symbols in place of numbers, in the
order in which the diagram is evaluated, and what one writes down is what the next is given. What cannot be written down
is called: a function compiled by numba, a method in Python, the kernels of a large mechanism.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import alive, where
from cstormpy.graph.python_calls import CalledInPython
from cstormpy.graph.routine import Routine
from cstormpy.graph.switching_functions import switching_functions
from cstormpy.simulation.compiled.call_table import CallTable
from cstormpy.simulation.compiled.equations import equations_of, is_silent, passed_on
from cstormpy.simulation.compiled.numba_functions import ByNumba
from cstormpy.simulation.compiled.numbers import BlockNumbers, HeldNumbers, held_by
from cstormpy.simulation.compiled.opaque_laws import laws_of, stand_ins, unready
from cstormpy.simulation.compiled.program import FILLED, GIVEN, Program
from cstormpy.simulation.compiled.signals import Signal, as_copy, as_signal, as_truth, number, numbers, shaped_as
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.simulation.compiled.traced import asked_twice
from cstormpy.simulation.compiled.twins import Twins, is_of_library
from cstormpy.simulation.compiled.untranslated import (
    WIDEST,
    NotTranslated,
    Refused,
    Untraceable,
    is_function,
    refusal_of,
)
from cstormpy.simulation.copies import blocks_read
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.repeatability import say_memory


class Assembly:
    """A walk through the blocks of a diagram that collects what they write down; given what `program_of` takes."""

    def __init__(
        self, diagram: Diagram, detectors: list[tuple[Any, Any]], telling: Collection[Any] | None = None
    ) -> None:
        self.diagram, self.detectors, self._telling = diagram, detectors, telling
        self.graph = Graph()
        self.time = self.graph.input("t")
        self.signals: dict[int, Signal] = {}
        self.states: dict[Any, Any] = {}
        self.out: list[Any] = []
        self.rates: list[Any] = [0.0] * diagram.nstates
        self.columns: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        self.sampled: list[tuple[Any, slice]] = []
        self.sampled_size = 0
        self.held: list[tuple[Any, slice]] = []
        #: What these blocks hold from now on, whatever others are given in its place.
        self._holding: dict[Any, list[Node]] = {}
        self.flags: dict[Any, int] = {}
        self.legend: list[str] = []
        #: The name of each block, and in which way it is computed; and why some are not.
        self.ways: list[tuple[str, str]] = []
        self.reasons: list[tuple[str, str]] = []
        self.pending: list[Callable[[], bool]] = []
        self.numbers = BlockNumbers(self.graph)
        self.call_table = self.graph.call_table = CallTable(self.numbers.kept, self.time)
        self.by_numba = ByNumba(self.graph, self.call_table, self.numbers.read, self.numbers.depends)
        self._twins: dict[int, Twins] = {}
        self._python: dict[Callable[..., Any], tuple[CalledInPython, list[Signal]]] = {}
        #: Blocks whose laws have been looked at one by one.
        self._opaque: set[int] = set()
        #: Of blocks that may fail their number, and when they do.
        self._failing: list[tuple[int, Any]] = []
        #: The nodes at which blocks have begun to be written down, and these blocks.
        self._begun: tuple[list[int], list[Any]] = [], []
        #: The nodes that switch where one of the numbers in `switches` is zero.
        self._switched: set[int] = set()

    def program(self) -> Program:
        """Return the program of all blocks.

        Raises
        ------
        NotTranslated
            With every block that stands in the way.
        """
        d = self.diagram
        self._name_states()
        for b, *_ in d.order:
            self._attempt(b, self._outputs)
        parts = dict(d.continuous)
        for b in parts:
            self._attempt(b, lambda b: self._rates(b, parts[b]))
        if self.reasons:
            raise NotTranslated(self.reasons)
        guards = self._guards()
        switches = [] if self._telling is None else self._switching(self._telling, guards or [])
        checked = len(self.out)
        clocks = self._clocks()
        conditions = [condition for _, condition in self._failing]
        closed, open_ = self._settled_states()
        self.numbers.settle([*self.out, *self.rates, *conditions, *closed, *open_])
        status: Any = 0.0
        for (failure, _), condition in zip(reversed(self._failing), reversed(conditions), strict=True):
            status = where(condition, float(failure), status)
        nothing: dict[str, int] = dict.fromkeys(GIVEN, 0)
        routine = Routine("rate", nothing, {}, {"out": self.out, "xd": self.rates}, status, scalars=("t",))
        closing = self._closing(closed, open_)
        blocks = [*(b for b, *_ in d.order), *(b for b, _ in d.continuous), *(b for _, b in self.detectors)]
        blocks += [b for clock in d.bd.clocklist for b in d.sampled_by(clock)]
        return Program(
            routine=routine,
            closing=closing,
            p=self.numbers.kept.floats.array(),
            n=self.numbers.kept.whole.array(),
            scratch=self.call_table.room,
            width=len(self.out),
            columns=self.columns,
            sampled=self.sampled,
            sampled_size=self.sampled_size,
            held=self.held,
            flags=self.flags,
            guards=guards,
            switches=switches,
            switched=frozenset(self._switched),
            stepped_sinks=[str(b.name) for b in d.sinks if not is_silent(b)],
            legend=self.legend,
            pending=self.pending,
            links=self.call_table.links,
            numbers=self.numbers.kept,
            clocks=clocks,
            checked=checked,
            nstates=d.nstates,
            blocks=[str(b.name) for b in blocks],
            ways=self.ways,
            differenced=self.call_table.differenced_in(routine),
            owner_of=self.numbers.owner_of,
        )

    def rate_rule(self, b: Any) -> str:
        """Return which of a block's equations gives the rates of its states."""
        return "deriv"

    def shown_rule(self, b: Any) -> Callable[..., Any] | None:
        """Return what makes of a block's state that of which outputs are computed; None where it is this itself."""
        return None

    def settled_blocks(self) -> list[tuple[Any, slice]]:
        """Return the blocks whose states are settled after each step, as loops are closed, and where these stand."""
        return self.diagram.closed

    def settling_rule(self, b: Any) -> Callable[..., Any]:
        """Return what settles the states of a block."""
        return self.projected

    def _settled_states(self) -> tuple[list[Any], list[Any]]:
        """Return the states as they are settled, and where that fails; nothing where it cannot be traced."""
        if not self.settled_blocks():
            return [], []
        found: list[Any] = [x for _, part in self.diagram.continuous for x in [None] * (part.stop - part.start)]
        for b, part in self.diagram.continuous:
            found[part] = numbers(self.states[b])
        failing, self._failing = self._failing, []
        try:
            for b, part in self.settled_blocks():
                found[part] = numbers(self._traced(b, self.settling_rule(b), [], self.states[b]))
            return found, [condition for _, condition in self._failing]
        except (Refused, Untraceable):
            return [], []
        finally:
            self._failing = failing

    @staticmethod
    def projected(b: Any, t: Any, u: Any, x: Any) -> Any:
        """Return the nearest state of a block that closes its loops, where a step does; else Python is asked."""
        return b.projected(x)

    def _closing(self, closed: list[Any], conditions: list[Any]) -> Routine | None:
        """Return the routine that closes loops."""
        status: Any = 0.0
        for condition in conditions:
            status = where(condition, 1.0, status)
        nothing: dict[str, int] = dict.fromkeys(GIVEN, 0)
        order = ("t", *GIVEN, *FILLED)
        return Routine("closing", nothing, {}, {"xd": closed}, status, scalars=("t",), order=order) if closed else None

    def _name_states(self) -> None:
        inputs = self.graph.input
        for b, part in self.diagram.continuous:
            self.states[b] = symbols([inputs("x", k) for k in range(part.start, part.stop)])
        for clock in self.diagram.bd.clocklist:
            for b in self.diagram.sampled_by(clock):
                part = slice(self.sampled_size, self.sampled_size + b.ndstates)
                self.states[b] = symbols([inputs("z", k) for k in range(part.start, part.stop)])
                self.sampled.append((b, part))
                self.sampled_size = part.stop
            for b in self.diagram.sampled_by(clock):
                if b in self.diagram.holds:
                    size = sum(np.size(slot.value) for slot in b._outport_slots)
                    part = slice(self.sampled_size, self.sampled_size + size)
                    self.held.append((b, part))
                    self.sampled_size = part.stop
        for clock in self.diagram.bd.clocklist:
            if self.diagram.sampled_by(clock):
                self.flags[clock] = self.sampled_size
                self.sampled_size += 1

    # blocks

    def _attempt(self, b: Any, write: Callable[[Any], None]) -> None:
        self.call_table.failure += 1
        self.call_table.owner = str(b.name)
        for known, new in zip(self._begun, (len(self.graph.nodes), b), strict=True):
            known.append(new)
        try:
            write(b)
        except (Refused, Untraceable) as error:
            self.reasons.append((str(b.name), str(error)))
            for slot in b._outport_slots:  # those behind it are still looked at
                shape = slot.value.shape if isinstance(slot.value, np.ndarray) else ()
                self.signals.setdefault(id(slot), symbols(np.zeros(shape)) if shape else 0.0)

    def _inputs(self, b: Any) -> list[Signal]:
        return [self.signals.get(id(slot)) for slot in b._inport_slots]

    def _outputs(self, b: Any) -> None:
        u, x, shown = self._inputs(b), self.states.get(b), self.shown_rule(b)
        x = x if shown is None else self._traced(b, shown, [], x)
        attributes = passed_on(b)
        if attributes is not None:
            for name in attributes:
                self.numbers.depends(lambda name=name: getattr(b, name), getattr(b, name))  # type: ignore[misc]
            values = list(b.output(0.0, u, x))
        else:
            values = self._asked(b, "output", u, x, [slot.value for slot in b._outport_slots])
        values = self._as_held(b, values)
        for port, (slot, value) in enumerate(zip(b._outport_slots, values, strict=True)):
            self._output(b, port, slot, value)

    def _output(self, b: Any, port: int, slot: Any, value: Signal) -> None:
        self.signals[id(slot)] = value
        if isinstance(value, dict):  # nothing of it is recorded; ITEM takes it apart
            return
        if np.size(value) > WIDEST:
            raise Refused(f"has a signal of {np.size(value)} numbers; more than {WIDEST} are not translated")
        first = len(self.out)
        self.columns[id(b), port] = (first, np.shape(value))
        self.out.extend(numbers(value))
        self.legend.append(f"out[{first}] to out[{len(self.out) - 1}]: {b.name!r} output {port}")

    def _as_held(self, b: Any, values: list[Signal]) -> list[Signal]:
        """Return outputs as they are between ticks too, if the block holds them."""
        first = next((part.start for held, part in self.held if held is b), None)
        if first is None:
            return values
        live = self._ticks(b._clock)
        items = [x for value in values for x in numbers(value)]
        kept = [self.graph.input("z", first + k) for k in range(len(items))]
        now = [where(live, a, b) for a, b in zip(items, kept, strict=True)]
        self._holding[b] = now
        return shaped_as(now, values)

    def _rates(self, b: Any, part: slice) -> None:
        value = self._asked(b, self.rate_rule(b), self._inputs(b), self.states[b], [np.zeros(b.nstates)], whole=True)[0]
        self.rates[part] = numbers(value)
        self.legend.append(f"xd[{part.start}] to xd[{part.stop - 1}]: {b.name!r}")

    def _asked(
        self, b: Any, name: str, u: Sequence[Signal], x: Any, found: list[Any], whole: bool = False
    ) -> list[Signal]:
        """Return what a block's equations give: by their trace, by numba, or by its method asked in Python."""
        refused = refusal_of(b)
        if refused is not None:
            raise Refused(refused)
        if any(isinstance(v, dict) for v in u):
            raise Refused("is given a dict")
        for port, value in enumerate(found):
            if isinstance(value, (list, tuple)) or np.asarray(value).dtype.kind not in "biuf":
                raise Refused(f"output {port} carries a {type(value).__name__}")
        self.call_table.used.clear()
        try:
            values = self._by_trace(b, name, u, x, found, whole)
        except Untraceable as error:
            reason = str(error)
        else:
            kernels = any(hasattr(function, "kept_as") for function in self.call_table.used)
            large = "; kernels with loops are called for its large mechanism" if kernels else ""
            self.ways.append((str(b.name), f"{name}: traced{large}"))
            return values
        if is_function(b) and not blocks_read(b):
            try:
                values = self.by_numba.outputs(b, list(u))
            except Refused as error:
                reason += f"; numba: {error}"
            else:
                self.ways.append((str(b.name), f"{name}: compiled by numba, as it cannot be traced: {reason}"))
                return values
        self.ways.append((str(b.name), f"{name}: asked in Python, as it cannot be traced: {reason}"))
        say_memory(b, "", reason, at_ticks=name == "next")
        return self._method_in_python(b, name, u, x, found, whole)

    def _by_trace(self, b: Any, name: str, u: Sequence[Signal], x: Any, found: list[Any], whole: bool) -> list[Signal]:
        equations = equations_of(b)
        rule = getattr(equations, name, None) or getattr(type(b), name)
        if name in vars(b):
            raise Untraceable(f"its {name} is an attribute of the block, and no method of its class")
        if not is_of_library(rule):  # the class may have another one in a later run
            self._twins_of(b).reads.add(((), name))
        try:
            result = self._traced(b, rule, u, x)
        except Untraceable:
            if not self._leave_out_laws(b):
                raise
            result = self._traced(b, rule, u, x)
        if not whole and (not isinstance(result, (list, tuple)) or len(result) != b.nout):
            raise Untraceable(f"it does not return a list of {b.nout} values")
        values = [as_signal(value) for value in ([np.ravel(symbols(result))] if whole else result)]
        shapes = [np.shape(v) for v in values]
        if shapes != [np.shape(v) for v in found]:
            raise Untraceable(f"it gives the shapes {shapes} for {[np.shape(v) for v in found]}")
        if equations and equations.fails and name == "output":
            self._failing.append((self.call_table.failure, as_truth(self._traced(b, equations.fails, u, x))))
        return values

    def _traced(self, b: Any, rule: Callable[..., Any], u: Sequence[Signal], x: Any, *more: Any) -> Any:
        equations = equations_of(b)
        readers = equations.numbers if equations else {}
        twins, symbolic = self._twins_of(b), with_symbolic_math(rule)
        twin = twins.of(b, (), readers)
        required = len(self.graph.required)

        def ask() -> Any:
            return symbolic(twin, self.time, [as_copy(v) for v in u], None if x is None else x.copy(), *more)

        ours = all(str(x.__module__).startswith("cstormpy.") for x in (rule, *map(type, more)))
        result = asked_twice(self.graph, twins, ask, ours)
        self.numbers.note(b, twins, readers, rule)
        self._failing += [(self.call_table.failure, as_truth(item)) for item in self.graph.required[required:]]
        return result

    def _twins_of(self, b: Any) -> Twins:
        twins = self._twins.get(id(b))
        if twins is None:
            twins = self._twins[id(b)] = self.numbers.twins()
            laws = laws_of(b)
            if laws is not None:
                twins.instead.update(unready(laws, self.numbers.depends))
        self.numbers.belong_to(b)
        return twins

    def _leave_out_laws(self, b: Any) -> bool:
        """Have calls stand for those laws of a controller that cannot be traced; tell if there are any."""
        if laws_of(b) is None or id(b) in self._opaque:
            return False
        self._opaque.add(id(b))
        before = self._twins.pop(id(b))
        self.numbers.forget(b)
        twins = self._twins_of(b)
        twins.instead.update(before.instead)
        found = stand_ins(self, b, before.instead)
        twins.instead.update(found)
        return bool(found)

    # calls of Python

    def _method_in_python(
        self, b: Any, name: str, u: Sequence[Signal], x: Any, found: list[Any], whole: bool
    ) -> list[Signal]:
        known = [v is not None for v in u]
        samples = [slot.value for slot, k in zip(b._inport_slots, known, strict=True) if k]
        samples += [] if x is None else [np.zeros(x.shape)]
        if any(np.asarray(v).dtype.kind not in "biuf" or isinstance(v, (list, tuple)) for v in samples):
            raise Refused("takes or gives a signal that is no number")

        def ask(t: float, values: list[Any]) -> list[Any]:
            given = iter(values)
            signals = [next(given) if k else None for k in known]
            result = getattr(b, name)(t, signals, next(given) if x is not None else None)
            return [np.ravel(result)] if whole else list(result)

        given = [*(v for v in u if v is not None), *([] if x is None else [x])]
        return self.in_python(
            ask, given, samples, found, f"{name} in Python", held_by(b, *blocks_read(b, getattr(type(b), name)))
        )

    def in_python(
        self,
        ask: Callable[[float, list[Any]], Any],
        given: list[Signal],
        samples: list[Any],
        found: list[Any],
        what: str,
        held: HeldNumbers,
    ) -> list[Signal]:
        """Return what a function of Python finds, which is called with the time and some signals while it runs.

        `what` names it where its derivative, which is differenced, is spoken of: that to the signals, and to the
        numbers that are `held` by the object behind it.
        """
        made = self._python.get(ask)
        if made is None:
            readers, count = held.readers(), len(given)

            def plain(t: float, values: list[Any]) -> Any:
                return ask(t, values[:count])

            def beside(t: float, values: list[Any]) -> Any:
                with held.moved(values[count:]):
                    return ask(t, values[:count])

            samples = [*samples, *(read() for read in readers)]
            call = CalledInPython(self.call_table, plain, samples, found, beside)
            made = self._python[ask] = call, [self.numbers.read(read) for read in readers]
        call, more = made
        parts = call.nodes(self.graph, [self.time, *(x for value in [*given, *more] for x in numbers(value))])
        if parts:
            self.call_table.differenced(parts[0].args[0], what)
        return shaped_as(parts, found)

    # what detectors look at, and what clocks do

    def _guards(self) -> list[tuple[int, float, bool]] | None:
        found = []
        for k, (detector, b) in enumerate(self.detectors):
            self.call_table.failure = len(self.diagram.order) + len(self.diagram.continuous) + k + 1
            owner = getattr(detector, "block", b)
            self.call_table.owner = str(b.name)
            try:
                value = self._guard(owner, detector)
            except (Refused, Untraceable):
                return None
            asked = getattr(detector, "asked", None)
            self.pending += [] if asked is None else [asked]
            found.append((len(self.out), float(getattr(detector, "direction", 0.0)), asked is None))
            self.out.append(value)
        return found

    def _guard(self, owner: Any, detector: Any) -> Any:
        """Return the number that a detector of a block watches."""
        equations, u = equations_of(owner), self._inputs(owner)
        if equations is None or equations.guard is None:
            raise Refused("its detectors are not said as an equation")
        try:
            value = np.asarray(self._traced(owner, equations.guard, u, self.states.get(owner), detector))
            if value.size != 1:
                raise Refused("its detectors are no numbers")
            return number(value.item())
        except Untraceable:
            stops = getattr(owner, "stopfunc", None)
            if stops is None:
                raise
        self.numbers.depends(lambda: owner.stopfunc, stops)
        given = owner._inport_slots[0].value
        try:
            said = np.asarray(stops(given))
        except Exception as error:  # which the interpreted run tells
            raise Refused("its function raises") from error
        if said.size != 1 or said.dtype.kind not in "biuf":
            raise Refused("its function gives no number")
        value = number(np.asarray(self.by_numba.call(stops, u[:1], [given])[0]).item())
        return where(value != 0.0, 1.0, -1.0) if said.dtype.kind == "b" else value

    def _switching(
        self, telling: Collection[Any], guards: list[tuple[int, float, bool]]
    ) -> list[tuple[int, Any, bool]]:
        """Put out the numbers at whose zeros rates switch, or detectors that act or what they look at jump.

        But for those of some blocks.
        """
        known, of_rates = {id(b) for b in telling}, {node.index for node in alive(self.rates)}
        looked_at = [x for d, b in self.detectors for u in self._inputs(getattr(d, "block", b)) for x in numbers(u)]
        acting = [getattr(detector, "acts", True) for detector, _ in self.detectors]
        looked_at += [self.out[place] for (place, *_), acts in zip(guards, acting, strict=False) if acts]
        found, (firsts, blocks) = [], self._begun
        for nodes, border, jumps in switching_functions([*self.rates, *looked_at], {"t", "x"}):
            block = blocks[max(bisect_right(firsts, nodes[0].index) - 1, 0)]
            if id(block) not in known and (jumps or any(node.index in of_rates for node in nodes)):
                found.append((len(self.out), block, jumps))
                self.out.append(border)
                self._switched.update(node.index for node in nodes)
        return found

    def _ticks(self, clock: Any) -> Signal:
        """Return whether what a clock's blocks become, and hold, is computed now: between ticks nobody asks for it."""
        return self.graph.input("z", self.flags[clock]) != 0.0

    def _clocks(self) -> list[tuple[Any, slice, int]]:
        found, parts = [], dict(self.sampled)
        count = len(self.diagram.order) + len(self.diagram.continuous) + len(self.detectors)
        for clock in self.diagram.bd.clocklist:
            first, items, before, blocks = len(self.out), list[Node](), count, self.diagram.sampled_by(clock)
            count += len(blocks)
            try:
                for k, b in enumerate(blocks):
                    self.call_table.failure = before + k + 1
                    self.call_table.owner = str(b.name)
                    u, x = self._inputs(b), self.states[b]
                    after = numbers(self._asked(b, "next", u, x, [np.zeros(b.ndstates)], whole=True)[0])
                    items += [where(self._ticks(clock), new, old) for new, old in zip(after, numbers(x), strict=True)]
            except (Refused, Untraceable):  # its ticks are left to Python, which knows all blocks
                continue
            for b, _ in self.held:
                if b._clock is clock:
                    items += self._holding[b]
            if blocks:
                begin = parts[blocks[0]].start
                found.append((clock, slice(begin, begin + len(items)), first))
                self.out += items
        return found
