"""Constraints of coordinates: couplings of two joints, and those of a user's own, said by a function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.errors import InvalidType, InvalidValue, UnknownName, shown, unknown_name
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

    _fields: ClassVar[tuple[str, ...]] = ("function", "kind", "name")
    function: Callable[[Any], Any]
    kind: str
    name: str

    def __init__(self, function: Callable[[Any], Any], kind: str = "position", name: str = "constraint") -> None:
        if not callable(function):
            raise InvalidType(f"constraint: expected a function of q, got {shown(function)}")
        option(kind, "constraint: kind", _KINDS)
        self._set(function=function, kind=kind, name=checks.name(name, "constraint name"))

    def on(self, names: Sequence[str], vectors: Collection[str] = ()) -> Constraint:
        """Return the constraint on the coordinates of a mechanism, which have these names.

        `vectors` are those of rotation vectors among them, to which nothing can be coupled.
        """
        return self

    def __repr__(self) -> str:
        said = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Constraint({said}{', kind=' + repr(self.kind) if self.kind != 'position' else ''}, name={self.name!r})"


class Coupling(Constraint):
    """A joint that follows another one, q_joint = ratio q_other + offset: a gear, a belt, a mimic joint of a URDF.

    It stands among the `loops` of a mechanism. What drives the one drives the other, through the force of the coupling.

    Parameters
    ----------
    joint, other : str
        Names of coordinates: of joints that have one, or as "wrist[0]" of one of several; none of a rotation vector.
    ratio : float
        Other than zero.
    offset : float
        [rad or m].
    name : str, optional
        "<joint> follows <other>" unless given.

    Raises
    ------
    InvalidType, InvalidValue, NonFinite
        Naming the coupling.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> mech = library.planar_2r().replace(loops=[Coupling("elbow", "shoulder", 2.0)])
    >>> mech.closure([0.1, 0.5]).round(9), mech.mobility([0.1, 0.2]).freedoms
    (array([0.3]), 1)
    """

    _fields = ("joint", "other", "ratio", "offset", "name")
    joint: str
    other: str
    ratio: float
    offset: float

    def __init__(
        self, joint: str, other: str, ratio: float = 1.0, offset: float = 0.0, name: str | None = None
    ) -> None:
        for what, value in (("joint", joint), ("other", other)):
            if not isinstance(value, str):
                raise InvalidType(f"coupling: {what}: expected the name of a coordinate, got {shown(value)}")
        called = checks.name(f"{joint} follows {other}" if name is None else name, "coupling name")
        number = checks.real(ratio, f"coupling {called!r}: ratio")
        if joint == other or number == 0.0:
            raise InvalidValue(f"coupling {called!r}: expected two joints and a ratio other than zero")
        shift = checks.real(offset, f"coupling {called!r}: offset")
        self._set(joint=joint, other=other, ratio=number, offset=shift, name=called, kind="position")

    def on(self, names: Sequence[str], vectors: Collection[str] = ()) -> Constraint:
        """Return the constraint on the coordinates of a mechanism, which have these names."""
        for name in (self.joint, self.other):
            if name not in names:
                raise UnknownName(f"coupling {self.name!r}: {unknown_name('coordinate', name, names)}")
            if name in vectors:
                raise InvalidValue(
                    f"coupling {self.name!r}: {name!r} is a part of a rotation vector, for which a run takes a shorter "
                    "one at half a turn, so that nothing can follow it; couple joints of one axis"
                )
        places = names.index(self.joint), names.index(self.other)
        return Constraint(_Follows(*places, self.ratio, self.offset), name=self.name)

    def __repr__(self) -> str:
        return f"Coupling({self.joint!r}, {self.other!r}, ratio={self.ratio:g}, offset={self.offset:g})"


@dataclass(frozen=True)
class _Follows:
    """By how much a coordinate is not where another one leads it."""

    joint: int
    other: int
    ratio: float
    offset: float

    def __call__(self, q: Any) -> Any:
        return q[self.joint] - self.ratio * q[self.other] - self.offset
