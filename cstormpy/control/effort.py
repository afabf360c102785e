"""Effort: what a torque costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array, is_single, real_number
from cstormpy.errors import InvalidValue
from cstormpy.trajectory.checks import finite_array


def effort_rate(tau: Array, weight: Array) -> float:
    """Return ½ Σ w_i τ_i², the rate of the effort.

    Parameters
    ----------
    tau : ndarray, (m,)
        Torques [N m or N].
    weight : ndarray, (m,) or ()
        w.

    Examples
    --------
    >>> float(effort_rate(np.array([3.0, 4.0]), np.array(1.0)))
    12.5
    """
    return 0.5 * (weight * tau * tau).sum()


def weights(value: ArrayLike) -> Array:
    """Return weights, (m,) for each number or () for all, none of them negative.

    >>> weights([1, 0]).tolist()
    [1.0, 0.0]
    """
    w = np.array(real_number(value, "weight")) if is_single(value) else finite_array(value, "weight", (None,))
    if (w < 0.0).any():
        raise InvalidValue(f"weight: must not be negative, got {w.tolist()}")
    if not w.size:
        raise InvalidValue("weight: is empty")
    return w
