"""Test signals as functions of time: pulses, chirps, sums of sines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.signals.limits import either

Number = Any  # a float, an array of floats, or symbols


def pulse_train(t: Number, period: Number, width: Number, delay: Number) -> Number:
    """Return 1 within the pulses, which begin at delay, delay + period, …, and last a part of the period; else 0.

    >>> float(pulse_train(1.3, 1.0, 0.5, 0.2)), float(pulse_train(0.1, 1.0, 0.5, 0.2))
    (1.0, 0.0)
    """
    turns = (t - delay) / period
    return either(turns < 0.0, 0.0, either(turns - np.floor(turns) < width, 1.0, 0.0))


def chirp(t: Number, f0: Number, f1: Number, duration: Number, logarithmic: bool) -> Number:
    """Return a sine whose frequency goes from f0 to f1 within a time, in equal steps or in equal ratios, and on.

    >>> float(chirp(0.0, 1.0, 10.0, 5.0, False))
    0.0
    """
    if logarithmic:
        rate = np.log(f1 / f0) / duration
        turns = f0 * np.expm1(rate * t) / rate
    else:
        turns = t * (f0 + 0.5 * (f1 - f0) * t / duration)
    return np.sin(2.0 * math.pi * turns)


def multisine(t: Number, frequencies: Any, amplitudes: Any, phases: Any) -> Number:
    """Return a sum of sines.

    >>> round(float(multisine(0.25, np.array([1.0]), np.array([2.0]), np.array([0.0]))), 12)
    2.0
    """
    return np.sum(amplitudes * np.sin(2.0 * math.pi * frequencies * t + phases))


def schroeder_phases(count: int) -> Array:
    """Return phases that keep a sum of equal sines low (Schroeder 1970): -π k (k - 1) / n.

    >>> schroeder_phases(2)
    array([-0.        , -3.14159265])
    """
    k = np.arange(1.0, count + 1.0)
    return -math.pi * k * (k - 1.0) / count
