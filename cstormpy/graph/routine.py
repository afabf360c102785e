"""Routines: functions of arrays in machine code, made from the nodes of a graph.

A routine takes arrays of float64 by their addresses and fills others. ``NAME_one`` works on one sample,
``NAME_rows`` on many, of which each is a row: eight side by side, in the lanes of the machine's vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cstormpy.errors import InvalidType
from cstormpy.graph.branching import emit_nodes
from cstormpy.graph.emission import LANES, Emitter
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.transposition import load_rows, store_rows

__all__ = ["Routine"]


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
    """

    name: str
    shared: Mapping[str, int]
    rows: Mapping[str, int]
    outputs: Mapping[str, Sequence[Any]]
    status: Any = 0.0
    scalars: Sequence[str] = ()
    watchful: bool = False
    order: Sequence[str] = ()
    _alive: list[Node] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._alive.extend(alive(self._wanted))

    @property
    def _wanted(self) -> list[Any]:
        return [*(x for out in self.outputs.values() for x in out), self.status]

    @property
    def operations(self) -> int:
        """The number of operations of a sample."""
        return sum(node.primitive not in (INPUT, TABLE) for node in self._alive)

    def _pointers(self, kind: str) -> str:
        names = self.order or (*self.scalars, *self.shared, *self.rows, *self.outputs)
        return ", ".join(f"{'double' if name in self.scalars else kind} %{name}" for name in names)

    def one(self, like: Emitter) -> str:
        """Return ``i64 NAME_one(arrays)``, which fills the outputs of one sample where its status, the result, is 0.

        An array that is filled may be one of those that are given.
        """
        e = Emitter(1, like)
        values = {n.index: self._input(e, *n.data[:2]) for n in self._alive if n.primitive is INPUT}
        emit_nodes(e, self._alive, values, self._wanted)
        found = {name: [e.value(x, values) for x in out] for name, out in self.outputs.items()}
        status = e.new(f"fptosi double {e.value(self.status, values)} to i64")
        if isinstance(self.status, Node):  # where something went wrong nothing is filled
            good = e.new(f"icmp eq i64 {status}, 0")
            e.lines.extend([f"  br i1 {good}, label %fill, label %end", "fill:"])
        for name, out in found.items():
            for k, x in enumerate(out):
                e.lines.append(f"  store double {x}, ptr {e.address(f'%{name}', k)}, align 8")
        if isinstance(self.status, Node):
            e.lines.extend(["  br label %end", "end:"])
        e.lines.append(f"  ret i64 {status}")
        return f"define i64 @{self.name}_one({self._pointers('ptr')}) {{\n" + "\n".join(e.lines) + "\n}\n"

    def _input(self, e: Emitter, name: str, place: int) -> str:
        return f"%{name}" if name in self.scalars else e.load_same(f"%{name}", place)

    def many(self, like: Emitter) -> str:
        """Return ``i64 NAME_rows(arrays, start, stop)``, which fills rows start to stop, of `LANES` at least.

        It returns the first row of the first group that holds a bad one, or −1. The last group reaches back over rows
        that are done already where it would not be full.
        """
        outer, inner = Emitter(1, like, prefix="u"), Emitter(LANES, like)
        values = self._shared_values(outer, inner)
        watched: list[str] = []
        for name, size in self.rows.items():
            used = {n.data[1]: n.index for n in self._alive if n.primitive is INPUT and n.data[0] == name}
            wanted = [self.watchful or k in used for k in range(size)]
            found = load_rows(inner, self._place(inner, name, size), size, wanted) if any(wanted) else {}
            values.update((used[k], x) for k, x in found.items() if k in used)
            watched.extend(found.values())
        inner.nodes(self._alive, values)
        for name, out in self.outputs.items():
            if out:
                store_rows(inner, self._place(inner, name, len(out)), [inner.value(x, values) for x in out])
        bad = inner.comparison("une", inner.value(self.status, values), inner.constant(0.0))
        if self.watchful and watched:
            bad = inner.logic("or", bad, self._not_finite(inner, watched))
        bits = inner.new(f"bitcast {inner.truth} {bad} to i{LANES}")
        good = inner.new(f"icmp eq i{LANES} {bits}, 0")
        return "\n".join(
            [
                f"define i64 @{self.name}_rows({self._pointers('ptr noalias')}, i64 %start, i64 %stop) {{",
                "begin:",
                *outer.lines,
                f"  %last = sub i64 %stop, {LANES}",
                "  br label %loop",
                "loop:",
                "  %wanted = phi i64 [ %start, %begin ], [ %next, %go ]",
                "  %over = icmp sgt i64 %wanted, %last",
                "  %first = select i1 %over, i64 %last, i64 %wanted",
                *inner.lines,
                f"  br i1 {good}, label %go, label %stuck",
                "go:",
                f"  %next = add i64 %wanted, {LANES}",
                "  %more = icmp slt i64 %next, %stop",
                "  br i1 %more, label %loop, label %done",
                "done:",
                "  ret i64 -1",
                "stuck:",
                "  ret i64 %first",
                "}\n",
            ]
        )

    @staticmethod
    def _not_finite(e: Emitter, numbers: list[str]) -> str:
        """Append the truth of a sum being not finite: where a number is not, and perhaps where some are very large."""
        while len(numbers) > 1:  # by pairs, which do not wait for one another
            pairs = zip(numbers[::2], numbers[1::2], strict=False)
            numbers = [e.operation("fadd", a, b) for a, b in pairs] + numbers[len(numbers) & ~1 :]
        return e.comparison("une", e.operation("fmul", numbers[0], e.constant(0.0)), e.constant(0.0))

    @staticmethod
    def _place(e: Emitter, name: str, size: int) -> str:
        begin = e.new(f"mul i64 %first, {size}")
        return e.address(f"%{name}", begin)

    def _shared_values(self, outer: Emitter, inner: Emitter) -> dict[int, str]:
        """Compute before the loop what all samples share; return the lanes of what the others need of it."""
        shared: dict[int, str] = {}
        for node in self._alive:
            if node.primitive is INPUT:
                if node.data[0] in self.shared:
                    shared[node.index] = outer.load_same(f"%{node.data[0]}", node.data[1])
            elif node.primitive is TABLE:
                if node.data[0] not in self.shared:
                    raise InvalidType("a table stands among the numbers that all samples share")
                outer.nodes([node], shared)
            elif all(a.index in shared for a in node.args if isinstance(a, Node)):
                outer.nodes([node], shared)
        needed = {
            a.index: a
            for node in self._alive
            if node.index not in shared
            for a in node.args
            if isinstance(a, Node) and a.index in shared
        }
        for x in self._wanted:
            if isinstance(x, Node) and x.index in shared:
                needed[x.index] = x
        # they wait in memory, from where a machine's instruction takes one number into all lanes
        kept = [n for n in needed.values() if not n.primitive.truth and n.primitive not in (INPUT, TABLE)]
        outer.lines.append(f"  %kept = alloca double, i64 {len(kept) + 1}, align 64")
        places = {node.index: ("%kept", k) for k, node in enumerate(kept)}
        for node in kept:
            place = outer.address(*places[node.index])
            outer.lines.append(f"  store double {shared[node.index]}, ptr {place}, align 8")
        values = {}
        for index, node in needed.items():
            if node.primitive is TABLE:
                values[index] = shared[index]
            elif node.primitive.truth:
                values[index] = inner.splat(shared[index], "i1")
            elif node.primitive is INPUT:
                values[index] = inner.load_same(f"%{node.data[0]}", node.data[1])
            else:
                values[index] = inner.load_same(*places[index])
        # what was computed before the loop is not computed again in it
        return {**{index: "" for index in shared}, **values}
