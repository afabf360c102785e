"""Problems of mechanisms with loops: their constraints, and the closed motion with which a search begins.

The closure of loops as constraints of a problem: φ(q) = 0, or within the play of a cut, and A q̇ = 0 of rates.

As equations they are asked at the Greville abscissae of the control points that the ends leave free: one for each
control point of the joints that depend on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidValue
from cstormpy.loops.assembly import CLOSED, independent_rows, regular_posture
from cstormpy.loops.closure import Closure, angular_rows, closure_of, constraint_names, owners
from cstormpy.loops.projection import project
from cstormpy.loops.residual_slopes import residual_slopes
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.cuts import Cut
from cstormpy.optimal.loop_forces import LoopForces
from cstormpy.optimal.problem_arguments import without_motor
from cstormpy.optimal.samples import Array, Parts, Samples
from cstormpy.optimal.sizes import Sizes
from cstormpy.trajectory import cubic

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.conditions import State
    from cstormpy.optimal.design import Designed
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.transcription import Setup


def loop_constraints(problem: Problem) -> list[PathConstraint]:
    """Return what loops ask of a motion: closure, and where their forces are unknown that no motor is none."""
    mech, setup, loops = problem.guessed_mech, problem.setup, problem.setup.loops
    moving = problem.design is not None and problem.design.moves_loops
    refuse_open_ends(mech, problem.cuts, {"start": problem.start, "end": problem.end}, moving)
    found = closures(setup, problem.cuts, closed_posture(problem, problem.start.q))
    if loops is None or len(loops.rest):
        return found
    return [*found, *without_motor(mech, problem.collocation)]


def refuse_closed_shooting(problem: Problem) -> None:
    """Refuse what shooting with loops cannot follow."""
    mech, options, first = problem.mech, problem.options, problem.mech.loops[0].name
    if options.cuts:
        raise InvalidValue(
            f"cuts: shooting integrates the motion with the forces of its loops ({first!r}); take transcription="
            "'inverse' to make them unknowns of the search"
        )
    if problem.base is not None:
        raise InvalidValue(f"loop {first!r}: shooting is of a base at rest; take transcription='inverse'")
    if problem.design is not None and problem.design.moves_loops:
        raise InvalidValue(
            f"design: moves what loop {first!r} closes, so that a motion starts elsewhere for another design; take "
            "transcription='inverse'"
        )
    refuse_open_ends(mech, {}, {"start": problem.start})
    passive = ~mech.active_mask
    free = mech.n - len(independent_rows(mech)) - len(mech.active)
    if free < 0:
        joints = ", ".join(map(repr, mech.active))
        raise InvalidValue(f"active joints {joints}: are more than the freedoms that the loops leave; drive fewer")
    holonomic = closure_of(mech, regular_posture(mech)[None]).holonomic[independent_rows(mech)]
    places = free + int((~holonomic).sum())  # constraints of rates tie none
    for what, row, most in zip(("positions", "rates"), problem.end.rows, (places, free), strict=False):
        known = np.flatnonzero(np.isfinite(row) & passive)
        if len(known) > most:
            joints = ", ".join(repr(mech.names[k]) for k in known)
            raise InvalidValue(
                f"end: gives {what} of {len(known)} joints that are integrated ({joints}), of which the loops leave "
                f"{most} free; give {most}"
            )


def closed_posture(problem: Problem, q: Array) -> Array:
    """Return a closed posture in which the joints that are known are as in q (n,); the others are NaN there."""
    known = np.isfinite(q)
    if known.all():
        return q
    mech = problem.guessed_mech
    names = [name for name, on in zip(mech.names, known, strict=True) if on]
    return project(mech, np.nan_to_num(q), hold=names)[0]


def closed_points(problem: Problem) -> Array:
    """Return the control points (m, width) of a closed motion near to the cubic from the start to the end."""
    mech, setup = problem.guessed_mech, problem.setup
    ends = [problem.start.q, problem.end.q]
    known = [np.where(np.isnan(one), other, one) for one, other in (ends, ends[::-1])]
    try:
        first = _closed_end(problem, ends[0], known[0])
        last = _closed_end(problem, ends[1], np.where(np.isnan(known[1]), first, known[1]))
        phases = setup.greville
        rows = cubic(first, last, 1.0).evaluate(phases)[0]
        rows[1:-1] = project(mech, rows[1:-1])[0]
    except InvalidValue as error:
        raise InvalidValue(f"guess: {error}; give a guess= that is closed") from error
    points = np.linalg.solve(setup.curve.basis_matrix(phases, 0).toarray(), rows)
    return np.hstack([points, _multipliers(problem, points)])


def _closed_end(problem: Problem, given: Array, near: Array) -> Array:
    """Return a closed posture with the joints that are given held, near to another one."""
    hold = [name for name, value in zip(problem.mech.names, given, strict=True) if np.isfinite(value)]
    if len(hold) == problem.mech.n:
        return given
    return project(problem.guessed_mech, np.nan_to_num(near), hold=hold)[0]


def _multipliers(problem: Problem, points: Array) -> Array:
    """Return the control points (m, c) whose accelerations are the multipliers with which the loops share the load."""
    mech, setup, loops = problem.guessed_mech, problem.setup, problem.setup.loops
    assert loops is not None, "of mechanisms with loops"
    if not len(loops.cut):
        return np.zeros((len(points), 0))
    T, phases = problem.duration_guess, setup.phases_of("collocation")
    q, qd, qdd = (setup.curve.basis_matrix(phases, r) @ points / T**r for r in range(3))
    base = None if problem.base is None else problem.base.pair(phases * T)
    load = mech.tree.inverse_dynamics(q, qd, qdd, wrench=[load for _, load in problem.loads], base=base)
    every = LoopForces(mech, loops.cut[:0], np.array(independent_rows(mech), dtype=np.intp))
    values = every.shared(q, load, np.zeros((len(q), 0))).multipliers[:, loops.cut]
    values = np.where(np.abs(values) < 1e6 * setup.sizes.multipliers[loops.cut], values, 0.0)  # NaN too
    basis = setup.curve.basis_matrix(phases, 2).toarray()[:, 2:] / T**2
    return np.vstack([np.zeros((2, values.shape[1])), np.linalg.lstsq(basis, values)[0]])


Indices = NDArray[np.intp]


class LoopClosure(PathConstraint):
    """Rows of φ(q) within bounds, all the time."""

    channels: tuple[str, ...] = ("q",)
    what = "closure"

    def __init__(self, mech: Mechanism, rows: Indices, low: Array, high: Array, phases: Array, of: str) -> None:
        self.rows, self.angles = rows, angular_rows(mech)[rows]
        self.names = [constraint_names(mech)[k].removeprefix(of).removeprefix(": ") or "φ" for k in rows]
        self.lengths = not any(rows_of == of for rows_of in owners(mech)[_of_loops(mech) :])
        self.collocation = tuple(phases.tolist())
        super().__init__(low, high, "all", f"{self.what} of {of}")

    def labels(self, mech: Mechanism, count: int) -> list[tuple[str, str]]:
        """Return the directions and their units."""
        units = [("rad" if angle else "m") if self.lengths else "" for angle in self.angles]
        return list(zip(self.names, units, strict=True))

    def scale(self, values: Array, parts: Parts, sizes: Sizes) -> Array:
        """Return one radian for rotations, the length of the mechanism for translations."""
        if not self.lengths:
            return self._size(values, parts, sizes)
        return np.where(self.angles, 1.0, sizes.length)

    def values(self, at: Samples) -> Array:
        """Return φ, (N, k)."""
        return np.asarray(closure_of(at.mech, at.q).residual()[:, self.rows])

    def derivatives(self, at: Samples) -> Parts:
        """Return ∂φ/∂q, (N, k, n)."""
        return {"q": residual_slopes(closure_of(at.mech, at.q))[:, self.rows]}

    def by_design(self, at: Samples, designed: Designed) -> Array:
        """Return ∂φ/∂design, (N, c, k), the motion held."""
        return designed.residual_rates(closure_of(at.mech, at.q), at.q)[:, self.rows]


class LoopRates(LoopClosure):
    """Rows of A q̇ within bounds, all the time, of constraints that close no positions."""

    channels = ("q", "qd")
    what = "rates of"

    def values(self, at: Samples) -> Array:
        """Return A q̇, (N, k)."""
        return np.asarray((closure_of(at.mech, at.q).A[:, self.rows] @ at.qd[..., None])[..., 0])

    def derivatives(self, at: Samples) -> Parts:
        """Return A and ∂(A q̇)/∂q, (N, k, n) each."""
        found = closure_of(at.mech, at.q)
        turned = np.einsum("skij,si->skj", found.slopes()[:, self.rows], at.qd)
        return {"q": turned, "qd": np.asarray(found.A[:, self.rows])}

    def by_design(self, at: Samples, designed: Designed) -> Array:
        """Return the derivative of A q̇ to the design, (N, c, k), the motion held."""
        rates = designed.constraint_rates(closure_of(at.mech, at.q), at.q)[:, self.rows]
        return np.einsum("scnk,sn->sck", rates, at.qd)


def _of_loops(mech: Mechanism) -> int:
    """Return how many rows come from loops; those of other constraints stand behind them."""
    from cstormpy.linkage.loops import Loop

    return sum(loop.count for loop in mech.loops if isinstance(loop, Loop))


def closures(setup: Setup, cuts: dict[str, Cut], closed: Array) -> list[PathConstraint]:
    """Return the constraints that close the loops; `closed` (n,) is a posture in which they are."""
    mech, of = setup.mech, np.array(owners(setup.mech))
    found = closure_of(mech, closed[None])
    kept = np.array(independent_rows(mech), dtype=np.intp)
    made: list[PathConstraint] = []
    for name in dict.fromkeys(of[kept].tolist()):
        own = np.flatnonzero(of == name)
        low, high = cuts.get(name, Cut(name)).bounds(len(own))
        inside = np.isin(own, kept)
        rows, low, high = own[inside], low[inside], high[inside]
        kind = LoopClosure if found.holonomic[rows[0]] else LoopRates
        phases = _phases(setup, found, rows, rates=kind is LoopRates)
        for chosen in (low == high, (low < high) & (np.isfinite(low) | np.isfinite(high))):
            if chosen.any() and len(phases):
                made.append(kind(mech, rows[chosen], low[chosen], high[chosen], phases, name))
    return made


def _phases(setup: Setup, found: Closure, rows: Indices, rates: bool) -> Array:
    """Return where equations are asked: at the control points, of q or of q̇, that can be moved to meet them."""
    m, windows = len(setup.knots) - setup.degree - 1, np.lib.stride_tricks.sliding_window_view
    free = np.zeros(m * setup.width, dtype=bool)
    free[setup.map().free] = True
    joints = np.flatnonzero(np.abs(found.A[0, rows]).max(axis=0) > 1e-9)
    movable = free.reshape(m, -1)[:, joints]
    if rates:
        movable = movable[1:] | movable[:-1]
    sites = windows(setup.knots[2:-2], setup.degree - 1).mean(axis=1) if rates else setup.greville
    return np.asarray(sites[movable.sum(axis=1) >= len(rows)])


def refuse_open_ends(mech: Mechanism, cuts: dict[str, Cut], ends: dict[str, State], moving: bool = False) -> None:
    """Refuse a start or an end that does not close the loops, or that leaves too little free to do so.

    `moving`: a design moves what the loops close.
    """
    of, kept = owners(mech), independent_rows(mech)
    tight = [k for k in kept if of[k] not in cuts or not np.any(cuts[of[k]].bounds(of.count(of[k]))[1])]
    for where, state in ends.items():
        known = np.isfinite(state.q)
        if not known.any():
            continue
        found = closure_of(mech, np.nan_to_num(state.q)[None])
        tight_now = [k for k in tight if found.holonomic[k] and (np.abs(found.A[0, k]) > 1e-9)[known].any()]
        if known.all() and moving and tight_now:
            raise InvalidValue(
                f"{where}: gives all joints, which closes the loops for one design alone; give {_freedoms(mech)} of "
                "them and leave the others to the loops"
            )
        if known.all():
            _refuse_open(mech, found, tight_now, np.nan_to_num(state.rows[1]), where)
            continue
        free = found.A[0][tight_now][:, ~known]
        open_rows = [k for k, row in zip(tight_now, free, strict=True) if np.abs(row).max(initial=0.0) < 1e-9]
        if open_rows or (len(free) and free.shape[1] < len(free)):
            names = ", ".join(repr(n) for n, on in zip(mech.names, ~known, strict=True) if on)
            raise InvalidValue(
                f"{where}: the joints that it leaves free ({names}) are too few to close the loops; give all joints, "
                "as mech.project(q, hold=[...]) finds them, or fewer"
            )


def _freedoms(mech: Mechanism) -> int:
    return mech.n - len(independent_rows(mech))


def _refuse_open(mech: Mechanism, found: Closure, rows: list[int], qd: Array, where: str) -> None:
    for off, what, scale in (
        (found.residual()[0], "misses closure by", 1.0),
        (found.A[0] @ qd, "is left at the rate", 1.0 + np.abs(qd).max(initial=0.0)),
    ):
        off = np.abs(off[rows]) / scale
        if (off > CLOSED).any():
            k = int(np.argmax(off))
            raise InvalidValue(
                f"{where}: loop {constraint_names(mech)[rows[k]]}: {what} {off[k] * scale:.3g}; mech.project(q, qd) "
                "finds a closed state"
            )
