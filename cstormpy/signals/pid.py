"""PID control with a filtered derivative, weights of the reference, limits, and back-calculation against windup.

Åström and Hägglund 2006, "Advanced PID control", chapter 3: the integral is moved by what the limits have taken away,
with a time constant of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cstormpy.signals.limits import saturated

Number = Any  # a float, an array of floats, or symbols


def parts(
    gains: Mapping[str, Any], r: Number, y: Number, integral: Number, derivative: Number
) -> tuple[Number, Number]:
    """Return what the controller would give, and what its limits leave of that.

    >>> gains = {"P": 2.0, "b": 1.0, "low": -1.0, "high": 1.0}
    >>> [float(v) for v in parts(gains, 1.0, 0.0, 0.5, 0.0)]
    [2.5, 1.0]
    """
    wanted = gains["P"] * (gains["b"] * r - y) + integral + derivative
    return wanted, saturated(wanted, gains["low"], gains["high"])


def integral_rate(gains: Mapping[str, Any], r: Number, y: Number, wanted: Number, given: Number) -> Number:
    """Return the rate of the integral: of the error, and of what the limits have taken away; none without a gain.

    >>> float(integral_rate({"I": 3.0, "tracking": 0.5}, 1.0, 0.0, 2.5, 1.0))
    0.0
    >>> float(integral_rate({"I": 0.0, "tracking": 0.5}, 1.0, 0.0, 2.5, 1.0))
    0.0
    """
    back = (given - wanted) / gains["tracking"]
    return gains["I"] * (r - y) + np.where(np.abs(gains["I"]) > 0.0, back, 0.0)


def sampled_derivative(gains: Mapping[str, Any], change: Number, before: Number, T: float) -> Number:
    """Return the derivative part D N s / (s + N), by the backward difference, after a change of its input.

    >>> float(sampled_derivative({"D": 1.0, "N": 100.0}, 0.02, 0.0, 0.01))
    1.0
    """
    return (before + gains["D"] * gains["N"] * change) / (1.0 + gains["N"] * T)
