"""Routines as readable equations, in Python or C: what is used more than once has a name, the rest stands in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidValue
from cstormpy.graph import primitives
from cstormpy.graph.nodes import CONSTANTS, INPUT, TABLE, Node, alive, bracketed, operands
from cstormpy.graph.routine import Routine

#: An expression with more letters is given a name, too.
_LONG = 100
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
#: How tables are looked up: by an index of which the last is given, by a place that counts from the end where it is
#: negative, and how many numbers, which do not decrease, are at most x, or below it.
_TABLES_IN_C = """
static double looked_up(const double *a, double index, double last) {
    return a[index > 0.0 ? (int)(index < last ? index : last) : 0];
}
static double entry(double place, const double *a, int n) {
    double k = place == place ? trunc(place) : 0.0;
    if (k < 0.0) k += n;
    return a[k > 0.0 ? (int)(k < n - 1 ? k : n - 1) : 0];
}
static double counted(double x, const double *a, double n, int strictly) {
    int low = 0, high = (int)n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strictly ? a[middle] < x : a[middle] <= x) low = middle + 1;
        else high = middle;
    }
    return low;
}
"""


def equations(name: str, routine: Routine, arguments: Sequence[str]) -> str:
    """Return a routine as the source of a function of Python, whose operations are those of NumPy and `math`."""
    named, outputs, _ = _statements(routine)
    lines = [f"def {name}({', '.join(arguments)}):", *(f"    {variable} = {text}" for variable, _, text in named)]
    lines += [f"    {place} = {text}" for place, text in outputs]
    return "\n".join([*lines, "    return 0"]) + "\n"


def c_source(routines: Mapping[str, Routine], arguments: Sequence[str]) -> str:
    """Return routines, by their names, as the source of functions of C, which return their status.

    Raises
    ------
    InvalidValue
        Where something is called that C does not have.
    """
    tables: dict[tuple[float, ...], str] = {}
    functions = [line for name, routine in routines.items() for line in _in_c(name, routine, arguments, tables)]
    nodes = [node for routine in routines.values() for node in routine.nodes]
    looks_up = any(node.primitive.of_table or node.primitive in (TABLE, CONSTANTS) for node in nodes)
    lines = [_IN_C + _TABLES_IN_C if looks_up else _IN_C]
    for values, table in tables.items():
        lines.append(f"static const double {table}[] = {{{', '.join(number_text(v) for v in values)}}};")
    return "\n".join([*lines, *functions]) + "\n"


def _in_c(name: str, routine: Routine, arguments: Sequence[str], tables: dict[tuple[float, ...], str]) -> list[str]:
    named, outputs, status = _statements(routine, tables)
    kinds = {a: "double " if a in routine.scalars else "const double *" for a in arguments}
    kinds |= dict.fromkeys(routine.outputs, "double *") | ({"n": "const long long *"} if "n" in kinds else {})
    lines = [f"int {name}({', '.join(kinds[a] + a for a in arguments)}) {{"]
    lines += [f"    const {'int' if truth else 'double'} {variable} = {text};" for variable, truth, text in named]
    lines += [f"    {place} = {text};" for place, text in outputs]
    return [*lines, f"    return (int)({status});", "}"]


def unwritten_in_c(routine: Routine) -> Node | None:
    """Return the first node of a routine that `c_source` refuses, or None."""
    return next((node for node in routine.nodes if node.primitive is not INPUT and not _is_in_c(node)), None)


def _is_in_c(node: Node) -> bool:
    return bool(node.primitive.in_c) or primitives.TABLE.get(node.primitive.name) is node.primitive


def _statements(
    routine: Routine, tables: dict[tuple[float, ...], str] | None = None
) -> tuple[list[tuple[str, bool, str]], list[tuple[str, str]], str]:
    """Return variables with whether they are truths and their texts, the outputs with their texts, and the status.

    In C, where it collects tables of known numbers, else in Python.
    """
    in_c = tables is not None
    outputs = [(f"{array}[{k}]", x) for array, values in routine.outputs.items() for k, x in enumerate(values)]
    last: list[Any] = [routine.status] if in_c else []
    nodes = alive([*(x for _, x in outputs), *last])
    uses = Counter(a.index for node in nodes for a in node.args if isinstance(a, Node))
    uses.update({x.index for x in (*(x for _, x in outputs), *last) if isinstance(x, Node)})
    named: list[tuple[str, bool, str]] = []
    written: dict[int, tuple[str, int]] = {}
    for node in nodes:
        text, binding = _expression(node, written, routine.scalars, tables)
        if node.primitive not in (INPUT, TABLE, CONSTANTS) and (uses[node.index] > 1 or len(text) > _LONG):
            named.append((f"s{len(named) + 1}", node.primitive.truth, text))
            text, binding = named[-1][0], 3
        written[node.index] = text, binding

    def said(x: Any) -> str:
        return written[x.index][0] if isinstance(x, Node) else number_text(x, in_c)

    return named, [(place, said(x)) for place, x in outputs], said(routine.status) if in_c else ""


def number_text(x: Any, in_c: bool = True) -> str:
    """Return a number as C writes it, or Python."""
    text = repr(float(x))
    return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(text, text) if in_c else text


def _expression(
    node: Node, written: dict[int, tuple[str, int]], scalars: Sequence[str], tables: dict[tuple[float, ...], str] | None
) -> tuple[str, int]:
    """Return the text of a node, and how tightly it binds."""
    in_c = tables is not None
    if node.primitive is INPUT:
        array, place, *_ = node.data
        return (array if array in scalars else f"{array}[{place}]"), 3
    if in_c and not _is_in_c(node):
        raise InvalidValue(f"source in C: {node.primitive.name!r} is a call, which is not written in C")
    if node.primitive is TABLE:
        array, first, count = node.data
        if in_c:
            return node.primitive.in_c.format(array, first), 3
        return f"{array}[{first}:{first + count}]", 3
    if tables is not None and node.primitive is CONSTANTS:
        return _table(node.data, written, tables), 3
    if tables is not None and node.primitive.of_table:
        x = node.args[0]
        place = written[x.index][0] if isinstance(x, Node) else number_text(x)
        return node.primitive.in_c.format(place, _table(node.args[1:], written, tables)), 3
    parts = [
        written[a.index] if isinstance(a, Node) else (number_text(a, in_c), 3 if a >= 0 else 1) for a in operands(node)
    ]
    return bracketed(node.primitive, (in_c and node.primitive.in_c) or node.primitive.text, parts)


def _table(entries: Sequence[Any], written: dict[int, tuple[str, int]], tables: dict[tuple[float, ...], str]) -> str:
    """Return a table in C: where its numbers stand, a named one where all are known, or one that is made in place."""
    nodes = [a for a in entries if isinstance(a, Node)]
    if not nodes:
        values = tuple(map(float, entries))
        return tables.setdefault(values, f"table{len(tables) + 1}")
    if len(nodes) == len(entries) and all(a.primitive is INPUT for a in nodes):
        array, first = nodes[0].data[0], nodes[0].data[1]
        if all(a.data[:2] == (array, first + k) for k, a in enumerate(nodes)):
            return f"({array} + {first})"
    said = ", ".join(written[a.index][0] if isinstance(a, Node) else number_text(a) for a in entries)
    return f"(const double[]){{{said}}}"
