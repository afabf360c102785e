"""Constraints of a user's own, said by a function of the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cstormpy import checks
from cstormpy.errors import InvalidType, shown, unknown_name
from cstormpy.values import Value

_KINDS = ("position", "rate")


class Constraint(Value):
    """A constraint φ(q) = 0, or A(q) q̇ = 0, given by a function; it stands among the `loops` of a mechanism.

    Parameters
    ----------
    function : function of q (n,)
        Returns φ, a number or (m,); with ``kind="rate"`` the matrix A, (n,) or (m, n), of rates that cannot be
        integrated, as those of a wheel that rolls. It is traced with symbols, which gives exact derivatives and machine
        code; what cannot be traced (an ``if`` on a number, ``math.sin``) is differenced, and that is said once.
    kind : {"position", "rate"}
    name : str, optional
        "constraint" unless given.

    Raises
    ------
    InvalidType, UnknownName

    Examples
    --------
    A gear between two joints, of ratio 2:

    >>> gear = Constraint(lambda q: q[1] - 2.0 * q[0], name="gear")
    >>> from cstormpy.mechanism import library
    >>> mech = library.planar_2r().replace(loops=[gear])
    >>> mech.closure([0.1, 0.5]).round(9), mech.closure_jacobian([0.1, 0.5])
    (array([0.3]), array([[-2.,  1.]]))
    """

    _fields = ("function", "kind", "name")
    function: Callable[[Any], Any]
    kind: str
    name: str

    def __init__(self, function: Callable[[Any], Any], kind: str = "position", name: str = "constraint") -> None:
        if not callable(function):
            raise InvalidType(f"constraint: expected a function of q, got {shown(function)}")
        if kind not in _KINDS:
            raise unknown_name("constraint: kind", kind, _KINDS)
        self._set(function=function, kind=kind, name=checks.name(name, "constraint name"))

    def __repr__(self) -> str:
        said = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Constraint({said}{', kind=' + repr(self.kind) if self.kind != 'position' else ''}, name={self.name!r})"
