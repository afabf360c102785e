"""Identity of a diagram: a fingerprint of it, so that results are not taken for those of a diagram of other numbers.

All that blocks were given counts: numbers, texts, arrays, functions, mechanisms, laws, clocks. The same diagram built
again, also by another process, is told in the same words, and so is one that has been run: what is assigned to by the
methods that a run calls is left out.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import math
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.components import Clock
from bdsim.graphics_block import GraphicsBlock

from cstormpy.mechanism import Coupling, Loop, Mechanism
from cstormpy.simulation.surroundings import codes_within
from cstormpy.simulation.sweep.measures import digest

#: Methods that a run calls of a block or a law; of other objects it may be each that is public.
_RUNNING = ("start", "reset", "output", "deriv", "next", "step", "done", "torque", "margin", "switch", "__call__")
#: What bdsim keeps with each block of its last evaluation, and of the diagram.
_BOOKKEEPING = ("_output_values", "_x_view", "_bd", "bd", "_parameters", "_identity", "_outside", "_given")
#: What runs assign to and what is no memory of one: the law with which a CONTROLLER begins.
_LASTING = {"_first"}
#: Objects of these packages are told by their class only: wiring, pictures, and queues and dice, which a run changes.
_SHELLS = ("_thread", "bdsim", "collections", "matplotlib", "numba", "numpy.random", "queue", "random", "threading")
#: What functions of these packages close over follows from what else is told, or is memory for their use.
_LIBRARIES = ("bdsim", "cstormpy", "numba", "numpy", "scipy")
#: An option's value is written as it is where that takes no more characters.
_SHORT = 80


def diagram_identity(bd: Any) -> dict[str, str]:
    """Return what tells a compiled diagram from others, by names: of its initial states, its wires, and each block."""
    wires = [f"{w.start.block.name}[{w.start.port}] {w.end.block.name}[{w.end.port}]" for w in bd.wirelist]
    parts = {
        "name": str(bd.name),
        "initial states": _hashed(np.asarray(bd.getstate0(), dtype=float).tolist()),
        "wires": _hashed(wires),
    }
    return parts | {f"block {str(b.name)!r}": _hashed(_Teller().block(b)) for b in bd.blocklist}


def option_identity(value: Any) -> Any:
    """Return what tells the value of an option from others, such as JSON can hold.

    >>> option_identity(0.5), option_identity((1, "pd"))
    (0.5, ['tuple', 1, 'pd'])
    """
    told = _Teller().told(value)
    return told if len(json.dumps(told)) <= _SHORT else f"{type(value).__name__} {_hashed(told)}"


def _hashed(told: Any) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


class _Teller:
    """Tells values in lists and texts; what it meets again it tells by its number."""

    def __init__(self) -> None:
        #: Number of what was met, which is kept, lest another thing come to stand at its address.
        self._met: dict[int, tuple[int, Any]] = {}

    def block(self, block: Any) -> Any:
        """Tell a block: its class, its parameters, its attributes and its clock."""
        kind: Any = type(block)
        if issubclass(kind, GraphicsBlock):
            return kind.__qualname__
        held = {k: v for k, v in vars(block).items() if k not in _BOOKKEEPING and k not in _assigned_by_runs(kind)}
        parameters = {k: getattr(block, k, None) for k in block._parameters}
        return [kind.__qualname__, self._pairs(parameters), self._pairs(held)]

    def told(self, value: Any) -> Any:
        """Tell a value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float):
            return value if math.isfinite(value) else repr(value)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, (bytes, complex, range, slice)):
            return repr(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSUmM":
            return [f"array of {value.dtype.kind}", list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
        if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
            return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
        if isinstance(value, Clock):
            return ["clock", float(value.T), float(value.offset)]
        if id(value) in self._met:
            return f"the {self._met[id(value)][0]}th"
        self._met[id(value)] = len(self._met), value
        return self._composed(value)

    def _composed(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Mechanism):
            if all(isinstance(loop, (Loop, Coupling)) for loop in value.loops):
                return ["mechanism", value.to_dict()]
            # a constraint that is said by a function has no words of its own
            return ["mechanism", value.without_loops().to_dict(), self.told(list(value.loops))]
        if isinstance(value, Mapping):
            return [kind.__qualname__, self._pairs(value)]
        if isinstance(value, (set, frozenset)):
            return [kind.__qualname__, *sorted(json.dumps(_Teller().told(item)) for item in value)]
        if isinstance(value, (list, tuple)):
            return [kind.__qualname__, *map(self.told, value)]
        if isinstance(value, types.MethodType):
            return ["method", self.told(value.__func__), self.told(value.__self__)]
        function = getattr(value, "py_func", value)
        if isinstance(function, types.FunctionType):
            return self._function(function)
        return self._object(value)

    def _pairs(self, held: Mapping[Any, Any]) -> list[Any]:
        return [[str(name), self.told(value)] for name, value in sorted(held.items(), key=lambda pair: str(pair[0]))]

    def _function(self, function: types.FunctionType) -> Any:
        """Tell a function: by its code, what it closes over and its defaults."""
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        if str(function.__module__).partition(".")[0] in _LIBRARIES:
            given = [v for v in cells if isinstance(v, (bool, int, float, str, Mechanism))]
            return [f"{function.__module__}.{function.__qualname__}", *map(self.told, given)]
        known = digest(function)
        if known:
            return ["function", known]
        held = [*cells, function.__defaults__, function.__kwdefaults__]
        return ["function", function.__code__.co_code.hex(), repr(function.__code__.co_names), *map(self.told, held)]

    def _object(self, value: Any) -> Any:
        """Tell an object: by what a copy of it would be made of."""
        kind: Any = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, Block) or f"{name}.".startswith(tuple(f"{shell}." for shell in _SHELLS)):
            return name
        try:
            made = value.__reduce_ex__(2)
        except Exception:  # what cannot be copied is told by its class
            return name
        if isinstance(made, str):
            return [name, made]
        arguments, state, *items = (*made[1:], None, None, None)[:4]
        told = [name, *map(self.told, arguments)]
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                told.append(self._pairs({k: v for k, v in part.items() if k not in _assigned_by_runs(kind)}))
            else:
                told.append(self.told(part))
        return told + [self.told(list(each)) for each in items if each is not None]


@functools.cache
def _assigned_by_runs(kind: type[Any]) -> frozenset[str]:
    """Return the names of the attributes that methods assign to which a run calls, or which those call."""
    methods: dict[str, list[types.CodeType]] = {}
    for base in kind.__mro__:
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType):
                methods.setdefault(name, []).append(function.__code__)
    protocol = issubclass(kind, Block) or hasattr(kind, "torque")
    todo = [name for name in methods if name in _RUNNING or not (protocol or name.startswith("_"))]
    seen, found = set(todo), set()
    while todo:
        for code in methods[todo.pop()]:
            owner = code.co_varnames[0] if code.co_argcount else ""
            for part in codes_within(code):
                found |= _assigned(part, owner)
                called = {name for name in part.co_names if name in methods} - seen - {"__init__"}
                seen |= called
                todo += called
    return frozenset(found - _LASTING)


def _assigned(code: types.CodeType, owner: str) -> set[str]:
    """Return the names of the attributes that a code assigns to, but for those of what is known not to be the owner."""
    found = set()
    before = ("", "")
    for instruction in dis.get_instructions(code):
        value = instruction.argval
        if instruction.opname == "STORE_ATTR" and not (before[0].startswith("LOAD_") and before[1] != owner):
            found.add(str(value))
        before = instruction.opname, value[-1] if isinstance(value, tuple) and value else value
    return found
