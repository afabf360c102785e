"""Blocks and laws without an emitter, in the compiled engine: by their own methods, in one of three ways.

1. *Traced*: the method is called once with symbols in place of the time, the signals and the block's own numbers, and
   writes down what it computes (`cstormpy.graph`). That becomes machine code, and so do its exact derivatives.
2. *Compiled by numba*: a plain function that asks a number (an ``if``, a loop that ends somewhere), see
   `emitters_functions`. Its derivatives are differenced.
3. *In Python*: whatever is left is asked by its own method from inside of the compiled function.

The object that is traced is a twin of the block or law, in which each float, and each array of floats, is a symbol:
they stay inputs of the code and are read anew for each run, so that they can be tuned. Everything else of it (whole
numbers, texts, flags, other objects, the code of its functions) shapes what is written down, and has it written down
again when it changes.
"""

from __future__ import annotations

import functools
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from cstormpy.graph import Graph, Node, SymbolicBranch
from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.kept import machine_for
from cstormpy.graph.module import text_for_one
from cstormpy.graph.nodes import INPUT, alive
from cstormpy.graph.routine import Routine
from cstormpy.mechanism import Mechanism
from cstormpy.simulation.compiled.emitter import Emitter, named
from cstormpy.simulation.compiled.emitters_functions import fingerprint
from cstormpy.simulation.compiled.registry import Value

__all__ = ["Untraceable", "traced"]

#: What is read of an owner as numbers, by the name of the attribute that the twin has for it.
Readers = Mapping[str, Callable[[Any], Any]]
_NO_READERS: Readers = {}
#: Arrays with more numbers are no parameters: they stay as they are.
_LARGEST = 256
#: A trace with more operations is left to the other ways.
_MOST_OPERATIONS = 20_000


class Untraceable(Exception):
    """What a method does that cannot be written down; the text says what, and where."""


def traced(
    e: Emitter,
    read: Callable[[], Any],
    function: Callable[..., Any],
    method: Callable[..., Any],
    given: Sequence[Value],
    readers: Readers = _NO_READERS,
) -> list[Value]:
    """Emit a method of a block or law by its trace, and return what it returns, a list as its parts.

    Parameters
    ----------
    e : Emitter
    read : function without arguments
        Gives the block or law, or the function that is one, as it is now.
    function : function
        The method, as somebody has written it.
    method : function of (twin, *given)
        Calls it with the twin.
    given : sequence of Value
        The signals that it takes, as expressions; it is given symbols of the same shapes.
    readers : mapping of str to function of the owner, optional
        Attributes of the twin that are numbers whatever they are in the owner, and how they are read.

    Raises
    ------
    Untraceable
    """
    trace = _Trace(read(), method, [v.shape for v in given], readers)
    if not _is_of_bdsim(function) and _Trace(read(), method, [v.shape for v in given], readers).text != trace.text:
        raise Untraceable("it gives something else each time that it is asked")
    form = Form(read, trace.reads, readers)
    e.depends(lambda: (form(), _described(function)))
    addresses = e.integers(lambda: trace.addresses)
    numbers = e.numbers(lambda: _numbers(read(), trace.used, readers))
    stored = e.store(list(given), e.scratch(trace.size))
    out = e.scratch(trace.count)
    filled = f"w[{out}:{out + trace.count}]"
    e.fail_if(f"{e.call('line_function')}({numbers}, {stored}, {filled}, {addresses}) != 0")
    values, k = [], out
    for shape in trace.shapes:
        behind = k + math.prod(shape)
        values.append(named([f"w[{i}]" for i in range(k, behind)]).reshape(shape))
        k = behind
    return values


def _is_of_bdsim(function: Callable[..., Any]) -> bool:
    """Tell whether a function is known to give the same each time: it calls nothing of a user's."""
    return str(function.__module__).startswith(("bdsim.blocks.", "cstormpy.simulation.compiled.bdsim_equations"))


class _Trace:
    """What a method computes, as machine code.

    Attributes
    ----------
    size, count : int
        How many numbers go in and come out.
    shapes : list of tuple
        Those of the parts of the result.
    used : list of (path, index)
        The numbers of the owner that it reads, in their order.
    reads : list of (path, name)
        All attributes that it looks at.
    text : str
        The code, by which it is known.
    """

    def __init__(
        self, owner: Any, method: Callable[..., Any], shapes: Sequence[tuple[int, ...]], readers: Readers
    ) -> None:
        graph = Graph()
        twins = _Twins(graph)
        inputs: list[Any] = []
        self.size = 0
        for shape in shapes:
            count = math.prod(shape)
            nodes = [graph.input("x", self.size + k) for k in range(count)]
            inputs.append(nodes[0] if shape == () else symbols(nodes).reshape(shape))
            self.size += count
        twin = twins.of(owner, (), readers)
        result = _run(lambda: method(twin, *inputs))
        twins.refuse_changes()
        self.reads = sorted(twins.reads)
        parts = list(result) if isinstance(result, (list, tuple)) else [result]
        self.shapes = [np.shape(np.asarray(symbols(part))) for part in parts]
        outputs = [_output(x) for part in parts for x in np.asarray(symbols(part)).ravel()]
        self.count = len(outputs)
        self._build(outputs, twins)

    def _build(self, outputs: list[Any], twins: _Twins) -> None:
        nodes = alive(outputs)
        if len(nodes) > _MOST_OPERATIONS:
            raise Untraceable(f"it takes {len(nodes)} operations")
        inputs = [node for node in nodes if node.primitive is INPUT]
        mine = sorted((node for node in inputs if node.data[0] == "all"), key=lambda node: node.data[1])
        self.used = [twins.places[node.data[1]] for node in mine]
        x = [node for node in inputs if node.data[0] == "x"]
        graph = twins.graph
        directions = {node: graph.input("dx", node.data[1]) for node in x}
        directions |= {node: graph.input("dp", k) for k, node in enumerate(mine)}
        changes = tangents(outputs, directions)
        # only the numbers that are read are handed over: the k-th of them is p[k]
        renamed = {node.index: graph.input("p", k) for k, node in enumerate(mine)}
        outputs, changes = _renamed([outputs, changes], renamed)
        count = len(mine)
        value = Routine("value", {"p": count}, {"x": self.size}, {"y": outputs})
        change = Routine("change", {"p": count, "dp": count}, {"x": self.size, "dx": self.size}, {"dy": changes})
        self.text = text_for_one(value)
        self._change = text_for_one(change)
        self._machines: list[Any] = []
        self._addresses: list[int] = []

    @property
    def addresses(self) -> list[int]:
        """Where the code for the values, and that for their change along a direction, stand."""
        if not self._addresses:
            for name, text in (("value", self.text), ("change", self._change)):
                self._machines.append(machine_for(f"block_{name}", text.encode(), partial(str, text)))
                self._addresses.append(self._machines[-1].address(f"{name}_one"))
        return self._addresses


def _run(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Untraceable:
        raise
    except SymbolicBranch as error:
        raise Untraceable(f"it asks a number that is known only while it runs{_where(error)}") from error
    except Exception as error:
        raise Untraceable(f"{type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """Return the last line of the user's own code that led to an error."""
    import linecache
    import os
    import traceback

    own = [f for f in traceback.extract_tb(error.__traceback__) if not _is_library(f.filename)]
    if not own:
        return ""
    line = linecache.getline(own[-1].filename, own[-1].lineno or 0).strip()
    return f", in line {own[-1].lineno} of {os.path.basename(own[-1].filename)}: {line}"


def _is_library(path: str) -> bool:
    import os

    here = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return path.startswith(os.path.join(here, "graph")) or path == __file__ or "site-packages" in path


def _output(x: Any) -> Any:
    if isinstance(x, Node):
        return x.number()
    if isinstance(x, (bool, int, float, np.number, np.bool_)):
        return float(x)
    raise Untraceable(f"it returns a {type(x).__name__}")


def _renamed(lists: list[list[Any]], renamed: dict[int, Node]) -> list[list[Any]]:
    """Return outputs of which some inputs are others of the same graph."""
    made: dict[int, Any] = dict(renamed)
    for node in alive([x for one in lists for x in one]):
        if node.index not in made:
            args = tuple(made[a.index] if isinstance(a, Node) else a for a in node.args)
            made[node.index] = node if args == () else node.graph.make(node.primitive, args, node.data)
    return [[made[x.index] if isinstance(x, Node) else x for x in one] for one in lists]


# The twin of a block or law ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where a number of an object stands: the names of attributes that lead to it, and its index there."""

    path: tuple[str, ...]
    index: int


class _Twins:
    """Copies of an object, and of those that it is made of, whose numbers are symbols."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places: list[_Place] = []
        self.reads: set[tuple[tuple[str, ...], str]] = set()
        self._made: dict[int, Any] = {}
        self._before: list[tuple[Any, dict[str, Any]]] = []

    def of(self, owner: Any, path: tuple[str, ...], readers: Readers = _NO_READERS) -> Any:
        """Return the twin of an object that stands at the end of a path."""
        if id(owner) in self._made:
            return self._made[id(owner)]
        if isinstance(owner, types.FunctionType):
            return owner
        twin: Any = object.__new__(self._watched(type(owner), path))
        self._made[id(owner)] = twin
        held = object.__getattribute__(twin, "__dict__")
        for name, value in vars(owner).items():
            held[name] = self._twin_of_attribute(value, (*path, name))
        for name, read in readers.items():
            held[name] = self._twin_of_attribute(_as_parameter(read(owner)), (*path, name), any_size=True)
        self._before.append((twin, dict(held)))
        return twin

    def _watched(self, kind: type, path: tuple[str, ...]) -> type:
        """Return a class that notes which attributes of its object are looked at."""
        reads, look_up = self.reads, cast("Callable[[Any, str], Any]", kind.__getattribute__)

        def look(self: Any, name: str) -> Any:
            reads.add((path, name))
            return look_up(self, name)

        return type(kind.__name__, (kind,), {"__getattribute__": look, "__module__": kind.__module__})

    def _twin_of_attribute(self, value: Any, path: tuple[str, ...], any_size: bool = False) -> Any:
        if _is_number(value):
            return self._symbol(path, 0)
        if _is_numbers(value, any_size):
            return symbols([self._symbol(path, k) for k in range(value.size)]).reshape(value.shape)
        return self.of(value, path) if _is_own(value) else value

    def _symbol(self, path: tuple[str, ...], index: int) -> Node:
        self.places.append(_Place(path, index))
        return self.graph.input("all", len(self.places) - 1)

    def refuse_changes(self) -> None:
        """Refuse a method that has changed its object: it remembers what the graph cannot."""
        for twin, before in self._before:
            now = object.__getattribute__(twin, "__dict__")
            for name in {*now, *before}:
                if now.get(name, self) is not before.get(name, self):
                    raise Untraceable(f"it changes {name!r} of its {type(twin).__name__} while it computes")


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


def _is_numbers(value: Any, any_size: bool = False) -> bool:
    plain = type(value) is np.ndarray and value.dtype == np.float64
    return plain and value.size > 0 and (any_size or value.size <= _LARGEST)


def _as_parameter(value: Any) -> Any:
    """Return a number as float, an array of numbers as one of floats, anything else as it is."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return np.asarray(value, dtype=np.float64)
    return value


#: Packages whose objects are no parts of a user's block or law.
_FOREIGN = frozenset({"bdsim", "numpy", "scipy", "numba", "matplotlib", "spatialmath", "ansitable", "colored"})
_ENGINE = ("cstormpy.simulation", "cstormpy.live", "cstormpy.report")


def _is_own(value: Any) -> bool:
    """Tell whether an object is a plain one with attributes, of the user's or of cstormpy's mathematics."""
    kind = type(value)
    if isinstance(value, (type, types.FunctionType, types.MethodType, Mechanism, Node, Symbols)):
        return False
    module = str(kind.__module__)
    top = module.partition(".")[0]
    if top in _FOREIGN or (top in sys.stdlib_module_names and top != "__main__") or module.startswith(_ENGINE):
        return False
    new: Any = kind.__new__
    plain = new is object.__new__ and not hasattr(value, "blockclass")
    return plain and hasattr(value, "__dict__") and bool(kind.__flags__ & _HEAP_TYPE)


#: CPython's flag of classes that are made by a class statement.
_HEAP_TYPE = 1 << 9


def _numbers(owner: Any, used: Sequence[_Place], readers: Readers = _NO_READERS) -> list[float]:
    """Return the numbers of an object as they are now."""
    found: list[float] = []
    path: tuple[str, ...] | None = None
    for place in used:
        if place.path != path:
            path = place.path
            value = _at(owner, path, readers)
            flat = value.ravel().tolist() if isinstance(value, np.ndarray) else [float(value)]
        found.append(flat[place.index])
    return found


def _at(owner: Any, path: Sequence[str], readers: Readers) -> Any:
    """Return what stands at the end of a path of attributes."""
    if len(path) == 1 and path[0] in readers:
        return _as_parameter(readers[path[0]](owner))
    value = owner
    for name in path:
        value = vars(value)[name]
    return value


def _form(owner: Any, reads: Sequence[tuple[tuple[str, ...], str]], readers: Readers = _NO_READERS) -> Any:
    """Return what a trace depends on beside numbers: the code, and what stands in the attributes that it looks at."""
    if isinstance(owner, types.FunctionType):
        return fingerprint([owner])[0]
    parts: list[Any] = [type(owner)]
    for path, name in reads:
        if path == () and name in readers:
            value = _at(owner, (name,), readers)
            parts.append((path, name, np.shape(value) if _is_numbers(value, any_size=True) else _described(value)))
            continue
        held = vars(holder := _at(owner, path, _NO_READERS))
        parts.append((path, name, _described(held[name] if name in held else _of_class(type(holder), name))))
    return tuple(parts)


def _held(value: Any) -> Any:
    """Return what is in a list: its numbers are no parameters, and count by what they are."""
    if _is_number(value):
        return repr(value)
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else _described(value)


class Form:
    """What a trace depends on beside numbers, read anew: the tuple of before, where at a glance nothing has changed.

    Parameters
    ----------
    read : function without arguments
        Gives the owner as it is now.
    reads : sequence of (path, name)
        The attributes that the trace looks at.
    readers : mapping
        Those of its numbers.
    """

    def __init__(
        self, read: Callable[[], Any], reads: Sequence[tuple[tuple[str, ...], str]], readers: Readers = _NO_READERS
    ) -> None:
        self._read, self._reads, self._readers = read, reads, readers
        self._known: Any = None
        self._before: list[tuple[tuple[str, ...], str, Any]] | None = None

    def __call__(self) -> Any:
        """Return the form, by which a trace is known."""
        owner = self._read()
        if self._before is None or not self._is_as_before(owner):
            self._known = _form(owner, self._reads, self._readers)
            self._before = self._glance(owner)
        return self._known

    def _glance(self, owner: Any) -> list[tuple[tuple[str, ...], str, Any]] | None:
        """Return what is to be looked at again; None where a glance would not tell, as of lists and own functions."""
        if isinstance(owner, types.FunctionType):
            return None
        found: list[tuple[tuple[str, ...], str, Any]] = [((), "__class__", type(owner))]
        for path, name in self._reads:
            value = self._now(owner, path, name)
            if value is _OF_ITS_CLASS:
                held = _of_class(type(_at(owner, path, _NO_READERS)), name)
                if not (name.startswith("__") or _is_of_library(held)):
                    return None
            elif not (_is_plain(value) or _is_numbers(value) or (path == () and name in self._readers)):
                return None
            found.append((path, name, value))
        return found

    def _now(self, owner: Any, path: tuple[str, ...], name: str) -> Any:
        if path == () and name in self._readers:
            return _as_parameter(self._readers[name](owner))
        held = vars(owner if path == () else _at(owner, path, _NO_READERS))
        return held.get(name, _OF_ITS_CLASS)

    def _is_as_before(self, owner: Any) -> bool:
        assert self._before is not None
        if type(owner) is not self._before[0][2]:
            return False
        for path, name, before in self._before[1:]:
            now = self._now(owner, path, name)
            if now is before or (type(now) is float and type(before) is float):
                continue
            if not (type(now) is type(before) is np.ndarray and now.shape == before.shape and _is_numbers(now, True)):
                return False
        return True


#: Stands for an attribute that an object does not have by itself.
_OF_ITS_CLASS = object()


def _is_plain(value: Any) -> bool:
    """Tell whether a value is one that never changes."""
    return type(value) in (bool, int, float, str, bytes, type(None))


def _is_of_library(value: Any) -> bool:
    """Tell whether what a class holds is a function of a library, or a plain value."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, types.FunctionType):
        return str(function.__module__).partition(".")[0] in {*_FOREIGN, "cstormpy"}
    return _is_plain(value)


def _of_class(kind: type, name: str) -> Any:
    """Return what a class has by a name, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _described(value: Any) -> Any:
    if _is_number(value):
        return float
    if _is_numbers(value):
        return value.shape
    if isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else value
        return type(value), tuple(_held(item) for item in items)
    if isinstance(value, (bool, int, str, bytes, type(None), frozenset, slice)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, functools.partial):
        return _described(value.func), _described(value.args), _described(value.keywords)
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, types.FunctionType):
        library = str(function.__module__).partition(".")[0] in {*_FOREIGN, "cstormpy"}
        return id(function) if library else fingerprint([function])[0]
    return type(value) if _is_own(value) else id(value)


# Functions of `math` on symbols --------------------------------------------------------------------------

_AS_NUMPY = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "hypot": np.hypot, "fabs": np.abs, "pow": np.power,
    "fmod": np.fmod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
}  # fmt: skip


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
            return plain(items if len(args) == 1 else args, **options) if len(args) == 1 else plain(*args, **options)
        found = items[0]
        for item in items[1:]:
            found = numpy(found, item)
        return found

    return either


_MATH = types.SimpleNamespace(**{**vars(math), **{k: _on_symbols(getattr(math, k), f) for k, f in _AS_NUMPY.items()}})
_OWN = {id(getattr(math, k)): getattr(_MATH, k) for k in _AS_NUMPY} | {id(math): _MATH}


def with_symbolic_math(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a plain function for which `math`, ``max`` and ``min`` take symbols.

    So do those functions of its module that it calls.
    """
    if isinstance(function, functools.partial):
        return functools.partial(with_symbolic_math(function.func), *function.args, **function.keywords)
    function = getattr(function, "py_func", function)  # what numba has compiled
    if id(function) in _OWN:
        return cast("Callable[..., Any]", _OWN[id(function)])
    if not isinstance(function, types.FunctionType):
        return function
    before = function.__globals__
    space = {name: _OWN.get(id(value), value) for name, value in before.items()}
    space.setdefault("max", _chain(np.maximum, max))
    space.setdefault("min", _chain(np.minimum, min))
    for name, value in before.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is before:
            space[name] = _within(value, space)
    return _within(function, space)


def _within(function: types.FunctionType, space: dict[str, Any]) -> types.FunctionType:
    cells = function.__closure__
    if cells is not None:
        cells = tuple(types.CellType(_OWN.get(id(c.cell_contents), c.cell_contents)) for c in cells)
    copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
