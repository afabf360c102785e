"""Results of runs for others: figures of pyplot's, DataFrames of pandas, Datasets of xarray."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.simulation.result_files import columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.simulation.run_data import RunData

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.6
"""Width of a figure, height of one plot in it, and of what stands below them [inches]."""


def plot(out: RunData, names: Sequence[str]) -> Figure:
    """Return a figure of a run; `RunData.plot` tells of it."""
    import matplotlib.pyplot as plt

    groups, units, held = _groups(out, names), out.units, out.held
    called, meanings = out.captions()
    if not groups or not len(out.t):
        raise InvalidValue("plot: the run has no sample of a signal or state to draw")
    size = (WIDTH, HEIGHT * len(groups) + ABOVE)
    figure, axes = plt.subplots(len(groups), sharex=True, squeeze=False, figsize=size, layout="constrained")
    for (title, columns), axis in zip(groups.items(), axes[:, 0], strict=True):
        for name, values in columns.items():
            style = "steps-post" if title in meanings or name in held else "default"
            axis.plot(out.t, values, label=_plain(called.get(name, name)), drawstyle=style)
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


def _name_values(axis: Any, names: Sequence[str], values: Any) -> None:
    """Write beside an axis what the values that were there stand for."""
    there = [k for k in range(len(names)) if np.any(values == k)]
    axis.set_yticks(there, [_plain(names[k] or "\u2013") for k in there])
    axis.set_ylim(min(there, default=0) - 0.5, max(there, default=0) + 0.5)


def _groups(out: RunData, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the columns in each plot by its title: those of a signal, and those of one unit of all others."""
    signals, others = ({str(name): [*out.named_columns([name])] for name in names}, "") if names else out.layout()
    columns, units = out.columns(), out.units
    groups = {title: {key: columns[key] for key in keys} for title, keys in signals.items() if keys}
    if others:
        drawn = {key for keys in signals.values() for key in keys}
        for name in (key for key in columns if key not in drawn):
            unit = units.get(name, "")
            groups.setdefault(f"{others} [{unit}]" if unit else others, {})[name] = columns[name]
    return groups


def to_pandas(out: RunData) -> Any:
    """Return a run as a DataFrame; `RunData.to_pandas` tells of it."""
    pandas = _needed("pandas")
    frame = pandas.DataFrame(out.columns(), index=pandas.Index(np.asarray(out.t), name="t"))
    frame.attrs["units"] = {"t": "s", **out.units}
    return frame


def to_xarray(out: RunData) -> Any:
    """Return a run as a Dataset; `RunData.to_xarray` tells of it."""
    xarray = _needed("xarray")
    units = out.units
    variables = {}
    for name, values in out.arrays().items():
        dimensions = ["t", *(f"{name}:{k}" for k in range(values.ndim - 1))]
        known = list(dict.fromkeys(units[key] for key in columns_of(name, values) if key in units))
        variables[name] = (dimensions, values, {"units": known[0] if len(known) == 1 else known} if known else {})
    return xarray.Dataset(variables, coords={"t": ("t", np.asarray(out.t), {"units": "s"})})


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise InvalidValue(f"to_{package} needs {package}: pip install {package}") from None


def _plain(text: str) -> str:
    """Return a text in which matplotlib finds no mathematics."""
    return text.replace("$", r"\$")
