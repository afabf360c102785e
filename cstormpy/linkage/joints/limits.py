"""Limits of a joint's coordinate: position, velocity and torque."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cstormpy import checks
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.values import Value, numbers_text

Bounds = float | Sequence[float | None] | None
"""A limit as it may be given: a symmetric bound, a pair (low, high) in which None is an open side, or None."""


class Limits(Value):
    """Limits of a joint: data for optimisers and drawings, which the dynamics do not enforce.

    Parameters
    ----------
    position : (low, high) or None
        Limits of q [rad or m]; None, or an infinity of the right sign, is an open side.
    velocity, torque : float, (low, high) or None
        Limits of qd and of the motor's torque or force; one number v stands for (-v, v).

    Attributes
    ----------
    position, velocity, torque : tuple of two floats, or None
        None where both sides are open.

    Raises
    ------
    InvalidValue
        If low > high, or a symmetric bound is negative.

    Examples
    --------
    >>> Limits(position=(-1, 2), torque=10)
    Limits(position=(-1, 2), torque=(-10, 10))
    """

    _fields = ("position", "velocity", "torque")
    position: tuple[float, float] | None
    velocity: tuple[float, float] | None
    torque: tuple[float, float] | None

    def __init__(self, position: Bounds = None, velocity: Bounds = None, torque: Bounds = None) -> None:
        self._set(
            position=_bounds(position, "position limits", symmetric=False),
            velocity=_bounds(velocity, "velocity limits", symmetric=True),
            torque=_bounds(torque, "torque limits", symmetric=True),
        )

    def __bool__(self) -> bool:
        return any(getattr(self, kind) is not None for kind in self._fields)

    def __repr__(self) -> str:
        shown = [f"{k}={numbers_text(v)}" for k, v in self._as_dict().items() if v is not None]
        return f"Limits({', '.join(shown)})"

    def details(self) -> list[str]:
        """Return the limits that there are, as the table of a mechanism shows them."""
        return [f"{kind} {numbers_text(pair, 4)}" for kind, pair in self._as_dict().items() if pair is not None]


def limits_of(value: object, where: str) -> Limits | None:
    """Return the limits of a coordinate from `Limits` or from the short pair for the position."""
    if value is None or isinstance(value, Limits):
        return value or None
    try:
        return Limits(position=value) or None  # type: ignore[arg-type]
    except (InvalidValue, InvalidType) as error:
        raise type(error)(f"{where}{error}") from None


def _bounds(value: object, what: str, *, symmetric: bool) -> tuple[float, float] | None:
    """Return (low, high), or None if both sides are open."""
    if value is None:
        return None
    pair = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence):
        if not symmetric:
            raise InvalidType(f"{what}: expected a pair (low, high), got {shown(value)}")
        bound = checks.nonnegative(pair, what)
        return (-bound + 0.0, bound)
    if len(pair) != 2:
        raise ShapeError(f"{what}: expected a pair (low, high), got {len(pair)} entries")
    low, high = _side(pair[0], -math.inf, what), _side(pair[1], math.inf, what)
    if low > high:
        raise InvalidValue(f"{what}: the lower {low:g} is above the upper {high:g}")
    return None if math.isinf(low) and math.isinf(high) else (low, high)


def _side(value: object, open_side: float, what: str) -> float:
    if value is None or (isinstance(value, (float, np.floating)) and value == open_side):
        return open_side
    return checks.real(value, what)
