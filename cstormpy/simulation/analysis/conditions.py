"""Conditions of an operating point: rates of states and numbers of outputs, with the values that they are to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue, UnknownName
from cstormpy.simulation.analysis.model import Jacobians, labels
from cstormpy.simulation.named_states import numbers, state_places
from cstormpy.simulation.recording import Signal, find_signals


@dataclass
class Conditions:
    """Rates and outputs with the values that they are to have."""

    rates: NDArray[np.intp]
    wanted: Array
    #: Places of the outputs among the numbers of what is watched, and their values.
    places: NDArray[np.intp]
    outputs: Array
    names: list[str]
    left_out: list[int]

    def remaining(self, found: Jacobians) -> Array:
        """Return what remains of each."""
        return np.concatenate([found.rate[self.rates] - self.wanted, found.y[self.places] - self.outputs])


def conditions_of(
    bd: Any, rates: Mapping[Any, Any], asked: dict[int, tuple[str, float]], idle: list[int]
) -> Conditions:
    """Return what is asked of the rates of states, of which those that are idle are left out, and of outputs."""
    n = len(bd.statenames)
    kept, values = np.ones(n, dtype=bool), np.zeros(n)
    kept[idle] = False
    left_out = set(idle)
    for name, value in rates.items():
        at = state_places(bd, name, "trim: rates")
        left_out -= set(at)
        chosen, given = _chosen(value, len(at), f"trim: rates[{name!r}]")
        kept[at], values[at] = chosen, given
    names = [f"rate of {name}" for name, keep in zip(bd.statenames, kept, strict=True) if keep]
    names += [name for name, _ in asked.values()]
    outputs = np.array([value for _, value in asked.values()], dtype=float)
    places = np.array([*asked], dtype=np.intp)
    return Conditions(np.flatnonzero(kept), values[kept], places, outputs, names, sorted(left_out))


def _chosen(value: Any, size: int, what: str) -> tuple[NDArray[np.bool_], Array]:
    """Return which of some numbers are asked for, where None stands for any, and what they are to be."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    kept = np.array([each is not None for each in listed], dtype=bool)
    if kept.all():
        return np.ones(size, dtype=bool), numbers(value, size, what)
    filled = [0.0 if each is None else each for each in listed]
    given = numbers(filled if len(listed) > 1 else filled[0], size, what)
    return np.broadcast_to(kept, (size,)), given


def asked_of_outputs(bd: Any, outputs: Mapping[Any, Any]) -> tuple[list[Signal], dict[int, tuple[str, float]]]:
    """Return the signals of which something is asked, and the name and value of each number by its place in them."""
    watched: list[Signal] = []
    first, count = dict[tuple[int, int], int](), 0
    asked: dict[int, tuple[str, float]] = {}
    for name, value in outputs.items():
        signals, alone = _numbers_of_output(bd, name)
        at: list[tuple[int, str, str]] = []
        for signal in signals:
            called = labels(signal)
            if signal.key not in first:
                first[signal.key], count = count, count + len(called)
                watched.append(signal)
            at += [(first[signal.key] + k, each, signal.name) for k, each in enumerate(called)]
        at = at if alone is None else [at[alone]]
        chosen, given = _chosen(value, len(at), f"trim: outputs[{name!r}]")
        for (place, each, port), keep, wanted in zip(at, chosen, given, strict=True):
            if keep and place in asked:
                raise InvalidValue(
                    f"trim: outputs: {port} is named twice; a block's name stands for all of its outputs"
                )
            if keep:
                asked[place] = each, float(wanted)
    return watched, asked


def _numbers_of_output(bd: Any, name: Any) -> tuple[list[Signal], int | None]:
    """Return the signals of a name, and which of their numbers it is, None where it is all of them."""
    try:
        return find_signals(bd, [name], "trim: outputs"), None
    except UnknownName as error:
        whole, bracket, _ = name.rpartition("[") if isinstance(name, str) else ("", "", "")
        if not bracket:
            raise
        try:
            signals = find_signals(bd, [whole])
        except UnknownName:
            raise error from None
        called = labels(signals[0]) if len(signals) == 1 else []
        if name not in called:
            raise
        return signals, called.index(name)
