"""End conditions of a motion: states as users give them, split by joints on splines and the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arrays import is_single
from cstormpy.errors import InvalidType, InvalidValue, unknown_name
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.joints import targets_of, turning
from cstormpy.optimal.samples import Array, Parts, Samples
from cstormpy.optimal.sizes import Sizes
from cstormpy.trajectory import EndConditions

NAMES = ("q", "qd", "qdd")


@dataclass(frozen=True, eq=False)
class State:
    """Position, rate and acceleration at an end, (3, n), NaN where a joint is free."""

    rows: Array

    @property
    def q(self) -> Array:
        """The position, (n,)."""
        return np.asarray(self.rows[0])


def read_state(mech: Mechanism, value: Any, what: str) -> State:
    """Return a state from a posture (at rest where it is given), a tuple (q, qd[, qdd]), a mapping, or None: free.

    A mapping has the keys "q", "qd", "qdd", or names of joints, which are at rest there.

    >>> from cstormpy.mechanism import library
    >>> read_state(library.acrobot(), [-1.0, None], "start").rows[:2].tolist()
    [[-1.0, nan], [0.0, nan]]
    """
    rows = np.full((3, mech.n), np.nan)
    if value is None:
        return State(rows)
    if isinstance(value, Mapping) and value and set(value) <= set(NAMES):
        given = [value.get(name) for name in NAMES]
    elif isinstance(value, tuple) and value and not all(map(is_single, value)):
        if len(value) > 3:
            raise InvalidValue(f"{what}: expected (q, qd) or (q, qd, qdd), got {len(value)} entries")
        given = [*value, None, None][:3]
    else:
        if isinstance(value, str):
            raise InvalidType(f"{what}: expected a posture, a tuple (q, qd) or a mapping, got the text {value!r}")
        if isinstance(value, Mapping):
            known = dict.fromkeys([*(link.joint_name for link in mech.links if link.joint.dof), *mech.names])
            for name in value:
                if name not in known and name not in NAMES:
                    raise unknown_name(f"{what}: joint", name, (*known, *NAMES))
            if not set(known).issuperset(value):
                raise InvalidValue(f"{what}: give joints by their names, or 'q', 'qd' and 'qdd', not both")
        q = targets_of(mech, value, what)
        return State(np.array([q, np.where(np.isnan(q), np.nan, 0.0), np.full(mech.n, np.nan)]))
    for row, name, entry in zip(rows, NAMES, given, strict=True):
        if entry is not None:
            row[:] = targets_of(mech, entry, f"{what}, {name}")
    return State(rows)


def end_conditions(start: State, end: State, joints: Any, active: Any, others: int = 0) -> EndConditions:
    """Return the conditions on the joints on splines; a spline of torque has none; so many others begin at zero."""
    found: dict[str, Any] = {}
    for place, state in ((0, start), (1, end)):
        for name, row in zip(NAMES, state.rows, strict=True):
            entries = [None if np.isnan(row[j]) or not active[j] else float(row[j]) for j in joints]
            if any(e is not None for e in entries):
                found[f"{name}{place}"] = (*entries, *[None] * others)
    for name in ("q0", "qd0") if others else ():
        found[name] = (*found.get(name, [None] * len(joints))[: len(joints)], *[0.0] * others)
    return EndConditions(**found)


class EndState(PathConstraint):
    """Positions and rates at the end that no control point can be fixed for."""

    def __init__(self, targets: Mapping[str, Array], name: str = "end") -> None:
        self._targets = dict(targets)
        self._at = {channel: np.flatnonzero(~np.isnan(t)) for channel, t in self._targets.items()}
        wanted = np.concatenate([t[self._at[channel]] for channel, t in self._targets.items()])
        super().__init__(wanted, wanted, "end", name)
        self.channels = tuple(self._targets)

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return the sizes of positions and rates."""
        return np.concatenate([sizes.of(channel)[joints] for channel, joints in self._at.items()])

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return joints and units."""
        units = [("rad" if angle else "m") for angle in turning(mech)]
        return [
            (mech.names[j], units[j] + "/s" * (channel == "qd")) for channel, joints in self._at.items() for j in joints
        ]

    def values(self, at: Samples) -> Array:
        """Return what is asked, (N, k)."""
        return np.hstack([getattr(at, channel)[:, joints] for channel, joints in self._at.items()])

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel, (N, k, n)."""
        total = sum(len(joints) for joints in self._at.values())
        parts, first = {}, 0
        for channel, joints in self._at.items():
            part = np.zeros((len(at), total, at.mech.n))
            part[:, np.arange(first, first + len(joints)), joints] = 1.0
            parts[channel] = part
            first += len(joints)
        return parts
