"""Laws by the clock: torques that depend on the time alone, and one law after another."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control.law import Law, Target, refuse_phases
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.mechanism import Mechanism

FIRST, SECOND = 0, 1


class OpenLoop(Law):
    """Torques as a function of time, whatever the mechanism does.

    Parameters
    ----------
    mech : Mechanism or str
    tau : callable or array_like, (n_a,)
        A function of time [s] that returns the torques of the motors, (n_a,); or torques that stay the same.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Examples
    --------
    >>> import numpy as np
    >>> from cstormpy.mechanism import library
    >>> law = OpenLoop(library.planar_2r(), lambda t: np.array([t, 1.0]))
    >>> law(0.5, [0.3, 0.2], [0.0, 0.0])
    array([0.5, 1. ])
    """

    def __init__(
        self, mech: Mechanism, tau: Callable[[float], Array] | ArrayLike, limit: ArrayLike | None = None
    ) -> None:
        super().__init__(mech, limit)
        self.tau: Callable[[float], Array] | Array = (
            tau if callable(tau) else checks.array(tau, self._torques, f"tau (for {', '.join(self.motors)})").copy()
        )

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,)."""
        return self.tau(t) if callable(self.tau) else self.tau


class Then(Law):
    """One law for some time, with a clock that begins when it does, and another one after it.

    Parameters
    ----------
    first, second : Law
        Without phases of their own.
    duration : float
        How long the first one acts [s].

    Examples
    --------
    >>> import numpy as np
    >>> from cstormpy.mechanism import library
    >>> arm = library.planar_2r()
    >>> law = Then(OpenLoop(arm, lambda t: np.array([t, 0.0])), OpenLoop(arm, [0.0, 9.0]), duration=2.0)
    >>> rest = np.zeros(2)
    >>> law.start(10.0, rest, rest)
    >>> law(11.5, rest, rest), law.margin(11.5, rest, rest)
    (array([1.5, 0. ]), 0.5)
    >>> law.switch(12.0, rest, rest)
    >>> law(12.0, rest, rest), law.modes[law.mode]
    (array([0., 9.]), 'hold')
    """

    modes = ("motion", "hold")

    def __init__(self, first: Law, second: Law, duration: float) -> None:
        for law in (first, second):
            if not isinstance(law, Law):
                raise InvalidType(f"Then: expected two laws, got {shown(law)}")
        if first.mech != second.mech:
            raise InvalidValue("Then: the two laws are made for different mechanisms")
        refuse_phases((first, second), "Then")
        super().__init__(first.mech)
        self.first, self.second = first, second
        self.duration = checks.positive(duration, "duration")

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,), of the law whose turn it is, within its own limit."""
        return (self.first if self.mode == FIRST else self.second)(t - self.begun, q, qd, reference)

    @property
    def ready(self) -> bool:
        """True once both laws are ready."""
        return self.first.ready and self.second.ready

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Begin with the first law."""
        self.mode, self.begun = FIRST, t

    def margin(self, t: float, q: Array, qd: Array) -> float | None:
        """Return how long it is until the second law's turn [s]."""
        return None if self.mode == SECOND else self.begun + self.duration - t

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Go on with the second law."""
        self.mode = SECOND
