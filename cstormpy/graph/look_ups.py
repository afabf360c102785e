"""Look-ups in tables of numbers: an entry by its place, and how many of the entries lie below a number.

A table is given in one of two ways, for each of which there are the two primitives.

==================  ===================================================================================================
as a list           of any numbers: parameters, constants, or what is computed (`entry`, `count_not_above`). Each entry
                    is an argument of the primitive, and has its derivative, so that a list is short. Entries that stand
                    one behind the other in an array that the routine is given, or are all known, are read from memory;
                    else they are gone through. A negative place counts from the end.
as a run of inputs  of any length: one node, `TABLE` (`LOOKUP`, `SEARCH`; `tables.Table` is the array of it). Its
                    entries need no nodes; how it changes is another run, of rates, or follows from the inputs whose
                    derivatives are asked for (`derivatives`). A place beyond an end counts as the end.
==================  ===================================================================================================

What is found is constant between the entries, so a place has no derivative; an entry has that of the one that is
taken. Curves are made of these: an interval, the numbers that belong to it, and arithmetic (``np.interp`` of symbols).
An interval is found by bisection, wherever entries are read from memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from cstormpy.graph.emission import Emitter, hexadecimal
from cstormpy.graph.nodes import INPUT, Node
from cstormpy.graph.primitives import EQUAL, MAXIMUM, MINIMUM, SELECT, Primitive, Symbol, apply

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


def is_count(primitive: Primitive) -> bool:
    """Tell whether a primitive is one by which `count_not_above` counts the entries of a list."""
    return primitive.of_table and primitive.name.startswith("count ")


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


def _known_place(table: Any, place: Any, last: float) -> Any:
    if isinstance(place, Symbol):
        return None
    return table.graph.input(table.data[0], table.data[1] + int(min(max(place, 0.0), last)))


#: The entry of a `TABLE` at a place, of which the last is given. `derivatives` knows how it changes with the table.
LOOKUP = Primitive(
    "lookup",
    3,
    lambda table, place, last: float(table[int(min(max(place, 0.0), last))]),
    "{}[{}]",
    lambda e, table, place, last: _loaded(e, table, place, last),
    lambda r, *args: (None, None, None),
    simplify=_known_place,
    in_c="looked_up({}, {}, {})",
)
#: How many entries of a `TABLE`, of which there are `count`, and which do not decrease, are at most x.
SEARCH = Primitive(
    "search",
    3,
    lambda table, x, count: float(sum(x >= number for number in table)),
    "searched({}, {})",
    lambda e, table, x, count: _searched(e, table, x, e.node.args[2], "oge"),
    lambda r, *args: (None, None, None),
    in_c="counted({1}, {0}, {2}, 0)",
)
#: How many of them are less than x.
SEARCH_BELOW = Primitive(
    "search below",
    3,
    lambda table, x, count: float(sum(x > number for number in table)),
    "searched_below({}, {})",
    lambda e, table, x, count: _searched(e, table, x, e.node.args[2], "ogt"),
    lambda r, *args: (None, None, None),
    in_c="counted({1}, {0}, {2}, 1)",
)


# Machine code --------------------------------------------------------------------------------------------


def _in_each_lane(e: Emitter, x: str, code: Callable[[str], str]) -> str:
    """Append the code of one number for each lane."""
    if e.lanes == 1:
        return code(x)
    result = "poison"
    for k in range(e.lanes):
        found = code(e.new(f"extractelement {e.number} {x}, i32 {k}"))
        result = e.new(f"insertelement {e.number} {result}, double {found}, i32 {k}")
    return result


def _loaded(e: Emitter, table: str, place: str, last: str) -> str:
    """Append the load of a table's entry; NaN counts as the first place."""
    near = e.intrinsic("llvm.minnum", e.intrinsic("llvm.maxnum", place, e.constant(0.0)), last)

    def load(at: str) -> str:
        k = e.new(f"fptosi double {at} to i64")
        return e.new(f"load double, ptr {e.address(table, k)}, align 8")

    return _in_each_lane(e, near, load)


def _searched(e: Emitter, table: str, x: str, size: float, kind: str) -> str:
    """Append the search of a table, however long: a call, beside which the arithmetic is compiled as without it."""
    name = f"searched_{kind}"
    e.functions[name] = _SEARCHED.replace("@searched", f"@{name}").replace("fcmp oge", f"fcmp {kind}")
    count = hexadecimal(size)
    return _in_each_lane(e, x, lambda one: e.new(f"call double @{name}(ptr {table}, double {count}, double {one})"))


#: How many entries of a table are at most x, or less, by bisection.
_SEARCHED = """
define internal double @searched(ptr %table, double %count, double %x) {
begin:
  %all = fptosi double %count to i64
  br label %loop
loop:
  %low = phi i64 [ 0, %begin ], [ %lower, %go ]
  %high = phi i64 [ %all, %begin ], [ %upper, %go ]
  %more = icmp slt i64 %low, %high
  br i1 %more, label %go, label %done
go:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %place = getelementptr inbounds double, ptr %table, i64 %middle
  %number = load double, ptr %place, align 8
  %within = fcmp oge double %x, %number
  %behind = add i64 %middle, 1
  %lower = select i1 %within, i64 %behind, i64 %low
  %upper = select i1 %within, i64 %high, i64 %middle
  br label %loop
done:
  %found = sitofp i64 %low to double
  ret double %found
}
"""


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
