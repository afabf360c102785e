"""Refinement: more samples, knots or steps where a motion misses its constraints between them.

Inequalities are asked at the peaks as well (the exchange method for semi-infinite programmes), equations at new knots
in the segments where they are missed (of a cubic, half the length leaves a quarter of the residual), and what was
integrated gets steps that end at the knots, or twice as many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.optimal.problem_arguments import fitting_steps
from cstormpy.optimal.residuals import INTEGRATION, Residuals
from cstormpy.optimal.samples import Array

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem

MARGIN = 0.2
"""Peaks above this part of the tolerance become samples."""

CLOSE = 1e-7
"""Samples nearer than this are one."""

STRONGLY = 16.0
"""Tolerances by which an equation is missed where a segment is cut into four, else into two."""

MOST_VARIABLES, MOST_STEPS = 700, 16_000
"""Control points of all splines, and steps, up to which it is refined."""


def refinement(problem: Problem, found: Residuals, tolerance: float) -> dict[str, Any]:
    """Return the options that change, for residuals beyond the tolerance; none where nothing helps."""
    changes = _knots(problem, found.equations, tolerance)
    if problem.inverse:
        changes.update(_samples(problem, found.peaks, tolerance))
        return changes
    exceeded = (found.peaks[:, 1] > tolerance).any() or found.exceeds(INTEGRATION, tolerance)
    have = len(problem.transcription.phases) - 1
    steps = fitting_steps(changes.get("knots", problem.knots), have)
    steps = steps if steps > have else 2 * have
    if (changes or exceeded or found.worst > tolerance) and steps <= MOST_STEPS:
        changes["steps"] = steps
    return changes


def _samples(problem: Problem, peaks: Array, tolerance: float) -> dict[str, Any]:
    t = problem.transcription
    have, new = t.phases[t.grid], peaks[peaks[:, 1] > MARGIN * tolerance, 0]
    new = np.array([phase for phase in np.unique(new) if np.abs(have - phase).min() > CLOSE])
    if not len(new) or not (peaks[:, 1] > tolerance).any():
        return {}
    return {"samples": np.union1d(have, new)}


def _knots(problem: Problem, equations: Array, tolerance: float) -> dict[str, Any]:
    missed = equations[equations[:, 1] > tolerance]
    if not len(missed):
        return {}
    breaks = np.unique(problem.knots)
    segment = np.clip(np.searchsorted(breaks, missed[:, 0], side="right") - 1, 0, len(breaks) - 2)
    worst = np.zeros(len(breaks) - 1)
    np.maximum.at(worst, segment, missed[:, 1])
    new: list[float] = []
    for k in np.flatnonzero(worst):
        pieces = 4 if problem.inverse and worst[k] > STRONGLY * tolerance else 2
        new += np.linspace(breaks[k], breaks[k + 1], pieces + 1)[1:-1].tolist()
    points = problem.options.points + len(new)
    if points * problem.setup.width > MOST_VARIABLES:
        return {}
    return {"knots": np.sort(np.concatenate([problem.knots, new])), "points": points, "collocation": None}
