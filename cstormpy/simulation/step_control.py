"""Step size control: the rules that both engines share, those of scipy's Runge-Kutta methods.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, section II.4.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

from cstormpy.arrays import Array

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
    order: int,
    rtol: float,
    atol: float,
) -> float:
    """Return a first step from the size of the derivative and of its change (Hairer et al., II.4, p. 169)."""
    if x.size == 0:
        return longest
    # plain floats: of few states, NumPy takes longer to begin than they take
    states, rates, root = x.tolist(), f0.tolist(), x.size**0.5
    scale = [atol + abs(value) * rtol for value in states]
    d0, d1 = scaled_size(states, scale) / root, scaled_size(rates, scale) / root
    h0 = max(min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, longest), sys.float_info.min)
    d2 = scaled_size((f(t + h0, x + h0 * f0) - f0).tolist(), scale) / root / h0
    if d1 <= 1e-15 and d2 <= 1e-15:
        h1 = max(1e-6, h0 * 1e-3)
    else:
        h1 = (0.01 / max(d1, d2)) ** (1.0 / (order + 1))
    return float(min(100 * h0, h1, longest)) if math.isfinite(h1) else h0


def scaled_size(values: Sequence[float], scale: Sequence[float]) -> float:
    """Return the Euclidean norm of numbers, each as a share of its scale, their squares added one after the other."""
    total = 0.0
    for value, unit in zip(values, scale, strict=True):
        share = value / unit
        total += share * share
    return math.sqrt(total)
