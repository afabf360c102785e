"""Which numbers of a diagram's function decide when something jumps, as its source tells."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import math
from typing import Any

import numpy as np

from cstormpy.simulation.analysis.choices import deciding_in_graph
from cstormpy.simulation.compiled.assembly import GraphProgram
from cstormpy.simulation.compiled.program import Program

__all__ = ["deciding"]

#: What picks an entry of a table by a number: other entries come with a jump.
_PICKING = ("count_below", "count_upto")


def deciding(program: Program, known: frozenset[str] = frozenset()) -> frozenset[int]:
    """Return which numbers of p decide when something jumps: those compared, by way of local variables of a block too.

    Comparisons that only bend a value, as those of a limit or of a ramp, and those that end in a failure do not count,
    nor do those of blocks whose jumps are `known` as events.
    """
    if isinstance(program, GraphProgram):
        return deciding_in_graph(program, known)
    return _deciding(program.source, tuple("" if name in known else name for name in program.line_owners))


@functools.lru_cache(maxsize=32)
def _deciding(source: str, line_owners: tuple[str, ...]) -> frozenset[int]:
    tree = ast.parse(source)
    known: dict[tuple[str, str], set[int]] = {}
    idle = {id(part) for node in ast.walk(tree) if _only_bends(node) for part in ast.walk(node.test)}  # type: ignore[attr-defined]
    found: set[int] = set()
    kinds = (ast.Assign, ast.AugAssign, ast.Compare, ast.Call)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        place = node.lineno - 2
        owner = line_owners[place] if place < len(line_owners) else ""
        if isinstance(node, ast.Compare):
            found |= set() if id(node) in idle or not owner else _numbers(node, owner, known)
        elif isinstance(node, ast.Call):
            found |= _numbers(node, owner, known) if owner and ast.unparse(node.func) in _PICKING else set()
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                known.setdefault((owner, ast.unparse(target)), set()).update(_numbers(node.value, owner, known))
    return frozenset(found)


def _numbers(node: ast.AST, owner: str, known: dict[tuple[str, str], set[int]]) -> set[int]:
    """Return which numbers of p an expression of a block is computed from."""
    found: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found |= known.get((owner, part.id), set())
        elif isinstance(part, ast.Subscript) and ast.unparse(part.value) == "p":
            first, _, last = ast.unparse(part.slice).partition(":")
            if first.isdecimal():
                found |= set(range(int(first), int(last) if last.isdecimal() else int(first) + 1))
    return found


def _only_bends(node: ast.AST) -> bool:
    """Tell whether a condition chooses between values that agree where it changes, or ends in a failure."""
    if isinstance(node, ast.If):
        return len(node.body) == 1 and isinstance(node.body[0], ast.Return) and not node.orelse
    if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
        return False
    if isinstance(node.test.ops[0], (ast.Eq, ast.NotEq)):
        return False
    sides = node.test.left, node.test.comparators[0]
    return any(_agree(node, a, b) for a, b in (sides, sides[::-1]) if not isinstance(a, ast.Constant))


def _agree(node: ast.IfExp, changed: ast.expr, border: ast.expr) -> bool:
    """Tell whether both branches are the same, whatever the other numbers, with one side of the condition at the other.

    Read as formulas: with a few numbers in the place of variables.
    """
    put = _Put(ast.unparse(changed), border)
    branches = [ast.unparse(put.visit(copy.deepcopy(branch))) for branch in (node.body, node.orelse)]
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"math", "abs", "min", "max"}
    with contextlib.suppress(Exception):  # what is called is not known here
        return all(
            math.isclose(*(float(eval(text, {"math": math}, _values(names, k))) for text in branches), abs_tol=1e-9)
            for k in range(3)
        )
    return False


class _Put(ast.NodeTransformer):
    """Puts one expression in the place of another."""

    def __init__(self, text: str, other: ast.expr) -> None:
        self.text, self.other = text, other

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.text:
            return self.other
        return super().visit(node)


class _Any:
    """Some numbers, one by each index."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __getitem__(self, key: Any) -> float:
        return _some(self.seed + int(key))


def _some(seed: int) -> float:
    return 0.1 + float(np.random.default_rng(seed).random())


def _values(names: set[str], k: int) -> dict[str, Any]:
    arrays = {"p", "x", "z", "w", "out", "xd", "n"}
    return {
        name: _Any(1000000 * (k + 1) + 10000 * ord(name[0])) if name in arrays else _some(1000 * k + i)
        for i, name in enumerate(sorted(names))
    }
