"""Comparisons and logic of signals, in which a number other than zero is true, and the outcome is 1 or 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cstormpy.signals.limits import either

Signal = Any  # a float, an array of floats, or symbols

COMPARISONS = (">", ">=", "<", "<=", "==", "!=")
OPERATIONS = ("and", "or", "not", "nand", "nor", "xor", "xnor")


def truth(u: Signal) -> Signal:
    """Return 1 where a signal is not zero.

    >>> float(truth(-3.0)), float(truth(0.0))
    (1.0, 0.0)
    """
    return either(u != 0.0, 1.0, 0.0)


def compared(u: Signal, v: Signal, how: str) -> Signal:
    """Return 1 where a comparison holds, 0 elsewhere.

    >>> float(compared(1.0, 2.0, "<"))
    1.0
    """
    if how == "==":
        return either(u - v == 0.0, 1.0, 0.0)
    if how == "!=":
        return either(u - v != 0.0, 1.0, 0.0)
    far = u - v if how[0] == ">" else v - u
    return either(far >= 0.0, 1.0, 0.0) if len(how) > 1 else either(far > 0.0, 1.0, 0.0)


def combined(values: Sequence[Signal], how: str) -> Signal:
    """Return the outcome of an operation of `OPERATIONS` on all signals; "not" is that of one.

    >>> float(combined([1.0, 0.0, 1.0], "xor")), float(combined([1.0, 2.0], "and"))
    (0.0, 1.0)
    """
    truths = [truth(u) for u in values]
    found = truths[0]
    for other in truths[1:]:
        if how in ("and", "nand"):
            found = found * other
        elif how in ("or", "nor"):
            found = found + other - found * other
        else:
            found = found + other - 2.0 * found * other
    return 1.0 - found if how.startswith("n") or how == "xnor" else found


def edge(before: Signal, after: Signal, direction: str) -> Signal:
    """Return 1 where a truth has changed in a direction; a negative one before is not known, and none has changed.

    >>> float(edge(0.0, 1.0, "rising")), float(edge(-1.0, 1.0, "rising")), float(edge(1.0, 0.0, "both"))
    (1.0, 0.0, 1.0)
    """
    rises = either(before == 0.0, after, 0.0)
    falls = either(before == 1.0, 1.0 - after, 0.0)
    return rises if direction == "rising" else falls if direction == "falling" else rises + falls


def picked(number: Any, values: Sequence[Signal]) -> Signal:
    """Return the signal of a number, counted from 0; beyond the ends the first or the last.

    >>> float(picked(1.0, [5.0, 6.0, 7.0]))
    6.0
    """
    found = values[-1]
    for k in reversed(range(len(values) - 1)):
        found = either(number < k + 0.5, values[k], found)
    return found
