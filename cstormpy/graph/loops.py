"""Machine code of plain functions with loops and branches, as those that take the steps of an integration.

A function is read as it is written, with all that it calls, and becomes LLVM's text; what it computes is rounded as by
Python. It takes and computes with whole numbers, floats, truths, and rows and tables of them (one- and two-dimensional
C arrays), which it may index, of which it may take a row or a stretch, and ask for their ``size`` and ``shape``. It may
use ``for`` over a ``range``, ``while``, ``if``, ``break``, ``continue``, the constants of its module, `abs`, `min`,
`max`, `float`, `int`, `len`, and what `_CALLS` lists. A variable keeps the kind that it is first given.

A function that stands behind an address is called as ``evaluate(address, ...)`` by one that is marked by `at_address`.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np

__all__ = ["LoopError", "at_address", "loops_text"]

#: LLVM's types of numbers: whole, float, truth.
_TYPES = {"i": "i64", "f": "double", "b": "i1"}
_COMPARISONS = {
    ast.Lt: ("olt", "slt"), ast.LtE: ("ole", "sle"), ast.Gt: ("ogt", "sgt"), ast.GtE: ("oge", "sge"),
    ast.Eq: ("oeq", "eq"), ast.NotEq: ("une", "ne"),
}  # fmt: skip
_ARITHMETIC = {ast.Add: ("fadd", "add"), ast.Sub: ("fsub", "sub"), ast.Mult: ("fmul", "mul"), ast.Div: ("fdiv", "")}
_DECLARED = """declare double @pow(double, double)
declare double @nextafter(double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
"""
#: Functions of fewer lines become part of those that call them.
_SMALL = 150
Kind = str | tuple[str, ...]


class LoopError(TypeError):
    """What is not read of a function, with its line."""


def at_address(function: Callable[..., Any], signature: str) -> None:
    """Have a function stand for the one at the address that is its first argument; of numba's signature."""
    function._at_address = signature  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Value:
    """What an expression gives: of an array kind "F1", "I2", … where it stands and its lengths; or several values."""

    kind: Kind
    parts: tuple[Any, ...]

    @property
    def one(self) -> str:
        """The number itself."""
        return str(self.parts[0])


def loops_text(entries: dict[Callable[..., Any], Sequence[str]]) -> str:
    """Return the text of a module of some functions, each given with the kinds of its arguments.

    Of each ``name`` there is ``i64 name_call(ptr arguments, ptr results)``: the arguments stand one behind the other as
    whole numbers, those of arrays as their place and lengths; the results are whole numbers, one alone is returned too.

    Parameters
    ----------
    entries : dict of function to sequence of str
        "i" a whole number, "F1" a row of floats, "F2" a table of them, "I1", "I2" the same of whole numbers.
    """
    module = _Module()
    for function, kinds in entries.items():
        module.export(function, tuple(kinds))
    return "\n".join([*module.constants.values(), *module.texts, _DECLARED])


class _Module:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.constants: dict[tuple[float, ...], str] = {}
        self.made: dict[tuple[Any, tuple[Kind, ...]], tuple[str, Kind]] = {}

    def function(self, function: Any, kinds: tuple[Kind, ...]) -> tuple[str, Kind]:
        """Return the name of a function for arguments of some kinds, and of which kind its result is."""
        key = function, kinds
        if key not in self.made:
            name = f"{function.__name__}.{len(self.made)}"
            reader = _Reader(self, function, kinds)
            self.texts.append(reader.text(name))
            self.made[key] = name, reader.result or ()
        return self.made[key]

    def constant(self, numbers: tuple[float, ...]) -> str:
        """Return the place of a tuple of floats."""
        if numbers not in self.constants:
            items = ", ".join(f"double {_number(v)}" for v in numbers)
            text = f"@numbers.{len(self.constants)} = private constant [{len(numbers)} x double] [{items}], align 8"
            self.constants[numbers] = text
        return self.constants[numbers].split(" ", 1)[0]

    def export(self, function: Any, kinds: tuple[str, ...]) -> None:
        """Add what is called with the places of arguments and results."""
        name, result = self.function(function, kinds)
        lines, given, place = [], [], count()

        def load() -> str:
            k = next(place)
            lines.append(
                f"  %a{k} = getelementptr i64, ptr %arguments, i64 {k}\n  %v{k} = load i64, ptr %a{k}, align 8"
            )
            return f"%v{k}"

        for kind in kinds:
            first = load()
            if kind == "i":
                given.append(f"i64 {first}")
                continue
            lines.append(f"  %p{first[1:]} = inttoptr i64 {first} to ptr")
            given += [f"ptr %p{first[1:]}", *(f"i64 {load()}" for _ in range(int(kind[1])))]
        lines.append(f"  %found = call {_type_of(result)} @{name}({', '.join(given)})")
        if isinstance(result, tuple):
            for k in range(len(result)):
                lines.append(f"  %r{k} = extractvalue {_type_of(result)} %found, {k}")
                lines.append(
                    f"  %q{k} = getelementptr i64, ptr %results, i64 {k}\n  store i64 %r{k}, ptr %q{k}, align 8"
                )
        else:
            lines.append("  store i64 %found, ptr %results, align 8")
        answer = "0" if isinstance(result, tuple) else "%found"
        head = f"define i64 @{function.__name__}_call(ptr %arguments, ptr %results) {{"
        self.texts.append("\n".join([head, *lines, f"  ret i64 {answer}", "}"]))


def _number(value: Any) -> str:
    """Return a float exactly, as LLVM reads it."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


def _type_of(kind: Kind) -> str:
    if isinstance(kind, tuple):
        return "{ " + ", ".join(_TYPES[k] for k in kind) + " }" if kind else "void"
    return _TYPES[kind]


def _slots(kind: Kind) -> list[str]:
    """Return LLVM's types of the parts of a value."""
    return ["ptr", *["i64"] * int(kind[1])] if kind[0] in "FI" else [_type_of(kind)]


class _Reader:
    """What reads one function for arguments of some kinds.

    Attributes
    ----------
    result : kind or None
        Of what it returns, once that is known.
    """

    def __init__(self, module: _Module, function: Any, kinds: tuple[Kind, ...]) -> None:
        self.module, self.kinds, self.file = module, kinds, inspect.getsourcefile(function)
        source, self.first = inspect.getsourcelines(function)
        self.tree: Any = ast.parse(textwrap.dedent("".join(source))).body[0]
        self.names = function.__globals__
        self.number = count()
        self.head: list[str] = []
        self.lines: list[str] = []
        self.variables: dict[str, tuple[Kind, list[str]]] = {}
        self.loops: list[tuple[str, str]] = []
        self.result: Kind | None = None
        self.open = True

    def text(self, name: str) -> str:
        """Return the function as LLVM reads it."""
        given = []
        for arg, kind in zip(self.tree.args.args, self.kinds, strict=True):
            parts = [f"%given{next(self.number)}" for _ in _slots(kind)]
            given += [f"{t} {p}" for t, p in zip(_slots(kind), parts, strict=True)]
            self.assign_name(arg.arg, _Value(kind, tuple(parts)))
        self.block(self.tree.body)
        if self.open:
            self.lines.append("  ret void" if self.result in (None, ()) else "  unreachable")
        how = "alwaysinline" if len(self.lines) < _SMALL else "noinline"
        head = f"define internal {_type_of(self.result or ())} @{name}({', '.join(given)}) {how} {{"
        return "\n".join([head, *self.head, *self.lines, "}"])

    # lines and blocks

    def new(self, text: str) -> str:
        name = f"%x{next(self.number)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self) -> str:
        return f"l{next(self.number)}"

    def begin(self, label: str) -> None:
        """Begin a block; what comes before goes on there, unless it has left."""
        if self.open:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True

    def leave(self, text: str) -> None:
        if self.open:
            self.lines.append(f"  {text}")
        self.open = False

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.leave(f"br i1 {condition}, label %{yes}, label %{no}")

    def room(self, kind: str) -> str:
        name = f"%x{next(self.number)}"
        self.head.append(f"  {name} = alloca {kind}, align 8")
        return name

    def refuse(self, node: Any, why: str = "") -> LoopError:
        line = self.first + getattr(node, "lineno", 1) - 1
        return LoopError(f"{self.file}, line {line}: {why or 'not read'}: {ast.unparse(node)}")

    # statements

    def block(self, statements: list[Any]) -> None:
        for node in statements:
            if not self.open:
                return
            getattr(self, f"_{type(node).__name__}", self._unknown)(node)

    def _unknown(self, node: Any) -> Any:
        raise self.refuse(node)

    def _Expr(self, node: Any) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _Assign(self, node: Any) -> None:
        if isinstance(node.value, ast.IfExp) and isinstance(node.value.body, ast.Tuple):
            one, other = (ast.Assign(node.targets, v, lineno=node.lineno) for v in (node.value.body, node.value.orelse))
            return self._If(ast.If(node.value.test, [one], [other]))
        if isinstance(node.value, ast.Tuple):
            found = [self.value(item) for item in node.value.elts]
            for target in node.targets:
                for item, value in zip(target.elts, found, strict=True):
                    self.assign(item, value)
            return None
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _AugAssign(self, node: Any) -> None:
        before = self.value(ast.copy_location(_loaded(node.target), node))
        self.assign(node.target, self.arithmetic(node, node.op, before, self.value(node.value)))

    def assign(self, target: Any, value: _Value) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value.kind, tuple):
                raise self.refuse(target, "one value for several")
            for k, (item, kind) in enumerate(zip(target.elts, value.kind, strict=True)):
                self.assign(item, _Value(kind, (self.new(f"extractvalue {_type_of(value.kind)} {value.one}, {k}"),)))
        elif isinstance(target, ast.Name):
            self.assign_name(target.id, value, target)
        else:
            place, kind = self.place(target)
            self.lines.append(f"  store {_TYPES[kind]} {self.as_kind(value, kind, target)}, ptr {place}, align 8")

    def assign_name(self, name: str, value: _Value, node: Any = None) -> None:
        if name not in self.variables:
            self.variables[name] = value.kind, [self.room(t) for t in _slots(value.kind)]
        kind, rooms = self.variables[name]
        parts = value.parts if value.kind == kind else [self.as_kind(value, kind, node)]
        for slot, part, room in zip(_slots(kind), parts, rooms, strict=True):
            self.lines.append(f"  store {slot} {part}, ptr {room}, align 8")

    def _Return(self, node: Any) -> None:
        if node.value is None:
            self.result = ()
            return self.leave("ret void")
        if not isinstance(node.value, ast.Tuple):
            value = self.value(node.value)
            self.result = self.result or value.kind
            return self.leave(f"ret {_type_of(self.result)} {self.as_kind(value, self.result, node)}")
        found = [self.value(item) for item in node.value.elts]
        self.result = self.result or tuple(str(v.kind) for v in found)
        made = "undef"
        for k, (value, kind) in enumerate(zip(found, self.result, strict=True)):
            number = f"{_TYPES[kind]} {self.as_kind(value, kind, node)}"
            made = self.new(f"insertvalue {_type_of(self.result)} {made}, {number}, {k}")
        return self.leave(f"ret {_type_of(self.result)} {made}")

    def _If(self, node: Any) -> None:
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(self.truth(node.test), yes, no)
        left = True
        for label, statements in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            self.block(statements)
            left = left and not self.open
            self.leave(f"br label %{after}")
        if not left:
            self.begin(after)

    def _While(self, node: Any) -> None:
        test, body, after = self.label(), self.label(), self.label()
        self.begin(test)
        self.branch(self.truth(node.test), body, after)
        self.repeat(node, test, body, after)

    def repeat(self, node: Any, again: str, body: str, after: str) -> None:
        self.begin(body)
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.leave(f"br label %{again}")
        self.begin(after)

    def _For(self, node: Any) -> None:
        bounds = [self.as_kind(self.value(a), "i", node) for a in node.iter.args]
        first, last = bounds if len(bounds) == 2 else ("0", bounds[0])
        test, body, again, after, room = self.label(), self.label(), self.label(), self.label(), self.room("i64")
        self.lines.append(f"  store i64 {first}, ptr {room}, align 8")
        self.begin(test)
        now = self.new(f"load i64, ptr {room}, align 8")
        self.branch(self.new(f"icmp slt i64 {now}, {last}"), body, after)
        self.begin(body)
        self.assign_name(node.target.id, _Value("i", (now,)))
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.begin(again)
        following = self.new(f"add i64 {now}, 1")
        self.lines.append(f"  store i64 {following}, ptr {room}, align 8")
        self.leave(f"br label %{test}")
        self.begin(after)

    def _Break(self, node: Any) -> None:
        self.leave(f"br label %{self.loops[-1][1]}")

    def _Continue(self, node: Any) -> None:
        self.leave(f"br label %{self.loops[-1][0]}")

    # values

    def value(self, node: Any) -> _Value:
        """Return what an expression gives."""
        found: _Value = getattr(self, f"value_{type(node).__name__}", self._unknown)(node)
        return found

    def truth(self, node: Any) -> str:
        return self.as_kind(self.value(node), "b", node)

    def as_kind(self, value: _Value, kind: Kind, node: Any) -> str:
        """Return a number as one of some kind."""
        before = value.kind
        if before == kind:
            return value.one
        if kind == "b" and before == "i":
            return self.new(f"icmp ne i64 {value.one}, 0")
        if kind == "f" and before in ("i", "b"):
            return self.new(f"{'sitofp' if before == 'i' else 'uitofp'} {_type_of(before)} {value.one} to double")
        if kind == "i" and before == "b":
            return self.new(f"zext i1 {value.one} to i64")
        raise self.refuse(node or self.tree, f"{before} where {kind} is wanted")

    def constant(self, found: Any, node: Any) -> _Value:
        if isinstance(found, (bool, np.bool_)):
            return _Value("b", ("true" if found else "false",))
        if isinstance(found, (int, np.integer)):
            return _Value("i", (str(int(found)),))
        if isinstance(found, (float, np.floating)):
            return _Value("f", (_number(found),))
        if isinstance(found, tuple) and all(isinstance(x, float) for x in found):
            return _Value("F1", (self.module.constant(found), str(len(found))))
        raise self.refuse(node)

    def value_Constant(self, node: Any) -> _Value:
        return self.constant(node.value, node)

    def value_Name(self, node: Any) -> _Value:
        if node.id not in self.variables:
            if node.id not in self.names:
                raise self.refuse(node, "not known")
            return self.constant(self.names[node.id], node)
        kind, rooms = self.variables[node.id]
        parts = [self.new(f"load {t}, ptr {r}, align 8") for t, r in zip(_slots(kind), rooms, strict=True)]
        return _Value(kind, tuple(parts))

    def value_Attribute(self, node: Any) -> _Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self.variables:
            return self.constant(getattr(self.names[node.value.id], node.attr), node)
        value = self.value(node.value)
        if node.attr != "size" or value.kind[0] not in "FI":
            raise self.refuse(node)
        lengths = value.parts[1:]
        return _Value("i", (lengths[0] if len(lengths) == 1 else self.new(f"mul i64 {lengths[0]}, {lengths[1]}"),))

    def value_Subscript(self, node: Any) -> _Value:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return _Value("i", (self.value(node.value.value).parts[1 + node.slice.value],))
        index = node.slice
        if not isinstance(index, (ast.Slice, ast.Tuple)):
            value = self.value(node.value)
            if value.kind[1] == "2":
                return _Value(f"{value.kind[0]}1", (self.row(value, index), value.parts[2]))
        elif isinstance(index, ast.Slice):
            value = self.value(node.value)
            first, last = (self.as_kind(self.value(x), "i", node) for x in (index.lower, index.upper))
            return _Value(value.kind, (self.item(value, first), self.new(f"sub i64 {last}, {first}")))
        place, kind = self.place(node)
        return _Value(kind, (self.new(f"load {_TYPES[kind]}, ptr {place}, align 8"),))

    def row(self, value: _Value, index: Any) -> str:
        first = self.as_kind(self.value(index), "i", index)
        return self.item(value, self.new(f"mul i64 {first}, {value.parts[2]}"))

    def item(self, value: _Value, index: str) -> str:
        return self.new(f"getelementptr {_TYPES[value.kind[0].lower()]}, ptr {value.one}, i64 {index}")

    def place(self, node: Any) -> tuple[str, str]:
        """Return where an entry of an array stands, and its kind."""
        if not isinstance(node, ast.Subscript):
            raise self.refuse(node)
        value, index = self.value(node.value), node.slice
        kind = value.kind[0].lower()
        if isinstance(index, ast.Tuple):
            inner = _Value(f"{value.kind[0]}1", (self.row(value, index.elts[0]), value.parts[2]))
            return self.item(inner, self.as_kind(self.value(index.elts[1]), "i", node)), kind
        if value.kind[1] != "1":
            raise self.refuse(node)
        return self.item(value, self.as_kind(self.value(index), "i", node)), kind

    # operations

    def value_BinOp(self, node: Any) -> _Value:
        return self.arithmetic(node, node.op, self.value(node.left), self.value(node.right))

    def arithmetic(self, node: Any, op: Any, a: _Value, b: _Value) -> _Value:
        if isinstance(op, ast.Pow):
            x, y = self.as_kind(a, "f", node), self.as_kind(b, "f", node)
            return _Value("f", (self.new(f"call double @pow(double {x}, double {y})"),))
        if isinstance(op, ast.Mod) and (a.kind, b.kind) == ("i", "i"):
            rest = self.new(f"srem i64 {a.one}, {b.one}")
            other = self.new(f"icmp slt i64 {self.new(f'mul i64 {rest}, {b.one}')}, 0")  # of the sign of the divisor
            return _Value(
                "i", (self.new(f"select i1 {other}, i64 {self.new(f'add i64 {rest}, {b.one}')}, i64 {rest}"),)
            )
        if type(op) not in _ARITHMETIC:
            raise self.refuse(node)
        of_floats, of_integers = _ARITHMETIC[type(op)]
        kind = "f" if "f" in (a.kind, b.kind) or not of_integers else "i"
        x, y = self.as_kind(a, kind, node), self.as_kind(b, kind, node)
        return _Value(kind, (self.new(f"{of_floats if kind == 'f' else of_integers} {_TYPES[kind]} {x}, {y}"),))

    def value_UnaryOp(self, node: Any) -> _Value:
        if isinstance(node.op, ast.Not):
            return _Value("b", (self.new(f"xor i1 {self.truth(node.operand)}, true"),))
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub):
            raise self.refuse(node)
        if value.kind == "f":
            return _Value("f", (self.new(f"fneg double {value.one}"),))
        return _Value("i", (self.new(f"sub i64 0, {self.as_kind(value, 'i', node)}"),))

    def compared(self, op: Any, a: _Value, b: _Value, node: Any) -> str:
        of_floats, of_integers = _COMPARISONS[type(op)]
        kind = "f" if "f" in (a.kind, b.kind) else "i"
        x, y = self.as_kind(a, kind, node), self.as_kind(b, kind, node)
        if kind == "f":
            return self.new(f"fcmp {of_floats} double {x}, {y}")
        return self.new(f"icmp {of_integers} i64 {x}, {y}")

    def value_Compare(self, node: Any) -> _Value:
        values = [self.value(x) for x in (node.left, *node.comparators)]
        pairs = pairwise(values)
        found = [self.compared(op, *pair, node) for op, pair in zip(node.ops, pairs, strict=True)]
        result = found[0]
        for each in found[1:]:
            result = self.new(f"and i1 {result}, {each}")
        return _Value("b", (result,))

    def value_BoolOp(self, node: Any) -> _Value:
        room, after = self.room("i1"), self.label()
        for item in node.values[:-1]:
            found, following = self.truth(item), self.label()
            self.lines.append(f"  store i1 {found}, ptr {room}, align 8")
            self.branch(found, *((following, after) if isinstance(node.op, ast.And) else (after, following)))
            self.begin(following)
        self.lines.append(f"  store i1 {self.truth(node.values[-1])}, ptr {room}, align 8")
        self.begin(after)
        return _Value("b", (self.new(f"load i1, ptr {room}, align 8"),))

    def value_IfExp(self, node: Any) -> _Value:
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
        room = self.room(_type_of(kind))
        for value, lines in found:
            self.lines += lines
            self.lines.append(f"  store {_type_of(kind)} {self.as_kind(value, kind, node)}, ptr {room}, align 8")
            self.lines.append(f"  br label %{after}")
        self.begin(after)
        return _Value(kind, (self.new(f"load {_type_of(kind)}, ptr {room}, align 8"),))

    # calls

    def value_Call(self, node: Any) -> _Value:
        found = self.called(node.func)
        values = [self.value(a) for a in node.args]
        if found in _CALLS:
            return _CALLS[found](self, node, *values)
        if hasattr(found, "_at_address"):
            address = self.new(f"inttoptr i64 {self.as_kind(values[0], 'i', node)} to ptr")
            given = ", ".join(f"{'ptr' if v.kind[0] in 'FI' else _type_of(v.kind)} {v.one}" for v in values[1:])
            return _Value("i", (self.new(f"call i64 {address}({given})"),))
        name, result = self.module.function(found, tuple(v.kind for v in values))
        given = ", ".join(f"{t} {p}" for v in values for t, p in zip(_slots(v.kind), v.parts, strict=True))
        if not result:
            self.lines.append(f"  call void @{name}({given})")
            return _Value((), ())
        return _Value(result, (self.new(f"call {_type_of(result)} @{name}({given})"),))

    def called(self, node: Any) -> Any:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return getattr(self.names[node.value.id], node.attr)
        name = node.id
        found = self.names.get(name, _BUILTINS.get(name))
        if found is None:
            raise self.refuse(node, "not known")
        return found


_BUILTINS: dict[str, Any] = {"abs": abs, "min": min, "max": max, "float": float, "int": int, "len": len}


def _loaded(target: Any) -> Any:
    """Return what is assigned to as what is read."""
    return ast.parse(ast.unparse(target), mode="eval").body


def _chosen(comparison: str) -> Callable[..., _Value]:
    """Return what chooses as `min` and `max` do: the second where it compares so, else the first."""

    def choose(e: _Reader, node: Any, a: _Value, b: _Value) -> _Value:
        kind = "f" if "f" in (a.kind, b.kind) else "i"
        x, y = e.as_kind(a, kind, node), e.as_kind(b, kind, node)
        how = f"fcmp o{comparison} double" if kind == "f" else f"icmp s{comparison} i64"
        which = e.new(f"{how} {y}, {x}")
        return _Value(kind, (e.new(f"select i1 {which}, {_TYPES[kind]} {y}, {_TYPES[kind]} {x}"),))

    return choose


def _of_libraries(name: str) -> Callable[..., _Value]:
    def call(e: _Reader, node: Any, *values: _Value) -> _Value:
        given = ", ".join(f"double {e.as_kind(v, 'f', node)}" for v in values)
        return _Value("f", (e.new(f"call double @{name}({given})"),))

    return call


def _as_integer(e: _Reader, node: Any, value: _Value) -> _Value:
    return _Value(
        "i", (e.new(f"fptosi double {value.one} to i64") if value.kind == "f" else e.as_kind(value, "i", node),)
    )


def _is_finite(e: _Reader, node: Any, value: _Value) -> _Value:
    size = e.new(f"call double @llvm.fabs.f64(double {e.as_kind(value, 'f', node)})")
    return _Value("b", (e.new(f"fcmp olt double {size}, {_number(math.inf)}"),))


def _is_nan(e: _Reader, node: Any, value: _Value) -> _Value:
    number = e.as_kind(value, "f", node)
    return _Value("b", (e.new(f"fcmp uno double {number}, {number}"),))


_CALLS: dict[Any, Callable[..., _Value]] = {
    abs: _of_libraries("llvm.fabs.f64"),
    min: _chosen("lt"),
    max: _chosen("gt"),
    float: lambda e, node, value: _Value("f", (e.as_kind(value, "f", node),)),
    int: _as_integer,
    np.int64: _as_integer,
    len: lambda e, node, value: _Value("i", (value.parts[1],)),
    math.sqrt: _of_libraries("llvm.sqrt.f64"),
    math.isfinite: _is_finite,
    math.isnan: _is_nan,
    np.nextafter: _of_libraries("nextafter"),
}
