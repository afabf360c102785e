"""Finds the time at which a signal crosses zero within a step.

After each accepted step the sign of every detector is compared with the sign before. Where it changed, the dense output
gives a first time; steps of the method's own order from the beginning of the step then close in on it, so that an event
is as exact as the integration itself. A detector that has just fired stands near zero: on which side is seen shortly
after, inside the next step. A detector crosses zero where it reaches zero from one side, and where it leaves zero on
which it stood: signals that are true or false, 1 or 0, have edges in both directions. One that turns near zero within a
step, by its values at the ends of this step and the one before, is looked at there: it may cross zero and come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.kernels import event_location, roots
from cstormpy.kernels.event_location import crossed, settled, turning, turning_again
from cstormpy.simulation.steppers import Stepper

Detector = Callable[[float, Array], float]

#: What is less than this part of where a detector was a step before does not tell on which side of zero it is.
_ROUNDING = 1e-9


class Crossings:
    """The zero-crossing detectors of a run.

    Attributes
    ----------
    detectors : list of (function, block)
    before : list
        What each has said last, None where it has just fired and is near zero.
    fired_at, left_at : list of float
        When each has last done so, and where it stood when it had.
    last_step : ndarray, (3, detectors)
        What each has said at the beginning and at the end of the last step without a crossing, and how long it was.
    waiting : collection of int
        Those that have fired too, and are dealt with after others that have at the same time.
    """

    def __init__(self, detectors: list[tuple[Detector, Any]]) -> None:
        self.detectors = detectors
        self.before: list[float | None] = [None] * len(detectors)
        self.fired_at = [-math.inf] * len(detectors)
        self.last_step = np.full((3, len(detectors)), math.nan)
        self.waiting: Collection[int] = ()
        self._met_at = [math.nan] * len(detectors)  # where each has stood at the last event, before it was handled
        self.left_at = [math.nan] * len(detectors)

    def forget(self, i: int) -> None:
        """Leave out what is known of a detector that is no longer among the list."""
        del self.before[i], self.fired_at[i], self._met_at[i], self.left_at[i]
        self.last_step = np.delete(self.last_step, i, axis=1)

    def start(self, t: float, x: Array, resumed: bool) -> list[int]:
        """Note where each detector is; one that leaves zero fires, unless a run before this has seen it there.

        Returns those that act where they begin beyond zero, and those that what is due at the start has taken across.
        """
        across = self.rearm(t, x, [])
        if resumed:
            self.before = [
                value if _decided(detector) else value or None
                for value, (detector, _) in zip(self.before, self.detectors, strict=True)
            ]
        values = zip(self.before, self.detectors, strict=True)
        first = [i for i, (v, (d, _)) in enumerate(values) if v is not None and v < 0.0 and getattr(d, "first", False)]
        return sorted({*across, *first})

    def arrive(self, t: float, x: Array, fired: list[int]) -> None:
        """Note where detectors stand at an event, before it is handled; those that do not fire may be taken back."""
        for i, (detector, _) in enumerate(self.detectors):
            value, before = float(detector(t, x)), self.before[i]
            self._met_at[i] = value
            if i in fired or i in self.waiting or not settled(t, self.fired_at[i]):
                continue
            if before is None or not crossed(before, value, _direction(detector)):
                self.before[i] = value

    def rearm(self, t: float, x: Array, fired: list[int]) -> list[int]:
        """Note the values anew after states or outputs have changed; those that just fired are to be seen later.

        Returns those of the others that the change has taken across zero, and those whose side is decided where they
        fire that it has taken back.
        """
        across = []
        for i, (detector, _) in enumerate(self.detectors):
            if i in self.waiting:
                continue
            before, value = self.before[i], float(detector(t, x))
            if i in fired:
                self.fired_at[i], self.left_at[i] = t, value
                tells = abs(value) > _ROUNDING * abs(before or 0.0)
                if _decided(detector):
                    self.before[i] = max(value, 0.0)
                    if tells and value < 0.0:
                        across.append(i)
                else:  # known again unless it has been found at zero, and left there
                    moved = value != self._met_at[i] or before == self._met_at[i]
                    self.before[i] = value if tells and moved else None
                continue
            if before is None and t == self.fired_at[i] and value == self.left_at[i]:
                continue  # it has fired just before; another event, at the same time, may drive it back, but has not
            self.before[i] = value
            if before is not None and crossed(before, value, _direction(detector)):
                across.append(i)
        return across

    def jumped(self, t: float, x: Array) -> list[int]:
        """Return the detectors that a jump of the signals at this time has taken across zero."""
        fired = []
        for i, (detector, _) in enumerate(self.detectors):
            value, before = float(detector(t, x)), self.before[i]
            if before is not None and crossed(before, value, _direction(detector)):
                fired.append(i)
            if before is not None or settled(t, self.fired_at[i]):
                self.before[i] = value
        return fired

    def first(self, stepper: Stepper) -> tuple[float, Array, list[int]] | None:
        """Return time, state and detectors of the first crossing within the last step, or None."""
        t1, x1 = stepper.t, stepper.x
        found: list[tuple[_Bracket, int]] = []
        after: list[float | None] = []
        for i, (detector, _) in enumerate(self.detectors):
            value = float(detector(t1, x1))
            bracket = self._bracket(i, value, stepper)
            unseen = self.before[i] if _decided(detector) else None
            after.append(value if settled(t1, self.fired_at[i]) else unseen)
            if bracket is not None:
                found.append((bracket, i))
        if not found:
            self.last_step[0], self.last_step[1], self.last_step[2] = self.before, after, t1 - stepper.t_old
            self.before = after
            return None
        times = [(self._locate(self.detectors[i][0], bracket, stepper), i) for bracket, i in found]
        earliest = min(time for time, _ in times)
        together = [(time, i) for time, i in times if time <= earliest + roots.TOGETHER * max(1.0, abs(earliest))]
        t, fired = max(time for time, _ in together), [i for _, i in together]
        return t, stepper.partial(t) if t < t1 else x1, fired

    def _bracket(self, i: int, value: float, stepper: Stepper) -> _Bracket | None:
        """Return where in the last step there is a crossing in the detector's direction, or None."""
        detector = self.detectors[i][0]
        direction = _direction(detector)
        left, before = stepper.t_old, self.before[i]
        if before is not None and crossed(before, value, direction):
            return _Bracket(left, stepper.t, before, value)
        if before is not None:
            return self._turning(i, before, value, stepper)
        dense, span = stepper.dense(), stepper.t - left
        for part in roots.LOOKS:
            t = stepper.t_old + part * span
            if not settled(t, self.fired_at[i]):
                continue
            seen = value if part == 1.0 else float(detector(t, dense(t)))
            if before is not None and crossed(before, seen, direction):
                return _Bracket(left, t, before, seen)
            left, before = t, seen
        return None

    def _turning(self, i: int, before: float, after: float, stepper: Stepper) -> _Bracket | None:
        """Return where a detector crosses zero that does so twice within the last step, there and back, or None."""
        detector, begin, end = self.detectors[i][0], stepper.t_old, stepper.t
        turn = turning(before, after, *self.last_step[:, i].tolist(), end - begin)
        for _ in range(roots.TURNS):
            if not 0.0 < turn < end - begin:
                return None
            there = begin + turn
            value = float(detector(there, stepper.dense()(there)))
            if before * value < 0.0:
                if crossed(before, value, _direction(detector)):
                    return _Bracket(begin, there, before, value)
                return _Bracket(there, end, value, after)
            turn = turning_again(before, value, after, turn, end - begin)
        return None

    def _locate(self, detector: Detector, bracket: _Bracket, stepper: Stepper) -> float:
        """Return the time of a crossing, on its far side."""
        left, right = bracket.left, bracket.right
        dense = stepper.dense()
        near = bracket.root(lambda t: float(detector(t, dense(t))), left, right)

        def exact(t: float) -> float:
            if t == stepper.t:
                return float(detector(t, stepper.x))
            return float(detector(t, dense(t) if t <= stepper.t_old else stepper.partial(t)))

        guess = roots.GUESS * (right - left)
        found = None
        if near is not None:
            found = bracket.root(exact, max(left, near - guess), min(right, near + guess))
        if found is None:
            found = bracket.root(exact, left, right)
        if found is None and bracket.is_beyond(exact(left)):
            found = min(right, left + roots.AT_ONCE * max(1.0, abs(left)))
        return found if found is not None else right if near is None else near


class _Bracket:
    """Two times within a step, and the values before and after the crossing between them.

    A value of zero, as a signal that is false has, counts to the side that it is on: it lies beyond the crossing, or
    before it where the detector begins at zero.
    """

    def __init__(self, left: float, right: float, before: float, after: float) -> None:
        self.left, self.right = left, right
        self._rises = after > before
        self._zero = -roots.TINY if before == 0.0 else roots.TINY

    def is_beyond(self, value: float) -> bool:
        """Tell whether a value is beyond the crossing."""
        return float(event_location.beyond(value, self._rises, self._zero)) > 0.0

    def root(self, value: Callable[[float], float], a: float, b: float) -> float | None:
        """Return the first time found behind the crossing between two times, None if there is none between."""

        def beyond(t: float) -> float:
            return event_location.beyond(value(t), self._rises, self._zero)

        first, last = beyond(a), beyond(b)
        if first > 0.0 or last < 0.0:
            return None
        search = [0.0] * roots.ROOT
        roots.begin(search, a, first, b, last, 4.0 * float(np.spacing(max(abs(a), abs(b)))))
        for _ in range(roots.MOST):
            if roots.tell(search, beyond(search[roots.QUESTION])):
                break
        return search[roots.BEYOND]


def _direction(detector: Detector) -> float:
    return float(getattr(detector, "direction", 0.0))


def _decided(detector: Detector) -> bool:
    """Tell whether a detector's side is decided where it fires, so that its value counts at once."""
    return bool(getattr(detector, "decided", False))
