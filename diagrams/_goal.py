"""The goal of a diagram."""

from __future__ import annotations

from collections.abc import Mapping, Set

from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, describe, is_single, real_array
from cstormpy.errors import InvalidType, shown
from cstormpy.values import frozen

__all__ = ["Goal"]


class Goal:
    """The equilibrium that a diagram is to reach: a posture at rest.

    Parameters
    ----------
    q : array_like, (n,)
        The posture.
    tolerance : float
        The equilibrium is reached while the norm of (q − goal, q̇) stays below this.
    wrap : bool
        Whether a hinge that went a whole turn further counts as being at the same place.

    Examples
    --------
    >>> Goal([1.5, 0.0])
    Goal([1.5, 0.0], tolerance=0.05, wrap=True)
    """

    def __init__(self, q: ArrayLike, tolerance: float = 0.05, wrap: bool = True) -> None:
        if is_single(q) or isinstance(q, (Mapping, Set)):
            raise InvalidType(f"goal: expected a posture, one number for each joint, got {describe(q)}")
        if not isinstance(wrap, bool):
            raise InvalidType(f"goal: wrap: expected True or False, got {shown(wrap)}")
        self.q: Array = frozen(real_array(q, "goal", ("n",)))
        self.tolerance = checks.positive(tolerance, "goal: tolerance")
        self.wrap = wrap

    def __repr__(self) -> str:
        return f"Goal({self.q.tolist()}, tolerance={self.tolerance:g}, wrap={self.wrap})"
