"""Step size control: the rules that both engines share, those of scipy's Runge-Kutta methods.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, section II.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cstormpy.arrays import Array
from cstormpy.kernels.first_step import first_length, trial_length

#: Default tolerances of a run: relative, and absolute in the unit of each state. At scipy's 1e-3 a swing-up changes.
RTOL, ATOL = 1e-6, 1e-9
#: A step is chosen so that its expected error is this part of what is allowed, to some power.
SAFETY = 0.9
#: A step is at most this much longer or shorter than the one before.
MAX_FACTOR, MIN_FACTOR = 10.0, 0.2
#: Scheduled times closer than this (relative, and in seconds below one second) are one.
SAME_TIME = 1e-12
#: A source is taken to jump within so many units in the last place of its declared time.
JUMP_WIDTH = 8


def stretch(error: float, exponent: float, rejected: bool) -> float:
    """Return by what to multiply an accepted step whose scaled error was below one; exponent = -1/(order + 1)."""
    factor = MAX_FACTOR if error == 0.0 else min(MAX_FACTOR, SAFETY * error**exponent)
    return min(1.0, factor) if rejected else factor


def shrink(error: float, exponent: float) -> float:
    """Return by what to multiply a rejected step; the least factor for an error that is not a number."""
    return max(MIN_FACTOR, SAFETY * error**exponent) if math.isfinite(error) else MIN_FACTOR


def shortest_step(t: float) -> float:
    """Return the shortest step that time can resolve at t."""
    return 10.0 * abs(math.nextafter(t, math.inf) - t)


def first_step(
    f: Callable[[float, Array], Array],
    t: float,
    x: Array,
    f0: Array,
    longest: float,
    exponent: float,
    rtol: float,
    atol: float,
) -> float:
    """Return a first step from the size of the derivative and of its change; exponent = -1/(order + 1)."""
    if x.size == 0:
        return longest
    # plain floats: of few states, NumPy takes longer to begin than they take
    states, rates, root = x.tolist(), f0.tolist(), x.size**0.5
    scale = [atol + abs(value) * rtol for value in states]
    d0, d1 = scaled_size(states, scale) / root, scaled_size(rates, scale) / root
    h0 = trial_length(d0, d1, longest)
    d2 = scaled_size((f(t + h0, x + h0 * f0) - f0).tolist(), scale) / root / h0
    return float(first_length(d1, d2, h0, exponent, longest))


def scaled_size(values: Sequence[float], scale: Sequence[float]) -> float:
    """Return the Euclidean norm of numbers, each as a share of its scale, their squares added one after the other."""
    total = 0.0
    for value, unit in zip(values, scale, strict=True):
        share = value / unit
        total += share * share
    return math.sqrt(total)
