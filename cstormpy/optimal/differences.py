"""Derivatives of users' functions of samples, where they give none: differences of fourth order, channel by channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from cstormpy.arguments import option
from cstormpy.arrays import real_array, refuse_non_finite
from cstormpy.errors import InvalidType, shown
from cstormpy.optimal.samples import CHANNELS, FORCES, TIMES, Array, Samples, Watched

STEP = 1e-3
"""Step of the differences, as a part of the size of what is moved; the error of fourth order and rounding are both
about 1e-12 of the scale there."""

STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))
"""Places and weights of the first derivative, of fourth order."""


def slope(function: Callable[[Any], Any], x: Any, step: float, along: Array | float = 1.0) -> Any:
    """Return the derivative of function(x) along a direction, of what does not depend on x exactly zero.

    An equation that moves with its rounding alone is none that a solver could meet.
    """
    pairs = ((place * step * along, weight / step) for place, weight in STENCIL[2:])
    return sum(weight * (function(x + moved) - function(x - moved)) for moved, weight in pairs)


def differences(function: Callable[[Array], Any], x: Array, steps: Array) -> Array:
    """Return the derivatives of function(x) to each number of x, (…, n)."""
    columns = [slope(function, x, step, unit) for step, unit in zip(steps, np.eye(len(x)), strict=True)]
    return np.stack(columns, axis=-1)


def differenced(function: Callable[[Samples], Array], at: Samples, part: float = STEP) -> dict[str, Array]:
    """Return the derivatives of function(samples), (N, …), to the channels that it asks for.

    They are (N, …, n) each; (N, …) to "t" and to "duration", T as the function reads it.
    """
    parts: dict[str, Array] = {}
    watched = Watched(**{each.name: getattr(at, each.name) for each in fields(at)})
    function(watched)
    for channel in (*CHANNELS, FORCES):
        x = getattr(at, channel)
        if not (x.shape[1] and watched.asks(channel)):
            continue
        columns = [_column(function, at, channel, j, part) for j in range(x.shape[1])]
        parts[channel] = np.stack(columns, axis=-1)
    step = part * at.duration
    if watched.asks("t"):
        parts["t"] = slope(lambda t: function(replace(at, t=t)), at.t, step)
    if watched.asks("duration"):
        parts["duration"] = slope(lambda T: function(replace(at, duration=T)), at.duration, step)
    return {channel: part for channel, part in parts.items() if np.any(part)}


def _column(function: Callable[[Samples], Array], at: Samples, channel: str, j: int, part: float) -> Array:
    x = getattr(at, channel)
    step = part * max(float(at.sizes.of(channel)[j]), float(np.abs(x[:, j]).max(initial=0.0)))
    unit = np.eye(x.shape[1])[j]
    return np.asarray(slope(lambda moved: function(replace(at, **{channel: moved})), x, step, unit))


def read_values(values: Any, shape: tuple[int | None, ...], what: str) -> Array:
    """Return what a user's function answered as an array of that shape, NaN included."""
    return real_array(values, what, tuple("any" if length is None else length for length in shape), finite=False)


def read_parts(parts: Any, at: Samples, front: tuple[int, ...], what: str) -> dict[str, Array]:
    """Return what a user's gradient answered, checked: (*front, n) for each channel, front for "t"."""
    if not isinstance(parts, Mapping):
        raise InvalidType(f"{what}: expected a mapping from channels to arrays, got {shown(parts)}")
    found = {}
    for channel, part in parts.items():
        forces, design = [FORCES] if at.multipliers.shape[1] else [], ["design"] if at.designed else []
        known = (*CHANNELS, *forces, *TIMES, *design)
        option(channel, f"{what}: channel", known)
        last = len(at.design) if channel == "design" else 0 if channel in TIMES else getattr(at, channel).shape[1]
        shape = front if channel in TIMES else (*front, last)
        found[channel] = read_values(part, shape, f"{what}, {channel!r}")
        refuse_non_finite(found[channel], f"{what}, {channel!r}")
    return found
