"""Figures of linear models: Bode plots, and in the complex plane Nyquist curves, poles and zeros, root loci."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import one_of
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidValue, ShapeError
from cstormpy.reporting import plain
from cstormpy.simulation.analysis.linear import LinearModel
from cstormpy.simulation.analysis.responses import frequencies_of, frequency_response, phase, refuse_no_ports
from cstormpy.simulation.analysis.root_locus import closed_poles, root_locus
from cstormpy.simulation.run_data import add_legend

KINDS = ("bode", "step", "nyquist", "poles", "locus")
#: Width of figures, and height of each plot over frequencies; width and height in the complex plane [inches].
_WIDTH, _LOW = 6.4, 2.2
_PLANE = 5.6, 5.0
#: Points of a Nyquist curve; and about each pole that swings, out to so many times its decay.
_POINTS, _ABOUT, _FAR = 2001, 101, 10.0
#: It goes so many times beyond the frequencies that show a model, either way.
_BEYOND = 30.0
#: A curve that leaves for infinity is shown up to so many times its middle size, and at least as far as this.
_TIMES, _LEAST = 1.0, 2.0
#: No farther than so many times the point where the closed loop swings, or the farthest point on the real axis.
_NEAR, _PAST = 5.0, 3.0
#: A pole decays or grows by no less than this part of its size, or a curve leaves for infinity.
_NO_DECAY = 1e-6
#: Free space about poles and zeros, as a part of what they span.
_MARGIN = 0.3
#: A closed pole that is farther than so many times what the others span is about to come from infinity.
_OUT_OF_SIGHT = 1e4


def plotted(model: LinearModel, kind: str, omega: ArrayLike | None, feedback: int | None) -> Any:
    """Return a figure of a model; see `LinearModel.plot`."""
    one_of(kind, "plot: kind", KINDS)
    if omega is not None and kind not in ("bode", "nyquist"):
        raise InvalidValue(f"plot: omega: {kind!r} has no frequencies; they are of 'bode' and 'nyquist'")
    if feedback is not None and kind not in ("nyquist", "locus"):
        raise InvalidValue(f"plot: feedback: {kind!r} closes no loop; it is of 'nyquist' and 'locus'")
    if feedback is not None:
        one_of(feedback, "plot: feedback", (1, -1))
    if kind == "step":
        return model.step().plot()
    if kind == "poles":
        return _poles(model)
    refuse_no_ports(model, "plot")
    at = None if omega is None else np.atleast_1d(real_array(omega, "plot: omega", (), ("k",)))
    if at is not None and not at.size:
        raise InvalidValue("plot: omega: expected frequencies, got none")
    if kind == "bode":
        return _bode(model, frequencies_of(model) if at is None else at)
    at = _round(model) if at is None else at
    return _nyquist(model, at, feedback or 1) if kind == "nyquist" else _locus(model, at, feedback or 1)


def _bode(model: LinearModel, w: Array) -> Any:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    hold = 0.5 * w * (model.dt or 0.0)  # by which what is held lags behind
    response, rounding = frequency_response(model, w)
    rows = 2 * len(model.outputs)
    _, axes = plt.subplots(rows, 1, sharex=True, squeeze=False, layout="constrained", figsize=(_WIDTH, _LOW * rows))
    axes[0, 0].set_xscale("log")  # of all, once: semilogx sets the scale of each panel for each line
    for i, output in enumerate(model.outputs):
        above, below, without = axes[2 * i, 0], axes[2 * i + 1, 0], []
        for j, source in enumerate(model.inputs):
            size = np.abs(response[:, i, j])
            told = size > rounding[:, i, j]  # below, it would be noise
            size = 20.0 * np.log10(np.where(told, size, np.nan))
            above.plot(w, size, label=plain(model.captions.get(source, source)))
            without += [] if told.any() else [model.captions.get(source, source)]
            below.plot(w[told], phase(response[told, i, j], hold[told]))
        if without:
            told_so = plain(f"no response to {', '.join(without)}")
            above.text(0.5, 0.04, told_so, transform=above.transAxes, ha="center", va="bottom", style="italic")
        above.set_ylabel(plain(f"{model.captions.get(output, output)} [dB]"))
        below.set_ylabel("phase [°]")
        below.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 1.5, 3, 4.5, 9, 10]))
        for panel in (above, below):
            panel.grid(alpha=0.3, which="both")
    axes[0, 0].set_title("Frequency response")
    add_legend(axes[0, 0], title="input")
    axes[-1, 0].set_xlabel("ω [rad/s]")
    return axes[0, 0].figure


def _nyquist(model: LinearModel, w: Array, feedback: int) -> Any:
    """Draw the response of each output: full lines for ω > 0, dashed ones for ω < 0, and where a closed loop swings."""
    response = model.frequency_response(w)
    far = np.maximum(_LEAST, _TIMES * np.median(np.abs(model.frequency_response(frequencies_of(model))), axis=0))
    rates = model.rates_of_decay
    endless = bool((np.abs(rates.real) <= _NO_DECAY * np.abs(rates)).any())
    panels = complex_planes(len(model.outputs))
    for i, (axes, output) in enumerate(zip(panels, model.outputs, strict=True)):
        most = 0.0
        for j, source in enumerate(model.inputs):
            curve = response[:, i, j]
            axes.plot(curve.real, curve.imag, label=plain(model.captions.get(source, source)))
            size = float(np.abs(curve).max())
            most = max(most, min(size, float(far[i, j]), _sight(curve)) if endless else size)
        look_at(axes, np.array([-most, most, 1j * most, -1j * most]), 0.05)
        axes.set(xlabel="real part", ylabel="imaginary part", title=plain(model.captions.get(output, output)))
        add_legend(axes, title="input")
        for line in list(axes.lines):
            x, y = line.get_data()
            axes.plot(x, -np.asarray(y), "--", color=line.get_color(), linewidth=0.9)
        axes.plot([feedback], [0.0], "+", color="r", markersize=10, markeredgewidth=2)
        point = "+1" if feedback == 1 else "−1"
        axes.annotate(point, (feedback, 0.0), (4, 6), textcoords="offset points", color="r")
    return panels[0].figure


def _sight(curve: NDArray[np.complex128]) -> float:
    """Return how far a curve is looked at that leaves for infinity: where it is near 1, and crosses the real axis."""
    crosses = np.flatnonzero(np.diff(np.sign(curve.imag)))
    return max(_NEAR, _PAST * float(np.abs(curve[crosses]).max(initial=0.0)))


def _poles(model: LinearModel) -> Any:
    (axes,) = complex_planes(1)
    _draw_ends(axes, model, "poles")
    _draw_border(axes, model)
    look_at(axes, np.concatenate([model.poles, model.zeros]), _MARGIN)
    axes.set_title("Poles and zeros" if len(model.zeros) else "Poles")
    axes.legend()
    return axes.figure


def _locus(model: LinearModel, w: Array, feedback: int) -> Any:
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise ShapeError(
            f"plot: 'locus' is of one loop that is cut at one number; the model has {len(model.inputs)} inputs and "
            f"{len(model.outputs)} outputs"
        )
    now, ends = closed_poles(model, feedback), np.concatenate([model.poles, model.zeros])
    points = np.concatenate([ends, now[np.abs(now) < _OUT_OF_SIGHT * _span(ends)]])
    _, ways = root_locus(model, np.abs(model.frequency_response(w)).ravel(), feedback, _span(points))
    (axes,) = complex_planes(1)
    for way in ways.T:
        axes.plot(way.real, way.imag, color="C0", linewidth=1.2)
    _draw_ends(axes, model, "poles of the cut loop")
    axes.plot(now.real, now.imag, "o", color="C3", markersize=6, label="poles of the closed loop")
    _draw_border(axes, model)
    look_at(axes, points, _MARGIN)
    axes.set_title("Root locus")
    axes.legend()
    return axes.figure


def complex_planes(count: int) -> list[Any]:
    """Return axes of a new figure, one above the other."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(count, 1, squeeze=False, layout="constrained", figsize=(_PLANE[0], _PLANE[1] * count))
    return list(axes[:, 0])


def _draw_ends(axes: Any, model: LinearModel, name: str) -> None:
    """Draw poles as crosses and zeros as circles."""
    poles, zeros = model.poles, model.zeros
    axes.plot(poles.real, poles.imag, "x", color="C0", markersize=8, markeredgewidth=2, label=name)
    if len(zeros):
        axes.plot(zeros.real, zeros.imag, "o", color="C1", markersize=8, fillstyle="none", label="zeros")


def _draw_border(axes: Any, model: LinearModel) -> None:
    """Draw the border of stability: the imaginary axis, or of a sampled model the unit circle."""
    if model.dt is None:
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
        return
    draw_unit_circle(axes)
    axes.set(xlabel="real part of z", ylabel="imaginary part of z")


def draw_unit_circle(axes: Any) -> None:
    """Draw the border of stability of what goes on from step to step."""
    turn = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 361))
    axes.plot(turn.real, turn.imag, color="0.4", linewidth=0.8)


def _span(points: NDArray[np.complex128]) -> float:
    """Return how far points are apart, with the origin among them; 1 of none."""
    seen = np.append(points[np.isfinite(points)], 0.0)
    return float(max(np.ptp(seen.real), np.ptp(seen.imag))) or 1.0


def look_at(axes: Any, points: NDArray[np.complex128], margin: float) -> None:
    """Show a square about points and the origin."""
    seen, half = np.append(points[np.isfinite(points)], 0.0), (0.5 + margin) * _span(points)
    x, y = (0.5 * (part.min() + part.max()) for part in (seen.real, seen.imag))
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    axes.grid(alpha=0.3)


def _round(model: LinearModel) -> Array:
    """Return frequencies [rad/s] at which curves are round and come near their ends: beyond those that show a model."""
    low, *_, high = frequencies_of(model)
    low, high = low / _BEYOND, high * (_BEYOND if model.dt is None else 1.0)
    rates = model.rates_of_decay[np.isfinite(model.rates_of_decay)]
    about = np.linspace(-_FAR, _FAR, _ABOUT)
    parts = [np.geomspace(low, high, _POINTS)]
    parts += [pole.imag + about * abs(pole.real) for pole in rates if pole.imag > 0.0 > pole.real]
    w = np.unique(np.concatenate(parts))
    return np.asarray(w[(w >= low) & (w <= high)])
