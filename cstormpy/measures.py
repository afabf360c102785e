"""Measures of a signal in time: rise, settling, overshoot, peak and root mean square.

Samples are joined by straight lines, so that a measure between two samples is interpolated; two samples of one time are
a jump. What is held from one sample to the next, as of a sampled block, is measured so where that is said. A response
goes from `start` to `final`, its first and its last sample unless told otherwise.

>>> t = np.linspace(0, 10, 10001)
>>> y = 1 - np.exp(-t)
>>> rise_time(t, y, final=1), settling_time(t, y, final=1), overshoot(t, y, final=1)
(2.197, 3.912, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array, real_array, real_number
from cstormpy.errors import InvalidValue, NonFinite, ShapeError
from cstormpy.reporting import aligned

__all__ = [
    "MeasureTable",
    "Measured",
    "measured",
    "overshoot",
    "peak",
    "rise_time",
    "rms",
    "settling_time",
    "undershoot",
]


#: The way of a signal that ends where it starts, as a part of what it moves, at most: more is no error of a run.
_NO_WAY = 1e-3


def __dir__() -> list[str]:
    return __all__


class Measured(NamedTuple):
    """Measures of one signal; NaN stands for what it does not have, as the rise of one that ends where it starts.

    One does so whose way from the first value to the last is less than a thousandth of what it moves between.

    Attributes
    ----------
    rms, peak, peak_time, final
        Root mean square over time, largest magnitude with its sign, when that is [s], last value.
    rise_time, settling_time
        Of the way from the first value to the last: from a tenth to nine tenths of it, and until what remains is within
        two hundredths of it for good, from the first sample on [s].
    overshoot
        Beyond the last value, as a part of the way.
    """

    rms: float
    peak: float
    peak_time: float
    final: float
    rise_time: float
    settling_time: float
    overshoot: float


def rms(t: ArrayLike, y: ArrayLike) -> float:
    """Return the root mean square over time of a signal, exact for straight lines between the samples.

    >>> rms([0, 1], [0, 3])
    1.7320508
    """
    time, value = _samples(t, y)
    if time[-1] == time[0]:
        return float(abs(value[-1]))
    scale = float(np.abs(value).max()) or 1.0
    a, b = value[:-1] / scale, value[1:] / scale
    mean = float(np.sum(np.diff(time) * (a * a + a * b + b * b)) / 3.0 / (time[-1] - time[0]))
    return scale * math.sqrt(max(mean, 0.0))


def peak(t: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Return the value of the largest magnitude, and when it is first reached.

    >>> peak([0, 1, 2], [0, -3, 1])
    (-3.0, 1.0)
    """
    time, value = _samples(t, y)
    k = int(np.abs(value).argmax())
    return float(value[k]), float(time[k])


def rise_time(
    t: ArrayLike,
    y: ArrayLike,
    *,
    start: float | None = None,
    final: float | None = None,
    low: float = 0.1,
    high: float = 0.9,
) -> float:
    """Return the time from when a response first reaches one part of its way to when it first reaches another.

    NaN where it does not get there.
    """
    time, way = _way(t, y, start, final)
    low, high = real_number(low, "low"), real_number(high, "high")
    if not low < high:
        raise InvalidValue(f"low: must be below high, got {low:g} and {high:g}")
    return _first(time, way, high) - _first(time, way, low)


def settling_time(
    t: ArrayLike, y: ArrayLike, *, start: float | None = None, final: float | None = None, band: float = 0.02
) -> float:
    """Return the time from which on a response stays within `band` of its way around its final value.

    NaN where the last sample is not within.
    """
    time, way = _way(t, y, start, final)
    off = np.abs(way - 1.0)
    limit = real_number(band, "band")
    if limit <= 0.0:
        raise InvalidValue(f"band: expected a positive number, got {limit:g}")
    outside = np.flatnonzero(off > limit)
    if not len(outside):
        return 0.0
    k = int(outside[-1])
    if k == len(time) - 1:
        return math.nan
    # Where the line from the last sample outside enters the band, on the side from which it comes.
    edge = 1.0 + math.copysign(limit, way[k] - 1.0)
    part = (edge - way[k]) / (way[k + 1] - way[k])
    return float(time[k] + part * (time[k + 1] - time[k]) - time[0])


def overshoot(t: ArrayLike, y: ArrayLike, *, start: float | None = None, final: float | None = None) -> float:
    """Return how far a response goes beyond its final value, as a part of its way; 0 where it does not."""
    _, way = _way(t, y, start, final)
    return max(0.0, float(way.max()) - 1.0)


def undershoot(t: ArrayLike, y: ArrayLike, *, start: float | None = None, final: float | None = None) -> float:
    """Return how far a response first goes the wrong way, as a part of its way; 0 where it does not."""
    _, way = _way(t, y, start, final)
    return max(0.0, -float(way.min()))


def measured(t: ArrayLike, y: ArrayLike, *, held: bool = False) -> Measured:
    """Return all measures of a signal, which takes its last sample as its final value.

    >>> measured([0, 1, 2], [1, -1, 1], held=True).rms, measured([0, 1, 2], [1, -1, 1]).rms
    (1.0, 0.57735027)
    """
    time, value = _samples(t, y)
    if held:
        time, value = np.repeat(time, 2)[1:], np.repeat(value, 2)[:-1]
    highest, when = peak(time, value)
    ways = (math.nan, math.nan, math.nan)
    moved = value / (abs(highest) or 1.0)
    if abs(moved[-1] - moved[0]) > _NO_WAY * np.ptp(moved):
        ways = (rise_time(time, value), settling_time(time, value), overshoot(time, value))
    return Measured(rms(time, value), highest, when, float(value[-1]), *ways)


class MeasureTable(Mapping[str, Measured]):
    """Measures of signals by their names; prints as a table.

    Parameters
    ----------
    t : array_like, (N,)
    columns : mapping
        Samples (N,) of each signal.
    units : mapping
        Of those whose unit is known.
    held : collection of str
        Those that are held from one sample to the next, and not joined by straight lines.
    owners : mapping, optional
        Whose numbers they are, as joints, which stand behind the names in the table.
    """

    def __init__(
        self,
        t: ArrayLike,
        columns: Mapping[str, ArrayLike],
        units: Mapping[str, str],
        held: Collection[str] = (),
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self._found = {name: _measured_if_finite(t, values, name in held) for name, values in columns.items()}
        self.units, self._owners = dict(units), owners or {}

    def __getitem__(self, name: str) -> Measured:
        """Return the measures of a column, or of the only one of a block, as those of "gain[0]" by "gain"."""
        within = (f"{name}[", f"{name}.")
        columns = [name] if name in self._found else [key for key in self._found if key.startswith(within)]
        if len(columns) != 1:
            raise KeyError(name)
        return self._found[columns[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def rows(self) -> list[list[str]]:
        """Return the table as text, its header first."""
        head = ["signal", "unit", "rms", "peak", "at [s]", "final", "rise [s]", "settling [s]", "overshoot"]
        told = {name: f"{name} {self._owners[name]}" if name in self._owners else name for name in self._found}
        return [head, *([told[name], self.units.get(name, ""), *_texts(found)] for name, found in self._found.items())]

    def __str__(self) -> str:
        return "\n".join(aligned(self.rows(), (0, 1)))

    __repr__ = __str__


def _measured_if_finite(t: ArrayLike, y: ArrayLike, held: bool) -> Measured:
    """Return all measures of a signal, none of one that is not finite, as in a run that failed."""
    try:
        return measured(t, y, held=held)
    except NonFinite:
        return Measured(*[math.nan] * len(Measured._fields))


def _texts(found: Measured) -> list[str]:
    plain = ["-" if math.isnan(value) else f"{value:.4g}" for value in found[:-1]]
    return [*plain, "-" if math.isnan(found.overshoot) else f"{100.0 * found.overshoot:.3g} %"]


def _samples(t: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    time, value = real_array(t, "t", ("N",)), real_array(y, "y", ("N",))
    if len(time) != len(value):
        raise ShapeError(f"y: expected {len(time)} samples, one for each time, got {len(value)}")
    if not len(time):
        raise ShapeError("t: expected at least one sample")
    if (np.diff(time) < 0.0).any():
        raise InvalidValue("t: expected times that do not decrease")
    return time, value


def _way(t: ArrayLike, y: ArrayLike, start: float | None, final: float | None) -> tuple[Array, Array]:
    """Return times, and a response as parts of its way: 0 at its start, 1 at its final value."""
    time, value = _samples(t, y)
    begin = float(value[0]) if start is None else real_number(start, "start")
    end = float(value[-1]) if final is None else real_number(final, "final")
    size = max(float(np.abs(value).max()), abs(begin), abs(end)) or 1.0  # differences of the largest numbers overflow
    way = end / size - begin / size
    if not way:
        raise InvalidValue(f"final: a response goes from one value to another, got {begin:g} for both")
    return time, (value / size - begin / size) / way


def _first(time: Array, way: Array, level: float) -> float:
    """Return when a response first reaches a part of its way; NaN if it does not."""
    there = np.flatnonzero(way >= level)
    if not len(there):
        return math.nan
    k = int(there[0])
    if k == 0 or way[k] == way[k - 1]:
        return float(time[k])
    return float(time[k - 1] + (level - way[k - 1]) / (way[k] - way[k - 1]) * (time[k] - time[k - 1]))
