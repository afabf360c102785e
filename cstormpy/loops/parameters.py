"""Exact sensitivities of the hybrid dynamics of a closed mechanism to its numbers.

As `loops.sensitivity` has it for the state, with P the derivative of the open chain's answer under the forces Aᵀ λ of
the loops, and dA and dc those of the constraints A q̈ + c = 0, c = Ȧ q̇,

    (a)  dy = b + (W - A_uᵀ) dλ,    b = P + Y [dAᵀ λ]_v - [dAᵀ λ]_u
    (b)  (A_v W_v) dλ = -(A_v b_v + dA q̈ + dc)

Masses and torques leave the constraints alone, dA = 0 and dc = 0. A frame that moves by a twist does so on a joint that
is held there, as in `sensitivity.parameters`, so that dA and dc are derivatives of the constraints to the coordinate of
that joint. The frames of a loop itself, with R, p, w and v of `loops.closure`, Ω = w q̇ and a twist (ω, s) in their own
axes:

    (c)  of A:  dw = -ω × w,  dv = -ω × v,  dc likewise
    (d)  of B:  dw = 0,       dv = w × R s,  dc = c_w × R s + Ω × (Ω × R s)

(b) leaves open what of λ no passive joint feels, A_vᵀ N = 0. With B = A_uᵀ N, of the least torque, weighted by U,
Bᵀ σ = 0, σ = U τ_u, Kim (2012, (63)), and of the least λ beside that:

    (e)  (Bᵀ U B) z = Nᵀ (dA_u σ - dA_v A_v⁺ A_u σ + A_u U dτ_u),    dλ += N z
    (f)  dλ += (1 - A A⁺) dA A⁺ λ

of the least λ alone (f) with A_v in place of A. They hold while the ranks stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import Together
from cstormpy.linkage.components import Component, LoopFrame, Shift, find
from cstormpy.linkage.loops import Loop
from cstormpy.loops.assembly import refuse_open
from cstormpy.loops.chains import cross
from cstormpy.loops.closure import Closure, closure_of, held_closure_of
from cstormpy.loops.dynamics import (
    LoopLoads,
    columns,
    inverse_of,
    multipliers_of,
    names_where,
    wanted_accelerations,
    with_least_torque,
)
from cstormpy.loops.redundancy import Redundancy, null_space, pseudoinverse, weights_of
from cstormpy.sensitivity.held_joints import Held
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.parameters import ParameterSensitivity, refuse_symbols, torque_rates

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = ["ClosedParameterSensitivity", "closed_parameter_sensitivity", "constraint_rates"]


class ClosedParameterSensitivity(LoopLoads, ParameterSensitivity):
    """The answer of the hybrid dynamics of a closed mechanism with its derivatives to parameters.

    Attributes
    ----------
    y, qdd, tau, dy_dp, components
        As in `ParameterSensitivity`, at the same q, q̇ and u: to geometry that of the answer as it continues beside the
        states that close the loops.
    multipliers, loop_wrenches, rank
        As in `loops.dynamics.ClosedDynamics`.
    dmultipliers_dp : ndarray, (m, k) or (N, m, k)
        The derivative of the multipliers.
    """

    __slots__ = ("_mech", "_rank", "dmultipliers_dp", "multipliers")

    def __init__(
        self, mech: Linkage, parts: Together | Array, dy_dp: Array, found: Any, lam: Array, dlam: Array, rank: Any
    ) -> None:
        super().__init__(parts, dy_dp, found)
        self._mech, self.multipliers, self.dmultipliers_dp, self._rank = mech, lam, dlam, rank


def closed_parameter_sensitivity(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    parameters: Sequence[str] | str,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
) -> ClosedParameterSensitivity:
    """Return y, the multipliers and their derivatives to parameters; `Mechanism.parameter_sensitivity` tells of it."""
    active, numbers = mech.active_mask, find(mech, parameters)
    L = weights_of(redundancy, names_where(mech, active))
    parts = [part for _, own in numbers for part in own]
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "u": u}, wrench, base)
    refuse_symbols(samples.rows["q"])
    x, rates, given = samples.rows.values()
    found = closure_of(mech, x)
    refuse_open(mech, found, rates, samples.single)
    d = hybrid_sensitivity(mech.tree, q, qd, u, wrench, base, threads)
    y_r, Y = d.y.reshape(x.shape), d.dy_du.reshape(*x.shape, mech.n)
    W = columns(found.A, Y, active)
    wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))
    lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
    y, lam, shared = with_least_torque(found.A, W, y_r, lam, rank, active, L)
    qdd = np.where(active, given, y)
    response = np.where(active, np.eye(mech.n), -Y)
    P = torque_rates(mech.tree, parts, x, rates, qdd, wrench, base, threads, response)
    dA, dc = constraint_rates(mech, found, parts, x, rates)
    on = active[:, None]
    force = np.einsum("smnk,sm->snk", dA, lam)
    b = P + Y @ np.where(on, 0.0, force) - np.where(on, force, 0.0)
    left = -(found.A @ np.where(on, 0.0, b) + np.einsum("smnk,sn->smk", dA, qdd) + dc)
    d_lam = inverse_of(np.where(active, 0.0, found.A) @ W)[0] @ left  # (b)
    way = W - np.where(on, np.swapaxes(found.A, -1, -2), 0.0)
    for s, A in enumerate(found.A):
        if rank[s] < len(A):
            tau = y[s, active], (b[s] + way[s] @ d_lam[s])[active]
            d_lam[s] += _unfelt(A, dA[s], lam[s], *tau, active, L if shared else None)
    out = samples.shaped(y), samples.shaped(given.copy())
    return ClosedParameterSensitivity(
        mech,
        Together(*out, active),
        samples.shaped(b + way @ d_lam),  # (a)
        numbers,
        samples.shaped(lam),
        samples.shaped(d_lam),
        int(rank[0]) if samples.single else rank,
    )


def _unfelt(
    A: Array, dA: Array, lam: Array, tau: Array, d_tau: Array, active: NDArray[np.bool_], L: Array | None
) -> Array:
    """Return what of dλ (m, k) the passive joints do not feel, by (e) and (f)."""
    scale = float(np.abs(A).max(initial=0.0))
    A_v, A_u = A[:, ~active], A[:, active]
    if L is None:
        dA_v = dA[:, ~active]
        inverse = pseudoinverse(A_v, scale)
        change = np.einsum("mnk,n->mk", dA_v, inverse @ lam)
        return np.asarray(change - A_v @ (inverse @ change))
    N, inverse = null_space(A_v.T), pseudoinverse(A_v, scale)
    B, weights = L @ A_u.T @ N, L.T @ L
    load = weights @ tau
    turned = np.einsum("mnk,n->mk", dA[:, active], load)
    turned -= np.einsum("mnk,n->mk", dA[:, ~active], inverse @ (A_u @ load))
    z = pseudoinverse(B.T @ B, (scale * np.abs(L).max()) ** 2) @ (N.T @ (turned + A_u @ (weights @ d_tau)))
    whole = pseudoinverse(A, scale)
    change = np.einsum("mnk,n->mk", dA, whole @ lam)
    return np.asarray(N @ z + change - A @ (whole @ change))


def constraint_rates(mech: Linkage, found: Closure, parts: Sequence[Component], q: Array, qd: Array) -> tuple[Any, Any]:
    """Return dA (N, m, n, k) and dc (N, m, k) of each component."""
    dA, dc = np.zeros((len(q), found.m, mech.n, len(parts))), np.zeros((len(q), found.m, len(parts)))
    shifts = [(k, part) for k, part in enumerate(parts) if isinstance(part, Shift)]
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    if shifts and loops:
        held = Held.of(mech.tree, {(part.link, move.position) for _, part in shifts for move in part.moves})
        wide = np.zeros((2, len(q), held.mech.n))
        wide[..., held.own] = q, qd
        around = held_closure_of(held.mech, loops, wide[0])
        A, slopes, bias = around.A, around.slopes(), around.bias_slopes(wide[1])
        rows = slice(0, around.m)  # those of other constraints come behind, and do not change
        for k, part in shifts:
            for move in part.moves:
                at, j = held.place(part.link, move.position), move.along
                by_q, to_c = slopes[:, :, held.own, at] @ move.twist, bias[0][..., at] @ move.twist
                if j >= 0:
                    by_q, to_c = by_q * q[:, j, None, None], to_c * q[:, j, None]
                    by_q[..., j] += A[..., at] @ move.twist
                    to_c = to_c + (bias[1][..., at] @ move.twist) * qd[:, j, None]
                dA[:, rows, :, k] += by_q
                dc[:, rows, k] += to_c
    for k, frame in enumerate(parts):
        if isinstance(frame, LoopFrame):
            _of_frame(found, frame, qd, dA[..., k], dc[..., k])
    return dA, dc


def _of_frame(found: Closure, part: LoopFrame, qd: Array, dA: Array, dc: Array) -> None:
    """Fill what the constraints of a loop change by as one of its frames moves, by (c) and (d)."""
    at, first = found.chains[part.loop], found.first(part.loop)
    chain, R, w, v = at.chain, at.R, at.w, at.v
    rows = slice(first, first + len(chain.rows))
    turn, shift = part.twist[:3], R @ part.twist[3:]
    omega = (w @ qd[:, chain.path, None])[..., 0]
    bias = (at.rate(qd) @ qd[:, chain.path, None])[..., 0]
    if part.end == "a":
        columns_of = np.concatenate([-cross(turn[:, None], w), -cross(turn[:, None], v)], axis=1)
        rest = np.concatenate([-np.cross(turn, bias[:, :3]), -np.cross(turn, bias[:, 3:])], axis=1)
    else:
        columns_of = np.concatenate([np.zeros(w.shape), cross(w, shift[..., None])], axis=1)
        swung = np.cross(bias[:, :3], shift) + np.cross(omega, np.cross(omega, shift))
        rest = np.concatenate([np.zeros(swung.shape), swung], axis=1)
    dA[:, rows, chain.path] = columns_of[:, chain.rows]
    dc[:, rows] = rest[:, chain.rows]
