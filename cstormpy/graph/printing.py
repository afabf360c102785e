"""Routines as readable equations: what is used more than once has a name, the rest stands where it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.graph.routine import Routine

__all__ = ["equations"]

#: An expression with more letters is given a name, too.
_LONG = 100
_BINDING = {"add": 1, "sub": 1, "neg": 2, "vanishing": 2, "mul": 2, "div": 2}


def equations(name: str, routine: Routine, arguments: Sequence[str]) -> str:
    """Return a routine as the source of a function of Python, whose operations are those of NumPy and `math`."""
    outputs = [(f"{array}[{k}]", x) for array, values in routine.outputs.items() for k, x in enumerate(values)]
    nodes = alive([x for _, x in outputs])
    uses = Counter(a.index for node in nodes for a in node.args if isinstance(a, Node))
    uses.update({x.index for _, x in outputs if isinstance(x, Node)})
    lines, written = [f"def {name}({', '.join(arguments)}):"], dict[int, tuple[str, int]]()
    for node in nodes:
        text, binding = _expression(node, written, routine.scalars)
        if node.primitive not in (INPUT, TABLE) and (uses[node.index] > 1 or len(text) > _LONG):
            variable = f"s{len(lines)}"
            lines.append(f"    {variable} = {text}")
            text, binding = variable, 3
        written[node.index] = text, binding
    for place, x in outputs:
        lines.append(f"    {place} = {written[x.index][0] if isinstance(x, Node) else repr(float(x))}")
    return "\n".join([*lines, "    return 0"]) + "\n"


def _expression(node: Node, written: dict[int, tuple[str, int]], scalars: Sequence[str]) -> tuple[str, int]:
    """Return the text of a node, and how tightly it binds."""
    if node.primitive is INPUT:
        array, place, *_ = node.data
        return (array if array in scalars else f"{array}[{place}]"), 3
    if node.primitive is TABLE:
        array, first, count = node.data
        return f"{array}[{first}:{first + count}]", 3
    binding = _BINDING.get(node.primitive.name, 0 if node.primitive.truth else 3)
    args: tuple[Any, ...] = node.args
    if node.primitive.name == "mul" and not isinstance(args[1], Node):
        args = args[1], args[0]
    parts = []
    for k, a in enumerate(args):
        text, inner = written[a.index] if isinstance(a, Node) else (repr(float(a)), 3 if a >= 0 else 1)
        tight = inner < binding or (inner == binding and k == 1 and node.primitive.name in ("sub", "div"))
        parts.append(f"({text})" if tight and binding < 3 else text)
    return node.primitive.text.format(*parts), binding
