"""Residual of the conditions of Karush, Kuhn and Tucker at a point, whatever solver found it."""

from __future__ import annotations

import numpy as np

from cstormpy.optimal.samples import Array
from cstormpy.optimal.scaling import Scaled

ACTIVE = 1e-5
"""A scaled constraint as near to its bound as this may have a multiplier."""


def kkt_residual(programme: Scaled, x: Array) -> float:
    """Return the least ‖∇cost − Jᵀ λ‖ (largest entry) over multipliers of the right sign, relative to ‖∇cost‖.

    Only constraints and bounds that are active have one. NaN where the motion is not finite.
    """
    from scipy.optimize import lsq_linear, nnls

    if not programme.finite(x):
        return float("nan")
    gradient = programme.gradient(x)
    rows, signs = _active(programme, x)
    size = max(1.0, float(np.abs(gradient).max(initial=0.0)))
    # a multiplier of either sign is the difference of two that are not negative
    signed = np.concatenate([rows[signs == 0.0], -rows[signs == 0.0], rows[signs > 0.0], -rows[signs < 0.0]])
    if not len(signed):
        return float(np.abs(gradient).max(initial=0.0)) / size
    try:
        multipliers, _ = nnls(signed.T, gradient, maxiter=30 * signed.shape[0])
    except (
        RuntimeError,
        np.linalg.LinAlgError,
    ):  # of dependent constraints, on which some versions go round in circles
        multipliers = lsq_linear(signed.T, gradient, (0.0, np.inf), tol=1e-12).x
    return float(np.abs(signed.T @ multipliers - gradient).max()) / size


def _active(programme: Scaled, x: Array) -> tuple[Array, Array]:
    """Return gradients of active constraints, (k, n), and the signs of their multipliers: 1, −1, or 0 for equations."""
    rows, signs = [np.zeros((0, programme.n))], [np.zeros(0)]
    if len(programme.lower):
        c, J = programme.constraints(x), programme.jacobian(x)
        equal = programme.lower == programme.upper
        below = ~equal & (c <= programme.lower + ACTIVE)
        above = ~equal & (c >= programme.upper - ACTIVE)
        for mask, sign in ((equal, 0.0), (below, 1.0), (above, -1.0)):
            rows.append(J[mask])
            signs.append(np.full(int(mask.sum()), sign))
    unit = np.eye(programme.n)
    for mask, sign in ((x <= programme.low + ACTIVE, 1.0), (x >= programme.high - ACTIVE, -1.0)):
        rows.append(unit[mask])
        signs.append(np.full(int(mask.sum()), sign))
    return np.concatenate(rows), np.concatenate(signs)
