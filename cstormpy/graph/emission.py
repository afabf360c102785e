"""LLVM instructions of a straight line: for one sample, or for several side by side in the lanes of a vector.

The text of the instructions is written directly, which takes a third of the time of building them as objects. Fused
multiply-add is allowed (``contract``) and nothing else, so that NaN and the order of sums stay meaningful.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cstormpy.graph.nodes import INPUT, TABLE, Node
from cstormpy.graph.tiles import LANE, LANES, TILE

__all__ = ["LANES", "Emitter", "declarations", "supplements"]

#: Beyond this square of the angle the reduction of `_sincos_function` would lose digits, and the library is asked.
_LARGE = 1e12


def hexadecimal(x: float) -> str:
    """Return a float64 as LLVM reads it without rounding."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Emitter:
    """Writes the instructions of nodes, one after the other, of one sample (`lanes` = 1) or of several.

    Values are the names of LLVM's registers, or constants. What is asked for of the module beside the instructions,
    functions of the C library, intrinsics, `_sincos_function` and whatever else is declared, is collected in
    `library_used`, `intrinsics_used`, `with_sincos`, `declared`, `functions`; several emitters of one module share
    them (`like`).
    """

    def __init__(self, lanes: int, like: Emitter | None = None, prefix: str = "v") -> None:
        self.lanes = lanes
        self.prefix = prefix
        self.number = "double" if lanes == 1 else f"<{lanes} x double>"
        self.truth = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.suffix = "f64" if lanes == 1 else f"v{lanes}f64"
        self.lines: list[str] = []
        self.library_used: dict[str, int] = {} if like is None else like.library_used
        self.intrinsics_used: set[tuple[str, int, int]] = set() if like is None else like.intrinsics_used
        self.with_sincos: Counter[int] = Counter() if like is None else like.with_sincos
        self.declared: set[str] = set() if like is None else like.declared
        self.functions: dict[str, str] = {} if like is None else like.functions
        #: The node whose instructions are written now.
        self.node: Node | None = None
        #: Of one sample, the indices of the nodes that are `tiles`.
        self.wide: set[int] = set()
        self._count = 0
        self._sincos: dict[str, tuple[str, str]] = {}
        self._splats: dict[str, str] = {}
        self._tiles: Emitter | None = None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Have what is kept for further use within the ``with`` block, which is a branch, not be used after it."""
        before = dict(self._sincos), dict(self._splats)
        try:
            yield
        finally:
            self._sincos, self._splats = before

    # Instructions --------------------------------------------------------------------------------------

    def new(self, instruction: str) -> str:
        """Append an instruction that has a value; return its register."""
        self._count += 1
        name = f"%{self.prefix}{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def constant(self, x: float) -> str:
        """Return a constant, the same in all lanes."""
        return hexadecimal(float(x)) if self.lanes == 1 else f"splat (double {hexadecimal(float(x))})"

    def truth_constant(self, x: bool) -> str:
        """Return a known truth."""
        word = "true" if x else "false"
        return word if self.lanes == 1 else f"splat (i1 {word})"

    def operation(self, instruction: str, a: str, b: str) -> str:
        """Append fadd, fsub, fmul or fdiv."""
        return self.new(f"{instruction} contract {self.number} {a}, {b}")

    def negation(self, a: str) -> str:
        """Append fneg."""
        return self.new(f"fneg {self.number} {a}")

    def comparison(self, kind: str, a: str, b: str) -> str:
        """Append fcmp."""
        return self.new(f"fcmp {kind} {self.number} {a}, {b}")

    def logic(self, instruction: str, a: str, b: str) -> str:
        """Append and, or, xor of truths."""
        return self.new(f"{instruction} {self.truth} {a}, {b}")

    def inverted(self, a: str) -> str:
        """Append the negation of a truth."""
        return self.logic("xor", a, self.truth_constant(True))

    def selection(self, condition: str, a: str, b: str) -> str:
        """Append select."""
        return self.new(f"select {self.truth} {condition}, {self.number} {a}, {self.number} {b}")

    def sign(self, a: str) -> str:
        """Append −1, 0 or 1; NaN and zeros as they are."""
        zero = self.constant(0.0)
        up = self.selection(self.comparison("ogt", a, zero), self.constant(1.0), a)
        return self.selection(self.comparison("olt", a, zero), self.constant(-1.0), up)

    def intrinsic(self, name: str, *args: str) -> str:
        """Append a call of one of LLVM's own functions, which take lanes as well."""
        self.intrinsics_used.add((name, self.lanes, len(args)))
        given = ", ".join(f"{self.number} {a}" for a in args)
        return self.new(f"call contract {self.number} @{name}.{self.suffix}({given})")

    def library(self, name: str, *args: str) -> str:
        """Append a call of a function of the C library for each lane."""
        self.library_used[name] = len(args)
        if self.lanes == 1:
            return self.new(f"call double @{name}({', '.join(f'double {a}' for a in args)})")
        result = "poison"
        for k in range(self.lanes):
            given = [f"double {self.new(f'extractelement {self.number} {a}, i32 {k}')}" for a in args]
            value = self.new(f"call double @{name}({', '.join(given)})")
            result = self.new(f"insertelement {self.number} {result}, double {value}, i32 {k}")
        return result

    def sincos(self, a: str) -> tuple[str, str]:
        """Append sine and cosine, which are found together."""
        found = self._sincos.get(a)
        if found is None:
            self.with_sincos[self.lanes] += 1
            pair = f"{{ {self.number}, {self.number} }}"
            both = self.new(f"call {pair} @sincos.{self.suffix}({self.number} {a})")
            found = self._sincos[a] = (
                self.new(f"extractvalue {pair} {both}, 0"),
                self.new(f"extractvalue {pair} {both}, 1"),
            )
        return found

    # Nodes ---------------------------------------------------------------------------------------------

    def value(self, x: Any, values: dict[int, str]) -> str:
        """Return where a node or a float is."""
        if isinstance(x, Node):
            return values[x.index]
        return self.truth_constant(x) if isinstance(x, bool) else self.constant(x)

    def nodes(self, nodes: Iterable[Node], values: dict[int, str]) -> None:
        """Append the instructions of nodes in their order; `values` holds those of the inputs and gets the others."""
        get = self.value
        for node in nodes:
            if node.primitive is TABLE and node.index not in values:
                values[node.index] = self.address(f"%{node.data[0]}", node.data[1])
            elif node.primitive is not INPUT and node.index not in values:
                self.node = node
                if self.lanes == 1 and (node.primitive is TILE or self.wide):
                    values[node.index] = self._beside_tiles(node, values)
                else:
                    values[node.index] = node.primitive.code(self, *[get(a, values) for a in node.args])

    def _beside_tiles(self, node: Node, values: dict[int, str]) -> str:
        """Append the instructions of a node of one sample, which is a tile if one of its arguments is."""
        tiles = [isinstance(a, Node) and a.index in self.wide for a in node.args]
        given = [self.value(a, values) for a in node.args]
        if node.primitive is LANE or not (node.primitive is TILE or any(tiles)):
            return str(node.primitive.code(self, *given))
        if self._tiles is None:
            self._tiles = Emitter(LANES, self, prefix=f"{self.prefix}t")
            self._tiles.lines = self.lines
        e = self._tiles
        self.wide.add(node.index)
        if node.primitive is not TILE:
            for k, a in enumerate(node.args):
                if not tiles[k]:
                    given[k] = self._in_all_lanes(given[k]) if isinstance(a, Node) else e.constant(a)
        return str(node.primitive.code(e, *given))

    def _in_all_lanes(self, x: str) -> str:
        if x not in self._splats:
            self._splats[x] = self._tiles.splat(x, "double")  # type: ignore[union-attr]
        return self._splats[x]

    # Tables --------------------------------------------------------------------------------------------

    def constant_table(self, values: Iterable[float]) -> str:
        """Return where numbers that are known stand one behind the other."""
        items = [f"double {hexadecimal(float(x))}" for x in values]
        name = f"@table_{hashlib.sha256(', '.join(items).encode()).hexdigest()[:16]}"
        self.declared.add(f"{name} = private constant [{len(items)} x double] [{', '.join(items)}], align 8")
        return name

    # Memory --------------------------------------------------------------------------------------------

    def address(self, base: str, index: int | str) -> str:
        """Append the place of a float64 in memory."""
        return base if index == 0 else self.new(f"getelementptr inbounds double, ptr {base}, i64 {index}")

    def load_same(self, base: str, index: int) -> str:
        """Append the load of one float64 into all lanes."""
        x = self.new(f"load double, ptr {self.address(base, index)}, align 8")
        if self.lanes == 1:
            return x
        return self.splat(x, "double")

    def splat(self, x: str, kind: str) -> str:
        """Append what brings one value, a double or an i1, into all lanes."""
        vector = f"<{self.lanes} x {kind}>"
        first = self.new(f"insertelement {vector} poison, {kind} {x}, i32 0")
        return self.new(f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer")


# Functions that a module brings with it ----------------------------------------------------------------

_TWO_OVER_PI = 2.0 / math.pi
#: pi/2 in three parts of which the first two have so few bits that their multiples are exact (Cody and Waite).
_PIO2 = tuple(float.fromhex(x) for x in ("0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e037073p-69"))
#: Coefficients of the freely distributable library of Sun, for sine and cosine up to pi/4.
_SINE = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COSINE = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


#: More sines are called, each of which would otherwise be two branches among all that is on the way: LLVM's time grows
#: with the square of their number (measured: 500 in a vector took half a minute).
#: Of single angles, which branch, fewer: a Stewart platform is compiled in three quarters of the time.
_MANY_SINES, _MANY_BRANCHING_SINES = 64, 12


def _sincos_function(lanes: int, like: Emitter, count: int = 1) -> str:
    """Return sine and cosine of a number, to about one unit in the last place of 1, as a function called so many times.

    The nearest multiple of pi/2 is taken off, the rest goes into two polynomials, and the quadrant decides which of
    them is which. Where an angle is large or not finite the library is asked, out of line.

    A single angle branches on its quadrant, which a motion seldom changes: the processor goes on with the quadrant of
    before, and waits neither for the reduction of an angle near zero nor for what is done with the polynomials.
    """
    e = Emitter(lanes, like, prefix="s")
    parts = [*(_sincos_of_one(e) if lanes == 1 else _sincos_of_lanes(e)), "far:"]
    pair = f"{{ {e.number}, {e.number} }}"
    far = f"  %both = call {pair} @sincos_far.{e.suffix}({e.number} %x)\n  ret {pair} %both"
    body = "\n".join([*parts, far])
    way = "noinline" if count > (_MANY_BRANCHING_SINES if lanes == 1 else _MANY_SINES) else "alwaysinline"
    near = f"define internal {pair} @sincos.{e.suffix}({e.number} %x) {way} {{\n{body}\n}}\n"

    e = Emitter(lanes, like, prefix="s")
    _return_pair(e, e.library("sin", "%x"), e.library("cos", "%x"))
    head = f"define internal {pair} @sincos_far.{e.suffix}({e.number} %x) noinline cold {{\n"
    return near + head + "\n".join(e.lines) + "\n}\n"


def _return_pair(e: Emitter, sine: str, cosine: str) -> None:
    pair = f"{{ {e.number}, {e.number} }}"
    both = e.new(f"insertvalue {pair} poison, {e.number} {sine}, 0")
    both = e.new(f"insertvalue {pair} {both}, {e.number} {cosine}, 1")
    e.lines.append(f"  ret {pair} {both}")


def _reduced(e: Emitter) -> tuple[str, str]:
    """Append the multiple of pi/2 that is nearest to %x, and what is left."""
    n = e.intrinsic("llvm.rint", e.operation("fmul", "%x", e.constant(_TWO_OVER_PI)))
    r = "%x"
    for part in _PIO2:
        r = e.operation("fsub", r, e.operation("fmul", n, e.constant(part)))
    return n, r


def _sincos_polynomials(e: Emitter, r: str) -> tuple[str, str]:
    """Append sine and cosine of an angle up to pi/4."""

    def times(a: str, b: str) -> str:
        return e.operation("fmul", a, b)

    def plus(a: str, b: str) -> str:
        return e.operation("fadd", a, b)

    def polynomial(z: str, coefficients: tuple[float, ...]) -> str:
        value = e.constant(coefficients[0])
        for c in coefficients[1:]:
            value = plus(times(z, value), e.constant(c))
        return value

    z = times(r, r)
    s = plus(r, times(times(r, z), polynomial(z, _SINE)))
    half = e.operation("fsub", e.constant(1.0), times(e.constant(0.5), z))
    return s, plus(half, times(times(z, z), polynomial(z, _COSINE)))


def _is_near(e: Emitter) -> str:
    return e.comparison("olt", e.operation("fmul", "%x", "%x"), e.constant(_LARGE))


def _sincos_of_lanes(e: Emitter) -> list[str]:
    bits = e.new(f"bitcast {e.truth} {_is_near(e)} to i{e.lanes}")
    near = e.new(f"icmp eq i{e.lanes} {bits}, -1")
    e.lines.extend([f"  br i1 {near}, label %near, label %far, !prof !0", "near:"])
    n, r = _reduced(e)
    s, c = _sincos_polynomials(e, r)
    fours = e.intrinsic("llvm.floor", e.operation("fmul", n, e.constant(0.25)))
    quadrant = e.operation("fsub", n, e.operation("fmul", fours, e.constant(4.0)))
    upper = e.comparison("ogt", quadrant, e.constant(1.5))
    rest = e.selection(upper, e.operation("fsub", quadrant, e.constant(2.0)), quadrant)
    odd = e.comparison("ogt", rest, e.constant(0.5))
    sign = e.selection(upper, e.constant(-1.0), e.constant(1.0))
    sine = e.operation("fmul", sign, e.selection(odd, c, s))
    _return_pair(e, sine, e.operation("fmul", sign, e.selection(odd, e.negation(s), c)))
    return e.lines


def _sincos_of_one(e: Emitter) -> list[str]:
    small = e.comparison("olt", e.intrinsic("llvm.fabs", "%x"), e.constant(math.pi / 4.0))
    e.lines.extend(["  br label %begin", "begin:", f"  br i1 {small}, label %reduced, label %reduce", "reduce:"])
    e.lines.extend([f"  br i1 {_is_near(e)}, label %near, label %far, !prof !0", "near:"])
    n, rest = _reduced(e)
    quadrant = e.new(f"and i64 {e.new(f'fptosi double {n} to i64')}, 3")
    e.lines.extend(["  br label %reduced", "reduced:"])
    r = e.new(f"phi double [ %x, %begin ], [ {rest}, %near ]")
    q = e.new(f"phi i64 [ 0, %begin ], [ {quadrant}, %near ]")
    s, c = _sincos_polynomials(e, r)
    e.lines.append(f"  switch i64 {q}, label %q0 [ i64 1, label %q1 i64 2, label %q2 i64 3, label %q3 ]")
    for k in range(4):
        e.lines.append(f"q{k}:")
        sine, cosine = (s, c) if k % 2 == 0 else (c, s)
        _return_pair(e, e.negation(sine) if k > 1 else sine, e.negation(cosine) if k in (1, 2) else cosine)
    return e.lines


def supplements(e: Emitter) -> str:
    """Return the functions that a module must hold beside those whose emitters share `e`."""
    return "".join(_sincos_function(lanes, e, count) for lanes, count in sorted(e.with_sincos.items())) + "".join(
        e.functions.values()
    )


def declarations(e: Emitter) -> str:
    """Return the declarations of all that is called; to be asked after `supplements`, which call too."""
    lines = sorted(e.declared)
    for name, arity in sorted(e.library_used.items()):
        lines.append(f"declare double @{name}({', '.join(['double'] * arity)})")
    for name, lanes, arity in sorted(e.intrinsics_used):
        kind, suffix = ("double", "f64") if lanes == 1 else (f"<{lanes} x double>", f"v{lanes}f64")
        lines.append(f"declare {kind} @{name}.{suffix}({', '.join([kind] * arity)})")
    lines.append('!0 = !{!"branch_weights", i32 1000000, i32 1}')
    return "\n".join(lines) + "\n"
