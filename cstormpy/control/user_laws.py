"""Control laws of a user's own that are no `Law`: a plain function, or an object with a method ``torque``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control.law import Law, Target
from cstormpy.errors import InvalidType, unknown_name
from cstormpy.mechanism import Mechanism

__all__ = ["OwnLaw", "is_own_law"]


def is_own_law(value: object) -> bool:
    """Tell whether something can serve as a law: it is called as f(t, q, qd), or has a method ``torque`` of these."""
    return not isinstance(value, (Law, type, str)) and (callable(value) or callable(getattr(value, "torque", None)))


class OwnLaw(Law):
    """A law that somebody has written as a function of (t, q, qd), or as a class with a method ``torque(t, q, qd)``.

    Parameters
    ----------
    mech : Mechanism or str
    own : callable or object
        Returns the torques of the motors, one number or (n_a,). The numbers that an object has as attributes are its
        gains.

    Examples
    --------
    >>> law = OwnLaw("acrobot", lambda t, q, qd: -2.0 * qd[1])
    >>> law(0.0, [0.0, 0.0], [0.0, 0.5])
    array([-1.])
    """

    def __init__(self, mech: Mechanism, own: Any) -> None:
        super().__init__(mech)
        self.own = own
        _check_arguments(self.function)

    @property
    def function(self) -> Callable[..., Any]:
        """The function that is called with (t, q, qd)."""
        method = getattr(self.own, "torque", None)
        return method if callable(method) else self.own

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return what the function gives, which may write into what it is given; see `Law.torque`."""
        return self._as_torques(self.function(t, q.copy(), qd.copy()))

    def _asked(self) -> str:
        return _name(self.function)

    @property
    def gains(self) -> dict[str, float]:
        """The numbers among the attributes of the object, by name."""
        held = getattr(self.own, "__dict__", {})
        return {name: float(value) for name, value in held.items() if isinstance(value, (float, np.floating))}

    def set_gain(self, name: str, value: float) -> None:
        """Change one of them."""
        if name not in self.gains:
            raise unknown_name("gain", name, self.gains)
        setattr(self.own, name, checks.real(value, f"gain {name!r}"))


def _check_arguments(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with (t, q, qd)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C
        return
    try:
        signature.bind(0.0, None, None)
    except TypeError as error:
        raise InvalidType(
            f"law {_name(function)}{signature}: must take (t, q, qd), the time, positions and velocities; {error}"
        ) from None


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function, without that of the function in which it was made."""
    name: str = getattr(function, "__qualname__", type(function).__name__)
    return name.rpartition(".<locals>.")[2]
