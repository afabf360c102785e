"""Static nonlinearities: limits, dead zone, quantisation, hysteresis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike

from cstormpy.arrays import real_number
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._switching import Kinked, Switching
from cstormpy.errors import InvalidValue
from cstormpy.signals.limits import (
    SHARES,
    beside,
    dead_zone,
    either,
    hysteresis,
    narrowest,
    nearest_level,
    room_in_level,
    saturated,
)
from cstormpy.simulation.wiring import is_sampled


class _Zoned(Kinked):
    """Base of what a zone bends: its ends, which are tunable, and where a signal passes them."""

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)
    low: Any
    high: Any

    def _make(self, low: Any, high: Any, locate: Any, blockargs: dict[str, Any], finite: bool = True) -> None:
        least, most = _zone(low, high, finite)
        look = ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))  # type: ignore[arg-type]
        self.low, self.high, self._locate = least, most, look
        self._tune("low", "high")

    def _signal(self, u: Sequence[Any]) -> Any:
        return ports.signal(self, 0, u[0], self.low, self.high)  # type: ignore[arg-type]

    def _border(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        return beside(self._signal(u), (self.low, self.high)[which // SHARES], which % SHARES)  # type: ignore[arg-type]


class Saturation(_Zoned, FunctionBlock):
    r"""A signal within limits.

    - input u (float, ndarray): any signal
    - output y (float, ndarray): the same within the limits, element by element

    .. math::

        y = \min(\max(u, u_\mathrm{low}), u_\mathrm{high})

    A run locates where the output bends as events, at which steps of an integration end; with ``locate=False`` it does
    not, which saves an evaluation of the diagram per step. Tunable are ``low`` and ``high``.

    Examples::

        torque = bd.SATURATION(-20, 20)
    """

    def __init__(self, low: ArrayLike = -1.0, high: ArrayLike = 1.0, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param low: the least value, one for all or one for each element, may be infinite, defaults to -1.0
        :type low: float or array_like
        :param high: the greatest value, one for all or one for each element, may be infinite, defaults to 1.0
        :type high: float or array_like
        :param locate: whether a run locates where the output bends, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(low, high, locate, blockargs, finite=False)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the signal within its limits."""
        return [saturated(self._signal(u), self.low, self.high)]


class DeadZone(_Zoned, FunctionBlock):
    r"""A dead zone: the part of a signal beyond a zone about zero.

    - input u (float, ndarray): any signal
    - output y (float, ndarray): by how much it is beyond the zone, zero within, element by element

    .. math::

        y = u - \min(\max(u, u_\mathrm{low}), u_\mathrm{high})

    A run locates where the output bends, as for :class:`Saturation`. Tunable are ``low`` and ``high``.

    Examples::

        gap = bd.DEADZONE(-0.01, 0.01)
    """

    def __init__(self, low: ArrayLike = -0.5, high: ArrayLike = 0.5, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param low: where the zone begins, one for all or one for each element, defaults to -5e-1
        :type low: float or array_like
        :param high: where it ends, one for all or one for each element, defaults to 5e-1
        :type high: float or array_like
        :param locate: whether a run locates where the output bends, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(low, high, locate, blockargs)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return what is beyond the zone."""
        return [dead_zone(self._signal(u), self.low, self.high)]


class Quantizer(Switching, FunctionBlock):
    r"""A signal rounded to multiples of an interval.

    - input u (float, ndarray): any signal
    - output y (float, ndarray): the nearest multiple of the interval, element by element

    .. math::

        y = q \left\lfloor u / q \right\rceil

    halfway between two levels that of the even number. A run locates where the output jumps as events, between which it
    stays as it is; with ``locate=False`` it does not. Linear models take it for its input; in gradients of runs its
    derivative to the input is zero, so that what is quantised finely is better left out of them, as their ``notes``
    say where jumps are not located or a clock samples. Where sampled blocks alone read it, as of an encoder,
    ``locate=False`` changes nothing, and saves an event at each level. Tunable is ``interval``.

    Examples::

        encoder = bd.QUANTIZER(2 * math.pi / 4096, locate=False)
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def __init__(self, interval: ArrayLike = 1.0, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param interval: between two levels, positive, one for all or one for each element, defaults to 1.0
        :type interval: float or array_like
        :param locate: whether a run locates where the output jumps, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        step = ports.numbers(interval, "interval")
        if np.any(np.asarray(step) <= 0.0):
            raise InvalidValue(f"interval: must be positive, got {np.min(step):g}")
        look = ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))
        self.interval, self._locate = step, look
        self.add_param("interval")

    @property
    def hides(self) -> bool:
        """Whether a derivative of a run cannot see what goes through: where jumps are not located, or are sampled."""
        return not self._locate or is_sampled(self)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the nearest level."""
        return [self.interval * self.mode(u)]

    def linear_output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return what linear models take for the output: the signal itself."""
        return [ports.signal(self, 0, u[0], self.interval) + 0.0 * np.asarray(self.interval)]

    def _decided(self, u: Sequence[Any]) -> Any:
        return nearest_level(ports.signal(self, 0, u[0], self.interval), self.interval)

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        return narrowest(room_in_level(ports.signal(self, 0, u[0], self.interval), self.interval, self._mode))


class Relay(Switching, FunctionBlock):
    r"""A relay with hysteresis.

    - input u (float, ndarray): any signal
    - output y (float, ndarray): the one value or the other, element by element

    .. math::

        y = \begin{cases} y_\mathrm{on} & \text{from } u \ge u_\mathrm{on} \text{ until } u \le u_\mathrm{off} \\
        y_\mathrm{off} & \text{from } u \le u_\mathrm{off} \text{ until } u \ge u_\mathrm{on} \end{cases}

    A run locates where it switches as events, between which the output stays as it is. At the start it is as the input
    says and, between the thresholds, as ``closed``. Derivatives of a run hold what the switch by coming earlier or
    later does. Tunable are the thresholds and the values.

    Examples::

        heater = bd.RELAY(switch_on=0.5, switch_off=-0.5, on=0.0, off=100.0)
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def __init__(
        self,
        switch_on: float = 0.5,
        switch_off: float = -0.5,
        on: float = 1.0,
        off: float = 0.0,
        closed: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param switch_on: where it switches on, rising, defaults to 5e-1
        :type switch_on: float
        :param switch_off: where it switches off, falling, not above that, defaults to -5e-1
        :type switch_off: float
        :param on: output while it is on, defaults to 1.0
        :type on: float
        :param off: output while it is off, defaults to 0.0
        :type off: float
        :param closed: whether it is on where it begins between the thresholds, defaults to False
        :type closed: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        upper, lower = real_number(switch_on, "switch_on"), real_number(switch_off, "switch_off")
        if lower > upper:
            raise InvalidValue(f"switch_off: must not be above switch_on, {upper:g}, got {lower:g}")
        values = real_number(on, "on"), real_number(off, "off")
        first = float(ports.flag(closed, "closed"))
        super().__init__(**ports.options(type(self), blockargs))
        self.switch_on, self.switch_off, (self.on, self.off), self._first = upper, lower, values, first
        self._tune("switch_on", "switch_off", "on", "off")

    def start(self, simstate: Any) -> None:
        """Begin a run."""
        self._mode = self._first
        super().start(simstate)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the value of the side that it is on."""
        return [either(self.mode(u) > 0.5, self.on, self.off)]

    def _decided(self, u: Sequence[Any]) -> Any:
        return self._from(self._mode, u)

    def _from(self, mode: Any, u: Sequence[Any]) -> Any:
        return hysteresis(ports.signal(self, 0, u[0]), self.switch_on, self.switch_off, mode)

    def first_mode(self, u: Sequence[Any]) -> Any:
        """Return the mode in which a run begins with some inputs, between the thresholds as ``closed``."""
        return self._from(self._first, u)

    def _size(self, u: Sequence[Any]) -> Any:
        return ports.signal(self, 0, u[0])

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        given = ports.signal(self, 0, u[0])
        return narrowest(either(self._mode > 0.5, given - self.switch_off, self.switch_on - given))


def _zone(low: Any, high: Any, finite: bool) -> tuple[Any, Any]:
    least, most = ports.numbers(low, "low", finite), ports.numbers(high, "high", finite)
    if np.ndim(least) and np.ndim(most) and np.size(least) != np.size(most):
        raise InvalidValue(f"high: expected {np.size(least)} numbers, as low has, got {np.size(most)}")
    if np.any(np.asarray(least) > np.asarray(most)):
        raise InvalidValue(f"high: must not be below low, got low = {low} and high = {high}")
    return least, most
