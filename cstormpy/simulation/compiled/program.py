"""A diagram as one routine of machine code, ``rate(t, x, z, p, n, w, out, xd)``, and what it takes.

x are the continuous states, z the sampled ones; p holds all numbers of the blocks, read anew for each run, n integers
and the addresses of functions that are called, w is scratch memory. It fills out, the signals of all outputs one behind
the other, then the guards and what sampled states become at a tick, and xd. It returns 0, or the position of a block,
counted from 1, that failed.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.code_cache import is_kept, machine_for
from cstormpy.graph.dependence import inputs_read
from cstormpy.graph.derivatives import with_tangents
from cstormpy.graph.external import Function
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import Node, alive
from cstormpy.graph.python_calls import PythonCall
from cstormpy.graph.routine import Routine
from cstormpy.simulation.compiled.call_table import CalledFunction
from cstormpy.simulation.compiled.numba_functions import UserFunction
from cstormpy.simulation.compiled.numbers import Numbers

#: The arguments of the routine, behind the time.
GIVEN, FILLED = ("x", "z", "p", "n", "w"), ("out", "xd")
_ORDER = ("t", *GIVEN, *FILLED)
#: Those that change, in what computes its change.
_MOVING = ("t", "x", "z", "p", "w")
#: With more numbers of all signals and rates, registers are chosen quickly (see `graph.machine`), and for derivatives
#: also of more operations: in a run they take up to twice as long then, and a fifth of the time to compile (measured).
_WIDE, _LONG = 1500, 8000
#: Rates alone have a routine of their own if that has so many of the operations, or less.
_SAVED = 0.95
#: What begins where an array does; asking its attribute `ctypes` takes far longer.
_BEGINNING = ctypes.c_char * 0
#: So many machines are kept ready.
_MACHINES = 64


@dataclass(eq=False, repr=False)  # each of which would be written when this is imported
class Program:
    """A diagram's routine, and the arrays that it takes.

    Attributes
    ----------
    routine : Routine
    closing : Routine or None
        What fills xd with the nearest state that closes all loops of mechanisms.
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
        Where in z stands whether what is due at a clock's ticks is computed now: the new states of its blocks, and the
        outputs that they hold.
    guards : list of (int, float, bool) or None
        Where in out the quantity of each zero-crossing detector stands, the detector's direction, and whether that is
        all it looks at; None where there is one that is not translated.
    switches : list of (int, Block, bool)
        Where in out a number stands at whose zeros rates jump or have a kink, whose it is, and whether something jumps
        there, if that was asked for.
    switched : frozenset of int
        The nodes of its graph that make them do so.
    stepped_sinks : list of str
        Sinks that want to be called at each step.
    legend : list of str
        What each variable is.
    pending : list of functions
        Each tells whether somebody has asked a block for something that its guards do not show.
    links : list of CalledFunction
        The functions that it calls.
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
        The names of the blocks in the order in which the routine numbers them where they fail.
    ways : list of (str, str)
        The name of each block, and in which way it is computed.
    differenced : list of (str, str)
        Of which block what has derivatives by differences only.
    owner_of : dict of int to str
        The name of the block that has written a node of its graph down first.
    """

    routine: Routine
    closing: Routine | None
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
    switches: list[tuple[int, Any, bool]]
    switched: frozenset[int]
    stepped_sinks: list[str]
    legend: list[str]
    pending: list[Callable[[], bool]]
    links: list[CalledFunction]
    numbers: Numbers
    clocks: list[tuple[Any, slice, int]]
    checked: int
    nstates: int
    blocks: list[str]
    ways: list[tuple[str, str]]
    differenced: list[tuple[str, str]]
    owner_of: dict[int, str]

    _machines: ClassVar[dict[str, Machine]] = {}
    _making: ClassVar[threading.RLock] = threading.RLock()
    _own: Machine | None = None
    _change: MachineFunction | None = None
    _digest: str | None = None

    def __post_init__(self) -> None:
        routines = [self.routine] if self.closing is None else [self.routine, self.closing]
        self._digest = digest_of(*routines)
        self.key = self._digest or hashlib.sha256(self.text.encode()).hexdigest()
        self.key += " quick" if self.is_wide else " stages"

    @property
    def is_wide(self) -> bool:
        """True where it fills so many numbers that choosing registers well takes seconds."""
        return self.width + self.nstates > _WIDE

    @cached_property
    def text(self) -> str:
        """The routines, as LLVM reads them."""
        return text_for_one(self.routine, None, *([] if self.closing is None else [self.closing]), *self._for_stages())

    def _for_stages(self) -> list[Routine]:
        """Return the routine that fills the rates alone, which is all that is asked at the stages of a step.

        None where nothing is saved by it, or where compiling another one takes long.
        """
        if self.is_wide:
            return []
        rates = {"xd": self.routine.outputs["xd"]}
        stage = Routine("stage", {}, {}, rates, self.routine.status, scalars=("t",), order=_ORDER)
        return [stage] if stage.operations < _SAVED * self.routine.operations else []

    @cached_property
    def structure(self) -> Any:
        """Which rates (rows) depend on which states, as a sparse matrix of ones (n, n)."""
        from scipy import sparse

        rates = self.routine.outputs["xd"]
        read = inputs_read(alive(rates), "x")
        followed = [sorted(read[rate.index]) if isinstance(rate, Node) else [] for rate in rates]
        columns = [place for places in followed for place in places]
        ends = np.cumsum([0, *map(len, followed)])
        return sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(self.nstates, self.nstates))

    def refresh(self) -> bool:
        """Read the numbers anew from the blocks; return False where the diagram is to be translated anew instead."""
        try:
            return self.numbers.refresh(self.p, self.n)
        except Exception:  # what a reader no longer finds in its block
            return False

    def adopt(self, other: Program) -> None:
        """Take over the numbers of another program with the same code, and how they are read."""
        for link in other.links:
            link.connect(other.n)
        self.numbers, self.links = other.numbers, other.links
        self.p[:], self.n[:] = other.p, other.n

    def raise_interrupt(self) -> None:
        """Raise what has interrupted a block that the routine asked in Python."""
        for python in self._python_calls():
            python.raise_interrupt()

    @property
    def error(self) -> Exception | None:
        """What a block ended with that the routine asked in Python, if one failed."""
        return next((python.error for python in self._python_calls() if python.error is not None), None)

    def _python_calls(self) -> Iterator[PythonCall]:
        for link in self.links:
            python = getattr(link.function, "python", link.function)
            if isinstance(python, PythonCall):
                yield python

    def ask_in_python(self, name: str) -> bool:
        """Have Python asked for what numba has compiled for a block; return whether there was any."""
        found = False
        for link in self.links:
            function = link.function
            if isinstance(function, UserFunction) and function.owner == name and function.give_up():
                link.address, found = 0, True
                link.connect(self.n)
        return found

    def printed(self) -> str:
        """Return its equations, as Python, with a line for each block before them."""
        from cstormpy.graph.printing import equations

        return "\n".join(f"# {line}" for line in self.legend) + "\n" + equations("rate", self.routine, _ORDER)

    def in_c(self) -> str:
        """Return its equations, as C, with a line for each block before them."""
        from cstormpy.graph.printing import c_source

        routines = {"rate": self.routine} | ({} if self.closing is None else {"closing": self.closing})
        return "\n".join(f"// {line}" for line in self.legend) + "\n" + c_source(routines, _ORDER)

    @property
    def called(self) -> list[Function]:
        """The functions that the routine itself calls."""
        return [link.function for link in self.links if not link.changes]

    def ways_taken(self) -> list[tuple[str, str]]:
        """Return in which way each block is computed, after numba has tried what it is to compile."""
        self.function()
        found = []
        for name, way in self.ways:
            for function in self.called:
                if isinstance(function, UserFunction) and function.owner == name:
                    way = function.told(way)
            found.append((name, way))
        return found

    def calling_block(self) -> tuple[str, str] | None:
        """Return the name of the first block that calls something, and how it is computed; None where none does."""
        if not self.called:
            return None
        for name, way in self.ways:
            how = way.partition(": ")[2]
            if not how.startswith("traced") or "are called" in how:
                return name, way
        return "?", "it calls a function"

    def is_kept(self) -> bool:
        """Tell whether its machine code, and what that calls, is on disk, or here."""
        own = self.key in self._machines or is_kept("diagram", self.key.encode())
        return own and all(function.is_ready() for function in self.called)

    def function(self) -> MachineFunction:
        """Return the routine as a function that Python calls, with arrays."""
        for link in self.links:
            if not link.changes:
                link.connect(self.n)
        return MachineFunction(self._own_machine(), "rate_one", _ORDER)

    @property
    def closes(self) -> bool:
        """True where machine code keeps the loops of its mechanisms closed."""
        return self.closing is not None

    def closing_address(self) -> int:
        """Return where the code begins that closes loops, 0 where there is none."""
        return self._address_of("closing_one") if self.closing is not None else 0

    def stage_address(self) -> int:
        """Return where the code begins that fills the rates alone, or signals too where that costs as much."""
        try:
            return self._address_of("stage_one")
        except LookupError:
            return self._address_of("rate_one")

    def _address_of(self, name: str) -> int:
        return self._own_machine().address(name)

    def _own_machine(self) -> Machine:
        """Return its machine, which stays as long as this does: runs hold addresses in it."""
        if self._own is None:
            self._own = self._machine("diagram", self.key, lambda: self.text)
        return self._own

    def change(self, in_python: bool = False) -> MachineFunction:
        """Return what computes its change along a direction too, as ``tangent(t, x, …, xd, dt, dx, …, dxd)``.

        With `in_python`, from where it is called some times, no function of the user is compiled by numba for that, and
        its registers are chosen quickly, as those of a long one are.
        """
        for link in self.links:
            link.connect(self.n, in_python)
        if self._change is None:
            digest, text = self._digest, self._text_of_change
            if digest is None:
                written = text()
                digest, text = hashlib.sha256(written.encode()).hexdigest(), lambda: written
            quick = in_python or self.is_wide or self.routine.operations > _LONG
            machine = self._machine("diagram_change", f"{digest} change{' quick' * quick}", text)
            changes = [f"d{name}" for name in (*_MOVING, *FILLED)]
            self._change = MachineFunction(machine, "tangent_one", (*_ORDER, *changes))
        return self._change

    def _text_of_change(self) -> str:
        return text_for_one(with_tangents(self.routine, _MOVING))

    @classmethod
    def _machine(cls, name: str, digest: str, text: Callable[[], str]) -> Machine:
        with cls._making:
            if digest not in cls._machines:
                while len(cls._machines) >= _MACHINES:
                    cls._machines.pop(next(iter(cls._machines)))
                cls._machines[digest] = machine_for(name, digest.encode(), text, digest.endswith("quick"))
            return cls._machines[digest]


def beginning_of(array: Any) -> int:
    """Return where an array that is contiguous, and may be written, begins in memory."""
    return ctypes.addressof(_BEGINNING.from_buffer(array))


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
        """Return its status; arrays that stay where they are may be given by their addresses."""
        given = [a if isinstance(a, (float, int)) else beginning_of(a) for a in arguments]
        return int(self._function(*given))

    def bound(self, *arrays: NDArray[Any]) -> Callable[[float], int]:
        """Return it as a function of the time alone, of arrays that stay where they are as long as it is called."""
        function, places = self._function, [a.ctypes.data for a in arrays]

        def call(t: float, _arrays: Any = arrays) -> int:
            return int(function(t, *places))

        return call


def digest_of(*routines: Routine) -> str | None:
    """Return what differs between routines whose code differs; None where an operation is no ordinary one.

    A call is such a one: what it does is not said by its name.

    Examples
    --------
    >>> from cstormpy.graph import Graph
    >>> x = Graph().input("x")
    >>> one, other = (Routine("f", {"x": 1}, {}, {"y": [y]}) for y in (2.0 * x, x + 2.0))
    >>> digest_of(one) == digest_of(one), digest_of(one) == digest_of(other)
    (True, False)
    """
    parts: list[str] = []
    for routine in routines:
        sizes = [*routine.shared.items()], [*routine.rows.items()]
        parts.append(
            repr((routine.name, sizes, *routine.scalars, None, *routine.order, routine.watchful, routine.late))
        )
        places: dict[int, str] = {}
        for node in routine.nodes:
            primitive = node.primitive
            if not primitive.named:
                return None
            given = [places[a.index] if isinstance(a, Node) else repr(a) for a in node.args]
            places[node.index] = f"#{len(places)}"
            parts.append(f"{primitive.name} {' '.join(given)} {'' if node.data is None else repr(node.data)}")
        for name, out in (*routine.outputs.items(), ("", [routine.status])):
            parts.append(name + ":" + " ".join([places[x.index] if isinstance(x, Node) else repr(x) for x in out]))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
