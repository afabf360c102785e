"""The figure of a sweep: lines over one axis, images with contours over two, points for samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name
from cstormpy.reporting import called, plain, told_apart
from cstormpy.simulation.sweep.result import number_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cstormpy.simulation.sweep.result import Sweep

#: Width and height of one plot [inches].
WIDTH, HEIGHT = 6.4, 4.8
#: Contours in an image, images in a figure, and ticks that stand at values of their own, at most.
CONTOURS, IMAGES, TICKS = 8, 6, 8
#: Values that either axis has at least where contours are drawn; between fewer they are mostly interpolation.
SOME = 4
#: Values are taken as spaced by a factor where it varies by less than this, so that 1, 2, 5, 10 are, and their steps
#: by so much or more.
_SAME_FACTOR, _OTHER_STEPS = 1.5, 1.9


def draw(sweep: Sweep, name: str | None, over: Any, at: Mapping[str, Any], labels: Mapping[str, str]) -> Figure:
    """Return a figure of pyplot's; see `Sweep.plot`."""
    import matplotlib.pyplot as plt

    _check_types(name, over, at, labels)
    if not len(sweep):
        raise InvalidValue("plot: no run has come to a value")
    name = next(iter(sweep)) if name is None else name
    values, shown = sweep[name], _chosen(sweep, over)
    title = ""
    if sweep.grid:
        values, title = _cut(sweep, values, shown, at)
    columns = values.reshape(*values.shape[: len(shown) if sweep.grid else 1], -1)
    count = columns.shape[-1]
    names = _names(sweep, name, count, labels)
    if len(shown) == 1:
        figure, plot = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
        _lines(plot, sweep, shown[0], columns, names)
        plots = [plot]
    else:
        if count > IMAGES:
            raise InvalidValue(f"plot: {name!r} has {count} numbers for each run; measure fewer at a time")
        figure, grid = plt.subplots(1, count, squeeze=False, figsize=(WIDTH * count, HEIGHT), layout="constrained")
        plots = list(grid[0])
        for k, plot in enumerate(plots):
            _plane(figure, plot, sweep, shown, columns[..., k], names[k])
    for plot in plots:
        for n, side in zip(shown, (plot.xaxis, plot.yaxis), strict=False):
            side.set_label_text(labels.get(n, plain(n)))
            _scale(plot, side, sweep.axes[n])
    if title:
        figure.suptitle(plain(title))
    return figure


def _names(sweep: Sweep, name: str, count: int, labels: Mapping[str, str]) -> list[str]:
    """Return what each number of what was measured is called."""
    if name in labels:
        return [labels[name]] if count == 1 else [f"{labels[name]} [{k}]" for k in range(count)]
    return [*map(plain, number_names(sweep, name, count))]


def _check_types(name: Any, over: Any, at: Any, labels: Any) -> None:
    if not isinstance(name, (str, NoneType)):
        raise InvalidType(f"plot: expected the name of what was measured, got {shown(name)}")
    if not isinstance(over, (str, Sequence, NoneType)):
        raise InvalidType(f"axes: expected the name of an axis, or of two, got {shown(over)}")
    for what, given, such in (("at", at, "{'rate.K': 0.1}"), ("labels", labels, "{'rate.K': 'rate [1/s]'}")):
        if not isinstance(given, Mapping):
            raise InvalidType(f"{what}: expected a dict as {such}, got {shown(given)}")


def _chosen(sweep: Sweep, over: Any) -> list[str]:
    """Return the one or two axes to draw over."""
    numeric = [n for n, v in sweep.axes.items() if v.ndim == 1 and v.dtype.kind in "biuf"]
    if over is None:
        if not numeric:
            return list(sweep.axes)[:1]
        return numeric[:2]
    names = [over] if isinstance(over, str) else list(over)
    for n in names:
        option(n, "axis", sweep.axes)
        if len(names) > 1 and n not in numeric:
            raise InvalidValue(f"plot: axis {n!r} has no numbers to draw an image over")
    if len(names) not in (1, 2) or len(set(names)) < len(names):
        raise InvalidValue(f"axes: expected one name or two, got {shown(over)}")
    return names


def _cut(sweep: Sweep, values: Array, shown: list[str], at: Mapping[str, Any]) -> tuple[Array, str]:
    """Return the values over the shown axes, in their order, and where the others are cut."""
    names = list(sweep.axes)
    for n in at:
        option(n, "axis", names)
        if n in shown:
            raise InvalidValue(f"at: {n!r} is drawn over, and cannot be cut")
    places: list[Any] = []
    told = []
    for n in names:
        if n in shown:
            places.append(slice(None))
            continue
        k = _nearest(n, sweep.axes[n], at[n]) if n in at else 0
        places.append(k)
        if len(sweep.axes[n]) > 1:
            told.append(f"{n} = {_shorts(sweep.axes[n])[k]}")
    cut = values[tuple(places)]
    if len(shown) == 2 and names.index(shown[0]) > names.index(shown[1]):
        cut = np.swapaxes(cut, 0, 1)
    return cut, ", ".join(told)


def _nearest(name: str, values: NDArray[Any], wanted: Any) -> int:
    if values.ndim == 1 and values.dtype.kind in "biuf" and isinstance(wanted, (bool, int, float, np.number)):
        return int(np.argmin(np.abs(values.astype(float) - float(wanted))))
    for k, value in enumerate(values):
        if np.array_equal(value, wanted):
            return k
    raise unknown_name(f"axis {name!r}: value", wanted, _shorts(values))


def _shorts(values: Any) -> list[str]:
    """Return how the values of an axis are shown, each in few characters."""
    return told_apart([_short(value) for value in values], values)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.0f}" if number.is_integer() and abs(number) < 1e5 else f"{number:.4g}"
    return called(value) or str(value)


def _lines(plot: Axes, sweep: Sweep, axis: str, columns: Array, names: list[str]) -> None:
    """Draw values over one axis: as lines, or as points over samples and over what is no number."""
    at = sweep.axes[axis]
    numeric = at.ndim == 1 and at.dtype.kind in "biuf"
    x = at if numeric else np.arange(len(at))
    for k, name in enumerate(names):
        order = np.argsort(x, kind="stable")
        plot.plot(x[order], columns[order, k], "o-" if sweep.grid and numeric else "o", markersize=3.5, label=name)
    if not numeric:
        plot.set_xticks(x, [*map(plain, _shorts(at))])
    plot.grid(True, alpha=0.3)
    if len(names) == 1:
        plot.set_ylabel(names[0])
    else:
        plot.legend(frameon=False)


def _plane(figure: Figure, plot: Axes, sweep: Sweep, shown: list[str], values: Array, name: str) -> None:
    """Draw values over two axes: an image, with contours where it is fine enough, or coloured points for samples."""
    x, y = (sweep.axes[n].astype(float) for n in shown)
    finite = values[np.isfinite(values)]
    yes_or_no = bool(finite.size) and set(np.unique(finite)) <= {0.0, 1.0}
    colours = {"cmap": _two_colours(), "vmin": -0.5, "vmax": 1.5} if yes_or_no else {}
    if not sweep.grid:
        drawn: Any = plot.scatter(x, y, c=values, s=14, **colours)
        lost = ~np.isfinite(values)
        plot.plot(x[lost], y[lost], "x", color="0.6", markersize=4)
    else:
        (x, across), (y, along) = np.unique(x, return_index=True), np.unique(y, return_index=True)
        values = values[np.ix_(across, along)]
        plot.set_facecolor("0.85")  # where a run failed
        drawn = plot.pcolormesh(_edges(x), _edges(y), values.T, **colours)
        if not yes_or_no and min(values.shape) >= SOME and finite.size and np.ptp(finite) > 0.0:
            levels = np.linspace(finite.min(), finite.max(), CONTOURS + 2)[1:-1]
            plot.contour(x, y, values.T, levels=levels, colors="white", linewidths=0.8)
    bar = figure.colorbar(drawn, ax=plot, label=name)
    if yes_or_no:
        bar.set_ticks([0.0, 1.0], labels=["no", "yes"])


def _two_colours() -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap(["#cfd8e3", "#1f5fa8"])


def _scale(plot: Axes, side: Any, values: NDArray[Any]) -> None:
    """Let an axis whose values are spaced by a factor be logarithmic; few values have their ticks."""
    if values.ndim != 1 or values.dtype.kind not in "iuf" or not len(values):
        return
    ordered, by_factor = np.unique(values.astype(float)), _by_factor(values)
    if by_factor:
        plot.set(**{f"{side.axis_name}scale": "log"})
    apart = by_factor or np.diff(ordered).min(initial=np.inf) * TICKS >= np.ptp(ordered)
    if len(ordered) <= TICKS and apart:
        side.set_ticks(values, [_short(float(v)).replace("-", "\u2212") for v in values])  # as at the other axis
        side.set_ticks([], minor=True)


def _by_factor(values: NDArray[Any]) -> bool:
    """Tell whether values are spaced by a factor, more or less the same.

    >>> [_by_factor(np.array(v)) for v in ([0.1, 1.0, 10.0], [1, 2, 5, 10], [1, 2, 3, 4], [0, 1, 10])]
    [True, True, False, False]
    """
    if values.ndim != 1 or values.dtype.kind not in "iuf" or not (values > 0).all():
        return False
    ordered = np.unique(values.astype(float))
    if len(ordered) < 3:
        return False
    factors, steps = np.diff(np.log(ordered)), np.diff(ordered)
    return bool(factors.max() < _SAME_FACTOR * factors.min() and steps.max() >= _OTHER_STEPS * steps.min())


def _edges(values: Array) -> Array:
    """Return the edges of cells about values.

    >>> _edges(np.array([0.0, 1.0, 3.0])).tolist()
    [-0.5, 0.5, 2.0, 4.0]
    """
    if _by_factor(values):
        return np.exp(_middles(np.log(values)))
    return _middles(values)


def _middles(values: Array) -> Array:
    """Return what lies half-way between values, and as far beyond the first and the last."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle = 0.5 * (values[1:] + values[:-1])
    return np.concatenate([[2.0 * values[0] - middle[0]], middle, [2.0 * values[-1] - middle[-1]]])
