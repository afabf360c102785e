"""Exciting motions: those from whose log the parameters of a mechanism can be told best.

Rows of a log at a rate f say of the base parameters β what the information matrix sums up,

    M = f ∫ Y_bᵀ Σ⁻¹ Y_b dt,      Cov β = M⁻¹

with the columns Y_b of the regressor that are kept and the variances Σ of the torques' noise (J. Swevers, C. Ganseman,
D. Bilgin Tükel, J. De Schutter, H. Van Brussel, Optimal robot excitation and identification, IEEE Trans. Robotics and
Automation 13(5), 1997, 730-740). Least −log det M is the smallest ellipsoid of confidence; least cond Σ^-½ Y_b is what
M. Gautier and W. Khalil (Exciting trajectories for the identification of base inertial parameters of robots, Int. J.
Robotics Research 11(4), 1992, 362-375) ask for. With dM known, either changes by ⟨C, dM⟩:

    C = −M⁻¹      C = ½ (v v*ᵀ/λ)_max − ½ (v vᵀ/λ)_min

Torques are linear in parameters, so that a column of the regressor is the inverse dynamics of one mechanism less that
of another; its derivatives to the motion are those of these two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import as_floats
from cstormpy.dynamics.checked_arguments import some_of
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, shown
from cstormpy.identification.base_parameters import BaseParameters, regrouped
from cstormpy.identification.equations import ClosedEquations, OpenEquations, equations_of
from cstormpy.identification.result import with_values
from cstormpy.identification.unknowns import Unknowns, unknowns_of
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.loops.assembly import independent_rows, regular_posture
from cstormpy.loops.closed_motions import closed_motion
from cstormpy.loops.closure import LEAST, closure_of, constraint_names
from cstormpy.loops.projection import project
from cstormpy.optimal.constraints import JointLimit
from cstormpy.optimal.freedoms import Clearance
from cstormpy.optimal.inverse import Inverse
from cstormpy.optimal.problem import Problem
from cstormpy.optimal.problem_arguments import read_limits
from cstormpy.optimal.terms import Term
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.torque_rates import torque_rates
from cstormpy.trajectory import BSpline
from cstormpy.trajectory.fitting import gauss_sites

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.samples import Array, Parts, Samples
    from cstormpy.optimal.solution import Solution

CRITERIA = ("determinant", "condition")

POSTURES, HELD = 30, 0.1
"""How many closed postures are looked at for a start, unless the motors hold the first one so well: `_held`."""

TRIES = 200
"""Random motions that are tried for one within the limits of velocity and torque."""

SILENT, UNTOLD = 1e-13, 1e-6
"""A direction of so little information, of columns of length 1, is not told by a motion; nor is a base parameter of
which more than the second part lies in such directions."""

NODES = 400
"""Samples of a motion of which `excitation` is asked, unless said."""


@dataclass(frozen=True, eq=False)
class Excitation:
    """The information that a log of a motion holds.

    Attributes
    ----------
    base : BaseParameters
        Of what.
    information : ndarray, (B, B)
        ∫ Y_bᵀ Σ⁻¹ Y_b dt: of a log of one row a second.
    """

    base: BaseParameters
    information: Array

    @property
    def condition(self) -> float:
        """The condition number of the base regressor, weighed by the noise."""
        return float(np.sqrt(np.linalg.cond(self.information)))

    @property
    def log_det(self) -> float:
        """The logarithm of the determinant of the information: the greater, the smaller all confidence regions."""
        sign, value = np.linalg.slogdet(self.information)
        return float(value) if sign > 0 else -np.inf

    def covariance(self, rate: float) -> Array:
        """Return the covariance (B, B) of the base parameters from a log of so many rows a second [1/s].

        That of a base parameter which the motion does not tell is infinite.
        """
        M = checks.positive(rate, "rate") * self.information
        size = np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
        values, vectors = np.linalg.eigh(M / np.outer(size, size))
        told = values > SILENT
        half = vectors[:, told] / np.sqrt(values[told]) / size[:, None]
        found = half @ half.T
        untold = np.flatnonzero(np.linalg.norm(vectors[:, ~told], axis=1) > UNTOLD)
        found[untold, untold] = np.inf
        return np.asarray(found)

    def standard_errors(self, rate: float) -> Array:
        """Return the standard errors (B,) of the base parameters from a log of so many rows a second [1/s]."""
        return np.sqrt(np.diag(self.covariance(rate)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.base)} base parameters: condition {self.condition:.4g}>"


@dataclass(frozen=True, eq=False, repr=False)
class ExcitingMotion(Excitation):
    """A motion that excites.

    Attributes
    ----------
    motion : BSpline
        Begins and ends at rest, without acceleration, in the same posture, so that it can be repeated.
    guess, first : BSpline, Excitation
        The random motion at which the search began, and what it tells.
    solution : Solution
    """

    motion: BSpline
    guess: BSpline
    first: Excitation
    solution: Solution

    def __str__(self) -> str:
        rows = [("condition", self.first.condition, self.condition), ("log det", self.first.log_det, self.log_det)]
        lines = [f"{name}: {before:.4g} of a random motion -> {after:.4g}" for name, before, after in rows]
        return "\n".join([*lines, self.solution.reason])


class _Columns:
    """The columns of the base regressor, and their derivatives to a motion."""

    def __init__(self, mech: Mechanism, unknowns: Unknowns) -> None:
        self.mech = mech
        self.base = regrouped(mech, unknowns)
        kept = {parameter.names[0] for parameter in self.base.parameters}
        self.kept = [k for k, name in enumerate(unknowns.names) if name in kept]
        self.parts = [unknowns.parts[k] for k in self.kept]
        self._unknowns = unknowns

    @cached_property
    def _made(self) -> tuple[Mechanism, list[tuple[float, Mechanism]]]:
        """A mechanism, and those with one number changed, by how much."""
        values, sizes = self._unknowns.values.copy(), self._unknowns.sizes
        for place in self._unknowns.whole.values():  # none of its numbers is zero, so that all have one machine code
            values[place] = sizes[place] * [1.0, 0.1, 0.2, 0.3, 1.0, 0.05, 0.04, 1.1, 0.03, 1.2]
        changed = []
        for k in self.kept:
            there = values.copy()
            there[k] += sizes[k]
            changed.append((float(sizes[k]), with_values(self.mech, self._unknowns, there, True)))
        return with_values(self.mech, self._unknowns, values, True), changed

    def regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return Y_b, (N, n, B)."""
        return torque_rates(self.mech.tree, self.parts, q, qd, qdd)

    def pulled(self, weights: Array, q: Array, qd: Array, qdd: Array) -> Parts:
        """Return the derivatives of Σ weights Y_b, weights (N, n, B), to the motion, (N, n) by channel."""
        reference, changed = self._made
        sums = np.zeros((3, *q.shape))
        plain = _inverse_columns(reference, q, qd, qdd)
        for k, (size, mech) in enumerate(changed):
            columns = (_inverse_columns(mech, q, qd, qdd) - plain) / size
            sums += np.einsum("ki,krij->rkj", weights[:, :, k], columns)
        return dict(zip(("q", "qd", "qdd"), sums, strict=True))


def _inverse_columns(mech: Mechanism, q: Array, qd: Array, qdd: Array) -> Array:
    """Return the derivatives of the inverse dynamics to q, q̇ and q̈, (N, 3, n, n)."""
    return hybrid_sensitivity(mech.tree, q, qd, qdd, drive="inverse", name="qdd").columns


class _Information(Term):
    """Criterion that is made least: a function of the information matrix."""

    kind = "motion"
    channels = ("q", "qd", "qdd")

    def __init__(self, columns: _Columns, noise: Array, criterion: str) -> None:
        super().__init__()
        self.columns, self.noise, self.criterion = columns, noise, criterion
        mech = columns.mech  # a motion of the search is a little open, where dependent constraints are not so
        self.rows: Any = independent_rows(mech) if mech.loops else slice(None)

    def _read(self, at: Samples) -> tuple[OpenEquations | ClosedEquations, Array, Array, Array]:
        """Return the equations, their noise, and the base regressor of joints, (N, n, B), and of equations, weighed."""
        equations = equations_of(self.columns.mech, at.q, self.rows)
        sigma, Y = equations.noisy * self.noise, self.columns.regressor(at.q, at.qd, at.qdd)
        return equations, sigma, Y, np.asarray(equations.weighed(Y, sigma))

    @staticmethod
    def _spectrum(at: Samples, Y: Array) -> tuple[Array, Array]:
        """Return the square roots of the eigenvalues of M, falling, and its eigenvectors as rows."""
        rows = np.sqrt(at.duration * at.weights)[:, None, None] * Y
        _, roots, vectors = np.linalg.svd(np.linalg.qr(rows.reshape(-1, Y.shape[-1]), mode="r"))
        return roots, vectors

    def values(self, at: Samples) -> Array:
        """Return −log det M, or the logarithm of the condition number, (1,)."""
        roots, _ = self._spectrum(at, self._read(at)[-1])
        if not roots[-1] > 0.0:
            return np.array([np.inf])
        value = -2.0 * np.log(roots).sum() if self.criterion == "determinant" else np.log(roots[0] / roots[-1])
        return np.array([value])

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives to all samples by channel, (N, n)."""
        equations, sigma, Y, weighed = self._read(at)
        roots, vectors = self._spectrum(at, weighed)
        scaled = vectors / roots[:, None]
        if self.criterion == "determinant":
            C = -scaled.T @ scaled
        else:
            C = 0.5 * (np.outer(scaled[0], scaled[0]) - np.outer(scaled[-1], scaled[-1]))
        each = at.duration * at.weights[:, None, None]
        found = self.columns.pulled(2.0 * each * equations.spread(weighed @ C, sigma), at.q, at.qd, at.qdd)
        return {**found, "q": found["q"] + equations.turned(each * (Y @ C) @ np.swapaxes(Y, 1, 2), sigma)}

    def label(self) -> str:
        """Return what messages call the term."""
        return f"information ({self.criterion})"


def excitation(
    mech: Mechanism | str,
    motion: BSpline,
    parameters: Iterable[str] | str | None = None,
    *,
    noise: Any = 1.0,
    samples: int = NODES,
) -> Excitation:
    """Return the information that a log of a motion holds about base parameters.

    Parameters
    ----------
    mech : Mechanism or str
    motion : BSpline
        Of all joints; one that nearly closes the loops of a closed mechanism is closed.
    parameters : iterable of str, optional
        As for `identify`.
    noise : float or array_like, (n,)
        Standard deviation of the noise of each joint's torque.
    samples : int
        At how many times it is asked, evenly spaced.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> arm = library.planar_2r()
    >>> points = np.random.default_rng(0).uniform(-1, 1, (10, 2))
    >>> found = excitation(arm, BSpline.uniform(points, duration=4.0, degree=5))
    >>> len(found.base), found.standard_errors(rate=100.0).shape
    (6, (6,))
    """
    from cstormpy.mechanism import as_mechanism

    mech = as_mechanism(mech)
    if not isinstance(motion, BSpline):
        raise InvalidType(f"motion: expected a BSpline, got {shown(motion)}")
    columns = _Columns(mech, unknowns_of(mech, parameters))
    # Gauss's rule in equal pieces, as a log of many rows has it
    pieces = max(1, checks.count(samples, "samples") // 4)
    t, weights = gauss_sites(np.linspace(motion.t0, motion.t1, pieces + 1), 4)
    q, qd, qdd = motion.evaluate(t)
    if mech.loops:
        q, qd, qdd = closed_motion(mech, q, qd, qdd, "motion")
    equations = equations_of(mech, q)
    Y = equations.weighed(columns.regressor(q, qd, qdd), equations.noisy * _noise(mech, noise))
    return Excitation(columns.base, np.einsum("k,kib,kic->bc", weights, Y, Y))


#: Options of a `Problem` that an exciting motion has not.
_DECIDED = {
    "end": "it ends in the posture in which it starts; give start=",
    "guess": "the search begins at a random motion; seed= draws another one",
    "objective": "criterion= says what is best",
    "cuts": "the forces of the loops follow from the motion",
    "transcription": "all joints are on splines, or all freedoms that loops leave",
    "base": "what is told is of a base at rest, as `identify` has it",
    "design": "what is told is of the mechanism as it is; give mech.with_parameters(...)",
}


def exciting_motion(
    mech: Mechanism | str,
    parameters: Iterable[str] | str | None = None,
    *,
    duration: float,
    start: Any = None,
    limits: Any = "mechanism",
    noise: Any = 1.0,
    criterion: str = "determinant",
    points: int = 14,
    degree: int = 5,
    samples: int = 101,
    seed: int | np.random.Generator = 0,
    iterations: int = 100,
    progress: bool = True,
    **options: Any,
) -> ExcitingMotion:
    """Return a motion within limits from whose log base parameters can be told best.

    It begins and ends at rest in the same posture, on B-splines; the search begins at a random motion and follows the
    exact gradient. Of a closed mechanism the freedoms are on splines, and what its equations tell counts, as `identify`
    has them; `Problem` says of "freedoms" how it keeps away from singular postures.

    Parameters
    ----------
    mech : Mechanism or str
        All of its joints, or freedoms where there are loops, have motors. Where its limits are missing give your own:
        without limits there is no best.
    parameters : iterable of str, optional
        As for `identify`.
    duration : float
        [s].
    start : array_like, (n,), optional
        The posture at both ends; unless given the middle of the limits of position, or zero. Of a closed mechanism what
        closes the loops next to that, or where its motors hardly hold it, the best of some closed postures.
    limits : "mechanism" or mapping, optional
        As for `Problem`: of "position", "velocity", "acceleration", "torque". For torques the mechanism's own numbers
        are taken, as far as they are known.
    noise : float or array_like, (n,)
        Standard deviation of the noise of each joint's torque.
    criterion : {"determinant", "condition"}
        The greatest determinant of the information, or the least condition number of the base regressor.
    points, degree : int
        Control points of each joint's or freedom's spline, and its degree.
    samples : int
        At how many times limits are asked first.
    seed : int or numpy.random.Generator
        Draws the random motion at which the search begins.
    iterations : int
        The most iterations.
    progress : bool
        Whether a line on the terminal tells how it goes.
    **options
        Further options of the `Problem`, as ``constraints=[Position("tool", lower=[None, None, 0.1], at="all")]``.

    Raises
    ------
    CstormError
        For a joint without a motor, by name, or freedoms; where nothing limits the motion; for what `Problem` refuses.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> limits = {"position": 1.5, "velocity": 3.0, "torque": 40.0}
    >>> found = exciting_motion(library.planar_2r(), duration=4.0, limits=limits, points=9, progress=False)
    >>> found.log_det > found.first.log_det, found.motion.duration
    (True, 4.0)
    """
    from cstormpy.mechanism import as_mechanism

    mech = as_mechanism(mech)
    _refuse_idle(mech)
    option(criterion, "criterion", CRITERIA)
    for name in _DECIDED.keys() & options.keys():
        raise InvalidValue(f"exciting motion: {name}: {_DECIDED[name]}")
    term = _Information(_Columns(mech, unknowns_of(mech, parameters)), _noise(mech, noise), criterion)
    span = _span(mech, read_limits(mech, limits, np.ones(mech.n, dtype=bool)))
    posture = _posture(mech, *span) if start is None else checks.array(start, (mech.n,), "start")
    still = (posture, np.zeros(mech.n), np.zeros(mech.n))
    problem = Problem(
        mech, duration=checks.positive(duration, "duration"), start=still, end=still, objective=term, limits=limits,
        transcription="freedoms" if mech.loops else "inverse", points=points, degree=degree, samples=samples, **options,
    )  # fmt: skip
    if not {limit.kind for limit in problem.limits} & {"velocity", "acceleration", "torque", "power"}:
        raise InvalidValue(
            "limits: nothing limits how fast the motion is, so that none is the best; give limits= of velocity, "
            "acceleration or torque"
        )
    problem = problem.replace(guess=_random(problem, *span, np.random.default_rng(seed)))
    solution = problem.solve(iterations=iterations, progress=progress)
    transcription = problem.transcription
    assert isinstance(transcription, Inverse)
    guess = transcription.motion(problem.first_guess())
    first, best = (excitation(mech, motion, parameters, noise=noise) for motion in (guess, solution.motion))
    return ExcitingMotion(best.base, best.information, solution.motion, guess, first, solution)


_EACH = "one number, or one for the torque of each joint, with motor or without: "


def _noise(mech: Mechanism, noise: Any) -> Array:
    given = as_floats(noise, "noise")
    values = checks.array(
        np.full(mech.n, float(given)) if given.ndim == 0 else noise, (mech.n,), "noise", _EACH + some_of(mech.names)
    )
    if not (values > 0.0).all():
        raise InvalidValue(f"noise: expected positive standard deviations, got {shown(noise)}")
    return values


def _refuse_idle(mech: Mechanism) -> None:
    """Refuse a mechanism some of whose freedoms have no motor."""
    idle = ~mech.actuated_mask
    if mech.loops:
        found = closure_of(mech, regular_posture(mech)[None])
        if not found.holonomic.all():
            name = constraint_names(mech)[int(np.argmin(found.holonomic))]
            raise InvalidValue(f"exciting motion: loop {name}: is of rates, so that joints do not follow from others")
        if np.linalg.matrix_rank(found.A[0][:, idle], tol=1e-9) < idle.sum():
            raise InvalidValue(
                f"exciting motion: the motors ({', '.join(mech.actuated)}) drive not all freedoms that the loops "
                "leave, so that no motion can be asked of them"
            )
    elif idle.any():
        name = mech.names[int(np.argmax(idle))]
        raise InvalidValue(f"exciting motion: joint {name!r} has no motor, so that no motion can be asked of it")


def _span(mech: Mechanism, limits: list[JointLimit]) -> tuple[Array, Array]:
    """Return the limits of position, (n,) each, infinite where there are none."""
    low, high = np.full(mech.n, -np.inf), np.full(mech.n, np.inf)
    for limit in limits:
        if limit.kind == "position":
            at = limit.joints
            low[at], high[at] = limit.lower, limit.upper
    return low, high


def _posture(mech: Mechanism, low: Array, high: Array) -> Array:
    """Return the posture in the middle of limits, ordinary sizes in place of those that are none.

    Of a closed mechanism it is the closed one next to that, or to a random one, where that holds it better.
    """
    units, rng, found = coordinate_scales(mech), np.random.default_rng(0), []
    least, most = np.where(np.isfinite(low), low, -units), np.where(np.isfinite(high), high, units)
    middle = 0.5 * (least + most)
    if not mech.loops:
        return middle
    for k in range(POSTURES):
        try:
            q, _ = project(mech, middle if k == 0 else rng.uniform(least, most))
        except InvalidValue:  # cannot be closed from there
            continue
        inside = bool(((low <= q) & (q <= high)).all())
        found.append((inside, _held(mech, q), q))
        if k == 0 and found[0][1] >= HELD:
            return q
    return max(found, key=lambda one: one[:2])[2] if found else regular_posture(mech)


def _held(mech: Mechanism, q: Array) -> float:
    """Return how well the motors determine a closed posture (n,): 1 where loops move no joint without one, 0 singular.

    It is how much of a motion of these joints the constraints see at least, as a part of it.
    """
    A = closure_of(mech, q[None]).A[0][independent_rows(mech)] * coordinate_scales(mech)
    _, sizes, directions = np.linalg.svd(A, full_matrices=False)
    if not sizes[-1] > LEAST * sizes[0]:
        return 0.0
    return float(np.linalg.svd(directions[:, ~mech.actuated_mask], compute_uv=False).min(initial=1.0))


def _random(problem: Problem, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Return control points of a random motion that keeps to the limits as far as a smaller one would.

    Those of a spline hold it between them; it is drawn towards rest until it keeps to the other limits as well.
    """
    t, joints = problem.transcription, problem.driven
    start, units, low, high = (row[joints] for row in (problem.start.q, coordinate_scales(problem.mech), low, high))
    low, high = np.where(np.isfinite(low), low - start, -units), np.where(np.isfinite(high), high - start, units)
    kept = [*problem.limits, *(c for c in problem.constraints if isinstance(c, Clearance))]
    best: tuple[float, Array] | None = None
    for k in range(TRIES):
        points = start + 0.9 ** (k % 40) * rng.uniform(0.9 * low, 0.9 * high, t.map.shape)
        x = t.variables(points, problem.duration_guess)
        if problem.mech.loops and k < TRIES - 40 and _is_over(problem, x):  # the others are slow to follow
            continue
        motion = t.evaluate(x)
        if motion is None:
            continue
        over = 0.0
        for limit in kept:
            y = limit.values(motion.samples.at(t.grid))
            size = np.max([np.where(np.isfinite(b), np.abs(b), 0.0) for b in (limit.lower, limit.upper)], axis=0)
            part = np.maximum(y - limit.upper, limit.lower - y) / np.where(size > 0.0, size, 1.0)
            over = max(over, float(part.max()))
        if over <= 0.0:
            return points
        if best is None or over < best[0]:
            best = (over, points)
    if best is None:
        raise NonFinite("exciting motion: no random motion is finite; give other limits")
    return best[1]


def _is_over(problem: Problem, x: Array) -> bool:
    """Tell whether the joints on splines alone break the limits of their motion."""
    spline, phases = problem.transcription.spline(x), problem.transcription.phases[problem.transcription.grid]
    curves = dict(zip(("position", "velocity", "acceleration"), spline.evaluate(spline.duration * phases), strict=True))
    for limit in problem.limits:
        here = np.isin(limit.joints, problem.driven)
        if limit.kind in curves and here.any():
            y = curves[limit.kind][:, np.searchsorted(problem.driven, limit.joints[here])]
            if ((y > limit.upper[here]) | (y < limit.lower[here])).any():
                return True
    return False
