"""Routines as readable equations, in Python or C: what is used more than once has a name, the rest stands in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cstormpy.errors import InvalidValue
from cstormpy.graph import primitives
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.routine import Routine

__all__ = ["c_source", "equations", "unwritten_in_c"]

#: An expression with more letters is given a name, too.
_LONG = 100
_BINDING = {"add": 1, "sub": 1, "neg": 2, "vanishing": 2, "mul": 2, "div": 2}
#: What C lacks, with NumPy's answers for what is not a number.
_IN_C = """#include <math.h>

static double where(int truth, double a, double b) { return truth ? a : b; }
static double maximum(double a, double b) { return a > b || a != a ? a : b; }
static double minimum(double a, double b) { return a < b || a != a ? a : b; }
static double sign(double a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; }
static double mod(double a, double b) {
    double r = fmod(a, b);
    return r == 0.0 ? copysign(0.0, b) : (r < 0.0) != (b < 0.0) ? r + b : r;
}
"""


def equations(name: str, routine: Routine, arguments: Sequence[str]) -> str:
    """Return a routine as the source of a function of Python, whose operations are those of NumPy and `math`."""
    named, outputs, _ = _statements(routine, in_c=False)
    lines = [f"def {name}({', '.join(arguments)}):", *(f"    {variable} = {text}" for variable, _, text in named)]
    lines += [f"    {place} = {text}" for place, text in outputs]
    return "\n".join([*lines, "    return 0"]) + "\n"


def c_source(name: str, routine: Routine, arguments: Sequence[str]) -> str:
    """Return a routine as the source of a function of C, which returns its status.

    Raises
    ------
    InvalidValue
        Where something is called, or looked up, that C does not have.
    """
    named, outputs, status = _statements(routine, in_c=True)
    kinds = {a: "double " if a in routine.scalars else "const double *" for a in arguments}
    kinds |= dict.fromkeys(routine.outputs, "double *") | ({"n": "const long long *"} if "n" in kinds else {})
    lines = [_IN_C, f"int {name}({', '.join(kinds[a] + a for a in arguments)}) {{"]
    lines += [f"    const {'int' if truth else 'double'} {variable} = {text};" for variable, truth, text in named]
    lines += [f"    {place} = {text};" for place, text in outputs]
    return "\n".join([*lines, f"    return (int)({status});", "}"]) + "\n"


def unwritten_in_c(routine: Routine) -> Node | None:
    """Return the first node of a routine that `c_source` refuses, or None."""
    return next((node for node in routine.nodes if node.primitive is not INPUT and not _is_in_c(node)), None)


def _is_in_c(node: Node) -> bool:
    return primitives.TABLE.get(node.primitive.name) is node.primitive


def _statements(routine: Routine, in_c: bool) -> tuple[list[tuple[str, bool, str]], list[tuple[str, str]], str]:
    """Return variables with whether they are truths and their texts, the outputs with their texts, and the status."""
    outputs = [(f"{array}[{k}]", x) for array, values in routine.outputs.items() for k, x in enumerate(values)]
    last: list[Any] = [routine.status] if in_c else []
    nodes = alive([*(x for _, x in outputs), *last])
    uses = Counter(a.index for node in nodes for a in node.args if isinstance(a, Node))
    uses.update({x.index for x in (*(x for _, x in outputs), *last) if isinstance(x, Node)})
    named: list[tuple[str, bool, str]] = []
    written: dict[int, tuple[str, int]] = {}
    for node in nodes:
        text, binding = _expression(node, written, routine.scalars, in_c)
        if node.primitive not in (INPUT, TABLE) and (uses[node.index] > 1 or len(text) > _LONG):
            named.append((f"s{len(named) + 1}", node.primitive.truth, text))
            text, binding = named[-1][0], 3
        written[node.index] = text, binding

    def said(x: Any) -> str:
        return written[x.index][0] if isinstance(x, Node) else _number(x, in_c)

    return named, [(place, said(x)) for place, x in outputs], said(routine.status) if in_c else ""


def _number(x: Any, in_c: bool) -> str:
    text = repr(float(x))
    return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(text, text) if in_c else text


def _expression(node: Node, written: dict[int, tuple[str, int]], scalars: Sequence[str], in_c: bool) -> tuple[str, int]:
    """Return the text of a node, and how tightly it binds."""
    if node.primitive is INPUT:
        array, place, *_ = node.data
        return (array if array in scalars else f"{array}[{place}]"), 3
    if in_c and not _is_in_c(node):
        raise InvalidValue(f"source in C: {node.primitive.name!r} is a call or a look-up, which is not written in C")
    if node.primitive is TABLE:
        array, first, count = node.data
        return f"{array}[{first}:{first + count}]", 3
    binding = _BINDING.get(node.primitive.name, 0 if node.primitive.truth else 3)
    args: tuple[Any, ...] = node.args
    if node.primitive.name == "mul" and not isinstance(args[1], Node):
        args = args[1], args[0]
    parts = []
    for k, a in enumerate(args):
        text, inner = written[a.index] if isinstance(a, Node) else (_number(a, in_c), 3 if a >= 0 else 1)
        tight = inner < binding or (inner == binding and k == 1 and node.primitive.name in ("sub", "div"))
        parts.append(f"({text})" if tight and binding < 3 else text)
    return ((in_c and node.primitive.in_c) or node.primitive.text).format(*parts), binding
