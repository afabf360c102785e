"""Objectives: small terms that scale and add, as in ``Effort() + 100 * Terminal(q={"shoulder": np.pi / 2})``.

A term is an integral over the motion, a function of its end or of all of it, or the duration itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from cstormpy import checks
from cstormpy.arrays import own_arrays
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.joints import mask_of, targets_of
from cstormpy.optimal.samples import Array, Parts, Samples

Kind = Literal["integral", "end", "duration", "motion"]

SMOOTH = 1e-4
"""The smoothing of the powers of `EnergySpent`, as a part of their sizes."""


class Objective:
    """A weighted sum of terms.

    Examples
    --------
    >>> 2 * (Time() + 0.5 * Effort())
    2 Time() + Effort()
    """

    def __init__(self, parts: Iterable[tuple[float, Term]] = ()) -> None:
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[tuple[float, Term], ...]:
        """The terms with their weights."""
        return self._parts

    def __add__(self, other: object) -> Objective:
        if isinstance(other, (int, float)) and other == 0:  # sum() begins with 0
            return self
        if not isinstance(other, Objective):
            return NotImplemented
        return Objective((*self.parts, *other.parts))

    __radd__ = __add__

    def __mul__(self, factor: object) -> Objective:
        if isinstance(factor, Objective):
            raise InvalidType("objective: terms can be added and scaled, not multiplied by one another")
        number = checks.real(factor, "weight of an objective")
        return Objective((number * weight, term) for weight, term in self.parts)

    __rmul__ = __mul__

    def __neg__(self) -> Objective:
        return -1.0 * self

    def __sub__(self, other: Objective) -> Objective:
        return self + -1.0 * other

    def __truediv__(self, divisor: object) -> Objective:
        return self * (1.0 / checks.real(divisor, "divisor of an objective"))

    def __repr__(self) -> str:
        signed = [f"{'-' if weight < 0 else '+'} {_times(abs(weight))}{term.label()}" for weight, term in self.parts]
        text = " ".join(signed).removeprefix("+ ")
        return f"-{text[2:]}" if text.startswith("- ") else text or "0"


def _times(size: float) -> str:
    return "" if size == 1.0 else f"{size:g} "


class Term(Objective):
    """One term: what is integrated over the motion, or a function of its end or of all samples, or the duration.

    Those of one's own are made by `Running` and `AtEnd`, or as a class with `kind` and the two methods.
    """

    kind: Kind = "integral"
    channels: tuple[str, ...] = ()
    """The channels that it is known to depend on."""

    def __init__(self) -> None:
        super().__init__()

    @property
    def parts(self) -> tuple[tuple[float, Term], ...]:
        """The term itself, with the weight one."""
        return ((1.0, self),)

    def values(self, at: Samples) -> Array:
        """Return the integrand, or the function of the end, at N samples: (N,)."""
        raise NotImplementedError

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives of the values to the channels that matter, (N, n) each, and (N,) for "t"."""
        raise NotImplementedError

    def residuals(self, at: Samples) -> tuple[Array, Parts] | None:
        """Return r, (N, k), of which the values are ½ Σ r², and its derivatives by channel, (N, k, n); None if of none.

        They are what a Gauss-Newton method makes its matrix of.
        """
        return None

    def check(self, mech: Mechanism) -> None:
        """Refuse a mechanism that the term does not fit."""

    def label(self) -> str:
        """Return what messages call the term."""
        return f"{type(self).__name__}()"


class Time(Term):
    """The duration T [s]."""

    kind = "duration"

    def values(self, at: Samples) -> Array:
        """Return T."""
        return np.array([at.duration])

    def derivatives(self, at: Samples) -> Parts:
        """Return none: the derivative to the duration is one."""
        return {}


class _Square(Term):
    """½ ∫ Σ w_j y_j² dt of one channel."""

    channel = ""

    def __init__(self, joints: Any = None) -> None:
        super().__init__()
        self.joints = own_arrays(joints)
        self._known: tuple[Mechanism, Array] | None = None

    def _default(self, mech: Mechanism) -> Array:
        return np.ones(mech.n)

    def check(self, mech: Mechanism) -> None:
        """Refuse joints that do not exist."""
        self._weights(mech)

    def _weights(self, mech: Mechanism) -> Array:
        if self._known is None or self._known[0] is not mech:
            default = self._default(mech)
            self._known = (mech, default if self.joints is None else mask_of(mech, self.joints, self.label()))
        return self._known[1]

    def values(self, at: Samples) -> Array:
        """Return ½ Σ w_j y_j², (N,)."""
        y = getattr(at, self.channel)
        return 0.5 * ((y * y) @ self._weights(at.mech))

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel."""
        return {self.channel: getattr(at, self.channel) * self._weights(at.mech)}

    def residuals(self, at: Samples) -> tuple[Array, Parts]:
        """Return the root of w_j times y_j of the joints that count."""
        roots = np.sqrt(self._weights(at.mech))
        rows = np.diag(roots)[np.flatnonzero(roots)]
        return _rows_of(at, {self.channel: (getattr(at, self.channel) @ rows.T, rows)})


class Effort(_Square):
    """½ ∫ ‖τ‖² dt, Sohl and Bobrow 2001, (82).

    Of a ball τ is the generalized force on the rates of its rotation vector, Jᵀ times the moment of its motors about
    the axes of the link, as in `HybridDynamics`: the same moment counts otherwise where the ball has turned.

    Parameters
    ----------
    joints : iterable of str, or mapping from str to float, optional
        Whose torques count, or with which weights; those of all motors unless given.
    """

    channel = "tau"
    channels = ("tau",)

    def _default(self, mech: Mechanism) -> Array:
        return mech.actuated_mask.astype(np.float64)


class Acceleration(_Square):
    """½ ∫ ‖q̈‖² dt; `joints` as for `Effort`, all unless given."""

    channel = "qdd"
    channels = ("qdd",)


class Jerk(_Square):
    """½ ∫ ‖dq̈/dt‖² dt of the joints on splines; `joints` as for `Effort`, all of them unless given."""

    channel = "qddd"
    channels = ("qddd",)


class EnergySpent(Term):
    """∫ Σ |τ_j q̇_j| dt: what motors spend that give nothing back [J].

    |P| is smoothed to (P² + ε²)^½ − ε, and what motors brake may count less, or be given back. If all of it is, by
    ``recover=1``, only damping and friction cost anything: without them each motion between the same ends costs the
    same, and another term has to choose, as in ``EnergySpent(recover=1.0) + 0.01 * Effort()``.

    Parameters
    ----------
    joints
        As for `Effort`.
    smooth : float, optional
        ε [W]; for each joint a ten thousandth of its characteristic power (see `Samples.sizes`) unless given.
    recover : float
        Part of the negative work that is given back, from 0 to 1.
    """

    channels = ("tau", "qd")

    def __init__(self, joints: Any = None, smooth: float | None = None, recover: float = -1.0) -> None:
        super().__init__()
        self.joints, self.smooth = own_arrays(joints), None if smooth is None else checks.positive(smooth, "smooth")
        self.recover = checks.real(recover, "recover")
        if not -1.0 <= self.recover <= 1.0:
            raise InvalidValue(f"recover: expected a part from -1 (spent as well) to 1 (given back), got {recover}")

    def check(self, mech: Mechanism) -> None:
        """Refuse joints that do not exist."""
        self._weights(mech)

    def _weights(self, mech: Mechanism) -> Array:
        return (
            mech.actuated_mask.astype(np.float64) if self.joints is None else mask_of(mech, self.joints, "EnergySpent")
        )

    def values(self, at: Samples) -> Array:
        """Return Σ |P_j|, (N,)."""
        power, up, down = at.tau * at.qd, 0.5 * (1.0 - self.recover), 0.5 * (1.0 + self.recover)
        smooth = self._smooth(at)
        return (up * (np.hypot(power, smooth) - smooth) + down * power) @ self._weights(at.mech)

    def _smooth(self, at: Samples) -> Array | float:
        return SMOOTH * at.sizes.power if self.smooth is None else self.smooth

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel."""
        power, up, down = at.tau * at.qd, 0.5 * (1.0 - self.recover), 0.5 * (1.0 + self.recover)
        slope = (up * power / np.hypot(power, self._smooth(at)) + down) * self._weights(at.mech)
        return {"tau": slope * at.qd, "qd": slope * at.tau}


class Terminal(Term):
    """Σ (q_j(T) − q*_j)² + Σ (q̇_j(T) − q̇*_j)², the penalty of Sohl and Bobrow 2001, (83).

    Parameters
    ----------
    q, qd : mapping from joint names to numbers, or (n,) with None for joints that do not count, optional
        The targets [rad or m, per s].

    Examples
    --------
    >>> 100 * Terminal(q={"shoulder": 1.5}) + 10 * Terminal(qd={"shoulder": 0.0})
    100 Terminal(q={'shoulder': 1.5}) + 10 Terminal(qd={'shoulder': 0.0})
    """

    kind = "end"

    def __init__(self, q: Any = None, qd: Any = None) -> None:
        super().__init__()
        if q is None and qd is None:
            raise InvalidValue("Terminal: give q= or qd=, the positions or rates that are wanted at the end")
        self.q, self.qd = own_arrays(q), own_arrays(qd)

    def check(self, mech: Mechanism) -> None:
        """Refuse joints that do not exist."""
        self.targets(mech)

    def targets(self, mech: Mechanism) -> dict[str, Array]:
        """Return the targets by channel, (n,), NaN where there is none."""
        given = {"q": self.q, "qd": self.qd}
        return {
            name: targets_of(mech, value, f"Terminal, {name}") for name, value in given.items() if value is not None
        }

    def values(self, at: Samples) -> Array:
        """Return the sum of squares, (N,)."""
        total = np.zeros(len(at))
        for channel, target in self.targets(at.mech).items():
            counted = np.isfinite(target)
            total += np.sum((getattr(at, channel)[:, counted] - target[counted]) ** 2, axis=1)
        return total

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel."""
        targets = self.targets(at.mech).items()
        return {c: 2.0 * np.where(np.isfinite(target), getattr(at, c) - target, 0.0) for c, target in targets}

    def residuals(self, at: Samples) -> tuple[Array, Parts]:
        """Return the root of two times how far each coordinate is from its target."""
        found = {}
        for channel, target in self.targets(at.mech).items():
            counted = np.isfinite(target)
            rows = np.sqrt(2.0) * np.eye(len(target))[counted]
            found[channel] = np.sqrt(2.0) * (getattr(at, channel)[:, counted] - target[counted]), rows
        return _rows_of(at, found)

    def label(self) -> str:
        """Return what messages call the term: with its targets."""
        given: Mapping[str, Any] = {"q": self.q, "qd": self.qd}
        return f"Terminal({', '.join(f'{k}={v!r}' for k, v in given.items() if v is not None)})"


def _rows_of(at: Samples, channels: Mapping[str, tuple[Array, Array]]) -> tuple[Array, Parts]:
    """Return residuals (N, k) and their derivatives, of values and constant rows (k, n) for each channel."""
    counts = [len(rows) for _, rows in channels.values()]
    parts, begin = {}, 0
    for channel, (_, rows) in channels.items():
        part = np.zeros((sum(counts), rows.shape[1]))
        part[begin : begin + len(rows)] = rows
        parts[channel] = np.broadcast_to(part, (len(at), *part.shape))
        begin += len(rows)
    return np.hstack([values for values, _ in channels.values()]), parts


def Mixed(u: float) -> Objective:
    """Return ∫ (1 − u) + u ‖τ‖² dt, the mixed cost of Xiang et al. 2008, (67).

    >>> Mixed(0.01)
    0.99 Time() + 0.02 Effort()
    """
    share = checks.real(u, "u")
    if not 0.0 <= share <= 1.0:
        raise InvalidValue(f"u: expected a number from 0 to 1, got {share:g}")
    return (1.0 - share) * Time() + (2.0 * share) * Effort()
