"""Measurement and motors that are not perfect: noise, delay, slow response, pushes; two blocks for any diagram.

Both sample at the ticks of a clock and hold in between, as a digital controller does. What they do wrong are numbers
that a sweep varies, so that one compiled diagram serves all runs. Noise is that of a counter, the same in both engines
and in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bdsim.components import SampledBlock

from cstormpy.arrays import Array
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.errors import DiagramError
from cstormpy.signals.delays import between_samples
from cstormpy.signals.noise import normal, uniform
from cstormpy.simulation.wiring import port_numbers

MEASUREMENT, MOTORS = "robustness_measurement", "robustness_motors"
"""Names of the blocks in a diagram."""
PUSHES = 3
"""Number of pushes to each motor in a run."""
SEED = 2023
#: Channels of the noise: those of the measurement first.
TORQUES = 1024


class Measurement(SampledBlock):  # type: ignore[misc]
    """Positions and rates as a controller gets them: late, and with noise on the rates.

    Tunable are `delay`, in periods of the clock and up to `longest`, `noise`, the standard deviation of the rates, and
    `seed`.
    """

    def __init__(self, clock: Any, start: Array, longest: int, **blockargs: Any) -> None:
        n = len(start) // 2
        self._n, self._start, self._kept = n, start, longest + 2
        super().__init__(
            clock, nin=2, nout=2, x0=np.concatenate([[0.0], np.tile(start, self._kept)]), feedthrough=True, **blockargs
        )
        self.delay, self.noise, self.seed = 0.0, 0.0, float(SEED)
        for name in ("delay", "noise", "seed"):
            self.add_param(name)

    def _samples(self, u: list[Any], x: Array) -> Array:
        """Return what was measured, the last first."""
        return np.concatenate([u[0], u[1], x[1:]])[: 2 * self._n * self._kept].reshape(self._kept, 2 * self._n)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return positions and rates of some time ago, with noise."""
        n = self._n
        seen = between_samples(self.delay, self._samples(u, x), float(self._kept), 1)
        white = normal(uniform(self.seed, x[0], np.arange(float(n))))
        return [seen[:n], seen[n:] + self.noise * white]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the number of the next sample, and the samples."""
        return np.concatenate([x[:1] + 1.0, self._samples(u, x).ravel()])


class Motors(SampledBlock):  # type: ignore[misc]
    r"""Torques as motors give them: τ_k = τ_{k−1} + response (wanted − τ_{k−1}), with noise and pushes.

    The pushes are bells in time, :math:`\sum_j a_j e^{-(t - c_j)^2 / (2 w_j^2)}`. Tunable are `response`, `noise`, the
    standard deviation of the torques, `seed`, and the pushes' `height`, `centre` and `width`.
    """

    def __init__(self, clock: Any, count: int, **blockargs: Any) -> None:
        self._count = count
        super().__init__(clock, nin=1, nout=1, x0=np.zeros(1 + count), feedthrough=True, **blockargs)
        self.response, self.noise, self.seed = 1.0, 0.0, float(SEED)
        self.height, self.centre, self.width = (value * np.ones(count * PUSHES) for value in (0.0, 0.0, 1.0))
        for name in ("response", "noise", "seed", "height", "centre", "width"):
            self.add_param(name)

    def _answer(self, u: list[Any], x: Array) -> Array:
        return x[1:] + self.response * (np.reshape(u[0], self._count) - x[1:])

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the torques."""
        count = self._count
        white = normal(uniform(self.seed, x[0], TORQUES + np.arange(float(count))))
        bells = self.height * np.exp(-0.5 * ((t - self.centre) / self.width) ** 2)
        pushed = np.cumsum(np.reshape(bells, (count, PUSHES)), axis=1)[:, -1]
        return [self._answer(u, x) + self.noise * white + pushed]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the number of the next sample, and what the motors answered."""
        return np.concatenate([x[:1] + 1.0, self._answer(u, x)])


def named_plants(bd: Any) -> tuple[list[Any], int]:
    """Return the HYBRIDDYNAMICS blocks of a diagram, only those called "plant" if any is, and how many there are."""
    plants = [b for b in bd.blocklist if isinstance(b, HybridDynamics)]
    return [b for b in plants if b.name == "plant"] or plants, len(plants)


def disturb(bd: Any, dt: float, longest: int) -> Any:
    """Put both blocks between the plant of a diagram and what controls it; return the plant.

    Scopes and views go on showing what the plant does.

    Raises
    ------
    DiagramError
        If there is no one plant whose torques come from one signal.
    """
    named, _ = named_plants(bd)
    if len(named) != 1 or named[0].mech.active or not named[0].mech.actuated or named[0].nin != 1:
        raise DiagramError(
            "compare: robustness=True wants one HYBRIDDYNAMICS block, or one called 'plant', that is driven by the "
            "torques of its motors and nothing else"
        )
    plant = named[0]
    clock = bd.clock(dt)
    measured = Measurement(clock, np.asarray(plant.getstate0(), dtype=float), longest, bd=bd, name=MEASUREMENT)
    motors = Motors(clock, len(plant.mech.actuated), bd=bd, name=MOTORS)
    for wire in list(bd.wirelist):
        if wire.end.block is plant:
            bd.wirelist.remove(wire)
            bd.connect(wire.start, motors[0])
        elif wire.start.block is plant and wire.end.block.nout:
            bd.wirelist.remove(wire)
            ends = port_numbers(wire.end)
            for source, target in zip(port_numbers(wire.start), ends, strict=True):
                bd.connect(measured[source], wire.end.block[target])
    bd.connect(plant[0:2], measured[0:2])
    bd.connect(motors[0], plant[0])
    return plant
