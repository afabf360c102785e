"""Loads of a problem: what acts on the links all along the motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cstormpy.dynamics.checked_arguments import link_index
from cstormpy.dynamics.checked_arguments import read_loads as row_of_loads
from cstormpy.errors import InvalidType, ShapeError, shown
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
