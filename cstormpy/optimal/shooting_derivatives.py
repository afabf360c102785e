"""Derivatives of an integrated motion: those of the Runge-Kutta steps that were taken.

The states at the nodes are known once the motion is; so all steps are taken anew side by side, stage by stage,

    X_s = x_k + a_s h Y_{s-1}        Y_s = f(X_s, u, p)
    dX_s = dx_k + a_s (h dY_{s-1} + Y_{s-1} dh)        dY_s = A_s dX_s + B_s du + C_s dp

with dx_k left open: each step is a matrix and what the variables add, and they are chained from the first on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.optimal.samples import Array
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.optimal.design import Designed

STAGES = ((0, 0.0, 1.0), (1, 0.5, 2.0), (1, 0.5, 2.0), (2, 1.0, 1.0))
"""Of each stage the half step, the part of the step, and the weight in sixths."""

Answer = Callable[[slice, Array, Array], tuple[Array, Array, Array]]


def node_derivatives(
    answer: Answer, signal: Array, out: Array, free: Any, h: float, dh: Array
) -> tuple[Array, Array, Array]:
    """Return the derivatives of q and q̇ of the joints that are integrated, and of all answers, at the nodes.

    Parameters
    ----------
    answer : callable
        Of some half steps, as a slice, and q and q̇ (N, n) there: the answers y (N, n), and their derivatives to the
        state of the joints that are integrated, (N, n, 2 f), and to the variables at that state, (N, n, k).
    signal : ndarray, (2 steps + 1, 3, n)
        What drives the motion at each half step, as the kernel `shoot` takes it.
    out : ndarray, (steps + 1, 3, n)
        q, q̇ and the answers at the nodes.
    free : ndarray of int, (f,)
        The joints that are integrated.
    h, dh : float and ndarray, (k,)
        Length of a step [s], and its derivatives to the variables.
    """
    steps, f, k = len(out) - 1, len(free), len(dh)
    eye = np.zeros((2 * f, 2 * f + k))
    eye[:, : 2 * f] = np.eye(2 * f)
    base = np.tile(eye, (steps, 1, 1))  # columns: to the state at the node, to the variables
    x0 = out[:-1, :2, free].reshape(steps, 2 * f)
    rate, d_rate = np.zeros_like(x0), np.zeros_like(base)
    total, sum_of_rates = np.zeros_like(base), np.zeros_like(x0)
    for half, fraction, weight in STAGES:
        places = slice(half, half + 2 * steps - 1, 2)
        dx = base + fraction * h * d_rate
        dx[..., 2 * f :] += fraction * rate[..., None] * dh
        q, qd = _state_rows(signal[places], x0 + fraction * h * rate, free)
        y, by_state, by_variables = answer(places, q, qd)
        rate = np.hstack([qd[:, free], y[:, free]])
        lower = by_state[:, free] @ dx
        lower[..., 2 * f :] += by_variables[:, free]
        d_rate = np.concatenate([dx[:, f:], lower], axis=1)
        total += weight / 6.0 * d_rate
        sum_of_rates += weight / 6.0 * rate
    step = base + h * total
    step[..., 2 * f :] += sum_of_rates[..., None] * dh
    state = np.zeros((steps + 1, 2 * f, k))
    for j in range(steps):
        state[j + 1] = step[j, :, : 2 * f] @ state[j] + step[j, :, 2 * f :]
    _, by_state, by_variables = answer(slice(None, None, 2), out[:, 0], out[:, 1])
    return state[:, :f], state[:, f:], by_state @ state + by_variables


def _state_rows(signal: Array, x: Array, free: Any) -> tuple[Array, Array]:
    """Return q and q̇ of all joints, of which those that are integrated have the state x."""
    q, qd = signal[:, 0].copy(), signal[:, 1].copy()
    q[:, free], qd[:, free] = x[:, : len(free)], x[:, len(free) :]
    return q, qd


def design_columns(designed: Designed, signal: Array, h: float, out: Array, wrench: Any) -> Array:
    """Return the derivatives of q, q̇ and the answers y at the nodes to the design, (steps + 1, 3, n, k).

    `wrench` are loads, as the methods of mechanisms take them; the others are those of `node_derivatives`.
    """
    free = np.flatnonzero(~designed.mech.active_mask)

    def answer(places: slice, q: Array, qd: Array) -> tuple[Array, Array, Array]:
        return _answer(designed, q, qd, signal[places, 2], wrench, free)

    found = np.zeros((*out.shape, len(designed.values)))
    moved = node_derivatives(answer, signal, out, free, h, np.zeros(len(designed.values)))
    found[:, 0, free], found[:, 1, free], found[:, 2] = moved
    return found


def _answer(designed: Designed, q: Array, qd: Array, u: Array, wrench: Any, free: Any) -> tuple[Array, Array, Array]:
    """Return the answers y (N, n), and their derivatives to the state and to the design."""
    active = designed.mech.active_mask
    d = hybrid_sensitivity(designed.mech, q, qd, np.ascontiguousarray(u), wrench)
    response = -d.dy_du
    response[..., active] = np.eye(len(active))[:, active]
    by_design = response @ designed.torque_rates(q, qd, d.qdd, wrench, None)
    return d.y, np.concatenate([d.dy_dq[..., free], d.dy_dqd[..., free]], axis=-1), by_design
