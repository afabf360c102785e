"""Arguments of a problem, read and checked: durations, knots, limits, and the bounds that follow for the variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import is_single
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.conditions import State
from cstormpy.optimal.constraints import KINDS, JointLimit, PathConstraint
from cstormpy.optimal.joints import bounds_of
from cstormpy.optimal.samples import Array
from cstormpy.trajectory import BSpline, clamped_knots
from cstormpy.trajectory.checks import finite_array
from cstormpy.trajectory.knots import check_knots

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem

BOX = 4.0 * np.pi
"""Largest distance of a control point of a joint from where the joint begins, in multiples of its size, where others
are integrated."""

LONGEST = 1e9
"""The longest duration [s]; the shortest is the inverse."""

OPEN = 1e300
"""A bound that is none."""

TORQUE_BOX = 100.0
"""Largest control point of a torque without a limit, in multiples of its size; of one with a limit three times that."""


def read_duration(duration: Any, guess: Any = None) -> tuple[float, float, float, bool]:
    """Return the lowest duration, where to begin, the highest one, and whether it is free.

    Unless it is said where to begin, a search begins with the duration of the motion that is its guess.

    >>> read_duration((0.5, 2.0)), read_duration((1.0, 1.0))
    ((0.5, 1.0, 2.0, True), (1.0, 1.0, 1.0, False))
    >>> read_duration((0.5, 2.0), BSpline.clamped([[0.0]] * 4, duration=1.5))
    (0.5, 1.5, 2.0, True)
    """
    parts = (duration,) if is_single(duration) else tuple(duration)
    if len(parts) not in (1, 2, 3):
        raise InvalidValue(f"duration: expected T, (low, high) or (low, guess, high), got {len(parts)} numbers")
    numbers = [checks.positive(part, "duration") for part in parts]
    if numbers and not 1.0 / LONGEST <= min(numbers) <= max(numbers) <= LONGEST:
        raise InvalidValue(f"duration: expected {1.0 / LONGEST:g} to {LONGEST:g} s, got {numbers}")
    if sorted(numbers) != numbers:
        raise InvalidValue(f"duration: the bounds must rise, got {numbers}")
    taken = guess.duration if isinstance(guess, BSpline) else (numbers[0] * numbers[-1]) ** 0.5
    middle = min(max(taken, numbers[0]), numbers[-1])
    return numbers[0], numbers[1] if len(parts) == 3 else middle, numbers[-1], numbers[0] < numbers[-1]


def read_knots(given: Any, points: Any, degree: Any) -> Array:
    """Return the knots of the splines, phases from 0 to 1; those beyond are moved there: the splines stay the same."""
    points, degree = checks.count(points, "points"), checks.count(degree, "degree")
    if given is None:
        return clamped_knots(points, degree)
    knots = check_knots(given, degree)
    if knots.size != points + degree + 1:
        raise ShapeError(f"knots: {points} points of degree {degree} need {points + degree + 1}, got {knots.size}")
    if knots[degree] != 0.0 or knots[-degree - 1] != 1.0:
        raise InvalidValue("knots: must be phases, the motion from 0 to 1")
    return np.clip(knots, 0.0, 1.0)


def read_limits(mech: Mechanism, limits: Any, on_splines: NDArray[np.bool_]) -> list[JointLimit]:
    """Return limits of joints: those of the mechanism, those given, or none; jerks are known of joints on splines."""
    named = not isinstance(limits, str)
    if isinstance(limits, str):
        option(limits, "limits", ("mechanism",))
        joints = {name: freedom.limits for name, freedom in zip(mech.names, mech.freedoms, strict=True)}
        kinds = ("position", "velocity", "torque")
        limits = {k: {name: getattr(given, k) for name, given in joints.items() if given} for k in kinds}
    elif limits is None:
        limits = {}
    if not isinstance(limits, Mapping):
        raise InvalidType(f"limits: expected a mapping from kinds to limits, got {shown(limits)}")
    found = []
    for kind, value in limits.items():
        option(kind, "kind of limit", KINDS)
        low, high = bounds_of(mech, value, kind)
        if kind in ("torque", "power"):  # a joint without motor has neither
            if named and isinstance(value, Mapping):
                _refuse_without_motor(mech, np.isfinite(low) | np.isfinite(high), kind)
            low = np.where(mech.actuated_mask, low, -np.inf)
            high = np.where(mech.actuated_mask, high, np.inf)
        if kind == "jerk":
            if isinstance(value, Mapping) or not on_splines.any():
                refuse_unknown_jerk(mech, np.isfinite(low) | np.isfinite(high), on_splines, "jerk limit")
            low, high = np.where(on_splines, low, -np.inf), np.where(on_splines, high, np.inf)
        if np.isfinite(low).any() or np.isfinite(high).any():
            found.append(JointLimit(mech, kind, low, high))
    return found


def _refuse_without_motor(mech: Mechanism, asked: NDArray[np.bool_], kind: str) -> None:
    """Refuse a limit that is given for a joint in whose motor nothing acts, as it has none."""
    idle = np.flatnonzero(asked & ~mech.actuated_mask)
    if len(idle):
        motors = ", ".join(map(repr, mech.actuated)) or "none"
        raise InvalidValue(
            f"{kind} limit of joint {mech.names[idle[0]]!r}: it has no motor, so that there is no {kind} to limit; "
            f"joints with a motor: {motors}"
        )


def refuse_unknown_jerk(mech: Mechanism, asked: NDArray[np.bool_], on_splines: NDArray[np.bool_], what: str) -> None:
    """Refuse to ask for the jerk of a joint that is on no spline."""
    unknown = np.flatnonzero(asked & ~on_splines)
    if len(unknown):
        known = [name for name, known in zip(mech.names, on_splines, strict=True) if known]
        raise InvalidValue(
            f"{what}: joint {mech.names[unknown[0]]!r} is on no spline, so that its jerk is not known; "
            + (f"that of {', '.join(map(repr, known))} is" if known else "no joint's is, as none is on a spline")
        )


def read_samples(given: Any) -> Array:
    """Return the phases at which limits hold, from their number or from phases, both ends included."""
    if is_single(given):
        return np.linspace(0.0, 1.0, max(checks.count(given, "samples"), 2))
    phases = np.unique(finite_array(given, "samples", (None,), "phases from 0 to 1"))
    if not phases.size or phases[0] < 0.0 or phases[-1] > 1.0:
        raise InvalidValue("samples: expected their number, or phases from 0 to 1")
    return np.asarray(np.union1d(phases, [0.0, 1.0]))


def fitting_steps(knots: Array, least: int, asked: Sequence[float]) -> int:
    """Return an even number of steps, the first up to the double of the least with a step at each knot and phase asked.

    If there is none, it has one at each of these phases, or else at the knots; or it is the least.

    >>> fitting_steps(np.array([0.0, 1 / 13, 1.0]), 100, []), fitting_steps(np.array([0.0, 1 / 13, 1.0]), 100, [0.3])
    (104, 130)
    """
    counts = np.arange(least + least % 2, 2 * least + 1, 2)

    missed = np.zeros(len(counts))
    for phases, weight in ((asked, 2.0), (np.unique(knots), 1.0)):
        places = np.outer(counts, phases)
        missed += weight * (np.abs(places - np.rint(places)).max(axis=1, initial=0.0) > 1e-9)
    return int(counts[np.argmin(missed)])


def refuse_outside(mech: Mechanism, limits: Sequence[JointLimit], ends: Mapping[str, State]) -> None:
    """Refuse a start or an end that a limit excludes."""
    rows = {"position": 0, "velocity": 1, "acceleration": 2}
    for where, state in ends.items():
        for limit in limits:
            if limit.kind not in rows:
                continue
            for low, high, j in zip(limit.lower, limit.upper, limit.joints, strict=True):
                value = state.rows[rows[limit.kind], j]
                if value < low or value > high:
                    raise InvalidValue(
                        f"{where}: joint {mech.names[j]!r} has the {limit.kind} {value:g}, outside of its "
                        f"limits ({low:g}, {high:g})"
                    )


def without_motor(mech: Mechanism, collocation: str | tuple[float, ...]) -> list[PathConstraint]:
    """Return the equations of the joints without motor: no torque, asked at the knots or at other phases."""
    idle = ~mech.actuated_mask
    if not idle.any():
        return []
    limit = JointLimit(mech, "torque", np.where(idle, 0.0, -np.inf), np.where(idle, 0.0, np.inf))
    limit.name, limit.collocation = "no motor", collocation
    return [limit]


def read_collocation(asked: Any) -> str | tuple[float, ...]:
    """Return the phases at which joints without motor are asked first to be free of torque, or what stands for them."""
    if asked is None:
        return "collocation"
    if is_single(asked):
        return tuple(np.linspace(0.0, 1.0, checks.count(asked, "collocation")).tolist())
    phases = checks.array(asked, (len(asked),), "collocation")
    if not len(phases) or not np.all((phases >= 0.0) & (phases <= 1.0)):
        raise InvalidValue("collocation: expected a number of phases, or phases from 0 to 1")
    return tuple(phases.tolist())


def variable_bounds(problem: Problem) -> tuple[Array, Array]:
    """Return low and high bounds of the variables, (size,) each.

    Where anything is integrated, control points keep to a box: far outside of it motions overflow.
    """
    t, box, sizes = problem.transcription, problem.options.box, problem.setup.sizes
    m = len(problem.knots) - problem.degree - 1
    middle, half = np.zeros(len(problem.driven)), np.full(len(problem.driven), np.inf)
    torques = {int(j): k for limit in problem.limits if limit.kind == "torque" for k, j in enumerate(limit.joints)}
    for c, j in enumerate(problem.driven):
        if problem.inverse or problem.mech.active_mask[j]:
            middle[c] = np.nan_to_num(problem.start.rows[0, j])
            half[c] = (np.inf if problem.inverse else BOX * sizes.q[j]) if box is None else box
        else:
            half[c] = TORQUE_BOX * sizes.tau[j]
            if int(j) in torques:
                limit = next(limit for limit in problem.limits if limit.kind == "torque")
                k = torques[int(j)]
                most = 3.0 * float(np.abs([limit.lower[k], limit.upper[k]]).max())
                half[c] = most if np.isfinite(most) else half[c]  # one that is limited to one side
    forces = problem.setup.width - len(middle)
    middle, half = np.append(middle, np.zeros(forces)), np.append(half, np.full(forces, np.inf))
    # the map takes finite numbers only
    low = t.map.parameters(np.tile(np.maximum(middle - half, -OPEN), (m, 1)))
    high = t.map.parameters(np.tile(np.minimum(middle + half, OPEN), (m, 1)))
    low, high = np.where(low <= -OPEN, -np.inf, low), np.where(high >= OPEN, np.inf, high)
    if problem.design is not None:
        low, high = np.append(low, problem.design.low), np.append(high, problem.design.high)
    if problem.free_duration:
        low, high = np.append(low, problem.low_duration), np.append(high, problem.high_duration)
    return low, high


HELD = 1e-6
"""A control point that is nearer to the box than this part of its half is held by it."""


def held_by_the_box(problem: Problem, x: Array) -> str | None:
    """Return what to say of variables that the box holds, unless that was given."""
    if problem.inverse:
        return None
    of_points = slice(0, problem.transcription.map.size)
    (low, high), at = (bound[of_points] for bound in problem.bounds), x[of_points]
    held = np.minimum(at - low, high - at) <= HELD * 0.5 * (high - low)
    columns = problem.transcription.map.free % problem.setup.width
    torques = ~problem.setup.moved[columns]
    held &= np.isfinite(high - low) & (torques | (problem.options.box is None))
    if not held.any():
        return None
    k = int(np.argmax(held))
    joint = problem.mech.names[problem.driven[columns[k]]]
    if torques[k]:
        return (
            f"joint {joint!r}: the search holds its torque's control points within {high[k]:.4g}, and the motion asks "
            "for more; give a torque limit, or a greater one"
        )
    return (
        f"joint {joint!r}: the search holds its control points from {low[k]:.4g} to {high[k]:.4g}; give a greater box="
    )
