"""Side effects of functions that are called with symbols: what they changed beyond what they return, put back again."""

from __future__ import annotations

import copy
import pickle
import random
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.simulation.compiled.fingerprints import is_by_identity, reachable
from cstormpy.simulation.surroundings import stored_names, surrounding

_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


class Reached:
    """The lists, mappings, arrays, generators and objects that functions can reach, as they were when this was made.

    An iterator counts as changed: it gives something else each time, and cannot be put back.

    Parameters
    ----------
    roots : sequence
        The functions, classes and objects.
    beside : sequence
        Lists, mappings and the like that count too, but not what these hold.
    generators : bool
        Whether random generators count.

    Attributes
    ----------
    objects : list
        All that can be reached, but for plain values.
    """

    def __init__(self, roots: Sequence[Any], beside: Sequence[Any] = (), generators: bool = True) -> None:
        self.objects = reachable(list(roots))
        common = [random.random.__self__, np.random.random.__self__]  # type: ignore[attr-defined]
        found = [*beside, *self.objects, *(common if roots else [])]
        if not generators:
            found = [each for each in found if not isinstance(each, _GENERATORS)]
        self._before = [(each, kept) for each in found if (kept := _kept(each)) is not None]
        self._iterator = next((each for each in found if isinstance(each, Iterator)), None)

    def now(self) -> Reached:
        """Return the same things as they are now."""
        found = copy.copy(self)
        found._before = [(each, _kept_now(each, kept)) for each, kept in self._before]
        return found

    def take_up(self, before: Reached, after: Reached) -> None:
        """Take for what there was at first what has changed between two other times, as it is at the second."""
        for k, ((each, first), (_, old), (_, new)) in enumerate(
            zip(self._before, before._before, after._before, strict=True)
        ):
            if not _is_same(new, old):
                self._before[k] = each, _taken_up(first, old, new)

    def restore(self) -> str:
        """Put everything back; return what had been changed, or nothing."""
        changed = "" if self._iterator is None else f"a {type(self._iterator).__name__} that it reads from"
        for each, kept in self._before:
            if not _is_same(_kept_now(each, kept), kept):
                _put_back(each, kept)
                changed = changed or _said(each)
        return changed


class Remembered:
    """Numbers that functions have left in lists, attributes and the like, by where they stand.

    Whole numbers, which count, are none of them.

    Parameters
    ----------
    roots : sequence
        The functions and objects.
    """

    def __init__(self, roots: Sequence[Any] = ()) -> None:
        objects = reachable(list(roots)) if roots else []
        found = [((id(each), key), (each, _floats(value))) for each in objects for key, value in _entries(_kept(each))]
        self._places = {place: held for place, held in found if held[1].size}

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._places)

    def differing(self, other: Remembered) -> Remembered:
        """Return those that are others than before, or were not there."""
        found, nothing = Remembered(), (None, np.zeros(0))
        for place, held in self._places.items():
            if not np.array_equal(held[1], other._places.get(place, nothing)[1], equal_nan=True):
                found._places[place] = held
        return found

    def common(self, other: Remembered) -> Remembered:
        """Return those of another that stand in the same places."""
        found = Remembered()
        found._places = {place: other._places[place] for place in self._places if place in other._places}
        return found

    def update(self, other: Remembered) -> None:
        """Add others."""
        self._places.update(other._places)

    @contextmanager
    def moved(self, share: float) -> Iterator[None]:
        """Let them be others, by so large a part of them, or of 1."""
        kept = {id(each): (each, _kept(each)) for each, _ in self._places.values()}
        for name, (each, values) in kept.items():
            now = values.copy()
            for key, value in _entries(values):
                if (name, key) in self._places and _floats(value).size:
                    now[key] = _moved(value, share)
            _put_back(each, now)
        try:
            yield
        finally:
            for each, values in kept.values():
                _put_back(each, values)


def _entries(kept: Any) -> list[tuple[Any, Any]]:
    """Return what stands in something, by its place."""
    if isinstance(kept, dict):
        return list(kept.items())
    if isinstance(kept, np.ndarray) and not kept.ndim:
        return [((), kept[()])]
    return list(enumerate(kept)) if isinstance(kept, (list, np.ndarray)) else []


def _floats(value: Any) -> Array:
    """Return the numbers of a number, an array, or a list or tuple of such; none of anything else."""
    if isinstance(value, (float, np.floating)):
        return np.array([float(value)])
    if isinstance(value, (list, tuple)):
        parts = [_floats(each) for each in value]
        return np.concatenate(parts) if parts and all(part.size for part in parts) else np.zeros(0)
    return np.ravel(value).astype(float) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else np.zeros(0)


def _moved(value: Any, share: float) -> Any:
    if isinstance(value, (list, tuple)):
        return [_moved(each, share) for each in value]
    return value + share * np.maximum(1.0, np.abs(value))


def _state_of(generator: Any, new: Any = None) -> Any:
    """Return the state of a random generator, after it has got a new one if that is given."""
    if isinstance(generator, np.random.Generator):
        generator = generator.bit_generator
        if new is not None:
            generator.state = new
        return generator.state
    if new is not None:
        generator.__setstate__(new)
    return generator.__getstate__()


def _kept(value: Any) -> Any:
    """Return what is to be put back into something; None where nothing can change, or cannot be put back."""
    if isinstance(value, _GENERATORS):
        return pickle.dumps(_state_of(value))
    if isinstance(value, np.ndarray):
        return value.copy() if value.flags.writeable else None
    if isinstance(value, (list, deque)):
        return list(value)
    if isinstance(value, (set, bytearray)):
        return type(value)(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, type):
        return {name: each for name, each in vars(value).items() if not name.startswith("__")}
    if isinstance(value, types.FunctionType):
        return {**vars(value), **surrounding(value), **_written_globals(value)} or None
    if isinstance(value, types.ModuleType) or is_by_identity(value):
        return None
    return {**getattr(value, "__dict__", {}), **_slots(value)} or None


def _kept_now(value: Any, before: Any) -> Any:
    """Return what there is now of something that could be put back before."""
    now = _kept(value)
    if now is None:  # nothing is left in it, or it is an array that nobody may write into
        return {} if isinstance(before, dict) else before
    return now


def _written_globals(function: types.FunctionType) -> dict[Any, Any]:
    """Return what a function declares ``global``, and writes, by a name within a tuple."""
    space = function.__globals__
    return {(name,): space[name] for name in stored_names(function.__code__, "GLOBAL") if name in space}


def _slots(value: Any) -> dict[str, Any]:
    """Return what an object has in slots."""
    names = [
        name
        for kind in type(value).__mro__
        for name, each in vars(kind).items()
        if isinstance(each, types.MemberDescriptorType) and isinstance(vars(kind).get("__slots__"), (tuple, list, str))
    ]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _is_same(now: Any, before: Any) -> bool:
    if isinstance(before, np.ndarray):
        return now.shape == before.shape and now.tobytes() == before.tobytes()
    if isinstance(before, dict):
        return len(now) == len(before) and all(name in now and now[name] is each for name, each in before.items())
    if isinstance(before, list):
        return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))
    return bool(now == before)


def _taken_up(first: Any, old: Any, new: Any) -> Any:
    """Return what was there at first with what differs between two others, of mappings and objects name by name."""
    if not isinstance(first, dict):
        return new
    found = {name: value for name, value in first.items() if name in new or name not in old}
    return found | {name: value for name, value in new.items() if name not in old or old[name] is not value}


def _put_back(value: Any, kept: Any) -> None:
    if isinstance(value, _GENERATORS):
        _state_of(value, pickle.loads(kept))
    elif isinstance(value, np.ndarray):
        value[...] = kept
    elif isinstance(value, (list, bytearray)):
        value[:] = kept
    elif isinstance(value, deque):
        value.clear()
        value.extend(kept)
    elif isinstance(value, (set, dict)):
        value.clear()
        value.update(kept)
    else:
        _set_attributes(value, kept)


def _set_attributes(value: Any, kept: dict[Any, Any]) -> None:
    write: Callable[..., None] = type.__setattr__ if isinstance(value, type) else object.__setattr__
    now = _kept(value) or {}
    for name, each in kept.items():
        if name in now and now[name] is each:
            continue
        if isinstance(name, int):
            value.__closure__[name].cell_contents = each
        elif isinstance(name, tuple):
            value.__globals__[name[0]] = each
        else:
            write(value, name, each)
    for name in now.keys() - kept.keys():
        if isinstance(name, str):
            delattr(value, name)


def _said(value: Any) -> str:
    if isinstance(value, types.FunctionType):
        return f"what {value.__name__} remembers"
    if isinstance(value, type):
        return f"an attribute of {value.__name__}"
    if isinstance(value, _GENERATORS):
        return "a random generator"
    if isinstance(value, (list, dict, set, bytearray, deque, np.ndarray)):
        return f"a {type(value).__name__} that it has from outside"
    return f"an attribute of a {type(value).__name__}"
