"""Copies of functions that somebody has written for numbers, in which `math`, ``max`` and ``float`` take symbols.

So does NumPy (`symbolic_numpy`), in functions of the user.

In them a symbol is of those types of which the number is for which it stands. A function that catches errors is refused
where it is called: symbols do not raise where numbers do.
"""

from __future__ import annotations

import dis
import functools
import itertools
import math
import os
import types
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np

from cstormpy.graph import Node, SymbolicBranch, primitives
from cstormpy.graph.arrays import Symbols
from cstormpy.simulation.compiled.symbolic_numpy import IN_PLACE, Number, refusing
from cstormpy.simulation.surroundings import blocks_within, codes_within

_AS_NUMPY: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "hypot": np.hypot, "fabs": np.abs, "pow": np.power,
    "fmod": np.fmod, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "log2": np.log2, "log10": np.log10, "exp2": np.exp2, "cbrt": np.cbrt, "degrees": np.degrees,
    "radians": np.radians, "copysign": np.copysign, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip
_AS_NUMPY |= {name: methodcaller("whole", getattr(primitives, name.upper())) for name in ("floor", "ceil", "trunc")}
_AS_NUMPY = {name: function for name, function in _AS_NUMPY.items() if hasattr(math, name)}  # since Python 3.11 all


def _on_symbols(function: Callable[..., Any], numpy: Callable[..., Any]) -> Callable[..., Any]:
    def either(*args: Any, **options: Any) -> Any:
        if any(isinstance(a, Node) for a in args):
            return numpy(*args, **options)
        return function(*args, **options)

    return either


def _chain(numpy: Callable[[Any, Any], Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``max`` or ``min``, which of symbols is taken two by two."""

    def either(*args: Any, **options: Any) -> Any:
        items = list(args[0]) if len(args) == 1 else list(args)
        if options or not any(isinstance(a, Node) for a in items):
            return plain(items, **options) if len(args) == 1 else plain(*args, **options)
        found = items[0]
        for item in items[1:]:
            found = numpy(found, item)
        return found

    return either


def _isinstance(value: Any, kinds: Any) -> bool:
    """Tell whether a value is of a class, a symbol as the numbers are for which it may stand."""
    kinds = tuple(map(_class_of, kinds)) if isinstance(kinds, tuple) else _class_of(kinds)
    if not isinstance(value, Node):
        return isinstance(value, kinds)
    numbers = (True, np.True_) if value.primitive.truth else (1.5, np.float64(1.5))
    answers = {isinstance(number, kinds) for number in numbers}
    if len(answers) > 1:
        raise SymbolicBranch("it asks whether a number is one of Python's or of NumPy's")
    return answers.pop()


def _type(*given: Any, **options: Any) -> Any:
    """Return the class of a value, or a new class; what a symbol is of Python and NumPy call differently."""
    if len(given) == 1 and isinstance(given[0], Node):
        raise SymbolicBranch("it asks for the type of a number, for which isinstance(x, float) does")
    found: Any = type(*given, **options)
    return np.ndarray if found is Symbols else vars(found).get(WATCHED, found)


def _class_of(kind: Any) -> Any:
    return type if kind is _type else kind.kind if isinstance(kind, Number) else kind


def _round(number: Any, ndigits: Any = None) -> Any:
    if isinstance(number, Node) and ndigits is None:
        return number.whole(primitives.ROUND)
    return round(number, ndigits)


#: The class that a class stands for whose attributes are watched, by its own name there (`twins`).
WATCHED = "__watched__"
#: Functions of the language; the latter two as users' functions see them.
_CHAINS: dict[str, Any] = {"max": _chain(np.maximum, max), "min": _chain(np.minimum, min)}
_BUILTINS = {**_CHAINS, "isinstance": _isinstance, "type": _type, "round": _round}
_BUILTINS |= {"float": Number(float), "int": Number(int)}
#: What does more than to return something, each time that it is called.
_EACH_TIME = (
    "breakpoint", "eval", "exec", "exit", "globals", "input", "open", "print", "quit", "setattr",
    "GeneratorExit", "KeyboardInterrupt", "SystemExit",
)  # fmt: skip
_BUILTINS |= {name: refusing(f"it calls {name}() each time") for name in _EACH_TIME}
_MATH = types.SimpleNamespace(**{**vars(math), **{k: _on_symbols(getattr(math, k), f) for k, f in _AS_NUMPY.items()}})
_OWN = {id(getattr(math, k)): getattr(_MATH, k) for k in _AS_NUMPY} | {id(math): _MATH}
#: The same, and what users' functions see of NumPy.
_IN_OWN = _OWN | IN_PLACE


def with_symbolic_math(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a plain function for which `math`, ``max`` and ``min`` take symbols.

    So do those functions that it calls, but for what is installed.
    """
    if isinstance(function, types.FunctionType):
        return _Copies().of(function)
    why = _why_anew(function)
    return refusing(why) if why else function


class _Copies:
    """Copies of a function and of those that it calls, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, Callable[..., Any]] = {}
        self._spaces: dict[int, dict[str, Any]] = {}

    def of(self, function: types.FunctionType) -> Callable[..., Any]:
        """Return the copy of a function."""
        if id(function) in self._made:
            return self._made[id(function)]
        own = not is_installed(function)
        if own and (why := why_refused(function) or _why_untold(function.__code__) or _why_anew(function)):
            return self._made.setdefault(id(function), refusing(why))
        # cells that hold nothing else stay: what is written into them is seen
        cells = tuple(types.CellType() if self._differs(c, own) else c for c in function.__closure__ or ())
        space = self._space(function.__globals__, own)
        copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells or None)
        copy.__kwdefaults__, copy.__dict__ = function.__kwdefaults__, vars(function)
        self._made[id(function)] = copy
        for new, cell in zip(cells, function.__closure__ or (), strict=True):
            if new is not cell:
                new.cell_contents = self._instead(cell.cell_contents, own)
        for name in {name for code in codes_within(function.__code__) for name in code.co_names}:
            value = function.__globals__.get(name)
            if isinstance(value, types.FunctionType):
                space[name] = self._instead(value, own, function.__globals__)
        return copy

    def _space(self, before: dict[str, Any], own: bool) -> dict[str, Any]:
        """Return what stands in the module of a function; an `own` one is the user's."""
        space = self._spaces.get(id(before))
        if space is None:
            instead = _IN_OWN if own else _OWN
            space = self._spaces[id(before)] = {name: instead.get(id(value), value) for name, value in before.items()}
            for name, value in (_BUILTINS if own else _CHAINS).items():
                space.setdefault(name, value)
        return space

    def _instead(self, value: Any, own: bool, space: dict[str, Any] | None = None) -> Any:
        """Return what stands in the place of a value that a function reads, in an `own` one of the user's."""
        if isinstance(value, types.FunctionType) and (value.__globals__ is space or not is_installed(value)):
            return self.of(value)
        return (_IN_OWN if own else _OWN).get(id(value), value)

    @staticmethod
    def _differs(cell: types.CellType, own: bool) -> bool:
        try:
            value = cell.cell_contents
        except ValueError:  # it is empty yet
            return False
        return id(value) in (_IN_OWN if own else _OWN) or (
            isinstance(value, types.FunctionType) and not is_installed(value)
        )


def is_installed(function: types.FunctionType) -> bool:
    """Tell whether a function is of the language, of a library or of this package: not of the user."""
    path, module = function.__code__.co_filename, str(function.__module__).partition(".")[0]
    return module == "cstormpy" or "site-packages" in path or path.startswith(os.path.dirname(os.__file__) + os.sep)


def why_refused(function: types.FunctionType) -> str:
    """Return why a function of the user cannot be called with symbols, or as machine code, "" if it can."""
    return _why_refused(function.__code__)


def _why_untold(function: types.CodeType) -> str:
    """Return why symbols may be taken for something else: their types stand beside those of numbers."""
    names = {name for code in codes_within(function) for name in code.co_names}
    if names & {"type", "__class__"} and names & {"float", "int", "float64"}:
        return "it compares types of numbers, for which isinstance(x, float) does"
    asked = sorted(names & {"dtype", "itemsize", "nbytes", "tobytes"})
    if asked:
        return f"it asks how numbers are stored, by {asked[0]}"
    return ""


def _why_anew(function: Callable[..., Any]) -> str:
    """Return why a function, or method, is asked each time: what a block has may be set, also in a run."""
    if not blocks_within(function):
        return ""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    names = {name for part in codes_within(code) for name in part.co_names} if code is not None else ()
    more = (
        "; ask its mechanism by itself where that stays as it is, as mech = plant.mech before"
        if "mech" in names
        else ""
    )
    return f"it names a block, whose numbers may be set{more}"


@functools.lru_cache(1024)
def _why_refused(function: types.CodeType) -> str:
    for code in codes_within(function):
        steps = list(dis.get_instructions(code))
        for step in steps:
            if step.opname == "STORE_GLOBAL":
                return f"it changes {step.argval!r} of its module"
        number = _line_of_except(steps)
        if number or "suppress" in code.co_names:
            name = os.path.basename(code.co_filename)
            where = f"line {number or code.co_firstlineno} of {name}"
            return f"it catches errors ({where}), which are raised by Python's numbers only"
    return ""


def _line_of_except(steps: list[dis.Instruction]) -> int:
    """Return the line of the first ``except``, 0 if there is none."""
    line, targets = 0, {step.argval for step in steps if step.opname == "SETUP_FINALLY"}
    for step, behind in itertools.pairwise(steps):
        line = step.starts_line if type(step.starts_line) is int else getattr(step, "line_number", None) or line
        named = step.opname in ("CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH")
        if named or (step.opname == "PUSH_EXC_INFO" and behind.opname == "POP_TOP"):
            return line
        if step.offset in targets and step.opname == "POP_TOP":  # Python 3.10
            return line
    return 0
