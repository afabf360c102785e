"""Results of runs for others: figures of pyplot's, DataFrames of pandas, Datasets of xarray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.simulation.result_files import columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.simulation.result_files import Recorded
    from cstormpy.simulation.results import Result

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.6
"""Width of a figure, height of one plot in it, and of what stands below them [inches]."""


def plot(out: Result, names: Sequence[str]) -> Figure:
    """Return a figure of a run; `Result.plot` tells of it."""
    data = out.data
    called, meanings = data.get(".coordinates", {}), data.get(".values", {})
    return _figure(np.asarray(data["t"]), _groups(out, names), out.units, called, meanings)


def plot_recorded(saved: Recorded, names: Sequence[str]) -> Figure:
    """Return a figure of a saved run; `Recorded.plot` tells of it."""
    groups = {name: saved.columns_of(name) for name in names} or _by_signal_or_unit(saved)
    return _figure(saved.t, groups, saved.units, {}, {})


def _figure(
    t: Any,
    groups: Mapping[str, Mapping[str, Any]],
    units: Mapping[str, str],
    called: Mapping[str, str],
    meanings: Mapping[str, Sequence[str]],
) -> Figure:
    """Return a figure with a plot for each group of columns.

    Parameters
    ----------
    t : ndarray, (N,)
    groups : mapping
        Columns by name, by the title of their plot.
    units : mapping
    called : mapping
        What columns are called beside their plot, of those that are not called by their names.
    meanings : mapping
        What the values 0, 1, … in some plots stand for, by title.
    """
    import matplotlib.pyplot as plt

    if not groups or not len(t):
        raise InvalidValue("plot: the run has no sample of a signal or state to draw")
    size = (WIDTH, HEIGHT * len(groups) + ABOVE)
    figure, axes = plt.subplots(len(groups), sharex=True, squeeze=False, figsize=size, layout="constrained")
    for (title, columns), axis in zip(groups.items(), axes[:, 0], strict=True):
        for name, values in columns.items():
            axis.plot(t, values, label=_plain(called.get(name, name)), drawstyle=_STYLES[title in meanings])
        if title in meanings:
            _name_values(axis, meanings[title], next(iter(columns.values())))
        known = list(dict.fromkeys(unit for unit in (units.get(name, "") for name in columns) if unit))
        axis.set_ylabel(_plain(f"[{', '.join(known)}]" if known else ""))
        axis.set_title(_plain(title), fontsize="medium", loc="left")
        axis.grid(alpha=0.3)
        if len(columns) > 1:
            axis.legend(fontsize="small", loc="best")
    axes[-1, 0].set_xlabel("t [s]")
    return figure


#: How a curve is drawn, and one of values that stand for something, which hold until the next.
_STYLES = ("default", "steps-post")


def _name_values(axis: Any, names: Sequence[str], values: Any) -> None:
    """Write beside an axis what the values that were there stand for."""
    there = [k for k in range(len(names)) if np.any(values == k)]
    axis.set_yticks(there, [_plain(names[k] or "\u2013") for k in there])
    axis.set_ylim(min(there, default=0) - 0.5, max(there, default=0) + 0.5)


def _groups(out: Result, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what stands in each plot: the columns of a signal by its name, or the states of one unit."""
    if names or out.data.get("ynames"):
        wanted = names or out.data["ynames"]
        groups = {str(name): out.named_columns([name]) for name in wanted}
        return {title: columns for title, columns in groups.items() if columns}
    return _by_unit(out.columns(), out.units, "states")


def _by_signal_or_unit(saved: Recorded) -> dict[str, dict[str, Any]]:
    """Return what stands in each plot of a saved run: the columns of each signal of several, the others by unit."""
    signals = {name: keys for name, keys in saved.signals.items() if keys != [name]}
    groups = {name: {key: saved.columns[key] for key in keys} for name, keys in signals.items()}
    single = {name: saved.columns[name] for name in saved.signals if name not in signals}
    return {**groups, **_by_unit(single, saved.units, "signals and states")}


def _by_unit(columns: Mapping[str, Any], units: Mapping[str, str], what: str) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        unit = units.get(name, "")
        groups.setdefault(f"{what} [{unit}]" if unit else what, {})[name] = values
    return groups


def to_pandas(out: Result) -> Any:
    """Return a run as a DataFrame; `Result.to_pandas` tells of it."""
    pandas = _needed("pandas")
    frame = pandas.DataFrame(out.columns(), index=pandas.Index(np.asarray(out.data["t"]), name="t"))
    frame.attrs["units"] = {"t": "s", **out.units}
    return frame


def to_xarray(out: Result) -> Any:
    """Return a run as a Dataset; `Result.to_xarray` tells of it."""
    xarray = _needed("xarray")
    units = out.units
    variables = {}
    for name, values in out.arrays().items():
        dimensions = ["t", *(f"{name}:{k}" for k in range(values.ndim - 1))]
        known = list(dict.fromkeys(units[key] for key in columns_of(name, values) if key in units))
        variables[name] = (dimensions, values, {"units": known[0] if len(known) == 1 else known} if known else {})
    return xarray.Dataset(variables, coords={"t": ("t", np.asarray(out.data["t"]), {"units": "s"})})


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise InvalidValue(f"to_{package} needs {package}: pip install {package}") from None


def _plain(text: str) -> str:
    """Return a text in which matplotlib finds no mathematics."""
    return text.replace("$", r"\$")
