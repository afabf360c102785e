"""Writes what type checkers and editors are told of diagrams: the kinds of blocks, with their arguments.

python tests/diagram_stub.py     writes cstormpy/simulation/diagram_kinds.pyi
"""

from __future__ import annotations

import ast
import inspect
import math
from importlib import metadata
from pathlib import Path
from typing import Any

import cstormpy as cs
from cstormpy.simulation.block_maker import BlockMaker, signature_of

HEAD = '''\
"""Diagrams as type checkers see them; written by tests/diagram_stub.py, of bdsim {version}."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from cstormpy.mechanism import Mechanism
from cstormpy.trajectory import BSpline

class BlockDiagram:
    # What a diagram may say of itself to "cstorm" and to comparisons.
    goal: Any
    duration: float
    pace: float | None
    def connect(self, start: Any, *ends: Any, name: str | None = None) -> None: ...
    def compile(self, *args: Any, **options: Any) -> Any: ...
    def __getitem__(self, name: int | str) -> Any: ...
{others}
'''
KNOWN = {"Any", "ArrayLike", "BSpline", "Callable", "Iterable", "Mapping", "Mechanism", "Sequence", "os", "None",
         "bool", "dict", "float", "int", "list", "object", "str", "tuple"}  # fmt: skip
OPTION_TYPES = {"name": "str | None", **dict.fromkeys(("inames", "onames", "snames"), "Sequence[str] | None")}
STUB = Path(cs.__file__).with_name("simulation") / "diagram_kinds.pyi"


def methods() -> dict[str, str]:
    """Return the method of each kind of block of ours and of bdsim's own."""
    bd = cs.Simulation(graphics=False).blockdiagram()
    found = {}
    for kind in sorted(name for name, value in vars(bd).items() if isinstance(value, BlockMaker)):
        made = getattr(bd, kind).made
        if made.__module__.partition(".")[0] in ("bdsim", "cstormpy"):
            found[kind] = method(kind, made)
    return found


def others() -> list[str]:
    """Return what else bdsim's diagrams have."""
    bd = cs.Simulation(graphics=False).blockdiagram()
    names = [name for name in dir(bd) if not name.startswith("_") and not name.isupper()]
    return [f"    {name}: Any" for name in names if name not in ("compile", "connect", "duration", "goal", "pace")]


def method(kind: str, made: Any) -> str:
    """Return the line of one kind; arguments of bdsim's blocks are of any type, since it does not keep to its own."""
    ours, parts, keywords = made.__module__.startswith("cstormpy"), ["self"], False
    for parameter in signature_of(made).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            if not any(part.startswith("*") for part in parts):
                parts.append("*")
        keywords = keywords or parameter.kind is parameter.VAR_POSITIONAL
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f" = {literal(parameter.default)}"
        known = OPTION_TYPES.get(parameter.name) if parameter.kind is parameter.KEYWORD_ONLY else None
        of = known or (annotation(parameter) if ours else "Any")
        parts.append(f"{stars}{parameter.name}: {of}{default}")
    return f"    def {kind}({', '.join(parts)}) -> Any: ..."


def annotation(parameter: inspect.Parameter) -> str:
    """Return a type that the stub knows, or Any."""
    text = parameter.annotation if isinstance(parameter.annotation, str) else "Any"
    names = {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
    return text if names <= KNOWN else "Any"


def literal(value: Any) -> str:
    """Return a default as stubs have them."""
    plain = value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))
    return repr(value) if plain else "..."


def text() -> str:
    """Return the whole stub."""
    head = HEAD.format(version=metadata.version("bdsim"), others="\n".join(others()))
    return head + "\n".join(["", *methods().values(), ""])


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
    print(f"{STUB} is written")
