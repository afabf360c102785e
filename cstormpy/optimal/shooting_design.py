"""Derivatives of an integrated motion to design variables: those of the Runge-Kutta steps that were taken.

The states at the nodes are known once the motion is; so all steps are taken anew side by side, stage by stage,

    X_s = x_k + a_s h Y_{s-1}      Y_s = f(X_s, p)      dX_s = dx_k + a_s h dY_{s-1}      dY_s = A_s dX_s + ∂f/∂p

with dx_k left open: each step is a matrix and what the design adds, and they are chained from the first on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.optimal.samples import Array
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.optimal.design import Designed

__all__ = ["STAGES", "design_columns", "state_rows"]

STAGES = ((0, 0.0, 1.0), (1, 0.5, 2.0), (1, 0.5, 2.0), (2, 1.0, 1.0))
"""Of each stage the half step, the part of the step, and the weight in sixths."""


def design_columns(designed: Designed, signal: Array, h: float, out: Array, wrench: Any) -> Array:
    """Return the derivatives of q, q̇ and the answers y at the nodes to the design, (steps + 1, 3, n, k).

    Parameters
    ----------
    designed : Designed
    signal : ndarray, (2 steps + 1, 3, n)
        What drives the motion at each half step, as the kernel `shoot` takes it.
    h : float
        Length of a step [s].
    out : ndarray, (steps + 1, 3, n)
        The motion at the nodes, as that kernel returns it.
    wrench
        Loads, as the methods of mechanisms take them.
    """
    steps, mech = len(out) - 1, designed.mech
    free = np.flatnonzero(~mech.active_mask)
    f, k = len(free), len(designed.values)
    eye = np.zeros((2 * f, 2 * f + k))
    eye[:, : 2 * f] = np.eye(2 * f)
    base = np.tile(eye, (steps, 1, 1))  # columns: to the state at the node, to the design
    x0 = out[:-1, :2, free].reshape(steps, 2 * f)
    rate, d_rate = np.zeros_like(x0), np.zeros_like(base)
    total = np.zeros_like(base)
    for half, fraction, weight in STAGES:
        x, dx = x0 + fraction * h * rate, base + fraction * h * d_rate
        at = signal[half : half + 2 * steps - 1 : 2]
        rows = state_rows(at, x, free)
        y, by_state, by_design = _answer(designed, *rows, at[:, 2], wrench, free)
        rate = np.hstack([x[:, f:], y[:, free]])
        lower = by_state[:, free] @ dx
        lower[..., 2 * f :] += by_design[:, free]
        d_rate = np.concatenate([dx[:, f:], lower], axis=1)
        total += weight / 6.0 * d_rate
    step = base + h * total
    state = np.zeros((steps + 1, 2 * f, k))
    for j in range(steps):
        state[j + 1] = step[j, :, : 2 * f] @ state[j] + step[j, :, 2 * f :]
    _, by_state, by_design = _answer(designed, out[:, 0], out[:, 1], signal[::2, 2], wrench, free)
    found = np.zeros((*out.shape, k))
    found[:, 0, free], found[:, 1, free] = state[:, :f], state[:, f:]
    found[:, 2] = by_state @ state + by_design
    return found


def state_rows(signal: Array, x: Array, free: Any) -> tuple[Array, Array]:
    """Return q and q̇ of all joints, of which those that are integrated have the state x."""
    q, qd = signal[:, 0].copy(), signal[:, 1].copy()
    q[:, free], qd[:, free] = x[:, : len(free)], x[:, len(free) :]
    return q, qd


def _answer(designed: Designed, q: Array, qd: Array, u: Array, wrench: Any, free: Any) -> tuple[Array, Array, Array]:
    """Return the answers y (N, n), and their derivatives to the state and to the design."""
    active = designed.mech.active_mask
    d = hybrid_sensitivity(designed.mech, q, qd, np.ascontiguousarray(u), wrench)
    response = -d.dy_du
    response[..., active] = np.eye(len(active))[:, active]
    by_design = response @ designed.torque_rates(q, qd, d.qdd, wrench, None)
    return d.y, np.concatenate([d.dy_dq[..., free], d.dy_dqd[..., free]], axis=-1), by_design
