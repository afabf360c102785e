"""Delays by what has been sampled: polynomials through the samples nearest to the time that is asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Number = Any  # a float, or a symbol


def samples_kept(steps: float, order: int) -> int:
    """Return how many samples a delay of some steps needs, of a given order of interpolation."""
    return math.ceil(steps) + order + 1


def lagrange_weights(at: Number, order: int) -> list[Number]:
    """Return the weights of samples at 0, 1, …, order for the value at a place between them.

    >>> [float(w) for w in lagrange_weights(0.25, 1)]
    [0.75, 0.25]
    """
    weights = []
    for k in range(order + 1):
        weight: Number = 1.0
        for j in range(order + 1):
            if j != k:
                weight = weight * (at - j) / (k - j)
        weights.append(weight)
    return weights


def between_samples(ago: Number, samples: Any, taken: Number, order: int) -> Any:
    """Return the value that a signal had some steps before its last sample.

    Parameters
    ----------
    ago : float
        How many steps before; not negative.
    samples : ndarray, (N,) or (N, width)
        The last one first.
    taken : float
        How many of them have been taken.
    order : int
        Of the polynomial through order + 1 samples about that time; exact on polynomials up to it.

    Examples
    --------
    >>> float(between_samples(1.5, np.array([16.0, 9.0, 4.0, 1.0]), 4.0, 2))
    6.25
    """
    last = np.minimum(len(samples) - 1.0, taken - 1.0) - order
    first = np.clip(np.floor(ago) - (order - 1) // 2, 0.0, np.maximum(last, 0.0))
    weights = lagrange_weights(ago - first, order)
    place = first if not isinstance(first, (float, np.floating)) else int(first)
    found = weights[0] * samples[place]
    for k in range(1, order + 1):
        found = found + weights[k] * samples[place + k]
    return found
