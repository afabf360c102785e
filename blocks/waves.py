"""Test signals: pulses, chirps, sums of sines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from bdsim.components import SourceBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of, positive
from cstormpy.arrays import real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import InvalidValue
from cstormpy.signals.waves import chirp, multisine, pulse_train, schroeder_phases
from cstormpy.simulation.run_start import is_ahead, refuse_many
from cstormpy.trajectory.checks import finite_array


class Pulse(bases.Ported, SourceBlock):
    r"""Rectangular pulses.

    - output y (float): the pulses

    .. math::

        y = o + a \cdot \begin{cases} 1 & t \ge t_0 \text{ and } \frac{t - t_0}{P} \bmod 1 < w \\ 0 & \text{else}
        \end{cases}

    The edges are declared, so that no step of an integration reaches over them. Tunable are all numbers.

    Examples::

        pulse = bd.PULSE(amplitude=5.0, period=2.0, width=0.1, delay=1.0)
    """

    nout = 1
    outlabels = ("y",)

    def __init__(
        self,
        amplitude: float = 1.0,
        period: float = 1.0,
        width: float = 0.5,
        delay: float = 0.0,
        offset: float = 0.0,
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param amplitude: height of the pulses, defaults to 1.0
        :type amplitude: float
        :param period: from the beginning of a pulse to that of the next [s], defaults to 1.0
        :type period: float
        :param width: of a pulse, as a part of the period, between 0 and 1, defaults to 5e-1
        :type width: float
        :param delay: when the first pulse begins [s], defaults to 0.0
        :type delay: float
        :param offset: value between the pulses, defaults to 0.0
        :type offset: float
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        given = real_number(amplitude, "amplitude"), positive(period, "period"), real_number(width, "width")
        if not 0.0 < given[2] < 1.0:
            raise InvalidValue(f"width: expected a part of the period, between 0 and 1, got {given[2]:g}")
        late, level = real_number(delay, "delay"), real_number(offset, "offset")
        if late < 0.0:
            raise InvalidValue(f"delay: must not be negative, got {late:g} s")
        super().__init__(**ports.options(type(self), blockargs))
        self.amplitude, self.period, self.width = given
        self.delay, self.offset = late, level
        self._tune("amplitude", "period", "width", "delay", "offset")

    def start(self, simstate: Any) -> None:
        """Tell a run when this source jumps."""
        super().start(simstate)
        begin, end = (getattr(simstate, name, None) or 0.0 for name in ("t", "tf"))
        first, last = (max(0.0, (t - self.delay) / self.period) for t in (begin, end))
        refuse_many(self, 2.0 * (last - first))
        for k in range(max(0, math.floor(first) - 1), math.ceil(last) + 1):
            for edge in (edge + k * self.period for edge in self.edges()[0]):
                if edge > 0.0 and is_ahead(simstate, edge):
                    simstate.declare_event(self, edge)

    def edges(self) -> tuple[list[float], float]:
        """Return when the first pulse begins and ends, and after which time the next one does."""
        return [self.delay, self.delay + self.width * self.period], self.period

    def edge_time(self, t: float) -> Callable[[], float]:
        """Return what reads, from the numbers of then, when the edge comes that now comes at a time."""
        cycles = (t - self.delay) / self.period
        k = round(cycles), round(cycles - self.width)
        if abs(cycles - k[0]) < abs(cycles - self.width - k[1]):
            return lambda: float(self.delay + k[0] * self.period)
        return lambda: float(self.delay + (k[1] + self.width) * self.period)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the value of the pulses."""
        return [self.offset + self.amplitude * pulse_train(t, self.period, self.width, self.delay)]


class Chirp(bases.Ported, SourceBlock):
    r"""A sine whose frequency grows or falls.

    - output y (float): the sine

    .. math::

        y = a \sin 2 \pi \int_0^t f, \qquad f(t) = f_0 + (f_1 - f_0) \frac{t}{T} \quad \text{or} \quad
        f_0 \left(\frac{f_1}{f_0}\right)^{t / T}

    Behind the time T the frequency goes on as before. Tunable are all numbers.

    Examples::

        sweep = bd.CHIRP(0.1, 20.0, duration=30.0, sweep="logarithmic")
    """

    nout = 1
    outlabels = ("y",)

    def __init__(
        self,
        f0: float = 0.1,
        f1: float = 10.0,
        duration: float = 10.0,
        amplitude: float = 1.0,
        sweep: str = "linear",
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param f0: frequency at the start [Hz], defaults to 1e-1
        :type f0: float
        :param f1: frequency after the time [Hz], defaults to 10.0
        :type f1: float
        :param duration: the time from the one to the other [s], defaults to 10.0
        :type duration: float
        :param amplitude: of the sine, defaults to 1.0
        :type amplitude: float
        :param sweep: how the frequency goes, one of: 'linear' [default], 'logarithmic'
        :type sweep: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        first, last = positive(f0, "f0"), positive(f1, "f1")
        span, size = positive(duration, "duration"), real_number(amplitude, "amplitude")
        logarithmic = one_of(sweep, "sweep", ("linear", "logarithmic")) == "logarithmic"
        if logarithmic and first == last:
            raise InvalidValue(f"f1: a logarithmic sweep wants another frequency than f0, got {first:g} Hz for both")
        super().__init__(**ports.options(type(self), blockargs))
        self.f0, self.f1, self.duration, self.amplitude, self._logarithmic = first, last, span, size, logarithmic
        self._tune("f0", "f1", "duration", "amplitude")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the sine."""
        return [self.amplitude * chirp(t, self.f0, self.f1, self.duration, self._logarithmic)]


class MultiSine(bases.Ported, SourceBlock):
    r"""A sum of sines.

    - output y (float): the sum

    .. math::

        y = \sum_k a_k \sin(2 \pi f_k t + \varphi_k)

    Without phases those of Schroeder (1970), φ_k = -π k (k - 1) / n, keep the peaks of the sum low. Tunable are
    ``amplitudes`` and ``phases``.

    Examples::

        excitation = bd.MULTISINE([0.5, 1.0, 1.5, 2.0], amplitudes=0.2)
    """

    nout = 1
    outlabels = ("y",)

    def __init__(
        self,
        frequencies: ArrayLike,
        amplitudes: ArrayLike = 1.0,
        phases: ArrayLike | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param frequencies: of the sines [Hz]
        :type frequencies: array_like
        :param amplitudes: of the sines, one for all or one for each, defaults to 1.0
        :type amplitudes: float or array_like
        :param phases: of the sines [rad], those of Schroeder unless given
        :type phases: array_like, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        f = np.ravel(ports.numbers(frequencies, "frequencies"))
        if np.any(f <= 0.0):
            raise InvalidValue(f"frequencies: must be positive, got {f.min():g} Hz")
        sizes = np.ravel(ports.numbers(amplitudes, "amplitudes"))
        if sizes.size not in (1, f.size):
            raise InvalidValue(
                f"amplitudes: expected one number or {f.size}, as there are frequencies, got {sizes.size}"
            )
        angles = schroeder_phases(f.size) if phases is None else finite_array(phases, "phases", (f.size,))
        super().__init__(**ports.options(type(self), blockargs))
        self.frequencies, self.amplitudes, self.phases = f, np.resize(sizes, f.size), angles
        self._tune("amplitudes", "phases")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the sum."""
        return [multisine(t, self.frequencies, self.amplitudes, self.phases)]
