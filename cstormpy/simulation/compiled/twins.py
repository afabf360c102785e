"""Twins of objects: copies whose numbers are symbols, for methods that are written down as expression graphs.

Each float of a twin, and each array of floats, is a symbol, and so are the masses, lengths and gravity of a mechanism
that the object holds, and the whole numbers by which its class says that it chooses (`cstormpy.graph.choices`): they
stay inputs of what is written down, and `readings` finds them anew. A large array is a table (`cstormpy.graph.tables`),
whose numbers are symbols once one asks for them. Everything else of the object (other whole numbers, texts, flags, the
code of its functions) shapes what is written down; `structures` tells it apart.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from bdsim.components import Block

from cstormpy.dynamics.tracing import LARGEST
from cstormpy.graph import Graph, Node, SymbolicBranch
from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.nodes import INPUT, TABLE
from cstormpy.graph.tables import Table
from cstormpy.linkage.tables import NUMBERS, Form, Tables, numbers_of, tables_of
from cstormpy.mechanism import Mechanism
from cstormpy.mechanism.symbolic import GRAVITY, SymbolicMechanism
from cstormpy.simulation.compiled.fingerprints import is_by_identity
from cstormpy.simulation.compiled.symbolic_math import WATCHED, with_symbolic_math

#: Arrays with more entries are tables; lists and mappings with more are no parameters: they stay as they are.
_LARGEST = 256
#: What is read of an owner as numbers, by the name of the attribute that the twin has for it.
Readers = Mapping[str, Callable[[Any], Any]]


class Changed(Exception):
    """A method has changed its object while it was written down; the text says what."""


class TableStep(NamedTuple):
    """The step from a mechanism to one of the arrays of its numbers."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Place:
    """Place of a number of an object: the steps that lead to it, and its index there.

    Of a table the index is its size, negative: it stands for all of it.

    A step is the name of an attribute, the key of an entry of a list, tuple or mapping, or a table of a mechanism.
    """

    path: tuple[Any, ...]
    index: int

    @property
    def count(self) -> int:
        """Count of the numbers that stand there."""
        return max(1, -self.index)

    @property
    def of_mechanism(self) -> bool:
        """True of one of the numbers of a mechanism."""
        return isinstance(self.path[-1], TableStep)


Path = tuple[Any, ...]


class Twins:
    """Copies of an object, and of those that it is made of, whose numbers are symbols of one graph.

    Attributes
    ----------
    places : list of Place
        Where the number stands that the input ``all[k]`` is, or the table whose numbers are the inputs ``all[k][...]``.
    instead : dict of int to dict
        Methods that stand in the place of those of some objects, by the `id` of the object and their names.
    reads : set of (path, name)
        All attributes that were looked at.
    forms : list of (path, Form)
        Of which form the mechanisms were, by the paths to them.
    shared : list
        What is no twin, or reaches what is none: functions, classes and objects of others.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places: list[Place] = []
        self.reads: set[tuple[Path, str]] = set()
        self.shared: list[Any] = []
        self.forms: list[tuple[Path, Form]] = []
        self.instead: dict[int, Mapping[str, Callable[..., Any]]] = {}
        self._made: dict[int, Any] = {}
        self._before: list[tuple[Any, dict[Any, Any]]] = []
        self._arrays: list[tuple[Any, Symbols, list[Any]]] = []
        self._owners: dict[Path, Any] = {}
        #: What was looked at and found to be this package's own, and what is known of classes.
        self._ours: set[tuple[Path, str]] = set()
        self._known: dict[Any, bool] = {}

    def of(self, owner: Any, path: Path = (), readers: Readers | None = None) -> Any:
        """Return the twin of an object that stands at the end of a path; readers give further numbers of it."""
        if id(owner) in self._made:
            return self._made[id(owner)]
        if isinstance(owner, types.FunctionType):
            if is_of_library(owner):
                return owner
            self.shared.append(owner)
            return with_symbolic_math(owner)
        if isinstance(owner, Mechanism):
            return self._mechanism(owner, path)
        if not _is_of_ours(type(owner)):
            self.shared.append(type(owner))
        twin: Any = object.__new__(self._watched(type(owner), path, self.instead.get(id(owner), {})))
        self._made[id(owner)] = twin
        self._owners[path] = owner
        held = object.__getattribute__(twin, "__dict__")
        choices = getattr(type(owner), "choices", ())
        computed = "memo" if isinstance(owner, Tables) else None  # of the numbers as they are now
        for name, value in vars(owner).items():
            if name == computed:
                held[name] = {}
                continue
            held[name] = self._symbol((*path, name), 0) if name in choices else self._twin_of(value, (*path, name))
        for name, read in (readers or {}).items():
            held[name] = self._twin_of(as_parameter(read(owner)), (*path, name))
        self._before.append((twin, dict(held)))
        return twin

    def _mechanism(self, mech: Mechanism, path: Path) -> SymbolicMechanism:
        large = mech.n > LARGEST["diagram", True]  # the kernels, which may be called then, want all of T side by side
        if large:
            whole = f"all[{len(self.places)}]"
            self.places.append(Place((*path, TableStep("T")), -tables_of(mech.tree).T.size))

        paths = {name: (*path, TableStep(name)) for name in NUMBERS}

        def number(table: str, index: int) -> Node:
            if large and table == "T":
                return self.graph.input(whole, index, ordinary=index not in GRAVITY)
            return self._symbol(paths[table], index, ordinary=True)

        def links() -> Any:
            return tuple(self.of(link, (*path, "links", k)) for k, link in enumerate(mech.links))

        self.forms.append((path, Form.of(mech)))
        made = self._made[id(mech)] = SymbolicMechanism(mech, number, links, GRAVITY if large else ())
        return made

    def _watched(self, kind: type, path: Path, instead: Mapping[str, Callable[..., Any]]) -> type:
        """Return a class that notes which attributes of its object are looked at."""
        reads, look_up = self.reads, cast("Callable[[Any, str], Any]", kind.__getattribute__)
        users = not _is_of_ours(kind)

        def look(self: Any, name: str) -> Any:
            reads.add((path, name))
            found = kind if name == "__class__" else look_up(self, name)
            if users and isinstance(found, Block):
                raise SymbolicBranch("it reads a block, whose numbers may be set")
            return found

        methods = {**_own_methods(kind), **instead, "__getattribute__": look, "__module__": kind.__module__}
        methods[WATCHED] = kind
        return type(kind.__name__, (kind,), methods)

    def _twin_of(self, value: Any, path: Path) -> Any:
        if type(value) in _FIXED:  # most of what a block holds
            return value
        if is_number(value):
            return self._symbol(path, 0)
        if is_numbers(value):
            if value.size > _LARGEST:
                return self._table(value, path)
            made = symbols([self._symbol(path, k) for k in range(value.size)])
            self._arrays.append((path[-1], made, made.tolist()))
            return made.reshape(value.shape)
        if is_container(value):
            return self._container(value, path)
        if is_own(value) or isinstance(value, types.FunctionType):
            return self.of(value, path)
        if not (isinstance(value, _PLAIN) or is_by_identity(value) or self._is_bookkeeping(value, path)):
            self.shared.append(value)
        return value

    def _is_bookkeeping(self, value: Any, path: Path) -> bool:
        """Tell whether a value is a list or mapping that an object of this package, or bdsim, keeps for itself."""
        if type(value) not in (list, tuple, dict, set):
            return False
        depth = next(k for k in range(len(path) - 1, -1, -1) if path[:k] in self._owners)
        kind = type(self._owners[path[:depth]])
        return str(kind.__module__).startswith("cstormpy.") or (path[depth] in _WIRING and hasattr(kind, "blockclass"))

    def _table(self, value: Any, path: Path) -> Table:
        name = f"all[{len(self.places)}]"
        self.places.append(Place(path, -value.size))
        return Table(lambda k: self.graph.input(name, k), value.shape)

    def _container(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            made: Any = {key: self._twin_of(entry, (*path, key)) for key, entry in value.items()}
        else:
            made = [self._twin_of(entry, (*path, k)) for k, entry in enumerate(value)]
        if not isinstance(value, tuple):
            self._before.append((made, _entries(made)))
            return made
        return tuple(made)

    def _symbol(self, path: Path, index: int, *, ordinary: bool = False) -> Node:
        self.places.append(Place(path, index))
        return self.graph.input("all", len(self.places) - 1, ordinary=ordinary)

    def are_ours(self) -> bool:
        """Tell whether all that was looked at is this package's own, which gives the same each time it is asked."""
        owners, known, more = self._owners, self._known, self.reads - self._ours
        ours = all(_is_ours(owners[path], name, known) for path, name in more)
        if ours:
            self._ours |= more
        return ours

    def read_by(self, names: set[str]) -> list[Any]:
        """Return the blocks, diagrams and the like that the objects hold by some names."""
        held = [item for owner in self._owners.values() for item in vars(owner).items()]
        return [value for name, value in held if name in names and is_by_identity(value)]

    def refuse_changes(self) -> None:
        """Refuse a method that has changed its object, as it remembers what a graph cannot.

        Raises
        ------
        Changed
        """
        for twin, before in self._before:
            plain = isinstance(twin, (list, dict))
            now = _entries(twin) if plain else object.__getattribute__(twin, "__dict__")
            for name in {*now, *before}:
                if now.get(name, self) is not before.get(name, self):
                    what = (
                        f"[{name!r}] of a list or mapping of it" if plain else f"{name!r} of its {type(twin).__name__}"
                    )
                    raise Changed(f"it changes {what} while it computes")
        for name, array, items in self._arrays:
            if any(a is not b for a, b in zip(array.tolist(), items, strict=True)):
                array[:] = items
                raise Changed(f"it writes into {name!r}, an array of its own, while it computes")


def _is_ours(owner: Any, name: str, known: dict[Any, bool]) -> bool:
    """Tell whether what an object has by a name can be told from what this package wrote: no function of others.

    `known` keeps what was found of classes, and of what they have by a name.
    """
    kind, held = type(owner), vars(owner)
    ours = known.get(kind)
    if ours is None:
        ours = known[kind] = all(map(_is_of_ours, kind.__mro__))
    if not ours or name in held:
        return ours and _is_known(held[name])
    ours = known.get((kind, name))
    if ours is None:
        ours = known[kind, name] = _is_known(
            next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        )
    return ours


def _is_known(value: Any) -> bool:
    if isinstance(value, (property, staticmethod, classmethod)):
        value = value.fget if isinstance(value, property) else value.__func__
    if isinstance(value, types.FunctionType):
        return _is_of_ours(value) and not value.__closure__
    if type(value) in (list, tuple, dict, set, frozenset):
        return len(value) <= _LARGEST and all(map(_is_known, value.values() if type(value) is dict else value))
    if isinstance(value, Mechanism):
        return not value.loops  # among which constraints of others may be
    if isinstance(value, np.ndarray):
        return value.dtype != object
    return isinstance(value, _PLAIN) or (is_own(value) and _is_of_ours(type(value)))


_PLAIN = (
    type(None), bool, int, float, str, bytes, slice, range, np.generic,
    types.GetSetDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip


#: What stays as it is, whatever holds it.
_FIXED = frozenset({type(None), bool, int, str})


def _is_of_ours(something: Any) -> bool:
    module = str(something.__module__)
    return module.startswith(("cstormpy.", "bdsim.blocks.")) or module in _BASES


#: Modules of the classes from which this package's derive.
_BASES = frozenset({"builtins", "abc", "typing", "bdsim.block", "bdsim.components", "bdsim.connect"})
#: What bdsim notes of a block's name, ports, wires and parameters.
_WIRING = frozenset(
    "_inport_names, _inport_slots, _input_wires, _outport_names, _outport_slots, _output_values, _output_wires, "
    "_parameters, _parents, _state_names".split(", ")
)


def _entries(made: Any) -> dict[Any, Any]:
    return dict(made) if isinstance(made, dict) else dict(enumerate(made))


def is_number(value: Any) -> bool:
    """Tell whether a value is a float, which stays an input."""
    return isinstance(value, (float, np.floating))


def is_numbers(value: Any) -> bool:
    """Tell whether a value is an array of floats, which stay inputs."""
    return type(value) is np.ndarray and value.dtype == np.float64 and value.size > 0


def as_parameter(value: Any) -> Any:
    """Return a number as float, an array of numbers as one of floats, anything else as it is."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return np.asarray(value, dtype=np.float64)
    return value


def is_of_library(function: Any) -> bool:
    """Tell whether a function is one of an installed package's, whose code does not change."""
    return str(function.__module__).partition(".")[0] in _LIBRARY


def _own_methods(kind: type) -> dict[str, Any]:
    """Return the methods of a class that somebody has written, such that `math` takes symbols in them."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if not found and is_of_library(base):
            continue
        builtin = base.__module__ == "builtins"
        for name, value in vars(base).items():
            function = _function_of(value)
            if function is not None and not builtin and not is_of_library(function):
                found[name] = _like(value, with_symbolic_math(function))
            elif found:
                found.pop(name, None)  # it is that of a class behind it no longer
    return {name: value for name, value in found.items() if not name.startswith("__") or name == "__call__"}


def _function_of(value: Any) -> types.FunctionType | None:
    """Return the function behind a method or a property; None where there is none."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    return value if isinstance(value, types.FunctionType) else None


def _like(value: Any, function: Callable[..., Any]) -> Any:
    """Return a function as a method of that kind, or as a property."""
    if isinstance(value, property):
        return property(function, value.fset, value.fdel)
    return type(value)(function) if isinstance(value, (staticmethod, classmethod)) else function


def is_container(value: Any) -> bool:
    """Tell whether something is a list, tuple or mapping that holds numbers, or objects that may."""
    if type(value) not in (list, tuple, dict) or not 0 < len(value) <= _LARGEST:
        return False
    entries = value.values() if type(value) is dict else value
    return any(is_number(x) or is_numbers(x) or is_own(x) or is_container(x) for x in entries)


#: Packages whose objects are no parts of a user's block or law.
_FOREIGN = frozenset({"bdsim", "numpy", "scipy", "numba", "matplotlib", "spatialmath", "ansitable", "colored"})
_LIBRARY = _FOREIGN | {"cstormpy"}
_ENGINE = ("cstormpy.simulation", "cstormpy.live", "cstormpy.report")


def is_own(value: Any) -> bool:
    """Tell whether an object is a plain one with attributes, of the user's or of cstormpy's mathematics."""
    kind = type(value)
    if isinstance(value, (type, types.FunctionType, types.MethodType, Node, Symbols)):
        return False
    if isinstance(value, Mechanism):
        return True
    module = str(kind.__module__)
    top = module.partition(".")[0]
    if top in _FOREIGN or (top in sys.stdlib_module_names and top != "__main__") or module.startswith(_ENGINE):
        return False
    new: Any = kind.__new__
    plain = new is object.__new__ and not hasattr(value, "blockclass")
    return plain and hasattr(value, "__dict__") and bool(kind.__flags__ & _HEAP_TYPE)


#: CPython's flag of classes that are made by a class statement.
_HEAP_TYPE = 1 << 9


def numbers_used(nodes: Iterable[Node]) -> list[int]:
    """Return which places some nodes read, by their numbers."""
    found: set[int] = set()
    for node in nodes:
        if node.primitive is INPUT or node.primitive is TABLE:
            name, first = node.data[:2]
            if name.startswith("all["):
                found.add(int(name[4:-1]))
            elif name == "all":
                found.update(range(first, first + (node.data[2] if node.primitive is TABLE else 1)))
    return sorted(found)


def readers_of_numbers(nodes: Iterable[Node], begins: Mapping[int, int]) -> Iterator[tuple[Node, int]]:
    """Yield each node that reads numbers, and where these begin in an array of all, where places begin as said."""
    for node in nodes:
        if node.primitive is INPUT or node.primitive is TABLE:
            array, first = node.data[:2]
            if array.startswith("all["):
                yield node, first + begins[int(array[4:-1])]
            elif array == "all":
                yield node, begins[first]


def value_at(owner: Any, path: Path) -> Any:
    """Return what stands at the end of a path."""
    for step in path:
        if isinstance(step, TableStep):
            owner = numbers_of(owner, step.name)
        elif isinstance(owner, (list, tuple, dict)):
            owner = owner[step]
        else:
            owner = vars(owner)[step]
    return owner
