"""Finds the time at which a signal crosses zero within a step.

After each accepted step the sign of every detector is compared with the sign before. Where it changed, the dense output
gives a first time; steps of the method's own order from the beginning of the step then close in on it, so that an event
is as exact as the integration itself. A detector that has just fired stands near zero: on which side is seen shortly
after, inside the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from cstormpy.simulation.steppers import Stepper

__all__ = ["Crossings"]

Array = NDArray[np.float64]
Detector = Callable[[float, Array], float]

#: Parts of the first step after an event at which its detector is looked at again, to see on which side it is.
_LOOKS = (2.0**-12, 2.0**-9, 2.0**-6, 2.0**-3, 0.5, 1.0)
#: Two crossings closer than this part of time are one.
_TOGETHER = 1e-12
#: The first guess, by the dense output, is trusted to this part of the step.
_GUESS = 1e-4


class Crossings:
    """The zero-crossing detectors of a run, and on which side of zero each was last."""

    def __init__(self, detectors: list[tuple[Detector, Any]]) -> None:
        self.detectors = detectors
        self.before: list[float | None] = [None] * len(detectors)

    def start(self, t: float, x: Array) -> None:
        """Note on which side each detector is; those at zero are looked at again within the first step."""
        self.before = [self._sided(detector(t, x)) for detector, _ in self.detectors]

    def rearm(self, t: float, x: Array, fired: list[int]) -> None:
        """Note the sides anew after states or outputs have changed; those that just fired are to be seen later."""
        for i, (detector, _) in enumerate(self.detectors):
            self.before[i] = None if i in fired else self._sided(detector(t, x))

    def jumped(self, t: float, x: Array) -> list[int]:
        """Return the detectors that a jump of the signals at this time has taken across zero."""
        fired = []
        for i, (detector, _) in enumerate(self.detectors):
            value, before = float(detector(t, x)), self.before[i]
            if before is not None and _crosses(before, value, float(getattr(detector, "direction", 0.0))):
                fired.append(i)
            self.before[i] = self._sided(value)
        return fired

    @staticmethod
    def _sided(value: float) -> float | None:
        return None if value == 0.0 else value

    def first(self, stepper: Stepper) -> tuple[float, Array, list[int]] | None:
        """Return time, state and detectors of the first crossing within the last step, or None."""
        t1, x1 = stepper.t, stepper.x
        found: list[tuple[float, float, int]] = []
        after: list[float | None] = []
        for i, (detector, _) in enumerate(self.detectors):
            value = float(detector(t1, x1))
            bracket = self._bracket(i, value, stepper)
            after.append(self._sided(value))
            if bracket is not None:
                found.append((*bracket, i))
        if not found:
            self.before = [a if a is not None else b for a, b in zip(after, self.before, strict=True)]
            return None
        times = [(self._locate(self.detectors[i][0], left, right, stepper), i) for left, right, i in found]
        t = min(time for time, _ in times)
        fired = [i for time, i in times if time <= t + _TOGETHER * max(1.0, abs(t))]
        return t, stepper.partial(t) if t < t1 else x1, fired

    def _bracket(self, i: int, value: float, stepper: Stepper) -> tuple[float, float] | None:
        """Return times around a crossing in the detector's direction, or None."""
        detector = self.detectors[i][0]
        direction = float(getattr(detector, "direction", 0.0))
        before = self.before[i]
        if before is not None:
            return (stepper.t_old, stepper.t) if _crosses(before, value, direction) else None
        dense, span = stepper.dense(), stepper.t - stepper.t_old
        left = side = None
        for part in _LOOKS:
            t = stepper.t_old + part * span
            seen = value if part == 1.0 else float(detector(t, dense(t)))
            if side is not None and left is not None and _crosses(side, seen, direction):
                return left, t
            if seen != 0.0:
                left, side = t, seen
        return None

    def _locate(self, detector: Detector, left: float, right: float, stepper: Stepper) -> float:
        """Return the time of a crossing between two times of the last step, on its far side."""
        span = right - left
        dense = stepper.dense()
        near = self._root(lambda t: float(detector(t, dense(t))), left, right)
        if near is None:
            return right

        def exact(t: float) -> float:
            if t == stepper.t:
                return float(detector(t, stepper.x))
            return float(detector(t, dense(t) if t <= stepper.t_old else stepper.partial(t)))

        a, b = max(left, near - _GUESS * span), min(right, near + _GUESS * span)
        found = self._root(exact, a, b)
        if found is None:
            found = self._root(exact, left, right)
        return near if found is None else found

    @staticmethod
    def _root(value: Callable[[float], float], a: float, b: float) -> float | None:
        fa, fb = value(a), value(b)
        if fb == 0.0:
            return b
        if fa == 0.0 or (fa > 0.0) == (fb > 0.0):
            return a if fa == 0.0 else None
        resolution = 4.0 * float(np.spacing(max(abs(a), abs(b))))
        return float(brentq(value, a, b, xtol=max(resolution, 1e-300), rtol=8.9e-16, maxiter=200))


def _crosses(before: float, after: float, direction: float) -> bool:
    rising = before < 0.0 <= after and direction >= 0.0
    falling = before > 0.0 >= after and direction <= 0.0
    return rising or falling
