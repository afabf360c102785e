"""Sampled blocks that remember: delays, backlash, limits of rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bdsim.components import SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, is_single, real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.signals.delays import between_samples, samples_kept
from cstormpy.signals.limits import either, limited_rate, play

_MOST_SAMPLES = 2000
#: So far below a whole number of steps a delay counts as that.
_ROUNDING = 1e-9
#: So near before the time at which a signal first arrives, in parts of it, it has: more than what that time is rounded
#: by, less than how far from a jump a run stays.
_ARRIVED = 3.0 * 2.0**-52


class Delay(bases.Ported, SampledBlock):
    r"""A signal as it was a time, or some samples, before.

    :states: N

    - input u (float, ndarray): the signal, as wide as ``x0``
    - output y (float, ndarray): what it was

    .. math::

        y_k = u_{k-n} \qquad \text{or} \qquad y(t) = p(t - \tau), \quad p(jT) = u(jT)

    By ``samples`` it is the n-th sample before, for blocks of its clock; between ticks it shows what they will see
    at the next one, as all sampled blocks do: behind a continuous signal, ``samples=1`` shows there the sample just
    taken, as a ZOH does. What a plant is to get a period later, as from a controller that computes so long, has
    ``samples=2``, or a ZOH of that clock before it. By ``time`` it is a transport delay at any time t: p is a
    polynomial of the given order through the samples about t - τ, exact on polynomials up to that order, with an
    error of the order ``order`` + 1 in the period of the clock elsewhere. Before there is anything to show it is
    ``x0``; where the signal first arrives is a declared jump. A delay shorter than the period cannot be made of
    samples, and an order needs as many periods: sample faster. Tunable is ``x0``.

    Examples::

        lagging = bd.DELAY(bd.clock(1000, "Hz"), time=0.0125)
        unit = bd.DELAY(bd.clock(100, "Hz"), samples=1)
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def __init__(
        self,
        clock: Any,
        time: float | None = None,
        samples: int | None = None,
        x0: ArrayLike = 0.0,
        order: int | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when samples are taken
        :type clock: Clock
        :param time: the delay [s], not shorter than the period of the clock
        :type time: float, optional
        :param samples: the delay in samples, in the place of a time; 1 unless one of both is given
        :type samples: int, optional
        :param x0: output before there is anything to show, as wide as the signal, defaults to 0.0
        :type x0: float or array_like
        :param order: of the interpolation between samples, from 1 to 7; 3 unless given, or as much as the delay allows
        :type order: int, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, first = ports.clock(clock), ports.numbers(x0, "x0")
        if time is not None and samples is not None:
            raise InvalidType("samples: give either a time or a number of samples, not both")
        if time is None and order is not None:
            raise InvalidType("order: is that of the interpolation of a delay by time")
        if time is None:
            count = whole_number(1 if samples is None else samples, "samples", 1, _MOST_SAMPLES)
            delay, power, steps = 0.0, 0, 0.0
        else:
            delay, power = _delay_and_order(time, order, ticks.T)
            steps = delay / ticks.T
            count = samples_kept(steps, power)
            if count > _MOST_SAMPLES:
                raise InvalidValue(
                    f"time: {delay:g} s are {steps:.0f} periods of the clock, more than {_MOST_SAMPLES}; sample slower"
                )
        width, flat = int(np.size(first)), np.ravel(np.asarray(first, dtype=float))
        start = _samples_at_start(flat, count, power)
        super().__init__(ticks, x0=start, **ports.options(type(self), blockargs, states=start.size))
        self._single, self._width, self._count = not np.ndim(first), width, count
        self._delay, self._order, self._steps, self._first = delay, power, steps, flat
        self.add_param("x0")
        #: Whether the output moves between ticks.
        self.between_ticks = power > 0
        #: How many states count ticks, and so come back in no round: when the last one was, and how many have been.
        self.counting = 2 if power else 0
        self._widths = (width,), (width,)

    @property
    def x0(self) -> float | Array:
        """Output before there is anything to show."""
        return float(self._first[0]) if self._single else self._first.copy()

    @x0.setter
    def x0(self, value: ArrayLike) -> None:
        first = ports.numbers(value, "x0")
        if np.size(first) != self._width:
            raise InvalidValue(f"x0: expected as many numbers as the signal has, {self._width}, got {np.size(first)}")
        self._first = np.ravel(np.asarray(first, dtype=float))
        self._x0 = _samples_at_start(self._first, self._count, self._order)

    def start(self, simstate: Any) -> None:
        """Tell a run when the signal first arrives."""
        super().start(simstate)
        clock, now = self._clock, getattr(simstate, "t", None) or 0.0
        first = {clock.offset}
        if now == 0.0 and clock in getattr(simstate, "clock_states", {}):  # which begins as bdsim's a period later
            first.add(clock.time(simstate.clock_states[clock].tick - 1))
        for arrives in (tick + self._delay for tick in first):
            if self._order and arrives > now and hasattr(simstate, "declare_event"):
                simstate.declare_event(self, arrives)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return what the signal was."""
        if not self._order:
            y = x[-self._width :]
        else:
            last, taken, samples = x[0], x[1], x[2:].reshape(self._count, self._width)
            T = self.T
            ago = self._steps - (t - last) / T
            there = between_samples(np.maximum(ago, 0.0), samples, taken, self._order)
            arrives = last - (taken - 1.0) * T + self._delay
            y = either((taken < 1.0) | (t < arrives * (1.0 - _ARRIVED)), self._first, there)
        return [y[0] if self._single else y]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the samples with that of now in front."""
        now = ports.vector(self, 0, u[0], self._width, as_wide="x0")
        if not self._order:
            return np.concatenate([now, x[: -self._width]])
        return np.concatenate([np.ravel(t), np.ravel(x[1] + 1.0), now, x[2 : -self._width]])


class _Follower(bases.Ported):
    """Base of what follows a signal: its states are its output."""

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def _make(self, ticks: Any, first: Any, blockargs: dict[str, Any]) -> None:
        flat = np.ravel(np.asarray(first, dtype=float))
        made = ports.options(type(self), blockargs, states=flat.size)  # type: ignore[arg-type]
        super().__init__(ticks, x0=flat, feedthrough=True, **made)
        self._single, self._widths = not np.ndim(first), ((flat.size,), (flat.size,))

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return what follows the signal."""
        y = self.next(t, u, x)
        return [y[0] if self._single else y]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the same, to begin from at the next tick."""
        raise NotImplementedError


class Backlash(_Follower, SampledBlock):
    r"""Play between two parts: the output follows when the input has crossed the gap.

    :states: N

    - input u (float, ndarray): position of the driving part, as wide as ``x0``
    - output y (float, ndarray): position of the part that is driven

    .. math::

        y_k = \min\left(\max\left(y_{k-1}, u_k - \tfrac{w}{2}\right), u_k + \tfrac{w}{2}\right)

    at the ticks of its clock, and held between them. For a gap between two masses that have dynamics, put a DEADZONE
    between their positions and the force. Tunable is ``width``.

    Examples::

        gear = bd.BACKLASH(bd.clock(1000, "Hz"), width=0.02)
    """

    def __init__(self, clock: Any, width: float = 1.0, x0: ArrayLike = 0.0, **blockargs: Any) -> None:
        """Create the block.

        :param clock: when it looks at the input
        :type clock: Clock
        :param width: of the gap, positive, defaults to 1.0
        :type width: float
        :param x0: output of the tick before the first, as wide as the signal, defaults to 0.0
        :type x0: float or array_like
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, gap, first = ports.clock(clock), positive(width, "width"), ports.numbers(x0, "x0")
        self._make(ticks, first, blockargs)
        self.width = gap
        self.add_param("width")

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the same, to begin from at the next tick."""
        return play(ports.vector(self, 0, u[0], self.ndstates, as_wide="x0"), self.width, x)


class RateLimiter(_Follower, SampledBlock):
    r"""A signal that follows another at a limited rate.

    :states: N

    - input u (float, ndarray): the signal, as wide as ``x0``
    - output y (float, ndarray): what follows it

    .. math::

        y_k = y_{k-1} + \min\left(\max\left(u_k - y_{k-1}, r_\mathrm{falling} T\right), r_\mathrm{rising} T\right)

    at the ticks of its clock, of period T, and held between them. Tunable are ``rising`` and ``falling``.

    Examples::

        ramp = bd.RATELIMITER(bd.clock(1000, "Hz"), rising=2.0, falling=-5.0)
    """

    def __init__(
        self,
        clock: Any,
        rising: float = 1.0,
        falling: float | None = None,
        x0: ArrayLike = 0.0,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it looks at the input
        :type clock: Clock
        :param rising: the greatest rate, positive, defaults to 1.0
        :type rising: float
        :param falling: the least rate, negative; unless given that of rising as the block is made, with another sign
        :type falling: float, optional
        :param x0: output of the tick before the first, as wide as the signal, defaults to 0.0
        :type x0: float or array_like
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, up, first = ports.clock(clock), positive(rising, "rising"), ports.numbers(x0, "x0")
        down = -up if falling is None else real_number(falling, "falling") if is_single(falling) else 0.0
        if down >= 0.0:
            raise InvalidValue(f"falling: expected a negative rate, got {shown(falling)}")
        self._make(ticks, first, blockargs)
        self.rising, self.falling = up, down
        self._tune("rising", "falling")

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the same, to begin from at the next tick."""
        return limited_rate(
            ports.vector(self, 0, u[0], self.ndstates, as_wide="x0"), x, self.falling, self.rising, self.T
        )


def _samples_at_start(first: Array, count: int, order: int) -> Array:
    """Return the states before the first sample; by time, when the last was taken and how many come before them."""
    return np.concatenate([[0.0, 0.0] if order else [], np.tile(first, count)])


def _delay_and_order(time: Any, order: Any, T: float) -> tuple[float, int]:
    delay = positive(time, "time")
    most = math.floor(delay / T + _ROUNDING)
    if most < 1:
        raise InvalidValue(
            f"time: a delay of {delay:g} s is shorter than the period of the clock, {T:g} s; sample faster"
        )
    power = min(3, most) if order is None else whole_number(order, "order", 1, 7)
    if power > most:
        raise InvalidValue(
            f"order: a delay of {delay / T:.3g} periods has samples for an order of at most {most}, got {power}; "
            "sample faster"
        )
    return delay, power
