"""Numbers for joints, given by name or in the order of q."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy import checks
from cstormpy.arrays import is_single
from cstormpy.errors import InvalidType, ShapeError, shown
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.samples import Array


def mask_of(mech: Mechanism, joints: Any, what: str) -> Array:
    """Return a weight for each coordinate, (n,), from names or from weights by name; a joint's is that of all of its.

    >>> from cstormpy.mechanism import library
    >>> mask_of(library.acrobot(), ["elbow"], "joints").tolist()
    [0.0, 1.0]
    """
    weights = np.zeros(mech.n)
    if isinstance(joints, str):
        joints = [joints]
    if isinstance(joints, Mapping):
        for name, value in joints.items():
            weights[mech.joint_indices(name)] = checks.nonnegative(value, f"{what}, weight of joint {name!r}")
    elif isinstance(joints, Iterable):
        for name in joints:
            weights[mech.joint_indices(name)] = 1.0
    else:
        raise InvalidType(f"{what}: expected names of joints, or weights by name, got {shown(joints)}")
    return weights


def targets_of(mech: Mechanism, value: Any, what: str) -> Array:
    """Return numbers (n,), NaN for joints that are not mentioned.

    >>> from cstormpy.mechanism import library
    >>> targets_of(library.acrobot(), {"elbow": 1}, "target").tolist()
    [nan, 1.0]
    """
    found = np.full(mech.n, np.nan)
    if isinstance(value, Mapping):
        for name, number in value.items():
            found[mech.joint_indices(name)] = _numbers_of(mech, name, number, what)
        return found
    if is_single(value) and not isinstance(value, (str, bytes)):
        found[:] = checks.real(value, what)
        return found
    entries = _entries(mech, value, what)
    for k, number in enumerate(entries):
        if number is not None:
            found[k] = checks.real(number, f"{what}, joint {mech.names[k]!r}")
    return found


def _numbers_of(mech: Mechanism, name: str, value: Any, what: str) -> Any:
    """Return the number of a coordinate, or one for each of a joint's."""
    count = len(mech.joint_indices(name))
    if count == 1 or is_single(value):
        return checks.real(value, f"{what}, joint {name!r}")
    return checks.array(value, (count,), f"{what}, joint {name!r}")


def bounds_of(mech: Mechanism, value: Any, what: str) -> tuple[Array, Array]:
    """Return limits low and high, (n,) each, with infinities where there are none.

    One number for all joints or a mapping from names to a number, a pair, or None; a number v stands for (−v, v), a
    side that is None is open.

    >>> from cstormpy.mechanism import library
    >>> bounds_of(library.acrobot(), {"elbow": (-1, None)}, "torque")
    (array([-inf,  -1.]), array([inf, inf]))
    """
    from cstormpy.mechanism import Limits

    given = value if isinstance(value, Mapping) else dict.fromkeys(mech.names, value)
    low, high = np.full(mech.n, -np.inf), np.full(mech.n, np.inf)
    for name, limit in given.items():
        k = mech.joint_indices(name)
        if limit is not None:
            try:
                pair = Limits(velocity=limit).velocity  # a symmetric bound or a pair, like that of a joint
            except (InvalidType, ValueError) as error:
                text = str(error).removeprefix("velocity limits: ")
                raise type(error)(f"{what} limit of joint {name!r}: {text}") from None
            if pair is not None:
                low[k], high[k] = pair
    return low, high


def _entries(mech: Mechanism, value: Any, what: str) -> list[Any]:
    try:
        entries = list(value)
    except TypeError as error:
        raise InvalidType(f"{what}: expected numbers by joint, got {shown(value)}") from error
    if isinstance(value, (str, bytes)) or len(entries) != mech.n:
        raise ShapeError(f"{what}: expected {mech.n} numbers ({', '.join(mech.names)}), got {len(entries)}")
    return entries


def turning(mech: Mechanism) -> NDArray[np.bool_]:
    """Return which coordinates are angles, (n,); the others are lengths.

    >>> from cstormpy.mechanism import library
    >>> turning(library.acrobot()).tolist()
    [True, True]
    """
    return np.array([freedom.turns for freedom in mech.freedoms], dtype=bool)
