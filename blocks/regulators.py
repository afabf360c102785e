"""PID controllers with limits and without windup, continuous and sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock, SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._switching import Kinked
from cstormpy.errors import InvalidValue
from cstormpy.signals.limits import SHARES, beside
from cstormpy.signals.pid import integral_rate, parts, sampled_derivative
from cstormpy.trajectory.checks import finite_array

_TUNED = ("P", "I", "D", "N", "b", "c", "low", "high", "tracking")


class _Controller(bases.NamedStates):
    """Base of both controllers: gains, checked, and signals of one width."""

    nin = 2
    nout = 1
    inlabels = ("reference", "measured")
    outlabels = ("control",)
    #: What its states are of each number.
    _kinds: tuple[str, ...]
    _single: bool
    _n: int

    def _make(self, gains: dict[str, Any], n: int | None, x0: Any, blockargs: dict[str, Any], *clock: Any) -> None:
        self._single, self._n = n is None, n or 1
        size = len(self._kinds) * self._n
        made = ports.options(type(self), blockargs, states=size)  # type: ignore[type-var]
        first = np.zeros(size) if x0 is None else finite_array(x0, "x0", (size,))
        super().__init__(*clock, x0=first, feedthrough=True, **made)  # type: ignore[call-arg]
        self._widths = (self._n, self._n), (self._n,)
        for name in _TUNED:
            setattr(self, name, gains[name])
            self.add_param(name)  # type: ignore[attr-defined]

    def names_of_states(self) -> list[str]:
        """Return the names of the states, kind by kind."""
        ends = [""] if self._single else [f"[{k}]" for k in range(self._n)]
        return [f":{kind}{end}" for kind in self._kinds for end in ends]

    @property
    def _gains(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _TUNED}

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the control."""
        control = self._parts(u, x)[1]
        return [control[0] if self._single else control]

    def _parts(self, u: Sequence[Any], x: Array) -> tuple[Any, ...]:
        """Return the control that is wanted, that which is given within its limits, and what else there is of it."""
        raise NotImplementedError

    def _signals(self, u: Sequence[Any]) -> tuple[Any, Any]:
        r, y = (ports.vector(self, port, u[port], self._n) for port in (0, 1))  # type: ignore[arg-type]
        return r, y


class PIDController(_Controller, Kinked, ContinuousBlock):
    r"""A PID controller with a filtered derivative, limits, and no windup.

    :states: 2N

    - input reference (float, ndarray(n)): what is wanted
    - input measured (float, ndarray(n)): what is
    - output control (float, ndarray(n)): the control, within its limits

    .. math::

        v &= P (b r - y) + \xi + D N (c r - y - \eta), \qquad u = \min(\max(v, u_\mathrm{low}), u_\mathrm{high}) \\
        \dot{\xi} &= I (r - y) + \frac{u - v}{T_t}, \qquad \dot{\eta} = N (c r - y - \eta)

    The derivative is D N s / (s + N). What the limits take away moves the integral ξ back with the time constant
    T_t (back-calculation; Åström and Hägglund 2006); without a gain I it stays as it is. The weights b and c say how
    much of the reference the proportional and the derivative part see. A run locates where the limits set in. Tunable
    are all gains and limits.

    Examples::

        pid = bd.PIDCONTROLLER(P=8.0, I=4.0, D=1.0, low=-20.0, high=20.0)
        bd.connect(wanted, pid.reference)
        bd.connect(angle, pid.measured)
        bd.connect(pid, torque)

    :seealso: :class:`DiscretePID`
    """

    _by_states = True
    _kinds = ("integral", "filter")

    def __init__(
        self,
        P: ArrayLike = 1.0,
        I: ArrayLike = 0.0,  # noqa: E741
        D: ArrayLike = 0.0,
        N: ArrayLike = 100.0,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        tracking: ArrayLike | None = None,
        b: ArrayLike = 1.0,
        c: ArrayLike = 0.0,
        n: int | None = None,
        x0: ArrayLike | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param P: proportional gain, one for all or one for each number, defaults to 1.0
        :type P: float or array_like
        :param I: integral gain [1/s], defaults to 0.0
        :type I: float or array_like
        :param D: derivative gain [s], defaults to 0.0
        :type D: float or array_like
        :param N: bandwidth of the derivative [rad/s], defaults to 100.0
        :type N: float or array_like
        :param low: the least control; none unless given
        :type low: float or array_like, optional
        :param high: the greatest control; none unless given
        :type high: float or array_like, optional
        :param tracking: time constant by which windup is undone [s]; √(D / I), or P / I without D, or 1 / I without
            both, unless given, of the gains that the block is made with
        :type tracking: float or array_like, optional
        :param b: weight of the reference in the proportional part, defaults to 1.0
        :type b: float or array_like
        :param c: weight of the reference in the derivative part, defaults to 0.0
        :type c: float or array_like
        :param n: how many numbers are controlled; a single one, as a number, unless given
        :type n: int, optional
        :param x0: ξ and η at the start, (2n,); zeros unless given. Where η is c r − y of the start, the derivative does
            not kick there
        :type x0: array_like, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        count = None if n is None else whole_number(n, "n", 1, 64)
        gains = _gains(count, P=P, I=I, D=D, N=N, low=low, high=high, tracking=tracking, b=b, c=c)
        self._make(gains, count, x0, blockargs)
        self._begin_names()

    def deriv(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the rates of the integral and of the filter."""
        r, y = self._signals(u)
        wanted, given = self._parts(u, x)
        return np.concatenate(
            [integral_rate(self._gains, r, y, wanted, given), self.N * (self.c * r - y - x[self._n :])]
        )

    def _parts(self, u: Sequence[Any], x: Array) -> tuple[Any, Any]:
        (r, y), n = self._signals(u), self._n
        return parts(self._gains, r, y, x[:n], self.D * self.N * (self.c * r - y - x[n:]))

    def _border(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        return beside(self._parts(u, x[0])[0], (self.low, self.high)[which // SHARES], which % SHARES)


class DiscretePID(_Controller, SampledBlock):
    r"""A sampled PID controller with a filtered derivative, limits, and no windup.

    :states: 3N

    - input reference (float, ndarray(n)): what is wanted
    - input measured (float, ndarray(n)): what is
    - output control (float, ndarray(n)): the control, within its limits

    .. math::

        v_k &= P (b r_k - y_k) + \xi_k + \delta_k, \qquad u_k = \min(\max(v_k, u_\mathrm{low}), u_\mathrm{high}) \\
        \xi_{k+1} &= \xi_k + T \left(I (r_k - y_k) + \frac{u_k - v_k}{T_t}\right), \qquad
        \delta_k = \frac{\delta_{k-1} + D N (d_k - d_{k-1})}{1 + N T}, \quad d = c r - y

    at the ticks of its clock, of period T, and held between them: :class:`PIDController` by the forward difference
    for the integral, which stays as it is where I is zero, and the backward one for the derivative. Tunable are all
    gains and limits.

    Examples::

        pid = bd.DISCRETEPID(bd.clock(1000, "Hz"), P=8.0, I=4.0, D=1.0, low=-20.0, high=20.0)

    :seealso: :class:`PIDController`
    """

    _kinds = ("integral", "derivative", "difference")

    def __init__(
        self,
        clock: Any,
        P: ArrayLike = 1.0,
        I: ArrayLike = 0.0,  # noqa: E741
        D: ArrayLike = 0.0,
        N: ArrayLike = 100.0,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        tracking: ArrayLike | None = None,
        b: ArrayLike = 1.0,
        c: ArrayLike = 0.0,
        n: int | None = None,
        x0: ArrayLike | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it computes the control
        :type clock: Clock
        :param P: proportional gain, one for all or one for each number, defaults to 1.0
        :type P: float or array_like
        :param I: integral gain [1/s], defaults to 0.0
        :type I: float or array_like
        :param D: derivative gain [s], defaults to 0.0
        :type D: float or array_like
        :param N: bandwidth of the derivative [rad/s], defaults to 100.0
        :type N: float or array_like
        :param low: the least control; none unless given
        :type low: float or array_like, optional
        :param high: the greatest control; none unless given
        :type high: float or array_like, optional
        :param tracking: time constant by which windup is undone [s]; √(D / I), or P / I without D, or 1 / I without
            both, unless given, of the gains that the block is made with; the period of the clock where that is longer
        :type tracking: float or array_like, optional
        :param b: weight of the reference in the proportional part, defaults to 1.0
        :type b: float or array_like
        :param c: weight of the reference in the derivative part, defaults to 0.0
        :type c: float or array_like
        :param n: how many numbers are controlled; a single one, as a number, unless given
        :type n: int, optional
        :param x0: ξ, δ and d before the first tick, (3n,); zeros unless given. Where d is c r − y of the start, the
            derivative does not kick there
        :type x0: array_like, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, count = ports.clock(clock), None if n is None else whole_number(n, "n", 1, 64)
        gains = _gains(count, P=P, I=I, D=D, N=N, low=low, high=high, tracking=tracking, b=b, c=c)
        gains["tracking"] = np.maximum(gains["tracking"], ticks.T)
        self._make(gains, count, x0, blockargs, ticks)

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the integral, the derivative part, and what it was of."""
        (r, y), (wanted, given, slope) = self._signals(u), self._parts(u, x)
        integral = x[: self._n] + self.T * integral_rate(self._gains, r, y, wanted, given)
        return np.concatenate([integral, slope, self.c * r - y])

    def _parts(self, u: Sequence[Any], x: Array) -> tuple[Any, Any, Any]:
        (r, y), n = self._signals(u), self._n
        slope = sampled_derivative(self._gains, self.c * r - y - x[2 * n :], x[n : 2 * n], self.T)
        return *parts(self._gains, r, y, x[:n], slope), slope


def _gains(n: int | None, **given: Any) -> dict[str, Any]:
    tracking = given.pop("tracking")
    given["low"] = -math.inf if given["low"] is None else given["low"]
    given["high"] = math.inf if given["high"] is None else given["high"]
    gains = {name: ports.numbers(value, name, finite=name not in ("low", "high")) for name, value in given.items()}
    if np.any(np.asarray(gains["N"]) <= 0.0):
        raise InvalidValue(f"N: must be positive, got {np.min(gains['N']):g}")
    if np.any(np.asarray(gains["low"]) > np.asarray(gains["high"])):
        raise InvalidValue(f"high: must not be below low, got low = {given['low']} and high = {given['high']}")
    if tracking is None:
        kp, ki, kd = (np.abs(np.asarray(gains[name], dtype=float)) for name in "PID")
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(kd > 0.0, np.sqrt(kd / ki), np.where(kp > 0.0, kp, 1.0) / ki)
        found = np.where(np.isfinite(found), found, 1.0)
        gains["tracking"] = found if found.ndim else float(found)
    else:
        gains["tracking"] = ports.numbers(tracking, "tracking")
        positive(float(np.min(gains["tracking"])), "tracking")
    for name, value in gains.items():
        if np.ndim(value) and np.size(value) != n:
            raise InvalidValue(f"{name}: expected one number or {n or 'n='}, got {np.size(value)}; n says how many")
    return gains
