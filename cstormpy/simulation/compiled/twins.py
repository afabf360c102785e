"""Twins of objects: copies whose numbers are symbols, for methods that are written down as expression graphs.

Each float of a twin, and each array of floats, is a symbol, and so are the masses, lengths and gravity of a mechanism
that the object holds, and the whole numbers by which its class says that it chooses (`cstormpy.graph.choices`): they
stay inputs of what is written down, and `numbers` reads them anew. A large array is a table (`cstormpy.graph.tables`),
whose numbers are symbols once one asks for them. Everything else of the object (other whole numbers, texts, flags, the
code of its functions) shapes what is written down; `Structure` tells it apart.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cstormpy.dynamics.tracing import LARGEST
from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.nodes import INPUT, TABLE
from cstormpy.graph.tables import Table
from cstormpy.mechanism import Mechanism
from cstormpy.mechanism.symbolic import GRAVITY, SymbolicMechanism
from cstormpy.mechanism.tables import Form, tables_of
from cstormpy.simulation.compiled.fingerprints import fingerprint
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math

__all__ = ["Changed", "Place", "Readers", "Reading", "Structure", "Twins", "described", "moved", "numbers_used"]

#: Arrays with more entries are tables; lists and mappings with more are no parameters: they stay as they are.
_LARGEST = 256
#: What is read of an owner as numbers, by the name of the attribute that the twin has for it.
Readers = Mapping[str, Callable[[Any], Any]]


class Changed(Exception):
    """A method has changed its object while it was written down; the text says what."""


@dataclass(frozen=True)
class _Table:
    """The step from a mechanism to one of the arrays of its tables."""

    name: str


@dataclass(frozen=True)
class Place:
    """Where a number of an object stands: the steps that lead to it, and its index there.

    Of a table the index is its size, negative: it stands for all of it.

    A step is the name of an attribute, the key of an entry of a list, tuple or mapping, or a table of a mechanism.
    """

    path: tuple[Any, ...]
    index: int

    @property
    def count(self) -> int:
        """How many numbers stand there."""
        return max(1, -self.index)

    @property
    def of_mechanism(self) -> bool:
        """Whether it is one of the numbers of a mechanism."""
        return any(isinstance(step, _Table) for step in self.path)


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
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places: list[Place] = []
        self.reads: set[tuple[Path, str]] = set()
        self._forms: list[tuple[Path, Form]] = []
        self.instead: dict[int, Mapping[str, Callable[..., Any]]] = {}
        self._made: dict[int, Any] = {}
        self._before: list[tuple[Any, dict[Any, Any]]] = []

    def of(self, owner: Any, path: Path = (), readers: Readers | None = None) -> Any:
        """Return the twin of an object that stands at the end of a path; readers give further numbers of it."""
        if id(owner) in self._made:
            return self._made[id(owner)]
        if isinstance(owner, types.FunctionType):
            return owner if _is_of_library(owner) else with_symbolic_math(owner)
        if isinstance(owner, Mechanism):
            return self._mechanism(owner, path)
        twin: Any = object.__new__(self._watched(type(owner), path, self.instead.get(id(owner), {})))
        self._made[id(owner)] = twin
        held = object.__getattribute__(twin, "__dict__")
        choices = getattr(type(owner), "choices", ())
        for name, value in vars(owner).items():
            held[name] = self._symbol((*path, name), 0) if name in choices else self._twin_of(value, (*path, name))
        for name, read in (readers or {}).items():
            held[name] = self._twin_of(_as_parameter(read(owner)), (*path, name))
        self._before.append((twin, dict(held)))
        return twin

    def _mechanism(self, mech: Mechanism, path: Path) -> SymbolicMechanism:
        large = mech.n > LARGEST["one", True]  # the kernels, which may be called then, want all of T side by side
        if large:
            whole = f"all[{len(self.places)}]"
            self.places.append(Place((*path, _Table("T")), -tables_of(mech).T.size))

        def number(table: str, index: int) -> Node:
            if large and table == "T":
                return self.graph.input(whole, index, ordinary=index not in GRAVITY)
            return self._symbol((*path, _Table(table)), index, ordinary=True)

        def links() -> Any:
            return tuple(self.of(link, (*path, "links", k)) for k, link in enumerate(mech.links))

        self._forms.append((path, Form.of(mech)))
        made = self._made[id(mech)] = SymbolicMechanism(mech, number, links, GRAVITY if large else ())
        return made

    def _watched(self, kind: type, path: Path, instead: Mapping[str, Callable[..., Any]]) -> type:
        """Return a class that notes which attributes of its object are looked at."""
        reads, look_up = self.reads, cast("Callable[[Any, str], Any]", kind.__getattribute__)

        def look(self: Any, name: str) -> Any:
            reads.add((path, name))
            return look_up(self, name)

        methods = {**_own_methods(kind), **instead, "__getattribute__": look, "__module__": kind.__module__}
        return type(kind.__name__, (kind,), methods)

    def _twin_of(self, value: Any, path: Path) -> Any:
        if _is_number(value):
            return self._symbol(path, 0)
        if _is_numbers(value):
            if value.size > _LARGEST:
                return self._table(value, path)
            return symbols([self._symbol(path, k) for k in range(value.size)]).reshape(value.shape)
        if _is_container(value):
            return self._container(value, path)
        return self.of(value, path) if _is_own(value) or isinstance(value, types.FunctionType) else value

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

    @property
    def mechanisms(self) -> list[Path]:
        """The paths to the mechanisms that were asked."""
        return [path for path, _ in self._forms]

    def fits(self, owner: Any) -> bool:
        """Tell whether what was written down holds for an object too, with other numbers."""
        return all(form.fits(_at(owner, path, {})) for path, form in self._forms)

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
                    of = "a list or mapping of it" if plain else f"its {type(twin).__name__}"
                    raise Changed(f"it changes {name!r} of {of} while it computes")


def _entries(made: Any) -> dict[Any, Any]:
    return dict(made) if isinstance(made, dict) else dict(enumerate(made))


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


def _is_numbers(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == np.float64 and value.size > 0


def _as_parameter(value: Any) -> Any:
    """Return a number as float, an array of numbers as one of floats, anything else as it is."""
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return np.asarray(value, dtype=np.float64)
    return value


def _is_of_library(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] in {*_FOREIGN, "cstormpy"}


def _own_methods(kind: type) -> dict[str, Any]:
    """Return the methods of a class that somebody has written, such that `math` takes symbols in them."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, types.FunctionType) and not _is_of_library(value) and base.__module__ != "builtins":
                found[name] = with_symbolic_math(value)
            elif callable(value) or name in found:
                found.pop(name, None)  # it is that of a class behind it no longer
    return {name: value for name, value in found.items() if not name.startswith("__") or name == "__call__"}


def _is_container(value: Any) -> bool:
    """Tell whether something is a list, tuple or mapping that holds numbers, or objects that may."""
    if type(value) not in (list, tuple, dict) or not 0 < len(value) <= _LARGEST:
        return False
    entries = value.values() if type(value) is dict else value
    return any(_is_number(x) or _is_numbers(x) or _is_own(x) or _is_container(x) for x in entries)


#: Packages whose objects are no parts of a user's block or law.
_FOREIGN = frozenset({"bdsim", "numpy", "scipy", "numba", "matplotlib", "spatialmath", "ansitable", "colored"})
_ENGINE = ("cstormpy.simulation", "cstormpy.live", "cstormpy.report")


def _is_own(value: Any) -> bool:
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


# What an object holds now ---------------------------------------------------------------------------------


def _at(owner: Any, path: Path, readers: Readers) -> Any:
    """Return what stands at the end of a path."""
    if len(path) == 1 and path[0] in readers:
        return _as_parameter(readers[path[0]](owner))
    for step in path:
        if isinstance(step, _Table):
            owner = getattr(tables_of(owner), step.name)
        elif isinstance(owner, (list, tuple, dict)):
            owner = owner[step]
        else:
            owner = vars(owner)[step]
    return owner


class Reading:
    """The numbers of an object, read anew each time that it is called.

    Parameters
    ----------
    owner : object
    places : sequence of Place
    readers : mapping, optional
    """

    def __init__(self, owner: Any, places: Sequence[Place], readers: Readers | None = None) -> None:
        self._owner, self._readers = owner, dict(readers or {})
        self._groups = [(path, [p.index for p in group]) for path, group in groupby(places, lambda p: p.path)]
        self._plan()

    def _plan(self) -> None:
        """Note where the numbers are held now."""
        plain = [path for path, _ in self._groups if not (len(path) == 1 and path[0] in self._readers)]
        tables = {path for path in plain if isinstance(path[-1], _Table)}
        self._links = _Links(self._owner, {path[:-1] for path in plain})
        self._steps: list[tuple[Any, Any, list[int]]] = []
        for path, indices in self._groups:
            holder = _at(self._owner, path[:-1], {})
            if path in tables:
                self._steps.append((holder, path[-1], indices))
            elif path not in plain:
                self._steps.append((self._readers[path[0]], None, indices))
            else:
                inside = holder if isinstance(holder, (list, tuple, dict)) else vars(holder)
                self._steps.append((inside, path[-1], indices))

    def __call__(self) -> NDArray[np.float64]:
        """Return them as an array."""
        if not self._links.hold():
            self._plan()
        found: list[float] = []
        for holder, step, indices in self._steps:
            if step is None:
                value = _as_parameter(holder(self._owner))
            elif step.__class__ is _Table:
                value = getattr(tables_of(holder), step.name)
            else:
                value = holder[step]
            if value.__class__ is float:
                found.append(value)
                continue
            flat = np.ravel(value)
            found += flat.tolist() if indices[0] < 0 else flat[indices].tolist()
        return np.array(found, dtype=np.float64)


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


def moved(nodes: Iterable[Node], begins: Mapping[int, int], name: str) -> dict[Node, Node]:
    """Return for each node that reads numbers what reads them in an array of that name, where places begin as said."""
    found = {}
    for node in nodes:
        if node.primitive is INPUT or node.primitive is TABLE:
            array, first = node.data[:2]
            if array.startswith("all["):
                first += begins[int(array[4:-1])]
            elif array == "all":
                first = begins[first]
            else:
                continue
            graph = node.graph
            if node.primitive is TABLE:
                found[node] = graph.make(TABLE, (), (name, first, node.data[2]))
            else:
                found[node] = graph.input(name, first)
    return found


class Structure:
    """What methods of an object depend on beside its numbers: what they look at, as it was when they did.

    Parameters
    ----------
    owner : object
    twins : Twins
        Whose methods were written down.
    readers : mapping, optional
    rules : sequence of functions
        What was written down of it.
    """

    def __init__(
        self, owner: Any, twins: Twins, readers: Readers | None = None, rules: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self._owner, self._fits, self._readers = owner, twins.fits, dict(readers or {})
        self._rules = [(rule, described(rule)) for rule in rules if not _stays(rule)]
        self._read = {
            name: described(_at(owner, (name,), self._readers))
            for path, name in twins.reads
            if path == () and name in self._readers
        }
        groups: dict[Path, list[str]] = {}
        for path, name in twins.reads:
            if path != () or name not in self._readers:
                groups.setdefault(path, []).append(name)
        self._groups = [_Seen(path, _at(owner, path, {}), names) for path, names in groups.items()]
        self._mechanisms = twins.mechanisms
        self._look_closely()

    def holds(self) -> bool:
        """Tell whether all of that is still as it was: at a glance, or else by looking closely."""
        if not (self._links.hold() and all(glance.holds() for glance in self._glances)):
            owner = self._owner
            if not (all(group.holds(_at(owner, group.path, {})) for group in self._groups) and self._fits(owner)):
                return False
            self._look_closely()
        return all(described(_at(self._owner, (k,), self._readers)) == seen for k, seen in self._read.items()) and all(
            described(rule) == seen for rule, seen in self._rules
        )

    def _look_closely(self) -> None:
        """Note what is to be the same object as now for nothing to have changed."""
        owner = self._owner
        self._links = _Links(owner, [*(group.path for group in self._groups), *self._mechanisms])
        self._glances = [_Glance(_at(owner, group.path, {}), group) for group in self._groups]


class _Links:
    """The steps of some paths from an object, each with what stands at its end.

    Attributes
    ----------
    ends : dict of path to (mapping or sequence, key)
        What holds the last step of each path.
    """

    def __init__(self, owner: Any, paths: Iterable[Path]) -> None:
        self._links: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self.ends: dict[Path, tuple[Any, Any]] = {}
        for path in paths:
            value = owner
            for step in path:
                holder = value if isinstance(value, (list, tuple, dict)) else vars(value)
                value = holder[step]
                self._links[id(holder), step] = (holder, step, value)
                self.ends[path] = holder, step
        self._all = list(self._links.values())

    def hold(self) -> bool:
        """Tell whether the same objects stand there."""
        try:
            return all(holder[step] is value for holder, step, value in self._all)
        except LookupError:
            return False


_NOWHERE = object()


class _Seen:
    """Some attributes of one object, as they were."""

    def __init__(self, path: Path, holder: Any, names: Iterable[str]) -> None:
        self.path, self.kind, held = path, type(holder), vars(holder)
        unseen = {"__class__", "__dict__", *getattr(self.kind, "choices", ())}
        names = [name for name in names if name not in unseen]
        #: Name and what is seen of it.
        self.own = [(name, described(held[name])) for name in names if name in held]
        self.of_class = [(name, described(_of_class(self.kind, name))) for name in names if name not in held]

    def holds(self, holder: Any) -> bool:
        """Tell whether they are as they were."""
        if type(holder) is not self.kind:
            return False
        held = vars(holder)
        if any(name not in held or described(held[name]) != seen for name, seen in self.own):
            return False
        return all(name not in held and described(_of_class(self.kind, name)) == seen for name, seen in self.of_class)


class _Glance:
    """Attributes of one object, of which most are as they were if they are the same objects."""

    def __init__(self, holder: Any, seen: _Seen) -> None:
        self._holder, self._kind, self._held = holder, type(holder), vars(holder)
        held = self._held
        names = [name for name, _ in seen.own if type(held[name]) is not float]
        self._same = [(name, held[name]) for name in names if _stays(held[name])]
        self._floats = [name for name, _ in seen.own if type(held[name]) is float]
        loose = [(name, held[name], what) for name, what in seen.own if not _stays(held[name])]
        #: Lists and mappings with what they hold, and what has to be described.
        self._lists = [(name, value, _entries_of(value)) for name, value, _ in loose if _holds_what_stays(value)]
        self._loose = [(name, what) for name, value, what in loose if not _holds_what_stays(value)]
        kind = self._kind
        of_class = [(name, getattr(kind, name, None), what) for name, what in seen.of_class]
        same = {name for name, value, _ in of_class if _stays(value) and getattr(kind, name, None) is value}
        self._class = [(name, value) for name, value, _ in of_class if name in same]
        self._loose_of_class = [(name, what) for name, _, what in of_class if name not in same]

    def holds(self) -> bool:
        """Tell whether a glance says that nothing has changed."""
        held, kind = self._held, self._kind
        if type(self._holder) is not kind or vars(self._holder) is not held:
            return False
        for name, value in self._same:
            if held.get(name, _NOWHERE) is not value:
                return False
        for name in self._floats:
            if type(held.get(name)) is not float:
                return False
        for name, value in self._class:
            if name in held or getattr(kind, name, None) is not value:
                return False
        for name, value, entries in self._lists:
            if held.get(name) is not value or not _are_same(_entries_of(value), entries):
                return False
        for name, what in self._loose:
            if name not in held or described(held[name]) != what:
                return False
        return all(name not in held and described(_of_class(kind, name)) == what for name, what in self._loose_of_class)


def _entries_of(value: Any) -> list[Any]:
    """Return all that lists and mappings hold, those in one another too, with how much each holds."""
    found: list[Any] = []
    for entry in [*value, *value.values()] if isinstance(value, dict) else value:
        if type(entry) in (list, tuple, dict):
            found += [type(entry), len(entry), *_entries_of(entry)]
        else:
            found.append(entry)
    return found


def _are_same(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _holds_what_stays(value: Any) -> bool:
    return type(value) in (list, tuple, dict) and all(map(_stays, _entries_of(value)))


def _stays(value: Any) -> bool:
    """Tell whether nothing that is seen of a value can change as long as it is the same object."""
    if type(value) is tuple:
        return all(map(_stays, value))
    if isinstance(value, (list, tuple, dict, functools.partial)):
        return False
    if isinstance(value, np.ndarray):
        return _is_numbers(value)
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return not isinstance(function, types.FunctionType) or _is_of_library(function)


def _of_class(kind: type, name: str) -> Any:
    """Return what a class has by a name, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _held(value: Any) -> Any:
    """Return what is in a list whose numbers are no parameters: they count by what they are."""
    if _is_number(value):
        return repr(value)
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else described(value)


def described(value: Any) -> Any:
    """Return what is seen of an attribute beside numbers."""
    if isinstance(value, Mechanism):
        return Mechanism  # see `Twins.fits`
    if _is_number(value):
        return float
    if _is_numbers(value):
        return value.shape
    if isinstance(value, (list, tuple, dict)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        seen = described if _is_container(value) else _held
        return type(value), tuple((k, seen(x)) for k, x in entries)
    if isinstance(value, (bool, int, str, bytes, type(None), frozenset, slice)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, functools.partial):
        return described(value.func), [*map(_held, value.args)], {k: _held(x) for k, x in value.keywords.items()}
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, types.FunctionType):
        return id(function) if _is_of_library(function) else fingerprint([function])[0]
    return type(value) if _is_own(value) else id(value)
