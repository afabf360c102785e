"""Nodes of the expression graph, which compute with one another as floats do."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.graph import primitives as p
from cstormpy.graph.primitives import Primitive, Symbol, apply


class SymbolicBranch(InvalidType):
    """A symbol was asked for its number: by an ``if``, by ``float()``, by a function of `math`."""


class AskedForNumber(SymbolicBranch):
    """It was, by the user's code; what cannot be written down for another reason says which."""


class Graph:
    """The nodes of one computation, in the order in which they were made; no two of them are alike.

    Parameters
    ----------
    legible : bool
        Whether str() and repr() of a node show its expression, and a dict or set may look it up. While functions are
        traced that others wrote these are refused: a text that such a function makes of a number, or prints, and what
        it finds for it in a dict would be the same for all its values.

    Attributes
    ----------
    nodes : list of Node
    required : list of Node
        Numbers that are 0 where all goes well, see `require_zero`.
    written : str
        The refusal of the first text of a symbol that was made on a supposed way: it may be that of an error.
    call_table : CallTable or None
        How functions are called from it, see `external`; None where they cannot be.
    """

    __slots__ = (
        "_answer",
        "_conditions",
        "_known",
        "_supposed",
        "call_table",
        "legible",
        "nodes",
        "required",
        "written",
    )

    def __init__(self, legible: bool = True) -> None:
        self.legible = legible
        self.nodes: list[Node] = []
        self.required: list[Node] = []
        self.call_table: Any = None
        self._conditions: list[Any] = []
        self._answer: Callable[[Node], bool] | None = None
        self._supposed = False
        self.written = ""
        self._known: dict[tuple[Any, ...], Node] = {}

    def make(self, primitive: Primitive, args: tuple[Any, ...], data: Any = None) -> Node:
        """Return the node of a primitive and its arguments, which is made unless it is there already."""
        if primitive.commutes:
            a, b = args
            if not isinstance(a, Symbol) or (isinstance(b, Symbol) and b.index < a.index):  # type: ignore[attr-defined]
                args = b, a  # a constant comes second
        key: tuple[Any, ...]
        if len(args) == 2 and isinstance(args[0], Symbol):  # most have two
            b = args[1]
            if isinstance(b, Symbol):
                key = primitive.name, id(args[0]), id(b), data
            else:  # longer, lest a number be taken for an address; 0 and -0, which are equal, are told apart
                key = primitive.name, id(args[0]), None, b if b and b == b else float(b).hex(), data
        else:
            numbers = [id(a) if isinstance(a, Symbol) else float(a).hex() for a in args]
            key = primitive.name, data, None, None, None, *numbers
        node = self._known.get(key)
        if node is None:
            for a in args:
                if isinstance(a, Node) and a.graph is not self:
                    raise InvalidType("expected symbols of one graph, got those of two")
            node = self._known[key] = Node(self, len(self.nodes), primitive, args, data)
            self.nodes.append(node)
        return node

    @contextmanager
    def under(self, condition: Any) -> Iterator[None]:
        """Have what is required within the ``with`` block be required only where a condition holds too."""
        place = len(self._conditions)
        self._conditions.append(condition)
        try:
            yield
        finally:
            del self._conditions[place]  # what has been supposed meanwhile stays

    @contextmanager
    def answering(self, answer: Callable[[Node], bool]) -> Iterator[None]:
        """Have the truth of nodes told within the ``with`` block, which is unknown else; see `paths`."""
        before, place = (self._answer, self._supposed), len(self._conditions)
        self._answer, self._supposed = answer, False
        try:
            yield
        finally:
            self._answer, self._supposed = before
            del self._conditions[place:]

    def suppose(self, condition: Any) -> None:
        """Have what is required from now on be required only where a condition holds too, up to the next answers."""
        self._conditions.append(condition)
        self._supposed = True

    def text(self, node: Node) -> str:
        """Return a text for a symbol, which stands for none of its values; refuse where no truth has been told."""
        if not self._supposed:
            raise AskedForNumber(_refusal(node))
        self.written = self.written or _refusal(node)
        return "…"

    def truth(self, node: Node) -> bool:
        """Return whether a condition holds, a number being one where it is not 0; refuse where nobody knows."""
        if self._answer is None:
            raise AskedForNumber(_refusal(node))
        return self._answer(node if node.primitive.truth else node != 0.0)

    def require(self, number: Any) -> None:
        """Note that a number must be 0, where the conditions of now hold."""
        for condition in self._conditions:
            number = where(condition, number, 0.0)
        if isinstance(number, Node) and all(known is not number for known in self.required):
            self.required.append(number)

    @property
    def status(self) -> Any:
        """0 where all that is required is 0, else 1."""
        found: Any = 0.0
        for number in self.required:
            found = apply(p.SELECT, apply(p.UNEQUAL, number, 0.0), 1.0, found)
        return found

    def input(self, name: str, i: int = 0, *, ordinary: bool = False) -> Node:
        """Return the symbol of the number ``name[i]``; an `ordinary` one is never 0, 1 or -1."""
        return self.make(INPUT, (), (name, i, ordinary))

    def rename(self, node: Node, name: str, i: int) -> None:
        """Have an input, or a table, be that of another name and place, in all that is made of it.

        Nothing else of the graph may read from there.
        """
        node.data = name, i, node.data[2] if node.primitive is TABLE else False
        self._known[node.primitive.name, node.data, None, None, None] = node

    def inputs(self, name: str, count: int) -> list[Node]:
        """Return the symbols ``name[0]`` to ``name[count - 1]``."""
        return [self.input(name, i) for i in range(count)]


#: The numbers that a graph is a function of. They have no code: an emitter loads them.
INPUT = Primitive("input", 0, lambda: float("nan"), "{}", lambda e: None, lambda r: ())
#: A run of these, (name, first, count): an emitter knows where it stands. `look_ups` reads it.
TABLE = Primitive("table", 0, lambda: float("nan"), "{}", lambda e: None, lambda r: (), in_c="({} + {})")
#: A table of numbers that are known.
CONSTANTS = Primitive(
    "constants", 0, lambda: float("nan"), "constants", lambda e: e.constant_table(e.node.data), lambda r: (), in_c="{}"
)


_ADDS_TRUTHS = "it adds truths, True + True, which is True in NumPy and 2 in Python"


def _is_truth(x: Any) -> bool:
    return isinstance(x, bool) or (getattr(x, "ndim", 1) == 0 and x.dtype.kind == "b")


def _operator(primitive: Primitive, swapped: bool = False) -> Callable[[Any, Any], Any]:
    simplify, logical = primitive.simplify, primitive.name in ("and", "or")

    def operate(self: Node, other: Any) -> Any:
        kind = type(other)
        if kind is not Node and kind is not float:
            if self.primitive.truth and _is_truth(other) and primitive in (p.MUL, p.ADD):
                other = bool(other)
                if primitive is p.MUL:
                    return self & other
                raise SymbolicBranch(_ADDS_TRUTHS)
            other = _operand(other)
            if other is None:
                return NotImplemented
        a: Any = self
        if logical:
            if not (self.primitive.truth and (other.primitive.truth if isinstance(other, Node) else other in (0, 1))):
                return NotImplemented
            other = bool(other) if isinstance(other, float) else other
        else:
            if self.primitive.truth and isinstance(other, Node) and other.primitive.truth:
                if primitive is p.MUL:
                    return self & other
                if primitive is p.ADD:
                    raise SymbolicBranch(_ADDS_TRUTHS)
            if self.primitive.truth:
                a = self.number()
            if isinstance(other, Node) and other.primitive.truth:
                other = other.number()
        if swapped:
            a, other = other, a
        if simplify is not None:
            found = simplify(a, other)
            if found is not None:
                return found
        return self.graph.make(primitive, (a, other))

    return operate


def _reflected(primitive: Primitive) -> Callable[[Any, Any], Any]:
    return _operator(primitive, swapped=True)


def _operand(x: Any) -> Any:
    """Return what can stand in an operation beside a symbol, a symbol or a float; None for anything else."""
    if isinstance(x, (Node, float)):
        return x
    if isinstance(x, int):  # bool among them
        return float(x)
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return float(x) if kind in "fiub" and kind and getattr(x, "ndim", 1) == 0 else None


_equal, _unequal = _operator(p.EQUAL), _operator(p.UNEQUAL)


def _whole_quotient(a: Any, b: Any) -> Any:
    """Return a // b as NumPy does, which agrees with a % b: 1 // 0.1 is 9, though 1 / 0.1 is 10; a / b where b is 0."""
    found = (a - a % b) / b
    found = found.whole(p.ROUND) if isinstance(found, Node) else p.ROUND.value(found)
    if isinstance(b, Symbol):
        return where(apply(p.EQUAL, b, 0.0), a / b, found)
    return found if b else a / b


def whole_or_truth(dtype: Any) -> str:
    """Return "i", "b" or "f" of a kind of numbers: whole, truths, or floats as symbols are.

    Others are refused: a float32 is rounded, an int8 goes round, and an unsigned number is never negative.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize >= 4) or dtype == np.float64:
        return dtype.kind
    raise SymbolicBranch(f"numbers of the kind {dtype} are rounded otherwise than symbols")


def _function(primitive: Primitive) -> Callable[..., Any]:
    """Return a method of a node; of truths NumPy computes functions in half precision, but for those that are exact."""
    exact = primitive in _EXACT

    def of(self: Node, *others: Any) -> Any:
        if self.primitive.truth and not exact:
            raise SymbolicBranch(f"of a truth NumPy computes {primitive.name} in half precision; multiply it by 1.0")
        return apply(primitive, self.number(), *others)

    return of


_EXACT = frozenset({p.NEG, p.ABS, p.SQRT, p.FLOOR, p.CEIL, p.TRUNC, p.ROUND, p.VANISHING, p.CBRT})


class Node(Symbol):
    """A number, or the truth of a comparison, of a `Graph`.

    Attributes
    ----------
    graph, index
        Where it stands: arguments stand before what is made of them.
    primitive, args
        What it is: an operation on symbols and floats.
    data
        What else an operation must know: the name and the index of an input.
    """

    __slots__ = ("args", "data", "graph", "index", "primitive")

    def __init__(self, graph: Graph, index: int, primitive: Primitive, args: tuple[Any, ...], data: Any) -> None:
        self.graph, self.index, self.primitive, self.args, self.data = graph, index, primitive, args, data

    __add__, __radd__ = _operator(p.ADD), _reflected(p.ADD)
    __sub__, __rsub__ = _operator(p.SUB), _reflected(p.SUB)
    __mul__, __rmul__ = _operator(p.MUL), _reflected(p.MUL)
    __truediv__, __rtruediv__ = _operator(p.DIV), _reflected(p.DIV)
    __pow__, __rpow__ = _operator(p.POW), _reflected(p.POW)
    __mod__, __rmod__ = _operator(p.MOD), _reflected(p.MOD)
    __neg__, __abs__ = _function(p.NEG), _function(p.ABS)
    __gt__, __ge__ = _operator(p.GREATER), _operator(p.AT_LEAST)
    __lt__, __le__ = _reflected(p.GREATER), _reflected(p.AT_LEAST)
    __and__, __or__ = _operator(p.AND), _operator(p.OR)
    __rand__, __ror__ = _operator(p.AND), _operator(p.OR)

    def __invert__(self) -> Any:
        if not self.primitive.truth:
            raise InvalidType("bad operand for ~: a number that is no truth")
        return apply(p.NOT, self)

    def __xor__(self, other: Any) -> Any:
        return (self & ~other) | (~self & other) if isinstance(other, Node) else ~self if other else self

    __rxor__ = __xor__

    # what NumPy's functions call on the elements of an array of objects, and kernels on a number that is not a float
    sin, cos, tan = _function(p.SIN), _function(p.COS), _function(p.TAN)
    arcsin, arccos, arctan = _function(p.ASIN), _function(p.ACOS), _function(p.ATAN)
    arctan2, hypot = _function(p.ATAN2), _function(p.HYPOT)
    sinh, cosh, tanh = _function(p.SINH), _function(p.COSH), _function(p.TANH)
    arcsinh, arccosh, arctanh = _function(p.ASINH), _function(p.ACOSH), _function(p.ATANH)
    exp, exp2, expm1, sqrt, cbrt = (_function(f) for f in (p.EXP, p.EXP2, p.EXPM1, p.SQRT, p.CBRT))
    log, log2, log10, log1p = (_function(f) for f in (p.LOG, p.LOG2, p.LOG10, p.LOG1P))
    floor, ceil, trunc, rint = (_function(f) for f in (p.FLOOR, p.CEIL, p.TRUNC, p.ROUND))
    vanishing, reciprocal = _function(p.VANISHING), _function(p.RECIPROCAL)

    def round(self, decimals: int = 0) -> Any:
        """Return this number rounded to some decimals, as NumPy does."""
        if decimals == 0:
            return self.rint()
        scale = 10.0 ** abs(decimals)
        return (self * scale).rint() / scale if decimals > 0 else (self / scale).rint() * scale

    def number(self) -> Any:
        """Return this number; of a truth 1 where it holds, else 0."""
        return apply(p.SELECT, self, 1.0, 0.0) if self.primitive.truth else self

    def __pos__(self) -> Node:
        return self

    def __floordiv__(self, other: Any) -> Any:
        return _whole_quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _whole_quotient(other, self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __eq__(self, other: object) -> Any:
        return _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return _unequal(self, other)

    def astype(self, dtype: Any) -> Any:
        """Return this number as NumPy's numbers do: without what stands behind the point where it is to be whole."""
        kind = whole_or_truth(dtype)
        return self.whole() if kind == "i" else self.number() if kind == "f" else self._as_truth()

    def _as_truth(self) -> Any:
        return self if self.primitive.truth else self != 0.0

    def conjugate(self) -> Node:
        """Return this number, which is real."""
        return self

    def whole(self, primitive: Primitive = p.TRUNC) -> Any:
        """Return this number rounded to a whole one, as Python's int, which has no zero of the other sign."""
        found = apply(primitive, self.number())
        return self.graph.make(p.ADD, (found, 0.0)) if isinstance(found, Node) else found

    def item(self) -> Node:
        """Return this number, as those of NumPy return one of Python's."""
        return self

    def square(self) -> Any:
        """Return x²."""
        return self * self

    def deg2rad(self) -> Any:
        """Return an angle given in degrees."""
        return self * (math.pi / 180.0)

    def rad2deg(self) -> Any:
        """Return an angle in degrees."""
        return self * (180.0 / math.pi)

    radians, degrees = deg2rad, rad2deg

    def where(self, a: Any, b: Any) -> Any:
        """Return a where this truth holds, else b."""
        return apply(p.SELECT, self, a, b)

    def never(self, value: Any) -> bool:
        """Tell whether this is an ordinary input, which is never 0, 1 or -1, and the value is one of these."""
        return self.primitive is INPUT and self.data[2] and not isinstance(value, Symbol) and value in (0, 1, -1)

    def __bool__(self) -> bool:
        return self.graph.truth(self)

    def _refuse(self, *_: Any) -> Any:
        raise AskedForNumber(_refusal(self))

    __float__ = __int__ = __index__ = __complex__ = __round__ = __trunc__ = _refuse

    def __hash__(self) -> int:
        return object.__hash__(self) if self.graph.legible else int(self._refuse())

    def __repr__(self) -> str:
        return short(self) if self.graph.legible else self.graph.text(self)

    def __format__(self, form: str) -> str:
        return format(short(self), form) if self.graph.legible and not form else self.graph.text(self)

    def __iter__(self) -> Any:
        raise InvalidType("a symbol is one number, it has no parts")


def _refusal(node: Node) -> str:
    return (
        f"the number {short(node)} is not known while the expression is written down: no `if`, float(), text or "
        "function of `math` can look at it; choose by where(), compute by NumPy"
    )


numbers.Real.register(Node)  # by which np.isscalar tells that it is a number


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where a condition holds, else b; of symbols and floats."""
    return apply(p.SELECT, condition, a, b) if isinstance(condition, Symbol) else (a if condition else b)


def require_zero(number: Any) -> None:
    """Note that a number must be 0: elsewhere nothing counts that its graph computes, and whoever asks says why.

    A truth counts as 1.

    Raises
    ------
    InvalidValue
        If the number is known, and is not 0.
    """
    if isinstance(number, Node):
        number.graph.require(number.number())
    elif number != 0:
        raise InvalidValue(f"what is written down fails for all numbers: expected status 0, got {number}")


def alive(outputs: Iterable[Any]) -> list[Node]:
    """Return the nodes that some outputs need, in the order in which they can be computed."""
    found: dict[int, Node] = {}
    met = [x for x in outputs if isinstance(x, Node)]
    for node in met:  # which grows meanwhile
        if node.index not in found:
            found[node.index] = node
            met += [a for a in node.args if isinstance(a, Node) and a.index not in found]
    return [found[k] for k in sorted(found)]


def in_late_order(nodes: Sequence[Node], late: int, wanted: Sequence[Any] = ()) -> list[Node]:
    """Return nodes in their order, but for those whose index is less than `late`: these wait until they are needed.

    Behind the others that is by what is wanted, in its order.
    """
    order: list[Node] = []
    seen: set[int] = set()
    roots = [node for node in nodes if node.index >= late]
    for root in [*roots, *(x for x in wanted if isinstance(x, Node))]:
        stack = [root]
        while stack:
            node = stack[-1]
            missing = next((a for a in node.args if isinstance(a, Node) and a.index not in seen), None)
            if missing is not None and node.index not in seen:
                stack.append(missing)
                continue
            stack.pop()
            if node.index not in seen:
                seen.add(node.index)
                order.append(node)
    return order


_BINDING = {"add": 1, "sub": 1, "neg": 2, "vanishing": 2, "mul": 2, "div": 2, "reciprocal": 2}


def operands(node: Node) -> tuple[Any, ...]:
    """Return the arguments of a node in the order in which they are written: of a product, a number first."""
    if node.primitive.name == "mul" and not isinstance(node.args[1], Node):
        return node.args[1], node.args[0]
    return node.args


def bracketed(primitive: Primitive, form: str, parts: Iterable[tuple[str, int]]) -> tuple[str, int]:
    """Return an operation as written in a form, with brackets where its operands need them, and how tight it binds.

    The operands are given likewise: what is written, and how tight it binds, which is 3 where it never needs brackets.
    """
    binding = _BINDING.get(primitive.name, 0 if primitive.truth else 3)
    texts = []
    for k, (text, inner) in enumerate(parts):
        divisor = (k == 1 and primitive.name in ("sub", "div")) or primitive.name == "reciprocal"
        tight = inner < binding or (inner == binding and divisor)
        texts.append(f"({text})" if tight and binding < 3 else text)
    return form.format(*texts), binding


def short(x: Any, room: int = 60) -> str:
    """Return the expression of a node; with more than some sixty letters, what is deep inside is left out."""

    def text(x: Any, room: int) -> tuple[str, int]:
        if not isinstance(x, Node):
            return repr(float(x)), 3
        if x.primitive is INPUT:
            return f"{x.data[0]}[{x.data[1]}]", 3
        if x.primitive is TABLE:
            return f"{x.data[0]}[{x.data[1]}:{x.data[1] + x.data[2]}]", 3
        if room <= 0:
            return "…", 3
        args = operands(x)
        return bracketed(x.primitive, x.primitive.text, [text(a, room // len(args) - 4) for a in args])

    return text(x, room)[0]
