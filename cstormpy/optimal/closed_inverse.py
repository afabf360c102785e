"""The inverse transcription of a mechanism with loops.

All joints of the open chain are on splines, the closure is an equation at phases of its own (`loop_closure`), and the
torques of the open chain are corrected by the forces of the loops (`loop_forces`). The multipliers of loops that are
cut are unknowns of the search: the second derivatives of further columns of the spline, as smooth as accelerations are,
which they have to balance, with the same knots.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from cstormpy.optimal.inverse import Inverse, InverseEvaluation, rows_through
from cstormpy.optimal.loop_forces import Shared
from cstormpy.optimal.samples import Array, Parts, Places, Samples
from cstormpy.optimal.transcription import Setup


def inverse_of(setup: Setup, *arguments: Any) -> Inverse:
    """Return the inverse transcription that fits the mechanism."""
    return Inverse(setup, *arguments) if setup.loops is None else ClosedInverse(setup, *arguments)


class ClosedInverse(Inverse):
    """The inverse transcription of a mechanism with loops; the parameters are those of `Inverse`."""

    def evaluate(self, x: Array) -> InverseEvaluation | None:
        """Return the motion, or None where a number is not finite, or the loops cannot share its load."""
        found, loops = super().evaluate(x), self.setup.loops
        if found is None or loops is None:
            return None
        at = found.samples
        shared = loops.shared(at.q, at.tau, found.curves[2][:, at.mech.n :], at.mech)
        to_motion, to_cut = loops.derivatives(shared, found.columns)
        if not (np.isfinite(to_motion).all() and np.isfinite(to_cut).all()):
            return None
        samples = replace(at, tau=shared.tau, multipliers=shared.multipliers)
        return _ClosedEvaluation(self, samples, to_motion, found.curves, to_cut, shared)


class _ClosedEvaluation(InverseEvaluation):
    """A motion of all joints of a closed mechanism; `columns` are of torques and multipliers, (N, 3, n + m, n)."""

    def __init__(
        self,
        owner: ClosedInverse,
        samples: Samples,
        columns: Array,
        curves: list[Array],
        to_cut: Array,
        shared: Shared,
    ) -> None:
        super().__init__(owner, samples, columns, curves)
        self.to_cut, self.shared = to_cut, shared

    @cached_property
    def by_design(self) -> Array:
        """The derivatives of torques and multipliers to the design, (N, n + m, k)."""
        at, loops = self.samples, self.owner.setup.loops
        if at.designed is None or loops is None:
            return np.zeros((len(at.q), self.rows["multipliers"].start + at.multipliers.shape[1], 0))
        return loops.by_design(self.shared, super().by_design, at.designed.constraint_rates(self.shared.closure, at.q))

    @property
    def rows(self) -> dict[str, slice]:
        """Rows of the derivatives that belong to a channel."""
        n = self.samples.mech.n
        return {"tau": slice(0, n), "multipliers": slice(n, None)}

    def by_order(self, parts: Parts, places: Places = slice(None)) -> list[Array | None]:
        """Return derivatives of R numbers to the splines and their rates, (R, width) each, of those by channel."""
        n, cut = self.samples.mech.n, self.to_cut.shape[2]
        found: list[Array | None] = [
            None if name not in parts else np.pad(parts[name], ((0, 0), (0, cut)))
            for name in ("q", "qd", "qdd", "qddd")
        ]
        rows = self.rows
        for channel in (name for name in rows if name in parts):
            given = parts[channel]
            through = np.zeros((3, len(given), n + cut))
            to_cut = self.to_cut[places][:, rows[channel]]
            through[:, :, :n] = rows_through(given, self.columns[:, :, rows[channel]], places)
            through[2, :, n:] = np.einsum("ri,ric->rc", given, to_cut)
            for r in range(3):
                have = found[r]
                found[r] = through[r] if have is None else have + through[r]
        return found
