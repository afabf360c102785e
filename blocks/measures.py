"""Measures of a run: what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.control.effort import effort_rate, weights
from cstormpy.errors import DiagramError, ShapeError, shown


class Effort(bases.NamedStates, ContinuousBlock):
    r"""The running integral of half the squared norm of torques.

    :states: 1

    - input tau (float, ndarray(m)): torques, or any other signal
    - output effort (float): the integral until now [N² m² s]

    .. math::

        \dot{J} = \tfrac12 \sum_i w_i \tau_i^2, \qquad J(0) = J_0.

    ``weight`` is tunable.

    Examples::

        effort = bd.EFFORT()
        bd.connect(controller.tau, effort)
    """

    nin = 1
    nout = 1
    inlabels = ("tau",)
    outlabels = ("effort",)

    def __init__(self, weight: ArrayLike = 1.0, start: float = 0.0, **blockargs: Any) -> None:
        """Create the block.

        :param weight: weight of each number, not negative; one for all, or one for each, defaults to 1
        :type weight: float or array_like
        :param start: what it begins with, defaults to 0
        :type start: float
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        from cstormpy import checks

        w, begin = weights(weight), checks.real(start, "start")
        super().__init__(nstates=1, **ports.options(type(self), blockargs, states=1))
        self._x0, self._weight = np.array([begin]), w
        self.add_param("weight")
        self._begin_names()

    def names_of_states(self) -> list[str]:
        """Return the name of the state."""
        return [".effort"]

    @property
    def weight(self) -> Array:
        """Weight of each number, (m,), or () for all."""
        return self._weight

    @weight.setter
    def weight(self, value: ArrayLike) -> None:
        self._weight = weights(value)

    @property
    def inwidths(self) -> tuple[int | None]:
        """Width of the input; any width unless there is a weight for each number."""
        return (int(self._weight.size) if self._weight.ndim else None,)

    @property
    def outwidths(self) -> tuple[int]:
        """Width of the output."""
        return (1,)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the integral until now."""
        return [x[0]]

    def deriv(self, t: float, u: list[Any], x: Array) -> Array:
        """Return half the weighted square of the input."""
        w, signal = self._weight, u[0]
        if signal is None:
            raise DiagramError(f"{ports.port_label(self, 0)}: has no value; wire a signal to it")
        try:
            shape = np.shape(signal)
        except ValueError:
            raise ShapeError(f"{ports.port_label(self, 0)}: expected numbers, got {shown(signal)}") from None
        if len(shape) > 1:
            raise ShapeError(f"{ports.port_label(self, 0)}: expected a number or a vector, got shape {shape}")
        tau = ports.vector(self, 0, signal, w.size if w.ndim else int(np.prod(shape)))
        return np.array([effort_rate(tau, w)])
