"""What methods that were written down depend on beside numbers, and whether that is still as it was.

An object is looked at twice. `described` says what is seen of a value, whatever it costs; two values of which the same
is seen are alike for what was written down. In each run it is first looked at a glance: where everything that was
looked at is the very object that it was, and cannot have changed as long as it is that, nothing has to be described.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import Any

import numpy as np

from cstormpy.graph.identity import ABSENT, Entries, of_type
from cstormpy.mechanism import Mechanism
from cstormpy.simulation.compiled.fingerprints import fingerprint
from cstormpy.simulation.compiled.twins import (
    Path,
    Readers,
    Twins,
    is_container,
    is_number,
    is_numbers,
    is_of_library,
    is_own,
    value_at,
)

__all__ = ["Holders", "Structure", "described", "getter"]


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
            name: described(value_at(owner, (name,), self._readers))
            for path, name in twins.reads
            if path == () and name in self._readers
        }
        groups: dict[Path, list[str]] = {}
        for path, name in twins.reads:
            if path != () or name not in self._readers:
                groups.setdefault(path, []).append(name)
        self._groups = [_Seen(path, value_at(owner, path, {}), names) for path, names in groups.items()]
        self._mechanisms = twins.mechanisms
        self._glance = _Glance(owner, self._groups, self._mechanisms)

    def holds(self) -> bool:
        """Tell whether all of that is still as it was: at a glance, or else by looking closely."""
        owner = self._owner
        if not self._glance.holds():
            if not (all(group.holds(value_at(owner, group.path, {})) for group in self._groups) and self._fits(owner)):
                return False
            self._glance = _Glance(owner, self._groups, self._mechanisms)
        for name, seen in self._read.items():
            if described(value_at(owner, (name,), self._readers)) != seen:
                return False
        return all(described(rule) == seen for rule, seen in self._rules)


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


def getter(keys: Sequence[Any], of: Callable[..., Any] = itemgetter) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the entries of a list or mapping by their keys as a tuple, one alone twice."""
    found: Callable[[Any], tuple[Any, ...]] = of(*keys) if len(keys) > 1 else of(*keys, *keys)
    return found


class Holders:
    """Lists and mappings, and what stands in them by some keys: the same objects as when this was made."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        #: Objects whose attributes are looked at, and the mappings that hold these.
        self._objects: dict[int, Any] = {}
        self._helds: list[Any] = []

    def attributes(self, owner: Any) -> dict[str, Any]:
        """Return the mapping that holds an object's attributes, which is to be the same too."""
        self._objects[id(owner)] = owner
        return vars(owner)

    def add(self, holder: Any, key: Any, value: Any) -> None:
        """Look at an entry of a list or mapping too, where a value stands now; a tuple keeps its own by itself.

        The value may be `ABSENT`, or `of_type`.
        """
        if type(holder) is not tuple:
            self._found[id(holder), key] = holder, key, value

    def follow(self, owner: Any, path: Path) -> Any:
        """Look at each step of a path from an object; return what stands at its end."""
        for step in path:
            holder = owner if isinstance(owner, (list, tuple, dict)) else self.attributes(owner)
            owner = holder[step]
            self.add(holder, step, owner)
        return owner

    def settle(self) -> None:
        """Be ready to `hold`: all entries have been added."""
        self._helds = [vars(each) for each in self._objects.values()]
        self._in_lists = [entry for entry in self._found.values() if type(entry[0]) is not dict]
        self._entries = Entries([entry for entry in self._found.values() if type(entry[0]) is dict])

    def hold(self) -> bool:
        """Tell whether the same objects stand there, or other arrays of as many numbers, which are noted."""
        if not all(map(is_, map(vars, self._objects.values()), self._helds)):
            return False
        try:
            if not all([holder[key] is value for holder, key, value in self._in_lists]):
                return False
        except LookupError:
            return False
        return self._entries.hold() or self._entries.take(_like_arrays)


def _like_arrays(value: Any, before: Any) -> bool:
    return is_numbers(value) and is_numbers(before) and value.shape == before.shape


class _Glance:
    """Attributes of some objects, of which most are as they were if they are the same objects.

    Parameters
    ----------
    owner : object
        From which the others are found.
    groups : sequence of _Seen
    mechanisms : sequence of paths
    """

    def __init__(self, owner: Any, groups: Sequence[_Seen], mechanisms: Sequence[Path]) -> None:
        self._same = Holders()
        for path in mechanisms:
            self._same.follow(owner, path)
        self._objects: list[Any] = [self._same.follow(owner, group.path) for group in groups]
        self._kinds: list[Any] = [*map(type, self._objects)]
        helds = [self._same.attributes(each) for each in self._objects]
        #: Lists, and mappings, with what they hold, the keys too.
        self._lists: list[tuple[list[Any], list[Any]]] = []
        self._mappings: list[tuple[dict[Any, Any], list[Any]]] = []
        #: What has to be described, of an object and of its class.
        self._loose: list[tuple[dict[str, Any], str, Any]] = []
        self._loose_of_class: list[tuple[type, str, Any]] = []
        #: By class the attributes that its objects have from it.
        of_class: dict[type, dict[str, Any]] = {}
        for held, group in zip(helds, groups, strict=True):
            self._take_own(held, group)
            self._take_inherited(held, group, of_class.setdefault(group.kind, {}))
        self._of_class = [
            (kind, getter([*names], attrgetter), [*names.values()] * (1 + (len(names) == 1)))
            for kind, names in of_class.items()
            if names
        ]
        self._same.settle()

    def _take_own(self, held: dict[str, Any], group: _Seen) -> None:
        for name, what in group.own:
            value = held[name]
            if type(value) is float:
                self._same.add(held, name, of_type(float))
            elif _stays(value):
                self._same.add(held, name, value)
            elif _holds_what_stays(value):
                self._same.add(held, name, value)
                self._take_entries(value)
            else:
                self._loose.append((held, name, what))

    def _take_entries(self, value: Any) -> None:
        """Look at what lists and mappings hold, those in one another too."""
        if type(value) is list:
            self._lists.append((value, [*value]))
        elif type(value) is dict:
            self._mappings.append((value, [*value, *value.values()]))
        for entry in value.values() if type(value) is dict else value:
            if type(entry) in (list, tuple, dict):
                self._take_entries(entry)

    def _take_inherited(self, held: dict[str, Any], group: _Seen, same: dict[str, Any]) -> None:
        kind = group.kind
        for name, what in group.of_class:
            self._same.add(held, name, ABSENT)
            value = getattr(kind, name, ABSENT)
            if value is not ABSENT and _stays(value) and getattr(kind, name) is value:
                same[name] = value
            else:
                self._loose_of_class.append((kind, name, what))

    def holds(self) -> bool:
        """Tell whether a glance says that nothing has changed."""
        if not (self._same.hold() and all(map(is_, map(type, self._objects), self._kinds))):
            return False
        try:
            for kind, get, before in self._of_class:
                if not all(map(is_, get(kind), before)):
                    return False
        except AttributeError:
            return False
        return self._hold_the_rest()

    def _hold_the_rest(self) -> bool:
        for value, before in self._lists:
            if len(value) != len(before) or not all(map(is_, value, before)):
                return False
        for mapping, before in self._mappings:
            if 2 * len(mapping) != len(before) or not all(map(is_, chain(mapping, mapping.values()), before)):
                return False
        for held, name, what in self._loose:
            if name not in held or described(held[name]) != what:
                return False
        return all(described(_of_class(kind, name)) == what for kind, name, what in self._loose_of_class)


def _holds_what_stays(value: Any) -> bool:
    """Tell whether a list, tuple or mapping, and those in it, hold nothing that may change by itself."""
    if type(value) not in (list, tuple, dict):
        return False
    entries = value.values() if type(value) is dict else value
    return all(_holds_what_stays(x) if type(x) in (list, tuple, dict) else _stays(x) for x in entries)


def _stays(value: Any) -> bool:
    """Tell whether nothing that is seen of a value can change as long as it is the same object."""
    if type(value) is tuple:
        return all(map(_stays, value))
    if isinstance(value, (list, tuple, dict, functools.partial)):
        return False
    if isinstance(value, np.ndarray):
        return is_numbers(value)
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return not isinstance(function, types.FunctionType) or is_of_library(function)


def _of_class(kind: type, name: str) -> Any:
    """Return what a class has by a name, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _held(value: Any) -> Any:
    """Return what is in a list whose numbers are no parameters: they count by what they are."""
    if is_number(value):
        return repr(value)
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else described(value)


def described(value: Any) -> Any:
    """Return what is seen of an attribute beside numbers."""
    if isinstance(value, Mechanism):
        return Mechanism  # see `Twins.fits`
    if is_number(value):
        return float
    if is_numbers(value):
        return value.shape
    if isinstance(value, (list, tuple, dict)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        seen = described if is_container(value) else _held
        return type(value), tuple((k, seen(x)) for k, x in entries)
    if isinstance(value, (bool, int, str, bytes, type(None), frozenset, slice)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, functools.partial):
        return described(value.func), [*map(_held, value.args)], {k: _held(x) for k, x in value.keywords.items()}
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, types.FunctionType):
        return id(function) if is_of_library(function) else fingerprint([function])[0]
    return type(value) if is_own(value) else id(value)
