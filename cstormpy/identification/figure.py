"""An identification in one figure: fit and residual of each joint, and the base parameters with their confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.identification.result import Identification

__all__ = ["draw"]

WIDTH, HEIGHT, ABOVE = 10.0, 1.7, 1.2
"""Width of the figure, height of the plot of one joint, and of what stands around [inches]."""
LEAST_ROWS = 3
CONFIDENCE = 1.96
"""Standard errors on either side that hold the true value in 95 of 100 cases."""
ROW = 0.17
"""Height of a base parameter [inches]."""


def draw(found: Identification) -> Figure:
    """Return a figure of pyplot's: torques on the left, base parameters on the right."""
    import matplotlib.pyplot as plt

    n = found.torques.shape[1]
    height = max(HEIGHT * n + ABOVE, ROW * len(found.base) + ABOVE, HEIGHT * LEAST_ROWS)
    figure = plt.figure(figsize=(WIDTH, height), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(3, 2))
    left, right = halves
    plots = left.subplots(n, sharex=True, squeeze=False)[:, 0]
    order = np.argsort(found.t, kind="stable")
    t = found.t[order]
    for j, (axes, name) in enumerate(zip(plots, found.mechanism.names, strict=True)):
        axes.plot(t, found.torques[order, j], color="0.6", linewidth=2.5, label="logged")
        axes.plot(t, found.fitted[order, j], color="C0", linewidth=1.0, label="fitted")
        axes.plot(t, found.residuals[order, j], color="C3", linewidth=0.7, label="residual")
        axes.set_title(f"{name}: residual {found.noise[j]:.3g} rms", fontsize="medium", loc="left")
        axes.set_ylabel("torque" if found.mechanism.freedoms[j].turns else "force")
        axes.grid(alpha=0.3)
    plots[0].legend(fontsize="small", loc="upper right", ncols=3)
    plots[-1].set_xlabel("t [s]")
    _draw_confidence(right.subplots(), found)
    return figure


def _draw_confidence(axes: Any, found: Identification) -> None:
    told = np.isfinite(found.standard_errors)
    rows = np.arange(len(found.base))[::-1]
    half = CONFIDENCE * found.standard_errors
    axes.errorbar(found.base_values[told], rows[told], xerr=half[told], fmt="o", markersize=3, color="C0", capsize=2)
    axes.plot(found.base_values[~told], rows[~told], "x", color="C3")
    axes.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    labels = [p.names[0] + (" + …" if len(p.names) > 1 else "") for p in found.base.parameters]
    axes.set_yticks(rows, labels, fontsize="x-small")
    largest = float(np.abs(found.base_values).max(initial=1e-12))
    axes.set_xscale("symlog", linthresh=10.0 ** np.floor(np.log10(1e-2 * largest)))
    axes.set_ylim(-1.0, len(found.base))
    axes.set_title("Base parameters, 95 % confidence", fontsize="medium", loc="left")
    axes.grid(alpha=0.3)
