"""Problems of mechanisms with loops: their constraints, and the closed motion with which a search begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.loops.assembly import independent_rows, project
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.loop_closure import closures, refuse_open_ends
from cstormpy.optimal.loop_forces import LoopForces
from cstormpy.optimal.problem_arguments import without_motor
from cstormpy.optimal.samples import Array
from cstormpy.trajectory import cubic

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem


def loop_constraints(problem: Problem) -> list[PathConstraint]:
    """Return what loops ask of a motion: closure, and where their forces are unknown that no motor is none."""
    mech, setup, loops = problem.guessed_mech, problem.setup, problem.setup.loops
    moving = problem.design is not None and problem.design.moves_loops
    refuse_open_ends(mech, problem.cuts, {"start": problem.start, "end": problem.end}, moving)
    found = closures(setup, problem.cuts, closed_posture(problem, problem.start.q))
    if loops is None or len(loops.rest):
        return found
    return [*found, *without_motor(mech, problem.options.collocation)]


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
    for what, row in zip(("positions", "rates"), problem.end.rows, strict=False):
        known = np.flatnonzero(np.isfinite(row) & passive)
        if len(known) > free:
            joints = ", ".join(repr(mech.names[k]) for k in known)
            raise InvalidValue(
                f"end: gives {what} of {len(known)} joints that are integrated ({joints}), of which the loops leave "
                f"{free} free; give {free}"
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
    basis = setup.curve.basis_matrix(phases, 0).toarray()
    points = np.linalg.solve(basis, rows)
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
