"""Samples of a motion, as terms and constraints see them: its values, and the derivatives they answer with.

Values stand in *channels*: q, qd, qdd, tau, qddd (N, n), t (N,) and the duration. A derivative is a mapping from the
channels that it touches to arrays of one more dimension in front of theirs where several numbers are derived; that to
the duration is (N,), T as the function reads it, and that to the design variables, "design", has a last dimension of
these. A channel that is missing has the derivative zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.design import Designed
    from cstormpy.optimal.sizes import Sizes

#: Derivatives by channel.
Parts = Mapping[str, Array]
Places = slice | NDArray[np.intp]

__all__ = ["CHANNELS", "FORCES", "TIMES", "Array", "Parts", "Places", "Samples", "Watched"]

CHANNELS = ("q", "qd", "qdd", "tau", "qddd")
"""The channels with a column for each joint."""

FORCES = "multipliers"
"""The channel with a column for each constraint of the loops."""

TIMES = ("t", "duration")
"""Those with one number for all joints."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A motion at N samples.

    Attributes
    ----------
    mech : Mechanism
    duration : float
        T of the whole motion [s].
    weights : ndarray, (N,)
        T Σ w f approximates the integral of f over time; zeros at samples that serve for other purposes.
    t : ndarray, (N,)
        Time since the start [s].
    q, qd, qdd, tau : ndarray, (N, n)
        Position, rate, acceleration and motor torque of all joints.
    qddd : ndarray, (N, n)
        Jerk of the joints on splines; zeros for the others.
    sizes : Sizes
        Characteristic sizes of the numbers.
    designed : Designed or None
        The design that `mech` is, where a problem has design variables; `design` says their values.
    multipliers : ndarray, (N, m)
        Of the constraints of the loops, as `Mechanism.hybrid_dynamics` answers; no columns where there are none.
    """

    mech: Mechanism
    duration: float
    weights: Array
    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    qddd: Array
    sizes: Sizes
    designed: Designed | None = None
    multipliers: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        """Give the multipliers of a mechanism without loops their rows."""
        if not self.multipliers.size:
            object.__setattr__(self, "multipliers", np.zeros((len(self.t), 0)))

    @property
    def design(self) -> dict[str, float]:
        """The design variables by their names."""
        return {} if self.designed is None else self.designed.parameters

    def at(self, places: Places) -> Samples:
        """Return some of the samples."""
        if isinstance(places, slice) and places == slice(0, len(self)):
            return self
        return replace(self, **{name: getattr(self, name)[places] for name in ("weights", "t", *CHANNELS, FORCES)})

    def __len__(self) -> int:
        return len(self.t)


class Watched(Samples):
    """Samples that know which of their values were asked for: what a function of them can depend on."""

    def __post_init__(self) -> None:
        """Begin with none."""
        super().__post_init__()
        self._asked.clear()

    @property
    def _asked(self) -> set[str]:
        own: dict[str, Any] = super().__getattribute__("__dict__")
        asked: set[str] = own.setdefault("asked", set())
        return asked

    def __getattribute__(self, name: str) -> Any:
        """Return a value, and keep its name."""
        if name in _VALUES:
            self._asked.add(name)
        return super().__getattribute__(name)

    def __len__(self) -> int:
        return len(super().__getattribute__("t"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Make a copy, which may be asked for anything."""
        self._asked.update(_VALUES)
        return super().__reduce_ex__(protocol)

    def asks(self, channel: str) -> bool:
        """Tell whether this channel was asked for, or all at once, as by a copy."""
        return channel in self._asked or "__dict__" in self._asked


_VALUES = frozenset((*CHANNELS, FORCES, *TIMES, "__dict__"))
