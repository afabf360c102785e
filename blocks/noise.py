"""Noise, by a counter: the same numbers in both engines, in any order, on any number of workers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bdsim.components import SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of, positive, whole_number
from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.signals.noise import MOST_SEED, low_pass, normal, seed_of, uniform

_KINDS = ("normal", "uniform")
_MOST_CHANNELS = 64
#: Among so many samples the first of an episode is drawn; as many are left behind it.
_FIRST_SAMPLES = 2**35


class Noise(bases.Ported, SampledBlock):
    r"""Random numbers, a new one at each tick of a clock: white noise, or noise of a bandwidth.

    :states: 1 + N

    - output y (float, ndarray(n)): the noise

    .. math::

        y_k = m + \sigma\, w_k, \qquad E\,w_k = 0,\; E\,w_j w_k = \delta_{jk}

    for the samples held over a period T of the clock; their power spectral density (two-sided) is about σ² T up to the
    frequency 1/(2T), and may be given as ``power`` instead of ``std``, as Simulink's Band-Limited White Noise has it.
    With a ``bandwidth`` b in hertz

    .. math::

        y_k = m + \sigma\, z_k, \quad z_{k+1} = a z_k + \sqrt{1 - a^2}\, w_k, \quad a = e^{-2 \pi b T}, \quad
        S(\omega) = \frac{\sigma^2 T (1 - a^2)}{1 - 2 a \cos \omega T + a^2}

    of the same variance from the first sample on. Numbers are normal, or uniform between ±√3 of their deviation. They
    are those of a seed, of the number of the sample and of the channel, mixed as counter-based generators do:
    both engines, all workers and all orders give the same. At the tick k blocks of the clock are given y_k, and what is
    recorded from there on is the next one. Without a seed the name of the block stands for one, so that
    two blocks differ. Tunable are ``std``, ``mean`` and ``seed``.

    Examples::

        noise = bd.NOISE(bd.clock(1000, "Hz"), std=0.01)
        bd.connect(plant.q, measured[0])
        bd.connect(noise, measured[1])
    """

    nout = 1
    outlabels = ("y",)
    #: Which numbers choose, and have no derivative.
    whole_numbers = ("seed",)
    #: Which state is none of a linear model: the number of the sample.
    aside = slice(1)

    def __init__(
        self,
        clock: Any,
        std: ArrayLike | None = None,
        power: ArrayLike | None = None,
        mean: ArrayLike = 0.0,
        kind: str = "normal",
        bandwidth: float | None = None,
        seed: int | None = None,
        n: int | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when there is a new number
        :type clock: Clock
        :param std: standard deviation, one for all or one for each number, 1 unless given
        :type std: float or array_like, optional
        :param power: power spectral density in the place of the deviation [1/Hz], likewise
        :type power: float or array_like, optional
        :param mean: the mean, one for all or one for each number, defaults to 0.0
        :type mean: float or array_like
        :param kind: how the numbers are distributed, one of: 'normal' [default], 'uniform'
        :type kind: str
        :param bandwidth: where the spectrum has fallen by half [Hz], below half the rate of the clock; white unless
            given
        :type bandwidth: float, optional
        :param seed: a whole number that chooses the numbers; from the block's name unless given
        :type seed: int, optional
        :param n: how many numbers there are; a single one, as a number, unless given
        :type n: int, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks = ports.clock(clock)
        spread = _deviation(std, power, ticks.T)
        centre, which = ports.numbers(mean, "mean"), one_of(kind, "kind", _KINDS)
        given = {"mean": centre, "std" if power is None else "power": spread}
        sizes = {name: np.size(value) for name, value in given.items() if np.ndim(value)}
        count = None if n is None and not sizes else whole_number(
            max(sizes.values()) if n is None else n, "n", 1, _MOST_CHANNELS
        )  # fmt: skip
        for name, size in sizes.items():
            if size != count:
                raise InvalidValue(f"{name}: expected one number or {count}, got {size}")
        keeps = None if bandwidth is None else _kept(bandwidth, ticks.T)
        own = _seed(seed)
        size = 1 + (count or 1)
        super().__init__(ticks, x0=np.zeros(size), **ports.options(type(self), blockargs, states=size))
        self.std, self.mean, self._kind, self._count, self._keeps = spread, centre, which, count, keeps
        self._seed = own
        self._tune("std", "mean", "seed")
        self._widths = (), (count or 1,)

    @property
    def seed(self) -> float | None:
        """The seed, None where the block's name stands for one; a whole number, so that no derivative goes by it."""
        return self._seed

    @seed.setter
    def seed(self, value: Any) -> None:
        self._seed = _seed(value)

    @property
    def number(self) -> float:
        """The seed, given or by the block's name."""
        return float(seed_of(str(self.name))) if self._seed is None else self._seed

    def getstate0(self) -> Array:
        """Return the number of the first sample, and that sample; a filtered one has its variance from there on."""
        return np.concatenate([[0.0], np.ravel(self._white(self.number, 0.0))])

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Return states to begin from, (count, 1 + N), each at another sample of all there are."""
        k = rng.integers(_FIRST_SAMPLES, size=(count, 1)).astype(float)
        return np.hstack([k, self._white(self.number, k)])

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the noise."""
        return [self.mean + self.std * (x[1:] if self._count else x[1])]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the next sample, its number before it."""
        k = np.ravel(x[0] + 1.0)
        white = self._white(self.number, k)
        if self._keeps is None:
            return np.concatenate([k, white])
        return np.concatenate([k, self._keeps * x[1:] + np.sqrt(1.0 - self._keeps**2) * white])

    def _white(self, seed: Any, k: Any) -> Any:
        """Return the numbers of a sample, of deviation one."""
        p = uniform(seed, k, np.arange(float(self._count or 1)))
        return normal(p) if self._kind == "normal" else math.sqrt(12.0) * (p - 0.5)


def _seed(value: Any) -> float | None:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value  # as sweeps give numbers
    return None if value is None else float(whole_number(whole, "seed", 0, MOST_SEED - 1))


def _deviation(std: Any, power: Any, T: float) -> Any:
    """Return the standard deviation, a number or one for each."""
    if std is not None and power is not None:
        raise InvalidType("power: give either std or power, not both")
    name, value = ("std", 1.0 if std is None else std) if power is None else ("power", power)
    found = ports.numbers(value, name)
    if np.any(np.asarray(found) < 0.0):
        raise InvalidValue(f"{name}: expected numbers that are not negative, got {shown(value)}")
    return found if power is None else np.sqrt(found / T)


def _kept(bandwidth: Any, T: float) -> float:
    band = positive(bandwidth, "bandwidth")
    if band >= 0.5 / T:
        raise InvalidValue(f"bandwidth: must be below half the rate of the clock, {0.5 / T:g} Hz, got {band:g}")
    return low_pass(band, T)
