"""What the signals of a run answer, whether it has just ended or was read from a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError, InvalidValue, UnknownAttribute, UnknownName, unknown_name
from cstormpy.file_writer import atomic_file, file_path
from cstormpy.measures import MeasureTable
from cstormpy.simulation.result_files import READERS, WRITERS, by_signal, is_port, owner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Recorded", "RunData", "read"]


class RunData(ABC):
    """Times, and columns by name: drawn, tabled, measured and saved."""

    if TYPE_CHECKING:
        t: Array

    @property
    @abstractmethod
    def units(self) -> dict[str, str]:
        """Units of the columns by name, of those whose unit is known."""

    @property
    @abstractmethod
    def held(self) -> set[str]:
        """Names of the columns that are held from one sample to the next, as those of sampled blocks."""

    @abstractmethod
    def columns(self) -> dict[str, Array]:
        """Return all states and signals as named columns (N,)."""

    @abstractmethod
    def named_columns(self, names: Sequence[str]) -> dict[str, Array]:
        """Return columns (N,) by name: of the signals named, or all where none is."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return signals, (N,) or (N, ...), and states (N,) by name, of those that are numbers."""

    @abstractmethod
    def layout(self) -> tuple[dict[str, list[str]], str]:
        """Return the columns of each signal that has a plot of its own, and what all other columns are called."""

    def captions(self) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
        """Return what columns are called beside their plot, and what the values 0, 1, … of some signals stand for."""
        return {}, {}

    def plot(self, *names: str) -> Figure:
        """Return a figure of pyplot's with a plot for each signal; those watched, or else the states, unless named.

        Parameters
        ----------
        *names : str
            Of signals, as `signal` takes them.

        Examples
        --------
        ``out.plot("plant.q", "controller.tau").savefig("run.png")``
        """
        from cstormpy.simulation import exports

        return exports.plot(self, names)

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas: a column for each number, the times as its index, units in ``attrs["units"]``.

        Raises
        ------
        InvalidValue
            If pandas is not installed.
        """
        from cstormpy.simulation import exports

        return exports.to_pandas(self)

    def to_xarray(self) -> Any:
        """Return a Dataset of xarray: a variable for each signal, (t, …), with its units where they are known.

        Raises
        ------
        InvalidValue
            If xarray is not installed.
        """
        from cstormpy.simulation import exports

        return exports.to_xarray(self)

    def measures(self, *names: str) -> MeasureTable:
        """Return root mean square, peak, rise and settling time and overshoot of signals; all columns unless named.

        Samples are joined by straight lines, those of sampled blocks are held until the next one (a CSV does not tell
        which these are).

        Parameters
        ----------
        *names : str
            Of signals, as `signal` takes them, or of single columns, as ``"plant.q[0]"``.

        Examples
        --------
        ``print(out.measures("plant.q"))``, ``out.measures()["plant.q[0]"].overshoot``
        """
        return MeasureTable(self.t, self.named_columns(names), self.units, self.held)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write times, states and watched signals to a file: .npz, .csv or .mat by its name.

        The file appears whole or not at all; ``cs.load(path)`` reads it.
        """
        target = file_path(path)
        writer = WRITERS.get(target.suffix.lower())
        if writer is None:
            raise InvalidValue(f"{target}: expected a name that ends in .npz, .csv or .mat")
        columns = {"t": np.asarray(self.t), **self.columns()}
        with atomic_file(target) as file:
            writer(file, columns, {"t": "s", **self.units}, self.held)


class Recorded(RunData):
    """A saved run; it answers what the result of a run does of its signals.

    Attributes
    ----------
    t : ndarray (N,)
        Times.
    """

    def __init__(
        self, t: Array, columns: Mapping[str, Array], units: Mapping[str, str], held: Collection[str] = ()
    ) -> None:
        self.t, self._columns, self._units, self._held = t, dict(columns), dict(units), {*held}

    def __repr__(self) -> str:
        times = f" from {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else ""
        return f"<Recorded: {len(self.t)} rows{times}: {', '.join(self.signals)}>"

    if not TYPE_CHECKING:  # with which no name would be a typo

        def __getattr__(self, name: str) -> Any:
            """Refuse what a file does not hold."""
            if name.startswith("_"):
                raise AttributeError(name)
            known = [key for key in dir(self) if not key.startswith("_")]
            wrong = unknown_name("part of a saved run", name, known, UnknownAttribute)
            raise UnknownAttribute(f"{wrong} (states and signals go by their names, as in .signal('plant.q'))")

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns by name, of those whose unit is known."""
        return self._units

    @property
    def held(self) -> set[str]:
        """Names of the columns that are held from one row to the next, as those of sampled blocks."""
        return self._held

    @property
    def signals(self) -> dict[str, list[str]]:
        """The columns of each signal, in the order of their indices."""
        return by_signal(self._columns)

    def columns(self) -> dict[str, Array]:
        """Return all states and signals as named columns (N,)."""
        return dict(self._columns)

    def arrays(self) -> dict[str, Array]:
        """Return signals, (N,) or (N, width), and states (N,) by name."""
        return {name: self.signal(name) for name in self.signals}

    def named_columns(self, names: Sequence[str]) -> dict[str, Array]:
        """Return columns (N,) by name: of the signals named, or all where none is."""
        if not names:
            return self.columns()
        return {key: values for name in names for key, values in self._found(name)[1].items()}

    def layout(self) -> tuple[dict[str, list[str]], str]:
        """Return the columns of each signal that has a plot of its own, and what all other columns are called."""
        return {name: keys for name, keys in self.signals.items() if keys != [name]}, "signals and states"

    def signal(self, name: str) -> Array:
        """Return a column (N,), or all that carry a name with an index, side by side (N, width).

        The name of a block stands for the one signal that it has. Where that is a single column, as ``gain.0[0]`` of
        the block ``gain.0``, it is (N,), as in the run; that of a port, as ``plant.q[0]``, is a row of one number.
        """
        wanted, columns = self._found(name)
        if len(columns) == 1 and (wanted in self._columns or not is_port(wanted)):
            return next(iter(columns.values()))
        return np.column_stack([*columns.values()])

    def _found(self, name: str) -> tuple[str, dict[str, Array]]:
        """Return the name of a column, a signal, or the only one of a block, and its columns."""
        if name in self._columns:
            return name, {name: self._columns[name]}
        signals = self.signals
        wanted = [name] if name in signals else [key for key in signals if is_port(key) and owner(key) == name]
        if not wanted:
            raise unknown_name("signal", name, signals)
        if len(wanted) > 1:
            raise UnknownName(f"signal {name!r} is one of several: {', '.join(wanted)}")
        return wanted[0], {key: self._columns[key] for key in signals[wanted[0]]}


def read(path: str | os.PathLike[str]) -> Recorded:
    """Read a file that `Result.save` wrote, or a CSV whose first row holds names and whose first column the times."""
    source = file_path(path)
    reader = READERS.get(source.suffix.lower())
    if reader is None:
        raise FileFormatError(f"{source}: expected a name that ends in .npz, .csv or .mat")
    if not source.is_file():
        raise FileFormatError(f"{source}: there is no such file")
    try:
        names, data, units, held = reader(source)
    except FileFormatError:
        raise
    except Exception as error:  # what a damaged file can set off in its readers is not to be foreseen
        raise FileFormatError(f"{source}: is not a saved run: {error}") from error
    if data.ndim != 2 or data.shape[1] != len(names) or not len(names):
        raise FileFormatError(f"{source}: has {len(names)} names for {data.shape} numbers")
    t = data[:, 0]
    if len(t) == 0 or not np.isfinite(t).all() or (np.diff(t) < 0).any():
        raise FileFormatError(f"{source}: its first column must hold times that do not decrease")
    known = {name: unit for name, unit in zip(names, units, strict=False) if unit}
    return Recorded(t, {name: data[:, k] for k, name in enumerate(names) if k}, known, held)
