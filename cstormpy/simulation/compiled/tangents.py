"""Directional derivatives of a diagram's function, by transforming its source: forward mode.

From ``rate(t, x, z, p, n, w, out, xd)`` comes ``tangent(t, x, z, p, n, w, out, xd, dt, dx, dz, dp, dw, dout, dxd)``:
each statement is preceded by that of its tangent, which is named as the value with a d before it, and branches are
those that the value takes. What is called has its rule in `tangent_rules`. The same source runs compiled, along one
direction, and uncompiled, where dx, dz, dp, dw, dout, dxd have a second axis and dt may be an array: all directions.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from cstormpy.simulation.compiled.assembly import GraphProgram
from cstormpy.simulation.compiled.emitter import Untranslatable
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.registry import NotTranslated
from cstormpy.simulation.compiled.tangent_rules import INLINE, PAIRS, STATEMENTS, WHOLE, Call, Difference, unknown

__all__ = ["TangentProgram", "tangent_program"]

_ARRAYS = {"x", "z", "p", "w", "out", "xd"}
_HEAD = "def tangent(t, x, z, p, n, w, out, xd, dt, dx, dz, dp, dw, dout, dxd):"


@dataclass
class TangentProgram:
    """The source of a diagram's function with tangents.

    Attributes
    ----------
    source : str
    calls : tuple of str
        What it calls of the kernels, beside the user's functions.
    scratch : int
        How large w and dw are.
    differenced : list of (str, str)
        What is differenced, and in which block: a function of the user, or a kernel without an exact rule.
    """

    source: str
    calls: tuple[str, ...]
    scratch: int
    differenced: list[tuple[str, str]] = field(default_factory=list)


def tangent_program(program: Program, names: dict[int, str], compiled: bool) -> TangentProgram:
    """Return the source with tangents of a program.

    Parameters
    ----------
    program : Program
    names : dict of int to str
        The name of the block whose outputs begin at a place of out, or -1 - k for rates that begin at xd[k].
    compiled : bool
        Whether the source is to be compiled, with one direction, or run as it is, with many.

    Raises
    ------
    NotTranslated
        Something is called that has no rule.
    """
    if isinstance(program, GraphProgram):
        return TangentProgram("", (), 0, list(program.differenced))
    body = ast.parse(program.source).body[0]
    assert isinstance(body, ast.FunctionDef)
    active: set[str] = set()
    while True:
        writer = _Writer(program, names, active, compiled)
        try:
            writer.block(body.body, "    ")
        except Untranslatable as why:
            raise NotTranslated([("its derivative", str(why))]) from why
        if writer.found <= active:
            break
        active |= writer.found
    source = "\n".join([_HEAD, *writer.lines]) + "\n"
    return TangentProgram(source, tuple(sorted(writer.calls)), writer.scratch, writer.differenced)


class _Writer:
    """Writes statements and those of their tangents.

    `active` are the local variables that can have a tangent; `found` those that were seen to have one.
    """

    def __init__(self, program: Program, names: dict[int, str], active: set[str], compiled: bool) -> None:
        self.program, self.names, self.active, self.compiled = program, names, active, compiled
        self.found: set[str] = set()
        self.lines: list[str] = []
        self.calls = set(program.calls)
        self.scratch = program.scratch
        self.differences: dict[str, Difference] = {}
        self.differenced: list[tuple[str, str]] = []
        self._kept: dict[str, int] = {}
        self._open: list[str] = []

    # statements

    def block(self, body: list[ast.stmt], indent: str) -> None:
        for statement in body:
            self.statement(statement, indent)

    def write(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def statement(self, s: ast.stmt, indent: str) -> None:
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            self.assign(s.targets[0], s.value, indent)
        elif isinstance(s, ast.AugAssign):
            value = ast.BinOp(left=ast.parse(ast.unparse(s.target), mode="eval").body, op=s.op, right=s.value)
            self.assign(s.target, value, indent)
        elif isinstance(s, ast.If):
            self.write(indent, f"if {self.test(s.test, indent)}:")
            self.block(s.body, indent + "    ")
            if s.orelse:
                self.write(indent, "else:")
                self.block(s.orelse, indent + "    ")
        elif isinstance(s, ast.For):
            self.write(indent, f"for {ast.unparse(s.target)} in {ast.unparse(s.iter)}:")
            self.block(s.body, indent + "    ")
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            self.write(indent, self.filled(s.value, indent))
        elif isinstance(s, ast.Try):
            self.attempted(s, indent)
        elif isinstance(s, (ast.Return, ast.Pass)):
            self.write(indent, ast.unparse(s))
        else:
            raise unknown(ast.unparse(s))

    def assign(self, target: ast.expr, value: ast.expr, indent: str) -> None:
        name = ast.unparse(target)
        if isinstance(value, ast.Call) and self.name_of(value) in PAIRS:
            self.found.add(name)
            call = Call(self, value)
            self.write(indent, f"{name} = {ast.unparse(value)}")
            self.write(indent, f"d{name} = {PAIRS[call.name](call)}")
            return
        if isinstance(value, ast.Call) and self.name_of(value) in STATEMENTS:
            call = Call(self, value, indent)
            text = STATEMENTS[call.name](call)
            if call.result is not None:
                self.found.add(name)
                self.write(indent, f"d{name} = {call.result}")
            self.write(indent, f"{name} = {text}")
            return
        d = self.d(value)
        if isinstance(target, ast.Name):
            if d is not None:
                self.found.add(name)
            if name in self.active:
                self.write(indent, f"d{name} = {d or '0.0'}")
        else:
            self.write(indent, f"d{name} = {d or '0.0'}")
            self._note(target)
        self.write(indent, f"{name} = {ast.unparse(value)}")

    def test(self, test: ast.expr, indent: str) -> str:
        """Return a condition, with what is called in it in its form with tangents."""
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Call) and self.name_of(test.left) in STATEMENTS:
            rest = ast.unparse(ast.Compare(left=ast.Name("_"), ops=test.ops, comparators=test.comparators))
            return self.filled(test.left, indent) + rest[1:]
        text = ast.unparse(test)
        looked_at = [n.id for n in ast.walk(test) if isinstance(n, ast.Name) and n.id in self.differences]
        if self.compiled and looked_at:  # the shape of a result: that of the results beside it as well
            sides = [re.sub(rf"\b{looked_at[0]}\b", side + looked_at[0], text) for side in "uv"]
            return " or ".join([text, *sides])
        return text

    def filled(self, call: ast.Call, indent: str) -> str:
        """Return the call of a kernel that fills arrays, tangents too, its preparation being written before it."""
        name = self.name_of(call)
        if name not in STATEMENTS:
            raise unknown(name)
        return STATEMENTS[name](Call(self, call, indent))

    def attempted(self, s: ast.Try, indent: str) -> None:
        """Write the call of a function of the user, and those that its difference is made of."""
        made = s.body[0]
        assert isinstance(made, ast.Assign) and isinstance(made.value, ast.Call)
        difference = Difference(self, ast.unparse(made.targets[0]), made.value)
        self.differences[difference.name] = difference
        self.differ(f"function {difference.function}")
        for line in difference.before:
            self.write(indent, line)
        self.write(indent, "try:")
        for line in difference.lines:
            self.write(indent + "    ", line)
        for handler in s.handlers:
            self.write(indent, f"except {ast.unparse(handler.type)}:" if handler.type else "except:")
            for action in handler.body:
                self.write(indent + "    ", ast.unparse(action))

    # what rules ask for

    @staticmethod
    def name_of(call: ast.Call) -> str:
        return ast.unparse(call.func)

    def room(self, key: str, count: int) -> int:
        """Return where scratch memory of this size begins; calls that do not overlap share it by a key."""
        if key not in self._kept:
            self._kept[key] = self.scratch
            self.scratch += count
        return self._kept[key]

    def differ(self, what: str) -> None:
        """Note that something in the block that is being written is differenced."""
        self._open.append(what)

    def _note(self, target: ast.expr) -> None:
        """Give what was differenced since the last output to the block of this one."""
        if not self._open or not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
            return
        array, place = ast.unparse(target.value), int(target.slice.value)  # type: ignore[arg-type]
        if array in ("out", "xd"):
            name = self.names.get(place if array == "out" else -1 - place, "an event")
            self.differenced += [(name, what) for what in self._open]
            self._open.clear()

    # expressions

    def d(self, e: ast.expr) -> str | None:
        """Return the tangent of an expression; None where it has none."""
        if isinstance(e, (ast.Constant, ast.Attribute)):  # a number, or math.pi
            return None
        if isinstance(e, ast.Name):
            return f"d{e.id}" if e.id in self.active or e.id == "t" else None
        if isinstance(e, ast.Subscript):
            return self.element(e)
        if isinstance(e, ast.UnaryOp):
            inner = self.d(e.operand)
            return None if inner is None or isinstance(e.op, ast.Not) else f"({_sign(e.op)}{inner})"
        if isinstance(e, ast.BinOp):
            return self.binary(e)
        if isinstance(e, ast.IfExp):
            body, other = self.d(e.body), self.d(e.orelse)
            if body is None and other is None:
                return None
            return f"({body or '0.0'} if {ast.unparse(e.test)} else {other or '0.0'})"
        if isinstance(e, (ast.Compare, ast.BoolOp)):
            return None
        if isinstance(e, ast.Call):
            return self.called(e)
        raise unknown(ast.unparse(e))

    def element(self, e: ast.Subscript) -> str | None:
        root = e.value
        while isinstance(root, ast.Subscript):
            root = root.value
        name = ast.unparse(root)
        if name in self.differences:
            return self.differences[name].tangent(ast.unparse(e))
        if name in _ARRAYS or name in self.active:
            return f"d{ast.unparse(e)}"
        return None

    def called(self, e: ast.Call) -> str | None:
        name = self.name_of(e)
        if name in WHOLE:
            return None
        if name == "float":
            inner = e.args[0]
            if isinstance(inner, ast.BinOp):  # a truth value as a number, 1.0 * r0
                inner = inner.right
            text = ast.unparse(inner)
            root = text.partition("[")[0]
            return self.differences[root].tangent(text) if root in self.differences else self.d(inner)
        if name not in INLINE:
            raise unknown(name)
        call = Call(self, e)
        return None if all(d is None for d in call.tangents) else INLINE[name](call)

    def binary(self, e: ast.BinOp) -> str | None:
        a, b, da, db = ast.unparse(e.left), ast.unparse(e.right), self.d(e.left), self.d(e.right)
        if da is None and db is None:
            return None
        if isinstance(e.op, (ast.Add, ast.Sub)):
            if db is None:
                return da
            sign = "+" if isinstance(e.op, ast.Add) else "-"
            return f"({da} {sign} {db})" if da is not None else f"({sign}{db})"
        if isinstance(e.op, ast.Mult):
            return _total([f"{da} * ({b})" if da else "", f"({a}) * {db}" if db else ""])
        if isinstance(e.op, ast.Div):
            by_left = f"{da} / ({b})" if da else ""
            return _total([by_left, f"-({a}) / (({b}) * ({b})) * {db}" if db else ""])
        if isinstance(e.op, ast.Mod):
            self.calls.add("math")
            return _total([da or "", f"-math.floor(({a}) / ({b})) * {db}" if db else ""])
        if isinstance(e.op, ast.Pow):
            self.calls |= {"power_tangent", "exponent_tangent"}
            by_base = f"power_tangent({a}, {b}, {da})" if da else ""
            return _total([by_base, f"exponent_tangent({a}, {b}, {db})" if db else ""])
        raise unknown(ast.unparse(e))


def _sign(op: ast.unaryop) -> str:
    return "-" if isinstance(op, ast.USub) else "+"


def _total(terms: list[str]) -> str:
    return "(" + " + ".join(term for term in terms if term) + ")"
