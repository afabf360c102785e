"""The formulas of the control laws: pure functions of arrays and numbers, which a compiler can take as they are.

Notation: index a for the joints with a motor, p for those without, r for the reference. Errors and gains are
(n_a,) arrays or one number for all motors. The classes in the other files gather the arguments from a mechanism.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Gain = float | Array

__all__ = [
    "clipped",
    "feedback",
    "noncollocated_acceleration",
    "pump",
    "state_error",
    "state_feedback",
    "towards",
    "wrapped",
]


def clipped(tau: Array, limit: Array) -> Array:
    """Return the torques within ±limit.

    >>> clipped(np.array([3.0, -5.0]), np.array([4.0, 4.0])).tolist()
    [3.0, -4.0]
    """
    return np.minimum(np.maximum(tau, -limit), limit)


def feedback(q: Array, qd: Array, q_r: Array, qd_r: Array, kp: Gain, kd: Gain) -> Array:
    """Return kp (q_r − q) + kd (q̇_r − q̇).

    >>> feedback(np.array([0.5]), np.array([0.0]), np.array([1.0]), np.array([2.0]), 4.0, 1.0).tolist()
    [4.0]
    """
    return kp * (q_r - q) + kd * (qd_r - qd)


def wrapped(e: Array, turn: Array, per_turn: Array) -> Array:
    """Return errors with the angles within half a turn: `turn` is what a turn adds, 2π or 0, `per_turn` 1/2π or 0.

    >>> wrapped(np.array([6.0, 6.0]), np.array([2 * np.pi, 0.0]), np.array([0.5 / np.pi, 0.0])).round(4).tolist()
    [-0.2832, 6.0]
    """
    return e - turn * np.rint(e * per_turn)


def towards(q: Array, qd: Array, goal: Array, turn: Array, per_turn: Array, kp: Gain, kd: Gain) -> Array:
    """Return −kp (q − q*) − kd q̇ with the angles within half a turn of the goal, as in `wrapped`.

    >>> turn, per_turn = np.array([2 * np.pi]), np.array([0.5 / np.pi])
    >>> towards(np.array([6.0]), np.array([1.0]), np.zeros(1), turn, per_turn, 10.0, 1.0).round(4).tolist()
    [1.8319]
    """
    return -kp * wrapped(q - goal, turn, per_turn) - kd * qd


def pump(energy: float, goal_energy: float, qd: Array, ke: Gain) -> Array:
    """Return ke (E* − E) q̇, which does work ke (E* − E) q̇² of the sign of what is missing.

    >>> pump(1.0, 3.0, np.array([0.5]), 2.0).tolist()
    [2.0]
    """
    return (ke * (goal_energy - energy)) * qd


def noncollocated_acceleration(mass_pa: Array, lacking: Array) -> Array:
    """Return q̈_a of M_pa q̈_a = −lacking, where `lacking` is M_pp ẍ_p + b_p for the wanted ẍ_p.

    >>> noncollocated_acceleration(np.array([[2.0]]), np.array([3.0])).tolist()
    [-1.5]
    """
    return np.linalg.solve(mass_pa, -lacking)  # type: ignore[return-value]  # float64 in, float64 out


def state_error(q: Array, qd: Array, q_r: Array, qd_r: Array, turn: Array, per_turn: Array) -> Array:
    """Return e = (q − q_r, q̇ − q̇_r), (2n,), with the angles within half a turn, as in `wrapped`.

    >>> turn, per_turn = np.array([2 * np.pi]), np.array([1 / (2 * np.pi)])
    >>> state_error(np.array([6.0]), np.array([1.0]), np.zeros(1), np.zeros(1), turn, per_turn).round(4).tolist()
    [-0.2832, 1.0]
    """
    return np.concatenate((wrapped(q - q_r, turn, per_turn), qd - qd_r))


def state_feedback(tau: Array, gain: Array, e: Array) -> Array:
    """Return τ − K e.

    >>> state_feedback(np.zeros(1), np.array([[2.0, 1.0]]), np.array([1.0, 3.0])).tolist()
    [-5.0]
    """
    # one term after the other: the order in which a library of linear algebra adds depends on the processor
    return tau - np.cumsum(gain * e, axis=-1)[..., -1]
