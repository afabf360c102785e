"""Loads on the links all along a motion, and the motion of the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cstormpy.arrays import real_array
from cstormpy.dynamics.checked_arguments import link_index
from cstormpy.dynamics.checked_arguments import read_loads as row_of_loads
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.mechanism import Load, Mechanism
from cstormpy.optimal.samples import Array

__all__ = ["Load", "load_row", "read_loads"]


def read_loads(mech: Mechanism, loads: Any) -> tuple[tuple[int, Load], ...]:
    """Return loads with the positions of their links."""
    if isinstance(loads, Load):
        loads = [loads]
    if not isinstance(loads, Sequence):
        raise InvalidType(f"loads: expected a list of Load, got {shown(loads)}")
    found = []
    for k, load in enumerate(loads):
        if not isinstance(load, Load):
            raise InvalidType(f"loads[{k}]: expected a Load, got {shown(load)}")
        if load.force.ndim > 1 or load.moment.ndim > 1:
            raise ShapeError(f"loads[{k}]: expected one force and one moment, (3,) each, for the whole motion")
        found.append((link_index(mech, load.link, f"loads[{k}]"), load))
    return tuple(found)


def load_row(mech: Mechanism, loads: Sequence[tuple[int, Load]]) -> Array:
    """Return loads as the row of numbers that the kernels take, an empty one where there are none."""
    return row_of_loads(mech, [load for _, load in loads]) if loads else row_of_loads(mech, None)


_HINT = "a twist (angular, linear), or its rate"


class BaseMotion:
    """Twist and its rate of a base, in its own frame, at any times.

    Parameters
    ----------
    given : pair of (6,), or function of time that returns one
    """

    def __init__(self, given: Any) -> None:
        self._at: Callable[[float], Any] | None = given if callable(given) else None
        self._constant = None if callable(given) else _pair(given)
        if self._at is not None:
            _pair(self._at(0.0))

    def rows(self, times: Array) -> Array:
        """Return (V0, dV0) behind one another, (1, 12), or (N, 12) where they change."""
        if self._at is None:
            assert self._constant is not None
            return self._constant[None]
        return np.array([_pair(self._at(float(t))) for t in times])

    def pair(self, times: Array) -> tuple[Array, Array]:
        """Return V0 and dV0, (6,), or (N, 6) where they change."""
        rows = self.rows(times) if self._at is not None else self.rows(times)[0]
        return rows[..., :6], rows[..., 6:]


def _pair(given: Any) -> Array:
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 2:
        raise InvalidValue("base: expected the pair (V0, dV0), velocity and acceleration of the base, (6,) each")
    parts = zip(given, ("V0", "dV0"), strict=True)
    return np.concatenate([real_array(part, f"base, {name}", (6,), hint=_HINT) for part, name in parts])


def read_base(given: Any, free_duration: bool) -> BaseMotion | None:
    """Return the motion of the base, None where it is at rest."""
    if given is None:
        return None
    if callable(given) and free_duration:
        raise InvalidType("base: a function of time needs a fixed duration; give the pair (V0, dV0)")
    return BaseMotion(given)
