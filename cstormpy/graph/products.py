"""Products of a large matrix and a vector: one node with a loop in it, in place of one for each of its numbers.

The matrix is a run of inputs (`TABLE`) or of numbers that are known (`CONSTANTS`), row by row; the vector is of any
numbers. Written out, a state space of 100 states takes LLVM seconds, and its code no longer fits the processor's
caches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import InvalidType
from cstormpy.graph.nodes import CONSTANTS, INPUT, TABLE, Node
from cstormpy.graph.primitives import Primitive

if TYPE_CHECKING:
    from cstormpy.graph.emission import Emitter

Number = Any
#: A matrix with more numbers is not written out.
LARGE = 256


def constants(matrix: Any, like: Node) -> Node:
    """Return a matrix of floats as a node of the graph of another."""
    return like.graph.make(CONSTANTS, (), tuple(np.ravel(matrix).tolist()))


def product(matrix: Node, shape: tuple[int, int], x: Sequence[Number], of_rows: bool) -> list[Node]:
    """Return A x, or x A where `of_rows` holds, of a matrix A of a shape whose numbers stand row by row.

    >>> from cstormpy.graph import Graph
    >>> graph = Graph()
    >>> a = graph.make(TABLE, (), ("a", 0, 4))
    >>> product(a, (2, 2), graph.inputs("x", 2), of_rows=False)[1]
    product(a[0:4], x[0], x[1])[1]
    """
    rows, columns = shape
    whole = matrix.graph.make(_product(rows, columns, of_rows), (matrix, *x))
    return [matrix.graph.make(_part(k), (whole,)) for k in range(columns if of_rows else rows)]


@functools.cache
def _product(rows: int, columns: int, of_rows: bool) -> Primitive:
    given, found = (rows, columns) if of_rows else (columns, rows)
    name = "combined" if of_rows else "multiplied"

    def code(e: Emitter, table: str, *x: str) -> str:
        if e.lanes != 1:
            raise InvalidType("a large matrix is multiplied for one sample, not for lanes")
        e.functions[name] = _TEXTS[name]
        room = e.new(f"alloca double, i64 {given + found}, align 8")
        for k, value in enumerate(x):
            e.lines.append(f"  store double {value}, ptr {e.address(room, k)}, align 8")
        out = e.address(room, given)
        e.lines.append(f"  call void @{name}(ptr {table}, ptr {room}, ptr {out}, i64 {rows}, i64 {columns})")
        return out

    def along(node: Node, rate: Callable[[Number], Number]) -> Sequence[Number]:
        matrix, x = node.args[0], node.args[1:]
        rates, of_matrix = [rate(a) for a in x], rate(matrix)
        total: list[Any] = [0.0] * found
        if any(_moves(r) for r in rates):
            total = list[Any](product(matrix, (rows, columns), rates, of_rows))
        if isinstance(of_matrix, Node):
            total = [a + b for a, b in zip(product(of_matrix, (rows, columns), x, of_rows), total, strict=True)]
        elif isinstance(of_matrix, dict):  # of single numbers, by their places
            for place, change in of_matrix.items():
                row, column = divmod(place, columns)
                to, by = (column, row) if of_rows else (row, column)
                total[to] = total[to] + change * x[by]
        return total

    text = f"product({', '.join(['{}'] * (1 + given))})"
    return Primitive(f"product {name} {rows} {columns}", 1 + given, _unknown, text, code, _unknown, along=along)


def _moves(rate: Number) -> bool:
    return isinstance(rate, Node) or rate != 0.0


@functools.cache
def _part(k: int) -> Primitive:
    """Return the primitive that is the k-th number of a product."""
    return Primitive(
        f"of product {k}", 1, _unknown, f"{{}}[{k}]", lambda e, a: e.load_same(a, k), _unknown,
        along=lambda node, rate: (rate(node.args[0]) or [0.0] * (k + 1))[k],
    )  # fmt: skip


def rate_of_table(node: Node, directions: Any) -> Any:
    """Return how the numbers of a table change along a direction: another table, or those that do by their places."""
    if node.primitive is not TABLE or node in directions:
        return directions.get(node, 0.0)
    name, first, count = node.data
    found = {}
    for x, change in directions.items():
        if x.primitive is INPUT and x.data[0] == name and first <= x.data[1] < first + count and _moves(change):
            found[x.data[1] - first] = change
    return found or 0.0


def _unknown(*_: Any) -> Any:
    raise NotImplementedError("a product of a large matrix has derivatives along directions")


_TEXTS = {
    "multiplied": """
define internal void @multiplied(ptr %a, ptr %x, ptr %y, i64 %rows, i64 %columns) noinline {
begin:
  %fours = and i64 %columns, -4
  br label %row
row:
  %r = phi i64 [ 0, %begin ], [ %below, %store ]
  %more = icmp slt i64 %r, %rows
  br i1 %more, label %start, label %done
start:
  %offset = mul i64 %r, %columns
  %line = getelementptr inbounds double, ptr %a, i64 %offset
  br label %four
four:
  %c = phi i64 [ 0, %start ], [ %beyond, %add4 ]
  %sum = phi <4 x double> [ zeroinitializer, %start ], [ %sum4, %add4 ]
  %full = icmp slt i64 %c, %fours
  br i1 %full, label %add4, label %rest
add4:
  %pa = getelementptr inbounds double, ptr %line, i64 %c
  %px = getelementptr inbounds double, ptr %x, i64 %c
  %va = load <4 x double>, ptr %pa, align 8
  %vx = load <4 x double>, ptr %px, align 8
  %m = fmul <4 x double> %va, %vx
  %sum4 = fadd <4 x double> %sum, %m
  %beyond = add i64 %c, 4
  br label %four
rest:
  %s0 = extractelement <4 x double> %sum, i32 0
  %s1 = extractelement <4 x double> %sum, i32 1
  %s2 = extractelement <4 x double> %sum, i32 2
  %s3 = extractelement <4 x double> %sum, i32 3
  %s01 = fadd double %s0, %s1
  %s23 = fadd double %s2, %s3
  %s = fadd double %s01, %s23
  br label %one
one:
  %k = phi i64 [ %fours, %rest ], [ %after, %add1 ]
  %t = phi double [ %s, %rest ], [ %t1, %add1 ]
  %left = icmp slt i64 %k, %columns
  br i1 %left, label %add1, label %store
add1:
  %qa = getelementptr inbounds double, ptr %line, i64 %k
  %qx = getelementptr inbounds double, ptr %x, i64 %k
  %na = load double, ptr %qa, align 8
  %nx = load double, ptr %qx, align 8
  %n = fmul double %na, %nx
  %t1 = fadd double %t, %n
  %after = add i64 %k, 1
  br label %one
store:
  %py = getelementptr inbounds double, ptr %y, i64 %r
  store double %t, ptr %py, align 8
  %below = add i64 %r, 1
  br label %row
done:
  ret void
}
""",
    "combined": """
define internal void @combined(ptr %a, ptr %x, ptr %y, i64 %rows, i64 %columns) noinline {
begin:
  br label %column
column:
  %c = phi i64 [ 0, %begin ], [ %right, %store ]
  %more = icmp slt i64 %c, %columns
  br i1 %more, label %row, label %done
row:
  %r = phi i64 [ 0, %column ], [ %below, %add ]
  %t = phi double [ 0.0, %column ], [ %sum, %add ]
  %left = icmp slt i64 %r, %rows
  br i1 %left, label %add, label %store
add:
  %offset = mul i64 %r, %columns
  %place = add i64 %offset, %c
  %pa = getelementptr inbounds double, ptr %a, i64 %place
  %px = getelementptr inbounds double, ptr %x, i64 %r
  %na = load double, ptr %pa, align 8
  %nx = load double, ptr %px, align 8
  %m = fmul double %na, %nx
  %sum = fadd double %t, %m
  %below = add i64 %r, 1
  br label %row
store:
  %py = getelementptr inbounds double, ptr %y, i64 %c
  store double %t, ptr %py, align 8
  %right = add i64 %c, 1
  br label %column
done:
  ret void
}
""",
}
