"""Expressions of a function as lines of LLVM's text: names, entries of arrays, arithmetic, choices and calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from cstormpy.graph.loop_lines import TYPES, Lines, Value, number_text, slots, type_of

_COMPARISONS = {
    ast.Lt: ("olt", "slt"), ast.LtE: ("ole", "sle"), ast.Gt: ("ogt", "sgt"), ast.GtE: ("oge", "sge"),
    ast.Eq: ("oeq", "eq"), ast.NotEq: ("une", "ne"),
}  # fmt: skip
_ARITHMETIC = {ast.Add: ("fadd", "add"), ast.Sub: ("fsub", "sub"), ast.Mult: ("fmul", "mul"), ast.Div: ("fdiv", "")}


class Expressions(Lines):
    """A writer of expressions, each by a method that bears the name of its kind of Python's syntax tree."""

    def value(self, node: Any) -> Value:
        """Return what an expression gives."""
        return getattr(self, f"_value_{type(node).__name__}", self._unknown)(node)

    def truth(self, node: Any) -> str:
        """Return an expression as a truth."""
        return self.as_kind(self.value(node), "b", node)

    def constant(self, found: Any, node: Any) -> Value:
        """Return a constant of the function or of its module."""
        if isinstance(found, (bool, np.bool_)):
            return Value("b", ("true" if found else "false",))
        if isinstance(found, (int, np.integer)):
            return Value("i", (str(int(found)),))
        if isinstance(found, (float, np.floating)):
            return Value("f", (number_text(found),))
        if isinstance(found, tuple) and all(isinstance(x, float) for x in found):
            return Value("F1", (self.module.constant(found), str(len(found))))
        raise self.refuse(node)

    def _value_Constant(self, node: Any) -> Value:
        return self.constant(node.value, node)

    def _value_Name(self, node: Any) -> Value:
        if node.id not in self.variables:
            if node.id not in self.names:
                raise self.refuse(node, "not known")
            return self.constant(self.names[node.id], node)
        kind, rooms = self.variables[node.id]
        parts = [self.new(f"load {t}, ptr {r}, align 8") for t, r in zip(slots(kind), rooms, strict=True)]
        return Value(kind, tuple(parts))

    def _value_Attribute(self, node: Any) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self.variables:
            return self.constant(getattr(self.names[node.value.id], node.attr), node)
        value = self.value(node.value)
        if node.attr != "size" or value.kind[0] not in "FI":
            raise self.refuse(node)
        lengths = value.parts[1:]
        return Value("i", (lengths[0] if len(lengths) == 1 else self.new(f"mul i64 {lengths[0]}, {lengths[1]}"),))

    def _value_Subscript(self, node: Any) -> Value:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return Value("i", (self.value(node.value.value).parts[1 + node.slice.value],))
        index = node.slice
        if not isinstance(index, (ast.Slice, ast.Tuple)):
            value = self.value(node.value)
            if value.kind[1] == "2":
                return Value(f"{value.kind[0]}1", (self.row(value, index), value.parts[2]))
        elif isinstance(index, ast.Slice):
            value = self.value(node.value)
            first, last = (self.as_kind(self.value(x), "i", node) for x in (index.lower, index.upper))
            return Value(value.kind, (self.item(value, first), self.new(f"sub i64 {last}, {first}")))
        place, kind = self.place(node)
        return Value(kind, (self.new(f"load {TYPES[kind]}, ptr {place}, align 8"),))

    def row(self, value: Value, index: Any) -> str:
        """Return where a row of a table begins."""
        first = self.as_kind(self.value(index), "i", index)
        return self.item(value, self.new(f"mul i64 {first}, {value.parts[2]}"))

    def item(self, value: Value, index: str) -> str:
        """Return where an entry of a row stands."""
        return self.new(f"getelementptr {TYPES[value.kind[0].lower()]}, ptr {value.one}, i64 {index}")

    def place(self, node: Any) -> tuple[str, str]:
        """Return where an entry of an array stands, and its kind."""
        if not isinstance(node, ast.Subscript):
            raise self.refuse(node)
        value, index = self.value(node.value), node.slice
        kind = value.kind[0].lower()
        if isinstance(index, ast.Tuple):
            inner = Value(f"{value.kind[0]}1", (self.row(value, index.elts[0]), value.parts[2]))
            return self.item(inner, self.as_kind(self.value(index.elts[1]), "i", node)), kind
        if value.kind[1] != "1":
            raise self.refuse(node)
        return self.item(value, self.as_kind(self.value(index), "i", node)), kind

    # operations

    def _value_BinOp(self, node: Any) -> Value:
        return self.arithmetic(node, node.op, self.value(node.left), self.value(node.right))

    def arithmetic(self, node: Any, op: Any, a: Value, b: Value) -> Value:
        """Return what an operation gives, of floats if one of the two is one."""
        if isinstance(op, ast.Pow):
            x, y = self.as_kind(a, "f", node), self.as_kind(b, "f", node)
            return Value("f", (self.new(f"call double @pow(double {x}, double {y})"),))
        if isinstance(op, ast.Mod) and (a.kind, b.kind) == ("i", "i"):
            rest = self.new(f"srem i64 {a.one}, {b.one}")
            other = self.new(f"icmp slt i64 {self.new(f'mul i64 {rest}, {b.one}')}, 0")  # of the sign of the divisor
            return Value("i", (self.new(f"select i1 {other}, i64 {self.new(f'add i64 {rest}, {b.one}')}, i64 {rest}"),))
        if type(op) not in _ARITHMETIC:
            raise self.refuse(node)
        of_floats, of_integers = _ARITHMETIC[type(op)]
        kind = "f" if "f" in (a.kind, b.kind) or not of_integers else "i"
        x, y = self.as_kind(a, kind, node), self.as_kind(b, kind, node)
        return Value(kind, (self.new(f"{of_floats if kind == 'f' else of_integers} {TYPES[kind]} {x}, {y}"),))

    def _value_UnaryOp(self, node: Any) -> Value:
        if isinstance(node.op, ast.Not):
            return Value("b", (self.new(f"xor i1 {self.truth(node.operand)}, true"),))
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub):
            raise self.refuse(node)
        if value.kind == "f":
            return Value("f", (self.new(f"fneg double {value.one}"),))
        return Value("i", (self.new(f"sub i64 0, {self.as_kind(value, 'i', node)}"),))

    def compared(self, op: Any, a: Value, b: Value, node: Any) -> str:
        """Return the truth of one comparison."""
        of_floats, of_integers = _COMPARISONS[type(op)]
        kind = "f" if "f" in (a.kind, b.kind) else "i"
        x, y = self.as_kind(a, kind, node), self.as_kind(b, kind, node)
        if kind == "f":
            return self.new(f"fcmp {of_floats} double {x}, {y}")
        return self.new(f"icmp {of_integers} i64 {x}, {y}")

    def _value_Compare(self, node: Any) -> Value:
        values = [self.value(x) for x in (node.left, *node.comparators)]
        pairs = pairwise(values)
        found = [self.compared(op, *pair, node) for op, pair in zip(node.ops, pairs, strict=True)]
        result = found[0]
        for each in found[1:]:
            result = self.new(f"and i1 {result}, {each}")
        return Value("b", (result,))

    def _value_BoolOp(self, node: Any) -> Value:
        room, after = self.room("i1"), self.label()
        for item in node.values[:-1]:
            found, following = self.truth(item), self.label()
            self.lines.append(f"  store i1 {found}, ptr {room}, align 8")
            self.branch(found, *((following, after) if isinstance(node.op, ast.And) else (after, following)))
            self.begin(following)
        self.lines.append(f"  store i1 {self.truth(node.values[-1])}, ptr {room}, align 8")
        self.begin(after)
        return Value("b", (self.new(f"load i1, ptr {room}, align 8"),))

    def _value_IfExp(self, node: Any) -> Value:
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(self.truth(node.test), yes, no)
        found = []
        for label, item in ((yes, node.body), (no, node.orelse)):
            before, self.lines = self.lines, []
            self.begin(label)
            found.append((self.value(item), self.lines))
            self.lines, self.open = before, False
        kinds = [value.kind for value, _ in found]
        kind = kinds[0] if kinds[0] == kinds[1] else "f" if "f" in kinds else "i"
        room = self.room(type_of(kind))
        for value, lines in found:
            self.lines += lines
            self.lines.append(f"  store {type_of(kind)} {self.as_kind(value, kind, node)}, ptr {room}, align 8")
            self.lines.append(f"  br label %{after}")
        self.begin(after)
        return Value(kind, (self.new(f"load {type_of(kind)}, ptr {room}, align 8"),))

    # calls

    def _value_Call(self, node: Any) -> Value:
        found = self.called(node.func)
        values = [self.value(a) for a in node.args]
        if found in _CALLS:
            return _CALLS[found](self, node, *values)
        if hasattr(found, "_at_address"):
            address = self.new(f"inttoptr i64 {self.as_kind(values[0], 'i', node)} to ptr")
            given = ", ".join(f"{'ptr' if v.kind[0] in 'FI' else type_of(v.kind)} {v.one}" for v in values[1:])
            return Value("i", (self.new(f"call i64 {address}({given})"),))
        name, result = self.module.function(found, tuple(v.kind for v in values))
        given = ", ".join(f"{t} {p}" for v in values for t, p in zip(slots(v.kind), v.parts, strict=True))
        if not result:
            self.lines.append(f"  call void @{name}({given})")
            return Value((), ())
        return Value(result, (self.new(f"call {type_of(result)} @{name}({given})"),))

    def called(self, node: Any) -> Any:
        """Return the function that a call names."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return getattr(self.names[node.value.id], node.attr)
        name = node.id
        found = self.names.get(name, _BUILTINS.get(name))
        if found is None:
            raise self.refuse(node, "not known")
        return found


_BUILTINS: dict[str, Any] = {"abs": abs, "min": min, "max": max, "float": float, "int": int, "len": len}


def _chosen(comparison: str) -> Callable[..., Value]:
    """Return what chooses as `min` and `max` do: the second where it compares so, else the first."""

    def choose(e: Expressions, node: Any, a: Value, b: Value) -> Value:
        kind = "f" if "f" in (a.kind, b.kind) else "i"
        x, y = e.as_kind(a, kind, node), e.as_kind(b, kind, node)
        how = f"fcmp o{comparison} double" if kind == "f" else f"icmp s{comparison} i64"
        which = e.new(f"{how} {y}, {x}")
        return Value(kind, (e.new(f"select i1 {which}, {TYPES[kind]} {y}, {TYPES[kind]} {x}"),))

    return choose


def _of_libraries(name: str) -> Callable[..., Value]:
    def call(e: Expressions, node: Any, *values: Value) -> Value:
        given = ", ".join(f"double {e.as_kind(v, 'f', node)}" for v in values)
        return Value("f", (e.new(f"call double @{name}({given})"),))

    return call


def _as_integer(e: Expressions, node: Any, value: Value) -> Value:
    return Value(
        "i", (e.new(f"fptosi double {value.one} to i64") if value.kind == "f" else e.as_kind(value, "i", node),)
    )


def _is_finite(e: Expressions, node: Any, value: Value) -> Value:
    size = e.new(f"call double @llvm.fabs.f64(double {e.as_kind(value, 'f', node)})")
    return Value("b", (e.new(f"fcmp olt double {size}, {number_text(math.inf)}"),))


def _is_nan(e: Expressions, node: Any, value: Value) -> Value:
    number = e.as_kind(value, "f", node)
    return Value("b", (e.new(f"fcmp uno double {number}, {number}"),))


_CALLS: dict[Any, Callable[..., Value]] = {
    abs: _of_libraries("llvm.fabs.f64"),
    min: _chosen("lt"),
    max: _chosen("gt"),
    float: lambda e, node, value: Value("f", (e.as_kind(value, "f", node),)),
    int: _as_integer,
    np.int64: _as_integer,
    len: lambda e, node, value: Value("i", (value.parts[1],)),
    math.sqrt: _of_libraries("llvm.sqrt.f64"),
    math.isfinite: _is_finite,
    math.isnan: _is_nan,
    np.nextafter: _of_libraries("nextafter"),
}
