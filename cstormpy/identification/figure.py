"""An identification in one figure: fit and residual of each joint, and the base parameters with their confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cstormpy.arrays import Array
from cstormpy.reporting import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.identification.result import Identification, OutputIdentification
    from cstormpy.mechanism import Mechanism

WIDTH, HEIGHT, ABOVE = 10.0, 2.0, 1.2
"""Width of the figure, height of the plot of one joint, and of what stands around [inches]."""
LEAST_ROWS = 3
TORQUE, POSITION = ("torque [N m]", "force [N]"), ("angle [rad]", "position [m]")
SHARES = [3.0, 1.0]
"""Heights of the plot of a joint and of that of its residual."""
BESIDE = 2.0
"""By what factor the axis of the numbers goes beyond the furthest of them."""
CONFIDENCE = 1.96
"""Standard errors on either side that hold the true value in 95 of 100 cases."""
ROW = 0.17
"""Height of a base parameter [inches]."""


class _Signals(NamedTuple):
    """Curves of each joint over the times of the rows, or their numbers where a log has no times."""

    t: Array
    timed: bool
    logged: Array
    fitted: Array
    residuals: Array
    noise: Array
    kind: tuple[str, str]  # of joints that turn, and of those that slide


def draw(found: Identification) -> Figure:
    """Return a figure of pyplot's: torques on the left, base parameters on the right."""
    labels = [p.names[0] + (" + …" if len(p.names) > 1 else "") for p in found.base.parameters]
    signals = _Signals(found.t, found.timed, found.torques, found.fitted, found.residuals, found.noise, TORQUE)
    numbers = found.base_values, found.standard_errors
    return _drawn(found.mechanism, signals, "Base parameters, 95 % confidence", labels, *numbers)


def draw_output(found: OutputIdentification) -> Figure:
    """Return a figure of pyplot's: positions on the left, parameters on the right."""
    signals = _Signals(found.t, True, found.measured, found.fitted, found.residuals, found.noise, POSITION)
    numbers = found.values, found.standard_errors
    return _drawn(found.mechanism, signals, "Parameters, 95 % confidence", list(found.names), *numbers)


def _drawn(mech: Mechanism, signals: _Signals, title: str, labels: list[str], values: Array, errors: Array) -> Figure:
    import matplotlib.pyplot as plt

    # a joint without motor in a closed mechanism has nothing to show
    shown = [j for j in range(mech.n) if signals.logged[:, j].any() or signals.fitted[:, j].any()] or [*range(mech.n)]
    height = max(HEIGHT * len(shown) + ABOVE, ROW * len(values) + ABOVE, HEIGHT * LEAST_ROWS)
    figure = plt.figure(figsize=(WIDTH, height), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(3, 2))
    left, right = halves
    plots = left.subplots(2 * len(shown), sharex=True, squeeze=False, height_ratios=SHARES * len(shown))[:, 0]
    order = np.argsort(signals.t, kind="stable")
    t = signals.t[order]
    for j, axes, below in zip(shown, plots[::2], plots[1::2], strict=True):
        axes.plot(t, signals.logged[order, j], color="0.65", linewidth=2.5, label="logged")
        axes.plot(t, signals.fitted[order, j], color="C0", linewidth=1.0, label="fitted")
        below.plot(t, signals.residuals[order, j], color="C3", linewidth=0.6, label="residual")
        axes.set_title(plain(f"{mech.names[j]}: residual {signals.noise[j]:.3g} rms"), fontsize="medium", loc="left")
        axes.set_ylabel(signals.kind[0 if mech.freedoms[j].turns else 1], fontsize="small")
        below.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        for plot in (axes, below):
            plot.grid(alpha=0.3)
            plot.tick_params(labelsize="small")
    lines = [line for plot in plots[:2] for line in plot.get_legend_handles_labels()[0]]
    left.legend(handles=lines, fontsize="small", loc="outside upper right", ncols=3, frameon=False)
    left.align_ylabels(plots[::2])
    plots[-1].set_xlabel("t [s]" if signals.timed else "row")
    _draw_confidence(right.subplots(), title, labels, values, errors)
    return figure


def _draw_confidence(axes: Any, title: str, labels: list[str], values: Array, errors: Array) -> None:
    told = np.isfinite(errors)
    rows = np.arange(len(values))[::-1]
    axes.errorbar(
        values[told], rows[told], xerr=CONFIDENCE * errors[told], fmt="o", markersize=3, color="C0", capsize=2
    )
    axes.plot(values[~told], rows[~told], "x", color="C3")
    axes.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    axes.set_yticks(rows, [*map(plain, labels)], fontsize="x-small")
    linear = 10.0 ** np.floor(np.log10(1e-2 * float(np.abs(values).max(initial=1e-12))))
    axes.set_xscale("symlog", linthresh=linear)
    reach = np.where(told, CONFIDENCE * np.where(told, errors, 0.0), 0.0)
    least, most = float((values - reach).min(initial=0.0)), float((values + reach).max(initial=0.0))
    axes.set_xlim(BESIDE * min(least, -linear), BESIDE * max(most, linear))
    axes.tick_params(axis="x", labelsize="x-small")
    axes.set_xlabel("value (SI units), linear about 0", fontsize="small")
    axes.set_ylim(-1.0, len(values))
    axes.set_title(title, fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
