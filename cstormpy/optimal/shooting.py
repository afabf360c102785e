"""The shooting transcription: some joints on splines, the others integrated (Sohl and Bobrow 2001, section 5).

The joints on splines are those whose motion is prescribed (active joints) and, on a spline of torque, those with a
motor that are not active. All others move as the hybrid dynamics say, by steps of the classical Runge-Kutta method;
the derivatives are those of that method, step by step, so that they belong to the numbers that were computed.
Integrals are Simpson sums over the steps.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.dynamics.batches import scratch_size, workspace
from cstormpy.dynamics.lines import address_of
from cstormpy.dynamics.tracing import Signature
from cstormpy.errors import CstormError, InvalidValue
from cstormpy.kernels.stepping_code import Steps
from cstormpy.optimal.loads import load_row
from cstormpy.optimal.samples import TIMES, Array, Parts, Samples
from cstormpy.optimal.shooting_derivatives import design_columns
from cstormpy.optimal.transcription import ORDERS, Evaluation, Indices, RowPlan, Setup, Transcription
from cstormpy.optimal.turn_limits import whole_turn

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.tables import Tables
    from cstormpy.optimal.design import Designed


class Shooting(Transcription):
    """The shooting transcription with a number of steps, which must be even."""

    def __init__(self, setup: Setup, steps: int) -> None:
        super().__init__(setup)
        if steps % 2:
            raise InvalidValue(f"steps: must be even, for Simpson's rule, got {steps}")
        self.steps = steps
        self.phases = np.linspace(0.0, 1.0, steps + 1)
        self.grid = self.quadrature = slice(0, steps + 1)
        self.weights = np.tile([2.0, 4.0], steps // 2 + 1)[: steps + 1] / (3.0 * steps)
        self.weights[[0, -1]] = 1.0 / (3.0 * steps)
        active = setup.mech.active_mask
        self._moved = [(int(j), c) for c, j in enumerate(setup.driven) if active[j]]
        self._torques = [(int(j), c) for c, j in enumerate(setup.driven) if not active[j]]
        self._prepare()

    def _prepare(self) -> None:
        from cstormpy.kernels import entries_shooting as entries
        from cstormpy.linkage.tables import tables_of

        mech = self.setup.mech
        halves = np.linspace(0.0, 1.0, 2 * self.steps + 1)
        curve = self.setup.curve
        self._bases = [curve.basis_matrix(halves, r).toarray() for r in range(ORDERS)]
        Z = self.map.matrix.toarray().reshape(*self.map.shape, self.map.size)
        self._by_x = [np.einsum("km,mjc->kjc", b, Z) for b in self._bases]
        self._kernel, self._tables = entries.shoot, tables_of(mech.tree)
        self._numbers = scratch_size(mech, True)
        self._wrench = load_row(mech.tree, self.setup.loads)
        base = self.setup.base
        self._base = np.empty((0, 12)) if base is None else base.rows(halves * self.setup.typical_duration)
        self._begin = np.nan_to_num(self.setup.start)
        self._kept_seeds = None if self.free_duration else self._seeds(self.duration(np.zeros(0)), None, None)

    def _signals(self, control_points: Array, T: float) -> tuple[Array, list[Array]]:
        """Return what drives the kernel at all half steps, (2 steps + 1, 3, n), and all derivatives of the splines."""
        orders = [(b @ control_points) / T**r for r, b in enumerate(self._bases)]
        signal = np.zeros((2 * self.steps + 1, 3, self.setup.mech.n))
        for j, c in self._moved:
            for r in range(3):
                signal[:, r, j] = orders[r][:, c]
        for j, c in self._torques:
            signal[:, 2, j] = orders[0][:, c]
        return signal, orders

    def _seeds(self, T: float, orders: list[Array] | None, moved: Array | None) -> Array:
        """Return the derivatives of the signals to x, (2 steps + 1, 3, n, size)."""
        seeds = np.zeros((2 * self.steps + 1, 3, self.setup.mech.n, self.size))
        k = self.map.size  # those of the design follow, see `shooting_derivatives`
        rates = [] if orders is None else self._by_duration(T, orders, moved)
        for j, c in self._moved:
            for r in range(3):
                seeds[:, r, j, :k] = self._by_x[r][:, c] / T**r
                if rates:
                    seeds[:, r, j, -1] = rates[r][:, c]
        for j, c in self._torques:
            seeds[:, 2, j, :k] = self._by_x[0][:, c]
            if rates:
                seeds[:, 2, j, -1] = rates[0][:, c]
        return seeds

    def _by_duration(self, T: float, orders: list[Array], moved: Array | None) -> list[Array]:
        """Return the derivatives of the splines' orders to T at fixed phases."""
        rates = [(-r / T) * order for r, order in enumerate(orders)]
        if moved is not None:
            rates = [rate + (b @ moved) / T**r for r, (rate, b) in enumerate(zip(rates, self._bases, strict=True))]
        return rates

    def evaluate(self, x: Array) -> ShootingEvaluation | None:
        """Return the motion, or None where a number is not finite."""
        T = self.duration(x)
        if not (np.isfinite(x).all() and T > 0.0):
            return None
        try:
            designed = self.designed(x)
        except CstormError:
            return None
        mech = self.setup.mech if designed is None else designed.mech
        n, nodes = mech.n, self.steps + 1
        ends = self.map.with_duration(T)
        signal, orders = self._signals(ends.control_points(x[: self.map.size]), T)
        moved = ends.offset_rate if self.offset_moves else None
        seeds = self._seeds(T, orders, moved) if self._kept_seeds is None else self._kept_seeds
        dh = np.zeros(self.size)
        if self.free_duration:
            dh[-1] = 1.0 / self.steps
        found = self._integrated(designed, signal, seeds, T / self.steps, dh)
        if found is None or not all(np.isfinite(one).all() for one in found):
            return None
        out, d_out = found
        if whole_turn(mech, out[:, 0]):
            return None
        jerk = np.zeros((nodes, n))
        for j, c in self._moved:
            jerk[:, j] = orders[3][::2, c]
        active = mech.active_mask
        given = signal[::2, 2]
        qdd, tau = np.where(active, given, out[:, 2]), np.where(active, out[:, 2], given)
        channels = (out[:, 0], out[:, 1], qdd, tau, jerk)
        at = Samples(mech, T, self.weights, T * self.phases, *channels, self.setup.sizes, designed)
        return self._evaluation(at, d_out, seeds, moved, signal)

    def _evaluation(self, samples: Samples, *derived: Any) -> ShootingEvaluation:
        """Return the evaluation of a motion; `derived` as `ShootingEvaluation` takes it."""
        return ShootingEvaluation(self, samples, *derived)

    def _integrated(
        self, designed: Designed | None, signal: Array, seeds: Array, h: float, dh: Array
    ) -> tuple[Array, Array] | None:
        """Return q, q̇ and answers at the nodes, (nodes, 3, n), and their derivatives to x; None where it fails.

        By the mechanism's straight line or by the loops. Those to the design may be left open, see `by_design`.
        """
        from cstormpy.linkage.tables import tables_of

        mech = self.setup.mech if designed is None else designed.mech
        tables = self._tables if designed is None else tables_of(mech)
        n, columns, nodes = mech.n, self.size, self.steps + 1
        z, dz, work = np.zeros((3, 2, n)), np.zeros((3, 2, n, columns)), np.empty((4, n, columns))
        z[0] = self._begin
        out, d_out = np.empty((nodes, 3, n)), np.empty((nodes, 3, n, columns))
        question = Signature.of_loads(mech, self._wrench, moving_base=len(self._base) > 0, sensitivities=True)
        address = address_of(mech, "own", question)
        if address:
            status = self._step_by_line(address, mech, tables, signal, (seeds, dz, work, d_out), h, dh, z, out)
        else:
            _, status = self._kernel.load()(
                tables.T, tables.N, workspace(self._numbers), self._wrench, self._base, signal, seeds,
                h, dh, z, dz, work, out, d_out,
            )  # fmt: skip
        return None if status else (out, d_out)

    def _step_by_line(
        self, address: int, mech: Linkage, tables: Tables, signal: Array, by_column: tuple[Array, ...], h: float,
        dh: Array, z: Array, out: Array,
    ) -> int:  # fmt: skip
        """Fill the motion at the nodes and its derivatives with the routine at an address."""
        n, active = mech.n, mech.active_mask.astype(np.int64)
        seeds, dz, work, d_out = (a.reshape(-1, len(dh)) for a in by_column)
        scratch, y, D = np.empty((3, n)), np.empty(n), np.empty((3 * n, n))
        return Steps("shoot_by_line")(
            address, tables.T, active, self._wrench, self._base, signal.reshape(len(signal), -1), seeds,
            np.array([h]), dh, z.reshape(3, -1), dz, scratch, work, y, D, out.reshape(len(out), -1), d_out,
        )[0]  # fmt: skip

    def by_design(self, at: Samples, signal: Array) -> Array:
        """Return the derivatives of q, q̇ and the answers to the design, (N, 3, n, k)."""
        assert at.designed is not None
        out = np.stack([at.q, at.qd, np.where(at.mech.active_mask, at.tau, at.qdd)], axis=1)
        loads = [load for _, load in self.setup.loads] or None
        return design_columns(at.designed, signal, at.duration / self.steps, out, loads)

    def plan(self, places: Indices) -> RowPlan:
        """Return where the derivatives of numbers at these samples stand: everywhere."""
        rows, columns = np.indices((len(places), self.size))
        return RowPlan(places, rows.ravel(), columns.ravel())


class ShootingEvaluation(Evaluation):
    """A motion of which some joints were integrated."""

    def __init__(
        self, owner: Shooting, samples: Samples, d_out: Array, seeds: Array, moved: Array | None, signal: Array
    ) -> None:
        self.owner, self.samples = owner, samples
        self._answered, self._seeds, self._moved, self._signal = d_out, seeds, moved, signal
        self._known: dict[str, Array] = {}

    @cached_property
    def _d_out(self) -> Array:
        """The derivatives of q, q̇ and the answers, (N, 3, n, size); the kernel leaves those to the design open."""
        if self.samples.designed is not None and not self.samples.mech.loops:
            self._answered[..., self.owner.of_design] = self.owner.by_design(self.samples, self._signal)
        return self._answered

    def by_x(self, channel: str) -> Array:
        """Return the derivatives of a channel to x, (N, n, size)."""
        if channel not in self._known:
            active = self.owner.setup.mech.active_mask[:, None]
            answers, given = self._d_out[:, 2], self._seeds[::2, 2]
            if channel in ("q", "qd"):
                self._known[channel] = self._d_out[:, ("q", "qd").index(channel)]
            elif channel == "qddd":
                self._known[channel] = self._jerk()
            else:
                first, second = (given, answers) if channel == "qdd" else (answers, given)
                self._known[channel] = np.where(active, first, second)
        return self._known[channel]

    def _jerk(self) -> Array:
        owner, at = self.owner, self.samples
        found = np.zeros((*at.q.shape, owner.size))
        k, T = owner.map.size, at.duration
        for j, c in owner._moved:
            found[:, j, :k] = owner._by_x[3][::2, c] / T**3
            if owner.free_duration:
                found[:, j, -1] = at.qddd[:, j] * (-3.0 / T)
                if self._moved is not None:
                    found[:, j, -1] += (owner._bases[3][::2] @ self._moved[:, c]) / T**3
        return found

    def pull(self, parts: Parts) -> Array:
        """Return the gradient to x of a number with these derivatives to all samples, (N, n) by channel."""
        gradient = np.zeros(self.owner.size)
        for channel, part in parts.items():
            if channel in TIMES:
                if self.owner.free_duration:
                    gradient[-1] += float(part @ self.owner.phases if channel == "t" else part.sum())
            elif channel == "design":
                gradient[self.owner.of_design] += part.sum(axis=0)
            else:
                gradient += part.ravel() @ self.by_x(channel).reshape(-1, self.owner.size)
        return gradient

    def entries(self, plan: RowPlan, parts: Parts) -> Array:
        """Return the entries of the plan for R numbers with these derivatives, (R, n) by channel."""
        total = np.zeros((len(plan.places), self.owner.size))
        for channel, part in parts.items():
            if channel in TIMES:
                if self.owner.free_duration:
                    total[:, -1] += part * self.owner.phases[plan.places] if channel == "t" else part
            elif channel == "design":
                total[:, self.owner.of_design] += part
            else:
                total += np.einsum("rj,rjc->rc", part, self.by_x(channel)[plan.places])
        return total.ravel()
