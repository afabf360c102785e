"""Axes of a sweep: named with their values, as a grid or as samples."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName, shown, unknown_name
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.named_states import continuous_parts, state_places
from cstormpy.simulation.recording import memory
from cstormpy.simulation.sweep.workers import AxisTarget

#: What the results of a run take at least [bytes]: its record by number, with one number measured.
_EACH = 500


@dataclass(frozen=True)
class Axes:
    """Names and values of what varies.

    Attributes
    ----------
    names : tuple of str
    values : tuple of list
        For each name its values: of a grid, of which every combination is run, or of as many samples.
    grid : bool
        Whether they form a grid.

    Examples
    --------
    >>> axes = Axes.checked({"rate.K": [0.0, 0.1], "law": ["pd", "lqr", "pfl"]})
    >>> axes.shape, len(axes), axes.run(4)
    ((2, 3), 6, (0.1, 'lqr'))
    """

    names: tuple[str, ...]
    values: tuple[list[Any], ...]
    grid: bool

    @classmethod
    def checked(cls, grid: Any = None, samples: Any = None, names: Sequence[str] | None = None) -> Axes:
        """Return the axes of what a user gave; see `cstormpy.simulation.Simulation.sweep`."""
        if (grid is None) == (samples is None):
            raise InvalidValue("sweep: give either grid={name: values, …} or samples={name: values, …}")
        if grid is None:
            samples = _named(samples, names)
        elif names is not None:
            raise InvalidValue("sweep: names are for the columns of samples; those of a grid are the keys of its dict")
        given: Any = samples if grid is None else grid
        what = "samples" if grid is None else "grid"
        if not isinstance(given, Mapping):
            raise InvalidType(f"{what}: expected a dict as {{'rate.K': [0.0, 0.1]}}, got {shown(given)}")
        if not given:
            raise InvalidValue(f"{what}: is empty; name what varies, as in {{'rate.K': [0.0, 0.1]}}")
        values = tuple(_values(f"{what} {name!r}", one) for name, one in given.items())
        if grid is not None:
            for name, one in zip(given, values, strict=True):
                _check_different(f"grid {name!r}", one)
        counts = {name: len(one) for name, one in zip(given, values, strict=True)}
        if grid is None and len(set(counts.values())) > 1:
            raise ShapeError(f"samples: expected as many values of each name, got {counts}")
        return cls(tuple(str(name) for name in given), values, grid is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis of the grid, or of samples."""
        return tuple(len(v) for v in self.values) if self.grid else (len(self.values[0]),)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def run(self, k: int) -> tuple[Any, ...]:
        """Return what the k-th run takes, in the order of the names; the last axis of a grid varies fastest."""
        if not self.grid:
            return tuple(v[k] for v in self.values)
        places = np.unravel_index(k, self.shape)
        return tuple(v[int(i)] for v, i in zip(self.values, places, strict=True))

    def order(self, first: Sequence[str]) -> Iterable[int]:
        """Return all runs, those with the same values of some names one behind the other."""
        at = [k for k, name in enumerate(self.names) if name in first]
        if not at:
            return range(len(self))
        if self.grid:
            numbers = np.arange(len(self)).reshape(self.shape)
            return map(int, np.moveaxis(numbers, at, range(len(at))).flat)
        known: dict[str, int] = {}
        marks = [known.setdefault(repr([self.values[i][k] for i in at]), len(known)) for k in range(len(self))]
        return sorted(range(len(self)), key=marks.__getitem__)

    def array(self, name: str) -> NDArray[Any]:
        """Return the values of an axis: numbers, texts, or objects where they are neither."""
        values = self.values[self.names.index(name)]
        arrays = [_array(v) for v in values]
        kinds = {a.dtype.kind for a in arrays} if len({a.shape for a in arrays}) == 1 else {"O"}
        if kinds <= set("biuf") or kinds == {"U"}:
            return np.array(values)
        array = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            array[k] = value
        return array


def check_size(axes: Axes) -> None:
    """Refuse runs whose results no memory would hold.

    Raises
    ------
    InvalidValue
        Saying how many there are, and what they would take.
    """
    need, there = _EACH * len(axes), memory()
    if need > there:
        counts = f" ({' x '.join(map(str, axes.shape))})" if len(axes.shape) > 1 else ""
        raise InvalidValue(
            f"sweep: the results of {len(axes)} runs{counts} would take {need / 1e9:.0f} GB of memory or more, and "
            f"this machine has {there / 1e9:.0f} GB; give fewer values, or a part of them at a time"
        )


def _named(samples: Any, names: Sequence[str] | None) -> Any:
    """Return samples as a dict, from a frame of pandas, or from an array with names or beside them."""
    fields = getattr(getattr(samples, "dtype", None), "names", None)
    if fields:
        return {name: samples[name] for name in fields}
    if names is None and hasattr(samples, "columns") and hasattr(samples, "to_numpy"):
        columns = [str(name) for name in samples.columns]
        twice = next((name for k, name in enumerate(columns) if name in columns[:k]), None)
        if twice is not None:
            raise InvalidValue(f"samples: the column {twice!r} occurs twice")
        return {str(name): samples[name].to_numpy() for name in samples.columns}
    if names is None:
        return samples
    if not isinstance(names, Sequence):
        raise InvalidType(f"names: expected a list of names, one for each column of samples, got {shown(names)}")
    array = np.asarray(samples)
    if array.ndim != 2 or array.shape[1] != len(names) or len(set(names)) < len(names):
        raise ShapeError(f"samples: expected a column for each of {list(names)}, got the shape {array.shape}")
    return dict(zip(names, array.T, strict=True))


def _values(what: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidType(f"{what}: expected a list of values, got {shown(given)}; write [{shown(given)}]")
    values = [v.item() if isinstance(v, np.generic) else v for v in given]
    if not values:
        raise InvalidValue(f"{what}: has no values, so that there is nothing to run")
    for v in values:
        if _array(v).dtype.kind == "f" and not np.isfinite(v).all():
            raise NonFinite(f"{what}: all values must be finite, got {v}")
    return values


def _array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:  # lists of several lengths
        return np.asarray(None)


def _check_different(what: str, values: list[Any]) -> None:
    """Refuse values of an axis that are there twice: the same would be run twice, and no image be drawn."""
    seen = set()
    for value in values:
        array = _array(value)
        plain = array.dtype.kind in "biufU"
        mark = (array.dtype.kind == "b", array.shape, *array.ravel().tolist()) if plain else id(value)
        if mark in seen:
            raise InvalidValue(f"{what}: {value!r} is there twice; leave one out, or give samples={{name: values, …}}")
        seen.add(mark)


_NUMBERED = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]$")


def accepted(build: Callable[..., Any] | None) -> tuple[list[str], bool]:
    """Return the options that a builder names, and whether it takes others too."""
    if build is None:
        return [], False
    try:
        parameters = list(inspect.signature(build).parameters.values())[1:]
    except (TypeError, ValueError):
        return [], True
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [p.name for p in parameters if p.kind in kinds]
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)


def meant(name: str, bd: Any, build: Callable[..., Any] | None, fixed: Mapping[str, Any]) -> AxisTarget:
    """Return what an axis of this name varies.

    Raises
    ------
    UnknownName
        With the nearest spelling among the options, states and parameters that there are.
    InvalidValue
        Where it is given as a fixed option too.
    """
    options, others = accepted(build)
    if name in fixed:
        raise InvalidValue(f"option {name!r}: is to vary, and given as a fixed one too; leave out one of them")
    if name in options:
        return AxisTarget(name, "option")
    if name in bd.statenames:
        return AxisTarget(name, "state")
    block = max((b for b in bd.blocknames if name.startswith((f"{b}:", f"{b}."))), key=len, default=None)
    if block is not None:
        parameter = name[len(block) + 1 :]
        known = bd.blocknames[block]._parameters
        if parameter in known:
            return AxisTarget(name, "parameter", block, parameter)
        numbered = _NUMBERED.match(parameter)
        if numbered and numbered["name"] in known:
            return AxisTarget(name, "parameter", block, numbered["name"], int(numbered["index"]))
    elif others and name.isidentifier():
        return AxisTarget(name, "option")
    tuned = _tuned(name, bd)
    if tuned is not None:
        return tuned
    if any(b.name == name for b, _ in continuous_parts(bd)):
        return AxisTarget(name, "state")
    mark = ":" if ":" in name else "."
    tunable = [f"{b.name}{mark}{p}" for b in bd.blocklist for p in b._parameters]
    raise unknown_name("axis", name, [*options, *bd.statenames, *tunable])


def _tuned(name: str, bd: Any) -> AxisTarget | None:
    """Return the target of a name by which `tune` finds numbers: an entry of an array, one of a mechanism."""
    try:
        entries = Parameters(bd, name).entries
    except UnknownName:
        return None
    one = entries[0]
    if one.state is not None:
        return None
    if one.index is not None and one.attribute in one.block._parameters and len(entries) == 1:
        shape = np.shape(getattr(one.block, one.attribute))
        return AxisTarget(name, "parameter", one.block.name, one.attribute, int(np.ravel_multi_index(one.index, shape)))
    return AxisTarget(name, "number")


def check_twice(varied: Sequence[AxisTarget], bd: Any) -> None:
    """Refuse two axes that set the same number.

    Raises
    ------
    InvalidValue
        Naming both.
    """
    numbers = [v.name for v in varied if v.kind == "number"]
    if len(numbers) > 1:
        Parameters(bd, numbers)  # which refuses them
    for k, one in enumerate(varied):
        for other in varied[:k]:
            same = one.kind == "parameter" and (one.block, one.parameter) == (other.block, other.parameter)
            if same and (one.number == other.number or None in (one.number, other.number)):
                raise InvalidValue(f"sweep: {one.block}.{one.parameter} is named twice: {other.name!r}, {one.name!r}")
    begun: dict[int, str] = {}
    for name in (v.name for v in varied if v.kind == "state"):
        for place in state_places(bd, name, "sweep: axis"):
            if begun.setdefault(place, name) != name:
                raise InvalidValue(f"sweep: {bd.statenames[place]} is named twice: {begun[place]!r}, {name!r}")
