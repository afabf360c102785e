"""Tables of one and of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of
from cstormpy.arrays import Array
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._switching import Kinked
from cstormpy.errors import InvalidValue
from cstormpy.signals.tables import beside_points, bilinear, on_lines, shares
from cstormpy.trajectory.checks import finite_array

_OUTSIDE = ("hold", "extrapolate")


class Lookup1D(Kinked, FunctionBlock):
    r"""A function by a table: lines between points.

    - input u (float): where the table is looked up
    - output y (float, ndarray): what is found: a number, or a row of the values

    .. math::

        y = y_k + \frac{u - x_k}{x_{k+1} - x_k} (y_{k+1} - y_k), \qquad x_k \le u < x_{k+1}

    Outside of the table it is the value of the end, or goes on along the last line. bdsim's INTERPOLATE has steps and
    splines. A run locates where the output bends, as for :class:`Saturation`. Tunable is ``values``.

    Examples::

        friction = bd.LOOKUP1D([-1.0, 0.0, 2.0], [-0.3, 0.0, 0.4])
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)
    _widths = (1,), (None,)

    def __init__(
        self,
        points: ArrayLike,
        values: ArrayLike,
        outside: str = "hold",
        locate: bool = True,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param points: where the values are, rising
        :type points: array_like
        :param values: one, or a row, for each point
        :type values: array_like
        :param outside: what is beyond the ends, one of: 'hold' [default], 'extrapolate'
        :type outside: str
        :param locate: whether a run locates where the output bends, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        x = _rising(points, "points")
        y = finite_array(values, "values", (x.size, None) if _is_nested(values) else (x.size,), "one for each point")
        beyond = one_of(outside, "outside", _OUTSIDE) == "extrapolate"
        look = ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))
        self.points, self.values, self._beyond, self._locate = x, y, beyond, look
        self.add_param("values")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return what is found."""
        return [on_lines(ports.vector(self, 0, u[0], 1)[0], self.points, self.values, self._beyond)]

    def _watched(self) -> int:
        return shares(self.points)

    def _border(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        return beside_points(ports.vector(self, 0, u[0], 1)[0], self.points, which)


class Lookup2D(Kinked, FunctionBlock):
    r"""A function of two numbers by a table, linear between its entries along both axes.

    - input u (float): along the rows of the table
    - input v (float): along its columns
    - output y (float): what is found

    .. math::

        y = (1 - s) \left((1 - r) z_{ij} + r z_{i,j+1}\right) + s \left((1 - r) z_{i+1,j} + r z_{i+1,j+1}\right), \qquad
        s = \frac{u - x_i}{x_{i+1} - x_i},\; r = \frac{v - y_j}{y_{j+1} - y_j}

    Outside of the table it is the value of the border, or goes on along the last lines. A run locates where the output
    bends, as for :class:`Saturation`. Tunable is ``values``.

    Examples::

        torque = bd.LOOKUP2D(speeds, voltages, table)  # table of shape (len(speeds), len(voltages))
    """

    nin = 2
    nout = 1
    inlabels = ("u", "v")
    outlabels = ("y",)
    _widths = (1, 1), (None,)

    def __init__(
        self,
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        outside: str = "hold",
        locate: bool = True,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param rows: where the rows are, rising
        :type rows: array_like
        :param columns: where the columns are, rising
        :type columns: array_like
        :param values: the table, of as many rows and columns
        :type values: array_like
        :param outside: what is beyond the borders, one of: 'hold' [default], 'extrapolate'
        :type outside: str
        :param locate: whether a run locates where the output bends, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        xs, ys = _rising(rows, "rows"), _rising(columns, "columns")
        table = finite_array(
            values, "values", (xs.size, ys.size), "a row for each of rows, a column for each of columns"
        )
        beyond = one_of(outside, "outside", _OUTSIDE) == "extrapolate"
        look = ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))
        self.rows, self.columns, self.values, self._beyond = xs, ys, table, beyond
        self._locate = look
        self.add_param("values")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return what is found."""
        first, second = (ports.vector(self, port, u[port], 1)[0] for port in (0, 1))
        return [bilinear(first, second, self.rows, self.columns, self.values, self._beyond)]

    def _watched(self) -> int:
        return shares(self.rows) + shares(self.columns)

    def _border(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        port, share = (0, which) if which < shares(self.rows) else (1, which - shares(self.rows))
        return beside_points(ports.vector(self, port, u[port], 1)[0], (self.rows, self.columns)[port], share)


def _is_nested(values: Any) -> bool:
    try:
        return np.ndim(values) > 1
    except ValueError:
        return False


def _rising(value: Any, what: str) -> Array:
    points = finite_array(value, what, (None,))
    if points.size < 2:
        raise InvalidValue(f"{what}: expected at least two numbers, got {points.size}")
    wrong = np.flatnonzero(np.diff(points) <= 0.0)
    if wrong.size:
        k = int(wrong[0])
        entries = f"{what}[{k + 1}] = {points[k + 1]:g} follows {what}[{k}] = {points[k]:g}"
        raise InvalidValue(f"{what}: must rise, but {entries}; sort the table")
    return points
