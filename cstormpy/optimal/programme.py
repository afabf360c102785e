"""The nonlinear programme that a transcribed problem is: cost, constraints and their exact derivatives at any x.

Values and derivatives of the last few x are kept, because solvers ask for one after the other. Constraints are scaled
by their bounds, so that one tolerance serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arrays import as_slice
from cstormpy.errors import InvalidValue, NonFinite
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.design import derivatives
from cstormpy.optimal.row_blocks import RowBlocks
from cstormpy.optimal.samples import TIMES, Array, Parts, Places, Samples
from cstormpy.optimal.terms import Objective
from cstormpy.optimal.transcription import Evaluation, Indices, RowPlan, Transcription


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of one constraint."""

    constraint: PathConstraint
    places: Places  # samples where it holds
    count: int  # how many these are
    rows: slice
    plan: RowPlan
    scale: Array  # (rows,)
    width: int  # numbers at each sample


class _Point:
    """Values and derivatives at one x."""

    def __init__(self, x: Array, motion: Evaluation | None) -> None:
        self.x, self.key, self.motion = x, x.tobytes(), motion
        self.cost: float | None = None
        self.gradient: Array | None = None
        self.constraints: Array | None = None
        self.jacobian: Array | None = None
        self.entries: Array | None = None


class Programme:
    """Least cost(x) with lower <= constraints(x) <= upper and low <= x <= high.

    Attributes
    ----------
    n : int
        Number of variables.
    low, high : ndarray, (n,)
        Bounds of x.
    lower, upper : ndarray, (R,)
        Bounds of the constraints, scaled; `blocks` says which rows belong to which.
    scales : list of ndarray, (k,) each
        Of the constraints: what their numbers are divided by.
    structure : tuple of two arrays
        Rows and columns of the entries of the constraints' Jacobian; no place stands twice.
    """

    def __init__(
        self,
        transcription: Transcription,
        objective: Objective,
        constraints: Sequence[PathConstraint],
        low: Array,
        high: Array,
        x0: Array,
        scales: Sequence[Array] | None = None,
    ) -> None:
        self.transcription, self.objective = transcription, objective
        self.n, self.low, self.high = transcription.size, low, high
        self._points: list[_Point] = []
        self.evaluations = 0
        self.not_finite = 0
        motion = transcription.evaluate(np.clip(x0, low, high))
        if motion is None:
            why = f" ({transcription.failure})" if transcription.failure else ""
            raise NonFinite(
                f"guess: the motion that it begins with is not finite{why}; give another guess, more steps or closer "
                "bounds"
            )
        self._check_objective(motion.samples)
        self.blocks = self._blocks(constraints, motion.samples, scales)
        self.scales = [block.scale[: block.width] for block in self.blocks]
        self.lower, self.upper = self._bounds()
        self.structure = self._structure()
        self._square_rows: dict[tuple[str, int], tuple[RowPlan, RowBlocks]] = {}
        first = self.point(np.clip(x0, low, high))
        self._cost_of(first)
        self._last_constraints = self._constraints_of(first)

    # ---------------------------------------------------------------- made once

    def _check_objective(self, samples: Samples) -> None:
        """Refuse terms that do not answer with finite numbers where the search begins."""
        for _, term in self.objective.parts:
            at = samples.at(self._places_of(term.kind))
            with np.errstate(over="ignore", invalid="ignore"):  # refused next
                values = term.values(at)
            if not np.isfinite(values).all():
                where = "" if term.kind != "integral" else f" at t = {at.t[np.argmin(np.isfinite(values))]:.4g} s"
                raise NonFinite(f"objective: {term.label()} is not finite{where} on the motion that the guess gives")
            if term.kind != "duration":
                self.transcription.setup.refuse_rough(term.derivatives(at), term.label())

    def _places_of(self, kind: str) -> slice:
        t = self.transcription
        return t.quadrature if kind in ("integral", "motion") else slice(t.grid.stop - 1, t.grid.stop)

    def _blocks(
        self, constraints: Sequence[PathConstraint], samples: Samples, scales: Sequence[Array] | None
    ) -> list[Block]:
        blocks, begin = [], 0
        for k, constraint in enumerate(constraints):
            places = self.transcription.places(constraint.imposed)
            values = constraint.values(samples.at(places))
            if not np.isfinite(values).all():
                raise NonFinite(f"constraint {constraint.name!r}: is not finite on the motion that the guess gives")
            width = values.shape[1]
            for name, bound in (("lower", constraint.lower), ("upper", constraint.upper)):
                if bound.ndim and bound.shape != (width,):
                    raise InvalidValue(
                        f"constraint {constraint.name!r}: {name} has {bound.size} numbers for {width} functions"
                    )
            parts = constraint.derivatives(samples.at(places))
            self.transcription.setup.refuse_rough(parts, f"constraint {constraint.name!r}")
            count = len(places) * width
            plan = self.transcription.plan(np.repeat(places, width))
            one = constraint.scale(values, parts, samples.sizes) if scales is None else scales[k]
            scale = np.tile(one, len(places))
            blocks.append(
                Block(constraint, as_slice(places), len(places), slice(begin, begin + count), plan, scale, width)
            )
            begin += count
        return blocks

    def _bounds(self) -> tuple[Array, Array]:
        lower, upper = [np.zeros(0)], [np.zeros(0)]
        for block in self.blocks:
            for bound, into in ((block.constraint.lower, lower), (block.constraint.upper, upper)):
                into.append(np.tile(np.broadcast_to(bound, (block.width,)), block.count) / block.scale)
        return np.concatenate(lower), np.concatenate(upper)

    def _structure(self) -> tuple[Indices, Indices]:
        if not self.blocks:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        rows = np.concatenate([b.plan.rows + b.rows.start for b in self.blocks])
        return rows, np.concatenate([b.plan.columns for b in self.blocks])

    # ---------------------------------------------------------------- asked at every x

    def point(self, x: Array) -> _Point:
        """Return what is known at x; the last two are kept."""
        key = x.tobytes()
        for known in self._points:
            if known.key == key:
                return known
        self.evaluations += 1
        made = _Point(x.copy(), self.transcription.evaluate(x))
        if made.motion is not None and not np.isfinite(self._cost_of(made)):
            made.motion = None
        self.not_finite += made.motion is None
        self._points = [made, *self._points[:1]]
        return made

    def finite(self, x: Array) -> bool:
        """Tell whether the motion is finite."""
        return self.point(x).motion is not None

    def cost(self, x: Array) -> float:
        """Return the cost, ∞ where it is not finite."""
        return self._cost_of(self.point(x))

    def _cost_of(self, point: _Point) -> float:
        if point.motion is None:
            return np.inf
        if point.cost is None:
            samples = point.motion.samples
            total = 0.0
            for weight, term in self.objective.parts:
                at = samples.at(self._places_of(term.kind))
                with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told the solver
                    values = term.values(at)
                if term.kind == "integral":
                    total += weight * at.duration * float(at.weights @ values)
                else:
                    total += weight * float(values[0])
            point.cost = total
        return point.cost

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the cost, (n,); zeros where the motion is not finite."""
        point = self.point(x)
        if point.motion is None:
            return np.zeros(self.n)
        if point.gradient is None:
            total: dict[str, Array] = {}
            direct = 0.0
            samples = point.motion.samples
            for weight, term in self.objective.parts:
                direct += weight * self._add_term(term, weight, samples, total)
            point.gradient = point.motion.pull(total)
            if self.transcription.free_duration:
                point.gradient[-1] += direct
        return point.gradient

    def _add_term(self, term: Any, weight: float, samples: Samples, total: dict[str, Array]) -> float:
        """Add the derivatives of a term to those of all samples; return its direct derivative to the duration."""
        if term.kind == "duration":
            return 1.0
        places = self._places_of(term.kind)
        at = samples.at(places)
        factor = weight * at.duration * at.weights if term.kind == "integral" else np.full(1, weight)
        parts = {c: p * (factor if c in TIMES else factor[:, None]) for c, p in derivatives(term, at).items()}
        self.transcription.select(places, parts, total)
        return float(at.weights @ term.values(at)) if term.kind == "integral" else 0.0

    def constraints(self, x: Array) -> Array:
        """Return the scaled constraints, (R,); where the motion is not finite those of the last one that was."""
        return self._constraints_of(self.point(x))

    def _constraints_of(self, point: _Point) -> Array:
        if point.motion is None:
            return self._last_constraints
        if point.constraints is None:
            samples = point.motion.samples
            values = [b.constraint.values(samples.at(b.places)).ravel() / b.scale for b in self.blocks]
            point.constraints = np.concatenate(values) if values else np.zeros(0)
            self._last_constraints = point.constraints
        return point.constraints

    def entries(self, x: Array) -> Array:
        """Return the entries of the constraints' Jacobian, in the order of `structure`."""
        point = self.point(x)
        if point.motion is None:
            return np.zeros(len(self.structure[0]))
        if point.entries is None:
            found = [np.zeros(0)]
            samples = point.motion.samples
            for b in self.blocks:
                parts = self._flat(b, derivatives(b.constraint, samples.at(b.places)))
                found.append(point.motion.entries(b.plan, parts) / b.scale[b.plan.rows])
            point.entries = np.concatenate(found)
        return point.entries

    @staticmethod
    def _flat(block: Block, parts: Parts) -> Parts:
        """Return derivatives with a row for each number."""
        rows = block.count * block.width
        return {c: np.reshape(p, (rows,) if c in TIMES else (rows, p.shape[-1])) for c, p in parts.items()}

    def jacobian(self, x: Array) -> Array:
        """Return the derivatives of the scaled constraints, (R, n)."""
        point = self.point(x)
        if point.jacobian is None:
            matrix = np.zeros((len(self.lower), self.n))
            rows, columns = self.structure
            matrix[rows, columns] = self.entries(x)
            point.jacobian = matrix
        return point.jacobian

    def lagrangian_gradient(self, x: Array, factor: float, multipliers: Array) -> Array | None:
        """Return factor ∇cost + Jacobianᵀ multipliers, (n,), without the Jacobian; None where it is not finite."""
        point = self.point(x)
        if point.motion is None:
            return None
        samples = point.motion.samples
        total: dict[str, Array] = {}
        direct = 0.0
        if factor:
            for weight, term in self.objective.parts:
                direct += factor * weight * self._add_term(term, factor * weight, samples, total)
        for b in self.blocks:
            y = (multipliers[b.rows] / b.scale).reshape(b.count, b.width)
            if not y.any():
                continue
            parts = {
                c: np.einsum("kc,kc->k", y, p) if c in TIMES else np.einsum("kc,kcn->kn", y, p)
                for c, p in derivatives(b.constraint, samples.at(b.places)).items()
            }
            self.transcription.select(b.places, parts, total)
        gradient = point.motion.pull(total)
        if self.transcription.free_duration:
            gradient[-1] += direct
        return gradient

    @property
    def of_squares(self) -> bool:
        """True where all terms but the duration are sums of squares."""
        samples = self._points[0].motion
        assert samples is not None, "the guess is finite"
        found = [self._residuals(weight, term, samples.samples) is not None for weight, term in self._terms()]
        return bool(found) and all(found)

    def _terms(self) -> list[tuple[float, Any]]:
        return [(weight, term) for weight, term in self.objective.parts if term.kind != "duration"]

    def _residuals(self, weight: float, term: Any, samples: Samples) -> tuple[Array, Parts] | None:
        """Return the residuals of a term and their derivatives; None where it is no sum of squares."""
        if weight < 0.0 or term.kind not in ("integral", "end"):
            return None
        return term.residuals(samples.at(self._places_of(term.kind)))

    def gauss_newton(self, x: Array) -> Array:
        """Return the sum of Jᵀ J over the residuals of which the cost is the half sum of squares, (n, n).

        It is the Hessian of the cost without the curvature of the residuals; what is no sum of squares has no part.
        """
        point, total = self.point(x), np.zeros((self.n, self.n))
        if point.motion is None:
            return total
        samples = point.motion.samples
        for weight, term in self._terms():
            found = self._residuals(weight, term, samples)
            if found is None:
                continue
            r, parts = found
            rows, width = r.size, r.shape[1]
            flat = {c: np.reshape(p, (rows,) if c in TIMES else (rows, p.shape[-1])) for c, p in parts.items()}
            factor = np.full(rows, weight)
            if term.kind == "integral":
                at = samples.at(self._places_of(term.kind))
                factor = np.repeat(weight * at.duration * at.weights, width)
                if self.transcription.free_duration:  # of T^½ r
                    flat["duration"] = flat.get("duration", 0.0) + r.ravel() / (2.0 * at.duration)
            plan, blocks = self._rows_of(term.kind, width)
            blocks.of(point.motion.entries(plan, flat)).add_gram(factor, total)
        return total

    def _rows_of(self, kind: str, width: int) -> tuple[RowPlan, RowBlocks]:
        """Return where the derivatives of so many residuals at each sample stand."""
        if (kind, width) not in self._square_rows:
            here = self._places_of(kind)
            plan = self.transcription.plan(np.repeat(np.arange(here.start, here.stop), width))
            self._square_rows[kind, width] = plan, RowBlocks(plan.rows, plan.columns, (len(plan.places), self.n))
        return self._square_rows[kind, width]

    def violation(self, x: Array) -> float:
        """Return by how much the scaled constraints and bounds are violated at most; ∞ where x is not finite."""
        if not self.finite(x):
            return np.inf
        c, sizes = self.constraints(x), self.transcription.variable_sizes
        parts = [self.lower - c, c - self.upper, (self.low - x) / sizes, (x - self.high) / sizes]
        return max(0.0, *(float(p.max(initial=0.0)) for p in parts))
