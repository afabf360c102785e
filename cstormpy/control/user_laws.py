"""Control laws of a user's own that are no `Law`: a plain function, or an object with a method ``torque``."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.control.law import Law, Target, is_gain, replaced
from cstormpy.errors import InvalidType
from cstormpy.mechanism import Mechanism


def is_own_law(value: object) -> bool:
    """Tell whether something can serve as a law: it is called as f(t, q, qd), or has a method ``torque`` of these."""
    return not isinstance(value, (Law, type, str)) and (callable(value) or callable(getattr(value, "torque", None)))


class OwnLaw(Law):
    """A law that somebody has written as a function of (t, q, qd), or as a class with a method ``torque(t, q, qd)``.

    Parameters
    ----------
    mech : Mechanism or str
    own : callable or object
        Gives the torques of the motors, one number or (n_a,). The numbers, and arrays of some, that an object or its
        class has as attributes are its gains; those of a method, ``robot.control``, are the gains of its object.

    Attributes
    ----------
    own : object
        The function, or the object.
    method : str
        The name of its method that is asked; "" of a function.

    Examples
    --------
    >>> law = OwnLaw("acrobot", lambda t, q, qd: -2.0 * qd[1])
    >>> law(0.0, [0.0, 0.0], [0.0, 0.5])
    array([-1.])
    """

    def __init__(self, mech: Mechanism, own: Any) -> None:
        super().__init__(mech)
        written = isinstance(inspect.getattr_static(type(own), "__call__", None), types.FunctionType)
        self.own, self.method = own, "torque" if callable(getattr(own, "torque", None)) else "__call__" * written
        bound = getattr(own, "__self__", None)
        if inspect.ismethod(own) and getattr(bound, own.__name__, None) == own:
            self.own, self.method = bound, own.__name__
        check_arguments(self.function)
        if hasattr(self.own, "modes") and callable(getattr(self.own, "switch", None)):
            kind = type(self.own).__name__
            raise InvalidType(
                f"law {kind}: phases are of laws derived from cstormpy.control.Law; write class {kind}(Law), whose "
                "__init__ calls super().__init__(mech)"
            )

    @property
    def function(self) -> Callable[..., Any]:
        """The function, or method, that is called with (t, q, qd)."""
        return getattr(self.own, self.method) if self.method else self.own

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return what the function gives, which may write into what it is given; see `Law.torque`."""
        return self._as_torques(self.function(t, q.copy(), qd.copy()))

    def _asked(self) -> str:
        return _name(self.function)

    @property
    def gains(self) -> dict[str, Any]:
        """The numbers and arrays among the attributes of the object, by name."""
        return {name: value for name, value in self._attributes() if is_gain(name, value)}

    def set_gain(self, name: str, value: ArrayLike) -> None:
        """Change one of them, or all numbers of an array."""
        new = replaced(self.gains, name, value)
        try:
            setattr(self.own, name, new)
        except AttributeError as error:
            raise InvalidType(f"gain {name!r}: {type(self.own).__name__} lets nobody change it: {error}") from None

    def _attributes(self) -> list[tuple[str, Any]]:
        """Return the attributes of the object: its own, and those that its class gives to all."""
        owner = self.own
        if isinstance(owner, (types.ModuleType, type)):
            return []
        of_class = [name for kind in reversed(type(owner).__mro__[:-1]) for name in vars(kind)]
        names = dict.fromkeys([*of_class, *getattr(owner, "__dict__", {})])
        return [(name, getattr(owner, name, None)) for name in names if _may_be_set(owner, name)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._asked()})"


def check_arguments(function: Callable[..., Any], more: str = "") -> None:
    """Refuse a function or method that cannot be called with (t, q, qd), and one more argument if there is its name.

    Raises
    ------
    InvalidType
        Saying what it takes; also where these arguments stand in another order.
    """
    try:
        taken = inspect.signature(function)
        written = inspect.signature(function.__func__) if inspect.ismethod(function) else taken
    except (TypeError, ValueError):  # of C
        return
    given = [*_GIVEN, *[more] * bool(more)]
    wanted = ", ".join(["self"] * inspect.ismethod(function) + [*_GIVEN, *[f"{more}=None"] * bool(more)])
    why = ""
    try:
        taken.bind(*given)
    except TypeError as error:
        why = str(error)
    if any(name in given and name != place for name, place in zip(taken.parameters, given, strict=False)):
        why = why or "in this order"
    if why:
        raise InvalidType(
            f"law {_name(function)}{written}: must take ({wanted}), the time, positions and velocities; {why}"
        )


_GIVEN = ("t", "q", "qd")
"""The arguments of every law."""


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function, without that of the function in which it was made."""
    name: str = getattr(function, "__qualname__", type(function).__name__)
    return name.rpartition(".<locals>.")[2]


def _may_be_set(owner: object, name: str) -> bool:
    """Tell whether an attribute is a value: kept by the object, or in a slot of it, or one for all of its class."""
    given = inspect.getattr_static(type(owner), name, None)
    return not isinstance(given, property) and not callable(given)
