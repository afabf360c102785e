"""Lines of LLVM's text as they are written for a function: its kinds of values, its blocks, its variables."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cstormpy.graph.loops import Module

#: LLVM's types of numbers: whole, float, truth.
TYPES = {"i": "i64", "f": "double", "b": "i1"}
Kind = str | tuple[str, ...]


class LoopError(TypeError):
    """A statement or expression that is not read, with its line."""


@dataclass(frozen=True)
class Value:
    """The value of an expression: of an array kind "F1", "I2", … where it stands and its lengths; or several values."""

    kind: Kind
    parts: tuple[Any, ...]

    @property
    def one(self) -> str:
        """The number itself."""
        return str(self.parts[0])


def number_text(value: Any) -> str:
    """Return a float exactly, as LLVM reads it."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


def type_of(kind: Kind) -> str:
    """Return LLVM's type of a number or of several, of none for none."""
    if isinstance(kind, tuple):
        return "{ " + ", ".join(TYPES[k] for k in kind) + " }" if kind else "void"
    return TYPES[kind]


def slots(kind: Kind) -> list[str]:
    """Return LLVM's types of the parts of a value."""
    return ["ptr", *["i64"] * int(kind[1])] if kind[0] in "FI" else [type_of(kind)]


class Lines:
    """The lines of one function for arguments of some kinds.

    Attributes
    ----------
    variables : dict
        Kind of each variable, and where its parts stand.
    result : kind or None
        Of what the function returns, once that is known.
    """

    def __init__(self, module: Module, function: Any, kinds: tuple[Kind, ...]) -> None:
        self.module, self.kinds, self.file = module, kinds, inspect.getsourcefile(function)
        source, self.first = inspect.getsourcelines(function)
        self.tree: Any = ast.parse(textwrap.dedent("".join(source))).body[0]
        self.names = function.__globals__
        self.number = count()
        self.head: list[str] = []
        self.lines: list[str] = []
        self.variables: dict[str, tuple[Kind, list[str]]] = {}
        self.loops: list[tuple[str, str]] = []
        self.result: Kind | None = None
        self.open = True

    def new(self, text: str) -> str:
        """Add a line that computes something; return the name of what it gives."""
        name = f"%x{next(self.number)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self) -> str:
        """Return a new name of a block."""
        return f"l{next(self.number)}"

    def begin(self, label: str) -> None:
        """Begin a block; what comes before goes on there, unless it has left."""
        if self.open:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True

    def leave(self, text: str) -> None:
        """End a block, unless it has left."""
        if self.open:
            self.lines.append(f"  {text}")
        self.open = False

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Leave a block, one way or the other."""
        self.leave(f"br i1 {condition}, label %{yes}, label %{no}")

    def room(self, kind: str) -> str:
        """Return the place of a new variable, which is made at the head of the function."""
        name = f"%x{next(self.number)}"
        self.head.append(f"  {name} = alloca {kind}, align 8")
        return name

    def refuse(self, node: Any, why: str = "") -> LoopError:
        """Return the error that names the line of what is not read."""
        line = self.first + getattr(node, "lineno", 1) - 1
        return LoopError(f"{self.file}, line {line}: {why or 'not read'}: {ast.unparse(node)}")

    def assign_name(self, name: str, value: Value, node: Any = None) -> None:
        """Keep a value as a variable, which keeps the kind that it is first given."""
        if name not in self.variables:
            self.variables[name] = value.kind, [self.room(t) for t in slots(value.kind)]
        kind, rooms = self.variables[name]
        parts = value.parts if value.kind == kind else [self.as_kind(value, kind, node)]
        for slot, part, room in zip(slots(kind), parts, rooms, strict=True):
            self.lines.append(f"  store {slot} {part}, ptr {room}, align 8")

    def as_kind(self, value: Value, kind: Kind, node: Any) -> str:
        """Return a number as one of some kind."""
        before = value.kind
        if before == kind:
            return value.one
        if kind == "b" and before == "i":
            return self.new(f"icmp ne i64 {value.one}, 0")
        if kind == "f" and before in ("i", "b"):
            return self.new(f"{'sitofp' if before == 'i' else 'uitofp'} {type_of(before)} {value.one} to double")
        if kind == "i" and before == "b":
            return self.new(f"zext i1 {value.one} to i64")
        raise self.refuse(node or self.tree, f"{before} where {kind} is wanted")

    def _unknown(self, node: Any) -> Any:
        raise self.refuse(node)
