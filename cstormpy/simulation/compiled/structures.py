"""Dependences of traced methods beside numbers: attributes and choices, and whether they are still as they were.

An object is looked at twice. `described` says what is seen of a value, whatever it costs; two values of which the same
is seen are alike for what was written down. In each run it is first looked at a glance: where everything that was
looked at is the very object that it was, and cannot have changed as long as it is that, nothing has to be described.
"""

from __future__ import annotations

import enum
import functools
import gc
import types
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import is_
from typing import Any

import numpy as np

from cstormpy.graph.identity import ABSENT, Entries, OfType, is_cpython
from cstormpy.mechanism import Mechanism
from cstormpy.simulation.compiled.fingerprints import fingerprint, is_by_identity
from cstormpy.simulation.compiled.twins import (
    Path,
    Readers,
    Twins,
    as_parameter,
    is_container,
    is_number,
    is_numbers,
    is_of_library,
    is_own,
    value_at,
)

#: An object, what was seen of those that are found from it, and the paths from it to mechanisms.
_Seeing = tuple[Any, "Sequence[_Seen]", Sequence[Path]]


class Structure:
    """Dependences of an object's methods beside its numbers: what they look at, as it was when they did.

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
        # nothing is kept of the twins: the collector does not see the symbols in their arrays, nor what these reach
        self._owner, self._forms, self._readers = owner, twins.forms, dict(readers or {})
        self._rules = [(rule, described(rule)) for rule in rules if not _stays(rule)]
        #: What readers give that were asked, and what was seen of that.
        self._read = [
            (reader, described(as_parameter(reader(owner))))
            for name, reader in self._readers.items()
            if ((), name) in twins.reads
        ]
        groups: dict[Path, list[str]] = {}
        for path, name in twins.reads:
            if path != () or name not in self._readers:
                groups.setdefault(path, []).append(name)
        self._groups = [_Seen(path, value_at(owner, path), names) for path, names in groups.items()]
        self._mechanisms = [path for path, _ in self._forms]
        self._glance: _Glance | None = None

    @property
    def seen(self) -> _Seeing:
        """Targets of a glance: the object, what was seen from it, and the paths to its mechanisms."""
        return self._owner, self._groups, self._mechanisms

    def looks_the_same(self) -> tuple[bool, bool]:
        """Tell whether what was looked at is still as it was, and whether a glance has told that, not a close look."""
        owner = self._owner
        if self._glance is not None and self._glance.holds():
            return True, True
        if not all(group.holds(value_at(owner, group.path)) for group in self._groups):
            return False, False
        if not all(form.fits(value_at(owner, path)) for path, form in self._forms):  # of the mechanisms
            return False, False
        self._glance = _Glance([self.seen])
        return True, False

    def reads_the_same(self) -> bool:
        """Tell whether readers still give what shapes it, and what was written down is still the same."""
        owner = self._owner
        if any(described(as_parameter(reader(owner))) != seen for reader, seen in self._read):
            return False
        return all(described(rule) == seen for rule, seen in self._rules)

    @property
    def is_seen(self) -> bool:
        """True where a glance at its attributes says all."""
        return not (self._read or self._rules)


class Structures:
    """Dependences of the methods of several objects, looked at together.

    Parameters
    ----------
    parts : sequence of Structure
    """

    def __init__(self, parts: Sequence[Structure]) -> None:
        self._parts = parts
        self._read = [part for part in parts if not part.is_seen]
        self._glance: _Glance | None = _Glance([part.seen for part in parts])

    def hold(self) -> bool:
        """Tell whether all is still as it was: at one glance, or else each by itself."""
        if self._glance is None or not self._glance.holds():
            self._glance, at_a_glance = None, True
            for part in self._parts:
                same, glanced = part.looks_the_same()
                if not same:
                    return False
                at_a_glance = at_a_glance and glanced
            if at_a_glance:  # what changes in each run is looked at by itself
                self._glance = _Glance([part.seen for part in self._parts])
        return all([part.reads_the_same() for part in self._read])


class _Seen:
    """Some attributes of one object, as they were."""

    def __init__(self, path: Path, holder: Any, names: Iterable[str]) -> None:
        self.path, self.kind, held = path, type(holder), vars(holder)
        unseen = {"__class__", "__dict__", *getattr(self.kind, "choices", ())}
        names = [name for name in names if name not in unseen]
        #: Name and what is seen of it.
        self.own = [(name, described(held[name])) for name in names if name in held]
        #: The same of what its class has, whose numbers are no parameters.
        self.of_class = [(name, _held(_of_class(self.kind, name))) for name in names if name not in held]

    def holds(self, holder: Any) -> bool:
        """Tell whether they are as they were."""
        if type(holder) is not self.kind:
            return False
        held = vars(holder)
        if any(name not in held or described(held[name]) != seen for name, seen in self.own):
            return False
        return all(name not in held and _held(_of_class(self.kind, name)) == seen for name, seen in self.of_class)


class Holders:
    """Lists and mappings, and what stands in them by some keys: the same objects as when this was made."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        #: Objects whose attributes are looked at, and the mappings that hold these.
        self._objects: dict[int, Any] = {}
        self._lists: dict[int, list[Any]] = {}

    def attributes(self, owner: Any) -> dict[str, Any]:
        """Return the mapping that holds an object's attributes, which is to be the same too, and its type."""
        self._objects[id(owner)] = owner
        return vars(owner)

    def add(self, holder: Any, key: Any, value: Any) -> None:
        """Look at an entry of a list or mapping too, where a value stands now; a tuple keeps its own by itself.

        The value may be `ABSENT`, or `OfType`.
        """
        if type(holder) is not tuple:
            self._found[id(holder), key] = holder, key, value

    def add_list(self, held: list[Any]) -> None:
        """Look at all that a list holds."""
        self._lists[id(held)] = held

    def follow(self, owner: Any, path: Path) -> Any:
        """Look at each step of a path from an object; return what stands at its end."""
        for step in path:
            holder = owner if isinstance(owner, (list, tuple, dict)) else self.attributes(owner)
            owner = holder[step]
            self.add(holder, step, owner)
        return owner

    def settle(self) -> None:
        """Be ready to `hold`: all entries have been added."""
        #: Objects that keep their attributes in another way than most.
        self._odd = [(each, type(each), vars(each)) for each in self._objects.values() if not _is_usual(type(each))]
        usual = [each for each in self._objects.values() if _is_usual(type(each))]
        self._in_lists = [entry for entry in self._found.values() if not isinstance(entry[0], dict)]
        entries = [entry for entry in self._found.values() if isinstance(entry[0], dict)]
        self._entries = Entries(entries, usual, [*self._lists.values()])

    def hold(self) -> bool:
        """Tell whether the same objects stand there, or other arrays of as many numbers, which are noted."""
        for each, kind, held in self._odd:
            if type(each) is not kind or vars(each) is not held:
                return False
        try:
            for holder, key, value in self._in_lists:
                if holder[key] is not value:
                    return False
        except LookupError:
            return False
        return self._entries.take(_like_arrays)


def _is_usual(kind: type) -> bool:
    """Tell whether a class keeps its objects' attributes as classes do unless they say otherwise."""
    return isinstance(_of_class(kind, "__dict__"), types.GetSetDescriptorType)


def _like_arrays(value: Any, before: Any) -> bool:
    return is_numbers(value) and is_numbers(before) and value.shape == before.shape


class _Glance:
    """Attributes of some objects, of which most are as they were if they are the same objects.

    Parameters
    ----------
    parts : sequence of _Seeing
        An object, what was seen of those that are found from it, and the paths from it to mechanisms.
    """

    def __init__(self, parts: Sequence[_Seeing]) -> None:
        self._same = Holders()
        #: Mappings, with what they hold, the keys too.
        self._mappings: list[tuple[dict[Any, Any], list[Any]]] = []
        #: What has to be described, of an object and of its class.
        self._loose: list[tuple[dict[str, Any], str, Any]] = []
        self._loose_of_class: list[tuple[type, str, Any]] = []
        #: Classes, with those that they inherit from.
        self._classes: dict[type, tuple[type, ...]] = {}
        for owner, groups, mechanisms in parts:
            for path in mechanisms:
                self._same.follow(owner, path)
            for group in groups:
                held = self._same.attributes(self._same.follow(owner, group.path))
                self._take_own(held, group)
                self._take_inherited(held, group)
        self._same.settle()

    def _take_own(self, held: dict[str, Any], group: _Seen) -> None:
        for name, what in group.own:
            value = held[name]
            if type(value) is float:
                self._same.add(held, name, OfType(float))
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
            self._same.add_list(value)
        elif type(value) is dict:
            self._mappings.append((value, [*value, *value.values()]))
        for entry in value.values() if type(value) is dict else value:
            if type(entry) in (list, tuple, dict):
                self._take_entries(entry)

    def _take_inherited(self, held: dict[str, Any], group: _Seen) -> None:
        kind = group.kind
        for name, what in group.of_class:
            self._same.add(held, name, ABSENT)
            if not self._take_from_class(kind, name):
                self._loose_of_class.append((kind, name, what))

    def _take_from_class(self, kind: type, name: str) -> bool:
        """Look at what a class has by a name; return False where that may change by itself."""
        for base in kind.__mro__:
            found = vars(base).get(name, ABSENT)
            if isinstance(found, np.ndarray) or (found is not ABSENT and not _stays(found)):
                return False
            held = _mapping_of(base)
            if held is None:
                return False
            self._same.add(held, name, found)
            if found is not ABSENT:
                break
        self._classes[kind] = kind.__mro__
        return True

    def holds(self) -> bool:
        """Tell whether a glance says that nothing has changed."""
        if not all([kind.__mro__ is bases for kind, bases in self._classes.items()]) or not self._same.hold():
            return False
        for mapping, before in self._mappings:
            if 2 * len(mapping) != len(before) or not all(map(is_, chain(mapping, mapping.values()), before)):
                return False
        for held, name, what in self._loose:
            if name not in held or described(held[name]) != what:
                return False
        return all(_held(_of_class(kind, name)) == what for kind, name, what in self._loose_of_class)


def _mapping_of(kind: type) -> dict[str, Any] | None:
    """Return the mapping that holds what a class has, which Python shows by a proxy; None where that is not said."""
    if not is_cpython():
        return None
    found = [each for each in gc.get_referents(vars(kind)) if type(each) is dict]
    return found[0] if len(found) == 1 else None


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
    if isinstance(function, types.FunctionType):
        return is_of_library(function)
    return isinstance(function, _LASTING) or is_own(function) or is_by_identity(function)


#: Types of which a value does not change as long as it is the same object.
_LASTING = (
    bool, int, float, complex, str, bytes, frozenset, slice, range, np.generic, np.dtype, np.ufunc, type, enum.Enum,
    type(None), types.BuiltinFunctionType, types.ModuleType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip


def _of_class(kind: type, name: str) -> Any:
    """Return what a class has by a name, as it stands there."""
    for base in kind.__mro__:
        held = vars(base)
        if name in held:
            return held[name]
    return None


def _held(value: Any) -> Any:
    """Return what is seen of something whose numbers are no parameters: they count by what they are."""
    if is_number(value):
        return repr(value)
    if isinstance(value, (list, tuple, dict)):
        return type(value), tuple(
            (k, _held(x)) for k, x in (value.items() if isinstance(value, dict) else enumerate(value))
        )
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype, value.shape, value.tobytes()
    return fingerprint([value])[0] if is_own(value) and not isinstance(value, Mechanism) else described(value)


def described(value: Any) -> Any:
    """Return what is seen of an attribute beside numbers."""
    if isinstance(value, Mechanism):
        return Mechanism  # see `Structure.looks_the_same`
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
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, functools.partial):
        return described(value.func), [*map(_held, value.args)], {k: _held(x) for k, x in value.keywords.items()}
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, types.FunctionType):
        return id(function) if is_of_library(function) else fingerprint([function])[0]
    if is_own(value):
        return type(value)
    return _TheSame(value) if isinstance(value, _LASTING) or is_by_identity(value) else fingerprint([value])[0]


class _TheSame:
    """Something that is seen as the object that it is, which lives as long as it is compared."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TheSame) and other.value is self.value
