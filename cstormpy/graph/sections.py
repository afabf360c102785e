"""Long straight lines for rows of samples, in sections that are functions of their own.

In one long block LLVM finds too few registers: it brings what all samples share, one number for all lanes, before the
loop and from there to the stack, eight times as long, and what it puts down there it takes up again too often. A
section begins with empty registers, and takes what it needs of others from a memory that is as small as it can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cstormpy.graph.emission import Emitter
from cstormpy.graph.nodes import INPUT, Node
from cstormpy.graph.transposition import pieces, store_piece

if TYPE_CHECKING:
    from cstormpy.graph.routine import Places, Routine

#: Operations from which a line is cut (measured).
LONG = 12000
#: Operations of a section, of which a sine counts so many (measured).
SECTION, FUNCTION = 500, 20
#: Stands for the sum of all given numbers among the indices of nodes.
_WATCHED = -1


class _Values(dict[int, str]):
    """Registers of a section by the indices of nodes; what was found elsewhere is loaded when it is asked for."""

    def __init__(self, e: Emitter, shared: Places, cut: Cut) -> None:
        super().__init__()
        self._e, self._shared, self._cut = e, shared, cut

    def __missing__(self, index: int) -> str:
        place = self._shared.get(index)
        if place is not None:
            found = self._e.load_same(*place)
        else:
            slot = self._e.address("%waiting", self._e.lanes * self._cut.slots[index])
            found = self._e.new(f"load {self._e.number}, ptr {slot}, align {8 * self._e.lanes}")
            if index in self._cut.truths:
                found = self._e.comparison("une", found, self._e.constant(0.0))
        self[index] = found
        return found


class Cut:
    """A line in sections: the section of each node, and the slots of what crosses from one section to another."""

    def __init__(self, routine: Routine, nodes: Sequence[Node], shared: Places, lanes: int) -> None:
        self.nodes: list[list[Node]] = [[]]
        self.of: dict[int, int] = {_WATCHED: 0}
        size = 0
        for node in nodes:
            if node.index in shared:
                continue
            if node.primitive is INPUT:
                self.of[node.index] = 0
                continue
            if size >= SECTION:
                self.nodes.append([])
                size = 0
            size += FUNCTION if node.primitive.name in ("sin", "cos") else 1
            self.nodes[-1].append(node)
            self.of[node.index] = len(self.nodes) - 1
        self.last = len(self.nodes) - 1
        self.truths = {node.index for nodes in self.nodes for node in nodes if node.primitive.truth}
        self.stores = self._stores(routine, lanes)
        self.size = 0
        self.slots = self._slots(routine)

    def _stores(self, routine: Routine, lanes: int) -> list[list[tuple[str, int, int]]]:
        """Return for each section the pieces (output, first, width) of rows that are complete in it."""
        found: list[list[tuple[str, int, int]]] = [[] for _ in self.nodes]
        for name, out in routine.outputs.items():
            for first, width in pieces(len(out), lanes):
                nodes = [x for x in out[first : first + width] if isinstance(x, Node)]
                found[max((self.of.get(x.index, 0) for x in nodes), default=0)].append((name, first, width))
        return found

    def _uses(self, routine: Routine) -> Iterator[tuple[int, int]]:
        """Yield (index, section) for what is used where."""
        for section, nodes in enumerate(self.nodes):
            for node in nodes:
                yield from ((a.index, section) for a in node.args if isinstance(a, Node))
            for name, first, width in self.stores[section]:
                out = routine.outputs[name][first : first + width]
                yield from ((x.index, section) for x in out if isinstance(x, Node))
        if isinstance(routine.status, Node):
            yield routine.status.index, self.last
        yield _WATCHED, self.last

    def _slots(self, routine: Routine) -> dict[int, int]:
        """Return the slot of each value that is used in another section; a slot that is free is used again."""
        until: dict[int, int] = {}
        for index, section in self._uses(routine):
            if index in self.of and section > self.of[index]:
                until[index] = max(section, until.get(index, 0))
        begins: list[list[int]] = [[] for _ in self.nodes]
        ends: list[list[int]] = [[] for _ in self.nodes]
        for index, section in until.items():
            begins[self.of[index]].append(index)
            ends[section].append(index)
        slots: dict[int, int] = {}
        free: list[int] = []
        for beginning, ending in zip(begins, ends, strict=True):
            for index in beginning:
                if not free:
                    free.append(self.size)
                    self.size += 1
                slots[index] = free.pop()
            free.extend(slots[index] for index in ending)
        return slots


def in_sections(
    routine: Routine, nodes: Sequence[Node], shared: Places, outer: Emitter, lanes: int
) -> tuple[str, list[str]]:
    """Return the text of a routine's sections, and the instructions that call them for a group.

    `nodes` are the routine's, in the order in which they are to be computed. The group is sound where ``%sound`` is
    true after them. The memory of what waits `outer` takes before the loop.
    """
    cut = Cut(routine, nodes, shared, lanes)
    outer.lines.append(f"  %waiting = alloca double, i64 {lanes * max(1, cut.size)}, align 64")
    names = [*(f"%{name}" for name in (*routine.shared, *routine.rows, *routine.outputs)), "%kept", "%waiting"]
    given = f"{', '.join(f'ptr noalias {name}' for name in names)}, i64 %first"
    parts, calls = [], []
    for k in range(cut.last + 1):
        parts.append(_section(routine, cut, k, shared, given, Emitter(lanes, outer)))
        answer = "%sound = " if k == cut.last else ""
        calls.append(f"  {answer}call i1 @{routine.name}_section{k}({given.replace(' noalias', '')})")
    return "".join(parts), calls


def _section(routine: Routine, cut: Cut, k: int, shared: Places, given: str, e: Emitter) -> str:
    """Return the text of ``i1 NAME_section<k>(given)``, the last of which tells whether the group is sound."""
    values = _Values(e, shared, cut)
    if k == 0:
        values[_WATCHED] = routine.load_rows(e, values)
    e.nodes(cut.nodes[k], values)
    for name, first, width in cut.stores[k]:
        out = routine.outputs[name]
        columns = [e.value(x, values) for x in out[first : first + width]]
        store_piece(e, routine.place(e, name, len(out)), len(out), first, columns)
    for index in [index for index in values if index in cut.slots and cut.of[index] == k]:
        x = values[index]
        if index in cut.truths:
            x = e.selection(x, e.constant(1.0), e.constant(0.0))
        slot = e.address("%waiting", e.lanes * cut.slots[index])
        e.lines.append(f"  store {e.number} {x}, ptr {slot}, align {8 * e.lanes}")
    good = routine.soundness(e, values, values[_WATCHED]) if k == cut.last else "true"
    # without a word LLVM puts vectors down wherever the stack begins, most of them across two lines of the cache
    head = f"define internal i1 @{routine.name}_section{k}({given}) noinline alignstack({8 * e.lanes}) {{"
    return "\n".join([head, *e.lines, f"  ret i1 {good}", "}\n"])
