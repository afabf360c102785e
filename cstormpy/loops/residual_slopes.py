"""Derivative of the closure residual φ to the coordinates, exact where the loops are open too.

The constraint Jacobian A is this derivative where they are closed. Translations are so everywhere; the angles of φ are
functions of the relative rotation R of B to A, whose rate is Ṙ = [w q̇] R:

    all three:  φ = log R, dφ = dexp⁻¹(φ) w
    two:        φ = a θ / s with u = R e, a = e × u, s = |a|, θ = atan2(s, e·u), e the axis that is free, du = w × u
    one:        the links rotate about it alone, so that dφ = w
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy import lie
from cstormpy.loops.chains import Chain
from cstormpy.loops.closure import Closure

Array = NDArray[np.float64]

__all__ = ["residual_slopes"]

SMALL = 1e-5
"""A sine below which θ/s and its slope are the first terms of their series."""


def residual_slopes(found: Closure) -> Array:
    """Return ∂φ/∂q, (N, m, n); the rows of constraints of rates are those of A."""
    out = np.array(found.A)
    at = 0
    for here in found.chains:
        chain = here.chain
        rows = np.arange(at, at := at + len(chain.rows))
        turns = [k for k in range(3) if chain.loop.directions[k]]
        if len(turns) > 1:
            out[:, rows[: len(turns), None], chain.path] = _of_angles(chain, here.R, here.w)[:, turns]
    return out


def _of_angles(chain: Chain, R: Array, w: Array) -> Array:
    """Return the derivatives of the three angles, (N, 3, k)."""
    open_axes = [k for k in range(3) if not chain.loop.directions[k]]
    if not open_axes:
        return np.asarray(lie.dexp_inv_so3(lie.log_so3(R), side="right") @ w)
    e = np.eye(3)[open_axes[0]]
    u = R[:, :, open_axes[0]]
    du = -lie.hat3(u) @ w
    axis, cosine = np.cross(e, u), u @ e
    turned = lie.hat3(e) @ du
    sine = np.linalg.norm(axis, axis=1)
    safe = np.where(sine < SMALL, 1.0, sine)
    angle = np.arctan2(sine, cosine)
    ratio = np.where(sine < SMALL, 1.0, angle / safe)
    by_sine = np.where(sine < SMALL, -2.0 * sine / 3.0, (cosine - ratio) / safe)  # of θ/s, with dθ = cos ds - sin dcos
    d_sine = np.einsum("si,sij->sj", axis / safe[:, None], turned)
    d_ratio = by_sine[:, None] * d_sine - du[:, open_axes[0]]
    return np.asarray(ratio[:, None, None] * turned + axis[:, :, None] * d_ratio[:, None])
