"""Primitive operations of the graph: each one's value, simplification, derivatives and machine code, in one place.

A *symbol* stands for a number that is not known yet; everything else that reaches a primitive is a float. Arguments
are symbols or floats, of which at least one is a symbol where a rule is asked; a *truth* is the outcome of a
comparison, and only `AND`, `OR`, `NOT` and the condition of `SELECT` take one.

=============  ============================================================================================
``value``      the operation on floats (in the rounding of IEEE 754; ``nan`` where Python would raise)
``simplify``   an equal symbol or float that costs less, or None
``partials``   derivatives to each argument, from the arguments and the result; None for one that has none
``along``      the derivative along a direction, of (node, what gives the rate of an argument), in place of partials
``choice``     condition, what counts where it holds, and elsewhere; the derivative chooses too, as what does not count
               may have an infinite one
``code``       LLVM instructions, through an `emission.Emitter`, for one float64 or for lanes of them
``text``       how it is written in Python, and in C where ``in_c`` says nothing else
``of_table``   whether all arguments but the first are the numbers of a table, one argument of ``in_c``
``named``      whether its name says all about its code, as long as the sources are the same
``called``     whether its code calls a function, which needs all registers
=============  ============================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Number = Any  # a symbol or a float
Rule = Callable[..., Any]
#: The smallest float64 with all its digits.
_SMALLEST = float(np.finfo(float).smallest_normal)


class Symbol:
    """Base of the graph's nodes: a number, or the truth of a comparison, that is not known yet."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Primitive:
    """One operation; see the module for its parts."""

    name: str
    arity: int
    value: Rule
    text: str
    code: Rule
    partials: Rule
    simplify: Rule | None = None
    commutes: bool = False
    truth: bool = False
    along: Rule | None = None
    choice: Rule | None = None
    in_c: str = ""
    of_table: bool = False
    named: bool = True
    called: bool = False


#: Every primitive by its name.
TABLE: dict[str, Primitive] = {}


def apply(primitive: Primitive, *args: Number) -> Number:
    """Return a primitive of some arguments: a float if all of them are, else a symbol, simplified where possible."""
    for arg in args:
        if isinstance(arg, Symbol):
            break
    else:
        return primitive.value(*args)
    if primitive.simplify is not None:
        found = primitive.simplify(*args)
        if found is not None:
            return found
    return arg.graph.make(primitive, args)  # type: ignore[attr-defined]


def _define(name: str, arity: int, value: Rule, text: str, code: Rule, partials: Rule, **more: Any) -> Primitive:
    made = TABLE[name] = Primitive(name, arity, value, text, code, partials, **more)
    return made


def _known(x: Number) -> bool:
    return not isinstance(x, Symbol)


def _is(x: Number, name: str) -> bool:
    return isinstance(x, Symbol) and x.primitive.name == name  # type: ignore[attr-defined]


# Arithmetic ------------------------------------------------------------------------------------------


def _simplify_add(a: Number, b: Number) -> Number | None:
    if not isinstance(a, Symbol):
        a, b = b, a
    if not isinstance(b, Symbol):
        return a if b == 0.0 else None
    if a is b:
        return 2.0 * a  # type: ignore[operator]
    if b.primitive is NEG:  # type: ignore[attr-defined]
        return a - b.args[0]  # type: ignore[attr-defined]
    if a.primitive is NEG:
        return b - a.args[0]
    return None


def _simplify_sub(a: Number, b: Number) -> Number | None:
    if not isinstance(b, Symbol):
        return a if b == 0.0 else None
    if not isinstance(a, Symbol):
        return -b if a == 0.0 else None  # type: ignore[operator]
    if a is b:
        return 0.0
    if b.primitive is NEG:  # type: ignore[attr-defined]
        return a + b.args[0]  # type: ignore[attr-defined]
    return None


def _simplify_mul(a: Number, b: Number) -> Number | None:
    if not isinstance(a, Symbol):
        a, b = b, a
    if not isinstance(b, Symbol):
        if b == 0.0:
            return 0.0
        if b == 1.0:
            return a
        if b == -1.0:
            return -a
        # constants gather in front: 2 (3 x) = 6 x, unless their product is too large or small for a float
        if _is(a, "mul") and _known(a.args[1]) and _SMALLEST <= abs(a.args[1] * b) < math.inf:
            return a.args[0] * (a.args[1] * b)
        return -(a.args[0] * b) if _is(a, "neg") else None
    if a.primitive is NEG:
        return -(a.args[0] * b)
    if b.primitive is NEG:  # type: ignore[attr-defined]
        return -(a * b.args[0])  # type: ignore[attr-defined]
    if (_is(a, "reciprocal") and a.args[0] is b) or (_is(b, "reciprocal") and b.args[0] is a):  # type: ignore[attr-defined]
        return 1.0
    return None


def _simplify_div(a: Number, b: Number) -> Number | None:
    if _known(b):  # by a product where that is the same number: floor(0.3 / 0.1) is 2, floor(0.3 * 10) is 3
        return a * _divide(1.0, b) if abs(math.frexp(b)[0]) == 0.5 and math.isfinite(1.0 / b) else None
    if _known(a) and a == 0.0:
        return 0.0
    return -(a.args[0] / b) if _is(a, "neg") else None


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0.0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


ADD = _define(
    "add",
    2,
    lambda a, b: a + b,
    "{} + {}",
    lambda e, a, b: e.operation("fadd", a, b),
    lambda r, a, b: (1.0, 1.0),
    simplify=_simplify_add,
    commutes=True,
)
SUB = _define(
    "sub",
    2,
    lambda a, b: a - b,
    "{} - {}",
    lambda e, a, b: e.operation("fsub", a, b),
    lambda r, a, b: (1.0, -1.0),
    simplify=_simplify_sub,
)
MUL: Primitive = _define(
    "mul",
    2,
    lambda a, b: a * b,
    "{}*{}",
    lambda e, a, b: e.operation("fmul", a, b),
    lambda r, a, b: (b, a),
    simplify=_simplify_mul,
    commutes=True,
)
DIV: Primitive = _define(
    "div",
    2,
    _divide,
    "{}/{}",
    lambda e, a, b: e.operation("fdiv", a, b),
    lambda r, a, b: (apply(DIV, 1.0, b), -r / b),
    simplify=_simplify_div,
)
#: 1 / x of a pivot, which is no result where it is zero: x times it is 1, so that what a joint eliminates is nothing.
RECIPROCAL: Primitive = _define(
    "reciprocal",
    1,
    lambda a: _divide(1.0, a),
    "1.0/{}",
    lambda e, a: e.operation("fdiv", e.constant(1.0), a),
    lambda r, a: (-(r * r),),
)
NEG: Primitive = _define(
    "neg",
    1,
    lambda a: -a,
    "-{}",
    lambda e, a: e.negation(a),
    lambda r, a: (-1.0,),
    simplify=lambda a: a.args[0] if _is(a, "neg") else (a.args[1] - a.args[0] if _is(a, "sub") else None),
)
#: 0 x, which is NaN where x is not finite: how a kernel finds out whether all went well.
VANISHING = _define(
    "vanishing",
    1,
    lambda a: 0.0 * a,
    "0.0*{}",
    lambda e, a: e.operation("fmul", a, e.constant(0.0)),
    lambda r, a: (0.0,),
)

# Comparisons and choices -----------------------------------------------------------------------------


def _compare(name: str, sign: str, ordered: str, value: Rule, **more: Any) -> Primitive:
    return _define(
        name,
        2,
        value,
        f"{{}} {sign} {{}}",
        lambda e, a, b: e.comparison(ordered, a, b),
        _no_partials,
        truth=True,
        **more,
    )


def _no_partials(r: Number, *args: Number) -> tuple[None, ...]:
    return (None,) * len(args)


GREATER = _compare("greater", ">", "ogt", lambda a, b: a > b, simplify=lambda a, b: False if a is b else None)
AT_LEAST = _compare("at_least", ">=", "oge", lambda a, b: a >= b)


def _never_equal(a: Number, b: Number) -> bool:
    return (isinstance(a, Symbol) and a.never(b)) or (isinstance(b, Symbol) and b.never(a))  # type: ignore[attr-defined]


EQUAL = _compare(
    "equal",
    "==",
    "oeq",
    lambda a, b: a == b,
    simplify=lambda a, b: False if _never_equal(a, b) else None,
    commutes=True,
)
UNEQUAL = _compare(
    "unequal",
    "!=",
    "une",
    lambda a, b: a != b,
    simplify=lambda a, b: True if _never_equal(a, b) else None,
    commutes=True,
)


def _simplify_and(a: Number, b: Number) -> Number | None:
    if _known(a):
        a, b = b, a
    if _known(b):
        return a if b else False
    return a if a is b else None


def _simplify_or(a: Number, b: Number) -> Number | None:
    if _known(a):
        a, b = b, a
    if _known(b):
        return True if b else a
    return a if a is b else None


AND = _define(
    "and",
    2,
    lambda a, b: bool(a and b),
    "({} and {})",
    lambda e, a, b: e.logic("and", a, b),
    _no_partials,
    simplify=_simplify_and,
    commutes=True,
    truth=True,
    in_c="({} && {})",
)
OR = _define(
    "or",
    2,
    lambda a, b: bool(a or b),
    "({} or {})",
    lambda e, a, b: e.logic("or", a, b),
    _no_partials,
    simplify=_simplify_or,
    commutes=True,
    truth=True,
    in_c="({} || {})",
)
NOT = _define(
    "not",
    1,
    lambda a: not a,
    "(not {})",
    lambda e, a: e.inverted(a),
    _no_partials,
    simplify=lambda a: a.args[0] if _is(a, "not") else None,
    truth=True,
    in_c="(!({}))",
)


def _simplify_select(condition: Number, a: Number, b: Number) -> Number | None:
    if _known(condition):
        return a if condition else b
    if a is b or (_known(a) and _known(b) and a == b):
        return a
    return None


#: a where the condition holds, else b.
SELECT: Primitive = _define(
    "select",
    3,
    lambda condition, a, b: a if condition else b,
    "where({}, {}, {})",
    lambda e, condition, a, b: e.selection(condition, a, b),
    _no_partials,
    simplify=_simplify_select,
    choice=lambda *args: args,
)

# Elementary functions --------------------------------------------------------------------------------


def _numpy(name: str) -> Rule:
    """Return NumPy's function of floats, which gives ``nan`` or ``inf`` where `math` raises, as machine code does."""
    function = getattr(np, name)

    def value(*args: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*args))

    return value


def _steep_along(node: Number, rate: Rule) -> Number:
    """Return the rate of a function whose slope has no bound at some place: 0 where its argument stays, there too."""
    return _steep(rate(node.args[0]), node.primitive.partials(node, *node.args)[0])


def _steep(along: Number, slope: Number) -> Number:
    if not isinstance(along, Symbol):
        return along * slope if along else 0.0
    return apply(SELECT, apply(EQUAL, along, 0.0), 0.0, along * slope)


def _library(name: str, partial: Rule, numpy: str = "", arity: int = 1, **more: Any) -> Primitive:
    """Define a function of the C library, called lane by lane; `numpy` is how NumPy calls it."""
    places = ", ".join(["{}"] * arity)
    code = lambda e, *args: e.library(name, *args)  # noqa: E731
    return _define(name, arity, _numpy(numpy or name), f"{name}({places})", code, partial, called=True, **more)


SIN: Primitive = _define(
    "sin", 1, _numpy("sin"), "sin({})", lambda e, a: e.sincos(a)[0], lambda r, a: (apply(COS, a),), called=True
)
COS: Primitive = _define(
    "cos", 1, _numpy("cos"), "cos({})", lambda e, a: e.sincos(a)[1], lambda r, a: (-apply(SIN, a),), called=True
)
TAN = _library("tan", lambda r, a: (1.0 + r * r,))
ASIN = _library("asin", lambda r, a: (1.0 / apply(SQRT, 1.0 - a * a),), "arcsin", along=_steep_along)
ACOS = _library("acos", lambda r, a: (-1.0 / apply(SQRT, 1.0 - a * a),), "arccos", along=_steep_along)
ATAN = _library("atan", lambda r, a: (1.0 / (1.0 + a * a),), "arctan")
ATAN2 = _library("atan2", lambda r, y, x: (x / (x * x + y * y), -y / (x * x + y * y)), "arctan2", arity=2)
EXP = _library("exp", lambda r, a: (r,))
EXPM1 = _library("expm1", lambda r, a: (r + 1.0,))
LOG = _library("log", lambda r, a: (1.0 / a,))
LOG1P = _library("log1p", lambda r, a: (1.0 / (1.0 + a),))
SINH: Primitive = _library("sinh", lambda r, a: (apply(COSH, a),))
COSH: Primitive = _library("cosh", lambda r, a: (apply(SINH, a),))
TANH = _library("tanh", lambda r, a: (1.0 - r * r,))
ASINH = _library("asinh", lambda r, a: (1.0 / apply(SQRT, a * a + 1.0),), "arcsinh")
ACOSH = _library("acosh", lambda r, a: (1.0 / apply(SQRT, a * a - 1.0),), "arccosh", along=_steep_along)
ATANH = _library("atanh", lambda r, a: (1.0 / (1.0 - a * a),), "arctanh")
EXP2 = _library("exp2", lambda r, a: (r * math.log(2.0),))
LOG2 = _library("log2", lambda r, a: (1.0 / (a * math.log(2.0)),))
LOG10 = _library("log10", lambda r, a: (1.0 / (a * math.log(10.0)),))


def _hypot_partials(r: Number, a: Number, b: Number) -> tuple[Number, ...]:
    """Return those of a length; at zero, where it has none, 0, as that of `numpy.linalg.norm`."""
    return tuple(apply(SELECT, apply(EQUAL, r, 0.0), 0.0, x / r) for x in (a, b))


HYPOT = _library("hypot", _hypot_partials, arity=2)


SQRT: Primitive = _define(
    "sqrt",
    1,
    _numpy("sqrt"),
    "sqrt({})",
    lambda e, a: e.intrinsic("llvm.sqrt", a),
    lambda r, a: (0.5 / r,),
    along=_steep_along,
)
CBRT = _library("cbrt", lambda r, a: (1.0 / (3.0 * r * r),), along=_steep_along)


def _simplify_power(a: Number, b: Number) -> Number | None:
    if not _known(b):
        return 1.0 if _known(a) and a == 1.0 else None
    if b == 0.5:
        return apply(SQRT, a)
    if not (abs(b) <= 16.0 and b == int(b)):
        return None
    count = int(abs(b))
    result, square = 1.0, a
    while count:  # by squares
        if count % 2:
            result = result * square
        count //= 2
        square = square * square if count else square
    return result if b >= 0 else 1.0 / result


def _power_partials(r: Number, a: Number, b: Number) -> tuple[Number, Number | None]:
    to_a = b * apply(POW, a, b - 1.0)
    if _known(b):
        return to_a, None
    return to_a, apply(SELECT, apply(GREATER, a, 0.0), r * apply(LOG, a), 0.0)


def _power_along(node: Number, rate: Rule) -> Number:
    (a, b), (of_a, of_b) = node.args, map(rate, node.args)
    to_a, to_b = _power_partials(node, a, b)
    steep = not _known(b) or b < 1.0
    total = _steep(of_a, to_a) if steep else of_a * to_a
    return total if to_b is None else total + of_b * to_b


POW = _library("pow", _power_partials, "power", arity=2, simplify=_simplify_power, along=_power_along)


def _sign(a: float) -> float:
    return a if a != a else float((a > 0) - (a < 0))


ABS = _define(
    "abs", 1, abs, "abs({})", lambda e, a: e.intrinsic("llvm.fabs", a), lambda r, a: (apply(SIGN, a),), in_c="fabs({})"
)
#: |a| > |b|, by which the larger pivot is chosen: what follows is the same either way, and neither jumps nor bends.
LARGER = _define(
    "larger",
    2,
    lambda a, b: abs(a) > abs(b),
    "abs({}) > abs({})",
    lambda e, a, b: e.comparison("ogt", e.intrinsic("llvm.fabs", a), e.intrinsic("llvm.fabs", b)),
    _no_partials,
    truth=True,
    in_c="fabs({}) > fabs({})",
)
SIGN: Primitive = _define("sign", 1, _sign, "sign({})", lambda e, a: e.sign(a), lambda r, a: (0.0,))


#: The size of the first number with the sign of the second, which zeros have too.
COPYSIGN: Primitive = _define(
    "copysign",
    2,
    math.copysign,
    "copysign({}, {})",
    lambda e, a, b: e.intrinsic("llvm.copysign", a, b),
    lambda r, a, b: (apply(SIGN, a) * apply(COPYSIGN, 1.0, b), 0.0),
)


def _rounding(name: str, intrinsic: str, value: Rule, in_c: str = "") -> Primitive:
    def code(e: Any, a: Any) -> Any:
        return e.intrinsic(intrinsic, a)

    return _define(name, 1, value, f"{name}({{}})", code, lambda r, a: (0.0,), in_c=in_c)


def _whole(function: Callable[[float], int]) -> Rule:
    return lambda a: float(function(a)) if math.isfinite(a) else a


FLOOR = _rounding("floor", "llvm.floor", _whole(math.floor))
CEIL = _rounding("ceil", "llvm.ceil", _whole(math.ceil))
TRUNC = _rounding("trunc", "llvm.trunc", _whole(math.trunc))
ROUND = _rounding("round", "llvm.rint", _whole(round), "rint({})")  # halves go to the even neighbour, as in Python


def _extreme(name: str, sign: str) -> Primitive:
    """Define the greater or the lesser of two numbers; NaN where either is, as NumPy has it."""

    def value(a: float, b: float) -> float:
        if a != a or b != b:
            return math.nan
        return max(a, b) if sign == ">" else min(a, b)

    def first(a: Number, b: Number) -> Number:
        return apply(GREATER, a, b) if sign == ">" else apply(GREATER, b, a)

    return _define(
        name,
        2,
        value,
        f"{name}({{}}, {{}})",
        lambda e, a, b: e.intrinsic("llvm.maximum" if sign == ">" else "llvm.minimum", a, b),
        _no_partials,
        simplify=lambda a, b: a if a is b else None,
        choice=lambda a, b: (first(a, b), a, b),
    )


MAXIMUM = _extreme("maximum", ">")
MINIMUM = _extreme("minimum", "<")

# Remainders of floats: Python's (the sign of the divisor) and C's (that of the dividend) ----------------


def _remainder_partials(r: Number, a: Number, b: Number) -> tuple[Number, Number]:
    """Return those of a - k b; k is found from what is left, as a / b may round to the next whole number."""
    return 1.0, -apply(ROUND, (a - r) / b)


FMOD = _library("fmod", _remainder_partials, arity=2)


def _mod_code(e: Any, a: Any, b: Any) -> Any:
    """Python's remainder from C's: where it has the other sign than the divisor, one divisor more; 0 has its sign."""
    rest = e.library("fmod", a, b)
    zero = e.constant(0.0)
    other = e.logic("xor", e.comparison("olt", rest, zero), e.comparison("olt", b, zero))
    wrong = e.logic("and", e.comparison("une", rest, zero), other)
    none = e.selection(e.comparison("oeq", rest, zero), e.intrinsic("llvm.copysign", zero, b), rest)
    return e.selection(wrong, e.operation("fadd", rest, b), none)


MOD = _define("mod", 2, _numpy("mod"), "({} % {})", _mod_code, _remainder_partials, in_c="mod({}, {})")
