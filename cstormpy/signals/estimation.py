"""Kalman filters: correction by a measurement, prediction by a model, and the prediction of a mechanism.

Notation: x the estimate, P its covariance, y the measurement, C its derivative to x, F the derivative of the prediction
to x, Q and R the covariances of what disturbs a step and of the measurement. Corrections are in Joseph's form, which
keeps P symmetric and positive semidefinite (Brown and Hwang 2012, "Introduction to random signals", section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # of floats, or of symbols


def corrected(x: Array, P: Array, innovation: Array, C: Array, R: Array) -> tuple[Array, Array]:
    """Return estimate and covariance after a measurement, which differs by the innovation from what was expected.

    >>> x, P = corrected(np.zeros(1), np.eye(1), np.ones(1), np.eye(1), np.eye(1))
    >>> x.tolist(), P.tolist()
    ([0.5], [[0.5]])
    """
    gain = P @ C.T @ definite_inverse(C @ P @ C.T + R)
    left = np.eye(len(x)) - gain @ C
    return x + gain @ innovation, left @ P @ left.T + gain @ R @ gain.T


def definite_inverse(S: Array) -> Array:
    """Return the inverse of a symmetric positive definite matrix, whose rows need no exchange: nothing is chosen.

    >>> definite_inverse(np.array([[2.0, 4.0], [4.0, 10.0]])).tolist()
    [[2.5, -1.0], [-1.0, 0.5]]
    """
    n = len(S)
    both = np.concatenate([S, np.eye(n)], axis=1)
    for k in range(n):
        row = both[k : k + 1] / both[k, k]
        above, below = (part - part[:, k : k + 1] * row for part in (both[:k], both[k + 1 :]))
        both = np.concatenate([above, row, below])
    return both[:, n:]


def predicted_covariance(P: Array, F: Array, Q: Array) -> Array:
    """Return the covariance after a step."""
    return F @ P @ F.T + Q


def motion_step(
    accelerate: Callable[[Array, Array], tuple[Array, Array, Array]], q: Array, qd: Array, h: float
) -> tuple[Array, Array]:
    """Return the state (q, q̇) after a step of the classical Runge-Kutta method, and its exact derivative to the state.

    Parameters
    ----------
    accelerate : function of (q, qd)
        Returns q̈ (n,), and its derivatives to q and q̇, (n, n) each.
    q, qd : array, (n,)
    h : float
        Length of the step.
    """
    n = len(q)
    x, unit = np.concatenate([q, qd]), np.eye(2 * n)

    def rate(at: Array) -> tuple[Array, Array]:
        qdd, by_q, by_qd = accelerate(at[:n], at[n:])
        upper = np.concatenate([np.zeros((n, n)), np.eye(n)], axis=1)
        return np.concatenate([at[n:], qdd]), np.concatenate([upper, np.concatenate([by_q, by_qd], axis=1)])

    total, slope, k, K = 0.0, 0.0, 0.0 * x, 0.0 * unit
    for ahead, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        K_at = unit + ahead * h * K
        k, J = rate(x + ahead * h * k)
        K = J @ K_at
        total, slope = total + weight * k, slope + weight * K
    return x + h / 6.0 * total, unit + h / 6.0 * slope
