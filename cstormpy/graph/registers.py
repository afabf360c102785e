"""Registers of a long straight line for rows: which numbers stay in them, and where the others wait.

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

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cstormpy.graph.emission import Emitter
from cstormpy.graph.machine import has_vectors_of_eight
from cstormpy.graph.nodes import INPUT, Node
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
        One, or sine and cosine of the same angle, which are found together; none where a piece is stored.
    args : sequence of nodes and numbers
        What it needs. Of a sum with a product that nobody else needs, these are the factors and the other term.
    product : int, optional
        Which term of the node that product is.
    """

    nodes: list[Node]
    args: Sequence[Any]
    product: int | None = None
    piece: tuple[str, int] = "", 0


def steps_of(routine: Routine, nodes: Sequence[Node], shared: Places, lanes: int) -> list[Step]:
    """Return the steps of a routine whose nodes are computed in some order."""

    def is_computed(x: Any) -> bool:
        return isinstance(x, Node) and x.index not in shared and x.primitive is not INPUT

    def product(node: Node) -> int | None:
        """Return which term of a sum or a difference is a product that only it needs."""
        if node.primitive.name in ("add", "sub"):
            for k, x in enumerate(node.args):
                if is_computed(x) and x.primitive.name == "mul" and needs[x.index] == 1:
                    return k
        return None

    steps = []
    pending: dict[int, list[tuple[set[int], Step]]] = defaultdict(list)  # of a node: what else pieces wait for
    needs = Counter(x.index for x in routine.wanted if isinstance(x, Node))
    for name, out in routine.outputs.items():
        for first, width in pieces(len(out), lanes):
            piece = Step([], out[first : first + width], piece=(name, first))
            missing = {x.index for x in piece.args if is_computed(x)}
            for index in missing:
                pending[index].append((missing, piece))
            if not missing:
                steps.append(piece)
    nodes = [node for node in nodes if is_computed(node)]
    needs.update(a.index for node in nodes for a in node.args if isinstance(a, Node))
    fused = {node.index: k for node in nodes if (k := product(node)) is not None}
    done = {node.args[fused[node.index]].index for node in nodes if node.index in fused}
    angles: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.primitive.name in _TOGETHER:
            angles[node.args[0].index].append(node)
    for node in nodes:
        if node.index in done:
            continue
        found = angles[node.args[0].index] if node.primitive.name in _TOGETHER else [node]
        k = fused.get(node.index)
        steps.append(Step(found, node.args if k is None else (*node.args[k].args, node.args[1 - k]), k))
        for each in found:
            done.add(each.index)
            for missing, piece in pending[each.index]:
                missing.discard(each.index)
                if not missing:
                    steps.append(piece)
    return steps


class _Registers:
    """The numbers of a group of samples in registers and in memory, while steps are appended to the instructions."""

    def __init__(self, routine: Routine, steps: Sequence[Step], shared: Places, e: Emitter) -> None:
        self.e, self.shared = e, shared
        self.size = 0
        self._values: dict[int, str] = {}
        self._slots: dict[int, int] = {}
        self._free: list[int] = []
        self._truths = {node.index for step in steps for node in step.nodes if node.primitive.truth}
        #: Of each number the steps that need it, the last one first.
        self._needs: dict[int, list[int]] = defaultdict(list)
        self._needs[_WATCHED].append(len(steps))
        for k, args in reversed([*enumerate(step.args for step in steps), (len(steps), [routine.status])]):
            for index in set(self._numbers(args)):
                self._needs[index].append(k)

    def _numbers(self, args: Sequence[Any]) -> list[int]:
        """Return the indices of the arguments that stand in registers, or wait."""
        return [a.index for a in args if isinstance(a, Node) and a.index not in self.shared]

    def _place(self, slot: int) -> str:
        reach = _REACH // (8 * self.e.lanes)
        return self.e.address(f"%waiting{slot // reach}", self.e.lanes * (slot % reach - reach // 2))

    def _put_down(self, index: int) -> None:
        """Have a number wait, unless it stands in memory already."""
        if index in self._slots:
            return
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        self._slots[index] = slot = self._free.pop()
        e, x = self.e, self._values[index]
        if index in self._truths:
            x = e.selection(x, e.constant(1.0), e.constant(0.0))
        e.lines.append(f"  store {e.number} {x}, ptr {self._place(slot)}, align {8 * e.lanes}")

    def take_up(self, index: int) -> str:
        """Return a number that waits."""
        e = self.e
        x = e.new(f"load {e.number}, ptr {self._place(self._slots[index])}, align {8 * e.lanes}")
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

    def take(self, k: int, args: Sequence[Any], most: int, keeps: bool = True) -> list[str]:
        """Return where the arguments of step k are, for whom and others there are so many registers.

        Where it `keeps` them, those that waited and are needed soon again are in registers then.
        """
        numbers = self._numbers(args)
        missing = [index for index in dict.fromkeys(numbers) if index not in self._values]
        passing = missing
        if keeps and missing:
            rarest = max(missing, key=self._again)
            once = self._again(rarest) > k + _FAR and numbers.count(rarest) == 1
            passing = [rarest] if once else []  # an instruction takes one number from memory
        staying = [index for index in missing if index not in passing]
        self.make_room(most - len(staying))
        self._values.update((index, self.take_up(index)) for index in staying)
        here = {index: self.take_up(index) if index in passing else self._values[index] for index in numbers}
        found = [self._found(a, here) for a in args]
        for index in here:
            self._needs[index].pop()
            if not self._needs[index]:
                self._values.pop(index, None)
                if index in self._slots:
                    self._free.append(self._slots.pop(index))
        return found

    def _again(self, index: int) -> int:
        """Return the step that needs a number after the next one."""
        needs = self._needs[index]
        return needs[-2] if len(needs) > 1 else _NEVER

    def _found(self, a: Any, here: dict[int, str]) -> str:
        place = self.shared.get(a.index) if isinstance(a, Node) else None
        return self.e.value(a, here) if place is None else self.e.load_same(*place)


def _compute(registers: _Registers, k: int, step: Step, most: int) -> None:
    """Append what computes the nodes of step k."""
    e = registers.e
    args = registers.take(k, step.args, most)
    # what is called needs all registers
    registers.make_room(0 if step.nodes[0].primitive.called else most - 1)
    for node in step.nodes:
        e.node = node
        if step.product is None:
            x = node.primitive.code(e, *args)
        else:
            a, b, c = args
            if node.primitive.name == "sub":
                a, c = (e.negation(a), c) if step.product else (a, e.negation(c))
            x = e.intrinsic("llvm.fmuladd", a, b, c)
        registers.give(node.index, x)


def in_registers(
    routine: Routine, nodes: Sequence[Node], shared: Places, outer: Emitter, lanes: int
) -> tuple[str, list[str]]:
    """Return the text of a routine's sections, and the instructions that call them for a group.

    `nodes` are the routine's, in the order in which they are to be computed. The group is sound where ``%sound`` is
    true after them. The memory of what waits `outer` takes before the loop.
    """
    steps = steps_of(routine, nodes, shared, lanes)
    most = KEPT if has_vectors_of_eight() else KEPT_OF_FEW
    sections = [Emitter(lanes, outer)]
    registers = _Registers(routine, steps, shared, sections[0])
    given: dict[int, str] = {}
    registers.give(_WATCHED, routine.load_rows(registers.e, given))
    for index, x in given.items():
        registers.give(index, x)
    registers.make_room(0)
    for k, step in enumerate(steps):
        if k and k % SECTION == 0:
            registers.make_room(0)
            registers.e = Emitter(lanes, outer)
            sections.append(registers.e)
        if step.nodes:
            _compute(registers, k, step, most)
            continue
        name, first = step.piece
        size = len(routine.outputs[name])
        columns = registers.take(k, step.args, most - lanes - lanes // 2, keeps=False)
        store_piece(registers.e, routine.place(registers.e, name, size), size, first, columns)
    status = registers.take(len(steps), [routine.status], most)[0]
    good = routine.soundness(registers.e, status, registers.take_up(_WATCHED))

    bases = -(-registers.size * 8 * lanes // _REACH)
    size = bases * _REACH // 8
    outer.lines.append(f"  %waiting = alloca double, i64 {size}, align 64")
    for k in range(bases):
        middle = (k * _REACH + _REACH // 2) // 8
        outer.lines.append(f"  %waiting{k} = getelementptr inbounds double, ptr %waiting, i64 {middle}")
    arrays = [*(f"%{name}" for name in (*routine.shared, *routine.rows, *routine.outputs)), "%kept"]
    arguments = [*(f"ptr noalias {x}" for x in arrays), *(f"ptr %waiting{k}" for k in range(bases)), "i64 %first"]
    parts, calls = [], []
    # without a word LLVM puts vectors down wherever the stack begins, most of them across two lines of the cache
    how = f"noinline alignstack({8 * lanes})"
    for k, e in enumerate(sections):
        answer, found = ("%sound = ", good) if e is registers.e else ("", "true")
        head = f"define internal i1 @{routine.name}_section{k}({', '.join(arguments)}) {how} {{"
        parts.append("\n".join([head, *e.lines, f"  ret i1 {found}", "}\n"]))
        calls.append(f"  {answer}call i1 @{routine.name}_section{k}({', '.join(arguments).replace(' noalias', '')})")
    return "".join(parts), calls
