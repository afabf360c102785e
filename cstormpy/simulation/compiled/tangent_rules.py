"""The tangents of what the function of a diagram calls: a rule for each name.

INLINE are functions of numbers that stand in expressions, PAIRS give a pair, STATEMENTS fill arrays; WHOLE give a whole
number, which has no tangent. Kernels without an exact rule, and the functions of the user, are differenced centrally.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from cstormpy.kernels import layout
from cstormpy.simulation.compiled.emitter import Untranslatable

__all__ = ["INLINE", "PAIRS", "STATEMENTS", "WHOLE", "Call", "Difference", "unknown"]


def unknown(what: str) -> Untranslatable:
    """Return the error for what has no derivative here."""
    return Untranslatable(f"there is no rule for the derivative of {what}")


class Call:
    """A call in the source, as rules look at it.

    Attributes
    ----------
    name : str
    args : list of str
    tangents : list of (str or None)
        Those of the arguments; of a slice of w or p the slice of dw or dp.
    result : str or None
        The tangent of what is returned, where a rule of STATEMENTS sets it.
    """

    def __init__(self, writer: Any, node: ast.Call, indent: str = "") -> None:
        self.writer, self.indent = writer, indent
        self.name = writer.name_of(node)
        self.args = [ast.unparse(arg) for arg in node.args]
        self.tangents = [self._tangent(arg) for arg in node.args]
        self.result: str | None = None

    def _tangent(self, arg: ast.expr) -> str | None:
        text = ast.unparse(arg)
        if isinstance(arg, ast.Subscript) and isinstance(arg.slice, ast.Slice):
            return None if text.startswith("n[") else f"d{text}"
        tangent: str | None = self.writer.d(arg)
        return tangent

    def d(self, k: int) -> str:
        """Return the tangent of an argument, zero if it has none."""
        return self.tangents[k] or "0.0"

    def size(self, k: int) -> int:
        """Return how long the slice is that stands as an argument."""
        first, last = self.args[k].partition("[")[2].rstrip("]").split(":")
        return int(last) - int(first)

    def helper(self, name: str) -> str:
        """Return the name of a kernel that is called besides."""
        self.writer.calls.add(name)
        return name


# functions of numbers -----------------------------------------------------------------------------------


def _slope(form: str, *helpers: str) -> Callable[[Call], str]:
    """Return the rule of a function of one number, from its slope as a form of the number."""

    def rule(call: Call) -> str:
        for name in helpers:
            call.helper(name)
        return f"({form.format(call.args[0])} * {call.d(0)})"

    return rule


def _first(call: Call) -> str:
    return call.d(0)


def _helped(call: Call) -> str:
    """Return the call of the kernel that gives the tangent from values and tangents."""
    tangents = [call.d(k) for k in range(len(call.args))]
    return f"{call.helper(call.name + '_tangent')}({', '.join([*call.args, *tangents])})"


def _root(call: Call) -> str:
    return f"{call.helper('root_tangent')}({call.args[0]}, {call.d(0)})"


def _extreme(sign: str) -> Callable[[Call], str]:
    def rule(call: Call) -> str:
        text, d = call.args[0], call.d(0)
        for k in range(1, len(call.args)):
            d = f"({d} if {text} {sign} {call.args[k]} else {call.d(k)})"
            text = f"{call.name}({text}, {call.args[k]})"
        return d

    return rule


def _atan2(call: Call) -> str:
    (y, x), dy, dx = call.args, call.d(0), call.d(1)
    return f"((({x}) * {dy} - ({y}) * {dx}) / (({x}) * ({x}) + ({y}) * ({y})))"


def _hypot(call: Call) -> str:
    (a, b), da, db = call.args, call.d(0), call.d(1)
    return f"((({a}) * {da} + ({b}) * {db}) / math.hypot({a}, {b}))"


WHOLE = {"int", "interval", "count_below", "count_upto", "row_before", "nearest", "len", "math.floor", "math.ceil"}
INLINE: dict[str, Callable[[Call], str]] = {
    "wrapped": _first,
    "wrapped_positive": _first,
    "within_turn": _first,
    "repeated": _first,
    "wrapped_colatitude": _helped,
    "clipped": _helped,
    "stop_torque": _helped,
    "abs": _slope("(1.0 if {0} >= 0.0 else -1.0)"),
    "max": _extreme(">="),
    "min": _extreme("<="),
    "math.sqrt": _root,
    "math.sin": _slope("math.cos({0})"),
    "math.cos": _slope("-math.sin({0})"),
    "math.tan": _slope("(1.0 + math.tan({0}) ** 2)"),
    "math.exp": _slope("math.exp({0})"),
    "math.log": _slope("1.0 / ({0})"),
    "math.asin": _slope("1.0 / math.sqrt(1.0 - ({0}) ** 2)"),
    "math.acos": _slope("-1.0 / math.sqrt(1.0 - ({0}) ** 2)"),
    "math.atan": _slope("1.0 / (1.0 + ({0}) ** 2)"),
    "math.sinh": _slope("math.cosh({0})"),
    "math.cosh": _slope("math.sinh({0})"),
    "math.tanh": _slope("(1.0 - math.tanh({0}) ** 2)"),
    "math.fabs": _slope("(1.0 if {0} >= 0.0 else -1.0)"),
    "math.atan2": _atan2,
    "math.hypot": _hypot,
}


# mechanisms and splines -----------------------------------------------------------------------------------


def _mechanism(call: Call, n: int) -> str:
    """Return a slice of scratch memory in which the closed forms of a mechanism and another table find room."""
    numbers = call.size(0)
    links = (numbers - layout.T_NODES - layout.T_NODE * n) // layout.T_LINK
    count = layout.forms_numbers(n, links) + numbers
    first = call.writer.room(f"mechanism {count}", count)
    return f"w[{first}:{first + count}]"


def _motion(call: Call) -> str:
    T, N, _, g = call.args[:4]
    W = _mechanism(call, call.size(3) // 5)
    loaded = call.name.endswith("loaded_motion")
    wrench, dwrench = (call.args[4], call.tangents[4]) if loaded else ("w[0:0]", "dw[0:0]")
    name = call.helper("loaded_motion_tangent")
    return f"{name}({T}, {N}, {W}, {g}, {wrench}, {call.d(0)}, {call.d(3)}, {dwrench})"


def _line_function(call: Call) -> str:
    numbers, given, filled, addresses = call.args
    changes = ", ".join(call.d(k) for k in range(3))
    return f"{call.helper('line_tangent')}({numbers}, {given}, {filled}, {changes}, {addresses})"


def _energies(call: Call) -> str:
    T, N, _, g = call.args
    W = _mechanism(call, call.size(3) // 2)
    return f"{call.helper('energies_tangent')}({T}, {N}, {W}, {g}, {call.d(0)}, {call.d(3)})"


def _spline(call: Call) -> str:
    time, table, sizes, row, out = call.args
    given = [call.d(0), call.d(1), call.d(3), call.d(4)]
    return f"{call.helper('spline_tangent')}({time}, {table}, {sizes}, {row}, {out}, {', '.join(given)})"


def _piece(call: Call) -> str:
    given = [call.d(0), call.d(1), call.d(5), call.d(6)]
    return f"{call.helper('piece_of_spline_tangent')}({', '.join([*call.args, *given])})"


# differences of kernels ---------------------------------------------------------------------------------------

#: Which arguments are moved for a difference, with how many of their numbers count, and which are arrays besides.
_MOVED: dict[str, tuple[dict[int, Callable[[int], int]], tuple[int, ...]]] = {
    "kinematics": ({0: lambda size: size, 3: lambda size: (size - 16) // 7, 4: lambda size: size}, ()),
    "inertia": ({0: lambda size: size, 3: lambda size: round((size + 0.25) ** 0.5 - 0.5)}, ()),
    "sensitivities": ({0: lambda size: size, 3: lambda size: 3 * _count(size), 4: lambda size: size}, ()),
    "solve": ({0: lambda size: size, 1: lambda size: size}, ()),
    "determinant": ({0: lambda size: size}, ()),
    "singular_values": ({0: lambda size: size}, (1, 4)),
    "python_block": ({1: lambda size: size}, (2,)),
    "pseudoinverse": ({0: lambda size: size}, (1, 4, 6)),
}
#: What is said of those whose names say nothing to a user.
_SAID = {"python_block": "output in Python"}


def _count(size: int) -> int:
    """Return n of 5 n + 3 n²."""
    return round((25.0 + 12.0 * size) ** 0.5 - 5.0) // 6


def _differenced(call: Call) -> str:
    """Write the kernel at both sides of the point; return its call at the point itself."""
    w, inputs, others = call.writer, *_MOVED[call.name]
    w.differ(_SAID.get(call.name, call.name))
    arrays = [*inputs, *others]
    if not w.compiled:
        moved = [
            f"{k}: ({call.args[k]}, {call.d(k)}, {inputs[k](call.size(k)) if k in inputs else 0}, "
            f"{call.args[k].startswith('w[')})"
            for k in arrays
        ]
        given = f"{call.name}, [{', '.join(call.args)}], {{{', '.join(moved)}}}"
        w.write(call.indent, f"d{call.name} = {call.helper('differenced_kernel')}({given})")
        call.result = f"d{call.name}"
        return f"{call.name}({', '.join(call.args)})"
    return _differenced_inline(call, inputs, arrays)


def _differenced_inline(call: Call, inputs: dict[int, Callable[[int], int]], arrays: list[int]) -> str:
    w, indent = call.writer, call.indent
    h = f"h{len(w.lines)}"
    ways = []
    for k, count in inputs.items():
        part, along = (f"{text}[:{count(call.size(k))}]" for text in (call.args[k], call.d(k)))
        ways.append(f"{call.helper('moved')}({call.helper('largest')}({part}), largest({along}))")
    way = ways[0]
    for other in ways[1:]:
        way = f"{call.helper('nearer')}({way}, {other})"
    w.write(indent, f"{h} = {way}")
    results = []
    for side, sign in (("u", ""), ("v", "-")):
        args = list(call.args)
        for k in arrays:
            first = w.room(f"{side}{call.name}{k} {call.size(k)}", call.size(k))
            place = f"w[{first}:{first + call.size(k)}]"
            w.write(indent, f"{call.helper('shifted')}({call.args[k]}, {sign}{h}, {call.d(k)}, {place})")
            args[k] = place
        results.append(args)
        w.write(indent, f"{side}{h} = {call.name}({', '.join(args)})")
    for k in arrays:
        if call.args[k].startswith("w["):
            w.write(indent, f"{call.helper('slope')}({results[0][k]}, {results[1][k]}, {h}, {call.d(k)})")
    call.result = f"({_half('u' + h, 'v' + h, h)})"
    return f"{call.name}({', '.join(call.args)})"


def _half(u: str, v: str, h: str) -> str:
    return f"0.5 * ({u} - {v}) / {h} if {h} > 0.0 else 0.0"


def _largest(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"


PAIRS: dict[str, Callable[[Call], str]] = {"energies": _energies}
STATEMENTS: dict[str, Callable[[Call], str]] = {
    "motion": _motion,
    "loaded_motion": _motion,
    "line_motion": _motion,
    "line_function": _line_function,
    "line_loaded_motion": _motion,
    "spline": _spline,
    "piece_of_spline": _piece,
    **dict.fromkeys(_MOVED, _differenced),
}


# functions of the user ------------------------------------------------------------------------------------------


class Difference:
    """The central difference of a function of the user: what is written for it, and what stands for its tangents."""

    def __init__(self, writer: Any, name: str, call: ast.Call) -> None:
        self.writer, self.name, self.function = writer, name, ast.unparse(call.func)
        self.before: list[str] = []
        self.lines: list[str] = []
        given = [self._argument(arg) for arg in call.args]
        if writer.compiled:
            self._compiled(call, given)
        else:
            values = ", ".join(value for value, _, _ in given)
            tangents = ", ".join(f"d{base}{tail}" if size else tail for base, size, tail in map(_split_tangent, given))
            writer.calls.add("differenced_function")
            comma = "," if given else ""
            self.lines = [
                f"{name}, d{name} = differenced_function({self.function}, ({values}{comma}), ({tangents}{comma}))"
            ]

    def _argument(self, arg: ast.expr) -> tuple[str, str, str]:
        """Return an argument's text, its tangent, and the reshaping of a matrix."""
        shape = ""
        if isinstance(arg, ast.Call) and isinstance(arg.func, ast.Attribute) and arg.func.attr == "reshape":
            shape = f".reshape({', '.join(ast.unparse(a) for a in arg.args)})"
            arg = arg.func.value
        text = ast.unparse(arg)
        if isinstance(arg, ast.Subscript) and isinstance(arg.slice, ast.Slice):
            return text + shape, f"d{text}", shape
        return text, self.writer.d(arg) or "0.0", shape

    def _compiled(self, call: ast.Call, given: list[tuple[str, str, str]]) -> None:
        w, h = self.writer, f"h{self.name}"
        w.calls |= {"moved"}
        sizes, along, up, down = ["0.0"], ["0.0"], [], []
        for k, (value, tangent, shape) in enumerate(given):
            if ":" not in tangent:
                sizes.append(f"abs({value})")
                along.append(f"abs({tangent})")
                up.append(f"{value} + {h} * {tangent}")
                down.append(f"{value} - {h} * {tangent}")
                continue
            w.calls |= {"largest", "shifted"}
            values = tangent[1:]
            first, last = map(int, values.partition("[")[2].rstrip("]").split(":"))
            sizes.append(f"largest({values})")
            along.append(f"largest({tangent})")
            for side, sign, out in (("u", "", up), ("v", "-", down)):
                place = w.room(f"{side}{self.name} {k}", last - first)
                out.append(f"shifted({values}, {sign}{h}, {tangent}, w[{place}:{place + last - first}]){shape}")
        self.before = [f"{h} = moved({_largest(sizes)}, {_largest(along)})"]
        self.lines = [
            f"u{self.name} = {self.function}({', '.join(up)})",
            f"v{self.name} = {self.function}({', '.join(down)})",
            f"{self.name} = {ast.unparse(call)}",
        ]

    def tangent(self, text: str) -> str:
        """Return the tangent of a part of the result, as that of "r0[1][0, 2]"."""
        tail = text[len(self.name) :]
        if not self.writer.compiled:
            return f"d{self.name}{tail}"
        u, v = (f"1.0 * {side}{self.name}{tail}" for side in "uv")  # which may be truth values
        return f"({_half(u, v, 'h' + self.name)})"


def _split_tangent(given: tuple[str, str, str]) -> tuple[str, int, str]:
    """Return how the tangent of an argument is written uncompiled: a slice, in shape, with the directions last."""
    _, tangent, shape = given
    if ":" not in tangent:
        return "", 0, tangent
    return tangent[1:], 1, shape[:-1] + ", -1)" if shape else ""
