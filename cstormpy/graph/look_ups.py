"""Tables of numbers: how many of its entries lie below a number, and an entry by its place.

Both are primitives of as many arguments as the table has entries, and one more: a table may be made of parameters, of
constants, or of what is computed. Where its entries stand one behind the other in an array that the routine is given,
or are all known, they are read from memory, and an interval is found by bisection; else they are gone through.

What is found is constant between the entries, so a place has no derivative; an entry has that of the one that is
taken. Curves are made of these: an interval, the numbers that belong to it, and arithmetic (``np.interp`` of symbols).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from cstormpy.graph.emission import Emitter
from cstormpy.graph.nodes import INPUT, Node
from cstormpy.graph.primitives import EQUAL, MAXIMUM, MINIMUM, SELECT, Primitive, Symbol, apply

__all__ = ["count_not_above", "entry"]

Number = Any  # a node or a float
#: Up to so many entries going through them is not slower than bisection.
_FEW = 8


def count_not_above(x: Number, table: Sequence[Number], strictly: bool = False) -> Number:
    """Return how many entries of a table, which do not decrease, are at most x, or below it; none where x is NaN.

    >>> count_not_above(0.3, [0.0, 0.3, 0.7])
    2.0
    """
    if not isinstance(x, Symbol) and not any(isinstance(a, Symbol) for a in table):
        return float(sum(a < x if strictly else a <= x for a in table))
    return apply(_count(len(table), strictly), x, *table)


def entry(place: Number, table: Sequence[Number]) -> Number:
    """Return the entry of a table at a place, a whole number; from the end where it is negative, as in Python.

    A place beyond the ends counts as the end.

    >>> entry(-1.0, [5.0, 6.0, 7.0])
    7.0
    """
    if not isinstance(place, Symbol):
        k, last = (int(place) if place == place else 0), len(table) - 1
        return table[max(min(k + len(table) if k < 0 else k, last), 0)]
    if all(a is table[0] or (not isinstance(a, Symbol) and a == table[0]) for a in table):
        return table[0]
    return apply(_entry(len(table)), place, *table)


@functools.cache
def _count(size: int, strictly: bool) -> Primitive:
    sign, kind = ("<", "olt") if strictly else ("<=", "ole")
    numbers = ", ".join(["{}"] * size)

    def code(e: Emitter, x: str, *table: str) -> str:
        base = _memory(e, table) if size > _FEW and e.lanes == 1 else None
        return _bisected(e, x, base, size, kind) if base else _counted(e, x, table, kind)

    return Primitive(
        f"count {sign} {size}",
        1 + size,
        lambda x, *table: float(sum(a < x if strictly else a <= x for a in table)),
        f"count('{sign}', {{}}, {numbers})",
        code,
        lambda r, *args: (None,) * len(args),
        along=lambda node, rate: 0.0,
        in_c=f"counted({{}}, {{}}, {size}, {int(strictly)})",
        of_table=True,
    )


@functools.cache
def _entry(size: int) -> Primitive:
    def code(e: Emitter, place: str, *table: str) -> str:
        base = _memory(e, table) if e.lanes == 1 else None
        if base is None:
            return _chosen(e, place, table)
        at = _whole(e, place, size)
        return e.new(f"load double, ptr {e.address(base, at)}, align 8")

    def partials(r: Number, place: Number, *table: Number) -> tuple[Number, ...]:
        place = place + apply(SELECT, place < 0.0, float(size), 0.0)
        place = apply(MINIMUM, apply(MAXIMUM, place, 0.0), float(size - 1))
        return (None, *(apply(SELECT, apply(EQUAL, place, float(k)), 1.0, 0.0) for k in range(size)))

    return Primitive(
        f"entry {size}",
        1 + size,
        lambda place, *table: entry(place, table),
        f"entry({{}}, {', '.join(['{}'] * size)})",
        code,
        partials,
        along=lambda node, rate: entry(node.args[0], [rate(a) for a in node.args[1:]]),
        in_c=f"entry({{}}, {{}}, {size})",
        of_table=True,
    )


# Machine code --------------------------------------------------------------------------------------------


def _memory(e: Emitter, table: Sequence[str]) -> str | None:
    """Return where in memory the entries stand one behind the other, if they do."""
    entries = () if e.node is None else e.node.args[1:]
    if all(isinstance(a, Node) and a.primitive is INPUT for a in entries):
        name, first = entries[0].data[0], entries[0].data[1]
        if all(a.data[:2] == (name, first + k) for k, a in enumerate(entries)):
            return e.address(f"%{name}", first)
    if any(isinstance(a, Symbol) for a in entries):
        return None
    return e.constant_table(entries)


def _whole(e: Emitter, place: str, size: int) -> str:
    """Append the place in a table as a whole number, which is within it whatever is given."""
    e.declared.add("declare i64 @llvm.fptosi.sat.i64.f64(double)")
    given = e.new(f"call i64 @llvm.fptosi.sat.i64.f64(double {place})")
    behind = e.new(f"add i64 {given}, {size}")
    negative = e.new(f"icmp slt i64 {given}, 0")
    at = e.new(f"select i1 {negative}, i64 {behind}, i64 {given}")
    low = e.new(f"icmp slt i64 {at}, 0")
    at = e.new(f"select i1 {low}, i64 0, i64 {at}")
    high = e.new(f"icmp sgt i64 {at}, {size - 1}")
    return e.new(f"select i1 {high}, i64 {size - 1}, i64 {at}")


def _bisected(e: Emitter, x: str, base: str, size: int, kind: str) -> str:
    """Append the search for the number of entries below x: steps that are halved, taken where the entry allows."""
    count, step = "0", 1 << (size.bit_length() - 1)
    while step:
        wanted = e.new(f"add i64 {count}, {step}")
        over = e.new(f"icmp sgt i64 {wanted}, {size}")
        inside = e.new(f"select i1 {over}, i64 {size}, i64 {wanted}")
        at = e.new(f"sub i64 {inside}, 1")
        value = e.new(f"load double, ptr {e.address(base, at)}, align 8")
        below = e.comparison(kind, value, x)
        within = e.new(f"xor i1 {over}, true")
        count = e.new(f"select i1 {e.logic('and', below, within)}, i64 {wanted}, i64 {count}")
        step //= 2
    return e.new(f"sitofp i64 {count} to double")


def _counted(e: Emitter, x: str, table: Sequence[str], kind: str) -> str:
    total = e.constant(0.0)
    for value in table:
        one = e.selection(e.comparison(kind, value, x), e.constant(1.0), e.constant(0.0))
        total = e.operation("fadd", total, one)
    return total


def _chosen(e: Emitter, place: str, table: Sequence[str]) -> str:
    size = len(table)
    behind = e.operation("fadd", place, e.constant(float(size)))
    at = e.selection(e.comparison("olt", place, e.constant(0.0)), behind, place)
    found = table[0]
    for k in range(1, size):
        found = e.selection(e.comparison("oge", at, e.constant(float(k))), table[k], found)
    return found
