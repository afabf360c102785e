"""Switches that nobody has declared: what a diagram's equations choose by, watched while derivatives go through them.

A user's function that limits its output, a law that wraps an angle, bdsim's CLIP: a step over the place where they
switch would carry the slopes of either side, as its stages fall, and nothing of a jump. They are found in the
expression graph, and steps end there.
"""

from __future__ import annotations

from collections.abc import Callable

from cstormpy.arrays import Array

#: After so many in a row, with no more than so many steps from one to the next, they are no longer looked for: what
#: chatters has no derivative.
_IN_A_ROW, _APART = 12, 1.5
#: Numbers as small as this change their sign by rounding, and are looked for so often.
_NOISE, _OF_NOISE = 1e-13, 3


class Switch:
    """A detector of the zeros of a number at which rates jump or have a kink; nothing is to be done there.

    Parameters
    ----------
    name : str
        Of the block that it belongs to.
    value : callable
        value(t, x): the number.
    jumps : bool
        Whether something jumps there, and does not only bend.
    moves : bool
        Whether it may be that it does so earlier or later with the parameters.

    Attributes
    ----------
    known : bool
        Whether it has been looked at what slopes are like there.
    """

    direction, acts, listed = 0.0, False, False

    def __init__(self, name: str, value: Callable[[float, Array], float], jumps: bool, moves: bool) -> None:
        self.name, self._value, self.jumps, self.moves = name, value, jumps, moves
        self.known = False
        self._times: list[float] = []
        self._size = 0.0

    def __call__(self, t: float, x: Array) -> float:
        """Return the number at a point of the run."""
        return self._value(t, x)

    def chatters(self, t: float, value: float, step: float) -> bool:
        """Note that it has fired; return whether it does so in about each step, which are so long.

        Parameters
        ----------
        t : float
        value : float
            The number before the step in which it has fired.
        step : float
        """
        self._times.append(t)
        self._size = max(self._size, abs(value)) if value == value else self._size
        count = _IN_A_ROW if self._size > _NOISE else _OF_NOISE
        return len(self._times) >= count and t - self._times[-count] < count * _APART * step
