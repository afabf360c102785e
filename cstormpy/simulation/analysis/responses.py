"""Responses of linear models: to a step, exact at its samples, and the frequencies that show a model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array, describe, is_single
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.reporting import plain
from cstormpy.simulation.analysis.linear import SLOW, LinearModel
from cstormpy.simulation.run_data import add_legend

#: A response lasts so many of the slowest time constants, or periods of the slowest swing that does not decay, and no
#: more than so many of the fastest growth.
_CONSTANTS = 8.0
#: Width of figures, height of each plot in them, and the least of a figure [inches].
_WIDTH, _HEIGHT, _LEAST_HEIGHT = 6.4, 2.2, 4.8
#: So many units of the last place of the sizes of its terms may be wrong in a frequency response.
_ROUNDINGS = 32.0 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Response:
    """Responses of each output to a unit step of each input.

    Attributes
    ----------
    t : ndarray, (N,)
    y : ndarray, (N, r, m)
        Of output i after a step of input j.
    outputs, inputs : tuple of str
    captions : mapping of str to str
        What the figure calls them, as those of a `LinearModel`.
    """

    t: Array
    y: Array
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    captions: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return its size, and of what it is."""
        names = ", ".join(self.inputs), ", ".join(self.outputs)
        return f"<Response: {len(self.t)} samples from 0 to {self.t[-1]:g} s after a step of {names[0]}: {names[1]}>"

    def plot(self, axes: Any = None) -> Any:
        """Draw each output in an axes of its own, one line for each input; return the figure."""
        import matplotlib.pyplot as plt

        if axes is None:
            count = len(self.outputs)
            size = (_WIDTH, max(_LEAST_HEIGHT, _HEIGHT * count))
            _, axes = plt.subplots(count, 1, sharex=True, squeeze=False, layout="constrained", figsize=size)
        drawn = np.ravel(axes)
        if drawn.size != len(self.outputs):
            raise ShapeError(f"plot: axes: expected one for each of {len(self.outputs)} outputs, got {drawn.size}")
        for i, (panel, name) in enumerate(zip(drawn, self.outputs, strict=True)):
            for j, source in enumerate(self.inputs):
                panel.plot(self.t, self.y[:, i, j], label=plain(self.captions.get(source, source)))
            panel.set_ylabel(plain(self.captions.get(name, name)))
            panel.grid(alpha=0.3)
        drawn[0].set_title("Response to a unit step")
        add_legend(drawn[0], title="input")
        drawn[-1].set_xlabel("t [s]")
        return drawn[0].figure


def step_response(model: LinearModel, T: float | None, samples: int) -> Response:
    """Return the response of a linear model to a unit step of each input."""
    from scipy.linalg import expm

    refuse_no_ports(model, "step")
    T = _duration(model) if T is None else _given(T)
    if not isinstance(samples, (int, np.integer)):
        raise InvalidType(f"step: samples: expected a whole number, got {shown(samples)}")
    if not (0.0 < T < np.inf and samples > 1):
        raise InvalidValue(f"step: expected a positive time and two samples or more, got {T} and {samples}")
    n, m = model.B.shape
    block = np.zeros((n + m, n + m))
    block[:n, :n], block[:n, n:] = model.A, model.B
    if model.dt is not None:
        block[n:, n:] = np.eye(m)
        periods = max(1, round(T / model.dt))
        each = -(-periods // (samples - 1))  # periods between two samples that are kept
        t: Array = model.dt * each * np.arange(-(-periods // each) + 1, dtype=np.float64)
        over = np.linalg.matrix_power(block, each)
    else:
        t = np.linspace(0.0, T, samples)
        over = expm(block * t[1])
    return _stepped(model, t, over[:n, :n], over[:n, n:])


def refuse_no_ports(model: LinearModel, what: str) -> None:
    """Refuse a model of which there is nothing to draw."""
    if not model.inputs or not model.outputs:
        raise InvalidValue(
            f"{what}: the model has no inputs or no outputs; name them, as linearize(..., inputs=, outputs=)"
        )


def _stepped(model: LinearModel, t: Array, F: Array, G: Array) -> Response:
    """Return the response of x[k+1] = F x[k] + G u[k]."""
    x, y = np.zeros(G.shape), np.empty((len(t), len(model.outputs), G.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # of what grows beyond all bounds
        for k in range(len(t)):
            y[k] = model.C @ x + model.D
            x = F @ x + G
    return Response(t, y, model.outputs, model.inputs, model.captions)


def _given(T: Any) -> float:
    if is_single(T) and not isinstance(T, str):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(T)
    got = describe(T)
    raise InvalidType(f"step: T: expected how long the response is [s], got {got}; samples= gives how many points")


def _duration(model: LinearModel) -> float:
    poles = model.rates_of_decay[np.isfinite(model.rates_of_decay)]
    rates, swings = np.abs(poles.real), np.abs(poles.imag)
    slow = [1.0 / r for r in rates if r > 1e-6] + [2.0 * np.pi / (_CONSTANTS * w) * 2.0 for w in swings if w > 1e-6]
    growth = max(poles.real, default=0.0)
    # what grows leaves the rest behind, and soon all that can be drawn
    longest = _CONSTANTS / growth if growth > 1e-6 else np.inf
    return min(_CONSTANTS * max(slow, default=1.0), longest)


_DECADES = 2.0
#: So many frequencies, of which none is a pole that is there alone, two of three decades from the first.
_POINTS = 401
#: Up to this part of half its rate a sampled model is drawn.
_OF_HALF_RATE = 0.98
#: How near to half a turn a phase is taken as one [rad].
_HALF_TURN = 1e-9


def frequency_response(model: LinearModel, omega: Array) -> tuple[NDArray[np.complex128], Array]:
    """Return the responses at frequencies, (k, r, m), and what the rounding of their terms makes of them.

    An output that one input moves may seem to follow another by no more than the rounding of the rates, as the roll of
    a plane the elevator: that of its largest response is the least that is told of the others.
    """
    unit, rows, roundings = np.eye(len(model.A)), [], []
    for w in omega:
        try:
            at = 1j * w if model.dt is None else np.exp(1j * w * model.dt)
            states = np.linalg.solve(at * unit - model.A, model.B)
        except np.linalg.LinAlgError:
            raise InvalidValue(f"frequency_response: a pole stands at ω = {w:g} rad/s; leave that out") from None
        rows.append(model.C @ states + model.D)
        roundings.append(np.abs(model.C) @ np.abs(states) + np.abs(model.D))
    shape = len(omega), len(model.C), model.B.shape[1]
    found, terms = np.array(rows, dtype=complex).reshape(shape), np.array(roundings, dtype=float).reshape(shape)
    largest = np.abs(found).max(axis=2, initial=0.0, keepdims=True)
    return found, _ROUNDINGS * np.maximum(terms, largest)


def phase(response: ArrayLike, lag: ArrayLike = 0.0) -> Array:
    """Return the phase of a frequency response [°], without jumps; half a turn is a lag, as of two integrators.

    What lags by `lag` [rad] besides, as behind a hold, is followed from where it would be without.

    >>> phase([-1.0, -0.25]), phase([1.0, -1.0])
    (array([-180., -180.]), array([   0., -180.]))
    >>> phase(-np.exp([-0.1j, -0.2j]), [0.1, 0.2]).round(2)
    array([-185.73, -191.46])
    """
    angle = np.angle(np.asarray(response, dtype=complex) * np.exp(1j * np.asarray(lag)))
    return np.degrees(np.unwrap(np.where(angle > np.pi - _HALF_TURN, angle - 2.0 * np.pi, angle)) - lag)


def frequencies_of(model: LinearModel) -> Array:
    """Return frequencies that show a model: some decades about its poles; of a sampled one, up to near half its rate.

    There, what is held has a zero for each pair of integrators.
    """
    sizes = model.frequency
    there = sizes[np.isfinite(sizes)]
    there = there[there > max(1e-9, SLOW * there.max(initial=0.0))]
    low, high = (float(there.min()), float(there.max())) if there.size else (1.0, 1.0)
    last = np.log10(high) + _DECADES / 2.0
    if model.dt is not None:
        last = np.log10(_OF_HALF_RATE * np.pi / model.dt)
    return np.logspace(min(np.log10(low), last) - _DECADES, last, _POINTS)
