"""Shooting of closed mechanisms: their joints integrated with the forces of the loops.

The joints that are not active are integrated by the classical Runge-Kutta method from a closed start. The answers are
those of the closed mechanism, so that the loops stay closed as well as the steps integrate. The steps are taken one by
one; their derivatives are found side by side, see `shooting_derivatives`.

The multipliers are the least with Aᵀ λ = τ_r - τ, τ_r the inverse dynamics of the open chain, so that

    dλ = (Aᵀ)⁺ (dτ_r - dτ - dAᵀ λ) + (1 - A A⁺) dA A⁺ λ
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cstormpy.errors import CstormError, InvalidValue
from cstormpy.loops.closure import closure_of
from cstormpy.loops.dynamics import closed_hybrid
from cstormpy.loops.parameters import closed_parameter_sensitivity
from cstormpy.loops.sensitivity import closed_sensitivity, refuse_redundant
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.design import Designed
from cstormpy.optimal.samples import FORCES, Array, Samples
from cstormpy.optimal.shooting import Shooting, ShootingEvaluation
from cstormpy.optimal.shooting_derivatives import STAGES, node_derivatives
from cstormpy.optimal.transcription import Setup
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

SINGULAR = 1e-9
"""A singular value of the constraints below this part of the greatest is zero."""


def shooting_of(setup: Setup, steps: int) -> Shooting:
    """Return the shooting transcription that fits the mechanism."""
    return ClosedShooting(setup, steps) if setup.mech.loops else Shooting(setup, steps)


class ClosedShooting(Shooting):
    """The shooting transcription of a mechanism with loops, of a base at rest; the parameters are those of `Shooting`.

    Raises
    ------
    InvalidValue
        The active joints are tied to each other by the loops.
    """

    def __init__(self, setup: Setup, steps: int) -> None:
        super().__init__(setup, steps)
        self._free = np.flatnonzero(~setup.mech.active_mask)
        self._loads: Any = [load for _, load in setup.loads] or None
        q, qd = self._begin
        refuse_redundant(setup.mech, q)
        closed_sensitivity(setup.mech, q, qd, np.zeros(setup.mech.n), self._loads)  # refuses what has no derivatives

    def _evaluation(self, samples: Samples, *derived: Any) -> ShootingEvaluation:
        at = samples
        given = np.where(at.mech.active_mask, at.qdd, at.tau)
        multipliers = closed_hybrid(at.mech, at.q, at.qd, given, self._loads, check=False).multipliers
        return _ClosedEvaluation(self, replace(at, multipliers=multipliers), *derived)

    def multipliers_by_x(self, at: Samples, d: dict[str, Array]) -> Array:
        """Return the derivatives of the multipliers to x, (N, m, size), from those of q, q̇, q̈ and the torques."""
        found, lam = closure_of(at.mech, at.q), at.multipliers
        of = hybrid_sensitivity(at.mech.tree, at.q, at.qd, at.qdd, self._loads, drive="inverse", name="qdd")
        inverse, slopes = np.linalg.pinv(found.A, rcond=SINGULAR), found.slopes()
        right = of.dy_dq @ d["q"] + of.dy_dqd @ d["qd"] + of.dy_du @ d["qdd"] - d["tau"]
        right -= np.einsum("sk,skij->sij", lam, slopes) @ d["q"]
        if at.designed is not None:  # which moves no loop
            right[..., self.of_design] += at.designed.torque_rates(at.q, at.qd, at.qdd, self._loads, None)
        turned = np.einsum("skij,si->skj", slopes, np.einsum("sik,sk->si", inverse, lam)) @ d["q"]
        return np.asarray(np.swapaxes(inverse, 1, 2) @ right + turned - found.A @ (inverse @ turned))

    def _integrated(
        self, designed: Designed | None, signal: Array, seeds: Array, h: float, dh: Array
    ) -> tuple[Array, Array] | None:
        mech, self.failure = self.setup.mech if designed is None else designed.mech, ""
        try:
            out = self._stepped(mech, signal, h)
            return None if out is None else (out, self._derived(mech, designed, signal, seeds, h, dh, out))
        except CstormError as error:  # the loops are torn, or their posture is singular
            self.failure = str(error)
            return None

    def _stepped(self, mech: Mechanism, signal: Array, h: float) -> Array | None:
        """Return q, q̇ and answers at the nodes, (nodes, 3, n); None where a number is not finite."""
        evaluate, free = mech.hybrid_evaluator(self._loads), self._free
        out = np.empty((self.steps + 1, 3, mech.n))
        x = self._begin[:, free].copy()
        for k in range(self.steps + 1):
            rate, total = np.zeros_like(x), np.zeros_like(x)
            for half, fraction, weight in STAGES:
                at = signal[min(2 * k + half, 2 * self.steps)]
                q, qd = at[0].copy(), at[1].copy()
                q[free], qd[free] = x + fraction * h * rate
                if not np.isfinite(q).all():
                    return None
                y = self._asked(mech, evaluate, q, qd, np.ascontiguousarray(at[2]), node=half == 0)
                if half == 0:
                    out[k] = q, qd, y
                    if k == self.steps:
                        return out
                rate = np.stack([qd[free], y[free]])
                total += weight / 6.0 * rate
            x = x + h * total
        return out

    def _asked(
        self, mech: Mechanism, evaluate: Callable[..., Array], q: Array, qd: Array, u: Array, node: bool
    ) -> Array:
        """Return the answers; a stage may be a little open, which a prepared function refuses."""
        try:
            return evaluate(q, qd, u)
        except InvalidValue:
            if node:
                raise
            return np.asarray(closed_hybrid(mech, q, qd, u, self._loads, check=False).y)

    def _derived(
        self, mech: Mechanism, designed: Designed | None, signal: Array, seeds: Array, h: float, dh: Array, out: Array
    ) -> Array:
        """Return the derivatives of what `_stepped` returns to x, (nodes, 3, n, size)."""
        free = self._free

        def answer(places: slice, q: Array, qd: Array) -> tuple[Array, Array, Array]:
            return self._answer(mech, designed, q, qd, signal[places, 2], seeds[places])

        found = np.array(seeds[::2])
        found[:, 0, free], found[:, 1, free], found[:, 2] = node_derivatives(answer, signal, out, free, h, dh)
        return found

    def _answer(
        self, mech: Mechanism, designed: Designed | None, q: Array, qd: Array, u: Array, seeds: Array
    ) -> tuple[Array, Array, Array]:
        """Return the answers y (N, n), and their derivatives to the state and to x at that state."""
        free, given = self._free, np.ascontiguousarray(u)
        d = closed_sensitivity(mech, q, qd, given, self._loads, check=False)
        moved = seeds[:, :2].copy()
        moved[:, :, free] = 0.0
        by_x = d.dy_dq @ moved[:, 0] + d.dy_dqd @ moved[:, 1] + d.dy_du @ seeds[:, 2]
        if designed is not None:
            names = list(designed.design.moved)
            by = closed_parameter_sensitivity(mech, q, qd, given, names, self._loads, check=False).dy_dp
            by_x[..., self.of_design] += by @ designed.design.rates(designed.values)
        return d.y, np.concatenate([d.dy_dq[..., free], d.dy_dqd[..., free]], axis=-1), by_x


class _ClosedEvaluation(ShootingEvaluation):
    """A motion of a closed mechanism of which some joints were integrated."""

    owner: ClosedShooting

    def by_x(self, channel: str) -> Array:
        """Return the derivatives of a channel to x, (N, n or m, size)."""
        if channel != FORCES:
            return super().by_x(channel)
        if channel not in self._known:
            others = {name: super(_ClosedEvaluation, self).by_x(name) for name in ("q", "qd", "qdd", "tau")}
            self._known[channel] = self.owner.multipliers_by_x(self.samples, others)
        return self._known[channel]
