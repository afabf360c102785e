"""Laws in a sequence: torques by the clock, one law after another, and swing-up far from a goal and balance near it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control.checked import Checked
from cstormpy.control.law import Law, Target, refuse_phases
from cstormpy.control.lqr import LQR
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name
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
        self.tau = tau

    def _given(self, name: str, tau: Any) -> Callable[[float], Array] | Array:
        if callable(tau):
            return tau
        return checks.array(tau, self._torques, f"{name} (for {', '.join(self.motors)})").copy()

    tau: Any = Checked(_given)

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
    duration: Any = Checked(lambda _, name, value: checks.positive(value, name))

    def __init__(self, first: Law, second: Law, duration: float) -> None:
        for law in (first, second):
            if not isinstance(law, Law):
                raise InvalidType(f"Then: expected two laws, got {shown(law)}")
        if first.mech != second.mech:
            raise InvalidValue("Then: the two laws are made for different mechanisms")
        refuse_phases((first, second), "Then")
        super().__init__(first.mech)
        self.first, self.second = first, second
        self.duration = duration

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,), of the law whose turn it is, within its own limit."""
        if self.mode == FIRST:  # a step of a solver may reach beyond the end
            return self.first(np.minimum(t - self.begun, self.duration), q, qd, reference)
        return self.second(t - self.begun, q, qd, reference)

    @property
    def ready(self) -> bool:
        """True once both laws are ready."""
        return self.first.ready and self.second.ready

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Begin with the first law."""
        self.mode, self.begun = FIRST, t
        self.first.start(0.0, q, qd)

    def margin(self, t: float, q: Array, qd: Array) -> float | None:
        """Return how long it is until the second law's turn [s]."""
        return None if self.mode == SECOND else self.begun + self.duration - t

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Go on with the second law, which begins at this state."""
        self.mode = SECOND
        self.second.start(t - self.begun, q, qd)


SWING, BALANCE = 0, 1

RELEASE = 1.01
"""Release over threshold unless it is given."""


class SwingUp(Law):
    """A law that swings, until a regulator catches the mechanism near the goal; it swings again if that slips.

    With V = eᵀ S e of the regulator: in the phase "swing up" `pump` acts until V falls below `threshold`; in the phase
    "balance" the regulator acts until V rises above `release`. With the torque it asks for the regulator makes V fall,
    so that V rises that far only where the torque is at its limit and the mechanism is leaving; then it is better to
    swing again at once than to let a saturated regulator spoil the energy. That `release` is a little above
    `threshold` bounds how often the phases alternate where either law drives V to the side of the other.

    Parameters
    ----------
    pump : Law
        Without phases of its own.
    balance : LQR
        Any law with `value(t, q, qd)` will do.
    threshold : float
        V below which the regulator takes over.
    release : float, optional
        V above which the pump takes over again; 1.01 times the threshold unless given.
    limit : float or array_like, (n_a,), optional
        Largest torques, beside the limits that the two laws have themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from cstormpy.control import EnergyPump
    >>> from cstormpy.mechanism import library
    >>> mech = library.acrobot()
    >>> law = SwingUp(EnergyPump(mech), LQR(mech), threshold=1650.0, limit=25.0)
    >>> law.start(0.0, np.array([1.6, 0.0]), np.zeros(2))
    >>> law.modes[law.mode]
    'balance'
    """

    tunable: ClassVar[tuple[str, ...]] = ("threshold", "release")
    modes: tuple[str, ...] = ("swing up", "balance")

    def __init__(
        self,
        pump: Law,
        balance: LQR,
        threshold: float,
        release: float | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        if not isinstance(pump, Law) or not isinstance(balance, Law) or not hasattr(balance, "value"):
            raise InvalidType(
                f"SwingUp: expected a law and a regulator with a value, got {shown(pump)} and {shown(balance)}"
            )
        if pump.mech != balance.mech:
            raise InvalidValue("SwingUp: the two laws are made for different mechanisms")
        refuse_phases((pump, balance), "SwingUp")
        super().__init__(pump.mech, limit)
        self.pump, self.balance = pump, balance
        self.threshold, self.release = threshold, release

    def _caught(self, name: str, value: Any) -> float:
        """Return a threshold; the release follows."""
        threshold = checks.positive(value, name)
        if "release" in vars(self):
            vars(self)["release"] *= threshold / self.threshold
        return threshold

    def _let_go(self, name: str, value: Any) -> float:
        release = RELEASE * self.threshold if value is None else checks.positive(value, name)
        if release < self.threshold:
            raise InvalidValue(f"{name}: must not be below the threshold {self.threshold:g}, got {release:g}")
        return release

    threshold: Any = Checked(_caught)
    release: Any = Checked(_let_go)

    def value(self, t: float, q: Array, qd: Array) -> float:
        """Return V = eᵀ S e of the regulator."""
        return self.balance.value(t, q, qd)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,), of the law of the present phase, within its own limit."""
        return (self.balance if self.mode == BALANCE else self.pump)(t, q, qd, reference)

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Balance if V is below the threshold, else swing."""
        self.mode = BALANCE if self.value(t, q, qd) < self.threshold else SWING
        self.pump.start(t, q, qd)
        self.balance.start(t, q, qd)

    def margin(self, t: float, q: Array, qd: Array) -> float:
        """Return V − threshold while swinging, release − V while balancing."""
        v = self.value(t, q, qd)
        return self.release - v if self.mode == BALANCE else v - self.threshold

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Change to the other phase, whose law begins at this state."""
        self.mode = SWING if self.mode == BALANCE else BALANCE
        (self.balance if self.mode == BALANCE else self.pump).start(t, q, qd)

    @property
    def ready(self) -> bool:
        """True once both laws are ready."""
        return self.pump.ready and self.balance.ready

    @property
    def gains(self) -> dict[str, float]:
        """Those of the pump, the threshold and the release, and those of the regulator."""
        return {**self.pump.gains, **super().gains, **self.balance.gains}

    def set_gain(self, name: str, value: float) -> None:
        """Change a tunable number of this law, of the pump or of the regulator; the release follows the threshold."""
        if name in self.tunable:
            super().set_gain(name, value)
        elif name in self.balance.gains:
            self.balance.set_gain(name, value)
        elif name in self.pump.gains or (isinstance(name, str) and name.partition(".")[0] in (self.pump.tunable or ())):
            self.pump.set_gain(name, value)
        else:
            raise unknown_name("gain", name, self.gains)
