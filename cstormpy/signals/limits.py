"""Static nonlinearities: limits, dead zones, quantisation, hysteresis, and how far a signal is from their borders."""

from __future__ import annotations

from typing import Any

import numpy as np

Signal = Any  # a float, an array of floats, or symbols


def either(condition: Any, first: Signal, second: Signal) -> Signal:
    """Return one of two signals, element by element; a number where both are numbers.

    >>> float(either(2.0 > 1.0, 3.0, 4.0))
    3.0
    """
    found: Any = np.where(condition, first, second)
    return found[()] if isinstance(found, np.ndarray) and not found.ndim else found


def saturated(u: Signal, low: Signal, high: Signal) -> Signal:
    """Return a signal within limits.

    >>> float(saturated(2.0, -1.0, 1.0))
    1.0
    """
    return np.clip(u, low, high)


def dead_zone(u: Signal, low: Signal, high: Signal) -> Signal:
    """Return by how much a signal is beyond a zone.

    >>> float(dead_zone(2.0, -1.0, 1.5)), float(dead_zone(0.3, -1.0, 1.5))
    (0.5, 0.0)
    """
    return u - np.clip(u, low, high)


def nearest_level(u: Signal, interval: Signal) -> Signal:
    """Return the number of the level nearest to a signal, halfway the even one.

    >>> float(nearest_level(0.7, 0.5))
    1.0
    """
    return np.rint(u / interval)


def room_in_level(u: Signal, interval: Signal, level: Signal) -> Signal:
    """Return how far a signal is from where another level is nearer than this one, in intervals.

    >>> round(float(room_in_level(0.7, 0.5, 1.0)), 12)
    0.1
    """
    return 0.5 - np.abs(u / interval - level)


def narrowest(room: Signal) -> Any:
    """Return the least of the rooms that the elements of a signal have, of one without elements as much as one wants.

    >>> float(narrowest(np.array([0.5, 0.2]))), float(narrowest(np.zeros(0)))
    (0.2, 1.0)
    """
    return np.min(room) if np.size(room) else 1.0


def hysteresis(u: Signal, switch_on: Signal, switch_off: Signal, before: Signal) -> Signal:
    """Return 1 above a threshold, 0 below a lower one, and what it was before between them.

    >>> float(hysteresis(0.0, 0.5, -0.5, 1.0)), float(hysteresis(-0.6, 0.5, -0.5, 1.0))
    (1.0, 0.0)
    """
    return either(u >= switch_on, 1.0, either(u <= switch_off, 0.0, before))


def play(u: Signal, width: Signal, before: Signal) -> Signal:
    """Return the output of a backlash whose input has come to u, from its output before (Visintin 1994, play).

    >>> float(play(1.0, 0.5, 0.0)), float(play(0.9, 0.5, 0.75))
    (0.75, 0.75)
    """
    return np.minimum(np.maximum(before, u - 0.5 * width), u + 0.5 * width)


def limited_rate(u: Signal, before: Signal, falling: Signal, rising: Signal, span: float) -> Signal:
    """Return the value nearest to u that can be reached within a time at limited rates.

    >>> float(limited_rate(5.0, 0.0, -1.0, 2.0, 0.5))
    1.0
    """
    return before + np.clip(u - before, falling * span, rising * span)


#: Into how many shares `beside` divides a signal.
SHARES = 4


def beside(u: Signal, border: Signal, share: int) -> Any:
    """Return a number that changes its sign where an element of a share of a signal passes its border, and only there.

    Of four shares the first has the elements 0, 4, 8, …, and so on, so that neighbours that pass their borders
    together, as those of symmetric motions, do not make up for one another.

    >>> float(beside(0.25, 0.5, 0)) < 0.0 < float(beside(0.75, 0.5, 0))
    True
    """
    far = u - border
    if not np.ndim(far):
        return 1.0 if share else np.clip(far, -1.0, 1.0)
    parts = np.ravel(np.clip(far, -1.0, 1.0))[share::SHARES]
    if len(parts) < 2:
        return parts[0] if len(parts) else 1.0
    return np.prod(np.sign(parts)) * np.min(np.abs(parts))
