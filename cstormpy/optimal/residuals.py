"""Residuals: by how much a motion misses its constraints, between the samples too.

Whatever holds all the time is measured all the time: on a grid ten times finer than the samples and knots, and where
it is missed most on finer and finer ones. A motion that was integrated is integrated anew with half the steps' length;
how far it ends beside the first one counts like a constraint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.loops.dynamics import closed_hybrid
from cstormpy.optimal.inverse import Inverse
from cstormpy.optimal.joints import turning
from cstormpy.optimal.samples import Array, Samples
from cstormpy.optimal.transcription import Indices
from cstormpy.trajectory import BSpline
from cstormpy.trajectory.knots import cut_evenly

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem


def dense(problem: Problem, spline: BSpline, nodes: Samples, times: Array) -> Samples:
    """Return a motion at times (N,) from 0 to T.

    Parameters
    ----------
    problem : Problem
    spline : BSpline
        The joints on splines.
    nodes : Samples
        The motion at its even samples, between which the joints that were integrated are interpolated.
    times : ndarray, (N,)
    """
    mech, designed = nodes.mech, nodes.designed
    n, curves = mech.n, spline.evaluate(times, order=3)
    loads = [load for _, load in problem.loads]
    base = None if problem.base is None else problem.base.pair(times)
    if problem.inverse:
        t = problem.transcription
        assert isinstance(t, Inverse)
        motion, fits = t.joints(spline.control_points, times / spline.duration, list(curves))
        q, qd, qdd, qddd = motion
        tau, multipliers = mech.tree.inverse_dynamics(q, qd, qdd, wrench=loads, base=base), np.zeros((len(times), 0))
        if problem.setup.loops is not None:
            shared = problem.setup.loops.shared(q, tau, curves[2][:, n:], mech)
            tau, multipliers = np.where(fits[:, None], shared.tau, np.nan), shared.multipliers
        channels, T = (q, qd, qdd, tau, qddd), spline.duration
        even, sizes = np.zeros(len(times)), problem.setup.sizes
        return Samples(mech, T, even, times, *channels, sizes, designed, multipliers)
    steps, T = len(nodes) - 1, nodes.duration
    place = times * (steps / T)
    k = np.clip(place.astype(np.intp), 0, steps - 1)
    q, qd = _quintic(nodes, k, place - k, T / steps)
    u, jerk = np.zeros((len(times), n)), np.zeros((len(times), n))
    for c, j in enumerate(problem.driven):
        if mech.active_mask[j]:
            q[:, j], qd[:, j], u[:, j], jerk[:, j] = (curve[:, c] for curve in curves)
        else:
            u[:, j] = curves[0][:, c]
    even, sizes = np.zeros(len(times)), problem.setup.sizes
    if mech.loops:  # between the nodes they may be a little more open
        closed = closed_hybrid(mech, q, qd, u, loads, check=False)
        return Samples(mech, T, even, times, q, qd, closed.qdd, closed.tau, jerk, sizes, designed, closed.multipliers)
    r = mech.hybrid_dynamics(q, qd, u, wrench=loads, base=base)
    return Samples(mech, T, even, times, q, qd, r.qdd, r.tau, jerk, sizes, designed)


def _quintic(at: Samples, k: Indices, s: Array, h: float) -> tuple[Array, Array]:
    """Return positions and rates of the quintics through steps k and k + 1, at the part s of a step."""
    s = s[:, None]
    y0, v0, a0 = at.q[k], at.qd[k] * h, at.qdd[k] * h * h
    y1, v1, a1 = at.q[k + 1], at.qd[k + 1] * h, at.qdd[k + 1] * h * h
    d = y1 - y0 - v0 - 0.5 * a0
    e, f = v1 - v0 - a0, a1 - a0
    c3, c4, c5 = 10 * d - 4 * e + 0.5 * f, -15 * d + 7 * e - f, 6 * d - 3 * e + 0.5 * f
    q = y0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
    rate = v0 + s * (a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))
    return q, rate / h


FEASIBILITY = 1e-3
"""Largest residual, as a part of a constraint's scale, of a motion that is feasible, unless another one is asked."""

INTEGRATION = "integration"
"""The kind of the residual of an integrated motion."""

DENSER, DENSER_STEPS = 10, 4
"""Fineness of the first grid, in parts of the distances of samples and knots, or of the second integration's steps."""

PEAKS, ZOOM, ROUNDS = 4, 9, 3
"""Peaks of a constraint that are looked at closer, points at each, and rounds."""

BEFORE = 1e-9
"""So much of the motion before a knot a number is taken that jumps there."""


@dataclass(frozen=True)
class Excess:
    """By how much a constraint is exceeded at most, in its own unit; 0 where it is kept.

    Attributes
    ----------
    kind, joint : str
        Name of the constraint, and whose number of it, as a joint or an axis.
    amount, unit
        How much.
    time : float
        When [s].
    relative : float
        The amount as a part of the constraint's scale: what is compared with the tolerance of feasibility.
    """

    kind: str
    joint: str
    amount: float
    time: float
    unit: str
    relative: float = 0.0

    def __repr__(self) -> str:
        where = f" in {self.joint}" if self.joint else ""
        when = f"{where} at {self.time:.4g} s" if self.amount > 0.0 else where
        return f"{self.kind}: {self.amount:.3g}{' ' * bool(self.unit)}{self.unit}{when}"


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of a motion.

    Attributes
    ----------
    excess : tuple of Excess
        One for each number of each constraint, the worst first.
    peaks : ndarray
        Phases of the peaks of inequalities that hold all the time, with their relative excess, (P, 2).
    equations : ndarray
        The same of all points of the first grid for equations that hold all the time.
    """

    excess: tuple[Excess, ...]
    peaks: Array
    equations: Array

    @property
    def worst(self) -> float:
        """The largest relative excess."""
        return self.excess[0].relative if self.excess else 0.0

    def exceeds(self, kind: str, tolerance: float) -> bool:
        """Tell whether one of a kind does."""
        return any(each.kind == kind and each.relative > tolerance for each in self.excess)


class _Motion:
    """A motion at any phases; `finite` tells whether there is one."""

    def __init__(self, problem: Problem, x: Array) -> None:
        self.problem, t = problem, problem.transcription
        self.spline = t.spline(x)
        coarse = t.evaluate(x)
        fine = coarse if problem.inverse else problem.finer.evaluate(x)
        self.finite = coarse is not None and fine is not None
        if coarse is not None and fine is not None:
            self.coarse = coarse.samples.at(t.grid)
            self.nodes = self.coarse if problem.inverse else fine.samples.at(problem.finer.grid)

    def at(self, phases: Array) -> Samples:
        return dense(self.problem, self.spline, self.nodes, phases * self.spline.duration)


def residuals(problem: Problem, x: Array) -> Residuals:
    """Return the residuals of the motion that variables x make."""
    motion = _Motion(problem, x)
    if not motion.finite:
        nothing = np.zeros((0, 2))
        return Residuals((Excess("motion", "", np.inf, 0.0, "", np.inf),), nothing, nothing)
    found = [*_everywhere(problem, motion), *_somewhere(problem, motion)]
    excess = [each for _, one in found for each in one]
    if not problem.inverse:
        excess += _integration(problem, motion)
    return Residuals(
        tuple(sorted(excess, key=lambda each: -each.relative)),
        np.concatenate([np.zeros((0, 2)), *(where for (kind, where), _ in found if kind == "peaks")]),
        np.concatenate([np.zeros((0, 2)), *(where for (kind, where), _ in found if kind == "equations")]),
    )


_Found = tuple[tuple[str, Array], list[Excess]]


def _grid(problem: Problem) -> Array:
    """Return the phases of the first grid."""
    t, knots = problem.transcription, np.unique(problem.knots)
    inside = knots[(knots > 0.0) & (knots < 1.0)]
    sites = t.phases[t.grid] if problem.inverse else problem.finer.phases
    sites = np.union1d(sites, inside)
    pieces = DENSER if problem.inverse else DENSER_STEPS
    return np.union1d(cut_evenly(sites, pieces), inside - BEFORE)


def _everywhere(problem: Problem, motion: _Motion) -> Iterator[_Found]:
    """Return the residuals of what holds all the time."""
    asked = [k for k, c in enumerate(problem.constraints) if c.at == "all"]
    if not asked:
        return
    phases = _grid(problem)
    at = motion.at(phases)
    tables = {k: _over(problem, k, at) for k in asked}
    best = {k: _worst(phases, over) for k, over in tables.items()}
    windows = [
        (k, c, phases[max(i - 1, 0)], phases[min(i + 1, len(phases) - 1)])
        for k, over in tables.items()
        for c in range(over.shape[1])
        for i in _highest(over[:, c])
    ]
    peaks = _zoomed(problem, motion, windows)
    for k, c, phase, value in peaks:
        if value > best[k][c][1]:
            best[k][c] = (phase, value)
    for k, over in tables.items():
        constraint = problem.constraints[k]
        own = np.array([(phase, value) for j, _, phase, value in peaks if j == k]).reshape(-1, 2)
        where = ("equations", np.stack([phases, over.max(axis=1)], axis=1)) if constraint.equations else ("peaks", own)
        yield where, _named(problem, k, best[k], motion.spline.duration)


def _over(problem: Problem, k: int, at: Samples) -> Array:
    """Return by how many scales the bounds of constraint k are exceeded, (N, k); negative where they are kept."""
    constraint = problem.constraints[k]
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers is infinite
        y = constraint.values(at)
        over = np.maximum(y - constraint.upper, constraint.lower - y) / problem.scales[k]
    return np.where(np.isnan(over), np.inf, over)


def _worst(phases: Array, over: Array) -> list[tuple[float, float]]:
    """Return where each column is greatest, and how great."""
    return [(float(phases[i]), float(over[i, c])) for c, i in enumerate(over.argmax(axis=0))]


def _highest(over: Array) -> Indices:
    """Return the places of the highest local maxima."""
    higher = np.concatenate([[True], over[1:] >= over[:-1]]) & np.concatenate([over[:-1] >= over[1:], [True]])
    places = np.flatnonzero(higher)
    return places[np.argsort(-over[places], kind="stable")[:PEAKS]]


def _zoomed(
    problem: Problem, motion: _Motion, windows: Sequence[tuple[int, int, float, float]]
) -> list[tuple[int, int, float, float]]:
    """Return (constraint, column, phase, relative excess) of the peaks within some windows."""
    low, high = np.array([w[2] for w in windows]), np.array([w[3] for w in windows])
    value = np.full(len(windows), -np.inf)
    place = low.copy()
    parts = np.linspace(0.0, 1.0, ZOOM)
    for _ in range(ROUNDS):
        phases = np.clip(low[:, None] + parts * (high - low)[:, None], 0.0, 1.0)
        at = motion.at(phases.ravel())
        known = {k: _over(problem, k, at) for k in {w[0] for w in windows}}
        for w, (k, c, _, _) in enumerate(windows):
            own = known[k][w * ZOOM : (w + 1) * ZOOM, c]
            i = int(own.argmax())
            if own[i] > value[w]:
                value[w], place[w] = own[i], phases[w, i]
            low[w], high[w] = phases[w, max(i - 1, 0)], phases[w, min(i + 1, ZOOM - 1)]
    return [(k, c, float(place[w]), float(value[w])) for w, (k, c, _, _) in enumerate(windows)]


def _somewhere(problem: Problem, motion: _Motion) -> Iterator[_Found]:
    """Return the residuals of what holds at some phases."""
    t = problem.transcription
    for k, constraint in enumerate(problem.constraints):
        if constraint.at == "all":
            continue
        phases = t.phases[t.places(constraint.at)]
        best = _worst(phases, _over(problem, k, motion.at(phases)))
        yield ("elsewhere", np.zeros((0, 2))), _named(problem, k, best, motion.spline.duration)


def _named(problem: Problem, k: int, best: Sequence[tuple[float, float]], duration: float) -> list[Excess]:
    constraint = problem.constraints[k]
    labels = constraint.labels(problem.mech, len(best))
    found = []
    for (name, unit), (phase, value), scale in zip(labels, best, problem.scales[k], strict=True):
        relative = max(value, 0.0)
        found.append(Excess(constraint.name, name, relative * float(scale), duration * phase, unit, relative))
    return found


def _integration(problem: Problem, motion: _Motion) -> list[Excess]:
    """Return how far positions and rates of the joints that are integrated are off."""
    sizes, mech, turns = problem.setup.sizes, problem.mech, turning(problem.mech)
    fine = motion.nodes.at(slice(0, len(motion.nodes), 2))
    found = []
    for channel, units in (("q", ("m", "rad")), ("qd", ("m/s", "rad/s"))):
        off = np.abs(getattr(fine, channel) - getattr(motion.coarse, channel))
        for j in np.flatnonzero(~mech.active_mask):
            k = int(off[:, j].argmax())
            amount = float(off[k, j])
            relative = amount / float(sizes.of(channel)[j])
            time = float(fine.t[k])
            found.append(Excess(INTEGRATION, mech.names[j], amount, time, units[int(turns[j])], relative))
    return found
