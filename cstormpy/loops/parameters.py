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

(b) leaves open what of λ no passive joint feels; `loops.redundancy` tells how that changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import Together
from cstormpy.graph.arrays import zeros
from cstormpy.linkage.components import LoopFrame, Shift
from cstormpy.linkage.loops import Loop
from cstormpy.loops.assembly import is_carried, refuse_open
from cstormpy.loops.carried import OpenChain
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
from cstormpy.loops.opening import without_opening
from cstormpy.loops.redundancy import Redundancy, unfelt_change, weights_of
from cstormpy.loops.sensitivity import ClosedSensitivity, closed_sensitivity, written_multipliers
from cstormpy.sensitivity.held_joints import Held
from cstormpy.sensitivity.parameters import Asked, ParameterSensitivity, refuse_symbols
from cstormpy.sensitivity.torque_rates import held_for, torque_rates

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


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
    check: bool = True,
) -> ClosedParameterSensitivity:
    """Return y, the multipliers and their derivatives to parameters; `Mechanism.parameter_sensitivity` tells of it.

    `check` as in `closed_sensitivity`.
    """
    active, asked = mech.active_mask, Asked.of(mech, parameters)
    L = weights_of(redundancy, names_where(mech, active))
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "u": u}, wrench, base)
    refuse_symbols(samples.rows["q"])
    x, rates, given = samples.rows.values()
    found = without_opening(mech, closure_of(mech, x))
    if check:
        refuse_open(mech, found, rates, samples.single)
    chain = OpenChain(mech, found, samples, "own", "u", wrench, base, threads)
    y_r, D = chain.ask(given)
    Y = D[:, :, 2 * mech.n :]
    W = columns(found.A, Y, active)
    wanted = wanted_accelerations(found, rates, np.where(active, given, y_r))
    lam, rank = multipliers_of(mech, found, W, wanted, active, samples.single)
    y, lam, shared = with_least_torque(found.A, W, y_r, lam, rank, active, L)
    inverse = inverse_of(np.where(active, 0.0, found.A) @ W)[0]
    at = _Answered(mech, found, samples, Y, W, y, lam, inverse, chain.sigma)
    b, way, d_lam, dA = at.changes(asked, wrench, base, threads)
    for s, A in enumerate(found.A):
        if rank[s] < len(A):
            tau = y[s, active], (b[s] + way[s] @ d_lam[s])[active]
            d_lam[s] += unfelt_change(A, dA[s], lam[s], *tau, active, L if shared else None)
    out = samples.shaped(y), samples.shaped(given.copy())
    return ClosedParameterSensitivity(
        mech,
        Together(*out, active),
        samples.shaped(b + way @ d_lam),  # (a)
        asked.found,
        samples.shaped(lam),
        samples.shaped(d_lam),
        int(rank[0]) if samples.single else rank,
    )


def closed_sensitivity_with_parameters(
    mech: Linkage, q: Array, qd: Array, u: Array, asked: Asked, wrench: WrenchLike = None, base: BaseLike = None
) -> tuple[ClosedSensitivity, Array]:
    """Return the derivatives to the state of one sample, of symbols too, and those to parameters beside, (n, k)."""
    d = closed_sensitivity(mech, q, qd, u, wrench, base)
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "u": u}, wrench, base)
    if not samples.symbolic:
        return d, closed_parameter_sensitivity(mech, q, qd, u, asked.names, wrench, base).dy_dp
    found = closure_of(mech, samples.rows["q"])
    by_loops = is_carried(mech.numeric, "own")
    chain = OpenChain(mech, found, samples, "own", "u", wrench, base, by_loops=by_loops)
    y_r, D = chain.ask(samples.rows["u"])
    Y = D[:, :, 2 * mech.n :]
    W = columns(found.A, Y, mech.active_mask)
    lam, inverse, _ = written_multipliers(mech, found, samples, y_r, W, mech.active_mask)
    at = _Answered(mech, found, samples, Y, W, d.y[None], lam, inverse, chain.sigma)
    b, way, d_lam, _ = at.changes(asked, wrench, base, 1)
    return d, (b + way @ d_lam)[0]  # (a)


@dataclass(frozen=True)
class _Answered:
    """Samples with their answer y, the multipliers λ, (A_v W_v)⁺, and σ of an open chain that the loops carry."""

    mech: Linkage
    found: Closure
    samples: Samples
    Y: Array
    W: Array
    y: Array
    lam: Array
    inverse: Array
    sigma: Any

    def changes(self, asked: Asked, wrench: Any, base: Any, threads: int | None) -> tuple[Any, Any, Any, Any]:
        """Return b, W - A_uᵀ, dλ by (b), and dA, of all components of parameters."""
        mech, A, active = self.mech, self.found.A, self.mech.active_mask
        x, rates, given = self.samples.rows.values()
        qdd = np.where(active, given, self.y)
        response = np.where(active, np.eye(mech.n), -self.Y)
        P = torque_rates(mech.tree, asked.parts, x, rates, qdd, wrench, base, threads, response, asked.held)
        dA, dc = constraint_rates(mech, self.found, asked.parts, x, rates, asked.held)
        on = active[:, None]
        force = (dA * self.lam[..., None, None]).sum(axis=1)
        b = P + self.Y @ np.where(on, 0.0, force) - np.where(on, force, 0.0)
        opened = (dA * qdd[:, None, :, None]).sum(axis=2) + dc
        way = self.W - np.where(on, np.swapaxes(A, -1, -2), 0.0)
        d_lam = -self.inverse @ (A @ np.where(on, 0.0, b) + opened)
        if self.sigma is not None:  # what P lacks, see `loops.carried`
            lacking = self.sigma[..., None] * opened
            b, d_lam = b - way @ lacking, d_lam + lacking
        return b, way, d_lam, dA


def constraint_rates(
    mech: Linkage, found: Closure, parts: Sequence[Any], q: Array, qd: Array, held: Held | None = None
) -> tuple[Any, Any]:
    """Return dA (N, m, n, k) and dc (N, m, k) of each component; `held` as in `torque_rates`."""
    shape = (len(q), found.m, mech.n, len(parts))
    dA, dc = zeros(shape, found.A, q, qd), zeros((*shape[:2], len(parts)), found.A, q, qd)
    shifts = [(k, part) for k, part in enumerate(parts) if isinstance(part, Shift)]
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    if shifts and loops:
        held = held or held_for(mech.tree, parts)
        assert held is not None
        around = held_closure_of(held.mech, loops, held.widened(q))
        A, slopes, bias = around.A, around.slopes(), around.bias_slopes(held.widened(qd))
        rows = slice(0, around.m)  # those of other constraints come behind, and do not change
        for k, part in shifts:
            for move in part.moves:
                at, j = held.place(part.link, move.position), move.along
                by_q, to_c = move.by(slopes[:, :, held.own, at]), move.by(bias[0][..., at])
                if j >= 0:
                    by_q, to_c = by_q * q[:, j, None, None], to_c * q[:, j, None]
                    by_q[..., j] += move.by(A[..., at])
                    to_c = to_c + move.by(bias[1][..., at]) * qd[:, j, None]
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
        rest = np.concatenate([-cross(turn, bias[:, :3], -1), -cross(turn, bias[:, 3:], -1)], axis=1)
    else:
        across = cross(w, shift[..., None])
        columns_of = np.concatenate([0.0 * across, across], axis=1)
        swung = cross(bias[:, :3], shift, -1) + cross(omega, cross(omega, shift, -1), -1)
        rest = np.concatenate([0.0 * swung, swung], axis=1)
    dA[:, rows, chain.path] = columns_of[:, chain.rows]
    dc[:, rows] = rest[:, chain.rows]
