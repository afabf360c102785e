"""The inverse transcription: every joint on a spline, torques by inverse dynamics (Xiang et al. 2008, section 5).

Limits hold at an even grid of phases, integrals are Gauss sums in each segment of the splines, and the torque of a
joint without motor, which must be zero, is an equation at some phases of its own.

The inverse transcription of a mechanism with loops.

All joints of the open chain are on splines, the closure is an equation at phases of its own (`loop_problems`), and the
torques of the open chain are corrected by the forces of the loops (`loop_forces`). The multipliers of loops that are
cut are unknowns of the search: the second derivatives of further columns of the spline, as smooth as accelerations are,
which they have to balance, with the same knots.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.dynamics.batches import MANY_COORDINATES, run_batch, scratch_size
from cstormpy.dynamics.checked_arguments import Samples as Rows
from cstormpy.dynamics.lines import filled
from cstormpy.dynamics.tracing import Signature
from cstormpy.errors import CstormError
from cstormpy.kernels import layout
from cstormpy.linkage.tables import INVERSE, tables_of
from cstormpy.optimal.loads import load_row
from cstormpy.optimal.loop_forces import Shared
from cstormpy.optimal.samples import Array, Parts, Places, Samples
from cstormpy.optimal.transcription import ORDERS, Evaluation, Indices, RowPlan, Setup, Transcription
from cstormpy.optimal.turn_limits import whole_turn
from cstormpy.trajectory import BSpline
from cstormpy.trajectory.fitting import gauss_sites
from cstormpy.trajectory.knots import cut_evenly

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

LARGE = 20
"""From so many joints on a motion is worth several threads."""

_NONE = np.zeros((0, 0))


class Inverse(Transcription):
    """The inverse transcription.

    Parameters
    ----------
    setup : Setup
        All joints are on splines.
    grid : ndarray
        Phases of the samples at which limits hold, both ends included.
    integrals : bool
        Whether anything is integrated.
    phases : ndarray
        Further phases at which something is asked.
    pieces : int
        Into how many pieces each segment is cut for the integrals.
    """

    def __init__(
        self, setup: Setup, grid: Array, integrals: bool, phases: Array | None = None, pieces: int = 1
    ) -> None:
        super().__init__(setup)
        sites, weights = np.zeros(0), np.zeros(0)
        if integrals:
            sites, weights = gauss_sites(cut_evenly(np.unique(setup.knots), pieces), setup.degree + 1)
        further = np.zeros(0) if phases is None else phases
        count = len(grid)
        self.grid = slice(0, count)
        self.quadrature = slice(count, count + len(sites))
        self.phases = np.concatenate([grid, sites, further])
        self.weights = np.concatenate([np.zeros(count), weights, np.zeros(len(further))])
        self._prepare_bases()
        self._prepare_dynamics()

    def _prepare_bases(self) -> None:
        """Make the derivatives of q^(r) to x, with one pattern for all orders, and what does not depend on x."""
        from scipy.sparse import csr_array, kron, vstack

        curve, n = self.setup.curve, self.setup.width
        bases = [curve.basis_matrix(self.phases, r) for r in range(ORDERS)]
        Z = self.map.matrix
        full = [csr_array(kron(b, np.eye(n)) @ Z) for b in bases]
        pattern = csr_array(sum(abs(f) for f in full))
        pattern.sort_indices()
        self._start, self._column = pattern.indptr, pattern.indices
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        self._joint = rows % n
        self._data = np.zeros((ORDERS, len(rows)))
        if len(rows):  # of no entries SciPy makes an array that is none of NumPy's
            self._data[:] = [f[rows, self._column] for f in full]
        shape = (pattern.shape[0], self.map.size)
        forward = [csr_array((d, self._column, self._start), shape=shape) for d in self._data]
        self._forward = vstack(forward, format="csr")  # one product is cheaper than one for each order
        self._backward = [f.T.tocsr() for f in forward]
        self._bases = bases
        self._fixed = self._offsets(1.0)

    def _offsets(self, duration: float) -> Array:
        """Return the parts of the derivatives to the phase that the end conditions make, (orders, N n)."""
        P0 = self.map.with_duration(duration).offset
        return np.array([(b @ P0).ravel() for b in self._bases])

    def _prepare_dynamics(self) -> None:
        from cstormpy.kernels import entries_sensitivity as entries

        mech = self.setup.mech.tree  # of loops the open chain
        self._wrench = load_row(mech, self.setup.loads)[None] if self.setup.loads else _NONE
        base = self.setup.base
        self._base = _NONE if base is None else base.rows(self.phases * self.setup.typical_duration)
        one_by_one = mech.n > MANY_COORDINATES or tables_of(mech, INVERSE).N[layout.N_DEEP]
        self._kernel = entries.sensitivity_large if one_by_one else entries.sensitivity_lanes
        self._numbers = scratch_size(mech, True)

    def evaluate(self, x: Array) -> InverseEvaluation | None:
        """Return the motion, or None where a number is not finite."""
        T = self.duration(x)
        if not (np.isfinite(x).all() and T > 0.0):
            return None
        mech, N = self.setup.mech, len(self.phases)
        try:
            designed = self.designed(x)
        except CstormError:
            return None
        if designed is not None:
            mech = designed.mech
        offsets = self._offsets(T) if self.offset_moves else self._fixed
        free = x[: self.map.size]
        with np.errstate(over="ignore", invalid="ignore"):
            phase_rates = (self._forward @ free).reshape(ORDERS, -1) + offsets
            curves = [(row / T**r).reshape(N, self.setup.width) for r, row in enumerate(phase_rates)]
        motion = self._at_phases(x, curves)
        if motion is None:
            return None
        q, qd, qdd, qddd = map(np.ascontiguousarray, motion)
        if whole_turn(mech, q):
            return None
        tau, columns = np.empty((N, mech.n)), np.empty((N, 3, mech.n, mech.n))
        rows = Rows({"q": q, "qd": qd, "qdd": qdd}, self._wrench, self._base, single=False)
        if not self._fill(mech.tree, rows, tau, columns):
            return None
        channels = (q, qd, qdd, tau, qddd)
        samples = Samples(mech, T, self.weights, T * self.phases, *channels, self.setup.sizes, designed)
        return InverseEvaluation(self, samples, columns, curves)

    def _at_phases(self, x: Array, curves: list[Array]) -> list[Array] | None:
        """Return the motion of all joints at the samples, or None where there is none at one."""
        return [curve[:, : self.setup.mech.n] for curve in curves]

    def joints(self, points: Array, phases: Array, curves: list[Array]) -> tuple[list[Array], NDArray[np.bool_]]:
        """Return the motion of all joints at some phases from that of the splines, and where there is one."""
        return [curve[:, : self.setup.mech.n] for curve in curves], np.ones(len(phases), dtype=bool)

    def motion(self, x: Array) -> BSpline:
        """Return the motion of all joints as a spline."""
        spline, names = self.spline(x), self.setup.mech.names
        return spline.replace(control_points=spline.control_points[:, : len(names)], names=names)

    def _fill(self, tree: Linkage, rows: Rows, tau: Array, columns: Array) -> bool:
        """Fill the torques of a motion and their derivatives; tell whether all are finite."""
        threads = None if tree.n >= LARGE else 1
        signature = Signature.of_samples(tree, rows, sensitivities=True)
        if not filled(tree, INVERSE, signature, rows, (tau, columns), threads, often=True):
            arguments = (*rows.rows.values(), rows.wrench, rows.base, tau, columns, np.empty((0, tree.n, 12)))
            tables = tables_of(tree, INVERSE)
            if run_batch(self._kernel, tables, arguments, rows.count, self._numbers, threads)[1] != 0:
                return False
        return bool(np.isfinite(columns).all())

    def from_outside(self, duration: float) -> tuple[Any, Any]:
        """Return loads and motion of the base as the methods of mechanisms take them."""
        loads, base = [load for _, load in self.setup.loads], self.setup.base
        return loads or None, None if base is None else base.pair(self.phases * duration)

    def plan(self, places: Indices) -> RowPlan:
        """Return where the derivatives of numbers at these samples stand, one row each."""
        n = self.setup.width
        begin, end = self._start[places * n], self._start[(places + 1) * n]
        counts = end - begin
        row = np.repeat(np.arange(len(places)), counts)
        entry = np.arange(counts.sum()) + np.repeat(begin - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        rows, columns = row, self._column[entry]
        of_design = np.arange(self.of_design.start, self.of_design.stop)
        rows = np.concatenate([rows, np.repeat(np.arange(len(places)), len(of_design))])
        columns = np.concatenate([columns, np.tile(of_design, len(places))])
        if self.free_duration:
            rows = np.concatenate([rows, np.arange(len(places))])
            columns = np.concatenate([columns, np.full(len(places), self.size - 1)])
        return RowPlan(places, rows, columns, (row * n + self._joint[entry], self._data[:, entry]))


class InverseEvaluation(Evaluation):
    """A motion of all joints on splines."""

    def __init__(self, owner: Inverse, samples: Samples, columns: Array, curves: list[Array]) -> None:
        self.owner, self.samples, self.columns, self.curves = owner, samples, columns, curves

    @property
    def rows(self) -> dict[str, slice]:
        """Rows of `by_design` that belong to a channel."""
        return {"tau": slice(None)}

    def by_order(self, parts: Parts, places: Places = slice(None)) -> list[Array | None]:
        """Return derivatives of R numbers to the splines and their rates, (R, width) each, of those by channel."""
        found: list[Array | None] = [parts.get(name) for name in ("q", "qd", "qdd", "qddd")]
        if "tau" in parts:
            through = rows_through(parts["tau"], self.columns, places)
            for r in range(3):
                have = found[r]
                found[r] = through[r] if have is None else have + through[r]
        return found

    @cached_property
    def by_design(self) -> Array:
        """The derivatives of the torques to the design, (N, n, k)."""
        at = self.samples
        if at.designed is None:
            return np.zeros((*at.q.shape, 0))
        return at.designed.torque_rates(at.q, at.qd, at.qdd, *self.owner.from_outside(at.duration))

    def pull(self, parts: Parts) -> Array:
        """Return the gradient to x of a number with these derivatives to all samples, (N, n) by channel."""
        owner, T = self.owner, self.samples.duration
        by_order = self.by_order(parts)
        gradient = np.zeros(owner.size)
        for r, part in enumerate(by_order):
            if part is not None:
                gradient[: owner.map.size] += owner._backward[r] @ (part.ravel() / T**r)
        gradient[owner.of_design] = self._to_design(parts, np.arange(len(self.samples))).sum(axis=0)
        if owner.free_duration:
            total = 0.0
            for r, (part, rate) in enumerate(zip(by_order, self.by_duration(), strict=True)):
                if part is not None and (r or owner.offset_moves):
                    total += float(np.vdot(part, rate))
            if "t" in parts:
                total += float(parts["t"] @ owner.phases)
            if "duration" in parts:
                total += float(parts["duration"].sum())
            gradient[-1] = total
        return gradient

    def _to_design(self, parts: Parts, places: Indices) -> Array:
        """Return the derivatives to the design of R numbers with these derivatives at their samples, (R, k)."""
        found = np.zeros((len(places), self.by_design.shape[-1]))
        for channel, rows in self.rows.items():
            if channel in parts:
                found += np.einsum("ri,rik->rk", parts[channel], self.by_design[places, rows])
        return found + parts["design"] if "design" in parts else found

    def by_duration(self) -> list[Array]:
        """Return ∂q^(r)/∂T at fixed phases and fixed x, (N, width) each."""
        owner, T = self.owner, self.samples.duration
        rates = [curve * (-r / T) for r, curve in enumerate(self.curves)]
        if owner.offset_moves:
            moved = owner.map.with_duration(T).offset_rate
            rates = [rate + (b @ moved) / T**r for r, (rate, b) in enumerate(zip(rates, owner._bases, strict=True))]
        return rates

    def entries(self, plan: RowPlan, parts: Parts) -> Array:
        """Return the entries of the plan for R numbers with these derivatives, (R, n) by channel."""
        owner, T = self.owner, self.samples.duration
        at, data = plan.extra
        by_order = self.by_order(parts, plan.places)
        total = np.zeros(len(at))
        for r, part in enumerate(by_order):
            if part is not None:
                total += np.ascontiguousarray(part).ravel()[at] * (data[r] * T**-r)
        total = np.concatenate([total, self._to_design(parts, plan.places).ravel()])
        if not owner.free_duration:
            return total
        last = np.zeros(len(plan.places))
        for r, (part, rate) in enumerate(zip(by_order, self.by_duration(), strict=True)):
            if part is not None and (r or owner.offset_moves):
                last += np.einsum("ri,ri->r", part, rate[plan.places])
        if "t" in parts:
            last += parts["t"] * owner.phases[plan.places]
        if "duration" in parts:
            last += parts["duration"]
        return np.concatenate([total, last])


def rows_through(given: Array, columns: Array, places: Places) -> Array:
    """Return rows (R, i) times the matrices of their samples, (N, 3, i, j), as (3, R, j).

    `places` (R,) says which sample each row belongs to; those of one sample stand together, and are taken at once.
    """
    if isinstance(places, slice):
        return np.asarray(np.einsum("ri,rkij->krj", given, columns[places], optimize=False))
    first = np.flatnonzero(np.diff(places, prepend=-1))
    width = int(np.gcd.reduce(np.diff(first, append=len(places)))) if len(places) else 1
    at = columns[places[::width]]
    found = given.reshape(-1, 1, width, given.shape[1]) @ at  # (samples, 3, width, j)
    return np.moveaxis(found, 1, 0).reshape(3, len(places), columns.shape[-1])


def inverse_of(setup: Setup, *arguments: Any) -> Inverse:
    """Return the inverse transcription that fits the mechanism and what is on splines."""
    if setup.freedoms is not None:
        from cstormpy.optimal.freedoms import FreeInverse

        return FreeInverse(setup, *arguments)
    return Inverse(setup, *arguments) if setup.loops is None else ClosedInverse(setup, *arguments)


class ClosedInverse(Inverse):
    """The inverse transcription of a mechanism with loops; the parameters are those of `Inverse`."""

    def evaluate(self, x: Array) -> ClosedEvaluation | None:
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
        return ClosedEvaluation(self, samples, to_motion, found.curves, to_cut, shared)


class ClosedEvaluation(InverseEvaluation):
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
