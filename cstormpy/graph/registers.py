"""Registers of a long straight line: which numbers stay in them, and where the others wait.

LLVM chooses registers well for some hundred operations. Of thousands it puts half of all results down, and takes up one
by one what it needs. Here the next use of each number is known, and what is needed last makes room (Belady 1966);
what an instruction needs once it takes from memory itself; and what waits stands where short offsets reach it. A long
line takes about as long as its code takes to fetch (measured: 15 bytes in a cycle), so that it is the shorter code that
is faster.

The line is cut into sections: functions of their own, which begin with empty registers, as LLVM's time grows faster
than a function's length. LLVM's passes would bring back what waits before it is needed; they are left out
(`machine.AS_IT_IS`).
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cstormpy.graph.emission import Emitter
from cstormpy.graph.machine import has_vectors_of_eight
from cstormpy.graph.nodes import INPUT, Node, in_late_order
from cstormpy.graph.tiles import LANE, LANES, TILE
from cstormpy.graph.transposition import pieces, store_piece

if TYPE_CHECKING:
    from cstormpy.graph.routine import Places, Routine

#: Operations from which registers are chosen here (measured).
LONG = 3000
#: Operations of a section (measured: half as many are 2 percent slower, twice as many take LLVM a third longer).
SECTION = 700
#: Numbers in registers at once, of 32 and of 16: LLVM needs some for constants, and for what it takes from memory.
KEPT, KEPT_OF_FEW = 27, 12
#: A number that is needed again only after so many steps is not kept in a register when it is taken from memory.
_FAR = 60
#: Bytes that offsets of a byte reach, in whole vectors of eight, before and behind a place.
_REACH = 1 << 14
_NEVER = 1 << 60
#: Stands for the sum of all given numbers among the indices of nodes.
_WATCHED = -1
#: Functions that are found together.
_TOGETHER = "sin", "cos"


class Step(NamedTuple):
    """A step of a line: it computes nodes, or stores a piece of an output, whose name and first column it gives.

    Attributes
    ----------
    nodes : list of nodes
        One; a product and the sum that alone needs it, which become one instruction; or sine and cosine of the same
        angle, which are found together. None where a piece is stored.
    args : list of nodes and numbers
        What it needs.
    """

    nodes: list[Node]
    args: Sequence[Any]
    piece: tuple[str, int] = "", 0


def steps_of(routine: Routine, nodes: Sequence[Node], known: Collection[int], lanes: int) -> list[Step]:
    """Return the steps of a routine whose nodes are computed in some order, but for those that are known."""
    tiles = _tiles(nodes)

    def is_computed(x: Any) -> bool:
        return isinstance(x, Node) and x.index not in known and x.primitive is not INPUT

    def product(node: Node) -> list[Node]:
        """Return the product that only this sum or difference needs, if it has one."""
        if node.primitive.name in ("add", "sub"):
            for x in node.args:
                if is_computed(x) and x.primitive.name == "mul" and needs[x.index] == 1:
                    return [x] if (x.index in tiles) == (node.index in tiles) else []
        return []

    steps = []
    pending: dict[int, list[tuple[set[int], Step]]] = defaultdict(list)  # of a node: what else pieces wait for
    needs = Counter(x.index for x in routine.wanted if isinstance(x, Node))
    for name, out in routine.outputs.items():
        for first, width in pieces(len(out), lanes):
            piece = Step([], out[first : first + width], (name, first))
            missing = {x.index for x in piece.args if is_computed(x)}
            for index in missing:
                pending[index].append((missing, piece))
            if not missing:
                steps.append(piece)
    nodes = [node for node in nodes if is_computed(node)]
    needs.update(a.index for node in nodes for a in node.args if isinstance(a, Node))
    products = {node.index: found for node in nodes if (found := product(node))}
    done = {x.index for found in products.values() for x in found}
    angles: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.primitive.name in _TOGETHER:
            angles[node.args[0].index].append(node)
    for node in nodes:
        if node.index in done:
            continue
        if node.primitive.name in _TOGETHER:
            found, args = angles[node.args[0].index], list(node.args)
        else:
            found = [*products.get(node.index, ()), node]
            args = [a for each in found for a in each.args if a is not found[0]]
        steps.append(Step(found, args))
        for each in found:
            done.add(each.index)
            for missing, piece in pending[each.index]:
                missing.discard(each.index)
                if not missing:
                    steps.append(piece)
    return steps


def _tiles(nodes: Sequence[Node]) -> set[int]:
    """Return the indices of the nodes that are tiles."""
    found: set[int] = set()
    for node in nodes:
        if node.primitive is TILE or (
            node.primitive is not LANE and any(isinstance(a, Node) and a.index in found for a in node.args)
        ):
            found.add(node.index)
    return found


class _Memory:
    """Memory in which numbers of a size wait, reached by short offsets from places that bear its name and a number."""

    def __init__(self, name: str, size: int, reach: int) -> None:
        self.name, self.bytes, self._each = name, size, reach // size
        self._size = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return a slot that is free."""
        if not self._free:
            self._free.append(self._size)
            self._size += 1
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        """Have a slot be free."""
        self._free.append(slot)

    def place(self, e: Emitter, slot: int) -> str:
        """Append the place of a slot."""
        base, index = divmod(slot, self._each)
        return e.address(f"%{self.name}{base}", (index - self._each // 2) * self.bytes // 8)

    @property
    def places(self) -> list[str]:
        """The places from which it is reached."""
        return [f"%{self.name}{k}" for k in range(-(-self._size // self._each))]

    def lines(self) -> list[str]:
        """Return the instructions that take the memory, and find the places."""
        apart = self._each * self.bytes // 8
        found = [f"  %{self.name} = alloca double, i64 {apart * len(self.places)}, align 64"]
        for k, place in enumerate(self.places):
            found.append(f"  {place} = getelementptr inbounds double, ptr %{self.name}, i64 {k * apart + apart // 2}")
        return found if self.places else []


class _Registers:
    """The numbers of a group of samples in registers and in memory, while steps are appended to the instructions."""

    def __init__(self, routine: Routine, steps: Sequence[Step], shared: Places, e: Emitter) -> None:
        self.e, self.shared = e, shared
        nodes = [node for step in steps for node in step.nodes]
        self._tiles = _tiles(nodes) if e.lanes == 1 else set[int]()
        self._truths = {node.index for node in nodes if node.primitive.truth}
        self._values: dict[int, str] = {}
        self._slots: dict[int, int] = {}
        self.status = ""
        self.numbers = _Memory("waiting", 8 * e.lanes, _REACH * e.lanes // LANES)
        self.tiles = _Memory("tiles", 8 * LANES, _REACH)
        #: Of each number the steps that need it, the last one first.
        self._needs: dict[int, list[int]] = defaultdict(list)
        self._needs[_WATCHED].append(len(steps))
        #: Of each step the arguments that stand in registers, or wait.
        self._asked = [
            [a.index for a in args if isinstance(a, Node) and a.index not in shared]
            for args in (*(step.args for step in steps), [routine.status])
        ]
        for k in range(len(steps), -1, -1):
            for index in set(self._asked[k]):
                self._needs[index].append(k)

    def _room(self, index: int) -> tuple[_Memory, str]:
        """Return the memory in which a number waits, and its type."""
        if index in self._tiles:
            return self.tiles, f"<{LANES} x double>"
        return self.numbers, self.e.number

    def _put_down(self, index: int) -> None:
        """Have a number wait, unless it stands in memory already."""
        if index in self._slots:
            return
        e, x, (memory, kind) = self.e, self._values[index], self._room(index)
        self._slots[index] = slot = memory.take()
        if index in self._truths:
            x = e.selection(x, e.constant(1.0), e.constant(0.0))
        e.lines.append(f"  store {kind} {x}, ptr {memory.place(e, slot)}, align {memory.bytes}")

    def take_up(self, index: int) -> str:
        """Return a number that waits."""
        e, (memory, kind) = self.e, self._room(index)
        x = e.new(f"load {kind}, ptr {memory.place(e, self._slots[index])}, align {memory.bytes}")
        return e.comparison("une", x, e.constant(0.0)) if index in self._truths else x

    def make_room(self, most: int) -> None:
        """Leave at most so many numbers in registers."""
        while len(self._values) > max(most, 0):
            last = max(self._values, key=lambda index: self._needs[index][-1])
            self._put_down(last)
            del self._values[last]

    def give(self, index: int, x: str) -> None:
        """Have a number that was found stand in a register, if it is needed."""
        if self._needs[index]:
            self._values[index] = x

    def take(self, k: int, args: Sequence[Any], most: int, keeps: bool = True) -> dict[int, str]:
        """Return where the arguments of step k are, for which and others there are so many registers.

        Where it `keeps` them, those that waited and are needed soon again are in registers then.
        """
        indices = self._asked[k]
        missing = [index for index in dict.fromkeys(indices) if index not in self._values]
        passing = missing
        if keeps and missing:
            rarest = max(missing, key=self._again)
            once = self._again(rarest) > k + _FAR and indices.count(rarest) == 1
            passing = [rarest] if once else []  # an instruction takes one number from memory
        staying = [index for index in missing if index not in passing]
        self.make_room(most - len(staying))
        self._values.update((index, self.take_up(index)) for index in staying)
        # where there are few registers, room may have been made of what this step needs
        here = {index: self._values.get(index) or self.take_up(index) for index in indices}
        for index in here:
            self._needs[index].pop()
            if not self._needs[index]:
                self._values.pop(index, None)
                if index in self._slots:
                    self._room(index)[0].give_back(self._slots.pop(index))
        for a in args:
            place = self.shared.get(a.index) if isinstance(a, Node) else None
            if place is not None:
                here[a.index] = self.e.load_same(*place)
        return here

    def _again(self, index: int) -> int:
        """Return the step that needs a number after the next one."""
        needs = self._needs[index]
        return needs[-2] if len(needs) > 1 else _NEVER

    def begin_section(self) -> Emitter:
        """Append to a section of its own from now on, in which no number is in a register yet; return it."""
        self.make_room(0)
        wide = self.e.wide
        self.e = Emitter(self.e.lanes, self.e)
        self.e.wide = wide
        return self.e

    def compute(self, k: int, step: Step, most: int) -> None:
        """Append what computes the nodes of step k."""
        here = self.take(k, step.args, most)
        # what is called needs all registers
        self.make_room(0 if step.nodes[-1].primitive.called else most - 1)
        if self._tiles:
            with self.e.apart():  # no tile of a number stays in a register unseen
                self.e.nodes(step.nodes, here)
        else:
            self.e.nodes(step.nodes, here)
        for node in step.nodes:
            self.give(node.index, here[node.index])


def rows_in_registers(
    routine: Routine, nodes: Sequence[Node], shared: Places, outer: Emitter, lanes: int
) -> tuple[str, list[str]]:
    """Return the text of a routine's sections, and the instructions that call them for a group.

    `nodes` are the routine's, in the order in which they are to be computed. The group is sound where ``%sound`` is
    true after them. The memory of what waits `outer` takes before the loop.
    """
    steps = steps_of(routine, nodes, shared, lanes)
    registers = _Registers(routine, steps, shared, Emitter(lanes, outer))
    given: dict[int, str] = {}
    registers.give(_WATCHED, routine.load_rows(registers.e, given))
    for index, x in given.items():
        registers.give(index, x)
    registers.make_room(0)

    def store(e: Emitter, step: Step, columns: list[str]) -> None:
        name, first = step.piece
        size = len(routine.outputs[name])
        store_piece(e, routine.place(e, name, size), size, first, columns)

    sections = _sections(routine, steps, registers, store, lanes + lanes // 2)
    good = routine.soundness(registers.e, registers.status, registers.take_up(_WATCHED))
    names = *routine.shared, *routine.rows, *routine.outputs, "kept"
    arguments = [*(f"ptr noalias %{name}" for name in names), "i64 %first"]
    return _functions(routine.name, sections, registers, outer, arguments, good)


def one_in_registers(routine: Routine, outer: Emitter) -> tuple[str, list[str]]:
    """Return the text of a routine's sections, and the instructions that call them for one sample.

    What is filled stands in ``%held`` after them, and behind it the status.
    """
    inputs: Places = {n.index: (f"%{n.data[0]}", n.data[1]) for n in routine.nodes if n.primitive is INPUT}
    steps = steps_of(routine, in_late_order((), 0, routine.wanted), inputs, 1)
    registers = _Registers(routine, steps, inputs, Emitter(1, outer))
    sizes = [len(out) for out in routine.outputs.values()]
    begins = dict(zip(routine.outputs, itertools.accumulate(sizes, initial=0), strict=False))

    def hold(e: Emitter, place: int, x: str) -> None:
        e.lines.append(f"  store double {x}, ptr {e.address('%held', place)}, align 8")

    def store(e: Emitter, step: Step, columns: list[str]) -> None:
        hold(e, begins[step.piece[0]] + step.piece[1], *columns)

    sections = _sections(routine, steps, registers, store, 1)
    hold(registers.e, sum(sizes), registers.status)
    outer.lines.append(f"  %held = alloca double, i64 {sum(sizes) + 1}, align 64")
    arguments = [f"ptr noalias %{name}" for name in (*routine.shared, *routine.rows, "held")]
    return _functions(routine.name, sections, registers, outer, arguments, "true")


def _sections(
    routine: Routine,
    steps: Sequence[Step],
    registers: _Registers,
    store: Callable[[Emitter, Step, list[str]], None],
    room: int,
) -> list[Emitter]:
    """Append all steps to sections, and return these; `store` appends those of a piece, and needs some room."""
    most = KEPT if has_vectors_of_eight() else KEPT_OF_FEW
    sections = [registers.e]
    for k, step in enumerate(steps):
        if k and k % SECTION == 0:
            sections.append(registers.begin_section())
        if step.nodes:
            registers.compute(k, step, most)
        else:
            here = registers.take(k, step.args, most - room, keeps=False)
            store(registers.e, step, [registers.e.value(x, here) for x in step.args])
    here = registers.take(len(steps), [routine.status], most)
    registers.status = registers.e.value(routine.status, here)
    return sections


def _functions(
    name: str, sections: Sequence[Emitter], registers: _Registers, outer: Emitter, arguments: list[str], good: str
) -> tuple[str, list[str]]:
    """Return the text of the functions that sections become, of which the last returns a truth, and their calls."""
    memories = registers.numbers, registers.tiles
    outer.lines += [line for memory in memories for line in memory.lines()]
    arguments = [*arguments, *(f"ptr {place}" for memory in memories for place in memory.places)]
    parts, calls = [], []
    for k, e in enumerate(sections):
        answer, found = ("%sound = ", good) if e is registers.e else ("", "true")
        # without a word LLVM puts vectors down wherever the stack begins, most of them across two lines of the cache
        head = f"define internal i1 @{name}_section{k}({', '.join(arguments)}) noinline alignstack({8 * LANES}) {{"
        parts.append("\n".join([head, *e.lines, f"  ret i1 {found}", "}\n"]))
        calls.append(f"  {answer}call i1 @{name}_section{k}({', '.join(arguments).replace(' noalias', '')})")
    return "".join(parts), calls
