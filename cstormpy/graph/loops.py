"""Machine code of plain functions with loops and branches, as those that take the steps of an integration.

A function is read as it is written, with all that it calls, and becomes LLVM's text; what it computes is rounded as by
Python. It takes and computes with whole numbers, floats, truths, and rows and tables of them (one- and two-dimensional
C arrays), which it may index, of which it may take a row or a stretch, and ask for their ``size`` and ``shape``. It may
use ``for`` over a ``range``, ``while``, ``if``, ``break``, ``continue``, the constants of its module, `abs`, `min`,
`max`, `float`, `int`, `len`, and what `loop_expressions` lists. A variable keeps the kind that it is first given.

A function that stands behind an address is called as ``evaluate(address, ...)`` by one that is marked by
`addressed.at_address`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from cstormpy.graph.loop_expressions import Expressions
from cstormpy.graph.loop_lines import TYPES, Kind, LoopError, Value, number_text, slots, type_of

__all__ = ["LoopError", "fixed_text", "loops_text"]

_DECLARED = """declare double @pow(double, double)
declare double @nextafter(double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
"""
#: Functions of fewer lines become part of those that call them.
_SMALL = 200


def loops_text(entries: dict[Callable[..., Any], Sequence[str]]) -> str:
    """Return the text of a module of some functions, each given with the kinds of its arguments.

    Of each ``name`` there is ``i64 name_call(ptr arguments, ptr results)``: the arguments stand one behind the other as
    whole numbers, those of arrays as their place and lengths; the results are whole numbers, one alone is returned too.

    Parameters
    ----------
    entries : dict of function to sequence of str
        "i" a whole number, "F1" a row of floats, "F2" a table of them, "I1", "I2" the same of whole numbers.
    """
    module = Module()
    for function, kinds in entries.items():
        module.export(function, tuple(kinds))
    return "\n".join([*module.constants.values(), *module.texts, _DECLARED])


def fixed_text(entries: dict[Callable[..., Any], Sequence[Any]]) -> str:
    """Return the text of a module of some functions for arrays whose lengths, and tables whose numbers, are known.

    Loops over these are written out, and the numbers folded in. Of each ``name`` there is ``i64 name_at(...)``, which
    takes what a function that is called by its address takes: numbers, and of arrays the place. It returns the whole
    number that the function does.

    Parameters
    ----------
    entries : dict of function to sequence
        Of each argument "i", "f" or "b" for a number, a kind of array with its lengths, as ``("F2", 3, 5)``, or a table
        of floats, which is no argument any more.
    """
    module = Module(small=math.inf)
    for function, arguments in entries.items():
        module.export_fixed(function, arguments)
    return "\n".join([*module.constants.values(), *module.texts, _DECLARED])


class Module:
    def __init__(self, small: float = _SMALL) -> None:
        #: Functions of fewer lines become part of those that call them.
        self.small = small
        self.texts: list[str] = []
        self.constants: dict[tuple[float, ...], str] = {}
        self.made: dict[tuple[Any, tuple[Kind, ...]], tuple[str, Kind]] = {}

    def function(self, function: Any, kinds: tuple[Kind, ...]) -> tuple[str, Kind]:
        """Return the name of a function for arguments of some kinds, and of which kind its result is."""
        key = function, kinds
        if key not in self.made:
            name = f"{function.__name__}.{len(self.made)}"
            reader = Reader(self, function, kinds)
            self.texts.append(reader.text(name))
            self.made[key] = name, reader.result or ()
        return self.made[key]

    def constant(self, numbers: tuple[float, ...]) -> str:
        """Return the place of a tuple of floats."""
        if numbers not in self.constants:
            items = ", ".join(f"double {number_text(v)}" for v in numbers)
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
        lines.append(f"  %found = call {type_of(result)} @{name}({', '.join(given)})")
        if isinstance(result, tuple):
            for k in range(len(result)):
                lines.append(f"  %r{k} = extractvalue {type_of(result)} %found, {k}")
                lines.append(
                    f"  %q{k} = getelementptr i64, ptr %results, i64 {k}\n  store i64 %r{k}, ptr %q{k}, align 8"
                )
        else:
            lines.append("  store i64 %found, ptr %results, align 8")
        answer = "0" if isinstance(result, tuple) else "%found"
        head = f"define i64 @{function.__name__}_call(ptr %arguments, ptr %results) {{"
        self.texts.append("\n".join([head, *lines, f"  ret i64 {answer}", "}"]))

    def export_fixed(self, function: Any, arguments: Sequence[Any]) -> None:
        """Add what is called with numbers and places, for arrays of known lengths and tables of known numbers."""
        kinds: list[Kind] = []
        taken, given = [], []
        for k, argument in enumerate(arguments):
            if isinstance(argument, str):
                kinds.append(argument)
                taken.append(f"{type_of(argument)} %v{k}")
                given.append(taken[-1])
                continue
            if isinstance(argument, tuple):
                kind, *lengths = argument
                place = f"%v{k}"
                taken.append(f"ptr {place}")
            else:
                kind, lengths = f"F{argument.ndim}", [*argument.shape]
                place = self.constant(tuple(argument.ravel().tolist()))
            kinds.append(kind)
            given += [f"ptr {place}", *(f"i64 {length}" for length in lengths)]
        name, _ = self.function(function, tuple(kinds))
        lines = [f"  %found = call i64 @{name}({', '.join(given)})", "  ret i64 %found", "}"]
        self.texts.append("\n".join([f"define i64 @{function.__name__}_at({', '.join(taken)}) {{", *lines]))


class Reader(Expressions):
    """A reader of one function for arguments of some kinds: of its statements, each by a method of its name."""

    def text(self, name: str) -> str:
        """Return the function as LLVM reads it."""
        given = []
        for arg, kind in zip(self.tree.args.args, self.kinds, strict=True):
            parts = [f"%given{next(self.number)}" for _ in slots(kind)]
            given += [f"{t} {p}" for t, p in zip(slots(kind), parts, strict=True)]
            self.assign_name(arg.arg, Value(kind, tuple(parts)))
        self.block(self.tree.body)
        if self.open:
            self.lines.append("  ret void" if self.result in (None, ()) else "  unreachable")
        how = "alwaysinline" if len(self.lines) < self.module.small else "noinline"
        head = f"define internal {type_of(self.result or ())} @{name}({', '.join(given)}) {how} {{"
        return "\n".join([head, *self.head, *self.lines, "}"])

    def block(self, statements: list[Any]) -> None:
        for node in statements:
            if not self.open:
                return
            getattr(self, f"_{type(node).__name__}", self._unknown)(node)

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

    def assign(self, target: Any, value: Value) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value.kind, tuple):
                raise self.refuse(target, "one value for several")
            for k, (item, kind) in enumerate(zip(target.elts, value.kind, strict=True)):
                self.assign(item, Value(kind, (self.new(f"extractvalue {type_of(value.kind)} {value.one}, {k}"),)))
        elif isinstance(target, ast.Name):
            self.assign_name(target.id, value, target)
        else:
            place, kind = self.place(target)
            self.lines.append(f"  store {TYPES[kind]} {self.as_kind(value, kind, target)}, ptr {place}, align 8")

    def _Return(self, node: Any) -> None:
        if node.value is None:
            self.result = ()
            return self.leave("ret void")
        if not isinstance(node.value, ast.Tuple):
            value = self.value(node.value)
            self.result = self.result or value.kind
            return self.leave(f"ret {type_of(self.result)} {self.as_kind(value, self.result, node)}")
        found = [self.value(item) for item in node.value.elts]
        self.result = self.result or tuple(str(v.kind) for v in found)
        made = "undef"
        for k, (value, kind) in enumerate(zip(found, self.result, strict=True)):
            number = f"{TYPES[kind]} {self.as_kind(value, kind, node)}"
            made = self.new(f"insertvalue {type_of(self.result)} {made}, {number}, {k}")
        return self.leave(f"ret {type_of(self.result)} {made}")

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
        self.assign_name(node.target.id, Value("i", (now,)))
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


def _loaded(target: Any) -> Any:
    """Return the target of an assignment as the expression that reads it."""
    return ast.parse(ast.unparse(target), mode="eval").body
