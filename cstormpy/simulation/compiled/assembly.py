"""A whole diagram as one expression graph, of which one routine of machine code is made.

Each block's own methods, ``output``, ``deriv``, ``next``, are called once with symbols in place of numbers, in the
order in which the diagram is evaluated, and what one writes down is what the next is given. The routine is
``rate(t, x, z, p, n, w, out, xd)``, as `program` says; its numbers p are those of the blocks, read anew for each run,
and n holds where functions stand that are no part of it.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import hashlib
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.control.own import OwnLaw
from cstormpy.dynamics.loads import Wrenches
from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.external import external
from cstormpy.graph.kept import is_kept, machine_for
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import INPUT, TABLE, alive, where
from cstormpy.graph.printing import equations
from cstormpy.graph.routine import Routine
from cstormpy.simulation.compiled.emitter import WIDEST
from cstormpy.simulation.compiled.equations import equations_of
from cstormpy.simulation.compiled.numbers import Numbers
from cstormpy.simulation.compiled.opaque_laws import _asked as _asked_law
from cstormpy.simulation.compiled.opaque_laws import _fails, _fails_with_torques, is_needed, laws_of
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.python_calls import PythonCall, change_of
from cstormpy.simulation.compiled.readings import Reading
from cstormpy.simulation.compiled.registry import emitter_of, guard_of, is_silent, next_of, rate_of
from cstormpy.simulation.compiled.structures import Structure
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.simulation.compiled.traced import Untraceable, _output, _renamed, _run, untraceable
from cstormpy.simulation.compiled.twins import Changed, Place, Readers, Twins, moved, numbers_used
from cstormpy.simulation.compiled.untranslated import REASONS, name_of, why
from cstormpy.simulation.diagram import Diagram

__all__ = ["Assembly", "GraphProgram", "MachineFunction", "NotAssembled", "assemble"]

Array = NDArray[np.float64]
#: The arguments of the routine, behind the time.
_GIVEN, _FILLED = ("x", "z", "p", "n", "w"), ("out", "xd")
_ORDER = ("t", *_GIVEN, *_FILLED)
#: And of that which computes its change, behind these.
_CHANGES = ("dt", "dx", "dz", "dp", "dw", "dout", "dxd")
#: So many machines are kept ready.
_MACHINES = 64
#: Beyond so many operations the routine is not built.
_MOST_OPERATIONS = 60_000


class NotAssembled(Exception):
    """Why a diagram is not made one graph; the text says which block is the cause."""


@dataclass
class GraphProgram(Program):
    """A diagram's routine, and the arrays that it takes.

    Attributes
    ----------
    text : str
        The routine, as LLVM reads it.
    routine : Routine
    differenced : list of (str, str)
        Of which block what has derivatives by differences only.
    owner_of : dict of int to str
        The name of the block that has written a node of its graph down first.
    """

    text: str = ""
    routine: Any = None
    differenced: list[tuple[str, str]] = field(default_factory=list)
    owner_of: dict[int, str] = field(default_factory=dict)

    _machines: ClassVar[dict[str, Machine]] = {}

    @property
    def key(self) -> tuple[str, str]:
        """What tells its code from that of another diagram."""
        return self.fingerprint[0], ""

    def printed(self) -> str:
        """Return its equations, as Python, with a line for each block before them."""
        self.source = self.source or equations("rate", self.routine, _ORDER)
        return super().printed()

    def is_kept(self) -> bool:
        """Tell whether its machine code is on disk, or here."""
        digest = self.fingerprint[0]
        return digest in self._machines or is_kept("diagram", digest.encode())

    def function(self) -> MachineFunction:
        """Return the routine as a function that Python calls, with arrays."""
        return MachineFunction(self._machine("diagram", self.fingerprint[0], self.text), "rate_one", _ORDER)

    def change(self) -> MachineFunction:
        """Return what computes its change along a direction too, as ``tangent(t, x, …, xd, dt, dx, …, dxd)``."""
        if self._change is None:
            text = text_for_one(_change_of(self.routine))
            machine = self._machine("diagram_change", hashlib.sha256(text.encode()).hexdigest(), text)
            self._change = MachineFunction(machine, "tangent_one", (*_ORDER, *_CHANGES))
        return self._change

    _change: MachineFunction | None = None

    @classmethod
    def _machine(cls, name: str, digest: str, text: str) -> Machine:
        if digest not in cls._machines:
            while len(cls._machines) >= _MACHINES:
                cls._machines.pop(next(iter(cls._machines)))
            cls._machines[digest] = machine_for(name, digest.encode(), lambda: text)
        return cls._machines[digest]


def _change_of(routine: Routine) -> Routine:
    """Return the routine that computes a diagram's function, and its derivatives along a direction."""
    values = [*routine.outputs["out"], *routine.outputs["xd"]]
    directions: dict[Node, Any] = {}
    for node in alive(values):
        if node.primitive is INPUT:
            directions[node] = node.graph.input(f"d{node.data[0]}", node.data[1])
        elif node.primitive is TABLE:
            directions[node] = node.graph.make(TABLE, (), (f"d{node.data[0]}", *node.data[1:]))
    changes = tangents(values, directions)
    count = len(routine.outputs["out"])
    return Routine(
        "tangent",
        dict.fromkeys((*_GIVEN, "dx", "dz", "dp", "dw"), 0),
        {},
        {**routine.outputs, "dout": changes[:count], "dxd": changes[count:]},
        routine.status,
        scalars=("t", "dt"),
        order=(*_ORDER, *_CHANGES),
    )


class MachineFunction:
    """A routine of machine code that Python calls, and that steps call by its address.

    Parameters
    ----------
    machine : Machine
    name : str
    arguments : sequence of str
        What it takes: ``t`` and ``dt`` are numbers, all others arrays.
    """

    def __init__(self, machine: Machine, name: str, arguments: Sequence[str]) -> None:
        self._machine = machine
        self.address = machine.address(name)
        kinds = [ctypes.c_double if a in ("t", "dt") else ctypes.c_void_p for a in arguments]
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.address)

    def __call__(self, *arguments: Any) -> int:
        """Return its status."""
        given = [a if isinstance(a, float) else a.__array_interface__["data"][0] for a in arguments]
        return int(self._function(*given))


def assemble(diagram: Diagram, detectors: list[tuple[Any, Any]] | None = None) -> GraphProgram:
    """Return the program of a diagram whose signals have just been evaluated, which tells their shapes.

    Raises
    ------
    NotAssembled
    """
    return Assembly(diagram, detectors or []).program()


Signal = Any  # a node, a float, or an array of them


class Assembly:
    """What goes through the blocks of a diagram and collects what they write down.

    Parameters
    ----------
    diagram : Diagram
    detectors : list
    """

    def __init__(self, diagram: Diagram, detectors: list[tuple[Any, Any]]) -> None:
        self.diagram, self.detectors = diagram, detectors
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
        self.flags: dict[Any, int] = {}
        self.legend: list[str] = []
        self.ways: list[tuple[str, str]] = []
        self.numbers = Numbers()
        self.places = _Places()
        #: Places that are read whether a node needs them or not, and where in p each of those that are read begins.
        self.always: list[int] = []
        self.begins: dict[int, int] = {}
        self.twins: dict[int, Twins] = {}
        self.calls: list[PythonCall] = []
        #: Of each block that was traced its twins, what is read of it as numbers, and what was traced.
        self.rules: dict[int, tuple[Any, Twins, Readers, list[Callable[..., Any]]]] = {}
        self.opaque: set[int] = set()
        self.pending: list[Callable[[], bool]] = []
        #: The number of the block that is gone through, from 1 on, and of those that may fail, with when they do.
        self.failure = 0
        #: The name of that block; what of which block is differenced; and up to which node the graph is of which block.
        self.name = ""
        self.differenced: list[tuple[str, str]] = []
        self.owned: list[tuple[int, str]] = []
        self.owner_of: dict[int, str] = {}
        self.failing: list[tuple[int, Any]] = []

    def program(self) -> GraphProgram:
        """Return the program of all blocks."""
        self._name_states()
        for k, (b, *_) in enumerate(self.diagram.order):
            self.failure = k + 1
            self._outputs(b)
        for k, (b, part) in enumerate(self.diagram.continuous):
            self.failure = len(self.diagram.order) + k + 1
            self._rates(b, part)
        guards = self._guards()
        checked = len(self.out)
        clocks = self._clocks()
        self._read_numbers()
        nothing: dict[str, int] = dict.fromkeys(_GIVEN, 0)
        status: Any = 0.0
        for number, fails in reversed(self.failing):
            status = where(fails, float(number), status)
        routine = Routine("rate", nothing, {}, {"out": self.out, "xd": self.rates}, status, scalars=("t",))
        if routine.operations > _MOST_OPERATIONS:
            raise NotAssembled(f"it takes {routine.operations} operations")
        text = text_for_one(routine)
        d = self.diagram
        blocks = [*(b for b, *_ in d.order), *(b for b, _ in d.continuous), *(b for _, b in self.detectors)]
        blocks += [b for clock in d.bd.clocklist for b in clock.blocklist]
        return GraphProgram(
            source="",
            p=self.numbers.floats.array(),
            n=self.numbers.whole.array(),
            scratch=0,
            width=len(self.out),
            columns=self.columns,
            sampled=self.sampled,
            sampled_size=self.sampled_size,
            held=self.held,
            flags=self.flags,
            guards=guards,
            loud=[str(b.name) for b in d.sinks if not is_silent(b)],
            calls=(),
            functions={},
            owners={},
            fingerprint=(hashlib.sha256(text.encode()).hexdigest(), True),
            legend=self.legend,
            pending=self.pending,
            python_calls=self.calls,
            numbers=self.numbers,
            clocks=clocks,
            checked=checked,
            nstates=d.nstates,
            blocks=[str(b.name) for b in blocks],
            line_owners=[],
            ways=self.ways,
            text=text,
            routine=routine,
            differenced=self.differenced,
            owner_of=self.owner_of,
        )

    def _name_states(self) -> None:
        inputs = self.graph.input
        for b, part in self.diagram.continuous:
            self.states[b] = symbols([inputs("x", k) for k in range(part.start, part.stop)])
        for clock in self.diagram.bd.clocklist:
            for b in clock.blocklist:
                part = slice(self.sampled_size, self.sampled_size + b.ndstates)
                self.states[b] = symbols([inputs("z", k) for k in range(part.start, part.stop)])
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

    # blocks

    def _inputs(self, b: Any) -> list[Signal]:
        return [self.signals.get(id(slot)) for slot in b._inport_slots]

    def _outputs(self, b: Any) -> None:
        if emitter_of(b) is not None:
            raise NotAssembled(f"{b.name} has an emitter")
        x = self.states.get(b)
        found = [slot.value for slot in b._outport_slots]
        values = self._as_held(b, self._asked(b, "output", self._inputs(b), x, found))
        for port, (slot, value) in enumerate(zip(b._outport_slots, values, strict=True)):
            self._output(b, port, slot, value)

    def _output(self, b: Any, port: int, slot: Any, value: Signal) -> None:
        if np.size(value) > WIDEST:
            raise NotAssembled(f"{b.name} has a signal of {np.size(value)} numbers")
        self.signals[id(slot)] = value
        first = len(self.out)
        self.columns[id(b), port] = (first, np.shape(value))
        self.out.extend(_output(item) for item in np.asarray(symbols(value)).ravel())
        self.legend.append(f"out[{first}] to out[{len(self.out) - 1}]: {b.name!r} output {port}")

    def _as_held(self, b: Any, values: list[Signal]) -> list[Signal]:
        """Return outputs as they are between ticks too, if the block holds them."""
        first = next((part.start for held, part in self.held if held is b), None)
        if first is None:
            return values
        live = self.graph.input("z", self.flags[b._clock]) != 0.0
        found: list[Signal] = []
        for value in values:
            items = np.asarray(symbols(value)).ravel()
            kept = [self.graph.input("z", first + k) for k in range(items.size)]
            chosen = [where(live, _output(a), b) for a, b in zip(items, kept, strict=True)]
            found.append(symbols(chosen).reshape(np.shape(value)) if np.shape(value) else chosen[0])
            first += items.size
        return found

    def _rates(self, b: Any, part: slice) -> None:
        if rate_of(b) is not None:
            raise NotAssembled(f"the rate of {b.name} has an emitter")
        value = self._asked(b, "deriv", self._inputs(b), self.states[b], [np.zeros(b.nstates)], whole=True)[0]
        self.rates[part] = [_output(item) for item in np.asarray(symbols(value)).ravel()]
        self.legend.append(f"xd[{part.start}] to xd[{part.stop - 1}]: {b.name!r}")

    def _asked(
        self, b: Any, name: str, u: Sequence[Signal], x: Any, found: list[Any], whole: bool = False
    ) -> list[Signal]:
        """Return what a block's equations give: by their trace, or its method asked in Python."""
        kind = type(b)
        if name_of(kind) in REASONS:
            raise NotAssembled(f"{b.name} {why(kind)}")
        if any(isinstance(v, (dict, str)) or np.asarray(v).dtype.kind not in "biuf" for v in found):
            raise NotAssembled(f"{b.name} carries signals that are no numbers")
        own, equations = getattr(kind, name), equations_of(b)
        rule = getattr(equations, name, None) or own
        try:
            try:
                result = self._traced(b, rule, u, x)
            except Untraceable:
                if not self._leave_out_laws(b):
                    raise
                result = self._traced(b, rule, u, x)
            if not whole and (not isinstance(result, (list, tuple)) or len(result) != b.nout):
                raise Untraceable(f"it does not return a list of {b.nout} values")
            values = [_signal(value) for value in ([np.ravel(symbols(result))] if whole else result)]
            shapes = [np.shape(v) for v in values]
            if shapes != [np.shape(v) for v in found]:
                raise Untraceable(f"it gives the shapes {shapes} for {[np.shape(v) for v in found]}")
            if equations and equations.fails and name == "output":
                self.failing.append((self.failure, _truth(self._traced(b, equations.fails, u, x))))
        except Untraceable as error:
            if name_of(kind) == "bdsim.blocks.functions.Function":
                raise NotAssembled(f"{b.name}: {error}; numba may take it") from error
            self.ways.append((str(b.name), f"{name}: asked in Python, as it cannot be traced: {error}"))
            return self._in_python(b, own, u, x, found, whole)
        self.ways.append((str(b.name), f"{name}: traced"))
        return values

    def _traced(self, b: Any, rule: Callable[..., Any], u: Sequence[Signal], x: Any, *more: Any) -> Any:
        equations = equations_of(b)
        readers = equations.numbers if equations else {}
        twins, symbolic = self._twins_of(b), with_symbolic_math(rule)
        twin = twins.of(b, (), readers)

        def ask() -> Any:
            inputs = [_copy(v) if isinstance(v, np.ndarray) else v for v in u]
            return symbolic(twin, self.time, inputs, None if x is None else x.copy(), *more)

        required = len(self.graph.required)
        self.name = str(b.name)
        result, again = _run(ask), _run(ask)
        self.owned.append((len(self.graph.nodes), self.name))
        self.failing += [(self.failure, _truth(number)) for number in self.graph.required[required:]]
        try:
            twins.refuse_changes()
        except Changed as error:
            raise Untraceable(str(error)) from error
        if _flat(result) != _flat(again):
            raise Untraceable("it gives something else each time that it is asked")
        self.rules.setdefault(id(b), (b, twins, readers, []))[3].append(rule)
        return result

    def _twins_of(self, b: Any) -> Twins:
        twins = self.twins.get(id(b))
        if twins is None:
            twins = self.twins[id(b)] = Twins(self.graph)
            twins.places = self.places
            laws = laws_of(b)
            for k, law in enumerate(laws.laws.values() if laws is not None else ()):
                needed = functools.partial(is_needed, laws, k)
                self.numbers.conditions.append((needed, needed()))
                if not needed():  # it finds something first; the run then asks the controller itself
                    twins.instead[id(law)] = {"__call__": _fails_with_torques, "left": _fails}
        self.places.owner = b
        return twins

    def _leave_out_laws(self, b: Any) -> bool:
        """Have the laws of a controller that cannot be traced by themselves asked in Python; tell if there are any."""
        laws = laws_of(b)
        if laws is None or id(b) in self.opaque:
            return False
        self.opaque.add(id(b))
        before = self.twins.pop(id(b))
        self.rules.pop(id(b), None)
        twins, found = self._twins_of(b), False
        twins.instead.update(before.instead)
        for law in laws.laws.values():
            n = (law.mech.n,)
            shapes = [(), n, n, *([n] * (3 if b.nin > 3 else 0))]
            why = None if id(law) in twins.instead else untraceable(law, _asked_law, shapes)
            if why is None:
                continue
            own = law.own if isinstance(law, OwnLaw) else law
            if isinstance(own, types.FunctionType):
                raise NotAssembled(f"{b.name} has a law that numba may take")
            name, found = str(getattr(own, "__name__", type(own).__name__)), True
            self.ways.append((str(b.name), f"law {name}: asked in Python, as it cannot be traced: {why}"))
            twins.instead[id(law)] = {"__call__": self._law_in_python(law)}
        return found

    def _law_in_python(self, law: Any) -> Callable[..., Any]:
        """Return what stands for the call of a law in the trace: a call of the law itself while the diagram runs."""
        count, what = len(law.motors), f"law {type(law).__name__}"

        def ask(t: float, values: list[Any]) -> list[Any]:
            return [law(t, values[0], values[1], tuple(values[2:]) or None)]

        def torque(twin: Any, t: Any, q: Any, qd: Any, reference: Any = None, *_: Any) -> Any:
            given = [q, qd, *(reference or ())]
            return self._python_call(ask, given, [np.zeros(np.shape(v)) for v in given], [np.zeros(count)], what)[0]

        return torque

    def _in_python(
        self, b: Any, method: Callable[..., Any], u: Sequence[Signal], x: Any, found: list[Any], whole: bool
    ) -> list[Signal]:
        known = [v is not None for v in u]
        samples = [slot.value for slot, k in zip(b._inport_slots, known, strict=True) if k]
        samples += [] if x is None else [np.zeros(x.shape)]
        if any(np.asarray(v).dtype.kind not in "biuf" or isinstance(v, (list, tuple)) for v in samples):
            raise NotAssembled(f"{b.name} takes signals that are no numbers")

        def ask(t: float, values: list[Any]) -> list[Any]:
            given = iter(values)
            signals = [next(given) if k else None for k in known]
            result = method(b, t, signals, next(given) if x is not None else None)
            return [np.ravel(result)] if whole else list(result)

        given = [*(v for v in u if v is not None), *([] if x is None else [x])]
        return self._python_call(ask, given, samples, found, f"method {method.__name__}")

    def _python_call(
        self,
        ask: Callable[[float, list[Any]], Any],
        given: list[Signal],
        samples: list[Any],
        found: list[Any],
        what: str,
    ) -> list[Signal]:
        """Return what a function of Python finds, which is called with the time and some signals while it runs.

        `what` names it where its derivative, which is differenced, is spoken of.
        """
        call = PythonCall(ask, samples, found)
        self.calls.append(call)
        numbers = [self.time]
        for value in given:
            numbers += [_output(item) for item in np.asarray(symbols(value)).ravel()]
        change, failure = change_of(ask, samples, found), self.failure
        self.calls.append(change)
        place = self._address(change)

        def along(values: Sequence[Any], rates: Sequence[Any]) -> list[Node]:
            return external(self.graph, place, failure, [*values, *rates], change.sizes[1])

        self.differenced.append((self.name, what))
        parts = external(self.graph, self._address(call), failure, numbers, call.sizes[1], along)
        values, k = [], 0
        for sample in found:
            size = np.size(sample)
            values.append(_shaped(parts[k : k + size], np.shape(sample)))
            k += size
        return values

    def _address(self, call: PythonCall) -> int:
        """Return where in n the address of a call stands."""
        place = self.numbers.whole.size
        self.numbers.whole.keep([call.address], lambda: [call.address], _integers)
        return place

    # what detectors look at, and what clocks do

    def _guards(self) -> list[tuple[int, float, bool]] | None:
        found = []
        for k, (detector, b) in enumerate(self.detectors):
            self.failure = len(self.diagram.order) + len(self.diagram.continuous) + k + 1
            owner = getattr(detector, "block", b)
            if guard_of(owner) is not None:
                raise NotAssembled(f"the detector of {b.name} has an emitter")
            equations = equations_of(owner)
            if equations is None or equations.guard is None:
                return None
            try:
                value = self._traced(owner, equations.guard, self._inputs(owner), self.states.get(owner), detector)
            except Untraceable:
                return None
            asked = getattr(detector, "asked", None)
            self.pending += [] if asked is None else [asked]
            found.append((len(self.out), float(getattr(detector, "direction", 0.0)), asked is None))
            self.out.append(_output(value))
        return found

    def _clocks(self) -> list[tuple[Any, slice, int]]:
        found, parts = [], dict(self.sampled)
        self.failure = len(self.diagram.order) + len(self.diagram.continuous) + len(self.detectors)
        for clock in self.diagram.bd.clocklist:
            first = len(self.out)
            for b in clock.blocklist:
                self.failure += 1
                if next_of(b) is not None:
                    raise NotAssembled(f"the ticks of {b.name} have an emitter")
                value = self._asked(b, "next", self._inputs(b), self.states[b], [np.zeros(b.ndstates)], whole=True)[0]
                self.out += [_output(item) for item in np.asarray(symbols(value)).ravel()]
            for b, _ in self.held:
                if b._clock is clock:
                    for slot in b._outport_slots:
                        self.out += [_output(item) for item in np.asarray(symbols(self.signals[id(slot)])).ravel()]
            if clock.blocklist:
                begin = parts[clock.blocklist[0]].start
                found.append((clock, slice(begin, begin + len(self.out) - first), first))
        return found

    # numbers

    def number_of(self, owner: Any, path: tuple[str, ...], index: int) -> Node:
        """Return the symbol of a number of some object, which stands in p, see `begins`, even if nothing needs it."""
        self.places.owner = owner
        self.places.append(Place(path, index))
        self.always.append(len(self.places) - 1)
        return self.graph.input("all", self.always[-1])

    def _read_numbers(self) -> None:
        """Give the numbers of blocks that are read their places in p."""
        for traced in self.rules.values():
            self.numbers.conditions.append((Structure(*traced).holds, True))
        conditions = [condition for _, condition in self.failing]
        nodes = alive([*self.out, *self.rates, *conditions])
        groups: dict[int, list[int]] = {}
        # all numbers of a mechanism that is asked count as read, even where nothing depends on them, as a planar one
        # does not on the gravity across its plane
        asked = (k for k, place in enumerate(self.places) if place.of_mechanism)
        for k in sorted({*numbers_used(nodes), *self.always, *asked}):
            groups.setdefault(id(self.places.owners[k]), []).append(k)
        begins, count = self.begins, 0
        for mine in groups.values():
            for k in mine:
                begins[k] = count
                count += self.places[k].count
            owner, places = self.places.owners[mine[0]], [self.places[k] for k in mine]
            equations = equations_of(owner)
            reader = Reading(owner, places, equations.numbers if equations else {})
            self.numbers.floats.keep(reader(), reader, np.asarray)
        renamed = {node.index: to for node, to in moved(nodes, begins, "p").items()}
        made = dict[int, Any](renamed)
        borders, owners = [border for border, _ in self.owned], [name for _, name in self.owned]
        self.out, self.rates, conditions = _renamed([self.out, self.rates, conditions], made)
        for before, node in made.items():
            place = bisect.bisect_right(borders, before)
            if isinstance(node, Node) and place < len(owners):
                self.owner_of[node.index] = owners[place]
        self.failing = [(number, condition) for (number, _), condition in zip(self.failing, conditions, strict=True)]


class _Places(list[Place]):
    """Places of numbers, with the blocks that they are found from."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: list[Any] = []
        self.owner: Any = None

    def append(self, place: Place) -> None:
        super().append(place)
        self.owners.append(self.owner)


def _truth(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.item()
    if isinstance(value, Node) and not value.primitive.truth:
        return value != 0.0
    return value


def _flat(result: Any) -> list[Any]:
    """Return the numbers of a result, symbols by their places, to tell whether another is the same."""
    parts = result if isinstance(result, (list, tuple)) else [result]
    items = [x for part in parts for x in np.asarray(symbols(part)).ravel().tolist()]
    return [x.index if isinstance(x, Node) else repr(x) for x in items]


def _integers(value: Any) -> NDArray[np.int64]:
    return np.asarray(value, dtype=np.int64)


def _shaped(items: Sequence[Any], shape: tuple[int, ...]) -> Signal:
    """Return a signal of some numbers: a single one as itself."""
    return symbols(list(items)).reshape(shape) if shape else items[0]


def _copy(value: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array, with what wrenches know beside their numbers."""
    made = np.array(value, dtype=object)
    return (
        Wrenches(made, value.rows) if isinstance(value, Wrenches) and value.rows is not None else made.view(type(value))
    )


def _signal(value: Any) -> Signal:
    """Return what a method gave as a signal; truths as numbers."""
    if isinstance(value, Wrenches):
        return value
    array = np.asarray(symbols(value))
    return _shaped([_output(item) for item in array.ravel()], array.shape)
