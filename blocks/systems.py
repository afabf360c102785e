"""Linear systems with several inputs and outputs, continuous and sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock, SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import InvalidValue
from cstormpy.signals.systems import linear_output, linear_rate, realized, state_space
from cstormpy.trajectory.checks import finite_array

Matrices = tuple[Array, Array, Array, Array]


class _Linear(bases.Ported):
    """A linear system: one port for all inputs, one for all outputs; numbers where there is one of them."""

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)
    A: Array
    B: Array
    C: Array
    D: Array | None

    def _make(self, matrices: Matrices, x0: Any, blockargs: dict[str, Any], *clock: Any) -> None:
        """Make the block of its matrices, which are attributes of it."""
        first = _first(x0, len(matrices[0]))
        made = ports.options(type(self), blockargs, states=first.size)
        super().__init__(*clock, x0=first, feedthrough=bool(matrices[3].any()), **made)
        self.A, self.B, self.C, D = matrices
        self.D = D if D.any() else None
        self._widths = (self.B.shape[1],), (len(self.C),)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the outputs."""
        given = None if self.D is None else ports.vector(self, 0, u[0], self.B.shape[1])  # type: ignore[arg-type]
        y = linear_output(self.C, self.D, x, given)
        return [y[0] if len(self.C) == 1 else y]

    def _rate(self, t: float, u: list[Any], x: Array) -> Any:
        """Return the rates of the states, or of a sampled system the states after a tick."""
        return linear_rate(self.A, self.B, x, ports.vector(self, 0, u[0], self.B.shape[1]))  # type: ignore[arg-type]


class StateSpace(_Linear, ContinuousBlock):
    r"""A linear system by its matrices, with one port for all inputs and one for all outputs.

    :states: N

    - input u (float, ndarray): as many numbers as B has columns
    - output y (float, ndarray): as many numbers as C has rows

    .. math::

        \dot{x} = A x + B u, \qquad y = C x + D u

    Numbers are those of one state, input or output; a vector is a column in B, and a row in C. bdsim's LTI_SS has a
    port for each number.

    Examples::

        plant = bd.STATESPACE([[0, 1], [-2, -3]], [[0], [1]], [[1, 0]])
    """

    def __init__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        D: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param A: (n, n)
        :type A: array_like
        :param B: (n, inputs)
        :type B: array_like
        :param C: (outputs, n)
        :type C: array_like
        :param D: (outputs, inputs); zeros unless given
        :type D: array_like, optional
        :param x0: the states at the start, (n,); zeros unless given
        :type x0: array_like, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(state_space(A, B, C, D), x0, blockargs)

    deriv = _Linear._rate


class TransferFn(_Linear, ContinuousBlock):
    r"""A linear system by its transfer functions, with one port for all inputs and one for all outputs.

    :states: N

    - input u (float, ndarray): as many numbers as num has columns
    - output y (float, ndarray): as many numbers as num has rows

    .. math::

        Y_i(s) = \sum_j \frac{N_{ij}(s)}{D_{ij}(s)} U_j(s)

    Polynomials are lists of coefficients, the highest power first; several inputs or outputs are rows of polynomials,
    with one denominator for all or one for each. The states are those of controller canonical forms, which begin at
    zero. The matrices A, B, C and D are attributes.

    Examples::

        lag = bd.TRANSFERFN([1], [0.5, 1])
        both = bd.TRANSFERFN([[[1], [2]], [[0], [1, 1]]], [1, 3, 2])  # two inputs, two outputs
    """

    def __init__(self, num: Any = (1.0,), den: Any = (1.0, 1.0), **blockargs: Any) -> None:
        """Create the block.

        :param num: coefficients of the numerator, or rows of numerators, defaults to (1.0,)
        :type num: list
        :param den: coefficients of the denominator, or rows of denominators, defaults to (1.0, 1.0)
        :type den: list
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(_with_states(realized(num, den)), None, blockargs)

    deriv = _Linear._rate


class DiscreteSS(_Linear, SampledBlock):
    r"""A sampled linear system by its matrices, with one port for all inputs and one for all outputs.

    :states: N

    - input u (float, ndarray): as many numbers as B has columns
    - output y (float, ndarray): as many numbers as C has rows

    .. math::

        x_{k+1} = A x_k + B u_k, \qquad y_k = C x_k + D u_k

    at the ticks of its clock. With D the output is held between ticks; without, it shows there what blocks of the same
    clock will see at the next one, as all sampled blocks do.

    Examples::

        filter = bd.DISCRETESS(bd.clock(100, "Hz"), 0.9, 0.1, 1.0)
    """

    def __init__(
        self,
        clock: Any,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        D: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it steps
        :type clock: Clock
        :param A: (n, n)
        :type A: array_like
        :param B: (n, inputs)
        :type B: array_like
        :param C: (outputs, n)
        :type C: array_like
        :param D: (outputs, inputs); zeros unless given
        :type D: array_like, optional
        :param x0: the states at the start, (n,); zeros unless given
        :type x0: array_like, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(state_space(A, B, C, D), x0, blockargs, ports.clock(clock))

    next = _Linear._rate


class DiscreteTF(_Linear, SampledBlock):
    r"""A sampled linear system by its transfer functions, with one port for all inputs and one for all outputs.

    :states: N

    - input u (float, ndarray): as many numbers as num has columns
    - output y (float, ndarray): as many numbers as num has rows

    .. math::

        Y_i(z) = \sum_j \frac{N_{ij}(z)}{D_{ij}(z)} U_j(z)

    with polynomials in z as :class:`TransferFn` has them in s, the highest power first: ``[1], [1, -0.9]`` is
    1 / (z - 0.9). For the output between ticks see :class:`DiscreteSS`.

    Examples::

        filter = bd.DISCRETETF(bd.clock(100, "Hz"), [0.1, 0], [1, -0.9])
    """

    def __init__(self, clock: Any, num: Any = (1.0,), den: Any = (1.0, 0.0), **blockargs: Any) -> None:
        """Create the block.

        :param clock: when it steps
        :type clock: Clock
        :param num: coefficients of the numerator, or rows of numerators, defaults to (1.0,)
        :type num: list
        :param den: coefficients of the denominator, or rows of denominators, defaults to (1.0, 0.0)
        :type den: list
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self._make(_with_states(realized(num, den)), None, blockargs, ports.clock(clock))

    next = _Linear._rate


def _with_states(matrices: Matrices) -> Matrices:
    if not len(matrices[0]):
        raise InvalidValue("den: has no power of its variable, so that there is no state; a GAIN does that")
    return matrices


def _first(x0: Any, n: int) -> Array:
    return (
        np.zeros(n)
        if x0 is None
        else finite_array(x0 if np.iterable(x0) else [x0], "x0", (n,), "one for each row of A")
    )
