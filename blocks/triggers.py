"""Triggers: where a signal becomes true a sample is held, edges are found and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock, FunctionBlock, SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of, whole_number
from cstormpy.arrays import Array, real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._switching import Thresholded
from cstormpy.signals.logic import compared, edge

_DIRECTIONS = ("rising", "falling", "both")


class SampleHold(Thresholded, ContinuousBlock):
    r"""The value that a signal had where another one became true.

    :states: N

    - input u (float, ndarray): the signal, as wide as ``x0``
    - input trigger (float): the signal that rises through its threshold where a sample is taken
    - output y (float, ndarray): the sample taken last; before the first one ``x0``

    .. math::

        y(t) = u(t_k), \quad t_k \le t < t_{k+1}, \qquad \text{trigger rises at } t_k

    A run locates these times as events. To sample by a clock there is bdsim's ZOH. Gradients of a run go through the
    samples, and through when they are taken. Tunable is ``threshold``.

    Examples::

        held = bd.SAMPLEHOLD(threshold=0.5)
        bd.connect(height, held.u)
        bd.connect(touch, held.trigger)
    """

    nin = 2
    nout = 1
    inlabels = ("u", "trigger")
    outlabels = ("y",)
    _compared = 1, ">"
    #: On which side the trigger begins is seen when rates are asked for, not outputs.
    decides_in_rates = True

    def __init__(self, threshold: float = 0.0, x0: ArrayLike = 0.0, **blockargs: Any) -> None:
        """Create the block.

        :param threshold: of the trigger, above which it is true, defaults to 0.0
        :type threshold: float
        :param x0: output before the first sample, as wide as the signal, defaults to 0.0
        :type x0: float or array_like
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        border, first = real_number(threshold, "threshold"), ports.numbers(x0, "x0")
        size, flat = int(np.size(first)), np.ravel(np.asarray(first, dtype=float))
        super().__init__(nstates=size, x0=flat, **ports.options(type(self), blockargs, states=size))
        self._single, self.threshold = not np.ndim(first), border
        self._reset, self._tangents = self._sample, self._sampled
        self.add_param("threshold")
        self._widths = (size, 1), (size,)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the sample."""
        return [x[0] if self._single else x]

    def deriv(self, t: float, u: list[Any], x: Array) -> Array:
        """Return zeros; where the run begins, the side that the trigger is on is noted."""
        self.mode(u)
        return np.zeros(self.nstates)

    def _sample(self, t: float, x: Array) -> None:
        if self._mode > 0.5:
            x[:] = ports.vector(self, 0, self.inport_values[0], self.nstates, as_wide="x0")

    def _sampled(self, t: float, x: Array, dx: Array, du: Sequence[Array]) -> Array:
        """Return the tangents of the sample."""
        return du[0] if self._mode > 0.5 else dx


class Counter(Thresholded, FunctionBlock):
    r"""A counter of how often a signal has become true.

    - input u (float): any signal
    - output count (float): how often it has passed the threshold

    .. math::

        n(t) = n_0 + \#\{t_k \le t : u \text{ rises through } u_0 \text{ at } t_k\} \mod m

    A run locates these times as events. A signal that begins above the threshold does not count there. Tunable is
    ``threshold``.

    Examples::

        turns = bd.COUNTER(threshold=0.0, modulo=4)
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("count",)

    def __init__(
        self,
        threshold: float = 0.0,
        direction: str = "rising",
        first: int = 0,
        modulo: int | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param threshold: above which the signal is true, defaults to 0.0
        :type threshold: float
        :param direction: which of its edges count, one of: 'rising' [default], 'falling', 'both'
        :type direction: str
        :param first: what it begins with, less than modulo, defaults to 0
        :type first: int
        :param modulo: where it begins with zero again; never unless given
        :type modulo: int, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        border, which = real_number(threshold, "threshold"), one_of(direction, "direction", _DIRECTIONS)
        period = None if modulo is None else whole_number(modulo, "modulo", 2, 10**9)
        begin = whole_number(first, "first", 0, 10**9 if period is None else period - 1)
        super().__init__(**ports.options(type(self), blockargs))
        self.threshold, self._direction, self._first, self._period = border, which, begin, period
        self._count = float(begin)
        self.add_param("threshold")

    def start(self, simstate: Any) -> None:
        """Begin a run, and to count."""
        super().start(simstate)
        self._count = float(self._first)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the count."""
        self.mode(u)
        return [self._count]

    def _set(self, u: Sequence[Any]) -> None:
        begins, before = self._begins, self._mode
        super()._set(u)
        if not begins and edge(before, self._mode, self._direction):
            self._count += 1.0
            if self._period is not None:
                self._count %= self._period

    def memory(self) -> dict[str, Any]:
        """Return what a continued run needs: side and count."""
        return {**super().memory(), "count": self._count}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned."""
        super().recall(memory)
        self._count = float(memory["count"])


class Edge(bases.Ported, SampledBlock):
    r"""A detector of edges: true if a signal has become true since the tick before.

    :states: 1

    - input u (float): any signal
    - output y (float): 1 from the tick that finds the edge to the next one, else 0

    .. math::

        y_k = \begin{cases} 1 & u_k > u_0 \text{ and } u_{k-1} \le u_0 \\ 0 & \text{else} \end{cases}

    At the first tick no edge is found in a signal that is true then, unless ``before=False`` says that it was not.

    Examples::

        pressed = bd.EDGE(bd.clock(100, "Hz"))
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def __init__(
        self,
        clock: Any,
        direction: str = "rising",
        threshold: float = 0.0,
        before: bool | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it looks
        :type clock: Clock
        :param direction: which edges are found, one of: 'rising' [default], 'falling', 'both'
        :type direction: str
        :param threshold: above which the signal is true, defaults to 0.0
        :type threshold: float
        :param before: whether the signal was true before the first tick; as at that tick unless given
        :type before: bool, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks = ports.clock(clock)
        which, border = one_of(direction, "direction", _DIRECTIONS), real_number(threshold, "threshold")
        first = -1.0 if before is None else float(ports.flag(before, "before"))
        made = ports.options(type(self), blockargs, states=1)
        super().__init__(ticks, x0=[first], feedthrough=True, **made)
        self._direction, self.threshold = which, border
        self.add_param("threshold")

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return whether there is an edge."""
        return [edge(x[0], self._truth(u), self._direction)]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return whether the signal is true now."""
        return np.ravel(self._truth(u))

    def _truth(self, u: Sequence[Any]) -> Any:
        return compared(ports.vector(self, 0, u[0], 1)[0], self.threshold, ">")
