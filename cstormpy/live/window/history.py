"""History of a signal in bounded memory: all samples at first, later the extremes within ever longer cells of time.

A cell keeps, of each column, the row where it is lowest and the row where it is highest. So every point that is drawn
is a sample as it was logged, no peak is lost, and where samples are sparse none of them is.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

_MOST_BYTES = 8 * 2**20
"""Of one history: what is kept beside the samples that came last."""
_MOST_ROWS, _FEWEST_ROWS = 2**15, 2**12


def extreme_rows(cells: NDArray[np.int64], y: Array) -> NDArray[np.int64]:
    """Return the rows to keep, in order: of each cell the first lowest and the first highest of each column.

    Parameters
    ----------
    cells : ndarray of int (N,)
        The cell of each row, ascending.
    y : ndarray (N, columns)

    Examples
    --------
    >>> extreme_rows(np.array([0, 0, 0, 0, 1]), np.array([[1.0], [3.0], [2.0], [0.0], [5.0]])).tolist()
    [1, 3, 4]
    """
    n = len(cells)
    if not n:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    counts = np.diff(np.append(starts, n))
    group = np.repeat(np.arange(len(starts)), counts)
    keep = np.zeros(n, dtype=bool)
    for column in y.T:
        for extreme in (np.minimum, np.maximum):
            where = np.flatnonzero(column == np.repeat(extreme.reduceat(column, starts), counts))
            owners = group[where]
            keep[where[np.concatenate([[True], owners[1:] != owners[:-1]])]] = True
    return np.flatnonzero(keep)


def _first_rows(cells: NDArray[np.int64], y: Array) -> NDArray[np.int64]:
    """Return the first row of each cell."""
    del y
    return np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]])) if len(cells) else cells


class History:
    """Rows over time; see `Extremes` and `Thinned` for what becomes of those that are too many.

    Parameters
    ----------
    columns : int
    begin, end : float
        The time that the run will take.
    """

    _select: ClassVar = staticmethod(_first_rows)
    _rows_of_cell = 1

    def __init__(self, columns: int, begin: float, end: float) -> None:
        self.columns, self.begin = columns, begin
        rows = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_BYTES // (8 * (columns + 1)))) * self._rows_of_cell
        #: So many rows are kept of what was condensed; as many again may come behind them.
        self.limit = rows
        self._cell = max(end - begin, 1e-9) / 2**24
        self._t = np.empty(2 * rows)
        self._y = np.empty((2 * rows, columns))
        self._n = 0
        #: Counts how often rows were dropped.
        self.generation = 0

    def __len__(self) -> int:
        return self._n

    @property
    def t(self) -> Array:
        """Times (N,) of what is kept."""
        return self._t[: self._n]

    @property
    def y(self) -> Array:
        """Rows (N, columns) of what is kept."""
        return self._y[: self._n]

    def add(self, t: Array, y: Array) -> None:
        """Add rows (N, columns) that are later than all before; rows that are not finite leave a gap."""
        finite = np.isfinite(y).all(axis=1)
        if not finite.all():
            t, y = t[finite], y[finite]
        while len(t):
            room = len(self._t) - self._n
            if not room:
                self._condense()
                continue
            part = min(room, len(t))
            self._t[self._n : self._n + part] = t[:part]
            self._y[self._n : self._n + part] = y[:part]
            self._n += part
            t, y = t[part:], y[part:]

    def _condense(self) -> None:
        while self._n > self.limit:
            cells = np.floor((self.t - self.begin) / self._cell).astype(np.int64)
            rows = self._select(cells, self.y)
            self._t[: len(rows)], self._y[: len(rows)] = self._t[rows], self._y[rows]
            self._n = len(rows)
            if self._n > self.limit:
                self._cell *= 2.0
        self.generation += 1

    def nearest(self, t: float) -> int:
        """Return the row of the last sample not after a time, or of the first one."""
        return max(0, int(np.searchsorted(self.t, t, side="right")) - 1)


class Extremes(History):
    """Keeps the lowest and highest of each column within a cell."""

    _select: ClassVar = staticmethod(extreme_rows)
    _rows_of_cell = 2


class Thinned(History):
    """Keeps the first row of each cell."""


class Drawn:
    """The points to draw of a history: at most a few for each pixel column, computed anew only where samples came.

    Parameters
    ----------
    history : History
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self._key: tuple[float, float, int, int] | None = None
        self._done_t, self._done_y = np.zeros(0), np.zeros((0, history.columns))
        self._next = 0

    def points(self, begin: float, end: float, pixels: int) -> tuple[Array, Array]:
        """Return times (k,) and rows (k, columns) to draw between two times, one row beyond either included."""
        h = self.history
        cell = (end - begin) / max(1, pixels)
        if cell <= 0.0 or not len(h):
            return np.zeros(0), np.zeros((0, h.columns))
        key = (begin, end, pixels, h.generation)
        if key != self._key:
            self._key = key
            self._done_t, self._done_y = np.zeros(0), np.zeros((0, h.columns))
            self._next = max(0, int(np.searchsorted(h.t, begin)) - 1)
        last = min(len(h), int(np.searchsorted(h.t, end, side="right")) + 1)
        t, y = h.t[self._next : last], h.y[self._next : last]
        if not len(t):
            return self._done_t, self._done_y
        cells = np.floor((t - begin) / cell).astype(np.int64)
        rows = h._select(cells, y)
        if rows[-1] != len(t) - 1:
            rows = np.append(rows, len(t) - 1)  # the present, wherever in its cell it stands
        whole_t, whole_y = np.concatenate([self._done_t, t[rows]]), np.concatenate([self._done_y, y[rows]])
        # the last cell is not complete: it is looked at again
        complete = int(np.searchsorted(cells, cells[-1]))
        if complete:
            kept = len(self._done_t) + int(np.searchsorted(rows, complete))
            self._done_t, self._done_y = whole_t[:kept], whole_y[:kept]
            self._next += complete
        return whole_t, whole_y
