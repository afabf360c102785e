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

    from cstormpy.simulation.results import Result

__all__ = ["plot", "to_pandas", "to_xarray"]

WIDTH, HEIGHT, ABOVE = 8.0, 2.1, 0.6
"""Width of a figure, height of one plot in it, and of what stands below them [inches]."""


def plot(out: Result, names: Sequence[str]) -> Figure:
    """Return a figure of a run; `Result.plot` tells of it."""
    import matplotlib.pyplot as plt

    groups = _groups(out, names)
    t, units = np.asarray(out.data["t"]), out.units
    if not groups or not len(t):
        raise InvalidValue("plot: the run has no sample of a signal or state to draw")
    size = (WIDTH, HEIGHT * len(groups) + ABOVE)
    figure, axes = plt.subplots(len(groups), sharex=True, squeeze=False, figsize=size, layout="constrained")
    for (title, columns), axis in zip(groups.items(), axes[:, 0], strict=True):
        for name, values in columns.items():
            axis.plot(t, values, label=_plain(name))
        known = list(dict.fromkeys(unit for unit in (units.get(name, "") for name in columns) if unit))
        axis.set_ylabel(_plain(f"[{', '.join(known)}]" if known else ""))
        axis.set_title(_plain(title), fontsize="medium", loc="left")
        axis.grid(alpha=0.3)
        if len(columns) > 1:
            axis.legend(fontsize="small", loc="best")
    axes[-1, 0].set_xlabel("t [s]")
    return figure


def _groups(out: Result, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what stands in each plot: the columns of a signal by its name, or the states of one unit."""
    if names or out.data.get("ynames"):
        wanted = names or out.data["ynames"]
        groups = {str(name): out.named_columns([name]) for name in wanted}
        return {title: columns for title, columns in groups.items() if columns}
    units = out.units
    groups = {}
    for name, values in out.columns().items():
        unit = units.get(name, "")
        groups.setdefault(f"states [{unit}]" if unit else "states", {})[name] = values
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
