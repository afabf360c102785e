"""Routines: functions of arrays in machine code, made from the nodes of a graph.

A routine takes arrays of float64 by their addresses and fills others. ``NAME_one`` works on one sample,
``NAME_rows`` on many, of which each is a row: four or eight side by side, in the lanes of the machine's vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cstormpy.errors import InvalidType
from cstormpy.graph.branching import emit_nodes
from cstormpy.graph.emission import LANES, Emitter
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive, in_late_order
from cstormpy.graph.primitives import TABLE as NUMERIC
from cstormpy.graph.registers import LONG, one_in_registers, rows_in_registers
from cstormpy.graph.tiles import LANE, TILE
from cstormpy.graph.transposition import load_rows, pieces, store_numbers, store_piece

#: Operations from which it pays to compute what can wait when it is needed (measured).
LATE = 1500
#: Arrays and positions in them, by the indices of nodes; None for what nobody else needs.
Places = dict[int, "tuple[str, int] | None"]


@dataclass(frozen=True)
class Routine:
    """A function of arrays.

    Parameters
    ----------
    name : str
    shared, rows : mapping of str to int
        The arrays that all samples share, and those of which each sample has a row, with their sizes, in the order of
        the arguments. Inputs of the graph bear these names.
    outputs : mapping of str to sequence of nodes and floats
        The arrays that are filled, of which each sample has a row too; arguments that follow those above.
    status : node or float
        0 where all went well.
    scalars : sequence of str
        Numbers that are arguments by themselves, before the arrays. Such a routine has no ``NAME_rows``.
    order : sequence of str
        The arguments in the order in which they are given, where that is another one; without ``NAME_rows``.
    watchful : bool
        Whether a row that holds a number that is not finite is bad, even where no result depends on it.
    late : int
        Nodes whose index is less are computed, for rows, when they are needed, where the routine is so long that this
        pays: of a recursion, those on the way out; of many results, all (measured).

    Attributes
    ----------
    nodes : list of nodes
        What the outputs and the status need, in the order in which it can be computed.
    """

    name: str
    shared: Mapping[str, int]
    rows: Mapping[str, int]
    outputs: Mapping[str, Sequence[Any]]
    status: Any = 0.0
    scalars: Sequence[str] = ()
    watchful: bool = False
    order: Sequence[str] = ()
    late: int = 0
    nodes: list[Node] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.nodes.extend(alive(self.wanted))

    @property
    def wanted(self) -> list[Any]:
        """What is filled, and the status."""
        return [*(x for out in self.outputs.values() for x in out), self.status]

    @property
    def operations(self) -> int:
        """The number of operations of a sample."""
        return sum(node.primitive not in (INPUT, TABLE) for node in self.nodes)

    @property
    def is_long(self) -> bool:
        """Whether its registers are chosen by us (`graph.registers`): it computes numbers, truths and tiles only."""
        return (
            not self.scalars
            and self.operations > LONG
            and all(n.primitive in (INPUT, TILE, LANE) or n.primitive.name in NUMERIC for n in self.nodes)
        )

    @property
    def arguments(self) -> Sequence[str]:
        """The names of the arguments, in the order in which they are given."""
        return self.order or (*self.scalars, *self.shared, *self.rows, *self.outputs)

    def pointers(self, kind: str) -> str:
        """Return the arguments as LLVM declares them."""
        return ", ".join(f"{'double' if name in self.scalars else kind} %{name}" for name in self.arguments)

    def one(self, like: Emitter) -> str:
        """Return ``i64 NAME_one(arrays)``, which fills the outputs of one sample where its status, the result, is 0.

        An array that is filled may be one of those that are given.
        """
        if self.is_long:
            return self._one_in_registers(like)
        e = Emitter(1, like)
        values = emit_nodes(e, self.nodes, self.wanted, lambda node: self._input(e, *node.data[:2]))
        status = e.new(f"fptosi double {e.value(self.status, values)} to i64")
        if isinstance(self.status, Node):  # where something went wrong nothing is filled
            good = e.new(f"icmp eq i64 {status}, 0")
            e.lines.extend([f"  br i1 {good}, label %fill, label %end", "fill:"])
        for name, out in self.outputs.items():
            store_numbers(e, f"%{name}", out, values)
        if isinstance(self.status, Node):
            e.lines.extend(["  br label %end", "end:"])
        e.lines.append(f"  ret i64 {status}")
        return f"define i64 @{self.name}_one({self.pointers('ptr')}) {{\n" + "\n".join(e.lines) + "\n}\n"

    def _one_in_registers(self, like: Emitter) -> str:
        """Return the same where registers are chosen by us; all waits until it is known that nothing went wrong."""
        e = Emitter(1, like, prefix="u")
        sections, calls = one_in_registers(self, e)
        e.lines.extend(calls)
        place, begin = e.address("%held", sum(map(len, self.outputs.values()))), 0
        number = e.new(f"load double, ptr {place}, align 8")
        status = e.new(f"fptosi double {number} to i64")
        good = e.new(f"icmp eq i64 {status}, 0")
        e.lines.extend([f"  br i1 {good}, label %fill, label %end", "fill:"])
        e.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        for name, out in self.outputs.items():
            given = f"ptr %{name}, ptr {e.address('%held', begin)}, i64 {8 * len(out)}, i1 false"
            e.lines.append(f"  call void @llvm.memcpy.p0.p0.i64({given})")
            begin += len(out)
        e.lines.extend(["  br label %end", "end:", f"  ret i64 {status}"])
        return sections + f"define i64 @{self.name}_one({self.pointers('ptr')}) {{\n" + "\n".join(e.lines) + "\n}\n"

    def _input(self, e: Emitter, name: str, place: int) -> str:
        return f"%{name}" if name in self.scalars else e.load_same(f"%{name}", place)

    def many(self, like: Emitter, lanes: int = LANES) -> str:
        """Return ``i64 NAME_rows(arrays, start, stop)``, which fills rows start to stop, of `lanes` at least.

        It returns the first row of the first group that holds a bad one, or −1. The last group reaches back over rows
        that are done already where it would not be full.
        """
        outer, inner = Emitter(1, like, prefix="u"), Emitter(lanes, like)
        shared, sections, nodes = self.shared_places(outer), "", self.nodes
        if self.late and self.operations > LATE:
            nodes = in_late_order(nodes, self.late, self.wanted)
        if self.is_long:
            sections, calls = rows_in_registers(self, nodes, shared, outer, lanes)
            inner.lines.extend(calls)
            good = "%sound"
        else:
            good = self._in_one(inner, nodes, shared)
        return sections + "\n".join(
            [
                f"define i64 @{self.name}_rows({self.pointers('ptr noalias')}, i64 %start, i64 %stop) {{",
                "begin:",
                *outer.lines,
                f"  %last = sub i64 %stop, {lanes}",
                "  br label %loop",
                "loop:",
                "  %wanted = phi i64 [ %start, %begin ], [ %next, %go ]",
                "  %over = icmp sgt i64 %wanted, %last",
                "  %first = select i1 %over, i64 %last, i64 %wanted",
                *inner.lines,
                f"  br i1 {good}, label %go, label %stuck",
                "go:",
                f"  %next = add i64 %wanted, {lanes}",
                "  %more = icmp slt i64 %next, %stop",
                "  br i1 %more, label %loop, label %done",
                "done:",
                "  ret i64 -1",
                "stuck:",
                "  ret i64 %first",
                "}\n",
            ]
        )

    def _in_one(self, e: Emitter, nodes: list[Node], shared: Places) -> str:
        """Append all that is done with a group; return the truth of its being sound."""
        # what was computed before the loop is not computed again in it
        values = {index: e.load_same(*place) if place else "" for index, place in shared.items()}
        watched = self.load_rows(e, values)
        e.nodes(nodes, values)
        for name, out in self.outputs.items():
            for first, width in pieces(len(out), e.lanes):
                columns = [e.value(x, values) for x in out[first : first + width]]
                store_piece(e, self.place(e, name, len(out)), len(out), first, columns)
        return self.soundness(e, e.value(self.status, values), watched)

    def load_rows(self, e: Emitter, values: dict[int, str]) -> str:
        """Append the loads of a group's numbers into lanes; return the sum of them all, if that is `watchful`."""
        watched: list[str] = []
        for name, size in self.rows.items():
            used = {n.data[1]: n.index for n in self.nodes if n.primitive is INPUT and n.data[0] == name}
            wanted = [self.watchful or k in used for k in range(size)]
            found = load_rows(e, self.place(e, name, size), size, wanted) if any(wanted) else {}
            values.update((used[k], x) for k, x in found.items() if k in used)
            watched.extend(found.values())
        if not (self.watchful and watched):
            return e.constant(0.0)
        while len(watched) > 1:  # by pairs, which do not wait for one another
            pairs = zip(watched[::2], watched[1::2], strict=False)
            watched = [e.operation("fadd", a, b) for a, b in pairs] + watched[len(watched) & ~1 :]
        return watched[0]

    def soundness(self, e: Emitter, status: str, watched: str) -> str:
        """Append the truth of a group without a bad row: all have status 0, and what is watched is finite."""
        bad = e.comparison("une", status, e.constant(0.0))
        if self.watchful:
            vanishing = e.operation("fmul", watched, e.constant(0.0))
            bad = e.logic("or", bad, e.comparison("une", vanishing, e.constant(0.0)))
        bits = e.new(f"bitcast {e.truth} {bad} to i{e.lanes}")
        return e.new(f"icmp eq i{e.lanes} {bits}, 0")

    @staticmethod
    def place(e: Emitter, name: str, size: int) -> str:
        """Append the place of the first row of a group."""
        begin = e.new(f"mul i64 %first, {size}")
        return e.address(f"%{name}", begin)

    def shared_places(self, outer: Emitter) -> Places:
        """Append what all samples share; return the places in memory of what the others need of it.

        There it waits, from where a machine's instruction takes one number into all lanes.
        """
        shared: dict[int, str] = {}
        for node in self.nodes:
            if node.primitive is INPUT:
                if node.data[0] in self.shared:
                    shared[node.index] = outer.load_same(f"%{node.data[0]}", node.data[1])
            elif node.primitive is TABLE:
                if node.data[0] not in self.shared:
                    raise InvalidType("a table stands among the numbers that all samples share")
            elif not node.primitive.truth and all(a.index in shared for a in node.args if isinstance(a, Node)):
                outer.nodes([node], shared)
        args = [a for node in self.nodes if node.index not in shared for a in node.args]
        needed = {x.index: x for x in [*args, *self.wanted] if isinstance(x, Node) and x.index in shared}
        kept = [node for node in needed.values() if node.primitive is not INPUT]
        outer.lines.append(f"  %kept = alloca double, i64 {len(kept) + 1}, align 64")
        places: Places = dict.fromkeys(shared)
        for node in needed.values():
            places[node.index] = (f"%{node.data[0]}", node.data[1]) if node.primitive is INPUT else None
        for k, node in enumerate(kept):
            places[node.index] = "%kept", k
            outer.lines.append(f"  store double {shared[node.index]}, ptr {outer.address('%kept', k)}, align 8")
        return places
