"""What the signals of a run answer, whether it has just ended or was read from a file."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import (
    FileFormatError,
    FileMissing,
    InvalidType,
    InvalidValue,
    UnknownAttribute,
    UnknownName,
    shown,
    unknown_name,
)
from cstormpy.file_writer import atomic_file, file_path
from cstormpy.measures import MeasureTable
from cstormpy.reporting import dashes, level_if_flat, plain
from cstormpy.simulation.result_files import READERS, WRITERS, by_signal, columns_of, is_port, owner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Recorded", "RunData", "read"]

#: What columns are called beside their plot, and what the values 0, 1, … of some signals stand for, by their names.
Captions = tuple[dict[str, str], dict[str, Sequence[str]]]


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
    def found_columns(self, name: Any) -> tuple[str, dict[str, Array]]:
        """Return the name of a column, of a signal, or of the only one of a block, and its columns (N,) by name."""

    def named_columns(self, names: Sequence[str]) -> dict[str, Array]:
        """Return columns (N,) by name: of the signals named, or all where none is."""
        if not names:
            return self.columns()
        return {key: c for name in self.outputs_named(names) for key, c in self.found_columns(name)[1].items()}

    def outputs_named(self, names: Sequence[Any]) -> list[Any]:
        """Return names of signals with those of the outputs in the place of a block that has several."""
        known, wanted = self.arrays(), list[Any]()
        for name in names:
            parts = [key for key in known if isinstance(name, str) and owner(key) == name and name not in known]
            wanted += parts or [name]
        return wanted

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return signals, (N,) or (N, ...), and states (N,) by name, of those that are numbers."""

    @abstractmethod
    def layout(self) -> tuple[dict[str, list[str]], str]:
        """Return the columns of each signal that has a plot of its own, and what all other columns are called."""

    def captions(self) -> Captions:
        """Return what columns are called beside their plot, and what the values 0, 1, … of some signals stand for."""
        return {}, {}

    def plot(self, *names: str) -> Figure:
        """Return a figure of pyplot's with a plot for each signal; those watched, or else the states, unless named.

        Parameters
        ----------
        *names : str
            Of signals, as `signal` takes them, and of blocks, for all of their outputs that were watched.

        Examples
        --------
        ``out.plot("plant.q", "controller.tau").savefig("run.png")``
        """
        return _figure_of(self, names)

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas: a column for each number, the times as its index, units in ``attrs["units"]``.

        Raises
        ------
        InvalidValue
            If pandas is not installed.
        """
        return _frame_of(self)

    def to_xarray(self) -> Any:
        """Return a Dataset of xarray: a variable for each signal, (t, …), with its units where they are known.

        Raises
        ------
        InvalidValue
            If xarray is not installed.
        """
        return _dataset_of(self)

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
        return MeasureTable(self.t, self.named_columns(names), self.units, self.held, self.captions()[0])

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
            writer(file, columns, {"t": "s", **self.units}, self.held, json.dumps(self.captions()))


#: What one asks of a saved run.
_ASKED = ("t", "signal", "signals", "units", "plot", "measures", "to_pandas", "to_xarray", "save")


class Recorded(RunData):
    """A saved run; it answers what the result of a run does of its signals.

    Attributes
    ----------
    t : ndarray (N,)
        Times.
    """

    def __init__(
        self,
        t: Array,
        columns: Mapping[str, Array],
        units: Mapping[str, str],
        held: Collection[str] = (),
        captions: Captions = ({}, {}),
    ) -> None:
        self.t, self._columns, self._units, self._held = t, dict(columns), dict(units), {*held}
        self._captions = captions

    def __repr__(self) -> str:
        times = f" from {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else ""
        return f"<Recorded: {len(self.t)} rows{times}: {', '.join(self.signals)}>"

    if not TYPE_CHECKING:  # with which no name would be a typo

        def __getattr__(self, name: str) -> Any:
            """Refuse what a file does not hold."""
            if name.startswith("_"):
                raise AttributeError(name)
            wrong = unknown_name("part of a saved run", name, _ASKED, UnknownAttribute)
            raise UnknownAttribute(
                f"{wrong} (states and signals go by their names, as in .signal('plant.q'); "
                "a file tells nothing of how the run ended)"
            )

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

    def layout(self) -> tuple[dict[str, list[str]], str]:
        """Return the columns of each signal that has a plot of its own, and what all other columns are called."""
        return {name: keys for name, keys in self.signals.items() if keys != [name]}, "signals and states"

    def captions(self) -> Captions:
        """Return what columns are called beside their plot, and what the values 0, 1, … of some signals stand for."""
        return self._captions

    def signal(self, name: str) -> Array:
        """Return a column (N,), or all that carry a name with an index, side by side (N, width).

        The name of a block stands for the one signal that it has. Where that is a single column, as ``gain.0[0]`` of
        the block ``gain.0``, it is (N,), as in the run; that of a port, as ``plant.q[0]``, is a row of one number.
        """
        wanted, columns = self.found_columns(name)
        if len(columns) == 1 and (wanted in self._columns or not is_port(wanted)):
            return next(iter(columns.values()))
        return np.column_stack([*columns.values()])

    def found_columns(self, name: Any) -> tuple[str, dict[str, Array]]:
        """Return the name of a column, of a signal, or of the only one of a block, and its columns (N,) by name."""
        name = signal_name(name)
        if name in self._columns:
            return name, {name: self._columns[name]}
        signals = self.signals
        wanted = [name] if name in signals else [key for key in signals if is_port(key) and owner(key) == name]
        if not wanted:
            raise unknown_name("signal", name, signals)
        if len(wanted) > 1:
            raise UnknownName(f"signal {name!r} is one of several: {', '.join(wanted)}")
        return wanted[0], {key: self._columns[key] for key in signals[wanted[0]]}


def signal_name(name: Any) -> str:
    """Return the name of a signal, or refuse what is none."""
    if not isinstance(name, str):
        raise InvalidType(f"signal: expected a name as 'plant.q', or a port as plant.q, got {shown(name)}")
    return name


def read(path: str | os.PathLike[str]) -> Recorded:
    """Read a file that `Result.save` wrote, or a CSV whose first row holds names and whose first column the times."""
    source = file_path(path)
    reader = READERS.get(source.suffix.lower())
    if reader is None:
        raise FileFormatError(f"{source}: expected a name that ends in .npz, .csv or .mat")
    if not source.is_file():
        raise FileMissing(f"{source}: there is no such file")
    try:
        names, data, units, held, told = reader(source)
        called, meanings = json.loads(told[0]) if told else ({}, {})
        captions: Captions = (
            dict(called),
            {name: [str(word or "") for word in words] for name, words in meanings.items()},
        )
    except FileFormatError:
        raise
    except Exception as error:  # what a damaged file can set off in its readers is not to be foreseen
        raise FileFormatError(f"{source}: is not a saved run: {error}") from error
    if data.ndim != 2 or data.shape[1] != len(names) or not len(names):
        raise FileFormatError(f"{source}: has {len(names)} names for {data.shape} numbers")
    twice = next((name for k, name in enumerate(names) if name and name in names[1:k]), None)
    if twice is not None:
        raise FileFormatError(f"{source}: two columns are called {twice!r}; give each a name of its own")
    t = data[:, 0] * _seconds(units[0] if units else "", source)
    if len(t) == 0 or not np.isfinite(t).all() or (np.diff(t) < 0).any():
        raise FileFormatError(f"{source}: its first column must hold times that do not decrease")
    known = {name: unit for name, unit in zip(names, ["s", *units[1:]] if units else [], strict=False) if unit}
    return Recorded(t, {name: data[:, k] for k, name in enumerate(names) if k}, known, held, captions)


def _seconds(unit: str, source: object) -> float:
    """Return how many seconds the unit of a file's times is; refuse one that is unknown."""
    if unit and unit not in _SECONDS:
        raise FileFormatError(f"{source}: its times are in {unit!r}; convert them to seconds, 's'")
    return _SECONDS.get(unit, 1.0)


_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "min": 60.0}
"""Units of times, in seconds, that files of others may have."""

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.6
"""Width of a figure, height of one plot in it, and of what stands below them [inches]."""


def _figure_of(out: RunData, names: Sequence[str]) -> Figure:
    """Return a figure of a run; `RunData.plot` tells of it."""
    import matplotlib.pyplot as plt

    groups = groups_of(out, names)
    if not groups or not len(out.t):
        raise InvalidValue("plot: the run has no sample of a signal or state to draw")
    size = (WIDTH, HEIGHT * len(groups) + ABOVE)
    figure, axes = plt.subplots(len(groups), sharex=True, squeeze=False, figsize=size, layout="constrained")
    for (title, columns), axis in zip(groups.items(), axes[:, 0], strict=True):
        draw_columns(axis, out, title, columns)
        if len(columns) > 1:
            add_legend(axis, fontsize="small")
    axes[-1, 0].set_xlabel("t [s]")
    return figure


def draw_columns(
    axis: Any, out: RunData, title: str, columns: Mapping[str, Array], whose: str = "", line: str | None = None
) -> None:
    """Draw the columns of a plot with their title, names and units, in the colours of their order.

    Parameters
    ----------
    title, columns
        As of `groups_of`.
    whose
        What is written behind their names, where several runs stand in one plot.
    line
        The style of all lines; that of their order unless given.
    """
    units, held = out.units, out.held
    called, meanings = out.captions()
    for k, (name, values) in enumerate(columns.items()):
        style = "steps-post" if title in meanings or name in held else "default"
        parts = [called.get(name, name)] if len(columns) > 1 or not whose else []
        label = ", ".join([*parts, whose] if whose else parts)
        axis.plot(out.t, values, line or dashes(k), color=f"C{k}", label=plain(label), drawstyle=style)
    level_if_flat(axis)
    if title in meanings:
        _name_values(axis, meanings[title], next(iter(columns.values())))
    known = list(dict.fromkeys(unit for unit in (units.get(name, "") for name in columns) if unit))
    axis.set_ylabel(plain(f"[{', '.join(known)}]" if known else ""))
    axis.set_title(plain(title), fontsize="medium", loc="left")
    axis.grid(alpha=0.3)


_MOST_INSIDE, _MOST_BELOW, _MOST_BESIDE = 4, 8, 2
"""Lines whose names find a place among them, names that stand below each other beside a plot, and columns of these."""


def add_legend(axis: Any, **options: Any) -> None:
    """Name the lines of an axis: inside of it, or beside it where the names would cover the lines.

    Of very many, as the entries of a matrix, the first ones are named.
    """
    from matplotlib.lines import Line2D

    lines, count = [*axis.lines], len(axis.lines)
    labels = [line.get_label() for line in lines]
    if count > _MOST_INSIDE:
        columns = min(-(-count // _MOST_BELOW), _MOST_BESIDE)
        options |= {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": columns}
        if count > columns * _MOST_BELOW:
            left = columns * _MOST_BELOW - 1
            lines[left:], labels[left:] = [Line2D([], [], linestyle="")], [f"and {count - left} more"]
    axis.legend(lines, labels, **options)


def _name_values(axis: Any, names: Sequence[str], values: Any) -> None:
    """Write beside an axis what the values that were there stand for."""
    there = [k for k in range(len(names)) if np.any(values == k)]
    axis.set_yticks(there, [plain(names[k] or "\u2013") for k in there])
    axis.set_ylim(min(there, default=0) - 0.5, max(there, default=0) + 0.5)


def groups_of(out: RunData, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the columns in each plot by its title: those of a signal, and those of one unit of all others."""
    if names:
        return {title: found for title, found in map(out.found_columns, out.outputs_named(names)) if found}
    signals, others = out.layout()
    columns, units = out.columns(), out.units
    groups = {title: {key: columns[key] for key in keys} for title, keys in signals.items() if keys}
    alike: dict[str, dict[str, Any]] = {}
    if others:
        drawn = {key for keys in signals.values() for key in keys}
        for name in (key for key in columns if key not in drawn):
            alike.setdefault(units.get(name, ""), {})[name] = columns[name]
    for unit, found in alike.items():
        title = next(iter(found)) if len(found) == 1 else f"{others} [{unit}]" if unit else others
        groups[title] = found
    return groups


def _frame_of(out: RunData) -> Any:
    """Return a run as a DataFrame; `RunData.to_pandas` tells of it."""
    pandas = needed("pandas")
    frame = pandas.DataFrame(out.columns(), index=pandas.Index(np.asarray(out.t), name="t"))
    frame.attrs["units"] = {"t": "s", **out.units}
    return frame


def _dataset_of(out: RunData) -> Any:
    """Return a run as a Dataset; `RunData.to_xarray` tells of it."""
    xarray = needed("xarray")
    units = out.units
    variables = {}
    for name, values in out.arrays().items():
        dimensions = ["t", *(f"{name}:{k}" for k in range(values.ndim - 1))]
        known = list(dict.fromkeys(units[key] for key in columns_of(name, values) if key in units))
        variables[name] = (dimensions, values, {"units": known[0] if len(known) == 1 else known} if known else {})
    return xarray.Dataset(variables, coords={"t": ("t", np.asarray(out.t), {"units": "s"})})


def needed(package: str) -> Any:
    """Return a package that a table is made by; say how to get it where it is not installed."""
    try:
        return import_module(package)
    except ImportError:
        raise InvalidValue(f"to_{package} needs {package}: pip install {package}") from None
