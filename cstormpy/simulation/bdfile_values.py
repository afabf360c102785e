"""Values of the parameters in .bd files: numbers and their arithmetic, clocks, and what bdedit writes by itself.

bdedit keeps what a user types as text. What is no more than numbers, lists and texts is read without running any code,
also where angles are written as ``pi / 2`` or ``np.deg2rad(30)``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.errors import InvalidType, shown

_CONSTANTS = {"pi": math.pi} | {
    f"{m}.{name}": getattr(math, name) for m in ("math", "np") for name in ("pi", "inf", "nan")
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = dict.fromkeys(
    ("np.deg2rad", "np.radians", "math.radians"), lambda angle: np.deg2rad(angle).tolist()
)
_BETWEEN: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_BEFORE: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}

#: What `literal` raises.
NO_LITERAL = (ValueError, SyntaxError, TypeError, ArithmeticError, MemoryError, RecursionError)

#: What bdedit writes where nobody has typed anything: it misreads the documentation of these blocks of bdsim's.
_MISREAD: dict[str, dict[str, Any]] = {
    "CLIP": {"min": "-math.inf", "max": "math"},
    "LTI_SS": {"N": 1},
    "PID": {"type": "PID"},
    "POSEINTEGRATOR": {"x0": "null"},
    "POSEINTEGRATOR_S": {"x0": "null"},
    "SCOPEXY1": {"scale": "auto"},
    "SUM": {"signs": "``++``"},
    "WAVEFORM": {"duty": 0},
}
#: Names of ports as bdedit calls them, and as blocks take them.
_LABELS = {"inport labels": "inames", "outport labels": "onames"}


def told(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a block that its user has told, by the names that the block has for them.

    >>> told("SUM", {"signs": "``++``", "mode": None}), told("INPORT", {"outport labels": ["u"]})
    ({}, {'onames': ['u']})
    """
    misread = _MISREAD.get(kind, {})
    return {
        _LABELS.get(name, name): value
        for name, value in parameters.items()
        if value is not None and not (name in misread and value == misread[name])
    }


def literal(text: str) -> Any:
    """Return what a text says that is made of numbers, texts, lists and the like, and no more.

    Raises
    ------
    One of `NO_LITERAL`
        Of whatever is more, or cannot be.

    Examples
    --------
    >>> literal("[-pi / 2, 0]"), literal("'pd'"), literal("{'q': np.deg2rad([90, 0])}")
    ([-1.5707963267948966, 0], 'pd', {'q': [1.5707963267948966, 0.0]})
    """
    return _said(ast.parse(text.strip(), mode="eval").body)


def _said(node: ast.AST) -> Any:
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        kind: Any = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
        return kind(map(_said, node.elts))
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {_said(key): _said(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in _CONSTANTS:
        return _CONSTANTS[ast.unparse(node)]
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in _FUNCTIONS
        and len(node.args) == 1
        and not node.keywords
    ):
        return _FUNCTIONS[ast.unparse(node.func)](_said(node.args[0]))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _BEFORE:
        return _BEFORE[type(node.op)](_number(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _BETWEEN:
        return _BETWEEN[type(node.op)](_number(node.left), _number(node.right))
    return ast.literal_eval(node)


def _number(node: ast.AST) -> Any:
    value = _said(node)
    if not isinstance(value, (int, float, complex)):
        raise ValueError(f"{shown(value)} is no number")
    return value


def clock(bd: Any, value: Any, known: dict[Any, Any]) -> Any:
    """Return the clock of a diagram that a value stands for; `known` are those that it has, by their arguments.

    Parameters
    ----------
    bd : BlockDiagram
    value : float, str or list
        The period in seconds, "10 Hz" or "50 ms", [10, "Hz"], [0.1, "s", 0.05] with the time of the first tick, or
        "bd.clock(10, 'Hz')".
    known : dict
    """
    arguments = _arguments(value)
    key = repr(arguments)
    if key not in known:
        known[key] = bd.clock(*arguments)
    return known[key]


def _arguments(value: Any) -> list[Any]:
    """Return what a clock is made with."""
    if isinstance(value, str):
        text = value.removeprefix("=").strip()
        measured = re.fullmatch(r"(\S+?)\s*(s|ms|Hz)", text)
        called = re.fullmatch(r"(?:bd\.)?clock\((.*)\)", text, re.DOTALL)
        try:
            if called is not None:
                value = list(literal(f"({called[1]},)"))
            else:
                value = [literal(measured[1]), measured[2]] if measured is not None else literal(text)
        except NO_LITERAL:
            value = None
    arguments = list(value) if isinstance(value, (list, tuple)) else [value]
    if not 1 <= len(arguments) <= 3 or isinstance(arguments[0], (str, bool, type(None))):
        raise InvalidType(f"clock: expected its period, as 0.1 [s], '10 Hz' or [10, 'Hz'], got {shown(value)}")
    return arguments
