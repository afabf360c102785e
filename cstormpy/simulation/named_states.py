"""States of a diagram by their names, and by those of their blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from cstormpy.arrays import Array, as_floats, refuse_non_finite
from cstormpy.errors import InvalidValue, ShapeError, UnknownName, unknown_name

#: What the times of a run are called, in its result and its files.
_TIMES = "t"


def state_places(bd: Any, name: Any, what: str) -> list[int]:
    """Return where the states of a name, one state's or a block's, stand in the state vector."""
    names = list(bd.statenames)
    if isinstance(name, str) and name in names:
        return [names.index(name)]
    parts = continuous_parts(bd)
    for b, at in parts:
        if name is b or (isinstance(name, str) and b.name == name):
            return at
    for b in bd.blocklist:
        if b.ndstates and (name is b or (isinstance(name, str) and name.partition(":")[0] == b.name)):
            raise UnknownName(
                f"{what}: block {b.name!r} is sampled; its states at the start are what it was made with, as its x0, "
                "or those of a saved state"
            )
    alike = [each for each in names if each.endswith(f":{name}")]
    if len(alike) > 1:
        raise UnknownName(f"{what}: state {name!r} is one of several blocks, say of which: {', '.join(alike)}")
    raise unknown_name(f"{what}: state", name, [*names, *(b.name for b, _ in parts)])


def numbers(value: Any, size: int, what: str) -> Array:
    """Return a vector of finite numbers; one number stands for all."""
    array = as_floats(value, what)
    if array.ndim and array.size != size:
        raise ShapeError(f"{what}: expected shape ({size},), got {array.shape}")
    refuse_non_finite(array, what)
    return np.broadcast_to(array.ravel() if array.ndim else array, (size,)).astype(float)


def state_vector(bd: Any, x: Any, otherwise: Array, what: str) -> Array:
    """Return a state from an array, or from values by the names of states or blocks; else another one.

    States that a mechanism's loops tie to those that are named follow them.
    """
    if x is None:
        return otherwise
    if not isinstance(x, Mapping):
        return numbers(x, otherwise.size, what)
    state, given = otherwise.copy(), np.zeros(otherwise.size, dtype=bool)
    for name, value in x.items():
        at = state_places(bd, name, what)
        state[at], given[at] = numbers(value, len(at), f"{what}[{name!r}]"), True
    for b, part in continuous_parts(bd):
        if getattr(b, "closed", False) and given[part].any():
            state[part] = _closed(b, what, b.following, state[part], given[part])
    return state


def closed_state(bd: Any, x: Array, what: str) -> Array:
    """Return a state that nearly closes all loops with what it misses taken away."""
    state = x.copy()
    for b, part in continuous_parts(bd):
        if getattr(b, "closed", False):
            state[part] = _closed(b, what, b.projected, state[part])
    return state


def _closed(b: Any, what: str, find: Callable[..., Array], *state: Array) -> Array:
    """Return what is found of a block's state that is to close its loops; say which block's cannot be closed."""
    try:
        return find(*state)
    except InvalidValue as error:
        raise InvalidValue(f"{what}: block {b.name!r}: {error}") from None


def sampled_names(block: Any) -> list[str]:
    """Return the names of the states of a sampled block: those that its user gave, its own, or as bdsim makes them."""
    given: list[str] | None = vars(block).get("_sampled_names")
    if given is not None:
        return given
    name, own = block.name or "", getattr(block, "names_of_states", None)
    return [f"{name}{each}" for each in own()] if own else [f"{name}:X_{k}" for k in range(block.ndstates)]


def distinct_names(named: Iterable[tuple[Any, Sequence[str]]]) -> list[str]:
    """Return the names of the states of some blocks; such as several have, or times, stand behind that of their block.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> a, b = SimpleNamespace(name="left"), SimpleNamespace(name="right")
    >>> distinct_names([(a, ["angle", "rate"]), (b, ["angle"])])
    ['left:angle', 'rate', 'right:angle']
    """
    pairs = [(b, name) for b, names in named for name in names]
    often = Counter(name for _, name in pairs)
    return [name if often[name] == 1 and name != _TIMES else f"{b.name}:{name}" for b, name in pairs]


def held_names(block: Any, count: int) -> list[str]:
    """Return the names of the numbers that a sampled block holds at its outputs."""
    return [f"{block.name} held[{k}]" for k in range(count)]


def sample_places(sampled: Iterable[tuple[Any, slice]], held: Iterable[tuple[Any, slice]]) -> dict[str, int]:
    """Return where the states of sampled blocks, and what others hold, stand among the samples, by their names."""
    parts = list(sampled)
    places = [k for _, part in parts for k in range(part.start, part.stop)]
    found = dict(zip(distinct_names((b, sampled_names(b)) for b, _ in parts), places, strict=True))
    for b, part in held:
        found |= {name: part.start + k for k, name in enumerate(held_names(b, part.stop - part.start))}
    return found


def continuous_parts(bd: Any) -> list[tuple[Any, list[int]]]:
    """Return the blocks with continuous states, and where these stand in the state vector."""
    blocks = [b for b in bd.blocklist if b.blockclass == "continuous"]
    places = iter(range(len(bd.statenames)))
    return [(b, [*islice(places, b.nstates)]) for b in blocks]


def block_of_state(bd: Any, name: str) -> tuple[Any, list[int], int]:
    """Return the block of a state, where its states stand in the state vector, and which of these it is."""
    place = list(bd.statenames).index(name)
    return next((b, at, at.index(place)) for b, at in continuous_parts(bd) if place in at)


def phase_planes(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the states of joints with their rates, by their names, or without any the first two states."""
    pairs = [(name, f"{name}d") for name in names if f"{name}d" in names]
    return pairs or [(names[0], names[min(1, len(names) - 1)])]
