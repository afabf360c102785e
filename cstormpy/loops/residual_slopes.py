"""Derivative of the closure residual φ to the coordinates, exact where the loops are open too.

The constraint Jacobian A is this derivative where they are closed. Translations are so everywhere; the angles of φ are
functions of the relative rotation R of B to A, whose rate is Ṙ = [w q̇] R:

    all three:  φ = log R, dφ = dexp⁻¹(φ) w
    two:        φ = a θ / s with u = R e, a = e × u, s = |a|, θ = atan2(s, e·u), e the axis that is free, du = w × u
    one:        the links rotate about it alone, so that dφ = w
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy import lie
from cstormpy.arrays import Array
from cstormpy.linkage.components import LoopFrame, Shift
from cstormpy.linkage.loops import Loop
from cstormpy.loops.chains import Chain, ChainAt
from cstormpy.loops.closure import Closure, held_closure_of
from cstormpy.sensitivity.torque_rates import held_for

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

SMALL = 1e-5
"""A sine below which θ/s and its slope are the first terms of their series."""


def residual_rates(mech: Linkage, found: Closure, parts: Sequence[Any], q: Array) -> Array:
    """Return the derivatives of φ, (N, m, k), to components of parameters, at coordinates (N, n) that stay.

    Frames of links move on joints that are held (`sensitivity.held_joints`). The frames of a loop move as if joints
    stood at the ends of its chain, whose twists (ω, s) in their own axes are columns

        of A:  w = -ω,  v = -s - ω × p            of B:  w = R ω,  v = R s
    """
    out = np.zeros((len(q), found.m, len(parts)))
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    held = held_for(mech.tree, parts)
    if held is not None and loops:
        around = residual_slopes(held_closure_of(held.mech, loops, held.widened(q)))
        for k, part in enumerate(parts):
            for move in part.moves if isinstance(part, Shift) else ():
                by = move.by(around[..., held.place(part.link, move.position)])
                out[:, : around.shape[1], k] += by if move.along < 0 else by * q[:, move.along, None]
    for k, part in enumerate(parts):
        if isinstance(part, LoopFrame):
            at, first = found.chains[part.loop], found.first(part.loop)
            turn, shift = part.twist[:3], part.twist[3:]
            if part.end == "a":
                w, v = np.broadcast_to(-turn, at.p.shape), -shift - np.cross(turn, at.p)
            else:
                w, v = at.R @ turn, at.R @ shift
            rows = at.chain.rows
            out[:, first : first + len(rows), k] = _of_columns(at, w[..., None], v[..., None])[:, rows, 0]
    return out


def residual_slopes(found: Closure) -> Array:
    """Return ∂φ/∂q, (N, m, n); the rows of constraints of rates are those of A."""
    out = np.array(found.A)
    at = 0
    for here in found.chains:
        chain = here.chain
        rows = np.arange(at, at := at + len(chain.rows))
        out[:, rows[:, None], chain.path] = _of_columns(here, here.w, here.v)[:, chain.rows]
    return out


def _of_columns(here: ChainAt, w: Array, v: Array) -> Array:
    """Return the derivatives of angles and translations, (N, 6, k), to what moves B in A by columns w and v."""
    turns = sum(here.chain.loop.directions[:3])
    return np.concatenate([_of_angles(here.chain, here.R, w) if turns > 1 else w, v], axis=1)


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
