"""Bode and step plots of linear models, by matplotlib alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import one_of
from cstormpy.simulation.analysis.responses import refuse_no_ports

if TYPE_CHECKING:
    from cstormpy.simulation.analysis.linear import LinearModel

KINDS = ("bode", "step")
_DECADES = 2.0
#: How near to half a turn a phase is taken as one [rad].
_HALF_TURN = 1e-9


def plotted(model: LinearModel, kind: str, omega: ArrayLike | None) -> Any:
    """Return the figure of a model: its frequency response, or its response to unit steps."""
    if one_of(kind, "plot: kind", KINDS) == "step":
        return model.step().plot()
    refuse_no_ports(model, "plot")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    w = frequencies_of(model) if omega is None else np.atleast_1d(np.asarray(omega, dtype=float))
    response = model.frequency_response(w)
    rows = 2 * len(model.outputs)
    _, axes = plt.subplots(rows, 1, sharex=True, squeeze=False, layout="constrained", figsize=(6.4, 2.2 * rows))
    for i, output in enumerate(model.outputs):
        above, below = axes[2 * i, 0], axes[2 * i + 1, 0]
        for j, source in enumerate(model.inputs):
            size = np.abs(response[:, i, j])
            above.semilogx(
                w, 20.0 * np.log10(np.where(size > 0.0, size, np.nan)), label=model.captions.get(source, source)
            )
            below.semilogx(w, phase(response[:, i, j]))
        above.set_ylabel(f"{model.captions.get(output, output)} [dB]")
        below.set_ylabel("phase [°]")
        below.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 1.5, 3, 4.5, 9, 10]))
        for panel in (above, below):
            panel.grid(alpha=0.3, which="both")
    axes[0, 0].set_title("Frequency response")
    axes[0, 0].legend(title="input")
    axes[-1, 0].set_xlabel("ω [rad/s]")
    return axes[0, 0].figure


def phase(response: ArrayLike) -> NDArray[np.float64]:
    """Return the phase of a frequency response [°], without jumps; half a turn is a lag, as of two integrators.

    >>> phase([-1.0, -0.25]), phase([1.0, -1.0])
    (array([-180., -180.]), array([   0., -180.]))
    """
    angle = np.angle(np.asarray(response, dtype=complex))
    found: NDArray[np.float64] = np.degrees(np.unwrap(np.where(angle > np.pi - _HALF_TURN, angle - 2.0 * np.pi, angle)))
    return found


def frequencies_of(model: LinearModel, count: int = 400) -> NDArray[np.float64]:
    """Return frequencies that show a model: some decades about its poles; of a sampled one, up to half its rate."""
    sizes = model.frequency
    there = sizes[(sizes > 1e-9) & np.isfinite(sizes)]
    low, high = (float(there.min()), float(there.max())) if there.size else (1.0, 1.0)
    last = np.log10(high) + _DECADES / 2.0
    if model.dt is not None:
        last = np.log10(np.pi / model.dt)
    first = min(np.log10(low), last) - _DECADES
    found: NDArray[np.float64] = np.logspace(first, last, count)
    return found
